"""The formulas of :mod:`lib.foundations.committee`, compiled, for overlaps that were checked or made by the caller.

They take complex overlaps too, by which `stability` and `lib.scaling.structured` differentiate them: for an analytic
f,  f'(x) = Im f(x + ih)/h  has no difference of nearby values, so that h = `STEP` leaves rounding alone.
"""

from math import pi, sqrt

import numpy as np

from lib.common.compiled import loops

STEP = 1e-20  # h of a derivative by a complex step
ROUNDING = 1e-13  # of a lowest correlation


def lowest_correlation(joint, part):
    """Lowest eigenvalue of the correlations of stacked [[Q, R], [Rᵀ, T]] (..., n, n), each variance raised by `part`.

    Every field counts on its own scale; 1e-11 more is for the absolute error of a solved trajectory.
    """
    spot = np.arange(joint.shape[-1])
    floor = 1e-11 * min(1.0, max(np.abs(joint).max(), 1e-280))
    variance = joint[..., spot, spot] * (1 + part) + floor  # (..., n)
    if variance.min() <= 0:
        return -np.inf
    width = np.sqrt(variance)  # (..., n)
    correlation = joint / width[..., :, None] / width[..., None, :]  # (..., n, n)
    correlation[..., spot, spot] = 1.0
    return np.linalg.eigvalsh(correlation).min()


def error(q, r, t):
    """ε_g of stacked overlaps that were checked or made here."""
    units, teachers = r.shape[-2:]
    x = np.sqrt(1 + np.diagonal(q, axis1=-2, axis2=-1))  # (..., K)
    y = np.sqrt(1 + np.diagonal(t))  # (M,)
    student = np.arcsin(q / (x[..., :, None] * x[..., None, :])).sum(axis=(-2, -1))
    cross = np.arcsin(r / (x[..., :, None] * y)).sum(axis=(-2, -1))
    teacher = np.arcsin(t / np.outer(y, y)).sum()
    return (teachers / units**2 * student + teacher / teachers - 2 / units * cross) / pi


@loops
def _drift(s, units, pull):
    """G and a, side by side in `pull` (K, K + M), for fields of covariance s."""
    teachers = len(s) - units
    for i in range(units):
        total = 0.0
        for n in range(units, len(s)):
            pull[i, n] = 2 / pi / np.sqrt((1 + s[i, i]) * (1 + s[n, n]) - s[i, n] * s[i, n])
            total += pull[i, n] * s[i, n]
        for j in range(units):
            pull[i, j] = 2 / pi * teachers / units / np.sqrt((1 + s[i, i]) * (1 + s[j, j]) - s[i, j] * s[i, j])
            total -= pull[i, j] * s[i, j]
        pull[i, i] += total / (1 + s[i, i])


@loops
def tilted_sum(s, i, j, weights, tilted, width):
    """⟨g'(z_i) g'(z_j) Σ_ab weights_ab g(z_a) g(z_b)⟩ for fields z of covariance s; `tilted`, `width` are workspace."""
    size = len(s)
    ci, cj, cross = 1 + s[i, i], 1 + s[j, j], s[i, j]
    volume = ci * cj - cross * cross
    for a in range(size):
        for b in range(a + 1):
            mixed = s[i, a] * s[j, b] + s[j, a] * s[i, b]
            tilt = cj * s[i, a] * s[i, b] + ci * s[j, a] * s[j, b] - cross * mixed
            tilted[a, b] = s[a, b] - tilt / volume
        width[a] = np.sqrt(1 + tilted[a, a])
    total = 0.0
    for a in range(size):
        for b in range(a):
            total += 2 * weights[a, b] * np.arcsin(tilted[a, b] / (width[a] * width[b]))
        total += weights[a, a] * np.arcsin(tilted[a, a] / (width[a] * width[a]))
    return 4 / (pi * pi) / np.sqrt(volume) * total


@loops
def _velocity(state, s, units, weights, tilted, width, pull, rate, second_order, out):
    """dQ/dα and dR/dα into `out`, from Q and R in `state`, laid out as there: row by row, Q first."""
    size = len(s)
    teachers = size - units
    for i in range(units):
        for j in range(units):
            s[i, j] = state[i * units + j]
        for n in range(units, size):
            s[i, n] = s[n, i] = state[units * units + i * teachers + n - units]
    _drift(s, units, pull)
    for i in range(units):
        for n in range(units, size):
            total = 0.0
            for m in range(units, size):
                total += pull[i, m] * s[m, n]
            for j in range(units):
                total -= pull[i, j] * s[j, n]
            out[units * units + i * teachers + n - units] = rate * total
        for j in range(i + 1):
            total = 0.0
            for m in range(units, size):
                total += pull[i, m] * s[j, m] + pull[j, m] * s[i, m]
            for k in range(units):
                total -= pull[i, k] * s[k, j] + pull[j, k] * s[k, i]
            total *= rate
            if second_order:
                total += rate * rate * teachers * tilted_sum(s, i, j, weights, tilted, width)
            out[i * units + j] = out[j * units + i] = total


class Fields:
    """Fields z = (x, y) of students and teachers, of covariance S = [[Q, R], [Rᵀ, T]], and room to work in."""

    def __init__(self, q, r, t):
        self.units, teachers = r.shape
        self.s = np.empty((self.units + teachers,) * 2, np.result_type(q, r))  # (K+M, K+M)
        self.s[self.units :, self.units :] = t
        self.place(q, r)
        weight = np.empty(len(self.s))  # δ = Σ_a weight_a g(z_a)
        weight[: self.units], weight[self.units :] = -sqrt(teachers) / self.units, 1 / sqrt(teachers)
        self.weights = np.outer(weight, weight)  # (K+M, K+M)
        self.room = np.empty_like(self.s), np.empty_like(self.s[0])
        self.pull = np.empty_like(self.s[: self.units])  # (K, K+M)

    def place(self, q, r):
        units = self.units
        self.s[:units, :units], self.s[:units, units:], self.s[units:, :units] = q, r, r.T

    def drift(self):
        """a (K, M) and G (K, K) of :func:`lib.foundations.committee.drift_coefficients`."""
        _drift(self.s, self.units, self.pull)
        return self.pull[:, self.units :].copy(), self.pull[:, : self.units].copy()

    def noise(self):
        """E (K, K) of :func:`lib.foundations.committee.noise_matrix`."""
        e = np.empty((self.units, self.units), self.s.dtype)
        for i in range(self.units):
            for j in range(i + 1):
                e[i, j] = e[j, i] = tilted_sum(self.s, i, j, self.weights, *self.room)
        return e

    def flow(self, state, learning_rate, second_order):
        """Rates of change with α of Q and R in `state` (K² + KM,), laid out one after the other, as they are there."""
        out = np.empty_like(state)  # (K² + KM,)
        rate = learning_rate / self.units
        _velocity(state, self.s, self.units, self.weights, *self.room, self.pull, rate, second_order, out)
        return out

    def velocity(self, learning_rate, second_order):
        """dQ/dα and dR/dα of :func:`lib.foundations.committee.derivative`."""
        units, rows = self.units, self.s[: self.units]  # (K, K+M)
        state = np.concatenate([rows[:, :units].ravel(), rows[:, units:].ravel()])  # (K² + KM,)
        rates = self.flow(state, learning_rate, second_order)  # (K² + KM,)
        return rates[: units**2].reshape(units, -1), rates[units**2 :].reshape(units, -1)  # (K, K), (K, M)

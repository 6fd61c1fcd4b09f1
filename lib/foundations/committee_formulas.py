"""The formulas of :mod:`lib.foundations.committee`, compiled, for overlaps that were checked or made by the caller.

They take complex overlaps too, by which `stability` and `lib.scaling.structured` differentiate them: for an analytic
f,  f'(x) = Im f(x + ih)/h  has no difference of nearby values, so that h = `STEP` leaves rounding alone.
"""

from math import pi, sqrt

import numpy as np
from numba import njit

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


@njit(cache=True)
def drift(q, r, t):
    """a (K, M) and G (K, K) of :func:`lib.foundations.committee.drift_coefficients`."""
    units, teachers = r.shape
    a = np.empty((units, teachers), q.dtype)
    g = np.empty((units, units), q.dtype)
    for i in range(units):
        pull = 0.0
        for n in range(teachers):
            a[i, n] = 2 / pi / np.sqrt((1 + q[i, i]) * (1 + t[n, n]) - r[i, n] ** 2)
            pull += a[i, n] * r[i, n]
        for j in range(units):
            g[i, j] = 2 / pi * teachers / units / np.sqrt((1 + q[i, i]) * (1 + q[j, j]) - q[i, j] ** 2)
            pull -= g[i, j] * q[i, j]
        g[i, i] += pull / (1 + q[i, i])
    return a, g


@njit(cache=True)
def tilted_sum(s, i, j, weights, tilted, width):
    """⟨g'(z_i) g'(z_j) Σ_ab weights_ab g(z_a) g(z_b)⟩ for fields z of covariance s; `tilted`, `width` are workspace."""
    size = len(s)
    ci, cj, cross = 1 + s[i, i], 1 + s[j, j], s[i, j]
    volume = ci * cj - cross**2
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
        total += weights[a, a] * np.arcsin(tilted[a, a] / width[a] ** 2)
    return 4 / pi**2 / np.sqrt(volume) * total


@njit(cache=True)
def noise(q, r, t):
    """E (K, K) of :func:`lib.foundations.committee.noise_matrix`; in loops: a solution calls it 10 000 times."""
    units, teachers = r.shape
    size = units + teachers
    s = np.empty((size, size), q.dtype)  # joint covariance of the fields z = (x, y)
    s[:units, :units], s[:units, units:] = q, r
    s[units:, :units], s[units:, units:] = r.T, t
    weight = np.empty(size)  # δ = Σ_a weight_a g(z_a)
    weight[:units], weight[units:] = -sqrt(teachers) / units, 1 / sqrt(teachers)
    weights = np.outer(weight, weight)
    tilted, width = np.empty((size, size), q.dtype), np.empty(size, q.dtype)
    e = np.empty((units, units), q.dtype)
    for i in range(units):
        for j in range(i + 1):
            e[i, j] = e[j, i] = tilted_sum(s, i, j, weights, tilted, width)
    return e


@njit(cache=True)
def velocity(q, r, t, learning_rate, second_order):
    """dQ/dα and dR/dα of :func:`lib.foundations.committee.derivative`."""
    units, teachers = r.shape
    a, g = drift(q, r, t)
    rate = learning_rate / units
    dq = np.empty((units, units), q.dtype)
    dr = np.empty((units, teachers), q.dtype)
    for i in range(units):
        for n in range(teachers):
            total = 0.0
            for m in range(teachers):
                total += a[i, m] * t[m, n]
            for j in range(units):
                total -= g[i, j] * r[j, n]
            dr[i, n] = rate * total
        for j in range(i + 1):
            total = 0.0
            for m in range(teachers):
                total += a[i, m] * r[j, m] + a[j, m] * r[i, m]
            for k in range(units):
                total -= g[i, k] * q[k, j] + g[j, k] * q[k, i]
            dq[i, j] = dq[j, i] = rate * total
    if second_order:
        dq += rate**2 * teachers * noise(q, r, t)
    return dq, dr


@njit(cache=True)
def flat_velocity(state, t, units, learning_rate, second_order):
    """:func:`velocity` for Q and R laid out one after the other."""
    q, r = state[: units**2].reshape(units, units), state[units**2 :].reshape(units, len(t))
    dq, dr = velocity(q, r, t, learning_rate, second_order)
    return np.concatenate((dq.ravel(), dr.ravel()))

"""How eigenspaces move: at given overlaps, and in a step along which a, G and E are parabolas.

In the time s = ηλ_kα/K the vectors of an eigenspace move by dJ = aB - GJ, which is linear: J -> UJ + VB with  dU = -GU,
dV = a - GV.  Collocation at start, middle and end of the step, with weights that are exact for a constant G, finds U
and V for any λ_k, to fourth order, and V -> G⁻¹a where λ_k is large.  The overlaps move by the congruence with (U, V)
plus N, what single examples add:  dN = E - GN - NG.  So they stay a covariance at any step.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp

import numpy as np
from numba import njit

from lib.foundations import committee_formulas

SERIES = 1 / np.arange(15.0, 3.0, -1.0)  # (12,)  1/15, ..., 1/4
MOST_SWEEPS, SWEPT = 12, 1e-10  # N is found by iteration, down to this part of it


def velocity(q, r, t, lam, fractions, rate, second_order):
    """dQ^k/dα and dR^k/dα of what was checked, or of a small step out of the covariance matrices: analytic there."""
    seen = [np.tensordot(lam, part, axes=1) for part in (q, r, t)]  # (K, K), (K, M), (M, M)
    a, g = committee_formulas.drift(*seen)
    units, teachers = a.shape
    slow = (rate * lam / units)[:, None, None]  # (L, 1, 1)
    half = a @ np.swapaxes(r, 1, 2) - g @ q  # (L, K, K)
    dq = slow * (half + np.swapaxes(half, 1, 2))  # (L, K, K)
    if second_order:
        dq = dq + rate**2 * teachers / units**2 * (lam * fractions)[:, None, None] * committee_formulas.noise(*seen)
    return dq, slow * (a @ t - g @ r)


@njit(cache=True)
def weights(time, rate, out):
    """x at s = 1/2 and 1 (rows of `out`, (2, 5)), if dx/ds = time (drive - rate x).

    The columns multiply x(0), the drive at s = 0, 1/2 and 1, and its cubic part s(1 - s)(1 - 2s).
    """
    for node in range(2):
        place = 0.5 + 0.5 * node
        z = time * rate * place
        if abs(z) < 0.5:  # φ_4 = Σ_n (-z)^n/(n+4)!, summed from its end
            fourth = 0.0
            for part in SERIES:
                fourth = (1.0 - z * fourth) * part
            fourth /= 6.0
            third = 1 / 6 - z * fourth
            second = 0.5 - z * third
            first = 1.0 - z * second
            keep = 1.0 - z * first
        else:
            keep = exp(-z)
            first = (1.0 - keep) / z
            second = (1.0 - first) / z
            third = (0.5 - second) / z
            fourth = (1 / 6 - third) / z
        # Moments: what a drive 1, s, s² leaves, n! time place^{n+1} φ_{n+1}.
        zeroth, linear, square = time * place * first, time * place**2 * second, 2 * time * place**3 * third
        out[node, 0] = keep
        out[node, 1] = zeroth - 3 * linear + 2 * square
        out[node, 2] = 4 * linear - 4 * square
        out[node, 3] = 2 * square - linear
        out[node, 4] = keep * (linear - 3 * square + 12 * time * place**4 * fourth)


@njit(cache=True)
def eliminate(matrix, right):
    """Solve matrix x = right in place; the matrix is near the unit matrix, so no pivots are needed."""
    size, columns = right.shape
    for p in range(size):
        for i in range(p + 1, size):
            factor = matrix[i, p] / matrix[p, p]
            for j in range(p + 1, size):
                matrix[i, j] -= factor * matrix[p, j]
            for j in range(columns):
                right[i, j] -= factor * right[p, j]
    for p in range(size - 1, -1, -1):
        for i in range(p + 1, size):
            for j in range(columns):
                right[p, j] -= matrix[p, i] * right[i, j]
        for j in range(columns):
            right[p, j] /= matrix[p, p]


@njit(cache=True)
def multiply(left, right, out):
    """out = left right, in loops: faster than BLAS for a few units."""
    out[:] = 0.0
    for i in range(len(left)):
        for c in range(len(right)):
            for j in range(right.shape[1]):
                out[i, j] += left[i, c] * right[c, j]


@njit(cache=True)
def spread(time, noise, change, decay, bent, sweeps, out):
    """N at middle and end, `out` (2, K, K), in the frame where G is diagonal plus `change`; all of them (3, K, K).

    The drive E - (change) N - N (change) is a parabola through its values at start, middle and end; if `bent`, a cubic
    with the right slope at the start, without which N were less accurate than U and V.
    """
    units = noise.shape[1]
    drive = noise.copy()  # (3, K, K)
    slope, bend, product = np.empty((units, units)), np.zeros((units, units)), np.empty((units, units))
    multiply(change[0], noise[0], product)
    for i in range(units):
        for h in range(i + 1):
            slope[i, h] = -time * (product[i, h] + product[h, i])
    out[:] = 0.0
    for _ in range(sweeps):
        for i in range(units):
            for h in range(i + 1):
                for node in range(2):
                    total = 0.0
                    for place in range(3):
                        total += decay[i, h, node, place + 1] * drive[place, i, h]
                    total += decay[i, h, node, 4] * bend[i, h]
                    out[node, i, h] = out[node, h, i] = total
        for node in range(2):
            multiply(change[node + 1], out[node], product)
            for i in range(units):
                for h in range(i + 1):
                    total = noise[node + 1, i, h] - product[i, h] - product[h, i]
                    drive[node + 1, i, h] = drive[node + 1, h, i] = total
        for i in range(units if bent else 0):
            for h in range(i + 1):
                bend[i, h] = slope[i, h] - 4 * (drive[1, i, h] - noise[1, i, h]) + drive[2, i, h] - noise[2, i, h]


@njit(cache=True)
def propagate(q, r, t, time, kick, values, frame, change, pulled, noisy, bent, new_q, new_r):
    """Q^k and R^k, (2, L, ., .), at middle and end of a step.

    a and E are `pulled` (3, K, M) and `noisy` (3, K, K) at start, middle and end, in the `frame` (K, K) where G is
    diag(`values`) + `change` (3, K, K); `time` (L,) is ηλ_k/K times the step, `kick` (L,) is ηMn_k/K.
    """
    units, teachers = pulled.shape[1:]
    width, size = units + teachers, 2 * units
    begin = np.zeros((2, units, width))  # (U, V) at the start and their drive
    begin[0, :, :units], begin[1, :, units:] = frame.T, pulled[0]
    multiply(-change[0], frame.T, begin[1, :, :units])
    some_noise = np.abs(noisy).max() > 0
    coupling = 2 * units * np.abs(change).max()
    single, pair = np.empty((units, 2, 5)), np.empty((units, units, 2, 5))
    matrix, moved, turned = np.empty((size, size)), np.empty((size, width)), np.empty((units, width))
    added, fed = np.zeros((2, units, units)), np.empty((units, width))
    grown = np.empty((units, units))
    joint = np.empty((width, width))
    for k in range(len(q)):
        joint[:units, :units], joint[:units, units:] = q[k], r[k]
        joint[units:, :units], joint[units:, units:] = r[k].T, t[k]
        for i in range(units):
            weights(time[k], values[i], single[i])
        for node in range(2):
            for i in range(units):
                row = node * units + i
                for place in range(2):
                    for h in range(units):
                        matrix[row, place * units + h] = single[i, node, place + 2] * change[place + 1, i, h]
                matrix[row, row] += 1.0
                for c in range(width):
                    moved[row, c] = single[i, node, 0] * begin[0, i, c] + single[i, node, 1] * begin[1, i, c]
                for n in range(teachers):
                    moved[row, units + n] += single[i, node, 2] * pulled[1, i, n] + single[i, node, 3] * pulled[2, i, n]
        eliminate(matrix, moved)
        if some_noise:
            for i in range(units):
                for h in range(i + 1):
                    weights(time[k], values[i] + values[h], pair[i, h])
            factor = coupling * time[k] / (1 + 2 * max(values[0], 0.0) * time[k])
            sweeps = 2
            while sweeps < MOST_SWEEPS and factor**sweeps > SWEPT:
                sweeps += 1
            spread(time[k], noisy, change, pair, bent, sweeps, added)
        for node in range(2):
            multiply(frame, moved[node * units : (node + 1) * units], turned)
            multiply(turned, joint, fed)  # (U, V) times the joint overlaps
            new_r[node, k] = fed[:, units:]
            if some_noise:
                multiply(frame, added[node], grown)
            for i in range(units):
                for j in range(i + 1):
                    total = 0.0
                    for c in range(width):
                        total += fed[i, c] * turned[j, c]
                    if some_noise:
                        for h in range(units):
                            total += kick[k] * grown[i, h] * frame[j, h]
                    new_q[node, k, i, j] = new_q[node, k, j, i] = total


@dataclass(frozen=True)
class Flow:
    """The moves of one problem; a state is the pair Q^k, R^k, a curve a, G and E at start, middle and end of a step."""

    t: np.ndarray  # (L, M, M)
    lam: np.ndarray  # (L,)
    fractions: np.ndarray  # (L,)
    rate: float
    second_order: bool
    units: int

    @cached_property
    def teacher(self):
        return np.tensordot(self.lam, self.t, axes=1)  # (M, M)

    def seen(self, state):
        """Q and R, the covariances of the fields, as one vector."""
        return np.concatenate([self.lam @ part.reshape(self.lam.size, -1) for part in state])  # (K (K + M),)

    def overlaps(self, seen):
        """Q and R from that vector, or from many."""
        own = self.units**2
        shape = (*seen.shape[:-1], self.units)
        return seen[..., :own].reshape(*shape, self.units), seen[..., own:].reshape(*shape, len(self.teacher))

    def error(self, seen):
        return committee_formulas.error(*self.overlaps(seen), self.teacher)

    def differences(self, seen):
        """What tells the units apart; on a plateau it is tiny, and it alone decides when the plateau ends."""
        cross = self.overlaps(seen)[1]
        return cross - cross.mean(axis=0)  # (K, M)

    def coefficients(self, seen):
        """a, G and E, one after the other."""
        student, cross = self.overlaps(seen)  # (K, K), (K, M)
        a, g = committee_formulas.drift(student, cross, self.teacher)
        e = committee_formulas.noise(student, cross, self.teacher) if self.second_order else np.zeros_like(g)
        return np.concatenate([a.ravel(), g.ravel(), e.ravel()])

    def stages(self, state, curve, length, bent=True):
        """The states in the middle and at the end of a step; `curve` is (3, K (M + 2K))."""
        units, teachers = self.units, len(self.teacher)
        a, g, e = np.split(curve, [units * teachers, units * (units + teachers)], axis=1)  # (3, .) each
        a, g, e = a.reshape(3, units, teachers), g.reshape(3, units, units), e.reshape(3, units, units)
        values, frame = np.linalg.eigh((g[0] + 4 * g[1] + g[2]) / 6)  # (K,), (K, K)
        in_frame = frame.T @ g @ frame - np.diag(values), frame.T @ a, frame.T @ e @ frame
        q, r = state
        new_q, new_r = np.empty((2, *q.shape)), np.empty((2, *r.shape))
        time = self.rate / units * length * self.lam  # (L,)
        kick = self.rate * teachers / units * self.fractions  # (L,)
        propagate(q, r, self.t, time, kick, values, frame, *in_frame, bent, new_q, new_r)
        return (new_q[0], new_r[0]), (new_q[1], new_r[1])

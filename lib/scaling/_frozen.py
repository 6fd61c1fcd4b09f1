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

from lib.common.compiled import loops
from lib.foundations.committee import Fields

SERIES = 1 / np.arange(15.0, 3.0, -1.0)  # (12,)  1/15, ..., 1/4
BLOCK = 2**14  # sets of weights that are held at a time
MOST_SWEEPS, SWEPT = 12, 1e-10  # N is found by iteration, down to this part of it


@loops
def weights(time, values, out):
    """x at s = 1/2 and 1, if dx/ds = time (drive - rate x), for every time and rate.

    out[k, i, 0] is for the rate `values`_i, out[k, i, 1 + h], if there is room, for the sum of two.  Its rows are the
    two s; columns multiply x(0), the drive at s = 0, 1/2 and 1, and its cubic part s(1 - s)(1 - 2s).
    """
    for k in range(len(time)):
        for i in range(len(values)):
            for h in range(i + 2 if out.shape[2] > 1 else 1):
                rate = values[i] + values[h - 1] if h > 0 else values[i]
                for node in range(2):
                    place, x = 0.5 + 0.5 * node, out[k, i, h, node]
                    z = time[k] * rate * place
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
                    zeroth, linear = time[k] * place * first, time[k] * place * place * second
                    square = 2 * time[k] * place * place * place * third
                    x[0] = keep
                    x[1] = zeroth - 3 * linear + 2 * square
                    x[2] = 4 * linear - 4 * square
                    x[3] = 2 * square - linear
                    x[4] = keep * (linear - 3 * square + 12 * time[k] * place * place * place * place * fourth)


@loops
def move(table, drives, out):
    """U and V at middle and end, first in the columns of `out` (L, 2K, .), by the weights of `table`.

    `drives` (4, K, 2K + K + M): what these multiply, side by side for what drives U and V from middle and end, and from
    outside.
    """
    units, wide = drives.shape[1:]
    size = 2 * units
    matrix, right = np.empty((size, size)), np.empty((size, wide - size))  # two arrays: one would take twice as long
    for k in range(len(table)):
        for node in range(2):
            for i in range(units):
                row, x = node * units + i, table[k, i, 0, node]
                for c in range(wide):
                    total = x[0] * drives[0, i, c] + x[1] * drives[1, i, c]
                    total += x[2] * drives[2, i, c] + x[3] * drives[3, i, c]
                    if c < size:
                        matrix[row, c] = total
                    else:
                        right[row, c - size] = total
                matrix[row, row] += 1.0
        for p in range(size):  # the matrix is near the unit matrix, so no pivots are needed
            for i in range(p + 1, size):
                factor = matrix[i, p] / matrix[p, p]
                for j in range(p + 1, size):
                    matrix[i, j] -= factor * matrix[p, j]
                for j in range(wide - size):
                    right[i, j] -= factor * right[p, j]
        for p in range(size - 1, -1, -1):
            for i in range(p + 1, size):
                for j in range(wide - size):
                    right[p, j] -= matrix[p, i] * right[i, j]
            for j in range(wide - size):
                right[p, j] /= matrix[p, p]
                out[k, p, j] = right[p, j]


@loops
def spread(time, part, table, change, noise, slope, bent, out):
    """N at middle and end, last in the columns of `out` (L, 2, K, .), zero so far, where G is diagonal plus `change`.

    E is `noise`, (3, K, K).  The drive E - (change) N - N (change) is a parabola through its values at start, middle
    and end; if `bent`, a cubic with the right slope at the start, -`time` `slope`, without which N were less accurate
    than U and V.  It is found by iteration, which leaves `part` (L,) of the last miss.
    """
    units = noise.shape[1]
    first = out.shape[3] - units
    product = np.empty((2, units, units))
    for k in range(len(time)):
        sweeps, left = 0, 1.0
        while sweeps < 2 or (sweeps < MOST_SWEEPS and left > SWEPT):
            for node in range(2):
                for i in range(units):
                    for h in range(units):
                        product[node, i, h] = 0.0
                    for c in range(units):
                        for h in range(units):
                            product[node, i, h] += change[node + 1, i, c] * out[k, node, c, first + h]
            for i in range(units):
                for h in range(i + 1):
                    middle = noise[1, i, h] - product[0, i, h] - product[0, h, i]
                    end = noise[2, i, h] - product[1, i, h] - product[1, h, i]
                    bend = 0.0
                    if bent and sweeps > 0:
                        bend = -time[k] * slope[i, h] - 4 * (middle - noise[1, i, h]) + end - noise[2, i, h]
                    for node in range(2):
                        x = table[k, i, h + 1, node]
                        total = x[1] * noise[0, i, h] + x[2] * middle + x[3] * end + x[4] * bend
                        out[k, node, i, first + h] = out[k, node, h, first + i] = total
            sweeps += 1
            left *= part[k]


@loops
def congruence(joint, frame, moved, kick, out):
    """Rows of the students' `joint` overlaps, `out` (L, 2, K, K + M), moved by (U, V) and raised by `kick` times N.

    `moved` (L, 2, K, .) holds U, V and, if there is noise, N at middle and end in the `frame` (K, K).
    """
    units, columns = moved.shape[2:]
    width = joint.shape[1]
    turned, fed = np.empty((units, columns)), np.empty((units, width))
    for k in range(len(joint)):
        for node in range(2):
            for i in range(units):
                for c in range(columns):
                    turned[i, c] = 0.0
                for h in range(units):
                    for c in range(columns):
                        turned[i, c] += frame[i, h] * moved[k, node, h, c]
                for c in range(width):
                    fed[i, c] = 0.0
                for j in range(width):
                    for c in range(width):
                        fed[i, c] += turned[i, j] * joint[k, j, c]
                for n in range(units, width):
                    out[k, node, i, n] = fed[i, n]
                for j in range(i + 1):
                    total = 0.0
                    for c in range(width):
                        total += fed[i, c] * turned[j, c]
                    for h in range(columns - width):
                        total += kick[k] * turned[i, width + h] * frame[j, h]
                    out[k, node, i, j] = out[k, node, j, i] = total


def product(left, right):
    """left right, the same on every machine, unlike that of BLAS."""
    return (left[:, :, None] * right).sum(axis=1)  # (K, K)


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

    @cached_property
    def fields(self):
        return Fields(np.eye(self.units), np.zeros((self.units, len(self.teacher))), self.teacher)

    def velocity(self, q, r):
        """dQ^k/dα and dR^k/dα of what was checked, or of a small step out of the covariances: analytic there."""
        fields = Fields(*(np.tensordot(self.lam, part, axes=1) for part in (q, r)), self.teacher)
        a, g = fields.drift()
        units, teachers = a.shape
        slow = (self.rate * self.lam / units)[:, None, None]  # (L, 1, 1)
        half = a @ r.mT - g @ q  # (L, K, K)
        dq = slow * (half + half.mT)  # (L, K, K)
        if self.second_order:
            share = (self.lam * self.fractions)[:, None, None]  # (L, 1, 1)
            dq = dq + self.rate**2 * teachers / units**2 * share * fields.noise()
        return dq, slow * (a @ self.t - g @ r)

    def seen(self, state):
        """Q and R, the covariances of the fields, as one vector."""
        return np.concatenate([self.lam @ part.reshape(self.lam.size, -1) for part in state])  # (K (K + M),)

    def overlaps(self, seen):
        """Q and R from that vector, or from many."""
        own = self.units**2
        shape = (*seen.shape[:-1], self.units)
        return seen[..., :own].reshape(*shape, self.units), seen[..., own:].reshape(*shape, len(self.teacher))

    def error(self, seen):
        return Fields.error(*self.overlaps(seen), self.teacher)

    def differences(self, seen):
        """What tells the units apart; on a plateau it is tiny, and it alone decides when the plateau ends."""
        cross = self.overlaps(seen)[1]
        return cross - cross.mean(axis=0)  # (K, M)

    def coefficients(self, seen):
        """a, G and E, one after the other."""
        student, cross = self.overlaps(seen)  # (K, K), (K, M)
        self.fields.place(student, cross)
        a, g = self.fields.drift()
        e = self.fields.noise() if self.second_order else np.zeros_like(g)
        return np.concatenate([a.ravel(), g.ravel(), e.ravel()])

    def stages(self, state, curve, length, bent=True):
        """The states in the middle and at the end of a step; `curve` is (3, K (M + 2K))."""
        units, teachers = self.units, len(self.teacher)
        a, g, e = np.split(curve, [units * teachers, units * (units + teachers)], axis=1)  # (3, .) each
        a, g, e = a.reshape(3, units, teachers), g.reshape(3, units, units), e.reshape(3, units, units)
        values, frame = np.linalg.eigh((g[0] + 4 * g[1] + g[2]) / 6)  # (K,), (K, K)
        time = self.rate / units * length * self.lam  # (L,)
        kick = self.rate * teachers / units * self.fractions  # (L,)
        change, pulled, noisy = frame.T @ g @ frame - np.diag(values), frame.T @ a, frame.T @ e @ frame
        width, size = units + teachers, 2 * units
        drives = np.zeros((4, units, size + width))  # what the weights multiply, for U and V
        drives[0, :, size : size + units], drives[1, :, size : size + units] = frame.T, product(-change[0], frame.T)
        drives[1:, :, size + units :] = pulled
        drives[2, :, :units], drives[3, :, units:size] = change[1:]
        pairs = units if np.abs(noisy).max() > 0 else 0
        if pairs:
            half = product(change[0], noisy[0])  # (K, K)
            noise = change, noisy, half + half.T, bent
            part = 2 * units * np.abs(change).max() * time / (1 + 2 * max(values[0], 0.0) * time)  # (L,)
        (q, r), new = state, np.empty((len(time), 2, units, width))
        step = max(1, BLOCK // (units * (pairs + 1)))
        for one in (slice(first, first + step) for first in range(0, len(time), step)):
            levels = len(time[one])
            table, moved = np.empty((levels, units, pairs + 1, 2, 5)), np.zeros((levels, 2, units, width + pairs))
            weights(time[one], values, table)
            move(table, drives, moved.reshape(levels, size, -1))
            if pairs:
                spread(time[one], part[one], table, *noise, moved)
            joint = np.empty((levels, width, width))
            joint[:, :units, :units], joint[:, :units, units:] = q[one], r[one]
            joint[:, units:, :units], joint[:, units:, units:] = r[one].mT, self.t[one]
            congruence(joint, frame, moved, kick[one], new[one])
        return tuple((rows[..., :units], rows[..., units:]) for rows in (new[:, 0], new[:, 1]))

"""The loops of :mod:`lib.foundations.committee`, compiled; they take complex overlaps too."""

from math import pi

import numpy as np

from lib.common.compiled import loops


@loops
def drift(s, units, pull):
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
def velocity(state, s, units, weights, tilted, width, pull, rate, second_order, out):
    """dQ/dα and dR/dα into `out`, from Q and R in `state`, laid out as there: row by row, Q first."""
    size = len(s)
    teachers = size - units
    for i in range(units):
        for j in range(units):
            s[i, j] = state[i * units + j]
        for n in range(units, size):
            s[i, n] = s[n, i] = state[units * units + i * teachers + n - units]
    drift(s, units, pull)
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

"""The formulas behind :mod:`lib.foundations.gaussian`, for covariances that were checked or made by the caller."""

from math import factorial

import numpy as np

# Near opposite arguments, φ = π - θ -> 0, the terms of a kernel cancel:  sin φ - φ cos φ  and, with x = 2φ,
# x + (x cos x - 3 sin x)/2.  Powers of φ² in these over φ; nine reach rounding at SMALL.
SMALL = 0.3
SERIES = {
    1: [-((-1) ** k) * 2 * k / factorial(2 * k + 1) for k in range(10)],
    2: [0.0] + [(-4) ** k * 2 * (k - 1) / factorial(2 * k + 1) for k in range(1, 10)],
}


def determinant(c11, c12, c22):
    """C11 C22 - C12² of accepted covariances; a negative value is rounding about perfect correlation."""
    return np.maximum(c11 * c22 - c12**2, 0)


def tilt(c):
    """Covariance of z2, z3, ... under the weight exp(-z1²/2):  C_ab - C_1a C_1b / (1 + C11), without cancellation.

    The minors C11 C_ab - C_1a C_1b vanish exactly for equal arguments.
    """
    rest, cross = c[..., 1:, 1:], c[..., 0, 1:]  # (..., n-1, n-1), (..., n-1)
    c11 = c[..., 0, 0, None, None]  # (..., 1, 1)
    minors = c11 * rest - cross[..., :, None] * cross[..., None, :]  # (..., n-1, n-1)
    spot = np.arange(rest.shape[-1])
    minors[..., spot, spot] = np.maximum(minors[..., spot, spot], 0)  # a determinant: negative is rounding
    return (rest + minors) / (1 + c11)  # (..., n-1, n-1)


def erf_i2(c):
    """I2 of accepted covariances, by an arctangent, which cannot leave its domain near perfect correlation."""
    c11, c12, c22 = c[..., 0, 0], c[..., 0, 1], c[..., 1, 1]  # (...) each
    return 2 / np.pi * np.arctan2(c12, np.sqrt(1 + c11 + c22 + determinant(c11, c12, c22)))  # (...)


def arccosine(c, order):
    """The kernel of accepted covariances."""
    c11, c12, c22 = c[..., 0, 0], c[..., 0, 1], c[..., 1, 1]  # (...) each
    sine = np.sqrt(determinant(c11, c12, c22))  # (...), √(C11 C22) sin θ
    angle = np.arctan2(sine, -c12)  # (...), φ = π - θ
    if order == 0:
        return angle / (2 * np.pi)  # (...)
    if order == 1:
        full, scale = sine + angle * c12, np.sqrt(c11 * c22)  # (...), (...)
    else:
        full, scale = 3 * sine * c12 + angle * (c11 * c22 + 2 * c12**2), c11 * c22  # (...), (...)
    few = scale * angle * np.polynomial.polynomial.polyval(angle**2, SERIES[order])  # (...)
    return np.where(angle < SMALL, few, full) / (2 * np.pi)  # (...)

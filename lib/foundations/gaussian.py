"""Averages over jointly Gaussian variables in closed form: erf integrals and arc-cosine kernels.

z ~ N(0, C), g(z) = erf(z/√2), g'(z) = √(2/π) exp(-z²/2), Θ the step function.  `covariance` (..., n, n) is C, symmetric
and positive semidefinite up to rounding: `TOLERANCE` in its correlations.  Numbered equations: worschech2024.
"""

import numpy as np

from lib.common import checks
from lib.foundations import gaussian_formulas

TOLERANCE = 1e-10  # rounding allowed in a correlation; in the symmetry, relative to the largest entry
LARGEST = 1e75  # largest covariance entry or averaged value: products of up to four stay floats


def _covariances(name, value, size):
    """`value` as covariance matrices (..., size, size), each checked on its own scale."""
    result = checks.entries(name, value, at_least=-LARGEST, at_most=LARGEST)
    if result.ndim < 2 or result.shape[-2:] != (size, size):
        checks.fail(name, f"have shape (..., {size}, {size})", f"shape {result.shape}")
    if result.size == 0:
        return result
    transposed = np.swapaxes(result, -1, -2)  # (..., n, n)
    rounding = TOLERANCE * np.abs(result).max(axis=(-2, -1))  # (...)
    if np.any(np.abs(result - transposed) > rounding[..., None, None]):
        checks.fail(name, "be symmetric: pass (A + A.T) / 2 if the difference is rounding", value)
    result = (result + transposed) / 2  # (..., n, n)
    lowest = checks.lowest_correlation(result, TOLERANCE).min()
    found = f"correlations with the lowest eigenvalue {lowest:.3g}" if lowest > -np.inf else "a negative variance"
    checks.fail_if(lowest < -1e-13, name, "be positive semidefinite", found)
    return result


def erf_i2(covariance):
    """Average ⟨g(z1) g(z2)⟩, `covariance` (..., 2, 2), eq. (89):  (2/π) arcsin(C12/√((1 + C11)(1 + C22))).  Returns I2.

    >>> float(erf_i2([[1.0, 1.0], [1.0, 1.0]]).round(6))  # equal arguments, variance 1: (2/π) arcsin(1/2)
    0.333333
    """
    return gaussian_formulas.erf_i2(_covariances("covariance", covariance, 2))  # (...)


def erf_i3(covariance):
    """Average ⟨g'(z1) z2 g(z3)⟩, eq. (90):  (2/π) [C23 (1 + C11) - C12 C13] / [(1 + C11) √((1 + C11)(1 + C33) - C13²)].

    `covariance` (..., 3, 3): C of (z1, z2, z3).  Returns I3 (...).

    >>> float(erf_i3([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]).round(6))  # (2/π) / √2
    0.450158
    """
    c = _covariances("covariance", covariance, 3)  # (..., 3, 3)
    tilted = gaussian_formulas.tilt(c)  # (..., 2, 2), of z2 and z3
    return 2 / np.pi * tilted[..., 0, 1] / np.sqrt((1 + c[..., 0, 0]) * (1 + tilted[..., 1, 1]))  # (...)


def erf_i4(covariance):
    """Average ⟨g'(z1) g'(z2) g(z3) g(z4)⟩, eq. (91) with the book's signs:  (2/π) Λ4^(-1/2) I2(D).

    Λ4 = (1 + C11)(1 + C22) - C12², D the covariance of (z3, z4) under the weight exp(-z1²/2 - z2²/2).  `covariance`
    (..., 4, 4).  Returns I4 (...).

    >>> independent = np.diag([1.0, 1.0, 0.0, 0.0])
    >>> independent[2:, 2:] = 1.0  # ⟨g'⟩² ⟨g²⟩ = (1/π) (1/3)
    >>> float((np.pi * erf_i4(independent)).round(6))
    0.333333
    """
    c = _covariances("covariance", covariance, 4)  # (..., 4, 4)
    once = gaussian_formulas.tilt(c)  # (..., 3, 3), of z2, z3 and z4
    scale = np.sqrt((1 + c[..., 0, 0]) * (1 + once[..., 0, 0]))  # (...), √Λ4
    return 2 / np.pi * gaussian_formulas.erf_i2(gaussian_formulas.tilt(once)) / scale  # (...)


def arccosine_kernel(covariance, order):
    """Average ⟨Θ(x) xⁿ Θ(y) yⁿ⟩ of two step (n = 0), ReLU (1) or squared ReLU (2) units, half of Cho & Saul (2009).

    k0 = (π - θ)/2π,  k1 = √(C11 C22) [sin θ + (π - θ) cos θ]/2π,  k2 = C11 C22 [3 sin θ cos θ + (π - θ)(1 + 2 cos²
    θ)]/2π,  cos θ = C12/√(C11 C22).  Near perfect correlation rounding moves k0 by about 1e-8.  `covariance` (..., 2,
    2): C of (x, y), variances > 0 for order 0; `order`: n = 0, 1 or 2.  Returns k_n (...).

    >>> arccosine_kernel(np.eye(2), 0).item()  # independent signs: both positive one time in four
    0.25
    """
    c = _covariances("covariance", covariance, 2)  # (..., 2, 2)
    order = checks.integer("order", order, at_least=0)
    checks.fail_if(order > 2, "order", "be 0, 1 or 2", order)
    if order == 0 and np.any(np.minimum(c[..., 0, 0], c[..., 1, 1]) <= 0):
        checks.fail("covariance", "have variances > 0 for order 0", covariance)
    return gaussian_formulas.arccosine(c, order)  # (...)

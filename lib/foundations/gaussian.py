"""Averages over jointly Gaussian variables in closed form: erf integrals and arc-cosine kernels.

z ~ N(0, C), g(z) = erf(z/√2), g'(z) = √(2/π) exp(-z²/2), Θ the step function.
"""

from math import factorial

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

__all__ = ["arccosine_kernel", "erf_i2", "erf_i3", "erf_i4"]

LARGEST = 1e75  # largest covariance entry or averaged value: products of up to four stay floats
# Near opposite arguments, φ = π - θ -> 0, the terms of a kernel cancel:  sin φ - φ cos φ  and, with x = 2φ,
# x + (x cos x - 3 sin x)/2.  Powers of φ² in these over φ; nine reach rounding at SMALL.
SMALL = 0.3
SERIES = {
    1: [-((-1) ** k) * 2 * k / factorial(2 * k + 1) for k in range(10)],
    2: [0.0] + [(-4) ** k * 2 * (k - 1) / factorial(2 * k + 1) for k in range(1, 10)],
}


def _covariances(value, size, check=True):
    """Covariance matrices (..., size, size), each checked on its own scale."""
    if not checks.boolean("check", check):
        return value
    result = checks.entries("covariance", value, at_least=-LARGEST, at_most=LARGEST)
    if result.ndim < 2 or result.shape[-2:] != (size, size):
        checks.fail("covariance", f"have shape (..., {size}, {size})", f"shape {result.shape}")
    return checks.symmetric("covariance", result, definite="semi", stacked=True)


def _pair(c):
    """C11, C12, C22 and the determinant (...) each; a negative one is rounding about perfect correlation."""
    c11, c12, c22 = c[..., 0, 0], c[..., 0, 1], c[..., 1, 1]
    return c11, c12, c22, np.maximum(c11 * c22 - c12**2, 0)


def _tilt(c):
    """Covariance of z2, z3, ... under the weight exp(-z1²/2):  C_ab - C_1a C_1b / (1 + C11), without cancellation.

    The minors C11 C_ab - C_1a C_1b vanish exactly for equal arguments.
    """
    rest, cross = c[..., 1:, 1:], c[..., 0, 1:]  # (..., n-1, n-1), (..., n-1)
    c11 = c[..., 0, 0, None, None]  # (..., 1, 1)
    minors = c11 * rest - cross[..., :, None] * cross[..., None, :]  # (..., n-1, n-1)
    spot = np.arange(rest.shape[-1])
    minors[..., spot, spot] = np.maximum(minors[..., spot, spot], 0)  # a determinant: negative is rounding
    return (rest + minors) / (1 + c11)  # (..., n-1, n-1)


def erf_i2(covariance: ArrayLike, *, check: bool = True) -> float | Array["..."]:
    """Average  ⟨g(z1) g(z2)⟩ = (2/π) arcsin(C12/√((1 + C11)(1 + C22)))  (worschech2024 eq. (89)).

    By an arctangent, which cannot leave its domain near perfect correlation.

    Parameters
    ----------
    covariance : array_like (..., 2, 2)
        C, positive semidefinite up to rounding of 1e-10 in its correlations, with entries up to 1e75.
    check : bool
        False spares the checks of an array that is a covariance by construction.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> round(erf_i2([[1.0, 1.0], [1.0, 1.0]]), 6)  # equal arguments, variance 1: (2/π) arcsin(1/2)
    0.333333
    """
    c11, c12, c22, determinant = _pair(_covariances(covariance, 2, check))
    return checks.plain(2 / np.pi * np.arctan2(c12, np.sqrt(1 + c11 + c22 + determinant)))


def erf_i3(covariance: ArrayLike) -> float | Array["..."]:
    """Average  ⟨g'(z1) z2 g(z3)⟩  (worschech2024 eq. (90)).

    It is  (2/π) [C23 (1 + C11) - C12 C13] / [(1 + C11) √((1 + C11)(1 + C33) - C13²)].

    Parameters
    ----------
    covariance : array_like (..., 3, 3)
        C of (z1, z2, z3), positive semidefinite up to rounding of 1e-10 in its correlations, with entries up to 1e75.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> round(erf_i3([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]), 6)  # (2/π) / √2
    0.450158
    """
    c = _covariances(covariance, 3)  # (..., 3, 3)
    tilted = _tilt(c)  # (..., 2, 2), of z2 and z3
    scale = np.sqrt((1 + c[..., 0, 0]) * (1 + tilted[..., 1, 1]))  # (...)
    return checks.plain(2 / np.pi * tilted[..., 0, 1] / scale)


def erf_i4(covariance: ArrayLike) -> float | Array["..."]:
    """Average  ⟨g'(z1) g'(z2) g(z3) g(z4)⟩ = (2/π) Λ4^(-1/2) I2(D)  (worschech2024 eq. (91), with the book's signs).

    Λ4 = (1 + C11)(1 + C22) - C12², D the covariance of (z3, z4) under the weight exp(-z1²/2 - z2²/2).

    Parameters
    ----------
    covariance : array_like (..., 4, 4)
        C of (z1, ..., z4), positive semidefinite up to rounding of 1e-10 in its correlations, with entries up to 1e75.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> independent = np.diag([1.0, 1.0, 0.0, 0.0])
    >>> independent[2:, 2:] = 1.0  # ⟨g'⟩² ⟨g²⟩ = (1/π) (1/3)
    >>> round(np.pi * erf_i4(independent), 6)
    0.333333
    """
    c = _covariances(covariance, 4)  # (..., 4, 4)
    once = _tilt(c)  # (..., 3, 3), of z2, z3 and z4
    scale = np.sqrt((1 + c[..., 0, 0]) * (1 + once[..., 0, 0]))  # (...), √Λ4
    return checks.plain(2 / np.pi * erf_i2(_tilt(once), check=False) / scale)


def arccosine_kernel(covariance: ArrayLike, order: int, *, check: bool = True) -> float | Array["..."]:
    """Average  ⟨Θ(x) xⁿ Θ(y) yⁿ⟩  of two step (n = 0), ReLU (1) or squared ReLU (2) units, half of Cho & Saul (2009).

    k0 = (π - θ)/2π,  k1 = √(C11 C22) [sin θ + (π - θ) cos θ]/2π,  k2 = C11 C22 [3 sin θ cos θ + (π - θ)(1 + 2 cos²
    θ)]/2π,  cos θ = C12/√(C11 C22).  Near perfect correlation rounding moves k0 by about 1e-8.

    Parameters
    ----------
    covariance : array_like (..., 2, 2)
        C of (x, y), positive semidefinite up to rounding of 1e-10 in its correlations, with entries up to 1e75; for
        order 0 with variances > 0.
    order : int
        n = 0, 1 or 2.
    check : bool
        False spares the checks of an array that is a covariance by construction.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> arccosine_kernel(np.eye(2), 0)  # independent signs: both positive one time in four
    0.25
    """
    c11, c12, c22, determinant = _pair(_covariances(covariance, 2, check))
    order = checks.integer("order", order, at_least=0)
    checks.fail_if(order > 2, "order", "be 0, 1 or 2", order)
    if check and order == 0 and np.any(np.minimum(c11, c22) <= 0):
        checks.fail("covariance", "have variances > 0 for order 0", covariance)
    sine = np.sqrt(determinant)  # (...), √(C11 C22) sin θ
    angle = np.arctan2(sine, -c12)  # (...), φ = π - θ
    if order == 0:
        return checks.plain(angle / (2 * np.pi))
    if order == 1:
        full, scale = sine + angle * c12, np.sqrt(c11 * c22)  # (...), (...)
    else:
        full, scale = 3 * sine * c12 + angle * (c11 * c22 + 2 * c12**2), c11 * c22  # (...), (...)
    few = scale * angle * np.polynomial.polynomial.polyval(angle**2, SERIES[order])  # (...)
    return checks.plain(np.where(angle < SMALL, few, full) / (2 * np.pi))

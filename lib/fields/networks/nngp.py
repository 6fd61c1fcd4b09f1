"""Infinitely wide two-layer networks as Gaussian processes: kernels of erf and ReLU units, spectrum on the sphere.

A network  z(x) = Σ_c a_c φ(w_c·x)  with weights w_c ~ N(0, Σ) and readouts a_c ~ N(0, s_a²/N) has the covariance K(x,
x') = s_a² ⟨φ(w·x) φ(w·x')⟩ = s_a² k(s_11, s_12, s_22),  s_11 = xᵀΣx, s_12 = xᵀΣx', s_22 = x'ᵀΣx',  at every width N; at
N → ∞ it is a Gaussian process.  φ is max(u, 0) or erf(u), without a √2.  Source: ringel2025talk, on random networks.
"""

from math import comb

import numpy as np
from scipy.special import factorial

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.fields._data import points, positive, whole
from lib.fields.networks._units import KERNELS as ACTIVATIONS
from lib.fields.networks._units import average, covariances, variances

__all__ = ["dot_product_coefficients", "kernel", "sphere_spectrum", "variance"]

BLOCK = 2**18  # pairs of inputs whose 2 x 2 covariances are in memory at a time


def _weighted(x, weight_variance, c):
    """The inputs times Σ, (n, d), so that s = weighted @ other.T."""
    (scale,) = positive(weight_variance=weight_variance)
    if c is not None:
        c = checks.symmetric("weight_covariance", c, size=x.shape[1], definite="semi")  # (d, d)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows here is refused as a variance
        return scale * (x / x.shape[1] if c is None else x @ c)  # (n, d)


def _scaled(readout, averages):
    with np.errstate(over="ignore"):
        return checks.finite("readout_variance", readout * averages)  # (...)


def kernel(
    activation: str, inputs: ArrayLike, other: ArrayLike | None = None, *,
    weight_variance: float = 1.0, weight_covariance: ArrayLike | None = None, readout_variance: float = 1.0,
) -> Array["n m"]:  # fmt: skip
    """Kernel K(x, x') of an infinitely wide network between all pairs of inputs.

    erf:  k = (2/π) arcsin[ 2s_12 / √((1 + 2s_11)(1 + 2s_22)) ];  ReLU:  k = √(s_11 s_22) [sin θ + (π - θ) cos θ] / 2π,
    cos θ = s_12 / √(s_11 s_22).  For uniform weights they hold at large d.

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    inputs, other : array_like (n, d), (m, d)
        x and x', one row an input; by default x' = x.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.
    weight_covariance : array_like (d, d), optional
        C in Σ = σ_w² C, positive semidefinite, by default I/d.

    Returns
    -------
    ndarray (n, m)

    Examples
    --------
    >>> kernel("erf", [[1.0, 0.0], [0.0, 1.0]], weight_covariance=np.eye(2) / 2).round(6).tolist()  # arcsin(1/2) 2/π, 0
    [[0.333333, 0.0], [0.0, 0.333333]]
    """
    checks.one_of("activation", activation, ACTIVATIONS)
    x = points("inputs", inputs)  # (n, d)
    y = x if other is None else points("other", other, x.shape[1])  # (m, d)
    (readout,) = positive(readout_variance=readout_variance)
    weighted = _weighted(x, weight_variance, weight_covariance)  # (n, d)
    s11 = variances("inputs", weighted, x)  # (n,)
    s22 = s11 if other is None else variances("other", _weighted(y, weight_variance, weight_covariance), y)  # (m,)
    result = np.empty((len(x), len(y)))  # (n, m)
    rows = max(1, BLOCK // len(y))
    for start in range(0, len(x), rows):
        block = slice(start, start + rows)
        first = start if other is None else 0  # without `other`, what is left of the block is known by symmetry
        s12 = weighted[block] @ y[first:].T  # (rows, m - first)
        if other is None:
            np.fill_diagonal(s12, s11[block])  # the same to the last digit, on which a large variance depends
        result[block, first:] = average(activation, covariances(s11[block, None], s12, s22[None, first:]))
        if other is None:
            result[block, block] = np.triu(result[block, block]) + np.triu(result[block, block], 1).T  # (rows, rows)
            result[start + rows :, block] = result[block, start + rows :].T
    return _scaled(readout, result)  # (n, m)


def variance(
    activation: str, inputs: ArrayLike, *,
    weight_variance: float = 1.0, weight_covariance: ArrayLike | None = None, readout_variance: float = 1.0,
) -> Array[" n"]:  # fmt: skip
    """Variance K(x, x) of the output:  s_a² (2/π) arcsin[2s/(1 + 2s)]  for erf,  s_a² s/2  for ReLU,  s = xᵀΣx.

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    inputs : array_like (n, d)
        x, one row an input.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.
    weight_covariance : array_like (d, d), optional
        C in Σ = σ_w² C, positive semidefinite, by default I/d.

    Returns
    -------
    ndarray (n,)
        The diagonal of `kernel` without the rest.

    Examples
    --------
    >>> variance("relu", [[3.0, 4.0]], weight_variance=2.0).tolist()  # s = 2 · 25 / 2
    [12.5]
    """
    checks.one_of("activation", activation, ACTIVATIONS)
    x = points("inputs", inputs)  # (n, d)
    (readout,) = positive(readout_variance=readout_variance)
    s = variances("inputs", _weighted(x, weight_variance, weight_covariance), x)  # (n,)
    return _scaled(readout, average(activation, covariances(s, s, s)))  # (n,)


def dot_product_coefficients(
    activation: str, order: int, *, weight_variance: float = 1.0, readout_variance: float = 1.0
) -> Array[" n"]:
    """Coefficients A_n of  K = Σ_n A_n ρⁿ,  ρ = x·x'/d,  between inputs with |x|² = |x'|² = d and isotropic weights.

    erf:   A_{2k+1} = s_a² (2/π) C(2k, k) z^{2k+1} / [4ᵏ (2k+1)],   z = 2σ_w² / (1 + 2σ_w²),   and all even ones vanish;
    ReLU:  A_0 = s_a² σ_w²/2π,  A_1 = s_a² σ_w²/4,  A_{2k+2} = s_a² σ_w² C(2k, k) / [2π 4ᵏ (2k+1)(2k+2)],   the other
    odd ones vanish.  They are not negative and add up to the variance K(x, x).

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    order : int
        Highest n >= 0.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.

    Returns
    -------
    ndarray (order + 1,)
        A_0 .. A_order.

    Examples
    --------
    >>> (np.pi * dot_product_coefficients("relu", 4)).round(6).tolist()
    [0.5, 0.785398, 0.25, 0.0, 0.020833]
    """
    checks.one_of("activation", activation, ACTIVATIONS)
    order = checks.integer("order", order, at_least=0)
    variance, readout = positive(weight_variance=weight_variance, readout_variance=readout_variance)
    k = np.arange(order // 2 + 1)  # (order // 2 + 1,)
    central = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / k[1:]]))  # (order // 2 + 1,)  C(2k, k) / 4ᵏ
    result = np.zeros(order + 1)  # (order + 1,)
    if activation == "erf":
        z = 1 / (1 + 0.5 / variance)
        k, central = k[: (order + 1) // 2], central[: (order + 1) // 2]  # ((order + 1) // 2,)  odd n up to the order
        result[1::2] = 2 / np.pi * central * z ** (2.0 * k + 1) / (2 * k + 1)
        return readout * result  # (order + 1,)
    result[0] = 1 / (2 * np.pi)
    result[1:2] = 0.25
    k, central = k[: order // 2], central[: order // 2]  # (order // 2,), the even n from 2 on
    result[2::2] = central / (2 * np.pi * (2 * k + 1) * (2 * k + 2))
    return _scaled(readout, variance * result)  # (order + 1,)


def sphere_spectrum(
    activation: str, dimension: int, degrees: ArrayLike, *, weight_variance: float = 1.0, readout_variance: float = 1.0
) -> Spectrum:
    """Eigenvalues and multiplicities of the kernel on the sphere |x|² = d in d dimensions, to leading order in 1/d.

    λ_ℓ ≃ ℓ! A_ℓ d^{-ℓ},  with A_ℓ of `dot_product_coefficients`, and  g_ℓ = C(ℓ+d-1, ℓ) - C(ℓ+d-3, ℓ-2),  exact.  The
    correction to λ_ℓ is the factor 1 + [(ℓ+1)(ℓ+2) A_{ℓ+2}/2A_ℓ - ℓ(ℓ-1)]/d + O(1/d²).  What the listed degrees leave
    of the variance,  K(x, x) - Σ_ℓ g_ℓ λ_ℓ,  sits in many tiny modes and acts as a ridge.  The source's sphere S^d is
    S^{d-1}.

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    dimension : int
        d >= 2.
    degrees : array_like (L,)
        Integers ℓ from 0 to 100, not all of eigenvalue zero.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.

    Returns
    -------
    Spectrum
        λ_ℓ and g_ℓ, in the order of the degrees.

    Examples
    --------
    >>> sphere = sphere_spectrum("erf", 50, [1, 3])
    >>> (np.pi * sphere.eigenvalues * 50 ** np.array([1, 3])).round(6).tolist()  # 4/3 and 16/27
    [1.333333, 0.592593]
    >>> sphere.multiplicities.tolist()
    [50.0, 22050.0]
    """
    checks.one_of("activation", activation, ACTIVATIONS)
    d = checks.integer("dimension", dimension, at_least=2)
    ell = whole("degrees", degrees, count=1, at_least=0, at_most=100, ndim=1)  # (L,)
    scales = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    coefficients = dot_product_coefficients(activation, int(ell.max()), **scales)  # (highest + 1,)
    counts = [comb(n + d - 1, n) - (comb(n + d - 3, n - 2) if n > 1 else 0) for n in ell.tolist()]  # L integers
    try:
        multiplicities = np.array(counts, dtype=np.float64)  # (L,)
    except OverflowError:
        checks.fail("dimension", "be small enough to count the modes in floating point", dimension)
    return Spectrum(coefficients[ell] * factorial(ell) * float(d) ** -ell, multiplicities)

"""Hermite expansions: what a nonlinearity does to the correlation of two Gaussian arguments, order by order.

He_n are the probabilists' polynomials, ⟨He_n(x) He_m(x)⟩ = n! δ_nm for a unit normal x; n <= 170, where n! is a float.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, roots_hermitenorm

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

__all__ = ["coefficients", "erf_coefficients", "mean_product"]

LARGEST = 1e75  # largest scaled coefficient: products of two stay floats
HIGHEST_ORDER = 170  # the largest n whose factorial is a float


def _root_factorials(order):
    """√n! for n = 0 .. order."""
    return np.exp(gammaln(np.arange(order + 1) + 1) / 2)  # (order + 1,)


def _order(value):
    value = checks.integer("order", value, at_least=0)
    checks.fail_if(value > HIGHEST_ORDER, "order", f"be an integer in 0 .. {HIGHEST_ORDER}, where n! is a float", value)
    return value


def _series(name, value):
    """Coefficients times √n!: the coefficients in the orthonormal basis He_n / √n!, where nothing overflows."""
    value = checks.array(name, value, ndim=1)  # (n,)
    if not 1 <= value.size <= HIGHEST_ORDER + 1:
        checks.fail(name, f"hold 1 to {HIGHEST_ORDER + 1} entries", f"{value.size} entries")
    with np.errstate(over="ignore"):  # refused in the next line
        scaled = value * _root_factorials(value.size - 1)  # (n,)
    checks.fail_if(np.abs(scaled).max() > LARGEST, name, f"have entries with |c_n| √n! <= {LARGEST:g}", value)
    return scaled


def coefficients(function: Callable, order: int, *, nodes: int) -> Array[" n"]:
    """Coefficients  c_n = ⟨f(x) He_n(x)⟩ / n!  of  f(x) = Σ c_n He_n(x)  for x ~ N(0, 1), by Gauss-Hermite quadrature.

    Exact for polynomials with degree(f) + order < 2 nodes; slow where f has a step or a kink.

    Parameters
    ----------
    function : callable
        f, maps an array (nodes,) to another.
    order : int
        The highest n, 0 .. 170.
    nodes : int
        Of the quadrature, > order, <= 1000.

    Returns
    -------
    ndarray (order + 1,)
        c_0, c_1, ...

    Examples
    --------
    >>> coefficients(lambda x: x**3, 3, nodes=8).round(12) + 0  # x³ = He_3 + 3 He_1
    array([0., 3., 0., 1.])
    """
    checks.fail_if(not callable(function), "function", "be callable", function)
    order = _order(order)
    nodes = checks.integer("nodes", nodes, at_least=order + 1)
    checks.fail_if(nodes > 1000, "nodes", "be at most 1000", nodes)
    x, weights = roots_hermitenorm(nodes)  # (nodes,), (nodes,)
    values = checks.array("function", function(x.copy()), shape=(nodes,)) * weights / weights.sum()  # (nodes,)
    lower, upper = np.zeros(nodes), np.ones(nodes)  # (nodes,), (nodes,): He_n / √n!, since He_n alone would overflow
    projections = np.empty(order + 1)  # (order + 1,)
    for n in range(order + 1):
        projections[n] = values @ upper
        lower, upper = upper, (x * upper - np.sqrt(n) * lower) / np.sqrt(n + 1)  # (nodes,), (nodes,)
    return projections / _root_factorials(order)


def erf_coefficients(variance: float, order: int) -> Array[" n"]:
    """Hermite coefficients of erf(z / √2) for an argument z = √s x of variance s, where x ~ N(0, 1).

    c_{2k+1} = √(2r/π) (-r/2)^k / [k! (2k + 1)],  r = s/(1 + s);  even ones vanish.

    Parameters
    ----------
    variance : float
        s >= 0.
    order : int
        The highest n, 0 .. 170.

    Returns
    -------
    ndarray (order + 1,)
        c_0, c_1, ...

    Examples
    --------
    >>> erf_coefficients(1.0, 3).round(4) + 0  # 1/√π, then -1/(12 √π)
    array([ 0.    ,  0.5642,  0.    , -0.047 ])
    """
    variance = checks.number("variance", variance, at_least=0)
    order = _order(order)
    ratio = variance / (1 + variance)
    k = np.arange((order + 1) // 2)  # (odd orders,)
    powers = np.cumprod(np.where(k == 0, 1.0, -ratio / 2 / np.maximum(k, 1)))  # (odd orders,), (-r/2)^k / k!
    found = np.zeros(order + 1)  # (order + 1,)
    found[1::2] = np.sqrt(2 * ratio / np.pi) * powers / (2 * k + 1)
    return found


def mean_product(coefficients_f: ArrayLike, coefficients_g: ArrayLike, correlation: ArrayLike) -> float | Array["..."]:
    """Average  ⟨f(x) g(y)⟩ = Σ n! c_n d_n ρⁿ  of two Hermite series, for unit normals x, y with correlation ρ (Mehler).

    Not centred: the covariance is this without its first term,  c_0 d_0 = ⟨f⟩⟨g⟩.

    Parameters
    ----------
    coefficients_f, coefficients_g : array_like (n,)
        c and d, of one length up to 171, with |c_n| √n! <= 1e75.
    correlation : float or array_like (...)
        ρ in [-1, 1].

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> round(mean_product([0.0, 1.0, 1.0], [0.0, 1.0, 1.0], 0.5), 12)  # ρ + 2ρ²
    1.0
    """
    c = _series("coefficients_f", coefficients_f)  # (n,)
    d = _series("coefficients_g", coefficients_g)  # (n,)
    if c.size != d.size:
        checks.fail("coefficients_g", f"have as many entries as coefficients_f, {c.size}", f"{d.size} entries")
    correlation = checks.entries("correlation", correlation, at_least=-1, at_most=1)  # (...)
    return checks.plain(np.polynomial.polynomial.polyval(correlation, c * d))

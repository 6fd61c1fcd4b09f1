"""What the modules of overlaps compute with, unchecked, and the checks of their arguments.

The squared length q = |w_⊥|² of the weights across the teacher's direction is "free" in networks, of its prior,
(σ_w²/d) χ² of d - 1 degrees, or "fixed", the source's: q = σ_w².
"""

from math import factorial

import numpy as np

from lib.common import checks
from lib.fields import _data

BASES = {"erf": ((1, 3), (1, 3, 5)), "relu": ((0, 1, 2, 4),)}  # that a target may have: its length says which
HIGHEST_DEGREE = 20
LARGEST = 1e50  # largest variance, inverse variance or target: products of several stay floats
_STEPS = np.linspace(-1, 1, 121)  # (K,)  of the rule for averages over a Gaussian overlap
_REACH = 9.0  # its end, in standard deviations
CHOICES = ("free", "fixed")
_NODES = 4  # nodes per standard deviation of log q in the prior, at least


def basis(activation, degrees):
    """Checked activation and degrees (n,); those of the activation's teacher if none are given."""
    own = BASES[checks.one_of("activation", activation, BASES)]
    given = own[0] if degrees is None else degrees
    listed = _data.whole("degrees", given, count=1, at_least=0, at_most=HIGHEST_DEGREE, ndim=1)  # (n,)
    if np.unique(listed).size < listed.size:
        checks.fail("degrees", "hold different numbers", degrees)
    return activation, listed


def target(value, size=None):
    """Checked Y_n (n,), not all zero, and none so small that a learnability overflows."""
    y = checks.entries("target", value, at_least=-LARGEST, at_most=LARGEST, shape=(size,))  # (n,)
    if not y.any() or np.any((y != 0) & (np.abs(y) < 1 / LARGEST)):
        checks.fail("target", f"have components that are zero or {1 / LARGEST:g} and more in size, not all zero", value)
    return y


def variance(name, value):
    """Checked variance, of a size whose square is still a number."""
    return checks.number(name, value, at_least=1 / LARGEST, at_most=LARGEST)


def coefficient(activation, n):
    """The number in front of ĥ_n: ĥ_n = c_n (m/√(½ + |w|²))^n for erf,  c_n |w| (m/|w|)^n for ReLU."""
    half, odd = divmod(n, 2)
    if activation == "erf":
        return np.sqrt(2 / np.pi * factorial(n)) * (-0.5) ** half / (factorial(half) * n) if odd else 0.0
    if n < 2:
        return 0.5 if odd else 1 / np.sqrt(2 * np.pi)
    if odd:
        return 0.0
    return (-0.5) ** (half - 1) * factorial(n - 2) / (factorial(half - 1) * np.sqrt(2 * np.pi * factorial(n)))


def components(activation, degrees, overlap, length):
    """ĥ_n (..., n) of units of overlap m (...) and length |w|, of a shape that broadcasts with it."""
    length = np.asarray(length)[..., None]  # (..., 1)
    ratio = overlap[..., None] / (np.hypot(np.sqrt(0.5), length) if activation == "erf" else length)  # (..., 1)
    powers = np.ones((*ratio.shape[:-1], degrees.max() + 1))  # (..., 1+highest)  multiplied up: faster than to raise
    for n in range(degrees.max()):
        powers[..., n + 1] = powers[..., n] * ratio[..., 0]
    size = 1.0 if activation == "erf" else length
    return size * np.array([coefficient(activation, n) for n in degrees.tolist()]) * powers[..., degrees]  # (..., n)


def gaussian_overlap(activation, variance, weight_variance):
    """Nodes m and weights, both (..., K), of the average over m ~ N(0, variance), the nodes on an axis of their own.

    The trapezoidal rule in t, m = c sinh t:  ĥ depends on tanh t then, and is resolved to rounding up to variances of
    10⁶ c².  A Gauss-Hermite rule of as many nodes is as exact far below c², and off by 10⁻³ at ten times that.
    """
    scale = np.sqrt(weight_variance + (0.5 if activation == "erf" else 0.0))  # () or (...)
    end = np.maximum(np.arcsinh(_REACH * np.sqrt(variance) / scale), 1e-100)[..., None]  # (..., 1)
    x = _REACH * np.sinh(end * _STEPS) / np.sinh(end)  # (..., K)  m in standard deviations
    weights = np.exp(-(x**2) / 2) * np.cosh(end * _STEPS)  # (..., K)
    return np.sqrt(variance)[..., None] * x, weights / weights.sum(axis=-1, keepdims=True)


def residuals(moments, strength, target):
    """(1 + strength M)⁻¹Y in the eigenbasis of M = moments, whose eigenvalues are not below zero: never singular."""
    values, modes = np.linalg.eigh(moments)  # (..., n), (..., n, n)
    left = 1 / (1 + strength[..., None] * np.maximum(values, 0))  # (..., n)
    return np.einsum("...ij,...j,...kj,k->...i", modes, left, modes, target)  # (..., n)


def learnabilities(residuals, target):
    """R_n = 1 - r_n/Y_n, nan where Y_n = 0."""
    return 1 - np.divide(residuals, target, out=np.full(residuals.shape, np.nan), where=target != 0)  # (..., n)


def dimension(value, perpendicular, choices=CHOICES):
    """Checked d: of one direction alone there is nothing across that could be free."""
    free, d = checks.one_of("perpendicular", perpendicular, choices) == "free", checks.integer("dimension", value)
    checks.fail_if(free and d == 1, "dimension", 'be 2 or more if perpendicular is "free"', d)
    return d


def lengths(d, variance, free, slope=0.0):
    """Nodes q and logarithms of their weights, both (K,), by the trapezoidal rule in log q, for averages of e^{d p(q)}.

    p >= 0 falls from q = 0 at a rate of `slope`/4 at most: what is cut off is below e^{-50} of the average.
    """
    if not free:
        return np.array([variance]), np.zeros(1)
    freedom = d - 1
    top = np.log(variance * freedom / d)
    low = np.log(freedom / d / (2 / variance + slope)) - 200 / freedom
    step = min(0.25, np.sqrt(2 / freedom) / _NODES)
    t = np.arange(low - top, np.sqrt(200 / freedom) + step, step)  # (K,)
    log = 0.5 * freedom * (t - np.expm1(t))  # (K,)
    return np.exp(top + t), log - np.log(np.exp(log).sum())

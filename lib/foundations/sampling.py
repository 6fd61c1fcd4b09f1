"""Averages by sampling, with their standard error, and by exact summation over signs; they check closed forms."""

from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.linalg import psd_root
from lib.common.shapes import ArrayLike, Rng

__all__ = ["monte_carlo_average", "sign_sum_average"]

LARGEST = 1e75  # largest averaged value: its square stays a float
CHUNK = 2**16  # Monte Carlo points held in memory at a time


def monte_carlo_average(function: Callable, covariance: ArrayLike, samples: int, rng: Rng) -> Estimate:
    """Average of F(z) over z ~ N(0, C), with its standard error, in chunks of bounded memory.

    Parameters
    ----------
    function : callable
        F, maps points (m, n) to values (m,) or (m, ...) up to 1e75.
    covariance : array_like (n, n)
        C, positive semidefinite.
    samples : int
        How many points, >= 2.
    rng : int, SeedSequence or Generator

    Returns
    -------
    Estimate
        Floats, or arrays (...).

    Examples
    --------
    >>> estimate = monte_carlo_average(lambda z: z[:, 0] * z[:, 1], [[1.0, 0.5], [0.5, 1.0]], 10_000, rng=1)
    >>> bool(abs(estimate.sigmas(0.5)) < 4 and estimate.error < 0.0125)
    True
    """
    checks.fail_if(not callable(function), "function", "be callable", function)
    covariance = checks.symmetric("covariance", covariance, definite="semi")  # (n, n)
    samples = checks.integer("samples", samples, at_least=2)
    rng = checks.generator("rng", rng)
    root = psd_root(covariance)  # (n, n)
    count, mean, squares = 0, 0.0, 0.0
    while count < samples:
        size = min(CHUNK, samples - count)
        points = rng.standard_normal((size, len(root))) @ root.T  # (size, n)
        values = checks.entries("function", function(points), at_least=-LARGEST, at_most=LARGEST)  # (size, ...)
        if values.ndim == 0 or len(values) != size or (count > 0 and values.shape[1:] != np.shape(mean)):
            checks.fail("function", f"return {size} values or equal rows for {size} points", f"shape {values.shape}")
        chunk_mean = values.mean(axis=0)  # (...)
        step = chunk_mean - mean  # (...)
        between = step**2 * (count * size / (count + size))  # (...)
        squares = squares + ((values - chunk_mean) ** 2).sum(axis=0) + between  # (...)
        count += size
        mean = mean + step * (size / count)  # (...)
    return Estimate(checks.plain(mean), checks.plain(np.sqrt(squares / (samples - 1) / samples)))


def sign_sum_average(function: Callable, agreeing: int, opposing: int) -> float:
    """Exact ⟨F(x, y)⟩ for two sums of d independent signs ξ_i = ±1 that agree in some weights and differ in others.

    x = (Σ_agreeing ξ + Σ_opposing ξ)/√d,  y = (Σ_agreeing ξ - Σ_opposing ξ)/√d.

    Parameters
    ----------
    function : callable
        F, maps two arrays (agreeing + 1, opposing + 1) to one.
    agreeing, opposing : int
        How many weights, >= 1 each.

    Returns
    -------
    float

    Examples
    --------
    >>> round(sign_sum_average(lambda x, y: x * y, 3, 1), 12)  # the correlation (3 - 1) / 4
    0.5
    """
    checks.fail_if(not callable(function), "function", "be callable", function)
    agreeing = checks.integer("agreeing", agreeing)
    opposing = checks.integer("opposing", opposing)
    up, down = np.ogrid[: agreeing + 1, : opposing + 1]  # (a + 1, 1), (1, o + 1): how many signs are +1
    weights = binom.pmf(up, agreeing, 0.5) * binom.pmf(down, opposing, 0.5)  # (a + 1, o + 1)
    same, other = 2.0 * up - agreeing, 2.0 * down - opposing  # (a + 1, 1), (1, o + 1)
    scale = 1 / np.sqrt(agreeing + opposing)
    values = function(scale * (same + other), scale * (same - other))  # (a + 1, o + 1)
    values = checks.array("function", values, shape=weights.shape)
    return float((weights * values).sum())

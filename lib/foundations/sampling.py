"""Averages by sampling, with their standard error, and by exact summation over signs; they check closed forms."""

import numpy as np
from scipy.stats import binom

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.linalg import psd_root

LARGEST = 1e75  # largest averaged value: its square stays a float
CHUNK = 2**16  # Monte Carlo points held in memory at a time


def monte_carlo_average(function, covariance, samples, rng):
    """Average of F(z) over z ~ N(0, C), with its standard error, in chunks of bounded memory.

    `function`: F, maps points (m, n) to (m,) or (m, ...); `covariance` (n, n): C; `samples`: how many, >= 2; `rng`:
    int, SeedSequence or Generator.  Returns an Estimate of shape () or (...).

    >>> estimate = monte_carlo_average(lambda z: z[:, 0] * z[:, 1], [[1.0, 0.5], [0.5, 1.0]], 10_000, rng=1)
    >>> bool(abs(estimate.mean - 0.5) < 4 * estimate.error < 0.05)
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


def sign_sum_average(function, agreeing, opposing):
    """Exact ⟨F(x, y)⟩ for two sums of d independent signs ξ_i = ±1 that agree in some weights and differ in others.

    x = (Σ_agreeing ξ + Σ_opposing ξ)/√d, y = (Σ_agreeing ξ - Σ_opposing ξ)/√d.  `function`: F, maps two arrays
    (agreeing + 1, opposing + 1) to one; `agreeing`, `opposing`: how many weights, >= 1 each.  Returns the average.

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

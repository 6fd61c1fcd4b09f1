"""A lognormal density seen as a power law: how wide it seems, and how many samples tell the difference.

If ln s is Gaussian with mean m and variance σ² (`log_mean`, `log_variance` > 0), the exponent of the density per unit
of s is k(s) = 1 + (ln s - m)/σ²:  one at the median, and the flatter the wider the law.  A loss e^{cy} with Gaussian
input has σ = |cw| times the deviation of the input.  The count of decades on which |k - 1| < δ, the `tolerance` > 0,
grows as σ², and so does the chance to see that it is no power law.  σ² and δ may be arrays (...) that broadcast.
Source: kukleva2024 has the exponent one, eqs. (8.13) and (8.19), without the lognormal.
"""

import numpy as np
from scipy.special import erf

from lib.common import checks


def local_exponent(amplitudes, log_mean, log_variance):
    """Exponent  k(s) = 1 + (ln s - m)/σ²  of a lognormal density, per unit of s.

    `amplitudes` (...): s > 0; `log_mean`, `log_variance`: m, σ², here one number each.  Returns k (...).

    >>> local_exponent(np.exp([-8.0, 0.0, 16.0]), 0.0, 16.0).round(12).tolist()
    [0.5, 1.0, 2.0]
    """
    s = checks.entries("amplitudes", amplitudes, above=0)  # (...)
    mean, variance = checks.number("log_mean", log_mean), checks.number("log_variance", log_variance, above=0)
    return 1 + (np.log(s) - mean) / variance  # (...)


def _wide(log_variance, tolerance):
    """σ² and δ as arrays of the same shape."""
    variance = checks.entries("log_variance", log_variance, above=0)  # (...)
    tolerance = checks.entries("tolerance", tolerance, above=0)  # (...)
    return checks.broadcast(log_variance=variance, tolerance=tolerance)  # (...), (...)


def decades(log_variance, tolerance):
    """Decades of s on which |k - 1| < δ:  D = 2δσ²/ln 10.

    `log_variance`, `tolerance`: σ², δ.  Returns D (...).

    >>> decades([64.0, 16.0], 0.1).round(2).tolist()  # sigmoid with squared loss, with cross-entropy; deviation 1/4
    [5.56, 1.39]
    """
    variance, tolerance = _wide(log_variance, tolerance)
    return (2 * tolerance * variance / np.log(10))[()]


def share(log_variance, tolerance):
    """Probability of the range on which |k - 1| < δ:  erf(δσ/√2).

    `log_variance`, `tolerance`: σ², δ.  Returns a probability (...).

    >>> share([64.0, 16.0], 0.1).round(2).tolist()
    [0.58, 0.31]
    """
    variance, tolerance = _wide(log_variance, tolerance)
    return erf(tolerance * np.sqrt(variance / 2))[()]


def detectability(count, log_variance, tolerance):
    """Likelihood ratio that n samples in the range |k - 1| < δ give on average against the power law:  nδ⁴σ⁴/45.

    Twice n times the relative entropy of the cut lognormal to the best power law, which has k = 1, in leading order: 1
    per cent too large at δσ = 0.4, 4 per cent at 0.8.  The ratio of `power_laws.curvature_test` is larger by one, its
    mean under the power law.  At fixed δ it grows as the square of the number of decades.  `count`: n >= 1, samples in
    the range; `log_variance`, `tolerance`: σ², δ.  Returns the ratio (...).

    >>> detectability(10_000, [64.0, 16.0], 0.1).round(1).tolist()
    [91.0, 5.7]
    """
    count = checks.integer("count", count)
    variance, tolerance = _wide(log_variance, tolerance)
    return (count * (tolerance**2 * variance) ** 2 / 45)[()]

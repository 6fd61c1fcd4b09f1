"""A lognormal density seen as a power law: how wide it seems, and how many samples tell the difference.

ln s is Gaussian with mean m, variance σ² (`log_mean`, `log_variance`); for a loss e^{cy} σ is |cw| times that of the
input.  σ² and the `tolerance` δ of the exponent may be arrays (...).  kukleva2024 has only k = 1, eqs. (8.13), (8.19).
"""

import numpy as np
from scipy.special import erf

from lib.common import checks


def local_exponent(amplitudes, log_mean, log_variance):
    """Exponent at `amplitudes` (...) with numbers `log_mean`, `log_variance`:  k = 1 + (ln s - m)/σ².  Returns k (...).

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
    """Decades of s on which |k - 1| < δ:  D = 2δσ²/ln 10,  with `log_variance`, `tolerance` σ², δ.  Returns D (...).

    >>> decades([64.0, 16.0], 0.1).round(2).tolist()  # sigmoid with squared loss, with cross-entropy; deviation 1/4
    [5.56, 1.39]
    """
    variance, tolerance = _wide(log_variance, tolerance)
    return (2 * tolerance * variance / np.log(10))[()]


def share(log_variance, tolerance):
    """Probability of the range on which |k - 1| < δ:  erf(δσ/√2),  `log_variance`, `tolerance`: σ², δ.  Returns (...).

    >>> share([64.0, 16.0], 0.1).round(2).tolist()
    [0.58, 0.31]
    """
    variance, tolerance = _wide(log_variance, tolerance)
    return erf(tolerance * np.sqrt(variance / 2))[()]


def detectability(count, log_variance, tolerance):
    """Likelihood ratio that n samples in the range |k - 1| < δ give on average against the power law:  nδ⁴σ⁴/45.

    To leading order, 4 per cent too large at δσ = 0.8; `power_laws.curvature_test` measures it, plus one.  `count`: n
    >= 1; `log_variance`, `tolerance`: σ², δ.  Returns (...).

    >>> detectability(10_000, [64.0, 16.0], 0.1).round(1).tolist()
    [91.0, 5.7]
    """
    count = checks.integer("count", count)
    variance, tolerance = _wide(log_variance, tolerance)
    return (count * (tolerance**2 * variance) ** 2 / 45)[()]

"""The squared length q = |w_⊥|² of the weights across the teacher's direction: of its prior, or held fixed.

"free", in networks: q is of its prior, (σ_w²/d) χ² of d - 1 degrees.  "fixed", the source's: q = σ_w².
"""

import numpy as np

from lib.common import checks

CHOICES = ("free", "fixed")
STEPS = 4  # nodes per standard deviation of log q in the prior, at least


def choice(value, choices=CHOICES):
    """Checked `value`."""
    return checks.one_of("perpendicular", value, choices)


def dimension(value, free):
    """Checked d: of one direction alone there is nothing across that could be free."""
    d = checks.integer("dimension", value)
    if free and d == 1:
        checks.fail("dimension", 'be 2 or more if the perpendicular weights are free: take perpendicular="fixed"', d)
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
    step = min(0.25, np.sqrt(2 / freedom) / STEPS)
    t = np.arange(low - top, np.sqrt(200 / freedom) + step, step)  # (K,)
    log = 0.5 * freedom * (t - np.expm1(t))  # (K,)
    return np.exp(top + t), log - np.log(np.exp(log).sum())

"""Steps averaged over a batch, by their largest.  In kukleva2024, section 8, M = 1; the laws are ours.

Of M positive steps  max/M <= mean <= max,  so that  F(s)^M <= P(mean <= s) <= F(Ms)^M  for steps with the distribution
function F.  Where steps spread over many scales the largest makes the mean, and the upper bound is the law.
"""

from collections.abc import Callable

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


def largest_quantile(quantile: Callable, share: float | ArrayLike, batch: int) -> float | Array["..."]:
    """Quantiles of the mean of M positive steps by its largest:  Q(p^{1/M})/M,  never more than the true ones.

    Parameters
    ----------
    quantile : callable
        Q, the inverse of the distribution function of one step, of arrays.
    share : float or array_like (...)
        p, 0 to 1.
    batch : int
        M >= 1.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> largest_quantile(lambda p: p**3, [0.05, 0.95], 2).round(5).tolist()
    [0.00559, 0.46297]
    """
    p, batch = checks.entries("share", share, at_least=0, at_most=1), checks.integer("batch", batch)  # (...)
    return checks.plain(np.asarray(quantile(p ** (1 / batch))) / batch)


def crowd(steps: ArrayLike) -> float:
    """The batch in which the sum takes over from its largest step:  M* = ⟨s²⟩/⟨s⟩²,  where its relative spread is one.

    Parameters
    ----------
    steps : array_like (N,)
        s >= 0, not all zero.

    Returns
    -------
    float
        1 for equal steps; e^{σ²} for lognormal ones.

    Examples
    --------
    >>> crowd([0.0, 0.0, 0.0, 2.0])
    4.0
    """
    s = checks.entries("steps", steps, at_least=0, ndim=1)  # (N,)
    checks.fail_if(not s.any(), "steps", "hold one number above zero or more", steps)
    s = s / s.max()  # (N,)  so that no square underflows
    return float((s**2).mean() / s.mean() ** 2)

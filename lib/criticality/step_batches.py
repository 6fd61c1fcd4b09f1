"""Steps averaged over a batch: exactly, and by their largest.  In kukleva2024, section 8, M = 1; the laws are ours.

Of M positive steps  max/M <= mean <= max,  so that  F(s)^M <= P(mean <= s) <= F(Ms)^M  for steps with the distribution
function F.  Where steps spread over many scales the largest makes the mean, and the upper bound is the law.
"""

from collections.abc import Callable

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


def mean_law(values: ArrayLike, masses: ArrayLike, batch: int) -> tuple[Array[" m"], Array[" m"]]:
    """Law of the mean of M independent steps, from that of one step on an evenly spaced grid; atoms are welcome.

    Exact up to an absolute 1e-15 M.

    Parameters
    ----------
    values, masses : array_like (n,)
        Steps, evenly spaced, increasing, n >= 2, and their probabilities, of sum 1.
    batch : int
        M >= 1.

    Returns
    -------
    tuple of two ndarrays (M(n-1) + 1,)
        Values of the mean and their probabilities.

    Examples
    --------
    >>> [part.round(12).tolist() for part in mean_law([-1.0, 1.0], [0.5, 0.5], 2)]
    [[-1.0, 0.0, 1.0], [0.25, 0.5, 0.25]]
    """
    v = checks.array("values", values, ndim=1)  # (n,)
    if v.size < 2 or v[-1] <= v[0] or np.abs(np.diff(v) * (v.size - 1) / (v[-1] - v[0]) - 1).max() > 1e-6:
        checks.fail("values", "be two or more evenly spaced, increasing numbers", values)
    masses = checks.entries("masses", masses, at_least=0, shape=v.shape)  # (n,)
    checks.fail_if(abs(masses.sum() - 1) > 1e-9, "masses", "have sum 1", float(masses.sum()))
    batch = checks.integer("batch", batch)
    size = batch * (v.size - 1) + 1
    padded = next_fast_len(size, real=True)
    summed = irfft(rfft(masses, padded) ** batch, padded)[:size]  # (M(n-1) + 1,)
    return np.linspace(v[0], v[-1], size), np.maximum(summed, 0)  # (M(n-1) + 1,) each; below zero is rounding


def largest_cumulative(cumulative: Callable, s: float | ArrayLike, batch: int) -> float | Array["..."]:
    """Law of the mean of M positive steps by its largest:  P(mean <= s) ≃ F(Ms)^M,  never less than the true one.

    Parameters
    ----------
    cumulative : callable
        F, the distribution function of one step, of arrays.
    s : float or array_like (...)
        Means, >= 0.
    batch : int
        M >= 1.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> largest_cumulative(lambda s: s**0.5, [0.01, 0.04], 2).round(12).tolist()  # a zero of order r: (Ms)^{M/r}
    [0.02, 0.08]
    """
    s, batch = checks.entries("s", s, at_least=0), checks.integer("batch", batch)  # (...)
    return checks.plain(np.asarray(cumulative(batch * s)) ** batch)


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

"""Whether a measured learning curve waits on a plateau, of which :class:`lib.foundations.stability.Plateau` speaks."""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import ArrayLike


@dataclass(frozen=True)
class Rest:
    """A stretch of a learning curve that is flat.

    Parameters
    ----------
    start, end : float
        Its times.
    error : float
        The level, the geometric mean over it.
    """

    start: float
    end: float
    error: float


def rest(times: ArrayLike, errors: ArrayLike, *, tolerance: float = 0.1, ratio: float = 2.0) -> Rest:
    """Where a measured learning curve waits on a plateau; a curve that has none is refused.

    It waits where the error has fallen to a level, stays at it within `tolerance` while the time grows by a factor of
    `ratio`, and falls to half of it later.  Only of such a run does :class:`lib.foundations.stability.Plateau` speak; a
    run that leaves before it has come to rest is followed by :meth:`ResolvedOverlaps.solve` from its start.

    Parameters
    ----------
    times, errors : array_like (n,)
        Increasing, >= 0, and >= 0; a record in every tenth of a decade or more.
    tolerance : float
        > 0.
    ratio : float
        > 1.

    Returns
    -------
    Rest

    Examples
    --------
    >>> t = np.geomspace(0.01, 100, 200)
    >>> waits = rest(t, np.exp(-5 * t) + 0.1 * np.exp(-t / 50), tolerance=0.1, ratio=2.0)
    >>> round(waits.error, 1), waits.start < 1.5, waits.end > 3
    (0.1, True, True)
    >>> rest(t, 1 / (1 + t))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: errors must wait on a plateau, within 10% while the time grows 2-fold, before they fall further: ...
    """
    times = checks.times("times", times)  # (n,)
    errors = checks.array("errors", errors, shape=times.shape)  # (n,)
    floor = 1e-12 * np.abs(errors).max()  # of rounding
    checks.fail_if(floor == 0, "errors", "differ from zero", errors)
    errors = np.maximum(checks.entries("errors", errors, at_least=-floor), floor)  # (n,)
    tolerance, ratio = checks.number("tolerance", tolerance, above=0), checks.number("ratio", ratio, above=1)
    t, e = np.log(times[times > 0]), np.log(errors[times > 0])  # (n,), (n,)
    checks.fail_if(t.size < 10, "times", "hold ten records or more after the start", times)
    grid = np.linspace(t[0], t[-1], 500)  # (500,)
    e = np.interp(grid, t, e)  # (500,)
    before, after = np.maximum.accumulate(e), np.minimum.accumulate(e[::-1])[::-1]  # (500,), (500,)
    allowed, best = np.log1p(tolerance), (0, 0)
    for first in range(len(grid) - 1):
        top, low = np.maximum.accumulate(e[first:]), np.minimum.accumulate(e[first:])  # (500 - first,) each
        last = first + int(np.count_nonzero(top - low <= allowed)) - 1
        falls = before[first] > top[last - first] + allowed and after[last] < low[last - first] - np.log(2)
        if falls and last - first > best[1] - best[0]:
            best = first, last
    start, end = np.exp(grid[list(best)]).tolist()
    if end < ratio * start:
        wanted = f"wait on a plateau, within {tolerance:.0%} while the time grows {ratio:g}-fold, before they fall"
        remedy = "further: follow the whole curve with ResolvedOverlaps.solve, as escape rates do not apply"
        flattest = f"a flattest stretch from {start:.3g} to {end:.3g}" if best[1] else "no stretch that is flat"
        checks.fail("errors", f"{wanted} {remedy}", flattest)
    return Rest(start, end, float(np.exp(e[best[0] : best[1] + 1].mean())))

"""The plateau of a soft committee machine with structured inputs, beside :mod:`lib.foundations.stability`.

Source: worschech2024, eqs. (13) to (15) and (97) to (116), for teachers that are alike.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.foundations import stability


def weights(teacher_overlap: ArrayLike) -> Array[" M"]:
    """What the students are on the plateau, to first order in the learning rate: all of them  J = Σ_n ρ_n B_n.

    The root of  Tρ = R,  R_n the overlap of every student with teacher n of :func:`lib.foundations.stability.plateau`;
    so their resolved overlaps are  R^k = T^kρ  and  Q^k = ρᵀT^kρ.

    Parameters
    ----------
    teacher_overlap : array_like (M, M)
        T of the fields, positive definite, M >= 2.

    Returns
    -------
    ndarray (M,)
        ρ.

    Examples
    --------
    >>> weights(np.eye(2)).round(9).tolist()  # 1/√6
    [0.40824829, 0.40824829]
    """
    rest = stability.plateau(teacher_overlap)
    return np.linalg.solve(rest.teacher, rest.cross[0])


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
    `ratio`, and falls to half of it later.  Only such a run is what ``stability.plateau`` and ``escape_rates`` speak
    of; a run that leaves before it has come to rest is followed by :meth:`ResolvedOverlaps.solve` from its start.

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


def symmetric_escape_rate(
    units: int, diagonal: float, off_diagonal: float, second_diagonal: float, second_off_diagonal: float,
    learning_rate: float,
) -> float:  # fmt: skip
    """The escape rate 1/τ_r where all teachers are alike:  T_nn = T,  T_nm = D/(M-1) for m ≠ n, and T₂, D₂ for T⁽²⁾.

    A closed form of the first M - 1 rates of :func:`lib.foundations.stability.escape_rates`, for any number of units:
    1/τ_r = η g_r (T₂ - D₂/(M-1)),  g_r = 2(T+D) / {π [(M-1)T - D + M]^{1/2} [D + (M+1)T + M]^{3/2}}:  worschech2024
    eqs. (15) and (114) to (116).  Of the overlaps: the excess ε* - ε_g grows at twice this rate, in the source at this
    rate itself.

    Parameters
    ----------
    units : int
        M >= 2.
    diagonal, off_diagonal : float
        T > 0 and -T < D < (M-1)T.
    second_diagonal, second_off_diagonal : float
        T₂, D₂ in the same bounds.
    learning_rate : float
        η > 0.

    Returns
    -------
    float
        1/τ_r.

    Examples
    --------
    >>> round(symmetric_escape_rate(100, 1.0, 0.0, 1.0, 0.0, 1.0) * 2 * np.pi * 100**2, 3)
    0.995
    """
    m = checks.integer("units", units, at_least=2)
    t = checks.number("diagonal", diagonal, above=0)
    d = checks.number("off_diagonal", off_diagonal, above=-t, below=(m - 1) * t)
    t2 = checks.number("second_diagonal", second_diagonal, above=0)
    d2 = checks.number("second_off_diagonal", second_off_diagonal, above=-t2, below=(m - 1) * t2)
    strength = 2 * (t + d) / (np.pi * np.sqrt((m - 1) * t - d + m) * (d + (m + 1) * t + m) ** 1.5)
    return float(checks.number("learning_rate", learning_rate, above=0) * strength * (t2 - d2 / (m - 1)))

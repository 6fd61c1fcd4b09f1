"""Where two points of a network end, how fast they settle there, and whether the start or the data decide.

The end depends on two squared hidden distances,  A_high = a₀ - ρX b₀/a₀  of the start and  A_low = √(ρXY) of the data,
ρ = α/β; :attr:`lib.representations.two_points.TwoPoints.high_low` has both.  Source: vanrossem2024, eqs. (10) to (13).
"""

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


def final_distance(high: float | ArrayLike, low: float | ArrayLike) -> float | Array["..."]:
    """Squared hidden distance at the end,  a_∞ = ½A_high + ½√(A_high² + 4A_low²) = A_low e^{arsinh(A_high/(2A_low))}.

    Eq. (10) of vanrossem2024, without cancellation for A_high < 0; for large weights it is max(A_high, 0), not A_high
    as after eq. (12).

    Parameters
    ----------
    high, low : array_like (...)
        A_high, of any sign, and A_low >= 0, which broadcast.

    Returns
    -------
    float or ndarray (...)
        a_∞ >= 0.

    Examples
    --------
    >>> [final_distance(high, 1.0) for high in (0.0, 1e9, -1e9)]
    [1.0, 1000000000.0, 1e-09]
    """
    high, low = checks.array("high", high), checks.entries("low", low, at_least=0)  # (...), (...)
    high, low = checks.broadcast(high=high, low=low)
    larger = 0.5 * np.abs(high) + np.hypot(0.5 * high, low)  # (...)
    smaller = low * np.divide(low, larger, out=np.zeros(high.shape), where=larger > 0)  # (...)
    return checks.plain(np.where(high >= 0, larger, smaller))


def decay_rates(high: float, low: float, decoder_rate: float) -> Array["2"]:
    """Eigenvalues of the Jacobian at the end,  -βa_∞  and  -½β√(A_high² + 4A_low²).

    Eqs. (29) to (31) of vanrossem2024 simplified.  Across Δ dy - Δ decays with half the first.  Along Δ one part decays
    with the second; another, which one output does not show, with the first.

    Parameters
    ----------
    high, low : float
        A_high, of any sign, and A_low >= 0.
    decoder_rate : float
        β > 0.

    Returns
    -------
    ndarray (2,)
        Both <= 0, per unit of time.

    Examples
    --------
    >>> decay_rates(1.5, 1.0, 2.0).tolist()
    [-4.0, -2.5]
    """
    high, low = checks.number("high", high), checks.number("low", low, at_least=0)
    beta = checks.number("decoder_rate", decoder_rate, above=0)
    return -beta * np.array([final_distance(high, low), np.hypot(0.5 * high, low)])


def regime(high: float, low: float, *, margin: float = 5.0) -> str:
    """What decides the end: the data ("rich"), a large start ("lazy"), or a start with the larger decoder ("collapse").

    a_∞ is close to A_low, A_high or A_low²/|A_high|.  |A_high| is compared with 2A_low, which corrects eqs. (12) and
    (13) of vanrossem2024.

    Parameters
    ----------
    high, low : float
        A_high, of any sign, and A_low >= 0; not both zero.
    margin : float
        How many times larger one side must be, > 1.

    Returns
    -------
    str
        "rich", "lazy", "collapse", or "between".

    Examples
    --------
    >>> [regime(high, 1.0, margin=5.0) for high in (0.1, 2.0, 19.2, -57.6)]
    ['rich', 'between', 'lazy', 'collapse']
    """
    high, low = checks.number("high", high), checks.number("low", low, at_least=0)
    margin = checks.number("margin", margin, above=1)
    checks.fail_if(high == 0 and low == 0, "low", "be > 0 where high is 0", low)
    if abs(high) * margin <= 2 * low:
        return "rich"
    if abs(high) < margin * 2 * low:
        return "between"
    return "lazy" if high > 0 else "collapse"

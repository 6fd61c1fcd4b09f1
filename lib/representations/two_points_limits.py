"""Two points of a network: where their distances end, how fast, how long they wait, and when the start decides.

The end depends on two squared hidden distances,  A_high = a₀ - ρX b₀/a₀  of the start and  A_low = √(ρXY) of the data,
ρ = α/β:  a_∞ = A_low e^{arsinh(A_high/(2A_low))}.  Arguments are those of :mod:`lib.representations.two_points`;
`high`, of any sign, and `low` >= 0 are A_high and A_low.  Source: vanrossem2024, eqs. (10) to (13), (26) to (40);
:func:`half_time` and :func:`zero_crossing` are not in it.
"""

import numpy as np

from lib.common import checks
from lib.representations import _two_points
from lib.representations.two_points import trajectory


def final_distance(high, low):
    """Squared hidden distance at the end:  a_∞ = ½A_high + ½√(A_high² + 4A_low²),  without cancellation for A_high < 0.

    Eq. (10); for large weights max(A_high, 0), not A_high as after eq. (12).  `high`, `low`: numbers or arrays.
    Returns a_∞.

    >>> [float(final_distance(high, 1.0)) for high in (0.0, 1e9, -1e9)]
    [1.0, 1000000000.0, 1e-09]
    """
    high, low = checks.array("high", high), checks.entries("low", low, at_least=0)  # (...), (...)
    return _two_points.final_distance(*checks.broadcast(high=high, low=low))


def high_low(start, input_distance, target_distance, rate_ratio):
    """The two numbers that fix the end,  A_high = a₀ - ρX b₀/a₀  and  A_low = √(ρXY), eq. (11), where ρ = τ_y/τ_h.

    `start` (3,), `input_distance`, `target_distance`, `rate_ratio`: a₀, b₀, w₀, X, Y, ρ.  Returns two floats.

    >>> high_low([2.0, 1.0, 0.5], 1.0, 4.0, 1.0)
    (1.5, 2.0)
    """
    (a, b, _), squared = _two_points.bounded_state("start", start, target_distance, ndim=1)
    x, ratio = _two_points.positive(input_distance=input_distance, rate_ratio=rate_ratio)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return tuple(checks.finite("start", np.array([a - ratio * x * b / a, np.sqrt(ratio * x * squared)])).tolist())


def fixed_point(start, input_distance, target_distance, rate_ratio):
    """The end (a_∞, Y, 0) of a trajectory, for every start but the exceptional ones that rest at a saddle, eq. (36).

    `start` (3,), `input_distance`, `target_distance`, `rate_ratio`: a₀, b₀, w₀, X, Y, ρ.  Returns (3,): a, b, w.

    >>> fixed_point([2.0, 1.0, 0.5], 1.0, 4.0, 1.0).round(6).tolist()
    [2.886001, 4.0, 0.0]
    """
    high, low = high_low(start, input_distance, target_distance, rate_ratio)
    return np.array([_two_points.final_distance(high, low), float(target_distance), 0.0])  # (3,)


def decay_rates(high, low, decoder_rate):
    """Eigenvalues of the Jacobian at the end:  -βa_∞  and  -½β√(A_high² + 4A_low²), eqs. (29) to (31) simplified.

    Across Δ dy - Δ decays with half the first.  Along Δ one part decays with the second; another, which one output does
    not show, with the first.  `high`, `low`, `decoder_rate`: A_high, A_low, β.  Returns (2,), real, <= 0.

    >>> decay_rates(1.5, 1.0, 2.0).tolist()
    [-4.0, -2.5]
    """
    high, low = checks.number("high", high), checks.number("low", low, at_least=0)
    beta = checks.number("decoder_rate", decoder_rate, above=0)
    return -beta * np.array([_two_points.final_distance(high, low), np.hypot(0.5 * high, low)])  # (2,)


def regime(high, low, *, margin=5.0):
    """What decides the end: the data ("rich"), a large start ("lazy"), or a start with the larger decoder ("collapse").

    a_∞ is close to A_low, A_high or A_low²/|A_high|; |A_high| is compared with 2A_low, which corrects eqs. (12), (13).
    `high`, `low`: not both zero; `margin` > 1: how many times larger one side must be.  Returns it, or "between".

    >>> [regime(high, 1.0) for high in (0.1, 2.0, 19.2, -57.6)]
    ['rich', 'between', 'lazy', 'collapse']
    """
    high, low = checks.number("high", high), checks.number("low", low, at_least=0)
    margin = checks.number("margin", margin, above=1)
    if high == 0 and low == 0:
        checks.fail("low", "be > 0 where high is 0", low)
    if abs(high) * margin <= 2 * low:
        return "rich"
    if abs(high) < margin * 2 * low:
        return "between"
    return "lazy" if high > 0 else "collapse"


def half_time(start, input_distance, target_distance, encoder_rate, decoder_rate):
    """Length of the plateau: when the fast-growing part of a small start has half its final squared size.

    t = ln(λ/(k²ζ²) - 1)/(2λ),  λ = ¼β√(A_high² + 4A_low²),  k = ½√(αβX),  ζ the start's component along the growing
    direction; then a is half of a_∞ for a balanced start.  `start` (3,): small, with a growing part; `input_distance`,
    `target_distance`, `encoder_rate`, `decoder_rate`: X, Y, α, β.  Returns t > 0.

    >>> steps = [half_time([scale, scale**2, scale**2 - scale], 1.0, 1.0, 1.0, 1.0) for scale in (1e-6, 1e-8)]
    >>> round(steps[1] - steps[0], 4)  # a factor 1/10 in the amplitude; λ = ½
    4.6052
    """
    m = _two_points.checked_modes(start, input_distance, target_distance, encoder_rate, decoder_rate)
    part = (m.k * m.growing) ** 2
    if not 0 < 2 * part < m.rate:
        wanted = "be on the plateau: a small part along the growing direction, below half its final size"
        checks.fail("start", wanted, start)
    return float((np.log(m.rate - part) - np.log(part)) / (2 * m.rate))


def zero_crossing(start, input_distance, target_distance, encoder_rate, decoder_rate):
    """Time at which the two hidden vectors meet, a = 0, on their way to opposite order; infinite if they do not.

    With growing (cos, sin) and decaying direction (-sin, cos), ζ₊ and ζ₋ the start's components:  t = ln(ζ₋ sin/(ζ₊
    cos))/(2λ) if ζ₊ < 0.  Section A.3 of the source excludes it.  `start`, `input_distance`, `target_distance`,
    `encoder_rate`, `decoder_rate`: as in the module.  Returns t > 0.

    >>> round(zero_crossing([1.0, 4.0, 6.0], 1.0, 1.0, 1.0, 1.0), 6)  # dy = -2, Δ = 1: A_high = -3
    0.631935
    """
    m = _two_points.checked_modes(start, input_distance, target_distance, encoder_rate, decoder_rate)
    if not m.growing < 0:
        return np.inf
    return float(np.log(m.sin * m.decaying / (m.cos * m.growing)) / (2 * m.rate))


def identical_targets(times, start, input_distance, encoder_rate, decoder_rate):
    """The state (a, b, w = b) if both points have the same target, Y = 0.

    a = A_high/(1 + E),  b = -βA_high²E/(αX (1 + E)²),  E = (A_high/a₀ - 1) e^{-βA_high t};  for A_high = 0  a₀/(1 +
    βa₀t). Eqs. (39), (40), corrected: there the exponent lacks β.  `times` (T,); `start` (2,): a₀ > 0, b₀ >= 0;
    `input_distance`, `encoder_rate`, `decoder_rate`: X, α, β.  Returns (T, 3): a, b, w.

    >>> identical_targets([0.0, 1.0, 1e9], [1.0, 1.0], 1.0, 1.0, 1.0).round(6).tolist()  # A_high = 0
    [[1.0, 1.0, 1.0], [0.5, 0.25, 0.25], [0.0, 0.0, 0.0]]
    """
    a, b = checks.array("start", start, shape=(2,))
    return trajectory(times, [a, b, b], input_distance, 0.0, encoder_rate, decoder_rate)

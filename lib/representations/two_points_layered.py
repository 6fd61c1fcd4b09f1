"""Two points of a network with one output whose effective rates change with its weights, as in a deep linear network.

The triple (a, c, V) of squared hidden distance, output difference c = v·dh and squared decoder gradient V = ‖v‖² closes
for one output without the no-rotation assumption and without a division by a.  Not in the source (vanrossem2024).
"""

import numpy as np
from scipy.integrate import solve_ivp

from lib.common import checks
from lib.representations import _two_points


def trajectory(
    times,
    start,
    decoder_gradient,
    input_distance,
    target_distance,
    encoder_rate,
    decoder_rate,
    *,
    encoder_layers=1,
    decoder_layers=1,
):
    """a, b and w of two points with the rates  α = α₀(a/X)^{1-1/L₁}  and  β = β₀V^{1-1/L₂}  of L₁ and L₂ linear layers.

    With e = c - √Y:  ȧ = -αX e c,  ċ = -½e(βa + αXV),  V̇ = -β e c.  One layer on either side is
    :func:`lib.representations.two_points_exact.one_output`; descent with step η on L layers of equal weights has the
    prefactor ηL/2.  `times` (A,): t >= 0, strictly increasing; `start` (3,): a₀ > 0, b₀, w₀ of one output, so that (b₀
    - w₀)² = b₀Y; `decoder_gradient`: V₀ > 0, at least b₀/a₀; `input_distance`, `target_distance`: X, Y > 0;
    `encoder_rate`, `decoder_rate`: α₀, β₀ > 0; `encoder_layers`, `decoder_layers`: L₁, L₂ >= 1.  Returns (A, 3).

    >>> start = [1e-2, 1e-6, 1e-6 - 1e-3]  # dy = 1e-3, Y = 1
    >>> one, ten = (trajectory([0.0, 60.0], start, 0.01, 1.0, 1.0, 1.0, 1.0, encoder_layers=n) for n in (1, 10))
    >>> one[1].round(3).tolist(), ten[1].round(3).tolist()
    ([1.0, 1.0, 0.0], [0.365, 1.0, 0.0])
    """
    times = checks.times("times", times)  # (A,)
    a, b, w = checks.array("start", start, shape=(3,)).tolist()
    gap = np.sqrt(checks.number("target_distance", target_distance, above=0))
    x, alpha, beta = _two_points.constants(input_distance, encoder_rate, decoder_rate)
    first = 1 - 1 / checks.integer("encoder_layers", encoder_layers)
    second = 1 - 1 / checks.integer("decoder_layers", decoder_layers)
    c = (b - w) / gap
    if not (a > 0 and b >= 0 and abs(c**2 - b) <= 1e-5 * max(b, gap**2)):
        checks.fail("start", "have a > 0 and, for one output, (b - w)² = bY", start)
    v = checks.number("decoder_gradient", decoder_gradient, above=0)
    if v * a < c**2 * (1 - 1e-6):
        checks.fail("decoder_gradient", "be at least b/a, as dy = v·dh", decoder_gradient)

    def slope(_, state):
        a, c, v = state
        by_encoder = alpha * x * (max(a, 0.0) / x) ** first
        by_decoder = beta * max(v, 0.0) ** second
        e = c - gap
        return -by_encoder * e * c, -0.5 * e * (by_decoder * a + by_encoder * v), -by_decoder * e * c

    begin = np.array([a, c, v])  # (3,)
    span, finest = (0.0, times[-1] or 1.0), 1e-10 * np.abs(begin)  # an interval of zero would stop the integrator
    solution = solve_ivp(
        slope, span, begin, method="LSODA", t_eval=times, rtol=1e-8, atol=np.maximum(finest, 1e-14 * gap)
    )
    if not solution.success or not np.isfinite(solution.y).all():
        checks.fail("times", "end where the integrator still follows", times)
    a, c, _ = solution.y  # (A,) each
    return np.stack([a, c**2, c * (c - gap)], axis=1)  # (A, 3)

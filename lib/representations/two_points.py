"""Two training points whose hidden vectors are close: three equations for a network's inner distances, solved.

Cut a network at a hidden layer and linearise encoder and decoder about the mid-point of two inputs.  With dh, dy and Δ
the differences of hidden vectors, outputs and targets, X = ‖x₂-x₁‖², Y = ‖Δ‖², a = ‖dh‖², b = ‖dy‖², w = dy·(dy - Δ):
da/dt = -αXw,   db/dt = -w(βa + αXb/a),   dw/dt = -(β/2)(3w - b + Y)a - (αX/2)(b + w)w/a.  Descent with step η on a
linear net with one hidden layer and the loss  ½⟨‖f - y‖²⟩  has α = β = η/2.

Here, in ``two_points_limits`` and ``two_points_exact``: `times` t (T,) >= 0, increasing; `start` (3,) = a₀ > 0, b₀ >=
0, w₀ with (b₀ - w₀)² <= b₀Y; `input_distance` X > 0; `target_distance` Y >= 0; the learning rates `encoder_rate` α,
`decoder_rate` β > 0; `rate_ratio` ρ = α/β.  Source: vanrossem2024, eqs. (7), (9), without the closed form.
"""

import numpy as np

from lib.common import checks
from lib.representations import _two_points


def state(hidden_difference, output_difference, target_difference):
    """The state (a, b, w) = (‖dh‖², ‖dy‖², dy·(dy - Δ)) of two points of any network.

    `hidden_difference` (..., H): dh; `output_difference` (..., m): dy; `target_difference` (m,): Δ.  Returns (..., 3).

    >>> state([1.0, 2.0], [0.5], [1.0]).tolist()
    [5.0, 0.25, -0.25]
    """
    dh = checks.array("hidden_difference", hidden_difference)  # (..., H)
    dy = checks.array("output_difference", output_difference)  # (..., m)
    if dh.ndim == 0 or dh.shape[-1] == 0:
        checks.fail("hidden_difference", "be one or more vectors", hidden_difference)
    if dy.ndim != dh.ndim or dy.shape[:-1] != dh.shape[:-1] or dy.shape[-1] == 0:
        checks.fail("output_difference", "have the leading axes of hidden_difference", f"shape {dy.shape}")
    delta = checks.array("target_difference", target_difference, shape=dy.shape[-1:])  # (m,)
    return np.stack([(dh**2).sum(-1), (dy**2).sum(-1), (dy * (dy - delta)).sum(-1)], axis=-1)  # (..., 3)


def derivative(state, input_distance, target_distance, encoder_rate, decoder_rate):
    """Time derivative of (a, b, w), eq. (7), singular at a = 0, where integrators go wrong unnoticed.

    `state` (..., 3), `input_distance`, `target_distance`, `encoder_rate`, `decoder_rate`: as above. Returns (..., 3).

    >>> derivative([1.0, 0.25, -0.25], 1.0, 1.0, 2.0, 4.0).tolist()
    [0.5, 1.125, 0.0]
    """
    state, squared = _two_points.bounded_state("state", state, target_distance)  # (..., 3)
    x, alpha, beta = _two_points.constants(input_distance, encoder_rate, decoder_rate)
    a, b, w = np.moveaxis(state, -1, 0)  # (...), (...), (...)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        pull = alpha * x * w  # (...)
        turn = -0.5 * beta * (3 * w - b + squared) * a - 0.5 * pull * (b + w) / a  # (...)
        return checks.finite("state", np.stack([-pull, -w * beta * a - pull * b / a, turn], axis=-1))  # (..., 3)


def trajectory(times, start, input_distance, target_distance, encoder_rate, decoder_rate):
    """The state (a, b, w) at any times, from any start, in closed form; it goes on smoothly where eq. (7) is singular.

    z = (ŝ, p̂, q̂), with  a = αXŝ²  and  dy = 2kŝ(p̂, q̂)  along and across Δ:  dz/dt = Mz - k²‖z‖²z: z(t) = e^{Mt}z₀ /
    √(1 + 2k² ∫₀ᵗ ‖e^{Mt'}z₀‖² dt'),   M = ((μ, κ, 0), (κ, -μ, 0), (0, 0, -μ)),  k² = ¼αβX,  μ = ¼βA_high, κ = k√Y.
    `times`, `start`, `input_distance`, `target_distance`, `encoder_rate`, `decoder_rate`: as above.  Returns (T, 3).

    >>> trajectory([0.0, 1e9], [0.01, 0.0001, -0.0099], 1.0, 1.0, 1.0, 1.0).round(6).tolist()  # ends at (a_∞, Y, 0)
    [[0.01, 0.0001, -0.0099], [1.0, 1.0, 0.0]]
    """
    times = checks.times("times", times)  # (T,)
    m = _two_points.checked_modes(start, input_distance, target_distance, encoder_rate, decoder_rate)
    return _two_points.states(times, m, encoder_rate * input_distance)


def loss_curve(
    times, start, input_distance, target_distance, encoder_rate, decoder_rate, *, mean_distance=0.0, mean_rate=0.0
):
    """Loss along :func:`trajectory`:  ½‖δ₀‖² e^{-2γt} + ⅛‖dy - Δ‖²,  with all digits down to the smallest values.

    `times`, `start`, `input_distance`, `target_distance`, `encoder_rate`, `decoder_rate`: as there; `mean_distance` >=
    0: ‖δ₀‖², of the output at the mid-point from the mean target at the start; `mean_rate` >= 0: γ.  Returns (T,).

    >>> start = [0.01, 0.0001, -0.0099]
    >>> loss_curve([0.0, 1e9], start, 1.0, 1.0, 1.0, 1.0, mean_distance=0.5, mean_rate=1.0).round(6).tolist()
    [0.372512, 0.0]
    """
    times = checks.times("times", times)  # (T,)
    mean = checks.number("mean_distance", mean_distance, at_least=0)
    rate = checks.number("mean_rate", mean_rate, at_least=0)
    m = _two_points.checked_modes(start, input_distance, target_distance, encoder_rate, decoder_rate)
    found = _two_points.solve(times, m)
    with np.errstate(over="ignore"):
        return 0.5 * mean * np.exp(-2 * rate * times) + (found.along**2 + found.across**2) / 8  # (T,)


def loss(state, target_distance, *, mean_distance=0.0):
    """Loss ½⟨‖f - y‖²⟩ of two points from their state:  ½‖δ‖² + ¼(w + ½(Y - b)),  an identity for any network, eq. (9).

    `state` (..., 3): a >= 0, b >= 0, w; `target_distance`: Y; `mean_distance` (...) or number, >= 0: ‖δ‖², δ the mean
    of the two outputs less that of the two targets.  Returns (...).

    >>> float(loss([5.0, 0.25, -0.25], 1.0, mean_distance=0.5))
    0.28125
    """
    state, squared = _two_points.bounded_state("state", state, target_distance, moving=False)  # (..., 3)
    mean = checks.entries("mean_distance", mean_distance, at_least=0)  # (...)
    if mean.ndim and mean.shape != state.shape[:-1]:
        checks.fail("mean_distance", f"be a number or have shape {state.shape[:-1]}", f"shape {mean.shape}")
    return (0.5 * mean + 0.25 * (state[..., 2] + 0.5 * (squared - state[..., 1])))[()]


def conserved(state, input_distance, encoder_rate, decoder_rate):
    """The constant of the motion  C = b/a - βa/(αX) = -βA_high/(αX), eq. (24).

    `state` (..., 3): a > 0, b >= 0, any w; `input_distance`, `encoder_rate`, `decoder_rate`: X, α, β.  Returns (...).

    >>> float(conserved([2.0, 3.0, 0.5], 1.0, 1.0, 4.0))
    -6.5
    """
    state = _two_points.checked_state("state", state)  # (..., 3)
    x, alpha, beta = _two_points.constants(input_distance, encoder_rate, decoder_rate)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return checks.finite("state", state[..., 1] / state[..., 0] - beta / (alpha * x) * state[..., 0])[()]

"""Two points of a network whose hidden difference may turn: vectors in place of three numbers.

The two-layer linear flow behind :mod:`lib.representations.two_points`, with the decoder's Jacobian D_y and  e = dy - Δ,
dy = D_y dh,  d(dh)/dt = -½αX D_yᵀe,   dD_y/dt = -½β e dhᵀ,  closes on (a, b, w) only if dh does not rotate. `times`
(T,), `input_distance` X and `encoder_rate` α, `decoder_rate` β are those of that module; `hidden_difference` (H,) is dh
and `decoder` (m, H) is D_y at t = 0, `target_difference` (m,) is Δ.  Source: vanrossem2024, eqs. (17) to (19), with ¼
for ½ in (17); the solutions and :func:`layered` are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from lib.common import checks
from lib.representations import _two_points


@dataclass(frozen=True, eq=False)
class Vectors:
    """Differences between two points along a solution."""

    hidden: np.ndarray  # (T, H)  dh
    decoder: np.ndarray  # (T, m, H)  D_y
    output: np.ndarray  # (T, m)  dy
    residual: np.ndarray  # (T, m)  dy - Δ


def _vector(name, value):
    vector = checks.array(name, value, ndim=1)
    return vector if vector.size > 0 else checks.fail(name, "have at least one entry", value)


def _vectors(hidden_difference, decoder, target_difference):
    dh = _vector("hidden_difference", hidden_difference)  # (H,)
    target = _vector("target_difference", target_difference)  # (m,)
    return dh, checks.array("decoder", decoder, shape=(target.size, dh.size)), target


def gradients(mean_output, encoder, decoder, inputs, targets):
    """Gradients of the loss of two linearised points:  ȳ - (y₁ + y₂)/2,  ¼D_yᵀe Δxᵀ,  ¼ e dhᵀ  (½ in eq. (17)).

    The loss is  ½⟨‖ȳ ± ½D_yD_hΔx - y_i‖²⟩.  `mean_output` (m,): ȳ, at the mid-point of the inputs; `encoder` (H, n):
    D_h; `decoder` (m, H): D_y; `inputs` (2, n): x₁, x₂; `targets` (2, m): y₁, y₂.  Returns those by ȳ, D_h and D_y.

    >>> [part.tolist() for part in gradients([1.0], [[1.0]], [[2.0]], [[0.0], [1.0]], [[0.0], [1.0]])]
    [[0.5], [[0.5]], [[0.25]]]
    """
    mean = checks.array("mean_output", mean_output, ndim=1)  # (m,)
    encoder = checks.array("encoder", encoder, ndim=2)  # (H, n)
    decoder = checks.array("decoder", decoder, shape=(mean.size, len(encoder)))  # (m, H)
    x = checks.array("inputs", inputs, shape=(2, encoder.shape[1]))  # (2, n)
    y = checks.array("targets", targets, shape=(2, mean.size))  # (2, m)
    step = x[1] - x[0]  # (n,)
    dh = encoder @ step  # (H,)
    error = decoder @ dh - (y[1] - y[0])  # (m,)
    return mean - y.mean(axis=0), 0.25 * np.outer(decoder.T @ error, step), 0.25 * np.outer(error, dh)


def integrate(times, hidden_difference, decoder, target_difference, input_distance, encoder_rate, decoder_rate):
    """Numerical solution of the flow for any number of outputs; the reference for the closed forms.

    `times`, `hidden_difference`, `decoder`, `target_difference`, `input_distance`, `encoder_rate`, `decoder_rate`: as
    above.  Returns Vectors.

    >>> integrate([0.0, 40.0], [1.0, 0.0], [[0.1, 0.5]], [1.0], 1.0, 1.0, 1.0).output.round(6).tolist()
    [[0.1], [1.0]]
    """
    times = checks.times("times", times)  # (T,)
    dh, jacobian, target = _vectors(hidden_difference, decoder, target_difference)  # (H,), (m, H), (m,)
    x, alpha, beta = _two_points.constants(input_distance, encoder_rate, decoder_rate)
    shape = (len(target) + 1, dh.size)

    def slope(_, flat):
        rows = flat.reshape(shape)  # (1 + m, H)
        error = rows[1:] @ rows[0] - target  # (m,)
        pulls = -0.5 * alpha * x * error @ rows[1:], -0.5 * beta * np.outer(error, rows[0])  # (H,), (m, H)
        return np.vstack(pulls).ravel()  # ((1 + m) H,)

    start = np.vstack([dh, jacobian]).ravel()  # ((1 + m) H,)
    span, size = (0.0, times[-1] or 1.0), np.abs(start).max() or 1.0  # zeros would stop the integrator
    solution = solve_ivp(slope, span, start, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-14 * size)
    if not solution.success or not np.isfinite(solution.y).all():
        checks.fail("times", "end where the integrator still follows", times)
    rows = solution.y.T.reshape(-1, *shape)  # (T, 1 + m, H)
    output = np.einsum("tmh,th->tm", rows[:, 1:], rows[:, 0])  # (T, m)
    return Vectors(rows[:, 0], rows[:, 1:], output, output - target)


def rank_one(
    times, hidden_difference, output_difference, target_difference, input_distance, encoder_rate, decoder_rate
):
    """Exact solution if the decoder sees only the hidden difference,  D_y = dy dhᵀ/‖dh‖²;  then (a, b, w) closes.

    dh keeps its line, through zero too.  `output_difference` (m,): dy at t = 0; `times`, `hidden_difference`, not zero,
    `target_difference`, `input_distance`, `encoder_rate`, `decoder_rate`: as in the module. Returns Vectors.

    >>> rank_one([0.0, 60.0], [1.0], [-2.0], [1.0], 1.0, 1.0, 1.0).hidden.round(6).tolist()  # ends in opposite order
    [[1.0], [-0.550251]]
    """
    times = checks.times("times", times)  # (T,)
    dh = checks.array("hidden_difference", hidden_difference, ndim=1)  # (H,)
    target = _vector("target_difference", target_difference)  # (m,)
    dy = checks.array("output_difference", output_difference, shape=target.shape)  # (m,)
    size, gap = np.linalg.norm(dh), np.linalg.norm(target)
    if size == 0:
        checks.fail("hidden_difference", "not be zero", hidden_difference)
    start = [size**2, dy @ dy, dy @ (dy - target)]
    m = _two_points.checked_modes(start, input_distance, gap**2, encoder_rate, decoder_rate)
    s, p, q, along, across = _two_points.solve(times, m)
    forward = target / gap if gap > 0 else np.zeros(target.size)  # (m,)
    sideways = dy - (dy @ forward) * forward  # (m,)
    length = np.linalg.norm(sideways)
    sideways = sideways / length if m.q > 0 and length > 0 else np.zeros(target.size)  # (m,)
    hidden = np.sqrt(encoder_rate * input_distance) * np.outer(s, dh / size)  # (T, H)
    column = np.sqrt(decoder_rate) * (np.outer(p, forward) + np.outer(q, sideways))  # (T, m)
    output = np.sqrt(encoder_rate * input_distance) * s[:, None] * column  # (T, m)
    residual = np.outer(along, forward) + np.outer(across, sideways)  # (T, m)
    return Vectors(hidden, column[:, :, None] * (dh / size), output, residual)


def one_output(times, hidden_difference, decoder, target_difference, input_distance, encoder_rate, decoder_rate):
    """Exact solution for one output from any start, dh free to rotate.

    ĥ = dh/√(αX) and v̂ = v/√β, D_y = vᵀ, have  ĥ ± v̂ = (ĥ₀ ± v̂₀) x^{±½},  dx/dt = -k²P x² + 2kΔ x + k²M,  x(0) = 1, P
    = ‖ĥ₀ + v̂₀‖²,  M = ‖ĥ₀ - v̂₀‖²,  k = ½√(αβX).  Distances depend on a₀ = ‖dh₀‖², dy₀ and V₀ = ‖v₀‖² alone: (√a₀, 0)
    and (dy₀/√a₀, √(V₀ - dy₀²/a₀)) give them.  `times`, `hidden_difference`, `decoder` (1, H), `target_difference` (1,),
    of either sign, `input_distance`, `encoder_rate`, `decoder_rate`: as in the module.  Returns Vectors.

    >>> end = one_output([0.0, 1e9], [0.01, 0.0], [[0.0, 0.01]], [1.0], 1.0, 1.0, 1.0)  # dh turns by 45 degrees
    >>> end.hidden[-1].round(4).tolist(), end.output[-1].round(6).tolist()
    ([0.7071, 0.7071], [1.0])
    """
    times = checks.times("times", times)  # (T,)
    target = checks.array("target_difference", target_difference, shape=(1,))  # (1,)
    dh, jacobian, target = _vectors(hidden_difference, decoder, target)  # (H,), (1, H), (1,)
    x, alpha, beta = _two_points.constants(input_distance, encoder_rate, decoder_rate)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        k, delta = 0.5 * np.sqrt(alpha) * np.sqrt(beta) * np.sqrt(x), target[0]
        h, v = dh / np.sqrt(alpha * x), jacobian[0] / np.sqrt(beta)  # (H,), (H,)
        kp, km = k * ((h + v) @ (h + v)), k * ((h - v) @ (h - v))
        speed = checks.finite("hidden_difference", np.sqrt(delta**2 + kp * km))  # rate of x is 2k times this
        upper, lower = speed + abs(delta), kp * km / (speed + abs(delta)) if speed > 0 else 0.0
        upper, lower = (upper, lower) if delta >= 0 else (lower, upper)  # speed ± Δ, without cancellation
        fade = np.exp(-2 * k * speed * times)  # (T,)
        elapsed = k * times if speed == 0 else -np.expm1(-2 * k * speed * times) / (2 * speed)  # (T,)
    # x = numerator / denominator, both solutions of one linear equation and divided by e^{k·speed·t}
    numerator = _mobius(fade, elapsed, speed, upper, lower, km, delta)  # (T,)
    denominator = _mobius(fade, elapsed, speed, lower, upper, kp, -delta)  # (T,)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        growth = np.sqrt(numerator / denominator) if kp > 0 else np.zeros(times.size)  # (T,)
        shrinking = np.sqrt(denominator / numerator) if km > 0 else np.zeros(times.size)  # (T,)
        residual = (jacobian[0] @ dh - delta) * (fade / numerator) / denominator  # (T,)
    if not (np.isfinite(growth).all() and np.isfinite(shrinking).all()):
        checks.fail("times", "stay where the solution is inside the floating-point range", times)
    plus, minus = np.outer(growth, h + v) / 2, np.outer(shrinking, h - v) / 2  # (T, H), (T, H)
    hidden, row = np.sqrt(alpha * x) * (plus + minus), np.sqrt(beta) * (plus - minus)  # (T, H), (T, H)
    output = np.einsum("th,th->t", hidden, row)  # (T,)
    if (km == 0 and delta <= 0) or (kp == 0 and delta >= 0):  # the saddle: nothing is learned, and both quotients fade
        residual = output - delta  # (T,)
    return Vectors(hidden, row[:, None, :], output[:, None], residual[:, None])


def _mobius(fade, elapsed, speed, near, far, push, drift):
    """e^{-k·speed·t} (cosh + (drift + push) sinh/speed), near, far = speed ± drift, as a sum of positive terms."""
    if far <= push:
        return (1 + fade) / 2 + elapsed * (drift + push)
    return ((near + push) + fade * (far - push)) / (2 * speed)


def final_distance(hidden_difference, decoder, target_difference, input_distance, rate_ratio):
    """Squared hidden distance at the end for one output:  a_∞ = ½Ã + √(¼Ã² + ρX(a₀‖v₀‖² - dy₀²) + A_low²).

    Ã = a₀ - ρX‖v₀‖².  In place of eq. (10) where dh rotates; it leaves out the starts that rest at the saddle, ρX‖v₀‖²
    = a₀ with v₀ along -Δdh₀.  `hidden_difference` (H,), `decoder` (1, H), `target_difference` (1,): dh₀, v₀ᵀ, Δ;
    `input_distance`, `rate_ratio`: X, ρ = α/β.  Returns a_∞.

    >>> round(final_distance([0.01, 0.0], [[0.0, 0.01]], [1.0], 1.0, 1.0), 6)
    1.0
    """
    target = checks.array("target_difference", target_difference, shape=(1,))  # (1,)
    dh, jacobian, target = _vectors(hidden_difference, decoder, target)  # (H,), (1, H), (1,)
    x, ratio = _two_points.positive(input_distance=input_distance, rate_ratio=rate_ratio)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        a, v = dh @ dh, jacobian[0] * np.sqrt(ratio) * np.sqrt(x)  # (H,)
        across = v - (v @ dh) / a * dh if a > 0 else v  # (H,)
        rest = a * (across @ across) + ratio * x * target[0] ** 2
        half = 0.5 * (a - v @ v)
        root = checks.finite("hidden_difference", np.sqrt(half**2 + rest))
    return float(half + root if half >= 0 else rest / (root - half))


def layered(
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

    For one output, c = v·dh, V = ‖v‖², e = c - √Y:  ȧ = -αX e c,  ċ = -½e(βa + αXV),  V̇ = -β e c.  One layer on either
    side is :func:`one_output`; descent on L equal layers has the prefactor ηL/2. `times` (T,); `start` (3,): a₀ > 0,
    b₀, w₀ with (b₀ - w₀)² = b₀Y; `decoder_gradient`: V₀ > 0, at least b₀/a₀; `input_distance`, `target_distance`: X, Y
    > 0; `encoder_rate`, `decoder_rate`: α₀, β₀ > 0; `encoder_layers`, `decoder_layers`: L₁, L₂ >= 1.  Returns (T, 3).

    >>> start = [1e-2, 1e-6, 1e-6 - 1e-3]  # dy = 1e-3, Y = 1
    >>> one, ten = (layered([0.0, 60.0], start, 0.01, 1.0, 1.0, 1.0, 1.0, encoder_layers=n) for n in (1, 10))
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

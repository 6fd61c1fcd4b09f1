"""two_points against integration, high-precision arithmetic, the equations themselves, and gradient descent."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from two_point_data import amplitudes, integrated, state_of

from lib.representations import nets, training, two_points, two_points_limits
from lib.representations.two_points import TwoLayerFlow, TwoPoints

TIMES = np.linspace(0, 12, 40)
SIZE = st.floats(0.05, 5)
SIGNED = st.one_of(st.just(0.0), st.floats(1e-6, 3), st.floats(-3, -1e-6))  # smaller ones have squares that underflow
PARTS = "hidden", "decoder", "output", "residual"


# --- three numbers --------------------------------------------------------------------------------


def precise(t, start, constants):
    """(a, b, w) and the loss by the solution in hyperbolic functions, with 400 digits."""
    with mpmath.workdps(400):
        s, p, q, x, y, alpha, beta, t = (mpmath.mpf(float(value)) for value in (*start, *constants, t))
        s, p, q = s / mpmath.sqrt(alpha * x), p / mpmath.sqrt(beta), q / mpmath.sqrt(beta)
        k, gap = mpmath.sqrt(alpha * beta * x) / 2, mpmath.sqrt(y)
        mu, kappa = k**2 * (s**2 - p**2 - q**2), k * gap
        lam = mpmath.sqrt(mu**2 + kappa**2)
        cosh, sinh = mpmath.cosh(lam * t), mpmath.sinh(lam * t) / lam
        norm = (s**2 + p**2) * mpmath.sinh(2 * lam * t) / (2 * lam) + (mu * s**2 + 2 * kappa * s * p - mu * p**2) * (
            mpmath.cosh(2 * lam * t) - 1) / (2 * lam**2) + q**2 * (1 - mpmath.exp(-2 * mu * t)) / (2 * mu)  # fmt: skip
        root = mpmath.sqrt(1 + 2 * k**2 * norm)
        s, p = (cosh * s + sinh * (mu * s + kappa * p)) / root, (cosh * p + sinh * (kappa * s - mu * p)) / root
        q = q * mpmath.exp(-mu * t) / root
        along, across = 2 * k * s * p, 2 * k * s * q
        squares = along**2 + across**2, along * (along - gap) + across**2, ((along - gap) ** 2 + across**2) / 8
        return np.array([float(value) for value in (alpha * x * s**2, *squares)])


def test_closed_form_is_the_integral_of_the_amplitudes():
    for start, constants in amplitudes(60):
        expected = state_of(integrated(TIMES, start, constants), constants[1])
        two = TwoPoints(state_of(start, constants[1]), *constants)
        np.testing.assert_allclose(two.solve(TIMES), expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(two.solve(TIMES[3]), two.solve(TIMES)[3])
    assert two.loss(TIMES[3]) == two.loss(TIMES)[3] and type(two.loss(1.0)) is float


@pytest.mark.parametrize("scale", [1.0, 1e-5, 30.0])
def test_closed_form_keeps_its_digits_from_plateau_to_the_last_decay(scale):
    times = np.array([0.0, 1e-6, 1e-4, 1e-3] if scale > 1 else [0.0, 1e-6, 0.3, 7.0, 25.0])
    for start, constants in amplitudes(8, seed=4):
        start = scale * np.abs(start)  # along Δ: no cancellation anywhere
        expected = np.array([precise(t, start, constants) for t in times])
        two = TwoPoints(state_of(start, constants[1]), *constants)
        np.testing.assert_allclose(two.solve(times), expected[:, :3], rtol=1e-10)
        if start[2] == 0:
            np.testing.assert_allclose(two.loss(times), expected[:, 3], rtol=1e-10)


def test_the_end_at_huge_times():
    for start, (x, y, alpha, beta) in amplitudes(60, seed=1):
        s, p, q = start
        high, low = s**2 - alpha / beta * x * (p**2 + q**2), np.sqrt(alpha / beta * x * y)
        two = TwoPoints(state_of(start, y), x, y, alpha, beta)
        np.testing.assert_allclose(two.high_low, (high, low), rtol=1e-9, atol=1e-12)
        end = [high / 2 + np.sqrt(high**2 / 4 + low**2), y, 0]
        np.testing.assert_allclose([*two.solve([1e6, 1e300]), two.fixed_point], [end] * 3, rtol=1e-7, atol=1e-7)
    lazy = TwoPoints([6.4, 409.6, 409.6 - np.sqrt(409.6)], 1.0, 1.0, 1.0, 1.0)
    assert lazy.solve(1e9)[0] == pytest.approx(0.01736, abs=5e-6)


def test_derivative_is_that_of_a_rank_one_net_and_of_the_closed_form():
    step = 1e-6
    for start, (x, y, alpha, beta) in amplitudes(30, seed=2):
        (s, p, q), gap = start, np.sqrt(y)
        two = TwoPoints(state_of(start, y), x, y, alpha, beta)
        ds = -0.5 * alpha * x * (p * (s * p - gap) + s * q**2)
        dp, dq = -0.5 * beta * s * (s * p - gap), -0.5 * beta * s**2 * q
        b_slope = 2 * s * ds * (p**2 + q**2) + 2 * s**2 * (p * dp + q * dq)
        expected = np.array([2 * s * ds, b_slope, b_slope - gap * (ds * p + s * dp)])
        np.testing.assert_allclose(two.derivative, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
        near = two.solve([0.1 - step, 0.1, 0.1 + step])
        slope = TwoPoints(near[1], x, y, alpha, beta).derivative
        np.testing.assert_allclose((near[2] - near[0]) / (2 * step), slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
        rest = TwoPoints(two.fixed_point, x, y, alpha, beta)
        assert np.abs(rest.derivative).max() < 1e-12 * max(1, two.fixed_point.max())


@settings(deadline=None, max_examples=40)
@given(SIZE, SIGNED, st.one_of(st.just(0.0), SIZE), SIZE, SIZE, SIZE, SIZE)
def test_what_holds_along_every_trajectory(s, p, q, x, y, alpha, beta):
    start = state_of(np.array([s, p, q]), y)
    two = TwoPoints(start, x, y, alpha, beta)
    a, b, w = (curves := two.solve(TIMES)).T
    np.testing.assert_allclose(curves[0], start, rtol=1e-10, atol=1e-10 * np.abs(start).max())
    scale = max(y, b.max())
    assert np.all(2 * w - b + y >= -1e-10 * scale) and np.all((b - w) ** 2 <= b * y + 1e-10 * scale**2)
    if q == 0:
        np.testing.assert_allclose((b - w) ** 2, b * y, rtol=1e-7, atol=1e-10 * scale**2)
    high, curvature = two.high_low[0], beta / (alpha * x)
    drift = b - curvature * a * (a - high)  # A_high is a constant of the motion
    assert np.abs(drift).max() <= 1e-8 * max(scale, curvature * (a**2).max(), np.abs(curvature * high * a).max())
    losses = two.loss(TIMES, mean_distance=0.7, mean_rate=0.2)
    identity = two_points.loss(curves, y, mean_distance=0.7 * np.exp(-0.4 * TIMES))
    np.testing.assert_allclose(losses, identity, rtol=1e-9, atol=1e-12 * scale)
    assert np.all(np.diff(losses) <= 1e-13 * scale)


@settings(deadline=None, max_examples=25)
@given(SIZE, SIGNED, SIZE, SIZE, SIZE, SIZE, SIZE, st.floats(0.2, 5))
def test_symmetries_map_solutions_to_solutions(s, p, q, x, y, alpha, beta, c):
    start, powers = state_of(np.array([s, p, q]), y), np.array([c, c**2, c**2])
    curves = TwoPoints(start, x, y, alpha, beta).solve(TIMES)
    close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(curves).max()}
    np.testing.assert_allclose(TwoPoints(start, x, y, c * alpha, c * beta).solve(TIMES / c), curves, **close)
    np.testing.assert_allclose(TwoPoints(start, c**2 * x, y, alpha / c**2, beta).solve(TIMES), curves, **close)
    scaled = TwoPoints(powers * start, x, c**2 * y, alpha, beta).solve(TIMES / c) / powers
    np.testing.assert_allclose(scaled, curves, **close)


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (1.0, 2.0), (1.0, 6.0), (1.0, 0.0), (1e-9, 1e-22)])
def test_identical_targets_are_a_logistic_curve(a, b):
    times, alpha, beta, x = np.linspace(0, 4, 30), 1.0, 2.0, 1.0
    two = TwoPoints([a, b, b], x, 0.0, alpha, beta)  # A_high of each sign
    high, curves = a - alpha / beta * x * b / a, two.solve(times)
    np.testing.assert_array_equal(curves[:, 1], curves[:, 2])
    if high == 0:
        return np.testing.assert_allclose(curves[:, 0], a / (1 + beta * a * times), rtol=1e-10)
    e = (high / a - 1) * np.exp(-beta * high * times)
    np.testing.assert_allclose(curves[:, 0], high / (1 + e), rtol=1e-10)
    if b > 0:
        np.testing.assert_allclose(curves[:, 1], -beta / (alpha * x) * high**2 * e / (1 + e) ** 2, rtol=1e-8)
    np.testing.assert_allclose(two.solve(1e308), [max(high, 0), 0, 0], rtol=1e-12, atol=1e-300)


def test_starts_without_a_growing_part_rest_at_the_saddle():
    anti = TwoPoints([1.0, 1.0, 2.0], 1.0, 1.0, 1.0, 1.0).solve([0.0, 1.0, 1e5])  # ŝ = -p̂
    assert np.abs(anti[2]).max() < 1e-300 and anti[1, 0] < 1
    slower = TwoPoints([1.0, 4.0, 6.0], 1.0, 1.0, 1.0, 0.25).solve([0.0, 1.0, 3.0])
    run = TwoLayerFlow([1.0], [[-2.0]], [1.0], 1.0, 1.0, 0.25).integrate([0.0, 1.0, 3.0])
    np.testing.assert_allclose(slower, two_points.state(run.hidden, run.output, [1.0]), rtol=1e-8)
    saddle = TwoLayerFlow([1.0], [[-1.0], [0.0]], [1.0, 0.0], 1.0, 1.0, 1.0)
    same(saddle.solve([0.0, 1.0, 3.0]), saddle.integrate([0.0, 1.0, 3.0]), 1e-9)
    still = TwoPoints([4.0, 0.0, 0.0], 1.0, 0.0, 1.0, 1.0).solve([0.0, 1e5])  # the same outputs and targets
    np.testing.assert_array_equal(still, [[4.0, 0.0, 0.0]] * 2)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_loss_of_two_points_is_an_identity(hidden, outputs, seed):
    random = np.random.default_rng(seed)
    f, y, h = (random.normal(size=(5, 2, size)) for size in (outputs, outputs, hidden))
    delta, mean = y[0, 1] - y[0, 0], ((f - y[0]).mean(axis=1) ** 2).sum(axis=1)  # (m,), (5,)
    states = two_points.state(h[:, 1] - h[:, 0], f[:, 1] - f[:, 0], delta)  # (5, 3)
    expected = 0.25 * ((f - y[0]) ** 2).sum(axis=(1, 2))
    np.testing.assert_allclose(two_points.loss(states, delta @ delta, mean_distance=mean), expected, atol=1e-12)
    np.testing.assert_allclose(states[:, 0], ((h[:, 1] - h[:, 0]) ** 2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-1, 1e-2, 1e-3, 1e-4])
def test_half_time_of_a_balanced_start_and_its_logarithm(scale):
    two, smaller = (TwoPoints(state_of(np.array([s, s, 0.0]), 1.0), 1, 1, 1, 1) for s in (scale, scale / 10))
    exact = brentq(lambda t: two.solve(t)[0] - 0.5, 0.0, 100.0, xtol=1e-12)
    assert two.half_time == pytest.approx(exact, rel=1e-10)  # balanced and aligned: no decaying part
    assert smaller.half_time - two.half_time == pytest.approx(np.log(100) / (2 * 0.5), rel=2 * scale**2 + 1e-9)


def test_half_time_of_an_unaligned_start_is_within_a_percent_and_scales_with_the_rates():
    start = state_of(np.array([1e-3, 5e-4, 8e-4]), 2.0)
    two = TwoPoints(start, 0.5, 2.0, 0.3, 0.7)
    exact = brentq(lambda t: two.solve(t)[0] - two.fixed_point[0] / 2, 0.0, 1e3)
    assert two.half_time == pytest.approx(exact, rel=0.01)
    assert TwoPoints(start, 0.5, 2.0, 0.03, 0.07).half_time == pytest.approx(10 * two.half_time, rel=1e-12)
    for late in ([1.0, 1.0, 0.0], [1.0, 1.0, 2.0]):  # at the end; on the saddle's stable side
        with pytest.raises(ValueError, match=r"^start must be on the plateau"):
            TwoPoints(late, 1.0, 1.0, 1.0, 1.0).half_time  # noqa: B018


def test_zero_crossing_is_where_the_signed_amplitude_changes_sign():
    crossed = 0
    for start, constants in amplitudes(80, seed=6):
        two = TwoPoints(state_of(start, constants[1]), *constants)
        found = two.zero_crossing
        if np.isfinite(found):
            crossed += 1
            s = integrated(np.array([0.0, found]), start, constants)[0]
            assert s[1] == pytest.approx(0, abs=1e-9 * max(1, start[0]))
            around = two.solve(found * np.array([1 - 1e-3, 1, 1 + 1e-3]))[:, 0]
            assert around[1] < 1e-4 * around[[0, 2]].min()
        else:
            assert np.all(integrated(np.linspace(0, 60, 400), start, constants, 1e-12)[0] > 0)
        if start[2] == 0:  # one output: exactly if A_high < 0 and dy is against Δ
            assert np.isfinite(found) == (two.high_low[0] < 0 and start[1] < 0)
    assert 10 < crossed < 60


def test_states_that_no_network_has_are_refused():
    good, rates = [1.0, 0.25, -0.25], (1.0, 1.0, 1.0, 1.0)
    TwoPoints(good, *rates)
    for bad in ([0.0, 0.0, 0.0], [-1.0, 0.25, -0.25], [1.0, -0.1, 0.0], [1.0, 0.25, 0.9], [1.0, 0.25, -0.26], [good]):
        with pytest.raises(ValueError, match="^start must "):
            TwoPoints(bad, *rates)
    for bad in ([1.0, 0.25, 0.9], [1.0, 0.25], 1.0, np.ones((0, 3)), [-1.0, 0.25, -0.25]):
        with pytest.raises(ValueError, match="^state must "):
            two_points.loss(bad, 1.0)
    with pytest.raises(ValueError, match=r"^mean_distance must be a number or have shape"):
        two_points.loss([good] * 3, 1.0, mean_distance=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"^start must keep"):
        TwoPoints([1e-300, 0.0, 0.0], 1e200, 1.0, 1e200, 1.0).solve(1.0)
    for bad, name in (
        (([], [0.5], [1.0]), "hidden"),
        (([[1.0]], [0.5], [1.0]), "output"),
        (([1.0], [0.5], []), "target"),
    ):
        with pytest.raises(ValueError, match=f"^{name}_difference must "):
            two_points.state(*bad)


# --- vectors --------------------------------------------------------------------------------------


def random_flow(seed, outputs, hidden=5, scale=1.0):
    random = np.random.default_rng(seed)
    dh, decoder = scale * random.normal(size=hidden), scale * random.normal(size=(outputs, hidden))
    return TwoLayerFlow(dh, decoder, random.normal(size=outputs), *np.exp(0.5 * random.standard_normal(3)))


def same(one, other, tolerance):
    for name in PARTS:
        expected = getattr(other, name)
        close = {"rtol": 0, "atol": tolerance * max(1, np.abs(expected).max())}
        np.testing.assert_allclose(getattr(one, name), expected, **close)


@pytest.mark.parametrize("outputs", [1, 3])
def test_integration_follows_the_gradients_and_conserves_the_matrix(outputs):
    flow = random_flow(7, outputs)
    x, alpha, beta = flow.input_distance, flow.encoder_rate, flow.decoder_rate
    run = flow.integrate(TIMES)
    ends = np.einsum("tmi,tmj->tij", run.decoder, run.decoder), np.einsum("ti,tj->tij", run.hidden, run.hidden)
    matrices = ends[0] / beta - ends[1] / (alpha * x)
    np.testing.assert_allclose(matrices - matrices[0], 0, atol=1e-9 * np.abs(matrices[0]).max())
    np.testing.assert_allclose(run.residual[-1], 0, atol=1e-2)
    step = 1e-4
    near = flow.integrate([0.5 - step, 0.5, 0.5 + step])
    error, row = near.residual[1], near.decoder[1]
    for curve, expected in (
        (near.hidden, -0.5 * alpha * x * row.T @ error),
        (near.decoder, -0.5 * beta * np.outer(error, near.hidden[1])),
    ):
        np.testing.assert_allclose((curve[2] - curve[0]) / (2 * step), expected, rtol=1e-5, atol=1e-6)
    assert [getattr(flow.integrate(0.5), name).shape for name in PARTS] == [(5,), (outputs, 5), (outputs,), (outputs,)]


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.3, 1.0, 2.0]))
def test_solution_for_one_output_is_the_integral(seed, scale):
    flow = random_flow(seed, 1, scale=scale)
    same(flow.solve(TIMES), flow.integrate(TIMES), 1e-8)


def test_solution_of_rank_one_is_the_integral_and_goes_through_zero():
    turned, along, across = 0, np.array([0.6, 0.8]), np.array([0.8, -0.6])
    for start, (x, y, alpha, beta) in amplitudes(30, seed=8):
        decoder = np.outer(start[1] * along + start[2] * across, along)
        flow = TwoLayerFlow(start[0] * along, decoder, np.sqrt(y) * along, x, alpha, beta)
        same(flow.solve(TIMES), flow.integrate(TIMES), 1e-6)  # near the saddle rounding turns dh
        crossing = TwoPoints(state_of(start, y), x, y, alpha, beta).zero_crossing
        assert (flow.solve(200.0).hidden[0] < 0) == np.isfinite(crossing)
        turned += np.isfinite(crossing)
    assert 0 < turned < 30
    still = TwoLayerFlow([1.0], [[0.5], [0.5]], [0.0, 0.0], 1.0, 1.0, 1.0)  # the same targets
    same(still.solve([0.0, 9.0]), still.integrate([0.0, 9.0]), 1e-9)


def test_aligned_vectors_are_the_case_of_three_numbers():
    for factor in (0.6, -0.6, 3.0, -3.0):
        dh, delta = np.array([0.4, -0.3]), np.array([0.8])
        exact = TwoLayerFlow(dh, [factor * dh], delta, 0.5, 1.2, 0.8).solve(TIMES)
        closed = TwoPoints(two_points.state(dh, [factor * (dh @ dh)], delta), 0.5, 0.64, 1.2, 0.8).solve(TIMES)
        np.testing.assert_allclose(two_points.state(exact.hidden, exact.output, delta), closed, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("sign", "delta"), [(1, 1.0), (1, -1.0), (-1, 1.0), (-1, -1.0), (1, 0.0), (0, 1.0), (0, -1.0)])
def test_one_output_at_its_degenerate_starts(sign, delta):
    # balanced and parallel or antiparallel (P or M is zero), at rest at the saddle or learned; and a dark decoder
    dh = np.array([0.6, -0.2])
    flow = TwoLayerFlow(dh, [sign * dh], [delta], 1.0, 1.0, 1.0)
    same(flow.solve([0.0, 1.0, 8.0]), flow.integrate([0.0, 1.0, 8.0]), 1e-9)
    late = flow.solve([1e5, 1e300])
    saddle = sign * delta < 0 or delta == 0
    np.testing.assert_allclose(late.residual[:, 0], -delta if saddle else 0.0, atol=1e-4)


def test_what_starts_at_zero_stays():
    dark = TwoLayerFlow([1.0, 0.0], [[0.0, 0.0]], [0.0], 1.0, 1.0, 1.0)
    np.testing.assert_array_equal(dark.integrate([0.0, 3.0]).hidden, [[1.0, 0.0]] * 2)
    nothing = TwoLayerFlow([0.0, 0.0], [[0.0, 0.0]], [1.0], 1.0, 1.0, 1.0)
    np.testing.assert_array_equal(nothing.solve([0.0, 1e9]).residual, [[-1.0]] * 2)
    np.testing.assert_array_equal(nothing.integrate([0.0, 3.0]).hidden, np.zeros((2, 2)))
    assert TwoLayerFlow([0.0], [[0.0]], [0.0], 1.0, 1.0, 1.0).final_distance == 0


@pytest.mark.parametrize("seed", range(6))
def test_final_distance_of_one_output(seed):
    flow = random_flow(seed, 1, scale=[1e-2, 0.5, 3.0][seed % 3])
    dh, v, delta, x = flow.hidden_difference, flow.decoder[0], flow.target_difference, flow.input_distance
    rates, ratio = (flow.encoder_rate, flow.decoder_rate), flow.encoder_rate / flow.decoder_rate
    end = flow.solve(1e6).hidden
    assert flow.final_distance == pytest.approx(end @ end, rel=1e-10)
    high, low = dh @ dh - ratio * x * (v @ v), np.sqrt(ratio * x) * abs(delta[0])
    assert flow.final_distance > two_points_limits.final_distance(high, low)  # its middle term is positive
    parallel = TwoLayerFlow(dh, [0.7 * dh], delta, x, *rates).final_distance
    start = two_points.state(dh, [0.7 * (dh @ dh)], delta)
    assert parallel == pytest.approx(TwoPoints(start, x, delta[0] ** 2, *rates).fixed_point[0], rel=1e-10)
    large = TwoLayerFlow(dh, [1e6 * dh], delta, x, *rates).final_distance
    assert large == pytest.approx(two_points_limits.final_distance(dh @ dh * (1 - 1e12 * ratio * x), low), rel=1e-8)


def test_flows_without_a_closed_form_are_refused():
    with pytest.raises(ValueError, match="^decoder must see dh alone"):
        random_flow(1, 2).solve(1.0)
    with pytest.raises(ValueError, match="^decoder must see dh alone"):
        TwoLayerFlow([0.0], [[1.0], [1.0]], [1.0, 0.0], 1.0, 1.0, 1.0).solve(1.0)
    with pytest.raises(ValueError, match="^decoder must have one row"):
        random_flow(1, 2).final_distance  # noqa: B018
    for decoder in ([1.0], [[1.0]], [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(ValueError, match="^decoder must "):
            TwoLayerFlow([0.5, 0.1], decoder, [1.0], 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="^decoder must have at least one entry"):
        TwoLayerFlow([], np.zeros((1, 0)), [1.0], 1.0, 1.0, 1.0)


# --- rates that grow with the weights -------------------------------------------------------------

D = 0.8  # X = 1, Y = D²


def start(a, c):
    return [a, c**2, c * (c - D)]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_one_layer_on_either_side_is_the_exact_solution_for_one_output(seed):
    rng = np.random.default_rng(seed)
    dh, v = rng.standard_normal((2, 4)) * np.exp(rng.uniform(-3, 1, (2, 1)))
    alpha, beta, x = np.exp(rng.uniform(-1, 1, 3))
    times = np.linspace(0, 20, 15)
    exact = TwoLayerFlow(dh, v[None], [D], x, alpha, beta).solve(times)
    found = TwoPoints(start(dh @ dh, v @ dh), x, D**2, alpha, beta).layered(times, v @ v)
    expected = two_points.state(exact.hidden, exact.output, [D])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * max(1, np.abs(expected).max()))


def descended(encoder, decoder, hidden, gradient, rate, duration):
    """Descent on a linear net whose layers have equal amplitudes on either side of the hidden layer `encoder`."""
    width, layers = 6, encoder + decoder
    net = nets.Net(1, 1, width, layers - 1, "linear", biases="output")
    directions = np.linalg.qr(np.random.default_rng(3).standard_normal((width, width)))[0]
    ends = [np.ones(1), *(directions[i % width] for i in range(layers - 1)), np.ones(1)]
    sizes = [hidden ** (1 / encoder)] * encoder + [gradient ** (1 / decoder)] * decoder
    weights = tuple(size * np.outer(one, other)[None] for size, one, other in zip(sizes, ends, ends[1:]))
    begin = nets.Parameters(weights, tuple(np.zeros((1, 1, w.shape[2])) for w in weights))
    every = round(duration / rate) // 20
    task = [[-0.5], [0.5]], [[-D / 2], [D / 2]], rate, 20 * every
    return training.train(net, begin, *task, record_every=every, layer=encoder)


@pytest.mark.parametrize("encoder, decoder", [(1, 1), (3, 2), (2, 4)])
def test_deep_linear_nets_descend_as_predicted_up_to_first_order_in_the_learning_rate(encoder, decoder):
    hidden, gradient, errors = 0.3, 0.5, []
    for rate in (0.02, 0.01, 0.005):
        run = descended(encoder, decoder, hidden, gradient, rate, 40)
        two = TwoPoints(start(hidden**2, hidden * gradient), 1.0, D**2, rate * encoder / 2, rate * decoder / 2)
        theory = two.layered(run.epochs, gradient**2, encoder_layers=encoder, decoder_layers=decoder)
        errors.append(np.abs(run.states()[0] - theory).max())
        assert run.squared_output_distance[0, -1] > 0.9 * D**2
    assert errors[0] < 0.02
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, atol=0.15)
    if encoder > 1:  # with constant rates the same curves are missed by far
        assert np.abs(run.states()[0] - two.layered(run.epochs, gradient**2)).max() > 20 * errors[-1]


def test_the_end_keeps_what_the_layers_conserve():
    """L₁ (a/X)^{1/L₁} / α-prefactor and the same of V grow by the same amount."""
    encoder, decoder, alpha, beta, x, a, v, c = 3, 2, 0.7, 1.1, 1.7, 0.05, 0.3, 0.01
    two = TwoPoints(start(a, c), x, D**2, alpha, beta)
    end = two.layered(500.0, v, encoder_layers=encoder, decoder_layers=decoder)
    gained = encoder * ((end[0] / x) ** (1 / encoder) - (a / x) ** (1 / encoder)) / alpha
    final_v = (v ** (1 / decoder) + beta * gained / decoder) ** decoder
    assert end[1] == pytest.approx(D**2, rel=1e-6) and final_v * end[0] >= D**2 * (1 - 1e-6)


def test_a_start_that_one_output_cannot_have_is_refused():
    for bad, y in (([1.0, 0.04, 0.0], D**2), ([1.0, 0.04, 0.04], 0.0)):
        with pytest.raises(ValueError, match="^start must be that of one output"):
            TwoPoints(bad, 1.0, y, 1.0, 1.0).layered([0.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="^decoder_gradient must be at least"):
        TwoPoints(start(0.01, 0.5), 1.0, D**2, 1.0, 1.0).layered([0.0, 1.0], 1.0)

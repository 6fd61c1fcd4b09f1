"""two_points against integration, high-precision arithmetic, the equations themselves, and gradient descent."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from two_point_data import amplitudes, integrated, state_of

from lib.representations import nets, two_points
from lib.representations.two_points import TwoArrows, TwoPoints

TIMES = np.linspace(0, 12, 40)
SIZE = st.floats(0.05, 5)
SIGNED = st.one_of(st.just(0.0), st.floats(1e-6, 3), st.floats(-3, -1e-6))  # smaller ones have squares that underflow


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
    np.testing.assert_allclose(two.integrate(TIMES), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(two.integrate(TIMES[3]), expected[3], rtol=1e-9)


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
        np.testing.assert_allclose(two.solve([1e6, 1e300]), [end] * 2, rtol=1e-7, atol=1e-7)
        assert two.final_distance == pytest.approx(end[0], rel=1e-7)
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
        rest = TwoPoints([two.final_distance, y, 0.0], x, y, alpha, beta)
        assert np.abs(rest.derivative).max() < 1e-12 * max(1, two.final_distance, y)


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
    np.testing.assert_allclose(slower, seen(TwoArrows([1.0], [-2.0], 1.0, 1.0, 1.0, 0.25), [0.0, 1.0, 3.0]), rtol=1e-8)
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
    exact = brentq(lambda t: two.solve(t)[0] - two.final_distance / 2, 0.0, 1e3)
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


# --- limits ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_final_distance_is_the_positive_root_without_cancellation(high, low):
    found = two_points.final_distance(high, low)
    assert found > 0 and found == pytest.approx(low * np.exp(np.arcsinh(high / (2 * low))), rel=1e-12)
    other = two_points.final_distance(-high, low)
    assert other * found == pytest.approx(low**2, rel=1e-12)  # product of the roots


def test_final_distance_limits_and_shapes():
    assert two_points.final_distance(-1e12, 1.0) == pytest.approx(1e-12, rel=1e-14)
    np.testing.assert_array_equal(two_points.final_distance([-3.0, 0.0, 3.0], 0.0), [0, 0, 3])
    assert two_points.final_distance(np.ones((3, 1)), np.ones(2)).shape == (3, 2)
    with pytest.raises(ValueError, match=r"^low must broadcast with high"):
        two_points.final_distance([1.0, 2.0], [1.0, 2.0, 3.0])


def slope(z, x, y, alpha, beta):
    """Eq. (7) for complex arguments."""
    a, b, w = z
    return np.array([-alpha * x * w, -w * (beta * a + alpha * x * b / a),
                     -0.5 * beta * (3 * w - b + y) * a - 0.5 * alpha * x * (b + w) * w / a])  # fmt: skip


def test_rates_are_eigenvalues_of_the_jacobian_at_the_end():
    for start, constants in amplitudes(20, seed=3):
        two = TwoPoints(state_of(start, constants[1]), *constants)
        # one complex step of each variable: the derivative without a difference of close numbers
        end = np.array([two.final_distance, constants[1], 0.0])
        shifted = end[:, None] + 1e-30j * np.eye(3)  # (3, 3)
        jacobian = np.stack([slope(one, *constants).imag / 1e-30 for one in shifted.T], axis=1)
        values = np.sort(np.linalg.eigvals(jacobian).real)
        rates = two.decay_rates
        # the third eigenvalue belongs to motion across the surfaces of constant A_high, and is zero
        np.testing.assert_allclose(values, np.sort([*rates, 0.0]), rtol=1e-8, atol=1e-8 * np.abs(values).max())
        assert np.all(rates < 0)


@pytest.mark.parametrize("across", [0.0, 0.5])
def test_late_decay_has_the_two_rates(across):
    two = TwoPoints(state_of(np.array([0.8, 0.3, across]), 1.0), 1.0, 1.0, 3.0, 1.5)
    rates, losses = two.decay_rates, two.loss([9.0, 10.0])
    # the loss is (e∥² + e⊥²)/8: e∥ decays with the second rate, e⊥² with the first
    expected = max(2 * rates[1], rates[0]) if across else 2 * rates[1]
    assert np.log(losses[1] / losses[0]) == pytest.approx(expected, rel=0.02)


def started(high, low):
    """Two points with these A_high and A_low, α = β = X = 1."""
    a = two_points.final_distance(high, 0.5 * low)  # any a and b with a - b/a = A_high
    b = a * (a - high)
    return TwoPoints([a, b, b - low * np.sqrt(b)], 1.0, low**2, 1.0, 1.0)


def test_regime_is_a_statement_about_the_end_in_any_units():
    for unit in (1e-3, 1.0, 1e3):
        for high, limit, name in ((0.19, 1.0, "rich"), (10.1, 10.1, "lazy"), (-10.1, 1 / 10.1, "collapse")):
            two = started(unit * high, unit)
            assert two.high_low == pytest.approx((unit * high, unit), rel=1e-9)
            assert two.final_distance == pytest.approx(unit * limit, rel=0.11) and two.regime() == name
    assert started(9.9, 1.0).regime() == "between" and started(9.9, 1.0).regime(margin=4.0) == "lazy"
    assert started(0.5, 1.0).regime() == "between" and started(0.4 - 1e-9, 1.0).regime() == "rich"
    with pytest.raises(ValueError, match=r"^start must have A_high other than 0"):
        TwoPoints([1.0, 1.0, 1.0], 1.0, 0.0, 1.0, 1.0).regime()


# --- two arrows -----------------------------------------------------------------------------------


def random_flow(seed, hidden=5, scale=1.0):
    random = np.random.default_rng(seed)
    arrows = scale * random.normal(size=(2, hidden))
    return TwoArrows(*arrows, random.normal(), *np.exp(0.5 * random.standard_normal(3)))


def same(flow, times, tolerance):
    for mine, expected in zip(flow.solve(times), flow.integrate(times), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))


def seen(flow, times):
    """(a, b, w) of the arrows, from the closed form."""
    hidden, _, residual = flow.solve(times)
    return two_points.state(hidden, residual[:, None] + flow.target_difference, [flow.target_difference])


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.3, 1.0, 2.0]))
def test_arrows_are_the_integral_and_keep_area_and_excess(seed, scale):
    flow = random_flow(seed, scale=scale)
    same(flow, TIMES, 1e-8)
    x, rates = flow.input_distance, (flow.encoder_rate, flow.decoder_rate)
    hidden, pull, residual = flow.solve(TIMES)
    assert flow.solve(TIMES[5])[2] == residual[5] and type(flow.integrate(0.5)[2]) is float
    for h, v in zip(hidden[::13], pull[::13]):
        later, unit = TwoArrows(h, v, flow.target_difference, x, *rates), max(h @ h, flow.hidden @ flow.hidden)
        np.testing.assert_allclose([later.excess, later.area], [flow.excess, flow.area], rtol=0, atol=1e-9 * unit)


def test_integration_follows_the_gradients():
    flow, step = random_flow(7), 1e-4
    x, alpha, beta = flow.input_distance, flow.encoder_rate, flow.decoder_rate
    hidden, pull, residual = flow.integrate([0.5 - step, 0.5, 0.5 + step])
    slopes = -0.5 * alpha * x * residual[1] * pull[1], -0.5 * beta * residual[1] * hidden[1]
    for curve, expected in zip((hidden, pull), slopes, strict=True):
        np.testing.assert_allclose((curve[2] - curve[0]) / (2 * step), expected, rtol=1e-5, atol=1e-6)


def test_aligned_arrows_are_the_case_of_three_numbers_and_go_through_zero():
    turned = 0
    for (s, p, _), (x, y, alpha, beta) in amplitudes(30, seed=8):
        line = np.array([0.6, 0.8])
        flow = TwoArrows(s * line, p * line, np.sqrt(y), x, alpha, beta)
        three = TwoPoints(state_of(np.array([s, p, 0.0]), y), x, y, alpha, beta)
        expected = three.solve(TIMES)
        np.testing.assert_allclose(seen(flow, TIMES), expected, rtol=1e-8, atol=1e-9 * max(1, expected.max()))
        assert (flow.excess, flow.final_distance) == pytest.approx((three.high_low[0], three.final_distance), rel=1e-9)
        assert flow.area < 1e-7 * max(s**2, p**2)
        assert (flow.solve(200.0)[0][0] < 0) == np.isfinite(three.zero_crossing)
        turned += np.isfinite(three.zero_crossing)
    assert 0 < turned < 30


@pytest.mark.parametrize(("sign", "delta"), [(1, 1.0), (1, -1.0), (-1, 1.0), (-1, -1.0), (1, 0.0), (0, 1.0), (0, -1.0)])
def test_arrows_at_their_degenerate_starts(sign, delta):
    # balanced and parallel or antiparallel (P or M is zero), at rest at the saddle or learned; and a dark decoder
    dh = np.array([0.6, -0.2])
    flow = TwoArrows(dh, sign * dh, delta, 1.0, 1.0, 1.0)
    same(flow, [0.0, 1.0, 8.0], 1e-9)
    saddle = sign * delta < 0 or delta == 0
    np.testing.assert_allclose(flow.solve([1e5, 1e300])[2], -delta if saddle else 0.0, atol=1e-4)


def test_what_starts_at_zero_stays():
    dark = TwoArrows([1.0, 0.0], [0.0, 0.0], 0.0, 1.0, 1.0, 1.0)
    np.testing.assert_array_equal(dark.integrate([0.0, 3.0])[0], [[1.0, 0.0]] * 2)
    nothing = TwoArrows([0.0, 0.0], [0.0, 0.0], 1.0, 1.0, 1.0, 1.0)
    np.testing.assert_array_equal(nothing.solve([0.0, 1e9])[2], [-1.0] * 2)
    np.testing.assert_array_equal(nothing.integrate([0.0, 3.0])[0], np.zeros((2, 2)))
    assert TwoArrows([0.0], [0.0], 0.0, 1.0, 1.0, 1.0).final_distance == 0


@pytest.mark.parametrize("seed", range(6))
def test_final_distance_of_arrows(seed):
    flow = random_flow(seed, scale=[1e-2, 0.5, 3.0][seed % 3])
    end, x, ratio = flow.solve(1e6)[0], flow.input_distance, flow.encoder_rate / flow.decoder_rate
    assert flow.final_distance == pytest.approx(end @ end, rel=1e-10)
    low = np.sqrt(ratio * x) * abs(flow.target_difference)
    assert flow.final_distance > two_points.final_distance(flow.excess, low)  # its area is positive
    a, v, c = flow.hidden @ flow.hidden, flow.pull @ flow.pull, flow.pull @ flow.hidden
    assert (flow.excess, flow.area) == pytest.approx((a - ratio * x * v, np.sqrt(ratio * x * (a * v - c**2))), rel=1e-9)


def test_arrows_that_do_not_fit_are_refused():
    for hidden, pull, name in (([0.5, 0.1], [1.0], "pull"), ([], [], "hidden"), ([0.5], [[0.5]], "pull")):
        with pytest.raises(ValueError, match=f"^{name} must "):
            TwoArrows(hidden, pull, 1.0, 1.0, 1.0, 1.0)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6))
def test_pairs_with_one_target_or_two_end_within_the_bounds_of_the_chapter_on_feature_collapse(seed):
    """Theorem `thm-feature-collapse-pairs`: also where the arrows turn."""
    rng = np.random.default_rng(seed)
    dh, v = rng.standard_normal((2, 3)) * np.exp(rng.uniform(-4, 1, (2, 1)))
    gap, x, alpha, beta = np.exp(rng.uniform(-1, 1, 4))
    same, other = (TwoArrows(dh, v, target, x, alpha, beta) for target in (0.0, gap))
    a, low = dh @ dh, np.sqrt(alpha / beta * x) * gap
    high = a - alpha / beta * x * (v @ dh) ** 2 / a
    assert max(high, 0) * (1 - 1e-12) <= same.final_distance <= a * (1 + 1e-12)
    assert same.final_distance == pytest.approx((same.excess + np.hypot(same.excess, 2 * same.area)) / 2, rel=1e-6)
    assert other.final_distance >= (low + min(other.excess, 0) / 2) * (1 - 1e-12)
    distances = (same.solve(np.linspace(0, 50, 30))[0] ** 2).sum(axis=1)
    assert np.all(np.diff(distances) <= 1e-12 * a)


def test_turning_arrows_end_beyond_what_three_numbers_say():
    """With one target ½(√5 - 1) and not A_high = 0; with two and A < 0 below A_low, although A_high > 0."""
    turning = TwoArrows([1.0, 0.0], [1.0, 1.0], 0.0, 1.0, 1.0, 1.0)
    assert turning.final_distance == pytest.approx((np.sqrt(5) - 1) / 2)
    assert (turning.solve(1e3)[0] ** 2).sum() == pytest.approx(turning.final_distance)
    unlike = TwoArrows([0.1, 0.0], [0.0, np.sqrt(10)], 1.0, 1.0, 1.0, 1.0)
    assert unlike.excess < 0 and unlike.final_distance == pytest.approx(0.10892, rel=1e-4)


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
    found = TwoPoints(start(dh @ dh, v @ dh), x, D**2, alpha, beta).layered(times, v @ v)
    expected = seen(TwoArrows(dh, v, D, x, alpha, beta), times)
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
    return net.train(begin, *task, record_every=every, layer=encoder)


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

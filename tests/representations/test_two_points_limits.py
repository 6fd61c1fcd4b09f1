"""two_points_limits against the closed form of two_points, numerical Jacobians, roots and integration."""

import numpy as np
import pytest
from bad_input import AXIS, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from two_point_data import amplitudes, integrated, state_of

from lib.representations import two_points, two_points_limits


@settings(deadline=None, max_examples=60)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_final_distance_is_the_positive_root_without_cancellation(high, low):
    found = two_points_limits.final_distance(high, low)
    assert found > 0 and found == pytest.approx(low * np.exp(np.arcsinh(high / (2 * low))), rel=1e-12)
    assert two_points_limits.final_distance(-high, low) * found == pytest.approx(
        low**2, rel=1e-12
    )  # product of the roots


def test_final_distance_limits_and_shapes():
    assert two_points_limits.final_distance(-1e12, 1.0) == pytest.approx(1e-12, rel=1e-14)
    np.testing.assert_array_equal(two_points_limits.final_distance([-3.0, 0.0, 3.0], 0.0), [0, 0, 3])
    assert two_points_limits.final_distance(np.ones((3, 1)), np.ones(2)).shape == (3, 2)
    for a, regime, final in ((32.0, "lazy", 19.25), (6.4, "collapse", 0.01736)):
        high, low = two_points_limits.high_low([a, 409.6, 409.6 - np.sqrt(409.6)], 1.0, 1.0, 1.0)
        assert two_points_limits.regime(high, low) == regime
        assert two_points_limits.final_distance(high, low) == pytest.approx(final, rel=5e-4)
    assert two_points_limits.regime(9.9, 1.0) == "between" and two_points_limits.regime(9.9, 1.0, margin=4.0) == "lazy"
    assert two_points_limits.regime(0.5, 1.0) == "between" and two_points_limits.regime(0.4, 1.0) == "rich"
    with pytest.raises(ValueError, match=r"^low must be > 0 where"):
        two_points_limits.regime(0.0, 0.0)


def test_regime_is_a_statement_about_the_end_in_any_units():
    for unit in (1e-6, 1.0, 1e6):
        for high, limit in ((0.19, 1.0), (10.1, 10.1), (-10.1, 1 / 10.1)):
            assert two_points_limits.final_distance(unit * high, unit) == pytest.approx(unit * limit, rel=0.11)
            assert two_points_limits.regime(unit * high, unit) == {1.0: "rich", 10.1: "lazy"}.get(limit, "collapse")


def slope(z, x, y, alpha, beta):
    """Eq. (7) for complex arguments."""
    a, b, w = z
    return np.array([-alpha * x * w, -w * (beta * a + alpha * x * b / a),
                     -0.5 * beta * (3 * w - b + y) * a - 0.5 * alpha * x * (b + w) * w / a])  # fmt: skip


def test_fixed_point_stops_the_flow_and_attracts_at_the_rates_given():
    for start, (x, y, alpha, beta) in amplitudes(20, seed=3):
        ratio, begin = alpha / beta, state_of(start, y)
        rest = two_points_limits.fixed_point(begin, x, y, ratio)
        assert np.abs(two_points.derivative(rest, x, y, alpha, beta)).max() < 1e-12 * max(1, rest.max())
        end = two_points.trajectory([1e7], begin, x, y, alpha, beta)[0]
        np.testing.assert_allclose(end, rest, rtol=1e-7, atol=1e-7)
        # one complex step of each variable: the derivative without a difference of close numbers
        jacobian = np.empty((3, 3))
        for i in range(3):
            shifted = rest.astype(complex)
            shifted[i] += 1e-30j
            jacobian[:, i] = slope(shifted, x, y, alpha, beta).imag / 1e-30
        values = np.sort(np.linalg.eigvals(jacobian).real)
        high, low = two_points_limits.high_low(begin, x, y, ratio)
        rates = two_points_limits.decay_rates(high, low, beta)
        # the third eigenvalue belongs to motion across the surfaces of constant A_high, and is zero
        np.testing.assert_allclose(values, np.sort([*rates, 0.0]), rtol=1e-8, atol=1e-8 * np.abs(values).max())
        assert np.all(rates < 0)


def test_late_decay_has_the_two_rates():
    for across in (0.0, 0.5):
        start = state_of(np.array([0.8, 0.3, across]), 1.0)
        high, low = two_points_limits.high_low(start, 1.0, 1.0, 2.0)
        rates = two_points_limits.decay_rates(high, low, 1.5)
        late = np.array([9.0, 10.0])
        losses = two_points.loss_curve(late, start, 1.0, 1.0, 3.0, 1.5)
        # the loss is (e∥² + e⊥²)/8: e∥ decays with the second rate, e⊥² with the first
        expected = max(2 * rates[1], rates[0]) if across else 2 * rates[1]
        assert np.log(losses[1] / losses[0]) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("scale", [1e-1, 1e-2, 1e-3, 1e-4])
def test_half_time_of_a_balanced_start_and_its_logarithm(scale):
    def start(scale):
        return state_of(np.array([scale, scale, 0.0]), 1.0)

    found = two_points_limits.half_time(start(scale), 1.0, 1.0, 1.0, 1.0)
    exact = brentq(
        lambda t: two_points.trajectory([t], start(scale), 1.0, 1.0, 1.0, 1.0)[0, 0] - 0.5, 0.0, 100.0, xtol=1e-12
    )
    assert found == pytest.approx(exact, rel=1e-10)  # balanced and aligned: no decaying part
    longer = two_points_limits.half_time(start(scale / 10), 1.0, 1.0, 1.0, 1.0) - found
    assert longer == pytest.approx(np.log(100) / (2 * 0.5), rel=2 * scale**2 + 1e-9)


def test_half_time_of_an_unaligned_start_is_within_a_percent_and_scales_with_the_rates():
    start = state_of(np.array([1e-3, 5e-4, 8e-4]), 2.0)
    found = two_points_limits.half_time(start, 0.5, 2.0, 0.3, 0.7)
    final = two_points_limits.fixed_point(start, 0.5, 2.0, 0.3 / 0.7)[0]
    exact = brentq(lambda t: two_points.trajectory([t], start, 0.5, 2.0, 0.3, 0.7)[0, 0] - final / 2, 0.0, 1e3)
    assert found == pytest.approx(exact, rel=0.01)
    assert two_points_limits.half_time(start, 0.5, 2.0, 0.03, 0.07) == pytest.approx(10 * found, rel=1e-12)
    for late in ([1.0, 1.0, 0.0], [1.0, 1.0, 2.0]):  # at the end; on the saddle's stable side
        with pytest.raises(ValueError, match=r"^start must be on the plateau"):
            two_points_limits.half_time(late, 1.0, 1.0, 1.0, 1.0)


def test_zero_crossing_is_where_the_signed_amplitude_changes_sign():
    crossed = 0
    for start, constants in amplitudes(80, seed=6):
        x, y, alpha, beta = constants
        found = two_points_limits.zero_crossing(state_of(start, y), x, y, alpha, beta)
        times = np.linspace(0, 60, 400)
        s = integrated(times, start, constants, 1e-12)[0]
        if np.isfinite(found):
            crossed += 1
            assert integrated(np.array([0.0, found]), start, constants)[0, 1] == pytest.approx(
                0, abs=1e-9 * max(1, start[0])
            )
            around = two_points.trajectory(
                found + np.array([-1e-3, 0, 1e-3]) * found, state_of(start, y), x, y, alpha, beta
            )[:, 0]
            assert around[1] < 1e-4 * around[[0, 2]].min()
        else:
            assert np.all(s > 0)
        if start[2] == 0:  # one output: exactly if A_high < 0 and dy is against Δ
            assert np.isfinite(found) == (
                two_points_limits.high_low(state_of(start, y), x, y, alpha / beta)[0] < 0 and start[1] < 0
            )
    assert 10 < crossed < 60


# a₀, b₀ with A_high of each sign
TARGETS_ALIKE = [(2.0, 2.0), (1.0, 2.0), (1.0, 6.0), (1.0, 0.0), (1e-9, 1e-22)]


@pytest.mark.parametrize(("a", "b"), TARGETS_ALIKE)
def test_identical_targets_are_the_solution_of_the_equations(a, b):
    times, alpha, beta, x = np.linspace(0, 4, 30), 1.0, 2.0, 1.0
    found = two_points_limits.identical_targets(times, [a, b], x, alpha, beta)
    high = a - alpha / beta * x * b / a
    ode = solve_ivp(
        lambda t, z: [-beta * z[0] ** 2 + beta * high * z[0]],
        (0, 4),
        [a],
        t_eval=times,
        rtol=1e-12,
        atol=1e-20,
        method="DOP853",
    )
    np.testing.assert_allclose(found[:, 0], ode.y[0], rtol=1e-8)
    if b > 0 and high != 0:
        e = (high / a - 1) * np.exp(-beta * high * times)
        np.testing.assert_allclose(found[:, 0], high / (1 + e), rtol=1e-10)
        np.testing.assert_allclose(found[:, 1], -beta / (alpha * x) * high**2 * e / (1 + e) ** 2, rtol=1e-8)
    end = two_points_limits.identical_targets([1e308], [a, b], x, alpha, beta)[0]
    np.testing.assert_allclose(end, [max(high, 0), 0, 0], rtol=1e-12, atol=1e-300)


def test_the_printed_exponent_of_identical_targets_fails():
    a, beta, t = 2.0, 2.0, 0.5
    b = beta * a * (a - 1)  # A_high = 1
    printed = 1 / (1 + (1 / a - 1) * np.exp(-t))
    assert abs(two_points_limits.identical_targets([t], [a, b], 1.0, 1.0, beta)[0, 0] - printed) > 1e-2


# --- bad input: every public function, every argument ---------------------------------------------

START = {"start": [0.1, 0.01, -0.09], "input_distance": 1.0, "target_distance": 1.0}
RATES = {"encoder_rate": 1.0, "decoder_rate": 1.0}
CALLS = {
    two_points_limits.final_distance: {"high": 1.0, "low": 1.0},
    two_points_limits.high_low: {**START, "rate_ratio": 1.0},
    two_points_limits.fixed_point: {**START, "rate_ratio": 1.0},
    two_points_limits.decay_rates: {"high": 1.0, "low": 1.0, "decoder_rate": 1.0},
    two_points_limits.regime: {"high": 1.0, "low": 1.0, "margin": 5.0},
    two_points_limits.half_time: {**START, **RATES},
    two_points_limits.zero_crossing: {**START, **RATES},
    two_points_limits.identical_targets: {"times": [0.0, 1.0], "start": [1.0, 0.5], "input_distance": 1.0, **RATES},
}
BAD = {
    "high": [np.nan, np.inf, "1", None, [[1], [1, 2]], True],
    "low": [-1.0, np.nan, np.inf, "1", None, [-1.0], True],
    "start": [
        [],
        1.0,
        [0.0, 0.0, 0.0],
        [1.0, 0.25, 0.9],
        [1.0, -0.1, 0.0],
        [0.0, 1.0],
        [1.0, -1.0],
        [1.0, np.nan, 0.0],
        "start",
        None,
    ],
    "margin": [1.0, *NUMBER],
    "times": AXIS,
    "rate_ratio": NUMBER,
    "input_distance": NUMBER,
    "encoder_rate": NUMBER,
    "decoder_rate": NUMBER,
    "target_distance": [-1.0, np.nan, np.inf, "1", None, [0.1], True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"^low must broadcast with high"):
        two_points_limits.final_distance([1.0, 2.0], [1.0, 2.0, 3.0])

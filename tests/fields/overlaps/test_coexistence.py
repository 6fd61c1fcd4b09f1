"""lib.fields.overlaps.coexistence against the full equations of the two phases, the action of
lib.fields.overlaps.staircase, and quadrature at growing dimension.
"""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, minimize_scalar

from lib.fields.overlaps import _coexistence, coexistence, single_index, staircase

EPSILON = st.one_of(st.floats(-2, -0.02), st.floats(0.02, 2))
STRENGTH = st.floats(0.1, 1000)
VARIANCE = st.floats(0.2, 3)
FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it


def at_finite_dimension(dimension, strength, load, epsilon, variance=1.0, perpendicular="fixed"):
    samples, ways = 1000 * load, {"weight_variance": variance, "perpendicular": perpendicular}
    return staircase.solve(dimension, 1000, samples, epsilon, readout_variance=strength * dimension / samples, **ways)


def action(m, residual, strength, load, variance):
    """S/d at g_K and ν."""
    return staircase.action(m, residual, 2 / np.pi * strength * load, 1, weight_variance=variance, **FIXED)


# --- the equations of a state -------------------------------------------------------------------------------


def unbalanced(state, strength, variance, epsilon):
    """(1 + P_e M)(b, √6c) - Y for units around zero, whose overlaps are small, and outliers."""
    r = state.residuals * [1, np.sqrt(6)]
    kernel = np.diag([4 / np.pi * state.variance / (1 + 2 * variance), 0])
    hat = single_index.projections("erf", state.minimum, variance)
    return r + strength * (kernel + state.outliers * np.outer(hat, hat)) @ r - single_index.staircase(epsilon)


@settings(deadline=None, max_examples=80)
@given(STRENGTH, st.floats(0, 4), EPSILON, VARIANCE)
def test_a_state_solves_its_equations_and_nowhere_is_the_action_negative(strength, ratio, epsilon, variance):
    load = ratio * coexistence.maxwell(strength, epsilon, weight_variance=variance, **FIXED).load
    state = coexistence.coexistence(strength, load, epsilon, weight_variance=variance, **FIXED)
    assert np.abs(unbalanced(state, strength, variance, epsilon)).max() < 1e-9 * (1 + abs(epsilon))
    stiffness = staircase.landau(state.residuals, 2 / np.pi * strength * load, weight_variance=variance)[0]
    assert state.variance == pytest.approx(1 / (2 * stiffness), rel=1e-6)
    assert action(np.linspace(0, 8, 4001), state.residuals, strength, load, variance).min() > -1e-12 * (
        1 + load * strength
    )
    if ratio > 1 + 1e-9:
        assert state.outliers > 0 and state.learnabilities[1] > 0
        m = state.minimum
        depth = m**2 / (2 * variance)
        assert abs(action(m, state.residuals, strength, load, variance)) < 1e-10 * depth
        sides = action(m * (1 + np.array([-1e-4, 1e-4])), state.residuals, strength, load, variance)
        assert abs(sides[1] - sides[0]) < 1e-6 * depth
        assert 0 < m**2 < 1.5 * (1 + 2 * variance)
    elif ratio < 1 - 1e-9:
        assert state.outliers == state.minimum == state.learnabilities[1] == 0


@settings(deadline=None, max_examples=40)
@given(STRENGTH, st.floats(0, 100), EPSILON, VARIANCE)
def test_the_gaussian_phase_is_a_fixed_point_whose_linear_residual_alone_feeds_back(strength, load, epsilon, variance):
    def unlearned(b):
        stiff = 1 - 4 / np.pi * strength * load * variance / (1 + 2 * variance) * b * b
        return b * (stiff + strength * 4 / np.pi * variance / (1 + 2 * variance)) - stiff

    pull = 4 / np.pi * strength * load * variance / (1 + 2 * variance)
    b = brentq(unlearned, 0, min(1, pull**-0.5 if pull > 0 else 1), xtol=1e-16)
    state = coexistence.gaussian(strength, load, epsilon, weight_variance=variance)
    assert state.residuals == pytest.approx([b, epsilon], rel=1e-9)
    assert state.variance == pytest.approx(variance / (1 - pull * b * b), rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(STRENGTH, EPSILON, VARIANCE)
def test_lines_of_the_phase_diagram_by_the_shape_of_the_action(strength, epsilon, variance):
    maxwell, spinodal = (
        line(strength, epsilon, weight_variance=variance, **FIXED)
        for line in (coexistence.maxwell, coexistence.spinodal)
    )
    assert 0.7 < spinodal.load / maxwell.load < 1
    for line in (maxwell, spinodal):
        b = coexistence.gaussian(strength, line.load, epsilon, weight_variance=variance).residuals[0]
        assert line.residual == pytest.approx(b, rel=1e-8)
    coupling = 2 / np.pi * strength * maxwell.load
    found = staircase.extrema([maxwell.residual, epsilon], coupling, weight_variance=variance)
    assert found.size == 2 and found[1] == pytest.approx(maxwell.minimum, rel=1e-5)
    assert (
        abs(action(maxwell.minimum, [maxwell.residual, epsilon], strength, maxwell.load, variance))
        < 1e-10 * maxwell.minimum**2 / variance
    )
    # The second minimum is there just beyond the spinodal and not before; both extrema start from its overlap.
    beyond, before = (
        staircase.extrema(state.residuals, 2 / np.pi * strength * spinodal.load * ratio, weight_variance=variance)
        for ratio in (1 + 1e-6, 1 - 1e-6)
        for state in [coexistence.gaussian(strength, spinodal.load * ratio, epsilon, weight_variance=variance)]
    )
    assert beyond.size == 2 and before.size == 0
    assert np.sqrt(beyond.prod()) == pytest.approx(spinodal.minimum, rel=2e-2)


def test_the_numbers_of_the_maxwell_construction():
    line = coexistence.maxwell(30.0, -0.3, **FIXED)
    assert [float(value) for value in (line.load, line.minimum, line.residual)] == pytest.approx(
        [3.361, 1.494, 0.0617], abs=6e-4
    )
    assert 1 - coexistence.spinodal(30.0, -0.3, **FIXED).load / line.load == pytest.approx(0.15, abs=0.025)
    state = coexistence.coexistence(30.0, line.load * np.array([0.9, 1, 1.1, 1.25, 1.6, 2.5]), -0.3, **FIXED)
    np.testing.assert_allclose(state.learnabilities[:, 1], [0, 0, 0.033, 0.075, 0.148, 0.259], atol=6e-4)
    np.testing.assert_allclose(state.outliers[2:], [0.037, 0.088, 0.19, 0.37], atol=4e-3)
    quadrature = [
        at_finite_dimension(3200, 30.0, load, -0.3) for load in line.load * np.array([0.9, 1, 1.1, 1.25, 1.6, 2.5])
    ]
    np.testing.assert_allclose(
        [s.learnabilities[1] for s in quadrature], [0, 0.001, 0.034, 0.075, 0.149, 0.259], atol=6e-4
    )
    np.testing.assert_allclose([3200 * s.outliers for s in quadrature[2:]], [0.038, 0.089, 0.19, 0.37], atol=5e-3)


# --- the length across the teacher's direction free ---------------------------------------------------------

FREE = {"perpendicular": "free"}


def cost(m, q, residual, strength, load, variance):
    """S/d as a function of the overlap and of |w_⊥|²."""
    u = m**2 / (1 + 2 * q + 2 * m**2)
    rest = m**2 / (2 * variance) + (q / variance - 1 - np.log(q / variance)) / 2
    return rest - 2 / np.pi * strength * load * u * (residual[0] - 2 * residual[1] * u) ** 2


def profile(residual, strength, load, variance):
    """Overlaps, and the least cost over |w_⊥|² at each."""
    m = np.linspace(0.02, 5, 250)[:, None] * np.sqrt(variance)
    return m[:, 0], cost(m, variance * np.geomspace(1e-2, 2, 300), residual, strength, load, variance).min(axis=1)


@settings(deadline=None, max_examples=40)
@given(STRENGTH, st.floats(0, 4), EPSILON, VARIANCE)
def test_a_state_of_free_length_solves_its_equations_and_nowhere_is_the_action_negative(
    strength, ratio, epsilon, variance
):
    ways = FREE | {"weight_variance": variance}
    load = ratio * coexistence.maxwell(strength, epsilon, **ways).load
    state = coexistence.coexistence(strength, load, epsilon, **ways)
    r, v = state.residuals * [1, np.sqrt(6)], state.minimum / np.sqrt(0.5 + state.perpendicular + state.minimum**2)
    hat = np.array([np.sqrt(2 / np.pi) * v, -np.sqrt(1 / (3 * np.pi)) * v**3])
    kernel = np.diag([4 / np.pi * state.variance / (1 + 2 * variance), 0]) + state.outliers * np.outer(hat, hat)
    assert np.abs(r + strength * kernel @ r - single_index.staircase(epsilon)).max() < 1e-9 * (1 + abs(epsilon))
    stiffness = staircase.landau(state.residuals, 2 / np.pi * strength * load, weight_variance=variance)[0]
    assert state.variance == pytest.approx(1 / (2 * stiffness), rel=1e-6)
    setting = state.residuals, strength, load, variance
    assert profile(*setting)[1].min() > -1e-9
    if ratio > 1 + 1e-9:
        m, q = float(state.minimum), float(state.perpendicular)
        depth = m**2 / (2 * variance)
        assert state.outliers > 0 and 0 < q < variance and state.learnabilities[1] > 0
        assert abs(cost(m, q, *setting)) < 1e-10 * depth
        for along, across in ((1e-4, 0), (0, 1e-4)):
            sides = [cost(m * (1 + sign * along), q * (1 + sign * across), *setting) for sign in (-1, 1)]
            assert abs(sides[1] - sides[0]) < 1e-6 * depth
    elif ratio < 1 - 1e-9:
        assert state.outliers == state.minimum == state.learnabilities[1] == 0 and state.perpendicular == variance


@settings(deadline=None, max_examples=20)
@given(STRENGTH, EPSILON, VARIANCE)
def test_lines_of_free_length_by_the_shape_of_the_action(strength, epsilon, variance):
    ways = FREE | {"weight_variance": variance}
    maxwell, spinodal = (line(strength, epsilon, **ways) for line in (coexistence.maxwell, coexistence.spinodal))
    assert 0.6 < spinodal.load / maxwell.load < 1
    assert maxwell.load < coexistence.maxwell(strength, epsilon, weight_variance=variance, **FIXED).load
    for line in (maxwell, spinodal):
        assert line.residual == pytest.approx(
            coexistence.gaussian(strength, line.load, epsilon, weight_variance=variance).residuals[0], rel=1e-8
        )
    at = cost(
        float(maxwell.minimum),
        float(maxwell.perpendicular),
        [maxwell.residual, epsilon],
        strength,
        maxwell.load,
        variance,
    )
    assert abs(at) < 1e-10 * maxwell.minimum**2 / variance
    # The least cost at each u, whose slope first vanishes on the spinodal.
    u = np.linspace(0.001, 0.499, 20_001)
    for ratio, there in ((0.999, False), (1.001, True)):
        b, load = (
            coexistence.gaussian(strength, spinodal.load * ratio, epsilon, weight_variance=variance).residuals[0],
            spinodal.load * ratio,
        )
        least = (
            u / (2 * variance * (1 - 2 * u))
            - np.log(1 - 2 * u) / 2
            - 2 / np.pi * strength * load * u * (b - 2 * epsilon * u) ** 2
        )
        falls = np.diff(least) < 0
        if spinodal.load < 0.95 * maxwell.load:
            assert np.any(falls) == there
            if there:
                m2, q = spinodal.minimum**2, spinodal.perpendicular
                assert u[:-1][falls].min() < m2 / (1 + 2 * q + 2 * m2) < u[:-1][falls].max()


def test_the_numbers_of_the_maxwell_construction_at_free_length():
    line = coexistence.maxwell(30.0, -0.3, **FREE)
    found = [float(value) for value in (line.load, line.residual, line.minimum, line.perpendicular)]
    np.testing.assert_allclose(found, [2.354, 0.0644, 1.336, 0.313], atol=6e-4)
    # Another route: the lowest point of the cost in both variables is as low as the prior.

    def lowest(load):
        b = coexistence.gaussian(30.0, load, -0.3).residuals[0]
        return minimize(lambda z: cost(z[0], np.exp(z[1]), [b, -0.3], 30.0, load, 1.0), [1.3, -1.2], tol=1e-14).fun

    assert brentq(lowest, 2.2, 2.5, xtol=1e-10) == pytest.approx(line.load, rel=1e-6)
    assert (
        coexistence.maxwell(30.0, -0.3, **FIXED).perpendicular
        == coexistence.gaussian(30.0, 1.0, -0.3).perpendicular
        == 1
    )


@pytest.mark.parametrize(("epsilon", "strength", "variance"), [(-0.3, 30.0, 1.0), (0.2, 50.0, 0.6)])
def test_quadrature_over_both_variables_converges_to_the_limit(epsilon, strength, variance):
    load = 1.5 * coexistence.maxwell(strength, epsilon, weight_variance=variance, **FREE).load
    limit = coexistence.coexistence(strength, load, epsilon, weight_variance=variance, **FREE)
    states = [at_finite_dimension(d, strength, load, epsilon, variance, "free") for d in (400, 1600)]
    gaps = np.array([state.learnabilities - limit.learnabilities for state in states])
    assert np.all((gaps[1] / gaps[0] > 0.15) & (gaps[1] / gaps[0] < 0.4)) and np.abs(gaps[1]).max() < 0.02
    assert states[1].minimum == pytest.approx(limit.minimum, rel=2e-2) and states[1].perpendicular == pytest.approx(
        float(limit.perpendicular), rel=0.05
    )
    assert 1600 * states[1].outliers == pytest.approx(float(limit.outliers), rel=0.1)


@pytest.mark.parametrize("epsilon", [-5.0, -0.3, -1e-3, 1e-3, 0.3, 5.0])
def test_lines_of_free_length_over_many_decades(epsilon):
    strength = np.geomspace(1e-6, 1e6, 61)
    for line in (coexistence.maxwell(strength, epsilon, **FREE), coexistence.spinodal(strength, epsilon, **FREE)):
        np.testing.assert_allclose(
            line.residual, coexistence.gaussian(strength, line.load, epsilon).residuals[..., 0], rtol=1e-6
        )
    # Short weights leave no room for a change of their length: both lines are those of fixed length, at m_0 of
    # order one.
    tiny = {"weight_variance": 1e-6}
    for line in (coexistence.maxwell, coexistence.spinodal):
        free, fixed = line(strength[30:], epsilon, **tiny, **FREE), line(strength[30:], epsilon, **tiny, **FIXED)
        np.testing.assert_allclose(free.load, fixed.load, rtol=1e-4)
        np.testing.assert_allclose(free.minimum, fixed.minimum, rtol=1e-4)


# --- how finite networks approach it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "strength", "variance"), [(-0.3, 30.0, 1.0), (0.3, 30.0, 1.0), (-0.1, 10.0, 0.5), (0.2, 100.0, 2.0)]
)
def test_quadrature_converges_to_the_limit_as_one_over_the_dimension(epsilon, strength, variance):
    critical = coexistence.maxwell(strength, epsilon, weight_variance=variance, **FIXED).load
    for ratio in (0.6, 1.6):
        limit = coexistence.coexistence(strength, ratio * critical, epsilon, weight_variance=variance, **FIXED)
        states = [at_finite_dimension(d, strength, ratio * critical, epsilon, variance) for d in (6400, 25_600)]
        gaps = np.array([state.learnabilities - limit.learnabilities for state in states])
        assert np.abs(gaps[1]).max() < 3e-3
        if ratio > 1:
            assert np.all((gaps[1] / gaps[0] > 0.15) & (gaps[1] / gaps[0] < 0.4))  # a quarter, up to the next order
            assert states[1].minimum == pytest.approx(limit.minimum, rel=1e-2)
            assert 25_600 * states[1].outliers == pytest.approx(float(limit.outliers), rel=0.03)
        else:
            assert 25_600 * states[1].variance == pytest.approx(float(limit.variance), rel=1e-2)


def test_in_the_quoted_setting_at_dimension_800_and_below_the_transition():
    critical = coexistence.maxwell(30.0, -0.3, **FIXED).load
    limit, state = (
        coexistence.coexistence(30.0, 1.6 * critical, -0.3, **FIXED),
        at_finite_dimension(800, 30.0, 1.6 * critical, -0.3),
    )
    assert (
        state.learnabilities[1] == pytest.approx(limit.learnabilities[1], rel=0.02)
        and state.minimum > 1 < limit.minimum
    )
    for d in (200, 800):
        for ratio in (0.3, 0.6, 0.89):
            assert at_finite_dimension(d, 30.0, ratio * critical, -0.3).outliers < 1e-3 / d


def test_the_rounding_of_the_kink_falls_with_the_dimension():
    critical = coexistence.maxwell(30.0, -0.3, **FIXED).load
    learned = [at_finite_dimension(d, 30.0, critical, -0.3).learnabilities[1] for d in (200, 800, 3200, 12_800)]
    slopes = np.diff(np.log(learned)) / np.log(4)
    assert np.all(slopes < -0.75) and np.all(slopes > -1.05)  # 1/d up to a logarithm


def test_the_unconstrained_lazy_state_of_a_large_network_is_the_gaussian_phase():
    critical = coexistence.maxwell(30.0, -0.3, **FIXED).load
    samples = 1000 * 1.5 * critical
    lazy = staircase.solve(6400, 1000, samples, -0.3, readout_variance=30 * 6400 / samples, outliers=0.0, **FIXED)
    phase = coexistence.gaussian(30.0, 1.5 * critical, -0.3)
    assert lazy.residuals == pytest.approx(phase.residuals, abs=1e-3) and 6400 * lazy.variance == pytest.approx(
        float(phase.variance), rel=1e-2
    )


# --- the lines as functions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [-5.0, -0.3, -1e-3, 1e-3, 0.3, 5.0])
def test_lines_over_many_decades(epsilon):
    strength = np.geomspace(1e-6, 1e6, 121).reshape(11, 11)
    maxwell, spinodal = (
        coexistence.maxwell(strength, epsilon, **FIXED),
        coexistence.spinodal(strength, epsilon, **FIXED),
    )
    assert (
        maxwell.load.shape == (11, 11)
        and np.all(spinodal.load < maxwell.load)
        and np.all(spinodal.load > 0.7 * maxwell.load)
    )
    for line in (maxwell, spinodal):
        b = coexistence.gaussian(strength, line.load, epsilon).residuals[..., 0]
        np.testing.assert_allclose(line.residual, b, rtol=1e-6)
    weak = coexistence.gaussian([1e-30, 1e-12], 3.0, epsilon)
    np.testing.assert_allclose(weak.variance, 1, rtol=1e-9)
    one = coexistence.maxwell(strength[3, 4], epsilon, **FIXED)
    assert one.load == pytest.approx(maxwell.load[3, 4], rel=1e-12)


def test_the_kink():
    critical = coexistence.maxwell(30.0, 0.3, **FIXED)
    steps = np.array([1e-3, 1e-4, 1e-5])
    beyond = coexistence.coexistence(30.0, critical.load * (1 + steps), 0.3, **FIXED)
    slope = beyond.learnabilities[:, 1] / steps
    assert np.ptp(slope) < 1e-2 * slope[0] and slope[0] > 0.1
    np.testing.assert_allclose(beyond.minimum, critical.minimum, atol=2e-3)
    assert np.array_equal(coexistence.coexistence(30.0, critical.load * (1 - steps), 0.3, **FIXED).minimum, np.zeros(3))


def test_the_cubic_part_is_learned_monotonically_and_settings_broadcast():
    state = coexistence.coexistence(np.array([[3.0], [30.0]]), np.geomspace(0.1, 1e4, 200), -0.3, **FIXED)
    assert state.residuals.shape == (2, 200, 2) and state.minimum.shape == (2, 200)
    assert np.all(np.diff(state.learnabilities[..., 1]) >= -1e-12) and np.all(state.learnabilities[:, -1, 1] > 0.85)
    assert np.all(state.variance > 0) and np.all(state.minimum**2 < 4.5)
    plain = coexistence.coexistence(30.0, 5.0, 0.0, **FIXED)
    assert np.isnan(plain.learnabilities[1]) and plain.outliers == 0 and plain.residuals.shape == (2,)


def test_the_largest_ratio_on_the_spinodal_of_positive_targets():
    # There the second minimum appears while the first one disappears: max_w of the quartic equals its value at w = 1.
    def gap(t):
        def quartic(w):
            return -(w**2) * (t - 1 + w) * (t - 3 + 3 * w)

        return -minimize_scalar(quartic, bounds=(0.1, 0.6), method="bounded", options={"xatol": 1e-12}).fun - t * t

    assert brentq(gap, 0.1, 0.4, xtol=1e-14) == pytest.approx(_coexistence.steepest(1.0), rel=1e-9)


# --- where the center becomes unstable ----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [-0.3, 0.3, 0.0])
def test_the_center_loses_its_minimum_on_the_line(epsilon):
    load = coexistence.central_instability(40, [10.0, 30.0], epsilon, **FIXED)
    for strength, one in zip((10.0, 30.0), load):
        below, at, above = (
            at_finite_dimension(40, strength, one * factor, epsilon).landau[0] for factor in (0.97, 1.0, 1.03)
        )
        assert below > 0 > above and abs(at) < 1e-6
    assert coexistence.central_instability(160, 30.0, epsilon, **FIXED) > 1.5 * load[1]


def test_without_strength_the_center_stays():
    assert coexistence.central_instability(2, 1e-5, -0.3, **FIXED) == np.inf


# --- bad input ----------------------------------------------------------------------------------------------

STATE = {"strength": [3.0, 30.0], "load": [1.0, 5.0], "epsilon": -0.3, "weight_variance": 1.0}
LINE = {name: value for name, value in STATE.items() if name != "load"}
CALLS = {
    coexistence.gaussian: STATE,
    coexistence.coexistence: STATE | FREE,
    coexistence.maxwell: LINE | FREE,
    coexistence.spinodal: LINE | FREE,
    coexistence.central_instability: LINE | {"dimension": 10, "strength": 30.0} | FREE,
}
POSITIVE = [0, -1.0, [1.0, 0], [np.nan], [np.inf], "strength", None, [1j], True, [[1], [1, 2]]]
BAD = {
    "dimension": COUNT,
    "strength": POSITIVE,
    "load": [*POSITIVE[1:2], *POSITIVE[3:], [1.0, 2.0, 3.0]],
    "epsilon": [bad for bad in NUMBER if bad is True or bad not in (0, -1.0)],
    "weight_variance": NUMBER,
    "perpendicular": ["other", "", True, None, 1.0, ["free"]],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


@pytest.mark.parametrize("line", [coexistence.maxwell, coexistence.spinodal])
def test_without_a_cubic_part_there_is_no_line(line):
    with pytest.raises(ValueError, match="^epsilon must not be zero"):
        line(30.0, 0.0)

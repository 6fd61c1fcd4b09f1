"""lib.fields.overlaps.coexistence against the full equations of the two phases, the action written out, and
quadrature at growing dimension.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from lib.fields.overlaps import single_index, staircase
from lib.fields.overlaps.coexistence import Limit

EPSILON = st.one_of(st.floats(-2, -0.02), st.floats(0.02, 2))
STRENGTH = st.floats(0.1, 1000)
VARIANCE = st.floats(0.2, 3)
KIND = st.sampled_from(["fixed", "free"])
kinds = pytest.mark.parametrize("kind", ["fixed", "free"])


def cost(m, q, residual, limit, load):
    """S/d as a function of the overlap and of |w_⊥|²; its second term is zero at the fixed length."""
    u, s = m**2 / (1 + 2 * q + 2 * m**2), limit.weight_variance
    pull = 2 / np.pi * limit.strength * load * u * (residual[0] - 2 * residual[1] * u) ** 2
    return m**2 / (2 * s) + (q / s - 1 - np.log(q / s)) / 2 - pull


def test_a_network_has_the_strength_and_the_load_that_it_is_asked_for():
    limit = Limit(30.0, -0.3, weight_variance=0.7, perpendicular="free")
    network = limit.network(50, 200, 2.5)
    samples, readout = network.effective_samples, network.readout_variance
    assert (samples / 200, readout * samples / 50) == pytest.approx((2.5, 30.0), rel=1e-14)
    assert (network.weight_variance, network.perpendicular) == (0.7, "free")
    np.testing.assert_array_equal(network.target, single_index.staircase(-0.3))
    with pytest.raises(ValueError, match="^strength must"):
        Limit([30.0, 40.0], -0.3, perpendicular="fixed").network(50, 200, 2.5)


# --- the equations of a state ---------------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(STRENGTH, st.floats(0, 4), EPSILON, VARIANCE, KIND)
def test_a_state_solves_its_equations_and_nowhere_is_the_action_negative(strength, ratio, epsilon, variance, kind):
    limit = Limit(strength, epsilon, weight_variance=variance, perpendicular=kind)
    load = ratio * limit.maxwell().load
    state = limit.coexistence(load)
    r, m, q = state.residuals * [1, np.sqrt(6)], state.minimum, state.perpendicular
    v = m / np.sqrt(0.5 + q + m**2)
    hat = np.array([np.sqrt(2 / np.pi) * v, -np.sqrt(1 / (3 * np.pi)) * v**3])
    kernel = np.diag([4 / np.pi * state.variance / (1 + 2 * variance), 0]) + state.outliers * np.outer(hat, hat)
    assert np.abs(r + strength * kernel @ r - single_index.staircase(epsilon)).max() < 1e-9 * (1 + abs(epsilon))
    coupling = 2 / np.pi * strength * load
    stiffness = staircase.Action(
        state.residuals, coupling, 1, weight_variance=variance, perpendicular="fixed"
    ).landau()[0]
    assert state.variance == pytest.approx(1 / (2 * stiffness), rel=1e-6)
    trial = np.linspace(0.02, 8, 400)[:, None] * np.sqrt(variance)
    lengths = variance * np.geomspace(1e-2, 2, 300) if kind == "free" else np.array([variance])
    assert cost(trial, lengths, state.residuals, limit, load).min() > -1e-9 * (1 + load * strength)
    if ratio > 1 + 1e-9:
        depth = m**2 / (2 * variance)
        assert state.outliers > 0 and state.learnabilities[1] > 0 and 0 < m**2 < 1.5 * (1 + 2 * variance)
        assert 0 < q < variance if kind == "free" else q == variance
        assert abs(cost(m, q, state.residuals, limit, load)) < 1e-10 * depth
        for along, across in ((1e-4, 0), (0, 1e-4))[: 2 if kind == "free" else 1]:
            sides = [cost(m * (1 + e * along), q * (1 + e * across), state.residuals, limit, load) for e in (-1, 1)]
            assert abs(sides[1] - sides[0]) < 1e-6 * depth
    elif ratio < 1 - 1e-9:
        assert state.outliers == m == state.learnabilities[1] == 0 and q == variance


@settings(deadline=None, max_examples=40)
@given(STRENGTH, st.floats(0, 100), EPSILON, VARIANCE)
def test_the_gaussian_phase_is_a_fixed_point_whose_linear_residual_alone_feeds_back(strength, load, epsilon, variance):
    lazy = 4 / np.pi * strength * variance / (1 + 2 * variance)
    pull = lazy * load

    def unlearned(b):
        return b * (1 - pull * b * b + lazy) - (1 - pull * b * b)

    b = brentq(unlearned, 0, min(1, pull**-0.5 if pull > 0 else 1), xtol=1e-16)
    state = Limit(strength, epsilon, weight_variance=variance, perpendicular="fixed").gaussian(load)
    assert state.residuals == pytest.approx([b, epsilon], rel=1e-9)
    assert state.variance == pytest.approx(variance / (1 - pull * b * b), rel=1e-6)
    assert state.minimum == state.outliers == 0 and state.perpendicular == variance


@settings(deadline=None, max_examples=40)
@given(STRENGTH, EPSILON, VARIANCE)
def test_lines_of_the_phase_diagram_by_the_shape_of_the_action(strength, epsilon, variance):
    limit = Limit(strength, epsilon, weight_variance=variance, perpendicular="fixed")
    maxwell, spinodal = limit.maxwell(), limit.spinodal()
    assert 0.7 < spinodal.load / maxwell.load < 1
    for line in (maxwell, spinodal):
        assert line.residual == pytest.approx(limit.gaussian(line.load).residuals[0], rel=1e-8)
    at = staircase.Action(
        [maxwell.residual, epsilon],
        2 / np.pi * strength * maxwell.load,
        1,
        weight_variance=variance,
        perpendicular="fixed",
    )
    found = at.extrema()
    assert found.size == 2 and found[1] == pytest.approx(maxwell.minimum, rel=1e-5)
    assert abs(at.at(maxwell.minimum)) < 1e-10 * maxwell.minimum**2 / variance
    # The second minimum is there just beyond the spinodal and not before; both extrema start from its overlap.
    beyond, before = (
        staircase.Action(
            limit.gaussian(load).residuals,
            2 / np.pi * strength * load,
            1,
            weight_variance=variance,
            perpendicular="fixed",
        )
        for load in (spinodal.load * (1 + 1e-6), spinodal.load * (1 - 1e-6))
    )
    assert beyond.extrema().size == 2 and before.extrema().size == 0
    assert np.sqrt(beyond.extrema().prod()) == pytest.approx(spinodal.minimum, rel=2e-2)


@settings(deadline=None, max_examples=20)
@given(STRENGTH, EPSILON, VARIANCE)
def test_lines_of_free_length_by_the_shape_of_the_action(strength, epsilon, variance):
    limit = Limit(strength, epsilon, weight_variance=variance, perpendicular="free")
    maxwell, spinodal = limit.maxwell(), limit.spinodal()
    assert 0.6 < spinodal.load / maxwell.load < 1
    assert maxwell.load < Limit(strength, epsilon, weight_variance=variance, perpendicular="fixed").maxwell().load
    for line in (maxwell, spinodal):
        assert line.residual == pytest.approx(limit.gaussian(line.load).residuals[0], rel=1e-8)
    at = cost(maxwell.minimum, maxwell.perpendicular, [maxwell.residual, epsilon], limit, maxwell.load)
    assert abs(at) < 1e-10 * maxwell.minimum**2 / variance
    if spinodal.load > 0.95 * maxwell.load:
        return
    u = np.linspace(0.001, 0.499, 20_001)  # the least cost at each u, whose slope first vanishes on the spinodal
    for ratio, there in ((0.999, False), (1.001, True)):
        load = spinodal.load * ratio
        pull = 2 / np.pi * strength * load * u * (limit.gaussian(load).residuals[0] - 2 * epsilon * u) ** 2
        falls = np.diff(u / (2 * variance * (1 - 2 * u)) - np.log(1 - 2 * u) / 2 - pull) < 0
        assert np.any(falls) == there
        if there:
            m2, q = spinodal.minimum**2, spinodal.perpendicular
            assert u[:-1][falls].min() < m2 / (1 + 2 * q + 2 * m2) < u[:-1][falls].max()


# --- how finite networks approach it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "strength", "variance", "kind", "sizes"),
    [
        (-0.3, 30.0, 1.0, "fixed", (6400, 25_600)),
        (0.2, 100.0, 2.0, "fixed", (6400, 25_600)),
        (-0.3, 30.0, 1.0, "free", (400, 1600)),
        (0.2, 50.0, 0.6, "free", (400, 1600)),
    ],
)
def test_quadrature_converges_to_the_limit_as_one_over_the_dimension(epsilon, strength, variance, kind, sizes):
    given = Limit(strength, epsilon, weight_variance=variance, perpendicular=kind)
    load = 1.6 * given.maxwell().load
    limit, d = given.coexistence(load), sizes[1]
    states = [given.network(size, 1000, load).saddle() for size in sizes]
    gaps = np.array([state.learnabilities - limit.learnabilities for state in states])
    assert np.abs(gaps[1]).max() < (3e-3 if kind == "fixed" else 0.02)
    assert np.all((gaps[1] / gaps[0] > 0.15) & (gaps[1] / gaps[0] < 0.4))  # a quarter, up to the next order
    assert states[1].minimum == pytest.approx(limit.minimum, rel=2e-2)
    assert states[1].perpendicular == pytest.approx(limit.perpendicular, rel=0.05)
    assert d * states[1].outliers == pytest.approx(limit.outliers, rel=0.03 if kind == "fixed" else 0.1)


@kinds
def test_below_the_transition_and_in_the_lazy_state_a_large_network_is_in_the_gaussian_phase(kind):
    given = Limit(30.0, -0.3, perpendicular=kind)
    critical, d = given.maxwell().load, 6400 if kind == "fixed" else 800
    for ratio, held in ((0.6, None), (1.5, 0.0)):
        state, phase = given.network(d, 1000, ratio * critical).saddle(outliers=held), given.gaussian
        assert state.residuals == pytest.approx(phase(ratio * critical).residuals, abs=8 / d)
        assert d * state.variance == pytest.approx(phase(ratio * critical).variance, rel=50 / d)
        assert state.outliers < 1e-3 / d


# --- the lines as functions -----------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("epsilon", [-5.0, -1e-3, 1e-3, 5.0])
def test_lines_over_many_decades(epsilon, kind):
    strength = np.geomspace(1e-6, 1e6, 64).reshape(8, 8)
    limit = Limit(strength, epsilon, perpendicular=kind)
    maxwell, spinodal = limit.maxwell(), limit.spinodal()
    assert maxwell.load.shape == (8, 8) and np.all(spinodal.load < maxwell.load)
    for line in (maxwell, spinodal):
        np.testing.assert_allclose(line.residual, limit.gaussian(line.load).residuals[..., 0], rtol=1e-6)
    one = Limit(strength[3, 4], epsilon, perpendicular=kind).maxwell()
    assert isinstance(one.load, float) and one.load == pytest.approx(maxwell.load[3, 4], rel=1e-12)
    weak = Limit([1e-30, 1e-12], epsilon, perpendicular=kind).gaussian(3.0)
    np.testing.assert_allclose(weak.variance, 1, rtol=1e-9)


def test_the_kink():
    limit, steps = Limit(30.0, 0.3, perpendicular="fixed"), np.array([1e-3, 1e-4, 1e-5])
    critical = limit.maxwell()
    beyond = limit.coexistence(critical.load * (1 + steps))
    slope = beyond.learnabilities[:, 1] / steps
    assert np.ptp(slope) < 1e-2 * slope[0] and slope[0] > 0.1
    np.testing.assert_allclose(beyond.minimum, critical.minimum, atol=2e-3)
    assert np.array_equal(limit.coexistence(critical.load * (1 - steps)).minimum, np.zeros(3))


def test_the_cubic_part_is_learned_monotonically_and_settings_broadcast():
    state = Limit([[3.0], [30.0]], -0.3, perpendicular="fixed").coexistence(np.geomspace(0.1, 1e4, 200))
    assert state.residuals.shape == (2, 200, 2) and state.minimum.shape == (2, 200)
    assert np.all(np.diff(state.learnabilities[..., 1]) >= -1e-12) and np.all(state.learnabilities[:, -1, 1] > 0.85)
    plain = Limit(30.0, 0.0, perpendicular="fixed").coexistence(5.0)
    assert np.isnan(plain.learnabilities[1]) and plain.outliers == 0 and plain.residuals.shape == (2,)
    with pytest.raises(ValueError, match="^load must broadcast"):
        Limit([3.0, 30.0], -0.3, perpendicular="fixed").gaussian([1.0, 2.0, 3.0])


def test_without_a_cubic_part_there_is_no_line():
    for line in (Limit(30.0, 0.0, perpendicular="fixed").maxwell, Limit(30.0, 0.0, perpendicular="fixed").spinodal):
        with pytest.raises(ValueError, match="^epsilon must not be zero"):
            line()

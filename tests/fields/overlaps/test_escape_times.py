"""lib.fields.overlaps.escape_times against walks written out, the decoupled action, chains of overlaps and each
other.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.common import hmc
from lib.fields.overlaps import escape_times, monte_carlo, single_index
from lib.fields.overlaps.coexistence import Limit
from lib.fields.overlaps.single_index import SingleIndex
from lib.fields.overlaps.staircase import Action

TARGET = [1.0, -0.3 * 6**0.5]
GRID = np.arange(-80, 81) * 0.05


# --- first passage of given energies --------------------------------------------------------------------------


def walked(energy, barrier, step, neurons=1):
    """Moves of one walker until it has passed, by the linear equations (1 - T) τ = 1, state by state."""
    spacing, inside = GRID[1] - GRID[0], np.flatnonzero(np.abs(GRID) <= barrier)
    leaving = np.zeros((len(inside), len(inside)))
    for i, x in enumerate(inside):
        for y in range(len(GRID)):
            if x != y:
                rate = spacing * np.exp(-((GRID[x] - GRID[y]) ** 2) / (2 * step**2)) / (2 * np.pi * step**2) ** 0.5
                rate *= min(1.0, np.exp(energy[x] - energy[y]))
                leaving[i, i] += rate
                if y in inside:
                    leaving[i, np.searchsorted(inside, y)] -= rate
    start = np.exp(energy[inside].min() - energy[inside])
    if neurons > 1:
        staying, state = [], start / start.sum()
        for _ in range(400):
            staying.append(state.sum())
            state = state - state @ leaving
        now, then = np.array(staying[:-1]), np.array(staying[1:])
        return sum((now ** (neurons - c) * then**c).sum() for c in range(neurons)) / neurons
    return start @ np.linalg.solve(leaving, np.ones(len(inside))) / start.sum()


@pytest.mark.parametrize(
    ("energy", "barrier", "step"), [(GRID**2 / 2, 2.525, 0.3), (2 * GRID**2, 2.025, 0.2), (GRID**2 - GRID, 1.525, 0.25)]
)
def test_one_neuron_passes_in_the_time_of_the_linear_equations(energy, barrier, step):
    found = escape_times.first_passage(GRID, energy, barrier, step)
    assert found == pytest.approx(walked(energy, barrier, step), rel=1e-4)
    found = escape_times.first_passage(GRID, energy, 0.775, step, neurons=6)
    assert found == pytest.approx(walked(energy, 0.775, step, 6), rel=1e-3)


@settings(deadline=None, max_examples=20)
@given(st.floats(0.5, 4), st.floats(0.11, 0.4), st.integers(1, 500))
def test_more_neurons_pass_sooner_and_rare_passages_share_the_time(stiffness, step, neurons):
    given = GRID, stiffness * GRID**2 / 2, 2.025, step
    one, few, more = (escape_times.first_passage(*given, neurons=n) for n in (1, neurons, neurons + 1))
    assert more < few <= one * (1 + 1e-12)
    if one > 1e5 * neurons:
        assert few == pytest.approx(one / neurons, rel=0.01)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        *(("overlaps", {"overlaps": bad}) for bad in ([0.0, 1.0], -GRID, GRID**3)),
        ("energy", {"energy": GRID[1:]}),
        *(("barrier", {"barrier": bad}) for bad in (0.01, 4.5, 3.5)),
        ("step", {"step": 0.09}),
        ("energy", {"energy": 40 * GRID**2}),
    ],
)
def test_grids_energies_and_steps_that_do_not_fit_are_refused(name, changed):
    with pytest.raises(ValueError, match=f"^{name} must"):
        escape_times.first_passage(
            **{"overlaps": GRID + 0.025 * (name == "barrier"), "energy": GRID**2, "barrier": 1.0, "step": 0.2} | changed
        )


# --- simulated nets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "barrier"), [(1, 0.7), (12, 0.45), (60, 1.0)])
def test_without_data_neurons_escape_one_by_one(width, barrier):
    network = SingleIndex("erf", TARGET, 12, width, 0.0)
    found = escape_times.simulate(network, barrier, 400, 10**6, 3, step=0.6, burn_in=50)
    m = np.linspace(-2, 2, 1601)
    spacing, step = m[1] - m[0], 0.6 / 12**0.5
    predicted = escape_times.first_passage(m, 6 * m**2, barrier - spacing / 2, step, neurons=width)
    assert found.escaped.all()
    assert abs(found.times.mean() - predicted) < 4 * found.times.std() / 20 + 0.01 * predicted
    assert (found.mean().mean, found.mean().error) == pytest.approx((found.times.mean(), found.times.mean() / 20))


def measured(dimension, width, ratio, replicas):
    """Simulated mean and error, predicted mean, and height of the barrier, at g_K = 30 and P_e/N = ratio."""
    network = Limit(30.0, -0.3).network(dimension, width, ratio)
    phase, step = escape_times.lazy_phase(network, 0.95), 0.5 / dimension**0.5
    predicted = escape_times.first_passage(phase.overlaps, phase.energy, 0.95, step, neurons=width)
    return escape_times.simulate(network, 0.95, replicas, 10**5, 5, burn_in=50).mean(), predicted, phase.height


def test_the_first_escape_of_a_net_is_predicted_and_the_better_the_wider_it_is():
    (narrow, slow, _), (wide, fast, height) = (measured(50, *size) for size in ((500, 3.6, 120), (3000, 3.6, 60)))
    assert 6 < height < 9
    gaps = 1 - narrow.mean / slow, 1 - wide.mean / fast
    assert gaps[0] > 0.15  # neurons that fluctuate together help each other across
    assert abs(gaps[1]) < 4 * wide.error / fast and gaps[1] < gaps[0]


def test_escapes_are_exponentially_rare_in_many_dimensions():
    (few, _, low), (many, _, high) = (measured(d, 500, 3.6, 40) for d in (30, 60))
    assert np.log(many.mean / few.mean) == pytest.approx(high - low, abs=0.7) and high - low > 1.5


def test_more_outliers_take_longer_and_a_limit_is_kept():
    network = SingleIndex("erf", TARGET, 20, 200, 800.0, readout_variance=2.0)
    one, three = (escape_times.simulate(network, 0.8, 20, 4000, 2, burn_in=30, outliers=n) for n in (1, 3))
    assert np.all(one.times <= three.times) and one.times.mean() < three.times.mean()
    short = escape_times.simulate(SingleIndex("erf", TARGET, 60, 20, 0.0), 1.5, 5, 7, 2)
    assert not short.escaped.any() and np.array_equal(short.times, np.full(5, 7.0))
    with pytest.raises(ValueError, match="^limit must be long enough"):
        short.mean()
    some = escape_times.EscapeTimes(np.array([1.0, 3.0, 8.0]), np.array([True, True, False])).mean()
    assert (some.mean, some.error) == pytest.approx((6, 6 / 2**0.5))
    with pytest.raises(ValueError, match="^outliers must be at most the width"):
        escape_times.simulate(network, 0.8, 20, 4000, 2, outliers=201)


# --- the lazy phase -------------------------------------------------------------------------------------------


def test_in_a_wide_net_the_energy_is_the_decoupled_action():
    network = Limit(30.0, -0.3).network(50, 10**9, 3.6)
    phase = escape_times.lazy_phase(network, 0.9)
    m = phase.overlaps
    action = Action(phase.residuals / [1, 6**0.5], network.coupling, 50).at(m)
    np.testing.assert_allclose(phase.energy, action, atol=3e-5)  # P_e s_a²/N = 1.5e-6
    h, weights = single_index.projections("erf", m).T, np.exp(-action) * (np.abs(m) < 0.9)
    weights /= weights.sum()
    strength = network.effective_samples * network.readout_variance
    left = (np.eye(2) + strength * (h * weights) @ h.T) @ phase.residuals
    np.testing.assert_allclose(left, TARGET, rtol=1e-8)
    assert phase.second_moment == pytest.approx(weights @ m**2, rel=1e-8)
    assert phase.height == pytest.approx(action[np.abs(m) < 0.9].max(), abs=3e-5)


@pytest.mark.parametrize(
    ("activation", "target"), [("erf", TARGET), ("erf", [*TARGET, 0.2]), ("relu", [0.0, 1.0, 0.2, -0.05])]
)
def test_chains_in_the_lazy_phase_have_its_residuals(activation, target):
    network = SingleIndex(activation, target, 60, 400, 300.0, readout_variance=2.0)
    phase, run = escape_times.lazy_phase(network, 1.2), monte_carlo.sample(network, 4, 300, 4)
    found = hmc.summary(run.residuals)
    assert np.all(np.abs(found.mean - phase.residuals) < 4 * found.error + 0.003)  # 1/N
    moment = hmc.summary(run.second_moment)
    assert abs(moment.mean / phase.second_moment - 1) < 4 * moment.error / phase.second_moment + 0.01


def test_few_data_leave_the_lazy_net_of_the_kernel():
    phase = escape_times.lazy_phase(SingleIndex("erf", TARGET, 30, 10**8, 50.0), 1.5)
    np.testing.assert_allclose(phase.residuals, single_index.lazy("erf", TARGET, 30, 50.0)[0], atol=1e-5)


def test_an_energy_that_falls_steeply_beyond_the_wall_does_not_disturb_the_phase_inside():
    network = SingleIndex("erf", [1.0, -1.7146], 400, 400, 4e3, readout_variance=8.0)
    phase = escape_times.lazy_phase(network, 0.6)
    inside = np.abs(phase.overlaps) < 0.6
    assert phase.energy[~inside].min() < -710  # e^{-E} is not a float there
    weights = np.exp(-phase.energy[inside])
    assert phase.second_moment == pytest.approx(weights @ phase.overlaps[inside] ** 2 / weights.sum(), rel=1e-8)


def test_walls_and_networks_without_a_lazy_phase_are_refused():
    with pytest.raises(ValueError, match="^barrier must be so low that"):
        escape_times.lazy_phase(SingleIndex("erf", TARGET, 5000, 4, 3.0), 3.0)
    with pytest.raises(ValueError, match="^perpendicular of network must be one of fixed"):
        escape_times.lazy_phase(SingleIndex("erf", TARGET, 5, 4, 3.0, perpendicular="free"), 1.0)

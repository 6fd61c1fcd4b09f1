"""lib.fields.overlaps.escape_times against walks written out, the decoupled action, chains of overlaps and each
other.
"""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.common import hmc
from lib.fields.overlaps import escape_times, monte_carlo, single_index

FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it
TARGET = [1.0, -0.3 * 6**0.5]
GRID = np.arange(-80, 81) * 0.05


# --- first passage of given energies ------------------------------------------------------------------------


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

    assert escape_times.first_passage(GRID, energy, 0.775, step, neurons=6) == pytest.approx(
        walked(energy, 0.775, step, 6), rel=1e-3
    )


@settings(deadline=None, max_examples=20)
@given(st.floats(0.5, 4), st.floats(0.11, 0.4), st.integers(1, 500))
def test_more_neurons_pass_sooner_and_rare_passages_share_the_time(stiffness, step, neurons):
    energy = stiffness * GRID**2 / 2
    one, few, more = (
        escape_times.first_passage(GRID, energy, 2.025, step, neurons=n) for n in (1, neurons, neurons + 1)
    )
    assert more < few <= one * (1 + 1e-12)
    if one > 1e5 * neurons:
        assert few == pytest.approx(one / neurons, rel=0.01)


def test_the_time_grows_with_the_exponential_of_the_barrier():
    hill, climbs = (
        1.5 * (GRID / 1.5) ** 2 - 0.5 * (GRID / 1.5) ** 4,
        np.array([6.0, 8.0, 10.0]),
    )  # the top is near 1.5 √1.5
    times = [escape_times.first_passage(GRID, h * hill * (np.abs(GRID) < 2.5), 1.525, 0.15) for h in climbs]
    slopes = np.diff(np.log(times)) / np.diff(climbs)
    assert np.all(slopes > 0.75) and np.all(
        slopes < 1.0
    )  # e^{height} over an attempt rate that grows with the curvature


# --- simulated nets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "barrier"), [(1, 0.7), (7, 0.8), (12, 0.45), (60, 1.0)])
def test_without_data_neurons_escape_one_by_one(width, barrier):
    found = escape_times.simulate("erf", TARGET, 12, width, 0.0, barrier, 400, 10**6, 3, step=0.6, burn_in=50)
    m = np.linspace(-2, 2, 1601)
    spacing = m[1] - m[0]
    predicted = escape_times.first_passage(m, 6 * m**2, barrier - spacing / 2, 0.6 / 12**0.5, neurons=width)
    assert found.escaped.all()
    assert abs(found.times.mean() - predicted) < 4 * found.times.std() / 20 + 0.01 * predicted
    assert found.mean().mean == pytest.approx(found.times.mean()) and found.mean().error == pytest.approx(
        found.times.mean() / 20
    )


def measured(dimension, width, ratio, barrier, chains, burn_in=50):
    """Simulated mean and error, and predicted mean, at g_K = 30 and P_e/N = ratio."""
    samples = ratio * width
    setting = {"readout_variance": 30 * dimension / samples}
    phase = escape_times.lazy_phase("erf", TARGET, dimension, width, samples, barrier, **setting)
    predicted = escape_times.first_passage(phase.overlaps, phase.energy, barrier, 0.5 / dimension**0.5, neurons=width)
    found = escape_times.simulate(
        "erf", TARGET, dimension, width, samples, barrier, chains, 10**5, 5, **setting, burn_in=burn_in
    )
    return found.mean(), predicted, phase.height


def test_the_first_escape_of_a_net_is_predicted_and_the_better_the_wider_it_is():
    gaps = []
    for width, chains in ((500, 120), (3000, 60)):
        found, predicted, height = measured(50, width, 3.6, 0.95, chains)
        assert 6 < height < 9
        gaps.append(1 - found.mean / predicted)
        error = found.error / predicted
    assert gaps[0] > 0.15  # neurons that fluctuate together help each other across
    assert abs(gaps[1]) < 4 * error and gaps[1] < gaps[0]


def test_escapes_are_rarer_in_narrow_nets_and_exponentially_rare_in_many_dimensions():
    narrow, wide = (measured(50, width, 3.2, 0.95, 40)[0].mean for width in (800, 2400))
    assert 2 < narrow / wide < 6  # 1/N, and a barrier that is a little lower
    times, heights = zip(
        *[(measured(d, 500, 3.6, 0.95, 40)[0].mean, measured(d, 500, 3.6, 0.95, 2)[2]) for d in (30, 60)]
    )
    assert (
        np.log(times[1] / times[0]) == pytest.approx(heights[1] - heights[0], abs=0.7) and heights[1] - heights[0] > 1.5
    )


def test_more_outliers_take_longer_and_a_limit_is_kept():
    setting = {"readout_variance": 2.0, "burn_in": 30}
    one, three = (
        escape_times.simulate("erf", TARGET, 20, 200, 800.0, 0.8, 20, 4000, 2, **setting, outliers=n) for n in (1, 3)
    )
    assert np.all(one.times <= three.times) and one.times.mean() < three.times.mean()
    short = escape_times.simulate("erf", TARGET, 60, 20, 0.0, 1.5, 5, 7, 2)
    assert not short.escaped.any() and np.array_equal(short.times, np.full(5, 7.0))
    with pytest.raises(ValueError, match="^limit must be long enough"):
        short.mean()
    some = escape_times.EscapeTimes(np.array([1.0, 3.0, 8.0]), np.array([True, True, False]))
    assert some.mean().mean == 6 and some.mean().error == pytest.approx(6 / 2**0.5)


# --- the lazy phase -----------------------------------------------------------------------------------------


def test_in_a_wide_net_the_energy_is_the_decoupled_action():
    width, dimension = 10**9, 50
    samples, readout = 3.6 * width, 30 / (3.6 * width) * dimension
    phase = escape_times.lazy_phase("erf", TARGET, dimension, width, samples, 0.9, readout_variance=readout)
    m, (b, c) = phase.overlaps, phase.residuals / [1, 6**0.5]
    ratio = m**2 / (1 + 2 * (1 + m**2))
    a = 2 * readout * samples**2 / (np.pi * dimension * width)
    action = dimension * (m**2 / 2 - a * ratio * (b - 2 * c * ratio) ** 2)
    np.testing.assert_allclose(phase.energy, action, atol=3e-5)  # P_e s_a²/N = 1.5e-6
    h = np.stack([2 / np.pi**0.5 * np.sqrt(ratio), -4 / (6 * np.pi) ** 0.5 * ratio**1.5])
    weights = np.exp(-action) * (np.abs(m) < 0.9)
    weights /= weights.sum()
    left = (np.eye(2) + samples * readout * (h * weights) @ h.T) @ phase.residuals
    np.testing.assert_allclose(left, TARGET, rtol=1e-8)
    assert phase.second_moment == pytest.approx(weights @ m**2, rel=1e-8)
    assert phase.height == pytest.approx(action[np.abs(m) < 0.9].max(), abs=3e-5)


@pytest.mark.parametrize("basis", ["erf", "three", "relu"])
def test_chains_in_the_lazy_phase_have_its_residuals(basis):
    activation, target = {
        "erf": ("erf", TARGET),
        "three": ("erf", [*TARGET, 0.2]),
        "relu": ("relu", [0.0, 1.0, 0.2, -0.05]),
    }[basis]
    phase = escape_times.lazy_phase(activation, target, 60, 400, 300.0, 1.2, readout_variance=2.0)
    run = monte_carlo.sample(activation, target, 60, 400, 300.0, 4, 300, 4, readout_variance=2.0, **FIXED)
    found = hmc.summary(run.residuals)
    assert np.all(np.abs(found.mean - phase.residuals) < 4 * found.error + 0.003)  # 1/N
    moment = hmc.summary(run.second_moment)
    assert abs(moment.mean / phase.second_moment - 1) < 4 * moment.error / phase.second_moment + 0.01


def test_few_data_leave_the_lazy_net_of_the_kernel():
    phase = escape_times.lazy_phase("erf", TARGET, 30, 10**8, 50.0, 1.5)
    expected = np.linalg.solve(np.eye(2) + 50.0 * single_index.moments("erf", 1 / 30), TARGET)
    np.testing.assert_allclose(phase.residuals, expected, atol=1e-5)


def test_an_energy_that_falls_steeply_beyond_the_wall_does_not_disturb_the_phase_inside():
    phase = escape_times.lazy_phase("erf", [1.0, -1.7146], 400, 400, 4e3, 0.6, readout_variance=8.0)
    inside = np.abs(phase.overlaps) < 0.6
    assert phase.energy[~inside].min() < -710  # e^{-E} is not a float there
    weights = np.exp(-phase.energy[inside])
    assert phase.second_moment == pytest.approx(weights @ phase.overlaps[inside] ** 2 / weights.sum(), rel=1e-8)


# --- bad input ----------------------------------------------------------------------------------------------

MODEL = {"activation": "erf", "target": TARGET, "dimension": 5, "width": 4, "effective_samples": 3.0, "barrier": 1.0}
PRIOR = {"weight_variance": 1.0, "readout_variance": 1.0}
CALLS = {
    escape_times.simulate: {
        **MODEL,
        **PRIOR,
        "chains": 2,
        "limit": 5,
        "rng": 1,
        "step": 0.5,
        "outliers": 1,
        "burn_in": 2,
    },
    escape_times.lazy_phase: {**MODEL, **PRIOR},
    escape_times.first_passage: {"overlaps": GRID, "energy": GRID**2, "barrier": 1.0, "step": 0.2, "neurons": 2},
}
OVER_ONE = [bad for bad in NUMBER if bad is True or bad != 0]
BAD = {
    "activation": ["tanh", "linear", None, 1],
    "target": [[], [1.0], [0.0, 0.0], [np.nan, 1.0], [1e10, 0.0], [TARGET], "y", None],
    **dict.fromkeys(("dimension", "width", "chains", "limit", "neurons"), COUNT),
    "outliers": [*COUNT, 5],
    "effective_samples": [*OVER_ONE, 1e11],
    "weight_variance": NUMBER,
    "readout_variance": NUMBER,
    "rng": SEED,
    "burn_in": [-1, 1.5, "3", None, True],
    "barrier": [*NUMBER, 31.0],
    "step": [*NUMBER, 1e4],
    "overlaps": [[], [0.0, 1.0], -GRID, GRID**3, np.full(161, np.nan), GRID[:, None], "m", None],
    "energy": [GRID[1:], np.full(161, np.inf), "E", None, 1.0],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, {"step": "step|barrier"})

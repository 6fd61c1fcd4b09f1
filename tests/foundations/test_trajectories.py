"""lib.foundations.trajectories against the theory of langevin, closed forms and hand calculation, within errors."""

import numpy as np
import pytest
from bad_input import COUNT, MATRIX, NUMBER, SEED, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.foundations import langevin, trajectories

FRICTION = np.array([[1.0, -2.0], [0.5, 3.0]])
DIFFUSION = np.array([[1.0, 0.3], [0.3, 2.0]])
OSCILLATOR = np.array([[0.0, -1.0], [2.0, 0.7]]), np.diag([0.0, 1.05])  # underdamped: only the velocity is kicked


def within(measured, expected, sigmas=4.5):
    mean, error = measured
    off = np.abs(mean - expected) > sigmas * error + 1e-12
    assert not off.any(), f"{mean} ± {error} against {expected}"


@pytest.mark.parametrize("method", ["exact", "euler"])
def test_stationary_paths_have_the_covariance_and_circulation_of_their_chain(method):
    step = 0.2
    paths = trajectories.simulate(FRICTION, DIFFUSION, step=step, steps=500, chains=400, rng=1, method=method)
    if method == "exact":
        sigma = langevin.stationary_covariance(FRICTION, DIFFUSION)
        late = langevin.correlation([step], FRICTION, DIFFUSION)[0]
        rotation = (late.T - late) / (2 * step)
    else:
        sigma = langevin.euler_covariance(FRICTION, DIFFUSION, step)
        rotation = (FRICTION @ sigma - sigma @ FRICTION.T) / 2
    covariance = trajectories.estimate_covariance(paths)
    assert (covariance[1] < 0.01 * np.diag(sigma).max()).all()
    within(covariance, sigma)
    within(trajectories.estimate_circulation(paths, step), rotation)


@pytest.mark.parametrize("start", [np.array([1.0, -2.0]), "stationary"])
def test_first_record_is_the_start_and_the_second_moment_relaxes(start):
    paths = trajectories.simulate(
        FRICTION, DIFFUSION, step=0.05, steps=8, chains=20_000, rng=2, start=start, record_every=4
    )
    at_rest = isinstance(start, str)
    first = langevin.stationary_covariance(FRICTION, DIFFUSION) if at_rest else np.outer(start, start)
    for n, time in enumerate([0.0, 0.2, 0.4]):
        expected = langevin.covariance([time], FRICTION, DIFFUSION, first)[0]
        within(trajectories.estimate_covariance(paths[n : n + 1]), expected)


def test_paths_repeat_with_their_seed_and_do_not_depend_on_how_often_they_are_recorded():
    run = {"step": 0.1, "steps": 12, "chains": 5}
    every = trajectories.simulate(FRICTION, DIFFUSION, rng=3, **run)
    np.testing.assert_array_equal(every[::4], trajectories.simulate(FRICTION, DIFFUSION, rng=3, record_every=4, **run))
    assert np.abs(every - trajectories.simulate(FRICTION, DIFFUSION, rng=4, **run)).max() > 0.1


def test_singular_noise_moves_only_the_velocity_of_the_oscillator():
    euler = trajectories.simulate(*OSCILLATOR, step=0.1, steps=1, chains=50, rng=5, start=[1.0, 0.0], method="euler")
    np.testing.assert_allclose(euler[1, :, 0], 1.0, atol=1e-12)
    assert euler[1, :, 1].std() > 0.1


def test_strong_error_of_euler_in_one_dimension():
    """The stationary joint law of the two chains is a 2 x 2 discrete Lyapunov equation, here solved by hand."""
    gamma, strength, step = 1.0, 1.0, 0.4
    a, b = np.exp(-gamma * step), 1 - gamma * step
    crossed = 2 * strength * (1 - a) / (gamma * (1 - a * b))
    expected = strength / gamma * (1 + 1 / (1 - gamma * step / 2)) - 2 * crossed
    run = {"step": step, "steps": 60, "record_every": 60, "chains": 20_000, "rng": 6}
    exact, euler = trajectories.simulate([[gamma]], [[strength]], method="both", **run)
    within(trajectories.estimate_covariance((exact - euler)[1:]), expected)
    within(trajectories.estimate_covariance(exact[1:]), strength / gamma)
    np.testing.assert_array_equal(exact[0], euler[0])


REVERSIBLE = DIFFUSION @ np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize("friction, overstated", [(FRICTION, (0.8, 1.25)), (REVERSIBLE, (1.0, 3.0))])
def test_entropy_production_is_measured_without_bias_and_its_error_is_not_understated(friction, overstated):
    step, repeats = 0.02, 100
    sigma = langevin.euler_covariance(friction, DIFFUSION, step)
    flow = friction @ sigma
    rotation = (flow - flow.T) / 2
    expected = np.trace(np.linalg.solve(sigma, rotation.T) @ np.linalg.solve(DIFFUSION, rotation))
    run = {"step": step, "steps": 100, "chains": 60, "method": "euler"}
    films = (trajectories.simulate(friction, DIFFUSION, rng=seed, **run) for seed in range(repeats))
    rates, errors = np.array(
        [trajectories.estimate_entropy_production(film, step, DIFFUSION) for film in films]
    ).T  # (repeats,) each
    scatter = rates.std(ddof=1)
    assert abs(rates.mean() - expected) < 3.5 * scatter / np.sqrt(repeats)
    assert np.max(np.abs(rates - expected) / errors) < 4.5  # also where the measured Q happens to be near zero
    assert (
        overstated[0] < np.sqrt(np.mean(errors**2)) / scatter < overstated[1]
    )  # 1 ± 0.07; too large by design where Ṡ = 0


def test_estimators_on_two_chains_by_hand():
    paths = np.array([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]]])  # two quarter turns, of radius 1 and 2
    mean, error = trajectories.estimate_circulation(paths, 0.5)
    np.testing.assert_allclose(mean, [[0, 2.5], [-2.5, 0]])  # areas 1/2 and 2, in a time 1/2
    np.testing.assert_allclose(error, [[0, 1.5], [1.5, 0]])
    np.testing.assert_allclose(trajectories.estimate_covariance(paths)[0], np.eye(2) * 1.25)


def test_an_unstable_euler_chain_grows_and_then_refuses():
    run = {"step": 2.5, "chains": 4, "rng": 8, "start": [1.0], "method": "euler"}
    grown = trajectories.simulate([[1.0]], [[1.0]], steps=40, **run)
    assert np.abs(grown[-1]).min() > 1.5**30
    with pytest.raises(ValueError, match="step must keep the Euler chain inside the floating-point range"):
        trajectories.simulate([[1.0]], [[1.0]], steps=4000, **run)


# --- bad input: every public function, every argument ---------------------------------------------

PATHS = np.random.default_rng(0).standard_normal((4, 5, 2))
CALLS = {
    trajectories.simulate: {
        "friction": FRICTION,
        "diffusion": DIFFUSION,
        "step": 0.1,
        "steps": 4,
        "chains": 3,
        "rng": 1,
        "start": np.zeros(2),
        "method": "exact",
        "record_every": 2,
    },
    trajectories.estimate_covariance: {"paths": PATHS},
    trajectories.estimate_circulation: {"paths": PATHS, "interval": 0.1},
    trajectories.estimate_entropy_production: {"paths": PATHS, "interval": 0.1, "diffusion": DIFFUSION},
}
BAD = {
    "friction": [*MATRIX, -np.eye(2)],
    "diffusion": [*MATRIX, [[1.0, 0.5], [0.0, 1.0]], np.diag([1.0, -1e-3])],
    "start": [np.zeros(3), np.zeros((3, 4)), [np.nan, 1.0], "origin"],
    "step": NUMBER,
    "interval": NUMBER,
    "steps": COUNT,
    "chains": COUNT,
    "record_every": [*COUNT, 3],
    "rng": SEED,
    "method": ["midpoint", None, 3],
    "paths": [
        *(np.ones(n) for n in ((4, 1, 2), (0, 5, 2), (4, 5, 0), (4, 5))),
        np.full((4, 5, 2), np.nan),
        "paths",
        None,
    ],
}
CASES = cases(CALLS, BAD)


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    function(**CALLS[function])


@settings(max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    function, name, value = case
    # a good matrix of the wrong size: any partner may be named
    named = "friction|start|diffusion" if name == "diffusion" and np.shape(value) == (3, 3) else None
    refused(CALLS[function], function, name, value, named)


def test_paths_that_say_too_little_are_refused_by_name():
    with pytest.raises(ValueError, match="^paths must hold at least 2 records"):
        trajectories.estimate_circulation(PATHS[:1], 0.1)
    with pytest.raises(ValueError, match="^paths must span all directions"):
        trajectories.estimate_entropy_production(np.zeros((3, 4, 2)), 0.1, np.eye(2))

"""lib.fluctuations.sigmoid against the recursion in plain NumPy, and the theory of sigmoid."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sigmoid_data import overlapping, parity

from lib.fluctuations import linear, minibatches, regression, sigmoid
from lib.fluctuations.descent import over_blocks

UNIT = sigmoid.minimum(*parity())
TOP = np.linalg.eigvalsh(UNIT.hessian)[-1]
SMALL = sigmoid.minimum(*overlapping(30, 3, seed=1))


def rms(values):
    return np.sqrt(np.mean(values**2))


def sigmas(blocks, expected):
    mean, error = over_blocks(blocks)
    return (mean - expected) / error


def gradients(unit, v, chosen):
    z = expit(unit.inputs[chosen] @ (unit.weights + v))
    return -((unit.targets[chosen] - z) * z * (1 - z))[:, None] * unit.inputs[chosen]


@pytest.mark.parametrize("replacement", [False, True])
def test_a_chain_and_its_twin_are_the_recursions_on_the_minibatches_of_their_stream(replacement):
    rate, burn_in, steps = 2.0, 6, 40
    run = sigmoid.simulate(
        SMALL,
        rate,
        7,
        steps=steps,
        chains=1,
        rng=5,
        burn_in=burn_in,
        replacement=replacement,
        record_every=4,
        blocks=1,
    )
    children = np.random.SeedSequence(5).spawn(2)
    stream, first = (np.random.Generator(np.random.SFC64(child)) for child in children)
    spread = sigmoid.leading_order_covariance(SMALL, rate, 7, replacement=replacement)
    values, vectors = np.linalg.eigh(spread)
    u = vectors @ (np.sqrt(values) * first.standard_normal(3))
    v = u + sigmoid.mean_shift(SMALL, spread)
    seen, squares = [], []
    series = [minibatches.draw(30, 7, length, stream, replacement=replacement) for length in (burn_in, steps)]
    for step, chosen in enumerate(np.vstack(series)):
        x = SMALL.inputs[chosen]
        force = gradients(SMALL, v, chosen).mean(axis=0)
        if step >= burn_in:
            squares.append(force @ force)
            if (step - burn_in) % 4 == 0:
                seen.append((v, u, v @ gradients(SMALL, v, np.arange(30)).mean(axis=0)))
        u = u - rate * x.T @ (SMALL.slope[chosen] + SMALL.curvature[chosen] * (x @ u)) / 7
        v = v - rate * force
    paths = [np.array(each) for each in zip(*seen)]
    expected = [
        paths[0].mean(axis=0),
        paths[1].mean(axis=0),
        paths[0].T @ paths[0] / 10,
        paths[1].T @ paths[1] / 10,
        paths[2].mean(),
        np.mean(squares),
    ]
    for found, value in zip(vars(run).values(), expected, strict=True):
        np.testing.assert_allclose(found[0], value, rtol=1e-11, atol=1e-14)


@pytest.fixture(scope="module")
def runs():
    """By ε λ_max(H): the learning rate and a stationary run, longer where relaxation is slower."""
    sizes = {0.025: 8000, 0.1: 5000, 0.4: 5000}
    common = {"chains": 100, "rng": 1, "blocks": 20, "record_every": 25}
    return {
        size: (size / TOP, sigmoid.simulate(UNIT, size / TOP, 10, steps=steps, **common))
        for size, steps in sizes.items()
    }


def excess(learning_rate, moment):
    """The part of HC + CH beyond ε D, in units of ε D (along D)."""
    noise, flow = learning_rate * sigmoid.noise_moment(UNIT, 10), UNIT.hessian @ moment
    return ((flow + np.swapaxes(flow, -1, -2)) * noise).sum(axis=(-2, -1)) / (noise**2).sum() - 1


@pytest.mark.parametrize("size", [0.025, 0.1, 0.4])
def test_the_twin_has_its_exact_covariance_and_no_mean(runs, size):
    rate, run = runs[size]
    assert rms(sigmas(run.twin_second_moment, sigmoid.quadratic_covariance(UNIT, rate, 10))) < 1.6
    assert np.abs(sigmas(run.twin_mean, 0)).max() < 4.5


def test_the_linear_relation_fails_in_proportion_to_the_learning_rate(runs):
    found = {}
    for size, (rate, run) in runs.items():
        mean = run.mean.mean(axis=0)
        control = run.twin_second_moment - sigmoid.quadratic_covariance(UNIT, rate, 10)
        found[size] = over_blocks(excess(rate, run.second_moment - np.outer(mean, mean) - control))
    assert found[0.025][0] < 0.05 and found[0.025][1] < 0.005
    assert 3 < found[0.4][0] / found[0.1][0] < 7
    extrapolated = (4 * found[0.025][0] - found[0.1][0]) / 3  # what is linear in ε drops out
    assert abs(extrapolated) < 0.015


def test_the_mean_shift_is_the_predicted_one_for_small_steps(runs):
    ratios = {}
    for size, (rate, run) in runs.items():
        shift = sigmoid.mean_shift(UNIT, sigmoid.leading_order_covariance(UNIT, rate, 10))
        ratios[size] = over_blocks((run.mean - run.twin_mean) @ shift / (shift @ shift))
    extrapolated = (4 * ratios[0.025][0] - ratios[0.1][0]) / 3
    assert abs(extrapolated - 1) < 0.03 and ratios[0.025][1] < 0.01
    assert 3 < (ratios[0.4][0] - 1) / (ratios[0.1][0] - 1) < 7
    rate, run = runs[0.025]  # every component, not only their sum along the prediction
    shift = sigmoid.mean_shift(UNIT, sigmoid.leading_order_covariance(UNIT, rate, 10))
    mean, error = over_blocks(run.mean - run.twin_mean)
    assert (np.abs(mean - shift) < 4.5 * error + 0.05 * np.linalg.norm(shift)).all()
    assert np.linalg.norm(mean) > 10 * np.linalg.norm(error)


@pytest.mark.parametrize("size", [0.025, 0.1, 0.4])
def test_the_first_relation_of_yaida_is_exact(runs, size):
    rate, run = runs[size]
    ratio, error = over_blocks(run.pull / (rate / 2 * run.force_square))
    assert abs(ratio - 1) < 0.02 and abs(ratio - 1) < 4.5 * error and error < 0.01


def test_for_small_weights_the_chain_is_a_linear_one():
    """With targets 1/2 + δr: least squares of y - 1/2 on x/4, far beyond leading order in ε."""
    inputs, noise = overlapping(40, 3, seed=2)
    targets = 0.5 + 1e-3 * (noise - 0.5)
    unit, problem = sigmoid.minimum(inputs, targets), regression.fit(inputs / 4, targets[:, None] - 0.5)
    rate = 0.5 * linear.learning_rate_threshold(problem, 4)
    run = sigmoid.simulate(unit, rate, 4, steps=4000, chains=200, rng=3, blocks=40, record_every=10)
    exact, leading = (
        regression.in_input_basis(problem, solve(problem, rate, 4))
        for solve in (linear.stationary_covariance, linear.leading_order_covariance)
    )
    assert np.abs(sigmas(run.second_moment, exact)).max() < 4.5
    assert np.abs(sigmas(run.second_moment, leading)).max() > 20
    np.testing.assert_allclose(run.second_moment, run.twin_second_moment, rtol=1e-4, atol=1e-4 * np.abs(exact).max())


def test_the_default_burn_in_follows_the_slowest_mode():
    """It is five relaxation times of the slowest mode, and refused where that is out of reach."""
    rate = 0.1 / TOP
    slowest = rate * np.linalg.eigvalsh(UNIT.hessian)[0]
    common = {"steps": 50, "chains": 20, "blocks": 20}
    default = sigmoid.simulate(UNIT, rate, 10, rng=4, **common)
    given_ = sigmoid.simulate(UNIT, rate, 10, rng=4, burn_in=int(np.ceil(5 / slowest)), **common)
    np.testing.assert_array_equal(default.mean, given_.mean)
    with pytest.raises(ValueError, match="^learning_rate must be large enough to relax"):
        sigmoid.simulate(UNIT, 1e-12, 10, rng=4, **common)


def test_runs_repeat_with_their_seed_and_do_not_depend_on_workers():
    common = {"steps": 50, "chains": 8, "blocks": 4}
    sequence = np.random.SeedSequence(1)
    first, second = (sigmoid.simulate(SMALL, 0.5, 3, rng=sequence, workers=w, **common) for w in (1, 2))
    for one, other in zip(vars(first).values(), vars(second).values()):
        np.testing.assert_array_equal(one, other)
    assert np.abs(first.mean - sigmoid.simulate(SMALL, 0.5, 3, rng=2, **common).mean).max() > 1e-6


def test_a_step_beyond_floating_point_is_refused():
    with pytest.raises(ValueError, match="^learning_rate must keep the chains inside the floating-point range"):
        sigmoid.simulate(SMALL, 1e300, 3, steps=50, chains=10, rng=1, burn_in=0)


# --- bad input: every argument --------------------------------------------------------------------

CALLS = {
    sigmoid.simulate: {
        "unit": SMALL,
        "learning_rate": 0.5,
        "batch": 3,
        "steps": 4,
        "chains": 4,
        "rng": 1,
        "burn_in": 2,
        "replacement": False,
        "record_every": 2,
        "blocks": 2,
        "workers": 1,
    },
}
BAD = {
    "unit": [None, "unit", np.eye(2)],
    "learning_rate": NUMBER,
    "batch": [*COUNT, 31],
    "steps": COUNT,
    "chains": COUNT,
    "rng": SEED,
    "burn_in": [-1, 2.0, "2", True],
    "replacement": [None, 0, 1, "yes"],
    "record_every": [*COUNT[:-2], True, 3],
    "blocks": [*COUNT[:-2], True, 3],
    "workers": COUNT,
}
CASES = cases(CALLS, BAD)


def test_the_good_call_passes():
    run = sigmoid.simulate(**CALLS[sigmoid.simulate])
    assert (
        run.mean.shape == (2, 3)
        and run.second_moment.shape == (2, 3, 3)
        and run.pull.shape == run.force_square.shape == (2,)
    )


@settings(max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    refused(CALLS[case[0]], *case)

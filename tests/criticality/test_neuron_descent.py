"""neuron_descent against the step written out, moments of one gradient, the linear theory, frozen-parameter laws and
the equilibria."""

import numpy as np
import pytest
from bad_input import NUMBER, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit, ndtri
from scipy.stats import binom, kstest, norm

from lib.criticality import compositions, equilibria, neuron_descent

UNCUT = compositions.named("clip + cross-entropy", epsilon=0.0)
CUT = compositions.named("clip + cross-entropy", epsilon=1e-2)


def around(name, rate, replicas, seed):
    """A composition, its equilibrium, the linear covariance there, and replicas that start from it."""
    composition = compositions.named(name)
    found = equilibria.equilibrium(composition)
    spread = equilibria.stationary_covariance(found.moments.hessian, found.moments.covariance, rate)
    start = np.random.default_rng(seed).multivariate_normal([found.weight, found.bias], spread, replicas)
    return composition, found, spread, start


# --- one step -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sigmoid + cross-entropy", "sigmoid + squared"])
def test_a_step_is_minus_the_rate_times_the_slope_at_an_input_of_its_class(name):
    composition, data = compositions.named(name), {"means": (-0.5, 1.0), "deviation": 0.4, "priors": (0.3, 0.7)}
    found = neuron_descent.simulate(composition, np.tile([1.5, -0.4], (500, 1)), 0.2, 20, rng=1, **data)
    np.testing.assert_allclose(np.diff(found.weight, axis=0), found.weight_step, atol=1e-14)
    np.testing.assert_allclose(np.diff(found.bias, axis=0), found.bias_step, atol=1e-14)
    x = found.weight_step / found.bias_step
    slope = composition.slope(found.weight[:-1] * x + found.bias[:-1], found.label)
    np.testing.assert_allclose(found.bias_step, -0.2 * slope, rtol=1e-9)
    np.testing.assert_allclose(found.amplitude, -0.2 * slope * np.sqrt(1 + x**2), rtol=1e-9)
    for t in (0, 1):
        assert kstest(x[found.label == t], norm(data["means"][t], 0.4).cdf).pvalue > 1e-3
    assert 1e-4 < binom(found.label.size, 0.7).cdf(found.label.sum()) < 1 - 1e-4


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("name", ["ReLU + squared", "clip + cross-entropy", "sigmoid + squared"])
def test_one_step_has_the_moments_of_the_gradient(name, batch):
    composition, replicas = compositions.named(name), 40_000
    found = neuron_descent.simulate(composition, np.tile([1.7, -0.3], (replicas, 1)), 0.1, 1, rng=2, batch=batch)
    drawn = np.concatenate([found.weight_step, found.bias_step])
    moments = equilibria.moments(composition, 1.7, -0.3)
    spread = 0.01 * moments.covariance / batch
    assert np.all(np.abs(drawn.mean(axis=1) + 0.1 * moments.gradient) < 4 * np.sqrt(np.diag(spread) / replicas))
    products = (drawn - drawn.mean(axis=1, keepdims=True))[:, None] * (drawn - drawn.mean(axis=1, keepdims=True))
    assert np.all(np.abs(products.mean(axis=2) - spread) < 5 * products.std(axis=2) / np.sqrt(replicas))


@settings(deadline=None, max_examples=8)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 5))
def test_a_longer_run_begins_like_a_shorter_one_however_seldom_it_is_seen(records, every, batch):
    start, run = np.tile([0.5, 0.1], (2000, 1)), {"rng": 5, "batch": batch}
    composition = compositions.named("ReLU + quartic")
    long = neuron_descent.simulate(composition, start, 0.01, 160, **run)
    short = neuron_descent.simulate(composition, start, 0.01, records * every, every=every, **run)
    assert short.steps.tolist() == list(range(0, records * every + 1, every))
    for name in ("weight", "bias"):
        assert np.array_equal(getattr(short, name), getattr(long, name)[short.steps])
    for name in ("weight_step", "bias_step", "label", "amplitude"):
        assert np.array_equal(getattr(short, name), getattr(long, name)[short.steps[:-1]])


# --- around the equilibrium -----------------------------------------------------------------------


def test_replicas_keep_the_covariance_of_the_linear_theory():
    composition, found, spread, start = around("ReLU + squared", 0.02, 1000, 2)
    run = neuron_descent.simulate(composition, start, 0.02, 8000, rng=3, every=200)
    seen = np.cov(run.weight[5:].ravel(), run.bias[5:].ravel())
    np.testing.assert_allclose(np.diag(seen), np.diag(spread), rtol=0.1)
    assert seen[0, 1] == pytest.approx(spread[0, 1], abs=0.1 * np.sqrt(spread[0, 0] * spread[1, 1]))
    assert run.weight[5:].mean() == pytest.approx(found.weight, abs=0.01)


def test_replicas_forget_where_they_began():
    composition, found, spread, _ = around("ReLU + squared", 0.02, 1, 0)
    run = neuron_descent.simulate(composition, np.tile([0.6, 0.2], (1000, 1)), 0.02, 4000, rng=4, every=500)
    seen = np.cov(run.weight[4:].ravel(), run.bias[4:].ravel())
    np.testing.assert_allclose(np.diag(seen), np.diag(spread), rtol=0.1)
    assert run.weight[4:].mean() == pytest.approx(found.weight, abs=0.01)


def frozen_law(composition, weight, bias, rate):
    """All amplitudes of a stratified sample at frozen parameters, sorted."""
    x = np.array([[0.0], [1.0]]) + 0.25 * ndtri((np.arange(200_000) + 0.5) / 200_000)
    slope = composition.slope(weight * x + bias, np.array([[0.0], [1.0]]))
    return np.sort((-rate * slope * np.sqrt(1 + x**2)).ravel())


@pytest.mark.parametrize("name", ["sigmoid + cross-entropy", "sigmoid + squared"])
def test_real_steps_follow_the_law_at_frozen_parameters_if_the_rate_is_small(name):
    distances = []
    for rate in (0.01, 0.1, 1.0):
        composition, found, _, start = around(name, rate, 1000, 6)
        run = neuron_descent.simulate(composition, start, rate, 3000, rng=7, every=20)
        steps, law = np.sort(run.amplitude[50:].ravel()), frozen_law(composition, found.weight, found.bias, rate)
        distances.append(
            np.abs(np.searchsorted(law, steps) / len(law) - (np.arange(len(steps)) + 0.5) / len(steps)).max()
        )
    assert max(distances[:2]) < 0.005 and distances[2] > 2 * max(
        distances[:2]
    )  # 1e5 independent steps would be 0.003 apart


def test_the_bias_steps_of_cross_entropy_are_logit_normal():
    composition, found, _, start = around("sigmoid + cross-entropy", 0.01, 1000, 8)
    run = neuron_descent.simulate(composition, start, 0.01, 2000, rng=9, every=20)
    size = np.abs(run.bias_step.ravel()) / 0.01
    distance = kstest(logit(size), norm(found.bias, found.weight * 0.25).cdf).statistic
    assert distance < 0.006  # five times the noise of 1e5 independent steps, 1/√1e5 = 0.003, and less


# --- clip and cross-entropy: death without a cut --------------------------------------------------


def test_without_a_cut_giant_steps_kill_and_the_dead_stay_dead():
    run = neuron_descent.simulate(UNCUT, np.tile([2.0, -0.5], (500, 1)), 1e-2, 20_000, rng=10, every=4000)
    dead = neuron_descent.dead_fraction(UNCUT, run.weight, run.bias)
    assert dead[0] == 0 and np.all(np.diff(dead) > 0) and 0.55 < dead[-1] < 0.78
    for_ever = neuron_descent.dead_fraction(UNCUT, run.weight, run.bias, threshold=1e-12)
    assert np.all(np.diff(for_ever) > 0) and 0.3 < for_ever[-1] < dead[-1]
    live = equilibria.live_probability(UNCUT, run.weight, run.bias).mean(axis=0)
    np.testing.assert_allclose(for_ever, (live < 1e-12).mean(axis=1))
    buried = live[1] < 1e-12
    assert buried.sum() > 20 and np.array_equal(run.weight[1:, buried], np.tile(run.weight[1, buried], (5, 1)))


def test_a_cut_keeps_everyone_alive():
    run = neuron_descent.simulate(CUT, np.tile([2.0, -0.5], (500, 1)), 1e-3, 20_000, rng=10, every=5000)
    assert np.array_equal(neuron_descent.dead_fraction(CUT, run.weight, run.bias, threshold=1e-3), np.zeros(5))


def test_a_long_run_with_a_cut_ends_at_the_root_of_the_mean_gradient():
    weight = equilibria.clip_weight(1e-2)  # batches stand for a smaller rate: γ/M = 1.6e-4, with γt = 1000
    run = neuron_descent.simulate(CUT, np.tile([2.0, -0.5], (4, 1)), 2e-2, 50_000, rng=12, batch=128, every=500)
    assert run.weight[0, 0] == 2 and run.weight[-30:].mean() == pytest.approx(weight, rel=0.02)
    assert run.bias[-30:].mean() == pytest.approx((1 - weight) / 2, rel=0.02)


def test_dead_fraction_of_relu_is_a_threshold_on_the_normal_tail():
    weight, bias = np.array([0.5, 0.5, 0.5, -0.4]), np.array([0.0, -1.0, -3.0, 9.0])
    inside = norm.sf(0, weight * np.array([[0], [1]]) + bias, np.abs(weight) * 0.25).mean(
        axis=0
    )  # about 0.75, 3e-5, 0, 1
    relu = compositions.named("ReLU + squared")
    for threshold in (1e-6, 1e-4, 0.8):
        assert neuron_descent.dead_fraction(relu, weight, bias, threshold=threshold) == np.mean(inside < threshold)


# --- what is refused ------------------------------------------------------------------------------


def test_a_descent_that_diverges_says_so():
    with pytest.raises(RuntimeError, match="^the descent diverged at step .*: take a smaller learning_rate"):
        neuron_descent.simulate(
            compositions.named("ReLU + quartic"), np.tile([3.0, 1.0], (200, 1)), 10.0, 1000, rng=1, deviation=3.0
        )


DATA = {"composition": CUT, "means": (0.0, 1.0), "deviation": 0.25, "priors": (0.5, 0.5)}
CALLS = {
    neuron_descent.simulate: {
        **DATA,
        "start": [[2.0, -0.5]],
        "learning_rate": 1e-3,
        "steps": 4,
        "rng": 1,
        "batch": 2,
        "every": 2,
    },
    neuron_descent.dead_fraction: {**DATA, "weight": [[1.0, 2.0]], "bias": [[0.0, -0.5]], "threshold": 1e-3},
}
ARRAY = [[], [np.nan, 1.0], [np.inf, 1.0], 1.0, "x", None, [[1j, 1.0]]]
COUNT = [0, -2, 2.0, "2", None, True]
BAD = {
    "composition": ["clip + cross-entropy", None, 1.0, np.ones(2)],
    "start": [*ARRAY, np.zeros((0, 2)), np.zeros((3, 3)), [1.0, 2.0]],
    "weight": ARRAY,
    "bias": [*ARRAY, [0.0, -0.5], [[0.0]]],
    "threshold": [*NUMBER, 1.0],
    "learning_rate": NUMBER,
    "steps": [*COUNT, 3],
    "every": [*COUNT],
    "batch": COUNT,
    "rng": SEED,
    "means": [[0.0], [0.0, 0.0], [0.0, np.nan], [[0.0, 1.0]], 1.0, "means", None],
    "deviation": NUMBER,
    "priors": [[0.5, 0.4], [0.0, 1.0], [-0.5, 1.5], [1.0], 1.0, [0.5, np.nan], "priors", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, {"weight": "weight|bias"})

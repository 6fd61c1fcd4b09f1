"""lib.scaling.linear_descent against a loop in NumPy, the exact mean over examples, limits, and symmetries."""

import numpy as np
import pytest
from bad_input import AXIS, COUNT, NUMBER, SEED, exercised

from lib.foundations import online
from lib.scaling import linear_descent, linear_student, spectra

LAM = spectra.power_law(6, 0.75)


def stream(seed, run, runs):
    """The random numbers that run number `run` draws."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed).spawn(runs)[run]))


def test_every_step_is_that_of_a_plain_loop():
    start = linear_descent.random_deviations(2, 6, 1)
    runs = linear_descent.simulate(start, LAM, 0.4, [0, 2, 5], rng=3)
    random, path = stream(3, 1, 2), [start[1]]
    for _ in range(30):
        xi = np.sqrt(LAM) * random.standard_normal(6)
        path.append(path[-1] - 0.4 / 6 * (path[-1] @ xi) * xi)
    expected = np.array(path)[[0, 12, 30]]
    np.testing.assert_allclose(runs.space_errors[1], expected**2 / 6, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(runs.generalization_error[1], expected**2 @ LAM / 12, rtol=1e-11)
    np.testing.assert_allclose(runs.deviation[1], expected[-1], rtol=1e-11)
    np.testing.assert_array_equal(runs.times, [0, 2, 5])


@pytest.mark.parametrize("counts", [[1] * 6, [1, 2, 3, 4, 5, 9]])
def test_mean_errors_follow_the_exact_recursion_from_the_same_start(counts):
    counts, rate, alpha, count = np.array(counts), 0.4, [0.5, 2.0, 6.0], 6000
    lam, size = LAM / (counts @ LAM / counts.sum()), counts.sum()
    assert rate < 0.5 * linear_student.finite_size_threshold(lam, multiplicities=counts)
    every = np.repeat(lam, counts)  # (N,)
    start = linear_descent.random_deviations(1, size, 5)  # one start, so that only the examples are averaged
    runs = linear_descent.simulate(np.tile(start, (count, 1)), every, rate, alpha, rng=6, multiplicities=counts)
    a = rate * lam / size
    step = np.diag(1 - 2 * a + 2 * a**2) + np.outer(a * counts, a)  # (L, L)
    first = np.add.reduceat(start[0] ** 2, np.cumsum(counts) - counts) / size
    expected = np.array([np.linalg.matrix_power(step, int(round(t * size))) @ first for t in alpha])  # (n, L)
    error = runs.space_errors.std(axis=0, ddof=1) / np.sqrt(count)
    assert np.all(np.abs(runs.space_errors.mean(axis=0) - expected) < 4.5 * error)
    assert np.all(error < 0.1 * expected)


def test_mean_over_starts_is_that_of_the_library():
    count, rate, alpha = 4000, 0.3, [1.0, 8.0]
    start = linear_descent.random_deviations(count, 32, 7, student_variance=0.5)
    lam = spectra.power_law(32, 1.0)
    runs = linear_descent.simulate(start, lam, rate, alpha, rng=8)
    expected = linear_student.finite_size_error(alpha, lam, rate, student_variance=0.5)
    error = runs.generalization_error.std(axis=0, ddof=1) / np.sqrt(count)
    assert np.all(np.abs(runs.generalization_error.mean(axis=0) - expected) < 4.5 * error) and np.all(
        error < 0.05 * expected
    )


def test_frozen_components_stay_and_act_as_noise_on_the_others():
    trained, rate, count, size = 3, 0.5, 8000, 6
    start = np.tile(linear_descent.random_deviations(1, size, 9), (count, 1))
    runs = linear_descent.simulate(start, LAM, rate, [1 / 6, 40.0], rng=10, trained=trained)
    np.testing.assert_array_equal(runs.deviation[:, trained:], start[:, trained:])
    assert np.abs(runs.deviation[:, :trained] - start[:, :trained]).min() > 0
    a, x = rate * LAM / size, start[0] ** 2 / size
    after = x[:trained] * (1 - 2 * a + 2 * a**2)[:trained] + a[:trained] * (
        a @ x
    )  # one step, the frozen error included
    error = runs.space_errors.std(axis=0, ddof=1) / np.sqrt(count)
    assert np.all(np.abs(runs.space_errors.mean(axis=0)[0, :trained] - after) < 4.5 * error[0, :trained])
    linear = np.diag((2 * a - 2 * a**2)[:trained]) - np.outer(
        a[:trained], a[:trained]
    )  # stationary: linear e = a (a · e)_frozen
    floor = np.linalg.solve(linear, a[:trained] * (a[trained:] @ x[trained:]))
    assert np.all(np.abs(runs.space_errors.mean(axis=0)[1, :trained] - floor) < 4.5 * error[1, :trained])
    assert np.all(error[1, :trained] < 0.1 * floor)


def test_training_all_components_is_the_default():
    start = linear_descent.random_deviations(2, 6, 11)
    whole, all_six = (
        linear_descent.simulate(start, LAM, 0.4, [3], 12, **extra).deviation for extra in ({}, {"trained": 6})
    )
    np.testing.assert_array_equal(whole, all_six)


def test_the_error_is_that_of_the_spaces_and_spaces_are_sums_of_components():
    start = linear_descent.random_deviations(3, 6, 13)
    single = linear_descent.simulate(start, np.repeat([2.0, 0.5], [2, 4]), 0.3, [0, 2], 14)
    spaces = linear_descent.simulate(start, np.repeat([2.0, 0.5], [2, 4]), 0.3, [0, 2], 14, multiplicities=[2, 4])
    np.testing.assert_allclose(spaces.space_errors[..., 0], single.space_errors[..., :2].sum(axis=-1), rtol=1e-13)
    np.testing.assert_allclose(spaces.generalization_error, spaces.space_errors @ [2.0, 0.5] / 2, rtol=1e-13)
    np.testing.assert_allclose(single.space_errors[:, 0], start**2 / 6, rtol=1e-14)


def test_the_error_of_a_large_system_follows_the_limit():
    """N = 3000, L = 6: single runs scatter as N^-1/2 about the equations for N → ∞."""
    lam, counts, alpha = LAM, np.full(6, 500), np.array([1.0, 5.0])
    runs = linear_descent.simulate(
        linear_descent.random_deviations(6, 3000, 15), np.repeat(lam, counts), 0.8, alpha, 16, workers=2
    )
    limit = linear_student.generalization_error(alpha, lam, 0.8)
    np.testing.assert_allclose(runs.generalization_error.mean(axis=0), limit, rtol=0.06)


def test_only_the_scale_of_the_start_matters():
    start = linear_descent.random_deviations(2, 6, 17)
    one = linear_descent.simulate(start, LAM, 0.4, [4], 18).generalization_error
    np.testing.assert_allclose(
        linear_descent.simulate(-3 * start, LAM, 0.4, [4], 18).generalization_error, 9 * one, rtol=1e-12
    )
    assert np.all(linear_descent.simulate(0 * start, LAM, 0.4, [4], 18).generalization_error == 0)


def test_results_depend_on_the_seed_alone():
    start, lam = linear_descent.random_deviations(4, 20, 19), spectra.power_law(20, 1.0)
    before, seed = start.copy(), np.random.SeedSequence(20)
    one = linear_descent.simulate(start, lam, 0.5, [3], seed)
    two = linear_descent.simulate(start, lam, 0.5, [1, 3], seed, workers=2)
    np.testing.assert_array_equal(one.deviation, two.deviation)  # neither workers nor records change a run
    np.testing.assert_array_equal(one.deviation[:2], linear_descent.simulate(start[:2], lam, 0.5, [3], 20).deviation)
    np.testing.assert_array_equal(start, before)
    assert seed.n_children_spawned == 0
    other = linear_descent.simulate(start, lam, 0.5, [3], 21).deviation
    assert np.unique(np.concatenate([one.deviation, other])[:, 0]).size == 8


def test_times_are_rounded_to_whole_examples():
    start = linear_descent.random_deviations(1, 64, 22)
    np.testing.assert_array_equal(
        linear_descent.simulate(start, np.ones(64), 0.5, [0.1, 0.3], 23).times, [6 / 64, 19 / 64]
    )


def test_random_deviations_have_the_variance_asked_for():
    drawn = linear_descent.random_deviations(4, 50_000, 24, student_variance=0.21)
    assert np.all(np.abs(drawn.var(axis=1) / 1.21 - 1) < 4 * np.sqrt(2 / 50_000))
    assert np.all(np.abs(drawn.mean(axis=1)) < 4 * 1.1 / np.sqrt(50_000))
    np.testing.assert_allclose(
        drawn / 1.1, online.random_weights(4, 50_000, 24), rtol=1e-14
    )  # the same stream, another scale


def test_a_run_that_overflows_is_announced():
    with pytest.raises(ValueError, match="^learning_rate must keep every run inside"):
        linear_descent.simulate(np.ones((1, 4)), np.ones(4), 50.0, [400.0], 25)


# --- bad input: every public function, every argument

CALLS = {
    linear_descent.random_deviations: {"runs": 2, "dimension": 4, "rng": 1, "student_variance": 0.5},
    linear_descent.simulate: {
        "deviation": np.ones((2, 4)),
        "eigenvalues": np.ones(4),
        "learning_rate": 0.5,
        "times": [0, 1],
        "rng": 1,
        "multiplicities": [1, 3],
        "trained": 2,
        "workers": 1,
    },
}
BAD = {
    "runs": COUNT,
    "dimension": COUNT,
    "workers": COUNT,
    "trained": [0, -1, 2.0, "all", True, 5],
    "rng": SEED,
    "student_variance": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
    "deviation": [np.ones(4), np.ones((0, 4)), np.ones((2, 0)), [[np.nan] * 4], [[np.inf] * 4], "weights", None],
    "eigenvalues": [np.ones(3), np.zeros(4), -np.ones(4), np.full(4, np.nan), np.ones((1, 4)), 1.0, "wide", None],
    "learning_rate": NUMBER,
    "times": [*AXIS, [0.0, 0.1]],
    "multiplicities": [[], [1, 2], [0, 4], [1.5, 2.5], [-1, 5], [np.nan, 4], "a", 4.0, [[1, 3]]],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

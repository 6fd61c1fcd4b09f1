"""lib.scaling.linear_descent against a loop in NumPy, the exact mean over examples, limits, and symmetries."""

import numpy as np
import pytest
from power_law import power_law

from lib.common.spectrum import Spectrum
from lib.foundations import online
from lib.scaling import linear_descent
from lib.scaling.linear_student import finite_size_threshold

LAM = power_law(6, 0.75)


def test_every_step_is_that_of_a_plain_loop():
    start = linear_descent.random_deviations(2, 6, 1)
    runs = linear_descent.simulate(start, LAM, 0.4, [0, 2, 5], rng=3)
    random, path = np.random.Generator(np.random.SFC64(np.random.SeedSequence(3).spawn(2)[1])), [start[1]]
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
    spectrum, rate, times, count = Spectrum(LAM, counts).normalized(), 0.4, [0.5, 2.0, 6.0], 6000
    lam, counts, size = spectrum.eigenvalues, np.array(counts), sum(counts)
    assert rate < 0.5 * finite_size_threshold(spectrum)
    start = linear_descent.random_deviations(1, size, 5)  # one start, so that only the examples are averaged
    runs = linear_descent.simulate(np.tile(start, (count, 1)), spectrum, rate, times, rng=6)
    a = rate * lam / size
    step = np.diag(1 - 2 * a + 2 * a**2) + np.outer(a * counts, a)  # (L, L)
    first = np.add.reduceat(start[0] ** 2, np.cumsum(counts) - counts) / size
    expected = np.array([np.linalg.matrix_power(step, round(t * size)) @ first for t in times])  # (n, L)
    error = runs.space_errors.std(axis=0, ddof=1) / np.sqrt(count)
    assert np.all(np.abs(runs.space_errors.mean(axis=0) - expected) < 4.5 * error)
    assert np.all(error < 0.1 * expected)


def test_frozen_components_stay_and_act_as_noise_on_the_others():
    trained, rate, count, size = 3, 0.5, 8000, 6
    start = np.tile(linear_descent.random_deviations(1, size, 9), (count, 1))
    runs = linear_descent.simulate(start, LAM, rate, [1 / 6, 40.0], rng=10, trained=trained)
    np.testing.assert_array_equal(runs.deviation[:, trained:], start[:, trained:])
    assert np.abs(runs.deviation[:, :trained] - start[:, :trained]).min() > 0
    a, x = rate * LAM / size, start[0] ** 2 / size
    b = a[:trained]
    after = x[:trained] * (1 - 2 * b + 2 * b**2) + b * (a @ x)  # one step, the frozen error included
    linear = np.diag(2 * b - 2 * b**2) - np.outer(b, b)  # stationary: linear e = a (a · e)_frozen
    floor = np.linalg.solve(linear, b * (a[trained:] @ x[trained:]))
    error = (runs.space_errors.std(axis=0, ddof=1) / np.sqrt(count))[:, :trained]
    assert np.all(np.abs(runs.space_errors.mean(axis=0)[:, :trained] - [after, floor]) < 4.5 * error)
    assert np.all(error[1] < 0.1 * floor)


def test_the_error_is_that_of_the_spaces_and_spaces_are_sums_of_components():
    start, spectrum = linear_descent.random_deviations(3, 6, 13), Spectrum([2.0, 0.5], [2, 4])
    each = np.repeat(spectrum.eigenvalues, [2, 4])
    single, spaces = (linear_descent.simulate(start, s, 0.3, [0, 2], 14) for s in (each, spectrum))
    np.testing.assert_allclose(spaces.space_errors[..., 0], single.space_errors[..., :2].sum(axis=-1), rtol=1e-13)
    np.testing.assert_allclose(spaces.generalization_error, spaces.space_errors @ [2.0, 0.5] / 2, rtol=1e-13)
    np.testing.assert_allclose(single.space_errors[:, 0], start**2 / 6, rtol=1e-14)


def test_results_depend_on_the_seed_alone():
    start, lam = linear_descent.random_deviations(4, 20, 19), power_law(20, 1.0)
    before, seed = start.copy(), np.random.SeedSequence(20)
    one = linear_descent.simulate(start, lam, 0.5, [3], seed)
    two = linear_descent.simulate(start, lam, 0.5, [1, 3], seed, workers=2, trained=20)
    np.testing.assert_array_equal(one.deviation, two.deviation)  # neither workers nor records change a run
    np.testing.assert_array_equal(one.deviation[:2], linear_descent.simulate(start[:2], lam, 0.5, [3], 20).deviation)
    np.testing.assert_array_equal(start, before)
    assert seed.n_children_spawned == 0
    other = linear_descent.simulate(start, lam, 0.5, [3], 21).deviation
    assert np.unique(np.concatenate([one.deviation, other])[:, 0]).size == 8


def test_random_deviations_have_the_variance_asked_for():
    drawn = linear_descent.random_deviations(4, 50_000, 24, student_variance=0.21)
    assert np.all(np.abs(drawn.var(axis=1) / 1.21 - 1) < 4 * np.sqrt(2 / 50_000))
    assert np.all(np.abs(drawn.mean(axis=1)) < 4 * 1.1 / np.sqrt(50_000))
    # the same stream, another scale
    np.testing.assert_allclose(drawn / 1.1, online.random_weights(4, 50_000, 24), rtol=1e-14)


def test_times_are_rounded_to_whole_examples_and_what_does_not_fit_together_is_refused():
    start = linear_descent.random_deviations(1, 64, 22)
    runs = linear_descent.simulate(start, np.ones(64), 0.5, [0.1, 0.3], 23)
    np.testing.assert_array_equal(runs.times, [6 / 64, 19 / 64])
    with pytest.raises(ValueError, match="^times must lie at least one example"):
        linear_descent.simulate(start, np.ones(64), 0.5, [0.1, 0.101], 23)
    with pytest.raises(ValueError, match="^learning_rate must keep the result"):
        linear_descent.simulate(start, np.ones(64), 50.0, [400.0], 25)
    for spectrum, said in (([1.0], "multiplicities that add up to"), (Spectrum([1.0, 1.0], [0.5, 63.5]), "whole")):
        with pytest.raises(ValueError, match=f"^spectrum must have {said}"):
            linear_descent.simulate(start, spectrum, 0.5, [1.0], 25)
    for shape in ((0, 4), (2, 0)):
        with pytest.raises(ValueError, match="^deviation must hold at least one"):
            linear_descent.simulate(np.ones(shape), np.ones(4), 0.5, [1.0], 25)

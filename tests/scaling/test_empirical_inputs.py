"""lib.scaling.empirical_inputs against every order of examples, Gaussian theory, loops, and known contrast."""

from itertools import product

import numpy as np
import pytest
from power_law import power_law

from lib.fluctuations import regression
from lib.scaling import empirical_inputs
from lib.scaling.linear_student import LinearStudent, finite_size_threshold


def fitted(x):
    return regression.fit(x, np.zeros((len(x), 1)))


def problem(samples, inputs, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((samples, inputs)) * np.exp(0.5 * rng.standard_normal((samples, 1)))
    return fitted(x / np.arange(1, inputs + 1))


@pytest.mark.parametrize("rate", [0.4, 3.0])  # below and above the threshold
def test_exact_mean_is_the_average_over_every_sequence_of_examples(rate):
    few, size, errors = problem(4, 3, seed=1), 3, np.zeros(5)
    for order in product(range(4), repeat=4):
        moving = np.eye(size)  # D at the start, one unit vector a row: their errors add up to the mean over D
        errors[0] += (moving**2 @ few.eigenvalues).sum() / (2 * size)
        for step, sample in enumerate(order):
            x = few.inputs[sample]
            moving = moving - rate / size * np.outer(moving @ x, x)
            errors[step + 1] += (moving**2 @ few.eigenvalues).sum() / (2 * size)
    found = empirical_inputs.generalization_error(np.arange(5) / size, few, rate)
    np.testing.assert_allclose(found, errors / 4**4, rtol=1e-11)


def test_exact_mean_and_squares_alone_step_by_step():
    data, rate, steps = problem(60, 6), 0.5, [0, 1, 7, 90]
    lam, second, squares, full, diagonal = data.eigenvalues, np.eye(6), np.ones(6), {}, {}
    fourth = np.einsum("ai,aj->ij", data.inputs**2, data.inputs**2) / 60
    for step in range(max(steps) + 1):
        full[step], diagonal[step] = np.diag(second) @ lam / 12, squares @ lam / 12
        drift = lam[:, None] * second + second * lam
        second = second - rate / 6 * drift + (rate / 6) ** 2 * data.fourth_moment(second)
        squares = (1 - 2 * rate * lam / 6) * squares + (rate / 6) ** 2 * fourth @ squares
    for function, wanted in (
        (empirical_inputs.generalization_error, full), (empirical_inputs.diagonal_error, diagonal)
    ):  # fmt: skip
        found = function(np.array(steps) / 6, data, rate)
        np.testing.assert_allclose(found, [wanted[s] for s in steps], rtol=1e-10)


def symmetric_inputs(lam):
    """Inputs ±√λ_k x_k with x from Gauss-Hermite nodes: all moments to fourth order are those of a Gaussian."""
    nodes = np.array([-np.sqrt(3), 0, 0, 0, 0, np.sqrt(3)])  # weights 1/6, 4/6, 1/6
    return np.array(list(product(nodes, repeat=len(lam)))) * np.sqrt(lam)


def test_gaussian_fourth_moments_give_the_gaussian_recursion():
    lam, times = power_law(4, 0.75), np.array([0.0, 0.25, 1.0, 20.0])
    data, expected = fitted(symmetric_inputs(lam)), LinearStudent(lam, 0.6).finite_size_error(times)
    np.testing.assert_allclose(empirical_inputs.diagonal_error(times, data, 0.6), expected, rtol=1e-10)
    np.testing.assert_allclose(empirical_inputs.generalization_error(times, data, 0.6), expected, rtol=1e-10)
    assert empirical_inputs.contrast_kurtosis(data) == pytest.approx(1, rel=1e-12)


def test_the_mean_stays_bounded_up_to_the_threshold_of_the_exact_identity():
    data = problem(50, 4, seed=2)
    edge = 4 * data.learning_rate_threshold(1, replacement=True)
    below, above = (empirical_inputs.generalization_error([1e3, 2e3], data, f * edge) for f in (0.99, 1.01))
    assert below[1] < below[0] and above[1] > above[0]


def test_a_common_contrast_multiplies_the_kurtosis_and_acts_as_a_larger_rate():
    lam, u = power_law(4, 0.75), np.array([0.25, 1.75])
    scaled = np.concatenate([np.sqrt(part) * symmetric_inputs(lam) for part in u])
    data, kappa = fitted(scaled), np.mean(u**2)
    for inputs in (data, fitted(7 * scaled)):
        assert empirical_inputs.contrast_kurtosis(inputs) == pytest.approx(kappa, rel=1e-12)
    exact = 4 * data.learning_rate_threshold(1, replacement=True)
    assert exact == pytest.approx(finite_size_threshold(lam) / kappa, rel=1e-9)


def test_small_rates_keep_their_digits():
    data = fitted([[1.0], [2.0]])  # ½λ(1 - 2ηλ + ...)^α → ½λ e^{-2λ}, λ = 5/2, for α = 1/η
    for rate in (1e-12, 1e-16, 1e-17):
        found = empirical_inputs.generalization_error(1 / rate, data, rate)
        assert found == pytest.approx(1.25 * np.exp(-5), rel=1e-10)


def test_what_does_not_fit_together_is_refused():
    for function in (empirical_inputs.generalization_error, empirical_inputs.diagonal_error):
        with pytest.raises(ValueError, match=r"^learning_rate must keep the result"):
            function([1e5], problem(20, 3), 50.0)
    wide = empirical_inputs.LARGEST + 1
    with pytest.raises(ValueError, match=r"^problem must have at most"):
        empirical_inputs.generalization_error([1.0], problem(2 * wide, wide), 0.1)

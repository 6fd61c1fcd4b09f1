"""lib.scaling.given_inputs against every order of examples, Gaussian theory, loops, and known contrast."""

from itertools import product

import numpy as np
import pytest
from bad_input import exercised

from lib.fluctuations import regression
from lib.scaling import given_inputs, linear_student, spectra


def problem(samples, inputs, seed=0):
    rng = np.random.default_rng(seed)
    x = (
        rng.standard_normal((samples, inputs))
        * np.exp(0.5 * rng.standard_normal((samples, 1)))
        / np.arange(1, inputs + 1)
    )
    return regression.fit(x, np.zeros((samples, 1)))


@pytest.mark.parametrize("rate", [0.4, 3.0])  # below and above the threshold
def test_exact_mean_is_the_average_over_every_sequence_of_examples(rate):
    few = problem(4, 3, seed=1)
    size, errors = 3, np.zeros(5)
    for order in product(range(4), repeat=4):
        moving = np.eye(size)  # D at the start, one unit vector a row: their errors add up to the mean over D
        errors[0] += (moving**2 @ few.eigenvalues).sum() / (2 * size)
        for step, sample in enumerate(order):
            x = few.inputs[sample]
            moving = moving - rate / size * np.outer(moving @ x, x)
            errors[step + 1] += (moving**2 @ few.eigenvalues).sum() / (2 * size)
    found = given_inputs.generalization_error(np.arange(5) / size, few, rate)
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
    alpha = np.array(steps) / 6
    np.testing.assert_allclose(
        given_inputs.generalization_error(alpha, data, rate), [full[s] for s in steps], rtol=1e-10
    )
    np.testing.assert_allclose(given_inputs.diagonal_error(alpha, data, rate), [diagonal[s] for s in steps], rtol=1e-10)


def symmetric_inputs(lam):
    """Inputs ±√λ_k x_k with x from Gauss-Hermite nodes: all moments to fourth order are those of a Gaussian."""
    nodes = np.array([-np.sqrt(3), 0, 0, 0, 0, np.sqrt(3)])  # weights 1/6, 4/6, 1/6
    x = np.array(list(product(nodes, repeat=len(lam)))) * np.sqrt(lam)
    return regression.fit(x, np.zeros((len(x), 1)))


def test_gaussian_fourth_moments_give_the_gaussian_recursion():
    lam, alpha = spectra.power_law(4, 0.75), np.array([0.0, 0.25, 1.0, 20.0])
    data = symmetric_inputs(lam)
    expected = linear_student.finite_size_error(alpha, lam, 0.6)
    np.testing.assert_allclose(given_inputs.diagonal_error(alpha, data, 0.6), expected, rtol=1e-10)
    np.testing.assert_allclose(given_inputs.generalization_error(alpha, data, 0.6), expected, rtol=1e-10)
    assert given_inputs.contrast_kurtosis(data) == pytest.approx(1, rel=1e-12)


def test_small_rates_lead_to_gradient_flow_and_the_squares_are_right_to_second_order():
    data, alpha = problem(80, 5, seed=3), np.array([0.0, 1.0, 4.0])
    flow = np.exp(-2 * np.outer(alpha, data.eigenvalues)) @ data.eigenvalues / 10
    off, gap = [], []
    for rate in (0.02, 0.01):
        full, diagonal = (
            f(alpha / rate, data, rate) for f in (given_inputs.generalization_error, given_inputs.diagonal_error)
        )
        off.append(np.abs(full / flow - 1)[1:])
        gap.append(np.abs(diagonal / full - 1)[1:])
    np.testing.assert_allclose(off[0] / off[1], 2, rtol=0.05)
    np.testing.assert_allclose(gap[0] / gap[1], 4, rtol=0.1)


def test_the_mean_stays_bounded_up_to_the_threshold_of_the_exact_identity():
    data = problem(50, 4, seed=2)
    edge = 4 * data.learning_rate_threshold(1, replacement=True)
    below, above = (given_inputs.generalization_error([1e3, 2e3], data, factor * edge) for factor in (0.99, 1.01))
    assert below[1] < below[0] and above[1] > above[0]


def test_a_common_contrast_multiplies_the_kurtosis_and_acts_as_a_larger_rate():
    lam, u = spectra.power_law(4, 0.75), np.array([0.25, 1.75])
    base = symmetric_inputs(lam).inputs
    scaled = np.concatenate([np.sqrt(part) * base for part in u])
    data = regression.fit(scaled, np.zeros((len(scaled), 1)))
    kappa = given_inputs.contrast_kurtosis(data)
    assert kappa == pytest.approx(np.mean(u**2), rel=1e-12)
    assert given_inputs.contrast_kurtosis(regression.fit(7 * scaled, np.zeros((len(scaled), 1)))) == pytest.approx(
        kappa, rel=1e-12
    )
    exact = 4 * data.learning_rate_threshold(1, replacement=True)
    assert exact == pytest.approx(linear_student.finite_size_threshold(lam) / kappa, rel=1e-9)


def test_exact_mean_is_the_mean_of_descent():
    data, runs, rng = problem(30, 4, seed=5), 20_000, np.random.default_rng(6)
    moving = rng.standard_normal((runs, 4))
    for _ in range(20):
        x = data.inputs[rng.integers(30, size=runs)]
        moving = moving - 0.3 / 4 * (moving * x).sum(axis=1, keepdims=True) * x
    error = moving**2 @ data.eigenvalues / 8
    exact = given_inputs.generalization_error([5.0], data, 0.3)[0]
    assert abs(error.mean() - exact) < 4 * error.std() / np.sqrt(runs) < 0.1 * exact


def test_small_rates_keep_their_digits():
    data = regression.fit([[1.0], [2.0]], [[0.0], [0.0]])  # ½λ(1 - 2ηλ + ...)^α -> ½λ e^{-2λ}, λ = 5/2, for α = 1/η
    for rate in (1e-12, 1e-16, 1e-17):
        assert given_inputs.generalization_error(1 / rate, data, rate) == pytest.approx(1.25 * np.exp(-5), rel=1e-10)


def test_what_is_refused_beyond_single_arguments():
    data = problem(20, 3)
    for function in (given_inputs.generalization_error, given_inputs.diagonal_error):
        with pytest.raises(ValueError, match=r"^learning_rate must keep the error inside"):
            function([1e5], data, 50.0)
    wide = given_inputs.LARGEST + 1
    with pytest.raises(ValueError, match=r"^problem must have at most"):
        given_inputs.generalization_error([1.0], problem(2 * wide, wide), 0.1)


# --- bad input: every public function, every argument

GOOD = {"alpha": [0.0, 1.0], "problem": problem(6, 2), "learning_rate": 0.1}
CALLS = {
    given_inputs.generalization_error: GOOD,
    given_inputs.diagonal_error: GOOD,
    given_inputs.contrast_kurtosis: {"problem": GOOD["problem"]},
}
BAD = {
    "alpha": [[-1.0], [np.nan], [[1.0]], -1.0, np.nan, True, "alpha", None],
    "problem": [None, np.eye(2), "data"],
    "learning_rate": [0, -1.0, np.nan, np.inf, "1", None, [0.1], True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

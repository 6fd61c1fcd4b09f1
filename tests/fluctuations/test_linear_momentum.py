"""lib.fluctuations.linear against averages over all minibatches, spectral radii, and the plain chain."""

import numpy as np
import pytest
from bad_input import COUNT, MATRIX, NUMBER, exercised
from linear_data import (
    chain_matrices,
    digits,
    every_batch,
    listed_moments,
    listed_second_moment,
    small,
    spectral_radius,
)

from lib.fluctuations import linear, regression

X, Y = small(6, 3, 2, seed=3)
PROBLEM = regression.fit(X, Y)
SAMPLING = [(batch, replacement) for batch in (1, 2, 3) for replacement in (False, True)]
P = np.array([[1.0, 0.3, -0.2], [0.3, 0.8, 0.1], [-0.2, 0.1, 2.0]])


def close(value, expected, tolerance):
    assert np.linalg.norm(value - expected) < tolerance * np.linalg.norm(expected)


def last_stable(second, **extension):
    """The learning rate at which the spectral radius of the listed second-moment map passes one, by bisection."""
    low, high = 0.0, 8 / PROBLEM.eigenvalues[0]
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if spectral_radius(second, middle, **extension) < 1 else (low, middle)
    return low


@pytest.mark.parametrize("batch, replacement", SAMPLING)
def test_momentum_and_preconditioning_by_listing_all_minibatches(batch, replacement):
    second, noise = listed_moments(X, Y, every_batch(6, batch, replacement))
    inside = PROBLEM.basis.T @ P @ PROBLEM.basis
    how = {"replacement": replacement}
    for extension, solve in (
        ({"momentum": 0.6}, lambda rate: linear.momentum_covariance(PROBLEM, rate, 0.6, batch, **how)),
        (
            {"preconditioner": P},
            lambda rate: linear.preconditioned_covariance(PROBLEM, inside, rate, batch, **how),
        ),
    ):
        limit = last_stable(second, **extension)
        for fraction in (0.05, 0.9):
            steps = [chain_matrices(second, noise[:, i], fraction * limit, **extension) for i in range(2)]
            listed = sum(listed_second_moment(each, each)[:3, :3] for each in steps)
            close(regression.in_input_basis(PROBLEM, solve(fraction * limit)), listed, 1e-10)
        solve(limit * (1 - 1e-6))
        with pytest.raises(ValueError, match="^learning_rate must be "):
            solve(limit * (1 + 1e-6))


def test_without_momentum_or_with_the_identity_descent_is_plain():
    problem = regression.fit(*digits())
    rate = 0.4 * linear.learning_rate_threshold(problem, 5)
    plain = linear.stationary_covariance(problem, rate, 5)
    close(linear.momentum_covariance(problem, rate, 0.0, 5), plain, 1e-10)
    close(linear.preconditioned_covariance(problem, np.eye(36), rate, 5), plain, 1e-10)
    close(linear.preconditioned_covariance(problem, 2 * np.eye(36), rate / 2, 5), plain, 1e-10)


def test_momentum_multiplies_the_learning_rate_at_small_rates():
    problem, mu = regression.fit(*digits()), 0.9

    def error(fraction):
        rate = fraction * (1 - mu) / problem.eigenvalues[0]
        expected = linear.leading_order_covariance(problem, rate / (1 - mu), 5)
        return np.linalg.norm(linear.momentum_covariance(problem, rate, mu, 5) - expected) / np.linalg.norm(expected)

    assert error(0.001) < 0.002
    assert error(0.001) / error(0.002) == pytest.approx(0.5, abs=0.02)


def test_momentum_sets_a_higher_limit_on_the_mean_and_a_full_batch_has_no_noise():
    beyond = 3 / PROBLEM.eigenvalues[0]  # above 2, below 2 (1 + μ) = 3.2
    assert not linear.momentum_covariance(PROBLEM, beyond, 0.6, 6).any()
    assert not linear.momentum_covariance(regression.fit(*digits()), 1e-4, 0.6, 1797).any()
    with pytest.raises(ValueError, match="^learning_rate must be below .* mean diverges"):
        linear.momentum_covariance(PROBLEM, 3.3 / PROBLEM.eigenvalues[0], 0.6, 6)


def test_the_inverse_moment_as_preconditioner_leaves_no_circulation_at_leading_order():
    problem = regression.fit(*small(40, 3, 2, seed=4))
    lam, noise = problem.eigenvalues, regression.noise_moment(problem, 2)

    def error(rate):
        g = linear.preconditioned_covariance(problem, np.diag(1 / lam), rate, 2)
        expected = rate / 2 * noise / np.outer(lam, lam)
        return np.linalg.norm(g - expected) / np.linalg.norm(expected)  # G symmetric, PA = 1: GPA - PAG is G - G = 0

    assert error(1e-5) < 1e-4
    assert error(1e-5) / error(2e-5) == pytest.approx(0.5, abs=0.02)


def test_a_weak_direction_of_the_preconditioner_keeps_its_digits():
    """Its variance falls in proportion; the others do not feel it."""
    weak, weaker = (
        linear.preconditioned_covariance(PROBLEM, np.diag([1.0, 1.0, part]), 0.01, 2) for part in (1e-9, 1e-12)
    )
    assert weaker[2, 2] == pytest.approx(1e-3 * weak[2, 2], rel=1e-9)
    close(weaker[:2, :2], weak[:2, :2], 1e-9)


def test_a_preconditioner_that_hides_a_direction_is_refused():
    narrow = regression.fit(X * [1.0, 1.0, 1e-5], Y)
    assert len(narrow.eigenvalues) == 3
    with pytest.raises(ValueError, match="^preconditioner must leave no direction"):
        linear.preconditioned_covariance(narrow, np.diag([1.0, 1.0, 1e-12]), 0.01, 2)


# --- bad input: every public function, every argument ---------------------------------------------

COMMON = {"problem": PROBLEM, "learning_rate": 0.01, "batch": 2, "replacement": False}
CALLS = {
    linear.momentum_covariance: COMMON | {"momentum": 0.5},
    linear.preconditioned_covariance: COMMON | {"preconditioner": P},
}
BAD = {
    "problem": [None, "problem", X],
    "learning_rate": [*NUMBER, 100.0],
    "momentum": [-0.1, 1.0, np.nan, np.inf, "1", None, [0.1], True],
    "preconditioner": [each for each in MATRIX if np.shape(each) != (3, 3)]
    + [np.diag([1.0, 1.0, 0.0]), np.triu(P), -P],
    "batch": [*COUNT, 7],
    "replacement": [None, 0, 1, "yes"],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

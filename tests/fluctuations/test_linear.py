"""lib.fluctuations.linear against exact fractions, averages over all minibatches, dense solutions, fresh samples."""

import numpy as np
import pytest
import sympy
from bad_input import COUNT, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
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

DIGITS = regression.fit(*digits())
SAMPLING = [(batch, replacement) for batch in (1, 2, 3) for replacement in (False, True)]
DIGITS_LIMIT = linear.learning_rate_threshold(DIGITS, 5)


def close(value, expected, tolerance):
    assert np.linalg.norm(value - expected) < tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("batch, replacement", [(1, False), (2, False), (2, True), (3, False)])
def test_four_rational_samples_give_the_fractions_of_all_their_minibatches(batch, replacement):
    x = sympy.Matrix([[1, 0], [1, 1], [0, 2], [-1, 1]])
    y = sympy.Matrix([1, 0, 2, 3])
    optimum = (x.T * x).LUsolve(x.T * y).T
    residual = y - x * optimum.T
    rate = sympy.Rational(1, 5)
    entries = sympy.symbols("a b c")
    g = sympy.Matrix([[entries[0], entries[1]], [entries[1], entries[2]]])
    after, batches = sympy.zeros(2, 2), every_batch(4, batch, replacement)
    for chosen in batches:
        s = sum((x[i, :].T * x[i, :] for i in map(int, chosen)), sympy.zeros(2, 2)) / batch
        xi = sum((residual[i] * x[i, :] for i in map(int, chosen)), sympy.zeros(1, 2)) / batch
        step = sympy.eye(2) - rate * s
        after += (step * g * step + rate**2 * xi.T * xi) / len(batches)
    fractions = g.subs(sympy.solve(list(after - g), entries))
    assert all(entry.is_Rational for entry in fractions)
    problem = regression.fit(np.array(x, dtype=float), np.array(y, dtype=float))
    solved = linear.stationary_covariance(problem, 0.2, batch, replacement=replacement)
    close(regression.in_input_basis(problem, solved), np.array(fractions, dtype=float), 1e-12)


@pytest.mark.parametrize("batch, replacement", SAMPLING)
@pytest.mark.parametrize("fraction", [0.05, 0.9])
def test_all_minibatches_of_six_samples(batch, replacement, fraction):
    x, y = small(6, 3, 2, seed=3)
    problem = regression.fit(x, y)
    rate = fraction * linear.learning_rate_threshold(problem, batch, replacement=replacement)
    second, noise = listed_moments(x, y, every_batch(6, batch, replacement))
    steps = [chain_matrices(second, noise[:, i], rate) for i in range(2)]

    def solved(pair):
        g = linear.stationary_covariance(problem, rate, batch, replacement=replacement, pair=pair)
        return regression.in_input_basis(problem, g)

    listed = {pair: listed_second_moment(steps[pair[0]], steps[pair[1]]) for pair in ((0, 0), (0, 1), (1, 1))}
    size = np.sqrt(np.trace(listed[0, 0][:3, :3] + listed[1, 1][:3, :3]))
    for pair, moment in listed.items():
        close(solved(pair), moment[:3, :3], 1e-11)
        assert np.abs(moment[-1, :3]).max() < 1e-11 * size  # E[V] = 0
    close(solved(None), listed[0, 0][:3, :3] + listed[1, 1][:3, :3], 1e-11)
    close(solved((1, 0)), solved((0, 1)), 1e-12)


def test_dense_solution_fixed_point_and_conjugate_gradients_agree():
    rate, lam, n = 0.5 * DIGITS_LIMIT, DIGITS.eigenvalues, len(DIGITS.eigenvalues)
    z, c = DIGITS.inputs, regression.batch_variance(1797, 5)
    solved = linear.stationary_covariance(DIGITS, rate, 5)
    noise = regression.noise_moment(DIGITS, 5)
    products = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)  # (N, n²)
    first = np.kron(np.diag(lam), np.eye(n)) + np.kron(np.eye(n), np.diag(lam))
    second = (1 - c) * np.kron(np.diag(lam), np.diag(lam)) + c * products.T @ products / len(z)
    dense = np.linalg.solve(first - rate * second, rate * noise.ravel()).reshape(n, n)
    close(solved, dense, 1e-9)
    metric = np.add.outer(lam, lam) - rate * (1 - c) * np.outer(lam, lam)
    iterated = rate * noise / metric
    for _ in range(60):
        iterated = (rate * noise + rate * c * regression.fourth_moment(DIGITS, iterated)) / metric
    close(solved, iterated, 1e-9)


@pytest.mark.parametrize("fraction", [0.02, 0.5, 0.99])
def test_the_solution_satisfies_its_equation_and_is_a_covariance(fraction):
    rate, lam = fraction * DIGITS_LIMIT, DIGITS.eigenvalues
    g = linear.stationary_covariance(DIGITS, rate, 5)
    right = rate * (regression.sandwich_moment(DIGITS, g, 5) + regression.noise_moment(DIGITS, 5))
    close(lam[:, None] * g + g * lam, right, 1e-10)
    np.testing.assert_array_equal(g, g.T)
    assert np.linalg.eigvalsh(g)[0] > 0


def test_leading_order_is_approached_linearly():
    def error(fraction):
        g = linear.stationary_covariance(DIGITS, fraction * DIGITS_LIMIT, 5)
        return np.linalg.norm(g - linear.leading_order_covariance(DIGITS, fraction * DIGITS_LIMIT, 5)) / np.linalg.norm(
            g
        )

    assert error(0.005) / error(0.01) == pytest.approx(0.5, abs=0.02)
    assert error(0.0005) < 0.001


def test_leading_order_of_a_pair_is_elementwise_in_the_basis_of_the_inputs_too():
    problem = regression.fit(*small(20, 3, 2))
    g = regression.in_input_basis(problem, linear.leading_order_covariance(problem, 0.1, 2, pair=(0, 1)))
    noise = regression.in_input_basis(problem, regression.noise_moment(problem, 2, pair=(0, 1)))
    close(problem.moment @ g + g @ problem.moment, 0.1 * noise, 1e-12)


def test_covariance_grows_with_the_noise_factor_and_the_learning_rate_and_vanishes_for_the_full_batch():
    assert not linear.stationary_covariance(DIGITS, DIGITS_LIMIT, 1797).any()
    by_batch = [linear.stationary_covariance(DIGITS, 0.3 * DIGITS_LIMIT, m) for m in (100, 20, 5, 1)]
    by_rate = [linear.stationary_covariance(DIGITS, f * DIGITS_LIMIT, 5) for f in (0.05, 0.2, 0.5, 0.9)]
    for small_one, large in [*zip(by_batch, by_batch[1:]), *zip(by_rate, by_rate[1:])]:
        assert np.linalg.eigvalsh(large - small_one)[0] > 0


@pytest.mark.parametrize("samples, size, batch, replacement", [(12, 3, 1, False), (12, 3, 2, True), (60, 9, 1, False)])
def test_spectral_radius_is_one_at_the_threshold(samples, size, batch, replacement):
    x, y = small(samples, size, 1, seed=5)
    problem = regression.fit(x, y)
    how = {"replacement": replacement}
    limit = linear.learning_rate_threshold(problem, batch, **how)
    second, _ = listed_moments(x, y, every_batch(samples, batch, replacement))
    assert spectral_radius(second, limit) == pytest.approx(1, abs=1e-8)
    assert linear.sufficient_learning_rate(problem, batch, **how) <= limit * (1 + 1e-12)
    assert limit <= 2 / problem.eigenvalues[0]
    linear.stationary_covariance(problem, 0.999 * limit, batch, **how)
    with pytest.raises(ValueError, match=r"^learning_rate must be below .* where the stationary covariance diverges"):
        linear.stationary_covariance(problem, limit, batch, **how)
    with pytest.raises(ValueError, match="^learning_rate must be below"):
        linear.stationary_covariance(problem, 40 * limit, batch, **how)


def test_threshold_rises_with_the_batch_to_that_of_the_mean():
    limits = (
        np.array([linear.learning_rate_threshold(DIGITS, m) for m in (1, 5, 100, 1797)]) * DIGITS.eigenvalues[0] / 2
    )
    assert np.all(np.diff(limits) > 0)
    assert 0.6 < limits[0] < 0.7 and 0.95 < limits[1] < 0.97 and limits[2] > 0.998
    assert limits[3] == pytest.approx(1, abs=1e-10)


X, Y = small(40, 4, 2, seed=7)
RATE = 0.4 * linear.learning_rate_threshold(regression.fit(X, Y), 3)


def covariance(x, y, rate, **how):
    problem = regression.fit(x, y)
    return regression.in_input_basis(problem, linear.stationary_covariance(problem, rate, 3, **how))


@settings(max_examples=20)
@given(
    decades=st.floats(-25, 25), target_decades=st.floats(-25, 25), seed=st.integers(0, 100), replacement=st.booleans()
)
def test_scaling_and_rotation_of_the_data(decades, target_decades, seed, replacement):
    scale, target_scale = 10.0**decades, 10.0**target_decades
    g = covariance(X, Y, RATE, replacement=replacement)
    close(covariance(scale * X, Y, RATE / scale**2, replacement=replacement), g / scale**2, 1e-10)
    close(covariance(X, target_scale * Y, RATE, replacement=replacement), g * target_scale**2, 1e-10)
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((4, 4)))[0]
    close(covariance(X @ rotation.T, Y, RATE, replacement=replacement), rotation @ g @ rotation.T, 1e-10)


def test_duplicated_data_matter_only_without_replacement():
    twice = np.tile(X, (2, 1)), np.tile(Y, (2, 1))
    close(covariance(*twice, RATE, replacement=True), covariance(X, Y, RATE, replacement=True), 1e-10)
    once, doubled = covariance(X, Y, RATE), covariance(*twice, RATE)
    assert np.linalg.norm(doubled - once) > 0.01 * np.linalg.norm(once)


def test_equal_eigenvalues_and_tiny_learning_rates():
    problem = regression.fit(np.repeat(np.eye(9), 2, axis=0), small(18, 1, 2)[1])
    assert linear.learning_rate_threshold(problem, 18) == pytest.approx(18.0, rel=1e-10)  # 2 / λ, every λ = 1/9
    tiny = linear.stationary_covariance(problem, 1e-250, 2)
    close(1e200 * tiny, 1e200 * linear.leading_order_covariance(problem, 1e-250, 2), 1e-12)


def test_blocks_of_the_outputs_add_up():
    g = linear.stationary_covariance(DIGITS, 0.3 * DIGITS_LIMIT, 5)
    close(sum(linear.stationary_covariance(DIGITS, 0.3 * DIGITS_LIMIT, 5, pair=(i, i)) for i in range(10)), g, 1e-10)


def test_gaussian_closed_form_against_samples_that_are_never_seen_twice():
    rng = np.random.default_rng(11)
    lam, sigma, rate, batch, chains = np.array([2.0, 1.0, 0.3]), 0.5, 0.25, 2, 4000
    g = linear.gaussian_covariance(lam, sigma**2 * lam / batch, rate, batch)
    v, total = rng.standard_normal((chains, 3)) * np.sqrt(g), np.zeros((chains, 3))
    for _ in range(1000):
        x = rng.standard_normal((chains, batch, 3)) * np.sqrt(lam)
        error = np.einsum("cbk,ck->cb", x, v) - sigma * rng.standard_normal((chains, batch))
        v = v - rate / batch * np.einsum("cb,cbk->ck", error, x)
        total += v**2 / 1000
    deviation = total.std(axis=0) / np.sqrt(chains)
    assert (deviation < 0.01 * g).all()
    assert (np.abs(total.mean(axis=0) - g) < 4 * deviation).all()
    assert (
        np.abs(total.mean(axis=0) - rate * sigma**2 / (2 * batch)) > 10 * deviation
    ).all()  # the leading order is far off


def test_gaussian_closed_form_solves_the_matrix_equation_and_its_scalar_case_has_a_pole():
    lam, noise, rate, batch = np.array([1.0, 0.5, 0.2]), np.array([0.3, 1.0, 0.1]), 0.4, 3
    g = linear.gaussian_covariance(lam, noise, rate, batch)
    sandwich = lam**2 * g + (lam * (lam @ g) + lam**2 * g) / batch
    np.testing.assert_allclose(2 * lam * g, rate * (sandwich + noise), rtol=1e-12)
    assert linear.gaussian_covariance([0.5], [0.5 * 4.0], 1.2, 1)[0] == pytest.approx(1.2 * 4.0 / (2 - 3 * 1.2 * 0.5))
    with pytest.raises(ValueError, match="^learning_rate must leave a stationary variance"):
        linear.gaussian_covariance([0.5], [1.0], 4 / 3, 1)


# --- bad input: every public function, every argument ---------------------------------------------

PROBLEM = regression.fit(X, Y)
BOUND = {"problem": PROBLEM, "batch": 3, "replacement": False}
SOLVE = BOUND | {"learning_rate": RATE, "pair": (0, 1)}
CALLS = {
    linear.learning_rate_threshold: BOUND,
    linear.sufficient_learning_rate: BOUND,
    linear.stationary_covariance: SOLVE,
    linear.leading_order_covariance: SOLVE,
    linear.gaussian_covariance: {"eigenvalues": [1.0, 0.5], "noise": [1.0, 2.0], "learning_rate": 0.1, "batch": 2},
}
BAD = {
    "problem": [None, "problem", X],
    "learning_rate": NUMBER,
    "batch": COUNT,
    "replacement": [None, 0, 1, "yes"],
    "pair": [(0,), (0, 2), (-1, 0), (0.0, 1), "01", 3],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None],
    "noise": [[], [1.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

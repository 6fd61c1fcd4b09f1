"""lib.fluctuations.relations against dense matrices over the inputs, closed forms of two modes, and transforms."""

import numpy as np
import pytest
from bad_input import COUNT, MATRIX, NUMBER, exercised
from linear_data import digits, small

from lib.fluctuations import linear, regression, relations

DIGITS = regression.fit(*digits())
LIMIT = linear.learning_rate_threshold(DIGITS, 5)


@pytest.mark.parametrize("batch, fraction", [(5, 0.02), (5, 0.26), (5, 0.5), (1, 0.5), (100, 0.1)])
def test_leading_relation_fails_by_the_ratio_to_the_threshold_and_the_exact_one_holds(batch, fraction):
    rate = fraction * linear.learning_rate_threshold(DIGITS, batch)
    errors = relations.relation_errors(DIGITS, linear.stationary_covariance(DIGITS, rate, batch), rate, batch)
    assert errors.leading == pytest.approx(fraction, rel=0.2)
    assert errors.exact < 1e-10
    assert errors.shape < errors.leading / 5 and errors.scale > 1


def test_leading_order_has_no_error_and_a_scaled_one_only_a_scale():
    g = linear.leading_order_covariance(DIGITS, 1e-4, 5)
    errors = relations.relation_errors(DIGITS, 3 * g, 1e-4, 5)
    assert errors.scale == pytest.approx(3, rel=1e-12)
    assert errors.shape < 1e-12
    assert errors.leading == pytest.approx(2 / 3, rel=1e-12)


@pytest.mark.parametrize("batch, fraction, replacement", [(5, 0.1, False), (1, 0.5, True), (30, 0.9, False)])
def test_both_relations_of_yaida_hold_exactly_and_fail_without_the_multiplicative_noise(batch, fraction, replacement):
    rate = fraction * linear.learning_rate_threshold(DIGITS, batch, replacement=replacement)
    g = linear.stationary_covariance(DIGITS, rate, batch, replacement=replacement)
    ratios = relations.yaida_ratios(DIGITS, g, rate, batch, replacement=replacement)
    np.testing.assert_allclose(ratios, 1, rtol=1e-10)
    leading = linear.leading_order_covariance(DIGITS, rate, batch, replacement=replacement)
    assert max(relations.yaida_ratios(DIGITS, leading, rate, batch, replacement=replacement)) < 1 - fraction / 5


def test_split_is_that_of_the_dense_product_and_elementwise_in_the_pca_basis():
    problem = regression.fit(*small(30, 4, 2))
    g = linear.stationary_covariance(problem, 0.5 * linear.learning_rate_threshold(problem, 2), 2)
    symmetric, turning = relations.split(problem, g)
    dense = problem.moment @ regression.in_input_basis(problem, g)
    np.testing.assert_allclose(regression.in_input_basis(problem, symmetric), (dense + dense.T) / 2, atol=1e-13)
    np.testing.assert_allclose(regression.in_input_basis(problem, turning), (dense - dense.T) / 2, atol=1e-13)
    lam = problem.eigenvalues
    np.testing.assert_allclose(
        turning, np.subtract.outer(lam, lam) / np.add.outer(lam, lam) * symmetric, rtol=1e-10, atol=1e-14
    )
    assert np.linalg.norm(turning) > 0.01 * np.linalg.norm(symmetric)
    flow = np.stack([dense - dense.T, dense + dense.T])
    expected = np.linalg.norm(flow[0]) / np.linalg.norm(flow[1]), np.abs(flow[0]).max() / np.abs(flow[1]).max()
    np.testing.assert_allclose(relations.circulation(problem, g), expected, rtol=1e-10)


def test_a_covariance_that_commutes_with_the_data_does_not_circulate():
    problem = regression.fit(*small(30, 4, 2))
    np.testing.assert_allclose(relations.circulation(problem, np.diag([1.0, 2.0, 3.0, 4.0])), 0, atol=1e-14)
    with pytest.raises(ValueError, match="^covariance must have a symmetric part of AG that differs from zero"):
        relations.circulation(problem, np.zeros((4, 4)))


def test_noise_tensor_has_the_pair_moments_as_blocks():
    problem = regression.fit(*small(30, 3, 2))
    tensor = relations.noise_tensor(problem, 4, replacement=True)
    for i, k in ((0, 0), (0, 1), (1, 1)):
        block = regression.noise_moment(problem, 4, replacement=True, pair=(i, k))
        np.testing.assert_allclose(tensor[3 * i : 3 * i + 3, 3 * k : 3 * k + 3], block, atol=1e-13)


def test_entropy_production_of_two_modes_in_closed_form():
    problem = regression.fit(*small(20, 2, 1))
    (l1, l2), d = problem.eigenvalues, regression.noise_moment(problem, 1)
    expected = d[0, 1] ** 2 * (l1 - l2) ** 2 / ((l1 + l2) * (d[0, 0] * d[1, 1] - d[0, 1] ** 2))
    assert expected > 0.001
    for pairs in (True, False):
        assert relations.entropy_production(problem, pairs=pairs) == pytest.approx(expected, rel=1e-8)


def test_entropy_production_of_all_pairs_is_minus_the_trace_of_friction_times_current_per_noise():
    lam, d = np.tile(DIGITS.eigenvalues, 10), relations.noise_tensor(DIGITS, 5)
    turning = np.subtract.outer(lam, lam) / np.add.outer(lam, lam) * d / 2  # Q for ε = 1, D = d / 2
    expected = -np.trace(np.linalg.solve(d / 2, lam[:, None] * turning))
    assert relations.entropy_production(DIGITS) == pytest.approx(expected, rel=1e-7)
    assert relations.entropy_production(DIGITS) > 50 * relations.entropy_production(DIGITS, pairs=False) > 0


def test_residuals_of_one_size_give_detailed_balance():
    """Every input twice, with label noise +σ and -σ: D is proportional to A, and G to the identity."""
    x, _ = small(15, 4, 1)
    y = x @ np.array([1.0, -2.0, 0.5, 0.0])
    problem = regression.fit(np.tile(x, (2, 1)), np.concatenate([y + 0.3, y - 0.3])[:, None])
    g = linear.leading_order_covariance(problem, 0.01, 3)
    np.testing.assert_allclose(
        g, 0.01 / 2 * regression.batch_variance(30, 3) * 0.09 * np.eye(4), rtol=1e-12, atol=1e-16
    )
    symmetric, turning = relations.split(problem, g)
    assert np.linalg.norm(turning) < 1e-12 * np.linalg.norm(symmetric)
    assert abs(relations.entropy_production(problem)) < 1e-20


def test_noise_that_misses_a_direction_has_no_entropy_production():
    for exact in (small(5, 12, 2), (small(20, 3, 1)[0], 1e-9 * small(20, 3, 1)[0][:, :1])):  # residuals are rounding
        problem = regression.fit(*exact)
        assert not problem.residuals.any()
        with pytest.raises(ValueError, match="^problem must have gradient noise in every direction"):
            relations.entropy_production(problem)
    with pytest.raises(ValueError, match="^batch must leave some gradient noise"):
        relations.relation_errors(problem, np.eye(3), 0.1, 2)
    x, y = small(20, 3, 1)
    with pytest.raises(ValueError, match="^problem must have gradient noise in every direction"):
        relations.entropy_production(regression.fit(x, np.hstack([y, 1 - y]) - 0.5))
    assert relations.entropy_production(regression.fit(x, np.hstack([y, 1 - y]) - 0.5), pairs=False) > 0


def test_fourier_row_is_the_first_row_of_the_two_dimensional_transform():
    g = regression.in_input_basis(DIGITS, regression.noise_moment(DIGITS, 5))
    row = relations.fourier_row(g)
    both = np.abs(np.fft.fft2(g))[0]
    np.testing.assert_allclose(row, both / both[0], rtol=1e-12, atol=1e-14)
    assert row[0] == 1
    lopsided = np.random.default_rng(0).random((5, 5))
    both = np.abs(np.fft.fft2(lopsided))[0]
    np.testing.assert_allclose(relations.fourier_row(lopsided), both / both[0], rtol=1e-12)
    assert np.argmax(row[2:18]) + 2 == 6  # images of width 6: the first peak is one wave per row


def test_relation_floor_falls_with_the_root_of_the_data():
    once = relations.relation_floor(DIGITS, 1e-4, 100)
    assert once == pytest.approx(np.sqrt(36 / (100 * 10 * 1e-4 * DIGITS.eigenvalues[0])), rel=1e-12)
    assert relations.relation_floor(DIGITS, 1e-4, 400, chains=25) == pytest.approx(once / 10, rel=1e-12)


@pytest.mark.parametrize("function", [relations.relation_errors, relations.yaida_ratios])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_covariance_in_the_basis_of_the_inputs_is_refused(function, noise):
    problem = regression.fit(*small(40, 4, 2))
    rate = 0.3 * linear.learning_rate_threshold(problem, 3)
    g = linear.stationary_covariance(problem, rate, 3)
    measured = np.random.default_rng(1).standard_normal((4, 4)) * np.sqrt(np.outer(g.diagonal(), g.diagonal()))
    g = g + noise * (measured + measured.T)
    function(problem, g, rate, 3)
    over_inputs = regression.in_input_basis(problem, g)
    with pytest.raises(
        ValueError, match=r"^covariance must be in the PCA basis, .*in_pca_basis\(problem, covariance\)"
    ):
        function(problem, over_inputs, rate, 3)
    np.testing.assert_allclose(regression.in_pca_basis(problem, over_inputs), g, rtol=1e-12)


def test_a_covariance_over_inputs_of_which_some_are_never_seen_is_refused_everywhere():
    inputs, targets = small(40, 3, 2)
    problem = regression.fit(np.hstack([inputs, inputs[:, :1]]), targets)
    for call in (
        lambda g: relations.relation_errors(problem, g, 0.01, 3),
        lambda g: relations.yaida_ratios(problem, g, 0.01, 3),
        lambda g: relations.split(problem, g),
        lambda g: relations.circulation(problem, g),
    ):
        call(np.eye(3))
        with pytest.raises(
            ValueError, match="^covariance must be in the PCA basis, where the data have 3 of 4 directions: pass"
        ):
            call(np.eye(4))


def test_nothing_to_compare_is_refused_by_name():
    problem = regression.fit(*small(10, 2, 1))
    with pytest.raises(ValueError, match="^covariance must differ from zero"):
        relations.relation_errors(problem, np.zeros((2, 2)), 0.1, 2)
    with pytest.raises(ValueError, match="^batch must leave some gradient noise"):
        relations.relation_errors(problem, np.eye(2), 0.1, 10)
    with pytest.raises(ValueError, match="^covariance must leave a minibatch gradient"):
        relations.yaida_ratios(problem, np.zeros((2, 2)), 0.1, 10)
    with pytest.raises(ValueError, match="^matrix must have entries that do not sum to zero"):
        relations.fourier_row([[1.0, -1.0], [1.0, -1.0]])


# --- bad input: every public function, every argument ---------------------------------------------

PROBLEM = regression.fit(*small(20, 2, 2))
RELATION = {"problem": PROBLEM, "covariance": np.eye(2), "learning_rate": 0.1, "batch": 3, "replacement": False}
CALLS = {
    relations.relation_errors: RELATION,
    relations.yaida_ratios: RELATION,
    relations.split: {"problem": PROBLEM, "covariance": np.eye(2)},
    relations.circulation: {"problem": PROBLEM, "covariance": np.eye(2)},
    relations.noise_tensor: {"problem": PROBLEM, "batch": 3, "replacement": False},
    relations.entropy_production: {"problem": PROBLEM, "pairs": True},
    relations.relation_floor: {"problem": PROBLEM, "learning_rate": 0.1, "steps": 10, "chains": 2},
    relations.fourier_row: {"matrix": [[1.0, 0.0], [0.0, 2.0]]},
}
BAD = {
    "problem": [None, "problem", np.eye(2)],
    "covariance": [*MATRIX, [[1.0, 0.5], [0.0, 1.0]]],
    "matrix": [each for each in MATRIX if np.shape(each) != (3, 3)],
    "learning_rate": NUMBER,
    "batch": [*COUNT, 21],
    "steps": COUNT,
    "chains": COUNT,
    "replacement": [None, 0, 1, "yes"],
    "pairs": [None, 0, 1, "yes"],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

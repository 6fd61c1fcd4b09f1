"""lib.fluctuations.relations against dense matrices over the inputs, closed forms of two modes, and transforms."""

import numpy as np
import pytest
from linear_data import digits, small

from lib.fluctuations import regression, relations
from lib.fluctuations.descent import Descent

DIGITS = regression.fit(*digits())


@pytest.mark.parametrize(
    "batch, fraction, replacement", [(5, 0.26, False), (5, 0.5, False), (1, 0.5, True), (100, 0.1, False)]
)
def test_leading_relations_fail_by_the_ratio_to_the_threshold_and_the_exact_ones_hold(batch, fraction, replacement):
    rate = fraction * DIGITS.learning_rate_threshold(batch, replacement=replacement)
    descent = Descent(DIGITS, rate, batch, replacement=replacement)
    exact = descent.stationary_covariance()
    errors = relations.relation_errors(descent, exact)
    assert errors.leading == pytest.approx(fraction, rel=0.2)
    assert errors.exact < 1e-10
    assert errors.up_to_scale < errors.leading / 5 and errors.scale > 1
    np.testing.assert_allclose(relations.yaida_ratios(descent, exact), 1, rtol=1e-10)
    assert max(relations.yaida_ratios(descent, descent.leading_order_covariance())) < 1 - fraction / 5


def test_leading_order_has_no_error_and_a_scaled_one_only_a_scale():
    descent = Descent(DIGITS, 1e-4, 5)
    errors = relations.relation_errors(descent, 3 * descent.leading_order_covariance())
    assert errors.scale == pytest.approx(3, rel=1e-12)
    assert errors.up_to_scale < 1e-12
    assert errors.leading == pytest.approx(2 / 3, rel=1e-12)


def test_split_and_circulation_are_those_of_the_dense_product():
    problem = regression.fit(*small(30, 4, 2))
    g = Descent(problem, 0.5 * problem.learning_rate_threshold(2), 2).stationary_covariance()
    symmetric, turning = relations.split(problem, g)
    dense, lam = problem.moment @ problem.in_input_basis(g), problem.eigenvalues
    np.testing.assert_allclose(problem.in_input_basis(symmetric), (dense + dense.T) / 2, atol=1e-13)
    np.testing.assert_allclose(problem.in_input_basis(turning), (dense - dense.T) / 2, atol=1e-13)
    elementwise = np.subtract.outer(lam, lam) / np.add.outer(lam, lam) * symmetric
    np.testing.assert_allclose(turning, elementwise, rtol=1e-10, atol=1e-14)
    flow = np.stack([dense - dense.T, dense + dense.T])
    expected = np.linalg.norm(flow[0]) / np.linalg.norm(flow[1]), np.abs(flow[0]).max() / np.abs(flow[1]).max()
    assert expected[0] > 0.01
    np.testing.assert_allclose(relations.circulation_ratios(problem, g), expected, rtol=1e-10)
    np.testing.assert_allclose(relations.circulation_ratios(problem, np.diag([1.0, 2.0, 3.0, 4.0])), 0, atol=1e-14)


def test_entropy_production_of_two_modes_in_closed_form():
    problem = regression.fit(*small(20, 2, 1))
    (l1, l2), d = problem.eigenvalues, problem.noise_moment(1)
    expected = d[0, 1] ** 2 * (l1 - l2) ** 2 / ((l1 + l2) * (d[0, 0] * d[1, 1] - d[0, 1] ** 2))
    assert expected > 0.001
    for pairs in (True, False):
        assert relations.entropy_production(problem, pairs=pairs) == pytest.approx(expected, rel=1e-8)


def test_entropy_production_of_all_pairs_is_minus_the_trace_of_friction_times_current_per_noise():
    lam, d = np.tile(DIGITS.eigenvalues, 10), DIGITS.noise_tensor(5)
    turning = np.subtract.outer(lam, lam) / np.add.outer(lam, lam) * d / 2  # Q for ε = 1, D = d / 2
    expected = -np.trace(np.linalg.solve(d / 2, lam[:, None] * turning))
    assert relations.entropy_production(DIGITS) == pytest.approx(expected, rel=1e-7)
    assert relations.entropy_production(DIGITS) > 50 * relations.entropy_production(DIGITS, pairs=False) > 0


def test_residuals_of_one_size_give_detailed_balance():
    """Every input twice, with label noise +σ and -σ: D is proportional to A, and G to the identity."""
    x, _ = small(15, 4, 1)
    y = x @ np.array([1.0, -2.0, 0.5, 0.0])
    problem = regression.fit(np.tile(x, (2, 1)), np.concatenate([y + 0.3, y - 0.3])[:, None])
    g = Descent(problem, 0.01, 3).leading_order_covariance()
    expected = 0.01 / 2 * problem.batch_variance(3) * 0.09 * np.eye(4)
    np.testing.assert_allclose(g, expected, rtol=1e-12, atol=1e-16)
    symmetric, turning = relations.split(problem, g)
    assert np.linalg.norm(turning) < 1e-12 * np.linalg.norm(symmetric)
    assert abs(relations.entropy_production(problem)) < 1e-20


def test_noise_that_misses_a_direction_has_no_entropy_production():
    x, y = small(20, 3, 1)
    for exact in (small(5, 12, 2), (x, 1e-9 * x[:, :1])):  # residuals are rounding
        problem = regression.fit(*exact)
        assert not problem.residuals.any()
        with pytest.raises(ValueError, match="^problem must have gradient noise in every direction"):
            relations.entropy_production(problem)
    with pytest.raises(ValueError, match="^descent must leave some gradient noise"):
        relations.relation_errors(Descent(problem, 0.1, 2), np.eye(3))
    dependent = regression.fit(x, np.hstack([y, 1 - y]) - 0.5)
    with pytest.raises(ValueError, match="^problem must have gradient noise in every direction"):
        relations.entropy_production(dependent)
    assert relations.entropy_production(dependent, pairs=False) > 0


def test_fourier_row_is_the_first_row_of_the_two_dimensional_transform():
    noise = DIGITS.in_input_basis(DIGITS.noise_moment(5))
    for matrix in (noise, np.random.default_rng(0).random((5, 5))):
        both = np.abs(np.fft.fft2(matrix))[0]
        np.testing.assert_allclose(relations.fourier_row(matrix), both / both[0], rtol=1e-12, atol=1e-14)
    row = relations.fourier_row(noise)
    assert row[0] == 1 and np.argmax(row[2:18]) + 2 == 6  # images of width 6: the first peak is one wave per row


def test_relation_floor_falls_with_the_root_of_the_data():
    descent = Descent(DIGITS, 1e-4, 5)
    once = relations.relation_floor(descent, 100)
    assert once == pytest.approx(np.sqrt(36 / (100 * 10 * 1e-4 * DIGITS.eigenvalues[0])), rel=1e-12)
    assert relations.relation_floor(descent, 400, replicas=25) == pytest.approx(once / 10, rel=1e-12)


@pytest.mark.parametrize("function", [relations.relation_errors, relations.yaida_ratios])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_covariance_in_the_basis_of_the_inputs_is_refused(function, noise):
    problem = regression.fit(*small(40, 4, 2))
    descent = Descent(problem, 0.3 * problem.learning_rate_threshold(3), 3)
    g = descent.stationary_covariance()
    measured = np.random.default_rng(1).standard_normal((4, 4)) * np.sqrt(np.outer(g.diagonal(), g.diagonal()))
    g = g + noise * (measured + measured.T)
    function(descent, g)
    with pytest.raises(ValueError, match=r"^covariance must be in the PCA basis, .*in_pca_basis\(covariance\)"):
        function(descent, problem.in_input_basis(g))


def test_a_covariance_over_inputs_of_which_some_are_never_seen_is_refused_everywhere():
    inputs, targets = small(40, 3, 2)
    problem = regression.fit(np.hstack([inputs, inputs[:, :1]]), targets)
    for function, subject in (
        (relations.relation_errors, Descent(problem, 0.01, 3)),
        (relations.yaida_ratios, Descent(problem, 0.01, 3)),
        (relations.split, problem),
        (relations.circulation_ratios, problem),
    ):
        function(subject, np.eye(3))
        with pytest.raises(ValueError, match="^covariance must be in the PCA basis, where the data have 3 of 4 dir"):
            function(subject, np.eye(4))


def test_nothing_to_compare_is_refused_by_name():
    problem = regression.fit(*small(10, 2, 1))
    for function, subject, value, said in (
        (relations.relation_errors, Descent(problem, 0.1, 2), np.zeros((2, 2)), "covariance must differ from zero"),
        (relations.relation_errors, Descent(problem, 0.1, 10), np.eye(2), "descent must leave some gradient noise"),
        (relations.relation_errors, Descent(problem, 0.1, 2, momentum=0.5), np.eye(2), "descent must be without mom"),
        (relations.yaida_ratios, Descent(problem, 0.1, 10), np.zeros((2, 2)), "covariance must leave a minibatch"),
        (relations.circulation_ratios, problem, np.zeros((2, 2)), "covariance must have a symmetric part of AG that"),
    ):
        with pytest.raises(ValueError, match=f"^{said}"):
            function(subject, value)
    for matrix in ([[1.0, -1.0], [1.0, -1.0]], np.ones((2, 3)), np.ones((0, 0))):
        with pytest.raises(ValueError, match="^matrix must "):
            relations.fourier_row(matrix)

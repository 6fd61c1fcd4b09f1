"""lib.fields.kernels.gp_regression against scikit-learn, refits without each example, and the self-consistent ridge."""

import numpy as np
import pytest
from bad_input import MATRIX, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge

from lib.fields.kernels import gp_regression, membrane
from lib.fields.networks import nngp

RNG = np.random.default_rng(11)
X, NEW = RNG.standard_normal((12, 3)), RNG.standard_normal((5, 3))
Y = RNG.standard_normal(12)
RIDGES = RNG.uniform(0.05, 2, 12)
GRAM, CROSS, PRIOR = nngp.kernel("erf", X), nngp.kernel("erf", NEW, X), nngp.kernel("erf", NEW)


# --- the posterior --------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.1, RIDGES])
def test_posterior_is_that_of_scikit_learn(ridge):
    kernel = RBF(1.5)
    model = GaussianProcessRegressor(kernel, alpha=ridge, optimizer=None).fit(X, Y)
    mean, covariance = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(gp_regression.mean(kernel(X), Y, ridge, kernel(NEW, X)), mean, rtol=1e-10, atol=1e-12)
    found = gp_regression.covariance(kernel(X), ridge, kernel(NEW, X), kernel(NEW))
    np.testing.assert_allclose(found, covariance, rtol=1e-10, atol=1e-12)
    diagonal = gp_regression.covariance(kernel(X), ridge, kernel(NEW, X), kernel(NEW).diagonal())
    np.testing.assert_allclose(diagonal, found.diagonal(), rtol=1e-12)


def test_several_targets_are_several_regressions():
    targets = RNG.standard_normal((12, 4))
    together = gp_regression.mean(GRAM, targets, RIDGES, CROSS)
    apart = [gp_regression.mean(GRAM, column, RIDGES, CROSS) for column in targets.T]
    np.testing.assert_allclose(together, np.transpose(apart), rtol=1e-12, atol=1e-14)


def test_two_examples_at_one_input_are_one_of_half_the_ridge_and_a_soft_spring_is_none():
    twice = np.append(np.arange(12), 0)
    gram, cross = GRAM[np.ix_(twice, twice)], CROSS[:, twice]
    single, double = np.append(RIDGES, RIDGES[0]), np.append([RIDGES[0] / 2], RIDGES[1:])
    targets = np.append(Y, 3.0)
    averaged = np.append([(Y[0] + 3.0) / 2], Y[1:])
    np.testing.assert_allclose(
        gp_regression.mean(gram, targets, single, cross), gp_regression.mean(GRAM, averaged, double, CROSS), rtol=1e-9
    )
    expected = gp_regression.covariance(GRAM, double, CROSS, PRIOR)
    np.testing.assert_allclose(gp_regression.covariance(gram, single, cross, PRIOR), expected, rtol=1e-9, atol=1e-12)
    soft = np.append(RIDGES[:-1], 1e13)
    without = gp_regression.mean(GRAM[:-1, :-1], Y[:-1], RIDGES[:-1], CROSS[:, :-1])
    np.testing.assert_allclose(gp_regression.mean(GRAM, Y, soft, CROSS), without, rtol=1e-9)


def test_limits_of_the_ridge():
    np.testing.assert_allclose(gp_regression.mean(GRAM, Y, 0.0, GRAM), Y, rtol=1e-8)  # interpolation
    np.testing.assert_allclose(gp_regression.covariance(GRAM, 0, GRAM, GRAM), np.zeros((12, 12)), atol=1e-10)
    for ridge in (1e4, 1e6):  # free: the first order in 1/T
        np.testing.assert_allclose(
            ridge * gp_regression.mean(GRAM, Y, ridge, CROSS), CROSS @ Y, rtol=20 / ridge, atol=100 / ridge
        )
        np.testing.assert_allclose(
            gp_regression.covariance(GRAM, ridge, CROSS, PRIOR), PRIOR - CROSS @ CROSS.T / ridge, atol=1e2 / ridge**2
        )


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 10), st.integers(0, 999), st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_variance_shrinks_with_data_and_the_mean_is_linear_and_scales(count, seed, ridge, factor):
    rng = np.random.default_rng(seed)
    x, y, new = rng.standard_normal((count, 2)), rng.standard_normal((2, count)), rng.standard_normal((4, 2))
    gram, cross, prior = nngp.kernel("relu", x), nngp.kernel("relu", new, x), nngp.variance("relu", new)
    found = [
        gp_regression.covariance(gram[:some, :some], ridge, cross[:, :some], prior) for some in range(1, count + 1)
    ]
    assert np.all(np.diff([prior, *found], axis=0) <= 1e-9 * prior)
    assert np.min(found) >= -1e-12
    one, other = (gp_regression.mean(gram, target, ridge, cross) for target in y)
    both = gp_regression.mean(factor * gram, y[0] - 2 * y[1], factor * ridge, factor * cross)
    np.testing.assert_allclose(both, one - 2 * other, rtol=1e-8, atol=1e-9 * np.abs(y).sum())


def test_norm_is_that_of_the_weights_on_the_features():
    """K = ΦΦᵀ: f̄ = Φw with the weights of ridge regression, of squared norm |f̄|²_K."""
    features = RNG.standard_normal((12, 20))
    for ridge in (0.01, 3.0):
        weights = Ridge(alpha=ridge, fit_intercept=False).fit(features, Y).coef_
        assert gp_regression.squared_norm(features @ features.T, Y, ridge) == pytest.approx(weights @ weights, rel=1e-9)
    alpha = np.linalg.inv(GRAM + np.diag(RIDGES)) @ Y
    at_inputs = gp_regression.mean(GRAM, Y, RIDGES, GRAM)
    assert gp_regression.squared_norm(GRAM, Y, RIDGES) == pytest.approx(at_inputs @ alpha, rel=1e-10)


# --- diagnostics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.3, RIDGES])
def test_leave_one_out_is_a_refit_without_each_example(ridge):
    found = gp_regression.leave_one_out(GRAM, Y, ridge)
    ridges = np.broadcast_to(ridge, 12)
    for out in range(12):
        kept = np.delete(np.arange(12), out)
        gram, cross = GRAM[np.ix_(kept, kept)], GRAM[[out]][:, kept]
        mean = gp_regression.mean(gram, Y[kept], ridges[kept], cross).item()
        variance = gp_regression.covariance(gram, ridges[kept], cross, GRAM[out, [out]]).item()
        assert found.residuals[out] == pytest.approx(Y[out] - mean, rel=1e-7)
        assert found.variances[out] == pytest.approx(variance + ridges[out], rel=1e-7)


def test_generalized_cross_validation_corrects_the_training_error_and_is_leave_one_out_on_a_symmetric_set():
    for ridge in (0.1, 5.0):
        residuals = Y - gp_regression.mean(GRAM, Y, ridge, GRAM)
        trace = np.trace(np.eye(12) - GRAM @ np.linalg.inv(GRAM + ridge * np.eye(12)))
        assert gp_regression.generalized_cross_validation(GRAM, Y, ridge) == pytest.approx(
            np.mean(residuals**2) / (trace / 12) ** 2, rel=1e-9
        )
    angle = 2 * np.pi * np.arange(9) / 9  # all examples alike
    circle = nngp.kernel("erf", np.column_stack([np.cos(angle), np.sin(angle)]))
    one_out = gp_regression.leave_one_out(circle, Y[:9], 0.2).residuals
    assert gp_regression.generalized_cross_validation(circle, Y[:9], 0.2) == pytest.approx(
        np.mean(one_out**2), rel=1e-10
    )
    at_zero, near = (gp_regression.generalized_cross_validation(GRAM, Y, ridge) for ridge in (0, 1e-9))
    assert at_zero == pytest.approx(near, rel=1e-4)


def gaussian_features(sets, samples, eigenvalues):
    features = np.random.default_rng(1).standard_normal((sets, samples, eigenvalues.size)) * np.sqrt(eigenvalues)
    return features, features @ features.transpose(0, 2, 1)


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_measured_ridge_and_cross_validation_are_those_of_the_self_consistent_theory_on_gaussian_features(ridge):
    """κ̂ against the root of  P = T/κ + Σ λ/(λ + κ),  and GCV against  E₀ [Σ (1 - L)² v² + σ²],  up to 1/P."""
    samples, eigenvalues = 100, np.arange(1.0, 1001) ** -1.5
    kappa = brentq(lambda k: ridge / k + (eigenvalues / (eigenvalues + k)).sum() - samples, 1e-9, 1e3)
    features, grams = gaussian_features(60, samples, eigenvalues)
    measured = np.array([gp_regression.measured_ridge(gram, ridge) for gram in grams])
    assert abs(measured.mean() - kappa) < 4 * measured.std(ddof=1) / np.sqrt(60) + kappa / samples
    weights, noise = np.arange(1.0, 1001) ** -0.5 * (np.arange(1000) < 30), 0.05  # v = weights √λ
    learned = eigenvalues / (eigenvalues + kappa)
    test_error = (((1 - learned) ** 2 * weights**2 * eigenvalues).sum() + noise) / (1 - (learned**2).sum() / samples)
    targets = features @ weights + np.sqrt(noise) * np.random.default_rng(2).standard_normal((60, samples))
    guessed = np.array(
        [gp_regression.generalized_cross_validation(*one, ridge) for one in zip(grams, targets, strict=True)]
    )
    one_out = np.array(
        [np.mean(gp_regression.leave_one_out(*one, ridge).residuals ** 2) for one in zip(grams, targets, strict=True)]
    )
    for values in (guessed, one_out):
        assert abs(values.mean() - test_error) < 4 * values.std(ddof=1) / np.sqrt(60) + 5 / samples * test_error
        assert values.std(ddof=1) / np.sqrt(60) < 0.05 * test_error


def test_measured_ridge_solves_the_equation_of_the_gram_matrix():
    for ridge in (0.01, 7.0):
        kappa, gammas = gp_regression.measured_ridge(GRAM, ridge), np.linalg.eigvalsh(GRAM)
        assert ridge / kappa + (gammas / (gammas + ridge)).sum() == pytest.approx(12, rel=1e-10)
    assert gp_regression.measured_ridge(np.zeros((12, 12)), RIDGES) == pytest.approx(1 / (1 / RIDGES).sum(), rel=1e-12)


# --- bad input: every public function, every argument ---------------------------------------------

FIT = {"gram": GRAM, "targets": Y, "ridge": RIDGES}
CALLS = {
    gp_regression.mean: {**FIT, "cross": CROSS},
    gp_regression.covariance: {"gram": GRAM, "ridge": 1.0, "cross": CROSS, "prior": PRIOR},
    gp_regression.squared_norm: FIT,
    gp_regression.leave_one_out: FIT,
    gp_regression.generalized_cross_validation: {**FIT, "ridge": 0.5},
    gp_regression.measured_ridge: {"gram": GRAM, "ridge": RIDGES},
}
BAD = {
    "gram": [*MATRIX, -5 * GRAM, np.triu(GRAM), GRAM[:-1, :-1]],
    "targets": [[], Y[:-1], np.full(12, np.nan), np.ones((12, 1, 1)), np.ones((1, 12)), 1.0, "y", None, 1j * Y],
    "ridge": [*(bad for bad in NUMBER if bad is True or bad != 0), -RIDGES, RIDGES[:-1], [], np.ones((12, 1))],
    "cross": [[], CROSS[0], CROSS.T, np.full((5, 12), np.inf), 1.0, "cross", None],
    "prior": [
        [],
        PRIOR[:-1, :-1],
        PRIOR[0, :-1],
        np.full(5, np.nan),
        -np.ones(5),
        np.triu(PRIOR),
        0.01 * PRIOR,
        np.zeros(5),
        1.0,
        "prior",
        None,
    ],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    CALLS, BAD, {"gram": "gram|ridge|targets|cross"}
)


def test_gram_matrices_that_rounding_has_made_singular_are_refused():
    twice = np.array([[1.0, 1.0], [1.0, 1.0]])
    for gram in (twice, nngp.kernel("erf", np.linspace(0, 1, 40)[:, None])):
        with pytest.raises(ValueError, match="^gram must be positive definite once the ridge is added"):
            gp_regression.measured_ridge(gram, 0.0)
        assert gp_regression.measured_ridge(gram, 1e-6) > 0
    with pytest.raises(ValueError, match="^targets must have shape"):
        gp_regression.leave_one_out(GRAM, np.ones((12, 2)), 1.0)
    with pytest.raises(ValueError, match="^targets must keep the result"):
        gp_regression.squared_norm(GRAM, 1e200 * Y, 1.0)


def test_one_rule_says_which_condition_number_is_too_large():
    axes, y = np.linalg.qr(RNG.standard_normal((8, 8)))[0], RNG.standard_normal(8)
    for decades in (10, 11, 13, 15):
        values = np.logspace(0, -decades, 8)
        gram = (axes * values) @ axes.T
        gram = (gram + gram.T) / 2
        if decades > 12:
            with pytest.raises(ValueError, match="^gram must be positive definite .* condition number up to 1e"):
                gp_regression.squared_norm(gram, y, 0.0)
            with pytest.raises(ValueError, match="^kernel must have a condition number up to 1e"):
                membrane.stiffness(gram)
            continue
        exact = ((axes.T @ y) ** 2 / values).sum()
        assert gp_regression.squared_norm(gram, y, 0.0) == pytest.approx(exact, rel=10.0 ** (decades - 14))
        assert y @ membrane.stiffness(gram) @ y == pytest.approx(exact, rel=10.0 ** (decades - 14))


def test_noise_of_very_different_size_is_no_loss():
    ridge = np.logspace(-3, 15, 12)
    exact = CROSS / ridge @ np.linalg.solve(np.eye(12) + GRAM / ridge, Y)  # better conditioned, not symmetric
    np.testing.assert_allclose(gp_regression.mean(GRAM, Y, ridge, CROSS), exact, rtol=1e-9)

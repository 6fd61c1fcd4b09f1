"""lib.fields.kernels.gp_regression against scikit-learn, refits without each example, and the self-consistent ridge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from lib.common.estimate import Estimate
from lib.fields.kernels import gp_regression
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.gp_regression import GaussianProcess
from lib.fields.networks.prior import Prior

RNG = np.random.default_rng(11)
X, NEW = RNG.standard_normal((12, 3)), RNG.standard_normal((5, 3))
Y = RNG.standard_normal(12)
RIDGES = RNG.uniform(0.05, 2, 12)
GRAM, CROSS, PRIOR = Prior("erf").kernel(X), Prior("erf").kernel(NEW, X), Prior("erf").kernel(NEW)


@pytest.mark.parametrize("ridge", [0.1, RIDGES])
def test_posterior_is_that_of_scikit_learn(ridge):
    kernel = RBF(1.5)
    model = GaussianProcessRegressor(kernel, alpha=ridge, optimizer=None).fit(X, Y)
    mean, covariance = model.predict(NEW, return_cov=True)
    process = GaussianProcess(kernel(X), ridge)
    np.testing.assert_allclose(process.mean(Y, kernel(NEW, X)), mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(process.weights(Y), model.alpha_.ravel(), rtol=1e-9)
    found = process.covariance(kernel(NEW, X), kernel(NEW))
    np.testing.assert_allclose(found, covariance, rtol=1e-10, atol=1e-12)
    diagonal = process.covariance(kernel(NEW, X), kernel(NEW).diagonal())
    np.testing.assert_allclose(diagonal, found.diagonal(), rtol=1e-12)


def test_two_examples_at_one_input_are_one_of_half_the_ridge_and_a_soft_spring_is_none():
    twice = np.append(np.arange(12), 0)
    pair = GaussianProcess(GRAM[np.ix_(twice, twice)], np.append(RIDGES, RIDGES[0]))
    one = GaussianProcess(GRAM, np.append([RIDGES[0] / 2], RIDGES[1:]))
    averaged = np.append([(Y[0] + 3.0) / 2], Y[1:])
    np.testing.assert_allclose(pair.mean(np.append(Y, 3.0), CROSS[:, twice]), one.mean(averaged, CROSS), rtol=1e-9)
    covariance = pair.covariance(CROSS[:, twice], PRIOR)
    np.testing.assert_allclose(covariance, one.covariance(CROSS, PRIOR), rtol=1e-9, atol=1e-12)
    soft, without = GaussianProcess(GRAM, np.append(RIDGES[:-1], 1e13)), GaussianProcess(GRAM[:-1, :-1], RIDGES[:-1])
    np.testing.assert_allclose(soft.mean(Y, CROSS), without.mean(Y[:-1], CROSS[:, :-1]), rtol=1e-9)


def test_limits_of_the_ridge():
    rigid = GaussianProcess(GRAM, 0.0)
    np.testing.assert_allclose(rigid.mean(Y, GRAM), Y, rtol=1e-8)  # interpolation
    np.testing.assert_allclose(rigid.covariance(GRAM, GRAM), np.zeros((12, 12)), atol=1e-10)
    for ridge in (1e4, 1e6):  # free: the first order in 1/T
        process = GaussianProcess(GRAM, ridge)
        np.testing.assert_allclose(ridge * process.mean(Y, CROSS), CROSS @ Y, rtol=20 / ridge, atol=100 / ridge)
        expected = PRIOR - CROSS @ CROSS.T / ridge
        np.testing.assert_allclose(process.covariance(CROSS, PRIOR), expected, atol=1e2 / ridge**2)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 10), st.integers(0, 999), st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_variance_shrinks_with_data_and_the_mean_is_linear_and_scales(count, seed, ridge, factor):
    rng = np.random.default_rng(seed)
    x, y, new = rng.standard_normal((count, 2)), rng.standard_normal((2, count)), rng.standard_normal((4, 2))
    gram, cross, prior = Prior("relu").kernel(x), Prior("relu").kernel(new, x), Prior("relu").variance(new)
    found = [GaussianProcess(gram[:n, :n], ridge).covariance(cross[:, :n], prior) for n in range(1, count + 1)]
    assert np.all(np.diff([prior, *found], axis=0) <= 1e-9 * prior) and np.min(found) >= -1e-12
    one, other = (GaussianProcess(gram, ridge).mean(target, cross) for target in y)
    both = GaussianProcess(factor * gram, factor * ridge).mean(y[0] - 2 * y[1], factor * cross)
    np.testing.assert_allclose(both, one - 2 * other, rtol=1e-8, atol=1e-9 * np.abs(y).sum())


@pytest.mark.parametrize("ridge", [0.3, RIDGES])
def test_conditioned_draws_have_the_posterior_mean_and_covariance(ridge):
    """Of random networks' limit, and of networks of one hidden layer, whose second moments are the same."""
    process, both = GaussianProcess(GRAM, ridge), np.vstack([NEW, X])
    exact = process.mean(Y, CROSS), process.covariance(CROSS, PRIOR)
    for joint in (
        np.random.default_rng(3).multivariate_normal(np.zeros(17), Prior("erf").kernel(both), 100_000),
        Prior("erf").draw(both, 10, 100_000, rng=5),
    ):
        found = process.condition(joint[:, :5], joint[:, 5:], Y, CROSS, rng=4)
        away = found - exact[0]
        products = away[:, :, None] * away[:, None, :]
        for values, expected in ((found, exact[0]), (products, exact[1])):
            assert np.all(np.abs(values.mean(axis=0) - expected) < 5 * values.std(axis=0) / np.sqrt(len(values)))
        assert np.all(np.abs(found.mean(axis=0) - joint[:, :5].mean(axis=0)).max() > 0.1)
    rigid = GaussianProcess(GRAM, 0.0).condition(joint[:9, 5:], joint[:9, 5:], Y, GRAM, rng=4)
    np.testing.assert_allclose(rigid, np.tile(Y, (9, 1)), rtol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.3, RIDGES])
def test_leave_one_out_is_a_refit_without_each_example(ridge):
    found = GaussianProcess(GRAM, ridge).leave_one_out(Y)
    ridges = np.broadcast_to(ridge, 12)
    for out in range(12):
        kept = np.delete(np.arange(12), out)
        process, cross = GaussianProcess(GRAM[np.ix_(kept, kept)], ridges[kept]), GRAM[[out]][:, kept]
        assert found.residuals[out] == pytest.approx(Y[out] - process.mean(Y[kept], cross).item(), rel=1e-7)
        variance = process.covariance(cross, GRAM[out, [out]]).item() + ridges[out]
        assert found.variances[out] == pytest.approx(variance, rel=1e-7)


def test_generalized_cross_validation_corrects_the_training_error_and_is_leave_one_out_on_a_symmetric_set():
    for ridge in (0.1, 5.0):
        process = GaussianProcess(GRAM, ridge)
        residuals = Y - process.mean(Y, GRAM)
        trace = np.trace(np.eye(12) - GRAM @ np.linalg.inv(GRAM + ridge * np.eye(12)))
        expected = np.mean(residuals**2) / (trace / 12) ** 2
        assert process.generalized_cross_validation(Y) == pytest.approx(expected, rel=1e-9)
    angle = 2 * np.pi * np.arange(9) / 9  # all examples alike
    circle = GaussianProcess(Prior("erf").kernel(np.column_stack([np.cos(angle), np.sin(angle)])), 0.2)
    one_out = circle.leave_one_out(Y[:9]).residuals
    assert circle.generalized_cross_validation(Y[:9]) == pytest.approx(np.mean(one_out**2), rel=1e-10)


def test_many_ridges_at_once_are_each_alone():
    weights, (train, kappa, forecast) = gp_regression._regressed(GRAM, Y, np.array([0.1, 5.0]))
    for i, ridge in enumerate((0.1, 5.0)):
        process = GaussianProcess(GRAM, ridge)
        np.testing.assert_allclose(weights[i], process.weights(Y), rtol=1e-10)
        assert train[i] == pytest.approx(np.mean((Y - process.mean(Y, GRAM)) ** 2), rel=1e-9)
        assert kappa[i] == pytest.approx(process.measured_ridge, rel=1e-10)
        assert forecast[i] == pytest.approx(process.generalized_cross_validation(Y), rel=1e-10)
    with pytest.raises(ValueError, match="^ridges must be at least 5e-12, or be lost"):
        gp_regression._regressed(np.full((2, 2), 2.5), Y[:2], np.array([1e-13]))


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_measured_ridge_and_cross_validation_are_those_of_the_theory_on_gaussian_features(ridge):
    """Up to 1/P;  v = weights √λ."""
    samples, eigenvalues = 100, np.arange(1.0, 1001) ** -1.5
    features = np.random.default_rng(1).standard_normal((60, samples, 1000)) * np.sqrt(eigenvalues)
    weights, noise = np.arange(1.0, 1001) ** -0.5 * (np.arange(1000) < 30), 0.05
    targets = features @ weights + np.sqrt(noise) * np.random.default_rng(2).standard_normal((60, samples))
    curve = RidgeTheory(eigenvalues, samples, ridge=ridge).predict(weights**2 * eigenvalues, noise_variance=noise)
    sets = [GaussianProcess(one @ one.T, ridge) for one in features]
    measured = Estimate.of([process.measured_ridge for process in sets])
    assert abs(measured.mean - curve.kappa) < 4 * measured.error + curve.kappa / samples
    for guess in (
        [process.generalized_cross_validation(y) for process, y in zip(sets, targets)],
        [np.mean(process.leave_one_out(y).residuals ** 2) for process, y in zip(sets, targets)],
    ):
        guessed = Estimate.of(guess)
        assert abs(guessed.mean - curve.test_error) < 4 * guessed.error + 5 / samples * curve.test_error


# --- what does not fit ----------------------------------------------------------------------------


def test_gram_matrices_that_rounding_has_made_singular_are_refused():
    for gram in (np.ones((2, 2)), Prior("erf").kernel(np.linspace(0, 1, 40)[:, None])):
        with pytest.raises(ValueError, match="^gram must be positive definite once the ridge is added"):
            GaussianProcess(gram, 0.0)
        assert GaussianProcess(gram, 1e-6).measured_ridge > 0


def test_one_rule_says_which_condition_number_is_too_large():
    axes, y = np.linalg.qr(RNG.standard_normal((8, 8)))[0], RNG.standard_normal(8)
    for decades in (10, 11, 13, 15):
        values = np.logspace(0, -decades, 8)
        gram = (axes * values) @ axes.T
        gram = (gram + gram.T) / 2
        if decades > 12:
            with pytest.raises(ValueError, match="^gram must be positive definite .* condition number up to 1e"):
                GaussianProcess(gram, 0.0)
            continue
        exact = ((axes.T @ y) ** 2 / values).sum()
        assert y @ GaussianProcess(gram, 0.0).weights(y) == pytest.approx(exact, rel=10.0 ** (decades - 14))


def test_noise_of_very_different_size_is_no_loss():
    ridge = np.logspace(-3, 15, 12)
    exact = CROSS / ridge @ np.linalg.solve(np.eye(12) + GRAM / ridge, Y)  # better conditioned, not symmetric
    np.testing.assert_allclose(GaussianProcess(GRAM, ridge).mean(Y, CROSS), exact, rtol=1e-9)


PROCESS = GaussianProcess(GRAM, RIDGES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GaussianProcess(GRAM, RIDGES[:-1]), "ridge must be one number or have shape"),
        (lambda: GaussianProcess(-5 * GRAM, 0.1), "gram must be positive definite"),
        (lambda: PROCESS.mean(Y[:-1], CROSS), "targets must have one axis of length 12"),
        (lambda: PROCESS.mean(np.ones((1, 12)), CROSS), "targets must have two axes, the first of length 12"),
        (lambda: PROCESS.mean(np.ones((12, 1, 1)), CROSS), "targets must have two axes"),
        (lambda: PROCESS.mean(1.0, CROSS), "targets must have one axis of length 12"),
        (lambda: PROCESS.mean(Y, CROSS.T), "cross must have two axes, the second of length 12"),
        (lambda: PROCESS.covariance(CROSS, PRIOR[:-1, :-1]), "prior must have shape"),
        (lambda: PROCESS.covariance(CROSS, np.ones(4)), "prior must have one axis of length 5"),
        (lambda: PROCESS.covariance(CROSS, 0.01 * PRIOR), "prior must belong to the same kernel"),
        (lambda: PROCESS.leave_one_out(np.ones((12, 2))), "targets must have one axis"),
        (lambda: PROCESS.generalized_cross_validation(Y), "ridge must be the same for all examples"),
        (lambda: PROCESS.mean(1e307 * Y, 100 * CROSS), "targets must keep the result"),
        (lambda: PROCESS.condition(np.ones((3, 5)), np.ones((2, 12)), Y, CROSS, 1), "observed must have shape"),
        (lambda: PROCESS.condition(np.ones((3, 4)), np.ones((3, 12)), Y, CROSS, 1), "cross must have shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

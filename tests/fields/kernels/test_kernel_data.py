"""kernel_data against defining sums, scikit-learn, and on digits against theory and Gaussian surrogates."""

import numpy as np
import pytest
from bad_input import COUNT, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.kernel_ridge import KernelRidge

from lib.common.estimate import Estimate
from lib.fields.kernels import effective_ridge, feature_regression, kernel_data, learning_curve
from lib.services import data

RNG = np.random.default_rng(3)
X = RNG.standard_normal((30, 4))
GRAM, Y = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8), np.tanh(X[:, 0]) + X[:, 1]


@settings(deadline=None, max_examples=30)
@given(
    arrays(float, st.tuples(st.integers(3, 8), st.integers(2, 5)), elements=st.integers(-50, 50).map(float)),
    st.floats(0.01, 100),
)
def test_unit_rows_are_centred_directions(points, scale):
    points = points + 0.25 * np.random.default_rng(1).standard_normal(points.shape)
    found = kernel_data.unit_rows(points)
    np.testing.assert_allclose((found**2).sum(axis=1), 1, rtol=1e-12)
    away = points - points.mean(axis=0)
    np.testing.assert_allclose((found * away).sum(axis=1), np.linalg.norm(away, axis=1), rtol=1e-9)
    np.testing.assert_allclose(kernel_data.unit_rows(scale * points + 3), found, rtol=1e-7, atol=1e-9)


def test_the_spectrum_obeys_mercers_theorem():
    found = kernel_data.spectrum(GRAM, Y)
    phi, values = found.functions, found.eigenvalues
    assert np.all(np.diff(values) <= 0) and values[-1] >= 0
    np.testing.assert_allclose(phi.T @ phi / 30, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(phi * values @ phi.T, GRAM, atol=1e-12)
    np.testing.assert_allclose(GRAM @ phi / 30, phi * values, atol=1e-12)
    np.testing.assert_allclose(phi @ found.coefficients, Y, atol=1e-12)
    assert (found.coefficients**2).sum() == pytest.approx((Y**2).mean(), rel=1e-12)


def test_rounding_below_zero_becomes_zero_and_indefinite_kernels_are_refused():
    found = kernel_data.spectrum(X @ X.T, Y)  # rank 4
    assert np.all(found.eigenvalues[:4] > 1e-3) and np.all(found.eigenvalues[4:] < 1e-14)
    with pytest.raises(ValueError, match="^gram must be positive semidefinite"):
        kernel_data.spectrum(X @ X.T - 0.1 * np.eye(30), Y)


def test_each_regression_is_scikit_learns_on_the_same_subset():
    seed = np.random.SeedSequence(4)
    curves = kernel_data.measure(GRAM, Y, [5, 12], [1e-3, 0.5], seed, sets=3)
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence(4)))
    for s, (i, size) in ((s, pair) for s in range(3) for pair in enumerate((5, 12))):
        order = random.permutation(30)
        seen, left = order[:size], order[size:]
        for j, t in enumerate((1e-3, 0.5)):
            fit = KernelRidge(alpha=t, kernel="precomputed").fit(GRAM[np.ix_(seen, seen)], Y[seen])
            assert curves.test_error[s, i, j] == pytest.approx(
                ((fit.predict(GRAM[np.ix_(left, seen)]) - Y[left]) ** 2).mean(), rel=1e-9
            )
            assert curves.train_error[s, i, j] == pytest.approx(
                ((fit.predict(GRAM[np.ix_(seen, seen)]) - Y[seen]) ** 2).mean(), rel=1e-6
            )
            inverse = np.linalg.inv(GRAM[np.ix_(seen, seen)] + t * np.eye(size))
            assert curves.kappa[s, i, j] == pytest.approx(1 / np.trace(inverse), rel=1e-9)
            # the forecast is of leave-one-out residuals  α_μ/(K + T)⁻¹_μμ  with the mean of the diagonal for each entry
            assert curves.cross_validation[s, i, j] == pytest.approx(
                ((inverse @ Y[seen] / np.diag(inverse).mean()) ** 2).mean(), rel=1e-8
            )


def test_a_kernel_of_one_function_learns_it_from_one_sample():
    line = np.sign(X[:, 0])
    curves = kernel_data.measure(np.outer(line, line), 2 * line, [1, 10], [1e-6], rng=1, sets=2)
    np.testing.assert_allclose(curves.test_error[:, 0, 0], 4 * (1e-6 / (1 + 1e-6)) ** 2, rtol=1e-6)
    np.testing.assert_allclose(curves.test_error[:, 1, 0], 4 * (1e-6 / (10 + 1e-6)) ** 2, rtol=1e-5)


# --- the handwritten digits -----------------------------------------------------------------------

SAMPLES, RIDGES = np.array([25, 100, 400]), np.array([1e-8, 1e-3, 0.1])


@pytest.fixture(scope="module")
def digits():
    """Even against odd, erf kernel with weight variance one on centred unit vectors."""
    bunch = data.load("digits", size=8)
    rows = kernel_data.unit_rows(data.design(bunch.images))
    gram, y = 2 / np.pi * np.arcsin(2 * (rows @ rows.T) / 3), 1.0 - 2 * (bunch.labels % 2)
    found = kernel_data.spectrum(gram, y)
    curves = kernel_data.measure(gram, y, SAMPLES, RIDGES, rng=1, sets=40)
    theory = learning_curve.predict(found.eigenvalues, found.coefficients**2, SAMPLES[:, None], ridge=RIDGES)
    return found, curves, theory


def test_digits_have_a_spectrum_close_to_a_power_law(digits):
    rank = np.arange(20, 301)
    assert np.polyfit(np.log(rank), np.log(digits[0].eigenvalues[19:300]), 1)[0] == pytest.approx(-1.7, abs=0.05)


def test_digits_follow_the_effective_ridge_for_few_samples_and_not_for_many(digits):
    found, curves, theory = digits
    mean, error = Estimate.of(curves.test_error)
    np.testing.assert_allclose(
        theory.test_error[:, [0, 2]].T, [[0.604, 0.313, 0.0886], [0.522, 0.340, 0.1914]], atol=6e-4
    )
    assert np.all(np.abs(mean - theory.test_error)[0] < 4 * error[0])
    assert np.all(np.abs(mean / theory.test_error - 1)[1] < 0.12)
    assert np.all(mean[2] > theory.test_error[2] + 10 * error[2]) and theory.test_error[2, 0] < 0.75 * mean[2, 0]
    promised = learning_curve.equivalent_kernel_error(
        found.eigenvalues, found.coefficients**2, SAMPLES[:, None], ridge=RIDGES
    )
    assert promised[0, 2] == pytest.approx(0.31, abs=0.005) and promised[1, 2] == pytest.approx(0.235, abs=0.001)
    assert np.all(promised[:, 0] < 1e-6)


def test_gaussian_surrogates_of_digits_follow_the_theory_where_the_digits_do_not(digits):
    found, curves, theory = digits
    surrogate = feature_regression.measure(found.eigenvalues, found.coefficients, SAMPLES, RIDGES, rng=2, sets=20)
    mean, error = Estimate.of(surrogate.test_error)
    assert np.all(np.abs(mean - theory.test_error) < 4 * error)
    assert np.all(curves.test_error.mean(axis=0)[2] > mean[2] + 10 * error[2])


def test_the_ridge_that_digits_show_is_the_one_their_spectrum_gives_but_cross_validation_is_too_low(digits):
    found, curves, theory = digits
    ratio = curves.kappa.mean(axis=0) / theory.kappa
    assert np.all(np.abs(ratio - 1)[:, 1] < 0.08) and np.all(np.abs(ratio - 1)[:, 2] < 0.015)
    forecast = curves.cross_validation.mean(axis=0) / curves.test_error.mean(axis=0)
    assert np.all((forecast[1:, 2] > 0.84) & (forecast[1:, 2] < 0.96)) and np.all(
        (forecast[1:, 1] > 0.5) & (forecast[1:, 1] < 0.75)
    )
    assert theory.kappa[0, 2] == pytest.approx(effective_ridge.solve(found.eigenvalues, 25, ridge=0.1), rel=1e-12)


# --- bad input: every public function, every argument ---------------------------------------------

POOL = {"gram": GRAM, "targets": Y}
CALLS = {
    kernel_data.unit_rows: {"inputs": X},
    kernel_data.spectrum: POOL,
    kernel_data.measure: POOL | {"samples": [3, 29], "ridges": [0.1], "rng": 1, "sets": 2},
}
BAD = {
    "inputs": [[], np.ones(3), np.ones((1, 3)), np.zeros((3, 0)), np.ones((3, 2)), np.full((3, 2), np.nan), "x", None],
    "gram": [
        np.ones((2, 3)),
        np.zeros((0, 0)),
        np.zeros((30, 30)),
        -GRAM,
        np.triu(GRAM),
        np.full((30, 30), np.nan),
        GRAM - 0.5 * np.eye(30),
        "x",
        None,
    ],
    "targets": [Y[:-1], np.full(30, np.nan), Y[:, None], "x", None],
    "samples": [[], 3, [0], [30], [3.5], [[3]], [np.nan], "x", None],
    "ridges": [[], [0.0], [-1.0], [np.inf], 1.0, "x", None],
    "rng": SEED,
    "sets": [*COUNT, 1],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_a_ridge_below_the_rounding_of_the_kernel_is_refused():
    points = RNG.standard_normal((40, 3))
    gram = points @ points.T  # of rank 3
    assert np.isfinite(kernel_data.measure(gram, points[:, 0], [20], [1e-9], rng=1, sets=3).test_error).all()
    with pytest.raises(ValueError, match="^ridges must be at least"):
        kernel_data.measure(gram, points[:, 0], [20], [1e-14], rng=1, sets=3)

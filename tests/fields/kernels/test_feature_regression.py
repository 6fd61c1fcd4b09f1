"""lib.fields.kernels.feature_regression: fits against explicit ones, experiments against the theory."""

import numpy as np
import pytest

from lib.common.estimate import Estimate
from lib.common.spectrum import Spectrum
from lib.fields.kernels import feature_regression
from lib.fields.kernels.effective_ridge import RidgeTheory


def power_law(modes, decay):
    return np.arange(1.0, modes + 1) ** -decay


def test_errors_and_coefficients_are_those_of_explicit_regressions_on_test_points():
    values, v = np.array([1.0, 0.3, 0.1]), np.array([1.0, -0.5, 0.2])
    curves = feature_regression.measure(
        values, v, [6], [0.2], np.random.SeedSequence(5), replicas=2, noise_variance=0.09
    )
    learned, residual, forecast, kappa = [], [], [], []
    for child in np.random.SeedSequence(5).spawn(2):
        random = np.random.Generator(np.random.SFC64(child))
        features = random.standard_normal((6, 3))
        y = features @ v + 0.3 * random.standard_normal(6)
        inverse = np.linalg.solve(features.T @ features + 0.2 * np.diag(1 / values), features.T)  # in weight space
        learned.append(inverse @ y)
        residual.append(((y - features @ learned[-1]) ** 2).mean())
        forecast.append(residual[-1] / (np.trace(np.eye(6) - features @ inverse) / 6) ** 2)
        kappa.append(1 / np.trace(np.linalg.inv(features * values @ features.T + 0.2 * np.eye(6))))
    np.testing.assert_allclose(curves.mean_coefficient[0, 0], np.mean(learned, axis=0), rtol=1e-10)
    np.testing.assert_allclose(curves.coefficient_variance[0, 0], np.var(learned, axis=0, ddof=1), rtol=1e-9)
    found = curves.train_error, curves.cross_validation, curves.kappa
    np.testing.assert_allclose([part[:, 0, 0] for part in found], [residual, forecast, kappa], rtol=1e-9)
    fresh = np.random.default_rng(6).standard_normal((400_000, 3))
    for s in range(2):
        square = (fresh @ (v - learned[s]) + 0.3 * np.random.default_rng(7 + s).standard_normal(400_000)) ** 2
        assert curves.test_error[s, 0, 0] == pytest.approx(square.mean(), abs=5 * square.std() / np.sqrt(square.size))


def test_a_level_of_many_modes_is_so_many_modes():
    ways = {"samples": [5, 9], "ridges": [0.1], "rng": 3, "replicas": 2}
    grouped = feature_regression.measure(Spectrum([1.0, 0.2], [2, 3]), np.arange(5.0), **ways)
    single = feature_regression.measure([1.0, 1.0, 0.2, 0.2, 0.2], np.arange(5.0), **ways)
    assert np.array_equal(grouped.test_error, single.test_error)


# --- experiments against the theory ---------------------------------------------------------------


@pytest.mark.parametrize("a", [1.1, 2.0])
def test_gaussian_features_follow_the_effective_ridge(a):
    values, power, p, t = power_law(2000, a), power_law(2000, 2.0), np.array([50, 200]), np.array([1e-6, 1.0])
    curves = feature_regression.measure(values, np.sqrt(power), p, t, rng=11, replicas=30, noise_variance=0.05)
    theory = RidgeTheory(values, p[:, None], ridge=t).predict(power, noise_variance=0.05)
    for name in ("test_error", "train_error", "kappa", "cross_validation"):
        mean, error = Estimate.of(getattr(curves, name))
        expected = getattr(theory, "test_error" if name == "cross_validation" else name)
        assert np.all(np.abs(mean - expected) < 4 * error + 5 / p[:, None] * expected)
    # Coefficient by coefficient, the first twenty: mean L_k v_k, variance  test error · L_k²/P
    spread = (theory.test_error[..., None] * theory.theory.learnability**2 / p[:, None, None])[..., :20]
    pull = (curves.mean_coefficient - theory.theory.learnability * np.sqrt(power))[..., :20] / np.sqrt(spread / 30)
    assert np.abs(pull).max() < 4 and np.all((pull**2).mean(axis=-1) < 2)
    ratio = (curves.coefficient_variance[..., :20] / spread).mean(axis=-1)  # variance of 20 · 29 degrees of freedom
    assert np.all(np.abs(ratio - 1) < 4 * np.sqrt(2 / 580) + 5 / p[:, None])


def test_other_spectra_follow_it_too():
    """Exponential, of two plateaus, and degenerate: deviations in standard errors over twelve settings."""
    pulls = []
    for values in (np.exp(-np.arange(400) / 20), np.repeat([1.0, 0.01], [20, 1000]), np.ones(150)):
        power = np.where(np.arange(values.size) < 30, 1 / 30, 0.0)
        curves = feature_regression.measure(
            values, np.sqrt(power), [40, 100], [0.1, 5.0], rng=19, replicas=40, noise_variance=0.1
        )
        theory = RidgeTheory(values, [[40], [100]], ridge=[0.1, 5.0]).predict(power, noise_variance=0.1)
        pulls.append(Estimate.of(curves.test_error).sigmas(theory.test_error))
    assert (np.array(pulls) ** 2).mean() < 2


def test_features_of_another_law_are_taken_and_an_amplitude_common_to_the_tail_breaks_the_theory():
    spectrum, v = Spectrum([1.0, 0.005], [20, 2000]), np.repeat([1.0, 0.0], [20, 2000])
    expected = RidgeTheory(spectrum, 60, ridge=1e-3).predict([20.0, 0.0], noise_variance=0.2).test_error

    def signs(random, samples, modes):
        return random.choice([-1.0, 1.0], (samples, modes))

    def uneven(random, samples, modes):
        features = random.standard_normal((samples, modes))
        features[:, 20:] *= np.exp(random.standard_normal((samples, 1)) - 1)
        return features

    ways = {"rng": 13, "replicas": 30, "noise_variance": 0.2}
    (alike, bar), (apart, wide) = (
        Estimate.of(feature_regression.measure(spectrum, v, [60], [1e-3], features=law, **ways).test_error[:, 0, 0])
        for law in (signs, uneven)
    )
    assert abs(alike - expected) < 3 * bar + 5 / 60 * expected and abs(apart - expected) > 10 * wide
    with pytest.raises(ValueError, match="^features must have shape"):
        feature_regression.measure([1.0], [1.0], [3], [0.1], rng=1, features=lambda random, p, m: np.ones((p, 2)))


def test_ridges_that_are_lost_in_the_rounding_of_the_kernel_are_refused():
    flat, p, m = np.ones(20), 60, 20
    ways = {"rng": 1, "noise_variance": 1.0, "replicas": 300}
    found = Estimate.of(feature_regression.measure(flat, flat, [p], [1e-9], **ways).test_error[:, 0, 0])
    assert found.mean == pytest.approx(1 + m / (p - m - 1), abs=4 * found.error)  # least squares on Gaussian features
    for lost in (1e-13, 1e-30):
        with pytest.raises(ValueError, match="^ridges must be at least .*, got a smallest of"):
            feature_regression.measure(flat, flat, [p], [1e-3, lost], **ways)
    few = feature_regression.measure(flat, flat, [10], [1e-30, 1e-10], rng=1)  # here the kernel alone is invertible
    np.testing.assert_allclose(few.test_error[..., 0], few.test_error[..., 1], rtol=1e-6)
    with pytest.raises(ValueError, match="^coefficients must have one axis of length 3"):
        feature_regression.measure(Spectrum([1.0, 0.5], [1, 2]), [1.0, 1.0], [4], [0.1], rng=1)

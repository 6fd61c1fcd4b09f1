"""lib.fields.kernels.feature_regression: features by moments, fits by scikit-learn, experiments by the theory."""

import numpy as np
import pytest
from bad_input import COUNT, SEED, exercised
from sklearn.kernel_ridge import KernelRidge

from lib.common.estimate import Estimate
from lib.fields.kernels import effective_ridge, feature_regression, learning_curve


def power_law(modes, exponent):
    return np.arange(1.0, modes + 1) ** -exponent


# --- features -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "fourth"), [("gaussian", 3.0), ("sign", 1.0), ("heavy", 9.0)])
def test_features_have_unit_covariance_and_the_stated_fourth_moment(kind, fourth):
    features = feature_regression.draw_features(kind, 200_000, 4, rng=3)
    assert np.all(np.abs(features.mean(axis=0)) < 5 / np.sqrt(200_000))
    error = np.sqrt((fourth - 1) / 200_000)
    np.testing.assert_allclose((features**2).mean(axis=0), 1, atol=5 * error + 1e-12)
    np.testing.assert_allclose((features.T @ features / 200_000)[np.triu_indices(4, 1)], 0, atol=5 / np.sqrt(200_000))
    if kind == "heavy":  # its eighth moment is infinite: the tail itself, P(|t₅| > 4), instead of a mean
        share = (np.abs(features) > 4 * np.sqrt(0.6)).mean()
        assert share == pytest.approx(0.0103233, abs=5 * np.sqrt(0.0103 / features.size))
    else:
        np.testing.assert_allclose((features**4).mean(), fourth, atol=5 * np.sqrt(96 / features.size))


def test_the_amplitude_is_common_to_the_tail_and_keeps_the_covariance():
    features = feature_regression.draw_features("sign", 200_000, 5, rng=4, amplitude_spread=0.5, amplitude_from=2)
    assert np.array_equal(np.abs(features[:, :2]), np.ones((200_000, 2)))
    size = np.abs(features[:, 2:])
    assert np.array_equal(size, np.repeat(size[:, :1], 3, axis=1))
    log = np.log(size[:, 0])
    assert log.mean() == pytest.approx(-0.25, abs=5 * 0.5 / np.sqrt(200_000)) and log.std() == pytest.approx(
        0.5, rel=5 / np.sqrt(400_000)
    )
    assert (size[:, 0] ** 2).mean() == pytest.approx(1, abs=5 * np.sqrt((np.e - 1) / 200_000))  # Var z² = e^{4s²} - 1
    np.testing.assert_allclose(
        (features.T @ features / 200_000)[np.triu_indices(5, 1)], 0, atol=5 * np.sqrt(np.e / 200_000)
    )


# --- the fit --------------------------------------------------------------------------------------


def test_dual_weights_are_those_of_kernel_ridge_regression():
    rng = np.random.default_rng(1)
    root, y = rng.standard_normal((9, 5)), rng.standard_normal(9)
    weights, kappa = feature_regression.dual_fit(root @ root.T, y, [1e-3, 2.0])
    for i, t in enumerate((1e-3, 2.0)):
        np.testing.assert_allclose(
            weights[i], KernelRidge(alpha=t, kernel="precomputed").fit(root @ root.T, y).dual_coef_, rtol=1e-9
        )
        assert kappa[i] == pytest.approx(1 / np.trace(np.linalg.inv(root @ root.T + t * np.eye(9))), rel=1e-9)


def test_errors_and_coefficients_of_one_set_are_those_of_an_explicit_regression_on_test_points():
    values, v = np.array([1.0, 0.3, 0.1]), np.array([1.0, -0.5, 0.2])
    seed = np.random.SeedSequence(5)
    curves = feature_regression.measure(values, v, [6], [0.2], seed, sets=2, noise_variance=0.09)
    again = feature_regression.measure(values, v, [6], [0.2], seed, sets=2, noise_variance=0.09)
    assert np.array_equal(curves.test_error, again.test_error)
    learned, residual, forecast = [], [], []
    for child in np.random.SeedSequence(5).spawn(2):
        random = np.random.Generator(np.random.SFC64(child))
        features = feature_regression.draw_features("gaussian", 6, 3, random)
        y = features @ v + 0.3 * random.standard_normal(6)
        primal = np.linalg.solve(features.T @ features + 0.2 * np.diag(1 / values), features.T @ y)
        hat = features @ np.linalg.solve(features.T @ features + 0.2 * np.diag(1 / values), features.T)
        residual.append(((y - features @ primal) ** 2).mean())
        forecast.append(residual[-1] / (np.trace(np.eye(6) - hat) / 6) ** 2)
        learned.append(primal)
    np.testing.assert_allclose(curves.mean_coefficient[0, 0], np.mean(learned, axis=0), rtol=1e-10)
    np.testing.assert_allclose(curves.coefficient_variance[0, 0], np.var(learned, axis=0, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(curves.train_error[:, 0, 0], residual, rtol=1e-9)
    np.testing.assert_allclose(curves.cross_validation[:, 0, 0], forecast, rtol=1e-9)
    fresh = np.random.default_rng(6).standard_normal((400_000, 3))
    for s in range(2):
        square = (fresh @ (v - learned[s]) + 0.3 * np.random.default_rng(7 + s).standard_normal(400_000)) ** 2
        assert curves.test_error[s, 0, 0] == pytest.approx(square.mean(), abs=5 * square.std() / np.sqrt(square.size))


# --- experiments against the theory ---------------------------------------------------------------


@pytest.mark.parametrize("a", [1.1, 1.5, 2.0])
def test_gaussian_features_follow_the_effective_ridge(a):
    values, power, p, t = power_law(2000, a), power_law(2000, 2.0), np.array([50, 200]), np.array([1e-6, 1.0])
    curves = feature_regression.measure(values, np.sqrt(power), p, t, rng=11, sets=30, noise_variance=0.05)
    theory = learning_curve.predict(values, power, p[:, None], ridge=t, noise_variance=0.05)
    for measured, expected in (
        (curves.test_error, theory.test_error),
        (curves.train_error, theory.train_error),
        (curves.kappa, theory.kappa),
    ):
        mean, error = Estimate.of(measured)
        assert np.all(np.abs(mean - expected) < 3 * error + 5 / p[:, None] * expected)
    # Coefficient by coefficient, the first twenty: mean L_k v_k, variance  test error · L_k²/P
    for i, j in np.ndindex(2, 2):
        learned = effective_ridge.learnability(values, theory.kappa[i, j])
        spread = learning_curve.coefficient_variance(values, theory.kappa[i, j], theory.test_error[i, j], p[i])
        pull = (curves.mean_coefficient[i, j] - learned * np.sqrt(power))[:20] / np.sqrt(spread[:20] / 30)
        assert np.abs(pull).max() < 4 and (pull**2).mean() < 2
        ratio = (curves.coefficient_variance[i, j] / spread)[:20].mean()  # variance of 20 · 29 degrees of freedom
        assert ratio == pytest.approx(1, abs=4 * np.sqrt(2 / 580) + 5 / p[i])


def test_the_mode_that_holds_the_target_fluctuates_twice_as_much():
    values, v, p, t, sets = power_law(300, 1.5), np.zeros(300), 100, 0.05, 1000
    v[9] = 1.0
    curves = feature_regression.measure(values, v, [p], [t], rng=4, sets=sets)
    theory = learning_curve.predict(values, v**2, p, ridge=t)
    left = 1 - effective_ridge.learnability(values, theory.kappa)
    own = theory.amplification * left**2 * v**2
    spread = learning_curve.coefficient_variance(values, theory.kappa, theory.test_error, p, own_error=own)
    assert own[9] == pytest.approx(theory.test_error, rel=1e-12)
    ratio = curves.coefficient_variance[0, 0] / spread
    assert ratio[9] == pytest.approx(1, abs=4 * np.sqrt(2 / sets) + 5 / p)
    assert np.delete(ratio, 9)[:30].mean() == pytest.approx(1, abs=5 / p)


def test_other_spectra_follow_it_too():
    """Exponential, of two plateaus, and degenerate: deviations in standard errors over twelve settings."""
    pulls = []
    for values in (np.exp(-np.arange(400) / 20), np.repeat([1.0, 0.01], [20, 1000]), np.ones(150)):
        power = np.where(np.arange(values.size) < 30, 1 / 30, 0.0)
        curves = feature_regression.measure(
            values, np.sqrt(power), [40, 100], [0.1, 5.0], rng=19, sets=40, noise_variance=0.1
        )
        mean, error = Estimate.of(curves.test_error)
        theory = learning_curve.predict(values, power, [[40], [100]], ridge=[0.1, 5.0], noise_variance=0.1)
        pulls.append((mean - theory.test_error) / error)
    assert (np.array(pulls) ** 2).mean() < 2


@pytest.mark.parametrize("kind", ["sign", "heavy"])
def test_independent_features_of_another_law_follow_it_too_if_many_share_the_kernel(kind):
    values, power = power_law(1000, 1.2), power_law(1000, 2.0)
    curves = feature_regression.measure(
        values, np.sqrt(power), [100], [0.5], rng=12, sets=40, noise_variance=0.05, kind=kind
    )
    theory = learning_curve.predict(values, power, 100, ridge=0.5, noise_variance=0.05)
    mean, error = (part[0, 0] for part in Estimate.of(curves.test_error))
    assert abs(mean - theory.test_error) < 3 * error + 0.05 * theory.test_error


def test_a_common_amplitude_of_the_tail_breaks_it():
    values, power = np.repeat([1.0, 0.005], [20, 2000]), np.repeat([1.0, 0.0], [20, 2000])
    theory = learning_curve.predict(values, power, 60, ridge=1e-3, noise_variance=0.2)
    means = []
    for spread in (0.0, 1.0):
        curves = feature_regression.measure(
            values,
            np.sqrt(power),
            [60],
            [1e-3],
            rng=13,
            sets=30,
            noise_variance=0.2,
            amplitude_spread=spread,
            amplitude_from=20,
        )
        means.append([part[0, 0] for part in Estimate.of(curves.test_error)])
    assert abs(means[0][0] - theory.test_error) < 3 * means[0][1] + 5 / 60 * theory.test_error
    assert abs(means[1][0] - theory.test_error) > 10 * means[1][1]


def test_learnability_is_that_of_the_quenched_closure_at_every_amplitude_of_the_target():
    """Mode 10 of k^-1.3, P = 100, T = 0.05: for amplitude 3 the annealed and half closures give 0.776 and 0.934."""
    values, target = power_law(1000, 1.3), np.where(np.arange(1000) == 9, 3.0, 0.0)
    loud, quiet = (
        feature_regression.measure(values, scale * target, [100], [0.05], rng=14, sets=60) for scale in (1, 0.01)
    )
    measured = loud.mean_coefficient[0, 0, 9] / 3
    error = np.sqrt(loud.coefficient_variance[0, 0, 9] / 60) / 3
    np.testing.assert_allclose(quiet.mean_coefficient, 0.01 * loud.mean_coefficient, rtol=1e-9, atol=1e-12)
    quenched, annealed, half = (
        effective_ridge.closure_learnability(name, values, target**2, 100, ridge=0.05)[9]
        for name in ("quenched", "annealed", "half")
    )
    assert error < 0.01 and abs(measured - quenched) < 4 * error
    assert abs(measured - annealed) > 8 * error and abs(measured - half) > 8 * error


def test_double_descent_and_its_cures():
    """D = 60, noise 0.25: a peak above P = D, gone with a ridge of 5 or a tail of that weight."""
    ones = np.ones(60)
    target = ones / np.sqrt(60)
    bare = feature_regression.measure(ones, target, [50, 70, 90], [1e-3], rng=15, sets=60, noise_variance=0.25)
    theory = learning_curve.predict([1.0], [1.0], [50, 70, 90], ridge=1e-3, noise_variance=0.25, multiplicities=[60])
    mean, error = Estimate.of(bare.test_error[:, :, 0])
    # For P > D inverse Wishart matrices give σ²(1 + D/(P - D - 1)): the theory's D/(P - D) is its leading order.
    exact = 0.25 * (1 + 60 / (np.array([70, 90]) - 61))
    assert (
        np.all(np.abs(mean[1:] - exact) < 4 * error[1:])
        and abs(mean[0] - theory.test_error[0]) < 4 * error[0] + 0.1 * mean[0]
    )
    ridge = feature_regression.measure(ones, target, [60], [5.0], rng=16, sets=60, noise_variance=0.25)
    tail = feature_regression.measure(
        np.append(ones, np.full(2000, 5 / 2000)),
        np.append(target, np.zeros(2000)),
        [60],
        [1e-3],
        rng=17,
        sets=30,
        noise_variance=0.25,
    )
    expected = learning_curve.predict([1.0], [1.0], 60, ridge=5.0, noise_variance=0.25, multiplicities=[60]).test_error
    with_tail = learning_curve.predict(
        [1.0, 5 / 2000], [1.0, 0.0], 60, ridge=1e-3, noise_variance=0.25, multiplicities=[60, 2000]
    ).test_error
    for curves, value in ((ridge, expected), (tail, with_tail)):
        mean, error = (part[0, 0] for part in Estimate.of(curves.test_error))
        assert abs(mean - value) < 3 * error + 0.02 * value and mean < 1


def test_the_diagnostics_see_the_effective_ridge_and_the_test_error():
    values, power = power_law(1500, 1.5), power_law(1500, 2.0)
    curves = feature_regression.measure(values, np.sqrt(power), [200], [0.1], rng=18, sets=60, noise_variance=0.1)
    theory = learning_curve.predict(values, power, 200, ridge=0.1, noise_variance=0.1)
    kappa, error = (part[0, 0] for part in Estimate.of(curves.kappa))
    assert abs(kappa - theory.kappa) < 4 * error + 0.005 * theory.kappa
    gap, error = (part[0, 0] for part in Estimate.of(curves.cross_validation - curves.test_error))
    assert abs(gap) < 4 * error + 0.01 * theory.test_error


# --- bad input: every public function, every argument ---------------------------------------------

FEATURES = {"kind": "gaussian", "amplitude_spread": 0.0, "amplitude_from": 0}
CALLS = {
    feature_regression.draw_features: FEATURES | {"samples": 3, "modes": 2, "rng": 1},
    feature_regression.dual_fit: {"gram": np.eye(3), "targets": np.ones(3), "ridges": [0.1]},
    feature_regression.measure: FEATURES
    | {
        "eigenvalues": [1.0, 0.5],
        "coefficients": [1.0, 0.0],
        "samples": [3, 4],
        "ridges": [0.1, 1.0],
        "rng": 1,
        "sets": 2,
        "noise_variance": 0.1,
    },
}
BAD = {
    "kind": ["normal", "", None, 1],
    "amplitude_spread": [-1e-9, 5.1, np.nan, "x", None, True],
    "amplitude_from": [-1, 0.5, "x", None, True],
    "modes": COUNT,
    "samples": [0, [], [[3]], -1, [3.5], [0], [np.nan], "x", None],
    "rng": SEED,
    "gram": [
        np.ones((2, 3)),
        np.zeros((0, 0)),
        [[1, np.nan], [0, 1]],
        np.diag([1.0, -1.0, 1.0]),
        np.triu(np.ones((3, 3))),
        "x",
        None,
    ],
    "targets": [np.ones(2), [np.nan] * 3, np.ones((3, 1)), "x", None],
    "ridges": [[], [0.0], [-1.0], [np.inf], 1.0, [[1.0]], "x", None],
    "eigenvalues": [[], [0.0, 0.0], [1.0, -1e-9], [np.nan, 1.0], 1.0, "x", None],
    "coefficients": [[1.0], [np.nan, 0.0], 1.0, "x", None],
    "sets": [*COUNT, 1],
    "noise_variance": [-1e-9, np.nan, np.inf, "x", None, True],
    "values": [1.0, [], [1.0], np.zeros((3, 0)), [np.nan, 1.0], "x", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_ridges_that_are_lost_in_the_rounding_of_the_kernel_are_refused():
    flat, p, m = np.ones(20), 60, 20
    ways = {"rng": 1, "noise_variance": 1.0, "sets": 300}
    found = feature_regression.measure(flat, flat, [p], [1e-9], **ways).test_error[:, 0, 0]
    error = found.std(ddof=1) / np.sqrt(300)
    assert found.mean() == pytest.approx(1 + m / (p - m - 1), abs=4 * error)  # least squares on Gaussian features
    for lost in (1e-13, 1e-16, 1e-30):
        with pytest.raises(ValueError, match="^ridges must be at least .*, got a smallest of"):
            feature_regression.measure(flat, flat, [p], [1e-3, lost], **ways)
    few = feature_regression.measure(flat, flat, [10], [1e-30, 1e-10], rng=1)  # here the kernel alone is invertible
    np.testing.assert_allclose(few.test_error[..., 0], few.test_error[..., 1], rtol=1e-6)

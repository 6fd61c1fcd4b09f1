"""lib.fields.kernels.pools against defining sums, scikit-learn, and on digits against theory and surrogates."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import normalize

from lib.common.estimate import Estimate
from lib.fields.kernels import feature_regression, pools
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.services import data

RNG = np.random.default_rng(3)
X = RNG.standard_normal((30, 4))
GRAM, Y = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8), np.tanh(X[:, 0]) + X[:, 1]


def test_the_spectrum_obeys_mercers_theorem():
    pool = pools.Pool(GRAM, Y)
    phi, values = pool.functions, pool.eigenvalues
    assert np.all(np.diff(values) <= 0) and values[-1] >= 0
    np.testing.assert_allclose(phi.T @ phi / 30, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(phi * values @ phi.T, GRAM, atol=1e-12)
    np.testing.assert_allclose(phi @ pool.coefficients, Y, atol=1e-12)
    assert (pool.coefficients**2).sum() == pytest.approx((Y**2).mean(), rel=1e-12)


def test_rounding_below_zero_becomes_zero_and_indefinite_kernels_are_refused():
    values = pools.Pool(X @ X.T, Y).eigenvalues  # rank 4
    assert np.all(values[:4] > 1e-3) and np.all(values[4:] < 1e-14)
    with pytest.raises(ValueError, match="^gram must be positive semidefinite"):
        pools.Pool(X @ X.T - 0.1 * np.eye(30), Y).eigenvalues  # noqa: B018


def test_each_regression_is_scikit_learns_on_the_same_subset():
    curves = pools.Pool(GRAM, Y).measure([5, 12], [1e-3, 0.5], np.random.SeedSequence(4), replicas=3)
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence(4)))
    for s, (i, size) in ((s, pair) for s in range(3) for pair in enumerate((5, 12))):
        order = random.permutation(30)
        seen, left = order[:size], order[size:]
        for j, t in enumerate((1e-3, 0.5)):
            fit = KernelRidge(alpha=t, kernel="precomputed").fit(GRAM[np.ix_(seen, seen)], Y[seen])
            inverse = np.linalg.inv(GRAM[np.ix_(seen, seen)] + t * np.eye(size))
            expected = [
                ((fit.predict(GRAM[np.ix_(left, seen)]) - Y[left]) ** 2).mean(),
                ((fit.predict(GRAM[np.ix_(seen, seen)]) - Y[seen]) ** 2).mean(),
                1 / np.trace(inverse),
                # leave-one-out residuals  α_μ/(K + T)⁻¹_μμ  with the mean of the diagonal for each entry
                ((inverse @ Y[seen] / np.diag(inverse).mean()) ** 2).mean(),
            ]
            found = [curves.test_error, curves.train_error, curves.kappa, curves.cross_validation]
            np.testing.assert_allclose([part[s, i, j] for part in found], expected, rtol=1e-6)


def test_a_kernel_of_one_function_learns_it_from_one_sample():
    line = np.sign(X[:, 0])
    curves = pools.Pool(np.outer(line, line), 2 * line).measure([1, 10], [1e-6], rng=1, replicas=2)
    np.testing.assert_allclose(curves.test_error[:, 0, 0], 4 * (1e-6 / (1 + 1e-6)) ** 2, rtol=1e-6)
    np.testing.assert_allclose(curves.test_error[:, 1, 0], 4 * (1e-6 / (10 + 1e-6)) ** 2, rtol=1e-5)


# --- tables of features ---------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [4, 60])
def test_modes_of_a_table_are_those_of_its_kernel(columns):
    features = RNG.standard_normal((30, columns))
    table, pool = pools.modes(features, Y[:, None]), pools.Pool(features @ features.T, Y).modes
    rank = min(columns, 30)
    assert table.points == pool.points == 30 and table.spectrum.eigenvalues.size == rank
    fit = np.linalg.lstsq(features, Y)[0]
    unexplained = ((Y - features @ fit) ** 2).sum() / max(30 - rank, 1)
    assert table.noise_variance == pytest.approx(unexplained, rel=1e-9, abs=1e-20)
    np.testing.assert_allclose(table.spectrum.eigenvalues, np.linalg.svd(features)[1] ** 2 / 30, rtol=1e-9)
    for name in ("test_error", "train_error", "kappa"):
        one, other = (getattr(modes.predict([3, 20], ridge=0.7), name) for modes in (table, pool))
        np.testing.assert_allclose(one, other, rtol=1e-8)


def test_noise_has_its_place_in_a_pool_and_its_part_taken_from_the_modes_beyond_it():
    """Two features of 30 points: all 30 modes of the pool written out; and with a huge ridge nothing is learned."""
    features, noisy = X[:, :2], X[:, 0] + 3 * np.random.default_rng(6).standard_normal(30)
    found = pools.modes(features, noisy)
    every = np.linalg.svd(features)[0].T @ noisy / np.sqrt(30)  # (30,)
    values = np.append(np.linalg.svd(features)[1] ** 2 / 30, np.zeros(28))
    written = RidgeTheory(values, [3, 20], ridge=0.7, pool=30).predict(every**2)
    np.testing.assert_allclose(found.predict([3, 20], ridge=0.7).test_error, written.test_error, rtol=1e-9)
    noise = (every[2:] ** 2).sum() * 30 / 28
    unlearned = np.maximum(every[:2] ** 2 - noise / 30, 0).sum() + noise
    assert found.predict(5, ridge=1e12, population=True).test_error == pytest.approx(unlearned, rel=1e-9)


def test_a_linear_model_of_known_law_is_found_in_its_sample_and_predicted_beyond_it():
    """λ_k = k^-1.7, v_k² = λ_k, σ = 0.3: 4000 points give the curve of the law, against Gaussian data sets of it."""
    rng, lam = np.random.default_rng(2), np.arange(1.0, 41) ** -1.7
    draw = rng.standard_normal((4000, 40))
    found = pools.modes(draw * np.sqrt(lam), draw @ np.sqrt(lam) + 0.3 * rng.standard_normal(4000))
    assert found.noise_variance == pytest.approx(0.09, rel=4 * np.sqrt(2 / 3960))
    np.testing.assert_allclose(found.spectrum.eigenvalues[:10], lam[:10], rtol=0.15)
    curves = feature_regression.measure(
        lam, np.sqrt(lam), [10, 80, 400], [0.1], rng=3, replicas=60, noise_variance=0.09
    )
    mean, error = Estimate.of(curves.test_error[:, :, 0])
    predicted = found.predict([10, 80, 400], ridge=0.1, population=True).test_error
    assert np.all(np.abs(mean - predicted) < 4 * error + 0.05 * predicted)  # 1/√400 of the eigenvalues' own errors
    assert found.predict(400, ridge=0.1).test_error == pytest.approx(predicted[2], rel=0.05)


def test_tables_of_pandas_and_columns_are_read_and_others_are_refused():
    pandas = pytest.importorskip("pandas")
    numbers = RNG.standard_normal((12, 2))
    frame = pandas.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "c": numbers[:, 0] > 0})
    plain = np.c_[numbers, numbers[:, 0] > 0]
    given = pools.modes(frame, frame[["a"]]), pools.modes(plain, plain[:, 0])
    np.testing.assert_allclose(*(modes.spectrum.eigenvalues for modes in given), rtol=1e-12)
    with pytest.raises(ValueError, match="^features must hold numbers: turn columns of text into them"):
        pools.modes(frame.assign(d="x"), plain[:, 0])
    with pytest.raises(ValueError, match="^features must be finite"):
        pools.modes(frame.assign(d=[None, *range(11)]), plain[:, 0])


def test_in_a_pool_of_digits_the_theory_of_pools_is_near_where_the_other_is_far():
    """Half of 600 digits are seen: unlimited data would leave half the error that is found on the others."""
    images = data.load("digits", size=8)
    x = data.design(images.images)[:600] / 16
    pool = pools.Pool(np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / 8), 1.0 - 2 * (images.labels[:600] % 2))
    mean, error = Estimate.of(pool.measure([30, 300], [1e-2], rng=1, replicas=12).test_error[:, :, 0])
    pooled = pool.modes.predict([30, 300], ridge=1e-2).test_error
    free = RidgeTheory(pool.eigenvalues, [30, 300], ridge=1e-2).predict(pool.coefficients**2).test_error
    assert abs(mean[0] - pooled[0]) < 4 * error[0] and free[1] < 0.6 * mean[1]
    assert np.all(np.abs(pooled - mean) < 0.5 * np.abs(free - mean) + 4 * error)


# --- the handwritten digits -----------------------------------------------------------------------

SAMPLES, RIDGES = np.array([25, 100, 400]), np.array([1e-8, 1e-3, 0.1])


@pytest.fixture(scope="module")
def digits():
    """Even against odd, erf kernel with weight variance one on centred unit vectors."""
    bunch = data.load("digits", size=8)
    pixels = data.design(bunch.images)
    rows = normalize(pixels - pixels.mean(axis=0))
    pool = pools.Pool(2 / np.pi * np.arcsin(2 * (rows @ rows.T) / 3), 1.0 - 2 * (bunch.labels % 2))
    theory = RidgeTheory(pool.eigenvalues, SAMPLES[:, None], ridge=RIDGES)
    return pool, pool.measure(SAMPLES, RIDGES, rng=1, replicas=20), theory.predict(pool.coefficients**2)


def test_digits_follow_the_effective_ridge_for_few_samples_and_not_for_many(digits):
    pool, curves, theory = digits
    rank = np.arange(20, 301)
    assert np.polyfit(np.log(rank), np.log(pool.eigenvalues[19:300]), 1)[0] == pytest.approx(-1.7, abs=0.05)
    mean, error = Estimate.of(curves.test_error)
    expected = [[0.604, 0.313, 0.0886], [0.522, 0.340, 0.1914]]
    np.testing.assert_allclose(theory.test_error[:, [0, 2]].T, expected, atol=6e-4)
    assert np.all(np.abs(mean - theory.test_error)[0] < 4 * error[0])
    assert np.all(np.abs(mean / theory.test_error - 1)[1] < 0.12)
    assert np.all(mean[2] > theory.test_error[2] + 5 * error[2]) and theory.test_error[2, 0] < 0.75 * mean[2, 0]
    promised = theory.theory.equivalent_kernel_error(pool.coefficients**2)
    np.testing.assert_allclose(promised[:2, 2], [0.31, 0.235], atol=5e-3)
    assert np.all(promised[:, 0] < 1e-6)
    ratio = curves.kappa.mean(axis=0) / theory.kappa
    assert np.all(np.abs(ratio - 1)[:, 1] < 0.08) and np.all(np.abs(ratio - 1)[:, 2] < 0.015)


def test_gaussian_surrogates_of_digits_follow_the_theory_where_the_digits_do_not(digits):
    pool, curves, theory = digits
    surrogate = feature_regression.measure(pool.eigenvalues, pool.coefficients, [400], RIDGES, rng=2, replicas=8)
    mean, error = Estimate.of(surrogate.test_error[:, 0])
    assert np.all(np.abs(mean - theory.test_error[2]) < 4 * error)
    assert np.all(curves.test_error.mean(axis=0)[2] > mean + 5 * error)


# --- what does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pools.Pool(GRAM, Y[:-1]), "targets must have 30 rows, one a sample"),
        (lambda: pools.modes(X, np.c_[Y, Y]), "targets must have 1 column: pass one at a time"),
        (lambda: pools.modes(0 * X, Y), "features must differ from zero"),
        (lambda: pools.modes(X[:, :, None], Y), "features must be a table of one sample or more"),
        (lambda: pools.modes(X, Y).predict(30, ridge=1.0), "samples must be fewer than the 30 points of the pool"),
        (lambda: pools.Pool(GRAM, Y).modes.predict(3, ridge=1.0, population=True), "population must be False where"),
        (lambda: pools.Pool(0 * GRAM, Y), "gram must have a trace > 0"),
        (lambda: pools.Pool(GRAM, Y).measure([30], [0.1], 1), "samples must have entries >= 1 and <= 29"),
        (lambda: pools.Pool(X @ X.T, Y).measure([20], [1e-14], 1), "ridges must be at least"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

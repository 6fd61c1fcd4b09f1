"""pairwise against sums written out, two points alone, a linear network trained to the end, and scikit-learn's
regression."""

import numpy as np
import pytest
from bad_input import MATRIX, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from sklearn.linear_model import Ridge

from lib.representations import pairwise

RNG = np.random.default_rng(7)
X, Y = RNG.standard_normal((9, 4)), RNG.standard_normal((9, 3))


def explicit(points):
    return np.array([[((one - other) ** 2).sum() for other in points] for one in points])


# --- pairs alone ----------------------------------------------------------------------------------


def test_distances_of_points_labels_and_pairs_are_what_they_say():
    np.testing.assert_allclose(pairwise.squared_distances(X), explicit(X), rtol=1e-13)
    labels = np.array([4, -2, 4, 7])
    one_hot = (labels[:, None] == [-2, 4, 7]).astype(float)
    assert np.array_equal(pairwise.label_distances(labels), explicit(one_hot))
    np.testing.assert_allclose(
        pairwise.low_weights(X, Y, ratio=0.3), np.sqrt(0.3 * explicit(X) * explicit(Y)), rtol=1e-13
    )


def test_results_that_do_not_fit_into_a_number_are_refused():
    np.testing.assert_allclose(pairwise.low_weights([[0.0], [1e120]], [[0.0], [1e120]])[0, 1], 1e240, rtol=1e-12)
    with pytest.raises(ValueError, match="^points must keep the result inside"):
        pairwise.squared_distances([[0.0], [1e200]])
    with pytest.raises(ValueError, match="^inputs must keep the result inside"):
        pairwise.low_weights([[0.0], [1e200]], [[0.0], [1e200]])
    with pytest.raises(ValueError, match="^inputs must keep the result inside"):
        pairwise.map_metric([[0.0], [1e200]], [[1e200]])


# --- exponential weighing -------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.integers(0, 99), st.floats(0.1, 10), st.booleans())
def test_weighing_is_the_double_sum_and_symmetric(count, seed, scale, normalised):
    points = np.random.default_rng(seed).standard_normal((count, 2))
    s = explicit(points)
    expected = np.zeros((count, count))
    for i in range(count):
        for j in range(count):
            weight = np.array(
                [[np.exp(-(s[i, k] + s[other, j]) / scale) for other in range(count)] for k in range(count)]
            )
            expected[i, j] = (weight * s).sum() / (weight.sum() if normalised else 1)
    found = pairwise.exponential_weighing(s, scale=scale, normalised=normalised)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert np.array_equal(found, found.T)


def test_the_printed_form_grows_with_the_number_of_points_and_depends_on_the_unit_but_the_mean_does_not():
    s = pairwise.low_weights(X, Y)
    twice = np.kron(np.ones((2, 2)), s)  # every point two times
    np.testing.assert_allclose(
        pairwise.exponential_weighing(twice)[:9, :9], 4 * pairwise.exponential_weighing(s), rtol=1e-12
    )
    mean = pairwise.exponential_weighing(s, normalised=True)
    np.testing.assert_allclose(pairwise.exponential_weighing(twice, normalised=True)[:9, :9], mean, rtol=1e-12)
    assert np.all((mean >= 0) & (mean <= s.max())) and np.all(np.diag(pairwise.exponential_weighing(s)) > 0)
    np.testing.assert_allclose(pairwise.exponential_weighing(50 * s, scale=50, normalised=True), 50 * mean, rtol=1e-12)
    changed = pairwise.exponential_weighing(50 * s) / pairwise.exponential_weighing(s)
    assert np.ptp(changed[np.triu_indices(9, 1)]) > 1


def test_in_a_large_unit_the_weighing_is_a_sum_over_classes():
    labels = np.array([0, 0, 1, 1, 1, 2])
    points = np.arange(6.0)[:, None]
    s = 1e4 * pairwise.low_weights(points, (labels[:, None] == range(3)).astype(float))
    same = (labels[:, None] == labels).astype(float)
    np.testing.assert_allclose(pairwise.exponential_weighing(s), same @ s @ same, rtol=1e-12)


# --- all points together --------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 99), st.floats(0.01, 100))
def test_for_two_points_the_metric_is_the_pairwise_value(inputs, outputs, seed, ratio):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, inputs)), rng.standard_normal((2, outputs))
    end_to_end = np.outer(y[1] - y[0], x[1] - x[0]) / ((x[1] - x[0]) ** 2).sum()
    np.testing.assert_allclose(pairwise.linear_map(x, y), end_to_end, rtol=1e-10, atol=1e-12)
    expected = np.sqrt(ratio * explicit(x) * explicit(y))
    np.testing.assert_allclose(pairwise.map_metric(x, end_to_end, ratio=ratio), expected, rtol=1e-12, atol=1e-14)


@settings(deadline=None, max_examples=30)
@given(st.integers(3, 8), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_the_root_of_the_metric_obeys_the_triangle_inequality(count, inputs, outputs, seed):
    rng = np.random.default_rng(seed)
    x, end_to_end = rng.standard_normal((count, inputs)), rng.standard_normal((outputs, inputs))
    found = pairwise.map_metric(x, end_to_end, ratio=0.7)
    d = np.sqrt(found)
    assert np.all(d[:, None, :] <= d[:, :, None] + d[None, :, :] + 1e-12 * d.max())
    values, axes = np.linalg.eigh(end_to_end.T @ end_to_end)
    root = axes * np.sqrt(np.maximum(values, 0)) @ axes.T
    steps = x[:, None] - x
    np.testing.assert_allclose(
        found, np.sqrt(0.7) * np.einsum("ija,ab,ijb->ij", steps, root, steps), rtol=1e-6, atol=1e-6
    )


def test_the_metric_by_scipys_matrix_root():
    end_to_end = RNG.standard_normal((5, 4))
    steps = X[:, None] - X
    expected = np.einsum("ija,ab,ijb->ij", steps, sqrtm(end_to_end.T @ end_to_end), steps)
    np.testing.assert_allclose(pairwise.map_metric(X, end_to_end), expected, rtol=1e-12, atol=1e-12)


def trained(x, y, width, scale, rates, steps, seed):
    """Hidden vectors of a linear network of two layers, both trained by full-batch descent with a rate each."""
    rng = np.random.default_rng(seed)
    first, second = scale * rng.standard_normal((width, x.shape[1])), scale * rng.standard_normal((y.shape[1], width))
    for _ in range(steps):
        wrong = (second @ first @ x.T - y.T) @ x / len(x)
        first, second = first - rates[0] * second.T @ wrong, second - rates[1] * wrong @ first.T
    return x @ first.T, second @ first


@pytest.mark.parametrize("ratio", [1.0, 0.25])
def test_a_linear_network_trained_from_small_weights_has_the_metric(ratio):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((12, 6)), rng.standard_normal((12, 3))
    learned, above, error = pairwise.linear_map(x, y, intercept=False), np.triu_indices(12, 1), []
    for rate in (0.08, 0.02):
        hidden, end_to_end = trained(x, y, 40, 1e-4, (ratio * rate, rate), round(960 / rate), 5)
        np.testing.assert_allclose(end_to_end, learned, atol=1e-6)
        measured = pairwise.squared_distances(hidden)
        found = pairwise.map_metric(x, learned, ratio=ratio)
        error.append(np.abs(found[above] / measured[above] - 1).max())
        assert pairwise.correlation(found, measured) > 0.9999
    assert error[0] < 2e-3 and error[0] / error[1] == pytest.approx(4, rel=0.1)  # the step of descent, of first order
    assert pairwise.correlation(pairwise.low_weights(x, y, ratio=ratio), measured) < 0.8


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(9, 4), (5, 12)])
def test_linear_map_is_the_ridge_regression(shape, intercept):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal(shape) + 1, rng.standard_normal((shape[0], 3)) - 2
    for ridge in (1e-3, 2.0):
        expected = Ridge(alpha=ridge, fit_intercept=intercept).fit(x, y).coef_
        np.testing.assert_allclose(
            pairwise.linear_map(x, y, ridge=ridge, intercept=intercept), expected, rtol=1e-8, atol=1e-11
        )
    x0, y0 = (x - x.mean(axis=0), y - y.mean(axis=0)) if intercept else (x, y)
    np.testing.assert_allclose(
        pairwise.linear_map(x, y, intercept=intercept), (np.linalg.pinv(x0, rcond=1e-12) @ y0).T, rtol=1e-9, atol=1e-12
    )
    small = pairwise.linear_map(x, y, ridge=1e-9, intercept=intercept)
    np.testing.assert_allclose(pairwise.linear_map(x, y, intercept=intercept), small, rtol=1e-6, atol=1e-8)


def test_inputs_that_do_not_differ_have_no_map():
    assert np.array_equal(pairwise.linear_map(np.ones((3, 2)), Y[:3]), np.zeros((3, 2)))
    assert np.array_equal(pairwise.linear_map(np.zeros((3, 2)), Y[:3], ridge=1.0, intercept=False), np.zeros((3, 2)))


def test_correlation_is_that_of_the_pairs_above_the_diagonal():
    one, other = pairwise.squared_distances(X), pairwise.squared_distances(Y)
    pairs = np.array([[one[i, j], other[i, j]] for i in range(9) for j in range(i)])
    assert pairwise.correlation(one, other) == pytest.approx(np.corrcoef(pairs.T)[0, 1], rel=1e-12)
    assert pairwise.correlation(one + 3 * np.eye(9), 2 * other) == pytest.approx(
        pairwise.correlation(one, other), rel=1e-12
    )
    assert pairwise.correlation(one, one.max() - one) == pytest.approx(-1, rel=1e-12)
    for flat in (np.ones((9, 9)), np.zeros((9, 9))):
        with pytest.raises(ValueError, match="^measured must differ between pairs"):
            pairwise.correlation(one, flat)


# --- bad input: every public function, every argument ---------------------------------------------

S3 = pairwise.squared_distances([[0.0], [1.0], [3.0]])
CALLS = {
    pairwise.squared_distances: {"points": X},
    pairwise.label_distances: {"labels": [0, 1, 1]},
    pairwise.low_weights: {"inputs": X, "targets": Y, "ratio": 1.0},
    pairwise.exponential_weighing: {"distances": S3, "scale": 1.0, "normalised": False},
    pairwise.linear_map: {"inputs": X, "targets": Y, "ridge": 1.0, "intercept": True},
    pairwise.map_metric: {"inputs": X, "end_to_end": np.ones((2, 4)), "ratio": 1.0},
    pairwise.correlation: {"predicted": S3, "measured": S3},
}
POINTS = [[], np.zeros((0, 4)), np.zeros((9, 0)), np.full((9, 4), np.nan), np.ones(4), 1.0, "x", None, 1j * X]
DISTANCES = [bad for bad in MATRIX if not np.array_equal(bad, np.eye(3))] + [
    [[0, -1.0], [-1.0, 0]],
    [[0, 1.0], [2.0, 0]],
]
BAD = {
    "points": POINTS,
    "inputs": POINTS,
    "targets": [*POINTS, Y[:-1]],
    "end_to_end": [*POINTS, np.ones((2, 3)), np.ones((4, 2))],
    "labels": [[], [0.5], [np.nan], [[1]], 1, "a", None, ["a"]],
    "distances": DISTANCES,
    "predicted": [*DISTANCES, S3[:2, :2], np.eye(3)],
    "measured": [*DISTANCES, S3[:2, :2], np.zeros((4, 4)), np.eye(3)],
    "ratio": NUMBER,
    "scale": NUMBER,
    "ridge": [bad for bad in NUMBER if bad is True or bad != 0],
    "normalised": [0, 1, "yes", None],
    "intercept": [0, 1, "yes", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    CALLS, BAD, {"inputs": "inputs|targets|end_to_end", "predicted": "predicted|measured"}
)

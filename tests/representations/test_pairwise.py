"""pairwise against sums written out, two points alone, a linear network trained to the end, and scikit-learn's
regression."""

import numpy as np
import pytest
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


def test_distances_of_points_and_pairs_are_what_they_say():
    np.testing.assert_allclose(pairwise.squared_distances(X), explicit(X), rtol=1e-13)
    expected = np.sqrt(0.3 * explicit(X) * explicit(Y))
    np.testing.assert_allclose(pairwise.low_weights(X, Y, ratio=0.3), expected, rtol=1e-13)
    np.testing.assert_allclose(pairwise.low_weights([[0.0], [1e120]], [[0.0], [1e120]])[0, 1], 1e240, rtol=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.integers(0, 99), st.floats(0.1, 10), st.booleans())
def test_weighing_is_the_double_sum_and_symmetric(count, seed, scale, normalised):
    s = explicit(np.random.default_rng(seed).standard_normal((count, 2)))
    weights = np.exp(-(s[:, :, None, None] + s[None, None]) / scale)  # (i, k, l, j)
    expected = np.einsum("iklj,kl->ij", weights, s) / (weights.sum(axis=(1, 2)) if normalised else 1)
    found = pairwise.exponential_weighing(s, scale=scale, normalised=normalised)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert np.array_equal(found, found.T)


def test_the_printed_form_grows_with_the_number_of_points_and_depends_on_the_unit_but_the_mean_does_not():
    s = pairwise.low_weights(X, Y)
    twice = np.kron(np.ones((2, 2)), s)  # every point two times
    printed, mean = pairwise.exponential_weighing(s), pairwise.exponential_weighing(s, normalised=True)
    np.testing.assert_allclose(pairwise.exponential_weighing(twice)[:9, :9], 4 * printed, rtol=1e-12)
    np.testing.assert_allclose(pairwise.exponential_weighing(twice, normalised=True)[:9, :9], mean, rtol=1e-12)
    assert np.all((mean >= 0) & (mean <= s.max())) and np.all(np.diag(printed) > 0)
    np.testing.assert_allclose(pairwise.exponential_weighing(50 * s, scale=50, normalised=True), 50 * mean, rtol=1e-12)
    assert np.ptp((pairwise.exponential_weighing(50 * s) / printed)[np.triu_indices(9, 1)]) > 1


def test_distances_are_not_taken_for_points():
    good = {"inputs": X, "targets": Y}
    for name, distances in (("inputs", explicit(X)), ("targets", np.sqrt(explicit(Y))), ("targets", 1 - np.eye(9))):
        with pytest.raises(ValueError, match=f"^{name} must hold points, a row each, and no distances"):
            pairwise.low_weights(**good | {name: distances})
    with pytest.raises(ValueError, match="^points must hold points"):
        pairwise.squared_distances(explicit(X))
    as_points = np.c_[1 - np.eye(9), np.zeros(9)]  # the remedy, if they are
    np.testing.assert_allclose(pairwise.squared_distances(as_points), 2 - 2 * np.eye(9))
    assert pairwise.squared_distances([[0.0, 1.0], [1.0, 0.0]])[0, 1] == 2  # two points may look like that


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
    d = np.sqrt(pairwise.map_metric(x, end_to_end, ratio=0.7))
    assert np.all(d[:, None, :] <= d[:, :, None] + d[None, :, :] + 1e-12 * d.max())


def test_the_metric_by_scipys_matrix_root():
    end_to_end = RNG.standard_normal((5, 4))
    steps = X[:, None] - X
    expected = np.sqrt(0.7) * np.einsum("ija,ab,ijb->ij", steps, sqrtm(end_to_end.T @ end_to_end), steps)
    np.testing.assert_allclose(pairwise.map_metric(X, end_to_end, ratio=0.7), expected, rtol=1e-12, atol=1e-12)


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
def test_linear_map_is_the_ridge_regression_and_the_smallest_without_a_ridge(shape, intercept):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal(shape) + 1, rng.standard_normal((shape[0], 3)) - 2
    for ridge in (1e-3, 2.0):
        expected = Ridge(alpha=ridge, fit_intercept=intercept).fit(x, y).coef_
        found = pairwise.linear_map(x, y, ridge=ridge, intercept=intercept)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11)
    x0, y0 = (x - x.mean(axis=0), y - y.mean(axis=0)) if intercept else (x, y)
    smallest = pairwise.linear_map(x, y, intercept=intercept)
    np.testing.assert_allclose(smallest, (np.linalg.pinv(x0, rcond=1e-12) @ y0).T, rtol=1e-9, atol=1e-12)


def test_inputs_that_do_not_differ_have_no_map():
    assert np.array_equal(pairwise.linear_map(np.ones((3, 2)), Y[:3]), np.zeros((3, 2)))
    assert np.array_equal(pairwise.linear_map(np.zeros((3, 2)), Y[:3], ridge=1.0, intercept=False), np.zeros((3, 2)))


def test_correlation_is_that_of_the_pairs_above_the_diagonal():
    one, other = pairwise.squared_distances(X), pairwise.squared_distances(Y)
    pairs = np.array([[one[i, j], other[i, j]] for i in range(9) for j in range(i)])
    found = pairwise.correlation(one, other)
    assert found == pytest.approx(np.corrcoef(pairs.T)[0, 1], rel=1e-12)
    assert pairwise.correlation(one + 3 * np.eye(9), 2 * other) == pytest.approx(found, rel=1e-12)
    assert pairwise.correlation(one, one.max() - one) == pytest.approx(-1, rel=1e-12)


S3 = pairwise.squared_distances([[0.0], [1.0], [3.0]])


@pytest.mark.parametrize(
    ("name", "function", "given"),
    [
        ("points must keep the result inside", pairwise.squared_distances, ([[0.0], [1e200]],)),
        ("inputs must keep the result inside", pairwise.low_weights, ([[0.0], [1e200]], [[0.0], [1e200]])),
        ("inputs must keep the result inside", pairwise.map_metric, ([[0.0], [1e200]], [[1e200]])),
        ("points must hold", pairwise.squared_distances, (np.zeros((9, 0)),)),
        ("targets must ", pairwise.linear_map, (X, Y[:-1])),
        ("end_to_end must ", pairwise.map_metric, (X, np.ones((2, 3)))),
        ("end_to_end must ", pairwise.map_metric, (X, np.ones((0, 4)))),
        ("distances must have entries", pairwise.exponential_weighing, (-S3,)),
        ("predicted must be of three", pairwise.correlation, (S3[:2, :2], S3[:2, :2])),
        ("measured must ", pairwise.correlation, (S3, S3[:2, :2])),
        ("measured must differ between pairs", pairwise.correlation, (S3, np.ones((3, 3)))),
        ("measured must differ between pairs", pairwise.correlation, (S3, np.zeros((3, 3)))),
    ],
)
def test_what_does_not_fit_is_refused(name, function, given):
    with pytest.raises(ValueError, match=f"^{name}"):
        function(*given)

"""lib.fluctuations.regression against NumPy's least squares, finite differences, and averages over all minibatches."""

import numpy as np
import pytest
from linear_data import digits, every_batch, listed_moments, small, spectral_radius

from lib.common import linalg
from lib.fluctuations import regression
from lib.services import data

DIGITS = regression.fit(*digits())
SAMPLING = [(batch, replacement) for batch in (1, 2, 3) for replacement in (False, True)]


@pytest.mark.parametrize(
    "x, y", [digits(), digits(cut=0), small(30, 5, 2), small(4, 6, 3)], ids=["6x6", "8x8", "tall", "wide"]
)
def test_basis_optimum_and_residuals(x, y):
    problem = regression.fit(x, y)
    lam, u = problem.eigenvalues, problem.basis
    np.testing.assert_allclose(u.T @ u, np.eye(len(lam)), atol=1e-12)
    np.testing.assert_allclose(problem.inputs, x @ u, atol=1e-11 * np.abs(x).max())
    np.testing.assert_allclose(problem.moment, x.T @ x / len(x), atol=1e-12 * lam[0])
    np.testing.assert_allclose(problem.cross_moment, y.T @ x / len(x), atol=1e-12 * np.abs(problem.cross_moment).max())
    np.testing.assert_allclose(problem.optimum @ u.T, np.linalg.lstsq(x, y, rcond=1e-10)[0].T, atol=1e-9)
    normal = problem.residuals.T @ x / len(x)
    assert np.linalg.norm(normal) < 1e-10 * np.linalg.norm(problem.cross_moment)
    assert np.all(np.diff(lam) <= 0) and lam[-1] > 1e-20 * lam[0]
    over_inputs = problem.in_input_basis(np.diag(lam))
    np.testing.assert_allclose(problem.in_pca_basis(over_inputs), np.diag(lam), atol=1e-12 * lam[0])


def test_a_direction_that_few_images_have_is_kept_and_a_copied_pixel_is_not():
    """Two 16-bit pixels that differ by one in one of fifty images: an eigenvalue 1e-12 of the largest."""
    rng = np.random.default_rng(2)
    pixel = rng.integers(50_000, 65_536, 50).astype(float)
    nearly, copied = np.column_stack([pixel, pixel]), np.column_stack([pixel, pixel])
    nearly[7, 1] -= 1
    problem = regression.fit(nearly, nearly @ [[1.0], [2.0]])
    assert len(problem.eigenvalues) == 2 and problem.eigenvalues[1] < 1e-11 * problem.eigenvalues[0]
    np.testing.assert_allclose(problem.optimum @ problem.basis.T, [[1.0, 2.0]], atol=1e-4)
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    for inputs in (copied, copied @ turn, copied / 3, copied - copied.mean()):
        assert len(regression.fit(inputs, pixel[:, None]).eigenvalues) == 1


@pytest.mark.slow
def test_number_of_modes_of_the_uncropped_images_is_their_rank_over_the_integers():
    pixels = data.design(data.load("mnist-5k", size=28).images)  # (5000, 784)
    gram = pixels.T @ pixels  # exact, and much faster than with integers: all sums are integers that a float holds
    assert np.array_equal(pixels, np.rint(pixels)) and gram.max() < 2**53
    gram = gram.astype(np.int64)
    prime, rank = 2**31 - 1, 0
    gram %= prime
    for column in range(784):  # elimination modulo a prime: a lower bound of the rank
        rows = np.flatnonzero(gram[rank:, column])
        if rows.size:
            pivot = rank + rows[0]
            gram[[rank, pivot]] = gram[[pivot, rank]]
            gram[rank] = gram[rank] * pow(int(gram[rank, column]), -1, prime) % prime
            gram[rank + 1 :] = (gram[rank + 1 :] - gram[rank + 1 :, column, None] * gram[rank]) % prime
            rank += 1
    assert regression.fit(pixels, np.ones((5000, 1))).basis.shape == (784, rank) == (784, 653)


def test_gradient_of_the_loss_is_wa_minus_c():
    x, y = small(20, 4, 2)
    problem, w = regression.fit(x, y), np.random.default_rng(1).standard_normal((2, 4))
    gradient = np.empty_like(w)
    for index in np.ndindex(w.shape):  # the loss is quadratic: a central difference of any width is exact
        up, down = w.copy(), w.copy()
        up[index], down[index] = w[index] + 1, w[index] - 1
        gradient[index] = sum(sign * ((y - x @ v.T) ** 2).sum() for sign, v in ((1, up), (-1, down))) / (4 * len(x))
    np.testing.assert_allclose(w @ problem.moment - problem.cross_moment, gradient, atol=1e-11)


@pytest.mark.parametrize("batch, replacement", SAMPLING)
def test_minibatch_moments_by_listing_all_minibatches(batch, replacement):
    x, y = small(5, 3, 2)
    problem, how = regression.fit(x, y), {"replacement": replacement}
    batches = every_batch(5, batch, replacement)
    second, noise = listed_moments(x, y, batches)

    def same(matrix, expected):
        np.testing.assert_allclose(problem.in_input_basis(matrix), expected, atol=1e-12 * np.abs(expected).max())

    c, one_sample = problem.batch_variance(batch, replacement), np.einsum("si,sj->sij", x, x)
    np.testing.assert_allclose(second.var(axis=0), c * one_sample.var(axis=0), rtol=1e-11, atol=1e-13)
    same(problem.noise_moment(batch, **how), np.einsum("bpi,bpj->ij", noise, noise) / len(batches))
    same(problem.noise_moment(batch, pair=(0, 1), **how), noise[:, 0].T @ noise[:, 1] / len(batches))
    within = (noise @ problem.basis).reshape(len(batches), -1)  # outputs first
    np.testing.assert_allclose(problem.noise_tensor(batch, **how), within.T @ within / len(batches), atol=1e-12)
    cross = np.einsum("bsp,bsj->bpj", y[batches], x[batches]) / batch - y.T @ x / 5
    same(problem.unprimed_noise_moment(batch, **how), np.einsum("bpi,bpj->ij", cross, cross) / len(batches))
    g = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])
    inside = problem.basis.T @ g @ problem.basis
    same(problem.sandwich_moment(inside, batch, **how), np.mean(second @ g @ second, axis=0))
    same(problem.fourth_moment(inside), np.mean([(v @ g @ v) * np.outer(v, v) for v in x], axis=0))
    off = np.linalg.norm(second - x.T @ x / 5, axis=(1, 2)) / np.linalg.norm(x.T @ x / 5)
    assert problem.expected_fluctuation(batch, **how) == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-12)
    between = np.einsum("bpi,bqi->pq", noise, noise) / len(batches)
    floor = np.linalg.norm(between) / np.sqrt(50) / np.linalg.norm(problem.noise_moment(batch, **how))
    assert problem.correlation_floor(batch, 50, **how) == pytest.approx(floor, rel=1e-11)


def test_full_batch_has_no_noise_and_one_hot_targets_hide_the_residual_in_the_unprimed_form():
    assert not DIGITS.noise_moment(1797).any()
    cross = DIGITS.optimum * DIGITS.eigenvalues
    expected = DIGITS.batch_variance(5) * (np.diag(DIGITS.eigenvalues) - cross.T @ cross)
    np.testing.assert_allclose(DIGITS.unprimed_noise_moment(5), expected, atol=1e-11 * expected.max())
    assert 2 < np.trace(expected) / np.trace(DIGITS.noise_moment(5)) < 3


def test_sums_do_not_depend_on_the_size_of_their_pieces(monkeypatch):
    problem = regression.fit(*small(25, 3, 2))

    def sums():
        return problem.fourth_moment(np.eye(3)), problem.noise_moment(2), problem.noise_tensor(2)

    whole = sums()
    monkeypatch.setattr(linalg, "CHUNK", 12)  # 4 samples at a time, and 1 left over
    for one, other in zip(sums(), whole):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("samples, size, batch, replacement", [(12, 3, 1, False), (12, 3, 2, True), (60, 9, 1, False)])
def test_spectral_radius_is_one_at_the_threshold(samples, size, batch, replacement):
    x, y = small(samples, size, 1, seed=5)
    problem, how = regression.fit(x, y), {"replacement": replacement}
    limit = problem.learning_rate_threshold(batch, **how)
    second, _ = listed_moments(x, y, every_batch(samples, batch, replacement))
    assert spectral_radius(second, limit) == pytest.approx(1, abs=1e-8)
    sufficient = 2 / np.linalg.eigvals(np.linalg.solve(problem.moment, np.mean(second @ second, axis=0))).real.max()
    assert problem.sufficient_learning_rate(batch, **how) == pytest.approx(sufficient, rel=1e-10)
    assert sufficient <= limit * (1 + 1e-12) and limit <= 2 / problem.eigenvalues[0]


def test_threshold_rises_with_the_batch_to_that_of_the_mean():
    limits = np.array([DIGITS.learning_rate_threshold(m) for m in (1, 5, 100, 1797)]) * DIGITS.eigenvalues[0] / 2
    assert np.all(np.diff(limits) > 0)
    assert 0.6 < limits[0] < 0.7 and 0.95 < limits[1] < 0.97 and limits[2] > 0.998
    assert limits[3] == pytest.approx(1, abs=1e-10)
    equal = regression.fit(np.repeat(np.eye(9), 2, axis=0), small(18, 1, 2)[1])
    assert equal.learning_rate_threshold(18) == pytest.approx(18.0, rel=1e-10)  # 2 / λ, every λ = 1/9


def test_constant_inputs_do_not_fluctuate_and_no_noise_has_no_floor():
    assert regression.fit([[0.1], [-0.1], [0.1]], [[1.0], [2.0], [0.0]]).expected_fluctuation(1) < 1e-14
    with pytest.raises(ValueError, match="^batch must leave some gradient noise"):
        regression.fit([[1.0], [2.0]], [[1.0], [3.0]]).correlation_floor(2, 10)


X, Y = small(6, 2, 2)


@pytest.mark.parametrize(
    "name, inputs, targets",
    [
        *(("inputs", x, Y) for x in (np.zeros((6, 2)), np.ones((1, 2)), np.ones((6, 0)), X * 1e40, X / 1e40)),
        *(("targets", X, y) for y in (np.ones((5, 2)), np.ones((6, 0)), Y * 1e70)),
    ],
)
def test_data_that_do_not_fit_are_refused(name, inputs, targets):
    with pytest.raises(ValueError, match=f"^{name} must "):
        regression.fit(inputs, targets)


@pytest.mark.parametrize("pair", [(0,), (0, 2), (-1, 0), (0, 1, 1), (0.0, 1), (True, 0), "01", 3])
def test_pair_that_is_none_is_refused(pair):
    with pytest.raises(ValueError, match="^pair must be a tuple of two outputs, integers from 0 to 1"):
        regression.fit(X, Y).noise_moment(1, pair=pair)


def test_batch_larger_than_the_data_needs_replacement():
    problem = regression.fit(X, Y)
    assert problem.batch_variance(8, replacement=True) == 0.125
    with pytest.raises(ValueError, match="^batch must be at most N = 6"):
        problem.noise_moment(7)


def test_one_output_may_come_without_its_axis():
    x, y = small(12, 3, 1)
    one, column = regression.fit(x, y[:, 0]), regression.fit(x, y)
    assert one.targets.shape == (12, 1)
    np.testing.assert_array_equal(one.optimum, column.optimum)
    with pytest.raises(ValueError, match="^targets must hold 12 rows"):
        regression.fit(x, y[1:, 0])

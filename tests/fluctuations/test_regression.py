"""lib.fluctuations.regression against NumPy's least squares, finite differences, and averages over all minibatches."""

import numpy as np
import pytest
from bad_input import COUNT, MATRIX, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_data import digits, every_batch, listed_moments, small

from lib.common import linalg
from lib.fluctuations import regression
from lib.services import data

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


def test_no_input_leaves_the_range_so_weights_beyond_it_never_move():
    x, y = digits(cut=0)
    problem = regression.fit(x, y)
    assert problem.basis.shape == (64, 61)
    weights = np.random.default_rng(0).standard_normal((10, 64))
    beyond = np.eye(64) - problem.basis @ problem.basis.T
    moved = weights
    for batch in np.random.default_rng(1).integers(0, len(x), (50, 5)):
        moved = moved - 1e-4 * (moved @ x[batch].T - y[batch].T) @ x[batch]
    assert np.abs((moved - weights) @ beyond).max() < 1e-10 < np.abs(moved - weights).max()


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
    problem = regression.fit(x, y)
    batches = every_batch(5, batch, replacement)
    second, noise = listed_moments(x, y, batches)
    how = {"replacement": replacement}

    def same(matrix, expected):
        np.testing.assert_allclose(
            regression.in_input_basis(problem, matrix), expected, atol=1e-12 * np.abs(expected).max()
        )

    c = regression.batch_variance(5, batch, replacement)
    one_sample = np.einsum("si,sj->sij", x, x)
    np.testing.assert_allclose(second.var(axis=0), c * one_sample.var(axis=0), rtol=1e-11, atol=1e-13)
    same(regression.noise_moment(problem, batch, **how), np.einsum("bpi,bpj->ij", noise, noise) / len(batches))
    same(regression.noise_moment(problem, batch, pair=(0, 1), **how), noise[:, 0].T @ noise[:, 1] / len(batches))
    cross = np.einsum("bsp,bsj->bpj", y[batches], x[batches]) / batch - y.T @ x / 5
    same(regression.unprimed_noise_moment(problem, batch, **how), np.einsum("bpi,bpj->ij", cross, cross) / len(batches))
    g = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])
    inside = problem.basis.T @ g @ problem.basis
    same(regression.sandwich_moment(problem, inside, batch, **how), np.mean(second @ g @ second, axis=0))
    same(regression.fourth_moment(problem, inside), np.mean([(v @ g @ v) * np.outer(v, v) for v in x], axis=0))


def test_full_batch_has_no_noise_and_one_hot_targets_hide_the_residual_in_the_unprimed_form():
    problem = regression.fit(*digits())
    assert not regression.noise_moment(problem, 1797).any()
    cross = problem.optimum * problem.eigenvalues
    expected = regression.batch_variance(1797, 5) * (np.diag(problem.eigenvalues) - cross.T @ cross)
    np.testing.assert_allclose(regression.unprimed_noise_moment(problem, 5), expected, atol=1e-11 * expected.max())
    right = np.trace(regression.noise_moment(problem, 5))
    assert 2 < np.trace(expected) / right < 3


def test_the_sums_do_not_depend_on_the_size_of_their_pieces(monkeypatch):
    problem = regression.fit(*small(25, 3, 2))
    whole = regression.fourth_moment(problem, np.eye(3)), regression.noise_moment(problem, 2)
    monkeypatch.setattr(linalg, "CHUNK", 12)  # 4 samples at a time, and 1 left over
    np.testing.assert_allclose(regression.fourth_moment(problem, np.eye(3)), whole[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(regression.noise_moment(problem, 2), whole[1], rtol=1e-12, atol=1e-14)


# --- bad input: every public function, every argument ---------------------------------------------

PROBLEM = regression.fit(*small(6, 2, 2))
X, Y = small(6, 2, 2)
MOMENT = {"problem": PROBLEM, "batch": 2, "replacement": False}
CALLS = {
    regression.fit: {"inputs": X, "targets": Y},
    regression.in_input_basis: {"problem": PROBLEM, "matrix": np.eye(2)},
    regression.batch_variance: {"samples": 6, "batch": 2, "replacement": False},
    regression.fourth_moment: {"problem": PROBLEM, "matrix": np.eye(2)},
    regression.sandwich_moment: MOMENT | {"matrix": np.eye(2)},
    regression.noise_moment: MOMENT | {"pair": (0, 1)},
    regression.unprimed_noise_moment: MOMENT,
}
BAD = {
    "inputs": [
        np.zeros((6, 2)),
        np.ones((1, 2)),
        np.ones((6, 0)),
        np.ones(6),
        np.full((6, 2), np.nan),
        "x",
        None,
        X * 1e40,
        X / 1e40,
    ],
    "targets": [np.ones((5, 2)), np.ones((6, 0)), np.ones(6), np.full((6, 2), np.inf), Y * 1e70, "y", None],
    "problem": [None, "problem", np.eye(2), {"inputs": X}],
    "matrix": MATRIX,
    "samples": [*COUNT, 1],
    "batch": [*COUNT, 7],
    "replacement": [None, 0, 1, "yes"],
    "pair": [(0,), (0, 2), (-1, 0), (0, 1, 1), (0.0, 1), (True, 0), "01", 3],
}
CASES = cases(CALLS, BAD)


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    function(**CALLS[function])


@settings(max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    function, name, value = case
    named = "inputs|targets" if name == "inputs" and np.shape(value)[:1] == (1,) else None
    refused(CALLS[function], function, name, value, named)


def test_a_batch_larger_than_the_data_needs_replacement():
    assert regression.batch_variance(3, 4, replacement=True) == 0.25
    with pytest.raises(ValueError, match="^batch must be at most N = 3"):
        regression.batch_variance(3, 4)

"""lib.fluctuations.convolution against PyTorch's convolution and derivatives, direct averages, and its symmetries."""

import numpy as np
import pytest
import torch
from bad_input import MATRIX, cases, refused
from convolution_data import SIZES, by_torch, close, drawn, moments, torch_loss
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_data import every_batch

from lib.fluctuations import convolution, regression
from lib.services import data


@pytest.mark.parametrize("sizes", SIZES)
def test_layer_and_gradients_are_those_of_torch(sizes):
    taps, weights, images, targets = drawn(*sizes)
    hidden = torch.nn.functional.conv2d(torch.tensor(images)[:, None], torch.tensor(taps)[None, None])[:, 0]
    close(convolution.apply(taps, images), hidden.numpy())
    for mine, theirs in zip(
        convolution.gradients(taps, weights, images, targets), by_torch(taps, weights, images, targets)
    ):
        close(mine, theirs)


@pytest.mark.parametrize("sizes", SIZES)
def test_filter_equation_is_the_gradient_and_its_matrix_the_second_derivative(sizes):
    taps, weights, images, targets = drawn(*sizes)
    p, q = convolution.filter_equation(weights, *moments(images, targets))
    by_taps, _ = by_torch(taps, weights, images, targets)
    close(q.ravel() - p @ taps.ravel(), -by_taps.ravel(), 1e-10)
    energy = torch_loss(images, targets)
    second = (
        torch.func.jacrev(torch.func.grad(energy))(torch.tensor(taps), torch.tensor(weights)).numpy().reshape(p.shape)
    )
    close(p, second, 1e-10)
    assert np.array_equal(p, p.T) and np.linalg.eigvalsh(p)[0] > -1e-12 * np.linalg.norm(p)


@pytest.mark.parametrize("sizes", SIZES)
def test_hidden_moments_are_averages_over_the_hidden_layer(sizes):
    taps, weights, images, targets = drawn(*sizes)
    inner, cross = convolution.hidden_moments(taps, *moments(images, targets))
    for mine, theirs in zip((inner, cross), moments(convolution.apply(taps, images), targets)):
        close(mine, theirs)
    close(cross - weights @ inner, -by_torch(taps, weights, images, targets)[1], 1e-10)


def test_moments_of_a_regression_serve():
    digits = data.load("digits")
    targets = data.one_hot(digits.labels, 10)
    problem = regression.fit(data.design(digits.images), targets)
    taps, weights, _, _ = drawn(6, 3, 10)
    p, q = convolution.filter_equation(weights, problem.moment, problem.cross_moment)
    close(p @ taps.ravel() - q.ravel(), convolution.gradients(taps, weights, digits.images, targets)[0].ravel(), 1e-10)


@pytest.mark.parametrize("scale", [0.1, -1.0, 7.0])
def test_every_minibatch_is_blind_to_the_scale(scale):
    taps, weights, images, targets = drawn(4, 2, 3)
    for chosen in every_batch(7, 2, replacement=False):
        x, y = images[chosen], targets[chosen]
        energy = torch_loss(x, y)
        here = energy(torch.tensor(taps), torch.tensor(weights))
        there = energy(torch.tensor(scale * taps), torch.tensor(weights / scale))
        assert float(there) == pytest.approx(float(here), rel=1e-12)
        by_taps, by_weights = convolution.gradients(taps, weights, x, y)
        moved_taps, moved_weights = convolution.gradients(scale * taps, weights / scale, x, y)
        close(moved_taps, by_taps / scale)
        close(moved_weights, by_weights * scale)
        assert (taps * by_taps).sum() == pytest.approx((weights * by_weights).sum(), rel=1e-10)


def test_minimum_is_stationary_on_a_whole_curve_and_no_neighbour_is_lower():
    taps, _, images, targets = drawn(4, 2, 3, samples=60)
    targets[:, 0] += images[:, 1, 1]
    both = moments(images, targets)
    best, weights = convolution.minimum(taps, *both)
    assert np.linalg.norm(best) == pytest.approx(np.linalg.norm(weights))
    for scale in (0.3, 1.0, 4.0):
        p, q = convolution.filter_equation(weights / scale, *both)
        close(np.linalg.solve(p, q.ravel()), scale * best.ravel(), 1e-10)  # C = P⁻¹ Q all along
        inner, cross = convolution.hidden_moments(scale * best, *both)
        close(cross, weights / scale @ inner, 1e-8)
    energy, rng = torch_loss(images, targets), np.random.default_rng(1)
    lowest = float(energy(torch.tensor(best), torch.tensor(weights)))
    for _ in range(50):
        step = [1e-3 * rng.standard_normal(each.shape) for each in (best, weights)]
        assert float(energy(torch.tensor(best + step[0]), torch.tensor(weights + step[1]))) > lowest


def test_minimum_of_real_images_is_reached_to_rounding():
    """The loss is flat to rounding within 1e-8 of its minimum, where a search by values stops; the gradient decides."""
    digits = data.load("digits", size=4)
    both = moments(digits.images / 16, data.one_hot(digits.labels, 10))
    best, weights = convolution.minimum(np.eye(2), *both)
    p, q = convolution.filter_equation(weights, *both)
    assert np.abs(p @ best.ravel() - q.ravel()).max() < 1e-11 * np.abs(q).max()


def test_minimum_does_not_depend_on_units():
    taps, _, images, targets = drawn(3, 2, 2, samples=40)
    inner, cross = moments(images, targets)
    plain = convolution.minimum(taps, inner, cross)
    scaled = convolution.minimum(1e-5 * taps, 1e12 * inner, 1e-9 * cross)
    for one, other in zip(plain, scaled):
        close(np.sqrt(1e21) * other, one, 1e-6)


# --- bad input: every public function, every argument ---------------------------------------------

TAPS, WEIGHTS, IMAGES, TARGETS = drawn(3, 2, 2, samples=20)
MOMENT, CROSS = moments(IMAGES, TARGETS)
LAYERS = {"taps": TAPS, "weights": WEIGHTS, "images": IMAGES, "targets": TARGETS}
CALLS = {
    convolution.apply: {"taps": TAPS, "images": IMAGES},
    convolution.gradients: LAYERS,
    convolution.hidden_moments: {"taps": TAPS, "moment": MOMENT, "cross_moment": CROSS},
    convolution.filter_equation: {"weights": WEIGHTS, "moment": MOMENT, "cross_moment": CROSS},
    convolution.minimum: {"taps": TAPS, "moment": MOMENT, "cross_moment": CROSS},
}
HUGE = [np.full((2, 2), 1e200)]
BAD = {
    "taps": [each for each in MATRIX if np.shape(each) != (3, 3)] + HUGE,
    "weights": [*MATRIX, np.ones((2, 5)), np.ones((2, 25)), np.ones((0, 4)), np.full((2, 4), 1e200)],
    "images": [
        *MATRIX,
        np.ones((20, 3, 2)),
        np.ones((0, 3, 3)),
        np.full((20, 3, 3), np.nan),
        np.full((20, 3, 3), 1e200),
    ],
    "targets": [*MATRIX, np.ones((20, 3)), np.ones((19, 2)), np.full((20, 2), 1e200)],
    "moment": [*MATRIX, np.eye(8), np.triu(np.ones((9, 9))), np.full((9, 9), np.nan), 1e200 * np.eye(9)],
    "cross_moment": [*MATRIX, np.ones((2, 8)), np.ones((0, 9)), np.full((2, 9), np.inf)],
}
CASES = cases(CALLS, BAD) + [
    (convolution.apply, "images", np.ones((20, 1, 1))),
    (convolution.hidden_moments, "moment", np.eye(1)),
    (convolution.minimum, "moment", np.eye(1)),
    (convolution.minimum, "moment", np.diag([1.0] * 8 + [0.0])),
    (convolution.minimum, "taps", np.zeros((2, 2))),
    (convolution.minimum, "cross_moment", np.zeros((2, 9))),
]


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    function(**CALLS[function])


@settings(max_examples=len(CASES), deadline=None)
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    refused(CALLS[case[0]], *case)

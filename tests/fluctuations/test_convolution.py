"""lib.fluctuations.convolution against PyTorch's convolution and derivatives, direct averages, and its symmetries."""

import numpy as np
import pytest
import torch
from convolution_data import SIZES, by_torch, close, drawn, moments, torch_loss
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_data import every_batch

from lib.fluctuations import minibatches, regression
from lib.fluctuations.convolution import Layers
from lib.services import data


@pytest.mark.parametrize("sizes", SIZES)
def test_layers_and_gradients_are_those_of_torch_and_moments_averages(sizes):
    taps, weights, images, targets = drawn(*sizes)
    layers, both = Layers(taps, weights), moments(images, targets)
    assert layers.side == sizes[0]
    hidden = torch.nn.functional.conv2d(torch.tensor(images)[:, None], torch.tensor(taps)[None, None])[:, 0]
    close(layers.hidden(images), hidden.numpy())
    gradients = by_torch(taps, weights, images, targets)
    for mine, theirs in zip(layers.gradients(images, targets), gradients):
        close(mine, theirs)
    p, q = layers.filter_equation(*both)
    close(q.ravel() - p @ taps.ravel(), -gradients[0].ravel(), 1e-10)
    energy = torch_loss(images, targets)
    second = torch.func.jacrev(torch.func.grad(energy))(torch.tensor(taps), torch.tensor(weights)).numpy()
    close(p, second.reshape(p.shape), 1e-10)
    assert np.array_equal(p, p.T) and np.linalg.eigvalsh(p)[0] > -1e-12 * np.linalg.norm(p)
    inner, cross = layers.hidden_moments(*both)
    for mine, theirs in zip((inner, cross), moments(layers.hidden(images), targets)):
        close(mine, theirs)
    close(cross - weights @ inner, -gradients[1], 1e-10)


def test_moments_of_a_regression_serve():
    digits = data.load("digits")
    targets = data.one_hot(digits.labels, 10)
    problem = regression.fit(data.design(digits.images), targets)
    taps, weights, _, _ = drawn(6, 3, 10)
    p, q = Layers(taps, weights).filter_equation(problem.moment, problem.cross_moment)
    by_taps, _ = Layers(taps, weights).gradients(digits.images, targets)
    close(p @ taps.ravel() - q.ravel(), by_taps.ravel(), 1e-10)


@pytest.mark.parametrize("scale", [0.1, 7.0])
def test_every_minibatch_is_blind_to_the_scale(scale):
    taps, weights, images, targets = drawn(4, 2, 3)
    layers = Layers(taps, weights)
    other = layers.rescaled(scale)
    for chosen in every_batch(7, 2, replacement=False):
        x, y = images[chosen], targets[chosen]
        energy = torch_loss(x, y)
        values = [float(energy(torch.tensor(each.taps), torch.tensor(each.weights))) for each in (layers, other)]
        assert values[1] == pytest.approx(values[0], rel=1e-12)
        by_taps, by_weights = layers.gradients(x, y)
        moved_taps, moved_weights = other.gradients(x, y)
        close(moved_taps, by_taps / scale)
        close(moved_weights, by_weights * scale)
        assert (taps * by_taps).sum() == pytest.approx((weights * by_weights).sum(), rel=1e-10)


def test_minimum_is_stationary_on_a_whole_curve_and_no_neighbour_is_lower():
    taps, _, images, targets = drawn(4, 2, 3, samples=60)
    targets[:, 0] += images[:, 1, 1]
    both = moments(images, targets)
    best = Layers.at_minimum(taps, *both)
    assert np.linalg.norm(best.taps) == pytest.approx(np.linalg.norm(best.weights))
    for scale in (0.3, 1.0, 4.0):
        there = best.rescaled(scale)
        p, q = there.filter_equation(*both)
        close(np.linalg.solve(p, q.ravel()), there.taps.ravel(), 1e-10)  # C = P⁻¹ Q all along
        inner, cross = there.hidden_moments(*both)
        close(cross, there.weights @ inner, 1e-8)
    energy, rng = torch_loss(images, targets), np.random.default_rng(1)
    point = torch.tensor(best.taps), torch.tensor(best.weights)
    lowest = float(energy(*point))
    for _ in range(50):
        assert float(energy(*(each + 1e-3 * torch.tensor(rng.standard_normal(each.shape)) for each in point))) > lowest


def test_minimum_of_real_images_is_reached_to_rounding():
    """The loss is flat to rounding within 1e-8 of its minimum, where a search by values stops; the gradient decides."""
    digits = data.load("digits", size=4)
    both = moments(digits.images / 16, data.one_hot(digits.labels, 10))
    best = Layers.at_minimum(np.eye(2), *both)
    p, q = best.filter_equation(*both)
    assert np.abs(p @ best.taps.ravel() - q.ravel()).max() < 1e-11 * np.abs(q).max()


def test_minimum_does_not_depend_on_units():
    taps, _, images, targets = drawn(3, 2, 2, samples=40)
    inner, cross = moments(images, targets)
    plain = Layers.at_minimum(taps, inner, cross)
    scaled = Layers.at_minimum(1e-5 * taps, 1e12 * inner, 1e-9 * cross)
    for name in ("taps", "weights"):
        close(np.sqrt(1e21) * getattr(scaled, name), getattr(plain, name), 1e-6)


def test_descent_is_a_loop_of_gradient_steps():
    taps, weights, images, targets = drawn(5, 3, 2)
    layers, batches = Layers(taps, weights), minibatches.draw(7, 3, 20, rng=1)
    run = layers.descend(images, targets, 0.01, batches, record_every=5)
    c, w, moved = taps, weights, np.zeros(2)
    for step, chosen in enumerate(batches, start=1):
        by_taps, by_weights = by_torch(c, w, images[chosen], targets[chosen])
        c, w = c - 0.01 * by_taps, w - 0.01 * by_weights
        moved += [0.01**2 * (by_taps**2).sum(), 0.01**2 * (by_weights**2).sum()]
        if step % 5 == 0:
            close(run.taps[step // 5], c, 1e-11)
            close(run.weights[step // 5], w, 1e-11)
            close([run.taps_moved[step // 5], run.weights_moved[step // 5]], moved, 1e-11)
    assert run.steps.tolist() == [0, 5, 10, 15, 20]
    assert run.taps_moved[0] == run.weights_moved[0] == 0
    for kept, given_ in (
        (run.taps[0], taps),
        (run.weights[0], weights),
        (layers.taps, taps),
        (layers.weights, weights),
    ):
        np.testing.assert_array_equal(kept, given_)


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(SIZES), st.integers(1, 7), st.floats(1e-4, 0.02), st.integers(0, 100))
def test_norms_change_by_the_difference_of_squared_steps(sizes, batch, rate, seed):
    taps, weights, images, targets = drawn(*sizes, seed=seed)
    run = Layers(taps, weights).descend(images, targets, rate, minibatches.draw(7, batch, 300, rng=seed))
    difference = (run.weights**2).sum(axis=(1, 2)) - (run.taps**2).sum(axis=(1, 2))
    error = difference - difference[0] - (run.weights_moved - run.taps_moved)
    size = run.weights_moved[-1] + run.taps_moved[-1]
    assert np.abs(error).max() < 1e-9 * size + 1e-13 * np.abs(difference[0])


TAPS, WEIGHTS, IMAGES, TARGETS = drawn(3, 2, 2, samples=20)
LAYERS, (MOMENT, CROSS) = Layers(TAPS, WEIGHTS), moments(IMAGES, TARGETS)


@pytest.mark.parametrize(
    "name, call, wrong",
    [
        ("taps", lambda x: Layers(x, WEIGHTS), [np.ones((2, 3)), np.ones((0, 0)), np.full((2, 2), 1e200)]),
        ("weights", lambda x: Layers(TAPS, x), [np.ones((2, 5)), np.ones((0, 4)), np.ones((2, 0))]),
        ("images", LAYERS.hidden, [np.ones((20, 3, 2)), np.ones((0, 3, 3)), np.ones((20, 1, 1))]),
        ("targets", lambda x: LAYERS.gradients(IMAGES, x), [np.ones((20, 3)), np.ones((19, 2))]),
        ("moment", lambda x: LAYERS.filter_equation(x, CROSS), [np.eye(8), np.triu(np.ones((9, 9)))]),
        ("cross_moment", lambda x: LAYERS.filter_equation(MOMENT, x), [np.ones((2, 8)), np.ones((3, 9))]),
        (
            "moment",
            lambda x: Layers.at_minimum(TAPS, x, CROSS),
            [np.eye(1), np.eye(8), np.diag([1.0] * 8 + [0.0]), 1.0, "a"],
        ),
        ("taps", lambda x: Layers.at_minimum(x, MOMENT, CROSS), [np.zeros((2, 2))]),
        ("cross_moment", lambda x: Layers.at_minimum(TAPS, MOMENT, x), [np.zeros((2, 9)), np.zeros((0, 9))]),
        (
            "batches",
            lambda x: LAYERS.descend(IMAGES, TARGETS, 0.01, x),
            [[], [[0, 20]], [[0.5, 1]], [[0.0, 1.0]], [[0], [1, 2]], [[]]],
        ),
        ("record_every", lambda x: LAYERS.descend(IMAGES, TARGETS, 0.01, [[0], [1]], record_every=x), [3]),
        ("learning_rate", lambda x: LAYERS.descend(IMAGES, TARGETS, x, [[0], [1]]), [1e120]),
    ],
)
def test_what_does_not_fit_is_refused(name, call, wrong):
    for each in wrong:
        with pytest.raises(ValueError, match=f"^{name} must "):
            call(each)

"""The code in a solution of the book prints what its text says: a measured kernel in place of the inputs of a net."""

import re

import numpy as np
import pytest

from lib.representations.nets import Net, Parameters
from tools.build import project

PAGE = "book/representations/pairs-of-digits.md"


@pytest.fixture(scope="module")
def page():
    solution = project.read(project.ROOT / PAGE).split("{solution} ex-pairs-of-digits-kernel")[1]
    names = {"np": np, "gram": lambda W: np.swapaxes(W, -1, -2) @ W}
    exec(re.search(r"```python\n(.*?)```", solution, re.DOTALL)[1], names)
    return names


def test_for_one_linear_layer_the_kernel_is_that_of_the_inputs_and_the_theory_is_descent(page):
    random, net = np.random.default_rng(1), Net(4, 2, 20, 1, "linear", biases="none")
    x, y = random.normal(size=(5, 4)), random.normal(size=(5, 2))
    now = net.draw(0.5, 1, 1)
    V, ends = now.weights[-1][0], net.values(net.train(now, x, y, 0.1, 3000).parameters, x)
    K, h = page["influence"](net, now, x, V), ends[0][0]
    told, alone = (page["foretold"](x @ now.weights[0][0], V, y, [each], [np.ones(20)]) for each in (K, K * np.eye(5)))
    np.testing.assert_allclose(K, x @ x.T, rtol=1e-12)
    np.testing.assert_allclose(told, h @ h.T, rtol=1e-9)
    assert np.abs(alone - told).max() > 0.1 * np.abs(told).max()


def test_two_kinked_points_share_a_mean_that_outputs_and_distance_do_not_see(page):
    x, y, width = np.array([[-1.0], [1.0]]), np.array([[-1.0], [1.0]]), 400
    W, V = 0.01 * np.random.default_rng(2).choice([-1.0, 1.0], size=(2, 1, width))
    start = Parameters((W[None], V[None, 0, :, None]), (np.zeros((1, 1, width)), np.zeros((1, 1, 1))))
    net, begin, V, sides = Net(1, 1, width, 1, "relu", biases="none"), np.maximum(x @ W, 0), V.T, [W[0] < 0, W[0] > 0]
    h = net.values(net.train(start, x, y, 0.1, 3000).parameters, x)[0][0]
    one = page["foretold"](begin, V, y, [np.eye(2) / 2], [np.ones(width)])
    two = page["foretold"](begin, V, y, [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])], sides)
    np.testing.assert_allclose(two, h @ h.T, atol=1e-6)
    np.testing.assert_allclose(two, np.eye(2), atol=0.02)
    np.testing.assert_allclose(one, [[0.5, -0.5], [-0.5, 0.5]], atol=0.02)


def test_the_mean_kernel_serves_smooth_units_and_the_start_serves_none(page):
    for unit, told in page["misses"].items():
        distances = {name: miss[0] for name, miss in told.items()}
        assert distances["start"] > 2 * distances["mean"]
        if unit != "leaky_relu":
            assert 1.5 * distances["mean"] < min(distances["inputs"], distances["one number"], distances["signs"])
            assert distances["linear"] < distances["inputs"]


def test_no_kernel_for_all_units_has_the_gram_matrix_of_a_kinked_layer(page):
    told = page["misses"]["leaky_relu"]
    assert min(told[name][1] for name in told if name != "signs") > 0.6
    assert told["signs"][1] < 0.75 * told["mean"][1]
    assert told["one number"][0] < 1.3 * told["mean"][0]

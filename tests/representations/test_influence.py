"""What a solution of the book says of a measured kernel in place of the inputs of a net (ex-pairs-of-digits-kernel)."""

import numpy as np
import pytest

from lib.representations.nets import Net, Parameters

SLOPES = {"linear": np.ones_like, "tanh": lambda z: np.cosh(z) ** -2, "leaky_relu": lambda z: np.where(z > 0, 1, 0.01)}


def influence(net, now, x, V):
    """tr VᵀΘ_ijV / tr VᵀV, by the chain rule from V = W2ᵀ, or some of its rows, down to the inputs."""
    values, back, K = [x, *(layer[0] for layer in net.values(now, x))], V, 0
    for (W,), below in zip(now.weights[-2::-1], values[-3::-1]):
        back = SLOPES[net.activation](below @ W)[..., None] * back  # (n, H, m)
        K = K + below @ below.T * np.einsum("ikm,jkm->ij", back, back)
        back = W @ back
    return K / (V**2).sum()


def foretold(h, V, y, kernels, parts):
    """The Gram matrix at the end; each part of the units has its own kernel."""
    for _ in range(3000):
        e = 0.1 * (h @ V - y) / len(y)
        h, V = h - sum(K @ e @ (V.T * part) for K, part in zip(kernels, parts)), V - h.T @ e
    return h @ h.T


def six_points(unit, seed):
    """Relative misses of squared distances and Gram matrix."""
    random, net = np.random.default_rng(seed), Net(10, 2, 40, 2, unit, biases="none")
    x, y = random.normal(size=(6, 10)) / np.sqrt(10), random.choice([-1.0, 1.0], size=(6, 2))
    path = [net.draw(0.5, 1, seed)]
    for _ in range(50):
        path.append(net.train(path[-1], x, y, 0.1, 30, record_every=30).parameters)
    V = np.array([now.weights[-1][0] for now in path])  # (51, H, 2)
    h, last = (net.values(path[k], x)[1][0] for k in (0, -1))
    found = last @ last.T

    def mean(part):  # over the growth of V² at the units of a part
        own = V * part[:, None]
        K = np.array([influence(net, now, x, each) for now, each in zip(path, own)])  # (51, n, n)
        growth = np.diff((own**2).sum((1, 2))).clip(0)
        return np.tensordot(growth, K[1:] + K[:-1], 1) / growth.sum() / 2

    def off(Kh):
        pairs = [(each, np.add.outer(np.diag(each), np.diag(each)) - 2 * each) for each in (Kh - found, found)]
        return [np.linalg.norm(miss) / np.linalg.norm(whole) for miss, whole in zip(*pairs)][::-1]

    whole, signs = np.ones(40), (V[-1] > 0) @ [1, 2]
    parts, K, (U, size, _) = (
        [signs == k for k in np.unique(signs)],
        mean(whole),
        np.linalg.svd(np.linalg.pinv(x) @ y, full_matrices=False),
    )
    kernels = {"start": influence(net, path[0], x, V[0]), "mean": K}
    kernels |= {
        name: each * np.trace(K) / np.trace(each) for name, each in (("inputs", x @ x.T), ("one number", np.eye(6)))
    }
    told = {name: foretold(h, V[0], y, [each], [whole]) for name, each in kernels.items()}
    told |= {"signs": foretold(h, V[0], y, [mean(part) for part in parts], parts)}
    told |= {"frozen": h @ h.T, "linear": gram((x @ U * size ** (2 / 3)).T)}
    return {name: off(Kh) for name, Kh in told.items()}


def gram(W):
    return np.swapaxes(W, -1, -2) @ W


@pytest.fixture(scope="module", name="misses")
def measured():
    misses = {}
    for unit in SLOPES:
        drawn = [six_points(unit, seed) for seed in range(6)]
        misses[unit] = {name: np.median([one[name] for one in drawn], axis=0) for name in drawn[0]}
    return misses


def test_for_one_linear_layer_the_kernel_is_that_of_the_inputs_and_the_theory_is_descent():
    random, net = np.random.default_rng(1), Net(4, 2, 20, 1, "linear", biases="none")
    x, y = random.normal(size=(5, 4)), random.normal(size=(5, 2))
    now = net.draw(0.5, 1, 1)
    V, ends = now.weights[-1][0], net.values(net.train(now, x, y, 0.1, 3000).parameters, x)
    K, h = influence(net, now, x, V), ends[0][0]
    told, alone = (foretold(x @ now.weights[0][0], V, y, [each], [np.ones(20)]) for each in (K, K * np.eye(5)))
    np.testing.assert_allclose(K, x @ x.T, rtol=1e-12)
    np.testing.assert_allclose(told, h @ h.T, rtol=1e-9)
    assert np.abs(alone - told).max() > 0.1 * np.abs(told).max()


def test_two_kinked_points_share_a_mean_that_outputs_and_distance_do_not_see():
    x, y, width = np.array([[-1.0], [1.0]]), np.array([[-1.0], [1.0]]), 400
    W, V = 0.01 * np.random.default_rng(2).choice([-1.0, 1.0], size=(2, 1, width))
    start = Parameters((W[None], V[None, 0, :, None]), (np.zeros((1, 1, width)), np.zeros((1, 1, 1))))
    net, begin, V, sides = Net(1, 1, width, 1, "relu", biases="none"), np.maximum(x @ W, 0), V.T, [W[0] < 0, W[0] > 0]
    h = net.values(net.train(start, x, y, 0.1, 3000).parameters, x)[0][0]
    one = foretold(begin, V, y, [np.eye(2) / 2], [np.ones(width)])
    two = foretold(begin, V, y, [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])], sides)
    np.testing.assert_allclose(two, h @ h.T, atol=1e-6)
    np.testing.assert_allclose(two, np.eye(2), atol=0.02)
    np.testing.assert_allclose(one, [[0.5, -0.5], [-0.5, 0.5]], atol=0.02)


def test_the_mean_kernel_serves_smooth_units_and_the_start_serves_none(misses):
    for unit, told in misses.items():
        distances = {name: miss[0] for name, miss in told.items()}
        assert distances["start"] > 2 * distances["mean"]
        if unit != "leaky_relu":
            assert 1.5 * distances["mean"] < min(distances["inputs"], distances["one number"], distances["signs"])
            assert distances["linear"] < distances["inputs"]


def test_no_kernel_for_all_units_has_the_gram_matrix_of_a_kinked_layer(misses):
    told = misses["leaky_relu"]
    assert min(told[name][1] for name in told if name != "signs") > 0.6
    assert told["signs"][1] < 0.75 * told["mean"][1]
    assert told["one number"][0] < 1.3 * told["mean"][0]

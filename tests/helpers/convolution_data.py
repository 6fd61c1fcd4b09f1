"""Random convolutional networks for the tests of lib.fluctuations.convolution,
with PyTorch's own loss and gradients.
"""

import numpy as np
import torch

from lib.services import data

SIZES = [(1, 1, 1), (3, 2, 2), (5, 3, 2), (4, 1, 3), (3, 3, 1)]  # L, c, p


def drawn(length, size, outputs, samples=7, seed=0):
    """Filter, weights, images and targets, all Gaussian."""
    rng = np.random.default_rng(seed)
    shapes = (size, size), (outputs, (length - size + 1) ** 2), (samples, length, length), (samples, outputs)
    return [rng.standard_normal(shape) for shape in shapes]


def moments(images, targets):
    x = data.design(images)  # (N, d)
    return x.T @ x / len(x), targets.T @ x / len(x)


def torch_loss(images, targets):
    """f(C, W) with PyTorch's own convolution."""
    x, y = torch.tensor(images)[:, None], torch.tensor(targets)

    def energy(taps, weights):
        hidden = torch.nn.functional.conv2d(x, taps[None, None]).reshape(len(x), -1)
        return ((y - hidden @ weights.T) ** 2).sum() / (2 * len(x))

    return energy


def by_torch(taps, weights, images, targets):
    energy = torch_loss(images, targets)
    return [g.numpy() for g in torch.func.grad(energy, argnums=(0, 1))(torch.tensor(taps), torch.tensor(weights))]


def close(value, expected, tolerance=1e-12):
    assert np.shape(value) == np.shape(expected)
    assert np.linalg.norm(np.subtract(value, expected)) <= tolerance * np.linalg.norm(expected)

"""Data sets for the tests of stochastic linear learning, and its stationary moments by listing every minibatch."""

from itertools import combinations, product

import numpy as np
from sklearn.datasets import load_digits


def digits(cut=1):
    """Pixels (1797, (8 - 2 cut)²) and one-hot targets (1797, 10); without its border the 8 x 8 image has full rank."""
    pixels, digit = load_digits(return_X_y=True)
    pixels = pixels.reshape(-1, 8, 8)[:, cut : 8 - cut, cut : 8 - cut]
    return pixels.reshape(len(pixels), -1), np.eye(10)[digit]


def small(samples, inputs, outputs, seed=0):
    """Gaussian inputs of unequal strength, and targets with a residual that depends on the input."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((samples, inputs)) @ (rng.standard_normal((inputs, inputs)) / np.arange(1, inputs + 1))
    noise = (1 + np.abs(x[:, :1])) * rng.standard_normal((samples, outputs))
    return x, x @ rng.standard_normal((inputs, outputs)) + noise


def every_batch(samples, batch, replacement):
    """All minibatches, equally likely, as an array (number, m)."""
    return np.array(list(product(range(samples), repeat=batch) if replacement else combinations(range(samples), batch)))


def listed_moments(x, y, batches):
    """S (number, d, d) and ξ (number, p, d) of each listed minibatch, in the basis of the inputs."""
    optimum = np.linalg.lstsq(x, y, rcond=None)[0].T  # (p, d)
    residuals = y - x @ optimum.T  # (N, p)
    second = np.einsum("bsi,bsj->bij", x[batches], x[batches]) / batches.shape[1]
    return second, np.einsum("bsp,bsj->bpj", residuals[batches], x[batches]) / batches.shape[1]


def chain_matrices(second, noise, rate, *, momentum=None, preconditioner=None):
    """One step of one output as u' = u M with u = (V, 1), or (V, B, 1) with momentum; noise (number, d), M (number, ·,
    ·).
    """
    number, size = noise.shape
    p = np.eye(size) if preconditioner is None else preconditioner
    pull, kick, one = rate * second @ p, rate * noise @ p, np.eye(size)
    blocks = 1 if momentum is None else 2
    matrices = np.zeros((number, blocks * size + 1, blocks * size + 1))
    matrices[:, :size, :size] = one - pull
    matrices[:, -1, :size] = kick
    matrices[:, -1, -1] = 1
    if momentum is not None:
        matrices[:, :size, size:-1] = -pull
        matrices[:, size:-1, :size] = matrices[:, size:-1, size:-1] = momentum * one
        matrices[:, -1, size:-1] = kick
    return matrices


def listed_second_moment(left, right):
    """Stationary E[u_iᵀ u_k] for the equally likely steps of two outputs: a linear system, nothing assumed about
    means.
    """
    size = left.shape[-1]
    step = np.mean([np.kron(a.T, b.T) for a, b in zip(left, right)], axis=0) - np.eye(size**2)
    step[-1, -1] = 1  # the last component is the constant 1
    return np.linalg.solve(step, np.eye(size**2)[-1]).reshape(size, size)


def spectral_radius(second, rate, **extension):
    """Of the map of second moments, by listing."""
    matrices = chain_matrices(second, np.zeros(second.shape[:2]), rate, **extension)[:, :-1, :-1]
    return np.abs(np.linalg.eigvals(np.mean([np.kron(a.T, a.T) for a in matrices], axis=0))).max()

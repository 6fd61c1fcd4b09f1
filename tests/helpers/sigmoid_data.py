"""A task for the tests of the sigmoid unit whose classes overlap."""

import numpy as np
from linear_data import digits


def parity(scores=5):
    """The digits' leading PCA scores, of unit variance, and a constant (1797, scores + 1); target 1 for odd digits
    (1797,).
    """
    pixels, one_hot = digits()
    pixels = pixels - pixels.mean(axis=0)
    left = np.linalg.svd(pixels, full_matrices=False)[0][:, :scores]
    return np.column_stack([left * np.sqrt(len(left)), np.ones(len(left))]), one_hot[:, 1::2].sum(axis=1)


def overlapping(samples, inputs, seed):
    """Gaussian inputs and random targets between 0 and 1."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((samples, inputs)), rng.uniform(size=samples)

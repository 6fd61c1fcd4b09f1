"""Units of two-layer networks, φ(u) with its slope φ'(u), and their kernels with derivatives, unchecked.

The erf has not the √2 of :mod:`lib.foundations.gaussian`; the kernels are of the covariances of the pre-activations.
"""

import numpy as np
from scipy.special import erf

from lib.common import checks
from lib.foundations import gaussian

ACTIVATIONS = {
    "erf": (erf, lambda u: 2 / np.sqrt(np.pi) * np.exp(-(u**2))),
    "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0).astype(float)),
    "linear": (lambda u: u, np.ones_like),
}


def units(activation):
    """φ and φ' of a checked name."""
    return ACTIVATIONS[checks.one_of("activation", activation, ACTIVATIONS)]


def variances(name, weighted, points):
    """s_11 of each input, (n,); not below zero where Σ is singular, refused where the averages leave their range."""
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.maximum(np.einsum("ij,ij->i", weighted, points), 0)  # (n,)
    if not np.all(result <= gaussian.LARGEST / 2):
        seen = f"variance {result.max():.3g}"
        checks.fail(name, f"give pre-activations of a variance <= {gaussian.LARGEST / 2:g}", seen)
    return result


def covariances(s11, s12, s22):
    """Matrices (..., 2, 2) of arrays that broadcast: covariances by construction, so the formulas need no checks."""
    result = np.empty((*np.broadcast_shapes(s11.shape, s12.shape, s22.shape), 2, 2))  # (..., 2, 2)
    result[..., 0, 0], result[..., 1, 1] = s11, s22
    result[..., 0, 1] = result[..., 1, 0] = s12
    return result


def average(activation, c):
    """⟨φφ⟩ at covariances c; erf(u) is the g(√2 u) of the formulas."""
    if activation == "linear":
        return c[..., 0, 1]  # (...)
    if activation == "erf":
        return gaussian.erf_i2(2 * c, check=False)  # (...)
    return gaussian.arccosine_kernel(c, 1, check=False)  # (...)


def with_slopes(activation, c):
    """⟨φφ⟩ with its derivatives by s_12 and s_11, (...) each."""
    s11, s12, s22 = c[..., 0, 0], c[..., 0, 1], c[..., 1, 1]  # (...) each
    if activation == "linear":
        return s12, np.ones(s12.shape), np.zeros(s12.shape)
    area = np.maximum(s11 * s22 - s12**2, 0)  # (...)
    if activation == "erf":
        root = np.sqrt(1 + 2 * (s11 + s22) + 4 * area)  # (...)
        slopes = 4 / np.pi / root, -4 / np.pi * s12 / (root * (1 + 2 * s11))
    else:
        by_variance = np.divide(np.sqrt(area), 4 * np.pi * s11, out=np.zeros(area.shape), where=s11 > 0)  # (...)
        slopes = gaussian.arccosine_kernel(c, 0, check=False), by_variance
    return average(activation, c), *slopes

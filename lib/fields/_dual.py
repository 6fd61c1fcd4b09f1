"""Kernel regression at many ridges from one eigendecomposition, and what it tells of its own test error."""

import numpy as np
from scipy.linalg import eigh

from lib.common import checks


def solve(kernel, y, t):
    """α = (K + T)⁻¹y (m, P) and κ̂ = 1/tr(K + T)⁻¹ (m,) of a symmetric kernel."""
    values, axes = eigh(kernel)  # (P,), (P, P)
    if values[0] < -1e-10 * values[-1]:
        checks.fail("gram", "be positive semidefinite", f"lowest eigenvalue {values[0]:.3g}")
    inverse = 1 / (np.maximum(values, 0) + t[:, None])  # (m, P)  negative ones are rounding
    return (inverse * (axes.T @ y)) @ axes.T, 1 / inverse.sum(axis=1)


def cross_validation(weights, kappa):
    """Generalized cross-validation  (κ̂P)² ⟨α²⟩  (...) of weights (..., P): T cancels, so that it may be zero."""
    return (kappa * weights.shape[-1]) ** 2 * (weights**2).mean(axis=-1)


def ridges(value):
    """T > 0, one or more."""
    result = checks.entries("ridges", value, above=0, ndim=1)  # (m,)
    if result.size == 0:
        checks.fail("ridges", "hold at least one ridge", value)
    return result

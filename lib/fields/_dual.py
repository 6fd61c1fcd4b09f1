"""Kernel regression at many ridges from one eigendecomposition, and what it tells of its own test error."""

from scipy.linalg import eigh

from lib.common import checks


def solve(kernel, y, t):
    """α = (K + T)⁻¹y (m, P) and κ̂ = 1/tr(K + T)⁻¹ (m,) of a symmetric kernel."""
    values, axes = eigh(kernel)  # (P,), (P, P)
    if values[0] < -1e-10 * values[-1]:
        checks.fail("gram", "be positive semidefinite", f"lowest eigenvalue {values[0]:.3g}")
    inverse = 1 / (values.clip(0) + t[:, None])  # (m, P)  negative ones are rounding
    return (inverse * (axes.T @ y)) @ axes.T, 1 / inverse.sum(axis=1)


def cross_validation(weights, kappa):
    """Generalized cross-validation  (κ̂P)² ⟨α²⟩  (...) of weights (..., P): T cancels, so that it may be zero."""
    return (kappa * weights.shape[-1]) ** 2 * (weights**2).mean(axis=-1)


def regressed(kernel, y, t):
    """α (m, P), and (3, m): training error, κ̂ and cross-validation."""
    weights, kappa = solve(kernel, y, t)
    return weights, (t**2 * (weights**2).mean(axis=1), kappa, cross_validation(weights, kappa))

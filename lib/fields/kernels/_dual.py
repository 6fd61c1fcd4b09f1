"""Kernel regression at many ridges from one eigendecomposition, and what it tells of its own test error."""

from scipy.linalg import eigh

from lib.common import checks
from lib.fields import _data


def solve(kernel, y, t):
    """α = (K + T)⁻¹y (m, P) and κ̂ = 1/tr(K + T)⁻¹ (m,) of a symmetric kernel."""
    values, axes = eigh(kernel)  # (P,), (P, P)
    if values[0] < -1e-10 * values[-1]:
        checks.fail("gram", "be positive semidefinite", f"lowest eigenvalue {values[0]:.3g}")
    values = values.clip(0)  # (P,)  negative ones are rounding
    if not _data.sound(values[0] + t.min(), values[-1] + t.min()):
        wanted = f"be at least {values[-1] / _data.LARGEST_CONDITION:.2g}, or be lost in the rounding of this kernel"
        checks.fail("ridges", wanted, f"a smallest of {t.min():.3g}")
    inverse = 1 / (values + t[:, None])  # (m, P)
    return (inverse * (axes.T @ y)) @ axes.T, 1 / inverse.sum(axis=1)


def cross_validation(weights, kappa):
    """Generalized cross-validation  (κ̂P)² ⟨α²⟩  (...) of weights (..., P): T cancels, so that it may be zero."""
    return (kappa * weights.shape[-1]) ** 2 * (weights**2).mean(axis=-1)


def regressed(kernel, y, t):
    """α (m, P), and (3, m): training error, κ̂ and cross-validation."""
    weights, kappa = solve(kernel, y, t)
    return weights, (t**2 * (weights**2).mean(axis=1), kappa, cross_validation(weights, kappa))

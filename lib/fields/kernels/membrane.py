"""Gaussian-process regression as a membrane held by springs: the action of a field on a grid, and its gradient.

The posterior of :mod:`lib.fields.kernels.gp_regression` is  p(f) ∝ e^{-S[f]},  S[f] = ½ fᵀK⁻¹f + Σ_μ (f(x_μ) -
y_μ)²/2T_μ: K⁻¹ is the stiffness of a membrane, non-local in general, and each example a spring of stiffness 1/T_μ at
one point. Source: ringel2025talk, on Gaussian-process regression.
"""

import numpy as np

from lib.common import checks
from lib.fields import _data


def stiffness(kernel):
    """Stiffness K⁻¹ of a membrane on a grid of points, for :func:`action`.

    Smooth kernels on fine grids have eigenvalues below rounding and are refused; a small diagonal helps.  `kernel` (n,
    n): K, symmetric positive definite, of a condition number up to 1e12.  Returns K⁻¹ (n, n), symmetric.

    >>> (3 * stiffness([[2.0, 1.0], [1.0, 2.0]])).round(12).tolist()
    [[2.0, -1.0], [-1.0, 2.0]]
    """
    kernel = checks.symmetric("kernel", kernel)  # (n, n)
    values, modes = np.linalg.eigh(kernel)  # (n,), (n, n)
    if not _data.sound(values[0], values[-1]):
        seen = f"eigenvalues {values[0]:.3g} to {values[-1]:.3g}"
        checks.fail("kernel", f"have a condition number up to {_data.LARGEST_CONDITION:g}", seen)
    inverse = (modes / values) @ modes.T  # (n, n)
    return checks.finite("kernel", (inverse + inverse.T) / 2)  # (n, n)


def action(field, stiffness, observed, targets, ridge):
    """Action S[f] of fields on a grid, and its gradient,  ∂S/∂f = K⁻¹f + Σ_μ e_μ (f(x_μ) - y_μ)/T_μ.

    Its minimum is :func:`lib.fields.kernels.gp_regression.mean`, and e^{-S} has the covariance of that module.  Any
    positive stiffness serves.  `field` (..., n): f, leading axes are independent fields; `stiffness` (n, n): K⁻¹,
    symmetric; `observed` (P,): grid point 0 .. n-1 of each example, several may share one; `targets` (P,): y; `ridge`:
    T > 0, a float or (P,).  Returns S (...) and ∂S/∂f (..., n).

    >>> [part.tolist() for part in action([1.0, 0.0], np.eye(2), [0], [3.0], 0.5)]
    [4.5, [-3.0, 0.0]]
    """
    stiffness = checks.symmetric("stiffness", stiffness)  # (n, n)
    f = checks.array("field", field)  # (..., n)
    if f.ndim == 0 or f.shape[-1] != len(stiffness):
        checks.fail("field", f"have shape (..., {len(stiffness)})", f"shape {f.shape}")
    index = _data.whole("observed", observed, at_least=0, at_most=len(stiffness) - 1, ndim=1)  # (P,)
    y, ridges = _data.targets(targets, index.size), _data.per_sample("ridge", ridge, index.shape, at_least=0)  # (P,)
    if np.any(ridges == 0):
        checks.fail("ridge", "be > 0: a spring of infinite stiffness is a constraint, not an action", ridge)
    with np.errstate(over="ignore", invalid="ignore"):
        stretch, tension = f[..., index] - y, f @ stiffness  # (..., P), (..., n)
        value = 0.5 * (tension * f).sum(axis=-1) + 0.5 * (stretch**2 / ridges).sum(axis=-1)  # (...)
        springs = (np.arange(len(stiffness)) == index[:, None]) / ridges[:, None]  # (P, n)  adds at a shared point
        gradient = tension + stretch @ springs  # (..., n)
    return checks.finite("field", value), checks.finite("field", gradient)

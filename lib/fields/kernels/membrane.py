"""Gaussian-process regression as a membrane held by springs: the action of a field on a grid, and its gradient.

The posterior is  p(f) ∝ e^{-S[f]},  S[f] = ½ fᵀK⁻¹f + Σ_μ (f(x_μ) - y_μ)²/2T_μ:  K⁻¹ is the stiffness of a membrane,
non-local in general, and each example a spring of stiffness 1/T_μ at one point.  Source: ringel2025talk.
"""

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields import _data


def stiffness(kernel: ArrayLike) -> Array["n n"]:
    """Stiffness K⁻¹ of a membrane on a grid of points, for `action`.

    Smooth kernels on fine grids have eigenvalues below rounding and are refused; a small diagonal helps.

    Parameters
    ----------
    kernel : array_like (n, n)
        K, symmetric positive definite, of a condition number up to 1e12.

    Returns
    -------
    ndarray (n, n)
        K⁻¹, symmetric.

    Examples
    --------
    >>> (3 * stiffness([[2.0, 1.0], [1.0, 2.0]])).round(12).tolist()
    [[2.0, -1.0], [-1.0, 2.0]]
    """
    kernel = checks.symmetric("kernel", kernel)  # (n, n)
    values, modes = np.linalg.eigh(kernel)  # (n,), (n, n)
    if not _data.sound(values[0], values[-1]):
        seen = f"eigenvalues {values[0]:.3g} to {values[-1]:.3g}"
        checks.fail("kernel", f"have a condition number up to {_data.LARGEST_CONDITION:g}", seen)
    inverse = (modes / values) @ modes.T  # (n, n)
    return checks.finite("kernel", (inverse + inverse.T) / 2)


def action(
    field: ArrayLike, stiffness: ArrayLike, observed: ArrayLike, targets: ArrayLike, ridge: ArrayLike
) -> tuple[float | Array["..."], Array["... n"]]:
    """Action S[f] of fields on a grid, and its gradient,  ∂S/∂f = K⁻¹f + Σ_μ e_μ (f(x_μ) - y_μ)/T_μ.

    Its minimum is the mean of `gp_regression.GaussianProcess`, and e^{-S} has its covariance.

    Parameters
    ----------
    field : array_like (..., n)
        f; leading axes are independent fields.
    stiffness : array_like (n, n)
        K⁻¹, symmetric; any positive one serves.
    observed, targets : array_like (P,)
        Grid point 0 .. n-1 of each example, which several may share, and y.
    ridge : float or array_like (P,)
        T > 0.

    Returns
    -------
    value : float or ndarray (...)
        S.
    gradient : ndarray (..., n)
        ∂S/∂f.

    Examples
    --------
    >>> value, gradient = action([1.0, 0.0], np.eye(2), [0], [3.0], 0.5)
    >>> value, gradient.tolist()
    (4.5, [-3.0, 0.0])
    """
    stiffness = checks.symmetric("stiffness", stiffness)  # (n, n)
    f = checks.array("field", field)  # (..., n)
    if f.ndim == 0 or f.shape[-1] != len(stiffness):
        checks.fail("field", f"have shape (..., {len(stiffness)})", f"shape {f.shape}")
    index = _data.whole("observed", observed, at_least=0, at_most=len(stiffness) - 1, ndim=1)  # (P,)
    y = checks.array("targets", targets, shape=index.shape)  # (P,)
    ridges = _data.per_sample("ridge", ridge, index.shape, at_least=0)  # (P,)
    if np.any(ridges == 0):
        checks.fail("ridge", "be > 0: a spring of infinite stiffness is a constraint, not an action", ridge)
    with np.errstate(over="ignore", invalid="ignore"):
        stretch, tension = f[..., index] - y, f @ stiffness  # (..., P), (..., n)
        value = 0.5 * (tension * f).sum(axis=-1) + 0.5 * (stretch**2 / ridges).sum(axis=-1)  # (...)
        springs = (np.arange(len(stiffness)) == index[:, None]) / ridges[:, None]  # (P, n)  adds at a shared point
        gradient = tension + stretch @ springs  # (..., n)
    return checks.plain(checks.finite("field", value)), checks.finite("field", gradient)

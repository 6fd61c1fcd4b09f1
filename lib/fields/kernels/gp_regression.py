"""Gaussian-process regression on a data set: posterior mean, covariance and norm, and what it says of its test error.

The field f has the prior covariance K and is seen at P points with noise of variance T, the ridge: f̄(x) = K_xX α,
α = (K_XX + T)⁻¹ y.  :mod:`lib.fields.kernels.membrane` has the same posterior as a membrane.  `gram` (P, P) is K_XX,
symmetric, and `ridge` T >= 0, a float or (P,), such that K_XX + T has a condition number up to 1e12; `targets` is y
(P,). Source: ringel2025talk, on Gaussian-process regression; a ridge per sample is among its open questions.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, solve_triangular

from lib.common import checks
from lib.fields import _data
from lib.fields.kernels import _dual


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What each example's own removal does."""

    residuals: np.ndarray  # (P,)  y_μ - f̄_{-μ}(x_μ)
    variances: np.ndarray  # (P,)  predictive variance of y_μ, noise included


def _factor(gram, ridge):
    """The Gram matrix, and the Cholesky factor of K_XX + T."""
    gram = checks.symmetric("gram", gram)  # (P, P)
    ridges = _data.per_sample("ridge", ridge, (len(gram),), at_least=0)  # (P,)
    shifted = gram + np.diag(ridges)  # (P, P)
    try:
        return gram, _data.factored(shifted)
    except LinAlgError:
        wanted = "be positive definite once the ridge is added, of a condition number up to"
        seen = f"a larger one at a ridge of {ridges.min():.3g}"
        checks.fail("gram", f"{wanted} {_data.LARGEST_CONDITION:g}", seen)


def _fitted(gram, targets, ridge):
    """K_XX, α (P,) and the Cholesky factor."""
    gram, factor = _factor(gram, ridge)
    return gram, cho_solve(factor, _data.targets(targets, len(gram))), factor


def _inverse_diagonal(factor):
    """Diagonal of (K + T)⁻¹, as sums of squares."""
    root = solve_triangular(factor[0], np.eye(len(factor[0])), lower=True)  # (P, P)
    return (root**2).sum(axis=0)  # (P,)


def mean(gram, targets, ridge, cross):
    """Posterior mean  f̄(x) = K_xX (K_XX + T)⁻¹ y:  the regression, and the membrane at rest.

    `gram`, `ridge`: K_XX, T; `targets` (P,) or (P, m): y, a column a regression on the same inputs; `cross` (n, P):
    K_xX between the new inputs and the examples.  Returns f̄ (n,) or (n, m).

    >>> mean(np.eye(2), [1.0, 3.0], [1.0, 0.5], np.eye(2)).round(12).tolist()  # a spring 1/T against a membrane of one
    [0.5, 2.0]
    """
    gram, factor = _factor(gram, ridge)
    y = _data.targets(targets, len(gram), several=True)  # (P,) or (P, m)
    cross = checks.array("cross", cross, shape=(None, len(gram)))  # (n, P)
    with np.errstate(over="ignore", invalid="ignore"):
        return checks.finite("targets", cross @ cho_solve(factor, y))  # (n,) or (n, m)


def covariance(gram, ridge, cross, prior):
    """Posterior covariance  Σ_xx' = K_xx' - K_xX (K_XX + T)⁻¹ K_Xx':  how the membrane fluctuates, for any targets.

    `gram`, `ridge`, `cross`: as in :func:`mean`; `prior` (n, n) or (n,): K_xx between the new inputs, or its diagonal
    alone.  Returns Σ, or its diagonal where `prior` is one, >= 0 up to rounding.

    >>> covariance([[1.0]], 1.0, [[1.0], [0.0]], [1.0, 1.0]).round(12).tolist()  # at the example, and far away from it
    [0.5, 1.0]
    """
    gram, factor = _factor(gram, ridge)
    cross = checks.array("cross", cross, shape=(None, len(gram)))  # (n, P)
    prior = checks.array("prior", prior)  # (n,) or (n, n)
    if prior.ndim == 1:
        prior = checks.entries("prior", prior, at_least=0, shape=(len(cross),))  # (n,)
    else:
        prior = checks.symmetric("prior", prior, size=len(cross))  # (n, n)
    with np.errstate(over="ignore", invalid="ignore"):
        half = solve_triangular(factor[0], cross.T, lower=True)  # (P, n)
        left = prior - ((half**2).sum(axis=0) if prior.ndim == 1 else half.T @ half)  # (n,) or (n, n)
    variances, before = (part if part.ndim == 1 else part.diagonal() for part in (left, prior))  # (n,), (n,)
    if not np.all(variances >= -1e-8 * before.max(initial=0)):
        lowest = f"a posterior variance of {variances.min():.3g}"
        checks.fail("prior", "belong to the same kernel as gram and cross", lowest)
    return left


def squared_norm(gram, targets, ridge):
    """Squared norm of the posterior mean in K's space:  |f̄|²_K = f̄ᵀK⁻¹f̄ = αᵀK_XXα,  twice the elastic energy.

    `gram`, `targets`, `ridge`: K_XX, y, T.  Returns a float.

    >>> round(squared_norm([[2.0]], [4.0], 2.0), 12)  # f̄ = 2 under the stiffness 1/2
    2.0
    """
    gram, dual, _ = _fitted(gram, targets, ridge)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(checks.finite("targets", dual @ gram @ dual))


def leave_one_out(gram, targets, ridge):
    """Prediction of each example from all the others, without refitting:  y_μ - f̄_{-μ}(x_μ) = α_μ / [(K + T)⁻¹]_μμ.

     `gram`, `targets`, `ridge`: K_XX, y, T.  Returns LeaveOneOut.

    >>> leave_one_out([[2.0, 1.0], [1.0, 2.0]], [3.0, 6.0], 1.0).residuals.round(12).tolist()  # f̄ = K_12 y/(K_11 + T)
    [1.0, 5.0]
    """
    _, dual, factor = _fitted(gram, targets, ridge)
    diagonal = _inverse_diagonal(factor)  # (P,)
    return LeaveOneOut(checks.finite("targets", dual / diagonal), checks.finite("gram", 1 / diagonal))


def generalized_cross_validation(gram, targets, ridge):
    """Test error guessed from training alone:  GCV = E_train/[T tr(K + T)⁻¹/P]²,  E_train = Σ_μ (f̄_μ - y_μ)²/P.

    Computed as  P αᵀα / [tr(K + T)⁻¹]²,  finite at T = 0; right where the features are as good as Gaussian.  `gram`,
    `targets`: K_XX, y; `ridge`: T, the same for all examples.  Returns GCV, with the noise of the labels included.

    >>> round(generalized_cross_validation(np.eye(2), [1.0, 3.0], 1.0), 12)  # each knows nothing of the other: ⟨y²⟩
    5.0
    """
    _, dual, factor = _fitted(gram, targets, checks.number("ridge", ridge, at_least=0))
    with np.errstate(over="ignore", invalid="ignore"):
        forecast = _dual.cross_validation(dual, 1 / _inverse_diagonal(factor).sum())
    return float(checks.finite("targets", forecast))


def measured_ridge(gram, ridge):
    """Effective ridge per sample as one data set shows it:  κ̂ = 1 / tr(K_XX + T)⁻¹.

    It estimates, without the λ_k, the κ of  P = T/κ + Σ_k λ_k/(λ_k + κ).  `gram`, `ridge`: K_XX, T.  Returns κ̂.

    >>> round(measured_ridge(np.eye(4), 1.0), 12)
    0.5
    """
    _, factor = _factor(gram, ridge)
    return float(checks.finite("gram", 1 / _inverse_diagonal(factor).sum()))

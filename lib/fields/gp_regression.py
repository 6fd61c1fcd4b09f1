r"""Gaussian-process regression on a data set: posterior mean, covariance and norm, and what the data set says about its own test error.

The field f has the prior covariance K and is seen at P points with noise of variance T, the ridge:  f̄(x) = K_xX α,  α = (K_XX + T)⁻¹ y.
`ridge` is one T for all examples, or one T_μ each.  The same posterior as a membrane at finite temperature is in :mod:`lib.fields.membrane`.
Source: ringel2025talk, the deck, slides on Gaussian-process regression; a ridge per sample is among its open questions.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from lib.common import checks


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What each example's own removal does: `residuals` y_μ - f̄_{-μ}(x_μ) and predictive `variances` of y_μ, arrays (P,)."""

    residuals: np.ndarray
    variances: np.ndarray


def _ridge(ridge, count):
    ridges = checks.entries("ridge", ridge, at_least=0)  # () or (P,)
    if ridges.shape not in ((), (count,)):
        checks.fail("ridge", f"be one number or have shape ({count},)", f"shape {ridges.shape}")
    return np.full(count, ridges)  # (P,)


def _factor(gram, ridge):
    """The Gram matrix, the ridges, and the Cholesky factor of K_XX + T."""
    gram = checks.symmetric("gram", gram)  # (P, P)
    ridges = _ridge(ridge, len(gram))  # (P,)
    shifted = gram + np.diag(ridges)  # (P, P)
    try:
        factor = cho_factor(shifted, lower=True, check_finite=False)
    except LinAlgError:
        checks.fail(
            "gram",
            "be positive definite once the ridge is added, in floating point",
            f"not so at a ridge of {ridges.min():.3g}",
        )
    if factor[0].diagonal().min() ** 2 < 1e-15 * shifted.diagonal().max():
        checks.fail(
            "gram",
            "be positive definite once the ridge is added, beyond rounding",
            f"a pivot near 0 at a ridge of {ridges.min():.3g}",
        )
    return gram, ridges, factor


def _targets(targets, count, several=False):
    values = checks.array("targets", targets)  # (P,) or (P, m)
    if len(np.atleast_1d(values)) != count or values.ndim not in ((1, 2) if several else (1,)):
        shapes = f"({count},) or ({count}, m)" if several else f"({count},)"
        checks.fail("targets", f"have shape {shapes}, one row an example", f"shape {values.shape}")
    return values


def _traced_inverse(factor):
    """Diagonal of (K + T)⁻¹, as sums of squares."""
    root = solve_triangular(factor[0], np.eye(len(factor[0])), lower=True)  # (P, P)
    return (root**2).sum(axis=0)  # (P,)


def mean(gram, targets, ridge, cross):
    r"""Posterior mean  f̄(x) = K_xX (K_XX + T)⁻¹ y:  the regression, and the membrane at rest.

    Source: ringel2025talk, the deck, slides on Gaussian-process regression.

    Parameters
    ----------
    gram : array (P, P)                K_XX, symmetric
    targets : array (P,) or (P, m)     y; several columns are several regressions on the same inputs
    ridge : float or array (P,)        T; >= 0, and such that K_XX + T is positive definite beyond rounding
    cross : array (n, P)               K_xX between the new inputs and the examples

    Returns
    -------
    array (n,) or (n, m)               f̄

    Examples
    --------
    >>> mean(np.eye(2), [1.0, 3.0], [1.0, 0.5], np.eye(2)).round(12).tolist()  # a spring of stiffness 1/T against a membrane of stiffness 1
    [0.5, 2.0]
    """
    gram, _, factor = _factor(gram, ridge)
    y = _targets(targets, len(gram), several=True)  # (P,) or (P, m)
    cross = checks.array("cross", cross, shape=(None, len(gram)))  # (n, P)
    with np.errstate(over="ignore", invalid="ignore"):
        return checks.finite("targets", cross @ cho_solve(factor, y))  # (n,) or (n, m)


def covariance(gram, ridge, cross, prior):
    r"""Posterior covariance  Σ_xx' = K_xx' - K_xX (K_XX + T)⁻¹ K_Xx':  the fluctuations of the membrane, whatever the targets.

    Source: ringel2025talk, the deck, slides on Gaussian-process regression.

    Parameters
    ----------
    gram : array (P, P)                K_XX, symmetric
    ridge : float or array (P,)        T; >= 0, and such that K_XX + T is positive definite beyond rounding
    cross : array (n, P)               K_xX between the new inputs and the examples
    prior : array (n, n) or (n,)       K_xx between the new inputs, or its diagonal alone

    Returns
    -------
    array (n, n) or (n,)               Σ, or its diagonal where `prior` is one; >= 0 up to rounding

    Raises
    ------
    ValueError                         if an argument is outside its range, or the variance comes out negative: then gram, cross and
                                       prior are not blocks of one kernel

    Examples
    --------
    >>> covariance([[1.0]], 1.0, [[1.0], [0.0]], [1.0, 1.0]).round(12).tolist()  # at the example, and far away from it
    [0.5, 1.0]
    """
    gram, _, factor = _factor(gram, ridge)
    cross = checks.array("cross", cross, shape=(None, len(gram)))  # (n, P)
    prior = checks.array("prior", prior)  # (n,) or (n, n)
    if prior.ndim == 1:
        prior = checks.entries("prior", prior, at_least=0, shape=(len(cross),))  # (n,)
    else:
        prior = checks.symmetric("prior", prior, size=len(cross))  # (n, n)
    with np.errstate(over="ignore", invalid="ignore"):
        half = solve_triangular(factor[0], cross.T, lower=True)  # (P, n)
        left = prior - ((half**2).sum(axis=0) if prior.ndim == 1 else half.T @ half)  # (n,) or (n, n)
    variances = left if prior.ndim == 1 else left.diagonal()  # (n,)
    largest = (prior if prior.ndim == 1 else prior.diagonal()).max(initial=0)
    if not np.all(variances >= -1e-8 * largest):
        checks.fail(
            "prior", "belong to the same kernel as gram and cross", f"a posterior variance of {variances.min():.3g}"
        )
    return left


def squared_norm(gram, targets, ridge):
    r"""Squared norm of the posterior mean in the space of the kernel:  |f̄|²_K = f̄ᵀK⁻¹f̄ = αᵀ K_XX α,  the elastic energy times two.

    Source: ringel2025talk, the deck, slides on Gaussian-process regression, the first term of S at f̄.

    Parameters
    ----------
    gram : array (P, P)                K_XX, symmetric
    targets : array (P,)               y
    ridge : float or array (P,)        T; >= 0, and such that K_XX + T is positive definite beyond rounding

    Returns
    -------
    float                              |f̄|²_K

    Examples
    --------
    >>> round(squared_norm([[2.0]], [4.0], 2.0), 12)  # f̄ = 2 under the stiffness 1/2
    2.0
    """
    gram, _, factor = _factor(gram, ridge)
    dual = cho_solve(factor, _targets(targets, len(gram)))  # (P,)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(checks.finite("targets", dual @ gram @ dual))


def leave_one_out(gram, targets, ridge):
    r"""Prediction of each example from all the others, without refitting:  y_μ - f̄_{-μ}(x_μ) = α_μ / [(K + T)⁻¹]_μμ.

    The predictive variance of y_μ, noise included, is 1/[(K + T)⁻¹]_μμ.  Not in the source, ringel2025talk.

    Parameters
    ----------
    gram : array (P, P)                K_XX, symmetric
    targets : array (P,)               y
    ridge : float or array (P,)        T; >= 0, and such that K_XX + T is positive definite beyond rounding

    Returns
    -------
    LeaveOneOut                        residuals (P,) and variances (P,)

    Examples
    --------
    >>> found = leave_one_out([[2.0, 1.0], [1.0, 2.0]], [3.0, 6.0], 1.0)  # each from the other: f̄ = K_12 y/(K_11 + T)
    >>> found.residuals.round(12).tolist(), found.variances.round(6).tolist()
    ([1.0, 5.0], [2.666667, 2.666667])
    """
    gram, _, factor = _factor(gram, ridge)
    dual, diagonal = cho_solve(factor, _targets(targets, len(gram))), _traced_inverse(factor)  # (P,), (P,)
    return LeaveOneOut(checks.finite("targets", dual / diagonal), checks.finite("gram", 1 / diagonal))


def generalized_cross_validation(gram, targets, ridge):
    r"""Test error guessed from the training error alone:  GCV = E_train / [T tr(K + T)⁻¹/P]²,  E_train = Σ_μ (f̄(x_μ) - y_μ)²/P.

    Computed as  P αᵀα / [tr(K + T)⁻¹]²,  which stays finite at T = 0.  It is right where the features are as good as Gaussian, and so a
    diagnostic of that assumption.  Not in the source, ringel2025talk.

    Parameters
    ----------
    gram : array (P, P)       K_XX, symmetric
    targets : array (P,)      y
    ridge : float             T; >= 0, the same for all examples, and such that K_XX + T is positive definite beyond rounding

    Returns
    -------
    float                     GCV, with the noise of the labels included

    Examples
    --------
    >>> round(generalized_cross_validation(np.eye(2), [1.0, 3.0], 1.0), 12)  # examples that know nothing of each other: ⟨y²⟩
    5.0
    """
    ridge = checks.number("ridge", ridge, at_least=0)
    gram, _, factor = _factor(gram, ridge)
    dual = cho_solve(factor, _targets(targets, len(gram)))  # (P,)
    return float(checks.finite("targets", len(gram) * (dual @ dual) / _traced_inverse(factor).sum() ** 2))


def measured_ridge(gram, ridge):
    r"""Effective ridge per sample as one data set shows it:  κ̂ = 1 / tr(K_XX + T)⁻¹.

    Since  T tr(K_XX + T)⁻¹ = P - Σ_i γ_i/(γ_i + T)  over the eigenvalues γ_i of the Gram matrix, κ̂ estimates the κ that solves
    P = T/κ + Σ_k λ_k/(λ_k + κ)  over the eigenvalues λ_k of the kernel, which it does not need.  Not in the source, ringel2025talk.

    Parameters
    ----------
    gram : array (P, P)                K_XX, symmetric
    ridge : float or array (P,)        T; >= 0, and such that K_XX + T is positive definite beyond rounding

    Returns
    -------
    float                              κ̂

    Examples
    --------
    >>> round(measured_ridge(np.eye(4), 1.0), 12)
    0.5
    """
    _, _, factor = _factor(gram, ridge)
    return float(checks.finite("gram", 1 / _traced_inverse(factor).sum()))

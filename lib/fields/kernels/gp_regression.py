"""Gaussian-process regression on a data set: posterior mean, covariance and draws, and what it says of its test error.

The one home of ridge regression in this part: of one data set at one ridge a sample, and at many ridges.  Source:
ringel2025talk, on Gaussian-process regression; a ridge per sample is among its open questions.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, eigh, solve_triangular

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields import _data


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What each example's own removal does: residuals  y_μ - f̄_{-μ}(x_μ)  and predictive variances, noise included."""

    residuals: Array[" P"]
    variances: Array[" P"]


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A field f of prior covariance K, seen at P points with noise of variance T:  f̄(x) = K_xX α, α = (K_XX + T)⁻¹ y.

    The Cholesky factor of K_XX + T, of a condition number up to 1e12, is made once and kept.

    Parameters
    ----------
    gram : array_like (P, P)
        K_XX, symmetric.
    ridge : float or array_like (P,)
        T >= 0.

    Examples
    --------
    >>> process = GaussianProcess(np.eye(2), [1.0, 0.5])  # springs 1/T against a membrane of one
    >>> process.mean([1.0, 3.0], cross=np.eye(2)).round(12).tolist()
    [0.5, 2.0]
    """

    gram: Array["P P"]
    ridge: Array[" P"]

    def __post_init__(self):
        gram = checks.symmetric("gram", self.gram)  # (P, P)
        ridge = _data.per_sample("ridge", self.ridge, (len(gram),), at_least=0)  # (P,)
        try:
            factor = _data.factored(gram + np.diag(ridge))
        except LinAlgError:
            wanted = "be positive definite once the ridge is added, of a condition number up to"
            seen = f"a larger one at a ridge of {ridge.min():.3g}"
            checks.fail("gram", f"{wanted} {_data.LARGEST_CONDITION:g}", seen)
        checks.keep(self, gram=gram, ridge=ridge, _factor=factor)

    @cached_property
    def _inverse_diagonal(self):
        """Diagonal of (K + T)⁻¹ (P,), as sums of squares."""
        root = solve_triangular(self._factor[0], np.eye(len(self.gram)), lower=True)  # (P, P)
        return (root**2).sum(axis=0)

    def weights(self, targets: ArrayLike) -> Array["P ..."]:
        """Dual weights  α = (K_XX + T)⁻¹ y.

        Parameters
        ----------
        targets : array_like (P,) or (P, m)
            y, a column a regression on the same inputs.

        Returns
        -------
        ndarray (P,) or (P, m)

        Examples
        --------
        >>> GaussianProcess([[1.0, 0.0], [0.0, 3.0]], 1.0).weights([2.0, 4.0]).round(12).tolist()
        [1.0, 1.0]
        """
        y = checks.array("targets", targets)  # (P,) or (P, m)
        return cho_solve(self._factor, checks.array("targets", y, shape=(len(self.gram), None)[: max(y.ndim, 1)]))

    def _one(self, targets):
        return self.weights(checks.array("targets", targets, shape=self.ridge.shape))  # (P,)

    def mean(self, targets: ArrayLike, cross: ArrayLike) -> Array["n ..."]:
        """Posterior mean  f̄(x) = K_xX (K_XX + T)⁻¹ y:  the regression, and the membrane at rest.

        Parameters
        ----------
        targets : array_like (P,) or (P, m)
            y, a column a regression on the same inputs.
        cross : array_like (n, P)
            K_xX between the new inputs and the examples.

        Returns
        -------
        ndarray (n,) or (n, m)

        Examples
        --------
        >>> GaussianProcess([[1.0]], 1.0).mean([4.0], [[0.5]]).round(12).tolist()
        [1.0]
        """
        cross = checks.array("cross", cross, shape=(None, len(self.gram)))  # (n, P)
        with np.errstate(over="ignore", invalid="ignore"):
            return checks.finite("targets", cross @ self.weights(targets))  # (n,) or (n, m)

    def covariance(self, cross: ArrayLike, prior: ArrayLike) -> Array["n ..."]:
        """Posterior covariance  Σ_xx' = K_xx' - K_xX (K_XX + T)⁻¹ K_Xx':  how the membrane fluctuates, for any targets.

        Parameters
        ----------
        cross : array_like (n, P)
            K_xX between the new inputs and the examples.
        prior : array_like (n, n) or (n,)
            K_xx between the new inputs, or its diagonal alone.

        Returns
        -------
        ndarray (n, n) or (n,)
            Σ, or its diagonal where `prior` is one, >= 0 up to rounding.

        Examples
        --------
        >>> process = GaussianProcess([[1.0]], 1.0)
        >>> process.covariance([[1.0], [0.0]], [1.0, 1.0]).round(12).tolist()  # at the example, and far away from it
        [0.5, 1.0]
        """
        cross = checks.array("cross", cross, shape=(None, len(self.gram)))  # (n, P)
        prior = checks.array("prior", prior)  # (n,) or (n, n)
        if prior.ndim == 1:
            prior = checks.entries("prior", prior, at_least=0, shape=(len(cross),))  # (n,)
        else:
            prior = checks.symmetric("prior", prior, size=len(cross))  # (n, n)
        with np.errstate(over="ignore", invalid="ignore"):
            half = solve_triangular(self._factor[0], cross.T, lower=True)  # (P, n)
            left = prior - ((half**2).sum(axis=0) if prior.ndim == 1 else half.T @ half)  # (n,) or (n, n)
        variances, before = (part if part.ndim == 1 else part.diagonal() for part in (left, prior))  # (n,), (n,)
        if not np.all(variances >= -1e-8 * before.max(initial=0)):
            lowest = f"a posterior variance of {variances.min():.3g}"
            checks.fail("prior", "belong to the same kernel as gram and cross", lowest)
        return left

    def condition(
        self, fields: ArrayLike, observed: ArrayLike, targets: ArrayLike, cross: ArrayLike, rng: Rng
    ) -> Array["S n"]:
        """Draws of the posterior from those of the prior, Matheron's rule:  f = f₀ + K_xX (K_XX + T)⁻¹ (y - f₀(X) - ξ).

        With noise ξ ~ N(0, T), what is left of f₀ is uncorrelated with  f₀(X) + ξ,  hence independent of the data.

        Parameters
        ----------
        fields, observed : array_like (S, n), (S, P)
            f₀ of covariance K at the new inputs and, of the same draws, at the examples.
        targets : array_like (P,)
            y.
        cross : array_like (n, P)
            K_xX between the new inputs and the examples.
        rng : int, SeedSequence or Generator

        Returns
        -------
        ndarray (S, n)

        Examples
        --------
        >>> GaussianProcess([[1.0]], 0.0).condition([[0.5]], [[0.5]], [2.0], [[1.0]], rng=1).tolist()  # a rigid pin
        [[2.0]]
        """
        prior = checks.array("fields", fields, ndim=2)  # (S, n)
        seen = checks.array("observed", observed, shape=(len(prior), len(self.gram)))  # (S, P)
        cross = checks.array("cross", cross, shape=(prior.shape[1], len(self.gram)))  # (n, P)
        y = checks.array("targets", targets, shape=self.ridge.shape)  # (P,)
        noise = np.sqrt(self.ridge) * checks.generator("rng", rng).standard_normal(seen.shape)  # (S, P)
        return prior + self.mean((y - seen - noise).T, cross).T  # (S, n)

    def leave_one_out(self, targets: ArrayLike) -> LeaveOneOut:
        """Prediction of each example from all the others, without refitting:  y_μ - f̄_{-μ}(x_μ) = α_μ/[(K + T)⁻¹]_μμ.

        Parameters
        ----------
        targets : array_like (P,)
            y.

        Returns
        -------
        LeaveOneOut

        Examples
        --------
        >>> process = GaussianProcess([[2.0, 1.0], [1.0, 2.0]], 1.0)
        >>> process.leave_one_out([3.0, 6.0]).residuals.round(12).tolist()  # f̄ = K_12 y/(K_11 + T)
        [1.0, 5.0]
        """
        dual = self._one(targets)  # (P,)
        residuals = checks.finite("targets", dual / self._inverse_diagonal)  # (P,)
        return LeaveOneOut(residuals, checks.finite("gram", 1 / self._inverse_diagonal))

    def generalized_cross_validation(self, targets: ArrayLike) -> float:
        """Test error guessed from training alone:  GCV = E_train/[T tr(K + T)⁻¹/P]²,  E_train = Σ_μ (f̄_μ - y_μ)²/P.

        Computed as  P αᵀα/[tr(K + T)⁻¹]²,  finite at T = 0; right where the features are as good as Gaussian.

        Parameters
        ----------
        targets : array_like (P,)
            y; the ridge must be the same for all examples.

        Returns
        -------
        float
            With the noise of the labels included.

        Examples
        --------
        >>> process = GaussianProcess(np.eye(2), 1.0)
        >>> round(process.generalized_cross_validation([1.0, 3.0]), 12)  # each knows nothing of the other: ⟨y²⟩
        5.0
        """
        checks.fail_if(np.ptp(self.ridge) > 0, "ridge", "be the same for all examples", self.ridge)
        dual = self._one(targets)  # (P,)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(checks.finite("targets", _cross_validation(dual, self.measured_ridge)))

    @property
    def measured_ridge(self) -> float:
        """Effective ridge per sample as one data set shows it,  κ̂ = 1/tr(K_XX + T)⁻¹.

        It estimates, without the λ_k, the κ of  P = T/κ + Σ_k λ_k/(λ_k + κ).
        """
        return float(checks.finite("gram", 1 / self._inverse_diagonal.sum()))


def _cross_validation(weights, kappa):
    """Generalized cross-validation  (κ̂P)² ⟨α²⟩  (...) of weights (..., P): T cancels, so that it may be zero."""
    return (kappa * weights.shape[-1]) ** 2 * (weights**2).mean(axis=-1)


def _regressed(kernel, y, t):
    """α (m, P) at ridges t (m,), and (3, m): training error, κ̂ and cross-validation; from one eigendecomposition."""
    values, axes = eigh(kernel)  # (P,), (P, P)
    if values[0] < -1e-10 * values[-1]:
        checks.fail("gram", "be positive semidefinite", f"lowest eigenvalue {values[0]:.3g}")
    values = values.clip(0)  # (P,)  negative ones are rounding
    if not _data.sound(values[0] + t.min(), values[-1] + t.min()):
        wanted = f"be at least {values[-1] / _data.LARGEST_CONDITION:.2g}, or be lost in the rounding of this kernel"
        checks.fail("ridges", wanted, f"a smallest of {t.min():.3g}")
    inverse = 1 / (values + t[:, None])  # (m, P)
    weights, kappa = (inverse * (axes.T @ y)) @ axes.T, 1 / inverse.sum(axis=1)  # (m, P), (m,)
    return weights, (t**2 * (weights**2).mean(axis=1), kappa, _cross_validation(weights, kappa))

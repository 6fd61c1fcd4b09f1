"""A least-squares problem y ≈ Wx as stochastic linear learning sees it: PCA basis, optimum, and minibatch moments.

A minibatch of m samples has S = <x xᵀ>, C = <y xᵀ>, all N have A (Σ_xx in han2021, eqs. (2.1) to (2.7)) and the optimum
W₀; the gradient noise is ξ = C - W₀S = <r xᵀ>, r = y - W₀x.  All matrices over inputs are in the PCA basis, the
eigenvectors of A (not centred), without directions that no input has.  Minibatches hold distinct samples by default.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fluctuations import regression_formulas

# Eigenvalues of A below this part of the largest count as zero: rounding leaves 1e-28, images have some of 1e-10.
RANGE = 1e-20
ROUNDING = 1e-13  # residuals below this part of an output's targets are zero: the fit is exact
LARGEST = 1e30  # eighth powers must stay below overflow, and those of the inverse above underflow


@dataclass(frozen=True, eq=False)
class Regression:
    """A least-squares problem in the PCA basis: N samples, d inputs of which n directions are seen, p outputs."""

    inputs: np.ndarray  # (N, n)  rotated samples, x = basis @ z
    targets: np.ndarray  # (N, p)
    eigenvalues: np.ndarray  # (n,)  of A, descending, > 0
    basis: np.ndarray  # (d, n)  eigenvectors of A, in columns
    optimum: np.ndarray  # (p, n)  W₀ in the PCA basis; optimum @ basis.T is the solution of smallest norm
    residuals: np.ndarray  # (N, p)  r = y - W₀x

    @property
    def moment(self):
        """A = <x xᵀ>, array (d, d), in the basis of the inputs."""
        return self.basis * self.eigenvalues @ self.basis.T

    @property
    def cross_moment(self):
        """C = <y xᵀ>, array (p, d), in the basis of the inputs."""
        return self.optimum * self.eigenvalues @ self.basis.T


def fit(inputs, targets):
    """The least-squares problem of a data set: PCA basis, optimum  W₀ = Σ_yx Σ_xx⁻¹, residuals.

    Eqs. (2.1) to (2.3), not the order of indices below (2.5).  The residuals of an output that is fitted exactly, up to
    rounding, are zero.  `inputs` (N, d), `targets` (N, p), N >= 2.  Returns a
    Regression.

    >>> fit([[3.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [[3.0], [1.0], [3.0]]).eigenvalues.round(4).tolist()
    [3.0, 0.6667]
    """
    inputs = checks.array("inputs", inputs, ndim=2)  # (N, d)
    if inputs.shape[0] < 2 or inputs.shape[1] == 0:
        checks.fail("inputs", "hold at least 2 samples of at least one input", f"shape {inputs.shape}")
    if not 1 / LARGEST < np.abs(inputs).max() < LARGEST:
        checks.fail("inputs", f"have a largest entry from {1 / LARGEST:g} to {LARGEST:g}", f"{np.abs(inputs).max():g}")
    targets = checks.entries("targets", targets, at_least=-LARGEST, at_most=LARGEST, ndim=2)  # (N, p)
    if len(targets) != len(inputs) or targets.size == 0:
        checks.fail("targets", f"hold {len(inputs)} rows of at least one output", f"shape {targets.shape}")
    scores, scale, basis = np.linalg.svd(inputs, full_matrices=False)  # (N, min), (min,), (min, d)
    seen = scale**2 > RANGE * scale[0] ** 2  # (min,)
    scores, scale, basis = scores[:, seen], scale[seen], basis[seen].T  # (N, n), (n,), (d, n)
    fitted = targets.T @ scores  # (p, n)
    residuals = targets - scores @ fitted.T  # (N, p)
    residuals[:, np.abs(residuals).max(axis=0) <= ROUNDING * np.linalg.norm(targets, axis=0)] = 0.0
    return Regression(scores * scale, targets, scale**2 / len(inputs), basis, fitted / scale, residuals)


def checked_problem(problem):
    """Return `problem`, if it is a Regression.

    >>> checked_problem(fit([[3.0], [1.0]], [[3.0], [0.0]])).optimum.round(12).tolist()
    [[0.9]]
    """
    return checks.instance("problem", problem, Regression, "as regression.fit returns it")


def in_input_basis(problem, matrix):
    """A `matrix` (n, n) of the PCA basis of a `problem` in the basis of the inputs:  U M Uᵀ.  Returns (d, d).

    >>> problem = fit([[0.0, 1.0], [2.0, 0.0]], [[1.0], [1.0]])
    >>> in_input_basis(problem, np.diag(problem.eigenvalues)).round(12).tolist()
    [[2.0, 0.0], [0.0, 0.5]]
    """
    size = len(checked_problem(problem).eigenvalues)
    return problem.basis @ checks.array("matrix", matrix, shape=(size, size)) @ problem.basis.T


def in_pca_basis(problem, matrix):
    """A `matrix` (d, d) over inputs in the PCA basis of a `problem`, seen directions only:  Uᵀ M U.  Returns (n, n).

    >>> problem = fit([[0.0, 1.0], [2.0, 0.0]], [[1.0], [1.0]])
    >>> in_pca_basis(problem, problem.moment).round(12).tolist()
    [[2.0, 0.0], [0.0, 0.5]]
    """
    size = len(checked_problem(problem).basis)
    return problem.basis.T @ checks.array("matrix", matrix, shape=(size, size)) @ problem.basis


def batch_variance(samples, batch, replacement=False):
    """Variance of a minibatch mean over that of one sample:  c = 1/m, or (N - m)/(m(N - 1)) for distinct samples.

    `samples`: N >= 2; `batch`: m, <= N without `replacement`, where no sample occurs twice.  Returns c, 0 to 1.

    >>> batch_variance(5, 2), batch_variance(5, 5), batch_variance(5, 2, replacement=True)
    (0.375, 0.0, 0.5)
    """
    samples, batch = checks.integer("samples", samples, at_least=2), checks.integer("batch", batch)
    if checks.boolean("replacement", replacement):
        return 1 / batch
    checks.fail_if(batch > samples, "batch", f"be at most N = {samples} without replacement", batch)
    return (samples - batch) / (batch * (samples - 1))


def fourth_moment(problem, matrix):
    """The fourth-moment map  F[G] = <(xᵀGx) x xᵀ>  over the full batch, dropped between eqs. (2.7) and (2.8).

    `problem`: Regression; `matrix` (n, n): G, symmetric, in the PCA basis.  Returns (n, n), symmetric.

    >>> float(fourth_moment(fit([[1.0], [2.0]], [[0.0], [1.0]]), [[1.0]]).round(12)[0, 0])
    8.5
    """
    matrix = regression_formulas.in_modes("matrix", matrix, checked_problem(problem))  # (n, n)
    return regression_formulas.fourth(problem.inputs, matrix)


def sandwich_moment(problem, matrix, batch, *, replacement=False):
    """Average of  S G S  over the minibatches:  E[SGS] = AGA + c(F[G] - AGA),  S the moment of one minibatch.

    `problem`: Regression; `matrix` (n, n): G; `batch`, `replacement`: as in :func:`batch_variance`.  Returns (n, n).

    >>> float(sandwich_moment(fit([[1.0], [2.0]], [[0.0], [1.0]]), [[1.0]], 1).round(12)[0, 0])  # S is 1 or 4
    8.5
    """
    variance = batch_variance(len(checked_problem(problem).inputs), batch, replacement)
    matrix = regression_formulas.in_modes("matrix", matrix, problem)  # (n, n)
    return regression_formulas.sandwich(problem, matrix, variance)


def noise_moment(problem, batch, *, replacement=False, pair=None):
    """Noise of one step:  D = E[ξᵀξ] = (c/N) Σ_α |r_α|² x_α x_αᵀ  with  ξ = C̄ - W₀S̄ = <r xᵀ> over a minibatch.

    Eq. (3.4) at q = 0, and (B1) for a `pair` (i, k) of outputs, r_i r_k for |r|².  `problem`: Regression; `batch`,
    `replacement`: as in :func:`batch_variance`.  Returns (n, n), symmetric, in the PCA basis.

    >>> noise_moment(fit([[1.0], [1.0]], [[0.0], [2.0]]), 1).round(12)  # W₀ = 1, residuals -1 and 1
    array([[1.]])
    """
    variance = batch_variance(len(checked_problem(problem).inputs), batch, replacement)
    return regression_formulas.noise(problem, variance, pair)


def unprimed_noise_moment(problem, batch, *, replacement=False):
    """What D becomes if -W₀S̄ is left out of the noise, as eq. (B1) prints it:  E[C̄ᵀC̄] = c(<|y|² x xᵀ> - CᵀC).

    `problem`: Regression; `batch`, `replacement`: as in :func:`batch_variance`.  Returns (n, n), in the PCA basis.

    >>> unprimed_noise_moment(fit([[1.0], [2.0]], [[1.0], [2.0]]), 1).round(12)  # a perfect fit has no noise
    array([[2.25]])
    """
    variance = batch_variance(len(checked_problem(problem).inputs), batch, replacement)
    cross = problem.optimum * problem.eigenvalues  # (p, n)
    square = regression_formulas.weighted(problem.inputs, (problem.targets**2).sum(axis=1))  # (n, n)
    return variance * (square - cross.T @ cross)

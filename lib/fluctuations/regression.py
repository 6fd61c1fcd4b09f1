r"""A least-squares problem y ≈ Wx as stochastic linear learning sees it: PCA basis, optimum, and minibatch moments.

A minibatch of m samples has the moments  S = <x xᵀ>  and  C = <y xᵀ>; the full batch of N has A and the least-squares
optimum W₀. The gradient noise of a minibatch is  ξ = C - W₀S, the average of r xᵀ with the residual r = y - W₀x.
Numbered equations: han2021, where A is Σ_xx (eqs. (2.1) to (2.7)).

All matrices over inputs are given in the PCA basis of the data, the eigenvectors of A (not centred).  There A is
diagonal, the leading order is elementwise, and the directions that no input has, in which W never moves, are absent.
:func:`in_input_basis` leads back.  Minibatches are drawn "without replacement" (distinct samples, as in the source)
unless said otherwise.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fluctuations import regression_formulas

# Eigenvalues of A below this part of the largest count as zero: rounding leaves 1e-28, images have some of 1e-10.
RANGE = 1e-20
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
    r"""The least-squares problem of a data set: PCA basis, optimum  W₀ = Σ_yx Σ_xx⁻¹, residuals.

    Eqs. (2.1) to (2.3); below eq. (2.5) the text has the indices of Σ_yx in the other order.  A singular value
    decomposition keeps the digits that forming A would lose.

    Parameters
    ----------
    inputs : array (N, d)      one sample a row; N >= 2
    targets : array (N, p)     one target a row

    Returns
    -------
    Regression

    Examples
    --------
    >>> problem = fit([[3.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [[3.0], [1.0], [3.0]])
    >>> problem.eigenvalues.round(12).tolist(), (problem.optimum @ problem.basis.T).round(12).tolist()
    ([3.0, 0.666666666667], [[1.0, 2.0]])
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
    return Regression(scores * scale, targets, scale**2 / len(inputs), basis, fitted / scale, residuals)


def checked_problem(problem):
    """`problem`, if it is a :class:`Regression`.

    Parameters
    ----------
    problem : Regression

    Returns
    -------
    Regression

    Examples
    --------
    >>> problem = fit([[3.0], [1.0]], [[3.0], [0.0]])
    >>> checked_problem(problem) is problem
    True
    """
    return checks.instance("problem", problem, Regression, "as regression.fit returns it")


def in_input_basis(problem, matrix):
    r"""A matrix of the PCA basis in the basis of the inputs:  U M Uᵀ.

    The source's matrices over pixels (figure 2) are of this kind.

    Parameters
    ----------
    problem : Regression
    matrix : array (n, n)      in the PCA basis; symmetric or not

    Returns
    -------
    array (d, d)

    Examples
    --------
    >>> problem = fit([[0.0, 1.0], [2.0, 0.0]], [[1.0], [1.0]])
    >>> in_input_basis(problem, np.diag(problem.eigenvalues)).round(12).tolist()
    [[2.0, 0.0], [0.0, 0.5]]
    """
    size = len(checked_problem(problem).eigenvalues)
    return problem.basis @ checks.array("matrix", matrix, shape=(size, size)) @ problem.basis.T


def in_pca_basis(problem, matrix):
    r"""A matrix of the basis of the inputs in the PCA basis, where all others of this library are:  Uᵀ M U.

    It undoes :func:`in_input_basis`; what the matrix says of directions that no input has is lost.

    Parameters
    ----------
    problem : Regression
    matrix : array (d, d)      in the basis of the inputs; symmetric or not

    Returns
    -------
    array (n, n)

    Examples
    --------
    >>> problem = fit([[0.0, 1.0], [2.0, 0.0]], [[1.0], [1.0]])
    >>> in_pca_basis(problem, problem.moment).round(12).tolist()
    [[2.0, 0.0], [0.0, 0.5]]
    """
    size = len(checked_problem(problem).basis)
    return problem.basis.T @ checks.array("matrix", matrix, shape=(size, size)) @ problem.basis


def batch_variance(samples, batch, replacement=False):
    r"""Variance of a minibatch mean over that of one sample:  c = 1/m, or (N - m)/(m(N - 1)) for distinct samples.

    The factor in front of every noise moment, as of D in eq. (3.4); not written there.

    Parameters
    ----------
    samples : int              N; >= 2
    batch : int                m; >= 1, and <= N without replacement
    replacement : bool         whether a sample may occur twice in one minibatch

    Returns
    -------
    float                      c, from 0 (the full batch) to 1

    Examples
    --------
    >>> batch_variance(5, 2), batch_variance(5, 5), batch_variance(5, 2, replacement=True)
    (0.375, 0.0, 0.5)
    """
    samples, batch = checks.integer("samples", samples, at_least=2), checks.integer("batch", batch)
    if checks.boolean("replacement", replacement):
        return 1 / batch
    if batch > samples:
        checks.fail("batch", f"be at most N = {samples} without replacement", batch)
    return (samples - batch) / (batch * (samples - 1))


def fourth_moment(problem, matrix):
    r"""The fourth-moment map  F[G] = <(xᵀGx) x xᵀ>  over the full batch.

    It carries the multiplicative noise that the source drops between eqs. (2.7) and (2.8).

    Parameters
    ----------
    problem : Regression
    matrix : array (n, n)      G, symmetric, in the PCA basis

    Returns
    -------
    array (n, n)               symmetric; positive semidefinite if G is

    Examples
    --------
    >>> float(fourth_moment(fit([[1.0], [2.0]], [[0.0], [1.0]]), [[1.0]]).round(12)[0, 0])
    8.5
    """
    matrix = regression_formulas.in_modes("matrix", matrix, checked_problem(problem))  # (n, n)
    return regression_formulas.fourth(problem.inputs, matrix)


def sandwich_moment(problem, matrix, batch, *, replacement=False):
    r"""Average of  S G S  over the minibatches:  E[SGS] = AGA + c(F[G] - AGA).

    S is the minibatch moment of eq. (3.2).

    Parameters
    ----------
    problem : Regression
    matrix : array (n, n)      G, symmetric, in the PCA basis
    batch, replacement : int, bool    as in :func:`batch_variance`

    Returns
    -------
    array (n, n)               symmetric

    Examples
    --------
    >>> problem = fit([[1.0], [2.0]], [[0.0], [1.0]])  # with m = 1, S is 1 or 4
    >>> float(sandwich_moment(problem, [[1.0]], 1).round(12)[0, 0])
    8.5
    """
    variance = batch_variance(len(checked_problem(problem).inputs), batch, replacement)
    matrix = regression_formulas.in_modes("matrix", matrix, problem)  # (n, n)
    return regression_formulas.sandwich(problem, matrix, variance)


def noise_moment(problem, batch, *, replacement=False, pair=None):
    r"""Noise of one step:  D = E[ξᵀξ] = (c/N) Σ_α |r_α|² x_α x_αᵀ  with  ξ = C̄ - W₀S̄ = <r xᵀ> over a minibatch.

    Eq. (3.4) at q = 0, and (B1) for a pair of outputs (with r_i r_k for |r|²).

    Parameters
    ----------
    problem : Regression
    batch, replacement : int, bool    as in :func:`batch_variance`
    pair : tuple (i, k), optional        two outputs, from 0; default: the sum over i = k

    Returns
    -------
    array (n, n)                         symmetric, in the PCA basis

    Examples
    --------
    >>> problem = fit([[1.0], [1.0]], [[0.0], [2.0]])  # W₀ = 1, residuals -1 and 1
    >>> float(noise_moment(problem, 1).round(12)[0, 0]), float(noise_moment(problem, 2)[0, 0])
    (1.0, 0.0)
    """
    variance = batch_variance(len(checked_problem(problem).inputs), batch, replacement)
    return regression_formulas.noise(problem, variance, pair)


def unprimed_noise_moment(problem, batch, *, replacement=False):
    r"""What D becomes if -W₀S̄ is left out of the noise:  E[C̄ᵀC̄] = c(<|y|² x xᵀ> - CᵀC).

    The unprimed form is printed in eq. (B1); it is not the noise that drives V.

    Parameters
    ----------
    problem : Regression
    batch, replacement : int, bool    as in :func:`batch_variance`

    Returns
    -------
    array (n, n)               symmetric, in the PCA basis

    Examples
    --------
    >>> problem = fit([[1.0], [2.0]], [[1.0], [2.0]])  # a perfect fit has no noise; the unprimed form has
    >>> float(noise_moment(problem, 1).round(12)[0, 0]), float(unprimed_noise_moment(problem, 1).round(12)[0, 0])
    (0.0, 2.25)
    """
    variance = batch_variance(len(checked_problem(problem).inputs), batch, replacement)
    cross = problem.optimum * problem.eigenvalues  # (p, n)
    square = regression_formulas.weighted(problem.inputs, (problem.targets**2).sum(axis=1))  # (n, n)
    return variance * (square - cross.T @ cross)

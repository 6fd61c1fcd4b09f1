"""A least-squares problem y ≈ Wx in the PCA basis of its inputs, and averages over all its minibatches, exact.

A minibatch of m samples has S = <x xᵀ>, all N have A (Σ_xx in han2021, eqs. (2.1) to (2.7)) and the optimum
W₀ = <y xᵀ> A⁻¹; the gradient noise is ξ = <r xᵀ> over the minibatch, r = y - W₀x.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.common.linalg import largest, slices
from lib.common.shapes import Array, ArrayLike
from lib.fluctuations import _sums

ROUNDING = 1e-13  # residuals below this part of an output's targets are zero: the fit is exact


@dataclass(frozen=True, eq=False)
class Regression:
    """A least-squares problem in the PCA basis: N samples, d inputs of which n directions are seen, p outputs.

    Made by :func:`fit`.  Its methods average over minibatches of `batch` samples (m >= 1), by default distinct ones
    (then m <= N); with `replacement` a sample may occur twice.  Matrices over inputs are in the PCA basis: the
    eigenvectors of A (not centred), without directions that no input has.  Exceptions, in the basis of the inputs:
    `moment` (d, d), `cross_moment` (p, d) and the rows of `basis`; ``in_pca_basis`` and ``in_input_basis`` lead from
    one to the other, ``optimum @ basis.T`` leads back.

    Parameters
    ----------
    inputs, targets : ndarray (N, n), (N, p)
        Rotated samples, x = basis @ z, and their targets.
    eigenvalues : ndarray (n,)
        Those of A, λ > 0, descending.
    basis : ndarray (d, n)
        Eigenvectors of A, in columns.
    optimum : ndarray (p, n)
        W₀; over the inputs, ``optimum @ basis.T``, the solution of smallest norm.
    residuals : ndarray (N, p)
        r = y - W₀x.

    Examples
    --------
    >>> fit([[3.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [[3.0], [1.0], [3.0]]).moment.round(4).tolist()
    [[3.0, 0.0], [0.0, 0.6667]]
    """

    inputs: Array["N n"]
    targets: Array["N p"]
    eigenvalues: Array[" n"]
    basis: Array["d n"]
    optimum: Array["p n"]
    residuals: Array["N p"]

    @property
    def moment(self) -> Array["d d"]:
        """A = <x xᵀ>, in the basis of the inputs."""
        return self.basis * self.eigenvalues @ self.basis.T

    @property
    def cross_moment(self) -> Array["p d"]:
        """The average <y xᵀ>, in the basis of the inputs."""
        return self.optimum * self.eigenvalues @ self.basis.T

    def in_input_basis(self, matrix: ArrayLike) -> Array["d d"]:
        """A matrix of the PCA basis in the basis of the inputs:  U M Uᵀ.

        Parameters
        ----------
        matrix : array_like (n, n)

        Returns
        -------
        ndarray (d, d)

        Examples
        --------
        >>> problem = fit([[0.0, 1.0], [2.0, 0.0]], [[1.0], [1.0]])
        >>> problem.in_input_basis(np.diag(problem.eigenvalues)).round(12).tolist()
        [[2.0, 0.0], [0.0, 0.5]]
        """
        size = len(self.eigenvalues)
        return self.basis @ checks.array("matrix", matrix, shape=(size, size)) @ self.basis.T

    def in_pca_basis(self, matrix: ArrayLike) -> Array["n n"]:
        """A matrix over the inputs in the PCA basis, seen directions only:  Uᵀ M U.

        Parameters
        ----------
        matrix : array_like (d, d)

        Returns
        -------
        ndarray (n, n)

        Examples
        --------
        >>> problem = fit([[0.0, 1.0], [2.0, 0.0]], [[1.0], [1.0]])
        >>> problem.in_pca_basis(problem.moment).round(12).tolist()
        [[2.0, 0.0], [0.0, 0.5]]
        """
        size = len(self.basis)
        return self.basis.T @ checks.array("matrix", matrix, shape=(size, size)) @ self.basis

    def batch_variance(self, batch: int, replacement: bool = False) -> float:
        """Variance of a minibatch mean over that of one sample:  c = 1/m, or (N - m)/(m(N - 1)) for distinct samples.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        float
            c, from 0 (the full batch) to 1.

        Examples
        --------
        >>> five = fit(np.ones((5, 1)), np.zeros((5, 1)))
        >>> five.batch_variance(2), five.batch_variance(5), five.batch_variance(2, replacement=True)
        (0.375, 0.0, 0.5)
        """
        return _sums.batch_variance(len(self.inputs), batch, replacement)

    def _read(self, name, value):
        """A symmetric matrix in the PCA basis; one over the inputs is refused, where its size shows it."""
        inputs, size = self.basis.shape
        if inputs != size and np.shape(value) == (inputs, inputs):
            wanted = f"be in the PCA basis, where the data have {size} of {inputs} directions: pass"
            checks.fail(name, f"{wanted} problem.in_pca_basis({name})", f"shape ({inputs}, {inputs})")
        return checks.symmetric(name, value, size=size)

    def fourth_moment(self, matrix: ArrayLike) -> Array["n n"]:
        """The fourth-moment map  F[G] = <(xᵀGx) x xᵀ>  over all samples, dropped between eqs. (2.7) and (2.8).

        Parameters
        ----------
        matrix : array_like (n, n)
            G, symmetric.

        Returns
        -------
        ndarray (n, n)
            Symmetric.

        Examples
        --------
        >>> fit([[1.0], [2.0]], [[0.0], [1.0]]).fourth_moment([[1.0]]).round(12)  # <x⁴>
        array([[8.5]])
        """
        return _sums.fourth(self.inputs, self._read("matrix", matrix))

    def _sandwich(self, matrix, variance):
        square, fourth = np.outer(self.eigenvalues, self.eigenvalues), _sums.fourth(self.inputs, matrix)  # (n, n) each
        return (1 - variance) * square * matrix + variance * fourth

    def sandwich_moment(self, matrix: ArrayLike, batch: int, *, replacement: bool = False) -> Array["n n"]:
        """Average of  S G S  over the minibatches:  E[SGS] = AGA + c(F[G] - AGA).

        Parameters
        ----------
        matrix : array_like (n, n)
            G, symmetric.
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        ndarray (n, n)
            Symmetric.

        Examples
        --------
        >>> fit([[1.0], [2.0]], [[0.0], [1.0]]).sandwich_moment([[1.0]], 1).round(12)  # S is 1 or 4
        array([[8.5]])
        """
        variance = self.batch_variance(batch, replacement)
        return self._sandwich(self._read("matrix", matrix), variance)

    def _check_pair(self, pair):
        kind, outputs = (int, np.integer), self.residuals.shape[1]
        good = isinstance(pair, tuple) and len(pair) == 2 and not any(isinstance(i, bool) for i in pair)
        if not good or not all(isinstance(i, kind) and 0 <= i < outputs for i in pair):
            checks.fail("pair", f"be a tuple of two outputs, integers from 0 to {outputs - 1}", pair)

    def noise_moment(
        self, batch: int, *, replacement: bool = False, pair: tuple[int, int] | None = None
    ) -> Array["n n"]:
        """Noise of one step:  D = E[ξᵀξ] = (c/N) Σ_α |r_α|² x_α x_αᵀ,  eq. (3.4) at q = 0.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.
        pair : tuple (i, j), optional
            Two outputs from 0 to p - 1: E[ξ_iᵀ ξ_k], with r_i r_k for |r|², eq. (B1).

        Returns
        -------
        ndarray (n, n)
            Symmetric.

        Examples
        --------
        >>> fit([[1.0], [1.0]], [[0.0], [2.0]]).noise_moment(1).round(12)  # W₀ = 1, residuals -1 and 1
        array([[1.]])
        """
        variance = self.batch_variance(batch, replacement)
        if pair is None:
            return variance * _sums.weighted(self.inputs, (self.residuals**2).sum(axis=1))
        self._check_pair(pair)
        return variance * _sums.weighted(self.inputs, self.residuals[:, pair[0]] * self.residuals[:, pair[1]])

    def noise_tensor(self, batch: int, *, replacement: bool = False) -> Array["pn pn"]:
        """Noise of one step with all pairs of outputs, eq. (B1):  (c/N) Σ_α (r_α ⊗ x_α)(r_α ⊗ x_α)ᵀ.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        ndarray (p n, p n)
            Blocks D_ik; outputs first.

        Examples
        --------
        >>> problem = fit([[1.0], [1.0]], [[0.0, 1.0], [2.0, -1.0]])
        >>> problem.noise_tensor(1).round(12).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
        """
        variance = self.batch_variance(batch, replacement)
        size = self.inputs.shape[1] * self.residuals.shape[1]
        total = np.zeros((size, size))  # (p n, p n)
        for piece in slices(len(self.inputs), size):
            gradients = (self.residuals[piece, :, None] * self.inputs[piece, None, :]).reshape(-1, size)  # (rows, p n)
            total += gradients.T @ gradients
        return variance * total / len(self.inputs)

    def unprimed_noise_moment(self, batch: int, *, replacement: bool = False) -> Array["n n"]:
        """What D becomes if -W₀S̄ is left out of the noise, as eq. (B1) prints it:  c(<|y|² x xᵀ> - <y xᵀ>ᵀ<y xᵀ>).

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        ndarray (n, n)
            Symmetric.

        Examples
        --------
        >>> problem = fit([[1.0], [2.0]], [[1.0], [2.0]])  # a perfect fit has no noise
        >>> problem.unprimed_noise_moment(1).round(12)
        array([[2.25]])
        """
        variance = self.batch_variance(batch, replacement)
        cross = self.optimum * self.eigenvalues  # (p, n)
        square = _sums.weighted(self.inputs, (self.targets**2).sum(axis=1))  # (n, n)
        return variance * (square - cross.T @ cross)

    def learning_rate_threshold(self, batch: int, *, replacement: bool = False) -> float:
        """The learning rate ε_max at which the stationary covariance of descent diverges.

        1/ε_max is the largest eigenvalue of  E[S·S]  against A· + ·A;  ε_max <= 2/λ_max, where the mean diverges.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        float
            ε_max > 0.

        Examples
        --------
        >>> problem = fit([[1.0], [2.0]], [[0.0], [1.0]])
        >>> round(problem.learning_rate_threshold(1), 12)  # 2 E[S] / E[S²]
        0.588235294118
        """
        variance = self.batch_variance(batch, replacement)
        flow = np.add.outer(self.eigenvalues, self.eigenvalues)  # (n, n)
        return 1 / largest(lambda matrix: self._sandwich(matrix, variance), flow)

    def sufficient_learning_rate(self, batch: int, *, replacement: bool = False) -> float:
        """A learning rate below which the stationary covariance surely exists:  2 / λ_max(A⁻¹ E[S²]) <= ε_max.

        It costs much less than the threshold.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        float

        Examples
        --------
        >>> problem = fit([[1.0, 0.0], [0.0, 2.0]], [[0.0], [1.0]])
        >>> round(problem.sufficient_learning_rate(1), 12)
        0.5
        """
        variance = self.batch_variance(batch, replacement)
        whiten = 1 / np.sqrt(self.eigenvalues)  # (n,)
        squared = whiten[:, None] * self._sandwich(np.eye(len(whiten)), variance) * whiten  # (n, n)
        last = len(whiten) - 1
        return 2 / float(eigh(squared, eigvals_only=True, subset_by_index=[last, last])[0])

    def expected_fluctuation(self, batch: int, *, replacement: bool = False) -> float:
        """Root mean square of  ‖S - A‖ / ‖A‖  over the minibatches (figure 1):  [c (<|x|⁴> / ‖A‖² - 1)]^{1/2}.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        float

        Examples
        --------
        >>> round(fit([[1.0], [2.0]], [[0.0], [1.0]]).expected_fluctuation(1), 12)  # S = 1, 4; A = 2.5
        0.6
        """
        variance = self.batch_variance(batch, replacement)
        squares, lam = self.inputs**2, self.eigenvalues  # (N, n), (n,)
        # ‖x xᵀ - A‖² entry by entry: of one input of constant size nothing is left, and no root of rounding.
        apart = squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1) + ((squares - lam) ** 2).sum(axis=1)  # (N,)
        return float(np.sqrt(variance * max(apart.mean(), 0.0)) / np.linalg.norm(lam))

    def correlation_floor(self, batch: int, steps: int, *, replacement: bool = False) -> float:
        """Size of  ‖D(q)‖ / ‖D(0)‖  at q > 0 for independent minibatches, all sampling noise:  (Tr D'²/T)^{1/2} / ‖D‖.

        D' = E[ξξᵀ] = (c/N) Σ_α |x_α|² r_α r_αᵀ;  D(q) is what ``minibatches.noise_correlation`` measures.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.
        steps : int
            T, the length of the series.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If there is no gradient noise, D = 0.

        Examples
        --------
        >>> round(fit([[1.0], [1.0]], [[0.0], [2.0]]).correlation_floor(1, 100), 12)
        0.1
        """
        variance = self.batch_variance(batch, replacement)
        strength = np.linalg.norm(self.noise_moment(batch, replacement=replacement))
        checks.fail_if(strength == 0, "batch", "leave some gradient noise", batch)
        between = variance * _sums.weighted(self.residuals, (self.inputs**2).sum(axis=1))  # (p, p)
        return float(np.linalg.norm(between) / np.sqrt(checks.integer("steps", steps)) / strength)


def fit(inputs: ArrayLike, targets: ArrayLike) -> Regression:
    """The least-squares problem of a data set: PCA basis, optimum  W₀ = Σ_yx Σ_xx⁻¹, residuals.

    Eqs. (2.1) to (2.3) of han2021, not the order of indices below (2.5).  The residuals of an output that is fitted
    exactly, up to rounding, are zero.

    Parameters
    ----------
    inputs, targets : array_like (N, d), (N, p)
        One row a sample, N >= 2, in any units and of any rank; targets (N,) are those of one output.

    Returns
    -------
    Regression

    Examples
    --------
    >>> fit([[3.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [[3.0], [1.0], [3.0]]).eigenvalues.round(4).tolist()
    [3.0, 0.6667]
    """
    inputs = checks.array("inputs", inputs, ndim=2)  # (N, d)
    if inputs.shape[0] < 2 or inputs.shape[1] == 0:
        checks.fail("inputs", "hold at least 2 samples of at least one input", f"shape {inputs.shape}")
    _sums.refuse_extreme(inputs)
    targets = checks.array("targets", targets)
    targets = targets[:, None] if targets.ndim == 1 else targets
    targets = checks.entries("targets", targets, at_least=-_sums.LARGEST, at_most=_sums.LARGEST, ndim=2)  # (N, p)
    if len(targets) != len(inputs) or targets.size == 0:
        checks.fail("targets", f"hold {len(inputs)} rows of at least one output", f"shape {targets.shape}")
    scores, scale, basis = np.linalg.svd(inputs, full_matrices=False)  # (N, min), (min,), (min, d)
    seen = scale**2 > _sums.RANGE * scale[0] ** 2  # (min,)
    scores, scale, basis = scores[:, seen], scale[seen], basis[seen].T  # (N, n), (n,), (d, n)
    fitted = targets.T @ scores  # (p, n)
    residuals = targets - scores @ fitted.T  # (N, p)
    residuals[:, np.abs(residuals).max(axis=0) <= ROUNDING * np.linalg.norm(targets, axis=0)] = 0.0
    return Regression(scores * scale, targets, scale**2 / len(inputs), basis, fitted / scale, residuals)

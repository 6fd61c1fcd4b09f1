"""A linear student that trains some of its weights, which belong to any basis: frozen inputs correlate with trained.

The covariance Σ is cut into the blocks Σ̃ (trained), Σ̂ (frozen) and Σ_× between them.  What regression on the trained
inputs cannot tell of the others stays as an error,  ε_∞ = (1+σ_J²)/(2N) Tr(Σ̂ - Σ_×ᵀ Σ̃⁻¹ Σ_×),  and the same
regression turns descent into that of :mod:`lib.scaling.feature_scaling`.  Source: worschech2024, eqs. (82) to (88).
"""

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.optimize import brentq

from lib.common import checks
from lib.scaling import _arguments


def schur_floors(covariance, *, student_variance=0.0):
    """Error that is left at small learning rate when the first N_l weights of any basis are trained, for all N_l.

    With  Σ = C Cᵀ  (Cholesky) the trace of the Schur complement is  Σ_{a≥j>N_l} C_aj².  `covariance` (N, N): Σ,
    positive definite; `student_variance`: σ_J² >= 0.  Returns ε_∞ for N_l = 0, ..., N, (N + 1,); the last is zero.

    >>> schur_floors([[1.0, 0.6], [0.6, 1.0]]).round(6).tolist()  # (1 - 0.36)/4 with one weight
    [0.5, 0.16, 0.0]
    """
    sigma = checks.symmetric("covariance", covariance, definite="strict")  # (N, N)
    columns = (cholesky(sigma, lower=True) ** 2).sum(axis=0)  # (N,)
    tails = np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])  # (N + 1,)
    return _arguments.variance(student_variance) / (2 * len(sigma)) * tails


def decoupled(covariance, trained):
    """The frame in which descent on the first N_l weights of any basis is descent in an eigenbasis, step by step.

    With W = Σ̃⁻¹Σ_× and the eigenvectors U of Σ̃ and V of the Schur complement the inputs (Uᵀξ̃, Vᵀ(ξ̂ - Wᵀξ̃)) are
    independent; D = J - B becomes D' = (Uᵀ(D̃ + WD̂), VᵀD̂), for ``linear_descent.simulate(D @ transform.T, variances,
    η, times, seed, trained=N_l)``.  `covariance` (N, N): Σ, positive definite; `trained`: 1 <= N_l <= N.  Returns
    variances (N,), eigenvalues of Σ̃, then of the Schur complement, each ascending, and T (N, N): D' = T D, Tᵀ
    diag(variances) T = Σ.

    >>> variances, transform = decoupled([[1.0, 0.6], [0.6, 1.0]], 1)
    >>> variances.round(6).tolist(), np.abs(transform).round(6).tolist()
    ([1.0, 0.64], [[1.0, 0.6], [0.0, 1.0]])
    """
    sigma = checks.symmetric("covariance", covariance, definite="strict")  # (N, N)
    trained = _arguments.trained(trained, len(sigma))
    inner, cross = sigma[:trained, :trained], sigma[:trained, trained:]  # (N_l, N_l), (N_l, N - N_l)
    predictor = np.linalg.solve(inner, cross)  # (N_l, N - N_l)
    schur = sigma[trained:, trained:] - cross.T @ predictor  # (N - N_l, N - N_l)
    learned, modes = eigh(inner)  # (N_l,), (N_l, N_l)
    transform = np.zeros_like(sigma)  # (N, N)
    transform[:trained] = np.hstack([modes.T, modes.T @ predictor])
    if trained == len(sigma):
        return learned, transform
    frozen, rest = eigh((schur + schur.T) / 2)  # (N - N_l,), (N - N_l, N - N_l)
    transform[trained:, trained:] = rest.T
    return np.concatenate([learned, frozen]), transform


def random_basis_floor(eigenvalues, trained, *, student_variance=0.0):
    """Error that is left at small η when N_l weights of a random orthogonal basis are trained, for many weights.

    ε_∞ ≃ (1+σ_J²)/(2N) κN_l,  Σ_k λ_k/(λ_k + κ) = N_l,  the average of eq. (88) over bases, where no single component
    dominates what is unexplained.  `eigenvalues` (N,): λ_k > 0 of all components, of any mean; `trained`: 1 <= N_l <=
    N; `student_variance`: σ_J² >= 0.  Returns a float, zero for N_l = N.

    >>> round(random_basis_floor([1.0, 1.0, 1.0, 1.0], 1), 12)  # no direction is special: (1 - N_l/N)/2
    0.375
    """
    lam = _arguments.levels(eigenvalues)  # (N,)
    trained, variance = _arguments.trained(trained, lam.size), _arguments.variance(student_variance)
    if trained == lam.size:
        return 0.0

    def surplus(log_kappa):
        return (lam / (lam + np.exp(log_kappa))).sum() - trained

    # For equal eigenvalues κ is λ(N - N_l)/N_l: the smallest and the largest enclose the root; 1 against rounding.
    spread = np.log([lam.min(), lam.max()]) + np.log((lam.size - trained) / trained)  # (2,)
    kappa = np.exp(brentq(surplus, spread[0] - 1, spread[1] + 1, xtol=1e-13, rtol=1e-14))
    return float(variance * kappa * trained / (2 * lam.size))

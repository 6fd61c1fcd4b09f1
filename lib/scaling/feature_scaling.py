"""A linear student that trains only some of its weights in a basis that is no eigenbasis: what the frozen ones cost.

The covariance Σ has the blocks Σ̃ (trained), Σ̂ (frozen) and Σ_× between them; errors are those of J = 0 at the start
and scale with 1 + σ_J².  Source: worschech2024, eqs. (82) to (88).
"""

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.optimize import brentq

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments


def schur_floors(covariance: ArrayLike) -> Array[" n"]:
    """Error that is left at small learning rate when the first N_l weights of any basis are trained, for all N_l.

    What regression on the trained inputs cannot tell stays,  ε_∞ = 1/(2N) Tr(Σ̂ - Σ_×ᵀ Σ̃⁻¹ Σ_×);  with  Σ = C Cᵀ
    (Cholesky) the trace of this Schur complement is  Σ_{a≥j>N_l} C_aj².  worschech2024 eqs. (82) to (88).

    Parameters
    ----------
    covariance : array_like (N, N)
        Σ, positive definite.

    Returns
    -------
    ndarray (N + 1,)
        ε_∞ for N_l = 0, ..., N; the last is zero.

    Examples
    --------
    >>> schur_floors([[1.0, 0.6], [0.6, 1.0]]).round(6).tolist()  # (1 - 0.36)/4 with one weight
    [0.5, 0.16, 0.0]
    """
    sigma = checks.symmetric("covariance", covariance, definite="strict")  # (N, N)
    columns = (cholesky(sigma, lower=True) ** 2).sum(axis=0)  # (N,)
    return 1 / (2 * len(sigma)) * np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])  # (N + 1,)


def decoupled(covariance: ArrayLike, trained: int) -> tuple[Array[" N"], Array["N N"]]:
    """The frame in which descent on the first N_l weights of any basis is descent in an eigenbasis, step by step.

    With W = Σ̃⁻¹Σ_× and the eigenvectors U of Σ̃ and V of the Schur complement the inputs (Uᵀξ̃, Vᵀ(ξ̂ - Wᵀξ̃)) are
    independent; D = J - B becomes D' = (Uᵀ(D̃ + WD̂), VᵀD̂), for ``linear_descent.simulate(D @ transform.T, variances,
    η, times, rng, trained=N_l)``.

    Parameters
    ----------
    covariance : array_like (N, N)
        Σ, positive definite.
    trained : int
        1 <= N_l <= N.

    Returns
    -------
    variances : ndarray (N,)
        Eigenvalues of Σ̃, then of the Schur complement, each ascending.
    transform : ndarray (N, N)
        T with D' = T D,  Tᵀ diag(variances) T = Σ.

    Examples
    --------
    >>> variances, transform = decoupled([[1.0, 0.6], [0.6, 1.0]], 1)
    >>> variances.round(6).tolist(), np.abs(transform).round(6).tolist()
    ([1.0, 0.64], [[1.0, 0.6], [0.0, 1.0]])
    """
    sigma = checks.symmetric("covariance", covariance, definite="strict")  # (N, N)
    trained = _arguments.trained(checks.integer("trained", trained), len(sigma))
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


def random_basis_floor(spectrum: Spectrum | ArrayLike, trained: int) -> float:
    """Error that is left at small η when N_l weights of a random orthogonal basis are trained, for many weights.

    ε_∞ ≃ κN_l/(2N),  Σ_k m_k λ_k/(λ_k + κ) = N_l,  the average of worschech2024 eq. (88), where no component
    dominates the rest.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 of any mean and whole multiplicities m_k, N = Σ_k m_k.
    trained : int
        1 <= N_l <= N.

    Returns
    -------
    float
        Zero for N_l = N.

    Examples
    --------
    >>> round(random_basis_floor([1.0, 1.0, 1.0, 1.0], 1), 12)  # no direction is special: (1 - N_l/N)/2
    0.375
    """
    spectrum = _arguments.spectrum(spectrum, normalized=False, whole=True)
    lam, size = spectrum.eigenvalues, int(spectrum.dimension)
    trained = _arguments.trained(checks.integer("trained", trained), size)
    if trained == size:
        return 0.0

    def surplus(log_kappa):
        return spectrum.multiplicities @ (lam / (lam + np.exp(log_kappa))) - trained

    # For equal eigenvalues κ is λ(N - N_l)/N_l: the smallest and the largest enclose the root; 1 against rounding.
    spread = np.log([lam.min(), lam.max()]) + np.log((size - trained) / trained)  # (2,)
    kappa = np.exp(brentq(surplus, spread[0] - 1, spread[1] + 1, xtol=1e-13, rtol=1e-14))
    return float(kappa * trained / (2 * size))

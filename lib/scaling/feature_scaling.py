"""A linear student that may train only some of its weights: what the frozen ones cost.

As in :mod:`lib.scaling.linear_student`; in any basis other than the eigenbasis the covariance Σ has the blocks Σ̃
(trained), Σ̂ (frozen) and Σ_× between them.  Source: worschech2024, eqs. (10), (11), (58) to (79) and (82) to (88).
"""

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.optimize import brentq
from scipy.special import gamma, gammaincc

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments, _linear


def error_floor(
    spectrum: Spectrum | ArrayLike, trained: int, learning_rate: float, *, finite: bool = False,
    student_variance: float = 0.0,
) -> float:  # fmt: skip
    """Error that is left at the end at any learning rate: the frozen tail acts as label noise.

    ε_∞(η) = ε_∞(0) / (1 - (η/2) Σ_{k≤N_l} n_kλ_k),  ε_∞(0) = ½(1+σ_J²) Σ_{k>N_l} n_kλ_k,  for N → ∞, and with
    Σ_{k≤N_l} m_k a_k/{2(1 - a_k)},  a_k = ηλ_k/N,  at finite N; η → 0 is worschech2024 eq. (74).

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k; trained ones first.
    trained : int
        How many of the L eigenspaces are trained, 1 <= N_l <= L.
    learning_rate : float
        η >= 0, below the threshold of the trained part.
    finite : bool
        True at N = Σ_k m_k, False for N → ∞ at fixed shares n_k = m_k/N.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

    Returns
    -------
    float

    Examples
    --------
    >>> error_floor([1.5, 0.5], 1, 0.0), round(error_floor([1.5, 0.5], 1, 1.0), 6)
    (0.125, 0.2)
    """
    spectrum = _arguments.spectrum(spectrum)
    trained = _arguments.trained(checks.integer("trained", trained), spectrum.eigenvalues.size)
    rate = checks.number("learning_rate", learning_rate, at_least=0)
    variance = 1 + checks.number("student_variance", student_variance, at_least=0)
    weights = spectrum.eigenvalues * spectrum.shares  # (L,)
    part = rate * spectrum.eigenvalues[:trained] / spectrum.dimension * checks.boolean("finite", finite)  # (N_l,)
    feedback = np.inf if part.max() >= 1 else rate / 2 * (weights[:trained] / (1 - part)).sum()
    if not feedback < 1:
        checks.fail("learning_rate", "be smaller: the error of the trained part grows", learning_rate)
    return float(variance / 2 * weights[trained:].sum() / (1 - feedback))


def tail_floor(
    levels: int, trained: ArrayLike, tail_index: float, *, student_variance: float = 0.0, ends: str = "midpoint"
) -> float | Array["..."]:
    """The floor at small η over a power-law spectrum as an integral:  (1+σ_J²) λ₊/(2βL) (N_l^{-β} - L^{-β}).

    Parameters
    ----------
    levels : int
        L eigenspaces of equal dimensions,  λ_k = λ₊ k^{-(1+β)}  with mean one.
    trained : int or array_like (...)
        How many of them are trained, 1 <= N_l <= L.
    tail_index : float
        β > 0.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.
    ends : {"midpoint", "endpoint"}
        "midpoint" takes N_l + 1/2 and L + 1/2, closer to the sum; "endpoint" is worschech2024 eq. (74).

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> exact = error_floor(Spectrum.power_law(256, decay=1.75).normalized(), 50, 0.0)
    >>> bool(abs(tail_floor(256, 50, 0.75) / exact - 1) < 1e-3)
    True
    """
    levels, beta = _arguments.power_law(levels, tail_index)
    trained = checks.entries("trained", trained, at_least=1, at_most=levels)  # (...)
    shift = 0.5 if checks.one_of("ends", ends, ("midpoint", "endpoint")) == "midpoint" else 0.0
    variance = 1 + checks.number("student_variance", student_variance, at_least=0)
    return checks.plain(variance * _linear.tail(trained, levels, beta, shift))


def best_split(
    budget: ArrayLike, levels: int, tail_index: float, learning_rate: float, *, student_variance: float = 0.0
) -> tuple[float | Array["..."], float | Array["..."]]:
    """How many weights to train at a given product of weights and time, over a power-law spectrum, and the error then.

    With C = N_l α the least error is at  N_l* = (2ηλ₊C/z)^{1/(2+β)},  z = 2ηλ_{N_l}α the only root of  e^{-z} +
    β/((1+β)(2+β)) u = (1+β)/(2+β),  u = z^{-s} Γ(s, z),  s = β/(1+β),  and  ε* = (1+σ_J²) λ₊/(2L) [z^{β/(2+β)} (1/β +
    u/(1+β)) (2ηλ₊C)^{-β/(2+β)} - L^{-β}/β].  For sums that are integrals, 1 ≪ N_l <= L; not in worschech2024.

    Parameters
    ----------
    budget : float or array_like (...)
        C > 0.
    levels : int
        L eigenspaces of equal dimensions,  λ_k = λ₊ k^{-(1+β)}  with mean one.
    tail_index : float
        β > 0.
    learning_rate : float
        η > 0.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

    Returns
    -------
    N_l*, ε* : float or ndarray (...)
        N_l* is no whole number, and refused above L.

    Examples
    --------
    >>> size, error = best_split(1e4, 20000, 0.5, 0.01)
    >>> lam = Spectrum.power_law(20000, decay=1.5).normalized()
    >>> n = round(size)
    >>> flow = lambda n: float(_linear.flow_error([1e4 / n], lam, 0.01, n)[0])
    >>> [round(error / flow(m), 2) for m in (n // 2, n, 2 * n)]
    [0.81, 1.0, 0.87]
    """
    budget = checks.entries("budget", budget, above=0)  # (...)
    levels, beta = _arguments.power_law(levels, tail_index)
    rate, variance = _arguments.learning(learning_rate, student_variance)
    s, top = beta / (1 + beta), _linear.power_law_top(levels, beta)

    def rest(z):
        return z**-s * gamma(s) * gammaincc(s, z)

    def excess(z):
        return np.exp(-z) + s / (2 + beta) * rest(z) - (1 + beta) / (2 + beta)

    z = brentq(excess, 1e-9, 10.0, xtol=1e-14)
    size = (2 * rate * top * budget / z) ** (1 / (2 + beta))  # (...)
    if np.any(size > levels):
        checks.fail("budget", f"ask for no more than the {levels} weights that there are", budget)
    bracket = size**-beta * rest(z) / (1 + beta) + _linear.falling(size, levels, beta)  # (...)
    return checks.plain(size), checks.plain(variance * top / (2 * levels) * bracket)


def schur_floors(covariance: ArrayLike, *, student_variance: float = 0.0) -> Array[" n"]:
    """Error that is left at small learning rate when the first N_l weights of any basis are trained, for all N_l.

    What regression on the trained inputs cannot tell stays,  ε_∞ = (1+σ_J²)/(2N) Tr(Σ̂ - Σ_×ᵀ Σ̃⁻¹ Σ_×);  with  Σ = C Cᵀ
    (Cholesky) the trace of this Schur complement is  Σ_{a≥j>N_l} C_aj².  worschech2024 eqs. (82) to (88).

    Parameters
    ----------
    covariance : array_like (N, N)
        Σ, positive definite.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

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
    variance = 1 + checks.number("student_variance", student_variance, at_least=0)
    columns = (cholesky(sigma, lower=True) ** 2).sum(axis=0)  # (N,)
    return variance / (2 * len(sigma)) * np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])  # (N + 1,)


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


def random_basis_floor(spectrum: Spectrum | ArrayLike, trained: int, *, student_variance: float = 0.0) -> float:
    """Error that is left at small η when N_l weights of a random orthogonal basis are trained, for many weights.

    ε_∞ ≃ (1+σ_J²)/(2N) κN_l,  Σ_k m_k λ_k/(λ_k + κ) = N_l,  the average of worschech2024 eq. (88), where no component
    dominates the rest.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 of any mean and whole multiplicities m_k, N = Σ_k m_k.
    trained : int
        1 <= N_l <= N.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

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
    variance = 1 + checks.number("student_variance", student_variance, at_least=0)
    if trained == size:
        return 0.0

    def surplus(log_kappa):
        return spectrum.multiplicities @ (lam / (lam + np.exp(log_kappa))) - trained

    # For equal eigenvalues κ is λ(N - N_l)/N_l: the smallest and the largest enclose the root; 1 against rounding.
    spread = np.log([lam.min(), lam.max()]) + np.log((size - trained) / trained)  # (2,)
    kappa = np.exp(brentq(surplus, spread[0] - 1, spread[1] + 1, xtol=1e-13, rtol=1e-14))
    return float(variance * kappa * trained / (2 * size))

r"""A linear student that may train only some of its weights: what the frozen ones cost.

Student and teacher as in :mod:`lib.linear_student`, N weights of which the first N_l are trained.  What the trained inputs cannot tell of the
others stays as an error,  ε_∞ = (1+σ_J²)/(2N) Tr(Σ̂ - Σ_×ᵀ Σ̃⁻¹ Σ_×),  the trace of a Schur complement; in the eigenbasis it is the tail of the
spectrum.  Source: 002_ae911d9b73aa1c7d.txt, eqs. (10), (11) and (58) to (88).
"""

import numpy as np
from scipy.linalg import cholesky

from lib import _checks
from lib.linear_student import _modes_between
from lib.spectra import checked_spectrum, power_law


def _variance(student_variance):
    return 1 + _checks.number("student_variance", student_variance, at_least=0)


def _trained(trained, size):
    trained = _checks.integer("trained", trained)
    if trained > size:
        _checks.fail("trained", f"be at most the number of weights, {size}", trained)
    return trained


def generalization_error(alpha, eigenvalues, trained, learning_rate, *, student_variance=0.0):
    r"""Error when the first N_l components in the eigenbasis are trained with a small learning rate.

    ε_g = (1+σ_J²)/(2N) [Σ_{k≤N_l} λ_k e^{-2ηλ_kα} + Σ_{k>N_l} λ_k].  Source: 002_ae911d9b73aa1c7d.txt, eq. (10).

    Parameters
    ----------
    alpha : array (A,)          time, examples / N; >= 0
    eigenvalues : array (N,)    λ_k of every component, the trained ones first; > 0, of mean one
    trained : int               N_l; 1 <= N_l <= N
    learning_rate : float       η; > 0
    student_variance : float    σ_J²; >= 0

    Returns
    -------
    array (A,)

    Raises
    ------
    ValueError                  if an argument is outside its range

    Examples
    --------
    >>> generalization_error([0.0, 1e9], [1.5, 0.5], 1, 0.1).tolist()
    [0.5, 0.125]
    """
    alpha = _checks.entries("alpha", alpha, at_least=0, ndim=1)  # (A,)
    lam, _ = checked_spectrum(eigenvalues)  # (N,)
    trained = _trained(trained, lam.size)
    rate = _checks.number("learning_rate", learning_rate, above=0)
    learned = np.exp(-2 * rate * np.outer(alpha, lam[:trained])) @ lam[:trained]  # (A,)
    return _variance(student_variance) / (2 * lam.size) * (learned + lam[trained:].sum())


def error_floor(eigenvalues, trained, learning_rate, *, student_variance=0.0, multiplicity=None):
    r"""Error that is left at the end at any learning rate: the frozen tail acts as label noise.

    ε_∞(η) = ε_∞(0) / (1 - (η/2) Σ_{k≤N_l} n_kλ_k)  for N -> ∞, and with  Σ m_k (ηλ_k/N)/{2(1 - ηλ_k/N)}  at finite N.
    Source: 002_ae911d9b73aa1c7d.txt, eq. (74), is the limit η -> 0.

    Parameters
    ----------
    eigenvalues : array (L,)            λ_k, the trained ones first; > 0, of mean one
    trained : int                       how many of them are trained; 1 <= trained <= L
    learning_rate : float               η; >= 0, below the stability threshold of the trained part
    student_variance : float            σ_J²; >= 0
    multiplicity : int, optional        m, dimension of each eigenspace, N = mL; default: infinite

    Returns
    -------
    float

    Raises
    ------
    ValueError                          if an argument is outside its range

    Examples
    --------
    >>> error_floor([1.5, 0.5], 1, 0.0), round(error_floor([1.5, 0.5], 1, 1.0), 6)
    (0.125, 0.2)
    """
    lam, _ = checked_spectrum(eigenvalues)  # (L,)
    trained = _trained(trained, lam.size)
    rate = _checks.number("learning_rate", learning_rate, at_least=0)
    share = rate * lam[:trained] / lam.size  # (N_l,)
    if multiplicity is None:
        feedback = share.sum() / 2
    else:
        count = _checks.integer("multiplicity", multiplicity)
        with np.errstate(divide="ignore"):
            feedback = np.inf if share.max() >= count else (share / (1 - share / count)).sum() / 2
    if not feedback < 1:
        _checks.fail("learning_rate", "be smaller: the error of the trained part grows", learning_rate)
    return float(_variance(student_variance) * lam[trained:].sum() / (2 * lam.size) / (1 - feedback))


def tail_floor(levels, trained, exponent, *, student_variance=0.0, ends="midpoint"):
    r"""The floor at small learning rate over a power-law spectrum as an integral:  (1+σ_J²) λ₊/(2βL) (N_l^{-β} - L^{-β}).

    Source: 002_ae911d9b73aa1c7d.txt, eq. (74); with the midpoints N_l + 1/2, L + 1/2 it is closer to the sum.

    Parameters
    ----------
    levels : int                L; >= 1
    trained : int or array      N_l; 1 <= N_l <= L
    exponent : float            β; > 0
    student_variance : float    σ_J²; >= 0
    ends : str                  "midpoint" or "endpoint" (the source's)

    Returns
    -------
    float or array              as `trained`

    Raises
    ------
    ValueError                  if an argument is outside its range

    Examples
    --------
    >>> from lib.spectra import power_law
    >>> bool(abs(tail_floor(256, 50, 0.75) / error_floor(power_law(256, 0.75), 50, 0.0) - 1) < 1e-3)
    True
    """
    levels, beta = _checks.integer("levels", levels), _checks.number("exponent", exponent, above=0)
    trained = _checks.entries("trained", trained, at_least=1, at_most=levels)  # (...)
    if ends not in ("midpoint", "endpoint"):
        _checks.fail("ends", 'be "midpoint" or "endpoint"', ends)
    shift = 0.5 if ends == "midpoint" else 0.0
    floor = power_law(levels, beta)[0] / (2 * beta * levels) * ((trained + shift) ** -beta - (levels + shift) ** -beta)  # (...)
    return (_variance(student_variance) * floor)[()]


def power_law_error(alpha, levels, trained, exponent, learning_rate, *, student_variance=0.0):
    r"""Time and features together over a power-law spectrum:  :func:`tail_floor` plus two incomplete Gamma functions.

    The time part is  (1+σ_J²) λ₊/(2L) c^{-s}/(1+β) [Γ(s, c/b^{1+β}) - Γ(s, c/a^{1+β})],  c = 2ηλ₊α,  s = β/(1+β), with a = 1/2, b = N_l + 1/2:
    only trained modes take part.  Source: 002_ae911d9b73aa1c7d.txt, eqs. (11) and (79), corrected: there b = L, which counts the frozen modes twice.

    Parameters
    ----------
    alpha : array (A,)          time; > 0
    levels : int                L; >= 1
    trained : int               N_l; 1 <= N_l <= L
    exponent : float            β; > 0
    learning_rate : float       η; > 0
    student_variance : float    σ_J²; >= 0

    Returns
    -------
    array (A,)

    Raises
    ------
    ValueError                  if an argument is outside its range

    Examples
    --------
    >>> from lib.spectra import power_law
    >>> exact = generalization_error([30.0], power_law(1000, 1.0), 100, 0.1)
    >>> abs(float((power_law_error([30.0], 1000, 100, 1.0, 0.1) / exact)[0]) - 1) < 1e-3
    True
    """
    alpha = _checks.entries("alpha", alpha, above=0, ndim=1)  # (A,)
    levels, beta = _checks.integer("levels", levels), _checks.number("exponent", exponent, above=0)
    trained = _trained(trained, levels)
    rate = _checks.number("learning_rate", learning_rate, above=0)
    learned = _modes_between(0.5, trained + 0.5, alpha, power_law(levels, beta), beta, rate)  # (A,)
    return _variance(student_variance) * learned + tail_floor(levels, trained, beta, student_variance=student_variance)


def schur_floors(covariance, *, student_variance=0.0):
    r"""Error that is left at small learning rate when the first N_l weights of any basis are trained, for all N_l at once.

    With the Cholesky factor  Σ = C Cᵀ  the trace of the Schur complement is  Σ_{a≥j>N_l} C_aj²,  so one factor serves every N_l.
    Source: 002_ae911d9b73aa1c7d.txt, eqs. (82) to (88).

    Parameters
    ----------
    covariance : array (N, N)    Σ, symmetric, positive definite
    student_variance : float     σ_J²; >= 0

    Returns
    -------
    array (N + 1,)               ε_∞ for N_l = 0..N; the last is zero

    Raises
    ------
    ValueError                   if the covariance is not symmetric and positive definite

    Examples
    --------
    >>> schur_floors([[1.0, 0.6], [0.6, 1.0]]).round(6).tolist()  # (1 - 0.36)/4 with one weight
    [0.5, 0.16, 0.0]
    """
    sigma = _checks.symmetric("covariance", covariance, definite="strict")  # (N, N)
    columns = (cholesky(sigma, lower=True) ** 2).sum(axis=0)  # (N,)
    tails = np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])  # (N + 1,)
    return _variance(student_variance) / (2 * len(sigma)) * tails

r"""A linear student that may train only some of its weights: what the frozen ones cost.

Student and teacher as in :mod:`lib.scaling.linear_student`, with N weights in the eigenbasis of the inputs, of which the first N_l are trained.  The tail
of the spectrum stays as an error,  ε_∞ = (1+σ_J²)/(2N) Σ_{k>N_l} λ_k,  and acts on the trained weights as noise on the label.  Weights that belong
to another basis: :mod:`lib.scaling.feature_bases`.  Source: worschech2024, eqs. (10), (11) and (58) to (79).
"""

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.scaling.linear_student import _modes_between
from lib.scaling.spectra import checked_spectrum, power_law


def _variance(student_variance):
    return 1 + checks.number("student_variance", student_variance, at_least=0)


def _squares(squares, size, student_variance):
    """The squares given by the caller, (N,) or (runs, N)."""
    if _variance(student_variance) != 1:
        checks.fail("student_variance", "be left at 0 where squares are given", student_variance)
    squares = checks.entries("squares", squares, at_least=0)  # (..., N)
    if squares.ndim not in (1, 2) or squares.shape[-1] != size or squares.size == 0:
        checks.fail("squares", f"have shape (N,) or (runs, N) with N = {size}", f"shape {squares.shape}")
    return squares


def _trained(trained, size):
    trained = checks.integer("trained", trained)
    if trained > size:
        checks.fail("trained", f"be at most the number of weights, {size}", trained)
    return trained


@checks.one_or_many
def generalization_error(alpha, eigenvalues, trained, learning_rate, *, student_variance=0.0):
    r"""Error when the first N_l components in the eigenbasis are trained with a small learning rate.

    ε_g = (1+σ_J²)/(2N) [Σ_{k≤N_l} λ_k e^{-2ηλ_kα} + Σ_{k>N_l} λ_k].  Source: worschech2024, eq. (10).

    Parameters
    ----------
    alpha : float or array (A,) time, examples / N; >= 0
    eigenvalues : array (N,)    λ_k of every component, the trained ones first; > 0, of mean one
    trained : int               N_l; 1 <= N_l <= N
    learning_rate : float       η; > 0
    student_variance : float    σ_J²; >= 0

    Returns
    -------
    array (A,)

    Examples
    --------
    >>> generalization_error([0.0, 1e9], [1.5, 0.5], 1, 0.1).tolist()
    [0.5, 0.125]
    """
    alpha = checks.entries("alpha", alpha, at_least=0, ndim=1)  # (A,)
    lam, _ = checked_spectrum(eigenvalues)  # (N,)
    trained = _trained(trained, lam.size)
    rate = checks.number("learning_rate", learning_rate, above=0)
    learned = np.exp(-2 * rate * np.outer(alpha, lam[:trained])) @ lam[:trained]  # (A,)
    return _variance(student_variance) / (2 * lam.size) * (learned + lam[trained:].sum())


@checks.one_or_many
def finite_size_error(alpha, eigenvalues, trained, learning_rate, *, squares=None, student_variance=0.0):
    r"""Mean error of stochastic gradient descent on the first N_l components, exact for Gaussian inputs at every N and η.

    With a_k = ηλ_k/N a step changes the means c_k of the trained D_k²/N to  (1 - 2a_k + 2a_k²) c_k + a_k Σ_{j≤N} a_j c_j;  the frozen ones stay.
    ε_g = ½ Σ_k λ_k c_k.  The limit η -> 0 at fixed ηα is worschech2024, eq. (10).

    Parameters
    ----------
    alpha : float or array (A,)                     time, examples / N; >= 0; αN is rounded to whole steps
    eigenvalues : array (N,)                        λ_k of every component, the trained ones first; > 0, of any mean
    trained : int                                   N_l; 1 <= N_l <= N
    learning_rate : float                           η; > 0
    squares : array (N,) or (runs, N), optional     D_k² of the deviation J - B at the start; >= 0; default: 1 + σ_J², their mean
    student_variance : float                        σ_J²; >= 0; only without `squares`

    Returns
    -------
    array (A,) or (runs, A)                         mean over examples; the second for squares of shape (runs, N)

    Raises
    ------
    ValueError                                      if an argument is outside its range, or the error overflows

    Examples
    --------
    >>> finite_size_error([0.0, 0.5, 1e3], [1.5, 0.5], 1, 0.4).round(6).tolist()  # rests at 0.125 / (1 - 0.3/1.4)
    [0.5, 0.3875, 0.159091]
    """
    alpha = checks.entries("alpha", alpha, at_least=0, ndim=1)  # (A,)
    lam = checks.entries("eigenvalues", eigenvalues, above=0, ndim=1)  # (N,)
    if lam.size == 0:
        checks.fail("eigenvalues", "hold at least one eigenvalue", "none")
    trained = _trained(trained, lam.size)
    rate = checks.number("learning_rate", learning_rate, above=0)
    start = (
        np.full(lam.size, _variance(student_variance))
        if squares is None
        else _squares(squares, lam.size, student_variance)
    )
    c = np.atleast_2d(start) / lam.size  # (runs, N)
    share = rate * lam / lam.size  # (N,)
    a = share[:trained]  # (N_l,)
    with np.errstate(over="ignore", invalid="ignore"):
        # The loss of a step, 1 - M, and not its matrix M: at a small rate M is one up to rounding.
        lost = np.diag(2 * a * (1 - a)) - np.outer(a, a)  # (N_l, N_l)
        if not np.isfinite(lost).all():
            checks.fail("learning_rate", "keep the matrix of a step inside the floating-point range", learning_rate)
        loss, modes = eigh(lost)  # (N_l,), (N_l, N_l); loss < 1
        exponent = np.outer(np.log1p(-loss), np.rint(alpha * lam.size))  # (N_l, A)
        sums = np.tile(
            np.rint(alpha * lam.size), (trained, 1)
        )  # (N_l, A)  1 + M + M² + ..., here for modes that keep their size
        np.divide(-np.expm1(exponent), loss[:, None], out=sums, where=loss[:, None] != 0)
        reach = lam[:trained] @ modes  # (N_l,)
        drive = np.outer(c[:, trained:] @ share[trained:], a)  # (runs, N_l)
        trained_part = (c[:, :trained] @ modes * reach) @ np.exp(exponent) + (drive @ modes * reach) @ sums  # (runs, A)
        result = 0.5 * (trained_part + (c[:, trained:] @ lam[trained:])[:, None])  # (runs, A)
    if not np.isfinite(result).all():
        checks.fail(
            "learning_rate", "keep the error inside the floating-point range up to the last time", learning_rate
        )
    return result if start.ndim == 2 else result[0]


def error_floor(eigenvalues, trained, learning_rate, *, student_variance=0.0, multiplicity=None):
    r"""Error that is left at the end at any learning rate: the frozen tail acts as label noise.

    ε_∞(η) = ε_∞(0) / (1 - (η/2) Σ_{k≤N_l} n_kλ_k)  for N -> ∞, and with  Σ m_k (ηλ_k/N)/{2(1 - ηλ_k/N)}  at finite N.
    Source: worschech2024, eq. (74), is the limit η -> 0.

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

    Examples
    --------
    >>> error_floor([1.5, 0.5], 1, 0.0), round(error_floor([1.5, 0.5], 1, 1.0), 6)
    (0.125, 0.2)
    """
    lam, _ = checked_spectrum(eigenvalues)  # (L,)
    trained = _trained(trained, lam.size)
    rate = checks.number("learning_rate", learning_rate, at_least=0)
    share = rate * lam[:trained] / lam.size  # (N_l,)
    if multiplicity is None:
        feedback = share.sum() / 2
    else:
        count = checks.integer("multiplicity", multiplicity)
        with np.errstate(divide="ignore"):
            feedback = np.inf if share.max() >= count else (share / (1 - share / count)).sum() / 2
    if not feedback < 1:
        checks.fail("learning_rate", "be smaller: the error of the trained part grows", learning_rate)
    return float(_variance(student_variance) * lam[trained:].sum() / (2 * lam.size) / (1 - feedback))


def tail_floor(levels, trained, exponent, *, student_variance=0.0, ends="midpoint"):
    r"""The floor at small learning rate over a power-law spectrum as an integral:  (1+σ_J²) λ₊/(2βL) (N_l^{-β} - L^{-β}).

    Source: worschech2024, eq. (74); with the midpoints N_l + 1/2, L + 1/2 it is closer to the sum.

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

    Examples
    --------
    >>> from lib.scaling.spectra import power_law
    >>> bool(abs(tail_floor(256, 50, 0.75) / error_floor(power_law(256, 0.75), 50, 0.0) - 1) < 1e-3)
    True
    """
    levels, beta = checks.integer("levels", levels), checks.number("exponent", exponent, above=0)
    trained = checks.entries("trained", trained, at_least=1, at_most=levels)  # (...)
    if ends not in ("midpoint", "endpoint"):
        checks.fail("ends", 'be "midpoint" or "endpoint"', ends)
    shift = 0.5 if ends == "midpoint" else 0.0
    floor = (
        power_law(levels, beta)[0] / (2 * beta * levels) * ((trained + shift) ** -beta - (levels + shift) ** -beta)
    )  # (...)
    return (_variance(student_variance) * floor)[()]


@checks.one_or_many
def power_law_error(alpha, levels, trained, exponent, learning_rate, *, student_variance=0.0):
    r"""Time and features together over a power-law spectrum:  :func:`tail_floor` plus two incomplete Gamma functions.

    The time part is  (1+σ_J²) λ₊/(2L) c^{-s}/(1+β) [Γ(s, c/b^{1+β}) - Γ(s, c/a^{1+β})],  c = 2ηλ₊α,  s = β/(1+β), with a = 1/2, b = N_l + 1/2:
    only trained modes take part.  Source: worschech2024, eqs. (11) and (79), corrected: there b = L, which counts the frozen modes twice.

    Parameters
    ----------
    alpha : float or array (A,) time; > 0
    levels : int                L; >= 1
    trained : int               N_l; 1 <= N_l <= L
    exponent : float            β; > 0
    learning_rate : float       η; > 0
    student_variance : float    σ_J²; >= 0

    Returns
    -------
    array (A,)

    Examples
    --------
    >>> from lib.scaling.spectra import power_law
    >>> exact = generalization_error([30.0], power_law(1000, 1.0), 100, 0.1)
    >>> abs(float((power_law_error([30.0], 1000, 100, 1.0, 0.1) / exact)[0]) - 1) < 1e-3
    True
    """
    alpha = checks.entries("alpha", alpha, above=0, ndim=1)  # (A,)
    levels, beta = checks.integer("levels", levels), checks.number("exponent", exponent, above=0)
    trained = _trained(trained, levels)
    rate = checks.number("learning_rate", learning_rate, above=0)
    learned = _modes_between(0.5, trained + 0.5, alpha, power_law(levels, beta), beta, rate)  # (A,)
    return _variance(student_variance) * learned + tail_floor(levels, trained, beta, student_variance=student_variance)

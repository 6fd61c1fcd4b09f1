r"""One-pass learning of a linear teacher by a linear student with structured inputs: exact at any learning rate.

Student and teacher are single vectors J and B; K students and M teachers reduce to one of each with the learning rate ηM/K and the
variance σ_J² M/K.  The errors of the eigenspaces,  e_k = |P_k(J - B)|²/N,  obey

    de_k/dα = -2ηλ_k e_k + η²λ_k n_k Σ_j λ_j e_j,        ε_g = ½ Σ_k λ_k e_k        (N -> ∞ with L fixed),

and a recursion of the same form is exact for the mean at finite N.  Divided by √n_k the matrix becomes symmetric: one `eigh` serves
every α, and L may be in the thousands.  Source: worschech2024, eqs. (5) to (9), where powers of the covariance lose all
digits beyond a dozen eigenvalues.  Time is α = examples / N.
"""

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import gamma, gammaincc

from lib.common import checks
from lib.scaling.spectra import checked_spectrum, power_law


def _times(alpha):
    return checks.entries("alpha", alpha, at_least=0, ndim=1)  # (A,)


def _start(student_variance, fractions):
    """Mean of e_k at the start, over teachers with entries of variance one and students of variance σ_J²."""
    return (1 + checks.number("student_variance", student_variance, at_least=0)) * fractions  # (L,)


def _rate(learning_rate):
    return checks.number("learning_rate", learning_rate, above=0)


def _modes(lam, fractions, rate):
    """Eigenvalues and eigenvectors of  S = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k."""
    v = lam * np.sqrt(fractions)  # (L,)
    return *eigh(rate**2 * np.outer(v, v) - np.diag(2 * rate * lam)), v  # (L,), (L, L), (L,)


@checks.one_or_many
def generalization_error(
    alpha, eigenvalues, learning_rate, *, multiplicities=None, student_variance=0.0, derivative=False
):
    r"""Generalization error for N -> ∞ at a fixed number of eigenvalues, exact in the learning rate.

    ε_g = ½ vᵀ e^{Sα} w(0)  with  S = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k,  w_k = e_k/√n_k.  Source: worschech2024,
    eq. (6), corrected: the matrix there is 2A_1 + ηU, and the amplitudes are those of :func:`modes`.

    Parameters
    ----------
    alpha : float or array (A,)              time; >= 0
    eigenvalues : array (L,)                 λ_k; > 0, of weighted mean one
    learning_rate : float                    η; > 0; the error decays for η < 2, whatever the spectrum
    multiplicities : array (L,), optional    m_k up to a factor; default: all equal
    student_variance : float                 σ_J²; >= 0
    derivative : bool                        return dε_g/dα instead

    Returns
    -------
    array (A,)

    Raises
    ------
    ValueError                               if an argument is outside its range, or the error overflows

    Examples
    --------
    >>> generalization_error([0.0, 1.0], [1.0], 0.5).round(6).tolist()  # e^{-(2η - η²)α} / 2
    [0.5, 0.236183]
    """
    alpha = _times(alpha)
    lam, fractions = checked_spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    rates, modes, v = _modes(lam, fractions, _rate(learning_rate))
    weights = (v @ modes) * (modes.T @ (_start(student_variance, fractions) / np.sqrt(fractions)))  # (L,)
    if checks.boolean("derivative", derivative):
        weights = weights * rates
    with np.errstate(over="ignore", invalid="ignore"):
        result = 0.5 * np.exp(np.outer(alpha, rates)) @ weights  # (A,)
    if not np.isfinite(result).all():
        checks.fail(
            "learning_rate", "keep the error inside the floating-point range up to the last time", learning_rate
        )
    return result


@checks.one_or_many
def gradient_flow_error(alpha, eigenvalues, learning_rate, *, multiplicities=None, student_variance=0.0):
    r"""Generalization error for η -> 0 at fixed ηα:  ½ (1 + σ_J²) Σ_k n_k λ_k e^{-2ηλ_kα}.

    Source: worschech2024, eq. (8).

    Parameters
    ----------
    alpha : float or array (A,)              time; >= 0
    eigenvalues : array (L,)                 λ_k; > 0, of weighted mean one
    learning_rate : float                    η; > 0
    multiplicities : array (L,), optional    m_k up to a factor; default: all equal
    student_variance : float                 σ_J²; >= 0

    Returns
    -------
    array (A,)

    Examples
    --------
    >>> gradient_flow_error([0.0, 1.0], [1.0], 0.5).round(6).tolist()
    [0.5, 0.18394]
    """
    alpha, rate = _times(alpha), _rate(learning_rate)
    lam, fractions = checked_spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    return 0.5 * np.exp(-2 * rate * np.outer(alpha, lam)) @ (lam * _start(student_variance, fractions))


@checks.one_or_many
def local_exponent(alpha, eigenvalues, learning_rate, *, multiplicities=None):
    r"""Slope  d ln ε_g / d ln α  of :func:`gradient_flow_error`, without any fit.

    It tends to -β/(1+β) of worschech2024, eq. (9), only slowly: the correction at ηλ₊α = z L^{1+β} is of order z^{β/(1+β)}.

    Parameters
    ----------
    alpha : float or array (A,)              time; >= 0
    eigenvalues : array (L,)                 λ_k; > 0, of weighted mean one
    learning_rate : float                    η; > 0
    multiplicities : array (L,), optional    m_k up to a factor; default: all equal

    Returns
    -------
    array (A,)                               <= 0; relative accuracy kept where the error itself underflows

    Examples
    --------
    >>> local_exponent([0.5, 2.0], [1.0], 0.5).tolist()  # a single exponential: -2ηα
    [-0.5, -2.0]
    """
    alpha, rate = _times(alpha), _rate(learning_rate)
    lam, fractions = checked_spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    exponent = -2 * rate * np.outer(alpha, lam - lam.min())  # (A, L)
    weights = fractions * lam * np.exp(exponent)  # (A, L)
    return -2 * rate * alpha * (weights @ lam) / weights.sum(axis=1)


def modes(eigenvalues, learning_rate, *, multiplicities=None):
    r"""Shifted eigenvalues λ̃_j and amplitudes b_j of  ε_g = (1 + σ_J²)/(2 - η) Σ_j b_j λ̃_j e^{-2ηλ̃_jα}.

    Source: worschech2024, eqs. (6) and (54) to (57), corrected.  They solve  1 = η Σ_k n_k λ_k² / (2(λ_k - λ̃_j));
    Σ_j b_j = 1 and Σ_j b_j λ̃_j = (2 - η)/2.

    Parameters
    ----------
    eigenvalues : array (L,)                 λ_k; > 0, all different, of weighted mean one
    learning_rate : float                    η; 0 < η < 2
    multiplicities : array (L,), optional    m_k up to a factor; default: all equal

    Returns
    -------
    (array (L,), array (L,))                 λ̃_j, descending; b_j, > 0

    Raises
    ------
    ValueError                               if an argument is outside its range, or two eigenvalues are equal

    Examples
    --------
    >>> shifted, amplitudes = modes([1.0], 0.5)
    >>> shifted.tolist(), amplitudes.tolist()
    ([0.75], [1.0])
    """
    lam, fractions = checked_spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    if len(np.unique(lam)) < lam.size:
        checks.fail("eigenvalues", "all differ: merge equal ones and add their multiplicities", eigenvalues)
    rate = checks.number("learning_rate", learning_rate, above=0, below=2)
    rates, vectors, v = _modes(lam, fractions, rate)
    shifted = -rates / (2 * rate)  # (L,)
    # Contribution of mode j to ε_g, from the eigenvectors: the differences λ_k - λ̃_j of the printed form lose their digits.
    weights = (v @ vectors) * (vectors.T @ np.sqrt(fractions))  # (L,)
    return shifted, (2 - rate) / 2 * weights / shifted


@checks.one_or_many
def finite_size_error(alpha, eigenvalues, multiplicities, learning_rate, *, student_variance=0.0):
    r"""Mean generalization error of stochastic gradient descent with N inputs, exact for Gaussian inputs at every N and L.

    A step multiplies the mean of e_k by  1 - 2ηλ_k/N + 2η²λ_k²/N²  and adds  (η²/N²) λ_k m_k Σ_j λ_j e_j.  This is what runs at L = N
    do, where the equations for N -> ∞ behind worschech2024, eq. (6), do not hold.

    Parameters
    ----------
    alpha : float or array (A,)        time; >= 0; αN is rounded to whole steps
    eigenvalues : array (L,)           λ_k; > 0, of weighted mean one
    multiplicities : int array (L,)    m_k, dimensions of the eigenspaces, N = Σ_k m_k; >= 1
    learning_rate : float              η; > 0
    student_variance : float           σ_J²; >= 0

    Returns
    -------
    array (A,)                         mean over examples, teachers and initial students

    Raises
    ------
    ValueError                         if an argument is outside its range, or the error overflows

    Examples
    --------
    >>> finite_size_error([0.0, 1.0], [1.0], [1], 0.5).tolist()  # one input: 1 - 2η + 3η² a step
    [0.5, 0.375]
    """
    alpha, rate = _times(alpha), _rate(learning_rate)
    lam, counts, size = _dimensions(eigenvalues, multiplicities)
    v = lam * np.sqrt(counts)  # (L,)
    keep = 1 - 2 * rate * lam / size + 2 * (rate * lam / size) ** 2  # (L,)
    factors, vectors = eigh(np.diag(keep) + (rate / size) ** 2 * np.outer(v, v))  # (L,), (L, L); all factors > 0
    weights = (v @ vectors) * (vectors.T @ (_start(student_variance, counts / size) / np.sqrt(counts)))  # (L,)
    steps = np.rint(alpha * size)  # (A,)
    with np.errstate(over="ignore", invalid="ignore"):
        result = 0.5 * np.exp(np.outer(steps, np.log(factors))) @ weights  # (A,)
    if not np.isfinite(result).all():
        checks.fail(
            "learning_rate", "keep the error inside the floating-point range up to the last time", learning_rate
        )
    return result


def _dimensions(eigenvalues, multiplicities):
    lam, _ = checked_spectrum(eigenvalues, multiplicities)  # (L,)
    counts = checks.entries("multiplicities", multiplicities, at_least=1, shape=lam.shape)  # (L,)
    if np.any(counts != np.rint(counts)):
        checks.fail("multiplicities", "hold whole numbers", multiplicities)
    return lam, counts, counts.sum()


def finite_size_threshold(eigenvalues, multiplicities):
    r"""Learning rate at which the mean error of :func:`finite_size_error` stops decaying.

    The smallest root of  Σ_k m_k (ηλ_k/N) / (2(1 - ηλ_k/N)) = 1.  It is 2 for N -> ∞ at fixed L, as in worschech2024, and
    clearly less at L = N, where one eigenvalue is a finite part of the trace.

    Parameters
    ----------
    eigenvalues : array (L,)           λ_k; > 0, of weighted mean one
    multiplicities : int array (L,)    m_k, dimensions of the eigenspaces, N = Σ_k m_k; >= 1

    Returns
    -------
    float                              η_c

    Examples
    --------
    >>> round(finite_size_threshold([1.0], [10]), 12)  # 2N / (N + 2)
    1.666666666667
    """
    lam, counts, size = _dimensions(eigenvalues, multiplicities)

    def excess(rate):
        part = rate * lam / size  # (L,)
        return counts @ (part / (1 - part)) / 2 - 1

    pole = size / lam.max()  # excess grows from -1 at η = 0 to infinity here; and excess(2) >= 0
    top = min(2.0, pole * (1 - 1e-15))
    return float(brentq(excess, 0.0, top, xtol=1e-15, rtol=1e-14)) if excess(top) > 0 else top


@checks.one_or_many
def power_law_error(alpha, levels, exponent, learning_rate, *, student_variance=0.0, ends="midpoint"):
    r"""The sum of :func:`gradient_flow_error` over a power-law spectrum, as an integral:  two incomplete Gamma functions.

    ε_g ≈ (1+σ_J²) λ₊/(2L) c^{-s}/(1+β) [Γ(s, c b^{-(1+β)}) - Γ(s, c a^{-(1+β)})],  c = 2ηλ₊α,  s = β/(1+β).  With a = 1, b = L it is
    worschech2024, eqs. (9) and (50); the midpoints a = 1/2, b = L + 1/2 are closer to the sum.

    Parameters
    ----------
    alpha : float or array (A,)  time; > 0
    levels : int               L; >= 1, or >= 2 between endpoints
    exponent : float           β; > 0
    learning_rate : float      η; > 0
    student_variance : float   σ_J²; >= 0
    ends : str                 "midpoint" or "endpoint" (the source's)

    Returns
    -------
    array (A,)

    Examples
    --------
    >>> from lib.scaling.spectra import power_law
    >>> total = gradient_flow_error([30.0], power_law(1000, 1.0), 0.1)
    >>> abs(float((power_law_error([30.0], 1000, 1.0, 0.1) / total)[0]) - 1) < 1e-4
    True
    """
    alpha = checks.entries("alpha", alpha, above=0, ndim=1)  # (A,)
    levels, exponent = checks.integer("levels", levels), checks.number("exponent", exponent, above=0)
    rate = _rate(learning_rate)
    if ends not in ("midpoint", "endpoint"):
        checks.fail("ends", 'be "midpoint" or "endpoint"', ends)
    if ends == "endpoint" and levels == 1:
        checks.fail("levels", "be at least 2 between endpoints, which coincide for one level", levels)
    start = 1 + checks.number("student_variance", student_variance, at_least=0)
    first, last = (0.5, levels + 0.5) if ends == "midpoint" else (1.0, float(levels))
    return start * _modes_between(first, last, alpha, power_law(levels, exponent), exponent, rate)


def _modes_between(first, last, alpha, lam, exponent, rate):
    """½ Σ_k λ_k e^{-2ηλ_kα}/L over the power law λ_k = λ₊ k^{-(1+β)}, as an integral over k from `first` to `last`."""
    s, c = exponent / (1 + exponent), 2 * rate * lam[0] * alpha  # (A,)
    bracket = gammaincc(s, c * last ** -(1 + exponent)) - gammaincc(s, c * first ** -(1 + exponent))  # (A,)
    return lam[0] / (2 * len(lam) * (1 + exponent)) * gamma(s) * c**-s * bracket

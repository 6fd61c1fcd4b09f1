r"""A linear student whose learning rate changes in stages: exact means of one-pass descent, and the law of slow changes.

The equations of :mod:`lib.scaling.linear_student` hold within a stage.  Matrices of different rates do not commute, so the solution is one
exponential for each stage, the latest on the left.  In the time  τ = ∫η dα  the drift -2λ_k e_k does not depend on the rate, only the noise
η(τ) λ_k n_k Σ_j λ_j e_j  does.  Schedules are not in the source (worschech2024), which keeps η constant in eqs. (5) to (9).
"""

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.scaling.linear_student import _dimensions, _modes, _start, gradient_flow_error
from lib.scaling.spectra import checked_spectrum


def _stages(rates, durations, below=None):
    rates = checks.entries("rates", rates, at_least=0, below=below, ndim=1)  # (S,)
    if rates.size == 0:
        checks.fail("rates", "hold at least one stage", "none")
    return rates, checks.entries("durations", durations, at_least=0, shape=rates.shape)  # (S,), (S,)


def _after_stages(stages, v, w):
    """½ v·w after each stage of (exponents, modes, duration), a stage being  w ← modes e^{exponents · duration} modesᵀ w."""
    errors = []
    with np.errstate(over="ignore", invalid="ignore"):
        for exponents, modes, duration in stages:
            w = modes @ (np.exp(exponents * duration) * (modes.T @ w))  # (L,)
            errors.append(v @ w / 2)
    if not np.isfinite(errors).all():
        checks.fail("rates", "keep the error inside the floating-point range", "an error that is not finite")
    return np.array(errors)  # (S,)


def generalization_error(rates, durations, eigenvalues, *, multiplicities=None, student_variance=0.0):
    r"""Generalization error after every stage for N -> ∞ at a fixed number of eigenvalues, exact in the learning rates.

    ε_g = ½ vᵀ e^{S(η_s)d_s} ... e^{S(η_1)d_1} w(0)  with  S(η) = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k,  w_k = e_k/√n_k.
    One stage is worschech2024, eq. (6), corrected; more are not in the source.

    Parameters
    ----------
    rates : array (S,)                       η of every stage; >= 0
    durations : array (S,)                   α spent in it; >= 0
    eigenvalues : array (L,)                 λ_k; > 0, of weighted mean one
    multiplicities : array (L,), optional    m_k up to a factor; default: all equal
    student_variance : float                 σ_J²; >= 0

    Returns
    -------
    array (S,)                               ε_g at the end of each stage

    Raises
    ------
    ValueError                               if an argument is outside its range, or the error overflows

    Examples
    --------
    >>> generalization_error([0.5, 0.1], [1.0, 2.0], [1.0]).round(6).tolist()  # e^{-0.75}/2, then e^{-0.38} of it
    [0.236183, 0.161517]
    """
    rates, durations = _stages(rates, durations)  # (S,), (S,)
    lam, fractions = checked_spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    stages = ((*_modes(lam, fractions, rate)[:2], duration) for rate, duration in zip(rates, durations))
    return _after_stages(stages, lam * np.sqrt(fractions), _start(student_variance, fractions) / np.sqrt(fractions))


def finite_size_error(rates, durations, eigenvalues, multiplicities, *, student_variance=0.0):
    r"""Mean generalization error of descent with N inputs after every stage, exact for Gaussian inputs at every N and L.

    A step at the rate η is that of :func:`lib.scaling.linear_student.finite_size_error`; not in the source (worschech2024).

    Parameters
    ----------
    rates : array (S,)                 η of every stage; >= 0
    durations : array (S,)             α spent in it; >= 0; the end of a stage times N is rounded to whole steps
    eigenvalues : array (L,)           λ_k; > 0, of weighted mean one
    multiplicities : int array (L,)    m_k, dimensions of the eigenspaces, N = Σ_k m_k; >= 1
    student_variance : float           σ_J²; >= 0

    Returns
    -------
    array (S,)                         ε_g at the end of each stage, mean over examples, teachers and initial students

    Raises
    ------
    ValueError                         if an argument is outside its range, or the error overflows

    Examples
    --------
    >>> finite_size_error([0.5, 1/3], [1.0, 1.0], [1.0], [1]).round(6).tolist()  # one input: 1 - 2η + 3η² a step
    [0.375, 0.25]
    """
    rates, durations = _stages(rates, durations)  # (S,), (S,)
    lam, counts, size = _dimensions(eigenvalues, multiplicities)  # (L,), (L,)
    v = lam * np.sqrt(counts)  # (L,)
    steps = np.diff(np.rint(np.cumsum(durations) * size), prepend=0)  # (S,)

    def step(rate):
        a = rate * lam / size  # (L,)
        loss, modes = eigh(
            np.diag(2 * a * (1 - a)) - (rate / size) ** 2 * np.outer(v, v)
        )  # (L,), (L, L); all of `loss` < 1
        return np.log1p(-loss), modes

    stages = ((*step(rate), number) for rate, number in zip(rates, steps))
    return _after_stages(stages, v, _start(student_variance, counts / size) / np.sqrt(counts))


def adiabatic_error(rates, durations, eigenvalues, *, multiplicities=None, student_variance=0.0):
    r"""What a slowly changing learning rate leaves inside the power-law window:  ε_g ≈ ε_g^{η->0}(τ) / (1 - η/2),  η the rate of the stage.

    The error of a vanishing rate at the same  τ = Σ η_s d_s,  worschech2024, eq. (8), amplified by the present noise alone; the
    law for changing rates is not in the source.  An asymptotic law: a sudden change is forgotten only as a power of τ.

    Parameters
    ----------
    rates : array (S,)                       η of every stage; 0 <= η < 2
    durations : array (S,)                   α spent in it; >= 0
    eigenvalues : array (L,)                 λ_k; > 0, of weighted mean one
    multiplicities : array (L,), optional    m_k up to a factor; default: all equal
    student_variance : float                 σ_J²; >= 0

    Returns
    -------
    array (S,)                               ε_g at the end of each stage

    Examples
    --------
    >>> adiabatic_error([1.0, 0.5], [1.0, 2.0], [1.0]).round(6).tolist()  # e^{-2}/2 / 0.5,  e^{-4}/2 / 0.75
    [0.135335, 0.01221]
    """
    rates, durations = _stages(rates, durations, below=2)  # (S,), (S,)
    tau = np.cumsum(rates * durations)  # (S,)
    flow = gradient_flow_error(
        tau, eigenvalues, 1.0, multiplicities=multiplicities, student_variance=student_variance
    )  # (S,)
    return flow / (1 - rates / 2)

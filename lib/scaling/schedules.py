"""A linear student whose learning rate changes in stages: exact means of descent, and the law of slow changes.

The equations of :mod:`lib.scaling.linear_student` hold within a stage, in which the learning rate is constant.  Not in
worschech2024, which keeps η constant.
"""

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments, _linear


def _stages(rates, durations, student_variance, below=None):
    rates = checks.entries("rates", rates, at_least=0, below=below, ndim=1)  # (S,)
    if rates.size == 0:
        checks.fail("rates", "hold at least one stage", "none")
    durations = checks.entries("durations", durations, at_least=0, shape=rates.shape)  # (S,)
    return rates, durations, 1 + checks.number("student_variance", student_variance, at_least=0)


def _after_stages(stages, v, w):
    """½ v·w after each of the stages (exponents, modes, duration):  w ← modes e^{exponents · duration} modesᵀ w."""
    errors = []
    with np.errstate(over="ignore", invalid="ignore"):
        for exponents, modes, duration in stages:
            w = modes @ (np.exp(exponents * duration) * (modes.T @ w))  # (L,)
            errors.append(v @ w / 2)
    return checks.finite("rates", np.array(errors))  # (S,)


def generalization_error(
    rates: ArrayLike, durations: ArrayLike, spectrum: Spectrum | ArrayLike, *, student_variance: float = 0.0
) -> Array[" S"]:
    """Generalization error after every stage for N → ∞ at a fixed number of eigenvalues, exact in the rates.

    ε_g = ½ vᵀ e^{S(η_s)d_s} ... e^{S(η_1)d_1} w(0)  with  S(η) = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k,  w_k(0) =
    (1+σ_J²) √n_k.

    Parameters
    ----------
    rates, durations : array_like (S,)
        η_s >= 0 and how long it lasts, d_s >= 0 in units of α = examples / N.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

    Returns
    -------
    ndarray (S,)
        ε_g at the end of each stage.

    Examples
    --------
    >>> generalization_error([0.5, 0.1], [1.0, 2.0], [1.0]).round(6).tolist()  # e^{-0.75}/2, then e^{-0.38} of it
    [0.236183, 0.161517]
    """
    rates, durations, variance = _stages(rates, durations, student_variance)  # (S,), (S,), float
    spectrum = _arguments.spectrum(spectrum)
    stages = ((*_linear.flow_modes(spectrum, rate)[:2], part) for rate, part in zip(rates, durations))
    root = np.sqrt(spectrum.shares)  # (L,)
    return _after_stages(stages, spectrum.eigenvalues * root, variance * root)


def finite_size_error(
    rates: ArrayLike, durations: ArrayLike, spectrum: Spectrum | ArrayLike, *, student_variance: float = 0.0
) -> Array[" S"]:
    """Mean generalization error of descent on N Gaussian inputs after every stage, exact at every N and L.

    A step is that of :func:`lib.scaling.linear_student.finite_size_error`.

    Parameters
    ----------
    rates, durations : array_like (S,)
        η_s >= 0 and how long it lasts, d_s >= 0 in units of α = examples / N; they end after whole steps, rounded.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and whole multiplicities m_k, N = Σ_k m_k.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

    Returns
    -------
    ndarray (S,)
        ε_g at the end of each stage.

    Examples
    --------
    >>> finite_size_error([0.5, 1/3], [1.0, 1.0], [1.0]).round(6).tolist()  # one input: 1 - 2η + 3η² a step
    [0.375, 0.25]
    """
    rates, durations, variance = _stages(rates, durations, student_variance)  # (S,), (S,), float
    spectrum = _arguments.spectrum(spectrum, whole=True)
    lam, counts, size = spectrum.eigenvalues, spectrum.multiplicities, spectrum.dimension
    steps = np.diff(np.rint(np.cumsum(durations) * size), prepend=0)  # (S,)

    def step(rate):
        loss, modes, _ = _linear.step_modes("rates", rate * lam / size, counts)  # (L,), (L, L); loss < 1
        return np.log1p(-loss), modes

    stages = ((*step(rate), number) for rate, number in zip(rates, steps))
    return _after_stages(stages, lam * np.sqrt(counts), variance / size * np.sqrt(counts))


def adiabatic_error(
    rates: ArrayLike, durations: ArrayLike, spectrum: Spectrum | ArrayLike, *, student_variance: float = 0.0
) -> Array[" S"]:
    """What a slowly changing learning rate leaves in the power-law window:  ε_g ≈ ε_g^{η->0}(τ) / (1 - η/2).

    The error of a vanishing rate at the same  τ = Σ η_s d_s,  amplified by the noise of the present rate alone; a
    sudden change is forgotten only as a power of τ.

    Parameters
    ----------
    rates, durations : array_like (S,)
        0 <= η_s < 2 and how long it lasts, d_s >= 0 in units of α = examples / N.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

    Returns
    -------
    ndarray (S,)
        ε_g at the end of each stage.

    Examples
    --------
    >>> adiabatic_error([1.0, 0.5], [1.0, 2.0], [1.0]).round(6).tolist()  # e^{-2}/2 / 0.5,  e^{-4}/2 / 0.75
    [0.135335, 0.01221]
    """
    rates, durations, variance = _stages(rates, durations, student_variance, below=2)  # (S,), (S,), float
    spectrum = _arguments.spectrum(spectrum)
    flow = _linear.flow_error(np.cumsum(rates * durations), spectrum, 1.0, spectrum.eigenvalues.size)  # (S,)
    return variance * flow / (1 - rates / 2)

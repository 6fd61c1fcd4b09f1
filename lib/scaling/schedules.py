"""A linear student whose learning rate changes in stages: exact means of descent, and the law of slow changes.

The equations of :mod:`lib.scaling.linear_student`, with its arguments, hold within a stage, in which the learning rate
is η_s >= 0, `rates` (S,), for d_s >= 0 units of α, `durations` (S,).  Not in worschech2024, which keeps η constant.
"""

import numpy as np

from lib.common import checks
from lib.scaling import _arguments, _linear
from lib.scaling.linear_student import gradient_flow_error


def _stages(rates, durations, below=None):
    rates = checks.entries("rates", rates, at_least=0, below=below, ndim=1)  # (S,)
    if rates.size == 0:
        checks.fail("rates", "hold at least one stage", "none")
    return rates, checks.entries("durations", durations, at_least=0, shape=rates.shape)  # (S,), (S,)


def _after_stages(stages, v, w):
    """½ v·w after each of the stages (exponents, modes, duration):  w ← modes e^{exponents · duration} modesᵀ w."""
    errors = []
    with np.errstate(over="ignore", invalid="ignore"):
        for exponents, modes, duration in stages:
            w = modes @ (np.exp(exponents * duration) * (modes.T @ w))  # (L,)
            errors.append(v @ w / 2)
    return checks.finite("rates", np.array(errors))  # (S,)


def generalization_error(rates, durations, eigenvalues, *, multiplicities=None, student_variance=0.0):
    """Generalization error after every stage for N -> ∞ at a fixed number of eigenvalues, exact in the rates.

    ε_g = ½ vᵀ e^{S(η_s)d_s} ... e^{S(η_1)d_1} w(0)  with  S(η) = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k.  `rates`,
    `durations`, `eigenvalues`, `multiplicities`, `student_variance`: as in the module.  Returns ε_g after each stage,
    (S,).

    >>> generalization_error([0.5, 0.1], [1.0, 2.0], [1.0]).round(6).tolist()  # e^{-0.75}/2, then e^{-0.38} of it
    [0.236183, 0.161517]
    """
    rates, durations = _stages(rates, durations)  # (S,), (S,)
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    stages = ((*_linear.flow_modes(lam, fractions, rate)[:2], part) for rate, part in zip(rates, durations))
    root = np.sqrt(fractions)  # (L,)
    return _after_stages(stages, lam * root, _arguments.variance(student_variance) * root)


def finite_size_error(rates, durations, eigenvalues, *, multiplicities=None, student_variance=0.0):
    """Mean generalization error of descent on N Gaussian inputs after every stage, exact at every N and L.

    A step is that of :func:`lib.scaling.linear_student.finite_size_error`.  `rates`, `durations`: η_s, d_s; the end of
    a stage times N is rounded to whole steps; `eigenvalues`, `multiplicities`, `student_variance`: as in the module,
    integers m_k themselves.  Returns ε_g at the end of each stage, (S,).

    >>> finite_size_error([0.5, 1/3], [1.0, 1.0], [1.0]).round(6).tolist()  # one input: 1 - 2η + 3η² a step
    [0.375, 0.25]
    """
    rates, durations = _stages(rates, durations)  # (S,), (S,)
    lam, _ = _arguments.spectrum(eigenvalues, multiplicities)  # (L,)
    counts = _arguments.counts(multiplicities, lam.shape)  # (L,)
    size, root = counts.sum(), np.sqrt(counts)  # float, (L,)
    steps = np.diff(np.rint(np.cumsum(durations) * size), prepend=0)  # (S,)

    def step(rate):
        loss, modes, _ = _linear.step_modes("rates", rate * lam / size, counts)  # (L,), (L, L); loss < 1
        return np.log1p(-loss), modes

    stages = ((*step(rate), number) for rate, number in zip(rates, steps))
    return _after_stages(stages, lam * root, _arguments.variance(student_variance) / size * root)


def adiabatic_error(rates, durations, eigenvalues, *, multiplicities=None, student_variance=0.0):
    """What a slowly changing learning rate leaves in the power-law window:  ε_g ≈ ε_g^{η->0}(τ) / (1 - η/2).

    The error of a vanishing rate at the same  τ = Σ η_s d_s,  amplified by the noise of the present rate alone; a
    sudden change is forgotten only as a power of τ.  `rates` (S,): 0 <= η_s < 2; `durations`, `eigenvalues`,
    `multiplicities`, `student_variance`: as in the module.  Returns ε_g at the end of each stage, (S,).

    >>> adiabatic_error([1.0, 0.5], [1.0, 2.0], [1.0]).round(6).tolist()  # e^{-2}/2 / 0.5,  e^{-4}/2 / 0.75
    [0.135335, 0.01221]
    """
    rates, durations = _stages(rates, durations, below=2)  # (S,), (S,)
    given = {"multiplicities": multiplicities, "student_variance": student_variance}
    return gradient_flow_error(np.cumsum(rates * durations), eigenvalues, 1.0, **given) / (1 - rates / 2)  # (S,)

"""A linear student whose learning rate changes in stages: exact means of descent.

Not in worschech2024, which keeps η constant.
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments, _linear


def _after_stages(stages, v, w):
    """½ v·w after each of the stages (exponents, modes, duration):  w ← modes e^{exponents · duration} modesᵀ w."""
    errors = []
    with np.errstate(over="ignore", invalid="ignore"):
        for exponents, modes, duration in stages:
            w = modes @ (np.exp(exponents * duration) * (modes.T @ w))  # (L,)
            errors.append(v @ w / 2)
    return checks.finite("rates", np.array(errors))  # (S,)


@dataclass(frozen=True, eq=False)
class Staged:
    """A linear student, all trained, whose learning rate is constant in each of some stages.

    Within a stage the equations of :class:`lib.scaling.linear_student.LinearStudent` hold.  Errors (S,) are those at
    the end of each stage.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor where N → ∞.
    rates, durations : array_like (S,)
        η_s >= 0 and how long it lasts, d_s >= 0 in units of α = examples / N.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

    Examples
    --------
    >>> staged = Staged([1.0], [0.5, 0.1], [1.0, 2.0])
    >>> staged.generalization_error().round(6).tolist()  # e^{-0.75}/2, then e^{-0.38} of it
    [0.236183, 0.161517]
    """

    spectrum: Spectrum
    rates: Array[" S"]
    durations: Array[" S"]
    _: KW_ONLY
    student_variance: float = 0.0

    def __post_init__(self):
        spectrum, rates = _arguments.spectrum(self.spectrum), checks.entries("rates", self.rates, at_least=0, ndim=1)
        checks.fail_if(rates.size == 0, "rates", "hold at least one stage", "none at all")
        durations = checks.entries("durations", self.durations, at_least=0, shape=rates.shape)  # (S,)
        variance = checks.number("student_variance", self.student_variance, at_least=0)
        rates.flags.writeable = durations.flags.writeable = False
        checks.keep(self, spectrum=spectrum, rates=rates, durations=durations, student_variance=variance)

    def generalization_error(self) -> Array[" S"]:
        """Generalization error for N → ∞ at a fixed number of eigenvalues, exact in the rates.

        ε_g = ½ vᵀ e^{S(η_s)d_s} ... e^{S(η_1)d_1} w(0)  with  S(η) = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k,  w_k(0) =
        (1+σ_J²) √n_k.

        Returns
        -------
        ndarray (S,)

        Examples
        --------
        >>> Staged([1.0], [0.5, 0.0], [1.0, 2.0]).generalization_error().round(6).tolist()
        [0.236183, 0.236183]
        """
        lam, shares = self.spectrum.eigenvalues, self.spectrum.shares  # (L,), (L,)
        pairs = zip(self.rates, self.durations)
        stages = ((*_linear.flow_modes(lam, shares, rate)[:2], duration) for rate, duration in pairs)
        return _after_stages(stages, lam * np.sqrt(shares), (1 + self.student_variance) * np.sqrt(shares))

    def finite_size_error(self) -> Array[" S"]:
        """Mean generalization error of descent on N = Σ_k m_k Gaussian inputs, m_k whole, exact at every N and L.

        A step is that of :meth:`lib.scaling.linear_student.LinearStudent.finite_size_error`; stages end after whole
        steps, rounded.

        Returns
        -------
        ndarray (S,)

        Examples
        --------
        >>> Staged([1.0], [0.5, 1/3], [1.0, 1.0]).finite_size_error().round(6).tolist()  # 1 - 2η + 3η² a step
        [0.375, 0.25]
        """
        spectrum = _arguments.spectrum(self.spectrum, whole=True)
        lam, counts, size = spectrum.eigenvalues, spectrum.multiplicities, spectrum.dimension
        steps = np.diff(np.rint(np.cumsum(self.durations) * size), prepend=0)  # (S,)
        moves = (_linear.step_modes("rates", rate * lam / size, counts) for rate in self.rates)  # loss < 1
        stages = ((np.log1p(-loss), modes, number) for (loss, modes, _), number in zip(moves, steps))
        return _after_stages(stages, lam * np.sqrt(counts), (1 + self.student_variance) / size * np.sqrt(counts))

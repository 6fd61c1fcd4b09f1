"""A linear student over a power-law spectrum: its sums as integrals, in closed form.

Source: worschech2024, eqs. (9), (11), (50) to (53), (74) and (79).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gamma, gammainc, gammaincc

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments

ENDS = {"midpoint": 0.5, "endpoint": 0.0}  # what is added to the number of a level


@dataclass(frozen=True)
class PowerLaw:
    """L eigenspaces of equal dimensions,  λ_k = λ₊ k^{-(1+β)}  with mean one, and what a linear student makes of them.

    Errors are those of :class:`lib.scaling.linear_student.LinearStudent` at small η and σ_J² = 0: all of them scale
    with 1 + σ_J².  α = examples / N.

    Parameters
    ----------
    levels : int
        L >= 1.
    tail_index : float
        β > 0.

    Attributes
    ----------
    spectrum : Spectrum
        The eigenvalues (L,).
    top : float
        λ₊ = L / Σ_k k^{-(1+β)},  the largest of them.
    missing_tail : float
        λ₊ (L+1/2)^{-β}/(2βL):  the integral of ½ λ(k)/L beyond the last level, which a power law without end adds.

    Examples
    --------
    >>> law = PowerLaw(2, 1.0)
    >>> law.spectrum.eigenvalues.tolist(), law.top, round(law.missing_tail, 6)
    ([1.6, 0.4], 1.6, 0.16)
    """

    levels: int
    tail_index: float

    def __post_init__(self):
        levels, beta = checks.integer("levels", self.levels), checks.number("tail_index", self.tail_index, above=0)
        checks.keep(self, levels=levels, tail_index=beta)

    @cached_property
    def spectrum(self) -> Spectrum:
        """λ_k (L,), with mean one."""
        return Spectrum.power_law(self.levels, decay=1 + self.tail_index).normalized()

    @property
    def top(self) -> float:
        """λ₊, the largest eigenvalue."""
        return float(self.spectrum.eigenvalues[0])

    @property
    def missing_tail(self) -> float:
        """½ ∫ λ(k) dk/L  from L + 1/2 to infinity."""
        beta = self.tail_index
        return float(self.top * (self.levels + 0.5) ** -beta / (2 * beta * self.levels))

    def _falling(self, first, last):
        """½ ∫ λ(k) dk/L  between two ends, without cancellation, for β → 0 the logarithm of last/first."""
        beta = self.tail_index
        return -self.top / (2 * self.levels) * first**-beta * np.expm1(-beta * np.log(last / first)) / beta  # (...)

    @checks.one_or_many
    def flow_error(
        self, times: ArrayLike, learning_rate: float, *, trained: int | None = None, ends: str = "midpoint"
    ) -> float | Array[" n"]:
        """Generalization error for η → 0 at fixed ηα as an integral:  two incomplete Gamma functions and a tail.

        ε_g ≈ λ₊/(2L) {c^{-s}/(1+β) [Γ(s, c b^{-(1+β)}) - Γ(s, c a^{-(1+β)})] + (b^{-β} - z^{-β})/β},  c = 2ηλ₊α,
        s = β/(1+β):  worschech2024 eqs. (9), (50) and, corrected, (11) and (79), where b is z, which counts frozen
        modes twice.

        Parameters
        ----------
        times : float or array_like (n,)
            α > 0, increasing.
        learning_rate : float
            η > 0.
        trained : int, optional
            How many of the L eigenspaces are trained, 1 <= N_l <= L; by default all.
        ends : {"midpoint", "endpoint"}
            "midpoint", a = 1/2, b = N_l + 1/2, z = L + 1/2, is closer to the sum than a = 1, b = N_l >= 2, z = L.

        Returns
        -------
        float or ndarray (n,)

        Examples
        --------
        >>> from lib.scaling.linear_student import LinearStudent
        >>> law = PowerLaw(1000, 1.0)
        >>> exact = LinearStudent(law.spectrum, 0.1, trained=100).flow_error(30.0)
        >>> round(law.flow_error(30.0, 0.1, trained=100) / exact, 5)
        1.0
        """
        times, rate = checks.times("times", times), checks.number("learning_rate", learning_rate, above=0)
        checks.fail_if(times[0] == 0, "times", "be > 0", times)
        shift, last = ENDS[checks.one_of("ends", ends, ENDS)], _arguments.trained(trained, self.levels)
        if last == 1 and not shift:
            name = "levels" if self.levels == 1 else "trained"
            checks.fail(name, "be at least 2 between endpoints, which coincide for one level", last)
        power, begin, end = 1 + self.tail_index, 1 - shift, last + shift
        s, c = self.tail_index / power, 2 * rate * self.top * times  # float, (n,)
        slow, fast = c * end**-power, c * begin**-power  # (n,), (n,)
        late, early = gammaincc(s, slow) - gammaincc(s, fast), gammainc(s, fast) - gammainc(s, slow)  # (n,), (n,)
        bracket = np.where(gammaincc(s, slow) > 0.5, early, late)  # (n,): the smaller terms, of the same difference
        learned = self.top / (2 * self.levels * power) * gamma(s) * c**-s * bracket  # (n,)
        return learned + self._falling(end, self.levels + shift)

    def window(self, learning_rate: float) -> tuple[float, float]:
        """Times between which the error is a power of time,  α_lo = 1/(2ηλ₊) ≪ α ≪ α_hi.

        A finite L lowers it by the part (α/α_hi)^s, to first order, with  α_hi = α_lo L^{1+β} Γ(1+s)^{1/s},
        s = β/(1+β):  worschech2024 eqs. (51) to (53).

        Parameters
        ----------
        learning_rate : float
            η > 0.

        Returns
        -------
        α_lo, α_hi : float

        Examples
        --------
        >>> lo, hi = PowerLaw(128, 1.0).window(0.01)
        >>> bool(np.isclose(hi / lo, 128**2 * np.pi / 4))
        True
        """
        s = self.tail_index / (1 + self.tail_index)
        start = 1 / (2 * checks.number("learning_rate", learning_rate, above=0) * self.top)
        nodes, weights = np.polynomial.legendre.leggauss(20)  # (20,), (20,)
        power = weights / 2 @ digamma(1 + s * (1 + nodes) / 2)  # ln Γ(1+s)/s, also for s → 0
        return start, float(start * self.levels ** (1 + self.tail_index) * np.exp(power))

    @checks.one_or_many
    def effective_rank(self, times: ArrayLike, learning_rate: float) -> float | Array[" n"]:
        """How many principal weights, learned for good, leave as a tail the error that there is at a time.

        N_eff = c^{1/(1+β)} Γ(1+s)^{-1/β} = L (α/α_hi)^{1/(1+β)},  c = 2ηλ₊α,  s = β/(1+β):  λ₊ N_eff^{-β}/(2βL) is the
        leading power of the error for 1 ≪ N_eff ≪ L.  Not in worschech2024.

        Parameters
        ----------
        times : float or array_like (n,)
            α >= 0, increasing.
        learning_rate : float
            η > 0.

        Returns
        -------
        float or ndarray (n,)
            No whole number; L at the end of the :meth:`window`.

        Examples
        --------
        >>> law = PowerLaw(10**6, 1.0)
        >>> rank = law.effective_rank(50.0, 0.01)
        >>> round(law.flow_error(50.0, 0.01) / law.tail(rank, ends="endpoint"), 3)
        1.0
        """
        times, end = checks.times("times", times), self.window(learning_rate)[1]
        return self.levels * (times / end) ** (1 / (1 + self.tail_index))

    def tail(self, trained: ArrayLike, *, ends: str = "midpoint") -> float | Array["..."]:
        """Error that is left at small η by the first weights, as an integral:  λ₊/(2βL) (N_l^{-β} - L^{-β}).

        Parameters
        ----------
        trained : float or array_like (...)
            How many eigenspaces are trained, 1 <= N_l <= L.
        ends : {"midpoint", "endpoint"}
            "midpoint" takes N_l + 1/2 and L + 1/2, closer to the sum; "endpoint" is worschech2024 eq. (74).

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> law = PowerLaw(256, 0.75)
        >>> exact = law.spectrum.eigenvalues[50:].sum() / 512
        >>> bool(abs(law.tail(50) / exact - 1) < 1e-3)
        True
        """
        trained = checks.entries("trained", trained, at_least=1, at_most=self.levels)  # (...)
        shift = ENDS[checks.one_of("ends", ends, ENDS)]
        return checks.plain(self._falling(trained + shift, self.levels + shift))

    def best_split(self, budget: ArrayLike, learning_rate: float) -> tuple[float | Array["..."], float | Array["..."]]:
        """How many weights to train at a given product of weights and time, and the error then.

        With C = N_l α the least error is at  N_l* = (2ηλ₊C/z)^{1/(2+β)},  z = 2ηλ_{N_l}α the only root of  e^{-z} +
        β/((1+β)(2+β)) u = (1+β)/(2+β),  u = z^{-s} Γ(s, z),  s = β/(1+β),  and  ε* = λ₊/(2L) [z^{β/(2+β)} (1/β +
        u/(1+β)) (2ηλ₊C)^{-β/(2+β)} - L^{-β}/β].  For sums that are integrals, 1 ≪ N_l <= L; not in worschech2024.

        Parameters
        ----------
        budget : float or array_like (...)
            C > 0.
        learning_rate : float
            η > 0.

        Returns
        -------
        N_l*, ε* : float or ndarray (...)
            N_l* is no whole number, and refused above L.

        Examples
        --------
        >>> from lib.scaling.linear_student import LinearStudent
        >>> law = PowerLaw(20000, 0.5)
        >>> size, error = law.best_split(1e4, 0.01)
        >>> n = round(size)
        >>> flow = lambda n: LinearStudent(law.spectrum, 0.01, trained=n).flow_error(1e4 / n)
        >>> [round(error / flow(m), 2) for m in (n // 2, n, 2 * n)]
        [0.81, 1.0, 0.87]
        """
        budget, rate = checks.entries("budget", budget, above=0), checks.number("learning_rate", learning_rate, above=0)
        beta, top = self.tail_index, self.top
        s = beta / (1 + beta)

        def rest(z):
            return z**-s * gamma(s) * gammaincc(s, z)

        last = (1 + beta) / (2 + beta)
        z = brentq(lambda z: np.exp(-z) + s / (2 + beta) * rest(z) - last, 1e-9, 10.0, xtol=1e-14)
        size = (2 * rate * top * budget / z) ** (1 / (2 + beta))  # (...)
        if np.any(size > self.levels):
            checks.fail("budget", f"ask for no more than the {self.levels} weights that there are", budget)
        learned = top / (2 * self.levels) * size**-beta * rest(z) / (1 + beta)  # (...)
        return checks.plain(size), checks.plain(learned + self._falling(size, self.levels))

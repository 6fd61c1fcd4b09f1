"""One-pass learning of a linear teacher by a linear student with structured inputs: exact at any learning rate.

K students and M teachers reduce to one of each with the rate ηM/K and the variance σ_J² M/K.  Source: worschech2024,
eqs. (5) to (11), (50) to (79).
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments, _linear


def _driven(times, exponents, change, begin, drive, held):
    """½ [Σ_j b_j e^{x_jt} + Σ_j d_j (e^{x_jt} - 1)/c_j + h], (..., n); the last factor is t where c_j is zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.outer(exponents, times)  # (N_l, n)
        sums = np.tile(times, (len(change), 1))  # (N_l, n)
        np.divide(np.expm1(grown), change[:, None], out=sums, where=change[:, None] != 0)
        return checks.finite("learning_rate", (begin @ np.exp(grown) + drive @ sums + held[..., None]) / 2)


@dataclass(frozen=True, eq=False)
class LinearStudent:
    """A linear student of a linear teacher, of which only the first eigenspaces of the inputs may be trained.

    e_k = |P_k(J - B)|²/N starts at (1 + σ_J²) n_k, n_k = m_k/N, and for N → ∞ with L fixed obeys  de_k/dα = -2ηλ_k e_k
    + η²λ_k n_k Σ_j λ_j e_j,  ε_g = ½ Σ_k λ_k e_k.  Divided by √n_k the matrix is symmetric: one `eigh` serves every α.
    Eigenspaces that are frozen keep their error and act on the others as label noise.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 of any mean and multiplicities m_k, up to a factor where N → ∞; trained ones first.
    learning_rate : float
        η >= 0.  With mean one, and all trained, the error decays for η < 2 at N → ∞, whatever the spectrum.
    trained : int, optional
        How many of the L eigenspaces are trained, 1 <= N_l <= L; by default all.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start; those of B have variance one.

    Examples
    --------
    >>> student = LinearStudent([1.0], 0.5)
    >>> student.generalization_error([0.0, 1.0]).round(6).tolist()  # e^{-(2η - η²)α} / 2
    [0.5, 0.236183]
    """

    spectrum: Spectrum
    learning_rate: float
    _: KW_ONLY
    trained: int | None = None
    student_variance: float = 0.0

    def __post_init__(self):
        spectrum = _arguments.spectrum(self.spectrum, normalized=False)
        trained = _arguments.trained(self.trained, spectrum.eigenvalues.size)
        rate = checks.number("learning_rate", self.learning_rate, at_least=0)
        variance = checks.number("student_variance", self.student_variance, at_least=0)
        checks.keep(self, spectrum=spectrum, learning_rate=rate, trained=trained, student_variance=variance)

    @property
    def _pace(self):
        """λ_k (L,) where trained, zero where frozen."""
        lam = self.spectrum.eigenvalues
        return np.where(np.arange(lam.size) < self.trained, lam, 0.0)

    def _flow_modes(self):
        lam, shares, n = self.spectrum.eigenvalues, self.spectrum.shares, self.trained
        return _linear.flow_modes(lam[:n], shares[:n], self.learning_rate)

    @checks.one_or_many
    def generalization_error(self, times: ArrayLike) -> float | Array[" n"]:
        """Generalization error for N → ∞ at a fixed number of eigenvalues, exact in the learning rate.

        ε_g = ½ vᵀ w + ½ h,  w(α) = e^{Sα} w(0) + η² h ∫_0^α e^{Su} v du  with  S = -2η diag(λ) + η² v vᵀ,  v_k = λ_k
        √n_k,  w_k = e_k/√n_k  of the trained and  h = (1+σ_J²) Σ_{k>N_l} n_kλ_k  of the frozen eigenspaces:
        worschech2024 eq. (6), corrected.

        Parameters
        ----------
        times : float or array_like (n,)
            α = examples / N >= 0, increasing.

        Returns
        -------
        float or ndarray (n,)

        Examples
        --------
        >>> student = LinearStudent([1.5, 0.5], 1.0, trained=1)
        >>> student.generalization_error([0.0, 1e3]).round(6).tolist(), round(student.floor(), 6)
        ([0.5, 0.2], 0.2)
        """
        times, (rates, modes, v) = checks.times("times", times), self._flow_modes()  # (N_l,), (N_l, N_l), (N_l,)
        start, reach, n = (1 + self.student_variance) * np.sqrt(self.spectrum.shares), v @ modes, self.trained
        held = (self.spectrum.eigenvalues * np.sqrt(self.spectrum.shares))[n:] @ start[n:]
        return _driven(times, rates, rates, (start[:n] @ modes) * reach, self.learning_rate**2 * held * reach**2, held)

    @checks.one_or_many
    def flow_error(self, times: ArrayLike) -> float | Array[" n"]:
        """Generalization error for η → 0 at fixed ηα.

        ε_g = ½ (1 + σ_J²) [Σ_{k≤N_l} n_k λ_k e^{-2ηλ_kα} + Σ_{k>N_l} n_k λ_k]:  worschech2024 eqs. (8) and (10).

        Parameters
        ----------
        times : float or array_like (n,)
            α = examples / N >= 0, increasing.

        Returns
        -------
        float or ndarray (n,)

        Examples
        --------
        >>> LinearStudent([1.5, 0.5], 0.1, trained=1).flow_error([0.0, 1e9]).tolist()
        [0.5, 0.125]
        """
        decay = np.exp(-2 * self.learning_rate * np.outer(checks.times("times", times), self._pace))  # (n, L)
        return (1 + self.student_variance) / 2 * decay @ (self.spectrum.shares * self.spectrum.eigenvalues)

    @checks.one_or_many
    def local_exponent(self, times: ArrayLike) -> float | Array[" n"]:
        """Slope  d ln ε_g / d ln α  of :meth:`flow_error`, without any fit, accurate where the error underflows.

        Over a power law it tends to -β/(1+β), worschech2024 eq. (9), slowly: the correction at ηλ₊α = z L^{1+β} is of
        order z^{β/(1+β)}.

        Parameters
        ----------
        times : float or array_like (n,)
            α = examples / N >= 0, increasing.

        Returns
        -------
        float or ndarray (n,)
            <= 0.

        Examples
        --------
        >>> LinearStudent([1.0], 0.5).local_exponent([0.5, 2.0]).tolist()  # a single exponential: -2ηα
        [-0.5, -2.0]
        """
        times, double, pace = checks.times("times", times), 2 * self.learning_rate, self._pace
        decay = np.exp(-double * np.outer(times, pace - pace.min()))  # (n, L)
        weights = self.spectrum.shares * self.spectrum.eigenvalues * decay  # (n, L)
        return -double * times * (weights @ pace) / weights.sum(axis=1)

    def modes(self) -> tuple[Array[" L"], Array[" L"]]:
        """Shifted eigenvalues λ̃_j and amplitudes b_j of  ε_g = (1 + σ_J²)/(2 - η) Σ_j b_j λ̃_j e^{-2ηλ̃_jα}.

        1 = η Σ_k n_k λ_k² / (2(λ_k - λ̃_j)),  Σ_j b_j = 1,  Σ_j b_j λ̃_j = (2 - η)/2:  worschech2024 eqs. (54) to (57),
        corrected.  For mean one, eigenvalues that all differ, all trained, and 0 < η < 2.

        Returns
        -------
        λ̃_j, b_j : ndarray (L,)

        Examples
        --------
        >>> [part.tolist() for part in LinearStudent([1.0], 0.5).modes()]
        [[0.75], [1.0]]
        """
        lam, shares = _arguments.spectrum(self.spectrum).eigenvalues, self.spectrum.shares  # (L,), (L,)
        if len(np.unique(lam)) < lam.size:
            checks.fail("spectrum", "have eigenvalues that all differ: merge equal ones and add their counts", lam)
        checks.fail_if(self.trained < lam.size, "trained", f"be {lam.size}, all, for the modes", self.trained)
        rate = checks.number("learning_rate", self.learning_rate, above=0, below=2)
        rates, vectors, v = self._flow_modes()
        shifted = -rates / (2 * rate)  # (L,)
        # What mode j adds to ε_g, from the eigenvectors: the differences λ_k - λ̃_j of the printed form lose digits.
        return shifted, (2 - rate) / 2 * (v @ vectors) * (vectors.T @ np.sqrt(shares)) / shifted

    @checks.one_or_many
    def finite_size_error(self, times: ArrayLike, *, squares: ArrayLike | None = None) -> float | Array["... n"]:
        """Mean generalization error of stochastic gradient descent on N Gaussian inputs, exact at every N, L and η.

        With a_k = ηλ_k/N a step changes the means of the trained e_k to  (1 - 2a_k + 2a_k²) e_k + a_k m_k Σ_j a_j e_j.

        Parameters
        ----------
        times : float or array_like (n,)
            α = examples / N >= 0, increasing, rounded to whole steps;  N = Σ_k m_k with whole m_k.
        squares : array_like (L,) or (replicas, L), optional
            Mean square >= 0 of the entries of J - B in each eigenspace at the start; by default the expectation 1 +
            σ_J², and only at σ_J² = 0.

        Returns
        -------
        float or ndarray (n,), (replicas,) or (replicas, n)
            Mean over the examples, and over the starts if none are given.

        Examples
        --------
        >>> LinearStudent([1.0], 0.5).finite_size_error([0.0, 1.0]).tolist()  # one input: 1 - 2η + 3η² a step
        [0.5, 0.375]
        >>> student = LinearStudent([1.5, 0.5], 0.4, trained=1)
        >>> student.finite_size_error([0.0, 0.5, 1e3], squares=[1.0, 1.0]).round(6).tolist()
        [0.5, 0.3875, 0.159091]
        """
        times, spectrum = checks.times("times", times), _arguments.spectrum(self.spectrum, normalized=False, whole=True)
        lam, counts, size, n = spectrum.eigenvalues, spectrum.multiplicities, spectrum.dimension, self.trained
        start, root = 1 + self.student_variance, np.sqrt(counts)  # float, (L,)
        if squares is not None:
            checks.fail_if(start != 1, "student_variance", "be left at 0 where squares are given", start - 1)
            start = checks.entries("squares", squares, at_least=0)  # (L,) or (replicas, L)
            if start.ndim not in (1, 2) or start.shape[-1] != lam.size or start.size == 0:
                checks.fail("squares", f"have shape (L,) or (replicas, L) with L = {lam.size}", f"shape {start.shape}")
        start, share = start * spectrum.shares, self.learning_rate * lam / size  # (..., L), (L,)
        # (N_l,), (N_l, N_l), (N_l,); loss < 1
        loss, modes, v = _linear.step_modes("learning_rate", share[:n], counts[:n])
        reach, held = (lam * root)[:n] @ modes, start[..., n:]  # (N_l,), (..., L - N_l)
        begin = (start / root)[..., :n] @ modes * reach  # (..., N_l)
        drive = np.multiply.outer(held @ share[n:], v @ modes * reach)  # (..., N_l)
        return _driven(np.rint(times * size), np.log1p(-loss), -loss, begin, drive, held @ lam[n:])

    def floor(self, *, finite: bool = False) -> float:
        """Error that is left at the end at any learning rate: the frozen tail acts as label noise.

        ε_∞(η) = ε_∞(0) / (1 - (η/2) Σ_{k≤N_l} n_kλ_k),  ε_∞(0) = ½(1+σ_J²) Σ_{k>N_l} n_kλ_k,  for N → ∞, and with
        Σ_{k≤N_l} m_k a_k/{2(1 - a_k)},  a_k = ηλ_k/N,  at finite N; η → 0 is worschech2024 eq. (74).  Above the
        threshold of the trained part it is refused.

        Parameters
        ----------
        finite : bool
            True at N = Σ_k m_k, False for N → ∞ at fixed shares n_k = m_k/N.

        Returns
        -------
        float

        Examples
        --------
        >>> students = [LinearStudent([1.5, 0.5], rate, trained=1) for rate in (0.0, 1.0)]
        >>> [round(student.floor(), 6) for student in students], students[0].floor(finite=True)
        ([0.125, 0.2], 0.125)
        """
        lam, weights = self._pace, self.spectrum.eigenvalues * self.spectrum.shares  # (L,), (L,)
        part = self.learning_rate * lam / self.spectrum.dimension * checks.boolean("finite", finite)  # (L,)
        total = np.inf if part.max() >= 1 else self.learning_rate / 2 * self.spectrum.shares @ (lam / (1 - part))
        checks.fail_if(total >= 1, "learning_rate", "be smaller: the trained part grows", self.learning_rate)
        return float((1 + self.student_variance) / 2 * weights[self.trained :].sum() / (1 - total))


def finite_size_threshold(spectrum: Spectrum | ArrayLike) -> float:
    """Learning rate at which :meth:`LinearStudent.finite_size_error`, all eigenspaces trained, stops decaying.

    The smallest root of  Σ_k m_k a_k / (2(1 - a_k)) = 1,  a_k = ηλ_k/N:  2 for N → ∞ at fixed L, clearly less at L = N.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and whole multiplicities m_k, N = Σ_k m_k.

    Returns
    -------
    float
        η_c.

    Examples
    --------
    >>> round(finite_size_threshold(Spectrum([1.0], [10])), 12)  # 2N / (N + 2)
    1.666666666667
    """
    spectrum = _arguments.spectrum(spectrum, whole=True)
    lam, counts, size = spectrum.eigenvalues, spectrum.multiplicities, spectrum.dimension

    def excess(rate):
        part = rate * lam / size  # (L,)
        return counts @ (part / (1 - part)) / 2 - 1

    pole = size / lam.max()  # excess grows from -1 at η = 0 to infinity here; and excess(2) >= 0
    top = min(2.0, pole * (1 - 1e-15))
    return float(brentq(excess, 0.0, top, xtol=1e-15, rtol=1e-14)) if excess(top) > 0 else top

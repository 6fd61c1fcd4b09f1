"""The end of learning of a soft committee machine with structured inputs: how the error vanishes, and at which rates.

Source: worschech2024, eqs. (16), (17) and (118) to (122).  :mod:`lib.scaling.near_teacher` is the same at finite N.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.foundations import stability
from lib.scaling import _arguments


@dataclass(frozen=True, eq=False)
class Groups:
    """The two groups of exponentials that make up the late error, and the slope of their sum on logarithmic axes.

    Parameters
    ----------
    fast, slow : ndarray (n,)
        Parts of ε_g due to the sum of the units, rates 2ηγ₊λ_k/M, γ₊ = Var g' + M<g'>², and to their differences,
        γ₋ = Var g' (zero for M = 1), for independent standard normal fields.
    local_exponent : ndarray (n,)
        d ln ε_g / d ln α.
    """

    fast: Array[" n"]
    slow: Array[" n"]
    local_exponent: Array[" n"]


@dataclass(frozen=True, eq=False)
class LatePhase:
    """Students near their teachers: K = M units, B P_k Bᵀ/N = n_k 1, student i near teacher i,  Δ_i = J_i - B_i.

    Outside the teachers' span the error needs only  y_k and z_k, the mean diagonal and off-diagonal entry of  E^k =
    Δ P_k Δᵀ/N  (worschech2024 eqs. (118) to (120)):

        dy_k/dα = -ηaλ_k [2y_k + √3(M-1) z_k] + η²/M λ_k n_k E_d,            a = 2/(√3 π M),
        dz_k/dα = -ηaλ_k [√3 y_k + (2 + √3(M-2)) z_k] + η²/M λ_k n_k E_o.

    Inside, J_i = Σ_kn c^k_in P_k B_n with units that are all alike,  R^k - T^k  has the diagonal and off-diagonal
    entries r_k, s_k, E^k = (R^k - T^k)²/n_k is of second order, and the eigenspaces do not decay by themselves (eqs.
    (118), (119), (121) at  q_k = 2r_k, c_k = 2s_k): with  μ = √3(M-1)/2,  ω = √3(M-2)/2,  r = Σ_k λ_k r_k,  s = Σ_k
    λ_k s_k,

        dr_k/dα = -ηaλ_k [r_k + μ s_k - n_k(⅔r + ½μ s)],    ds_k/dα = -ηaλ_k [½√3 r_k + (1+ω) s_k - ¼√3 n_k r].

    A student that learns from a small start is almost such a student.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor.
    units : int
        M >= 1.
    learning_rate : float
        η > 0.

    Examples
    --------
    >>> LatePhase([1.0], 1, 1.0).generalization_error([0.0, 1.0], [1e-4], [0.0]).round(9).tolist()  # M = 1: e^{-2ηaα}
    [1.8378e-05, 8.811e-06]
    """

    spectrum: Spectrum
    units: int
    learning_rate: float

    def __post_init__(self):
        spectrum, units = _arguments.spectrum(self.spectrum), checks.integer("units", self.units)
        rate = checks.number("learning_rate", self.learning_rate, above=0)
        checks.keep(self, spectrum=spectrum, units=units, learning_rate=rate)

    def _pairs(self, times, diagonal, off_diagonal):
        shape = self.spectrum.eigenvalues.shape
        y = checks.array("diagonal", diagonal, shape=shape)  # (L,)
        return checks.times("times", times), y, checks.array("off_diagonal", off_diagonal, shape=shape)  # (L,)

    @property
    def _pace(self):
        return self.learning_rate * 2 / (np.sqrt(3) * np.pi * self.units)  # ηa

    def _matrix(self, inside):
        """Symmetric matrix (2L, 2L) of the pairs (y_k, √(M-1) z_k)/√n_k, or of r_k, s_k; (L, L) for M = 1.

        -ηa diag(λ) ⊗ 𝒢 + (η²/M²) v vᵀ ⊗ 𝒞,  v_k = λ_k √n_k,  with drift 𝒢 and noise 𝒞 of one eigenvalue; inside with
        𝒢/2 and what the fields feed back in place of 𝒞.
        """
        (drift, noise), modes = stability.near_teacher(self.units), min(self.units, 2)
        if inside:
            side = np.sqrt(3 * (self.units - 1)) / 4
            drift, feedback = drift / 2, self._pace * np.array([[2 / 3, side], [side, 0]])[:modes, :modes]
        else:
            feedback = (self.learning_rate / self.units) ** 2 * noise
        lam = self.spectrum.eigenvalues
        v = lam * np.sqrt(self.spectrum.shares)  # (L,)
        return np.kron(np.outer(v, v), feedback) - self._pace * np.kron(np.diag(lam), drift)

    def _moved(self, times, own, other, inside):
        """The pairs (n, L, modes) of :meth:`_matrix` at the times, times √n_k, from y, z or r, s at the start."""
        modes, root = min(self.units, 2), np.sqrt(self.spectrum.shares)[:, None]  # int, (L, 1)
        start = np.stack([own, np.sqrt(self.units - 1) * other], axis=1)[:, :modes] / root  # (L, modes)
        values, frame = eigh(self._matrix(inside))  # (2L,), (2L, 2L)
        moved = np.exp(np.outer(times, values)) * (start.ravel() @ frame) @ frame.T  # (n, 2L)
        return moved.reshape(len(times), len(root), modes) * root

    def _decays(self, times, y, z):
        """Terms (n, L) of the closed form and their rates (L,), first of the fast group, then of the slow one."""
        m, lam, found = self.units, self.spectrum.eigenvalues, []
        groups = (2 + np.sqrt(3) * (m - 1), y + (m - 1) * z), (2 - np.sqrt(3), (m - 1) * (y - z))
        for gamma, start in groups:
            pace = self._pace * gamma * lam  # (L,)
            found.append((np.exp(-np.outer(times, pace)) * (gamma * lam * start / (2 * np.sqrt(3) * np.pi * m)), pace))
        return found

    @checks.one_or_many
    def generalization_error(
        self, times: ArrayLike, diagonal: ArrayLike, off_diagonal: ArrayLike, *, second_order: bool = False
    ) -> float | Array[" n"]:
        """Generalization error outside the span, to first order in E^k; in closed form to first order in η.

        ε_g = 1/(2√3πM) Σ_k λ_k [(M-1)γ_s u_k e^{-ηaγ_sλ_kα} + γ_f v_k e^{-ηaγ_fλ_kα}],  u = y - z,  v = y + (M-1)z,
        γ_s = 2 - √3,  γ_f = 2 + √3(M-1)  (aγ = 2γ∓/M of :class:`Groups`):  worschech2024 eqs. (17), (121), (122),
        corrected.  With the noise of single examples all y and z mix, by the matrix of :meth:`rates`.

        Parameters
        ----------
        times : float or array_like (n,)
            α >= 0, increasing, since y_k and z_k were as given.
        diagonal, off_diagonal : array_like (L,)
            y_k and z_k; the latter is of no effect for M = 1.
        second_order : bool
            True adds the η² term, for deviations outside the teachers' span.

        Returns
        -------
        float or ndarray (n,)

        Examples
        --------
        >>> round(LatePhase([1.0], 1, 1.0).generalization_error(0.0, [1e-4], [0.0], second_order=True), 9)  # y/(√3 π)
        1.8378e-05
        """
        times, y, z = self._pairs(times, diagonal, off_diagonal)  # (n,), (L,), (L,)
        if not checks.boolean("second_order", second_order):
            return sum(terms.sum(axis=1) for terms, _ in self._decays(times, y, z))
        weights = np.array([2 * np.sqrt(3), 3 * np.sqrt(self.units - 1)])[: min(self.units, 2)] / (
            6 * np.pi
        )  # (modes,)
        return np.tensordot(self._moved(times, y, z, False), np.outer(self.spectrum.eigenvalues, weights))  # (n,)

    @checks.one_or_many
    def groups(self, times: ArrayLike, diagonal: ArrayLike, off_diagonal: ArrayLike) -> Groups:
        """The fast and the slow part of :meth:`generalization_error` at first order in η, and their sum's exponent.

        Parameters
        ----------
        times : float or array_like (n,)
            α >= 0, increasing, since y_k and z_k were as given; refused where the error is zero or underflows.
        diagonal, off_diagonal : array_like (L,)
            y_k and z_k; the latter is of no effect for M = 1.

        Returns
        -------
        Groups
            With floats for a single time.

        Examples
        --------
        >>> part = LatePhase([1.5, 0.5], 2, 0.1).groups([1.0, 1e4], [0.5, 0.5], [0.0, 0.0])  # nothing learned yet
        >>> (part.fast > part.slow).tolist()  # the fast group is the larger, and ends first
        [True, False]
        """
        times, y, z = self._pairs(times, diagonal, off_diagonal)  # (n,), (L,), (L,)
        decays = self._decays(times, y, z)
        parts = [terms.sum(axis=1) for terms, _ in decays]  # (n,), (n,)
        total = parts[0] + parts[1]  # (n,)
        if np.any(total <= 0):
            checks.fail("times", "lie where the error is positive: y_k >= 0, not all zero, and no underflow", times)
        slope = -sum(terms @ pace for terms, pace in decays)  # (n,)
        return Groups(*parts, times * slope / total)

    def rates(self) -> Array[" n"]:
        """Growth rates of y and z outside the span, with the noise of single examples.

        worschech2024 eqs. (118) to (120).  All decay below :func:`lib.foundations.stability.critical_learning_rate`,
        whatever the spectrum.

        Returns
        -------
        ndarray (2L,), (L,) for M = 1
            Ascending.

        Examples
        --------
        >>> bool(abs(LatePhase([1.0], 1, np.pi * np.sqrt(5 / 3)).rates()[0]) < 1e-12)  # at the threshold of M = 1
        True
        """
        return eigh(self._matrix(inside=False), eigvals_only=True)

    @checks.one_or_many
    def span_error(
        self, times: ArrayLike, diagonal: ArrayLike, off_diagonal: ArrayLike, *, squares: bool = True
    ) -> float | Array[" n"]:
        """Generalization error of students inside the span, to second order in  R - T  and first order in η.

        ε_g = (1/π) [(y - ⅔r²)/√3 + ½(M-1)(z - rs)],  y = Σ_k λ_k [r_k² + (M-1)s_k²]/n_k,  z = Σ_k λ_k [2r_ks_k +
        (M-2)s_k²]/n_k.

        Parameters
        ----------
        times : float or array_like (n,)
            α >= 0, increasing, since r_k and s_k were as given.
        diagonal, off_diagonal : array_like (L,)
            r_k and s_k; the latter is of no effect for M = 1.
        squares : bool
            False leaves out r² and rs, as worschech2024 eq. (121) does.

        Returns
        -------
        float or ndarray (n,)

        Examples
        --------
        >>> [round(LatePhase([1.0], 1, 0.1).span_error(0.0, [0.1], [0.0], squares=s), 9) for s in (True, False)]
        [0.000612588, 0.001837763]
        """
        times, own, other = self._pairs(times, diagonal, off_diagonal)  # (n,), (L,), (L,)
        moved, m = self._moved(times, own, other, True), self.units  # (n, L, modes)
        own, other = moved[..., 0], moved[..., 1] / np.sqrt(m - 1) if m > 1 else 0 * moved[..., 0]  # (n, L), (n, L)
        lam, shares = self.spectrum.eigenvalues, self.spectrum.shares  # (L,), (L,)
        y = (own**2 + (m - 1) * other**2) / shares @ lam  # (n,)
        z = (2 * own * other + (m - 2) * other**2) / shares @ lam  # (n,)
        r, s = (own @ lam, other @ lam) if checks.boolean("squares", squares) else (0.0, 0.0)  # (n,), (n,)
        return ((y - 2 / 3 * r**2) / np.sqrt(3) + (m - 1) / 2 * (z - r * s)) / np.pi

"""Descent of an erf committee close to its teacher: exact second moments at any N, for any spectrum and any teacher.

:mod:`lib.scaling.late_phase` is the limit N → ∞ for orthogonal teachers.  The step is worschech2024, eq. (3).
"""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from lib.common import checks
from lib.common.linalg import largest
from lib.common.shapes import Array, ArrayLike

SINGULAR = 1e-13  # rates of the drift below this part of the largest are zero up to rounding


@dataclass(frozen=True, eq=False)
class NearTeacher:
    """K = M units as in :mod:`lib.foundations.committee`, every student near its own teacher.

    To first order in  Δ_i = J_i - B_i  a step is linear,  Δ_i ← Δ_i - η/(MN) g'(y_i) Σ_n g'(y_n)(Δ_n·ξ) ξ,  and C_nm =
    E[Δ_nΔ_mᵀ] obeys a closed map: the factors g' of the fields  y = Bξ/√N  turn the law of ξ into another Gaussian one,
    N(0, Σ_w) of :meth:`tilt`,

        C_ij ← C_ij - η (𝓗C + C𝓗)_ij + η²/(MN)² Σ_nm Z_w [Σ_w Tr(Σ_w C_nm) + Σ_w (C_nm + C_nmᵀ) Σ_w],

    w counting ijnm, and  𝓗_in = Z_w Σ_w/(MN), w counting i, n.  Rows of second moments (MN, MN) run over the N
    components of unit 1, then of unit 2, ....

    Parameters
    ----------
    teacher : array_like (M, N)
        B, in the eigenbasis of Σ.
    eigenvalues : array_like (N,)
        λ_k > 0 of Σ, one for each component, of any mean.

    Examples
    --------
    >>> round(NearTeacher([[0.0]], [1.0]).critical_learning_rate() / np.pi, 12)  # linear, one input: 1 - 2η' + 3η'²
    0.333333333333
    """

    teacher: Array["M N"]
    eigenvalues: Array[" N"]

    def __post_init__(self):
        lam = checks.entries("eigenvalues", self.eigenvalues, above=0, ndim=1)  # (N,)
        teacher = checks.array("teacher", self.teacher, shape=(None, lam.size))  # (M, N)
        checks.fail_if(teacher.size == 0, "teacher", "hold at least one unit and component", f"shape {teacher.shape}")
        checks.keep(self, teacher=teacher, eigenvalues=lam)

    def _tilt(self, units):
        lam, counts = self.eigenvalues, np.bincount(units, minlength=len(self.teacher))  # (N,), (M,)
        met, weight = counts > 0, counts[counts > 0].astype(float)  # (M,), (units that occur,)
        rows = self.teacher[met] * lam / np.sqrt(lam.size)  # (units that occur, N)  BΣ/√N
        overlap = rows @ self.teacher[met].T / np.sqrt(lam.size)  # their T
        lost = rows.T @ np.linalg.solve(np.diag(1 / weight) + overlap, rows)  # (N, N)
        norm = (2 / np.pi) ** (len(units) / 2) / np.sqrt(np.linalg.det(np.eye(weight.size) + weight[:, None] * overlap))
        return float(norm), np.diag(lam) - lost

    def _maps(self):
        """The matrix 𝓗 (MN, MN) of the drift and the function 𝓕 of the noise:  C ← C - η(𝓗C + C𝓗) + η²𝓕[C]."""
        units, size = self.teacher.shape
        keys = [key for number in (2, 4) for key in combinations_with_replacement(range(units), number)]
        tilts = {key: self._tilt(key) for key in keys}
        pairs = list(combinations_with_replacement(range(units), 2))
        drift = np.empty((units, size, units, size))
        for i, n in pairs:
            norm, covariance = tilts[i, n]
            drift[i, :, n, :] = drift[n, :, i, :] = norm * covariance / (units * size)  # (N, N), symmetric

        def noise(moment):
            blocks = moment.reshape(units, size, units, size)
            result = np.zeros_like(blocks)
            for n, m in pairs:
                block = blocks[n, :, m, :] + blocks[m, :, n, :]  # (N, N)  C_nm + C_mn, symmetric
                block = block / 2 if n == m else block
                for i, j in pairs:
                    norm, covariance = tilts[tuple(sorted((i, j, n, m)))]
                    spread = 2 * covariance @ block @ covariance + covariance * np.sum(covariance * block)  # (N, N)
                    result[i, :, j, :] += norm * spread
            for i, j in pairs:
                result[j, :, i, :] = result[i, :, j, :]
            flat = result.reshape(moment.shape)  # (MN, MN)
            # Exactly symmetric: an antisymmetric rounding error would grow from step to step.
            return (flat + flat.T) / (2 * (units * size) ** 2)

        return drift.reshape(units * size, units * size), noise

    def tilt(self, units: tuple[int, ...] | list[int]) -> tuple[float, Array["N N"]]:
        """Weight and covariance of the Gaussian law that factors g'(y) make of the law of the inputs.

        <Π_m g'(y_m)^{w_m} f(ξ)> = Z_w <f> over N(0, Σ_w),  Σ_w = Σ - ΣBᵀ(N W⁻¹ + BΣBᵀ)⁻¹BΣ,  Z_w = (2/π)^{Σw/2} det(1 +
        WT)^{-1/2},  W = diag(w) over the units that occur, T = BΣBᵀ/N.

        Parameters
        ----------
        units : tuple or list of int
            The unit of each factor g', from 0.

        Returns
        -------
        Z_w, Σ_w : float, ndarray (N, N)

        Examples
        --------
        >>> weight, covariance = NearTeacher([[1.0]], [1.0]).tilt((0, 0))  # <g'(y)² f> with T = 1
        >>> round(weight * np.pi / 2, 12), covariance.round(12).tolist()
        (0.57735026919, [[0.333333333333]])
        """
        good = isinstance(units, (tuple, list)) and all(
            isinstance(unit, (int, np.integer)) and not isinstance(unit, bool) and 0 <= unit < len(self.teacher)
            for unit in units
        )
        if not good:
            checks.fail("units", f"name units from 0 to {len(self.teacher) - 1}, in a tuple or list", units)
        return self._tilt(np.array(units, dtype=np.int64))

    @checks.one_or_many
    def generalization_error(self, times: ArrayLike, deviation: ArrayLike, learning_rate: float) -> float | Array[" n"]:
        """Mean generalization error of descent that starts near the teacher, exact for Δ → 0 at every N and η.

        ε_g = ½ Tr(𝓗C); a step takes about M⁴/2 products of N x N matrices.

        Parameters
        ----------
        times : float or array_like (n,)
            α = examples / N >= 0, increasing, rounded to whole steps.
        deviation : array_like (M, N)
            Δ at the start.
        learning_rate : float
            η > 0.

        Returns
        -------
        float or ndarray (n,)
            Mean over the examples.

        Examples
        --------
        >>> linear = NearTeacher([[0.0]], [1.0])
        >>> linear.generalization_error([0.0, 2.0], [[1.0]], np.pi / 4).round(6).tolist()  # (2/π)/2, times 0.75²
        [0.31831, 0.179049]
        """
        times, rate = checks.times("times", times), checks.number("learning_rate", learning_rate, above=0)
        deviation = checks.array("deviation", deviation, shape=self.teacher.shape)  # (M, N)
        drift, noise = self._maps()
        moment = np.outer(deviation, deviation)  # (MN, MN)
        steps, found = checks.whole_steps("times", times, self.eigenvalues.size), {}  # (n,)
        with np.errstate(over="ignore", invalid="ignore"):
            for number in range(steps[-1] + 1):
                found[number] = checks.finite("learning_rate", np.sum(drift * moment) / 2)
                pull = drift @ moment  # (MN, MN)
                moment = moment - rate * (pull + pull.T) + rate**2 * noise(moment)
        return np.array([found[number] for number in steps])  # (n,)

    def critical_learning_rate(self) -> float:
        """Learning rate above which the mean square of the deviations from the teacher grows.

        1/η_c is the largest θ in  𝓕[C] = θ(𝓗C + C𝓗),  η²𝓕 the noise of the map; 𝓕 and the inverse of the right side
        keep matrices positive, so no other root comes first.

        Returns
        -------
        float
            η_c.

        Raises
        ------
        ValueError
            If two units are equal up to sign.

        Examples
        --------
        >>> round(NearTeacher([[0.0]], [2.0]).critical_learning_rate() / np.pi, 12)
        0.166666666667
        """
        drift, noise = self._maps()
        rates, modes = np.linalg.eigh(drift)  # (MN,), (MN, MN)
        if rates[0] < SINGULAR * rates[-1]:
            checks.fail("teacher", "have units that differ by more than a sign", self.teacher)
        theta = largest(lambda moment: modes.T @ noise(modes @ moment @ modes.T) @ modes, np.add.outer(rates, rates))
        return float(1 / theta)

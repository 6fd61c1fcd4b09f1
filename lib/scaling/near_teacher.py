"""Descent of an erf committee close to its teacher: exact second moments at any N, for any spectrum and any teacher.

K = M units as in :mod:`lib.foundations.committee`, every student near its own teacher.  To first order in  Δ_i = J_i -
B_i  a step is linear,  Δ_i ← Δ_i - η/(MN) g'(y_i) Σ_n g'(y_n)(Δ_n·ξ) ξ,  and C_nm = E[Δ_nΔ_mᵀ] obeys a closed map: the
factors g' of the fields  y = Bξ/√N  turn the law of ξ into another Gaussian one, N(0, Σ_w) of :func:`tilt`,

    C_ij ← C_ij - η (𝓗C + C𝓗)_ij + η²/(MN)² Σ_nm Z_w [Σ_w Tr(Σ_w C_nm) + Σ_w (C_nm + C_nmᵀ) Σ_w],  w counting ijnm,

𝓗_in = Z_w Σ_w/(MN), w counting i, n.  Rows of second moments (MN, MN) run over the N components of unit 1, then of unit
2, ....  :mod:`lib.scaling.late_phase` is the limit N -> ∞ for orthogonal teachers.  The step is worschech2024, eq. (3).
In all functions `teacher` (M, N): B, in the eigenbasis of Σ; `eigenvalues` (N,): of Σ, > 0, of any mean.
"""

from itertools import combinations_with_replacement

import numpy as np

from lib.common import checks
from lib.common.linalg import largest
from lib.scaling import _arguments, _linear

SINGULAR = 1e-13  # rates of the drift below this part of the largest are zero up to rounding


def _checked(teacher, eigenvalues):
    lam = _arguments.levels(eigenvalues)  # (N,)
    teacher = checks.array("teacher", teacher, shape=(None, lam.size))  # (M, N)
    if len(teacher) == 0:
        checks.fail("teacher", "hold at least one unit", f"shape {teacher.shape}")
    return teacher, lam


def _tilt(teacher, lam, units):
    counts = np.bincount(units, minlength=len(teacher))  # (M,)
    met, weight = counts > 0, counts[counts > 0].astype(float)  # (M,), (units that occur,)
    rows = teacher[met] * lam / np.sqrt(lam.size)  # (units that occur, N)  BΣ/√N
    overlap = rows @ teacher[met].T / np.sqrt(lam.size)  # their T
    lost = rows.T @ np.linalg.solve(np.diag(1 / weight) + overlap, rows)  # (N, N)
    norm = (2 / np.pi) ** (len(units) / 2) / np.sqrt(np.linalg.det(np.eye(weight.size) + weight[:, None] * overlap))
    return float(norm), np.diag(lam) - lost


def _maps(teacher, lam):
    """The matrix 𝓗 (MN, MN) of the drift and the function 𝓕 of the noise:  C ← C - η(𝓗C + C𝓗) + η²𝓕[C]."""
    units, size = teacher.shape
    keys = [key for number in (2, 4) for key in combinations_with_replacement(range(units), number)]
    tilts = {key: _tilt(teacher, lam, key) for key in keys}
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


def tilt(teacher, eigenvalues, units):
    """Weight and covariance of the Gaussian law that factors g'(y) make of the law of the inputs.

    <Π_m g'(y_m)^{w_m} f(ξ)> = Z_w <f> over N(0, Σ_w),  Σ_w = Σ - ΣBᵀ(N W⁻¹ + BΣBᵀ)⁻¹BΣ,  Z_w = (2/π)^{Σw/2} det(1 +
    WT)^{-1/2},  W = diag(w) over the units that occur, T = BΣBᵀ/N.  `teacher`, `eigenvalues`: as in the module;
    `units`: tuple or list with the unit of each factor g', from 0.  Returns Z_w and Σ_w (N, N).

    >>> weight, covariance = tilt([[1.0]], [1.0], (0, 0))  # <g'(y)² f> with T = 1
    >>> round(weight * np.pi / 2, 12), covariance.round(12).tolist()
    (0.57735026919, [[0.333333333333]])
    """
    teacher, lam = _checked(teacher, eigenvalues)
    good = isinstance(units, (tuple, list)) and all(
        isinstance(unit, (int, np.integer)) and not isinstance(unit, bool) and 0 <= unit < len(teacher)
        for unit in units
    )
    if not good:
        checks.fail("units", f"name units from 0 to {len(teacher) - 1}, in a tuple or list", units)
    return _tilt(teacher, lam, np.array(units, dtype=np.int64))


@checks.one_or_many
def generalization_error(alpha, deviation, teacher, eigenvalues, learning_rate):
    """Mean generalization error of descent that starts near the teacher, exact for Δ -> 0 at every N and η.

    ε_g = ½ Tr(𝓗C); a step takes about M⁴/2 products of N x N matrices.  `alpha`, a number or (A,): examples / N >= 0,
    rounded to whole steps; `deviation` (M, N): Δ at the start; `teacher`, `eigenvalues`: as in the module;
    `learning_rate`: η > 0.  Returns (A,), mean over examples.

    >>> generalization_error([0.0, 2.0], [[1.0]], [[0.0]], [1.0], np.pi / 4).round(6).tolist()  # (2/π)/2, times 0.75²
    [0.31831, 0.179049]
    """
    alpha, rate = _arguments.times(alpha), _arguments.learning_rate(learning_rate)  # (A,), float
    teacher, lam = _checked(teacher, eigenvalues)
    deviation = checks.array("deviation", deviation, shape=teacher.shape)  # (M, N)
    drift, noise = _maps(teacher, lam)
    moment = np.outer(deviation, deviation)  # (MN, MN)
    steps, found = checks.whole_steps("alpha", alpha, lam.size), {}  # (A,)
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(steps.max(initial=0) + 1):
            found[number] = _linear.in_range(np.sum(drift * moment) / 2)
            pull = drift @ moment  # (MN, MN)
            moment = moment - rate * (pull + pull.T) + rate**2 * noise(moment)
    return np.array([found[number] for number in steps])  # (A,)


def critical_learning_rate(teacher, eigenvalues):
    """Learning rate above which the mean square of the deviations from the teacher grows.

    1/η_c is the largest θ in  𝓕[C] = θ(𝓗C + C𝓗),  η²𝓕 the noise of the map; 𝓕 and the inverse of the right side keep
    matrices positive, so no other root comes first.  `teacher`: no two units equal up to sign; `eigenvalues`: as in the
    module.  Returns η_c.

    >>> edge = critical_learning_rate([[0.0]], [1.0])  # linear, one input: 1 - 2η' + 3η'²,  η' = 2η/π
    >>> round(edge, 12) == round(np.pi / 3, 12)
    True
    """
    teacher, lam = _checked(teacher, eigenvalues)
    drift, noise = _maps(teacher, lam)
    rates, modes = np.linalg.eigh(drift)  # (MN,), (MN, MN)
    if rates[0] < SINGULAR * rates[-1]:
        checks.fail("teacher", "have units that differ by more than a sign", teacher)
    theta = largest(lambda moment: modes.T @ noise(modes @ moment @ modes.T) @ modes, np.add.outer(rates, rates))
    return float(1 / theta)

"""A committee on structured inputs whose units are all alike: any number of units at the price of one.

The ansatz  R^k = r_k δ + s_k (1 - δ),  Q^k = q_k δ + c_k (1 - δ),  T^k = t_k 1  for K = M units stays; the uniform
sector, x + (M-1)y of a pair x, y, and that of differences, x - y, each follow the flow of a single unit, coupled only
through the coefficients.  Source: worschech2024, eqs. (92) to (94) with this ansatz.
"""

from dataclasses import dataclass
from math import pi

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.foundations.committee import Fields
from lib.scaling import _arguments, _collocation, _frozen


@dataclass(frozen=True, eq=False)
class SymmetricPath:
    """Diagonal and off-diagonal overlaps along the learning time, and those of the eigenspaces.

    Parameters
    ----------
    times : ndarray (n,)
        α = examples / N.  For a single time, a number, no other field has the axis n either.
    student, cross : ndarray (n, 2)
        Q_ii, Q_ij and R_ii, R_ij of the fields.
    generalization_error : ndarray (n,)
    student_resolved, cross_resolved : ndarray (L, 2)
        q_k, c_k and r_k, s_k at the last time.
    student_history, cross_history : ndarray (n, L, 2)
        The same at all times.
    """

    times: float | Array[" n"]
    student: Array["... 2"]
    cross: Array["... 2"]
    generalization_error: float | Array[" n"]
    student_resolved: Array["L 2"]
    cross_resolved: Array["L 2"]
    student_history: Array["... L 2"]
    cross_history: Array["... L 2"]


def site_means(resolved: ArrayLike) -> Array["... 2"]:
    """Mean diagonal and mean off-diagonal entry of square matrices, the latter zero for M = 1.

    Parameters
    ----------
    resolved : array_like (..., M, M)
        Q^k, R^k, or the like.

    Returns
    -------
    ndarray (..., 2)
        Such as r_k, s_k.

    Examples
    --------
    >>> site_means([[1.0, 0.2], [0.4, 2.0]]).round(12).tolist()
    [1.5, 0.3]
    """
    resolved = checks.array("resolved", resolved)  # (..., M, M)
    if resolved.ndim < 2 or resolved.size == 0 or resolved.shape[-1] != resolved.shape[-2]:
        checks.fail("resolved", "hold square matrices", f"shape {resolved.shape}")
    units = resolved.shape[-1]
    own = np.trace(resolved, axis1=-2, axis2=-1)  # (...)
    others = resolved.sum(axis=(-2, -1)) - own  # (...)
    return np.stack([own / units, others / max(units * (units - 1), 1)], axis=-1)


def site_matrices(pair: ArrayLike, units: int) -> Array["... M M"]:
    """Matrices  x δ + y (1 - δ)  from their entries x, y; inverse of :func:`site_means` for alike units.

    Parameters
    ----------
    pair : array_like (..., 2)
        Diagonal and off-diagonal entry, such as r_k, s_k.
    units : int
        M >= 1.

    Returns
    -------
    ndarray (..., M, M)

    Examples
    --------
    >>> site_matrices([1.0, 0.5], 2).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    pair = checks.array("pair", pair)  # (..., 2)
    if pair.ndim == 0 or pair.shape[-1] != 2:
        checks.fail("pair", "have a last axis of length 2", f"shape {pair.shape}")
    same = np.eye(checks.integer("units", units), dtype=bool)  # (M, M)
    return np.where(same, pair[..., 0, None, None], pair[..., 1, None, None])


def _sectors(pair, units):
    """Eigenvalues of the site-symmetric matrix with this diagonal and off-diagonal part: uniform, of differences."""
    own, other = pair[..., 0], pair[..., 1]  # (...)
    return np.stack([own + (units - 1) * other, own - other], axis=-1)  # (..., 2)


def _pair(sectors, units):
    """Inverse of :func:`_sectors`."""
    uniform, differences = sectors[..., 0], sectors[..., 1]  # (...)
    other = (uniform - differences) / units  # (...)
    return np.stack([differences + other, other], axis=-1)  # (..., 2)


def _error(student, cross, teacher, units):
    """ε_g from diagonal and off-diagonal overlaps of the fields."""
    x, others = 1 + student[..., 0], units - 1  # (...), int
    own = np.arcsin(student[..., 0] / x) + others * np.arcsin(student[..., 1] / x)  # (...)
    width = np.sqrt(x * (1 + teacher))  # (...)
    shared = np.arcsin(cross[..., 0] / width) + others * np.arcsin(cross[..., 1] / width)  # (...)
    return (own + np.arcsin(teacher / (1 + teacher)) - 2 * shared) / pi


def _drift(student, cross, teacher, units):
    """Diagonal and off-diagonal part of a and of G, as in :meth:`lib.foundations.committee.Overlaps.drift`."""
    others = units - 1
    width = 1 + student[0]
    a = 2 / pi / np.sqrt(width * (1 + teacher) - cross**2)  # (2,)
    b = 2 / pi / np.sqrt(width**2 - student**2)  # (2,)
    weights = np.array([1, others])  # (2,)
    balance = weights @ (a * cross - b * student) / width
    return a, b + np.array([balance, 0.0])


def _pairs_of_sites(units, kept, special):
    """How many ordered pairs of sites each pair among `kept` sites stands for; the first `special` are themselves."""
    rest, shown = units - special, kept - special
    single = np.array([1.0] * special + [rest / shown if shown else 0.0] * shown)  # (kept,)
    counts = np.outer(single, single)  # (kept, kept)
    alike, unlike = rest / max(shown, 1), rest * (rest - 1) / max(shown * (shown - 1), 1)
    counts[special:, special:] = np.where(np.eye(shown, dtype=bool), alike, unlike)
    return counts


def _noise(student, cross, teacher, units):
    """The same parts of E, the ``noise_matrix`` of Overlaps, from at most four of the M sites."""
    kept = min(units, 4)
    same = np.eye(kept, dtype=bool)
    q, r = (np.where(same, *pair) for pair in (student, cross))  # (kept, kept), (kept, kept)
    fields, result = Fields(q, r, teacher * np.eye(kept)), np.zeros(2)
    for part in range(min(units, 2)):
        counts = _pairs_of_sites(units, kept, part + 1)  # (kept, kept)
        weights = np.block([[counts, -counts], [-counts, counts]]) / units  # (2 kept, 2 kept)
        result[part] = fields.tilted_sum(0, part, weights)
    return result


@dataclass(frozen=True, eq=False)
class _SymmetricFlow:
    """Two flows of a single unit with common coefficients; a state is the pair Q^k, R^k of sector values (L, 2)."""

    single: _frozen.Flow
    units: int
    teacher: float

    def seen(self, state):
        """The pairs Q and R of the fields, one after the other."""
        return np.concatenate([_pair(self.single.lam @ part, self.units) for part in state])  # (4,)

    def overlaps(self, seen):
        return seen[:2], seen[2:]

    def error(self, seen):
        return _error(*self.overlaps(seen), self.teacher, self.units)

    def differences(self, seen):
        return seen[2:3] - seen[3:]  # (1,)

    def coefficients(self, seen):
        """a, G, E of the uniform sector, then those of the differences."""
        student, cross = self.overlaps(seen)  # (2,), (2,)
        a, g = _drift(student, cross, self.teacher, self.units)
        # The single unit's rate is η/M, so its noise η n_k E is M times larger than that rate gives.
        noise = np.zeros(2)
        if self.single.second_order:
            noise = self.units * _noise(student, cross, self.teacher, self.units)
        return np.stack([_sectors(part, self.units) for part in (a, g, noise)], axis=1).ravel()  # (6,)

    def stages(self, state, curve, length, bent=True):
        """The states in the middle and at the end of a step; `curve` is (3, 6)."""
        done = []
        for sector, values in enumerate(np.split(curve, 2, axis=1)):
            single = [np.ascontiguousarray(part[:, sector, None, None]) for part in state]  # (L, 1, 1) twice
            done.append(self.single.stages(single, values, length, bent))
        return np.concatenate(done, axis=3)[..., 0]  # (2, 2, L, 2): place and part of the state


def solve(
    times: ArrayLike, student: ArrayLike, cross: ArrayLike, teacher: ArrayLike, spectrum: Spectrum | ArrayLike,
    units: int, learning_rate: float, *, second_order: bool = True, tolerance: float = 1e-5,
) -> SymmetricPath:  # fmt: skip
    """Follow a site-symmetric committee from α = 0, as :meth:`lib.scaling.structured.ResolvedOverlaps.solve` does.

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing.
    student, cross : array_like (L, 2)
        q_k, c_k and r_k, s_k: diagonal and off-diagonal entries of Q^k, R^k at α = 0; equal r_k, s_k never specialize.
    teacher : array_like (L,)
        t_k >= 0,  T^k = t_k 1.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor.
    units : int
        M = K >= 1.
    learning_rate : float
        η > 0.
    second_order : bool
        False leaves out the η² term, the noise of single examples.
    tolerance : float
        1e-10 to 1, of the errors of Q, R and, in parts of itself, ε_g.

    Returns
    -------
    SymmetricPath

    Raises
    ------
    RuntimeError
        If the steps shrink without end.

    Examples
    --------
    >>> path = solve([0, 300], [[0.2, 0.0]], [[0.01, 0.0]], [1.0], [1.0], 40, 1.0)  # 40 units, on their plateau
    >>> bool(path.generalization_error[1] < path.generalization_error[0])
    True
    """
    grid, spectrum = checks.times("times", times), _arguments.spectrum(spectrum)
    lam, units = spectrum.eigenvalues, checks.integer("units", units)
    q = _sectors(checks.array("student", student, shape=(lam.size, 2)), units)  # (L, 2)
    r = _sectors(checks.array("cross", cross, shape=(lam.size, 2)), units)  # (L, 2)
    t = checks.entries("teacher", teacher, at_least=0, shape=lam.shape)  # (L,)
    if units == 1:
        q, r = (np.repeat(part[:, :1], 2, axis=1) for part in (q, r))
    if q.min() < 0:
        checks.fail("student", "hold positive semidefinite matrices: q_k >= c_k and q_k + (M-1) c_k >= 0", student)
    if (r**2 - q * t[:, None]).max() > 1e-9 * max(np.abs(q).max(), t.max()) ** 2:
        checks.fail("cross", "form a positive semidefinite matrix with student and teacher", cross)
    rate = checks.number("learning_rate", learning_rate, above=0)
    second_order = checks.boolean("second_order", second_order)
    single = _frozen.Flow(t[:, None, None], lam, spectrum.shares, rate / units, second_order, 1)
    flow = _SymmetricFlow(single, units, float(lam @ t))
    sectors = _collocation.follow(grid, (q, r), flow, rate, lam, tolerance)
    q, r = (_pair(part, units) for part in sectors)  # (n, L, 2), (n, L, 2)
    students, crosses = (np.tensordot(part, lam, axes=(1, 0)) for part in (q, r))  # (n, 2), (n, 2)
    error = _error(students, crosses, flow.teacher, units)  # (n,)
    path = SymmetricPath(grid, students, crosses, error, q[-1], r[-1], q, r)
    with_axis = "student", "cross", "generalization_error", "student_history", "cross_history"
    return _arguments.without_axis(times, path, with_axis)

"""Soft committee machines that learn from inputs of structured covariance: order parameters resolved by eigenspace.

Networks as in :mod:`lib.foundations.committee`; inputs ξ ~ N(0, Σ), where Σ has the eigenvalues λ_k with projectors
P_k.  The overlaps Q^k = J P_k Jᵀ/N,  R^k = J P_k Bᵀ/N,  T^k = B P_k Bᵀ/N  obey, with the matrices a, G, E of that
module at the fields' covariances  Q = Σ_k λ_k Q^k  (same for R, T),

    dR^k/dα = (ηλ_k/K)(aT^k - GR^k),   dQ^k/dα = (ηλ_k/K)(aR^kᵀ + R^kaᵀ - GQ^k - Q^kG) + η²(M/K²) λ_k n_k E.

worschech2024, eqs. (4) and (18), is the same system with coefficients over hundreds of decades; its eqs. (100), (112)
and (118) are special cases of :func:`jacobian`.  In all functions `student_resolved` (L, K, K): Q^k; `cross_resolved`
(L, K, M): R^k; `teacher_resolved` (L, M, M): T^k; `eigenvalues` (L,): λ_k > 0 of weighted mean one; `learning_rate`: η
> 0; `multiplicities` (L,): m_k up to a factor, by default all equal; `second_order`: False leaves out the η² term.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.foundations import committee
from lib.foundations.committee import STEP
from lib.scaling import _arguments, _collocation, _frozen


@dataclass(frozen=True, eq=False)
class Path(committee.Trajectory):
    """The overlaps of the fields along the learning time, and those of the eigenspaces at its end."""

    student_resolved: np.ndarray  # (L, K, K)  Q^k at the last time
    cross_resolved: np.ndarray  # (L, K, M)  R^k at the last time


@dataclass(frozen=True, eq=False)
class SolvedPath(Path):
    """The same, with the overlaps of the eigenspaces at all times."""

    student_history: np.ndarray  # (n, L, K, K)  Q^k at all times
    cross_history: np.ndarray  # (n, L, K, M)  R^k at all times


def fields(resolved, eigenvalues):
    """Covariance of the fields from resolved overlaps:  Q = Σ_k λ_k Q^k,  Q^(1) in worschech2024.

    `resolved` (L, ., .): Q^k, R^k or T^k; `eigenvalues` (L,), of any mean.  Returns (., .).

    >>> fields([[[0.5]], [[0.25]]], [1.5, 0.5]).tolist()
    [[0.875]]
    """
    eigenvalues = _arguments.levels(eigenvalues)  # (L,)
    resolved = checks.array("resolved", resolved, shape=(eigenvalues.size, None, None))  # (L, ., .)
    return np.tensordot(eigenvalues, resolved, axes=1)


def derivative(
    student_resolved,
    cross_resolved,
    teacher_resolved,
    eigenvalues,
    learning_rate,
    *,
    multiplicities=None,
    second_order=True,
):
    """Rates of change of Q^k and R^k with α, exact for N -> ∞ at fixed L, K, M:  eq. (4), and (18) corrected.

    `student_resolved`, `cross_resolved`, `teacher_resolved`, `eigenvalues`, `learning_rate`, `multiplicities`,
    `second_order`: as in the module.  Returns dQ^k/dα (L, K, K) and dR^k/dα (L, K, M).

    >>> one = np.ones((1, 1, 1))
    >>> [bool(abs(rate[0, 0, 0]) < 1e-15) for rate in derivative(one, one, one, [1.0], 0.5)]  # perfect learning
    [True, True]
    """
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    q, r, t = _arguments.resolved(student_resolved, cross_resolved, teacher_resolved, lam.size)
    rate = _arguments.learning_rate(learning_rate)
    return _frozen.velocity(q, r, t, lam, fractions, rate, checks.boolean("second_order", second_order))


def solve(
    times,
    student_resolved,
    cross_resolved,
    teacher_resolved,
    eigenvalues,
    learning_rate,
    *,
    multiplicities=None,
    second_order=True,
    tolerance=1e-5,
):
    """Follow the order parameters from α = 0, with thousands of eigenvalues if need be, by collocation of fourth order.

    Errors at the reported times, of Q and R in parts of the largest entry of Q (or one), of Q^k and R^k in parts of n_k
    times that, of ε_g in parts of itself, are of the size of `tolerance`, 1e-10 to 1: in all our tests below it, for
    ε_g below three times it (or 1e-13).  Differences among the units are followed however small they are.

    `times` (n,) or a number (n = 1): α >= 0, increasing; `student_resolved`, `cross_resolved`, `teacher_resolved`: at α
    = 0, a start symmetric in the units never leaves the plateau; `eigenvalues`, `learning_rate`, `multiplicities`,
    `second_order`: as in the module.  Returns a SolvedPath, or raises a RuntimeError.

    >>> path = solve([0, 100], [[[0.1]]], [[[0.05]]], [[[1.0]]], [1.0], 1.0)
    >>> bool(path.generalization_error[1] < 1e-6 * path.generalization_error[0])
    True
    """
    times = checks.times("times", times)  # (n,)
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    q, r, t = _arguments.resolved(student_resolved, cross_resolved, teacher_resolved, lam.size)
    rate, second_order = _arguments.learning_rate(learning_rate), checks.boolean("second_order", second_order)
    flow = _frozen.Flow(t, lam, fractions, rate, second_order, q.shape[1])
    q, r = _collocation.follow(times, (q, r), flow, rate, lam, tolerance)  # (n, L, K, K), (n, L, K, M)
    students, crosses = (np.tensordot(part, lam, axes=(1, 0)) for part in (q, r))  # (n, K, K), (n, K, M)
    error = committee.Fields.error(students, crosses, flow.teacher)  # (n,)
    return SolvedPath(times, students, crosses, flow.teacher, error, q[-1], r[-1], q, r)


def coordinates(student_direction, cross_direction):
    """The vector that stands for a direction X^k of Q^k and Y^k of R^k:  n = L K(K+1)/2 + L K M  independent entries.

    The upper triangles of X^1, ..., X^L row by row, then Y^1, ..., Y^L.  `student_direction` (L, K, K): X^k, symmetric;
    `cross_direction` (L, K, M): Y^k.  Returns (n,).

    >>> coordinates([[[1.0, 2.0], [2.0, 3.0]]], [[[4.0], [5.0]]]).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    x = checks.array("student_direction", student_direction, ndim=3)  # (L, K, K)
    square = x.size > 0 and x.shape[1] == x.shape[2]
    if not square or not np.allclose(x, np.swapaxes(x, 1, 2), rtol=0, atol=1e-10 * np.abs(x).max()):
        checks.fail("student_direction", "hold symmetric matrices", f"shape {x.shape}")
    y = checks.array("cross_direction", cross_direction, shape=(*x.shape[:2], None))  # (L, K, M)
    i, j = np.triu_indices(x.shape[1])
    return np.concatenate([x[:, i, j].ravel(), y.ravel()])  # (n,)


def directions(vector, levels, students, teachers):
    """Inverse of :func:`coordinates`: X^k and Y^k of a vector, such as an eigenvector of :func:`jacobian`.

    `vector` (n,); `levels`, `students`, `teachers`: L, K, M >= 1.  Returns X^k (L, K, K) and Y^k (L, K, M).

    >>> [part.tolist() for part in directions([1.0, 2.0, 3.0, 4.0, 5.0], 1, 2, 1)]
    [[[[1.0, 2.0], [2.0, 3.0]]], [[[4.0], [5.0]]]]
    """
    sizes = (("levels", levels), ("students", students), ("teachers", teachers))
    levels, students, teachers = (checks.integer(name, value) for name, value in sizes)
    i, j = np.triu_indices(students)
    inner = levels * len(i)
    vector = checks.array("vector", vector, shape=(inner + levels * students * teachers,))  # (n,)
    x = np.empty((levels, students, students))  # (L, K, K)
    x[:, i, j] = x[:, j, i] = vector[:inner].reshape(levels, -1)
    return x, vector[inner:].reshape(levels, students, teachers)


def jacobian(
    student_resolved,
    cross_resolved,
    teacher_resolved,
    eigenvalues,
    learning_rate,
    *,
    multiplicities=None,
    second_order=True,
):
    """Derivatives of dQ^k/dα and dR^k/dα by the independent entries of all Q^k and R^k, by a complex step.

    `student_resolved`, `cross_resolved`, `teacher_resolved`, `eigenvalues`, `learning_rate`, `multiplicities`,
    `second_order`: as in the module.  Returns (n, n), see :func:`coordinates`.

    >>> one = np.ones((1, 1, 1))
    >>> bool(np.linalg.eigvals(jacobian(one, one, one, [1.0], 0.5)).real.max() < 0)  # perfect learning is stable
    True
    """
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    q, r, t = _arguments.resolved(student_resolved, cross_resolved, teacher_resolved, lam.size)
    rate = _arguments.learning_rate(learning_rate)
    second_order = checks.boolean("second_order", second_order)
    columns = []
    for unit in np.eye(coordinates(q, r).size):
        x, y = directions(unit, *r.shape)  # (L, K, K), (L, K, M)
        moved = _frozen.velocity(q + 1j * STEP * x, r + 1j * STEP * y, t, lam, fractions, rate, second_order)
        columns.append(coordinates(*(part.imag / STEP for part in moved)))  # (n,)
    return np.stack(columns, axis=1)

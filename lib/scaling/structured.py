"""Soft committee machines that learn from inputs of structured covariance: order parameters resolved by eigenspace.

Networks as in :mod:`lib.foundations.committee`; inputs ξ ~ N(0, Σ), where Σ has the eigenvalues λ_k with projectors
P_k.  The overlaps Q^k = J P_k Jᵀ/N,  R^k = J P_k Bᵀ/N,  T^k = B P_k Bᵀ/N  obey, with the matrices a, G, E of
:mod:`lib.foundations.committee` at the fields' covariances  Q = Σ_k λ_k Q^k  (same for R, T),

    dR^k/dα = (ηλ_k/K)(aT^k - GR^k),   dQ^k/dα = (ηλ_k/K)(aR^kᵀ + R^kaᵀ - GQ^k - Q^kG) + η²(M/K²) λ_k n_k E.

Every number is of order n_k, whatever L.  The hierarchy of powers of Σ in worschech2024, eqs. (4) and (18), is the same
system with coefficients that span hundreds of decades.  In all functions `student_resolved` (L, K, K): Q^k;
`cross_resolved` (L, K, M): R^k; `teacher_resolved` (L, M, M): T^k; `eigenvalues` (L,): λ_k > 0.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.foundations import committee, committee_formulas
from lib.scaling import _arguments, _collocation, _frozen
from lib.scaling.spectra import checked_spectrum


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
    """Covariance of the fields from resolved overlaps:  Q = Σ_k λ_k Q^k.

    It is l = 1 of  Q^(l) = Σ_k λ_k^l Q^k  in worschech2024.  `resolved` (L, ., .): Q^k, R^k or T^k; `eigenvalues` (L,).
    Returns (., .).

    >>> fields([[[0.5]], [[0.25]]], [1.5, 0.5]).tolist()
    [[0.875]]
    """
    eigenvalues = _arguments.levels(eigenvalues)  # (L,)
    resolved = checks.array("resolved", resolved, shape=(eigenvalues.size, None, None))  # (L, ., .)
    return np.tensordot(eigenvalues, resolved, axes=1)


def checked_resolved(student_resolved, cross_resolved, teacher_resolved, eigenvalues):
    """Q^k, R^k and T^k as float64 arrays, after checking that they form a covariance matrix in every eigenspace.

    The overlaps of worschech2024, eq. (4), resolved by eigenspace.  `student_resolved`, `cross_resolved`,
    `teacher_resolved`, `eigenvalues`: as in the module; refused if shapes disagree or a block [[Q^k, R^k], [R^kᵀ, T^k]]
    is not positive semidefinite.  Returns Q^k, R^k, T^k.

    >>> [part.shape for part in checked_resolved([[[1.0]]], [[[0.5]]], [[[1.0]]], [1.0])]
    [(1, 1, 1), (1, 1, 1), (1, 1, 1)]
    """
    levels = _arguments.levels(eigenvalues).size
    q = checks.array("student_resolved", student_resolved, shape=(levels, None, None))  # (L, K, K)
    t = checks.array("teacher_resolved", teacher_resolved, shape=(levels, None, None))  # (L, M, M)
    for name, part in (("student_resolved", q), ("teacher_resolved", t)):
        square = part.shape[1] == part.shape[2] and part.size > 0
        if not square or not np.allclose(part, np.swapaxes(part, 1, 2), rtol=0, atol=1e-10 * np.abs(part).max()):
            checks.fail(name, "hold symmetric matrices", f"shape {part.shape}")
    r = checks.array("cross_resolved", cross_resolved, shape=(levels, q.shape[1], t.shape[1]))  # (L, K, M)
    lowest = committee_formulas.lowest_correlation(np.block([[q, r], [np.swapaxes(r, 1, 2), t]]), 1e-9)
    if lowest < -committee_formulas.ROUNDING:
        wanted = "form a positive semidefinite matrix with Q and T in every eigenspace"
        checks.fail("cross_resolved", wanted, f"correlations with the lowest eigenvalue {lowest:.3g}")
    return q, r, t


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
    """Rates of change of Q^k and R^k with α, exact for N -> ∞ at fixed L, K, M.

    Source: worschech2024, eq. (4), and (18) corrected, resolved by eigenspace.  `student_resolved`, `cross_resolved`,
    `teacher_resolved`, `eigenvalues`, of weighted mean one: as in the module; `learning_rate`: η > 0; `multiplicities`
    (L,): m_k up to a factor, by default all equal; `second_order`: False leaves out the η² term.  Returns dQ^k/dα (L,
    K, K) and dR^k/dα (L, K, M).

    >>> one = np.ones((1, 1, 1))
    >>> [bool(abs(rate[0, 0, 0]) < 1e-15) for rate in derivative(one, one, one, [1.0], 0.5)]  # perfect learning
    [True, True]
    """
    lam, fractions = checked_spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    q, r, t = checked_resolved(student_resolved, cross_resolved, teacher_resolved, lam)
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
    """Follow the order parameters from α = 0, with thousands of eigenvalues if need be.

    Exponential collocation, of fourth order: a, G and E are parabolas in each step, and consistent with the overlaps at
    its middle and end, for which the equations of :func:`derivative` are solved with any stiffness.  Overlaps stay a
    covariance in every eigenspace.  The errors at the reported times, of Q and R in parts of the largest entry of Q (or
    of one), of Q^k and R^k in parts of n_k times that, and of ε_g in parts of itself, are of the size of `tolerance`:
    in all our tests below it for overlaps, and below three times it for ε_g (or 1e-13, whichever is larger).  On a
    plateau, the differences among the units are followed however small they are.  Source: worschech2024, eq. (4), and
    (18) corrected.

    times : (n,) or a number (n = 1), α = examples / N at which to report; >= 0, increasing
    student_resolved : (L, K, K), Q^k at α = 0
    cross_resolved : (L, K, M), R^k at α = 0; a start symmetric in the units never leaves the plateau
    teacher_resolved : (L, M, M), T^k
    eigenvalues : (L,), λ_k > 0 of weighted mean one
    learning_rate : η > 0
    multiplicities : (L,), m_k up to a factor; default: all equal
    second_order : False leaves out the η² term (gradient flow, the limit of small η)
    tolerance : error of overlaps and, relative, of ε_g; 1e-10 <= tolerance < 1

    Returns a SolvedPath; a RuntimeError says that the equations cannot be followed: they diverge.

    >>> from lib.scaling import spectra
    >>> path = solve([0, 50], *spectra.random_overlaps([100, 100], 1, 1, seed=1), spectra.power_law(2, 1.0), 1.0)
    >>> bool(path.generalization_error[1] < 1e-6 * path.generalization_error[0])
    True
    """
    times = checks.moments("times", times)  # (n,)
    lam, fractions = checked_spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    q, r, t = checked_resolved(student_resolved, cross_resolved, teacher_resolved, lam)
    rate, second_order = _arguments.learning_rate(learning_rate), checks.boolean("second_order", second_order)
    flow = _frozen.Flow(t, lam, fractions, rate, second_order, q.shape[1])
    q, r = _collocation.follow(times, (q, r), flow, rate, lam, tolerance)  # (n, L, K, K), (n, L, K, M)
    students, crosses = (np.tensordot(part, lam, axes=(1, 0)) for part in (q, r))  # (n, K, K), (n, K, M)
    error = committee_formulas.error(students, crosses, flow.teacher)  # (n,)
    return SolvedPath(times, students, crosses, flow.teacher, error, q[-1], r[-1], q, r)

"""Fixed points of the order-parameter equations and their linear stability: the plateau, its escape, and the teacher.

As in `lib.foundations.committee`; functions of a `size` M have K = M, T = 1, `learning_rate` η > 0, and rates per α.
Numbered equations: worschech2024.
"""

from dataclasses import dataclass
from math import asin, pi, sqrt

import numpy as np
from scipy.optimize import root

from lib.common import checks
from lib.foundations import committee, committee_formulas


@dataclass(frozen=True)
class Plateau:
    """The symmetric fixed point."""

    student_overlap: float  # every Q_ij
    cross_overlap: float  # every R_in
    generalization_error: float


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Overlaps at rest."""

    student_overlap: np.ndarray  # (K, K)
    cross_overlap: np.ndarray  # (K, M)
    generalization_error: float
    growth_rate: float  # largest real part of the Jacobian's eigenvalues, per unit of α; negative where stable


def jacobian(student_overlap, cross_overlap, teacher_overlap, learning_rate, *, second_order=True):
    """Derivatives of dQ/dα and dR/dα by the K(K+1)/2 + KM independent entries of Q and R, for linear stability.

    By a complex step: only rounding is left.  `student_overlap`, `cross_overlap`, `teacher_overlap`, `learning_rate`,
    `second_order`: Q, R, T, η, its η² term.  Returns (n, n): upper triangle of Q, then R, row by row.

    >>> bool(np.linalg.eigvals(jacobian([[1]], [[1]], [[1]], 0.5)).real.max() < 0)  # perfect learning is stable
    True
    """
    q, r, t = committee.checked_overlaps(student_overlap, cross_overlap, teacher_overlap)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    second_order = checks.boolean("second_order", second_order)
    upper = np.triu_indices(len(q))
    columns = []
    for k in range(len(upper[0]) + r.size):
        moved_q, moved_r = q.astype(complex), r.astype(complex)  # (K, K), (K, M)
        if k < len(upper[0]):
            i, j = upper[0][k], upper[1][k]
            moved_q[i, j] = moved_q[j, i] = q[i, j] + 1j * committee_formulas.STEP
        else:
            moved_r.flat[k - len(upper[0])] += 1j * committee_formulas.STEP
        dq, dr = committee_formulas.Fields(moved_q, moved_r, t).velocity(learning_rate, second_order)
        columns.append(np.concatenate([dq[upper], dr.ravel()]).imag / committee_formulas.STEP)
    return np.stack(columns, axis=1)  # (n, n)


def fixed_point(
    student_overlap, cross_overlap, teacher_overlap, learning_rate, *, second_order=True, relaxation_time=1000.0
):
    """Overlaps at which learning from the given start comes to rest, such as the floor of an unrealizable task.

    The search begins at α = `relaxation_time`, later than any plateau on the way.  Equal units may rest on a saddle,
    which the growth rate tells; where learning ends in a power law the search may fail.  `student_overlap`,
    `cross_overlap`, `teacher_overlap`: Q, R, T at α = 0; `learning_rate`, `second_order`: η, its η² term.  Returns a
    FixedPoint; a RuntimeError if there is no rest at overlaps that are a covariance.

    >>> rest = fixed_point(0.1 * np.eye(3), 0.1 * np.eye(3, 2) + 0.01, np.eye(2), 0.5)  # three units imitate two
    >>> round(rest.generalization_error, 7), rest.growth_rate < 0
    (6.68e-05, True)
    """
    relaxation_time = checks.number("relaxation_time", relaxation_time, above=0)
    start = student_overlap, cross_overlap, teacher_overlap
    late = committee.solve([relaxation_time], *start, learning_rate, second_order=second_order, rtol=1e-7)
    q, r, t = late.student_overlap[0], late.cross_overlap[0], late.teacher_overlap  # (K, K), (K, M), (M, M)
    learning_rate = float(learning_rate)  # as it was checked
    upper = np.triu_indices(len(q))

    def overlaps(state):
        student = np.zeros_like(q)
        student[upper] = state[: len(upper[0])]
        return np.triu(student) + np.triu(student, 1).T, state[len(upper[0]) :].reshape(r.shape)

    def velocity(state):
        dq, dr = committee_formulas.Fields(*overlaps(state), t).velocity(learning_rate, second_order)
        return np.concatenate([dq[upper], dr.ravel()])

    found = root(velocity, np.concatenate([q[upper], r.ravel()]), tol=1e-13).x  # (K(K+1)/2 + KM,)
    speed = np.abs(velocity(found)).max()
    if not speed <= 1e-12 * learning_rate * max(1.0, np.abs(t).max()):  # NaN, too, is no rest
        found_none = f"no fixed point found from α = {relaxation_time:g}: a speed of {speed:.1e} is left"
        raise RuntimeError(f"{found_none}; let learning relax for longer")
    try:
        q, r, t = committee.checked_overlaps(*overlaps(found), t)
    except ValueError as reason:
        left = f"the search from α = {relaxation_time:g} left the covariance matrices: {reason}"
        raise RuntimeError(left) from reason
    modes = np.linalg.eigvals(jacobian(q, r, t, learning_rate, second_order=second_order))  # (n,)
    return FixedPoint(q, r, float(committee_formulas.error(q, r, t)), float(modes.real.max()))


def plateau(size):
    """The symmetric plateau of M >= 2, at first order in η (eqs. (13), (97), (99)), where all students are equal.

    R = 1/√(M(2M-1)),  Q = 1/(2M-1),  ε_g = (1/π)[π/6 - M arcsin(1/(2M))].  `size`: M.  Returns a Plateau.

    >>> round(plateau(2).generalization_error, 5)
    0.00581
    """
    m = checks.integer("size", size, at_least=2)
    return Plateau(1 / (2 * m - 1), 1 / sqrt(m * (2 * m - 1)), (pi / 6 - m * asin(1 / (2 * m))) / pi)


def escape_rate(size, learning_rate):
    """Growth rate of the symmetry-breaking mode on the plateau, first order in η:  1/τ = 2η/(π √(2M-1) (2M+1)^{3/2}).

    δR_in = r (δ_in - (1-δ_in)/(M-1)), r ∝ exp(α/τ); the error falls at twice this rate (eqs. (112) to (115), for one
    covariance eigenvalue).  `size`: M >= 2; `learning_rate`: η.  Returns 1/τ.

    >>> round(1 / escape_rate(2, 0.1), 1)
    304.2
    """
    m = checks.integer("size", size, at_least=2)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    return 2 * learning_rate / (pi * sqrt(2 * m - 1) * (2 * m + 1) ** 1.5)


def _near_teacher(m):
    """Drift and noise (n, n) of the mean squared deviations from the teacher; n = 2, or 1 for a single unit."""
    drift = 2 / (sqrt(3) * pi * m) * np.array([[2, sqrt(3) * (m - 1)], [sqrt(3), 2 + sqrt(3) * (m - 2)]])  # (2, 2)
    mixed = 1 / sqrt(2) + (m - 2) / sqrt(12)
    rest = 2 / 3 + 2 * (m - 2) / sqrt(3) + (m - 2) * (m - 3) / 4
    noise = 4 / (pi * m) ** 2 * np.array([[1 / sqrt(5) + (m - 1) / 3, (m - 1) * mixed], [mixed, rest]])  # (2, 2)
    modes = 1 if m == 1 else 2  # one unit has no off-diagonal part
    return drift[:modes, :modes], noise[:modes, :modes]


def asymptotic_rates(size, learning_rate):
    """Rates of the two slowest contributions to ε_g near the teacher, each ∝ exp(rate · α); the larger governs late.

    Outside the span of the teacher, the diagonal and off-diagonal entries (y, z) of ΔΔᵀ/N, Δ = J - B, obey d(y, z)/dα =
    (-ηG + η²C)(y, z).  Inside, (R - T)² has the rate -4ηκ/(√3 π M), κ = [4/3 + ω - √((2/3 + ω)² + 3(M-1)/4)]/2, ω = √3
    (M-2)/2, and κ = 1/3 for M = 1.  Compare eqs. (118), (119).  `size`: M >= 1; `learning_rate`: η.  Returns the top
    eigenvalue of -ηG + η²C, > 0 beyond η_c, and the rate inside.

    >>> [round(rate, 4) for rate in asymptotic_rates(2, 0.5)]
    [-0.0242, -0.0221]
    """
    m = checks.integer("size", size)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    drift, noise = _near_teacher(m)
    growth = np.linalg.eigvals(learning_rate**2 * noise - learning_rate * drift)  # (n,), real: similar to symmetric
    w = sqrt(3) / 2 * (m - 2)
    kappa = 1 / 3 if m == 1 else (4 / 3 + w - sqrt((2 / 3 + w) ** 2 + 3 * (m - 1) / 4)) / 2
    return float(growth.real.max()), -4 * learning_rate * kappa / (sqrt(3) * pi * m)


def critical_learning_rate(size):
    """Learning rate at which perfect learning loses its linear stability: SGD approaches the teacher for η < η_c only.

    η_c = 1/ρ, ρ the largest eigenvalue of G⁻¹C of :func:`asymptotic_rates`; M = 1: π√(5/3).  `size`: M.  Returns η_c.

    >>> bool(np.isclose(critical_learning_rate(1), np.pi * np.sqrt(5 / 3)))
    True
    """
    drift, noise = _near_teacher(checks.integer("size", size))
    return float(1 / np.linalg.eigvals(np.linalg.solve(drift, noise)).real.max())

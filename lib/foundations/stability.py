r"""Fixed points of the order-parameter equations and their linear stability: the plateau, its escape, and the teacher.

Networks as in :mod:`lib.foundations.committee`.  Functions of a ``size`` M have as many student as teacher units, K =
M, and orthonormal teachers, T = 1.  Rates are per unit of α = examples / N.  Numbered equations: worschech2024.
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
    r"""Derivatives of dQ/dα and dR/dα by the K(K+1)/2 + KM independent entries of Q and R, for linear stability.

    By a complex step, so that only rounding is left: below 1e-15 (1 + x)² of the largest entry, x the largest
    overlap; the square is the cancellation in the η² term.  The formulas are analytic on the boundary of the
    covariance matrices too, so perfect learning and the plateau are allowed.

    Parameters
    ----------
    student_overlap, cross_overlap, teacher_overlap : array    Q, R, T
    learning_rate : float
    second_order : bool

    Returns
    -------
    array (n, n)    n = K(K+1)/2 + KM; order: upper triangle of Q row by row, then R row by row

    Examples
    --------
    >>> one = np.eye(2)
    >>> bool(np.linalg.eigvals(jacobian(one, one, one, 0.5)).real.max() < 0)  # perfect learning is stable
    True
    """
    q, r, t = committee.checked_overlaps(student_overlap, cross_overlap, teacher_overlap)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    return _jacobian(q, r, t, learning_rate, checks.boolean("second_order", second_order))


def _jacobian(q, r, t, learning_rate, second_order):
    upper = np.triu_indices(len(q))
    columns = []
    for k in range(len(upper[0]) + r.size):
        moved_q, moved_r = q.astype(complex), r.astype(complex)  # (K, K), (K, M)
        if k < len(upper[0]):
            i, j = upper[0][k], upper[1][k]
            moved_q[i, j] = moved_q[j, i] = q[i, j] + 1j * committee_formulas.STEP
        else:
            moved_r.flat[k - len(upper[0])] += 1j * committee_formulas.STEP
        dq, dr = committee_formulas.velocity(moved_q, moved_r, t, learning_rate, second_order)
        columns.append(np.concatenate([dq[upper], dr.ravel()]).imag / committee_formulas.STEP)
    return np.stack(columns, axis=1)  # (n, n)


def fixed_point(
    student_overlap, cross_overlap, teacher_overlap, learning_rate, *, second_order=True, relaxation_time=1000.0
):
    r"""Overlaps at which learning from the given start comes to rest, such as the floor of an unrealizable task.

    The equations are integrated to α = relaxation_time; from there Powell's hybrid method solves dQ/dα = dR/dα = 0
    for the independent entries of Q and R.  Equal units may rest on a saddle, which the growth rate tells: two units
    that imitate three share the third teacher unit evenly, until a difference between them grows.  Where learning
    ends in a power law (more units than the teacher needs), the Jacobian is singular at rest, and the search may fail.

    Parameters
    ----------
    student_overlap, cross_overlap, teacher_overlap : array    Q, R, T at α = 0; equal units lead to the plateau
    learning_rate : float
    second_order : bool
    relaxation_time : float    α at which the search begins; > 0, later than any plateau on the way

    Returns
    -------
    FixedPoint                 a RuntimeError if the search does not come to rest at overlaps that are a covariance

    Examples
    --------
    >>> rest = fixed_point(0.1 * np.eye(3), 0.1 * np.eye(3, 2) + 0.01, np.eye(2), 0.5)  # three units imitate two
    >>> round(rest.generalization_error, 7), rest.growth_rate < 0
    (6.68e-05, True)
    """
    relaxation_time = checks.number("relaxation_time", relaxation_time, above=0)
    late = committee.solve(
        [relaxation_time],
        student_overlap,
        cross_overlap,
        teacher_overlap,
        learning_rate,
        second_order=second_order,
        rtol=1e-7,
    )
    q, r, t = late.student_overlap[0], late.cross_overlap[0], late.teacher_overlap  # (K, K), (K, M), (M, M)
    learning_rate = float(learning_rate)  # as it was checked
    upper = np.triu_indices(len(q))

    def overlaps(state):
        student = np.zeros_like(q)
        student[upper] = state[: len(upper[0])]
        return np.triu(student) + np.triu(student, 1).T, state[len(upper[0]) :].reshape(r.shape)

    def velocity(state):
        dq, dr = committee_formulas.velocity(*overlaps(state), t, learning_rate, second_order)
        return np.concatenate([dq[upper], dr.ravel()])

    found = root(velocity, np.concatenate([q[upper], r.ravel()]), tol=1e-13).x  # (K(K+1)/2 + KM,)
    speed = np.abs(velocity(found)).max()
    if not speed <= 1e-12 * learning_rate * max(1.0, np.abs(t).max()):  # NaN, too, is no rest
        raise RuntimeError(
            f"no fixed point found from α = {relaxation_time:g}: a speed of {speed:.1e} is left; "
            "let learning relax for longer"
        )
    q, r = overlaps(found)
    try:
        q, r, t = committee.checked_overlaps(q, r, t)
    except ValueError as reason:
        raise RuntimeError(
            f"the search from α = {relaxation_time:g} left the covariance matrices: {reason}"
        ) from reason
    modes = np.linalg.eigvals(_jacobian(q, r, t, learning_rate, second_order))  # (n,)
    return FixedPoint(q, r, float(committee_formulas.error(q, r, t)), float(modes.real.max()))


def plateau(size):
    r"""The symmetric plateau, at first order in η.

    All students are J = B_1 + ... + B_M times one factor:  R = 1/√(M(2M-1)),  Q = 1/(2M-1),
    ε_g = (1/π)[π/6 - M arcsin(1/(2M))]  (eqs. (13), (97), (99)).

    Parameters
    ----------
    size : int    M; >= 2

    Returns
    -------
    Plateau

    Examples
    --------
    >>> round(plateau(2).generalization_error, 5)
    0.00581
    """
    m = checks.integer("size", size, at_least=2)
    return Plateau(1 / (2 * m - 1), 1 / sqrt(m * (2 * m - 1)), (pi / 6 - m * asin(1 / (2 * m))) / pi)


def escape_rate(size, learning_rate):
    r"""Growth rate of the symmetry-breaking mode on the plateau of :func:`plateau`, at first order in η.

    δR_in = r (δ_in - (1-δ_in)/(M-1)) grows as exp(α/τ) with 1/τ = 2η / (π √(2M-1) (2M+1)^{3/2}); the error falls below
    its plateau value as r², at twice this rate  (eqs. (112) to (115), for one covariance eigenvalue).

    Parameters
    ----------
    size : int               M; >= 2
    learning_rate : float    η; > 0

    Returns
    -------
    float                    1/τ, per unit of α

    Examples
    --------
    >>> round(1 / escape_rate(2, 0.1), 1)
    304.2
    """
    m = checks.integer("size", size, at_least=2)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    return 2 * learning_rate / (pi * sqrt(2 * m - 1) * (2 * m + 1) ** 1.5)


def _near_teacher(size):
    """Drift and noise (n, n) of the mean squared deviations from the teacher; n = 2, or 1 for a single unit."""
    m = size
    drift = 2 / (sqrt(3) * pi * m) * np.array([[2, sqrt(3) * (m - 1)], [sqrt(3), 2 + sqrt(3) * (m - 2)]])  # (2, 2)
    mixed = 1 / sqrt(2) + (m - 2) / sqrt(12)
    rest = 2 / 3 + 2 * (m - 2) / sqrt(3) + (m - 2) * (m - 3) / 4
    noise = 4 / (pi * m) ** 2 * np.array([[1 / sqrt(5) + (m - 1) / 3, (m - 1) * mixed], [mixed, rest]])  # (2, 2)
    modes = 1 if m == 1 else 2  # one unit has no off-diagonal part
    return drift[:modes, :modes], noise[:modes, :modes]


def asymptotic_rates(size, learning_rate):
    r"""Rates of the two slowest contributions to ε_g near the teacher, each ∝ exp(rate · α).

    Write Δ = J - B.  The part of Δ outside the span of the teacher's vectors enters ε_g through the diagonal and
    off-diagonal entries (y, z) of ΔΔᵀ/N, with d(y, z)/dα = (-ηG + η²C)(y, z).  The part inside enters through the
    square of R - T, which decays at its own rate and has no η² term:  R - T ∝ exp(-2ηκα/(√3 π M)),
    κ = [4/3 + ω - √((2/3 + ω)² + 3(M-1)/4)]/2 with ω = √3 (M-2)/2, and κ = 1/3 for M = 1.
    The larger of the two rates governs late times.  Derived in the book; compare eqs. (118) and (119).

    Parameters
    ----------
    size : int               M; >= 1
    learning_rate : float    η; > 0

    Returns
    -------
    (float, float)           outside: top eigenvalue of -ηG + η²C, > 0 beyond η_c;  inside: -4ηκ/(√3 π M)

    Examples
    --------
    >>> outside, inside = asymptotic_rates(2, 0.5)
    >>> round(outside, 4), round(inside, 4)
    (-0.0242, -0.0221)
    """
    m = checks.integer("size", size)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    drift, noise = _near_teacher(m)
    growth = np.linalg.eigvals(learning_rate**2 * noise - learning_rate * drift)  # (n,), real: similar to symmetric
    w = sqrt(3) / 2 * (m - 2)
    kappa = 1 / 3 if m == 1 else (4 / 3 + w - sqrt((2 / 3 + w) ** 2 + 3 * (m - 1) / 4)) / 2
    return float(growth.real.max()), -4 * learning_rate * kappa / (sqrt(3) * pi * m)


def critical_learning_rate(size):
    r"""Learning rate at which perfect learning loses its linear stability: SGD approaches the teacher for η < η_c only.

    η_c = 1/ρ, with ρ the largest eigenvalue of G⁻¹C for the matrices of :func:`asymptotic_rates`, derived in the book.
    M = 1: π√(5/3);  M → ∞: √3 π.

    Parameters
    ----------
    size : int    M; >= 1

    Returns
    -------
    float         η_c

    Examples
    --------
    >>> bool(np.isclose(critical_learning_rate(1), np.pi * np.sqrt(5 / 3)))
    True
    """
    drift, noise = _near_teacher(checks.integer("size", size))
    return float(1 / np.linalg.eigvals(np.linalg.solve(drift, noise)).real.max())

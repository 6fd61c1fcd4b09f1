r"""Order-parameter theory of a soft committee machine that learns from a stream of Gaussian examples.

A student with K hidden units imitates a teacher with M of them, both with g(x) = erf(x/√2) and fixed output weights:
σ = (√M/K) Σ_i g(x_i) and ζ = (1/√M) Σ_n g(y_n), where x_i = J_i·ξ/√N, y_n = B_n·ξ/√N and ξ ~ N(0, 1).  All that matters
of the N(K+M) weights are the overlaps, a covariance matrix [[Q, R], [Rᵀ, T]]:

    ``student_overlap`` Q = JJᵀ/N (K, K),  ``cross_overlap`` R = JBᵀ/N (K, M),  ``teacher_overlap`` T = BBᵀ/N (M, M).

For N → ∞ they obey closed differential equations in the time α = examples / N, with the learning rate η > 0; without
``second_order`` the η² term is left out: gradient flow.  The matrices that drive them (:func:`drift_coefficients`,
:func:`noise_matrix`) need only Q, R and T, so they serve inputs with a structured covariance too.
Numbered equations: worschech2024.  The book derives them in "On-line learning".
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from lib.common import checks
from lib.foundations import committee_formulas

LARGEST = 1e6  # largest overlap: (1 + Q)² - Q² keeps ten digits up to here


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Order parameters along the learning time; the arrays of several runs are stacked along leading axes."""

    times: np.ndarray  # (n,)           α = examples / N
    student_overlap: np.ndarray  # (..., n, K, K)  Q
    cross_overlap: np.ndarray  # (..., n, K, M)  R, the student's index first
    teacher_overlap: np.ndarray  # (M, M)         T
    generalization_error: np.ndarray  # (..., n)        ε_g


def checked_overlaps(student_overlap, cross_overlap, teacher_overlap, *, stacked=False):
    """Q, R and T as float64 arrays, after checking that together they are a covariance matrix.

    Parameters
    ----------
    student_overlap, cross_overlap, teacher_overlap : array    Q, R, T; entries are at most 1e6
    stacked : bool                                             True allows leading axes of Q and R

    Returns
    -------
    (array (..., K, K), array (..., K, M), array (M, M))

    Examples
    --------
    >>> q, r, t = checked_overlaps([[1]], [[0]], [[1]])
    >>> q.dtype
    dtype('float64')
    """
    ndim = None if checks.boolean("stacked", stacked) else 2
    bounds = {"at_least": -LARGEST, "at_most": LARGEST}
    q = checks.entries("student_overlap", student_overlap, ndim=ndim, **bounds)  # (..., K, K)
    r = checks.entries("cross_overlap", cross_overlap, ndim=ndim, **bounds)  # (..., K, M)
    t = checks.entries("teacher_overlap", teacher_overlap, **bounds)  # (M, M)
    t = checks.symmetric("teacher_overlap", t, definite="semi")
    if q.ndim < 2 or q.shape[-1] != q.shape[-2] or q.size == 0:
        checks.fail("student_overlap", "hold square matrices (K, K)", f"shape {q.shape}")
    wanted = q.shape[:-1] + t.shape[:1]
    if r.shape != wanted:
        checks.fail("cross_overlap", f"have shape {wanted}, student's index first", f"shape {r.shape}")
    scale = max(np.abs(q).max(), t.max(), 1e-300)
    if not np.allclose(q, np.swapaxes(q, -1, -2), rtol=0, atol=1e-10 * scale):
        checks.fail("student_overlap", "be symmetric", student_overlap)
    top = np.concatenate([q, r], axis=-1)  # (..., K, K+M)
    teachers = np.broadcast_to(t, r.shape[:-2] + t.shape)  # (..., M, M)
    bottom = np.concatenate([np.swapaxes(r, -1, -2), teachers], axis=-1)  # (..., M, K+M)
    # Looser than rounding: a solved trajectory carries the integrator's error.
    lowest = committee_formulas.lowest_correlation(np.concatenate([top, bottom], axis=-2), 1e-7)
    if lowest < -committee_formulas.ROUNDING:
        checks.fail(
            "student_overlap, cross_overlap, teacher_overlap",
            "form a positive semidefinite matrix [[Q, R], [Rᵀ, T]], so that |R_in| <= √(Q_ii T_nn)",
            f"correlations with the lowest eigenvalue {lowest:.3g}",
        )
    return q, r, t


def generalization_error(student_overlap, cross_overlap, teacher_overlap):
    r"""Mean of (ζ - σ)²/2 over fresh inputs, a function of the overlaps alone.

    ε_g = (1/π) [ (M/K²) Σ_ij arcsin(Q_ij/√((1+Q_ii)(1+Q_jj))) + (1/M) Σ_nm arcsin(T_nm/√((1+T_nn)(1+T_mm)))
    - (2/K) Σ_in arcsin(R_in/√((1+Q_ii)(1+T_nn))) ]  (eq. (19), corrected; eq. (94) for K = M).

    Parameters
    ----------
    student_overlap, cross_overlap, teacher_overlap : array    Q (..., K, K), R (..., K, M), T (M, M)

    Returns
    -------
    array (...)    ε_g >= 0 up to an absolute error near 1e-16; a float for one set of overlaps

    Examples
    --------
    >>> silent = generalization_error([[0.0]], [[0.0]], [[1.0]])  # half the teacher's variance
    >>> round(float(silent), 6)
    0.166667
    """
    q, r, t = checked_overlaps(student_overlap, cross_overlap, teacher_overlap, stacked=True)
    return committee_formulas.error(q, r, t)[()]


def drift_coefficients(student_overlap, cross_overlap, teacher_overlap):
    r"""The matrices a and G of the student's mean motion, dJ_i ∝ Σ_m a_im B_m - Σ_j G_ij J_j.

    a_im = (2/π)/√((1+Q_ii)(1+T_mm) - R_im²),  b_ij = (2/π)/√((1+Q_ii)(1+Q_jj) - Q_ij²),
    G = (M/K) b + diag(d)  with  d_i = [Σ_m a_im R_im - (M/K) Σ_j b_ij Q_ij] / (1+Q_ii).
    Eq. (18), corrected, written as matrices; eqs. (92) and (93) for K = M.

    Parameters
    ----------
    student_overlap, cross_overlap, teacher_overlap : array    Q, R, T

    Returns
    -------
    (array (K, M), array (K, K))    a and the symmetric G

    Examples
    --------
    >>> a, g = drift_coefficients([[1.0]], [[1.0]], [[1.0]])  # perfect learning: pull and drag cancel
    >>> bool(np.isclose(a[0, 0], g[0, 0]))
    True
    """
    return committee_formulas.drift(*checked_overlaps(student_overlap, cross_overlap, teacher_overlap))


def noise_matrix(student_overlap, cross_overlap, teacher_overlap):
    r"""E_ij = ⟨g'(x_i) g'(x_j) (ζ - σ)²⟩, which sets the noise that single examples put into Q.

    With z = (x, y), covariance S, and δ = Σ_a w_a g(z_a): the factor g'(x_i) g'(x_j) is a Gaussian weight, which turns
    S into S̃ = S - [(1+S_jj) s_i s_iᵀ + (1+S_ii) s_j s_jᵀ - S_ij (s_i s_jᵀ + s_j s_iᵀ)]/Λ_ij, s_i the rows of S, and
    E_ij = 4/(π²√Λ_ij) Σ_ab w_a w_b arcsin(S̃_ab/√((1+S̃_aa)(1+S̃_bb))),  Λ_ij = (1+Q_ii)(1+Q_jj) - Q_ij².
    One formula instead of (K+M)² four-point averages.
    It is the η² bracket of eq. (18), corrected.

    Parameters
    ----------
    student_overlap, cross_overlap, teacher_overlap : array    Q, R, T

    Returns
    -------
    array (K, K)    E, symmetric, positive semidefinite; zero when the student is the teacher

    Examples
    --------
    >>> bool(np.allclose(noise_matrix(np.eye(2), np.eye(2), np.eye(2)), 0, atol=1e-15))
    True
    """
    return committee_formulas.noise(*checked_overlaps(student_overlap, cross_overlap, teacher_overlap))


def derivative(student_overlap, cross_overlap, teacher_overlap, learning_rate, *, second_order=True):
    r"""Rates of change of Q and R with α.

    dR/dα = (η/K)(aT - GR),   dQ/dα = (η/K)(aRᵀ + Raᵀ - GQ - QG) + η²(M/K²) E,  exact for N → ∞ at fixed K and M
    (eq. (18), corrected, for one covariance eigenvalue).

    Parameters
    ----------
    student_overlap, cross_overlap, teacher_overlap : array    Q, R, T
    learning_rate : float
    second_order : bool

    Returns
    -------
    (array (K, K), array (K, M))    dQ/dα, dR/dα

    Examples
    --------
    >>> dq, dr = derivative(np.eye(2), np.eye(2), np.eye(2), 0.5)  # perfect learning is a fixed point
    >>> bool(np.allclose(dq, 0) and np.allclose(dr, 0))
    True
    """
    q, r, t = checked_overlaps(student_overlap, cross_overlap, teacher_overlap)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    return committee_formulas.velocity(q, r, t, learning_rate, checks.boolean("second_order", second_order))


def solve(
    times, student_overlap, cross_overlap, teacher_overlap, learning_rate, *, second_order=True, rtol=1e-9, atol=1e-12
):
    r"""Integrate the equations of :func:`derivative` from α = 0 (eighth-order Runge-Kutta with step control).

    A start that is symmetric in the units never leaves the plateau.

    Parameters
    ----------
    times : array (n,)      α at which to report; >= 0, increasing
    student_overlap, cross_overlap, teacher_overlap : array    Q, R, T at α = 0
    learning_rate : float
    second_order : bool
    rtol, atol : float      tolerances of one step; 1e-13 <= rtol < 1, atol > 0

    Returns
    -------
    Trajectory              overlaps and generalization error at the n times; a RuntimeError if the integrator gives up

    Examples
    --------
    >>> path = solve([0, 50], [[0.25]], [[0.0]], [[1.0]], 1.0)
    >>> bool(path.generalization_error[1] < 1e-6 * path.generalization_error[0])
    True
    """
    times = checks.times("times", times)  # (n,)
    q, r, t = checked_overlaps(student_overlap, cross_overlap, teacher_overlap)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    second_order = checks.boolean("second_order", second_order)
    rtol = checks.number("rtol", rtol, at_least=1e-13, below=1)
    atol = checks.number("atol", atol, above=0)
    units = len(q)
    start = np.concatenate([q.ravel(), r.ravel()])  # (K² + KM,)
    end = times[-1] if times[-1] > 0 else 1.0  # the integrator wants an interval, even to report only its beginning

    def velocity(_, state):
        return committee_formulas.flat_velocity(state, t, units, learning_rate, second_order)

    solution = solve_ivp(velocity, (0, end), start, method="DOP853", t_eval=times, rtol=rtol, atol=atol)
    if not solution.success:
        raise RuntimeError(f"the equations could not be integrated to {times[-1]:g}: {solution.message}")
    q = solution.y[: units**2].T.reshape(-1, units, units)  # (n, K, K)
    r = solution.y[units**2 :].T.reshape(-1, units, len(t))  # (n, K, M)
    return Trajectory(times, q, r, t, committee_formulas.error(q, r, t))

"""Order-parameter theory of a soft committee machine that learns from a stream of Gaussian examples.

A student with K hidden units imitates a teacher with M, g(x) = erf(x/√2): σ = (√M/K) Σ_i g(x_i), ζ = (1/√M) Σ_n g(y_n),
x_i = J_i·ξ/√N, y_n = B_n·ξ/√N, ξ ~ N(0, 1).  Their covariance [[Q, R], [Rᵀ, T]], `student_overlap` Q = JJᵀ/N,
`cross_overlap` R = JBᵀ/N (K, M), `teacher_overlap` T = BBᵀ/N, obeys closed equations for N → ∞ in α = examples/N, with
`learning_rate` η > 0; without `second_order` the η² term is left out: gradient flow.  Numbered: worschech2024.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import DOP853, solve_ivp

from lib.common import checks
from lib.foundations import committee_formulas

LARGEST = 1e6  # largest overlap: (1 + Q)² - Q² keeps ten digits up to here
STABLE = 4.0  # longest step times fastest rate; the integrator is stable up to 6


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Order parameters along the learning time; the arrays of several runs are stacked along leading axes."""

    times: np.ndarray  # (n,)           α = examples / N
    student_overlap: np.ndarray  # (..., n, K, K)  Q
    cross_overlap: np.ndarray  # (..., n, K, M)  R, the student's index first
    teacher_overlap: np.ndarray  # (M, M)         T
    generalization_error: np.ndarray  # (..., n)        ε_g


def checked_overlaps(student_overlap, cross_overlap, teacher_overlap, *, stacked=False):
    """`student_overlap`, `cross_overlap`, `teacher_overlap` as arrays, if a covariance; `stacked`: many.  Returns them.

    >>> [part.dtype.name for part in checked_overlaps([[1]], [[0]], [[1]])]
    ['float64', 'float64', 'float64']
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
    teachers = np.broadcast_to(t, r.shape[:-2] + t.shape)  # (..., M, M)
    joint = np.block([[q, r], [np.swapaxes(r, -1, -2), teachers]])  # (..., K+M, K+M)
    # Looser than rounding: a solved trajectory carries the integrator's error.
    lowest = committee_formulas.lowest_correlation(joint, 1e-7)
    if lowest < -committee_formulas.ROUNDING:
        wanted = "form a positive semidefinite matrix [[Q, R], [Rᵀ, T]], so that |R_in| <= √(Q_ii T_nn)"
        names, found = "student_overlap, cross_overlap, teacher_overlap", f"the lowest eigenvalue {lowest:.3g}"
        checks.fail(names, wanted, f"correlations with {found}")
    return q, r, t


def generalization_error(student_overlap, cross_overlap, teacher_overlap):
    """Mean of (ζ - σ)²/2 over fresh inputs, a function of the overlaps alone.

    ε_g = (1/π) [(M/K²) Σ_ij arcsin(Q_ij/√((1+Q_ii)(1+Q_jj))) + (1/M) Σ_nm arcsin(T_nm/√((1+T_nn)(1+T_mm))) - (2/K) Σ_in
    arcsin(R_in/√((1+Q_ii)(1+T_nn)))]  (eq. (19), corrected; eq. (94) for K = M).  `student_overlap` (..., K, K),
    `cross_overlap` (..., K, M), `teacher_overlap` (M, M): Q, R, T.  Returns (...).

    >>> round(float(generalization_error([[0.0]], [[0.0]], [[1.0]])), 6)  # silent: half the teacher's variance
    0.166667
    """
    q, r, t = checked_overlaps(student_overlap, cross_overlap, teacher_overlap, stacked=True)
    return committee_formulas.error(q, r, t)[()]


def drift_coefficients(student_overlap, cross_overlap, teacher_overlap):
    """The matrices a and G of the student's mean motion, dJ_i ∝ Σ_m a_im B_m - Σ_j G_ij J_j, for any inputs.

    a_im = (2/π)/√((1+Q_ii)(1+T_mm) - R_im²),  b_ij = (2/π)/√((1+Q_ii)(1+Q_jj) - Q_ij²),  G = (M/K) b + diag(d), d_i =
    [Σ_m a_im R_im - (M/K) Σ_j b_ij Q_ij]/(1+Q_ii)  (eq. (18), corrected; eqs. (92), (93) for K = M), of
    `student_overlap`, `cross_overlap`, `teacher_overlap`.  Returns a (K, M) and the symmetric G (K, K).

    >>> [part.round(6).item() for part in drift_coefficients([[1.0]], [[1.0]], [[1.0]])]  # pull and drag cancel
    [0.367553, 0.367553]
    """
    return committee_formulas.Fields(*checked_overlaps(student_overlap, cross_overlap, teacher_overlap)).drift()


def noise_matrix(student_overlap, cross_overlap, teacher_overlap):
    """E_ij = ⟨g'(x_i) g'(x_j) (ζ - σ)²⟩, which sets the noise that single examples put into Q, eq. (18), corrected.

    With z = (x, y) of covariance S, rows s_i, and ζ - σ = Σ_a w_a g(z_a):  E_ij = 4/(π²√Λ_ij) Σ_ab w_a w_b
    arcsin(S̃_ab/√((1+S̃_aa)(1+S̃_bb))),  Λ_ij = (1+Q_ii)(1+Q_jj) - Q_ij²,  S̃ = S - [(1+S_jj) s_i s_iᵀ + (1+S_ii) s_j
    s_jᵀ - S_ij (s_i s_jᵀ + s_j s_iᵀ)]/Λ_ij.  From `student_overlap`, `cross_overlap`, `teacher_overlap`.  Returns E.

    >>> bool(np.allclose(noise_matrix(np.eye(2), np.eye(2), np.eye(2)), 0, atol=1e-15))
    True
    """
    return committee_formulas.Fields(*checked_overlaps(student_overlap, cross_overlap, teacher_overlap)).noise()


def derivative(student_overlap, cross_overlap, teacher_overlap, learning_rate, *, second_order=True):
    """Rates of change of Q and R with α, exact for N → ∞ at fixed K and M (eq. (18), corrected, one eigenvalue).

    dR/dα = (η/K)(aT - GR),  dQ/dα = (η/K)(aRᵀ + Raᵀ - GQ - QG) + η²(M/K²) E,  the last if `second_order`.
    `student_overlap`, `cross_overlap`, `teacher_overlap`, `learning_rate`: Q, R, T, η.  Returns dQ/dα, dR/dα.

    >>> bool(np.allclose(derivative(np.eye(2), np.eye(2), np.eye(2), 0.5), 0))  # perfect learning is a fixed point
    True
    """
    q, r, t = checked_overlaps(student_overlap, cross_overlap, teacher_overlap)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    return committee_formulas.Fields(q, r, t).velocity(learning_rate, checks.boolean("second_order", second_order))


class _Settling(DOP853):
    """Runge-Kutta steps that stay clear of the limit of stability, where errors as large as the tolerance never decay.

    Each takes one step of a power iteration for the fastest rate.  All units are treated alike, unlike implicitly.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._probe = np.full(self.n, self.n**-0.5)  # (K² + KM,)

    def _step_impl(self):
        small = 1e-7 * (1 + np.linalg.norm(self.y))
        turned = (self.fun(self.t, self.y + small * self._probe) - self.f) / small  # (K² + KM,)
        rate = np.linalg.norm(turned)
        if rate > 0:
            self._probe, self.max_step = turned / rate, STABLE / rate
        return super()._step_impl()


def solve(
    times, student_overlap, cross_overlap, teacher_overlap, learning_rate, *, second_order=True, rtol=1e-12, atol=1e-15
):
    """Integrate the equations of :func:`derivative` from α = 0 (eighth-order Runge-Kutta with step control).

    ε_g is a difference of overlaps: with the default `rtol`, `atol` (tolerances, rtol >= 1e-13) it is right to 1e-4 of
    itself above 1e-7, to 1e-2 above 1e-11, in all our tests, and to 1e-13 below, of either sign.  Only rounding takes
    a start that is symmetric in the units off the plateau.  `times` (n,): α >= 0, increasing; `student_overlap`,
    `cross_overlap`, `teacher_overlap`: Q, R, T at α = 0; `learning_rate`, `second_order`: η, its η² term.  Returns a
    Trajectory; a RuntimeError if the integrator gives up.

    >>> bool(solve([50], [[0.25]], [[0.0]], [[1.0]], 1.0).generalization_error < 1e-7)
    True
    """
    times = checks.times("times", times)  # (n,)
    q, r, t = checked_overlaps(student_overlap, cross_overlap, teacher_overlap)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    second_order = checks.boolean("second_order", second_order)
    rtol = checks.number("rtol", rtol, at_least=1e-13, below=1)
    atol = checks.number("atol", atol, above=0)
    units, fields = len(q), committee_formulas.Fields(q, r, t)
    start = np.concatenate([q.ravel(), r.ravel()])  # (K² + KM,)
    end = times[-1] if times[-1] > 0 else 1.0  # the integrator wants an interval, even to report only its beginning

    def velocity(_, state):
        return fields.flow(state, learning_rate, second_order)

    solution = solve_ivp(velocity, (0, end), start, method=_Settling, t_eval=times, rtol=rtol, atol=atol)
    if not solution.success:
        raise RuntimeError(f"the equations could not be integrated to {times[-1]:g}: {solution.message}")
    q = solution.y[: units**2].T.reshape(-1, units, units)  # (n, K, K)
    r = solution.y[units**2 :].T.reshape(-1, units, len(t))  # (n, K, M)
    return Trajectory(times, q, r, t, committee_formulas.error(q, r, t))

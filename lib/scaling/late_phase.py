"""The end of learning of a soft committee machine with structured inputs: how the error vanishes, and at which rates.

K = M units as in :mod:`lib.foundations.committee`, teachers with  B P_k Bᵀ/N = n_k 1, every student near its own:  Δ_i
= J_i - B_i.  The error needs only  y_k and z_k, the mean diagonal and off-diagonal entry of  E^k = Δ P_k Δᵀ/N:

    dy_k/dα = -ηaλ_k [2y_k + √3(M-1) z_k] + η²/M λ_k n_k E_d,            a = 2/(√3 π M),
    dz_k/dα = -ηaλ_k [√3 y_k + (2 + √3(M-2)) z_k] + η²/M λ_k n_k E_o.

Source: worschech2024, eqs. (16), (17) and (118) to (122).  What lies inside the teachers' span enters through squares:
:mod:`lib.scaling.teacher_span`.  In all functions `alpha`, a number or (A,): time α >= 0 since `diagonal` (L,): y_k and
`off_diagonal` (L,): z_k (of no effect for M = 1) were as given; `eigenvalues` (L,): λ_k > 0; `multiplicities` (L,):
m_k, up to a factor, all equal by default; `units`: M >= 1; `learning_rate`: η > 0.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.foundations import stability
from lib.scaling import _arguments
from lib.scaling.site_symmetric import site_means


@dataclass(frozen=True, eq=False)
class Groups:
    """The two groups of exponentials that make up the late error, and the slope of their sum on logarithmic axes."""

    fast: np.ndarray  # (A,)  part of ε_g due to the sum of the units, rates ηaγ_fλ_k
    slow: np.ndarray  # (A,)  part due to their differences, rates ηaγ_sλ_k; zero for M = 1
    local_exponent: np.ndarray  # (A,)  d ln ε_g / d ln(α₀ + α)


def _symmetric(lam, fractions, units, rate):
    """The matrix S (2L, 2L) of :func:`rates`, (L, L) for M = 1."""
    drift, noise = stability.near_teacher(units)
    v = lam * np.sqrt(fractions)  # (L,)
    pull = rate * 2 / (np.sqrt(3) * np.pi * units) * np.kron(np.diag(lam), drift)
    return (rate / units) ** 2 * np.kron(np.outer(v, v), noise) - pull


def _checked(alpha, diagonal, off_diagonal, eigenvalues, units, learning_rate):
    alpha, lam = _arguments.times(alpha), _arguments.levels(eigenvalues)  # (A,), (L,)
    y = checks.array("diagonal", diagonal, shape=lam.shape)  # (L,)
    z = checks.array("off_diagonal", off_diagonal, shape=lam.shape)  # (L,)
    return alpha, y, z, lam, checks.integer("units", units), _arguments.learning_rate(learning_rate)


def _decays(alpha, y, z, lam, m, rate):
    """Terms (A, L) of the closed form and their rates (L,), first of the fast group, then of the slow one."""
    found = []
    groups = (2 + np.sqrt(3) * (m - 1), y + (m - 1) * z), (2 - np.sqrt(3), (m - 1) * (y - z))
    for gamma, start in groups:
        pace = rate * 2 / (np.sqrt(3) * np.pi * m) * gamma * lam  # (L,)
        found.append((np.exp(-np.outer(alpha, pace)) * (gamma * lam * start / (2 * np.sqrt(3) * np.pi * m)), pace))
    return found


def deviations(student_resolved, cross_resolved, teacher_resolved):
    """y_k and z_k, the mean diagonal and off-diagonal entries of  E^k = Q^k - R^k - R^kᵀ + T^k = (J-B) P_k (J-B)ᵀ/N.

    `student_resolved`, `cross_resolved`, `teacher_resolved` (L, M, M): Q^k, R^k, T^k, student i near teacher i.
    Returns y_k (L,) and z_k (L,):  q_k - 2r_k and c_k - 2s_k of eq. (121).

    >>> [part.round(12).tolist() for part in deviations([[[1.0]]], [[[0.9]]], [[[1.0]]])]
    [[0.2], [0.0]]
    """
    q = checks.array("student_resolved", student_resolved, ndim=3)  # (L, M, M)
    if q.size == 0 or q.shape[1] != q.shape[2]:
        checks.fail("student_resolved", "hold square matrices", f"shape {q.shape}")
    r = checks.array("cross_resolved", cross_resolved, shape=q.shape)  # (L, M, M)
    t = checks.array("teacher_resolved", teacher_resolved, shape=q.shape)  # (L, M, M)
    y, z = site_means(q - 2 * r + t).T  # (L,), (L,)
    return y, z


@checks.one_or_many
def groups(alpha, diagonal, off_diagonal, eigenvalues, units, learning_rate, *, origin=0.0):
    """The fast and the slow part of :func:`generalization_error` at first order in η, and the exponent of their sum.

    Refused where the error is zero or underflows.  `alpha`, `diagonal`, `off_diagonal`, `eigenvalues`, here of any
    mean, `units`, `learning_rate`: as in the module; `origin`: α₀ >= 0, for the exponent in α₀ + α.  Returns a Groups.

    >>> part = groups([1.0, 1e4], [0.5, 0.5], [0.0, 0.0], [1.5, 0.5], 2, 0.1)  # nothing learned yet
    >>> (part.fast > part.slow).tolist()  # the fast group is the larger, and ends first
    [True, False]
    """
    alpha, y, z, lam, m, rate = _checked(alpha, diagonal, off_diagonal, eigenvalues, units, learning_rate)
    origin = checks.number("origin", origin, at_least=0)
    decays = _decays(alpha, y, z, lam, m, rate)
    parts = [terms.sum(axis=1) for terms, _ in decays]  # (A,), (A,)
    total = parts[0] + parts[1]  # (A,)
    if np.any(total <= 0):
        checks.fail("alpha", "lie where the error is positive: y_k >= 0, not all zero, and no underflow", alpha)
    slope = -sum(terms @ pace for terms, pace in decays)  # (A,)
    return Groups(*parts, (origin + alpha) * slope / total)


@checks.one_or_many
def generalization_error(
    alpha, diagonal, off_diagonal, eigenvalues, units, learning_rate, *, multiplicities=None, second_order=False
):
    """Generalization error near perfect learning, to first order in E^k; in closed form to first order in η.

    ε_g = 1/(2√3πM) Σ_k λ_k [(M-1)γ_s u_k e^{-ηaγ_sλ_kα} + γ_f v_k e^{-ηaγ_fλ_kα}],  u = y - z,  v = y + (M-1)z,  γ_s =
    2 - √3,  γ_f = 2 + √3(M-1)  (eqs. (17), (121), (122), corrected).  With the noise of single examples all y and z
    mix, by the matrix of :func:`rates`.  `alpha`, `diagonal`, `off_diagonal`, `eigenvalues`, `units`, `learning_rate`,
    `multiplicities`: as in the module; `second_order`: True adds the η² term, for deviations outside the teachers'
    span. With either of the last two, λ_k must have weighted mean one.  Returns (A,).

    >>> (1e4 * generalization_error([0.0, 1.0], [1e-4], [0.0], [1.0], 1, 1.0)).round(6).tolist()  # M = 1: e^{-2ηaα}
    [0.183776, 0.088112]
    """
    alpha, y, z, lam, m, rate = _checked(alpha, diagonal, off_diagonal, eigenvalues, units, learning_rate)
    second_order = checks.boolean("second_order", second_order)
    if second_order or multiplicities is not None:
        fractions = _arguments.spectrum(lam, multiplicities)[1]  # (L,)
    if not second_order:
        return sum(terms.sum(axis=1) for terms, _ in _decays(alpha, y, z, lam, m, rate))
    root, modes = np.sqrt(fractions), min(m, 2)  # (L,), int
    pair = np.stack([y, np.sqrt(m - 1) * z], axis=1)[:, :modes]  # (L, 2)
    weights = np.array([2 * np.sqrt(3), 3 * np.sqrt(m - 1)])[:modes] / (6 * np.pi)  # (2,)
    values, frame = eigh(_symmetric(lam, fractions, m, rate))  # (2L,), (2L, 2L)
    row, start = np.kron(lam * root, weights), (pair / root[:, None]).ravel()  # (2L,), (2L,)
    return np.exp(np.outer(alpha, values)) @ ((row @ frame) * (frame.T @ start))


def quadratic_error(student_overlap, cross_overlap, teacher_overlap):
    """Generalization error to second order in Δ = J - B, for orthonormal teachers, T = 1.

    ε_g ≈ (1/πM) [Σ_i (E_ii - ⅔ r_ii²)/√3 + ½ Σ_{i≠j} (E_ij - ½ r_ii r_ji - ½ r_ij r_jj)],  r = R - T,  E = Q - R - Rᵀ +
    T. Eq. (121) is the first order in E; at few eigenvalues the terms in r² do not fall behind.  `student_overlap`,
    `cross_overlap`, `teacher_overlap` (M, M): Q, R, T = 1, student i near teacher i.  Returns a float.

    >>> round(quadratic_error([[1.0]], [[0.999]], [[1.0]]), 9)
    0.00036743
    """
    t = checks.symmetric("teacher_overlap", teacher_overlap)  # (M, M)
    if np.abs(t - np.eye(len(t))).max() > 1e-9:
        checks.fail("teacher_overlap", "be the identity", teacher_overlap)
    q = checks.symmetric("student_overlap", student_overlap, size=len(t))  # (M, M)
    cross = checks.array("cross_overlap", cross_overlap, shape=t.shape)  # (M, M)
    r, e = cross - t, q - cross - cross.T + t  # (M, M), (M, M)
    own = np.diag(r)  # (M,)
    pairs = e - (own[:, None] * r.T + r * own) / 2  # (M, M)
    total = (np.diag(e) - 2 / 3 * own**2).sum() / np.sqrt(3) + (pairs.sum() - np.trace(pairs)) / 2
    return float(total / (np.pi * len(t)))


def rates(eigenvalues, units, learning_rate, *, multiplicities=None):
    """Growth rates of y and z near perfect learning with the noise of single examples, all 2L of them.

    The symmetric matrix  S = -ηa diag(λ) ⊗ 𝒢 + (η²/M²) v vᵀ ⊗ 𝒞,  v_k = λ_k √n_k, with the drift 𝒢 and noise 𝒞 of two
    coordinates: eqs. (118) to (120) outside the teachers' span.  `eigenvalues`, of weighted mean one, `units`,
    `learning_rate`, `multiplicities`: as in the module.  Returns (2L,), (L,) for M = 1, ascending.

    >>> edge = critical_learning_rate(2)
    >>> bool(rates([1.5, 0.5], 2, 0.99 * edge)[-1] < 0 < rates([1.5, 0.5], 2, 1.01 * edge)[-1])
    True
    """
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    m, rate = checks.integer("units", units), _arguments.learning_rate(learning_rate)
    return eigh(_symmetric(lam, fractions, m, rate), eigvals_only=True)


def critical_learning_rate(units):
    """Learning rate at which perfect learning becomes unstable, for every spectrum:  η_c = a M² / ρ_max(𝒢⁻¹𝒞).

    That of :mod:`lib.foundations.stability`, from π√(5/3) at M = 1 to √3 π for M -> ∞; not in the source. `units`: M >=
    1.  Returns η_c.

    >>> bool(np.isclose(critical_learning_rate(1), np.pi * np.sqrt(5 / 3)))
    True
    """
    return stability.critical_learning_rate(units)

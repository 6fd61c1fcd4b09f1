"""The plateau of a soft committee machine for any teacher and any input covariance: its height, its escape rates.

K = M >= 2 units as in :mod:`lib.foundations.committee`, small learning rate.  All students are one vector J = Σ_n ρ_n
B_n, and only  T = BΣBᵀ/N  and  T⁽²⁾ = BΣ²Bᵀ/N  matter.  Source: worschech2024, eqs. (13) to (15) and (97) to (116), for
teachers that are alike; here every teacher has its own, exactly.  The computation is that
of :mod:`lib.foundations.stability`.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.foundations import stability
from lib.scaling import _arguments


@dataclass(frozen=True, eq=False)
class SymmetricPoint:
    """The symmetric fixed point: every student is Σ_n weights_n B_n."""

    weights: np.ndarray  # (M,)  ρ
    cross_overlap: np.ndarray  # (M,)  R_n, of every student with teacher n
    student_overlap: float  # every Q_ij
    generalization_error: float


def fixed_point(teacher_overlap):
    """The plateau for a given teacher, exact to first order in the learning rate.

    Stationary equal students have  ρ_n = (1/M) √{(1+2Q) / ((1+Q)(1+T_nn) - R_n²)},  R = Tρ,  Q = ρᵀTρ,  iterated from ρ
    = 1/M; refused where this does not converge.  `teacher_overlap` (M, M): T.  Returns a SymmetricPoint.

    >>> point = fixed_point([[1.0, 0.0], [0.0, 1.0]])
    >>> round(point.student_overlap, 9), round(point.generalization_error, 9)  # 1/3; (π/6 - 2 arcsin 1/4)/π
    (0.333333333, 0.00580542)
    """
    rest = stability.plateau(teacher_overlap)
    q, r = float(rest.student[0, 0]), rest.cross[0]  # float, (M,)
    rho = np.sqrt((1 + 2 * q) / ((1 + q) * (1 + np.diag(rest.teacher)) - r**2)) / len(r)  # (M,)
    return SymmetricPoint(rho, r, q, rest.generalization_error)


def escape_rates(teacher_overlap, second_overlap, learning_rate):
    """Growth rates of the differences among students on the plateau, for any teacher, per unit of α.

    A student's deviation r_n of its overlap with teacher n, at fixed mean, grows as  dr/dα = (η/M) T⁽²⁾ w(r): with  Λ_m
    = (1+Q)(1+T_mm) - R_m²,  κ = (2/π)(1+2Q)^{-3/2},  p = ρ·r,  δa_m = (2/π) Λ_m^{-3/2} [R_m r_m - (1+T_mm) p],  δd =
    (δa·R + κMpQ)/(1+Q),  w_m = δa_m + ρ_m (κMp - δd).  `teacher_overlap`, `second_overlap` (M, M): T, T⁽²⁾;
    `learning_rate`: η > 0.  Returns (M,), descending; the first M - 1 are the escape rates.

    >>> rates = escape_rates(np.eye(2), np.eye(2), 0.1)
    >>> bool(np.isclose(rates[0], symmetric_escape_rate(2, 1.0, 0.0, 1.0, 0.0, 0.1), rtol=1e-9))
    True
    """
    second = checks.array("second_overlap", second_overlap)  # (M, M)
    return stability.escape_rates(teacher_overlap, learning_rate, second_overlap=second)


def symmetric_escape_rate(units, diagonal, off_diagonal, second_diagonal, second_off_diagonal, learning_rate):
    """The escape rate 1/τ_r where all teachers are alike:  T_nn = T,  T_nm = D/(M-1) for m ≠ n, and T₂, D₂ for T⁽²⁾.

    1/τ_r = η g_r (T₂ - D₂/(M-1)),  g_r = 2(T+D) / {π [(M-1)T - D + M]^{1/2} [D + (M+1)T + M]^{3/2}}  (eqs. (15) and
    (114) to (116)).  Of the overlaps: the excess ε* - ε_g grows at twice this rate, in the source at this rate itself.
    `units`: M >= 2; `diagonal`: T > 0; `off_diagonal`: -T < D < (M-1)T; `second_diagonal`, `second_off_diagonal`: T₂,
    D₂ in the same bounds; `learning_rate`: η > 0.  Returns 1/τ_r.

    >>> round(symmetric_escape_rate(100, 1.0, 0.0, 1.0, 0.0, 1.0) * 2 * np.pi * 100**2, 3)
    0.995
    """
    m = checks.integer("units", units, at_least=2)
    t = checks.number("diagonal", diagonal, above=0)
    d = checks.number("off_diagonal", off_diagonal, above=-t, below=(m - 1) * t)
    t2 = checks.number("second_diagonal", second_diagonal, above=0)
    d2 = checks.number("second_off_diagonal", second_off_diagonal, above=-t2, below=(m - 1) * t2)
    strength = 2 * (t + d) / (np.pi * np.sqrt((m - 1) * t - d + m) * (d + (m + 1) * t + m) ** 1.5)
    return float(_arguments.learning_rate(learning_rate) * strength * (t2 - d2 / (m - 1)))

"""The plateau of a soft committee machine for any teacher and any input covariance: its height, its escape rates.

Source: worschech2024, eqs. (13) to (15) and (97) to (116), for teachers that are alike; here every teacher has its own.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.foundations import committee_formulas

SWEEPS = 500  # of the fixed-point iteration; some tens are needed


def _teacher(name, value, size=None):
    value = checks.symmetric(name, value, size=size, definite="strict")  # (M, M)
    if len(value) < 2:
        checks.fail(name, "be a matrix of at least two teachers: a single unit has no plateau", f"shape {value.shape}")
    return value


@dataclass(frozen=True, eq=False)
class Plateau:
    """The symmetric fixed point for a given teacher, exact to first order in the learning rate.

    K = M >= 2 units; all students are one vector  J = Σ_n ρ_n B_n,  and only  T = BΣBᵀ/N  matters.  Stationary equal
    students have  ρ_n = (1/M) √{(1+2Q) / ((1+Q)(1+T_nn) - R_n²)},  R = Tρ,  Q = ρᵀTρ,  iterated from ρ = 1/M.

    Parameters
    ----------
    teacher_overlap : array_like (M, M)
        T of the fields, positive definite; refused where the iteration does not converge.

    Attributes
    ----------
    weights, cross_overlap : ndarray (M,)
        ρ, and R_n of every student with teacher n.
    student_overlap, generalization_error : float
        Every Q_ij, and ε_g.

    Examples
    --------
    >>> point = Plateau([[1.0, 0.0], [0.0, 1.0]])
    >>> round(point.student_overlap, 9), round(point.generalization_error, 9)  # 1/3; (π/6 - 2 arcsin 1/4)/π
    (0.333333333, 0.00580542)
    """

    teacher_overlap: Array["M M"]
    weights: Array[" M"] = field(init=False)
    cross_overlap: Array[" M"] = field(init=False)
    student_overlap: float = field(init=False)
    generalization_error: float = field(init=False)

    def __post_init__(self):
        t = _teacher("teacher_overlap", self.teacher_overlap)  # (M, M)
        units = len(t)
        rho = np.full(units, 1 / units)  # (M,)
        for _ in range(SWEEPS):
            r = t @ rho  # (M,)
            q = rho @ r
            new = np.sqrt((1 + 2 * q) / ((1 + q) * (1 + np.diag(t)) - r**2)) / units  # (M,)
            moved, rho = np.abs(new - rho).max(), new
            if moved < 1e-15:
                break
        if moved > 1e-12:
            found = f"changes of {moved:.1g} after {SWEEPS} sweeps"
            checks.fail("teacher_overlap", "let the iteration converge", found)
        r = t @ rho  # (M,)
        q = float(rho @ r)
        error = float(committee_formulas.error(np.full((units, units), q), np.tile(r, (units, 1)), t))
        checks.keep(
            self, teacher_overlap=t, weights=rho, cross_overlap=r, student_overlap=q, generalization_error=error
        )

    def escape_rates(self, second_overlap: ArrayLike, learning_rate: float) -> Array[" M"]:
        """Growth rates of the differences among students on the plateau, per unit of α.

        A student's deviation r_n of its overlap with teacher n, at fixed mean, grows as  dr/dα = (η/M) T⁽²⁾ w(r): with
        Λ_m = (1+Q)(1+T_mm) - R_m²,  κ = (2/π)(1+2Q)^{-3/2},  p = ρ·r,  δa_m = (2/π) Λ_m^{-3/2} [R_m r_m - (1+T_mm) p],
        δd = (δa·R + κMpQ)/(1+Q),  w_m = δa_m + ρ_m (κMp - δd).

        Parameters
        ----------
        second_overlap : array_like (M, M)
            T⁽²⁾ = BΣ²Bᵀ/N, positive definite.
        learning_rate : float
            η > 0.

        Returns
        -------
        ndarray (M,)
            Descending; the first M - 1 are the escape rates.

        Examples
        --------
        >>> rates = Plateau(np.eye(2)).escape_rates(np.eye(2), 0.1)
        >>> bool(np.isclose(rates[0], symmetric_escape_rate(2, 1.0, 0.0, 1.0, 0.0, 0.1), rtol=1e-9))
        True
        """
        second = _teacher("second_overlap", second_overlap, len(self.weights))  # (M, M)
        rate, units = checks.number("learning_rate", learning_rate, above=0), len(second)
        q, r, rho, width = self.student_overlap, self.cross_overlap, self.weights, 1 + np.diag(self.teacher_overlap)
        kappa = 2 / np.pi * (1 + 2 * q) ** -1.5
        sharp = 2 / np.pi * ((1 + q) * width - r**2) ** -1.5  # (M,)
        pull = np.diag(sharp * r) - np.outer(sharp * width, rho)  # (M, M): δa of every unit vector r
        drag = (r @ pull + kappa * units * q * rho) / (1 + q)  # (M,): δd
        push = pull + np.outer(rho, kappa * units * rho - drag)  # (M, M): w
        return np.sort(np.linalg.eigvals(rate / units * second @ push).real)[::-1]


def symmetric_escape_rate(
    units: int,
    diagonal: float,
    off_diagonal: float,
    second_diagonal: float,
    second_off_diagonal: float,
    learning_rate: float,
) -> float:
    """The escape rate 1/τ_r where all teachers are alike:  T_nn = T,  T_nm = D/(M-1) for m ≠ n, and T₂, D₂ for T⁽²⁾.

    1/τ_r = η g_r (T₂ - D₂/(M-1)),  g_r = 2(T+D) / {π [(M-1)T - D + M]^{1/2} [D + (M+1)T + M]^{3/2}}:  worschech2024
    eqs. (15) and (114) to (116).  Of the overlaps: the excess ε* - ε_g grows at twice this rate, in the source at this
    rate itself.

    Parameters
    ----------
    units : int
        M >= 2.
    diagonal, off_diagonal : float
        T > 0 and -T < D < (M-1)T.
    second_diagonal, second_off_diagonal : float
        T₂, D₂ in the same bounds.
    learning_rate : float
        η > 0.

    Returns
    -------
    float
        1/τ_r.

    Examples
    --------
    >>> round(symmetric_escape_rate(100, 1.0, 0.0, 1.0, 0.0, 1.0) * 2 * np.pi * 100**2, 3)
    0.995
    """
    m = checks.integer("units", units, at_least=2)
    t = checks.number("diagonal", diagonal, above=0)
    d = checks.number("off_diagonal", off_diagonal, above=-t, below=(m - 1) * t)
    t2 = checks.number("second_diagonal", second_diagonal, above=0)
    d2 = checks.number("second_off_diagonal", second_off_diagonal, above=-t2, below=(m - 1) * t2)
    strength = 2 * (t + d) / (np.pi * np.sqrt((m - 1) * t - d + m) * (d + (m + 1) * t + m) ** 1.5)
    return float(checks.number("learning_rate", learning_rate, above=0) * strength * (t2 - d2 / (m - 1)))

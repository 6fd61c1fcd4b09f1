"""The plateau of a soft committee machine with structured inputs, beside :mod:`lib.foundations.stability`.

Source: worschech2024, eqs. (13) to (15) and (97) to (116), for teachers that are alike.
"""

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.foundations import stability


def weights(teacher_overlap: ArrayLike) -> Array[" M"]:
    """What the students are on the plateau, to first order in the learning rate: all of them  J = Σ_n ρ_n B_n.

    The root of  Tρ = R,  R_n the overlap of every student with teacher n of :func:`lib.foundations.stability.plateau`;
    so their resolved overlaps are  R^k = T^kρ  and  Q^k = ρᵀT^kρ.

    Parameters
    ----------
    teacher_overlap : array_like (M, M)
        T of the fields, positive definite, M >= 2.

    Returns
    -------
    ndarray (M,)
        ρ.

    Examples
    --------
    >>> weights(np.eye(2)).round(9).tolist()  # 1/√6
    [0.40824829, 0.40824829]
    """
    rest = stability.plateau(teacher_overlap)
    return np.linalg.solve(rest.teacher, rest.cross[0])


def symmetric_escape_rate(
    units: int, diagonal: float, off_diagonal: float, second_diagonal: float, second_off_diagonal: float,
    learning_rate: float,
) -> float:  # fmt: skip
    """The escape rate 1/τ_r where all teachers are alike:  T_nn = T,  T_nm = D/(M-1) for m ≠ n, and T₂, D₂ for T⁽²⁾.

    A closed form of the first M - 1 rates of :func:`lib.foundations.stability.escape_rates`, for any number of units:
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

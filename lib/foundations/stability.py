"""Where a committee waits and where it ends: the plateau of equal units, the escape, the approach to the teacher.

K = M units as in :mod:`lib.foundations.committee`; rates are per unit of α = examples/N.
"""

from math import pi, sqrt

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.foundations.committee import Overlaps

__all__ = ["asymptotic_rates", "critical_learning_rate", "escape_rates", "near_teacher", "plateau"]

SWEEPS = 500  # of the fixed-point iteration; some tens are needed


def _teacher(name, value, size=None):
    value = checks.symmetric(name, value, size=size, definite="strict")  # (M, M)
    if len(value) < 2:
        checks.fail(name, "be a matrix of at least two teachers: a single unit has no plateau", f"shape {value.shape}")
    return value


def plateau(teacher_overlap: ArrayLike) -> Overlaps:
    """The symmetric fixed point of any teacher at first order in η, where every student is the same  J = Σ_n ρ_n B_n.

    ρ_n = (1/M) √{(1+2Q) / ((1+Q)(1+T_nn) - R_n²)},  R = Tρ,  Q = ρᵀTρ,  iterated from ρ = 1/M.  For T = 1:  Q =
    1/(2M-1),  R = 1/√(M(2M-1)),  ε_g = (1/π)[π/6 - M arcsin(1/(2M))]  (worschech2024 eqs. (13), (97), (99)).

    Parameters
    ----------
    teacher_overlap : array_like (M, M)
        T, positive definite, M >= 2; with structured inputs that of the fields, T = BΣBᵀ/N, of which the plateau has
        the overlaps of the fields (its ``solve`` is for isotropic inputs; resolved, it is R^k = T^kρ, Q^k = ρᵀT^kρ with
        ρ of ``lib.scaling.plateau.weights``).

    Returns
    -------
    Overlaps
        Every Q_ij is the same, and every row of R.

    Raises
    ------
    ValueError
        Also where the iteration does not converge.

    Examples
    --------
    >>> rest = plateau(np.eye(2))
    >>> round(float(rest.student[0, 1]), 9), round(rest.generalization_error, 9)
    (0.333333333, 0.00580542)
    """
    t = _teacher("teacher_overlap", teacher_overlap)  # (M, M)
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
        checks.fail("teacher_overlap", "let the iteration converge", f"changes of {moved:.1g} after {SWEEPS} sweeps")
    r = t @ rho  # (M,)
    return Overlaps(np.full((units, units), rho @ r), np.tile(r, (units, 1)), t)


def escape_rates(
    teacher_overlap: ArrayLike, learning_rate: float, *, second_overlap: ArrayLike | None = None
) -> Array[" M"]:
    """Growth rates of the differences among students on the plateau, for any teacher, at first order in η.

    A student's deviation r_n of its overlap with teacher n, at fixed mean, grows as  dr/dα = (η/M) T⁽²⁾ w(r): with  Λ_m
    = (1+Q)(1+T_mm) - R_m²,  κ = (2/π)(1+2Q)^{-3/2},  p = ρ·r,  δa_m = (2/π) Λ_m^{-3/2} [R_m r_m - (1+T_mm) p],  δd =
    (δa·R + κMpQ)/(1+Q),  w_m = δa_m + ρ_m (κMp - δd).  For T = T⁽²⁾ = 1 all M - 1 are  1/τ = 2η/(π √(2M-1)
    (2M+1)^{3/2})  (worschech2024 eqs. (112) to (115)); the error falls at twice this rate.  Whether a run has come to
    rest there at all its curve tells, :func:`lib.scaling.plateau.rest`.

    Parameters
    ----------
    teacher_overlap, second_overlap : array_like (M, M)
        T = BΣBᵀ/N and T⁽²⁾ = BΣ²Bᵀ/N, by default T as for unstructured inputs; positive definite, M >= 2.
    learning_rate : float
        η > 0.

    Returns
    -------
    ndarray (M,)
        Descending; the first M - 1 are the escape rates.

    Examples
    --------
    >>> round(1 / float(escape_rates(np.eye(2), 0.1, second_overlap=np.eye(2))[0]), 1)
    304.2
    """
    rest, learning_rate = plateau(teacher_overlap), checks.number("learning_rate", learning_rate, above=0)
    t, q, r, units = rest.teacher, rest.student[0, 0], rest.cross[0], len(rest.teacher)  # (M, M), float, (M,), int
    second = t if second_overlap is None else _teacher("second_overlap", second_overlap, units)  # (M, M)
    width = 1 + np.diag(t)  # (M,)
    volume = (1 + q) * width - r**2  # (M,)
    rho = np.sqrt((1 + 2 * q) / volume) / units  # (M,)
    kappa = 2 / pi * (1 + 2 * q) ** -1.5
    sharp = 2 / pi * volume**-1.5  # (M,)
    pull = np.diag(sharp * r) - np.outer(sharp * width, rho)  # (M, M): δa of every unit vector r
    drag = (r @ pull + kappa * units * q * rho) / (1 + q)  # (M,): δd
    push = pull + np.outer(rho, kappa * units * rho - drag)  # (M, M): w
    values = np.linalg.eigvals(learning_rate / units * second @ push)  # (M,)
    return np.sort(values.real)[::-1]


def near_teacher(units: int) -> tuple[Array["n n"], Array["n n"]]:
    """Drift 𝒢 and noise 𝒞 of the mean squared deviations from a teacher, T = 1, of students that lie outside its span.

    With y, z the mean diagonal and off-diagonal entry of  ΔΔᵀ/N,  Δ = J - B,  and x = (√M y, √{M(M-1)} z):  dx/dα =
    [-ηa𝒢 + (η/M)²𝒞] x,  a = 2/(√3 π M).

    Parameters
    ----------
    units : int
        M >= 1.

    Returns
    -------
    tuple of ndarray (n, n)
        𝒢 and 𝒞, symmetric; n = 2, or 1 for a single unit, which has no z.

    Examples
    --------
    >>> [part.round(4).tolist() for part in near_teacher(1)]  # 2 and 4/(√5 π²)
    [[[2.0]], [[0.1812]]]
    """
    m = checks.integer("units", units)
    side = sqrt(m - 1)
    drift = np.array([[2, sqrt(3) * side], [sqrt(3) * side, 2 + sqrt(3) * (m - 2)]])  # (2, 2)
    # E_ij = (1/M) Σ_nm <g'_i g'_j g'_n g'_m> ΔΔᵀ_nm/N at J = B, by the number of units that coincide;
    # <g'^p> = (2/π)^{p/2}/√(1+p)
    mixed = side * (1 / sqrt(2) + (m - 2) / sqrt(12))
    rest = 2 / 3 + 2 * (m - 2) / sqrt(3) + (m - 2) * (m - 3) / 4
    noise = 4 / pi**2 * np.array([[1 / sqrt(5) + (m - 1) / 3, mixed], [mixed, rest]])  # (2, 2)
    modes = 1 if m == 1 else 2
    return drift[:modes, :modes], noise[:modes, :modes]


def asymptotic_rates(units: int, learning_rate: float) -> tuple[float, float]:
    """Rates of the two slowest contributions to ε_g near the teacher, each ∝ exp(rate · α); the larger governs late.

    Outside the span of the teacher the top eigenvalue of  -ηa𝒢 + (η/M)²𝒞  of :func:`near_teacher`.  Inside, (R - T)²
    has the rate -4ηκ/(√3 π M), κ = [4/3 + ω - √((2/3 + ω)² + 3(M-1)/4)]/2, ω = √3 (M-2)/2, and κ = 1/3 for M = 1.
    Compare worschech2024 eqs. (118), (119).

    Parameters
    ----------
    units : int
        M >= 1.
    learning_rate : float
        η > 0.

    Returns
    -------
    tuple of float
        The rate outside, > 0 beyond the critical learning rate, and the rate inside.

    Examples
    --------
    >>> [round(rate, 4) for rate in asymptotic_rates(2, 0.5)]
    [-0.0242, -0.0221]
    """
    m = checks.integer("units", units)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    drift, noise = near_teacher(m)
    slow = learning_rate * 2 / (sqrt(3) * pi * m)  # ηa
    outside = np.linalg.eigvalsh((learning_rate / m) ** 2 * noise - slow * drift)[-1]
    w = sqrt(3) / 2 * (m - 2)
    kappa = 1 / 3 if m == 1 else (4 / 3 + w - sqrt((2 / 3 + w) ** 2 + 3 * (m - 1) / 4)) / 2
    return float(outside), -2 * slow * kappa


def critical_learning_rate(units: int) -> float:
    """Learning rate at which perfect learning loses its linear stability: SGD approaches the teacher for η < η_c only.

    η_c = aM²/ρ, ρ the largest eigenvalue of 𝒢⁻¹𝒞 of :func:`near_teacher`: from π√(5/3) at M = 1 to √3 π for M → ∞, and
    the same for every spectrum of the inputs; not in worschech2024.

    Parameters
    ----------
    units : int
        M >= 1.

    Returns
    -------
    float

    Examples
    --------
    >>> bool(np.isclose(critical_learning_rate(1), np.pi * np.sqrt(5 / 3)))
    True
    """
    m = checks.integer("units", units)
    drift, noise = near_teacher(m)
    return float(2 * m / (sqrt(3) * pi) / np.linalg.eigvals(np.linalg.solve(drift, noise)).real.max())

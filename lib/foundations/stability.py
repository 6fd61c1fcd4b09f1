"""Where a committee waits and where it ends: the plateau of equal units, the escape, the approach to the teacher.

K = M units as in :mod:`lib.foundations.committee`; rates are per unit of α = examples/N.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import pi, sqrt

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.foundations.committee import Overlaps

__all__ = ["Plateau", "asymptotic_rates", "critical_learning_rate", "near_teacher"]

SWEEPS = 500  # of the fixed-point iteration; some tens are needed


def _teacher(name, value, size=None):
    value = checks.symmetric(name, value, size=size, definite="strict")  # (M, M)
    if len(value) < 2:
        checks.fail(name, "be a matrix of at least two teachers: a single unit has no plateau", f"shape {value.shape}")
    return value


@dataclass(frozen=True, eq=False)
class Plateau:
    """The symmetric fixed point of any teacher at first order in η, where every student is the same  J = Σ_n ρ_n B_n.

    ρ_n = (1/M) √{(1+2Q)/Λ_n},  Λ_n = (1+Q)(1+T_nn) - R_n²,  R = Tρ,  Q = ρᵀTρ,  iterated from ρ = 1/M.  For T = 1:  Q =
    1/(2M-1),  R = 1/√(M(2M-1)),  ε_g = (1/π)[π/6 - M arcsin(1/(2M))]  (worschech2024 eqs. (13), (97), (99)).

    Parameters
    ----------
    teacher_overlap : array_like (M, M)
        T, positive definite, M >= 2; with structured inputs that of the fields, T = BΣBᵀ/N.

    Attributes
    ----------
    weights : ndarray (M,)
        ρ.  The resolved overlaps of the students are  R^k = T^kρ,  Q^k = ρᵀT^kρ.
    overlaps : Overlaps
        Those of the fields: every Q_ij is the same, and every row of R.  Its ``solve`` is for isotropic inputs.
    generalization_error : float
        ε*.
    curvature : ndarray (M, M)
        h, symmetric, known from T:  h_mn = δ_mn s_m R_m - [s_m R_m² ρ_n + ρ_m s_n R_n²]/(1+Q) + C ρ_m ρ_n,  with  s_m =
        (2/π) Λ_m^{-3/2},  κ = (2/π)(1+2Q)^{-3/2},  C = [Σ_m s_m R_m³ - κMQ]/(1+Q)².  If all R_m > 0, M - 1 eigenvalues
        are positive and one is negative, or zero where all ρ_m R_m are equal.

    Raises
    ------
    ValueError
        Also where the iteration does not converge.

    Examples
    --------
    >>> pair = Plateau(np.eye(2))
    >>> round(float(pair.overlaps.student[0, 1]), 9), round(pair.generalization_error, 9)
    (0.333333333, 0.00580542)
    >>> (pair.weights * np.sqrt(6)).round(9).tolist(), (pair.curvature * pi * np.sqrt(3 * 5**3)).round(9).tolist()
    ([1.0, 1.0], [[2.0, -2.0], [-2.0, 2.0]])
    """

    teacher_overlap: Array["M M"]
    weights: Array[" M"] = field(init=False, repr=False)

    def __post_init__(self):
        t = _teacher("teacher_overlap", self.teacher_overlap)  # (M, M)
        rho = np.full(len(t), 1 / len(t))  # (M,)
        for _ in range(SWEEPS):
            r = t @ rho  # (M,)
            q = rho @ r
            new = np.sqrt((1 + 2 * q) / ((1 + q) * (1 + np.diag(t)) - r**2)) / len(t)  # (M,)
            moved, rho = np.abs(new - rho).max(), new
            if moved < 1e-15:
                break
        if moved > 1e-12:
            found = f"changes of {moved:.1g} after {SWEEPS} sweeps"
            checks.fail("teacher_overlap", "let the iteration converge", found)
        t.flags.writeable = rho.flags.writeable = False
        checks.keep(self, teacher_overlap=t, weights=rho)

    @cached_property
    def overlaps(self) -> Overlaps:
        """Q, R and T of the fields."""
        r, units = self.teacher_overlap @ self.weights, len(self.weights)  # (M,), int
        return Overlaps(np.full((units, units), self.weights @ r), np.tile(r, (units, 1)), self.teacher_overlap)

    @property
    def generalization_error(self) -> float:
        """ε*  (worschech2024 eq. (13) for T = 1)."""
        return self.overlaps.generalization_error

    @cached_property
    def curvature(self) -> Array["M M"]:
        """h, by which the error falls, :meth:`excess`, and students part, :meth:`escape_rates`."""
        rho, units = self.weights, len(self.weights)  # (M,), int
        r = self.teacher_overlap @ rho  # (M,)
        q = rho @ r
        stiff = 2 / pi * ((1 + q) * (1 + np.diag(self.teacher_overlap)) - r**2) ** -1.5 * r  # (M,): s_m R_m
        kappa = 2 / pi * (1 + 2 * q) ** -1.5
        mixed, drag = np.outer(stiff * r, rho / (1 + q)), (stiff @ r**2 - kappa * units * q) / (1 + q) ** 2
        h = np.diag(stiff) - (mixed + mixed.T) + drag * np.outer(rho, rho)  # (M, M)
        h.flags.writeable = False
        return h

    def excess(self, displacements: ArrayLike) -> float | Array["..."]:
        """How far the error lies below the plateau, to second order, for students with a mean that stays there.

        ε* - ε_g = (1/2K) Σ_i r_i·h r_i  for K students  J_i = J + Δ_i,  Σ_i Δ_i = 0,  r_in = Δ_i·B_n/N: what no teacher
        sees costs nothing.  With structured inputs r is that of the fields, Δ_iΣB_n/N.

        Parameters
        ----------
        displacements : array_like (..., K, M)
            r, with a sum of zero over the students.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> r = 0.001 * np.array([[1.0, -1.0], [-1.0, 1.0]])
        >>> pair, moved = Plateau(np.eye(2)), np.full((2, 2), 6**-0.5) + r
        >>> true = pair.generalization_error - Overlaps(moved @ moved.T, moved, np.eye(2)).generalization_error
        >>> round(pair.excess(r) / true, 3)
        1.0
        """
        r = checks.array("displacements", displacements)  # (..., K, M)
        if r.ndim < 2 or r.shape[-2] == 0 or r.shape[-1] != len(self.weights):
            checks.fail("displacements", f"have shape (..., K, {len(self.weights)})", f"shape {r.shape}")
        off, largest = np.abs(r.sum(axis=-2)).max(initial=0), np.abs(r).max(initial=0)
        checks.fail_if(off > 1e-10 * largest, "displacements", "add up to zero over the students", f"a sum {off:.3g}")
        return checks.plain(((r @ self.curvature) * r).sum(axis=(-2, -1)) / (2 * r.shape[-2]))

    def escape_rates(self, learning_rate: float, *, second_overlap: ArrayLike | None = None) -> Array[" M"]:
        """Growth rates of the differences among students, at first order in η.

        dr_i/dα = (η/M) T⁽²⁾h r_i  for the displacements of :meth:`excess`, so T⁽²⁾ is a mobility and the signs of the
        rates are those of h.  For T = T⁽²⁾ = 1 all M - 1 are  1/τ = 2η/(π √(2M-1) (2M+1)^{3/2})  (worschech2024 eqs.
        (112) to (115)); the error falls at twice this rate.  Whether a run has come to rest there at all its curve
        tells, :func:`lib.scaling.plateau.rest`.

        Parameters
        ----------
        learning_rate : float
            η > 0.
        second_overlap : array_like (M, M), optional
            T⁽²⁾ = BΣ²Bᵀ/N, positive definite, by default T as for unstructured inputs.

        Returns
        -------
        ndarray (M,)
            Descending; the first M - 1 are the escape rates, of K students M/K times as large.

        Examples
        --------
        >>> round(1 / float(Plateau(np.eye(2)).escape_rates(0.1, second_overlap=np.eye(2))[0]), 1)
        304.2
        """
        rate, t = checks.number("learning_rate", learning_rate, above=0), self.teacher_overlap
        second = t if second_overlap is None else _teacher("second_overlap", second_overlap, len(t))  # (M, M)
        root = np.linalg.cholesky(second)  # (M, M)
        return rate / len(t) * np.linalg.eigvalsh(root.T @ self.curvature @ root)[::-1]


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

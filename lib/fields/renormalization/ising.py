"""The physics behind learning curves: the Ising model on strips, and the flow of φ⁴ below four dimensions.

A strip of L spins, periodic across, has the transfer matrix  V(s, s') = e^{K[Σ s_i s_{i+1}/2 + Σ s'_i s'_{i+1}/2 + Σ
s_i s'_i]},  K = 1/T.  Its two leading eigenvalues, one even and one odd under s → -s, give the correlation length
ξ_L = 1/ln(λ_even/λ_odd).  Where ξ_L/L agrees for two widths the model looks the same at both scales: phenomenological
renormalization.  Source: ringel2025talk, on the Ising model, φ⁴ and finite-size scaling; the numbers are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.common.linalg import top
from lib.common.shapes import Array, ArrayLike

CRITICAL_COUPLING = np.log(1 + np.sqrt(2)) / 2  # K_c of the square lattice
CRITICAL_TEMPERATURE = 1 / CRITICAL_COUPLING  # T_c = 2/ln(1 + √2)
STRIP_LIMIT = 4 / np.pi  # ξ_L/L at K_c as L → ∞: 1/(πη) with η = 1/4
_WIDEST = 12  # matrices of 2^(L-1) rows


@dataclass(frozen=True, eq=False)
class Strip:
    """Leading eigenvalues of a strip, of the shape (...) of the couplings.

    Parameters
    ----------
    length, slope : float or ndarray (...)
        ξ_L, in lattice units, and dξ_L/dK.
    free_energy : float or ndarray (...)
        ln λ_even / L, minus the free energy per spin over temperature.
    """

    length: float | Array["..."]
    slope: float | Array["..."]
    free_energy: float | Array["..."]


@dataclass(frozen=True)
class Crossing:
    """Where two strips of different width look alike.

    Parameters
    ----------
    coupling, ratio : float
        K*, estimate of K_c, and ξ_L/L there.
    correlation_exponent : float
        ν from the slopes there.
    """

    coupling: float
    ratio: float
    correlation_exponent: float


@dataclass(frozen=True)
class FixedPoint:
    """The fixed point of the one-loop φ⁴ flow with u > 0.

    Parameters
    ----------
    mass, quartic : float
        r*, u*.
    thermal_exponent : float
        y_t, the relevant eigenvalue; ν = 1/y_t.
    """

    mass: float
    quartic: float
    thermal_exponent: float


def _leading(coupling, within, between, parity):
    """ln λ of the leading even or odd eigenvector and its derivative with K, by ⟨v|dV/dK|v⟩/λ."""
    rows = coupling * (within[:, None] + within) / 2  # (n, n)
    same = np.exp(rows + coupling * between)  # (n, n)  at most e^{2 K L}: no overflow
    flipped = parity * np.exp(rows - coupling * between)  # (n, n)  s' → -s'
    value, v = top(same + flipped)  # (), (n,)
    slope = (v * within) @ (same + flipped) @ v + v @ (between * (same - flipped)) @ v
    return np.log(value), slope / value


def strip(couplings: ArrayLike, width: int) -> Strip:
    """Correlation length of an infinite strip,  ξ_L = 1/ln(λ_even/λ_odd),  its slope in K, and the free energy.

    Parameters
    ----------
    couplings : float or array_like
        K, 0 < K <= 1, beyond which the two eigenvalues are too close.
    width : int
        2 <= L <= 12 spins across; at L = 2 both neighbors are the same spin, and the bond counts twice.

    Returns
    -------
    Strip

    Examples
    --------
    >>> round(strip(CRITICAL_COUPLING, 4).length / 4, 4)
    1.2345
    """
    couplings = checks.entries("couplings", couplings, above=0, at_most=1)  # (...)
    width = _width("width", width)
    states = np.arange(2 ** (width - 1))  # (n,)  half the rows, of which the last spin is up; the other half is -s
    spins = 1.0 - 2.0 * (states[:, None] >> np.arange(width) & 1)  # (n, L)
    within, between = (spins * np.roll(spins, 1, axis=1)).sum(axis=1), spins @ spins.T  # (n,), (n, n)
    found = np.empty((*couplings.shape, 3))  # (..., 3)
    for index in np.ndindex(couplings.shape):
        (even, up), (odd, down) = (_leading(couplings[index], within, between, parity) for parity in (1, -1))
        gap = even - odd
        if not gap > 1e-9:
            wanted = f"be smaller for width {width}: ξ is beyond the floating-point precision"
            checks.fail("couplings", wanted, couplings[index])
        found[index] = 1 / gap, (down - up) / gap**2, even / width
    return Strip(*(checks.plain(found[..., n]) for n in range(3)))


def _width(name, value):
    value = checks.integer(name, value, at_least=2)
    if value > _WIDEST:
        checks.fail(name, f"be at most {_WIDEST}", value)
    return value


def crossing(width: int, other: int) -> Crossing:
    """Phenomenological renormalization: the coupling where  ξ_L/L = ξ_{L'}/L',  and ν from the slopes there.

    The slopes are ∝ L^{1/ν}, so  1 + 1/ν = ln(ξ_L'/ξ_{L'}')/ln(L/L').

    Parameters
    ----------
    width, other : int
        L ≠ L', from 2 to 12.

    Returns
    -------
    Crossing

    Examples
    --------
    >>> round(crossing(6, 4).coupling, 4)
    0.4371
    """
    width, other = _width("width", width), _width("other", other)
    if width == other:
        checks.fail("other", "differ from width", other)

    def difference(coupling):
        return strip(coupling, width).length / width - strip(coupling, other).length / other

    coupling = brentq(difference, 0.3, 0.5, xtol=1e-12)
    one, two = strip(coupling, width), strip(coupling, other)
    exponent = np.log(one.slope / two.slope) / np.log(width / other) - 1
    return Crossing(coupling, one.length / width, float(1 / exponent))


def phi4_fixed_point(epsilon: float) -> FixedPoint:
    """Fixed point with u > 0 of the one-loop flow of φ⁴ in d = 4 - ε:  r* = -ε/(6+ε),  u* = ε/(6+ε)²,  and its y_t.

    For the action  ∫ (∇φ)²/2 + rφ²/2 + uφ⁴,  the angular factor K_d absorbed in u, the flow by ln of the scale is
    r' = 2r + 12u/(1+r),  u' = εu - 36u²/(1+r)²,  and y_t ≃ 2 - ε/3 its relevant eigenvalue; orders of ε beyond the
    first mean nothing.

    Parameters
    ----------
    epsilon : float
        0 < ε <= 3.

    Returns
    -------
    FixedPoint

    Examples
    --------
    >>> round(phi4_fixed_point(0.01).thermal_exponent, 4)
    1.9967
    """
    epsilon = checks.number("epsilon", epsilon, above=0, at_most=3)
    r, u = -epsilon / (6 + epsilon), epsilon / (6 + epsilon) ** 2
    loop = u / (1 + r)
    mass, quartic = (2 - 12 * loop / (1 + r), 12 / (1 + r)), (72 * loop**2 / (1 + r), epsilon - 72 * loop / (1 + r))
    return FixedPoint(r, u, float(np.linalg.eigvals([mass, quartic]).real.max()))

"""Weights that adapt to a single-index teacher, in the Gaussian closure: one scalar equation and all its solutions.

The residual pulls the weights of each unit along the teacher; their density is taken as Gaussian.  Source:
ringel2025talk, the deck, slides on kernel adaptation (with real τ = P_e r) and on the scaling approach; the free energy
is not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize.elementwise import find_root

from lib.common import checks
from lib.common.shapes import Array
from lib.fields.overlaps import _projections
from lib.fields.overlaps.single_index import SingleIndex, _read

GRID = 1024  # trial ratios; two states closer to each other than one step, next to where both vanish, are not seen
LARGEST = 1e12  # largest P_e Y²/N: a step of the grid stays below 0.1 in ln u


@dataclass(frozen=True, eq=False)
class Branches:
    """Stationary points of the free energy, in ascending order of their ratio; K of them, an odd number."""

    variance: Array[" K"]  # B, of the overlaps
    ratio: Array[" K"]  # dB/σ_w²; one in the prior
    residuals: Array["K n"]  # r_n
    learnabilities: Array["K n"]  # R_n = 1 - r_n/Y_n; nan where Y_n = 0
    stable: Array[" K"]  # whether a minimum
    free_energy: Array[" K"]  # Γ, per unit
    equilibrium: int  # which of the K has the lowest


def _state(model, log_ratio):
    """Residuals (..., n), data part of Γ (...), and its force  (P_e²/N) rᵀ(u dM/du) r  (...) at ln u."""
    activation, listed, y, s, d, strength, per_unit, uniform = model
    u = np.exp(log_ratio)  # (...)
    m, weights = _projections.gaussian_overlap(activation, u * s / d, u * s if uniform else s)  # (..., Q), (..., Q)
    inner = (u * s)[..., None] if uniform else np.asarray(s)  # (..., 1) or ()  σ_w², of |w|² = σ_w² + m²
    seen = _projections.components(activation, listed, m, np.hypot(np.sqrt(inner), m))  # (..., Q, n)
    length = (inner + m**2)[..., None]  # (..., Q, 1)
    if activation == "erf":
        share = (0.5 if uniform else 0.5 + inner) / (0.5 + length)  # (..., Q, 1)
        slope = 0.5 * listed * share  # (..., Q, n)  d ln ĥ_n/d ln u
    else:
        slope = 0.5 if uniform else 0.5 * (listed + (1 - listed) * m[..., None] ** 2 / length)  # (..., Q, n)
    kernel = np.swapaxes(weights[..., None] * seen, -1, -2) @ seen  # (..., n, n)
    residuals = _projections.residuals(kernel, strength + 0 * u, y)  # (..., n)
    along = (seen @ residuals[..., None])[..., 0]  # (..., Q)  r·ĥ
    change = ((slope * seen) @ residuals[..., None])[..., 0]  # (..., Q)  its derivative
    force = 2 * per_unit * strength * (weights * along * change).sum(axis=-1)  # (...)
    return residuals, 0.5 * per_unit * (residuals @ y), force


def solve(network: SingleIndex, *, isotropic: bool = False) -> Branches:
    """All solutions of the adaptive approach: each unit's weights change their variance along the teacher alone.

    If their density is Gaussian, of variance B along w_* and σ_w²/d across, |w|² = σ_w² + m², the units enter through
    M(B) = s_a²⟨ĥĥᵀ⟩ over m ~ N(0, B), with ĥ of :func:`lib.fields.overlaps.single_index.projections`, and what is left
    of the target is  r = (1 + P_e M)⁻¹Y.  The free energy per unit is, up to a constant and with u = dB/σ_w²,

        Γ(u) = ½(u - 1 - ln u) + (P_e/2N) Y·r,      -2u Γ'(u) = 1 - u + (P_e²/N) rᵀ(u dM/du) r.

    Its stationary points are the adapted states, its minima the stable ones; in equilibrium the lowest is taken.  With
    g(m) = (s_a²P_e²/2N)(r·ĥ)²  they solve  1/B = d/σ_w² - ⟨g''⟩:  there the divergence of N(0, B) from the density of
    one unit, e^{-S} with  S = dm²/2σ_w² - g  at the residual r, is stationary.  As N → ∞ at fixed P_e, u → 1.

    Parameters
    ----------
    network : SingleIndex
        Of fixed perpendicular lengths; P_e Y²/N <= 1e12.
    isotropic : bool
        Whether to take the scaling approach: the weights change the scale of their prior alone, Σ = u σ_w² I/d, and all
        d directions pay,  Γ(u) = (d/2)(u - 1 - ln u) + (P_e/2N) Y·r.  A ReLU network has M → uM then: it learns what
        the infinitely wide one does at uP_e.

    Returns
    -------
    Branches

    Examples
    --------
    >>> network = SingleIndex("erf", [1.0, -0.1 * np.sqrt(6)], 20, 100, 5400.0, readout_variance=0.2)
    >>> [solve(network, isotropic=isotropic).ratio.round(2).tolist() for isotropic in (False, True)]
    [[2.91], [1.05]]
    """
    _read(network, perpendicular="fixed")
    y, d, samples, s = network.target, network.dimension, network.effective_samples, network.weight_variance  # (n,)
    strength, per_unit = samples * network.readout_variance, samples / network.width
    with np.errstate(over="ignore"):
        checks.fail_if(not per_unit * (y @ y) <= LARGEST, "effective_samples", f"keep P_e Y²/N <= {LARGEST:g}", samples)
        checks.fail_if(not strength <= 1e100, "effective_samples", "keep P_e s_a² <= 1e100", samples)
    directions = d if checks.boolean("isotropic", isotropic) else 1
    model = network.activation, network.degrees, y, s, d, strength, per_unit, isotropic

    def balance(log_ratio):
        return -directions * np.expm1(log_ratio) + _state(model, log_ratio)[2]

    # Y·r lies between 0 and Y², and P_e rᵀMr below Y²/4: no minimum is far outside, whatever the branch.  The ends are
    # moved until the signs say so.
    end = np.log(10 + 60 * per_unit * (y @ y) / directions)
    low, high = -end, end
    while balance(np.array(low)) <= 0:
        low -= end
    while balance(np.array(high)) >= 0:
        high += end
    grid = np.linspace(low, high, GRID)  # (GRID,)
    signs = np.sign(balance(grid))  # (GRID,)
    # A grid point that is a root itself counts to the cell on its left.
    signs[signs == 0] = -1
    cells = np.flatnonzero(np.diff(signs))  # (K,)
    roots = find_root(balance, (grid[cells], grid[cells + 1]), tolerances={"xatol": 1e-14, "xrtol": 1e-15}).x  # (K,)
    residuals, data, _ = _state(model, roots)  # (K, n), (K,)
    ratio = np.exp(roots)  # (K,)
    free_energy = 0.5 * directions * (np.expm1(roots) - roots) + data  # (K,)
    stable = signs[cells] > 0  # (K,)
    learned, lowest = _projections.learnabilities(residuals, y), int(free_energy.argmin())  # (K, n), ()
    return Branches(ratio * s / d, ratio, residuals, learned, stable, free_energy, lowest)

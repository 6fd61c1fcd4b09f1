"""Weights that adapt to a single-index teacher, in the Gaussian closure: one scalar equation and all its solutions.

At finite width N the residual r pulls the weights of each unit along the teacher.  If their density is taken as
Gaussian, of variance B along w_* and σ_w²/d across, and |w|² = σ_w² + m², the units enter through  M(B) = s_a²⟨ĥĥᵀ⟩
over m ~ N(0, B), with ĥ of :mod:`lib.fields.overlaps.single_index`, and what is left of the target is r = (1 + P_e
M)⁻¹Y.  Up to a constant the free energy per unit, as a function of the ratio u = dB/σ_w², is

    Γ(u) = ½(u - 1 - ln u) + (P_e/2N) Y·r,      -2u Γ'(u) = 1 - u + (P_e²/N) rᵀ(u dM/du) r.

Its stationary points are the adapted states, its minima the stable ones, and the lowest is taken in equilibrium.  In
terms of  g(m) = (s_a²P_e²/2N)(r·ĥ)²  they solve  1/B = d/σ_w² - ⟨g''⟩:  there the divergence of N(0, B) from the
density of one unit, e^{-S} with  S = dm²/2σ_w² - g  at the residual r, is stationary.  Source: ringel2025talk, the
deck, slides on kernel adaptation (with real τ = P_e r) and on the scaling approach; the free energy is not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize.elementwise import find_root

from lib.common import checks
from lib.fields.overlaps import _projections

GRID = 1024  # trial ratios; two states closer to each other than one step, next to where both vanish, are not seen
LARGEST = 1e12  # largest P_e Y²/N: a step of the grid stays below 0.1 in ln u


@dataclass(frozen=True, eq=False)
class Branches:
    """Stationary points of the free energy, in ascending order of their ratio; K of them, an odd number."""

    variance: np.ndarray  # (K,)  B, of the overlaps
    ratio: np.ndarray  # (K,)  dB/σ_w²; one in the prior
    residuals: np.ndarray  # (K, n)  r_n
    learnabilities: np.ndarray  # (K, n)  R_n = 1 - r_n/Y_n; nan where Y_n = 0
    stable: np.ndarray  # (K,)  whether a minimum
    free_energy: np.ndarray  # (K,)  Γ, per unit
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


def _branches(
    activation, target, dimension, width, effective_samples, weight_variance, readout_variance, degrees, *, uniform
):
    """The balance of forces on a grid of ln u, and its roots; `uniform` lets all d directions share one ratio."""
    activation, listed = _projections.basis(activation, degrees)
    y = _projections.target(target, listed.size)  # (n,)
    d, units = checks.integer("dimension", dimension), checks.integer("width", width)
    samples = checks.number("effective_samples", effective_samples, at_least=0)
    s = _projections.variance("weight_variance", weight_variance)
    readout = _projections.variance("readout_variance", readout_variance)
    with np.errstate(over="ignore"):
        if not samples / units * (y @ y) <= LARGEST:
            checks.fail("effective_samples", f"keep P_e Y²/N <= {LARGEST:g}", effective_samples)
        if not samples * readout <= 1e100:
            checks.fail("effective_samples", "keep P_e s_a² <= 1e100", effective_samples)
    strength = samples * readout
    directions = d if uniform else 1
    model = (activation, listed, y, s, d, strength, samples / units, uniform)

    def balance(log_ratio):
        return -directions * np.expm1(log_ratio) + _state(model, log_ratio)[2]

    # Y·r lies between 0 and Y², and P_e rᵀMr below Y²/4: no minimum is far outside, whatever the branch.  The ends are
    # moved until the signs say so.
    end = np.log(10 + 60 * samples / units * (y @ y) / directions)
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


def solve(
    activation, target, dimension, width, effective_samples, *, weight_variance=1.0, readout_variance=1.0, degrees=None
):
    """All solutions of the adaptive approach: each unit's weights change their variance along the teacher alone.

    Mean-field scaling by χ divides `readout_variance` and the ridge T behind P_e by χ.  As N → ∞ at fixed P_e, u → 1:
    :func:`single_index.lazy` with ``perpendicular="fixed"``.  `activation`: "erf" or "relu"; `target` (n,): Y_n on the
    degrees, not all zero; `dimension`, `width`: d, N >= 1; `effective_samples`: P_e = 1/κ >= 0, P/T for the equivalent
    kernel, or one over :func:`single_index.ridge`; `weight_variance`, `readout_variance`: σ_w², s_a² > 0; `degrees`: as
    in :func:`single_index.projections`.  Returns Branches.

    >>> solve("erf", [1.0, -0.1 * np.sqrt(6)], 20, 100, 5400.0, readout_variance=0.2).ratio.round(2).tolist()
    [2.91]
    """
    given = activation, target, dimension, width, effective_samples, weight_variance, readout_variance, degrees
    return _branches(*given, uniform=False)


def scaling(
    activation, target, dimension, width, effective_samples, *, weight_variance=1.0, readout_variance=1.0, degrees=None
):
    """All solutions of the scaling approach: the weights change the scale of their prior alone,  Σ = u σ_w² I/d.

    All d directions pay,  Γ(u) = (d/2)(u - 1 - ln u) + (P_e/2N) Y·r.  A ReLU network has M → uM then: it learns what
    the infinitely wide one does at uP_e.  `activation`, `target`, `dimension`, `width`, `effective_samples`,
    `weight_variance`, `readout_variance`, `degrees`: as in :func:`solve`.  Returns Branches.

    >>> scaling("erf", [1.0, -0.1 * np.sqrt(6)], 20, 100, 5400.0, readout_variance=0.2).ratio.round(2).tolist()
    [1.05]
    """
    given = activation, target, dimension, width, effective_samples, weight_variance, readout_variance, degrees
    return _branches(*given, uniform=True)

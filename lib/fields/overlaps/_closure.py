"""Weights that adapt as one Gaussian, behind :meth:`lib.fields.overlaps.single_index.SingleIndex.closure`."""

import numpy as np
from scipy.optimize.elementwise import find_root

from lib.common import checks
from lib.fields.overlaps import _projections

GRID = 1024  # trial ratios; two states closer to each other than one step, next to where both vanish, are not seen
BLOCK = 32  # of them at a time
LARGEST = 1e12  # largest P_e Y²/N: a step of the grid stays below 0.1 in ln u


def _nodes(d, s, free):
    """Lengths q (K,) and their weights (K,): averages of what is smooth in q need few."""
    q, log = _projections.lengths(d, s, free)  # (K,), (K,)
    kept = np.flatnonzero(log > log.max() - 30)[::2]  # (K',)
    weights = np.exp(log[kept] - log.max())  # (K',)
    return q[kept], weights / weights.sum()


class _Problem:
    """A network, and the force on the variance of its overlaps."""

    def __init__(self, network, uniform):
        self.activation, self.degrees, self.y = network.activation, network.degrees, network.target  # (n,)
        self.s, self.d, self.uniform = network.weight_variance, network.dimension, uniform
        self.strength = network.effective_samples * network.readout_variance
        self.per_unit, self.directions = network.effective_samples / network.width, self.d if uniform else 1
        self.q, self.weights = _nodes(self.d, self.s, network.perpendicular == "free")  # (K,), (K,)

    def state(self, log_ratio):
        """Residuals (..., n), data part of Γ (...), and its force  (P_e²/N) rᵀ(u dM/du) r  (...) at ln u."""
        u = np.exp(log_ratio)  # (...)
        s = u * self.s if self.uniform else self.s  # (...) or ()
        m, weights = _projections.gaussian_overlap(self.activation, u * self.s / self.d, s)  # (..., Q), (..., Q)
        m, weights = m[..., None, :], weights[..., None, :] * self.weights[:, None]  # (..., 1, Q), (..., K, Q)
        across = (u[..., None] * self.q if self.uniform else self.q)[..., None]  # (..., K, 1)
        length = across + m**2  # (..., K, Q)
        seen = _projections.components(self.activation, self.degrees, m, np.sqrt(length))  # (..., K, Q, n)
        if self.activation == "erf":
            share = (0.5 if self.uniform else 0.5 + across) / (0.5 + length)  # (..., K, Q)
            slope = 0.5 * self.degrees * share[..., None]  # (..., K, Q, n)  d ln ĥ_n/d ln u
        else:
            share = m**2 / length  # (..., K, Q)
            slope = 0.5 if self.uniform else 0.5 * (self.degrees + (1 - self.degrees) * share[..., None])
        kernel = np.einsum("...kqi,...kqj,...kq->...ij", seen, seen, weights, optimize=True)  # (..., n, n)
        residuals = _projections.residuals(kernel, self.strength + 0 * u, self.y)  # (..., n)
        moved = np.einsum("...kqi,...i->...kq", seen, residuals)  # (..., K, Q)  r·ĥ
        moved = moved * np.einsum("...kqi,...i->...kq", slope * seen, residuals)  # (..., K, Q)
        force = 2 * self.per_unit * self.strength * (weights * moved).sum(axis=(-1, -2))  # (...)
        return residuals, 0.5 * self.per_unit * (residuals @ self.y), force

    def balance(self, log_ratio):
        """-2u Γ'(u) (...)."""
        return -self.directions * np.expm1(log_ratio) + self.state(log_ratio)[2]


def solve(network, uniform):
    """Fields of a :class:`lib.fields.overlaps.single_index.Branches`."""
    problem = _Problem(network, uniform)
    y, per_unit, directions, balance = problem.y, problem.per_unit, problem.directions, problem.balance
    samples = network.effective_samples
    with np.errstate(over="ignore"):
        checks.fail_if(not per_unit * (y @ y) <= LARGEST, "effective_samples", f"keep P_e Y²/N <= {LARGEST:g}", samples)
        checks.fail_if(not problem.strength <= 1e100, "effective_samples", "keep P_e s_a² <= 1e100", samples)
    # Y·r lies between 0 and Y², and P_e rᵀMr below Y²/4: no minimum is far outside, whatever the branch.  The ends are
    # moved until the signs say so.
    end = np.log(10 + 60 * per_unit * (y @ y) / directions)
    low, high = -end, end
    while balance(np.array(low)) <= 0:
        low -= end
    while balance(np.array(high)) >= 0:
        high += end
    grid = np.linspace(low, high, GRID)  # (GRID,)
    signs = np.sign(np.concatenate([balance(part) for part in grid.reshape(-1, BLOCK)]))  # (GRID,)
    # A grid point that is a root itself counts to the cell on its left.
    signs[signs == 0] = -1
    cells = np.flatnonzero(np.diff(signs))  # (K,)
    roots = find_root(balance, (grid[cells], grid[cells + 1]), tolerances={"xatol": 1e-14, "xrtol": 1e-15}).x  # (K,)
    residuals, data, _ = problem.state(roots)  # (K, n), (K,)
    ratio = np.exp(roots)  # (K,)
    free_energy = 0.5 * directions * (np.expm1(roots) - roots) + data  # (K,)
    stable = signs[cells] > 0  # (K,)
    learned, lowest = _projections.learnabilities(residuals, y), int(free_energy.argmin())  # (K, n), ()
    return ratio * problem.s / problem.d, ratio, residuals, learned, stable, free_energy, lowest

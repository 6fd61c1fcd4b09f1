"""The convex function of a saddle of :mod:`lib.fields.overlaps.single_index`: averages over one unit, and its minimum.

A unit is known by its overlap m and the squared length q of its weights across the teacher's direction.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr

from lib.common import checks
from lib.fields.overlaps import _projections

STEPS = 10  # grid points per standard deviation of the prior overlap
MOST_POINTS = 2_000_000  # of a grid in m, and four times as many in m and q: a trial residual beyond is too far off
_FIRST, _THIRD = (_projections.coefficient("erf", n) for n in (1, 3))  # of ĥ_1 and ĥ_3 in powers of m/√(½ + q + m²)


class Piece(NamedTuple):
    """Averages over the units of one range of |m|."""

    log: float  # of the average of the exponential in Φ
    mean: np.ndarray  # (2,)  its gradient in τ
    hessian: np.ndarray  # (2, 2)
    overlaps: np.ndarray  # (G,)  m
    density: np.ndarray  # (G,)  normalized over both signs of m
    perpendicular: float  # mean q


def slope(residual, coupling):
    """Largest |∂p/∂u| of the pull p = A u(b - 2cu)² over 0 <= u <= ½."""
    b, c = np.abs(residual)
    return coupling * (b + c) * (b + 3 * c)


def action(m, residual, coupling, d, s, nodes):
    """S(m) and S'(m), -log of the average over q of the density, for m of any shape (...)."""
    (b, c), (q, log) = residual, nodes
    rest = 0.5 + q + m[..., None] ** 2  # (..., K)
    u = 0.5 * m[..., None] ** 2 / rest  # (..., K)
    left = b - 2 * c * u  # (..., K)
    exponent = d * coupling * u * left**2 + log  # (..., K)
    highest = exponent.max(axis=-1, keepdims=True)  # (..., 1)
    density = np.exp(exponent - highest)  # (..., K)
    total = density.sum(axis=-1)  # (...)
    pull = (density * left * (left - 4 * c * u) * (0.5 + q) / rest**2).sum(axis=-1) / total  # (...)
    return d * m**2 / (2 * s) - highest[..., 0] - np.log(total), d * m * (1 / s - coupling * pull)


def landau(residual, coupling, d, s, nodes):
    """(3,) r_2, r_4, r_6 of S/d: as for one length, with the moments of z = 1/(1 + 2q), and with its cumulants."""
    (b, c), (q, log) = residual, nodes
    weights = np.exp(log)  # (K,)
    z = 1 / (1 + 2 * q)  # (K,)
    mean, a, cross = weights @ z, coupling, b * (b + 2 * c)
    aside = z - mean  # (K,)
    second = 2 * a * cross * (weights @ z**2) - 0.5 * a**2 * d * b**4 * (weights @ aside**2)
    third = -4 * a * (b * b + 4 * b * c + c * c) * (weights @ z**3)
    third += 2 * a**2 * d * b * b * cross * (weights @ (aside * z**2)) - a**3 * d**2 * b**6 * (weights @ aside**3) / 6
    return np.array([0.5 / s - a * b * b * mean, second, third])  # (3,)


def extrema(residual, coupling, s):
    """Overlaps m > 0 with S'(m) = 0 at q = s, in increasing order."""
    b, c = residual
    # As a polynomial in 1/w, whose highest coefficient is never small.
    inner = [coupling * (b - c) * (b - 3 * c), coupling * c * (4 * b - 6 * c), coupling * 3 * c * c]
    z = np.roots([-1 - 0.5 / s, 0, *inner])  # (4,)
    return np.sort(np.sqrt((0.5 + s) * (z.real[(z.imag == 0) & (z.real > 1)] - 1)))  # (E,)


@dataclass(frozen=True)
class Units:
    """Sizes and strengths of a network; its methods average over one unit by the trapezoidal rule.

    That is of spectral accuracy for smooth densities.
    """

    d: int
    n: int
    samples: float  # P_e
    s: float  # σ_w²
    gain: float  # s_a²/N
    coupling: float  # A
    free: bool = False  # whether q is drawn rather than σ_w²

    def residual(self, tau):
        return tau / self.samples / np.array([1, np.sqrt(6)])  # (2,)

    def nodes(self, tau):
        return _projections.lengths(self.d, self.s, self.free, slope(self.residual(tau), self.coupling))  # (K,), (K,)

    def action(self, tau, m):
        return action(np.asarray(m), self.residual(tau), self.coupling, self.d, self.s, self.nodes(tau))  # (...), (...)

    def reach(self, tau, inner):
        """Overlap beyond which the density vanishes, from the largest pull A u(b - 2cu)² over 0 <= u <= ½."""
        b, c = self.residual(tau)
        hump = 2 / 27 * b**3 / c if 0 < b * c < 3 * c * c else 0.0
        return np.sqrt(2 * self.s * (self.coupling * max(0.5 * (b - c) ** 2, hump) + 50 / self.d) + inner**2)

    def grid(self, low, high):
        cells = max(50, int(np.ceil((high - low) * STEPS * np.sqrt(self.d / self.s))))
        return np.linspace(low, high, cells + 1)  # (G,)

    def phase(self, tau):
        """Outermost minimum of S and the maximum inside it, 0 where there is none."""
        if self.free:
            m, nodes = self.grid(0.0, self.reach(tau, 0.0))[1:], self.nodes(tau)  # (G,)

            def force(m):
                return action(np.asarray(m), self.residual(tau), self.coupling, self.d, self.s, nodes)[1]

            up = force(m) > 0  # (G,)
            turns = np.flatnonzero(up[1:] != up[:-1])  # (E,)
            found = [brentq(force, *m[k : k + 2], xtol=1e-15) for k in turns]
        else:
            found = extrema(self.residual(tau), self.coupling, self.s).tolist()
        found = [0.0, 0.0, *found]
        return found[-1], found[-2]

    def piece(self, tau, low, high):
        """Averages over the units with low <= |m| <= high."""
        m, (q, log) = self.grid(low, high), self.nodes(tau)  # (G,), (K,), (K,)
        square = (m**2)[:, None]  # (G, 1)
        ratio = square / (0.5 + q + square)  # (G, K)
        pull = 0.5 * self.gain * ratio * (tau[0] * _FIRST + tau[1] * _THIRD * ratio) ** 2  # (G, K)
        exponent = pull + log - self.d / (2 * self.s) * square  # (G, K)
        highest = exponent.max()
        rows, columns = np.nonzero(exponent > highest - 50)  # (M,), (M,)
        ratio, density = ratio[rows, columns], np.exp(exponent[rows, columns] - highest)  # (M,), (M,)
        seen = np.sqrt(ratio) * np.stack([np.full(ratio.shape, _FIRST), _THIRD * ratio])  # (2, M)
        field = tau @ seen  # (M,)
        steps = np.full(m.size, m[1] - m[0])  # (G,)
        steps[[0, -1]] /= 2
        weights = density * steps[rows]  # (M,)
        total = 2 * weights.sum()
        weights *= 2 / total
        slope = self.gain * field * seen  # (2, M)
        mean = slope @ weights  # (2,)
        hessian = (slope * weights) @ slope.T - np.outer(mean, mean) + self.gain * (seen * weights) @ seen.T  # (2, 2)
        norm = highest + np.log(total / np.sqrt(2 * np.pi * self.s / self.d))
        density = np.bincount(rows, density, m.size) / total  # (G,)
        return Piece(norm, mean, hessian, m, density, float(weights @ q[columns]))

    def average(self, tau, barrier, held):
        """Averages over all units, None if out of reach; `held` is the fraction kept beyond `barrier`, or None."""
        end = self.reach(tau, barrier)
        size = end * STEPS * np.sqrt(self.d / self.s)
        if not (size < MOST_POINTS and (not self.free or size * self.nodes(tau)[0].size < 4 * MOST_POINTS)):
            return None
        if held is None:
            return self.piece(tau, 0.0, end)
        sides = [(1 - held, 0.0, barrier), (held, barrier, end)]
        parts = [(share, self.piece(tau, low, high)) for share, low, high in sides if share > 0]
        return Piece(
            sum(share * part.log for share, part in parts) + entr([held, 1 - held]).sum(),
            sum(share * part.mean for share, part in parts),
            sum(share * part.hessian for share, part in parts),
            np.concatenate([part.overlaps for _, part in parts]),
            np.concatenate([share * part.density for share, part in parts]),
            sum(share * part.perpendicular for share, part in parts),
        )

    @np.errstate(all="ignore")
    def minimum(self, target, barrier=0.0, held=None):
        """τ and averages at the minimum of Φ, by Newton's method; a step is halved until its end hardly climbs."""
        inverse = 1 / self.samples
        tau, state = np.zeros(2), self.average(np.zeros(2), barrier, held)  # (2,)
        for _ in range(200):
            gradient = self.n * state.mean + inverse * tau - target  # (2,)
            if np.abs(gradient).max() <= 1e-13 * np.abs(target).max():
                break
            step = -np.linalg.solve(self.n * state.hessian + inverse * np.eye(2), gradient)  # (2,)
            descent, length = -gradient @ step, 1.0
            while length > 1e-15:
                moved = tau + length * step  # (2,)
                there = self.average(moved, barrier, held)
                if there is not None and (self.n * there.mean + inverse * moved - target) @ step <= 0.1 * descent:
                    break
                length /= 2
            else:
                break
            tau, state = moved, there
        if not np.abs(self.n * state.mean + inverse * tau - target).max() <= 1e-10 * np.abs(target).max():
            checks.fail("effective_samples", "be in reach of a quadrature over the overlaps", self.samples)
        return tau, state

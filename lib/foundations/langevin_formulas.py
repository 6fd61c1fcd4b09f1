"""The numbers behind :mod:`lib.foundations.langevin`, for matrices that were checked or made by the caller."""

import math

import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov
from scipy.sparse.csgraph import connected_components

from lib.common import checks


def lyapunov(friction, diffusion):
    """Σ in  ΓΣ + ΣΓᵀ = 2D, in units where the largest entries are one: SciPy is silently wrong near overflow."""
    rate, strength = float(np.abs(friction).max()), float(np.abs(diffusion).max()) or 1.0
    unit = strength / rate
    if not math.isfinite(unit):
        checks.fail("diffusion", "be small enough, next to friction, for a finite covariance", diffusion)
    if np.array_equal(friction, friction.T):
        rates, frame = _modes(friction / rate)  # (d,), (d, d)
        solution = frame @ ((frame.T @ diffusion @ frame) / strength / np.add.outer(rates, rates)) @ frame.T  # (d, d)
    else:
        solution = solve_continuous_lyapunov(friction / rate, diffusion / strength)  # (d, d)
    return checks.finite("friction", unit * (solution + solution.T))


def _modes(friction):
    """Rates (d,) and modes (d, d) of a symmetric Γ, part by part: no digits of a soft part are lost to a stiff one."""
    count, parts = connected_components(friction != 0, directed=False)
    rates, frame = np.empty(len(friction)), np.zeros(friction.shape)  # (d,), (d, d)
    for part in range(count):
        rows = np.flatnonzero(parts == part)
        rates[rows], frame[np.ix_(rows, rows)] = np.linalg.eigh(friction[np.ix_(rows, rows)])
    return rates, frame


def propagate(friction, diffusion, duration):
    """e^{-Γt} and 2∫_0^t e^{-Γu} D e^{-Γᵀu} du: Van Loan's block exponential for a short time, then doublings.

    They add positive terms: no cancellation as in Σ(∞) - e^{-Γt} Σ(∞) e^{-Γᵀt} at short times, no overflow late.
    """
    size = len(friction)
    doublings = max(0, math.frexp(duration)[1] + math.frexp(np.linalg.norm(friction, 1))[1])
    short = math.ldexp(duration, -doublings)
    scale = np.abs(diffusion).max() or 1.0  # linear in D: a block of order one keeps the exponential accurate
    block = np.block([[short * friction, diffusion / scale], [np.zeros((size, size)), -short * friction.T]])  # (2d, 2d)
    grown = expm(block)  # (2d, 2d)
    propagator = grown[size:, size:].T  # (d, d)
    noise = 2 * scale * short * propagator @ grown[:size, size:]  # (d, d)
    for _ in range(doublings):
        noise = noise + propagator @ noise @ propagator.T  # (d, d)
        propagator = propagator @ propagator  # (d, d)
    return propagator, (noise + noise.T) / 2


def dissipation(rotation, spread, diffusion):
    """Tr[Σ⁻¹ Qᵀ D⁻¹ Q] of stacks Q, Σ (..., d, d), as a sum of squares, which rounding cannot make negative."""
    left = np.linalg.solve(np.linalg.cholesky(diffusion), rotation)  # (..., d, d)
    both = np.linalg.solve(np.linalg.cholesky(spread), np.swapaxes(left, -1, -2))  # (..., d, d)
    return (both**2).sum(axis=(-2, -1))  # (...)


def euler(friction, diffusion, step):
    """Σ in  ΓΣ + ΣΓᵀ - hΓΣΓᵀ = 2D; of a symmetric Γ by its eigenvectors, which keeps the digits of soft modes."""
    if np.array_equal(friction, friction.T):
        rates, frame = _modes(friction)  # (d,), (d, d)
        decay = rates[:, None] + rates - step * rates[:, None] * rates  # (d, d)
        spread = frame @ (2 * (frame.T @ diffusion @ frame) / decay) @ frame.T  # (d, d)
        return (spread + spread.T) / 2
    # The law of another process, Γ' = Γ(1 - hΓ/2)⁻¹ and D' = (1 - hΓ/2)⁻¹ D (1 - hΓᵀ/2)⁻¹: a discrete Lyapunov equation
    # would lose digits like 1/h.
    half = np.eye(len(friction)) - step * friction / 2  # (d, d)
    modified = np.linalg.solve(half, np.linalg.solve(half, diffusion).T)  # (d, d)
    return lyapunov(np.linalg.solve(half, friction), (modified + modified.T) / 2)

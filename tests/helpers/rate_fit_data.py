"""Curves of known rates for the tests of lib.representations.rate_fit: from an integrator of its own, or from the
theory, with noise of known size.
"""

import numpy as np
from scipy.integrate import solve_ivp

from lib.representations.two_points import TwoPoints

X, Y, ALPHA, BETA, GAMMA, END = 1.0, 0.5, 1e-3, 4e-2, 6e-4, 6000.0
START = np.array([0.01, 1e-4, 1e-4 - np.sqrt(1e-4 * Y)])
TIMES = np.linspace(0, END, 600)


def integrated(start, x, y, alpha, beta, times):
    """a, b, w (A, 3) from eq. (7), by an implicit integrator."""

    def slope(_, state):
        a, b, w = state
        return [
            *(-alpha * x * w, -w * (beta * a + alpha * x * b / a)),
            -beta / 2 * (3 * w - b + y) * a - alpha * x / 2 * (b + w) * w / a,
        ]

    return solve_ivp(slope, (0, times[-1]), start, method="Radau", t_eval=times, rtol=1e-10, atol=1e-12).y.T


def measured(start=START, x=X, y=Y, alpha=ALPHA, beta=BETA, gamma=GAMMA, times=TIMES, noise=0.0, seed=0):
    """Curves and loss of the theory, with noise in units of each curve's range; the first sample exact."""
    two = TwoPoints(start, x, y, alpha, beta)
    states, loss = two.solve(times), two.loss(times, mean_distance=0.2, mean_rate=gamma)
    rough = noise * np.random.default_rng(seed).standard_normal((len(times), 4))
    rough[0] = 0
    return states + rough[:, :3] * np.ptp(states, axis=0), loss + 0.05 * rough[:, 3] * np.ptp(loss)


def determination(data, fitted, times):
    def integral(values):
        return np.trapezoid(values, times, axis=0)

    return 1 - integral((data - fitted) ** 2) / integral((data - integral(data) / (times[-1] - times[0])) ** 2)

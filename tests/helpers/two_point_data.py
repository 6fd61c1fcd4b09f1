"""Random two-point starts with known amplitudes, and their integration in coordinates that are regular everywhere."""

import numpy as np
from scipy.integrate import solve_ivp


def amplitudes(count, seed=0):
    """Starts (s, p, q) and constants (X, Y, α, β) by the dozen: one output and several, A_high of both signs, dy along
    and against Δ.
    """
    random = np.random.default_rng(seed)
    for i in range(count):
        start = np.array([random.exponential() + 0.05, random.normal(), abs(random.normal()) * (i % 3 > 0)])
        yield start, np.exp(0.7 * random.standard_normal(4))


def state_of(start, target_distance):
    """(a, b, w) of a = s², dy = s(p, q), p along Δ."""
    s, p, q = start
    forward = s * p
    output = forward**2 + (s * q) ** 2
    return np.stack([s**2, output, output - forward * np.sqrt(target_distance)], axis=-1)


def integrated(times, start, constants, tolerance=1e-13):
    """The rank-one linear net ds/dt = -½αX u·e, du/dt = -½β s e, e = su - Δ, at the times given: arrays (3, T) of s, p,
    q.
    """
    x, y, alpha, beta = constants

    def slope(_, z):
        along, across = z[0] * z[1] - np.sqrt(y), z[0] * z[2]
        return [
            -0.5 * alpha * x * (z[1] * along + z[2] * across),
            -0.5 * beta * z[0] * along,
            -0.5 * beta * z[0] * across,
        ]

    return solve_ivp(slope, (0, times[-1]), start, method="DOP853", t_eval=times, rtol=tolerance, atol=1e-15).y

"""Exponential densities on t in [0, 1], without checks:  e^{zt},  and  exp(αP₁ + βP₂)  in x = 2t - 1."""

import numpy as np
from scipy.optimize import minimize
from scipy.optimize.elementwise import find_root
from scipy.special import logsumexp

STEEPEST = 1000.0  # the largest |α|, |β| at which the quadrature keeps 12 digits
_PANELS, _NODES = 64, 16


def mean_minus_half(z):
    """1/(1 - e^{-z}) - 1/z - ½: mean of the density ∝ e^{zt}, from the middle; as z."""
    near = np.abs(z) < 0.3  # as z
    far = np.where(near, 1.0, z)  # as z
    series = z / 12 - z**3 / 720 + z**5 / 30240 - z**7 / 1209600  # as z
    return np.where(near, series, 0.5 / np.tanh(far / 2) - 1 / far)  # as z


def variance(z):
    """1/z² - 1/(2 sinh(z/2))²: its variance, for one z."""
    if abs(z) < 0.1:
        return 1 / 12 - z**2 / 240 + z**4 / 6048
    return 1 / z**2 - np.exp(-abs(z)) / np.expm1(-abs(z)) ** 2


def steepness(mean):
    """The z at which the mean is as given; entries inside (0, 1), as `mean`."""
    offset = np.abs(np.asarray(mean) - 0.5)  # as mean
    # For a mean above one half 12(mean - ½) lies below z and 1/(1 - mean) above; the other half is the mirror image.
    bracket = (12 * offset * (1 - 1e-9), 1 / (0.5 - offset))
    found = find_root(lambda z, wanted: mean_minus_half(z) - wanted, bracket, args=(offset,))
    return np.sign(np.asarray(mean) - 0.5) * found.x  # as mean


def curved(x):
    """Maximum likelihood of α, β on samples x in [-1, 1].

    Returns (α, β), their covariance times N, the gain of ln L per sample over β = 0; None if samples crowd too closely.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)  # (16,), (16,), on each of equal panels of [-1, 1]
    starts = np.linspace(-1, 1, _PANELS, endpoint=False)[:, None]  # (64, 1)
    nodes, log_weights = (starts + (1 + nodes) / _PANELS).ravel(), np.log(np.tile(weights / _PANELS, _PANELS))
    basis = np.stack([nodes, 1.5 * nodes**2 - 0.5])  # (2, 1024)
    means = np.array([x.mean(), (1.5 * x**2 - 0.5).mean()])  # (2,)

    def tilted(parameters):
        height = parameters @ basis + log_weights  # (1024,)
        log_norm = logsumexp(height)
        return log_norm, np.exp(height - log_norm)  # (1024,)

    def cost(parameters):
        return tilted(parameters)[0] - parameters @ means

    def slope(parameters):
        return basis @ tilted(parameters)[1] - means  # (2,)

    def bend(parameters):
        mass = tilted(parameters)[1]  # (1024,)
        centred = basis - (basis @ mass)[:, None]  # (2, 1024)
        return centred * mass @ centred.T  # (2, 2)

    straight = np.array([steepness((1 + means[0]) / 2) / 2, 0.0])  # (2,)
    if abs(straight[0]) >= STEEPEST:
        return None
    best = minimize(cost, straight, jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-10}).x  # (2,)
    # The search stops where the cost no longer changes, at half the digits.
    best = best - np.linalg.solve(bend(best), slope(best))  # (2,)
    if np.abs(best).max() >= STEEPEST or np.abs(slope(best)).max() > 1e-10:
        return None
    return best, np.linalg.inv(bend(best)), cost(straight) - cost(best)

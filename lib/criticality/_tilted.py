"""Exponential densities on t in [0, 1], without checks:  e^{zt},  and  exp(αP₁ + βP₂)  in x = 2t - 1."""

import numpy as np
from scipy.optimize.elementwise import find_root
from scipy.special import logsumexp

STEEPEST = 1000.0  # the largest |α|, |β| at which the quadrature keeps 12 digits
_PANELS, _NODES = 64, 16
_SEARCH = 200  # steps of Newton; some ten are needed


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


def curved(means):
    """Maximum likelihood of α, β for samples with given means of P₁ and P₂, (W, 2): of many samples at once.

    Returns (α, β) (W, 2), their covariance times N (W, 2, 2), the gain of ln L per sample over β = 0 (W,); NaN where
    samples crowd too closely.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)  # (16,), (16,), on each of equal panels of [-1, 1]
    starts = np.linspace(-1, 1, _PANELS, endpoint=False)[:, None]  # (64, 1)
    nodes, log_weights = (starts + (1 + nodes) / _PANELS).ravel(), np.log(np.tile(weights / _PANELS, _PANELS))
    one, two = basis = np.stack([nodes, 1.5 * nodes**2 - 0.5])  # (2, 1024)
    powers = np.stack([one, two, one**2, one * two, two * one, two**2], axis=1)  # (1024, 6)

    def at(parameters, means):
        """Cost (w,), slope (w, 2) and bend (w, 2, 2)."""
        height = parameters @ basis + log_weights  # (w, 1024)
        log_norm = logsumexp(height, axis=1)  # (w,)
        moments = np.exp(height - log_norm[:, None]) @ powers  # (w, 6)
        mean, second = moments[:, :2], moments[:, 2:].reshape(-1, 2, 2)  # (w, 2), (w, 2, 2)
        bend = second - mean[:, :, None] * mean[:, None, :]  # (w, 2, 2)
        return log_norm - (parameters * means).sum(axis=1), mean - means, bend

    best = np.stack([steepness((1 + means[:, 0]) / 2) / 2, np.zeros(len(means))], axis=1)  # (W, 2)
    going = np.flatnonzero(np.abs(best[:, 0]) < STEEPEST)  # (w,)
    cost, slope, bend = np.full(len(means), np.nan), np.full(best.shape, np.inf), np.full((len(means), 2, 2), np.nan)
    cost[going], slope[going], bend[going] = at(best[going], means[going])
    straight, damping = cost.copy(), np.zeros(len(means))  # (W,), (W,)
    for _ in range(_SEARCH):  # Newton's steps, damped where the cost would rise
        if going.size == 0:
            break
        damped = bend[going] + (damping[going] + 1e-15)[:, None, None] * np.eye(2)  # (w, 2, 2)
        trial = best[going] - np.linalg.solve(damped, slope[going][..., None])[..., 0]  # (w, 2)
        there = at(trial, means[going])
        falls = (there[0] <= cost[going] + 1e-14 * (1 + np.abs(cost[going]))) & (
            np.abs(trial).max(axis=1) < 2 * STEEPEST
        )
        damping[going] = np.where(falls, damping[going] / 100, 10 * damping[going] + 1e-6)
        moved = going[falls]
        best[moved] = trial[falls]
        cost[moved], slope[moved], bend[moved] = (part[falls] for part in there)
        going = going[(np.abs(slope[going]).max(axis=1) > 1e-13) & (np.abs(best[going]).max(axis=1) < STEEPEST)]
    good = (np.abs(best).max(axis=1) < STEEPEST) & (np.abs(slope).max(axis=1) <= 1e-10)  # (W,)
    best[~good], bend[~good], cost[~good] = np.nan, np.eye(2), np.nan
    return best, np.where(good[:, None, None], np.linalg.inv(bend), np.nan), straight - cost

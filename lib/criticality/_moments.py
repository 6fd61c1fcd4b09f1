"""Integrals over the Gaussian classes of a neuron that was checked: pieces shrink towards the kinks of h."""

import numpy as np
from scipy.special import ndtr

from lib.common import checks

_NODES, _SHARES = np.polynomial.legendre.leggauss(20)  # (20,), (20,)
_FARTHEST = 36  # deviations from the mean at which integrals end: the density is e^{-648}, slopes may grow like e^{cy}
_POLE = 1e12  # |h| next to a kink beyond which no cut stands between the data and a pole


def _ladder(centres, nearest, lowest, highest):
    """Edges of pieces from `lowest` to `highest` whose lengths double away from each centre, from `nearest` on."""
    count = max(0, int(np.ceil(np.log2((highest - lowest) / nearest))))
    away = nearest * 2.0 ** np.arange(count + 1)  # (n,)
    edges = np.concatenate([[lowest, highest], *([c, *(c - away), *(c + away)] for c in centres)])  # (m,)
    return np.unique(np.clip(edges, lowest, highest))


def _nodes(edges):
    """Gauss-Legendre points and weights on all pieces."""
    half = np.diff(edges) / 2  # (m,)
    return (edges[:-1, None] + half[:, None] * (1 + _NODES)).ravel(), (half[:, None] * _SHARES).ravel()


def _beside(composition, kink, t):
    """h just below and just above a kink."""
    step = max(np.spacing(abs(kink)), 1e-300)
    return composition.slope([kink - step, kink + step], t)


def refuse_poles(composition):
    """Refuse a composition whose slope has a pole: its mean gradient does not exist."""
    for t in (0, 1):
        for kink in composition.kinks(t):
            wanted = f"have a mean gradient: h has a pole at y = {kink:g} in class {t}, cut it off"
            checks.fail_if(np.abs(_beside(composition, kink, t)).max() > _POLE, "composition", wanted, composition)


def _density(x, mean, deviation):
    return np.exp(-(((x - mean) / deviation) ** 2) / 2) / (np.sqrt(2 * np.pi) * deviation)


def moments(neuron, weight, bias):
    """Mean gradient (2,), expected Hessian (2, 2) and covariance (2, 2) of one gradient."""
    composition, means, deviation, priors = neuron.composition, neuron.means, neuron.deviation, neuron.priors
    if abs(weight) * deviation <= 1e-9 * (abs(bias) + np.abs(weight * means).max()):
        checks.fail("weight", "not be 0, nor so small that wx + b hardly varies", weight)
    gradient, hessian, square, tail = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), 0.0  # (2,), (2, 2), (2, 2)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is refused below
        for t in (0, 1):
            kinks = composition.kinks(t)
            centres = np.unique([0.0, 1.0, *kinks])  # (n,)  a sigmoid's centre, and poles behind a cut
            steps = weight * (means[t] + deviation * np.arange(-_FARTHEST, _FARTHEST + 1)) + bias  # (73,)
            checks.fail_if(not np.isfinite(steps).all(), "weight", "be small enough for a finite wx + b", weight)
            edges = _ladder(centres, np.diff(centres).min(), steps.min(), steps.max())  # (m,)
            y, share = _nodes(np.union1d(edges, steps))  # (n,), (n,); in y the distance to a kink keeps its digits
            x = (y - bias) / weight  # (n,)
            share = priors[t] * share / abs(weight) * _density(x, means[t], deviation)  # (n,)
            features = np.stack([x, np.ones_like(x)])  # (2, n)
            h, h1, _ = composition._slopes(y, t == 1)  # (n,), (n,)
            if not (np.isfinite(h).all() and np.isfinite(h1).all()):
                checks.fail("weight", "be small enough for finite slopes at every input", weight)
            gradient += features @ (share * h)
            square += (features * (share * h**2)) @ features.T
            tail = max(tail, (share * h**2)[[0, -1]].max())
            hessian += (features * (share * h1)) @ features.T
            for kink in kinks:  # a jump of h takes part in the mean gradient as far as it lies inside the data
                before, after = _beside(composition, kink, t)
                at = (kink - bias) / weight
                mass = priors[t] * _density(at, means[t], deviation) / abs(weight)
                hessian += (after - before) * mass * np.outer([at, 1], [at, 1])
    if not (all(np.isfinite(part).all() for part in (gradient, hessian, square)) and tail <= 1e-12 * square[1, 1]):
        wanted = f"be small enough for moments that come from within {_FARTHEST} deviations of the mean"
        checks.fail("weight", wanted, weight)
    return gradient, hessian, square - np.outer(gradient, gradient)


def live(neuron, weight, bias):
    """P(h ≠ 0) in classes 0 and 1, (2, ...)."""
    with np.errstate(over="ignore", invalid="ignore"):
        places = [(weight * mean + bias, np.abs(weight) * neuron.deviation) for mean in neuron.means]
        found = [_outside(neuron.composition.dead(t), *places[t]) for t in (0, 1)]
    checks.fail_if(not np.isfinite(found).all(), "weight", "be small enough for a finite wx + b", weight)
    return np.stack(found)  # (2, ...)


def _outside(dead, middle, spread):
    """P(y outside the dead intervals), y ~ N(middle, spread²): a sum over gaps, so that tiny ones keep digits."""
    edges = [-np.inf, *(edge for interval in sorted(dead) for edge in interval), np.inf]
    total = np.zeros(np.shape(middle))  # (...)
    for low, high in zip(edges[::2], edges[1::2]):
        if low < high:
            width = np.maximum(spread, 1e-300)  # (...); w = 0: y is a point
            low, high = (low - middle) / width, (high - middle) / width  # (...), (...)
            low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)  # (...), (...)
            total += ndtr(high) - ndtr(low)
    return total

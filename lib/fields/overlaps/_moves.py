"""The compiled moves of the Monte Carlo of :mod:`lib.fields.overlaps.single_index`.

One neuron moves at a time, and the matrix A is kept up to date.
"""

from math import exp, lgamma, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from lib.common import checks
from lib.common.compiled import loops
from lib.fields.overlaps import _projections

ERF, RELU = (tuple(_projections.coefficient(name, n) for n in bases[-1]) for name, bases in _projections.BASES.items())
FARTHEST = 30.0  # largest overlap or start in units of σ_w: beyond, the density of the independent draws is no number
SPREAD = (0.5, 4.0)  # local steps are drawn between these numbers of the prior's deviation, evenly in the logarithm
_DECADES = log(SPREAD[1] / SPREAD[0])
BROAD = 1.5  # deviation in units of σ_w of every other independent draw; the rest are from the prior
BROAD_SHAPE = 2.0  # with it go q⊥ of a gamma density of mean σ_w² and this shape, or the prior's if that is smaller


class Model(NamedTuple):
    """A network and its teacher."""

    relu: bool
    target: np.ndarray  # (n,)  Y
    dimension: int  # d
    width: int  # N
    samples: float  # P_e
    variance: float  # σ_w²
    gain: float  # P_e s_a²/N


def model(network):
    """The model of a SingleIndex."""
    s, readout = network.weight_variance, network.readout_variance
    most = 1e10 / (readout * max(1.0, s))  # above, the 1 in A would be lost in the rounding of its low rank
    wanted = f"be at most {most:.3g} for this sampler"
    checks.fail_if(network.effective_samples > most, "effective_samples", wanted, network.effective_samples)
    gain = network.effective_samples * readout / network.width
    sizes = network.dimension, network.width, network.effective_samples
    return Model(network.activation == "relu", network.target, *sizes, s, gain)


@loops
def project(m, relu, across, h):
    """ĥ of n components at |w|² = across + m² into h."""
    square = across + m * m
    if relu:
        length = sqrt(square)
        z = m / length
        h[0], h[1], h[2], h[3] = RELU[0] * length, RELU[1] * m, RELU[2] * length * z**2, RELU[3] * length * z**4
    else:
        z = m / sqrt(0.5 + square)
        h[0], h[1] = ERF[0] * z, ERF[1] * z**3
        if len(h) == 3:
            h[2] = ERF[2] * z**5


@loops
def solve(a, y, samples, factor, x):
    """½ log det A + ½ P_e YᵀA⁻¹Y; the Cholesky factor and C⁻¹Y stay in `factor` and x."""
    determinant, square = 1.0, 0.0
    for i in range(len(y)):
        part = y[i]
        for j in range(i + 1):
            entry = a[i, j]
            for k in range(j):
                entry -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = entry / factor[j, j]
                part -= factor[i, j] * x[j]
            else:
                determinant *= entry
                factor[i, i] = sqrt(entry)
        x[i] = part / factor[i, i]
        square += x[i] ** 2
    return (log(determinant) + samples * square) / 2


@loops
def matrix(h, gain, a):
    """A = 1 + gain Σ_c ĥĥᵀ into a, free of the rounding of its updates."""
    for i in range(len(a)):
        for j in range(i + 1):
            total = 0.0
            for c in range(len(h)):
                total += h[c, i] * h[c, j]
            a[i, j] = gain * total + (1.0 if i == j else 0.0)


@loops
def _log_mixture(m, prior, broad):
    """Logarithm of the density of the independent draws, without a constant."""
    return log(exp(-((m / prior) ** 2) / 2) / prior + exp(-((m / broad) ** 2) / 2) / broad)


@loops
def _log_gamma(q, shape, rate):
    """Logarithm of the gamma density as one of log q."""
    return shape * log(rate * q) - rate * q - lgamma(shape)


@loops
def _log_joint_mixture(m, q, prior, broad, shape, rate, broad_shape, broad_rate):
    """The same with free lengths: of m and log q⊥ together."""
    near = _log_gamma(q, shape, rate) - (m / prior) ** 2 / 2 - log(prior)
    far = _log_gamma(q, broad_shape, broad_rate) - (m / broad) ** 2 / 2 - log(broad)
    return max(near, far) + log1p(exp(-abs(near - far)))


@loops
def sweep(m, across, h, a, free, model, independence, wall, counts, random):
    """One proposal for every neuron, in place.

    Beyond |m| = `wall` the density is zero.  `across` holds q⊥ = |w_⊥|²; if free, its logarithm moves with m.
    """
    relu, y, dimension, _, samples, variance, gain = model
    n = len(y)
    prior, broad = sqrt(variance / dimension), BROAD * sqrt(variance)
    shape, rate = (dimension - 1) / 2, dimension / (2 * variance)
    broad_shape = min(shape, BROAD_SHAPE)
    broad_rate = broad_shape / variance
    new_h, new_a, factor, x = np.empty(n), np.empty((n, n)), np.empty((n, n)), np.empty(n)
    matrix(h, gain, a)
    energy = solve(a, y, samples, factor, x)
    for c in range(len(m)):
        old, q, change = m[c], across[c], 0.0
        new_q = q
        alone = independence > 0 and random.random() < independence
        if alone:
            new = random.standard_normal()
            near = random.random() < 0.5
            new *= prior if near else broad
            if free:
                new_q = random.standard_gamma(shape) / rate if near else random.standard_gamma(broad_shape) / broad_rate
                change = _log_joint_mixture(new, new_q, prior, broad, shape, rate, broad_shape, broad_rate)
                change -= _log_joint_mixture(old, q, prior, broad, shape, rate, broad_shape, broad_rate)
            else:
                change = _log_mixture(new, prior, broad) - _log_mixture(old, prior, broad)
        else:
            step = SPREAD[0] * exp(_DECADES * random.random())
            new = old + prior * step * random.standard_normal()
            if free:
                new_q = q * exp(step * sqrt(2 / dimension) * random.standard_normal())
        counts[1, int(alone)] += 1
        if abs(new) > wall:
            continue
        project(new, relu, new_q, new_h)
        for i in range(n):
            for j in range(i + 1):
                new_a[i, j] = a[i, j] + gain * (new_h[i] * new_h[j] - h[c, i] * h[c, j])
        new_energy = solve(new_a, y, samples, factor, x)
        change += new_energy - energy + (new * new - old * old) * dimension / (2 * variance)
        if free:
            change += _log_gamma(q, shape, rate) - _log_gamma(new_q, shape, rate)
        if change <= 0 or random.random() < exp(-change):
            counts[0, int(alone)] += 1
            energy, m[c], across[c] = new_energy, new, new_q
            for i in range(n):
                h[c, i] = new_h[i]
            a, new_a = new_a, a


@loops
def chain(
    m,
    across,
    free,
    model,
    burn_in,
    every,
    independence,
    wall,
    barrier,
    edge,
    records,
    residuals,
    histogram,
    counts,
    random,
):
    """Run the chain in place and fill what is recorded.

    Means of m², m⁴, outliers, q⊥ and q⊥ of the outliers, residuals, density, accepted and proposed moves.
    """
    y = model.target
    n, bins = len(y), len(histogram)
    h, a, factor, x = np.empty((len(m), n)), np.empty((n, n)), np.empty((n, n)), np.empty(n)
    for c in range(len(m)):
        project(m[c], model.relu, across[c], h[c])
    for turn in range(burn_in + every * len(records)):
        sweep(m, across, h, a, free, model, independence, wall, counts, random)
        if turn < burn_in:
            counts[:] = 0
            continue
        if (turn - burn_in + 1) % every:
            continue
        s = (turn - burn_in) // every
        matrix(h, model.gain, a)
        solve(a, y, model.samples, factor, x)
        for i in range(n - 1, -1, -1):
            total = x[i]
            for j in range(i + 1, n):
                total -= factor[j, i] * residuals[s, j]
            residuals[s, i] = total / factor[i, i]
        for c in range(len(m)):
            square = m[c] ** 2
            records[s, 0] += square / len(m)
            records[s, 1] += square**2 / len(m)
            records[s, 3] += across[c] / len(m)
            if abs(m[c]) > barrier:
                records[s, 2] += 1 / len(m)
                records[s, 4] += across[c]
            if abs(m[c]) < edge:
                place = min(int((m[c] + edge) / (2 * edge) * bins), bins - 1)
                histogram[place] += bins / (2 * edge * len(m) * len(records))
        records[s, 4] = records[s, 4] / (records[s, 2] * len(m)) if records[s, 2] > 0 else np.nan

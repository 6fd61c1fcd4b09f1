"""Two points at random starts: the law of the final hidden distance, and the growth of hidden vectors with depth.

If a₀/X and b₀/a₀, the squared gains of encoder and decoder, are independent normal numbers of mean G and deviation G,
A_high of ``two_points_limits`` is normal too, with mean XG(1 - ρ) and deviation XG√(1 + ρ²), ρ = α/β.  16 % of such
squares are negative: the law describes no network.  Shared: `input_distance` X > 0, `target_distance` Y >= 0, `gain` G
> 0, `rate_ratio` ρ > 0.  Source: vanrossem2024, eqs. (14) and (44) to (48), corrected: (46) to (48) need ρ = 1.
"""

import numpy as np
from scipy.special import ndtr

from lib.common import checks
from lib.representations import _two_points


def _law(input_distance, target_distance, gain, rate_ratio):
    """Mean and deviation of A_high, and A_low."""
    given = {"input_distance": input_distance, "gain": gain, "rate_ratio": rate_ratio}
    x, g, ratio = (checks.number(name, value, above=0) for name, value in given.items())
    y = checks.number("target_distance", target_distance, at_least=0)
    found = x * g * (1 - ratio), x * g * float(np.hypot(1, ratio)), float(np.sqrt(ratio) * np.sqrt(x) * np.sqrt(y))
    if not np.isfinite(found).all() or found[1] == 0:
        checks.fail("gain", "keep A_high inside the floating-point range", gain)
    return found


def cumulative(hidden, input_distance, target_distance, gain, *, rate_ratio=1.0):
    """Probability that the squared hidden distance ends below h, eq. (47):  Φ[(h - A_low²/h - XG(1-ρ))/(XG√(1+ρ²))].

    `hidden` (...): h > 0; `input_distance`, `target_distance`, `gain`, `rate_ratio`: X, Y, G, ρ.  Returns (...).

    >>> cumulative([0.5, 1.0, 2.0], 1.0, 1.0, 0.1).round(6).tolist()  # a step at A_low = 1 for a small gain
    [0.0, 0.5, 1.0]
    """
    h = checks.entries("hidden", hidden, above=0)  # (...)
    mean, deviation, low = _law(input_distance, target_distance, gain, rate_ratio)
    with np.errstate(over="ignore"):
        return ndtr((h - low * (low / h) - mean) / deviation)[()]


def density(hidden, input_distance, target_distance, gain, *, rate_ratio=1.0):
    """Density of the squared hidden distance at the end, the derivative of :func:`cumulative`, eq. (48) for any ρ.

    For Y = 0 it lacks the starts that end at h = 0.  `hidden` (...): h > 0; `input_distance`, `target_distance`,
    `gain`, `rate_ratio`: X, Y, G, ρ.  Returns (...).

    >>> round(float(density(1.0, 1.0, 1.0, 1.0)), 6)  # 1/√π
    0.56419
    """
    h = checks.entries("hidden", hidden, above=0)  # (...)
    mean, deviation, low = _law(input_distance, target_distance, gain, rate_ratio)
    with np.errstate(over="ignore"):
        ratio = low / h  # (...)
        score = (h - low * ratio - mean) / deviation  # (...)
        # ln(1 + r²) in the exponent: at small h the factor grows without bound where the exponential vanishes.
        factor = 2 * np.log(np.hypot(1, np.minimum(ratio, 1e300)))  # (...)
        found = np.exp(factor - 0.5 * score**2) / (np.sqrt(2 * np.pi) * deviation)  # (...)
    return checks.finite("hidden", found)[()]


def sample(count, input_distance, target_distance, gain, rng, *, rate_ratio=1.0):
    """Final squared hidden distances of random starts: a₀/X and b₀/a₀ drawn, eqs. (44), (45), then a_∞.

    `count` >= 1 starts; `input_distance`, `target_distance`, `gain`, `rate_ratio`: X, Y, G, ρ; `rng`: int,
    SeedSequence or Generator.  Returns (count,).

    >>> bool(abs(np.median(sample(4000, 1.0, 1.0, 0.1, 1)) - 1) < 0.01)
    True
    """
    count, random = checks.integer("count", count), checks.generator("rng", rng)
    _, _, low = _law(input_distance, target_distance, gain, rate_ratio)
    encoder, decoder = gain * (1 + random.standard_normal((2, count)))  # (count,), (count,)
    return _two_points.final_distance(input_distance * (encoder - rate_ratio * decoder), low)


def squared_gains(widths, gain, *, slope=1.0):
    """Mean factors by which a random network multiplies the squared norm of its input, up to each layer.

    Weights of variance  2g²/(n_in + n_out)  give  2g² n_out/(n_in + n_out),  units  max(u, su)  a further (1 + s²)/2;
    exact at every width, and for squared distances of two inputs, too, if units are linear or the inputs lie on one
    ray.  `widths` (n + 1): inputs and units of every layer, >= 1; `gain`: g > 0; `slope` in [-1, 1]: s, 1 for linear
    units.  Returns (n,), g^{2n} for n equal linear layers, where eq. (14) has G^n.

    >>> squared_gains([10, 10, 10], 2.0).tolist(), squared_gains([1, 3], 1.0, slope=0.0).tolist()
    ([4.0, 16.0], [0.75])
    """
    try:
        sizes = np.array([checks.integer("widths", width) for width in widths], dtype=float)  # (n + 1,)
    except (TypeError, ValueError):
        checks.fail("widths", "be a sequence of integers >= 1", widths)
    if sizes.size < 2:
        checks.fail("widths", "hold the inputs and at least one layer", widths)
    g, slope = checks.number("gain", gain, above=0), checks.number("slope", slope, at_least=-1, at_most=1)
    with np.errstate(over="ignore"):
        factors = np.cumprod(2 * g**2 * sizes[1:] / (sizes[:-1] + sizes[1:]) * (1 + slope**2) / 2)  # (n,)
    if not np.isfinite(factors).all():
        checks.fail("gain", "keep the factors inside the floating-point range", gain)
    return factors

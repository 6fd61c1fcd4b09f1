"""Two points at random starts: the law of the final hidden distance, and the growth of hidden vectors with depth.

Source: vanrossem2024, eqs. (14) and (44) to (48), corrected: (46) to (48) need ρ = 1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.representations.two_points import final_distance


@dataclass(frozen=True, eq=False)
class RandomStarts:
    """Starts whose squared gains a₀/X of the encoder and b₀/a₀ of the decoder are independent and normal.

    Both have mean G and deviation G, vanrossem2024 eqs. (44) and (45); then A_high of ``two_points`` is normal
    too, with mean XG(1 - ρ) and deviation XG√(1 + ρ²).  16 % of such squares are negative: it is no network's law.

    Parameters
    ----------
    input_distance, target_distance, gain : float
        X > 0, Y >= 0, G > 0.
    rate_ratio : float
        ρ = α/β > 0.

    Examples
    --------
    >>> RandomStarts(1.0, 1.0, 0.1).cumulative([0.5, 1.0, 2.0]).round(6).tolist()  # a step at A_low for a small gain
    [0.0, 0.5, 1.0]
    """

    input_distance: float
    target_distance: float
    gain: float
    rate_ratio: float = 1.0

    def __post_init__(self):
        for name in ("input_distance", "gain", "rate_ratio"):
            checks.keep(self, **{name: checks.number(name, getattr(self, name), above=0)})
        y = checks.number("target_distance", self.target_distance, at_least=0)
        checks.keep(self, target_distance=y)
        if not np.isfinite(self._law).all() or self._law[1] == 0:
            checks.fail("gain", "keep A_high inside the floating-point range", self.gain)

    @cached_property
    def _law(self):
        """Mean and deviation of A_high, and A_low."""
        unit, ratio = self.input_distance * self.gain, self.rate_ratio
        low = np.sqrt(ratio) * np.sqrt(self.input_distance) * np.sqrt(self.target_distance)
        return unit * (1 - ratio), unit * float(np.hypot(1, ratio)), float(low)

    def _score(self, hidden):
        """Normal score (...) of the A_high that ends at h, and A_low/h (...)."""
        h, (mean, deviation, low) = checks.entries("hidden", hidden, above=0), self._law  # (...)
        with np.errstate(over="ignore"):
            return (h - low * (low / h) - mean) / deviation, low / h

    def cumulative(self, hidden: float | ArrayLike) -> float | Array["..."]:
        """Probability that the squared hidden distance ends below h, Φ[(h - A_low²/h - XG(1-ρ))/(XG√(1+ρ²))], eq. (47).

        Parameters
        ----------
        hidden : array_like (...)
            h > 0.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> RandomStarts(1.0, 1.0, 0.1).cumulative(1.0)
        0.5
        """
        return checks.plain(ndtr(self._score(hidden)[0]))

    def density(self, hidden: float | ArrayLike) -> float | Array["..."]:
        """Density of the squared hidden distance at the end, the derivative of the cumulative law, eq. (48) for any ρ.

        For Y = 0 it lacks the starts that end at h = 0.

        Parameters
        ----------
        hidden : array_like (...)
            h > 0.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> round(RandomStarts(1.0, 1.0, 1.0).density(1.0), 6)  # 1/√π
        0.56419
        """
        score, ratio = self._score(hidden)
        with np.errstate(over="ignore"):
            # ln(1 + r²) in the exponent: at small h the factor grows without bound where the exponential vanishes.
            factor = 2 * np.log(np.hypot(1, np.minimum(ratio, 1e300)))  # (...)
            found = np.exp(factor - 0.5 * score**2) / (np.sqrt(2 * np.pi) * self._law[1])  # (...)
        return checks.plain(checks.finite("hidden", found))

    def sample(self, count: int, rng: Rng) -> Array[" count"]:
        """Final squared hidden distances of random starts: a₀/X and b₀/a₀ drawn, then a_∞.

        Parameters
        ----------
        count : int
            Starts, >= 1.
        rng : int, SeedSequence or Generator

        Returns
        -------
        ndarray (count,)

        Examples
        --------
        >>> bool(abs(np.median(RandomStarts(1.0, 1.0, 0.1).sample(4000, 1)) - 1) < 0.01)
        True
        """
        count, random = checks.integer("count", count), checks.generator("rng", rng)
        encoder, decoder = self.gain * (1 + random.standard_normal((2, count)))  # (count,), (count,)
        return final_distance(self.input_distance * (encoder - self.rate_ratio * decoder), self._law[2])


def squared_gains(widths: ArrayLike, gain: float, *, slope: float = 1.0) -> Array[" n"]:
    """Mean factors by which a random network multiplies the squared norm of its input, up to each layer.

    Weights of variance  2g²/(n_in + n_out)  give  2g² n_out/(n_in + n_out),  units  max(u, su)  a further (1 + s²)/2;
    exact at every width, and for squared distances of two inputs, too, if units are linear or the inputs lie on one
    ray.  For n equal linear layers it is g^{2n}, where eq. (14) of vanrossem2024 has G^n.

    Parameters
    ----------
    widths : sequence of int (n + 1,)
        Inputs and units of every layer, >= 1.
    gain : float
        g > 0.
    slope : float
        s in [-1, 1], 1 for linear units.

    Returns
    -------
    ndarray (n,)

    Examples
    --------
    >>> squared_gains([10, 10, 10], 2.0).tolist(), squared_gains([1, 3], 1.0, slope=0.0).tolist()
    ([4.0, 16.0], [0.75])
    """
    sizes = checks.entries("widths", widths, at_least=1, ndim=1)  # (n + 1,)
    if sizes.size < 2 or np.any(sizes % 1):
        checks.fail("widths", "hold the numbers of inputs and of units of at least one layer", widths)
    g, slope = checks.number("gain", gain, above=0), checks.number("slope", slope, at_least=-1, at_most=1)
    with np.errstate(over="ignore"):
        factors = np.cumprod(2 * g**2 * sizes[1:] / (sizes[:-1] + sizes[1:]) * (1 + slope**2) / 2)  # (n,)
    return checks.finite("gain", factors)

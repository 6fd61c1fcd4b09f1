"""How far a power law reaches, and how well samples bear it out.

A density p(s) ∝ |s|^{-k} has the exponent  k = -d ln p/d ln|s|.  Samples are judged on a window that is stated before,
s₁ to s₁e^L, where  p(u) ∝ e^{(1-k)u},  u = ln(s/s₁), is a density for every real k; the alternative  e^{au + cu²/2}  is
a lognormal cut to the window.  Source: kukleva2024, eq. (8.1), has the exponent only.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import erf, exprel
from scipy.stats import bootstrap, chi2

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.criticality import _tilted

_END = 1e-9  # of the window: the closest that mean positions come to its ends
_AT_ONCE = 2_000_000  # numbers that the bootstrap holds in memory
_COARSE = 100  # whole numbers from here on are nearly continuous: their steps are below a hundredth


@dataclass(frozen=True)
class Window:
    """A contiguous range of |s| on which the exponent is as claimed.

    Attributes
    ----------
    low, high, decades : float
        Its ends, and log10(high/low).
    probability : float or None
        Of a step in the range; None without a density.
    open_low, open_high : bool
        Whether it reaches the first or the last amplitude of the grid, beyond which it may go on.
    """

    low: float
    high: float
    decades: float
    probability: float | None
    open_low: bool
    open_high: bool


@dataclass(frozen=True)
class Fit:
    """Exponent of the samples in a window.

    Attributes
    ----------
    exponent, error : float
        k and 1/√(Fisher information).
    count, share : int, float
        Samples in the window, and their share of all.
    """

    exponent: float
    error: float
    count: int
    share: float


@dataclass(frozen=True)
class CurvatureTest:
    """A power law against the same with curvature in the log-log plot, a cut lognormal where that is negative.

    Attributes
    ----------
    curvature, error : float
        c, k(u) changes by -c per unit of ln s, and its error; a lognormal has c = -1/σ².
    exponents : tuple of float
        The local k of the curved law at the lower and at the upper end of the window.
    likelihood_ratio : float
        2 ln(L_curved/L_power); chi-square with one degree of freedom if the power law holds.
    p_value : float
        Probability of such a ratio, or a larger one, under the power law.
    aic_difference : float
        AIC of the power law minus AIC of the curved one, LR - 2; > 0 speaks for curvature.
    count : int
        Samples in the window.
    """

    curvature: float
    error: float
    exponents: tuple
    likelihood_ratio: float
    p_value: float
    aic_difference: float
    count: int


@dataclass(frozen=True)
class Tail:
    """A window in which samples bear out a power law.

    Attributes
    ----------
    low, high, decades : float
        Its ends, and log10(high/low).
    drift : float
        By how much the exponent may change from end to end, |c|L plus two errors.
    fit, test : Fit, CurvatureTest
        The exponent, and the test that the power law passed.
    """

    low: float
    high: float
    decades: float
    drift: float
    fit: Fit
    test: CurvatureTest


@dataclass(frozen=True, eq=False)
class Lognormal:
    """A lognormal density, ln s ~ N(m, σ²), seen as a power law: k = 1 at its median, and nearly so around it.

    For a loss e^{cy} of Gaussian inputs σ is |cw| times their deviation.  kukleva2024, eqs. (8.13), (8.19), has k = 1.

    Parameters
    ----------
    log_variance : float or array_like (...)
        σ² > 0.
    log_mean : float or array_like (...), optional
        m, by default 0.

    Examples
    --------
    >>> Lognormal([64.0, 16.0], log_mean=0.0).decades(0.1).round(2).tolist()  # sigmoid, squared and cross-entropy loss
    [5.56, 1.39]
    """

    log_variance: float | Array["..."]
    log_mean: float | Array["..."] = 0.0

    def __post_init__(self):
        variance = checks.plain(checks.entries("log_variance", self.log_variance, above=0))  # (...)
        checks.keep(self, log_variance=variance, log_mean=checks.plain(checks.array("log_mean", self.log_mean)))

    def exponent(self, amplitudes: float | ArrayLike) -> float | Array["..."]:
        """Local exponent,  k = 1 + (ln s - m)/σ².

        Parameters
        ----------
        amplitudes : float or array_like (...)
            s > 0.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Lognormal(16.0).exponent(np.exp([-8.0, 0.0, 16.0])).round(12).tolist()
        [0.5, 1.0, 2.0]
        """
        s = checks.entries("amplitudes", amplitudes, above=0)  # (...)
        return checks.plain(1 + (np.log(s) - self.log_mean) / self.log_variance)

    def _with(self, tolerance):
        """σ² and δ as arrays of the same shape."""
        tolerance = checks.entries("tolerance", tolerance, above=0)  # (...)
        return checks.broadcast(log_variance=self.log_variance, tolerance=tolerance)  # (...), (...)

    def decades(self, tolerance: float | ArrayLike) -> float | Array["..."]:
        """Decades of s on which |k - 1| < δ:  D = 2δσ²/ln 10.

        Parameters
        ----------
        tolerance : float or array_like (...)
            δ > 0; broadcasts with σ².

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Lognormal(64.0).decades([0.1, 0.2]).round(2).tolist()
        [5.56, 11.12]
        """
        variance, tolerance = self._with(tolerance)
        return checks.plain(2 * tolerance * variance / np.log(10))

    def share(self, tolerance: float | ArrayLike) -> float | Array["..."]:
        """Probability of the range on which |k - 1| < δ:  erf(δσ/√2).

        Parameters
        ----------
        tolerance : float or array_like (...)
            δ > 0; broadcasts with σ².

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Lognormal([64.0, 16.0]).share(0.1).round(2).tolist()
        [0.58, 0.31]
        """
        variance, tolerance = self._with(tolerance)
        return checks.plain(erf(tolerance * np.sqrt(variance / 2)))

    def detectability(self, count: int, tolerance: float | ArrayLike) -> float | Array["..."]:
        """Likelihood ratio that samples in the range |k - 1| < δ give on average against the power law:  nδ⁴σ⁴/45.

        To leading order, 4 per cent too large at δσ = 0.8; :func:`curvature_test` measures it, plus one.

        Parameters
        ----------
        count : int
            n >= 1 samples.
        tolerance : float or array_like (...)
            δ > 0; broadcasts with σ².

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Lognormal([64.0, 16.0]).detectability(10_000, 0.1).round(1).tolist()
        [91.0, 5.7]
        """
        count = checks.integer("count", count)
        variance, tolerance = self._with(tolerance)
        return checks.plain(count * (tolerance**2 * variance) ** 2 / 45)


def windows(
    amplitudes: ArrayLike,
    exponents: ArrayLike,
    claim: float,
    tolerance: float,
    *,
    log_density: ArrayLike | None = None,
) -> tuple:
    """All ranges of |s| with  |k - claim| < δ;  k and ln p are straight in ln s between the points of the grid.

    Parameters
    ----------
    amplitudes, exponents : array_like (n,)
        |s| > 0, increasing, n >= 2, and k there.
    claim, tolerance : float
        A k, and δ > 0.
    log_density : array_like (n,), optional
        ln p there, per unit of |s|, for the probability.

    Returns
    -------
    tuple of Window
        The widest first; perhaps empty.

    Examples
    --------
    >>> s = np.geomspace(1e-6, 1e2, 50)
    >>> found = windows(s, 1 + np.log10(s) / 10, 1.0, 0.2, log_density=-10 - np.log(s))
    >>> round(found[0].decades, 9)  # from k = 0.8 at s = 0.01
    4.0
    """
    s = checks.entries("amplitudes", amplitudes, above=0, ndim=1)  # (n,)
    if s.size < 2 or np.any(np.diff(s) <= 0):
        checks.fail("amplitudes", "hold two or more strictly increasing numbers", amplitudes)
    k = checks.array("exponents", exponents, shape=s.shape)  # (n,)
    off = k - checks.number("claim", claim)  # (n,)
    tolerance = checks.number("tolerance", tolerance, above=0)
    u = np.log(s)  # (n,)
    knots = np.unique(np.concatenate([u, *(_crossings(u, off - level) for level in (-tolerance, tolerance))]))  # (m,)
    inside = np.abs(np.interp((knots[1:] + knots[:-1]) / 2, u, off)) < tolerance  # (m-1,)  between knots all or nothing
    change = np.diff(np.concatenate([[False], inside, [False]]).astype(int))  # (m,)
    runs = np.stack([np.flatnonzero(change == 1), np.flatnonzero(change == -1)], axis=1)  # (windows, 2)
    mass = None if log_density is None else np.append(0, np.cumsum(_masses(knots, u, log_density)))  # (m,)
    found = []
    for first, last in runs:
        low, high, decades = np.exp(knots[first]), np.exp(knots[last]), (knots[last] - knots[first]) / np.log(10)
        probability = None if mass is None else float(mass[last] - mass[first])
        ends = bool(first == 0), bool(last == len(knots) - 1)
        found.append(Window(float(low), float(high), float(decades), probability, *ends))
    return tuple(sorted(found, key=lambda window: -window.decades))


def _crossings(u, height):
    """Where the straight pieces through (u, height) go through zero."""
    i = np.flatnonzero(height[:-1] * height[1:] < 0)  # (c,)
    return u[i] + (u[i + 1] - u[i]) * height[i] / (height[i] - height[i + 1])  # (c,)


def _masses(knots, u, log_density):
    """Probability between neighbouring knots, exact for a power law on each piece."""
    log_density = checks.array("log_density", log_density, shape=u.shape)  # (n,)
    height = np.interp(knots, u, log_density) + knots  # (m,)  ln of the density per unit of ln s
    with np.errstate(over="ignore", invalid="ignore"):
        masses = np.diff(knots) * np.exp(height[:-1]) * exprel(np.diff(height))  # (m-1,)
    if not masses.sum() < 1.01:  # 0.01 is room for a coarse grid
        wanted = "be the logarithm of a density per unit of amplitude, with integral <= 1"
        checks.fail("log_density", wanted, float(masses.sum()))
    return masses


def _positions(samples, low, high):
    """Positions ln(s/low)/L of the samples in the window, (n,) in [0, 1], the width L, the number of all samples."""
    s = checks.entries("samples", samples, at_least=0, ndim=1)  # (N,)
    low = checks.number("low", low, above=0)
    high = checks.number("high", high, above=low)
    width = float(np.log(high) - np.log(low))
    chosen = s[(s >= low) & (s <= high)]  # (n,)
    _refuse_counts(chosen, low)
    positions = np.clip((np.log(chosen) - np.log(low)) / width, 0, 1)  # (n,)  off with the rounding of the logarithm
    if chosen.size < 2 or np.ptp(positions) == 0 or np.all((positions == 0) | (positions == 1)):
        checks.fail("samples", f"hold two or more different values inside the window {low:.3g} to {high:.3g}", samples)
    _check_means(positions.mean())
    return positions, width, s.size


def _refuse_counts(samples, low):
    if low < _COARSE and np.all(samples == np.rint(samples)) and np.unique(samples).size < samples.size:
        wanted = "be of a continuous quantity: counts have a likelihood of their own, a sum over whole numbers"
        checks.fail("samples", wanted, f"whole numbers, several of them equal, from {low:.3g} on")


def _check_means(means):
    """Refuse means so close to an end that the exponent is lost in rounding."""
    if np.min(means) < _END or np.max(means) > 1 - _END:
        checks.fail("samples", "not all lie at one end of the window, nor those of a resample", means)


def fit(samples: ArrayLike, low: float, high: float) -> Fit:
    """Maximum likelihood of the exponent on a stated window:  p(u) = θe^{θu}/(e^{θL} - 1),  θ = 1 - k.

    Solves  ⟨u⟩ = L/(1 - e^{-θL}) - 1/θ.

    Parameters
    ----------
    samples : array_like (N,)
        |s| of a continuous quantity.
    low, high : float
        The window, s₁ > 0 and s₁e^L.

    Returns
    -------
    Fit

    Examples
    --------
    >>> round(fit(((np.arange(1000) + 0.5) / 1000) ** 3, 1e-3, 1.0).exponent, 2)  # s = x³ near its zero: k = 2/3
    0.67
    """
    positions, width, total = _positions(samples, low, high)
    return _fit(float(_tilted.steepness(positions.mean())), width, positions.size, total)


def _fit(steepness, width, count, total):
    error = 1 / (width * np.sqrt(count * _tilted.variance(steepness)))
    return Fit(float(1 - steepness / width), float(error), count, count / total)


def bootstrap_error(samples: ArrayLike, low: float, high: float, rng: Rng, *, resamples: int = 200) -> float:
    """Standard deviation of the fitted exponent over resamples, drawn with replacement, of the samples in the window.

    It differs from the error of :func:`fit` where the power law does not hold.

    Parameters
    ----------
    samples : array_like (N,)
        |s| of a continuous quantity.
    low, high : float
        The window, 0 < low < high.
    rng : int, SeedSequence or Generator
        Source of the resamples.
    resamples : int, optional
        R >= 2, by default 200.

    Returns
    -------
    float
        Known to 1/√(2R).

    Examples
    --------
    >>> uniform = (np.arange(1000) + 0.5) / 1000
    >>> resampled = bootstrap_error(uniform**3, 1e-3, 1.0, rng=1, resamples=200)
    >>> 0.7 < resampled / fit(uniform**3, 1e-3, 1.0).error < 1.3
    True
    """
    positions, width, _ = _positions(samples, low, high)
    resamples = checks.integer("resamples", resamples, at_least=2)
    rng, batch = checks.generator("rng", rng), max(1, _AT_ONCE // positions.size)
    drawn = bootstrap((positions,), np.mean, n_resamples=resamples, batch=batch, method="percentile", rng=rng)
    _check_means(drawn.bootstrap_distribution)
    return float(np.std(_tilted.steepness(drawn.bootstrap_distribution), ddof=1) / width)


def curvature_test(samples: ArrayLike, low: float, high: float) -> CurvatureTest:
    """Likelihood ratio of  e^{au + cu²/2}  against the power law  e^{au}  on a stated window, both at their maxima.

    c = -1/σ² for a lognormal.  A small ratio is evidence for a power law only where as many samples would have shown a
    curvature (:meth:`Lognormal.detectability`); quantiles of few samples as ends bias it.

    Parameters
    ----------
    samples : array_like (N,)
        |s| of a continuous quantity, not all in a few hundredths of the window.
    low, high : float
        The window, 0 < low < high.

    Returns
    -------
    CurvatureTest

    Examples
    --------
    >>> from scipy.special import ndtri
    >>> round(curvature_test(np.exp(3 * ndtri((np.arange(4000) + 0.5) / 4000)), 1e-2, 1e2).curvature, 2)  # σ² = 9
    -0.11
    """
    positions, width, _ = _positions(samples, low, high)
    found = _curved(
        positions.mean(keepdims=True), (positions**2).mean(keepdims=True), np.array([width]), positions.size
    )
    crowd = f"{positions.size} samples with mean position {positions.mean():.3g}"
    checks.fail_if(found[0] is None, "samples", "fill the window: take a narrower one", crowd)
    return found[0]


def _curved(first, second, widths, counts):
    """Tests on windows where the positions, in [0, 1], have such means and mean squares; None where they crowd."""
    x = 2 * first - 1, 4 * second - 4 * first + 1  # (W,), (W,)  means of the position in [-1, 1] and of its square
    tests = []
    for (tilt, bend), covariance, gain, width, count in zip(
        *_tilted.curved(np.stack([x[0], 1.5 * x[1] - 0.5], axis=1)), widths, np.broadcast_to(counts, first.shape)
    ):
        ratio = max(0.0, 2 * int(count) * float(gain))  # below zero by rounding only
        curved = 12 / width**2  # d²/du² of the second polynomial
        error = float(np.sqrt(covariance[1, 1] / count) * curved)
        exponents = tuple(float(1 - 2 * slope / width) for slope in (tilt - 3 * bend, tilt + 3 * bend))
        parts = float(bend * curved), error, exponents, ratio, float(chi2.sf(ratio, 1)), ratio - 2, int(count)
        tests.append(CurvatureTest(*parts) if np.isfinite(tilt) else None)
    return tests


def scan(
    samples: ArrayLike, *, decades: float = 1.0, level: float = 0.05, drift: float = 0.5, per_decade: int = 8,
    at_least: int = 50, least: float = 0.5,
) -> tuple:  # fmt: skip
    """All windows in which samples bear out a power law, between ends that are powers of 10^{1/n}, whatever the data.

    A window counts if :func:`curvature_test` does not reject it *and* its samples would have shown a curvature: with
    two errors to spare the exponent changes by less than `drift` from end to end.  Few samples reject nothing and bear
    out nothing.  Windows overlap, and of so many some pass by chance: what counts is the widest.

    Parameters
    ----------
    samples : array_like (N,)
        |s| of a continuous quantity.
    decades : float
        Width from which on a window counts, > 0.
    level : float
        p-value from which on the power law stands, 0 to 1, excluded.
    drift : float
        > 0.
    per_decade, at_least : int
        n ends a decade, and samples in a window, 2 or more.
    least : float
        The lowest exponent that counts: every density that is finite at zero has k = 0 there.

    Returns
    -------
    tuple of Tail
        The widest first; empty where no window counts.

    Examples
    --------
    >>> pareto = ((np.arange(20000) + 0.5) / 20000) ** (-1 / 1.5)  # k = 2.5 from one on
    >>> found = scan(pareto, decades=1.0, level=0.05, drift=0.5, per_decade=8, at_least=50, least=0.5)[0]
    >>> round(found.low, 6), found.decades > 1.8, round(found.fit.exponent, 2)
    (1.0, True, 2.5)
    >>> scan(np.log(pareto))  # an exponential
    ()
    """
    s = checks.entries("samples", samples, at_least=0, ndim=1)  # (N,)
    decades, level = checks.number("decades", decades, above=0), checks.number("level", level, above=0, below=1)
    drift, per_decade = checks.number("drift", drift, above=0), checks.integer("per_decade", per_decade)
    at_least, least, total = checks.integer("at_least", at_least, at_least=2), checks.number("least", least), s.size
    s = np.sort(s[s > 0])  # (n,)
    checks.fail_if(s.size < at_least, "samples", f"hold {at_least} that are > 0, or more", f"{s.size} of them")
    _refuse_counts(s, s[0])
    u, step = np.log(s), np.log(10) / per_decade  # (n,)
    ends = step * np.arange(np.floor(u[0] / step), np.ceil(u[-1] / step) + 1)  # (e,)
    ends = ends[(np.exp(ends) > 0) & np.isfinite(np.exp(ends))]  # (e,)
    middle = (u[0] + u[-1]) / 2  # sums about it lose the fewest digits
    places = (
        np.searchsorted(s, np.exp(ends) * (1 - 1e-12)),
        np.searchsorted(s, np.exp(ends) * (1 + 1e-12), side="right"),
    )
    sums = [np.append(0.0, np.cumsum((u - middle) ** power)) for power in (1, 2)]  # (n+1,) each
    first, last = np.triu_indices(len(ends), max(1, int(np.ceil(decades * per_decade - 1e-9))))  # (W,)
    count = places[1][last] - places[0][first]  # (W,)
    full = count >= at_least
    first, last, count = first[full], last[full], count[full]  # (W,)
    width, offset = ends[last] - ends[first], ends[first] - middle  # (W,), (W,)
    one, two = ((part[places[1][last]] - part[places[0][first]]) / count for part in sums)  # (W,), (W,)
    mean = np.clip((one - offset) / width, _END, 1 - _END)  # (W,)
    square = np.clip((two - 2 * offset * one + offset**2) / width**2, mean**2, mean)  # (W,)
    z = _tilted.steepness(mean)  # (W,)
    found = []
    for piece in range(0, len(width), 1000):
        rows = slice(piece, piece + 1000)
        tests = _curved(mean[rows], square[rows], width[rows], count[rows])
        for k, test in enumerate(tests, start=piece):
            change = np.inf if test is None else (abs(test.curvature) + 2 * test.error) * width[k]
            if change < drift and test.p_value > level and 1 - z[k] / width[k] >= least:
                fit = _fit(float(z[k]), float(width[k]), int(count[k]), total)
                low, high = np.exp(ends[[first[k], last[k]]]).tolist()
                found.append(Tail(low, high, float(width[k] / np.log(10)), float(change), fit, test))
    return tuple(sorted(found, key=lambda tail: (-tail.decades, -tail.fit.count)))

"""How far a power law reaches, how well samples bear it out, and how many samples it takes to tell.

A density p(s) ∝ |s|^{-k} has the exponent  k = -d ln p/d ln|s|.  Samples are judged on a window that is stated before,
s₁ to s₁e^L.  There the position  x = 2 ln(s/s₁)/L - 1  has the density  e^{αx},  k = 1 - 2α/L,  for every real k; the
alternative  e^{αx + β(3x² - 1)/2}  is a lognormal cut to the window.  Both are exponential families: what they need of
the samples are the means of x and x².  Source: kukleva2024, eq. (8.1), has the exponent only.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chndtrinc
from scipy.stats import chi2, ncx2

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

_COARSE = 100  # whole numbers from here on are nearly continuous: their steps are below a hundredth
_END = 0.999  # the largest |mean of x|: beyond, α would exceed a thousand
_STEEPEST = 1000.0  # the largest |α|, |β| at which the quadrature keeps 12 digits
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)  # (16,), (16,), on each of 64 equal panels of [-1, 1]
_X = (np.linspace(-1, 1, 64, endpoint=False)[:, None] + (1 + _POINTS) / 64).ravel()  # (1024,)
_SEARCH = 200  # steps of Newton; some ten are needed
_AT_ONCE = 1000  # windows that a scan solves together


@dataclass(frozen=True)
class Window:
    """A contiguous range of |s| on which the exponent is as claimed.

    Attributes
    ----------
    low, high, decades : float
        Its ends, and log10(high/low).
    """

    low: float
    high: float
    decades: float


@dataclass(frozen=True)
class Fit:
    """Exponent of the samples in a window.

    Attributes
    ----------
    exponent, error : float
        k and 1/√(Fisher information).
    robust_error : float
        The error by the scatter of the samples, which holds where the power law does not: what resampling would give.
    count, share : int, float
        Samples in the window, and their share of all.
    """

    exponent: float
    error: float
    robust_error: float
    count: int
    share: float


@dataclass(frozen=True)
class CurvatureTest:
    """A power law against the same with curvature in the log-log plot, a cut lognormal where that is negative.

    Attributes
    ----------
    curvature, error : float
        c, k changes by -c per unit of ln s, and its error; a lognormal has c = -1/σ².
    exponents : tuple of float
        The local k of the curved law at the lower and at the upper end of the window.
    likelihood_ratio : float
        2 ln(L_curved/L_power); chi-square with one degree of freedom if the power law holds.
    p_value : float
        Probability of such a ratio, or a larger one, under the power law.
    count : int
        Samples in the window.
    """

    curvature: float
    error: float
    exponents: tuple
    likelihood_ratio: float
    p_value: float
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

    def _half_width(self, tolerance):
        """δσ², by how much ln s may be off."""
        tolerance = checks.entries("tolerance", tolerance, above=0)  # (...)
        variance, tolerance = checks.broadcast(log_variance=self.log_variance, tolerance=tolerance)  # (...), (...)
        return variance * tolerance  # (...)

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
        return checks.plain(2 * self._half_width(tolerance) / np.log(10))

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
        return checks.plain(count * (tolerance * self._half_width(tolerance)) ** 2 / 45)

    def power(self, count: int, tolerance: float | ArrayLike, *, level: float = 0.05) -> float | Array["..."]:
        """Share of batches of n samples in the range |k - 1| < δ in which the power law is rejected.

        P(χ² > x), non-central with one degree of freedom and the non-centrality nδ⁴σ⁴/45, where P(χ² > x) is the level
        for the central one.

        Parameters
        ----------
        count : int
            n >= 1 samples.
        tolerance : float or array_like (...)
            δ > 0; broadcasts with σ².
        level : float, optional
            p-value below which :func:`curvature_test` rejects, 0 to 1, excluded, by default 0.05.

        Returns
        -------
        float or ndarray (...)
            Between the level and 1.

        Examples
        --------
        >>> round(Lognormal(64.0).power(312, 0.1, level=0.05), 2)
        0.39
        """
        critical = chi2.isf(checks.number("level", level, above=0, below=1), 1)
        return checks.plain(ncx2.sf(critical, 1, self.detectability(count, tolerance)))

    def samples(self, power: float, tolerance: float | ArrayLike, *, level: float = 0.05) -> float | Array["..."]:
        """Number of samples in the range |k - 1| < δ that it takes to reject the power law in a wanted share of cases.

        Parameters
        ----------
        power : float
            The share, above the level and below 1.
        tolerance : float or array_like (...)
            δ > 0; broadcasts with σ².
        level : float, optional
            p-value below which :func:`curvature_test` rejects, 0 to 1, excluded, by default 0.05.

        Returns
        -------
        float or ndarray (...)
            n, rounded up.

        Examples
        --------
        >>> Lognormal([64.0, 16.0]).samples(0.9, 0.1, level=0.05).tolist()
        [1155.0, 18471.0]
        """
        level = checks.number("level", level, above=0, below=1)
        power = checks.number("power", power, above=level, below=1)
        wanted = chndtrinc(chi2.isf(level, 1), 1, 1 - power)
        return checks.plain(np.ceil(wanted / self.detectability(1, tolerance)))


def windows(amplitudes: ArrayLike, exponents: ArrayLike, claim: float, tolerance: float) -> tuple:
    """All ranges of |s| with  |k - claim| < δ;  k is straight in ln s between the points of the grid.

    Parameters
    ----------
    amplitudes, exponents : array_like (n,)
        |s| > 0, increasing, n >= 2, and k there.
    claim, tolerance : float
        A k, and δ > 0.

    Returns
    -------
    tuple of Window
        The widest first; perhaps empty.

    Examples
    --------
    >>> s = np.geomspace(1e-6, 1e2, 50)
    >>> round(windows(s, 1 + np.log10(s) / 10, 1.0, 0.2)[0].decades, 9)  # from k = 0.8 at s = 0.01
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
    runs = zip(knots[change == 1], knots[change == -1])
    found = [Window(float(np.exp(a)), float(np.exp(b)), float((b - a) / np.log(10))) for a, b in runs]
    return tuple(sorted(found, key=lambda window: -window.decades))


def _crossings(u, height):
    """Where the straight pieces through (u, height) go through zero."""
    i = np.flatnonzero(height[:-1] * height[1:] < 0)  # (c,)
    return u[i] + (u[i + 1] - u[i]) * height[i] / (height[i] - height[i + 1])  # (c,)


def _positions(samples, low, high):
    """Of the positions in the window: means of x and x², the width L and the count, (1,) each; and the count of all."""
    s = checks.entries("samples", samples, at_least=0, ndim=1)  # (N,)
    low = checks.number("low", low, above=0)
    high = checks.number("high", high, above=low)
    width = float(np.log(high) - np.log(low))
    chosen = s[(s >= low) & (s <= high)]  # (n,)
    _refuse_counts(chosen, low)
    x = np.clip(2 * (np.log(chosen) - np.log(low)) / width - 1, -1, 1)  # (n,)  off with the rounding of the logarithm
    if chosen.size < 2 or np.ptp(x) == 0 or np.all(np.abs(x) == 1):
        checks.fail("samples", f"hold two or more different values inside the window {low:.3g} to {high:.3g}", samples)
    wanted = "not all lie at one end of the window"
    checks.fail_if(abs(x.mean()) > _END, "samples", wanted, f"the mean position {(1 + x.mean()) / 2:.3g}")
    return (*np.array([[x.mean()], [(x**2).mean()], [width]]), np.array([x.size])), s.size


def _refuse_counts(samples, low):
    if low < _COARSE and np.all(samples == np.rint(samples)) and np.unique(samples).size < samples.size:
        wanted = "be of a continuous quantity: counts have a likelihood of their own, a sum over whole numbers"
        checks.fail("samples", wanted, f"whole numbers, several of them equal, from {low:.3g} on")


def _maximum(means):
    """Maximum likelihood of  exp(αx + βP₂(x))  on [-1, 1] for given means of x and P₂ (W, 2), or of x alone (W, 1).

    Of many samples at once: (α, β) (W, d), their covariance times n (W, d, d), -ln L per sample (W,); NaN where the
    samples crowd too closely.
    """
    size = means.shape[1]
    basis = np.stack([_X, 1.5 * _X**2 - 0.5])[:size]  # (d, 1024)
    powers = np.concatenate([np.ones((1, _X.size)), basis, (basis[:, None] * basis).reshape(-1, _X.size)])
    powers = (powers * np.tile(_WEIGHTS / 64, 64)).T  # (1024, 1 + d + d²)

    def at(parameters, means):
        """Cost (w,), slope (w, d) and bend (w, d, d)."""
        height = parameters @ basis  # (w, 1024)
        top = height.max(axis=1, keepdims=True)  # (w, 1)
        norm, moments = np.split(np.exp(height - top) @ powers, [1], axis=1)  # (w, 1), (w, d + d²)
        mean, second = np.split(moments / norm, [size], axis=1)  # (w, d), (w, d²)
        cost = (top + np.log(norm))[:, 0] - (parameters * means).sum(axis=1)  # (w,)
        return cost, mean - means, second.reshape(-1, size, size) - mean[:, :, None] * mean[:, None, :]

    best, y = np.zeros(means.shape), means[:, 0]  # (W, d), (W,)
    best[:, 0] = y * (3 - y**2) / (1 - y**2)  # where coth α - 1/α = y, to some per cent
    going = np.flatnonzero(np.abs(best[:, 0]) < _STEEPEST)  # (w,)
    cost, slope = np.full(len(means), np.nan), np.full(best.shape, np.inf)  # (W,), (W, d)
    bend, damping = np.full((len(means), size, size), np.nan), np.zeros(len(means))  # (W, d, d), (W,)
    cost[going], slope[going], bend[going] = at(best[going], means[going])
    for _ in range(_SEARCH):  # Newton's steps, damped where the cost would rise
        if going.size == 0:
            break
        damped = bend[going] + (damping[going] + 1e-15)[:, None, None] * np.eye(size)  # (w, d, d)
        trial = best[going] - np.linalg.solve(damped, slope[going][..., None])[..., 0]  # (w, d)
        there = at(trial, means[going])
        falls = (there[0] <= cost[going] + 1e-14 * (1 + np.abs(cost[going]))) & (
            np.abs(trial).max(axis=1) < 2 * _STEEPEST
        )
        damping[going] = np.where(falls, damping[going] / 100, 10 * damping[going] + 1e-6)
        moved = going[falls]
        best[moved] = trial[falls]
        cost[moved], slope[moved], bend[moved] = (part[falls] for part in there)
        going = going[(np.abs(slope[going]).max(axis=1) > 1e-13) & (np.abs(best[going]).max(axis=1) < _STEEPEST)]
    good = (np.abs(best).max(axis=1) < _STEEPEST) & (np.abs(slope).max(axis=1) <= 1e-10)  # (W,)
    best[~good], bend[~good], cost[~good] = np.nan, np.eye(size), np.nan
    return best, np.where(good[:, None, None], np.linalg.inv(bend), np.nan), cost


def _straight(first, second, width, count, total):
    """Fits on windows where the positions have such means and mean squares, (W,), and -ln L per sample (W,)."""
    slope, covariance, cost = _maximum(first[:, None])
    error = 2 / width * np.sqrt(covariance[:, 0, 0] / count)  # (W,)
    robust = error * np.sqrt(covariance[:, 0, 0] * (second - first**2))  # (W,)
    rows = zip((1 - 2 * slope[:, 0] / width).tolist(), error.tolist(), robust.tolist(), count.tolist())
    return [Fit(*row, row[-1] / total) for row in rows], cost


def _curved(first, second, width, count, straight):
    """Tests there, given what the power law costs, (W,); of NaN where the samples crowd."""
    (tilt, bend), covariance, cost = (part.T for part in _maximum(np.stack([first, 1.5 * second - 0.5], axis=1)))
    curved = 12 / width**2  # (W,)  d²/d(ln s)² of the second polynomial
    ratio = np.maximum(0, 2 * count * (straight - cost))  # (W,)  below zero by rounding only
    ends = np.stack([1 - 2 * (tilt - 3 * bend) / width, 1 - 2 * (tilt + 3 * bend) / width], axis=1)  # (W, 2)
    parts = bend * curved, np.sqrt(covariance[1, 1] / count) * curved, ends, ratio, chi2.sf(ratio, 1), count
    return [CurvatureTest(c, e, tuple(k), *rest) for c, e, k, *rest in zip(*(part.tolist() for part in parts))]


def fit(samples: ArrayLike, low: float, high: float) -> Fit:
    """Maximum likelihood of the exponent on a stated window:  p(u) = θe^{θu}/(e^{θL} - 1),  θ = 1 - k,  u = ln(s/s₁).

    Solves  ⟨u⟩ = L/(1 - e^{-θL}) - 1/θ;  its error by the scatter of the samples is  √(Var u/n) dθ/d⟨u⟩.

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
    given, total = _positions(samples, low, high)
    (found,), _ = _straight(*given, total)
    return found


def curvature_test(samples: ArrayLike, low: float, high: float) -> CurvatureTest:
    """Likelihood ratio of  e^{au + cu²/2}  against the power law  e^{au}  on a stated window, both at their maxima.

    c = -1/σ² for a lognormal.  A small ratio is evidence for a power law only where as many samples would have shown a
    curvature (:meth:`Lognormal.power`); quantiles of few samples as ends bias it.

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
    given, total = _positions(samples, low, high)
    (found,) = _curved(*given, _straight(*given, total)[1])
    crowd = f"{given[3][0]} samples with mean position {(1 + given[0][0]) / 2:.3g}"
    checks.fail_if(np.isnan(found.error), "samples", "fill the window: take a narrower one", crowd)
    return found


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
    below = np.searchsorted(s, np.exp(ends) * (1 - 1e-12))  # (e,)
    upto = np.searchsorted(s, np.exp(ends) * (1 + 1e-12), side="right")  # (e,)
    sums = [np.append(0.0, np.cumsum((u - middle) ** power)) for power in (1, 2)]  # (n+1,) each
    first, last = np.triu_indices(len(ends), max(1, int(np.ceil(decades * per_decade - 1e-9))))  # (W,)
    full = upto[last] - below[first] >= at_least  # (W,)
    found = []
    for rows in np.array_split(np.flatnonzero(full), max(1, full.sum() // _AT_ONCE)):
        a, b = first[rows], last[rows]  # (w,)
        count, width, centre = upto[b] - below[a], ends[b] - ends[a], (ends[b] + ends[a]) / 2 - middle  # (w,) each
        one, two = ((part[upto[b]] - part[below[a]]) / count for part in sums)  # (w,), (w,)
        mean = np.clip(2 * (one - centre) / width, -_END, _END)  # (w,)
        square = np.clip(4 * (two - 2 * centre * one + centre**2) / width**2, mean**2, 1)  # (w,)
        fits, cost = _straight(mean, square, width, count, total)
        for i, j, fit, test in zip(a, b, fits, _curved(mean, square, width, count, cost)):
            change = (abs(test.curvature) + 2 * test.error) * float(ends[j] - ends[i])
            if change < drift and test.p_value > level and fit.exponent >= least:  # NaN is no window
                low, high = np.exp(ends[[i, j]]).tolist()
                found.append(Tail(low, high, float((ends[j] - ends[i]) / np.log(10)), change, fit, test))
    return tuple(sorted(found, key=lambda tail: (-tail.decades, -tail.fit.count)))

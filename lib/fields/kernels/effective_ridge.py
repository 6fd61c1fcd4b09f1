"""The effective ridge of kernel regression: one number that says which modes P samples teach, at ridge T.

The unlearned modes of a kernel act as noise on the learned ones, so that the ridge is renormalized,  T → T_eff = Pκ,
and mode k is learned to the fraction  L_k = λ_k/(λ_k + κ).  Bias, variance and errors follow.  Source: ringel2025talk,
but for samples that are drawn from a finite pool without replacement, which it does not treat.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize.elementwise import find_root

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.fields.kernels._modes import graded, tails

_BLOCK = 2**14  # numbers a block of (rows, modes) may hold: it stays in the cache


def _blocks(rows, modes):
    """Slices that cut `rows` so that (rows, modes) stays below the size of a block."""
    step = max(1, _BLOCK // modes)
    return [slice(start, start + step) for start in range(0, rows, step)]


def _share(one, other, at_zero):
    """one/(one + other), halved so that the sum stays in range, and `at_zero` where both are zero."""
    total = one / 2 + other / 2  # (..., n)
    return np.divide(one / 2, total, out=np.full(total.shape, at_zero), where=total > 0)


def _learned(values, kappa):
    """L_k = λ_k/(λ_k + κ), (..., n);  zero for λ_k = κ = 0."""
    return _share(values, np.asarray(kappa)[..., None], 0.0)


def _unlearned(values, kappa):
    """1 - L_k = κ/(λ_k + κ), (..., n), without the difference."""
    return _share(np.asarray(kappa)[..., None], values, 1.0)


def _bracket(values, counts, p, t):
    """Bounds of κ: the first m modes learned in full and the rest pure ridge; or the first m modes all there is."""
    m = np.unique(np.rint(np.geomspace(1, values.size, 64)).astype(int))  # (m,)  all m give bounds, these suffice
    full, stiffness = np.cumsum(counts)[m - 1], np.cumsum(counts / values)[m - 1]  # (m,), (m,)
    tail = tails(counts * values)[np.append(0, m)]  # (1+m,)
    left = p[:, None] - np.append(0.0, full)  # (R, 1+m)  samples that these modes leave over
    with np.errstate(over="ignore"):
        above = np.divide(t[:, None] + tail, left, out=np.full(left.shape, np.inf), where=left > 0).min(axis=1)  # (R,)
    # m modes alone:  Σ g λ/(λ + κ) >= n_m - κ Σ g/λ  leaves a quadratic for κ; its root without cancellation.
    over = left[:, 1:]  # (R, m)
    size = np.abs(over) + np.hypot(over, 2 * np.sqrt(stiffness) * np.sqrt(t)[:, None])  # (R, m)
    below = (np.where(over > 0, 2 * t[:, None], size) / np.where(over > 0, size, 2 * stiffness)).max(axis=1)  # (R,)
    return np.maximum(below, t / p), above


def _excess(kappa, values, counts, p, t, pool):
    """(T/κ)(1 - Σ g L/M) + Σ g L - P, λ descending.  Modes above κ count as one whole less κ/(λ + κ): no difference of
    large sums."""
    whole = np.insert(np.cumsum(counts), 0, 0.0)  # (n+1,)
    over = whole[np.searchsorted(-values, -kappa)] - p  # (R,)
    for rows in _blocks(kappa.size, values.size):
        k = kappa[rows, None]  # (r, 1)
        over[rows] += (np.where(values > k, -k, values) / (values + k)) @ counts
    return t / kappa * (1 - (over + p) / pool) + over


def _settings(samples, ridge):
    p, t = checks.entries("samples", samples, above=0), checks.entries("ridge", ridge, at_least=0)
    return checks.broadcast(samples=p, ridge=t)  # (...), (...)


@dataclass(frozen=True, eq=False)
class RidgeTheory:
    """Kernel regression on P samples at ridge T, averaged over data sets.

    P and T may be arrays, which are broadcast to one shape (...), that of the results; for two numbers results are
    numbers.  Modes of one eigenvalue enter through their multiplicity g_k.

    Parameters
    ----------
    spectrum : Spectrum or array_like (n,)
        λ_k >= 0 with g_k, in any order, zero or within 100 decades of the largest.
    samples : float or array_like
        P > 0.
    ridge : float or array_like
        T >= 0, the variance of label noise that the regression assumes:  (K + T)⁻¹y.  It is the `alpha` of
        scikit-learn's KernelRidge, of Ridge without intercept, K = XXᵀ, and of GaussianProcessRegressor.  By keyword
        only.
    pool : int, optional
        M, where the P < M samples are drawn without replacement from M points, of which λ_k are the eigenvalues of K/M,
        and the error is that on the points left out.  The pool's eigenvectors are taken for random directions; M → ∞
        is the default.

    Examples
    --------
    >>> RidgeTheory(Spectrum([1.0], [4]), [1, 2, 3], ridge=0.0).kappa.round(6).tolist()  # P = 4/(1 + κ)
    [3.0, 1.0, 0.333333]
    >>> free, pooled = (RidgeTheory(Spectrum.power_law(8, 1.5), 4, ridge=0.0, pool=pool) for pool in (None, 8))
    >>> round(pooled.predict(np.ones(8)).test_error / free.predict(np.ones(8)).test_error, 9)  # 1/(1 - P/M)
    2.0
    """

    spectrum: Spectrum
    samples: float | Array["..."]
    ridge: float | Array["..."] = field(kw_only=True)
    pool: int | None = field(default=None, kw_only=True)

    def __post_init__(self):
        p, t = (checks.plain(part) for part in _settings(self.samples, self.ridge))  # (...), (...)
        checks.keep(self, spectrum=graded(self.spectrum), samples=p, ridge=t)
        if self.pool is not None:
            checks.keep(self, pool=checks.integer("pool", self.pool))
            rank = self.spectrum.multiplicities[self.spectrum.eigenvalues > 0].sum()
            few = f"have as many points as there are modes of eigenvalue > 0, {rank:g}, or more"
            checks.fail_if(rank > self.pool * (1 + 1e-12), "pool", few, self.pool)
            wanted = f"be fewer than the {self.pool} points of the pool: none is left to test on"
            checks.fail_if(np.max(p) >= self.pool, "samples", wanted, f"{np.max(p):g} of them")

    @cached_property
    def kappa(self) -> float | Array["..."]:
        """Effective ridge per sample κ, the root of  P = T/κ + Σ_k g_k L_k;  0 for T = 0 and P >= the rank.

        In a pool that of  P = (T/κ)(1 - Σ_k g_k L_k/M) + Σ_k g_k L_k.
        """
        values, counts = self.spectrum.eigenvalues, self.spectrum.multiplicities  # (n,), (n,)
        unit = values.max()
        order = np.argsort(-values, kind="stable")[: np.count_nonzero(values)]  # (n',)  without the zeros
        values, counts = values[order] / unit, counts[order]  # (n',), (n',)
        p, t = np.ravel(self.samples), np.ravel(self.ridge)  # (R,), (R,)
        with np.errstate(over="ignore"):
            t = checks.finite("ridge", t / unit)  # (R,)
        active = np.flatnonzero((t > 0) | (p < np.cumsum(counts)[-1]))  # (A,)  the rank is summed as in the bracket
        kappa = np.zeros(p.size)  # (R,)
        if active.size:
            p, t = p[active], t[active]
            pool = self.pool or np.inf
            # In a pool no more of T is missing than the part P/M.
            below, above = _bracket(values, counts, p, t * (1 - p / pool))[0], _bracket(values, counts, p, t)[1]
            ends = np.full(p.size, -1e-6), np.log(above / below) + 1e-6  # (A,), (A,)
            ways = {"args": (below, p, t), "tolerances": {"xatol": 1e-15, "xrtol": 1e-15}}
            root = find_root(lambda u, low, p, t: _excess(low * np.exp(u), values, counts, p, t, pool), ends, **ways).x
            kappa[active] = checks.finite("samples", below * np.exp(root))
        with np.errstate(over="ignore"):
            return checks.plain(checks.finite("ridge", kappa.reshape(np.shape(self.samples)) * unit))

    @property
    def learnability(self) -> Array["... n"]:
        """Fraction of each target coefficient that the mean prediction reaches,  L_k = λ_k/(λ_k + κ)."""
        return _learned(self.spectrum.eigenvalues, self.kappa)

    @property
    def posterior_variance(self) -> Array["... n"]:
        """Posterior variance of each coefficient,  λ_k(1 - L_k);  Pκ = T + Σ_k g_k λ_k(1 - L_k)  of unlimited data."""
        return self.learnability * np.asarray(self.kappa)[..., None]  # (..., n)

    def _power(self, target_power):
        return checks.entries("target_power", target_power, at_least=0, shape=self.spectrum.eigenvalues.shape)  # (n,)

    def predict(self, target_power: ArrayLike, *, noise_variance: float = 0.0) -> "LearningCurve":
        """Bias, variance, test and training error of the mean prediction for  y = Σ_k v_k φ_k(x) + ε.

        E₀ = P/(P - Σ g L²),  test error  E₀[Σ (1 - L_k)² w_k + σ²],  training error  (1 - Σ g L/P)² times that.

        In a pool of M  E₀ = P/[(1 - P/M)(P - Σ g L²) + (P - Σ g L)²/M],  the bias is  Σ (1 - L_k)² w_k/(1 - Σ g L/M)²,
        and σ², noise that is not in the targets w, counts  1 - 2Σ g L/M + Σ g L²/M  times:  the mean of (1 - L)².

        Parameters
        ----------
        target_power : array_like (n,)
            w_k >= 0, squared coefficients v², summed over the modes of an eigenvalue.
        noise_variance : float
            σ² >= 0, of the labels.

        Returns
        -------
        LearningCurve

        Raises
        ------
        ValueError
            If T = 0 and P is the rank, where the variance diverges.

        Examples
        --------
        >>> round(RidgeTheory(Spectrum([1.0], [4]), 8, ridge=1.0).predict([1.0]).kappa, 6)  # 8κ² + 3κ = 1
        0.212695
        """
        values, counts = self.spectrum.eigenvalues, self.spectrum.multiplicities  # (n,), (n,)
        power, noise = self._power(target_power), checks.number("noise_variance", noise_variance, at_least=0)
        k, p, t = np.ravel(self.kappa), np.ravel(self.samples), np.ravel(self.ridge)  # (R,) each
        rank = counts[values > 0].sum()
        bias, spread, shared = (np.zeros(p.size) for _ in range(3))  # (R,) each
        for rows in _blocks(p.size, values.size):
            part, left = _learned(values, k[rows]), _unlearned(values, k[rows])  # (r, n), (r, n)
            bias[rows], spread[rows], shared[rows] = left**2 @ power, (part * left) @ counts, part**2 @ counts
        taken, rest = p / (self.pool or np.inf), 1 - (shared + spread) / (self.pool or np.inf)  # (R,)  P/M, 1 - Σ g L/M
        # P - Σ g L, the samples that no mode has used up
        bare = np.divide(t * rest, k, out=p - rank, where=k > 0)  # (R,)
        unused = (1 - taken) * (bare + spread) + taken * bare**2 / p  # (R,)  P - Σ g L² of unlimited data
        if np.any(unused <= 0):
            wanted = f"be > 0 where samples equals the rank {rank:g}: the variance diverges there"
            checks.fail("ridge", wanted, self.ridge)
        outside = noise * (1 - taken * (shared + 2 * spread) / p)  # (R,)
        test = (p / unused) * (bias + outside)  # (R,)
        with np.errstate(over="ignore"):
            variance = (shared / unused) * (bias + noise)  # (R,)
            if self.pool is not None:
                bias = bias / rest**2  # (R,)
                variance = np.maximum(test - bias - noise, 0.0)  # (R,)
            parts = p / unused, bias, variance, test, (bare / p) ** 2 * test  # (R,) each
        shaped = (checks.finite("target_power", part).reshape(np.shape(self.samples)) for part in parts)
        return LearningCurve(self, *map(checks.plain, shaped))

    def equivalent_kernel_error(self, target_power: ArrayLike) -> float | Array["..."]:
        """Error against the clean target that the bare equivalent kernel promises:  Σ_k (1 - L_k)² w_k  at  κ = T/P.

        Parameters
        ----------
        target_power : array_like (n,)
            w_k >= 0, as in `predict`; T > 0.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> RidgeTheory([1.0], 10, ridge=10.0).equivalent_kernel_error([4.0])
        1.0
        """
        power, pool = self._power(target_power), self.pool  # (n,)
        checks.fail_if(pool is not None, "pool", "be None for the equivalent kernel, which is of unlimited data", pool)
        checks.fail_if(np.any(np.asarray(self.ridge) == 0), "ridge", "be > 0 for the equivalent kernel", self.ridge)
        with np.errstate(over="ignore"):
            bare = checks.finite("ridge", np.divide(self.ridge, self.samples))  # (...)
        return checks.plain(_unlearned(self.spectrum.eigenvalues, bare) ** 2 @ power)


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Averages over data sets, as `RidgeTheory.predict` returns them; (...) is the shape of P and T.

    Parameters
    ----------
    theory : RidgeTheory
        With P, T, κ and L_k.
    amplification : float or ndarray (...)
        E₀ >= 1, by which the finite data set multiplies every error.
    bias, variance : float or ndarray (...)
        Error of the mean prediction, Σ_k (1 - L_k)² w_k of unlimited data, and that of its spread over data sets.
    test_error, train_error : float or ndarray (...)
        Bias + variance + label noise, and the mean square residual on the noisy labels.
    """

    theory: RidgeTheory
    amplification: float | Array["..."]
    bias: float | Array["..."]
    variance: float | Array["..."]
    test_error: float | Array["..."]
    train_error: float | Array["..."]

    @property
    def kappa(self) -> float | Array["..."]:
        """Effective ridge per sample."""
        return self.theory.kappa


def degenerate(
    eigenvalue: ArrayLike, multiplicity: ArrayLike, samples: ArrayLike, *, ridge: ArrayLike
) -> float | Array["..."]:
    """Effective ridge per sample for one eigenvalue, in closed form: the root of  Pκ² + (Pλ - gλ - T)κ - Tλ = 0.

    Parameters
    ----------
    eigenvalue, multiplicity, samples, ridge : float or array_like
        λ > 0, g > 0, P > 0, T >= 0, broadcast to one shape.

    Returns
    -------
    float or ndarray (...)
        κ >= 0.

    Examples
    --------
    >>> degenerate(1.0, 4.0, [2, 8], ridge=0.0).tolist()
    [1.0, 0.0]
    """
    value = checks.entries("eigenvalue", eigenvalue, above=0)  # (...)
    count, (p, t) = checks.entries("multiplicity", multiplicity, above=0), _settings(samples, ridge)  # (...) each
    with np.errstate(over="ignore", invalid="ignore"):
        t = checks.finite("ridge", t / value)  # (...)
        middle = (count - p) + t  # (...)  in this order: at P = g nothing of T is lost
        size = np.abs(middle) + np.hypot(middle, 2 * np.sqrt(p) * np.sqrt(t))  # (...)
        # Without cancellation on either side of the threshold P = g + T/λ; the forms meet where the middle is zero.
        kappa = value * (np.where(middle < 0, 2 * t, size) / np.where(middle < 0, size, 2 * p))
        return checks.plain(checks.finite("eigenvalue", kappa))

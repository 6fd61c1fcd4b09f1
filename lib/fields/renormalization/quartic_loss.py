"""Decimation when the loss is not quadratic:  δ² + uδ⁴  in place of  δ²,  tested by sampling the posterior itself.

The action is  S = Σ_k f_k²/2λ_k + Σ_μ (δ_μ² + uδ_μ⁴)/2T,  δ = f - y.  Weak modes of variance V turn uδ⁴ into 6uVδ²
before they add their own variance to the ridge (:func:`one_loop`); :func:`site_learnability` averages over them without
expansion, and :func:`measure` samples all modes.  `ridge`: T > 0; `quartic`: u >= 0; `samples`: P > 0.  Source:
ringel2025talk, on general losses, without model and formulas.
"""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import logsumexp

from lib.common import checks, hmc, linalg
from lib.common.estimate import Estimate
from lib.fields import _data
from lib.fields.kernels import _modes

_WIDTH, _NODES = 16.0, 240  # of the average over weak modes: deviations on both sides of the peak, and nodes
_FEATURE_NODES = 60  # Gauss–Hermite, of the average over one Gaussian feature
_GRID, _TABLE = 801, 1001  # of the one coefficient that is left, and of the loss of one sample


@dataclass(frozen=True, eq=False)
class OneLoop:
    """What one loop predicts after decimation to a cut."""

    kappa: float  # per-sample ridge, T(Λ')/P
    ridge: float  # T(Λ')
    variance: float  # V, posterior variance of the function at one input
    discrepancy: float  # ⟨δ²⟩, V and what the mean does not reach of the target
    learnability: np.ndarray  # (cut,)  L_k of the retained levels


@dataclass(frozen=True, eq=False)
class Measured:
    """Learnability of the strong mode, measured on several data sets."""

    learnability: float  # mean over the data sets
    error: float  # its standard error from the spread of the data sets, which holds the error of the chains
    values: np.ndarray  # (C,)  one of each data set
    acceptance: float  # the lowest of the chains: one near zero is stuck
    time: float  # autocorrelation time within a data set, in steps


def _loss(ridge, quartic):
    return checks.number("ridge", ridge, above=0), checks.number("quartic", quartic, at_least=0)


def one_loop(eigenvalues, samples, ridge, quartic, cut, *, multiplicities=None, target_power=None):
    """Decimation to first order in u:  T(Λ') = T/(1 + 6u⟨δ²⟩) + Σ_{k>Λ'} g_k λ_k,  κ = T(Λ')/P.

    ⟨δ²⟩ = V + Σ_k (1 - L_k)² v_k²,  L_k = λ_k/(λ_k + κ), V = Σ_k g_k λ_k (1 - L_k), so κ is found self-consistently.
    For ridges large against ⟨δ²⟩ and many modes: the variance of one mode counts three times in the shift of that mode
    itself.  `eigenvalues` (n,): λ_k >= 0, descending, not all zero; `samples`, `ridge`, `quartic`: P, T, u; `cut`: Λ',
    number of retained levels; `multiplicities` (n,): g_k > 0, by default all 1; `target_power` (n,): v_k² >= 0, power
    of the target in the level, by default none.  Returns OneLoop.

    >>> one_loop([0.5, 0.0025], 100, 20, 0.5, 1, multiplicities=[1, 400]).learnability.round(3).tolist()
    [0.894]
    """
    lam, counts = _modes.descending(eigenvalues, multiplicities)  # (n,), (n,)
    samples = checks.number("samples", samples, above=0)
    ridge, u = _loss(ridge, quartic)
    if (cut := checks.integer("cut", cut, at_least=0)) > lam.size:
        checks.fail("cut", f"be at most the number of levels, {lam.size}", cut)
    power = np.zeros(lam.size) if target_power is None else target_power
    power = checks.entries("target_power", power, at_least=0, shape=lam.shape)  # (n,)
    tail = _modes.tails(counts * lam)[cut]

    def variance(kappa):
        return float(counts @ (lam / (1 + lam / kappa)))

    def discrepancy(kappa):
        return variance(kappa) + float(power @ (1 + lam / kappa) ** -2.0)

    def excess(log_kappa):  # falls with κ: one root
        kappa = np.exp(log_kappa)
        return np.log((ridge / (1 + 6 * u * discrepancy(kappa)) + tail) / samples) - log_kappa

    lowest = ridge / (1 + 6 * u * (counts @ lam + power.sum())) / samples
    bounds = np.log(checks.finite("quartic", np.array([lowest, (ridge + tail) / samples]))) + [-1e-9, 1e-9]  # (2,)
    kappa = float(np.exp(brentq(excess, *bounds, xtol=1e-14)))
    return OneLoop(kappa, samples * kappa, variance(kappa), discrepancy(kappa), lam[:cut] / (lam[:cut] + kappa))


def _site_action(delta, ridge, u, s):
    """Loss  U = -ln⟨exp{-[(δ+ζ)² + u(δ+ζ)⁴]/2T}⟩,  ζ ~ N(0, s), of discrepancies δ (...) at one sample.

    The integrand has one peak, where  a t³ + b t = δ/s,  for t = δ + ζ.
    """
    a, b = 2 * u / ridge, 1 / ridge + 1 / s
    if u == 0:
        peak = delta / (s * b)  # (...)
    else:
        scale = 2 * np.sqrt(b / (3 * a))
        peak = scale * np.sinh(np.arcsinh(3 * delta / (s * b * scale)) / 3)  # (...)
    width = (b + 3 * a * peak**2 + np.sqrt(a)) ** -0.5  # (...)  nodes spread over it
    nodes = np.linspace(-_WIDTH, _WIDTH, _NODES)  # (n,)
    total = peak[..., None] + width[..., None] * nodes  # (..., n)
    exponent = -(total**2 + u * total**4) / (2 * ridge) - (total - delta[..., None]) ** 2 / (2 * s)  # (..., n)
    step = np.log(width * (nodes[1] - nodes[0])) - np.log(2 * np.pi * s) / 2  # (...)
    return -logsumexp(exponent, axis=-1) - step + 0.0


def site_learnability(eigenvalue, samples, ridge, quartic, variance, *, amplitude=1.0):
    """Learnability ⟨f⟩/v of one strong mode:  S(f) = f²/2λ + P ⟨U((f - v)φ)⟩_φ,  φ ~ N(0, 1).

    U is the loss with the weak modes averaged sample by sample, which must be many; what the average over inputs
    neglects is of order 1/P.  `eigenvalue`: λ > 0 of the strong mode; `samples`, `ridge`, `quartic`: P, T, u;
    `variance`: s = Σ_{k>Λ'} g_k λ_k > 0; `amplitude`: v > 0, of the target.  Returns a float.

    >>> [round(site_learnability(0.5, 100, 20, u, 1.0), 3) for u in (0, 0.5)]
    [0.704, 0.886]
    """
    lam = checks.number("eigenvalue", eigenvalue, above=0)
    samples = checks.number("samples", samples, above=0)
    ridge, u = _loss(ridge, quartic)
    s, v = checks.number("variance", variance, above=0), checks.number("amplitude", amplitude, above=0)
    phi, weights = np.polynomial.hermite_e.hermegauss(_FEATURE_NODES)  # (q,), (q,)
    curvature = samples / (ridge + s)  # of the quadratic part of the loss in f: the quartic part only narrows the peak
    middle, spread = v * curvature / (1 / lam + curvature), (1 / lam + curvature) ** -0.5
    low, high = middle - _WIDTH * spread, v + _WIDTH * spread
    for _ in range(3):  # a grid over everything, then two over what carries weight
        f = np.linspace(low, high, _GRID)  # (G,)
        reach = max(v - low, high - v) * phi.max()
        table = np.linspace(0, reach, _TABLE)  # (t,)  the loss is even in δ
        with np.errstate(over="ignore", invalid="ignore"):
            values = checks.finite("quartic", _site_action(table, ridge, u, s))  # (t,)
        loss = CubicSpline(table, values)(np.abs((f[:, None] - v) * phi))  # (G, q)
        action = f**2 / (2 * lam) + samples * loss @ weights / weights.sum()  # (G,)
        density = np.exp(action.min() - action)  # (G,)
        heavy = np.flatnonzero(density > 1e-20)  # (g,)
        low, high = f[max(heavy[0] - 1, 0)], f[min(heavy[-1] + 1, _GRID - 1)]
    return float(density @ f / density.sum() / v)


def _tail_roots(tail, counts, samples, datasets, random):
    """Roots (C, P, P) of the Gram matrices of the weak modes, of which the samples see nothing else."""
    scales = np.repeat(np.sqrt(tail), counts)  # (m,)
    factors = np.empty((datasets, samples, samples))  # (C, P, P)
    for factor in factors:
        weighted = random.standard_normal((samples, scales.size)) * scales  # (P, m)
        factor[...] = linalg.psd_root(weighted @ weighted.T)  # also with fewer modes than samples
    return factors


def _potential(features, roots, deviation, ridge, quartic, amplitude):
    """U and its gradient in whitened coordinates x (C, 1 + P): the strong mode, then the values of the weak ones."""

    def evaluated(x):
        strong, weak = x[:, :1], x[:, 1:]  # (C, 1), (C, P)
        delta = (deviation * strong - amplitude) * features + (roots @ weak[..., None])[..., 0]  # (C, P)
        value = (x**2).sum(axis=1) / 2 + (delta**2 + quartic * delta**4).sum(axis=1) / (2 * ridge)  # (C,)
        force = (delta + 2 * quartic * delta**3) / ridge  # (C, P)
        pulled = deviation * (force * features).sum(axis=1, keepdims=True)  # (C, 1)
        return value, x + np.concatenate([pulled, (force[:, None, :] @ roots)[:, 0]], axis=1)

    return evaluated


def measure(
    eigenvalue, tail, samples, ridge, quartic, rng, *, counts=None, amplitude=1.0, datasets=64, steps=300, burn_in=100
):
    """Learnability of one strong mode under  δ² + uδ⁴,  by Hamiltonian Monte Carlo on Gaussian features.

    Each chain has its own data set.  The weak modes enter through their values at the samples alone, P Gaussian numbers
    with their Gram matrix as covariance, so P + 1 numbers are sampled; the law is exactly that of all modes.
    `eigenvalue`, `amplitude`: λ, v > 0 of the strong mode; `tail` (n,): λ_k >= 0 of the weak modes, not all zero;
    `samples`: P >= 1; `ridge`, `quartic`: T, u; `rng`: int, SeedSequence or Generator; `counts` (n,): number g_k >= 1
    of weak modes of each λ_k, by default all 1; `datasets`: C >= 2; `steps`: proposals kept, >= 8; `burn_in`: those
    thrown away while the step is adapted.  Returns Measured.

    >>> measure(0.5, [0.02], 10, 5.0, 0.5, rng=1, counts=[50], datasets=16, steps=100).values.shape
    (16,)
    """
    deviation = np.sqrt(checks.number("eigenvalue", eigenvalue, above=0))
    tail = checks.entries("tail", tail, at_least=0, ndim=1)  # (n,)
    if not tail.any():
        checks.fail("tail", "hold one or more eigenvalues, not all zero", tail)
    samples = checks.integer("samples", samples)
    ridge, u = _loss(ridge, quartic)
    random = checks.generator("rng", rng)
    numbers = np.ones(tail.shape) if counts is None else counts
    numbers = _data.whole("counts", numbers, at_least=1, shape=tail.shape)  # (n,)
    v = checks.number("amplitude", amplitude, above=0)
    datasets, steps = checks.integer("datasets", datasets, at_least=2), checks.integer("steps", steps, at_least=8)
    burn_in = checks.integer("burn_in", burn_in, at_least=0)

    features = random.standard_normal((datasets, samples))  # (C, P)
    roots = _tail_roots(tail, numbers, samples, datasets, random)  # (C, P, P)
    potential = _potential(features, roots, deviation, ridge, u, v)
    learned = {"observable": lambda x: deviation * x[:, 0] / v}
    chains = hmc.sample(potential, np.zeros((datasets, samples + 1)), steps, random, burn_in=burn_in, **learned)
    values = chains.samples.mean(axis=0)  # (C,)
    time = float(hmc.summary(chains.samples - values).time)  # the data sets differ: each chain has its own mean
    mean, error = Estimate.of(values)
    return Measured(float(mean), float(error), values, float(chains.acceptance.min()), time)

"""Decimation when the loss is not quadratic:  δ² + uδ⁴  in place of  δ²,  tested by sampling the posterior itself.

The action is  S = Σ_k f_k²/2λ_k + Σ_μ (δ_μ² + uδ_μ⁴)/2T,  δ = f - y.  Weak modes of variance V turn uδ⁴ into 6uVδ²
before they add their own variance to the ridge.  Source: ringel2025talk, on general losses, without model and formulas.
"""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import logsumexp

from lib.common import checks, hmc, linalg
from lib.common.estimate import Estimate
from lib.common.shapes import Array, ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.fields import _data
from lib.fields.kernels._modes import descending, tails

_WIDTH, _NODES = 16.0, 240  # of the average over weak modes: deviations on both sides of the peak, and nodes
_FEATURE_NODES = 60  # Gauss–Hermite, of the average over one Gaussian feature
_GRID, _TABLE = 801, 1001  # of the one coefficient that is left, and of the loss of one sample


@dataclass(frozen=True, eq=False)
class OneLoop:
    """What one loop predicts after decimation to a cut.

    Parameters
    ----------
    kappa, ridge : float
        Per-sample ridge, T(Λ')/P, and T(Λ').
    variance, discrepancy : float
        V, posterior variance of the function at one input; ⟨δ²⟩, V and what the mean does not reach of the target.
    learnability : ndarray (cut,)
        L_k of the retained levels.
    """

    kappa: float
    ridge: float
    variance: float
    discrepancy: float
    learnability: Array[" cut"]


@dataclass(frozen=True, eq=False)
class Measured:
    """Learnability of the strong mode, measured on C data sets.

    Parameters
    ----------
    learnability : Estimate
        Mean over the data sets; the error from their spread holds that of the chains.
    values : ndarray (C,)
        One of each data set.
    acceptance : float
        The lowest of the chains: one near zero is stuck.
    time : float
        Autocorrelation time within a data set, in steps.
    """

    learnability: Estimate
    values: Array[" C"]
    acceptance: float
    time: float


def _loss(ridge, quartic):
    return checks.number("ridge", ridge, above=0), checks.number("quartic", quartic, at_least=0)


def one_loop(
    spectrum: Spectrum | ArrayLike, samples: float, ridge: float, quartic: float, cut: int, *,
    target_power: ArrayLike | None = None,
) -> OneLoop:  # fmt: skip
    """Decimation to first order in u:  T(Λ') = T/(1 + 6u⟨δ²⟩) + Σ_{k>Λ'} g_k λ_k,  κ = T(Λ')/P.

    ⟨δ²⟩ = V + Σ_k (1 - L_k)² v_k²,  L_k = λ_k/(λ_k + κ), V = Σ_k g_k λ_k (1 - L_k), so κ is found self-consistently.
    For ridges large against ⟨δ²⟩ and many modes: the variance of one mode counts three times in the shift of that mode
    itself.

    Parameters
    ----------
    spectrum : Spectrum or array_like (n,)
        λ_k >= 0, descending, with g_k.
    samples, ridge, quartic : float
        P > 0, T > 0, u >= 0.
    cut : int
        Λ', number of retained levels.
    target_power : array_like (n,), optional
        v_k² >= 0, power of the target in the level, by default none.

    Returns
    -------
    OneLoop

    Examples
    --------
    >>> spectrum = Spectrum([0.5, 0.0025], [1, 400])
    >>> one_loop(spectrum, 100, 20, 0.5, 1, target_power=[0.0, 0.0]).learnability.round(3).tolist()
    [0.894]
    """
    spectrum, samples = descending(spectrum), checks.number("samples", samples, above=0)
    lam, counts = spectrum.eigenvalues, spectrum.multiplicities  # (n,), (n,)
    ridge, u = _loss(ridge, quartic)
    if (cut := checks.integer("cut", cut, at_least=0)) > lam.size:
        checks.fail("cut", f"be at most the number of levels, {lam.size}", cut)
    power = np.zeros(lam.size) if target_power is None else target_power
    power = checks.entries("target_power", power, at_least=0, shape=lam.shape)  # (n,)
    tail = tails(counts * lam)[cut]

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
    if u < 1e-100:  # no δ that is a loss feels it
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


def site_learnability(
    eigenvalue: float, samples: float, ridge: float, quartic: float, variance: float, *, amplitude: float = 1.0
) -> float:
    """Learnability ⟨f⟩/v of one strong mode:  S(f) = f²/2λ + P ⟨U((f - v)φ)⟩_φ,  φ ~ N(0, 1).

    U is the loss with the weak modes averaged sample by sample without expansion, which must be many; what the average
    over inputs neglects is of order 1/P.

    Parameters
    ----------
    eigenvalue : float
        λ > 0 of the strong mode.
    samples, ridge, quartic : float
        P > 0, T > 0, u >= 0.
    variance : float
        s = Σ_{k>Λ'} g_k λ_k > 0, of the weak modes.
    amplitude : float
        v > 0, of the target.

    Returns
    -------
    float

    Examples
    --------
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


def _tail_roots(tail, counts, samples, replicas, random):
    """Roots (C, P, P) of the Gram matrices of the weak modes, of which the samples see nothing else."""
    scales = np.repeat(np.sqrt(tail), counts)  # (m,)
    factors = np.empty((replicas, samples, samples))  # (C, P, P)
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
    eigenvalue: float, tail: Spectrum | ArrayLike, samples: int, ridge: float, quartic: float, rng: Rng, *,
    amplitude: float = 1.0, replicas: int = 64, steps: int = 300, burn_in: int = 100,
) -> Measured:  # fmt: skip
    """Learnability of one strong mode under  δ² + uδ⁴,  by Hamiltonian Monte Carlo on Gaussian features.

    Each chain has its own data set.  The weak modes enter through their values at the samples alone, P Gaussian numbers
    with their Gram matrix as covariance, so P + 1 numbers are sampled; the law is exactly that of all modes.

    Parameters
    ----------
    eigenvalue : float
        λ > 0 of the strong mode.
    tail : Spectrum or array_like (n,)
        λ_k >= 0 of the weak modes, with whole g_k >= 1.
    samples : int
        P >= 1.
    ridge, quartic : float
        T > 0, u >= 0.
    rng : int, SeedSequence or Generator
    amplitude : float
        v > 0, of the target in the strong mode.
    replicas : int
        C >= 2 data sets.
    steps, burn_in : int
        Proposals kept, >= 8, and those thrown away while the step is adapted.

    Returns
    -------
    Measured

    Examples
    --------
    >>> tail = Spectrum([0.02], [50])
    >>> measure(0.5, tail, 10, 5.0, 0.5, rng=1, replicas=16, steps=100).values.shape
    (16,)
    """
    deviation, tail = np.sqrt(checks.number("eigenvalue", eigenvalue, above=0)), Spectrum.read("tail", tail)
    numbers = _data.whole("tail", tail.multiplicities, at_least=1)  # (n,)
    samples, (ridge, u) = checks.integer("samples", samples), _loss(ridge, quartic)
    random, v = checks.generator("rng", rng), checks.number("amplitude", amplitude, above=0)
    replicas, steps = checks.integer("replicas", replicas, at_least=2), checks.integer("steps", steps, at_least=8)
    burn_in = checks.integer("burn_in", burn_in, at_least=0)
    features = random.standard_normal((replicas, samples))  # (C, P)
    roots = _tail_roots(tail.eigenvalues, numbers, samples, replicas, random)  # (C, P, P)
    potential = _potential(features, roots, deviation, ridge, u, v)
    learned = {"observable": lambda x: deviation * x[:, 0] / v}
    chains = hmc.sample(potential, np.zeros((replicas, samples + 1)), steps, random, burn_in=burn_in, **learned)
    values = chains.samples.mean(axis=0)  # (C,)
    time = float(hmc.summary(chains.samples - values).time)  # the data sets differ: each chain has its own mean
    return Measured(Estimate.of(values), values, float(chains.acceptance.min()), time)

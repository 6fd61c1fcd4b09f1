"""Hamiltonian Monte Carlo over many independent chains at once, and the error of what they measure.

A density  p(x) ∝ e^{-U(x)}  is sampled by drawing a momentum, following  x' = s² p,  p' = -∂U  for a few leapfrog steps
and accepting the end with probability  min(1, e^{-ΔH}),  H = U + Σ s²p²/2.  The step sets the acceptance alone and
makes no error, unlike that of Langevin steps.  Not in the source, ringel2025talk.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng

_FREE = 20  # proposals in which the step may move by factors of e; after them the adaptation's gain falls as n^-0.6


@dataclass(frozen=True, eq=False)
class Chains:
    """C chains of S samples each, after burn-in.

    Parameters
    ----------
    samples : ndarray (S, C, ...)
        States, or values of the observable.
    acceptance : ndarray (C,)
        Part of the proposals accepted after burn-in; a chain near zero is stuck.
    step : float
        The adapted step, in units of the scale.
    last : ndarray (C, ...)
        The last states, from which another run may start.
    """

    samples: Array["S C ..."]
    acceptance: Array[" C"]
    step: float
    last: Array["C ..."]


@dataclass(frozen=True, eq=False)
class Summary:
    """Mean of a series (S, C, ...) and how far to trust it; every field is a float or has the entries (...).

    Parameters
    ----------
    mean : float or ndarray
        Over steps and chains.
    error : float or ndarray
        Standard error,  √(variance · time / (S C)).
    time : float or ndarray
        Integrated autocorrelation time  1 + 2 Σ_k ρ_k,  in steps.
    split_half : float or ndarray
        Mean of the second half less that of the first, in its standard errors  2 · error.
    r_hat : float or ndarray
        Root of the variance of all samples over that within half chains, 1 where all of them agree (Gelman et al.,
        Bayesian Data Analysis, section 11.4).
    """

    mean: float | Array["..."]
    error: float | Array["..."]
    time: float | Array["..."]
    split_half: float | Array["..."]
    r_hat: float | Array["..."]


class ShortChains(ValueError):
    """Chains are too short for the error of their mean; `summary` holds what was found, the time among it."""

    def __init__(self, message: str, summary: Summary):
        super().__init__(message)
        self.summary = summary


def _potential(potential, shape):
    """`potential` as a function that returns float arrays of the right shapes, or complains."""
    if not callable(potential):
        checks.fail("potential", "be a function of x", potential)

    def evaluated(x):
        with np.errstate(over="ignore", invalid="ignore"):  # a chain that flies away is rejected, not warned of
            returned = potential(x.copy())  # copied in and out: the caller may reuse its arrays
        parts = [np.array(part) for part in returned] if isinstance(returned, tuple) else []  # (C,), (C, ...)
        if [part.shape for part in parts] != [shape[:1], shape] or any(part.dtype.kind not in "iuf" for part in parts):
            wanted = f"return two real arrays, a value of shape {shape[:1]} and a gradient of shape {shape}"
            checks.fail("potential", wanted, returned)
        return parts

    return evaluated


def _energy(value, momentum):
    return value + (momentum.reshape(len(value), -1) ** 2).sum(axis=1) / 2  # (C,)


def _proposal(state, potential, length, leapfrog, random):
    """New state, probabilities of acceptance, which were accepted; `length` is step times scale, one or shaped as x."""
    x, value, gradient = state
    momentum = random.standard_normal(x.shape)  # (C, ...)  s p, of variance one
    new_x, new_value, new_gradient = x, value, gradient
    new_momentum = momentum - length / 2 * gradient  # (C, ...)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(leapfrog):
            new_x = new_x + length * new_momentum  # (C, ...)
            new_value, new_gradient = potential(new_x)
            new_momentum = new_momentum - (length if i < leapfrog - 1 else length / 2) * new_gradient  # (C, ...)
        change = _energy(new_value, new_momentum) - _energy(value, momentum)  # (C,)
        finite = np.isfinite(change) & np.isfinite(new_gradient.reshape(len(change), -1)).all(axis=1)  # (C,)
        probability = np.where(finite, np.exp(-np.maximum(change, 0)), 0.0)  # (C,)
    accepted = random.random(len(change)) < probability  # (C,)
    wide = accepted.reshape(-1, *[1] * (x.ndim - 1))  # (C, 1, ...)
    state = np.where(wide, new_x, x), np.where(accepted, new_value, value), np.where(wide, new_gradient, gradient)
    return state, probability, accepted


def sample(
    potential: Callable,
    start: ArrayLike,
    steps: int,
    rng: Rng,
    *,
    leapfrog: int = 10,
    burn_in: int | None = None,
    acceptance: float = 0.8,
    scale: ArrayLike = 1.0,
    step: float = 0.1,
    observable: Callable | None = None,
) -> Chains:
    """Sample  p(x) ∝ e^{-U(x)}  by many chains that run side by side and share one step.

    During burn-in alone the step follows  log h ← log h + (1 + n/20)^{-0.6} (acceptance found - wanted);  afterwards
    log h is its mean over the second half of burn-in.

    Parameters
    ----------
    potential : callable
        Function of x (C, ...) that returns U (C,), inf allowed, and its gradient (C, ...).
    start : array_like (C, ...)
        First states, one row a chain.
    steps : int
        S >= 1 proposals kept of each chain.
    rng : int, SeedSequence or Generator
    leapfrog : int
        Mean number of leapfrog steps, drawn from 1 to 2 leapfrog - 1.
    burn_in : int, optional
        Proposals thrown away first, by default as many as are kept, and 100 or more.
    acceptance : float
        Wanted mean probability of acceptance, in (0, 1).
    scale : float or array_like
        s > 0, expected deviation of each coordinate; broadcasts to x.
    step : float
        First step > 0, in units of the scale.
    observable : callable, optional
        Function of x whose value (C, ...) is kept in place of x.

    Returns
    -------
    Chains

    Examples
    --------
    >>> chains = sample(lambda x: ((x**2).sum(axis=1) / 2, x), np.zeros((20, 2)), 500, rng=1, burn_in=500)
    >>> chains.samples.shape, chains.samples.var(axis=(0, 1)).round(1).tolist()
    ((500, 20, 2), [1.0, 1.0])
    """
    x = checks.array("start", start)  # (C, ...)
    if x.ndim == 0 or x.size == 0:
        checks.fail("start", "have one row or more, one for each chain", f"shape {x.shape}")
    scale = checks.entries("scale", scale, above=0)  # () or as one chain, or as all of them
    try:
        np.broadcast_to(scale, x.shape)
    except ValueError:
        checks.fail("scale", f"be one number or fit the shape {x.shape} of start", f"shape {scale.shape}")
    potential = _potential(potential, x.shape)
    steps, leapfrog = checks.integer("steps", steps), checks.integer("leapfrog", leapfrog)
    burn_in = max(steps, 100) if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
    wanted = checks.number("acceptance", acceptance, above=0, below=1)
    first = log_step = np.log(checks.number("step", step, above=0))
    observable = np.copy if observable is None else observable
    if not callable(observable):
        checks.fail("observable", "be a function of x", observable)
    random = checks.generator("rng", rng)
    state = (x, *potential(x))
    if not (np.isfinite(state[1]).all() and np.isfinite(state[2]).all()):
        checks.fail("start", "have a finite potential and gradient in every chain", start)

    history = np.full(burn_in, first)  # (burn_in,)
    accepted, samples = np.zeros(len(x)), None  # (C,)
    for n in range(burn_in + steps):
        if n == burn_in and burn_in:
            log_step = history[burn_in // 2 :].mean()
        # The number varies, or a mode whose period it meets would come back, or to its mirror image, for ever.
        number = random.integers(1, 2 * leapfrog)
        state, probability, now = _proposal(state, potential, np.exp(log_step) * scale, number, random)
        if n < burn_in:
            log_step += (1 + n / _FREE) ** -0.6 * (probability.mean() - wanted)
            history[n] = log_step
            continue
        value = checks.array("observable", observable(state[0].copy()))  # (C, ...)
        if samples is None:
            if value.shape[:1] != x.shape[:1]:
                checks.fail("observable", f"return one row for each of {len(x)} chains", f"shape {value.shape}")
            samples = np.empty((steps, *value.shape))  # (S, C, ...)
        samples[n - burn_in] = value
        accepted += now  # (C,)
    return Chains(samples, accepted / steps, float(np.exp(log_step)), state[0])


def _autocorrelation(deviations):
    """ρ_k of every entry for k < S/2, averaged over the chains: products at lag k divided by their number."""
    size = len(deviations)
    spectrum = np.abs(rfft(deviations, next_fast_len(2 * size, real=True), axis=0)) ** 2  # (f, C, ...)
    products = irfft(spectrum.mean(axis=1), next_fast_len(2 * size, real=True), axis=0)[: (size + 1) // 2]  # (k, ...)
    products /= (size - np.arange(len(products))).reshape(-1, *[1] * (products.ndim - 1))  # (k, ...)
    return products / np.where(products[0] > 0, products[0], 1)  # (k, ...)


def _r_hat(values):
    """Root of the variance of all samples over that within half chains: infinite where nothing moves within them."""
    half = len(values) // 2
    halves = np.concatenate([values[:half], values[-half:]], axis=1)  # (S/2, 2 C, ...)
    within = halves.var(axis=0, ddof=1).mean(axis=0)  # (...)
    whole = (half - 1) / half * within + halves.mean(axis=0).var(axis=0, ddof=1)  # (...)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(whole / within)  # (...)


def summary(series: ArrayLike) -> Summary:
    """Mean of a series of chains, its standard error with the autocorrelation time, and signs of chains apart.

    The time is  τ = 1 + 2 Σ_k ρ_k,  summed over pairs  ρ_{2k} + ρ_{2k+1}  while these are positive, and cut where they
    rise.  Deviations are from the mean of all chains: chains that stay apart lengthen τ.

    Parameters
    ----------
    series : array_like (S, C, ...)
        Values after burn-in, S >= 8 steps of C independent chains.

    Returns
    -------
    Summary
        With entries (...).

    Raises
    ------
    ShortChains
        If S is below ten autocorrelation times; its `summary` holds what was found.

    Examples
    --------
    >>> found = summary(5 + np.random.default_rng(0).standard_normal((1000, 4)))
    >>> round(found.time, 1), round(found.r_hat, 2)
    (1.1, 1.0)
    """
    values = checks.array("series", series)  # (S, C, ...)
    if values.ndim < 2 or values.size == 0 or len(values) < 8:
        checks.fail("series", "have shape (S, C, ...) with S >= 8 steps of one chain or more", f"shape {values.shape}")
    steps, chains = values.shape[:2]
    mean = values.mean(axis=(0, 1))  # (...)
    deviations = values - mean  # (S, C, ...)
    rho = _autocorrelation(deviations)  # (k, ...)
    pairs = rho[: len(rho) // 2 * 2].reshape(len(rho) // 2, 2, *rho.shape[1:]).sum(axis=1)  # (k/2, ...)
    # Never rising, and zero after the first pair that is noise.
    pairs = np.maximum(np.minimum.accumulate(pairs, axis=0), 0)  # (k/2, ...)
    time = np.maximum(2 * pairs.sum(axis=0) - 1, 1 / steps)  # (...)
    variance = (deviations**2).mean(axis=(0, 1))  # (...)
    still = variance <= (1e-14 * np.abs(mean)) ** 2  # (...)  a constant: what is left is rounding
    time = np.where(still, 1.0, time)  # (...)
    error = np.sqrt(np.where(still, 0.0, variance * time / (steps * chains)))  # (...)
    difference = values[-(steps // 2) :].mean(axis=(0, 1)) - values[: steps // 2].mean(axis=(0, 1))  # (...)
    split_half = np.where(still, 0.0, difference / np.where(still, 1.0, 2 * error))  # (...)
    r_hat = np.where(still, 1.0, _r_hat(values))  # (...)
    found = Summary(*(checks.plain(part) for part in (mean, error, time, split_half, r_hat)))
    if np.any(10 * time > steps):
        wanted = f"hold ten autocorrelation times or more, {10 * time.max():.0f} steps or more by what is seen"
        raise ShortChains(f"series must {wanted}, got {steps} steps", found)
    return found

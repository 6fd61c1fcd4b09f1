"""The mean gradient of the toy neuron y = wx + b over Gaussian classes, where it vanishes, and the wandering around it.

The input of class t is x ~ N(μ_t, σ²), with prior π_t: `means` μ (2,) differ, `deviation` σ > 0, `priors` π (2,) > 0
have sum 1.  One gradient is ∂H/∂(w, b) = h (x, 1), h = dH/dy; its moments are integrated on pieces that shrink towards
the kinks of h.  Equilibria are found without training, which would take 1/(γλ) = 4e5 steps for squared loss.  Data and
compositions: kukleva2024, eqs. (5.1), (5.2), (8.2), (8.3); moments and equilibria are ours.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import ndtr

from lib.common import checks
from lib.criticality import _neuron
from lib.foundations.langevin import LangevinSystem

LIVE = 0.01  # least probability of a gradient, in each class, at an equilibrium: a dead neuron rests anywhere
FAR = 1e3  # times the natural scales of w and b: a search beyond has run away to where every gradient is small
REST = 1e-10  # largest mean gradient at rest, and largest Newton step, relative to the parameters


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean gradient, expected Hessian and covariance of one gradient by (w, b)."""

    gradient: np.ndarray  # (2,)
    hessian: np.ndarray  # (2, 2)
    covariance: np.ndarray  # (2, 2)


def moments(composition, weight, bias, *, means=(0.0, 1.0), deviation=0.25, priors=(0.5, 0.5)):
    """Mean gradient g = E[h (x,1)], expected Hessian A = ∂g/∂(w,b) and covariance C of one gradient, at any parameters.

    A has a term  J p(x_κ)/|w| (x_κ,1)(x_κ,1)ᵀ  at each kink where h jumps by J.  `composition`: no pole inside the
    data; `weight`, `bias`: w, b, so that wx + b varies; `means`, `deviation`, `priors`: μ, σ, π.  Returns Moments.

    >>> from lib.criticality import compositions
    >>> found = moments(compositions.named("sigmoid + cross-entropy"), 16.0, -8.0)
    >>> bool(np.allclose(found.gradient, 0, atol=1e-12)), bool(np.allclose(found.hessian, found.covariance))
    (True, True)
    """
    data = _neuron.checked_data(composition, means, deviation, priors)
    _neuron.refuse_poles(composition)
    weight, bias = checks.number("weight", weight), checks.number("bias", bias)
    return Moments(*_neuron.moments_of(data[0], weight, bias, *data[1:]))


def live_probability(composition, weight, bias, *, means=(0.0, 1.0), deviation=0.25):
    """Probability, in each class, that an input moves the parameters:  P(h(wx + b) ≠ 0), one minus the dead atom.

    `composition`: of the loss; `weight`, `bias` (...): w, b; `means`, `deviation`: μ, σ.  Returns (2, ...), by class.

    >>> from lib.criticality import compositions
    >>> live_probability(compositions.named("ReLU + squared"), 1.0, 0.0).round(3).tolist()
    [0.5, 1.0]
    """
    composition, means, deviation, _ = _neuron.checked_data(composition, means, deviation, (0.5, 0.5))
    weight, bias = checks.array("weight", weight), checks.array("bias", bias)  # (...), (...)
    weight, bias = checks.broadcast(weight=weight, bias=bias)  # (...), (...)
    return _neuron.live_both(composition, weight, bias, means, deviation)


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Parameters at rest, the probability that the class is named right there, and the moments of the gradient."""

    weight: float
    bias: float
    accuracy: float
    moments: Moments


def log_odds(*, means=(0.0, 1.0), deviation=0.25, priors=(0.5, 0.5)):
    """Weight and bias of the log-odds of the classes, the equilibrium of a sigmoid with cross-entropy or squared loss.

    w = (μ_1 - μ_0)/σ²,  b = ln(π_1/π_0) - (μ_1² - μ_0²)/(2σ²),  of `means`, `deviation`, `priors` μ, σ, π.  Returns w,
    b.

    >>> log_odds()
    (16.0, -8.0)
    """
    means, deviation, priors = _neuron.checked_classes(means, deviation, priors)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = (means[1] - means[0]) / deviation / deviation
        bias = np.log(priors[1] / priors[0]) - weight * means.mean()
    if not (np.isfinite(weight) and np.isfinite(bias)):
        checks.fail("deviation", "be large enough for finite log-odds", deviation)
    return float(weight), float(bias)


def clip_weight(epsilon, *, deviation=0.25):
    """Weight w* of the equilibrium of clip + cross-entropy, the gradient cut at ε from 0 and 1; bias b* = (1 - w*)/2.

    For means 0, 1 and equal priors, the root of  E[(1/(2y) - 1); ε < y < 1-ε] = 0,  y ~ N((1+w)/2, w²σ²);  w* falls
    like a logarithm as ε → 0.  `epsilon`: ε in [1e-12, 0.49]; `deviation`: σ in [1e-3, 100].  Returns w*.

    >>> [round(clip_weight(epsilon), 2) for epsilon in (1e-1, 1e-2, 1e-3, 1e-4)]
    [3.34, 2.6, 2.25, 2.06]
    """
    epsilon = checks.number("epsilon", epsilon, at_least=1e-12, at_most=0.49)
    deviation = checks.number("deviation", deviation, at_least=1e-3, at_most=100)
    centres, nearest = _neuron.singular([epsilon, 1 - epsilon])

    def pull(weight):
        middle, spread = (1 + weight) / 2, weight * deviation
        steps = middle + spread * np.arange(-50, 51) / 2  # (101,)
        edges = _neuron.ladder(centres, nearest, epsilon, 1 - epsilon)  # (m,)
        y, share = _neuron.nodes(np.unique([*edges, *np.clip(steps, epsilon, 1 - epsilon)]))  # (n,), (n,)
        exponent = -(((y - middle) / spread) ** 2) / 2  # (n,)
        share = share * np.exp(exponent - exponent.max())  # (n,), scaled: only the sign and the root are asked for
        return float(share @ (0.5 / y - 1)) / float(share.sum())

    high = 1.0
    while pull(high) < 0:
        high *= 2
    return float(brentq(pull, high / 2 if high > 1 else min(0.5, 0.1 / deviation**2), high, xtol=1e-16, rtol=1e-14))


def _threshold(composition):
    """The y at which two equally likely classes pull no way."""

    def pull(y):
        return composition.slope(y, 0) + composition.slope(y, 1)

    beside = [kink + shift for t in (0, 1) for kink in composition.kinks(t) for shift in (-1e-9, 1e-9)]
    y = np.union1d(np.linspace(-0.995, 1.995, 300), beside)  # (n,), without 0 and 1 themselves
    y = y[pull(y) != 0]  # (m,)
    rising = np.flatnonzero((pull(y[:-1]) < 0) & (pull(y[1:]) > 0))  # (crossings,)
    if len(rising) != 1:
        checks.fail("composition", "pull class 0 down and class 1 up, with one threshold between", composition)
    return brentq(pull, y[rising[0]], y[rising[0] + 1], xtol=1e-14)


def accuracy(composition, weight, bias, *, means=(0.0, 1.0), deviation=0.25, priors=(0.5, 0.5)):
    """Probability that the neuron names the right class: class 1 above the threshold  h(y, 0) + h(y, 1) = 0.

    `composition`: with one threshold, 0 for sigmoids, 1/2 for ReLU and clip; `weight`, `bias`: w ≠ 0, b; `means`,
    `deviation`, `priors`: μ, σ, π.  Returns the probability.

    >>> from lib.criticality import compositions
    >>> round(accuracy(compositions.named("sigmoid + squared"), 16.0, -8.0), 4)
    0.9772
    """
    composition, means, deviation, priors = _neuron.checked_data(composition, means, deviation, priors)
    weight, bias = checks.number("weight", weight), checks.number("bias", bias)
    checks.fail_if(weight == 0, "weight", "not be 0", weight)
    threshold = _threshold(composition)
    with np.errstate(over="ignore"):  # a tiny weight puts the threshold beyond all inputs
        distance = np.sign(weight) * (means - (threshold - bias) / np.float64(weight)) / deviation  # (2,)
    return float(priors @ ndtr([-1, 1] * distance))


def _settled(composition, start, means, deviation, priors):
    """The equilibrium that a search from `start` ends at; RuntimeError with the reason if there is none."""
    odds = np.abs(log_odds(means=means, deviation=deviation, priors=priors)).max()
    farthest = FAR * (np.abs(start).max() + 1 / deviation + odds)

    def gradient(parameters):
        if not np.abs(parameters).max() < farthest:
            raise RuntimeError("the parameters grow without bound")
        try:
            return _neuron.moments_of(composition, *parameters, means, deviation, priors)[:2]
        except ValueError as reason:
            raise RuntimeError(str(reason)) from reason

    found = root(gradient, start, jac=True, tol=1e-14).x  # (2,)
    live = _neuron.live_both(composition, *found, means, deviation)  # (2,)
    if live.min() < LIVE:
        raise RuntimeError(f"a share of only {live.min():.1e} of one class still moves the parameters")
    rest, hessian = gradient(found)
    softest, stiffest = np.linalg.eigvalsh(hessian)
    if not 0 < 1e-12 * stiffest < softest:
        raise RuntimeError("the mean loss has no minimum where the search ended")
    found = found - np.linalg.solve(hessian, rest)  # (2,), the last digits
    rest, hessian = gradient(found)
    left = np.abs(np.linalg.solve(hessian, rest)).max()
    if not (np.abs(rest).max() <= REST and left <= REST * (1 + np.abs(found).max())):
        raise RuntimeError(f"a mean gradient of {np.abs(rest).max():.1e} is left")
    weight, bias = (float(value) for value in found)
    right = accuracy(composition, weight, bias, means=means, deviation=deviation, priors=priors)
    moments = Moments(*_neuron.moments_of(composition, weight, bias, means, deviation, priors))
    return Equilibrium(weight, bias, right, moments)


def equilibrium(composition, *, start=None, means=(0.0, 1.0), deviation=0.25, priors=(0.5, 0.5)):
    """Parameters where the mean gradient E[h (x,1)] vanishes, the mean loss has a minimum, and both classes are alive.

    The search begins at `start` (2,), w ≠ 0 and b, else in turn at the least-squares line through the labels, steeper
    ones, and the log-odds.  `composition`: without a pole inside the data; `means`, `deviation`, `priors`: μ, σ, π.
    Returns an Equilibrium; a RuntimeError with the reason if no search ends at one.

    >>> from lib.criticality import compositions
    >>> found = equilibrium(compositions.named("ReLU + squared"))
    >>> round(found.weight, 3), round(found.bias, 4), round(found.accuracy, 4)
    (0.929, -0.0144, 0.9747)
    """
    composition, means, deviation, priors = _neuron.checked_data(composition, means, deviation, priors)
    _neuron.refuse_poles(composition)
    _threshold(composition)  # refuses what cannot tell the classes apart
    if start is None:
        gap, share = means[1] - means[0], priors.prod()
        slope = gap * share / (deviation**2 + gap**2 * share)
        starts = [np.array([slope * many, priors[1] - slope * many * (means @ priors)]) for many in (1, 2, 4)]
        starts.append(np.array(log_odds(means=means, deviation=deviation, priors=priors)))
    else:
        starts = [checks.array("start", start, shape=(2,))]
        checks.fail_if(starts[0][0] == 0, "start", "have a weight other than 0", start)
    reasons = []
    for begin in starts:
        try:
            return _settled(composition, begin, means, deviation, priors)
        except RuntimeError as reason:
            reasons.append(f"from ({begin[0]:g}, {begin[1]:g}): {reason}")
    raise RuntimeError(f"no equilibrium of {composition.name} found; {'; '.join(reasons)}")


def stationary_covariance(hessian, covariance, learning_rate, *, batch=1):
    """Covariance S of the parameters around an equilibrium, to linear order:  S = (1 - γA) S (1 - γA) + (γ²/M) C.

    If A = C, S = (γ/2M) 1 + O(γ²).  `hessian` (d, d): A, positive definite; `covariance` (d, d): C of one gradient;
    `learning_rate`: 0 < γ < 2/λ_max; `batch`: M >= 1.  Returns S (d, d).

    >>> stationary_covariance([[1.0]], [[1.0]], 0.5).round(6).tolist()
    [[0.333333]]
    """
    hessian = checks.symmetric("hessian", hessian, definite="strict")  # (d, d)
    covariance = checks.symmetric("covariance", covariance, size=len(hessian), definite="semi")  # (d, d)
    stiffest = np.linalg.eigvalsh(hessian)[-1]
    learning_rate = checks.number("learning_rate", learning_rate, above=0, below=2 / stiffest)
    diffusion = learning_rate * covariance / (2 * checks.integer("batch", batch))  # (d, d)
    return LangevinSystem(hessian, diffusion).euler_covariance(learning_rate)

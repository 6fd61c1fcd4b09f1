"""The law of the steps of one neuron for inputs of one class: the data density pushed along every branch of x → s.

p_s(s) = Σ_i p_x(x_i)/|s'(x_i)|  over all inputs with s(x_i) = s, and an atom at s = 0 where the activation is dead.
Source: kukleva2024, eqs. (3.8), (3.16), (5.4), (8.1) to (8.3), (8.38) to (8.40), with |s|, without branches, atom.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, logsumexp, ndtr, ndtri

from lib.common import checks
from lib.criticality import _steps, amplitude, branches

_CLUSTER = np.log(1e6)  # how close to the ends of a branch the points of a curve come


@dataclass(frozen=True, eq=False)
class Curve:
    """Branches as curves with P points each; every array has the shape (B, P), s is monotone along a row."""

    x: np.ndarray
    amplitude: np.ndarray  # s
    log_density: np.ndarray  # ln p_x - ln|s'|, of this branch alone
    log_jacobian: np.ndarray  # -ln|s'|
    jacobian_exponent: np.ndarray  # k_J
    data_exponent: np.ndarray  # k_D


def _nonzero(name, value):
    values = checks.array(name, value)  # (...)
    checks.fail_if(np.any(values == 0), name, "differ from zero, where dead inputs have an atom", value)
    return values


def _terms(s, m):
    """ln of each branch's part of p_s, (B, S), and the preimages (B, S), for s (S,)."""
    x = _steps.preimages(s, m, branches.find(m))  # (B, S)
    parts = np.full(x.shape, -np.inf)  # (B, S)
    reached = ~np.isnan(x)
    with np.errstate(divide="ignore"):  # infinite exactly on a fold
        stretch = np.log(np.abs(_steps.derivatives(x[reached], m)[1]))  # (n,)
    parts[reached] = _steps.log_normal(x[reached], m.mean, m.deviation) - stretch
    return parts, x


def log_density(s, step_map):
    """ln p_s of the signed amplitude, all branches added;  -∞ where no input within 14 deviations reaches.

    `s` (...): amplitudes, ≠ 0; `step_map`: a StepMap.  Returns ln p_s (...), without the atom at zero.

    >>> log_density([-2.0, 2.0], amplitude.step_map(amplitude.compositions.named("ReLU + squared"), 1, 0, 0)).round(2)
    array([-5.73,  -inf])
    """
    checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    s = _nonzero("s", s)  # (...)
    parts, _ = _terms(s.ravel(), step_map)  # (B, S)
    if not len(parts):
        return np.full(s.shape, -np.inf)[()]  # (...)
    with np.errstate(divide="ignore"):
        return logsumexp(parts, axis=0).reshape(s.shape)[()]  # (...)


def density(s, step_map):
    """p_s at amplitudes `s` ≠ 0 (...) of a `step_map`, of integral 1 less the atom:  Σ p_x(x_i)/|s'(x_i)|.  Returns it.

    >>> float(density(-1e-9, amplitude.step_map(amplitude.compositions.named("ReLU + squared"), 1, 0, 0)).round(6))
    0.797885
    """
    return np.exp(log_density(s, step_map))


def magnitude_density(r, step_map):
    """Density of the length `r` > 0 (...) of a step in a `step_map`, eq. (5.4):  p_s(r) + p_s(-r).  Returns (...).

    >>> r, both = 0.1, amplitude.step_map(amplitude.compositions.named("ReLU + squared"), 1.0, 0.0, 1)
    >>> bool(magnitude_density(r, both) == density(r, both) + density(-r, both))
    True
    """
    r = checks.entries("r", r, above=0)  # (...)
    return density(r, step_map) + density(-r, step_map)


def exponent(s, step_map):
    """The local exponent  k = -d ln p_s/d ln|s|  of the whole density:  Σ p_i k_i/Σ p_i,  k_i = k_J + k_D of a branch.

    `s` (S,): reached by an input within 14 deviations; `step_map`: a StepMap.  Returns k (S,) and p_i/Σp_i (B, S).

    >>> exponent([-1.0], amplitude.step_map(amplitude.compositions.named("exponential"), 2, 0, 0, observable="bias"))[0]
    array([1.])
    """
    checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    m, s = step_map, _nonzero("s", checks.array("s", s, ndim=1))  # (S,)
    parts, x = _terms(s, m)  # (B, S), (B, S)
    checks.fail_if(not np.isfinite(parts).any(axis=0).all(), "s", "be amplitudes that some input reaches", s)
    share = np.exp(parts - logsumexp(parts, axis=0))  # (B, S)
    local, reached = np.zeros(x.shape), ~np.isnan(x)  # (B, S), (B, S)
    local[reached] = sum(_steps.exponents(x[reached], m, _steps.derivatives(x[reached], m)))
    return (share * local).sum(axis=0), share


def curve(step_map, *, points=4000, reach=14.0):
    """Density, Jacobian and local exponents of every branch along x: no inversion, no histogram, exact far out.

    Half of the points lie evenly, half geometrically towards the ends.  `step_map`: a StepMap; `points`: P >= 3, of
    each branch; `reach`: > 0, deviations around the mean, so that s, s' do not underflow.  Returns a Curve (B, P).

    >>> cubic = amplitude.step_map(amplitude.compositions.named("ReLU + quartic"), 1.0, 0.0, 0, observable="bias")
    >>> curve(cubic, points=3).jacobian_exponent.round(6).tolist()
    [[0.666667, 0.666667, 0.666667]]
    """
    m, found = step_map, branches.find(step_map, reach=reach)
    points = checks.integer("points", points, at_least=3)
    geometric = 2 * ((points + 2) // 4)
    even = (np.arange(points - geometric) + 0.5) / (points - geometric)  # (P - geometric,)
    z = np.sort(np.concatenate([np.linspace(-_CLUSTER, _CLUSTER, geometric), logit(even)]))  # (P,)
    left, right = found.left[:, None], found.right[:, None]  # (B, 1), (B, 1)
    x = np.where(z < 0, left + (right - left) * expit(z), right - (right - left) * expit(-z))  # (B, P)
    parts = _steps.derivatives(x, m)  # (B, P) each
    if np.any(parts[0] == 0) or np.any(parts[1] == 0):
        checks.fail("reach", "be so small that s and s' do not underflow", reach)
    jacobian = -np.log(np.abs(parts[1]))  # (B, P)
    density = _steps.log_normal(x, m.mean, m.deviation) + jacobian  # (B, P), of the logarithm
    return Curve(x, parts[0], density, jacobian, *_steps.exponents(x, m, parts))


class FoldEdges(NamedTuple):
    """The C folds of a step map, in the order of :func:`lib.criticality.branches.find`."""

    x: np.ndarray  # (C,)  x_c
    s: np.ndarray  # (C,)  s_c
    constant: np.ndarray  # (C,)  of the density beside it
    side: np.ndarray  # (C,)  -1 where the two inputs have s < s_c, 1 where s > s_c


def fold_edges(step_map):
    """The folds of a `step_map`,  p_s ≈ C |s - s_c|^{-1/2}  beside them, C = p_x(x_c) √(2/|s''|).  Returns FoldEdges.

    >>> fold_edges(amplitude.step_map(amplitude.compositions.named("sigmoid + squared"), 16.0, -8.0, 0)).x.round(3)
    array([0.546])
    """
    x = branches.find(step_map).folds  # (C,)
    s, _, s2 = _steps.derivatives(x, step_map)  # (C,), (C,)
    density = np.exp(_steps.log_normal(x, step_map.mean, step_map.deviation))  # (C,)
    return FoldEdges(x, s, density * np.sqrt(2 / np.abs(s2)), np.sign(s2))


def pole_constant(step_map):
    """The constant of the tail  p_s → K/s²,  P(|S| > s) → K/s  of a pole:  K = γ p_x(x*) √(1 + x*²)/|w|.

    A cut ε ends the tail near s = γ√(1 + x*²)/ε.  `step_map`: of "clip + cross-entropy".  Returns K, in the unit of s.

    >>> line = amplitude.compositions.named("clip + cross-entropy")
    >>> round(pole_constant(amplitude.step_map(line, 2.0, -0.5, 1, mean=0.25, observable="bias")), 6)  # φ(0)/0.25/2
    0.797885
    """
    m = checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    if m.composition.name != "clip + cross-entropy":
        checks.fail("step_map", "have the composition clip + cross-entropy", m.composition.name)
    pole = ((1 - m.bias) if m.label == 0 else -m.bias) / m.weight
    density = np.exp(_steps.log_normal(pole, m.mean, m.deviation))
    return float(m.learning_rate * density * abs(_steps.lever(pole, m)[0] / m.weight))


def _between(low, high, mean, deviation):
    """Probability of an interval, without 1 - 1 in the upper tail."""
    a, b = (low - mean) / deviation, (high - mean) / deviation  # (...), (...)
    return np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))


def atom(step_map):
    """The probability of a step of length zero, of an input that leaves the `step_map` dead.  Returns a float.

    >>> atom(amplitude.step_map(amplitude.compositions.named("ReLU + squared"), 1.0, 0.0, 0))
    0.5
    """
    m = checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    y, spread = m.weight * m.mean + m.bias, abs(m.weight) * m.deviation
    return float(sum(_between(low, high, y, spread) for low, high in m.composition.dead(m.label)))


def branch_probabilities(step_map):
    """The probability of each monotone branch of a `step_map`; with the :func:`atom` they sum to one.  Returns (B,).

    >>> branch_probabilities(amplitude.step_map(amplitude.compositions.named("softplus + squared"), 1.0, 0.0, 0))
    array([1.])
    """
    found = branches.find(step_map)
    return _between(found.left, found.right, step_map.mean, step_map.deviation)  # (B,)


def cumulative(s, step_map):
    """The probability of an amplitude of at most `s` (...) in a `step_map`, the atom from s = 0 on.  Returns (...).

    >>> cumulative([-1e-12, 0.0], amplitude.step_map(amplitude.compositions.named("ReLU + squared"), 1, 0, 0)).round(6)
    array([0.5, 1. ])
    """
    m, found, s = step_map, branches.find(step_map), checks.array("s", s)  # (...)
    values = s.ravel()  # (S,)
    x = _steps.preimages(values, m, found)  # (B, S)
    left, right = found.left[:, None], found.right[:, None]  # (B, 1), (B, 1)
    rises = (found.at_right > found.at_left)[:, None]  # (B, 1)
    top = np.maximum(found.at_left, found.at_right)[:, None]  # (B, 1)
    below = np.where(np.isnan(x), np.where(values >= top, right - left, 0), 0)  # (B, S)
    x = np.where(np.isnan(x), np.where((below > 0) == rises, right, left), x)  # (B, S)
    below_or_above = _between(left, x, m.mean, m.deviation), _between(x, right, m.mean, m.deviation)  # (B, S) each
    total = np.where(rises, *below_or_above).sum(axis=0)  # (S,)
    return (total + np.where(values >= 0, atom(m), 0)).reshape(s.shape)[()]  # (...)


def stratified_inputs(count, step_map):
    """Inputs of a `step_map` in the middle of `count` equally likely intervals:  n of them, rising.  Returns x (n,).

    >>> stratified_inputs(3, amplitude.step_map(amplitude.compositions.named("erf + squared"), 1.0, 0.0, 1)).round(4)
    array([0.7581, 1.    , 1.2419])
    """
    count = checks.integer("count", count)
    m = checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    return m.mean + m.deviation * ndtri((np.arange(count) + 0.5) / count)  # (n,)

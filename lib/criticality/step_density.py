"""The law of the steps of one neuron for inputs of one class: the data density pushed along every branch of x → s.

p_s(s) = Σ_i p_x(x_i)/|s'(x_i)|  over all inputs with s(x_i) = s, and an atom at s = 0 where the activation is dead.
Densities are per unit of s and worked with as logarithms.  `step_map` is a StepMap of `lib.criticality.amplitude`; `s`
are amplitudes, not zero.  Source: kukleva2024, eqs. (3.8), (3.16), (5.4), (8.1) to (8.3).  It asks for a sum where the
map is not one-to-one, and takes |s|; branches, atom and sign are ours.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, logsumexp

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
    if np.any(values == 0):
        checks.fail(name, "differ from zero, where dead inputs have an atom", value)
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

    `s` (...): amplitudes; `step_map`: a StepMap.  Returns ln p_s (...) per unit of s; the atom at zero is not in it.

    >>> from lib.criticality.compositions import named
    >>> linear = amplitude.step_map(named("ReLU + squared"), 1.0, 0.0, 0, deviation=1.0, observable="bias")
    >>> log_density([-2.0, 2.0], linear).round(6).tolist()  # x = 1; ln φ(1) - ln 2
    [-2.112086, -inf]
    """
    checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    s = _nonzero("s", s)  # (...)
    parts, _ = _terms(s.ravel(), step_map)  # (B, S)
    if not len(parts):
        return np.full(s.shape, -np.inf)[()]  # (...)
    with np.errstate(divide="ignore"):
        return logsumexp(parts, axis=0).reshape(s.shape)[()]  # (...)


def density(s, step_map):
    """p_s(s) = Σ_i p_x(x_i)/|s'(x_i)|  of the signed amplitude.

    `s` (...): amplitudes; `step_map`: a StepMap.  Returns (...), per unit of s; its integral is 1 less the atom.

    >>> from lib.criticality.compositions import named
    >>> linear = amplitude.step_map(named("ReLU + squared"), 1.0, 0.0, 0, deviation=1.0, observable="bias")
    >>> float(density(-1e-9, linear).round(6))  # φ(0)/2
    0.199471
    """
    return np.exp(log_density(s, step_map))


def magnitude_density(r, step_map):
    """Density of the length |s| of a step:  p_s(r) + p_s(-r), eq. (5.4).

    `r` (...): lengths, > 0; `step_map`: a StepMap.  Returns (...), per unit of r.

    >>> from lib.criticality.compositions import named
    >>> both = amplitude.step_map(named("ReLU + squared"), 1.0, 0.0, 1, observable="bias")
    >>> bool(magnitude_density(0.1, both) == density(0.1, both) + density(-0.1, both))
    True
    """
    r = checks.entries("r", r, above=0)  # (...)
    return density(r, step_map) + density(-r, step_map)


def exponent(s, step_map):
    """The local exponent  k = -d ln p_s/d ln|s|  of the whole density:  Σ p_i k_i/Σ p_i,  k_i = k_J + k_D of a branch.

    `s` (S,): reached by an input within 14 deviations; `step_map`: a StepMap.  Returns k (S,) and p_i/Σp_i (B, S).

    >>> from lib.criticality.compositions import named
    >>> pure = amplitude.step_map(named("exponential"), 2.0, 0.0, 0, observable="bias")
    >>> exponent([-1.0, -2.718281828], pure)[0].round(6).tolist()  # 1 + ln|s|/(0.25 · 2)²
    [1.0, 5.0]
    """
    checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    m, s = step_map, _nonzero("s", checks.array("s", s, ndim=1))  # (S,)
    parts, x = _terms(s, m)  # (B, S), (B, S)
    if not np.isfinite(parts).any(axis=0).all():
        checks.fail("s", "be amplitudes that some input reaches", s)
    share = np.exp(parts - logsumexp(parts, axis=0))  # (B, S)
    local, reached = np.zeros(x.shape), ~np.isnan(x)  # (B, S), (B, S)
    local[reached] = sum(_steps.exponents(x[reached], m, _steps.derivatives(x[reached], m)))
    return (share * local).sum(axis=0), share


def curve(step_map, *, points=4000, reach=14.0):
    """Density, Jacobian and local exponents of every branch along x: no inversion, no histogram, exact far out.

    Half of the points are spaced evenly, half geometrically toward the ends, down to a millionth of the length: zeros,
    poles, folds.  The source's figures have log_density in blue and log_jacobian in red, with their sum over x.
    `step_map`: a StepMap; `points`: P >= 3, of each branch; `reach`: > 0, standard deviations around the mean, smaller
    where s or s' over- or underflows.  Returns a Curve of arrays (B, P).

    >>> from lib.criticality.compositions import named
    >>> cubic = amplitude.step_map(named("ReLU + quartic"), 1.0, 0.0, 0, observable="bias")
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

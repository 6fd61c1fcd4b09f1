"""The first-order transition of the staircase target as d → ∞ at fixed  g_K = s_a² P_e/d  and  ν = P_e/N.

A unit then sits at the bottom of its action S, which is of order d: at m = 0, with a Gaussian spread of order 1/√d, or
at ±m_0 of order one.  What is left of the target must keep S from falling below zero anywhere; where S(m_0) = 0 < S
elsewhere, a fraction of order 1/d of the units sits at ±m_0, as a vapor coexists with its liquid at a pressure that
both share.  As Φ of :mod:`staircase` is convex, there is one state for each (g_K, ν).  With k² = 1/(g_0 ν), g_0 = 4g_K
σ_w²/(π(1 + 2σ_w²))  and  w = (1 + 2|w_⊥|²)/(1 + 2|w_⊥|² + 2m_0²)  the conditions S(m_0) = S'(m_0) = 0 are solved, if
|w_⊥|² = σ_w² is "fixed", by  c = ± ½ k w^{-3/2},  b = (1 - 3w)c, ¼ < w < 1,  so that one scalar root in w is left.
Where |w_⊥|² is "free", as in networks (see :mod:`staircase`), the outliers have |w_⊥|² = σ_w² w, the rest keeps σ_w²,
and the closed form is that of :mod:`lib.fields.overlaps._coexistence`.  `strength`: g_K > 0 and `load`: ν >= 0, floats
or arrays that broadcast; `epsilon`: ε; `weight_variance`: σ_w² > 0; `perpendicular`: |w_⊥|², "free" or "fixed", the
source's.  Source: ringel2025talk (the deck), slides on the first-order transition, with |w_⊥|² fixed; free lengths and
the closed forms are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.fields.overlaps import _coexistence, _projections, staircase


@dataclass(frozen=True, eq=False)
class State:
    """A network as d → ∞ for settings of shape (...); what :func:`gaussian` and :func:`coexistence` return."""

    residuals: np.ndarray  # (..., 2) b and c, of He_1 and He_3
    learnabilities: np.ndarray  # (..., 2) R_1 = 1 - b and R_3 = 1 - c/ε; R_3 is nan for ε = 0
    variance: np.ndarray  # (...) d⟨m²⟩ of the units around m = 0; σ_w² in the prior
    minimum: np.ndarray  # (...) m_0 of the other units, 0 where there are none
    outliers: np.ndarray  # (...) their fraction times d
    perpendicular: np.ndarray  # (...) |w_⊥|² of the other units; σ_w² where there are none


@dataclass(frozen=True, eq=False)
class Line:
    """A phase line ν(g_K); what :func:`maxwell` and :func:`spinodal` return."""

    load: np.ndarray  # (...) ν
    residual: np.ndarray  # (...) b there; c is ε
    minimum: np.ndarray  # (...) m_0, the overlap of the new minimum
    perpendicular: np.ndarray  # (...) |w_⊥|² there


def _settings(strength, load, weight_variance):
    """Checked g_K, ν and σ_w², the first two broadcast together, and g_0."""
    g = checks.entries("strength", strength, above=0, at_most=1e50)  # (...)
    nu = checks.entries("load", load, at_least=0, at_most=1e50)  # (...)
    s = checks.number("weight_variance", weight_variance, above=0, at_most=1e50)
    g, nu = checks.broadcast(strength=g, load=nu)  # (...), (...)
    return g, nu, s, 4 * g * s / (np.pi * (1 + 2 * s))


def _epsilon(value, *, cubic=False):
    """Checked ε: of a size whose square is still a number, and not zero where a transition is asked for."""
    epsilon = checks.number("epsilon", value, at_least=-1e50, at_most=1e50)
    if cubic and abs(epsilon) < 1e-50:
        checks.fail("epsilon", "not be zero: without a cubic part the target has no transition", value)
    return epsilon


def gaussian(strength, load, epsilon, *, weight_variance=1.0):
    """The phase of Gaussian overlaps: the cubic part is not learned, and the linear one makes them broader.

    c = ε,  b = [1 + (4g_K/π) v/(1 + 2σ_w²)]^{-1},  v = d⟨m²⟩ = σ_w²/(1 - g_0 ν b²).  Beyond the Maxwell line it is no
    longer the stable phase.  `strength`, `load`, `epsilon`, `weight_variance`: see the module.  Returns State.

    >>> gaussian(30.0, [0.0, 3.361], -0.3).variance.round(4).tolist()
    [1.0, 1.1946]
    """
    _, nu, s, lazy = _settings(strength, load, weight_variance)
    epsilon = _epsilon(epsilon)
    b, _, left = _coexistence.gaussian(lazy, lazy * nu)  # (...), (...)
    variance, third, across = s / left, np.full(b.shape, epsilon), np.full(b.shape, s)  # (...) each
    return _state(epsilon, b, third, variance, np.zeros(b.shape), np.zeros(b.shape), across)


def _state(epsilon, b, c, *rest):
    """The state of residuals b and c (...)."""
    third = 1 - c / epsilon if epsilon != 0 else np.full(b.shape, np.nan)  # (...)
    return State(np.stack([b, c], axis=-1), np.stack([1 - b, third], axis=-1), *rest)


def coexistence(strength, load, epsilon, *, weight_variance=1.0, perpendicular="free"):
    """The stable state: Gaussian up to the Maxwell line, and beyond it a few units at ±m_0 that learn the cubic part.

    m_0 jumps there, while R_3 and the fraction of outliers grow from zero with a kink: the residual is pinned by
    S(m_0) = 0.  `strength`, `load`, `epsilon`, `weight_variance`, `perpendicular`: see the module.  Returns State.

    >>> coexistence(30.0, [2.0, 3.7, 5.4], -0.3).learnabilities[:, 1].round(3).tolist()
    [0.0, 0.153, 0.256]
    """
    free = _projections.choice(perpendicular) == "free"
    g, nu, s, lazy = _settings(strength, load, weight_variance)
    shape, g, nu, lazy = g.shape, g.ravel(), nu.ravel(), lazy.ravel()  # (S,), (S,), (S,)
    state, epsilon = gaussian(g, nu, epsilon, weight_variance=s), _epsilon(epsilon)
    p = 1 / (1 + 2 * s) if free else 1.0
    with np.errstate(divide="ignore"):
        sign, k = np.sign(epsilon), 1 / np.sqrt(lazy * nu)  # (), (S,)
    start = np.full(k.shape, _coexistence.lowest(p))  # (S,)

    # c lies between 0 and ε, which bounds w from below.
    def beyond(w, k):
        return k * _coexistence.bottom(w, p)[0] - abs(epsilon)

    mixed = beyond(1.0, k) < 0  # (S,)
    bound = mixed & (beyond(start, k) > 0)  # (S,)
    start[bound] = _coexistence.root(beyond, start[bound], np.ones(np.count_nonzero(bound)), k[bound])

    def balance(w, k, lazy):
        share, _, beta, slack = _coexistence.bottom(w, p)  # (M,) each
        # The linear equation times 1 - b²/k² and ±1, with the outliers taken from the cubic one.
        return -k * beta * lazy - (sign + k * beta) * (1 - w) * slack - 6 * (abs(epsilon) - k * share) * slack

    mixed[mixed] = balance(start[mixed], k[mixed], lazy[mixed]) > 0
    k, g = k[mixed], g[mixed]  # (M,), (M,)
    w = _coexistence.root(balance, start[mixed], np.ones(k.shape), k, lazy[mixed])  # (M,)
    share, e, beta, slack = _coexistence.bottom(w, p)  # (M,) each
    state.residuals[mixed] = np.stack([-sign * k * beta, sign * k * share], axis=-1)  # (M, 2)
    state.variance[mixed] = s / ((1 - w) * slack)
    state.minimum[mixed], state.perpendicular[mixed] = _coexistence.overlap(w, s, free)
    state.outliers[mixed] = 3 * np.pi * (abs(epsilon) - k * share) / (g * (1 - w) ** 2 * k * e)
    rest = state.variance, state.minimum, state.outliers, state.perpendicular  # (S,) each
    return _state(epsilon, *(field.reshape(shape) for field in (*state.residuals.T, *rest)))


def _line(strength, epsilon, weight_variance, perpendicular, shape, steepest):
    """Line of the Gaussian phase on which  b = |ε|θ,  w and k²/ε² being functions of  b/c = ±θ."""
    epsilon, free = _epsilon(epsilon, cubic=True), _projections.choice(perpendicular) == "free"
    g, _, s, lazy = _settings(strength, 0.0, weight_variance)
    size, sign = abs(epsilon), np.sign(epsilon)
    p = 1 / (1 + 2 * s) if free else 1.0
    # At the largest θ the first minimum of S goes: for ε < 0 both minima merge there.
    high = np.full(g.shape, min(4 / (1 + p) if epsilon < 0 else steepest(p), 1 / size))  # (...)

    def excess(theta, lazy):
        return (1 - size * theta) * (1 - theta**2 / shape(sign * theta, p)[1]) - lazy * size * theta

    theta = _coexistence.root(excess, np.zeros(g.shape), high, lazy)  # (...)
    w, squared = shape(sign * theta, p)  # (...), (...)
    with np.errstate(over="ignore"):
        load = checks.finite("epsilon", 1 / (lazy * epsilon**2 * squared))  # (...)
    return Line(load, size * theta, *_coexistence.overlap(w, s, free))


def maxwell(strength, epsilon, *, weight_variance=1.0, perpendicular="free"):
    """Maxwell line ν_c(g_K): the action of the Gaussian phase has a second minimum as deep as the first, S(m_0) = 0.

    `strength`, `epsilon`, `weight_variance`, `perpendicular`: see the module; ε is not zero.  Returns Line.

    >>> [round(float(maxwell(30.0, -0.3, perpendicular=length).load), 4) for length in ("free", "fixed")]
    [2.3537, 3.3612]
    """
    given = strength, epsilon, weight_variance, perpendicular, _coexistence.deepest
    return _line(*given, lambda p: 1 / _coexistence.bottom(_coexistence.lowest(p), p)[0])


def spinodal(strength, epsilon, *, weight_variance=1.0, perpendicular="free"):
    """Spinodal of the learned phase: the action of the Gaussian phase gets a second minimum, S'(m_0) = S''(m_0) = 0.

    `strength`, `epsilon`, `weight_variance`, `perpendicular`: as in :func:`maxwell`.  Returns Line.

    >>> [round(float(spinodal(30.0, -0.3, perpendicular=length).load), 4) for length in ("free", "fixed")]
    [1.8805, 2.7946]
    """
    return _line(strength, epsilon, weight_variance, perpendicular, _coexistence.first, _coexistence.steepest)


def central_instability(dimension, strength, epsilon, *, weight_variance=1.0, perpendicular="free"):
    """Line r_2 = 0 at finite d: the smallest ν at which m = 0 is no minimum of the action, and all units take part.

    It recedes to infinity with d: in the limit r_2 > 0 always, since d⟨m²⟩ = 1/(2r_2) is finite.  `dimension`: d >= 1,
    and >= 2 for free lengths; `strength`, `epsilon`, `weight_variance`, `perpendicular`: see the module.  Returns ν, a
    float or an array; infinite where there is none up to 10⁴ d.

    >>> round(float(central_instability(50, 30.0, -0.3)), 1) > 10
    True
    """
    free = _projections.choice(perpendicular) == "free"
    d, epsilon = _projections.dimension(dimension, free), _epsilon(epsilon)
    g, _, s, lazy = _settings(strength, 0.0, weight_variance)
    ways = {"weight_variance": s, "perpendicular": perpendicular}

    def stiffness(log_load, g):
        # A state depends on g_K, ν and d alone: any width will do, such as d.
        samples = np.exp(log_load) * d
        return staircase.solve(d, d, samples, epsilon, readout_variance=g * d / samples, **ways).landau[0]

    found = []
    for one, weak in zip(g.ravel().tolist(), lazy.ravel().tolist()):
        # b <= 1 makes r_2 > 0 below ν = 1/g_0.
        steps = np.append(np.arange(-np.log(weak), np.log(1e4 * d), 0.5), np.log(1e4 * d))  # (T,)
        for low, high in zip(steps, steps[1:]):
            if stiffness(high, one) <= 0:
                found.append(np.exp(brentq(stiffness, low, high, args=(one,), xtol=1e-10)))
                break
        else:
            found.append(np.inf)
    return np.array(found).reshape(g.shape)[()]  # (...)

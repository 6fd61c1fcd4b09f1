r"""The first-order transition of the staircase target as d → ∞ at fixed  g_K = s_a² P_e/d  and  ν = P_e/N: phases, coexistence, phase lines.

A unit then sits at the bottom of its action S, which is of order d: at m = 0, with a Gaussian spread of order 1/√d, or at ±m_0 of order one.
What is left of the target must keep S from falling below zero anywhere; where S(m_0) = 0 < S elsewhere, a fraction of order 1/d of the units sits
at ±m_0, as a vapor coexists with its liquid at a pressure that both share.  With  k² = 1/(g_0 ν),  g_0 = 4g_K σ_w²/(π(1 + 2σ_w²))  and
w = (1 + 2σ_w²)/(1 + 2σ_w² + 2m_0²)  the conditions S(m_0) = S'(m_0) = 0 are solved by

    c = ± ½ k w^{-3/2},  b = (1 - 3w)c,    ¼ < w < 1,

so that one scalar root in w is left.  As Φ of :mod:`staircase` is convex, so is its limit: there is one state for each (g_K, ν), and no search.
Where |w_⊥|² is "free" (see :mod:`staircase`) the outliers have  |w_⊥|² = σ_w² w  with  w = (1 + 2|w_⊥|²)/(1 + 2|w_⊥|² + 2m_0²), the rest
keeps σ_w², and the closed form is another, of :mod:`lib.fields.overlaps._coexistence`.
Source: ringel2025talk (the deck), slides on the first-order transition, with |w_⊥|² fixed; the closed forms are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.fields.overlaps import _coexistence, _perpendicular, staircase


@dataclass(frozen=True, eq=False)
class State:
    """A network as d → ∞ for settings of shape (...); what :func:`gaussian` and :func:`coexistence` return."""

    residuals: np.ndarray  # (..., 2) b and c, of He_1 and He_3
    learnabilities: np.ndarray  # (..., 2) R_1 = 1 - b and R_3 = 1 - c/ε; R_3 is nan for ε = 0
    variance: np.ndarray  # (...) d⟨m²⟩ of the units around m = 0; σ_w² in the prior
    minimum: np.ndarray  # (...) m_0 of the other units, 0 where there are none
    outliers: np.ndarray  # (...) their fraction times d
    perpendicular: np.ndarray  # (...) |w_⊥|² of the other units, σ_w² where there are none and if it is fixed


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
    try:
        g, nu = np.broadcast_arrays(g, nu)  # (...), (...)
    except ValueError:
        checks.fail("load", "broadcast with strength", f"shapes {nu.shape} and {g.shape}")
    return g, nu, s, 4 * g * s / (np.pi * (1 + 2 * s))


def _epsilon(value, *, cubic=False):
    """Checked ε: of a size whose square is still a number, and not zero where a transition is asked for."""
    epsilon = checks.number("epsilon", value, at_least=-1e50, at_most=1e50)
    if cubic and abs(epsilon) < 1e-50:
        checks.fail("epsilon", "not be zero: without a cubic part the target has no transition", value)
    return epsilon


def gaussian(strength, load, epsilon, *, weight_variance=1.0):
    r"""The phase in which all overlaps are Gaussian: the cubic part is not learned, and the linear one makes them broader.

    c = ε,  b = [1 + (4g_K/π) v/(1 + 2σ_w²)]^{-1},  v = d⟨m²⟩ = σ_w²/(1 - g_0 ν b²).  Beyond the Maxwell line it is no longer the stable phase.
    Source: ringel2025talk (the deck), slides on the Gaussian phase.

    Parameters
    ----------
    strength : float or array    g_K = s_a² P_e/d; > 0
    load : float or array        ν = P_e/N; >= 0; broadcasts with `strength`
    epsilon : float              ε
    weight_variance : float      σ_w²; > 0

    Returns
    -------
    State                        with no outliers

    Examples
    --------
    >>> state = gaussian(30.0, [0.0, 3.361], -0.3)
    >>> state.residuals[:, 0].round(4).tolist(), state.variance.round(4).tolist()
    ([0.0728, 0.0617], [1.0, 1.1946])
    """
    _, nu, s, lazy = _settings(strength, load, weight_variance)
    epsilon = _epsilon(epsilon)
    pull = lazy * nu  # (...)  1/k²
    high = 1 / np.sqrt(np.maximum(pull, 1))  # (...)
    b = _coexistence.root(
        lambda b, lazy, pull: b * lazy - (1 - b) * (1 - pull * b * b), np.zeros(nu.shape), high, lazy, pull
    )  # (...)
    # Near its zero 1 - g_0 ν b² cancels, and the equation for b replaces it; far from it 1 - b may cancel.
    variance = np.where(pull * b * b > 0.5, s * (1 - b) / (b * lazy), s / np.maximum(1 - pull * b * b, 0.5))  # (...)
    return _state(
        epsilon, b, np.full(b.shape, epsilon), variance, np.zeros(b.shape), np.zeros(b.shape), np.full(b.shape, s)
    )


def _state(epsilon, b, c, variance, minimum, outliers, perpendicular):
    third = 1 - c / epsilon if epsilon != 0 else np.full(b.shape, np.nan)  # (...)
    return State(
        np.stack([b, c], axis=-1), np.stack([1 - b, third], axis=-1), variance, minimum, outliers, perpendicular
    )  # (..., 2), (..., 2)


def coexistence(strength, load, epsilon, *, weight_variance=1.0, perpendicular="fixed"):
    r"""The stable state: Gaussian up to the Maxwell line, and beyond it a few units at ±m_0 that learn the cubic part.

    m_0 jumps there, while R_3 and the fraction of outliers grow from zero with a kink: the residual is pinned by S(m_0) = 0.
    Source: ringel2025talk (the deck), slides on the first-order transition.

    Parameters
    ----------
    strength : float or array    g_K = s_a² P_e/d; > 0
    load : float or array        ν = P_e/N; >= 0; broadcasts with `strength`
    epsilon : float              ε
    weight_variance : float      σ_w²; > 0
    perpendicular : str          "fixed", |w_⊥|² = σ_w², the source's, or "free", as the prior and the pull of the target set it

    Returns
    -------
    State

    Examples
    --------
    >>> state = coexistence(30.0, [3.0, 3.7, 5.4], -0.3)
    >>> state.learnabilities[:, 1].round(3).tolist(), state.minimum.round(2).tolist()
    ([0.0, 0.033, 0.149], [0.0, 1.51, 1.56])
    """
    free = _perpendicular.is_free(perpendicular)
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
    fields = (
        state.residuals[:, 0],
        state.residuals[:, 1],
        state.variance,
        state.minimum,
        state.outliers,
        state.perpendicular,
    )
    return _state(epsilon, *(field.reshape(shape) for field in fields))


def _line(strength, epsilon, weight_variance, free, shape, steepest):
    """Line of the Gaussian phase on which  b = |ε|θ,  w and k²/ε² being functions of  b/c = ±θ."""
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


def maxwell(strength, epsilon, *, weight_variance=1.0, perpendicular="fixed"):
    r"""Maxwell line ν_c(g_K): the action of the Gaussian phase has a second minimum as deep as the first, S(m_0) = 0.

    Source: ringel2025talk (the deck), slides on the first-order transition; the parametric solution is not in the source.

    Parameters
    ----------
    strength : float or array    g_K = s_a² P_e/d; > 0
    epsilon : float              ε; not zero
    weight_variance : float      σ_w²; > 0
    perpendicular : str          "fixed", |w_⊥|² = σ_w², the source's, or "free", as the prior and the pull of the target set it

    Returns
    -------
    Line

    Examples
    --------
    >>> line = maxwell(30.0, -0.3)
    >>> round(float(line.load), 3), round(float(line.residual), 4), round(float(line.minimum), 3)
    (3.361, 0.0617, 1.494)
    >>> line = maxwell(30.0, -0.3, perpendicular="free")
    >>> round(float(line.load), 3), round(float(line.residual), 4), round(float(line.minimum), 3), round(float(line.perpendicular), 3)
    (2.354, 0.0644, 1.336, 0.313)
    """
    epsilon = _epsilon(epsilon, cubic=True)
    free = _perpendicular.is_free(perpendicular)
    return _line(
        strength,
        epsilon,
        weight_variance,
        free,
        _coexistence.deepest,
        lambda p: 1 / _coexistence.bottom(_coexistence.lowest(p), p)[0],
    )


def spinodal(strength, epsilon, *, weight_variance=1.0, perpendicular="fixed"):
    r"""Spinodal line of the learned phase: the action of the Gaussian phase gets a second minimum, S'(m_0) = S''(m_0) = 0.

    Source: ringel2025talk (the deck), slides on the first-order transition; the parametric solution is not in the source.

    Parameters
    ----------
    strength : float or array    g_K = s_a² P_e/d; > 0
    epsilon : float              ε; not zero
    weight_variance : float      σ_w²; > 0
    perpendicular : str          "fixed", |w_⊥|² = σ_w², the source's, or "free", as the prior and the pull of the target set it

    Returns
    -------
    Line

    Examples
    --------
    >>> line = spinodal(30.0, -0.3)
    >>> bool(0.8 < line.load / maxwell(30.0, -0.3).load < 0.9)
    True
    """
    epsilon = _epsilon(epsilon, cubic=True)
    free = _perpendicular.is_free(perpendicular)
    return _line(strength, epsilon, weight_variance, free, _coexistence.first, _coexistence.steepest)


def central_instability(dimension, strength, epsilon, *, weight_variance=1.0):
    r"""Line r_2 = 0 at finite d: the smallest ν at which m = 0 stops being a minimum of the action, and all units take part.

    It recedes to infinity with d: in the limit r_2 > 0 always, since d⟨m²⟩ = 1/(2r_2) is finite.  Source: not in the source.

    Parameters
    ----------
    dimension : int              d; >= 1
    strength : float or array    g_K = s_a² P_e/d; > 0
    epsilon : float              ε
    weight_variance : float      σ_w²; > 0

    Returns
    -------
    float or array               ν; infinite where there is none up to 10⁴ d

    Examples
    --------
    >>> round(float(central_instability(50, 30.0, -0.3)), 1) > 10
    True
    """
    d, epsilon = checks.integer("dimension", dimension), _epsilon(epsilon)
    g, _, s, lazy = _settings(strength, 0.0, weight_variance)

    def stiffness(log_load, g):
        # A state depends on g_K, ν and d alone: any width will do, such as d.
        samples = np.exp(log_load) * d
        return staircase.solve(d, d, samples, epsilon, weight_variance=s, readout_variance=g * d / samples).landau[0]

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

"""The first-order transition of the staircase target as d → ∞ at fixed  g_K = s_a² P_e/d  and  ν = P_e/N.

A unit then sits at the bottom of its action S, which is of order d: at m = 0, with a Gaussian spread of order 1/√d, or
at ±m_0 of order one.  Source: ringel2025talk (the deck), slides on the first-order transition, with |w_⊥|² fixed; free
lengths and the closed forms are not in it.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields.overlaps import _coexistence, _projections, single_index


@dataclass(frozen=True, eq=False)
class State:
    """A network as d → ∞ for settings of shape (...); for numbers those without an axis are floats."""

    residuals: Array["... 2"]  # b and c, of He_1 and He_3
    learnabilities: Array["... 2"]  # R_1 = 1 - b and R_3 = 1 - c/ε; R_3 is nan for ε = 0
    variance: float | Array["..."]  # d⟨m²⟩ of the units around m = 0; σ_w² in the prior
    minimum: float | Array["..."]  # m_0 of the other units, 0 where there are none
    outliers: float | Array["..."]  # their fraction times d
    perpendicular: float | Array["..."]  # |w_⊥|² of the other units; σ_w² where there are none


@dataclass(frozen=True, eq=False)
class Line:
    """A phase line ν(g_K); floats for a single g_K."""

    load: float | Array["..."]  # ν
    residual: float | Array["..."]  # b there; c is ε
    minimum: float | Array["..."]  # m_0, the overlap of the new minimum
    perpendicular: float | Array["..."]  # |w_⊥|² there


@dataclass(frozen=True, eq=False)
class Limit:
    """Networks of erf units and the target He_1 + ε He_3 as d → ∞ at fixed g_K = s_a² P_e/d; ν = P_e/N is the load.

    What is left of the target must keep S from falling below zero anywhere; where S(m_0) = 0 < S elsewhere, a fraction
    of order 1/d of the units sits at ±m_0, as a vapor coexists with its liquid at a pressure that both share.  There is
    one state for each (g_K, ν).  With k² = 1/(g_0 ν), g_0 = 4g_K σ_w²/(π(1 + 2σ_w²))  and  w = (1 + 2|w_⊥|²)/(1 +
    2|w_⊥|² + 2m_0²)  the conditions S(m_0) = S'(m_0) = 0 are solved, if |w_⊥|² = σ_w² is fixed, by  c = ± ½ k w^{-3/2},
    b = (1 - 3w)c, ¼ < w < 1,  so that one scalar root in w is left.

    Parameters
    ----------
    strength : float or array_like (...)
        g_K > 0.
    epsilon : float
        ε.
    weight_variance : float
        σ_w² > 0.  By keyword only.
    perpendicular : str
        |w_⊥|²: "free", as in networks, where the outliers have |w_⊥|² = σ_w² w and the rest keeps σ_w²; "fixed",
        σ_w², the source's.  By keyword only.

    Examples
    --------
    >>> [round(Limit(30.0, -0.3, perpendicular=kind).maxwell().load, 4) for kind in ("free", "fixed")]
    [2.3537, 3.3612]
    """

    strength: float | Array["..."]
    epsilon: float
    weight_variance: float = field(default=1.0, kw_only=True)
    perpendicular: str = field(default="free", kw_only=True)

    def __post_init__(self):
        checks.one_of("perpendicular", self.perpendicular, _projections.CHOICES)
        g = checks.plain(checks.entries("strength", self.strength, above=0, at_most=1e50))  # (...)
        epsilon = checks.number("epsilon", self.epsilon, at_least=-1e50, at_most=1e50)
        s = checks.number("weight_variance", self.weight_variance, above=0, at_most=1e50)
        checks.keep(self, strength=g, epsilon=epsilon, weight_variance=s)

    @property
    def _free(self):
        return self.perpendicular == "free"

    @property
    def _shape(self):
        """p of the bottom of the action."""
        return 1 / (1 + 2 * self.weight_variance) if self._free else 1.0

    def _attraction(self, strength):
        """g_0."""
        return 4 * strength * self.weight_variance / (np.pi * (1 + 2 * self.weight_variance))

    def network(self, dimension: int, width: int, load: float) -> single_index.SingleIndex:
        """The network of finite size at these g_K and ν:  P_e = νN,  s_a² = g_K d/P_e.

        Parameters
        ----------
        dimension, width : int
            d and N; at the saddle any width will do.
        load : float
            ν > 0.

        Returns
        -------
        SingleIndex

        Examples
        --------
        >>> network = Limit(30.0, -0.3).network(50, 300, 2.0)
        >>> network.effective_samples, network.readout_variance
        (600.0, 2.5)
        """
        strength, d = checks.number("strength", self.strength, above=0), checks.integer("dimension", dimension)
        samples = checks.number("load", load, above=0, at_most=1e50) * checks.integer("width", width)
        ways = {"weight_variance": self.weight_variance, "perpendicular": self.perpendicular}
        target, readout = single_index.staircase(self.epsilon), strength * d / samples  # (2,), ()
        return single_index.SingleIndex("erf", target, d, width, samples, readout_variance=readout, **ways)

    def _gaussian(self, load):
        """Shape of the settings; g_K, ν, g_0, b and v of the Gaussian phase, (S,) each."""
        nu = checks.entries("load", load, at_least=0, at_most=1e50)  # (...)
        g, nu = checks.broadcast(strength=self.strength, load=nu)  # (...), (...)
        shape, g, nu = g.shape, g.ravel(), nu.ravel()  # (S,), (S,)
        lazy = self._attraction(g)  # (S,)
        b, _, left = _coexistence.gaussian(lazy, lazy * nu)  # (S,), (S,)
        return shape, g, nu, lazy, b, self.weight_variance / left

    def _state(self, shape, b, c, *rest):
        """The state of residuals b and c (S,), in shape."""
        third = 1 - c / self.epsilon if self.epsilon != 0 else np.full(b.shape, np.nan)  # (S,)
        pairs = (np.stack(pair, axis=-1).reshape(*shape, 2) for pair in ((b, c), (1 - b, third)))  # (..., 2) each
        return State(*pairs, *(checks.plain(part.reshape(shape)) for part in rest))

    def gaussian(self, load: ArrayLike) -> State:
        """The phase of Gaussian overlaps: the cubic part is not learned, and the linear one makes them broader.

        c = ε,  b = [1 + (4g_K/π) v/(1 + 2σ_w²)]^{-1},  v = d⟨m²⟩ = σ_w²/(1 - g_0 ν b²).  Beyond the Maxwell line it is
        no longer the stable phase.

        Parameters
        ----------
        load : array_like (...)
            ν >= 0, which broadcasts with g_K.

        Returns
        -------
        State

        Examples
        --------
        >>> Limit(30.0, -0.3).gaussian([0.0, 3.361]).variance.round(4).tolist()
        [1.0, 1.1946]
        """
        shape, _, _, _, b, variance = self._gaussian(load)  # (S,), (S,)
        none = np.zeros(b.shape)  # (S,)
        return self._state(shape, b, none + self.epsilon, variance, none, none, none + self.weight_variance)

    def coexistence(self, load: ArrayLike) -> State:
        """The stable state: Gaussian up to the Maxwell line; beyond it a few units at ±m_0 learn the cubic part.

        m_0 jumps there, while R_3 and the fraction of outliers grow from zero with a kink: the residual is pinned by
        S(m_0) = 0.

        Parameters
        ----------
        load : array_like (...)
            ν >= 0, which broadcasts with g_K.

        Returns
        -------
        State

        Examples
        --------
        >>> Limit(30.0, -0.3).coexistence([2.0, 3.7, 5.4]).learnabilities[:, 1].round(3).tolist()
        [0.0, 0.153, 0.256]
        """
        shape, g, nu, lazy, b, variance = self._gaussian(load)  # (S,) each
        s, p, epsilon, none = self.weight_variance, self._shape, self.epsilon, np.zeros(b.shape)  # (S,)
        c, minimum, outliers, across = none + epsilon, none.copy(), none.copy(), none + s  # (S,) each
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
        b[mixed], c[mixed], variance[mixed] = -sign * k * beta, sign * k * share, s / ((1 - w) * slack)
        minimum[mixed], across[mixed] = _coexistence.overlap(w, s, self._free)
        outliers[mixed] = 3 * np.pi * (abs(epsilon) - k * share) / (g * (1 - w) ** 2 * k * e)
        return self._state(shape, b, c, variance, minimum, outliers, across)

    def _line(self, shape, steepest):
        """Line of the Gaussian phase on which  b = |ε|θ,  w and k²/ε² being functions of  b/c = ±θ."""
        size, sign, p, lazy = abs(self.epsilon), np.sign(self.epsilon), self._shape, self._attraction(self.strength)
        wanted = "not be zero: without a cubic part the target has no transition"
        checks.fail_if(size < 1e-50, "epsilon", wanted, self.epsilon)
        # At the largest θ the first minimum of S goes: for ε < 0 both minima merge there.
        high = np.full(np.shape(lazy), min(4 / (1 + p) if self.epsilon < 0 else steepest(p), 1 / size))  # (...)

        def excess(theta, lazy):
            return (1 - size * theta) * (1 - theta**2 / shape(sign * theta, p)[1]) - lazy * size * theta

        theta = _coexistence.root(excess, np.zeros(high.shape), high, lazy)  # (...)
        w, squared = shape(sign * theta, p)  # (...), (...)
        with np.errstate(over="ignore"):
            load = checks.finite("epsilon", 1 / (lazy * self.epsilon**2 * squared))  # (...)
        found = load, size * theta, *_coexistence.overlap(w, self.weight_variance, self._free)  # (...) each
        return Line(*map(checks.plain, found))

    def maxwell(self) -> Line:
        """Maxwell line ν_c(g_K): the Gaussian phase has a second minimum of S as deep as the first, S(m_0) = 0.

        Returns
        -------
        Line
            Refused for ε = 0.

        Examples
        --------
        >>> round(Limit(30.0, -0.3, perpendicular="fixed").maxwell().minimum, 3)
        1.494
        """
        return self._line(_coexistence.deepest, lambda p: 1 / _coexistence.bottom(_coexistence.lowest(p), p)[0])

    def spinodal(self) -> Line:
        """Spinodal of the learned phase: the Gaussian phase gets a second minimum, S'(m_0) = S''(m_0) = 0.

        Returns
        -------
        Line
            Refused for ε = 0.

        Examples
        --------
        >>> [round(Limit(30.0, -0.3, perpendicular=kind).spinodal().load, 4) for kind in ("free", "fixed")]
        [1.8805, 2.7946]
        """
        return self._line(_coexistence.first, _coexistence.steepest)

"""Two training points whose hidden vectors are close: the inner distances of a network, solved.

Cut a network at a hidden layer and linearise encoder and decoder about the mid-point of two inputs; h, dy, Δ are the
differences of hidden vectors, outputs, targets.  :class:`TwoPoints` is the flow of three numbers, for any number of
outputs, which closes if h keeps its line; :class:`TwoArrows` that of the two vectors behind it for one output, which
may turn.  X = ‖x₂ - x₁‖², Y = ‖Δ‖², α and β the rates of encoder and decoder, ρ = α/β.  Source: vanrossem2024, eqs.
(7) to (13) and (16) to (31); the closed forms are not in it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

EPS = np.finfo(float).eps


def state(hidden_difference: ArrayLike, output_difference: ArrayLike, target_difference: ArrayLike) -> Array["... 3"]:
    """The three numbers (a, b, w) = (‖h‖², ‖dy‖², dy·(dy - Δ)) of two points of any network.

    Parameters
    ----------
    hidden_difference, output_difference, target_difference : array_like (..., H), (..., m), (m,)
        h, dy, Δ.

    Returns
    -------
    ndarray (..., 3)

    Examples
    --------
    >>> state([1.0, 2.0], [0.5], [1.0]).tolist()
    [5.0, 0.25, -0.25]
    """
    dh = checks.array("hidden_difference", hidden_difference)  # (..., H)
    dy = checks.array("output_difference", output_difference)  # (..., m)
    if dh.ndim == 0 or dh.shape[-1] == 0:
        checks.fail("hidden_difference", "be one or more vectors", hidden_difference)
    if dy.ndim != dh.ndim or dy.shape[:-1] != dh.shape[:-1] or dy.shape[-1] == 0:
        checks.fail("output_difference", "have the leading axes of hidden_difference", f"shape {dy.shape}")
    delta = checks.array("target_difference", target_difference, shape=dy.shape[-1:])  # (m,)
    return np.stack([(dh**2).sum(-1), (dy**2).sum(-1), (dy * (dy - delta)).sum(-1)], axis=-1)


def _bounded(name, state, y):
    """`state` (..., 3), with a, b >= 0 and |b - w| <= √(bY) up to rounding."""
    a, b, w = np.moveaxis(state, -1, 0)  # (...) each
    checks.fail_if(np.any(a < 0) or np.any(b < 0), name, "have a >= 0 and b >= 0", state)
    if np.any(np.abs(b - w) > (1 + 1e-9) * np.sqrt(b) * np.sqrt(y) + 16 * EPS * (b + np.abs(w))):
        checks.fail(name, "obey (b - w)² <= bY, with Y = target_distance", state)
    return state


def loss(state: ArrayLike, target_distance: float, *, mean_distance: float | ArrayLike = 0.0) -> float | Array["..."]:
    """Loss ½⟨‖f - y‖²⟩ of two points from their state,  ½‖δ‖² + ¼(w + ½(Y - b)),  an identity for any network.

    Eq. (9) of vanrossem2024.

    Parameters
    ----------
    state : array_like (..., 3)
        a >= 0, b >= 0, w with (b - w)² <= bY.
    target_distance : float
        Y >= 0.
    mean_distance : float or array_like (...)
        ‖δ‖² >= 0, δ the mean of the two outputs less that of the two targets.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> loss([5.0, 0.25, -0.25], 1.0, mean_distance=0.5)
    0.28125
    """
    state = checks.array("state", state)  # (..., 3)
    if state.ndim == 0 or state.shape[-1] != 3 or state.size == 0:
        checks.fail("state", "hold a, b, w along its last axis", f"shape {state.shape}")
    y = checks.number("target_distance", target_distance, at_least=0)
    _bounded("state", state, y)
    mean = checks.entries("mean_distance", mean_distance, at_least=0)  # (...)
    if mean.ndim and mean.shape != state.shape[:-1]:
        checks.fail("mean_distance", f"be a number or have shape {state.shape[:-1]}", f"shape {mean.shape}")
    return checks.plain(0.5 * mean + 0.25 * (state[..., 2] + 0.5 * (y - state[..., 1])))


def final_distance(high: float | ArrayLike, low: float | ArrayLike) -> float | Array["..."]:
    """Squared hidden distance at the end,  a_∞ = ½A_high + ½√(A_high² + 4A_low²) = A_low e^{arsinh(A_high/(2A_low))}.

    Eq. (10) of vanrossem2024, without cancellation for A_high < 0; for large weights it is max(A_high, 0), not A_high
    as after eq. (12).

    Parameters
    ----------
    high, low : array_like (...)
        A_high, of any sign, and A_low >= 0, which broadcast.

    Returns
    -------
    float or ndarray (...)
        a_∞ >= 0.

    Examples
    --------
    >>> [final_distance(high, 1.0) for high in (0.0, 1e9, -1e9)]
    [1.0, 1000000000.0, 1e-09]
    """
    high, low = checks.array("high", high), checks.entries("low", low, at_least=0)  # (...), (...)
    high, low = checks.broadcast(high=high, low=low)
    larger = 0.5 * np.abs(high) + np.hypot(0.5 * high, low)  # (...)
    smaller = low * np.divide(low, larger, out=np.zeros(high.shape), where=larger > 0)  # (...)
    return checks.plain(np.where(high >= 0, larger, smaller))


def _as_asked(times, found):
    """`found` (T, ...), without its first axis if `times` is a number."""
    return found if np.ndim(times) else found[0]


def _integrated(slope, times, start, **options):
    """The solution at `times` (T,) from a start (n,) at time 0, (n, T)."""
    options = options or {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14 * (np.abs(start).max() or 1.0)}
    span = 0.0, times[-1] or 1.0  # an interval of zero would stop the integrator
    solution = solve_ivp(slope, span, start, t_eval=times, **options)
    if not solution.success or not np.isfinite(solution.y).all():
        checks.fail("times", "end where the integrator still follows", times)
    return solution.y


class _Modes(NamedTuple):
    """The start in the coordinates in which the flow is linear up to a common factor, and what drives it."""

    k: float  # ½√(αβX)
    coupling: float  # κ = k√Y
    tilt: float  # μ = βA_high/4
    rate: float  # λ = √(μ² + κ²)
    cos: float  # upper eigenvector (cos, sin) of ((μ, κ), (κ, -μ))
    sin: float
    s: float  # ŝ = ‖dh‖/√(αX)
    p: float  # p̂: dy/‖dh‖ along Δ, over √β
    q: float  # q̂: the same across Δ, >= 0
    miss: float  # (dy - Δ)·Δ/√Y
    growing: float  # component of the start along the upper eigenvector
    decaying: float  # and along the lower one, (-sin, cos)


def _modes(start, x, y, alpha, beta):
    """The start a, b, w of two points with the distances X, Y and the rates α, β as modes."""
    a, b, w = start
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap, k = np.sqrt(y), 0.5 * np.sqrt(alpha) * np.sqrt(beta) * np.sqrt(x)
        along = (b - w) / gap if gap > 0 else 0.0  # dy·Δ/D
        across = b - along**2
        rounding = 16 * EPS * (b + (b + abs(w)) * abs(along) / gap) if gap > 0 else 0.0
        if across <= rounding:
            across = 0.0  # equality in (b - w)² <= bY: dy is parallel to Δ, as it always is for one output
        tilt, coupling = 0.25 * (beta * a - alpha * x * (b / a)), k * gap
        rate = np.hypot(tilt, coupling)
        cos, sin = (rate + tilt, coupling) if tilt >= 0 else (coupling, rate - tilt)
        length = np.hypot(cos, sin)
        cos, sin = (cos / length, sin / length) if length > 0 else (1.0, 0.0)
        s, p, q = np.sqrt(a / alpha / x), along / np.sqrt(beta * a), np.sqrt(across / (beta * a))
        miss = (b - w - y) / gap if gap > 0 else 0.0
        growing, decaying = cos * s + sin * p, cos * p - sin * s
    found = _Modes(k, coupling, tilt, rate, cos, sin, s, p, q, miss, growing, decaying)
    if not np.isfinite(found).all() or k == 0 or s == 0:
        checks.fail("start", "keep rates and scaled distances inside the floating-point range", start)
    return found


def _elapsed(rate, times):
    """∫ e^{-2 rate t} dt from 0, (T,)."""
    return times if rate == 0 else -np.expm1(-2 * rate * times) / (2 * rate)


def _solved(times, m):
    """The closed form at `times` (T,): ŝ, p̂, q̂ and the parts of dy - Δ along and across Δ, five arrays (T,).

    ŝ keeps its sign when h passes through zero.  Divided by the fastest exponential present nothing overflows, and
    nothing cancels for a start with dy·Δ >= 0.
    """
    fastest = m.rate if m.growing != 0 else max(-m.tilt, 0.0) if m.q != 0 else 0.0
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if m.growing == 0:
            lag = max(m.tilt, 0.0) if m.q != 0 else 0.0
        else:  # λ + μ, without the cancellation for μ < 0
            lag = m.coupling**2 / (m.rate - m.tilt) if m.tilt < 0 else m.rate + m.tilt
        fade = np.exp(-2 * fastest * times)  # (T,)
        first = _elapsed(m.rate, times)  # (T,)
        second = np.exp(-2 * (lag if m.tilt < 0 else fastest) * times) * _elapsed(abs(m.tilt), times)  # (T,)
        square = fade + 2 * m.k**2 * ((m.growing**2 + m.decaying**2 * fade) * first + m.q**2 * second)  # (T,)
        norm = np.sqrt(square)  # (T,)
        if m.growing != 0:
            mixed = -np.expm1(-2 * m.rate * times) * m.cos * m.sin  # (T,)
            s = m.s * (m.cos**2 + fade * m.sin**2) + m.p * mixed  # (T,)
            p = m.p * (m.sin**2 + fade * m.cos**2) + m.s * mixed  # (T,)
        else:
            left = m.decaying * np.exp(-(fastest + m.rate) * times)  # (T,)
            s, p = -m.sin * left, m.cos * left  # (T,), (T,)
        s, p, q = s / norm, p / norm, m.q * np.exp(-lag * times) / norm  # (T,), (T,), (T,)
        along = (fade * m.miss - 2 * m.coupling * m.k * m.q**2 * second) / square  # (T,)
    return checks.finite("start", np.array([s, p, q, along, 2 * m.k * s * q]))  # (5, T)


@dataclass(frozen=True, eq=False)
class TwoPoints:
    """The flow of a = ‖h‖², b = ‖dy‖² and w = dy·(dy - Δ), from a start, with the rates of encoder and decoder.

    da/dt = -αXw,   db/dt = -w(βa + αXb/a),   dw/dt = -(β/2)(3w - b + Y)a - (αX/2)(b + w)w/a,  vanrossem2024 eq. (7).
    Descent with step η on a linear net with one hidden layer and the loss  ½⟨‖f - y‖²⟩  has α = β = η/2.  The end
    depends on the ratio ρ = α/β only.

    Parameters
    ----------
    start : array_like (3,)
        a₀ > 0, b₀ >= 0, w₀ with (b₀ - w₀)² <= b₀Y.
    input_distance, target_distance : float
        X = ‖x₂ - x₁‖² > 0, Y = ‖Δ‖² >= 0; for Y = 0 w stays equal to b.
    encoder_rate, decoder_rate : float
        α, β > 0, per unit of time.

    Examples
    --------
    >>> two = TwoPoints([2.0, 1.0, 0.5], 1.0, 4.0, 1.0, 1.0)
    >>> two.high_low, round(two.final_distance, 6), two.regime()
    ((1.5, 2.0), 2.886001, 'between')
    """

    start: Array["3"]
    input_distance: float
    target_distance: float
    encoder_rate: float
    decoder_rate: float

    def __post_init__(self):
        start = checks.array("start", self.start, shape=(3,))  # (3,)
        checks.fail_if(start[0] == 0, "start", "have a > 0", start)
        for name in ("input_distance", "encoder_rate", "decoder_rate"):
            checks.keep(self, **{name: checks.number(name, getattr(self, name), above=0)})
        y = checks.number("target_distance", self.target_distance, at_least=0)
        checks.keep(self, start=_bounded("start", start, y), target_distance=y)
        start.flags.writeable = False  # what is solved once stays solved

    @cached_property
    def _modes(self):
        return _modes(self.start, self.input_distance, self.target_distance, self.encoder_rate, self.decoder_rate)

    @property
    def derivative(self) -> Array["3"]:
        """d(a, b, w)/dt at the start, eq. (7); singular at a = 0, where integrators go wrong unnoticed."""
        (a, b, w), beta = self.start, self.decoder_rate
        pull = self.encoder_rate * self.input_distance * w
        turn = -0.5 * beta * (3 * w - b + self.target_distance) * a - 0.5 * pull * (b + w) / a
        return np.array([-pull, -w * beta * a - pull * b / a, turn])

    @property
    def high_low(self) -> tuple[float, float]:
        """A_high = a₀ - ρX b₀/a₀, a constant of the motion, and A_low = √(ρXY), eqs. (11) and (24)."""
        (a, b, _), ratio = self.start, self.encoder_rate / self.decoder_rate
        with np.errstate(over="ignore", invalid="ignore"):
            part = ratio * self.input_distance
            found = np.array([a - part * b / a, np.sqrt(part * self.target_distance)])
        return tuple(checks.finite("start", found).tolist())

    @property
    def final_distance(self) -> float:
        """Where a ends, :func:`final_distance` of both; b ends at Y, w at 0, but for starts that rest at a saddle."""
        return final_distance(*self.high_low)

    @property
    def decay_rates(self) -> Array["2"]:
        """Eigenvalues of the Jacobian at the end,  -βa_∞  and  -½β√(A_high² + 4A_low²), per unit of time.

        Eqs. (29) to (31) of vanrossem2024 simplified.  Across Δ dy - Δ decays with half the first.  Along Δ one part
        decays with the second; another, which one output does not show, with the first.
        """
        high, low = self.high_low
        return -self.decoder_rate * np.array([final_distance(high, low), np.hypot(0.5 * high, low)])

    def regime(self, *, margin: float = 5.0) -> str:
        """What decides the end: the data ("rich"), a large start ("lazy"), or one with the larger decoder ("collapse").

        a_∞ is close to A_low, A_high or A_low²/|A_high|.  |A_high| is compared with 2A_low, which corrects eqs. (12)
        and (13) of vanrossem2024.

        Parameters
        ----------
        margin : float
            How many times larger one side must be, > 1.

        Returns
        -------
        str
            "rich", "lazy", "collapse", or "between".

        Examples
        --------
        >>> [TwoPoints([a, 0.0, 0.0], 1.0, 1.0, 1.0, 1.0).regime(margin=5.0) for a in (0.1, 2.0, 19.2)]
        ['rich', 'between', 'lazy']
        """
        (high, low), margin = self.high_low, checks.number("margin", margin, above=1)
        checks.fail_if(high == 0 and low == 0, "start", "have A_high other than 0 where Y = 0", self.start)
        if abs(high) * margin <= 2 * low:
            return "rich"
        if abs(high) < margin * 2 * low:
            return "between"
        return "lazy" if high > 0 else "collapse"

    @property
    def half_time(self) -> float:
        """Length of the plateau: when the fast-growing part of a small start has half its final squared size.

        t = ln(λ/(k²ζ²) - 1)/(2λ),  λ = ¼β√(A_high² + 4A_low²),  k = ½√(αβX),  ζ the start's component along the growing
        direction; then a is half of a_∞ for a balanced start.  Not in the source.  A start that is not on the plateau
        raises a ValueError.
        """
        m = self._modes
        part = (m.k * m.growing) ** 2
        if not 0 < 2 * part < m.rate:
            wanted = "be on the plateau: a small part along the growing direction, below half its final size"
            checks.fail("start", wanted, self.start)
        return float((np.log(m.rate - part) - np.log(part)) / (2 * m.rate))

    @property
    def zero_crossing(self) -> float:
        """Time at which the two hidden vectors meet, a = 0, on their way to opposite order; infinite if they do not.

        With growing (cos, sin) and decaying direction (-sin, cos), ζ₊ and ζ₋ the start's components:
        t = ln(ζ₋ sin/(ζ₊ cos))/(2λ) if ζ₊ < 0.  Section A.3 of the source excludes it.
        """
        m = self._modes
        if not m.growing < 0:
            return np.inf
        return float(np.log(m.sin * m.decaying / (m.cos * m.growing)) / (2 * m.rate))

    def solve(self, times: float | ArrayLike) -> Array["*T 3"]:
        """The state (a, b, w) at any times, in closed form; it goes on smoothly where eq. (7) is singular.

        z = (ŝ, p̂, q̂), with  a = αXŝ²  and  dy = 2kŝ(p̂, q̂)  along and across Δ, obeys  dz/dt = Λz - k²‖z‖²z:
        z(t) = e^{Λt}z₀ / √(1 + 2k² ∫₀ᵗ ‖e^{Λt'}z₀‖² dt'),   Λ = ((μ, κ, 0), (κ, -μ, 0), (0, 0, -μ)),  k² = ¼αβX,
        μ = ¼βA_high,  κ = k√Y.  For Y = 0 these are eqs. (39) and (40) of vanrossem2024, whose exponent lacks β:
        a = A_high/(1 + E),  E = (A_high/a₀ - 1) e^{-βA_high t},  or a₀/(1 + βa₀t) for A_high = 0.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.

        Returns
        -------
        ndarray (T, 3), or (3,) for a number

        Examples
        --------
        >>> TwoPoints([0.01, 0.0001, -0.0099], 1.0, 1.0, 1.0, 1.0).solve([0.0, 1e9]).round(6).tolist()
        [[0.01, 0.0001, -0.0099], [1.0, 1.0, 0.0]]
        """
        m = self._modes
        s, p, _, along, across = _solved(checks.times("times", times), m)  # (T,) each
        forward = 2 * m.k * s * p  # (T,)  dy·Δ/√Y
        hidden = self.encoder_rate * self.input_distance * s**2  # (T,)
        found = np.stack([hidden, forward**2 + across**2, forward * along + across**2], axis=1)  # (T, 3)
        return _as_asked(times, found)

    def integrate(self, times: float | ArrayLike) -> Array["*T 3"]:
        """Numerical solution for the control of :meth:`solve`, of the flow of h and dy/‖h‖, regular everywhere.

        ds/dt = -½αX u·e,  du/dt = -½βs e,  e = su - Δ:  a = s², dy = su, u along and across Δ.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.

        Returns
        -------
        ndarray (T, 3), or (3,) for a number

        Examples
        --------
        >>> TwoPoints([0.01, 0.0001, -0.0099], 1.0, 1.0, 1.0, 1.0).integrate(60.0).round(6)[:2].tolist()
        [1.0, 1.0]
        """
        gap, m, x = np.array([np.sqrt(self.target_distance), 0.0]), self._modes, self.input_distance  # gap (2,)
        begin = np.array([np.sqrt(self.encoder_rate * x) * m.s, *(np.sqrt(self.decoder_rate) * np.array([m.p, m.q]))])

        def slope(_, z):
            error = z[0] * z[1:] - gap  # (2,)
            return -0.5 * np.array([self.encoder_rate * x * (error @ z[1:]), *(self.decoder_rate * z[0] * error)])

        s, *u = _integrated(slope, checks.times("times", times), begin)  # (T,), 2 of (T,)
        dy = (s * u).T  # (T, 2)
        return _as_asked(times, state(s[:, None], dy, gap))

    def loss(
        self, times: float | ArrayLike, *, mean_distance: float = 0.0, mean_rate: float = 0.0
    ) -> float | Array[" T"]:
        """Loss along the solution,  ½‖δ₀‖² e^{-2γt} + ⅛‖dy - Δ‖²,  with all digits down to the smallest values.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.
        mean_distance, mean_rate : float
            ‖δ₀‖² >= 0 of the output at the mid-point from the mean target at the start, and its rate γ >= 0.

        Returns
        -------
        float or ndarray (T,)

        Examples
        --------
        >>> two = TwoPoints([0.01, 0.0001, -0.0099], 1.0, 1.0, 1.0, 1.0)
        >>> two.loss([0.0, 1e9], mean_distance=0.5, mean_rate=1.0).round(6).tolist()
        [0.372512, 0.0]
        """
        clock = checks.times("times", times)  # (T,)
        mean = checks.number("mean_distance", mean_distance, at_least=0)
        rate = checks.number("mean_rate", mean_rate, at_least=0)
        *_, along, across = _solved(clock, self._modes)  # (T,) each
        with np.errstate(over="ignore"):
            losses = 0.5 * mean * np.exp(-2 * rate * clock) + (along**2 + across**2) / 8  # (T,)
        return checks.plain(_as_asked(times, losses))

    def layered(
        self, times: float | ArrayLike, decoder_gradient: float, *, encoder_layers: int = 1, decoder_layers: int = 1
    ) -> Array["*T 3"]:
        """The state with rates that grow,  α = α₀(a/X)^{1-1/L₁}  and  β = β₀V^{1-1/L₂}  of L₁ and L₂ linear layers.

        For one output, dy = v·h, V = ‖v‖², e = dy - √Y:  ȧ = -αX e dy,  d(dy)/dt = -½e(βa + αXV),  V̇ = -β e dy,
        integrated numerically.  One layer on either side is :class:`TwoArrows`; descent on L equal layers has the
        prefactor ηL/2.  Not in the source.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.
        decoder_gradient : float
            V₀ > 0, at least b₀/a₀.  The start must be one of one output, (b₀ - w₀)² = b₀Y, with Y > 0.
        encoder_layers, decoder_layers : int
            L₁, L₂ >= 1.

        Returns
        -------
        ndarray (T, 3), or (3,) for a number

        Examples
        --------
        >>> two = TwoPoints([1e-2, 1e-6, 1e-6 - 1e-3], 1.0, 1.0, 1.0, 1.0)  # dy = 1e-3
        >>> two.layered(60.0, 0.01, encoder_layers=10, decoder_layers=1).round(3).tolist()
        [0.365, 1.0, 0.0]
        """
        clock = checks.times("times", times)  # (T,)
        first = 1 - 1 / checks.integer("encoder_layers", encoder_layers)
        second = 1 - 1 / checks.integer("decoder_layers", decoder_layers)
        v = checks.number("decoder_gradient", decoder_gradient, above=0)
        (a, b, w), x, gap = self.start, self.input_distance, np.sqrt(self.target_distance)
        c = (b - w) / gap if gap > 0 else np.inf
        if not abs(c**2 - b) <= 1e-5 * max(b, gap**2):
            checks.fail("start", "be that of one output, (b - w)² = bY, with different targets", self.start)
        if v * a < c**2 * (1 - 1e-6):
            checks.fail("decoder_gradient", "be at least b/a, as dy = v·dh", decoder_gradient)

        def slope(_, state):
            a, c, v = state
            by_encoder = self.encoder_rate * x * (max(a, 0.0) / x) ** first
            by_decoder = self.decoder_rate * max(v, 0.0) ** second
            e = c - gap
            return -by_encoder * e * c, -0.5 * e * (by_decoder * a + by_encoder * v), -by_decoder * e * c

        begin = np.array([a, c, v])  # (3,)
        finest = np.maximum(1e-10 * np.abs(begin), 1e-14 * gap)  # (3,)
        a, c, _ = _integrated(slope, clock, begin, method="LSODA", rtol=1e-8, atol=finest)  # (T,) each
        found = np.stack([a, c**2, c * (c - gap)], axis=1)  # (T, 3)
        return _as_asked(times, found)


@dataclass(frozen=True, eq=False)
class TwoArrows:
    """Two points and one output as two arrows that may turn: h, and the decoder's row v, the gradient of the output.

    dh/dt = -½αX e v,   dv/dt = -½β e h,   e = dy - Δ,   dy = v·h:  vanrossem2024, eqs. (17) to (19), with ¼ for ½
    in (17).  The flow is a squeeze,  h ± √(ρX) v  grows and shrinks by inverse factors: it keeps :attr:`excess` and
    :attr:`area`.

    Parameters
    ----------
    hidden, pull : array_like (H,)
        h and v at the start, H >= 1.
    target_difference : float
        Δ.
    input_distance, encoder_rate, decoder_rate : float
        X, α, β > 0, the rates per unit of time.

    Examples
    --------
    >>> flow = TwoArrows([0.01, 0.0], [0.0, 0.01], 1.0, 1.0, 1.0, 1.0)
    >>> flow.excess, round(flow.area, 6), round(flow.final_distance, 6)
    (0.0, 0.0001, 1.0)
    """

    hidden: Array[" H"]
    pull: Array[" H"]
    target_difference: float
    input_distance: float
    encoder_rate: float
    decoder_rate: float

    def __post_init__(self):
        dh = checks.array("hidden", self.hidden, ndim=1)  # (H,)
        checks.fail_if(dh.size == 0, "hidden", "have at least one entry", f"shape {dh.shape}")
        for name in ("input_distance", "encoder_rate", "decoder_rate"):
            checks.keep(self, **{name: checks.number(name, getattr(self, name), above=0)})
        target = checks.number("target_difference", self.target_difference)
        checks.keep(self, hidden=dh, pull=checks.array("pull", self.pull, shape=dh.shape), target_difference=target)

    @cached_property
    def _kept(self):
        """Conserved excess and area, and A_low, all in the unit of a."""
        with np.errstate(over="ignore", invalid="ignore"):
            unit = np.sqrt(self.encoder_rate / self.decoder_rate) * np.sqrt(self.input_distance)
            dh, v = self.hidden, unit * self.pull  # (H,), (H,)
            a = dh @ dh
            across = v - (v @ dh) / a * dh if a > 0 else v  # (H,)
            found = np.array([a - v @ v, np.sqrt(a) * np.linalg.norm(across), unit * abs(self.target_difference)])
        return checks.finite("hidden", found).tolist()

    @property
    def excess(self) -> float:
        """Conserved difference of squares  ‖h‖² - ρX‖v‖²,  in place of A_high where h turns."""
        return self._kept[0]

    @property
    def area(self) -> float:
        """Conserved area of the parallelogram of h and √(ρX) v,  √(ρX(‖h‖²‖v‖² - dy²));  0 if h keeps its line."""
        return self._kept[1]

    @property
    def final_distance(self) -> float:
        """‖h‖² at the end, :func:`final_distance` of the excess and  √(area² + A_low²), A_low = √(ρX)|Δ|.

        In place of eq. (10) where h turns; it leaves out the starts that rest at the saddle, ρX‖v‖² = a with v along
        -Δdh.
        """
        excess, area, low = self._kept
        return final_distance(excess, np.hypot(area, low))

    def integrate(self, times: float | ArrayLike) -> tuple[Array["*T H"], Array["*T H"], float | Array["*T"]]:
        """Numerical solution, for the control of :meth:`solve`.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.

        Returns
        -------
        hidden, pull, residual : ndarray (T, H), (T, H), (T,), without T for a number
            h, v and dy - Δ.

        Examples
        --------
        >>> hidden, _, _ = TwoArrows([1.0, 0.0], [0.1, 0.5], 1.0, 1.0, 1.0, 1.0).integrate(40.0)
        >>> hidden.round(3).tolist()
        [1.21, 0.287]
        """

        def slope(_, flat):
            dh, v = flat.reshape(2, -1)  # (H,), (H,)
            pull = -0.5 * (dh @ v - self.target_difference)
            return np.append(self.encoder_rate * self.input_distance * pull * v, self.decoder_rate * pull * dh)

        flat = _integrated(slope, checks.times("times", times), np.append(self.hidden, self.pull))  # (2H, T)
        hidden, pull = flat.reshape(2, self.hidden.size, -1).transpose(0, 2, 1)  # (T, H), (T, H)
        residual = (hidden * pull).sum(axis=1) - self.target_difference  # (T,)
        return _as_asked(times, hidden), _as_asked(times, pull), checks.plain(_as_asked(times, residual))

    def solve(self, times: float | ArrayLike) -> tuple[Array["*T H"], Array["*T H"], float | Array["*T"]]:
        """Closed form, logistic in time.

        ĥ = h/√(αX) and v̂ = v/√β have  ĥ ± v̂ = (ĥ₀ ± v̂₀) x^{±½},
        dx/dt = -k²P x² + 2kΔ x + k²M,  x(0) = 1,  P = ‖ĥ₀ + v̂₀‖²,  M = ‖ĥ₀ - v̂₀‖²,  k = ½√(αβX).  Distances depend on
        a₀ = ‖h₀‖², dy₀ and V₀ = ‖v₀‖² alone: (√a₀, 0) and (dy₀/√a₀, √(V₀ - dy₀²/a₀)) give them.  Not in the source.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.

        Returns
        -------
        hidden, pull, residual : ndarray (T, H), (T, H), (T,), without T for a number
            h, v and dy - Δ, the last with all its digits; dy = v·h.

        Examples
        --------
        >>> hidden, pull, residual = TwoArrows([0.01, 0.0], [0.0, 0.01], 1.0, 1.0, 1.0, 1.0).solve(1e9)
        >>> hidden.round(4).tolist(), pull.round(4).tolist(), abs(residual)  # by 45 degrees
        ([0.7071, 0.7071], [0.7071, 0.7071], 0.0)
        """
        clock = checks.times("times", times)  # (T,)
        dh, v, delta, x = self.hidden, self.pull, self.target_difference, self.input_distance  # (H,), (H,)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            upwards, sideways = np.sqrt(self.encoder_rate * x), np.sqrt(self.decoder_rate)
            k = 0.5 * np.sqrt(self.encoder_rate) * sideways * np.sqrt(x)
            plus, minus = dh / upwards + v / sideways, dh / upwards - v / sideways  # (H,), (H,)
            kp, km = k * (plus @ plus), k * (minus @ minus)
            speed = checks.finite("hidden", np.sqrt(delta**2 + kp * km))  # rate of x is 2k times this
            upper, lower = speed + abs(delta), kp * km / (speed + abs(delta)) if speed > 0 else 0.0
            upper, lower = (upper, lower) if delta >= 0 else (lower, upper)  # speed ± Δ, without cancellation
            fade = np.exp(-2 * k * speed * clock)  # (T,)
            elapsed = k * clock if speed == 0 else -np.expm1(-2 * k * speed * clock) / (2 * speed)  # (T,)
            # x = numerator / denominator, both solutions of one linear equation and divided by e^{k·speed·t}
            numerator = _mobius(fade, elapsed, speed, upper, lower, km, delta)  # (T,)
            denominator = _mobius(fade, elapsed, speed, lower, upper, kp, -delta)  # (T,)
            growth = np.sqrt(numerator / denominator) if kp > 0 else np.zeros(clock.size)  # (T,)
            shrinking = np.sqrt(denominator / numerator) if km > 0 else np.zeros(clock.size)  # (T,)
            residual = (v @ dh - delta) * (fade / numerator) / denominator  # (T,)
        if not (np.isfinite(growth).all() and np.isfinite(shrinking).all()):
            checks.fail("times", "stay where the solution is inside the floating-point range", times)
        plus, minus = np.outer(growth, plus) / 2, np.outer(shrinking, minus) / 2  # (T, H), (T, H)
        hidden, pull = upwards * (plus + minus), sideways * (plus - minus)  # (T, H), (T, H)
        if (km == 0 and delta <= 0) or (kp == 0 and delta >= 0):  # the saddle: nothing is learned, both quotients fade
            residual = (hidden * pull).sum(axis=1) - delta  # (T,)
        return _as_asked(times, hidden), _as_asked(times, pull), checks.plain(_as_asked(times, residual))


def _mobius(fade, elapsed, speed, near, far, push, drift):
    """e^{-k·speed·t} (cosh + (drift + push) sinh/speed), near, far = speed ± drift, as a sum of positive terms."""
    if far <= push:
        return (1 + fade) / 2 + elapsed * (drift + push)
    return ((near + push) + fade * (far - push)) / (2 * speed)

"""Two training points whose hidden vectors are close: three equations for a network's inner distances, solved.

Cut a network at a hidden layer and linearise encoder and decoder about the mid-point of two inputs; dh, dy, Δ are the
differences of hidden vectors, outputs, targets, and D_y is the decoder's Jacobian.  :class:`TwoPoints` is the flow of
three numbers, which closes if dh keeps its line, :class:`TwoLayerFlow` that of the vectors behind it.  Source:
vanrossem2024, eqs. (7), (9), (16) to (19); the closed forms are not in it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.representations import _two_points, two_points_limits


def state(hidden_difference: ArrayLike, output_difference: ArrayLike, target_difference: ArrayLike) -> Array["... 3"]:
    """The three numbers (a, b, w) = (‖dh‖², ‖dy‖², dy·(dy - Δ)) of two points of any network.

    Parameters
    ----------
    hidden_difference, output_difference, target_difference : array_like (..., H), (..., m), (m,)
        dh, dy, Δ.

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
    if np.any(np.abs(b - w) > (1 + 1e-9) * np.sqrt(b) * np.sqrt(y) + 16 * _two_points.EPS * (b + np.abs(w))):
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


@dataclass(frozen=True, eq=False)
class TwoPoints:
    """The flow of a = ‖dh‖², b = ‖dy‖² and w = dy·(dy - Δ), from a start, with the rates of encoder and decoder.

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
    >>> two.high_low, two.fixed_point.round(6).tolist()
    ((1.5, 2.0), [2.886001, 4.0, 0.0])
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
        constants = self.input_distance, self.target_distance, self.encoder_rate, self.decoder_rate
        return _two_points.modes(self.start, *constants)

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
    def fixed_point(self) -> Array["3"]:
        """The end (a_∞, Y, 0), for every start but the exceptional ones that rest at a saddle, eq. (36)."""
        return np.array([two_points_limits.final_distance(*self.high_low), self.target_distance, 0.0])

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

        z = (ŝ, p̂, q̂), with  a = αXŝ²  and  dy = 2kŝ(p̂, q̂)  along and across Δ:  dz/dt = Mz - k²‖z‖²z,
        z(t) = e^{Mt}z₀ / √(1 + 2k² ∫₀ᵗ ‖e^{Mt'}z₀‖² dt'),   M = ((μ, κ, 0), (κ, -μ, 0), (0, 0, -μ)),  k² = ¼αβX,
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
        s, p, _, along, across = _two_points.solve(checks.times("times", times), m)  # (T,) each
        forward = 2 * m.k * s * p  # (T,)  dy·Δ/√Y
        hidden = self.encoder_rate * self.input_distance * s**2  # (T,)
        found = np.stack([hidden, forward**2 + across**2, forward * along + across**2], axis=1)  # (T, 3)
        return _as_asked(times, found)

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
        *_, along, across = _two_points.solve(clock, self._modes)  # (T,) each
        with np.errstate(over="ignore"):
            losses = 0.5 * mean * np.exp(-2 * rate * clock) + (along**2 + across**2) / 8  # (T,)
        return checks.plain(_as_asked(times, losses))

    def layered(
        self, times: float | ArrayLike, decoder_gradient: float, *, encoder_layers: int = 1, decoder_layers: int = 1
    ) -> Array["*T 3"]:
        """The state with rates that grow,  α = α₀(a/X)^{1-1/L₁}  and  β = β₀V^{1-1/L₂}  of L₁ and L₂ linear layers.

        For one output, c = v·dh, V = ‖v‖², e = c - √Y:  ȧ = -αX e c,  ċ = -½e(βa + αXV),  V̇ = -β e c,  integrated
        numerically.  One layer on either side is :class:`TwoLayerFlow`; descent on L equal layers has the prefactor
        ηL/2.  Not in the source.

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


def _as_asked(times, found):
    """`found` (T, ...), without its first axis if `times` is a number."""
    return found if np.ndim(times) else found[0]


def _vectors(times, *parts):
    return Vectors(*(_as_asked(times, part) for part in parts))


def _integrated(slope, times, start, **options):
    """The solution at `times` (T,) from a start (n,) at time 0, (n, T)."""
    span = 0.0, times[-1] or 1.0  # an interval of zero would stop the integrator
    solution = solve_ivp(slope, span, start, t_eval=times, **options)
    if not solution.success or not np.isfinite(solution.y).all():
        checks.fail("times", "end where the integrator still follows", times)
    return solution.y


@dataclass(frozen=True, eq=False)
class Vectors:
    """Differences between two points at T times; without the axis T at a single time."""

    hidden: Array["*T H"]  # dh
    decoder: Array["*T m H"]  # D_y
    output: Array["*T m"]  # dy
    residual: Array["*T m"]  # dy - Δ


@dataclass(frozen=True, eq=False)
class TwoLayerFlow:
    """Two points whose hidden difference may turn: the two-layer linear flow of vectors behind :class:`TwoPoints`.

    d(dh)/dt = -½αX D_yᵀe,   dD_y/dt = -½β e dhᵀ,   e = dy - Δ,   dy = D_y dh:  vanrossem2024, eqs. (17) to (19), with
    ¼ for ½ in (17).

    Parameters
    ----------
    hidden_difference, decoder, target_difference : array_like (H,), (m, H), (m,)
        dh and D_y at the start, Δ; H, m >= 1.
    input_distance, encoder_rate, decoder_rate : float
        X = ‖x₂ - x₁‖², α, β > 0, the rates per unit of time.

    Examples
    --------
    >>> round(TwoLayerFlow([0.01, 0.0], [[0.0, 0.01]], [1.0], 1.0, 1.0, 1.0).final_distance, 6)
    1.0
    """

    hidden_difference: Array[" H"]
    decoder: Array["m H"]
    target_difference: Array[" m"]
    input_distance: float
    encoder_rate: float
    decoder_rate: float

    def __post_init__(self):
        dh = checks.array("hidden_difference", self.hidden_difference, ndim=1)  # (H,)
        target = checks.array("target_difference", self.target_difference, ndim=1)  # (m,)
        decoder = checks.array("decoder", self.decoder, shape=(target.size, dh.size))  # (m, H)
        checks.fail_if(decoder.size == 0, "decoder", "have at least one entry", f"shape {decoder.shape}")
        for name in ("input_distance", "encoder_rate", "decoder_rate"):
            checks.keep(self, **{name: checks.number(name, getattr(self, name), above=0)})
        checks.keep(self, hidden_difference=dh, decoder=decoder, target_difference=target)

    def integrate(self, times: float | ArrayLike) -> Vectors:
        """Numerical solution for any number of outputs; the reference for the closed forms.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.

        Returns
        -------
        Vectors

        Examples
        --------
        >>> TwoLayerFlow([1.0, 0.0], [[0.1, 0.5]], [1.0], 1.0, 1.0, 1.0).integrate(40.0).output.round(6).tolist()
        [1.0]
        """
        target, shape = self.target_difference, (len(self.decoder) + 1, self.hidden_difference.size)

        def slope(_, flat):
            rows = flat.reshape(shape)  # (1 + m, H)
            error = rows[1:] @ rows[0] - target  # (m,)
            pull = -0.5 * self.encoder_rate * self.input_distance * error @ rows[1:]  # (H,)
            return np.vstack([pull, -0.5 * self.decoder_rate * np.outer(error, rows[0])]).ravel()  # ((1 + m) H,)

        start = np.vstack([self.hidden_difference, self.decoder]).ravel()  # ((1 + m) H,)
        options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14 * (np.abs(start).max() or 1.0)}
        rows = _integrated(slope, checks.times("times", times), start, **options).T.reshape(-1, *shape)  # (T, 1 + m, H)
        output = np.einsum("tmh,th->tm", rows[:, 1:], rows[:, 0])  # (T, m)
        return _vectors(times, rows[:, 0], rows[:, 1:], output, output - target)

    def solve(self, times: float | ArrayLike) -> Vectors:
        """Closed form, for one output from any start, for several outputs if the decoder has rank one.

        One output:  ĥ = dh/√(αX) and v̂ = v/√β, D_y = vᵀ, have  ĥ ± v̂ = (ĥ₀ ± v̂₀) x^{±½},
        dx/dt = -k²P x² + 2kΔ x + k²M,  x(0) = 1,  P = ‖ĥ₀ + v̂₀‖²,  M = ‖ĥ₀ - v̂₀‖²,  k = ½√(αβX).  Distances depend on
        a₀ = ‖dh₀‖², dy₀ and V₀ = ‖v₀‖² alone: (√a₀, 0) and (dy₀/√a₀, √(V₀ - dy₀²/a₀)) give them.  Several outputs: that
        of :meth:`TwoPoints.solve`, with  D_y = dy dhᵀ/‖dh‖².  Not in the source.

        Parameters
        ----------
        times : float or array_like (T,)
            t >= 0, increasing.

        Returns
        -------
        Vectors

        Raises
        ------
        ValueError
            If there are several outputs and a decoder that sees more than dh.

        Examples
        --------
        >>> end = TwoLayerFlow([0.01, 0.0], [[0.0, 0.01]], [1.0], 1.0, 1.0, 1.0).solve(1e9)  # dh turns by 45 degrees
        >>> end.hidden.round(4).tolist(), end.output.round(6).tolist()
        ([0.7071, 0.7071], [1.0])
        """
        clock = checks.times("times", times)  # (T,)
        return _vectors(times, *(self._one_output(clock) if len(self.decoder) == 1 else self._on_a_line(clock)))

    @property
    def final_distance(self) -> float:
        """Squared hidden distance at the end for one output,  a_∞ = ½Ã + √(¼Ã² + ρX(a₀‖v₀‖² - dy₀²) + A_low²).

        Ã = a₀ - ρX‖v₀‖².  In place of eq. (10) where dh rotates; it leaves out the starts that rest at the saddle,
        ρX‖v₀‖² = a₀ with v₀ along -Δdh₀.  Several outputs raise a ValueError.
        """
        if len(self.decoder) > 1:
            checks.fail("decoder", "have one row, for one output", f"shape {self.decoder.shape}")
        dh, ratio = self.hidden_difference, self.encoder_rate / self.decoder_rate
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            a, v = dh @ dh, self.decoder[0] * np.sqrt(ratio) * np.sqrt(self.input_distance)  # (H,)
            across = v - (v @ dh) / a * dh if a > 0 else v  # (H,)
            rest = a * (across @ across) + ratio * self.input_distance * self.target_difference[0] ** 2
            half = 0.5 * (a - v @ v)
            root = checks.finite("hidden_difference", np.sqrt(half**2 + rest))
        return float(half + root if half >= 0 else rest / (root - half))

    def _on_a_line(self, times):
        """Arrays of Vectors if the decoder has rank one."""
        dh, target = self.hidden_difference, self.target_difference  # (H,), (m,)
        size, gap, dy = np.linalg.norm(dh), np.linalg.norm(target), self.decoder @ dh  # dy (m,)
        seen = np.outer(dy, dh) / (size**2 or 1.0)  # (m, H)
        if size == 0 or np.abs(self.decoder - seen).max() > 1e-12 * np.abs(seen).max():
            checks.fail("decoder", "see dh alone, D_y = dy dhᵀ/‖dh‖², for several outputs", self.decoder)
        rates = self.input_distance, gap**2, self.encoder_rate, self.decoder_rate
        m = _two_points.modes(np.array([size**2, dy @ dy, dy @ (dy - target)]), *rates)
        s, p, q, along, across = _two_points.solve(times, m)  # (T,) each
        forward = target / gap if gap > 0 else np.zeros(target.size)  # (m,)
        sideways = dy - (dy @ forward) * forward  # (m,)
        length = np.linalg.norm(sideways)
        sideways = sideways / length if m.q > 0 and length > 0 else np.zeros(target.size)  # (m,)
        hidden = np.sqrt(self.encoder_rate * self.input_distance) * s  # (T,)
        column = np.sqrt(self.decoder_rate) * (np.outer(p, forward) + np.outer(q, sideways))  # (T, m)
        residual = np.outer(along, forward) + np.outer(across, sideways)  # (T, m)
        return np.outer(hidden, dh / size), column[:, :, None] * (dh / size), hidden[:, None] * column, residual

    def _one_output(self, times):
        """Arrays of Vectors for one output."""
        dh, v, delta = self.hidden_difference, self.decoder[0], self.target_difference[0]  # (H,), (H,)
        x, alpha, beta = self.input_distance, self.encoder_rate, self.decoder_rate
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            k, upwards, sideways = 0.5 * np.sqrt(alpha) * np.sqrt(beta) * np.sqrt(x), np.sqrt(alpha * x), np.sqrt(beta)
            plus, minus = dh / upwards + v / sideways, dh / upwards - v / sideways  # (H,), (H,)
            kp, km = k * (plus @ plus), k * (minus @ minus)
            speed = checks.finite("hidden_difference", np.sqrt(delta**2 + kp * km))  # rate of x is 2k times this
            upper, lower = speed + abs(delta), kp * km / (speed + abs(delta)) if speed > 0 else 0.0
            upper, lower = (upper, lower) if delta >= 0 else (lower, upper)  # speed ± Δ, without cancellation
            fade = np.exp(-2 * k * speed * times)  # (T,)
            elapsed = k * times if speed == 0 else -np.expm1(-2 * k * speed * times) / (2 * speed)  # (T,)
        # x = numerator / denominator, both solutions of one linear equation and divided by e^{k·speed·t}
        numerator = _mobius(fade, elapsed, speed, upper, lower, km, delta)  # (T,)
        denominator = _mobius(fade, elapsed, speed, lower, upper, kp, -delta)  # (T,)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            growth = np.sqrt(numerator / denominator) if kp > 0 else np.zeros(times.size)  # (T,)
            shrinking = np.sqrt(denominator / numerator) if km > 0 else np.zeros(times.size)  # (T,)
            residual = (v @ dh - delta) * (fade / numerator) / denominator  # (T,)
        if not (np.isfinite(growth).all() and np.isfinite(shrinking).all()):
            checks.fail("times", "stay where the solution is inside the floating-point range", times)
        plus, minus = np.outer(growth, plus) / 2, np.outer(shrinking, minus) / 2  # (T, H), (T, H)
        hidden, row = upwards * (plus + minus), sideways * (plus - minus)  # (T, H), (T, H)
        output = np.einsum("th,th->t", hidden, row)  # (T,)
        if (km == 0 and delta <= 0) or (kp == 0 and delta >= 0):  # the saddle: nothing is learned, both quotients fade
            residual = output - delta  # (T,)
        return hidden, row[:, None, :], output[:, None], residual[:, None]


def _mobius(fade, elapsed, speed, near, far, push, drift):
    """e^{-k·speed·t} (cosh + (drift + push) sinh/speed), near, far = speed ± drift, as a sum of positive terms."""
    if far <= push:
        return (1 + fade) / 2 + elapsed * (drift + push)
    return ((near + push) + fade * (far - push)) / (2 * speed)

"""The numbers behind :mod:`lib.representations.two_points` and the modules beside it: checks, and the closed form."""

from typing import NamedTuple

import numpy as np

from lib.common import checks

_EPS = np.finfo(float).eps


class Modes(NamedTuple):
    """The start in the coordinates in which the flow is linear up to a common factor, and what drives it."""

    k: float  # ½√(αβX)
    gap: float  # D = √Y
    coupling: float  # κ = kD
    tilt: float  # μ = βA_high/4
    rate: float  # λ = √(μ² + κ²)
    cos: float  # upper eigenvector (cos, sin) of ((μ, κ), (κ, -μ))
    sin: float
    s: float  # ŝ = ‖dh‖/√(αX)
    p: float  # p̂: dy/‖dh‖ along Δ, over √β
    q: float  # q̂: the same across Δ, >= 0
    miss: float  # (dy - Δ)·Δ/D

    @property
    def growing(self):
        """Component of the start along the upper eigenvector."""
        return self.cos * self.s + self.sin * self.p

    @property
    def decaying(self):
        """Component along the lower one, (-sin, cos)."""
        return self.cos * self.p - self.sin * self.s


class Solution(NamedTuple):
    """The closed form at T times."""

    s: np.ndarray  # (T,)  ŝ
    p: np.ndarray  # (T,)  p̂
    q: np.ndarray  # (T,)  q̂
    along: np.ndarray  # (T,)  part of dy - Δ along Δ
    across: np.ndarray  # (T,)  and across it


def positive(**given):
    """The given numbers, all > 0, in the order of their names; NumPy's, which overflow to infinity."""
    return tuple(np.float64(checks.number(name, value, above=0)) for name, value in given.items())


def constants(input_distance, encoder_rate, decoder_rate):
    """X, α and β."""
    return positive(input_distance=input_distance, encoder_rate=encoder_rate, decoder_rate=decoder_rate)


def checked_state(name, state, *, ndim=None, moving=True):
    """`state` as an array (..., 3) of a, b, w with b >= 0 and a > 0, or a >= 0 where nothing is divided by it."""
    state = checks.array(name, state, ndim=ndim)  # (..., 3)
    if state.ndim == 0 or state.shape[-1] != 3 or state.size == 0:
        checks.fail(name, "hold a, b, w along its last axis", f"shape {state.shape}")
    a, b = state[..., 0], state[..., 1]  # (...), (...)
    if np.any(a < 0) or (moving and np.any(a == 0)) or np.any(b < 0):
        checks.fail(name, f"have a {'>' if moving else '>='} 0 and b >= 0", state)
    return state


def bounded_state(name, state, target_distance, *, ndim=None, moving=True):
    """(state (..., 3), Y) as above, with |b - w| <= √(bY) up to rounding."""
    state = checked_state(name, state, ndim=ndim, moving=moving)  # (..., 3)
    squared = checks.number("target_distance", target_distance, at_least=0)
    _, b, w = np.moveaxis(state, -1, 0)  # (...), (...)
    bound = (1 + 1e-9) * np.sqrt(b) * np.sqrt(squared)  # (...)
    if np.any(np.abs(b - w) > bound + 16 * _EPS * (b + np.abs(w))):
        checks.fail(name, "obey (b - w)² <= bY, with Y = target_distance", state)
    return state, squared


def checked_modes(start, input_distance, target_distance, encoder_rate, decoder_rate):
    """The start as :class:`Modes`, after checks of all arguments."""
    state, squared = bounded_state("start", start, target_distance, ndim=1)  # (3,)
    x, alpha, beta = constants(input_distance, encoder_rate, decoder_rate)
    return modes(state, x, squared, alpha, beta)


def modes(start, x, squared, alpha, beta):
    """The start, already checked, as :class:`Modes`."""
    a, b, w = start
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap, k = np.sqrt(squared), 0.5 * np.sqrt(alpha) * np.sqrt(beta) * np.sqrt(x)
        along = (b - w) / gap if gap > 0 else 0.0  # dy·Δ/D
        across = b - along**2
        rounding = 16 * _EPS * (b + (b + abs(w)) * abs(along) / gap) if gap > 0 else 0.0
        if across <= rounding:
            across = 0.0  # equality in (b - w)² <= bY: dy is parallel to Δ, as it always is for one output
        tilt, coupling = 0.25 * (beta * a - alpha * x * (b / a)), k * gap
        rate = np.hypot(tilt, coupling)
        cos, sin = (rate + tilt, coupling) if tilt >= 0 else (coupling, rate - tilt)
        length = np.hypot(cos, sin)
        cos, sin = (cos / length, sin / length) if length > 0 else (1.0, 0.0)
        s, p, q = np.sqrt(a / alpha / x), along / np.sqrt(beta * a), np.sqrt(across / (beta * a))
        miss = (b - w - squared) / gap if gap > 0 else 0.0
    found = Modes(k, gap, coupling, tilt, rate, cos, sin, s, p, q, miss)
    if not np.isfinite(found).all() or k == 0 or s == 0:
        checks.fail("start", "keep rates and scaled distances inside the floating-point range", start)
    return found


def _elapsed(rate, times):
    """∫ e^{-2 rate t} dt from 0, (T,)."""
    return times if rate == 0 else -np.expm1(-2 * rate * times) / (2 * rate)


def solve(times, m):
    """The closed form at `times` (T,) as a :class:`Solution`; ŝ keeps its sign when dh passes through zero.

    Divided by the fastest exponential present nothing overflows, and nothing cancels for a start with dy·Δ >= 0.
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
    found = Solution(s, p, q, along, 2 * m.k * s * q)
    if not all(np.isfinite(part).all() for part in found):
        checks.fail("start", "keep the solution inside the floating-point range", tuple(m))
    return found


def states(times, m, encoder):
    """a, b, w (T, 3) of the closed form; `encoder` is αX."""
    s, p, _, along, across = solve(times, m)  # (T,) each
    forward = 2 * m.k * s * p  # (T,)  dy·Δ/D
    return np.stack([encoder * s**2, forward**2 + across**2, forward * along + across**2], axis=1)  # (T, 3)


def final_distance(high, low):
    """a_∞ of A_high (...) and A_low >= 0 (...)."""
    larger = 0.5 * np.abs(high) + np.hypot(0.5 * high, low)  # (...)
    smaller = low * np.divide(low, larger, out=np.zeros(np.shape(larger)), where=larger > 0)  # (...)
    return np.where(high >= 0, larger, smaller)[()]

"""The closed form behind :mod:`lib.representations.two_points`, on arguments that are checked."""

from typing import NamedTuple

import numpy as np

from lib.common import checks

EPS = np.finfo(float).eps


class Modes(NamedTuple):
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


def modes(start, x, y, alpha, beta):
    """The start a, b, w of two points with the distances X, Y and the rates α, β as :class:`Modes`."""
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
    found = Modes(k, coupling, tilt, rate, cos, sin, s, p, q, miss, growing, decaying)
    if not np.isfinite(found).all() or k == 0 or s == 0:
        checks.fail("start", "keep rates and scaled distances inside the floating-point range", start)
    return found


def _elapsed(rate, times):
    """∫ e^{-2 rate t} dt from 0, (T,)."""
    return times if rate == 0 else -np.expm1(-2 * rate * times) / (2 * rate)


def solve(times, m):
    """The closed form at `times` (T,): ŝ, p̂, q̂ and the parts of dy - Δ along and across Δ, five arrays (T,).

    ŝ keeps its sign when dh passes through zero.  Divided by the fastest exponential present nothing overflows, and
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

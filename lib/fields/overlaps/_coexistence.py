"""The Gaussian phase and the bottom of the action as d → ∞, behind :mod:`lib.fields.overlaps.coexistence`.

The squared length q of the weights across the teacher's direction is fixed or free.  What it costs a unit to see the
teacher at u = m²/(1 + 2q + 2m²) = ½(1 - w), relative to the prior and over d, is at fixed q = σ_w² = s

    C = (1 + 2s)(1 - w)/(4s w),    m² = (½ + s)(1/w - 1),

and with q free, of cost ½(q/s - 1 - ln q/s), at the q that makes the sum smallest,

    C = (1 - w)/(4s w) - ½ ln w,    q = s w,    m² = (½ + q)(1/w - 1).

With p = 1 for a fixed and p = 1/(1 + 2s) for a free length both are  C = (1 + 2s)/(4s) [p(1/w - 1) - (1 - p) ln w].
All functions of the bottom are of p and w, and of  k² = (1 + 2s)/(2s A).  Nothing cancels as w → 1.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root
from scipy.special import hyp2f1


def root(function, low, high, *arguments, smallest=1e-16):
    """Roots between bounds of opposite sign, side by side; where rounding makes the signs equal, the nearer bound."""
    found = find_root(function, (low, high), args=arguments, tolerances={"xatol": smallest, "xrtol": 1e-15}).x  # (...)
    nearer = np.where(np.abs(function(low, *arguments)) < np.abs(function(high, *arguments)), low, high)  # (...)
    return np.where(np.isnan(found), nearer, found)[()]  # (...)


def gaussian(lazy, pull):
    """b, 1 - b and 1 - pull b² (...) of the Gaussian phase,  (1 - b)(1 - pull b²) = lazy b,  for lazy, pull >= 0."""
    ends = np.zeros(np.shape(lazy)), 1 / np.sqrt(np.maximum(pull, 1))  # (...), (...)
    b = root(lambda b, lazy, pull: (1 - b) * (1 - pull * b**2) - lazy * b, *ends, lazy, pull, smallest=0)  # (...)
    # Of the factors the smaller one follows from the other, so that neither is a difference of equal numbers.
    attracted = 1 - pull * b**2 > 1 - b  # (...)
    left = np.where(attracted, 1 - pull * b**2, lazy * b / np.where(attracted, 1, 1 - b))  # (...)
    return b, np.where(attracted, lazy * b / np.where(attracted, left, 1), 1 - b), left


def bottom(w, p):
    """Of S = S' = 0 at w: |c|/k,  E = ∓(b - 2cu)/k,  β = ∓b/k  for c of sign ±,  and (1 - β²)/(1 - w); all (...)."""
    # ℓ = (-ln w - δ - ½δ²)/δ³ with δ = 1 - w;  E² and D are C and its slope in u, in units of (1 + 2s)/(4s)·2u and
    # (1 + 2s)/2s.
    delta, tail = 1 - w, hyp2f1(1, 3, 4, 1 - w) / 3  # (...), (...)
    above = delta * (p / w + (1 - p) * (0.5 + delta * tail))  # (...)  E² - 1
    e = np.sqrt(1 + above)  # (...)
    ratio = (p / w**2 + (1 - p) * (1 / w - 0.5 - delta * tail)) / (2 * e)  # (...)  (D - E²)/(2Eδ)
    beta = e - delta * ratio  # (...)
    curved = delta * (p / w**2 + (1 - p) * (1 / w - 2 * tail))  # (...)
    curved -= above**2 / (1 + e) ** 2 / np.where(delta > 0, delta, 1)
    return ratio, e, beta, curved / (2 * e) * (1 + beta)


def lowest(p):
    """The smallest w of a state: there r_2 = 0, β = -1."""
    return brentq(lambda w: bottom(w, p)[2] + 1, 1e-3, 1, xtol=1e-16)


def overlap(w, s, free):
    """m and q at w."""
    q = s * w if free else np.full(np.shape(w), s)[()]  # (...)
    return np.sqrt((0.5 + q) * (1 / w - 1)), q


def deepest(ratio, p):
    """w and k²/c² where S = S' = 0 at b/c = `ratio`."""
    if p == 1:
        w = (1 - ratio) / 3  # (...)
        return w, 4 * w**3
    shape = np.shape(ratio)

    def off(w, ratio):
        share, _, beta, _ = bottom(w, p)
        return -beta - ratio * share

    w = root(off, np.full(shape, lowest(p)), np.ones(shape), np.asarray(ratio))  # (...)
    return w, bottom(w, p)[0] ** -2


def first(ratio, p):
    """w and k²/c² where S' = S'' = 0 at b/c = `ratio`, with a minimum at smaller w."""
    if p == 1:
        w = (9 - 6 * ratio - np.sqrt(12 * ratio**2 - 12 * ratio + 9)) / 12  # (...)
    else:

        def off(w, r):
            pull, d = r**2 - 4 * r * (1 - w) + 3 * (1 - w) ** 2, p + (1 - p) * w  # (...), (...)
            return (2 * p + 2 * d) * pull - w * (12 * (1 - w) - 8 * r) * d

        r = np.asarray(ratio)  # (...)
        w = root(off, np.zeros(r.shape), 1 - np.where(r < 0, 0, np.maximum(r, 0.2)), r)  # (...)
    return w, w**2 * (ratio - 1 + w) * (ratio - 3 + 3 * w) / (p + (1 - p) * w)


def steepest(p):
    """Where the spinodal of c > 0 meets the line r_2 = 0: b/c there."""
    return brentq(lambda ratio: ratio**2 - first(ratio, p)[1], 1e-3, 0.999)

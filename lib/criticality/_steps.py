"""Formulas of a step map of :mod:`lib.criticality.amplitude` and of its branches, without checks."""

import numpy as np

from lib.criticality import _slopes

HALVINGS = 200  # enough for full relative precision of a root anywhere between 1e-44 and 1


def lever(x, m):
    """The factor a of s = -γ h a and its derivatives: √(1 + x²), 1 or x."""
    if m.observable == "bias":
        return 1.0, 0.0, 0.0
    if m.observable == "weight":
        return x, 1.0, 0.0
    root = np.sqrt(1 + x**2)  # (...)
    return root, x / root, root**-3


def derivatives(x, m):
    """s, s', s'' (...) of a step map at checked inputs (...); may overflow."""
    h, h1, h2 = _slopes.slopes(m.composition, m.weight * x + m.bias, m.label == 1)  # (...) each
    a, a1, a2 = lever(x, m)  # (...) each
    w, rate = m.weight, m.learning_rate
    with np.errstate(over="ignore", invalid="ignore"):
        return -rate * h * a, -rate * (w * h1 * a + h * a1), -rate * (w**2 * h2 * a + 2 * w * h1 * a1 + h * a2)


def exponents(x, m, parts):
    """k_J and k_D (...) from the derivatives at the inputs (...)."""
    s, s1, s2 = parts  # (...) each
    scale = s / s1  # (...)  two ratios in place of s s''/s'²: in an exponential tail the products underflow
    return scale * (s2 / s1), (x - m.mean) / m.deviation**2 * scale


def preimages(s, m, found):
    """Roots (B, S) of s(x) = s for s (S,), NaN where a branch does not reach; an end belongs to the branch above it."""
    lowest, highest = np.minimum(found.at_left, found.at_right), np.maximum(found.at_left, found.at_right)  # (B,), (B,)
    branch, point = np.nonzero((lowest[:, None] <= s) & (s < highest[:, None]))  # (n,), (n,)
    left, right = found.left[branch], found.right[branch]  # (n,), (n,)
    rises = (found.at_right > found.at_left)[branch]  # (n,)
    for _ in range(HALVINGS):
        middle = left + (right - left) / 2  # (n,)
        if np.all((middle == left) | (middle == right)):
            break
        beyond = (derivatives(middle, m)[0] > s[point]) == rises  # (n,)
        left, right = np.where(beyond, left, middle), np.where(beyond, middle, right)  # (n,), (n,)
    roots = np.full((found.left.size, s.size), np.nan)  # (B, S)
    roots[branch, point] = left + (right - left) / 2
    return roots


def log_normal(x, mean, deviation):
    """ln of the normal density at x (...)."""
    return -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2 * np.pi))

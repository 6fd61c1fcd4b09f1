"""Activations and the slopes of losses after them, unchecked: products of small factors, no 1 - f where f saturates."""

import numpy as np
from scipy.special import expit, ndtr

from lib.common import checks

_SQRT_2PI = np.sqrt(2 * np.pi)


def _sigmoid(y, t):
    f, g = expit(y), expit(-y)  # (...)
    return np.where(t, -g, f), f * g, f * g * (g - f), f * g * ((g - f) ** 2 - 2 * f * g)


def _tanh(y, t):
    return tuple(2.0**order * part for order, part in enumerate(_sigmoid(2 * y, t)))  # (1 + tanh y)/2 = sigmoid(2y)


def _softplus(y, t):
    f, g = expit(y), expit(-y)  # (...)
    return np.logaddexp(0, y) - t, f, f * g, f * g * (g - f)


def _elu(y, t):
    below = y < 0
    rise = np.exp(np.minimum(y, 0))  # (...)
    bent = np.where(below, rise, 0)  # (...)
    return np.where(below, np.expm1(np.minimum(y, 0)), y) - t, np.where(below, rise, 1), bent, bent


def _gelu(y, t):
    peak = np.exp(-(y**2) / 2) / _SQRT_2PI  # (...)
    return y * ndtr(y) - t, ndtr(y) + y * peak, (2 - y**2) * peak, y * (y**2 - 4) * peak


def _erf(y, t):
    peak = np.exp(-(y**2) / 2) / _SQRT_2PI  # (...)
    return np.where(t, -ndtr(-y), ndtr(y)), peak, -y * peak, (y**2 - 1) * peak


def _swish(y, t):
    f, g = expit(y), expit(-y)  # (...)
    tilt = g - f  # (...)
    return y * f - t, f * (1 + y * g), f * g * (2 + y * tilt), f * g * (tilt * (3 + y * tilt) - 2 * y * f * g)


def _arctan(y, t):
    size = 1 + y**2  # (...)
    # The angle of the point (-y, 1) is arctan y + π/2 without the cancellation at y → -∞.
    distance = np.where(t, -np.arctan2(1, y), np.arctan2(1, -y)) / np.pi  # (...)
    return distance, 1 / (np.pi * size), -2 * y / (np.pi * size**2), (6 * y**2 - 2) / (np.pi * size**3)


def _softsign(y, t):
    size = 1 + np.abs(y)  # (...)
    near, far = 0.5 / size, 1 - 0.5 / size  # (...), (...)
    distance = np.where(t, -np.where(y > 0, near, far), np.where(y > 0, far, near))  # (...)
    return distance, 0.5 / size**2, -np.sign(y) / size**3, 3 / size**4


def _relu(y, t):
    alive = np.where(y > 0, 1.0, 0.0)  # (...)
    return np.where(y > 0, y - t, 0), alive, 0 * alive, 0 * alive  # dead inputs move nothing, whatever their target


# Each gives the distance to the target, f - t, and f', f'', f''' at y (...); then the y at which it is not smooth.
ACTIVATIONS = {
    "sigmoid": (_sigmoid, ()),
    "tanh": (_tanh, ()),
    "softplus": (_softplus, ()),
    "elu": (_elu, (0.0,)),
    "gelu": (_gelu, ()),
    "erf": (_erf, ()),
    "swish": (_swish, ()),
    "arctan": (_arctan, ()),
    "softsign": (_softsign, (0.0,)),
    "relu": (_relu, (0.0,)),
}


# h, h', h'' (...) of the losses at y, t (...), t a truth value.


def squared(activation, y, t):
    d, f1, f2, f3 = ACTIVATIONS[activation][0](y, t)  # (...) each
    return 2 * d * f1, 2 * (f1 * f1 + d * f2), 2 * (3 * f1 * f2 + d * f3)


def cross_entropy(epsilon, y, t):
    if epsilon is None:
        return _sigmoid(y, t)[:3]
    alive = (y > epsilon) & (y < 1 - epsilon)
    gap = np.where(alive, np.where(t, y, 1 - y), 1)  # (...)
    sign = np.where(t, -1, 1)  # (...)
    return tuple(np.where(alive, part, 0) for part in (sign / gap, 1 / gap**2, 2 * sign / gap**3))


def power(n, y, t):
    distance = y - t  # (...)
    size, sign = np.abs(distance), np.sign(distance)  # (...), (...)
    second = 0 if n == 2 else n * (n - 1) * (n - 2) * sign * size ** (n - 3)  # (...) or one zero
    parts = n * sign * size ** (n - 1), n * (n - 1) * size ** (n - 2), second
    return tuple(np.where(y > 0, part, 0) for part in parts)


def exponential(c, y, t):
    return tuple(c**order * np.exp(c * y) for order in (1, 2, 3))


def label(name, value):
    """A class, 0 or 1, as an int."""
    found = checks.number(name, value)
    checks.fail_if(found not in (0, 1), name, "be 0 or 1", value)
    return int(found)

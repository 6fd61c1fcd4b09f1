"""Slopes of `lib.criticality.compositions`, unchecked: products of small factors, no 1 - f where f saturates."""

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


# Each gives the distance to the target, f - t, and f', f'', f'''; and each has its own y at which it is not smooth.
ACTIVATIONS = {
    "sigmoid": (_sigmoid, ()),
    "tanh": (_tanh, ()),
    "softplus": (_softplus, ()),
    "ELU": (_elu, (0.0,)),
    "GELU": (_gelu, ()),
    "erf": (_erf, ()),
    "swish": (_swish, ()),
    "arctan": (_arctan, ()),
    "softsign": (_softsign, (0.0,)),
}


def _squared(parts):
    d, f1, f2, f3 = parts  # (...) each
    return 2 * d * f1, 2 * (f1 * f1 + d * f2), 2 * (3 * f1 * f2 + d * f3)


def _clip_entropy(y, t, epsilon):
    alive = (y > epsilon) & (y < 1 - epsilon)
    gap = np.where(alive, np.where(t, y, 1 - y), 1)  # (...)
    sign = np.where(t, -1, 1)  # (...)
    return tuple(np.where(alive, part, 0) for part in (sign / gap, 1 / gap**2, 2 * sign / gap**3))


def _relu_power(y, t, n):
    distance = y - t  # (...)
    size, sign = np.abs(distance), np.sign(distance)  # (...), (...)
    second = 0 if n == 2 else n * (n - 1) * (n - 2) * sign * size ** (n - 3)  # (...) or one zero
    parts = n * sign * size ** (n - 1), n * (n - 1) * size ** (n - 2), second
    return tuple(np.where(y > 0, part, 0) for part in parts)


def slopes(composition, y, t):
    """h, h', h'' (...) of a composition at the logits y (...) and labels t, truth values; may overflow."""
    name, parameter = composition.name, composition.parameter
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if name == "sigmoid + cross-entropy":
            return _sigmoid(y, t)[:3]
        if name == "clip + cross-entropy":
            return _clip_entropy(y, t, parameter)
        if name.startswith("ReLU"):
            return _relu_power(y, t, parameter)
        if name == "exponential":
            return tuple(parameter**order * np.exp(parameter * y) for order in (1, 2, 3))
        return _squared(ACTIVATIONS[name.removesuffix(" + squared")][0](y, t))


def label(name, value):
    found = checks.number(name, value)
    checks.fail_if(found not in (0, 1), name, "be 0 or 1", value)
    return int(found)

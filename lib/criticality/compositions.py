r"""Compositions: the loss after the activation as a function H(y) of the logit y = wx + b of one neuron, one for each class t.

A step of descent on one example is  ḃ = -γ h(y),  ẇ = -γ x h(y)  with the slope h = dH/dy, so h, h' and h'' are all that the law of the
steps needs.  They are products of small factors: 1 - f of a saturated activation f is never formed by subtraction.
Source: kukleva2024, eqs. (5.1) to (5.3), (8.4), (8.20), (8.28), (8.33).  There the clipped line has
no cut, and activations beyond sigmoid, ReLU and clip are not in it.
"""

from dataclasses import dataclass

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
_ACTIVATIONS = {
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
_POWERS = {"ReLU + squared": 2.0, "ReLU + quartic": 4.0}
NAMES = (
    *("sigmoid + cross-entropy", "clip + cross-entropy", *_POWERS, "ReLU + power", "exponential"),
    *(f"{activation} + squared" for activation in _ACTIVATIONS),
)


def _squared(parts):
    d, f1, f2, f3 = parts  # (...) each
    return 2 * d * f1, 2 * (f1 * f1 + d * f2), 2 * (3 * f1 * f2 + d * f3)


def _sigmoid_entropy(y, t):
    distance, f1, f2, _ = _sigmoid(y, t)  # (...) each
    return distance, f1, f2


def _clip_entropy(y, t, epsilon):
    alive = (y > epsilon) & (y < 1 - epsilon)
    gap = np.where(alive, np.where(t, y, 1 - y), 1)  # (...)
    sign = np.where(t, -1, 1)  # (...)
    return tuple(np.where(alive, part, 0) for part in (sign / gap, 1 / gap**2, 2 * sign / gap**3))


def _relu_power(y, t, n):
    distance = y - t  # (...)
    size, sign = np.abs(distance), np.sign(distance)  # (...), (...)
    second = 0 if n == 2 else n * (n - 1) * (n - 2) * sign * size ** (n - 3)  # (...) or one zero
    return tuple(
        np.where(y > 0, part, 0) for part in (n * sign * size ** (n - 1), n * (n - 1) * size ** (n - 2), second)
    )


def _exponential(y, c):
    return tuple(c**order * np.exp(c * y) for order in (1, 2, 3))


def _slopes(composition, y, t):
    """h, h', h'' at checked y and t; may overflow."""
    name, parameter = composition.name, composition.parameter
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if name == "sigmoid + cross-entropy":
            return _sigmoid_entropy(y, t)
        if name == "clip + cross-entropy":
            return _clip_entropy(y, t, parameter)
        if name.startswith("ReLU"):
            return _relu_power(y, t, parameter)
        if name == "exponential":
            return _exponential(y, parameter)
        return _squared(_ACTIVATIONS[name.removesuffix(" + squared")][0](y, t))


def _label(name, value):
    label = checks.number(name, value)
    if label not in (0, 1):
        checks.fail(name, "be 0 or 1", value)
    return int(label)


@dataclass(frozen=True)
class Composition:
    """A composition H(y); made by :func:`named`, which checks the name and the one number that some of them have."""

    name: str
    parameter: float | None = None  # ε of clip, n of ReLU + power, c of the exponential

    def _one(self, order, y, t):
        y, labels = checks.array("y", y), checks.array("t", t)  # (...), (...)
        if not ((labels == 0) | (labels == 1)).all():
            checks.fail("t", "hold zeros and ones", t)
        try:
            y, labels = np.broadcast_arrays(y, labels == 1)  # (...), (...)
        except ValueError:
            checks.fail("t", "broadcast with y", f"shapes {labels.shape} and {y.shape}")
        result = _slopes(self, y, labels)[order]  # (...)
        if not np.isfinite(result).all():
            checks.fail("y", "keep the slope inside the floating-point range", y)
        return np.asarray(result)[()]

    def slope(self, y, t):
        """h = dH/dy at the logits y (...) for labels t, 0 or 1, of a shape that broadcasts with them."""
        return self._one(0, y, t)

    def slope1(self, y, t):
        """h' = d²H/dy²; arguments as in :meth:`slope`."""
        return self._one(1, y, t)

    def slope2(self, y, t):
        """h'' = d³H/dy³; arguments as in :meth:`slope`."""
        return self._one(2, y, t)

    def kinks(self, t):
        """The y, in rising order, at which h or one of its derivatives jumps or diverges, a tuple of floats."""
        t = _label("t", t)
        if self.name == "clip + cross-entropy":
            return (self.parameter, 1 - self.parameter)
        if self.name.startswith("ReLU"):
            return (0.0, 1.0) if t == 1 and self.parameter % 2 else (0.0,)
        return _ACTIVATIONS.get(self.name.removesuffix(" + squared"), (None, ()))[1]

    def dead(self, t):
        """The intervals (low, high) of y on which h = 0, a tuple; they reach to infinity."""
        _label("t", t)
        if self.name == "clip + cross-entropy":
            return ((-np.inf, self.parameter), (1 - self.parameter, np.inf))
        return ((-np.inf, 0.0),) if self.name.startswith("ReLU") else ()


def named(name, *, epsilon=None, power=None, rate=None):
    r"""The composition of this name, one of ``NAMES``.

    "… + squared" is H = (f(y) - t)² and "sigmoid + cross-entropy" H = -t ln f - (1-t) ln(1-f).  Bounded activations are scaled to rise
    from 0 to 1, the labels: erf is (1 + erf(y/√2))/2, arctan ½ + arctan(y)/π, softsign (1 + y/(1+|y|))/2, tanh (1 + tanh y)/2.  ELU is
    e^y - 1 for y < 0, softplus ln(1 + e^y), GELU yΦ(y) and swish y/(1 + e^{-y}).
    "clip + cross-entropy" is the cross-entropy of clip(y, ε, 1-ε), with zero slope outside (ε, 1-ε); ε = 0 leaves the poles uncut.
    "ReLU + power" is H = |y - t|ⁿ for y > 0, with zero slope below; "squared" and "quartic" are its n = 2, 4.
    "exponential" is H = e^{cy} for both classes.
    Source: kukleva2024, eqs. (8.4), (8.20), (8.28), (9.12); clip is eq. (8.33), corrected: its
    printed conditions, such as |y| < 0, are empty.

    Parameters
    ----------
    name : str           one of ``NAMES``
    epsilon : float      ε of clip, 0 <= ε < 1/2; if left out 0.01
    power : float        n of "ReLU + power", >= 2; needed there
    rate : float         c of "exponential", not zero; if left out 1

    Returns
    -------
    Composition          with ``slope``, ``slope1``, ``slope2``, ``kinks`` and ``dead``

    Raises
    ------
    ValueError           if the name is not known, a number is outside its range, or a number is given that this composition does not have

    Examples
    --------
    >>> sigmoid = named("sigmoid + cross-entropy")
    >>> float(sigmoid.slope(0.0, 0)), float(sigmoid.slope(0.0, 1)), float(sigmoid.slope(800.0, 1))
    (0.5, -0.5, -0.0)
    >>> named("clip + cross-entropy", epsilon=0.1).slope([0.05, 0.5, 0.75], 0).tolist()
    [0.0, 2.0, 4.0]
    """
    if not isinstance(name, str) or name not in NAMES:
        checks.fail("name", f"be one of {', '.join(NAMES)}", name)
    owners = {
        "epsilon": (epsilon, "clip + cross-entropy"),
        "power": (power, "ReLU + power"),
        "rate": (rate, "exponential"),
    }
    for option, (value, owner) in owners.items():
        if value is not None and name != owner:
            checks.fail(option, f"be left out: it belongs to {owner}", value)
    if name == "clip + cross-entropy":
        return Composition(name, checks.number("epsilon", 0.01 if epsilon is None else epsilon, at_least=0, below=0.5))
    if name == "ReLU + power":
        return Composition(name, checks.number("power", power, at_least=2))
    if name == "exponential":
        c = checks.number("rate", 1.0 if rate is None else rate)
        return Composition(name, c) if c != 0 else checks.fail("rate", "be a number other than zero", rate)
    return Composition(name, _POWERS.get(name))

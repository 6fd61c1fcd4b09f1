"""Compositions: the loss after the activation as a function H(y) of the logit y = wx + b, one for each class t.

Steps need  h = dH/dy.  Source: kukleva2024, eqs. (5.1) to (5.3), (8.4), (8.20), (8.28), (8.33), (9.12), where the
clipped line has no cut; activations beyond sigmoid, ReLU and clip are ours.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.criticality import _slopes

_POWERS = {"ReLU + squared": 2.0, "ReLU + quartic": 4.0}
NAMES = (
    *("sigmoid + cross-entropy", "clip + cross-entropy", *_POWERS, "ReLU + power", "exponential"),
    *(f"{activation} + squared" for activation in _slopes.ACTIVATIONS),
)


@dataclass(frozen=True)
class Composition:
    """A composition H(y); made by :func:`named`, which checks the name and the one number that some of them have."""

    name: str
    parameter: float | None = None  # ε of clip, n of ReLU + power, c of the exponential

    def _one(self, order, y, t):
        y, labels = checks.array("y", y), checks.array("t", t)  # (...), (...)
        checks.fail_if(not ((labels == 0) | (labels == 1)).all(), "t", "hold zeros and ones", t)
        y, labels = checks.broadcast(y=y, t=labels)  # (...), (...)
        result = _slopes.slopes(self, y, labels == 1)[order]  # (...)
        checks.fail_if(not np.isfinite(result).all(), "y", "keep the slope inside the floating-point range", y)
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
        t = _slopes.label("t", t)
        if self.name == "clip + cross-entropy":
            return (self.parameter, 1 - self.parameter)
        if self.name.startswith("ReLU"):
            return (0.0, 1.0) if t == 1 and self.parameter % 2 else (0.0,)
        return _slopes.ACTIVATIONS.get(self.name.removesuffix(" + squared"), (None, ()))[1]

    def dead(self, t):
        """The intervals (low, high) of y on which h = 0, a tuple; they reach to infinity."""
        _slopes.label("t", t)
        if self.name == "clip + cross-entropy":
            return ((-np.inf, self.parameter), (1 - self.parameter, np.inf))
        return ((-np.inf, 0.0),) if self.name.startswith("ReLU") else ()


def named(name, *, epsilon=None, power=None, rate=None):
    """The composition of this name, one of ``NAMES``.

    "… + squared" is H = (f(y) - t)², "sigmoid + cross-entropy" H = -t ln f - (1-t) ln(1-f).  Bounded f rise from 0 to
    1: erf is (1 + erf(y/√2))/2, arctan ½ + arctan(y)/π, softsign (1 + y/(1+|y|))/2, tanh (1 + tanh y)/2.  ELU is e^y -
    1 for y < 0, softplus ln(1 + e^y), GELU yΦ(y), swish y/(1 + e^{-y}).  "clip + cross-entropy" is the cross-entropy of
    clip(y, ε, 1-ε), zero slope outside; ε = 0 leaves the poles.  "ReLU + power" is H = |y - t|ⁿ for y > 0, "squared",
    "quartic" n = 2, 4; "exponential" is e^{cy} for both classes.  `name` goes with its own number only: `epsilon`: ε, 0
    <= ε < 1/2, default 0.01; `power`: n >= 2; `rate`: c ≠ 0, default 1.  Returns a Composition.

    >>> named("clip + cross-entropy", epsilon=0.1).slope([0.05, 0.5, 0.75], 0).tolist()
    [0.0, 2.0, 4.0]
    """
    checks.one_of("name", name, NAMES)
    own = ("epsilon", epsilon, "clip + cross-entropy"), ("power", power, "ReLU + power"), ("rate", rate, "exponential")
    for option, value, owner in own:
        checks.fail_if(value is not None and name != owner, option, f"be left out: it belongs to {owner}", value)
    if name == "clip + cross-entropy":
        return Composition(name, checks.number("epsilon", 0.01 if epsilon is None else epsilon, at_least=0, below=0.5))
    if name == "ReLU + power":
        return Composition(name, checks.number("power", power, at_least=2))
    if name == "exponential":
        c = checks.number("rate", 1.0 if rate is None else rate)
        return Composition(name, c) if c != 0 else checks.fail("rate", "be a number other than zero", rate)
    return Composition(name, _POWERS.get(name))

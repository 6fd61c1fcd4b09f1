"""Compositions: the loss after the activation as a function H(y) of the logit y = wx + b, one for each class t.

Steps need h = dH/dy = L'(f) f' and two more derivatives, by the chain rule.  An activation gives f *and* 1 - f, so that
the distance to either target keeps its digits where f saturates.  Source: kukleva2024, eqs. (5.1) to (5.3), (8.4),
(8.20), (8.28), (8.33), (9.12), where the clipped line has no cut; activations beyond sigmoid, ReLU and clip are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, ndtr

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

_SQRT_2PI = np.sqrt(2 * np.pi)


def _sigmoid(y):
    f, g = expit(y), expit(-y)  # (...)
    return f, g, f * g, f * g * (g - f), f * g * ((g - f) ** 2 - 2 * f * g)


def _tanh(y):
    f, g, *slopes = _sigmoid(2 * y)  # (1 + tanh y)/2 = sigmoid(2y)
    return f, g, *(2.0**order * part for order, part in enumerate(slopes, 1))


def _softplus(y):
    f, (h, _, h1, h2, _) = np.logaddexp(0, y), _sigmoid(y)  # (...)
    return f, 1 - f, h, h1, h2


def _elu(y):
    rise = np.exp(np.minimum(y, 0))  # (...)
    f, bent = np.where(y < 0, np.expm1(np.minimum(y, 0)), y), np.where(y < 0, rise, 0)  # (...), (...)
    return f, 1 - f, rise, bent, bent


def _gelu(y):
    f, peak = y * ndtr(y), np.exp(-(y**2) / 2) / _SQRT_2PI  # (...), (...)
    return f, 1 - f, ndtr(y) + y * peak, (2 - y**2) * peak, y * (y**2 - 4) * peak


def _erf(y):
    peak = np.exp(-(y**2) / 2) / _SQRT_2PI  # (...)
    return ndtr(y), ndtr(-y), peak, -y * peak, (y**2 - 1) * peak


def _swish(y):
    s, _, s1, s2, s3 = _sigmoid(y)  # (...) each
    return y * s, 1 - y * s, s + y * s1, 2 * s1 + y * s2, 3 * s2 + y * s3


def _arctan(y):
    size = np.pi * (1 + y**2)  # (...)
    # The angle of the point (-y, 1) is arctan y + π/2 without the cancellation at y → -∞.
    parts = np.arctan2(1, -y) / np.pi, np.arctan2(1, y) / np.pi, 1 / size  # (...) each
    return *parts, -2 * np.pi * y / size**2, (6 * y**2 - 2) * np.pi**2 / size**3


def _softsign(y):
    size = 1 + np.abs(y)  # (...)
    near, far = 0.5 / size, 1 - 0.5 / size  # (...), (...)
    parts = np.where(y > 0, far, near), np.where(y > 0, near, far), 0.5 / size**2  # (...) each
    return *parts, -np.sign(y) / size**3, 3 / size**4


def _line(y):
    return y, 1 - y, 1.0, 0.0, 0.0


# f, 1 - f, f', f'', f''' (...) at the logits y (...), and the y at which they are not smooth.
_ACTIVATIONS = {
    "sigmoid": (_sigmoid, ()),
    "tanh": (_tanh, ()),
    "softplus": (_softplus, ()),
    "elu": (_elu, (0.0,)),
    "gelu": (_gelu, ()),
    "erf": (_erf, ()),
    "swish": (_swish, ()),
    "arctan": (_arctan, ()),
    "softsign": (_softsign, (0.0,)),
    "relu": (_line, (0.0,)),  # where it is not dead
    "clip": (_line, ()),
    "linear": (_line, ()),
}
LOSSES = {  # that each activation goes with
    **dict.fromkeys(_ACTIVATIONS, ("squared",)),
    "sigmoid": ("squared", "cross_entropy"),
    "relu": ("squared", "power"),
    "clip": ("cross_entropy",),
    "linear": ("exponential",),
}


@dataclass(frozen=True)
class Composition:
    """A loss after an activation,  H(y) = L(f(y), t).

    "squared" is (f - t)², "power" |f - t|ⁿ, "cross_entropy" -t ln f - (1-t) ln(1-f), "exponential" e^{cf} for both
    classes.  Activations that rise from 0 to 1: sigmoid, tanh: (1 + tanh y)/2, erf: (1 + erf(y/√2))/2, arctan: ½ +
    arctan(y)/π, softsign: (1 + y/(1+|y|))/2; others: relu, elu: e^y - 1 for y < 0, softplus: ln(1 + e^y), gelu: yΦ(y),
    swish: y/(1 + e^{-y}), clip: clip(y, ε, 1-ε), of zero slope outside, linear.  kukleva2024, eqs. (8.4) to (9.12).

    Parameters
    ----------
    activation : str or callable
        A key of ``LOSSES``; or a function of one's own, which takes logits y (...) and returns f, f', f'', f''' there,
        (...) each, by hand, by SymPy or by torch.
    loss : str, optional
        By default "squared".  One of ``LOSSES[activation]``: each activation but clip and linear goes with "squared",
        sigmoid and clip with "cross_entropy", relu with "power", linear with "exponential".  A function of one's own
        goes with all but "power", with "cross_entropy" where 0 < f < 1.
    epsilon : float, optional
        ε of clip, 0 <= ε < 1/2, by default 0.01; 0 leaves the poles.
    power : float, optional
        n >= 2 of "power".
    rate : float, optional
        c ≠ 0 of "exponential", by default 1.
    corners : array_like (n,), optional
        Of a function of one's own: the y at which it is not smooth.

    Examples
    --------
    >>> Composition("clip", "cross_entropy", epsilon=0.1).slope([0.05, 0.5, 0.75], 0).tolist()
    [0.0, 2.0, 4.0]
    >>> Composition("relu", "power", power=4).slope(2.0, 0), Composition("linear", "exponential", rate=2).slope(0.0, 0)
    (32.0, 2.0)
    >>> Composition(lambda y: (np.abs(y), np.sign(y), 0 * y, 0 * y), corners=[0.0]).slope(-3.0, 1)
    -4.0
    """

    activation: str | Callable
    loss: str = "squared"
    epsilon: float | None = None
    power: float | None = None
    rate: float | None = None
    corners: tuple = field(default=(), repr=False)

    def __post_init__(self):
        name, own = self.activation, callable(self.activation)
        if not own:
            checks.one_of("activation", name, LOSSES)
        checks.one_of("loss", self.loss, ("squared", "cross_entropy", "exponential") if own else LOSSES[name])
        for option, owner in (("epsilon", "clip"), ("power", "power"), ("rate", "exponential")):
            value, other = getattr(self, option), owner not in (name, self.loss)
            checks.fail_if(value is not None and other, option, f"be left out: it belongs to {owner}", value)
        if own:
            checks.keep(self, corners=tuple(np.sort(checks.array("corners", self.corners, ndim=1)).tolist()))
        checks.fail_if(self.corners != () and not own, "corners", f"be left out: {name} has its own", self.corners)
        if name == "clip":
            epsilon = 0.01 if self.epsilon is None else self.epsilon
            checks.keep(self, epsilon=checks.number("epsilon", epsilon, at_least=0, below=0.5))
        if self.loss == "power":
            checks.keep(self, power=checks.number("power", self.power, at_least=2))
        if self.loss == "exponential":
            checks.keep(self, rate=checks.number("rate", 1.0 if self.rate is None else self.rate))
            checks.fail_if(self.rate == 0, "rate", "be a number other than zero", self.rate)

    def _activation(self, y):
        if not callable(self.activation):
            return _ACTIVATIONS[self.activation][0](y)
        f, *slopes = self.activation(y)
        return f, 1 - f, *slopes

    def _loss(self, f, rest, t):
        """L', L'', L''' (...) by the activation f, with `rest` = 1 - f."""
        distance, sign = np.where(t, -rest, f), np.where(t, -1, 1)  # (...), (...)
        if self.loss == "squared":
            return 2 * distance, 2.0, 0.0
        if self.loss == "cross_entropy":
            gap = np.where(t, f, rest)  # (...)
            return sign / gap, 1 / gap**2, 2 * sign / gap**3
        if self.loss == "exponential":
            return tuple(self.rate**order * np.exp(self.rate * f) for order in (1, 2, 3))
        n, size, sign = self.power, np.abs(distance), np.sign(distance)  # (...), (...)
        third = 0.0 if n == 2 else n * (n - 1) * (n - 2) * sign * size ** (n - 3)  # (...) or one zero
        return n * sign * size ** (n - 1), n * (n - 1) * size ** (n - 2), third

    def _slopes(self, y, t):
        """h, h', h'' (...) at the logits y (...) and labels t, truth values; may overflow."""
        y, t = np.asarray(y), np.asarray(t)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            f, rest, f1, f2, f3 = self._activation(y)  # (...) each
            if self.activation == "sigmoid" and self.loss == "cross_entropy":  # f'/(1 - f) may be 0/0
                return np.where(t, -rest, f), f1, f2
            one, two, three = self._loss(f, rest, t)  # (...) each
            found = one * f1, two * f1**2 + one * f2, three * f1**3 + 3 * two * f1 * f2 + one * f3
            dead = [(low <= y) & (y <= high) for low, high in self.dead(0)]  # the same for both classes
            return tuple(np.where(np.any(dead, axis=0), 0, part) for part in found) if dead else found

    def slope(self, y: float | ArrayLike, t: int | ArrayLike, *, order: int = 0) -> float | Array["..."]:
        """The slope  h = dH/dy,  or its derivative  h' = d²H/dy²  or  h'' = d³H/dy³.

        Parameters
        ----------
        y, t : float or array_like (...)
            Logits and their labels, 0 or 1, which broadcast.
        order : int, optional
            0, the default, 1 or 2: how often h is differentiated.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Composition("relu").slope([-1.0, 2.0], [1, 1], order=0).tolist()
        [0.0, 2.0]
        >>> Composition("sigmoid", "cross_entropy").slope(0.0, 1, order=1)
        0.25
        """
        y, labels = checks.array("y", y), checks.array("t", t)  # (...), (...)
        checks.fail_if(not ((labels == 0) | (labels == 1)).all(), "t", "hold zeros and ones", t)
        y, labels = checks.broadcast(y=y, t=labels)  # (...), (...)
        order = checks.integer("order", order, at_least=0)
        checks.fail_if(order > 2, "order", "be 0, 1 or 2", order)
        result = np.broadcast_to(self._slopes(y, labels == 1)[order], y.shape)  # (...)
        checks.fail_if(not np.isfinite(result).all(), "y", "keep the slope inside the floating-point range", y)
        return checks.plain(result.copy())

    def kinks(self, t: int) -> tuple:
        """Where h or one of its derivatives jumps or diverges.

        Parameters
        ----------
        t : int
            Label, 0 or 1.

        Returns
        -------
        tuple of float
            y, in rising order.

        Examples
        --------
        >>> Composition("relu", "power", power=3).kinks(1)
        (0.0, 1.0)
        """
        t = _label("t", t)
        if self.activation == "clip":
            return (self.epsilon, 1 - self.epsilon)
        if self.loss == "power" and t == 1 and self.power % 2:
            return (0.0, 1.0)
        return self.corners if callable(self.activation) else _ACTIVATIONS[self.activation][1]

    def dead(self, t: int) -> tuple:
        """The intervals of y on which h = 0, out to infinity.

        Parameters
        ----------
        t : int
            Label, 0 or 1.

        Returns
        -------
        tuple of (float, float)

        Examples
        --------
        >>> Composition("clip", "cross_entropy", epsilon=0.1).dead(0)
        ((-inf, 0.1), (0.9, inf))
        """
        _label("t", t)
        if self.activation == "clip":
            return ((-np.inf, self.epsilon), (1 - self.epsilon, np.inf))
        return ((-np.inf, 0.0),) if self.activation == "relu" else ()


def _label(name, value):
    """A class, 0 or 1, as an int."""
    found = checks.number(name, value)
    checks.fail_if(found not in (0, 1), name, "be 0 or 1", value)
    return int(found)

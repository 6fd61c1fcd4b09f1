"""Compositions: the loss after the activation as a function H(y) of the logit y = wx + b, one for each class t.

Steps need h = dH/dy.  Source: kukleva2024, eqs. (5.1) to (5.3), (8.4), (8.20), (8.28), (8.33), (9.12), where the
clipped line has no cut; activations beyond sigmoid, ReLU and clip are ours.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.criticality import _activations

LOSSES = {  # that each activation goes with
    **dict.fromkeys(_activations.ACTIVATIONS, ("squared",)),
    "sigmoid": ("squared", "cross_entropy"),
    "relu": ("squared", "power"),
    "clip": ("cross_entropy",),
    "linear": ("exponential",),
}


@dataclass(frozen=True)
class Composition:
    """A loss after an activation,  H(y) = L(f(y), t).

    "squared" is (f - t)², "power" |f - t|ⁿ, "cross_entropy" -t ln f - (1-t) ln(1-f), "exponential" e^{cy} for both
    classes.  Activations that rise from 0 to 1: sigmoid, tanh: (1 + tanh y)/2, erf: (1 + erf(y/√2))/2, arctan: ½ +
    arctan(y)/π, softsign: (1 + y/(1+|y|))/2; others: relu, elu: e^y - 1 for y < 0, softplus: ln(1 + e^y), gelu: yΦ(y),
    swish: y/(1 + e^{-y}), clip: clip(y, ε, 1-ε), of zero slope outside, linear.  kukleva2024, eqs. (8.4) to (9.12).

    Parameters
    ----------
    activation, loss : str
        A key of ``LOSSES`` and one of its losses: each activation but clip and linear goes with "squared", sigmoid and
        clip with "cross_entropy", relu with "power", linear with "exponential".
    epsilon : float, optional
        ε of clip, 0 <= ε < 1/2, by default 0.01; 0 leaves the poles.
    power : float, optional
        n >= 2 of "power".
    rate : float, optional
        c ≠ 0 of "exponential", by default 1.

    Examples
    --------
    >>> Composition("clip", "cross_entropy", epsilon=0.1).slope([0.05, 0.5, 0.75], 0).tolist()
    [0.0, 2.0, 4.0]
    >>> Composition("relu", "power", power=4).slope(2.0, 0), Composition("linear", "exponential", rate=2).slope(0.0, 0)
    (32.0, 2.0)
    """

    activation: str
    loss: str = "squared"
    epsilon: float | None = None
    power: float | None = None
    rate: float | None = None

    def __post_init__(self):
        name = checks.one_of("activation", self.activation, LOSSES)
        checks.one_of("loss", self.loss, LOSSES[name])
        for option, owner in (("epsilon", "clip"), ("power", "power"), ("rate", "exponential")):
            value, other = getattr(self, option), owner not in (name, self.loss)
            checks.fail_if(value is not None and other, option, f"be left out: it belongs to {owner}", value)
        if name == "clip":
            epsilon = 0.01 if self.epsilon is None else self.epsilon
            checks.keep(self, epsilon=checks.number("epsilon", epsilon, at_least=0, below=0.5))
        if self.loss == "power":
            checks.keep(self, power=checks.number("power", self.power, at_least=2))
        if self.loss == "exponential":
            checks.keep(self, rate=checks.number("rate", 1.0 if self.rate is None else self.rate))
            checks.fail_if(self.rate == 0, "rate", "be a number other than zero", self.rate)

    def _slopes(self, y, t):
        """h, h', h'' (...) at the logits y (...) and labels t, truth values; may overflow."""
        function, own = {
            "squared": (_activations.squared, self.activation),
            "cross_entropy": (_activations.cross_entropy, self.epsilon),
            "power": (_activations.power, self.power),
            "exponential": (_activations.exponential, self.rate),
        }[self.loss]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(own, y, t)

    def _one(self, order, y, t):
        y, labels = checks.array("y", y), checks.array("t", t)  # (...), (...)
        checks.fail_if(not ((labels == 0) | (labels == 1)).all(), "t", "hold zeros and ones", t)
        y, labels = checks.broadcast(y=y, t=labels)  # (...), (...)
        result = np.asarray(self._slopes(y, labels == 1)[order])  # (...)
        checks.fail_if(not np.isfinite(result).all(), "y", "keep the slope inside the floating-point range", y)
        return checks.plain(result)

    def slope(self, y: float | ArrayLike, t: int | ArrayLike) -> float | Array["..."]:
        """The slope  h = dH/dy.

        Parameters
        ----------
        y, t : float or array_like (...)
            Logits and their labels, 0 or 1, which broadcast.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Composition("relu").slope([-1.0, 2.0], [1, 1]).tolist()
        [0.0, 2.0]
        """
        return self._one(0, y, t)

    def slope1(self, y: float | ArrayLike, t: int | ArrayLike) -> float | Array["..."]:
        """Its derivative,  h' = d²H/dy².

        Parameters
        ----------
        y, t : float or array_like (...)
            Logits and their labels, 0 or 1, which broadcast.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Composition("sigmoid", "cross_entropy").slope1([0.0], [1]).tolist()
        [0.25]
        """
        return self._one(1, y, t)

    def slope2(self, y: float | ArrayLike, t: int | ArrayLike) -> float | Array["..."]:
        """Its second derivative,  h'' = d³H/dy³.

        Parameters
        ----------
        y, t : float or array_like (...)
            Logits and their labels, 0 or 1, which broadcast.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Composition("linear", "exponential", rate=2.0).slope2([0.0], [1]).tolist()
        [8.0]
        """
        return self._one(2, y, t)

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
        t = _activations.label("t", t)
        if self.activation == "clip":
            return (self.epsilon, 1 - self.epsilon)
        if self.loss == "power" and t == 1 and self.power % 2:
            return (0.0, 1.0)
        return _activations.ACTIVATIONS.get(self.activation, (None, ()))[1]

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
        _activations.label("t", t)
        if self.activation == "clip":
            return ((-np.inf, self.epsilon), (1 - self.epsilon, np.inf))
        return ((-np.inf, 0.0),) if self.activation == "relu" else ()

r"""The step of one neuron as a function of its input: signed amplitude, its derivatives and its local exponents.

One example (x, t) moves the parameters of the neuron  y = wx + b  by  ḃ = -γ h(y),  ẇ = x ḃ.  The amplitude  s(x) = -γ h(wx + b) √(1 + x²)
is the length of that step with the sign of ḃ; :func:`step_map` can look at ḃ or ẇ alone in its place.  The density of steps is
p_s = p_x/|s'|, and its slope  k = -d ln p_s/d ln|s|  splits into a part of the map alone and a part of the data (:func:`exponents`).
Source: kukleva2024, eqs. (5.2) to (5.4), (8.2), (8.3); the sign and the exponents are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.criticality import compositions

OBSERVABLES = ("step", "bias", "weight")


@dataclass(frozen=True)
class StepMap:
    """The map x → s of one class and the density of its inputs; made by :func:`step_map`."""

    composition: compositions.Composition
    weight: float  # w
    bias: float  # b
    label: int  # t
    mean: float  # of x
    deviation: float  # of x
    learning_rate: float  # γ
    observable: str


def step_map(composition, weight, bias, label, *, mean=None, deviation=0.25, learning_rate=1.0, observable="step"):
    r"""One class of a neuron: what the other functions need to know of the map x → s and of the inputs  x ~ N(mean, deviation²).

    Source: kukleva2024, eqs. (5.1) to (5.3), (8.2), (8.3).

    Parameters
    ----------
    composition : Composition    see :func:`lib.criticality.compositions.named`
    weight : float               w, not zero
    bias : float                 b
    label : int                  t, 0 or 1
    mean : float                 of x; if left out t
    deviation : float            standard deviation of x, > 0
    learning_rate : float        γ > 0; s is proportional to it
    observable : str             "step" for s = -γh√(1+x²), "bias" for ḃ = -γh, "weight" for ẇ = -γhx

    Returns
    -------
    StepMap

    Examples
    --------
    >>> step_map(compositions.named("ReLU + squared"), 0.9, 0.0, 1).mean
    1.0
    """
    if not isinstance(composition, compositions.Composition):
        checks.fail("composition", "be made by lib.criticality.compositions.named", composition)
    weight, bias = checks.number("weight", weight), checks.number("bias", bias)
    if weight == 0:
        checks.fail("weight", "be a number other than zero", weight)
    label = compositions._label("label", label)
    mean = float(label) if mean is None else checks.number("mean", mean)
    deviation, rate = (
        checks.number(n, v, above=0) for n, v in (("deviation", deviation), ("learning_rate", learning_rate))
    )
    if not isinstance(observable, str) or observable not in OBSERVABLES:
        checks.fail("observable", f"be one of {', '.join(OBSERVABLES)}", observable)
    return StepMap(composition, weight, bias, label, mean, deviation, rate, observable)


def _checked(m):
    if not isinstance(m, StepMap):
        checks.fail("step_map", "be made by lib.criticality.amplitude.step_map", m)
    return m


def _lever(x, m):
    """The factor a of s = -γ h a and its derivatives: √(1 + x²), 1 or x."""
    if m.observable == "bias":
        return 1.0, 0.0, 0.0
    if m.observable == "weight":
        return x, 1.0, 0.0
    root = np.sqrt(1 + x**2)  # (...)
    return root, x / root, root**-3


def _derivatives(x, m):
    h, h1, h2 = compositions._slopes(m.composition, m.weight * x + m.bias, m.label == 1)  # (...) each
    a, a1, a2 = _lever(x, m)  # (...) each
    w, rate = m.weight, m.learning_rate
    with np.errstate(over="ignore", invalid="ignore"):
        return -rate * h * a, -rate * (w * h1 * a + h * a1), -rate * (w**2 * h2 * a + 2 * w * h1 * a1 + h * a2)


def _exponents(x, m, parts):
    s, s1, s2 = parts  # (...) each
    scale = s / s1  # (...)  two ratios in place of s s''/s'²: in an exponential tail the products underflow
    return scale * (s2 / s1), (x - m.mean) / m.deviation**2 * scale


def derivatives(x, step_map):
    r"""The signed amplitude and its derivatives,  s,  s' = -γ(wh'a + ha'),  s'' = -γ(w²h''a + 2wh'a' + ha'')  with  a = √(1 + x²).

    Source: kukleva2024, eqs. (5.3), (8.12), (8.31), (8.41), corrected: two printed terms are wrong.

    Parameters
    ----------
    x : array (...)             inputs
    step_map : StepMap

    Returns
    -------
    (array, array, array)       s, s', s'', each of the shape of `x`; zero at dead inputs

    Raises
    ------
    ValueError                  if an argument is outside its range, or the result is too large for a number

    Examples
    --------
    >>> linear = step_map(compositions.named("ReLU + squared"), 1.0, 0.0, 0, observable="bias")
    >>> [float(part) for part in derivatives(0.25, linear)]  # s = -2x
    [-0.5, -2.0, -0.0]
    """
    m, x = _checked(step_map), checks.array("x", x)  # (...)
    results = tuple(np.broadcast_to(part, x.shape).copy()[()] for part in _derivatives(x, m))  # (...) each
    if not all(np.isfinite(part).all() for part in results):
        checks.fail("x", "keep the amplitude inside the floating-point range", x)
    return results


def amplitude(x, step_map):
    r"""The signed amplitude  s(x) = -γ h(wx + b) √(1 + x²)  of the step that the example x causes.

    Source: kukleva2024, eq. (5.3), whose norm is |s|.

    Parameters
    ----------
    x : array (...)       inputs
    step_map : StepMap

    Returns
    -------
    array (...)           s, in the unit of the parameters

    Raises
    ------
    ValueError            if an argument is outside its range, or the result is too large for a number

    Examples
    --------
    >>> sigmoid = compositions.named("sigmoid + cross-entropy")
    >>> amplitude([0.0, 0.5], step_map(sigmoid, 16.0, -8.0, 0)).round(6).tolist()
    [-0.000335, -0.559017]
    """
    return derivatives(x, step_map)[0]


def exponents(x, step_map):
    r"""The local exponents at the input x: of the map,  k_J = s s''/s'²,  and of the data,  k_D = (x - mean)/deviation² · s/s'.

    Their sum is  k = -d ln p_s/d ln|s|  of the branch through x alone; see :func:`lib.criticality.step_density.exponent` for several.
    Source: not in the source, kukleva2024, whose red lines have the slope -k_J and whose blue curves the slope -k.

    Parameters
    ----------
    x : array (...)       inputs, neither dead nor on a fold nor on a zero of s of higher order: there s' = 0
    step_map : StepMap

    Returns
    -------
    (array, array)        k_J and k_D, of the shape of `x`

    Raises
    ------
    ValueError            if an argument is outside its range, or s'(x) = 0

    Examples
    --------
    >>> pure = step_map(compositions.named("exponential"), 2.0, 0.0, 0, observable="bias")
    >>> [float(part) for part in exponents(0.25, pure)]  # k_D = x/(0.25² w)
    [1.0, 2.0]
    """
    parts = derivatives(x, step_map)  # (...) each
    if np.any(parts[1] == 0):
        checks.fail("x", "avoid dead inputs and folds, where s' = 0", x)
    return _exponents(np.asarray(x, dtype=float), step_map, parts)  # (...), (...)

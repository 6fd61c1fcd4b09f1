r"""Closed forms for the steps of one neuron: the exact law of |ḃ|/γ for five compositions, the edge at a fold, the tail of a pole.

With Gaussian inputs the logit y = wx + b is normal with mean m = wμ + b and deviation τ = |w|σ, and |ḃ|/γ = |h(y)| is a change of variable.
Source: kukleva2024, eqs. (8.4), (8.20), (8.28), (8.33), (8.40), (9.12) for the compositions; the laws are not in it.
"""

import numpy as np
from scipy.special import logit

from lib.common import checks
from lib.criticality import branches
from lib.criticality.amplitude import _checked, _derivatives, _lever
from lib.criticality.step_density import _log_normal

_CUBIC_EDGE = 8 / 27  # maximum of 2f²(1 - f), at f = 2/3


def _normal(y, m):
    return np.exp(_log_normal(y, m.weight * m.mean + m.bias, abs(m.weight) * m.deviation))


def _towards(m):
    return 1 if m.label == 0 else -1  # the sign of y at which a saturated neuron is wrong


def _sigmoid_entropy(v, m):
    inside = v < 1
    u = np.where(inside, v, 0.5)  # (...)
    return np.where(inside, _normal(_towards(m) * logit(u), m) / (u * (1 - u)), 0)


def _sigmoid_squared(v, m):
    inside = v < _CUBIC_EDGE
    # The roots of 2f²(1 - f) = v by the angle of the cubic, each without a difference of nearly equal numbers.
    third = 2 / 3 * np.arcsin(np.sqrt(np.where(inside, v, 0.1) * 27 / 8))  # (...)
    low = (2 * np.sin(third / 2) ** 2 + np.sqrt(3) * np.sin(third)) / 3  # (...)  f < 2/3
    rest = 4 / 3 * np.sin(third / 2) ** 2  # (...)  1 - f of the root f > 2/3
    with np.errstate(divide="ignore"):
        total = sum(
            _normal(_towards(m) * (np.log(f) - np.log(g)), m) / (2 * f**2 * g * np.abs(2 * g - f))  # h' = 2f²g(2g - f)
            for f, g in ((low, 1 - low), (1 - rest, rest))
        )  # (...)
    return np.where(inside, total, 0)


def _relu_power(v, m):
    n = m.composition.parameter
    u = (v / n) ** (1 / (n - 1))  # (...)
    return u / ((n - 1) * v) * sum(np.where(y > 0, _normal(y, m), 0) for y in (m.label + u, m.label - u))


def _clip_entropy(v, m):
    cut = m.composition.parameter
    y = 1 / v if m.label else 1 - 1 / v  # (...)
    return np.where((y > cut) & (y < 1 - cut), _normal(y, m) / v**2, 0)


_LAWS = {
    "sigmoid + cross-entropy": _sigmoid_entropy,
    "sigmoid + squared": _sigmoid_squared,
    "ReLU + squared": _relu_power,
    "ReLU + quartic": _relu_power,
    "ReLU + power": _relu_power,
    "clip + cross-entropy": _clip_entropy,
}


def bias_density(v, step_map):
    r"""Density of the length  v = |ḃ|/γ = |h(y)|  of the step of the bias, in closed form.

    Sigmoid + cross-entropy: v or 1 - v is logit-normal.  Sigmoid + squared: two roots of a cubic, edge at 8/27.  ReLU + power n:
    u/((n-1)v) [p_y(t+u) + p_y(t-u)],  u = (v/n)^{1/(n-1)}, parts with y <= 0 left out.  Clip + cross-entropy:  p_y(1 - 1/v)/v²
    for t = 0,  p_y(1/v)/v²  for t = 1, within the cut.
    Source: not in the source, kukleva2024.

    Parameters
    ----------
    v : array (...)       > 0
    step_map : StepMap    of one of these compositions; its observable and learning rate do not count

    Returns
    -------
    array (...)           per unit of v; infinite at an edge, zero beyond it

    Raises
    ------
    ValueError            if an argument is outside its range, or the composition is another

    Examples
    --------
    >>> from lib.criticality import amplitude, compositions
    >>> line = amplitude.step_map(compositions.named("clip + cross-entropy"), 2.0, -0.5, 0)
    >>> bias_density([0.5, 2.0, 200.0], line).round(6).tolist()  # v > 1; the cut at 1/ε = 100
    [0.0, 0.026995, 0.0]
    """
    v, m = checks.entries("v", v, above=0), _checked(step_map)  # (...)
    if m.composition.name not in _LAWS:
        checks.fail("step_map", f"have a composition among {', '.join(_LAWS)}", m.composition.name)
    return _LAWS[m.composition.name](v, m)[()]


def fold_edges(step_map):
    r"""The edges of the density at the folds of x → s:  p_s ≈ C |s - s_c|^{-1/2}  on one side,  C = p_x(x_c) √(2/|s''(x_c)|).

    Source: not in the source, kukleva2024.

    Parameters
    ----------
    step_map : StepMap

    Returns
    -------
    (array (C,), array (C,), array (C,), array (C,))    x_c; s_c; C; and the side, -1 where the two inputs have s < s_c, 1 where s > s_c

    Examples
    --------
    >>> from lib.criticality import amplitude, compositions
    >>> x, s, _, side = fold_edges(amplitude.step_map(compositions.named("sigmoid + squared"), 16.0, -8.0, 0))
    >>> x.round(3).tolist(), s.round(3).tolist(), side.tolist()
    ([0.546], [-0.337], [1.0])
    """
    m = _checked(step_map)
    x = branches.find(m).folds  # (C,)
    s, _, s2 = _derivatives(x, m)  # (C,), (C,)
    return x, s, np.exp(_log_normal(x, m.mean, m.deviation)) * np.sqrt(2 / np.abs(s2)), np.sign(s2)  # (C,) each


def pole_constant(step_map):
    r"""The constant of the tail  p_s → K/s²,  P(|S| > s) → K/s  of the clipped line + cross-entropy:  K = γ p_x(x*) √(1 + x*²)/|w|.

    The pole is at x* = (1 - b)/w for t = 0 and at -b/w for t = 1.  A cut ε ends the tail near s = γ√(1 + x*²)/ε.
    Source: kukleva2024, eqs. (8.38) to (8.40), which give the power; the constant is not in it.

    Parameters
    ----------
    step_map : StepMap    of "clip + cross-entropy"

    Returns
    -------
    float                 K, in the unit of s

    Raises
    ------
    ValueError            if the composition is another

    Examples
    --------
    >>> from lib.criticality import amplitude, compositions
    >>> line = amplitude.step_map(compositions.named("clip + cross-entropy"), 2.0, -0.5, 1, mean=0.25, observable="bias")
    >>> round(pole_constant(line), 6)  # φ(0)/0.25/2
    0.797885
    """
    m = _checked(step_map)
    if m.composition.name != "clip + cross-entropy":
        checks.fail("step_map", "have the composition clip + cross-entropy", m.composition.name)
    pole = ((1 - m.bias) if m.label == 0 else -m.bias) / m.weight
    return float(m.learning_rate * np.exp(_log_normal(pole, m.mean, m.deviation)) * abs(_lever(pole, m)[0] / m.weight))

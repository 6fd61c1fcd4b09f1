"""Probabilities of the steps of one neuron for inputs of one class: of a branch, of no step, of an amplitude below s.

With the preimages of s on every branch they are differences of the normal distribution function: exact, with no
integral over a density that diverges at folds and zeros.  `step_map` is a StepMap of `lib.criticality.amplitude`.
Source: not in kukleva2024, whose densities of eqs. (8.2), (8.3) are the data.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from lib.common import checks
from lib.criticality import _steps, amplitude, branches


def _between(low, high, mean, deviation):
    """Probability of an interval, without 1 - 1 in the upper tail."""
    a, b = (low - mean) / deviation, (high - mean) / deviation  # (...), (...)
    return np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))


def atom(step_map):
    """The probability of a step of length zero: of an input that leaves the activation dead.

    `step_map`: a StepMap.  Returns a probability, 0 for activations without dead intervals.

    >>> from lib.criticality.compositions import named
    >>> atom(amplitude.step_map(named("ReLU + squared"), 1.0, 0.0, 0))
    0.5
    """
    m = checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    y, spread = m.weight * m.mean + m.bias, abs(m.weight) * m.deviation
    return float(sum(_between(low, high, y, spread) for low, high in m.composition.dead(m.label)))


def branch_probabilities(step_map):
    """The probability of each monotone branch; with the :func:`atom` they sum to one.

    `step_map`: a StepMap.  Returns (B,), in the order of `branches.find`.

    >>> from lib.criticality.compositions import named
    >>> branch_probabilities(amplitude.step_map(named("ReLU + squared"), 1.0, 0.0, 1)).round(6).tolist()
    [0.499968, 0.5]
    """
    found = branches.find(step_map)
    return _between(found.left, found.right, step_map.mean, step_map.deviation)  # (B,)


def cumulative(s, step_map):
    """The probability of an amplitude of at most s, the atom included from s = 0 on.

    `s` (...): amplitudes; `step_map`: a StepMap.  Returns (...), rising from 0 to 1.

    >>> from lib.criticality.compositions import named
    >>> dead = amplitude.step_map(named("ReLU + squared"), 1.0, 0.0, 0, observable="bias")
    >>> cumulative([-1e-12, 0.0, 5.0], dead).round(6).tolist()
    [0.5, 1.0, 1.0]
    """
    m, found, s = step_map, branches.find(step_map), checks.array("s", s)  # (...)
    values = s.ravel()  # (S,)
    x = _steps.preimages(values, m, found)  # (B, S)
    left, right = found.left[:, None], found.right[:, None]  # (B, 1), (B, 1)
    rises = (found.at_right > found.at_left)[:, None]  # (B, 1)
    top = np.maximum(found.at_left, found.at_right)[:, None]  # (B, 1)
    below = np.where(np.isnan(x), np.where(values >= top, right - left, 0), 0)  # (B, S)
    x = np.where(np.isnan(x), np.where((below > 0) == rises, right, left), x)  # (B, S)
    below_or_above = _between(left, x, m.mean, m.deviation), _between(x, right, m.mean, m.deviation)  # (B, S) each
    total = np.where(rises, *below_or_above).sum(axis=0)  # (S,)
    return (total + np.where(values >= 0, atom(m), 0)).reshape(s.shape)[()]  # (...)


def stratified_inputs(count, step_map):
    """Inputs in the middle of `count` equally likely intervals:  x_i = mean + deviation Φ⁻¹((i + ½)/count).

    `count`: n >= 1; `step_map`: a StepMap.  Returns x (n,) in rising order.

    >>> from lib.criticality.compositions import named
    >>> stratified_inputs(3, amplitude.step_map(named("ReLU + squared"), 1.0, 0.0, 1)).round(4).tolist()
    [0.7581, 1.0, 1.2419]
    """
    count = checks.integer("count", count)
    m = checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    return m.mean + m.deviation * ndtri((np.arange(count) + 0.5) / count)  # (n,)

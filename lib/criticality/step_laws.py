"""Closed forms for the steps of one neuron: the edge at a fold and the tail of a pole.

Source: kukleva2024, eqs. (8.38) to (8.40), which give the power of the tail; the constants are not in it.
"""

from typing import NamedTuple

import numpy as np

from lib.common import checks
from lib.criticality import _steps, amplitude, branches


class FoldEdges(NamedTuple):
    """The C folds of a step map, in the order of :func:`lib.criticality.branches.find`."""

    x: np.ndarray  # (C,)  x_c
    s: np.ndarray  # (C,)  s_c
    constant: np.ndarray  # (C,)  of the density beside it
    side: np.ndarray  # (C,)  -1 where the two inputs have s < s_c, 1 where s > s_c


def fold_edges(step_map):
    """The edges at the folds of x → s:  p_s ≈ C |s - s_c|^{-1/2}  on one side,  C = p_x(x_c) √(2/|s''(x_c)|).

    `step_map`: a StepMap.  Returns FoldEdges.

    >>> from lib.criticality.compositions import named
    >>> edges = fold_edges(amplitude.step_map(named("sigmoid + squared"), 16.0, -8.0, 0))
    >>> edges.x.round(3).tolist(), edges.s.round(3).tolist(), edges.side.tolist()
    ([0.546], [-0.337], [1.0])
    """
    x = branches.find(step_map).folds  # (C,)
    s, _, s2 = _steps.derivatives(x, step_map)  # (C,), (C,)
    density = np.exp(_steps.log_normal(x, step_map.mean, step_map.deviation))  # (C,)
    return FoldEdges(x, s, density * np.sqrt(2 / np.abs(s2)), np.sign(s2))


def pole_constant(step_map):
    """The constant of the tail  p_s → K/s²,  P(|S| > s) → K/s  of a pole:  K = γ p_x(x*) √(1 + x*²)/|w|.

    The pole of the clipped line + cross-entropy is at x* = (1 - b)/w for t = 0 and at -b/w for t = 1.  A cut ε ends the
    tail near s = γ√(1 + x*²)/ε.  `step_map`: of "clip + cross-entropy".  Returns K, in the unit of s.

    >>> from lib.criticality.compositions import named
    >>> line = amplitude.step_map(named("clip + cross-entropy"), 2.0, -0.5, 1, mean=0.25, observable="bias")
    >>> round(pole_constant(line), 6)  # φ(0)/0.25/2
    0.797885
    """
    m = checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    if m.composition.name != "clip + cross-entropy":
        checks.fail("step_map", "have the composition clip + cross-entropy", m.composition.name)
    pole = ((1 - m.bias) if m.label == 0 else -m.bias) / m.weight
    density = np.exp(_steps.log_normal(pole, m.mean, m.deviation))
    return float(m.learning_rate * density * abs(_steps.lever(pole, m)[0] / m.weight))

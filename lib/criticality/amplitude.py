"""The step of one neuron as a function of its input: signed amplitude, its derivatives and its local exponents.

One example (x, t) moves  y = wx + b  by  ḃ = -γ h(y),  ẇ = x ḃ;  the density of steps is p_s = p_x/|s'|.  Source:
kukleva2024, eqs. (5.1) to (5.4), (8.2), (8.3); sign and exponents are ours.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.criticality import _slopes, _steps, compositions

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
    """One class of a neuron: the map x → s and the law of the inputs,  x ~ N(mean, deviation²).

    `composition`: of `compositions.named`; `weight`, `bias`: w ≠ 0, b; `label`: t; `mean`, `deviation`: of x, default
    mean t; `learning_rate`: γ; `observable`: "step", s = -γh√(1+x²); "bias", -γh; "weight", -γhx.  Returns a StepMap.

    >>> step_map(compositions.named("ReLU + squared"), 0.9, 0.0, 1).mean
    1.0
    """
    checks.instance("composition", composition, compositions.Composition, "as from compositions.named")
    weight, bias = checks.number("weight", weight), checks.number("bias", bias)
    checks.fail_if(weight == 0, "weight", "be a number other than zero", weight)
    label = _slopes.label("label", label)
    mean = float(label) if mean is None else checks.number("mean", mean)
    deviation = checks.number("deviation", deviation, above=0)
    rate = checks.number("learning_rate", learning_rate, above=0)
    checks.one_of("observable", observable, OBSERVABLES)
    return StepMap(composition, weight, bias, label, mean, deviation, rate, observable)


def derivatives(x, step_map):
    """The signed amplitude and its derivatives,  s,  s' = -γ(wh'a + ha'),  s'' = -γ(w²h''a + 2wh'a' + ha'').

    a = √(1 + x²), or what the observable has.  Eqs. (8.12), (8.31), (8.41) print two wrong terms.  `x` (...): inputs;
    `step_map`: a StepMap.  Returns three arrays (...), zero at dead inputs.

    >>> np.array(derivatives(0.25, step_map(compositions.named("ReLU + squared"), 1, 0, 0, observable="bias")))
    array([-0.5, -2. , -0. ])
    """
    m, x = checks.instance("step_map", step_map, StepMap, "as from amplitude.step_map"), checks.array("x", x)  # (...)
    results = tuple(np.broadcast_to(part, x.shape).copy()[()] for part in _steps.derivatives(x, m))  # (...) each
    if not all(np.isfinite(part).all() for part in results):
        checks.fail("x", "keep the amplitude inside the floating-point range", x)
    return results


def amplitude(x, step_map):
    """The signed amplitude of a `step_map` at inputs `x` (...), eq. (5.3):  -γ h(wx + b) √(1 + x²).  Returns s (...).

    >>> amplitude([0.0, 0.5], step_map(compositions.named("sigmoid + squared"), 16.0, -8.0, 0)).round(6).tolist()
    [-0.0, -0.279508]
    """
    return derivatives(x, step_map)[0]


def exponents(x, step_map):
    """Local exponents at the input x, of the map,  k_J = s s''/s'²,  of the data,  k_D = (x - mean)/deviation² · s/s'.

    Their sum is  k = -d ln p_s/d ln|s|  of this branch.  `x` (...): where s' ≠ 0; `step_map`: a StepMap.  Returns both.

    >>> np.array(exponents(0.25, step_map(compositions.named("exponential"), 2, 0, 0, observable="bias")))
    array([1., 2.])
    """
    parts = derivatives(x, step_map)  # (...) each
    checks.fail_if(np.any(parts[1] == 0), "x", "avoid dead inputs and folds, where s' = 0", x)
    return _steps.exponents(np.asarray(x, dtype=float), step_map, parts)  # (...), (...)

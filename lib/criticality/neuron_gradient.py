"""The gradient of the toy neuron y = wx + b over Gaussian classes: mean, expected Hessian, covariance, who gets none.

The input of class t is x ~ N(μ_t, σ²), with prior π_t: `means` μ (2,) differ, the `deviation` σ of both is > 0,
`priors` π (2,) are > 0 with sum 1.  A composition gives h = dH/dy (:mod:`lib.criticality.compositions`); one gradient
is ∂H/∂(w, b) = h (x, 1).  Its moments are integrated by Gauss-Legendre quadrature on pieces that are split at the kinks
of h and shrink geometrically towards them: a cut ε next to a pole costs a few pieces more and no accuracy.  Source:
kukleva2024, eqs. (5.1), (5.2), (8.2), (8.3); the moments are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.criticality import _neuron


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean gradient, expected Hessian and covariance of one gradient by (w, b)."""

    gradient: np.ndarray  # (2,)
    hessian: np.ndarray  # (2, 2)
    covariance: np.ndarray  # (2, 2)


def moments(composition, weight, bias, *, means=(0.0, 1.0), deviation=0.25, priors=(0.5, 0.5)):
    """Mean gradient g = E[h (x,1)], expected Hessian A = ∂g/∂(w,b) and covariance C of one gradient, at any parameters.

    A = E[h' (x,1)(x,1)ᵀ] plus, at each kink y = κ where h jumps by J,  J p(x_κ)/|w| (x_κ,1)(x_κ,1)ᵀ,  w x_κ + b = κ.
    `composition`: without a pole inside the data, where g would not exist; `weight`, `bias`: w, not 0, nor so small
    that wx + b hardly varies, and b; `means`, `deviation`, `priors`: μ, σ, π.  Returns Moments.

    >>> from lib.criticality import compositions
    >>> found = moments(compositions.named("sigmoid + cross-entropy"), 16.0, -8.0)
    >>> bool(np.allclose(found.gradient, 0, atol=1e-12)), bool(np.allclose(found.hessian, found.covariance))
    (True, True)
    """
    data = _neuron.checked_data(composition, means, deviation, priors)
    _neuron.refuse_poles(composition)
    weight, bias = checks.number("weight", weight), checks.number("bias", bias)
    return Moments(*_neuron.moments_of(data[0], weight, bias, *data[1:]))


def live_probability(composition, weight, bias, *, means=(0.0, 1.0), deviation=0.25):
    """Probability, in each class, that an input moves the parameters:  P(h(wx + b) ≠ 0), one minus the dead atom.

    `composition`: loss after activation; `weight`, `bias` (...): of one or many neurons, of shapes that broadcast;
    `means`, `deviation`: μ, σ.  Returns (2, ...), for classes 0 and 1.

    >>> from lib.criticality import compositions
    >>> live_probability(compositions.named("ReLU + squared"), 1.0, 0.0).round(3).tolist()
    [0.5, 1.0]
    """
    composition, means, deviation, _ = _neuron.checked_data(composition, means, deviation, (0.5, 0.5))
    weight, bias = checks.array("weight", weight), checks.array("bias", bias)  # (...), (...)
    weight, bias = checks.broadcast(weight=weight, bias=bias)  # (...), (...)
    return _neuron.live_both(composition, weight, bias, means, deviation)

r"""The gradient of the toy neuron y = wx + b over Gaussian classes: its mean, the expected Hessian, its covariance, and who gets none.

The input of class t is Gaussian, x ~ N(μ_t, σ²), with prior π_t; a composition gives h = dH/dy (:mod:`lib.criticality.compositions`).  One gradient is
∂H/∂(w, b) = h (x, 1).  Its moments are integrated by Gauss-Legendre quadrature on pieces that are split at the kinks of h and shrink
geometrically towards them, so a cut ε next to a pole costs a few pieces more and no accuracy.
Source: kukleva2024, eqs. (5.1), (5.2), (8.2), (8.3); the moments are not in the source.
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
    r"""Mean gradient g = E[h (x,1)], expected Hessian A = ∂g/∂(w,b) and covariance C of one gradient, at any parameters.

    A = E[h' (x,1)(x,1)ᵀ] plus, at each kink y = κ where h jumps by J,  J p(x_κ)/|w| (x_κ,1)(x_κ,1)ᵀ  with  w x_κ + b = κ.
    The gradient is -1/γ times the step of kukleva2024, eq. (5.2); its moments are not in the source.

    Parameters
    ----------
    composition : Composition    loss after activation
    weight : float               w; not 0, nor so small that wx + b hardly varies
    bias : float                 b
    means : array (2,)           μ_0, μ_1; different
    deviation : float            σ; > 0
    priors : array (2,)          π_0, π_1; > 0, sum 1

    Returns
    -------
    Moments                      gradient (2,), hessian (2, 2), covariance (2, 2)

    Raises
    ------
    ValueError                   if an argument is outside its range, or h has a pole inside the data, so that g does not exist

    Examples
    --------
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
    r"""Probability, in each class, that an input moves the parameters:  P(h(wx + b) ≠ 0).

    One minus the dead atom at zero step of ReLU and clipped units.  Source: not in kukleva2024.

    Parameters
    ----------
    composition : Composition    loss after activation
    weight : float or array      w, for one or many neurons (...)
    bias : float or array        b; of a shape that broadcasts with `weight`
    means : array (2,)           μ_0, μ_1; different
    deviation : float            σ; > 0

    Returns
    -------
    array (2, ...)               for classes 0 and 1

    Examples
    --------
    >>> from lib.criticality import compositions
    >>> live_probability(compositions.named("ReLU + squared"), 1.0, 0.0).round(3).tolist()
    [0.5, 1.0]
    """
    composition, means, deviation, _ = _neuron.checked_data(composition, means, deviation, (0.5, 0.5))
    weight, bias = checks.array("weight", weight), checks.array("bias", bias)  # (...), (...)
    try:
        weight, bias = np.broadcast_arrays(weight, bias)  # (...), (...)
    except ValueError:
        checks.fail("bias", "broadcast with weight", f"shapes {bias.shape} and {weight.shape}")
    return _neuron.live_both(composition, weight, bias, means, deviation)

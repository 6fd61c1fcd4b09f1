"""Units of two-layer networks, φ(u) with its slope φ'(u); the erf has not the √2 of :mod:`lib.foundations.gaussian`."""

import numpy as np
from scipy.special import erf

from lib.common import checks

ACTIVATIONS = {
    "erf": (erf, lambda u: 2 / np.sqrt(np.pi) * np.exp(-(u**2))),
    "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0).astype(float)),
    "linear": (lambda u: u, np.ones_like),
}
KERNELS = ("erf", "relu")  # those whose kernels are here in closed form


def units(activation, choices=tuple(ACTIVATIONS)):
    """φ and φ' of a checked name."""
    return ACTIVATIONS[checks.one_of("activation", activation, choices)]

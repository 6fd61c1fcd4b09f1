"""Units of two-layer networks: each activation φ(u) with its slope φ'(u), the erf without the √2 of :mod:`lib.foundations.gaussian`."""

import numpy as np
from scipy.special import erf

ACTIVATIONS = {
    "erf": (erf, lambda u: 2 / np.sqrt(np.pi) * np.exp(-(u**2))),
    "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0).astype(float)),
    "linear": (lambda u: u, np.ones_like),
}

"""What kernels, decimation and flows read of a spectrum, and sums over its tail."""

import numpy as np

from lib.common import checks
from lib.common.spectrum import Spectrum

_DECADES = 100  # spectra that reach further below their largest eigenvalue are zero there, up to rounding


def graded(value):
    """The spectrum, of a largest and a smallest eigenvalue > 0 that one computation can hold."""
    spectrum = Spectrum.read("spectrum", value)
    values = spectrum.eigenvalues  # (n,)
    if np.any((values > 0) & (values < values.max() * 10.0**-_DECADES)):
        checks.fail("spectrum", f"have eigenvalues that are zero or within {_DECADES} decades of the largest", values)
    return spectrum


def descending(value):
    """The spectrum, whose eigenvalues may not rise."""
    spectrum = Spectrum.read("spectrum", value)
    if np.any(np.diff(spectrum.eigenvalues) > 0):
        checks.fail("spectrum", "have its eigenvalues in descending order", spectrum.eigenvalues)
    return spectrum


def tails(values):
    """Σ_{k>c} v_k for every cut c = 0..n, summed from the small end, which loses no digits."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)  # (n+1,)

"""Power-law covariances for the tests of the scaling part."""

from lib.common.spectrum import Spectrum


def power_law(levels, beta):
    """Eigenvalues λ_k ∝ k^{-(1+β)} (L,) with mean one."""
    return Spectrum.power_law(levels, decay=1 + beta).normalized().eigenvalues

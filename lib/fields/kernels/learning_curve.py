"""Exponents of the learning curves of power laws, and when overfitting is benign.  Source: ringel2025talk."""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.fields.kernels._modes import graded, tails


@dataclass(frozen=True)
class PowerLaw:
    """Kernel regression on the spectrum  λ_k = k^{-a}:  scales and exponents.

    Parameters
    ----------
    decay : float
        a > 1, so that the trace is finite.

    Examples
    --------
    >>> PowerLaw(2.0).edge_exponent(ridgeless=False)
    0.5
    """

    decay: float

    def __post_init__(self):
        checks.keep(self, decay=checks.number("decay", self.decay, above=1))

    @property
    def ridgeless_amplitude(self) -> float:
        """Limit of  κP^a  without a ridge,  [(π/a)/sin(π/a)]^a,  of  P = ∫dk/(1 + κk^a)."""
        a = self.decay
        # sin(π/a) = sin(π(a - 1)/a): the smaller angle keeps its digits, as a approaches one and as it grows.
        return float((np.pi / a / np.sin(np.pi * min(1.0, a - 1) / a)) ** a)

    def learnability_edge(self, kappa: ArrayLike) -> float | Array["..."]:
        """Rank of the mode that is half learned,  k* = κ^{-1/a},  not rounded.

        Parameters
        ----------
        kappa : float or array_like
            κ > 0.

        Returns
        -------
        float or ndarray

        Examples
        --------
        >>> PowerLaw(2.0).learnability_edge(0.01)
        10.0
        """
        return checks.plain(checks.entries("kappa", kappa, above=0) ** (-1 / self.decay))

    def edge_exponent(self, *, ridgeless: bool) -> float:
        """Exponent of the learnability edge,  k* ∝ P^x:  x = 1 without a ridge, not in the source, 1/a with one.

        Parameters
        ----------
        ridgeless : bool
            Whether the unlearned modes make the ridge; else a given one dominates.

        Returns
        -------
        float

        Examples
        --------
        >>> [PowerLaw(2.0).edge_exponent(ridgeless=ridgeless) for ridgeless in (True, False)]
        [1.0, 0.5]
        """
        return 1.0 if checks.boolean("ridgeless", ridgeless) else 1 / self.decay

    def loss_exponent(self, target_decay: float, *, ridgeless: bool) -> float:
        """Exponent of the learning curve,  loss ∝ P^{-x}:  x = min(β - 1, 2a), over a where a ridge dominates.

        The first is the target's tail beyond the learnability edge, the second what the learned modes still lack.

        Parameters
        ----------
        target_decay : float
            β > 1 of the target's power,  v_k² ∝ k^{-β}.
        ridgeless : bool
            Whether the unlearned modes make the ridge; else a given one dominates.

        Returns
        -------
        float

        Examples
        --------
        >>> [PowerLaw(2.0).loss_exponent(2.5, ridgeless=ridgeless) for ridgeless in (True, False)]
        [1.5, 0.75]
        """
        edge = self.edge_exponent(ridgeless=ridgeless)
        return min(checks.number("target_decay", target_decay, above=1) - 1, 2 * self.decay) * edge

    def crossover(self, ridge: ArrayLike) -> float | Array["..."]:
        """Number of samples from which on a ridge dominates,  P ~ T^{-1/(a-1)}:  a scale, not a sharp point.

        There the unlearned variance is of order T; with fewer samples unlearned modes make the ridge.

        Parameters
        ----------
        ridge : float or array_like
            T > 0.

        Returns
        -------
        float or ndarray

        Examples
        --------
        >>> round(PowerLaw(2.0).crossover(0.01), 12)
        100.0
        """
        t = checks.entries("ridge", ridge, above=0)
        with np.errstate(over="ignore"):
            return checks.plain(checks.finite("decay", t ** (-1 / (self.decay - 1))))


def effective_ranks(spectrum: Spectrum | ArrayLike) -> tuple[Array[" n"], Array[" n"], Array[" n"]]:
    """Effective ranks of what is left beyond k modes:  r_k = Σ_{i>k} λ_i/λ_{k+1},  R_k = (Σ_{i>k} λ_i)²/Σ_{i>k} λ_i².

    Overfitting is benign if for some k far below P both are far above it (Bartlett and coauthors, 2020).

    Parameters
    ----------
    spectrum : Spectrum or array_like (n,)
        λ_k > 0, descending, with g_k.

    Returns
    -------
    count, rank, square_rank : ndarray (n,)
        k = 0, g_1, g_1 + g_2, ..., with r_k and R_k.

    Examples
    --------
    >>> [part.round(6).tolist() for part in effective_ranks(Spectrum([1.0, 0.1], [2, 100]))]
    [[0.0, 2.0], [12.0, 100.0], [48.0, 100.0]]
    """
    spectrum = graded(spectrum)
    values, counts = spectrum.eigenvalues, spectrum.multiplicities  # (n,), (n,)
    if values[-1] == 0 or np.any(np.diff(values) > 0):
        checks.fail("spectrum", "have eigenvalues > 0 and descending", values)
    scaled = values / values[0]  # (n,)
    first, second = (tails(counts * scaled**power)[:-1] for power in (1, 2))  # (n,), (n,)
    return np.append(0.0, np.cumsum(counts)[:-1]), first / scaled, first**2 / second

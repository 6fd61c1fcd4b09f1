"""How the ridge runs when the modes of a power-law kernel are integrated out, and how strong the loss stays.

For λ(Λ) = Λ^{-a}, a = 1 + α, and l = -ln Λ the ridge grows by dT/dl = Λλ(Λ).  The coupling  τ = Λλ(Λ)/T(Λ)  obeys
dτ/dl = τ(α - τ): it leaves τ = 0, where the bare ridge rules, for τ* = α, where the modes make their own ridge.  τ/4 is
the ratio of the quartic to the quadratic part of the vertex  e^{-δ²/2T}  for δ² = the variance of one shell, weak only
if α ≪ 1.  Source: ringel2025talk, "Decimation-only RG", for the sum T(Λ) of a power law, without coupling and flow.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Flow:
    """The running theory at cutoffs Λ, of the shape (...) of the cutoffs.

    Parameters
    ----------
    ridge, coupling : float or ndarray (...)
        T(Λ), and  τ = Λλ(Λ)/T(Λ).
    learnability : float or ndarray (...)
        p = Pλ(Λ)/T(Λ); decimation holds while p < 1.  It is the L of the mode only where few modes are learned.
    """

    ridge: float | Array["..."]
    coupling: float | Array["..."]
    learnability: float | Array["..."]


def flow(cutoffs: ArrayLike, *, decay: float, ridge: float, samples: float, start: float = np.inf) -> Flow:
    """The theory with all modes between a cutoff and the first one integrated out:  T(Λ) = T + (Λ^{-α} - Λ₀^{-α})/α.

    dτ/dl = τ(α - τ),  and the learnability of the mode at the cutoff has  dp/dl = p(1 + α - τ);  stop at p = 1.

    Parameters
    ----------
    cutoffs : float or array_like
        Λ > 0, below Λ₀.
    decay : float
        a = 1 + α > 1 of  λ(Λ) = Λ^{-a}.
    ridge, samples : float
        T >= 0, P > 0.
    start : float
        Λ₀ > 0, may be infinite.

    Returns
    -------
    Flow

    Examples
    --------
    >>> flow([10.0, 1000.0], decay=1.5, ridge=0.0, samples=1.0).coupling.round(12).tolist()
    [0.5, 0.5]
    """
    if not (np.ndim(start) == 0 and isinstance(start, float) and start == np.inf):
        start = checks.number("start", start, above=0)
    cutoffs = checks.entries("cutoffs", cutoffs, above=0, below=start)  # (...)
    alpha = checks.number("decay", decay, above=1) - 1
    ridge = checks.number("ridge", ridge, at_least=0)
    samples = checks.number("samples", samples, above=0)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):  # refused below, by name
        shell = cutoffs**-alpha  # (...)  Λλ
        # Λ^{-α} - Λ₀^{-α} without cancellation, which for α → 0 is the logarithm of Λ₀/Λ.
        total = ridge - shell * np.expm1(alpha * np.log(cutoffs / start)) / alpha  # (...)
        tau = shell / total  # (...)
        parts = total, tau, samples * tau / cutoffs  # (...) each
    return Flow(*(checks.plain(checks.finite("cutoffs", part)) for part in parts))

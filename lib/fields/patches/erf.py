"""Patch networks of erf units: their filters have the density of the weights of a fully connected network.

That is the one of :mod:`lib.fields.overlaps.staircase`.  Source: ringel2025talk, the deck, Figure 3.3, for the
networks; the map and the theory are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields.overlaps import single_index, staircase
from lib.fields.patches.shared_filters import PatchNetwork, _read


@dataclass(frozen=True, eq=False)
class Learned:
    """What an erf patch network has learned at each P; leading axes (...) as those of the samples."""

    learnabilities: Array["... 2"]  # R_1 and R_3; R_3 is nan for ε = 0
    ratio: float | Array["..."]  # S⟨(w_c·w_*)²⟩/σ_w²
    kurtosis: float | Array["..."]  # of w_c·w_*; 3 for a Gaussian
    perpendicular: float | Array["..."]  # mean |w_⊥|² of filters beyond the action's barrier; of all without it
    lazy_learnabilities: Array["... 2"]  # of the Gaussian process, C → ∞, at the same κ
    kappa: float | Array["..."]  # κ


@dataclass(frozen=True, eq=False)
class Equivalent:
    """The fully connected erf network whose weights have the density of a patch network's filters."""

    dimension: int  # S in place of d
    width: int  # C in place of N
    readout_variance: float  # σ_a²/(N_pχ) in place of s_a²
    kappa: float | Array["..."]  # κ at each P, of the patch network's own spectrum


def equivalent(network: PatchNetwork, samples: ArrayLike, *, bare: bool = False) -> Equivalent:
    """The map of an erf patch network onto a fully connected one:  (d, N, s_a²) → (S, C, σ_a²/(N_pχ)).

    Each patch shows a filter the same single-index teacher, at 1/N_p of the strength squared, so the density of
    m = w·w_* is that of the fully connected net at the same P_e.  κ is of the N_pS linear modes
    (4/π)(σ_a²/(N_pχ))(σ_w²/S)/(1 + 2σ_w²)  and the rest of the variance, which acts as a ridge.

    Parameters
    ----------
    network : PatchNetwork
        One, of whole sizes, N_pS >= 2.
    samples : float or array_like
        P > 0.
    bare : bool
        Whether to take the equivalent kernel's κ = T/(χP), T > 0.

    Returns
    -------
    Equivalent

    Examples
    --------
    >>> (1 / equivalent(PatchNetwork(3, 15, 60, 0.3, mean_field=10.0), [60, 120]).kappa).round(1).tolist()
    [1092.6, 2589.3]
    """
    p = checks.entries("samples", samples, above=0)  # (...)
    patches, size, channels, ridge, readout, weight = _read(network)._single()
    checks.fail_if(patches * size < 2, "patch_size", "be 2 or more for a single patch", size)
    if checks.boolean("bare", bare):
        checks.fail_if(ridge == 0, "ridge", "be > 0 for the equivalent kernel", ridge)
        kappa = checks.plain(ridge / p)  # (...)
    else:
        scales = {"weight_variance": weight, "readout_variance": readout}
        kappa = single_index.ridge("erf", patches * size, p, ridge, **scales)  # (...)
    return Equivalent(size, channels, network.readout_variance / (patches * network.mean_field), kappa)


def solve(
    network: PatchNetwork, samples: ArrayLike, epsilon: float, *, bare: bool = False, perpendicular: str = "fixed"
) -> Learned:
    """What P samples teach an erf patch network: the saddle of its :func:`equivalent` fully connected network.

    The density of the filters is the whole e^{-S(m)} and not a Gaussian: with mean-field scaling the filters crowd at
    ±m_0.

    Parameters
    ----------
    network : PatchNetwork
        One, of whole sizes, N_pS >= 2, and S >= 2 for free lengths.
    samples : float or array_like
        P > 0.
    epsilon : float
        ε.
    bare : bool
        Whether to take the equivalent kernel's κ = T/(χP), T > 0.
    perpendicular : str
        |w_⊥|²: "fixed", σ_w², the source's; "free", in networks, (σ_w²/S) χ² of S - 1 degrees in the prior.

    Returns
    -------
    Learned

    Examples
    --------
    >>> network = PatchNetwork(3, 15, 60, 0.3, mean_field=10.0)
    >>> solve(network, 120, -0.1, perpendicular="free").learnabilities.round(3).tolist()
    [0.916, 0.51]
    """
    net, weight = equivalent(network, samples, bare=bare), network.weight_variance
    given = {"readout_variance": net.readout_variance, "weight_variance": weight, "perpendicular": perpendicular}
    target = single_index.staircase(epsilon)  # (2,)
    strength = 1 / np.asarray(net.kappa)  # (...)  P_e
    saddles = [
        staircase.solve(single_index.SingleIndex("erf", target, net.dimension, net.width, one, **given))
        for one in strength.ravel().tolist()
    ]

    def gathered(name, *more):
        return checks.plain(np.reshape([getattr(one, name) for one in saddles], (*strength.shape, *more)))

    lazy = single_index.lazy("erf", target, net.dimension, strength, **given)
    ratio = net.dimension / weight * gathered("variance")  # (...)
    rest = ratio, gathered("kurtosis"), gathered("perpendicular"), lazy[1], net.kappa
    return Learned(gathered("learnabilities", 2), *rest)

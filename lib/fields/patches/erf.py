"""Patch networks of erf units: their filters have the density of the weights of a fully connected network.

That is the one of :mod:`lib.fields.overlaps.staircase`.  Network, prior, ridge and teacher, y = N_p^{-1/2} Σ_i a_i*
[H_1(w_*·x_i) + ε H_3(w_*·x_i)],  are those of :mod:`lib.fields.patches.shared_filters`.  Source: ringel2025talk, the
deck, Figure 3.3, for the networks; the map and the theory are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields.overlaps import single_index, staircase


@dataclass(frozen=True, eq=False)
class Learned:
    """What an erf patch network has learned at each P; leading axes (...) as those of the samples."""

    learnabilities: np.ndarray  # (..., 2)  R_1 and R_3; R_3 is nan for ε = 0
    ratio: np.ndarray | float  # (...)  S⟨(w_c·w_*)²⟩/σ_w²
    kurtosis: np.ndarray | float  # (...)  of w_c·w_*; 3 for a Gaussian
    perpendicular: np.ndarray | float  # (...)  mean |w_⊥|² of filters beyond the action's barrier; of all without it
    lazy_learnabilities: np.ndarray  # (..., 2)  of the Gaussian process, C → ∞, at the same κ
    kappa: np.ndarray | float  # (...)  κ


@dataclass(frozen=True, eq=False)
class Equivalent:
    """The fully connected erf network whose weights have the density of a patch network's filters."""

    dimension: int  # S in place of d
    width: int  # C in place of N
    readout_variance: float  # σ_a²/(N_pχ) in place of s_a²
    kappa: np.ndarray | float  # κ at each P, of the patch network's own spectrum


def equivalent(
    samples, patches, patch_size, channels, ridge, *, mean_field=1.0, readout_variance=1.0, weight_variance=1.0,
    bare=False,
):  # fmt: skip
    """The map of an erf patch network onto a fully connected one:  (d, N, s_a²) → (S, C, σ_a²/(N_pχ)).

    Each patch shows a filter the same single-index teacher, at 1/N_p of the strength squared, so the density of
    m = w·w_* is that of the fully connected net at the same P_e.  κ is of the N_pS linear modes
    (4/π)(σ_a²/(N_pχ))(σ_w²/S)/(1 + 2σ_w²)  and the rest of the variance, which acts as a ridge.  `samples`: P > 0, a
    float or an array; `patches`, `patch_size`, `channels`: integers N_p, S, C, N_pS >= 2; `ridge`: T >= 0, and > 0 if
    `bare` is set, which takes the equivalent kernel's κ = T/(χP); `mean_field`: χ > 0, divides readout variance and
    ridge; `readout_variance`, `weight_variance`: σ_a², σ_w² > 0.  Returns Equivalent.

    >>> (1 / equivalent([60, 120], 3, 15, 60, 0.3, mean_field=10.0).kappa).round(1).tolist()
    [1092.6, 2589.3]
    """
    p, ridge = checks.entries("samples", samples, above=0), checks.number("ridge", ridge, at_least=0)  # (...)
    given = {"patches": patches, "patch_size": patch_size, "channels": channels}
    patches, size, channels = (checks.integer(name, value) for name, value in given.items())
    if patches * size < 2:
        checks.fail("patch_size", "be 2 or more for a single patch", size)
    given = {"mean_field": mean_field, "readout_variance": readout_variance, "weight_variance": weight_variance}
    chi, readout, weight = (checks.number(name, value, above=0) for name, value in given.items())
    if checks.boolean("bare", bare):
        if ridge == 0:
            checks.fail("ridge", "be > 0 for the equivalent kernel", ridge)
        kappa = (ridge / chi / p)[()]  # (...)
    else:
        scales = {"weight_variance": weight, "readout_variance": readout / chi}
        kappa = single_index.ridge("erf", patches * size, p, ridge / chi, **scales)  # (...)
    return Equivalent(size, channels, readout / (patches * chi), kappa)


def solve(
    samples, patches, patch_size, channels, ridge, epsilon, *,
    mean_field=1.0, readout_variance=1.0, weight_variance=1.0, bare=False, perpendicular="free",
):  # fmt: skip
    """What P samples teach an erf patch network: the saddle of its :func:`equivalent` fully connected network.

    The density of the filters is the whole e^{-S(m)} and not a Gaussian: with mean-field scaling the filters crowd at
    ±m_0.  `samples`, `patches`, `patch_size`, `channels`, `ridge`, `mean_field`, `readout_variance`, `weight_variance`,
    `bare`: as in :func:`equivalent`; S >= 2 for free lengths; `epsilon`: ε; `perpendicular`: |w_⊥|², "free", (σ_w²/S)
    χ² of S - 1 degrees in the prior, as in networks, or "fixed", σ_w², the source's.  Returns Learned.

    >>> solve(120, 3, 15, 60, 0.3, -0.1, mean_field=10.0).learnabilities.round(3).tolist()
    [0.916, 0.51]
    """
    given = {"readout_variance": readout_variance, "weight_variance": weight_variance}
    net = equivalent(samples, patches, patch_size, channels, ridge, mean_field=mean_field, bare=bare, **given)
    given["readout_variance"] = net.readout_variance
    target = single_index.staircase(epsilon)  # (2,)
    strength = 1 / np.asarray(net.kappa)  # (...)  P_e
    saddles = [
        staircase.solve(net.dimension, net.width, one, epsilon, perpendicular=perpendicular, **given)
        for one in strength.ravel().tolist()
    ]

    def gathered(name, *more):
        return np.array([getattr(one, name) for one in saddles]).reshape((*strength.shape, *more))[()]  # (..., *more)

    lazy = single_index.lazy("erf", target, net.dimension, strength, perpendicular=perpendicular, **given)
    ratio = net.dimension / weight_variance * gathered("variance")  # (...)
    rest = ratio, gathered("kurtosis"), gathered("perpendicular"), lazy[1], net.kappa
    return Learned(gathered("learnabilities", 2), *rest)

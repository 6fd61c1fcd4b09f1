"""Networks of one shared set of filters on patches that do not overlap: what P samples teach a linear one.

The input has N_p patches x_i of S components,  d = N_p S,  x ~ N(0, 1),  the network is f = Σ_{i≤N_p} Σ_{c≤C} a_ic
φ(w_c·x_i)  with the prior  w_c ~ N(0, σ_w²/S),  a_ic ~ N(0, σ_a²/(N_p C χ))  and the ridge T/χ.  The teacher is
y = N_p^{-1/2} Σ_i a_i* [H_1(v_i) + ε H_3(v_i)],  v_i = w_*·x_i,  |a_i*| = |w_*| = 1.  The filters grow along w_*: the
ratio S⟨(w_c·w_*)²⟩/σ_w²  is 1 in the prior; they grow more with χ > 1, mean-field scaling.
κ = 1/P_e is the effective ridge per sample.  Here φ(u) = u and ε = 0.  All arguments that are numbers may be arrays,
which broadcast.  `samples`, `patches`, `patch_size`, `channels`: P, N_p, S and C > 0; `ridge`: T >= 0, and > 0 where
P >= d or `bare` is set; `mean_field`: χ > 0, divides readout variance and ridge; `readout_variance`, `weight_variance`:
σ_a² and σ_w² > 0.  Source: ringel2025talk, the deck, captions of Figures 3.2 and 3.3.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields.kernels import effective_ridge
from lib.fields.overlaps import _coexistence


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear patch network at each setting; arrays of the broadcast shape of the arguments, or numbers."""

    residual: np.ndarray | float  # b, the part of the target that is not learned
    learnability: np.ndarray | float  # R = 1 - b
    ratio: np.ndarray | float  # S⟨(w_c·w_*)²⟩/σ_w² = 1/(1 - gb²)
    attraction: np.ndarray | float  # gb² < 1, pull of the residual on the filters in units of the prior's stiffness
    lazy_learnability: np.ndarray | float  # of the Gaussian process, C → ∞, at the same κ
    kappa: np.ndarray | float  # κ


def _broadcast(patches, patch_size, channels, ridge, mean_field, readout_variance, weight_variance, **more):
    """Positive arrays of one shape; `ridge` may be zero."""
    given = {"patches": patches, "patch_size": patch_size, "channels": channels, "mean_field": mean_field, **more}
    given |= {"readout_variance": readout_variance, "weight_variance": weight_variance}
    arrays = {name: checks.entries(name, value, above=0) for name, value in given.items()}
    return checks.broadcast(ridge=checks.entries("ridge", ridge, at_least=0), **arrays)


def solve(
    samples, patches, patch_size, channels, ridge, *, mean_field=1.0, readout_variance=1.0, weight_variance=1.0,
    bare=False,
):  # fmt: skip
    """What P samples teach a linear patch network whose filters adapt:  b [1 + P_eλ_0/(1 - gb²)] = 1.

    g = σ_a²σ_w²P_e²/(χdC),  λ_0 = σ_a²σ_w²/(χd)  is the eigenvalue of all d linear functions for fixed filters, and κ
    solves  P = T/(χκ) + dλ_0/(λ_0 + κ).  Exact for C → ∞ at fixed g, but for a part 1/N_p + 1/S of κ.  `samples`,
    `patches`, `patch_size`, `channels`, `ridge`, `mean_field`, `readout_variance`, `weight_variance`: see the module;
    `bare`: whether to take the equivalent kernel's κ = T/(χP), right for a large ridge only.  Returns Linear.

    >>> solve([10, 60, 150], 4, 25, 100, 1.0, mean_field=30.0).learnability.round(3).tolist()
    [0.052, 0.55, 0.836]
    """
    given = patches, patch_size, channels, ridge, mean_field, readout_variance, weight_variance
    ridge, patches, size, channels, chi, p, readout, weight = _broadcast(*given, samples=samples)  # (...) each
    bare = checks.boolean("bare", bare)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mode = readout * weight / (chi * patches * size)  # (...)  λ_0
        kappa = ridge / chi / p  # (...)
        if not bare:
            kappa = np.asarray(effective_ridge.degenerate(mode, patches * size, p, ridge=ridge / chi))  # (...)
        if not np.all(kappa > 0):
            checks.fail("ridge", "be > 0, where the samples alone leave no effective ridge", ridge)
        lazy, g = mode / kappa, mode / kappa / (kappa * channels)  # (...), (...)
        checks.finite("samples", lazy + g)
        b, learned, left = _coexistence.gaussian(lazy, g)  # (...), (...), (...)
        results = b, learned, 1 / left, g * b**2, lazy / (1 + lazy), kappa
    return Linear(*(checks.finite("samples", part)[()] for part in results))


def critical_samples(
    patches, patch_size, channels, ridge, *, mean_field=1.0, readout_variance=1.0, weight_variance=1.0
):  # fmt: skip
    """Where learning starts if P ≪ d:  P_c = (T + σ_a²σ_w²) √(dC/(χσ_a²σ_w²)),  above which  R = 1 - P_c/P.

    Fixed filters learn nothing there; the transition is continuous, with a kink.  `patches`, `patch_size`, `channels`,
    `ridge`, `mean_field`, `readout_variance`, `weight_variance`: see the module.  Returns P_c.

    >>> critical_samples(4, 25, [100, 400], 1.0, mean_field=100.0).tolist()
    [20.0, 40.0]
    """
    given = patches, patch_size, channels, ridge, mean_field, readout_variance, weight_variance
    ridge, patches, size, channels, chi, readout, weight = _broadcast(*given)  # (...) each
    with np.errstate(over="ignore"):
        prior = readout * weight  # (...)
        found = (ridge + prior) * np.sqrt(patches * size * channels / (chi * prior))  # (...)
    return checks.finite("channels", found)[()]


def samples_needed(
    learnability, patches, patch_size, channels, ridge, *,
    mean_field=1.0, readout_variance=1.0, weight_variance=1.0, bare=False, lazy=False,
):  # fmt: skip
    """Number of samples at which a linear patch network reaches the learnability R, the inverse of :func:`solve`.

    With b = 1 - R:  (1 - b) g_1b² P_e² + bλ_0 P_e = 1 - b,  g_1 = g/P_e²,  and then  P = TP_e/χ + dλ_0P_e/(1 + λ_0P_e).
    `learnability`: 0 < R < 1; `patches`, `patch_size`, `channels`, `ridge`, `mean_field`, `readout_variance`,
    `weight_variance`, `bare`: as in :func:`solve`; `lazy`: whether the filters are fixed, C → ∞.  Returns P.

    >>> samples_needed([0.052, 0.55, 0.836], 4, 25, 100, 1.0, mean_field=30.0).round().tolist()
    [10.0, 60.0, 150.0]
    """
    learned = checks.entries("learnability", learnability, above=0, below=1)  # (...)
    given = patches, patch_size, channels, ridge, mean_field, readout_variance, weight_variance
    ridge, patches, size, channels, chi, learned, readout, weight = _broadcast(*given, learnability=learned)
    bare, lazy = checks.boolean("bare", bare), checks.boolean("lazy", lazy)
    if bare and not np.all(ridge > 0):
        checks.fail("ridge", "be > 0 for the equivalent kernel", ridge)
    with np.errstate(over="ignore", invalid="ignore"):
        b, mode = 1 - learned, readout * weight / (chi * patches * size)  # (...), (...)  1 - R, λ_0
        # In units of 1/λ_0: z = λ_0P_e, the positive root of  Rb²z²/(Cλ_0) + bz = R.
        curved = 0 * b if lazy else learned * b**2 / (channels * mode)  # (...)
        z = 2 * learned / (b + np.hypot(b, 2 * np.sqrt(curved * learned)))  # (...)
        found = ridge / chi * z / mode + (0 if bare else patches * size * z / (1 + z))  # (...)
    return checks.finite("ridge", found)[()]

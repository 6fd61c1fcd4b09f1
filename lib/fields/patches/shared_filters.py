"""Networks of one shared set of filters on patches that do not overlap: what P samples teach a linear one.

Source: ringel2025talk, the deck, captions of Figures 3.2 and 3.3.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields.kernels import effective_ridge
from lib.fields.overlaps import _coexistence


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear patch network at each setting; arrays of the broadcast shape of the settings, or numbers."""

    residual: float | Array["..."]  # b, the part of the target that is not learned
    learnability: float | Array["..."]  # R = 1 - b
    ratio: float | Array["..."]  # S⟨(w_c·w_*)²⟩/σ_w² = 1/(1 - gb²)
    attraction: float | Array["..."]  # gb² < 1, pull of the residual on the filters in units of the prior's stiffness
    lazy_learnability: float | Array["..."]  # of the Gaussian process, C → ∞, at the same κ
    kappa: float | Array["..."]  # κ


@dataclass(frozen=True, eq=False)
class PatchNetwork:
    """The network  f = Σ_{i≤N_p} Σ_{c≤C} a_ic φ(w_c·x_i)  on N_p patches x_i of S components, x ~ N(0, 1), d = N_p S.

    Its prior is  w_c ~ N(0, σ_w²/S),  a_ic ~ N(0, σ_a²/(N_p C χ)),  its ridge T/χ, its teacher
    y = N_p^{-1/2} Σ_i a_i* [H_1(v_i) + ε H_3(v_i)],  v_i = w_*·x_i,  |a_i*| = |w_*| = 1.  The filters grow along w_*:
    the ratio S⟨(w_c·w_*)²⟩/σ_w²  is 1 in the prior; they grow more with χ > 1, mean-field scaling.  κ = 1/P_e is the
    effective ridge per sample.  The methods are for φ(u) = u and ε = 0.  Arrays, which broadcast, stand for many
    networks.

    Parameters
    ----------
    patches, patch_size, channels : float or array_like
        N_p, S, C > 0; one network that is sampled has whole numbers of them.
    ridge : float or array_like
        T >= 0.
    mean_field : float or array_like
        χ > 0, divides readout variance and ridge.  By keyword only.
    readout_variance, weight_variance : float or array_like
        σ_a², σ_w² > 0.  By keyword only.

    Examples
    --------
    >>> PatchNetwork(4, 25, [100, 400], 1.0, mean_field=100.0).critical_samples().tolist()
    [20.0, 40.0]
    """

    patches: float | Array["..."]
    patch_size: float | Array["..."]
    channels: float | Array["..."]
    ridge: float | Array["..."]
    mean_field: float | Array["..."] = field(default=1.0, kw_only=True)
    readout_variance: float | Array["..."] = field(default=1.0, kw_only=True)
    weight_variance: float | Array["..."] = field(default=1.0, kw_only=True)

    def __post_init__(self):
        given = {"ridge": checks.entries("ridge", self.ridge, at_least=0)}
        for name in ("patches", "patch_size", "channels", "mean_field", "readout_variance", "weight_variance"):
            given[name] = checks.entries(name, getattr(self, name), above=0)
        checks.keep(self, **dict(zip(given, map(checks.plain, checks.broadcast(**given)))))

    def _single(self):
        """N_p, S, C as integers and T/χ, σ_a²/χ, σ_w² of a single network that exists."""
        sizes = self.patches, self.patch_size, self.channels
        wanted = "be one of whole numbers of patches, components and channels"
        checks.fail_if(np.ndim(self.patches) or any(size % 1 for size in sizes), "network", wanted, f"sizes {sizes}")
        scaled = self.ridge / self.mean_field, self.readout_variance / self.mean_field, self.weight_variance
        return *map(int, sizes), *scaled

    @property
    def _mode(self):
        """λ_0."""
        return self.readout_variance * self.weight_variance / (self.mean_field * self.patches * self.patch_size)

    def solve(self, samples: ArrayLike, *, bare: bool = False) -> Linear:
        """What P samples teach a linear patch network whose filters adapt:  b [1 + P_eλ_0/(1 - gb²)] = 1.

        g = σ_a²σ_w²P_e²/(χdC),  λ_0 = σ_a²σ_w²/(χd)  is the eigenvalue of all d linear functions for fixed filters, and
        κ solves  P = T/(χκ) + dλ_0/(λ_0 + κ).  Exact for C → ∞ at fixed g, but for a part 1/N_p + 1/S of κ.

        Parameters
        ----------
        samples : float or array_like
            P > 0; where P >= d, T > 0.
        bare : bool
            Whether to take the equivalent kernel's κ = T/(χP), T > 0, right for a large ridge only.

        Returns
        -------
        Linear

        Examples
        --------
        >>> PatchNetwork(4, 25, 100, 1.0, mean_field=30.0).solve([10, 60, 150]).learnability.round(3).tolist()
        [0.052, 0.55, 0.836]
        """
        p, bare = checks.entries("samples", samples, above=0), checks.boolean("bare", bare)  # (...)
        p, _ = checks.broadcast(samples=p, ridge=self.ridge)  # (...)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            mode, ridge = self._mode, self.ridge / self.mean_field  # (...), (...)  λ_0
            kappa = ridge / p  # (...)
            if not bare:
                d = self.patches * self.patch_size
                kappa = np.asarray(effective_ridge.degenerate(mode, d, p, ridge=ridge))  # (...)
            wanted = "be > 0, where the samples alone leave no effective ridge"
            checks.fail_if(not np.all(kappa > 0), "ridge", wanted, self.ridge)
            lazy, g = mode / kappa, mode / kappa / (kappa * self.channels)  # (...), (...)
            checks.finite("samples", lazy + g)
            b, learned, left = _coexistence.gaussian(lazy, g)  # (...), (...), (...)
            results = b, learned, 1 / left, g * b**2, lazy / (1 + lazy), kappa
        return Linear(*(checks.plain(checks.finite("samples", part)) for part in results))

    def critical_samples(self) -> float | Array["..."]:
        """Where learning starts if P ≪ d:  P_c = (T + σ_a²σ_w²) √(dC/(χσ_a²σ_w²)),  above which  R = 1 - P_c/P.

        Fixed filters learn nothing there; the transition is continuous, with a kink.

        Returns
        -------
        float or ndarray
            P_c.

        Examples
        --------
        >>> PatchNetwork(4, 25, 100, 1.0, mean_field=100.0).critical_samples()
        20.0
        """
        with np.errstate(over="ignore"):
            prior = self.readout_variance * self.weight_variance  # (...)
            inputs = self.patches * self.patch_size * self.channels  # (...)
            found = (self.ridge + prior) * np.sqrt(inputs / (self.mean_field * prior))  # (...)
        return checks.plain(checks.finite("channels", found))

    def samples_needed(
        self, learnability: ArrayLike, *, bare: bool = False, lazy: bool = False
    ) -> float | Array["..."]:
        """Number of samples at which a linear patch network reaches the learnability R, the inverse of :meth:`solve`.

        With b = 1 - R:  (1 - b) g_1b² P_e² + bλ_0 P_e = 1 - b,  g_1 = g/P_e²,  and  P = TP_e/χ + dλ_0P_e/(1 + λ_0P_e).

        Parameters
        ----------
        learnability : float or array_like
            R, between 0 and 1.
        bare, lazy : bool
            Whether to take the equivalent kernel's κ = T/(χP), T > 0; whether the filters are fixed, C → ∞.

        Returns
        -------
        float or ndarray
            P.

        Examples
        --------
        >>> PatchNetwork(4, 25, 100, 1.0, mean_field=30.0).samples_needed([0.052, 0.55, 0.836]).round().tolist()
        [10.0, 60.0, 150.0]
        """
        learned = checks.entries("learnability", learnability, above=0, below=1)  # (...)
        learned, _ = checks.broadcast(learnability=learned, ridge=self.ridge)  # (...)
        bare, lazy = checks.boolean("bare", bare), checks.boolean("lazy", lazy)
        wanted = "be > 0 for the equivalent kernel"
        checks.fail_if(bare and not np.all(np.asarray(self.ridge) > 0), "ridge", wanted, self.ridge)
        with np.errstate(over="ignore", invalid="ignore"):
            b, mode = 1 - learned, self._mode  # (...), (...)  1 - R, λ_0
            # In units of 1/λ_0: z = λ_0P_e, the positive root of  Rb²z²/(Cλ_0) + bz = R.
            curved = 0 * b if lazy else learned * b**2 / (self.channels * mode)  # (...)
            z = 2 * learned / (b + np.hypot(b, 2 * np.sqrt(curved * learned)))  # (...)
            found = self.ridge / self.mean_field * z / mode
            found = found + (0 if bare else self.patches * self.patch_size * z / (1 + z))  # (...)
        return checks.plain(checks.finite("ridge", found))


def _read(network):
    """`network`, a PatchNetwork."""
    return checks.instance("network", network, PatchNetwork, "as shared_filters.PatchNetwork makes it")

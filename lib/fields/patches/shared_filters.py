"""Networks of filters on patches that do not overlap, shared or not: what P samples teach a linear one.

Source: ringel2025talk, the deck, captions of Figures 3.2 and 3.3, on shared filters; own filters, the competition of
the modes that have grown and the map of erf filters onto a fully connected network are not in it.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields.kernels import effective_ridge
from lib.fields.overlaps import _coexistence, single_index


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear patch network at each setting; arrays of the broadcast shape of the settings, or numbers."""

    residual: float | Array["..."]  # b, the part of the target that is not learned
    learnability: float | Array["..."]  # R = 1 - b
    ratio: float | Array["..."]  # S⟨(w_c·w_*)²⟩/σ_w² = 1/(1 - gb²)
    attraction: float | Array["..."]  # gb² < 1, pull of the residual on the filters in units of the prior's stiffness
    lazy_learnability: float | Array["..."]  # of the Gaussian process, C → ∞, at the same κ
    kappa: float | Array["..."]  # κ


def _learned(kappa, mode, filters):
    """b, 1 - b, ratio, L and gb² at κ."""
    lazy = mode / kappa  # (...)
    g = lazy / (kappa * filters)  # (...)
    checks.finite("samples", lazy + g)
    b, learned, left = _coexistence.gaussian(lazy, g)  # (...), (...), (...)
    return b, learned, 1 / left, lazy / (1 + lazy), g * b**2


def _added(kappa, mode, many, ratio):
    """Samples that grown modes take beyond what they would have taken."""
    return many * (mode * ratio / (mode * ratio + kappa) - mode / (mode + kappa))


def _short(stretch, kappa, mode, filters, many, ridge, d, samples):
    """Samples that κ e^stretch stands for, beyond those that there are."""
    now = kappa * np.exp(stretch)  # (...)
    ratio = _learned(now, mode, filters)[2]  # (...)
    return ridge / now + d * mode / (mode + now) + _added(now, mode, many, ratio) - samples


@dataclass(frozen=True, eq=False)
class PatchNetwork:
    """The network  f = Σ_{i≤N_p} Σ_{c≤C} a_ic φ(w_c·x_i)  on N_p patches x_i of S components, x ~ N(0, 1), d = N_p S.

    Filters that are not shared are w_ic in place of w_c; one patch is the fully connected network.  Its prior is  w_c ~
    N(0, σ_w²/S),  a_ic ~ N(0, σ_a²/(N_p C χ)),  its ridge T/χ, its teacher y = N_p^{-1/2} Σ_i a_i* [H_1(v_i) + ε
    H_3(v_i)],  v_i = w_*·x_i,  |a_i*| = |w_*| = 1.  The filters grow along w_*: the ratio S⟨(w_c·w_*)²⟩/σ_w²  is 1 in
    the prior; they grow more with χ > 1, mean-field scaling.  κ = 1/P_e is the effective ridge per sample.  The methods
    are for φ(u) = u and ε = 0.  Arrays, which broadcast, stand for many networks.

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
    shared : bool
        Whether all patches have the same C filters, or C filters each.  By keyword only.

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
    shared: bool = field(default=True, kw_only=True)

    def __post_init__(self):
        checks.boolean("shared", self.shared)
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

    @property
    def _filters(self):
        """Filters that learn one direction in as many patches as they see: C, or N_pC of their own."""
        return self.channels * (1 if self.shared else self.patches)

    @property
    def _grown(self):
        """Number of the modes that grow."""
        return self.patches + self.patch_size - 1 if self.shared else self.patches * self.patch_size

    def solve(self, samples: ArrayLike, *, grown: bool = False) -> Linear:
        """What P samples teach a linear patch network whose filters adapt:  b [1 + P_eλ_0/(1 - gb²)] = 1.

        g = σ_a²σ_w²P_e²/(χdC),  N_p times smaller for own filters;  λ_0 = σ_a²σ_w²/(χd)  is the eigenvalue of all d
        linear functions for fixed filters, and κ solves  P = T/(χκ) + dλ_0/(λ_0 + κ).  Exact for C → ∞ at fixed g, but
        for the modes whose eigenvalue has grown to λ_1 = λ_0/(1 - gb²):  N_p + S - 1, the tangent space of maps of rank
        one, or d for own filters.  They take  λ_1/(λ_1 + κ) - λ_0/(λ_0 + κ)  more samples each.

        Parameters
        ----------
        samples : float or array_like
            P > 0; where P >= d, T > 0.
        grown : bool
            Whether the grown modes count, to lowest order.

        Returns
        -------
        Linear

        Examples
        --------
        >>> network = PatchNetwork(4, 25, 100, 1.0, mean_field=30.0)
        >>> [network.solve([10, 60, 150], grown=kind).learnability.round(3).tolist() for kind in (False, True)]
        [[0.052, 0.55, 0.836], [0.052, 0.49, 0.823]]
        """
        p, grown = checks.entries("samples", samples, above=0), checks.boolean("grown", grown)  # (...)
        p, _ = checks.broadcast(samples=p, ridge=self.ridge)  # (...)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            mode, ridge, d = self._mode, self.ridge / self.mean_field, self.patches * self.patch_size  # (...)  λ_0
            kappa = np.asarray(effective_ridge.degenerate(mode, d, p, ridge=ridge))  # (...)
            wanted = "be > 0, where the samples alone leave no effective ridge"
            checks.fail_if(not np.all(kappa > 0), "ridge", wanted, self.ridge)
            if grown:
                given = kappa, mode, self._filters, self._grown, ridge, d, p
                given = [part.ravel() for part in np.broadcast_arrays(*given)]  # (M,) each
                high = np.ones(kappa.size)  # (M,)
                while np.any(_short(high, *given) > 0):
                    high = np.where(_short(high, *given) > 0, 2 * high, high)  # (M,)
                stretch = _coexistence.root(_short, np.zeros(kappa.size), high, *given)  # (M,)
                kappa = kappa * np.exp(stretch).reshape(kappa.shape)  # (...)
            b, learned, ratio, lazy, pull = _learned(kappa, mode, self._filters)  # (...) each
            results = b, learned, ratio, pull, lazy, kappa
        return Linear(*(checks.plain(checks.finite("samples", part)) for part in results))

    def critical_samples(self) -> float | Array["..."]:
        """Where learning starts if P ≪ d:  P_c = (T + σ_a²σ_w²) √(dC/(χσ_a²σ_w²)),  above which  R = 1 - P_c/P.

        Fixed filters learn nothing there; the transition is continuous, with a kink.  Own filters need √N_p times more.

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
            inputs = self.patches * self.patch_size * self._filters  # (...)
            found = (self.ridge + prior) * np.sqrt(inputs / (self.mean_field * prior))  # (...)
        return checks.plain(checks.finite("channels", found))

    def samples_needed(
        self, learnability: ArrayLike, *, grown: bool = False, lazy: bool = False
    ) -> float | Array["..."]:
        """Number of samples at which a linear patch network reaches the learnability R, the inverse of :meth:`solve`.

        With b = 1 - R:  (1 - b) g_1b² P_e² + bλ_0 P_e = 1 - b,  g_1 = g/P_e²,  and  P = TP_e/χ + dλ_0P_e/(1 + λ_0P_e).

        Parameters
        ----------
        learnability : float or array_like
            R, between 0 and 1.
        grown, lazy : bool
            Whether the grown modes count, to lowest order; whether the filters are fixed, C → ∞.

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
        grown, lazy = checks.boolean("grown", grown), checks.boolean("lazy", lazy)
        with np.errstate(over="ignore", invalid="ignore"):
            b, mode = 1 - learned, self._mode  # (...), (...)  1 - R, λ_0
            # In units of 1/λ_0: z = λ_0P_e, the positive root of  Rb²z²/(Cλ_0) + bz = R.
            curved = 0 * b if lazy else learned * b**2 / (self._filters * mode)  # (...)
            z = 2 * learned / (b + np.hypot(b, 2 * np.sqrt(curved * learned)))  # (...)
            found = self.ridge / self.mean_field * z / mode + self.patches * self.patch_size * z / (1 + z)  # (...)
            if grown and not lazy:
                found = found + _added(mode / z, mode, self._grown, learned / (b * z))  # (...)
        return checks.plain(checks.finite("ridge", found))

    def equivalent(self, samples: float, epsilon: float, *, perpendicular: str = "free") -> single_index.SingleIndex:
        """The fully connected erf network whose weights have the density of the shared erf filters of this one.

        (d, N, s_a²) → (S, C, σ_a²/(N_pχ)):  each patch shows a filter the same single-index teacher, at 1/N_p of the
        strength squared, so the density of m = w·w_* is that of the fully connected net at the same P_e = 1/κ.  κ is
        of the N_pS linear modes  (4/π)(σ_a²/(N_pχ))(σ_w²/S)/(1 + 2σ_w²)  and the rest of the variance, a ridge.

        Parameters
        ----------
        samples : float
            P > 0; one network of whole sizes, N_pS >= 2.
        epsilon : float
            ε.
        perpendicular : str
            |w_⊥|²: "free", as in networks, S >= 2; "fixed", σ_w², the source's.

        Returns
        -------
        SingleIndex

        Examples
        --------
        >>> network = PatchNetwork(3, 15, 60, 0.3, mean_field=10.0).equivalent(120, -0.1)
        >>> network.dimension, network.width, network.saddle().learnabilities.round(3).tolist()
        (15, 60, [0.916, 0.51])
        """
        p = checks.number("samples", samples, above=0)
        patches, size, channels, ridge, readout, weight = self._single()
        checks.fail_if(not self.shared, "shared", "be True for the equivalent network", self.shared)
        checks.fail_if(patches * size < 2, "patch_size", "be 2 or more for a single patch", size)
        scales = {"weight_variance": weight, "readout_variance": readout}
        strength = 1 / single_index.ridge("erf", patches * size, p, ridge, **scales)
        scales["readout_variance"] = self.readout_variance / (patches * self.mean_field)
        target = single_index.staircase(epsilon)  # (2,)
        return single_index.SingleIndex("erf", target, size, channels, strength, perpendicular=perpendicular, **scales)


def _read(network):
    """`network`, a PatchNetwork."""
    return checks.instance("network", network, PatchNetwork, "as shared_filters.PatchNetwork makes it")

"""Gaussian-process regression with its weak modes integrated out: they leave a larger ridge for the modes that remain.

Modes k > Λ', too weak to be learned, fluctuate under the prior alone.  Averaging the loss over them replaces the ridge
T by T(Λ') and keeps the form of the action.  Source: ringel2025talk, on the renormalization group of Gaussian-process
regression.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.fields._data import per_sample, whole
from lib.fields.kernels._modes import descending, tails
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.gp_regression import GaussianProcess


@dataclass(frozen=True, eq=False)
class Bookkeeping:
    """What a cut leaves out of the per-sample effective ridge κ; arrays have the shape of the cuts.

    Parameters
    ----------
    kappa : float or ndarray (...)
        Right-hand side of the identity: κ itself if κ solves the self-consistent equation.
    retained_learned : float or ndarray (...)
        N_< = Σ_{k≤Λ'} g_k L_k, data that the retained modes use up.
    equivalent_kernel_error : float or ndarray (...)
        N_</P, what is wrong with setting the denominator to P.
    tail_error : float or ndarray (...)
        Σ_{k>Λ'} g_k λ_k L_k / T(Λ'), what is wrong with setting L to zero in the tail.
    """

    kappa: float | Array["..."]
    retained_learned: float | Array["..."]
    equivalent_kernel_error: float | Array["..."]
    tail_error: float | Array["..."]


def running_ridge(spectrum: Spectrum | ArrayLike, ridge: float, cuts: ArrayLike) -> float | Array["..."]:
    """Ridge after the modes beyond a cut have been integrated out:  T(Λ') = T + Σ_{k>Λ'} g_k λ_k.

    First order in the vertex, where the tail's variance does not depend on the input (see `tail_variance`).

    Parameters
    ----------
    spectrum : Spectrum or array_like (n,)
        λ_k >= 0, descending, with g_k.
    ridge : float
        T >= 0.
    cuts : int or array_like of int
        Λ', numbers of retained levels.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> running_ridge([4.0, 2.0, 1.0], 0.5, [0, 1, 3]).tolist()
    [7.5, 3.5, 0.5]
    """
    spectrum, ridge = descending(spectrum), checks.number("ridge", ridge, at_least=0)
    after = tails(spectrum.multiplicities * spectrum.eigenvalues)  # (n+1,)
    return checks.plain(ridge + after[whole("cuts", cuts, at_least=0, at_most=after.size - 1)])


@dataclass(frozen=True, eq=False)
class Decimation:
    """Regression on P samples at ridge T, of which the modes beyond a cut Λ' are integrated out.

    Parameters
    ----------
    spectrum : Spectrum or array_like (n,)
        λ_k >= 0, descending, with g_k.
    samples : float
        P > 0.
    ridge : float
        T >= 0.  By keyword only.

    Examples
    --------
    >>> Decimation([4.0, 2.0, 1.0], 10, ridge=0.5).equivalent_kernel([0, 1, 3]).tolist()
    [0.75, 0.35, 0.05]
    """

    spectrum: Spectrum
    samples: float
    ridge: float = field(kw_only=True)

    def __post_init__(self):
        p, t = checks.number("samples", self.samples, above=0), checks.number("ridge", self.ridge, at_least=0)
        checks.keep(self, spectrum=descending(self.spectrum), samples=p, ridge=t)

    def cut_at(self, threshold: float) -> int:
        """Smallest cut whose strongest integrated mode is little learned,  Pλ/(Pλ + T(Λ')) < threshold  at λ_{Λ'+1}.

        Parameters
        ----------
        threshold : float
            Between 0 and 1.

        Returns
        -------
        int

        Examples
        --------
        >>> decimation = Decimation(Spectrum.power_law(1000, decay=2.0), 10, ridge=1.0)
        >>> [decimation.cut_at(threshold) for threshold in (0.5, 0.1, 0.01)]
        [2, 8, 30]
        """
        threshold, lam = checks.number("threshold", threshold, above=0, below=1), self.spectrum.eigenvalues
        after = running_ridge(self.spectrum, self.ridge, np.arange(lam.size))  # (n,)
        learned = lam / np.where(lam > 0, lam + after / self.samples, 1.0)  # (n,)  of mode Λ'+1 for Λ' = 0..n-1
        return int(np.argmax(np.append(learned < threshold, True)))

    def equivalent_kernel(self, cuts: ArrayLike) -> float | Array["..."]:
        """Per-sample ridge by decimation and then the bare equivalent kernel:  κ = T(Λ')/P.

        Right only while the retained modes use up few of the data, N_< ≪ P; see `bookkeeping`.

        Parameters
        ----------
        cuts : int or array_like of int
            Λ', numbers of retained levels.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> Decimation([4.0, 2.0, 1.0], 10, ridge=0.5).equivalent_kernel(1)
        0.35
        """
        return running_ridge(self.spectrum, self.ridge, cuts) / self.samples

    def self_consistent(self, cuts: ArrayLike) -> float | Array["..."]:
        """Per-sample ridge by decimation and then the self-consistent equation:  P = T(Λ')/κ + Σ_{k≤Λ'} g_k L_k.

        At Λ' = n it is the self-consistent κ itself, at Λ' = 0 the sum of all variances over P.

        Parameters
        ----------
        cuts : int or array_like of int
            Λ', numbers of retained levels.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> decimation = Decimation(Spectrum.power_law(1000, decay=2.0), 10, ridge=1.0)
        >>> decimation.self_consistent([0, 8, 1000]).round(4).tolist()
        [0.2644, 0.1542, 0.1538]
        """
        raised = running_ridge(self.spectrum, self.ridge, cuts)  # (...)
        kappa = np.array(raised / self.samples)  # (...)  what is left where nothing is retained
        for place in np.ndindex(kappa.shape):
            if cut := np.asarray(cuts)[place]:
                kept = Spectrum(*(part[: int(cut)] for part in vars(self.spectrum).values()))
                kappa[place] = RidgeTheory(kept, self.samples, ridge=np.asarray(raised)[place]).kappa
        return checks.plain(kappa)

    def bookkeeping(self, cuts: ArrayLike, *, kappa: float) -> Bookkeeping:
        """The self-consistent equation split at a cut,  κ = [T + Σ_{k>Λ'} g_k λ_k (1 - L_k)] / [P - Σ_{k≤Λ'} g_k L_k].

        It holds at every cut; decimation neglects L in the tail and, with the bare equivalent kernel, the sum below.

        Parameters
        ----------
        cuts : int or array_like of int
            Λ', numbers of retained levels, which learn less than P.
        kappa : float
            κ > 0, as from `RidgeTheory`.

        Returns
        -------
        Bookkeeping

        Examples
        --------
        >>> books = Decimation([1.0, 1.0], 3, ridge=2.0).bookkeeping([0, 1, 2], kappa=1.0)  # 3 = 2/1 + 1/2 + 1/2
        >>> books.retained_learned.tolist()
        [0.0, 0.5, 1.0]
        """
        lam, kappa = self.spectrum.eigenvalues, checks.number("kappa", kappa, above=0)
        raised = np.asarray(running_ridge(self.spectrum, self.ridge, cuts))  # (...)
        cuts = np.asarray(cuts, dtype=int)  # (...)
        learned = self.spectrum.multiplicities * lam / (lam + kappa)  # (n,)
        below = np.append(0.0, np.cumsum(learned))[cuts]  # (...)
        if np.any(below >= self.samples):
            checks.fail("samples", f"exceed what the retained modes learn, {below.max():.6g}", self.samples)
        lost = tails(learned * lam)[cuts]  # (...)
        fluctuating = self.ridge + tails(kappa * learned)[cuts]  # (...)  λ(1 - L) = κL without the difference
        # Where there is no tail and no ridge, nothing is lost.
        tail_error = np.divide(lost, raised, out=np.zeros(cuts.shape), where=raised > 0)  # (...)
        kept, part = fluctuating / (self.samples - below), below / self.samples  # (...), (...)
        return Bookkeeping(*map(checks.plain, (kept, below, part, tail_error)))


def _features(features, eigenvalues):
    phi = checks.array("features", features, ndim=2)  # (P, m)
    return phi, checks.entries("eigenvalues", eigenvalues, at_least=0, shape=(phi.shape[1],))  # (m,)


def tail_variance(features: ArrayLike, eigenvalues: ArrayLike) -> Array[" P"]:
    """Prior variance of the weak modes,  s(x) = Σ_{k>Λ'} λ_k φ_k(x)²,  by which the ridge of a sample at x grows.

    Where it depends on x, regression is heteroscedastic, an open question of the source.

    Parameters
    ----------
    features : array_like (P, m)
        φ_k(x) of the modes that are integrated out.
    eigenvalues : array_like (m,)
        Their λ_k >= 0, in any order.

    Returns
    -------
    ndarray (P,)

    Examples
    --------
    >>> tail_variance([[1.0, 1.0], [2.0, 0.0]], [0.5, 0.25]).tolist()
    [0.75, 2.0]
    """
    phi, lam = _features(features, eigenvalues)  # (P, m), (m,)
    return phi**2 @ lam


def coefficients(features: ArrayLike, eigenvalues: ArrayLike, targets: ArrayLike, ridge: ArrayLike) -> Array[" m"]:
    """Coefficients of the regressed function,  f_k = λ_k Σ_μ φ_k(x_μ) [(K + diag T)⁻¹ y]_μ,  K = Σ_k λ_k φ_k φ_kᵀ.

    Parameters
    ----------
    features : array_like (P, m)
        φ_k(x_μ), of all modes with the ridge T, or of the retained ones with T(Λ') or T + s(x).
    eigenvalues, targets : array_like (m,), (P,)
        λ_k >= 0, in any order, and y.
    ridge : float or array_like (P,)
        T > 0.

    Returns
    -------
    ndarray (m,)

    Examples
    --------
    >>> coefficients([[1.0], [1.0]], [2.0], [3.0, 3.0], 1.0).round(12).tolist()  # 3 · 2/(2 + T/P)
    [2.4]
    """
    phi, lam = _features(features, eigenvalues)  # (P, m), (m,)
    checks.fail_if(phi.size == 0, "features", "hold one or more samples of one or more modes", f"shape {phi.shape}")
    ridge = per_sample("ridge", ridge, phi.shape[:1], above=0)  # (P,)
    weighted = phi * lam  # (P, m)
    return GaussianProcess(weighted @ phi.T, ridge).mean(targets, weighted.T)

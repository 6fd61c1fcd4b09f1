"""How the ridge runs when the modes of a power-law kernel are integrated out, and how strong the loss stays.

For λ(Λ) = Λ^{-1-α} and l = -ln Λ the ridge grows by dT/dl = Λλ(Λ).  The coupling  τ = Λλ(Λ)/T(Λ)  obeys
dτ/dl = τ(α - τ): it leaves τ = 0, where the bare ridge rules, for τ* = α, where the modes make their own ridge.  τ/4 is
the ratio of the quartic to the quadratic part of the vertex  e^{-δ²/2T}  for δ² = the variance of one shell, weak only
if α ≪ 1.  Source: ringel2025talk, "Decimation-only RG", for the sum T(Λ) of a power law, without coupling and flow.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import wrightomega

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.fields import _data
from lib.fields.kernels._modes import descending, tails


@dataclass(frozen=True, eq=False)
class Flow:
    """The running theory at cutoffs Λ, of the shape (...) of the cutoffs.

    Parameters
    ----------
    ridge, coupling : float or ndarray (...)
        T(Λ), and  τ = Λλ(Λ)/T(Λ).
    quartic : float or ndarray (...)
        τ/4, quartic over quadratic coefficient of the vertex, times the variance of the shell.
    learnability : float or ndarray (...)
        p = Pλ(Λ)/T(Λ); decimation holds while p < 1.
    """

    ridge: float | Array["..."]
    coupling: float | Array["..."]
    quartic: float | Array["..."]
    learnability: float | Array["..."]


def averaged_vertex(discrepancies: ArrayLike, ridge: float, variance: float) -> float | Array["..."]:
    """Likelihood of one sample in r replicas, averaged over weak modes:  Π_a ⟨e^{-(δ_a+η_a)²/2T}⟩,  η_a ~ N(0, s).

    Equal to  (T/(T+s))^{r/2} e^{-Σ_a δ_a²/2(T+s)}:  the ridge grows by s; the prefactor is one at r → 0.

    Parameters
    ----------
    discrepancies : array_like (..., r)
        δ_a = f_a(x) - y(x).
    ridge, variance : float
        T > 0, s >= 0.

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> averaged_vertex([0.0, 0.0], 1.0, 3.0)
    0.25
    """
    delta = checks.array("discrepancies", discrepancies)  # (..., r)
    if delta.ndim == 0:
        checks.fail("discrepancies", "have one axis or more, the last of replicas", discrepancies)
    ridge = checks.number("ridge", ridge, above=0)
    raised = ridge + checks.number("variance", variance, at_least=0)
    scaled = delta / np.sqrt(raised)  # (..., r)
    with np.errstate(over="ignore"):
        return checks.plain((ridge / raised) ** (delta.shape[-1] / 2) * np.exp(-(scaled**2).sum(axis=-1) / 2))


def beta(coupling: ArrayLike, tail_index: float) -> float | Array["..."]:
    """Flow of the coupling towards weaker cutoffs:  dτ/dl = τ(α - τ),  l = -ln Λ.

    Fixed points: τ = 0, unstable, and τ = α.

    Parameters
    ----------
    coupling : float or array_like
        τ >= 0.
    tail_index : float
        α > 0 of  λ_k ∝ k^{-(1+α)};  the source's λ_k^{-1} = k^α has this α plus one.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> beta([0.0, 0.25, 0.5, 1.0], 0.5).tolist()
    [0.0, 0.0625, 0.0, -0.5]
    """
    tau = checks.entries("coupling", coupling, at_least=0)  # (...)
    return checks.plain(checks.finite("coupling", tau * (checks.number("tail_index", tail_index, above=0) - tau)))


def flow(cutoffs: ArrayLike, tail_index: float, ridge: float, samples: float, *, start: float = np.inf) -> Flow:
    """The theory with all modes between a cutoff and the first one integrated out:  T(Λ) = T + (Λ^{-α} - Λ₀^{-α})/α.

    The learnability of the mode at the cutoff then has  dp/dl = p(1 + α - τ);  stop at p = 1.

    Parameters
    ----------
    cutoffs : float or array_like
        Λ > 0, below Λ₀.
    tail_index : float
        α > 0 of  λ(Λ) = Λ^{-(1+α)}.
    ridge, samples : float
        T >= 0, P > 0.
    start : float
        Λ₀ > 0, may be infinite.

    Returns
    -------
    Flow

    Examples
    --------
    >>> flow([10.0, 1000.0], 0.5, 0.0, 1.0).coupling.round(12).tolist()
    [0.5, 0.5]
    """
    if not (np.ndim(start) == 0 and isinstance(start, float) and start == np.inf):
        start = checks.number("start", start, above=0)
    cutoffs = checks.entries("cutoffs", cutoffs, above=0, below=start)  # (...)
    alpha = checks.number("tail_index", tail_index, above=0)
    ridge = checks.number("ridge", ridge, at_least=0)
    samples = checks.number("samples", samples, above=0)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):  # refused below, by name
        shell = cutoffs**-alpha  # (...)  Λλ
        # Λ^{-α} - Λ₀^{-α} without cancellation, which for α → 0 is the logarithm of Λ₀/Λ.
        total = ridge - shell * np.expm1(alpha * np.log(cutoffs / start)) / alpha  # (...)
        tau = shell / total  # (...)
        learnability = samples * tau / cutoffs  # (...)
    for value in (total, tau, learnability):
        checks.finite("cutoffs", value)
    return Flow(*map(checks.plain, (total, tau, tau / 4, learnability)))


def dressed_ridge(spectrum: Spectrum | ArrayLike, samples: ArrayLike, *, ridge: float) -> Array["m ..."]:
    """Running ridge of the unlearned part of each mode alone,  dT/dΛ = -λ/(1 + Pλ/T(Λ)),  from the weakest mode down.

    T at Λ = 0, over P, is a local guess for the per-sample ridge κ: within 2 % for a large ridge, low by tens of per
    cent without.  Modes of equal λ form one shell, passed exactly:  T + Pλ ln T  grows by  g λ.

    Parameters
    ----------
    spectrum : Spectrum or array_like (n,)
        λ_k >= 0, descending, with g_k.
    samples : float or array_like
        P > 0.
    ridge : float
        T > 0, with the sum of all modes beyond the spectrum.

    Returns
    -------
    ndarray (n+1, ...)
        T(Λ) at Λ = 0..n.

    Examples
    --------
    >>> dressed_ridge([2.0, 1.0], 3.0, ridge=10.0).round(3).tolist()
    [12.087, 10.776, 10.0]
    """
    spectrum, ridge = descending(spectrum), checks.number("ridge", ridge, above=0)
    lam, counts = spectrum.eigenvalues, spectrum.multiplicities  # (n,), (n,)
    samples = checks.entries("samples", samples, above=0)  # (...)
    result = np.full((lam.size + 1, *samples.shape), ridge)  # (n+1, ...)
    for k in range(np.count_nonzero(lam) - 1, -1, -1):
        scale = samples * lam[k]  # (...)
        # With x = T/Pλ:  x + ln x  grows by g/P, and  ω(z) + ln ω(z) = z.
        x = result[k + 1] / scale  # (...)
        result[k] = scale * wrightomega(x + np.log(x) + counts[k] / samples)
    return checks.finite("ridge", result)


def functional_ridge(kappa: ArrayLike, spectrum: Spectrum | ArrayLike, ridge: float, cuts: ArrayLike) -> Array["... C"]:
    """Exact flow of the self-consistent theory: a ridge that depends on κ,  T_Λ(κ) = T + Σ_{k>Λ} g_k λ_k κ/(λ_k + κ).

    It is closed by  Pκ = T_0(κ),  or at any cut by  P = T_Λ(κ)/κ + Σ_{k≤Λ} g_k L_k.  For κ ≫ λ it is the running ridge
    T(Λ).

    Parameters
    ----------
    kappa : float or array_like
        κ > 0.
    spectrum : Spectrum or array_like (n,)
        λ_k >= 0, descending, with g_k.
    ridge : float
        T >= 0.
    cuts : array_like of int (C,)
        Λ, numbers of retained levels.

    Returns
    -------
    ndarray (..., C)

    Examples
    --------
    >>> functional_ridge([1.0, 1e9], [1.0, 1.0], 0.5, [0, 1, 2]).round(6).tolist()
    [[1.5, 1.0, 0.5], [2.5, 1.5, 0.5]]
    """
    kappa, spectrum = checks.entries("kappa", kappa, above=0), descending(spectrum)  # (...)
    lam, ridge = spectrum.eigenvalues, checks.number("ridge", ridge, at_least=0)  # (n,)
    places = _data.whole("cuts", cuts, at_least=0, at_most=lam.size, ndim=1)  # (C,)
    result = np.empty((*kappa.shape, places.size))  # (..., C)
    for index in np.ndindex(kappa.shape):  # one row of n modes at a time: (..., n) would not fit
        result[index] = ridge + tails(spectrum.multiplicities * lam / (1 + lam / kappa[index]))[places]
    return result

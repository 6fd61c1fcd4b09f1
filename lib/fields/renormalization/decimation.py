"""Gaussian-process regression with its weak modes integrated out: they leave a larger ridge for the modes that remain.

Modes k > Λ', too weak to be learned, fluctuate under the prior alone.  Averaging the loss over them replaces the ridge
T by T(Λ') and keeps the form of the action.  Source: ringel2025talk, on the renormalization group of Gaussian-process
regression.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.fields._data import whole
from lib.fields.kernels._modes import descending, tails
from lib.fields.kernels.effective_ridge import RidgeTheory

_ORIGIN = "lib.fields.kernels.effective_ridge"


def running_ridge(spectrum: Spectrum | ArrayLike, ridge: float, cuts: ArrayLike) -> float | Array["..."]:
    """Ridge after the modes beyond a cut have been integrated out:  T(Λ') = T + Σ_{k>Λ'} g_k λ_k.

    First order in the vertex, where the tail's variance  Σ_{k>Λ'} λ_k φ_k(x)²  does not depend on the input x.

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


def decimated(theory: RidgeTheory, cut: int) -> RidgeTheory:
    """Regression on the modes up to a cut alone, at the ridge T(Λ') that the others have become.

    Its κ solves  P = T(Λ')/κ + Σ_{k≤Λ'} g_k L_k,  an upper bound of the full theory's.

    Parameters
    ----------
    theory : RidgeTheory
        With λ_k descending, of one ridge and unlimited data.
    cut : int
        Λ' >= 1, number of retained levels.

    Returns
    -------
    RidgeTheory

    Examples
    --------
    >>> theory = RidgeTheory(Spectrum.power_law(1000, decay=2.0), 10, ridge=1.0)
    >>> [round(kept.kappa, 4) for kept in (decimated(theory, 8), theory)]
    [0.1542, 0.1538]
    """
    theory, cut = _unlimited(theory), checks.integer("cut", cut)
    raised = running_ridge(theory.spectrum, theory.ridge, cut)
    kept = Spectrum(*(part[:cut] for part in (theory.spectrum.eigenvalues, theory.spectrum.multiplicities)))
    return RidgeTheory(kept, theory.samples, ridge=raised)


def _unlimited(theory):
    theory = checks.instance("theory", theory, RidgeTheory, _ORIGIN)
    checks.fail_if(theory.pool is not None, "theory", "be of unlimited data, without a pool", theory.pool)
    return theory


@dataclass(frozen=True, eq=False)
class Bookkeeping:
    """What a cut leaves out of the per-sample effective ridge κ; arrays have the shape of the cuts.

    Parameters
    ----------
    kappa : float or ndarray (...)
        Right-hand side of the identity, κ itself.
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


def bookkeeping(theory: RidgeTheory, cuts: ArrayLike) -> Bookkeeping:
    """The self-consistent equation split at a cut,  κ = [T + Σ_{k>Λ'} g_k λ_k (1 - L_k)] / [P - Σ_{k≤Λ'} g_k L_k].

    It holds at every cut; decimation neglects L in the tail and, with the bare equivalent kernel, the sum below.

    Parameters
    ----------
    theory : RidgeTheory
        With λ_k descending, of one number of samples P and one ridge, unlimited data and κ > 0.
    cuts : int or array_like of int
        Λ', numbers of retained levels, which learn less than P.

    Returns
    -------
    Bookkeeping

    Examples
    --------
    >>> books = bookkeeping(RidgeTheory([1.0, 1.0], 3, ridge=2.0), [0, 1, 2])  # κ = 1: 3 = 2/1 + 1/2 + 1/2
    >>> books.retained_learned.tolist()
    [0.0, 0.5, 1.0]
    """
    theory = _unlimited(theory)
    samples, kappa = checks.number("samples", theory.samples, above=0), checks.number("kappa", theory.kappa, above=0)
    raised = np.asarray(running_ridge(theory.spectrum, theory.ridge, cuts))  # (...)
    cuts, lam = np.asarray(cuts, dtype=int), theory.spectrum.eigenvalues  # (...), (n,)
    learned = theory.spectrum.multiplicities * theory.learnability  # (n,)
    below = np.append(0.0, np.cumsum(learned))[cuts]  # (...)
    wanted = f"exceed what the retained modes learn, {below.max(initial=0):.6g}"
    checks.fail_if(np.any(below >= samples), "samples", wanted, samples)
    lost = tails(learned * lam)[cuts]  # (...)
    fluctuating = theory.ridge + tails(kappa * learned)[cuts]  # (...)  λ(1 - L) = κL without the difference
    # Where there is no tail and no ridge, nothing is lost.
    tail_error = np.divide(lost, raised, out=np.zeros(cuts.shape), where=raised > 0)  # (...)
    kept, part = fluctuating / (samples - below), below / samples  # (...), (...)
    return Bookkeeping(*map(checks.plain, (kept, below, part, tail_error)))

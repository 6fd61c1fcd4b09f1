"""Gaussian-process regression with its weak modes integrated out: they leave a larger ridge for the modes that remain.

Modes k > Λ', too weak to be learned, fluctuate under the prior alone.  Averaging the loss over them replaces the ridge
T by  T(Λ') = T + Σ_{k>Λ'} g_k λ_k  and keeps the form of the action.  `eigenvalues` (n,): λ_k >= 0, descending, not all
zero; `multiplicities` (n,): g_k > 0, by default 1; `samples`, `ridge`: P > 0 and T >= 0, one number each; `cuts` (...):
Λ', numbers of retained levels.  Source: ringel2025talk, on the renormalization group of Gaussian-process regression.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields._data import per_sample, whole
from lib.fields.kernels import _modes, effective_ridge, gp_regression


@dataclass(frozen=True, eq=False)
class Bookkeeping:
    """What a cut leaves out of the per-sample effective ridge κ; arrays have the shape of the cuts."""

    kappa: np.ndarray  # (...)  right-hand side of the identity: κ itself if κ solves the self-consistent equation
    retained_learned: np.ndarray  # (...)  N_< = Σ_{k≤Λ'} g_k L_k, data that the retained modes use up
    equivalent_kernel_error: np.ndarray  # (...)  N_</P, what is wrong with setting the denominator to P
    tail_error: np.ndarray  # (...)  Σ_{k>Λ'} g_k λ_k L_k / T(Λ'), what is wrong with setting L to zero in the tail
    equivalent_kernel_accurate: np.ndarray  # (...)  bool, N_</P <= 0.1


def _problem(eigenvalues, samples, ridge, multiplicities):
    modes = _modes.descending(eigenvalues, multiplicities)  # (n,), (n,)
    return *modes, checks.number("samples", samples, above=0), checks.number("ridge", ridge, at_least=0)


def running_ridge(eigenvalues, ridge, cuts, *, multiplicities=None):
    """Ridge after the modes beyond a cut have been integrated out:  T(Λ') = T + Σ_{k>Λ'} g_k λ_k.

    First order in the vertex, where the tail's variance does not depend on the input (see :func:`tail_variance`).
    `eigenvalues`, `ridge`, `cuts`, `multiplicities`: λ_k, T, Λ', g_k.  Returns T(Λ') (...).

    >>> running_ridge([4.0, 2.0, 1.0], 0.5, [0, 1, 3]).tolist()
    [7.5, 3.5, 0.5]
    """
    lam, counts = _modes.descending(eigenvalues, multiplicities)  # (n,), (n,)
    ridge = checks.number("ridge", ridge, at_least=0)
    return ridge + _modes.tails(counts * lam)[whole("cuts", cuts, at_least=0, at_most=lam.size)]  # (...)


def cut_at(eigenvalues, samples, ridge, threshold, *, multiplicities=None):
    """Smallest cut whose strongest integrated mode is little learned,  Pλ/(Pλ + T(Λ')) < threshold  at λ_{Λ'+1}.

    `eigenvalues`, `samples`, `ridge`, `multiplicities`: λ_k, P, T, g_k; `threshold`: between 0 and 1.  Returns Λ'.

    >>> [cut_at(np.arange(1, 1001) ** -2.0, 10, 1.0, threshold) for threshold in (0.5, 0.1, 0.01)]
    [2, 8, 30]
    """
    lam, counts, samples, ridge = _problem(eigenvalues, samples, ridge, multiplicities)
    threshold = checks.number("threshold", threshold, above=0, below=1)
    after = ridge + _modes.tails(counts * lam)[:-1]  # (n,)
    learned = lam / np.where(lam > 0, lam + after / samples, 1.0)  # (n,)  learnability of mode Λ'+1 for Λ' = 0..n-1
    return int(np.argmax(np.append(learned < threshold, True)))


def equivalent_kernel(eigenvalues, samples, ridge, cuts, *, multiplicities=None):
    """Per-sample ridge by decimation and then the bare equivalent kernel:  κ = T(Λ')/P.

    Right only while the retained modes use up few of the data, N_< ≪ P; see :func:`bookkeeping`.  `eigenvalues`,
    `samples`, `ridge`, `cuts`, `multiplicities`: λ_k, P, T, Λ', g_k.  Returns κ (...).

    >>> equivalent_kernel([4.0, 2.0, 1.0], 10, 0.5, [0, 1, 3]).tolist()
    [0.75, 0.35, 0.05]
    """
    samples = checks.number("samples", samples, above=0)
    return running_ridge(eigenvalues, ridge, cuts, multiplicities=multiplicities) / samples  # (...)


def self_consistent(eigenvalues, samples, ridge, cuts, *, multiplicities=None):
    """Per-sample ridge by decimation and then the self-consistent equation:  P = T(Λ')/κ + Σ_{k≤Λ'} g_k L_k.

    At Λ' = n it is the self-consistent κ itself, at Λ' = 0 the sum of all variances over P.  `eigenvalues`, `samples`,
    `ridge`, `cuts`, `multiplicities`: λ_k, P, T, Λ', g_k.  Returns κ (...).

    >>> self_consistent(np.arange(1, 1001) ** -2.0, 10, 1.0, [0, 8, 1000]).round(4).tolist()
    [0.2644, 0.1542, 0.1538]
    """
    lam, counts, samples, ridge = _problem(eigenvalues, samples, ridge, multiplicities)
    cuts = whole("cuts", cuts, at_least=0, at_most=lam.size)  # (...)
    raised = ridge + _modes.tails(counts * lam)[cuts]  # (...)
    kappa = np.array(raised / samples)  # (...)  what is left where nothing is retained
    for place in zip(*np.nonzero(np.atleast_1d(cuts))):
        place = place if cuts.ndim else ()
        kept = slice(cuts[place])
        kappa[place] = effective_ridge.solve(lam[kept], samples, ridge=raised[place], multiplicities=counts[kept])
    return kappa


def bookkeeping(eigenvalues, kappa, samples, ridge, cuts, *, multiplicities=None):
    """The self-consistent equation split at a cut,  κ = [T + Σ_{k>Λ'} g_k λ_k (1 - L_k)] / [P - Σ_{k≤Λ'} g_k L_k].

    It holds at every cut; decimation neglects L in the tail and, with the bare equivalent kernel, the sum below.
    `eigenvalues`, `samples`, `ridge`, `cuts`, `multiplicities`: λ_k, P > Σ_{k≤Λ'} g_k L_k, T, Λ', g_k; `kappa`: κ > 0,
    as from :func:`lib.fields.kernels.effective_ridge.solve`.  Returns Bookkeeping.

    >>> bookkeeping([1.0, 1.0], 1.0, 3, 2.0, [0, 1, 2]).retained_learned.tolist()  # 3 = 2/1 + 1/2 + 1/2
    [0.0, 0.5, 1.0]
    """
    lam, counts, samples, ridge = _problem(eigenvalues, samples, ridge, multiplicities)
    kappa = checks.number("kappa", kappa, above=0)
    cuts = whole("cuts", cuts, at_least=0, at_most=lam.size)  # (...)
    learned = counts * lam / (lam + kappa)  # (n,)
    below = np.append(0.0, np.cumsum(learned))[cuts]  # (...)
    if np.any(below >= samples):
        checks.fail("samples", f"exceed what the retained modes learn, {below.max():.6g}", samples)
    raised = ridge + _modes.tails(counts * lam)[cuts]  # (...)
    lost = _modes.tails(learned * lam)[cuts]  # (...)
    fluctuating = ridge + _modes.tails(kappa * learned)[cuts]  # (...)  λ(1 - L) = κL without the difference
    # Where there is no tail and no ridge, nothing is lost.
    tail_error = np.divide(lost, raised, out=np.zeros(cuts.shape), where=raised > 0)  # (...)
    return Bookkeeping(fluctuating / (samples - below), below, below / samples, tail_error, below <= 0.1 * samples)


def tail_variance(features, eigenvalues):
    """Prior variance of the weak modes,  s(x) = Σ_{k>Λ'} λ_k φ_k(x)²,  by which the ridge of a sample at x grows.

    Where it depends on x, regression is heteroscedastic, an open question of the source.  `features` (P, m): φ_k(x) of
    the modes that are integrated out; `eigenvalues` (m,): their λ_k >= 0, in any order.  Returns s(x) (P,).

    >>> tail_variance([[1.0, 1.0], [2.0, 0.0]], [0.5, 0.25]).tolist()
    [0.75, 2.0]
    """
    phi = checks.array("features", features, ndim=2)  # (P, m)
    lam = checks.entries("eigenvalues", eigenvalues, at_least=0, shape=(phi.shape[1],))  # (m,)
    return phi**2 @ lam  # (P,)


def coefficients(features, eigenvalues, targets, ridge):
    """Coefficients of the regressed function,  f_k = λ_k Σ_μ φ_k(x_μ) [(K + diag T)⁻¹ y]_μ,  K = Σ_k λ_k φ_k φ_kᵀ.

    `features` (P, m): φ_k(x_μ), all of them with the ridge T, or the retained ones with T(Λ') or T + s(x);
    `eigenvalues` (m,): λ_k >= 0, in any order; `targets` (P,): y; `ridge`: > 0, a float or (P,).  Returns f_k (m,).

    >>> coefficients([[1.0], [1.0]], [2.0], [3.0, 3.0], 1.0).round(12).tolist()  # 3 · 2/(2 + T/P)
    [2.4]
    """
    phi = checks.array("features", features, ndim=2)  # (P, m)
    lam = checks.entries("eigenvalues", eigenvalues, at_least=0, shape=(phi.shape[1],))  # (m,)
    y = checks.array("targets", targets, shape=(phi.shape[0],))  # (P,)
    if phi.size == 0:
        checks.fail("features", "hold one or more samples of one or more modes", f"shape {phi.shape}")
    ridge = per_sample("ridge", ridge, y.shape, above=0)  # (P,)
    weighted = phi * lam  # (P, m)
    return gp_regression.mean(weighted @ phi.T, y, ridge, weighted.T)  # (m,)

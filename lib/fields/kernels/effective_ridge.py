"""The effective ridge of kernel regression: one number that says which modes P samples teach, at ridge T.

The unlearned modes of a kernel act as noise on the learned ones, so that the ridge is renormalized,  T → T_eff = Pκ,
and mode k is learned to the fraction  L_k = λ_k/(λ_k + κ).  `eigenvalues` (n,): λ_k >= 0, in any order but not all
zero; `multiplicities` (n,): g_k > 0, by default 1; `samples`: P > 0; `ridge`: T >= 0, the variance of label noise that
the regression assumes; P and T may be arrays that broadcast.  Source: ringel2025talk, on the effective ridge, with the
closure corrected (see :func:`closure_learnability`).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root

from lib.common import checks
from lib.fields.kernels import _modes
from lib.fields.kernels._modes import bracket, excess, learned, modes, settings, unlearned

CLOSURES = {"quenched": (1.0, 0.0), "annealed": (1.0, 1.0), "half": (0.5, 0.5)}  # shares of ∫Var_post and of the bias


def solve(eigenvalues, samples, *, ridge, multiplicities=None):
    """Effective ridge per sample κ, the root of  P = T/κ + Σ_k g_k λ_k/(λ_k + κ).

    It is zero without a ridge at P at or above the rank Σ_{λ>0} g_k.  `eigenvalues`, `samples`, `ridge`,
    `multiplicities`: λ_k, P, T, g_k.  Returns κ >= T/P, a float or an array.

    >>> solve([1.0], [1, 2, 3], ridge=0.0, multiplicities=[4]).round(6).tolist()  # P = 4/(1 + κ)
    [3.0, 1.0, 0.333333]
    """
    values, counts = modes(eigenvalues, multiplicities)
    p, t = settings(samples, ridge)
    unit = values.max()
    order = np.argsort(-values, kind="stable")[: np.count_nonzero(values)]  # (n',)  without the zeros
    values, counts = values[order] / unit, counts[order]  # (n',), (n',)
    with np.errstate(over="ignore"):
        p, t, shape = p.ravel(), checks.finite("ridge", t.ravel() / unit), p.shape  # (R,), (R,)
    rank = np.cumsum(counts)[-1]  # summed as in the bracket, so that both agree on it
    active = np.flatnonzero((t > 0) | (p < rank))  # (A,)
    kappa = np.zeros(p.size)  # (R,)
    if active.size:
        p, t = p[active], t[active]
        below, above = bracket(values, counts, p, t)  # (A,), (A,)
        ends = np.full(p.size, -1e-6), np.log(above / below) + 1e-6  # (A,), (A,)
        ways = {"args": (below, p, t), "tolerances": {"xatol": 1e-15, "xrtol": 1e-15}}
        found = find_root(lambda u, low, p, t: excess(low * np.exp(u), values, counts, p, t), ends, **ways).x  # (A,)
        kappa[active] = checks.finite("samples", below * np.exp(found))
    with np.errstate(over="ignore"):
        return checks.finite("ridge", kappa.reshape(shape) * unit)[()]  # (...)


def learnability(eigenvalues, kappa):
    """Fraction of each target coefficient that the mean prediction reaches,  L_k = λ_k/(λ_k + κ).

    `eigenvalues`: λ_k; `kappa` (...): κ >= 0, where 0 teaches every mode with λ_k > 0.  Returns L_k (..., n).

    >>> learnability([3.0, 1.0, 0.0], [0.0, 1.0]).tolist()
    [[1.0, 1.0, 0.0], [0.75, 0.5, 0.0]]
    """
    return learned(modes(eigenvalues)[0], checks.entries("kappa", kappa, at_least=0))


def posterior_variance(eigenvalues, kappa):
    """Posterior variance of each coefficient,  Var f_k = λ_kκ/(λ_k + κ) = λ_k(1 - L_k).

    Its sum is what the unlearned part of the function adds to the ridge,  Pκ = T + Σ_k g_k λ_k(1 - L_k).
    `eigenvalues`, `kappa`: as in :func:`learnability`.  Returns Var f_k (..., n).

    >>> posterior_variance([3.0, 1.0], 1.0).tolist()
    [0.75, 0.5]
    """
    return learnability(eigenvalues, kappa) * np.asarray(kappa, dtype=float)[..., None]  # (..., n)


def equivalent_kernel(eigenvalues, samples, *, ridge, multiplicities=None):
    """The equivalent kernel's ridge per sample,  κ = T/P,  and what it leaves out over T:  Σ_k g_k λ_k(1 - L_k)/T.

    It is the limit of a large ridge, and promises far too much where the second number is not small.  `eigenvalues`,
    `samples`, `ridge`, `multiplicities`: λ_k, P, T > 0, g_k.  Returns κ and the unlearned variance over T.

    >>> [float(part) for part in equivalent_kernel([1.0], 10, ridge=10.0, multiplicities=[4])]
    [1.0, 0.2]
    """
    values, counts = modes(eigenvalues, multiplicities)
    p, t = settings(samples, checks.entries("ridge", ridge, above=0))
    with np.errstate(over="ignore"):
        kappa = checks.finite("ridge", t / p)  # (...)
        variance = learned(values, kappa) * kappa[..., None]  # (..., n)
        return kappa[()], checks.finite("ridge", variance @ counts / t)[()]


def degenerate(eigenvalue, multiplicity, samples, *, ridge):
    """κ in closed form for one eigenvalue λ of multiplicity g: the positive root of  Pκ² + (Pλ - gλ - T)κ - Tλ = 0.

    `eigenvalue`, `multiplicity`: λ > 0, g > 0; `samples`, `ridge`: P, T.  Returns κ >= 0, a float or an array.

    >>> degenerate(1.0, 4.0, [2, 8], ridge=0.0).tolist()
    [1.0, 0.0]
    """
    value = checks.number("eigenvalue", eigenvalue, above=0)
    count = checks.number("multiplicity", multiplicity, above=0)
    p, t = settings(samples, ridge)
    with np.errstate(over="ignore", invalid="ignore"):
        checks.finite("ridge", t / value)
        return checks.finite("eigenvalue", _modes.degenerate(value, count, p, t))[()]


def ridgeless_amplitude(exponent):
    """Limit of  κP^a  without a ridge for the spectrum  λ_k = k^{-a}:  [(π/a)/sin(π/a)]^a,  of  P = ∫dk/(1 + κk^a).

    `exponent`: a > 1, so that the trace is finite.  Returns a float.

    >>> round(ridgeless_amplitude(2.0), 6)  # (π/2)²
    2.467401
    """
    a = checks.number("exponent", exponent, above=1)
    # sin(π/a) = sin(π(a - 1)/a): the smaller angle keeps its digits, as a approaches one and as it grows.
    return float((np.pi / a / np.sin(np.pi * min(1.0, a - 1) / a)) ** a)


def closure_learnability(closure, eigenvalues, target_power, samples, *, ridge, multiplicities=None):
    """Learnabilities under one of three closures, to compare:  Pκ = T + α Σ_k g_k λ_k(1 - L_k) + β Σ_k (1 - L_k)² w_k.

    `closure`: "quenched", (α, β) = (1, 0), the average over data sets with replicas; "annealed", (1, 1), which averages
    the partition function and takes the whole discrepancy for noise; or "half", (½, ½), its variant with a factor too
    many.  The source, without replicas, prints these two; but regression is linear in the target, so a ridge that
    depends on it cannot be right.  Of several roots the largest is taken: it belongs to the fewest samples.
    `target_power` (n,): w_k >= 0, squared coefficients, summed over an eigenvalue's modes; `eigenvalues`, `samples`,
    `ridge`, `multiplicities`: λ_k, P, T > 0, g_k, P and T one number each.  Returns L_k (n,).

    >>> [float(closure_learnability(name, [1.0], [9.0], 4, ridge=1.0)[0].round(3)) for name in CLOSURES]
    [0.764, 0.55, 0.734]
    """
    variance_share, bias_share = CLOSURES[checks.one_of("closure", closure, CLOSURES)]
    values, counts = modes(eigenvalues, multiplicities)
    power = checks.entries("target_power", target_power, at_least=0, shape=values.shape)  # (n,)
    p, t = checks.number("samples", samples, above=0), checks.number("ridge", ridge, above=0)

    def surplus(u):
        kappa = np.exp(u)
        left = unlearned(values, kappa)  # (n,)
        return t + variance_share * (counts * left) @ values + bias_share * left**2 @ power - p * kappa

    with np.errstate(over="ignore"):
        most = checks.finite("target_power", t + counts @ values + power.sum())
        grid = np.linspace(np.log(most / p) + 1e-9, np.log(t / p) - 1e-9, 2000)  # (2000,)  down from no data
    first = next(i for i, u in enumerate(grid) if surplus(u) > 0)
    return learned(values, np.exp(brentq(surplus, grid[first], grid[first - 1], xtol=1e-14)))

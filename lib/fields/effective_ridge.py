r"""The effective ridge of kernel regression: one number that says which modes P samples teach, at ridge T.

The kernel has eigenvalues λ_k with multiplicities g_k under the input measure.  Its unlearned modes act as noise on the learned ones, so that
the ridge is renormalized,  T → T_eff = Pκ,  and mode k is learned to the fraction  L_k = λ_k/(λ_k + κ).  κ is the effective ridge per sample.
Source: ringel2025talk (the deck), slides on the effective ridge, with the closure corrected (see :func:`closure_learnability`).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root

from lib.common import checks
from lib.fields._effective_ridge import bracket, excess, modes, settings, unlearned

CLOSURES = {
    "quenched": (1.0, 0.0),
    "annealed": (1.0, 1.0),
    "half": (0.5, 0.5),
}  # shares of ∫Var_post and of the bias in the ridge


def solve(eigenvalues, samples, *, ridge, multiplicities=None):
    r"""Effective ridge per sample κ, the root of  P = T/κ + Σ_k g_k λ_k/(λ_k + κ).

    Without a ridge, T = 0, and with P at or above the rank Σ_{λ>0} g_k, it is zero.  All roots are found side by side in log κ between bounds
    that are exact.  Source: ringel2025talk (the deck), slides on the effective ridge.

    Parameters
    ----------
    eigenvalues : array (n,)                 λ_k; >= 0, not all zero, in any order
    samples : float or array                 P; > 0
    ridge : float or array                   T, the variance of label noise that the regression assumes; >= 0; broadcasts with `samples`
    multiplicities : array (n,), optional    g_k; > 0; default: one each

    Returns
    -------
    float or array                           κ, in the unit of the eigenvalues; >= T/P

    Examples
    --------
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
    active = np.flatnonzero(
        (t > 0) | (p < np.cumsum(counts)[-1])
    )  # (A,)  summed as in the bracket, so that both agree on the rank
    kappa = np.zeros(p.size)  # (R,)
    if active.size:
        p, t = p[active], t[active]
        below, above = bracket(values, counts, p, t)  # (A,), (A,)
        found = find_root(
            lambda u, low, p, t: excess(low * np.exp(u), values, counts, p, t),
            (np.full(p.size, -1e-6), np.log(above / below) + 1e-6),
            args=(below, p, t),
            tolerances={"xatol": 1e-15, "xrtol": 1e-15},
        )
        kappa[active] = checks.finite("samples", below * np.exp(found.x))
    with np.errstate(over="ignore"):
        return checks.finite("ridge", kappa.reshape(shape) * unit)[()]  # (...)


def learnability(eigenvalues, kappa):
    r"""Fraction of each target coefficient that the mean prediction reaches,  L_k = λ_k/(λ_k + κ).

    Source: ringel2025talk (the deck), slides on the effective ridge.

    Parameters
    ----------
    eigenvalues : array (n,)    λ_k; >= 0, not all zero
    kappa : float or array      κ; >= 0; at κ = 0 every mode with λ_k > 0 is learned and the others are not

    Returns
    -------
    array (..., n)              L_k, from 0 to 1; the first axes are those of `kappa`

    Examples
    --------
    >>> learnability([3.0, 1.0, 0.0], [0.0, 1.0]).tolist()
    [[1.0, 1.0, 0.0], [0.75, 0.5, 0.0]]
    """
    values, _ = modes(eigenvalues, None)
    k = checks.entries("kappa", kappa, at_least=0)[..., None]  # (..., 1)
    shares = np.broadcast_to(values > 0, (*k.shape[:-1], values.size)).astype(float)  # (..., n)
    # λ and κ are halved, so that their sum cannot leave the floating-point range.
    return np.divide(values / 2, values / 2 + k / 2, out=shares, where=(values > 0) & (k > 0))


def posterior_variance(eigenvalues, kappa):
    r"""Posterior variance of each coefficient,  Var f_k = λ_kκ/(λ_k + κ) = λ_k(1 - L_k).

    Summed with multiplicities it is what the unlearned part of the function adds to the ridge,  Pκ = T + Σ_k g_k λ_k(1 - L_k).
    Source: ringel2025talk (the deck), slides on the equivalent kernel and the effective ridge.

    Parameters
    ----------
    eigenvalues : array (n,)    λ_k; >= 0, not all zero
    kappa : float or array      κ; >= 0

    Returns
    -------
    array (..., n)              the first axes are those of `kappa`

    Examples
    --------
    >>> posterior_variance([3.0, 1.0], 1.0).tolist()
    [0.75, 0.5]
    """
    return learnability(eigenvalues, kappa) * checks.entries("kappa", kappa, at_least=0)[..., None]  # (..., n)


def equivalent_kernel(eigenvalues, samples, *, ridge, multiplicities=None):
    r"""The equivalent kernel's ridge per sample,  κ = T/P,  and what it leaves out in units of T:  Σ_k g_k λ_k(1 - L_k)/T.

    It is the limit of a large ridge.  Where the second number is not small, it promises far too much.
    Source: ringel2025talk (the deck), slides on the equivalent kernel.

    Parameters
    ----------
    eigenvalues : array (n,)                 λ_k; >= 0, not all zero
    samples : float or array                 P; > 0
    ridge : float or array                   T; > 0; broadcasts with `samples`
    multiplicities : array (n,), optional    g_k; > 0; default: one each

    Returns
    -------
    (float or array, float or array)         κ, and the unlearned variance over T

    Examples
    --------
    >>> [float(part) for part in equivalent_kernel([1.0], 10, ridge=10.0, multiplicities=[4])]
    [1.0, 0.2]
    """
    values, counts = modes(eigenvalues, multiplicities)
    checks.entries("ridge", ridge, above=0)
    p, t = settings(samples, ridge)
    with np.errstate(over="ignore"):
        kappa = checks.finite("ridge", t / p)  # (...)
        return kappa[()], checks.finite("ridge", posterior_variance(values, kappa) @ counts / t)[()]


def degenerate(eigenvalue, multiplicity, samples, *, ridge):
    r"""κ in closed form for one eigenvalue λ of multiplicity D: the positive root of  Pκ² + (Pλ - Dλ - T)κ - Tλ = 0.

    Source: ringel2025talk (the deck), slides on the effective ridge, for a spectrum of one eigenvalue.

    Parameters
    ----------
    eigenvalue : float          λ; > 0
    multiplicity : float        D; > 0
    samples : float or array    P; > 0
    ridge : float or array      T; >= 0; broadcasts with `samples`

    Returns
    -------
    float or array              κ; >= 0

    Examples
    --------
    >>> degenerate(1.0, 4.0, [2, 8], ridge=0.0).tolist()
    [1.0, 0.0]
    """
    value = checks.number("eigenvalue", eigenvalue, above=0)
    count = checks.number("multiplicity", multiplicity, above=0)
    p, t = settings(samples, ridge)
    with np.errstate(over="ignore"):
        t = checks.finite("ridge", t / value)  # (...)
        middle = (count - p) + t  # (...)  in this order: at P = D nothing of T is lost
        size = checks.finite("ridge", np.abs(middle) + np.hypot(middle, 2 * np.sqrt(p) * np.sqrt(t)))  # (...)
        # The root without cancellation on either side of the threshold P = D + T/λ; the two forms meet where the middle term is zero.
        kappa = np.where(middle < 0, 2 * t, size) / np.where(middle < 0, size, 2 * p)  # (...)
        return checks.finite("eigenvalue", value * kappa)[()]


def ridgeless_amplitude(exponent):
    r"""Limit of  κP^a  without a ridge for the spectrum  λ_k = k^{-a}:  [(π/a)/sin(π/a)]^a.

    From  P = ∫dk/(1 + κk^a), for many samples.  Source: not in the source, ringel2025talk (the deck), which gives the power of P alone.

    Parameters
    ----------
    exponent : float    a; > 1, so that the trace is finite

    Returns
    -------
    float

    Examples
    --------
    >>> round(ridgeless_amplitude(2.0), 6)  # (π/2)²
    2.467401
    """
    a = checks.number("exponent", exponent, above=1)
    # sin(π/a) = sin(π(a - 1)/a): the smaller angle keeps its digits, as a approaches one and as it grows.
    return float((np.pi / a / np.sin(np.pi * min(1.0, a - 1) / a)) ** a)


def closure_learnability(closure, eigenvalues, target_power, samples, *, ridge, multiplicities=None):
    r"""Learnabilities under one of three closures, to compare:  Pκ = T + α Σ_k g_k λ_k(1 - L_k) + β Σ_k (1 - L_k)² w_k.

    "quenched", (α, β) = (1, 0), is the average over data sets with replicas; its ridge does not know the target.  "annealed", (1, 1), averages the
    partition function instead, and takes the whole discrepancy for noise; "half", (½, ½), is its variant with a factor too many.  Regression is
    linear in the target, so a ridge that depends on it cannot be right.  Of several roots the largest is taken: it belongs to the fewest samples.
    Source: ringel2025talk (the deck), slides on three treatments of the average, which leave out replicas: read so, they print
    the second and third; with replicas it is the first.

    Parameters
    ----------
    closure : str                            "quenched", "annealed" or "half"
    eigenvalues : array (n,)                 λ_k; >= 0, not all zero
    target_power : array (n,)                w_k, the target's squared coefficients, summed over the modes of each eigenvalue; >= 0
    samples : float                          P; > 0
    ridge : float                            T; > 0
    multiplicities : array (n,), optional    g_k; > 0; default: one each

    Returns
    -------
    array (n,)                               L_k

    Examples
    --------
    >>> [float(closure_learnability(name, [1.0], [9.0], 4, ridge=1.0)[0].round(3)) for name in CLOSURES]
    [0.764, 0.55, 0.734]
    """
    if not isinstance(closure, str) or closure not in CLOSURES:
        checks.fail("closure", f"be one of {', '.join(CLOSURES)}", closure)
    values, counts = modes(eigenvalues, multiplicities)
    power = checks.entries("target_power", target_power, at_least=0, shape=values.shape)  # (n,)
    p, t = checks.number("samples", samples, above=0), checks.number("ridge", ridge, above=0)
    variance_share, bias_share = CLOSURES[closure]

    def surplus(u):
        kappa = np.exp(u)
        left = unlearned(values, kappa)  # (n,)
        return t + variance_share * (counts * left) @ values + bias_share * left**2 @ power - p * kappa

    with np.errstate(over="ignore"):
        most = checks.finite("target_power", t + counts @ values + power.sum())
        grid = np.linspace(np.log(most / p) + 1e-9, np.log(t / p) - 1e-9, 2000)  # (2000,)  down from no data
    first = next(i for i, u in enumerate(grid) if surplus(u) > 0)
    return learnability(values, np.exp(brentq(surplus, grid[first], grid[first - 1], xtol=1e-14)))

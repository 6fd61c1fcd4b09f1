r"""What units φ(w·x) see of a single-index teacher y(w_*·x), for inputs x ~ N(0, I): projections, targets, effective ridge, lazy limit.

A unit is known by its overlap m = w·w_* and its squared length, which is q = |w|² = σ_w² + m² in many dimensions.  Averaged over x it has the
components  ĥ_n(m) = ⟨φ(w·x) He_n(v)/√n!⟩  on the orthonormal Hermite polynomials of v = w_*·x; so have the teacher, Y_n, and what is left to
learn of it, r_n.  A component's learnability is R_n = 1 - r_n/Y_n.
Source: ringel2025talk, the deck, slides on the staircase target and on ReLU networks; its Hermite polynomials are not normalized.
"""

from math import factorial

import numpy as np

from lib.common import checks
from lib.fields import effective_ridge, nngp
from lib.fields.overlaps import _perpendicular

DEGREES = {"erf": (1, 3), "relu": (0, 1, 2, 4)}  # the components of the two teachers below
HIGHEST_DEGREE = 20
LARGEST = 1e50  # largest variance, inverse variance or target: products of several stay floats
_STEPS = np.linspace(-1, 1, 121)  # (K,)  of the rule for averages over a Gaussian overlap
_REACH = 9.0  # its end, in standard deviations


def _basis(activation, degrees):
    """Checked activation and degrees (n,); those of the activation's teacher if none are given."""
    if not isinstance(activation, str) or activation not in DEGREES:
        checks.fail("activation", f"be one of {', '.join(DEGREES)}", activation)
    listed = checks.entries(
        "degrees", DEGREES[activation] if degrees is None else degrees, at_least=0, at_most=HIGHEST_DEGREE, ndim=1
    )  # (n,)
    if listed.size == 0 or np.any(listed != np.rint(listed)) or np.unique(listed).size < listed.size:
        checks.fail("degrees", "hold one or more different integers", degrees)
    return activation, listed.astype(int)


def _target(value, size):
    """Checked Y_n (n,), not all zero, and none so small that a learnability overflows."""
    target = checks.entries("target", value, at_least=-LARGEST, at_most=LARGEST, shape=(size,))  # (n,)
    if not target.any() or np.any((target != 0) & (np.abs(target) < 1 / LARGEST)):
        checks.fail("target", f"have components that are zero or {1 / LARGEST:g} and more in size, not all zero", value)
    return target


def _variance(name, value):
    return checks.number(name, value, at_least=1 / LARGEST, at_most=LARGEST)


def _coefficient(activation, n):
    """The number in front of ĥ_n: what is left of it for a unit of correlation one."""
    half, odd = divmod(n, 2)
    if activation == "erf":
        return np.sqrt(2 / np.pi * factorial(n)) * (-0.5) ** half / (factorial(half) * n) if odd else 0.0
    if n < 2:
        return 0.5 if odd else 1 / np.sqrt(2 * np.pi)
    return (
        0.0
        if odd
        else (-0.5) ** (half - 1) * factorial(n - 2) / (factorial(half - 1) * np.sqrt(2 * np.pi * factorial(n)))
    )


def _components(activation, degrees, overlap, weight_variance, fixed_length=False):
    """ĥ_n(m), (..., n), of checked arguments; |w|² = σ_w² + m², or σ_w² if it is fixed; σ_w² may be an array."""
    length = np.hypot(np.sqrt(weight_variance), 0 * overlap if fixed_length else overlap)[..., None]  # (..., 1)  |w|
    ratio = overlap[..., None] / (
        np.hypot(np.sqrt(0.5), length) if activation == "erf" else length
    )  # (..., 1)  from -1 to 1
    size = 1.0 if activation == "erf" else length
    powers = np.ones(
        (*ratio.shape[:-1], degrees.max() + 1)
    )  # (..., 1+highest)  multiplied up, which is faster than to raise
    for n in range(degrees.max()):
        powers[..., n + 1] = powers[..., n] * ratio[..., 0]
    return size * np.array([_coefficient(activation, n) for n in degrees.tolist()]) * powers[..., degrees]  # (..., n)


def _gaussian_overlap(activation, variance, weight_variance):
    """Nodes m and weights, both (..., K), of the average over m ~ N(0, variance), the nodes on an axis of their own.

    The trapezoidal rule in t, m = c sinh t:  ĥ depends on tanh t then, and is resolved to rounding up to variances of 10⁶ c².  A Gauss-Hermite
    rule of as many nodes is as exact far below c², and off by 10⁻³ at ten times that.
    """
    scale = np.sqrt(weight_variance + (0.5 if activation == "erf" else 0.0))  # () or (...)
    end = np.maximum(np.arcsinh(_REACH * np.sqrt(variance) / scale), 1e-100)[..., None]  # (..., 1)
    x = _REACH * np.sinh(end * _STEPS) / np.sinh(end)  # (..., K)  m in standard deviations
    weights = np.exp(-(x**2) / 2) * np.cosh(end * _STEPS)  # (..., K)
    return np.sqrt(variance)[..., None] * x, weights / weights.sum(axis=-1, keepdims=True)


def _residuals(moments, strength, target):
    """(1 + strength M)^{-1} Y for M = moments, in its eigenbasis: positive semidefinite, so that no strength makes it singular."""
    values, modes = np.linalg.eigh(moments)  # (..., n), (..., n, n)
    left = 1 / (1 + strength[..., None] * np.maximum(values, 0))  # (..., n)
    return np.einsum("...ij,...j,...kj,k->...i", modes, left, modes, target)  # (..., n)


def _learnabilities(residuals, target):
    return 1 - np.divide(residuals, target, out=np.full(residuals.shape, np.nan), where=target != 0)  # (..., n)


def projections(activation, overlap, weight_variance=1.0, *, degrees=None):
    r"""Components ĥ_n(m) = ⟨φ(w·x) He_n(v)/√n!⟩ of one unit, at q = σ_w² + m².

    erf:   ĥ_{2k+1} = √(2n!/π) (-½)^k/(k! n) [2m²/(1 + 2q)]^{n/2} sign(m),  n = 2k + 1; even ones vanish.
    ReLU:  ĥ_0 = √(q/2π),  ĥ_1 = m/2,  ĥ_n = √q He_{n-2}(0)/√(2πn!) (m/√q)^n  for even n >= 2; higher odd ones vanish.
    Times √n!, those of erf are the projections h_n on the polynomials He_n themselves:  h_1 = 2m/√(π(1 + 2q)), ...
    Source: ringel2025talk, the deck, slides on the staircase target; ReLU and the general degree are not in it.

    Parameters
    ----------
    activation : str                   "erf" or "relu"
    overlap : float or array (...)     m
    weight_variance : float            σ_w²; > 0
    degrees : int array (n,)           different, each in 0 .. 20; default: 1, 3 for erf and 0, 1, 2, 4 for ReLU

    Returns
    -------
    array (..., n)                     ĥ_n(m)

    Examples
    --------
    >>> projections("erf", [1.0], 0.5).round(4).tolist()  # 1/√π and -1/√(24π)
    [[0.5642, -0.1152]]
    """
    activation, listed = _basis(activation, degrees)
    m = checks.array("overlap", overlap)  # (...)
    variance = _variance("weight_variance", weight_variance)
    return checks.finite("overlap", _components(activation, listed, m, variance))


def moments(activation, variance, weight_variance=1.0, *, degrees=None):
    r"""Second moments  ⟨ĥ_n ĥ_l⟩  over units of Gaussian overlap, m ~ N(0, B), by quadrature.

    Times s_a² they are the kernel of a wide network in the teacher's direction; in the prior B = σ_w²/d.
    Source: ringel2025talk, the deck, slides on the staircase target.

    Parameters
    ----------
    activation : str                   "erf" or "relu"
    variance : float or array (...)    B; >= 0
    weight_variance : float            σ_w²; > 0
    degrees : int array (n,)           as in :func:`projections`

    Returns
    -------
    array (..., n, n)

    Examples
    --------
    >>> float(moments("relu", 0.04)[1, 1].round(6))  # ⟨m²⟩/4
    0.01
    """
    activation, listed = _basis(activation, degrees)
    b = checks.entries("variance", variance, at_least=0)  # (...)
    scale = _variance("weight_variance", weight_variance)
    m, weights = _gaussian_overlap(activation, b, scale)  # (..., K), (..., K)
    seen = _components(activation, listed, m, scale)  # (..., K, n)
    with np.errstate(over="ignore", invalid="ignore"):
        return checks.finite("variance", np.swapaxes(weights[..., None] * seen, -1, -2) @ seen)  # (..., n, n)


def staircase(epsilon):
    r"""Components (1, √6 ε) of the target  y = He_1(v) + ε He_3(v)  on He_1 and He_3/√6, the default degrees of erf.

    Source: ringel2025talk, the deck, slides on the staircase target.

    Parameters
    ----------
    epsilon : float    ε

    Returns
    -------
    array (2,)         Y_1, Y_3

    Examples
    --------
    >>> staircase(-0.3).round(4).tolist()
    [1.0, -0.7348]
    """
    return np.array([1.0, np.sqrt(6) * checks.number("epsilon", epsilon, at_least=-1e300, at_most=1e300)])  # (2,)


def relu_teacher(epsilon):
    r"""Components of the target  y = v + ε(|v| - √(2/π))  for n = 0, 1, 2, 4, the default degrees of ReLU:  0, 1, ε/√π, -ε/√(12π).

    These are the first four of infinitely many.  Source: ringel2025talk, the deck, slides on ReLU networks.

    Parameters
    ----------
    epsilon : float    ε

    Returns
    -------
    array (4,)         Y_0, Y_1, Y_2, Y_4

    Examples
    --------
    >>> relu_teacher(0.3).round(4).tolist()
    [0.0, 1.0, 0.1693, -0.0489]
    """
    epsilon = checks.number("epsilon", epsilon)
    return np.array([0.0, 1.0, epsilon / np.sqrt(np.pi), -epsilon / np.sqrt(12 * np.pi)])  # (4,)


def ridge(activation, dimension, samples, ridge, *, weight_variance=1.0, readout_variance=1.0):
    r"""Effective ridge per sample κ with which the network's linear (erf) or first three (ReLU) degrees are learned.

    κ is the root of  P = (T + τ)/κ + Σ_ℓ g_ℓ λ_ℓ/(λ_ℓ + κ)  over ℓ = 1 (erf) or ℓ = 0, 1, 2 (ReLU), with λ_ℓ and g_ℓ of :func:`nngp.sphere_spectrum`.
    What they leave of the variance,  τ = K(x, x) - Σ_ℓ g_ℓ λ_ℓ  at |x|² = d, lies in O(d³) modes, of degree three and more, and acts as a ridge.
    It is the refinement of the bare equivalent kernel, κ = T/P, at the prior's spectrum.
    Source: ringel2025talk, the deck, slides on the effective ridge and on the staircase target; for ReLU not in the source.

    Parameters
    ----------
    activation : str            "erf" or "relu"
    dimension : int             d; >= 2
    samples : float or array    P; > 0
    ridge : float or array      T; >= 0; broadcasts with `samples`
    weight_variance : float     σ_w²; > 0
    readout_variance : float    s_a²; > 0

    Returns
    -------
    float or array              κ; >= T/P

    Examples
    --------
    >>> float(ridge("erf", 20, 100, 0.1).round(5))
    0.00172
    """
    activation, _ = _basis(activation, None)
    settings = {
        "weight_variance": _variance("weight_variance", weight_variance),
        "readout_variance": _variance("readout_variance", readout_variance),
    }
    eigenvalues, multiplicities = nngp.sphere_spectrum(
        activation, dimension, [1] if activation == "erf" else [0, 1, 2], **settings
    )  # (L,), (L,)
    # On the sphere all inputs have the variance of this one.
    total = nngp.variance(activation, np.ones((1, dimension)), **settings)[0]
    tail = max(
        total - multiplicities @ eigenvalues, 0.0
    )  # below zero by rounding alone, where erf is as good as linear
    bare = checks.entries("ridge", ridge, at_least=0)  # (...)
    return effective_ridge.solve(eigenvalues, samples, ridge=bare + tail, multiplicities=multiplicities)


def lazy(
    activation,
    target,
    dimension,
    effective_samples,
    *,
    weight_variance=1.0,
    readout_variance=1.0,
    degrees=None,
    fixed_length=False,
    perpendicular="fixed",
):
    r"""What an infinitely wide network leaves of the target:  (1 + P_e M) r = Y,  M = s_a²⟨ĥĥᵀ⟩ over m ~ N(0, σ_w²/d).

    Its weights keep their prior.  For Gaussian inputs the cubic component mixes with the linear one, since |x|² fluctuates:  as long as
    P_e λ_3 << 1, the staircase target has  R_3 ≃ -σ_w²/d/((1 + 2σ_w²)ε) R_1, negative for ε > 0, though nothing cubic is learned.  That is to
    leading order in 1/d, which is as far as |w|² = σ_w² + m² goes too; with |w|² = σ_w², R_3 comes out the other side of the average over |w|².
    Source: ringel2025talk, the deck, slides on the staircase target; the mixing is not in the source.

    Parameters
    ----------
    activation : str                            "erf" or "relu"
    target : array (n,)                         Y_n; not all zero
    dimension : int                             d; >= 1
    effective_samples : float or array (...)    P_e = 1/κ; >= 0
    weight_variance : float                     σ_w²; > 0
    readout_variance : float                    s_a²; > 0
    degrees : int array (n,)                    as in :func:`projections`
    fixed_length : bool                         whether |w|² is σ_w² rather than σ_w² + m², which the networks that adapt start from
    perpendicular : str                         "fixed", |w_⊥|² = σ_w², or "free", averaged over its prior, (σ_w²/d) χ² of d - 1 degrees

    Returns
    -------
    (array (..., n), array (..., n))            residuals r_n and learnabilities R_n, nan where Y_n = 0

    Examples
    --------
    >>> residuals, learned = lazy("erf", staircase(0.3), 50, 840.0)
    >>> learned.round(4).tolist()
    [0.863, -0.0167]
    """
    activation, listed = _basis(activation, degrees)
    y = _target(target, listed.size)  # (n,)
    free, whole = _perpendicular.is_free(perpendicular), checks.boolean("fixed_length", fixed_length)
    if free and whole:
        checks.fail("perpendicular", "be fixed if the whole length is", perpendicular)
    d = _perpendicular.dimension(dimension, free)
    strength = checks.entries("effective_samples", effective_samples, at_least=0)  # (...)
    scale = _variance("weight_variance", weight_variance)
    readout = _variance("readout_variance", readout_variance)
    m, weights = _gaussian_overlap(activation, np.array(scale / d), scale)  # (K,), (K,)
    q, log = _perpendicular.lengths(d, scale, free)  # (Q,), (Q,)
    seen = _components(activation, listed, m, q[:, None], whole)  # (Q, K, n)
    kernel = np.einsum("qki,qkj,q,k->ij", seen, seen, np.exp(log), weights, optimize=True)  # (n, n)
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = checks.finite("effective_samples", _residuals(kernel, readout * strength, y))  # (..., n)
    return residuals, _learnabilities(residuals, y)

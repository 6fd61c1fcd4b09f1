"""The density of steps on the surface they fill, and how far one-dimensional maps describe it, from Jacobians.

With K > d the steps q̇(x) fill a d-dimensional surface, with density  Σ p_x(x)/√det JᵀJ  per area,  J = ∂q̇/∂x,  over
the x with that step; on an exponential tail it falls as |q̇|^-d, but |q̇| itself has exponent 1.  Source: kukleva2024,
eqs. (3.13) to (3.16), (4.4) to (4.6), all local; the area formula is ours.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import ks_2samp

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class SingularPairs:
    """Leading r singular pairs of N Jacobians, J ≈ U diag(σ) Vᵀ, the largest first.

    Attributes
    ----------
    left, right : ndarray (N, K, r), (N, d, r)
        Columns u_i and v_i.
    values : ndarray (N, r)
        σ_i.
    """

    left: Array["N K r"]
    values: Array["N r"]
    right: Array["N d r"]


@dataclass(frozen=True, eq=False)
class OneDimensionalMap:
    """The best description of one number by a function of another.

    Attributes
    ----------
    predicted : ndarray (n,)
        g(x') of every sample.
    explained : float
        Share of the variance, at most 1.
    distance : float
        Kolmogorov-Smirnov, between the laws of g(x') and of the number itself.
    """

    predicted: Array[" n"]
    explained: float
    distance: float


def _jacobians(value):
    jacobians = checks.array("jacobians", value, ndim=3)  # (N, K, d)
    if 0 in jacobians.shape or jacobians.shape[1] < jacobians.shape[2]:
        checks.fail("jacobians", "have shape (N, K, d) with K >= d >= 1", f"shape {jacobians.shape}")
    return jacobians


def singular_pairs(jacobians: ArrayLike, *, pairs: int = 1) -> SingularPairs:
    """Leading singular pairs of each Jacobian, kukleva2024 eqs. (4.4), (4.5):  J = UΣVᵀ, q̇' = Uᵀq̇, x' = Vᵀx.

    Parameters
    ----------
    jacobians : array_like (N, K, d)
        J = ∂q̇/∂x of N samples, K >= d >= 1.
    pairs : int, optional
        r <= d, by default 1.

    Returns
    -------
    SingularPairs

    Examples
    --------
    >>> singular_pairs([[[0.0, 0.0], [3.0, 0.0], [0.0, 5.0]]], pairs=2).values.tolist()
    [[5.0, 3.0]]
    """
    jacobians = _jacobians(jacobians)  # (N, K, d)
    if (pairs := checks.integer("pairs", pairs)) > jacobians.shape[2]:
        checks.fail("pairs", f"be at most the number of inputs, {jacobians.shape[2]}", pairs)
    left, values, right = np.linalg.svd(jacobians, full_matrices=False)  # (N, K, d), (N, d), (N, d, d)
    return SingularPairs(left[:, :, :pairs], values[:, :pairs], right[:, :pairs].transpose(0, 2, 1))


def overlaps(vectors: ArrayLike) -> Array[" pairs"]:
    """|cos| of the angle between every two vectors, 1 where they share one line.

    Parameters
    ----------
    vectors : array_like (N, n)
        N >= 2, none zero.

    Returns
    -------
    ndarray (N(N-1)/2,)
        Pairs i < j.

    Examples
    --------
    >>> overlaps([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]]).tolist()
    [0.0, 1.0, 0.0]
    """
    vectors = checks.array("vectors", vectors, ndim=2)  # (N, n)
    scale = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)  # (N, 1)
    if len(vectors) < 2 or np.any(scale == 0):
        checks.fail("vectors", "hold two vectors or more, none of them zero", vectors)
    unit = vectors / scale  # (N, n)  first by the largest entry: the squares of tiny vectors underflow
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)  # (N, n)
    return np.abs(unit @ unit.T)[np.triu_indices(len(unit), 1)]  # (N(N-1)/2,)


def diagonal_energy(jacobians: ArrayLike) -> Array[" N"]:
    """Share of each Jacobian's energy |J|² that the frame of their mean sees on its diagonal:  Σ_i (u_iᵀJv_i)²/|J|².

    1 where kukleva2024 eq. (4.6) decouples a sample, about 1/K in a random frame.

    Parameters
    ----------
    jacobians : array_like (N, K, d)
        None zero, K >= d >= 1.

    Returns
    -------
    ndarray (N,)

    Examples
    --------
    >>> diagonal_energy([[[4.0, 2.0], [0.0, 1.0]], [[4.0, -2.0], [0.0, 1.0]]]).round(6).tolist()  # 17/21
    [0.809524, 0.809524]
    """
    jacobians = _jacobians(jacobians)  # (N, K, d)
    scale = np.abs(jacobians).max(axis=(1, 2))  # (N,)
    checks.fail_if(np.any(scale == 0), "jacobians", "be none of them zero", jacobians)
    left, _, right = np.linalg.svd(jacobians.mean(axis=0), full_matrices=False)  # (K, d), (d,), (d, d)
    scaled = jacobians / scale[:, None, None]  # (N, K, d)  so that squares of tiny entries do not underflow
    diagonal = np.einsum("ki,nki->ni", left, scaled @ right.T)  # (N, d)
    return (diagonal**2).sum(axis=1) / (scaled**2).sum(axis=(1, 2))  # (N,)


def log_area(jacobians: ArrayLike) -> Array[" N"]:
    """ln √det JᵀJ, the area of the surface of steps per unit of volume of inputs:  Σ_i ln σ_i.

    The log-density per area of one sheet is  ln p_x  less this.

    Parameters
    ----------
    jacobians : array_like (N, K, d)
        Of full column rank, K >= d >= 1.

    Returns
    -------
    ndarray (N,)

    Examples
    --------
    >>> np.exp(2 * log_area([[[1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]])).round(12).tolist()  # (1 + 2²) 2²
    [20.0]
    """
    jacobians = _jacobians(jacobians)  # (N, K, d)
    values = np.linalg.svd(jacobians, compute_uv=False)  # (N, d)
    if np.any(values[:, -1] <= np.finfo(float).eps * jacobians.shape[1] * values[:, 0]):
        checks.fail("jacobians", "have full column rank: the density is infinite where the map folds", jacobians)
    return np.log(values).sum(axis=1)  # (N,)


def neuron_log_area(
    inputs: ArrayLike, weights: ArrayLike, slope: ArrayLike, slope1: ArrayLike, *, learning_rate: float = 1.0
) -> Array[" N"]:
    """ln √det JᵀJ of one neuron y = w·x + b:  √det JᵀJ = γ^d |h|^{d-1} √((h + h'w·x)² + h'²|w|²).

    At d = 1 it is the arc speed, not the radial one of kukleva2024 eq. (5.4).

    Parameters
    ----------
    inputs, weights : array_like (N, d), (d,)
        x and w.
    slope, slope1 : array_like (N,)
        h = dH/dy ≠ 0 and h'.
    learning_rate : float, optional
        γ > 0, by default 1.

    Returns
    -------
    ndarray (N,)

    Examples
    --------
    >>> neuron_log_area([[0.0]], [3.0], [4.0], [1.0], learning_rate=1.0).round(6).tolist()  # |(h, h'w)| = 5
    [1.609438]
    """
    x = checks.array("inputs", inputs, ndim=2)  # (N, d)
    checks.fail_if(x.size == 0, "inputs", "hold one sample or more of one component or more", f"shape {x.shape}")
    w = checks.array("weights", weights, shape=(x.shape[1],))  # (d,)
    h = checks.array("slope", slope, shape=(len(x),))  # (N,)
    h1 = checks.array("slope1", slope1, shape=(len(x),))  # (N,)
    rate = checks.number("learning_rate", learning_rate, above=0)
    checks.fail_if(np.any(h == 0), "slope", "have no zeros: there every direction but one is lost", slope)
    # As a multiple of |h|, which may be as small as e^-700; overflow of a result is caught below.
    with np.errstate(over="ignore", invalid="ignore"):
        relative = h1 / h  # (N,)
        stretch = np.hypot(1 + relative * (x @ w), relative * np.linalg.norm(w))  # (N,)
        result = x.shape[1] * (np.log(rate) + np.log(np.abs(h))) + np.log(stretch)  # (N,)
    return checks.finite("slope1", result)


def one_dimensional_map(inputs: ArrayLike, outputs: ArrayLike, *, bins: int = 200) -> OneDimensionalMap:
    """The least-squares function q̇'_i ≈ g(x'_i) of one coordinate: what it explains, and whether eq. (4.6) follows.

    g joins the means of bins of equal count; kukleva2024 eq. (4.6) claims that g(x'_i) has the law of the outputs,
    exact if all samples share the directions of x'_i = v_i·x, q̇'_i = u_i·q̇.

    Parameters
    ----------
    inputs, outputs : array_like (n,)
        x'_i, which differ between bins, and q̇'_i, not all equal up to rounding.
    bins : int, optional
        2 to n/2, by default 200.

    Returns
    -------
    OneDimensionalMap

    Examples
    --------
    >>> found = one_dimensional_map(np.linspace(-1, 1, 4000), 3 * np.linspace(-1, 1, 4000), bins=200)
    >>> round(found.explained, 9), found.distance < 1e-3
    (1.0, True)
    """
    x, y = checks.array("inputs", inputs, ndim=1), checks.array("outputs", outputs, ndim=1)  # (n,), (n,)
    bins = checks.integer("bins", bins, at_least=2)
    checks.fail_if(len(x) < 2 * bins, "inputs", f"hold at least two samples a bin, {2 * bins}", f"shape {x.shape}")
    checks.fail_if(len(y) != len(x), "outputs", f"have shape ({len(x)},) like inputs", f"shape {y.shape}")
    checks.fail_if(np.ptp(y) <= 1e-13 * np.abs(y).max(), "outputs", "differ between samples", outputs)
    groups = np.array_split(np.argsort(x, kind="stable"), bins)  # bins of (n/bins,) each
    centres = np.array([x[group].mean() for group in groups])  # (bins,)
    means = np.array([y[group].mean() for group in groups])  # (bins,)
    widths = np.diff(centres)  # (bins - 1,)
    checks.fail_if(np.any(widths <= 0), "inputs", "differ between bins: too many are equal", inputs)
    # Beyond the first and the last centre the nearest line goes on; cut off, the law would have two false atoms.
    piece = np.clip(np.searchsorted(centres, x) - 1, 0, bins - 2)  # (n,)
    predicted = means[piece] + (np.diff(means) / widths)[piece] * (x - centres[piece])  # (n,)
    explained = 1 - float(((y - predicted) ** 2).mean() / y.var())
    return OneDimensionalMap(predicted, explained, float(ks_2samp(predicted, y, method="asymp").statistic))

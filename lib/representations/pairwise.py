"""Squared hidden distances of all pairs of points at the end of learning from small weights, and their baselines.

Points of one data set bind each other, and pair by pair the predictions for two points are no metric:
:func:`exponential_weighing` is the source's repair, by hand; :func:`map_metric` that of all points in a linear network.
Inputs or labels alone already correlate with measured distances, and belong beside every correlation.  Source:
vanrossem2024, eqs. (11) and (50), without the metric.
"""

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import pearsonr

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


def _points(name, value, rows=None):
    points = checks.array(name, value)
    if points.ndim == 1:
        remedy = "a number a point as values[:, None], a class a point one-hot"
        checks.fail(name, f"hold points, a row each: {remedy}", f"shape {points.shape}")
    points = checks.array(name, points, shape=(rows, None))  # (N, n)
    if points.size == 0:
        checks.fail(name, "hold one or more points of one or more components", f"shape {points.shape}")
    size = len(points)
    if size > 2 and points.shape == (size, size) and points.min() >= 0 and not np.diag(points).any():
        remedy = "pass the points themselves, or append a column of zeros if they are these"
        square = f"a symmetric {size} x {size} matrix with zeros on its diagonal"
        same = points.any() and np.allclose(points, points.T, rtol=1e-10, atol=0)
        checks.fail_if(bool(same), name, f"hold points, a row each, and no distances: {remedy}", square)
    return points


def _distance_matrix(name, value, rows=None):
    matrix = checks.symmetric(name, value, size=rows)  # (N, N)
    checks.fail_if(matrix.min() < 0, name, "have entries >= 0", value)
    return matrix


def squared_distances(points: ArrayLike) -> Array["N N"]:
    """Squared distances ‖x_i - x_j‖² of all pairs: of hidden vectors the quantity to predict, of inputs a baseline.

    Parameters
    ----------
    points : array_like (N, n)
        One row a point.

    Returns
    -------
    ndarray (N, N)

    Examples
    --------
    >>> squared_distances([[0.0, 0.0], [3.0, 4.0]]).tolist()
    [[0.0, 25.0], [25.0, 0.0]]
    """
    return checks.finite("points", squareform(pdist(_points("points", points), "sqeuclidean")))


def low_weights(inputs: ArrayLike, targets: ArrayLike, *, ratio: float = 1.0) -> Array["N N"]:
    """Where the squared hidden distance of each pair, taken alone, ends:  A_low = √ρ ‖x_i - x_j‖ ‖y_i - y_j‖.

    Eq. (11) of vanrossem2024, which writes ρ = τ_y/τ_h.

    Parameters
    ----------
    inputs, targets : array_like (N, n), (N, m)
        x_i, y_i.
    ratio : float
        ρ = α/β > 0, of the effective learning rates of encoder and decoder.

    Returns
    -------
    ndarray (N, N)

    Examples
    --------
    >>> low_weights([[0.0], [1.0], [3.0]], [[0.0], [2.0], [0.0]]).tolist()  # no metric: (0, 2) merge
    [[0.0, 2.0, 0.0], [2.0, 0.0, 4.0], [0.0, 4.0, 0.0]]
    """
    x = _points("inputs", inputs)  # (N, n)
    y = _points("targets", targets, len(x))  # (N, m)
    # The factors are norms, not roots of a product of squares, which over- and underflows earlier.
    root = np.sqrt(checks.number("ratio", ratio, above=0))
    with np.errstate(over="ignore", invalid="ignore"):
        return checks.finite("inputs", root * squareform(pdist(x)) * squareform(pdist(y)))


def exponential_weighing(distances: ArrayLike, *, scale: float = 1.0, normalised: bool = False) -> Array["N N"]:
    """Pairwise predictions a averaged over near points:  Σ_kl e^{-a_ik/c} a_kl e^{-a_lj/c}  for the points i and j.

    Eq. (50) of vanrossem2024, as printed with c = 1 and nothing that divides the sum: it depends on the unit of a and
    can be compared by correlation only.

    Parameters
    ----------
    distances : array_like (N, N)
        a, symmetric, >= 0.
    scale : float
        c > 0, in the unit of a.
    normalised : bool
        True divides by  Σ_k e^{-a_ik/c} Σ_l e^{-a_lj/c},  for the mean of a between the surroundings of i and j.

    Returns
    -------
    ndarray (N, N)
        Symmetric.

    Examples
    --------
    >>> far = [[0.0, 100.0], [100.0, 0.0]]
    >>> [exponential_weighing(far, scale=s, normalised=True).round(6).tolist() for s in (1.0, 1e9)]
    [[[0.0, 100.0], [100.0, 0.0]], [[50.0, 50.0], [50.0, 50.0]]]
    """
    s = _distance_matrix("distances", distances)  # (N, N)
    scale, normalised = checks.number("scale", scale, above=0), checks.boolean("normalised", normalised)
    with np.errstate(over="ignore", invalid="ignore"):  # e^{-S/s} of far points is zero
        weights = np.exp(-s / scale)  # (N, N)
        if normalised:
            weights /= weights.sum(axis=1, keepdims=True)  # (N, N)  rows sum to one, no longer symmetric
        half = weights @ (s / 2) @ weights.T  # (N, N)
        return checks.finite("distances", half + half.T)  # (N, N)  symmetric to the last bit


def linear_map(inputs: ArrayLike, targets: ArrayLike, *, ridge: float = 0.0, intercept: bool = True) -> Array["m n"]:
    """The matrix W of the regression  y ≈ W x + c,  the end-to-end map that a linear network learns.

    W minimises  Σ_i ‖W x_i + c - y_i‖² + r ‖W‖²;  of several, at r = 0, it is the smallest, to which small weights
    lead.

    Parameters
    ----------
    inputs, targets : array_like (N, n), (N, m)
        x_i, or features of them, and y_i.
    ridge : float
        r >= 0.
    intercept : bool
        False leaves c out, as in a network without biases.

    Returns
    -------
    ndarray (m, n)
        W.

    Examples
    --------
    >>> linear_map([[0.0, 1.0], [2.0, 1.0]], [[5.0], [6.0]]).round(12).tolist()
    [[0.5, 0.0]]
    """
    x = _points("inputs", inputs)  # (N, n)
    y = _points("targets", targets, len(x))  # (N, m)
    ridge = checks.number("ridge", ridge, at_least=0)
    if checks.boolean("intercept", intercept):
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    left, size, right = np.linalg.svd(x, full_matrices=False)  # (N, r), (r,), (r, n)
    size = size[size > max(x.shape) * np.finfo(float).eps * size.max()]  # (r,)  the rest is rounding
    shrink = 1 / (size + ridge / size)  # (r,)  s/(s² + r) without the square
    return (y.T @ left[:, : size.size] * shrink) @ right[: size.size]


def map_metric(inputs: ArrayLike, end_to_end: ArrayLike, *, ratio: float = 1.0) -> Array["N N"]:
    """Squared hidden distances of all points together:  a_ij = √ρ (x_i - x_j)ᵀ (WᵀW)^{1/2} (x_i - x_j).

    Exact for a linear network of two layers that learns the map W from small weights; its square root obeys the
    triangle inequality, and for two points it is :func:`low_weights`.

    Parameters
    ----------
    inputs, end_to_end : array_like (N, n), (m, n)
        x_i, or features of them, and the map W of them that is learned, as from :func:`linear_map`.
    ratio : float
        ρ = α/β > 0, of the effective learning rates of encoder and decoder.

    Returns
    -------
    ndarray (N, N)

    Examples
    --------
    >>> map_metric([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[4.0, 0.0]]).tolist()  # blind to the second
    [[0.0, 4.0, 0.0], [4.0, 0.0, 4.0], [0.0, 4.0, 0.0]]
    """
    x = _points("inputs", inputs)  # (N, n)
    end_to_end = checks.array("end_to_end", end_to_end, shape=(None, x.shape[1]))  # (m, n)
    checks.fail_if(end_to_end.size == 0, "end_to_end", "have one row or more", f"shape {end_to_end.shape}")
    # With W = U S Vᵀ the root of WᵀW is V S Vᵀ: coordinates √S Vᵀx, without the square of S.
    _, size, right = np.linalg.svd(end_to_end, full_matrices=False)  # (r,), (r, n)
    with np.errstate(over="ignore", invalid="ignore"):
        hidden = x @ right.T * np.sqrt(np.sqrt(checks.number("ratio", ratio, above=0)) * size)  # (N, r)
        return checks.finite("inputs", squareform(pdist(hidden, "sqeuclidean")))


def correlation(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Pearson correlation of two distance matrices over the pairs i < j, the figure of merit of the source's Fig. 9.

    Parameters
    ----------
    predicted, measured : array_like (N, N)
        Symmetric, >= 0, N >= 3, not the same for all pairs.

    Returns
    -------
    float

    Examples
    --------
    >>> x = squared_distances([[0.0], [1.0], [3.0]])
    >>> round(correlation(x, 5 * x), 12)
    1.0
    """
    one = _distance_matrix("predicted", predicted)  # (N, N)
    checks.fail_if(len(one) < 3, "predicted", "be of three points or more", f"shape {one.shape}")
    other = _distance_matrix("measured", measured, len(one))  # (N, N)
    above = np.triu_indices(len(one), 1)  # (N(N-1)/2,) twice
    for name, matrix in (("predicted", one), ("measured", other)):
        if np.ptp(matrix[above]) <= 1e-12 * matrix[above].max():
            checks.fail(name, "differ between pairs: the correlation with a constant is not defined", matrix)
    return float(pearsonr(one[above], other[above]).statistic)

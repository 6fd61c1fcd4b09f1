"""Classical multidimensional scaling: points whose squared distances are given, drawn in few dimensions.

B = -½ (1 - 11ᵀ/N) D (1 - 11ᵀ/N)  is the Gram matrix of the points if D holds squared Euclidean distances.  scikit-learn
decomposes it; added are the treatment of flat and negative directions and a sign that does not hang on rounding.
vanrossem2024 draws its hidden layers with multidimensional scaling; the classical form is not in it.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.manifold import ClassicalMDS

from lib.common import checks

ROUNDING = 1e-10  # eigenvalues below this fraction of the largest are taken for zero
TIE = 1e-6  # entries this close to the largest one may change places with it by rounding


@dataclass(frozen=True, eq=False)
class Scaling:
    """Coordinates along the leading axes, and the whole spectrum, which tells what they leave out."""

    coordinates: np.ndarray  # (N, dimensions)  centred; columns by falling variance
    eigenvalues: np.ndarray  # (N,)  of B, descending; negative ones only if the distances are not Euclidean


def _upright(axes):
    """`axes` (N, k) with signs such that, in every column, the first of the entries of largest modulus is positive."""
    size = np.abs(axes)  # (N, k)
    first = np.argmax(size >= (1 - TIE) * size.max(axis=0), axis=0)  # (k,)
    signs = np.sign(axes[first, np.arange(axes.shape[1])])  # (k,)
    return axes * np.where(signs == 0, 1, signs)  # (N, k)


def scaling(squared_distances, *, dimensions=2):
    """Coordinates z_i in `dimensions` dimensions whose squared distances ‖z_i - z_j‖² come closest to those given.

    Of every axis the first of the largest entries is positive; axes of equal eigenvalue may be turned into each other.
    Directions without extent get the coordinate zero.  `squared_distances` (N, N): D_ij, symmetric, >= 0, zero on the
    diagonal, N >= 2; `dimensions`, 1 to N: so many eigenvalues must not be negative.  Returns a Scaling.

    >>> square = [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]
    >>> np.round(scaling(square).eigenvalues, 12).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    squared = checks.symmetric("squared_distances", squared_distances)  # (N, N)
    if len(squared) < 2 or squared.min() < 0 or np.any(np.diag(squared) != 0):
        wanted = "be those of two or more points: >= 0, and zero on the diagonal"
        checks.fail("squared_distances", wanted, squared_distances)
    dimensions = checks.integer("dimensions", dimensions)
    if dimensions > len(squared):
        checks.fail("dimensions", f"be at most the number of points, {len(squared)}", dimensions)
    unit = squared.max() or 1.0  # keeps the squares of roots of very small or large numbers in range
    solver = ClassicalMDS(n_components=len(squared), metric="precomputed")
    with np.errstate(invalid="ignore"):  # roots of negative eigenvalues are replaced or refused below
        axes = solver.fit_transform(np.sqrt(squared / unit))[:, :dimensions]  # (N, dimensions)
    values = solver.eigenvalues_  # (N,)
    floor = ROUNDING * np.abs(values).max()
    if values[dimensions - 1] < -floor:
        count = np.count_nonzero(values >= -floor)
        wanted = f"be at most {count}: further eigenvalues are negative, the distances are not Euclidean"
        checks.fail("dimensions", wanted, dimensions)
    axes = np.where(values[:dimensions] > floor, axes, 0.0)  # (N, dimensions)
    return Scaling(_upright(axes) * np.sqrt(unit), np.where(np.abs(values) > floor, values, 0.0) * unit)

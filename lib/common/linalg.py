"""Small linear algebra that several parts share."""

from inspect import signature

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

# From SciPy 1.17 on ARPACK may draw new start vectors: the same ones every time.
FIXED = {"rng": 0} if "rng" in signature(eigsh).parameters else {}
CHUNK = 2**22  # numbers in one piece of a sum over samples, which bounds the memory


def psd_root(matrix):
    """A with A Aᵀ = `matrix` (..., n, n), positive semidefinite; also of a singular one, unlike Cholesky's.

    Column k is an eigenvector times the root of its eigenvalue, ascending; a negative one is taken for rounding.

    >>> root = psd_root(np.ones((2, 2)))
    >>> bool(np.allclose(root @ root.T, 1))
    True
    """
    values, vectors = np.linalg.eigh(matrix)  # (..., n), (..., n, n)
    return vectors * np.sqrt(np.maximum(values, 0))[..., None, :]  # (..., n, n)


def largest(apply, metric):
    """Largest θ in  apply(G) = θ metric ∘ G  over symmetric G, for a linear map that keeps G positive semidefinite.

    The upper triangle, scaled so that the Frobenius product stays, leaves one symmetric eigenproblem of half the size.
    """
    size = len(metric)
    upper = np.triu_indices(size)
    scale = np.where(upper[0] == upper[1], 1.0, np.sqrt(2)) / np.sqrt(metric[upper])  # (n(n+1)/2,)

    def act(vector):
        half = np.zeros((size, size))  # (n, n)
        half[upper] = scale * vector.ravel() / 2
        return scale * apply(half + half.T)[upper]  # (n(n+1)/2,)

    if size < 8:  # too few directions for a Krylov space
        return float(np.linalg.eigvalsh(np.stack([act(row) for row in np.eye(len(scale))]))[-1])
    start = (np.sqrt(metric) * np.eye(size))[upper]  # (n(n+1)/2,): G = 1 overlaps with the leading, positive mode
    operator = LinearOperator((len(scale), len(scale)), matvec=act, dtype=np.float64)
    # The leading mode stands alone, so a Krylov space of six finds it; ARPACK's default of twenty costs twice as much.
    # The error of an eigenvalue is of the order of the square of the tolerance, which is that of its vector.
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False, ncv=6, tol=1e-8, **FIXED)[0])


def top(matrix):
    """Largest eigenvalue of a symmetric matrix (n, n) and its eigenvector (n,), the one pair of a large matrix.

    >>> [part.round(12).tolist() for part in top(np.array([[2.0, 1.0], [1.0, 2.0]]))]
    [3.0, [0.707106781187, 0.707106781187]]
    """
    if len(matrix) < 64:  # a Krylov space is worth its start only for a larger one
        values, vectors = np.linalg.eigh(matrix)  # (n,), (n, n)
    else:
        start = np.cos(np.arange(len(matrix)))  # (n,)  fixed, and of no symmetry that a physical matrix has
        values, vectors = eigsh(matrix, k=1, which="LA", v0=start, **FIXED)  # (1,), (n, 1)
    return values[-1], vectors[:, -1] * np.sign(vectors[:, -1].sum() or 1.0)


def slices(samples, size):
    """Slices of the samples; `size` numbers are held for each."""
    rows = max(1, CHUNK // size)
    return [slice(start, start + rows) for start in range(0, samples, rows)]

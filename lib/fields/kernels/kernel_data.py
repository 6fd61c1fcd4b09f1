"""A kernel on a pool of real data: its spectrum, the target's coefficients, and learning curves over random subsets.

The pool of M points stands for the input measure:  K/M  has eigenvalues λ_k and eigenvectors u_k, the eigenfunctions
are φ_k = √M u_k  and the target's coefficients  v_k = u_kᵀy/√M.  Where a measured curve leaves the theory, Gaussian
surrogates (:func:`lib.fields.kernels.feature_regression.measure` with the same λ_k and v_k) tell whether the theory
fails or the data is not Gaussian.  Quote agreement for P up to a tenth of the pool.  Source: ringel2025talk, on real
data sets.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.fields import _data
from lib.fields.kernels import _dual
from lib.fields.kernels.feature_regression import Curves


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigensystem of K/M on a pool of M points, eigenvalues descending."""

    eigenvalues: np.ndarray  # (M,)  λ_k >= 0
    coefficients: np.ndarray  # (M,)  v_k; their squares add up to the mean square of the targets
    functions: np.ndarray  # (M, M)  φ_k(x_i), a column a mode, mean square one over the pool


def unit_rows(inputs):
    """Inputs with their mean over the pool removed, each then scaled to length one.

    `inputs` (M, d): one row a point, M >= 2, none at the mean.  Returns (M, d).

    >>> unit_rows([[0.0, 0.0], [6.0, 8.0]]).round(6).tolist()
    [[-0.6, -0.8], [0.6, 0.8]]
    """
    points = checks.array("inputs", inputs, ndim=2)  # (M, d)
    if points.shape[0] < 2 or points.shape[1] == 0:
        checks.fail("inputs", "hold two points or more of one or more components", f"shape {points.shape}")
    size = np.abs(points).max() or 1.0
    points = points / size
    points -= points.mean(axis=0)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)  # (M, 1)
    if lengths.min() <= 1e-14:
        shortest = f"a length of {lengths.min() * size:.3g}"
        checks.fail("inputs", "have no point at their mean: it has no direction", shortest)
    return points / lengths


def _pool(gram, targets):
    kernel = checks.symmetric("gram", gram)  # (M, M)
    if not np.trace(kernel) > 0:
        checks.fail("gram", "have a trace > 0", f"{np.trace(kernel):.3g}")
    return kernel, checks.array("targets", targets, shape=kernel.shape[:1])  # (M, M), (M,)


def spectrum(gram, targets):
    """Eigenvalues λ_k, target coefficients v_k and eigenfunctions φ_k of a kernel under the measure of the pool.

    Negative eigenvalues within rounding become zero; others are refused.  `gram` (M, M): K between all points of the
    pool, symmetric, positive semidefinite; `targets` (M,): y.  Returns Spectrum.

    >>> spectrum([[1.0, 0.5], [0.5, 1.0]], [1.0, 1.0]).eigenvalues.round(6).tolist()
    [0.75, 0.25]
    """
    kernel, y = _pool(gram, targets)
    size = len(kernel)
    values, axes = eigh(kernel / size)  # (M,), (M, M)  ascending
    if values[0] < -1e-10 * values[-1]:
        checks.fail("gram", "be positive semidefinite", f"lowest eigenvalue {size * values[0]:.3g}")
    values, axes = np.maximum(values[::-1], 0), axes[:, ::-1]
    # Below the rounding of the largest an eigenvalue is noise, and its decades mean nothing.
    values = np.where(values < 1e-16 * values[0], 0.0, values)  # (M,)
    return Spectrum(values, axes.T @ y / np.sqrt(size), np.sqrt(size) * axes)


def measure(gram, targets, samples, ridges, rng, *, sets=40):
    """Regressions on random subsets of the pool, tested on the points left out.

    `gram`, `targets`: as in :func:`spectrum`; `samples` (n,): P from 1 to M - 1; `ridges` (m,): T > 0, as in
    :func:`lib.fields.kernels.feature_regression.dual_fit`; `rng`: int or SeedSequence; `sets`: S >= 2 subsets at each
    P. Returns feature_regression.Curves without coefficients.

    >>> x = np.linspace(-1, 1, 50)
    >>> measure(np.exp(-np.subtract.outer(x, x)**2), x, [2, 10], [1e-6], rng=1, sets=3).test_error.shape
    (3, 2, 1)
    """
    kernel, y = _pool(gram, targets)
    sizes = _data.whole("samples", samples, count=1, at_least=1, at_most=len(y) - 1, ndim=1)  # (n,)
    t, sets = _data.ridges(ridges), checks.integer("sets", sets, at_least=2)  # (m,)
    random = checks.generator("rng", checks.seed_sequence("rng", rng))
    test, found = np.empty((sets, sizes.size, t.size)), np.empty((3, sets, sizes.size, t.size))  # (S, n, m) each
    for s in range(sets):
        for i, size in enumerate(sizes):
            order = random.permutation(len(y))  # (M,)
            seen, left = order[:size], order[size:]  # (P,), (M-P,)
            weights, found[:, s, i] = _dual.regressed(kernel[np.ix_(seen, seen)], y[seen], t)  # (m, P)
            test[s, i] = ((weights @ kernel[np.ix_(seen, left)] - y[left]) ** 2).mean(axis=1)
    return Curves(sizes, t, test, *found, None, None)

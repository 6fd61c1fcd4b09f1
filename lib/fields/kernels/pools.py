"""A kernel on a pool of real data: its spectrum, the target's coefficients, and learning curves over random subsets.

Where a measured curve leaves the theory, Gaussian surrogates (:func:`lib.fields.kernels.feature_regression.measure`
with the same λ_k and v_k) tell whether the theory fails or the data is not Gaussian.  Source: ringel2025talk.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields import _data
from lib.fields.kernels.feature_regression import Curves
from lib.fields.kernels.gp_regression import _regressed


def unit_rows(inputs: ArrayLike) -> Array["M d"]:
    """Inputs with their mean over the pool removed, each then scaled to length one.

    Parameters
    ----------
    inputs : array_like (M, d)
        One row a point, M >= 2, none at the mean.

    Returns
    -------
    ndarray (M, d)

    Examples
    --------
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


@dataclass(frozen=True, eq=False)
class Pool:
    """M points that stand for the input measure, with a kernel and a target.

    K/M  has the eigenvalues λ_k and eigenvectors u_k; the eigenfunctions are  φ_k = √M u_k.

    Parameters
    ----------
    gram : array_like (M, M)
        K between all points, symmetric, positive semidefinite: negative eigenvalues within rounding become zero.
    targets : array_like (M,)
        y.

    Examples
    --------
    >>> Pool([[1.0, 0.5], [0.5, 1.0]], [1.0, 1.0]).eigenvalues.round(6).tolist()
    [0.75, 0.25]
    """

    gram: Array["M M"]
    targets: Array[" M"]

    def __post_init__(self):
        kernel = checks.symmetric("gram", self.gram)  # (M, M)
        if not np.trace(kernel) > 0:
            checks.fail("gram", "have a trace > 0", f"{np.trace(kernel):.3g}")
        checks.keep(self, gram=kernel, targets=checks.array("targets", self.targets, shape=kernel.shape[:1]))

    @cached_property
    def _system(self):
        """λ_k (M,), descending, and u_k (M, M)."""
        size = len(self.gram)
        values, axes = eigh(self.gram / size)  # (M,), (M, M)  ascending
        if values[0] < -1e-10 * values[-1]:
            checks.fail("gram", "be positive semidefinite", f"lowest eigenvalue {size * values[0]:.3g}")
        values = np.maximum(values[::-1], 0)  # (M,)
        # Below the rounding of the largest an eigenvalue is noise, and its decades mean nothing.
        return np.where(values < 1e-16 * values[0], 0.0, values), axes[:, ::-1]

    @property
    def eigenvalues(self) -> Array[" M"]:
        """λ_k >= 0, descending."""
        return self._system[0]

    @cached_property
    def coefficients(self) -> Array[" M"]:
        """v_k = u_kᵀy/√M;  their squares add up to the mean square of the targets."""
        return self._system[1].T @ self.targets / np.sqrt(len(self.targets))

    @cached_property
    def functions(self) -> Array["M M"]:
        """φ_k(x_i), a column a mode, mean square one over the pool."""
        return np.sqrt(len(self.gram)) * self._system[1]

    def measure(self, samples: ArrayLike, ridges: ArrayLike, rng: Rng, *, replicas: int = 40) -> Curves:
        """Regressions on random subsets of the pool, tested on the points left out.

        Quote agreement with a theory of infinite pools for P up to a tenth of the pool.

        Parameters
        ----------
        samples : array_like (n,)
            P, from 1 to M - 1.
        ridges : array_like (m,)
            T > 0, such that K + T has a condition number up to 1e12 on every subset.
        rng : int, SeedSequence or Generator
        replicas : int
            S >= 2 subsets at each P.

        Returns
        -------
        feature_regression.Curves
            Without coefficients.

        Examples
        --------
        >>> x = np.linspace(-1, 1, 50)
        >>> pool = Pool(np.exp(-np.subtract.outer(x, x)**2), x)
        >>> pool.measure([2, 10], [1e-6], rng=1, replicas=3).test_error.shape
        (3, 2, 1)
        """
        kernel, y = self.gram, self.targets
        sizes = _data.whole("samples", samples, count=1, at_least=1, at_most=len(y) - 1, ndim=1)  # (n,)
        t, replicas = _data.ridges(ridges), checks.integer("replicas", replicas, at_least=2)  # (m,)
        random = checks.generator("rng", rng)
        test, seen = np.empty((replicas, sizes.size, t.size)), np.empty((3, replicas, sizes.size, t.size))
        for s in range(replicas):
            for i, size in enumerate(sizes):
                order = random.permutation(len(y))  # (M,)
                used, left = order[:size], order[size:]  # (P,), (M-P,)
                weights, seen[:, s, i] = _regressed(kernel[np.ix_(used, used)], y[used], t)  # (m, P)
                test[s, i] = ((weights @ kernel[np.ix_(used, left)] - y[left]) ** 2).mean(axis=1)
        return Curves(sizes, t, test, *seen)

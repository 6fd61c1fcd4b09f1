"""A kernel on a pool of real data: its spectrum, the target's coefficients, and learning curves over random subsets.

:func:`modes` reads them off a table of features, ``Pool.modes`` off a kernel; either predicts the curve of the pool.
Where a measured curve leaves the theory, Gaussian surrogates (:func:`lib.fields.kernels.feature_regression.measure`
with the same λ_k and v_k) tell whether the theory fails or the data is not Gaussian.  Source: ringel2025talk.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.fields import _data
from lib.fields.kernels.effective_ridge import LearningCurve, RidgeTheory
from lib.fields.kernels.feature_regression import Curves
from lib.fields.kernels.gp_regression import _regressed
from lib.fluctuations import regression


@dataclass(frozen=True, eq=False)
class Modes:
    """What M points say of a kernel and a target: all that a learning curve depends on.

    Made by :func:`modes` or ``Pool.modes``.

    Parameters
    ----------
    spectrum : Spectrum
        The n eigenvalues λ_k > 0 of K/M, descending.
    coefficients : ndarray (n,)
        v_k of the target in the eigenfunctions, which have mean square one over the points.
    noise_variance : float
        σ²: mean square of what no feature can express, over M - n for M; zero for n = M, where all can be expressed.
    points : int
        M.

    Examples
    --------
    >>> modes(np.eye(4), [1.0, 2.0, 3.0, 4.0]).predict([1, 3], ridge=0.1).test_error.round(9)  # strangers: ⟨y²⟩
    array([7.5, 7.5])
    """

    spectrum: Spectrum
    coefficients: Array[" n"]
    noise_variance: float
    points: int

    def predict(self, samples: ArrayLike, *, ridge: ArrayLike, population: bool = False) -> LearningCurve:
        """Learning curve of kernel or linear ridge regression:  (K + T)⁻¹y,  nothing centred, no intercept.

        Parameters
        ----------
        samples : float or array_like
            P > 0 of the M points, fewer than all, drawn without replacement; the error is that on those left out.
        ridge : float or array_like
            T >= 0, scikit-learn's `alpha`.
        population : bool
            True: P fresh samples of the law that the points came from, any number, tested on further ones.  The points
            stand for it where they are many more than the modes that P samples tell apart.

        Returns
        -------
        LearningCurve

        Examples
        --------
        >>> line = modes(np.ones((100, 1)), np.tile([1.0, 3.0], 50))  # y = 2 ± 1
        >>> bool(abs(line.predict(20, ridge=1e-9, population=True).test_error - 1.01 * 20 / 19) < 1e-3)  # σ²(1 + 1/19)
        True
        """
        values, power = self.spectrum.eigenvalues, self.coefficients**2  # (n,), (n,)
        beyond = self.points - values.size
        if checks.boolean("population", population):
            wanted = "be False where every mode of the points has an eigenvalue > 0: signal and noise look alike"
            checks.fail_if(beyond == 0, "population", wanted, population)
            power = np.maximum(power - self.noise_variance / self.points, 0)  # (n,)  noise has a part in every mode
            theory = RidgeTheory(self.spectrum, samples, ridge=ridge)
            return theory.predict(power, noise_variance=self.noise_variance)
        if beyond:  # directions of the pool that no feature reaches
            values, counts = np.append(values, 0.0), np.append(np.ones(values.size), beyond)  # (n+1,), (n+1,)
            power = np.append(power, self.noise_variance * beyond / self.points)  # (n+1,)
        else:
            counts = np.ones(values.size)  # (n,)
        return RidgeTheory(Spectrum(values, counts), samples, ridge=ridge, pool=self.points).predict(power)


def modes(features: ArrayLike, targets: ArrayLike) -> Modes:
    """Spectrum, coefficients and noise of the linear kernel  K = ΦΦᵀ  of a table of features.

    Parameters
    ----------
    features : array_like (M, d)
        Φ, one row a sample, not centred here; a DataFrame will do.
    targets : array_like (M,) or (M, 1)
        y.

    Returns
    -------
    Modes

    Examples
    --------
    >>> found = modes([[3.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [3.0, 1.0, 3.0])
    >>> found.spectrum.eigenvalues.round(3).tolist(), round(found.noise_variance, 12)
    ([3.0, 0.667], 2.0)
    """
    rows = [getattr(table, "index", None) for table in (features, targets)]
    parted = all(hasattr(index, "equals") for index in rows) and not rows[0].equals(rows[1])
    checks.fail_if(parted, "targets", "have the index of features, row by row: use .loc[features.index]", rows[1])
    x = checks.table("features", features)  # (M, d)
    y = checks.table("targets", targets, rows=len(x), columns=1)  # (M, 1)
    checks.fail_if(len(x) < 2, "features", "hold two samples or more", f"shape {x.shape}")
    checks.fail_if(not x.any(), "features", "differ from zero", x)
    problem = regression.fit(x, y)
    left, v = len(x) - problem.eigenvalues.size, problem.optimum[0] * np.sqrt(problem.eigenvalues)  # int, (n,)
    noise = float((problem.residuals**2).sum() / left) if left else 0.0
    return Modes(Spectrum(problem.eigenvalues), v, noise, len(x))


@dataclass(frozen=True, eq=False)
class Pool:
    """M points that stand for the input measure, with a kernel and a target.

    K/M  has the eigenvalues λ_k and eigenvectors u_k; the eigenfunctions are  φ_k = √M u_k.

    Parameters
    ----------
    gram : array_like (M, M)
        K between all points, symmetric, positive semidefinite: negative eigenvalues within rounding become zero.
    targets : array_like (M,) or (M, 1)
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
        targets = checks.table("targets", self.targets, rows=len(kernel), columns=1)[:, 0]  # (M,)
        checks.keep(self, gram=kernel, targets=targets)

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

    @property
    def modes(self) -> Modes:
        """Spectrum, coefficients and noise, which predict the learning curve that :meth:`measure` measures."""
        values, seen = self.eigenvalues, int(np.count_nonzero(self.eigenvalues))  # (M,)
        noise = float((self.coefficients[seen:] ** 2).mean() * values.size) if seen < values.size else 0.0
        return Modes(Spectrum(values[:seen]), self.coefficients[:seen], noise, values.size)

    @cached_property
    def functions(self) -> Array["M M"]:
        """φ_k(x_i), a column a mode, mean square one over the pool."""
        return np.sqrt(len(self.gram)) * self._system[1]

    def measure(self, samples: ArrayLike, ridges: ArrayLike, rng: Rng, *, replicas: int = 40) -> Curves:
        """Regressions on random subsets of the pool, tested on the points left out.

        ``modes.predict`` is the theory; one of unlimited data is too low by a factor 1 - P/M or so.

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

"""One-pass stochastic gradient descent of a soft committee machine: the simulator of :mod:`lib.foundations.committee`.

Every step draws a fresh ξ ~ N(0, Σ) and moves J_i ← J_i + η (√M/K) δ g'(x_i) ξ/√N, δ = ζ - σ (worschech2024 eqs. (2)
and (3), with the teacher's factor 1/√M restored).
"""

from dataclasses import dataclass
from math import erf, exp, pi, sqrt

import numpy as np
from joblib import Parallel, delayed

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import psd_root
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.foundations.committee import Fields, Overlaps, Trajectory

__all__ = ["Runs", "overlaps", "random_weights", "simulate", "weights_with_overlaps"]


@dataclass(frozen=True, eq=False)
class Runs(Trajectory):
    """A Trajectory of independent runs from one start, stacked along the first axis.

    Parameters
    ----------
    times, student_overlap, cross_overlap, teacher_overlap, generalization_error
        (n,), (replicas, n, K, K), (replicas, n, K, M), (M, M), (replicas, n); without the axis n for a single time.
    student : ndarray (replicas, K, N)
        The weights at the last time.
    """

    student: Array["replicas K N"]


def random_weights(units: int, dimension: int, rng: Rng, *, variance: float = 1.0) -> Array["K N"]:
    """Weight vectors with independent Gaussian entries; their overlaps are  variance · 1  up to O(1/√N).

    One seed gives the same vectors every time: student and teacher need two, as ``children(rng, 2)`` of
    :mod:`lib.common.random` makes.

    Parameters
    ----------
    units, dimension : int
        K and N.
    rng : int, SeedSequence or Generator
    variance : float
        Of each entry, >= 0.

    Returns
    -------
    ndarray (K, N)

    Examples
    --------
    >>> random_weights(2, 500, rng=1).shape
    (2, 500)
    """
    units = checks.integer("units", units)
    dimension = checks.integer("dimension", dimension)
    variance = checks.number("variance", variance, at_least=0)
    return sqrt(variance) * checks.generator("rng", rng).standard_normal((units, dimension))


def weights_with_overlaps(overlaps: Overlaps, dimension: int, rng: Rng) -> tuple[Array["K N"], Array["M N"]]:
    """Student and teacher with exactly the given overlaps, randomly oriented: one initial condition for every N.

    Parameters
    ----------
    overlaps : Overlaps
        Of a single student.
    dimension : int
        N >= K + M.
    rng : int, SeedSequence or Generator

    Returns
    -------
    tuple of ndarray (K, N), (M, N)
        Student J and teacher B.

    Examples
    --------
    >>> student, teacher = weights_with_overlaps(Overlaps([[0.5]], [[0.1]], [[1.0]]), 100, rng=1)
    >>> bool(np.isclose(student[0] @ teacher[0] / 100, 0.1))
    True
    """
    overlaps = checks.instance("overlaps", overlaps, Overlaps, "as Overlaps(student, cross, teacher) makes one")
    q, r, t = overlaps.student, overlaps.cross, overlaps.teacher
    checks.fail_if(q.ndim > 2, "overlaps", "be those of a single student", f"a stack of shape {q.shape}")
    size = len(q) + len(t)
    dimension = checks.integer("dimension", dimension, at_least=size)
    joint = np.block([[q, r], [r.T, t]])  # (K+M, K+M)
    gaussian = checks.generator("rng", rng).standard_normal((dimension, size))  # (N, K+M)
    frame, _ = np.linalg.qr(gaussian)  # (N, K+M), orthonormal columns
    weights = np.ascontiguousarray(sqrt(dimension) * psd_root(joint) @ frame.T)  # (K+M, N)
    return weights[: len(q)], weights[len(q) :]


def _checked(student, teacher, eigenvalues):
    """J (..., K, N), B (M, N), and the variances (N,) of the components of ξ in the eigenbasis of Σ."""
    student = checks.array("student", student)
    teacher = checks.array("teacher", teacher, ndim=2)
    if student.ndim < 2 or student.size == 0:
        checks.fail("student", "hold weight vectors, shape (..., K, N)", f"shape {student.shape}")
    if teacher.size == 0 or teacher.shape[1] != student.shape[-1]:
        checks.fail("teacher", f"hold vectors of N = {student.shape[-1]} entries", f"shape {teacher.shape}")
    if eigenvalues is None:
        return student, teacher, np.ones(teacher.shape[1])
    return student, teacher, checks.entries("eigenvalues", eigenvalues, above=0, shape=teacher.shape[1:])


def _measured(student, teacher, variances):
    """Q, R, T of weights that were checked."""
    n = len(variances)
    weighted = student * variances  # (..., K, N)
    t = (teacher * variances) @ teacher.T / n  # (M, M)
    return weighted @ np.swapaxes(student, -1, -2) / n, weighted @ teacher.T / n, t


def overlaps(student: ArrayLike, teacher: ArrayLike, *, eigenvalues: ArrayLike | None = None) -> Overlaps:
    """Q = JΣJᵀ/N, R = JΣBᵀ/N and T = BΣBᵀ/N, the covariances of the fields.

    They give the error for any Σ, but ``solve`` and the other equations of motion of Overlaps are for Σ = 1: for a
    spectrum, resolve them by eigenvalue as :class:`lib.scaling.structured.ResolvedOverlaps`.

    Parameters
    ----------
    student, teacher : array_like (..., K, N), (M, N)
        J, stacked or not, and B.
    eigenvalues : array_like (N,), optional
        Of Σ, > 0, in whose eigenbasis the weights are given; all one by default.

    Returns
    -------
    Overlaps
        Stacked as the students are.

    Examples
    --------
    >>> seen = overlaps([[1.0, 0.0]], [[1.0, 1.0]], eigenvalues=[1.0, 1.0])
    >>> seen.student.item(), seen.cross.item(), seen.teacher.item()
    (0.5, 0.5, 1.0)
    """
    return Overlaps(*_measured(*_checked(student, teacher, eigenvalues)))


# Sums may be reordered, which lets the dot products use vector instructions: without, a run takes 1.5 to 2 times as
# long.  The last digits then depend on the processor; NaN and infinity keep their meaning.
@loops(fastmath={"reassoc", "contract", "nsz"})
def _descend(student, teacher, scale, learning_rate, steps, snapshots, example, x, random):
    """Run SGD on `student` in place and copy it into snapshots[k] after steps[k] examples; `example`, `x`: room."""
    units, dimension = student.shape
    teachers = len(teacher)
    inverse_root = 1 / sqrt(dimension)
    student_weight, teacher_weight = sqrt(teachers) / units, 1 / sqrt(teachers)
    step_size = learning_rate * student_weight * sqrt(2 / pi) * inverse_root  # g'(x) = √(2/π) exp(-x²/2)
    done = 0
    for k in range(len(steps)):
        for _ in range(steps[k] - done):
            for c in range(dimension):
                example[c] = scale[c] * random.standard_normal()
            delta = 0.0
            for m in range(teachers):
                y = 0.0
                for c in range(dimension):
                    y += teacher[m, c] * example[c]
                delta += teacher_weight * erf(y * inverse_root / sqrt(2))
            for i in range(units):
                field = 0.0
                for c in range(dimension):
                    field += student[i, c] * example[c]
                x[i] = field * inverse_root
                delta -= student_weight * erf(x[i] / sqrt(2))
            for i in range(units):
                move = step_size * delta * exp(-x[i] * x[i] / 2)
                for c in range(dimension):
                    student[i, c] += move * example[c]
        done = steps[k]
        for i in range(units):
            for c in range(dimension):
                snapshots[k, i, c] = student[i, c]


def _one_run(student, teacher, variances, learning_rate, steps, rng):
    """Overlaps (n, K, K) and (n, K, M) at the given steps, and the last weights (K, N)."""
    moving = student.copy()  # (K, N)
    snapshots = np.empty((len(steps), *student.shape))  # (n, K, N)
    room = np.empty(len(variances)), np.empty(len(student))
    random = np.random.Generator(np.random.SFC64(rng))
    _descend(moving, teacher, np.sqrt(variances), learning_rate, steps, snapshots, *room, random)
    q, r, _ = _measured(snapshots, teacher, variances)  # (n, K, K), (n, K, M)
    return q, r, moving


def simulate(
    student: ArrayLike, teacher: ArrayLike, *, learning_rate: float, times: ArrayLike, rng: Rng,
    eigenvalues: ArrayLike | None = None, replicas: int = 1, workers: int = 1,
) -> Runs:  # fmt: skip
    """Train copies of a student on independent streams of examples and record the overlaps.

    Another processor may round differently.

    Parameters
    ----------
    student, teacher : array_like (K, N), (M, N)
        J at the start, and B.
    learning_rate : float
        η > 0.
    times : float or array_like (n,)
        α = examples/N, increasing by at least 1/N.
    rng : int, SeedSequence or Generator
        Run r draws from its r-th child, whatever the `workers`.
    eigenvalues : array_like (N,), optional
        Of Σ, > 0, one a component of the weights; all one by default.
    replicas : int
        How many runs.
    workers : int
        Threads that share them.

    Returns
    -------
    Runs
        With the times rounded to whole examples.

    Examples
    --------
    >>> teacher, student = random_weights(2, 100, rng=1), random_weights(2, 100, rng=2, variance=0.01)
    >>> path = simulate(student, teacher, learning_rate=0.5, times=[0, 1, 100], rng=3, replicas=4)
    >>> bool(np.all(path.generalization_error[:, 2] < path.generalization_error[:, 0]))  # of shape (4, 3)
    True
    """
    student, teacher, variances = _checked(checks.array("student", student, ndim=2), teacher, eigenvalues)
    _, _, t = _measured(student, teacher, variances)  # (M, M)
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    grid = checks.times("times", times)  # (n,)
    steps = checks.whole_steps("times", grid, student.shape[1])  # (n,)
    if np.any(np.diff(steps) < 1):
        checks.fail("times", f"lie at least one example, 1/N = {1 / student.shape[1]:.3g}, apart", grid)
    replicas, workers = checks.integer("replicas", replicas), checks.integer("workers", workers)
    done = Parallel(n_jobs=workers, prefer="threads")(
        delayed(_one_run)(student, teacher, variances, learning_rate, steps, stream)
        for stream in children(rng, replicas)
    )
    # (replicas, n, K, K), (replicas, n, K, M), (replicas, K, N)
    q, r, last = (np.stack(part) for part in zip(*done))
    error, grid = Fields.error(q, r, t), steps / student.shape[1]  # (replicas, n), (n,)
    if np.ndim(times) == 0:
        return Runs(float(grid[0]), q[:, 0], r[:, 0], t, error[:, 0], last)
    return Runs(grid, q, r, t, error, last)

"""One-pass stochastic gradient descent of a linear student, which :mod:`lib.scaling.linear_student` is held against.

Every step draws a fresh ξ ~ N(0, Σ) in N dimensions and sets  D ← D - (η/N) (D·ξ) ξ,  D = J - B, the linear case of
worschech2024, eq. (3), in the eigenbasis of Σ.  Nothing is approximated.  Time is α = examples / N.
"""

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from lib.common import checks
from lib.common.compiled import loops
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments


@dataclass(frozen=True, eq=False)
class Runs:
    """Independent replicas of descent; the first axis counts them, except in `times`.

    Parameters
    ----------
    times : ndarray (n,)
        α, rounded to whole examples.  For a single time, a number, no other field has the axis n either.
    space_errors : ndarray (replicas, n, L)
        e_k = |P_k D|²/N in every eigenspace.
    generalization_error : ndarray (replicas, n)
        ½ Σ_k λ_k e_k.
    deviation : ndarray (replicas, N)
        D = J - B at the last time.
    """

    times: float | Array[" n"]
    space_errors: Array["replicas ... L"]
    generalization_error: Array["replicas ..."]
    deviation: Array["replicas N"]


def random_deviations(replicas: int, dimension: int, rng: Rng, *, student_variance: float = 0.0) -> Array["replicas N"]:
    """Deviations D = J - B at the start, for pairs of student and teacher with independent Gaussian entries.

    Parameters
    ----------
    replicas, dimension : int
        Number of pairs, and N, >= 1.
    rng : int, SeedSequence or Generator
    student_variance : float
        σ_J² >= 0 of the entries of J; those of B have variance one.

    Returns
    -------
    ndarray (replicas, N)
        Entries of variance 1 + σ_J².

    Examples
    --------
    >>> random_deviations(3, 100, rng=1).shape
    (3, 100)
    """
    shape = checks.integer("replicas", replicas), checks.integer("dimension", dimension)
    spread = np.sqrt(1 + checks.number("student_variance", student_variance, at_least=0))
    return spread * checks.generator("rng", rng).standard_normal(shape)  # (replicas, N)


@loops
def _descend(moving, scale, frozen_spread, rate, steps, snapshots, random):
    """Run SGD on the trained components in place and copy them into snapshots[k] after steps[k] examples."""
    size = len(moving)
    example = np.empty(size)
    done = 0
    for k in range(len(steps)):
        for _ in range(steps[k] - done):
            for c in range(size):
                example[c] = scale[c] * random.standard_normal()
            field = 0.0
            if frozen_spread > 0:
                field = frozen_spread * random.standard_normal()
            for c in range(size):
                field += moving[c] * example[c]
            move = rate * field
            for c in range(size):
                moving[c] -= move * example[c]
        done = steps[k]
        for c in range(size):
            snapshots[k, c] = moving[c]


def _one_replica(deviation, variances, trained, rate, steps, first, rng):
    """Errors (n, L) of the eigenspaces that begin at the components `first`, errors (n,), the last deviation (N,)."""
    size = len(deviation)
    path = np.tile(deviation, (len(steps), 1))  # (n, N)
    moving = deviation[:trained].copy()  # (N_l,)
    moved = np.empty((len(steps), trained))  # (n, N_l)
    # Frozen components meet a fresh example in every step: their part of D·ξ is one Gaussian of constant variance.
    frozen_spread = float(np.sqrt(variances[trained:] @ deviation[trained:] ** 2))
    random = np.random.Generator(np.random.SFC64(rng))
    _descend(moving, np.sqrt(variances[:trained]), frozen_spread, rate / size, steps, moved, random)
    path[:, :trained] = moved
    with np.errstate(over="ignore", invalid="ignore"):  # the caller names a run that left the floating-point range
        squares = path**2 / size  # (n, N)
        return np.add.reduceat(squares, first, axis=1), squares @ variances / 2, path[-1]


def simulate(
    deviation: ArrayLike, spectrum: Spectrum | ArrayLike, learning_rate: float, times: ArrayLike, rng: Rng, *,
    trained: int | None = None, workers: int = 1,
) -> Runs:  # fmt: skip
    """Train linear students on independent streams of examples and record their errors.

    D ← D - (η/N) (D·ξ) ξ  in the first N_l components; the others stay.

    Parameters
    ----------
    deviation : array_like (replicas, N)
        D = J - B at the start.
    spectrum : Spectrum or array_like (L,)
        Variances λ_k > 0 of the components of ξ, of any mean, and whole multiplicities m_k that add up to N: the first
        m_1 components have the variance λ_1, and so on.
    learning_rate : float
        η > 0.
    times : float or array_like (n,)
        α = examples / N >= 0, increasing by at least 1/N.
    rng : int, SeedSequence or Generator
        Replica r draws from its r-th child.
    trained : int, optional
        1 <= N_l <= N; by default all.
    workers : int
        Threads that share the replicas.

    Returns
    -------
    Runs

    Examples
    --------
    >>> start = random_deviations(4, 100, rng=1)
    >>> runs = simulate(start, Spectrum([1.0], [100]), 0.5, [0, 1, 10], rng=2, trained=100)
    >>> runs.space_errors.shape, bool(np.all(runs.generalization_error[:, 2] < 1e-2))
    ((4, 3, 1), True)
    """
    deviation = checks.array("deviation", deviation, ndim=2)  # (replicas, N)
    if deviation.size == 0:
        checks.fail("deviation", "hold at least one replica and one component", f"shape {deviation.shape}")
    size, spectrum = deviation.shape[1], _arguments.spectrum(spectrum, normalized=False, whole=True)
    counts = spectrum.multiplicities.astype(np.int64)  # (L,)
    if counts.sum() != size:
        checks.fail("spectrum", f"have multiplicities that add up to N = {size}", counts)
    variances = np.repeat(spectrum.eigenvalues, counts)  # (N,)
    rate = checks.number("learning_rate", learning_rate, above=0)
    steps = _arguments.whole_steps(checks.times("times", times), size)  # (n,)
    first = np.cumsum(counts) - counts  # (L,)
    trained = _arguments.trained(trained, size)
    streams, workers = children(rng, len(deviation)), checks.integer("workers", workers)
    one = delayed(_one_replica)
    jobs = (one(start, variances, trained, rate, steps, first, stream) for start, stream in zip(deviation, streams))
    spaces, errors, last = (np.stack(part) for part in zip(*Parallel(n_jobs=workers, prefer="threads")(jobs)))
    checks.finite("learning_rate", spaces)
    checks.finite("learning_rate", errors)
    runs = Runs(steps / size, spaces, errors, last)
    return _arguments.without_axis(times, runs, ("space_errors", "generalization_error"), axis=1)

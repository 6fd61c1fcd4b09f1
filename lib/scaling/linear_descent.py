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
from lib.scaling import _arguments


@dataclass(frozen=True, eq=False)
class Runs:
    """Independent runs; the first axis counts them, except in `times`."""

    times: np.ndarray  # (n,)  rounded to whole examples
    space_errors: np.ndarray  # (runs, n, L)  e_k = |P_k D|²/N in every eigenspace
    generalization_error: np.ndarray  # (runs, n)  ½ Σ_c λ_c D_c²/N
    deviation: np.ndarray  # (runs, N)  D at the last time


def random_deviations(runs, dimension, rng, *, student_variance=0.0):
    """Deviations D = J - B at the start, for pairs of student and teacher with independent Gaussian entries.

    `runs` >= 1: number of pairs; `dimension`: N >= 1; `rng`: int, SeedSequence or Generator; `student_variance`: σ_J²
    >= 0. Returns (runs, N), entries of variance 1 + σ_J².

    >>> random_deviations(3, 100, rng=1).shape
    (3, 100)
    """
    shape = checks.integer("runs", runs), checks.integer("dimension", dimension)
    spread = np.sqrt(_arguments.variance(student_variance))
    return spread * checks.generator("rng", rng).standard_normal(shape)  # (runs, N)


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


def _one_run(deviation, variances, trained, rate, steps, first, rng):
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


def simulate(deviation, eigenvalues, learning_rate, times, rng, *, multiplicities=None, trained=None, workers=1):
    """Train linear students on independent streams of examples and record their errors.

    D ← D - (η/N) (D·ξ) ξ  in the first N_l components; the others stay, as in :mod:`lib.scaling.feature_scaling`.
    `deviation` (runs, N): D at the start; `eigenvalues` (N,): variance λ_c > 0 of every component of ξ, of any mean;
    `learning_rate`: η > 0; `times` (n,): α >= 0, increasing by at least 1/N; `rng`: int or SeedSequence, run r draws
    from its r-th child; `multiplicities` (L,): integers m_k that add up to N, in the order of the components, default:
    all one; `trained`: 1 <= N_l <= N, default N; `workers`: threads that share the runs.  Returns a Runs.

    >>> start = random_deviations(4, 100, rng=1)
    >>> runs = simulate(start, np.ones(100), 0.5, [0, 1, 10], rng=2, multiplicities=[100])
    >>> runs.space_errors.shape, bool(np.all(runs.generalization_error[:, 2] < 1e-2))
    ((4, 3, 1), True)
    """
    deviation = checks.array("deviation", deviation, ndim=2)  # (runs, N)
    if deviation.size == 0:
        checks.fail("deviation", "hold at least one run and one component", f"shape {deviation.shape}")
    size = deviation.shape[1]
    variances = checks.entries("eigenvalues", eigenvalues, above=0, shape=(size,))  # (N,)
    rate = _arguments.learning_rate(learning_rate)
    steps = _arguments.whole_steps(checks.times("times", times), size)  # (n,)
    counts = _arguments.counts(multiplicities, (size if multiplicities is None else None,))  # (L,)
    if counts.sum() != size:
        checks.fail("multiplicities", f"be whole numbers that add up to N = {size}", multiplicities)
    first = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(np.int64)  # (L,)
    trained = size if trained is None else _arguments.trained(trained, size)
    streams, workers = children(rng, len(deviation)), checks.integer("workers", workers)
    one = delayed(_one_run)
    jobs = (one(start, variances, trained, rate, steps, first, stream) for start, stream in zip(deviation, streams))
    spaces, errors, last = (np.stack(part) for part in zip(*Parallel(n_jobs=workers, prefer="threads")(jobs)))
    if not (np.isfinite(spaces).all() and np.isfinite(errors).all()):
        wanted = "keep every run inside the floating-point range up to the last time"
        checks.fail("learning_rate", wanted, learning_rate)
    return Runs(steps / size, spaces, errors, last)

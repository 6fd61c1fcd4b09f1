r"""Stochastic gradient descent of a soft committee machine without its weights: exact in law, at a cost that does not grow with N.

Inputs are Gaussian with L eigenspaces of dimensions m_k.  All that a step needs of the N(K+M) weights V = (B, J) are the Gram matrices
G^k = V P_k Vᵀ/N: given them, the fields and |P_kξ|² of the next example have a known law.  With G^k = C Cᵀ and u ~ N(0, 1),

    h^k = √λ_k C u,    h = (y, x) = Σ_k h^k,    |P_kξ|² = λ_k (|u|² + χ²),    χ² with m_k - K - M degrees of freedom,

and a step  J_i ← J_i + c_i ξ/√N  moves  G^k_ij by (c_i h^k_j + c_j h^k_i)/N + c_i c_j |P_kξ|²/N²,  c = 0 for a teacher.  So the Gram
matrices are a Markov chain of their own.  Eigenspaces with m_k <= K + M keep their few coordinates instead.
Nothing is averaged and N is finite: this is worschech2024, eqs. (2) and (3), not its limit N -> ∞.
"""

from math import erf, exp, pi, sqrt

import numpy as np
from joblib import Parallel, delayed
from numba import njit

from lib.common import checks
from lib.foundations import committee_matrices
from lib.scaling.spectra import checked_spectrum
from lib.scaling.structured import Path, _joint, checked_resolved

RANK = 1e-15  # a pivot below this part of its diagonal entry is rounding: the vector lies in the span of the others


@njit(cache=True, nogil=True)
def _factor(gram, factor, first):
    """Rows `first` and later of the Cholesky factor of a positive semidefinite matrix; a zero pivot leaves a zero column."""
    size = len(gram)
    for i in range(first, size):
        left = gram[i, i]
        for j in range(i):
            entry = gram[i, j]
            for a in range(j):
                entry -= factor[i, a] * factor[j, a]
            factor[i, j] = entry / factor[j, j] if factor[j, j] > 0.0 else 0.0
            left -= factor[i, j] ** 2
        factor[i, i] = sqrt(left) if left > RANK * gram[i, i] else 0.0


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _descend(gram, factor, lam, counts, teachers, learning_rate, steps, snapshots, random):
    """Run the chain in place and store the covariance of the fields in snapshots[s] after steps[s] examples."""
    levels, size, _ = gram.shape
    units, total = size - teachers, counts.sum()
    teacher_weight, student_weight = 1 / sqrt(teachers), sqrt(teachers) / units
    part, u = np.empty((levels, size)), np.empty((levels, size))
    square, fields, move = np.empty(levels), np.empty(size), np.zeros(size)
    done = 0
    for s in range(len(steps)):
        for _ in range(steps[s] - done):
            fields[:] = 0.0
            for k in range(levels):
                known = min(counts[k], size)
                square[k] = 2 * random.standard_gamma((counts[k] - size) / 2) if counts[k] > size else 0.0
                for a in range(known):
                    u[k, a] = random.standard_normal()
                    square[k] += u[k, a] ** 2
                square[k] *= lam[k]
                root = sqrt(lam[k])
                for i in range(size):
                    field = 0.0
                    for a in range(known if counts[k] <= size else i + 1):
                        field += factor[k, i, a] * u[k, a]
                    part[k, i] = root * field
                    fields[i] += part[k, i]
            delta = 0.0
            for i in range(size):
                weight = teacher_weight if i < teachers else -student_weight
                delta += weight * erf(fields[i] / sqrt(2))
            for i in range(teachers, size):
                move[i] = learning_rate * student_weight * sqrt(2 / pi) * delta * exp(-(fields[i] ** 2) / 2) / total
            for k in range(levels):
                if counts[k] <= size:
                    for i in range(teachers, size):
                        for a in range(counts[k]):
                            factor[k, i, a] += move[i] * sqrt(lam[k]) * u[k, a]
                else:
                    for i in range(teachers, size):
                        for j in range(i + 1):
                            gram[k, i, j] += move[i] * part[k, j] + move[j] * part[k, i] + move[i] * move[j] * square[k]
                            gram[k, j, i] = gram[k, i, j]
                    _factor(gram[k], factor[k], teachers)
        done = steps[s]
        for k in range(levels):
            if counts[k] <= size:
                gram[k] = factor[k] @ factor[k].T
            snapshots[s] += lam[k] * gram[k]


def _start(joint, counts):
    """Factors C with C Cᵀ = G^k: triangular, or of m_k columns where the eigenspace has no more than K + M dimensions."""
    factors = np.zeros_like(joint)  # (L, K+M, K+M)
    for gram, factor, count in zip(joint, factors, counts):
        if count > len(gram):
            _factor(gram, factor, 0)
        else:
            values, vectors = np.linalg.eigh(gram)  # (K+M,), (K+M, K+M)
            if values[: len(gram) - count].max(initial=0) > 1e-9 * values[-1]:
                checks.fail(
                    "multiplicities",
                    f"be at least the rank of the overlaps in each eigenspace, or draw these in {count} dimensions",
                    count,
                )
            factor[:, :count] = vectors[:, len(gram) - count :] * np.sqrt(np.maximum(values[len(gram) - count :], 0))
    return factors


def _one_run(joint, factors, lam, counts, teachers, learning_rate, steps, seed):
    gram, factor = joint.copy(), factors.copy()  # (L, K+M, K+M)
    snapshots = np.zeros((len(steps), *joint.shape[1:]))  # (n, K+M, K+M)
    _descend(
        gram, factor, lam, counts, teachers, learning_rate, steps, snapshots, np.random.Generator(np.random.SFC64(seed))
    )
    return snapshots, gram


def simulate(
    times,
    student_resolved,
    cross_resolved,
    teacher_resolved,
    eigenvalues,
    multiplicities,
    learning_rate,
    seed,
    *,
    runs=1,
    workers=1,
):
    r"""Runs of stochastic gradient descent from given overlaps, in the space of Gram matrices.

    Source: worschech2024, eqs. (2) and (3).  A step costs O(L (K+M)³), whatever N; the law of the overlaps is that of
    :func:`lib.foundations.online.simulate` with the same start.  Rounding limits ε_g to about 1e-13.

    Parameters
    ----------
    times : array (n,)                   α = examples / N at which to record; >= 0, increasing by at least 1/N
    student_resolved : array (L, K, K)   Q^k at α = 0, the same for every run
    cross_resolved : array (L, K, M)     R^k at α = 0
    teacher_resolved : array (L, M, M)   T^k
    eigenvalues : array (L,)             λ_k; > 0, of weighted mean one
    multiplicities : int array (L,)      m_k, N = Σ_k m_k; >= 1, and at least the rank of the overlaps of each eigenspace
    learning_rate : float                η; > 0
    seed : int or SeedSequence           run number r draws from its r-th child, so results do not depend on `workers`
    runs : int                           number of runs; >= 1
    workers : int                        threads that share the runs; >= 1

    Returns
    -------
    Path                                 its arrays, but for `times` and `teacher_overlap`, have a leading axis of runs

    Raises
    ------
    ValueError                           if an argument is outside its range, or the overlaps overflow

    Examples
    --------
    >>> from lib.scaling import spectra
    >>> start = spectra.random_overlaps([10**6], 2, 2, seed=1, student_variance=0.1)
    >>> path = simulate([0, 0.01], *start, [1.0], [10**6], 0.5, seed=2, runs=3)
    >>> path.generalization_error.shape
    (3, 2)
    """
    times = checks.times("times", times)  # (n,)
    lam, _ = checked_spectrum(eigenvalues, multiplicities)  # (L,)
    counts = checks.entries("multiplicities", multiplicities, at_least=1, shape=lam.shape)  # (L,)
    if np.any(counts != np.rint(counts)):
        checks.fail("multiplicities", "hold whole numbers", multiplicities)
    counts = counts.astype(np.int64)  # (L,)
    q, r, t = checked_resolved(student_resolved, cross_resolved, teacher_resolved, lam)
    teachers, dimension = t.shape[1], counts.sum()
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    steps = np.rint(times * dimension).astype(np.int64)  # (n,)
    if np.any(np.diff(steps) < 1):
        checks.fail("times", f"lie at least one example, 1/N = {1 / dimension:.3g}, apart", times)
    given = checks.seed_sequence("seed", seed)
    runs, workers = checks.integer("runs", runs), checks.integer("workers", workers)
    # A fresh copy of the sequence: spawning changes a SeedSequence, and the caller's must give the same runs again.
    streams = np.random.SeedSequence(given.entropy, spawn_key=given.spawn_key, pool_size=given.pool_size).spawn(runs)
    joint = _joint(t, np.swapaxes(r, 1, 2), q)  # (L, K+M, K+M), teachers first: their rows never change
    factors = _start(joint, counts)  # (L, K+M, K+M)
    one = delayed(_one_run)
    done = Parallel(n_jobs=workers, prefer="threads")(
        one(joint, factors, lam, counts, teachers, learning_rate, steps, stream) for stream in streams
    )
    seen, last = (np.stack(part) for part in zip(*done))  # (runs, n, K+M, K+M), (runs, L, K+M, K+M)
    if not np.isfinite(seen).all():
        checks.fail("learning_rate", "keep the overlaps inside the floating-point range", learning_rate)
    student, cross = (
        seen[:, :, teachers:, teachers:],
        seen[:, :, teachers:, :teachers],
    )  # (runs, n, K, K), (runs, n, K, M)
    teacher = np.tensordot(lam, t, axes=1)  # (M, M)
    error = committee_matrices.error(student, cross, teacher)  # (runs, n)
    return Path(
        steps / dimension,
        student,
        cross,
        teacher,
        error,
        last[:, :, teachers:, teachers:],
        last[:, :, teachers:, :teachers],
    )

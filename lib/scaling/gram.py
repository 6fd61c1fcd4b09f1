"""Stochastic gradient descent of a soft committee machine without its weights: exact in law, at a cost free of N.

All that a step needs of the weights V = (B, J) are the Gram matrices  G^k = V P_k Vᵀ/N,  a Markov chain of their own.
Nothing is averaged and N is finite: worschech2024, eqs. (2) and (3), not its limit N -> ∞.  Only in this module
teachers stand before students: their rows of the factors C never change.
"""

from math import erf, exp, pi, sqrt

import numpy as np
from joblib import Parallel, delayed

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import psd_root
from lib.common.random import children
from lib.foundations.committee import Fields
from lib.scaling import _arguments
from lib.scaling.structured import Path

RANK = 1e-15  # a pivot below this part of its diagonal entry is rounding: the vector lies in the span of the others


@loops
def _factor(gram, factor, first):
    """Rows `first` and later of the Cholesky factor of a semidefinite matrix; a zero pivot leaves a zero column."""
    size = len(gram)
    for i in range(first, size):
        left = gram[i, i]
        for j in range(i):
            entry = gram[i, j]
            for a in range(j):
                entry -= factor[i, a] * factor[j, a]
            factor[i, j] = entry / factor[j, j] if factor[j, j] > 0.0 else 0.0
            left -= factor[i, j] * factor[i, j]
        factor[i, i] = sqrt(left) if left > RANK * gram[i, i] else 0.0


@loops
def _descend(gram, factor, lam, counts, total, teachers, learning_rate, steps, part, u, square, fields, move, random):
    """Run the chain in place over some steps; `part`, `u` (L, K + M), `square` (L,), `fields`, `move`: workspace."""
    levels, size, _ = gram.shape
    units = size - teachers
    teacher_weight, student_weight = 1 / sqrt(teachers), sqrt(teachers) / units
    for _ in range(steps):
        for i in range(size):
            fields[i] = 0.0
        for k in range(levels):
            known = min(counts[k], size)
            square[k] = 2 * random.standard_gamma((counts[k] - size) / 2) if counts[k] > size else 0.0
            for a in range(known):
                u[k, a] = random.standard_normal()
                square[k] += u[k, a] * u[k, a]
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
            move[i] = learning_rate * student_weight * sqrt(2 / pi) * delta * exp(-fields[i] * fields[i] / 2) / total
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


def _start(joint, counts):
    """Factors C with C Cᵀ = G^k: triangular, or of m_k columns where the eigenspace has at most K + M dimensions."""
    factors = np.zeros_like(joint)  # (L, K+M, K+M)
    for gram, factor, count in zip(joint, factors, counts):
        if count > len(gram):
            _factor(gram, factor, 0)
        else:
            root = psd_root(gram)  # (K+M, K+M), columns ascending in length
            squares = (root**2).sum(axis=0)  # (K+M,)
            if squares[: len(gram) - count].max(initial=0) > 1e-9 * squares[-1]:
                wanted = f"be at least the rank of the overlaps in each eigenspace, or draw these in {count} dimensions"
                checks.fail("multiplicities", wanted, count)
            factor[:, :count] = root[:, len(gram) - count :]
    return factors


def _one_run(joint, factors, lam, counts, teachers, learning_rate, steps, rng):
    gram, factor, random = joint.copy(), factors.copy(), checks.generator("rng", rng)  # (L, K+M, K+M)
    snapshots = np.zeros((len(steps), *joint.shape[1:]))  # (n, K+M, K+M)
    room = *np.empty((2, *joint.shape[:2])), np.empty(len(lam)), *np.zeros((2, joint.shape[1]))
    for snapshot, number in zip(snapshots, np.diff(steps, prepend=0)):
        _descend(gram, factor, lam, counts, counts.sum(), teachers, learning_rate, number, *room, random)
        for k, count in enumerate(counts):
            if count <= joint.shape[1]:
                gram[k] = factor[k] @ factor[k].T
            snapshot += lam[k] * gram[k]
    return snapshots, gram


def simulate(
    times,
    student_resolved,
    cross_resolved,
    teacher_resolved,
    eigenvalues,
    multiplicities,
    learning_rate,
    rng,
    *,
    runs=1,
    workers=1,
):
    """Runs of stochastic gradient descent from given overlaps, in the space of Gram matrices.

    Inputs are Gaussian with L eigenspaces of dimensions m_k.  With G^k = C Cᵀ and u ~ N(0, 1) the next example has  h^k
    = √λ_k C u,  h = (y, x) = Σ_k h^k,  |P_kξ|² = λ_k (|u|² + χ²),  χ² with m_k - K - M degrees of freedom,  and a step
    J_i ← J_i + c_i ξ/√N  moves  G^k_ij by (c_i h^k_j + c_j h^k_i)/N + c_i c_j |P_kξ|²/N²,  c = 0 for a teacher.
    Eigenspaces with m_k <= K + M keep their few coordinates instead.  The law of the overlaps is that of
    :func:`lib.foundations.online.simulate` with the same start; rounding limits ε_g to about 1e-13.

    `times` (n,): α = examples / N >= 0, increasing by at least 1/N; `student_resolved` (L, K, K), `cross_resolved` (L,
    K, M), `teacher_resolved` (L, M, M): Q^k, R^k, T^k of each run at α = 0; `eigenvalues` (L,): λ_k > 0 of weighted
    mean one; `multiplicities` (L,): integers m_k, at least the rank of the overlaps: no default; `learning_rate`: η >
    0; `rng`: int or SeedSequence, run r draws from its r-th child; `runs`, `workers`: runs, and threads that share
    them.  Returns a Path with a leading axis of runs, but in `times` and `teacher_overlap`.

    >>> one = np.ones((1, 1, 1))  # Q = R = T: nothing is left to learn
    >>> simulate([0, 0.01], one, one, one, [1.0], [10**6], 0.5, rng=2, runs=2).generalization_error.round(12).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    times = checks.times("times", times)  # (n,)
    lam, _ = _arguments.spectrum(eigenvalues, multiplicities)  # (L,)
    if multiplicities is None:
        checks.fail("multiplicities", "be given: they say how many inputs there are", multiplicities)
    counts = _arguments.counts(multiplicities, lam.shape).astype(np.int64)  # (L,)
    q, r, t = _arguments.resolved(student_resolved, cross_resolved, teacher_resolved, lam.size)
    teachers, dimension = t.shape[1], counts.sum()
    rate, steps = _arguments.learning_rate(learning_rate), _arguments.whole_steps(times, dimension)  # float, (n,)
    streams, workers = children(rng, checks.integer("runs", runs)), checks.integer("workers", workers)
    joint = np.block([[t, np.swapaxes(r, 1, 2)], [r, q]])  # (L, K+M, K+M)
    given = joint, _start(joint, counts), lam, counts, teachers, rate, steps
    done = Parallel(n_jobs=workers, prefer="threads")(delayed(_one_run)(*given, stream) for stream in streams)
    seen, last = (np.stack(part) for part in zip(*done))  # (runs, n, K+M, K+M), (runs, L, K+M, K+M)
    if not np.isfinite(seen).all():
        checks.fail("learning_rate", "keep the overlaps inside the floating-point range", learning_rate)
    # (runs, n, K, K), (runs, n, K, M), (runs, L, K, K), (runs, L, K, M)
    student, cross, *at_end = (part[:, :, teachers:, s] for part in (seen, last) for s in np.s_[teachers:, :teachers])
    teacher = np.tensordot(lam, t, axes=1)  # (M, M)
    error = Fields.error(student, cross, teacher)  # (runs, n)
    return Path(steps / dimension, student, cross, teacher, error, *at_end)

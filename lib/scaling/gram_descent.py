"""Stochastic gradient descent of a soft committee machine without its weights: exact in law, at a cost free of N.

All that a step needs of the weights V = (B, J) are the Gram matrices  G^k = V P_k Vᵀ/N,  a Markov chain of their own.
Nothing is averaged and N is finite: worschech2024, eqs. (2) and (3).  Inside this module teachers stand before
students: their rows of the factors C never change.
"""

from math import erf, exp, pi, sqrt

import numpy as np
from joblib import Parallel, delayed

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import psd_root
from lib.common.random import children
from lib.common.shapes import ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.foundations.committee import Fields
from lib.scaling import _arguments
from lib.scaling.structured import Path, ResolvedOverlaps

__all__ = ["simulate"]

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
                wanted = f"have multiplicities of at least the rank of the overlaps: draw these in {count} dimensions"
                checks.fail("spectrum", wanted, count)
            factor[:, :count] = root[:, len(gram) - count :]
    return factors


def _one_replica(joint, factors, lam, counts, teachers, learning_rate, steps, rng):
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
    times: ArrayLike, start: ResolvedOverlaps, spectrum: Spectrum | ArrayLike, learning_rate: float, rng: Rng, *,
    replicas: int = 1, workers: int = 1,
) -> Path:  # fmt: skip
    """Replicas of stochastic gradient descent from given overlaps, in the space of Gram matrices.

    Inputs are Gaussian with L eigenspaces of dimensions m_k.  With G^k = C Cᵀ and u ~ N(0, 1) the next example has  h^k
    = √λ_k C u,  h = (y, x) = Σ_k h^k,  |P_kξ|² = λ_k (|u|² + χ²),  χ² with m_k - K - M degrees of freedom,  and a step
    J_i ← J_i + c_i ξ/√N  moves  G^k_ij by (c_i h^k_j + c_j h^k_i)/N + c_i c_j |P_kξ|²/N²,  c = 0 for a teacher.
    Eigenspaces with m_k <= K + M keep their few coordinates instead.  The law of the overlaps is that of
    :func:`lib.foundations.online.simulate` with the same start; rounding limits ε_g to about 1e-13.

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing by at least 1/N.
    start : ResolvedOverlaps
        Q^k, R^k, T^k of each replica at α = 0.
    spectrum : Spectrum
        λ_k > 0 of mean one and whole multiplicities m_k, the dimensions, at least the rank of the overlaps.
    learning_rate : float
        η > 0.
    rng : int, SeedSequence or Generator
        Replica r draws from its r-th child.
    replicas, workers : int
        Number of replicas, and of threads that share them.

    Returns
    -------
    Path
        With a leading axis of replicas, but in `times` and `teacher_overlap`.

    Examples
    --------
    >>> learned = ResolvedOverlaps(*np.ones((3, 1, 1, 1)))  # Q = R = T
    >>> path = simulate([0, 0.01], learned, Spectrum([1.0], [10**6]), 0.5, rng=2, replicas=2)
    >>> path.generalization_error.round(12).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    q, r, t = checks.instance("start", start, ResolvedOverlaps, "such as structured.random_overlaps draws")
    spectrum = _arguments.spectrum(spectrum, levels=len(q), whole=True)
    lam, counts = spectrum.eigenvalues, spectrum.multiplicities.astype(np.int64)  # (L,), (L,)
    teachers, dimension = t.shape[1], counts.sum()
    rate = checks.number("learning_rate", learning_rate, above=0)
    steps = _arguments.whole_steps(checks.times("times", times), dimension)  # (n,)
    streams, workers = children(rng, checks.integer("replicas", replicas)), checks.integer("workers", workers)
    joint = np.block([[t, r.mT], [r, q]])  # (L, K+M, K+M)
    given = joint, _start(joint, counts), lam, counts, teachers, rate, steps
    done = Parallel(n_jobs=workers, prefer="threads")(delayed(_one_replica)(*given, stream) for stream in streams)
    seen, last = (np.stack(part) for part in zip(*done))  # (replicas, n, K+M, K+M), (replicas, L, K+M, K+M)
    checks.finite("learning_rate", seen)
    # (replicas, n, K, K), (replicas, n, K, M), (replicas, L, K, K), (replicas, L, K, M)
    student, cross, *at_end = (part[:, :, teachers:, s] for part in (seen, last) for s in np.s_[teachers:, :teachers])
    teacher = np.tensordot(lam, t, axes=1)  # (M, M)
    error = Fields.error(student, cross, teacher)  # (replicas, n)
    path = Path(steps / dimension, student, cross, teacher, error, *at_end)
    return _arguments.without_axis(times, path, ("student_overlap", "cross_overlap", "generalization_error"), axis=1)

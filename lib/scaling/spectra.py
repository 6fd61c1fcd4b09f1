"""Input covariances with a power-law spectrum, and the overlaps of random vectors in each of their eigenspaces.

A covariance has distinct eigenvalues λ_k, k = 1..L, and eigenspaces of dimensions m_k, N = Σ_k m_k, with projectors
P_k. Vectors J_i and B_n have the overlaps  Q^k = J P_k Jᵀ/N,  R^k = J P_k Bᵀ/N,  T^k = B P_k Bᵀ/N.  Source:
worschech2024, eq. (1), with powers,  Q^(l) = Σ_k λ_k^l Q^k, in their place.
"""

import numpy as np

from lib.common import checks
from lib.scaling import _arguments


def power_law(levels, exponent):
    """Eigenvalues of a power-law covariance with mean one:  λ_k = λ₊ k^{-(1+β)},  λ₊ = L / Σ_k k^{-(1+β)}.

    `levels`: L >= 1 eigenspaces of equal dimensions; `exponent`: β >= 0. Returns λ_k (L,), descending.

    >>> power_law(2, 1.0).tolist()
    [1.6, 0.4]
    """
    rank = np.arange(1, checks.integer("levels", levels) + 1)  # (L,)
    shape = rank ** -(1.0 + checks.number("exponent", exponent, at_least=0))  # (L,)
    if shape[-1] == 0:
        checks.fail("exponent", "be smaller: the last eigenvalue underflows", exponent)
    return shape / shape.mean()


def _gram(random, scales, freedom):
    """Wishart matrix Σ_a z_a z_aᵀ of `freedom` vectors z ~ N(0, diag(scales²)), Bartlett's way if possible."""
    size = len(scales)
    if freedom < size:
        vectors = random.standard_normal((size, freedom))  # (n, m)
    else:
        vectors = np.tril(random.standard_normal((size, size)), -1)  # (n, n)
        vectors[np.diag_indices(size)] = np.sqrt(random.chisquare(freedom - np.arange(size)))
    scaled = scales[:, None] * vectors  # (n, min(n, m))
    return scaled @ scaled.T


def random_overlaps(multiplicities, students, teachers, rng, *, student_variance=1.0, orthonormal_teachers=False):
    """Overlaps in every eigenspace for weights with independent Gaussian entries, drawn from their Wishart law.

    `multiplicities` (L,): integers m_k >= 1, which fix L and N: no default; `students`, `teachers`: K, M >= 1; `rng`:
    int, SeedSequence or Generator; `student_variance`: σ_J² >= 0 of the entries of J, those of B have 1;
    `orthonormal_teachers`: True turns the teacher's vectors into orthogonal ones, T^k = (m_k/N) 1; then m_k >= M.
    Returns Q^k (L, K, K), R^k (L, K, M), T^k (L, M, M).

    >>> [part.shape for part in random_overlaps([500, 500], 2, 3, rng=1)]
    [(2, 2, 2), (2, 2, 3), (2, 3, 3)]
    """
    counts = _arguments.counts(checks.array("multiplicities", multiplicities, ndim=1), (None,))  # (L,)
    students, teachers = checks.integer("students", students), checks.integer("teachers", teachers)
    spread = np.sqrt(checks.number("student_variance", student_variance, at_least=0))
    random = checks.generator("rng", rng)
    scales = np.concatenate([np.full(students, spread), np.ones(teachers)])  # (K+M,)
    orthonormal = checks.boolean("orthonormal_teachers", orthonormal_teachers)
    if orthonormal and counts.min() < teachers:
        checks.fail("multiplicities", f"be at least {teachers}, the number of orthonormal teachers", multiplicities)
    joint = np.stack([_gram(random, scales, int(m)) for m in counts]) / counts.sum()  # (L, K+M, K+M)
    q, r, t = joint[:, :students, :students], joint[:, :students, students:], joint[:, students:, students:]
    if not orthonormal:
        return q, r, t
    fractions = (counts / counts.sum())[:, None, None]  # (L, 1, 1)
    turned = np.linalg.solve(np.linalg.cholesky(t), np.swapaxes(r, 1, 2))  # (L, M, K): B -> √m_k C⁻¹B if T^k = C Cᵀ
    return q, np.sqrt(fractions) * np.swapaxes(turned, 1, 2), fractions * np.eye(teachers)

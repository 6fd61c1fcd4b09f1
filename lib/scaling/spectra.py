"""Input covariances with a power-law spectrum, and the overlaps of random vectors in each of their eigenspaces.

A covariance is given by its distinct eigenvalues λ_k, k = 1..L, and the dimension m_k of each eigenspace, N = Σ_k m_k.
Vectors J_i and B_n meet eigenspace k in the overlaps  Q^k = J P_k Jᵀ/N,  R^k = J P_k Bᵀ/N,  T^k = B P_k Bᵀ/N  with its
projector P_k.  Source: worschech2024, eq. (1); there overlaps carry powers,  Q^(l) = Σ_k λ_k^l Q^k, which span hundreds
of decades.
"""

import numpy as np

from lib.common import checks
from lib.scaling import _arguments


def power_law(levels, exponent):
    """Eigenvalues of a power-law covariance with mean one:  λ_k = λ₊ k^{-(1+β)},  λ₊ = L / Σ_k k^{-(1+β)}.

    `levels`: L >= 1, number of distinct eigenvalues, whose eigenspaces have equal dimensions; `exponent`: β >= 0.
    Returns λ_k (L,), descending.

    >>> power_law(2, 1.0).tolist()
    [1.6, 0.4]
    """
    rank = np.arange(1, checks.integer("levels", levels) + 1)  # (L,)
    shape = rank ** -(1.0 + checks.number("exponent", exponent, at_least=0))  # (L,)
    if shape[-1] == 0:
        checks.fail("exponent", "be smaller: the last eigenvalue underflows", exponent)
    return shape / shape.mean()


def checked_spectrum(eigenvalues, multiplicities=None):
    """Eigenvalues and multiplicity fractions n_k = m_k/N of a covariance with  Σ_k n_k λ_k = 1,  after checking both.

    `eigenvalues` (L,): λ_k > 0, in any order, of weighted mean one; `multiplicities` (L,): m_k, or any numbers > 0
    proportional to them; default: all equal.  Returns λ_k (L,) and n_k (L,), which add up to one.

    >>> [part.tolist() for part in checked_spectrum([3.0, 0.5], [1, 4])]
    [[3.0, 0.5], [0.2, 0.8]]
    """
    eigenvalues = _arguments.levels(eigenvalues)  # (L,)
    if multiplicities is None:
        fractions = np.full(eigenvalues.size, 1 / eigenvalues.size)  # (L,)
    else:
        counts = checks.entries("multiplicities", multiplicities, above=0, shape=eigenvalues.shape)  # (L,)
        fractions = counts / counts.sum()  # (L,)
    mean = fractions @ eigenvalues
    if abs(mean - 1) > 1e-9:
        checks.fail("eigenvalues", "have mean one, weighted with the multiplicities", f"mean {mean:.10g}")
    return eigenvalues, fractions


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


def random_overlaps(multiplicities, students, teachers, seed, *, student_variance=1.0, orthonormal_teachers=False):
    """Overlaps in every eigenspace for weights with independent Gaussian entries, without the vectors.

    The Gram matrix of K + M such vectors in m_k dimensions has a Wishart law, which takes (K+M)² numbers to draw,
    however large N is.  Entries of J have variance σ_J², of B variance 1.  `multiplicities` (L,): integers m_k >= 1,
    which fix L and N: no default; `students`, `teachers`: K, M >= 1; `seed`: int, SeedSequence or Generator;
    `student_variance`: σ_J² >= 0; `orthonormal_teachers`: True turns the teacher's vectors into orthogonal ones of
    equal length in every eigenspace, T^k = (m_k/N) 1; then m_k >= M.  Returns Q^k (L, K, K), R^k (L, K, M), T^k (L, M,
    M).

    >>> [part.shape for part in random_overlaps([500, 500], 2, 3, seed=1)]
    [(2, 2, 2), (2, 2, 3), (2, 3, 3)]
    """
    counts = _arguments.counts(checks.array("multiplicities", multiplicities, ndim=1), (None,))  # (L,)
    students, teachers = checks.integer("students", students), checks.integer("teachers", teachers)
    spread = np.sqrt(checks.number("student_variance", student_variance, at_least=0))
    random = checks.generator("seed", seed)
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

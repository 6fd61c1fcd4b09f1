"""Checks of the arguments that several modules of this package share; each names the argument as its callers do."""

import numpy as np

from lib.common import checks
from lib.foundations import committee


def times(alpha):
    return checks.entries("alpha", alpha, at_least=0, ndim=1)  # (A,)


def learning_rate(value):
    return checks.number("learning_rate", value, above=0)


def variance(student_variance):
    """Mean square 1 + σ_J² of the entries of J - B at the start: those of the teacher have variance one."""
    return 1 + checks.number("student_variance", student_variance, at_least=0)


def levels(eigenvalues):
    eigenvalues = checks.entries("eigenvalues", eigenvalues, above=0, ndim=1)  # (L,)
    if eigenvalues.size == 0:
        checks.fail("eigenvalues", "hold at least one eigenvalue", "none")
    return eigenvalues


def spectrum(eigenvalues, multiplicities=None):
    """λ_k > 0 (L,) and n_k = m_k/N (L,), from m_k up to a factor, all equal if none are given;  Σ_k n_k λ_k = 1."""
    given, eigenvalues = eigenvalues, levels(eigenvalues)  # (L,)
    if multiplicities is None:
        fractions = np.full(eigenvalues.size, 1 / eigenvalues.size)  # (L,)
    else:
        counts = checks.entries("multiplicities", multiplicities, above=0, shape=eigenvalues.shape)  # (L,)
        fractions = counts / counts.sum()  # (L,)
    mean = fractions @ eigenvalues
    kind = np.asarray(given).dtype  # single precision cannot do better
    if abs(mean - 1) > max(1e-9, np.finfo(kind).eps if kind.kind == "f" else 0.0):
        checks.fail("eigenvalues", "have mean one, weighted with the multiplicities", f"mean {mean:.10g}")
    return eigenvalues, fractions


def resolved(student_resolved, cross_resolved, teacher_resolved, levels):
    """Q^k (L, K, K), R^k (L, K, M) and T^k (L, M, M), which form a covariance matrix in each of the L eigenspaces."""
    q = checks.array("student_resolved", student_resolved, shape=(levels, None, None))  # (L, K, K)
    t = checks.array("teacher_resolved", teacher_resolved, shape=(levels, None, None))  # (L, M, M)
    for name, part in (("student_resolved", q), ("teacher_resolved", t)):
        square = part.shape[1] == part.shape[2] and part.size > 0
        if not square or not np.allclose(part, np.swapaxes(part, 1, 2), rtol=0, atol=1e-10 * np.abs(part).max()):
            checks.fail(name, "hold symmetric matrices", f"shape {part.shape}")
    r = checks.array("cross_resolved", cross_resolved, shape=(levels, q.shape[1], t.shape[1]))  # (L, K, M)
    lowest = committee.lowest_correlation(q, r, t, 1e-9)
    if lowest < -committee.ROUNDING:
        wanted = "form a positive semidefinite matrix with Q and T in every eigenspace"
        checks.fail("cross_resolved", wanted, f"correlations with the lowest eigenvalue {lowest:.3g}")
    return q, r, t


def counts(multiplicities, shape):
    """Whole numbers m_k (L,); one each if none are given."""
    if multiplicities is None:
        return np.ones(shape)
    result = checks.entries("multiplicities", multiplicities, at_least=1, at_most=2**53, shape=shape)  # (L,)
    if result.size == 0 or np.any(result != np.rint(result)):
        checks.fail("multiplicities", "hold whole numbers, at least one", multiplicities)
    return result


def trained(value, size):
    value = checks.integer("trained", value)
    if value > size:
        checks.fail("trained", f"be at most the number of weights, {size}", value)
    return value


def whole_steps(times, size):
    """Examples at the times (n,), which must tell them apart."""
    steps = checks.whole_steps("times", times, size)  # (n,)
    if np.any(np.diff(steps) < 1):
        checks.fail("times", f"lie at least one example, 1/N = {1 / size:.3g}, apart", times)
    return steps

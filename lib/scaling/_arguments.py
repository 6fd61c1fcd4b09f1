"""Checks of the arguments that several modules of this package share; each names the argument as its callers do."""

import numpy as np

from lib.common import checks


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


def counts(multiplicities, shape):
    """Whole numbers m_k (L,); one each if none are given."""
    if multiplicities is None:
        return np.ones(shape)
    result = checks.entries("multiplicities", multiplicities, at_least=1, shape=shape)  # (L,)
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
    steps = np.rint(times * size).astype(np.int64)  # (n,)
    if np.any(np.diff(steps) < 1):
        checks.fail("times", f"lie at least one example, 1/N = {1 / size:.3g}, apart", times)
    return steps

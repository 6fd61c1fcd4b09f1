"""Modes of a kernel with multiplicities, and cuts between them: the argument checks of ridge and decimation modules."""

import numpy as np

from lib.common import checks


def counts(multiplicities, size):
    """g_k (n,), positive, all 1 by default."""
    given = np.ones(size) if multiplicities is None else multiplicities
    return checks.entries("multiplicities", given, above=0, shape=(size,))  # (n,)


def descending(eigenvalues, multiplicities=None):
    """λ_k (n,), descending, not all zero, and g_k (n,), positive, all 1 by default."""
    eigenvalues = checks.entries("eigenvalues", eigenvalues, at_least=0, ndim=1)  # (n,)
    if eigenvalues.size == 0 or eigenvalues[0] == 0 or np.any(np.diff(eigenvalues) > 0):
        checks.fail("eigenvalues", "be in descending order, the first > 0", eigenvalues)
    return eigenvalues, counts(multiplicities, eigenvalues.size)  # (n,), (n,)


def places(cuts, size, name="cuts"):
    """Numbers of retained levels as an int array (...) of numbers in 0..n."""
    values = checks.entries(name, cuts, at_least=0, at_most=size)  # (...)
    if np.any(values != np.rint(values)):
        checks.fail(name, "hold whole numbers", cuts)
    return values.astype(int)  # (...)


def tails(values):
    """Σ_{k>c} v_k for every cut c = 0..n, summed from the small end, which loses no digits."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)  # (n+1,)

"""Checks of what the modules of this part are given: inputs, targets, ridges, and numbers that must be positive."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor
from scipy.linalg.lapack import dpocon

from lib.common import checks

LARGEST_CONDITION = 1e12  # of a matrix that is inverted: four digits of the inverse are left


def sound(lowest, largest):
    """Whether a matrix of such eigenvalues, or pivots, can be inverted: the one rule of this part."""
    return lowest * LARGEST_CONDITION > largest


def factored(matrix):
    """Cholesky factor for ``cho_solve``; a LinAlgError where the matrix, at unit diagonal, is singular up to rounding.

    The diagonal does not count: noise of very different size at different examples costs no digits.
    """
    factor = cho_factor(matrix, lower=True, check_finite=False)
    root = np.sqrt(matrix.diagonal())  # (P,)
    size = np.abs(matrix / root / root[:, None]).sum(axis=0).max(initial=0)  # the 1-norm
    if len(matrix) and not sound(dpocon(factor[0] / root[:, None], size, uplo="L")[0], 1):
        raise LinAlgError("singular up to rounding")
    return factor


def positive(**given):
    """Every argument as a number > 0."""
    return [checks.number(name, value, above=0) for name, value in given.items()]


def points(name, value, dimension=None):
    """One input or more, a row each."""
    result = checks.array(name, value, shape=(None, dimension))  # (n, d)
    if result.size == 0:
        checks.fail(name, "hold one or more inputs of one or more components", f"shape {result.shape}")
    return result


def examples(inputs, targets, *, patches=False):
    """X (P, d), or (P, N_p, S) of patches, and y (P,); no rows at all leave the prior."""
    x = checks.array("inputs", inputs, ndim=3 if patches else 2)
    if 0 in x.shape[1:]:
        checks.fail("inputs", f"have {'one patch or more of ' * patches}one component or more", f"shape {x.shape}")
    return x, checks.array("targets", targets, shape=(len(x),))


def per_sample(name, value, shape, **bounds):
    """One number for all, or one each: an array of that shape."""
    values = checks.entries(name, value, **bounds)  # () or shape
    if values.shape not in ((), shape):
        checks.fail(name, f"be one number or have shape {shape}", f"shape {values.shape}")
    return np.full(shape, values)


def whole(name, value, *, count=0, **bounds):
    """Whole numbers, so many or more, as integers; floats beyond 2⁵³ do not tell them apart."""
    values = checks.entries(name, value, **{"at_most": 2**53} | bounds)  # (...)
    if values.size < count or np.any(values != np.rint(values)):
        checks.fail(name, "hold one or more whole numbers" if count else "hold whole numbers", value)
    return values.astype(int)


def ridges(value):
    """T > 0, one or more."""
    result = checks.entries("ridges", value, above=0, ndim=1)  # (m,)
    if result.size == 0:
        checks.fail("ridges", "hold at least one ridge", value)
    return result

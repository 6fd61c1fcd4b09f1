"""Small statistics: a mean and how well it is known."""

import numpy as np

from lib.common import checks


def mean_and_error(values):
    """Mean over the first axis, whose n >= 2 entries are independent, and its standard error  s/√n,  s² with n - 1.

    >>> [float(part) for part in mean_and_error([1.0, 3.0])]
    [2.0, 1.0]
    """
    values = checks.array("values", values)  # (n, ...)
    if values.ndim == 0 or len(values) < 2 or values.size == 0:
        checks.fail("values", "hold two or more independent entries along the first axis", f"shape {values.shape}")
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))  # (...), (...)

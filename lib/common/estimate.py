"""A mean and how well it is known."""

from typing import NamedTuple

import numpy as np

from lib.common import checks
from lib.common.shapes import ArrayLike


class Estimate(NamedTuple):
    """A mean with its standard error; it unpacks as ``mean, error``.

    It is not a number: how errors add up depends on what the estimates share, so +, -, * and / are refused.

    Parameters
    ----------
    mean, error : float or ndarray (...)
        Of one shape.

    Examples
    --------
    >>> mean, error = Estimate(2.0, 0.5)
    """

    mean: float | np.ndarray
    error: float | np.ndarray

    __array_ufunc__ = None  # NumPy leaves its operators to those below

    def _refused(self, other):
        raise TypeError("an Estimate has no arithmetic: unpack it, mean, error = estimate")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused

    @classmethod
    def of(cls, values: ArrayLike) -> "Estimate":
        """Mean over the first axis and its standard error,  s/√n,  s² = Σ(x - x̄)²/(n - 1).

        Parameters
        ----------
        values : array_like (n, ...)
            n >= 2 independent entries, in any units.  The error has n - 1 degrees of freedom: with ten entries a
            Gaussian mean lies off by more than four errors once in 300 times, not once in 16 000.

        Returns
        -------
        Estimate
            Mean and error (...), floats for one axis.

        Raises
        ------
        ValueError
            If there are fewer than two entries, or one is not finite.

        Examples
        --------
        >>> Estimate.of([1.0, 3.0])
        Estimate(mean=2.0, error=1.0)
        """
        values = checks.array("values", values)  # (n, ...)
        if values.ndim == 0 or len(values) < 2 or values.size == 0:
            checks.fail("values", "hold two or more independent entries along the first axis", f"shape {values.shape}")
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))  # (...), (...)
        return cls(checks.plain(mean), checks.plain(error))

    def sigmas(self, expected: float | ArrayLike) -> float | np.ndarray:
        """Distance from an expected value in standard errors,  (mean - expected)/error;  0/0 is 0.

        Parameters
        ----------
        expected : float or array_like
            Broadcasts with the mean.

        Returns
        -------
        float or ndarray

        Examples
        --------
        >>> Estimate(2.0, 0.5).sigmas(1.0)
        2.0
        """
        apart = np.asarray(self.mean - np.asarray(expected))  # (...)
        with np.errstate(divide="ignore", invalid="ignore"):
            return checks.plain(np.where(apart == 0, 0.0, apart / self.error))

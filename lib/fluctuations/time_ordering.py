"""Time-ordered products and exponentials of matrices, for linear equations whose matrix changes in time.

A row vector V obeys  dV/dt = -V a(t) + b(t);  matrices act from the right, so the earliest factor stands leftmost.
Needed where a(t) at different times do not commute, as the moments S(t) of a given series of minibatches; a constant
matrix is served by ``LangevinSystem``, an average over minibatches by ``Descent``.  Source: han2021, appendix A.
"""

import numpy as np
from scipy.linalg import expm

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


def _squares(name, value):
    result = checks.array(name, value, ndim=3)  # (n, d, d)
    if result.shape[1] != result.shape[2] or result.size == 0:
        checks.fail(name, "be a sequence of square matrices, shape (n, d, d)", f"shape {result.shape}")
    return result


def _product(factors, latest_leftmost):
    result = np.empty((len(factors) + 1, *factors.shape[1:]))  # (n + 1, d, d)
    result[0] = np.eye(factors.shape[1])
    for j, factor in enumerate(factors):
        result[j + 1] = factor @ result[j] if latest_leftmost else result[j] @ factor
    return result


def _exponentials(rates, span):
    with np.errstate(all="ignore"):  # overflow is reported by checks.finite, by name
        return checks.finite("rates", expm(-span * rates))  # (n, d, d)


def products(factors: ArrayLike, *, latest_leftmost: bool = False) -> Array["times d d"]:
    """Running products of matrices in the order of time, j factors in entry j:  1, F_0, F_0 F_1, F_0 F_1 F_2, ...

    Parameters
    ----------
    factors : array_like (n, d, d)
    latest_leftmost : bool
        Instead  1, F_0, F_1 F_0, ...

    Returns
    -------
    ndarray (n + 1, d, d)

    Examples
    --------
    >>> swap, double = [[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]]
    >>> products([swap, double])[-1].tolist(), products([swap, double], latest_leftmost=True)[-1].tolist()
    ([[0.0, 1.0], [2.0, 0.0]], [[0.0, 2.0], [1.0, 0.0]])
    """
    factors = _squares("factors", factors)  # (n, d, d)
    latest_leftmost = checks.boolean("latest_leftmost", latest_leftmost)
    with np.errstate(all="ignore"):  # overflow is reported by checks.finite, by name
        return checks.finite("factors", _product(factors, latest_leftmost))


def propagators(rates: ArrayLike, step: float, *, latest_leftmost: bool = False) -> Array["times d d"]:
    """Time-ordered exponentials  U(0, t) = P exp[-∫_0^t a(t') dt']  at t = 0, h, 2h, ..., the earliest leftmost.

    han2021 (A3): V(t) = V(0) U(0, t), with an error O(h²).  The inverse is
    ``propagators(-rates, step, latest_leftmost=True)``.

    Parameters
    ----------
    rates : array_like (n, d, d)
        a at the midpoints of n steps.
    step : float
        h > 0.
    latest_leftmost : bool
        Whether later factors stand to the left.

    Returns
    -------
    ndarray (n + 1, d, d)

    Examples
    --------
    >>> propagators([[[1.0]], [[3.0]]], 0.5)[-1].round(6)  # numbers commute: exp(-∫a) = exp(-2)
    array([[0.135335]])
    """
    rates = _squares("rates", rates)  # (n, d, d)
    step = checks.number("step", step, above=0)
    latest_leftmost = checks.boolean("latest_leftmost", latest_leftmost)
    with np.errstate(all="ignore"):  # overflow is reported by checks.finite, by name
        return checks.finite("rates", _product(_exponentials(rates, step), latest_leftmost))


def wiener_integral(start: ArrayLike, rates: ArrayLike, kicks: ArrayLike, step: float) -> Array["times p d"]:
    """Solution of  dV/dt = -V a(t) + b(t):  V(t) = V(0) U(0, t) + ∫_0^t b(t') U(t', t) dt'  at t = 0, h, 2h, ...

    han2021 (A3), second form, gathered step by step: no propagator is inverted.  The error is O(h²).

    Parameters
    ----------
    start : array_like (p, d)
        V(0), row vectors.
    rates, kicks : array_like (n, d, d), (n, p, d)
        a and b at the midpoints of n steps.
    step : float
        h > 0.

    Returns
    -------
    ndarray (n + 1, p, d)

    Examples
    --------
    >>> wiener_integral([[0.0]], np.ones((1000, 1, 1)), np.ones((1000, 1, 1)), 0.001)[-1].round(4)  # 1 - exp(-1)
    array([[0.6321]])
    """
    rates = _squares("rates", rates)  # (n, d, d)
    start = checks.array("start", start, shape=(None, rates.shape[1]))  # (p, d)
    checks.fail_if(len(start) == 0, "start", "hold at least one row vector", f"shape {start.shape}")
    kicks = checks.array("kicks", kicks, shape=(len(rates), *start.shape))  # (n, p, d)
    step = checks.number("step", step, above=0)
    halves = _exponentials(rates, step / 2)  # (n, d, d): a kick at a midpoint is damped for half a step
    path = np.empty((len(rates) + 1, *start.shape))  # (n + 1, p, d)
    path[0] = start
    with np.errstate(all="ignore"):  # overflow is reported by checks.finite, by name
        for j, (half, kick) in enumerate(zip(halves, kicks)):
            path[j + 1] = (path[j] @ half + step * kick) @ half
        return checks.finite("rates", path)

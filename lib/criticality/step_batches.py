"""Steps averaged over a batch: what is left of a power law of single steps.  In kukleva2024, section 8, M = 1."""

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


def averages(steps: ArrayLike, batch: int) -> Array["..."]:
    """Mean of steps in successive batches.

    Parameters
    ----------
    steps : array_like (N,) or (N, K)
        N >= 2 steps.
    batch : int
        M, a divisor of N.

    Returns
    -------
    ndarray (N/M,) or (N/M, K)

    Examples
    --------
    >>> averages([1.0, 3.0, -2.0, 0.0], 2).tolist()
    [2.0, -1.0]
    """
    steps, batch = checks.array("steps", steps), checks.integer("batch", batch)  # (N, ...)
    if steps.ndim not in (1, 2) or len(steps) < 2 or steps.size == 0:
        checks.fail("steps", "have one row for each of two or more steps", f"shape {steps.shape}")
    checks.fail_if(len(steps) % batch, "batch", f"divide the number of steps, {len(steps)}", batch)
    return steps.reshape(-1, batch, *steps.shape[1:]).mean(axis=1)  # (N/M, ...)


def mean_law(values: ArrayLike, masses: ArrayLike, batch: int) -> tuple[Array[" m"], Array[" m"]]:
    """Law of the mean of M independent steps, from that of one step on an evenly spaced grid; atoms are welcome.

    Exact up to an absolute 1e-15 M.

    Parameters
    ----------
    values, masses : array_like (n,)
        Steps, evenly spaced, increasing, n >= 2, and their probabilities, of sum 1.
    batch : int
        M >= 1.

    Returns
    -------
    tuple of two ndarrays (M(n-1) + 1,)
        Values of the mean and their probabilities.

    Examples
    --------
    >>> [part.round(12).tolist() for part in mean_law([-1.0, 1.0], [0.5, 0.5], 2)]
    [[-1.0, 0.0, 1.0], [0.25, 0.5, 0.25]]
    """
    v = checks.array("values", values, ndim=1)  # (n,)
    if v.size < 2 or v[-1] <= v[0] or np.abs(np.diff(v) * (v.size - 1) / (v[-1] - v[0]) - 1).max() > 1e-6:
        checks.fail("values", "be two or more evenly spaced, increasing numbers", values)
    masses = checks.entries("masses", masses, at_least=0, shape=v.shape)  # (n,)
    checks.fail_if(abs(masses.sum() - 1) > 1e-9, "masses", "have sum 1", float(masses.sum()))
    batch = checks.integer("batch", batch)
    size = batch * (v.size - 1) + 1
    padded = next_fast_len(size, real=True)
    summed = irfft(rfft(masses, padded) ** batch, padded)[:size]  # (M(n-1) + 1,)
    return np.linspace(v[0], v[-1], size), np.maximum(summed, 0)  # (M(n-1) + 1,) each; below zero is rounding


def exponent(order: float, batch: int, *, one_sided: bool = False) -> float:
    """Exponent of mean steps at a zero of order r of the step:  k_M = 1 - M/r;  at a pole, r < 0, it stays 1 - 1/r.

    With steps of both signs k_M is 0 from M = r on.

    Parameters
    ----------
    order : float
        r of  s ~ (x - x₀)^r,  >= 1 or < 0.
    batch : int
        M >= 1.
    one_sided : bool, optional
        Whether all steps have one sign near the zero, by default not.

    Returns
    -------
    float

    Examples
    --------
    >>> [round(exponent(3, batch), 3) for batch in (1, 2, 3, 4)], exponent(-1, 64, one_sided=False)
    ([0.667, 0.333, 0.0, 0.0], 2.0)
    """
    order, batch = checks.number("order", order), checks.integer("batch", batch)
    checks.fail_if(0 <= order < 1, "order", "be one finite number >= 1 for a zero or < 0 for a pole", order)
    one_sided = checks.boolean("one_sided", one_sided)
    if order < 0:
        return 1 - 1 / order
    return 1 - batch / order if one_sided else max(0.0, 1 - batch / order)


def span(steps: ArrayLike, *, low: float = 0.05, high: float = 0.95) -> float:
    """Decades between two quantiles of |s|:  how wide the law of steps is, whatever its form.

    Parameters
    ----------
    steps : array_like (N,)
        s, N >= 2.
    low, high : float, optional
        Shares, 0 <= low < high <= 1, by default 5 and 95 per cent.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the smaller quantile is zero.

    Examples
    --------
    >>> round(span(np.geomspace(1e-4, 1.0, 101), low=0.05, high=0.95), 9)
    3.6
    """
    steps = checks.array("steps", steps, ndim=1)  # (N,)
    checks.fail_if(steps.size < 2, "steps", "hold two or more steps", steps)
    low = checks.number("low", low, at_least=0, below=1)
    high = checks.number("high", high, above=low, at_most=1)
    smaller, larger = np.quantile(np.abs(steps), [low, high])
    if smaller == 0:
        checks.fail("steps", f"have a quantile above zero at {low}: leave out the steps that are zero", steps)
    return float(np.log10(larger / smaller))

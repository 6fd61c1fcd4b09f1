"""Steps averaged over a batch: what is left of a power law of single steps.  In kukleva2024, section 8, M = 1."""

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from lib.common import checks


def _steps(steps, several=False):
    raw = checks.array("steps", steps, ndim=None if several else 1)  # (N,) or (N, K)
    if raw.ndim not in (1, 2) or len(raw) < 2 or raw.size == 0:
        checks.fail("steps", "have one row for each of two or more steps", f"shape {raw.shape}")
    return raw


def averages(steps, batch):
    """Mean of `steps` (N,) or (N, K) in successive batches of M, `batch`, a divisor of N.  Returns (N/M,) or (N/M, K).

    >>> averages([1.0, 3.0, -2.0, 0.0], 2).tolist()
    [2.0, -1.0]
    """
    steps, batch = _steps(steps, several=True), checks.integer("batch", batch)  # (N, ...)
    checks.fail_if(len(steps) % batch, "batch", f"divide the number of steps, {len(steps)}", batch)
    return steps.reshape(-1, batch, *steps.shape[1:]).mean(axis=1)  # (N/M, ...)


def mean_law(values, masses, batch):
    """Law of the mean of M independent steps, from that of one step on an evenly spaced grid; atoms are welcome.

    Exact up to an absolute 1e-15 M.  `values` (n,): steps, evenly spaced, increasing; `masses` (n,): their
    probabilities; `batch`: M >= 1.  Returns values and masses of the mean, (M(n-1) + 1,) each.

    >>> [part.round(12).tolist() for part in mean_law([-1.0, 1.0], [0.5, 0.5], 2)]
    [[-1.0, 0.0, 1.0], [0.25, 0.5, 0.25]]
    """
    v = checks.array("values", values, ndim=1)  # (n,)
    if v.size < 2 or v[-1] <= v[0] or np.abs(np.diff(v) * (v.size - 1) / (v[-1] - v[0]) - 1).max() > 1e-6:
        checks.fail("values", "be two or more evenly spaced, increasing numbers", values)
    masses = checks.entries("masses", masses, at_least=0, shape=v.shape)  # (n,)
    checks.fail_if(abs(masses.sum() - 1) > 1e-9, "masses", "have sum 1", float(masses.sum()))
    size = checks.integer("batch", batch) * (v.size - 1) + 1
    padded = next_fast_len(size, real=True)
    summed = irfft(rfft(masses, padded) ** batch, padded)[:size]  # (M(n-1) + 1,)
    return np.linspace(v[0], v[-1], size), np.maximum(summed, 0)  # (M(n-1) + 1,) each; below zero is rounding


def exponent(order, batch, *, one_sided=False):
    """Exponent of mean steps at a zero of order r of the step:  k_M = 1 - M/r;  at a pole, r < 0, it stays 1 - 1/r.

    With steps of both signs k_M is 0 from M = r on.  `order`: r of  s ~ (x - x₀)^r,  >= 1 or < 0; `batch`: M >= 1;
    `one_sided`: all steps have one sign near the zero.  Returns k_M.

    >>> [round(exponent(3, batch), 3) for batch in (1, 2, 3, 4)], exponent(-1, 64)
    ([0.667, 0.333, 0.0, 0.0], 2.0)
    """
    order, batch = checks.number("order", order), checks.integer("batch", batch)
    checks.fail_if(0 <= order < 1, "order", "be one finite number >= 1 for a zero or < 0 for a pole", order)
    one_sided = checks.boolean("one_sided", one_sided)
    if order < 0:
        return 1 - 1 / order
    return 1 - batch / order if one_sided else max(0.0, 1 - batch / order)


def span(steps, *, low=0.05, high=0.95):
    """Decades between two quantiles of |s|:  how wide the law of steps is, whatever its form.

    `steps` (N,): s, N >= 2; `low`, `high`: shares, 0 <= low < high <= 1, the smaller quantile not zero.  Returns
    decades.

    >>> round(span(np.geomspace(1e-4, 1.0, 101)), 9)
    3.6
    """
    steps = _steps(steps)  # (N,)
    low = checks.number("low", low, at_least=0, below=1)
    high = checks.number("high", high, above=low, at_most=1)
    smaller, larger = np.quantile(np.abs(steps), [low, high])
    if smaller == 0:
        checks.fail("steps", f"have a quantile above zero at {low}: leave out the steps that are zero", steps)
    return float(np.log10(larger / smaller))

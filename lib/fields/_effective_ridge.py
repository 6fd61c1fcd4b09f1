"""Behind :mod:`lib.fields.effective_ridge` and :mod:`lib.fields.learning_curve`: checks of spectra, bounds of κ, and the equation it solves."""

import numpy as np

from lib.common import checks
from lib.fields import _modes

_BLOCK = 2**14  # numbers a block of (rows, modes) may hold: it stays in the cache
_DECADES = 100  # spectra that reach further below their largest eigenvalue are zero there, up to rounding


def modes(eigenvalues, multiplicities):
    """Checked λ_k >= 0, not all zero, and g_k > 0, both (n,)."""
    values = checks.entries("eigenvalues", eigenvalues, at_least=0, ndim=1)  # (n,)
    if values.size == 0 or not values.any():
        checks.fail("eigenvalues", "hold at least one that is > 0", eigenvalues)
    if np.any((values > 0) & (values < values.max() * 10.0**-_DECADES)):
        checks.fail("eigenvalues", f"be zero or within {_DECADES} decades of the largest", eigenvalues)
    return values, _modes.counts(multiplicities, values.size)


def settings(samples, ridge):
    """Checked P > 0 and T >= 0, broadcast against each other."""
    p, t = checks.entries("samples", samples, above=0), checks.entries("ridge", ridge, at_least=0)
    try:
        return np.broadcast_arrays(p, t)  # (...), (...)
    except ValueError:
        checks.fail("ridge", "broadcast with samples", f"shapes {t.shape} and {p.shape}")


def blocks(rows, modes):
    """Slices that cut `rows` so that (rows, modes) stays below the size of a block."""
    step = max(1, _BLOCK // modes)
    return [slice(start, start + step) for start in range(0, rows, step)]


def unlearned(values, kappa):
    """1 - L_k = κ/(λ_k + κ), (..., n), without the difference; one for λ_k = κ = 0.  Halved, so that the sum stays in range."""
    k = kappa[..., None] / 2  # (..., 1)
    total = values / 2 + k  # (..., n)
    return np.divide(k, total, out=np.ones(total.shape), where=total > 0)


def bracket(values, counts, p, t):
    """Bounds of κ.  Above: the first m modes learned in full, the rest pure ridge.  Below: the first m modes are all there is."""
    m = np.unique(np.rint(np.geomspace(1, values.size, 64)).astype(int))  # (m,)  every m gives a bound, these suffice
    learned, stiffness = np.cumsum(counts)[m - 1], np.cumsum(counts / values)[m - 1]  # (m,), (m,)
    tail = np.append(np.cumsum((counts * values)[::-1])[::-1], 0.0)[np.append(0, m)]  # (1+m,)
    left = p[:, None] - np.append(0.0, learned)  # (R, 1+m)  samples that these modes leave over
    with np.errstate(over="ignore"):
        above = np.divide(t[:, None] + tail, left, out=np.full(left.shape, np.inf), where=left > 0).min(axis=1)  # (R,)
    # m modes alone:  Σ g λ/(λ + κ) >= n_m - κ Σ g/λ, which leaves a quadratic for κ; its root without cancellation.
    over = left[:, 1:]  # (R, m)
    size = np.abs(over) + np.hypot(over, 2 * np.sqrt(stiffness) * np.sqrt(t)[:, None])  # (R, m)
    below = (np.where(over > 0, 2 * t[:, None], size) / np.where(over > 0, size, 2 * stiffness)).max(axis=1)  # (R,)
    return np.maximum(below, t / p), above


def excess(kappa, values, counts, p, t):
    """T/κ + Σ g L - P for descending λ.  Modes above κ count as one whole less  κ/(λ + κ): no difference of large sums."""
    whole = np.insert(np.cumsum(counts), 0, 0.0)  # (n+1,)
    result = t / kappa + (whole[np.searchsorted(-values, -kappa)] - p)  # (R,)
    for rows in blocks(kappa.size, values.size):
        k = kappa[rows, None]  # (r, 1)
        result[rows] += (np.where(values > k, -k, values) / (values + k)) @ counts
    return result

"""Behind ridges, decimation, learning curves: modes, cuts between them, bounds of κ, and the equation it solves."""

import numpy as np

from lib.common import checks

_BLOCK = 2**14  # numbers a block of (rows, modes) may hold: it stays in the cache
_DECADES = 100  # spectra that reach further below their largest eigenvalue are zero there, up to rounding


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


def tails(values):
    """Σ_{k>c} v_k for every cut c = 0..n, summed from the small end, which loses no digits."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)  # (n+1,)


def modes(eigenvalues, multiplicities=None):
    """Checked λ_k >= 0, not all zero, and g_k > 0, both (n,)."""
    values = checks.entries("eigenvalues", eigenvalues, at_least=0, ndim=1)  # (n,)
    if values.size == 0 or not values.any():
        checks.fail("eigenvalues", "hold at least one that is > 0", eigenvalues)
    if np.any((values > 0) & (values < values.max() * 10.0**-_DECADES)):
        checks.fail("eigenvalues", f"be zero or within {_DECADES} decades of the largest", eigenvalues)
    return values, counts(multiplicities, values.size)


def settings(samples, ridge):
    """Checked P > 0 and T >= 0, broadcast against each other."""
    p, t = checks.entries("samples", samples, above=0), checks.entries("ridge", ridge, at_least=0)
    return checks.broadcast(samples=p, ridge=t)  # (...), (...)


def blocks(rows, modes):
    """Slices that cut `rows` so that (rows, modes) stays below the size of a block."""
    step = max(1, _BLOCK // modes)
    return [slice(start, start + step) for start in range(0, rows, step)]


def learned(values, kappa):
    """L_k = λ_k/(λ_k + κ), (..., n), where κ > 0; at κ = 0 one for λ_k > 0.  Halved, so that the sum stays in range."""
    k = kappa[..., None] / 2  # (..., 1)
    shares = np.broadcast_to(values > 0, (*kappa.shape, values.size)).astype(float)  # (..., n)
    return np.divide(values / 2, values / 2 + k, out=shares, where=(values > 0) & (k > 0))


def unlearned(values, kappa):
    """1 - L_k = κ/(λ_k + κ), (..., n), without the difference; one for λ_k = κ = 0."""
    k = kappa[..., None] / 2  # (..., 1)
    total = values / 2 + k  # (..., n)
    return np.divide(k, total, out=np.ones(total.shape), where=total > 0)


def degenerate(value, count, p, t):
    """κ for one λ of multiplicity g, (...): the root of  pκ² + (p - g - t)κ - t = 0  in units of λ, t = T/λ."""
    t = t / value  # (...)
    middle = (count - p) + t  # (...)  in this order: at P = g nothing of T is lost
    size = np.abs(middle) + np.hypot(middle, 2 * np.sqrt(p) * np.sqrt(t))  # (...)
    # Without cancellation on either side of the threshold P = g + T/λ; the forms meet where the middle term is zero.
    return value * (np.where(middle < 0, 2 * t, size) / np.where(middle < 0, size, 2 * p))


def bracket(values, counts, p, t):
    """Bounds of κ: the first m modes learned in full and the rest pure ridge; or the first m modes all there is."""
    m = np.unique(np.rint(np.geomspace(1, values.size, 64)).astype(int))  # (m,)  all m give bounds, these suffice
    full, stiffness = np.cumsum(counts)[m - 1], np.cumsum(counts / values)[m - 1]  # (m,), (m,)
    tail = tails(counts * values)[np.append(0, m)]  # (1+m,)
    left = p[:, None] - np.append(0.0, full)  # (R, 1+m)  samples that these modes leave over
    with np.errstate(over="ignore"):
        above = np.divide(t[:, None] + tail, left, out=np.full(left.shape, np.inf), where=left > 0).min(axis=1)  # (R,)
    # m modes alone:  Σ g λ/(λ + κ) >= n_m - κ Σ g/λ  leaves a quadratic for κ; its root without cancellation.
    over = left[:, 1:]  # (R, m)
    size = np.abs(over) + np.hypot(over, 2 * np.sqrt(stiffness) * np.sqrt(t)[:, None])  # (R, m)
    below = (np.where(over > 0, 2 * t[:, None], size) / np.where(over > 0, size, 2 * stiffness)).max(axis=1)  # (R,)
    return np.maximum(below, t / p), above


def excess(kappa, values, counts, p, t):
    """T/κ + Σ g L - P, λ descending.  Modes above κ count as one whole less κ/(λ + κ): no difference of large sums."""
    whole = np.insert(np.cumsum(counts), 0, 0.0)  # (n+1,)
    result = t / kappa + (whole[np.searchsorted(-values, -kappa)] - p)  # (R,)
    for rows in blocks(kappa.size, values.size):
        k = kappa[rows, None]  # (r, 1)
        result[rows] += (np.where(values > k, -k, values) / (values + k)) @ counts
    return result

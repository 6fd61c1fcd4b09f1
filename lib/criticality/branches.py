"""The monotone branches of the map x → s of one neuron from inputs to steps, and the inputs that cause a given step.

kukleva2024, text after eq. (3.16), asks for the sum over branches, but not how to find them.
"""

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from scipy.optimize import bisect

from lib.common import checks
from lib.criticality import _steps, amplitude

_GRID = 20_000  # points on which folds are looked for
_TINY = 1e-100  # what rounding means at x = 0; a pole there stays inside the floating-point range


@dataclass(frozen=True, eq=False)
class Branches:
    """The B intervals of x, in rising order, on which s is monotone and not zero, and the values of s at their ends."""

    left: np.ndarray  # (B,)
    right: np.ndarray  # (B,)
    at_left: np.ndarray  # (B,)  zero where s vanishes there
    at_right: np.ndarray  # (B,)
    folds: np.ndarray  # (C,)  the x at which s' changes sign inside a smooth piece


def _pieces(m, low, high):
    """The intervals of x between the kinks that are not dead, moved inside by the rounding of y = wx + b."""
    y = np.array(m.composition.kinks(m.label))  # (kinks,)
    cuts = np.sort(np.concatenate([[low, high], (y - m.bias) / m.weight]))  # (kinks + 2,)
    cuts = cuts[(cuts >= low) & (cuts <= high)]
    inside = 8 * np.finfo(float).eps * (np.abs(cuts) + abs(m.bias / m.weight)) + _TINY  # (n,)
    dead = m.composition.dead(m.label)
    for left, right in zip(cuts[:-1] + inside[:-1], cuts[1:] - inside[1:]):
        middle = m.weight * (left + right) / 2 + m.bias
        if left < right and not any(a < middle < b for a, b in dead):
            yield left, right


def _ends(x, s, m):
    """Whether s (n,) vanishes, up to the rounding of y = wx + b, at the two ends of the points x (n,)."""
    x, size, inside = x[[0, -1]], np.abs(s[[0, -1]]), np.abs(s[[1, -2]])  # (2,) each
    width = 32 * np.finfo(float).eps * (np.abs(x) + abs(m.bias / m.weight)) + 4 * _TINY  # (2,)
    return (size <= width * np.abs(_steps.derivatives(x, m)[1])) & (size < inside)  # (2,)


def _roots(function, x, values):
    """Roots of `function` between points x (n,) with `values` (n,) of opposite signs; points with zeros are skipped."""
    x, signs = x[values != 0], np.sign(values[values != 0])  # (n',), (n',)
    # Plain bisection: the zeros may be of third order, where Brent's method takes longer.
    precise = {"xtol": 1e-300, "rtol": 4 * np.finfo(float).eps, "maxiter": 2000}
    return [bisect(function, x[i], x[i + 1], **precise) for i in np.flatnonzero(signs[1:] != signs[:-1])]


def find(step_map, *, reach=14.0):
    """The monotone branches of x → s within `reach` deviations of the mean: split at zeros of s, folds and kinks.

    At a fold (caustic),  wh'(1 + x²) + xh = 0,  s' = 0 and p_s diverges like |s - s_c|^{-1/2}.  `step_map`: a StepMap;
    `reach`: > 0, smaller where s overflows near a pole.  Returns Branches, read-only, without dead intervals.

    >>> find(amplitude.step_map(amplitude.compositions.named("sigmoid + squared"), 16.0, -8.0, 0)).folds.round(3)
    array([0.546])
    """
    checks.instance("step_map", step_map, amplitude.StepMap, "as from amplitude.step_map")
    return _find(step_map, checks.number("reach", reach, above=0))


@lru_cache(maxsize=256)  # a figure asks for the same few maps again and again, twice for every density of |s|
def _find(m, reach):
    low, high = m.mean - reach * m.deviation, m.mean + reach * m.deviation
    rows, all_folds = [], []
    for left, right in _pieces(m, low, high):
        x = np.linspace(left, right, max(_GRID // 10, int(_GRID * (right - left) / (high - low))))  # (n,)
        s, s1, _ = _steps.derivatives(x, m)  # (n,), (n,)
        wanted = f"keep s inside the floating-point range for {reach:g} deviations around the mean"
        checks.fail_if(not np.isfinite(s).all(), "step_map", wanted, m)
        zeros = _roots(lambda u: _steps.derivatives(u, m)[0], x, s)
        folds = _roots(lambda u: _steps.derivatives(u, m)[1], x, s1)
        zeros += x[[0, -1]][_ends(x, s, m)].tolist()
        ends = np.unique([left, right, *zeros, *folds])  # (n,)  a zero of even order is both
        at = np.where(np.isin(ends, zeros), 0.0, _steps.derivatives(ends, m)[0])  # (n,)
        rows += zip(ends[:-1], ends[1:], at[:-1], at[1:])
        all_folds += folds
    columns = np.array(rows).reshape(-1, 4).T.copy()  # (4, B)
    found = Branches(*columns, np.array(all_folds))  # (C,)
    for field in fields(found):
        getattr(found, field.name).flags.writeable = False  # every caller gets the same arrays
    return found


def preimages(s, step_map):
    """All inputs that cause a step of amplitude s: one root of s(x) = s on every branch that reaches s, by bisection.

    `s` (S,): not zero; `step_map`: a StepMap.  Returns x (B, S), a row for each branch of `find`, NaN if it misses s.

    >>> preimages([-0.2], amplitude.step_map(amplitude.compositions.named("sigmoid + squared"), 16, -8, 0)).T.round(4)
    array([[0.4702, 0.6335]])
    """
    found, s = find(step_map), checks.array("s", s, ndim=1)  # (S,)
    checks.fail_if(np.any(s == 0), "s", "differ from zero, where dead inputs have an atom", s)
    return _steps.preimages(s, step_map, found)

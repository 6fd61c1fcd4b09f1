r"""Whether two expressions are the same function, however they are written.

Problem sets compare an answer with a reference this way: both are evaluated, with thirty digits, at random points of
their symbols.  Two different analytic expressions agree at a random point with probability zero, so a handful of
points decides; and unlike `simplify`, which may fail to see that a difference is zero, evaluation does not depend on
how an answer is written.
"""

import numpy as np
import sympy as sp

from lib.common.checks import integer, seed_sequence

DIGITS = 30
TOLERANCE = sp.Float("1e-18")  # relative; evaluation itself is good to about 1e-28
UNEVALUATED = (sp.Integral, sp.Sum, sp.Product, sp.Derivative, sp.Limit, sp.Subs)


def same(answer, reference, ranges=None, *, points=8, seed=0):
    r"""True if `answer` equals `reference` for all values of their symbols in the given ranges.

    An integral, sum, product, derivative or limit that `answer` leaves undone counts as no answer, unless `reference`
    leaves one too.  A symbol of `answer` that is named like one of `reference`, but declared with other assumptions,
    is an error; so is a `reference` without a finite value at some point.

    Parameters
    ----------
    answer : expression, number, or a list, tuple or matrix of them    anything else is the same as no reference
    reference : the same kinds    compared element by element
    ranges : dict from symbol to (low, high)    where to compare; low < high; (0.2, 2) for symbols that are not in it
    points : int                  how many random points; >= 1
    seed : int                    of the points

    Returns
    -------
    bool

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> same(sp.sin(x) ** 2, 1 - sp.cos(x) ** 2), same(sp.sin(x), x)
    (True, False)
    """
    points = integer("points", points)
    rng = np.random.default_rng(seed_sequence("seed", seed))
    ranges = _ranges(ranges)
    wanted, given = _elements(reference), _elements(answer)
    if wanted is None:
        raise ValueError(f"reference must be an expression or a list, tuple or matrix of them, got {reference!r}")
    if given is None or _shape(answer) != _shape(reference):
        return False
    return all(_same(one, other, ranges, points, rng) for one, other in zip(given, wanted, strict=True))


def _ranges(ranges):
    """Where to compare, as numbers: a dict from symbol to (low, high)."""
    try:
        found = {symbol: (float(low), float(high)) for symbol, (low, high) in (ranges or {}).items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"ranges must map symbols to (low, high), got {ranges!r}") from None
    for symbol, (low, high) in found.items():
        if not isinstance(symbol, sp.Symbol) or not -np.inf < low < high < np.inf:
            raise ValueError(f"ranges must map symbols to (low, high) with low < high, got {symbol!r}: ({low}, {high})")
    return found


def _shape(value):
    if isinstance(value, sp.MatrixBase | np.ndarray):
        return tuple(value.shape)
    return (len(value),) if isinstance(value, list | tuple | sp.Tuple) else ()


def _elements(value):
    """The expressions in a value, or None if there is something else in it."""
    if isinstance(value, sp.MatrixBase | np.ndarray):
        value = list(np.ravel(np.array(value, dtype=object)))
    elif not isinstance(value, list | tuple | sp.Tuple):
        value = [value]
    if not all(
        isinstance(entry, sp.Expr | int | float | complex | np.number) and not isinstance(entry, bool)
        for entry in value
    ):
        return None
    return [sp.sympify(entry) for entry in value]


def _same(answer, reference, ranges, points, rng):
    if answer.has(*UNEVALUATED) and not reference.has(*UNEVALUATED):
        return False
    symbols = sorted(answer.free_symbols | reference.free_symbols, key=lambda symbol: symbol.name)
    names = [symbol.name for symbol in symbols]
    for symbol in symbols:
        if names.count(symbol.name) > 1:
            raise ValueError(
                f"answer must use the given symbols: its {symbol.name} is not the {symbol.name} of the problem"
            )
    for _ in range(points):
        place = {symbol: sp.Float(str(rng.uniform(*ranges.get(symbol, (0.2, 2)))), DIGITS) for symbol in symbols}
        left, right = _value(answer, place), _value(reference, place)
        if right is None:
            raise ValueError(f"reference must have a finite value in the ranges, got {reference} at {place}")
        if left is None or abs(left - right) > TOLERANCE * max(1, abs(right)) + _rounding(answer, reference) * abs(
            right
        ):
            return False
    return True


def _rounding(*expressions):
    """The relative error that floating-point numbers inside the expressions bring along."""
    return 1e-12 if any(expression.atoms(sp.Float) for expression in expressions) else 0


def _value(expression, place):
    """The value at a place as a complex number of SymPy, or None where there is none."""
    value = sp.N(expression.subs(place), DIGITS)
    return value if value.is_number and value.is_finite else None

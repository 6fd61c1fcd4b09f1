"""Whether two expressions are the same function, however they are written.

Both are evaluated, with thirty digits, at random points of their symbols, where different analytic expressions agree
with probability zero; unlike `simplify`, this does not depend on the way of writing.
"""

from typing import Any

import numpy as np
import sympy as sp

from lib.common import checks
from lib.common.shapes import Rng

DIGITS = 30
TOLERANCE = sp.Float("1e-18")  # relative to the terms that are added; evaluation itself is good to about 1e-28
ROUNDING = 1e-12  # the same for numbers with a decimal point, and what such numbers may leave of zero
UNEVALUATED = (sp.Integral, sp.Sum, sp.Product, sp.Derivative, sp.Limit, sp.Subs)


def same(
    answer: Any,
    reference: Any,
    ranges: dict[sp.Symbol, tuple[float, float]] | None = None,
    *,
    points: int = 8,
    rng: Rng = 0,
) -> bool:
    """Whether an answer equals a reference for all values of their symbols in the given ranges.

    An integral, sum, product, derivative or limit that only the answer leaves undone counts as no answer.

    Parameters
    ----------
    answer, reference : expression, number, or a list, tuple or matrix of them
    ranges : dict, optional
        From symbols to (low, high); by default (0.2, 2).
    points : int
        At how many random points both are evaluated.
    rng : int, SeedSequence or Generator

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a symbol is named like one of the reference and has other assumptions, or the reference has no finite value.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> same(sp.sin(x) ** 2, 1 - sp.cos(x) ** 2), same(sp.sin(x), x)
    (True, False)
    """
    points = checks.integer("points", points)
    rng = np.random.default_rng(checks.seed_sequence("rng", rng))
    ranges = _ranges(ranges)
    wanted, given = _elements(reference), _elements(answer)
    if wanted is None:
        raise ValueError(f"reference must be an expression or a list, tuple or matrix of them, got {reference!r}")
    if given is None or _shape(answer) != _shape(reference):
        return False
    return all(_same(one, other, ranges, points, rng) for one, other in zip(given, wanted, strict=True))


def _ranges(ranges):
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
    kinds = sp.Expr | int | float | complex | np.number
    if not all(isinstance(entry, kinds) and not isinstance(entry, bool) for entry in value):
        return None
    return [sp.sympify(entry) for entry in value]


def _same(answer, reference, ranges, points, rng):
    if answer.has(*UNEVALUATED) and not reference.has(*UNEVALUATED):
        return False
    symbols = sorted(answer.free_symbols | reference.free_symbols, key=lambda symbol: symbol.name)
    names = [symbol.name for symbol in symbols]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"answer must use the given symbols: its {name} is not the {name} of the problem")
    floats = any(expression.atoms(sp.Float) for expression in (answer, reference))
    for _ in range(points):
        place = {symbol: sp.Float(str(rng.uniform(*ranges.get(symbol, (0.2, 2)))), DIGITS) for symbol in symbols}
        left, right = _value(answer, place), _value(reference, place)
        if right is None:
            raise ValueError(f"reference must have a finite value in the ranges, got {reference} at {place}")
        if left is None:
            return False
        terms = max(_terms(answer, place), _terms(reference, place))
        allowed = ROUNDING * (terms if right else max(terms, 1)) if floats else TOLERANCE * terms
        if abs(left - right) > allowed:
            return False
    return True


def _terms(expression, place):
    """The size of what is added and subtracted in an expression: it may cancel to zero, its rounding does not."""
    if isinstance(expression, sp.Add):
        return sum(_terms(term, place) for term in expression.args)
    if isinstance(expression, sp.Mul):
        return sp.prod([_terms(factor, place) for factor in expression.args])
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer and expression.exp > 0:
        return _terms(expression.base, place) ** expression.exp
    value = _value(expression, place)
    return sp.S.Zero if value is None else abs(value)


def _value(expression, place):
    """The value at a place as a complex number of SymPy, or None where there is none."""
    value = sp.N(expression.subs(place), DIGITS)
    return value if value.is_number and value.is_finite else None

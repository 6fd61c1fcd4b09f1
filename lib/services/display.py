"""What SymPy computed, displayed as a lecturer would write it: named, in lines that fit, numbered if referred to."""

import re
from typing import Any

import numpy as np
import sympy as sp
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from lib.common import checks

WIDTH = 44  # glyphs in a line of an equation: what a telephone shows
LABEL = re.compile(r"eq-[a-z0-9-]+")
_GROUP = r"\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"  # braces, four deep
_FRACTION = re.compile(r"\\[dt]?frac" + _GROUP + _GROUP)


def show(
    name: str | sp.Basic | None,
    expression: Any,
    *,
    label: str | None = None,
    names: dict[sp.Symbol, str] | None = None,
    width: int = WIDTH,
) -> Any:
    r"""Display  name = expression  and return the expression.

    What is wider than a telephone is broken before the terms of a sum and at an equation's sign.

    Parameters
    ----------
    name : str, SymPy object or None
        TeX where it is text; None displays the expression alone.
    expression : SymPy object or number
    label : str, optional
        "eq-" and more, by which {eq} refers to it.
    names : dict, optional
        From symbols to their TeX.
    width : int
        Glyphs in a line, >= 10.

    Returns
    -------
    SymPy object
        The expression.

    Examples
    --------
    >>> square = show("f(x)", sp.expand((1 + sp.Symbol("x")) ** 2))
    f(x) = x**2 + 2*x + 1
    """
    width = checks.integer("width", width, at_least=10)
    if label is not None and not LABEL.fullmatch(str(label)):
        checks.fail("label", 'be "eq-" and small letters, digits and hyphens', label)
    if isinstance(expression, np.ndarray):
        checks.fail("expression", "be a SymPy object or a number; an array is printed, or drawn", "an array")
    result = sp.sympify(expression)
    tex = _equation(name, result, names=names, width=width)
    plain = str(result) if name is None else f"{name} = {result}"
    if not InteractiveShell.initialized():
        print(plain)
        return result
    head = f"%{label}\n" if label else ""
    display({"text/plain": plain, "text/latex": f"$$\n{head}{tex}\n$$"}, raw=True)
    return result


def fraction(expression: sp.Expr, *small: sp.Symbol) -> sp.Expr:
    r"""The same expression as one fraction, with a factored numerator and an expanded denominator.

    Parameters
    ----------
    expression : SymPy object
    *small : SymPy symbols
        Where they vanish the denominator is positive: a learning rate, as an example.

    Returns
    -------
    SymPy object

    Examples
    --------
    >>> rate, decay = sp.symbols("rate decay", positive=True)
    >>> fraction(rate**2 / (1 - (1 - rate * decay) ** 2), rate)
    rate/(-decay**2*rate + 2*decay)
    """
    top, bottom = sp.fraction(sp.factor(expression))
    sign = -1 if bottom.subs(dict.fromkeys(small, 0)).is_negative else 1
    return sign * top / sp.expand(sign * bottom)


def _equation(name, expression, *, names=None, width=WIDTH):
    r"""The TeX of  name = expression,  in several lines of `aligned` where it is wider."""
    settings = {"symbol_names": names or {}, "fold_func_brackets": False, "ln_notation": True}

    def tex(piece):
        return sp.latex(piece, **settings)

    left, right = name if isinstance(name, str) or name is None else tex(name), expression
    if left is None and isinstance(expression, sp.Equality):
        left, right = tex(expression.lhs), expression.rhs
    terms = sp.Add.make_args(right) if not isinstance(right, sp.MatrixBase) else (right,)
    start = f"{left} = " if left is not None else ""
    if len(terms) == 1 or _glyphs(start + tex(right)) <= width:
        return start + tex(right)
    ordered = [tex(term) for term in right.as_ordered_terms()]
    signed = [ordered[0], *(term if term.startswith("-") else f"+ {term}" for term in ordered[1:])]
    lines = [""]
    room = width if left is None else max(width - _glyphs(start), width // 2)
    for term in signed:
        if lines[-1] and _glyphs(lines[-1]) + _glyphs(term) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]} {term}".strip()
    head = f"{left} ={{}}& " if left is not None else "& "
    body = " \\\\\n& ".join(lines)
    return f"\\begin{{aligned}}\n{head}{body}\n\\end{{aligned}}"


def _glyphs(tex):
    r"""About how many glyphs wide a piece of TeX is: a fraction counts as the wider of its halves, a command as one."""
    while match := _FRACTION.search(tex):
        inner = max(_glyphs(match[1]), _glyphs(match[2]))
        tex = tex[: match.start()] + "x" * inner + tex[match.end() :]
    tex = re.sub(r"\\(?:left|right|[,;!:]|operatorname|mathrm|sqrt|big[lr]?|Big[lr]?)", "", tex)
    tex = re.sub(r"\\[a-zA-Z]+", "x", tex)
    return len(re.sub(r"[\s{}^_\\&]", "", tex))

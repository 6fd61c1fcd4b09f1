"""What `show` displays: the computed expression, in lines that a telephone can hold."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from lib.services import display

x, y, eta = sp.symbols("x y eta")


def shown(monkeypatch, *arguments, **options):
    """The bundle that a notebook's cell would put out, and what is returned."""
    seen = []
    monkeypatch.setattr(InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr(display, "display", lambda bundle, raw: seen.append(bundle))
    result = display.show(*arguments, **options)
    return seen[0], result


def test_the_expression_comes_back_and_stands_under_its_name(monkeypatch):
    bundle, result = shown(monkeypatch, "f", x + y / 2)
    assert result == x + y / 2
    assert bundle["text/latex"] == "$$\nf = x + \\frac{y}{2}\n$$"
    assert bundle["text/plain"] == "f = x + y/2"


def test_symbols_keep_the_names_of_the_book_and_an_equation_its_sides(monkeypatch):
    assert shown(monkeypatch, None, sp.Eq(x, eta))[0]["text/latex"] == "$$\nx = \\eta\n$$"
    assert shown(monkeypatch, x, eta, names={eta: "h"})[0]["text/latex"] == "$$\nx = h\n$$"


def test_a_label_stands_in_a_comment_of_tex(monkeypatch):
    assert shown(monkeypatch, "f", x, label="eq-a-b")[0]["text/latex"].startswith("$$\n%eq-a-b\nf")
    for wrong in ("a-b", "eq-A", "eq-a\n", 3):
        with pytest.raises(ValueError, match="^label must"):
            display.show("f", x, label=wrong)


@given(st.integers(2, 30), st.integers(10, 80))
def test_lines_are_broken_between_terms_and_fit(count, width):
    expression = sum(sp.Symbol(f"a_{i}") ** 2 for i in range(count))
    tex = display._equation("f", expression, width=width)
    assert {part for part in tex.split() if part.startswith("a_")} == {f"a_{{{i}}}^{{2}}" for i in range(count)}
    lines = tex.split("\n")[1:-1] if "aligned" in tex else [tex]
    assert ("aligned" in tex) == (len(lines) > 1) and all(display._glyphs(line) <= width for line in lines)


def test_a_difference_is_broken_before_its_sign():
    a, b = sp.symbols("a b")
    tex = display._equation("f", a**200 - b**200, width=10)
    assert "\\\\\n& - b^{200}" in tex


def test_a_matrix_stays_in_one_piece_and_a_fraction_counts_its_wider_half():
    assert "aligned" not in display._equation("A", sp.Matrix(3, 3, lambda i, j: x**i + y**j), width=10)
    assert display._glyphs(r"\frac{abc}{de}") == 3
    assert display._glyphs(r"\frac{\frac{abcd}{x}}{de} + \eta") == 6


def test_numbers_are_shown_and_arrays_are_not(monkeypatch):
    assert shown(monkeypatch, "f", 2)[1] == 2
    with pytest.raises(ValueError, match="^expression must"):
        display.show("f", np.eye(2))
    with pytest.raises(ValueError, match="^width must"):
        display.show("f", x, width=3)


def test_a_fraction_is_written_with_a_denominator_that_is_positive_for_small_steps():
    step, a, b = sp.symbols("step a b", positive=True)
    value = step / (1 - (1 - step * a) * (1 - step * b))
    found = display.fraction(value, step)
    assert sp.simplify(found - value) == 0
    assert sp.fraction(found)[1] == a + b - a * b * step
    upside_down = display.fraction(value.subs(step, 1 / x), x)  # x small: the other end
    assert sp.fraction(upside_down)[1] != sp.fraction(found)[1]
    assert display.fraction((a - b) / (step - a), step) == (b - a) / (a - step)

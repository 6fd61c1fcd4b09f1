"""Expressions are compared as functions, not as strings."""

import numpy as np
import pytest
import sympy as sp

from lib.services import equivalence

x, y = sp.symbols("x y", positive=True)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ((x + y) ** 2, x**2 + 2 * x * y + y**2),
        (sp.log(x) / sp.log(10), sp.log(x, 10)),
        (sp.sqrt(x**2), x),
        (sp.erf(x), 1 - sp.erfc(x)),
        (sp.sinh(x), (sp.exp(x) - sp.exp(-x)) / 2),
        (sp.asin(x / sp.sqrt(1 + x**2)), sp.atan(x)),
        (0.5 * x, x / 2),
        (2, sp.Integer(2)),
        (np.float64(0.25), sp.Rational(1, 4)),
        (sp.gamma(x + 1), x * sp.gamma(x)),
        ([x, y + y], (x, 2 * y)),
        (sp.Matrix([[1, x]]), sp.Matrix([[1, x]])),
        (sp.exp(sp.I * x), sp.cos(x) + sp.I * sp.sin(x)),
        (1e9 * x + 1 - 1, 1e9 * x),
        (x * 1e-40, x / sp.Integer(10) ** 40),
        ((0.1 + 0.2 - 0.3) * x, 0),
        (sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1, 0),
        (x * (sp.cosh(y) ** 2 - sp.sinh(y) ** 2 - 1), 0),
    ],
)
def test_forms_of_one_function_are_the_same(answer, reference):
    assert equivalence.same(answer, reference)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        (x, 2 * x),
        (x + sp.Rational(1, 10**12), x),
        (sp.sin(x), x - x**3 / 6),
        (sp.Symbol("z"), x),
        (1 / (x - x), x),
        ([x], x),
        ([x, y], [y, x]),
        (sp.Matrix([[1, x]]), sp.Matrix([[1], [x]])),
        (None, x),
        ("x", x),
        (True, 1),
        (lambda value: value, x),
        (sp.Eq(x, y), x),
        (x > y, x),
        (sp.nan, x),
        (1.001 * x, x),
        (x / 10**20, x / (2 * sp.Integer(10) ** 19)),
        (x / sp.Integer(10) ** 20, 0),
        (1e-20 * x, 5e-20 * x),
    ],
)
def test_other_things_are_not(answer, reference):
    assert not equivalence.same(answer, reference)


def test_an_integral_left_undone_is_no_answer():
    undone = sp.Integral(sp.exp(-x * y), (y, 0, sp.oo))
    assert not equivalence.same(undone, 1 / x)
    assert equivalence.same(undone.doit(), 1 / x)
    assert equivalence.same(undone, undone)


def test_ranges_say_where_the_functions_must_agree():
    real = sp.Symbol("real", real=True)
    assert equivalence.same(sp.Abs(real), real)  # positive without a range
    assert not equivalence.same(sp.Abs(real), real, {real: (-2, 2)})
    assert equivalence.same(sp.sqrt(1 - real**2), sp.sqrt((1 - real) * (1 + real)), {real: (-1, 1)})


def test_points_are_the_same_every_time():
    one, other = ([equivalence.same(x, x + sp.Heaviside(x - 1.9), rng=n) for n in range(6)] for _ in range(2))
    assert one == other and len(set(one)) == 2


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("answer", [sp.Symbol("x")]),  # it only looks like that of the problem
        ("reference", ["x", None, [x, "x"], 1 / (x - x), sp.log(x - x)]),
        ("ranges", [{x: (1, 1)}, {x: (2, 1)}, {x: 1}, {"x": (1, 2)}, {x: (0, sp.oo)}, {x: (np.nan, 1)}, [x], "x"]),
    ],
)
def test_what_cannot_be_compared_is_refused(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} must"):
            equivalence.same(**{"answer": x, "reference": x} | {name: value})

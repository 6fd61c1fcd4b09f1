"""The trace from a figure back to the functions of lib: every way in which a notebook hands a value on, on small
notebooks.
"""

import nbformat
import pytest

from tools.build import project
from tools.site import figure_sources, library

KNOWN = {
    ("scaling.spectra", "power_law"),
    ("scaling.linear_student", "solve"),
    ("scaling.linear_student", "Solution"),
    ("foundations.online", "simulate"),
    ("services.data", "digits"),
    ("services.plot", "use_style"),
    ("services.ledger", "check"),
    ("services.sweep", "run"),
}
MODULES = {module for module, _ in KNOWN}
IMPORTS = """import numpy as np
from lib.foundations import online
from lib.scaling import linear_student, spectra
from lib.services import data, ledger, plot, sweep"""


def names(*cells, imports=IMPORTS):
    """The functions as "module.name", without the packages."""
    found = figure_sources.trace([imports, *cells], MODULES, lambda *use: use in KNOWN)
    return [f"{module.rpartition('.')[2]}.{name}" for module, name in found]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from lib.scaling import spectra", "spectra.power_law(2, 1.0)"),
        ("from lib.scaling import spectra as s", "s.power_law(2, 1.0)"),
        ("from lib import scaling", "scaling.spectra.power_law(2, 1.0)"),
        ("import lib", "lib.scaling.spectra.power_law(2, 1.0)"),
        ("import lib.scaling.spectra", "lib.scaling.spectra.power_law(2, 1.0)"),
        ("import lib.scaling.spectra as s", "s.power_law(2, 1.0)"),
        ("import lib.scaling as s", "s.spectra.power_law(2, 1.0)"),
        ("from lib.scaling.spectra import power_law", "power_law(2, 1.0)"),
        ("from lib.scaling.spectra import power_law as law", "law(2, 1.0)"),
    ],
)
def test_every_way_to_import_is_understood(imports, call):
    assert names(f"x = {call}", "print(x)", imports=imports) == ["spectra.power_law"]


def test_functions_of_the_cell_itself_come_first_and_in_the_order_of_the_text():
    assert names("x = spectra.power_law(2, 1)", "y = online.simulate(x)\nz = linear_student.solve(y)") == [
        "online.simulate",
        "linear_student.solve",
        "spectra.power_law",
    ]


def test_nearer_statements_come_before_farther_ones():
    cells = ("x = spectra.power_law(2, 1)", "y = online.simulate(1)", "z = 2 * y", "w = x + z")
    assert names(*cells) == ["spectra.power_law", "online.simulate"]


def test_trace_ends_at_a_function_of_lib():
    assert names("x = spectra.power_law(2, 1)", "y = online.simulate(x)", "print(y)") == ["online.simulate"]


def test_trace_passes_statements_without_lib_and_services():
    cells = ("y = np.cumsum(x)\nledger.check('a', y)", "w = ledger.check('b', y)\nplot.use_style()", "print(w)")
    assert names("x = spectra.power_law(2, 1)", *cells) == ["spectra.power_law"]


def test_last_value_counts():
    assert names("x = spectra.power_law(2, 1)", "x = online.simulate(1)", "print(x)") == ["online.simulate"]
    assert names("x = spectra.power_law(2, 1)", "x = 3", "print(x)") == []
    assert names("x = spectra.power_law(2, 1)", "y = x\nx = 3", "print(y)") == ["spectra.power_law"]


def test_value_set_in_the_cell_before_it_is_read_is_not_followed():
    assert names("x = spectra.power_law(2, 1)", "x = 3\nprint(x)") == []
    assert names("x = spectra.power_law(2, 1)", "print(x)\nx = 3") == ["spectra.power_law"]
    assert names("x = spectra.power_law(2, 1)", "for x in range(3):\n    print(x)") == []


def test_tuples_are_taken_apart():
    assert names("(a, *b), c = spectra.power_law(2, 1), 3", "print(b)") == ["spectra.power_law"]


def test_value_that_grows_has_all_its_sources():
    grown = "x = [spectra.power_law(2, 1)]\nx.append(online.simulate(1))"
    assert names(grown, "print(x)") == ["online.simulate", "spectra.power_law"]
    assert names("x = {}\nfor n in (1, 2):\n    x[n] = online.simulate(n)", "print(x)") == ["online.simulate"]
    assert names("x = spectra.power_law(2, 1)\nx += online.simulate(1)", "print(x)") == [
        "online.simulate",
        "spectra.power_law",
    ]


def test_element_that_grows_in_a_loop_changes_the_whole():
    grown = "x = {'a': [], 'b': []}\nfor key, values in x.items():\n    values.append(online.simulate(key))"
    assert names(grown, "print(x)") == ["online.simulate"]
    assert names(grown, "values = 3\nvalues.append(spectra.power_law(2, 1))", "print(x)") == ["online.simulate"]


def test_both_branches_count_but_only_names_that_are_read():
    cell = "x = spectra.power_law(2, 1)\nif x[0] > 1:\n    x = online.simulate(1)\n    y = linear_student.solve(1)"
    assert names(cell, "print(x)") == ["online.simulate", "spectra.power_law"]


def test_statements_in_a_loop_are_told_apart():
    cell = "for n in range(3):\n    x = online.simulate(n)\n    y = linear_student.solve(n)"
    assert names(cell, "print(x)") == ["online.simulate"]


def test_value_of_an_earlier_round_of_a_loop_counts():
    assert names("x = 0\nfor n in range(3):\n    y = x\n    x = online.simulate(n)", "print(y)") == ["online.simulate"]


def test_methods_and_attributes_of_results_are_followed():
    assert names("s = linear_student.solve(1)", "t = s.error(3).T", "print(t)") == ["linear_student.solve"]


def test_comprehension_hides_its_own_names():
    assert names("n = spectra.power_law(2, 1)", "print([n for n in range(3)], {k: v for k, v in ()})") == []
    assert names("n = spectra.power_law(2, 1)", "x = [m * n for m in range(3)]", "print(x)") == ["spectra.power_law"]
    assert names("x = [spectra.power_law(n, 1) for n in range(3)]", "print(x)") == ["spectra.power_law"]


def test_functions_of_the_notebook_are_followed():
    helper = "def f(n):\n    return online.simulate(n)"
    assert names(helper, "x = f(3)", "print(x)") == ["online.simulate"]
    assert names(helper, "def g(n):\n    return f(n)", "x = list(map(g, [1]))", "print(x)") == ["online.simulate"]
    assert names("x = spectra.power_law(2, 1)", helper, "y = f(x)", "print(y)") == [
        "online.simulate"
    ]  # the trace ends there
    assert names("x = spectra.power_law(2, 1)", "def f(n):\n    return n * x", "print(f(2))") == ["spectra.power_law"]


def test_function_that_calls_itself_ends():
    assert names("def f(n):\n    return f(n - 1) if n else online.simulate(n)", "print(f(2))") == ["online.simulate"]


def test_function_hides_its_arguments_and_own_names():
    assert names("n = spectra.power_law(2, 1)", "def f(n):\n    return n", "print(f(2))") == []
    assert names("n = spectra.power_law(2, 1)", "def f(k):\n    n = k\n    return n", "print(f(2))") == []


def test_functions_handed_on_count_and_constants_do_not():
    assert names("x = sweep.run(online.simulate, [1, 2])", "print(x)") == ["online.simulate"]
    assert names("x = spectra.LARGEST", "print(x)") == []


def test_name_of_a_module_may_be_used_for_something_else():
    assert names("spectra = {}\nspectra.power_law = 3", "print(spectra.power_law)") == []
    assert names("def f(spectra):\n    return spectra.power_law", "print(f)") == []


def test_calls_of_an_imported_module_do_not_change_it():
    assert names("np.savetxt('x', spectra.power_law(2, 1))", "print(np.arange(3))") == []


def test_cell_that_is_no_python_is_named():
    with pytest.raises(ValueError, match=r"code cell 2 is not plain Python .*%timeit"):
        names("%timeit x")


def test_figures_are_found_by_their_names_and_followed_through_the_modules():
    make = nbformat.v4.new_code_cell
    cells = [
        make("from lib.services import data"),
        make("x = data.load('digits')"),
        make("print(x)", metadata={"mystnb": {"figure": {"name": "fig-a", "caption": "A."}}}),
        make("print(3)", metadata={"mystnb": {"figure": {"name": "fig-b", "caption": "B."}}}),
    ]
    found = figure_sources.figures(nbformat.v4.new_notebook(cells=cells), library.modules(project.ROOT))
    assert found == {"fig-a": [("services.data", "load")], "fig-b": []}

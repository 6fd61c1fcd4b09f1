"""What a notebook can and cannot do to its own grading: each attempt to pass without an answer fails, and honest
answers do not suffer.
"""

import ctypes
import importlib.util
import json
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Config

from tools.build import project

GIVEN = """import numpy as np
import sympy as sp
from lib.services import equivalence
x = sp.Symbol("x", positive=True)
WANTED = np.array([1.5])
def reference(number):
    return number * np.array([0.5])
"""
TESTS = {
    "value": "assert abs(value - 3) < 1e-6, 'a value'",
    "shape": "assert np.isclose(half(3), 1.5), 'quetzal'\nassert np.allclose(reference(3), WANTED)",
    "expression": "own = []\nown.append(double)\nassert equivalence.same(own[-1], 2 * x), 'an expression'",
}
HONEST = "value = 3\ndef half(number):\n    return number / 2\ndouble = x + x\n"
WRONG = "value = 4\ndef half(number):\n    return number\ndouble = x\n"


ABOUT = {"grade": False, "solution": False, "locked": True, "schema_version": 3, "task": False}


def settings():
    """The module of the course's settings, as nbgrader would load it."""
    path = project.ROOT / "tools" / "course" / "nbgrader_config.py"
    spec = importlib.util.spec_from_file_location("nbgrader_config", path)
    module = importlib.util.module_from_spec(spec)
    module.get_config = Config
    spec.loader.exec_module(module)
    return module


def said(*cells, given=GIVEN, tests=None, course=None, student=""):
    """Grade these cells of a student without nbgrader's folders and gradebook: what each test says, None for nothing;
    and the notebook with outputs.
    """

    def cell(source, identity, **more):
        return new_code_cell(source, metadata={"nbgrader": ABOUT | {"grade_id": identity} | more})

    notebook = new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    notebook.cells = [cell(given, "given"), *map(new_code_cell, cells)]
    notebook.cells += [cell(text, name, grade=True, points=1) for name, text in (TESTS | (tests or {})).items()]
    module = settings()
    module.COURSE = course or module.COURSE
    executor = module.GuardedExecute(timeout=project.HOUR)
    notebook, _ = executor.preprocess(notebook, {"metadata": {}, "nbgrader": {"student": student}})
    found = {}
    for one in filter(module.is_test, notebook.cells):
        errors = [": ".join(output.traceback) for output in one.outputs if output.output_type == "error"]
        found[one.metadata.nbgrader.grade_id] = errors[0] if errors else None
    return found, notebook


def test_honest_answers_pass_whatever_stands_beside_them():
    found, notebook = said(
        HONEST,
        "exit()",
        "quit()",
        "import sys\nsys.exit()",
        "block = bytearray(64 * 2**30)",  # more memory than there is
        "sum = abs = 3\nx = 5\nreference = WANTED = None",  # names that tests use, too
        "open('scratch.txt', 'w').write('mine')",
        "from collections import namedtuple\nPair = namedtuple('Pair', 'left right')",
        "value = np.float64(3)",
        "undefined_name",
    )
    assert found == dict.fromkeys(TESTS), found
    errors = [output.ename for cell in notebook.cells for output in cell.outputs if output.output_type == "error"]
    assert errors == ["SystemExit", "MemoryError", "NameError"]


CHANGES = [
    "shell = get_ipython()\nshell.input_transformers_cleanup.append(lambda lines: ['pass\\n'])",
    "shell.run_cell = shell.run_cell_async = shell.run_code = lambda *_, **__: None",
    "import ast, builtins, sys\nast.parse = compile = lambda *_, **__: (lambda: None).__code__",
    "np.isclose = np.allclose = lambda *_, **__: True",
    "equivalence.same = lambda *_, **__: True\nequivalence.TOLERANCE = 1e9",
    "builtins.abs = abs = lambda _: 0",
    "sp.Symbol.__eq__ = sp.Expr.__eq__ = lambda *_: True\nsp.N = lambda *_: sp.Integer(1)",
    "WANTED[:] = 0; reference = lambda _: 0",
    """def half(number):
    import numpy, lib.services.equivalence
    numpy.isclose = lib.services.equivalence.same = lambda *_, **__: True
    return number""",
]
OBJECTS = """class Any:
    def __getattr__(self, _):
        return lambda *_, **__: self
    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = lambda *_: True
    __sub__ = __rsub__ = __abs__ = __add__ = lambda self, *_: self
    __array__ = lambda self, *_, **__: np.array(1.5)
    __array_function__ = lambda *_: True
    __bool__ = lambda _: True
    free_symbols = set()
class Number(float):
    __eq__ = __lt__ = __gt__ = lambda *_: True
    __sub__ = __abs__ = lambda self, *_: self
class Expression(sp.Symbol):
    def subs(self, *_, **__):
        return 2 * x
    def __new__(cls):
        return sp.Symbol.__new__(cls, 'x', positive=True)
    has = lambda *_: False
    _eval_subs = lambda self, *_: sp.Integer(1)
    _subs = lambda self, old, new, **_: 2 * new
"""


@pytest.mark.parametrize(
    "cells",
    [
        [WRONG, *CHANGES],
        [OBJECTS, "value = half = double = Any()"],
        [OBJECTS, "value, half, double = Number(), (lambda _: Any()), Expression()"],
    ],
    ids=["changes", "equal-to-all", "subclasses"],
)
def test_tests_cannot_be_switched_off(cells):
    found, _ = said(*cells)
    assert all(found.values()), found


LOOK = """def half(number):
    import gc, sys
    wanted = "".join(["quet", "zal"])  # what the test says
    texts = [one for held in gc.get_objects() for one in gc.get_referents(held) if isinstance(one, str)]
    codes = [str(frame.f_code.co_consts) for frame in sys._current_frames().values()]
    seen = any(wanted in text and text is not wanted for text in texts + codes)
    raise ValueError("seen" if seen else "nothing is seen")"""


def test_a_function_sees_nothing_of_the_test_that_calls_it():
    found, _ = said(HONEST, LOOK)
    assert found == {"value": None, "shape": "ValueError: nothing is seen", "expression": None}
    assert said(HONEST, LOOK, "kept = ['quetzal']")[0]["shape"] == "ValueError: seen"


def test_what_a_function_takes_and_gives_is_as_if_it_were_called_in_the_notebook():
    """Functions of tests, a student's function given back, arrays that are changed in place, a nested result."""
    test = """doubled = apply(lambda number: number + WANTED[0], 1)
assert doubled == 2.5, doubled
array = np.zeros(2)
fill(array)
assert np.array_equal(array, [7, 7]), array
assert apply(shifted(2), 1) == 3 and apply(half, 4) == 2
assert pair == (1, [2.0, {"three": 3}]) and type(pair) is tuple"""
    found, notebook = said(
        HONEST,
        "def apply(function, value):\n    return function(value)\ndef fill(array):\n    array[:] = 7",
        "def shifted(by):\n    return lambda number: number + by",
        "from collections import namedtuple\npair = namedtuple('Pair', 'a b')(1, [2.0, {'three': 3}])",
        tests={"shape": test},
    )
    assert found == dict.fromkeys(TESTS), found


def test_solutions_are_out_of_reach(tmp_path):
    source = tmp_path / "source" / "small.ipynb"
    source.parent.mkdir()
    source.write_text(HONEST)
    (tmp_path / "gradebook.db").write_bytes(b"SQLite format 3")
    reading = [
        f"print(open({str(source)!r}).read())",
        f"import os\nprint(os.read(os.open({str(source)!r}, os.O_RDONLY), 999))",
        f"import pathlib\nprint(pathlib.Path({str(source)!r}).read_text())",
        f"import os\nos.symlink({str(source.parent)!r}, 'link')\nprint(open('link/small.ipynb').read())",
        f"print(np.fromfile({str(source)!r}, dtype='S1').tobytes())",
        f"import subprocess\nprint(subprocess.run(['cat', {str(source)!r}], capture_output=True).stdout)",
        f"import os\nos.system('cat {source} > copy'); print(open('copy').read())",
        f"open({str(tmp_path / 'gradebook.db')!r}, 'w')",
        f"import sqlite3\nsqlite3.connect({str(tmp_path / 'gradebook.db')!r})",
        f"import os\nos.remove({str(source)!r})",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')",
    ]
    found, notebook = said(WRONG, *reading, course=tmp_path)
    assert all(found.values()), found
    for cell, source_of_it in zip(notebook.cells[2:], reading, strict=False):
        kinds = [output.output_type for output in cell.outputs]
        assert kinds == ["error"], (source_of_it, cell.outputs)
        assert cell.outputs[0].ename in ("PermissionError", "URLError", "OSError"), cell.outputs[0].ename
    assert source.read_text() == HONEST and (tmp_path / "gradebook.db").read_bytes()


LANDLOCK = sys.platform.startswith("linux") and ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


@pytest.mark.skipif(not LANDLOCK, reason="this system has no Landlock")
def test_the_system_keeps_files_closed_where_python_looks_away(tmp_path):
    source = tmp_path / "source.txt"
    source.write_text(HONEST)
    by_c = (
        f"import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.open({str(source)!r}.encode(), 0), "
        "ctypes.get_errno())"
    )
    _, notebook = said(WRONG, by_c, course=tmp_path)
    assert notebook.cells[2].outputs[0].text.strip() == "-1 13"


HIDDEN = """assert value > 0
### BEGIN HIDDEN TESTS
secret_number_of_the_test = 3
assert value == secret_number_of_the_test, 'words that help'
### END HIDDEN TESTS"""


@pytest.mark.parametrize(
    "output",
    [
        {"output_type": "stream", "name": "stdout", "text": "x\n    secret_number_of_the_test = 3\n"},
        {"output_type": "display_data", "data": {"text/plain": repr(HIDDEN)}, "metadata": {}},
        {"output_type": "error", "ename": "X", "evalue": "secret_number_of_the_test = 3", "traceback": ["a"]},
    ],
)
@pytest.mark.parametrize("graded", [True, False])
def test_feedback_holds_no_hidden_line(output, graded):
    module = settings()
    metadata = ABOUT | {"grade_id": "a", "grade": True, "points": 1}
    test = new_code_cell(HIDDEN, metadata={"nbgrader": metadata})
    own = new_code_cell("print(1)")
    words = {"output_type": "error", "ename": "AssertionError", "evalue": "words that help", "traceback": ["long"]}
    test.outputs, own.outputs = [nbformat.from_dict(words)], []
    (test if graded else own).outputs.append(nbformat.from_dict(output))
    shown, _ = module.HideTests().preprocess(new_notebook(cells=[own, test]), {})
    assert "secret_number" not in json.dumps(shown)
    assert shown.cells[1].outputs[0].traceback == ["AssertionError: words that help"]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("small (1).ipynb", '{"cells": []}', "'small (1).ipynb' is graded as 'small.ipynb'\n"),
        ("small.ipynb", '{"cells": [', "CANNOT BE READ"),
    ],
)
def test_a_notebook_under_another_name_is_graded_and_an_unreadable_one_is_named(tmp_path, capsys, name, text, sentence):
    path = tmp_path / "small" / name
    path.parent.mkdir()
    path.write_text(text)
    notebooks = [str(path)]
    settings().tidy(assignment="small", student="*", notebooks=notebooks)
    assert notebooks == [str(path.with_name("small.ipynb"))] and sentence in capsys.readouterr().err


def test_cells_that_were_copied_or_damaged_and_a_mark_before_the_text_are_mended(tmp_path, capsys):
    """Only the cells in question are named, one submission does not stop the class, and a sound one stays as it is."""
    module = settings()
    module.COURSE = tmp_path

    def cell(name, source, **more):
        about = {"grade_id": name, "schema_version": 3, "grade": False, "solution": True, "locked": False, **more}
        return {"cell_type": "code", "metadata": {"nbgrader": about}, "source": source}

    def hand_in(student, cells, mark=""):
        path = tmp_path / student / "small" / "small.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(mark + json.dumps({"cells": cells}), encoding="utf-8")
        if student != "release":
            module.tidy(assignment="small", student=student, notebooks=[str(path)])
        return json.loads(path.read_text(encoding="utf-8"))["cells"], capsys.readouterr().err

    edition = [cell("a", ""), cell("b", "")]
    hand_in("release", edition)
    answered = [cell("a", "x = 1"), cell("b", "y = 1")]
    assert hand_in("ann", answered) == (answered, "")
    assert hand_in("byron", answered, mark="\ufeff") == (answered, "")
    cells, said = hand_in("cleo", [cell("a", "x = 1"), cell("a", "x += 1"), cell("b", "y = 1")])
    assert "'a' is there more than once" in said and [one["source"] for one in cells] == ["x = 1", "x += 1", "y = 1"]
    assert ["nbgrader" in one["metadata"] for one in cells] == [True, False, True]
    lost = cell("b", "y = 1")
    del lost["metadata"]["nbgrader"]["schema_version"]
    cells, said = hand_in("dan", [cell("a", "x = 1"), lost])
    assert cells == answered and "'b' says of itself was damaged" in said and "dan" in said
    cells, said = hand_in("eve", [*answered, cell("c", "z = 1")])
    assert cells[:2] == answered and cells[2]["metadata"] == {} and "'c' is not of this set" in said


@pytest.mark.parametrize(("double", "failed"), [("x + x", set()), ("3 * x", {"expression"})])
def test_symbols_of_the_students_own_get_the_verdict_that_they_have_in_the_notebook(double, failed):
    found, _ = said(f"x = sp.symbols('x')\nvalue = 3\ndouble = {double}\ndef half(number):\n    return number / 2")
    assert {name for name, text in found.items() if text} == failed, found


def test_given_cells_draw_their_numbers_from_the_name_under_which_a_submission_is_handed_in():
    """Whatever name the notebook says."""
    given = GIVEN + "own = np.random.default_rng([7, *student_name.encode()]).random()\n"
    hers, tests = ("student_name = 'ann'", given, HONEST, "value = own"), {"value": "assert value == own, own"}
    passed = [said(*hers, given=given, tests=tests, student=name)[0]["value"] for name in ("ann", "ben")]
    assert passed[0] is None and passed[1].startswith("AssertionError: 0.")

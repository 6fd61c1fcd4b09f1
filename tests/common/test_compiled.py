"""Loops are compiled also where nothing can be kept, and everybody asks for them in one place."""

import ast
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import lib
from lib.common import compiled

LIB = Path(lib.__file__).parent
CALL = "from lib.foundations import committee; print(committee.Overlaps([[1.0]], [[1.0]], [[1.0]]).drift()[0].item())"


def no_folder(path):
    """A file at `path`: nobody, not even root, can make a folder there or below."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


@pytest.fixture
def nowhere(tmp_path):
    """A copy of lib whose folders hold no caches, and the environment of a user whose home holds none."""
    skip = shutil.ignore_patterns("__pycache__")
    for part in ("common", "foundations"):
        folder = shutil.copytree(LIB / part, tmp_path / "lib" / part, ignore=skip)
        no_folder(folder / "__pycache__")
    shutil.copy(LIB / "__init__.py", tmp_path / "lib")
    home = str(no_folder(tmp_path / "home"))
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    return {**kept, "HOME": home, "IPYTHONDIR": home, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}


def test_installation_and_home_that_are_read_only(nowhere, tmp_path):
    done = subprocess.run([sys.executable, "-c", CALL], env=nowhere, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) == pytest.approx(2 / np.pi / np.sqrt(3), rel=1e-15)
    asked = CALL.replace("committee;", "_committee; from numba import njit;").split("print")[0]
    asked += "njit(cache=True)(_committee.drift.py_func)"  # the control: this place does refuse a cache
    done = subprocess.run([sys.executable, "-c", asked], env=nowhere, cwd=tmp_path, capture_output=True, text=True)
    assert "no locator available" in done.stderr


def test_compiled_code_is_kept_where_it_can_be(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(LIB.parent)}
    subprocess.run([sys.executable, "-c", CALL], env=environment, check=True, capture_output=True)
    assert [path.name for path in tmp_path.rglob("_committee.drift*.nbc")] != []


def test_division_by_zero_is_numpys():
    @compiled.loops
    def quotient(x, y):
        return x / y

    assert quotient(1.0, 0.0) == np.inf


def test_everybody_asks_for_compilation_here():
    for path in sorted(LIB.rglob("*.py")):
        if path != LIB / "common/compiled.py":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            taken = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
            assert "numba" not in {str(name).split(".")[0] for name in taken}, path


@compiled.loops
def third(x):
    return x / 3


@compiled.loops
def ninth(x):
    return third(x) / 3


def test_a_loop_calls_another_one_and_is_numbas_from_its_first_call_on():
    before = ninth
    assert before.__name__ == "ninth" and third.py_func(6.0) == 2 and isinstance(third, compiled._Loops)
    assert before(18.0) == before(18.0) == 2
    assert isinstance(ninth, Dispatcher), "the module's next call finds it at once"
    assert third(6.0) == 2 and isinstance(third, Dispatcher)  # by its own first call: `ninth` may be cached


def test_threads_that_call_first_compile_once(monkeypatch):
    made = []

    def slow(*_, **options):
        time.sleep(0.05)
        return lambda function: made.append(options) or function

    monkeypatch.setattr(compiled, "numba", SimpleNamespace(njit=slow))
    new = compiled.loops(lambda x: 2 * x)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(new, range(4))] == [0, 2, 4, 6]
    assert len(made) == 1 and made[0]["error_model"] == "numpy"

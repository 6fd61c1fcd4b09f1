"""lib.services.provenance: imports are followed wherever they stand, and sums see the code and nothing else."""

import ast
import linecache
import sys
import types

import numpy as np
import pytest
from cluster_tasks import tiny

from lib.services import provenance


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("from lib.p import a, b as c", {"a": ("p.a", None), "c": ("p.b", None)}),
        ("from lib.p.a import f as g", {"g": ("p.a", "f")}),
        ("from lib import p", {"p": ("p", None)}),
        ("import lib", {"lib": ("", None)}),
        ("import lib.p.a", {"lib": ("", None)}),
        ("import lib.p.a as b, numpy", {"b": ("p.a", None)}),
        ("from library import a", {}),
        ("from . import a", {}),
    ],
)
def test_imports_are_read(statement, wanted):
    assert provenance.imports_of(ast.parse(statement).body[0], {"p.a", "p.b"}) == wanted


@pytest.fixture
def package(tmp_path):
    """Modules of lib that import each other in several ways, two of them in a circle."""
    texts = {
        "__init__": "__version__ = '1'",
        "p/__init__": "",
        "p/a": "from lib.p import b",
        "p/b": "def f():\n    from lib.q.c import g\n\n    return g",
        "q/__init__": "",
        "q/c": "import lib.q.d as d",
        "q/d": "from lib.q import c",
        "q/e": "",
    }
    for name, text in texts.items():
        path = tmp_path / "lib" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "lib"


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("import numpy", []),
        ("import lib", [""]),
        ("from lib.q import e", ["", "q", "q.e"]),
        ("from lib.q.e import x", ["", "q", "q.e"]),
        ("import lib.q.e", ["", "q", "q.e"]),
        ("from lib.p import a", ["", "p", "p.a", "p.b", "q", "q.c", "q.d"]),
        ("def f():\n    from lib.q import d", ["", "q", "q.c", "q.d"]),
    ],
)
def test_imports_are_followed_to_the_end(package, code, wanted):
    assert list(provenance.reached([ast.parse(code)], package)) == wanted


def test_a_file_that_was_written_again_is_read_again(package):
    tree = ast.parse("from lib.p import a")
    before = provenance.sums([tree], package)
    (package / "p" / "a.py").write_text("from lib.q import e")
    assert set(provenance.sums([tree], package)) == {
        "lib/__init__.py",
        "lib/p/__init__.py",
        "lib/p/a.py",
        "lib/q/__init__.py",
        "lib/q/e.py",
    }
    assert before["lib/p/a.py"] != provenance.sums([tree], package)["lib/p/a.py"]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ('def f(x):\n    """Another."""\n    return x + 1', True),
        ("def f(x):\n    return x + 1  # one more", True),
        ("def f(x):\n\n    return (x + 1)", True),
        ("def f(x):\n    'Doc.'\n    return x + 2", False),
        ("def f(y):\n    return y + 1", False),
        ("def f(x):\n    3\n    return x + 1", False),
    ],
)
def test_sum_sees_the_code_alone(other, same):
    assert (provenance.code_sum('def f(x):\n    """Doc."""\n    return x + 1') == provenance.code_sum(other)) == same


def test_the_key_of_a_result_is_the_code_that_its_task_reaches(tmp_path, monkeypatch):
    """Its own module, what that reaches in lib, however far, and the versions; nothing else, and no docstring."""
    package = tmp_path / "lib"
    texts = {"near": "from lib.part import far\n", "far": "def f():\n    return 1\n", "other": "x = 1\n"}
    (package / "part").mkdir(parents=True)
    for name, text in texts.items():
        (package / "part" / f"{name}.py").write_text(text)
    for folder in (package, package / "part"):
        (folder / "__init__.py").touch()
    module = types.ModuleType("a_task")
    module.__file__ = str(tmp_path / "a_task.py")
    (tmp_path / "a_task.py").write_text("from lib.part.near import far\n\n\ndef task(seed):\n    return far.f()\n")
    exec(compile("def task(seed):\n    pass\n", module.__file__, "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "a_task", module)

    def key():
        linecache.clearcache()
        return provenance.digest(provenance.provenance(module.task, package))

    first = key()
    (package / "part" / "other.py").write_text("x = 2\n")
    (package / "part" / "far.py").write_text('def f():\n    """One."""\n    return 1  # one\n')
    assert key() == first
    (package / "part" / "far.py").write_text("def f():\n    return 2\n")
    second = key()
    (tmp_path / "a_task.py").write_text("from lib.part.near import far\n\n\ndef task(seed):\n    return -far.f()\n")
    third = key()
    monkeypatch.setattr(provenance, "version", lambda name: "0")
    assert len({first, second, third, key()}) == 4


def test_provenance_names_the_module_of_the_task_what_it_reaches_and_versions():
    found = provenance.provenance(tiny)
    settings = {"the preset", "times as many samples", "Python", "cluster_tasks.py"}
    assert found["numpy"] == np.__version__ and set(found) == {*provenance.VERSIONS, *settings}
    assert "lib/services/provenance.py" in provenance.provenance(provenance.provenance) | provenance.provenance(
        test_imports_are_read
    )
    assert provenance.digest(found) != provenance.digest(found | {"numpy": "1.0"})


def test_the_key_of_a_result_sees_what_lies_beside_its_task_the_preset_and_the_data(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "beside_one.py").write_text("from beside_two import RATE\nimport json, sub.of_it\n")
    (tmp_path / "beside_two.py").write_text("RATE = 1\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "__init__.py").touch()
    (tmp_path / "sub" / "of_it.py").write_text("from . import far\nfrom lib.services import downloads\n")
    (tmp_path / "sub" / "far.py").write_text("import beside_one\n")
    (tmp_path / "with_beside.py").write_text("import beside_one\n\n\ndef task(seed):\n    return 1\n")
    monkeypatch.setenv("PHYSICS_OF_LEARNING_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    import with_beside

    seen = {}

    def key():
        found = provenance.provenance(with_beside.task)
        seen.update(found)
        return provenance.digest(found)

    keys = [key()]
    assert {"beside_one.py", "beside_two.py", "sub.py", "sub.of_it.py", "sub.far.py", "with_beside.py"} == {
        name for name in seen if name.endswith(".py") and not name.startswith("lib/")
    }
    (tmp_path / "beside_two.py").write_text("RATE = 2\n")
    keys.append(key())
    monkeypatch.setenv("PHYSICS_OF_LEARNING_PRESET", "paper")
    keys.append(key())
    (tmp_path / "data" / "images.gz").write_text("all of them")
    keys.append(key())
    assert len(set(keys)) == 4

"""lib.services.provenance: imports are followed wherever they stand, and sums see the code and nothing else."""

import ast
import linecache

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
    wanted = ("__init__", "p/__init__", "p/a", "q/__init__", "q/e")
    assert list(provenance.sums([tree], package)) == [f"lib/{name}.py" for name in wanted]
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
    assert (provenance._code_sum('def f(x):\n    """Doc."""\n    return x + 1') == provenance._code_sum(other)) == same


def test_provenance_names_the_module_of_the_task_what_it_reaches_and_versions():
    found = provenance._provenance(tiny)
    settings = {"the preset", "times as many samples", "Python", "cluster_tasks.py"}
    assert found["numpy"] == np.__version__ and set(found) == {*provenance.VERSIONS, *settings}
    assert "lib/services/provenance.py" in provenance._provenance(test_imports_are_read)
    assert provenance._digest(found) != provenance._digest(found | {"numpy": "1.0"})


def test_the_key_of_a_result_is_what_it_depends_on(package, tmp_path, monkeypatch):
    """The module of its task, what lies beside it, what these reach in lib, the preset, the data, the versions.

    Nothing else, and no docstring.
    """
    texts = {
        "a_task": "import beside_one\n\n\ndef task(rng):\n    from lib.p import a\n\n    return 1\n",
        "beside_one": "from beside_two import RATE\nimport json, sub.of_it\n",
        "beside_two": "RATE = 1\n",
        "sub/__init__": "",
        "sub/of_it": "from . import far\nfrom lib.services import downloads\n",
        "sub/far": "import beside_one\n",
        "lib/services/__init__": "",
        "lib/services/downloads": "",
    }
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PHYSICS_OF_LEARNING_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()

    def write(name, text):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    for name, text in texts.items():
        write(name, text)
    import a_task

    def key():
        linecache.clearcache()
        return provenance._digest(provenance._provenance(a_task.task, package))

    names = provenance._provenance(a_task.task, package).keys()
    assert {name for name in names if name.endswith(".py") and not name.startswith("lib/")} == {
        *("a_task.py", "beside_one.py", "beside_two.py", "sub.py", "sub.of_it.py", "sub.far.py")
    }
    keys = [key()]
    write("lib/q/e", "x = 2")  # not reached
    write("lib/q/d", '"""Another docstring."""\nfrom lib.q import c  # and a comment')
    assert key() == keys[0]
    for change in (
        lambda: write("lib/q/d", "from lib.q import c\nx = 1"),
        lambda: write("a_task", texts["a_task"].replace("1", "-1")),
        lambda: write("beside_two", "RATE = 2\n"),
        lambda: monkeypatch.setenv("PHYSICS_OF_LEARNING_PRESET", "paper"),
        lambda: monkeypatch.setenv("PHYSICS_OF_LEARNING_SAMPLES", "4"),
        lambda: (tmp_path / "data" / "images.gz").write_text("all of them"),
        lambda: monkeypatch.setattr(provenance, "version", lambda name: "0"),
    ):
        change()
        keys.append(key())
    assert len(set(keys)) == len(keys)

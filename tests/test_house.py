"""The order of the house: which package may use which, and that an installed copy is complete."""

import ast
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from itertools import pairwise

import pytest

from lib.services import claims, provenance
from tools.build import project

PARTS = ["foundations", "fluctuations", "scaling", "representations", "criticality", "fields"]  # in reading order


def against(name, other):
    """What is wrong with the module `name` using the module or package `other` of lib; None if nothing is."""
    own, theirs = name.split(".")[0], other.split(".")[0]
    if own == theirs:
        return None
    if any(part.startswith("_") for part in other.split(".")):
        return f"{name} uses {other}, which is private to its package"
    if theirs == "common" or (theirs == "services" and own != "common"):
        return None
    if own in PARTS and theirs in PARTS and PARTS.index(theirs) < PARTS.index(own):
        return None
    return f"{name} uses {other}, against the order {', '.join(['common', 'services', *PARTS])}"


def modules():
    """The files of the modules of lib by name, as in "scaling.spectra"."""
    return {name: path for name, path in provenance.files().items() if path.stem != "__init__"}


def uses(tree, names):
    """Every "module.name" or module of lib that a file takes anywhere, also inside its functions."""
    taken = [provenance.imports_of(node, names) for node in ast.walk(tree)]
    return sorted({f"{path}.{name}" if name else path for found in taken for path, name in found.values()})


def test_arrows_point_forward_and_private_names_stay_at_home():
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules().items()}
    found = [against(name, other) for name, tree in trees.items() for other in uses(tree, trees)]
    assert len(found) > 200
    assert [problem for problem in found if problem] == []


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("scaling.spectra", "from lib.fields.networks import prior"),
        ("scaling.spectra", "from lib.fields.overlaps import staircase"),
        ("common.checks", "from lib.services import data"),
        ("services.data", "from lib.foundations import gaussian"),
        ("fields.networks.prior", "from lib.foundations.gaussian import _i2"),
        ("fields.networks.prior", "def f():\n    from lib.foundations import _hidden"),
    ],
)
def test_arrow_against_the_order_is_seen(name, statement):
    assert any(against(name, other) for other in uses(ast.parse(statement), modules()))


def test_part_uses_all_before_it_and_itself():
    assert all(against(f"{later}.x", f"{earlier}.y") is None for earlier, later in pairwise(PARTS))
    assert against("fields.networks.prior", "fields.kernels._modes") is None


def test_folders_of_tests_are_those_of_the_library():
    public = [name for name in modules() if "._" not in name]
    places = {name: name.rpartition(".")[::2] for name in public}
    tests = {name: f"tests/{package.replace('.', '/')}/test_{module}.py" for name, (package, module) in places.items()}
    assert [name for name, path in tests.items() if not (project.ROOT / path).exists()] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """What an installation gets."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "from setuptools.build_meta import build_wheel; import sys; build_wheel(sys.argv[1])"
    copy = folder / "source"
    shutil.copytree(project.ROOT / "lib", copy / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(project.ROOT / name, copy)
    subprocess.run([sys.executable, "-c", build, folder], cwd=copy, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_installed_copy_has_every_module_and_every_claim(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    home = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    with zipfile.ZipFile(wheel) as file:
        file.extractall(home)
    (home / "beside.pth").write_text(
        os.path.dirname(os.path.dirname(pytest.__file__))
    )  # NumPy and the others; this checkout is not there
    script = (
        "import importlib, pkgutil, lib\n"
        "from lib.services import claims\n"
        "names = [info.name for info in pkgutil.walk_packages(lib.__path__, 'lib.') if not info.ispkg]\n"
        "for name in names:\n    importlib.import_module(name)\n"
        "print(lib.__file__, *names, *claims.declared(), sep='\\n')"
    )
    done = subprocess.run([python, "-I", "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    file, *found = done.stdout.splitlines()
    assert file.startswith(str(home))
    assert sorted(found) == sorted([*(f"lib.{name}" for name in modules()), *claims.declared()])

"""Whoever lacks numba or torch has all of lib but their functions, which say what to install."""

import sys

import pytest
import without

from lib.common import extras

EVERY_MODULE = """
import importlib, pkgutil, lib

for info in pkgutil.walk_packages(lib.__path__, "lib."):
    importlib.import_module(info.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
CALLS = """
from lib.foundations import committee
from lib.representations import nets
from lib.services import cluster

net = nets.Net(2, 1, 30, 2)
calls = {
    "numba": lambda: committee.Overlaps([[1.0]], [[1.0]], [[1.0]]).drift(),
    "torch": lambda: net.values(net.draw(1.0, 1, rng=1), [[0.0, 1.0]]),
    "distributed": lambda: cluster.distributed.Client,
}
for name, call in calls.items():
    try:
        call()
    except ModuleNotFoundError as error:
        print(error.name == name, error)
"""


def test_every_module_is_imported_without_what_only_some_functions_need():
    loaded = without.run(EVERY_MODULE, (*without.EXTRAS, "sklearn", "pandas")).split()
    assert "scipy" in loaded and not {*without.EXTRAS, "sklearn"} & {*loaded}


def test_a_function_says_how_to_get_what_it_lacks():
    lines = without.run(CALLS).splitlines()
    assert len(lines) == 3
    for line, name in zip(lines, ("numba", "torch", "distributed")):
        assert line.startswith(f"True this needs {name}, which is not installed: pip install {name}, or ")
        assert f'pip install "physics-of-learning[{name}]"' in line


def test_a_package_that_lacks_something_itself_says_that(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import what_it_lacks\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="^No module named 'what_it_lacks'$"):
        extras.imported("half_installed")


def test_a_module_is_imported_when_something_of_it_is_used(tmp_path, monkeypatch):
    (tmp_path / "used_late.py").write_text("calls = []\ndef call():\n    calls.append(1)\n    return len(calls)\n")
    monkeypatch.syspath_prepend(tmp_path)
    late = extras.Extra("used_late")
    assert not hasattr(late, "__wrapped__") and "used_late" not in sys.modules
    assert (late.call(), late.call(), late.calls) == (1, 2, [1, 1])
    with pytest.raises(AttributeError, match="nothing"):
        _ = late.nothing


def test_all_that_is_asked_for_can_be_imported_at_once(tmp_path, monkeypatch):
    (tmp_path / "asked_for.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extras, "_asked", {})
    assert extras.needs("asked_for") is extras.needs("asked_for")
    extras.needs("not_there")
    assert extras.load() == ["not_there"] and "asked_for" in sys.modules

"""The lowest versions: every dependency declares one, not above the locked version, and it is what is installed."""

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tools.build import project
from tools.release import lowest

PINS = lowest.lowest(project.read(project.ROOT / "pyproject.toml"))


def test_every_dependency_declares_its_lowest_version_and_the_lock_is_not_below():
    locked = dict(line.split("==", 1) for line in project.read(project.ROOT / "requirements.txt").splitlines()[2:])
    assert len(PINS) > 10 and any(pin.startswith("torch==") for pin in PINS)
    for need in map(Requirement, PINS):
        (pin,) = need.specifier
        assert Version(pin.version) <= Version(locked[need.name].split(" ")[0]), need


def test_pins_are_the_lowest_versions():
    assert lowest.lowest('[project]\ndependencies = ["a>=1.2", "b>=2,<3"]') == ["a==1.2", "b==2"]
    extras = '[project.optional-dependencies]\nb = ["b>=2"]\nall = ["us[b]"]'
    assert lowest.lowest(f'[project]\nname = "us"\ndependencies = ["a>=1.2"]\n{extras}') == ["a==1.2", "b==2"]
    with pytest.raises(ValueError, match="one lowest version of b, got 'b<3'"):
        lowest.lowest('[project]\ndependencies = ["a>=1.2", "b<3"]')


def test_the_newest_keep_what_is_there_and_allowed():
    declared = '[project]\ndependencies = ["a>=1.2", "b>=2", "c>=3", "d>=1"]'
    there = "a==1.10.1\nb==1.9\nd @ https://example.org/whl/d-1.5.0%2Bcpu-cp313-cp313-linux_x86_64.whl\nother==7\n"
    assert lowest.newest(declared, there) == ["a==1.10.1", "b>=2", "c>=3", "d==1.5.0"]


def test_the_run_installs_these_and_passes_on_what_pytest_says(monkeypatch):
    commands = []

    class Done:
        returncode = 3

    monkeypatch.setattr(lowest.subprocess, "run", lambda command, **_: commands.append([*map(str, command)]) or Done)
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    assert lowest.main(["tests/common"]) == 3
    _, installed, tested = commands
    assert set(PINS) <= set(installed) and tested[-2:] == ["lib", "tests/common"]

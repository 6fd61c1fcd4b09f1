"""The lowest versions: every dependency declares one, not above the locked version, and it is read."""

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.build import lock, project
from tools.release import lowest


def test_every_dependency_declares_its_lowest_version_and_the_lock_is_not_below():
    locked = lock.pins(project.read(project.ROOT / "requirements.txt"))
    pins = [Requirement(pin) for pin in lowest.lowest(project.read(project.ROOT / "pyproject.toml"))]
    assert len(pins) > 10
    for need in pins:
        (pin,) = need.specifier
        assert Version(pin.version) <= Version(locked[canonicalize_name(need.name)]), need


def test_pins_are_the_lowest_versions():
    assert lowest.lowest('[project]\ndependencies = ["a>=1.2", "b>=2,<3"]') == ["a==1.2", "b==2"]
    with pytest.raises(ValueError, match="one lowest version of b, got 'b<3'"):
        lowest.lowest('[project]\ndependencies = ["a>=1.2", "b<3"]')


def test_the_run_installs_these_and_passes_on_what_pytest_says(monkeypatch):
    commands = []

    class Done:
        returncode = 3

    def run(command, **_):
        commands.append([str(part) for part in command])
        return Done

    monkeypatch.setattr(lowest.subprocess, "run", run)
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    assert lowest.main(["tests/common"]) == 3
    _, installed, tested = commands
    for pin in lowest.lowest(project.read(project.ROOT / "pyproject.toml")):
        assert pin in installed
    assert tested[-2:] == ["lib", "tests/common"]

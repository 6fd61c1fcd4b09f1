"""Try ``lib`` on the lowest versions that ``pyproject.toml`` declares: once a week, not with every change.

``python -m tools.release.lowest [tests ...]`` makes an environment of exactly these in a temporary folder, imports
every module of ``lib``, and runs all doctests and the tests named, by default a few of each kind.  The tools of
the tests are those of the lock.  With TORCH_INDEX, torch comes from that index.

With ``--newest``, the versions are the newest that are allowed; with ``--over FILE``, a list such as ``pip freeze``
prints, those of the file, and newer ones only where it is below the lowest, as where ``lib`` is installed on Colab.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tools.build import project

TESTERS = ("pytest", "hypothesis")
QUICK = (
    "tests/common",
    "tests/foundations/test_committee.py",
    "tests/fluctuations/test_regression.py",
    "tests/representations/test_nets.py",
)


def lowest(text):
    """The dependencies of a ``pyproject.toml``, and its extras, pinned to the lowest version that each declares."""
    declared, pins = tomllib.loads(text)["project"], []
    for line in sum(declared.get("optional-dependencies", {}).values(), declared["dependencies"]):
        need = Requirement(line)
        if need.name == declared.get("name"):  # extras that gather extras
            continue
        bounds = [part.version for part in need.specifier if part.operator == ">="]
        if len(bounds) != 1:
            raise ValueError(f"pyproject.toml must declare one lowest version of {need.name}, got {line!r}")
        pins.append(f"{need.name}=={bounds[0]}")
    return pins


def newest(text, over=""):
    """The dependencies of a ``pyproject.toml``, each pinned to its version in the list `over` where that is allowed."""
    held = dict(re.findall(r"^([\w.-]+)(?:==| @ \S*/[a-z]+-)(\d[\d.]*)", over, re.M))
    needs = map(Requirement, tomllib.loads(text)["project"]["dependencies"])
    return [
        f"{need.name}=={held[need.name]}" if need.specifier.contains(held.get(need.name, "0")) else str(need)
        for need in needs
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", default=QUICK, help="files or folders of tests besides the doctests")
    parser.add_argument("--newest", action="store_true", help="the newest versions instead")
    parser.add_argument("--over", type=Path, help="with --newest: versions to keep where they are allowed")
    options = parser.parse_args(arguments)
    chosen, declared = options.tests, project.read(project.ROOT / "pyproject.toml")
    over = project.read(options.over) if options.over else ""
    pins = newest(declared, over) if options.newest else lowest(declared)
    locked = dict(re.findall(r"^(\S+)==(\S+)", project.read(project.ROOT / "requirements.txt"), re.M))
    pins += [f"{name}=={locked[name]}" for name in TESTERS]
    print("Versions:", *pins, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        subprocess.run([sys.executable, "-m", "venv", Path(folder) / "env"], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if index := os.environ.get("TORCH_INDEX"):
            torch = [pin for pin in pins if Requirement(pin).name == "torch"]
            subprocess.run([*install, "--no-deps", "--index-url", index, *torch], check=True)
        subprocess.run([*install, *pins], check=True)
        # Warnings of later removal are no faults: these versions will not change any more.
        options = ["--doctest-modules", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "-q"]
        environment = {**os.environ, "PYTHONPATH": str(project.ROOT), "NUMBA_CACHE_DIR": str(Path(folder) / "numba")}
        command = [python, "-m", "pytest", *options, "lib", *chosen]
        return subprocess.run(command, cwd=project.ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Set-up ends with one clear sentence where something is missing, and what it cannot replace it leaves."""

import fcntl
import os
import shutil
import subprocess
import sys

import pytest

from tools.build import project

BROKEN = "#!/bin/sh\nexit 1\n"
WORKS = "#!/bin/sh\nexit 0\n"


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path):
    """What set-up reads, in a folder with nothing installed."""
    (tmp_path / "tools" / "build").mkdir(parents=True)
    for name in ("tools/build/environment.sh", "requirements.txt", "pyproject.toml", "Makefile"):
        shutil.copy(project.ROOT / name, tmp_path / name)
    return tmp_path


def set_up(checkout, *command, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": str(checkout), **variables}
    command = command or ("sh", "tools/build/environment.sh")
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def fake_python(folder, version="3.11.7", *, can_make_venvs=True, venv_works=True):
    """A command that answers like a Python of a version; that of its virtual environments always fails."""
    broken = f"mkdir -p .venv/bin; printf {BROKEN!r} > .venv/bin/python; chmod +x .venv/bin/python"
    text = f"""#!/bin/sh
case "$*" in
  *"%d.%d.%d"*) echo {version} ;;
  *version_info*) [ {version.split(".")[1]} -ge 11 ] ;;
  *ensurepip*) exit {int(not can_make_venvs)} ;;
  *"-m venv"*) {broken if venv_works else "exit 1"} ;;
esac
"""
    return str(program(folder / "fake-python", text))


def stops_with(done, sentence):
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("Set-up stopped: ")]
    assert len(lines) == 1 and sentence in lines[0], done.stderr


@pytest.mark.parametrize(
    ("fake", "sentence"),
    [
        ({"version": "3.10.4"}, "Python 3.11 or newer is needed"),
        ({"can_make_venvs": False}, "python3-venv"),
        ({"venv_works": False}, "could not make the virtual environment"),
        ({}, "a package could not be installed"),
    ],
)
def test_a_python_that_will_not_do(checkout, fake, sentence):
    stops_with(set_up(checkout, PYTHON=fake_python(checkout, **fake)), sentence)
    assert not (checkout / ".venv" / "made-from").exists()


def test_missing_python_and_missing_git(checkout):
    stops_with(set_up(checkout, PYTHON="no-such-python"), "'no-such-python' is not a command")
    stops_with(set_up(checkout, "make", "book", PYTHON="no-such-python"), "Python is missing")
    (checkout / "bin").mkdir()
    for name in ("sh", "dirname"):
        (checkout / "bin" / name).symlink_to(shutil.which(name))
    stops_with(set_up(checkout, PATH=str(checkout / "bin")), "git is missing")


def test_failed_install_leaves_the_old_environment(checkout):
    old, stamp = program(checkout / ".venv" / "bin" / "python", WORKS), checkout / ".venv" / "made-from"
    stamp.write_text("of other requirements\n")
    stops_with(set_up(checkout, PYTHON=fake_python(checkout)), "a package could not be installed")
    assert (old.read_text(), stamp.read_text()) == (WORKS, "of other requirements\n")
    assert (checkout / ".venv" / "install.log").exists() and not (checkout / ".venv-old").exists()


def test_a_ready_environment_is_kept_without_naming_its_python_and_index_again(checkout):
    """The stamp's first two lines are the Python and the index that it was made with."""
    python = program(checkout / ".venv" / "bin" / "python", WORKS)
    sums = set_up(checkout, "cksum", "requirements.txt", "pyproject.toml").stdout
    (checkout / ".venv" / "made-from").write_text(f"python9.9\nhttps://example.org/cpu\n{sums}{checkout}\n")
    kept = set_up(checkout)
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "")
    assert set_up(checkout, CDPATH=str(checkout)).returncode == 0
    assert set_up(checkout, TORCH_INDEX="https://example.org/cpu").returncode == 0
    stops_with(set_up(checkout, PYTHON="no-such-python"), "Python is missing")
    with (checkout / "requirements.txt").open("a") as file:
        file.write("# changed\n")
    stops_with(set_up(checkout), "'python9.9' is not a command")
    assert python.exists(), "an environment is not removed before its successor can be made"


@pytest.fixture
def cleanable(checkout):
    """A checkout with an environment and a built book."""
    for folder in (".venv/bin", "_build"):
        (checkout / folder).mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to(sys.executable)
    for name in ("__init__.py", "build/__init__.py", "build/clean.py"):
        shutil.copy(project.ROOT / "tools" / name, checkout / "tools" / name)
    (checkout / "_build" / "lock").write_text("")
    return checkout


def test_clean_waits_for_a_build(cleanable):
    with (cleanable / "_build" / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        done = set_up(cleanable, "make", "clean")
    assert done.returncode != 0 and "a build of this checkout is running; wait for it to end" in done.stderr
    assert (cleanable / ".venv").exists() and (cleanable / "_build").exists()


@pytest.mark.parametrize("state", ["whole", "no lock", "no environment", "broken environment"])
def test_clean_removes_whatever_is_there(cleanable, state):
    python = cleanable / ".venv" / "bin" / "python"
    if state == "no lock":
        (cleanable / "_build" / "lock").unlink()
    elif state != "whole":
        python.unlink()
    if state == "broken environment":
        program(python, BROKEN)
    done = set_up(cleanable, "make", "clean")
    assert done.returncode == 0, done.stderr
    assert not (cleanable / ".venv").exists() and not (cleanable / "_build").exists()


@pytest.mark.parametrize("user", ["0", "10"])
def test_lab_opens_for_root_too_and_for_nobody_else_with_its_option(checkout, user):
    program(checkout / "bin" / "id", f"#!/bin/sh\necho {user}\n")
    said = set_up(checkout, "make", "-n", "lab", PATH=f"{checkout}/bin:{os.environ['PATH']}").stdout
    assert "jupyter lab" in said and ("--allow-root" in said) == (user == "0")


def test_help_names_every_target(checkout):
    text = set_up(checkout, "make").stdout
    targets = project.read(checkout / "Makefile").split(".PHONY: help environment ")[1].split("\n")[0]
    assert [target for target in targets.split() if f"make {target} " not in text] == []

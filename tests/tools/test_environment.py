"""Set-up ends with one clear sentence where something is missing."""

import fcntl
import os
import shutil
import subprocess
import sys

import pytest

from tools.build import project


@pytest.fixture
def checkout(tmp_path):
    """What set-up reads, in a folder with nothing installed."""
    (tmp_path / "tools" / "build").mkdir(parents=True)
    shutil.copy(project.ROOT / "tools" / "build" / "environment.sh", tmp_path / "tools" / "build")
    for name in ("requirements.txt", "pyproject.toml", "Makefile"):
        shutil.copy(project.ROOT / name, tmp_path)
    return tmp_path


def set_up(checkout, command=("sh", "tools/build/environment.sh"), **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": str(checkout), **variables}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def fake_python(folder, version, *, can_make_venvs=True, venv_works=True):
    """A command that answers like a Python of the given version; the Python of its virtual environments always
    fails.
    """
    broken = r'mkdir -p .venv/bin; printf "#!/bin/sh\nexit 1\n" > .venv/bin/python; chmod +x .venv/bin/python'
    path = folder / "fake-python"
    path.write_text(f"""#!/bin/sh
case "$*" in
  *"%d.%d.%d"*) echo {version} ;;
  *version_info*) [ {version.split(".")[1]} -ge 11 ] ;;
  *ensurepip*) exit {0 if can_make_venvs else 1} ;;
  *"-m venv"*) {broken if venv_works else "exit 1"} ;;
esac
""")
    path.chmod(0o755)
    return str(path)


def stops_with(done, sentence):
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("Set-up stopped: ")]
    assert len(lines) == 1 and sentence in lines[0], done.stderr


def test_missing_python(checkout):
    stops_with(set_up(checkout, PYTHON="no-such-python"), "'no-such-python' is not a command")


def test_old_python(checkout):
    stops_with(set_up(checkout, PYTHON=fake_python(checkout, "3.10.4")), "Python 3.11 or newer is needed")


def test_python_without_venv(checkout):
    stops_with(set_up(checkout, PYTHON=fake_python(checkout, "3.11.7", can_make_venvs=False)), "python3-venv")


def test_environment_that_cannot_be_made(checkout):
    stops_with(
        set_up(checkout, PYTHON=fake_python(checkout, "3.11.7", venv_works=False)),
        "could not make the virtual environment",
    )


def test_failed_install(checkout):
    done = set_up(checkout, PYTHON=fake_python(checkout, "3.11.7"))
    stops_with(done, "a package could not be installed")
    assert not (checkout / ".venv" / "made-from").exists()


def test_failed_install_leaves_the_old_environment(checkout):
    old = checkout / ".venv" / "bin" / "python"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\nexit 0\n")
    old.chmod(0o755)
    (checkout / ".venv" / "made-from").write_text("of other requirements\n")
    stops_with(set_up(checkout, PYTHON=fake_python(checkout, "3.11.7")), "a package could not be installed")
    assert (
        old.read_text() == "#!/bin/sh\nexit 0\n"
        and (checkout / ".venv" / "made-from").read_text() == "of other requirements\n"
    )
    assert (checkout / ".venv" / "install.log").exists() and not (checkout / ".venv-old").exists()


def test_missing_git(checkout):
    tools = checkout / "bin"
    tools.mkdir()
    for name in ("sh", "dirname"):
        (tools / name).symlink_to(shutil.which(name))
    stops_with(set_up(checkout, PATH=str(tools)), "git is missing")


def test_a_ready_environment_is_kept_without_naming_its_python_and_index_again(checkout):
    """The stamp's first two lines are the Python and the index that it was made with."""
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    sums = subprocess.run(
        ["cksum", "requirements.txt", "pyproject.toml"], cwd=checkout, capture_output=True, text=True, check=True
    )
    stamp = checkout / ".venv" / "made-from"
    stamp.write_text(f"python9.9\nhttps://example.org/cpu\n{sums.stdout}{checkout}\n")
    kept = set_up(checkout)
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "")
    assert set_up(checkout, CDPATH=str(checkout)).returncode == 0
    assert set_up(checkout, TORCH_INDEX="https://example.org/cpu").returncode == 0
    stops_with(set_up(checkout, PYTHON="no-such-python"), "Python is missing")
    with (checkout / "requirements.txt").open("a") as file:
        file.write("# changed\n")
    stops_with(set_up(checkout), "'python9.9' is not a command")
    assert python.exists(), "an environment is not removed before its successor can be made"


def test_make_stops_there_too(checkout):
    done = set_up(checkout, command=("make", "book"), PYTHON="no-such-python")
    stops_with(done, "Python is missing")


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
        done = set_up(cleanable, command=("make", "clean"))
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
            python.write_text("#!/bin/sh\nexit 1\n")
            python.chmod(0o755)
    done = set_up(cleanable, command=("make", "clean"))
    assert done.returncode == 0 and not (cleanable / ".venv").exists() and not (cleanable / "_build").exists(), (
        done.stderr
    )


@pytest.mark.parametrize("user", ["0", "1000", "10"])
def test_lab_opens_for_root_too_and_for_nobody_else_with_its_option(checkout, user):
    fake = checkout / "bin"
    fake.mkdir()
    (fake / "id").write_text(f"#!/bin/sh\necho {user}\n")
    (fake / "id").chmod(0o755)
    said = set_up(checkout, command=("make", "-n", "lab"), PATH=f"{fake}:{os.environ['PATH']}").stdout
    assert "jupyter lab" in said and ("--allow-root" in said) == (user == "0")


def test_help_names_every_target(checkout):
    text = set_up(checkout, command=("make",)).stdout
    for target in ("book", "test", "browser", "lab", "assignments", "rehearsal", "bench", "clean"):
        assert f"make {target}" in text

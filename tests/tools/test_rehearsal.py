"""The rehearsal of a launch: each step finds the fault it is there for, and a small notebook is played through a real
server.
"""

import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from tools.build import project
from tools.release import lab_server, rehearsal

BIN = Path(sys.executable).parent
MARKER = rehearsal.NOT_LAUNCHED


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_one_chapter_of_each_part():
    first, every = rehearsal.chapters(project.ROOT), rehearsal.chapters(project.ROOT, every=True)
    assert [part.split(":")[0] for part, _ in first] == [
        f"Part {n}" for n in ("I", "II", "III", "IV", "V", "VI", "VII")
    ]
    assert set(first) < set(every) and all((project.ROOT / f"{page}.md").is_file() for _, page in every)


def test_the_copy_is_what_git_knows_as_it_is_now(tmp_path):
    root, copy = tmp_path / "root", tmp_path / "copy"
    (root / "sub").mkdir(parents=True)
    for name in (".gitignore", "kept", "sub/kept", "deleted", "ignored", "new"):
        (root / name).write_text("ignored\n")
    git(root, "init", "-q")
    git(root, "add", ".gitignore", "kept", "sub/kept", "deleted")
    (root / "deleted").unlink()
    (root / "kept").write_text("changed")
    rehearsal.copy_checkout(root, copy)
    names = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file())
    assert names == [".gitignore", "kept", "new", "sub/kept"]
    assert (copy / "kept").read_text() == "changed"


def test_a_folder_without_git_is_refused(tmp_path):
    with pytest.raises(lab_server.LaunchFailed, match="rehearse in a clone"):
        rehearsal.copy_checkout(tmp_path, tmp_path / "copy")


def test_another_python_is_said_loudly(tmp_path, capsys):
    (tmp_path / "binder").mkdir()
    (tmp_path / "binder" / "runtime.txt").write_text("python-2.99\n")
    assert rehearsal.find_python(tmp_path) == sys.executable
    assert "NOTE: there is no python2.99 here" in capsys.readouterr().out


class Refusing(http.server.BaseHTTPRequestHandler):
    """An index that can be reached, although it refuses."""

    def do_GET(self):
        self.send_error(403)

    def log_message(self, *arguments):
        """Print nothing."""


def test_an_index_that_answers_is_told_from_one_that_does_not(tmp_path):
    server = http.server.HTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    there, away = f"http://127.0.0.1:{server.server_port}/cpu", f"http://127.0.0.1:{lab_server.free_port(0)}/cpu"
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"# note\n--extra-index-url {there}\n--extra-index-url {away}\n-r ../requirements.txt\n")
    assert rehearsal.unreachable(requirements) == [away]
    server.shutdown()
    thread.join()
    server.server_close()


def test_solutions_in_a_launched_folder_are_found(tmp_path):
    for name in ("book/set.md", "tests/test_cut.py", "tools/cut.py", "book/chapter.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text" if "chapter" in name else f"{MARKER}\n")
    assert rehearsal.revealed(tmp_path) == ["book/set.md"]
    (tmp_path / "book" / "set.md").unlink()
    assert rehearsal.revealed(tmp_path) == []


def test_post_build_writes_the_notebooks_and_removes_the_problem_sets(tmp_path):
    """The lines of ``binder/postBuild`` after the installation, run for real; only the environment is another."""
    lines = (project.ROOT / "binder" / "postBuild").read_text().splitlines()
    installing = [line for line in lines if "pip install" in line]
    assert installing == ["python -m pip install --no-deps --no-build-isolation -e ."]
    book = tmp_path / "book"
    rehearsal.copy_checkout(project.ROOT, book)
    pages = [page for _, page in rehearsal.chapters(book, every=True)]
    assert rehearsal.missing_notebooks(book, pages) == pages
    script = "\n".join(line for line in lines if line not in installing).replace("sys.prefix", f'"{tmp_path}/env"')
    environment = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONPATH": str(book)}
    subprocess.run(["bash", "-c", script], cwd=book, env=environment, check=True)
    assert rehearsal.missing_notebooks(book, pages) == []
    assert not (book / "book" / "assignments").exists() and rehearsal.revealed(book) == []
    assert (tmp_path / "env" / "etc" / "jupyter" / "labconfig" / "page_config.json").is_file()


def test_a_launched_kernel_has_as_many_threads_as_the_books():
    """``binder/start`` runs the server's command under the settings of the build's kernels."""
    path = project.ROOT / "binder" / "start"
    assert path.stat().st_mode & 0o111
    done = subprocess.run([path, "env"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    wanted = {
        name: value for name, value in project.kernel_environment(project.ROOT).items() if name.endswith("_NUM_THREADS")
    }
    assert len(wanted) == 4 and wanted.items() <= found.items()


def test_a_port_in_use_ends_in_one_sentence_before_anything_is_installed():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "tools.release.rehearsal", "--port", str(port)]
        done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.startswith(f"The rehearsal stopped: port {port} cannot be used") and done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """A server of this environment in a folder with a few pages."""
    folder = tmp_path_factory.mktemp("launch")
    (folder / "book" / "notebooks").mkdir(parents=True)
    for name, code in {
        "good": "import time; time.sleep(1)",
        "bad": "1 / 0",
        "deadly": "import os; os._exit(1)",
    }.items():
        cells = [nbformat.v4.new_code_cell(source) for source in ('block = b"x" * 80_000_000', code)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "book" / "notebooks" / f"{name}.ipynb")
    environment = {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    with lab_server.running(folder, folder / "book", environment, 0) as server:
        yield server
        family = [server.process, *server.process.children(recursive=True)]
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family), (
        "the server was left running"
    )


def test_a_page_is_played_and_its_memory_is_seen(launched):
    before = lab_server.memory(launched.process)
    part, page, cells, seconds, peak = rehearsal.play(launched, "Part I", "good")
    assert (part, page, cells) == ("Part I", "good", 2) and seconds > 0
    assert peak > before + 80e6, "the page holds 80 MB for a second"
    header, line = rehearsal.table([(part, page, cells, seconds, peak)])
    assert (
        header.split() == ["part", "chapter", "cells", "seconds", "peak", "MB"]
        and line.split()[-1] == f"{peak / 1e6:.0f}"
    )
    deadline = time.monotonic() + 10
    while launched.ask("GET", "kernels") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert launched.ask("GET", "kernels") == [], "the kernel was left running"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("bad", "code cell 2 of notebooks/bad.ipynb failed: ZeroDivisionError: division by zero"),
        ("deadly", "code cell 2 of notebooks/deadly.ipynb failed: the kernel died"),
        ("absent", "the server answered 404"),
    ],
)
def test_a_page_that_does_not_run_stops_the_rehearsal(launched, page, message):
    with pytest.raises(lab_server.LaunchFailed, match=message):
        lab_server.play(launched, f"notebooks/{page}")


def test_a_server_that_does_not_start_is_reported(tmp_path):
    (tmp_path / "jupyter").write_text("#!/bin/sh\necho no such configuration\nexit 1\n")
    (tmp_path / "jupyter").chmod(0o755)
    complaint = "did not start; its last lines were\nno such configuration"
    with (
        pytest.raises(lab_server.LaunchFailed, match=complaint),
        lab_server.running(tmp_path, tmp_path, {"PATH": str(tmp_path)}, 0),
    ):
        pass

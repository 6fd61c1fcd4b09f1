"""The rehearsal of a launch: each step finds the fault it is there for, and a small notebook is opened and played."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest

from tools.build import project
from tools.release import lab_server, rehearsal

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_one_chapter_of_each_part():
    pages = rehearsal.chapters(project.ROOT)
    assert len(pages) == len({Path(page).parent for page in pages}) == 7
    assert pages[0].startswith("book/foundations/") and all((project.ROOT / f"{page}.md").is_file() for page in pages)


def test_the_copy_is_what_git_knows_as_it_is_now(tmp_path):
    root, copy = tmp_path / "root", tmp_path / "copy"
    (root / "sub").mkdir(parents=True)
    with pytest.raises(lab_server.LaunchFailed, match="rehearse in a clone"):
        rehearsal.copy_checkout(root, copy)
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


def test_post_build_writes_the_notebooks_and_removes_the_problem_sets(tmp_path):
    """The lines of ``binder/postBuild`` after the installation, run for real; only the environment is another."""
    lines = (project.ROOT / "binder" / "postBuild").read_text().splitlines()
    installing = [line for line in lines if "pip install" in line]
    assert len(installing) == 2 and all("pip install --no-deps" in line for line in installing)
    book = tmp_path / "book"
    rehearsal.copy_checkout(project.ROOT, book)
    pages = rehearsal.chapters(book)
    before = rehearsal.faults(book, pages)
    assert f"{pages[0]} has no notebook" in before and any("book/assignments/scaling.md holds" in one for one in before)
    script = "\n".join(line for line in lines if line not in installing).replace("sys.prefix", f'"{tmp_path}/env"')
    environment = {"PATH": PATH, "HOME": str(tmp_path), "PYTHONPATH": str(book)}
    subprocess.run(["bash", "-c", script], cwd=book, env=environment, check=True)
    assert rehearsal.faults(book, pages) == [] and not (book / "book" / "assignments").exists()
    assert (tmp_path / "env" / "etc" / "jupyter" / "labconfig" / "page_config.json").is_file()


def test_a_launched_kernel_has_as_many_threads_as_the_books():
    """``binder/start`` runs the server's command under the settings of the build's kernels."""
    path = project.ROOT / "binder" / "start"
    assert path.stat().st_mode & 0o111
    done = subprocess.run([path, "env"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    wanted = {name: value for name, value in project.KERNELS.items() if name.endswith("_NUM_THREADS")}
    assert len(wanted) == 4 and wanted.items() <= found.items()


def test_a_page_is_opened_and_played_its_memory_is_seen_and_a_fault_is_named(tmp_path):
    notebooks, environment = tmp_path / "book" / "notebooks", {"PATH": PATH, "HOME": str(tmp_path)}
    notebooks.mkdir(parents=True)
    for name, code in {"good": "import time; time.sleep(1)", "bad": "1 / 0"}.items():
        cells = [nbformat.v4.new_code_cell(source) for source in ('block = b"x" * 80_000_000', code)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), notebooks / f"{name}.ipynb")
    with lab_server.running(tmp_path, tmp_path / "book", environment) as server:
        before = lab_server.memory(server.process)
        seconds, peak = rehearsal.play(server, tmp_path / "book", environment, "good")
        assert seconds > 1 and peak > before + 80e6, "the page holds 80 MB for a second"
        for page, message in (("bad", "ZeroDivisionError: division by zero"), ("absent", "the server answered 404")):
            with pytest.raises(lab_server.LaunchFailed, match=message):
                rehearsal.play(server, tmp_path / "book", environment, page)
        family = [server.process, *server.process.children(recursive=True)]
    assert not [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE], "left running"


def test_a_server_that_does_not_start_is_reported(tmp_path):
    (tmp_path / "jupyter").write_text("#!/bin/sh\necho no such configuration\nexit 1\n")
    (tmp_path / "jupyter").chmod(0o755)
    complaint = "did not start; its last lines were\nno such configuration"
    with (
        pytest.raises(lab_server.LaunchFailed, match=complaint),
        lab_server.running(tmp_path, tmp_path, {"PATH": str(tmp_path)}),
    ):
        pass

"""Rehearse a launch on Binder, in an empty environment: ``make rehearsal``, before other requirements go out.

1. copy the checkout's files, make an environment, install ``binder/requirements.txt``;
2. run ``binder/postBuild``, and look for what must not be launched;
3. start the server through ``binder/start``, open one chapter of each part in it as a notebook, run all its cells under
   the same settings, and watch the memory.

It stops at the first thing that is not right.  Everything is written into a temporary folder.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tools.build import project
from tools.release import lab_server, reader
from tools.release.lab_server import LaunchFailed

LIMIT = 1.8e9  # bytes that a chapter may take with the server; mybinder.org gives about 2 GB
NOT_LAUNCHED = "### BEGIN SOLUTION"
KEPT = ("LANG", "LC_ALL", "TMPDIR")  # of this environment; all else would be different on Binder


def run(command, folder, environment=None):
    """Run a command of the launch; what it prints is shown only if it fails."""
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-15:])
        raise LaunchFailed(f"{' '.join(map(str, command))} failed; its last lines were\n{last}")


def chapters(root):
    """The first chapter of each part."""
    pages = [project.page_name(root, path) for path in project.notebooks(root)]
    return list({Path(page).parent: page for page in reversed(pages) if page.count("/") > 1}.values())[::-1]


def copy_checkout(root, target):
    """Copy the files that git tracks, as they are now, and those that it does not know and does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if listed.returncode != 0:
        raise LaunchFailed(f"git does not know the files of {root}; rehearse in a clone")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)


def install(folder):
    """Make ``folder/env`` from the copy in ``folder/book`` as Binder does; returns what the server runs under."""
    book, env, home = folder / "book", folder / "env", folder / "home"
    home.mkdir()
    wanted = (book / "binder" / "runtime.txt").read_text(encoding="utf-8").strip().replace("-", "")
    if shutil.which(wanted) is None:
        print(f"== NOTE: there is no {wanted} here; rehearsing with Python {sys.version.split()[0]} instead")
    run([shutil.which(wanted) or sys.executable, "-m", "venv", env], book)
    run([env / "bin" / "python", "-m", "pip", "install", "--no-cache-dir", "-r", "binder/requirements.txt"], book)
    launched = {name: os.environ[name] for name in KEPT if name in os.environ}
    launched |= {"PATH": f"{env / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "VIRTUAL_ENV": str(env)}
    run(["bash", "binder/postBuild"], book, launched)
    return launched


def faults(book, pages):
    """What is wrong with a launched copy: solutions of problem sets, a page without its plain notebook.

    The code that cuts solutions out only names the marker.
    """
    files = [path for path in book.rglob("*") if path.is_file()]
    files = [path for path in files if path.relative_to(book).parts[0] not in (".git", "tools", "tests")]
    shown = [path for path in files if NOT_LAUNCHED.encode() in path.read_bytes()]
    found = [f"{path.relative_to(book)} holds solutions of a problem set" for path in shown]
    missing = [page for page in pages if not (book / reader.FOLDER / f"{page}.ipynb").is_file()]
    return found + [f"{page} has no notebook" for page in missing]


def play(server, book, environment, page, start=()):
    """Open a page in the server as a notebook and run its cells; returns seconds and the largest memory, in bytes."""
    path, began, peak = f"{reader.FOLDER}/{page}.ipynb", time.perf_counter(), 0
    kind = server.ask(f"contents/{path}?content=1")["type"]
    if kind != "notebook":
        raise LaunchFailed(f"{path} opens as a {kind}, not as a notebook")
    command = [*start, shutil.which("jupyter", path=environment["PATH"]), "execute", "--timeout=-1", path]
    with tempfile.TemporaryFile("w+") as log:
        process = psutil.Popen(command, cwd=book, env=environment, stdout=log, stderr=log)
        try:
            while process.poll() is None:
                peak = max(peak, lab_server.memory(server.process, process))
                time.sleep(0.2)
        finally:
            lab_server.end(process)
        if process.returncode != 0:
            log.seek(0)
            last = re.sub(r"\x1b\[[0-9;]*m", "", log.read())[-1000:]
            raise LaunchFailed(f"a cell of {path} failed; the last lines were\n{last}")
    return time.perf_counter() - began, peak


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or a server would be left running
    root, pages, start, large = project.ROOT, chapters(project.ROOT), ["bash", "binder/start"], []
    try:
        with tempfile.TemporaryDirectory(prefix="rehearsal-") as name:
            folder, book, began = Path(name), Path(name) / "book", time.perf_counter()
            print("== installing binder/requirements.txt into an empty environment (minutes)", flush=True)
            copy_checkout(root, book)
            environment = install(folder)
            weight = sum(path.lstat().st_size for path in (folder / "env").rglob("*"))
            print(f"== installed {weight / 1e6:.0f} MB in {time.perf_counter() - began:.0f} s", flush=True)
            if found := faults(book, pages):
                raise LaunchFailed("after binder/postBuild " + "; ".join(found))
            with lab_server.running(folder, book, environment, start) as server:
                for page in pages:
                    seconds, peak = play(server, book, environment, page, start)
                    print(f"{page:50} {seconds:6.1f} s {peak / 1e6:6.0f} MB", flush=True)
                    large += [page] if peak > LIMIT else []
    except (LaunchFailed, OSError) as problem:
        sys.exit(f"The rehearsal stopped: {problem}")
    except KeyboardInterrupt:
        sys.exit("The rehearsal stopped: interrupted")
    if large:
        sys.exit(f"The rehearsal failed: {', '.join(large)} took more than {LIMIT / 1e6:.0f} MB")
    print("== the launch works")


if __name__ == "__main__":
    main()

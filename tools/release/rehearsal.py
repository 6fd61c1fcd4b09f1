"""Rehearse a launch on Binder, in an empty environment.

``python -m tools.release.rehearsal`` does what ``binder/`` asks for:

1. copy the checkout's files, make an environment of the Python in ``binder/runtime.txt``, install
   ``binder/requirements.txt``;
2. run ``binder/postBuild``, and look for what must not be launched;
3. start the server through ``binder/start``, open one chapter of each part through it as a notebook, run all its cells,
   and watch the memory.

It stops at the first thing that is not right, and prints a table of times and memory.  Everything is written into a
temporary folder, which is removed at the end.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError, URLError

import yaml

from tools.build import project
from tools.release import lab_server, reader

LIMIT = 1.8e9  # bytes that a chapter may take with the server; mybinder.org gives about 2 GB
NOT_LAUNCHED = "### BEGIN SOLUTION"
KEPT = ("LANG", "LC_ALL", "TMPDIR")  # of this environment; all else would be different on Binder


def say(text):
    print(f"== {text}", flush=True)


def run(command, folder, environment, what):
    """Run a command of the launch; what it prints is shown only if it fails."""
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise lab_server.LaunchFailed(
            f"{what} failed; its last lines were\n" + "\n".join(done.stdout.splitlines()[-15:])
        )


def chapters(root, every=False):
    """Pairs of part and page: the first chapter of each part, or every chapter.

    A part's chapters are notebooks of one folder.
    """
    toc = yaml.safe_load(project.read(root / "_toc.yml"))
    found = []
    for part in toc["parts"]:
        pages = [chapter["file"] for chapter in part["chapters"]]
        pages = [
            page for page in pages if page.count("/") > 1 and project.is_notebook((root / page).with_suffix(".md"))
        ]
        found += [(part["caption"], page) for page in (pages if every else pages[:1])]
    return found


def copy_checkout(root, target):
    """Copy the files that git tracks, as they are now, and those that it does not know and does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if listed.returncode != 0:
        raise lab_server.LaunchFailed(f"git does not know the files of {root}; rehearse in a clone")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)


def find_python(root):
    """The command of the Python that ``binder/runtime.txt`` names, or this Python with a loud line."""
    wanted = (root / "binder" / "runtime.txt").read_text(encoding="utf-8").strip().replace("-", "")
    try:
        subprocess.run([wanted, "-c", "import venv, ensurepip"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        say(
            f"NOTE: there is no {wanted} here that can make environments; "
            f"rehearsing with Python {sys.version.split()[0]} instead"
        )
        return sys.executable
    return wanted


def unreachable(requirements):
    """The extra indexes of a requirements file that cannot be reached from here."""
    found = []
    for line in requirements.read_text(encoding="utf-8").splitlines():
        if line.startswith("--extra-index-url"):
            index = line.split()[1]
            try:
                urllib.request.urlopen(index + "/", timeout=10).close()
            except HTTPError:
                continue  # it answers, so it is reached
            except (URLError, TimeoutError):
                found.append(index)
    return found


def install(root, folder):
    """Make the environment as Binder does, in ``folder/env`` from the copy in ``folder/book``.

    Returns what the server runs under.
    """
    book, env, home = folder / "book", folder / "env", folder / "home"
    home.mkdir()
    run([find_python(root), "-m", "venv", env], book, None, "making the environment")
    pip = dict(os.environ)
    for index in unreachable(book / "binder" / "requirements.txt"):
        say(
            f"NOTE: {index} cannot be reached from here, so pip takes all packages from its other indexes; "
            "Binder would ask this one too"
        )
        pip["PIP_RETRIES"] = "0"  # or pip waits for it once more for every package
    command = [env / "bin" / "python", "-m", "pip", "install", "--no-cache-dir", "-r", "binder/requirements.txt"]
    run(command, book, pip, "installing binder/requirements.txt")
    launched = {name: os.environ[name] for name in KEPT if name in os.environ}
    launched |= {"PATH": f"{env / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "VIRTUAL_ENV": str(env)}
    run(["bash", "binder/postBuild"], book, launched, "binder/postBuild")
    return launched


def revealed(book):
    """Files of a launched copy with solutions of problem sets; the code that cuts them out only names the marker."""
    sources = [
        path
        for path in book.rglob("*")
        if path.is_file() and path.relative_to(book).parts[0] not in (".git", "tools", "tests")
    ]
    return [path.relative_to(book).as_posix() for path in sources if NOT_LAUNCHED.encode() in path.read_bytes()]


def missing_notebooks(book, pages):
    """Pages of which a launched copy has no plain notebook."""
    return [page for page in pages if not (book / reader.FOLDER / f"{page}.ipynb").is_file()]


def size(folder):
    """Bytes on disk of a folder."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def play(server, part, page):
    """Run a chapter; returns its row of the table."""
    started = time.perf_counter()
    with lab_server.peak_memory(server.process) as peak:
        cells = lab_server.play(server, f"{reader.FOLDER}/{page}")
    return part, page.removeprefix("book/"), cells, time.perf_counter() - started, peak[0]


def table(rows):
    """Lines of the table: part, chapter, code cells, seconds, peak memory of the server with the chapter's kernel."""
    yield f"{'part':24} {'chapter':40} {'cells':>5} {'seconds':>8} {'peak MB':>8}"
    for part, page, cells, seconds, peak in rows:
        yield f"{part:24} {page:40} {cells:5} {seconds:8.1f} {peak / 1e6:8.0f}"


def launch(root, port, every):
    """The whole rehearsal; returns the rows of the table."""
    pages = chapters(root, every)
    lab_server.free_port(port)  # before the minutes that the installation takes
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as name:
        folder = Path(name)
        book = folder / "book"
        book.mkdir()
        say("copying the checkout and installing binder/requirements.txt into an empty environment (minutes)")
        copy_checkout(root, book)
        started = time.perf_counter()
        environment = install(root, folder)
        say(f"installed in {time.perf_counter() - started:.0f} s: {size(folder / 'env') / 1e6:.0f} MB")
        found = revealed(book)
        if found:
            raise lab_server.LaunchFailed(f"binder/postBuild leaves solutions of problem sets: {', '.join(found)}")
        absent = missing_notebooks(book, [page for _, page in pages])
        if absent:
            raise lab_server.LaunchFailed(f"binder/postBuild writes no notebook of {', '.join(absent)}")
        with lab_server.running(folder, book, environment, port, start=["bash", "binder/start"]) as server:
            say(f"the server runs on port {server.port} and takes {lab_server.memory(server.process) / 1e6:.0f} MB")
            rows = []
            for number, (part, page) in enumerate(pages, 1):
                rows.append(play(server, part, page))
                say(f"[{number}/{len(pages)}] {page}: {rows[-1][3]:.1f} s, {rows[-1][4] / 1e6:.0f} MB")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="the server's port (default: any that is free)")
    parser.add_argument("--every", action="store_true", help="play every chapter, not only the first of each part")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or a server would be left running
    try:
        rows = launch(project.ROOT, options.port, options.every)
    except (lab_server.LaunchFailed, OSError, ValueError, yaml.YAMLError) as problem:
        sys.exit(f"The rehearsal stopped: {problem}")
    except KeyboardInterrupt:
        sys.exit("The rehearsal stopped: interrupted")
    print("\n" + "\n".join(table(rows)))
    large = [page for _, page, _, _, peak in rows if peak > LIMIT]
    if large:
        sys.exit(f"The rehearsal failed: {', '.join(large)} took more than {LIMIT / 1e6:.0f} MB")
    say("the launch works")


if __name__ == "__main__":
    main()

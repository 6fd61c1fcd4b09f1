"""Everything that ``make test`` promises: ``python -m tools.build.check``, with ``--all`` the slow tests too.

1. the style of the code: ruff, as a linter and as a formatter; the workflows: zizmor; the spelling: codespell;
2. every notebook under nbval, which keeps what it computed for the build;
3. a strict build;
4. side by side on all cores: the tests of ``lib`` and of the tools with the examples in docstrings, the checks of the
   built site, and the site in a browser, where one is installed.

All of them run even if one fails.  The last lines say what failed and the command that repeats just that; the exit
status is 0 only if nothing did.
"""

import argparse
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from tools.build import faults, project
from tools.site import browser

SHOWN = 40  # lines about faults of one stage
BUILT = ("tests/site", "tests/browser")  # they look at the built site


def steps(every, failed):
    """The stages in order, pairs of name and command; `failed`: the names of those that did, so far."""
    python, places = [sys.executable, "-m"], ["lib", "tests", "tools", "benchmarks"]
    yield "lint", [*python, "ruff", "check", *places]
    yield "format", [*python, "ruff", "format", "--check", *places]
    yield "workflows", [Path(sys.executable).with_name("zizmor"), "--offline", "--no-progress", "--quiet", ".github"]
    yield "spelling", [*python, "codespell_lib"]
    yield "notebooks", [*python, "tools.build.notebooks"]
    yield "build", [*python, "tools.build.book"]
    options = ["-p", faults.__name__, f"--numprocesses={project.cores()}", "--dist=worksteal", "--durations=10"]
    options += [] if every else ["-m", "not slow"]
    options += [f"--ignore={place}" for place in BUILT] if "build" in failed else []
    yield "tests", [*python, "pytest", *options, "tests", "lib"]


def run(command):
    """Run a stage and print what it prints; returns its exit status and the lines that say what failed."""
    last, marked = deque(maxlen=8), []
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=project.ROOT, **options) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            (marked if line.startswith(faults.MARK) else last).append(line.rstrip().removeprefix(faults.MARK))
    home = f"{Path(sys.executable).parent}/"
    again = " ".join(str(part).replace(home, ".venv/bin/", 1) for part in command)
    return process.returncode, marked or [*last, f"    again: {again}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="run the tests that are marked as slow, too")
    failed = {}
    for name, command in steps(parser.parse_args().all, failed):
        print(f"== {name}", flush=True)
        started = time.perf_counter()
        status, lines = run(command)
        if status:
            failed[name] = lines
        state = "FAILED" if status else "passed"
        print(f"== {name}: {state} after {time.perf_counter() - started:.0f} s", flush=True)
    if browser.find() is None:
        print(browser.missing())
    for name, lines in failed.items():
        more = [f"... {len(lines) - SHOWN} lines more, above"] if len(lines) > SHOWN else []
        print(f"== FAILED in {name}:", *lines[:SHOWN], *more, sep="\n")
    if failed:
        sys.exit("make test failed in: " + ", ".join(failed))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("make test was interrupted")

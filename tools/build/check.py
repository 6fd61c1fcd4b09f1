"""Everything that ``make test`` promises, in order: ``python -m tools.build.check``.

1. the style of the code: ruff, as a linter and as a formatter;
2. the unit and property tests of ``lib`` and of the tools, with the examples in docstrings;
3. every notebook under nbval;
4. a strict build, and the checks of the built site;
5. the site in a browser, where one is installed.

All of them run even if one fails; the exit status is 0 only if none did.
"""

import subprocess
import sys
import time

from tools.build import project


def steps():
    python = [sys.executable, "-m"]
    places = ["lib", "tests", "tools", "benchmarks"]
    yield "lint", [*python, "ruff", "check", *places]
    yield "format", [*python, "ruff", "format", "--check", *places]
    ignored = ["--ignore=tests/site", "--ignore=tests/browser"]  # they look at the built site
    side_by_side = [f"--numprocesses={project.cores()}", "--dist=worksteal"]  # the longest tests may come last
    yield "unit tests", [*python, "pytest", *side_by_side, *ignored, "tests", "lib"]
    yield "notebooks", [*python, "tools.build.notebooks"]
    yield "build", [*python, "tools.build.book"]
    yield "site", [*python, "pytest", *side_by_side, "tests/site"]
    yield "browser", [*python, "tools.site.browser"]


def main():
    failed = []
    for name, command in steps():
        print(f"== {name}", flush=True)
        started = time.perf_counter()
        if subprocess.run(command, cwd=project.ROOT, check=False).returncode != 0:
            failed.append(name)
        print(
            f"== {name}: {'FAILED' if name in failed else 'passed'} after {time.perf_counter() - started:.0f} s",
            flush=True,
        )
    if failed:
        sys.exit("make test failed in: " + ", ".join(failed))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("make test was interrupted")

"""A pytest plugin: at the end of a run, each fault in a line, and the command that repeats just that.

``tools/build/check.py`` gathers these lines; for a cell under nbval the command runs its page.
"""

import re
import shlex

import pytest

MARK = "!! "


def command_for(test):
    """The command that runs one test, or the page that holds a cell.

    >>> command_for("_build/nbval/book/fields/a.ipynb::Cell 3")
    '.venv/bin/python -m tools.build.notebooks book/fields/a.md'
    """
    page = re.fullmatch(r"_build/nbval/(.+)\.ipynb::.*", test)
    rest = f"tools.build.notebooks {page[1]}.md" if page else f"pytest {shlex.quote(test)}"
    return f".venv/bin/python -m {rest}"


def _said(report):
    """What went wrong, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]
    if crash:
        return lines[0]
    if lines and lines[-1].startswith("KeyboardInterrupt"):  # from nbval
        return "a cell took longer than it may"
    named = [line for line in lines if re.match(r"\w*(Error|Exception|Failed)\b", line)]
    marked = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return [*lines[-1:], *named, *marked[:1]][-1] if lines else "no reason was given"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    reports = [report for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, [])]
    for report in {report.nodeid: report for report in reports}.values():  # a file may fail twice, for its doctests
        terminalreporter.write_line(f"{MARK}{report.nodeid}: {_said(report)[:300]}")
        terminalreporter.write_line(f"{MARK}    again: {command_for(report.nodeid)}")

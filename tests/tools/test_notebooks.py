"""The runner of the notebooks: it runs every one, a raising cell fails, and so does one that takes too long."""

import json
import shutil

import nbformat
import pytest
from matplotlib import font_manager

from tools.build import book as build
from tools.build import faults, fingerprints, notebooks, project, results

FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
---
"""


@pytest.fixture
def book(tmp_path):
    """A book of one notebook."""
    (tmp_path / "book").mkdir()
    for name in ("lib", "tools", "binder", "_config.yml"):
        (tmp_path / name).symlink_to(project.ROOT / name)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/page\n")
    return tmp_path


def run(book, code, capfd):
    (book / "book" / "page.md").write_text(f"{FRONT}# Title\n\n```{{code-cell}} ipython3\n{code}\n```\n")
    status = notebooks.run(book, 1)
    return status, capfd.readouterr().out


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('careful', file=sys.stderr)\n1 / 0", "ZeroDivisionError: division by zero"),
        ("while True: pass", "a cell took longer than it may"),
    ],
)
def test_a_raising_or_endless_cell_fails_with_the_command_that_runs_its_page(book, code, said, capfd, monkeypatch):
    monkeypatch.setattr(project, "cell_timeout", lambda root: 10 if "while" in code else project.HOUR)
    status, text = run(book, code, capfd)
    assert status != 0 and "1 failed" in text
    fault, again = [line for line in text.splitlines() if line.startswith(faults.MARK)]
    assert fault.endswith(f"book/page.ipynb::Cell 0: {said}")
    assert again.endswith("again: .venv/bin/python -m tools.build.notebooks book/page.md")
    why, kept = results_of(book, book / "book" / "page.md")
    assert why == "not executed yet" and not kept


def test_what_a_home_holds_is_not_seen(book, capfd, monkeypatch, tmp_path):
    """It may hold settings of IPython and matplotlib, and a list of fonts without matplotlib's own."""
    home = tmp_path / "kept"
    for name in ("MPLCONFIGDIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(home))
    (home / "profile_default" / "startup").mkdir(parents=True)
    (home / "profile_default" / "startup" / "mine.py").write_text("mine = 1")
    fonts = {"_version": font_manager.FontManager.__version__, "__class__": "FontManager", "ttflist": []}
    (home / "matplotlibrc").write_text("lines.linewidth: 37\n")
    (home / f"fontlist-v{font_manager.FontManager.__version__}.json").write_text(json.dumps(fonts))
    code = """import matplotlib as mpl
from matplotlib.font_manager import fontManager
seen = [name for name in ("DejaVu Sans", "cmr10") if name in fontManager.get_font_names()]
found = [mpl.rcParams["lines.linewidth"] == 37, "mine" in globals(), len(seen) < 2]
assert found == [{0}] * 3, found"""
    assert run(book, code.format(False), capfd)[0] == 0
    monkeypatch.setattr(project, "kernel_environment", lambda root: project.KERNELS | {"PYTHONPATH": str(root)})
    assert run(book, code.format(True), capfd)[0] == 0


SPEAKS = """import sys
import matplotlib.pyplot as plt
from IPython.display import Math, display
print("first")
print("second")
display(Math("x^2"), metadata={"ledger": {"id": "a"}})
print("third")
display({"text/plain": "unknown"}, raw=True)
figure = plt.figure(figsize=(1, 1))
6 * 7"""


def results_of(book, page):
    """The reasons to execute the page once more, and its kept notebook."""
    prints = fingerprints.Fingerprints(book, book / "_build" / fingerprints.FILE)
    cache = results.open_cache(book / "_build" / results.FOLDER)
    return prints.why(page), (dict(build.executed_notebooks(book, cache)) if cache.list_cache_records() else {})


def test_what_nbval_ran_is_what_the_build_would_have_made(book, capfd, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")  # as on many a server
    more = f"{SPEAKS}\n```\n\n```{{code-cell}} ipython3\n6 * 7;"  # a semicolon silences the 42
    status, text = run(book, more, capfd)
    assert status == 0 and "2 passed" in text and "slowest" in text and "page.ipynb::Cell 0" in text
    page = book / "book" / "page.md"
    why, kept = results_of(book, page)
    assert why is None
    for name, value in project.kernel_environment(book).items():
        monkeypatch.setenv(name, value)
    again, _, error = build._run(project.read_notebook(book, page), str(page.parent), project.HOUR)
    assert error is None
    (kept,) = kept.values()
    assert [len(cell.outputs) for cell in again.cells[1:]] == [6, 0]  # text, formula, text, anything, figure, 42
    assert kept.cells == again.cells and kept.metadata == again.metadata


def test_a_page_that_prints_something_else_the_next_time_fails(book, capfd):
    seen = book / "seen"
    code = f"from pathlib import Path\nseen = Path({str(seen)!r})\nprint(seen.exists() and 0)\nseen.touch()"
    assert run(book, code, capfd)[0] == 0  # False
    status, text = run(book, code, capfd)  # 0
    assert status != 0 and "book/page.md printed something else" in text


def test_what_complains_is_left_to_the_build(book, capfd):
    assert run(book, "import sys; print('careful', file=sys.stderr)", capfd)[0] == 0
    why, kept = results_of(book, book / "book" / "page.md")
    assert why == "not executed yet" and not kept


def test_a_page_that_changes_while_nbval_runs_is_left_to_the_build(book, capfd):
    page = str(book / "book" / "page.md")
    run(book, f"with open({page!r}, 'a') as page:\n    page.write('```{{code-cell}}\\n1\\n```\\n')", capfd)
    assert results_of(book, book / "book" / "page.md")[0] == "not executed yet"


def test_every_notebook_of_the_book_is_converted(tmp_path):
    shutil.copytree(project.ROOT / "book", tmp_path / "book")
    shutil.copy(project.ROOT / "_toc.yml", tmp_path)
    written = notebooks.convert(tmp_path, tmp_path / "_build", project.notebooks(tmp_path))
    assert len(written) == len(project.notebooks(project.ROOT)) > 3
    for path in written:
        assert any(cell.cell_type == "code" for cell in nbformat.read(path, as_version=4).cells)

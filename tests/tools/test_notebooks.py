"""The runner of the notebooks: it runs every one, a raising cell fails, and so does one that takes too long."""

import json
import shutil

import nbformat
import pytest
from matplotlib import font_manager

from tools.build import book as build
from tools.build import fingerprints, notebooks, project, results

FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
---
"""


@pytest.fixture
def book(tmp_path):
    """A book of one notebook, with ten seconds a cell."""
    (tmp_path / "book").mkdir()
    for name in ("lib", "tools", "requirements.txt"):
        (tmp_path / name).symlink_to(project.ROOT / name)
    config = (project.ROOT / "_config.yml").read_text()
    assert "  timeout: 300\n" in config
    (tmp_path / "_config.yml").write_text(config.replace("  timeout: 300\n", "  timeout: 10\n"))
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/page\n")
    return tmp_path


def run(book, code, capfd):
    (book / "book" / "page.md").write_text(f"{FRONT}# Title\n\n```{{code-cell}} ipython3\n{code}\n```\n")
    status = notebooks.run(book, 1)
    return status, capfd.readouterr().out


def test_a_good_notebook_passes_and_the_slowest_cells_are_listed(book, capfd):
    status, text = run(book, "assert 1 + 1 == 2", capfd)
    assert status == 0 and "1 passed" in text and "slowest" in text and "page.ipynb::Cell 0" in text


@pytest.mark.parametrize("code", ["assert 1 + 1 == 3", "import time; time.sleep(60)"])
def test_a_raising_or_endless_cell_fails(book, code, capfd):
    status, text = run(book, code, capfd)
    assert status != 0 and "1 failed" in text


@pytest.mark.parametrize("damage", ["settings", "fonts"])
def test_what_matplotlib_keeps_in_a_home_is_not_seen(book, capfd, monkeypatch, tmp_path, damage):
    """A home may hold settings, and a list of fonts without matplotlib's own: another environment left it."""
    home = tmp_path / "kept"
    home.mkdir()
    monkeypatch.setenv("MPLCONFIGDIR", str(home))
    name = f"fontlist-v{font_manager.FontManager.__version__}.json"
    fonts = {"_version": font_manager.FontManager.__version__, "__class__": "FontManager", "ttflist": []}
    (home / "matplotlibrc").write_text("lines.linewidth: 37\n" if damage == "settings" else "")
    (home / name).write_text(json.dumps(fonts) if damage == "fonts" else "")
    code = (
        "import matplotlib as mpl\nfrom matplotlib.font_manager import fontManager\n"
        'assert mpl.rcParams["lines.linewidth"] != 37\n'
        'assert "DejaVu Sans" in fontManager.get_font_names() and "cmr10" in fontManager.get_font_names()'
    )
    assert run(book, code, capfd)[0] == 0
    wrong = {name: value for name, value in project.kernel_environment(book).items() if name != "MPLCONFIGDIR"}
    monkeypatch.setattr(project, "kernel_environment", lambda root: wrong)
    assert run(book, code, capfd)[0] != 0


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


@pytest.mark.parametrize(("code", "outputs"), [(SPEAKS, 6), (f"{SPEAKS};", 5)])  # a semicolon silences the 42
def test_what_nbval_ran_is_what_the_build_would_have_made(book, capfd, monkeypatch, code, outputs):
    assert run(book, code, capfd)[0] == 0
    page = book / "book" / "page.md"
    why, kept = results_of(book, page)
    assert why is None
    for name, value in project.kernel_environment(book).items():
        monkeypatch.setenv(name, value)
    again, _, error = build._run(project.read_notebook(book, page), str(page.parent), 60)
    assert error is None
    (kept,) = kept.values()
    assert len(again.cells[1].outputs) == outputs  # text, formula, text, anything, 42, figure
    assert kept.cells == again.cells and kept.metadata == again.metadata


def test_a_page_that_prints_something_else_the_next_time_fails(book, capfd):
    seen = book / "seen"
    code = f"from pathlib import Path\nseen = Path({str(seen)!r})\nprint(seen.exists() and 0)\nseen.touch()"
    assert run(book, code, capfd)[0] == 0  # False
    status, text = run(book, code, capfd)  # 0
    assert status != 0 and "book/page.md printed something else" in text
    seen.unlink()
    assert run(book, code, capfd)[0] == 0


@pytest.mark.parametrize("code", ["1 / 0", "import sys; print('careful', file=sys.stderr)"])
def test_what_fails_or_complains_is_left_to_the_build(book, code, capfd):
    run(book, code, capfd)
    why, kept = results_of(book, book / "book" / "page.md")
    assert why == "not executed yet" and not kept


def test_a_page_that_changes_while_nbval_runs_is_left_to_the_build(book, capfd):
    run(
        book,
        f"with open({str(book / 'book' / 'page.md')!r}, 'a') as page:\n    page.write('```{{code-cell}}\\n1\\n```\\n')",
        capfd,
    )
    assert results_of(book, book / "book" / "page.md")[0] == "not executed yet"


def test_every_notebook_of_the_book_is_converted(tmp_path):
    shutil.copytree(project.ROOT / "book", tmp_path / "book")
    shutil.copy(project.ROOT / "_toc.yml", tmp_path)
    written = notebooks.convert(tmp_path, tmp_path / "_build")
    assert len(written) == len(project.notebooks(project.ROOT)) > 3
    for path in written:
        assert any(cell.cell_type == "code" for cell in nbformat.read(path, as_version=4).cells)

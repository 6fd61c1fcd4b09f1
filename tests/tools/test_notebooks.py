"""The runner of the notebooks: it runs every one, a raising cell fails, and so does one that takes too long."""

import shutil

import nbformat
import pytest

from tools.build import notebooks, project

FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
---
"""


@pytest.fixture
def book(tmp_path):
    """A book of one notebook, with ten seconds a cell."""
    (tmp_path / "book").mkdir()
    config = (project.ROOT / "_config.yml").read_text()
    assert "  timeout: 120\n" in config
    (tmp_path / "_config.yml").write_text(config.replace("  timeout: 120\n", "  timeout: 10\n"))
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


def test_every_notebook_of_the_book_is_converted(tmp_path):
    shutil.copytree(project.ROOT / "book", tmp_path / "book")
    shutil.copy(project.ROOT / "_toc.yml", tmp_path)
    written = notebooks.convert(tmp_path, tmp_path / "_build")
    assert len(written) == len(project.notebooks(project.ROOT)) > 3
    for path in written:
        assert any(cell.cell_type == "code" for cell in nbformat.read(path, as_version=4).cells)

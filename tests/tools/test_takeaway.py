"""The notebooks to take away are plain, and the one file of all is complete."""

import io
import os
import zipfile

import nbformat
import pytest

from tools.build import project
from tools.release import takeaway

REMOTE = project.Remote("github.com", "someone/fork", "feature/x")
PAGE = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
---
# A page

:::{note}
Text.
:::

```{code-cell} ipython3
import lib

print(lib.__name__)
```
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one notebook and a library of one module; returns it with the executed notebooks."""
    root = tmp_path / "checkout"
    (root / "book").mkdir(parents=True)
    (root / "book" / "page.md").write_text(PAGE)
    (root / "book" / "references.bib").write_text("")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/page\n")
    (root / "_config.yml").write_text("parse: {myst_enable_extensions: [colon_fence]}\n")
    (root / "binder").mkdir()
    (root / "binder" / "requirements.txt").write_text("torch==1.2.3\n")
    (root / "lib" / "__pycache__").mkdir(parents=True)
    (root / "lib" / "__init__.py").write_text("")
    (root / "lib" / "__pycache__" / "x.pyc").write_text("")
    (root / "_build").mkdir()
    return root, {"book/page": project.read_notebook(root, root / "book" / "page.md")}


def write(checkout, monkeypatch, remote=None):
    root, notebooks = checkout
    monkeypatch.setattr(project, "remote", lambda root: remote)
    takeaway.write(root, notebooks, [], root / "_build")
    return nbformat.read(root / "_build" / "notebooks" / "book" / "page.ipynb", as_version=4)


def test_notebooks_are_plain_and_begin_with_the_hosted_cell_if_there_is_a_remote(checkout, monkeypatch):
    alone = write(checkout, monkeypatch)
    assert [cell.source for cell in alone.cells] == [
        "# A page\n\n> **Note**\n>\n> Text.",
        "import lib\n\nprint(lib.__name__)",
    ]
    hosted = write(checkout, monkeypatch, REMOTE)
    nbformat.validate(hosted)
    around = "[This page on the site](https://someone.github.io/fork/book/page.html)"
    assert hosted.cells[0].metadata.tags == ["hosted"]
    assert [c.source for c in hosted.cells[1:]] == [around, *(c.source for c in alone.cells), around]
    install = '%pip install -q "physics-of-learning @ git+https://github.com/someone/fork@feature/x"\n'
    assert install in hosted.cells[0].source


def test_one_file_holds_all_that_it_takes_and_is_the_same_each_time(checkout, monkeypatch):
    root, _ = checkout
    write(checkout, monkeypatch)
    path = root / "_build" / takeaway.ARCHIVE
    first = path.read_bytes()
    for file in (root / "lib" / "__init__.py", *(root / "_build" / "notebooks").rglob("*.ipynb")):
        os.utime(file, (0, 0))
    write(checkout, monkeypatch)
    assert path.read_bytes() == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        names = archive.namelist()
        inside = ["README.txt", "book/page.ipynb", "lib/__init__.py", "requirements.txt"]
        assert names == [f"physics-of-learning/{name}" for name in inside]
        assert archive.read(names[3]) == b"torch==1.2.3\n", "what a reader needs, and not the tools of the build"
        assert archive.read(names[1]) == (root / "_build" / "notebooks" / "book" / "page.ipynb").read_bytes()
        kinds = {(entry.external_attr >> 16, entry.date_time) for entry in archive.infolist()}
        assert kinds == {(0o644, takeaway.EPOCH)}

"""What a reader can take away: the executed notebook of each page, and all of them with the library in one file."""

import shutil
import zipfile
from pathlib import Path

import nbformat

from tools.build import project
from tools.release import plain

ARCHIVE = "notebooks.zip"
SENT_ALONG = {  # besides lib: what it takes to install and run, by its name there
    "requirements.txt": "binder/requirements.txt",
    "pyproject.toml": "pyproject.toml",
    "LICENSE": "LICENSE",
}
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same notebooks make the same file, whenever it is written

README = """The Physics of Learning: all notebooks of the book, executed.

Read them in JupyterLab or any other program that opens notebooks; begin with book/index.ipynb.

To run them you need Python 3.11 or newer. In this folder:

    python3 -m venv .venv
    .venv/bin/python -m pip install -r requirements.txt
    .venv/bin/python -m pip install --no-deps --no-build-isolation .
    .venv/bin/jupyter lab book/index.ipynb

On Windows write .venv\\Scripts in place of .venv/bin. The second step installs a PyTorch without the several
gigabytes of GPU libraries.

The code is under the BSD 3-Clause licence (LICENSE), the text and the figures are under CC BY 4.0.
"""


def with_hosted_cell(notebook, remote):
    """Put first the cell that installs ``lib`` where it is missing; without a remote there is nothing to install it
    from.
    """
    if remote is not None:
        cell = nbformat.v4.new_code_cell(
            remote.install_cell(project.extras(notebook)), metadata={"tags": ["hosted"]}, id="hosted"
        )
        notebook.cells.insert(0, cell)
    return notebook


def write(root, notebooks, rows, output):
    """Write the executed notebooks in plain Markdown below ``output``, and the file with all of them beside them.

    Parameters
    ----------
    root : Path        the checkout
    notebooks : dict   executed notebooks by page, in reading order
    rows : list        the ledger's rows, which the boxed corrections quote
    output : Path      the build folder
    """
    target = output / "notebooks"
    if target.exists():
        shutil.rmtree(target)
    known, remote = plain.sources(root, rows), project.remote(root)
    glossary = plain.glossary(root)
    for page, notebook in [*notebooks.items(), *([(plain.GLOSSARY, glossary)] if glossary else [])]:
        path = target / f"{page}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(with_hosted_cell(plain.notebook(notebook, page, known), remote), path)
    write_archive(root, target, output / ARCHIVE)


def write_archive(root, notebooks, path):
    """Write one file with the notebooks of a folder, the library that they import, and how to run them."""
    library = [file for file in (root / "lib").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    files = {file.relative_to(root): file for file in library}
    files |= {Path(name): root / place for name, place in SENT_ALONG.items() if (root / place).exists()}
    files |= {file.relative_to(notebooks): file for file in notebooks.rglob("*.ipynb")}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, Path("README.txt"), README.encode())
        for name in sorted(files):
            _add(archive, name, files[name].read_bytes())


def _add(archive, name, content):
    entry = zipfile.ZipInfo(f"physics-of-learning/{name.as_posix()}", EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)

"""The notebooks that a reader runs: complete, linked among themselves, quickly written, and never over his work."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import nbgrader
import pytest

from tools.build import project
from tools.release import plain, reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("reader") / "notebooks"
    written, changed = reader.write(project.ROOT, target)
    assert len(written) == len(project.notebooks(project.ROOT)) + 1 and changed == []
    return target


def text(path):
    return "\n\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")


def test_every_link_opens_a_notebook_and_every_term_its_heading(folder):
    headings = {
        line[4:].replace(" ", "-")
        for line in text(folder / f"{plain.GLOSSARY}.ipynb").split("\n")
        if line.startswith("### ")
    }
    terms = 0
    for path in folder.rglob("*.ipynb"):
        for link in re.findall(r"\]\(([^)#]*\.ipynb)(#[^)]*)?\)", text(path)):
            assert (path.parent / link[0]).resolve().is_file(), (path, link)
            if link[1]:
                terms += 1
                assert unquote(link[1][1:]) in headings, (path, link)
    assert terms > 100 and len(headings) > 50


def test_a_page_knows_its_neighbours_and_its_sources(folder):
    page = text(folder / "book" / "foundations" / "committee-in-general.ipynb")
    first, last = page.split("\n\n")[0], page.split("\n\n")[-1]
    assert first == last and "← " in first and "[Contents](../index.ipynb)" in first and " →" in first
    assert "**Printed:**" in page and "**Right:**" in page and "Symbols of this chapter" in page
    assert "of 0" not in text(folder / "book" / "index.ipynb"), "the status counts zero claims"


def test_work_is_kept_and_the_rest_is_renewed(folder):
    assert reader.write(project.ROOT, folder) == ([], [])
    mine, old = (folder / f"book/foundations/{name}.ipynb" for name in ("langevin", "gaussian-averages"))
    before = {path: path.read_bytes() for path in (mine, old)}
    mine.write_text("mine")
    old.write_text("of an earlier version")
    manifest = folder / reader.MANIFEST
    sums = json.loads(manifest.read_text())
    sums["book/foundations/gaussian-averages"] = reader.hashlib.sha256(b"of an earlier version").hexdigest()
    manifest.write_text(json.dumps(sums))
    for _ in range(2):
        written, changed = reader.write(project.ROOT, folder)
        assert changed == ["book/foundations/langevin"] and mine.read_text() == "mine"
    assert old.read_bytes() == before[old]
    mine.unlink()
    assert reader.write(project.ROOT, folder) == (["book/foundations/langevin"], [])
    assert mine.read_bytes() == before[mine]


def test_the_instructors_buttons_are_those_of_an_extension_that_is_installed(folder):
    settings = json.loads((folder / ".jupyter" / "labconfig" / "page_config.json").read_text())
    (name,) = settings["disabledExtensions"]
    package = Path(nbgrader.__file__).parents[4] / "share" / "jupyter" / "labextensions" / name / "package.json"
    assert json.loads(package.read_text())["name"] == name

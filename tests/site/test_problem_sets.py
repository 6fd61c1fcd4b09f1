"""The site offers the student editions of the problem sets, and no line that only an instructor may see."""

import html
import json
import re
import zipfile

import course
import nbformat
import pytest

from tools.build import project
from tools.course import assignments
from tools.site import site_checks

NAMES = assignments.names(project.ROOT)


@pytest.fixture(scope="module")
def published(site):
    """Every line of text that the site offers, in pages, notebooks and archives: a dict from line to a file that has
    it.
    """
    found = {}
    for path in site.rglob("*"):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                texts = [_text(name, archive.read(name)) for name in archive.namelist()]
        elif path.is_file() and "_static" not in path.parts:
            texts = [_text(path.name, path.read_bytes())]
        else:
            continue
        for text in texts:
            found |= dict.fromkeys(course.lines(text), path.relative_to(site).as_posix())
    return found


def _text(name, content):
    """The text of a file: what a page shows, what the cells of a notebook hold; nothing for a picture."""
    if name.endswith(".ipynb"):
        return "\n".join("".join(cell["source"]) for cell in json.loads(content)["cells"])
    if name.endswith((".html", ".md", ".txt", ".py", ".js", ".json", ".toml")):
        text = content.decode("utf-8")
        return html.unescape(re.sub(r"<[^>]+>", "", text)) if name.endswith(".html") else text
    return ""


def test_the_text_of_the_site_is_read(published):
    assert any(line.startswith("from lib.services import ") for line in published)
    assert any(where.startswith("assignments/") for where in published.values())
    assert any(where.endswith(".zip") for where in published.values())


@pytest.fixture(scope="module")
def written_elsewhere():
    """Every line of the chapters and of the library."""
    sources = [*project.book_sources(project.ROOT), *(project.ROOT / "lib").rglob("*.py")]
    return set().union(*(course.lines(path.read_text(encoding="utf-8")) for path in sources))


@pytest.mark.parametrize("name", NAMES)
def test_no_solution_and_no_hidden_test_is_published(published, written_elsewhere, name):
    secrets = course.secrets(project.ROOT, name)
    common = secrets & written_elsewhere  # such as a loop over steps; a solution that a chapter tells would be longer
    assert len(common) <= 3, common
    assert not {line: published[line] for line in secrets - common if line in published}


def test_the_page_offers_every_student_edition(site):
    rows = site_checks.read(site_checks.html_path(site, "book/assignments")).select("table.problem-sets tbody tr")
    assert len(rows) == len(NAMES)
    for name, row in zip(NAMES, rows, strict=True):
        about = assignments.read(project.ROOT, name).metadata["assignment"]
        links = [link["href"] for link in row.select("a[href]")]
        assert f"../assignments/{name}.ipynb" in links and len(links) == 1 + len(about["chapters"])
        assert about["title"] in row.get_text()
        notebook = nbformat.read(site / "assignments" / f"{name}.ipynb", as_version=4)
        nbformat.validate(notebook)
        assert not any("problem" in cell.metadata or cell.get("outputs") for cell in notebook.cells)
        blanks = [cell for cell in notebook.cells if re.search("# YOUR CODE HERE\n|^YOUR ANSWER HERE$", cell.source)]
        source = assignments.read(project.ROOT, name)
        assert len(blanks) == len(assignments.of_kind(source, "answer") + assignments.of_kind(source, "essay"))

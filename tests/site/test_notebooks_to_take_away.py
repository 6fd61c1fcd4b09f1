"""The published notebooks as they are read without the site: plain Markdown with the site's numbers, and all of them in
one file.
"""

import html
import zipfile

import nbformat
import pytest

from tools.build import project
from tools.release import plain, reader, takeaway
from tools.site import numbering, site_checks

NOTEBOOKS = [project.page_name(project.ROOT, path) for path in project.notebooks(project.ROOT)]
TOP = "physics-of-learning/"


def shown(marked, label, place):
    """What the page shows as the number of a place; `marked`: its elements by their ids."""
    if place.kind == "section":
        return place.name if label in marked else None
    if place.kind == "equation":
        return marked[f"equation-{label}"].select_one(".eqno").get_text().strip("#¶ ")
    return marked[label].select_one(".caption-number").get_text().strip()


def test_numbers_are_those_of_the_site(site):
    book, found = numbering.read(project.ROOT), {}
    for page in {place.page for place in book.places.values()}:
        soup = site_checks.read(site_checks.html_path(site, page))
        marked = {element["id"]: element for element in soup.find_all(id=True)}  # once: a search takes a while
        found |= {label: shown(marked, label, p) for label, p in book.places.items() if p.page == page}
    assert len(found) > 800 and found == {label: place.name for label, place in book.places.items()}


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_published_notebook_is_plain_and_leads_to_its_neighbours(site, page):
    path = site / "_sources" / f"{page}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert ":::" not in text and "```{" not in text and site_checks.ROLE.search(text) is None
    links = [link.split(")")[0] for link in text.split("](")[1:]]
    assert all((path.parent / link).is_file() for link in links if link.endswith(".ipynb"))
    figures = [cell for cell in notebook.cells if "figure" in cell.metadata.get("mystnb", {})]
    assert text.count("**Fig. ") == len(figures)
    for cell in figures:
        shown = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
        (image,) = [text for text in shown if "<img" in text]
        assert image.startswith(f'<img alt="{html.escape(cell.metadata.mystnb.image.alt)}"')


def test_all_notebooks_are_offered_in_one_file_that_can_be_run(site):
    soup = site_checks.read(site_checks.html_path(site, "book/run"))
    assert soup.select(f"article a[href='../{takeaway.ARCHIVE}']")
    with zipfile.ZipFile(site / takeaway.ARCHIVE) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        pages = [*NOTEBOOKS, plain.GLOSSARY]
        assert {name for name in names if name.endswith(".ipynb")} == {f"{TOP}{page}.ipynb" for page in pages}
        for page in NOTEBOOKS:  # valid, executed: test_site
            assert archive.read(f"{TOP}{page}.ipynb") == (site / "_sources" / f"{page}.ipynb").read_bytes()
        modules = {path.relative_to(project.ROOT).as_posix() for path in (project.ROOT / "lib").rglob("*.py")}
        assert {TOP + name for name in (*modules, "README.txt", *takeaway.SENT_ALONG)} <= names
        assert not any("__pycache__" in name or "assignments" in name for name in names)


def test_what_a_reader_runs_quotes_the_claims_as_the_site_does(ledger_json):
    """Written without executing, the notebooks have the same rows in the same order."""
    notebooks = {page: project.read_notebook(project.ROOT, project.ROOT / f"{page}.md") for page in NOTEBOOKS}
    kept = ("id", "chapter", "verdict", "printed", "right", "statement", "locator")
    declared, built = (
        [{key: row[key] for key in kept} for row in rows]
        for rows in (reader.declared_rows(project.ROOT, notebooks), ledger_json)
    )
    assert declared == built

"""Checks of the built pages.

What each check means is in tools/site/site_checks.py, and tests/tools/test_site_checks.py breaks each one.
"""

import nbformat
import pytest

from lib.services import claims
from tools.build import dependencies, project
from tools.site import figure_text, library, site_checks
from tools.sphinx_ext import ledger_pages

PAGES = project.toc_pages(project.ROOT)
NOTEBOOKS = [path.relative_to(project.ROOT).with_suffix("").as_posix() for path in project.notebooks(project.ROOT)]
CHAPTERS = [page for page in NOTEBOOKS if page.count("/") > 1]  # the pages of a part
MODULES = library.modules(project.ROOT)


@pytest.fixture(params=PAGES)
def page(request):
    return request.param


@pytest.fixture
def soup(site, page):
    return site_checks.read(site_checks.html_path(site, page))


def test_site_has_the_pages_of_the_toc(site):
    assert site_checks.pages(project.ROOT, site) == []


def test_page_shows_no_error_and_no_raw_markup(soup):
    assert site_checks.content(soup) == []


def test_figures_have_captions_and_alt_texts(soup):
    assert site_checks.figures(soup) == []


def test_the_words_of_figures_can_be_read_on_a_telephone(site, page, soup):
    folder = site_checks.html_path(site, page).parent
    drawings = [(folder / image["src"]) for image in soup.select("article img[src$='.svg']")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in drawings if path.is_file()}
    texts |= {box["id"]: str(box.select_one("svg")) for box in soup.select("figure.explorable")}
    texts = {name: text.replace("viewbox", "viewBox") for name, text in texts.items()}
    sizes = {name: figure_text.smallest(text) for name, text in texts.items() if "viewBox" in text}
    assert {name: size for name, size in sizes.items() if size < 8} == {}


def test_page_reads_offline(site, page, soup):
    assert site_checks.assets(soup) == []
    assert site_checks.mathjax(site_checks.html_path(site, page), soup) == []


def test_links_lead_somewhere(site, page, soup, links):
    assert links.problems(site_checks.html_path(site, page), soup) == []


def test_launch_links_and_download(site, page, soup):
    assert site_checks.launch(project.ROOT, site, page, soup) == []


def test_shared_link_shows_title_and_description(site, page, soup):
    assert site_checks.preview(project.ROOT, site, page, soup) == []


def test_page_for_a_wrong_address_leads_back(site):
    assert site_checks.not_found(project.ROOT, site) == []


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_published_notebook_was_executed(site, page):
    notebook = nbformat.read(site / "_sources" / f"{page}.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    hosted = [cell for cell in code if "hosted" in cell.metadata.get("tags", [])]
    assert hosted == ([code.pop(0)] if project.remote(project.ROOT) else [])
    assert code and all(cell.execution_count for cell in code)
    assert any(cell.outputs for cell in code)


@pytest.mark.parametrize("page", CHAPTERS)
def test_chapter_has_its_parts(site, page):
    soup = site_checks.read(site_checks.html_path(site, page))
    counts = {
        what: len(soup.select(f"article .{what}"))
        for what in ("objectives", "theorem", "exercise", "solution", "ledger-line")
    }
    assert counts["objectives"] == 1 and counts["theorem"] >= 1 and counts["ledger-line"] >= 1, counts
    assert 3 <= counts["exercise"] <= 6 and counts["solution"] == counts["exercise"], counts


def test_every_page_has_one_title(site):
    for page in PAGES:
        assert len(site_checks.read(site_checks.html_path(site, page)).select("article h1")) == 1, page


def test_ledger_covers_every_claim(site, ledger_json):
    assert [row["id"] for row in ledger_json] == list(claims.load())
    assert site_checks.ledger_rows(site, ledger_json) == []


def test_each_correction_is_listed_with_its_proof(site, ledger_json):
    corrections = ledger_pages.corrections(ledger_json)
    boxes = site_checks.read(site_checks.html_path(site, "book/corrections")).select("article div.correction")
    assert len(boxes) == len(corrections)
    for (name, row), box in zip(corrections, boxes):
        assert row["verdict"] == row["kind"], f"{row['id']} is not proven in any chapter"
        assert (
            box.get_text().strip().startswith(f"{name}: ")
            and row["id"] in box.get_text()
            and box.select(".proving-cell")
        ), row["id"]


def test_every_glossary_term_is_linked_from_a_chapter(site):
    terms = {
        node["id"]
        for node in site_checks.read(site_checks.html_path(site, "book/glossary")).select("dl.glossary dt[id]")
    }
    used = set()
    for page in PAGES:
        for link in site_checks.read(site_checks.html_path(site, page)).select(
            "article a[href*='glossary.html#term-']"
        ):
            used.add(link["href"].split("#")[1])
    assert terms and terms == used


def test_index_of_results_links_every_boxed_result(site):
    boxes = [
        box["id"]
        for page in CHAPTERS
        for box in site_checks.read(site_checks.html_path(site, page)).select("article div.proof")
    ]
    listed = site_checks.read(site_checks.html_path(site, "book/results")).select("article li a")
    assert boxes and [link["href"].split("#")[1] for link in listed] == boxes


def test_index_of_results_links_chapters_and_names_their_parts(site):
    soup = site_checks.read(site_checks.html_path(site, "book/results"))
    links = [
        link["href"].removesuffix(".html") for link in soup.select("article p > a.reference") if "#" not in link["href"]
    ]
    assert [f"book/{link}" for link in links if f"book/{link}" in CHAPTERS] == CHAPTERS
    captions = [rubric.get_text().split(":")[0] for rubric in soup.select("article p.rubric.part")]
    assert captions == [f"Part {number}" for number in ("I", "II", "III", "IV", "V", "VI", "VII")]


def test_chapters_figures_and_results_are_numbered_through(site):
    """A part without ``numbered: true`` would number its figures and results apart from the others."""
    for number, page in enumerate(CHAPTERS, 1):
        soup = site_checks.read(site_checks.html_path(site, page))
        shown = soup.select("article figcaption .caption-number, article div.proof .caption-number")
        labels = [label.get_text().split()[1] for label in shown]
        assert labels and all(label.startswith(f"{number}.") for label in labels), page


def test_general_index_leads_into_every_chapter(site):
    links = [
        link["href"]
        for link in site_checks.read(site_checks.html_path(site, "book/general-index")).select("article li a")
    ]
    for page in CHAPTERS:
        assert any(page.removeprefix("book/") + ".html#index-" in link for link in links), page


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_every_figure_names_the_functions_that_made_it(site, page):
    assert site_checks.computed_by(project.ROOT, page, site_checks.read(site_checks.html_path(site, page))) == []


@pytest.mark.parametrize("module", MODULES.values(), ids=list(MODULES))
def test_module_of_the_library_has_its_page(site, links, module):
    path = site_checks.html_path(site, module.page)
    soup = site_checks.read(path)
    assert site_checks.content(soup) + site_checks.assets(soup) + links.problems(path, soup) == []
    lines = list(soup.select_one("article pre").get_text().splitlines())
    for item in module.definitions.values():
        place = soup.find(id=library.anchor(item.name))
        assert place.select_one(f"#line-{item.first}") and not place.select_one(f"#line-{item.last + 1}"), item.name
    assert [line.lstrip("0123456789 ") for line in lines] == [
        line.lstrip("0123456789 ") for line in module.text.splitlines()
    ]


def test_library_lists_every_module(site):
    listed = [
        link["href"] for link in site_checks.read(site_checks.html_path(site, "book/library")).select("article li a")
    ]
    assert sorted(listed) == sorted(f"../{module.page}.html" for module in MODULES.values())


def test_map_of_the_chapters_links_each_once(site):
    drawing = site_checks.read(site_checks.html_path(site, "book/instructors")).select_one(
        "article .dependency-map svg"
    )
    assert sorted(link["href"] for link in drawing.select("a")) == sorted(
        f"{page.removeprefix('book/')}.html" for page in CHAPTERS
    )
    assert len(drawing.select("path.arrow")) == len(list(dependencies.arrows(dependencies.chapters(project.ROOT))))

"""Checks of the built pages.

What each check means is in tools/site/site_checks.py, and tests/tools/test_site_checks.py breaks each one.
"""

import re

import nbformat
import pytest

from lib.services import claims
from tools.build import project
from tools.site import figure_text, site_checks

PAGES = project.toc_pages(project.ROOT)
NOTEBOOKS = [project.page_name(project.ROOT, path) for path in project.notebooks(project.ROOT)]
CHAPTERS = [page for page in NOTEBOOKS if page.count("/") > 1]  # the pages of a part


@pytest.fixture
def soups(site):
    """Reads a page of the site."""
    return lambda page: site_checks.read(site_checks.html_path(site, page))


def test_site_has_the_pages_of_the_toc(site):
    assert site_checks.pages(project.ROOT, site) == []


@pytest.mark.parametrize("page", PAGES)
def test_page(site, soups, links, page):
    path, soup = site_checks.html_path(site, page), soups(page)
    found = site_checks.content(soup) + site_checks.figures(soup) + links.problems(path, soup)
    found += site_checks.launch(project.ROOT, site, page, soup)
    found += [] if len(soup.select("article h1")) == 1 else ["the page has not one title"]
    described = [node["content"] for node in soup.select("meta[property='og:description']")]
    if len(described) != 1 or re.search(r"[\\$`{}]", described[0]) or not 20 <= len(described[0]) <= 200:
        found.append(f"a shared link is not described in a sentence or two: {described}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_the_words_of_figures_can_be_read_on_a_telephone(site, soups, page):
    folder, soup = site_checks.html_path(site, page).parent, soups(page)
    drawings = [(folder / image["src"]) for image in soup.select("article img[src$='.svg']")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in drawings if path.is_file()}
    texts |= {box["id"]: str(box.select_one("svg")) for box in soup.select("figure.explorable")}
    texts = {name: text.replace("viewbox", "viewBox") for name, text in texts.items()}
    sizes = {name: figure_text.smallest(text) for name, text in texts.items() if "viewBox" in text}
    assert {name: size for name, size in sizes.items() if size < 8} == {}


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


@pytest.mark.parametrize(("number", "page"), list(enumerate(CHAPTERS, 1)), ids=CHAPTERS)
def test_chapter_has_its_parts_and_its_number(soups, number, page):
    """A part without ``numbered: true`` would number its figures and results apart from the others."""
    soup = soups(page)
    kinds = ("objectives", "theorem", "exercise", "solution", "ledger-line")
    counts = {what: len(soup.select(f"article .{what}")) for what in kinds}
    assert counts["objectives"] == 1 and counts["theorem"] >= 1 and counts["ledger-line"] >= 1, counts
    assert 3 <= counts["exercise"] <= 6 and counts["solution"] == counts["exercise"], counts
    shown = soup.select("article figcaption .caption-number, article div.proof .caption-number")
    labels = [label.get_text().split()[1] for label in shown]
    assert labels and all(label.startswith(f"{number}.") for label in labels), labels


def test_ledger_covers_every_claim(site, ledger_json):
    assert [row["id"] for row in ledger_json] == list(claims.declared())
    assert site_checks.ledger_rows(site, ledger_json) == []


def test_each_correction_is_listed_with_its_proof_errors_first(soups, ledger_json):
    wanted = [row for row in ledger_json if row["printed"]]
    boxes = {box["id"]: box for box in soups("book/corrections").select("article div.correction")}
    assert wanted and len(boxes) == len(wanted)
    for row in wanted:
        assert row["verdict"] == row["kind"], f"{row['id']} is not proven in any chapter"
        box = boxes[row["anchor"].replace("ledger-", "correction-", 1)]
        assert box.select(f"a[href$='{row['chapter']}.html#{row['anchor']}']"), row["id"]
    kinds = [name for box in boxes.values() for name in box["class"] if name.startswith("correction-")]
    assert kinds == sorted(kinds, key=["correction-error", "correction-slip", "correction-conversion"].index)


def test_pages_of_many_formulas_do_not_need_mathjax(soups):
    pages = [page for page in PAGES if page.startswith("book/ledger/")]
    for page in [*pages, "book/corrections", "book/notation", "book/results"]:
        assert soups(page).select("article math") and not soups(page).select("script[src*='mathjax'], .math"), page


def test_numbers_of_the_overview_count_the_rows_that_they_lead_to(soups):
    links = soups("book/ledger").select("table a[href*='?']")
    for link in links:
        page, key, value = re.fullmatch(r"\.\./book/ledger/(\w+)\.html\?(\w+)=(\w+)", link["href"]).groups()
        rows = soups(f"book/ledger/{page}").select(f"li.claim[data-{key}~='{value}']")
        assert len(rows) == int(link.get_text()), link
    assert len(links) > 30


def test_every_glossary_term_is_linked_from_a_chapter(soups):
    terms = {node["id"] for node in soups("book/glossary").select("dl.glossary dt[id]")}
    links = [link["href"] for page in PAGES for link in soups(page).select("article a[href*='glossary.html#term-']")]
    assert terms and terms == {link.split("#")[1] for link in links}


def test_index_of_results_links_every_boxed_result_of_every_chapter_in_its_part(soups):
    soup = soups("book/results")
    boxes = [box["id"] for page in CHAPTERS for box in soups(page).select("article div.proof")]
    assert boxes and [link["href"].split("#")[1] for link in soup.select("article li a")] == boxes
    links = [link["href"].removesuffix(".html") for link in soup.select("article p > a.reference")]
    assert [f"book/{link}" for link in links if f"book/{link}" in CHAPTERS] == CHAPTERS
    assert [item for item in soup.select("article li") if len(item.get_text().partition(": ")[2].split()) < 6] == []
    captions = [rubric.get_text().split(":")[0] for rubric in soup.select("article p.rubric.part")]
    assert captions == [f"Part {number}" for number in ("I", "II", "III", "IV", "V", "VI", "VII")]


def test_general_index_leads_into_every_chapter(soups):
    links = " ".join(link["href"] for link in soups("book/general-index").select("article li a"))
    assert [page for page in CHAPTERS if page.removeprefix("book/") + ".html#index-" not in links] == []


def test_every_figure_says_what_it_comes_from(soups):
    figures = [figure for page in NOTEBOOKS for figure in soups(page).select("article figure:has(img)")]
    lines = [[line.get_text() for line in figure.select(".computed-by")] for figure in figures]
    assert figures and all(len(found) == 1 and found[0].startswith("Computed ") for found in lines)


def test_the_library_leads_to_its_source_and_back(site, links):
    sources = sorted((site / "_modules" / "lib").rglob("*.html"))
    assert len(sources) > 50
    assert [links.problems(path, site_checks.read(path)) for path in sources] == [[]] * len(sources)


def test_the_table_of_prerequisites_names_each_chapter_once(soups):
    wanted = [f"{page.removeprefix('book/')}.html" for page in CHAPTERS]
    links = [link["href"] for link in soups("book/instructors").select("table.prerequisites td:first-child a")]
    assert [link for link in links if link in wanted] == wanted


def test_the_first_page_states_each_result_and_opens_four_doors(soups):
    """A card has a picture, a sentence, a number out of the ledger, and leads to its part; no part is left out."""
    soup = soups("book/index")
    cards, doors = soup.select("section#five-results > section"), soup.select("section#four-doors > section")
    assert [len(card.select("figure img")) for card in cards] == [1] * 5 and len(doors) == 4
    assert all(card.select("p strong a[href*='#ledger-']") for card in cards)
    parts = [link["href"] for card in cards for link in card.select("a[href^='summaries/']")]
    folders = list(dict.fromkeys(page.split("/")[1] for page in CHAPTERS))
    assert parts == [f"summaries/{name}.html" for name in folders[1:-1]]  # those with a source
    assert all(door.select("p a") for door in doors) and len(soup.select("figure.explorable")) == 1
    first = soup.select_one("article h1").find_next("p").get_text().split()
    assert len(first) <= 60, "what, for whom and why, in fifty words"


def test_an_open_problem_has_its_number_and_leads_to_its_place(soups):
    problems = soups("book/open-problems").select("article li")
    numbers = [len(problem.select("a[href*='#ledger-']")) for problem in problems]
    assert len(problems) >= 12 and sum(map(bool, numbers)) >= len(problems) - 2
    assert all(problem.select("em") and problem.select("a.internal, a.reference") for problem in problems)

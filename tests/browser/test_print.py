"""Pages on paper: light, with words unfolded and cells folded, nothing wider than the sheet, links that lead on."""

import io
import re
import unicodedata

import pytest
from pypdf import PdfReader

from tools.release import pdf
from tools.site import browser_checks

CHAPTER, OTHER = "book/foundations/committee-in-general", "book/foundations/approaching-the-teacher"
SHEET = {
    "width": round((210 - 2 * 18) / 25.4 * 96),
    "height": 900,
}  # of A4, without the margins that the style gives it

OUT = """() => [...document.querySelectorAll("article *")].filter(
    node => node.checkVisibility() && node.getBoundingClientRect().width
        && !node.closest("mjx-assistive-mml") && !node.parentElement.closest("svg")
        && node.getBoundingClientRect().right > document.documentElement.clientWidth + 1
).slice(0, 5).map(node => `${node.localName}.${node.className}: ${node.textContent.trim().slice(0, 60)}`)"""


def words(text):
    """A text without its spaces and ligatures."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


@pytest.fixture(scope="module")
def printed(chromium, server):
    """The two chapters as the printed book has them."""
    return {one.page: one for one in pdf.print_pages(chromium, server, [CHAPTER, OTHER])}


def test_a_dark_page_is_printed_as_a_light_one(opened, printed):
    with opened(f"{CHAPTER}.html", color_scheme="dark", viewport=browser_checks.DESK) as (tab, faults):
        dark = PdfReader(io.BytesIO(pdf.print_page(tab))).pages
        assert tab.evaluate("document.documentElement.dataset.theme") == "dark" and faults == []
    light = PdfReader(io.BytesIO(printed[CHAPTER].file)).pages
    assert [sheet.get_contents().get_data() for sheet in dark] == [sheet.get_contents().get_data() for sheet in light]


def test_words_are_unfolded_and_cells_are_their_summary(opened, printed):
    text = words("".join(sheet.extract_text() for sheet in PdfReader(io.BytesIO(printed[CHAPTER].file)).pages))
    with opened(f"{CHAPTER}.html") as (tab, _):
        browser_checks.equations(tab)
        tab.emulate_media(media="print")
        shown = tab.locator("details.hide > summary").all_inner_texts()
        for folded in ("details.symbols td", "details.source-and-page a", ".solution p"):
            found = tab.locator(f"{folded}:not(:has(mjx-container))").all_text_contents()
            assert found, folded
            shown += found
        cells = tab.locator("details.hide pre").all_text_contents()
        for gone in (".explorable-control", ".bd-sidebar-primary", ".prev-next-area", ".toggle-button", ".headerlink"):
            assert tab.locator(gone).count() and tab.locator(f"{gone}:visible").count() == 0, gone
    assert [part for part in map(words, shown) if part not in text] == []
    assert len(cells) > 5 and [cell for cell in cells if words(cell)[:60] in text] == []


@pytest.mark.parametrize("page", [CHAPTER, "book/notation", "book/corrections", "book/bibliography", "book/index"])
def test_nothing_is_wider_than_the_sheet(opened, page):
    with opened(f"{page}.html", viewport=SHEET) as (tab, faults):
        tab.emulate_media(media="print")
        assert browser_checks.equations(tab) + tab.evaluate(OUT) + faults == []


def test_the_book_is_printed_with_its_contents(chromium, server, printed):
    groups = {"Part I: Foundations": [printed[CHAPTER], printed[OTHER]]}
    file, count = pdf.assemble(chromium, server, "The Book", "Printed here.", groups, None)
    book = PdfReader(io.BytesIO(file))
    parts = [len(PdfReader(io.BytesIO(one.file)).pages) for one in groups["Part I: Foundations"]]
    assert len(book.pages) == count == 1 + sum(parts)
    assert {sheet.mediabox.width.__round__() for sheet in book.pages} == {595}, "A4"
    contents = [note.get_object()["/Dest"][0].idnum for note in book.pages[0]["/Annots"]]
    assert contents == [book.pages[number].indirect_reference.idnum for number in (1, 1 + parts[0])]
    assert re.search(rf"{1 + 1 + parts[0]}\s", book.pages[0].extract_text())
    part, (first, sections, *_) = book.outline
    assert part.title == "Part I: Foundations" and first.title.endswith("The committee in general")
    places = [book.get_destination_page_number(one) for one in sections]
    assert len(places) > 6 and places == sorted(places) and len(set(places)) > 4
    crossing = [note.get_object() for sheet in book.pages[1 : 1 + parts[0]] for note in sheet.get("/Annots", [])]
    second = {sheet.indirect_reference.idnum for sheet in book.pages[1 + parts[0] :]}
    assert any(note["/Dest"][0].idnum in second for note in crossing if "/Dest" in note)
    assert all(note["/A"]["/URI"].startswith("https://") for note in crossing if "/A" in note)


def test_paper_has_the_same_file_each_time(chromium, server):
    made = [list(pdf.print_pages(chromium, server, ["book/paths"])) for _ in range(2)]
    made = [pdf.merge("A", prints[0].file, {"": prints}, server) for prints in made]
    assert made[0] == made[1]

"""The reader's layer and the checker's: numbers for computed equations, one line of checks a section, the folded
section about the source, and the symbols of a chapter.
"""

from small_site import ROW, build, read, write

LEDGER, LAYERS, SYMBOLS = (f"tools.sphinx_ext.{name}" for name in ("ledger_pages", "layers", "symbols"))
LINE = '```{{raw}} html\n<p class="ledger-line" id="ledger-{0}">Check {0}.</p>\n```\n'


def test_a_computed_equation_has_the_number_and_the_place_of_its_label(tmp_path):
    text = "# Page\n\n$$\na\n$$ (eq-typed)\n\n```{math}\n%eq-shown\nb\n```\n\nSee {eq}`eq-shown`, and {eq}`eq-typed`.\n"
    write(tmp_path, {"index": text})
    assert build(tmp_path, LAYERS, first="index") == (0, "")
    soup = read(tmp_path, "index")
    typed, shown = soup.select("div.math")
    assert (typed.select_one(".eqno").get_text()[:3], shown.select_one(".eqno").get_text()[:3]) == ("(1)", "(2)")
    assert "eq-shown" not in shown.get_text() and "b" in shown.get_text()
    links = {link.get_text(): link["href"] for link in soup.select("p a.reference")}
    assert links["(2)"] == "#equation-eq-shown" and soup.find(id="equation-eq-shown") is shown


def test_checks_stand_in_one_line_at_the_end_of_their_section(tmp_path):
    text = (
        f"# Page\n\n## One\n\n{LINE.format('a')}\nText.\n\n{LINE.format('b')}\n### Under\n\n{LINE.format('c')}\nMore.\n"
    )
    write(tmp_path, {"index": text + "\n## Two\n\nNothing.\n"})
    assert build(tmp_path, LAYERS, first="index") == (0, "")
    soup = read(tmp_path, "index")
    one, under = (soup.find(id=name) for name in ("one", "under"))
    assert [box.summary.get_text() for box in soup.select("details.checks")] == ["2 checks passed", "1 check passed"]
    first, second = soup.select("details.checks")
    assert first.parent is one and first.find_next_sibling().get("id") == "under"
    assert second.parent is under and second.find_previous_sibling().get_text() == "More."
    assert [line["id"] for line in soup.select("p.ledger-line")] == ["ledger-a", "ledger-b", "ledger-c"]


ROWS = [
    {"citation": "key", "place": 1, "statement": "One is *one*."},
    {"id": "fdt/b", "citation": "key", "verdict": "slip", "kind": "slip", "printed": "two", "right": "one", "place": 2},
    {"id": "own/c", "citation": None, "verdict": "holds", "place": 3, "statement": "Ours."},
    {"id": "fdt/d", "citation": "key", "chapter": "book/other", "place": 4, "statement": "Elsewhere."},
]


def test_the_source_has_one_folded_section_a_chapter(tmp_path):
    page = "# Chapter\n\n```{source-and-page}\nThe hedges.\n```\n"
    pages = {"index": "# Start\n\n```{toctree}\nbook/fluctuations/a\n```\n", "book/fluctuations/a": page}
    write(tmp_path, pages, ROWS)
    assert build(tmp_path, LEDGER, first="index") == (0, "")
    box = read(tmp_path, "book/fluctuations/a").select_one("details.source-and-page")
    assert box.summary.get_text() == "2 claims of the source: 1 reproduced, 1 corrected (a slip)"
    text = " ".join(box.get_text(" ").split())
    assert text.index("The hedges.") < text.index("eq. (1). One is one .") < text.index("Slip 1: A source")
    assert "Ours." not in text and "Elsewhere." not in text
    assert box.find(id="correction-fdt-b") is not None


def test_a_fault_that_the_conversion_may_have_made_is_counted_nowhere(tmp_path):
    rows = [ROWS[0], ROWS[1] | {"verdict": "conversion", "kind": "conversion"}]
    index = "# Start\n\n```{toctree}\nbook/fluctuations/a\n```\n"
    write(tmp_path, {"index": index, "book/fluctuations/a": "# Chapter\n\n```{source-and-page}\n```\n"}, rows)
    assert build(tmp_path, LEDGER, first="index") == (0, "")
    line = read(tmp_path, "book/fluctuations/a").select_one("details.source-and-page").summary.get_text()
    assert line == "One claim of the source: 1 reproduced; beside them 1 perhaps only in the text we worked from"


def test_a_page_without_a_claim_of_a_source_has_no_such_section_but_for_words(tmp_path):
    write(tmp_path, {"index": "# Start\n\n```{source-and-page}\n```\n"}, [ROW])
    status, printed = build(tmp_path, LEDGER, first="index")
    assert status != 0 and "stands empty on a page without a claim of a source" in printed
    write(tmp_path, {"index": "# Start\n\n```{source-and-page}\nIts hedges.\n```\n"}, [ROW])
    assert build(tmp_path, LEDGER, first="index") == (0, "")
    box = read(tmp_path, "index").select_one("details.source-and-page")
    said = " ".join(box.get_text(" ").split())
    assert said == "The source: its claims are tested on other pages Its hedges."


NOTATION = """# Notation

## Several

Chapters {ref}`ch-a` and {ref}`ch-c`.

| symbol | meaning |
| --- | --- |
| $N$ | inputs |

## Part

Chapter {ref}`ch-a`.

| symbol | meaning | defined |
| --- | --- | --- |
| $q$ | length | here |
"""


def test_a_chapter_shows_its_own_symbols_and_those_that_it_shares(tmp_path):
    page = "(ch-a)=\n# Chapter\n\n```{symbols}\n```\n"
    pages = {"index": "# Start\n\n```{toctree}\nbook/notation\nbook/a\nbook/c\n```\n", "book/notation": NOTATION}
    write(tmp_path, pages | {"book/a": page, "book/c": "(ch-c)=\n# Other\n"})
    assert build(tmp_path, SYMBOLS, first="index") == (0, "")
    box = read(tmp_path, "book/a").select_one("details.symbols")
    rows = [[cell.get_text() for cell in row.select("td")] for row in box.select("tbody tr")]
    assert [row[1:] for row in rows] == [["length", "here"], ["inputs", ""]]
    assert box.select_one("a")["href"] == "notation.html"


def test_a_page_that_the_notation_does_not_know_stops_the_build(tmp_path):
    pages = {"index": "# Start\n\n```{toctree}\nbook/notation\nbook/a\n```\n", "book/notation": NOTATION}
    write(tmp_path, pages | {"book/a": "(ch-b)=\n# Chapter\n\n```{symbols}\n```\n"})
    status, printed = build(tmp_path, SYMBOLS, first="index")
    assert status != 0 and "has no section that refers to book/a" in printed

"""What the ledger says on pages: verdicts, boxes, values in sentences; an id that does not serve stops the build."""

import pytest
from small_site import ROW, build, read, write

from tools.build import project
from tools.site import ledger_text
from tools.site.ledger_text import part_of, shown

EXTENSION = "tools.sphinx_ext.written"
CHAPTER = "book/fluctuations/a"
ROWS = [
    {"citation": "key", "place": 1, "statement": "One is *one*."},
    {
        "id": "fdt/b",
        "citation": "key",
        "verdict": "error",
        "kind": "error",
        "printed": "two",
        "right": "one",
        "place": 2,
    }
    | {"measured": True, "error": None, "expected": "one and one is two"},
    {"id": "fdt/c", "citation": "key", "verdict": "open", "reason": "no data", "at_size": None}
    | dict.fromkeys(("measured", "error", "chapter", "anchor", "place")),
    {
        "id": "linear/d",
        "verdict": "holds",
        "measured": 3.2e-7,
        "error": None,
        "chapter": "book/other/d",
        "source": "Ours",
    },
]


def site(root, text, rows=ROWS, chapter="# Chapter\n\n(ledger-fdt-a)=\nText.\n"):
    index = f"# Start\n\n{text}\n\n```{{toctree}}\n{CHAPTER}\nbook/other/d\n```\n"
    write(
        root, {"index": index, CHAPTER: chapter, "book/other/d": "# Other\n"}, [{"at_size": None} | row for row in rows]
    )
    return build(root, EXTENSION, first="index")


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.0123, 0.004, "1.0123 ± 0.0040"),
        (-0.5159, None, "−0.516"),
        (5669.8, None, "5670"),
        (-0.9997, None, "−1.00"),
        (0.0, None, "0.00"),
        (3.2e-7, None, "3.20·10^−7"),
        (103.2, 12.0, "103 ± 12"),
        (24, None, "24"),
    ],
)
def test_numbers_for_a_sentence(value, error, text):
    assert shown(value, error) == text


def test_open_rows_belong_to_the_part_of_their_family():
    parts = part_of([ROW | row for row in ROWS])
    assert parts == dict.fromkeys(("fdt/a", "fdt/b", "fdt/c"), "fluctuations") | {"linear/d": "other"}


def test_values_and_counts_in_a_summary(tmp_path):
    text = (
        "Measured {ledger-value}`fdt/a` and {ledger-value}`linear/d`, see {correction-ref}`fdt/b`.\n\n"
        "```{part-ledger} fluctuations\n```\n\n```{part-ledger} other\n```"
    )
    assert site(tmp_path, text) == (0, "")
    soup = read(tmp_path, "index")
    links = {link.get_text(): link["href"] for link in soup.select("article p a")}
    assert links["1.0123 ± 0.0040"] == f"{CHAPTER}.html#ledger-fdt-a"
    assert "3.20·10−7" in links and soup.select_one("article p a sup").get_text() == "−7"
    assert links["Error 1"] == links["1"] == f"{CHAPTER}.html#correction-fdt-b"
    first, second = (box.get_text().strip() for box in soup.select(".part-ledger"))
    assert "3 claims of the sources for this part: 1 reproduced, 1 corrected (an error), " in first
    assert "0 corrected (a slip), 0 refuted, 1 open. Beside them stand 0 results of the book itself" in first
    assert second == "The ledger has 1 rows for this part, all of them results of the book itself."


def test_the_table_and_the_list_of_corrections(tmp_path):
    directives = "```{ledger-summary}\n```\n\n```{correction-list} error\n```\n\n```{correction-list} slip\n```\n\n"
    assert site(tmp_path, directives + "```{ledger-table}\n```", [row | {"citation": None} for row in ROWS]) == (0, "")
    soup = read(tmp_path, "index")
    assert [row.select_one(".verdict").get_text() for row in soup.select("table.ledger tbody tr")] == [
        "reproduced",
        "corrected (an error)",
        "open",
        "holds",
    ]
    cells = [" ".join(cell.get_text(" ").split()) for cell in soup.select("table.ledger tbody tr")[0].select("td")]
    assert cells == ["fdt/a eq. (1) reproduced", "One is one .", "1 (within 0.1)", "1.012 ± 0.004", ""]
    assert soup.select_one("table.ledger a")["href"] == f"{CHAPTER}.html#ledger-fdt-a"
    assert "Open: no data" in " ".join(soup.select("table.ledger tbody tr")[2].get_text().split())
    box = " ".join(soup.select_one("div.correction-error").get_text(" ").split())
    assert "Error 1: A source, eq. (1) Printed: two Right: one Proof: one and one is two, in fdt/b , chapter" in box
    assert "check()" in soup.select_one(".proving-cell").get_text() and "None is recorded." in soup.get_text()
    assert (tmp_path / "_build" / "html" / "ledger.json").exists()


def test_ids_that_do_not_serve_stop_the_build(tmp_path):
    faults = {
        "{ledger-value}`fdt/lost`": "ledger-value 'fdt/lost' is not a claim in lib/claims",
        "{ledger-value}`fdt/b`": "ledger-value 'fdt/b' is a property that holds and has no number",
        "{ledger-value}`fdt/c`": "ledger-value 'fdt/c' is open: no chapter measures it",
        "{correction-ref}`fdt/a`": "correction-ref 'fdt/a' is not a proven correction",
        "```{part-ledger} nowhere\n```": "part-ledger 'nowhere': no claim belongs to a chapter in book/nowhere/",
        "```{correction} fdt/a\n```": "correction 'fdt/a' is not a claim in lib/claims with 'printed' and 'right'",
        "```{correction-list} typo\n```": "correction-list takes one of error, slip, conversion, got 'typo'",
        "```{source-and-page}\n```": "stands empty on a page without a claim of a source",
    }
    status, printed = site(tmp_path, "\n\n".join(faults))
    assert status != 0 and [message for message in faults.values() if message not in printed] == []
    (tmp_path / "_build" / project.SAID).unlink()
    status, printed = build(tmp_path, EXTENSION, first="index")
    assert status != 0 and "build with `make book`" in printed


def test_the_source_has_one_folded_section_a_chapter(tmp_path):
    elsewhere = {"id": "fdt/e", "citation": "key", "chapter": "book/other/d", "place": 4, "statement": "Elsewhere."}
    chapter = "# Chapter\n\n```{source-and-page}\nThe hedges.\n```\n"
    assert site(tmp_path, "Text.", [*ROWS, elsewhere], chapter) == (0, "")
    box = read(tmp_path, CHAPTER).select_one("details.source-and-page")
    assert box.summary.get_text() == "2 claims of the source: 1 reproduced, 1 corrected (an error)"
    text = " ".join(box.get_text(" ").split())
    assert text.index("The hedges.") < text.index("eq. (1). One is one .") < text.index("Error 1: A source")
    assert "Elsewhere." not in text and box.find(id="correction-fdt-b") is not None


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (
            [ROWS[0], ROWS[1] | {"verdict": "conversion"}],
            "One claim of the source: 1 reproduced; beside them 1 perhaps",
        ),
        ([], "The source: its claims are tested on other pages"),
    ],
)
def test_a_fault_of_the_conversion_is_counted_nowhere(rows, line):
    assert ledger_text.summary([ROW | row for row in rows]).startswith(line)


def test_corrections_are_counted_by_kind_and_cause():
    slip = ROW | {"id": "x/slip", "kind": "slip", "printed": "a", "right": "b", "place": 0}
    error = slip | {"id": "x/error", "kind": "error", "place": 5}
    rows = [
        slip,
        error | {"id": "x/late", "place": None},
        error,
        error | {"id": "x/same", "cause": "x/error", "place": 9},
    ]
    names = [(name, row["id"]) for name, row in ledger_text.corrections(rows)]
    assert names == [("Error 1", "x/error"), ("Error 1b", "x/same"), ("Error 2", "x/late"), ("Slip 1", "x/slip")]

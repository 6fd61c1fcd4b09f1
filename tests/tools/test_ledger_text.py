"""What the ledger says on pages: verdicts, boxes, values in sentences; an id that does not serve stops the build."""

import pytest
from small_site import ROW, build, read, write

from lib.services.claims import Claim, Source
from tools.build import project
from tools.site import ledger_text
from tools.site.ledger_text import part_of, shown
from tools.site.written import Here

EXTENSION = "tools.sphinx_ext.written"
CHAPTER = "book/fluctuations/a"
ROWS = [
    {"citation": "key", "place": 1, "statement": "One is *one*.", "control_value": 18.776},
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
        "Measured {ledger-value}`fdt/a` and {ledger-value}`linear/d`, not {ledger-control}`fdt/a`, "
        "see {correction-ref}`fdt/b`.\n\n"
        "```{part-ledger} fluctuations\n```\n\n```{part-ledger} other\n```\n\n```{ledger-sentence}\n```"
    )
    assert site(tmp_path, text) == (0, "")
    soup = read(tmp_path, "index")
    links = {link.get_text(): link["href"] for link in soup.select("article p a")}
    assert links["1.0123 ± 0.0040"] == links["18.8"] == f"{CHAPTER}.html#ledger-fdt-a"
    assert "3.20·10−7" in links and soup.select_one("article p a sup").get_text() == "−7"
    assert links["Error 1"] == links["1"] == f"{CHAPTER}.html#correction-fdt-b"
    first, second = (box.get_text().strip() for box in soup.select(".part-ledger"))
    assert "3 claims of the sources for this part: 1 reproduced, 1 corrected (an error), " in first
    assert "0 corrected (a slip), 0 refuted, 1 open. Beside them stand 0 results of the book itself" in first
    assert second == "The ledger has 1 rows for this part, all of them results of the book itself."
    counted = "Of 3 claims of the sources, 1 reproduced, 1 corrected (an error), 1 open; 1 results of the book's own"
    assert counted in soup.get_text().replace("’", "'")


def test_the_overview_the_rows_and_the_list_of_corrections(tmp_path):
    directives = "```{ledger-summary}\n```\n\n```{correction-list} error\n```\n\n```{correction-list} slip\n```\n\n"
    full = {"measured": 1.05, "error": None, "stale": True, "margin": 0.5, "page": CHAPTER}
    rows = [row | {"citation": None, "margin": None} for row in ROWS]
    rows[0] |= {"at_size": full, "margin": 0.123}
    rows[1] |= {"tolerance": None}
    assert site(tmp_path, directives + "```{ledger-claims} fluctuations\n```", rows) == (0, "")
    soup = read(tmp_path, "index")
    items = soup.select("ul.claims > li.claim")
    assert [item.select_one(".verdict").get_text() for item in items] == ["reproduced", "corrected (an error)", "open"]
    assert [item.get("data-size") for item in items] == ["here full", "here ", None]
    assert (items[0]["id"], items[0]["data-here"], items[0]["data-full"]) == ("ledger-fdt-a", "0.1230", "0.5000")
    assert items[0].a["href"] == f"{CHAPTER}.html#ledger-fdt-a"
    said = " ".join(items[0].get_text(" ").split())
    assert "fdt/a · eq. (1) One is one . expected 1 within 0.1 this build 1.012 ± 0.004 (12 % of the tolerance)" in said
    assert said.endswith("full size 1.05 (50 % of the tolerance), by earlier code")
    assert items[1].details.summary.get_text() == "this build holds" and items[1].details.text.endswith(
        "one and one is two."
    )
    assert "Printed: two" in items[1].get_text() and "Open: no data" in items[2].get_text()
    box = " ".join(soup.select_one("div.correction-error#correction-fdt-b").get_text(" ").split())
    assert "Error 1: A source, eq. (1) Printed: two Right: one Proof: one and one is two, in fdt/b , chapter" in box
    assert soup.select_one("div.correction a[href$='#ledger-fdt-a']") is not None
    assert "None is recorded." in soup.get_text() and (tmp_path / "_build" / "html" / "ledger.json").exists()


def test_the_tallies_lead_to_their_rows():
    rows = [ROW | {"at_size": None} | row for row in ROWS]
    made = ledger_text.ledger_tallies(Here(None, "book/ledger", rows)).splitlines()
    link = "{{site-file}}`1 <book/ledger/key.html?verdict={}>`".format
    assert made[1] == "| source | reproduced | errors | open | full size |"
    assert made[3] == (
        f"| {{doc}}`A source </book/ledger/key>` | {link('reproduced')} | {link('error')} | {link('open')} | – |"
    )
    assert made[7].startswith("| {doc}`/book/ledger/other` | {site-file}`1 <book/ledger/other.html?verdict=holds>` | –")


@pytest.mark.parametrize(
    ("test", "measured", "error", "share"),
    [
        ({"value": 2.0, "atol": 0.1}, 2.05, None, 0.5),
        ({"value": -2.0, "rtol": 0.1}, -2.05, None, 0.25),
        ({"value": 2.0, "sigmas": 4.0, "bias": 0.2}, 2.3, 0.1, 0.5),
        ({"below": 4.0}, 1.0, None, 0.25),
        ({"below": 4.0}, -1.0, None, 0.0),
        ({"below": -1.0}, -4.0, None, 0.25),
        ({"above": 1.0}, 4.0, None, 0.25),
        ({"above": -4.0}, -1.0, None, 0.25),
        ({"above": 0.0}, 4.0, None, None),
        ({"between": (1.0, 3.0)}, 2.5, None, 0.5),
        ({"true": "it holds"}, True, None, None),
        ({"value": 2.0, "atol": 0.1}, None, None, None),
    ],
)
def test_the_margin_is_one_at_the_bound(test, measured, error, share):
    claim = Claim("x/y", Source("A source"), "", "", **test)
    assert ledger_text.margin(claim, measured, error) == (share if share is None else pytest.approx(share))


def test_ids_that_do_not_serve_stop_the_build(tmp_path):
    faults = {
        "{ledger-value}`fdt/lost`": "ledger-value 'fdt/lost' is not a claim in lib/claims",
        "{ledger-value}`fdt/b`": "ledger-value 'fdt/b' is a property that holds and has no number",
        "{ledger-value}`fdt/c`": "ledger-value 'fdt/c' is open: no chapter measures it",
        "{ledger-control}`linear/d`": "ledger-control 'linear/d' has no control with a number",
        "{correction-ref}`fdt/a`": "correction-ref 'fdt/a' is not a proven correction",
        "```{part-ledger} nowhere\n```": "part-ledger 'nowhere': no claim belongs to a chapter in book/nowhere/",
        "```{correction} fdt/a\n```": "correction 'fdt/a' is not a claim in lib/claims with 'printed' and 'right'",
        "```{correction-list} typo\n```": "correction-list takes one of error, slip, conversion, got 'typo'",
        "```{ledger-claims} nobody\n```": "ledger-claims 'nobody': no claim has this source, or belongs to this part",
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


def test_what_a_page_leaves_open_is_counted_and_listed(tmp_path):
    declared = tmp_path / "lib/claims" / f"{CHAPTER.removeprefix('book/')}.toml"
    declared.parent.mkdir(parents=True)
    declared.write_text("".join(f'[[claim]]\nid = "{name}"\n' for name in ("fdt/a", "fdt/c")), encoding="utf-8")
    elsewhere = {"id": "fdt/e", "citation": "key", "chapter": None, "place": None, "verdict": "open"}
    rows = [ROW | row for row in (*ROWS, elsewhere)]
    made = ledger_text.source_and_page(Here(tmp_path, CHAPTER, rows, text="The hedges."))
    assert "<summary>3 claims of the source: 1 reproduced, 1 corrected (an error), 1 open</summary>" in made
    assert made.count("why <book/ledger/key.html#ledger-fdt-c>`)") == 1 and "ledger-fdt-e" not in made


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

"""Values, corrections and counts in the summaries come from the ledger; an id that does not serve stops the build."""

import pytest
from small_site import ROW, build, read, write

from tools.sphinx_ext.part_pages import part_of, shown

EXTENSION = "tools.sphinx_ext.part_pages"
ROWS = [
    {"citation": "key"},
    {
        "id": "fdt/b",
        "citation": "key",
        "measured": True,
        "error": None,
        "verdict": "error",
        "kind": "error",
        "printed": "two",
        "right": "one",
        "place": 1,
    },
    {
        "id": "fdt/c",
        "citation": "key",
        "measured": None,
        "chapter": None,
        "anchor": None,
        "verdict": "open",
        "reason": "no data",
        "place": None,
    },
    {
        "id": "linear/d",
        "citation": None,
        "verdict": "holds",
        "measured": 3.2e-7,
        "error": None,
        "chapter": "book/other/d",
    },
]
CHAPTER = "# Chapter\n\n(ledger-fdt-a)=\nText.\n"


def site(text):
    index = f"# Start\n\n{text}\n\n```{{toctree}}\nbook/fluctuations/a\nbook/other/d\n```\n"
    return {"index": index, "book/fluctuations/a": CHAPTER, "book/other/d": "# Other\n"}


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.0123, 0.004, "1.0123 ± 0.0040"),
        (-0.5159, None, "−0.516"),
        (5669.8, None, "5670"),
        (36.13, None, "36.1"),
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
    rows = [ROW | row for row in ROWS]
    assert part_of(rows) == {
        "fdt/a": "fluctuations",
        "fdt/b": "fluctuations",
        "fdt/c": "fluctuations",
        "linear/d": "other",
    }


def test_roles_and_counts(tmp_path):
    text = (
        "Measured {ledger-value}`fdt/a` and {ledger-value}`linear/d`, see {correction-ref}`fdt/b`.\n\n"
        "```{part-ledger} fluctuations\n```\n\n```{part-ledger} other\n```"
    )
    write(tmp_path, site(text), ROWS)
    assert build(tmp_path, EXTENSION, first="index") == (0, "")
    soup = read(tmp_path, "index")
    links = {link.get_text(): link["href"] for link in soup.select("article p a")}
    assert links["1.0123 ± 0.0040"] == "book/fluctuations/a.html#ledger-fdt-a"
    assert "3.20·10−7" in links and soup.select_one("article p a sup").get_text() == "−7"
    assert links["Error 1"] == links["1"] == "book/fluctuations/a.html#correction-fdt-b"
    counts = soup.select_one(".part-ledger").get_text()
    assert "3 claims of the sources for this part: 1 reproduced, 1 corrected (an error), " in counts
    assert "0 corrected (a slip), 0 refuted, 1 open." in counts
    assert "Beside them stand 0 results of the book itself" in counts
    counts = soup.select(".part-ledger")[1].get_text()
    assert counts == "The ledger has 1 rows for this part, all of them results of the book itself."


def test_ids_that_do_not_serve_stop_the_build(tmp_path):
    faults = {
        "{ledger-value}`fdt/lost`": "ledger-value 'fdt/lost' is not a claim in lib/claims",
        "{ledger-value}`fdt/b`": "ledger-value 'fdt/b' is a property that holds and has no number",
        "{ledger-value}`fdt/c`": "ledger-value 'fdt/c' is open: no chapter measures it",
        "{correction-ref}`fdt/a`": "correction-ref 'fdt/a' is not a proven correction",
        "```{part-ledger} nowhere\n```": "part-ledger 'nowhere': no claim belongs to a chapter in book/nowhere/",
    }
    write(tmp_path, site("\n\n".join(faults)), ROWS)
    status, printed = build(tmp_path, EXTENSION, first="index")
    assert status != 0 and [message for message in faults.values() if message not in printed] == []


def test_without_a_ledger_the_build_says_what_to_do(tmp_path):
    write(tmp_path, site("{ledger-value}`fdt/a`"))
    (tmp_path / "_build" / "ledger.json").unlink()
    status, printed = build(tmp_path, EXTENSION, first="index")
    assert status != 0 and "build with `make book`" in printed

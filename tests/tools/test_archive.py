"""The archive of results at the sources' own size: sealed, held against the claims, marked when its code changed."""

import json
from dataclasses import replace

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lib.services import claims, ledger, presets
from tools.build import archive, project
from tools.release import paper

PAGE, CODE = "book/part/chapter", {"its cells": "1", "lib/part/module.py": "2"}
RECORD = {"measured": 2.0, "error": 0.1, "control": None}


def entry(**changed):
    return {"records": {"demo/a": RECORD}, "code": CODE, "data": {}, "seconds": 60.0} | changed


def test_every_archived_number_passes_the_test_of_its_claim_and_its_control_fails(monkeypatch):
    """Those that the page's cells of today found; other cells have no say."""
    monkeypatch.setenv(presets.ENVIRONMENT, "paper")
    declared, now = claims.declared(), paper.by_page(project.ROOT)
    for page, kept in archive.read(project.ROOT).items():
        assert (project.ROOT / f"{page}.md").exists() and kept["records"]
        if archive.of_other_cells(kept, now[page]["its cells"]):
            continue
        for name, record in kept["records"].items():
            ledger.check(name, record["measured"], error=record["error"], control=record["control"])
            assert declared[name].open is None, name


def test_an_archived_number_that_fails_its_claim_is_noticed():
    claim = claims.Claim(id="demo/a", source=claims.Source("demo"), locator="", statement="", below=1.0)
    with pytest.raises(ledger.ClaimFailed, match="demo/a: measured 2.0"):
        ledger.check("demo/a", RECORD["measured"], claims={"demo/a": claim})


def test_what_is_written_is_read_and_a_changed_number_is_refused(tmp_path):
    path = archive.write(tmp_path, PAGE, entry(), {})
    assert archive.read(tmp_path)[PAGE]["records"]["demo/a"] == RECORD
    content = json.loads(path.read_text())
    content["records"]["demo/a"]["measured"] = 2.0001
    path.write_text(json.dumps(content))
    with pytest.raises(archive.ArchiveDamaged, match="compute it with `make paper NAME=part/chapter`"):
        archive.read(tmp_path)
    path.write_text("{")
    with pytest.raises(archive.ArchiveDamaged, match="cannot be read"):
        archive.read(tmp_path)


def test_a_figure_that_was_changed_or_lost_is_refused(tmp_path):
    archive.write(tmp_path, PAGE, entry(), {"fig-old": "<svg/>"})
    archive.write(tmp_path, PAGE, entry(), {"fig-a": "<svg/>", "fig-b": "<svg/>"})
    assert set(archive.read(tmp_path)[PAGE]["figures"]) == {"fig-a", "fig-b"}
    path = archive.figure_path(tmp_path, PAGE, "fig-a")
    path.write_text("<svg></svg>")
    with pytest.raises(archive.ArchiveDamaged, match="make paper NAME=part/chapter"):
        archive.read(tmp_path)
    path.unlink()
    with pytest.raises(archive.ArchiveDamaged):
        archive.read(tmp_path)


def test_a_page_says_of_its_figures_when_they_were_made_and_whether_its_code_changed():
    kept = entry(figures={"fig-a": "sum"}, seconds=125.0, commit="0123456789abcdef")
    said = {"figures": {"fig-a": "sum"}, "minutes": 2, "commit": "012345678", "stale": False}
    assert archive.of_page(kept, CODE) == said
    assert archive.of_page(kept, CODE | {"its cells": "new"}) == said | {"stale": True}
    assert archive.of_page(None, CODE) == archive.of_page(entry(), CODE) == {}


def test_the_named_drawings_of_a_notebook_are_found():
    def cell(name, **data):
        output = new_output("display_data", data=data)
        return new_code_cell("", metadata={"mystnb": {"figure": {"name": name}}} if name else {}, outputs=[output])

    svg = {"image/svg+xml": "<svg/>"}
    cells = [cell("fig-a", **svg), cell(None, **svg), cell("fig-b", **{"text/plain": "x"}), new_code_cell("")]
    assert paper.figures_of(new_notebook(cells=cells)) == {"fig-a": "<svg/>"}


def test_an_entry_in_another_chapters_place_is_refused(tmp_path):
    path = archive.write(tmp_path, PAGE, entry(), {})
    path.rename(path.with_name("other.json"))
    with pytest.raises(archive.ArchiveDamaged):
        archive.read(tmp_path)


@pytest.mark.parametrize(
    ("measured", "shown"),
    [(2.5, True), (2.0, False), (2.0 + 1e-9, False), (True, False), (None, False)],
)
def test_a_row_shows_what_depends_on_the_size(measured, shown):
    rows = [{"id": "demo/a", "chapter": PAGE, "measured": measured}]
    (row,) = archive.attach(rows, {PAGE: entry()}, {PAGE: CODE | {"requirements.txt": "3"}})
    expected = RECORD | {"stale": False, "archive": "archive/part/chapter.json", "page": PAGE}
    assert row["at_size"] == (expected if shown else None)


def test_a_number_of_changed_code_is_stale(monkeypatch):
    claim = claims.Claim(id="demo/a", source=claims.Source("demo"), locator="", statement="", below=3.0)
    monkeypatch.setattr(claims, "declared", lambda: {"demo/a": claim})
    for part in CODE:
        rows = [{"id": "demo/a", "chapter": PAGE, "measured": 1.0}]
        (row,) = archive.attach(rows, {PAGE: entry()}, {PAGE: CODE | {part: "new"}})
        assert row["at_size"]["stale"]
    shown = {f"lib/services/{name}.py": "new" for name in ("ledger", "plot")}
    assert not archive.is_stale(entry(), CODE | shown)


def test_a_row_without_its_data_in_the_build_has_the_verdict_of_the_archive(monkeypatch):
    claim = claims.Claim(
        id="demo/a", source=claims.Source("demo", "key"), locator="", statement="", below=3.0, needs="x"
    )
    monkeypatch.setattr(claims, "declared", lambda: {"demo/a": claim})
    (row,) = ledger.rows([], {"demo/a": claim})
    assert row["verdict"] == "open" and row["reason"] == "needs x, which the build does not have"
    assert archive.attach([dict(row)], {}, {}) == [row | {"at_size": None}]
    (filled,) = archive.attach([dict(row)], {PAGE: entry()}, {PAGE: CODE})
    assert filled["verdict"] == "reproduced" and filled["at_size"]["measured"] == 2.0


def test_an_archive_of_other_cells_gives_no_verdict_and_shows_only_what_still_passes(monkeypatch):
    claim = claims.Claim(
        id="demo/a", source=claims.Source("demo", "key"), locator="", statement="", below=3.0, needs="x"
    )
    monkeypatch.setattr(claims, "declared", lambda: {"demo/a": claim})
    (row,), other = ledger.rows([], {"demo/a": claim}), {PAGE: CODE | {"its cells": "new"}}
    (open_row,) = archive.attach([dict(row)], {PAGE: entry()}, other)
    assert open_row["verdict"] == "open" and open_row["reason"].endswith("; at full size other cells were run")
    assert open_row["at_size"]["stale"]
    monkeypatch.setattr(claims, "declared", lambda: {"demo/a": replace(claim, below=1.0)})
    assert archive.attach([dict(row)], {PAGE: entry()}, other)[0]["at_size"] is None


def test_a_recomputed_number_may_move_by_its_error_by_rounding_or_by_a_part_of_what_its_claim_allows():
    source = claims.Source("demo")
    declared = {
        name: claims.Claim(id=name, source=source, locator="", statement="", **test)
        for name, test in {
            "demo/a": {"value": 2.0, "sigmas": 4, "max_error": 1.0, "neglects": "nothing"},
            "demo/b": {"value": 1.0, "rtol": 1e-4},
            "demo/c": {"below": 1e-7},
        }.items()
    }
    exact = {"measured": 1.0, "error": None, "control": None}
    kept = {"demo/a": RECORD, "demo/b": exact}

    def apart(**found):
        again = {"demo/a": RECORD, "demo/b": exact} | {f"demo/{name}": record for name, record in found.items()}
        return paper.apart(kept, again, declared)

    assert apart(a=RECORD | {"measured": 2.39}, b=exact | {"measured": 1 + 9e-6}) == []
    assert apart(a=RECORD | {"measured": 2.41}, b=exact | {"measured": 1 + 1.1e-5}) == [
        "demo/a was 2.0 and is 2.41",
        "demo/b was 1.0 and is 1.000011",
    ]
    kept["demo/c"] = exact | {"measured": 1.1e-16}
    assert apart(c=exact | {"measured": 4.4e-16}) == []
    assert apart(c=exact | {"measured": 5e-8}) == ["demo/c was 1.1e-16 and is 5e-08"]
    del kept["demo/c"], kept["demo/b"]
    assert paper.apart(kept, {"demo/c": exact}, declared) == ["demo/a is gone", "demo/c is new"]


def test_the_listing_names_every_chapter_with_sizes_of_its_own():
    lines = list(paper.listing(project.ROOT))
    assert len(lines) == len(paper.offered(project.ROOT)) > 20
    assert all(line.split()[0] in ("missing", "stale", "archived") for line in lines)
    kept = {page.removeprefix("book/") for page in archive.read(project.ROOT)}
    assert {line.split()[1].rstrip(",") for line in lines if not line.startswith("missing")} == kept

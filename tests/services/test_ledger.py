"""The ledger's service: declarations are checked, values are held against them, rows are joined with records."""

import dataclasses

import pytest

from lib.services import ledger
from lib.services.ledger import Claim, Source
from tools.build import project

SOURCE = Source("A source", "key2020")


def claim(**test):
    return Claim(id="x/1", source=SOURCE, locator="eq. (1)", statement="A statement.", **test)


def check(measured, error=None, **test):
    return ledger.check("x/1", measured, error=error, claims={"x/1": claim(**test)})


@pytest.mark.parametrize(
    ("test", "measured", "error"),
    [
        ({"value": 2.0, "atol": 0.1}, 2.09, None),
        ({"value": 2.0, "rtol": 0.1}, 2.19, None),
        ({"value": -2.0, "rtol": 0.1}, -2.19, None),
        ({"value": 2.0, "sigmas": 4, "max_error": 0.2}, 2.7, 0.19),
        ({"below": 1e-3}, 9e-4, None),
        ({"above": 3}, 3.1, 0.2),
        ({"between": (-0.6, -0.4)}, -0.5, None),
        ({"true": "it holds"}, True, None),
    ],
)
def test_value_within_tolerance_is_recorded(test, measured, error, capsys):
    record = check(measured, error, **test)
    assert record.measured == measured and record.error == error and record.verdict == "reproduced"
    assert "✓ x/1 — reproduced" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("test", "measured", "error"),
    [
        ({"value": 2.0, "atol": 0.1}, 2.11, None),
        ({"value": 2.0, "rtol": 0.1}, 2.21, None),
        ({"value": 2.0, "sigmas": 4, "max_error": 0.2}, 2.9, 0.2),
        ({"value": 2.0, "sigmas": 4, "max_error": 0.2}, 2.0, 0.3),
        ({"below": 1e-3}, 1e-3, None),
        ({"above": 3}, 3, None),
        ({"between": (-0.6, -0.4)}, -0.7, None),
        ({"true": "it holds"}, False, None),
    ],
)
def test_value_out_of_tolerance_fails(test, measured, error):
    with pytest.raises(ledger.ClaimFailed, match="x/1: measured"):
        check(measured, error, **test)


@pytest.mark.parametrize(
    ("test", "measured", "error", "message"),
    [
        ({"value": 2.0, "atol": 0.1}, float("nan"), None, "measured must be one finite number"),
        ({"value": 2.0, "atol": 0.1}, [2.0, 2.0], None, "measured must be one finite number"),
        ({"value": 1.0, "atol": 0.1}, True, None, "measured must be one finite number"),
        ({"true": "it holds"}, 1.0, None, "measured must be True or False"),
        ({"true": "it holds"}, True, 0.1, "error must be left out"),
        ({"value": 2.0, "sigmas": 4, "max_error": 0.2}, 2.0, None, "error must be given"),
        ({"value": 2.0, "sigmas": 4, "max_error": 0.2}, 2.0, 0.0, "error must be one finite number > 0"),
        ({"open": "no data"}, 2.0, None, "is declared open"),
        ({"value": 2.0, "atol": 0.1}, None, None, "measured must be one finite number"),
        ({"value": 2.0, "atol": 0.1}, "2", None, "measured must be one finite number"),
        ({"value": 2.0, "sigmas": 4, "max_error": 0.2}, 2.0, [1, 2], "error must be one finite number"),
    ],
)
def test_value_of_the_wrong_kind_is_refused(test, measured, error, message):
    with pytest.raises(ValueError, match=message):
        check(measured, error, **test)


def test_id_that_is_no_string_is_refused():
    with pytest.raises(ValueError, match="claim_id must be a string"):
        ledger.check(["x/1"], 1.0, claims={"x/1": claim(below=2)})


def test_unknown_id_names_the_nearest():
    with pytest.raises(ValueError, match=r"'fdt/eq1.55' is not declared .* nearest declared id is 'fdt/eq1.5'"):
        ledger.check("fdt/eq1.55", 1.0, claims={"fdt/eq1.5": claim(), "scaling/eq3": claim()})


SOURCES = """
[x]
name = "A source"
citation = "key2020"
"""
GOOD = """
[[claim]]
id = "x/1"
locator = "eq. (1)"
statement = "A statement."
value = 1.0
atol = 0.1
"""


def load(folder, chapter=GOOD, sources=SOURCES, **others):
    """What is declared by a chapter "part/one", and by others of the same part."""
    (folder / "part").mkdir(exist_ok=True)
    (folder / "sources.toml").write_text(sources)
    for name, text in {"one": chapter, **others}.items():
        (folder / "part" / f"{name}.toml").write_text(text)
    return ledger.load(folder)


def test_declarations_load(tmp_path):
    assert load(tmp_path)["x/1"] == Claim(
        "x/1", Source("A source", "key2020"), "eq. (1)", "A statement.", value=1.0, atol=0.1
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value = 1.0\natol = 0.1", "", "exactly one of"),
        ("atol = 0.1", "atol = 0.1\nbelow = 2", "exactly one of"),
        ("atol = 0.1", "", "go together"),
        ("atol = 0.1", "atol = 0.1\nrtol = 0.1", "go together"),
        ("atol = 0.1", "sigmas = 4", "sigmas needs max_error"),
        ("atol = 0.1", "atol = 0.1\nverdict = 'corrected'", "printed and right"),
        ("atol = 0.1", "atol = 0.1\nprinted = 'a'\nright = 'b'", "printed and right"),
        ("atol = 0.1", "atol = 0.1\nverdict = 'proven'", "verdict must be one of"),
        ("atol = 0.1", "atol = 0.1\ntolerence = 3", "tolerence"),
        ('id = "x/1"', 'id = "y/1"', "part/one.toml: claim id 'y/1' must start with a family of sources.toml"),
        ("atol = 0.1", "atol = inf", "finite number"),
        ("atol = 0.1", "atol = 0.0", "must be > 0"),
        ("atol = 0.1", "atol = -1", "must be > 0"),
        ("value = 1.0\natol = 0.1", "below = nan", "finite number"),
        ("value = 1.0", "value = '1'", "finite number"),
        ("value = 1.0\natol = 0.1", "between = [2, 1]", "two increasing numbers"),
        ("value = 1.0\natol = 0.1", "between = [1]", "two increasing numbers"),
        ("value = 1.0\natol = 0.1", "true = ''", "must say something"),
        ("value = 1.0\natol = 0.1", "true = 'for every $N$'", "must not contain TeX"),
        ("value = 1.0\natol = 0.1", "open = ''", "must say something"),
        ("[[claim]]", "[[claims]]", r"part/one.toml must hold \[\[claim\]\] tables"),
        ("[[claim]]", "[[claim]", "one.toml: "),
        ('id = "x/1"', "", "must start with a family"),
    ],
)
def test_faulty_declaration_is_refused(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(ValueError, match=message):
        load(tmp_path, GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [("name", "nmae"), ("[x]", "[x"), ('name = "A source"', ""), ("[x]", 'x = "A source"\n[y]')]
)
def test_faulty_source_is_refused(tmp_path, old, new):
    assert old in SOURCES
    with pytest.raises(ValueError, match="sources.toml: "):
        load(tmp_path, sources=SOURCES.replace(old, new))


def test_a_declaration_that_is_not_utf_8_is_named(tmp_path):
    load(tmp_path)
    (tmp_path / "part" / "one.toml").write_bytes(GOOD.encode() + "# Umlaut: ü\n".encode("latin-1"))
    with pytest.raises(ValueError, match="^one.toml: 'utf-8' codec"):
        ledger.load(tmp_path)


def test_repeated_id_is_refused(tmp_path):
    with pytest.raises(ValueError, match="part/one.toml: claim id 'x/1' is declared twice"):
        load(tmp_path, GOOD + GOOD)
    with pytest.raises(ValueError, match="part/two.toml: claim id 'x/1' is declared twice"):
        load(tmp_path, two=GOOD)


def test_families_come_in_the_order_of_the_sources_and_then_of_the_files(tmp_path):
    sources = SOURCES + '[w]\nname = "This book"\n'
    found = load(tmp_path, GOOD.replace("x/1", "w/1"), sources, three=GOOD, two=GOOD.replace("x/1", "x/2"))
    assert list(found) == ["x/1", "x/2", "w/1"]
    assert found["w/1"].verdict == "holds" and found["x/1"].verdict == "reproduced"


@pytest.mark.parametrize(
    "line", ['verdict = "corrected"\nprinted = "two"\nright = "one"', 'verdict = "reproduced"', "extraction = true"]
)
def test_a_result_of_the_book_has_no_verdict_to_declare(tmp_path, line):
    own = SOURCES.replace('citation = "key2020"\n', "")
    assert load(tmp_path, sources=own)["x/1"].verdict == "holds"
    with pytest.raises(ValueError, match="a result of the book itself has no verdict"):
        load(tmp_path, f"{GOOD}\n{line}\n", own)


def test_extraction_goes_with_a_correction(tmp_path):
    assert load(tmp_path)["x/1"].verdict == "reproduced"
    with pytest.raises(ValueError, match="goes with the verdict 'corrected'"):
        load(tmp_path, f"{GOOD}\nextraction = true\n")


def test_claims_of_the_book_stand_with_their_chapter():
    """Every family has its claims, and every file of claims is named like a page."""
    folder = project.ROOT / "lib" / "claims"
    pages = set(project.toc_pages(project.ROOT))
    chapters = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.toml")}
    assert len(chapters) > 30 and {f"book/{chapter}" for chapter in chapters} <= pages
    assert set(ledger.declared()) and len({name.split("/")[0] for name in ledger.declared()}) > 10


def test_two_tallies():
    table = [
        {"citation": cited, "verdict": verdict}
        for cited, verdict in [
            ("key", "reproduced"),
            ("key", "corrected"),
            ("key", "open"),
            ("key", "reproduced"),
            (None, "holds"),
            (None, "open"),
        ]
    ]
    sources, own = ledger.tallies(table)
    assert sources == {"reproduced": 2, "corrected": 1, "refuted": 0, "open": 1} and own == {"holds": 1, "open": 1}


def record(**changes):
    made = ledger.Record("x/1", 1.0, 1.05, None, "0.1", "reproduced")
    return dataclasses.asdict(made) | {"chapter": "book/a"} | changes


def test_rows_join_claims_and_records():
    claims = {
        "x/1": claim(value=1.0, atol=0.1),
        "x/2": dataclasses.replace(claim(open="no data"), id="x/2"),
        "x/3": dataclasses.replace(claim(below=1.0), id="x/3"),
    }
    checked, declared_open, unchecked = ledger.rows([record()], claims)
    assert (checked["verdict"], checked["measured"], checked["chapter"], checked["reason"]) == (
        "reproduced",
        1.05,
        "book/a",
        None,
    )
    assert (declared_open["verdict"], declared_open["reason"], declared_open["chapter"]) == ("open", "no data", None)
    assert (unchecked["verdict"], unchecked["reason"]) == ("open", "no chapter checks it yet")
    assert (checked["place"], declared_open["place"], unchecked["place"]) == (0, None, None)
    assert {"id", "source", "chapter", "statement", "expected", "measured", "tolerance", "verdict"} <= set(checked)


def test_rows_refuse_strays_and_repeats():
    claims = {"x/1": claim(value=1.0, atol=0.1)}
    with pytest.raises(ValueError, match="'x/9', which is not declared"):
        ledger.rows([record(id="x/9")], claims)
    with pytest.raises(ValueError, match="recorded twice, by book/a and book/b"):
        ledger.rows([record(), record(chapter="book/b")], claims)


def test_the_books_own_declarations_load():
    assert ledger.load()


def test_the_declarations_are_read_once(monkeypatch):
    ledger.declared.cache_clear()
    reads = []
    monkeypatch.setattr(ledger, "load", lambda load=ledger.load: reads.append(1) or load())
    for _ in range(3):
        with pytest.raises(ValueError, match="nearest declared id"):
            ledger.check("no/such", 1.0)
    assert len(reads) == 1
    ledger.declared.cache_clear()

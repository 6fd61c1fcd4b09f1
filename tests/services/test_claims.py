"""The declarations of the claims: they are read once, and every slip in them is refused by name."""

import pytest

from lib.services import claims, ledger
from lib.services.claims import Claim, Source
from tools.build import project

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
    return claims._load(folder)


def test_declarations_load(tmp_path):
    assert load(tmp_path)["x/1"] == Claim(
        "x/1", Source("A source", "key2020"), "eq. (1)", "A statement.", value=1.0, atol=0.1
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value = 1.0\natol = 0.1", "", "exactly one of .* declared"),
        ("atol = 0.1", "atol = 0.1\nbelow = 2", "exactly one of .* declared"),
        ("atol = 0.1", "", "go together"),
        ("atol = 0.1", "atol = 0.1\nrtol = 0.1", "go together"),
        ("atol = 0.1", "sigmas = 4", "sigmas needs max_error"),
        ("atol = 0.1", "sigmas = 4\nmax_error = 1", "must say what it neglects"),
        ("atol = 0.1", "sigmas = 4\nmax_error = 1\nneglects = 'nothing: exact'\nbias = 0.1", "neglects must say what"),
        ("atol = 0.1", "sigmas = 4\nmax_error = 1\nneglects = 'order 1/N'\nbias = -0.1", "bias must be"),
        ("atol = 0.1", "atol = 0.1\nneglects = 'order 1/N'", "goes with sigmas"),
        ("atol = 0.1", "atol = 0.1\nverdict = 'error'", "printed and right go with"),
        ("atol = 0.1", "atol = 0.1\ncause = 'x/1'", "goes with a correction"),
        ("atol = 0.1", "atol = 0.1\nprinted = 'a'\nright = 'b'", "printed and right go with"),
        ("atol = 0.1", "atol = 0.1\nverdict = 'proven'", "verdict must be one of"),
        ("atol = 0.1", "atol = 0.1\ntolerances = 3", "tolerances"),
        ('id = "x/1"', 'id = "y/1"', "part/one.toml: claim id 'y/1' must start with a family of sources.toml"),
        ("atol = 0.1", "atol = inf", "finite number, got"),
        ("atol = 0.1", "atol = 0.1\nfull = nan", "finite number, got"),
        ("value = 1.0\natol = 0.1", "open = 'no'\nneeds = 'x'", "go with a test"),
        ("value = 1.0\natol = 0.1", "below = 2\nfull = 3", "goes with a value"),
        ("atol = 0.1", "atol = 0.0", "must be > 0"),
        ("atol = 0.1", "atol = -1", "must be > 0"),
        ("value = 1.0\natol = 0.1", "below = nan", "finite number, got"),
        ("value = 1.0", "value = '1'", "finite number, got"),
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
    ("old", "new"), [("name", "names"), ("[x]", "[x"), ('name = "A source"', ""), ("[x]", 'x = "A source"\n[y]')]
)
def test_faulty_source_is_refused(tmp_path, old, new):
    assert old in SOURCES
    with pytest.raises(ValueError, match="sources.toml: "):
        load(tmp_path, sources=SOURCES.replace(old, new))


def test_a_declaration_that_is_not_utf_8_is_named(tmp_path):
    load(tmp_path)
    (tmp_path / "part" / "one.toml").write_bytes(GOOD.encode() + "# Umlaut: ü\n".encode("latin-1"))
    with pytest.raises(ValueError, match="^one.toml: 'utf-8' codec"):
        claims._load(tmp_path)


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
    "line", ['verdict = "error"\nprinted = "two"\nright = "one"', 'verdict = "reproduced"', 'verdict = "conversion"']
)
def test_a_result_of_the_book_has_no_verdict_to_declare(tmp_path, line):
    own = SOURCES.replace('citation = "key2020"\n', "")
    assert load(tmp_path, sources=own)["x/1"].verdict == "holds"
    with pytest.raises(ValueError, match="a result of the book itself has no verdict"):
        load(tmp_path, f"{GOOD}\n{line}\n", own)


def test_one_cause_counts_once(tmp_path):
    """A correction may have its cause in another one, which must count for itself."""
    slip = f'{GOOD}verdict = "slip"\nprinted = "two"\nright = "one"\n'
    same = f'{slip.replace("x/1", "x/2")}cause = "x/1"\n'
    assert load(tmp_path, slip + same)["x/2"].cause == "x/1"
    for head in (GOOD, slip + 'cause = "x/2"\n', slip.replace("x/1", "x/3")):
        with pytest.raises(ValueError, match="must name a correction that counts for itself"):
            load(tmp_path, head + same)


def test_claims_of_the_book_stand_with_their_chapter():
    """Every family has its claims, and every file of claims is named like a page."""
    folder = project.ROOT / "lib" / "claims"
    pages = set(project.toc_pages(project.ROOT))
    chapters = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.toml")}
    assert len(chapters) > 30 and {f"book/{chapter}" for chapter in chapters} <= pages
    assert set(claims.declared()) and len({name.split("/")[0] for name in claims.declared()}) > 10


def test_the_books_own_declarations_load():
    assert claims._load()


def test_the_declarations_are_read_once(monkeypatch):
    claims.declared.cache_clear()
    reads = []
    monkeypatch.setattr(claims, "_load", lambda load=claims._load: reads.append(1) or load())
    for _ in range(3):
        with pytest.raises(ValueError, match="nearest declared id"):
            ledger.check("no/such", 1.0)
    assert len(reads) == 1
    claims.declared.cache_clear()

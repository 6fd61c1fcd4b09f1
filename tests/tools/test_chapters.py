"""The one list of the chapters: what they declare is read, what cannot be is refused, and the lists follow from it."""

import re
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup

from tools.build import project
from tools.course import assignments
from tools.site import chapters
from tools.site.written import Here, symbols

PAGE = """---
about: "What {name} is about."
jupytext: {{text_representation: {{extension: .md, format_name: myst}}}}
kernelspec: {{name: python3}}
---
(ch-{name})=
# Title of {name}

:::{{admonition}} Objectives
**Prerequisites:** {needs}. **Time:** about
60 minutes.
:::
"""


@pytest.fixture
def book(tmp_path):
    """write(name=prerequisites, ...) makes a book of two parts, a and b in the first, the others in the second."""

    def write(**needs):
        toc = "format: jb-book\nroot: book/index\nparts:\n"
        for number, names in (("I", "ab"), ("II", "cd")):
            mine = [name for name in needs if name in names]
            files = "".join(f"  - file: book/p{number}/{name}\n" for name in mine)
            toc += f'- caption: "Part {number}: The {names}"\n  chapters:\n{files}' if files else ""
            for name in mine:
                path = tmp_path / "book" / f"p{number}" / f"{name}.md"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(PAGE.format(name=name, needs=needs[name]))
        (tmp_path / "book" / "index.md").write_text("# Book\n")
        (tmp_path / "_toc.yml").write_text(toc)
        return tmp_path

    return write


THREE = {"a": "algebra", "b": "{doc}`a`; {doc}`/book/index`", "c": "see {ref}`ch-b`,\n{doc}`it </book/pI/a>`"}


def test_declarations_are_read_in_every_form(book):
    found = chapters.chapters(book(**THREE, d="{ref}`the third <ch-c>`, {doc}`../pI/b`"))
    assert [(page[-1], "".join(needed[-1] for needed in one.needs)) for page, one in found.items()] == [
        ("a", ""),
        ("b", "a"),
        ("c", "ba"),
        ("d", "cb"),
    ]
    first = chapters.Chapter("book/pI/a", "Title of a", "Part I: The ab", "What a is about.", 60, ())
    assert found["book/pI/a"] == first
    assert chapters.all_needed(found, "book/pII/d") == ["book/pI/a", "book/pI/b", "book/pII/c"]


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"a": "", "c": "{doc}`a`"}, r"^book/pII/c: the prerequisite {doc}`a` names no page of _toc.yml"),
        ({"a": "", "c": "{ref}`ch-x`"}, r"^book/pII/c: the prerequisite {ref}`ch-x` names no label: write (ch-x)="),
        ({"a": "{doc}`b`", "b": ""}, r"^book/pI/a needs book/pI/b, which comes later in _toc.yml: move one of them"),
        ({"a": "{doc}`a`"}, r"^book/pI/a needs book/pI/a, which comes later"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(book, needs, message):
    with pytest.raises(ValueError, match="^" + re.escape(message[1:])):
        chapters.chapters(book(**needs))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("**Prerequisites:**", "^book/pI/a declares no prerequisites and no time: write"),
        ("60 minutes", "^book/pI/a declares no prerequisites and no time: write"),
        ('about: "What a is about."', "^book/pI/a does not say what it is about: write a sentence"),
    ],
)
def test_a_missing_declaration_is_named(book, declared, message):
    path = book(a="") / "book" / "pI" / "a.md"
    path.write_text(path.read_text().replace(declared, ""))
    with pytest.raises(ValueError, match=message):
        chapters.chapters(path.parents[2])


def test_every_chapter_of_this_book_is_declared():
    found = chapters.chapters(project.ROOT)
    notebooks = [path.relative_to(project.ROOT).with_suffix("").as_posix() for path in project.notebooks(project.ROOT)]
    assert list(found) == [page for page in notebooks if page.count("/") > 1]
    assert [one.page for one in found.values() if not 30 <= one.minutes <= 240 or not 20 < len(one.about) <= 200] == []
    assert "book/foundations/langevin" in found["book/fluctuations/momentum-and-currents"].needs
    folders = {page.split("/")[1] for page in found}
    assert {path.stem for path in (project.ROOT / "book" / "summaries").glob("*.md")} == folders


def test_declared_times_follow_the_one_rule():
    """Every page is read by the same student with a pencil, within the factor that the rule leaves to its author."""
    found = chapters.chapters(project.ROOT)
    rule = {page: chapters.reading_minutes(project.read((project.ROOT / page).with_suffix(".md"))) for page in found}
    pairs = {page: (one.minutes, round(rule[page])) for page, one in found.items()}
    off = {page: pair for page, pair in pairs.items() if max(pair) > 1.4 * min(pair)}
    assert off == {}, "(declared, by the rule): HOW-A-CHAPTER-IS-MADE.md, 8"


def test_the_rule_counts_words_by_what_a_section_does():
    words, formula = "word " * 30, "$$\nx = 1\n$$\n"
    folded = f":::{{admonition}} More\n:class: dropdown\n{words}\n:::\n"
    page = f"---\nabout: {words}\n---\n{words}\n## One\n{words[:-10]}{formula}{folded}"
    page += f"\n## Exercises\n{words}\n## Summary\n{words}"
    assert chapters.reading_minutes(page) == 1 + 30 / 15  # the formula and the heading count as a word each


def reading_path(root, argument="", text=""):
    return chapters.reading_path(Here(root, "book/index", [], argument, text))


def test_a_path_shows_times_and_their_sum(book):
    root = book(**THREE)
    assert reading_path(root, text="pI/a: Why *it*.\n\npII/c: And then.") == (
        "1. {doc}`/book/pI/a` (60 minutes). Why *it*.\n1. {doc}`/book/pII/c` (60 minutes). And then.\n\n"
        "**In all** about 2 h 00 min."
    )
    assert reading_path(root, "pII") == "1. {doc}`/book/pII/c` (60 minutes). What c is about."
    assert chapters.hours(115) == "115 minutes" and chapters.hours(185) == "3 h 05 min"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pI/b: First.\npI/a: Second.", "book/pI/b builds on book/pI/a: list that before it"),
        ("pI/z: Lost.", "book/pI/z is not a chapter of the book"),
        ("pI/a", "'pI/a' is not of the form 'chapter: why it is on the path'"),
        ("", "there is no chapter to list"),
    ],
)
def test_a_path_that_cannot_be_walked_is_refused(book, text, message):
    with pytest.raises(ValueError, match=message):
        reading_path(book(**THREE), text=text)


def test_weeks_are_read(book):
    found = chapters.chapters(book(**THREE))
    plan = chapters.weeks(["pI/a, pI/b | small", "", "pII/c"], found, ["small"])
    assert plan == [(["book/pI/a", "book/pI/b"], "small"), (["book/pII/c"], "")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["pI/b, pI/a"], "book/pI/b builds on book/pI/a: list that before it"),
        (["pI/a, pII/c"], "book/pII/c builds on book/pI/b: list that before it"),
        (["pI/z"], "book/pI/z is not a chapter of the book"),
        (["pI/a | large"], "there is no problem set 'large'; there are: small"),
    ],
)
def test_a_syllabus_that_cannot_be_taught_is_refused(book, lines, message):
    with pytest.raises(ValueError, match=message):
        chapters.weeks(lines, chapters.chapters(book(**THREE)), ["small"])


def test_the_syllabi_hand_out_every_set_once_the_short_one_all_but_the_last():
    text = project.read(project.ROOT / "book" / "instructors.md")
    plans = [block.split("```")[0].split("\n") for block in text.split("```{syllabus}\n")[1:]]
    found, names = chapters.chapters(project.ROOT), assignments.names(project.ROOT)
    weeks = [chapters.weeks(plan, found, names) for plan in plans]
    assert [len(plan) for plan in weeks] == [12, 6]
    assert [[handed_out for _, handed_out in plan if handed_out] for plan in weeks] == [names, names[:-1]]


NOTATION = """# Notation

## Several

Chapters {ref}`ch-a` and {ref}`ch-c`.

| symbol | meaning |
| --- | --- |
| $N$ | inputs |
| $K$, $k$ | units |

## Part

Chapter {ref}`ch-a`.

| symbol | meaning | defined |
| --- | --- | --- |
| $q$ | length | here |
"""


def test_a_chapter_has_its_own_symbols_and_those_that_it_shares_and_uses(book):
    root = book(a="Keep $N=3$ inputs.", b="")
    (root / "book" / "notation.md").write_text(NOTATION)
    rows = [line for line in symbols(Here(root, "book/pI/a", [])).split("\n") if line.startswith("|")]
    wanted = ["| symbol | meaning | defined |", "| --- | --- | --- |", "| $q$ | length | here |", "| $N$ | inputs |  |"]
    assert rows == wanted
    with pytest.raises(ValueError, match="book/notation.md has no section that refers to book/pI/b before its table"):
        symbols(Here(root, "book/pI/b", []))


def site(root, page):
    """Build a book of one page more with Sphinx, strictly: its exit status and messages, and the page."""
    extensions = "extensions = ['myst_nb', 'tools.sphinx_ext.written']\nnb_execution_mode = 'off'\n"
    (root / "conf.py").write_text(f"{extensions}root_doc = 'book/index'\nmyst_enable_extensions = ['colon_fence']\n")
    (root / "book" / "index.md").write_text(f"# Book\n\n```{{toctree}}\n:glob:\n*/*\n```\n\n{page}\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", root, root / "html"]
    done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True, check=False)
    path = root / "html" / "book" / "index.html"
    return (
        done.returncode,
        done.stdout + done.stderr,
        BeautifulSoup(path.read_text() if path.exists() else "", "html.parser"),
    )


def test_lists_are_tables_and_links_on_the_page(book):
    root = book(**THREE)
    directives = "```{prerequisites}\n```\n\n```{reading-path} pI\n```\n\n"
    directives += "```{syllabus}\npI/a, pI/b\npII/c\n```"
    status, messages, soup = site(root, directives)
    assert (status, messages) == (0, "")
    table, weeks = (
        [[c.get_text(" ", strip=True) for c in row.select("td")] for row in t.select("tbody tr")]
        for t in soup.select("table")
    )
    assert table == [
        ["Title of a", "60 min", "no other chapter", "1 chapter, 1.0 h"],
        ["Title of b", "60 min", "Title of a", "2 chapters, 2.0 h"],
        ["Title of c", "60 min", "Title of b , Title of a", "3 chapters, 3.0 h"],
    ]
    assert weeks == [["1", "Title of a Title of b", "2 h 00 min", ""], ["2", "Title of c", "60 minutes", ""]]
    assert [link["href"] for link in soup.select("ol a")] == ["pI/a.html", "pI/b.html"]
    status, messages, _ = site(book(a="{doc}`b`", b=""), "```{prerequisites}\n```")
    assert status != 0 and "prerequisites: book/pI/a needs book/pI/b, which comes later in _toc.yml" in messages

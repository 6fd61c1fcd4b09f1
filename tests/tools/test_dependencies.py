"""The map of the chapters: what they declare is read, and what cannot be is refused in one sentence."""

import subprocess
import sys

import pytest
from bs4 import BeautifulSoup

from tools.build import dependencies, project
from tools.site import dependency_map

PAGE = """---
jupytext: {{text_representation: {{extension: .md, format_name: myst}}}}
kernelspec: {{name: python3}}
---
(ch-{name})=
# Title of {name}

:::{{admonition}} Objectives
:class: objectives
**Prerequisites:** {needs}
**Time:** {time}.
:::
"""


@pytest.fixture
def book(tmp_path):
    """write(name=prerequisites, ...) makes a book of two parts, a and b in the first, the others in the second."""

    def write(times=None, **needs):
        for name, text in needs.items():
            folder = tmp_path / "book" / ("one" if name in "ab" else "two")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.md").write_text(
                PAGE.format(name=name, needs=text, time=(times or {}).get(name, "about 60 minutes"))
            )
        (tmp_path / "book" / "index.md").write_text("# Book\n")
        lines = ""
        for part, first in (("one", True), ("two", False)):
            files = "".join(f"  - file: book/{part}/{name}\n" for name in needs if (name in "ab") == first)
            lines += f"- caption: Part {part}\n  chapters:\n{files}"
        (tmp_path / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nparts:\n{lines}")
        return tmp_path

    return write


def test_all_ways_to_name_a_chapter_are_read(book):
    second = "{doc}`../one/a` and {doc}`the second </book/one/b>`"
    found = dependencies.chapters(
        book(a="algebra", b="{doc}`a`; {doc}`/book/index`", c=second, d="see {ref}`ch-c`,\n{ref}`it <ch-b>`")
    )
    assert {page[-1]: "".join(needed[-1] for needed in chapter.needs) for page, chapter in found.items()} == {
        "a": "",
        "b": "a",
        "c": "ab",
        "d": "cb",
    }
    assert (
        found["book/two/c"].title == "Title of c"
        and found["book/two/c"].part == "Part two"
        and found["book/two/c"].minutes == 60
    )
    assert dependencies.all_needed(found, "book/two/d") == ["book/one/a", "book/one/b", "book/two/c"]
    assert dependencies.reading_minutes(found, ["book/one/b"]) == 120
    assert dependencies.reading_minutes(found, ["book/two/c", "book/two/d"]) == 240
    assert list(dependencies.arrows(found)) == [
        ("book/one/a", "book/one/b"),
        ("book/one/b", "book/two/c"),
        ("book/two/c", "book/two/d"),
    ]
    assert dependencies.ranks(found) == {"book/one/a": 0, "book/one/b": 1, "book/two/c": 0, "book/two/d": 1}


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"a": "", "c": "{doc}`a`"}, r"^book/two/c: the prerequisite \{doc\}`a` names no page of _toc.yml$"),
        ({"a": "", "c": "{ref}`ch-x`"}, r"^book/two/c: the prerequisite \{ref\}`ch-x` names no label; .*\(ch-x\)="),
        (
            {"a": "{doc}`b`", "b": "", "c": ""},
            r"^book/one/a needs book/one/b, which comes later in _toc.yml: move one of them or drop",
        ),
        (
            {"a": "{doc}`b`", "b": "{ref}`ch-c`", "c": "{doc}`../one/a`"},
            r"in a circle: (book/\w+/\w needs ){3}book/\w+/\w; drop one",
        ),
        ({"a": "{doc}`a`", "c": ""}, r"in a circle: book/one/a needs book/one/a; drop one"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(book, needs, message):
    with pytest.raises(ValueError, match=message):
        dependencies.chapters(book(**needs))


def test_circle_is_named_in_the_order_of_the_needs(book):
    with pytest.raises(ValueError) as caught:
        dependencies.chapters(book(a="{doc}`b`", b="{ref}`ch-c`", c="{doc}`../one/a`"))
    circle = str(caught.value).partition("circle: ")[2].partition(";")[0].split(" needs ")
    steps = {("book/one/a", "book/one/b"), ("book/one/b", "book/two/c"), ("book/two/c", "book/one/a")}
    assert set(zip(circle, circle[1:])) == steps


def test_chapter_without_prerequisites_or_time_is_refused(book):
    root = book(a="", c="")
    path = root / "book" / "one" / "a.md"
    path.write_text(path.read_text().replace("**Prerequisites:**", ""))
    with pytest.raises(ValueError, match="^book/one/a declares no prerequisites: write"):
        dependencies.chapters(root)
    with pytest.raises(ValueError, match="^book/one/a: the time must read like .* got 'an evening"):
        dependencies.chapters(book(a="", c="", times={"a": "an evening"}))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("about 90 minutes", 90),
        ("about two hours and a half, in three sittings. Rest.", 150),
        ("about an hour", 60),
        ("about 3 hours", 180),
        ("about one hour and 20 minutes", 80),
        (" about\n55 minutes", None),
        ("about many hours", None),
        ("about", None),
        ("90 minutes", None),
    ],
)
def test_times_are_read(text, wanted):
    if wanted:
        assert dependencies.minutes(text) == wanted
    else:
        with pytest.raises(ValueError, match="must read like"):
            dependencies.minutes(text)


def test_every_chapter_of_this_book_is_on_the_map():
    found = dependencies.chapters(project.ROOT)
    notebooks = [path.relative_to(project.ROOT).with_suffix("").as_posix() for path in project.notebooks(project.ROOT)]
    assert list(found) == [page for page in notebooks if page.count("/") > 1]
    assert found["book/fluctuations/finer-relations"].minutes == 75
    assert [chapter.page for chapter in found.values() if not 30 <= chapter.minutes <= 180] == []
    assert "book/foundations/langevin" in found["book/fluctuations/momentum-and-currents"].needs


def site(root, page):
    """Build a book of one page more with Sphinx, strictly: its exit status and messages, and the page."""
    extensions = "extensions = ['myst_nb', 'tools.sphinx_ext.dependencies']\n"
    (root / "conf.py").write_text(extensions + "nb_execution_mode = 'off'\nroot_doc = 'book/index'\n")
    (root / "book" / "index.md").write_text(f"# Book\n\n```{{toctree}}\n:glob:\n*/*\n```\n\n{page}\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", root, root / "html"]
    done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True, check=False)
    path = root / "html" / "book" / "index.html"
    return (
        done.returncode,
        done.stdout + done.stderr,
        BeautifulSoup(path.read_text(), "html.parser") if path.exists() else None,
    )


def test_directives_show_the_map_and_the_table(book):
    directives = "```{dependency-map}\n```\n\n```{prerequisites-table}\n```"
    status, messages, soup = site(book(a="", b="{doc}`a`", c="{ref}`ch-a`, {ref}`ch-b`"), directives)
    assert (status, messages) == (0, "")
    drawing = soup.select_one("figure.dependency-map")
    assert [link["href"] for link in drawing.select("svg a")] == ["one/a.html", "one/b.html", "two/c.html"]
    assert (
        len(drawing.select("path.arrow")) == 2
        and drawing.select_one("svg > title")
        and drawing.select_one("svg > desc")
    )
    words = [item.get_text().strip() for item in soup.select(".dependency-words li p")]
    assert words == ["A needs no other chapter.", "B needs A.", "C needs A, B."]
    rows = [[cell.get_text().strip() for cell in row.select("td")] for row in soup.select("tbody tr")]
    assert rows == [
        ["A", "60 min", "no other chapter", "1 chapter, 1.0 h"],
        ["B", "60 min", "A", "2 chapters, 2.0 h"],
        ["C", "60 min", "A, B", "3 chapters, 3.0 h"],
    ]


def test_build_stops_at_a_chapter_that_needs_a_later_one(book):
    status, messages, _ = site(book(a="{doc}`b`", b="", c=""), "```{dependency-map}\n```")
    assert status != 0 and "book/one/a needs book/one/b, which comes later in _toc.yml" in messages


def test_boxes_of_the_drawing_do_not_overlap():
    layout = dependency_map.Layout(dependencies.chapters(project.ROOT))
    corners = [layout.corner(page) for page in layout.found]
    for number, (x, y) in enumerate(corners):
        assert 0 <= x <= layout.width - dependency_map.BOX and 0 <= y <= layout.height - dependency_map.HEIGHT
        for other_x, other_y in corners[:number]:
            assert abs(x - other_x) >= dependency_map.BOX or abs(y - other_y) >= dependency_map.HEIGHT

"""Reading paths: times and prerequisites are those that the chapters declare."""

import pytest
from small_site import build, read, write

from tools import project
from tools.sphinx_ext import reading_path

FRONT = "# {title}\n\n**Prerequisites:** {needs}. **Time:** about {time}. More words.\n"
EXTENSION = "tools.sphinx_ext.reading_path"


def test_declared_reads_relative_absolute_and_titled_links():
    text = FRONT.format(title="T", needs="{doc}`a`, {doc}`../x/b`, {doc}`the last </book/y/c>`", time="60 minutes")
    assert reading_path.declared(text, "book/p/q") == (60, ["book/p/a", "book/x/b", "book/y/c"])
    with pytest.raises(ValueError, match="book/p/q declares no"):
        reading_path.declared("# T\n", "book/p/q")


def test_every_chapter_of_the_book_declares_both():
    for path in project.notebooks(project.ROOT):
        page = path.relative_to(project.ROOT).with_suffix("").as_posix()
        if page.count("/") > 1:
            time, needs = reading_path.declared(path.read_text(encoding="utf-8"), page)
            assert 30 <= time <= 180, page
            assert all((project.ROOT / f"{need}.md").exists() for need in needs), page


def test_hours():
    assert reading_path.hours(115) == "115 minutes" and reading_path.hours(185) == "3 h 05 min"


def site(path):
    pages = {"index": "# Start\n\n```{reading-path}\n" + path + "\n```\n\n```{toctree}\nbook/p/a\nbook/p/b\n```\n"}
    pages["book/p/a"] = FRONT.format(title="The first", needs="nothing", time="one hour")
    pages["book/p/b"] = FRONT.format(title="The second", needs="{doc}`a`", time="65 minutes")
    return pages


def test_a_path_shows_titles_times_and_their_sum(tmp_path):
    write(tmp_path, site("p/a: Why *it*.\np/b: And then."))
    assert build(tmp_path, EXTENSION, first="index") == (0, "")
    soup = read(tmp_path, "index")
    items = [" ".join(item.get_text().split()) for item in soup.select("ol.reading-path li")]
    assert items == ["The first (60 minutes). Why it.", "The second (65 minutes). And then."]
    assert "In all about 2 h 05 min." in soup.get_text()
    assert [link["href"] for link in soup.select("ol.reading-path a")] == ["book/p/a.html", "book/p/b.html"]


def test_paths_that_cannot_be_walked_stop_the_build(tmp_path):
    faults = {
        "p/b: First.\np/a: Second.": "book/p/b builds on book/p/a: list it later",
        "p/c: Lost.": "book/p/c is not a page of the book",
        "p/a": "'p/a' is not of the form 'chapter: why it is on the path'",
    }
    write(tmp_path, site("\n```\n\n```{reading-path}\n".join(faults)))
    status, printed = build(tmp_path, EXTENSION, first="index")
    assert status != 0 and [message for message in faults.values() if message not in printed] == []

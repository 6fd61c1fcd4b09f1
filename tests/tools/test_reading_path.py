"""Reading paths: times and prerequisites are those that the chapters declare."""

import pytest
from small_site import build, read, write

from tools.build import dependencies
from tools.sphinx_ext import reading_path

FRONT = "# {title}\n\n**Prerequisites:** {needs}. **Time:** about {time}. More words.\n"
EXTENSION = "tools.sphinx_ext.reading_path"


def test_prerequisites_are_read_from_links_to_pages_and_to_labels():
    needs = "{doc}`a`, {doc}`../x/b`, {doc}`the last </book/y/c>`, {ref}`ch-d`, {ref}`another <ch-e>`"
    texts = {"book/p/q": FRONT.format(title="T", needs=needs, time="60 minutes")}
    texts |= {"book/p/a": "", "book/x/b": "(ch-d)=\n# B\n", "book/y/c": "(ch-e)=\n# C\n"}
    places = dependencies.labels(texts)
    wanted = ["book/p/a", "book/x/b", "book/y/c", "book/x/b", "book/y/c"]
    assert dependencies.declared("book/p/q", texts, places) == (60, wanted)
    with pytest.raises(ValueError, match="book/x/b declares no"):
        dependencies.declared("book/x/b", texts, places)


def test_hours():
    assert reading_path.hours(115) == "115 minutes" and reading_path.hours(185) == "3 h 05 min"


def site(path, needs="{doc}`a`"):
    pages = {"index": "# Start\n\n```{reading-path}\n" + path + "\n```\n\n```{toctree}\nbook/p/a\nbook/p/b\n```\n"}
    pages["book/p/a"] = "(ch-first)=\n" + FRONT.format(title="The first", needs="nothing", time="one hour")
    pages["book/p/b"] = FRONT.format(title="The second", needs=needs, time="65 minutes")
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


def test_a_prerequisite_that_is_named_by_its_label_must_come_first_too(tmp_path):
    write(tmp_path, site("p/b: First.\np/a: Second.", needs="{ref}`the first <ch-first>`"))
    status, printed = build(tmp_path, EXTENSION, first="index")
    assert status != 0 and "book/p/b builds on book/p/a: list it later" in printed

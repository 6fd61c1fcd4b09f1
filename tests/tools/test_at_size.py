"""Figures at full size: folded under those of the build, with how they were computed."""

import json

from small_site import build, read, write

from tools.build import archive

EXTENSION = "tools.sphinx_ext.at_size"
NOTEBOOK = "---\njupytext:\n  text_representation:\n    format_name: myst\nkernelspec:\n  name: python3\n---\n"
FIGURE = "```{{figure}} {0}.svg\n:name: {0}\n:alt: A line rises.\n\nCaption of {0}.\n```\n"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><path d="M0 0L4 {0}"/></svg>'
CODE = {"its cells": "1"}
ENTRY = {"records": {}, "code": CODE, "data": {}, "seconds": 300.0, "commit": "0123456789abcdef"}


def site(root, parts, notebook=NOTEBOOK):
    """A page with two figures, one of them in the archive; `parts`: the code of the page now."""
    page = notebook + "# Page\n\n" + FIGURE.format("fig-a") + "\n" + FIGURE.format("fig-b")
    write(root, {"index": "# Start\n\n```{toctree}\nbook/page\n```\n", "book/page": page})
    for name in ("fig-a", "fig-b"):
        (root / "book" / f"{name}.svg").write_text(SVG.format(1))
    archive.write(root, "book/page", ENTRY, {"fig-b": SVG.format(4)})
    said = root / "_build" / archive.AT_SIZE / "book" / "page.json"
    said.parent.mkdir(parents=True)
    said.write_text(json.dumps(archive.of_page(archive.read(root)["book/page"], parts)))
    assert build(root, EXTENSION, first="index") == (0, "")
    return read(root, "book/page")


def test_an_archived_figure_stands_folded_under_that_of_the_build(tmp_path):
    soup = site(tmp_path, CODE)
    (fold,) = soup.select("details.at-size")
    assert fold.find_parent("figure")["id"] == "fig-b"
    image = fold.select_one("img")
    assert image["alt"] == "The same figure at full size. A line rises."
    assert (tmp_path / "_build" / "html" / "book" / image["src"]).read_text() == SVG.format(4)
    text = " ".join(fold.get_text(" ").split())
    assert "in the preset paper , 5 min, at commit 012345678. Sizes" in text


def test_an_archived_figure_of_changed_code_says_so(tmp_path):
    soup = site(tmp_path, {"its cells": "2"})
    assert "at commit 012345678; the code has changed since." in soup.select_one("details.at-size").get_text()


def test_a_page_may_name_the_sizes_itself(tmp_path):
    soup = site(tmp_path, CODE, NOTEBOOK.replace("---\n", '---\nfull_size: "all & more"\n', 1))
    fold = soup.select_one("details.at-size")
    assert fold.summary.get_text() == "At full size: all & more"
    assert fold.img["alt"] == "The same figure at full size. A line rises."


def test_a_page_that_names_no_size_says_full_size(tmp_path):
    assert site(tmp_path, CODE).select_one("details.at-size summary").get_text() == "At full size"

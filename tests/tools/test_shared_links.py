"""Previews of shared links and the page for a wrong address, on a site of three pages: with a fork's remote, and
without one.
"""

import pytest
from docutils import nodes
from small_site import build, read, write

from tools.build import project
from tools.sphinx_ext import preview

EXTENSIONS = ("sphinxext.opengraph", "notfound.extension", "tools.sphinx_ext.preview", "tools.sphinx_ext.not_found")
LONG = "A very long sentence goes on and on about " + "one thing and another, " * 12 + "and ends."
PAGES = {
    "index": (
        "# Start\n\nThe first line & more words than before. A second one.\n\n"
        '```{toctree}\n:caption: "Part I: Foundations"\nbook/p/a\nbook/p/b\n```\n'
    ),
    "book/p/a": (
        "# Chapter\n\n```{admonition} Objectives\nAfter this you can.\n```\n\n## The question\n\n"
        'At $x=1$ it waits. **Why does it wait, and who says "now" to it?** It falls. Let $y$ be.\n\n## More\n\n'
        "Later words.\n"
    ),
    "book/p/b": f"# Formula\n\n$$x$$\n\n{LONG}\n",
}


def tags(soup):
    """What a service reads in the head of a page."""
    return {
        node.get("property") or node["name"]: node["content"]
        for node in soup.select("meta[property^='og:'], meta[name=description]")
    }


@pytest.fixture(scope="module", params=["https://github.com/Someone/fork.git", None], ids=["fork", "no remote"])
def site(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    write(root, PAGES, remote=request.param)
    assert build(root, *EXTENSIONS, first="index") == (0, "")
    return root, request.param


def test_each_page_has_title_and_description(site):
    root, _ = site
    for name, title, text in (
        ("index", "Start", "The first line & more words than before. A second one."),
        ("book/p/a", "Chapter", "Why does it wait, and who says “now” to it? It falls."),
        ("book/p/b", "Formula", preview.BOOK),
    ):
        found = tags(read(root, name))
        assert found["og:title"] == title and found["og:type"] == "website"
        assert found["og:description"] == found["description"] == text


def test_addresses_are_the_forks_or_absent(site):
    root, remote = site
    found = tags(read(root, "book/p/a"))
    if remote:
        assert found["og:url"] == "https://someone.github.io/fork/book/p/a.html"
        assert found["og:image"] == "https://someone.github.io/fork/_static/preview.png"
    else:
        assert not {"og:url", "og:image", "og:image:alt"} & set(found)


def test_wrong_address_leads_back(site):
    root, remote = site
    soup, prefix = read(root, "404"), "/fork/" if remote else "/"
    assert soup.select_one("article h1").get_text().startswith("No such page")
    assert soup.select_one("article form")["action"] == f"{prefix}search.html"
    links = {link.get_text(): link["href"] for link in soup.select("article p a, article li a")}
    assert links == {"start page": f"{prefix}index.html", "Part I: Foundations": f"{prefix}book/p/a.html"}


def test_description_stops_at_an_equation_and_at_the_limit():
    def described(*paragraphs):
        section = nodes.section(
            "", nodes.title("", "T"), *(nodes.paragraph("", "", *children) for children in paragraphs)
        )
        return preview.describe(section)

    equation, opening = nodes.math("x", "x"), "It waits for a long time before anything happens."
    assert described([nodes.Text(f"{opening} Two. With "), equation, nodes.Text(" three. Four.")]) == f"{opening} Two."
    assert described([nodes.Text(f"{opening} {LONG}")]) == opening
    assert described(
        [nodes.Text("With "), equation, nodes.Text(". It waits on. Why does it wait, and what ends the wait at last?")]
    ) == ("Why does it wait, and what ends the wait at last?")
    assert described([nodes.Text("With "), equation, nodes.Text(f". {opening}")], [nodes.Text(opening)]) == opening
    assert described([nodes.Text("Too short.")], [equation]) == preview.BOOK


def test_the_picture_is_what_services_ask_for():
    data = (project.ROOT / "book" / "_static" / preview.PICTURE).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) < 150_000
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1200, 630)

"""The address of a site, previews of shared links, the page for a wrong address: of a fork, and without a remote."""

import pytest
from small_site import build, read, write

from tools.build import project
from tools.site import address
from tools.sphinx_ext import published

EXTENSIONS = ("sphinxext.opengraph", "notfound.extension", "tools.sphinx_ext.published", "tools.sphinx_ext.launch")
PAGES = {
    "index": "---\nabout: \"The first line & more 'words'.\"\n---\n# Start\n\n```{toctree}\nbook/p/a\n```\n",
    "book/p/a": "# Formula\n\n$$x$$\n",
}


@pytest.mark.parametrize(
    ("repository", "site", "prefix"),
    [
        ("https://github.com/Someone/fork.git", "https://someone.github.io/fork/", "/fork/"),
        ("git@github.com:someone/someone.github.io.git", "https://someone.github.io/", "/"),
        ("https://gitlab.com/group/sub/book", "https://group.gitlab.io/sub/book/", "/sub/book/"),
        (None, None, "/"),
    ],
)
def test_site_of_a_remote(repository, site, prefix):
    remote = repository and project.parse_remote(repository, "main")
    assert (address.site(remote), address.prefix(remote)) == (site, prefix)


@pytest.mark.parametrize("remote", ["https://github.com/Someone/fork.git", None], ids=["fork", "no remote"])
def test_previews_and_the_page_for_a_wrong_address(tmp_path, remote):
    write(tmp_path, PAGES, remote=remote)
    notebook = tmp_path / "_build" / "notebooks" / "book" / "p" / "a.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text("{}")
    assert build(tmp_path, *EXTENSIONS, first="index") == (0, "")
    for name, title, text in (
        ("index", "Start", "The first line & more 'words'."),
        ("book/p/a", "Formula", published.BOOK),
    ):
        meta = read(tmp_path, name).select("meta[property^='og:'], meta[name=description]")
        tags = {node.get("property") or node["name"]: node["content"] for node in meta}
        assert (tags["og:title"], tags["og:description"], tags["description"]) == (title, text, text)
    reports = [link["href"] for link in read(tmp_path, "book/p/a").select("p.report-error a")]
    wanted = "https://github.com/Someone/fork/issues/new?template=error.yml&title=Error%3A+Formula&page=Formula"
    assert reports == ([f"{wanted}+%28book%2Fp%2Fa%29"] if remote else [])
    assert not read(tmp_path, "book/p/a").select("a[class*='btn-launch-']"), "a page of text has nothing to launch"
    if remote:
        assert tags["og:url"] == "https://someone.github.io/fork/book/p/a.html"
        assert tags["og:image"] == "https://someone.github.io/fork/_static/preview.png"
    else:
        assert not {"og:url", "og:image", "og:image:alt"} & set(tags)
    soup, prefix = read(tmp_path, "404"), "/fork/" if remote else "/"
    assert soup.select_one("article h1").get_text().startswith("No such page")
    assert soup.select_one("article form")["action"] == f"{prefix}search.html"
    assert soup.select_one("article p a")["href"] == f"{prefix}index.html"
    assert soup.select_one("html")["data-content_root"] == prefix


def test_the_picture_is_what_services_ask_for():
    data = (project.ROOT / "book" / "_static" / "preview.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) < 150_000
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1200, 630)

"""Each check of the built site finds the fault it is there for (and accepts the sound page)."""

import pytest
from bs4 import BeautifulSoup

from lib.services import ledger
from tools.build import project
from tools.site import site_checks

SOUND = """
<html><head><script src="a.js"></script></head><body><article>
<h1 id="top">Title</h1><p>Text with <span class="math">\\(x\\)</span> and <code>$HOME</code>.
<a class="reference" href="other.html#place">Other</a> <a href="https://example.org/">outside</a></p>
<figure id="fig-a"><img src="a.svg" alt="A line that falls from one to zero over ten steps.">
<figcaption><p><span class="caption-text">A caption that says what is to be seen.</span></p></figcaption></figure>
</article></body></html>
"""


def soup_of(text):
    return BeautifulSoup(text, "html.parser")


@pytest.fixture
def problems(tmp_path):
    """All problems of a page, from every check that looks at a single one."""
    for name in ("a.js", "a.svg", "other.html"):
        (tmp_path / name).write_text('<p id="place">Here</p>')
    path = tmp_path / "page.html"

    def found(text):
        path.write_text(text)
        soup = site_checks.read(path)
        links = site_checks.Links(tmp_path).problems(path, soup)
        return site_checks.content(soup) + site_checks.figures(soup) + links

    return found


def test_sound_page_passes(problems):
    assert problems(SOUND) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('alt="A line that falls from one to zero over ten steps."', "", "alt text"),
        ("over ten steps.", "over ten steps", "alt text"),
        ("A line that falls from one to zero over ten steps.", "Figure.", "alt text"),
        ("<figcaption>", "<p>", "caption"),
        ('<figure id="fig-a">', "<div>", "not in a figure"),
        ("other.html#place", "other.html#nowhere", "names no place"),
        ("other.html#place", "absent.html", "names no file"),
        ("other.html#place", "../outside.html", "names no file"),
        ('src="a.svg"', 'src="b.svg"', "names no file"),
        ('src="a.js"', 'src="https://example.org/a.js"', "not served from the build"),
        ("Text with", '<link rel="stylesheet" href="//example.org/x.css">', "not served from the build"),
        ("Text with", "see {ref}`lost`", "role"),
        ("Text with", "\n:::note", "fence"),
        ("Text with", "a raw $x^2$ here", "TeX"),
        ("Text with", '<object data="a.svg"></object>', "without an alt text"),
    ],
)
def test_fault_is_found(problems, old, new, message):
    assert old in SOUND
    assert any(message in problem for problem in problems(SOUND.replace(old, new)))


def test_pages_are_compared_with_the_toc(tmp_path):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n")
    site = tmp_path / "html"
    for name in ("book/a", "book/old", "_modules/lib/x", *site_checks.GENERATED):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / f"{name}.html").touch()
    assert site_checks.pages(tmp_path, site) == ["page book/b is missing", "page book/old is left over"]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one notebook page and its published copy, and a remote."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "a.md").write_text(
        "---\njupytext: {text_representation: {extension: .md, format_name: myst}}\nkernelspec: {name: python3}\n---\n"
    )
    published = tmp_path / "html" / "_sources" / "book" / "a.ipynb"
    published.parent.mkdir(parents=True)
    published.touch()
    monkeypatch.setattr(project, "remote", lambda root: project.Remote("github.com", "someone/fork", "main"))
    return tmp_path


def test_launch_links_are_recomputed(checkout):
    remote, download = project.remote(checkout), '<a href="../_sources/book/a.ipynb"></a>'
    buttons = ((1, remote.binder("book/a")), (2, remote.colab("book/a")))
    links = [f'<a class="btn-launch-{number}" href="{link}"></a>' for number, link in buttons]

    def found(text):
        return site_checks.launch(checkout, checkout / "html", "book/a", soup_of(text))

    assert found(download + "".join(links)) == []
    assert "launch links" in found(download + links[0])[0]
    assert "launch links" in found(download + "".join(links).replace("fork", "other"))[0]
    assert "not offered" in found("".join(links))[0]
    (checkout / "html" / "_sources" / "book" / "a.ipynb").unlink()
    said = found(download + "".join(links))
    assert "colab" in said[0] and "names no file" in said[0] and "not published" in said[1]


LOST = """<html><head><script src="/fork/a.js"></script></head><body><article><a href="#main">Skip</a>
<form action="/fork/search.html"><input name="q"></form><a href="/fork/book/a.html">A</a>
<a href="/fork/book/b.html">B</a></article></body></html>"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("/fork/a.js", "a.js", "a.js does not lead from the root"),
        ("/fork/a.js", "/fork/b.js", "b.js does not lead from the root"),
        ("/fork/book/b.html", "/book/b.html", "/book/b.html does not lead from the root"),
        ("/fork/book/b.html", "/fork/book/a.html", "book/b.html is not offered"),
        ("/fork/search.html", "/fork/book/a.html", "search.html is not offered"),
    ],
)
def test_page_for_a_wrong_address_is_checked(checkout, old, new, message):
    (checkout / "_toc.yml").write_text("format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n")
    (checkout / "html" / "book").mkdir()
    for name in ("a.js", "search.html", "book/a.html", "book/b.html"):
        (checkout / "html" / name).touch()

    def found(text):
        (checkout / "html" / "404.html").write_text(text)
        return site_checks.not_found(checkout, checkout / "html")

    assert found(LOST) == [] and old in LOST
    assert any(message in problem for problem in found(LOST.replace(old, new)))


def test_ledger_page_is_compared_with_the_rows(tmp_path):
    (tmp_path / "book" / "ledger").mkdir(parents=True)
    (tmp_path / "book" / "a.html").write_text('<p id="ledger-x-1"></p>')
    row = {"id": "x/1", "chapter": "book/a", "anchor": "ledger-x-1", "verdict": "reproduced", "citation": "key"}
    rows = [row | {"cause": None}, row | {"id": "x/2", "chapter": None, "verdict": "open", "cause": None}]
    counts = "".join(f"<li>{number} {verdict}: why</li>" for verdict, number in ledger.tallies(rows)[0].items())
    summary = f'<ul class="ledger-summary">{counts}</ul><p class="ledger-own">Beside them stand 0 results</p>'
    items = '<li class="claim" id="ledger-x-1"></li><li class="claim" id="ledger-x-2"></li>'

    def found(text, rows=rows, items=items):
        (tmp_path / "book" / "ledger.html").write_text(text)
        (tmp_path / "book" / "ledger" / "key.html").write_text(items)
        return site_checks.ledger_rows(tmp_path, rows)

    assert found(summary) == []
    assert "show 1 rows" in found(summary, items=items[: len(items) // 2])[0]
    assert "or others" in found(summary, items=items.replace("x-2", "x-3"))[0]
    assert "the ledger counts" in found(summary, [rows[0] | {"verdict": "open"}, rows[1]])[0]
    assert "the ledger counts" in found(summary, [rows[0], rows[1] | {"citation": None}])[0]
    assert "has no anchor" in found(summary, [rows[0] | {"anchor": "lost"}, rows[1]])[0]
    assert "the ledger counts []" in found("")[0]

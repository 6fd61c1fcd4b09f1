"""Each check of the built site finds the fault it is there for (and accepts the sound page)."""

import pytest
from bs4 import BeautifulSoup

from tools.build import project
from tools.site import site_checks

SOUND = """
<html><head><script src="_static/mathjax/tex-chtml.js"></script></head><body><article>
<h1 id="top">Title</h1><p>Text with <span class="math">\\(x\\)</span> and <code>$HOME</code>.
<a class="reference" href="other.html#place"><span class="xref">Other</span></a></p>
<figure id="fig-a"><img src="a.svg" alt="A line that falls from one to zero over ten steps.">
<figcaption><p><span class="caption-text">A caption that says what is to be seen.</span></p></figcaption></figure>
</article></body></html>
"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "_static" / "mathjax").mkdir(parents=True)
    (tmp_path / "_static" / "mathjax" / "tex-chtml.js").touch()
    (tmp_path / "_static" / "mathjax" / "font.woff").touch()
    (tmp_path / "a.svg").touch()
    (tmp_path / "other.html").write_text('<p id="place">Here</p>')
    (tmp_path / "page.html").write_text(SOUND)
    return tmp_path


def problems(site, text):
    """All problems of one page, from every check that looks at a single page."""
    path = site / "page.html"
    path.write_text(text)
    soup = site_checks.read(path)
    found = (
        site_checks.content(soup)
        + site_checks.figures(soup)
        + site_checks.assets(soup)
        + site_checks.mathjax(path, soup)
    )
    return found + site_checks.Links(site).problems(path, soup)


def test_sound_page_passes(site):
    assert problems(site, SOUND) == []


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
        ('src="_static/mathjax/tex-chtml.js"', 'src="https://example.org/mathjax.js"', "not served from the build"),
        ('src="_static/mathjax/tex-chtml.js"', 'src="_static/other.js"', "MathJax"),
        ("Text with", "Traceback (most recent call last)", "traceback"),
        ("Text with", '<span class="problematic">x</span>', "could not resolve"),
        ("Text with", '<div class="output stderr">x</div>', "stderr"),
        ("Text with", '<span class="xref">lost</span>', "leads nowhere"),
        ("Text with", "see {ref}`lost`", "role"),
        ("Text with", "\n:::note", "fence"),
        ("Text with", "a raw $x^2$ here", "TeX"),
        ("Text with", "as shown in [?]", "unresolved"),
        ("Text with", '<span class="bibtex-citation">[]</span>', "unresolved"),
        ("Text with", '<script src="//example.org/x.js"></script>', "not served from the build"),
        ("Text with", '<iframe src="https://example.org/"></iframe>', "not served from the build"),
        ("Text with", '<script>import "https://example.org/x.js"</script>', "fetches from the network"),
        ("Text with", "<style>@import url(https://example.org/x.css)</style>", "fetches from the network"),
        ("Text with", '<object data="a.svg"></object>', "without an alt text"),
    ],
)
def test_fault_is_found(site, old, new, message):
    assert old in SOUND
    assert any(message in problem for problem in problems(site, SOUND.replace(old, new)))


def test_missing_mathjax_script_is_found(site):
    (site / "_static" / "mathjax" / "tex-chtml.js").unlink()
    assert any("MathJax" in problem for problem in problems(site, SOUND))


def test_pages_are_compared_with_the_toc(tmp_path):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n")
    site = tmp_path / "html"
    (site / "book").mkdir(parents=True)
    for name in ("book/a", "book/old", *site_checks.GENERATED):
        (site / f"{name}.html").touch()
    assert site_checks.pages(tmp_path, site) == ["page book/b is missing", "page book/old is left over"]


@pytest.fixture
def launched(tmp_path, monkeypatch):
    """A checkout with one notebook page and its published copy, and a remote."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "a.md").write_text(
        "---\njupytext: {text_representation: {extension: .md, format_name: myst}}\nkernelspec: {name: python3}\n---\n"
    )
    published = tmp_path / "html" / "_sources" / "book" / "a.ipynb"
    published.parent.mkdir(parents=True)
    published.touch()
    remote = project.Remote("github.com", "someone/fork", "main")
    monkeypatch.setattr(project, "remote", lambda root: remote)
    links = [
        f'<a class="btn-launch-{n}" href="{u}"></a>'
        for n, u in (("b", remote.binder("book/a")), ("c", remote.colab("book/a")))
    ]
    return tmp_path, '<a href="../_sources/book/a.ipynb"></a>', links


def test_launch_links_are_recomputed(launched):
    root, download, links = launched

    def found(text):
        return site_checks.launch(root, root / "html", "book/a", BeautifulSoup(text, "html.parser"))

    assert found(download + "".join(links)) == []
    assert "launch links" in found(download + links[0])[0]
    assert "launch links" in found(download + "".join(links).replace("fork", "other"))[0]
    assert "not offered" in found("".join(links))[0]
    (root / "html" / "_sources" / "book" / "a.ipynb").unlink()
    assert "names no file" in found(download + "".join(links))[0] and "colab" in found(download + "".join(links))[0]
    assert "not published" in found(download + "".join(links))[1]


PREVIEWED = """<html><head><meta property="og:title" content="A"><meta property="og:type" content="website">
<meta property="og:description" content="It falls, waits, and falls.">
<meta name="description" content="It falls, waits, and falls.">
<meta property="og:url" content="https://someone.github.io/fork/book/a.html">
<meta property="og:image" content="https://someone.github.io/fork/_static/preview.png"></head></html>"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("og:title", "og:other", "og:title is missing"),
        ("It falls, waits, and falls.", "At $x=1$ it falls and waits.", "not a sentence or two in words"),
        ("It falls, waits, and falls.", "It falls.", "not a sentence or two in words"),
        ('name="description"', 'name="other"', "search engines"),
        ("fork/book/a.html", "other/book/a.html", "addresses are"),
        ("og:image", "og:other", "addresses are"),
    ],
)
def test_preview_of_a_page_is_checked(launched, old, new, message):
    root, _, _ = launched
    (root / "html" / "_static").mkdir()
    (root / "html" / "_static" / "preview.png").touch()

    def found(text):
        return site_checks.preview(root, root / "html", "book/a", BeautifulSoup(text, "html.parser"))

    assert found(PREVIEWED) == [] and old in PREVIEWED
    assert any(message in problem for problem in found(PREVIEWED.replace(old, new)))


def test_preview_without_a_remote_names_no_address_and_needs_no_picture(launched, monkeypatch):
    root, _, _ = launched
    soup = BeautifulSoup(PREVIEWED, "html.parser")
    assert "picture of the preview is not published" in site_checks.preview(root, root / "html", "book/a", soup)[0]
    monkeypatch.setattr(project, "remote", lambda root: None)
    assert "expected none" in site_checks.preview(root, root / "html", "book/a", soup)[0]
    for node in soup.select("meta[property='og:url'], meta[property='og:image']"):
        node.decompose()
    assert site_checks.preview(root, root / "html", "book/a", soup) == []


LOST = """<html data-content_root="/fork/"><head><script src="/fork/a.js"></script></head>
<body><article><a href="#main">Skip</a>
<form action="/fork/search.html"><input name="q"></form><a href="/fork/book/a.html">A</a>
<a href="/fork/book/b.html">B</a>
</article></body></html>"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("/fork/a.js", "a.js", "a.js does not lead from the root"),
        ("/fork/a.js", "/fork/b.js", "b.js does not lead from the root"),
        ("/fork/book/b.html", "/book/b.html", "/book/b.html does not lead from the root"),
        ("/fork/book/b.html", "/fork/book/a.html", "book/b.html is not offered"),
        ("/fork/search.html", "/fork/book/a.html", "search.html is not offered"),
        ('name="q"', 'name="r"', "no search box"),
        ('root="/fork/"', 'root="./"', "search index in the wrong place"),
    ],
)
def test_page_for_a_wrong_address_is_checked(launched, old, new, message):
    root, _, _ = launched
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n")
    (root / "html" / "book").mkdir()
    for name in ("a.js", "search.html", "book/a.html", "book/b.html"):
        (root / "html" / name).touch()

    def found(text):
        (root / "html" / "404.html").write_text(text)
        return site_checks.not_found(root, root / "html")

    assert found(LOST) == [] and old in LOST
    assert any(message in problem for problem in found(LOST.replace(old, new)))


def test_ledger_page_is_compared_with_the_rows(tmp_path):
    (tmp_path / "book").mkdir()
    counts = "".join(
        f"<li>{n} {verdict}: why</li>"
        for n, verdict in (
            (1, "reproduced"),
            (0, "corrected (an error)"),
            (0, "corrected (a slip)"),
            (0, "refuted"),
            (1, "open"),
        )
    )
    table = '<table class="ledger"><tbody><tr></tr><tr></tr></tbody></table>'
    page = tmp_path / "book" / "ledger.html"
    (tmp_path / "book" / "a.html").write_text('<p id="ledger-x-1"></p>')
    rows = [
        {
            "id": "x/1",
            "chapter": "book/a",
            "anchor": "ledger-x-1",
            "verdict": "reproduced",
            "citation": "key",
            "cause": None,
        },
        {"id": "x/2", "chapter": None, "anchor": None, "verdict": "open", "citation": "key", "cause": None},
    ]

    def found(text, rows=rows):
        page.write_text(text)
        return site_checks.ledger_rows(tmp_path, rows)

    summary = f'<ul class="ledger-summary">{counts}</ul><p class="ledger-own">Beside them stand 0 results</p>'
    assert found(summary + table) == []
    assert "shows 1 rows" in found(summary + table.replace("<tr></tr>", "", 1))[0]
    assert "counts 1 reproduced" in found(summary + table, [rows[0] | {"verdict": "open"}, rows[1]])[0]
    assert "does not say that 1 results" in found(summary + table, [rows[0], rows[1] | {"citation": None}])[-1]
    assert "has no anchor" in found(summary + table, [rows[0] | {"anchor": "lost"}, rows[1]])[0]
    assert "counts are missing" in found(table)[-1]
    assert found(table)[0] == "the ledger does not say that 0 results are the book's own"


def test_line_under_a_figure_is_compared_with_the_trace(tmp_path):
    (tmp_path / "_config.yml").write_text("parse: {myst_enable_extensions: []}")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("def make_it():\n    pass\n")
    head = (
        "---\nkernelspec: {name: python3}\njupytext: {text_representation: {extension: .md, format_name: myst}}\n---\n"
    )
    cell = "```{{code-cell}} ipython3\n---\nmystnb: {{figure: {{name: {}, caption: C.}}}}\n---\n{}\n```\n"
    (tmp_path / "p.md").write_text(
        head + cell.format("fig-a", "from lib import a\na.make_it()") + cell.format("fig-b", "print(1)")
    )
    made = '<figure id="fig-a"><img><p class="computed-by">By <a href="../library/a.html#make-it">a</a></p></figure>'
    none = '<figure id="fig-b"><img><p class="computed-by">In this page\'s own cells.</p></figure>'

    def found(text):
        return site_checks.computed_by(tmp_path, "p", BeautifulSoup(f"<article>{text}</article>", "html.parser"))

    assert found(made + none) == []
    assert "are shown" in found(made)[0]
    assert "not by ['a.html#make-it']" in found(made.replace("make-it", "other") + none)[0]
    assert "not by ['a.html#make-it']" in found(made.replace("computed-by", "") + none)[0]
    assert "computed by [], not by" in found(none.replace("fig-b", "fig-a") + none)[0]
    assert (
        "fig-b is said to be computed by ['a.html#make-it'], not by []"
        in found(made + made.replace("fig-a", "fig-b"))[0]
    )
    assert "does not say" in found(made + none.replace("own", "my"))[0]

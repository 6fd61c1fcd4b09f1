"""What is checked on the built pages; each function returns a list of problems, empty if all is well.

References and citations are Sphinx's to check (strict and nitpicky), what is fetched, drawn and read aloud the
browser's (``browser_checks.py``).  Here is what neither sees.
"""

import copy
import functools
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from bs4 import BeautifulSoup, Comment

from lib.services import ledger
from tools.build import project
from tools.site import address
from tools.sphinx_ext.weight import PARTS

# Pages that Sphinx and its extensions write besides the ones in _toc.yml.
GENERATED = {"index", "search", "404"}
ROLE = re.compile(r"\{[a-z:]+\}`")
FENCE = re.compile(r"(^|\n)\s*(:::|```)")
DOLLAR = re.compile(r"\$[^\s$][^$]*\$|\$\$")


@functools.lru_cache(maxsize=256)
def _parsed(text):
    return BeautifulSoup(text, "html.parser")


def read(path):
    """A built page, parsed; treat it as read-only, since pages of the same text are parsed once."""
    return _parsed(path.read_text(encoding="utf-8"))


def site_folder(root):
    return Path(root) / "_build" / "html"


def html_path(site, page):
    return site / f"{page}.html"


def pages(root, site):
    """The site has the pages of ``_toc.yml``, the generated ones, the library's, and no other."""
    wanted = set(project.toc_pages(root)) | GENERATED
    found = {project.page_name(site, path) for path in site.rglob("*.html") if "_static" not in path.parts}
    over = {page for page in found - wanted if not page.startswith(("library/", "_modules/"))}
    return [f"page {page} is missing" for page in sorted(wanted - found)] + [
        f"page {page} is left over" for page in sorted(over)
    ]


def content(soup):
    """No raw markup in the visible text, code and equations apart."""
    soup = copy.copy(soup)
    for node in [*soup(["script", "style", "pre", "code", "template", "svg"]), *soup(class_=["math", "highlight"])]:
        node.decompose()
    for node in soup(string=lambda text: isinstance(text, Comment)):
        node.extract()
    text = soup.get_text()
    kinds = ((ROLE, "a role"), (FENCE, "a directive fence"), (DOLLAR, "TeX dollars"))
    found = [(what, pattern.search(text)) for pattern, what in kinds]
    return [f"raw markup ({what}): {match.group().strip()!r}" for what, match in found if match]


def _is_sentence(text):
    return len(text.split()) >= 6 and text[0].isupper() and text[-1] == "."


def figures(soup):
    """Every picture of the text is described in a sentence; every image is in a figure with a caption of one."""
    article = soup.select_one("article") or soup
    found = [
        f"a {node.name} is shown without an alt text"
        for node in article.select("object, embed, iframe, .cell_output svg")
        if not (node.get("role") == "img" and _is_sentence(node.get("aria-label", "")))
    ]
    for image in article.select("img"):
        name, alt = image.get("src", "?"), image.get("alt", "").strip()
        if not _is_sentence(alt):
            found.append(f"image {name}: the alt text must be a sentence, got {alt!r}")
        if image.find_parent("figure") is None:
            found.append(f"image {name} is not in a figure with a caption")
    for figure in article.select("figure"):
        caption = figure.select_one("figcaption .caption-text")
        if caption is None or len(caption.get_text().split()) < 6:
            found.append(f"figure {figure.get('id')!r} has no caption of a sentence")
    return found


class Links:
    """Checks links between pages; remembers the anchors of the pages that it has read."""

    def __init__(self, site):
        self.site, self.anchors = site, {}

    def ids(self, path):
        if path not in self.anchors:
            soup = read(path)
            named = {node["name"] for node in soup.select("a[name]")}
            self.anchors[path] = named | {node["id"] for node in soup.select("[id]")}
        return self.anchors[path]

    def problems(self, page_path, soup):
        """Links of a page to a file or an anchor that does not exist, and parts that are not served from the build."""
        found = []
        for node in soup.select("a[href], link[href], [src]"):
            href = node.get("href") or node.get("src")
            parts = urlsplit(href)
            if parts.scheme or parts.netloc:
                loaded = node.has_attr("src") or "stylesheet" in node.get("rel", [])
                found += [f"{href} is not served from the build"] if loaded and parts.scheme != "data" else []
                continue
            target = (page_path.parent / unquote(parts.path)).resolve() if parts.path else page_path
            if not target.is_file() or not target.is_relative_to(self.site):
                found.append(f"link {href} names no file of the site")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in self.ids(target):
                found.append(f"link {href} names no place in its page")
        return sorted(set(found))


def weight(site, page):
    """Bytes of what a page loads at once by its own words: itself, its style sheets, scripts and pictures, MathJax."""
    path = html_path(site, page)
    found = read(path).select("link[rel=stylesheet], script[src], img[src]:not([loading=lazy])")
    named = {urlsplit(node.get("href") or node.get("src")).path for node in found}
    files = {path, *((path.parent / unquote(name)).resolve() for name in named)}
    if any(file.name == "startup.js" for file in files):
        parts = (f"{name}.js" for name in ("core", "output/chtml/fonts/tex", *PARTS))
        files |= {site / "_static" / "mathjax" / name for name in parts}
    return sum(file.stat().st_size for file in files)


def launch(root, site, page, soup):
    """A notebook page offers its executed notebook; its launch links are the remote's, and name what exists."""
    remote, found = project.remote(root), []
    published = site / "_sources" / f"{page}.ipynb"
    notebook = project.is_notebook((root / page).with_suffix(".md"))
    expected = {link for link in (remote.binder(page), remote.colab(page)) if link} if remote and notebook else set()
    buttons = {node["href"] for node in soup.select("a[class*='btn-launch-']")}
    if buttons != expected:
        found.append(f"launch links are {sorted(buttons)}, expected {sorted(expected)}")
    for link in map(urlsplit, sorted(expected)):
        (opened,) = parse_qs(link.query).get("urlpath", [""])  # Binder; Colab reads the published site
        name = opened.removeprefix(project.LAUNCHED).removesuffix(".ipynb")
        if not (root / f"{name}.md" if opened else site / unquote(link.path).partition("/gh-pages/")[2]).is_file():
            found.append(f"launch link to {link.netloc} names no file")
    offered = [node for node in soup.select(f"a[href$='_sources/{page}.ipynb']") if not urlsplit(node["href"]).netloc]
    if notebook and not (offered and published.is_file()):
        found.append("the executed notebook is not offered, or not published")
    return found


def not_found(root, site):
    """On the page for a wrong address every address begins at the host's root and exists in the site; a search box and
    every page are among them.
    """
    soup, prefix = read(html_path(site, "404")), address.prefix(project.remote(root))
    targets = [
        urlsplit(node.get("href") or node.get("src") or node.get("action"))
        for node in soup.select("[href], [src], form[action]")
    ]
    inside = {unquote(target.path) for target in targets if target.path and not (target.scheme or target.netloc)}
    found = [
        f"address {path} does not lead from the root of {prefix} to a file of the site"
        for path in sorted(inside)
        if not path.startswith(prefix) or not (site / path.removeprefix(prefix)).is_file()
    ]
    wanted = {f"{prefix}search.html", *(f"{prefix}{page}.html" for page in project.toc_pages(root))}
    return found + [f"{path} is not offered" for path in sorted(wanted - inside)]


def ledger_rows(site, rows):
    """Each checked claim leads to a place in its chapter; its pages have one row a claim, and it counts them right."""
    links = Links(site)
    found = [
        f"{row['id']} has no anchor in {row['chapter']}"
        for row in rows
        if row["chapter"] and row["anchor"] not in links.ids(html_path(site, row["chapter"]))
    ]
    soup, (sources, own) = read(html_path(site, "book/ledger")), ledger.tallies(rows)
    pages = sorted((site / "book" / "ledger").glob("*.html"))
    shown = [item["id"] for page in pages for item in read(page).select("li.claim")]
    if sorted(shown) != sorted(ledger.anchor(row["id"]) for row in rows):
        found.append(f"the pages of the ledger show {len(shown)} rows for {len(rows)} claims, or others")
    said = [int(item.get_text().split()[0]) for item in soup.select(".ledger-summary li")]
    said += [int(number) for item in soup.select(".ledger-own") for number in re.findall(r"\d+", item.get_text())[:1]]
    if said != [*sources.values(), sum(own.values())]:
        found.append(f"the ledger counts {said}, not {sources} and {sum(own.values())} of the book's own")
    return found

"""What is checked on the built pages.  Each function returns a list of problems, empty if all is well."""

import copy
import functools
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from bs4 import BeautifulSoup, Comment

from lib.services import ledger
from tools.build import project
from tools.site import address, figure_sources, library
from tools.sphinx_ext.ledger_pages import WORDS

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


@functools.lru_cache(maxsize=4)
def _library(root):
    return library.modules(root)


def library_pages(root):
    """The pages of the modules of ``lib``, which ``tools/sphinx_ext/library_pages.py`` writes."""
    return [module.page for module in _library(root).values()]


def html_path(site, page):
    return site / f"{page}.html"


def pages(root, site):
    """The site has the pages of ``_toc.yml``, the generated ones, and no other."""
    wanted = set(project.toc_pages(root)) | GENERATED | set(library_pages(root))
    found = {
        path.relative_to(site).with_suffix("").as_posix()
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    return [f"page {page} is missing" for page in sorted(wanted - found)] + [
        f"page {page} is left over" for page in sorted(found - wanted)
    ]


def _prose(soup):
    """The visible text without code, equations and scripts."""
    soup = copy.copy(soup)
    for node in soup(["script", "style", "pre", "code", "template", "svg"]):
        node.decompose()
    for node in soup(class_=["math", "highlight"]):
        node.decompose()
    for node in soup(string=lambda text: isinstance(text, Comment)):
        node.extract()
    return soup.get_text()


def content(soup):
    """No traceback, no error output, no unresolved reference or citation, no raw markup."""
    found = []
    if soup.select(".output.traceback") or "Traceback (most recent call last)" in soup.get_text():
        found.append("a traceback is shown")
    if soup.select(".output.stderr"):
        found.append("a cell printed to stderr")
    found += [f"Sphinx could not resolve {node.get_text()!r}" for node in soup.select(".problematic, .system-message")]
    for node in soup.select("span.xref, code.xref"):
        if node.find_parent("a") is None:
            found.append(f"reference {node.get_text()!r} leads nowhere")
    text = _prose(soup)
    for pattern, what in ((ROLE, "a role"), (FENCE, "a directive fence"), (DOLLAR, "TeX dollars")):
        match = pattern.search(text)
        if match:
            found.append(f"raw markup ({what}): {match.group().strip()!r}")
    if re.search(r"\[\?\]|\?\?\?", text) or any(node.find("a") is None for node in soup.select(".bibtex-citation")):
        found.append("an unresolved citation or reference")
    return found


def figures(soup):
    """Every image of the text has an alt text that is a sentence; every plot is a figure with a caption."""
    found = []
    article = soup.select_one("article") or soup
    found += [
        f"a {node.name} is shown without an alt text"
        for node in article.select("object, embed, iframe, .cell_output svg")
        if not (node.get("role") == "img" and _is_sentence(node.get("aria-label", "")))
    ]
    for image in article.select("img"):
        name = image.get("src", "?")
        alt = image.get("alt", "").strip()
        if not _is_sentence(alt):
            found.append(f"image {name}: the alt text must be a sentence, got {alt!r}")
        if image.find_parent("figure") is None:
            found.append(f"image {name} is not in a figure with a caption")
    for figure in article.select("figure"):
        caption = figure.select_one("figcaption .caption-text")
        if caption is None or len(caption.get_text().split()) < 6:
            found.append(f"figure {figure.get('id')!r} has no caption of a sentence")
    return found


def _is_sentence(text):
    return len(text.split()) >= 6 and text[0].isupper() and text[-1] == "."


def computed_by(root, page, soup):
    """Under every figure of a notebook stand links to the functions of ``lib`` that made it, or the words that none
    did.
    """
    notebook = project.read_notebook(root, (root / page).with_suffix(".md"))
    wanted = figure_sources.figures(notebook, _library(root))
    found = []
    shown = {
        figure.get("id"): figure.select(".computed-by")
        for figure in soup.select("article figure")
        if figure.select_one("img")
    }
    if set(shown) != set(wanted):
        found.append(f"figures {sorted(map(str, shown))} are shown, the notebook has {sorted(wanted)}")
    for name, used in wanted.items():
        lines = shown.get(name, [])
        links = [unquote(link["href"]).rpartition("library/")[2] for line in lines for link in line.select("a[href]")]
        expected = [f"{module}.html#{library.anchor(function)}" for module, function in used]
        if len(lines) != 1 or links != expected[: len(links)] or bool(links) != bool(expected):
            found.append(f"figure {name} is said to be computed by {links}, not by {expected}")
        elif not used and "own cells" not in lines[0].get_text():
            found.append(f"figure {name} does not say what computed it")
    return found


NEEDED = "[src], object[data], link[rel~=stylesheet], link[rel~=preload], link[rel~=modulepreload], link[rel~=icon]"
FETCHED = re.compile(r"""(@import|import|url\()\s*\(?["']?(https?:)?//""")


def assets(soup):
    """Nothing that the page needs to be shown comes from the network."""
    needed = [node.get("src") or node.get("href") or node.get("data") for node in soup.select(NEEDED)]
    found = [
        f"asset {address} is not served from the build" for address in needed if address and urlsplit(address).netloc
    ]
    inline = " ".join(node.get_text() for node in soup.select("style, script:not([src])"))
    return found + [
        f"a script or style fetches from the network: {match.group()}" for match in FETCHED.finditer(inline)
    ]


def mathjax(page_path, soup):
    """A page with equations loads MathJax from the build, and the script and its fonts are there."""
    if not soup.select(".math"):
        return []
    scripts = [node["src"] for node in soup.select("script[src]") if "mathjax" in node["src"].lower()]
    local = [address for address in scripts if not urlsplit(address).scheme]
    if len(local) != 1 or len(scripts) != 1:
        return [f"equations need one MathJax script from the build, found {scripts}"]
    script = (page_path.parent / unquote(urlsplit(local[0]).path)).resolve()
    if not script.is_file() or not list(script.parent.rglob("*.woff")):
        return [f"MathJax ({script}) or its fonts are not in the build"]
    return []


class Links:
    """Checks links between pages; remembers the anchors of the pages that it has read."""

    def __init__(self, site):
        self.site = site
        self.anchors = {}

    def ids(self, path):
        if path not in self.anchors:
            soup = read(path)
            self.anchors[path] = {node["id"] for node in soup.select("[id]")} | {
                node["name"] for node in soup.select("a[name]")
            }
        return self.anchors[path]

    def problems(self, page_path, soup):
        """Links of a page to a file or an anchor that does not exist."""
        found = []
        for href in {
            node.get("href") or node.get("src") for node in soup.select("a[href], img[src], script[src], link[href]")
        }:
            parts = urlsplit(href)
            if parts.scheme or parts.netloc:
                continue
            target = (page_path.parent / unquote(parts.path)).resolve() if parts.path else page_path
            if not target.is_file() or not target.is_relative_to(self.site):
                found.append(f"link {href} names no file of the site")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in self.ids(target):
                found.append(f"link {href} names no place in its page")
        return sorted(found)


def launched_file(root, site, link):
    """The file behind a launch link: the page whose notebook Binder opens, or a file of the published site (Colab)."""
    parts = urlsplit(link)
    if parts.query:
        page = parse_qs(parts.query)["urlpath"][0].removeprefix(project.LAUNCHED).removesuffix(".ipynb")
        return root / f"{page}.md"
    return site / unquote(parts.path).partition("/blob/gh-pages/")[2]


def launch(root, site, page, soup):
    """A notebook page offers its executed notebook; its launch links are the remote's, and name notebooks that
    exist.
    """
    found = []
    remote = project.remote(root)
    addresses = [node["href"] for node in soup.select("a[href]")]
    downloads = [a for a in addresses if a.endswith(f"_sources/{page}.ipynb") and not urlsplit(a).scheme]
    buttons = {node["href"] for node in soup.select("a[class*='btn-launch-']")}
    notebook = project.is_notebook((root / page).with_suffix(".md"))
    expected = {link for link in (remote.binder(page), remote.colab(page)) if link} if remote and notebook else set()
    if buttons != expected:
        found.append(f"launch links are {sorted(buttons)}, expected {sorted(expected)}")
    for link in sorted(expected):
        if not launched_file(root, site, link).is_file():
            found.append(f"launch link {link} names no file")
    if notebook and not downloads:
        found.append("the executed notebook is not offered")
    if notebook and not (site / "_sources" / f"{page}.ipynb").is_file():
        found.append("the executed notebook is not published")
    return found


def preview(root, site, page, soup):
    """A shared link shows a title and a description in words; addresses are those of the remote's site, and absent
    without one.
    """
    tags = {node["property"]: node["content"] for node in soup.select("meta[property^='og:']")}
    home = address.site(project.remote(root))
    found = [f"{name} is missing" for name in ("og:title", "og:type", "og:description") if not tags.get(name)]
    description = tags.get("og:description", "")
    if re.search(r"[\\$`{}]", description) or not 20 <= len(description) <= 200:
        found.append(f"the description is not a sentence or two in words: {description!r}")
    if [node["content"] for node in soup.select("meta[name=description]")] != [description]:
        found.append("search engines are not given the same description once")
    expected = {"og:url": f"{home}{page}.html", "og:image": f"{home}_static/preview.png"} if home else {}
    if {name: tags[name] for name in ("og:url", "og:image") if name in tags} != expected:
        found.append(f"addresses are {tags.get('og:url')} and {tags.get('og:image')}, expected {expected or 'none'}")
    if home and not (site / "_static" / "preview.png").is_file():
        found.append("the picture of the preview is not published")
    return found


def not_found(root, site):
    """Every address on the page for a wrong address begins at the host's root, lies in the published folder and exists
    there; a search box and every page are among them.
    """
    soup = read(html_path(site, "404"))
    prefix = address.prefix(project.remote(root))
    found, inside = [], set()
    for node in soup.select("[href], [src], form[action]"):
        target = urlsplit(node.get("href") or node.get("src") or node.get("action"))
        if target.scheme or target.netloc or not target.path:
            continue
        name = unquote(target.path.removeprefix(prefix))
        if not target.path.startswith(prefix) or not (site / name).is_file():
            found.append(f"address {target.path} does not lead from the root of {prefix} to a file of the site")
        inside.add(name)
    wanted = {"search.html", *(f"{page}.html" for page in project.toc_pages(root))}
    found += [f"{name} is not offered" for name in sorted(wanted - inside)]
    if soup.select_one("article form input[name=q]") is None:
        found.append("there is no search box")
    if soup.select_one("html").get("data-content_root", prefix) != prefix:
        found.append("the theme's scripts look for the search index in the wrong place")
    return found


def ledger_rows(site, rows):
    """Each checked claim leads to a place in its chapter, and the ledger's page has one row a claim and the right
    counts.
    """
    found = []
    links = Links(site)
    for row in rows:
        if row["chapter"] and row["anchor"] not in links.ids(html_path(site, row["chapter"])):
            found.append(f"{row['id']} has no anchor in {row['chapter']}")
    soup = read(html_path(site, "book/ledger"))
    shown = len(soup.select("table.ledger tbody tr"))
    if shown != len(rows):
        found.append(f"the ledger shows {shown} rows for {len(rows)} claims")
    sources, own = ledger.tallies(rows)
    for item in soup.select(".ledger-summary li"):
        number, words = item.get_text().split(":")[0].split(maxsplit=1)
        verdict = next(verdict for verdict, said in WORDS.items() if said == words)
        if int(number) != sources[verdict]:
            found.append(f"the ledger counts {number} {words}, but there are {sources[verdict]}")
    if [int(number) for number in re.findall(r"\d+", "".join(item.get_text() for item in soup.select(".ledger-own")))][
        :1
    ] != [sum(own.values())]:
        found.append(f"the ledger does not say that {sum(own.values())} results are the book's own")
    if len(soup.select(".ledger-summary li")) != len(sources):
        found.append("the ledger's counts are missing")
    return found


def site_folder(root):
    return Path(root) / "_build" / "html"

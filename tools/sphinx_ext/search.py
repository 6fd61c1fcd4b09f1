"""The search's own index: titles, headings, boxed results, terms and functions, which count more than text.

``searchindex.js`` is loaded by the search page alone.  The lines of a page that a result shows, without code and
equations, are a small file a page in ``search/``.  ``book/_static/search.js`` ranks and shows.
"""

import json
import re
import tomllib
import unicodedata
from collections import Counter
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.search.en import SearchEnglish
from sphinx.util.index_entries import split_index_msg

from tools.build import project

LISTS = ("book/ledger", "book/corrections", "book/results", "book/general-index")  # their headings alone are found
HIDDEN = (nodes.literal_block, nodes.math_block, nodes.raw, nodes.comment, nodes.image, addnodes.index)
GAP = "…"
LETTER = re.compile(r"\\?([A-Za-z]+|\d+)")
WORD = re.compile(r"\w+")
DOCUMENT = re.compile("\x00(.*?)\x00")
SHORTEST = 40  # characters; what is shorter says nothing
ENGLISH = SearchEnglish({})
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def symbol(tex):
    """A formula of one letter as a character; of any other what is left out."""
    name = match[1] if (match := LETTER.fullmatch(tex.strip())) else ""
    if len(name) == 1 or name.isdigit():
        return name
    case = "CAPITAL" if name[:1].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {name.upper()}")
    except KeyError:
        return GAP


def plain(node):
    """The text of a node, without code and equations; the title of another page is not yet known."""
    if isinstance(node, nodes.math):
        return symbol(node.astext())
    if isinstance(node, HIDDEN):
        return ""
    if isinstance(node, addnodes.pending_xref) and not node.get("refexplicit") and node["reftype"] != "term":
        if node["reftype"] == "doc":
            return f"\x00{node['reftarget']}\x00"
        return node.astext() if node["refdomain"] == "py" else GAP
    return str(node) if isinstance(node, nodes.Text) else "".join(map(plain, node.children))


def line(node):
    return " ".join(plain(node).split())


def read(doctree):
    """What is found of a page: places (kind, words, anchor), and texts (words, the anchor before them)."""
    places, texts, anchor = [], [], ""
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.section) and node.parent is not doctree and isinstance(node[0], nodes.title):
            anchor = node["ids"][0]
            places.append(["section", line(node[0]), anchor])
        elif "realtype" in node:
            anchor = node["ids"][0]
            places.append([node["realtype"], line(node[0]).strip("()"), anchor])
        elif isinstance(node, nodes.term) and node["ids"]:
            anchor = node["ids"][0]
            places.append(["term", line(node), anchor])
        elif isinstance(node, addnodes.desc_signature) and node["ids"]:
            anchor = node["ids"][0]
            places.append(["code", node["fullname"], anchor])
        elif isinstance(node, addnodes.index):
            for kind, value, target, *_ in node["entries"]:
                words = " ".join(split_index_msg(kind, value))
                places += [["term", words, target]] if ["term", words] not in [one[:2] for one in places] else []
        elif isinstance(node, nodes.paragraph) and len(text := line(node)) > SHORTEST:
            texts.append([text, anchor])
    return places, texts


def remember(app, doctree):
    """Keep what is found of a page, until it is read again."""
    page = app.env.docname
    places, texts = read(doctree)
    app.env.book_search = getattr(app.env, "book_search", {})
    app.env.book_search[page] = places, [] if page.startswith(LISTS) else texts


def forget(app, env, docname):
    getattr(env, "book_search", {}).pop(docname, None)


def stems(text):
    """The words of a text that count, without their endings; also the parts of a name of code."""
    words = [word for whole in WORD.findall(text.lower()) for word in {whole, *whole.split("_")}]
    return [ENGLISH.stem(word) for word in words if word and not word.isdigit() and word not in ENGLISH.stopwords]


def packed(counts):
    """Which pages hold a word how often (up to nine times): three characters a page."""
    return "".join(DIGITS[page // 36] + DIGITS[page % 36] + str(min(count, 9)) for page, count in counts)


def index(pages, synonyms):
    """The index of pages in reading order: (name, title, what it is about, whether it is a chapter, places, texts)."""
    places, words = [], {}
    for number, (_, title, about, _, found, texts) in enumerate(pages):
        places += [[number, *place] for place in found]
        every = [title, about, *(place[1] for place in found), *(text for text, _ in texts)]
        for word, count in Counter(stems("\n".join(every))).items():
            words.setdefault(word, []).append((number, count))
    listed = {word: packed(counts) for word, counts in sorted(words.items())}
    heads = [[name, title, about, int(chapter)] for name, title, about, chapter, _, _ in pages]
    alike = [[stems(said), *map(stems, others)] for said, others in synonyms.items()]
    made = {"pages": heads, "places": places, "words": listed, "synonyms": alike}
    return made | {"stopwords": sorted(ENGLISH.stopwords)}


def write(app, error):
    """Write the index and the lines of every page."""
    if error is not None or app.builder.format != "html":
        return
    env, site = app.env, Path(app.outdir)
    order = [name for name in project.toc_pages(Path(app.srcdir)) if name in env.book_search]
    pages = []
    project.remove(site / "search")
    for name in [*order, *sorted(set(env.book_search) - set(order))]:
        places, texts = env.book_search[name]

        def titled(match, name=name):
            other = env.relfn2path(f"{match[1]}.md", name)[0].removesuffix(".md")
            return line(env.titles[other]) if other in env.titles else GAP

        texts = [[DOCUMENT.sub(titled, text), anchor] for text, anchor in texts]
        number = env.toc_secnumbers.get(name, {}).get("")
        title = line(env.titles[name])
        about = env.metadata[name].get("about", "")
        pages.append((name, f"{number[0]}. {title}" if number else title, about, bool(number), places, texts))
        path = site / "search" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
    synonyms = tomllib.loads(project.read(Path(__file__).with_name("synonyms.toml")))
    made = json.dumps(index(pages, synonyms), ensure_ascii=False, separators=(",", ":"))
    script = f"{ENGLISH.js_stemmer_code}\nSearch.open({made});\n"
    (site / "searchindex.js").write_text(script, encoding="utf-8")


def instead(app):
    """Sphinx makes no index of its own; its page for the search is one of the book's (``html_additional_pages``)."""
    app.builder.search = False


def setup(app):
    app.connect("builder-inited", instead)
    app.connect("doctree-read", remember)
    app.connect("env-purge-doc", forget)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

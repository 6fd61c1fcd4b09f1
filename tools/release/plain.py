"""Notebooks that read well where MyST is unknown, as in JupyterLab and Colab: markdown cells become plain Markdown.

Directives become bold headings, quotations and folded solutions; roles become the titles, numbers and names that the
site shows; a figure becomes an image that needs no trust, with its alt text, and its caption a cell of its own.  Code
cells keep their source.
"""

import html
import posixpath
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import nbformat
from pybtex.database import parse_file
from pybtex.plugin import find_plugin
from pybtex.richtext import Text

from lib.services import ledger
from tools.build import project
from tools.site import address, markup, numbering
from tools.sphinx_ext import symbols
from tools.sphinx_ext.ledger_pages import MEANING, WORDS, corrections, own_results, printed_where, summary

# A role, or what must stay as it is: code, or inline TeX (which some renderers lose at a line break within a
# quotation).
INLINE = re.compile(
    r"\{(?P<role>[\w:+-]+)\}`(?P<content>[^`]+)`|(?P<code>(?P<ticks>`+).+?(?P=ticks)(?!`))|(?<![\\$])(?P<tex>\$[^$]+\$)",
    re.DOTALL,
)
LABELLED = re.compile(r"\$\$\n%(eq-[a-z0-9-]+)\n(.*)\n\$\$", re.DOTALL)
GLOSSARY = "book/glossary"  # a page of text that is written as a notebook too, so that its terms can be linked
CONTENTS = "book/index"
EXPLICIT = re.compile(r"(.+?)\s*<([^<>]+)>", re.DOTALL)


@dataclass(frozen=True)
class Sources:
    """What the pages' references need: labels and titles, the ledger's rows, the bibliography."""

    book: numbering.Book
    rows: list
    works: dict
    root: Path
    site: str | None = None  # the address where the pages are published, with a slash at its end


def sources(root, rows):
    book = numbering.read(root)
    book = replace(book, notebooks=book.notebooks | ({GLOSSARY} & set(book.titles)))
    works = parse_file(root / "book" / "references.bib", bib_format="bibtex").entries
    return Sources(book, rows, works, root, address.site(project.remote(root)))


def glossary(root):
    """The glossary as a notebook of one cell, to go through :func:`notebook`; None in a book without one."""
    path = (root / GLOSSARY).with_suffix(".md")
    if not path.is_file():
        return None
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(project.read(path))], metadata=kernel)


def notebook(executed, page, known):
    """A copy of a page's executed notebook in plain Markdown, with folded cells as JupyterLab and Colab fold them."""
    writer = Page(page, known)
    made = nbformat.from_dict({**executed, "cells": []})
    made.metadata.pop("source_map", None)
    around = writer.neighbours()
    made.cells += [nbformat.v4.new_markdown_cell(around)] if around else []
    for cell in executed.cells:
        if cell.cell_type != "code":
            text = writer.text(cell.source)
            made.cells += [nbformat.v4.new_markdown_cell(text)] if text else []
            continue
        cell = nbformat.from_dict(cell)
        made.cells.append(cell)
        for output in cell.outputs:
            writer.number(output)
            _show_untrusted(output, cell.metadata.get("mystnb", {}).get("image", {}).get("alt", ""))
        if "hide-input" in cell.metadata.get("tags", []):
            prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show")
            made.cells[-1:-1] = [nbformat.v4.new_markdown_cell(f"*{prompt}*")] if prompt else []
            cell.metadata["jupyter"] = {"source_hidden": True}
            cell.metadata["cellView"] = "form"
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure is not None:
            made.cells.append(nbformat.v4.new_markdown_cell(writer.caption(figure)))
    if writer.cited:
        made.cells.append(nbformat.v4.new_markdown_cell(writer.references()))
    made.cells += [nbformat.v4.new_markdown_cell(around)] if around else []
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"  # nbformat draws ids at random, and the same build must write the same file
    return made


class Page:
    """Writes the markdown of one page, and remembers the works that it cites."""

    def __init__(self, page, known):
        self.page = page
        self.known = known
        self.cited = {}

    def text(self, source):
        """A piece of MyST as plain Markdown."""
        made = ""
        for block in markup.blocks(source):
            piece = self._block(block)
            if not piece and block.kind != "text":
                continue
            if block.kind == "directive":
                piece = f"\n{piece}\n"  # or a text right after a quotation would become part of it
            made += ("\n" if made else "") + (piece.lstrip("\n") if made.endswith("\n") else piece)
        return made.strip("\n")

    def neighbours(self):
        """Links to the notebooks before and after, to the contents, and to the page on the site."""
        order = [page for page in self.known.book.titles if page in self.known.book.notebooks]
        if self.page not in order:
            return ""
        at = order.index(self.page)
        places = [(order[at - 1] if at else None, "← {}"), (CONTENTS, "Contents")]
        places.append((order[at + 1] if at + 1 < len(order) else None, "{} →"))
        links = [
            self._link(name.format(self.text(self.known.book.titles[page])), page)
            for page, name in places
            if page in self.known.book.notebooks and page != self.page
        ]
        if self.known.site:
            links.append(f"[This page on the site]({self.known.site}{self.page}.html)")
        return " · ".join(links)

    def number(self, output):
        """Write the number of an equation that a cell shows where its label stands."""
        tex = output.get("data", {}).get("text/latex")
        if tex and (match := LABELLED.match(tex)):
            output.data["text/latex"] = f"$$\n{match[2]} \\tag{{{self._place(match[1]).number}}}\n$$"

    def caption(self, figure):
        place = self.known.book.places.get(figure.get("name"))
        return f"**{place.name if place else 'Figure'}.** {self.text(' '.join(figure.get('caption', '').split()))}"

    def references(self):
        """The list of the works cited so far."""
        style, backend = (
            find_plugin("pybtex.style.formatting", "unsrt")(),
            find_plugin("pybtex.backends", "plaintext")(),
        )
        lines = [entry.text.render(backend) for entry in style.format_entries(self.cited.values())]
        return "## References\n\n" + "\n".join("- " + " ".join(line.split()) for line in lines)

    def _block(self, block):
        if block.kind == "text":
            lines = [line for line in block.text.split("\n") if not line.startswith("% ")]
            return INLINE.sub(self._inline, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)))
        if block.kind == "target":
            return ""
        if block.kind == "code":
            made = f"```{block.argument}\n{block.text}\n```"
        elif block.kind in ("math", "environment"):
            made = self._equation(block)
        else:
            made = self._directive(block)
        return "\n".join(block.indent + line if line else line for line in made.split("\n"))

    def _equation(self, block):
        """Display TeX between dollars; some renderers know the environments of amsmath only as aligned and gathered."""
        tex, tag = block.text, ""
        if block.kind == "environment":
            inner = "gathered" if block.name.startswith(("gather", "multline")) else "aligned"
            tex = tex.strip().replace(f"{{{block.name}}}", f"{{{inner}}}").replace(r"\nonumber", "")
        elif block.name:
            tag = f" \\tag{{{self._place(block.name).number}}}"
        return f"$$\n{tex}{tag}\n$$"

    def _directive(self, block):
        kind, title = block.name, self.text(block.argument)
        place = self.known.book.places.get(block.options.get("label"))
        if kind == "index":
            return ""
        if kind == "glossary":
            terms = re.sub(r"^(?=\S)(.+)$", r"### \1\n", self.text(block.text), flags=re.MULTILINE)
            return re.sub(r"^  ", "", terms, flags=re.MULTILINE)
        if kind == "math":
            return self._equation(markup.Block("math", block.text, block.options.get("label", "")))
        if kind == "code-block":
            return f"```{block.argument}\n{block.text}\n```"
        if kind == "ledger-summary":
            sources, own = ledger.tallies(self.known.rows)
            counts = "\n".join(
                f"- **{number} {WORDS[verdict]}**: {MEANING[verdict]}" for verdict, number in sources.items()
            )
            return (
                f"Of the {sum(sources.values())} claims of the sources that the book takes up:\n\n{counts}\n\n"
                f"{own_results(own)}"
            )
        if kind == "correction":
            return self._correction(block.argument, block.text)
        if kind == "source-and-page":
            return self._source_and_page(block.text)
        if kind == "symbols":
            return _folded("Symbols of this chapter", self.text("\n".join(symbols.of_page(self.known.root, self.page))))
        if kind == "solution":
            return _folded(f"Solution to {self.text(self._place(block.argument).full_name)}", self.text(block.text))
        if place is not None:
            title = self.text(place.full_name)
        if kind == "exercise":
            return f"**{title or 'Exercise'}**\n\n{self.text(block.text)}"
        if kind in ("figure", "image") or not block.text:
            return f"*The book's site shows the {kind.replace('-', ' ')} here.* {self.text(block.text)}".strip()
        title = title or kind.split(":")[-1].title()
        if "dropdown" in (kind, *block.options.get("class", "").split()):
            return _folded(title, self.text(block.text))
        return _quoted(f"**{title}**\n\n{self.text(block.text)}")

    def _source_and_page(self, text):
        mine = [row for row in self.known.rows if row["chapter"] == self.page and row["citation"] is not None]
        pieces = [self.text(text)]
        for row in sorted(mine, key=lambda row: row["place"]):
            if row["printed"] is None:
                pieces.append(self.text(f"*{row['locator']}* ({WORDS[row['verdict']]}). {row['statement']}"))
            else:
                pieces.append(self._correction(row["id"], ""))
        return _folded(summary(mine), "\n\n".join(pieces))

    def _correction(self, identity, text):
        found = corrections(self.known.rows)
        name, row = next(((name, row) for name, row in found if row["id"] == identity), (None, None))
        if row is None:
            raise ValueError(
                f"{self.page}: correction {identity!r} is not a claim in lib/claims with 'printed' and 'right'"
            )
        title = f"**{name}: {row['source']}, {row['locator']}**"
        parts = [title, f"**{printed_where(row)}:** {row['printed']}", f"**Right:** {row['right']}", text]
        return _quoted(self.text("\n\n".join(part.strip() for part in parts)))

    def _inline(self, match):
        if match["code"]:
            return match["code"]
        if match["tex"]:
            return " ".join(match["tex"].split("\n"))
        content = " ".join(match["content"].split())
        explicit = EXPLICIT.fullmatch(content)
        if match["role"] == "math":
            return f"${content}$"
        text, target = (explicit[1], explicit[2]) if explicit else (None, content)
        name, cite = self._name, self._cite
        roles = {
            "doc": self._doc,
            "ref": self._ref,
            "numref": name,
            "eq": name,
            "prf:ref": name,
            "cite": cite,
            "cite:p": cite,
            "cite:t": self._cite_text,
            "term": self._term,
        }
        return roles[match["role"]](target, text) if match["role"] in roles else text or content

    def _place(self, label):
        if label not in self.known.book.places:
            raise ValueError(f"{self.page} refers to {label!r}, which no page defines")
        return self.known.book.places[label]

    def _link(self, text, page):
        """A link to another page's notebook, or the bare text where there is none to open beside this one."""
        if page == self.page or page not in self.known.book.notebooks:
            return text
        return f"[{text}]({posixpath.relpath(page, posixpath.dirname(self.page))}.ipynb)"

    def _doc(self, target, text):
        page = posixpath.normpath(posixpath.join("/", posixpath.dirname(self.page), target)).removeprefix("/")
        if page not in self.known.book.titles:
            raise ValueError(f"{self.page} refers to the page {target!r}, which is not in _toc.yml")
        return self._link(text or self.text(self.known.book.titles[page]), page)

    def _ref(self, label, text):
        place = self._place(label)
        return self._link(text or self.text(place.name), place.page)

    def _term(self, term, text):
        if self.page == GLOSSARY or GLOSSARY not in self.known.book.notebooks:
            return text or term
        return f"{self._link(text or term, GLOSSARY)[:-1]}#{quote(term.replace(' ', '-'))})"

    def _name(self, label, text):
        place = self._place(label)
        return self._link(text.replace("%s", place.number) if text else place.name, place.page)

    def _authors(self, key):
        if key not in self.known.works:
            raise ValueError(f"{self.page} cites {key!r}, which is not in book/references.bib")
        work = self.cited[key] = self.known.works[key]
        names = [
            str(Text.from_latex(" ".join(person.prelast_names + person.last_names)))
            for person in work.persons["author"]
        ]
        return (f"{names[0]} et al." if len(names) > 2 else " and ".join(names)), work.fields["year"]

    def _cite(self, keys, text):
        return "(" + "; ".join(", ".join(self._authors(key.strip())) for key in keys.split(",")) + ")"

    def _cite_text(self, keys, text):
        return ", ".join("{} ({})".format(*self._authors(key.strip())) for key in keys.split(","))


def _show_untrusted(output, alt):
    """Put a drawing into an image: JupyterLab shows no bare SVG in a notebook that came from elsewhere.  Dark themes
    get a white ground.
    """
    drawing = output.get("data", {}).pop("image/svg+xml", None)
    if drawing is not None:  # of a figure with a slider, the first frame
        address = "data:image/svg+xml," + quote(drawing, safe=" !$'()*+,-./:;=?@[]^_{|}~")
        output.data["text/html"] = (
            f'<img alt="{html.escape(alt)}" style="background-color: white; max-width: 100%" src="{address}">'
        )


def _folded(title, text):
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def _quoted(text):
    """A quotation; an equation in it must stand on one line, because JupyterLab would read the marks of the quotation
    as TeX.
    """
    text = re.sub(
        r"^( *)\$\$\n(.*?)\n *\$\$$",
        lambda m: f"{m[1]}$$ {' '.join(m[2].split())} $$",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))

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

from tools.build import project
from tools.site import address, ledger_text, markup, numbering
from tools.site.written import DIRECTIVES, Here

# A role, or what must stay as it is: code, or inline TeX (which some renderers lose at a line break in a quotation).
INLINE = re.compile(
    r"\{(?P<role>[\w:+-]+)\}`(?P<content>[^`]+)`|(?P<code>(?P<ticks>`+).+?(?P=ticks)(?!`))|(?<![\\$])(?P<tex>\$[^$]+\$)",
    re.DOTALL,
)
LABELLED = re.compile(r"\$\$\n%(eq-[a-z0-9-]+)\n(.*)\n\$\$", re.DOTALL)
DETAILS = re.compile(r"^<details class=[^>]*>$", re.MULTILINE)
DRAWN = ("figure", "image", "list-table")  # what only the site shows
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
        style = find_plugin("pybtex.style.formatting", "unsrt")()
        backend = find_plugin("pybtex.backends", "plaintext")()
        lines = [entry.text.render(backend) for entry in style.format_entries(self.cited.values())]
        return "## References\n\n" + "\n".join("- " + " ".join(line.split()) for line in lines)

    def _block(self, block):
        if block.kind in ("text", "heading"):
            return INLINE.sub(self._inline, re.sub(r"\n{3,}", "\n\n", block.text))
        if block.kind in ("target", "comment"):
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
        kind, title, label = block.name, self.text(block.argument), block.options.get("label")
        if kind in DIRECTIVES:
            here = Here(self.known.root, self.page, self.known.rows, block.argument, block.text)
            try:
                return DETAILS.sub("<details>", self.text(DIRECTIVES[kind][0](here)))
            except ValueError as problem:
                raise ValueError(f"{self.page}: {problem}") from None
        match kind:
            case "index":
                return ""
            case "math":
                return self._equation(markup.Block("math", block.text, label or ""))
            case "code-block":
                return f"```{block.argument}\n{block.text}\n```"
        text = self.text(block.text)
        if label in self.known.book.places:
            title = self.text(self.known.book.places[label].full_name)
        match kind:
            case "glossary":
                return re.sub(
                    r"^  ", "", re.sub(r"^(?=\S)(.+)$", r"### \1\n", text, flags=re.MULTILINE), flags=re.MULTILINE
                )
            case "rubric":
                return f"**{title}**"
            case "container":
                return text
            case "solution":
                return _folded(f"Solution to {self.text(self._place(block.argument).full_name)}", text)
            case "exercise":
                return f"**{title or 'Exercise'}**\n\n{text}"
        if kind in DRAWN or not text:
            return f"*The book's site shows the {kind.replace('-', ' ')} here.* {text}".strip()
        title = title or kind.split(":")[-1].title()
        if "dropdown" in (kind, *block.options.get("class", "").split()):
            return _folded(title, text)
        return _quoted(f"**{title}**\n\n{text}")

    def _inline(self, match):
        if match["code"]:
            return match["code"]
        if match["tex"]:
            return " ".join(match["tex"].split("\n"))
        content = " ".join(match["content"].split())
        explicit = EXPLICIT.fullmatch(content)
        text, target = explicit.groups() if explicit else (None, content)
        match match["role"]:
            case "math":
                return f"${content}$"
            case "verdict":
                return ledger_text.WORDS[content]
            case "doc":
                return self._doc(target, text)
            case "ref":
                return self._link(text or self.text(self._place(target).name), self._place(target).page)
            case "numref" | "eq" | "prf:ref":
                place = self._place(target)
                return self._link(text.replace("%s", place.number) if text else place.name, place.page)
            case "cite" | "cite:p":
                return "(" + "; ".join(", ".join(self._authors(key.strip())) for key in content.split(",")) + ")"
            case "cite:t":
                return ", ".join("{} ({})".format(*self._authors(key.strip())) for key in content.split(","))
            case "term":
                return self._term(target, text or target)
            case "py:func" | "py:class":
                return f"`{text or content}`"
            case "correction-ref":
                return self._link(*ledger_text.correction_name(self.known.rows, target)[:2])
        return text or content

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

    def _term(self, term, text):
        if self.page == GLOSSARY or GLOSSARY not in self.known.book.notebooks:
            return text
        return f"{self._link(text, GLOSSARY)[:-1]}#{quote(term.replace(' ', '-'))})"

    def _authors(self, key):
        if key not in self.known.works:
            raise ValueError(f"{self.page} cites {key!r}, which is not in book/references.bib")
        work = self.cited[key] = self.known.works[key]
        names = [" ".join(person.prelast_names + person.last_names) for person in work.persons["author"]]
        names = [str(Text.from_latex(name)) for name in names]
        return (f"{names[0]} et al." if len(names) > 2 else " and ".join(names)), work.fields["year"]


def _show_untrusted(output, alt):
    """Put a drawing into an image, on white: JupyterLab shows no bare SVG in a notebook that came from elsewhere."""
    drawing = output.get("data", {}).pop("image/svg+xml", None)
    if drawing is not None:  # of a figure with a slider, the first frame
        address = "data:image/svg+xml," + quote(drawing, safe=" !$'()*+,-./:;=?@[]^_{|}~")
        output.data["text/html"] = (
            f'<img alt="{html.escape(alt)}" style="background-color: white; max-width: 100%" src="{address}">'
        )


def _folded(title, text):
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def _quoted(text):
    """A quotation; an equation in it stands on one line, because JupyterLab would read the marks as TeX."""
    text = re.sub(
        r"^( *)\$\$\n(.*?)\n *\$\$$",
        lambda m: f"{m[1]}$$ {' '.join(m[2].split())} $$",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))

"""The directive ``symbols``: the symbols of a chapter, folded, out of the one table that the notation page keeps.

A section of that page is about the chapters to which it refers before its table.
"""

import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from tools.build import project
from tools.site import markup

PAGE = "book/notation"
CELLS = re.compile(r"(?<!\\)\|")  # what parts the cells of a line


def tables(text):
    """The sections of the notation page: dict from title to the labels it refers to and its rows [(symbol, …), …]."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        lines = [line for line in body.split("\n") if line.startswith("|")]
        rows = [tuple(cell.strip() for cell in CELLS.split(line)[1:-1]) for line in lines]
        before = body.split("\n|")[0]
        found[title.strip()] = re.findall(r"\{ref\}`(?:[^`<]*<)?([\w-]+)>?`", before), rows[:1] + rows[2:]
    return found


def of_page(root, page):
    """The lines of a page's table as MyST, sections about fewest chapters first; ValueError where none is about it."""
    labels = {b.name for b in markup.blocks(project.read((root / page).with_suffix(".md"))) if b.kind == "target"}
    found = tables(project.read((root / PAGE).with_suffix(".md")))
    about_it = [section for section in found.values() if labels & set(section[0])]
    own = [rows for _, rows in sorted(about_it, key=lambda section: len(section[0]))]
    if not own:
        raise ValueError(f"{PAGE}.md has no section that refers to {page} before its table")
    columns = max(len(rows[0]) for rows in own)
    head = next(rows[0] for rows in own if len(rows[0]) == columns)
    body = [row + ("",) * (columns - len(row)) for rows in own for row in rows[1:]]
    return ["| " + " | ".join(row) + " |" for row in (head, ("---",) * columns, *body)]


class Symbols(SphinxDirective):
    """A folded table of the chapter's symbols, and the way to the notation page."""

    def run(self):
        root = Path(self.env.srcdir)
        self.env.note_dependency(str((root / PAGE).with_suffix(".md")))
        try:
            lines = of_page(root, self.env.docname)
        except ValueError as problem:
            raise self.error(str(problem)) from None
        holder = nodes.container(classes=["symbols"])
        more = ["", f"All symbols of the book: {{doc}}`/{PAGE}`."]
        self.state.nested_parse(StringList([*lines, *more], self.get_source_info()[0]), self.content_offset, holder)
        opening = '<details class="symbols"><summary>Symbols of this chapter</summary>'
        return [nodes.raw("", opening, format="html"), holder, nodes.raw("", "</details>", format="html")]


def setup(app):
    app.add_directive("symbols", Symbols)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

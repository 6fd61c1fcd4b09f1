"""A Sphinx directive for reading paths: ``reading-path`` lists chapters in order, with the time that each declares, and
their sum.

Its content is a list of ``chapter: why it is on the path``, one a line.  A chapter declares its time and its
prerequisites at its top; a path that lists a chapter before one that it builds on is an error of the build.
"""

from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from tools.build import dependencies, project
from tools.sphinx_ext.ledger_pages import chapter_title


def entries(lines):
    """Pairs of chapter and reason from the content of the directive."""
    for line in lines:
        if line.strip():
            chapter, colon, reason = line.partition(":")
            if not (colon and reason.strip()):
                raise ValueError(f"{line!r} is not of the form 'chapter: why it is on the path'")
            yield f"book/{chapter.strip()}", reason.strip()


def out_of_order(path, needs):
    """The first pair (chapter, prerequisite) of a path in which the prerequisite comes later, or None."""
    for place, page in enumerate(path):
        late = [need for need in needs[page] if need in path[place + 1 :]]
        if late:
            return page, late[0]
    return None


def hours(total):
    """A sum of minutes in words a reader plans with."""
    return f"{total} minutes" if total < 120 else f"{total // 60} h {total % 60:02d} min"


class ReadingPath(SphinxDirective):
    has_content = True

    def run(self):
        try:
            listed = list(entries(self.content))
            texts = {name: project.read(Path(self.env.doc2path(name))) for name in self.env.found_docs}
            places = dependencies.labels(texts)
            facts = {page: dependencies.declared(self.checked(page), texts, places) for page, _ in listed}
            wrong = out_of_order([page for page, _ in listed], {page: needs for page, (_, needs) in facts.items()})
            if wrong is not None:
                raise ValueError(f"{wrong[0]} builds on {wrong[1]}: list it later")
        except ValueError as problem:
            raise self.error(f"reading-path: {problem}") from None
        items = nodes.enumerated_list(enumtype="arabic", classes=["reading-path"])
        for page, reason in listed:
            items += self.item(page, facts[page][0], reason)
        total = sum(time for time, _ in facts.values())
        end = nodes.paragraph(
            "", "", nodes.strong("", "In all"), nodes.Text(f" about {hours(total)}."), classes=["reading-time"]
        )
        return [items, end]

    def checked(self, page):
        if page not in self.env.found_docs:
            raise ValueError(f"{page} is not a page of the book")
        self.env.note_dependency(self.env.doc2path(page))
        return page

    def item(self, page, time, reason):
        title = chapter_title(self.env, page)
        holder = nodes.container()
        self.state.nested_parse(StringList([reason], self.get_source_info()[0]), self.content_offset, holder)
        return nodes.list_item(
            "", nodes.paragraph("", "", title, nodes.Text(f" ({time} minutes). "), *holder[0].children)
        )


def setup(app):
    app.add_directive("reading-path", ReadingPath)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Sphinx directives for the two pages that need every other page first: the index of results and the general index.

A directive leaves a placeholder; when all pages are read, the page is written again with the placeholder filled.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.environment.adapters.indexentries import IndexEntries
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


class index_placeholder(nodes.General, nodes.Element):
    """Stands for an index until every page is read; the attribute ``make`` names it."""


class Index(SphinxDirective):
    """``results-list``: links to every boxed result of the book, by part and chapter; ``general-index``: its terms.

    The first has a line for each result, ``label: what it says``.
    """

    has_content = True

    def run(self):
        self.env.metadata[self.env.docname]["has-index"] = True
        place = index_placeholder(make=self.name)
        for number, line in enumerate(self.content):
            label, _, said = line.partition(": ")
            content, messages = self.state.inline_text(said, self.content_offset + number)
            place += [nodes.inline("", "", *content, label=label), *messages]
        return [place]


def pages_with_an_index(app, env):
    """The pages to write again after any page was read."""
    return [name for name, data in env.metadata.items() if data.get("has-index")]


def fill(app, doctree, docname):
    """Replace the placeholders of a page."""
    for place in list(doctree.findall(index_placeholder)):
        said = {line["label"]: line.children for line in place}
        made = terms(app, docname) if place["make"] == "general-index" else results(app, docname, said)
        if said:
            logger.warning("results-list: there is no boxed result %s", ", ".join(said), location=docname)
        place.replace_self(made or [nodes.paragraph("", "Nothing is listed yet.")])


def _item(*content):
    return nodes.list_item("", nodes.paragraph("", "", *content))


def results(app, docname, said):
    """The boxed results, each with its line, which is taken out of `said`.

    One list a chapter under its linked title, the chapters in reading order and under the caption of their part.
    """

    def link(content, chapter, anchor=""):
        uri = app.builder.get_relative_uri(docname, chapter) + anchor
        return nodes.reference("", "", *(node.deepcopy() for node in content), internal=True, refuri=uri)

    made = []
    for tree in app.env.tocs[app.config.root_doc].findall(addnodes.toctree):
        part = []
        for chapter in tree["includefiles"]:
            boxes = [node for node in app.env.get_doctree(chapter).findall(nodes.Element) if "realtype" in node]
            items = []
            for box in boxes:
                content = said.pop(box["label"], None)
                if content is None:
                    logger.warning("results-list: what does %s say, in a line?", box["label"], location=docname)
                name = link(_bare_title(box), chapter, f"#{box['ids'][0]}")
                items.append(_item(name, nodes.Text(": "), *(content or [])))
            if items:
                title = link(app.env.titles[chapter].children, chapter)
                part += [nodes.paragraph("", "", title), nodes.bullet_list("", *items)]
        made += [nodes.rubric("", tree["caption"], classes=["part"]), *part] if part and tree.get("caption") else part
    return made


def _bare_title(box):
    """Copies of a boxed result's title nodes, without the parentheses around them; without a title the box's kind."""
    title = [child.deepcopy() for child in box[0].children]
    if title and isinstance(title[0], nodes.Text):
        title[0] = nodes.Text(title[0].astext().lstrip().removeprefix("("))
    if title and isinstance(title[-1], nodes.Text):
        title[-1] = nodes.Text(title[-1].astext().rstrip().removesuffix(")"))
    return title or [nodes.Text(box["realtype"].title())]


def terms(app, docname):
    """The terms marked by ``index`` directives and roles, and the glossary's, letter by letter; places are numbered."""
    up = "../" * docname.count("/")  # Sphinx gives addresses from the site's root

    def links(name, places):
        yield nodes.reference("", name, internal=True, refuri=up + places[0][1]) if places else nodes.Text(name)
        for number, (_, uri) in enumerate(places[1:], 2):
            yield nodes.Text(", ")
            yield nodes.reference("", f"[{number}]", internal=True, refuri=up + uri)

    made = []
    for letter, entries in IndexEntries(app.env).create_index(app.builder):
        items = nodes.bullet_list()
        for name, (places, below, _) in entries:
            inner = [_item(*links(name, where)) for name, where in below]
            items += _item(*links(name, places))
            items[-1] += [nodes.bullet_list("", *inner)] if inner else []
        made += [nodes.rubric("", letter), items]
    return made


def setup(app):
    app.add_directive("results-list", Index)
    app.add_directive("general-index", Index)
    app.add_node(index_placeholder)
    app.connect("env-updated", pages_with_an_index)
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

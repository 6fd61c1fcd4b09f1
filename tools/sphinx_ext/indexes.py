"""Sphinx directives for the two pages that need every other page first: the index of results and the general index.

A directive leaves a placeholder; when all pages are read, the page is written again with the placeholder filled.
"""

from docutils import nodes
from sphinx.environment.adapters.indexentries import IndexEntries
from sphinx.util.docutils import SphinxDirective

from tools.sphinx_ext.parts import parts


class index_placeholder(nodes.General, nodes.Element):
    """Stands for an index until every page is read; the attribute ``make`` names it."""


class _Placeholder(SphinxDirective):
    make = None

    def run(self):
        self.env.metadata[self.env.docname]["has-index"] = True
        return [index_placeholder(make=self.make)]


class ResultsList(_Placeholder):
    """``results-list``: links to every boxed result of the book, by part and chapter."""

    make = "results"


class GeneralIndex(_Placeholder):
    """``general-index``: the terms marked by ``index`` directives and roles, and the glossary's, letter by letter."""

    make = "terms"


def pages_with_an_index(app, env):
    """The pages to write again after any page was read."""
    return [name for name, data in env.metadata.items() if data.get("has-index")]


def fill(app, doctree, docname):
    """Replace the placeholders of a page."""
    for place in list(doctree.findall(index_placeholder)):
        made = {"results": _results, "terms": _terms}[place["make"]](app, docname)
        place.replace_self(made or [nodes.paragraph("", "Nothing is listed yet.")])


def _item(*content):
    return nodes.list_item("", nodes.paragraph("", "", *content))


def _results(app, docname):
    """One list a chapter under its linked title, the chapters in reading order and under the caption of their part."""
    env = app.env
    homes = {proof["docname"] for proof in getattr(env, "proof_list", {}).values()}
    captions = {pages[0]: caption for caption, pages in parts(env)}
    made = []
    for chapter in _reading_order(env):
        if chapter in captions and homes & set(dict(parts(env))[captions[chapter]]):
            made.append(nodes.rubric("", captions[chapter], classes=["part"]))
        if chapter in homes:
            made += [
                nodes.paragraph("", "", _link(app, docname, chapter, env.titles[chapter].children)),
                _boxes(app, docname, chapter),
            ]
    return made


def _boxes(app, docname, chapter):
    """The boxed results of a chapter as a list of links."""
    items = nodes.bullet_list()
    for result in app.env.get_doctree(chapter).findall(
        lambda node: isinstance(node, nodes.Element) and "realtype" in node
    ):
        title = _bare_title(result[0].children) or [nodes.Text(result["realtype"].title())]
        items += _item(_link(app, docname, chapter, title, "#" + result["ids"][0]))
    return items


def _link(app, docname, chapter, content, anchor=""):
    uri = app.builder.get_relative_uri(docname, chapter) + anchor
    return nodes.reference("", "", *(node.deepcopy() for node in content), internal=True, refuri=uri)


def _bare_title(children):
    """Copies of a boxed result's title nodes, without the parentheses that the box puts around them."""
    title = [child.deepcopy() for child in children]
    if title:
        title[0] = nodes.Text(title[0].astext().lstrip(" (")) if isinstance(title[0], nodes.Text) else title[0]
        title[-1] = nodes.Text(title[-1].astext().rstrip(" )")) if isinstance(title[-1], nodes.Text) else title[-1]
    return title


def _reading_order(env):
    """Document names as the table of contents visits them."""
    seen = []

    def visit(name):
        if name not in seen:
            seen.append(name)
            for child in env.toctree_includes.get(name, []):
                visit(child)

    visit(env.config.root_doc)
    return seen


def _terms(app, docname):
    """One list a letter; several places of a term are numbered."""
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
            item = _item(*links(name, places))
            if below:
                item += nodes.bullet_list("", *(_item(*links(inner, where)) for inner, where in below))
            items += item
        made += [nodes.rubric("", letter), items]
    return made


def setup(app):
    app.add_directive("results-list", ResultsList)
    app.add_directive("general-index", GeneralIndex)
    app.add_node(index_placeholder)
    app.connect("env-updated", pages_with_an_index)
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

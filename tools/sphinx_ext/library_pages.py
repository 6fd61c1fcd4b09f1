"""The library in the site: one page a module with its source, the list of the modules, and under every figure what
computed it.
"""

import hashlib
import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from tools.build import project
from tools.site import figure_sources, library

LIST = "book/library"  # the page that lists the modules
SHOWN = 5  # functions under a figure
_NAME = re.compile(r'<span class="(n|nn)">([\w.]+)</span>(?:(<span class="o">\.</span>)<span class="n">(\w+)</span>)?')


def _modules(app):
    """The modules of lib, read once a build."""
    if not hasattr(app, "book_library"):
        app.book_library = library.modules(Path(app.srcdir))
    return app.book_library


def _linked(line, here, modules):
    """A highlighted line of a module with links from the modules of lib that it names, and their functions, to their
    pages.
    """

    def link(match):
        kind, name, dot, attribute = match.groups()
        home = (
            here.imported.get(name)
            if kind == "n"
            else (name.removeprefix("lib."), None)
            if name.startswith("lib.")
            else None
        )
        if home is None or home[0] not in modules:
            return match[0]
        found = library.find(modules, home[0], attribute if home[1] is None else home[1])
        target = f"{found[0].name}.html#{library.anchor(found[1].name)}" if found else f"{home[0]}.html"
        if dot and not found:
            return match[0]
        return f'<a class="library-name" href="{target}">{match[0]}</a>'

    return _NAME.sub(link, line)


def _source(app, module, modules):
    """The highlighted source of a module: every line numbered and linked to, every definition inside an element with
    its anchor.
    """
    made = app.builder.highlighter.highlight_block(module.text, "python", linenos="inline", lineanchors="line")
    before, after = made.split("<pre>", 1)
    lines = [_linked(line, module, modules) for line in after.splitlines()]
    for item in module.definitions.values():
        lines[item.first - 1] = f'<span class="definition" id="{library.anchor(item.name)}">' + lines[item.first - 1]
        lines[item.last] = "</span>" + lines[item.last]
    return before + "<pre>" + "\n".join(lines)


def _pieces(text):
    """A docstring's summary in pieces: pairs of text and whether it is code, which stands in double backquotes or in a
    role.
    """
    for piece in re.split(r"(``.+?``|:\w+:`.+?`)", text):
        code = piece.endswith("`")
        yield (re.sub(r"^:\w+:|`|~", "", piece) if code else piece), code


def _code(text):
    """A docstring's summary as HTML."""
    return "".join(
        f"<code>{html.escape(piece)}</code>" if code else html.escape(piece) for piece, code in _pieces(text)
    )


def _page(app, module, modules):
    """The body of a module's page."""
    rows = [
        f'<li><a class="reference internal" href="#{library.anchor(name)}"><code>{name}</code></a>: '
        f"{_code(item.summary)}</li>"
        for name, item in module.definitions.items()
    ]
    tested = f" It is tested by <code>{module.tests}</code>." if (Path(app.srcdir) / module.tests).exists() else ""
    back = app.builder.get_relative_uri(module.page, LIST)
    return (
        f"<h1>lib.{module.name}</h1>\n<p>{_code(module.summary)}. This is the file <code>{module.file}</code> of"
        f' <a class="reference internal" href="{back}">the library</a>.{tested}</p>\n'
        + (f"<ul>\n{chr(10).join(rows)}\n</ul>\n" if rows else "")
        + _source(app, module, modules)
    )


def write_modules(app):
    """Give Sphinx the pages of the modules that changed, or of all of them."""
    if app.builder.format != "html":
        return
    modules = _modules(app)
    targets = [(name, list(module.definitions)) for name, module in modules.items()]  # what a page may link to
    sums = {name: hashlib.sha256(repr((targets, module.text)).encode()).hexdigest() for name, module in modules.items()}
    before, app.env.book_modules = getattr(app.env, "book_modules", {}), sums
    for name, module in modules.items():
        if app.book_anew or sums[name] != before.get(name):
            yield module.page, {"title": f"lib.{name}", "body": _page(app, module, modules)}, "page.html"


def share_navigation(app, pagename, templatename, context, doctree):
    """Give all pages of the library one table of contents, made once: none of them stands in it."""
    if pagename.startswith(f"{library.FOLDER}/"):
        made, fresh = app.book_navigation, context["toctree"]

        def toctree(**options):
            key = tuple(sorted(options.items()))
            if key not in made:
                made[key] = fresh(**options)
            return made[key]

        context["toctree"] = toctree


def _link(app, docname, module, name=None):
    """A reference from a page to a module, or to a definition in it."""
    address = app.builder.get_relative_uri(docname, module.page) + (f"#{library.anchor(name)}" if name else "")
    return nodes.reference(
        "", "", nodes.literal("", f"{module.name}.{name}" if name else module.name), internal=True, refuri=address
    )


class LibraryList(SphinxDirective):
    """``library-list``: every module of lib with a link to its page, one group a package, the parts in reading
    order.
    """

    def run(self):
        modules = _modules(self.env.app)
        for module in modules.values():
            self.env.note_dependency(str(Path(self.env.srcdir) / module.file))
        made = []
        for summary, names in library.packages(Path(self.env.srcdir), list(modules)):
            entries = [nodes.list_item("", self.item(modules[name])) for name in names]
            made += [nodes.rubric("", summary), nodes.bullet_list("", *entries)]
        return made

    def item(self, module):
        summary = [
            nodes.literal("", piece) if code else nodes.Text(piece) for piece, code in _pieces(f": {module.summary}.")
        ]
        return nodes.paragraph("", "", _link(self.env.app, self.env.docname, module), *summary)


def name_functions(app, doctree, docname):
    """Say under every figure of a notebook which functions of lib computed it."""
    source = Path(app.env.doc2path(docname))
    if app.builder.format != "html" or not project.is_notebook(source):
        return
    modules = _modules(app)
    found = figure_sources.figures(project.read_notebook(Path(app.srcdir), source), modules)
    for figure in doctree.findall(nodes.figure):
        name = next((name for name in figure["names"] if name in found), None)
        if name is None:
            continue
        used = found[name]
        line = nodes.paragraph(classes=["computed-by"])
        line += nodes.Text("Computed by " if used else "Computed in this page's own cells.")
        for number, (module, function) in enumerate(used[:SHOWN]):
            line += [nodes.Text(", ")] if number else []
            line += _link(app, docname, modules[module], function)
        if len(used) > SHOWN:
            line += nodes.Text(f" and {len(used) - SHOWN} more")
        figure += nodes.legend("", line)


def setup(app):
    app.add_directive("library-list", LibraryList)
    app.book_navigation = {}
    app.connect("html-collect-pages", write_modules)
    app.connect("html-page-context", share_navigation, priority=100)  # before the theme asks for it
    app.connect("doctree-resolved", name_functions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

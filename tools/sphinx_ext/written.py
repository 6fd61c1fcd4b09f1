"""Directives and roles whose content the book writes itself (``tools/site/written.py``), and the files of the build.

``_build/ledger.json``, the executed notebooks and the student editions are there before Sphinx starts (see
``tools/build/book.py``), so these pages are written like any other; here they also go into the site.
"""

import json
import shutil
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.errors import ExtensionError
from sphinx.util.docutils import ReferenceRole, SphinxDirective, SphinxRole

from tools.build import project
from tools.site import ledger_text
from tools.site.written import DIRECTIVES, PRINTED, Here, pdf_name

PUBLISHED = {"ledger.json": "ledger.json", "notebooks": "_sources", "notebooks.zip": "notebooks.zip"}
PUBLISHED |= {"assignments": "assignments", PRINTED: PRINTED}  # in the build's folder -> in the site


def rows(env, numbers=True):
    """The ledger's rows, or these without numbers; a page that asks for them is read again when they change."""
    path = Path(env.srcdir) / "_build" / ("ledger.json" if numbers else project.SAID)
    if not path.exists():
        raise ExtensionError(f"{path} is missing: build with `make book`, which gathers the ledger before")
    env.note_dependency(str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def _sources(root):
    """What lists of chapters, symbols and problem sets are made from."""
    pages = [root / f"{page}.md" for page in project.toc_pages(root)]
    return [path for path in pages if project.is_notebook(path) or "summaries" in path.parts or path.stem == "notation"]


class Written(SphinxDirective):
    """A directive of ``tools/site/written.py``."""

    optional_arguments = 1
    has_content = True

    def run(self):
        write, made_from = DIRECTIVES[self.name]
        root = Path(self.env.srcdir)
        if made_from == PRINTED:  # a file that is not there makes Sphinx read the page each time
            self.env.note_dependency(str(root / "_build" / PRINTED / pdf_name()))
        found = [] if made_from in ("chapters", PRINTED) else rows(self.env, made_from == "ledger")
        if made_from == "chapters":
            for path in _sources(root):
                self.env.note_dependency(str(path))
        try:
            text = write(Here(root, self.env.docname, found, "".join(self.arguments), "\n".join(self.content)))
        except ValueError as problem:
            raise self.error(f"{self.name}: {problem}") from None
        holder = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), self.get_source_info()[0]), self.content_offset, holder)
        return holder.children


def link(text, docname, target):
    """A link to a place of the site that Sphinx does not know."""
    text, _, power = text.partition("^")
    content = [nodes.Text(text)] + ([nodes.superscript("", power)] if power else [])
    return nodes.reference("", "", *content, internal=True, refuri="../" * docname.count("/") + target)


class SiteFile(ReferenceRole):
    """``site-file``: a link to a file, or a place in a page, by its address from the site's root."""

    def run(self):
        return [link(self.title, self.env.docname, self.target)], []


class Verdict(SphinxRole):
    """``verdict``: the words for a verdict, in its color."""

    def run(self):
        return [nodes.inline("", ledger_text.WORDS[self.text], classes=["verdict", f"verdict-{self.text}"])], []


class LedgerRole(SphinxRole):
    """A role with the id of a claim, which a function turns into text, page and anchor."""

    def __init__(self, find, numbers):
        self.find, self.numbers = find, numbers

    def run(self):
        try:
            text, page, anchor = self.find(rows(self.env, self.numbers), self.text)
            return [link(text, self.env.docname, f"{page}.html#{anchor}")], []
        except ValueError as problem:
            message = self.inliner.reporter.error(f"{self.name} {self.text!r} {problem}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]


def script(app, pagename, templatename, context, doctree):
    """The pages of the ledger have a script of their own."""
    if pagename.startswith("book/ledger/"):
        app.add_js_file("ledger.js", loading_method="defer")


def publish(app, error):
    """Put the files of the build into the site."""
    for made, published in PUBLISHED.items():
        source, target = Path(app.srcdir) / "_build" / made, Path(app.outdir) / published
        if error is None and source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif error is None and source.exists():
            shutil.copy(source, target)


def setup(app):
    for name in DIRECTIVES:
        app.add_directive(name, Written)
    app.add_role("site-file", SiteFile())
    app.add_role("verdict", Verdict())
    app.add_role("ledger-value", LedgerRole(ledger_text.value, numbers=True))
    app.add_role("ledger-control", LedgerRole(ledger_text.control, numbers=True))
    app.add_role("correction-ref", LedgerRole(ledger_text.correction_name, numbers=False))
    app.connect("html-page-context", script)
    app.connect("build-finished", publish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

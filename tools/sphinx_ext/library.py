"""The library in the site: a page a package, written by `sphinx.ext.autodoc`, and under a figure what it comes from."""

import importlib
import pkgutil
import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.ext.autodoc import AttributeDocumenter, PropertyDocumenter
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import stringify_annotation

from lib.common.shapes import Rng
from tools.build import project
from tools.site import figure_sources

SHOWN = 5  # functions under a figure
MODES = ("fully-qualified-except-typing", "smart")
RNG = {stringify_annotation(Rng, mode) for mode in MODES}
# A union with ArrayLike holds its members, but for those that stand in it already.
ENDS = [
    [stringify_annotation(kind, mode) for kind in (ArrayLike.__args__[0], ArrayLike.__args__[-1])] for mode in MODES
]
ARRAYS = re.compile("|".join(f"{re.escape(first)}.*?{re.escape(last)}" for first, last in ENDS))
SHAPE = re.compile(r"(?:~?typing\.)?Annotated\[(?:~?numpy\.)?ndarray, '([^']*)'\]")
MARKS = re.compile(
    r"(^ *>>>.*(?:\n.*\S.*)*|``.+?``|:[\w:]+:`[^`]+`|`[^`]+`)"  # examples, code and roles stay as they are
    r"|(?<!\\)([|*]|(?<=\w)_(?!\w))",
    re.MULTILINE,
)
SHORT = re.compile(r"(:(?:func|meth|class|mod|attr):`~?)(?!lib\.)(?=\w)")


def words(text):
    """Annotations as the source writes them: ``ArrayLike``, ``Rng``, ``Array['n K']``."""
    for spelled in RNG:
        text = text.replace(spelled, "Rng")
    text = ARRAYS.sub("ArrayLike", text)
    return SHAPE.sub(r"Array['\1']", text)


def readable(app, what, name, obj, options, signature, returns):
    """A signature and what it returns, in the words of the source."""
    return tuple(text and words(text) for text in (signature, returns))


class Typed:
    """A property or attribute: its type is given as an option of its directive."""

    def add_line(self, line, source, *place):
        super().add_line(words(line), source, *place)


class Property(Typed, PropertyDocumenter):
    pass


class Attribute(Typed, AttributeDocumenter):
    pass


def plain_text(app, what, name, obj, options, lines):
    """Formulas in docstrings mean their signs: bars, stars and trailing underscores are no markup outside of code.

    A name in a role may be as short as in the code: the leading dot lets Sphinx look for it in other modules too.
    """
    text = MARKS.sub(lambda match: match[1] or "\\" + match[2], "\n".join(lines))
    lines[:] = SHORT.sub(r"\1.", text).split("\n")


class LibraryPackage(SphinxDirective):
    """``library-package lib.x``: what the package holds, and each of its public modules with all that it documents."""

    required_arguments = 1

    def run(self):
        (name,) = self.arguments
        package = importlib.import_module(name)
        (folder,), about = package.__path__, package.__doc__.strip()
        self.env.metadata[self.env.docname]["about"] = about.split("\n\n")[0].replace("\n", " ")
        public = [info.name for info in pkgutil.iter_modules([folder]) if not (info.ispkg or info.name.startswith("_"))]
        page = nodes.Element()
        self.rst([about, "", f".. currentmodule:: {name}", *self.summary(public)], page)
        for module in public:
            self.env.note_dependency(str(Path(folder) / f"{module}.py"))
            whole = f"{name}.{module}"
            inside = vars(importlib.import_module(whole)).items()
            mine = [key for key, one in inside if hasattr(one, "__name__") and getattr(one, "__module__", "") == whole]
            section = nodes.section("", nodes.title("", module), names=[module])
            self.state.document.note_implicit_target(section)
            names = self.summary(key for key in mine if key[0] != "_")
            self.rst([f".. currentmodule:: {whole}", *names, "", f".. automodule:: {whole}", "   :members:"], section)
            page += section
        for entry in list(page.findall(addnodes.index)):  # the index is one of terms
            entry.parent.remove(entry)
        return page.children

    @staticmethod
    def summary(names):
        """A table of names with the first sentence of each."""
        return ["", ".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in names)]

    def rst(self, lines, parent):
        text = StringList(["```{eval-rst}", *lines, "```"], self.get_source_info()[0])
        self.state.nested_parse(text, self.content_offset, parent)


def documented(env, name):
    """What the library's pages say of a name, or of the longest beginning of it: name, page and anchor, or None."""
    objects = env.get_domain("py").objects
    while name.count(".") > 2 or name in objects:
        if name in objects and objects[name].objtype != "module":
            return name, objects[name].docname, objects[name].node_id
        name = name.rpartition(".")[0]
    return None


def name_functions(app, doctree, docname):
    """Say under every figure of a notebook which functions of lib stand behind it."""
    source = Path(app.env.doc2path(docname))
    if app.builder.format != "html" or not project.is_notebook(source):
        return
    behind = figure_sources.figures(project.read_notebook(Path(app.srcdir), source))
    for figure in doctree.findall(nodes.figure):
        name = next((name for name in figure["names"] if name in behind), None)
        if name is None:
            continue
        used = list(dict.fromkeys(filter(None, (documented(app.env, one) for one in behind[name]))))
        line = nodes.paragraph("", "Computed by " if used else "Computed in this page's own cells.")
        line["classes"].append("computed-by")
        for number, (function, page, anchor) in enumerate(used[:SHOWN]):
            line += [nodes.Text(", ")] if number else []
            address = f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
            shown = ".".join(function.split(".")[2:])
            line += nodes.reference("", "", nodes.literal("", shown), internal=True, refuri=address)
        line += [nodes.Text(f" and {len(used) - SHOWN} more")] if len(used) > SHOWN else []
        figure += nodes.legend("", line)


def setup(app):
    app.add_directive("library-package", LibraryPackage)
    app.setup_extension("sphinx.ext.autodoc")
    app.add_autodocumenter(Property, override=True)
    app.add_autodocumenter(Attribute, override=True)
    app.connect("autodoc-process-signature", readable)
    app.connect("autodoc-process-docstring", plain_text, priority=100)  # before napoleon
    app.connect("doctree-resolved", name_functions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""What the pages about ``lib`` are made of: its packages, their modules, the functions and classes of each."""

import ast
from dataclasses import dataclass

from lib.services import provenance

FOLDER = "library"  # of the site: one page a module
PACKAGES = (
    "foundations",
    "fluctuations",
    "scaling",
    "representations",
    "criticality",
    "fields",
    "services",
    "common",
)  # as the list shows them


@dataclass(frozen=True)
class Definition:
    """A public function, class or method: its place in the file (from its first decorator on) and its summary."""

    name: str  # Class.method for a method
    first: int
    last: int
    summary: str


@dataclass(frozen=True)
class Module:
    """A module of ``lib``: its text, its summary, what it defines, and the names that it takes over from others."""

    name: str  # inside lib, as in "scaling.spectra"
    text: str
    summary: str
    definitions: dict  # name -> Definition
    imported: dict  # name here -> (module, name there), or (module, None) for a module

    @property
    def page(self):
        return f"{FOLDER}/{self.name}"

    @property
    def file(self):
        return f"lib/{self.name.replace('.', '/')}.py"

    @property
    def tests(self):
        package, _, name = self.name.rpartition(".")
        return f"tests/{package.replace('.', '/')}/test_{name}.py"


def anchor(name):
    """The place of a definition on its module's page: ``power_law`` is at ``#power-law``."""
    return name.replace("_", "-").strip("-")


def _summary(node):
    return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ").partition(":  ")[0].rstrip(".")


def _definitions(body, prefix=""):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield Definition(prefix + node.name, first, node.end_lineno, _summary(node))
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node.body, f"{node.name}.")


def read_module(name, path, names):
    """A :class:`Module` from its file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imported = {}
    for node in tree.body:
        imported |= provenance.imports_of(node, names)
    return Module(name, text, _summary(tree), {item.name: item for item in _definitions(tree.body)}, imported)


def modules(root):
    """Every module of a checkout's ``lib`` by name, in alphabetical order."""
    every = provenance.files(root / "lib")
    files = {name: path for name, path in every.items() if path.stem != "__init__"}
    return {name: read_module(name, path, files) for name, path in files.items()}


def packages(root, names):
    """The packages in the order of the list, each as (summary, its modules' names).

    Public modules come first, then what only the package uses.
    """
    every = {name.rpartition(".")[0] for name in names}
    if unknown := {package.split(".")[0] for package in every} - set(PACKAGES):
        raise ValueError(
            f"lib holds {sorted(unknown)}, which tools/site/library.py does not list: add them to PACKAGES there"
        )
    made = []
    for package in sorted(every, key=lambda package: (PACKAGES.index(package.split(".")[0]), package)):
        text = (root / "lib" / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
        own = [name for name in names if name.rpartition(".")[0] == package]
        made.append(
            (_summary(ast.parse(text)), sorted(own, key=lambda name: (name.rpartition(".")[2].startswith("_"), name)))
        )
    return made


def find(library, module, name):
    """Where a name used as ``module.name`` is defined: module and definition, or None if it is no function or class.

    A name that the module only takes over from another one is followed there.
    """
    while module in library:
        if name in library[module].definitions:
            return library[module], library[module].definitions[name]
        module, name = library[module].imported.get(name, (None, None))
    return None

"""What the pages about ``lib`` are made of: its modules, the functions and classes of each, and the map in ``lib/__init__.py``."""

import ast
import re
from dataclasses import dataclass

FOLDER = "library"  # of the site: one page a module
_SERVICES, _BEHIND = "Services", "Behind the public modules"
_LINE = re.compile(r"    (?P<indent> *)(?:-> )?(?P<names>\w+(?:, \w+)*) {2,}(?P<text>.*)")
_GROUP = re.compile(r"\((?:book, )?(?:part (?P<number>[IVX]+): )?(?P<title>[^()]+)\)$")


@dataclass(frozen=True)
class Definition:
    """A public function, class or method: its place in the file (first line a decorator's, if it has any) and its summary."""

    name: str  # Class.method for a method
    first: int
    last: int
    summary: str


@dataclass(frozen=True)
class Module:
    """A module of ``lib``: its text, its summary, what it defines, and the names that it takes over from others."""

    name: str
    text: str
    summary: str
    definitions: dict  # name -> Definition
    imported: dict  # name here -> (module, name there), or (module, None) for a module

    @property
    def page(self):
        return f"{FOLDER}/{self.name}"


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


def imports_of(node):
    """What an import statement takes from ``lib``: name here -> (module, name there or None); ``import lib`` itself is (None, None)."""
    found = {}
    if isinstance(node, ast.ImportFrom) and node.module == "lib" and not node.level:
        found = {item.asname or item.name: (item.name, None) for item in node.names}
    elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lib."):
        found = {item.asname or item.name: (node.module.removeprefix("lib."), item.name) for item in node.names}
    elif isinstance(node, ast.Import):
        for item in node.names:
            if item.name.startswith("lib.") and item.asname:
                found[item.asname] = (item.name.removeprefix("lib."), None)
            elif item.name.split(".")[0] == "lib":
                found[item.asname or "lib"] = (None, None)
    return found


def read_module(path):
    """A :class:`Module` from its file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imported = {}
    for node in tree.body:
        imported |= imports_of(node)
    return Module(path.stem, text, _summary(tree), {item.name: item for item in _definitions(tree.body)}, imported)


def modules(root):
    """Every module of a checkout's ``lib`` by name, in alphabetical order."""
    return {path.stem: read_module(path) for path in sorted((root / "lib").glob("*.py")) if path.stem != "__init__"}


def find(library, module, name):
    """Where a name used as ``module.name`` is defined: a pair of module and definition, or None if it is no function or class.

    A name that the module only takes over from another one is followed there.
    """
    while module in library:
        if name in library[module].definitions:
            return library[module], library[module].definitions[name]
        module, name = library[module].imported.get(name, (None, None))
    return None


@dataclass(frozen=True)
class Group:
    """Part of the map: its heading and its entries, each a pair of depth and module name."""

    title: str
    entries: list


def groups(text, parts, names):
    """The map in the docstring of ``lib``, cut into one group a part of the book, the services, and what only the package uses.

    Parameters
    ----------
    text : str     the docstring; a module without a line of its own stands below the line that mentions it, or at the end
    parts : dict   heading of each part by its Roman number, in the order of the book; the map begins with part I
    names : list   of the modules

    Returns
    -------
    list of Group  in the order of the parts

    Raises
    ------
    ValueError     if the map names a part that the book does not have, or a module that is not there
    """
    made = {number: Group(caption, []) for number, caption in parts.items()} | {title: Group(title, []) for title in (_SERVICES, _BEHIND)}
    lines = [match for match in map(_LINE.fullmatch, text.splitlines()) if match]
    own = [name for line in lines for name in line["names"].split(", ")]
    if set(own) - set(names):
        raise ValueError(f"the map in lib/__init__.py names {sorted(set(own) - set(names))}, but there are no such modules")
    seen, titles, key = set(own), {}, "I"
    for line in lines:
        depth, first = len(line["indent"]) // 2, line["names"].split(", ")
        if depth == 0:
            key = _key(line, key, titles, made)
        below = [name for name in re.findall(r"\w+", line["text"]) if name in names and name not in seen]
        seen.update(below)
        made[key].entries.extend([(depth, name) for name in first] + [(depth + 1, name) for name in dict.fromkeys(below)])
    made[_BEHIND].entries.extend((0, name) for name in names if name not in seen)
    return [group for group in made.values() if group.entries]


def _key(line, key, titles, made):
    """The group of a line that is not set in; ``titles`` collects the parts' names that the map uses."""
    told = _GROUP.search(line["text"])
    if line["names"].startswith("_"):
        return _BEHIND
    if line["text"].startswith("services:"):
        return _SERVICES
    if told and told["number"]:
        if told["number"] not in made:
            raise ValueError(f"lib/__init__.py names part {told['number']}, which is no caption of _toc.yml: mend the map")
        titles[told["title"]] = told["number"]
        return told["number"]
    return titles.get(told["title"] if told else "", key)

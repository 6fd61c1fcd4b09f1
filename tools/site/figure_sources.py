"""Which names of ``lib`` a figure comes from: those in its cell, and in the page's own functions that it calls.

A cell that only draws has none; then those in the nearest earlier cells that bind the names that it reads.
"""

import ast

from lib.services import provenance

# They draw, check and run what others compute.
SERVICES = tuple(f"lib.services.{name}" for name in ("display", "explore", "plot", "ledger", "presets", "sweep"))


def _dotted(node, aliases):
    """What a name or an attribute means, as in "lib.scaling.spectra.power_law"; None outside of ``lib``."""
    names = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    target = aliases.get(node.id) if isinstance(node, ast.Name) else None
    return ".".join(["lib", *filter(None, target), *names]) if target else None


def _names(tree, aliases, functions):
    """The names of lib in a piece of code, as they stand there, then those in the page's functions that it names."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    inside = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    used = [node for node in nodes if id(node) not in inside]
    used.sort(key=lambda node: (node.lineno, node.col_offset))
    own = [_dotted(node, aliases) for node in used]
    called = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name) and node.id in functions)
    others = {name: function for name, function in functions.items() if name not in called}
    return [*filter(None, own), *(name for one in called for name in _names(functions[one], aliases, others))]


def _bound(tree):
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}, {node.id for node in names}


def figures(notebook):
    """Name of each figure of a notebook -> names of lib that it comes from, each once.

    A name may go on with what is no part of lib's documentation, as in "lib.scaling.spectra.power_law.shape".
    """
    aliases, modules, functions, cells, found = {}, provenance.files(), {}, [], {}
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        tree = ast.parse(cell.source)
        for node in ast.walk(tree):
            aliases |= provenance.imports_of(node, modules)
        functions |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        names = [one for one in _names(tree, aliases, functions) if not one.startswith(SERVICES)]
        cells.append((names, *_bound(tree)))
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        if name:
            found[name] = list(dict.fromkeys(names or _before(cells)))
    return found


def _before(cells):
    """The names of lib in the cells that the values of the last one come from, the nearest first."""
    _, stored, seen = cells[-1]
    found, wanted = [], seen - stored
    for names, stored, seen in reversed(cells[:-1]):
        if wanted & stored:
            wanted = (wanted if names else wanted | seen) - stored
            found += names
    return found

"""Which names of ``lib`` a figure comes from: those in its cell, then in the statements that its values come from.

The page is read backwards, statement by statement, functions of the page like values; the nearest come first.
"""

import ast
import symtable
from dataclasses import dataclass

from lib.services import provenance

# They draw, check and run what others compute.
SERVICES = tuple(f"lib.services.{name}" for name in ("display", "explore", "plot", "ledger", "presets", "sweep"))
IMPORTS = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class _Statement:
    """Names of lib in a statement, in its order; the page's names that it binds, changes in place, and reads."""

    lib: list
    binds: set
    changes: set
    reads: set


def _dotted(node, aliases):
    """What a name or an attribute means, as in "lib.scaling.spectra.power_law"; None outside of ``lib``."""
    names = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    target = aliases.get(node.id) if isinstance(node, ast.Name) else None
    return ".".join(["lib", *filter(None, target), *names]) if target else None


def _named_in(tree, aliases):
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    inside = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    used = sorted((node for node in nodes if id(node) not in inside), key=lambda node: (node.lineno, node.col_offset))
    return [one for one in (_dotted(node, aliases) for node in used) if one and not one.startswith(SERVICES)]


def _globals_read(table):
    """The names of the page that a scope and those inside it read."""
    own = {one.get_name() for one in table.get_symbols() if one.is_referenced() and one.is_global()}
    return own.union(*(_globals_read(inner) for inner in table.get_children()))


def _changed(tree):
    """What a statement changes in place: ``x[k] = …``, ``x += …`` and ``x.append(…)`` change x."""
    for node in ast.walk(tree):
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        place = node if isinstance(getattr(node, "ctx", None), ast.Store) else getattr(call, "func", None)
        if isinstance(node, ast.AugAssign):
            place = node.target
        elif isinstance(place, ast.Name):
            continue
        while isinstance(place, ast.Attribute | ast.Subscript):
            place = place.value
        if isinstance(place, ast.Name):
            yield place.id


def _read(tree, aliases):
    table = symtable.symtable(ast.unparse(tree), "cell", "exec")
    top = table.get_symbols()
    reads = {one.get_name() for one in top if one.is_referenced()} | _globals_read(table)
    binds = {one.get_name() for one in top if one.is_assigned() or one.is_namespace()}
    branching = isinstance(tree, ast.For | ast.While | ast.If | ast.Try)  # an earlier value may stay
    changes = set(_changed(tree)) | (binds if branching else set())
    return _Statement(_named_in(tree, aliases), binds - changes, changes, reads - binds if branching else reads)


def figures(notebook):
    """Name of each figure of a notebook -> names of lib that it comes from, each once.

    A name may go on with what is no part of lib's documentation, as in "lib.scaling.spectra.power_law.shape".
    """
    aliases, modules, imported, functions, before, found = {}, provenance.files(), set(), {}, [], {}
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        trees, here = ast.parse(cell.source).body, []
        for node in (node for tree in trees for node in ast.walk(tree)):
            aliases |= provenance.imports_of(node, modules)
            if isinstance(node, IMPORTS):
                imported |= {(item.asname or item.name).split(".")[0] for item in node.names}
        for tree in (tree for tree in trees if not isinstance(tree, IMPORTS)):
            if isinstance(tree, ast.FunctionDef | ast.ClassDef):
                functions[tree.name] = _read(tree, aliases)
            else:
                here.append(_read(tree, aliases))
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        if name:
            found[name] = _slice(before, here, imported, functions)
        before += here
    return found


def _slice(before, here, imported, functions):
    """The names of lib in the statements of a cell, and in those before it that its values come from."""
    wanted, names, called = set(), [], {}

    def take(statement):
        for name in sorted(statement.reads & set(functions) - set(called)):
            called[name] = functions[name]
            take(functions[name])
        wanted.difference_update(statement.binds)
        wanted.update(statement.reads - imported - set(functions))

    for statement in reversed(here):
        take(statement)
    names += [one for statement in (*here, *called.values()) for one in statement.lib]
    for statement in reversed(before):
        if wanted & (statement.binds | statement.changes):
            known = set(called)
            take(statement)
            names += statement.lib
            names += [one for name in called if name not in known for one in called[name].lib]
    return list(dict.fromkeys(names))

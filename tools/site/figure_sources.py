"""Which functions of ``lib`` made a figure, found by reading the cells of its notebook, without running them.

The functions that the figure's own cell names come first.  Then every name that the cell takes from an earlier cell is
followed to the statements that gave it its value.  Where such a statement uses ``lib`` (itself, or through a function
that the notebook defines), the trace ends there; otherwise it goes on with the names that the statement reads.
"""

import ast
from dataclasses import dataclass, field

from lib.services import provenance
from tools.site import library

# They draw, check and run what the other modules compute.
SERVICES = {
    "services.display",
    "services.explore",
    "services.plot",
    "services.claims",
    "services.ledger",
    "services.presets",
    "services.sweep",
    "services.downloads",
    "common.checks",
    "common.random",
    "common.stats",
}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class _Statement:
    """A simple statement, or the head of a compound one, as the trace sees it."""

    binds: set  # names that it gives a new value
    changes: set = field(default_factory=set)  # names whose value it may keep or changes in part
    reads: set = field(default_factory=set)
    functions: list = field(default_factory=list)  # (module, name) of lib, in the order of the text
    cell: int = 0
    defines: bool = False  # a function
    loop: range = range(0)  # the statements of the outermost loop around it


def _own_names(scope):
    """The names that belong to a function, a lambda or a comprehension alone."""
    if isinstance(scope, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = scope.args
        everything = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        own = {item.arg for item in everything if item is not None}
        shared = {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}
        return own | (_stored(scope.body) - shared if isinstance(scope.body, list) else set())
    return _stored([generator.target for generator in scope.generators])


def _stored(nodes):
    return {
        node.id
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _uses(node, aliases, hidden=frozenset()):
    """What an expression or statement takes from outside: plain names as ``str``, lib's functions as (module, name)."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in hidden:
            target = aliases.get(node.id)
            yield target if target and target[1] else node.id
        return
    if isinstance(node, ast.Attribute):
        chain = _dotted(node)
        target = aliases.get(chain[0]) if chain and chain[0] not in hidden else None
        if (
            target and target[1] is None
        ):  # a module, or a package and what is in it: the reader knows which of these are functions
            for end in range(1, len(chain)):
                yield ".".join([*filter(None, target[:1]), *chain[1:end]]), chain[end]
            return
    if isinstance(node, _SCOPES):
        hidden = hidden | _own_names(node)
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, aliases, hidden)


def _dotted(node):
    """``a.b.c`` as ["a", "b", "c"]; None where the chain does not begin with a name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else None


def _base(node):
    """The name whose value ``name[...] = ...``, ``name.x = ...`` or a call ``name.method(...)`` changes; else None."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


class _Reader(ast.NodeVisitor):
    """Cuts cells into statements, with the names of ``lib`` that each one sees."""

    def __init__(self, names, known):
        self.names, self.known = names, known
        self.statements, self.aliases, self.imported = [], {}, set()
        self.elements = {}  # a loop's own name -> the names that its values come from
        self.cell = self.depth = 0

    def add(self, nodes, binds=(), changes=(), sure=True, defines=False):
        found = [use for node in nodes if node is not None for use in _uses(node, self.aliases)]
        functions = [use for use in found if isinstance(use, tuple) and use[0] not in SERVICES and self.known(*use)]
        binds, changes = set(binds), set(changes)
        for name in changes.copy():  # what changes an element changes the whole
            changes |= self.elements.get(name, set())
        for name in binds:
            self.aliases.pop(name, None)
            self.imported.discard(name)
            self.elements.pop(name, None)
        if not sure:
            binds, changes = set(), binds | changes
        reads = {use for use in found if isinstance(use, str)} | changes
        self.statements.append(_Statement(binds, changes, reads - self.imported, functions, self.cell, defines))

    def body(self, *blocks, loop=False):
        """The statements inside a compound one; those of a branch may not run, those of a loop are taken to run."""
        self.depth += not loop
        for block in blocks:
            for node in block:
                self.visit(node)
        self.depth -= not loop

    def generic_visit(self, node):
        self.add([node], sure=not self.depth)

    def visit_Import(self, node):
        for item in node.names:
            self.imported.add((item.asname or item.name).split(".")[0])
        self.aliases |= provenance.imports_of(node, self.names)

    visit_ImportFrom = visit_Import

    def visit_Assign(self, node):
        targets = getattr(node, "targets", None) or [node.target]
        names = {item.id for target in targets for item in _parts(target) if isinstance(item, ast.Name)}
        parts = {_base(item) for target in targets for item in _parts(target) if not isinstance(item, ast.Name)} - {
            None
        }
        grown = names if isinstance(node, ast.AugAssign) else set()
        self.add([*targets, node.value], names - grown, parts | grown, sure=not self.depth)

    visit_AnnAssign = visit_AugAssign = visit_Assign

    def visit_Expr(self, node):
        call = node.value
        changed = _base(call.func) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        self.add([node], changes={changed} - {None})

    def visit_FunctionDef(self, node):
        self.add([node], {node.name}, sure=not self.depth, defines=True)

    visit_ClassDef = visit_FunctionDef

    def visit_For(self, node):
        start = len(self.statements)
        self.add([node.iter], _stored([node.target]))
        self.elements |= dict.fromkeys(_stored([node.target]), self.statements[-1].reads)
        self.body(node.body, node.orelse, loop=True)
        self.close(start)

    def visit_While(self, node):
        start = len(self.statements)
        self.add([node.test])
        self.body(node.body, node.orelse, loop=True)
        self.close(start)

    def close(self, start):
        for statement in self.statements[start:]:
            statement.loop = range(start, len(self.statements))

    def visit_With(self, node):
        self.add(
            [item.context_expr for item in node.items],
            _stored([item.optional_vars for item in node.items if item.optional_vars]),
        )
        self.body(node.body, loop=True)

    def visit_If(self, node):
        self.add([node.test])
        self.body(node.body, node.orelse)

    def visit_Try(self, node):
        self.body(node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody)


def _parts(target):
    """The targets inside a tuple or list of targets."""
    if isinstance(target, ast.Tuple | ast.List):
        return [part for item in target.elts for part in _parts(item)]
    return _parts(target.value) if isinstance(target, ast.Starred) else [target]


def _sources(statements, position, name):
    """Positions of the statements that a name's value at a position comes from, the nearest one first."""
    for place in reversed(statements[position].loop):  # an earlier round of the loop may have set it
        if place >= position and name in statements[place].binds | statements[place].changes:
            yield place
    for place in range(position - 1, -1, -1):
        if name in statements[place].binds | statements[place].changes:
            yield place
        if name in statements[place].binds:
            return


def _functions(statements, position, passed=frozenset()):
    """The functions of lib that a statement uses, itself or through functions of the notebook."""
    found = list(statements[position].functions)
    for name in sorted(statements[position].reads):
        for place in _sources(statements, position, name):
            if statements[place].defines and place not in passed:
                found += _functions(statements, place, passed | {position})
    return list(dict.fromkeys(found))


def _read(cells, names, known):
    """The statements of some code cells, in order; see :func:`trace` for the arguments."""
    reader = _Reader(names, known)
    for number, text in enumerate(cells):
        reader.cell = number
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise ValueError(
                f"code cell {number + 1} is not plain Python ({error.msg}): {text.splitlines()[0]!r}"
            ) from None
        for node in tree.body:
            reader.visit(node)
    return reader.statements


def _trace(statements, cell):
    """The functions of lib behind a cell, the nearest first; statements of later cells do not matter."""
    own = {place for place, statement in enumerate(statements) if statement.cell == cell}
    layer, seen, found = sorted(own), set(own), {}
    while layer:
        further = set()
        for place in layer:
            functions = _functions(statements, place)
            found |= dict.fromkeys(functions)
            if place in own or not functions:
                further.update(*(_sources(statements, place, name) for name in statements[place].reads))
        layer = sorted(further - seen, reverse=True)
        seen |= further
    return list(found)


def trace(cells, names, known):
    """The functions of ``lib`` behind the last of some cells, the nearest first.

    Parameters
    ----------
    cells : list of str    the code cells of a notebook up to the figure's own
    names : container      the modules of lib
    known : callable       known(module, name) is true if that is a function or class of lib

    Returns
    -------
    list of (str, str)     module and name as the notebook writes them, each once

    Raises
    ------
    ValueError             if a cell is not plain Python
    """
    return _trace(_read(cells, names, known), len(cells) - 1)


def figures(notebook, modules):
    """What every figure of a notebook was computed by.

    Parameters
    ----------
    notebook : notebook    of nbformat, executed or not
    modules : dict         the modules of lib (see ``library.modules``)

    Returns
    -------
    dict                   name of the figure -> list of (module, name), of :mod:`tools.site.library`; empty if lib made
                           none of it
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    statements = _read([cell.source for cell in cells], modules, lambda *use: library.find(modules, *use) is not None)
    found = {}
    for number, cell in enumerate(cells):
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        if name:
            homes = [library.find(modules, *use) for use in _trace(statements, number)]
            found[name] = list(dict.fromkeys((module.name, definition.name) for module, definition in homes))
    return found

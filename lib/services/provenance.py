"""Which modules of this package a piece of code reaches, and sums over them: a kept result serves only its code.

A sum is taken over the syntax tree without docstrings: what a comment or a docstring says costs no result.
"""

import ast
import functools
import hashlib
import importlib.util
import inspect
import json
import os
import platform
import sysconfig
from collections.abc import Callable, Collection, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lib.services import _files, presets

PACKAGE = Path(__file__).resolve().parent.parent
VERSIONS = ("numpy", "scipy", "numba", "torch")  # that results depend on


def files(package: Path = PACKAGE) -> dict[str, Path]:
    """Every module's file by its name.

    Parameters
    ----------
    package : Path
        The folder of lib.

    Returns
    -------
    dict of Path
        Sorted, by names as in "scaling.spectra"; a package's ``__init__.py`` has its name, "" at the top.

    Examples
    --------
    >>> files()["services.provenance"].name
    'provenance.py'
    """
    found = {}
    for path in package.rglob("*.py"):
        inside = path.relative_to(package).with_suffix("").parts
        found[".".join(inside[:-1] if inside[-1] == "__init__" else inside)] = path
    return dict(sorted(found.items()))


def imports_of(node: ast.AST, names: Collection[str]) -> dict[str, tuple[str, str | None]]:
    """What a statement takes from ``lib``.

    Parameters
    ----------
    node : ast.AST
    names : collection of str
        The modules of lib.

    Returns
    -------
    dict
        From names here to (module, name there), or to (path of a module or package, None).

    Examples
    --------
    >>> imports_of(ast.parse("from lib.p.a import f as g").body[0], {"p.a"})
    {'g': ('p.a', 'f')}
    """
    found = {}
    if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "lib":
        inside = node.module.removeprefix("lib").removeprefix(".")
        for item in node.names:
            whole = f"{inside}.{item.name}".removeprefix(".")
            found[item.asname or item.name] = (inside, item.name) if inside in names else (whole, None)
    elif isinstance(node, ast.Import):
        for item in node.names:
            if item.name.split(".")[0] == "lib":
                path = item.name.removeprefix("lib").removeprefix(".")
                found[item.asname or "lib"] = (path if item.asname else "", None)
    return found


def _taken(tree):
    """What may be a module or package of lib among the names that a syntax tree imports, also inside its functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "lib":
            inside = node.module.removeprefix("lib").removeprefix(".")
            found |= {inside} | {f"{inside}.{item.name}".removeprefix(".") for item in node.names}
        elif isinstance(node, ast.Import):
            names = {item.name for item in node.names if item.name.split(".")[0] == "lib"}
            found |= {name.removeprefix("lib").removeprefix(".") for name in names}
    return found


@functools.lru_cache(maxsize=1000)
def _read(path, written, size):
    """What a file may take from lib, and its sum; read again only when it was `written` again."""
    text = path.read_bytes()
    return _taken(ast.parse(text)), _code_sum(text)


def _known(path):
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


def reached(trees: Iterable[ast.AST], package: Path = PACKAGE) -> dict[str, Path]:
    """All modules that some code reaches, with the packages that hold them.

    Parameters
    ----------
    trees : iterable of ast.AST
        Say of the cells of a notebook.
    package : Path
        The folder of lib.

    Returns
    -------
    dict of Path
        Files by the names of the modules, "" that of lib itself.

    Examples
    --------
    >>> list(reached([ast.parse("from lib.common import shapes")]))
    ['', 'common', 'common.shapes']
    """
    known = files(package)
    seen, ahead = set(), set().union(*map(_taken, trees)) & set(known)
    while ahead:
        name = ahead.pop()
        seen.add(name)
        above = {name.rpartition(".")[0]} if name else set()
        ahead |= (above | _known(known[name])[0]) & set(known) - seen
    return {name: known[name] for name in sorted(seen)}


def _code_sum(text: str | bytes) -> str:
    """Sum over Python source without its comments, docstrings and layout.

    Parameters
    ----------
    text : str or bytes

    Returns
    -------
    str

    Examples
    --------
    >>> _code_sum("x = 1") == _code_sum("x  =  1  # one") != _code_sum("x = 2")
    True
    """
    return _tree_sum(ast.parse(text))


def _tree_sum(tree):
    """That of a syntax tree, which loses its docstrings."""
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def sums(trees: Iterable[ast.AST], package: Path = PACKAGE) -> dict[str, str]:
    """A sum for every file of lib that some code reaches.

    Parameters
    ----------
    trees : iterable of ast.AST
    package : Path
        The folder of lib.

    Returns
    -------
    dict of str
        By path, as in "lib/scaling/spectra.py".

    Examples
    --------
    >>> list(sums([ast.parse("import lib")]))
    ['lib/__init__.py']
    """
    return {path.relative_to(package.parent).as_posix(): _known(path)[1] for path in reached(trees, package).values()}


def _installed(path):
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(path.is_relative_to(Path(place).resolve()) for place in places)


def _file_of(name):
    """The file of a module, None if there is no such module or it is not written in Python."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a name inside a module, or a module that was made by hand
        return None
    return Path(spec.origin).resolve() if spec and spec.origin and spec.origin.endswith(".py") else None


def _own_modules(module, source, package):
    """Source trees of a module and of all that it imports, however far, but what is installed or belongs to lib.

    By name; a name that leads nowhere is left out.
    """
    found, ahead = {}, [(module, source)]
    while ahead:
        name, text = ahead.pop()
        found[name] = tree = ast.parse(text)
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {item.name for item in node.names}
            elif isinstance(node, ast.ImportFrom):
                inside = "." * node.level + (node.module or "")
                inside = importlib.util.resolve_name(inside, name.rpartition(".")[0]) if node.level else inside
                names |= {inside} | {f"{inside}.{item.name}" for item in node.names}
        for other in names - found.keys() - {known for known, _ in ahead}:
            path = None if other.split(".")[0] == "lib" else _file_of(other)
            if path is not None and not _installed(path) and not path.is_relative_to(package):
                ahead.append((other, path.read_text(encoding="utf-8")))
    return found


def _provenance(task: Callable, package: Path = PACKAGE) -> dict[str, str]:
    """What the results of a function depend on: sums over the code that it reaches, the preset, the versions.

    The code is its module, what that imports beside it, and what these reach in lib; where they read the large sets,
    the files that are there count.

    Parameters
    ----------
    task : callable
        Of a module whose file can be read.
    package : Path
        The folder of lib.

    Returns
    -------
    dict of str

    Examples
    --------
    >>> _provenance(files)["lib/common/checks.py"] == _code_sum(files()["common.checks"].read_bytes())
    True
    """
    trees = _own_modules(task.__module__, inspect.getsource(inspect.getmodule(task)), package)
    code = {f"{name}.py": _tree_sum(tree) for name, tree in trees.items()}
    reaching = sums(list(trees.values()), package)
    if "lib/services/downloads.py" in reaching:
        code["files of data"] = _files.data_present()
    settings = {"the preset": presets.current(), "times as many samples": os.environ.get(presets.SAMPLES, "1")}
    versions = {name: _version(name) for name in VERSIONS} | {"Python": platform.python_version()}
    return code | reaching | settings | versions


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _digest(found: dict[str, str]) -> str:
    """A short sum over a provenance: a result is used only with the same.

    Parameters
    ----------
    found : dict
        What a result depends on.

    Returns
    -------
    str

    Examples
    --------
    >>> _digest({"a": "1", "b": "2"}) == _digest({"b": "2", "a": "1"})
    True
    """
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]

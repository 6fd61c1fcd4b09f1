"""What the executed result of a page was made from, so that only pages are executed again for which that changed."""

import ast
import hashlib
import json
import sys
import tomllib
from pathlib import Path

from lib.services import _files, presets, provenance
from tools.build import project

FILE = "fingerprints.json"  # in the build's folder
LOCK = "binder/requirements.txt"  # the versions of what a chapter may use


def surroundings(root):
    """Sums over what every executed result depends on besides code.

    These are Python, the preset, the kernels' settings, the locked versions of what a chapter may use, and the files
    of the library's services that are not code.
    """
    settings = [sys.version, presets.current(), project.KERNELS]
    sums = {"Python, the preset or the kernels": _sum(json.dumps(settings).encode())}
    return sums | _beside(root, {"lib/services"}) | {LOCK: _sum((root / LOCK).read_bytes())}


def _beside(root, folders):
    """Sums over the files in these folders of the library that are not code."""
    files = [path for folder in sorted(folders) for path in (root / folder).iterdir() if path.is_file()]
    return {path.relative_to(root).as_posix(): _sum(path.read_bytes()) for path in files if path.suffix != ".py"}


def _sum(data):
    return hashlib.sha256(data).hexdigest()[:16]


def cells_sum(notebook):
    """A sum over the code of a page's cells."""
    return _sum("\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code").encode())


def of_page(root, path, notebook, around):
    """What the executed result of a page was made from.

    A sum for each of its cells together, the modules of lib that they reach and the data beside them, its claims, and
    the surroundings, `around` it.  Cells that are not plain Python may reach anything.
    """
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    try:
        code = provenance.sums([ast.parse(cell) for cell in cells], root / "lib")
    except SyntaxError:
        code = {p.relative_to(root).as_posix(): _sum(p.read_bytes()) for p in (root / "lib").rglob("*.py")}
    claims = [root / "lib" / "claims" / "sources.toml", *(root / "lib" / "claims").glob(f"*/{path.stem}.toml")]
    declared = {
        claim.relative_to(root).as_posix(): _sum(repr(_tests(tomllib.loads(project.read(claim)))).encode())
        for claim in claims
    }
    data = {"the files of data": _files.data_present()} if "lib/services/downloads.py" in code else {}
    beside = _beside(root, {Path(module).parent for module in code})
    return {"its cells": cells_sum(notebook)} | code | beside | declared | data | around


def _tests(declarations):
    """What a check of a claim takes from its declaration; the words about it go into the ledger later."""
    words = {"statement", "locator", "printed", "right", "cause", "neglects"}
    return declarations | {
        "claim": [
            {key: value for key, value in claim.items() if key not in words} for claim in declarations.get("claim", [])
        ]
    }


class Fingerprints:
    """What each executed page was made from, kept beside the cache.

    It is written after every page, so that a build that ends early keeps what it has finished.
    """

    def __init__(self, root, file):
        self.root, self.file = root, file
        try:
            self.kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
            if not all(isinstance(parts, dict) for parts in self.kept.values()):
                raise ValueError("a page without its parts")
        except (ValueError, AttributeError) as problem:
            print(f"{file.name} cannot be read ({type(problem).__name__}); executing everything again.")
            self.kept = {}
        self.seen, self.now = self._files(), self.look()

    def _files(self):
        """When each file that a look may read was written, and which files of data there are."""
        inside = [path for name in ("lib", "book") for path in (self.root / name).rglob("*") if path.is_file()]
        inside = [path for path in inside if "__pycache__" not in path.parts]
        inside += [self.root / name for name in ("_config.yml", "_toc.yml", LOCK)]
        return {path: path.stat().st_mtime_ns for path in inside if path.exists()}, _files.data_present()

    def look(self):
        """What every page is made from at this moment."""
        notebooks = {path: project.read_notebook(self.root, path) for path in project.notebooks(self.root)}
        around = surroundings(self.root)
        return {path: of_page(self.root, path, notebook, around) for path, notebook in notebooks.items()}

    def changed_since(self):
        """The pages that somebody changed, or what they are made from, while notebooks ran."""
        if self._files() == self.seen:
            return []
        return [path for path, parts in self.look().items() if parts != self.now.get(path)]

    def name(self, path):
        return path.relative_to(self.root).as_posix()

    def why(self, path):
        """Why a page has to be executed, in words; None if its kept result is what it would be now."""
        kept = self.kept.get(self.name(path))
        if kept is None:
            return "not executed yet"
        now = self.now[path]
        changed = [part for part in {**now, **kept} if now.get(part) != kept.get(part)]
        return f"{changed[0]} changed" + (f", and {len(changed) - 1} more" if changed[1:] else "") if changed else None

    def keep(self, path):
        self.kept[self.name(path)] = self.now[path]
        self.write()

    def forget(self, paths):
        for path in paths:
            self.kept.pop(self.name(path), None)
        self.write()

    def write(self):
        whole = self.file.with_suffix(".new")
        whole.write_text(json.dumps(self.kept, indent=1), encoding="utf-8")
        whole.replace(self.file)

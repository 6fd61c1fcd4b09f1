"""Write the plain notebooks that a reader runs, from the pages as they are, in seconds and without executing a cell.

``python -m tools.release.reader`` writes them into ``notebooks/`` (Binder and ``make lab`` open that folder), with
the site's numbers, and settings for JupyterLab without the instructor's buttons.  A notebook that the reader has
changed is left as it is.
"""

import hashlib
import json
import re
import tomllib

import nbformat

from lib.services import claims, ledger
from tools.build import archive, fingerprints, project
from tools.release import plain

FOLDER = "notebooks"
MANIFEST = ".written.json"  # sums of what was written, by page
CHECKS = re.compile(r"""ledger\.check\(\s*["']([^"']+)["']""")
INSTRUCTORS = "@jupyter/nbgrader"  # a reader needs none of its buttons


def declared_rows(root, notebooks):
    """The ledger's rows as they are when all checks pass: what is declared, in the order in which pages check it.

    A claim that a page checks under a name made at run time comes after the others of its page.
    """
    declared, records = claims.declared(), []
    for page, notebook in notebooks.items():
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        named = [found for found in CHECKS.findall(code) if found in declared]
        entries = (root / "lib" / "claims").glob(f"*/{page.rpartition('/')[2]}.toml")
        mine = [entry["id"] for path in entries for entry in tomllib.loads(project.read(path))["claim"]]
        for found in dict.fromkeys([*named, *mine]):
            if not (declared[found].open or declared[found].needs):
                verdict = declared[found].verdict
                records.append({"id": found, "chapter": page, "measured": None, "error": None, "verdict": verdict})
    cells = {page: fingerprints.cells_sum(notebook) for page, notebook in notebooks.items()}
    return archive.settle(ledger.rows(records), archive.read(root), cells)


def write(root, target):
    """Write the notebooks below a folder; returns the pages that were written and those that the reader has changed."""
    notebooks = {
        path.relative_to(root).with_suffix("").as_posix(): project.read_notebook(root, path)
        for path in project.notebooks(root)
    }
    known = plain.sources(root, declared_rows(root, notebooks))
    glossary = plain.glossary(root)
    notebooks |= {plain.GLOSSARY: glossary} if glossary else {}
    manifest = target / MANIFEST
    before = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
    written, changed, sums = [], [], {}
    for page, notebook in notebooks.items():
        path = target / f"{page}.ipynb"
        made = nbformat.writes(plain.notebook(notebook, page, known)) + "\n"
        sums[page] = hashlib.sha256(made.encode()).hexdigest()
        if path.is_file():
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found == sums[page]:
                continue
            if found != before.get(page):
                changed.append(page)
                sums[page] = before.get(page)
                continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made, encoding="utf-8")
        written.append(page)
    manifest.write_text(json.dumps(sums, indent=1), encoding="utf-8")
    settings(target)
    return written, changed


def settings(target):
    """JupyterLab's settings for a reader, in a folder for ``JUPYTER_CONFIG_PATH``."""
    path = target / ".jupyter" / "labconfig" / "page_config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"disabledExtensions": {INSTRUCTORS: True}}), encoding="utf-8")


def main():
    written, changed = write(project.ROOT, project.ROOT / FOLDER)
    if written:
        print(f"Wrote {len(written)} notebooks into {FOLDER}/.")
    for page in changed:
        print(f"Kept {FOLDER}/{page}.ipynb, which you have changed; remove it to get the page as it is now.")


if __name__ == "__main__":
    main()

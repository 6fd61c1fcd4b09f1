"""Results at the sources' own size: what each chapter found there, kept in ``archive/`` with where it comes from.

One file a chapter, ``archive/<part>/<chapter>.json``, written by ``tools/release/paper.py``.  It holds the records of
the ledger, the commit, the code that was reached, versions, machine and duration, and a sum over all of it.  Beside it,
in ``archive/<part>/<chapter>/``, stand the figures that the size changes, each with its sum in the file.
"""

import hashlib
import json
import math
from dataclasses import replace

from lib.services import claims, ledger
from tools.build import project

FOLDER = "archive"
SHOWING = {f"lib/services/{name}.py" for name in ("claims", "display", "explore", "ledger", "plot")}
AT_SIZE = "at-size"  # in the build's folder: a file a page with what it says of its figures at full size
SAME = 1e-6  # a number that the size does not move further than this does not depend on it
FLOOR = 1e-9  # what lies below is rounding, in one number as in the other


class ArchiveDamaged(ValueError):
    """A file of the archive is not what was written."""


def page_of(name):
    """Where a chapter is archived under :data:`FOLDER`, from its page.

    >>> page_of("book/fluctuations/real-data")
    'fluctuations/real-data.json'
    """
    return name.removeprefix("book/") + ".json"


def code_of(parts):
    """The part of a page's fingerprint that decides a number: its cells and the modules that they reach.

    What only shows numbers, or holds them against claims, is left out.
    """
    code = {name: value for name, value in parts.items() if name == "its cells" or name.endswith(".py")}
    return {name: value for name, value in code.items() if name not in SHOWING}


def seal(content):
    """Sum over everything in an entry but the sum itself."""
    whole = {key: value for key, value in content.items() if key != "sum"}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def figure_path(root, page, name):
    """Where the figure `name` of a page is kept."""
    return (root / FOLDER / page_of(page)).with_suffix("") / f"{name}.svg"


def figure_sums(figures):
    """SHA-256 of each drawing, by the name of the figure."""
    return {name: hashlib.sha256(svg.encode()).hexdigest() for name, svg in sorted(figures.items())}


def write(root, page, content, figures):
    """Keep what a chapter found, an entry without its sum, and its `figures`, name -> SVG; returns the entry's path."""
    path = root / FOLDER / page_of(page)
    path.parent.mkdir(parents=True, exist_ok=True)
    project.remove(path.with_suffix(""))
    for name, svg in figures.items():
        figure = figure_path(root, page, name)
        figure.parent.mkdir(exist_ok=True)
        figure.write_text(svg, encoding="utf-8")
    content = {"chapter": page} | content | {"figures": figure_sums(figures)}
    content["sum"] = seal(content)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(root):
    """Every entry by the name of its page; one that was changed by hand is refused."""
    entries = {}
    for path in sorted((root / FOLDER).rglob("*.json")):
        name = path.relative_to(root).as_posix()
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            right = content["sum"] == seal(content) and path == root / FOLDER / page_of(content["chapter"])
            files = {each.stem: each.read_text(encoding="utf-8") for each in path.with_suffix("").glob("*.svg")}
            right = right and figure_sums(files) == content.get("figures", {})
        except (ValueError, KeyError, TypeError) as problem:
            raise ArchiveDamaged(f"{name} cannot be read ({type(problem).__name__}): restore it from git") from None
        if not right:
            command = f"make paper NAME={path.relative_to(root / FOLDER).with_suffix('').as_posix()}"
            raise ArchiveDamaged(f"{name} was changed after it was written: restore it, or compute it with `{command}`")
        entries[content["chapter"]] = content
    return entries


def is_stale(entry, parts):
    """Whether the cells or the modules of a page changed since; `parts`: its fingerprint now."""
    return code_of(entry["code"]) != code_of(parts)


def of_other_cells(entry, cells):
    """Whether the cells themselves changed since: what they measured then is no verdict on what a claim says now.

    `cells`: the sum of the page's cells now.
    """
    return entry["code"]["its cells"] != cells


def of_page(entry, parts):
    """What a page says of its figures at full size, a dict; empty where it has none."""
    if not (entry and entry.get("figures")):
        return {}
    minutes, stale = max(1, round(entry["seconds"] / 60)), is_stale(entry, parts)
    return {"figures": entry["figures"], "minutes": minutes, "commit": entry["commit"][:9], "stale": stale}


def differs(one, other):
    """Whether two measured numbers are more than rounding apart; properties do not depend on the size.

    >>> differs(1.0, 1.0 + 1e-9), differs(1.0, 1.01), differs(True, True)
    (False, True, False)
    """
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return False
    return not math.isclose(one, other, rel_tol=SAME, abs_tol=FLOOR)


def _pages(entries):
    """The page that each archived claim was checked on."""
    return {name: page for page, entry in entries.items() for name in entry["records"]}


def settle(rows, entries, cells):
    """Give a row of the ledger whose data the build does not have the verdict that it earned at full size.

    `rows`: as ``ledger.rows`` gives them; `entries`: as :func:`read` does; `cells`: sums of the cells, by page.
    An archive whose cells changed gives none.
    """
    declared, pages = claims.declared(), _pages(entries)
    for row in rows:
        page = pages.get(row["id"])
        if row["chapter"] is None and page is not None and declared[row["id"]].open is None:
            if of_other_cells(entries[page], cells.get(page)):
                row["reason"] += "; at full size other cells were run"
            else:
                row["verdict"] = declared[row["id"]].verdict
    return rows


def _stands(claim, record):
    """Whether what was found at full size passes the test that the claim has today."""
    claim = claim if claim.full is None else replace(claim, value=claim.full)
    return claim.open is None and ledger.passes(claim, record["measured"], record["error"])


def attach(rows, entries, fingerprints):
    """Add "at_size" to each row of the ledger: what the archive has for it, None where it has nothing of its own.

    `rows`, `entries`: as in :func:`settle`, which it calls; `fingerprints`: those of the pages, by name.  What other
    cells found is shown as theirs, and not at all if it does not pass the claim's test of today.
    """
    pages, cells = _pages(entries), {page: parts["its cells"] for page, parts in fingerprints.items()}
    for row in settle(rows, entries, cells):
        row["at_size"], page = None, pages.get(row["id"])
        if page is None:
            continue
        record = entries[page]["records"][row["id"]]
        if of_other_cells(entries[page], cells.get(page)) and not _stands(claims.declared()[row["id"]], record):
            continue
        if row["chapter"] is None or differs(record["measured"], row["measured"]):
            stale = is_stale(entries[page], fingerprints[page])
            row["at_size"] = record | {"stale": stale, "archive": f"{FOLDER}/{page_of(page)}", "page": page}
    return rows

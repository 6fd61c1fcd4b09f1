"""Run chapters at the sources' own size, and keep or compare what they find: ``make paper [NAME=part/chapter]``.

Without a name it lists what the archive holds, what is stale or missing, and how long each takes.  With one, the
chapter's cells run in the preset "paper".  Where the archive has a result of the same code, every number must come out
again, to four standard errors, to rounding, or to a tenth of what its claim allows it (another processor may round
otherwise), else the command fails; otherwise the result is archived, with the figures that differ from those of the
build.
Finished tasks of its sweeps are kept, so that a run that is interrupted goes on where it was.
"""

import argparse
import hashlib
import os
import platform
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from llvmlite.binding import get_host_cpu_name
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from lib.services import claims, downloads, ledger, presets
from tools.build import archive, fingerprints, project, results
from tools.build.book import ENCRYPTED

VERSIONS = ("numpy", "scipy", "numba", "sympy", "torch", "scikit-learn")
SIGMAS = 4
CHOICE = re.compile(r"presets\.(choose|samples)\(")  # a size that depends on the preset
REST = 0.1  # the part of what a claim allows that two runs of the same code may lie apart


def offered(root):
    """The pages that have sizes of their own for "paper", and their notebooks."""
    pages = {p.relative_to(root).with_suffix("").as_posix(): p for p in project.notebooks(root)}
    return {
        name: path
        for name, path in pages.items()
        if any(CHOICE.search(c.source) for c in project.read_notebook(root, path).cells if c.cell_type == "code")
    }


def records_of(notebook):
    """The records that the cells of an executed notebook left, by claim."""
    found = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            record = output.get("metadata", {}).get(ledger.METADATA)
            if record is not None:
                found[record["id"]] = {key: record[key] for key in ("measured", "error", "control")}
    return found


def figures_of(notebook):
    """The drawings of an executed notebook, name of the figure -> SVG."""
    found = {}
    for cell in notebook.cells:
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        drawn = [svg for output in cell.get("outputs", []) if (svg := output.get("data", {}).get("image/svg+xml"))]
        if name and drawn:
            found[name] = drawn[-1]
    return found


def built_figures(root, path):
    """The same of the page as `make book` executed it."""
    notebook = results.kept(results.open_cache(root / "_build" / results.FOLDER), project.read_notebook(root, path))
    if notebook is None:
        sys.exit("The figures are held against those of the build: run `make book` first.")
    return figures_of(notebook)


def data_sums(notebook):
    """SHA-256 of every file of data that the large sets are read from, if the notebook reads them at this size."""
    folder = os.environ.get(downloads.ENVIRONMENT)
    names = {
        "mnist": "train-*-ubyte.gz",
        "cifar10": downloads.CIFAR10.file,
        "cifar10_jpeg": downloads.CIFAR10_JPEG.file,
    }
    cells = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    used = [pattern for name, pattern in names.items() if f"downloads.{name}(" in cells]
    if used and not folder:
        sys.exit(f"This chapter reads full data sets: set {downloads.ENVIRONMENT} to the folder that holds them.")
    files = sorted({path for pattern in used for path in Path(folder).glob(pattern)})
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(root, path):
    """Execute the cells of a page in the preset "paper": the notebook, seconds, sums of its data; no limit of time."""
    notebook = project.read_notebook(root, path)
    sums = data_sums(notebook)
    os.environ.update(project.kernel_environment(root) | {presets.ENVIRONMENT: "paper"})
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=None, resources=resources, config=ENCRYPTED)
    started = time.perf_counter()
    try:
        client.execute()
    except CellExecutionError as problem:
        sys.exit(f"{path.relative_to(root)} does not hold at this size:\n{problem}")
    return notebook, time.perf_counter() - started, sums


def processor():
    """The kind of processor that compiled kernels were made for; the last digits of long sums depend on it."""
    return f"{platform.machine()} ({get_host_cpu_name()})"


def git(root, *words):
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True).stdout.strip()


def apart(kept, found, declared):
    """What came out differently, a list of sentences; `declared`: the claims by name."""
    said = [f"{name} is {'gone' if name in kept else 'new'}" for name in sorted(kept.keys() ^ found.keys())]
    for name in sorted(kept.keys() & found.keys()):
        before, now = kept[name]["measured"], found[name]["measured"]
        rounding = max(archive.SAME * abs(before), archive.FLOOR, REST * _allowed(declared[name], before))
        if abs(now - before) > SIGMAS * (kept[name]["error"] or 0) + rounding:
            said.append(f"{name} was {before!r} and is {now!r}")
    return said


def _allowed(claim, measured):
    """How far a measured number may move before its claim fails; another machine's rounding is a small part of it."""
    if claim.true is not None or claim.sigmas is not None:
        return 0.0
    if claim.value is not None:
        value = claim.value if claim.full is None else claim.full
        room = (claim.atol if claim.atol is not None else claim.rtol * abs(value)) - abs(measured - value)
    else:
        low, high = claim.between or (claim.above, claim.below)
        room = min(abs(measured - bound) for bound in (low, high) if bound is not None)
    return max(room, 0.0)


def listing(root):
    """A line for every chapter: archived, stale or missing, and its duration."""
    entries, prints = archive.read(root), by_page(root)
    for name in offered(root):
        entry = entries.get(name)
        if entry is None:
            yield f"missing   {name.removeprefix('book/')}"
        else:
            state, short = "stale" if archive.is_stale(entry, prints[name]) else "archived", name.removeprefix("book/")
            yield f"{state:9} {short}, {len(entry['records'])} rows, {entry['seconds'] / 60:.1f} min"


def by_page(root):
    """The fingerprint of every page, by its name."""
    return {
        path.relative_to(root).with_suffix("").as_posix(): fingerprints.of_page(
            root, path, project.read_notebook(root, path), {}
        )
        for path in project.notebooks(root)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", help="part/chapter; without it, list what there is")
    root, name = project.ROOT, parser.parse_args().name
    if name is None:
        print(*listing(root), sep="\n")
        return
    page = f"book/{name}"
    if page not in offered(root):
        sys.exit(f"NAME must be a chapter with sizes of its own, such as {next(iter(offered(root)))[5:]}; got {name!r}")
    if git(root, "status", "--porcelain", "--", "book", "lib"):
        sys.exit("What is archived names a commit: commit the changes in book/ and lib/ first.")
    code, entry = archive.code_of(by_page(root)[page]), archive.read(root).get(page)
    built = built_figures(root, offered(root)[page])
    notebook, seconds, data = run(root, offered(root)[page])
    records, drawn = records_of(notebook), figures_of(notebook)
    figures = {figure: svg for figure, svg in drawn.items() if svg != built.get(figure)}
    if entry and not archive.is_stale(entry, code):
        wrong = apart(entry["records"], records, claims.declared())
        if wrong:
            sys.exit(f"{name} came out differently:\n" + "\n".join(wrong))
        print(f"{name}: {len(records)} rows came out again, in {seconds / 60:.1f} min.")
        if "figures" in entry:
            return
        seconds = max(seconds, entry["seconds"])  # finished tasks were kept
    content = {"preset": "paper", "records": records, "data": data, "seconds": round(seconds, 1), "code": code}
    content |= {"commit": git(root, "rev-parse", "HEAD"), "command": f"make paper NAME={name}"}
    content |= {"machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}"}
    content |= {"versions": {"python": platform.python_version()} | {one: version(one) for one in VERSIONS}}
    path = archive.write(root, page, content, figures)
    said = f"{len(records)} rows and {len(figures)} figures in {seconds / 60:.1f} min"
    print(f"{name}: {said}, kept in {path.relative_to(root)}.")


if __name__ == "__main__":
    main()

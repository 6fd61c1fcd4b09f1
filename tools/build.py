"""Build the book: execute what changed, gather the ledger, write the site, and stop at the first thing that is not right.

``python -m tools.build`` does what ``make book`` promises:

1. drop the execution cache if ``lib/``, the locked versions or Python changed, so that no page can show an old result;
2. execute the notebooks that the cache does not hold, side by side on the available cores;
3. gather the ledger's records from the executed notebooks into ``_build/ledger.json``, and keep the notebooks for download;
4. let Sphinx write the site with warnings as errors.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nbformat
import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from traitlets.config import Config

import lib
from lib import ledger
from tools import project

# One thread a kernel: notebooks run side by side, and sums do not depend on the number of cores.
KERNEL_ENVIRONMENT = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
# Kernels and start-up files of the user's own must not replace the environment's.
KERNEL_ENVIRONMENT["JUPYTER_PREFER_ENV_PATH"] = "1"


# Other users of the machine cannot read what a kernel sends; without this each kernel prints a warning.
ENCRYPTED = Config(KernelManager={"transport_encryption": "auto"})


class BuildFailed(Exception):
    """The book cannot be built; the message says what to mend."""


def drop_stale(root, build):
    """Remove what was made from other code (everything) or for another site (the pages, not the executed results)."""
    stamps = {"code": project.code_fingerprint(root), "site": project.site_fingerprint(root)}
    stamp_file = build / "fingerprints.json"
    old = json.loads(stamp_file.read_text()) if stamp_file.exists() else {}
    pages = [".doctrees", "html", "jupyter_execute"]
    if old.get("code") != stamps["code"]:
        stale = pages + [".jupyter_cache", "ledger.json"]
    elif old.get("site") != stamps["site"]:
        stale = pages
    else:
        stale = []
    for name in stale:
        path = build / name
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
    build.mkdir(exist_ok=True)
    stamp_file.write_text(json.dumps(stamps))


def _run(notebook, folder, timeout):
    """Execute one notebook in its own folder (in a worker process): the executed notebook, seconds, error text or None."""
    result = single_nb_execution(notebook, cwd=folder, timeout=timeout, allow_errors=False, config=ENCRYPTED)
    return result.nb, result.time, result.exc_string


def execute(root, cache, workers):
    """Fill the execution cache with every notebook that it does not hold; raise if a cell fails.

    Returns
    -------
    list of str    the pages that were executed
    """
    timeout = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["execute"]["timeout"]
    wanted = {path: project.read_notebook(root, path) for path in project.notebooks(root)}
    held = {record.hashkey for record in cache.list_cache_records()}
    missing = {path: nb for path, nb in wanted.items() if cache.create_hashed_notebook(nb)[1] not in held}
    failures = []
    with ProcessPoolExecutor(max_workers=workers) as pool:
        jobs = {pool.submit(_run, nb, str(path.parent), timeout): path for path, nb in missing.items()}
        for done, job in enumerate(as_completed(jobs), 1):
            path = jobs[job]
            page = path.relative_to(root).as_posix()
            try:
                notebook, seconds, error = job.result()
            except RuntimeError as problem:  # the kernel or its worker died, for example for lack of memory
                failures.append(f"{page}:\n{type(problem).__name__}: {problem}")
                continue
            print(f"[{done}/{len(jobs)}] executed {page} in {seconds:.1f} s{' - FAILED' if error else ''}", flush=True)
            if error:
                failures.append(f"{page}:\n{error}")
                continue
            bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    if failures:
        raise BuildFailed("a cell failed in\n" + "\n".join(failures))
    return [path.relative_to(root).as_posix() for path in missing]


def executed_notebooks(root, cache):
    """Every notebook page with its outputs from the cache: pairs of page name and notebook, in reading order."""
    for path in project.notebooks(root):
        _, notebook = cache.merge_match_into_notebook(project.read_notebook(root, path))
        yield path.relative_to(root).with_suffix("").as_posix(), notebook


def gather_ledger(notebooks, target):
    """Write ``ledger.json`` from the records in the notebooks' outputs; leave the file alone if nothing changed."""
    records = []
    for chapter, notebook in notebooks.items():
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                record = output.get("metadata", {}).get(ledger.METADATA)
                if record is not None:
                    records.append(record | {"chapter": chapter, "cell": cell.source})
    rows = ledger.rows(records)
    cells = {record["id"]: record["cell"] for record in records}
    text = json.dumps([row | {"cell": cells.get(row["id"])} for row in rows], indent=1, ensure_ascii=False)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
    return rows


def write_notebooks(notebooks, target):
    """Write the executed notebooks, which the pages offer for download (Sphinx itself keeps them without outputs)."""
    if target.exists():
        shutil.rmtree(target)
    for page, notebook in notebooks.items():
        path = target / f"{page}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        notebook.metadata.pop("source_map", None)
        nbformat.write(notebook, path)


def write_site(root):
    """Run Jupyter Book strictly: every warning is an error, all of them are shown."""
    command = [Path(sys.executable).with_name("jupyter-book"), "build", root, "-W", "-n", "--keep-going", "-q"]
    done = subprocess.run(command, cwd=root, check=False)
    if done.returncode != 0:
        raise BuildFailed("Sphinx reported the problems above")


def build(root, workers):
    """Build the book of a checkout; returns the path of its first page."""
    started = time.perf_counter()
    home = Path(lib.__file__).resolve().parent.parent
    if home != root:
        raise BuildFailed(f"lib is imported from {home}, not from this checkout {root}: run `make book` here")
    os.environ.update(KERNEL_ENVIRONMENT)
    output = root / "_build"
    project.check_toc(root)
    drop_stale(root, output)
    cache = get_cache(output / ".jupyter_cache")
    executed = execute(root, cache, workers)
    notebooks = dict(executed_notebooks(root, cache))
    rows = gather_ledger(notebooks, output / "ledger.json")
    write_notebooks(notebooks, output / "notebooks")
    write_site(root)
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in (*ledger.VERDICTS, "open")}
    summary = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    print(f"Executed {len(executed)} notebooks; ledger: {summary}; {time.perf_counter() - started:.0f} s in all.")
    return output / "html" / "index.html"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=project.ROOT, help="the checkout to build (default: this one)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="notebooks executed side by side")
    options = parser.parse_args()
    try:
        page = build(options.root.resolve(), options.workers)
    except (BuildFailed, ValueError) as error:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # tracebacks of notebooks are coloured
        sys.exit(f"The book was not built: {plain}")
    print(f"The book is at {page}")


if __name__ == "__main__":
    main()

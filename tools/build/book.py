"""Build the book: execute what changed, gather the ledger, write the site, and stop at the first fault.

``python -m tools.build.book`` does what ``make book`` promises:

1. find the notebooks whose cells, modules of ``lib``, claims, locked versions, Python or preset changed since they were
   executed, so that no page can show an old result;
2. execute these, side by side on the available cores, and say why;
3. gather the ledger's records from the executed notebooks into ``_build/ledger.json``, write the notebooks for
   download, and cut the student editions of the problem sets;
4. let Sphinx write the pages that this changes, with warnings as errors (``tools/build/site.py``).
"""

import argparse
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from asyncio import CancelledError
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import yaml
from jupyter_cache.executors.utils import single_nb_execution
from traitlets.config import Config

import lib
from lib.services import ledger
from tools.build import archive, fingerprints, project, results, site
from tools.build.results import BuildFailed
from tools.course import assignments
from tools.release import takeaway

# Other users of the machine cannot read what a kernel sends; without this each kernel prints a warning.
ENCRYPTED = Config(KernelManager={"transport_encryption": "auto"})


def _follow(builder):
    """Make a worker process end with the build: when the builder kills it, or dies.  Its kernel notices by itself."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches the whole group; the builder decides

    def watch():
        while os.getppid() == builder:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(notebook, folder, timeout):
    """Execute a notebook in its own folder, in a worker process: the executed notebook, seconds, error text or None."""
    patience = {"startup_timeout": project.HOUR, "iopub_timeout": project.HOUR}
    result = single_nb_execution(notebook, folder, timeout, allow_errors=False, config=ENCRYPTED, **patience)
    results.coalesce(result.nb)
    return result.nb, result.time, result.exc_string or results.complaint(result.nb)


def execute(root, cache, prints, workers):
    """Fill the execution cache with every notebook that it does not hold as it would be now; raise if a cell fails.

    Returns
    -------
    list of path    the pages that were executed
    """
    timeout = project.cell_timeout(root)
    wanted = {path: project.read_notebook(root, path) for path in project.notebooks(root)}
    held = {record.hashkey for record in cache.list_cache_records()}
    lost = {path for path, nb in wanted.items() if cache.create_hashed_notebook(nb)[1] not in held}
    reasons = {path: prints.why(path) or ("its kept result is lost" if path in lost else None) for path in wanted}
    missing = {path: wanted[path] for path, reason in reasons.items() if reason}
    print(
        f"{len(missing)} of {len(wanted)} notebooks to execute." if missing else "No notebook to execute.", flush=True
    )
    failures = []
    pool = ProcessPoolExecutor(max_workers=workers, initializer=_follow, initargs=(os.getpid(),))
    try:
        jobs = {pool.submit(_run, nb, str(path.parent), timeout): path for path, nb in missing.items()}
        for done, job in enumerate(as_completed(jobs), 1):
            path = jobs[job]
            page = path.relative_to(root).as_posix()
            try:
                notebook, seconds, error = job.result()
            except CancelledError:  # the signal that ends the build has reached the worker first
                raise KeyboardInterrupt from None
            except BrokenProcessPool:
                raise BuildFailed(
                    "a worker process died, perhaps for lack of memory; run the same command to go on"
                ) from None
            except (RuntimeError, LookupError) as problem:  # the kernel died, perhaps for lack of memory, or is unknown
                failures.append(f"{page}:\n{type(problem).__name__}: {problem}")
                continue
            ended = f"[{done}/{len(jobs)}] executed {page} in {seconds:.1f} s"
            print(f"{ended}{' - FAILED' if error else ''} ({reasons[path]})", flush=True)
            if error:
                failures.append(f"{page}:\n{error}")
                continue
            results.keep(cache, prints, path, notebook, seconds)
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.kill()  # nbclient handles the gentler signal, and goes on
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failures:
        raise BuildFailed("a cell failed in\n" + "\n".join(failures))
    return list(missing)


def executed_notebooks(root, cache):
    """Every notebook page with its outputs from the cache: pairs of page name and notebook, in reading order."""
    for path in project.notebooks(root):
        _, notebook = cache.merge_match_into_notebook(project.read_notebook(root, path))
        yield project.page_name(root, path), notebook


def gather_ledger(notebooks, target, archived=None, prints=None):
    """Write ``ledger.json`` from the records in the notebooks' outputs; leave the file alone if nothing changed.

    `archived`, `prints`: what the archive holds, and the fingerprints of the pages, by page.
    """
    records = []
    for chapter, notebook in notebooks.items():
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                record = output.get("metadata", {}).get(ledger.METADATA)
                if record is not None:
                    records.append(record | {"chapter": chapter, "cell": cell.source})
    rows = archive.attach(ledger.rows(records), archived or {}, prints or {})
    cells = {record["id"]: record["cell"] for record in records}
    for row in rows:
        if row["chapter"] is None and row["at_size"]:  # the build lacks the data; the cell is there
            inside = notebooks[row["at_size"]["page"]].cells
            cells[row["id"]] = next(cell.source for cell in inside if f'"{row["id"]}"' in cell.source)
    write_ledger(target, [row | {"cell": cells.get(row["id"])} for row in rows])
    return rows


def write_ledger(target, rows):
    """Write the rows, and beside them what chapters quote: the last digit of a number is none of it."""
    numbers = ("measured", "error", "control", "control_value", "at_size", "cell")
    words = [{key: value for key, value in row.items() if key not in numbers} for row in rows]
    for path, content in ((target, rows), (target.with_name(project.SAID), words)):
        _write_if_new(path, json.dumps(content, indent=1, ensure_ascii=False))


def _write_if_new(target, text):
    """Leave a file alone that holds the text already: what is made from it is as it was."""
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def write_site(root, workers):
    """Write the site in a process of its own; Sphinx reports what is wrong with it."""
    command = [sys.executable, "-m", "tools.build.site", "--root", str(root), "--workers", str(workers)]
    if subprocess.run(command, cwd=root, check=False).returncode != 0:
        raise BuildFailed("Sphinx reported the problems above")


def build(root, workers):
    """Build the book of a checkout; returns the path of its first page."""
    started = time.perf_counter()
    home = Path(lib.__file__).resolve().parent.parent
    if home != root:
        raise BuildFailed(f"lib is imported from {home}, not from this checkout {root}; run `make book` here")
    project.check_toc(root)
    os.environ.update(project.kernel_environment(root))
    output = root / "_build"
    with results.alone(output):
        site.put_aside(output)
        prints = fingerprints.Fingerprints(root, output / fingerprints.FILE)
        cache = results.open_cache(output / results.FOLDER)
        try:
            executed = execute(root, cache, prints, workers)
        finally:
            changed = prints.changed_since()
            prints.forget(changed)
        if changed:
            names = ", ".join(map(prints.name, changed))
            raise BuildFailed(
                f"what these pages are made from changed while notebooks ran: {names}; run `make book` again"
            )
        notebooks = dict(executed_notebooks(root, cache))
        by_page = {project.page_name(root, path): parts for path, parts in prints.now.items()}
        archived = archive.read(root)
        rows = gather_ledger(notebooks, output / "ledger.json", archived, by_page)
        for page, parts in by_page.items():
            said = json.dumps(archive.of_page(archived.get(page), parts))
            _write_if_new(output / archive.AT_SIZE / f"{page}.json", said)
        takeaway.write(root, notebooks, rows, output)
        assignments.student_editions(root, output / "assignments")
        write_site(root, workers)
    sources, own = (
        ", ".join(f"{number} {verdict}" for verdict, number in tally.items()) for tally in ledger.tallies(rows)
    )
    print(
        f"Executed {len(executed)} notebooks; claims of the sources: {sources}; results of the book: {own}; "
        f"{time.perf_counter() - started:.0f} s in all."
    )
    return output / "html" / "index.html"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=project.ROOT, help="the checkout to build (default: this one)")
    parser.add_argument("--workers", type=int, default=project.cores(), help="notebooks executed side by side")
    options = parser.parse_args()
    for told_to_end in (signal.SIGINT, signal.SIGTERM):  # also where the build was started deaf to Ctrl-C
        signal.signal(told_to_end, signal.default_int_handler)
    try:
        page = build(options.root.resolve(), options.workers)
    except (BuildFailed, assignments.AssignmentError, ValueError, OSError, yaml.YAMLError) as error:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # tracebacks of notebooks are coloured
        sys.exit(f"The book was not built: {plain}")
    except KeyboardInterrupt:
        sys.exit("The book was not built: interrupted; run the same command to go on")
    print(f"The book is at {page}")


if __name__ == "__main__":
    main()

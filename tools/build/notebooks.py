"""Run every notebook of the book under nbval: ``python -m tools.build.notebooks [pages ...]``.

The MyST sources are converted in one go into ``_build/nbval``.  They hold no outputs to compare with, so a value is
checked where a cell asserts it or hands it to the ledger; a cell that raises or takes too long fails.  What a notebook
prints is compared with the result that a build has kept; where there is none, the notebook is kept as nbval ran it, and
the build that follows shows that.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import yaml

from tools.build import faults, fingerprints, nbval_outputs, project, results

SLOWEST = 15  # rows in the table of the slowest cells


def convert(root, target, pages):
    """Write MyST notebooks of the book as ``.ipynb`` below ``target``; returns the paths written."""
    project.remove(target)
    written = []
    for source in pages:
        path = (target / source.relative_to(root)).with_suffix(".ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(jupytext.read(source), path)
        written.append(path)
    return written


def run(root, workers, pages=()):
    """Run the notebooks (default: all), a kernel each and ``workers`` at a time; returns pytest's exit status."""
    project.check_toc(root)
    pages = pages or project.notebooks(root)
    with results.alone(root / "_build"):
        prints = fingerprints.Fingerprints(root, root / "_build" / fingerprints.FILE)
        paths = convert(root, root / "_build" / "nbval", pages)
        options = ["--nbval-lax", "--nbval-current-env", f"--durations={SLOWEST}", "-p", nbval_outputs.__name__]
        options += [f"--nbval-cell-timeout={project.cell_timeout(root) or 10**9}", "-p", faults.__name__]
        options += [f"--nbval-kernel-startup-timeout={project.HOUR}", "-p", "no:cacheprovider", "-o", "addopts="]
        options += ["-n", str(workers), "--dist=loadfile", "-q"]
        command = [sys.executable, "-m", "pytest", *options, *paths]
        environment = os.environ | project.kernel_environment(root)
        status = subprocess.run(command, cwd=root, env=environment, check=False).returncode
        unlike = keep_or_compare(root, prints, zip(pages, paths, strict=True))
    for name in unlike:
        print(f"{faults.MARK}{name} printed something else than when the book was built; is a seed missing?")
        print(f"{faults.MARK}    again: .venv/bin/python -m tools.build.notebooks {name}")
    return status or bool(unlike)


def keep_or_compare(root, prints, pairs):
    """Compare what nbval executed to the end with the kept result, or keep it; returns the pages that are unlike.

    `pairs`: pages and what nbval ran.  A page that changed meanwhile, or has something to mend, is left to the build.
    """
    unlike = []
    cache, changed = results.open_cache(root / "_build" / results.FOLDER), prints.changed_since()
    for page, path in pairs:
        ran = nbformat.read(path, as_version=4)
        if nbval_outputs.SECONDS not in ran.metadata or page in changed:
            continue
        notebook = project.read_notebook(root, page)
        cells, executed = ([c for c in nb.cells if c.cell_type == "code"] for nb in (notebook, ran))
        if [cell.source for cell in cells] != [cell.source for cell in executed]:
            continue  # read in another way: the build executes it
        for cell, done in zip(cells, executed, strict=True):
            cell.outputs, cell.execution_count = done.outputs, done.execution_count
        notebook.metadata["language_info"] = ran.metadata["language_info"]
        results.coalesce(notebook)
        known = results.kept(cache, notebook) if prints.why(page) is None else None
        if known is not None:
            if results.printed(known) != results.printed(notebook):
                unlike.append(page.relative_to(root).as_posix())
        elif not results.complaint(notebook):
            results.keep(cache, prints, page, notebook, ran.metadata[nbval_outputs.SECONDS])
    return unlike


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="files of pages (default: every notebook of the book)")
    pages = [Path(page).resolve() for page in parser.parse_args().pages]
    try:
        sys.exit(run(project.ROOT, project.cores(), pages))
    except (results.BuildFailed, ValueError, OSError, yaml.YAMLError) as error:
        sys.exit(f"The notebooks were not run: {error}")
    except KeyboardInterrupt:
        sys.exit("The notebooks were not run: interrupted")


if __name__ == "__main__":
    main()

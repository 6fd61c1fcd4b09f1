"""Run every notebook of the book under nbval: ``python -m tools.build.notebooks``.

The MyST sources are converted in one go into ``_build/nbval``.  They hold no outputs to compare with, so a value is
checked where a cell asserts it or hands it to the ledger; a cell that raises or takes too long fails.
"""

import os
import shutil
import subprocess
import sys

import jupytext
import yaml

from tools.build import project

SLOWEST = 15  # rows in the table of the slowest cells


def convert(root, target):
    """Write each MyST notebook of the book as ``.ipynb`` below ``target``; returns the paths written."""
    if target.exists():
        shutil.rmtree(target)
    written = []
    for source in project.notebooks(root):
        path = (target / source.relative_to(root)).with_suffix(".ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(jupytext.read(source), path)
        written.append(path)
    return written


def run(root, workers):
    """Run the converted notebooks, one kernel a notebook and ``workers`` at a time; returns pytest's exit status."""
    project.check_toc(root)
    paths = convert(root, root / "_build" / "nbval")
    options = ["--nbval-lax", "--nbval-current-env", f"--durations={SLOWEST}"]
    timeout = project.cell_timeout(root)
    if timeout is not None:
        options.append(f"--nbval-cell-timeout={timeout}")
    options += ["-p", "no:cacheprovider", "-o", "addopts=", "-n", str(workers), "--dist=loadfile", "-q"]
    command = [sys.executable, "-m", "pytest", *options, *paths]
    return subprocess.run(command, cwd=root, env=os.environ | project.kernel_environment(root), check=False).returncode


def main():
    try:
        sys.exit(run(project.ROOT, project.cores()))
    except (ValueError, OSError, yaml.YAMLError) as error:
        sys.exit(f"The notebooks were not run: {error}")
    except KeyboardInterrupt:
        sys.exit("The notebooks were not run: interrupted")


if __name__ == "__main__":
    main()

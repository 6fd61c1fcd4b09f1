"""Run pages with every seed shifted, and say which cells fail: ``make seeds``, with OFFSETS, SAMPLES and PAGES.

A result must not hang on its seeds.  Each page runs in a process of its own in which NumPy's and torch's seeds are
larger by an offset; a cell that fails is named and the next one runs.  SAMPLES multiplies what the cells take from
``presets.samples``: a theory that is an approximation, tested in standard errors, shows itself there.
"""

import argparse
import io
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jupytext
import numpy as np

from lib.services import presets
from tools.build import project

OFFSETS = (1000, 2000, 3000)


def shift_seeds(offset):
    """Make every integer seed given to NumPy or torch in this process larger by `offset`.

    Streams that are spawned from a seed are shifted once, with it.
    """
    generator, sequence = np.random.default_rng, np.random.SeedSequence

    def shifted(seed):
        whole = (int, np.integer)
        if isinstance(seed, whole) and not isinstance(seed, bool):
            return int(seed) + offset
        if isinstance(seed, (list, tuple)) and seed and all(isinstance(part, whole) for part in seed):
            return [int(seed[0]) + offset, *seed[1:]]
        return seed

    class Shifted(sequence):
        def __init__(self, entropy=None, **options):
            super().__init__(entropy if "spawn_key" in options else shifted(entropy), **options)

    np.random.SeedSequence = Shifted
    np.random.default_rng = lambda seed=None: generator(shifted(seed))
    import torch

    manual = torch.manual_seed
    torch.manual_seed = lambda seed: manual(int(seed) + offset)


def failures(path, offset):
    """Run the cells of a page in this process: (number of the cell, its first line, the error) of each that fails."""
    import matplotlib
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from matplotlib import pyplot

    matplotlib.use("agg")
    if offset:
        shift_seeds(offset)
    os.chdir(path.parent)
    shell = InteractiveShell.instance()
    found = []
    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    for number, source in enumerate(cells):
        with capture_output():
            result = shell.run_cell(source)
            for figure in pyplot.get_fignums():
                pyplot.figure(figure).savefig(io.BytesIO(), format="svg")
            pyplot.close("all")
        error = result.error_in_exec or result.error_before_exec
        if error is not None:
            found.append((number, source.strip().splitlines()[0], f"{type(error).__name__}: {error}"))
    return found


def _one(path, offset):
    found = failures(path, offset)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{sum(use.ru_utime + use.ru_stime for use in used):4.0f} CPU s, {len(found)} cells failed")
    for number, line, error in found:
        print(f"    cell {number} ({line[:60]}): {error[:300]}")
    sys.stdout.flush()
    os._exit(bool(found))  # without waiting for what the cells left running


def run(root, pages, offsets, samples=1):
    """Run pages at each offset, side by side; prints a line each and its failures, returns how many runs failed."""
    environment = os.environ | project.kernel_environment(root) | {presets.SAMPLES: str(samples)}

    def one(job):
        path, offset = job
        command = [sys.executable, "-m", "tools.build.seeds", "--one", "--offsets", str(offset), "--", str(path)]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        said = done.stdout if done.stdout.strip() else done.stderr[-2000:]
        print(f"{path.relative_to(root)} +{offset}: {said.strip()}", flush=True)
        return done.returncode != 0

    with ThreadPoolExecutor(project.cores()) as pool:
        return sum(pool.map(one, [(path, offset) for offset in offsets for path in pages]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="files of pages (default: every notebook of the book)")
    parser.add_argument("--offsets", type=int, nargs="+", default=OFFSETS)
    parser.add_argument("--samples", type=int, default=1, help="times as many samples as the preset has")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    paths = [Path(page).resolve() for page in options.pages] or project.notebooks(project.ROOT)
    if options.one:
        _one(paths[0], options.offsets[0])
    failed = run(project.ROOT, paths, options.offsets, options.samples)
    if failed:
        sys.exit(f"{failed} of {len(paths) * len(options.offsets)} runs failed.")


if __name__ == "__main__":
    main()

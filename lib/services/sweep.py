"""The same task for many settings: on all cores, each task kept once done, so that an interrupted sweep goes on.

A task is a function of the library, such as a simulator.  Each task's seed comes from its place in the list, so the
results do not depend on the number of workers, on the order in which tasks end, or on an interruption.
"""

import ast
import hashlib
import inspect
import json
import pickle
import sys
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pooch
from joblib import Memory, Parallel, cpu_count, delayed
from joblib.externals.loky import get_reusable_executor

from lib.common import checks
from lib.services import presets, reach

VERSIONS = ("numpy", "scipy", "numba", "torch")  # that results depend on


def _fingerprint(task, package=reach.PACKAGE):
    """Sum over the code that a task reaches and the versions that it runs on: a result is used only with those."""
    source = inspect.getsource(inspect.getmodule(task))
    parts = {"task": reach.code_sum(source)} | reach.sums([ast.parse(source)], package)
    parts |= {name: version(name) for name in VERSIONS} | {"python": sys.version}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _one(task, setting, seed):
    """One task; entropy and place are given apart, because what a SeedSequence pickles to changes when it spawns."""
    entropy, place, pool_size = seed
    return task(**setting, seed=np.random.SeedSequence(entropy, spawn_key=place, pool_size=pool_size))


def _sealed(task, setting, seed):
    """The result of :func:`_one` as bytes and the sum of these bytes: what is kept in a file."""
    data = pickle.dumps(_one(task, setting, seed))
    return data, hashlib.sha256(data).hexdigest()


def _kept(sealed, *job):
    """The kept result of a task, or a new one in place of a damaged file: a flipped bit would be another result."""
    found = sealed(*job)
    form = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], bytes)
    if not form or hashlib.sha256(found[0]).hexdigest() != found[1]:
        found, _ = sealed.call(*job)
    return pickle.loads(found[0])


@contextmanager
def _progress(task, total):
    """Yields a function to call after each task: it counts on the terminal; what a notebook prints is on a page."""
    started, done = time.monotonic(), 0

    def count():
        nonlocal done
        done += 1
        if terminal is not None:
            passed = time.monotonic() - started
            left = passed / done * (total - done)
            terminal.write(f"\r{task.__name__}: {done} of {total} done in {passed:.0f} s, about {left:.0f} s left ")
            terminal.flush()

    try:
        terminal = open("/dev/tty", "w", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError:
        terminal = None
    try:
        yield count
    finally:
        if terminal is not None:
            terminal.write("\n")
            terminal.close()


def run(task, settings, seed, *, workers=None, folder=None):
    """Results of a task for each of several settings, in their order.

    `task`: called as ``task(**setting, seed=...)``, defined at the top level of a module, which may be the notebook or
    script that runs only where no results are kept; `settings`: one dict of keyword arguments a task; `seed`: int or
    SeedSequence, task number n gets the n-th child; `workers`: processes, default one in the preset "quick", else all
    cores; `folder`: where finished tasks are kept, default nowhere in "quick", else the user's cache folder.  Returns
    what the tasks returned, a list; raises their ValueErrors.

    >>> from lib.scaling import spectra
    >>> sizes = [{"multiplicities": [count], "students": 1, "teachers": 1} for count in (10, 1000)]
    >>> [overlaps[2].shape for overlaps in run(spectra.random_overlaps, sizes, seed=1)]
    [(1, 1, 1), (1, 1, 1)]
    """
    if not callable(task) or "<" in getattr(task, "__qualname__", "<"):
        checks.fail("task", "be a function defined at the top level of a module", task)
    listed = isinstance(settings, (list, tuple)) and all(isinstance(setting, dict) for setting in settings)
    if not listed or not all(isinstance(name, str) for setting in settings for name in setting):
        checks.fail("settings", "be a list of dictionaries of keyword arguments", settings)
    if any("seed" in setting for setting in settings):
        checks.fail("settings", "leave the seed to the sweep", settings)
    given, quick = checks.seed_sequence("seed", seed), presets.current() == "quick"
    workers = (1 if quick else cpu_count()) if workers is None else checks.integer("workers", workers)
    if folder is None and not quick:
        folder = Path(pooch.os_cache("physics-of-learning")) / "sweeps"
    elif folder is not None:
        folder = checks.folder("folder", folder)
    if folder is None:
        one = _one
    elif task.__module__ == "__main__":
        wanted = "be put into a module and imported from there, so that its results are kept for its own code alone"
        checks.fail("task", wanted, task)
    else:
        one = partial(_kept, Memory(folder / _fingerprint(task), verbose=0).cache(_sealed))
    seeds = ((given.entropy, (*given.spawn_key, place), given.pool_size) for place in range(len(settings)))
    jobs = (delayed(one)(task, *job) for job in zip(settings, seeds))
    results = []
    try:
        with _progress(task, len(settings)) if folder is not None else nullcontext(lambda: None) as count:
            for result in Parallel(n_jobs=workers, return_as="generator")(jobs):
                results.append(result)
                count()
    finally:
        if workers > 1:
            # Joblib takes what the next sweep imports into a worker of this one for a memory leak, and stops it midway.
            get_reusable_executor().shutdown(wait=True)
    return results

"""The same task for many settings: on all cores or on a cluster, each result kept as it arrives.

A task is a function of the library, such as a simulator.  Each task's seed comes from its place in the list, so the
results do not depend on how many run at a time, on the order in which they end, or on an interruption.  Where they run
matters for rounding alone: other processors sum in another order.
"""

import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from joblib import Memory, Parallel, cpu_count, delayed
from joblib.externals.loky import get_reusable_executor
from tqdm import tqdm

from lib.common import checks
from lib.common.shapes import Rng
from lib.services import cluster, presets, provenance


def _sealed(task, setting, rng):
    """A task's result as bytes, and their sum; a SeedSequence comes in parts, since its pickle changes as it spawns.

    The task has a setting of its own: what it changes there no other task sees, in the same process or not.
    """
    entropy, place, pool_size = rng
    result = task(**deepcopy(setting), rng=np.random.SeedSequence(entropy, spawn_key=place, pool_size=pool_size))
    data = pickle.dumps(result)
    return data, hashlib.sha256(data).hexdigest()


def _placed(task, place, job):
    return place, _sealed(task, *job)


def _local(task, jobs, workers):
    """Yields (place, sealed result) of each of the jobs as it ends, in processes of this machine."""
    calls = (delayed(_placed)(task, place, job) for place, job in enumerate(jobs))
    try:
        yield from Parallel(n_jobs=workers, return_as="generator_unordered")(calls)
    finally:
        if workers > 1:
            # Joblib takes what the next sweep imports into a worker of this one for a memory leak, and stops it midway.
            get_reusable_executor().shutdown(wait=True)


def _handed(task, setting, rng, found):
    """What a folder keeps of a job: `found`, which was computed elsewhere."""
    return found


class _Folder:
    """Kept results of one task, for the code and the versions that it has now; without a path, it keeps nothing."""

    def __init__(self, path, task):
        self._task = task
        if path is not None:
            code = provenance._digest(provenance._provenance(task))
            self._kept = Memory(path / code, verbose=0).cache(_handed, ignore=["found"])
        else:
            self._kept = None

    def read(self, job):
        """The sealed result of a job; None if there is none or its file is damaged: a flipped bit is another result."""
        if self._kept is None or not self._kept.check_call_in_cache(self._task, *job, None):
            return None
        found = self._kept(self._task, *job, None)
        form = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], bytes)
        return found if form and hashlib.sha256(found[0]).hexdigest() == found[1] else None

    def write(self, job, found):
        if self._kept is not None:
            self._kept.call(self._task, *job, found)


def _progress(task, total, shown):
    """A bar on the terminal; not among what a notebook prints, which is on a page."""
    try:
        terminal = open("/dev/tty", "w", encoding="utf-8") if shown else None  # noqa: SIM115 - closed by the caller
    except OSError:
        terminal = None
    return terminal, tqdm(total=total, desc=task.__name__, file=terminal, disable=terminal is None)


def run(
    task: Callable,
    settings: Sequence[dict],
    rng: Rng,
    *,
    workers: int | None = None,
    folder: str | os.PathLike | None = None,
) -> list[Any]:
    """Results of a task for each of several settings, in their order.

    Where PHYSICS_OF_LEARNING_SCHEDULER names a Dask cluster, the tasks run there, however many `workers`.

    Parameters
    ----------
    task : callable
        Called as ``task(**setting, rng=...)``, defined at the top level of a module, which may be the notebook or
        script that runs only where no results are kept.
    settings : list of dict
        Keyword arguments of each task.
    rng : int, SeedSequence or Generator
        Task number n gets the n-th child.
    workers : int, optional
        Processes; by default one in the preset "quick", else all cores.
    folder : path, optional
        Where finished tasks are kept; by default nowhere in "quick", else in the user's cache folder.

    Returns
    -------
    list
        What the tasks returned.

    Raises
    ------
    ClusterError
        If the cluster cannot do what is asked; the error of a task is raised as it is.

    Examples
    --------
    >>> def draw(count, rng):
    ...     return np.random.default_rng(rng).random(count).size
    >>> run(draw, [{"count": 2}, {"count": 3}], rng=1, workers=1)
    [2, 3]
    """
    if not callable(task) or "<" in getattr(task, "__qualname__", "<"):
        checks.fail("task", "be a function defined at the top level of a module", task)
    listed = isinstance(settings, (list, tuple)) and all(isinstance(setting, dict) for setting in settings)
    if not listed or not all(isinstance(name, str) for setting in settings for name in setting):
        checks.fail("settings", "be a list of dictionaries of keyword arguments", settings)
    if any("rng" in setting for setting in settings):
        checks.fail("settings", "leave the seed to the sweep", settings)
    given, quick = checks.seed_sequence("rng", rng), presets.current() == "quick"
    workers = (1 if quick else cpu_count()) if workers is None else checks.integer("workers", workers)
    if folder is None and not quick:
        folder = Path(pooch.os_cache("physics-of-learning")) / "sweeps"
    elif folder is not None:
        folder = checks.folder("folder", folder)
    if task.__module__ == "__main__" and (folder is not None or cluster._address()):
        wanted = "be put into a module and imported from there, so that its results are those of its own code"
        checks.fail("task", wanted, task)
    kept = _Folder(folder, task)
    seeds = ((given.entropy, (*given.spawn_key, place), given.pool_size) for place in range(len(settings)))
    jobs = list(zip(settings, seeds))
    sealed = [kept.read(job) for job in jobs]
    missing = [place for place, found in enumerate(sealed) if found is None]
    wanted = [jobs[place] for place in missing]
    arriving = cluster._completed(_sealed, task, wanted) if cluster._address() else _local(task, wanted, workers)
    terminal, bar = _progress(task, len(jobs), folder is not None or cluster._address())
    try:
        bar.update(len(jobs) - len(missing))
        for number, found in arriving if wanted else ():
            sealed[missing[number]] = found
            kept.write(wanted[number], found)
            bar.update()
    finally:
        bar.close()
        if terminal is not None:
            terminal.close()
    return [pickle.loads(data) for data, _ in sealed]

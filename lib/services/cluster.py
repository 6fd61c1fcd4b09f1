"""The tasks of a sweep on a Dask cluster, whose scheduler PHYSICS_OF_LEARNING_SCHEDULER names.

A worker needs this library and the locked versions of what it runs on, and no file of the caller: results travel back
as tasks end.  How many workers there are, and when they come and go, changes no result, but for the rounding of their
processors, which may differ from the caller's.
"""

import importlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from lib.common.extras import needs
from lib.services import provenance

distributed = needs("distributed")
ENVIRONMENT = "PHYSICS_OF_LEARNING_SCHEDULER"
PATIENCE = 60  # seconds to wait for the scheduler, and for the first worker
BUNDLE = 0.2  # seconds of short tasks that travel together
FIRST, AHEAD = 64, 2000  # bundles sent at first, and at a time: the scheduler's memory does not grow with the sweep


class ClusterError(RuntimeError):
    """The cluster cannot do what is asked, or was lost; what it had done before is with the caller."""


class _Unlike(Exception):
    """A worker's provenance is not the caller's; the argument is that provenance."""


def _address() -> str | None:
    """Where PHYSICS_OF_LEARNING_SCHEDULER says that the scheduler is.

    Returns
    -------
    str or None
        As in "tcp://host:8786", or the path of a scheduler file; None: there is no cluster.

    Examples
    --------
    >>> _address()  # on this machine alone
    """
    return os.environ.get(ENVIRONMENT, "").strip() or None


@contextmanager
def _connected():
    """A client of the scheduler, closed at the end."""
    where = _address()
    if "://" not in where and not Path(where).is_file():
        raise ClusterError(f"{ENVIRONMENT} must be tcp://host:port or the path of a scheduler file, got {where!r}")
    named = {"address": where} if "://" in where else {"scheduler_file": where}
    try:
        client = distributed.Client(**named, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:  # nobody answers, or what the text names is no scheduler
        remedy = f"start it, correct {ENVIRONMENT}, or unset it to run on this machine"
        raise ClusterError(f"no scheduler answers at {where}: {remedy}") from problem
    with client:
        yield client


def _differences(expected: dict[str, str], found: dict[str, str]) -> str:
    """What makes results of two machines differ, in words.

    Parameters
    ----------
    expected, found : dict
        The provenance here and there.

    Returns
    -------
    str

    Examples
    --------
    >>> _differences({"numpy": "2.4", "lib/x.py": "a"}, {"numpy": "2.3", "lib/x.py": "b"})
    'lib/x.py is another, numpy is 2.3 instead of 2.4'
    """
    said = []
    for name in sorted(expected.keys() | found.keys()):
        mine, theirs = expected.get(name), found.get(name)
        if mine != theirs:
            said.append(f"{name} is another" if name.endswith(".py") else f"{name} is {theirs} instead of {mine}")
    return ", ".join(said)


def _unlike(where, expected, found):
    return ClusterError(f"on the worker {where} {_differences(expected, found)}: give it what the caller has")


def _compare(client, task, expected):
    """Refuse workers whose code or versions are not the caller's, before the first task."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise ClusterError(f"the scheduler at {_address()} has no worker: start one with `dask worker`") from None
    for worker, problem in client.run(importlib.import_module, task.__module__, on_error="return").items():
        if isinstance(problem, Exception):
            raise ClusterError(
                f"the worker {worker} cannot import {task.__module__} ({problem}): install the book there"
            )
    for worker, found in client.run(provenance._provenance, task).items():
        if found != expected:
            raise _unlike(worker, expected, found)


_one_at_a_time = threading.Lock()
_threads = cache(ThreadpoolController)
_here = cache(provenance._provenance)


def _bundle(compute, task, digest, jobs):
    """Some tasks on a worker, one after the other: their results, seconds for each, and the error that ended them.

    The worker may have come after the comparison.  There is one thread, as on the caller's machine.
    """
    if provenance._digest(_here(task)) != digest:
        raise _Unlike(_here(task))
    results, error = [], None
    with _one_at_a_time, _threads().limit(limits=1):
        started = time.perf_counter()
        for job in jobs:
            try:
                results.append(compute(task, *job))
            except Exception as found:  # raised by the caller, once it has the results
                error = found
                break
    return results, (time.perf_counter() - started) / len(jobs), error


def _problem(error, place, expected):
    """The error to raise for a failed task: its own, or a sentence on the worker."""
    if isinstance(error, _Unlike):
        return _unlike("that came later", expected, *error.args)
    if isinstance(error, distributed.KilledWorker):
        return ClusterError(f"task {place} ended every worker that tried it: it may need more memory than they have")
    if isinstance(error, ImportError):
        return ClusterError(f"a worker cannot import what task {place} needs ({error}): install the book there")
    error.add_note(f"This was task {place} of the sweep; what ended before it is done.")
    return error


def _completed(compute: Callable, task: Callable, jobs: list[tuple]) -> Iterator[tuple[int, Any]]:
    """Yield the result of each job as it ends, in any order.

    Short tasks travel in bundles of 0.2 seconds.  A lost worker's tasks go to others.  When a task fails, what has
    ended is yielded first, then its error is raised.

    Parameters
    ----------
    compute : callable
        Called on a worker as ``compute(task, *job)``.
    task : callable
        At the top level of a module that the workers can import.
    jobs : list of tuple

    Returns
    -------
    iterator of (int, object)
        Places in the list, and results.

    Raises
    ------
    ClusterError
        If no scheduler answers or it has no worker, a worker is unlike the caller, a task ends its workers, or the
        scheduler is lost.

    Examples
    --------
    >>> dict(_completed(compute, task, [(1,), (2,)]))  # doctest: +SKIP
    {1: 20, 0: 10}
    """
    expected, failed, size = provenance._provenance(task), None, 1
    digest, ahead, places = provenance._digest(expected), enumerate(jobs), {}
    lost = ClusterError(f"the scheduler at {_address()} was lost: start it and run again")
    with _connected() as client:
        _compare(client, task, expected)
        arriving = distributed.as_completed(loop=client.loop)

        def submit(count):
            bundles = [bundle for _ in range(count) if (bundle := list(itertools.islice(ahead, size)))]
            work = [[job for _, job in bundle] for bundle in bundles]
            futures = client.map(partial(_bundle, compute, task, digest), work, pure=False)
            places.update((future.key, [place for place, _ in bundle]) for future, bundle in zip(futures, bundles))
            arriving.update(futures)

        submit(FIRST)
        while arriving.has_ready() if failed else arriving.count():
            ended = {future.key: future for future in arriving.next_batch()}
            try:
                found = client.gather({key: future for key, future in ended.items() if future.status == "finished"})
            except (CancelledError, OSError):  # the scheduler, and the results with it
                found, failed = {}, failed or lost
            for key, future in ended.items():
                its_places = places.pop(key)
                if key in found:
                    results, seconds, error = found[key]
                    yield from zip(its_places, results)
                    size = max(1, min(int(BUNDLE / max(seconds, 1e-9)), 2 * size))
                    failed = failed or error and _problem(error, its_places[len(results)], expected)
                elif future.status == "error":
                    failed = failed or _problem(future.exception(), its_places[0], expected)
                else:
                    failed = failed or lost
            if not failed:
                submit(min(2 * len(ended), AHEAD - len(places)))
    if failed:
        raise failed

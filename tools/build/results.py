"""Executed notebooks and where they are kept: the execution cache, shared by the build and the nbval runner."""

import fcntl
from contextlib import contextmanager

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from sqlalchemy.exc import SQLAlchemyError

from tools.build import project

FOLDER = ".jupyter_cache"  # in the build's folder


class BuildFailed(Exception):
    """The book cannot be built; the message says what to mend."""


@contextmanager
def alone(build):
    """Hold the build folder; a second build of the same checkout is refused, because each removes what the other makes.

    A record lock belongs to this process alone: no child keeps it when a build is killed."""
    build.mkdir(exist_ok=True)
    with (build / "lock").open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BuildFailed("another build of this checkout is running; wait for it to end") from None
        yield


def open_cache(folder):
    """The execution cache; one that a build left unreadable is dropped, since every result can be computed again."""
    try:
        cache = get_cache(folder)
        for record in cache.list_cache_records():
            for cell in cache.get_cache_bundle(record.pk).nb.cells:
                if cell.cell_type == "code" and "outputs" not in cell:
                    raise ValueError("a code cell without outputs")
    except (SQLAlchemyError, RuntimeError, LookupError, OSError, ValueError) as problem:
        print(f"The execution cache cannot be read ({type(problem).__name__}); executing everything again.")
        project.remove(folder)
        cache = get_cache(folder)
    return cache


def coalesce(notebook):
    """Join printed lines that follow each other: how a kernel groups them into outputs is left to chance."""
    for cell in notebook.cells:
        joined = []
        for output in cell.get("outputs", []):
            last = joined[-1] if joined else None
            if output.output_type == "stream" and last and last.output_type == "stream" and last.name == output.name:
                last.text += output.text
            else:
                joined.append(output)
        if "outputs" in cell:
            cell.outputs = joined


def printed(notebook):
    """What the cells of a notebook print, cell by cell."""
    return [
        "".join(output.text for output in cell.outputs if output.output_type == "stream")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def complaint(notebook):
    """What is wrong with an executed notebook in which no cell has failed, in words; None if nothing is."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stderr")
    return f"a cell wrote to stderr, and a page has no place for it:\n{text}" if text else None


def kept(cache, notebook):
    """The notebook with its outputs from the cache, or None where the cache does not hold it."""
    try:
        return cache.merge_match_into_notebook(notebook)[1]
    except KeyError:
        return None


def keep(cache, prints, path, notebook, seconds):
    """Put the executed notebook of a page into the cache, with what it was made from."""
    bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    prints.keep(path)

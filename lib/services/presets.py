"""How large the book's experiments are: ``quick`` in every build; ``paper``, the sources' own sizes; ``beyond``."""

import os
from typing import Any

from lib.common import checks

ENVIRONMENT = "PHYSICS_OF_LEARNING_PRESET"
SAMPLES = "PHYSICS_OF_LEARNING_SAMPLES"
NAMES = ("quick", "paper", "beyond")


def current() -> str:
    """Name of the preset in force, which PHYSICS_OF_LEARNING_PRESET names; without it, "quick".

    Returns
    -------
    str
        "quick", "paper" or "beyond".

    Examples
    --------
    >>> current() in NAMES
    True
    """
    name = os.environ.get(ENVIRONMENT, NAMES[0])
    return checks.one_of(ENVIRONMENT, name, NAMES)


def choose(*, quick: Any, paper: Any, beyond: Any = None) -> Any:
    """Choose the value for the preset in force.

    Parameters
    ----------
    quick, paper, beyond : object
        In the build; as in the source; larger, by default as in the source.

    Returns
    -------
    object
        One of the three.

    Examples
    --------
    >>> choose(quick=100, paper=10_000) in (100, 10_000)
    True
    """
    return {"quick": quick, "paper": paper, "beyond": paper if beyond is None else beyond}[current()]


def samples(*, quick: Any, paper: Any, beyond: Any = None) -> Any:
    """Choose how many independent samples: what a page asserts must stay true with more.

    Parameters
    ----------
    quick, paper, beyond : int, or a tuple or dict of them
        In the build; as in the source; more, by default as in the source.

    Returns
    -------
    int, tuple or dict
        That of the preset in force, times PHYSICS_OF_LEARNING_SAMPLES, which is 1 if not set.

    Examples
    --------
    >>> samples(quick=(2, 4), paper=(2, 4))[1] % 4
    0
    """
    chosen = choose(quick=quick, paper=paper, beyond=beyond)
    given = os.environ.get(SAMPLES, "1")
    times = checks.integer(SAMPLES, int(given) if given.isdigit() else given)
    if isinstance(chosen, dict):
        return {name: times * number for name, number in chosen.items()}
    return tuple(times * number for number in chosen) if isinstance(chosen, tuple) else times * chosen

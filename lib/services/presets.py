"""How large the book's experiments are: ``quick`` in every build; ``paper``, the sources' own sizes; ``beyond``."""

import os

from lib.common import checks

ENVIRONMENT = "PHYSICS_OF_LEARNING_PRESET"
SAMPLES = "PHYSICS_OF_LEARNING_SAMPLES"
NAMES = ("quick", "paper", "beyond")


def current():
    """Name of the preset in force, which PHYSICS_OF_LEARNING_PRESET names; without it, "quick"."""
    name = os.environ.get(ENVIRONMENT, NAMES[0])
    return checks.one_of(ENVIRONMENT, name, NAMES)


def choose(*, quick, paper, beyond=None):
    """The value for the preset in force: `quick` in the build, `paper` as in the source; `beyond` defaults to that."""
    return {"quick": quick, "paper": paper, "beyond": paper if beyond is None else beyond}[current()]


def samples(*, quick, paper, beyond=None):
    """How many independent samples: as :func:`choose`, times PHYSICS_OF_LEARNING_SAMPLES, which is 1 if not set.

    An integer, or a tuple or a dict of them.  What a page asserts must stay true with more.
    """
    chosen = choose(quick=quick, paper=paper, beyond=beyond)
    given = os.environ.get(SAMPLES, "1")
    times = checks.integer(SAMPLES, int(given) if given.isdigit() else given)
    if isinstance(chosen, dict):
        return {name: times * number for name, number in chosen.items()}
    return tuple(times * number for number in chosen) if isinstance(chosen, tuple) else times * chosen

"""How large the book's experiments are: ``quick`` in every build; ``paper``, the sources' own sizes; ``beyond``."""

import os

from lib.common import checks

ENVIRONMENT = "PHYSICS_OF_LEARNING_PRESET"
NAMES = ("quick", "paper", "beyond")


def current():
    """Name of the preset in force, which PHYSICS_OF_LEARNING_PRESET names; without it, "quick"."""
    name = os.environ.get(ENVIRONMENT, NAMES[0])
    return checks.one_of(ENVIRONMENT, name, NAMES)


def choose(*, quick, paper, beyond=None):
    """The value for the preset in force: `quick` in the build, `paper` as in the source; `beyond` defaults to that."""
    return {"quick": quick, "paper": paper, "beyond": paper if beyond is None else beyond}[current()]

r"""How large the book's experiments are: ``quick``, what every build runs; ``paper``, the sources' own sizes; ``beyond``.

The environment variable PHYSICS_OF_LEARNING_PRESET names one for a whole process; code is the same for all, only sizes differ.
"""

import os

from lib.common import checks

ENVIRONMENT = "PHYSICS_OF_LEARNING_PRESET"
NAMES = ("quick", "paper", "beyond")


def current():
    """Name of the preset in force.

    Parameters
    ----------
    None: the environment variable PHYSICS_OF_LEARNING_PRESET decides; without it the preset is "quick"

    Returns
    -------
    str           "quick", "paper" or "beyond"

    Raises
    ------
    ValueError    if the variable holds another name

    Examples
    --------
    >>> current() in NAMES
    True
    """
    name = os.environ.get(ENVIRONMENT, NAMES[0])
    if name not in NAMES:
        checks.fail(ENVIRONMENT, f"be one of {', '.join(NAMES)}", name)
    return name


def choose(*, quick, paper, beyond=None):
    """The value for the preset in force.

    Parameters
    ----------
    quick : object     for what the build and the tests run
    paper : object     the source's own value
    beyond : object    default: as `paper`

    Returns
    -------
    object             one of the three

    Raises
    ------
    ValueError         if the environment variable holds another name

    Examples
    --------
    >>> choose(quick=8, paper=8)
    8
    """
    return {"quick": quick, "paper": paper, "beyond": paper if beyond is None else beyond}[current()]

"""How the loops of lib are compiled: on their first call, kept on disk where a folder for that can be written.

A reader waits for that first call.  Scalars, and loops over arrays that the caller made, take a tenth of a second; an
assigned slice, `np.empty` or `np.dot` up to a second each, as all that may go wrong in them is compiled, too.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def loops(function: Callable | None = None, **options: Any) -> Callable:
    """Decorate a function that numba compiles; it divides like NumPy.

    Parameters
    ----------
    function : callable, optional
        By default what is returned decorates one.
    **options
        Those of ``numba.njit``.

    Returns
    -------
    callable

    Examples
    --------
    >>> @loops
    ... def half(x):
    ...     return x / 2
    >>> half(3.0)
    1.5
    """
    if function is None:
        return lambda function: loops(function, **options)
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither beside the module nor in the home is there a folder that can be written
        return njit(**options)(function)

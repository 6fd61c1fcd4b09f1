"""How the loops of lib are compiled: on their first call, kept on disk where a folder for that can be written.

A reader waits for that first call, which also imports numba.  Scalars, and loops over arrays that the caller made, take
a tenth of a second; an assigned slice, `np.empty` or `np.dot` up to a second each, as all that may go wrong in them is
compiled, too.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

from lib.common.extras import needs

numba = needs("numba")
_lock = threading.RLock()


class _Loops:
    """A function that numba knows from its first call on, or from that of another one that calls it."""

    def __init__(self, function, options):
        functools.update_wrapper(self, function)
        self.py_func, self._options = function, options

    def __call__(self, *arguments):
        return self.dispatcher(*arguments)

    @functools.cached_property
    def dispatcher(self):
        with _lock:
            if "dispatcher" not in vars(self):
                try:
                    self.dispatcher = numba.njit(cache=True, **self._options)(self.py_func)
                except RuntimeError:  # neither beside the module nor in the home is there a folder that can be written
                    self.dispatcher = numba.njit(**self._options)(self.py_func)
                around = self.py_func.__globals__
                if around.get(self.__name__) is self:
                    around[self.__name__] = self.dispatcher  # which the module's next call finds at once
            return vars(self)["dispatcher"]

    @property
    def _numba_type_(self):
        return self.dispatcher._numba_type_  # what a loop that calls this one compiles


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
    return _Loops(function, {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options})

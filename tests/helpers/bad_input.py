"""Bad values to try on every argument of every public function, and the test that tries them."""

import re

import numpy as np
import pytest

MATRIX = [
    *(np.ones(2), np.ones((2, 3)), np.eye(3), np.zeros((0, 0)), "matrix", None),
    *([[1, np.nan], [0, 1]], [[np.inf, 0], [0, 1]], [[1j, 0], [0, 1]]),
]
NUMBER = [0, -1.0, np.nan, np.inf, "1", None, [0.1], True, np.True_, 1j, 10**400, [[1], [1, 2]]]
COUNT = [0, -2, 2.0, "2", None, True]
AXIS = [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [np.nan], [[1.0]], "times", None]
SEED = [None, -1, 1.5, "seed", True]


def _forbidden(*_):
    raise TypeError("this integer was checked, but what the check returned was not kept")


class Unkept(np.int64):
    """A NumPy integer to check and then to forget: what is computed with it might wrap, as that of an np.uint8 does."""


for _operation in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "divmod"):
    for _side in ("", "r"):
        setattr(Unkept, f"__{_side}{_operation}__", _forbidden)


def cases(calls, bad):
    """Every (function, argument, bad value): `calls` maps functions to good arguments, `bad` argument names to bad
    values.
    """
    return [(function, name, value) for function, good in calls.items() for name in good for value in bad[name]]


def refused(call, function, name, value, named=None):
    """Assert that `function` refuses `value` for the argument `name` and names it (or what `named` matches) in its
    message.
    """
    with pytest.raises(ValueError, match=rf"^({named or re.escape(name)}) must "):
        function(**call | {name: value})


def exercised(calls, bad, named=None):
    """The two tests that every module has: its good calls pass, with integers that must be kept as they are checked,
    and every bad value of every argument is refused by name.

    ``named`` maps arguments to patterns where the message may name another argument first.
    """
    named = named or {}

    @pytest.mark.parametrize("function", calls)
    def passes(function):
        numbers = {name: Unkept(value) for name, value in calls[function].items() if type(value) is int}
        function(**calls[function] | numbers)

    @pytest.mark.parametrize(
        ("function", "name"), [(function, name) for function, good in calls.items() for name in good]
    )
    def refuses(function, name):
        for value in bad[name]:
            refused(calls[function], function, name, value, named.get(name))

    return passes, refuses

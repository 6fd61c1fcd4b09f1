"""Shapes of arrays as the signatures of lib declare them, checked whenever a test calls a public function.

Returned arrays and the fields of dataclasses are held against their ``Array[...]``: one letter, one length, within a
call or an object.  Arguments may be lists, which the functions turn into arrays; so they are left to the refusals.
"""

import dataclasses
import functools
import inspect
import operator
import sys
from types import UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import numpy as np
import public
from beartype.door import is_bearable
from jaxtyping import Shaped, jaxtyped


def readable(hint):
    """A hint with every ``Array["n K"]`` as the type of jaxtyping that can check it."""
    if get_origin(hint) is Annotated:
        return Shaped[np.ndarray, hint.__metadata__[0]]
    inner = tuple(readable(part) for part in get_args(hint))
    if get_origin(hint) is tuple:
        return tuple[inner]
    if get_origin(hint) in (Union, UnionType):
        return functools.reduce(operator.or_, inner)
    return hint


def checked(function, hint, where):
    """The function, which fails where what it returns has not the declared form."""
    wanted = readable(hint)

    @functools.wraps(function)
    def wrapper(*arguments, **options):
        result = function(*arguments, **options)
        with jaxtyped("context"):
            assert is_bearable(result, wanted), f"{where} returns {form(result)}, not {hint}"
        return result

    return wrapper


def form(value):
    if isinstance(value, tuple):
        return tuple(form(part) for part in value)
    return f"an array {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


def checked_fields(owner):
    """An ``__init__`` that fails where a field has not the declared form."""
    hints = {name: readable(hint) for name, hint in get_type_hints(owner, include_extras=True).items()}
    names = [field.name for field in dataclasses.fields(owner)]
    init = owner.__init__

    @functools.wraps(init)
    def wrapper(self, *arguments, **options):
        init(self, *arguments, **options)
        with jaxtyped("context"):
            for name in names:
                value = getattr(self, name)
                found = f"{public.named(owner)}.{name} is {form(value)}, not {hints[name]}"
                assert not isinstance(value, np.ndarray) or is_bearable(value, hints[name]), found

    return wrapper


def install():
    """Let the annotated functions and dataclasses of the modules of lib that were imported check what they make."""
    imported = [module for name, module in sys.modules.items() if name.startswith("lib.") and not public.inner(name)]
    for module in imported:
        for function in public.own(module, inspect.isfunction):
            hints = get_type_hints(function, include_extras=True)
            if "return" in hints:
                setattr(module, function.__name__, checked(function, hints["return"], public.named(function)))
        for owner in public.own(module, inspect.isclass):
            for name, held in public.methods(owner).items():
                hints = get_type_hints(held, include_extras=True) if inspect.isfunction(held) else {}
                if "return" in hints:
                    setattr(owner, name, checked(held, hints["return"], f"{public.named(owner)}.{name}"))
            if dataclasses.is_dataclass(owner):
                owner.__init__ = checked_fields(owner)

"""Packages that only some functions need: imported on their first use, which says what to install where one is missing.

The package's extras have their names: what needs torch needs ``physics-of-learning[torch]``.
"""

import importlib
from types import ModuleType
from typing import Any

_asked = {}  # by name


class Extra:
    """A package that stands for itself until something of it is used.

    Parameters
    ----------
    name : str
        Also of a module in it, as in "torch.func".

    Examples
    --------
    >>> Extra("json").dumps([1, 2])
    '[1, 2]'
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # whoever looks a module over does not use it
            raise AttributeError(attribute)
        vars(self)[attribute] = found = getattr(imported(self._name), attribute)  # the next time it is at hand
        return found


def imported(name: str) -> ModuleType:
    """Import an extra.

    Parameters
    ----------
    name : str

    Returns
    -------
    module

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed: the message says how to install it.

    Examples
    --------
    >>> imported("json").__name__
    'json'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        package = name.partition(".")[0]
        if missing.name != package:  # it is there, and lacks something itself
            raise
        remedy = f'pip install {package}, or pip install "physics-of-learning[{package}]" to get a version that fits'
        raise ModuleNotFoundError(f"this needs {package}, which is not installed: {remedy}", name=package) from None


def needs(name: str) -> Any:
    """A package for the functions of a module, which does without it until one of them is called.

    Parameters
    ----------
    name : str
        Its own and that of the extra in ``pyproject.toml``.

    Returns
    -------
    Extra

    Examples
    --------
    >>> json = needs("json")
    >>> json.loads("[1, 2]")
    [1, 2]
    """
    return _asked.setdefault(name, Extra(name))


def load() -> list[str]:
    """Import at once what the modules of lib that are loaded ask for, say before a process may read no more files.

    Returns
    -------
    list of str
        What is not installed.

    Examples
    --------
    >>> _ = needs("json")
    >>> "json" in load()
    False
    """
    missing = []
    for name in _asked:
        try:
            imported(name)
        except ModuleNotFoundError:
            missing.append(name)
    return missing

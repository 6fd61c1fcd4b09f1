"""What lib offers: its public modules, functions, classes and methods, found once for the tests of all of them."""

import importlib
import inspect
import pkgutil

import lib


def inner(name):
    """Modules of what only a package itself uses."""
    return "._" in name


def modules():
    """Every public module, imported."""
    names = [info.name for info in pkgutil.walk_packages(lib.__path__, "lib.") if not info.ispkg]
    return [importlib.import_module(name) for name in names if not inner(name)]


def own(module, kind):
    """The public functions or classes that a module defines."""
    return [
        found
        for name, found in vars(module).items()
        if kind(found) and not name.startswith("_") and found.__module__ == module.__name__
    ]


def methods(found):
    """The public methods that a class defines, by name, with what stands in its dict."""
    return {
        name: held
        for name, held in vars(found).items()
        if not name.startswith("_") and (inspect.isfunction(held) or isinstance(held, (classmethod, staticmethod)))
    }


def named(found):
    return f"{found.__module__}.{found.__qualname__}"

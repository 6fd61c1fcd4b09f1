"""Every argument that lib checks refuses bad values by name: the checks declare what is bad, the examples what is good.

The examples of each docstring run while the checks are watched: which argument was checked, how, and in which call of
a public function.  Each such call is repeated with that one argument made bad in every way that its check excludes.
"""

import doctest
import inspect
import re
from collections import defaultdict
from functools import wraps

import numpy as np
import public
import pytest

from lib.common import checks

KINDS = ("number", "integer", "boolean", "one_of", "array", "entries", "times", "symmetric", "generator",
         "seed_sequence", "instance", "folder")  # fmt: skip


def _forbidden(*_):
    raise TypeError("this integer was checked, but what the check returned was not kept")


class Unkept(np.int64):
    """A NumPy integer to check and then to forget: what is computed with it might wrap, as that of an np.uint8 does."""


for _operation in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "divmod"):
    for _side in ("", "r"):
        setattr(Unkept, f"__{_side}{_operation}__", _forbidden)


class Watch:
    """Calls of public functions that ended well, and the checks that ran in each: (name, kind, options) -> value."""

    def __init__(self, patch):
        self.open, self.calls, self.inside = [], defaultdict(list), False
        for kind in KINDS:
            patch.setattr(checks, kind, self.watched(kind, getattr(checks, kind)))

    def watched(self, kind, check):
        @wraps(check)
        def wrapper(name, value, *arguments, **options):
            outer, self.inside = not self.inside, True
            try:
                result = check(name, value, *arguments, **options)
            finally:
                self.inside = not outer
            if outer:
                for found in self.open:
                    found[name, kind] = value, options
            return result

        return wrapper

    def follow(self, function, key):
        form = inspect.signature(function)

        @wraps(function)
        def wrapper(*arguments, **options):
            given = form.bind(*arguments, **options)
            given.apply_defaults()
            self.open.append(found := {})
            try:
                result = function(*arguments, **options)
            finally:
                self.open.pop()
            self.calls[key].append((function, given, found))
            return result

        return wrapper


def bad(kind, options, value):
    """What a check of this kind refuses, where `value` passes."""
    low, high = options.get("above", options.get("at_least")), options.get("below", options.get("at_most"))
    low_bad = [] if low is None else [low if "above" in options else low - max(1e-6, 1e-6 * abs(low))]
    high_bad = [] if high is None else [high if "below" in options else high + max(1e-6, 1e-6 * abs(high))]
    if kind == "number":
        return [np.nan, np.inf, "1", None, [0.1], True, np.True_, 1j, 10**400, *low_bad, *high_bad]
    if kind == "integer":
        return [options.get("at_least", 1) - 1, 2.0, "2", None, True]
    if kind == "boolean":
        return [0, 1, "no", None]
    if kind == "one_of":
        return ["nonsense", None, 3]
    if kind in ("generator", "seed_sequence"):
        return [None, -1, 1.5, "seed", True]
    if kind in ("instance", "folder"):
        return [None, 3, []]
    if kind == "times":
        return [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [np.nan], [[1.0]], "times", None]
    whole = np.array(value, dtype=float)
    wrong = ["nonsense", None, whole * 1j, np.full(whole.shape, np.nan)]
    if whole.size:
        for each in [*low_bad, *high_bad]:
            changed = whole.copy()
            changed.flat[-1] = each
            wrong.append(changed)
    flat = kind == "symmetric" and not options.get("stacked")
    ndim = 2 if flat else options.get("ndim") or len(options.get("shape") or ()) or None
    if ndim is not None:
        wrong.append(whole[None])
    if kind == "symmetric" and len(whole) > 1:
        wrong += [whole[:, 1:], whole + np.triu(np.ones_like(whole), 1)]
    return wrong


def tries():
    """(id, call, argument, kind, bad values) of every argument that was seen to be checked in an example."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        watch = Watch(patch)
        for module in public.modules():
            if module.__name__.startswith("lib.services.cluster"):
                continue
            for function in public.own(module, inspect.isfunction):
                patch.setattr(module, function.__name__, watch.follow(function, public.named(function)))
            for owner in public.own(module, inspect.isclass):
                for name, held in public.methods(owner).items():
                    bound = type(held) if isinstance(held, (classmethod, staticmethod)) else lambda function: function
                    function = getattr(held, "__func__", held)
                    patch.setattr(owner, name, bound(watch.follow(function, f"{public.named(owner)}.{name}")))
                if hasattr(owner, "__post_init__"):
                    patch.setattr(owner, "__init__", watch.follow(owner.__init__, public.named(owner)))
        runner = doctest.DocTestRunner(verbose=False)
        for module in public.modules():
            for test in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__):
                runner.run(test, out=lambda _: None, clear_globs=False)
        for key, calls in watch.calls.items():
            for function, given, seen in calls:
                for (name, kind), (value, options) in seen.items():
                    if name in given.arguments and _same(given.arguments[name], value):
                        found.setdefault((key, name, kind), (function, given, value, options))
    return found


def _same(one, other):
    try:
        return one is other or bool(np.all(np.equal(np.asarray(one), np.asarray(other))))
    except (TypeError, ValueError):
        return False


TRIES = tries()


@pytest.mark.parametrize("key", sorted({key for key, _, _ in TRIES}))
def test_integers_are_kept_as_they_were_checked(key):
    function, given, *_ = next(found for (other, _, _), found in TRIES.items() if other == key)
    changed = inspect.signature(function).bind(*given.args, **given.kwargs)
    checked = {name for other, name, kind in TRIES if other == key and kind == "integer"}
    for name in checked & {name for name, value in changed.arguments.items() if type(value) is int}:
        changed.arguments[name] = Unkept(changed.arguments[name])
    function(*changed.args, **changed.kwargs)


def test_many_arguments_are_tried():
    assert len(TRIES) > 700 and len({key for key, _, _ in TRIES}) > 200


@pytest.mark.parametrize("tried", TRIES, ids="-".join)
def test_bad_values_are_refused_by_name(tried):
    name, kind = tried[1:]
    function, given, value, options = TRIES[tried]
    default = inspect.signature(function).parameters[name].default
    for wrong in bad(kind, options, value):
        if wrong is None and default is None:
            continue
        changed = inspect.signature(function).bind(*given.args, **given.kwargs)
        changed.apply_defaults()
        changed.arguments[name] = wrong
        if function.__name__ == "__init__":  # the one of the example is in use elsewhere
            changed.arguments["self"] = object.__new__(type(changed.arguments["self"]))
        try:
            function(*changed.args, **changed.kwargs)
        except ValueError as refusal:
            assert re.match(rf"^(?=.*\b{re.escape(name)}\b).* must ", str(refusal))
        else:
            pytest.fail(f"{name} = {wrong!r} was accepted")

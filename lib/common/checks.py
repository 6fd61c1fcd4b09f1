"""Argument checks for whatever a caller outside ``lib`` may call.

Each returns the argument in its working type, or raises a ``ValueError`` whose message names the argument, what it must
be and what was given, in that order.  Nothing is clipped or repaired.
"""

import os
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path

import numpy as np


def fail(name, requirement, value):
    """Raise the ``ValueError`` that all checks share: '<name> must <requirement>, got <value>'."""
    # One line, short enough for a message; a text of several words describes a value already.
    text = " ".join((value if isinstance(value, str) and " " in value else repr(value)).split())
    raise ValueError(f"{name} must {requirement}, got {text if len(text) <= 80 else text[:77] + '...'}")


def fail_if(wrong, name, requirement, value):
    """:func:`fail`, if the argument is `wrong`; the other arguments are evaluated in any case."""
    if wrong:
        fail(name, requirement, value)


def _axes(shape):
    """The wanted shape in words; None is an axis of any length."""
    if len(shape) > 1 and None not in shape:
        return f"have shape {tuple(int(n) for n in shape)}"
    count = {0: "no axis", 1: "one axis", 2: "two axes", 3: "three axes"}.get(len(shape), f"{len(shape)} axes")
    if len(shape) == 1 and shape[0] is not None:
        return f"have one axis of length {shape[0]}"
    places = ["first", "second", "third", *(f"{n}th" for n in range(4, len(shape) + 1))]
    lengths = (f"the {place} of length {n}" for place, n in zip(places, shape) if n is not None)
    return ", ".join([f"have {count}", *lengths])


def _misfit(name, requirement, array):
    """Complain about the axes of an array that was read from the argument `name`."""
    if array.ndim == 0:
        remedy = f": put it into a list, [{array}]" if requirement == _axes((None,)) else ""
        fail(name, requirement, f"a single number{remedy}")
    fail(name, requirement, f"an array of shape {array.shape}")


def plain(value):
    """`value`, or its number as a float where it is an array without axes or a NumPy number."""
    return value.item() if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0 else value


def one_or_many(function):
    """Let the argument `times` of a function or method, one axis, be a single time: the results have no axis for it.

    The results, an array or a dataclass of arrays, have the times on their last axis.  Numbers come back as floats.
    Where no argument is called so, the first is meant.
    """
    form = signature(function)
    name = "times" if "times" in form.parameters else next(iter(form.parameters))

    @wraps(function)
    def wrapped(*arguments, **options):
        given = form.bind(*arguments, **options)
        value = given.arguments[name]
        numeric = isinstance(value, (int, float, np.number, np.ndarray)) and not isinstance(value, bool)
        if not numeric or np.ndim(value) > 0:
            return function(*arguments, **options)
        given.arguments[name] = np.reshape(value, 1)
        result = function(*given.args, **given.kwargs)
        if is_dataclass(result):
            return replace(
                result, **{field.name: plain(getattr(result, field.name)[..., 0]) for field in fields(result)}
            )
        return plain(result[..., 0])

    return wrapped


def array(name, value, *, ndim=None, shape=None):
    """`value` as a new float64 array with finite entries; ``shape`` may hold None for a free axis."""
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "iuf" or np.ma.is_masked(value):
            raise TypeError("no strings, no truth values, no complex numbers cut to their real part, no dropped masks")
        result = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last: a tensor with a gradient
        fail(name, "be an array of real numbers", value)
    if ndim is not None and result.ndim != ndim:
        _misfit(name, _axes((None,) * ndim), result)
    if shape is not None:
        fits = result.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, result.shape))
        if not fits:
            _misfit(name, _axes(shape), result)
    if not np.isfinite(result).all():
        fail(name, "be finite: remove the NaN or infinite entries", value)
    return result


def finite(name, result):
    """`result`, or a complaint about the argument `name`, which drove it out of the floating-point range."""
    if not np.isfinite(result).all():
        fail(name, "keep the result inside the floating-point range", "a result that is not finite")
    return result


def _range(above, at_least, below, at_most):
    bounds = [("> {}", above), (">= {}", at_least), ("< {}", below), ("<= {}", at_most)]
    return " and ".join(text.format(bound) for text, bound in bounds if bound is not None)


def _inside(values, above, at_least, below, at_most):
    return bool(
        (above is None or np.all(values > above))
        and (at_least is None or np.all(values >= at_least))
        and (below is None or np.all(values < below))
        and (at_most is None or np.all(values <= at_most))
    )


def number(name, value, *, above=None, at_least=None, below=None, at_most=None):
    """`value` as a finite float inside the given bounds."""
    wanted = " ".join(["be one finite number", _range(above, at_least, below, at_most)]).strip()
    try:
        if np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "iuf":
            raise TypeError("not one real number")
        result = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        fail(name, wanted, value)
    if not np.isfinite(result) or not _inside(result, above, at_least, below, at_most):
        fail(name, wanted, value)
    return result


def integer(name, value, *, at_least=1):
    """`value` as an int of at least ``at_least``; 3.0 is refused, so that a mistyped size is noticed."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < at_least:
        fail(name, f"be an integer >= {at_least}", value)
    return int(value)


def boolean(name, value):
    """`value` as a bool; 0, 1 and "no" are refused."""
    if not isinstance(value, (bool, np.bool_)):
        fail(name, "be True or False", value)
    return bool(value)


def one_of(name, value, choices):
    """`value`, if it is one of the names `choices`."""
    if not isinstance(value, str) or value not in choices:
        fail(name, f"be one of {', '.join(choices)}", value)
    return value


def broadcast(**arrays):
    """The named arrays as views of one shape, as in ``p, t = broadcast(samples=p, ridge=t)``; the last is blamed."""
    try:
        return np.broadcast_arrays(*arrays.values())  # (...) each
    except ValueError:
        *others, last = arrays
        shapes = ", ".join(str(np.shape(part)) for part in arrays.values())
        fail(last, f"broadcast with {', '.join(others)}", f"the shapes {shapes} of {', '.join(arrays)}")


def entries(name, value, *, above=None, at_least=None, below=None, at_most=None, ndim=None, shape=None):
    """`value` as a finite float64 array with every entry inside the given bounds."""
    result = array(name, value, ndim=ndim, shape=shape)
    if not _inside(result, above, at_least, below, at_most):
        fail(name, f"have entries {_range(above, at_least, below, at_most)}", value)
    return result


def times(name, value):
    """`value`, one time or several, as a one-dimensional array of times, >= 0 and strictly increasing."""
    single = np.isscalar(value) or (isinstance(value, np.ndarray) and value.ndim == 0)
    result = entries(name, [value] if single else value, at_least=0, ndim=1)
    if result.size == 0 or np.any(np.diff(result) <= 0):
        fail(name, "hold one or more strictly increasing times", value)
    return result


def whole_steps(name, value, size):
    """Times >= 0, in units of `size` examples, as whole numbers of examples, few enough to be told apart as floats."""
    steps = np.rint(value * size)  # (n,)
    if steps.max(initial=0) > 2**53:
        fail(name, f"be at most {2**53 / size:.3g}, beyond which single examples are lost", value)
    return steps.astype(np.int64)


def lowest_correlation(matrix, part):
    """Lowest eigenvalues (...) of the correlations in symmetric matrices (..., n, n), each variance raised by `part`.

    So every row counts on its own scale.  Beside a variance of zero 1e-13 of the other width is rounding.
    """
    spot = np.arange(matrix.shape[-1])
    variance, top = matrix[..., spot, spot], np.abs(matrix).max(axis=-1)  # (..., n)
    top = top.max(axis=-1, keepdims=True)  # (..., 1)
    width = np.sqrt(np.maximum(variance, 0) * (1 + part) + 1e-26 * top)  # (..., n)
    width = np.where(width > 0, width, 1.0)
    correlation = matrix / width[..., :, None] / width[..., None, :]  # (..., n, n)
    correlation[..., spot, spot] = 1.0
    negative = (variance < -1e-13 * top).any(axis=-1)  # (...)
    return np.where(negative, -np.inf, np.linalg.eigvalsh(correlation)[..., 0])


def symmetric(name, value, *, size=None, definite=None):
    """`value` as a symmetric matrix; ``definite`` "semi" asks for eigenvalues >= 0 up to rounding, "strict" for > 0.

    They are judged on the correlations: rows in different units may differ by any factor.
    """
    result = array(name, value, ndim=2, shape=None if size is None else (size, size))
    if result.shape[0] != result.shape[1] or result.shape[0] == 0:
        fail(name, "be a square matrix", f"shape {result.shape}")
    scale = np.abs(result).max()
    if not np.allclose(result, result.T, rtol=0, atol=1e-10 * scale):
        fail(name, "be symmetric: pass (A + A.T) / 2 if the difference is rounding", value)
    result = (result + result.T) / 2
    if definite is not None:
        strict, least = definite == "strict", np.diag(result).min()
        lowest = lowest_correlation(result, 0.0 if strict else 1e-10)
        wanted = f"be positive {'' if strict else 'semi'}definite"
        fail_if(least <= 0 if strict else lowest == -np.inf, name, wanted, f"a diagonal entry {least:.3g}")
        found = f"correlations with the lowest eigenvalue {lowest:.3g}"
        fail_if(lowest < (1e-14 if strict else -1e-13), name, wanted, found)
    return result


def instance(name, value, kind, origin):
    """`value`, if it is a `kind`; `origin` says where one comes from, as in "as regression.fit returns it"."""
    if not isinstance(value, kind):
        fail(name, f"be a {kind.__name__}, {origin}", value)
    return value


def keep(made, **values):
    """Put checked values into the frozen dataclass that was given others: an np.uint8 would wrap in its formulas."""
    for name, value in values.items():
        object.__setattr__(made, name, value)


def folder(name, value):
    """`value` as a ``Path``, with that home folder for a leading ~ or ~user; nothing is made or looked up."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str) or not os.fspath(value):
        fail(name, "be the path of a folder, or None", value)
    try:
        return Path(value).expanduser()
    except RuntimeError:
        wanted = "be the path of a folder whose ~ or ~user names a home folder of this machine: write the path out"
        fail(name, wanted, value)


def seed_sequence(name, value):
    """`value` as a ``numpy.random.SeedSequence``; there is no default, so that every result can be repeated."""
    if isinstance(value, np.random.SeedSequence):
        return value
    if isinstance(value, np.random.Generator):
        return value.bit_generator.seed_seq.spawn(1)[0]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
        fail(name, "be an integer >= 0, a numpy.random.SeedSequence or a numpy.random.Generator", value)
    return np.random.SeedSequence(int(value))


def generator(name, value):
    """`value` as a ``numpy.random.Generator``: one that is passed in, or a fresh one from an explicit seed."""
    if isinstance(value, np.random.Generator):
        return value
    return np.random.Generator(np.random.SFC64(seed_sequence(name, value)))

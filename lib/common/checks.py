"""Argument checks for whatever a caller outside ``lib`` may call.

Each returns the argument in its working type, or raises a ``ValueError`` whose message names the argument, what it must
be and what was given, in that order.  Nothing is clipped or repaired.
"""

import os
import typing
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from lib.common.shapes import Array, ArrayLike, Rng


def fail(name: str, requirement: str, value: Any) -> typing.NoReturn:
    """Raise the error that all checks share,  "<name> must <requirement>, got <value>".

    Parameters
    ----------
    name, requirement : str
        The argument, and what it must do or be.
    value : object
        What was given; a text of several words describes it already.

    Returns
    -------
    Never: it raises ValueError.

    Examples
    --------
    >>> fail("rate", "be > 0", -1)
    Traceback (most recent call last):
    ValueError: rate must be > 0, got -1
    """
    text = " ".join((value if isinstance(value, str) and " " in value else repr(value)).split())
    raise ValueError(f"{name} must {requirement}, got {text if len(text) <= 80 else text[:77] + '...'}")


def fail_if(wrong: bool | np.bool_, name: str, requirement: str, value: Any) -> None:
    """Raise  "<name> must <requirement>, got <value>"  if the argument is wrong.

    Parameters
    ----------
    wrong : bool
    name, requirement : str
        The argument, and what it must do or be; evaluated in any case.
    value : object
        What was given; a text of several words describes it already.

    Returns
    -------
    None

    Examples
    --------
    >>> fail_if(False, "rate", "be > 0", 1)
    """
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
        boxed = {_axes((None,) * n): "[" * n + f"{array}" + "]" * n for n in (1, 2)}.get(requirement)
        fail(name, requirement, "a single number" + (f": put it into a list, {boxed}" if boxed else ""))
    fail(name, requirement, f"an array of shape {array.shape}")


def plain(value: Any) -> Any:
    """Turn an array without axes, or a NumPy number, into a number of Python.

    Parameters
    ----------
    value : object

    Returns
    -------
    object
        The number, or `value` itself.

    Examples
    --------
    >>> plain(np.float64(0.5)), plain(np.array(2.0)), plain(np.ones(1))
    (0.5, 2.0, array([1.]))
    """
    return value.item() if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0 else value


def _single(value):
    """Whether a value is one number, also one of a tensor, rather than several or none."""
    return getattr(value, "ndim", 0 if isinstance(value, (int, float)) else None) == 0


def one_or_many(function: Callable) -> Callable:
    """Let the argument `times` of a function or method, one axis, be a single time: the results have no axis for it.

    Parameters
    ----------
    function : callable
        Its results, an array or a dataclass of arrays, have the times on their last axis.  Where no argument is called
        so, the first is meant.

    Returns
    -------
    callable
        Numbers come back as floats.

    Examples
    --------
    >>> decay = one_or_many(lambda times: np.exp2(-times))
    >>> decay(1), decay(np.array([1, 2]))
    (0.5, array([0.5 , 0.25]))
    """
    form = signature(function)
    name = "times" if "times" in form.parameters else next(iter(form.parameters))

    @wraps(function)
    def wrapped(*arguments, **options):
        given = form.bind(*arguments, **options)
        value = given.arguments[name]
        if not _single(value):
            return function(*arguments, **options)
        given.arguments[name] = array(name, value).reshape(1)
        result = function(*given.args, **given.kwargs)
        if is_dataclass(result):
            return replace(
                result, **{field.name: plain(getattr(result, field.name)[..., 0]) for field in fields(result)}
            )
        return plain(result[..., 0])

    return wrapped


def array(
    name: str, value: ArrayLike, *, ndim: int | None = None, shape: tuple[int | None, ...] | None = None
) -> Array["..."]:
    """Read an argument as a new float64 array with finite entries.

    Parameters
    ----------
    name : str
    value : array_like
        Real numbers: no strings, truth values, complex numbers or masks.
    ndim : int, optional
        How many axes it must have.
    shape : tuple, optional
        What shape it must have, None for an axis of any length.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> array("state", [[1, 2]], shape=(None, 2))
    array([[1., 2.]])
    """
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


def table(name: str, value: ArrayLike, *, rows: int | None = None, columns: int | None = None) -> Array["n d"]:
    """Read a table of data, a row a sample: also of pandas; truth values are 0 and 1, and a column may lack its axis.

    Parameters
    ----------
    name : str
    value : array_like (n,) or (n, d)
        Or a DataFrame or Series.
    rows, columns : int, optional
        How many it must have.

    Returns
    -------
    ndarray (n, d)

    Examples
    --------
    >>> table("targets", [1, 2], columns=1).tolist()
    [[1.0], [2.0]]
    """
    if hasattr(value, "to_numpy"):
        try:
            value = value.to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            fail(
                name, "hold numbers: turn columns of text into them, as pandas.get_dummies does", "a table with others"
            )
    elif getattr(value, "dtype", None) == np.bool_:
        value = value.astype(np.float64)
    result = array(name, value)  # (n,) or (n, d)
    result = result[:, None] if result.ndim == 1 else result  # (n, d)
    if result.ndim != 2 or result.size == 0:
        fail(name, "be a table of one sample or more, a row each: use .reshape(n, -1)", f"shape {result.shape}")
    fail_if(rows not in (None, len(result)), name, f"have {rows} rows, one a sample", f"shape {result.shape}")
    wanted = f"have {columns} column{'s' * (columns != 1)}: pass one at a time, squared errors of several add up"
    fail_if(columns not in (None, result.shape[1]), name, wanted, f"shape {result.shape}")
    return result


def finite(name: str, result: ArrayLike) -> Any:
    """Complain about the argument that drove a result out of the floating-point range.

    Parameters
    ----------
    name : str
        The argument.
    result : float or ndarray

    Returns
    -------
    float or ndarray
        `result`, finite.

    Examples
    --------
    >>> finite("rate", 2.0)
    2.0
    """
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


def number(
    name: str,
    value: float,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Read an argument as one finite float inside the given bounds.

    Parameters
    ----------
    name : str
    value : float
    above, at_least, below, at_most : float, optional
        Bounds, each of which may be left out.

    Returns
    -------
    float

    Examples
    --------
    >>> number("rate", 1, above=0)
    1.0
    """
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


def integer(name: str, value: int, *, at_least: int = 1) -> int:
    """Read an argument as an int; 3.0 is refused, so that a mistyped size is noticed.

    Parameters
    ----------
    name : str
    value : int
    at_least : int
        Its lower bound.

    Returns
    -------
    int

    Examples
    --------
    >>> integer("size", np.uint8(3))
    3
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < at_least:
        whole = isinstance(value, (float, np.floating)) and value >= at_least and float(value).is_integer()
        fail(name, f"be an integer >= {at_least}", f"the float {value}: pass int({value})" if whole else value)
    return int(value)


def boolean(name: str, value: bool) -> bool:
    """Read an argument as a bool; 0, 1 and "no" are refused.

    Parameters
    ----------
    name : str
    value : bool

    Returns
    -------
    bool

    Examples
    --------
    >>> boolean("relative", np.True_)
    True
    """
    if not isinstance(value, (bool, np.bool_)):
        fail(name, "be True or False", value)
    return bool(value)


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """Read an argument that is one of some names.

    Parameters
    ----------
    name : str
    value : str
    choices : collection of str

    Returns
    -------
    str

    Examples
    --------
    >>> one_of("kind", "erf", ("erf", "relu"))
    'erf'
    """
    if not isinstance(value, str) or value not in choices:
        fail(name, f"be one of {', '.join(choices)}", value)
    return value


def broadcast(**arrays: ArrayLike) -> tuple[Array["..."], ...]:
    """Bring named arrays to one shape.

    Parameters
    ----------
    **arrays : array_like
        By the names of the arguments, of which the last is blamed.

    Returns
    -------
    tuple of ndarray
        Views of one shape, in the same order.

    Examples
    --------
    >>> [part.shape for part in broadcast(samples=np.ones(3), ridge=1.0)]
    [(3,), (3,)]
    """
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        *others, last = arrays
        shapes = ", ".join(str(np.shape(part)) for part in arrays.values())
        fail(last, f"broadcast with {', '.join(others)}", f"the shapes {shapes} of {', '.join(arrays)}")


def entries(
    name: str,
    value: ArrayLike,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    ndim: int | None = None,
    shape: tuple[int | None, ...] | None = None,
) -> Array["..."]:
    """Read an argument as a new float64 array with every entry finite and inside the given bounds.

    Parameters
    ----------
    name : str
    value : array_like
    above, at_least, below, at_most : float, optional
        Bounds, each of which may be left out.
    ndim : int, optional
        How many axes it must have.
    shape : tuple, optional
        What shape it must have, None for an axis of any length.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> entries("weights", [1, 2], above=0)
    array([1., 2.])
    """
    result = array(name, value, ndim=ndim, shape=shape)
    if not _inside(result, above, at_least, below, at_most):
        fail(name, f"have entries {_range(above, at_least, below, at_most)}", value)
    return result


def times(name: str, value: ArrayLike) -> Array[" n"]:
    """Read one time or several, >= 0 and strictly increasing.

    Parameters
    ----------
    name : str
    value : float or array_like (n,)

    Returns
    -------
    ndarray (n,)

    Examples
    --------
    >>> times("times", 5)
    array([5.])
    """
    result = entries(name, [value] if _single(value) else value, at_least=0, ndim=1)
    if result.size == 0 or np.any(np.diff(result) <= 0):
        fail(name, "hold one or more strictly increasing times", value)
    return result


def whole_steps(name: str, value: Array[" n"], size: float) -> Array[" n"]:
    """Times as whole numbers of examples, few enough to be told apart as floats.

    Parameters
    ----------
    name : str
    value : ndarray (n,)
        Times >= 0, in units of `size` examples.
    size : float

    Returns
    -------
    ndarray (n,)
        Of integers.

    Examples
    --------
    >>> whole_steps("times", np.array([0.0, 1.5]), 10)
    array([ 0, 15])
    """
    steps = np.rint(value * size)  # (n,)
    if steps.max(initial=0) > 2**53:
        fail(name, f"be at most {2**53 / size:.3g}, beyond which single examples are lost", value)
    return steps.astype(np.int64)


def _lowest_correlation(matrix, slack):
    """Lowest eigenvalues (...) of the correlations in symmetric matrices (..., n, n), each variance raised by `slack`.

    Every row counts on its own scale; beside a variance of zero 1e-13 of the other width is rounding.  -inf where a
    variance is negative.
    """
    variance, top = np.diagonal(matrix, axis1=-2, axis2=-1), np.abs(matrix).max(axis=-1)  # (..., n)
    top = top.max(axis=-1, keepdims=True)  # (..., 1)
    width = np.sqrt(np.maximum(variance, 0) * (1 + slack) + 1e-26 * top)  # (..., n)
    width = np.where(width > 0, width, 1.0)
    correlation = matrix / width[..., :, None] / width[..., None, :]  # (..., n, n)
    spot = np.arange(matrix.shape[-1])
    correlation[..., spot, spot] = 1.0
    negative = (variance < -1e-13 * top).any(axis=-1)  # (...)
    return np.where(negative, -np.inf, np.linalg.eigvalsh(correlation)[..., 0])


def symmetric(
    name: str, value: ArrayLike, *, size: int | None = None, definite: str | None = None, stacked: bool = False,
    slack: float = 1e-10,
) -> Array["... n n"]:  # fmt: skip
    """Read an argument as a symmetric matrix.

    Parameters
    ----------
    name : str
    value : array_like (n, n)
        Symmetric up to 1e-10 of its largest entry.
    size : int, optional
        n, where only one will do.
    definite : str, optional
        "semi" asks for eigenvalues >= 0 up to rounding, "strict" for > 0.  They are judged on the correlations: rows in
        different units may differ by any factor.
    stacked : bool
        Let it be a stack of such matrices, (..., n, n), which may be empty.
    slack : float
        Part by which "semi" raises each variance, for errors beyond rounding.

    Returns
    -------
    ndarray (n, n) or (..., n, n)

    Examples
    --------
    >>> symmetric("covariance", [[1, 0], [0, 1e-30]], definite="strict").tolist()
    [[1.0, 0.0], [0.0, 1e-30]]
    """
    result = array(name, value, ndim=None if stacked else 2, shape=None if size is None else (size, size))
    if result.ndim < 2 or result.shape[-1] != result.shape[-2] or result.shape[-1] == 0:
        fail(name, "be a square matrix", f"shape {result.shape}")
    if result.size == 0:
        return result
    scale = np.abs(result).max(axis=(-2, -1), keepdims=True)  # (..., 1, 1)
    if np.any(np.abs(result - result.mT) > 1e-10 * scale):
        fail(name, "be symmetric: pass (A + A.T) / 2 if the difference is rounding", value)
    result = (result + result.mT) / 2
    if definite is not None:
        strict, least = definite == "strict", np.diagonal(result, axis1=-2, axis2=-1).min()
        lowest = _lowest_correlation(result, 0.0 if strict else slack).min()
        wanted = f"be positive {'' if strict else 'semi'}definite"
        fail_if(least <= 0 if strict else lowest == -np.inf, name, wanted, f"a diagonal entry {least:.3g}")
        found = f"correlations with the lowest eigenvalue {lowest:.3g}"
        fail_if(lowest < (1e-14 if strict else -1e-13), name, wanted, found)
    return result


def instance(name: str, value: Any, kind: type, origin: str) -> Any:
    """Read an argument that is an object of some class.

    Parameters
    ----------
    name : str
    value : object
    kind : type
        The class.
    origin : str
        Where one comes from, as in "as regression.fit returns it".

    Returns
    -------
    object
        `value`.

    Examples
    --------
    >>> instance("file", Path("x"), Path, "of pathlib").name
    'x'
    """
    if not isinstance(value, kind):
        fail(name, f"be a {kind.__name__}, {origin}", value)
    return value


def keep(made: Any, **values: Any) -> None:
    """Put checked values into a frozen dataclass that was given others: an np.uint8 would wrap in its formulas.

    Parameters
    ----------
    made : object
        The dataclass, in its ``__post_init__``.
    **values : object
        By the names of its fields.

    Returns
    -------
    None

    Examples
    --------
    >>> box = type("Box", (), {})()
    >>> keep(box, size=3)
    >>> box.size
    3
    """
    for name, value in values.items():
        object.__setattr__(made, name, value)


def folder(name: str, value: str | os.PathLike) -> Path:
    """Read an argument as the path of a folder; nothing is made or looked up.

    Parameters
    ----------
    name : str
    value : str or path
        A leading ~ or ~user stands for that home folder.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> folder("root", "data").name
    'data'
    """
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str) or not os.fspath(value):
        fail(name, "be the path of a folder, or None", value)
    try:
        return Path(value).expanduser()
    except RuntimeError:
        wanted = "be the path of a folder whose ~ or ~user names a home folder of this machine: write the path out"
        fail(name, wanted, value)


def seed_sequence(name: str, value: Rng) -> np.random.SeedSequence:
    """Read an argument as a seed; there is no default, so that every result can be repeated.

    Parameters
    ----------
    name : str
    value : int, SeedSequence or Generator
        A Generator spawns a new one.

    Returns
    -------
    numpy.random.SeedSequence

    Examples
    --------
    >>> seed_sequence("rng", 3).entropy
    3
    """
    if isinstance(value, np.random.SeedSequence):
        return value
    if isinstance(value, np.random.Generator):
        return value.bit_generator.seed_seq.spawn(1)[0]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
        fail(name, "be an integer >= 0, a numpy.random.SeedSequence or a numpy.random.Generator", value)
    return np.random.SeedSequence(int(value))


def generator(name: str, value: Rng) -> np.random.Generator:
    """Read an argument as where to draw from: a Generator that is passed in, or a fresh one from an explicit seed.

    Parameters
    ----------
    name : str
    value : int, SeedSequence or Generator

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> generator("rng", 3).random() == generator("rng", np.random.SeedSequence(3)).random()
    True
    """
    if isinstance(value, np.random.Generator):
        return value
    return np.random.Generator(np.random.SFC64(seed_sequence(name, value)))

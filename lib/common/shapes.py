"""Annotations that say the shape of an array, for readers and for the tests, which check them; at run time they cost
nothing.

``Array["n K"]`` is an ``np.ndarray`` with two axes; one letter has one length within a signature, "..." any axes.
A shape with one axis is written with a blank before it, ``Array[" n"]``, so that no linter takes it for a name.
"""

import typing

import numpy as np

if typing.TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike

    Rng = int | np.integer | np.random.SeedSequence | np.random.Generator
else:  # the unions themselves would fill a screen of help()

    class ArrayLike:
        """What NumPy reads as an array: a number, nested lists, an array, a tensor, a column of pandas."""

    class Rng:
        """A seed, or where to draw from: an int, a numpy.random.SeedSequence or a numpy.random.Generator."""


class Array:
    """``Array[shape]`` annotates an array of that shape, as in the table of jaxtyping.

    Examples
    --------
    >>> Array["n K"].__metadata__
    ('n K',)
    """

    def __class_getitem__(cls, shape):
        return typing.Annotated[np.ndarray, shape.strip()]

"""Data sets of the experiments on representation learning: two points, exclusive or, blobs in one of two contexts.

Source: vanrossem2024, section B of its appendix.  Distances are squared throughout, in its Fig. 5 plain.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Blobs:
    """Pictures of a blob with a context; the target is the coordinate of its centre that the context asks for."""

    inputs: Array["P n"]  # n = pixels² + 2: the picture row by row, then the context one-hot
    targets: Array["P 1"]
    centres: Array["P 2"]  # horizontal and vertical coordinate, in [-1, 1]
    context: Array[" P"]  # 0: the horizontal coordinate is asked for, 1: the vertical


def two_points(
    input_distance: float = 1.0, target_distance: float = 0.5, *, first_input: float = -1.0, first_target: float = 0.6
) -> tuple[Array["2 1"], Array["2 1"]]:
    """Two points on a line:  x = (x_1, x_1 + √X),  y = (y_1, y_1 + √Y),  by default as in the authors' public code.

    Parameters
    ----------
    input_distance, target_distance : float
        X > 0, Y >= 0, squared.
    first_input, first_target : float
        x_1, y_1.

    Returns
    -------
    inputs, targets : ndarray (2, 1)

    Examples
    --------
    >>> inputs, targets = two_points(1.0, 0.25, first_input=-1.0, first_target=0.6)
    >>> inputs.ravel().tolist(), targets.ravel().tolist()
    ([-1.0, 0.0], [0.6, 1.1])
    """
    apart = np.sqrt(checks.number("input_distance", input_distance, above=0))
    gap = np.sqrt(checks.number("target_distance", target_distance, at_least=0))
    x, y = checks.number("first_input", first_input), checks.number("first_target", first_target)
    return np.array([[x], [x + apart]]), np.array([[y], [y + gap]])


def exclusive_or() -> tuple[Array["4 2"], Array["4 1"]]:
    """Four points:  inputs 00, 10, 01, 11 and their targets 0, 1, 1, 0.

    Returns
    -------
    inputs, targets : ndarray (4, 2), (4, 1)

    Examples
    --------
    >>> inputs, targets = exclusive_or()
    >>> bool((targets[:, 0] == inputs.sum(axis=1) % 2).all())
    True
    """
    inputs = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # (4, 2)
    return inputs, inputs.sum(axis=1, keepdims=True) % 2  # (4, 1)


def blobs(side: int, *, pixels: int = 5, width: float = 1.0, normalised: bool = False) -> Blobs:
    """Blobs in front of a camera, each shown twice, once in either context.

    Pixel u of a picture is  exp(-|u - c|² / 2σ²),  pixels and centres c on regular grids over [-1, 1]²; the text
    of the source gives neither the ranges nor σ, and the defaults are those of its authors' public code.

    Parameters
    ----------
    side, pixels : int
        Centres and pixels along one coordinate, >= 2.
    width : float
        σ > 0.
    normalised : bool
        Whether pixels are divided by their sum, as in the authors' public code.

    Returns
    -------
    Blobs
        P = 2 side²; the first half is asked for the horizontal coordinate.

    Examples
    --------
    >>> data = blobs(3)
    >>> data.inputs.shape, data.centres[1].tolist(), data.targets[1].tolist(), data.targets[10].tolist()
    ((18, 27), [-1.0, 0.0], [-1.0], [0.0])
    """
    places = np.linspace(-1, 1, checks.integer("side", side, at_least=2))  # (side,)
    screen = np.linspace(-1, 1, checks.integer("pixels", pixels, at_least=2))  # (pixels,)
    width = checks.number("width", width, above=0)
    lines = np.exp(-((screen - places[:, None]) ** 2) / (2 * width**2))  # (side, pixels)
    pictures = np.einsum("jr,ic->ijrc", lines, lines)  # (side, side, pixels, pixels)  horizontal, vertical, row, column
    pictures = pictures.reshape(len(places) ** 2, -1)  # (side², pixels²)
    if checks.boolean("normalised", normalised):
        pictures = pictures / pictures.sum(axis=1, keepdims=True)  # (side², pixels²)
    centres = np.stack(np.meshgrid(places, places, indexing="ij"), axis=2).reshape(-1, 2)  # (side², 2)
    centres, context = np.tile(centres, (2, 1)), np.repeat([0, 1], len(pictures))  # (P, 2), (P,)
    inputs = np.hstack([np.tile(pictures, (2, 1)), np.eye(2)[context]])  # (P, pixels² + 2)
    return Blobs(inputs, centres[np.arange(len(context)), context][:, None], centres, context)


def spreads(squared_distances: ArrayLike, centres: ArrayLike, context: ArrayLike) -> Array["3"]:
    """Spread of blobs along the coordinate that is asked for, along the other one, and between the contexts.

    Σ_rel and Σ_irr are half the mean squared distance of two blobs in the same context that differ in one coordinate at
    most, the one asked for or the other; Σ_con is the mean squared distance between contexts less that within them: for
    equal grids that of their means.  Not in the source.

    Parameters
    ----------
    squared_distances : array_like (N, N)
        Of hidden vectors, inputs or a prediction, >= 0.
    centres, context : array_like (N, 2), (N,)
        Of the blobs, both contexts occurring.

    Returns
    -------
    ndarray (3,)
        Σ_rel, Σ_irr, Σ_con.

    Examples
    --------
    >>> data = blobs(3)
    >>> points = np.hstack([2 * data.targets, 5.0 * data.context[:, None]])  # doubled target, context
    >>> spreads(((points[:, None] - points) ** 2).sum(axis=2), data.centres, data.context).round(3).tolist()
    [2.667, 0.0, 25.0]
    """
    table = checks.symmetric("squared_distances", squared_distances)  # (N, N)
    checks.fail_if(table.min() < 0, "squared_distances", "have entries >= 0", squared_distances)
    centres = checks.array("centres", centres, shape=(len(table), 2))  # (N, 2)
    context = checks.array("context", context, shape=(len(table),))  # (N,)
    checks.fail_if(set(context) != {0.0, 1.0}, "context", "hold 0 and 1, both at least once", context)
    which, every = context.astype(int), np.arange(len(table))  # (N,), (N,)
    asked, other = centres[every, which], centres[every, 1 - which]  # (N,), (N,)
    together = context[:, None] == context  # (N, N)
    relevant, irrelevant = (table[together & (one[:, None] == one)].mean() / 2 for one in (other, asked))
    return np.array([relevant, irrelevant, table[~together].mean() - table[together].mean()])  # (3,)

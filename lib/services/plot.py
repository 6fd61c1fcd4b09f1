"""One look for every figure of the book.

Figures are SVG, transparent for the site, which inverts lightness (not hue) in dark mode; elsewhere on a white ground.
Theory is drawn as lines, data as markers with error bars; neighbouring colours differ in lightness as well as in hue.
"""

import os

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

INK = "#222222"
FAINT = "#8a8a8a"
COLORS = ("#0072B2", "#D55E00", "#00563F", "#CC79A7", "#332288", "#B98300")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
FOR_THE_SITE = "PHYSICS_OF_LEARNING_SITE"  # set in the environment of the kernels whose figures the site shows
WIDTH = 6.4  # inches; on a telephone of 390 pixels 10.5 points are 8 pixels
NARROW = 4.5  # inches: the widest figure with a slider that a telephone shows whole

STYLE = {
    "figure.figsize": (WIDTH, 3.9),
    "figure.constrained_layout.use": True,
    **dict.fromkeys(("figure.facecolor", "savefig.facecolor", "axes.facecolor"), "none"),
    "savefig.transparent": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "physics-of-learning",
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    "axes.titlelocation": "left",
    **dict.fromkeys(("axes.titlesize", "axes.labelsize"), 11),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.prop_cycle": cycler(color=COLORS),
    "font.size": 10.5,
    "legend.fontsize": 10.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "errorbar.capsize": 2,
    "mathtext.fontset": "dejavusans",
}


def use_style() -> None:
    """Switch the running notebook to the book's figure style and to SVG output, once, in the first cell.

    Returns
    -------
    None

    Examples
    --------
    >>> with mpl.rc_context():
    ...     use_style()
    ...     mpl.rcParams["lines.linewidth"]
    1.8
    """
    mpl.rcParams.update(STYLE)
    if not os.environ.get(FOR_THE_SITE):
        mpl.rcParams.update({"figure.facecolor": "white", "savefig.facecolor": "white", "savefig.transparent": False})
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


def with_residuals(*, height: float = 4.6) -> tuple[Figure, Axes, Axes]:
    """Make a figure with a main and, under it, a residual panel with its zero line.

    Parameters
    ----------
    height : float
        In inches.

    Returns
    -------
    figure, main, residual
        The Figure and the Axes of both panels.

    Examples
    --------
    >>> figure, main, residual = with_residuals()
    >>> plt.close(figure)
    """
    height = checks.number("height", height, above=0)
    figure, (main, residual) = plt.subplots(2, 1, sharex=True, figsize=(WIDTH, height), height_ratios=(3, 1))
    residual.axhline(0, color=FAINT, linewidth=1)
    return figure, main, residual


def theory_and_data(
    main: Axes,
    residual: Axes,
    x: ArrayLike,
    theory: ArrayLike,
    data: ArrayLike,
    error: ArrayLike,
    *,
    index: int = 0,
    label: str | None = None,
    relative: bool = False,
) -> Array[" n"]:
    """Draw theory as a line, data as markers with error bars, and what is left over in the residual panel.

    Parameters
    ----------
    main, residual : Axes
        Both panels of ``with_residuals``.
    x, theory, data, error : array_like (n,)
        Standard errors are > 0.
    index : int
        Colour, marker and line of the palette.
    label : str, optional
        Of the data.
    relative : bool
        Residuals are (data - theory) / theory, not in standard errors.

    Returns
    -------
    ndarray (n,)
        The residuals.

    Examples
    --------
    >>> figure, main, residual = with_residuals()
    >>> theory_and_data(main, residual, [1, 2], [1, 4], [1.5, 4], [0.5, 0.5]).tolist()
    [1.0, 0.0]
    >>> plt.close(figure)
    """
    x = checks.array("x", x, ndim=1)
    theory = checks.array("theory", theory, shape=x.shape)
    data = checks.array("data", data, shape=x.shape)
    error = checks.entries("error", error, above=0, shape=x.shape)
    index = checks.integer("index", index, at_least=0)
    if checks.boolean("relative", relative) and np.any(theory == 0):
        checks.fail("theory", "have no zero where residuals are relative to it", theory)
    look = {"color": COLORS[index % len(COLORS)]}
    marks = look | {"marker": MARKERS[index % len(MARKERS)], "linestyle": "none", "markerfacecolor": "none"}
    main.plot(x, theory, linestyle=LINES[index % len(LINES)], **look)
    main.errorbar(x, data, error, label=label, **marks)
    scale = theory if relative else error
    left_over = (data - theory) / scale  # (n,)
    residual.errorbar(x, left_over, error / np.abs(scale), **marks)
    residual.set_ylabel("(data − theory)\n/ theory" if relative else "(data − theory)\n/ std. error", fontsize=10.5)
    return left_over


def reference_slope(axes: Axes, x: ArrayLike, y: float, exponent: float, *, label: str | None = None) -> None:
    """Draw the power law  y · (t / x[0])^exponent  over [x[0], x[1]] on log-log axes, its exponent beside it.

    Parameters
    ----------
    axes : Axes
    x : array_like (2,)
        Begin and end, 0 < x[0] < x[1].
    y : float
        The value at x[0], > 0.
    exponent : float
    label : str, optional
        By default "slope <exponent>".

    Returns
    -------
    None

    Examples
    --------
    >>> figure, axes = plt.subplots()
    >>> reference_slope(axes, (1, 100), 2.0, -0.5)
    >>> axes.texts[0].get_text()
    'slope -0.5'
    >>> plt.close(figure)
    """
    x = checks.entries("x", x, above=0, shape=(2,))
    checks.fail_if(x[1] <= x[0], "x", "increase from its first to its second entry", tuple(x))
    y = checks.number("y", y, above=0)
    exponent = checks.number("exponent", exponent)
    axes.set(xscale="log", yscale="log")
    axes.plot(x, y * (x / x[0]) ** exponent, color=FAINT, linewidth=1.2, linestyle=(0, (4, 2)))
    middle, text = np.sqrt(x[0] * x[1]), label or f"slope {exponent:.3g}"
    place = (middle, y * (middle / x[0]) ** exponent)
    axes.annotate(text, place, xytext=(6, -12), textcoords="offset points", color=INK)


def label_line(
    axes: Axes, x: float, y: float, text: str, *, index: int = 0, offset: tuple[float, float] = (4, 0)
) -> None:
    """Write beside a point of a curve, in the curve's colour: a direct label, not a legend.

    Parameters
    ----------
    axes : Axes
    x, y : float
        The point.
    text : str
    index : int
        Of the palette.
    offset : tuple
        From the point to the text, in points.

    Returns
    -------
    None

    Examples
    --------
    >>> figure, axes = plt.subplots()
    >>> label_line(axes, 1, 2, "theory", index=1)
    >>> axes.texts[0].get_color() == COLORS[1]
    True
    >>> plt.close(figure)
    """
    x, y = checks.number("x", x), checks.number("y", y)
    color = COLORS[checks.integer("index", index, at_least=0) % len(COLORS)]
    axes.annotate(text, (x, y), xytext=offset, textcoords="offset points", color=color, va="center")

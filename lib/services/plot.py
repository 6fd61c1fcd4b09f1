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
from matplotlib_inline.backend_inline import set_matplotlib_formats

from lib.common import checks

INK = "#222222"
FAINT = "#8a8a8a"
COLORS = ("#0072B2", "#D55E00", "#00563F", "#CC79A7", "#332288", "#B98300")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
FOR_THE_SITE = "PHYSICS_OF_LEARNING_SITE"  # set in the environment of the kernels whose figures the site shows
WIDTH = 6.4  # inches; on a telephone of 390 pixels 10.5 points are 8 pixels

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


def use_style():
    """Switch the running notebook to the book's figure style and to SVG output.  Call it once, in the first cell."""
    mpl.rcParams.update(STYLE)
    if not os.environ.get(FOR_THE_SITE):
        mpl.rcParams.update({"figure.facecolor": "white", "savefig.facecolor": "white", "savefig.transparent": False})
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


def with_residuals(*, height=4.6):
    """A figure of `height` inches with a main and, under it, a residual panel with its zero line: it and both Axes."""
    height = checks.number("height", height, above=0)
    figure, (main, residual) = plt.subplots(2, 1, sharex=True, figsize=(WIDTH, height), height_ratios=(3, 1))
    residual.axhline(0, color=FAINT, linewidth=1)
    return figure, main, residual


def theory_and_data(main, residual, x, theory, data, error, *, index=0, label=None, relative=False):
    """Draw theory as a line, data as markers with error bars, and what is left over in the residual panel.

    `main`, `residual`: of :func:`with_residuals`; `x`, `theory`, `data`, `error` (n,); `index`: of the palette;
    `label`: of the data; `relative`: (data - theory) / theory, not in standard errors.  Returns the residuals.
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


def reference_slope(axes, x, y, exponent, *, label=None):
    """Draw the power law y · (t / x[0])**exponent over [x[0], x[1]] on log-log axes, its exponent beside it.

    `x`: (begin, end), 0 < x[0] < x[1]; `y` > 0: the value at x[0]; `label`: default "slope <exponent>".
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


def label_line(axes, x, y, text, *, index=0, offset=(4, 0)):
    """Write `text` beside the point (x, y) of a curve, in the curve's colour: a direct label, not a legend."""
    x, y = checks.number("x", x), checks.number("y", y)
    color = COLORS[checks.integer("index", index, at_least=0) % len(COLORS)]
    axes.annotate(text, (x, y), xytext=offset, textcoords="offset points", color=color, va="center")

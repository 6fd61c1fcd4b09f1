"""Draw the picture that a shared link shows, ``book/_static/preview.png``.

Run ``python -m tools.site.preview_picture`` after a change.
"""

import matplotlib.pyplot as plt
import numpy as np

from lib.foundations import stability
from lib.foundations.committee import Overlaps
from lib.services import plot
from tools.build import project

INCHES, DOTS = (12, 6.3), 100  # 1200 x 630 pixels, the size that services ask for
PAPER, INK, CURVE = "#ffffff", "#1b1f24", "#0b6e99"


def draw():
    """The error of the start page's network, large and without small print."""
    size, learning_rate = 3, 0.3
    cross = 1e-3 * np.array([[1.0, -0.5, 0.2], [0.3, 0.8, -0.6], [-0.4, 0.1, 0.9]])
    times = np.geomspace(1, 2500, 400)
    path = Overlaps(0.01 * np.eye(size), cross, np.eye(size)).solve(times, learning_rate, second_order=False)
    figure, axes = plt.subplots(figsize=INCHES, facecolor=PAPER)
    figure.subplots_adjust(left=0.05, right=0.95, bottom=0.11, top=0.62)
    axes.loglog(times, path.generalization_error, color=CURVE, linewidth=5)
    axes.axhline(stability.plateau(np.eye(size)).generalization_error, color=plot.FAINT, linestyle="--", linewidth=2)
    axes.set(xticks=[], yticks=[])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("examples", fontsize=22, color=INK)
    axes.set_ylabel("error", fontsize=22, color=INK)
    figure.text(0.05, 0.83, "The Physics of Learning", fontsize=50, color=INK, weight="bold")
    figure.text(0.05, 0.71, "Executable lecture notes: derived, computed and checked", fontsize=26, color=INK)
    return figure


if __name__ == "__main__":
    target = project.ROOT / "book" / "_static" / "preview.png"
    draw().savefig(target, dpi=DOTS, pil_kwargs={"optimize": True})
    print(f"{target.relative_to(project.ROOT)}: {target.stat().st_size // 1024} kB")

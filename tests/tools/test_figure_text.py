"""The size of words in figures: measured in what matplotlib writes."""

import io

import matplotlib.pyplot as plt
import pytest

from lib.services import plot
from tools.site import figure_text


def drawn(width, size, **text):
    """The SVG of a figure, `width` inches wide, with one word of `size` points."""
    with plt.rc_context(plot.STYLE):
        figure, axes = plt.subplots(figsize=(width, 3))
        axes.axis("off")
        axes.text(0.5, 0.5, "word", fontsize=size, **text)
        file = io.StringIO()
        figure.savefig(file, format="svg")
        plt.close(figure)
    return file.getvalue()


@pytest.mark.parametrize("rotation", [0, 90])
def test_a_wide_figure_shrinks_to_the_page(rotation):
    assert figure_text.smallest(drawn(7.16, 10, rotation=rotation), width=358) == pytest.approx(
        10 * 358 / 7.16 / 72, abs=0.01
    )


def test_a_narrow_figure_keeps_its_size():
    assert figure_text.smallest(drawn(3, 12)) == 16


def test_an_index_is_not_counted_and_the_smallest_word_is():
    with plt.rc_context(plot.STYLE):
        figure, axes = plt.subplots(figsize=(6, 3))
        axes.axis("off")
        axes.text(0.2, 0.5, "$x_{index}$", fontsize=11)
        axes.text(0.7, 0.5, "small", fontsize=9)
        file = io.StringIO()
        figure.savefig(file, format="svg")
        plt.close(figure)
    assert figure_text.smallest(file.getvalue()) == pytest.approx(9 * 358 / 432, abs=0.01)


def test_a_figure_without_words_passes():
    assert figure_text.smallest('<svg viewBox="0 0 10 10"></svg>') == float("inf")

"""The figure style: what is drawn is what was given, and the palette can be told apart without colour."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

from lib.services import plot
from tools.build import project

mpl.use("agg")
X = np.array([1.0, 2.0, 4.0])


@pytest.fixture(autouse=True)
def own_settings():
    with mpl.rc_context():
        yield
    plt.close("all")


def lightness(color):
    """Relative luminance of the WCAG definition."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return np.dot((0.2126, 0.7152, 0.0722), linear)


def test_figures_are_transparent_on_the_site_and_have_a_ground_elsewhere(monkeypatch):
    assert plot.FOR_THE_SITE in project.kernel_environment(project.ROOT)
    for value, ground in (("1", "none"), ("", "white")):
        monkeypatch.setenv(plot.FOR_THE_SITE, value)
        plot.use_style()
        assert mpl.rcParams["savefig.transparent"] == (ground == "none")
        assert mpl.rcParams["savefig.facecolor"] == mpl.rcParams["figure.facecolor"] == ground
    assert 1.05 / (lightness(plot.INK) + 0.05) > 7


def test_neighbours_in_the_palette_differ_in_lightness():
    light = np.array([lightness(color) for color in plot.COLORS])
    assert np.all(np.abs(np.diff(light)) > 0.06)
    assert np.all(1.05 / (light + 0.05) > 3), "a colour is too pale for a line or a label on white"
    assert len(set(plot.MARKERS)) == len(set(plot.LINES)) == len(plot.COLORS)


def test_figure_holds_theory_data_and_residuals():
    figure, main, residual = plot.with_residuals()
    theory, data, error = X**2, X**2 + [0.1, -0.2, 0.3], np.array([0.1, 0.1, 0.1])
    shown = plot.theory_and_data(main, residual, X, theory, data, error, label="square")
    np.testing.assert_allclose(shown, [1, -2, 3])
    np.testing.assert_allclose(main.lines[0].get_ydata(), theory)
    np.testing.assert_allclose(main.lines[1].get_ydata(), data)
    np.testing.assert_allclose(
        plot.theory_and_data(main, residual, X, theory, data, error, relative=True), (data - theory) / theory
    )
    assert residual.get_shared_x_axes().joined(main, residual)
    assert figure.get_figwidth() == plot.WIDTH


def test_reference_slope_has_its_slope():
    _, axes = plt.subplots()
    plot.reference_slope(axes, (2, 200), 5, -0.5)
    x, y = axes.lines[0].get_data()
    assert np.diff(np.log(y))[0] / np.diff(np.log(x))[0] == pytest.approx(-0.5) and y[0] == 5
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.texts[0].get_text() == "slope -0.5"


def test_label_is_in_the_curves_colour():
    _, axes = plt.subplots()
    plot.label_line(axes, 1, 2, "theory", index=1)
    assert axes.texts[0].get_text() == "theory" and axes.texts[0].get_color() == plot.COLORS[1]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda a: plot.theory_and_data(a, a, X, X[:2], X, X), "theory"),
        (lambda a: plot.theory_and_data(a, a, X, X, [1.0, np.nan, 1.0], X), "data"),
        (lambda a: plot.theory_and_data(a, a, X, X, X, 0 * X), "error"),
        (lambda a: plot.theory_and_data(a, a, X, 0 * X, X, X, relative=True), "theory"),
        (lambda a: plot.reference_slope(a, (2, 1), 1, 1), "x"),
    ],
)
def test_helpers_refuse(call, name):
    _, axes = plt.subplots()
    with pytest.raises(ValueError, match=f"^{name} must"):
        call(axes)


def test_colours_begin_again_after_the_last():
    figure, main, residual = plot.with_residuals()
    plot.theory_and_data(main, residual, X, X, X, X, index=len(plot.COLORS) + 1)
    assert main.lines[0].get_color() == plot.COLORS[1] and main.lines[1].get_marker() == plot.MARKERS[1]

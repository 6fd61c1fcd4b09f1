"""Figures with a slider: what they hold, that frames are put together rightly, and what is refused."""

import json
import re

import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell

from lib.services import explore

VALUES = [0.5, 1.0, 2.0]


def line(slope, *, limits=(0, 2)):
    figure, axes = plt.subplots(figsize=(3, 2))
    axes.plot([0, 1], [0, slope])
    if limits:
        axes.set(ylim=limits)
    return figure


def output(monkeypatch, draw=line, values=VALUES, **changed):
    """The bundle that a notebook's cell would put out."""
    seen = []
    monkeypatch.setattr(InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr(explore, "display", lambda bundle, raw: seen.append(bundle))
    options = {"name": "lines", "label": "slope s", "sentence": "It rises by {}.".format, "alt": "A <line>."}
    explore.slider(draw, values, **options | {"start": 1} | changed)
    return seen[0]


def data(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page)[1])


def test_the_static_figure_and_the_text_are_those_of_the_first_value(monkeypatch):
    bundle = output(monkeypatch)
    assert bundle["image/svg+xml"] == explore._frame(line, 1.0)
    assert bundle["text/plain"] == "slope s = 1: It rises by 1.0."


def test_the_page_is_complete_and_can_be_used_without_a_mouse(monkeypatch):
    page = output(monkeypatch)["text/html"]
    assert 'aria-label="A &lt;line&gt;."' in page and 'aria-live="polite"' in page and 'aria-valuetext="1"' in page
    assert re.search(r'<label for="(lines-input)">slope s</label> <input id="\1" type="range" min="0" max="2"', page)
    assert not re.search(r'(src|href)="(?!#)', page), "something is fetched from elsewhere"
    assert "hidden" in page.split("<input")[0], "the slider is there without a script, and does nothing"


def test_the_page_knows_how_wide_the_picture_is_so_that_its_words_have_a_size(monkeypatch):
    page = output(monkeypatch)["text/html"]  # of a figure three inches wide
    box, picture = re.search(r'<div class="explorable-picture" style="--points: (\d+)">(<svg.*?>)', page).groups()
    assert box == "216" and "width=" not in picture


def test_only_what_changes_is_kept_and_every_frame_can_be_put_together(monkeypatch):
    page = output(monkeypatch)["text/html"]
    changes = data(page)["changes"]
    shown = list(explore.ElementTree.fromstring(re.search(r"<svg.*?</svg>", page, re.DOTALL)[0]).iter())[1:]
    assert [(key, len(values), which) for _, key, values, which in changes] == [("d", 3, [0, 1, 2])]
    ((number, _, values, _),) = changes
    assert shown[number].get("d") == values[1], "the page counts its elements in another way"
    for value, path in zip(VALUES, values):
        parts = list(explore.ElementTree.fromstring(explore._frame(line, value)).iter())[1:]
        assert parts[number].get("d") == path


def test_ids_of_two_figures_of_a_page_differ(monkeypatch):
    one, other = (output(monkeypatch, name=name)["text/html"] for name in ("one", "other"))
    ids = [set(re.findall(r'\bid="([^"]+)"', page)) for page in (one, other)]
    assert ids[0] and not ids[0] & ids[1]
    for page, known in zip((one, other), ids):
        assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', page)) <= known


def test_every_frame_has_the_shapes_that_it_refers_to(monkeypatch):
    def draw(value):
        figure, axes = plt.subplots(figsize=(3, 2))
        axes.plot([0.5], [0.5], "s" if value < 2 else "^")
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="below" if value < 2 else "above")
        return figure

    page = output(monkeypatch, draw)["text/html"]
    drawing = re.search(r"<svg.*?</svg>", page, re.DOTALL)[0]
    for frame in range(len(VALUES)):
        shown = list(explore.ElementTree.fromstring(drawing).iter())[1:]
        for number, key, values, which in data(page)["changes"]:
            shown[number].set(key.replace("xlink:", f"{{{explore._LINK}}}"), values[which[frame]])
        ids = {part.get("id") for part in shown}
        targets = {part.get(f"{{{explore._LINK}}}href", "#")[1:] for part in shown} - {""}
        assert targets and targets <= ids and all(name is None or name.startswith("lines-") for name in ids)


def test_no_figure_is_left_open(monkeypatch):
    before = plt.get_fignums()
    output(monkeypatch)
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "Two words"}, "name must be small letters"),
        ({"values": [1.0]}, "values must hold 2 to 100"),
        ({"start": 3}, "start must be below 3"),
        ({"draw": lambda slope: line(10**slope, limits=None)}, "draw must return figures of the same elements"),
    ],
)
def test_what_cannot_be_shown_is_refused(monkeypatch, changed, message):
    with pytest.raises(ValueError, match=message):
        output(monkeypatch, **changed)


def test_an_output_too_large_for_a_page_is_refused(monkeypatch):
    def noisy(seed):
        figure, axes = plt.subplots()
        axes.plot([((i * (i + seed)) % 97) for i in range(4000)])
        axes.set(ylim=(0, 97))
        return figure

    with (
        plt.rc_context({"path.simplify": False}),
        pytest.raises(ValueError, match="values must give an output of at most"),
    ):
        output(monkeypatch, noisy, range(12))

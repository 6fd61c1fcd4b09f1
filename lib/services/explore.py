"""Figures with a slider: frames that matplotlib drew beforehand, a range input, a sentence that says what is seen.

The output holds no reference to anywhere else; without JavaScript it is the figure of the first value shown.
"""

import html
import io
import json
import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from lib.common import checks

LARGEST = 250_000  # bytes of an output
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_COORDINATES = re.compile(r'(?<= )(?:d|x|y)="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

_SCRIPT = """
(() => {
  const box = document.getElementById(NAME), data = JSON.parse(box.querySelector("script[type]").textContent);
  const parts = [...box.querySelector("svg").querySelectorAll("*")], input = box.querySelector("input");
  const show = () => {
    const frame = +input.value;
    for (const [part, attribute, values, which] of data.changes) {
      parts[part].setAttribute(attribute, values[which[frame]]);
    }
    input.setAttribute("aria-valuetext", data.labels[frame]);
    box.querySelector("output").textContent = data.labels[frame];
    box.querySelector("[aria-live]").textContent = data.sentences[frame];
  };
  const picture = box.querySelector(".explorable-picture");
  new ResizeObserver(() => { picture.tabIndex = picture.scrollWidth > picture.clientWidth ? 0 : -1; }).observe(picture);
  box.querySelector(".explorable-control").hidden = false;
  input.addEventListener("input", show);
  show();
})();
"""


def slider(
    draw: Callable,
    values: Iterable,
    *,
    name: str,
    label: str,
    sentence: Callable,
    alt: str,
    start: int = 0,
    show: Callable = "{:g}".format,
) -> None:
    """Show a figure whose parameter the reader moves.

    A telephone shows figures up to plot.NARROW wide whole; wider ones scroll sideways, so that their words can be read.
    The frames must consist of the same elements: fix the limits of the axes, and put words that change into the
    sentence.

    Parameters
    ----------
    draw : callable
        Function of a value that returns a Figure.
    values : iterable
        2 to 100 of them, all in an output of at most 250 kB.
    name : str
        The id of the figure: small letters, digits and hyphens.
    label, alt : str
        What the slider changes; what the figure shows.
    sentence, show : callable
        Functions of a value: what is seen then; how the value is written.
    start : int
        Which value is shown first.

    Returns
    -------
    None

    Examples
    --------
    >>> def draw(slope):
    ...     figure, axes = plt.subplots()
    ...     axes.plot([0, 1], [0, slope])
    ...     axes.set(ylim=(0, 2))
    ...     return figure
    >>> slider(draw, [1, 2], name="line", label="slope", sentence="It rises by {}.".format, alt="A line.")
    slope = 1: It rises by 1.
    """
    checks.fail_if(not _NAME.fullmatch(str(name)), "name", "be small letters, digits and hyphens", name)
    values = list(values)
    checks.fail_if(not 2 <= len(values) <= 100, "values", "hold 2 to 100 values", f"{len(values)}")
    start = checks.integer("start", start, at_least=0)
    checks.fail_if(start >= len(values), "start", f"be below {len(values)}, the number of values", start)
    frames = [_frame(draw, deepcopy(value)) for value in values]
    labels, sentences = [show(value) for value in values], [str(sentence(value)) for value in values]
    first, drawing = frames[start], ElementTree.fromstring(frames[start])
    text = f"{label} = {labels[start]}: {sentences[start]}"
    changes = _changes([list(ElementTree.fromstring(frame).iter())[1:] for frame in frames])  # without the root
    page = _page(name, label, alt, start, drawing, changes, labels, sentences)
    if len(page) > LARGEST:
        checks.fail("values", f"give an output of at most {LARGEST // 1000} kB: take fewer", f"{len(page) // 1000} kB")
    if not InteractiveShell.initialized():
        print(text)
        return
    display({"text/plain": text, "image/svg+xml": first, "text/html": page}, raw=True)


def _frame(draw, value):
    """The SVG of one value without metadata, with coordinates to a tenth of a point."""
    figure = draw(value)
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "physics-of-learning"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    short = partial(_NUMBER.sub, lambda number: f"{float(number[0]):.1f}".removesuffix(".0"))
    return _COORDINATES.sub(lambda match: short(match[0]), _METADATA.sub("", file.getvalue()))


def _changes(frames):
    """What differs: [number of the element, attribute, different values, which of them in each frame]."""
    tags = [[element.tag for element in frame] for frame in frames]
    if any(other != tags[0] for other in tags):
        checks.fail("draw", "return figures of the same elements: fix the limits of the axes", "figures that differ")
    found = []
    for number, elements in enumerate(zip(*frames, strict=True)):
        for attribute in sorted(set().union(*(element.attrib for element in elements))):
            given = [element.get(attribute, "") for element in elements]
            different = list(dict.fromkeys(given))
            if len(different) > 1:
                plain = attribute.replace(f"{{{_LINK}}}", "xlink:")
                found.append([number, plain, different, [different.index(value) for value in given]])
    return found


def _page(name, label, alt, start, drawing, changes, labels, sentences):
    """The HTML of the figure."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK)
    drawing.attrib |= {"role": "img", "aria-label": alt}
    points = float(drawing.get("viewBox").split()[2])
    for size in ("width", "height"):
        drawing.attrib.pop(size)
    svg = ElementTree.tostring(drawing, encoding="unicode")
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    changes = [
        [n, key, [re.sub(r"^" if key == "id" else r"url\(#|^#", rf"\g<0>{name}-", v) for v in vs], which]
        for n, key, vs, which in changes
    ]
    data = json.dumps({"changes": changes, "labels": labels, "sentences": sentences}, ensure_ascii=False)
    data = data.replace("</", "<\\/")  # nothing in it ends the script
    script = _SCRIPT.strip().replace("NAME", json.dumps(name))
    esc = html.escape
    return (
        f'<figure class="explorable" id="{name}">'
        f'<div class="explorable-picture" style="--points: {points:g}">{svg}</div>'
        f'<div class="explorable-control" hidden><label for="{name}-input">{esc(label)}</label> '
        f'<input id="{name}-input" type="range" min="0" max="{len(labels) - 1}" step="1" value="{start}" '
        f'aria-valuetext="{esc(labels[start])}"> <output for="{name}-input">{esc(labels[start])}</output></div>'
        f'<figcaption><span class="caption-text" aria-live="polite">{esc(sentences[start])}</span></figcaption>'
        f'<script type="application/json">{data}</script>'
        f"<script>{script}</script></figure>"
    )

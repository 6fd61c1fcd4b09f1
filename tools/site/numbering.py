"""What every label of the book stands for: its page, and the number or the title that the site shows for it.

Everything is read from the sources, so that notebooks can be written without Sphinx; a test of the site compares all
numbers. Sphinx counts figures, equations, boxed results and exercises each for themselves: within a numbered chapter,
and through all other pages in the order of ``_toc.yml``.
"""

import re
from collections import Counter
from dataclasses import dataclass

import yaml

from tools.build import project
from tools.site import markup

SHOWN = re.compile(r'\blabel="(eq-[a-z0-9-]+)"')  # an equation that a cell computes and shows
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A label's page; its kind (section, figure, equation, exercise, or the name of a boxed result), number and
    title.
    """

    page: str
    kind: str
    number: str
    title: str = ""

    @property
    def name(self):
        """How a sentence calls it: "Theorem 3.1", "Fig. 2", "(4.5)", or the title of a section."""
        if self.kind == "section":
            return self.title
        return (
            f"({self.number})"
            if self.kind == "equation"
            else f"{'Fig.' if self.kind == 'figure' else self.kind.title()} {self.number}"
        )

    @property
    def full_name(self):
        """The name with the title in parentheses, as on top of a box."""
        return f"{self.name} ({self.title})" if self.title and self.kind != "section" else self.name


@dataclass(frozen=True)
class Book:
    """The titles of all pages, the places of all labels, the pages that are notebooks, and how often a number was
    given.
    """

    titles: dict
    places: dict
    notebooks: frozenset


def chapter_numbers(toc):
    """The number of each page of a numbered part, counted through all parts."""
    pages = [chapter["file"] for part in toc.get("parts", []) if part.get("numbered") for chapter in part["chapters"]]
    return {page: number for number, page in enumerate(pages, 1)}


def cells(root, page):
    """The cells of a page as pairs of type and source, with their metadata; a page that is no notebook is one cell."""
    path = (root / page).with_suffix(".md")
    if not project.is_notebook(path):
        return [("markdown", project.read(path), {})]
    return [(cell.cell_type, cell.source, cell.metadata) for cell in project.read_notebook(root, path).cells]


def _labelled(cells):
    """What a page numbers or names, in order: triples of label, kind and title."""
    waiting = []  # targets whose heading is still to come
    for kind, source, metadata in cells:
        if kind == "code":
            yield from ((label, "equation", "") for label in SHOWN.findall(source))
            figure = metadata.get("mystnb", {}).get("figure")
            if figure is not None:
                yield figure.get("name", ""), "figure", ""
            continue
        for block in markup.every(source):
            if block.kind == "target":
                waiting.append(block.name)
            elif block.kind == "text" and (heading := HEADING.search(block.text)):
                yield from ((label, "section", heading[1]) for label in waiting)
                waiting = []
            elif block.kind == "math" and block.name or block.kind == "environment" and not block.name.endswith("*"):
                yield block.name if block.kind == "math" else "", "equation", ""
            elif block.kind == "directive" and block.name == "math" and "label" in block.options:
                yield block.options["label"], "equation", ""
            elif block.kind == "directive" and (block.name == "exercise" or block.name.startswith("prf:")):
                yield block.options.get("label", ""), block.name.removeprefix("prf:"), block.argument


def read(root):
    """The :class:`Book` of a checkout."""
    chapters = chapter_numbers(yaml.safe_load(project.read(root / "_toc.yml")))
    titles, places, counts = {}, {}, Counter()
    for page in project.toc_pages(root):
        content = cells(root, page)
        titles[page] = next(
            (m[1] for kind, text, _ in content if kind == "markdown" and (m := HEADING.search(text))), page
        )
        chapter = chapters.get(page)
        for label, kind, title in _labelled(content):
            counts[kind, chapter] += kind != "section"
            number = str(counts[kind, chapter])
            if label:
                places[label] = Place(page, kind, number if chapter is None else f"{chapter}.{number}", title)
    notebooks = frozenset(path.relative_to(root).with_suffix("").as_posix() for path in project.notebooks(root))
    return Book(titles, places, notebooks)

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


@dataclass(frozen=True)
class Place:
    """A label's page; its kind (section, figure, equation, exercise, or a boxed result's name), number and title."""

    page: str
    kind: str
    number: str
    title: str = ""

    @property
    def name(self):
        """How a sentence calls it: "Theorem 3.1", "Fig. 2", "(4.5)", or the title of a section."""
        if self.kind == "section":
            return self.title
        if self.kind == "equation":
            return f"({self.number})"
        return f"{'Fig.' if self.kind == 'figure' else self.kind.title()} {self.number}"

    @property
    def full_name(self):
        """The name with the title in parentheses, as on top of a box."""
        return f"{self.name} ({self.title})" if self.title and self.kind != "section" else self.name


@dataclass(frozen=True)
class Book:
    """The titles of all pages, the places of all labels, and the pages that are notebooks."""

    titles: dict
    places: dict
    notebooks: frozenset


def cells(root, page):
    """The cells of a page as triples of type, source and metadata; a page that is no notebook is one cell."""
    path = (root / page).with_suffix(".md")
    if not project.is_notebook(path):
        return [("markdown", project.read(path), {})]
    return [(cell.cell_type, cell.source, cell.metadata) for cell in project.read_notebook(root, path).cells]


def _labelled(cells):
    """What a page numbers or names, in order: triples of label, kind and title; its headings are sections."""
    waiting = []  # targets whose heading is still to come
    for cell, source, metadata in cells:
        if cell == "code":
            yield from ((label, "equation", "") for label in SHOWN.findall(source))
            figure = metadata.get("mystnb", {}).get("figure")
            yield from [(figure.get("name", ""), "figure", "")] if figure else []
            continue
        for block in markup.every(source):
            kind, name = block.kind, block.name.removeprefix("prf:")
            if kind == "target":
                waiting.append(name)
            elif kind == "heading":
                yield from ((label, "section", block.argument) for label in waiting or [""])
                waiting = []
            elif kind == "math" and name or kind == "environment" and not name.endswith("*"):
                yield name if kind == "math" else "", "equation", ""
            elif kind == "directive" and name == "math" and "label" in block.options:
                yield block.options["label"], "equation", ""
            elif kind == "directive" and (name == "exercise" or name != block.name):
                yield block.options.get("label", ""), name, block.argument


def read(root):
    """The :class:`Book` of a checkout."""
    parts = yaml.safe_load(project.read(root / "_toc.yml")).get("parts", [])
    numbered = [chapter["file"] for part in parts if part.get("numbered") for chapter in part["chapters"]]
    titles, places, counts = {}, {}, Counter()
    for page in project.toc_pages(root):
        chapter = numbered.index(page) + 1 if page in numbered else None
        for label, kind, title in _labelled(cells(root, page)):
            counts[kind, chapter] += 1
            number = str(counts[kind, chapter])
            if kind == "section":
                titles.setdefault(page, title)
            if label:
                places[label] = Place(page, kind, number if chapter is None else f"{chapter}.{number}", title)
        titles.setdefault(page, page)
    notebooks = frozenset(path.relative_to(root).with_suffix("").as_posix() for path in project.notebooks(root))
    return Book(titles, places, notebooks)

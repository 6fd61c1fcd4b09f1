"""Which chapter needs which: read from the prerequisites that every chapter declares in its objectives box, and
checked.

A chapter names the chapters that it needs by ``{doc}`` or ``{ref}`` between **Prerequisites:** and **Time:**.
"""

import posixpath
import re
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import yaml

from tools.build import project

BOX = re.compile(r"\*\*Prerequisites:\*\*(?P<needs>.*?)\*\*Time:\*\*(?P<time>[^.]*)", re.S)
_ROLE = re.compile(r"\{(doc|ref)\}`(?:[^`<]*<)?([^`<>]+)>?`")
_LABEL = re.compile(r"^\(([^()\s]+)\)=", re.M)
_TIME = re.compile(r"about (?:(?P<hours>\w+) hours?)?(?P<half> and a half)?(?:(?: and )?(?P<minutes>\d+) minutes)?")
_WORDS = {word: number for number, word in enumerate(["no", "one", "two", "three", "four", "five", "six"])} | {
    "a": 1,
    "an": 1,
}


@dataclass(frozen=True)
class Chapter:
    """A chapter: its page, its title, the caption of its part, its minutes, and the pages of the chapters that it names
    as needed.
    """

    page: str
    title: str
    part: str
    minutes: int
    needs: tuple

    @property
    def short(self):
        """A title of a few words, from the name of the file."""
        return self.page.rpartition("/")[2].replace("-", " ").capitalize()


def minutes(text):
    """Minutes of a time such as "about 90 minutes" or "about two hours and a half, in three sittings"."""
    match = _TIME.match(text.strip())
    hours = match["hours"] if match else None
    if not match or not (hours or match["minutes"]) or (hours and hours not in _WORDS and not hours.isdigit()):
        raise ValueError(
            f"the time must read like 'about 90 minutes' or 'about two hours and a half', got {text.strip()[:40]!r}"
        )
    whole = int(hours) if hours and hours.isdigit() else _WORDS[hours] if hours else 0
    return 60 * whole + (30 if match["half"] else 0) + int(match["minutes"] or 0)


def _captions(root):
    """Caption of the part of every page that is listed in one."""
    toc = yaml.safe_load(project.read(root / "_toc.yml"))
    return {chapter["file"]: part["caption"] for part in toc.get("parts", []) for chapter in part["chapters"]}


def labels(texts):
    """Page of every label ``(name)=`` in the texts of pages."""
    return {label: page for page, text in texts.items() for label in _LABEL.findall(text)}


def declared(page, texts, places):
    """Minutes of a chapter, and the pages that it names as needed; ``places`` are the :func:`labels` of the texts of
    all pages.
    """
    box = BOX.search(texts[page])
    if box is None:
        raise ValueError(
            f"{page} declares no prerequisites: write **Prerequisites:** … **Time:** … into its objectives box"
        )
    try:
        time = minutes(box["time"])
    except ValueError as error:
        raise ValueError(f"{page}: {error}") from None
    return time, [_target(page, role, target, texts, places) for role, target in _ROLE.findall(box["needs"])]


def chapters(root):
    """The chapters of the book (notebooks in a folder of ``book/``), in reading order.

    Returns
    -------
    dict             page -> Chapter

    Raises
    ------
    ValueError       if a chapter declares no prerequisites or no time, names a page or label that does not exist or
                     comes later in the book, or if chapters need each other in a circle
    """
    captions = _captions(root)
    texts = {page: project.read((root / page).with_suffix(".md")) for page in project.toc_pages(root)}
    places = labels(texts)
    mine = [page for page in captions if page.count("/") > 1 and project.is_notebook((root / page).with_suffix(".md"))]
    found = {}
    for page in mine:
        time, named = declared(page, texts, places)
        title = re.search(r"^# (.+)", texts[page], re.M)[1]
        needs = tuple(dict.fromkeys(name for name in named if name in mine))
        found[page] = Chapter(page, title, captions[page], time, needs)
    check(found)
    return found


def _target(page, role, target, texts, labels):
    """The page that a role in the prerequisites of a page leads to."""
    if role == "doc":
        path = (
            target[1:]
            if target.startswith("/")
            else posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        )
        if path not in texts:
            raise ValueError(f"{page}: the prerequisite {{doc}}`{target}` names no page of _toc.yml")
        return path
    if target not in labels:
        raise ValueError(
            f"{page}: the prerequisite {{ref}}`{target}` names no label; the page that it means needs the line "
            f"({target})="
        )
    return labels[target]


def check(found):
    """Raise ``ValueError`` if chapters need each other in a circle, or one needs a chapter that comes later in the
    book.
    """
    try:
        TopologicalSorter({page: chapter.needs for page, chapter in found.items()}).prepare()
    except CycleError as error:
        circle = " needs ".join(reversed(error.args[1]))
        raise ValueError(f"chapters need each other in a circle: {circle}; drop one of these prerequisites") from None
    order = {page: number for number, page in enumerate(found)}
    for page, chapter in found.items():
        for needed in chapter.needs:
            if order[needed] > order[page]:
                raise ValueError(
                    f"{page} needs {needed}, which comes later in _toc.yml: move one of them or drop the prerequisite"
                )


def all_needed(found, page):
    """Every chapter that must be read before a page, directly or not, in reading order."""
    needed, waiting = set(), [page]
    while waiting:
        for name in found[waiting.pop()].needs:
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    return [name for name in found if name in needed]


def reading_minutes(found, pages):
    """Minutes that some chapters take together with everything that they need, each chapter counted once."""
    pages = set(pages)
    return sum(found[page].minutes for page in pages.union(*(all_needed(found, page) for page in pages)))


def arrows(found):
    """Pairs (needed, page) that no longer way implies: what a drawing has to show."""
    for page, chapter in found.items():
        behind = {name for needed in chapter.needs for name in all_needed(found, needed)}
        yield from ((needed, page) for needed in chapter.needs if needed not in behind)


def ranks(found):
    """Place of every chapter within its part: 0 if it needs no other chapter of the part, else one more than those it
    needs.
    """
    made = {}
    for page, chapter in found.items():
        made[page] = 1 + max((made[name] for name in chapter.needs if found[name].part == chapter.part), default=-1)
    return made

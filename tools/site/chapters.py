"""The chapters of the book, and the lists made of them: paths, syllabi, what needs what, the problem sets.

A chapter is declared in two places and nowhere else: ``_toc.yml`` gives its part and place, and the page says the rest,
what it is ``about`` in its front matter, and at **Prerequisites:** and **Time:** what it needs and how long it takes.
The lists are MyST, which the site and the plain notebooks read alike.
"""

import posixpath
import re
from dataclasses import dataclass

import yaml

from tools.build import project
from tools.course import assignments

BOX = re.compile(r"\*\*Prerequisites:\*\*(?P<needs>.*?)\*\*Time:\*\*\s+about\s+(?P<minutes>\d+)\s+minutes", re.S)
ROLE = re.compile(r"\{(doc|ref)\}`(?:[^`<]*<)?([^`<>]+)>?`")
LABEL = re.compile(r"^\(([^()\s]+)\)=", re.M)
FOLDED = re.compile(r"^(:{3,})\{[^\n]*\n(?::[^\n]*\n)*?:class:[^\n]*dropdown.*?^\1\s*$", re.M | re.S)
DERIVES = re.compile(r"^\$\$|\\begin\{align|\bshow\(", re.M)
WORDS_A_MINUTE = {True: 15, False: 30}  # of a student with a pencil, in a section that derives and in one that does not


@dataclass(frozen=True)
class Chapter:
    """A chapter's page, title, part (as its caption says), subject in a sentence, minutes, and the pages it needs."""

    page: str
    title: str
    part: str
    about: str
    minutes: int
    needs: tuple


def words(text):
    """Words of prose, a formula counted as one."""
    return len(re.sub(r"\$\$.*?\$\$|\$[^$]*\$|```.*?```|:::\{[^\n]*|\{[a-z:]+\}", " x ", text, flags=re.DOTALL).split())


def reading_minutes(text):
    """The time of a chapter by the book's one rule; a section derives if it displays an equation.

    Exercises, what follows them, and folded text are left out.
    """
    main = FOLDED.sub("", re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S).partition("\n## Exercises")[0])
    sections = re.split(r"^## ", main, flags=re.M)
    return sum(words(section) / WORDS_A_MINUTE[bool(DERIVES.search(section))] for section in sections)


def front_matter(text):
    """What a page says between the lines of three dashes at its top."""
    return yaml.safe_load(text.split("\n---")[0]) if text.startswith("---") else {}


def chapters(root):
    """The chapters (notebooks in a folder of ``book/``) by page, in reading order.

    Raises
    ------
    ValueError
        If one lacks a declaration, or needs a page that does not exist or a chapter that comes later in the book.
    """
    toc = yaml.safe_load(project.read(root / "_toc.yml"))
    part = {chapter["file"]: part["caption"] for part in toc.get("parts", []) for chapter in part["chapters"]}
    texts = {page: project.read((root / page).with_suffix(".md")) for page in project.toc_pages(root)}
    labels = {label: page for page, text in texts.items() for label in LABEL.findall(text)}
    mine = [page for page in part if page.count("/") > 1 and project.is_notebook((root / page).with_suffix(".md"))]
    found = {}
    for page in mine:
        box, about = BOX.search(texts[page]), front_matter(texts[page]).get("about")
        if box is None:
            raise ValueError(
                f"{page} declares no prerequisites and no time: write **Prerequisites:** … **Time:** about 60 minutes"
            )
        if not about:
            raise ValueError(f"{page} does not say what it is about: write a sentence, about: …, into its front matter")
        needs = [_target(page, *role, texts, labels) for role in ROLE.findall(box["needs"])]
        needs = tuple(dict.fromkeys(needed for needed in needs if needed in mine))
        for needed in needs:
            if needed not in found:
                raise ValueError(
                    f"{page} needs {needed}, which comes later in _toc.yml: move one of them or drop the prerequisite"
                )
        title = re.search(r"^# (.+)", texts[page], re.M)[1]
        found[page] = Chapter(page, title, part[page], about, int(box["minutes"]), needs)
    return found


def _target(page, role, target, texts, labels):
    """The page that a role in the prerequisites of a page leads to."""
    if role == "ref" and target not in labels:
        raise ValueError(f"{page}: the prerequisite {{ref}}`{target}` names no label: write ({target})= on its page")
    if role == "ref":
        return labels[target]
    path = posixpath.normpath(posixpath.join("/", posixpath.dirname(page), target))[1:]
    if path not in texts:
        raise ValueError(f"{page}: the prerequisite {{doc}}`{target}` names no page of _toc.yml")
    return path


def all_needed(found, page):
    """Every chapter that must be read before a page, directly or not, in reading order."""
    needed, waiting = set(), [page]
    while waiting:
        ahead = set(found[waiting.pop()].needs) - needed
        needed |= ahead
        waiting += ahead
    return [name for name in found if name in needed]


def table(columns, rows, classes):
    """A table as a directive; `columns`: title -> width; a cell may hold several paragraphs."""
    widths = " ".join(map(str, columns.values()))
    lines = [":::::{list-table}", f":class: {classes}", f":widths: {widths}", ":header-rows: 1", ""]
    for row in [columns, *rows]:
        for number, cell in enumerate(row):
            text = cell.replace("\n", "\n    ")
            lines.append(f"{'  ' if number else '* '}- {text}".rstrip())
    return "\n".join([*lines, ":::::"])


def hours(minutes):
    """A sum of minutes in words that a reader plans with."""
    return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def _doc(page):
    return f"{{doc}}`/{page}`"


def _total(found, pages):
    return sum(found[page].minutes for page in pages)


def _checked(found, name, known):
    """The page of a chapter on a list that has the pages `known` before it."""
    page = f"book/{name.strip()}"
    if page not in found:
        raise ValueError(f"{page} is not a chapter of the book")
    if late := [needed for needed in found[page].needs if needed not in known]:
        raise ValueError(f"{page} builds on {late[0]}: list that before it")
    return page


def reading_path(here):
    """Chapters in order, with the time that each declares, and the sum of several.

    The directive has one line a chapter, ``chapter: why it is on the path``, or none and a folder of ``book/``: then it
    lists that part, and the chapters say what they are about.  A chapter that another one builds on comes before it.
    """
    found, reasons = chapters(here.root), {}
    if here.argument:
        reasons = {page: one.about for page, one in found.items() if page.split("/")[1] == here.argument}
    for line in filter(str.strip, here.text.splitlines()):
        name, colon, reason = line.partition(":")
        if not (colon and reason.strip()):
            raise ValueError(f"{line!r} is not of the form 'chapter: why it is on the path'")
        missing = {needed for page in reasons for needed in found[page].needs}
        page = _checked(found, name, found)
        if page in missing:
            first = next(other for other in reasons if page in found[other].needs)
            raise ValueError(f"{first} builds on {page}: list that before it")
        reasons[page] = reason.strip()
    if not reasons:
        raise ValueError("there is no chapter to list: name a folder of book/, or write lines 'chapter: why'")
    lines = [f"1. {_doc(page)} ({found[page].minutes} minutes). {reason}" for page, reason in reasons.items()]
    total = ["", f"**In all** about {hours(_total(found, reasons))}."] if len(reasons) > 1 else []
    return "\n".join(lines + total)


def weeks(lines, found, sets):
    """Pairs of pages and problem set from lines ``chapter, chapter | set``, one a week.

    ValueError for an unknown chapter or set, or a chapter before one that it builds on.
    """
    made, known = [], []
    for line in filter(str.strip, lines):
        listed, _, handed_out = (part.strip() for part in line.partition("|"))
        before = len(known)
        for name in listed.split(","):
            known.append(_checked(found, name, known))
        if handed_out and handed_out not in sets:
            raise ValueError(f"there is no problem set {handed_out!r}; there are: {', '.join(sets)}")
        made.append((known[before:], handed_out))
    return made


def syllabus(here):
    """The weeks of a course: the chapters of each, the time to read them, and the problem set that it hands out."""
    found = chapters(here.root)
    plan = weeks(here.text.splitlines(), found, assignments.names(here.root))
    rows = [
        (str(number), "\n".join(f"- {_doc(page)}" for page in pages), hours(_total(found, pages)), name and f"`{name}`")
        for number, (pages, name) in enumerate(plan, 1)
    ]
    made = table({"Week": 10, "Chapters": 56, "Reading": 16, "Problem set": 18}, rows, "syllabus")
    pages = [page for pages, _ in plan for page in pages]
    return f"{made}\n\nIn all {len(pages)} chapters, about {hours(_total(found, pages))} of reading."


def prerequisites(here):
    """For each chapter its time, what it needs, and what that comes to with all that is needed before."""
    found, rows = chapters(here.root), []
    for page, chapter in found.items():
        before = all_needed(found, page)
        whole = f"{1 + len(before)} chapter{'s' if before else ''}, {_total(found, [page, *before]) / 60:.1f} h"
        needs = ", ".join(map(_doc, chapter.needs)) or "no other chapter"
        rows.append((_doc(page), f"{chapter.minutes} min", needs, whole))
    return table({"Chapter": 26, "Time": 12, "Needs": 40, "With all before it": 22}, rows, "prerequisites")


def problem_sets(here):
    """What each problem set is about, and its student edition to download, which the build has cut before."""
    rows = []
    for name in assignments.names(here.root):
        if not (here.root / "_build" / "assignments" / f"{name}.ipynb").exists():
            raise ValueError(f"the student edition of {name} is missing: build with `make book`, which cuts it before")
        source = assignments.read(here.root, name)
        about, (by_machine, by_hand) = source.metadata["assignment"], assignments.points(source)
        rows.append(
            (
                f"**{about['title']}**\n\n{about['part']}\n\n{{site-file}}`{name}.ipynb <assignments/{name}.ipynb>`",
                "\n".join(f"- {_doc(f'book/{chapter}')}" for chapter in about["chapters"]),
                f"{by_machine} + {by_hand} points\n\n{about['minutes']} minutes",
            )
        )
    return table({"Problem set, download": 42, "Needs": 40, "Points, time": 18}, rows, "problem-sets")

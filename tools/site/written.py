"""The directives whose content is MyST that the book writes itself: for the site, and alike for plain notebooks."""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.build import project
from tools.site import chapters, ledger_text

NOTATION = "book/notation"
PRINTED = "pdf"  # folder of the printed files, in the build's folder and in the site
CELLS = re.compile(r"(?<!\\)\|")  # what parts the cells of a line


@dataclass(frozen=True)
class Here:
    """Where a directive stands: the checkout, the page, the ledger's rows; what follows its name; its content."""

    root: Path
    page: str
    rows: list
    argument: str = ""
    text: str = ""


def symbol_tables(text):
    """The sections of the notation page, as pairs: the labels that each refers to, and its rows [(symbol, …), …]."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        lines = [line for line in section.split("\n") if line.startswith("|")]
        rows = [tuple(cell.strip() for cell in CELLS.split(line)[1:-1]) for line in lines]
        yield chapters.ROLE.findall(section.split("\n|")[0]), rows[:1] + rows[2:]


def occurs(cell, page):
    """Whether one of the symbols that a cell lists stands on a page, apart from letters beside it."""
    found = (re.escape(one.strip()) for one in re.findall(r"\$([^$]+)\$", cell))
    return any(re.search(rf"(?<![A-Za-z\\]){one}(?![A-Za-z])", page) for one in found)


def symbols(here):
    """The symbols of a chapter, folded, out of the one table that the notation page keeps.

    A section of that page is about the chapters to which it refers before its table; those about fewest come first.
    Of a section about several chapters stands here what occurs on the page.
    """
    page = project.read((here.root / here.page).with_suffix(".md"))
    labels = {("ref", label) for label in chapters.LABEL.findall(page)}
    sections = symbol_tables(project.read((here.root / NOTATION).with_suffix(".md")))
    own = sorted((found for found in sections if labels & set(found[0])), key=lambda found: len(found[0]))
    own = [
        (about, [row for row in rows if row == rows[0] or len(about) == 1 or occurs(row[0], page)])
        for about, rows in own
    ]
    if not own:
        raise ValueError(f"{NOTATION}.md has no section that refers to {here.page} before its table")
    columns = max(len(rows[0]) for _, rows in own)
    head = next(rows[0] for _, rows in own if len(rows[0]) == columns)
    body = [row + ("",) * (columns - len(row)) for _, rows in own for row in rows[1:]]
    lines = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * columns, *body)]
    opening = ['<details class="symbols">', "<summary>Symbols of this chapter</summary>", ""]
    return "\n".join([*opening, *lines, "", f"All symbols of the book: {{doc}}`/{NOTATION}`.", "", "</details>"])


def pdf_name(caption=None):
    """The name of the printed file of a part, by its caption, or of the whole book; None for what is not a part."""
    if caption is None:
        return "the-physics-of-learning.pdf"
    found = re.fullmatch(r"Part (\w+): (.+)", caption)
    return f"part-{found[1]}-{found[2].replace(' ', '-')}.pdf".lower() if found else None


def pdf_files(here):
    """Where the printed book lies, whole and in parts; nothing if it was not printed."""
    parts = dict.fromkeys(chapter.part for chapter in chapters.chapters(here.root).values())
    files = {"the whole book": pdf_name()} | {part.replace(":", ""): pdf_name(part) for part in parts}
    folder = here.root / "_build" / PRINTED
    links = [
        f"{{site-file}}`{text} <{PRINTED}/{name}>` ({(folder / name).stat().st_size / 1e6:.1f} MB)"
        for text, name in files.items()
        if (folder / name).is_file()
    ]
    return f"**On paper.** As a PDF, with links and bookmarks: {', '.join(links)}." if links else ""


# Name of the directive -> what writes it, and what a page with it is read again for: the lists of chapters,
# the ledger, or its words, which stay when a number moves in its last digit.
DIRECTIVES = {
    "reading-path": (chapters.reading_path, "chapters"),
    "syllabus": (chapters.syllabus, "chapters"),
    "prerequisites": (chapters.prerequisites, "chapters"),
    "problem-sets": (chapters.problem_sets, "chapters"),
    "symbols": (symbols, "chapters"),
    "pdf-files": (pdf_files, PRINTED),
    "correction": (ledger_text.correction, "words"),
    "source-and-page": (ledger_text.source_and_page, "words"),
    "correction-list": (ledger_text.correction_list, "ledger"),
    "ledger-summary": (ledger_text.ledger_summary, "words"),
    "ledger-tallies": (ledger_text.ledger_tallies, "ledger"),
    "ledger-claims": (ledger_text.ledger_claims, "ledger"),
    "ledger-sentence": (ledger_text.ledger_sentence, "words"),
    "part-ledger": (ledger_text.part_ledger, "words"),
}

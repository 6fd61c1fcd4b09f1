"""The directive ``syllabus``: the weeks of a course, each with its chapters, the time to read them, and the problem set
that it hands out.

Its content has one line a week, ``chapter, chapter | problem set`` or without a set.  A chapter that builds on one that
no earlier line names is an error of the build, and so is a problem set that does not exist.
"""

from docutils import nodes

from tools.course import assignments
from tools.sphinx_ext.dependencies import Chapters
from tools.sphinx_ext.ledger_pages import chapter_title
from tools.sphinx_ext.reading_path import hours


def weeks(lines, found, sets):
    """Pairs of pages and problem set, one a week.

    Parameters
    ----------
    lines : list of str   ``chapter, chapter | set``, chapters in the order of reading
    found : dict          the chapters of the book (see ``dependencies.chapters``)
    sets : list of str    names of the problem sets

    Raises
    ------
    ValueError            for an unknown chapter or set, or a chapter before one that it builds on
    """
    made, known = [], set()
    for line in filter(str.strip, lines):
        listed, _, handed_out = (part.strip() for part in line.partition("|"))
        pages = [f"book/{name.strip()}" for name in listed.split(",")]
        for page in pages:
            if page not in found:
                raise ValueError(f"{page} is not a chapter of the book")
            missing = [needed for needed in found[page].needs if needed not in known]
            if missing:
                raise ValueError(f"{page} builds on {missing[0]}: list that before it")
            known.add(page)
        if handed_out and handed_out not in sets:
            raise ValueError(f"there is no problem set {handed_out!r}; there are: {', '.join(sets)}")
        made.append((pages, handed_out))
    return made


class Syllabus(Chapters):
    has_content = True

    def run(self):
        found = self.chapters()
        try:
            plan = weeks(self.content, found, assignments.names(self.root))
        except ValueError as problem:
            raise self.error(f"syllabus: {problem}") from None
        table = nodes.table(classes=["syllabus", "colwidths-given"])
        group = nodes.tgroup(cols=4)
        table += group
        group += [nodes.colspec(colwidth=width) for width in (10, 56, 16, 18)]
        head = nodes.row()
        head += [
            nodes.entry("", nodes.paragraph("", title)) for title in ("Week", "Chapters", "Reading", "Problem set")
        ]
        group += nodes.thead("", head)
        body = nodes.tbody()
        for number, (pages, handed_out) in enumerate(plan, 1):
            links = nodes.bullet_list()
            links += [nodes.list_item("", nodes.paragraph("", "", chapter_title(self.env, page))) for page in pages]
            cells = [
                [nodes.paragraph("", str(number))],
                [links],
                [nodes.paragraph("", hours(sum(found[page].minutes for page in pages)))],
                [nodes.paragraph("", "", nodes.literal("", handed_out))] if handed_out else [],
            ]
            row = nodes.row()
            row += [nodes.entry("", *cell) for cell in cells]
            body += row
        group += body
        total = hours(sum(found[page].minutes for pages, _ in plan for page in pages))
        return [
            table,
            nodes.paragraph("", f"In all {sum(len(pages) for pages, _ in plan)} chapters, about {total} of reading."),
        ]


def setup(app):
    app.add_directive("syllabus", Syllabus)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

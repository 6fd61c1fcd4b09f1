"""The directive ``problem-sets``: what each problem set is about, and its student edition to download.

The build has cut the student editions before Sphinx starts (see ``tools/build/book.py``); the sources, which hold the
solutions, are no pages.
"""

import shutil
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from tools.course import assignments

PUBLISHED = "assignments"  # at the site's root


def _student_editions(srcdir):
    return Path(srcdir) / "_build" / "assignments"


class ProblemSets(SphinxDirective):
    """One row a set: title and part, chapters, points and time, download."""

    columns = ((34, "Problem set"), (36, "Needs"), (16, "Points, time"), (14, "Download"))

    def run(self):
        root = Path(self.env.srcdir)
        table = nodes.table(classes=["problem-sets", "colwidths-given"])
        group = nodes.tgroup(cols=len(self.columns))
        table += group
        group += [nodes.colspec(colwidth=width) for width, _ in self.columns]
        head = nodes.row()
        head += [nodes.entry("", nodes.paragraph("", title)) for _, title in self.columns]
        group += nodes.thead("", head)
        body = nodes.tbody()
        for name in assignments.names(root):
            self.env.note_dependency(str(assignments.folder(root) / f"{name}.md"))
            body += self.row(root, name)
        group += body
        return [table]

    def row(self, root, name):
        edition = _student_editions(root) / f"{name}.ipynb"
        if not edition.exists():
            raise self.severe(
                f"{edition} is missing: build with `make book`, "
                "which cuts the student editions before the pages are written"
            )
        source = assignments.read(root, name)
        about = source.metadata["assignment"]
        by_machine, by_hand = assignments.points(source)
        needs = nodes.bullet_list()
        for chapter in about["chapters"]:
            needs += nodes.list_item("", nodes.paragraph("", "", self.chapter(chapter)))
        link = nodes.reference(
            "", f"{name}.ipynb", internal=True, refuri="../" * self.env.docname.count("/") + f"{PUBLISHED}/{name}.ipynb"
        )
        line = nodes.row()
        line += [
            nodes.entry(
                "", nodes.paragraph("", "", nodes.strong("", about["title"])), nodes.paragraph("", about["part"])
            ),
            nodes.entry("", needs),
            nodes.entry(
                "",
                nodes.paragraph("", f"{by_machine} + {by_hand} points"),
                nodes.paragraph("", f"{about['minutes']} minutes"),
            ),
            nodes.entry("", nodes.paragraph("", "", link)),
        ]
        return line

    def chapter(self, chapter):
        """A link to a chapter by its title, which Sphinx fills in when all pages are read."""
        return addnodes.pending_xref(
            "",
            nodes.inline("", chapter),
            refdomain="std",
            reftype="doc",
            reftarget=f"/book/{chapter}",
            refexplicit=False,
            refwarn=True,
            refdoc=self.env.docname,
        )


def publish(app, error):
    """Put the student editions where the page points."""
    if error is None and _student_editions(app.srcdir).exists():
        shutil.copytree(_student_editions(app.srcdir), Path(app.outdir) / PUBLISHED, dirs_exist_ok=True)


def setup(app):
    app.add_directive("problem-sets", ProblemSets)
    app.connect("build-finished", publish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Sphinx directives that show which chapter needs which: the drawn map, and a table with the times."""

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from tools.build import dependencies
from tools.site import dependency_map

CAPTION = (
    "An arrow leads from a chapter to one that names it as a prerequisite; arrows that follow from others are "
    "left out. Every box"
    " is a link."
)


class Chapters(SphinxDirective):
    """What the directives share: the chapters, and links to them."""

    @property
    def root(self):
        return Path(self.env.srcdir)

    def chapters(self):
        root = self.root
        try:
            found = dependencies.chapters(root)
        except ValueError as problem:
            raise self.severe(str(problem)) from None
        for page in found:
            self.env.note_dependency(str((root / page).with_suffix(".md")))
        return found

    def address(self, page):
        return self.env.app.builder.get_relative_uri(self.env.docname, page)

    def links(self, found, pages):
        """References to chapters by their short titles, with commas between them."""
        made = []
        for page in pages:
            made += [nodes.Text(", ")] if made else []
            made.append(nodes.reference("", found[page].short, internal=True, refuri=self.address(page)))
        return made or [nodes.Text("no other chapter")]


class DependencyMap(Chapters):
    """``dependency-map``: the chapters and their prerequisites as a drawing, and folded below it the same in words."""

    def run(self):
        found = self.chapters()
        svg = dependency_map.draw(found, self.address)
        drawing = (
            '<figure class="dependency-map"><div class="dependency-scroll" tabindex="0" role="region" '
            'aria-label="Dependency map">'
            f'{svg}</div><figcaption><p><span class="caption-text">{CAPTION}</span></p></figcaption></figure>'
        )
        words = nodes.admonition(classes=["dropdown", "dependency-words"])
        words += nodes.title("", "The map in words")
        for part in dict.fromkeys(chapter.part for chapter in found.values()):
            items = nodes.bullet_list()
            for page, chapter in found.items():
                if chapter.part == part:
                    line = [
                        *self.links(found, [page]),
                        nodes.Text(" needs "),
                        *self.links(found, chapter.needs),
                        nodes.Text("."),
                    ]
                    items += nodes.list_item("", nodes.paragraph("", "", *line))
            words += [nodes.paragraph("", "", nodes.strong("", part)), items]
        return [nodes.raw("", drawing, format="html"), words]


class PrerequisitesTable(Chapters):
    """``prerequisites-table``: for each chapter its time, what it needs, and what that comes to with all that is needed
    before.
    """

    columns = ((26, "Chapter"), (12, "Time"), (40, "Needs"), (22, "With all before it"))

    def run(self):
        found = self.chapters()
        table = nodes.table(classes=["colwidths-given"])
        group = nodes.tgroup(cols=len(self.columns))
        table += group
        group += [nodes.colspec(colwidth=width) for width, _ in self.columns]
        head, body = nodes.row(), nodes.tbody()
        head += [nodes.entry("", nodes.paragraph("", title)) for _, title in self.columns]
        group += [nodes.thead("", head), body]
        for page, chapter in found.items():
            hours = dependencies.reading_minutes(found, [page]) / 60
            before = len(dependencies.all_needed(found, page))
            cells = (
                self.links(found, [page]),
                [nodes.Text(f"{chapter.minutes} min")],
                self.links(found, chapter.needs),
                [nodes.Text(f"{1 + before} chapters, {hours:.1f} h" if before else f"1 chapter, {hours:.1f} h")],
            )
            line = nodes.row()
            line += [nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells]
            body += line
        return [table]


def setup(app):
    app.add_directive("dependency-map", DependencyMap)
    app.add_directive("prerequisites-table", PrerequisitesTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

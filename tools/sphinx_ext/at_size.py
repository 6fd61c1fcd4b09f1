"""Under a figure of the build, folded, the same figure at full size, from ``archive/``.

Full size is the source's own where it has the experiment; a page may name it in its front matter, as ``full_size``.
``tools/build/book.py`` writes what each page says of its archive into ``_build/at-size/`` before the pages are read.
"""

import html
import json
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from tools.build import archive, project

PUBLISHED = "_at_size"  # in the site: where the drawings lie


def folded(address, alt, said, size=None):
    """The fold under a figure: the drawing at `address`, how it was computed, its `size` where the page names it."""
    stale = "; the code has changed since" if said["stale"] else ""
    how = f"Computed in the preset <em>paper</em>, {said['minutes']} min, at commit {said['commit']}{stale}."
    alt = html.escape(f"The same figure at full size. {alt}", quote=True)
    heading = "At full size" + (f": {html.escape(size)}" if size else "")
    drawing = f'<img src="{html.escape(address)}" alt="{alt}" loading="lazy">'
    note = f"<p>{how} Sizes that the caption names are those of this build.</p>"
    return f'<details class="at-size"><summary>{heading}</summary>{drawing}{note}</details>'


def add(app, doctree):
    """Put the fold under every figure of a page that has a drawing in the archive."""
    page, root = app.env.docname, Path(app.srcdir)
    if not project.is_notebook(Path(app.env.doc2path(page))):
        return
    source = root / "_build" / archive.AT_SIZE / f"{page}.json"
    if not source.exists():
        raise ExtensionError(f"{source} is missing: build with `make book`, which writes it before the pages are read")
    app.env.note_dependency(str(source))
    said = json.loads(source.read_text(encoding="utf-8"))
    size = app.env.metadata[page].get("full_size")  # of the front matter
    for figure in doctree.findall(nodes.figure):
        name = next((name for name in figure["names"] if name in said.get("figures", {})), None)
        if name is not None:
            address = f"{'../' * page.count('/')}{PUBLISHED}/{page}/{name}.svg"
            alt = next(figure.findall(nodes.image)).get("alt", "")
            figure += nodes.legend("", nodes.raw("", folded(address, alt, said, size), format="html"))


def publish(app, error):
    """Put the drawings into the site."""
    root, target = Path(app.srcdir), Path(app.outdir) / PUBLISHED
    if error is None and app.builder.format == "html":
        project.remove(target)
        for page in archive.read(root):
            folder = (root / archive.FOLDER / archive.page_of(page)).with_suffix("")
            if folder.is_dir():
                shutil.copytree(folder, target / page)


def setup(app):
    app.connect("doctree-read", add)
    app.connect("build-finished", publish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Header buttons of a notebook page: its executed notebook to download, and links that launch it; all notebooks in one
file.

The launch links are made from the checkout's own git remote, so a fork's book opens the fork; without a remote there
are none.
"""

import shutil
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import ReferenceRole

from tools.build import project
from tools.release import takeaway


class SiteFile(ReferenceRole):
    """``site-file``: a link to a file that the build puts at the site's root."""

    def run(self):
        uri = "../" * self.env.docname.count("/") + self.target
        return [nodes.reference(self.rawtext, self.title, internal=True, refuri=uri)], []


def _executed(app):
    """Where the build keeps the executed notebooks (see ``tools/build/book.py``)."""
    return Path(app.srcdir) / "_build" / "notebooks"


def offer_notebook(app, pagename, templatename, context, doctree):
    """Let the theme's download menu list the page's executed notebook."""
    if (_executed(app) / f"{pagename}.ipynb").exists():
        context["ipynb_source"] = f"{pagename}.ipynb"


def publish_notebooks(app, error):
    """Put the executed notebooks where the download and launch links point, and all of them in one file at the site's
    root.
    """
    if error is None and _executed(app).exists():
        shutil.copytree(_executed(app), Path(app.outdir) / "_sources", dirs_exist_ok=True)
        shutil.copy(_executed(app).with_name(takeaway.ARCHIVE), app.outdir)


def offer_launch(app, pagename, templatename, context, doctree):
    """Add the launch menu to notebook pages."""
    remote = project.remote(Path(app.srcdir))
    if remote is None or "ipynb_source" not in context:
        return
    links = [("Binder", remote.binder(pagename), "fas fa-rocket"), ("Colab", remote.colab(pagename), "fas fa-cloud")]
    buttons = [
        {
            "type": "link",
            "text": name,
            "url": url,
            "tooltip": f"Launch on {name}",
            "icon": icon,
            "label": f"launch-{name.lower()}-button",
        }
        for name, url, icon in links
        if url is not None
    ]
    context["header_buttons"].append(
        {"type": "group", "tooltip": "Launch", "icon": "fas fa-rocket", "buttons": buttons, "label": "launch-buttons"}
    )


def setup(app):
    app.add_role("site-file", SiteFile())
    # The theme fills the header at priority 501: the notebook must be there before, the menu goes in after.
    app.connect("html-page-context", offer_notebook, priority=450)
    app.connect("html-page-context", offer_launch, priority=502)
    app.connect("build-finished", publish_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Header buttons of a notebook page: its executed notebook to download, and links that launch it; at every page's end
a link that reports an error on it.

These links are made from the checkout's own git remote, so a fork's book opens the fork; without a remote there are
none.
"""

import html
from pathlib import Path

from tools.build import project


def offer_notebook(app, pagename, templatename, context, doctree):
    """Let the theme's download menu list the page's executed notebook."""
    if (Path(app.srcdir) / "_build" / "notebooks" / f"{pagename}.ipynb").exists():
        context["ipynb_source"] = f"{pagename}.ipynb"


def offer_launch(app, pagename, templatename, context, doctree):
    """Add the launch menu to notebook pages; the glossary has a notebook, too, but nothing in it runs."""
    remote = project.remote(Path(app.srcdir))
    if remote is None or "ipynb_source" not in context or not project.is_notebook(Path(app.env.doc2path(pagename))):
        return
    links = [("Binder", remote.binder(pagename), "fas fa-rocket"), ("Colab", remote.colab(pagename), "fas fa-cloud")]
    buttons = [
        {"type": "link", "text": name, "url": url, "icon": icon}
        | {"tooltip": f"Launch on {name}", "label": f"launch-{name.lower()}-button"}
        for name, url, icon in links
        if url is not None
    ]
    menu = {"type": "group", "tooltip": "Launch", "icon": "fas fa-rocket", "label": "launch-buttons"}
    context["header_buttons"].append(menu | {"buttons": buttons})


def offer_report(app, pagename, templatename, context, doctree):
    """End the page with a link to the form for errors, in which the page is filled in."""
    remote = project.remote(Path(app.srcdir))
    if remote is not None and doctree is not None:
        form = html.escape(remote.report(pagename, app.env.titles[pagename].astext()))
        context["body"] += f'<p class="report-error"><a href="{form}">Report an error on this page</a></p>\n'


def setup(app):
    # The theme fills the header at priority 501: the notebook must be there before, the menu goes in after.
    app.connect("html-page-context", offer_notebook, priority=450)
    app.connect("html-page-context", offer_launch, priority=502)
    app.connect("html-page-context", offer_report)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""The page for an address that leads nowhere, ``404.html``: a search box, the start page, and the parts of the book.

A host shows it at whatever depth the wrong address has, so its links begin at the host's root: `notfound.extension`
writes them with the path under which the checkout's own remote is published.
"""

import html
from pathlib import Path

from tools.build import project
from tools.site import address
from tools.sphinx_ext.parts import parts

TITLE = "No such page"


def name_the_root(app, config):
    config.notfound_urls_prefix = address.prefix(project.remote(Path(app.srcdir)))


def body(env, pathto):
    """The text of the page; ``pathto`` gives the absolute address of a page."""
    lines = [
        f"<h1>{TITLE}</h1>",
        "<p>This address leads nowhere. Perhaps a page was renamed, or a link was cut short. What you were "
        "looking for may be near.</p>",
        f'<form class="not-found-search" action="{pathto("search")}" method="get">',
        '<label for="not-found-query">Search the book</label>',
        '<input type="search" id="not-found-query" name="q"> <button type="submit">Search</button>',
        "</form>",
        f'<p>Or begin at the <a href="{pathto(env.config.root_doc)}">start page</a>, or with a part:</p>',
        "<ul>",
    ]
    chosen = [(caption, pages) for caption, pages in parts(env) if caption.startswith("Part ")]
    lines += [f'<li><a href="{pathto(pages[0])}">{html.escape(caption)}</a></li>' for caption, pages in chosen]
    return "\n".join([*lines, "</ul>"])


def fill(app, pagename, templatename, context, doctree):
    if pagename == app.config.notfound_pagename:
        context["title"] = TITLE
        context["body"] = body(app.env, context["pathto"])
        context["content_root"] = app.config.notfound_urls_prefix  # where the theme's scripts look for the search index


def setup(app):
    app.connect("config-inited", name_the_root, priority=400)
    # After the extension has made `pathto` absolute, at priority 400, and before the theme uses the context.
    app.connect("html-page-context", fill, priority=410)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Where the site is published: the address in previews of shared links, and the root of the page for a wrong address.

It is that of the checkout's own remote, so that a fork's pages name the fork.  `sphinxext.opengraph` writes the tags of
a preview; what a page says in its front matter that it is ``about`` is the description, for search engines too.
"""

import html
import re
from pathlib import Path

from tools.build import project
from tools.site import address

BOOK = (  # of a page that does not say what it is about
    "Executable lecture notes: five results on how neural networks learn, derived, computed and checked in front of "
    "you."
)


def name_the_site(app, config):
    """Tell both extensions where this checkout is published; without a remote there is no address, and no picture."""
    remote = project.remote(Path(app.srcdir))
    where = address.site(remote)
    config.ogp_site_url = where or ""
    config.ogp_image = f"{where}_static/preview.png" if where else None
    config.notfound_urls_prefix = address.prefix(remote)
    config.html_context["site_root"] = address.prefix(remote)


def describe(app, pagename, templatename, context, doctree):
    """Hand title (without the chapter's number) and description to the extension, and to search engines."""
    if doctree is not None:
        text = html.escape(app.env.metadata[pagename].get("about", BOOK))
        title = html.escape(app.env.titles[pagename].astext())
        context["meta"] = (context["meta"] or {}) | {"og:title": title, "og:description": text}
        context["metatags"] += f'<meta name="description" content="{text}" />\n'


def drop_relative_address(app, pagename, templatename, context, doctree):
    """Without a site the extension writes a relative address, which no service understands."""
    if doctree is not None and not app.config.ogp_site_url:
        context["metatags"] = re.sub(r'<meta property="og:url"[^>]*>\n?', "", context["metatags"])


def setup(app):
    app.connect("config-inited", name_the_site, priority=400)
    # `sphinxext.opengraph` writes its tags at priority 500.
    app.connect("html-page-context", describe, priority=450)
    app.connect("html-page-context", drop_relative_address, priority=550)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""What a link to a page shows where it is shared: title, description, and for a published site its address and a
picture.

`sphinxext.opengraph` writes the tags.  This module gives it the address of the checkout's own remote, so that a fork's
pages name the fork, and a description in words: chapters begin with boxes and equations, which make poor descriptions.
"""

import html
import re
from pathlib import Path

from docutils import nodes

from tools.build import project
from tools.site import address

PICTURE = "preview.png"  # in book/_static, made by tools/site/preview_picture.py
SHORTEST, LONGEST = 40, 200  # characters; services cut what is longer
BOOK = (
    "Executable lecture notes: five results on how neural networks learn, derived, computed and checked in front "
    "of you."
)
QUESTION = "The question"  # the section in which a chapter says what it is about
EQUATION = "\0"
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z“])")


def name_the_site(app, config):
    """Tell the extension where this checkout is published; without a remote there is no address, and no picture, which
    needs one.
    """
    where = address.site(project.remote(Path(app.srcdir)))
    config.ogp_site_url = where or ""
    config.ogp_image = f"{where}_static/{PICTURE}" if where else None


def _words(node):
    """The text of a paragraph in one line, each equation as one mark."""
    if isinstance(node, (nodes.math, nodes.math_block)):
        return EQUATION
    if isinstance(node, nodes.Text):
        return node.astext()
    return "".join(_words(child) for child in node.children)


def _paragraphs(doctree):
    """The paragraphs of a chapter's question, or those that open the page where it asks none."""
    sections = list(doctree.findall(nodes.section))
    asked = [section for section in sections if isinstance(section[0], nodes.title) and section[0].astext() == QUESTION]
    for section in (asked or sections)[:1]:
        yield from (child for child in section.children if isinstance(child, nodes.paragraph))


def _opening(paragraph):
    """The sentences of a paragraph up to the first equation, as many as fit; a paragraph that begins with one is read
    from its first question on, because a sentence in the middle refers to what stands before it.
    """
    sentences = SENTENCE.split(" ".join(_words(paragraph).split()))
    if EQUATION in sentences[0]:
        asked = [
            place for place, sentence in enumerate(sentences) if EQUATION not in sentence and sentence.endswith("?")
        ]
        sentences = sentences[asked[0] :] if asked else []
    kept = ""
    for sentence in sentences:
        if EQUATION in sentence or sentence[-1:] not in (".", "?", "!") or len(f"{kept} {sentence}") > LONGEST:
            break
        kept = f"{kept} {sentence}".strip()
    return kept


def describe(doctree):
    """The opening of the first paragraph that has one in words; the book's own line if none has."""
    return next(
        (text for text in map(_opening, _paragraphs(doctree)) if len(text) >= SHORTEST and text[0].isupper()), BOOK
    )


def add_description(app, pagename, templatename, context, doctree):
    """Hand title and description to the extension, and give the description to search engines too."""
    if doctree is None:
        return
    text, title = (
        html.escape(describe(doctree)),
        html.escape(app.env.titles[pagename].astext()),
    )  # without the chapter's number
    context["meta"] = (context["meta"] or {}) | {"og:title": title, "og:description": text}
    context["metatags"] += f'<meta name="description" content="{text}" />\n'


def drop_relative_address(app, pagename, templatename, context, doctree):
    """Without a site there is no address of a page; the extension writes a relative one, which no service
    understands.
    """
    if doctree is not None and not app.config.ogp_site_url:
        context["metatags"] = re.sub(r'<meta property="og:url"[^>]*>\n?', "", context["metatags"])


def setup(app):
    app.connect("config-inited", name_the_site)
    # The extension writes its tags at priority 500.
    app.connect("html-page-context", add_description, priority=450)
    app.connect("html-page-context", drop_relative_address, priority=550)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""What a page loads: the rules and icons that the site uses, and MathJax, in parts, where there is mathematics.

The theme's style sheets serve any site, with 1 800 icons; when the site is written, rules that no page or script can
use are dropped, and the font of icons keeps the glyphs that are left.  Drawings lose blanks, and pictures in them
bytes, but no pixel changes.
"""

import base64
import io
import logging
import re
from pathlib import Path

import tinycss2
from fontTools import subset
from fontTools.ttLib import TTFont
from PIL import Image, ImageChops

from tools.build import project

PARTS = ["input/tex", "output/chtml", "a11y/assistive-mml"]  # of MathJax: no menu, no other input, no other output
KEPT = ("startup.js", "core.js", "a11y/assistive-mml.js", "input/tex.js", "input/tex/", "output/chtml.js")
KEPT += ("output/chtml/",)
SHEETS = ("styles/pydata-sphinx-theme.css", "mystnb.*.css")
SET = re.compile(r'class="(?:[^"]* )?math[ "]|mathjax_process')  # in a page that MathJax has something to do in
ATTRIBUTE = re.compile(r'\b(?:class|id)="([^"]*)"')
WORD = re.compile(r"[\w-]+")
ASIDE = re.compile(r"\([^()]*\)|\[[^\]]*\]")  # of a selector: what :not() and :is() name may be missing
NAME = re.compile(r"[.#]([\w-]+)")
GLYPH = re.compile(r"[\ue000-\uf8ff]|(?<=\\)f[0-9a-f]{3}\b")  # of the font of icons, as a character or its number
PICTURE = re.compile(r"(?<=data:image/png;base64,)[^\"]*")
BLANK = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|(?<=\n)\s+", re.DOTALL)  # in a drawing
SOLID = re.compile(r"src:url\([^)]*fa-solid-900\.woff2\)[^}]*")


def load_parts(app, config):
    config.mathjax_path = "mathjax/startup.js"
    config.mathjax3_config = (config.mathjax3_config or {}) | {"loader": {"load": PARTS}}


def only_for_mathematics(app, pagename, templatename, context, doctree):
    """Sphinx loads MathJax also where an equation stands only in an output's other formats."""
    if not SET.search(context.get("body", "")):
        scripts = context["script_files"]
        context["script_files"] = [one for one in scripts if "mathjax" not in str(one.filename or one.attributes)]


def words(site):
    """What can be a class or an id: in the pages, and whatever stands in a script."""
    scripts = [path for path in (site / "_static").rglob("*.js") if "mathjax" not in path.parts]
    texts = [path.read_text(encoding="utf-8") for path in scripts]
    for path in site.rglob("*.html"):
        texts += ATTRIBUTE.findall(path.read_text(encoding="utf-8"))
    return set(WORD.findall(" ".join(texts)))


def used(rules, known):
    """The rules of a style sheet, as text, whose selectors name only what is known."""
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = tinycss2.serialize(rule.prelude)
            flat = selectors
            while flat != (flat := ASIDE.sub("", flat)):
                pass
            if any(known.issuperset(NAME.findall(one)) for one in flat.replace("\\", "").split(",")):
                yield f"{selectors}{{{tinycss2.serialize(rule.content)}}}"
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
            inside = "".join(used(tinycss2.parse_rule_list(rule.content, True, True), known))
            if inside:
                yield f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inside}}}"
        else:
            yield rule.serialize()


def icons(font, codes):
    """The font with the glyphs of the codes alone, as an address that holds it."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    options = subset.Options(flavor="woff", layout_features=[], hinting=False)
    whole, file = TTFont(font), io.BytesIO()
    cut = subset.Subsetter(options)
    cut.populate(unicodes=codes)
    cut.subset(whole)
    whole.flavor = "woff"
    whole.save(file)
    return f"data:font/woff;base64,{base64.b64encode(file.getvalue()).decode()}"


def few_colors(data):
    """A picture of at most 256 colors, in base 64, with one byte a pixel; any other as it is."""
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    plain, file = image.convert("RGB"), io.BytesIO()
    colors = plain.getcolors(256)
    if colors is None or "A" in image.mode and image.getchannel("A").getextrema()[0] < 255:
        return data
    listed = plain.quantize(len(colors), dither=Image.Dither.NONE)
    listed.save(file, "png", optimize=True)
    same = ImageChops.difference(plain, listed.convert("RGB")).getbbox() is None
    return min(data, base64.b64encode(file.getvalue()).decode(), key=len) if same else data


def lighten(app, error):
    """Drop from the theme's files what this site does not use."""
    if error is not None or app.builder.format != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir) / "_static"
    for path in (static / "scripts").glob("fontawesome.js*"):
        path.unlink()
    for path in (static / "mathjax").rglob("*"):
        if path.is_file() and not path.relative_to(static / "mathjax").as_posix().startswith(KEPT):
            path.unlink()
    for path in (site / "_images").glob("*.svg"):
        drawing = BLANK.sub("", path.read_text(encoding="utf-8"))
        path.write_text(PICTURE.sub(lambda match: few_colors(match[0]), drawing), encoding="utf-8")
    known = words(site)
    sheets = {path: path.read_text(encoding="utf-8") for kind in SHEETS for path in static.glob(kind)}
    for path, text in sheets.items():
        sheets[path] = "".join(used(tinycss2.parse_stylesheet(text, True, True), known))
    own = [project.read(path) for path in static.glob("*.css") if path not in sheets]
    found = {glyph for text in [*sheets.values(), *own] for glyph in GLYPH.findall(text)}
    codes = {ord(glyph) if len(glyph) == 1 else int(glyph, 16) for glyph in found}
    font = static / "vendor" / "fontawesome" / "webfonts" / "fa-solid-900.ttf"
    for path, text in sheets.items():
        path.write_text(SOLID.sub(lambda _: f'src:url("{icons(font, codes)}")', text), encoding="utf-8")


def setup(app):
    app.connect("config-inited", load_parts, priority=900)
    app.connect("html-page-context", only_for_mathematics, priority=900)
    app.connect("build-finished", lighten, priority=900)  # after all files are there
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

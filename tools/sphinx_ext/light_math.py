"""Mathematics without a script: pages with ``mathematics: markup`` in their front matter carry it as MathML.

MathJax makes some thirty elements of a formula and takes seconds for a page of a thousand; browsers set MathML
themselves.  A formula in a line of text becomes several pieces, between which the line may break; a single letter
becomes one element, which the style sheet sets as mathematics, a letter with a letter for its index two.
"""

import re
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

APPLY = "\u2061"
ACCENTS = set("˙¨ˉ^~¯˜ˆ→⃗")
# What docutils does not know, or reads otherwise than TeX, as what it knows.
DIALECT = [
    (r"\\rm\s+([^{}]*)", r"\\mathrm{\1}"),
    (r"\\[bB]igg?(?![a-zA-Z])", ""),
    (r"(?<=\d),(?=\d)", " , "),
    (r"\\dots(?![a-zA-Z])", r"\\ldots "),
    (r"(\\[dt]?frac|\\sqrt|[\^_])\s*(\d)", r"\1{\2}"),
    (r"(\\[dt]?frac\{[^{}]*\})\s*(\d)", r"\1{\2}"),
]
BREAKS = set("=<>≤≥→∝≈≃≪≫∼≡≠∈↦,;+−")
LONG = 12  # tokens that a narrow window shows in one line
LETTER = re.compile("<math><mi>([A-Za-zα-ω])</mi></math>")
INDEXED = re.compile("<math><msub><mi>([A-Za-zα-ω])</mi><mi>([A-Za-zα-ω])</mi></msub></math>")


def markup(tex, block=False):
    """MathML for a formula in TeX; MathError if that takes more than the converter knows."""
    for pattern, better in DIALECT:
        tex = re.sub(pattern, better, tex)
    tree = ElementTree.fromstring(tex2mathml(tex, block).replace("&ApplyFunction;", APPLY))
    for node in tree.iter():
        node.tag, node.tail = node.tag.split("}")[1], None
        node.text = node.text.strip() if node.text else None
    for node in tree.iter():
        _as_in_tex(node)
    pieces = [tree] if block or sum(node.text is not None for node in tree.iter()) < LONG else _pieces(tree)
    return "<wbr>".join(ElementTree.tostring(piece, encoding="unicode", method="html") for piece in pieces)


def _as_in_tex(node):
    """The sizes, shapes and spaces that TeX gives to what a node holds."""
    if node.text and node.tag == "mi" and "Α" <= node.text <= "Ω":
        node.set("mathvariant", "normal")
    if node.text in ("|", "‖") and node.tag == "mo":
        node.set("form", "prefix" if node.attrib.pop("class", None) == "mathopen" else "postfix")
    if node.text in ("|", "‖", "⟨", "⟩") and "minsize" not in node.attrib:
        node.attrib.setdefault("stretchy", "false")
    if node.tag == "munderover" and node[2].text in ACCENTS:  # the index stands beside the accented letter
        base, index, accent = node
        node.tag, node[:] = "msub", [ElementTree.Element("mover", accent="true"), index]
        node[0].extend([base, accent])
    if node.text in ("/", "'"):
        node.attrib |= {"lspace": "0", "rspace": "0"}
        node.text = node.text.replace("'", "′")
    for name, sign, after in zip(list(node), list(node)[1:], [*list(node)[2:], None]):
        if sign.text == APPLY:  # of a function: no browser leaves a space
            upright = name if name.text else name[0]
            open_bracket = after is None or after.text == "("
            upright.tag, upright.attrib = "mo", {"form": "prefix", "lspace": "0.17em"}
            upright.set("rspace", "0" if open_bracket else "0.17em")
            node.remove(sign)


def _pieces(tree):
    """The formula in parts; each but the last ends with a relation, a sign or a comma outside all parentheses."""
    made, depth = [ElementTree.Element("math")], 0
    for node in tree:
        made[-1].append(node)
        depth += (node.text in set("(⟨{")) - ((node.text or node.findtext("mo")) in set(")⟩}"))
        if depth == 0 and node.tag == "mo" and node.text in BREAKS and len(made[-1]) > 1:
            node.set("form", "infix")
            made.append(ElementTree.Element("math"))
    return [piece for piece in made if len(piece)]


def raw(node):
    """What stands for a formula; the formula itself where only MathJax can set it."""
    try:
        text = markup(node.astext(), isinstance(node, nodes.math_block))
    except MathError:
        return node
    return nodes.raw("", INDEXED.sub(r"<var>\1<sub>\2</sub></var>", LETTER.sub(r"<var>\1</var>", text)), format="html")


class Bare(nodes.TextElement):
    """What a paragraph holds, without the paragraph: links need such a parent."""


class Lighten(SphinxTransform):
    """Replace the formulas of a page before Sphinx notes that it needs MathJax."""

    default_priority = 800

    def apply(self, **options):
        wanted = (field.astext().split() == ["mathematics", "markup"] for field in self.document.findall(nodes.field))
        if any(wanted):
            for node in list(self.document.findall(nodes.math)):
                node.replace_self(raw(node))
            for cell in self.document.findall(nodes.entry):  # two thousand
                if [type(child) for child in cell] == [nodes.paragraph]:
                    cell[:] = [Bare("", "", *cell.pop().children)]


class Unwrap(SphinxPostTransform):
    """On these pages the text of a link stands in the link itself, not in an element of its own."""

    default_priority = 20  # when references are resolved

    def run(self, **options):
        if self.env.metadata[self.env.docname].get("mathematics") == "markup":
            for link in self.document.findall(nodes.reference):
                if [type(child) for child in link] == [nodes.inline]:
                    link[:] = link[0].children


def _nothing(writer, node):
    """A bare text has no element of its own."""


def setup(app):
    app.add_node(Bare, html=(_nothing, _nothing))
    app.add_transform(Lighten)
    app.add_post_transform(Unwrap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""The reader's layer and the checker's: numbered equations that cells compute, and one line of checks a section.

``lib.services.display.show`` puts a label into a comment of its TeX; here it becomes the number of the equation.
``lib.services.ledger.check`` shows a sentence; the sentences of a section are gathered at its end, folded under
"6 checks passed".
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

LABEL = re.compile(r"\A\s*%(eq-[a-z0-9-]+)\n")
SENTENCE = re.compile(r'<p class="ledger-line.*?</p>', re.DOTALL)


def number_equations(app, doctree):
    """Give each equation that a cell shows with a label its number, and the label its place."""
    domain = app.env.get_domain("math")
    for node in list(doctree.findall(nodes.math_block)):
        match = LABEL.match(node.astext())
        if match is None:
            continue
        label, tex = match[1], node.astext()[match.end() :]
        node.children, node["label"], node["docname"], node["nowrap"] = [], label, app.env.docname, False
        node += nodes.Text(tex)
        node["ids"].append(nodes.make_id(f"equation-{label}"))
        domain.note_equation(app.env.docname, label, location=node)
        node["number"] = domain.get_equation_number_for(label)


class GatherChecks(SphinxPostTransform):
    """Move the sentences of a section's checks to its end."""

    default_priority = 300  # after the outputs' formats were chosen

    def run(self, **options):
        found = {}
        for node in list(self.document.findall(nodes.raw)):
            sentences = SENTENCE.findall(node.astext()) if node.get("format") == "html" else []
            if sentences:
                section = _around(node, nodes.section)
                found.setdefault(id(section), (section, []))[1].extend(sentences)
                _remove(node)
        for section, sentences in found.values():
            children = section.children
            place = next((n for n, child in enumerate(children) if isinstance(child, nodes.section)), len(children))
            section.insert(place, nodes.raw("", folded(sentences), format="html"))


def folded(sentences):
    """The line that tells how many checks passed, and what it unfolds to."""
    number = f"{len(sentences)} checks" if len(sentences) > 1 else "1 check"
    return f'<details class="checks"><summary>{number} passed</summary>\n' + "\n".join(sentences) + "\n</details>"


def _around(node, kind):
    while not isinstance(node, kind):
        node = node.parent
    return node


def _remove(node):
    """Take a node away, and every container that holds nothing else."""
    parent = node.parent
    parent.remove(node)
    if isinstance(parent, nodes.container) and not parent.children:
        _remove(parent)


def setup(app):
    app.connect("doctree-read", number_equations)
    app.add_post_transform(GatherChecks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

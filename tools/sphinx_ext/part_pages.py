"""Roles and a directive for the one-page summaries of the parts: what the ledger measured, so that no result is typed
in.

- ``{ledger-value}`fdt/eq1.2``` shows the measured value of a claim, linked to the cell that measured it;
- ``{correction-ref}`fdt/eq1.2``` links the box of a correction by its number;
- ``part-ledger <folder>`` counts the claims of a part by verdict and links its corrections.
"""

import math
from collections import Counter, defaultdict

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from lib.services import ledger
from tools.sphinx_ext.ledger_pages import (
    LedgerDirective,
    correction_label,
    corrections,
    listed,
    own_results,
    read_rows,
)


def part_of(rows):
    """The part (a folder of ``book/``) of every row: that of its chapter, or for an open row the one in which most of
    its family lie.
    """
    home = defaultdict(Counter)
    for row in rows:
        if row["chapter"]:
            home[row["id"].split("/")[0]][row["chapter"].split("/")[1]] += 1

    def part(row):
        if row["chapter"]:
            return row["chapter"].split("/")[1]
        family = home[row["id"].split("/")[0]]
        return family.most_common(1)[0][0] if family else None

    return {row["id"]: part(row) for row in rows}


def shown(value, error=None):
    """A measured number for a sentence: three digits, or as many as a standard error of one or two digits supports."""
    if isinstance(value, int):
        return str(value)
    if error:
        digits = max(0, 1 - math.floor(math.log10(error)))
        return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", "−")
    if 1000 <= abs(value) < 100_000:
        return f"{float(f'{value:.3g}'):.0f}".replace("-", "−")
    mantissa, _, power = f"{value:#.3g}".rstrip(".").partition("e")
    return f"{mantissa}·10^{int(power)}".replace("-", "−") if power else mantissa.replace("-", "−")


class _LedgerRole(SphinxRole):
    """A role with the id of a claim; an id that does not serve is an error of the build that says why."""

    def run(self):
        row = {row["id"]: row for row in read_rows(self.env)}.get(self.text)
        try:
            if row is None:
                raise ValueError("is not a claim in lib/claims")
            return [self.node(row)], []
        except ValueError as problem:
            message = self.inliner.reporter.error(f"{self.name} {self.text!r} {problem}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]

    def link(self, content, row, anchor):
        uri = self.env.app.builder.get_relative_uri(self.env.docname, row["chapter"]) + "#" + anchor
        return nodes.reference("", "", *content, internal=True, refuri=uri)


class LedgerValue(_LedgerRole):
    def node(self, row):
        if row["chapter"] is None:
            raise ValueError("is open: no chapter measures it")
        if isinstance(row["measured"], bool):
            raise ValueError("is a property that holds and has no number")
        text, _, power = shown(row["measured"], row["error"]).partition("^")
        content = [nodes.Text(text)] + ([nodes.superscript("", power)] if power else [])
        return self.link(content, row, row["anchor"])


class CorrectionRef(_LedgerRole):
    def node(self, row):
        names = {found["id"]: name for name, found in corrections(read_rows(self.env))}
        if row["id"] not in names or row["chapter"] is None:
            raise ValueError("is not a proven correction")
        return self.link([nodes.Text(names[row["id"]])], row, correction_label(row["id"]))


class PartLedger(LedgerDirective):
    """``part-ledger <folder>``: the verdicts of a part in one sentence, then its corrections as links."""

    required_arguments = 1

    def run(self):
        rows = self.rows()
        part = part_of(rows)
        mine = [row for row in rows if part[row["id"]] == self.arguments[0]]
        if not mine:
            raise self.error(
                f"part-ledger {self.arguments[0]!r}: no claim belongs to a chapter in book/{self.arguments[0]}/"
            )
        return [self.counts(mine), *self.corrections(rows, {row["id"] for row in mine})]

    def counts(self, mine):
        sources, own = ledger.tallies(mine)
        if not any(sources.values()):
            text = f"The ledger has {len(mine)} rows for this part, all of them results of the book itself."
        else:
            text = (
                f"The ledger has {sum(sources.values())} claims of the sources for this part: {listed(sources)}. "
                f"{own_results(own)}"
            )
        return nodes.paragraph("", text, classes=["part-ledger"])

    def corrections(self, rows, mine):
        """A line for the errors and one for the slips."""
        lines = []
        for title, lead in {"Error": "Its errors: ", "Slip": "Its slips: "}.items():
            links = []
            for name, row in corrections(rows):
                if row["id"] in mine and row["chapter"] and name.startswith(title):
                    number = name.split()[1]
                    links += [nodes.Text(", "), self.link(number, row["chapter"], correction_label(row["id"]))]
            lines += [nodes.paragraph("", "", nodes.Text(lead), *links[1:], nodes.Text("."))] if links else []
        return lines


def setup(app):
    app.add_role("ledger-value", LedgerValue())
    app.add_role("correction-ref", CorrectionRef())
    app.add_directive("part-ledger", PartLedger)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

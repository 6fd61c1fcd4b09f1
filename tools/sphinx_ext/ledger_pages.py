"""Sphinx directives that show the reproduction ledger, the corrections, and what a chapter found of its source.

``_build/ledger.json`` is complete before Sphinx starts (see ``tools/build/book.py``), so these pages are written like
any other and are read again only when the ledger changed.
"""

import json
import math
import shutil
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from lib.services import claims, ledger

PUBLISHED = "ledger.json"  # at the site's root
WORDS = {
    "reproduced": "reproduced",
    "error": "corrected (an error)",
    "slip": "corrected (a slip)",
    "refuted": "refuted",
    "open": "open",
    claims.CONVERSION: "perhaps the conversion's",
    claims.OWN: "holds",
}
MEANING = {
    "reproduced": "derived here and confirmed within the stated tolerance",
    "error": "a statement that is wrong, read with its hedges, and that something depends on; the right one is shown",
    "slip": "a letter, sign, index or factor that the source has right elsewhere or that changes nothing",
    "refuted": "does not hold, as the chapter shows",
    "open": "not checked; the row says why",
}
TITLES = {"error": "Error", "slip": "Slip", claims.CONVERSION: "Text"}  # of the numbered boxes


def own_results(own):
    """The second tally in a sentence."""
    number = sum(own.values())
    checked = (
        f"{own[claims.OWN]} hold within the stated tolerance, {own['open']} are open"
        if own["open"]
        else "all hold within the stated tolerance"
    )
    return f"Beside them stand {number} results of the book itself; {checked}."


def listed(counts):
    """The first tally in words."""
    return ", ".join(f"{number} {WORDS[verdict]}" for verdict, number in counts.items())


def corrections(rows):
    """The corrections with their names, pairs such as "Error 1" and its row, in reading order, errors before slips.

    Those without a proof in this build come last.  One that has its cause in another stands behind it, as "Error 1b".
    """
    found = []
    placed = sorted(rows, key=lambda row: (row["place"] is None, row["place"]))
    for verdict, title in TITLES.items():
        heads = [row for row in placed if row["printed"] and not row["cause"] and row["kind"] == verdict]
        for number, head in enumerate(heads, 1):
            found.append((f"{title} {number}", head))
            same = (row for row in placed if row["cause"] == head["id"])
            found += [(f"{title} {number}{letter}", row) for letter, row in zip("bcdefgh", same)]
    return found


def printed_where(row):
    """What stands before the words of a source that are put right."""
    return "In the text we worked from" if row["kind"] == claims.CONVERSION else "Printed"


def correction_label(claim_id):
    return ledger.anchor(claim_id).replace("ledger-", "correction-", 1)


def read_rows(env):
    """The gathered rows; the page that asks for them is read again when they change."""
    path = Path(env.srcdir) / "_build" / "ledger.json"
    if not path.exists():
        raise ExtensionError(
            f"{path} is missing: build with `make book`, which gathers the ledger before the pages are written"
        )
    env.note_dependency(str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def chapter_title(env, chapter):
    """A reference to a page by its title; Sphinx fills the title in when all pages are read."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", chapter),
        refdomain="std",
        reftype="doc",
        reftarget="/" + chapter,
        refexplicit=False,
        refwarn=True,
        refdoc=env.docname,
    )


class LedgerDirective(SphinxDirective):
    """What the directives share: the gathered rows, markdown inside generated nodes, links to chapters."""

    def rows(self):
        return read_rows(self.env)

    def markdown(self, text):
        """The nodes of a piece of markdown (TeX, links and emphasis included)."""
        holder = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), self.get_source_info()[0]), self.content_offset, holder)
        return holder.children

    def inline(self, text):
        """The inline nodes of a one-paragraph piece of markdown."""
        (paragraph,) = self.markdown(text)
        return paragraph.children

    def link(self, text, chapter, anchor):
        uri = self.env.app.builder.get_relative_uri(self.env.docname, chapter) + "#" + anchor
        return nodes.reference("", text, internal=True, refuri=uri)

    def statement(self, name, row):
        """The box of a correction: its name and source, what is printed, what is right."""
        box = nodes.admonition(classes=["correction", f"correction-{row['kind']}"])
        box += nodes.title("", "", *self.inline(f"{name}: {row['source']}, {row['locator']}"))
        where = printed_where(row)
        box += self.markdown(f"**{where}:** {row['printed']}")
        box += self.markdown(f"**Right:** {row['right']}")
        return box


class Correction(LedgerDirective):
    """``correction <claim id>``: the numbered box that states what a source prints and what is right."""

    required_arguments = 1
    has_content = True

    def run(self):
        identity = self.arguments[0]
        found = corrections(self.rows())
        name, row = next(((name, row) for name, row in found if row["id"] == identity), (None, None))
        if row is None:
            raise self.error(f"correction {identity!r} is not a claim in lib/claims with 'printed' and 'right'")
        box = self.statement(name, row)
        box["ids"].append(correction_label(identity))
        if self.content:
            self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


class SourceAndPage(LedgerDirective):
    """``source-and-page``: folded, what the source states and what the page found, from the chapter's claims.

    The content, if any, stands on top: hedges, credit, what goes beyond a single claim.
    """

    has_content = True
    heading = {
        "reproduced": "Reproduced",
        "error": "Errors, put right",
        "slip": "Slips",
        claims.CONVERSION: "Perhaps only in the text we worked from",
        "refuted": "Not found to hold",
        "open": "Open",
    }

    def run(self):
        rows = self.rows()
        mine = [row for row in rows if row["chapter"] == self.env.docname and row["citation"] is not None]
        if not (mine or self.content):
            raise self.error("source-and-page stands empty on a page without a claim of a source")
        names = {row["id"]: name for name, row in corrections(rows)}
        inside = nodes.container(classes=["source-and-page"])
        self.state.nested_parse(self.content, self.content_offset, inside)
        for verdict, heading in self.heading.items():
            group = sorted((row for row in mine if row["verdict"] == verdict), key=lambda row: row["place"])
            if group:
                inside += nodes.rubric("", heading)
            items = nodes.bullet_list()
            for row in group:
                if row["printed"] is None:
                    items += nodes.list_item("", *self.markdown(f"*{row['locator']}.* {row['statement']}"))
                    continue
                box = self.statement(names[row["id"]], row)
                box["ids"].append(correction_label(row["id"]))
                inside += box
            if items.children:
                inside += items
        opening = f'<details class="source-and-page"><summary>{summary(mine)}</summary>'
        return [nodes.raw("", opening, format="html"), inside, nodes.raw("", "</details>", format="html")]


def summary(rows):
    """How many claims of a source a page takes up, by verdict."""
    counts = {verdict: number for verdict, number in ledger.tallies(rows)[0].items() if number}
    number, parts = sum(counts.values()), listed(counts)
    damaged = sum(row["verdict"] == claims.CONVERSION for row in rows)
    beside = f"{damaged} perhaps only in the text we worked from" if damaged else ""
    if not number:
        return f"The source: {beside or 'its claims are tested on other pages'}"
    what = f"{number} claims of the source: {parts}" if number > 1 else f"One claim of the source: {parts}"
    return what + (f"; beside them {beside}" if damaged else "")


class CorrectionList(LedgerDirective):
    """``correction-list <kind>``: the errors, slips or doubtful readings with what is printed, what is right, and the
    cell that proves it.
    """

    required_arguments = 1

    def run(self):
        result = []
        (kind,) = self.arguments
        if kind not in TITLES:
            raise self.error(f"correction-list takes one of {', '.join(TITLES)}, got {kind!r}")
        for name, row in corrections(self.rows()):
            if not name.startswith(TITLES[kind]):
                continue
            box = self.statement(name, row)
            at_size = row["at_size"]
            if row["chapter"] is None and at_size is None:
                box += self.markdown(f"**Proof:** open, {row['reason']}.")
            else:
                page = row["chapter"] or at_size["page"]
                if row["chapter"] is None:
                    found = f" at full size, measured {_measured(at_size)}, expected {_number(row['expected'])}, "
                elif isinstance(row["measured"], bool):
                    found = f" {row['expected']}, in "
                else:
                    found = f" measured {_measured(row)}, expected {_number(row['expected'])}, in "
                proof = nodes.paragraph("", "", nodes.strong("", "Proof:"), nodes.Text(found))
                proof += [
                    self.link(row["id"], page, correction_label(row["id"]) if row["chapter"] else ""),
                    nodes.Text(", chapter "),
                    chapter_title(self.env, page),
                    nodes.Text("."),
                ]
                cell = nodes.admonition(classes=["dropdown", "proving-cell"])
                cell += nodes.title("", "The cell that proves it")
                cell += nodes.literal_block(row["cell"], row["cell"], language="python")
                box += [proof, cell]
            result.append(box)
        return result or [nodes.paragraph("", "None is recorded.")]


class LedgerSummary(LedgerDirective):
    """``ledger-summary``: how many claims of the sources have which verdict, and what the verdicts mean.

    Then how many results are the book's.
    """

    def run(self):
        sources, own = ledger.tallies(self.rows())
        items = nodes.bullet_list(classes=["ledger-summary"])
        for verdict, number in sources.items():
            items += nodes.list_item(
                "",
                nodes.paragraph(
                    "", "", nodes.strong("", f"{number} "), _badge(verdict), nodes.Text(f": {MEANING[verdict]}")
                ),
            )
        lead = nodes.paragraph("", f"Of the {sum(sources.values())} claims of the sources that the book takes up:")
        return [lead, items, nodes.paragraph("", own_results(own), classes=["ledger-own"])]


class LedgerTable(LedgerDirective):
    """``ledger-table``: one row a claim, one table a source, then one a family of the book's own results."""

    columns = ((22, "Claim"), (34, "Statement"), (18, "Expected"), (13, "This build"), (13, "At full size"))

    @staticmethod
    def own(rows, source):
        """Whether the rows under a heading are results of the book itself, which stand behind the sources' claims."""
        return next(row["citation"] is None for row in rows if row["source"] == source)

    def run(self):
        result = []
        rows = self.rows()
        for source in sorted(dict.fromkeys(row["source"] for row in rows), key=lambda source: self.own(rows, source)):
            mine = [row for row in rows if row["source"] == source]
            mine.sort(key=lambda row: math.inf if row["place"] is None else row["place"])
            first = mine[0]
            heading = nodes.rubric("", source)
            result.append(heading)
            if first["citation"]:
                result += self.markdown(f"{{cite}}`{first['citation']}`.")
            result.append(self.table(mine))
        root = "../" * self.env.docname.count("/")
        link = nodes.reference("", "ledger.json", internal=True, refuri=f"{root}{PUBLISHED}")
        return [*result, nodes.paragraph("", "", nodes.Text("The same rows, for programs: "), link, nodes.Text("."))]

    def table(self, rows):
        table = nodes.table(classes=["ledger", "colwidths-given"])
        group = nodes.tgroup(cols=len(self.columns))
        table += group
        group += [nodes.colspec(colwidth=width) for width, _ in self.columns]
        head = nodes.row()
        head += [nodes.entry("", nodes.paragraph("", title)) for _, title in self.columns]
        group += nodes.thead("", head)
        body = nodes.tbody()
        for row in rows:
            line = nodes.row()
            line += [nodes.entry("", *cell) for cell in self.cells(row)]
            body += line
        group += body
        return table

    def cells(self, row):
        name = self.link(row["id"], row["chapter"], row["anchor"]) if row["chapter"] else nodes.literal("", row["id"])
        expected = (
            "—"
            if row["expected"] is None
            else _number(row["expected"]) + (f" (within {row['tolerance']})" if row["tolerance"] else "")
        )
        where = nodes.paragraph("", "", *self.inline(row["locator"]))
        yield [nodes.paragraph("", "", name), where, nodes.paragraph("", "", _badge(row["verdict"]))]
        state = "Open" if row["verdict"] == "open" else "Not in this build"
        reason = [] if row["chapter"] else self.markdown(f"*{state}:* {row['reason']}")
        yield [*self.markdown(row["statement"]), *reason]
        yield [nodes.paragraph("", expected)]
        yield [nodes.paragraph("", _measured(row) if row["chapter"] else "—")]
        at_size = row["at_size"]
        stale = " (by earlier code)" if at_size and at_size["stale"] else ""
        yield [nodes.paragraph("", _measured(at_size) + stale if at_size else "")]


def _badge(verdict):
    return nodes.inline("", WORDS[verdict], classes=["verdict", f"verdict-{verdict}"])


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _measured(row):
    if isinstance(row["measured"], bool):
        return "holds"
    return f"{row['measured']:.4g}" + (f" ± {row['error']:.2g}" if row["error"] is not None else "")


def publish(app, error):
    """Put the rows into the site as data."""
    source = Path(app.srcdir) / "_build" / "ledger.json"
    if error is None and source.exists():
        shutil.copyfile(source, Path(app.outdir) / PUBLISHED)


def setup(app):
    app.connect("build-finished", publish)
    app.add_directive("correction", Correction)
    app.add_directive("source-and-page", SourceAndPage)
    app.add_directive("correction-list", CorrectionList)
    app.add_directive("ledger-summary", LedgerSummary)
    app.add_directive("ledger-table", LedgerTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

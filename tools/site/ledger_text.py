"""The reproduction ledger in words: tallies, boxes of corrections, the table, and what a chapter found of its source.

All of it is MyST, made from the gathered rows (see ``lib.services.ledger.rows``), for the site and the plain notebooks.
"""

import html
import math
import tomllib
from collections import Counter, defaultdict

from lib.services import claims, ledger

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
    "error": "a statement wrong even with the authors' qualifications, and that matters; the right one is shown",
    "slip": "a letter, sign, index or factor that the source has right elsewhere or that changes nothing",
    "refuted": "does not hold, as the chapter shows",
    "open": "not checked; the row says why",
}
HEADINGS = {
    "reproduced": "Reproduced",
    "error": "Errors, put right",
    "slip": "Slips",
    claims.CONVERSION: "Perhaps only in the text we worked from",
    "refuted": "Not found to hold",
    "open": "Open",
}
COLUMNS = {
    "reproduced": "reproduced",
    "error": "errors",
    "slip": "slips",
    claims.CONVERSION: "perhaps the conversion's",
}
COLUMNS |= {"refuted": "refuted", claims.OWN: "hold", "open": "open"}  # of the tallies
TITLES = {"error": "Error", "slip": "Slip", claims.CONVERSION: "Text"}  # of the numbered boxes


def _place(row):
    return math.inf if row["place"] is None else row["place"]


def _at(text, page, anchor):
    return f"{{site-file}}`{text} <{page}.html#{anchor}>`"


def own_results(own):
    """The second tally in a sentence."""
    checked = f"{own[claims.OWN]} hold within the stated tolerance, {own['open']} are open"
    checked = checked if own["open"] else "all hold within the stated tolerance"
    return f"Beside them stand {sum(own.values())} results of the book itself; {checked}."


def listed(counts):
    """The first tally in words."""
    return ", ".join(f"{number} {WORDS[verdict]}" for verdict, number in counts.items())


def corrections(rows):
    """The corrections with their names, pairs such as "Error 1" and its row, in reading order, errors before slips.

    Those without a proof in this build come last.  One that has its cause in another stands behind it, as "Error 1b".
    """
    found, placed = [], sorted(rows, key=_place)
    for verdict, title in TITLES.items():
        heads = [row for row in placed if row["printed"] and not row["cause"] and row["kind"] == verdict]
        for number, head in enumerate(heads, 1):
            found.append((f"{title} {number}", head))
            same = (row for row in placed if row["cause"] == head["id"])
            found += [(f"{title} {number}{letter}", row) for letter, row in zip("bcdefgh", same)]
    return found


def correction_label(claim_id):
    return ledger.anchor(claim_id).replace("ledger-", "correction-", 1)


def _box(name, row, text="", label=False):
    """The box of a correction: its name and source, what is printed, what is right, and more."""
    where = "In the text we worked from" if row["kind"] == claims.CONVERSION else "Printed"
    lines = [f"::::::{{admonition}} {name}: {row['source']}, {row['locator']}"]
    lines += [f":class: correction correction-{row['kind']}"] + label * [f":name: {correction_label(row['id'])}"]
    pieces = [f"**{where}:** {row['printed']}", f"**Right:** {row['right']}", text]
    return "\n".join([*lines, "", "\n\n".join(piece.strip() for piece in pieces if piece), "::::::"])


def correction(here):
    """``correction <claim id>``: the numbered box that states what a source prints and what is right."""
    for name, row in corrections(here.rows):
        if row["id"] == here.argument:
            return _box(name, row, here.text, label=True)
    raise ValueError(f"correction {here.argument!r} is not a claim in lib/claims with 'printed' and 'right'")


def summary(rows):
    """How many claims of a source a page takes up, by verdict."""
    counts = {verdict: number for verdict, number in ledger.tallies(rows)[0].items() if number}
    damaged = sum(row["verdict"] == claims.CONVERSION for row in rows)
    beside = f"{damaged} perhaps only in the text we worked from" if damaged else ""
    number = sum(counts.values())
    if not number:
        return f"The source: {beside or 'its claims are tested on other pages'}"
    what = f"{number} claims" if number > 1 else "One claim"
    return f"{what} of the source: {listed(counts)}" + (f"; beside them {beside}" if beside else "")


def _open_here(here):
    """The rows of a source that the page's file of claims declares and that nothing checks."""
    place = _declared(here.root)
    mine = [row for row in here.rows if row["verdict"] == "open" and row["citation"]]
    return [row for row in mine if place.get(row["id"]) == here.page]


def _declared(root):
    """The page in whose file of claims every claim is declared."""
    found = {}
    for path in (root / "lib/claims").glob("*/*.toml"):
        page = f"book/{path.parent.name}/{path.stem}"
        found |= {claim["id"]: page for claim in tomllib.loads(path.read_text(encoding="utf-8"))["claim"]}
    return found


def source_and_page(here):
    """``source-and-page``: folded, what the source states and what the page found, from the chapter's claims.

    The content, if any, stands on top: hedges, credit, what goes beyond a single claim.
    """
    mine = [row for row in here.rows if row["chapter"] == here.page and row["citation"] is not None] + _open_here(here)
    if not (mine or here.text):
        raise ValueError("source-and-page stands empty on a page without a claim of a source")
    names = {row["id"]: name for name, row in corrections(here.rows)}
    pieces = [here.text]
    for verdict, heading in HEADINGS.items():
        group = sorted((row for row in mine if row["verdict"] == verdict), key=_place)
        pieces += [f"```{{rubric}} {heading}\n```"] if group else []
        pieces += [_box(names[row["id"]], row, label=True) for row in group if row["printed"]]
        plain = [f"*{row['locator']}.* {row['statement']}".replace("\n", "\n  ") for row in group if not row["printed"]]
        if verdict == "open":
            anchors = [(f"book/ledger/{row['citation']}", ledger.anchor(row["id"])) for row in group]
            plain = [f"{text} ({_at('why', *anchor)})" for text, anchor in zip(plain, anchors)]
        pieces += ["\n".join(f"- {text}" for text in plain)]
    opening = f'<details class="source-and-page">\n<summary>{summary(mine)}</summary>'
    return "\n\n".join([opening, *filter(None, pieces), "</details>"])


def correction_list(here):
    """``correction-list <kind>``: the errors, slips or doubtful readings, with the place that proves each."""
    if here.argument not in TITLES:
        raise ValueError(f"correction-list takes one of {', '.join(TITLES)}, got {here.argument!r}")
    named = [(name, row) for name, row in corrections(here.rows) if name.startswith(TITLES[here.argument])]
    return "\n\n".join(_box(name, row, _proof(row), label=True) for name, row in named) or "None is recorded."


def _proof(row):
    at_size = row["at_size"]
    if row["chapter"]:
        value = f"measured {_measured(row)}, expected {_number(row['expected'])}"
        value = row["expected"] if isinstance(row["measured"], bool) else value
        found = f"{value}, in {_at(row['id'], row['chapter'], row['anchor'])}"
    elif at_size:
        found = f"at full size, measured {_measured(at_size)}, expected {_number(row['expected'])}, {row['id']}"
    else:
        return f"**Proof:** open, {row['reason']}."
    return f"**Proof:** {found}, chapter {{doc}}`/{row['chapter'] or at_size['page']}`."


def pages(rows):
    """The pages of the ledger: name -> rows.  Each source has one, and so have the book's own results of a part."""
    part, found = part_of(rows), defaultdict(list)
    for row in rows:
        found[row["citation"] or part[row["id"]]].append(row)
    return found


def ledger_summary(here):
    """How many claims of the sources have which verdict, what that means, and how many results are the book's."""
    sources, own = ledger.tallies(here.rows)
    lines = [f"Of the {sum(sources.values())} claims of the sources that the book takes up:", ""]
    lines += [":::::{container} ledger-summary"]
    lines += [f"- **{number}** {{verdict}}`{verdict}`: {MEANING[verdict]}" for verdict, number in sources.items()]
    return "\n".join([*lines, ":::::", "", ":::::{container} ledger-own", own_results(own), ":::::"])


def ledger_tallies(here):
    """How many rows each page of the ledger has by verdict, every number a link to these rows."""
    made, found = [], pages(here.rows)
    for own in (False, True):
        names = [name for name, rows in found.items() if own == (rows[0]["citation"] is None)]
        names = sorted(names, key=lambda name: min(map(_place, found[name]))) if own else names
        counts = {name: Counter(row["verdict"] for row in found[name]) for name in names}
        verdicts = [verdict for verdict in COLUMNS if any(count[verdict] for count in counts.values())]
        head = ["results of the book" if own else "source", *map(COLUMNS.get, verdicts), "full size"]
        made += ["", f"| {' | '.join(head)} |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
        for name in names:
            cells = [_rows(name, counts[name][verdict], f"verdict={verdict}") for verdict in verdicts]
            cells.append(_rows(name, sum(bool(row["at_size"]) for row in found[name]), "size=full"))
            title = "" if own else found[name][0]["source"]
            link = f"{{doc}}`{title} </book/ledger/{name}>`" if title else f"{{doc}}`/book/ledger/{name}`"
            made.append(f"| {link} | {' | '.join(cells)} |")
    return "\n".join([*made, "", "All rows, for programs: {site-file}`ledger.json <ledger.json>`."])


def ledger_sentence(here):
    """The tallies in one sentence, for a page that is about something else."""
    sources, own = ledger.tallies(here.rows)
    found = listed({verdict: number for verdict, number in sources.items() if number})
    text = f"Of {sum(sources.values())} claims of the sources, {found}; {sum(own.values())} results of the book's own"
    return f"{text} are checked as well."


def _rows(name, number, query):
    return f"{{site-file}}`{number} <book/ledger/{name}.html?{query}>`" if number else "–"


def ledger_claims(here):
    """``ledger-claims <page>``: the rows of a page of the ledger, in reading order; ``ledger.js`` filters and sorts."""
    rows = pages(here.rows).get(here.argument)
    if not rows:
        raise ValueError(f"ledger-claims {here.argument!r}: no claim has this source, or belongs to this part")
    names = {row["id"]: name for name, row in corrections(here.rows)}
    made = [_claim(row, names.get(row["id"])) for row in sorted(rows, key=_place)]
    return "\n\n".join(['<ul class="claims">', *made, "</ul>"])


def _claim(row, name):
    """A row: a line with verdict, id and place, the statement, and what was expected and found."""
    at_size = row["at_size"]
    data = {"verdict": row["verdict"], "chapter": row["chapter"], "size": "here " * bool(row["chapter"])}
    data["size"] += "full" * bool(at_size)
    for size, found in {"here": row, "full": at_size}.items():
        share = found and found["margin"]
        data[size] = None if share is None else f"{share:.4f}"
    attributes = " ".join(f'data-{key}="{value}"' for key, value in data.items() if value)
    link = _at(row["id"], row["chapter"], row["anchor"]) if row["chapter"] else f"`{row['id']}`"
    head = f"{{verdict}}`{row['verdict']}` {link} · {row['locator']}"
    if name and name != "Text":
        head += " · " + _at(name, "book/corrections", correction_label(row["id"]))
    pieces = [f'<li class="claim" id="{ledger.anchor(row["id"])}" {attributes}>', head, row["statement"]]
    if row["printed"]:
        pieces += [f"**Printed:** {row['printed']}", f"**Right:** {row['right']}"]
    if not row["chapter"]:
        pieces += [f"*{'Open' if row['verdict'] == 'open' else 'Not in this build'}:* {row['reason']}"]
    return "\n\n".join([*pieces, *_found(row), "</li>"])


def _found(row):
    """What was expected and measured, if anything, in HTML; of a property what was tested is folded."""
    at_size, found = row["at_size"], []
    for where, record in {"this build": row if row["chapter"] else None, "full size": at_size}.items():
        if record:
            used = "" if record["margin"] is None else f" ({100 * record['margin']:.0f} % of the tolerance)"
            stale = ", by earlier code" if where == "full size" and record["stale"] else ""
            found.append(f"{where} <b>{_measured(record)}</b>{used}{stale}")
    if row["expected"] is not None:
        expected = html.escape(_number(row["expected"])) + (f" within {row['tolerance']}" if row["tolerance"] else "")
        if isinstance((at_size or row)["measured"], bool):
            return [f'<details class="claim-found"><summary>{"; ".join(found)}</summary><p>{expected}.</p></details>']
        found.insert(0, f"expected {expected}")
    return [f'<p class="claim-found">{" ".join(f"<span>{text}</span>" for text in found)}</p>'] if found else []


def margin(claim, measured, error=None):
    """How much of its tolerance a measured value uses: 0 on the expected value, 1 at the bound.

    None for a property, for a bound of zero, which sets no scale, and where nothing was measured.
    """
    if measured is None or claim.true is not None:
        return None
    if claim.between is not None:
        low, high = claim.between
        return abs(2 * measured - low - high) / (high - low)
    if claim.value is not None:
        allowed = claim.atol if claim.atol is not None else (claim.rtol or 0) * abs(claim.value)
        allowed = allowed if claim.sigmas is None else claim.bias + claim.sigmas * error
        return abs(measured - claim.value) / allowed
    bound, measured = (claim.below, measured) if claim.above is None else (-claim.above, -measured)
    if bound == 0:
        return None
    return max(measured, 0) / bound if bound > 0 else bound / measured


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _measured(row):
    if isinstance(row["measured"], bool):
        return "holds"
    return f"{row['measured']:.4g}" + (f" ± {row['error']:.2g}" if row["error"] is not None else "")


def part_of(rows):
    """The part (a folder of ``book/``) of every row: its chapter's, or for an open row that of most of its family."""
    home = defaultdict(Counter)
    for row in rows:
        if row["chapter"]:
            home[row["id"].split("/")[0]][row["chapter"].split("/")[1]] += 1
    most = {family: parts.most_common(1)[0][0] for family, parts in home.items()}
    return {
        row["id"]: row["chapter"].split("/")[1] if row["chapter"] else most.get(row["id"].split("/")[0]) for row in rows
    }


def part_ledger(here):
    """``part-ledger <folder>``: the verdicts of a part in one sentence, then its corrections as links."""
    part = part_of(here.rows) | {name: page.split("/")[1] for name, page in _declared(here.root).items()}
    mine = [row for row in here.rows if part[row["id"]] == here.argument]
    if not mine:
        raise ValueError(f"part-ledger {here.argument!r}: no claim belongs to a chapter in book/{here.argument}/")
    sources, own = ledger.tallies(mine)
    text = f"The ledger has {len(mine)} rows for this part, all of them results of the book itself."
    if number := sum(sources.values()):
        text = f"The ledger has {number} claims of the sources for this part: {listed(sources)}. {own_results(own)}"
    pieces = [f":::::{{container}} part-ledger\n{text}\n:::::"]
    for title, lead in {"Error": "The sources' errors, by number", "Slip": "The sources' slips, by number"}.items():
        named = [(name, row) for name, row in corrections(here.rows) if name.startswith(title) and row["chapter"]]
        links = [
            _at(name.split()[1], row["chapter"], correction_label(row["id"]))
            for name, row in named
            if part[row["id"]] == here.argument
        ]
        pieces += [f"{lead}: {', '.join(links)}."] if links else []
    return "\n\n".join(pieces)


def value(rows, claim_id):
    """The measured value of a claim, linked to the cell that measured it, in as many digits as a sentence bears."""
    row = _proven(rows, claim_id)
    if isinstance(row["measured"], bool):
        raise ValueError("is a property that holds and has no number")
    return shown(row["measured"], row["error"]), row["chapter"], row["anchor"]


def control(rows, claim_id):
    """The number that the control of a claim gave in place of the measured value, linked to the same cell."""
    row = _proven(rows, claim_id)
    number = row.get("control_value")
    if isinstance(number, bool) or number is None:
        raise ValueError("has no control with a number")
    return shown(number), row["chapter"], row["anchor"]


def correction_name(rows, claim_id):
    """The name of a correction, linked to its box."""
    row = _proven(rows, claim_id)
    for name, found in corrections(rows):
        if found is row:
            return name, row["chapter"], correction_label(claim_id)
    raise ValueError("is not a proven correction")


def _proven(rows, claim_id):
    row = next((row for row in rows if row["id"] == claim_id), None)
    if row is None:
        raise ValueError("is not a claim in lib/claims")
    if row["chapter"] is None:
        raise ValueError("is open: no chapter measures it")
    return row


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

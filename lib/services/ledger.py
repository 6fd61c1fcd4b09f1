"""The reproduction ledger: what the sources claim (``claims``), what we measure, and the verdict.

A chapter calls :func:`check` with what it measured: that shows one line, raises :class:`ClaimFailed` if the value is
out of tolerance, and attaches a record to the output of its cell, from which the build reads it.
"""

import difflib
import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from lib.common import checks
from lib.services import presets
from lib.services.claims import CORRECTED, OWN, VERDICTS, Claim, declared

METADATA = "physics-of-learning/ledger"  # the key of a record in the metadata of a cell's output


class ClaimFailed(AssertionError):
    """A measured value lies outside the tolerance that its claim declares."""


@dataclass(frozen=True)
class Record:
    """A claim with what a chapter measured; the build adds the chapter.

    Parameters
    ----------
    id, verdict : str
        Of the claim.
    expected, tolerance : float or str, str or None
        What its test asks for.
    measured, error : float or bool, float or None
    control : float or bool, optional
        What the alternative gives that the claim excludes.
    """

    id: str
    expected: float | str
    measured: float | bool
    error: float | None
    tolerance: str | None
    verdict: str
    control: float | bool | None = None

    def _ipython_display_(self):
        """Show nothing where a call ends a cell: the check has shown its line already."""


def _passes(claim, measured, error):
    if claim.true is not None:
        return bool(measured)
    if claim.below is not None:
        return measured < claim.below
    if claim.above is not None:
        return measured > claim.above
    if claim.between is not None:
        return claim.between[0] <= measured <= claim.between[1]
    if claim.sigmas is not None:
        return error <= claim.max_error and abs(measured - claim.value) <= claim.bias + claim.sigmas * error
    tolerance = claim.atol if claim.atol is not None else claim.rtol * abs(claim.value)
    return abs(measured - claim.value) <= tolerance


def passes(claim: Claim, measured: float | bool, error: float | None = None) -> bool:
    """Whether a number or a property that was kept passes the test of a claim.

    Parameters
    ----------
    claim : Claim
    measured : float or bool
        One of another kind than the test asks for does not pass.
    error : float, optional
        Its standard error.

    Returns
    -------
    bool

    Examples
    --------
    >>> from lib.services.claims import Source
    >>> claim = Claim("demo/one", Source("demo"), "", "It is even.", true="two divides it")
    >>> passes(claim, True), passes(claim, False), passes(claim, 2.0)
    (True, False, False)
    """
    try:
        return _passes(claim, *_measured(claim, measured, error))
    except ValueError:
        return False


def _measured(claim, measured, error):
    """The measured value and its error as plain Python numbers of the kind that the claim's test needs."""
    if claim.true is not None:
        if not isinstance(measured, (bool, np.bool_)):
            raise ValueError(f"measured must be True or False for claim {claim.id!r} (a property), got {measured!r}")
        if error is not None:
            raise ValueError(f"error must be left out for claim {claim.id!r}, which is a property, got {error!r}")
        return bool(measured), None
    measured = checks.number("measured", measured)
    if claim.sigmas is not None and error is None:
        raise ValueError(f"error must be given for claim {claim.id!r}: its tolerance counts standard errors")
    return measured, None if error is None else checks.number("error", error, above=0)


def _number(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _finding(claim, measured, error):
    """What was found and what is allowed, in words."""
    if claim.true is not None:
        return f"{claim.true[0].upper()}{claim.true[1:]}."
    found = f"Found {_number(measured)}" + (f" ± {error:.2g}" if error is not None else "")
    if claim.below is not None:
        return f"{found}; allowed: below {claim.below:g}."
    if claim.above is not None:
        return f"{found}; asked: above {claim.above:g}."
    if claim.between is not None:
        return f"{found}; allowed: {claim.between[0]:g} to {claim.between[1]:g}."
    away = abs(measured - claim.value)
    if claim.sigmas is not None:
        allowed = f"{claim.bias:g} + {claim.sigmas:g} standard errors" if claim.bias else f"{claim.sigmas:g}"
        return f"{found}, {away / error:.1f} standard errors from {_number(claim.value)}; allowed {allowed}."
    if claim.rtol is not None:
        off, allowed = f"{away / abs(claim.value):.1g} of it", f"{claim.rtol:.2g}"
    else:
        off, allowed = f"{away:.1g}", f"{claim.atol:.2g}"
    return f"Found {measured:.7g}, expected {claim.value:.7g}: off by {off}; allowed {allowed}."


def _sentences(claim, record):
    """What a check says to a reader, a list of sentences: the statement, what was found, what the control gives."""
    said = [claim.statement, _finding(claim, record.measured, record.error)]
    if claim.control is not None:
        value = "does not" if isinstance(record.control, bool) else f"gives {_number(record.control)} and fails"
        said.append(f"The control, {claim.control}, {value}.")
    return said


def anchor(claim_id: str) -> str:
    """The HTML id of the place where a chapter checks a claim.

    Parameters
    ----------
    claim_id : str

    Returns
    -------
    str

    Examples
    --------
    >>> anchor("family/Eq.3")
    'ledger-family-eq-3'
    """
    return "ledger-" + "".join(c if c.isalnum() else "-" for c in claim_id.lower())


def _show(claim, record):
    """Print what was checked; inside a notebook attach the record and an anchor to the cell's output."""
    said = _sentences(claim, record)
    text = "✓ " + " ".join(said)
    if not InteractiveShell.initialized():
        print(text)
        return
    tex = re.compile(r"\$([^$]+)\$")
    said = [tex.sub(r"\\(\1\\)", html.escape(sentence, quote=False)) for sentence in said]
    about = f"{record.verdict}: {claim.source.name}" if claim.source.citation else record.verdict
    shown = (
        f'<p class="ledger-line mathjax_process" id="{anchor(record.id)}">{said[0]} '
        f'<span class="ledger-found">{" ".join(said[1:])}</span> '
        f'<span class="ledger-about">{html.escape(about)}</span></p>'
    )
    display({"text/plain": text, "text/html": shown}, metadata={METADATA: asdict(record)}, raw=True)


def check(
    claim_id: str,
    measured: float | bool,
    *,
    error: float | None = None,
    control: float | bool | None = None,
    claims: Mapping[str, Claim] | None = None,
) -> Record:
    """Hold a measured value against a declared claim: say so, record it, and raise if it is out of tolerance.

    Parameters
    ----------
    claim_id : str
        Declared in ``lib/claims``.
    measured : float or bool
        A number, or whether a property holds.
    error : float, optional
        Its standard error, required where the tolerance counts standard errors.
    control : float or bool, optional
        What the declared alternative gives, which must fail.
    claims : mapping of Claim, optional
        Others than those of ``lib/claims``, by id.

    Returns
    -------
    Record

    Raises
    ------
    ClaimFailed
        If the value is out of tolerance, or the control is not.

    Examples
    --------
    >>> from lib.services.claims import Source
    >>> claim = Claim(id="demo/pi", source=Source("demo"), locator="", statement="Half a turn.", value=3.14, atol=0.01)
    >>> record = check("demo/pi", 3.1416, claims={"demo/pi": claim})
    ✓ Half a turn. Found 3.1416, expected 3.14: off by 0.002; allowed 0.01.
    """
    claims = declared() if claims is None else claims
    checks.fail_if(not isinstance(claim_id, str), "claim_id", "be a string", claim_id)
    if claim_id not in claims:
        near = next(iter(difflib.get_close_matches(claim_id, claims, n=1, cutoff=0)), None)
        raise ValueError(f"claim_id {claim_id!r} is not declared in lib/claims; the nearest declared id is {near!r}")
    claim = claims[claim_id]
    if claim.open is not None:
        raise ValueError(f"claim_id {claim_id!r} is declared open: give it a test in lib/claims before checking it")
    if claim.full is not None and presets.current() != "quick":
        claim = replace(claim, value=claim.full)
    measured, error = _measured(claim, measured, error)
    if not _passes(claim, measured, error):
        spread = "" if error is None else f" ± {error:.2g}"
        within = f" within {claim.tolerance}" if claim.tolerance else ""
        raise ClaimFailed(f"{claim_id}: measured {measured!r}{spread}, expected {claim.expected}{within}")
    control = _control(claim, control, error)
    record = Record(claim_id, claim.expected, measured, error, claim.tolerance, claim.verdict, control)
    _show(claim, record)
    return record


def _control(claim, control, error):
    """The value of the alternative; a claim that it passes too tells nothing."""
    if (claim.control is None) != (control is None):
        wanted = "left out" if claim.control is None else f"the value of {claim.control!r}"
        raise ValueError(f"control must be {wanted} for claim {claim.id!r}, got {control!r}")
    if control is None:
        return None
    control, _ = _measured(claim, control, error)
    if _passes(claim, control, error):
        raise ClaimFailed(f"{claim.id}: the control, {claim.control}, gives {control!r} and passes as well")
    return control


def tallies(rows: Iterable[Mapping]) -> tuple[dict[str, int], dict[str, int]]:
    """Count the verdicts on the claims of the sources, and on the results of the book itself.

    A correction that has its cause in another one counts with that one; what may be a fault of the conversion counts
    nowhere.

    Parameters
    ----------
    rows : iterable of dict
        Of the ledger.

    Returns
    -------
    dict, dict
        Numbers by verdict.

    Examples
    --------
    >>> tallies([{"verdict": "holds", "citation": None}])[1]
    {'holds': 1, 'open': 0}
    """
    sources, own = Counter(), Counter()
    for row in rows:
        if row["citation"] is None:
            own[row["verdict"]] += 1
        elif row["cause"] is None:
            sources[row["verdict"]] += 1
    return {name: sources[name] for name in (*VERDICTS, "open")}, {name: own[name] for name in (OWN, "open")}


def rows(records: Iterable[Mapping], claims: Mapping[str, Claim] | None = None) -> list[dict]:
    """The ledger: one row a declared claim, joined with the records of the chapters; unchecked claims are "open".

    Parameters
    ----------
    records : iterable of dict
        As attached to cell outputs, with "chapter", in reading order.
    claims : mapping of Claim, optional
        By id; by default those of ``lib/claims``.

    Returns
    -------
    list of dict

    Raises
    ------
    ValueError
        If a record has no claim, or a claim two records.

    Examples
    --------
    >>> {row["verdict"] for row in rows([])}
    {'open'}
    """
    claims = declared() if claims is None else claims
    found = {}
    for place, record in enumerate(records):
        if record["id"] not in claims:
            raise ValueError(f"{record['chapter']} records {record['id']!r}, which is not declared in lib/claims")
        if record["id"] in found:
            both = f"{found[record['id']]['chapter']} and {record['chapter']}"
            raise ValueError(f"{record['id']!r} is recorded twice, by {both}: check it in one place")
        found[record["id"]] = record | {"place": place}
    said = ("id", "locator", "statement", "expected", "control", "tolerance", "printed", "right", "cause", "neglects")
    table = []
    for claim in claims.values():
        record = found.get(claim.id, {})
        lacks = f"needs {claim.needs}, which the build does not have" if claim.needs else "no chapter checks it yet"
        row = {name: getattr(claim, name) for name in said}
        row |= {name: record.get(name) for name in ("chapter", "measured", "error", "place")}
        row |= {"source": claim.source.name, "citation": claim.source.citation, "control_value": record.get("control")}
        row |= {"verdict": record.get("verdict", "open"), "reason": None if record else claim.open or lacks}
        row |= {"kind": claim.verdict if claim.verdict in CORRECTED else None}
        table.append(row | {"anchor": anchor(claim.id) if record else None})
    return table

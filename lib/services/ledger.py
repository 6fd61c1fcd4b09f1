r"""The reproduction ledger: what the sources claim, what we measure, and the verdict.

The claims of a chapter are declared in ``lib/claims/<part>/<chapter>.toml``; the family, which is the part of an id
before the slash, has its source in ``lib/claims/sources.toml``.  A chapter calls :func:`check` with what it measured.
The call shows one readable line, raises :class:`ClaimFailed` if the value is out of tolerance, and attaches a record to
the output of its cell.  The build reads the records back from the executed notebooks, so a record lives and dies with
the output it belongs to.
"""

import difflib
import functools
import html
import math
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, replace
from importlib import resources
from types import MappingProxyType

import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from lib.common import checks

METADATA = "physics-of-learning/ledger"  # the key of a record in the metadata of a cell's output
VERDICTS = ("reproduced", "corrected", "refuted")  # of a claim of a source
OWN = "holds"  # of a result of the book itself: there is nobody to reproduce or to correct
TESTS = ("value", "below", "above", "between", "true")


class ClaimFailed(AssertionError):
    """A measured value lies outside the tolerance that its claim declares."""


@dataclass(frozen=True)
class Source:
    """Where a family of claims comes from: a short name for tables, and the citation key.

    A family without a citation holds results of the book itself.
    """

    name: str
    citation: str | None = None


@dataclass(frozen=True)
class Claim:
    """One claim of a source.

    Exactly one test is set: ``value`` with ``atol``, ``rtol`` or ``sigmas`` (the last with ``max_error``), ``below``,
    ``above``, ``between`` or ``true``; or none, and then ``open`` says why the claim is not checked.  ``printed`` and
    ``right`` are set where the verdict is "corrected"; ``extraction`` marks a fault that may be the text extraction's.
    A result of the book itself has the verdict "holds": only a claim of a source can be reproduced, corrected or
    refuted.
    """

    id: str
    source: Source
    locator: str
    statement: str
    verdict: str = "reproduced"
    value: float | None = None
    atol: float | None = None
    rtol: float | None = None
    sigmas: float | None = None
    max_error: float | None = None
    below: float | None = None
    above: float | None = None
    between: tuple[float, float] | None = None
    true: str | None = None
    printed: str | None = None
    right: str | None = None
    extraction: bool = False
    open: str | None = None

    @property
    def expected(self):
        """What the test asks for, in words or as a number."""
        if self.value is not None:
            return self.value
        if self.below is not None:
            return f"< {self.below:g}"
        if self.above is not None:
            return f"> {self.above:g}"
        if self.between is not None:
            return f"in [{self.between[0]:g}, {self.between[1]:g}]"
        return self.true

    @property
    def tolerance(self):
        """How far the measured value may lie from ``value``, in words; None for the other tests."""
        if self.rtol is not None:
            return f"{self.rtol:g} relative"
        if self.atol is not None:
            return f"{self.atol:g}"
        if self.sigmas is not None:
            return f"{self.sigmas:g} standard errors, each at most {self.max_error:g}"
        return None


@dataclass(frozen=True)
class Record:
    """A claim with what a chapter measured; the build adds the chapter."""

    id: str
    expected: float | str
    measured: float | bool
    error: float | None
    tolerance: str | None
    verdict: str

    def _ipython_display_(self):
        """Show nothing where a call ends a cell: :func:`check` has shown its line already."""


def _claim(entry, source, path):
    """One claim from its TOML table; every slip in the declaration is an error that names the file and the id."""
    identity = f"{path}: claim {entry.get('id', '?')!r}"
    try:
        claim = Claim(source=source, **{key: tuple(v) if key == "between" else v for key, v in entry.items()})
    except TypeError as error:
        raise ValueError(f"{identity}: {error}") from None
    tests = [name for name in TESTS if getattr(claim, name) is not None]
    if claim.open is not None:
        tests.append("open")
    if len(tests) != 1:
        raise ValueError(f"{identity} must declare exactly one of {', '.join(TESTS)} or open, got {tests or 'none'}")
    if claim.verdict not in VERDICTS:
        raise ValueError(f"{identity}: verdict must be one of {', '.join(VERDICTS)}, got {claim.verdict!r}")
    if source.citation is None:
        if "verdict" in entry or claim.extraction:
            raise ValueError(
                f"{identity}: a result of the book itself has no verdict and no extraction to declare; "
                "it holds, or it is open"
            )
        claim = replace(claim, verdict=OWN)
    if claim.extraction and claim.verdict != "corrected":
        raise ValueError(
            f"{identity}: extraction tells of a fault in a source's text, so it goes with the verdict 'corrected'"
        )
    numbers = [getattr(claim, name) for name in ("value", "atol", "rtol", "sigmas", "max_error", "below", "above")]
    for bound in [number for number in numbers if number is not None] + list(claim.between or ()):
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound):
            raise ValueError(f"{identity}: every bound must be a finite number, got {bound!r}")
    if any(number is not None and number <= 0 for number in (claim.atol, claim.rtol, claim.sigmas, claim.max_error)):
        raise ValueError(f"{identity}: atol, rtol, sigmas and max_error must be > 0")
    if claim.between is not None and not (len(claim.between) == 2 and claim.between[0] < claim.between[1]):
        raise ValueError(f"{identity}: between must hold two increasing numbers, got {list(claim.between)}")
    if "" in (claim.true, claim.open, claim.statement, claim.locator):
        raise ValueError(f"{identity}: true, open, statement and locator must say something")
    if claim.true is not None and "$" in claim.true:
        raise ValueError(
            f"{identity}: true is shown as plain text and must not contain TeX; use the statement for formulas"
        )
    if (claim.value is not None) != (sum(t is not None for t in (claim.atol, claim.rtol, claim.sigmas)) == 1):
        raise ValueError(f"{identity}: value and exactly one of atol, rtol, sigmas go together")
    if (claim.sigmas is None) != (claim.max_error is None):
        raise ValueError(f"{identity}: sigmas needs max_error, or a large error bar would always pass")
    if (claim.verdict == "corrected") != (claim.printed is not None and claim.right is not None):
        raise ValueError(f"{identity}: verdict 'corrected' goes with both printed and right")
    return claim


def load(folder=None):
    """All declared claims, ordered by family, file and place: a dict from id to :class:`Claim`.

    Parameters
    ----------
    folder : path, optional    which holds ``sources.toml`` and ``<part>/<chapter>.toml``; default: ``lib/claims``

    Raises
    ------
    ValueError    if a declaration is incomplete, contradicts itself, or repeats an id
    """
    folder = resources.files("lib") / "claims" if folder is None else folder
    try:
        sources = {family: Source(**entry) for family, entry in _read(folder / "sources.toml").items()}
    except TypeError as error:
        raise ValueError(f"sources.toml: {error}") from None
    claims = {}
    for part in sorted((p for p in folder.iterdir() if p.is_dir()), key=lambda p: p.name):
        for path in sorted((p for p in part.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name):
            name = f"{part.name}/{path.name}"
            content = _read(path)
            if set(content) != {"claim"}:
                raise ValueError(f"{name} must hold [[claim]] tables and nothing else, got {sorted(content)}")
            for entry in content["claim"]:
                family = str(entry.get("id", "?")).split("/")[0]
                if family not in sources:
                    raise ValueError(
                        f"{name}: claim id {entry.get('id')!r} must start with a family of sources.toml and a slash"
                    )
                claim = _claim(entry, sources[family], name)
                if claim.id in claims:
                    raise ValueError(f"{name}: claim id {claim.id!r} is declared twice")
                claims[claim.id] = claim
    order = list(sources)
    return dict(sorted(claims.items(), key=lambda item: order.index(item[0].split("/")[0])))


def _read(path):
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: {error}") from None


@functools.cache
def declared():
    """The claims of ``lib/claims``, read once a process: a read-only mapping from id to :class:`Claim`."""
    return MappingProxyType(load())


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
        return error <= claim.max_error and abs(measured - claim.value) <= claim.sigmas * error
    tolerance = claim.atol if claim.atol is not None else claim.rtol * abs(claim.value)
    return abs(measured - claim.value) <= tolerance


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
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def line(record):
    """The readable line for a record: id, verdict, measured ± error, what was expected."""
    if isinstance(record.measured, bool):
        return f"✓ {record.id} — {record.verdict}: {record.expected}"
    measured = _number(record.measured) + (f" ± {record.error:.2g}" if record.error is not None else "")
    within = f" (within {record.tolerance})" if record.tolerance else ""
    return f"✓ {record.id} — {record.verdict}: measured {measured}, expected {_number(record.expected)}{within}"


def anchor(claim_id):
    """The HTML id of the place where a chapter checks a claim."""
    return "ledger-" + "".join(c if c.isalnum() else "-" for c in claim_id.lower())


def _show(record):
    """Print the line; inside a notebook attach the record and an anchor to the cell's output."""
    text = line(record)
    if not InteractiveShell.initialized():
        print(text)
        return
    shown = f'<p class="ledger-line" id="{anchor(record.id)}">{html.escape(text)}</p>'
    display({"text/plain": text, "text/html": shown}, metadata={METADATA: asdict(record)}, raw=True)


def check(claim_id, measured, *, error=None, claims=None):
    """Hold a measured value against a declared claim: show one line, record it, and raise if it is out of tolerance.

    Parameters
    ----------
    claim_id : str              an id declared in ``lib/claims``
    measured : float or bool    the number that the chapter computed; True or False for a property
    error : float, optional     its standard error; required where the claim's tolerance counts standard errors
    claims : dict, optional     claims by id, for tests; default: the declared ones

    Returns
    -------
    Record                      what was recorded

    Raises
    ------
    ValueError                  unknown id (the message names the nearest one), or a value of the wrong kind
    ClaimFailed                 the value is out of tolerance

    Examples
    --------
    >>> claim = Claim(id="demo/pi", source=Source("demo"), locator="", statement="", value=3.14, atol=0.01)
    >>> record = check("demo/pi", 3.1416, claims={"demo/pi": claim})
    ✓ demo/pi — reproduced: measured 3.1416, expected 3.14 (within 0.01)
    """
    claims = declared() if claims is None else claims
    if not isinstance(claim_id, str):
        checks.fail("claim_id", "be a string", claim_id)
    if claim_id not in claims:
        near = difflib.get_close_matches(claim_id, claims, n=1, cutoff=0)
        raise ValueError(
            f"claim_id {claim_id!r} is not declared in lib/claims; "
            f"the nearest declared id is {near[0] if near else None!r}"
        )
    claim = claims[claim_id]
    if claim.open is not None:
        raise ValueError(f"claim_id {claim_id!r} is declared open: give it a test in lib/claims before checking it")
    measured, error = _measured(claim, measured, error)
    if not _passes(claim, measured, error):
        spread = "" if error is None else f" ± {error:.2g}"
        within = f" within {claim.tolerance}" if claim.tolerance else ""
        raise ClaimFailed(f"{claim_id}: measured {measured!r}{spread}, expected {claim.expected}{within}")
    record = Record(claim_id, claim.expected, measured, error, claim.tolerance, claim.verdict)
    _show(record)
    return record


def tallies(rows):
    """Two counts by verdict: of the claims of the sources, and of the results of the book itself."""
    sources = Counter(row["verdict"] for row in rows if row["citation"] is not None)
    own = Counter(row["verdict"] for row in rows if row["citation"] is None)
    return {verdict: sources[verdict] for verdict in (*VERDICTS, "open")}, {
        verdict: own[verdict] for verdict in (OWN, "open")
    }


def rows(records, claims=None):
    """The ledger: one row a declared claim, joined with the records of the chapters; unchecked claims are "open".

    Parameters
    ----------
    records : iterable of dict    records as attached to cell outputs, each with "chapter" added, in reading order
    claims : dict, optional       claims by id; default: the declared ones

    Returns
    -------
    list of dict                  keys: id, source, citation, locator, chapter, statement, expected, measured,
                                  error, tolerance, verdict, reason, printed, right, extraction, anchor, place (in
                                  reading order)

    Raises
    ------
    ValueError                    if a record has no claim, or if one claim was recorded twice
    """
    claims = declared() if claims is None else claims
    found = {}
    places = {}
    for place, record in enumerate(records):
        if record["id"] not in claims:
            raise ValueError(f"{record['chapter']} records {record['id']!r}, which is not declared in lib/claims")
        if record["id"] in found:
            raise ValueError(
                f"{record['id']!r} is recorded twice, by {found[record['id']]['chapter']} and {record['chapter']}: "
                "check it in one place"
            )
        found[record["id"]] = record
        places[record["id"]] = place
    table = []
    for claim in claims.values():
        record = found.get(claim.id)
        table.append(
            {
                "id": claim.id,
                "source": claim.source.name,
                "citation": claim.source.citation,
                "locator": claim.locator,
                "chapter": record and record["chapter"],
                "statement": claim.statement,
                "expected": claim.expected,
                "measured": record and record["measured"],
                "error": record and record["error"],
                "tolerance": claim.tolerance,
                "verdict": record["verdict"] if record else "open",
                "reason": None if record else claim.open or "no chapter checks it yet",
                "printed": claim.printed,
                "right": claim.right,
                "extraction": claim.extraction,
                "anchor": anchor(claim.id) if record else None,
                "place": places.get(claim.id),
            }
        )
    return table

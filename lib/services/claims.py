"""What the sources claim: the declarations of ``lib/claims``, read and checked.

A chapter's claims are in ``<part>/<chapter>.toml``; their family, the part of an id before the slash, has its source in
``sources.toml``.  :mod:`lib.services.ledger` holds what was measured against them.
"""

import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from types import MappingProxyType

VERDICTS = ("reproduced", "error", "slip", "refuted")  # of a claim of a source
CONVERSION = "conversion"  # the fault may be that of the text we worked from: listed apart and counted nowhere
CORRECTED = ("error", "slip", CONVERSION)  # these have something printed, and something right
OWN = "holds"  # of a result of the book itself: there is nobody to reproduce or to correct
TESTS = ("value", "below", "above", "between", "true")


@dataclass(frozen=True)
class Source:
    """Where a family of claims comes from.

    Parameters
    ----------
    name : str
    citation : str, optional
        Without one the family holds results of the book itself.
    """

    name: str
    citation: str | None = None


@dataclass(frozen=True)
class Claim:
    """One claim of a source.  Exactly one test (`value`, `below`, `above`, `between`, `true`) is set, or `open`.

    Parameters
    ----------
    id, locator, statement : str
        "family/name", the place in the source, what it says in our words.
    source : Source
    verdict : str
        VERDICTS or CONVERSION, of a claim of a source; OWN, of a result of the book itself.
    value, atol, rtol, sigmas : float, optional
        What is expected, with exactly one tolerance: absolute, relative, or in standard errors.
    full : float, optional
        The value at the source's own size, where that is another one.
    max_error, neglects, bias : float, str, float
        With `sigmas`: the largest standard error; what the expected value leaves out, in words, "nothing: ..." where it
        is exact; the size of that, allowed beside the standard errors.
    below, above, between, true : float, float, (float, float), str, optional
        Bounds, or a property in words.
    printed, right, cause : str, optional
        Where the verdict is one of CORRECTED: what stands there, what should, and the id of the claim that counts for
        this one, which has the same cause.
    control : str, optional
        The alternative that the test excludes; its value is given with the measured one.
    needs : str, optional
        The data that the build does not have: the claim is checked at full size only.
    open : str, optional
        Why the claim is not checked.
    """

    id: str
    source: Source
    locator: str
    statement: str
    verdict: str = "reproduced"
    value: float | None = None
    full: float | None = None
    atol: float | None = None
    rtol: float | None = None
    sigmas: float | None = None
    max_error: float | None = None
    neglects: str | None = None
    bias: float = 0.0
    below: float | None = None
    above: float | None = None
    between: tuple[float, float] | None = None
    true: str | None = None
    printed: str | None = None
    right: str | None = None
    cause: str | None = None
    control: str | None = None
    needs: str | None = None
    open: str | None = None

    @property
    def expected(self) -> float | str:
        """What the test asks for, as a number or in words."""
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
    def tolerance(self) -> str | None:
        """How far the measured value may lie from ``value``, in words; None for the other tests."""
        if self.rtol is not None:
            return f"{self.rtol:g} relative"
        if self.atol is not None:
            return f"{self.atol:g}"
        if self.sigmas is not None:
            beside = f"{self.bias:g} and " if self.bias else ""
            return f"{beside}{self.sigmas:g} standard errors, each at most {self.max_error:g}"
        return None


def _claim(entry, source, path):
    """One claim from its TOML table; every slip in the declaration is an error that names the file and the id."""

    def refuse(slips):
        for reason in (reason for wrong, reason in slips if wrong):
            raise ValueError(f"{path}: claim {entry.get('id', '?')!r}: {reason}")

    try:
        claim = Claim(source=source, **{key: tuple(v) if key == "between" else v for key, v in entry.items()})
    except TypeError as error:
        return refuse([(True, error)])
    own = source.citation is None
    claim = replace(claim, verdict=OWN) if own else claim
    tests = [name for name in (*TESTS, "open") if getattr(claim, name) is not None]
    tolerances = [claim.atol, claim.rtol, claim.sigmas]
    numbers = [claim.value, claim.full, *tolerances, claim.max_error, claim.below, claim.above, *(claim.between or ())]
    words = (claim.true, claim.open, claim.needs, claim.control, claim.neglects, claim.statement, claim.locator)
    corrected, known = claim.verdict in CORRECTED, (*VERDICTS, CONVERSION)
    odd = [number for number in [*numbers, claim.bias] if number is not None and not _finite(number)]
    refuse([
        (len(tests) != 1, f"exactly one of {', '.join(TESTS)} or open must be declared, got {tests or 'none'}"),
        (own and "verdict" in entry, "a result of the book itself has no verdict to declare; it holds, or it is open"),
        (not own and claim.verdict not in known, f"verdict must be one of {', '.join(known)}, got {claim.verdict!r}"),
        (odd, f"every bound must be a finite number, got {odd}"),
    ])  # fmt: skip
    between, needed = claim.between, claim.control is not None or claim.needs is not None
    counted, exact = claim.sigmas is not None, (claim.neglects or "nothing").startswith("nothing")
    refuse([
        (any(t is not None and t <= 0 for t in (*tolerances, claim.max_error)), "tolerances and max_error must be > 0"),
        (between and not (len(between) == 2 and between[0] < between[1]), "between must hold two increasing numbers"),
        ("" in words, "true, open, needs, control, neglects, statement and locator must say something"),
        (claim.open is not None and needed, "control and needs go with a test, and the claim is open"),
        ("$" in (claim.true or ""), "true is shown as plain text and must not contain TeX: the statement may"),
        ((claim.value is not None) != (tolerances.count(None) == 2), "value and one of atol, rtol, sigmas go together"),
        (claim.full is not None and claim.value is None, "full, the value at the source's own size, goes with a value"),
        (counted != (claim.max_error is not None), "sigmas needs max_error: a large error would always pass"),
        (counted and claim.neglects is None, "a test in standard errors must say what it neglects"),
        (claim.neglects is not None and not counted, "what a test in standard errors neglects goes with sigmas"),
        (claim.bias < 0, "bias must be >= 0"),
        (claim.bias and exact, "bias is the size of what is neglected: neglects must say what that is"),
        (corrected != (None not in (claim.printed, claim.right)), f"printed and right go with {', '.join(CORRECTED)}"),
        (claim.cause is not None and not corrected, "cause, the claim that counts, goes with a correction"),
    ])  # fmt: skip
    return claim


def _finite(number):
    return isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number)


def _load(folder: Traversable | None = None) -> dict[str, Claim]:
    """Read and check all claims that a folder declares.

    Parameters
    ----------
    folder : path, optional
        By default ``lib/claims``.

    Returns
    -------
    dict of Claim
        By id, in the order of families, files and places.

    Raises
    ------
    ValueError
        If a declaration is incomplete, contradicts itself or repeats an id; it names the file and the id.

    Examples
    --------
    >>> all(name == claim.id for name, claim in _load().items())
    True
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
                family, known = str(entry.get("id", "?")).split("/")[0], "a family of sources.toml and a slash"
                if family not in sources:
                    raise ValueError(f"{name}: claim id {entry.get('id')!r} must start with {known}")
                claim = _claim(entry, sources[family], name)
                if claim.id in claims:
                    raise ValueError(f"{name}: claim id {claim.id!r} is declared twice")
                claims[claim.id] = claim
    for claim in claims.values():
        counted = claims.get(claim.cause)
        if claim.cause is not None and (counted is None or counted.cause or counted.verdict not in CORRECTED):
            raise ValueError(
                f"claim {claim.id!r}: cause must name a correction that counts for itself, got {claim.cause!r}"
            )
    order = list(sources)
    return dict(sorted(claims.items(), key=lambda item: order.index(item[0].split("/")[0])))


def _read(path):
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: {error}") from None


@functools.cache
def declared() -> Mapping[str, Claim]:
    """The claims of ``lib/claims``, read once a process.

    Returns
    -------
    mapping of Claim
        By id, read-only.

    Examples
    --------
    >>> declared() is declared()
    True
    """
    return MappingProxyType(_load())

"""List the claims whose bound is far from what was measured, so that much could go wrong before they fail.

``python -m tools.release.loose`` reads the ledger of the last build and prints, loosest first, every claim whose test
would still pass three times away from what was found.
"""

import json
import sys

from lib.services import claims
from tools.build import project

FACTOR = 3


def room(claim, row):
    """How many times farther away the measured value could lie; None where the test has no such measure."""
    measured = row["measured"]
    if claim.true is not None or claim.between is not None or measured is None:
        return None
    if claim.below is not None:
        return claim.below / measured if measured > 0 and claim.below > 0 else None
    if claim.above is not None:
        return measured / claim.above if measured > 0 and claim.above > 0 else None
    if claim.sigmas is not None:
        return claim.max_error / row["error"]
    away = abs(measured - claim.value)
    allowed = claim.atol if claim.atol is not None else claim.rtol * abs(claim.value)
    return allowed / away if away else None


def loose(declared, rows):
    """Pairs of room and id, loosest first.  A claim with a control says itself what it excludes, and is left out."""
    found = [(room(declared[row["id"]], row), row["id"]) for row in rows if declared[row["id"]].control is None]
    return sorted(((much, name) for much, name in found if much is not None and much > FACTOR), reverse=True)


def main():
    file = project.ROOT / "_build" / "ledger.json"
    if not file.exists():
        sys.exit(f"{file} is missing: run `make book` first")
    found = loose(claims.declared(), json.loads(file.read_text(encoding="utf-8")))
    for much, name in found:
        print(f"{much:10.3g}  {name}")
    print(f"{len(found)} claims would pass {FACTOR} times away from what was measured.")


if __name__ == "__main__":
    main()

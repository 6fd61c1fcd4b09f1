"""The list of claims that much could go wrong with before they fail."""

import pytest

from lib.services.claims import Claim, Source
from tools.release.loose import loose, room


def claim(**test):
    return Claim(id="x/1", source=Source("A source"), locator="here", statement="Something.", **test)


@pytest.mark.parametrize(
    ("test", "measured", "error", "wanted"),
    [
        ({"below": 6.0}, 2.0, None, 3),
        ({"above": 2.0}, 8.0, None, 4),
        ({"value": 1.0, "atol": 0.5}, 1.1, None, 5),
        ({"value": 2.0, "rtol": 0.5}, 1.5, None, 2),
        ({"value": 0.0, "sigmas": 4, "max_error": 0.6}, 0.1, 0.1, 6),
        ({"value": 1.0, "atol": 0.5}, 1.0, None, None),
        ({"between": (0.0, 1.0)}, 0.5, None, None),
        ({"true": "it holds"}, True, None, None),
    ],
)
def test_room_is_how_many_times_farther_a_value_could_lie(test, measured, error, wanted):
    found = room(claim(**test), {"measured": measured, "error": error})
    assert found == wanted if wanted is None else found == pytest.approx(wanted)


def test_the_loosest_come_first_and_controls_speak_for_themselves():
    declared = {
        "a": claim(below=10.0),
        "b": claim(below=100.0),
        "c": claim(below=100.0, control="x"),
        "d": claim(below=2.0),
    }
    rows = [{"id": name, "measured": 1.0, "error": None} for name in declared]
    assert loose(declared, rows) == [(100.0, "b"), (10.0, "a")]

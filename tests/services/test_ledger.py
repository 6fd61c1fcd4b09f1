"""The ledger's service: values are held against declared claims, and rows are joined with records."""

import dataclasses

import pytest

from lib.services import ledger
from lib.services.claims import Claim, Source

SOURCE = Source("A source", "key2020")
SIGMAS = {"value": 2.0, "sigmas": 4, "max_error": 0.2}


def claim(**test):
    return Claim(id="x/1", source=SOURCE, locator="eq. (1)", statement="A statement.", **test)


def check(measured, error=None, **test):
    return ledger.check("x/1", measured, error=error, claims={"x/1": claim(**test)})


@pytest.mark.parametrize(
    ("test", "measured", "error", "said"),
    [
        ({"value": 2.0, "atol": 0.1}, 2.09, None, "Found 2.09, expected 2: off by 0.09; allowed 0.1."),
        ({"value": -2.0, "rtol": 0.1}, -2.19, None, "Found -2.19, expected -2: off by 0.09 of it; allowed 0.1."),
        (SIGMAS, 2.7, 0.19, "Found 2.7 ± 0.19, 3.7 standard errors from 2; allowed 4."),
        (SIGMAS | {"bias": 1}, 2.5, 0.1, "Found 2.5 ± 0.1, 5.0 standard errors from 2; allowed 1 + 4 standard errors."),
        ({"below": 1e-3}, 9e-4, None, "Found 0.0009; allowed: below 0.001."),
        ({"above": 3}, 12.345678, 0.2, "Found 12.35 ± 0.2; asked: above 3."),
        ({"between": (-0.6, -0.4)}, -0.5, None, "Found -0.5; allowed: -0.6 to -0.4."),
        ({"true": "it holds"}, True, None, "It holds."),
    ],
)
def test_a_value_within_tolerance_is_recorded_and_told(test, measured, error, said, capsys):
    record = check(measured, error, **test)
    assert (record.measured, record.error, record.verdict) == (measured, error, "reproduced")
    assert capsys.readouterr().out == f"✓ A statement. {said}\n"


def test_a_control_is_told_and_must_fail(capsys):
    claims = {"x/1": claim(below=5, control="noise left out")}
    record = ledger.check("x/1", 2.0, control=34.0, claims=claims)
    assert record.control == 34
    assert capsys.readouterr().out.endswith("allowed: below 5. The control, noise left out, gives 34 and fails.\n")
    with pytest.raises(ledger.ClaimFailed, match="the control, noise left out, gives 4.9 and passes as well"):
        ledger.check("x/1", 2.0, control=4.9, claims=claims)
    with pytest.raises(ValueError, match="control must be the value of 'noise left out'"):
        ledger.check("x/1", 2.0, claims=claims)
    with pytest.raises(ValueError, match="control must be left out"):
        ledger.check("x/1", 2.0, control=34.0, claims={"x/1": claim(below=5)})
    (row,) = ledger.rows([dataclasses.asdict(record) | {"chapter": "a"}], claims)
    assert (row["control"], row["control_value"]) == ("noise left out", 34)


@pytest.mark.parametrize(
    ("test", "measured", "error"),
    [
        ({"value": 2.0, "atol": 0.1}, 2.11, None),
        ({"value": 2.0, "rtol": 0.1}, 2.21, None),
        (SIGMAS, 2.9, 0.2),
        (SIGMAS, 2.0, 0.3),
        ({"below": 1e-3}, 1e-3, None),
        ({"above": 3}, 3, None),
        ({"between": (-0.6, -0.4)}, -0.7, None),
        ({"true": "it holds"}, False, None),
    ],
)
def test_value_out_of_tolerance_fails(test, measured, error):
    with pytest.raises(ledger.ClaimFailed, match="x/1: measured"):
        check(measured, error, **test)


@pytest.mark.parametrize(
    ("test", "measured", "error", "message"),
    [
        ({"value": 2.0, "atol": 0.1}, float("nan"), None, "measured must be one finite number"),
        ({"value": 2.0, "atol": 0.1}, [2.0, 2.0], None, "measured must be one finite number"),
        ({"value": 1.0, "atol": 0.1}, True, None, "measured must be one finite number"),
        ({"true": "it holds"}, 1.0, None, "measured must be True or False"),
        ({"true": "it holds"}, True, 0.1, "error must be left out"),
        (SIGMAS, 2.0, None, "error must be given"),
        (SIGMAS, 2.0, 0.0, "error must be one finite number > 0"),
        ({"open": "no data"}, 2.0, None, "is declared open"),
        ({"value": 2.0, "atol": 0.1}, None, None, "measured must be one finite number"),
        ({"value": 2.0, "atol": 0.1}, "2", None, "measured must be one finite number"),
        (SIGMAS, 2.0, [1, 2], "error must be one finite number"),
    ],
)
def test_value_of_the_wrong_kind_is_refused(test, measured, error, message):
    with pytest.raises(ValueError, match=message):
        check(measured, error, **test)


def test_the_sources_own_size_may_have_another_value(monkeypatch, capsys):
    test = {"value": 2.0, "full": 3.0, "atol": 0.1}
    assert check(2.05, **test).expected == 2.0
    with pytest.raises(ledger.ClaimFailed, match="expected 2.0"):
        check(3.05, **test)
    monkeypatch.setenv("PHYSICS_OF_LEARNING_PRESET", "paper")
    assert check(3.05, **test).expected == 3.0
    with pytest.raises(ledger.ClaimFailed, match="expected 3.0"):
        check(2.05, **test)


def test_id_that_is_no_string_is_refused():
    with pytest.raises(ValueError, match="claim_id must be a string"):
        ledger.check(["x/1"], 1.0, claims={"x/1": claim(below=2)})


def test_unknown_id_names_the_nearest():
    with pytest.raises(ValueError, match=r"'fdt/eq1.55' is not declared .* nearest declared id is 'fdt/eq1.5'"):
        ledger.check("fdt/eq1.55", 1.0, claims={"fdt/eq1.5": claim(), "scaling/eq3": claim()})


def test_two_tallies():
    """What has its cause in another claim, and what may be a fault of the conversion, count nowhere."""
    verdicts = ["reproduced", "error", "conversion", "open", "reproduced"]
    table = [{"citation": "key", "verdict": verdict, "cause": None} for verdict in verdicts]
    table += [{"citation": "key", "verdict": "error", "cause": "the same"}]
    table += [{"citation": None, "verdict": verdict, "cause": None} for verdict in ("holds", "open")]
    sources, own = ledger.tallies(table)
    assert sources == {"reproduced": 2, "error": 1, "slip": 0, "refuted": 0, "open": 1}
    assert own == {"holds": 1, "open": 1}


def record(**changes):
    made = ledger.Record("x/1", 1.0, 1.05, None, "0.1", "reproduced")
    return dataclasses.asdict(made) | {"chapter": "book/a"} | changes


def test_rows_join_claims_and_records():
    claims = {
        "x/1": claim(value=1.0, atol=0.1),
        "x/2": dataclasses.replace(claim(open="no data"), id="x/2"),
        "x/3": dataclasses.replace(claim(below=1.0), id="x/3"),
    }
    checked, declared_open, unchecked = ledger.rows([record()], claims)
    names = ("verdict", "measured", "chapter", "reason", "place")
    assert [checked[name] for name in names] == ["reproduced", 1.05, "book/a", None, 0]
    assert [declared_open[name] for name in names] == ["open", None, None, "no data", None]
    assert [unchecked[name] for name in names] == ["open", None, None, "no chapter checks it yet", None]
    assert {"id", "source", "chapter", "statement", "expected", "measured", "tolerance", "verdict"} <= set(checked)


def test_rows_refuse_strays_and_repeats():
    claims = {"x/1": claim(value=1.0, atol=0.1)}
    with pytest.raises(ValueError, match="'x/9', which is not declared"):
        ledger.rows([record(id="x/9")], claims)
    with pytest.raises(ValueError, match="recorded twice, by book/a and book/b"):
        ledger.rows([record(), record(chapter="book/b")], claims)

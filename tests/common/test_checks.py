"""The argument checks: what passes is returned in its working type, what does not names argument, requirement and value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lib.common import checks


def refuses(check, name, *arguments, match, **options):
    with pytest.raises(ValueError, match=rf"^{name} must .*{match}"):
        check(name, *arguments, **options)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_passes_finite_floats(value):
    assert checks.number("rate", value) == value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "3", None, [1.0], True, np.True_, 1j, np.ones(1), 10**400, [[1], [1, 2]]]
)
def test_number_refuses(value):
    refuses(checks.number, "rate", value, match="finite number.*got")


def test_number_bounds():
    assert checks.number("rate", 1, above=0, at_most=1) == 1.0
    refuses(checks.number, "rate", 0, match="> 0 and < 2, got 0", above=0, below=2)
    refuses(checks.number, "rate", -1, match=">= 0, got -1", at_least=0)
    refuses(checks.number, "rate", 3, match="<= 2, got 3", at_most=2)


@pytest.mark.parametrize("value", [0, -3, 3.0, True, "4", None, np.float64(4)])
def test_integer_refuses(value):
    refuses(checks.integer, "size", value, match="integer >= 1, got")


def test_integer_passes_numpy_integers():
    assert checks.integer("size", np.int32(4)) == 4


@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)))
def test_array_is_a_float_copy(value):
    result = checks.array("state", value, ndim=2)
    assert np.array_equal(result, value) and result is not value


@given(arrays(float, (2, 2), elements=st.floats(-1, 1)), st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, 3))
def test_array_refuses_non_finite(value, bad, place):
    value.flat[place] = bad
    refuses(checks.array, "state", value, match="be finite")


@pytest.mark.parametrize(
    "value",
    [
        "abc",
        ["1", "2"],
        [True],
        [[1], [1, 2]],
        object(),
        np.array([1j]),
        None,
        [10**400],
        np.ma.array([1.0], mask=[True]),
    ],
)
def test_array_refuses_what_is_no_array(value):
    with pytest.raises(ValueError, match="^state must"):
        checks.array("state", value)


def test_array_shape():
    assert checks.array("state", np.ones((2, 3)), shape=(None, 3)).shape == (2, 3)
    refuses(checks.array, "state", np.ones((2, 4)), match=r"shape \(any, 3\), got .*\(2, 4\)", shape=(None, 3))
    refuses(checks.array, "state", np.ones(2), match="2 axes, got .*1 axes", ndim=2)


def test_entries_bounds():
    refuses(checks.entries, "weights", [1.0, -0.5], match="entries >= 0, got", at_least=0)


@pytest.mark.parametrize("value", [[], [1, 1], [2, 1], [-1, 2], [[1, 2]]])
def test_times_refuses(value):
    with pytest.raises(ValueError, match="^times must"):
        checks.times("times", value)


def test_symmetric():
    assert np.array_equal(checks.symmetric("cov", np.eye(2), definite="strict"), np.eye(2))
    refuses(checks.symmetric, "cov", [[1, 2], [0, 1]], match="symmetric")
    refuses(checks.symmetric, "cov", np.ones((2, 3)), match="square")
    refuses(checks.symmetric, "cov", np.diag([1, -1]), match="semidefinite, got .*-1", definite="semi")
    refuses(checks.symmetric, "cov", np.diag([1, 0]), match="positive definite", definite="strict")
    checks.symmetric("cov", np.diag([1, 0]), definite="semi")


@pytest.mark.parametrize("value", [None, -1, 1.5, "seed", True])
def test_seed_is_required(value):
    refuses(checks.generator, "seed", value, match="integer >= 0 or a numpy.random.SeedSequence")


def test_generator_repeats():
    assert checks.generator("seed", 3).random() == checks.generator("seed", np.random.SeedSequence(3)).random()
    own = np.random.default_rng(1)
    assert checks.generator("seed", own) is own


def test_message_shows_a_long_value_in_one_line():
    with pytest.raises(ValueError) as caught:
        checks.fail("state", "be small", np.arange(1000).reshape(10, 100))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 120

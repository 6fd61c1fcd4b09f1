"""The argument checks: what passes is returned in its working type, what does not is named with its remedy."""

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lib.common import checks
from lib.fluctuations import regression
from lib.scaling import empirical_inputs
from lib.scaling.late_phase import LatePhase
from lib.scaling.linear_student import LinearStudent
from lib.scaling.near_teacher import NearTeacher
from lib.scaling.power_law import PowerLaw


def refuses(check, name, *arguments, match, **options):
    with pytest.raises(ValueError, match=rf"^{name} must .*{match}"):
        check(name, *arguments, **options)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_passes_finite_floats(value):
    assert checks.number("rate", value) == value


NO_NUMBER = [float("nan"), float("inf"), "3", None, [1.0], True, np.True_, 1j, np.ones(1), 10**400, [[1], [1, 2]]]


@pytest.mark.parametrize("value", [*NO_NUMBER, torch.tensor(1.0, requires_grad=True)])
def test_number_refuses(value):
    refuses(checks.number, "rate", value, match="finite number.*got")


def test_bounds():
    assert checks.number("rate", 1, above=0, at_most=1) == 1.0
    refuses(checks.number, "rate", 0, match="> 0 and < 2, got 0", above=0, below=2)
    refuses(checks.number, "rate", 2, match="> 0 and < 2, got 2", above=0, below=2)
    refuses(checks.number, "rate", -1, match=">= 0, got -1", at_least=0)
    refuses(checks.number, "rate", 3, match="<= 2, got 3", at_most=2)
    refuses(checks.entries, "weights", [1.0, -0.5], match="entries >= 0, got", at_least=0)


@pytest.mark.parametrize("value", [0, -3, 3.0, True, "4", None, np.float64(4)])
def test_integer_refuses(value):
    refuses(checks.integer, "size", value, match="integer >= 1, got")


@pytest.mark.parametrize("value", [1e6, np.float64(1e6)])
def test_a_whole_float_is_told_how_to_become_an_integer(value):
    refuses(checks.integer, "steps", value, match=r"got the float 1000000.0: pass int\(1000000.0\)$")


def test_integer_passes_numpy_integers():
    kept = checks.integer("size", np.uint8(200))
    assert type(kept) is int and kept + kept == 400


@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)))
def test_array_is_a_float_copy(value):
    result = checks.array("state", value, ndim=2)
    assert np.array_equal(result, value) and result is not value


@given(arrays(float, (2, 2), elements=st.floats(-1, 1)), st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, 3))
def test_array_refuses_non_finite(value, bad, place):
    value.flat[place] = bad
    refuses(checks.array, "state", value, match="be finite")


NO_ARRAY = ["abc", ["1", "2"], [True], [[1], [1, 2]], object(), np.array([1j]), None, [10**400]]


@pytest.mark.parametrize("value", [*NO_ARRAY, np.ma.array([1.0], mask=[True]), torch.ones(2, requires_grad=True)])
def test_array_refuses_what_is_no_array(value):
    refuses(checks.array, "state", value, match="")


@pytest.mark.parametrize(
    ("value", "options", "said"),
    [
        (np.ones((2, 4)), {"shape": (None, 3)}, r"two axes, the second of length 3, got an array of shape \(2, 4\)$"),
        (np.ones((2, 4)), {"shape": (3, 5, None, 7)}, "4 axes, the first of length 3, .*, the 4th of length 7, got"),
        (np.ones((2, 4)), {"shape": (None, None, None)}, r"have three axes, got an array of shape \(2, 4\)$"),
        (np.ones((2, 4)), {"shape": (np.int64(2), 3)}, r"have shape \(2, 3\), got an array of shape \(2, 4\)$"),
        (np.ones(3), {"shape": (2,)}, r"have one axis of length 2, got an array of shape \(3,\)$"),
        (np.ones(2), {"ndim": 2}, r"have two axes, got an array of shape \(2,\)$"),
        (2.5, {"ndim": 1}, r"have one axis, got a single number: put it into a list, \[2.5\]$"),
        (2.5, {"ndim": 2}, r"have two axes, got a single number: put it into a list, \[\[2.5\]\]$"),
        ([2.5], {"ndim": 0}, r"have no axis, got an array of shape \(1,\)$"),
    ],
)
def test_shapes_are_told_in_words(value, options, said):
    refuses(checks.array, "state", value, match=said, **options)


def test_a_table_is_read_from_rows_columns_and_pandas():
    assert checks.table("x", [1, 2, 3]).shape == (3, 1) and checks.table("x", np.ones((2, 3)), rows=2).shape == (2, 3)
    frame = pandas.DataFrame({"a": [0.5, 1.5], "b": [True, False]})
    assert checks.table("x", frame).tolist() == [[0.5, 1.0], [1.5, 0.0]]
    assert checks.table("x", np.array([True, False])).tolist() == [[1.0], [0.0]]
    assert checks.table("x", frame["b"], columns=1).tolist() == [[1.0], [0.0]]
    for value, options, said in (
        (frame.assign(c=["x", "y"]), {}, "hold numbers: turn columns of text"), (1.0, {}, "be a table of one sample"),
        (frame.assign(c=[1.0, None]), {}, "be finite"), ([True, False], {}, "be an array of real numbers"),
        (np.ones((2, 3)), {"rows": 3}, "have 3 rows"), (np.ones((2, 3)), {"columns": 1}, "have 1 column: pass one"),
        ([], {}, "be a table of one sample"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^x must {said}"):
            checks.table("x", value, **options)


def test_a_shape_may_leave_an_axis_free():
    assert checks.array("state", np.ones((2, 3)), shape=(None, 3)).shape == (2, 3)


def test_a_number_is_one_time():
    for one in (5, np.float64(5.0), np.array(5.0), torch.tensor(5.0)):
        assert checks.times("times", one).tolist() == [5.0]
    assert checks.times("times", pandas.Series([1.0, 5.0], name="epoch")).tolist() == [1.0, 5.0]


LAM, PAIR = [1.5, 0.5], {"diagonal": [0.1, 0.1], "off_diagonal": [0.0, 0.1]}
PROBLEM = regression.fit([[1.0, 0.5], [-1.0, 1.0], [0.3, -2.0]], [[1.0], [0.0], [2.0]])
LATE, NEAR, STUDENT = LatePhase(LAM, 2, 0.1), NearTeacher([[1.0, 0.5]], LAM), LinearStudent(LAM, 0.1, trained=1)


@pytest.mark.parametrize(
    "function, options",
    [
        (STUDENT.generalization_error, {}),
        (STUDENT.flow_error, {}),
        (STUDENT.local_exponent, {}),
        (STUDENT.finite_size_error, {}),
        (STUDENT.finite_size_error, {"squares": [[1.0, 2.0], [3.0, 1.0], [0.0, 2.0]]}),
        (PowerLaw(4, 0.5).flow_error, {"learning_rate": 0.1}),
        (PowerLaw(4, 0.5).effective_rank, {"learning_rate": 0.1}),
        (empirical_inputs.generalization_error, {"problem": PROBLEM, "learning_rate": 0.1}),
        (empirical_inputs.diagonal_error, {"problem": PROBLEM, "learning_rate": 0.1}),
        (LATE.generalization_error, PAIR),
        (LATE.groups, PAIR),
        (LATE.span_error, PAIR),
        (NEAR.generalization_error, {"deviation": [[0.1, 0.1]], "learning_rate": 0.1}),
    ],
)
def test_a_single_time_gives_a_result_without_an_axis_of_times(function, options):
    many = function([2.0, 3.0], **options)
    for time in (2, 2.0, np.float64(2.0), np.array(2.0), torch.tensor(2.0)):
        for one in (function(time, **options), function(times=time, **options)):
            for found, wanted in (
                zip(vars(one).values(), vars(many).values()) if hasattr(one, "__dict__") else [(one, many)]
            ):
                assert np.shape(found) == np.shape(wanted)[:-1]
                np.testing.assert_allclose(found, wanted[..., 0], rtol=1e-14)


@pytest.mark.parametrize("value", [[], [1, 1], [2, 1], [-1, 2], [[1, 2]]])
def test_times_refuses(value):
    refuses(checks.times, "times", value, match="")


def test_steps_that_are_too_many_to_be_told_apart_are_refused():
    assert checks.whole_steps("alpha", np.array([0.0, 0.26]), 10).tolist() == [0, 3]
    with pytest.raises(ValueError, match="^alpha must be at most 9.01e"):
        checks.whole_steps("alpha", np.array([1e15]), 10)


def test_symmetric():
    assert np.array_equal(checks.symmetric("cov", np.eye(2), definite="strict"), np.eye(2))
    refuses(checks.symmetric, "cov", [[1, 2], [0, 1]], match="symmetric")
    refuses(checks.symmetric, "cov", np.ones((2, 3)), match="square")
    refuses(checks.symmetric, "cov", np.diag([1, -1]), match="semidefinite, got .*-1", definite="semi")
    refuses(checks.symmetric, "cov", np.diag([1, 0]), match="positive definite", definite="strict")
    checks.symmetric("cov", np.diag([1, 0]), definite="semi")
    checks.symmetric("cov", np.diag([1, 1e-30]), definite="strict")  # in their own units both are one
    checks.symmetric("cov", [[1e14, 1e2], [1e2, 1e-10]], definite="semi")
    refuses(checks.symmetric, "cov", [[1e14, 3e3], [3e3, 1e-10]], match="correlations .* -28.9", definite="semi")


def test_stacks_of_symmetric_matrices_are_judged_one_by_one():
    pair = np.array([np.eye(2), 1e-12 * np.ones((2, 2))])
    assert np.array_equal(checks.symmetric("cov", pair, definite="semi", stacked=True), pair)
    assert checks.symmetric("cov", np.ones((0, 2, 2)), stacked=True).shape == (0, 2, 2)
    refuses(checks.symmetric, "cov", pair, match="have two axes, got an array of shape")
    for wrong, said in (([[1, 2], [2, 1]], "correlations .* -1"), ([[1, 1], [1.001, 1]], "symmetric")):
        bad = np.array([np.eye(2), 1e-12 * np.array(wrong)])
        refuses(checks.symmetric, "cov", bad, match=said, definite="semi", stacked=True)
    near = [[1.0, 1 + 1e-8], [1 + 1e-8, 1.0]]
    refuses(checks.symmetric, "cov", near, match="lowest eigenvalue", definite="semi")
    checks.symmetric("cov", near, definite="semi", slack=1e-7)


@pytest.mark.parametrize("value", [None, -1, 1.5, "seed", True])
def test_seed_is_required(value):
    refuses(checks.generator, "rng", value, match="integer >= 0, a numpy.random.SeedSequence or a numpy.random.Gen")


def test_generator_repeats():
    assert checks.generator("rng", 3).random() == checks.generator("rng", np.random.SeedSequence(3)).random()
    own = np.random.default_rng(1)
    assert checks.generator("rng", own) is own


@pytest.mark.parametrize(
    ("value", "said"), [(3, ""), ("", ""), (b"x", ""), ("~nouser/x", "whose ~ .* got '~nouser/x'")]
)
def test_a_folder_is_a_path(value, said):
    refuses(checks.folder, "root", value, match=f"be the path of a folder.*{said}")


def test_message_shows_a_long_value_in_one_line():
    with pytest.raises(ValueError) as caught:
        checks.fail("state", "be small", np.arange(1000).reshape(10, 100))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 120


def test_one_of():
    assert checks.one_of("kind", "erf", ("erf", "relu")) == "erf"
    for value in ("tanh", None, ["erf"], np.array(["erf", "relu"])):
        refuses(checks.one_of, "kind", value, ("erf", "relu"), match="one of erf, relu, got")
    refuses(checks.one_of, "kind", "two words", {"erf": 1}, match="one of erf, got two words$")
    refuses(checks.one_of, "kind", "", ("erf",), match="one of erf, got ''$")


def test_broadcast():
    rows, column = checks.broadcast(samples=np.arange(3.0), ridge=np.ones((2, 1)))
    assert rows.tolist() == [[0, 1, 2]] * 2 and column.shape == (2, 3)
    with pytest.raises(ValueError, match=r"^c must broadcast with a, b, got the shapes \(3,\), .* of a, b, c$"):
        checks.broadcast(a=np.ones(3), b=1.0, c=np.ones(2))

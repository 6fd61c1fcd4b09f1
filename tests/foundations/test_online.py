"""lib.foundations.online against its rule in NumPy, the order-parameter theory, geometry, its promises about seeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf

from lib.foundations import committee, online

SEEDS = st.integers(0, 10**6)
EYE = np.eye(2)


def start(dimension, seed=1):
    """A student that leans a little towards one assignment of its units: Q = 1/4, R = 1/20 on the diagonal."""
    return online.weights_with_overlaps(0.25 * EYE, 0.05 * EYE, EYE, dimension, seed)


# ---- the update --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units, teachers, structured", [(1, 1, False), (2, 2, True), (3, 2, False), (2, 3, True)])
def test_three_steps_equal_the_rule_written_in_numpy(units, teachers, structured):
    dimension, rate = 50, 0.7
    variances = np.geomspace(4, 0.1, dimension) if structured else np.ones(dimension)
    student, teacher = online.random_weights(units, dimension, 1), online.random_weights(teachers, dimension, 2)
    expected = student.copy()
    stream = np.random.Generator(np.random.SFC64(np.random.SeedSequence(3).spawn(1)[0]))
    for _ in range(3):
        example = np.sqrt(variances) * stream.standard_normal(dimension)
        x, y = expected @ example / np.sqrt(dimension), teacher @ example / np.sqrt(dimension)
        delta = erf(y / np.sqrt(2)).sum() / np.sqrt(teachers) - np.sqrt(teachers) / units * erf(x / np.sqrt(2)).sum()
        slope = np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)
        expected += rate * np.sqrt(teachers) / units * delta * np.outer(slope, example) / np.sqrt(dimension)
    runs = online.simulate(
        student, teacher, rate, [3 / dimension], rng=3, eigenvalues=variances if structured else None
    )
    np.testing.assert_allclose(
        runs.cross_overlap[0, 0], expected * variances @ teacher.T / dimension, rtol=1e-11, atol=1e-14
    )
    np.testing.assert_allclose(runs.student[0], expected, rtol=1e-12, atol=1e-14)
    assert np.abs(expected - student).max() > 1e-3


def test_records_are_the_overlaps_of_the_weights():
    student, teacher = start(60)
    runs = online.simulate(student, teacher, 0.5, [0, 1, 2.5], rng=4, runs=3)
    assert runs.student_overlap.shape == (3, 3, 2, 2)
    np.testing.assert_allclose(runs.times, [0, 1, 2.5])
    np.testing.assert_allclose(runs.student_overlap[:, 0], np.broadcast_to(0.25 * EYE, (3, 2, 2)), atol=1e-14)
    for k in range(3):
        np.testing.assert_allclose(runs.student_overlap[k, -1], runs.student[k] @ runs.student[k].T / 60, rtol=1e-13)
        np.testing.assert_allclose(runs.cross_overlap[k, -1], runs.student[k] @ teacher.T / 60, rtol=1e-12, atol=1e-15)
        state = runs.student_overlap[k, -1], runs.cross_overlap[k, -1], runs.teacher_overlap
        assert np.isclose(runs.generalization_error[k, -1], committee.generalization_error(*state), rtol=1e-12)


def test_times_are_rounded_to_whole_examples():
    student, teacher = start(64)
    np.testing.assert_array_equal(online.simulate(student, teacher, 0.5, [0.1, 0.3], rng=1).times, [6 / 64, 19 / 64])


def test_recording_more_often_changes_nothing():
    student, teacher = start(40)
    often = online.simulate(student, teacher, 0.5, np.arange(11.0), rng=5)
    seldom = online.simulate(student, teacher, 0.5, [10], rng=5)
    np.testing.assert_array_equal(often.student, seldom.student)


# ---- against the theory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("units, teachers", [(2, 2), (3, 2), (2, 3)])
def test_mean_overlaps_follow_the_equations(units, teachers):
    q, r = 0.3 * np.eye(units), np.full((units, teachers), 0.05) + 0.1 * np.eye(units, teachers)
    student, teacher = online.weights_with_overlaps(q, r, np.eye(teachers), 1000, rng=6)
    times = [1, 3, 6]
    path = committee.solve(times, q, r, np.eye(teachers), 1.0)
    gradient_flow = committee.solve(times, q, r, np.eye(teachers), 1.0, second_order=False)
    runs = online.simulate(student, teacher, 1.0, times, rng=7, runs=24)
    for measured, theory in [(runs.cross_overlap, path.cross_overlap), (runs.student_overlap, path.student_overlap)]:
        error = measured.std(axis=0, ddof=1) / np.sqrt(24)
        assert np.all(np.abs(measured.mean(axis=0) - theory) < 4.5 * error + 2 / 1000)  # finite N adds O(1/N)
    error = runs.student_overlap.std(axis=0, ddof=1) / np.sqrt(24)
    left_out = (runs.student_overlap.mean(axis=0) - gradient_flow.student_overlap) / error
    assert np.abs(left_out).max() > 20  # the η² term is needed


def test_the_distance_to_the_theory_falls_as_the_inverse_root_of_n():
    times, dimensions = [2.0, 4.0], np.array([100, 200, 400, 800])
    path = committee.solve(times, 0.25 * EYE, 0.05 * EYE, EYE, 1.0)
    distance = []
    for dimension in dimensions:
        runs = online.simulate(*start(dimension), 1.0, times, rng=8, runs=60)
        distance.append(np.sqrt(((runs.student_overlap - path.student_overlap) ** 2).sum(axis=(2, 3)).mean()))
    slope = np.polyfit(np.log(dimensions), np.log(distance), 1)[0]
    assert abs(slope + 0.5) < 0.1  # standard error 0.03


def test_the_teacher_stays_the_teacher():
    teacher = online.random_weights(2, 50, 9)
    runs = online.simulate(teacher, teacher, 1.0, [5], rng=10)
    np.testing.assert_allclose(runs.student[0], teacher, atol=1e-13)


# ---- seeds and workers -------------------------------------------------------------------------------------


def test_results_depend_on_the_seed_alone():
    student, teacher = start(50)
    before = student.copy()
    one = online.simulate(student, teacher, 0.5, [4], rng=11, runs=5)
    two = online.simulate(student, teacher, 0.5, [4], rng=11, runs=5, workers=2)
    other = online.simulate(student, teacher, 0.5, [4], rng=12, runs=5)
    np.testing.assert_array_equal(one.student, two.student)
    np.testing.assert_array_equal(student, before)
    np.testing.assert_array_equal(one.student[:2], online.simulate(student, teacher, 0.5, [4], rng=11, runs=2).student)
    assert np.unique(np.concatenate([one.student, other.student])[:, 0, 0]).size == 10  # ten different streams


def test_a_seed_sequence_is_left_as_it_was():
    student, teacher = start(50)
    seed = np.random.SeedSequence(13)
    first, second = (online.simulate(student, teacher, 0.5, [2], seed, runs=2).student for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert seed.n_children_spawned == 0


# ---- weights and overlaps ----------------------------------------------------------------------------------


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 30), SEEDS)
@settings(max_examples=30)
def test_weights_have_exactly_the_overlaps_asked_for(units, teachers, extra, seed):
    z = np.random.default_rng(seed).standard_normal((units + teachers, 3))  # rank 3: often singular
    s = z @ z.T
    q, r, t = s[:units, :units], s[:units, units:], s[units:, units:]
    found = online.overlaps(*online.weights_with_overlaps(q, r, t, units + teachers + extra, seed))
    for have, want in zip(found, (q, r, t)):
        np.testing.assert_allclose(have, want, atol=1e-12 * np.abs(s).max())


def test_random_weights_have_the_variance_asked_for():
    weights = online.random_weights(4, 50_000, 14, variance=0.09)
    assert np.all(np.abs(weights.var(axis=1) / 0.09 - 1) < 4 * np.sqrt(2 / 50_000))
    assert np.all(np.abs(weights.mean(axis=1)) < 4 * 0.3 / np.sqrt(50_000))
    assert np.all(online.random_weights(2, 5, 1, variance=0) == 0)


def test_overlaps_of_stacked_students():
    teacher = online.random_weights(2, 30, 15)
    students = np.stack([online.random_weights(3, 30, seed) for seed in (16, 17)])
    q, r, _ = online.overlaps(students, teacher)
    np.testing.assert_allclose(q[1], online.overlaps(students[1], teacher)[0], rtol=1e-14)
    np.testing.assert_allclose(r[1], online.overlaps(students[1], teacher)[1], rtol=1e-12)


# ---- bad input ---------------------------------------------------------------------------------------------

GOOD = {"student": np.ones((2, 20)), "teacher": np.ones((2, 20)), "learning_rate": 0.5, "times": [0, 1], "rng": 1}
NOT_COUNTS = st.sampled_from([0, -3, 2.0, "two", None, True])
NOT_SEEDS = st.sampled_from([-1, 1.5, "seed", None, True])


@pytest.mark.parametrize("name", ["student", "teacher"])
@given(st.sampled_from([np.nan, np.inf, "shape", "flat", "empty", "text"]), SEEDS)
@settings(max_examples=15)
def test_unusable_weights_are_named(name, how, seed):
    bad = np.ones((2, 20))
    if how == "shape":
        bad = np.ones((2, 19))
    elif how == "flat":
        bad = np.ones(20)
    elif how == "empty":
        bad = np.ones((0, 20))
    elif how == "text":
        bad = "weights"
    else:
        bad[seed % 2, seed % 20] = how
    blamed = "teacher" if how == "shape" else name  # two lengths that differ: the message gives both
    with pytest.raises(ValueError, match=f"^{blamed} must"):
        online.simulate(**GOOD | {name: bad})
    with pytest.raises(ValueError, match=f"^{blamed} must"):
        online.overlaps(*({"student": GOOD["student"], "teacher": GOOD["teacher"]} | {name: bad}).values())


@given(st.sampled_from([np.nan, np.inf, 0.0, -1.0, "fast", None, [0.5]]))
@settings(max_examples=10)
def test_unusable_learning_rates_are_named(bad):
    with pytest.raises(ValueError, match="^learning_rate must be"):
        online.simulate(**GOOD | {"learning_rate": bad})


@given(
    st.sampled_from([[], np.ones(19), np.zeros(20), -np.ones(20), np.full(20, np.nan), np.ones((1, 20)), 1.0, "wide"])
)
@settings(max_examples=10)
def test_unusable_eigenvalues_are_named(bad):
    with pytest.raises(ValueError, match="^eigenvalues must"):
        online.simulate(**GOOD | {"eigenvalues": bad})
    with pytest.raises(ValueError, match="^eigenvalues must"):
        online.overlaps(GOOD["student"], GOOD["teacher"], eigenvalues=bad)


@given(st.sampled_from([[], [-1.0], [1.0, 1.0], [2.0, 1.0], [np.inf], "soon", [0.0, 0.01], [1e19]]))
@settings(max_examples=10)
def test_unusable_times_are_named(bad):
    with pytest.raises(ValueError, match="^times must"):
        online.simulate(**GOOD | {"times": bad})


@given(NOT_COUNTS, NOT_SEEDS)
@settings(max_examples=15)
def test_unusable_counts_and_seeds_are_named(count, seed):
    for name in ("runs", "workers"):
        with pytest.raises(ValueError, match=f"^{name} must be an integer"):
            online.simulate(**GOOD | {name: count})
    for name in ("units", "dimension"):
        with pytest.raises(ValueError, match=f"^{name} must be an integer"):
            online.random_weights(**{"units": 2, "dimension": 5, "rng": 1} | {name: count})
    with pytest.raises(ValueError, match="^dimension must be an integer >= 4"):
        online.weights_with_overlaps(EYE, EYE / 2, EYE, count, 1)
    for call in (
        lambda: online.simulate(**GOOD | {"rng": seed}),
        lambda: online.random_weights(2, 5, seed),
        lambda: online.weights_with_overlaps(EYE, EYE / 2, EYE, 9, seed),
    ):
        with pytest.raises(ValueError, match="^rng must be"):
            call()


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf, "wide"])
def test_unusable_variances_are_named(bad):
    with pytest.raises(ValueError, match="^variance must be"):
        online.random_weights(2, 5, 1, variance=bad)


def test_overlaps_that_no_weights_have_are_refused():
    with pytest.raises(ValueError, match="cross_overlap.*positive semidefinite"):
        online.weights_with_overlaps(EYE, 2 * EYE, EYE, 9, 1)
    with pytest.raises(ValueError, match="^dimension must be an integer >= 4, got 3"):
        online.weights_with_overlaps(EYE, EYE / 2, EYE, 3, 1)

"""lib.foundations.online against its rule in NumPy, the order-parameter theory, geometry, its promises about seeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf

from lib.foundations import online
from lib.foundations.committee import Overlaps

SEEDS = st.integers(0, 10**6)
EYE = np.eye(2)
START = Overlaps(0.25 * EYE, 0.05 * EYE, EYE)


def start(dimension, seed=1):
    """A student that leans a little towards one assignment of its units: Q = 1/4, R = 1/20 on the diagonal."""
    return online.weights_with_overlaps(START, dimension, seed)


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
        student,
        teacher,
        learning_rate=rate,
        times=[3 / dimension],
        rng=3,
        eigenvalues=variances if structured else None,
    )
    np.testing.assert_allclose(
        runs.cross_overlap[0, 0], expected * variances @ teacher.T / dimension, rtol=1e-11, atol=1e-14
    )
    np.testing.assert_allclose(runs.student[0], expected, rtol=1e-12, atol=1e-14)
    assert np.abs(expected - student).max() > 1e-3


def test_records_are_the_overlaps_of_the_weights():
    student, teacher = start(60)
    runs = online.simulate(student, teacher, learning_rate=0.5, times=[0, 1, 2.5], rng=4, replicas=3)
    assert runs.student_overlap.shape == (3, 3, 2, 2)
    np.testing.assert_allclose(runs.times, [0, 1, 2.5])
    np.testing.assert_allclose(runs.student_overlap[:, 0], np.broadcast_to(0.25 * EYE, (3, 2, 2)), atol=1e-14)
    for k in range(3):
        np.testing.assert_allclose(runs.student_overlap[k, -1], runs.student[k] @ runs.student[k].T / 60, rtol=1e-13)
        np.testing.assert_allclose(runs.cross_overlap[k, -1], runs.student[k] @ teacher.T / 60, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(runs.overlaps.generalization_error, runs.generalization_error, rtol=1e-14)


def test_times_are_rounded_to_whole_examples_and_a_single_one_has_no_axis():
    many, one = (
        online.simulate(*start(64), learning_rate=0.5, times=times, rng=1, replicas=2) for times in ([0.1, 0.3], 0.3)
    )
    np.testing.assert_array_equal(many.times, [6 / 64, 19 / 64])
    assert one.times == 19 / 64
    for name in ("student_overlap", "cross_overlap", "generalization_error"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name)[:, 1])


def test_recording_more_often_changes_nothing():
    student, teacher = start(40)
    often = online.simulate(student, teacher, learning_rate=0.5, times=np.arange(11.0), rng=5)
    seldom = online.simulate(student, teacher, learning_rate=0.5, times=[10], rng=5)
    np.testing.assert_array_equal(often.student, seldom.student)


# ---- against the theory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("units, teachers", [(2, 2), (3, 2), (2, 3)])
def test_mean_overlaps_follow_the_equations(units, teachers):
    q, r = 0.3 * np.eye(units), np.full((units, teachers), 0.05) + 0.1 * np.eye(units, teachers)
    start, times = Overlaps(q, r, np.eye(teachers)), [1, 3, 6]
    student, teacher = online.weights_with_overlaps(start, 1000, rng=6)
    path, gradient_flow = (
        start.solve(times, learning_rate=1.0, second_order=second_order) for second_order in (True, False)
    )
    runs = online.simulate(student, teacher, learning_rate=1.0, times=times, rng=7, replicas=24)
    for measured, theory in [(runs.cross_overlap, path.cross_overlap), (runs.student_overlap, path.student_overlap)]:
        error = measured.std(axis=0, ddof=1) / np.sqrt(24)
        assert np.all(np.abs(measured.mean(axis=0) - theory) < 4.5 * error + 2 / 1000)  # finite N adds O(1/N)
    error = runs.student_overlap.std(axis=0, ddof=1) / np.sqrt(24)
    left_out = (runs.student_overlap.mean(axis=0) - gradient_flow.student_overlap) / error
    assert np.abs(left_out).max() > 20  # the η² term is needed


def test_the_distance_to_the_theory_falls_as_the_inverse_root_of_n():
    times, dimensions = [2.0, 4.0], np.array([100, 200, 400, 800])
    path = START.solve(times, learning_rate=1.0)
    distance = []
    for dimension in dimensions:
        runs = online.simulate(*start(dimension), learning_rate=1.0, times=times, rng=8, replicas=60)
        distance.append(np.sqrt(((runs.student_overlap - path.student_overlap) ** 2).sum(axis=(2, 3)).mean()))
    slope = np.polyfit(np.log(dimensions), np.log(distance), 1)[0]
    assert abs(slope + 0.5) < 0.1  # standard error 0.03


def test_the_teacher_stays_the_teacher():
    teacher = online.random_weights(2, 50, 9)
    runs = online.simulate(teacher, teacher, learning_rate=1.0, times=[5], rng=10)
    np.testing.assert_allclose(runs.student[0], teacher, atol=1e-13)


# ---- seeds and workers -------------------------------------------------------------------------------------


def test_results_depend_on_the_seed_alone():
    student, teacher = start(50)
    before = student.copy()
    one = online.simulate(student, teacher, learning_rate=0.5, times=[4], rng=11, replicas=5)
    two = online.simulate(student, teacher, learning_rate=0.5, times=[4], rng=11, replicas=5, workers=2)
    other = online.simulate(student, teacher, learning_rate=0.5, times=[4], rng=12, replicas=5)
    np.testing.assert_array_equal(one.student, two.student)
    np.testing.assert_array_equal(student, before)
    np.testing.assert_array_equal(
        one.student[:2], online.simulate(student, teacher, learning_rate=0.5, times=[4], rng=11, replicas=2).student
    )
    assert np.unique(np.concatenate([one.student, other.student])[:, 0, 0]).size == 10  # ten different streams


def test_a_seed_sequence_is_left_as_it_was():
    student, teacher = start(50)
    seed = np.random.SeedSequence(13)
    first, second = (
        online.simulate(student, teacher, learning_rate=0.5, times=[2], rng=seed, replicas=2).student for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert seed.n_children_spawned == 0


# ---- weights and overlaps ----------------------------------------------------------------------------------


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 30), SEEDS)
@settings(max_examples=30)
def test_weights_have_exactly_the_overlaps_asked_for(units, teachers, extra, seed):
    z = np.random.default_rng(seed).standard_normal((units + teachers, 3))  # rank 3: often singular
    s = z @ z.T
    q, r, t = s[:units, :units], s[:units, units:], s[units:, units:]
    weights = online.weights_with_overlaps(Overlaps(q, r, t), units + teachers + extra, seed)
    found = online.overlaps(*weights)
    for have, want in zip((found.student, found.cross, found.teacher), (q, r, t)):
        np.testing.assert_allclose(have, want, atol=1e-12 * np.abs(s).max())


def test_random_weights_have_the_variance_asked_for():
    weights = online.random_weights(4, 50_000, 14, variance=0.09)
    assert np.all(np.abs(weights.var(axis=1) / 0.09 - 1) < 4 * np.sqrt(2 / 50_000))
    assert np.all(np.abs(weights.mean(axis=1)) < 4 * 0.3 / np.sqrt(50_000))
    assert np.all(online.random_weights(2, 5, 1, variance=0) == 0)


def test_overlaps_of_stacked_students():
    teacher = online.random_weights(2, 30, 15)
    students = np.stack([online.random_weights(3, 30, seed) for seed in (16, 17)])
    many, one = online.overlaps(students, teacher), online.overlaps(students[1], teacher)
    np.testing.assert_allclose(many.student[1], one.student, rtol=1e-14)
    np.testing.assert_allclose(many.cross[1], one.cross, rtol=1e-12)


def test_arguments_that_do_not_fit_each_other_are_refused_by_name():
    student, teacher = start(20)
    for bad, wanted in [
        ((np.ones(20), teacher), "student must"), ((np.ones((0, 20)), teacher), "student must hold weight vectors"),
        ((student, np.ones((2, 19))), "teacher must hold vectors of N = 20 entries"),
        ((student, np.ones((0, 20))), "teacher must hold vectors"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"^{wanted}"):
            online.simulate(*bad, learning_rate=0.5, times=[0, 1], rng=1)
        with pytest.raises(ValueError, match="^(student|teacher) must"):
            online.overlaps(*bad)
    with pytest.raises(ValueError, match="^eigenvalues must"):
        online.overlaps(student, teacher, eigenvalues=np.ones(19))
    for times in ([0.0, 0.01], [1e19]):
        with pytest.raises(ValueError, match="^times must"):
            online.simulate(student, teacher, learning_rate=0.5, times=times, rng=1)
    with pytest.raises(ValueError, match="^dimension must be an integer >= 4, got 3"):
        online.weights_with_overlaps(START, 3, 1)
    with pytest.raises(ValueError, match="^overlaps must be those of a single student"):
        online.weights_with_overlaps(online.overlaps(np.stack([student, student]), teacher), 9, 1)


def test_learning_rate_and_times_cannot_change_places():
    student, teacher = start(20)
    with pytest.raises(TypeError):
        START.solve(0.5, 100.0)
    with pytest.raises(TypeError):
        online.simulate(student, teacher, 0.5, [0, 1], rng=1)

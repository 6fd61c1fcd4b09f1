"""lib.foundations.stability against the equations of committee: fixed points, full Jacobians, limits."""

import mpmath
import numpy as np
import pytest
from bad_input import COUNT, MATRIX, NUMBER, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from lib.foundations import committee, online, stability

BAD_NUMBERS = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, "fast", None, 1j, [1.0, 2.0]])


def symmetric_state(size):
    point, ones = stability.plateau(size), np.ones((size, size))
    return point.student_overlap * ones, point.cross_overlap * ones, np.eye(size)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_plateau_is_a_fixed_point_with_the_stated_height(size):
    for rate in committee.derivative(*symmetric_state(size), 1.0, second_order=False):
        np.testing.assert_allclose(rate, 0, atol=1e-15)
    height = committee.generalization_error(*symmetric_state(size))
    assert np.isclose(height, stability.plateau(size).generalization_error, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_escape_rate_is_the_largest_eigenvalue_on_the_plateau(size):
    eigenvalues = np.linalg.eigvals(stability.jacobian(*symmetric_state(size), 0.3, second_order=False)).real
    growing = eigenvalues[eigenvalues > 1e-6]
    np.testing.assert_allclose(growing, stability.escape_rate(size, 0.3), rtol=1e-7)
    assert growing.size == (size - 1) ** 2


def test_plateau_and_escape_for_many_units():
    m = 400
    assert np.isclose(stability.plateau(m).generalization_error * np.pi, np.pi / 6 - 1 / 2, rtol=1e-5)
    assert np.isclose(1 / stability.escape_rate(m, 0.1), 2 * np.pi * m**2 / 0.1 * (1 + 1 / (2 * m)), rtol=1e-5)


def test_jacobian_is_the_linear_response_of_the_trajectory():
    q, r, t = online.overlaps(online.random_weights(2, 20, 15), online.random_weights(3, 20, 16))
    push = 1e-4 * online.random_weights(2, 3, 17)
    upper = np.triu_indices(2)
    response = stability.jacobian(q, r, t, 0.5)[:, len(upper[0]) :] @ push.ravel()
    here, there = committee.derivative(q, r - push, t, 0.5), committee.derivative(q, r + push, t, 0.5)
    expected = np.concatenate([(there[0] - here[0])[upper], (there[1] - here[1]).ravel()]) / 2
    np.testing.assert_allclose(response, expected, rtol=1e-5, atol=1e-9)


def precise_velocity(s, units, rate):
    """dQ/dα (upper triangle) and dR/dα in 50 digits, by three- and four-point averages of the joint covariance s."""
    size, pi, sqrt = len(s), mpmath.pi, mpmath.sqrt
    teachers = size - units
    w = [-sqrt(teachers) / units] * units + [1 / sqrt(teachers)] * teachers

    def third(i, a, b):  # ⟨g'(z_i) z_a g(z_b)⟩
        c = 1 + s[i][i]
        return 2 / pi * (s[a][b] * c - s[i][a] * s[i][b]) / (c * sqrt(c * (1 + s[b][b]) - s[i][b] ** 2))

    def fourth(i, j, a, b):  # ⟨g'(z_i) g'(z_j) g(z_a) g(z_b)⟩
        ci, cj, cross = 1 + s[i][i], 1 + s[j][j], s[i][j]
        volume = ci * cj - cross**2

        def tilted(x, y):
            mixed = s[i][x] * s[j][y] + s[j][x] * s[i][y]
            return s[x][y] - (cj * s[i][x] * s[i][y] + ci * s[j][x] * s[j][y] - cross * mixed) / volume

        return 4 / pi**2 / sqrt(volume) * mpmath.asin(tilted(a, b) / sqrt((1 + tilted(a, a)) * (1 + tilted(b, b))))

    factor, every = rate * sqrt(teachers) / units, range(size)
    mean = [[factor * sum(w[b] * third(i, a, b) for b in every) for a in every] for i in range(units)]
    upper = [(i, j) for i in range(units) for j in range(i, units)]
    noise = [sum(w[a] * w[b] * fourth(i, j, a, b) for a in every for b in every) for i, j in upper]
    student = [mean[i][j] + mean[j][i] + factor**2 * e for (i, j), e in zip(upper, noise)]
    return student + [mean[i][n] for i in range(units) for n in range(units, size)]


def precise_jacobian(s, units, rate):
    s, h, columns = [[mpmath.mpf(x) for x in row] for row in s.tolist()], mpmath.mpf(10) ** -20, []
    for a, b in [(i, j) for i in range(units) for j in range(i, units)] + [
        (i, n) for i in range(units) for n in range(units, len(s))
    ]:
        ends = []
        for sign in (1, -1):
            moved = [list(row) for row in s]
            moved[a][b] = moved[b][a] = s[a][b] + sign * h
            ends.append(precise_velocity(moved, units, rate))
        columns.append([float((up - down) / (2 * h)) for up, down in zip(*ends)])
    return np.array(columns).T


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("aligned", [False, True])
def test_jacobian_keeps_its_promise_at_every_size_of_the_overlaps(size, aligned):
    z = np.random.default_rng(4).standard_normal((4, 9))
    z = z[:1] + 1e-3 * z if aligned else z
    z *= np.sqrt(0.999 * size) / np.linalg.norm(z, axis=1, keepdims=True)
    s = (z @ z.T + (z @ z.T).T) / 2
    with mpmath.workdps(50):
        wanted = precise_jacobian(s, 2, 0.5)
    found = stability.jacobian(s[:2, :2], s[:2, 2:], s[2:, 2:], 0.5)
    assert np.abs(found - wanted).max() <= 1e-15 * (1 + size) ** 2 * np.abs(wanted).max()


@pytest.mark.parametrize("units, teachers, height, stable", [(2, 3, 5.0e-3, False), (3, 2, 6.7e-5, True)])
def test_fixed_point_is_where_a_long_integration_ends(units, teachers, height, stable):
    teacher = np.eye(teachers) + 0.1
    start = 0.1 * np.eye(units), 0.1 * np.eye(units, teachers) + 0.01, teacher
    rest = stability.fixed_point(*start, 0.5)
    path = committee.solve([1000, 30000], *start, 0.5, rtol=1e-11)
    np.testing.assert_allclose(rest.student_overlap, path.student_overlap[1], atol=1e-9)
    np.testing.assert_allclose(rest.cross_overlap, path.cross_overlap[1], atol=1e-9)
    assert np.isclose(rest.generalization_error, path.generalization_error[1], rtol=1e-7)
    assert 0.5 * height < rest.generalization_error < 2 * height
    assert np.abs(rest.cross_overlap - path.cross_overlap[0]).max() > 1e-8  # the search did more than the relaxation
    assert (rest.growth_rate < 0) == stable  # an even start of two units that imitate three ends on a saddle


def test_fixed_point_of_an_uneven_start_is_the_attractor():
    even = np.array([[0.1, 0.0, 0.0], [0.0, 0.1, 0.0]])
    start = 0.1 * np.eye(2), even + [[0, 0, 0.03], [0, 0, 0]], np.eye(3)
    rest = stability.fixed_point(*start, 0.5, relaxation_time=1e5)
    path = committee.solve([3e5], *start, 0.5)
    np.testing.assert_allclose(rest.cross_overlap, path.cross_overlap[0], atol=1e-6)
    saddle = stability.fixed_point(start[0], even, np.eye(3), 0.5)
    assert rest.growth_rate < 0 < saddle.growth_rate
    assert 0.998 < rest.generalization_error / saddle.generalization_error < 0.9995


def test_fixed_point_knows_perfect_learning_and_the_plateau():
    eye = np.eye(2)
    rest = stability.fixed_point(0.1 * eye, 0.1 * eye + 0.01, eye, 0.5, relaxation_time=200)
    np.testing.assert_allclose([rest.student_overlap, rest.cross_overlap], [eye, eye], atol=1e-9)
    assert np.isclose(rest.growth_rate, max(np.array(stability.asymptotic_rates(2, 0.5)) / [1, 2]), rtol=1e-6)
    stuck = stability.fixed_point(0.1 + 0 * eye, 0.1 + 0 * eye, eye, 0.5, second_order=False, relaxation_time=200)
    np.testing.assert_allclose(stuck.student_overlap, stability.plateau(2).student_overlap, atol=1e-9)
    np.testing.assert_allclose(stuck.cross_overlap, stability.plateau(2).cross_overlap, atol=1e-9)
    assert np.isclose(stuck.growth_rate, stability.escape_rate(2, 0.5), rtol=1e-6)


def test_fixed_point_gives_up_where_learning_is_unstable():
    with pytest.raises(RuntimeError):
        stability.fixed_point([[0.5]], [[0.5]], [[1.0]], 1e4, relaxation_time=5)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("learning_rate", [0.3, 2.0, 6.0])
def test_asymptotic_rates_are_eigenvalues_at_perfect_learning(size, learning_rate):
    eye = np.eye(size)
    eigenvalues = np.linalg.eigvals(stability.jacobian(eye, eye, eye, learning_rate)).real
    outside, inside = stability.asymptotic_rates(size, learning_rate)
    assert np.abs(eigenvalues - outside).min() < 1e-8
    assert np.abs(eigenvalues - inside / 2).min() < 1e-8
    assert np.isclose(eigenvalues.max(), max(outside, inside / 2), rtol=1e-7)  # nothing else is slower


@pytest.mark.parametrize("size, learning_rate, times", [(2, 0.5, (200, 240)), (3, 4.0, (80, 100))])
def test_the_larger_asymptotic_rate_governs_the_late_error(size, learning_rate, times):
    eye = np.eye(size)
    r = 0.6 * eye + 0.01 * np.random.default_rng(1).standard_normal((size, size))
    path = committee.solve(times, r @ r.T + 0.05 * eye, r, eye, learning_rate, rtol=1e-12, atol=1e-16)
    error = path.generalization_error
    rate = np.log(error[1] / error[0]) / (times[1] - times[0])
    outside, inside = stability.asymptotic_rates(size, learning_rate)
    assert np.isclose(rate, max(outside, inside), rtol=0.02)
    assert not np.isclose(rate, min(outside, inside), rtol=0.04)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_critical_learning_rate_is_where_perfect_learning_turns_unstable(size):
    eye = np.eye(size)

    def top(learning_rate):
        return np.linalg.eigvals(stability.jacobian(eye, eye, eye, learning_rate)).real.max()

    critical = stability.critical_learning_rate(size)
    assert top(0.98 * critical) < 0 < top(1.02 * critical)
    assert np.isclose(brentq(top, 0.9 * critical, 1.1 * critical), critical, rtol=1e-8)


def test_critical_learning_rate_limits():
    assert np.isclose(stability.critical_learning_rate(1), np.pi * np.sqrt(5 / 3), rtol=1e-14)
    assert np.isclose(stability.critical_learning_rate(10**5), np.pi * np.sqrt(3), rtol=1e-4)
    assert np.all(np.diff([stability.critical_learning_rate(m) for m in range(1, 40)]) > 0)


# ---- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [*COUNT, 1.5])
def test_unusable_sizes_are_named(bad):
    for function in (stability.plateau, stability.critical_learning_rate):
        with pytest.raises(ValueError, match="size must be an integer >="):
            function(bad)
    for function in (stability.escape_rate, stability.asymptotic_rates):
        with pytest.raises(ValueError, match="size must be an integer >="):
            function(bad, 0.5)


@pytest.mark.parametrize("function", [stability.plateau, lambda size: stability.escape_rate(size, 0.5)])
def test_one_unit_has_no_plateau(function):
    with pytest.raises(ValueError, match="size must be an integer >= 2, got 1"):
        function(1)


@given(BAD_NUMBERS)
@settings(max_examples=20)
def test_unusable_learning_rates_are_named(bad):
    for function in (stability.escape_rate, stability.asymptotic_rates):
        with pytest.raises(ValueError, match="learning_rate must be"):
            function(2, bad)


FIXED_POINT = {
    stability.fixed_point: {
        "student_overlap": np.eye(2),
        "cross_overlap": np.zeros((2, 2)),
        "teacher_overlap": np.eye(2),
        "learning_rate": 0.5,
        "second_order": True,
        "relaxation_time": 10.0,
    }
}
BAD = {
    "student_overlap": MATRIX,
    "cross_overlap": MATRIX,
    "teacher_overlap": MATRIX,
    "learning_rate": NUMBER,
    "relaxation_time": NUMBER,
    "second_order": [None, 1, "no"],
}


@pytest.mark.parametrize("function, name, value", cases(FIXED_POINT, BAD))
def test_unusable_starts_of_the_search_are_named(function, name, value):
    overlaps = "student_overlap|cross_overlap|teacher_overlap|the joint|.*overlap.*"
    refused(FIXED_POINT[function], function, name, value, named=overlaps if "overlap" in name else None)

"""lib.foundations.stability against the equations of committee: fixed points, full Jacobians, closed forms, limits."""

import numpy as np
import pytest
from scipy.optimize import brentq

from lib.foundations import stability
from lib.foundations.committee import Overlaps
from lib.foundations.stability import Plateau

TEACHER = np.array([[1.0, 0.3, -0.1], [0.3, 1.4, 0.2], [-0.1, 0.2, 0.6]])


def perfect(size):
    return Overlaps(np.eye(size), np.eye(size), np.eye(size))


@pytest.mark.parametrize("m", [2, 3, 400])
def test_plateau_and_escape_of_orthonormal_teachers_are_the_closed_forms(m):
    plateau = Plateau(np.eye(m))
    rest, rates = plateau.overlaps, plateau.escape_rates(0.1)
    height = (np.pi / 6 - m * np.arcsin(1 / (2 * m))) / np.pi
    assert plateau.generalization_error == pytest.approx(height, rel=1e-9)
    assert rest.student[0, 1] == pytest.approx(1 / (2 * m - 1), rel=1e-12)
    assert rest.cross[0, 0] == pytest.approx(1 / np.sqrt(m * (2 * m - 1)), rel=1e-12)
    expected = 2 * 0.1 / (np.pi * np.sqrt(2 * m - 1) * (2 * m + 1) ** 1.5)
    np.testing.assert_allclose(rates[: m - 1], expected, rtol=1e-7)
    assert rates[-1] == pytest.approx(0, abs=1e-10 * expected)


@pytest.mark.parametrize("teacher", [np.eye(2), np.eye(5), TEACHER])
def test_plateau_is_a_fixed_point_of_equal_students_with_the_escape_rates_as_growing_eigenvalues(teacher):
    m, plateau = len(teacher), Plateau(teacher)
    rest = plateau.overlaps
    assert np.ptp(rest.student) == 0 and np.ptp(rest.cross, axis=0).max() == 0
    assert max(np.abs(rate).max() for rate in rest.derivative(1.0, second_order=False)) < 1e-14
    values = np.linalg.eigvals(rest.jacobian(0.3, second_order=False)).real
    growing = np.sort(values[values > 1e-6])[::-1]
    expected = np.repeat(plateau.escape_rates(0.3)[: m - 1], m - 1)  # each for every difference of students
    np.testing.assert_allclose(growing, expected, rtol=1e-6)


@pytest.mark.parametrize("teachers, students", [(2, 2), (3, 5), (5, 4)])
def test_curvature_is_that_of_the_error(teachers, students):
    rng = np.random.default_rng(teachers)
    b = rng.standard_normal((teachers, 4 * teachers)) / 4
    plateau, moved = Plateau(b @ b.T), rng.standard_normal((students, b.shape[1]))  # also out of the teachers' span
    moved = 1e-4 * (moved - moved.mean(axis=0))
    excess = [
        plateau.generalization_error - Overlaps(j @ j.T, j @ b.T, b @ b.T).generalization_error
        for j in (plateau.weights @ b + moved, plateau.weights @ b - moved)
    ]  # the third order cancels in their mean
    stack = np.array([1.0, 2.0])[:, None, None] * (moved @ b.T)  # (2, K, M)
    np.testing.assert_allclose(plateau.excess(stack), np.array([1, 4]) * np.mean(excess), rtol=1e-4)
    values = np.linalg.eigvalsh(plateau.curvature)
    assert (plateau.overlaps.cross > 0).all() and values[0] < 0 < values[1]


@pytest.mark.parametrize("bad", [[[1.0]], -np.eye(2), np.ones((2, 2))])
def test_what_a_plateau_does_not_take_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="^teacher_overlap must be"):
        Plateau(bad)
    with pytest.raises(ValueError, match="^second_overlap must"):
        Plateau(np.eye(2)).escape_rates(0.5, second_overlap=bad)
    with pytest.raises(ValueError, match="^displacements must (have shape|add up to zero)"):
        Plateau(np.eye(2)).excess(bad)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("learning_rate", [0.3, 2.0, 6.0])
def test_asymptotic_rates_are_eigenvalues_at_perfect_learning(size, learning_rate):
    eigenvalues = np.linalg.eigvals(perfect(size).jacobian(learning_rate)).real
    outside, inside = stability.asymptotic_rates(size, learning_rate)
    assert np.abs(eigenvalues - outside).min() < 1e-8
    assert np.abs(eigenvalues - inside / 2).min() < 1e-8
    assert np.isclose(eigenvalues.max(), max(outside, inside / 2), rtol=1e-7)  # nothing else is slower


@pytest.mark.parametrize("size, learning_rate, times", [(2, 0.5, (200, 240)), (3, 4.0, (80, 100))])
def test_the_larger_asymptotic_rate_governs_the_late_error(size, learning_rate, times):
    r = 0.6 * np.eye(size) + 0.01 * np.random.default_rng(1).standard_normal((size, size))
    start = Overlaps(r @ r.T + 0.05 * np.eye(size), r, np.eye(size))
    error = start.solve(times, learning_rate=learning_rate, rtol=1e-12, atol=1e-16).generalization_error
    rate = np.log(error[1] / error[0]) / (times[1] - times[0])
    outside, inside = stability.asymptotic_rates(size, learning_rate)
    assert np.isclose(rate, max(outside, inside), rtol=0.02)
    assert not np.isclose(rate, min(outside, inside), rtol=0.04)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_critical_learning_rate_is_where_perfect_learning_turns_unstable(size):
    critical, state = stability.critical_learning_rate(size), perfect(size)
    assert state.growth_rate(0.98 * critical) < 0 < state.growth_rate(1.02 * critical)
    assert np.isclose(brentq(state.growth_rate, 0.9 * critical, 1.1 * critical), critical, rtol=1e-8)


def test_critical_learning_rate_limits():
    assert np.isclose(stability.critical_learning_rate(1), np.pi * np.sqrt(5 / 3), rtol=1e-14)
    assert np.isclose(stability.critical_learning_rate(10**5), np.pi * np.sqrt(3), rtol=1e-4)
    assert np.all(np.diff([stability.critical_learning_rate(m) for m in range(1, 40)]) > 0)

"""lib.scaling.site_symmetric against the equations for all matrix elements, and their limits."""

from itertools import permutations

import numpy as np
import pytest
from power_law import power_law

from lib.foundations.committee import Overlaps
from lib.foundations.stability import Plateau
from lib.scaling import site_symmetric
from lib.scaling.late_phase import LatePhase
from lib.scaling.site_symmetric import site_matrices, site_means
from lib.scaling.structured import ResolvedOverlaps

LAM = power_law(6, 0.75)
SHARE = np.full(6, 1 / 6)
START = np.outer(SHARE, [0.3, 0.02]), np.outer(SHARE, [0.05, 0.01])


@pytest.mark.parametrize("units", [1, 2, 5])
def test_means_and_matrices_are_inverse_and_the_mean_is_over_all_relabellings(units):
    rng = np.random.default_rng(units)
    pair = rng.normal(size=(3, 4, 2))
    np.testing.assert_allclose(site_means(site_matrices(pair, units)), pair if units > 1 else pair * [1, 0], atol=1e-14)
    matrix = rng.normal(size=(units, units))
    orders = [list(order) for order in permutations(range(units))]
    average = np.mean([matrix[order][:, order] for order in orders], axis=0)
    np.testing.assert_allclose(site_matrices(site_means(matrix), units), average, atol=1e-14)


@pytest.mark.parametrize("units", [1, 2, 3, 4, 5, 7])
def test_the_coefficients_are_those_of_all_matrix_elements(units):
    student, cross, teacher = np.array([0.6, 0.1]), np.array([0.4, 0.05]), 0.9
    full = Overlaps(site_matrices(student, units), site_matrices(cross, units), teacher * np.eye(units))
    found = site_symmetric._drift(student, cross, teacher, units)
    for pair, wanted in zip(found, full.drift()):
        np.testing.assert_allclose(site_matrices(pair, units), wanted, rtol=1e-13)
    noise = site_symmetric._noise(student, cross, teacher, units)
    np.testing.assert_allclose(site_matrices(noise, units), full.noise_matrix, rtol=1e-12, atol=1e-15)
    error = site_symmetric._error(student, cross, teacher, units)
    assert error == pytest.approx(full.generalization_error, rel=1e-12)


@pytest.mark.parametrize("units, second_order", [(1, True), (2, True), (3, True), (5, True), (5, False)])
def test_a_symmetric_committee_stays_so(units, second_order):
    times, rate, option = [0, 1.0, 30.0, 100.0], 0.8, {"second_order": second_order, "tolerance": 1e-6}
    matrices = *(site_matrices(part, units) for part in START), SHARE[:, None, None] * np.eye(units)
    full = ResolvedOverlaps(*matrices).solve(times, LAM, rate, **option)
    path = site_symmetric.solve(times, *START, SHARE, LAM, units, rate, **option)
    np.testing.assert_allclose(path.generalization_error, full.generalization_error, rtol=1e-4)
    for pair, wanted in (
        (path.student, full.student_overlap), (path.cross, full.cross_overlap),
        (path.student_history, full.student_history), (path.cross_history, full.cross_history),
        (path.student_resolved, full.student_resolved), (path.cross_resolved, full.cross_resolved),
    ):  # fmt: skip
        np.testing.assert_allclose(site_matrices(pair, units), wanted, atol=2e-5)


def test_forty_units_sit_on_the_plateau_and_leave_it_at_the_known_rate():
    units, start = 40, 1e-9
    cross = np.outer(SHARE, [0.02 + start, 0.02 - start / (units - 1)])
    begin = np.outer(SHARE, [0.05 + 1e-12, 0.05]), cross
    times = [0, 3000.0, 20000.0, 25000.0]
    path = site_symmetric.solve(times, *begin, SHARE, LAM, units, 1.0, second_order=False)
    assert path.student[2, 1] == pytest.approx(1 / (2 * units - 1), rel=1e-3)
    difference = path.cross[:, 0] - path.cross[:, 1]
    wanted = Plateau(np.eye(units)).escape_rates(1.0, second_overlap=LAM**2 @ SHARE * np.eye(units))[0]
    assert np.log(difference[3] / difference[2]) / 5000 == pytest.approx(wanted, rel=2e-3)


def test_forty_units_end_in_the_closed_law():
    near, perfect = (
        np.outer(SHARE, [1e-5, 0.0]),
        np.outer(SHARE, [1, 0]),
    )  # E^k: students a little off, each its own way
    option = {"second_order": False, "tolerance": 1e-6}
    path = site_symmetric.solve([0, 500, 2000], near + perfect, perfect, SHARE, LAM, 40, 0.5, **option)
    wanted = LatePhase(LAM, 40, 0.5).generalization_error(path.times, *near.T)
    np.testing.assert_allclose(path.generalization_error, wanted, rtol=1e-3)


def test_a_start_without_a_difference_never_specializes():
    begin = np.outer(SHARE, [0.1, 0.05]), np.outer(SHARE, [0.02, 0.02])
    path = site_symmetric.solve(5000, *begin, SHARE, LAM, 8, 1.0)
    assert path.cross.shape == (2,) and path.cross_history.shape == (6, 2)  # one time
    assert path.cross[0] == pytest.approx(path.cross[1], abs=1e-14) and path.generalization_error > 0.005


@pytest.mark.parametrize(
    "name, value, blamed",
    [
        ("student", np.outer(SHARE, [0.1, -0.2]), "student must hold positive semidefinite"),
        ("cross", np.ones((6, 2)), "cross must form a positive semidefinite matrix"),
        ("teacher", SHARE[1:], "teacher must"),
        ("spectrum", 2 * LAM, "spectrum must have mean one"),
    ],
)
def test_what_does_not_fit_together_is_refused(name, value, blamed):
    given = {"student": START[0], "cross": START[1], "teacher": SHARE, "spectrum": LAM} | {name: value}
    with pytest.raises(ValueError, match=f"^{blamed}"):
        site_symmetric.solve([1.0], units=3, learning_rate=0.5, **given)


def test_shapes_of_matrices_and_pairs():
    with pytest.raises(ValueError, match="^resolved must hold square matrices"):
        site_means(np.ones((2, 3)))
    with pytest.raises(ValueError, match="^pair must have a last axis of length 2"):
        site_matrices(np.ones((2, 3)), 2)

"""lib.scaling.site_symmetric against the equations for all matrix elements, and their limits."""

from itertools import permutations

import numpy as np
import pytest
from bad_input import AXIS, COUNT, MATRIX, NUMBER, cases, refused

from lib.foundations.committee import Overlaps
from lib.scaling import late_phase, plateau, site_symmetric, spectra, structured
from lib.scaling.site_symmetric import site_matrices, site_means

LAM = spectra.power_law(6, 0.75)
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
    times, rate = [0, 1.0, 30.0, 100.0], 0.8
    q, r = (site_matrices(part, units) for part in START)
    t = SHARE[:, None, None] * np.eye(units)
    full = structured.solve(times, q, r, t, LAM, rate, second_order=second_order, tolerance=1e-6)
    path = site_symmetric.solve(times, *START, SHARE, LAM, units, rate, second_order=second_order, tolerance=1e-6)
    np.testing.assert_allclose(path.generalization_error, full.generalization_error, rtol=1e-4)
    for pair, wanted in (
        (path.student, full.student_overlap),
        (path.cross, full.cross_overlap),
        (path.student_resolved, full.student_resolved),
        (path.cross_resolved, full.cross_resolved),
    ):
        np.testing.assert_allclose(site_matrices(pair, units), wanted, atol=2e-5)


def test_forty_units_sit_on_the_plateau_and_leave_it_at_the_known_rate():
    units, rate, start = 40, 1.0, 1e-9
    times = np.array([0, 3000.0, 20000.0, 25000.0])
    cross = np.outer(SHARE, [0.02, 0.02]) + np.outer(SHARE, [start, -start / (units - 1)])
    path = site_symmetric.solve(
        times, np.outer(SHARE, [0.05 + 1e-12, 0.05]), cross, SHARE, LAM, units, rate, second_order=False
    )
    assert path.student[2, 1] == pytest.approx(1 / (2 * units - 1), rel=1e-3)
    difference = path.cross[:, 0] - path.cross[:, 1]
    wanted = plateau.symmetric_escape_rate(units, 1.0, 0.0, float(LAM**2 @ SHARE), 0.0, rate)
    assert np.log(difference[3] / difference[2]) / 5000 == pytest.approx(wanted, rel=2e-3)


def test_forty_units_end_in_the_closed_law():
    units, rate = 40, 0.5
    near = np.outer(SHARE, [1e-5, 0.0])  # E^k: students a little off, in directions of their own
    path = site_symmetric.solve(
        [0, 500, 2000],
        near + np.outer(SHARE, [1, 0]),
        np.outer(SHARE, [1, 0]),
        SHARE,
        LAM,
        units,
        rate,
        second_order=False,
        tolerance=1e-6,
    )
    wanted = late_phase.generalization_error(path.times, *near.T, LAM, units, rate)
    np.testing.assert_allclose(path.generalization_error, wanted, rtol=1e-3)


def test_a_start_without_a_difference_never_specializes():
    path = site_symmetric.solve(
        [0, 5000], np.outer(SHARE, [0.1, 0.05]), np.outer(SHARE, [0.02, 0.02]), SHARE, LAM, 8, 1.0
    )
    assert path.cross[1, 0] == pytest.approx(path.cross[1, 1], abs=1e-14)
    assert path.generalization_error[1] > 0.005


def test_a_number_is_one_time_and_the_pairs_of_all_times_are_kept():
    one, many = (site_symmetric.solve(times, *START, SHARE, LAM, 3, 0.5) for times in (9.0, [0.0, 4.0, 9.0]))
    assert one.times.shape == (1,) and many.cross_history.shape == (3, 6, 2)
    np.testing.assert_allclose(many.student_history[0], START[0], atol=1e-16)
    np.testing.assert_array_equal(many.cross_history[-1], many.cross_resolved)
    np.testing.assert_allclose(one.student, many.student[-1:], rtol=1e-12)


GOOD = {
    "times": [0, 1.0],
    "student": START[0],
    "cross": START[1],
    "teacher": SHARE,
    "eigenvalues": LAM,
    "units": 3,
    "learning_rate": 0.5,
}
SHAPED = [None, "pairs", [1.0], np.ones((6, 3)), np.full((6, 2), np.nan)]
BAD = {
    "times": [value for value in AXIS if value != 1.0],  # a number is one time
    "student": [*SHAPED, -np.ones((6, 2)), np.outer(SHARE, [0.1, -0.2])],
    "cross": [*SHAPED, np.ones((6, 2))],
    "teacher": [None, "t", [1.0], -SHARE, np.full(6, np.nan)],
    "eigenvalues": [[], None, 2 * LAM, -LAM, "λ"],
    "units": COUNT,
    "learning_rate": NUMBER,
    "resolved": [bad for bad in MATRIX if bad is None or np.shape(bad) != (3, 3)] + [1.0],
    "pair": [1.0, [1.0], np.ones((2, 3)), [1.0, np.nan], [1.0, 1j], "pair", None],
}


CALLS = {
    site_symmetric.solve: GOOD,
    site_means: {"resolved": np.eye(2)},
    site_matrices: {"pair": [1.0, 0.5], "units": 3},
}


@pytest.mark.parametrize("function, name, value", cases(CALLS, BAD))
def test_bad_input(function, name, value):
    refused(CALLS[function], function, name, value)


@pytest.mark.parametrize(
    "name, value", [("second_order", 1), ("tolerance", 0.0), ("tolerance", 1.0), ("multiplicities", [1, 2])]
)
def test_bad_options(name, value):
    with pytest.raises(ValueError, match=f"^{name} must "):
        site_symmetric.solve(**GOOD, **{name: value})

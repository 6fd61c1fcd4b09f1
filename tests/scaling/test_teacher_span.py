"""lib.scaling.teacher_span against the Jacobian, the full equations near the teacher, and the theory at L = 1."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from scipy.linalg import expm

from lib.foundations import stability
from lib.scaling import late_phase, spectra, structured, teacher_span
from lib.scaling.site_symmetric import site_matrices, site_means

COUNTS = np.array([1, 3])
SHARE, LAM = COUNTS / 4, np.array([2.2, 0.6])


def inside(r, s, units, share):
    """Q^k, R^k, T^k of students inside the span."""
    t, deviation = (site_matrices(pair, units) for pair in (np.outer(share, [1, 0]), np.stack([r, s], axis=1)))
    cross = t + deviation
    return t + 2 * deviation + deviation @ deviation / share[:, None, None], cross, t


@pytest.mark.parametrize("units", [1, 2, 3, 5])
def test_rates_are_eigenvalues_of_the_full_jacobian(units):
    t = site_matrices(np.outer(SHARE, [1, 0]), units)
    matrix = structured.jacobian(t, t, t, LAM, 0.7, multiplicities=COUNTS, second_order=False)
    values = np.linalg.eigvals(matrix)
    for predicted in teacher_span.rates(LAM, units, 0.7, multiplicities=COUNTS):
        assert np.abs(values - predicted).min() < 1e-7


@pytest.mark.parametrize("units", [1, 2, 3, 6])
def test_one_eigenvalue_is_the_isotropic_case(units):
    assert 2 * teacher_span.rates([1.0], units, 0.3)[-1] == pytest.approx(
        stability.asymptotic_rates(units, 0.3)[1], rel=1e-12
    )


def test_with_many_eigenvalues_the_squares_decay_as_the_linear_terms():
    lam = spectra.power_law(100, 1.0)
    slowest = late_phase.groups([1e6], np.ones(100), np.zeros(100), lam, 3, 1.0).local_exponent[0] / 1e6
    assert 2 * teacher_span.rates(lam, 3, 1.0)[-1] == pytest.approx(slowest, rel=1e-3)


@pytest.mark.parametrize("units", [1, 2, 4])
def test_the_error_is_that_of_the_moved_matrices(units):
    """R - T moved by the exponential of the Jacobian; the error of the matrices by late_phase.quadratic_error."""
    r, s = np.array([-0.02, 0.01]), np.array([0.005, -0.01]) * (units > 1)
    q, cross, t = inside(r, s, units, SHARE)
    times = np.array([0.0, 3.0, 30.0])
    jacobian = structured.jacobian(t, t, t, LAM, 0.5, multiplicities=COUNTS, second_order=False)
    start = structured.coordinates(2 * (cross - t), cross - t)
    for time, with_squares, without in zip(
        times,
        *(
            teacher_span.generalization_error(times, r, s, LAM, units, 0.5, multiplicities=COUNTS, squares=option)
            for option in (True, False)
        ),
    ):
        moved = structured.directions(expm(time * jacobian) @ start, 2, units, units)[1]  # (2, M, M)
        q, cross, _ = inside(*site_means(moved).T, units, SHARE)
        seen = structured.fields(q, LAM), structured.fields(cross, LAM)
        assert with_squares == pytest.approx(late_phase.quadratic_error(*seen, np.eye(units)), rel=1e-6)
        y, z = late_phase.deviations(q, cross, t)
        assert without == pytest.approx(late_phase.generalization_error([0.0], y, z, LAM, units, 0.5)[0], rel=1e-6)


@pytest.mark.parametrize("units, levels", [(1, 1), (2, 1), (2, 3), (3, 4)])
def test_the_full_equations_approach_it(units, levels):
    """The miss falls with the size of R - T, while the linear formula stays wrong."""
    lam, share = spectra.power_law(levels, 1.0), np.full(levels, 1 / levels)
    times, miss = np.array([0.0, 5.0, 20.0]), []
    for size in (0.02, 0.002):
        r, s = -size * share, 0.3 * size * share * (units > 1)
        path = structured.solve(times, *inside(r, s, units, share), lam, 0.5, second_order=False, tolerance=1e-7)
        found = teacher_span.generalization_error(times, r, s, lam, units, 0.5)
        miss.append(np.abs(found / path.generalization_error - 1).max())
    assert miss[1] < 0.2 * miss[0] and miss[1] < 0.01
    linear = teacher_span.generalization_error(times, r, s, lam, units, 0.5, squares=False)
    assert (linear > 1.05 * path.generalization_error).all()


# --- bad input: every public function, every argument

SMALL = {"eigenvalues": [1.5, 0.5], "units": 2, "learning_rate": 0.1, "multiplicities": [1, 1]}
CALLS = {
    teacher_span.rates: SMALL,
    teacher_span.generalization_error: SMALL
    | {"alpha": [1.0], "diagonal": [0.1, 0.1], "off_diagonal": [0.0, 0.1], "squares": False},
}
BAD = {
    "alpha": [[-1.0], [np.nan], [[1.0]], -1.0, np.nan, True, "alpha", None],
    "diagonal": [[0.1], [0.1, np.nan], [[0.1, 0.1]], 0.1, "r", None],
    "off_diagonal": [[0.1], [0.1, np.nan], [[0.1, 0.1]], 0.1, "s", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None, [1.0, 0.5]],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2], [1, 2, 3]],
    "units": [0, -2, 2.0, "2", None, True],
    "learning_rate": NUMBER,
    "squares": [0, 1, "yes", None],
}

test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

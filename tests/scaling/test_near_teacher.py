"""lib.scaling.near_teacher against Monte Carlo, the map written out, the linear student, N -> ∞, and descent."""

from itertools import product

import numpy as np
import pytest
from bad_input import NUMBER, exercised

from lib.foundations import online
from lib.scaling import late_phase, linear_student, near_teacher, spectra

LAM = spectra.power_law(3, 1.0)
TEACHER = np.array([[1.0, -0.4, 0.7], [0.2, 1.1, -0.5]])


def slope(y):
    return np.sqrt(2 / np.pi) * np.exp(-(y**2) / 2)


def pull(teacher, lam):
    """The matrix 𝓗 (MN, MN), block by block."""
    units = range(len(teacher))
    tilts = [[near_teacher.tilt(teacher, lam, (i, n)) for n in units] for i in units]
    return np.block([[norm * covariance for norm, covariance in row] for row in tilts]) / teacher.size


def after_a_step(moment, teacher, lam, rate):
    """The second moment after one more example, block by block from the formula of the module."""
    units, size = teacher.shape
    blocks = moment.reshape(units, size, units, size).swapaxes(1, 2)  # (M, M, N, N)
    kick = np.zeros_like(blocks)
    for i, j, n, m in product(range(units), repeat=4):
        norm, covariance = near_teacher.tilt(teacher, lam, (i, j, n, m))
        pair = blocks[n, m]  # (N, N)
        kick[i, j] += norm * (covariance * np.sum(covariance * pair) + covariance @ (pair + pair.T) @ covariance)
    drift = pull(teacher, lam) @ moment  # (MN, MN)
    kick = kick.swapaxes(1, 2).reshape(moment.shape) / teacher.size**2
    return moment - rate * (drift + drift.T) + rate**2 * kick


@pytest.mark.parametrize("units", [(0,), (0, 0), (0, 1), (0, 1, 1, 1)])
def test_tilt_is_the_average_with_the_factors_in_front(units):
    xi = np.random.default_rng(1).standard_normal((400_000, 3)) * np.sqrt(LAM)
    weight = slope(xi @ TEACHER.T / np.sqrt(3))[:, list(units)].prod(axis=1)
    norm, covariance = near_teacher.tilt(TEACHER, LAM, units)
    assert abs(weight.mean() - norm) < 4 * weight.std() / np.sqrt(len(xi)) < 0.01 * norm
    second = weight[:, None, None] * xi[:, :, None] * xi[:, None, :]
    error = second.std(axis=0) / np.sqrt(len(xi))
    assert np.all(np.abs(second.mean(axis=0) - norm * covariance) < 4.5 * error)


def test_tilt_of_no_units_and_of_a_teacher_without_length():
    norm, covariance = near_teacher.tilt(TEACHER, LAM, ())
    assert norm == 1 and np.array_equal(covariance, np.diag(LAM))
    norm, covariance = near_teacher.tilt(np.zeros((1, 3)), LAM, (0, 0))
    assert norm == pytest.approx(2 / np.pi, rel=1e-14) and np.array_equal(covariance, np.diag(LAM))


@pytest.mark.parametrize("rate", [0.5, 4.0])
def test_one_step_is_the_average_over_examples(rate):
    rng, samples = np.random.default_rng(2), 400_000
    delta = rng.standard_normal((2, 3))
    xi = rng.standard_normal((samples, 3)) * np.sqrt(LAM)
    slopes = slope(xi @ TEACHER.T / np.sqrt(3))  # (samples, 2)
    answer = (slopes * (xi @ delta.T)).sum(axis=1)  # (samples,)
    moved = delta - rate / 6 * (slopes * answer[:, None])[:, :, None] * xi[:, None, :]
    flat = moved.reshape(samples, 6)
    second = flat[:, :, None] * flat[:, None, :]  # (samples, 6, 6)
    found = after_a_step(np.outer(delta, delta), TEACHER, LAM, rate)
    error = second.std(axis=0) / np.sqrt(samples)
    assert np.all(np.abs(second.mean(axis=0) - found) < 4.5 * error)
    error = answer**2 / 12  # ε_g is half the mean of the squared difference of the outputs, answer/√(MN)
    start = near_teacher.generalization_error([0.0], delta, TEACHER, LAM, rate)[0]
    assert abs(error.mean() - start) < 4 * error.std() / np.sqrt(samples)


def test_error_in_time_is_the_step_repeated():
    delta, rate = 0.1 * np.ones((2, 3)) * [[1], [-2]], 1.3
    found = near_teacher.generalization_error([0.0, 1 / 3, 4.0, 2.0], delta, TEACHER, LAM, rate)
    second, errors = np.outer(delta, delta), []
    for _ in range(13):
        errors.append(np.sum(pull(TEACHER, LAM) * second) / 2)
        second = after_a_step(second, TEACHER, LAM, rate)
    np.testing.assert_allclose(found, np.array(errors)[[0, 1, 12, 6]], rtol=1e-11)


def test_a_teacher_without_length_is_a_linear_teacher():
    lam, none = spectra.power_law(6, 0.75), np.zeros((1, 6))
    edge = near_teacher.critical_learning_rate(none, lam)
    assert edge == pytest.approx(np.pi / 2 * linear_student.finite_size_threshold(lam), rel=1e-9)
    alpha, start = np.array([0.0, 0.5, 3.0]), np.ones((1, 6))
    found = near_teacher.generalization_error(alpha, start, none, lam, 0.4 * np.pi / 2)
    # outputs times √(2/π) are errors times 2/π; equal D_k² are the mean of the linear student at the start
    np.testing.assert_allclose(found, 2 / np.pi * linear_student.finite_size_error(alpha, lam, 0.4), rtol=1e-12)


@pytest.mark.parametrize("units", [1, 2])
def test_threshold_approaches_that_of_the_infinite_network_as_one_over_size(units):
    gaps = []
    for count in (8, 16):
        frames = [np.linalg.qr(np.random.default_rng(k).standard_normal((count, units)))[0].T for k in range(2)]
        teacher = np.sqrt(count) * np.concatenate(frames, axis=1)  # B P_k Bᵀ = m_k 1
        edge = near_teacher.critical_learning_rate(teacher, np.repeat(spectra.power_law(2, 1.0), count))
        gaps.append(1 - edge / late_phase.critical_learning_rate(units))
    assert 0 < gaps[1] < 0.2 and gaps[0] / gaps[1] == pytest.approx(2, abs=0.25)


def spectral_radius(teacher, lam, rate):
    """Largest eigenvalue of the map of symmetric second moments, from its images of a basis."""
    size, columns = teacher.size, []
    for i in range(size):
        for j in range(i + 1):
            unit = np.zeros((size, size))
            unit[i, j] = unit[j, i] = 1
            columns.append(after_a_step(unit, teacher, lam, rate)[np.tril_indices(size)])
    return np.abs(np.linalg.eigvals(np.array(columns).T)).max()


def test_threshold_is_where_the_map_of_second_moments_has_the_eigenvalue_one():
    edge = near_teacher.critical_learning_rate(TEACHER, LAM)
    for factor, sign in ((0.999, -1), (1.001, 1)):
        assert np.sign(spectral_radius(TEACHER, LAM, factor * edge) - 1) == sign


def test_late_errors_grow_with_the_largest_eigenvalue_of_the_map():
    # a thousand steps: an asymmetry of C from rounding must not grow
    lam, teacher = spectra.power_law(5, 1.0), online.random_weights(2, 5, rng=1)
    edge = near_teacher.critical_learning_rate(teacher, lam)
    for factor in (1.05, 1.2):
        late = near_teacher.generalization_error([200.0, 201.0], np.ones((2, 5)), teacher, lam, factor * edge)
        assert late[1] / late[0] == pytest.approx(spectral_radius(teacher, lam, factor * edge) ** 5, rel=1e-6)


def test_renaming_units_and_turning_a_teacher_round_change_nothing():
    edge = near_teacher.critical_learning_rate(TEACHER, LAM)
    assert near_teacher.critical_learning_rate(TEACHER[::-1] * [[-1], [1]], LAM) == pytest.approx(edge, rel=1e-9)
    # inputs c times as strong, teachers 1/c times as long: the same fields, and steps c² times as large
    assert near_teacher.critical_learning_rate(TEACHER / 3, 9 * LAM) == pytest.approx(edge / 9, rel=1e-9)


def test_error_in_time_is_the_mean_of_simulated_descent():
    lam, teacher = spectra.power_law(12, 0.5), online.random_weights(2, 12, rng=3)
    start = 1e-4 * np.random.default_rng(5).standard_normal(teacher.shape)
    alpha = np.array([0.5, 3.0])
    exact = near_teacher.generalization_error(alpha, start, teacher, lam, 0.6)
    runs = online.simulate(teacher + start, teacher, 0.6, alpha, 7, eigenvalues=lam, replicas=3000).generalization_error
    error = runs.std(axis=0) / np.sqrt(3000)
    assert np.all(np.abs(runs.mean(axis=0) - exact) < 4 * error) and np.all(error < 0.02 * exact)


def test_what_is_refused_beyond_single_arguments():
    twins = np.array([[1.0, 2.0, 0.5], [-1.0, -2.0, -0.5]])
    with pytest.raises(ValueError, match=r"^teacher must have units that differ by more than a sign"):
        near_teacher.critical_learning_rate(twins, LAM)
    with pytest.raises(ValueError, match=r"^learning_rate must keep the error inside"):
        near_teacher.generalization_error([1e3], np.ones((1, 1)), [[0.0]], [1.0], 50.0)
    with pytest.raises(ValueError, match=r"^alpha must be at most 9.01e\+15"):
        near_teacher.generalization_error([1e19], np.ones((1, 1)), [[0.0]], [1.0], 0.1)
    with pytest.raises(ValueError, match=r"^units must name units from 0 to 1"):
        near_teacher.tilt(TEACHER, LAM, (0, 2))


# --- bad input: every public function, every argument

GOOD = {"teacher": [[1.0, 0.5]], "eigenvalues": [1.5, 0.5]}
CALLS = {
    near_teacher.tilt: GOOD | {"units": (0, 0)},
    near_teacher.generalization_error: {"alpha": [0.0, 1.0], "deviation": [[0.1, 0.1]]} | GOOD | {"learning_rate": 0.5},
    near_teacher.critical_learning_rate: GOOD,
}
BAD = {
    "teacher": [[], [1.0], np.ones((1, 3)), np.ones((0, 2)), [[1.0, np.nan]], "teacher", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], [1.0], 1.0, "a", None],
    "units": [0, (1,), (-1,), (0.0,), (True,), "units", None, [[0]]],
    "deviation": [np.ones((2, 2)), [1.0, 1.0], [[1.0, np.nan]], "deviation", None],
    "alpha": [[-1.0], [np.nan], [[1.0]], -1.0, np.nan, True, "alpha", None],
    "learning_rate": NUMBER,
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    CALLS, BAD, {"eigenvalues": "eigenvalues|teacher"}
)

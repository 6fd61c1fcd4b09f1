"""lib.scaling.near_teacher against Monte Carlo, the map written out, the linear student, N → ∞, and descent."""

from itertools import product

import numpy as np
import pytest
from power_law import power_law

from lib.foundations import online, stability
from lib.scaling.linear_student import LinearStudent, finite_size_threshold
from lib.scaling.near_teacher import NearTeacher

LAM = power_law(3, 1.0)
TEACHER = np.array([[1.0, -0.4, 0.7], [0.2, 1.1, -0.5]])
NEAR = NearTeacher(TEACHER, LAM)


def slope(y):
    return np.sqrt(2 / np.pi) * np.exp(-(y**2) / 2)


def pull(near):
    """The matrix 𝓗 (MN, MN), block by block."""
    units = range(len(near.teacher))
    tilts = [[near.tilt((i, n)) for n in units] for i in units]
    return np.block([[norm * covariance for norm, covariance in row] for row in tilts]) / near.teacher.size


def after_a_step(moment, near, rate):
    """The second moment after one more example, block by block from the formula of the class."""
    units, size = near.teacher.shape
    blocks = moment.reshape(units, size, units, size).swapaxes(1, 2)  # (M, M, N, N)
    kick = np.zeros_like(blocks)
    for i, j, n, m in product(range(units), repeat=4):
        norm, covariance = near.tilt((i, j, n, m))
        pair = blocks[n, m]  # (N, N)
        kick[i, j] += norm * (covariance * np.sum(covariance * pair) + covariance @ (pair + pair.T) @ covariance)
    drift = pull(near) @ moment  # (MN, MN)
    kick = kick.swapaxes(1, 2).reshape(moment.shape) / near.teacher.size**2
    return moment - rate * (drift + drift.T) + rate**2 * kick


@pytest.mark.parametrize("units", [(0,), (0, 0), (0, 1), (0, 1, 1, 1)])
def test_tilt_is_the_average_with_the_factors_in_front(units):
    xi = np.random.default_rng(1).standard_normal((400_000, 3)) * np.sqrt(LAM)
    weight = slope(xi @ TEACHER.T / np.sqrt(3))[:, list(units)].prod(axis=1)
    norm, covariance = NEAR.tilt(units)
    assert abs(weight.mean() - norm) < 4 * weight.std() / np.sqrt(len(xi)) < 0.01 * norm
    second = weight[:, None, None] * xi[:, :, None] * xi[:, None, :]
    error = second.std(axis=0) / np.sqrt(len(xi))
    assert np.all(np.abs(second.mean(axis=0) - norm * covariance) < 4.5 * error)


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
    found = after_a_step(np.outer(delta, delta), NEAR, rate)
    error = second.std(axis=0) / np.sqrt(samples)
    assert np.all(np.abs(second.mean(axis=0) - found) < 4.5 * error)
    error = answer**2 / 12  # ε_g is half the mean of the squared difference of the outputs, answer/√(MN)
    begin = NEAR.generalization_error(0.0, delta, rate)
    assert abs(error.mean() - begin) < 4 * error.std() / np.sqrt(samples)


def test_error_in_time_is_the_step_repeated():
    delta, rate = 0.1 * np.ones((2, 3)) * [[1], [-2]], 1.3
    found = NEAR.generalization_error([0.0, 1 / 3, 2.0, 4.0], delta, rate)
    second, errors = np.outer(delta, delta), []
    for _ in range(13):
        errors.append(np.sum(pull(NEAR) * second) / 2)
        second = after_a_step(second, NEAR, rate)
    np.testing.assert_allclose(found, np.array(errors)[[0, 1, 6, 12]], rtol=1e-11)


def test_a_teacher_without_length_is_a_linear_teacher():
    lam = power_law(6, 0.75)
    near, times = NearTeacher(np.zeros((1, 6)), lam), np.array([0.0, 0.5, 3.0])
    edge = near.critical_learning_rate()
    assert edge == pytest.approx(np.pi / 2 * finite_size_threshold(lam), rel=1e-9)
    found = near.generalization_error(times, np.ones((1, 6)), 0.4 * np.pi / 2)
    # outputs times √(2/π) are errors times 2/π; equal D_k² are the mean of the linear student at the start
    np.testing.assert_allclose(found, 2 / np.pi * LinearStudent(lam, 0.4).finite_size_error(times), rtol=1e-12)


@pytest.mark.parametrize("units", [1, 2])
def test_threshold_approaches_that_of_the_infinite_network_as_one_over_size(units):
    gaps = []
    for count in (8, 16):
        frames = [np.linalg.qr(np.random.default_rng(k).standard_normal((count, units)))[0].T for k in range(2)]
        teacher = np.sqrt(count) * np.concatenate(frames, axis=1)  # B P_k Bᵀ = m_k 1
        edge = NearTeacher(teacher, np.repeat(power_law(2, 1.0), count)).critical_learning_rate()
        gaps.append(1 - edge / stability.critical_learning_rate(units))
    assert 0 < gaps[1] < 0.2 and gaps[0] / gaps[1] == pytest.approx(2, abs=0.25)


def spectral_radius(near, rate):
    """Largest eigenvalue of the map of symmetric second moments, from its images of a basis."""
    size, columns = near.teacher.size, []
    for i in range(size):
        for j in range(i + 1):
            unit = np.zeros((size, size))
            unit[i, j] = unit[j, i] = 1
            columns.append(after_a_step(unit, near, rate)[np.tril_indices(size)])
    return np.abs(np.linalg.eigvals(np.array(columns).T)).max()


def test_threshold_is_where_the_map_of_second_moments_has_the_eigenvalue_one():
    edge = NEAR.critical_learning_rate()
    assert spectral_radius(NEAR, 0.999 * edge) < 1 < spectral_radius(NEAR, 1.001 * edge)


def test_late_errors_grow_with_the_largest_eigenvalue_of_the_map():
    # a thousand steps: an asymmetry of C from rounding must not grow
    near = NearTeacher(online.random_weights(2, 5, rng=1), power_law(5, 1.0))
    rate = 1.2 * near.critical_learning_rate()
    late = near.generalization_error([200.0, 201.0], np.ones((2, 5)), rate)
    assert late[1] / late[0] == pytest.approx(spectral_radius(near, rate) ** 5, rel=1e-6)


def test_renaming_units_and_turning_a_teacher_round_change_nothing():
    edge = NEAR.critical_learning_rate()
    assert NearTeacher(TEACHER[::-1] * [[-1], [1]], LAM).critical_learning_rate() == pytest.approx(edge, rel=1e-9)
    # inputs c times as strong, teachers 1/c times as long: the same fields, and steps c² times as large
    assert NearTeacher(TEACHER / 3, 9 * LAM).critical_learning_rate() == pytest.approx(edge / 9, rel=1e-9)


def test_error_in_time_is_the_mean_of_simulated_descent():
    lam, teacher, times = power_law(12, 0.5), online.random_weights(2, 12, rng=3), np.array([0.5, 3.0])
    start = 1e-4 * np.random.default_rng(5).standard_normal(teacher.shape)
    exact = NearTeacher(teacher, lam).generalization_error(times, start, 0.6)
    runs = online.simulate(
        teacher + start, teacher, learning_rate=0.6, times=times, rng=7, eigenvalues=lam, replicas=3000
    ).generalization_error
    error = runs.std(axis=0) / np.sqrt(3000)
    assert np.all(np.abs(runs.mean(axis=0) - exact) < 4 * error) and np.all(error < 0.02 * exact)


def test_what_does_not_fit_together_is_refused():
    twins, linear = [[1.0, 2.0, 0.5], [-1.0, -2.0, -0.5]], NearTeacher([[0.0]], [1.0])
    with pytest.raises(ValueError, match=r"^teacher must have units that differ by more than a sign"):
        NearTeacher(twins, LAM).critical_learning_rate()
    with pytest.raises(ValueError, match=r"^learning_rate must keep the result"):
        linear.generalization_error([1e3], np.ones((1, 1)), 50.0)
    with pytest.raises(ValueError, match=r"^times must be at most 9.01e\+15"):
        linear.generalization_error([1e19], np.ones((1, 1)), 0.1)
    with pytest.raises(ValueError, match=r"^teacher must have two axes, the second of length 3"):
        NearTeacher(np.ones((2, 2)), LAM)
    with pytest.raises(ValueError, match=r"^deviation must have shape"):
        NEAR.generalization_error(1.0, np.ones((2, 2)), 0.1)
    for units in ((0, 2), (-1,), (True,), (0.0,), "0", 0):
        with pytest.raises(ValueError, match=r"^units must name units from 0 to 1"):
            NEAR.tilt(units)

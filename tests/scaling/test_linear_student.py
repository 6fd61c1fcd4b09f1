"""lib.scaling.linear_student against matrix exponentials, 50-digit moments, recursions, limits, descent."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law
from scipy.linalg import expm

from lib.common.spectrum import Spectrum
from lib.scaling import linear_descent
from lib.scaling.linear_student import LinearStudent, finite_size_threshold

LAM = power_law(6, 0.75)

# --- many inputs


@pytest.mark.parametrize("rate", [0.0, 0.05, 1.0, 1.7, 2.3])
@pytest.mark.parametrize("trained", [1, 3, 5])
def test_error_is_that_of_the_rate_equations_of_trained_and_frozen_eigenspaces(rate, trained):
    spectrum = Spectrum(power_law(5, 1.0), [1, 2, 3, 5, 9]).normalized().scaled(1.2)
    lam, n = spectrum.eigenvalues, spectrum.shares
    matrix = -2 * rate * np.diag(lam) + rate**2 * np.outer(lam * n, lam)
    matrix[trained:] = 0
    times = np.array([0.0, 0.3, 2.0, 20.0])
    got = LinearStudent(spectrum, rate, trained=trained, student_variance=0.3).generalization_error(times)
    np.testing.assert_allclose(got, [0.5 * lam @ expm(matrix * t) @ (1.3 * n) for t in times], rtol=1e-10)


@pytest.mark.parametrize("levels, rate", [(6, 0.3), (10, 1.7)])
def test_error_is_that_of_the_moment_equations_in_fifty_digits(levels, rate):
    """The companion matrix of the characteristic polynomial closes the hierarchy of moments; it needs the digits."""
    with mp.workdps(50):
        k = [mp.mpf(j) ** (-1 - mp.mpf("0.75")) for j in range(1, levels + 1)]
        lam = [levels * value / mp.fsum(k) for value in k]
        c = [mp.mpf(1)]  # ascending coefficients of Π (x - λ_k)
        for value in lam:
            c = [(c[i - 1] if i else 0) - value * (c[i] if i < len(c) else 0) for i in range(len(c) + 1)]
        nu = [mp.fsum(value**order for value in lam) / levels for order in range(levels + 1)]
        # moments m_l = Σ_k λ_k^l e_k, l = 0..L-1:  dm_l/dα = -2η m_{l+1} + η² ν_{l+1} m_1
        shift = mp.zeros(levels)
        for i in range(levels - 1):
            shift[i, i + 1] = 1
        for i in range(levels):
            shift[levels - 1, i] = -c[i]
        matrix = -2 * rate * shift
        for i in range(levels):
            matrix[i, 1] += mp.mpf(rate) ** 2 * nu[i + 1]
        for time in (0.5, 4.0, 60.0):
            expected = 0.5 * (mp.expm(matrix * time, method="pade") * mp.matrix(nu[:levels]))[1]
            got = LinearStudent(power_law(levels, 0.75), rate).generalization_error(time)
            assert abs(got / float(expected) - 1) < 1e-11


def test_stability_ends_at_two_for_every_spectrum():
    for lam in (LAM, power_law(200, 0.1), power_law(50, 2.0)):
        late, below, above = (LinearStudent(lam, rate).generalization_error([1e3, 2e3]) for rate in (2.0, 1.98, 2.02))
        assert late[1] / late[0] == pytest.approx(1, abs=1e-6)
        assert below[1] < 0.99 * below[0] and above[1] > 1.01 * above[0]
    with pytest.raises(ValueError, match="^learning_rate must keep the result"):
        LinearStudent(LAM, 3.0).generalization_error([1e6])


def test_first_correction_in_the_learning_rate_and_its_constant_factor():
    lam, scaled = power_law(1024, 0.75), np.array([3.0, 10.0, 30.0])

    def lift(times, spectrum, rate):
        flow = LinearStudent(spectrum, rate).flow_error(times / rate)
        return LinearStudent(spectrum, rate).generalization_error(times / rate) / flow

    for rate, tolerance in ((0.1, 0.002), (1.0, 0.02)):
        np.testing.assert_allclose(lift(scaled, lam, rate), 1 / (1 - rate / 2), rtol=tolerance)
    assert (lift(5, LAM, 2e-4) - 1) / (lift(5, LAM, 1e-4) - 1) == pytest.approx(2, rel=0.01)


@settings(max_examples=15)
@given(levels=st.integers(1, 40), exponent=st.floats(0.05, 2), rate=st.floats(0.01, 1.99))
def test_modes_interlace_and_reproduce_the_error(levels, exponent, rate):
    lam = power_law(levels, exponent)
    shifted, amplitudes = LinearStudent(lam, rate).modes()
    assert amplitudes.sum() == pytest.approx(1, rel=1e-9)
    assert amplitudes @ shifted == pytest.approx((2 - rate) / 2, rel=1e-10)
    assert np.all(shifted < lam * (1 + 1e-12)) and np.all(shifted[:-1] > lam[1:] * (1 - 1e-12)) and shifted[-1] > 0
    times = np.array([0.0, 1.0, 30.0])
    total = 1.5 / (2 - rate) * np.exp(-2 * rate * np.outer(times, shifted)) @ (amplitudes * shifted)
    error = LinearStudent(lam, rate, student_variance=0.5).generalization_error(times)
    np.testing.assert_allclose(total, error, rtol=1e-9)


def test_modes_solve_the_secular_equation_with_the_printed_amplitudes():
    rate, n = 0.9, 1 / 6
    shifted, amplitudes = LinearStudent(LAM, rate).modes()
    gaps = LAM[:, None] - shifted  # (L, L)
    np.testing.assert_allclose(rate * n * (LAM[:, None] ** 2 / (2 * gaps)).sum(axis=0), 1, rtol=1e-9)
    expected = ((2 - rate) / (rate * shifted)) ** 2 / (n * (LAM[:, None] ** 2 / gaps**2).sum(axis=0))
    np.testing.assert_allclose(amplitudes, expected, rtol=1e-9)


@pytest.mark.parametrize("trained", [40, 300])
def test_local_exponent_is_the_derivative(trained):
    times, spectrum, step = np.array([1.0, 30.0, 1e4]), Spectrum(power_law(300, 0.75), np.arange(1, 301)), 1e-4
    student = LinearStudent(spectrum, 0.1, trained=trained)
    up, down = (np.log(student.flow_error(times * np.exp(s))) for s in (step, -step))
    np.testing.assert_allclose(student.local_exponent(times), (up - down) / (2 * step), rtol=1e-6, atol=1e-9)


def test_local_exponent_nears_its_limit_and_needs_no_error_that_is_left():
    large = power_law(200_000, 1.0)
    assert LinearStudent(large, 0.1).local_exponent(30 / (0.2 * large[0])) == pytest.approx(-0.5, abs=0.01)
    assert LinearStudent(LAM, 0.1).local_exponent(1e9) == pytest.approx(-2e8 * LAM[-1], rel=1e-9)  # the error is zero


# --- any number of inputs


def brute_force(steps, spectrum, trained, rate, squares):
    """½ Σ λ_k e_k after each number of steps, by the recursion for e_k, one step after the other."""
    lam, counts = spectrum.eigenvalues, spectrum.multiplicities
    share, e, errors = rate * lam / spectrum.dimension, squares * spectrum.shares, {}
    for step in range(max(steps) + 1):
        errors[step] = 0.5 * lam @ e
        driven = (1 - 2 * share + 2 * share**2) * e + share * counts * (share @ e)
        e = np.concatenate([driven[:trained], e[trained:]])
    return np.array([errors[step] for step in steps])


@pytest.mark.parametrize(("trained", "rate"), [(1, 0.2), (7, 0.4), (11, 0.4), (12, 0.9), (7, 2.5)])
@pytest.mark.parametrize("counts", [np.ones(12), np.arange(1, 13)])
def test_finite_size_error_is_the_recursion_below_and_above_the_threshold(trained, rate, counts):
    spectrum = Spectrum(power_law(12, 0.5), counts).normalized().scaled(1.3)
    steps = [0, 1, 5, 240]
    squares = np.random.default_rng(4).exponential(size=(3, 12))
    times, option = np.array(steps) / spectrum.dimension, {"trained": None if trained == 12 else trained}
    found = LinearStudent(spectrum, rate, **option).finite_size_error(times, squares=squares)
    expected = [brute_force(steps, spectrum, trained, rate, start) for start in squares]
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    one = LinearStudent(spectrum, rate, **option).finite_size_error(times, squares=squares[1])
    np.testing.assert_allclose(one, expected[1], rtol=1e-11)
    mean = LinearStudent(spectrum, rate, student_variance=0.5, **option).finite_size_error(times)
    np.testing.assert_allclose(mean, brute_force(steps, spectrum, trained, rate, np.full(12, 1.5)), rtol=1e-11)


def test_finite_size_tends_to_the_limit_as_one_over_n_and_to_the_flow_as_the_rate():
    times, gaps = np.array([1.0, 10.0]), []
    limit = LinearStudent(LAM, 0.7).generalization_error(times)
    for m in (1000, 2000):
        gaps.append(np.abs(LinearStudent(Spectrum(LAM, [m] * 6), 0.7).finite_size_error(times) / limit - 1))
    np.testing.assert_allclose(gaps[0] / gaps[1], 2, rtol=0.02)
    assert gaps[1].max() < 2e-2
    flow, gaps = LinearStudent(LAM, 1e-6, trained=4).flow_error(times * 1e6), []
    np.testing.assert_allclose(LinearStudent(LAM, 1.0, trained=4).flow_error(times), flow, rtol=1e-12)
    for rate in (1e-4, 1e-6):
        found = LinearStudent(LAM, rate, trained=4).finite_size_error(times / rate)
        gaps.append(np.abs(found / flow - 1).max())
    assert gaps[1] < 1e-5 and gaps[0] / gaps[1] == pytest.approx(100, rel=0.02)  # first order in η


def test_finite_size_error_is_the_mean_of_simulated_descent_where_the_limit_is_not():
    levels, rate, replicas, lam = 32, 0.4, 4000, power_law(32, 0.75)
    assert rate < 0.5 * finite_size_threshold(lam)
    rng = np.random.default_rng(5)
    difference, measured = rng.standard_normal((replicas, levels)), []
    for step in range(1, 10 * levels + 1):
        xi = rng.standard_normal((replicas, levels)) * np.sqrt(lam)
        difference -= rate / levels * (difference * xi).sum(axis=1)[:, None] * xi
        if step in (2 * levels, 10 * levels):
            measured.append(0.5 * difference**2 @ lam / levels)
    mean, error = np.mean(measured, axis=1), np.std(measured, axis=1) / np.sqrt(replicas)
    assert (np.abs(mean - LinearStudent(lam, rate).finite_size_error([2.0, 10.0])) < 4 * error).all()
    assert (np.abs(mean - LinearStudent(lam, rate).generalization_error([2.0, 10.0])) > 6 * error).all()


def test_frozen_components_are_those_of_simulated_descent():
    lam, squares = power_law(16, 0.75), np.linspace(0.5, 2, 16)
    runs = linear_descent.simulate(np.tile(np.sqrt(squares), (4000, 1)), lam, 0.3, [1.0, 4.0, 16.0], 5, trained=5)
    exact = LinearStudent(lam, 0.3, trained=5).finite_size_error(runs.times, squares=squares)
    error = runs.generalization_error.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(runs.generalization_error.mean(axis=0) - exact) < 4 * error) and np.all(error < 0.02 * exact)


def test_floors_are_where_both_errors_rest():
    for counts in (np.ones(40), np.arange(1, 41)):
        spectrum = Spectrum(power_law(40, 0.75), counts).scaled(1.3)
        for rate in (0.1, 0.4):
            student = LinearStudent(spectrum, rate, trained=10, student_variance=0.3)
            assert student.floor() == pytest.approx(student.generalization_error(1e7), rel=1e-11)
            assert student.floor(finite=True) == pytest.approx(student.finite_size_error(1e7), rel=1e-10)
            large = Spectrum(spectrum.eigenvalues, spectrum.multiplicities * 10**7)
            found = LinearStudent(large, rate, trained=10, student_variance=0.3).floor(finite=True)
            assert found == pytest.approx(student.floor(), rel=1e-5) and found < student.floor(finite=True)
            rest = LinearStudent(spectrum, 0.0, trained=10, student_variance=0.3).floor()
            assert rest == pytest.approx(student.flow_error(1e7), rel=1e-12) and rest < student.floor()
    assert LinearStudent(LAM, 0.5).floor() == 0


def test_finite_size_threshold_is_where_the_recursion_stops_shrinking():
    for exponent, value in {0.1: 1.69, 0.5: 1.31, 0.75: 1.13, 1.0: 1.001, 1.5: 0.856}.items():
        lam = power_law(128, exponent)
        threshold = finite_size_threshold(lam)
        assert threshold == pytest.approx(value, abs=0.006)
        for factor, sign in ((0.99, -1), (1.01, 1)):
            late = LinearStudent(lam, factor * threshold).finite_size_error([60.0, 120.0])
            assert sign * np.log(late[1] / late[0]) > 0
    assert finite_size_threshold(Spectrum([1.0], [10**6])) == pytest.approx(2, rel=3e-6)


# --- what must fit together


def test_what_does_not_fit_together_is_refused():
    pair = LinearStudent([1.5, 0.5], 0.1)
    for squares in ([], [1.0], np.ones((0, 2)), np.ones((1, 1, 2)), 1.0):
        with pytest.raises(ValueError, match="^squares must have shape"):
            pair.finite_size_error([1.0], squares=squares)
    for wrong, call in {
        "student_variance must be left at 0": lambda: LinearStudent([1.5, 0.5], 0.1, student_variance=0.2)
        .finite_size_error([1.0], squares=[1.0, 1.0]),
        "trained must be at most 2": lambda: LinearStudent([1.5, 0.5], 0.1, trained=3),
        "trained must be 2, all": lambda: LinearStudent([1.5, 0.5], 0.1, trained=1).modes(),
        "spectrum must have eigenvalues that all differ": lambda: LinearStudent([1.0, 1.0], 0.5).modes(),
        "spectrum must have mean one": lambda: LinearStudent([2.0, 1.0], 0.5).modes(),
        "spectrum must have whole multiplicities": lambda: finite_size_threshold(Spectrum([1.0], [1.5])),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=f"^{wrong}"):
            call()
    for rate in (0.0, 2.0):
        with pytest.raises(ValueError, match="^learning_rate must be one finite number > 0 and < 2"):
            LinearStudent([1.5, 0.5], rate).modes()
    for rate in (2.0, 50.0):  # the trained part grows; or a single step is too long
        with pytest.raises(ValueError, match="^learning_rate must be smaller"):
            LinearStudent([1.5, 0.5], rate, trained=1).floor(finite=True)
    for rate in (3.0, 1e200):
        with pytest.raises(ValueError, match="^learning_rate must keep the result"):
            LinearStudent([1.5, 0.5], rate).finite_size_error([1e6])

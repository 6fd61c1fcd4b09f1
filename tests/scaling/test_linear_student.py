"""lib.scaling.linear_student against matrix exponentials, 50-digit moments, recursions, quadrature, limits, descent."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.special import gamma

from lib.common.spectrum import Spectrum
from lib.scaling import feature_scaling, linear_descent, linear_student

LAM = power_law(6, 0.75)

# --- many inputs


@pytest.mark.parametrize("rate", [0.05, 1.0, 1.7, 2.3])
def test_error_is_that_of_the_rate_equations(rate):
    spectrum = Spectrum(power_law(5, 1.0), [1, 2, 3, 5, 9]).normalized()
    lam, n = spectrum.eigenvalues, spectrum.shares
    matrix = -2 * rate * np.diag(lam) + rate**2 * np.outer(lam * n, lam)
    times = np.array([0.0, 0.3, 2.0, 20.0])
    for option, front in ((False, lam), (True, lam @ matrix)):
        got = linear_student.generalization_error(times, spectrum, rate, student_variance=0.3, derivative=option)
        np.testing.assert_allclose(got, [0.5 * front @ expm(matrix * t) @ (1.3 * n) for t in times], rtol=1e-10)


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
            got = linear_student.generalization_error(time, power_law(levels, 0.75), rate)
            assert abs(got / float(expected) - 1) < 1e-11


def test_stability_ends_at_two_for_every_spectrum():
    for lam in (LAM, power_law(200, 0.1), power_law(50, 2.0)):
        late, below, above = (linear_student.generalization_error([1e3, 2e3], lam, rate) for rate in (2.0, 1.98, 2.02))
        assert late[1] / late[0] == pytest.approx(1, abs=1e-6)
        assert below[1] < 0.99 * below[0] and above[1] > 1.01 * above[0]
    with pytest.raises(ValueError, match="^learning_rate must keep the result"):
        linear_student.generalization_error([1e6], LAM, 3.0)


def test_first_correction_in_the_learning_rate_and_its_constant_factor():
    lam, scaled = power_law(1024, 0.75), np.array([3.0, 10.0, 30.0])

    def lift(times, spectrum, rate):
        flow = linear_student.gradient_flow_error(times / rate, spectrum, rate)
        return linear_student.generalization_error(times / rate, spectrum, rate) / flow

    for rate, tolerance in ((0.1, 0.002), (1.0, 0.02)):
        np.testing.assert_allclose(lift(scaled, lam, rate), 1 / (1 - rate / 2), rtol=tolerance)
    assert (lift(5, LAM, 2e-4) - 1) / (lift(5, LAM, 1e-4) - 1) == pytest.approx(2, rel=0.01)


@settings(max_examples=15)
@given(levels=st.integers(1, 40), exponent=st.floats(0.05, 2), rate=st.floats(0.01, 1.99))
def test_modes_interlace_and_reproduce_the_error(levels, exponent, rate):
    lam = power_law(levels, exponent)
    shifted, amplitudes = linear_student.modes(lam, rate)
    assert amplitudes.sum() == pytest.approx(1, rel=1e-9)
    assert amplitudes @ shifted == pytest.approx((2 - rate) / 2, rel=1e-10)
    assert np.all(shifted < lam * (1 + 1e-12)) and np.all(shifted[:-1] > lam[1:] * (1 - 1e-12)) and shifted[-1] > 0
    times = np.array([0.0, 1.0, 30.0])
    total = 1.5 / (2 - rate) * np.exp(-2 * rate * np.outer(times, shifted)) @ (amplitudes * shifted)
    error = linear_student.generalization_error(times, lam, rate, student_variance=0.5)
    np.testing.assert_allclose(total, error, rtol=1e-9)


def test_modes_solve_the_secular_equation_with_the_printed_amplitudes():
    rate, n = 0.9, 1 / 6
    shifted, amplitudes = linear_student.modes(LAM, rate)
    gaps = LAM[:, None] - shifted  # (L, L)
    np.testing.assert_allclose(rate * n * (LAM[:, None] ** 2 / (2 * gaps)).sum(axis=0), 1, rtol=1e-9)
    expected = ((2 - rate) / (rate * shifted)) ** 2 / (n * (LAM[:, None] ** 2 / gaps**2).sum(axis=0))
    np.testing.assert_allclose(amplitudes, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="^spectrum must have eigenvalues that all differ"):
        linear_student.modes([1.0, 1.0], 0.5)


def test_local_exponent_is_the_derivative_and_nears_its_limit():
    times, spectrum, step = (
        np.array([1.0, 30.0, 1e4]),
        Spectrum(power_law(300, 0.75), np.arange(1, 301)).normalized(),
        1e-4,
    )
    up, down = (np.log(linear_student.gradient_flow_error(times * np.exp(s), spectrum, 0.1)) for s in (step, -step))
    found = linear_student.local_exponent(times, spectrum, 0.1)
    np.testing.assert_allclose(found, (up - down) / (2 * step), rtol=1e-6, atol=1e-9)
    large = power_law(200_000, 1.0)
    middle = 30 / (2 * 0.1 * large[0])
    assert linear_student.local_exponent(middle, large, 0.1) == pytest.approx(-0.5, abs=0.01)
    late = linear_student.local_exponent(1e9, spectrum, 0.1)  # the last mode alone; the error itself underflows
    assert late == pytest.approx(-2 * 0.1 * 1e9 * spectrum.eigenvalues[-1], rel=1e-9)


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
    found = linear_student.finite_size_error(times, spectrum, rate, squares=squares, **option)
    expected = [brute_force(steps, spectrum, trained, rate, start) for start in squares]
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    one = linear_student.finite_size_error(times, spectrum, rate, squares=squares[1], **option)
    np.testing.assert_allclose(one, expected[1], rtol=1e-11)
    mean = linear_student.finite_size_error(times, spectrum, rate, student_variance=0.5, **option)
    np.testing.assert_allclose(mean, brute_force(steps, spectrum, trained, rate, np.full(12, 1.5)), rtol=1e-11)


def test_finite_size_tends_to_the_limit_as_one_over_n_and_to_the_flow_as_the_rate():
    times, gaps = np.array([1.0, 10.0]), []
    limit = linear_student.generalization_error(times, LAM, 0.7)
    for m in (1000, 2000):
        gaps.append(np.abs(linear_student.finite_size_error(times, Spectrum(LAM, [m] * 6), 0.7) / limit - 1))
    np.testing.assert_allclose(gaps[0] / gaps[1], 2, rtol=0.02)
    assert gaps[1].max() < 2e-2
    flow, gaps = linear_student.gradient_flow_error(times * 1e6, LAM, 1e-6, trained=4), []
    np.testing.assert_allclose(linear_student.gradient_flow_error(times, LAM, 1.0, trained=4), flow, rtol=1e-12)
    for rate in (1e-4, 1e-6):
        found = linear_student.finite_size_error(times / rate, LAM, rate, trained=4)
        gaps.append(np.abs(found / flow - 1).max())
    assert gaps[1] < 1e-5 and gaps[0] / gaps[1] == pytest.approx(100, rel=0.02)  # first order in η


def test_finite_size_error_is_the_mean_of_simulated_descent_where_the_limit_is_not():
    levels, rate, replicas, lam = 32, 0.4, 4000, power_law(32, 0.75)
    assert rate < 0.5 * linear_student.finite_size_threshold(lam)
    rng = np.random.default_rng(5)
    difference, measured = rng.standard_normal((replicas, levels)), []
    for step in range(1, 10 * levels + 1):
        xi = rng.standard_normal((replicas, levels)) * np.sqrt(lam)
        difference -= rate / levels * (difference * xi).sum(axis=1)[:, None] * xi
        if step in (2 * levels, 10 * levels):
            measured.append(0.5 * difference**2 @ lam / levels)
    mean, error = np.mean(measured, axis=1), np.std(measured, axis=1) / np.sqrt(replicas)
    assert (np.abs(mean - linear_student.finite_size_error([2.0, 10.0], lam, rate)) < 4 * error).all()
    assert (np.abs(mean - linear_student.generalization_error([2.0, 10.0], lam, rate)) > 6 * error).all()


def test_frozen_components_are_those_of_simulated_descent():
    lam, squares = power_law(16, 0.75), np.linspace(0.5, 2, 16)
    runs = linear_descent.simulate(np.tile(np.sqrt(squares), (4000, 1)), lam, 0.3, [1.0, 4.0, 16.0], 5, trained=5)
    exact = linear_student.finite_size_error(runs.times, lam, 0.3, trained=5, squares=squares)
    error = runs.generalization_error.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(runs.generalization_error.mean(axis=0) - exact) < 4 * error) and np.all(error < 0.02 * exact)


def test_finite_size_threshold_is_where_the_recursion_stops_shrinking():
    for exponent, value in {0.1: 1.69, 0.5: 1.31, 0.75: 1.13, 1.0: 1.001, 1.5: 0.856}.items():
        lam = power_law(128, exponent)
        threshold = linear_student.finite_size_threshold(lam)
        assert threshold == pytest.approx(value, abs=0.006)
        for factor, sign in ((0.99, -1), (1.01, 1)):
            late = linear_student.finite_size_error([60.0, 120.0], lam, factor * threshold)
            assert sign * np.log(late[1] / late[0]) > 0
    assert linear_student.finite_size_threshold(Spectrum([1.0], [10**6])) == pytest.approx(2, rel=3e-6)
    with pytest.raises(ValueError, match="^spectrum must have whole multiplicities"):
        linear_student.finite_size_threshold(Spectrum([1.0], [1.5]))


# --- power laws as integrals


@pytest.mark.parametrize("ends, first, last", [("midpoint", 0.5, 256.5), ("endpoint", 1.0, 256.0)])
def test_power_law_error_is_the_integral(ends, first, last):
    lam = power_law(256, 0.75)
    for time in (0.5, 20.0, 2000.0):
        integral = quad(
            lambda u: np.exp(u - 1.75 * u - 0.2 * lam[0] * time * np.exp(-1.75 * u)),
            *np.log([first, last]), epsabs=0, epsrel=1e-11, limit=200,
        )[0]  # fmt: skip
        got = linear_student.power_law_error(time, 256, 0.75, 0.1, student_variance=0.2, ends=ends)
        assert got == pytest.approx(1.2 * lam[0] / 512 * integral, rel=1e-9)


def test_frozen_modes_are_counted_once():
    lam, times = power_law(256, 0.75), np.geomspace(0.3, 1e4, 9)
    exact = linear_student.gradient_flow_error(times, lam, 0.1, trained=50, student_variance=0.2)
    found = linear_student.power_law_error(times, 256, 0.75, 0.1, trained=50, student_variance=0.2)
    np.testing.assert_allclose(found[1:], exact[1:], rtol=0.01)
    tail = feature_scaling.tail_floor(256, 50, 0.75, ends="endpoint")
    late = linear_student.power_law_error(1e9, 256, 0.75, 0.1, trained=50, ends="endpoint")
    assert late == pytest.approx(tail, rel=1e-9)
    whole = linear_student.power_law_error(times, 256, 0.75, 0.1) + feature_scaling.tail_floor(256, 50, 0.75)
    assert (1.2 * whole / exact).max() > 1.3  # the printed range counts them twice


def test_window_is_where_the_printed_power_law_holds():
    """Its begin is one step of the first mode; deep inside the error is the leading power less the part (α/α_hi)^s."""
    levels, rate = 200_000, 0.1
    for beta in (0.5, 1.0):
        s, lam = beta / (1 + beta), power_law(levels, beta)
        begin, end = linear_student.power_law_window(levels, beta, rate)
        assert 2 * rate * lam[0] * begin == pytest.approx(1, rel=1e-14)
        times = begin * np.array([30.0, 100.0, 300.0])
        power = lam[0] / (2 * levels) * gamma(s) / (1 + beta) * (times / begin) ** -s
        error = linear_student.gradient_flow_error(times, lam, rate)
        np.testing.assert_allclose(error / power, 1 - (times / end) ** s, rtol=2e-4)
    last = linear_student.power_law_error(end, levels, beta, rate)
    assert 0 < last < 0.5 * lam[0] / (2 * levels) * gamma(s) / (1 + beta) * (end / begin) ** -s


def test_limits_of_the_power_law_keep_their_digits():
    begin, end = linear_student.power_law_window(1000, 1e-16, 0.1)
    assert end / begin == pytest.approx(1000 * np.exp(-np.euler_gamma), rel=1e-13)  # Γ(1+s)^{1/s} for s → 0
    early = power_law(1000, 5.0)[0] / 2000 / 5 * (0.5**-5 - 1000.5**-5)  # ½ Σ λ_k/L as an integral, at α = 0
    assert linear_student.power_law_error(1e-14, 1000, 5.0, 0.1) == pytest.approx(early, rel=1e-10)


# --- what must fit together


def test_what_does_not_fit_together_is_refused():
    for trained, levels, name in ((None, 1, "levels"), (1, 3, "trained")):
        with pytest.raises(ValueError, match=f"^{name} must be at least 2"):
            linear_student.power_law_error([1.0], levels, 0.5, 0.1, trained=trained, ends="endpoint")
    with pytest.raises(ValueError, match="^times must be > 0"):
        linear_student.power_law_error([0.0, 1.0], 3, 0.5, 0.1)
    with pytest.raises(ValueError, match="^trained must be at most 2"):
        linear_student.gradient_flow_error([1.0], [1.5, 0.5], 0.1, trained=3)
    for squares in ([], [1.0], np.ones((0, 2)), np.ones((1, 1, 2)), 1.0):
        with pytest.raises(ValueError, match="^squares must have shape"):
            linear_student.finite_size_error([1.0], [1.5, 0.5], 0.1, squares=squares)
    with pytest.raises(ValueError, match=r"^student_variance must be left at 0"):
        linear_student.finite_size_error([1.0], [1.5, 0.5], 0.1, squares=[1.0, 1.0], student_variance=0.2)
    for rate in (3.0, 1e200):
        with pytest.raises(ValueError, match="^learning_rate must keep the result"):
            linear_student.finite_size_error([1e6], [1.5, 0.5], rate)

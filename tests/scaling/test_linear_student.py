"""lib.scaling.linear_student against matrix exponentials, 50-digit moments, quadrature, limits, and descent."""

import mpmath as mp
import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.special import gamma

from lib.scaling import linear_student, spectra

LAM = spectra.power_law(6, 0.75)


def weighted(levels, exponent, counts):
    """A power law with unequal multiplicities, normalised to mean one."""
    lam = spectra.power_law(levels, exponent)
    counts = np.asarray(counts, dtype=float)
    return lam / (counts @ lam / counts.sum()), counts


@pytest.mark.parametrize("rate", [0.05, 1.0, 1.7, 2.3])
def test_error_is_that_of_the_rate_equations(rate):
    lam, counts = weighted(5, 1.0, [1, 2, 3, 5, 9])
    n = counts / counts.sum()
    matrix = -2 * rate * np.diag(lam) + rate**2 * np.outer(lam * n, lam)
    alpha = np.array([0.0, 0.3, 2.0, 20.0])
    expected = [0.5 * lam @ expm(matrix * t) @ (1.3 * n) for t in alpha]
    got = linear_student.generalization_error(alpha, lam, rate, multiplicities=counts, student_variance=0.3)
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    slope = linear_student.generalization_error(
        alpha, lam, rate, multiplicities=counts, student_variance=0.3, derivative=True
    )
    np.testing.assert_allclose(slope, [0.5 * lam @ matrix @ expm(matrix * t) @ (1.3 * n) for t in alpha], rtol=1e-10)


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
        for alpha in (0.5, 4.0, 60.0):
            expected = 0.5 * (mp.expm(matrix * alpha, method="pade") * mp.matrix(nu[:levels]))[1]
            got = linear_student.generalization_error([alpha], spectra.power_law(levels, 0.75), rate)[0]
            assert abs(got / float(expected) - 1) < 1e-11


def test_error_solves_the_volterra_equation():
    rate, alpha, points = 0.8, 6.0, 3001
    grid = np.linspace(0, alpha, points)
    error = 2 * linear_student.generalization_error(grid, LAM, rate)
    kernel = np.exp(-2 * rate * np.outer(alpha - grid, LAM)) @ LAM**2 / len(LAM)
    free = 2 * linear_student.gradient_flow_error([alpha], LAM, rate)[0]
    assert error[-1] == pytest.approx(free + rate**2 * np.trapezoid(kernel * error, grid), rel=1e-4)


def test_stability_ends_at_two_for_every_spectrum():
    for lam in (LAM, spectra.power_law(200, 0.1), spectra.power_law(50, 2.0)):
        late = linear_student.generalization_error([0.0, 1e3, 2e3], lam, 2.0)
        below = linear_student.generalization_error([1e3, 2e3], lam, 1.98)
        above = linear_student.generalization_error([1e3, 2e3], lam, 2.02)
        assert late[2] / late[1] == pytest.approx(1, abs=1e-6)
        assert below[1] < 0.99 * below[0] and above[1] > 1.01 * above[0]
    with pytest.raises(ValueError, match="^learning_rate must keep the error inside"):
        linear_student.generalization_error([1e6], LAM, 3.0)


def test_first_correction_in_the_learning_rate_and_its_constant_factor():
    lam = spectra.power_law(2048, 0.75)
    alpha = np.array([3.0, 10.0, 30.0, 100.0])
    for rate, tolerance in ((0.1, 0.002), (1.0, 0.02)):
        ratio = linear_student.generalization_error(alpha / rate, lam, rate) / linear_student.gradient_flow_error(
            alpha / rate, lam, rate
        )
        np.testing.assert_allclose(ratio, 1 / (1 - rate / 2), rtol=tolerance)
    small = [
        linear_student.generalization_error([5 / r], LAM, r)[0] / linear_student.gradient_flow_error([5 / r], LAM, r)[0]
        - 1
        for r in (2e-4, 1e-4)
    ]
    assert small[0] / small[1] == pytest.approx(2, rel=0.01)


@settings(max_examples=15)
@given(levels=st.integers(1, 40), exponent=st.floats(0.05, 2), rate=st.floats(0.01, 1.99))
def test_modes_interlace_and_reproduce_the_error(levels, exponent, rate):
    lam = spectra.power_law(levels, exponent)
    shifted, amplitudes = linear_student.modes(lam, rate)
    assert amplitudes.sum() == pytest.approx(1, rel=1e-9)
    assert amplitudes @ shifted == pytest.approx((2 - rate) / 2, rel=1e-10)
    assert np.all(shifted < lam * (1 + 1e-12)) and np.all(shifted[:-1] > lam[1:] * (1 - 1e-12)) and shifted[-1] > 0
    alpha = np.array([0.0, 1.0, 30.0])
    total = 1.5 / (2 - rate) * np.exp(-2 * rate * np.outer(alpha, shifted)) @ (amplitudes * shifted)
    np.testing.assert_allclose(
        total, linear_student.generalization_error(alpha, lam, rate, student_variance=0.5), rtol=1e-9
    )


@pytest.mark.parametrize("rate", [0.1, 1.99])
def test_modes_of_a_thousand_eigenvalues(rate):
    shifted, amplitudes = linear_student.modes(spectra.power_law(1000, 1.0), rate)
    assert (np.diff(shifted) < 0).all() and shifted[-1] > 0 and (amplitudes > 0).all()
    assert amplitudes.sum() == pytest.approx(1, rel=1e-6) and amplitudes @ shifted == pytest.approx(
        (2 - rate) / 2, rel=1e-8
    )


def test_modes_solve_the_secular_equation_with_the_printed_amplitudes():
    rate, n = 0.9, 1 / 6
    shifted, amplitudes = linear_student.modes(LAM, rate)
    gaps = LAM[:, None] - shifted  # (L, L)
    np.testing.assert_allclose(rate * n * (LAM[:, None] ** 2 / (2 * gaps)).sum(axis=0), 1, rtol=1e-9)
    expected = ((2 - rate) / (rate * shifted)) ** 2 / (n * (LAM[:, None] ** 2 / gaps**2).sum(axis=0))
    np.testing.assert_allclose(amplitudes, expected, rtol=1e-9)
    tiny = linear_student.modes(LAM, 1e-7)
    np.testing.assert_allclose(tiny[0], LAM, rtol=1e-6)
    np.testing.assert_allclose(tiny[1], n, rtol=1e-5)


def test_finite_size_tends_to_the_limit_as_one_over_n():
    alpha = np.array([1.0, 10.0])
    limit = linear_student.generalization_error(alpha, LAM, 0.7)
    gaps = [
        np.abs(linear_student.finite_size_error(alpha, LAM, 0.7, multiplicities=[m] * 6) / limit - 1)
        for m in (1000, 2000, 4000)
    ]
    np.testing.assert_allclose(gaps[0] / gaps[1], 2, rtol=0.02)
    np.testing.assert_allclose(gaps[1] / gaps[2], 2, rtol=0.02)
    assert gaps[2].max() < 1e-2


def test_finite_size_is_the_mean_of_simulated_descent_where_the_limit_is_not():
    levels, rate, runs = 32, 0.4, 4000
    lam, alpha = spectra.power_law(levels, 0.75), [2.0, 10.0]
    assert rate < 0.5 * linear_student.finite_size_threshold(lam)
    rng = np.random.default_rng(5)
    difference, measured = rng.standard_normal((runs, levels)), []
    for step in range(1, 10 * levels + 1):
        xi = rng.standard_normal((runs, levels)) * np.sqrt(lam)
        difference -= rate / levels * (difference * xi).sum(axis=1)[:, None] * xi
        if step in (2 * levels, 10 * levels):
            measured.append(0.5 * difference**2 @ lam / levels)
    mean, error = np.mean(measured, axis=1), np.std(measured, axis=1) / np.sqrt(runs)
    exact = linear_student.finite_size_error(alpha, lam, rate)
    limit = linear_student.generalization_error(alpha, lam, rate)
    assert (np.abs(mean - exact) < 4 * error).all()
    assert (np.abs(mean - limit) > 6 * error).all()


def test_finite_size_threshold_is_where_the_recursion_stops_shrinking():
    expected = {0.1: 1.69, 0.5: 1.31, 0.75: 1.13, 1.0: 1.001, 1.5: 0.856}
    for exponent, value in expected.items():
        lam, counts = spectra.power_law(128, exponent), np.ones(128)
        threshold = linear_student.finite_size_threshold(lam, multiplicities=counts)
        assert threshold == pytest.approx(value, abs=0.006)
        for factor, sign in ((0.99, -1), (1.01, 1)):
            late = linear_student.finite_size_error([60.0, 120.0], lam, factor * threshold, multiplicities=counts)
            assert sign * np.log(late[1] / late[0]) > 0
    assert linear_student.finite_size_threshold([1.0], multiplicities=[10**6]) == pytest.approx(2, rel=3e-6)


def test_local_exponent_is_the_derivative_and_nears_its_limit():
    alpha, lam = np.array([1.0, 30.0, 1e4]), spectra.power_law(300, 0.75)
    step = 1e-4
    up, down = (np.log(linear_student.gradient_flow_error(alpha * np.exp(s), lam, 0.1)) for s in (step, -step))
    np.testing.assert_allclose(
        linear_student.local_exponent(alpha, lam, 0.1), (up - down) / (2 * step), rtol=1e-6, atol=1e-9
    )
    large = spectra.power_law(200_000, 1.0)
    middle = 30 / (2 * 0.1 * large[0])
    assert linear_student.local_exponent([middle], large, 0.1)[0] == pytest.approx(-0.5, abs=0.01)
    late = linear_student.local_exponent([1e9], lam, 0.1)[0]  # the last mode alone; the error itself underflows
    assert late == pytest.approx(-2 * 0.1 * 1e9 * lam[-1], rel=1e-9)


@pytest.mark.parametrize("ends, first, last", [("midpoint", 0.5, 256.5), ("endpoint", 1.0, 256.0)])
def test_power_law_error_is_the_integral(ends, first, last):
    lam = spectra.power_law(256, 0.75)
    for alpha in (0.5, 20.0, 2000.0):
        integral = quad(
            lambda u: np.exp(u - 1.75 * u - 0.2 * lam[0] * alpha * np.exp(-1.75 * u)),
            np.log(first),
            np.log(last),
            epsabs=0,
            epsrel=1e-11,
            limit=200,
        )[0]
        got = linear_student.power_law_error([alpha], 256, 0.75, 0.1, student_variance=0.2, ends=ends)[0]
        assert got == pytest.approx(1.2 * lam[0] / 512 * integral, rel=1e-9)


def test_midpoints_are_closer_to_the_sum_than_endpoints():
    lam = spectra.power_law(256, 0.75)
    alpha = np.geomspace(1, 1000, 7) / (2 * 0.1 * lam[0])
    total = linear_student.gradient_flow_error(alpha, lam, 0.1)
    errors = [
        np.abs(linear_student.power_law_error(alpha, 256, 0.75, 0.1, ends=e) / total - 1)
        for e in ("midpoint", "endpoint")
    ]
    assert (errors[0] < errors[1]).all() and errors[0][0] == pytest.approx(0.04, abs=0.01) and errors[0][-1] < 1e-4


def test_window_is_where_the_printed_power_law_holds():
    """Its begin is one step of the first mode; deep inside the error is the leading power less the part (α/α_hi)^s."""
    levels, rate = 200_000, 0.1
    for beta in (0.5, 1.0):
        s, lam = beta / (1 + beta), spectra.power_law(levels, beta)
        begin, end = linear_student.power_law_window(levels, beta, rate)
        assert 2 * rate * lam[0] * begin == pytest.approx(1, rel=1e-14)
        alpha = begin * np.array([30.0, 100.0, 300.0])
        power = lam[0] / (2 * levels) * gamma(s) / (1 + beta) * (alpha / begin) ** -s
        error = linear_student.gradient_flow_error(alpha, lam, rate)
        np.testing.assert_allclose(error / power, 1 - (alpha / end) ** s, rtol=2e-4)
    last = linear_student.power_law_error([end], levels, beta, rate)[0]
    assert 0 < last < 0.5 * lam[0] / (2 * levels) * gamma(s) / (1 + beta) * (end / begin) ** -s


def test_limits_of_the_power_law_keep_their_digits():
    begin, end = linear_student.power_law_window(1000, 1e-16, 0.1)
    assert end / begin == pytest.approx(1000 * np.exp(-np.euler_gamma), rel=1e-13)  # Γ(1+s)^{1/s} for s -> 0
    lam = spectra.power_law(1000, 5.0)
    early = lam[0] / 2000 / 5 * (0.5**-5 - 1000.5**-5)  # ½ Σ λ_k/L as an integral, at α = 0
    assert linear_student.power_law_error(1e-14, 1000, 5.0, 0.1) == pytest.approx(early, rel=1e-10)


def test_dimensions_are_whole_numbers():
    for call in (
        linear_student.finite_size_threshold,
        lambda *a, **k: linear_student.finite_size_error([1.0], *a, 0.1, **k),
    ):
        with pytest.raises(ValueError, match="^multiplicities must hold whole numbers"):
            call([1.0], multiplicities=[1.5])


def test_endpoints_of_one_level_are_refused():
    with pytest.raises(ValueError, match="^levels must be at least 2"):
        linear_student.power_law_error([1.0], 1, 0.5, 0.1, ends="endpoint")
    assert linear_student.power_law_error([1.0], 1, 0.5, 0.1)[0] > 0


# --- bad input: every public function, every argument

SPECTRUM = {"eigenvalues": [1.5, 0.5], "multiplicities": [1, 1]}
RUN = {"alpha": [1.0], "learning_rate": 0.1, "student_variance": 0.0} | SPECTRUM
CALLS = {
    linear_student.generalization_error: RUN | {"derivative": False},
    linear_student.gradient_flow_error: RUN,
    linear_student.local_exponent: {"alpha": [1.0], "learning_rate": 0.1} | SPECTRUM,
    linear_student.modes: {"learning_rate": 0.1} | SPECTRUM,
    linear_student.finite_size_error: RUN,
    linear_student.finite_size_threshold: SPECTRUM,
    linear_student.power_law_window: {"levels": 4, "exponent": 0.5, "learning_rate": 0.1},
    linear_student.power_law_error: {
        "alpha": [1.0],
        "levels": 4,
        "exponent": 0.5,
        "learning_rate": 0.1,
        "student_variance": 0.0,
        "ends": "midpoint",
    },
}
BAD = {
    "alpha": [[-1.0], [np.nan], [[1.0]], -1.0, np.nan, True, "alpha", None],
    "learning_rate": NUMBER,
    "student_variance": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None, [1.5, 0.6]],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2], [1, 2, 3]],
    "derivative": [None, 0, 1, "yes"],
    "levels": [0, -2, 2.0, "2", None, True],
    "exponent": NUMBER,
    "ends": ["middle", None, 1],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

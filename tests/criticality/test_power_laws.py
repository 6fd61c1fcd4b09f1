"""power_laws against likelihoods written out with quadrature, laws of known exponent, symmetries and the scatter of
repeated samples."""

import numpy as np
import pytest
from bad_input import NUMBER, SEED, exercised
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import kstest, lognorm, norm, uniform

from lib.criticality import _tilted, power_laws

LOW, HIGH = 1e-3, 0.3
WIDTH = np.log(HIGH / LOW)


def powers(order, count, seed=0):
    """|s| = x^r for uniform x: p(s) ∝ s^{-(1 - 1/r)} on (0, 1), above 1 for r < 0."""
    return np.random.default_rng(seed).uniform(size=count) ** order


def log_likelihood(u, a, c, width):
    """ln of the density e^{au + cu²/2} on [0, width], summed over u; nothing shared with the library."""
    top = max(0.0, a * width + c * width**2 / 2, -(a**2) / (2 * c) if c < 0 and 0 < -a / c < width else 0.0)
    norm = quad(lambda v: np.exp(a * v + c * v**2 / 2 - top), 0, width, epsabs=0, epsrel=1e-13, limit=200)[0]
    return np.sum(a * u + c * u**2 / 2) - len(u) * (np.log(norm) + top)


# --- windows --------------------------------------------------------------------------------------


def test_the_edges_of_windows_lie_between_grid_points_and_the_widest_comes_first():
    u = np.array([0.0, 1.0, 2.0, 5.0, 6.0])
    found = power_laws.windows(np.exp(u), [0.0, 2.0, 0.0, 0.9, 1.0], 1.0, 0.5)
    # k rises through 0.5 and 1.5, falls back through both, and rises through 0.5 again, at 0.3 per unit of u
    expected = [(2 + 0.5 / 0.3, 6), (0.25, 0.75), (1.25, 1.75)]
    np.testing.assert_allclose([np.log([w.low, w.high]) for w in found], expected, rtol=1e-12)
    np.testing.assert_allclose([w.decades for w in found], [(b - a) / np.log(10) for a, b in expected], rtol=1e-12)
    assert [(w.open_low, w.open_high, w.probability) for w in found] == [
        (False, True, None),
        (False, False, None),
        (False, False, None),
    ]


def test_a_claim_that_holds_nowhere_has_no_window_and_one_that_holds_everywhere_is_open_at_both_ends():
    s = np.geomspace(1e-3, 1e3, 7)
    assert power_laws.windows(s, np.ones(7), 2.0, 0.5) == ()
    (window,) = power_laws.windows(s, np.ones(7), 1.0, 0.1)
    assert window.open_low and window.open_high and window.decades == pytest.approx(6, rel=1e-12)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=12), st.floats(0.05, 1), st.integers(0, 99))
def test_windows_hold_what_a_fine_scan_finds(exponents, tolerance, seed):
    u = np.cumsum(np.random.default_rng(seed).uniform(0.1, 1, len(exponents)))
    found = power_laws.windows(np.exp(u), exponents, 0.3, tolerance)
    fine = np.linspace(u[0], u[-1], 4001)
    off = np.abs(np.interp(fine, u, exponents) - 0.3)
    covered = (
        np.any([(fine >= np.log(w.low) - 1e-9) & (fine <= np.log(w.high) + 1e-9) for w in found], axis=0)
        if found
        else np.zeros(4001, bool)
    )
    assert np.array_equal(covered[np.abs(off - tolerance) > 1e-6], (off < tolerance)[np.abs(off - tolerance) > 1e-6])
    assert sorted((w.decades for w in found), reverse=True) == [w.decades for w in found]


def test_the_probability_of_a_window_is_exact_for_a_power_law_and_converges_for_a_lognormal():
    s = np.geomspace(1.0, 1e4, 9)
    (window,) = power_laws.windows(s, np.full(9, 1.5), 1.5, 0.1, log_density=np.log(0.5) - 1.5 * np.log(s))
    assert window.probability == pytest.approx(1 - 1e4**-0.5, rel=1e-12)
    law, error = lognorm(8, scale=np.exp(-16)), []
    for count in (200, 400):
        s = np.exp(-16 + 8 * np.linspace(-6, 6, count))
        (window,) = power_laws.windows(s, 1 + (np.log(s) + 16) / 64, 1.0, 0.1, log_density=law.logpdf(s))
        assert np.log([window.low, window.high]) == pytest.approx([-22.4, -9.6], rel=1e-12)
        error.append(window.probability - (law.cdf(window.high) - law.cdf(window.low)))
    assert abs(error[0]) < 1e-3 and error[0] / error[1] == pytest.approx(4, rel=0.3)  # second order in the spacing


def test_a_density_per_logarithm_is_noticed():
    with pytest.raises(ValueError, match="^log_density must be the logarithm of a density"):
        power_laws.windows([1.0, 1e4], [1.0, 1.0], 1.0, 0.1, log_density=[0.0, 0.0])


@pytest.mark.parametrize(
    ("slope", "low", "high", "decades", "probability"),
    [(lambda y: 2 * expit(y) ** 2 * expit(-y), 4e-10, 1.9e-4, 5.7, 0.59), (expit, 6e-5, 1.6e-3, 1.4, 0.31)],
    ids=["squared", "cross-entropy"],
)
def test_window_of_the_zeros_of_a_sigmoid_neuron(slope, low, high, decades, probability):
    x = np.linspace(-1.5, 0.5, 4001)  # below the fold; w = 16, b = -8
    u = np.log(slope(16 * x - 8) * np.sqrt(1 + x**2))
    log_density = norm.logpdf(x, scale=0.25) - np.log(np.gradient(u, x)) - u
    found = power_laws.windows(np.exp(u), -np.gradient(log_density, u), 1.0, 0.1, log_density=log_density)[0]
    assert [found.low, found.high] == pytest.approx([low, high], rel=0.1)
    assert found.decades == pytest.approx(decades, abs=0.06) and found.probability == pytest.approx(
        probability, abs=0.006
    )


# --- exponents from samples -----------------------------------------------------------------------


@pytest.mark.parametrize("order", [4, 3, 2, 1, 0.5, 0.4, -0.5, -1, -3])
def test_likelihood_recovers_the_exponent_of_a_power_including_negative_ones(order):
    window = (LOW, HIGH) if order > 0 else (1 / HIGH, 1 / LOW)
    s = powers(order, 200_000)
    fit = power_laws.fit(s, *window)
    assert abs(fit.exponent - (1 - 1 / order)) < 5 * fit.error < 0.3
    assert fit.count == np.sum((s >= window[0]) & (s <= window[1])) and fit.share == fit.count / len(s)


@pytest.mark.parametrize("order", [3, 1.0001, 0.3, -1])
def test_exponent_and_error_are_those_of_the_likelihood_written_out(order):
    s = powers(order, 5000)
    low, high = (LOW, HIGH) if order > 0 else (1 / HIGH, 1 / LOW)
    u = np.log(s[(s >= low) & (s <= high)] / low)
    fit = power_laws.fit(s, low, high)
    a = 1 - fit.exponent
    best = minimize_scalar(lambda slope: -log_likelihood(u, slope, 0.0, WIDTH), bracket=(a - 0.1, a + 0.1), tol=1e-12).x
    assert a == pytest.approx(best, abs=1e-6)
    step = fit.error / 10
    bend = sum(w * log_likelihood(u, a + d * step, 0.0, WIDTH) for w, d in ((1, -1), (-2, 0), (1, 1))) / step**2
    assert fit.error == pytest.approx((-bend) ** -0.5, rel=1e-3)


@given(st.integers(0, 99), st.floats(-6, 6), st.floats(1e-6, 1e6))
def test_the_unit_has_no_say_and_the_inverse_of_samples_has_exponent_two_minus_k(seed, slope, scale):
    position = np.random.default_rng(seed).uniform(size=50)
    s = LOW * np.exp(WIDTH * position ** np.exp(slope / 3))
    fit = power_laws.fit(s, LOW * 0.999, HIGH * 1.001)
    scaled = power_laws.fit(scale * s, scale * LOW * 0.999, scale * HIGH * 1.001)
    mirrored = power_laws.fit(1 / s, 1 / (1.001 * HIGH), 1 / (0.999 * LOW))
    assert scaled.exponent == pytest.approx(fit.exponent, rel=1e-9, abs=1e-9)
    assert mirrored.exponent == pytest.approx(2 - fit.exponent, rel=1e-9, abs=1e-9)
    assert mirrored.error == pytest.approx(fit.error, rel=1e-8)


@pytest.mark.parametrize("z", [-40.0, -0.31, -0.29, -0.09, -1e-3, 1e-4, 0.05, 0.099, 0.101, 0.299, 2.0, 30.0])
def test_mean_and_variance_of_an_exponential_on_a_window(z):
    x, weights = np.polynomial.legendre.leggauss(60)
    norm, mean, square = (weights @ ((x / 2) ** power * np.exp(z * x / 2)) for power in range(3))
    assert _tilted.mean_minus_half(z) == pytest.approx(mean / norm, rel=1e-8)
    assert _tilted.variance(z) == pytest.approx(square / norm - (mean / norm) ** 2, rel=1e-9)
    assert _tilted.steepness(0.5 + mean / norm) == pytest.approx(z, rel=1e-8, abs=1e-12)


def test_on_a_window_without_end_the_estimate_is_hills():
    s = 1 / powers(1, 4000)
    fit = power_laws.fit(s, 1.0, 1e300)
    assert fit.exponent == pytest.approx(1 + 1 / np.log(s).mean(), rel=1e-12)
    assert fit.error == pytest.approx((fit.exponent - 1) / np.sqrt(4000), rel=1e-12)


def test_the_error_is_the_scatter_of_repeated_samples_and_of_resamples():
    fits = [power_laws.fit(powers(3, 3000, seed), LOW, 1.0) for seed in range(400)]
    scatter = np.std([(fit.exponent - 2 / 3) / fit.error for fit in fits])
    assert abs(scatter - 1) < 5 / np.sqrt(2 * 400)
    for order in (3, 0.5):
        s = powers(order, 20_000)
        resampled = power_laws.bootstrap_error(s, LOW, 1.0, rng=4, resamples=400)
        assert resampled == pytest.approx(power_laws.fit(s, LOW, 1.0).error, rel=0.2)
        assert resampled == power_laws.bootstrap_error(s, LOW, 1.0, rng=4, resamples=400)
        assert resampled != power_laws.bootstrap_error(s, LOW, 1.0, rng=5, resamples=400)


def test_the_bootstrap_sees_a_law_that_is_none():
    two_heaps = np.repeat([1.0001e-3, 0.2999], 500)  # more scatter than any power law of this mean
    assert power_laws.bootstrap_error(two_heaps, LOW, HIGH, rng=1) > 1.5 * power_laws.fit(two_heaps, LOW, HIGH).error


# --- curvature ------------------------------------------------------------------------------------

SAMPLES = {
    "power": powers(3, 3000),
    "lognormal": np.exp(-4 + 1.5 * np.random.default_rng(1).standard_normal(3000)),
    "narrow": np.exp(-4 + 0.1 * np.random.default_rng(2).standard_normal(3000)),
    "two heaps": np.r_[powers(0.2, 1500) * HIGH, LOW / powers(0.2, 1500)],
    "flat": np.geomspace(LOW, HIGH, 50),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_curved_law_is_the_maximum_of_the_likelihood_written_out(name):
    s = SAMPLES[name]
    u = np.log(s[(s >= LOW) & (s <= HIGH)] / LOW)
    test = power_laws.curvature_test(s, LOW, HIGH)
    a, c = 1 - test.exponents[0], test.curvature
    assert test.exponents[1] == pytest.approx(1 - a - c * WIDTH, rel=1e-9)
    top = max(a * v + c * v**2 / 2 for v in np.linspace(0, WIDTH, 2000))

    def moment(power):
        return quad(
            lambda v: v**power * np.exp(a * v + c * v**2 / 2 - top),
            0,
            WIDTH,
            epsrel=1e-12,
            limit=500,
            points=np.linspace(0, WIDTH, 40)[1:-1],
        )[0]

    m = np.array([moment(power) for power in range(5)])
    m = m / m[0]
    np.testing.assert_allclose(m[1:3], [u.mean(), (u**2).mean()], rtol=1e-8)
    fisher = len(u) * np.array(
        [[m[2] - m[1] ** 2, (m[3] - m[1] * m[2]) / 2], [(m[3] - m[1] * m[2]) / 2, (m[4] - m[2] ** 2) / 4]]
    )
    assert test.error == pytest.approx(np.linalg.inv(fisher)[1, 1] ** 0.5, rel=1e-5)
    straight = 1 - power_laws.fit(s, LOW, HIGH).exponent
    if name != "narrow":  # there one quadrature without break points fails
        ratio = 2 * (log_likelihood(u, a, c, WIDTH) - log_likelihood(u, straight, 0.0, WIDTH))
        assert test.likelihood_ratio == pytest.approx(ratio, rel=1e-6, abs=1e-7)
    assert test.aic_difference == test.likelihood_ratio - 2 and test.count == len(u)


@pytest.mark.parametrize("log_variance", [4.0, 16.0, 64.0])
def test_a_lognormal_shows_its_variance_and_is_rejected(log_variance):
    s = np.exp(np.sqrt(log_variance) * np.random.default_rng(5).standard_normal(200_000))
    edge = np.sqrt(log_variance)
    test = power_laws.curvature_test(s, np.exp(-edge), np.exp(edge))
    assert abs(test.curvature + 1 / log_variance) < 5 * test.error < 0.1 / log_variance
    np.testing.assert_allclose(test.exponents, [1 - 1 / edge, 1 + 1 / edge], atol=0.05 / edge)
    assert test.p_value < 1e-100


def test_under_a_power_law_the_ratio_is_chi_square_of_one():
    tests = [power_laws.curvature_test(powers(2, 2000, seed), LOW, 1.0) for seed in range(150)]
    assert kstest([test.p_value for test in tests], uniform.cdf).pvalue > 0.01
    assert abs(np.mean([test.likelihood_ratio for test in tests]) - 1) < 4 * np.sqrt(2 / 150)


@given(st.integers(0, 99), st.floats(1e-6, 1e6))
def test_curvature_does_not_depend_on_the_unit_nor_on_the_direction(seed, scale):
    s = LOW * np.exp(WIDTH * np.random.default_rng(seed).beta(1.3, 0.8, size=40))
    low, high = LOW * 0.99, HIGH * 1.01
    test, scaled = (
        power_laws.curvature_test(s, low, high),
        power_laws.curvature_test(scale * s, scale * low, scale * high),
    )
    mirrored = power_laws.curvature_test(1 / s, 1 / high, 1 / low)
    for other in (scaled, mirrored):
        assert other.curvature == pytest.approx(test.curvature, rel=1e-6, abs=1e-9)
        assert other.likelihood_ratio == pytest.approx(test.likelihood_ratio, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(mirrored.exponents[::-1], 2 - np.array(test.exponents), rtol=1e-6, atol=1e-9)


def test_samples_that_leave_most_of_the_window_empty_are_refused():
    for s in (np.linspace(1.0, 1.001, 50), 1 + np.linspace(1.0, 1.001, 50) * 1e-4):
        with pytest.raises(ValueError, match="^samples must fill the window"):
            power_laws.curvature_test(s, 1.0, 1e8)


def test_samples_at_one_end_have_no_exponent():
    for s in ([1.0, 1.0 + 4e-16, 1.0 + 4e-16], np.nextafter([2.0, 2.0, 2.0], [1.0, 2.0, 2.0])):
        with pytest.raises(ValueError, match="^samples must "):
            power_laws.fit(s, 1.0, 2.0)
    assert power_laws.fit([1.0, 1.5], 1.0, 2.0).count == 2
    with pytest.raises(ValueError, match="^samples must not all lie at one end of the window, nor those of a resample"):
        power_laws.bootstrap_error([1.0, 1.5], 1.0, 2.0, rng=1)


# --- bad input: every public function, every argument ---------------------------------------------

U = (np.arange(40) + 0.5) / 40
CALLS = {
    power_laws.windows: {
        "amplitudes": [1.0, 2.0, 4.0],
        "exponents": [0.0, 1.0, 2.0],
        "claim": 1.0,
        "tolerance": 0.1,
        "log_density": [-2.0, -3.0, -4.0],
    },
    power_laws.fit: {"samples": U, "low": 0.1, "high": 0.9},
    power_laws.bootstrap_error: {"samples": U, "low": 0.1, "high": 0.9, "rng": 1, "resamples": 5},
    power_laws.curvature_test: {"samples": U, "low": 0.1, "high": 0.9},
}
ROW = [[], [1.0], [1.0, 2.0], [[1.0, 2.0, 3.0]], [0.0, np.nan, 1.0], 1.0, "row", None]
BAD = {
    "amplitudes": [*ROW, [0.0, 1.0, 2.0], [1.0, 1.0, 2.0], [3.0, 2.0, 1.0], [-1.0, 1.0, 2.0]],
    "exponents": ROW,
    "log_density": [*(bad for bad in ROW if bad is not None), [10.0, 10.0, 10.0], [1e3, 1e3, 1e3]],
    "claim": [bad for bad in NUMBER if bad is True or bad not in (0, -1.0)],
    "tolerance": NUMBER,
    "samples": [
        [],
        [-0.5, 0.5],
        [0.5],
        [0.5, 0.5],
        [0.1, 0.9, 0.9],
        [0.0, 2.0],
        [np.nan, 0.5],
        [[0.4, 0.5]],
        0.5,
        "samples",
        None,
    ],
    "low": [*NUMBER, 0.9999],
    "high": [*NUMBER, 0.1],
    "rng": SEED,
    "resamples": [0, 1, -2, 2.0, "2", None, True],
}
NAMED = {"amplitudes": "amplitudes|exponents", "low": "low|high|samples", "high": "high|samples"}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, NAMED)


def test_counts_are_not_taken_for_a_continuous_quantity():
    counts = np.random.default_rng(0).zipf(2.5, 20_000)
    for call in (power_laws.fit, power_laws.curvature_test):
        with pytest.raises(ValueError, match="^samples must be of a continuous quantity: counts have .* whole numbers"):
            call(counts, 1, 1e3)
    # From a hundred on the continuous law is right within its error, and from ten on if the rounding is spread out.
    many = np.random.default_rng(1).zipf(2.5, 2_000_000)
    far = power_laws.fit(many, 100.5, 9999.5)
    assert abs(far.exponent - 2.5) < 4 * far.error
    spread = power_laws.fit(counts + np.random.default_rng(2).uniform(-0.5, 0.5, counts.size), 9.5, 999.5)
    assert abs(spread.exponent - 2.5) < 4 * spread.error
    assert power_laws.fit([1.0, 3.0, 10.0], 1, 10).count == 3  # whole by chance

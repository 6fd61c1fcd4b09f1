"""lognormal against scipy's lognormal, the relative entropy by quadrature, and samples that are fitted."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, exercised
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import lognorm, truncnorm

from lib.criticality import lognormal, power_laws


@given(st.floats(-5, 5), st.floats(0.5, 100), st.floats(-2, 2))
def test_local_exponent_is_the_slope_of_scipys_density(log_mean, log_variance, distance):
    law = lognorm(np.sqrt(log_variance), scale=np.exp(log_mean))
    u, step = log_mean + distance * np.sqrt(log_variance), 1e-4
    slope = (law.logpdf(np.exp(u + step)) - law.logpdf(np.exp(u - step))) / (2 * step)
    assert lognormal.local_exponent(np.exp(u), log_mean, log_variance) == pytest.approx(-slope, abs=1e-6)


@pytest.mark.parametrize("log_variance", [4.0, 16.0, 64.0])
@pytest.mark.parametrize("tolerance", [0.05, 0.1, 0.3])
def test_decades_and_share_are_those_of_the_window(log_variance, tolerance):
    law = lognorm(np.sqrt(log_variance))
    s = np.exp(np.linspace(-9, 9, 20001) * np.sqrt(log_variance))
    (window,) = power_laws.windows(
        s, lognormal.local_exponent(s, 0.0, log_variance), 1.0, tolerance, log_density=law.logpdf(s)
    )
    assert lognormal.decades(log_variance, tolerance) == pytest.approx(window.decades, rel=1e-9)
    assert lognormal.share(log_variance, tolerance) == pytest.approx(window.probability, rel=1e-6)
    assert lognormal.share(log_variance, tolerance) == pytest.approx(
        law.cdf(window.high) - law.cdf(window.low), rel=1e-9
    )


def exact(spread):
    """Twice the relative entropy of a normal, cut at ±spread, to the flat density on the same range."""
    law = truncnorm(-spread, spread)
    return 2 * quad(lambda z: law.pdf(z) * (law.logpdf(z) + np.log(2 * spread)), -spread, spread, epsabs=1e-16)[0]


def test_detectability_is_the_leading_order_of_the_relative_entropy():
    spreads = np.array([0.2, 0.4, 0.8])
    missing = lognormal.detectability(1, 64.0, spreads / 8) / [exact(spread) for spread in spreads] - 1
    assert np.all((missing > 0) & (missing < 0.045))  # too large, by the percentages that the docstring states
    np.testing.assert_allclose(missing[1:] / missing[:-1], 4, rtol=0.1)  # the next order is (δσ)² smaller
    curvature, width = 1 / 64.0, 2 * 0.1 * 64.0
    assert lognormal.detectability(7, 64.0, 0.1) == pytest.approx(7 * curvature**2 * width**4 / 720, rel=1e-12)


@pytest.mark.parametrize("log_variance", [64.0, 16.0])
def test_samples_are_rejected_as_predicted(log_variance):
    sigma, tolerance, count, ratios = np.sqrt(log_variance), 0.1, 4000, []
    edge = tolerance * sigma
    rng = np.random.default_rng(11)
    for _ in range(60):
        z = ndtri(ndtr(-edge) + rng.uniform(size=count) * (ndtr(edge) - ndtr(-edge)))
        ratios.append(
            power_laws.curvature_test(
                np.exp(sigma * z), np.exp(-tolerance * log_variance), np.exp(tolerance * log_variance)
            ).likelihood_ratio
        )
    error = np.std(ratios) / np.sqrt(60)
    assert abs(np.mean(ratios) - 1 - count * exact(edge)) < 4 * error
    assert abs(
        np.mean(ratios) - 1 - lognormal.detectability(count, log_variance, tolerance)
    ) < 4 * error + 0.045 * count * exact(edge)


CALLS = {
    lognormal.local_exponent: {"amplitudes": [1.0, 2.0], "log_mean": 0.0, "log_variance": 4.0},
    lognormal.decades: {"log_variance": [4.0, 5.0], "tolerance": 0.1},
    lognormal.share: {"log_variance": [4.0, 5.0], "tolerance": 0.1},
    lognormal.detectability: {"count": 5, "log_variance": [4.0, 5.0], "tolerance": 0.1},
}
BAD = {
    "amplitudes": [0.0, [-1.0], np.nan, "s", None, True],
    "log_mean": [bad for bad in NUMBER if bad is True or bad not in (0, -1.0)],
    "log_variance": [0.0, -1.0, np.nan, np.inf, "x", None, True],
    "tolerance": [0.0, -1.0, np.nan, np.inf, "x", None, True, [0.1, 0.1, 0.1]],
    "count": COUNT,
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

"""equilibria against adaptive quadrature, lognormal closed forms, finite differences, Monte Carlo and normal
tails."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from lib.criticality import compositions, equilibria

NAMES = (
    "sigmoid + cross-entropy",
    "sigmoid + squared",
    "ReLU + squared",
    "ReLU + quartic",
    "clip + cross-entropy",
    "softsign + squared",
)
PLACES = [(1.3, -0.2), (-4.0, 1.7), (16.0, -8.0), (0.05, 0.6)]
DATA = {"means": (-0.3, 1.1), "deviation": 0.4, "priors": (0.3, 0.7)}


def integral(composition, weight, bias, power, by, *, means, deviation, priors):
    """E[h^by x^power] by SciPy's adaptive quadrature, piece by piece."""
    total = 0.0
    for t in (0, 1):
        law = norm(means[t], deviation)
        ends = means[t] + deviation * np.linspace(-10, 10, 9)
        splits = [(kink - bias) / weight for kink in (*composition.kinks(t), 0.0, 1.0)]
        edges = np.unique([*ends, *(at for at in splits if ends[0] < at < ends[-1])])
        for low, high in zip(edges[:-1], edges[1:]):
            value = quad(
                lambda x: float(composition.slope(weight * x + bias, t)) ** by * x**power * law.pdf(x),
                low,
                high,
                epsabs=1e-13,
                limit=200,
            )
            total += priors[t] * value[0]
    return total


@pytest.mark.parametrize("name", NAMES)
def test_moments_by_adaptive_quadrature(name):
    composition = compositions.named(name)
    for weight, bias in PLACES[:2]:
        found = equilibria.moments(composition, weight, bias, **DATA)
        gradient = [integral(composition, weight, bias, power, 1, **DATA) for power in (1, 0)]
        square = [integral(composition, weight, bias, power, 2, **DATA) for power in (2, 1, 0)]
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-11)
        expected = np.array([square[:2], square[1:]]) - np.outer(gradient, gradient)
        np.testing.assert_allclose(found.covariance, expected, rtol=1e-9, atol=1e-9 * np.abs(square).max())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", PLACES)
def test_the_hessian_is_the_derivative_of_the_mean_gradient_jumps_included(name, place):
    composition, step = compositions.named(name), 1e-5
    ends = [
        [equilibria.moments(composition, *(place + sign * step * axis), **DATA).gradient for sign in (1, -1)]
        for axis in np.eye(2)
    ]
    differences = np.stack([(up - down) / (2 * step) for up, down in ends], axis=1)
    found = equilibria.moments(composition, *place, **DATA).hessian
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=2e-7 * np.abs(found).max())


@given(st.floats(-6, 6).filter(lambda w: abs(w) > 0.1), st.floats(-3, 3), st.floats(0.1, 0.8), st.floats(0.1, 0.9))
@settings(deadline=None, max_examples=25)
def test_an_exponential_has_the_moments_of_lognormals(weight, bias, deviation, prior):
    means, priors, c = np.array([0.2, 1.0]), np.array([1 - prior, prior]), -1.5
    found = equilibria.moments(
        compositions.named("exponential", rate=c), weight, bias, means=means, deviation=deviation, priors=priors
    )

    def mean(rate, power):  # E[e^{rate·y} x^power]: tilting a Gaussian moves its mean
        tilted = means + rate * weight * deviation**2
        size = np.exp(rate * (weight * means + bias) + (rate * weight * deviation) ** 2 / 2)
        return priors @ (size * (1, tilted, tilted**2 + deviation**2)[power])

    gradient = c * np.array([mean(c, 1), mean(c, 0)])
    square = [[mean(2 * c, 2), mean(2 * c, 1)], [mean(2 * c, 1), mean(2 * c, 0)]]
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-10, atol=1e-12 * abs(gradient).max())
    np.testing.assert_allclose(
        found.hessian, c**2 * np.array([[mean(c, 2), mean(c, 1)], [mean(c, 1), mean(c, 0)]]), rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(
        found.covariance, c**2 * np.array(square) - np.outer(gradient, gradient), rtol=1e-8, atol=1e-9 * np.max(square)
    )


@pytest.mark.parametrize("epsilon", [1e-2, 1e-5, 1e-9])
def test_a_small_cut_costs_no_accuracy(epsilon):
    weight, bias = 2.1, -0.55
    found = equilibria.moments(compositions.named("clip + cross-entropy", epsilon=epsilon), weight, bias)
    ends = (
        np.log(epsilon),
        np.log1p(-epsilon),
    )  # of u = ln(distance to the pole), which is at 1 in class 0 and at 0 in class 1
    densities = [
        lambda u: norm.pdf(1 - np.exp(u), bias, weight * 0.25),
        lambda u: norm.pdf(np.exp(u), weight + bias, weight * 0.25),
    ]
    near = [quad(density, *ends, epsabs=1e-14, limit=400)[0] for density in densities]
    far = [quad(lambda u: density(u) * np.exp(-u), *ends, epsrel=1e-12, limit=400)[0] for density in densities]
    assert found.gradient[1] == pytest.approx((near[0] - near[1]) / 2, abs=1e-9 * near[0])
    assert found.covariance[1, 1] + found.gradient[1] ** 2 == pytest.approx(
        sum(far) / 2, rel=1e-9 + 1e-16 / epsilon
    )  # 1 - ε as a number


def test_moments_by_drawing_examples():
    rng, composition = np.random.default_rng(4), compositions.named("ReLU + squared")
    t = (rng.random(400_000) < DATA["priors"][1]).astype(float)
    x = np.take(DATA["means"], t.astype(int)) + DATA["deviation"] * rng.standard_normal(len(t))
    drawn = composition.slope(0.8 * x + 0.1, t) * np.stack([x, np.ones_like(x)])
    found = equilibria.moments(composition, 0.8, 0.1, **DATA)
    assert np.all(np.abs(drawn.mean(axis=1) - found.gradient) < 4 * np.sqrt(np.diag(found.covariance) / len(t)))
    np.testing.assert_allclose(np.cov(drawn), found.covariance, rtol=0.02)


@given(st.floats(0.1, 8), st.floats(-3, 3), st.floats(-2, 2))
@settings(deadline=None, max_examples=15)
def test_a_shift_of_the_input_is_a_change_of_the_bias(weight, bias, shift):
    composition = compositions.named("sigmoid + squared")
    here = equilibria.moments(composition, weight, bias)
    there = equilibria.moments(composition, weight, bias - weight * shift, means=(shift, 1 + shift))
    mixing = np.array([[1, shift], [0, 1]])
    np.testing.assert_allclose(there.gradient, mixing @ here.gradient, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.hessian, mixing @ here.hessian @ mixing.T, rtol=1e-9, atol=1e-12)


# --- who gets a gradient --------------------------------------------------------------------------


def test_live_probability_is_the_normal_law_outside_the_dead_intervals():
    weight, bias = np.array([[1.0, -2.0, 0.3]]), np.array([[0.1], [0.7]])
    laws = [norm(weight * mean + bias, np.abs(weight) * 0.5) for mean in (-1, 2)]
    kept = {"means": (-1, 2), "deviation": 0.5}
    relu = equilibria.live_probability(compositions.named("ReLU + quartic"), weight, bias, **kept)
    np.testing.assert_allclose(relu, [law.sf(0) for law in laws], rtol=1e-12)
    clip = equilibria.live_probability(compositions.named("clip + cross-entropy", epsilon=0.1), weight, bias, **kept)
    np.testing.assert_allclose(clip, [law.cdf(0.9) - law.cdf(0.1) for law in laws], rtol=1e-9)
    assert np.array_equal(
        equilibria.live_probability(compositions.named("sigmoid + squared"), weight, bias), np.ones((2, 2, 3))
    )


def test_a_tiny_live_probability_keeps_its_digits_on_either_side():
    clip = compositions.named("clip + cross-entropy", epsilon=0.0)
    for bias in (6.0, -6.0):
        found = equilibria.live_probability(clip, 1.0, bias, deviation=0.3)
        edge = [min(abs(mean + bias), abs(mean + bias - 1)) / 0.3 for mean in (0, 1)]
        np.testing.assert_allclose(found, norm.sf(edge), rtol=1e-9)
        assert np.all((found > 0) & (found < 1e-36))


def test_without_a_weight_all_inputs_are_alike():
    found = equilibria.live_probability(compositions.named("ReLU + squared"), [0.0, 0.0], [0.5, -0.5])
    assert np.array_equal(found, [[1, 0], [1, 0]])


# --- bad input ------------------------------------------------------------------------------------


def test_poles_and_weights_out_of_range_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="^composition must have a mean gradient: h has a pole at y = 1 in class 0"):
        equilibria.moments(compositions.named("clip + cross-entropy", epsilon=0.0), 2.0, -0.5)
    for weight in (1e-12, 1e120, 1e308):
        with pytest.raises(ValueError, match="^weight must"):
            equilibria.moments(compositions.named("ReLU + quartic"), weight, 1.0)
        with pytest.raises(ValueError, match="^weight must be small enough for a finite"):
            equilibria.live_probability(compositions.named("ReLU + quartic"), 1e308, 1.0, means=(2.0, 20.0))
    for weight in (80.0, 1000.0):  # the mean of e^{2y} comes from 40 deviations above
        with pytest.raises(ValueError, match="^weight must be small enough"):
            equilibria.moments(compositions.named("exponential"), weight, -80.0)


SIGMOID = compositions.named("sigmoid + squared")
CALLS = {
    equilibria.moments: {
        "composition": SIGMOID,
        "weight": 2.0,
        "bias": 0.0,
        "means": (0, 1),
        "deviation": 1.0,
        "priors": (0.5, 0.5),
    },
    equilibria.live_probability: {
        "composition": SIGMOID,
        "weight": [2.0, 3.0],
        "bias": [0.0, 1.0],
        "means": (0, 1),
        "deviation": 1.0,
    },
}
FINITE = [np.nan, np.inf, "1", None, True, 1j, [[1], [1, 2]]]
BAD = {
    "composition": ["sigmoid + squared", None, 1.0, np.ones(2)],
    "weight": FINITE,
    "bias": [*FINITE, np.ones(3)],
    "means": [[0.0], [0.0, 0.0], [0.0, np.nan], [[0.0, 1.0]], 1.0, "means", None],
    "deviation": NUMBER,
    "priors": [[0.5, 0.4], [0.0, 1.0], [-0.5, 1.5], [1.0], 1.0, [0.5, np.nan], "priors", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

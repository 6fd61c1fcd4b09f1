"""step_density: normalisation, scaling, exponents by finite differences, the lognormal, and the limits at zeros, poles
and folds."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import lognorm, norm
from step_cases import NAMES, figure, maps

from lib.criticality import amplitude, branches, compositions, step_density


@pytest.mark.parametrize("observable", ["step", "bias"])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_the_density_and_the_atom_integrate_to_one(name, label, observable):
    m = figure(name, label, observable=observable)
    drawn = step_density.curve(m)
    total = step_density.atom(m)
    for s, log in zip(drawn.amplitude, drawn.log_density):
        total += abs(np.trapezoid(np.exp(log), s))
    assert total == pytest.approx(1, abs=2e-3)


@settings(deadline=None, max_examples=30)
@given(m=maps(), seed=st.integers(0, 99))
def test_the_density_is_the_slope_of_the_distribution_function(m, seed):
    x = np.random.default_rng(seed).normal(m.mean, m.deviation, 8)
    s = amplitude.amplitude(x, m)
    # Within a thousandth of an amplitude no branch may begin or end.
    found = branches.find(m)
    ends = np.concatenate([found.at_left, found.at_right, [0.0]])
    s = s[np.abs(s[:, None] - ends).min(axis=1) > 1e-3 * np.abs(s)]
    step = 1e-5 * np.abs(s)
    rise = step_density.cumulative(s + step, m) - step_density.cumulative(s - step, m)
    rise_far = step_density.cumulative(s + 2 * step, m) - step_density.cumulative(s - 2 * step, m)
    mass = 12 * step * step_density.density(s, m)
    assert np.all(np.abs(8 * rise - rise_far - mass) <= 1e-5 * mass + 1e-12)


@settings(deadline=None, max_examples=30)
@given(m=maps(), rate=st.floats(1e-3, 1e3), seed=st.integers(0, 99))
def test_the_learning_rate_is_only_a_unit(m, rate, seed):
    x = np.random.default_rng(seed).normal(m.mean, m.deviation, 8)
    unit, scaled = (
        amplitude.step_map(
            m.composition,
            m.weight,
            m.bias,
            m.label,
            mean=m.mean,
            deviation=m.deviation,
            observable=m.observable,
            learning_rate=r,
        )
        for r in (1.0, rate)
    )
    s, s1, _ = amplitude.derivatives(x, unit)
    s = s[(s != 0) & (np.abs(s1) > 1e-2 * np.abs(s))]
    bound = 1e-9  # where the density is steep, the rounding of s/γ counts
    np.testing.assert_allclose(step_density.density(rate * s, scaled), step_density.density(s, unit) / rate, rtol=bound)
    r = np.abs(s)
    assert np.array_equal(
        step_density.magnitude_density(r, unit), step_density.density(r, unit) + step_density.density(-r, unit)
    )


@pytest.mark.parametrize("rate", [0.125, 0.3])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_the_learning_rate_to_twelve_digits(name, label, rate):
    unit, scaled = figure(name, label), figure(name, label, learning_rate=rate)
    s = amplitude.amplitude([-0.3, 0.3, 0.42, 0.57, 0.64], unit)
    s = s[s != 0]
    np.testing.assert_allclose(step_density.density(rate * s, scaled), step_density.density(s, unit) / rate, rtol=1e-12)
    both = step_density.density(np.abs(s), scaled) + step_density.density(-np.abs(s), scaled)
    assert np.array_equal(step_density.magnitude_density(np.abs(s), scaled), both)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_the_exponent_is_the_slope_of_the_log_density(name, label):
    m = figure(name, label)
    x = np.array([-0.2, 0.1, 0.35, 0.5, 0.66, 0.69, 0.9, 1.2])
    s, s1, _ = amplitude.derivatives(x, m)
    s = s[(s != 0) & (np.abs(s1) > 0.05 * np.abs(s))]
    found, share = step_density.exponent(s, m)
    step = 1e-4
    at = {i: step_density.log_density(s * np.exp(i * step), m) for i in (-2, -1, 1, 2)}
    np.testing.assert_allclose(found, -(8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * step), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(share.sum(axis=0), 1, rtol=1e-13)


def test_the_second_branch_of_the_sigmoid_takes_over_toward_the_edge():
    m = figure("sigmoid + squared", 0)
    edge = amplitude.amplitude(branches.find(m).folds, m)[0]
    share = step_density.exponent([-1e-3, -0.05, -0.2, edge * (1 - 1e-10)], m)[1][1]
    np.testing.assert_allclose(share, [1.2e-3, 0.07, 0.24, 0.5], rtol=0.05)


def test_a_pure_exponential_step_of_the_bias_is_lognormal():
    c, w, b, mean, deviation, rate = 2.0, 16.0, -8.0, 0.0, 0.25, 0.3
    m = amplitude.step_map(
        compositions.named("exponential", rate=c),
        w,
        b,
        0,
        mean=mean,
        deviation=deviation,
        learning_rate=rate,
        observable="bias",
    )
    width, median = abs(c * w) * deviation, rate * c * np.exp(c * (w * mean + b))
    s = -median * np.exp(np.linspace(-30, 30, 25))
    np.testing.assert_allclose(
        step_density.log_density(s, m), lognorm.logpdf(-s, width, scale=median), rtol=1e-12, atol=1e-10
    )
    np.testing.assert_allclose(step_density.exponent(s, m)[0], 1 + np.log(-s / median) / width**2, rtol=1e-12)
    # the saturated sigmoid is the same far below its fold
    real = amplitude.step_map(compositions.named("sigmoid + squared"), w, b, 0, learning_rate=rate, observable="bias")
    np.testing.assert_allclose(
        step_density.density(s[:6], real) / lognorm.pdf(-s[:6], width, scale=median), 1, atol=1e-3
    )


@pytest.mark.parametrize(("spread", "limit"), [(1.0, 0.5), (2.0, 0.875)])
def test_gaussian_tails_of_the_activation_make_a_power_law_that_the_data_tune(spread, limit):
    m = amplitude.step_map(compositions.named("erf + squared"), 1.0, 0.0, 0, deviation=spread, observable="bias")
    y = np.array([-3.0, -8.0, -20.0])
    found = sum(amplitude.exponents(y, m))
    wrong = np.abs(found - limit)
    assert (
        wrong[0] > 4 * wrong[1] and wrong[1] / wrong[2] == pytest.approx((20 / 8) ** 2, rel=0.05) and wrong[2] < 1.2e-3
    )
    if spread == 1.0:
        np.testing.assert_allclose(found, [0.474, 0.496, 0.4994], atol=6e-4)


@pytest.mark.parametrize("label", [0, 1])
def test_a_zero_of_third_order_makes_two_thirds_and_a_regular_one_zero(label):
    s = np.array([-1e-5, -1e-9])
    cubic, regular = (step_density.exponent(s, figure(name, label))[0] for name in ("ReLU + quartic", "ReLU + squared"))
    assert abs(cubic[1] - 2 / 3) < 2e-3 and abs(cubic[1] - 2 / 3) < 0.1 * abs(cubic[0] - 2 / 3)
    assert abs(regular[1]) < 1e-7


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_the_curve_is_the_density_branch_by_branch(name, label):
    m = figure(name, label)
    drawn = step_density.curve(m, points=41)
    assert np.all(drawn.amplitude * drawn.amplitude[:, :1] > 0)
    np.testing.assert_allclose(drawn.amplitude, amplitude.amplitude(drawn.x, m), rtol=1e-14)
    for row in range(len(drawn.x)):
        middle = slice(8, 33)  # away from the ends, where the input is not known from its step to all digits
        shares = step_density.exponent(drawn.amplitude[row, middle], m)[1][row]
        whole = step_density.log_density(drawn.amplitude[row, middle], m)
        reached = shares > 1e-30
        np.testing.assert_allclose(
            drawn.log_density[row, middle][reached],
            (whole + np.log(np.maximum(shares, 1e-300)))[reached],
            rtol=1e-5,
            atol=1e-5,
        )
        parts = amplitude.exponents(drawn.x[row], m)
        np.testing.assert_allclose(drawn.jacobian_exponent[row], parts[0], rtol=1e-13)
        np.testing.assert_allclose(drawn.data_exponent[row], parts[1], rtol=1e-13)
        data = norm.logpdf(drawn.x[row], m.mean, m.deviation)
        np.testing.assert_allclose(drawn.log_density[row] - drawn.log_jacobian[row], data, rtol=1e-12)


def test_amplitudes_without_inputs_and_dead_classes():
    m = figure("sigmoid + squared", 0)
    assert (
        step_density.log_density([0.1, -0.4], m).tolist() == [-np.inf, -np.inf] and step_density.density(-0.4, m) == 0
    )
    with pytest.raises(ValueError, match="^s must be amplitudes that"):
        step_density.exponent([-0.1, 0.1], m)
    dead = amplitude.step_map(compositions.named("ReLU + quartic"), 1.0, -100.0, 0)
    assert step_density.log_density(-1.0, dead) == -np.inf and step_density.curve(dead).x.shape == (0, 4000)
    with pytest.raises(ValueError, match="^s must be amplitudes that"):
        step_density.exponent([-0.1], dead)
    wide = amplitude.step_map(compositions.named("sigmoid + squared"), 16.0, -8.0, 0, deviation=5.0)
    with pytest.raises(ValueError, match="^reach must be so small"):
        step_density.curve(wide)
    assert step_density.curve(wide, reach=2.0).x.shape[1] == 4000


M = figure("sigmoid + squared", 0)
CALLS = {
    **{
        function: {"s": [-0.1, -0.2], "step_map": M}
        for function in (step_density.log_density, step_density.density, step_density.exponent)
    },
    step_density.magnitude_density: {"r": [0.1, 0.2], "step_map": M},
    step_density.curve: {"step_map": M, "points": 10, "reach": 5.0},
}
BAD = {
    **{
        "step_map": ["step", None, 1.0],
        "s": [[0.0], [np.nan], "s", None, [0.1, 0.0]],
        "r": [[0.0], -1.0, [np.nan], "r", None],
    },
    **{"points": [1, 2, 3.0, "3", None, True], "reach": NUMBER},
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

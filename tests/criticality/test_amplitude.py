"""amplitude against finite differences, the printed densities of the source, its mirror image, and exact exponents."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from step_cases import FIGURES, NAMES, figure, maps

from lib.criticality import amplitude, compositions

X = np.linspace(-0.9, 1.9, 57)


def alive(x, m, apart=2e-3):
    """Those x that are neither dead nor near a kink."""
    y = m.weight * x + m.bias
    near = np.any(
        [np.abs(y - kink) < apart * (1 + abs(m.weight)) for kink in m.composition.kinks(m.label)]
        or [np.zeros(x.size, bool)],
        axis=0,
    )
    return x[~near & (amplitude.amplitude(x, m) != 0)]


@settings(deadline=None, max_examples=100)
@given(m=maps())
def test_derivatives_are_those_of_the_amplitude(m):
    x, step = alive(X, m), 1e-5
    s, s1, s2 = amplitude.derivatives(x, m)
    for lower, upper in ((0, s1), (1, s2)):
        ahead, behind = amplitude.derivatives(x + step, m)[lower], amplitude.derivatives(x - step, m)[lower]
        far_ahead, far_behind = (
            amplitude.derivatives(x + 2 * step, m)[lower],
            amplitude.derivatives(x - 2 * step, m)[lower],
        )
        difference = (8 * (ahead - behind) - (far_ahead - far_behind)) / (12 * step)
        size = (
            np.abs(upper) + np.abs(s) + np.abs(s1) + step * np.abs(s2)
        )  # of the terms, where they cancel; all but s'' may be zero
        assert np.all(np.abs(difference - upper) <= 1e-6 * size)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_the_norm_of_the_step_with_the_sign_of_the_bias_step(name, label):
    step, bias, weight = (figure(name, label, learning_rate=0.3, observable=part) for part in amplitude.OBSERVABLES)
    s, b, w = (amplitude.amplitude(X, m) for m in (step, bias, weight))
    np.testing.assert_allclose(np.abs(s), np.hypot(b, w), rtol=1e-14)
    assert np.array_equal(np.sign(s), np.sign(b))
    np.testing.assert_allclose(w, X * b, rtol=1e-15)
    composition, slope, offset = FIGURES[name]
    np.testing.assert_allclose(b, -0.3 * composition.slope(slope * X + offset, label), rtol=1e-14)
    # eq. (5.4): the radial speed is the velocity (dẇ, dḃ) along the direction (x, 1) of the step
    velocity = amplitude.derivatives(X, weight)[1], amplitude.derivatives(X, bias)[1]
    radial = (X * velocity[0] + velocity[1]) / np.sqrt(1 + X**2)
    np.testing.assert_allclose(amplitude.derivatives(X, step)[1], radial, rtol=1e-12, atol=1e-13)
    # the arc speed has the turning of that direction on top
    np.testing.assert_allclose(np.hypot(*velocity), np.hypot(radial, s / (1 + X**2)), rtol=1e-12)


@settings(deadline=None, max_examples=100)
@given(m=maps())
def test_exponents_are_the_slope_of_the_log_density_of_a_branch(m):
    x = alive(X, m)
    s, s1, s2 = amplitude.derivatives(x, m)
    # away from folds and from zeros of s'', where a difference of logarithms has no precision
    x = x[(np.abs(s1) > 0.1 * np.abs(s)) & (np.abs(s) > 0.02 * np.abs(s1)) & (np.abs(s2) < 50 * np.abs(s1))]
    assume(x.size)
    step = 1e-4
    log = [
        (-((u - m.mean) ** 2) / (2 * m.deviation**2) - np.log(np.abs(amplitude.derivatives(u, m)[1])))
        for u in (x - step, x + step)
    ]
    size = [np.log(np.abs(amplitude.amplitude(u, m))) for u in (x - step, x + step)]
    slope = -(log[1] - log[0]) / (size[1] - size[0])
    map_part, data_part = amplitude.exponents(x, m)
    np.testing.assert_allclose(map_part + data_part, slope, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_exponents_at_the_equilibria_to_five_digits(name, label):
    m, x, step = figure(name, label), np.array([0.28, 0.43, 0.61, 0.69]), 1e-5
    found = sum(amplitude.exponents(x, m))

    def log_density(u):
        return -((u - m.mean) ** 2) / (2 * m.deviation**2) - np.log(np.abs(amplitude.derivatives(u, m)[1]))

    def log_size(u):
        return np.log(np.abs(amplitude.amplitude(u, m)))

    rise = 8 * (log_density(x + step) - log_density(x - step)) - (log_density(x + 2 * step) - log_density(x - 2 * step))
    run = 8 * (log_size(x + step) - log_size(x - step)) - (log_size(x + 2 * step) - log_size(x - 2 * step))
    np.testing.assert_allclose(found, -rise / run, rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(x=st.floats(-1, 2), weight=st.floats(-20, 20).filter(lambda w: abs(w) > 0.1), rate=st.floats(0.01, 9))
@pytest.mark.parametrize("name", ["sigmoid + squared", "sigmoid + cross-entropy", "clip + cross-entropy"])
def test_mirrored_classes_have_mirrored_bias_steps_but_not_mirrored_lengths(name, x, weight, rate):
    composition = FIGURES[name][0]
    zeros, ones = (
        amplitude.step_map(composition, weight, (1 if "clip" in name else 0) * 0.5 - weight / 2, t, learning_rate=rate)
        for t in (0, 1)
    )
    s0, s1 = amplitude.amplitude(x, zeros), amplitude.amplitude(1 - x, ones)
    if s0 and s1:  # 1 - x may round across the cut of clip
        np.testing.assert_allclose(np.abs(s1 / s0), np.sqrt((1 + (1 - x) ** 2) / (1 + x**2)), rtol=1e-11)
        assert np.sign(s0) == -1 and np.sign(s1) == 1


@settings(deadline=None, max_examples=50)
@given(c=st.floats(0.2, 3), w=st.floats(0.3, 9), b=st.floats(-2, 2), sign=st.sampled_from([-1, 1]))
def test_pure_exponential_has_k_one_for_the_bias_and_the_exact_one_for_the_weight(c, w, b, sign):
    pure = compositions.named("exponential", rate=sign * c)
    x = X[(np.abs(1 + sign * c * w * X) > 0.05) & (np.abs(X) > 0.01)]
    bias, weight = (
        amplitude.exponents(x, amplitude.step_map(pure, w, b, 0, observable=part))[0] for part in ("bias", "weight")
    )
    np.testing.assert_allclose(bias, 1, rtol=1e-13)
    np.testing.assert_allclose(weight, 1 - (1 + sign * c * w * x) ** -2, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("c", "w", "b"), [(2.0, 16.0, -8.0), (-1.0, 3.0, 0.5)])
def test_the_logarithm_of_an_exponential_step_is_normal(c, w, b):
    mean, deviation, rate = 0.2, 0.25, 0.7
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
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    log = np.log(np.abs(amplitude.amplitude(mean + deviation * nodes, m)) / (rate * abs(c)))
    average = weights @ log / weights.sum()
    assert average == pytest.approx(c * (w * mean + b), rel=1e-12)
    assert weights @ (log - average) ** 2 / weights.sum() == pytest.approx((c * w * deviation) ** 2, rel=1e-12)


@pytest.mark.parametrize("power", [2, 3, 4, 5.5, 12])
def test_power_losses_have_the_same_exponent_everywhere_for_the_bias_and_two_for_the_weight(power):
    relu = compositions.named("ReLU + power", power=power)
    bias, weight = (
        amplitude.step_map(relu, 1.0, 0.5, 1, observable=part) for part in ("bias", "weight")
    )  # ẇ ~ x(x - x̄)^{n-1}, x̄ = 1/2
    np.testing.assert_allclose(
        amplitude.exponents([-0.4, 0.3, 0.9, 40.0], bias)[0], (power - 2) / (power - 1), rtol=1e-12, atol=1e-12
    )
    near, far = amplitude.exponents([0.5 + 1e-5, 1e6], weight)[0]
    assert near == pytest.approx((power - 2) / (power - 1), abs=1e-4) and far == pytest.approx(
        (power - 1) / power, abs=1e-4
    )


def test_the_length_of_quartic_steps_stays_near_two_thirds_where_the_data_are():
    found = amplitude.exponents([0.0, 0.1, 0.4, 0.9, 4.9], figure("ReLU + quartic", 0))[0]
    np.testing.assert_allclose(found, [0.668, 0.675, 0.717, 0.759, 0.7525], atol=6e-4)
    wide = amplitude.exponents(1e5, figure("ReLU + quartic", 0))[0]
    assert wide == pytest.approx(3 / 4, abs=1e-5)


@pytest.mark.parametrize("observable", amplitude.OBSERVABLES)
def test_the_clipped_line_has_exponent_two_at_its_pole(observable):
    m = amplitude.step_map(
        compositions.named("clip + cross-entropy", epsilon=0.0), 2.25, -0.625, 0, observable=observable
    )
    near = amplitude.exponents((1 - 1e-9 + 0.625) / 2.25, m)[0]
    assert near == pytest.approx(2, abs=1e-7)
    if observable != "step":  # Moebius maps: exact everywhere, for ẇ after the shift by its value at x → ∞
        s, s1, s2 = amplitude.derivatives(np.array([0.3, 0.5, 0.7]), m)
        shift = 1 / 2.25 if observable == "weight" else 0
        np.testing.assert_allclose((s - shift) * s2 / s1**2, 2, rtol=1e-12)


def test_algebraic_saturation_has_four_thirds_and_exponential_one():
    expected = {
        "softsign": 4 / 3,
        "arctan": 4 / 3,
        "sigmoid": 1,
        "tanh": 1,
        "softplus": 1,
        "ELU": 1,
        "GELU": 1,
        "erf": 1,
        "swish": 1,
    }
    for name, limit in expected.items():
        m = amplitude.step_map(compositions.named(f"{name} + squared"), 1.0, 0.0, 0, observable="bias")
        near, far = (abs(amplitude.exponents(y, m)[0] - limit) for y in (-6.0, -12.0))
        assert far < 0.006 and (far < 0.4 * near or near < 1e-4)
    assert amplitude.exponents(
        -3.0, amplitude.step_map(compositions.named("softsign + squared"), 1.0, 0.0, 0, observable="bias")
    )[0] == pytest.approx(4 / 3)


def test_inputs_without_an_exponent_and_steps_without_a_number_are_refused():
    relu = figure("ReLU + quartic", 1)
    with pytest.raises(ValueError, match="^x must avoid"):
        amplitude.exponents([0.5, -3.0], relu)
    pure = amplitude.step_map(compositions.named("exponential"), 1.0, 0.0, 0)
    with pytest.raises(ValueError, match="^x must keep the amplitude"):
        amplitude.amplitude(1000.0, pure)
    assert np.isfinite(amplitude.exponents(-600.0, pure)).all()  # s s'' and s'² underflow


M = figure("sigmoid + squared", 0)
CALLS = {
    amplitude.step_map: {
        **{
            "composition": compositions.named("sigmoid + squared"),
            "weight": 2.0,
            "bias": 1.0,
            "label": 1,
            "mean": 0.3,
            "deviation": 0.2,
        },
        **{"learning_rate": 0.1, "observable": "weight"},
    },
    **{
        function: {"x": [0.1, 0.2], "step_map": M}
        for function in (amplitude.derivatives, amplitude.amplitude, amplitude.exponents)
    },
}
REAL = [bad for bad in NUMBER if bad is True or bad not in (0, -1.0)]
BAD = {
    **{
        "composition": ["sigmoid + squared", None, M],
        "weight": [0, *REAL],
        "bias": REAL,
        "label": [2, 0.5, "1", None, [1], np.nan],
    },
    **{
        "mean": [bad for bad in REAL if bad is not None],
        "deviation": NUMBER,
        "learning_rate": NUMBER,
        "observable": ["both", 1, None, ["step"]],
    },
    **{"x": [np.nan, [np.inf], "x", None, 1j], "step_map": ["step", None, compositions.named("sigmoid + squared")]},
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


@pytest.mark.parametrize("observable", amplitude.OBSERVABLES)
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_at_the_equilibria_to_six_digits_of_their_own(name, label, observable):
    m, x, step = figure(name, label, observable=observable), np.array([0.28, 0.31, 0.36, 0.43, 0.58, 0.61, 0.69]), 1e-5
    at = {i: amplitude.derivatives(x + i * step, m) for i in (-2, -1, 0, 1, 2)}
    for lower in (0, 1):
        found = (8 * (at[1][lower] - at[-1][lower]) - (at[2][lower] - at[-2][lower])) / (12 * step)
        np.testing.assert_allclose(
            at[0][lower + 1], found, rtol=1e-6, atol=1e-9
        )  # the bias step of ReLU + squared has s'' = 0


@pytest.mark.parametrize("weight", [16.0, -3.0, 1.5])
@pytest.mark.parametrize("name", ["sigmoid + squared", "sigmoid + cross-entropy", "clip + cross-entropy"])
def test_mirror_identity_to_twelve_digits(name, weight):
    composition, x = FIGURES[name][0], np.arange(-64, 129) / 64  # 1 - x and the logits are exact
    bias = (0.5 if name.startswith("clip") else 0.0) - weight / 2
    zeros, ones = (
        [amplitude.step_map(composition, weight, bias, t, observable=part) for part in ("bias", "step")] for t in (0, 1)
    )
    here, there = amplitude.amplitude(x, zeros[0]), amplitude.amplitude(1 - x, ones[0])
    np.testing.assert_allclose(there, -here, rtol=1e-12)
    here, there = amplitude.amplitude(x, zeros[1]), amplitude.amplitude(1 - x, ones[1])
    live = here != 0
    assert np.count_nonzero(live) >= 3 and np.array_equal(live, there != 0)
    x, here, there = x[live], here[live], there[live]
    np.testing.assert_allclose(there / here, -np.sqrt(1 + (1 - x) ** 2) / np.sqrt(1 + x**2), rtol=1e-12)

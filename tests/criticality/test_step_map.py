"""lib.criticality.step_map: the map against finite differences and mirror images, its branches against folds in closed
form, the law of steps against laws written out, differences of the distribution function, and stratified samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import lognorm, norm

from lib.criticality.compositions import LOSSES, Composition
from lib.criticality.step_map import OBSERVABLES, StepMap

QUARTIC, CLIP = Composition("relu", "power", power=4), Composition("clip", "cross_entropy", epsilon=1e-3)
UNCUT = Composition("clip", "cross_entropy", epsilon=0.0)
FIGURES = {  # near the learning equilibria for means 0 and 1, deviation 0.25
    "squared": (Composition("sigmoid"), 16.0, -8.0),
    "entropy": (Composition("sigmoid", "cross_entropy"), 16.0, -8.0),
    "relu": (Composition("relu"), 0.929, -0.0144),
    "clip": (CLIP, 2.25, -0.625),
    "quartic": (QUARTIC, 0.818, 0.0807),
}
CASES = pytest.mark.parametrize(("name", "label"), [(name, label) for name in FIGURES for label in (0, 1)])
X = np.linspace(-0.9, 1.9, 57)


def figure(name, label, **options):
    return StepMap(*FIGURES[name], label, **options)


def exponential(c, w, b, **options):
    return StepMap(Composition("linear", "exponential", rate=c), w, b, 0, **options)


def differences(values, step):
    """The derivative from values at -2, -1, 1, 2 steps."""
    return (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * step)


@st.composite
def maps(draw):
    """Any composition, class, observable and data; weights of both signs."""
    activation = draw(st.sampled_from(list(LOSSES)))
    loss = draw(st.sampled_from(LOSSES[activation]))
    return StepMap(
        Composition(activation, loss, power=draw(st.sampled_from([2, 3, 4])) if loss == "power" else None),
        draw(st.floats(0.2, 6)) * draw(st.sampled_from([-1, 1])),
        draw(st.floats(-2, 2)),
        draw(st.integers(0, 1)),
        mean=draw(st.floats(-1, 1)),
        deviation=draw(st.floats(0.1, 0.4)),
        learning_rate=draw(st.floats(0.01, 5)),
        observable=draw(st.sampled_from(OBSERVABLES)),
    )


def drawn(m, seed, count):
    return np.random.default_rng(seed).normal(m.mean, m.deviation, count)


# --- the map --------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(m=maps())
def test_derivatives_are_those_of_the_amplitude(m):
    y, step = m.weight * X + m.bias, 1e-5
    kinks = np.array(m.composition.kinks(m.label))
    smooth = np.abs(y[:, None] - kinks).min(axis=1, initial=np.inf) >= 2e-3 * (1 + abs(m.weight))
    x = X[smooth & (m.amplitude(X) != 0)]
    s, s1, s2 = m.derivatives(x)
    near = [m.derivatives(x + i * step) for i in (-2, -1, 1, 2)]
    size = np.abs(s) + np.abs(s1) + step * np.abs(s2)  # of the terms, where they cancel; all but s'' may be zero
    for lower, upper in ((0, s1), (1, s2)):
        found = differences([parts[lower] for parts in near], step)
        assert np.all(np.abs(found - upper) <= 1e-6 * (size + np.abs(upper)))


@CASES
def test_the_norm_of_the_step_with_the_sign_of_the_bias_step(name, label):
    step, bias, weight = (figure(name, label, learning_rate=0.3, observable=part) for part in OBSERVABLES)
    s, b, w = (m.amplitude(X) for m in (step, bias, weight))
    np.testing.assert_allclose(np.abs(s), np.hypot(b, w), rtol=1e-14)
    assert np.array_equal(np.sign(s), np.sign(b))
    np.testing.assert_allclose(w, X * b, rtol=1e-15)
    composition, slope, offset = FIGURES[name]
    np.testing.assert_allclose(b, -0.3 * composition.slope(slope * X + offset, label), rtol=1e-14)
    # eq. (5.4): the radial speed is the velocity (dẇ, dḃ) along the direction (x, 1) of the step
    velocity = weight.derivatives(X)[1], bias.derivatives(X)[1]
    radial = (X * velocity[0] + velocity[1]) / np.sqrt(1 + X**2)
    np.testing.assert_allclose(step.derivatives(X)[1], radial, rtol=1e-12, atol=1e-13)
    # the arc speed has the turning of that direction on top
    np.testing.assert_allclose(np.hypot(*velocity), np.hypot(radial, s / (1 + X**2)), rtol=1e-12)


@settings(deadline=None, max_examples=50)
@given(c=st.floats(0.2, 3), w=st.floats(0.3, 9), b=st.floats(-2, 2), sign=st.sampled_from([-1, 1]))
def test_pure_exponential_has_k_one_for_the_bias_and_the_exact_one_for_the_weight(c, w, b, sign):
    x = X[(np.abs(1 + sign * c * w * X) > 0.05) & (np.abs(X) > 0.01)]
    bias, weight = (exponential(sign * c, w, b, observable=part).exponents(x)[0] for part in ("bias", "weight"))
    np.testing.assert_allclose(bias, 1, rtol=1e-13)
    np.testing.assert_allclose(weight, 1 - (1 + sign * c * w * x) ** -2, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("power", [2, 3, 5.5, 12])
def test_power_losses_have_one_exponent_for_the_bias_and_two_for_the_weight(power):
    made = Composition("relu", "power", power=power)
    bias, weight = (StepMap(made, 1.0, 0.5, 1, observable=part) for part in ("bias", "weight"))  # ẇ ~ x(x - ½)^{n-1}
    zero = (power - 2) / (power - 1)
    np.testing.assert_allclose(bias.exponents([-0.4, 0.3, 0.9, 40.0])[0], zero, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weight.exponents([0.5 + 1e-5, 1e6])[0], [zero, (power - 1) / power], atol=1e-4)


@pytest.mark.parametrize("observable", OBSERVABLES)
def test_the_clipped_line_has_exponent_two_at_its_pole(observable):
    m = StepMap(UNCUT, 2.25, -0.625, 0, observable=observable)
    assert m.exponents((1 - 1e-9 + 0.625) / 2.25)[0] == pytest.approx(2, abs=1e-7)
    if observable != "step":  # Moebius maps: exact everywhere, for ẇ after the shift by its value at x → ∞
        s, s1, s2 = m.derivatives(np.array([0.3, 0.5, 0.7]))
        shift = 1 / 2.25 if observable == "weight" else 0
        np.testing.assert_allclose((s - shift) * s2 / s1**2, 2, rtol=1e-12)


def test_inputs_without_an_exponent_and_steps_without_a_number_are_refused():
    with pytest.raises(ValueError, match="^x must avoid"):
        figure("quartic", 1).exponents([0.5, -3.0])
    pure = exponential(1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="^x must keep the amplitude"):
        pure.amplitude(1000.0)
    assert np.isfinite(pure.exponents(-600.0)).all()  # s s'' and s'² underflow
    for w, label, name in ((0.0, 0, "weight"), (1.0, 2, "label")):
        with pytest.raises(ValueError, match=f"^{name} must"):
            StepMap(CLIP, w, 0.0, label)


# --- branches -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(m=maps(), seed=st.integers(0, 99))
def test_every_branch_is_monotone_and_of_one_sign_and_together_they_cover_what_is_alive(m, seed):
    found, rng = m.branches(), np.random.default_rng(seed)
    along = np.sort(rng.random((found.left.size, 40)), axis=1)
    s = m.amplitude(found.left[:, None] + (found.right - found.left)[:, None] * along)
    moves = np.diff(np.column_stack([found.at_left, s, found.at_right]), axis=1)
    rises = (found.at_right > found.at_left)[:, None]
    rounding = 1e-12 * np.abs(s).max(axis=1, initial=0, keepdims=True)
    assert np.all(np.where(rises, moves, -moves) >= -rounding)
    assert np.all(s * s[:, :1] >= 0) and np.all(found.left[1:] >= found.right[:-1])
    x = rng.uniform(m.mean - 14 * m.deviation, m.mean + 14 * m.deviation, 400)
    covered = np.any((found.left[:, None] <= x) & (x <= found.right[:, None]), axis=0)
    y = m.weight * x + m.bias
    dead = np.any([x > np.inf, *((low <= y) & (y <= high) for low, high in m.composition.dead(m.label))], axis=0)
    assert np.array_equal(covered, ~dead)


@settings(deadline=None, max_examples=50)
@given(m=maps(), seed=st.integers(0, 99))
def test_preimages_of_the_step_of_an_input_hold_that_input_and_cause_that_step(m, seed):
    x = drawn(m, seed, 20)
    s, s1, _ = m.derivatives(x)
    x, s, s1 = x[s != 0], s[s != 0], np.abs(s1[s != 0])
    roots = m.preimages(s)
    reached, caused = ~np.isnan(roots), np.broadcast_to(s, roots.shape)
    np.testing.assert_allclose(m.amplitude(roots[reached]), caused[reached], rtol=1e-9, atol=1e-14 * m.learning_rate)
    distance = np.nanmin(np.abs(roots - x), axis=0, initial=np.inf)
    flat = 1e-12 * np.abs(s) / np.maximum(s1, 1e-300) + 1e-6 * (s1 < 1e-6 * np.abs(s))
    assert np.all(distance <= 1e-9 + flat)


@settings(deadline=None, max_examples=30)
@given(
    product=st.floats(0.05, 3).filter(lambda p: abs(p - 0.5) > 1e-3),
    w=st.floats(0.2, 8),
    signs=st.sampled_from([(1, 1), (1, -1), (-1, 1)]),
)
def test_pure_exponential_is_one_to_one_from_a_product_of_one_half_on(product, w, signs):
    cw = signs[0] * signs[1] * product
    found = exponential(signs[0] * product / w, signs[1] * w, 0.3, deviation=3.0).branches()
    roots = [] if product >= 0.5 else (-1 + np.array([-1, 1]) * np.sqrt(1 - 4 * cw**2)) / (2 * cw)
    np.testing.assert_allclose(found.folds, np.sort([x for x in roots if abs(x) < 42]), rtol=1e-9)
    assert found.left.size == found.folds.size + 1


@pytest.mark.parametrize(("w", "b"), [(0.3, 0.5), (-0.3, 0.5), (0.3, 0.3), (0.4, 0.2)])
def test_folds_of_the_clipped_line(w, b):
    for label, fold in ((0, -w / (1 - b)), (1, w / b)):
        live = 1e-3 < w * fold + b < 1 - 1e-3
        np.testing.assert_allclose(StepMap(CLIP, w, b, label).branches().folds, [fold] if live else [], rtol=1e-12)


@pytest.mark.parametrize(("label", "fold"), [(0, 0.546), (1, 0.459)])
def test_a_step_within_a_fold_has_two_causes_and_one_beyond_it_none(label, fold):
    m = figure("squared", label)
    np.testing.assert_allclose(m.branches().folds, [fold], atol=5e-4)
    causes = np.isfinite(m.preimages(m.fold_edges().s * np.array([1 - 1e-12, 0.9, 0.01, 1 + 1e-12, 1.1]))).sum(axis=0)
    assert causes.tolist() == [2, 2, 2, 0, 0]


@pytest.mark.parametrize("made", [
    *(figure(name, label) for name in ("relu", "quartic") for label in (0, 1)),
    StepMap(Composition("relu"), 1.0, 0.0, 0),
    StepMap(Composition("relu", "power", power=3), 0.1, 1.0, 1),  # a zero at x = 0, where y rounds
])  # fmt: skip
def test_branches_end_at_the_zeros_of_the_amplitude_and_small_steps_have_inputs(made):
    found = made.branches()
    assert np.count_nonzero(found.at_left == 0) + np.count_nonzero(found.at_right == 0) == 1 + made.label
    assert np.isfinite(made.preimages([(2 * made.label - 1) * 1e-14])).sum() == 1


def test_a_double_zero_of_the_weight_step_splits_and_nothing_alive_is_empty():
    m = StepMap(QUARTIC, 0.5, 1.0, 1, mean=0.2, observable="weight")  # ẇ = -4x(x/2)³: a zero of order four at x = 0
    found = m.branches()
    assert found.left.size == 2 and found.right[0] == pytest.approx(0, abs=1e-9)
    assert found.at_right[0] == found.at_left[1] == 0
    dead = StepMap(QUARTIC, 1.0, -100.0, 0)
    assert dead.branches().left.shape == dead.branches().folds.shape == (0,)
    assert dead.preimages([1.0, 2.0]).shape == (0, 2) and dead.density(-1.0) == 0 and dead.atom() == 1


def test_reach_bounds_the_branches_and_a_pole_in_it_may_not_overflow():
    near = figure("squared", 0).branches(reach=1.0)
    np.testing.assert_allclose([near.left, near.right], [[-0.25], [0.25]], rtol=1e-13)
    with pytest.raises(ValueError, match="^weight must be small enough to keep s inside"):
        exponential(40.0, 10.0, 0.0).branches()


def test_the_branches_of_a_map_are_looked_for_once(monkeypatch):
    looked, derivatives = [], StepMap._derivatives
    monkeypatch.setattr(StepMap, "_derivatives", lambda m, x: looked.append(np.size(x)) or derivatives(m, x))
    m, equal = (StepMap(Composition("sigmoid"), 7.125, -3.0, 1) for _ in range(2))  # of no other test
    m.magnitude_density([0.1, 0.2])
    equal.branches()
    assert sum(size > 10_000 for size in looked) == 1  # for both signs, and both maps
    with pytest.raises(ValueError, match="read-only"):
        equal.branches().left[0] = 0.0
    assert m.branches(reach=3.0).left[0] != m.branches().left[0]


# --- the law of steps -----------------------------------------------------------------------------


@pytest.mark.parametrize("power", [2.0, 3.0, 5.5])
@pytest.mark.parametrize(("w", "label"), [(1.3, 0), (-0.8, 1)])
def test_law_of_the_bias_step_of_powers_written_out(power, w, label):
    """u/((n-1)v) [p_y(t+u) + p_y(t-u)],  u = (v/n)^{1/(n-1)}, parts with y <= 0 left out."""
    m = StepMap(Composition("relu", "power", power=power), w, 0.3, label, mean=0.1, observable="bias")
    v = np.array([0.01, 0.3, 1.0, 2.0])
    u = (v / power) ** (1 / (power - 1))
    parts = [np.where(y > 0, norm.pdf(y, w * 0.1 + 0.3, abs(w) / 4), 0) for y in (label + u, label - u)]
    found, expected = m.magnitude_density(v), u / ((power - 1) * v) * sum(parts)
    seen = found > 0  # the branches end fourteen deviations out
    assert np.count_nonzero(seen) >= 3 and np.all(expected[~seen] < 1e-35)
    np.testing.assert_allclose(expected[seen], found[seen], rtol=1e-10)


def test_a_pure_exponential_step_of_the_bias_is_lognormal():
    c, w, b, rate = 2.0, 16.0, -8.0, 0.3
    m = exponential(c, w, b, mean=0.1, learning_rate=rate, observable="bias")
    width, median = c * w * 0.25, rate * c * np.exp(c * (w * 0.1 + b))
    s = -median * np.exp(np.linspace(-30, 30, 25))
    np.testing.assert_allclose(m.density(s), lognorm.pdf(-s, width, scale=median), rtol=1e-9)
    np.testing.assert_allclose(m.density_exponent(s)[0], 1 + np.log(-s / median) / width**2, rtol=1e-12)


@settings(deadline=None, max_examples=30)
@given(m=maps(), seed=st.integers(0, 99))
def test_the_density_is_the_slope_of_the_distribution_function(m, seed):
    s, found = m.amplitude(drawn(m, seed, 8)), m.branches()
    # Within a thousandth of an amplitude no branch may begin or end.
    ends = np.concatenate([found.at_left, found.at_right, [0.0]])
    s = s[np.abs(s[:, None] - ends).min(axis=1) > 1e-3 * np.abs(s)]
    step = 1e-5 * np.abs(s)
    rise = 12 * differences([m.cumulative(s + i * step) for i in (-2, -1, 1, 2)], 1)
    mass = 12 * step * m.density(s)
    assert np.all(np.abs(rise - mass) <= 1e-5 * mass + 1e-12)


@settings(deadline=None, max_examples=30)
@given(m=maps(), seed=st.integers(0, 99))
def test_the_distribution_function_rises_from_zero_to_one_with_a_jump_of_the_atom_at_zero(m, seed):
    found = m.branches()
    ends = np.concatenate([found.at_left, found.at_right])
    rising = m.cumulative(np.sort(np.concatenate([m.amplitude(drawn(m, seed, 30)), ends, [0.0]])))
    assert np.all(np.diff(rising) >= -1e-13)
    largest = 2 * np.abs(ends).max(initial=1)
    np.testing.assert_allclose(m.cumulative([-largest, largest]), [0, 1], atol=1e-10)
    assert np.diff(m.cumulative([-1e-250, 0.0]))[0] == pytest.approx(m.atom(), abs=1e-10)
    assert found.probability.sum() + m.atom() == pytest.approx(1, abs=1e-10)


@CASES
def test_stratified_inputs_count_out_the_distribution_function(name, label):
    m = figure(name, label, learning_rate=0.2)
    x, rank = m.stratified_inputs(4000), (np.arange(4000) + 1) / 4000
    s = np.sort(m.amplitude(x))
    assert np.abs(m.cumulative(s) - rank)[s != 0].max() < 3 / 4000  # one stratum for each branch
    assert m.atom() == pytest.approx(np.mean(s == 0), abs=2 / 4000)
    np.testing.assert_allclose(norm.cdf(x, m.mean, m.deviation), rank - 0.5 / 4000, rtol=1e-12)


def test_probabilities_are_those_of_the_normal_law():
    relu, clip, squared = figure("relu", 0), figure("clip", 1), figure("squared", 0)
    assert relu.atom() == pytest.approx(norm.cdf(0, relu.bias, relu.weight * 0.25), rel=1e-12)
    logits = norm(clip.weight + clip.bias, clip.weight * 0.25)
    assert clip.atom() == pytest.approx(1 - logits.cdf(0.999) + logits.cdf(0.001), rel=1e-12)
    beyond = norm.sf(squared.fold_edges().x, scale=0.25)
    np.testing.assert_allclose(squared.branches().probability, [1 - beyond[0], beyond[0]], rtol=1e-10)


@pytest.mark.parametrize("rate", [0.125, 0.3])
@CASES
def test_the_learning_rate_is_only_a_unit(name, label, rate):
    unit, scaled = figure(name, label), figure(name, label, learning_rate=rate)
    s = unit.amplitude([-0.3, 0.3, 0.42, 0.57, 0.64])
    s = s[s != 0]
    np.testing.assert_allclose(scaled.density(rate * s), unit.density(s) / rate, rtol=1e-12)
    r = np.abs(s)
    assert np.array_equal(scaled.magnitude_density(r), scaled.density(r) + scaled.density(-r))


@CASES
def test_the_exponent_is_the_slope_of_the_log_density(name, label):
    m = figure(name, label)
    s, s1, _ = m.derivatives(np.array([-0.2, 0.1, 0.35, 0.5, 0.66, 0.69, 0.9, 1.2]))
    s = s[(s != 0) & (np.abs(s1) > 0.05 * np.abs(s))]
    found, share = m.density_exponent(s)
    slope = differences([np.log(m.density(s * np.exp(i * 1e-4))) for i in (-2, -1, 1, 2)], 1e-4)
    np.testing.assert_allclose(found, -slope, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(share.sum(axis=0), 1, rtol=1e-13)


@pytest.mark.parametrize(("name", "label", "count"), [("squared", 0, 1), ("squared", 1, 1), ("entropy", 1, 2)])
def test_the_density_at_a_fold_is_an_inverse_root_with_the_stated_constant(name, label, count):
    m = figure(name, label, learning_rate=0.4)
    edges = m.fold_edges()
    assert edges.x.size == count
    for _, edge, constant, side in zip(*edges):
        gap = abs(edge) * np.array([1e-6, 1e-7])
        inside, outside = m.density(edge + side * gap), m.density(edge - side * gap)
        two_more = inside - outside.mean()  # what other branches add is smooth
        assert np.diff(np.log(two_more))[0] / np.diff(np.log(gap))[0] == pytest.approx(-0.5, abs=0.01)
        np.testing.assert_allclose(two_more * np.sqrt(gap), constant, rtol=0.02)


@pytest.mark.parametrize("observable", OBSERVABLES)
@pytest.mark.parametrize(("label", "sign"), [(0, -1), (1, 1)])
def test_the_tail_of_a_pole(label, sign, observable):
    clip = Composition("clip", "cross_entropy", epsilon=1e-9)
    m = StepMap(clip, 2.25, -0.625, label, learning_rate=0.3, observable=observable)
    constant, s = m.pole_constant(), sign * 0.3 * np.array([1e4, 1e5])
    wrong = np.abs(s**2 * m.density(s) / constant - 1)
    assert wrong[1] < 1e-3 and wrong[1] == pytest.approx(0.1 * wrong[0], rel=0.05)
    beyond = m.cumulative(s[1])
    assert (beyond if label == 0 else 1 - beyond) * abs(s[1]) == pytest.approx(constant, rel=1e-3)
    with pytest.raises(ValueError, match="^composition must have the activation clip"):
        figure("squared", 0).pole_constant()


def test_the_tail_is_cut_where_the_gradient_is():
    m = figure("clip", 0)
    far = np.hypot(1, (1 - m.bias) / m.weight) / 1e-3
    assert m.density(-0.99 * far) > 0 == m.density(-1.01 * far)


def test_amplitudes_without_inputs_are_told():
    m = figure("squared", 0)
    assert m.density([0.1, -0.4]).tolist() == [0, 0]
    for made in (m, StepMap(QUARTIC, 1.0, -100.0, 0)):
        with pytest.raises(ValueError, match="^s must be amplitudes that"):
            made.density_exponent([-0.1, 0.1])
    for call in (m.density, m.density_exponent, m.preimages):
        with pytest.raises(ValueError, match="^s must differ from zero"):
            call([0.1, 0.0])

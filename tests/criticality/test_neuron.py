"""lib.criticality.neuron: moments by adaptive quadrature and in closed form, equilibria against the log-odds and
stratified samples, descent against the step written out, moments of one gradient and the linear theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import fsolve
from scipy.special import ndtri
from scipy.stats import binom, kstest, norm, uniform

from lib.criticality.compositions import Composition
from lib.criticality.neuron import LIVE, Neuron
from lib.criticality.step_map import StepMap
from lib.foundations.langevin import LangevinSystem

ENTROPY, SQUARED, RELU = Composition("sigmoid", "cross_entropy"), Composition("sigmoid"), Composition("relu")
QUARTIC, UNCUT = Composition("relu", "power", power=4), Composition("clip", "cross_entropy", epsilon=0.0)
DATA = {"means": (-0.3, 1.1), "deviation": 0.4, "priors": (0.3, 0.7)}
few = settings(deadline=None, max_examples=15)


def clip(epsilon):
    return Composition("clip", "cross_entropy", epsilon=epsilon)


KINDS = pytest.mark.parametrize(
    "composition", [ENTROPY, SQUARED, RELU, QUARTIC, clip(0.01), Composition("softsign")], ids=str
)


# --- moments of one gradient ----------------------------------------------------------------------


def integral(neuron, weight, bias, power, by):
    """E[h^by x^power] by SciPy's adaptive quadrature, piece by piece."""
    total, h = 0.0, neuron.composition.slope
    for t in (0, 1):
        law = norm(neuron.means[t], neuron.deviation)
        ends = neuron.means[t] + neuron.deviation * np.linspace(-10, 10, 9)
        splits = [(kink - bias) / weight for kink in (*neuron.composition.kinks(t), 0.0, 1.0)]
        edges = np.unique([*ends, *(at for at in splits if ends[0] < at < ends[-1])])
        for low, high in zip(edges[:-1], edges[1:]):
            part = quad(lambda x: h(weight * x + bias, t) ** by * x**power * law.pdf(x), low, high, epsabs=1e-13)
            total += neuron.priors[t] * part[0]
    return total


@KINDS
def test_moments_by_adaptive_quadrature(composition):
    neuron = Neuron(composition, **DATA)
    for place in ((1.3, -0.2), (-4.0, 1.7)):
        found = neuron.moments(*place)
        gradient = [integral(neuron, *place, power, 1) for power in (1, 0)]
        square = [integral(neuron, *place, power, 2) for power in (2, 1, 0)]
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-11)
        expected = np.array([square[:2], square[1:]]) - np.outer(gradient, gradient)
        np.testing.assert_allclose(found.covariance, expected, rtol=1e-9, atol=1e-9 * np.abs(square).max())


@KINDS
@pytest.mark.parametrize("place", [(1.3, -0.2), (-4.0, 1.7), (16.0, -8.0), (0.05, 0.6)])
def test_the_hessian_is_the_derivative_of_the_mean_gradient_jumps_included(composition, place):
    neuron, shifts = Neuron(composition, **DATA), 1e-5 * np.eye(2)
    found = neuron.moments(*place).hessian
    ends = [(neuron.moments(*(place + by)).gradient, neuron.moments(*(place - by)).gradient) for by in shifts]
    differences = np.stack([(up - down) / 2e-5 for up, down in ends], axis=1)
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=2e-7 * np.abs(found).max())


@given(st.floats(-6, 6).filter(lambda w: abs(w) > 0.1), st.floats(-3, 3), st.floats(0.1, 0.8), st.floats(0.1, 0.9))
@settings(deadline=None, max_examples=25)
def test_an_exponential_has_the_moments_of_lognormals(weight, bias, deviation, prior):
    means, priors, c = np.array([0.2, 1.0]), np.array([1 - prior, prior]), -1.5
    neuron = Neuron(Composition("linear", "exponential", rate=c), means, deviation, priors)

    def mean(rate):  # E[e^{rate·y} x^power], power 0, 1, 2: tilting a Gaussian moves its mean
        tilted = means + rate * weight * deviation**2
        size = priors * np.exp(rate * (weight * means + bias) + (rate * weight * deviation) ** 2 / 2)
        return np.array([size.sum(), size @ tilted, size @ (tilted**2 + deviation**2)])

    one, two = c * mean(c), c**2 * mean(2 * c)
    gradient, found = one[[1, 0]], neuron.moments(weight, bias)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-10, atol=1e-12 * abs(gradient).max())
    np.testing.assert_allclose(found.hessian, c * one[[[2, 1], [1, 0]]], rtol=1e-9, atol=1e-10)
    square = two[[[2, 1], [1, 0]]]
    bound = 1e-9 * np.max(square)
    np.testing.assert_allclose(found.covariance, square - np.outer(gradient, gradient), rtol=1e-8, atol=bound)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-5, 1e-9])
def test_a_small_cut_costs_no_accuracy(epsilon):
    weight, bias, ends = 2.1, -0.55, (np.log(epsilon), np.log1p(-epsilon))
    found = Neuron(clip(epsilon)).moments(weight, bias)
    laws = norm(bias, weight * 0.25), norm(weight + bias, weight * 0.25)
    densities = [lambda u: laws[0].pdf(1 - np.exp(u)), lambda u: laws[1].pdf(np.exp(u))]  # u = ln(distance to the pole)
    near = [quad(density, *ends, epsabs=1e-14, limit=400)[0] for density in densities]
    far = [quad(lambda u: density(u) * np.exp(-u), *ends, epsrel=1e-12, limit=400)[0] for density in densities]
    assert found.gradient[1] == pytest.approx((near[0] - near[1]) / 2, abs=1e-9 * near[0])
    square, rounding = found.covariance[1, 1] + found.gradient[1] ** 2, 1e-16 / epsilon  # of 1 - ε as a number
    assert square == pytest.approx(sum(far) / 2, rel=1e-9 + rounding)


def test_moments_out_of_range_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="^composition must have a mean gradient: h has a pole at y = 1 in class 0"):
        Neuron(UNCUT).moments(2.0, -0.5)
    for weight in (1e-12, 1e120, 1e308):
        with pytest.raises(ValueError, match="^weight must"):
            Neuron(QUARTIC).moments(weight, 1.0)
    for weight in (80.0, 1000.0):  # the mean of e^{2y} comes from 40 deviations above
        with pytest.raises(ValueError, match="^weight must be small enough"):
            Neuron(Composition("linear", "exponential")).moments(weight, -80.0)


# --- who gets a gradient --------------------------------------------------------------------------


def test_live_probability_is_the_normal_law_outside_the_dead_intervals():
    weight, bias = np.array([[1.0, -2.0, 0.3]]), np.array([[0.1], [0.7]])
    laws = [norm(weight * mean + bias, np.abs(weight) * 0.5) for mean in (-1, 2)]
    live = {c: Neuron(c, (-1, 2), 0.5).live_probability(weight, bias) for c in (QUARTIC, clip(0.1), SQUARED)}
    np.testing.assert_allclose(live[QUARTIC], [law.sf(0) for law in laws], rtol=1e-12)
    np.testing.assert_allclose(live[clip(0.1)], [law.cdf(0.9) - law.cdf(0.1) for law in laws], rtol=1e-9)
    assert np.array_equal(live[SQUARED], np.ones((2, 2, 3)))
    assert np.array_equal(Neuron(RELU).live_probability([0.0, 0.0], [0.5, -0.5]), [[1, 0], [1, 0]])
    with pytest.raises(ValueError, match="^bias must broadcast"):
        Neuron(RELU).live_probability([0.0, 0.0], [0.5, -0.5, 1.0])
    with pytest.raises(ValueError, match="^weight must be small enough for a finite"):
        Neuron(QUARTIC, (2.0, 20.0)).live_probability(1e308, 1.0)


@pytest.mark.parametrize("bias", [6.0, -6.0])
def test_a_tiny_live_probability_keeps_its_digits_on_either_side(bias):
    found = Neuron(UNCUT, deviation=0.3).live_probability(1.0, bias)
    edge = [min(abs(mean + bias), abs(mean + bias - 1)) / 0.3 for mean in (0, 1)]
    np.testing.assert_allclose(found, norm.sf(edge), rtol=1e-9)
    assert np.all((found > 0) & (found < 1e-36))


def test_the_steps_of_a_class_are_those_of_its_data():
    found = Neuron(QUARTIC, **DATA).step_map(0.8, 0.1, 0, learning_rate=0.5, observable="weight")
    assert found == StepMap(QUARTIC, 0.8, 0.1, 0, -0.3, 0.4, 0.5, "weight")
    assert Neuron(QUARTIC, **DATA).step_map(0.8, 0.1, 1).mean == 1.1


# --- where learning comes to rest -----------------------------------------------------------------


@few
@given(st.floats(0.1, 1.5), st.floats(0.1, 0.9), st.sampled_from([ENTROPY, SQUARED, Composition("tanh")]))
def test_proper_losses_of_a_sigmoid_rest_at_the_log_odds(deviation, prior, composition):
    neuron = Neuron(composition, deviation=deviation, priors=(1 - prior, prior))
    expected = 1 / deviation**2, np.log(prior / (1 - prior)) - 1 / (2 * deviation**2)
    assert neuron.log_odds() == pytest.approx(expected, rel=1e-12)
    found, unit = neuron.equilibrium(), 2 if composition.activation == "tanh" else 1  # a sigmoid of 2y
    assert (found.weight * unit, found.bias * unit) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    if composition == ENTROPY:  # Fisher's identity
        moments = found.moments
        np.testing.assert_allclose(moments.hessian, moments.covariance, rtol=1e-8, atol=1e-10 * moments.hessian.max())


@pytest.mark.parametrize(
    "composition",
    [RELU, QUARTIC, Composition("relu", "power", power=3), Composition("erf"), Composition("softplus"), clip(1e-4)],
    ids=str,
)
def test_every_equilibrium_is_a_minimum_at_rest_and_names_the_classes_right(composition):
    found = Neuron(composition).equilibrium()
    assert np.abs(found.moments.gradient).max() < 1e-10 and np.linalg.eigvalsh(found.moments.hessian)[0] > 0
    assert 0.966 < found.accuracy < norm.cdf(2) + 1e-12  # 97.72% is the best that any classifier can do


@pytest.mark.parametrize("composition", [RELU, QUARTIC, Composition("softplus"), clip(0.1)], ids=str)
def test_equilibrium_of_a_stratified_sample(composition):
    u, priors = (np.arange(200_000) + 0.5) / 200_000, (0.4, 0.6)
    found = Neuron(composition, deviation=0.35, priors=priors).equilibrium()
    inputs = [mean + 0.35 * ndtri(u) for mean in (0, 1)]

    def mean_gradient(q):
        slopes = [composition.slope(q[0] * x + q[1], t) for t, x in enumerate(inputs)]
        return [sum(p * (h * x**power).mean() for p, h, x in zip(priors, slopes, inputs)) for power in (1, 0)]

    end = fsolve(mean_gradient, [found.weight * 1.02, found.bias - 0.02], epsfcn=1e-6)
    assert (found.weight, found.bias) == pytest.approx(tuple(end), abs=2e-4)


@pytest.mark.parametrize(("epsilon", "deviation"), [(1e-1, 0.25), (1e-3, 0.4), (1e-6, 0.25), (1e-9, 0.25)])
def test_clip_rests_on_the_symmetric_line_where_live_probability_and_mean_slope_balance(epsilon, deviation):
    found = Neuron(clip(epsilon), deviation=deviation).equilibrium()
    assert found.bias == pytest.approx((1 - found.weight) / 2, rel=1e-8)
    law = norm((1 + found.weight) / 2, found.weight * deviation)
    ends = np.log(epsilon), np.log1p(-epsilon)
    slope = quad(lambda u: law.pdf(np.exp(u)), *ends, epsabs=1e-13, limit=400)[0]  # E[1/y; live], u = ln y
    assert slope / 2 == pytest.approx(law.cdf(1 - epsilon) - law.cdf(epsilon), rel=1e-8)


@few
@given(st.floats(0.15, 0.6), st.floats(0.1, 0.9), st.floats(-2, 2), st.floats(0.3, 3), st.sampled_from([RELU, QUARTIC]))
def test_another_origin_and_unit_of_the_input_change_the_parameters_only(deviation, prior, shift, unit, composition):
    priors = (1 - prior, prior)
    here = Neuron(composition, deviation=deviation, priors=priors).equilibrium()
    there = Neuron(composition, (shift, unit + shift), unit * deviation, priors).equilibrium()
    assert there.weight == pytest.approx(here.weight / unit, rel=1e-8)
    assert there.bias == pytest.approx(here.bias - here.weight * shift / unit, rel=1e-8, abs=1e-8)
    assert there.accuracy == pytest.approx(here.accuracy, rel=1e-9)


@pytest.mark.parametrize(("composition", "start", "reason"), [
    (Composition("gelu"), (-4.51, 3.6), "no minimum"),  # a saddle at (-0.727, -0.031), where the gradient does vanish
    (Composition("swish"), (4.29, -5.0), "no minimum"),
    (RELU, (0.1, -3.0), "still moves the parameters|no minimum"),
    (SQUARED, (-1.0, 0.5), "no minimum|without bound|is left"),
    (clip(0.01), (16.0, -8.0), "without bound|still moves|no minimum"),
])  # fmt: skip
def test_a_search_that_ends_elsewhere_says_so(composition, start, reason):
    with pytest.raises(RuntimeError, match=f"^no equilibrium of .* found; from .*({reason})"):
        Neuron(composition).equilibrium(start=start)


def test_a_start_of_ones_own_leads_to_the_same_equilibrium():
    one, other = Neuron(QUARTIC).equilibrium(), Neuron(QUARTIC).equilibrium(start=(1.2, -0.2))
    assert (one.weight, one.bias) == pytest.approx((other.weight, other.bias), rel=1e-9)
    with pytest.raises(ValueError, match="^start must have a weight other than 0"):
        Neuron(QUARTIC).equilibrium(start=(0.0, 1.0))


def test_what_has_no_equilibrium_says_why():
    with pytest.raises(ValueError, match="^composition must have a mean gradient: h has a pole"):
        Neuron(UNCUT).equilibrium()
    blind = Neuron(Composition("linear", "exponential"))
    with pytest.raises(ValueError, match="^composition must pull class 0 down and class 1 up"):
        blind.equilibrium()
    narrow, weight = Neuron(clip(0.01), deviation=0.05), 1 / 0.05**2
    with pytest.raises(RuntimeError, match="^no equilibrium of clip with cross_entropy found"):
        narrow.equilibrium()
    assert narrow.live_probability(weight, (1 - weight) / 2).max() < LIVE


# --- accuracy -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("composition", "threshold"), [
    (Composition("elu"), 0.5), (Composition("softplus"), np.log(np.expm1(0.5))), (Composition("arctan"), 0.0),
    (QUARTIC, 0.5), (clip(0.4), 0.5),
])  # fmt: skip
def test_class_one_is_named_where_the_activation_is_above_one_half(composition, threshold):
    found = Neuron(composition, means=(1.0, -0.1), deviation=0.4, priors=(0.45, 0.55)).equilibrium()
    logits = [norm(found.weight * mean + found.bias, abs(found.weight) * 0.4) for mean in (1.0, -0.1)]
    right = 0.45 * logits[0].cdf(threshold) + 0.55 * logits[1].sf(threshold)
    assert found.weight < 0 and found.accuracy == pytest.approx(right, rel=1e-9)


def test_a_tiny_deviation_has_no_log_odds():
    with pytest.raises(ValueError, match="^deviation must be large enough"):
        Neuron(SQUARED, deviation=1e-200).log_odds()
    for bad, name in (((1.0, 1.0), "means"), ((0.5, 0.4), "priors")):
        with pytest.raises(ValueError, match=f"^{name} must"):
            Neuron(SQUARED, **{name: bad})


# --- descent --------------------------------------------------------------------------------------


@pytest.mark.parametrize("composition", [ENTROPY, SQUARED], ids=str)
def test_a_step_is_minus_the_rate_times_the_slope_at_an_input_of_its_class(composition):
    found = Neuron(composition, **DATA).descend(np.tile([1.5, -0.4], (500, 1)), 0.2, 20, rng=1)
    np.testing.assert_allclose(np.diff(found.weight, axis=0), found.weight_step, atol=1e-14)
    np.testing.assert_allclose(np.diff(found.bias, axis=0), found.bias_step, atol=1e-14)
    x = found.weight_step / found.bias_step
    slope = composition.slope(found.weight[:-1] * x + found.bias[:-1], found.label)
    np.testing.assert_allclose(found.bias_step, -0.2 * slope, rtol=1e-9)
    np.testing.assert_allclose(found.amplitude, -0.2 * slope * np.sqrt(1 + x**2), rtol=1e-9)
    for t, mean in enumerate(DATA["means"]):
        assert kstest(x[found.label == t], norm(mean, 0.4).cdf).pvalue > 1e-3
    assert 1e-4 < binom(found.label.size, 0.7).cdf(found.label.sum()) < 1 - 1e-4


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("composition", [RELU, clip(0.01), SQUARED], ids=str)
def test_one_step_has_the_moments_of_the_gradient(composition, batch):
    neuron, replicas = Neuron(composition), 40_000
    found = neuron.descend(np.tile([1.7, -0.3], (replicas, 1)), 0.1, 1, rng=2, batch=batch)
    drawn, moments = np.concatenate([found.weight_step, found.bias_step]), neuron.moments(1.7, -0.3)
    spread, off = 0.01 * moments.covariance / batch, drawn - drawn.mean(axis=1, keepdims=True)
    assert np.all(np.abs(drawn.mean(axis=1) + 0.1 * moments.gradient) < 4 * np.sqrt(np.diag(spread) / replicas))
    products = off[:, None] * off
    assert np.all(np.abs(products.mean(axis=2) - spread) < 5 * products.std(axis=2) / np.sqrt(replicas))


@settings(deadline=None, max_examples=8)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 5))
def test_a_longer_run_begins_like_a_shorter_one_however_seldom_it_is_seen(records, every, batch):
    start, neuron = np.tile([0.5, 0.1], (2000, 1)), Neuron(QUARTIC)
    long = neuron.descend(start, 0.01, 160, rng=5, batch=batch)
    short = neuron.descend(start, 0.01, records * every, rng=5, batch=batch, every=every)
    assert short.steps.tolist() == list(range(0, records * every + 1, every))
    for name in ("weight", "bias"):
        assert np.array_equal(getattr(short, name), getattr(long, name)[short.steps])
    for name in ("weight_step", "bias_step", "label", "amplitude"):
        assert np.array_equal(getattr(short, name), getattr(long, name)[short.steps[:-1]])


def test_replicas_keep_the_covariance_of_the_linear_theory():
    neuron = Neuron(RELU)
    found = neuron.equilibrium()
    spread = LangevinSystem(found.moments.hessian, 0.01 * found.moments.covariance).euler_covariance(0.02)
    start = np.random.default_rng(2).multivariate_normal([found.weight, found.bias], spread, 1000)
    run = neuron.descend(start, 0.02, 8000, rng=3, every=200)
    seen = np.cov(run.weight[5:].ravel(), run.bias[5:].ravel())
    np.testing.assert_allclose(np.diag(seen), np.diag(spread), rtol=0.1)
    assert seen[0, 1] == pytest.approx(spread[0, 1], abs=0.1 * np.sqrt(spread[0, 0] * spread[1, 1]))
    assert run.weight[5:].mean() == pytest.approx(found.weight, abs=0.01)


def test_without_a_cut_giant_steps_kill_and_the_dead_stay_dead():
    neuron = Neuron(UNCUT)
    run = neuron.descend(np.tile([2.0, -0.5], (300, 1)), 1e-2, 8000, rng=10, every=2000)
    buried = neuron.live_probability(run.weight, run.bias).mean(axis=0)[1] < 1e-12
    assert buried.sum() > 5 and np.array_equal(run.weight[1:, buried], np.tile(run.weight[1, buried], (4, 1)))


def test_inputs_uniform_around_the_means_kill_at_poles_at_the_rate_worked_out_by_hand():
    """w = 2, b = -½, x on t ± 1: a zero at the pole x* = ¾ kills by a jump of 7/5, a one at x* = ¼ by 14/3; the density
    of y at a pole is 1/4, half the inputs are of one class: K = 1/8, λ = K(5/7 + 3/14) = 13/112."""
    rate, steps, replicas = 1e-3, 100, 20_000
    run = Neuron(UNCUT).descend(np.tile([2.0, -0.5], (replicas, 1)), rate, steps, rng=4, half_width=1.0, every=steps)
    y = run.weight[-1] * np.array([[-1.0], [1.0], [0.0], [2.0]]) + run.bias[-1]  # the ends of both classes
    dead = [(part.max(axis=0) <= 0) | (part.min(axis=0) >= 1) for part in (y[:2], y[2:])]
    expected = 13 / 112 * rate * steps
    assert abs(np.all(dead, axis=0).mean() - expected) < 4 * np.sqrt(expected / replicas) + 0.03 * expected
    alike = 2 / 8 * 5 / 7 * rate * steps  # as if both poles killed as easily
    assert abs(alike - expected) > 0.3 * expected
    one = Neuron(RELU, means=(-2.0, 5.0)).descend(np.tile([0.1, 1.0], (4000, 1)), 0.1, 1, rng=1, half_width=0.5)
    x = (one.weight_step / one.bias_step)[0]
    for t, mean in enumerate((-2.0, 5.0)):
        assert kstest(x[one.label[0] == t], uniform(mean - 0.5, 1.0).cdf).pvalue > 1e-3


def test_a_descent_that_diverges_says_so():
    with pytest.raises(RuntimeError, match="^the descent diverged at step .*: take a smaller learning_rate"):
        Neuron(QUARTIC, deviation=3.0).descend(np.tile([3.0, 1.0], (200, 1)), 10.0, 1000, rng=1)
    for bad, name in (((np.zeros((0, 2)), 0.1, 4), "start"), (([[1.0, 0.0]], 0.1, 3), "steps")):
        with pytest.raises(ValueError, match=f"^{name} must"):
            Neuron(QUARTIC).descend(*bad, rng=1, every=2)

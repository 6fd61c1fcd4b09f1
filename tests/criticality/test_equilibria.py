"""equilibria against the log-odds, a stratified sample of the data, scalar quadrature, SciPy's Lyapunov solver and
symmetries."""

import numpy as np
import pytest
from bad_input import MATRIX, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.linalg import solve_discrete_lyapunov
from scipy.optimize import fsolve
from scipy.special import ndtri
from scipy.stats import norm

from lib.criticality import compositions, equilibria

TRUE = ("sigmoid + cross-entropy", "sigmoid + squared")
ALL = [
    *(
        compositions.named(name)
        for name in (*TRUE, "ReLU + squared", "ReLU + quartic", "tanh + squared", "erf + squared", "softplus + squared")
    ),
    *(compositions.named("clip + cross-entropy", epsilon=epsilon) for epsilon in (1e-1, 1e-2, 1e-3, 1e-4)),
    compositions.named("ReLU + power", power=3),
]
DEVIATIONS, PRIORS = st.floats(0.1, 1.5), st.floats(0.1, 0.9)
few = settings(deadline=None, max_examples=15)


def label(composition):
    return f"{composition.name} {composition.parameter}"


# --- where learning comes to rest -----------------------------------------------------------------


@few
@given(DEVIATIONS, PRIORS, st.sampled_from(TRUE))
def test_proper_losses_of_a_sigmoid_rest_at_the_log_odds(deviation, prior, name):
    priors = (1 - prior, prior)
    found = equilibria.equilibrium(compositions.named(name), deviation=deviation, priors=priors)
    expected = 1 / deviation**2, np.log(prior / (1 - prior)) - 1 / (2 * deviation**2)
    assert (found.weight, found.bias) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert equilibria.log_odds(deviation=deviation, priors=priors) == pytest.approx(expected, rel=1e-12)


@few
@given(DEVIATIONS, PRIORS)
def test_cross_entropy_of_the_true_model_obeys_the_fisher_identity(deviation, prior):
    found = equilibria.equilibrium(compositions.named(TRUE[0]), deviation=deviation, priors=(1 - prior, prior)).moments
    np.testing.assert_allclose(found.hessian, found.covariance, rtol=1e-8, atol=1e-10 * found.hessian.max())


@pytest.mark.parametrize("composition", ALL, ids=label)
def test_every_equilibrium_is_a_minimum_at_rest_and_names_the_classes_right(composition):
    found = equilibria.equilibrium(composition)
    assert np.abs(found.moments.gradient).max() < 1e-10
    assert np.linalg.eigvalsh(found.moments.hessian)[0] > 0
    assert 0.966 < found.accuracy < norm.cdf(2) + 1e-12  # 97.72% is the best that any classifier can do
    if composition.name != "softplus + squared":
        assert found.accuracy > 0.97


def test_the_numbers_of_the_chapter():
    expected = {"ReLU + squared": (0.929, -0.0144, 0.9747), "ReLU + quartic": (0.818, 0.0807, 0.9771)}
    for name, numbers in expected.items():
        found = equilibria.equilibrium(compositions.named(name))
        assert (found.weight, found.bias, found.accuracy) == pytest.approx(numbers, abs=6e-4)
    soft = [np.linalg.eigvalsh(equilibria.equilibrium(compositions.named(name)).moments.hessian)[0] for name in TRUE]
    assert soft == pytest.approx([2.7e-4, 2.5e-5], rel=0.02)


@pytest.mark.parametrize("name", ["ReLU + squared", "ReLU + quartic", "softplus + squared", "clip + cross-entropy"])
def test_equilibrium_of_a_stratified_sample(name):
    composition = compositions.named(name, **({"epsilon": 0.1} if name.startswith("clip") else {}))
    priors, u = (0.4, 0.6), (np.arange(200_000) + 0.5) / 200_000
    found = equilibria.equilibrium(composition, deviation=0.35, priors=priors)
    inputs = [mean + 0.35 * ndtri(u) for mean in (0, 1)]

    def mean_gradient(q):
        slopes = [composition.slope(q[0] * x + q[1], t) for t, x in enumerate(inputs)]
        return [sum(p * (h * x**power).mean() for p, h, x in zip(priors, slopes, inputs)) for power in (1, 0)]

    end = fsolve(mean_gradient, [found.weight * 1.02, found.bias - 0.02], epsfcn=1e-6)
    assert (found.weight, found.bias) == pytest.approx(tuple(end), abs=2e-4)


@few
@given(
    st.floats(0.15, 0.6),
    PRIORS,
    st.floats(-2, 2),
    st.floats(0.3, 3),
    st.sampled_from(["ReLU + squared", "ReLU + quartic", "sigmoid + squared"]),
)
def test_another_origin_and_unit_of_the_input_change_the_parameters_only(deviation, prior, shift, unit, name):
    composition, priors = compositions.named(name), (1 - prior, prior)
    here = equilibria.equilibrium(composition, deviation=deviation, priors=priors)
    there = equilibria.equilibrium(composition, means=(shift, unit + shift), deviation=unit * deviation, priors=priors)
    assert there.weight == pytest.approx(here.weight / unit, rel=1e-8)
    assert there.bias == pytest.approx(here.bias - here.weight * shift / unit, rel=1e-8, abs=1e-8)
    assert there.accuracy == pytest.approx(here.accuracy, rel=1e-9)


def test_a_tanh_is_a_sigmoid_of_twice_the_logit():
    found = equilibria.equilibrium(compositions.named("tanh + squared"), priors=(0.2, 0.8))
    assert (found.weight, found.bias) == pytest.approx(np.array(equilibria.log_odds(priors=(0.2, 0.8))) / 2, rel=1e-9)


# --- clip and cross-entropy -----------------------------------------------------------------------


@few
@given(st.floats(-6, -0.7), st.floats(0.15, 3))
def test_clip_weight_balances_live_probability_and_mean_slope(logarithm, deviation):
    epsilon = 10**logarithm
    weight = equilibria.clip_weight(epsilon, deviation=deviation)
    law = norm((1 + weight) / 2, weight * deviation)
    slope = quad(lambda u: law.pdf(np.exp(u)), np.log(epsilon), np.log1p(-epsilon), epsabs=1e-13, limit=400)[
        0
    ]  # E[1/y; live], u = ln y
    assert slope / 2 == pytest.approx(law.cdf(1 - epsilon) - law.cdf(epsilon), rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-1, 1e-2, 1e-3, 1e-4, 1e-8])
def test_clip_weight_is_the_equilibrium_on_the_symmetric_line(epsilon):
    found = equilibria.equilibrium(compositions.named("clip + cross-entropy", epsilon=epsilon))
    assert found.weight == pytest.approx(equilibria.clip_weight(epsilon), rel=1e-8)
    assert found.bias == pytest.approx((1 - found.weight) / 2, rel=1e-8)


def test_clip_weight_drifts_down_as_the_cut_closes():
    weights = [equilibria.clip_weight(10.0**-k) for k in range(1, 13)]
    assert weights[:4] == pytest.approx([3.34, 2.60, 2.25, 2.06], abs=0.006)
    assert np.all(np.diff(weights) < 0) and np.all(np.diff(weights, 2) > 0)  # like a logarithm: no limit in sight
    assert weights[-1] < 1.6


def test_clip_weight_at_the_ends_of_its_ranges():
    for deviation in (1e-3, 100.0):
        for epsilon in (1e-12, 0.49):
            weight = equilibria.clip_weight(epsilon, deviation=deviation)
            assert 0 < weight * deviation**2 < 1


# --- accuracy -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "threshold"), [("sigmoid + squared", 0.0), ("ReLU + quartic", 0.5), ("clip + cross-entropy", 0.5)]
)
def test_accuracy_by_counting(name, threshold):
    rng = np.random.default_rng(8)
    t = rng.random(200_000) < 0.7
    x = np.where(t, 1.2, -0.1) + 0.6 * rng.standard_normal(len(t))
    for weight, bias in ((1.4, -0.3), (-0.8, 0.9)):
        right = ((weight * x + bias > threshold) == t).mean()
        found = equilibria.accuracy(
            compositions.named(name), weight, bias, means=(-0.1, 1.2), deviation=0.6, priors=(0.3, 0.7)
        )
        assert abs(found - right) < 4 * np.sqrt(right * (1 - right) / len(t))


@pytest.mark.parametrize(
    ("name", "threshold"),
    [("ELU + squared", 0.5), ("softplus + squared", np.log(np.expm1(0.5))), ("arctan + squared", 0.0)],
)
def test_the_threshold_is_where_the_activation_is_one_half(name, threshold):
    found = equilibria.accuracy(compositions.named(name), 1.0, 0.0, deviation=1.0)
    assert found == pytest.approx((norm.cdf(threshold) + norm.sf(threshold - 1)) / 2, rel=1e-12)


def test_a_clip_that_is_nearly_a_step_still_has_its_threshold():
    found = equilibria.accuracy(compositions.named("clip + cross-entropy", epsilon=0.4999), 1.0, 0.0)
    assert found == pytest.approx(norm.cdf(2), rel=1e-6)


# --- fluctuations ---------------------------------------------------------------------------------


@few
@given(st.integers(1, 5), st.integers(0, 99), st.floats(1e-3, 1.9), st.integers(1, 9))
def test_stationary_covariance_by_scipys_discrete_lyapunov_solver(size, seed, fraction, batch):
    rng = np.random.default_rng(seed)
    hessian, covariance = (root @ root.T + 0.1 * np.eye(size) for root in rng.standard_normal((2, size, size)))
    rate = fraction / np.linalg.eigvalsh(hessian)[-1]
    found = equilibria.stationary_covariance(hessian, covariance, rate, batch=batch)
    expected = solve_discrete_lyapunov(np.eye(size) - rate * hessian, rate**2 * covariance / batch)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("batch", [1, 10])
def test_cross_entropy_fluctuates_alike_in_all_directions(batch):
    found = equilibria.equilibrium(compositions.named(TRUE[0])).moments
    spread = equilibria.stationary_covariance(found.hessian, found.covariance, 0.01, batch=batch)
    np.testing.assert_allclose(spread, 0.01 / (2 * batch) * np.eye(2), rtol=0.01, atol=1e-6)
    exact = (
        0.01 / (2 * batch) * np.linalg.inv(np.eye(2) - 0.005 * found.hessian)
    )  # A = C solves the equation in closed form
    np.testing.assert_allclose(spread, exact, rtol=1e-7, atol=1e-10)


def test_fluctuations_of_the_other_compositions_per_learning_rate():
    expected = {
        "sigmoid + squared": [[0.125, 0.033], [0.033, 0.176]],
        "ReLU + squared": [[0.049, 0.003], [0.003, 0.056]],
        "ReLU + quartic": [[0.019, 0.0005], [0.0005, 0.025]],
    }
    for name, matrix in expected.items():
        found = equilibria.equilibrium(compositions.named(name)).moments
        np.testing.assert_allclose(
            equilibria.stationary_covariance(found.hessian, found.covariance, 1e-4) / 1e-4, matrix, atol=6e-4
        )


def test_numbers_beyond_the_floating_point_range_are_refused():
    with pytest.raises(ValueError, match="^deviation must be large enough"):
        equilibria.log_odds(deviation=1e-200)
    assert equilibria.accuracy(compositions.named("ReLU + squared"), 1e-300, 3.0) == 0.5


# --- no equilibrium -------------------------------------------------------------------------------


def test_a_pole_leaves_no_equilibrium():
    with pytest.raises(ValueError, match="^composition must have a mean gradient: h has a pole"):
        equilibria.equilibrium(compositions.named("clip + cross-entropy", epsilon=0.0))


def test_what_cannot_tell_the_classes_apart_has_no_equilibrium():
    for call in (equilibria.equilibrium, lambda composition: equilibria.accuracy(composition, 1.0, 0.0)):
        with pytest.raises(ValueError, match="^composition must pull class 0 down and class 1 up"):
            call(compositions.named("exponential"))


@pytest.mark.parametrize(("name", "start", "reason"), [
    ("GELU + squared", (-4.51, 3.6), "no minimum"),  # a saddle at (-0.727, -0.031), where the mean gradient does vanish
    ("swish + squared", (4.29, -5.0), "no minimum"),
    ("ReLU + squared", (0.1, -3.0), "still moves the parameters|no minimum"),
    ("sigmoid + squared", (-1.0, 0.5), "no minimum|without bound|is left"),
    ("clip + cross-entropy", (16.0, -8.0), "without bound|still moves|no minimum"),
])  # fmt: skip
def test_a_search_that_ends_elsewhere_says_so(name, start, reason):
    with pytest.raises(RuntimeError, match=f"^no equilibrium of .* found; from .*({reason})"):
        equilibria.equilibrium(compositions.named(name), start=start)


def test_a_start_of_ones_own_leads_to_the_same_equilibrium():
    composition = compositions.named("ReLU + quartic")
    one, other = equilibria.equilibrium(composition), equilibria.equilibrium(composition, start=(1.2, -0.2))
    assert (one.weight, one.bias) == pytest.approx((other.weight, other.bias), rel=1e-9)


def test_narrow_classes_saturate_a_clip_before_it_comes_to_rest():
    with pytest.raises(RuntimeError, match="^no equilibrium of clip"):
        equilibria.equilibrium(compositions.named("clip + cross-entropy"), deviation=0.05)
    weight = equilibria.clip_weight(0.01, deviation=0.05)  # the root exists, but hardly an input leads there
    clip = compositions.named("clip + cross-entropy")
    live = equilibria.live_probability(clip, weight, (1 - weight) / 2, deviation=0.05)
    assert live.max() < equilibria.LIVE


# --- bad input ------------------------------------------------------------------------------------

DATA = {"means": (0.0, 1.0), "deviation": 0.25, "priors": (0.5, 0.5)}
NETWORK = {"composition": compositions.named("sigmoid + squared"), **DATA}
CALLS = {
    equilibria.log_odds: DATA,
    equilibria.clip_weight: {"epsilon": 0.01, "deviation": 0.25},
    equilibria.accuracy: {**NETWORK, "weight": 2.0, "bias": -1.0},
    equilibria.equilibrium: {**NETWORK, "start": [15.0, -7.5]},
    equilibria.stationary_covariance: {
        "hessian": np.diag([1.0, 2.0]),
        "covariance": np.eye(2),
        "learning_rate": 0.1,
        "batch": 2,
    },
}
BAD = {
    "composition": ["sigmoid + squared", None, 1.0, np.ones(2)],
    "weight": NUMBER[:1] + NUMBER[2:],
    "bias": NUMBER[2:],
    "start": [[0.0, 1.0], [1.0], [[1.0, 2.0]], [np.nan, 1.0], "start", 1.0, True],
    "means": [[0.0], [0.0, 0.0], [0.0, np.nan], [[0.0, 1.0]], 1.0, "means", None],
    "deviation": NUMBER,
    "priors": [[0.5, 0.4], [0.0, 1.0], [-0.5, 1.5], [1.0], 1.0, [0.5, np.nan], "priors", None],
    "epsilon": [*NUMBER, 0.495, 0.7, 1e-13],
    "hessian": [
        *(bad for bad in MATRIX if not np.array_equal(bad, np.eye(3))),
        np.diag([1.0, 0.0]),
        np.diag([1.0, -1.0]),
    ],
    "covariance": [*MATRIX, np.diag([1.0, -1.0])],
    "learning_rate": [*NUMBER, 1.0, 5.0],
    "batch": [0, -2, 2.0, "2", None, True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

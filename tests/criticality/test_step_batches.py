"""lib.criticality.step_batches against sums written out, binomial laws, convolution integrals and samples."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, exercised
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import binom

from lib.criticality import power_laws, step_batches

RNG = np.random.default_rng(3)


# --- batches and their exact law ------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(2, 6), st.booleans())
def test_averages_are_means_of_successive_rows(batch, batches, vector):
    steps = np.random.default_rng(batch).standard_normal((batch * batches, 2) if vector else batch * batches)
    found = step_batches.averages(steps, batch)
    expected = [sum(steps[batch * i + j] for j in range(batch)) / batch for i in range(batches)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("batch", [1, 2, 7, 64])
def test_mean_law_of_a_coin_is_binomial_and_that_of_any_law_a_repeated_convolution(batch):
    values, masses = step_batches.mean_law([0.0, 1.0], [0.3, 0.7], batch)
    np.testing.assert_allclose(values, np.arange(batch + 1) / batch, rtol=1e-14)
    np.testing.assert_allclose(masses, binom.pmf(np.arange(batch + 1), batch, 0.7), atol=1e-15)
    law = RNG.dirichlet(np.ones(9))
    expected = np.ones(1)
    for _ in range(batch):
        expected = np.convolve(expected, law)
    np.testing.assert_allclose(step_batches.mean_law(np.linspace(-2, 2, 9), law, batch)[1], expected, atol=1e-14)


@given(st.integers(2, 12), st.integers(1, 20), st.integers(0, 99))
def test_mean_variance_and_kurtosis_of_means_fall_as_they_must(size, batch, seed):
    rng = np.random.default_rng(seed)
    values, masses = np.linspace(*np.sort(rng.uniform(-3, 3, 2)), size), rng.dirichlet(np.ones(size))

    def cumulants(v, m):
        mean = m @ v
        variance = m @ (v - mean) ** 2
        return mean, variance, m @ (v - mean) ** 4 / variance**2 - 3

    one, many = cumulants(values, masses), cumulants(*step_batches.mean_law(values, masses, batch))
    np.testing.assert_allclose(many, [one[0], one[1] / batch, one[2] / batch], rtol=1e-7, atol=1e-10)


# --- the exponent of means ------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2])
def test_steps_of_both_signs_near_a_zero_of_order_three(batch):
    steps = step_batches.averages(RNG.uniform(-1, 1, 8_000_000) ** 3, batch)
    fit = power_laws.fit(np.abs(steps), 1e-6, 1e-3)
    assert abs(fit.exponent - step_batches.exponent(3, batch)) < 0.02 and fit.error < 0.004


@pytest.mark.parametrize("batch", [1, 2, 3, 4])
def test_steps_of_one_sign_near_a_zero_of_order_three(batch):
    steps = step_batches.averages(RNG.uniform(0, 1, 7_200_000) ** 3, batch)
    fit = power_laws.fit(steps, 1e-4, 1e-1)
    assert abs(fit.exponent - step_batches.exponent(3, batch, one_sided=True)) < 0.02 and fit.error < 0.005


@pytest.mark.parametrize("order", [3, 4, 7])
def test_the_law_of_two_is_the_limit_of_the_convolution_integral(order):
    k = 1 - 1 / order

    def density(s):
        """Of a + a' for p(a) ∝ |a|^{-k} on [-1, 1], with |a| = t^r, which takes the singularity at zero off; over r."""
        parts = np.geomspace(s ** (1 / order) / 10, 0.9, 12)
        between = (
            2 * quad(lambda t: (1 - t**order) ** -k, 0, 0.5 ** (1 / order), epsrel=1e-12)[0] * s ** (2 / order - 1)
        )
        beside = (
            2
            * quad(lambda t: (t**order + s) ** -k, 0, (1 - s) ** (1 / order), epsrel=1e-12, limit=400, points=parts)[0]
        )
        return between + beside

    slopes = [-np.log(density(2 * s) / density(s)) / np.log(2) for s in (1e-6, 1e-9)]
    gaps = np.abs(np.array(slopes) - step_batches.exponent(order, 2))
    # the singular part s^{-(1 - 2/r)} stands on a constant
    assert gaps[1] < 0.002 and gaps[0] / gaps[1] == pytest.approx(1e3 ** (1 - 2 / order), rel=0.1)


def test_with_both_signs_the_density_is_flat_from_the_order_on():
    steps = step_batches.averages(RNG.uniform(-1, 1, 6_000_000) ** 3, 6)
    fit = power_laws.fit(np.abs(steps), 1e-4, 1e-2)
    assert step_batches.exponent(3, 6) == 0 and abs(fit.exponent) < 5 * fit.error < 0.1
    for order in (1, 3, 5.5):
        found = [step_batches.exponent(order, batch) for batch in range(1, 9)]
        np.testing.assert_allclose(found, [max(0, 1 - batch / order) for batch in range(1, 9)], rtol=1e-14)


@pytest.mark.parametrize("batch", [1, 2, 8])
@pytest.mark.parametrize("order", [-1, -2])
def test_at_a_pole_the_tail_stays(order, batch):
    steps = step_batches.averages(RNG.uniform(size=4_000_000) ** order, batch)
    low = 500.0 if order == -1 else 1e6
    fit = power_laws.fit(steps, low, 1e30)  # no sample is cut off
    assert abs(fit.exponent - step_batches.exponent(order, batch)) < max(5 * fit.error, 0.02) < 0.2
    tail = low**-0.5 if order == -2 else 1 / low  # of one step; the largest of M alone makes the mean
    expected = 4_000_000 * tail * batch ** (1 / order)
    assert abs(fit.count - expected) < 5 * np.sqrt(expected) + 0.05 * expected


# --- what else is left ----------------------------------------------------------------------------


def test_a_dead_atom_lets_the_singularity_of_single_steps_survive():
    steps = RNG.uniform(size=3_000_000) ** 3 * (RNG.uniform(size=3_000_000) > 0.6)
    means = step_batches.averages(steps, 3)
    count = np.sum((means > 0) & (means < 1e-5))
    singles = 3 * 0.6**2 * 0.4 * (3e-5) ** (1 / 3) * len(means)
    assert singles < count + 5 * np.sqrt(count) and count < 1.1 * singles + 5 * np.sqrt(
        count
    )  # pairs, (s^{1/3})², add a little
    assert power_laws.fit(means, 1e-9, 1e-5).exponent == pytest.approx(2 / 3, abs=0.02)


@pytest.mark.parametrize("squared", [True, False])
def test_spans_of_a_sigmoid_neuron_close_up_with_the_batch(squared):
    x = 0.25 * RNG.standard_normal(1_000_000 // 256 * 256)
    y = 16 * x - 8  # zeros, at the equilibrium of both losses
    slope = 2 * expit(y) ** 2 * expit(-y) if squared else expit(y)
    steps = np.stack([slope * x, slope], axis=1)
    found = [
        step_batches.span(np.linalg.norm(step_batches.averages(steps, batch), axis=1))
        for batch in (1, 2, 4, 16, 64, 256)
    ]
    expected = [11.1, 8.5, 6.3, 2.9, 1.0, 0.4] if squared else [5.6, 4.4, 3.4, 1.7, 0.8, 0.35]
    np.testing.assert_allclose(found, expected, atol=0.07)


@given(st.floats(0.1, 8), st.floats(0.01, 0.45))
def test_span_of_a_power_of_uniform_numbers_is_known(order, share):
    steps = -(((np.arange(2001)) / 2000) ** order)
    found = step_batches.span(steps, low=share, high=1 - share)
    assert found == pytest.approx(order * np.log10((1 - share) / share), rel=1e-3)


def test_a_quantile_of_zero_has_no_decades():
    with pytest.raises(ValueError, match="^steps must have a quantile above zero"):
        step_batches.span(np.r_[np.zeros(50), np.ones(50)])


# --- bad input: every public function, every argument ---------------------------------------------

STEPS = [1.0, -2.0, 3.0, 5.0]
CALLS = {
    step_batches.averages: {"steps": STEPS, "batch": 2},
    step_batches.mean_law: {"values": [0.0, 1.0, 2.0], "masses": [0.2, 0.3, 0.5], "batch": 3},
    step_batches.exponent: {"order": 3, "batch": 2, "one_sided": False},
    step_batches.span: {"steps": STEPS, "low": 0.1, "high": 0.9},
}
BAD = {
    "steps": [
        [],
        [1.0],
        [[1.0, 2.0]],
        np.zeros((4, 0)),
        [[[1.0]]],
        np.ones((2, 2, 2)),
        [np.nan, 1.0],
        1.0,
        "steps",
        None,
    ],
    "batch": COUNT,
    "values": [
        [],
        [1.0],
        [0.0, 1.0, 3.0],
        [2.0, 1.0, 0.0],
        [1.0, 1.0, 1.0],
        [np.nan, 1.0, 2.0],
        [[0.0, 1.0]],
        "v",
        None,
    ],
    "masses": [[], [0.5, 0.5], [0.5, 0.3, 0.1], [-0.1, 0.6, 0.5], [np.nan, 0.5, 0.5], "m", None],
    "order": [bad for bad in NUMBER if bad is True or bad != -1.0] + [0.5],
    "one_sided": [0, 1, "yes", None],
    "low": [-0.1, 0.95, 1.0, np.nan, "x", None, True],
    "high": [0.05, 1.1, np.nan, "x", None, True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, {"low": "low|high"})


def test_what_only_some_functions_refuse():
    with pytest.raises(ValueError, match="^batch must divide the number of steps, 4"):
        step_batches.averages(STEPS, 3)
    with pytest.raises(ValueError, match="^steps must have one axis, got"):
        step_batches.span(np.ones((3, 2)))

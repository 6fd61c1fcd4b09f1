"""lib.criticality.step_batches against sums written out, binomial laws, convolution integrals and samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
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


@pytest.mark.parametrize("batch", [1, 2, 3, 4])
def test_steps_of_one_sign_near_a_zero_of_order_three(batch):
    steps = step_batches.averages(RNG.uniform(0, 1, 2_400_000) ** 3, batch)
    fit = power_laws.fit(steps, 1e-4, 1e-1)
    assert abs(fit.exponent - step_batches.exponent(3, batch, one_sided=True)) < 0.02 and fit.error < 0.005


@pytest.mark.parametrize("order", [3, 4, 7])
def test_the_law_of_two_is_the_limit_of_the_convolution_integral(order):
    k = 1 - 1 / order

    def density(s):
        """Of a + a' for p(a) ∝ |a|^{-k} on [-1, 1], with |a| = t^r, which takes the singularity at zero off; over r."""
        parts = np.geomspace(s ** (1 / order) / 10, 0.9, 12)
        between = quad(lambda t: (1 - t**order) ** -k, 0, 0.5 ** (1 / order), epsrel=1e-12)[0] * s ** (2 / order - 1)
        precise = {"epsrel": 1e-12, "limit": 400, "points": parts}
        return 2 * between + 2 * quad(lambda t: (t**order + s) ** -k, 0, (1 - s) ** (1 / order), **precise)[0]

    slopes = [-np.log(density(2 * s) / density(s)) / np.log(2) for s in (1e-6, 1e-9)]
    gaps = np.abs(np.array(slopes) - step_batches.exponent(order, 2))
    assert step_batches.exponent(order, order + 1) == 0  # then the density is finite
    # the singular part s^{-(1 - 2/r)} stands on a constant
    assert gaps[1] < 0.002 and gaps[0] / gaps[1] == pytest.approx(1e3 ** (1 - 2 / order), rel=0.1)


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


@given(st.floats(0.1, 8), st.floats(0.01, 0.45))
def test_span_of_a_power_of_uniform_numbers_is_known(order, share):
    steps = -(((np.arange(2001)) / 2000) ** order)
    found = step_batches.span(steps, low=share, high=1 - share)
    assert found == pytest.approx(order * np.log10((1 - share) / share), rel=1e-3)


def test_a_quantile_of_zero_has_no_decades():
    with pytest.raises(ValueError, match="^steps must have a quantile above zero"):
        step_batches.span(np.r_[np.zeros(50), np.ones(50)])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: step_batches.averages([1.0, 2.0, 3.0, 4.0], 3), "batch must divide the number of steps, 4"),
    (lambda: step_batches.averages(np.ones((2, 2, 2)), 1), "steps must have one row"),
    (lambda: step_batches.averages(np.ones((4, 0)), 2), "steps must have one row"),
    (lambda: step_batches.span([1.0]), "steps must hold two"),
    (lambda: step_batches.span(np.ones((3, 2))), "steps must have one axis"),
    (lambda: step_batches.span([1.0, 2.0], low=0.5, high=0.4), "high must"),
    (lambda: step_batches.mean_law([0.0, 1.0, 3.0], [0.2, 0.3, 0.5], 1), "values must be two or more evenly"),
    (lambda: step_batches.mean_law([2.0, 1.0], [0.5, 0.5], 1), "values must be two or more evenly"),
    (lambda: step_batches.mean_law([0.0, 1.0], [0.5, 0.4], 1), "masses must have sum 1"),
    (lambda: step_batches.mean_law([0.0, 1.0], [0.2, 0.3, 0.5], 1), "masses must"),
    (lambda: step_batches.exponent(0.5, 2), "order must"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

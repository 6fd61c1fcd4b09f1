"""lib.foundations.hermite against quadrature, exact series, predicted rates of convergence and the arcsine kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermeval
from scipy.special import erf

from lib.foundations import gaussian, hermite


def g(z):
    return erf(z / np.sqrt(2))


def test_hermite_coefficients_rebuild_a_polynomial():
    wanted = np.random.default_rng(0).standard_normal(9)
    found = hermite.coefficients(lambda x: hermeval(x, wanted), 12, nodes=15)
    assert found == pytest.approx(np.append(wanted, np.zeros(4)), abs=1e-12)


@pytest.mark.parametrize("variance", [0.0, 0.3, 1.0, 2.0])
def test_erf_coefficients_equal_quadrature(variance):
    found = hermite.coefficients(lambda x: g(np.sqrt(variance) * x), 21, nodes=200)
    assert hermite.erf_coefficients(variance, 21) == pytest.approx(found, abs=1e-12)


def test_step_coefficients_converge_slowly_but_to_the_known_value():
    errors = [abs(hermite.coefficients(np.sign, 1, nodes=m)[1] - np.sqrt(2 / np.pi)) for m in (50, 200, 800)]
    assert errors[2] < 2e-3 and np.diff(np.log(errors)) == pytest.approx(-np.log(4), rel=0.05)  # error ~ 1 / nodes


@settings(max_examples=25)
@given(s=st.floats(0.01, 3), t=st.floats(0.01, 3), correlation=st.floats(-0.99, 0.99))
def test_mehler_sum_equals_the_arcsine_kernel(s, t, correlation):
    c12 = correlation * np.sqrt(s * t)
    series = [hermite.erf_coefficients(v, 151) for v in (s, t)]
    assert hermite.mean_product(*series, correlation) == pytest.approx(gaussian.erf_i2([[s, c12], [c12, t]]), abs=1e-12)


def test_mehler_truncation_error_falls_at_the_predicted_rate():
    variance, correlation = 2.0, 0.9
    exact = gaussian.erf_i2(variance * np.array([[1, correlation], [correlation, 1]]))
    series = [hermite.erf_coefficients(variance, n) for n in (41, 43)]
    first, second = (exact - hermite.mean_product(c, c, correlation) for c in series)
    assert second / first == pytest.approx((correlation * 2 / 3) ** 2, rel=0.1)


def test_a_function_may_change_what_it_is_given():
    def square(x):
        x *= x
        return x

    np.testing.assert_allclose(hermite.coefficients(square, 2, nodes=8), [1, 0, 1], atol=1e-14)


def test_highest_orders_stay_finite():
    series = hermite.erf_coefficients(1e12, 170)  # nearly a sign: at ρ = 1 the orders beyond n carry √(8/π³ n)
    tail = np.sqrt(8 / np.pi**3 / 170)
    assert hermite.mean_product(series, series, [-1.0, 0.0, 1.0]) == pytest.approx(
        [tail - 1, 0, 1 - tail], abs=tail / 100
    )
    assert np.isfinite(hermite.coefficients(np.tanh, 170, nodes=1000)).all()


@pytest.mark.parametrize("function", [None, lambda x: "text", np.sum, lambda x: x * np.nan])
def test_functions_that_give_no_array_are_refused_by_name(function):
    with pytest.raises(ValueError, match="^function must"):
        hermite.coefficients(function, 3, nodes=20)


def test_orders_out_of_range_are_refused_by_name():
    with pytest.raises(ValueError, match="^order must be an integer in 0 .. 170"):
        hermite.erf_coefficients(1.0, 171)
    for nodes in (3, 1001):
        with pytest.raises(ValueError, match="^nodes must"):
            hermite.coefficients(np.tanh, 3, nodes=nodes)
    for bad in ([], np.ones(172), [0.0, 1e300]):
        with pytest.raises(ValueError, match="^coefficients_f must"):
            hermite.mean_product(bad, [0.0, 1.0], 0.5)
    with pytest.raises(ValueError, match="^coefficients_g must have as many entries"):
        hermite.mean_product([0.0, 1.0], [1.0], 0.5)

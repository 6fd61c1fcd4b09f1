"""loss_exponents against the classification of the losses, finite differences along the input, and samples."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.criticality import loss_exponents

Y = sympy.Symbol("y")
POINTS, BIASES = np.linspace(0.4, 3.0, 23), [-1.3, 0.1, 4.0]
SLOPE, OFFSET = st.floats(0.3, 3), st.floats(0.5, 3)


# --- which losses are exact -----------------------------------------------------------------------


@settings(max_examples=25)
@given(SLOPE, OFFSET, st.sampled_from([-1, 1]), st.floats(-2, 2))
def test_linear_quadratic_and_logarithm_pass_whatever_their_constants(slope, offset, sign, rest):
    base = sign * slope * Y + offset * (1 if sign > 0 else -10)  # not zero on the points
    for loss, exponent in ((base, 0.0), (base**2 + rest * Y, 0.5), (sympy.log(sign * base) * 2.5 + rest, 2.0)):
        found = loss_exponents.classify(loss, POINTS, BIASES)
        assert found.exact and found.exponent == pytest.approx(exponent, abs=1e-8)


@settings(max_examples=25)
@given(st.sampled_from([3, 4, 5, 6, -1, -2, sympy.Rational(1, 2), sympy.Rational(5, 2)]), SLOPE, OFFSET)
def test_higher_negative_and_fractional_powers_fail(power, slope, offset):
    found = loss_exponents.classify((slope * Y + offset) ** power, POINTS, BIASES)
    assert not found.exact and found.exponent is None and found.highest - found.lowest > 1e-3


@pytest.mark.parametrize(
    "loss",
    [sympy.exp(2 * Y), sympy.exp(-Y), sympy.log(1 + sympy.exp(Y)), sympy.tanh(Y) ** 2, Y**2 + Y**4, Y * sympy.log(Y)],
)
def test_the_exponential_and_the_activations_fail(loss):
    found = loss_exponents.classify(loss, POINTS, BIASES)
    assert not found.exact and found.highest - found.lowest > 1e-3


def test_the_step_of_the_logarithm_solves_the_equation_with_exponent_two():
    c1, c2, c3, b, w, rate = (sympy.Rational(*pair) for pair in ((7, 10), (13, 10), (3, 5), (2, 5), (3, 2), (1, 10)))
    x = sympy.Symbol("x")
    step = (-rate * x * sympy.diff(c1 * sympy.log(c2 + c3 * Y), Y)).subs(Y, w * x + b)
    right = -rate * c1 * c3 / (c2 + c3 * b) * (1 + w * step / (rate * c1)) ** 2
    assert sympy.simplify(sympy.diff(step, x) - right) == 0
    assert loss_exponents.classify(c1 * sympy.log(c2 + c3 * Y), POINTS, BIASES).exponent == pytest.approx(2, abs=1e-9)


# --- the exponents themselves ---------------------------------------------------------------------

LOSSES = [
    sympy.exp(-1.5 * Y),
    (Y + 2) ** 4,
    sympy.log(1 + sympy.exp(Y)),
    sympy.log(5 - Y),
    sympy.erf(Y) ** 2,
    sympy.tanh(Y - 2) ** 2,
]


def slopes(step, x, h=1e-4):
    """-d ln p/d ln|s| of s = step(x) for a density flat in x, by differences of ln|s'| and ln|s|."""
    speed = [np.log(np.abs(step(x + d + h) - step(x + d - h))) for d in (-h, h)]
    size = [np.log(np.abs(step(x + d))) for d in (-h, h)]
    return (speed[1] - speed[0]) / (size[1] - size[0])


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(("weight", "bias"), [(0.7, 0.3), (-2.0, 1.1)])
def test_exponents_are_the_slopes_of_the_densities_for_flat_input(loss, weight, bias):
    slope = sympy.lambdify(Y, sympy.diff(loss, Y), modules=["scipy", "numpy"])
    y = np.array([0.55, 0.8, 1.4])
    x = (y - bias) / weight
    in_bias = slopes(lambda x: -0.2 * slope(weight * x + bias), x)
    in_weight = slopes(lambda x: -0.2 * x * slope(weight * x + bias), x)
    np.testing.assert_allclose(loss_exponents.bias_exponents(loss, y), in_bias, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        loss_exponents.weight_exponents(loss, y, bias, shifted=False), in_weight, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("loss", [sympy.exp(-1.5 * Y), (Y + 2) ** 4, sympy.log(1 + sympy.exp(Y))], ids=str)
def test_the_shift_free_exponent_is_one_over_the_slope_of_speed_squared_over_acceleration(loss):
    g = (Y - 0.3) * sympy.diff(loss, Y)
    ratio = sympy.diff(g, Y) ** 2 / sympy.diff(g, Y, 2)
    size, ratio = (sympy.lambdify(Y, form) for form in (g, ratio))
    y, h = np.array([1.1, 1.9, 2.7]), 1e-5
    expected = (size(y + h) - size(y - h)) / (ratio(y + h) - ratio(y - h))
    np.testing.assert_allclose(loss_exponents.weight_exponents(loss, y, 0.3), expected, rtol=1e-6)


def test_exponents_do_not_underflow_in_the_tail_of_an_exponential():
    loss, far = sympy.exp(Y), [-300.0, -600.0]
    np.testing.assert_allclose(loss_exponents.bias_exponents(loss, far), 1, rtol=1e-12)
    np.testing.assert_allclose(
        loss_exponents.weight_exponents(loss, far, 0.0, shifted=False), 1 - 1 / (1 + np.array(far)) ** 2, rtol=1e-12
    )
    np.testing.assert_allclose(loss_exponents.weight_exponents(loss, far, 0.0), 1, atol=1e-4)


@settings(deadline=None, max_examples=20)
@given(st.floats(-20, 20).filter(lambda n: min(abs(n - 1), abs(n)) > 0.05))
def test_power_exponent_is_the_exponent_in_the_bias_at_every_point(power):
    found = loss_exponents.bias_exponents((Y + 1.7) ** power, POINTS)
    np.testing.assert_allclose(found, loss_exponents.power_exponent(power), rtol=1e-9, atol=1e-9)
    assert (
        np.ptp(loss_exponents.bias_exponents(sympy.log(Y + power**2), POINTS) - loss_exponents.power_exponent(0)) < 1e-9
    )


def test_points_where_the_exponent_is_not_defined_are_refused():
    for function, wrong in (
        (loss_exponents.bias_exponents, {"loss": Y**3, "points": [0.0, 1.0]}),
        (loss_exponents.bias_exponents, {"loss": 3 * Y, "points": [1.0]}),
        (loss_exponents.weight_exponents, {"loss": Y**3, "points": [0.0, 1.0], "bias": 0.0}),
        (loss_exponents.weight_exponents, {"loss": Y**2, "points": [0.5, 1.0], "bias": 1.0, "shifted": False}),
        (loss_exponents.weight_exponents, {"loss": sympy.sqrt(Y), "points": [-1.0, 1.0], "bias": 1.0}),
        (loss_exponents.weight_exponents, {"loss": sympy.I * sympy.exp(Y), "points": [1.0], "bias": 1.0}),
    ):
        with pytest.raises(ValueError, match="^points must lie where"):
            function(**wrong)
    assert np.isinf(loss_exponents.weight_exponents(sympy.log(Y) ** 2 / 2, [1.0, 2.0], 0.0)).all()  # g = ln y


@pytest.mark.parametrize("bad", [2.0, sympy.Integer(3), Y * sympy.Symbol("w"), sympy.Function("f")(Y), sympy.zeta(Y)])
def test_losses_that_cannot_be_evaluated_are_refused(bad):
    with pytest.raises(ValueError, match="^loss must"):
        loss_exponents.bias_exponents(bad, [1.0])


@pytest.mark.parametrize(("points", "biases", "name"), [
    ([1.0, 1.0, 2.0], BIASES, "points"), ([], BIASES, "points"), (POINTS, [1.0, 1.0], "biases"),
])  # fmt: skip
def test_too_few_points_do_not_tell_whether_an_exponent_is_constant(points, biases, name):
    with pytest.raises(ValueError, match=f"^{name} must hold"):
        loss_exponents.classify(Y**3, points, biases)
    with pytest.raises(ValueError, match="^power must not be 1"):
        loss_exponents.power_exponent([1.0, 2.0])

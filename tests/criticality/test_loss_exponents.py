"""loss_exponents against the classification of the losses, finite differences along the input, and samples."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.criticality import loss_exponents

Y = sympy.Symbol("y")
POINTS, BIASES = np.linspace(0.4, 3.0, 23), [-1.3, 0.1, 4.0]


@settings(max_examples=20)
@given(st.floats(0.3, 3), st.floats(0.5, 3), st.sampled_from([-1, 1]), st.floats(-2, 2))
def test_linear_quadratic_and_logarithm_pass_whatever_their_constants(slope, offset, sign, rest):
    base = sign * slope * Y + offset * (1 if sign > 0 else -10)  # not zero on the points
    for loss, exponent in ((base, 0.0), (base**2 + rest * Y, 0.5), (sympy.log(sign * base) * 2.5 + rest, 2.0)):
        assert loss_exponents.exact_exponent(loss, POINTS, BIASES) == pytest.approx(exponent, abs=1e-8)


@pytest.mark.parametrize(
    "loss",
    [*((Y + 0.7) ** power for power in (3, 4, -1, sympy.Rational(1, 2))),
     sympy.exp(2 * Y), sympy.log(1 + sympy.exp(Y)), sympy.tanh(Y) ** 2, Y**2 + Y**4],
    ids=str,
)  # fmt: skip
def test_other_powers_the_exponential_and_the_activations_fail(loss):
    assert loss_exponents.exact_exponent(loss, POINTS, BIASES) is None
    cheat, root = Y**3 / 3 + Y, np.sqrt(3)  # two biases do not decide, three do
    assert loss_exponents.exact_exponent(cheat, POINTS + 0.4, [-root, root]) is not None
    assert loss_exponents.exact_exponent(cheat, POINTS + 0.4, [-root, 1.7, root]) is None


def slopes(step, x, h=1e-4):
    """-d ln p/d ln|s| of s = step(x) for a density flat in x, by differences of ln|s'| and ln|s|."""
    speed = [np.log(np.abs(step(x + d + h) - step(x + d - h))) for d in (-h, h)]
    size = [np.log(np.abs(step(x + d))) for d in (-h, h)]
    return (speed[1] - speed[0]) / (size[1] - size[0])


@pytest.mark.parametrize(
    "loss", [sympy.exp(-1.5 * Y), (Y + 2) ** 4, sympy.log(5 - Y), sympy.erf(Y) ** 2, sympy.tanh(Y - 2) ** 2], ids=str
)
@pytest.mark.parametrize(("weight", "bias"), [(0.7, 0.3), (-2.0, 1.1)])
def test_exponents_are_the_slopes_of_the_densities_for_flat_input(loss, weight, bias):
    slope = sympy.lambdify(Y, sympy.diff(loss, Y), modules=["scipy", "numpy"])
    y = np.array([0.55, 0.8, 1.4])
    x = (y - bias) / weight
    in_bias = slopes(lambda x: -0.2 * slope(weight * x + bias), x)
    in_weight = slopes(lambda x: -0.2 * x * slope(weight * x + bias), x)
    np.testing.assert_allclose(loss_exponents.exponents(loss, y), in_bias, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(loss_exponents.exponents(loss, y, bias=bias), in_weight, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", [sympy.exp(-1.5 * Y), (Y + 2) ** 4, sympy.log(1 + sympy.exp(Y))], ids=str)
def test_the_shift_free_exponent_is_one_over_the_slope_of_speed_squared_over_acceleration(loss):
    y, h = np.array([1.1, 1.9, 2.7]), 1e-5
    for bias, g in ((0.3, (Y - 0.3) * sympy.diff(loss, Y)), (None, sympy.diff(loss, Y))):
        size, ratio = (sympy.lambdify(Y, form) for form in (g, sympy.diff(g, Y) ** 2 / sympy.diff(g, Y, 2)))
        found = loss_exponents.exponents(loss, y, bias=bias, shifted=True)
        np.testing.assert_allclose(found * (ratio(y + h) - ratio(y - h)), size(y + h) - size(y - h), rtol=1e-6)


def test_exponents_do_not_underflow_in_the_tail_of_an_exponential():
    loss, far = sympy.exp(Y), np.array([-300.0, -600.0])
    np.testing.assert_allclose(loss_exponents.exponents(loss, far), 1, rtol=1e-12)
    np.testing.assert_allclose(loss_exponents.exponents(loss, far, bias=0.0), 1 - 1 / (1 + far) ** 2, rtol=1e-12)
    np.testing.assert_allclose(loss_exponents.exponents(loss, far, bias=0.0, shifted=True), 1, atol=1e-4)
    assert np.isinf(loss_exponents.exponents(sympy.log(Y) ** 2 / 2, [1.0, 2.0], bias=0.0, shifted=True)).all()


@pytest.mark.parametrize(("loss", "points", "options"), [
    (Y**3, [0.0, 1.0], {}), (3 * Y, [1.0], {}), (Y**3, [0.0, 1.0], {"bias": 0.0, "shifted": True}),
    (Y**2, [0.5, 1.0], {"bias": 1.0}), (sympy.sqrt(Y), [-1.0, 1.0], {"bias": 1.0}),
    (sympy.I * sympy.exp(Y), [1.0], {"bias": 1.0}),
])  # fmt: skip
def test_points_where_the_exponent_is_not_defined_are_refused(loss, points, options):
    with pytest.raises(ValueError, match="^points must lie where"):
        loss_exponents.exponents(loss, points, **options)


@pytest.mark.parametrize("bad", [2.0, sympy.Integer(3), Y * sympy.Symbol("w"), sympy.Function("f")(Y), sympy.zeta(Y)])
def test_losses_that_cannot_be_evaluated_are_refused(bad):
    with pytest.raises(ValueError, match="^loss must"):
        loss_exponents.exponents(bad, [1.0])


@pytest.mark.parametrize(("points", "biases", "name"), [
    ([1.0, 1.0, 2.0], BIASES, "points"), ([], BIASES, "points"), (POINTS, [1.0, 1.0], "biases"),
])  # fmt: skip
def test_too_few_points_do_not_tell_whether_an_exponent_is_constant(points, biases, name):
    with pytest.raises(ValueError, match=f"^{name} must hold"):
        loss_exponents.exact_exponent(Y**3, points, biases)

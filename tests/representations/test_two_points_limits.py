"""two_points_limits against the roots, numerical Jacobians and the late decay of the closed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_point_data import amplitudes, state_of

from lib.representations import two_points_limits
from lib.representations.two_points import TwoPoints


@settings(deadline=None, max_examples=60)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_final_distance_is_the_positive_root_without_cancellation(high, low):
    found = two_points_limits.final_distance(high, low)
    assert found > 0 and found == pytest.approx(low * np.exp(np.arcsinh(high / (2 * low))), rel=1e-12)
    other = two_points_limits.final_distance(-high, low)
    assert other * found == pytest.approx(low**2, rel=1e-12)  # product of the roots


def test_final_distance_limits_and_shapes():
    assert two_points_limits.final_distance(-1e12, 1.0) == pytest.approx(1e-12, rel=1e-14)
    np.testing.assert_array_equal(two_points_limits.final_distance([-3.0, 0.0, 3.0], 0.0), [0, 0, 3])
    assert two_points_limits.final_distance(np.ones((3, 1)), np.ones(2)).shape == (3, 2)
    with pytest.raises(ValueError, match=r"^low must broadcast with high"):
        two_points_limits.final_distance([1.0, 2.0], [1.0, 2.0, 3.0])


def slope(z, x, y, alpha, beta):
    """Eq. (7) for complex arguments."""
    a, b, w = z
    return np.array([-alpha * x * w, -w * (beta * a + alpha * x * b / a),
                     -0.5 * beta * (3 * w - b + y) * a - 0.5 * alpha * x * (b + w) * w / a])  # fmt: skip


def test_rates_are_eigenvalues_of_the_jacobian_at_the_end():
    for start, constants in amplitudes(20, seed=3):
        two = TwoPoints(state_of(start, constants[1]), *constants)
        # one complex step of each variable: the derivative without a difference of close numbers
        shifted = two.fixed_point[:, None] + 1e-30j * np.eye(3)  # (3, 3)
        jacobian = np.stack([slope(one, *constants).imag / 1e-30 for one in shifted.T], axis=1)
        values = np.sort(np.linalg.eigvals(jacobian).real)
        rates = two_points_limits.decay_rates(*two.high_low, constants[3])
        # the third eigenvalue belongs to motion across the surfaces of constant A_high, and is zero
        np.testing.assert_allclose(values, np.sort([*rates, 0.0]), rtol=1e-8, atol=1e-8 * np.abs(values).max())
        assert np.all(rates < 0)


@pytest.mark.parametrize("across", [0.0, 0.5])
def test_late_decay_has_the_two_rates(across):
    two = TwoPoints(state_of(np.array([0.8, 0.3, across]), 1.0), 1.0, 1.0, 3.0, 1.5)
    rates, losses = two_points_limits.decay_rates(*two.high_low, 1.5), two.loss([9.0, 10.0])
    # the loss is (e∥² + e⊥²)/8: e∥ decays with the second rate, e⊥² with the first
    expected = max(2 * rates[1], rates[0]) if across else 2 * rates[1]
    assert np.log(losses[1] / losses[0]) == pytest.approx(expected, rel=0.02)


def test_regime_is_a_statement_about_the_end_in_any_units():
    for unit in (1e-6, 1.0, 1e6):
        for high, limit, name in ((0.19, 1.0, "rich"), (10.1, 10.1, "lazy"), (-10.1, 1 / 10.1, "collapse")):
            assert two_points_limits.final_distance(unit * high, unit) == pytest.approx(unit * limit, rel=0.11)
            assert two_points_limits.regime(unit * high, unit) == name
    assert two_points_limits.regime(9.9, 1.0) == "between" and two_points_limits.regime(9.9, 1.0, margin=4.0) == "lazy"
    assert two_points_limits.regime(0.5, 1.0) == "between" and two_points_limits.regime(0.4, 1.0) == "rich"
    with pytest.raises(ValueError, match=r"^low must be > 0 where"):
        two_points_limits.regime(0.0, 0.0)

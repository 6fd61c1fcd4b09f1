"""lib.fluctuations.time_ordering against exponentials, an ODE solver, Liouville's formula, its order in the step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson, solve_ivp
from scipy.linalg import expm

from lib.fluctuations import time_ordering

START = np.array([[1.0, -0.5], [0.3, 2.0], [0.0, 1.0]])  # (3, 2)
SPAN = 2.0


def pull(t):
    """a(t), a smooth 2 x 2 matrix that does not commute with itself at other times."""
    t = np.asarray(t, dtype=float)
    return np.stack([1 + np.cos(3 * t), 2 * np.sin(2 * t), 0.5 * np.cos(t), 0.7 + 0 * t], -1).reshape(*t.shape, 2, 2)


def kick(t):
    """b(t), three row vectors."""
    t = np.asarray(t, dtype=float)
    return np.stack([np.sin(t), 1 + 0 * t, np.cos(5 * t), t, t**2, np.exp(-t)], -1).reshape(*t.shape, 3, 2)


def midpoints(steps):
    return (np.arange(steps) + 0.5) * SPAN / steps


def by_ode(driven=True):
    def slope(t, flat):
        v = flat.reshape(3, 2)
        return (-v @ pull(t) + driven * kick(t)).ravel()

    return solve_ivp(slope, (0, SPAN), START.ravel(), rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1].reshape(3, 2)


def propagator(steps, **order):
    return time_ordering.propagators(pull(midpoints(steps)), SPAN / steps, **order)


def integral(steps):
    return time_ordering.wiener_integral(START, pull(midpoints(steps)), kick(midpoints(steps)), SPAN / steps)


def test_propagator_and_integral_agree_with_an_ode_solver():
    assert np.abs(START @ propagator(4000)[-1] - by_ode(driven=False)).max() < 1e-6
    assert np.abs(integral(4000)[-1] - by_ode()).max() < 1e-6


def test_the_other_order_solves_another_equation():
    wrong = START @ propagator(4000, latest_leftmost=True)[-1]
    assert np.abs(wrong - by_ode(driven=False)).max() > 1e-2


@pytest.mark.parametrize(
    "solve, exact", [(integral, by_ode()), (lambda n: START @ propagator(n), by_ode(driven=False))]
)
def test_the_error_is_of_second_order(solve, exact):
    steps = np.array([50, 100, 200, 400])
    errors = [np.abs(solve(n)[-1] - exact).max() for n in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(-2, abs=0.05)


def test_both_forms_of_the_solution_agree():
    """The first form: kicks carried back to time zero by the inverse propagator, whose latest factor is leftmost."""
    steps = 2000
    grid = np.linspace(0, SPAN, steps + 1)
    back = time_ordering.propagators(-pull(midpoints(steps)), SPAN / steps, latest_leftmost=True)
    gathered = START + simpson(kick(grid) @ back, x=grid, axis=0)
    assert np.abs(gathered @ propagator(steps)[-1] - integral(steps)[-1]).max() < 1e-5
    assert np.abs(back @ propagator(steps) - np.eye(2)).max() < 1e-10  # the inverse, at every time


matrices = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).standard_normal((12, 3, 3)))


@settings(deadline=None, max_examples=25)
@given(rates=matrices, step=st.floats(1e-3, 0.5), cut=st.integers(1, 11))
def test_group_property_and_liouville(rates, step, cut):
    whole = time_ordering.propagators(rates, step)
    late = time_ordering.propagators(rates[cut:], step)
    np.testing.assert_allclose(whole[cut] @ late[-1], whole[-1], rtol=1e-9, atol=1e-9 * np.abs(whole[-1]).max())
    traces = np.cumsum(np.trace(rates, axis1=1, axis2=2)) * step
    logs = np.linalg.slogdet(whole[1:])  # det U = exp(-∫ tr a), so every sign is +
    np.testing.assert_array_equal(logs.sign, 1)
    np.testing.assert_allclose(logs.logabsdet, -traces, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(rates=matrices, step=st.floats(1e-3, 0.5), seed=st.integers(0, 1000))
def test_matrices_that_commute_and_the_linearity_of_the_integral(rates, step, seed):
    direction = rates[0] / 4
    strengths = np.random.default_rng(seed).standard_normal(12)
    commuting = strengths[:, None, None] * direction
    expected = expm(-step * strengths.sum() * direction)
    np.testing.assert_allclose(time_ordering.propagators(commuting, step)[-1], expected, rtol=1e-9, atol=1e-9)
    starts, kicks = rates[:2, 0], rates[:, :2]
    both = time_ordering.wiener_integral(starts, rates, kicks, step)
    alone = time_ordering.wiener_integral(starts, rates, 0 * kicks, step)
    np.testing.assert_allclose(
        alone, starts @ time_ordering.propagators(rates, step), rtol=1e-8, atol=1e-8 * np.abs(alone).max()
    )
    twice = time_ordering.wiener_integral(0 * starts, rates, 2 * kicks, step)
    np.testing.assert_allclose(both, alone + twice / 2, rtol=1e-8, atol=1e-8 * np.abs(both).max())


@settings(deadline=None, max_examples=25)
@given(factors=matrices)
def test_products_against_multi_dot_and_their_transposes(factors):
    forward = time_ordering.products(factors)
    np.testing.assert_array_equal(forward[0], np.eye(3))
    for j in (2, 7, 12):
        np.testing.assert_allclose(
            forward[j], np.linalg.multi_dot(factors[:j]), rtol=1e-8, atol=1e-8 * np.abs(forward[j]).max()
        )
    turned = time_ordering.products(np.swapaxes(factors, 1, 2), latest_leftmost=True)
    np.testing.assert_allclose(np.swapaxes(turned, 1, 2), forward, rtol=1e-8, atol=1e-8 * np.abs(forward).max())


def test_one_step_from_rest_and_a_constant_matrix():
    a, b = np.array([[2.0, 1.0], [0.5, 1.0]]), np.array([[1.0, -1.0]])
    path = time_ordering.wiener_integral([[0.0, 0.0]], np.tile(a, (2000, 1, 1)), np.tile(b, (2000, 1, 1)), 0.01)
    np.testing.assert_allclose(path[-1], b @ np.linalg.inv(a), atol=1e-4)  # at late times V a = b
    np.testing.assert_array_equal(path[0], [[0.0, 0.0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: time_ordering.products(np.full((3, 2, 2), 1e200)),
        lambda: time_ordering.propagators(np.full((2, 2, 2), -1e4), 1.0),
        lambda: time_ordering.propagators(np.full((500, 1, 1), -5.0), 1.0),
        lambda: time_ordering.wiener_integral([[1.0]], np.full((500, 1, 1), -5.0), np.ones((500, 1, 1)), 1.0),
    ],
)
def test_overflow_is_announced(call):
    with pytest.raises(ValueError, match="^(factors|rates) must keep the result inside the floating-point range"):
        call()


@pytest.mark.parametrize("name", ["factors", "rates", "start", "kicks"])
def test_shapes_that_do_not_fit_are_refused(name):
    rates, start, kicks = np.zeros((4, 2, 2)), np.zeros((3, 2)), np.zeros((4, 3, 2))
    for wrong in (np.zeros((4, 2, 3)), np.zeros((0, 2, 2)), np.zeros((4, 0, 0)), np.zeros((3, 3)), np.zeros((0, 2))):
        with pytest.raises(ValueError, match=f"^{name} must "):
            if name == "factors":
                time_ordering.products(wrong)
            else:
                given_ = {"start": start, "rates": rates, "kicks": kicks, name: wrong}
                time_ordering.wiener_integral(**given_, step=0.1)

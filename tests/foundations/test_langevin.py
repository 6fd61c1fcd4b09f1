"""lib.foundations.langevin against closed forms, quadrature and SciPy's own solvers."""

import numpy as np
import pytest
from bad_input import AXIS, MATRIX, NUMBER, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad_vec
from scipy.linalg import expm, solve_discrete_lyapunov

from lib.foundations import langevin, langevin_formulas

FRICTION = np.array([[1.0, -2.0], [0.5, 3.0]])
DIFFUSION = np.array([[1.0, 0.3], [0.3, 2.0]])
SPRING, DAMPING, TEMPERATURE = 2.0, 0.7, 1.5  # an underdamped oscillator: its diffusion matrix is singular
OSCILLATOR = np.array([[0.0, -1.0], [SPRING, DAMPING]]), np.diag([0.0, DAMPING * TEMPERATURE])


def integral(time, friction, diffusion):
    """Eq. (1.4) by adaptive quadrature."""
    return quad_vec(lambda u: 2 * expm(-friction * u) @ diffusion @ expm(-friction.T * u), 0, time, epsrel=1e-12)[0]


@st.composite
def systems(draw, symmetric=False):
    """A stable friction and a positive definite diffusion of one to four coordinates."""
    size = draw(st.integers(1, 4))
    square = arrays(float, (size, size), elements=st.floats(-1, 1))
    root, twist, noise = draw(square), draw(square), draw(square)
    friction = (
        root @ root.T + 0.3 * np.eye(size) + (0 if symmetric else twist - twist.T)
    )  # positive symmetric part: stable
    return friction, noise @ noise.T + 0.2 * np.eye(size)


# --- covariances ----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(systems())
def test_stationary_covariance_solves_the_lyapunov_equation_and_is_positive(system):
    friction, diffusion = system
    sigma = langevin.stationary_covariance(friction, diffusion)
    np.testing.assert_allclose(friction @ sigma + sigma @ friction.T, 2 * diffusion, atol=1e-12 * np.abs(sigma).max())
    assert np.array_equal(sigma, sigma.T) and np.linalg.eigvalsh(sigma)[0] > 0


@pytest.mark.parametrize("time", [0.01, 0.7, 20.0])
@pytest.mark.parametrize("system", [(FRICTION, DIFFUSION), OSCILLATOR])
def test_covariance_is_the_integral(time, system):
    np.testing.assert_allclose(langevin.covariance([time], *system)[0], integral(time, *system), rtol=1e-9, atol=1e-14)


def test_covariance_in_one_dimension_at_all_scales():
    gamma, strength = 0.8, 1.3
    times = np.geomspace(1e-14, 1e6, 60)
    expected = -strength / gamma * np.expm1(-2 * gamma * times)
    np.testing.assert_allclose(langevin.covariance(times, [[gamma]], [[strength]])[:, 0, 0], expected, rtol=1e-13)


def test_covariance_relaxes_from_any_start_to_the_stationary_one():
    start = np.array([[2.0, -1.0], [-1.0, 0.5]])
    late = langevin.covariance([0.0, 60.0], FRICTION, DIFFUSION, start)
    np.testing.assert_allclose(late[0], start, atol=1e-15)
    np.testing.assert_allclose(late[1], langevin.stationary_covariance(FRICTION, DIFFUSION), rtol=1e-12)
    stay = langevin.covariance([0.3, 3.0], FRICTION, DIFFUSION, late[1])
    np.testing.assert_allclose(stay, np.stack([late[1]] * 2), rtol=1e-12)


def test_oscillator_obeys_equipartition_and_circulates_from_position_to_velocity():
    sigma = langevin.stationary_covariance(*OSCILLATOR)
    np.testing.assert_allclose(sigma, np.diag([TEMPERATURE / SPRING, TEMPERATURE]), atol=1e-14)
    np.testing.assert_allclose(langevin.circulation(*OSCILLATOR), TEMPERATURE * np.array([[0, -1], [1, 0]]), atol=1e-14)


@settings(max_examples=25)
@given(systems(), st.floats(1e-6, 3), st.floats(1e-6, 3))
def test_exact_steps_compose_and_keep_the_stationary_law(system, first, second):
    sigma = langevin.stationary_covariance(*system)
    (a, noise_a), (b, noise_b), (both, noise) = (
        langevin_formulas.propagate(*system, h) for h in (first, second, first + second)
    )
    np.testing.assert_allclose(b @ a, both, atol=1e-12)
    np.testing.assert_allclose(b @ noise_a @ b.T + noise_b, noise, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(a @ sigma @ a.T + noise_a, sigma, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(langevin.correlation([first], *system)[0], a @ sigma, rtol=1e-11, atol=1e-12)


def test_short_step_noise_keeps_its_relative_accuracy():
    h = 1e-9
    series = 2 * h * DIFFUSION - h**2 * (FRICTION @ DIFFUSION + DIFFUSION @ FRICTION.T)
    np.testing.assert_allclose(langevin_formulas.propagate(FRICTION, DIFFUSION, h)[1], series, rtol=1e-14)


# --- circulation and entropy production -----------------------------------------------------------


@settings(max_examples=40)
@given(systems())
def test_two_forms_of_the_entropy_production_agree(system):
    friction, diffusion = system
    rotation = langevin.circulation(friction, diffusion)
    assert np.array_equal(rotation, -rotation.T)
    np.testing.assert_allclose(
        friction @ langevin.stationary_covariance(friction, diffusion), diffusion + rotation, atol=1e-10
    )
    rate = langevin.entropy_production(friction, diffusion)
    assert rate >= 0
    np.testing.assert_allclose(rate, -np.trace(np.linalg.solve(diffusion, friction @ rotation)), rtol=1e-8, atol=1e-10)


@settings(max_examples=40)
@given(systems(symmetric=True))
def test_symmetric_friction_is_elementwise_in_its_eigenbasis(system):
    friction, diffusion = system
    rates, basis = np.linalg.eigh(friction)
    rotated = basis.T @ diffusion @ basis
    total = rates[:, None] + rates
    expected = (rates[:, None] - rates) / total * rotated
    rotation = langevin.circulation(friction, diffusion)
    np.testing.assert_allclose(basis.T @ rotation @ basis, expected, atol=1e-11)
    assert np.linalg.norm(rotation) < np.linalg.norm(diffusion)


def test_entropy_production_of_two_decoupled_rates_with_correlated_noise():
    slow, fast, (d11, d12, d22) = 0.4, 2.5, (1.0, 0.6, 1.7)
    expected = d12**2 * (slow - fast) ** 2 / ((slow + fast) * (d11 * d22 - d12**2))
    rate = langevin.entropy_production(np.diag([slow, fast]), [[d11, d12], [d12, d22]])
    np.testing.assert_allclose(rate, expected, rtol=1e-13)


@settings(max_examples=30)
@given(systems(), st.floats(-2, 2))
def test_any_circulation_can_be_prescribed_without_changing_the_covariance(system, strength):
    friction, diffusion = system
    sigma = langevin.stationary_covariance(friction, diffusion)
    rotation = strength * (np.triu(np.ones_like(sigma), 1) - np.tril(np.ones_like(sigma), -1))
    other = np.linalg.solve(sigma, (diffusion + rotation).T).T
    np.testing.assert_allclose(langevin.stationary_covariance(other, diffusion), sigma, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(langevin.circulation(other, diffusion), rotation, atol=1e-7)


def test_detailed_balance_needs_no_commuting_matrices_only_friction_times_diffusion_symmetric():
    potential = np.array([[2.0, 0.5], [0.5, 1.0]])
    friction = DIFFUSION @ potential  # D times the gradient of a potential, with mobility D
    assert np.abs(friction - friction.T).max() > 0.1
    np.testing.assert_allclose(langevin.circulation(friction, DIFFUSION), 0, atol=1e-14)
    np.testing.assert_allclose(langevin.entropy_production(friction, DIFFUSION), 0, atol=1e-24)
    np.testing.assert_allclose(
        langevin.stationary_covariance(friction, DIFFUSION), np.linalg.inv(potential), rtol=1e-13
    )


# --- the Euler-Maruyama chain ---------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.01, 0.3, 0.6])
def test_euler_covariance_is_the_discrete_lyapunov_solution(step):
    direct = solve_discrete_lyapunov(np.eye(2) - step * FRICTION, 2 * step * DIFFUSION)
    np.testing.assert_allclose(langevin.euler_covariance(FRICTION, DIFFUSION, step), direct, rtol=1e-11)


def test_euler_bias_is_first_order_in_the_step():
    exact = langevin.stationary_covariance(FRICTION, DIFFUSION)
    steps = np.geomspace(1e-5, 1e-3, 5)
    gaps = [np.linalg.norm(langevin.euler_covariance(FRICTION, DIFFUSION, h) - exact) for h in steps]
    slope = np.polyfit(np.log(steps), np.log(gaps), 1)[0]
    assert abs(slope - 1) < 1e-3
    np.testing.assert_allclose(langevin.euler_covariance([[2.0]], [[3.0]], 0.25), 1.5 / (1 - 2 * 0.25 / 2), rtol=1e-14)


def test_euler_covariance_keeps_its_digits_at_tiny_steps():
    exact = langevin.stationary_covariance(FRICTION, DIFFUSION)
    np.testing.assert_allclose(langevin.euler_covariance(FRICTION, DIFFUSION, 1e-13), exact, rtol=1e-11)


def test_euler_covariance_keeps_the_digits_of_soft_modes():
    """Twelve decades of rates: in the eigenvectors, every entry against its own closed form."""
    rates, step = np.array([1e-12, 1e-3, 1.0]), 0.7
    reflection = np.eye(3) - 2 / 3  # symmetric and orthogonal
    friction = (reflection * rates) @ reflection  # its soft modes are lost in rounding, unless they are lifted
    friction = (friction + friction.T) / 2
    expected = 1 / (rates[:, None] + rates - step * np.outer(rates, rates))
    diffusion = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    turned = langevin.euler_covariance(np.diag(rates), diffusion, step)
    np.testing.assert_allclose(turned, 2 * diffusion * expected, rtol=1e-14)
    stiffer = rates + 1e-3
    back = langevin.euler_covariance(friction + 1e-3 * np.eye(3), np.eye(3), step)
    exact = (reflection * 2 / (2 * stiffer - step * stiffer**2)) @ reflection
    np.testing.assert_allclose(back, exact, rtol=0, atol=1e-13 * np.abs(exact).max())


def test_euler_limit_counts_complex_rates():
    turning, limit = np.array([[1.0, -3.0], [3.0, 1.0]]), 2 * 1 / (1**2 + 3**2)
    langevin.euler_covariance(turning, np.eye(2), 0.999 * limit)
    with pytest.raises(ValueError, match="step must be below 0.2"):
        langevin.euler_covariance(turning, np.eye(2), limit)


# --- bad input: every public function, every argument ---------------------------------------------

SYSTEM = {"friction": FRICTION, "diffusion": DIFFUSION}
CALLS = {
    langevin.stationary_covariance: SYSTEM,
    langevin.covariance: {"times": [0.0, 1.0], "start": np.eye(2)} | SYSTEM,
    langevin.correlation: {"lags": [0.0, 1.0]} | SYSTEM,
    langevin.circulation: SYSTEM,
    langevin.entropy_production: SYSTEM,
    langevin.checked_system: SYSTEM,
    langevin.euler_covariance: {"step": 0.1} | SYSTEM,
}
BAD = {
    "friction": [*MATRIX, -np.eye(2), np.zeros((2, 2)), np.array([[0.0, 1.0], [-1.0, 0.0]]), np.diag([1.0, -1e-3])],
    "diffusion": [*MATRIX, [[1.0, 0.5], [0.0, 1.0]], np.diag([1.0, -1e-3])],
    "start": [np.zeros(3), np.zeros((3, 4)), [np.nan, 1.0], "origin"],
    "times": AXIS,
    "lags": AXIS,
    "step": NUMBER,
}
CASES = cases(CALLS, BAD)


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    function(**CALLS[function])


@settings(max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    function, name, value = case
    # a good matrix of the wrong size: any partner may be named
    named = "friction|start|diffusion" if name == "diffusion" and np.shape(value) == (3, 3) else None
    refused(CALLS[function], function, name, value, named)


def test_singular_cases_are_refused_by_name():
    with pytest.raises(ValueError, match="^diffusion must be positive definite"):
        langevin.entropy_production(*OSCILLATOR)
    with pytest.raises(ValueError, match="^start must be positive semidefinite"):
        langevin.covariance([1.0], FRICTION, DIFFUSION, -np.eye(2))
    with pytest.raises(ValueError, match="^diffusion must be small enough"):
        langevin.stationary_covariance([[1e-200]], [[1e200]])
    for slow in ([[1, 1], [1, 1 + 1e-14]], [[1, 5], [0, 1e16]]):
        with pytest.raises(ValueError, match="^friction must have no rate so slow"):
            langevin.stationary_covariance(slow, np.eye(2))


@pytest.mark.parametrize("stiff", [1e13, 1e20, 1e200])
def test_parts_of_any_stiffness_are_solved_each_on_its_scale(stiff):
    soft, friction = np.array([[2.0, 1.0], [1.0, 2.0]]), np.zeros((4, 4))
    friction[1::2, 1::2], friction[::2, ::2] = soft, stiff * soft
    found, inverse = langevin.stationary_covariance(friction, np.eye(4)), np.linalg.inv(soft)
    np.testing.assert_allclose(found[1::2, 1::2], inverse, rtol=1e-13)
    np.testing.assert_allclose(found[::2, ::2], inverse / stiff, rtol=1e-13)


def test_units_far_from_one_do_not_matter():
    plain = langevin.stationary_covariance(FRICTION, DIFFUSION)
    np.testing.assert_allclose(
        langevin.stationary_covariance(1e-150 * FRICTION, 1e150 * DIFFUSION), 1e300 * plain, rtol=1e-12
    )
    slow = langevin.covariance([1e150], 1e-150 * FRICTION, DIFFUSION)
    np.testing.assert_allclose(slow, 1e150 * langevin.covariance([1.0], FRICTION, DIFFUSION), rtol=1e-12)

"""lib.foundations.langevin against closed forms, quadrature and SciPy's own solvers; paths within standard errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad_vec
from scipy.linalg import expm, solve_discrete_lyapunov

from lib.foundations import langevin
from lib.foundations.langevin import LangevinSystem

FRICTION = np.array([[1.0, -2.0], [0.5, 3.0]])
DIFFUSION = np.array([[1.0, 0.3], [0.3, 2.0]])
SYSTEM = LangevinSystem(FRICTION, DIFFUSION)
SPRING, DAMPING, TEMPERATURE = 2.0, 0.7, 1.5  # an underdamped oscillator: its diffusion matrix is singular
OSCILLATOR = LangevinSystem([[0.0, -1.0], [SPRING, DAMPING]], np.diag([0.0, DAMPING * TEMPERATURE]))


@st.composite
def systems(draw, symmetric=False):
    """A stable friction and a positive definite diffusion of one to four coordinates."""
    size = draw(st.integers(1, 4))
    square = arrays(float, (size, size), elements=st.floats(-1, 1))
    root, twist, noise = draw(square), draw(square), draw(square)
    turning = 0 if symmetric else twist - twist.T  # the symmetric part is positive: stable
    return LangevinSystem(root @ root.T + 0.3 * np.eye(size) + turning, noise @ noise.T + 0.2 * np.eye(size))


def within(measured, expected, sigmas=4.5):
    off = np.abs(measured.mean - expected) > sigmas * measured.error + 1e-12
    assert not off.any(), f"{measured} against {expected}"


# --- covariances ----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(systems())
def test_stationary_covariance_solves_the_lyapunov_equation_and_is_positive(system):
    sigma, gamma = system.stationary_covariance, system.friction
    np.testing.assert_allclose(gamma @ sigma + sigma @ gamma.T, 2 * system.diffusion, atol=1e-12 * np.abs(sigma).max())
    assert np.array_equal(sigma, sigma.T) and np.linalg.eigvalsh(sigma)[0] > 0


@pytest.mark.parametrize("time", [0.01, 0.7, 20.0])
@pytest.mark.parametrize("system", [SYSTEM, OSCILLATOR])
def test_covariance_is_the_integral(time, system):
    def integrand(u):
        propagator = expm(-system.friction * u)
        return 2 * propagator @ system.diffusion @ propagator.T

    np.testing.assert_allclose(
        system.covariance(time), quad_vec(integrand, 0, time, epsrel=1e-12)[0], rtol=1e-9, atol=1e-14
    )


def test_covariance_in_one_dimension_at_all_scales():
    gamma, strength = 0.8, 1.3
    times = np.geomspace(1e-14, 1e6, 60)
    expected = -strength / gamma * np.expm1(-2 * gamma * times)
    np.testing.assert_allclose(LangevinSystem([[gamma]], [[strength]]).covariance(times)[:, 0, 0], expected, rtol=1e-13)


def test_covariance_relaxes_from_any_start_to_the_stationary_one():
    start = np.array([[2.0, -1.0], [-1.0, 0.5]])
    late = SYSTEM.covariance([0.0, 60.0], start=start)
    np.testing.assert_allclose(late[0], start, atol=1e-15)
    np.testing.assert_allclose(late[1], SYSTEM.stationary_covariance, rtol=1e-12)
    np.testing.assert_allclose(SYSTEM.covariance(0.3, start=late[1]), late[1], rtol=1e-12)


def test_oscillator_obeys_equipartition_and_circulates_from_position_to_velocity():
    np.testing.assert_allclose(
        OSCILLATOR.stationary_covariance, np.diag([TEMPERATURE / SPRING, TEMPERATURE]), atol=1e-14
    )
    np.testing.assert_allclose(OSCILLATOR.circulation, TEMPERATURE * np.array([[0, -1], [1, 0]]), atol=1e-14)


@settings(max_examples=25)
@given(systems(), st.floats(1e-6, 3), st.floats(1e-6, 3))
def test_exact_steps_compose_and_keep_the_stationary_law(system, first, second):
    sigma, together = system.stationary_covariance, first + second
    a, b, both = (system.propagator(h) for h in (first, second, together))
    noise_a, noise_b, noise = (system.covariance(h) for h in (first, second, together))
    np.testing.assert_allclose(b @ a, both, atol=1e-12)
    np.testing.assert_allclose(b @ noise_a @ b.T + noise_b, noise, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(a @ sigma @ a.T + noise_a, sigma, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(system.correlation([first])[0], a @ sigma, rtol=1e-11, atol=1e-12)
    assert np.array_equal(system.correlation(first), system.correlation([first])[0])


def test_short_step_noise_keeps_its_relative_accuracy():
    h = 1e-9
    series = 2 * h * DIFFUSION - h**2 * (FRICTION @ DIFFUSION + DIFFUSION @ FRICTION.T)
    np.testing.assert_allclose(SYSTEM.covariance(h), series, rtol=1e-14)


@pytest.mark.parametrize("stiff", [1e13, 1e20, 1e200])
def test_parts_of_any_stiffness_are_solved_each_on_its_scale(stiff):
    soft, friction = np.array([[2.0, 1.0], [1.0, 2.0]]), np.zeros((4, 4))
    friction[1::2, 1::2], friction[::2, ::2] = soft, stiff * soft
    found, inverse = LangevinSystem(friction, np.eye(4)).stationary_covariance, np.linalg.inv(soft)
    np.testing.assert_allclose(found[1::2, 1::2], inverse, rtol=1e-13)
    np.testing.assert_allclose(found[::2, ::2], inverse / stiff, rtol=1e-13)


def test_units_far_from_one_do_not_matter():
    far = LangevinSystem(1e-150 * FRICTION, 1e150 * DIFFUSION)
    np.testing.assert_allclose(far.stationary_covariance, 1e300 * SYSTEM.stationary_covariance, rtol=1e-12)
    np.testing.assert_allclose(far.covariance(1e150), 1e300 * SYSTEM.covariance(1.0), rtol=1e-12)


def test_matrices_that_do_not_fit_each_other_are_refused_by_name():
    with pytest.raises(ValueError, match="^friction must .* 2"):
        LangevinSystem(np.eye(3), np.eye(2))
    for unstable in (-np.eye(2), [[0.0, 1.0], [-1.0, 0.0]], np.diag([1.0, -1e-3])):
        with pytest.raises(ValueError, match="^friction must have every eigenvalue in the right half plane"):
            LangevinSystem(unstable, np.eye(2))
    for slow in ([[1, 1], [1, 1 + 1e-14]], [[1, 5], [0, 1e16]]):
        with pytest.raises(ValueError, match="^friction must have no rate so slow"):
            LangevinSystem(slow, np.eye(2))
    with pytest.raises(ValueError, match="^diffusion must be small enough"):
        _ = LangevinSystem([[1e-200]], [[1e200]]).stationary_covariance
    with pytest.raises(ValueError, match="^diffusion must be positive definite"):
        _ = OSCILLATOR.entropy_production
    with pytest.raises(ValueError, match="^start must be positive semidefinite"):
        SYSTEM.covariance([1.0], start=-np.eye(2))


# --- circulation and entropy production -----------------------------------------------------------


@settings(max_examples=40)
@given(systems())
def test_two_forms_of_the_entropy_production_agree(system):
    rotation = system.circulation
    assert np.array_equal(rotation, -rotation.T)
    flow = system.friction @ system.stationary_covariance
    np.testing.assert_allclose(flow, system.diffusion + rotation, atol=1e-10)
    other = -np.trace(np.linalg.solve(system.diffusion, system.friction @ rotation))
    assert system.entropy_production >= 0
    np.testing.assert_allclose(system.entropy_production, other, rtol=1e-8, atol=1e-10)


@settings(max_examples=40)
@given(systems(symmetric=True))
def test_symmetric_friction_is_elementwise_in_its_eigenbasis(system):
    rates, basis = np.linalg.eigh(system.friction)
    rotated = basis.T @ system.diffusion @ basis
    expected = (rates[:, None] - rates) / (rates[:, None] + rates) * rotated
    np.testing.assert_allclose(basis.T @ system.circulation @ basis, expected, atol=1e-11)


def test_entropy_production_of_two_decoupled_rates_with_correlated_noise():
    slow, fast, (d11, d12, d22) = 0.4, 2.5, (1.0, 0.6, 1.7)
    expected = d12**2 * (slow - fast) ** 2 / ((slow + fast) * (d11 * d22 - d12**2))
    system = LangevinSystem(np.diag([slow, fast]), [[d11, d12], [d12, d22]])
    np.testing.assert_allclose(system.entropy_production, expected, rtol=1e-13)


@settings(max_examples=30)
@given(systems(), st.floats(-2, 2))
def test_any_circulation_can_be_prescribed_without_changing_the_covariance(system, strength):
    sigma, diffusion = system.stationary_covariance, system.diffusion
    rotation = strength * (np.triu(np.ones_like(sigma), 1) - np.tril(np.ones_like(sigma), -1))
    other = LangevinSystem(np.linalg.solve(sigma, (diffusion + rotation).T).T, diffusion)
    np.testing.assert_allclose(other.stationary_covariance, sigma, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(other.circulation, rotation, atol=1e-7)


def test_detailed_balance_needs_no_commuting_matrices_only_friction_times_diffusion_symmetric():
    potential = np.array([[2.0, 0.5], [0.5, 1.0]])
    reversible = LangevinSystem(DIFFUSION @ potential, DIFFUSION)  # D times a gradient: mobility D
    np.testing.assert_allclose(reversible.circulation, 0, atol=1e-14)
    np.testing.assert_allclose(reversible.entropy_production, 0, atol=1e-24)
    np.testing.assert_allclose(reversible.stationary_covariance, np.linalg.inv(potential), rtol=1e-13)


# --- the Euler-Maruyama chain ---------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.01, 0.3, 0.6])
def test_euler_covariance_is_the_discrete_lyapunov_solution(step):
    direct = solve_discrete_lyapunov(np.eye(2) - step * FRICTION, 2 * step * DIFFUSION)
    np.testing.assert_allclose(SYSTEM.euler_covariance(step), direct, rtol=1e-11)


def test_euler_covariance_keeps_its_digits_at_tiny_steps():
    np.testing.assert_allclose(SYSTEM.euler_covariance(1e-13), SYSTEM.stationary_covariance, rtol=1e-11)


def test_euler_covariance_keeps_the_digits_of_soft_modes():
    """Twelve decades of rates: in the eigenvectors, every entry against its own closed form."""
    rates, step = np.array([1e-12, 1e-3, 1.0]), 0.7
    diffusion = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    found = LangevinSystem(np.diag(rates), diffusion).euler_covariance(step)
    expected = 2 * diffusion / (rates[:, None] + rates - step * np.outer(rates, rates))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    reflection, stiffer = np.eye(3) - 2 / 3, rates + 1e-3  # symmetric and orthogonal
    friction = (reflection * stiffer) @ reflection
    found = LangevinSystem((friction + friction.T) / 2, np.eye(3)).euler_covariance(step)
    exact = (reflection * 2 / (2 * stiffer - step * stiffer**2)) @ reflection
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13 * np.abs(exact).max())


def test_euler_limit_counts_complex_rates():
    turning, limit = LangevinSystem([[1.0, -3.0], [3.0, 1.0]], np.eye(2)), 2 * 1 / (1**2 + 3**2)
    turning.euler_covariance(0.999 * limit)
    with pytest.raises(ValueError, match="step must be below 0.2"):
        turning.euler_covariance(limit)


# --- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "euler"])
def test_stationary_paths_have_the_covariance_and_circulation_of_their_chain(method):
    step = 0.2
    paths = SYSTEM.simulate(step=step, steps=500, replicas=400, rng=1, method=method)
    if method == "exact":
        sigma, late = SYSTEM.stationary_covariance, SYSTEM.correlation(step)
        rotation = (late.T - late) / (2 * step)
    else:
        sigma = SYSTEM.euler_covariance(step)
        rotation = (FRICTION @ sigma - sigma @ FRICTION.T) / 2
    covariance = langevin.estimate_covariance(paths)
    assert (covariance.error < 0.01 * np.diag(sigma).max()).all()
    within(covariance, sigma)
    within(langevin.estimate_circulation(paths, step), rotation)


@pytest.mark.parametrize("start", [np.array([1.0, -2.0]), "stationary"])
def test_first_record_is_the_start_and_the_second_moment_relaxes(start):
    paths = SYSTEM.simulate(step=0.05, steps=8, replicas=20_000, rng=2, start=start, record_every=4)
    first = SYSTEM.stationary_covariance if isinstance(start, str) else np.outer(start, start)
    for n, expected in enumerate(SYSTEM.covariance([0.0, 0.2, 0.4], start=first)):
        within(langevin.estimate_covariance(paths[n : n + 1]), expected)


def test_paths_repeat_with_their_seed_and_do_not_depend_on_how_often_they_are_recorded():
    run = {"step": 0.1, "steps": 12, "replicas": 5}
    every = SYSTEM.simulate(rng=3, **run)
    np.testing.assert_array_equal(every[::4], SYSTEM.simulate(rng=3, record_every=4, **run))
    assert np.abs(every - SYSTEM.simulate(rng=4, **run)).max() > 0.1


def test_singular_noise_moves_only_the_velocity_of_the_oscillator():
    euler = OSCILLATOR.simulate(step=0.1, steps=1, replicas=50, rng=5, start=[1.0, 0.0], method="euler")
    np.testing.assert_allclose(euler[1, :, 0], 1.0, atol=1e-12)
    assert euler[1, :, 1].std() > 0.1


def test_strong_error_of_euler_in_one_dimension():
    """The stationary joint law of the two chains is a 2 x 2 discrete Lyapunov equation, here solved by hand."""
    gamma, strength, step = 1.0, 1.0, 0.4
    a, b = np.exp(-gamma * step), 1 - gamma * step
    crossed = 2 * strength * (1 - a) / (gamma * (1 - a * b))
    expected = strength / gamma * (1 + 1 / (1 - gamma * step / 2)) - 2 * crossed
    run = {"step": step, "steps": 60, "record_every": 60, "replicas": 20_000, "rng": 6}
    exact, euler = LangevinSystem([[gamma]], [[strength]]).simulate(method="both", **run)
    within(langevin.estimate_covariance((exact - euler)[1:]), expected)
    within(langevin.estimate_covariance(exact[1:]), strength / gamma)
    np.testing.assert_array_equal(exact[0], euler[0])


@pytest.mark.parametrize("balanced, overstated", [(False, (0.8, 1.25)), (True, (1.0, 3.0))])
def test_entropy_production_is_measured_without_bias_and_its_error_is_not_understated(balanced, overstated):
    step, repeats = 0.02, 100
    friction = DIFFUSION @ np.array([[2.0, 0.5], [0.5, 1.0]]) if balanced else FRICTION
    system = LangevinSystem(friction, DIFFUSION)
    sigma = system.euler_covariance(step)
    rotation = (friction @ sigma - sigma @ friction.T) / 2
    expected = np.trace(np.linalg.solve(sigma, rotation.T) @ np.linalg.solve(DIFFUSION, rotation))
    run = {"step": step, "steps": 100, "replicas": 60, "method": "euler"}
    films = (system.simulate(rng=seed, **run) for seed in range(repeats))
    rates, errors = np.array([langevin.estimate_entropy_production(film, step, DIFFUSION) for film in films]).T
    scatter = rates.std(ddof=1)
    assert abs(rates.mean() - expected) < 3.5 * scatter / np.sqrt(repeats)
    assert np.max(np.abs(rates - expected) / errors) < 4.5  # also where the measured Q happens to be near zero
    ratio = np.sqrt(np.mean(errors**2)) / scatter  # 1 ± 0.07; too large by design where Ṡ = 0
    assert overstated[0] < ratio < overstated[1]


def test_estimators_on_two_replicas_by_hand():
    paths = np.array([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]]])  # two quarter turns, of radius 1 and 2
    mean, error = langevin.estimate_circulation(paths, 0.5)
    np.testing.assert_allclose(mean, [[0, 2.5], [-2.5, 0]])  # areas 1/2 and 2, in a time 1/2
    np.testing.assert_allclose(error, [[0, 1.5], [1.5, 0]])
    np.testing.assert_allclose(langevin.estimate_covariance(paths).mean, np.eye(2) * 1.25)


def test_an_unstable_euler_chain_grows_and_then_refuses():
    run = {"step": 2.5, "replicas": 4, "rng": 8, "start": [1.0], "method": "euler"}
    system = LangevinSystem([[1.0]], [[1.0]])
    assert np.abs(system.simulate(steps=40, **run)[-1]).min() > 1.5**30
    with pytest.raises(ValueError, match="step must keep the Euler chain inside the floating-point range"):
        system.simulate(steps=4000, **run)


def test_paths_that_do_not_fit_are_refused_by_name():
    run = {"step": 0.1, "steps": 4, "replicas": 3, "rng": 1}
    with pytest.raises(ValueError, match="^record_every must divide steps = 4"):
        SYSTEM.simulate(record_every=3, **run)
    for start in (np.zeros(3), np.zeros((3, 4)), "origin"):
        with pytest.raises(ValueError, match="^start must "):
            SYSTEM.simulate(start=start, **run)
    for few in (np.ones((4, 1, 2)), np.ones((0, 5, 2)), np.ones((4, 5, 0))):
        with pytest.raises(ValueError, match="^paths must hold at least 1 records of at least 2 replicas"):
            langevin.estimate_covariance(few)
    with pytest.raises(ValueError, match="^paths must hold at least 2 records"):
        langevin.estimate_circulation(np.ones((1, 4, 2)), 0.1)
    with pytest.raises(ValueError, match="^paths must span all directions"):
        langevin.estimate_entropy_production(np.zeros((3, 4, 2)), 0.1, np.eye(2))

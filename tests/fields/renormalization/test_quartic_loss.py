"""quartic_loss: predictions against quadrature, the sampler against exact posteriors, and both together."""

import numpy as np
import pytest
from bad_input import COUNT, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logsumexp

from lib.fields.kernels import effective_ridge
from lib.fields.renormalization import decimation, quartic_loss, ridge_flow

LEVELS, COUNTS = [0.5, 0.0025], [1, 400]  # one strong mode and a tail of total weight 1
POINTS = [(0.0, 20.0), (0.25, 20.0), (0.5, 20.0), (1.0, 40.0)]  # u, T


@settings(deadline=None, max_examples=40)
@given(
    cut=st.integers(0, 2),
    samples=st.floats(1, 1e4),
    ridge=st.floats(0.1, 100),
    quartic=st.floats(0, 5),
    power=st.floats(0, 9),
)
def test_one_loop_solves_its_equations(cut, samples, ridge, quartic, power):
    target = [power, power / 2]
    found = quartic_loss.one_loop(LEVELS, samples, ridge, quartic, cut, multiplicities=COUNTS, target_power=target)
    lam, counts = np.array(LEVELS), np.array(COUNTS)
    variance = (counts * lam * found.kappa / (lam + found.kappa)).sum()
    assert found.variance == pytest.approx(variance, rel=1e-10)
    discrepancy = variance + ((found.kappa / (lam + found.kappa)) ** 2 * target).sum()
    assert found.discrepancy == pytest.approx(discrepancy, rel=1e-10)
    raised = ridge / (1 + 6 * quartic * discrepancy) + (counts * lam)[cut:].sum()
    assert (found.ridge, samples * found.kappa) == pytest.approx((raised, raised), rel=1e-9)
    np.testing.assert_allclose(found.learnability, lam[:cut] / (lam[:cut] + found.kappa), rtol=1e-12)


@settings(deadline=None, max_examples=30)
@given(cut=st.integers(0, 2), samples=st.floats(1, 1e4), ridge=st.floats(0.1, 100))
def test_one_loop_without_a_quartic_part_is_plain_decimation(cut, samples, ridge):
    found = quartic_loss.one_loop(LEVELS, samples, ridge, 0.0, cut, multiplicities=COUNTS)
    expected = decimation.equivalent_kernel(LEVELS, samples, ridge, cut, multiplicities=COUNTS)
    assert found.kappa == pytest.approx(float(expected), rel=1e-12)
    with_target = quartic_loss.one_loop(
        LEVELS, samples, ridge, 0.0, cut, multiplicities=COUNTS, target_power=[1.0, 0.0]
    )
    assert with_target.kappa == found.kappa  # the target acts through the quartic part alone


def test_one_loop_gives_the_learnabilities_of_the_reference_setting():
    found = [
        float(quartic_loss.one_loop(LEVELS, 100, ridge, u, 1, multiplicities=COUNTS).learnability[0])
        for u, ridge in POINTS
    ]
    np.testing.assert_allclose(found, [0.704, 0.850, 0.893, 0.883], atol=1.1e-3)


def test_the_first_order_in_u_is_that_of_quadrature():
    """One mode and its averaged action, by quadrature: its own variance counts three times, not once."""
    lam, samples, ridge, v = 0.02, 1000.0, 40.0, 1.5  # P λ/T = 1/2; ⟨φ⁴⟩ = 3
    kappa = ridge / samples
    f = np.linspace(-3, 3, 60_001)
    values = []
    for u in (0.0, 1e-5):
        action = f**2 / (2 * lam) + samples * ((f - v) ** 2 + 3 * u * (f - v) ** 4) / (2 * ridge)
        density = np.exp(action.min() - action)
        values.append((density @ f) / density.sum() / v)
    slope = (values[1] - values[0]) / 1e-5
    learned, fluctuation = lam / (lam + kappa), lam * kappa / (lam + kappa)
    response = learned * (1 - learned)  # -dL/d ln κ
    with_target = 6 * (fluctuation + (1 - learned) ** 2 * v**2) * response
    assert slope == pytest.approx(with_target + 6 * 2 * fluctuation * response, rel=1e-3)
    loops = [
        quartic_loss.one_loop([lam], samples, ridge, u, 1, target_power=[v**2]).learnability[0] for u in (0.0, 1e-5)
    ]
    assert (loops[1] - loops[0]) / 1e-5 == pytest.approx(with_target, rel=1e-3)


@settings(deadline=None, max_examples=25)
@given(delta=st.floats(-6, 6), ridge=st.floats(0.1, 50), quartic=st.floats(0, 20), variance=st.floats(0.01, 5))
def test_the_action_of_one_sample_is_its_integral(delta, ridge, quartic, variance):
    def exponent(zeta):
        total = delta + zeta
        return (total**2 + quartic * total**4) / (2 * ridge) + zeta**2 / (2 * variance)

    grid = np.linspace(-abs(delta) - 1, abs(delta) + 1, 4001)
    lowest, place = exponent(grid).min(), grid[exponent(grid).argmin()]
    integral = quad(
        lambda z: np.exp(lowest - exponent(z)),
        place - 30,
        place + 30,
        points=[place - 0.5, place, place + 0.5],
        limit=500,
    )[0]
    expected = lowest - np.log(integral / np.sqrt(2 * np.pi * variance))
    found = quartic_loss._site_action(np.array([delta, -delta]), ridge, quartic, variance)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_action_without_a_quartic_part_is_the_averaged_vertex():
    delta = np.array([[-3.0], [0.0], [8.0]])
    found = quartic_loss._site_action(delta[:, 0], 0.3, 0.0, 2.0)
    np.testing.assert_allclose(found, -np.log(ridge_flow.averaged_vertex(delta, 0.3, 2.0)), rtol=1e-12)


def test_first_order_in_u_is_the_loop():
    """At large T,  T d²U/dδ² → 1 + 6us  at δ = 0, corrected as 1/T: the loop is the first term."""
    u, s, h = 0.3, 1.5, 0.05

    def stiffness(ridge):
        values = quartic_loss._site_action(np.array([-2 * h, -h, 0.0, h, 2 * h]), ridge, u, s)
        return ridge * (values @ [-1, 16, -30, 16, -1]) / (12 * h**2)

    missing = [1 - stiffness(ridge) / (1 + 6 * u * s) for ridge in (400, 1600)]
    assert 0 < missing[1] < missing[0] < 0.05
    assert missing[0] / missing[1] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(("samples", "ridge", "amplitude"), [(100, 20.0, 1.0), (3, 0.5, 4.0), (1e4, 1.0, 0.1)])
def test_site_learnability_of_a_quadratic_loss_is_linear_in_the_target(samples, ridge, amplitude):
    found = quartic_loss.site_learnability(0.5, samples, ridge, 0.0, 1.0, amplitude=amplitude)
    assert found == pytest.approx(0.5 / (0.5 + (ridge + 1) / samples), rel=1e-6)


def test_site_learnability_is_the_mean_of_its_density():
    """Straight sums over f and φ, with the action of one sample taken from quadrature on a wide grid of ζ."""
    lam, samples, ridge, u, s, v = 0.5, 20, 8.0, 1.0, 1.0, 1.5
    phi, zeta, f = np.linspace(-7, 7, 141), np.linspace(-8, 8, 401), np.linspace(-1.5, 3.5, 201)
    weights, prior = np.exp(-(phi**2) / 2), np.exp(-(zeta**2) / (2 * s))

    def loss(delta):
        total = delta[:, None] + zeta
        return -logsumexp(-(total**2 + u * total**4) / (2 * ridge), axis=-1, b=prior)

    action = np.array([g**2 / (2 * lam) + samples * (loss((g - v) * phi) @ weights) / weights.sum() for g in f])
    density = np.exp(action.min() - action)
    found = quartic_loss.site_learnability(lam, samples, ridge, u, s, amplitude=v)
    assert found == pytest.approx(density @ f / density.sum() / v, rel=1e-5)
    assert (
        quartic_loss.site_learnability(lam, samples, ridge, u, s, amplitude=3) > found
    )  # a quartic loss learns large targets better


# --- the experiment -------------------------------------------------------------------------------


def test_the_sampler_on_one_sample_and_one_weak_mode_is_exact():
    """P = 1: the posterior mean of f by a double sum over (f, g), averaged over the features φ and ψ."""
    lam, weak, ridge, u = 0.8, 0.6, 0.3, 0.7
    f, g = np.linspace(-5, 5, 121), np.linspace(-5, 5, 101)
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    mean = 0.0
    for phi, w in zip(nodes, weights / weights.sum()):
        delta = (f[:, None] - 1) * phi + g * np.sqrt(weak) * nodes[:, None, None]  # (24, F, G)  ψ, f, g
        action = f[:, None] ** 2 / (2 * lam) + g**2 / 2 + (delta**2 + u * delta**4) / (2 * ridge)
        density = np.exp(-action)
        mean += w * (weights / weights.sum()) @ ((density * f[:, None]).sum((1, 2)) / density.sum((1, 2)))
    found = quartic_loss.measure(lam, [weak], 1, ridge, u, rng=5, datasets=600, steps=150)
    assert abs(found.learnability - mean) < 4.5 * found.error and found.error < 0.02


def test_the_sampler_of_a_quadratic_loss_is_the_regression():
    """Same law, other data: learnability of exact regressions with all modes against chains, in standard errors."""
    lam, tail, samples, ridge = 0.5, np.array([0.05, 0.01]), 12, 0.7
    counts = np.array([10, 50])
    random = np.random.default_rng(2)
    levels = np.concatenate([[lam], np.repeat(tail, counts)])
    exact = []
    for _ in range(400):
        features = random.standard_normal((samples, levels.size))
        exact.append(decimation.coefficients(features, levels, features[:, 0], ridge)[0])
    found = quartic_loss.measure(
        lam, tail, samples, ridge, 0.0, rng=3, counts=counts, datasets=300, steps=100, amplitude=2.0
    )
    error = np.hypot(np.std(exact) / 20, found.error)
    assert abs(found.learnability - np.mean(exact)) < 4.5 * error and error < 0.012
    kappa = effective_ridge.solve(np.array([lam, *tail]), samples, ridge=ridge, multiplicities=np.array([1, *counts]))
    assert abs(found.learnability - lam / (lam + kappa)) < 4.5 * found.error + 5 / samples**2


def test_one_loop_is_within_two_percent_of_the_sampler_and_the_site_action_within_its_error():
    quartic, ridge = POINTS[2]
    found = quartic_loss.measure(
        0.5, [0.0025], 100, ridge, quartic, rng=7, counts=[400], datasets=64, steps=100, burn_in=60
    )
    loop = float(quartic_loss.one_loop(LEVELS, 100, ridge, quartic, 1, multiplicities=COUNTS).learnability[0])
    assert abs(found.learnability - loop) < 0.02 * loop + 3 * found.error
    assert abs(found.learnability - quartic_loss.site_learnability(0.5, 100, ridge, quartic, 1.0)) < 4 * found.error
    assert 0.6 < found.acceptance < 0.95 and found.values.shape == (64,)
    bare = 0.5 / (0.5 + ridge / 100)  # no tail, no quartic part
    assert found.learnability - bare > 20 * found.error


def test_the_potential_and_its_gradient():
    random = np.random.default_rng(0)
    features, roots = random.standard_normal((2, 3)), random.standard_normal((2, 3, 3))
    potential = quartic_loss._potential(features, roots, 0.7, 0.4, 0.9, 1.3)
    x, step = random.standard_normal((2, 4)), 1e-5
    gradient = potential(x)[1]
    for i in range(4):
        shift = step * np.eye(4)[i]
        np.testing.assert_allclose(
            gradient[:, i], (potential(x + shift)[0] - potential(x - shift)[0]) / (2 * step), rtol=1e-6
        )


def test_the_values_of_the_weak_modes_have_their_covariance():
    """Gram matrices of Gaussian features: mean Σ g λ on the diagonal, off it zero with variance Σ g λ²."""
    roots = quartic_loss._tail_roots(np.array([0.3, 0.05]), np.array([2, 20]), 3, 4000, np.random.default_rng(4))
    gram = roots @ np.swapaxes(roots, 1, 2)
    total, squares = 2 * 0.3 + 20 * 0.05, 2 * 0.09 + 20 * 0.0025
    assert np.abs(gram[:, 0, 0].mean() - total) < 4 * np.sqrt(2 * squares / 4000)
    assert np.abs(gram[:, 0, 1].mean()) < 4 * np.sqrt(squares / 4000)
    assert gram[:, 0, 1].var() == pytest.approx(squares, rel=0.2)


def test_the_same_seed_gives_the_same_numbers():
    one, two, other = (quartic_loss.measure(0.5, [0.1], 3, 1.0, 0.2, seed, datasets=4, steps=30) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values, two.values)
    assert one.learnability != other.learnability


# --- bad input: every public function, every argument ---------------------------------------------

CALLS = {
    quartic_loss.one_loop: {
        "eigenvalues": LEVELS,
        "samples": 9,
        "ridge": 1.0,
        "quartic": 0.1,
        "cut": 1,
        "multiplicities": COUNTS,
    }
    | {"target_power": [1.0, 0.0]},
    quartic_loss.site_learnability: {
        "eigenvalue": 0.5,
        "samples": 9,
        "ridge": 1.0,
        "quartic": 0.1,
        "variance": 0.5,
        "amplitude": 1.0,
    },
    quartic_loss.measure: {
        "eigenvalue": 0.5,
        "tail": [0.2, 0.1],
        "samples": 2,
        "ridge": 1.0,
        "quartic": 0.1,
        "rng": 1,
        "counts": [1, 2],
    }
    | {"amplitude": 1.0, "datasets": 4, "steps": 60, "burn_in": 30},
}
POSITIVE = [0, -1.0, np.nan, np.inf, "1", None, [0.1]]
BAD = {
    "eigenvalues": [[], [1.0, 2.0], [0.0, 0.0], [-1.0, -2.0], [1.0, np.nan], [[2.0, 1.0]], 1.0, "a", None],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [1, 1, 1]],
    "target_power": [[], [-1, 1], [1, np.nan], 1.0, "a", [1, 1, 1]],
    "cut": [-1, 3, 1.0, "1", None],
    "eigenvalue": POSITIVE,
    "samples": [0, -1, 2.5e400, np.nan, "1", None, [1]],
    "ridge": POSITIVE,
    "variance": POSITIVE,
    "amplitude": POSITIVE,
    "quartic": [-0.1, np.nan, np.inf, "1", None, [0.1]],
    "discrepancies": [[np.nan], "a", None, [1j], 1e200],
    "tail": [[], [0.0, 0.0], [-0.1, 0.1], [np.nan, 1.0], "a", None, 0.1],
    "counts": [[1], [0, 1], [1.5, 1], [1e19, 1], "a"],
    "rng": SEED,
    "datasets": [1, *COUNT],
    "steps": [7, *COUNT],
    "burn_in": [-1, 2.0, "2", None, True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_a_samples_count_is_whole_for_the_experiment():
    with pytest.raises(ValueError, match="^samples must be an integer"):
        quartic_loss.measure(0.5, [0.1], 2.5, 1.0, 0.1, 1)

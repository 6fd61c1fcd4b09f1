"""quartic_loss: predictions against quadrature, the sampler against exact posteriors, and both together."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logsumexp

from lib.common.spectrum import Spectrum
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.gp_regression import GaussianProcess
from lib.fields.renormalization import decimation, quartic_loss

SPECTRUM = Spectrum([0.5, 0.0025], [1, 400])  # a tail of total weight 1


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
    found = quartic_loss.one_loop(SPECTRUM, samples, ridge, quartic, cut, target_power=target)
    lam, counts = SPECTRUM.eigenvalues, SPECTRUM.multiplicities
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
    found = quartic_loss.one_loop(SPECTRUM, samples, ridge, 0.0, cut)
    expected = decimation.running_ridge(SPECTRUM, ridge, cut) / samples
    assert found.kappa == pytest.approx(expected, rel=1e-12)
    with_target = quartic_loss.one_loop(SPECTRUM, samples, ridge, 0.0, cut, target_power=[1.0, 0.0])
    assert with_target.kappa == found.kappa  # the target acts through the quartic part alone


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
    loops = [quartic_loss.one_loop([lam], samples, ridge, u, 1, target_power=[v**2]) for u in (0.0, 1e-5)]
    assert (loops[1].learnability[0] - loops[0].learnability[0]) / 1e-5 == pytest.approx(with_target, rel=1e-3)


@settings(deadline=None, max_examples=25)
@example(delta=6.0, ridge=0.1, quartic=20.0, variance=0.01)  # a narrow peak, far from zero
@given(delta=st.floats(-6, 6), ridge=st.floats(0.1, 50), quartic=st.floats(0, 20), variance=st.floats(0.01, 5))
def test_the_action_of_one_sample_is_its_integral(delta, ridge, quartic, variance):
    def exponent(zeta):
        total = delta + zeta
        return (total**2 + quartic * total**4) / (2 * ridge) + zeta**2 / (2 * variance)

    grid = np.linspace(-abs(delta) - 1, abs(delta) + 1, 4001)
    lowest, place = exponent(grid).min(), grid[exponent(grid).argmin()]
    ways = {"points": [place - 0.5, place, place + 0.5], "limit": 500}
    integral = quad(lambda z: np.exp(lowest - exponent(z)), place - 30, place + 30, **ways)[0]
    expected = lowest - np.log(integral / np.sqrt(2 * np.pi * variance))
    found = quartic_loss._site_action(np.array([delta, -delta]), ridge, quartic, variance)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_action_without_a_quartic_part_is_the_averaged_vertex():
    delta = np.array([-3.0, 0.0, 8.0])
    found = quartic_loss._site_action(delta, 0.3, 0.0, 2.0)
    np.testing.assert_allclose(found, (np.log(2.3 / 0.3) + delta**2 / 2.3) / 2, rtol=1e-12)


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
    # A quartic loss learns large targets better.
    assert quartic_loss.site_learnability(lam, samples, ridge, u, s, amplitude=3) > found


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
    found = quartic_loss.measure(lam, [weak], 1, ridge, u, rng=5, replicas=600, steps=150).learnability
    assert abs(found.sigmas(mean)) < 4.5 and found.error < 0.02


def test_the_sampler_of_a_quadratic_loss_is_the_regression():
    """Same law, other data: learnability of exact regressions with all modes against chains, in standard errors."""
    lam, tail, samples, ridge, exact = 0.5, Spectrum([0.05, 0.01], [10, 50]), 12, 0.7, []
    random, levels = np.random.default_rng(2), np.repeat([lam, 0.05, 0.01], [1, 10, 50])
    for _ in range(400):
        features = random.standard_normal((samples, levels.size))
        process = GaussianProcess((features * levels) @ features.T, ridge)
        exact.append(lam * features[:, 0] @ process.weights(features[:, 0]))
    found = quartic_loss.measure(
        lam, tail, samples, ridge, 0.0, rng=3, replicas=300, steps=100, amplitude=2.0
    ).learnability
    error = np.hypot(np.std(exact) / 20, found.error)
    assert abs(found.mean - np.mean(exact)) < 4.5 * error and error < 0.012
    kappa = RidgeTheory(levels, samples, ridge=ridge).kappa
    assert abs(found.mean - lam / (lam + kappa)) < 4.5 * found.error + 5 / samples**2


def test_the_potential_and_its_gradient():
    random = np.random.default_rng(0)
    features, roots = random.standard_normal((2, 3)), random.standard_normal((2, 3, 3))
    potential = quartic_loss._potential(features, roots, 0.7, 0.4, 0.9, 1.3)
    x, step = random.standard_normal((2, 4)), 1e-5
    gradient = potential(x)[1]
    for i in range(4):
        there, back = (potential(x + sign * step * np.eye(4)[i])[0] for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, i], (there - back) / (2 * step), rtol=1e-6)


def test_the_values_of_the_weak_modes_have_their_covariance():
    """Gram matrices of Gaussian features: mean Σ g λ on the diagonal, off it zero with variance Σ g λ²."""
    roots = quartic_loss._tail_roots(np.array([0.3, 0.05]), np.array([2, 20]), 3, 4000, np.random.default_rng(4))
    gram = roots @ np.swapaxes(roots, 1, 2)
    total, squares = 2 * 0.3 + 20 * 0.05, 2 * 0.09 + 20 * 0.0025
    assert np.abs(gram[:, 0, 0].mean() - total) < 4 * np.sqrt(2 * squares / 4000)
    assert np.abs(gram[:, 0, 1].mean()) < 4 * np.sqrt(squares / 4000)
    assert gram[:, 0, 1].var() == pytest.approx(squares, rel=0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quartic_loss.one_loop([1.0, 2.0], 9, 1.0, 0.1, 1), "spectrum must have its eigenvalues in descending"),
        (lambda: quartic_loss.one_loop(SPECTRUM, 9, 1.0, 0.1, 3), "cut must be at most the number of levels, 2"),
        (
            lambda: quartic_loss.one_loop(SPECTRUM, 9, 1.0, 0.1, 1, target_power=[1.0]),
            "target_power must have one axis",
        ),
        (lambda: quartic_loss.measure(0.5, [0.0, 0.0], 2, 1.0, 0.1, 1), "tail must be a Spectrum"),
        (lambda: quartic_loss.measure(0.5, Spectrum([0.1], [1.5]), 2, 1.0, 0.1, 1), "tail must hold whole numbers"),
        (lambda: quartic_loss.measure(0.5, [0.1], 2.5, 1.0, 0.1, 1), "samples must be an integer"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

"""two_layers against differences, SciPy's densities, quadrature, Gibbs sampling, the exact chain, Monte Carlo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf
from scipy.stats import geninvgauss, multivariate_normal, norm
from sklearn.linear_model import Ridge

from lib.common import hmc
from lib.fields.networks import _readouts
from lib.fields.networks._units import units
from lib.fields.networks.prior import Prior
from lib.fields.networks.two_layers import TwoLayer, harmonic_variance
from lib.foundations import langevin

RNG = np.random.default_rng(5)
X, Y, POINTS = RNG.standard_normal((6, 3)), RNG.standard_normal(6), RNG.standard_normal((4, 3))
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0), "linear": lambda u: u}
activations = pytest.mark.parametrize("activation", PHI)
VARIANCES = {"weight_variance": 0.8, "readout_variance": 1.3}


def net(activation, x, y, ridge, **prior):
    return TwoLayer(Prior(activation, **prior), x, y, ridge)


# --- the density and its gradient -----------------------------------------------------------------


@activations
@settings(max_examples=15)
@given(st.integers(0, 5), st.integers(1, 4), st.integers(1, 6), st.integers(0, 99), st.floats(0.05, 10))
def test_gradient_is_the_finite_difference(activation, count, dimension, width, seed, ridge):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((count, dimension)), rng.standard_normal(count)
    w = rng.standard_normal((2, width, dimension))
    network = net(activation, x, y, ridge, weight_variance=0.7, readout_variance=1.9)
    gradient = network.potential(w)[1]
    direction, h = rng.standard_normal(w.shape), 1e-5
    there, back = (network.potential(w + sign * h * direction)[0] for sign in (1, -1))
    if activation != "relu" or not count or np.abs(x @ w.swapaxes(1, 2)).min() > 20 * h:  # away from the kink
        along = (gradient * direction).sum(axis=(1, 2))
        np.testing.assert_allclose(along, (there - back) / (2 * h), rtol=1e-6, atol=1e-6)


@activations
def test_the_density_is_the_prior_times_the_gaussian_density_of_the_targets(activation):
    w = RNG.standard_normal((5, 7, 3))
    value, _ = net(activation, X, Y, 0.3, weight_variance=0.7, readout_variance=1.9).potential(w)
    expected = []
    for one in w:
        features = PHI[activation](X @ one.T)
        evidence = multivariate_normal.logpdf(Y, cov=1.9 / 7 * features @ features.T + 0.3 * np.eye(6))
        expected.append(-evidence - multivariate_normal.logpdf(one.ravel(), cov=0.7 / 3 * np.eye(21)))
    np.testing.assert_allclose(value - value[0], np.array(expected) - expected[0], rtol=1e-11, atol=1e-11)


def test_neurons_may_change_places_and_an_odd_one_its_sign():
    w = RNG.standard_normal((1, 4, 3))
    turned = w[:, [2, 0, 3, 1]] * np.array([1, -1, 1, -1])[:, None]
    one, other = (net("erf", X, Y, 0.3).potential(v)[0] for v in (w, turned))
    assert one == pytest.approx(other, rel=1e-13)


@activations
def test_the_mean_given_the_weights_is_ridge_regression_on_the_features(activation):
    w = RNG.standard_normal((3, 5, 3))
    found = net(activation, X, Y, 0.3, readout_variance=1.9).predict(w, POINTS)
    for i in range(3):
        regression = Ridge(alpha=0.3 * 5 / 1.9, fit_intercept=False).fit(PHI[activation](X @ w[i].T), Y)
        np.testing.assert_allclose(found[i], regression.predict(PHI[activation](POINTS @ w[i].T)), rtol=1e-9)


def test_a_network_lost_in_rounding_does_not_stop_the_others():
    network = net("relu", np.ones((2, 3)), [1.0, 1.0], 1e-3)
    start = np.stack([np.full((4, 3), 1e12), np.full((4, 3), 0.1)])
    lost = _readouts.evaluated(start, units("relu"), network.inputs[:, None], np.ones(2), 1e-3, 1.0, 1.0)
    alone = network.potential(start[1:])
    assert lost[0][0] == np.inf and lost[0][1] == pytest.approx(alone[0][0], rel=1e-13)
    chains = net("relu", np.ones((2, 3)), [1.0, 1.0], 1e-10).hmc(4, 6, 30, 3, burn_in=30)
    assert np.isfinite(chains.samples).all()


# --- the samples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_one_neuron_has_the_moments_of_quadrature(activation):
    x, y, ridge, point = np.array([0.5, -1.0, 2.0]), np.array([0.4, -0.8, 1.5]), 0.2, 0.7

    def weight(w):
        f, g = PHI[activation](w * x), PHI[activation](w * point)
        matrix = 1.3 * np.outer(f, f) + ridge * np.eye(3)
        density = np.exp(-(w**2) / (2 * 0.8)) * multivariate_normal.pdf(y, cov=matrix)
        return density, 1.3 * g * f @ np.linalg.solve(matrix, y)

    total, square, mean = (
        quad(lambda w: part(w) * weight(w)[0], -9, 9, points=[0])[0]
        for part in (lambda w: 1, lambda w: w**2, lambda w: weight(w)[1])
    )

    network = net(activation, x[:, None], y, ridge, weight_variance=0.8, readout_variance=1.3)
    chains = network.hmc(
        1, 60, 500, 4, observable=lambda w: np.column_stack([w[:, 0, 0] ** 2, network.predict(w, [[point]])])
    )
    found = hmc.summary(chains.samples)
    assert np.all(np.abs(found.mean - np.array([square, mean]) / total) < 4 * found.error)
    assert np.all(found.error < 0.02)


def test_without_data_the_weights_have_their_prior():
    free = net("erf", np.zeros((0, 4)), [], 0.1, weight_variance=0.6)
    squares = free.hmc(5, 20, 400, 6, observable=lambda w: 4 * w**2).samples
    found = hmc.summary(squares.mean(axis=(2, 3)))
    assert abs(found.mean - 0.6) < 4 * found.error and found.error < 0.01


# --- one neuron among many, and the mean field ----------------------------------------------------


@activations
def test_the_gain_is_the_ratio_of_two_evidences(activation):
    network, w = net(activation, X, Y, 0.3, **VARIANCES), RNG.standard_normal((5, 3))
    others = network.prior.kernel(X) * 0.9
    for kernel in (None, others):
        rest = (network.prior.kernel(X) if kernel is None else kernel) + 0.3 * np.eye(6)
        with_it = [multivariate_normal.logpdf(Y, cov=rest + 1.3 / 8 * np.outer(f, f)) for f in PHI[activation](w @ X.T)]
        expected = np.array(with_it) - multivariate_normal.logpdf(Y, cov=rest)
        np.testing.assert_allclose(network.log_gain(w, 8, kernel=kernel), expected, rtol=1e-9, atol=1e-10)


def test_labels_of_the_networks_own_prior_gain_nothing_on_average():
    """⟨p(w|y)⟩ over y ~ N(0, A₋) is the prior: the mean of the exponential of the gain is one."""
    w, kernel, draws = RNG.standard_normal((1, 3)), Prior("erf").kernel(X), np.random.default_rng(3)
    labels = draws.multivariate_normal(np.zeros(6), kernel + 0.3 * np.eye(6), 4000)
    gains = np.exp([net("erf", X, y, 0.3).log_gain(w, 4, kernel=kernel)[0] for y in labels])
    assert abs(gains.mean() - 1) < 4 * gains.std() / np.sqrt(4000) < 0.1


def test_the_mean_field_of_one_example_is_a_scalar_root():
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    squares = 0.2 * erf(np.sqrt(0.8) * nodes) ** 2  # s_a² φ²

    def kernel(t):
        tilted = weights * np.exp(squares * t**2 / (2 * 5))
        return tilted @ squares / tilted.sum(), tilted

    t = brentq(lambda t: (kernel(t)[0] + 0.1) * t - 2.0, 0, 30, xtol=1e-13)
    law = net("erf", [[1.0]], [2.0], 0.1, weight_variance=0.8, readout_variance=0.2).mean_field(5, 400_000, 1)
    np.testing.assert_allclose(law.dual, t, rtol=0.01)
    expected = kernel(t)[1] @ nodes**2 / kernel(t)[1].sum()
    np.testing.assert_allclose(law.shares @ law.weights[:, 0] ** 2 / 0.8, expected, rtol=0.01)
    assert expected > 1.3


@activations
def test_the_mean_field_is_self_consistent_and_lazy_in_wide_networks(activation):
    network = net(activation, X, 2 * Y, 0.3, **VARIANCES)
    law, lazy = (network.mean_field(width, 2000, 4) for width in (20.0, 1e9))
    features = PHI[activation](law.weights @ X.T)
    np.testing.assert_allclose(law.kernel, 1.3 * (features.T * law.shares) @ features, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((law.kernel + 0.3 * np.eye(6)) @ law.dual, 2 * Y, rtol=1e-8, atol=1e-8)
    tilt = np.exp(1.3 / 40 * (features @ law.dual) ** 2)
    np.testing.assert_allclose(law.shares, tilt / tilt.sum(), rtol=1e-7)
    np.testing.assert_allclose(2000 * lazy.shares, 1, atol=1e-5)
    np.testing.assert_allclose(np.cov(lazy.weights.T), 0.8 / 3 * np.eye(3), atol=0.05)


def test_one_linear_unit_obeys_a_generalized_inverse_gaussian_law():
    """Of N units on one input, T → 0:  R/σ_w² with R = Σw²/N  and  g = y²/(N s_a² σ_w²)."""
    width, g = 5, 1.0
    network = net("linear", [[1.0]], [np.sqrt(g * width)], 1e-4)
    radius = network.hmc(width, 60, 400, 3, observable=lambda w: (w**2).mean(axis=(1, 2))).samples
    found = hmc.summary(radius)
    law = geninvgauss((width - 1) / 2, width * np.sqrt(g), scale=np.sqrt(g))
    assert abs(found.mean - law.mean()) < 4 * found.error < 0.1


# --- Langevin training ----------------------------------------------------------------------------

TRAINED = net("erf", X[:4, :2], Y[:4], 0.3, **VARIANCES)


@activations
def test_the_joint_density_is_prior_times_likelihood_with_its_finite_differences(activation):
    theta, network = RNG.standard_normal((5, 6, 4)), net(activation, X, Y, 0.3, **VARIANCES)
    value, gradient = network.joint_potential(theta)
    w, a = theta[..., :3], theta[..., 3]
    outputs = np.einsum("ci,cpi->cp", a, PHI[activation](np.einsum("pk,cik->cpi", X, w)))
    logarithm = norm.logpdf(w, scale=np.sqrt(0.8 / 3)).sum(axis=(1, 2)) + norm.logpdf(a, scale=np.sqrt(1.3 / 6)).sum(1)
    logarithm += norm.logpdf(Y, outputs, np.sqrt(0.3)).sum(axis=1)
    np.testing.assert_allclose(value - value[0], logarithm[0] - logarithm, rtol=1e-11, atol=1e-11)
    direction, h = RNG.standard_normal(theta.shape), 1e-5
    there, back = (network.joint_potential(theta + sign * h * direction)[0] for sign in (1, -1))
    np.testing.assert_allclose((gradient * direction).sum(axis=(1, 2)), (there - back) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("step", [0.1, 1.5])
def test_without_data_the_variance_is_that_of_the_harmonic_chain_in_both_layers(step):
    free = net("erf", np.zeros((0, 4)), [], 0.3, **VARIANCES)
    trained = free.langevin(50, 800, 100, rng=5, step=step, record_every=100)
    for part, variance in ((trained.parameters[..., :4], 0.8 / 4), (trained.parameters[..., 4], 1.3 / 50)):
        expected = harmonic_variance(1 / variance, step, preconditioner=variance)
        error = expected * np.sqrt(2 / part.size)  # of the mean square of independent normal numbers
        assert abs((part**2).mean() - expected) < 4 * error and abs(expected - variance) > 4 * error


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-6, 1.99))
def test_the_harmonic_variance_is_the_covariance_of_the_euler_chain(curvature, preconditioner, reach):
    step = reach / (curvature * preconditioner)
    expected = langevin.LangevinSystem([[preconditioner * curvature]], [[preconditioner]]).euler_covariance(step)[0, 0]
    found = harmonic_variance(curvature, step, preconditioner=preconditioner)
    assert found == pytest.approx(expected, rel=1e-9) and type(found) is float


def test_a_step_is_drift_and_noise_by_the_gradient_of_the_density():
    """θ' = θ - hD ∂U + √(2hD) ξ,  D = the variances of the prior; half the noise is half the temperature."""
    start, h, d, points = RNG.standard_normal((2, 5, 3)), 0.04, np.array([0.4, 0.4, 1.3 / 5]), POINTS[:, :2]
    for noise in (2.0, 1.0):
        trained = TRAINED.langevin(5, 2, 1, np.random.default_rng(7), step=h, start=start, points=points, noise=noise)
        kick = np.random.default_rng(7).standard_normal(start.shape)
        expected = start - h * d * TRAINED.joint_potential(start)[1] + np.sqrt(noise * h * d) * kick
        np.testing.assert_allclose(trained.parameters, expected, rtol=1e-12, atol=1e-13)
        outputs = np.einsum("cpi,ci->cp", erf(points @ expected[..., :2].swapaxes(1, 2)), expected[..., 2])
        np.testing.assert_allclose(trained.outputs[0], outputs, rtol=1e-11, atol=1e-12)


def test_records_are_moments_of_one_run_and_a_run_can_be_continued():
    every = TRAINED.langevin(3, 2, 20, rng=7)
    fifth = TRAINED.langevin(3, 2, 20, rng=7, record_every=5)
    assert np.array_equal(fifth.outputs, every.outputs[4::5]) and np.array_equal(fifth.loss, every.loss[4::5])
    np.testing.assert_allclose(every.loss, ((every.outputs - Y[:4]) ** 2).sum(axis=2) / 2, rtol=1e-13)
    random = np.random.default_rng(8)
    one = TRAINED.langevin(3, 2, 10, rng=random)
    two = TRAINED.langevin(3, 2, 10, rng=random, start=one.parameters)
    whole = TRAINED.langevin(3, 2, 20, rng=np.random.default_rng(8))
    assert np.array_equal(two.parameters, whole.parameters)


# --- what does not fit ----------------------------------------------------------------------------

NETWORK, W = net("erf", X, Y, 0.1), np.ones((2, 4, 3))
SAME = np.ones((2, 3)), [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: net("erf", X, Y, 0.1, depth=2), "prior must be of one hidden layer"),
        (lambda: net("erf", X, Y, 0.1, weight_covariance=np.eye(2)), "inputs must have 2 components"),
        (lambda: net("erf", X, Y, 0.1, weight_covariance=np.eye(3)).potential(W), "weight_covariance of prior must"),
        (lambda: net("linear", X, Y, 1e-3).langevin(3, 2, 400, rng=1, step=0.5), "step must be smaller"),
        (lambda: NETWORK.langevin(3, 2, 4, 1, record_every=3), "record_every must divide the number"),
        (lambda: NETWORK.langevin(3, 2, 4, 1, start=np.ones((1, 3, 4))), "start must have shape"),
        (lambda: NETWORK.joint_potential(np.full((2, 4, 4), 1e200)), "parameters must keep"),
        (lambda: harmonic_variance([1.0, 4.0], 0.5), "step must be below 2/"),
        (lambda: NETWORK.log_gain(W[0], 4, kernel=np.eye(5)), "kernel must have shape"),
        (lambda: net("erf", X, Y[:5], 0.1), "targets must have one axis of length 6"),
        (lambda: net("erf", np.zeros((6, 0)), Y, 0.1), "inputs must have one component or more"),
        (lambda: NETWORK.potential(W[:, :, :2]), "weights must have three axes, the third of length 3"),
        (lambda: NETWORK.potential(W[:0]), "weights must hold one network or more"),
        (lambda: NETWORK.predict(W, POINTS[:, :2]), "points must have two axes, the second of length 3"),
        (lambda: NETWORK.hmc(4, 2, 2, 0, start=W[:1]), "start must have shape"),
        (lambda: NETWORK.hmc(4, 2, 2, 0, observable=lambda w: w[0]), "observable must return one row"),
        (lambda: net("relu", *SAME, 1e-3).potential(np.full((1, 4, 3), 1e12)), "ridge must be large enough"),
        (lambda: net("erf", *SAME, 1e-3).potential(np.full((1, 4, 3), 1e200)), "weights must keep the result"),
        # the kernel of one neuron has rank one
        (lambda: net("erf", X[:2], [1.0, -1.0], 1e-14).predict(W[:1, :1], X), "ridge must be large enough"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

"""lib.fields.networks.two_layers against differences, SciPy's Gaussian density, quadrature, Gibbs sampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erf
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge

from lib.common import hmc
from lib.fields.networks import _readouts
from lib.fields.networks._units import units
from lib.fields.networks.two_layers import TwoLayer

RNG = np.random.default_rng(5)
X, Y, POINTS = RNG.standard_normal((6, 3)), RNG.standard_normal(6), RNG.standard_normal((4, 3))
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0), "linear": lambda u: u}
activations = pytest.mark.parametrize("activation", PHI)


# --- the density and its gradient -----------------------------------------------------------------


@activations
@settings(max_examples=15)
@given(st.integers(0, 5), st.integers(1, 4), st.integers(1, 6), st.integers(0, 99), st.floats(0.05, 10))
def test_gradient_is_the_finite_difference(activation, count, dimension, width, seed, ridge):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((count, dimension)), rng.standard_normal(count)
    w = rng.standard_normal((2, width, dimension))
    network = TwoLayer(activation, x, y, ridge, weight_variance=0.7, readout_variance=1.9)
    gradient = network.potential(w)[1]
    direction, h = rng.standard_normal(w.shape), 1e-5
    there, back = (network.potential(w + sign * h * direction)[0] for sign in (1, -1))
    if activation != "relu" or not count or np.abs(x @ w.swapaxes(1, 2)).min() > 20 * h:  # away from the kink
        along = (gradient * direction).sum(axis=(1, 2))
        np.testing.assert_allclose(along, (there - back) / (2 * h), rtol=1e-6, atol=1e-6)


@activations
def test_the_density_is_the_prior_times_the_gaussian_density_of_the_targets(activation):
    w = RNG.standard_normal((5, 7, 3))
    value, _ = TwoLayer(activation, X, Y, 0.3, weight_variance=0.7, readout_variance=1.9).potential(w)
    expected = []
    for one in w:
        features = PHI[activation](X @ one.T)
        evidence = multivariate_normal.logpdf(Y, cov=1.9 / 7 * features @ features.T + 0.3 * np.eye(6))
        expected.append(-evidence - multivariate_normal.logpdf(one.ravel(), cov=0.7 / 3 * np.eye(21)))
    np.testing.assert_allclose(value - value[0], np.array(expected) - expected[0], rtol=1e-11, atol=1e-11)


def test_neurons_may_change_places_and_an_odd_one_its_sign():
    w = RNG.standard_normal((1, 4, 3))
    turned = w[:, [2, 0, 3, 1]] * np.array([1, -1, 1, -1])[:, None]
    one, other = (TwoLayer("erf", X, Y, 0.3).potential(v)[0] for v in (w, turned))
    assert one == pytest.approx(other, rel=1e-13)


@activations
def test_the_mean_given_the_weights_is_ridge_regression_on_the_features(activation):
    w = RNG.standard_normal((3, 5, 3))
    found = TwoLayer(activation, X, Y, 0.3, readout_variance=1.9).predict(w, POINTS)
    for i in range(3):
        regression = Ridge(alpha=0.3 * 5 / 1.9, fit_intercept=False).fit(PHI[activation](X @ w[i].T), Y)
        np.testing.assert_allclose(found[i], regression.predict(PHI[activation](POINTS @ w[i].T)), rtol=1e-9)


def test_a_network_lost_in_rounding_does_not_stop_the_others():
    network = TwoLayer("relu", np.ones((2, 3)), [1.0, 1.0], 1e-3)
    start = np.stack([np.full((4, 3), 1e12), np.full((4, 3), 0.1)])
    lost = _readouts.evaluated(start, units("relu"), network.inputs[:, None], np.ones(2), 1e-3, 1.0, 1.0)
    alone = network.potential(start[1:])
    assert lost[0][0] == np.inf and lost[0][1] == pytest.approx(alone[0][0], rel=1e-13)
    chains = TwoLayer("relu", np.ones((2, 3)), [1.0, 1.0], 1e-10).sample(4, 6, 30, 3, burn_in=30)
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

    network = TwoLayer(activation, x[:, None], y, ridge, weight_variance=0.8, readout_variance=1.3)
    chains = network.sample(
        1, 60, 500, 4, observable=lambda w: np.column_stack([w[:, 0, 0] ** 2, network.predict(w, [[point]])])
    )
    found = hmc.summary(chains.samples)
    assert np.all(np.abs(found.mean - np.array([square, mean]) / total) < 4 * found.error)
    assert np.all(found.error < 0.02)


def test_without_data_the_weights_have_their_prior():
    free = TwoLayer("erf", np.zeros((0, 4)), [], 0.1, weight_variance=0.6)
    squares = free.sample(5, 20, 400, 6, observable=lambda w: 4 * w**2).samples
    found = hmc.summary(squares.mean(axis=(2, 3)))
    assert abs(found.mean - 0.6) < 4 * found.error and found.error < 0.01


def gibbs(x, y, ridge, width, sweeps, seed):
    """Weights of a linear network: readouts given weights and the reverse are Gaussian regressions in turn."""
    rng, dimension = np.random.default_rng(seed), x.shape[1]
    w, kept = rng.standard_normal((width, dimension)), []

    def draw(design, precision):
        covariance = np.linalg.inv(design.T @ design / ridge + precision * np.eye(design.shape[1]))
        return rng.multivariate_normal(covariance @ design.T @ y / ridge, covariance)

    for _ in range(sweeps):
        a = draw(x @ w.T, width)
        w = draw(np.kron(a, x), dimension).reshape(width, dimension)
        kept.append([(w**2).sum(), *(a @ w)])
    return np.array(kept)


def test_gibbs_sampling_of_a_linear_network_agrees():
    x, y = X[:5, :2], 2 * Y[:5]
    other = hmc.summary(np.stack([gibbs(x, y, 0.3, 3, 1700, seed)[100:] for seed in range(2)], axis=1))

    network = TwoLayer("linear", x, y, 0.3)

    def kept(w):
        return np.column_stack([(w**2).sum(axis=(1, 2)), network.predict(w, np.eye(2))])

    one = hmc.summary(network.sample(3, 30, 500, 8, observable=kept).samples)
    assert np.all(np.abs(one.mean - other.mean) < 3 * np.hypot(one.error, other.error)) and np.all(one.error < 0.05)


# --- what does not fit ----------------------------------------------------------------------------

NETWORK, W = TwoLayer("erf", X, Y, 0.1), np.ones((2, 4, 3))
SAME = np.ones((2, 3)), [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TwoLayer("erf", X, Y[:5], 0.1), "targets must have one axis of length 6"),
        (lambda: TwoLayer("erf", np.zeros((6, 0)), Y, 0.1), "inputs must have one component or more"),
        (lambda: NETWORK.potential(W[:, :, :2]), "weights must have three axes, the third of length 3"),
        (lambda: NETWORK.potential(W[:0]), "weights must hold one network or more"),
        (lambda: NETWORK.predict(W, POINTS[:, :2]), "points must have two axes, the second of length 3"),
        (lambda: NETWORK.sample(4, 2, 2, 0, start=W[:1]), "start must have shape"),
        (lambda: NETWORK.sample(4, 2, 2, 0, observable=lambda w: w[0]), "observable must return one row"),
        (lambda: TwoLayer("relu", *SAME, 1e-3).potential(np.full((1, 4, 3), 1e12)), "ridge must be large enough"),
        (lambda: TwoLayer("erf", *SAME, 1e-3).potential(np.full((1, 4, 3), 1e200)), "weights must keep the result"),
        # the kernel of one neuron has rank one
        (lambda: TwoLayer("erf", X[:2], [1.0, -1.0], 1e-14).predict(W[:1, :1], X), "ridge must be large enough"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

"""lib.fields.networks.network_posterior against differences, SciPy's Gaussian density, quadrature, Gibbs sampling."""

import numpy as np
import pytest
from bad_input import NUMBER, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erf
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge

from lib.common import hmc
from lib.fields.networks import _readouts, network_posterior
from lib.fields.networks._units import units
from lib.foundations import gaussian

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
    x, y, w = (
        rng.standard_normal((count, dimension)),
        rng.standard_normal(count),
        rng.standard_normal((2, width, dimension)),
    )
    call = {
        "activation": activation,
        "inputs": x,
        "targets": y,
        "ridge": ridge,
        "weight_variance": 0.7,
        "readout_variance": 1.9,
    }
    gradient = network_posterior.potential(w, **call)[1]
    direction, h = rng.standard_normal(w.shape), 1e-5
    there, back = (network_posterior.potential(w + sign * h * direction, **call)[0] for sign in (1, -1))
    kink = activation == "relu" and count and np.abs(x @ w.swapaxes(1, 2)).min() < 20 * h
    if not kink:
        np.testing.assert_allclose(
            (gradient * direction).sum(axis=(1, 2)), (there - back) / (2 * h), rtol=1e-6, atol=1e-6
        )


@activations
def test_the_density_is_the_prior_times_the_gaussian_density_of_the_targets(activation):
    w = RNG.standard_normal((5, 7, 3))
    value, _ = network_posterior.potential(w, activation, X, Y, 0.3, weight_variance=0.7, readout_variance=1.9)
    expected = []
    for one in w:
        features = PHI[activation](X @ one.T)
        evidence = multivariate_normal.logpdf(Y, cov=1.9 / 7 * features @ features.T + 0.3 * np.eye(6))
        expected.append(-evidence - multivariate_normal.logpdf(one.ravel(), cov=0.7 / 3 * np.eye(21)))
    np.testing.assert_allclose(value - value[0], np.array(expected) - expected[0], rtol=1e-11, atol=1e-11)


def test_neurons_may_change_places_and_an_odd_one_its_sign():
    w = RNG.standard_normal((1, 4, 3))
    turned = w[:, [2, 0, 3, 1]] * np.array([1, -1, 1, -1])[:, None]
    one, other = (network_posterior.potential(v, "erf", X, Y, 0.3)[0] for v in (w, turned))
    assert one == pytest.approx(other, rel=1e-13)


@activations
def test_the_mean_given_the_weights_is_ridge_regression_on_the_features(activation):
    w = RNG.standard_normal((3, 5, 3))
    found = network_posterior.predict(w, activation, X, Y, 0.3, POINTS, readout_variance=1.9)
    for i in range(3):
        regression = Ridge(alpha=0.3 * 5 / 1.9, fit_intercept=False).fit(PHI[activation](X @ w[i].T), Y)
        np.testing.assert_allclose(found[i], regression.predict(PHI[activation](POINTS @ w[i].T)), rtol=1e-9)


def test_a_ridge_lost_in_rounding_is_refused_and_a_network_thrown_away_does_not_stop_the_others():
    same = np.ones((2, 3))
    with pytest.raises(ValueError, match="^ridge must be large enough"):
        network_posterior.potential(np.full((1, 4, 3), 1e12), "relu", same, [1.0, 1.0], 1e-3)
    with pytest.raises(ValueError, match="^weights must keep the result inside"):
        network_posterior.potential(np.full((1, 4, 3), 1e200), "erf", same, [1.0, 1.0], 1e-3)
    with pytest.raises(ValueError, match="^ridge must be large enough"):  # the kernel of one neuron has rank one
        network_posterior.predict(np.ones((1, 1, 3)), "erf", X[:2], [1.0, -1.0], 1e-14, X)
    start = np.stack([np.full((4, 3), 1e12), np.full((4, 3), 0.1)])
    lost = _readouts.evaluated(start, units("relu"), same[:, None], np.ones(2), 1e-3, 1.0, 1.0)
    alone = network_posterior.potential(start[1:], "relu", same, np.ones(2), 1e-3)
    assert lost[0][0] == np.inf and lost[0][1] == pytest.approx(alone[0][0], rel=1e-13)
    chains = network_posterior.sample("relu", same, [1.0, 1.0], 1e-10, 4, 6, 30, 3, burn_in=30)
    assert np.isfinite(chains.samples).all()


# --- the samples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_one_neuron_has_the_moments_of_quadrature(activation):
    x, y, ridge, point = np.array([0.5, -1.0, 2.0]), np.array([0.4, -0.8, 1.5]), 0.2, 0.7

    def weight(w):
        f = PHI[activation](w * x)
        matrix = 1.3 * np.outer(f, f) + ridge * np.eye(3)
        return np.exp(-(w**2) / (2 * 0.8)) * multivariate_normal.pdf(y, cov=matrix), 1.3 * PHI[activation](
            w * point
        ) * f @ np.linalg.solve(matrix, y)

    total, square, mean = (
        quad(lambda w: part(w) * weight(w)[0], -9, 9, points=[0])[0]
        for part in (lambda w: 1, lambda w: w**2, lambda w: weight(w)[1])
    )

    def kept(w):
        return np.stack(
            [
                w[:, 0, 0] ** 2,
                network_posterior.predict(w, activation, x[:, None], y, ridge, [[point]], readout_variance=1.3)[:, 0],
            ],
            axis=1,
        )

    variances = {"weight_variance": 0.8, "readout_variance": 1.3}
    chains = network_posterior.sample(activation, x[:, None], y, ridge, 1, 60, 500, 4, observable=kept, **variances)
    found = hmc.summary(chains.samples)
    assert np.all(np.abs(found.mean - np.array([square, mean]) / total) < 4 * found.error) and np.all(
        found.error < 0.02
    )


def test_without_data_the_weights_have_their_prior():
    squares = network_posterior.sample(
        "erf", np.zeros((0, 4)), [], 0.1, 5, 20, 400, 6, weight_variance=0.6, observable=lambda w: 4 * w**2
    ).samples
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

    def kept(w):
        return np.column_stack([(w**2).sum(axis=(1, 2)), network_posterior.predict(w, "linear", x, y, 0.3, np.eye(2))])

    one = hmc.summary(network_posterior.sample("linear", x, y, 0.3, 3, 30, 500, 8, observable=kept).samples)
    assert np.all(np.abs(one.mean - other.mean) < 3 * np.hypot(one.error, other.error)) and np.all(one.error < 0.05)


def test_the_distance_to_the_infinite_width_falls_as_one_over_n():
    rng = np.random.default_rng(3)
    x, points = rng.standard_normal((8, 4)), rng.standard_normal((10, 4))
    y, both, ridge = 2.5 * np.sin(x[:, 0]), np.concatenate([x, points]), 0.1
    s = both @ both.T / 4
    pairs = np.stack([np.diag(s)[:, None] + 0 * s, s, s, np.diag(s) + 0 * s], axis=-1).reshape(*s.shape, 2, 2)
    kernel = gaussian.erf_i2(2 * pairs)
    process = kernel[8:, :8] @ np.linalg.solve(kernel[:8, :8] + ridge * np.eye(8), y)
    distance = []
    for width in (16, 64):

        def observable(w):
            return network_posterior.predict(w, "erf", x, y, ridge, points)

        found = hmc.summary(
            network_posterior.sample("erf", x, y, ridge, width, 40, 200, 9, observable=observable, leapfrog=6).samples
        )
        noise = (found.error**2).mean()
        distance.append(np.sqrt(((found.mean - process) ** 2).mean() - noise))
        assert noise < (0.15 * distance[-1]) ** 2
    assert 3 < distance[0] / distance[1] < 5


# --- bad input ------------------------------------------------------------------------------------

DATA = {"activation": "erf", "inputs": X, "targets": Y, "ridge": 0.1}
VARIANCES = {"weight_variance": 1.0, "readout_variance": 1.0}
W = np.ones((2, 4, 3))
RUN = {
    "width": 4,
    "chains": 2,
    "steps": 2,
    "rng": 0,
    "start": W,
    "observable": np.sin,
    "leapfrog": 2,
    "burn_in": 1,
    "acceptance": 0.8,
}
CALLS = {
    network_posterior.potential: {"weights": W, **DATA, **VARIANCES},
    network_posterior.predict: {"weights": W, **DATA, "points": POINTS, "readout_variance": 1.0},
    network_posterior.sample: {**DATA, **RUN, **VARIANCES},
}
COUNT = [0, -1, 2.0, "2", None]
BAD = {
    "weights": [[], 1.0, W[0], W[:, :, :2], W[:0], W[:, :0], np.full((2, 4, 3), np.nan), "w", None],
    "activation": ["tanh", None, 1, ["erf"], np.sin],
    "inputs": [[], Y, np.zeros((6, 0)), np.full((6, 3), np.inf), "x", None, X[:5], X[:, :2]],
    "targets": [[], X, Y[:5], np.full(6, np.nan), "y", None, 1.0],
    **dict.fromkeys(("ridge", "weight_variance", "readout_variance"), NUMBER),
    "points": [POINTS[0], POINTS[:, :2], np.full((4, 3), np.nan), "x", None],
    **dict.fromkeys(("width", "chains", "steps", "leapfrog"), COUNT),
    "burn_in": [-1, 1.0, "1"],
    "rng": SEED,
    "start": [W[:1], W[0], np.full((2, 4, 3), np.nan), "w", 1.0],
    "observable": [1.0, "x", lambda w: w[0]],
    "acceptance": [*NUMBER, 1.0],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    CALLS, BAD, {"inputs": "inputs|targets|weights|points|start"}
)

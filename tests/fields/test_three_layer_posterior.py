"""lib.fields.three_layer_posterior against finite differences, SciPy's Gaussian density, quadrature and the infinitely wide first layer."""

import numpy as np
import pytest
from bad_input import NUMBER, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge

from lib.fields import hmc, network_posterior, nngp, three_layer_posterior

RNG = np.random.default_rng(5)
X, Y, POINTS = RNG.standard_normal((6, 3)), RNG.standard_normal(6), RNG.standard_normal((4, 3))
W, V = RNG.standard_normal((2, 5, 3)), RNG.standard_normal((2, 4, 5))
VARIANCES = (0.9, 1.4, 1.2)
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0), "linear": lambda u: u}
activations = pytest.mark.parametrize("activation", PHI)


def fields(activation, w, v, x):
    return np.array([v @ PHI[activation](w @ point) for point in x])


@activations
@settings(max_examples=12)
@given(
    st.integers(0, 5), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.integers(0, 99), st.floats(0.05, 10)
)
def test_gradients_are_the_finite_differences(activation, count, dimension, n0, n1, seed, ridge):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((count, dimension)), rng.standard_normal(count)
    w, v = rng.standard_normal((2, n0, dimension)), rng.standard_normal((2, n1, n0))
    call = {"activation": activation, "inputs": x, "targets": y, "ridge": ridge, "variances": VARIANCES}
    _, by_first, by_second = three_layer_posterior.potential(w, v, **call)
    dw, dv, h = rng.standard_normal(w.shape), rng.standard_normal(v.shape), 1e-5
    there, back = (three_layer_posterior.potential(w + sign * h * dw, v + sign * h * dv, **call)[0] for sign in (1, -1))
    u = x @ w.swapaxes(1, 2)
    kink = (
        activation == "relu"
        and count
        and min(np.abs(u).min(), np.abs(PHI["relu"](u) @ v.swapaxes(1, 2)).min()) < 200 * h
    )
    if not kink:
        expected = (there - back) / (2 * h)
        np.testing.assert_allclose(
            (by_first * dw).sum(axis=(1, 2)) + (by_second * dv).sum(axis=(1, 2)), expected, rtol=1e-6, atol=1e-6
        )


@activations
def test_the_density_is_the_prior_times_the_gaussian_density_of_the_targets(activation):
    value = three_layer_posterior.potential(W, V, activation, X, Y, 0.3, variances=VARIANCES)[0]
    expected = []
    for w, v in zip(W, V):
        features = PHI[activation](fields(activation, w, v, X))
        evidence = multivariate_normal.logpdf(Y, cov=1.2 / 4 * features @ features.T + 0.3 * np.eye(6))
        prior = multivariate_normal.logpdf(w.ravel(), cov=0.9 / 3 * np.eye(15)) + multivariate_normal.logpdf(
            v.ravel(), cov=1.4 / 5 * np.eye(20)
        )
        expected.append(-evidence - prior)
    np.testing.assert_allclose(value[1] - value[0], expected[1] - expected[0], rtol=1e-11)


@activations
def test_kernel_and_prediction_of_given_networks_written_out(activation):
    kernel = three_layer_posterior.hidden_kernel(W, V, activation, X)
    found = three_layer_posterior.predict(W, V, activation, X, Y, 0.3, POINTS, variances=VARIANCES)
    for i in range(2):
        h = fields(activation, W[i], V[i], X)
        np.testing.assert_allclose(kernel[i], h @ h.T / 4, rtol=1e-12, atol=1e-14)
        regression = Ridge(alpha=0.3 * 4 / 1.2, fit_intercept=False).fit(PHI[activation](h), Y)
        np.testing.assert_allclose(
            found[i], regression.predict(PHI[activation](fields(activation, W[i], V[i], POINTS))), rtol=1e-8, atol=1e-12
        )


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_a_chain_of_single_neurons_has_the_moments_of_quadrature(activation):
    x, y, ridge = np.array([0.5, -1.0, 2.0]), np.array([0.4, -0.8, 1.5]), 0.2
    grid = np.linspace(-7, 7, 281)
    w, v = (axis.ravel() for axis in np.meshgrid(grid, grid, indexing="ij"))
    h = v[:, None] * PHI[activation](np.outer(w, x))
    f = PHI[activation](h)
    overlap, norm = f @ y, (f**2).sum(axis=1)  # A = σ_2² ffᵀ + T by the rank-one formulas
    determinant = 1 + 1.2 / ridge * norm
    log_density = -(w**2) / 1.8 - v**2 / 2.8 - np.log(determinant) / 2 + 1.2 / ridge**2 * overlap**2 / determinant / 2
    weight = np.exp(log_density - log_density.max())
    expected = np.array([w**2, v**2, h[:, 2] ** 2]) @ weight / weight.sum()

    def kept(first, second):
        kernel = three_layer_posterior.hidden_kernel(first, second, activation, x[:, None])
        return np.column_stack([first[:, 0, 0] ** 2, second[:, 0, 0] ** 2, kernel[:, 2, 2]])

    chains = three_layer_posterior.sample(
        activation, x[:, None], y, ridge, (1, 1), 150, 120, 4, variances=VARIANCES, observable=kept, burn_in=80
    )
    found = hmc.summary(chains.samples)
    assert np.all(np.abs(found.mean - expected) < 4 * found.error) and np.all(found.error < 0.05 * expected)


def test_without_data_both_layers_have_their_prior():
    def kept(first, second):
        return np.column_stack([4 * (first**2).mean(axis=(1, 2)), 5 * (second**2).mean(axis=(1, 2))])

    found = hmc.summary(
        three_layer_posterior.sample(
            "erf", np.zeros((0, 4)), [], 0.1, (5, 3), 20, 300, 6, variances=VARIANCES, observable=kept
        ).samples
    )
    assert np.all(np.abs(found.mean - VARIANCES[:2]) < 4 * found.error) and np.all(found.error < 0.02)


def test_a_wide_first_layer_leaves_gaussian_fields_whose_posterior_is_that_of_two_layers():
    x, y, variances = X[:4], 2.5 * X[:4, 0], (1.0, 1.0, 0.5)
    root = np.linalg.cholesky(nngp.kernel("erf", x))

    def kept(z):
        h = z @ root.T
        return h.swapaxes(1, 2) @ h / 3

    other = hmc.summary(network_posterior.sample(
        "erf", root, y, 0.1, 3, 40, 150, 1, weight_variance=4, readout_variance=0.5, observable=kept).samples)  # fmt: skip
    one = hmc.summary(
        three_layer_posterior.sample("erf", x, y, 0.1, (200, 3), 20, 100, 2, variances=variances, burn_in=60).samples
    )
    assert np.all(np.abs(one.mean - other.mean) < 4 * np.hypot(one.error, other.error) + 0.02 * other.mean.max())
    assert np.abs(other.mean - root @ root.T).max() > 10 * other.error.max()


def test_chains_start_where_they_are_told():
    start = 0.1 * W, 0.1 * V
    chains = three_layer_posterior.sample(
        "erf", X, Y, 0.3, (5, 4), 2, 1, 0, start=start, burn_in=0, leapfrog=1, observable=lambda w, v: w
    )
    assert np.abs(chains.samples[0] - start[0]).max() < 0.5
    before = three_layer_posterior.hidden_kernel(*start, "erf", X)
    tiny = three_layer_posterior.sample("erf", X, Y, 1e9, (5, 4), 2, 1, 0, start=start, burn_in=0, leapfrog=1)
    assert tiny.samples.shape == (1, 2, 6, 6) and np.abs(tiny.samples[0] - before).max() < 0.5
    with pytest.raises(ValueError, match="^ridge must be large enough"):
        three_layer_posterior.potential(1e6 * W, 1e12 * V, "relu", np.ones((2, 3)), [1.0, 1.0], 1e-3)


# --- bad input -------------------------------------------------------------------------------------------------------------------

LAYERS = {"first": W, "second": V, "activation": "erf", "inputs": X}
DATA = {"targets": Y, "ridge": 0.3, "variances": VARIANCES}
RUN = {
    "widths": (5, 4),
    "chains": 2,
    "steps": 2,
    "seed": 0,
    "start": (W, V),
    "observable": lambda w, v: w,
    "leapfrog": 2,
    "burn_in": 1,
}
CALLS = {
    three_layer_posterior.potential: {**LAYERS, **DATA},
    three_layer_posterior.hidden_kernel: LAYERS,
    three_layer_posterior.predict: {**LAYERS, **DATA, "points": POINTS},
    three_layer_posterior.sample: {"activation": "erf", "inputs": X, **DATA, **RUN, "acceptance": 0.8},
}
COUNT = [0, -1, 2.0, "2", None]
BAD = {
    "first": [[], 1.0, W[0], W[:, :, :2], W[:0], W[:, :0], W[:1], np.full((2, 5, 3), np.nan), "w", None],
    "second": [[], 1.0, V[0], V[:, :, :2], V[:0], V[:, :0], V[:1], np.full((2, 4, 5), np.nan), "v", None],
    "activation": ["tanh", None, 1, ["erf"], np.sin],
    "inputs": [[], Y, np.zeros((6, 0)), np.full((6, 3), np.inf), "x", None, X[:, :2]],
    "targets": [[], X, Y[:5], np.full(6, np.nan), "y", None, 1.0],
    "ridge": NUMBER,
    "variances": [1.0, (1, 1), (1, 1, 0), (1, -1, 1), (1, 1, np.nan), "123", None],
    "points": [POINTS[0], POINTS[:, :2], np.full((4, 3), np.nan), "x", None],
    "widths": [4, (4,), (4, 3, 2), (0, 3), (4, 2.0), (4, None), "4", "ab", None],
    **dict.fromkeys(("chains", "steps", "leapfrog"), COUNT),
    "burn_in": [-1, 1.0, "1"],
    "seed": SEED,
    "start": [W, 1.0, "wv", (W,), (W[:1], V), (W, V[:, :2]), (np.full((2, 5, 3), np.nan), V)],
    "observable": [1.0, "x", lambda w, v: w[0]],
    "acceptance": [*NUMBER, 1.0],
}
NAMED = {"inputs": "inputs|targets|first|points|start", "first": "first|second"}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, NAMED)

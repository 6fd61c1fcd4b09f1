"""langevin_training against finite differences, the exact variance of the chain, and Monte Carlo."""

import numpy as np
import pytest
from bad_input import NUMBER, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from scipy.stats import norm

from lib.common import hmc
from lib.fields.networks import langevin_training, network_posterior
from lib.foundations import langevin

RNG = np.random.default_rng(2)
X, Y, POINTS = RNG.standard_normal((4, 2)), RNG.standard_normal(4), RNG.standard_normal((3, 2))
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0), "linear": lambda u: u}
DATA = {"activation": "erf", "inputs": X, "targets": Y, "temperature": 0.3}
VARIANCES = {"weight_variance": 0.8, "readout_variance": 1.3}

# --- the density ----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", PHI)
def test_the_density_is_prior_times_likelihood_with_its_finite_differences(activation):
    theta, call = RNG.standard_normal((5, 6, 3)), {**DATA, "activation": activation, **VARIANCES}
    value, gradient = langevin_training.potential(theta, **call)
    w, a = theta[..., :2], theta[..., 2]
    outputs = np.einsum("ci,cpi->cp", a, PHI[activation](np.einsum("pk,cik->cpi", X, w)))
    logarithm = norm.logpdf(w, scale=np.sqrt(0.8 / 2)).sum(axis=(1, 2)) + norm.logpdf(a, scale=np.sqrt(1.3 / 6)).sum(
        axis=1
    )
    logarithm += norm.logpdf(Y, outputs, np.sqrt(0.3)).sum(axis=1)
    np.testing.assert_allclose(value - value[0], logarithm[0] - logarithm, rtol=1e-11, atol=1e-11)
    direction, h = RNG.standard_normal(theta.shape), 1e-5
    there, back = (langevin_training.potential(theta + sign * h * direction, **call)[0] for sign in (1, -1))
    np.testing.assert_allclose((gradient * direction).sum(axis=(1, 2)), (there - back) / (2 * h), rtol=1e-6)


def test_readouts_sampled_and_readouts_integrated_out_give_one_posterior():
    def outputs(theta):
        return np.einsum("cpi,ci->cp", erf(POINTS @ theta[..., :2].swapaxes(1, 2)), theta[..., 2])

    def means(w):
        return network_posterior.predict(w, "erf", X, Y, 0.3, POINTS, readout_variance=1.3)

    start, scale = RNG.standard_normal((40, 5, 3)) / 2, np.sqrt([0.4, 0.4, 0.26])
    one = hmc.sample(
        lambda x: langevin_training.potential(x, **DATA, **VARIANCES), start, 300, 3, scale=scale, observable=outputs
    )
    other = network_posterior.sample("erf", X, Y, 0.3, 5, 40, 300, 4, observable=means, **VARIANCES)
    one, other = hmc.summary(one.samples), hmc.summary(other.samples)
    assert np.all(np.abs(one.mean - other.mean) < 4 * np.hypot(one.error, other.error)) and np.all(one.error < 0.03)
    assert np.all(other.error < one.error)  # what the integral is for


@settings(max_examples=20)
@given(st.floats(1e-3, 1e3), st.integers(1, 50), st.integers(1, 50), st.floats(0.1, 10))
def test_the_decay_keeps_the_prior_at_every_temperature(temperature, dimension, width, variance):
    rates = langevin_training.decay_rates(
        temperature, dimension, width, weight_variance=variance, readout_variance=2 * variance
    )
    np.testing.assert_allclose(np.divide(temperature, rates), [variance / dimension, 2 * variance / width], rtol=1e-14)
    # U of one neuron with its decay rates written out: γ|θ|²/2T + L/T
    theta, x = np.full((1, width, dimension + 1), 0.3), np.ones((2, dimension))
    prior = {"weight_variance": variance, "readout_variance": 2 * variance}
    found = langevin_training.potential(theta, "linear", x, [1.0, -1.0], temperature, **prior)[0]
    loss = ((width * dimension * 0.09 - np.array([1.0, -1.0])) ** 2).sum() / 2
    expected = (rates[0] * width * dimension + rates[1] * width) * 0.09 / (2 * temperature) + loss / temperature
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# --- the chain ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.1, 0.5, 1.5])
def test_without_data_the_variance_is_that_of_the_harmonic_chain_in_both_layers(step):
    nothing = {"inputs": np.zeros((0, 4)), "targets": [], "temperature": 0.3}
    trained = langevin_training.train(
        "erf", width=50, networks=800, steps=100, rng=5, step=step, record_every=100, **nothing, **VARIANCES
    )
    for part, variance in ((trained.parameters[..., :4], 0.8 / 4), (trained.parameters[..., 4], 1.3 / 50)):
        expected = langevin_training.harmonic_variance(1 / variance, step, preconditioner=variance)
        error = expected * np.sqrt(2 / part.size)  # of the mean square of independent normal numbers
        assert abs((part**2).mean() - expected) < 4 * error and abs(expected - variance) > 4 * error


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-6, 1.99))
def test_the_harmonic_variance_is_the_covariance_of_the_euler_chain(curvature, preconditioner, reach):
    step = reach / (curvature * preconditioner)
    expected = langevin.LangevinSystem([[preconditioner * curvature]], [[preconditioner]]).euler_covariance(step)[0, 0]
    assert langevin_training.harmonic_variance(curvature, step, preconditioner=preconditioner) == pytest.approx(
        expected, rel=1e-9
    )


def test_richardson_takes_out_the_first_order_and_adds_the_errors():
    steps, k = np.array([0.04, 0.02, 0.01]), np.array([1.0, 3.0])
    left = [
        langevin_training.richardson(*(langevin_training.harmonic_variance(k, h) for h in (s, s / 2)))[0] - 1 / k
        for s in steps
    ]
    np.testing.assert_allclose(left[0] / left[1], 4, rtol=0.06)
    np.testing.assert_allclose(left[1] / left[2], 4, rtol=0.03)
    noise = 1 + np.random.default_rng(1).standard_normal((2, 20_000)) * [[0.3], [0.2]]
    value, error = langevin_training.richardson(*noise, error=0.3, half_error=0.2)
    assert error.shape == value.shape and abs(value.std() / error[0] - 1) < 4 / np.sqrt(40_000)


def test_the_bias_is_of_first_order_and_richardson_agrees_with_monte_carlo():
    data = {**DATA, "temperature": 1.0}

    def loss(w):
        """⟨L⟩ given W, of the mean of f and of its fluctuation K - K(K + T)⁻¹K, T = 1."""
        mean = network_posterior.predict(w, "erf", X, Y, 1.0, X, readout_variance=1.3)
        features = erf(X @ w.swapaxes(1, 2))
        kernel = 1.3 / 5 * features @ features.swapaxes(1, 2)
        spread = np.trace(np.linalg.solve(kernel + np.eye(4), kernel), axis1=1, axis2=2)
        return (((mean - Y) ** 2).sum(axis=1) + spread) / 2

    exact = hmc.summary(network_posterior.sample("erf", X, Y, 1.0, 5, 60, 400, 4, observable=loss, **VARIANCES).samples)
    found = []
    for step, seed in ((0.1, 1), (0.05, 2)):
        settings = {
            "width": 5,
            "networks": 600,
            "steps": round(50 / step),
            "step": step,
            "record_every": round(0.2 / step),
        }
        trained = langevin_training.train(rng=seed, **settings, **data, **VARIANCES)
        found.append(hmc.summary(trained.loss[40:]))
    bias, half = (one.mean - exact.mean for one in found)
    value, error = langevin_training.richardson(
        found[0].mean, found[1].mean, error=found[0].error, half_error=found[1].error
    )
    assert half > 20 * np.hypot(found[1].error, exact.error)  # the bias is plain,
    assert 2**0.5 < bias / half < 2**1.5  # of first order, nearer to it than to a constant or to the second,
    assert abs(value - exact.mean) < 4 * np.hypot(error, exact.error) < bias / 5  # and taken out


def test_half_the_noise_is_half_the_temperature_and_half_of_both_prior_variances():
    start = np.random.default_rng(3).standard_normal((2, 3, 3))
    run = {"width": 3, "networks": 2, "steps": 20, "rng": 7, "step": 0.05, "start": start}
    half = langevin_training.train("erf", X, Y, 0.4, noise=1.0, weight_variance=1.2, readout_variance=0.8, **run)
    cold = langevin_training.train("erf", X, Y, 0.2, weight_variance=0.6, readout_variance=0.4, **run)
    np.testing.assert_allclose(half.parameters, cold.parameters, rtol=1e-12)
    free = {"step": 0.2, "noise": 1.0, "record_every": 200}
    mode = langevin_training.train("erf", X[:0], Y[:0], 0.3, 50, 100, 200, rng=1, **free)
    squares = 50 * mode.parameters[..., -1].ravel() ** 2 / langevin_training.harmonic_variance(1.0, 0.2)
    assert abs(squares.mean() - 0.5) < 4 * 0.5 * np.sqrt(2 / squares.size)


def test_records_are_moments_of_one_run_and_a_run_can_be_continued():
    run = {"width": 3, "networks": 2, **DATA}
    every = langevin_training.train(**run, steps=20, rng=7, points=POINTS)
    fifth = langevin_training.train(**run, steps=20, rng=7, points=POINTS, record_every=5)
    assert np.array_equal(fifth.outputs, every.outputs[4::5]) and np.array_equal(fifth.loss, every.loss[4::5])
    random = np.random.default_rng(8)
    one = langevin_training.train(**run, steps=10, rng=random)
    two = langevin_training.train(**run, steps=10, rng=random, start=one.parameters)
    whole = langevin_training.train(**run, steps=20, rng=np.random.default_rng(8))
    assert np.array_equal(two.parameters, whole.parameters)
    np.testing.assert_allclose(
        whole.loss, ((whole.outputs - Y) ** 2).sum(axis=2) / 2, rtol=1e-13
    )  # the points are the inputs
    final = np.einsum("cpi,ci->cp", erf(X @ whole.parameters[..., :2].swapaxes(1, 2)), whole.parameters[..., 2])
    np.testing.assert_allclose(whole.outputs[-1], final, rtol=1e-12)


def test_a_step_beyond_the_stable_ones_is_refused():
    with pytest.raises(ValueError, match="^step must be smaller: with this one a network runs away"):
        langevin_training.train("linear", X, Y, 1e-3, 3, 2, 400, rng=1, step=0.5)


# --- bad input ------------------------------------------------------------------------------------

THETA = np.ones((2, 4, 3))
RUN = {
    "width": 4,
    "networks": 2,
    "steps": 4,
    "rng": 0,
    "step": 0.01,
    "start": THETA,
    "points": POINTS,
    "record_every": 2,
}
CALLS = {
    langevin_training.decay_rates: {"temperature": 0.1, "dimension": 2, "width": 3, **VARIANCES},
    langevin_training.potential: {"parameters": THETA, **DATA, **VARIANCES},
    langevin_training.train: {**DATA, **RUN, **VARIANCES},
    langevin_training.harmonic_variance: {"curvature": [1.0, 2.0], "step": 0.1, "preconditioner": 1.0},
    langevin_training.richardson: {
        "at_step": [1.0, 2.0],
        "at_half_step": [1.0, 2.0],
        "error": 0.1,
        "half_error": [0.1, 0.2],
    },
}
COUNT = [0, -1, 2.0, "2", None]
PAIR = [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [np.nan, 1.0], "x", None]
BAD = {
    "parameters": [
        [],
        1.0,
        THETA[0],
        THETA[:, :, :2],
        THETA[:0],
        np.full((2, 4, 3), np.nan),
        np.full((2, 4, 3), 1e200),
        "w",
        None,
    ],
    "activation": ["tanh", None, 1, ["erf"], np.sin],
    "inputs": [[], Y, np.zeros((4, 0)), np.full((4, 2), np.inf), "x", None, X[:3], X[:, :1]],
    "targets": [[], X, Y[:3], np.full(4, np.nan), "y", None, 1.0],
    **dict.fromkeys(("temperature", "weight_variance", "readout_variance", "preconditioner"), NUMBER),
    **dict.fromkeys(("width", "networks", "steps", "dimension"), COUNT),
    "record_every": [*COUNT, 3],
    "rng": SEED,
    "step": [*NUMBER, 2.0],
    "start": [THETA[:1], THETA[0], np.full((2, 4, 3), np.nan), "w", 1.0],
    "points": [POINTS[0], POINTS[:, :1], np.full((3, 2), np.nan), "x"],
    "curvature": [0.0, [1.0, -1.0], [np.nan], "k", None, 1e300],
    "at_step": PAIR,
    "at_half_step": PAIR,
    "error": [*PAIR, -1.0],
    "half_error": [*PAIR, -1.0],
}
NAMED = {
    "inputs": "inputs|targets|parameters|points|start", "parameters": "parameters", "at_step": "at_step|at_half_step",
    "curvature": "curvature|step", "preconditioner": "preconditioner|step", "temperature": "temperature|step",
}  # fmt: skip
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, NAMED)

"""langevin_training against finite differences, the exact variance of the chain, and Monte Carlo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from scipy.stats import norm

from lib.fields.networks import langevin_training
from lib.fields.networks.two_layers import TwoLayer
from lib.foundations import langevin

RNG = np.random.default_rng(2)
X, Y, POINTS = RNG.standard_normal((4, 2)), RNG.standard_normal(4), RNG.standard_normal((3, 2))
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0), "linear": lambda u: u}
VARIANCES = {"weight_variance": 0.8, "readout_variance": 1.3}
NETWORK = TwoLayer("erf", X, Y, 0.3, **VARIANCES)

# --- the density ----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", PHI)
def test_the_density_is_prior_times_likelihood_with_its_finite_differences(activation):
    theta, network = RNG.standard_normal((5, 6, 3)), TwoLayer(activation, X, Y, 0.3, **VARIANCES)
    value, gradient = langevin_training.potential(network, theta)
    w, a = theta[..., :2], theta[..., 2]
    outputs = np.einsum("ci,cpi->cp", a, PHI[activation](np.einsum("pk,cik->cpi", X, w)))
    logarithm = norm.logpdf(w, scale=np.sqrt(0.8 / 2)).sum(axis=(1, 2)) + norm.logpdf(Y, outputs, np.sqrt(0.3)).sum(
        axis=1
    )
    logarithm += norm.logpdf(a, scale=np.sqrt(1.3 / 6)).sum(axis=1)
    np.testing.assert_allclose(value - value[0], logarithm[0] - logarithm, rtol=1e-11, atol=1e-11)
    direction, h = RNG.standard_normal(theta.shape), 1e-5
    there, back = (langevin_training.potential(network, theta + sign * h * direction)[0] for sign in (1, -1))
    np.testing.assert_allclose((gradient * direction).sum(axis=(1, 2)), (there - back) / (2 * h), rtol=1e-6)


@settings(max_examples=20)
@given(st.floats(1e-3, 1e3), st.integers(1, 50), st.integers(1, 50), st.floats(0.1, 10))
def test_the_decay_keeps_the_prior_at_every_temperature(temperature, dimension, width, variance):
    prior = {"weight_variance": variance, "readout_variance": 2 * variance}
    rates = langevin_training.decay_rates(temperature, dimension, width, **prior)
    np.testing.assert_allclose(np.divide(temperature, rates), [variance / dimension, 2 * variance / width], rtol=1e-14)
    # U of one neuron with its decay rates written out: γ|θ|²/2T + L/T
    network = TwoLayer("linear", np.ones((2, dimension)), [1.0, -1.0], temperature, **prior)
    found = langevin_training.potential(network, np.full((1, width, dimension + 1), 0.3))[0]
    loss = ((width * dimension * 0.09 - np.array([1.0, -1.0])) ** 2).sum() / 2
    expected = (rates[0] * width * dimension + rates[1] * width) * 0.09 / (2 * temperature) + loss / temperature
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# --- the chain ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.1, 0.5, 1.5])
def test_without_data_the_variance_is_that_of_the_harmonic_chain_in_both_layers(step):
    free = TwoLayer("erf", np.zeros((0, 4)), [], 0.3, **VARIANCES)
    trained = langevin_training.train(free, 50, 800, 100, rng=5, step=step, record_every=100)
    for part, variance in ((trained.parameters[..., :4], 0.8 / 4), (trained.parameters[..., 4], 1.3 / 50)):
        expected = langevin_training.harmonic_variance(1 / variance, step, preconditioner=variance)
        error = expected * np.sqrt(2 / part.size)  # of the mean square of independent normal numbers
        assert abs((part**2).mean() - expected) < 4 * error and abs(expected - variance) > 4 * error


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-6, 1.99))
def test_the_harmonic_variance_is_the_covariance_of_the_euler_chain(curvature, preconditioner, reach):
    step = reach / (curvature * preconditioner)
    expected = langevin.LangevinSystem([[preconditioner * curvature]], [[preconditioner]]).euler_covariance(step)[0, 0]
    found = langevin_training.harmonic_variance(curvature, step, preconditioner=preconditioner)
    assert found == pytest.approx(expected, rel=1e-9) and type(found) is float


def test_richardson_takes_out_the_first_order_and_adds_the_errors():
    steps, k = np.array([0.04, 0.02, 0.01]), np.array([1.0, 3.0])
    pairs = [[langevin_training.harmonic_variance(k, h) for h in (s, s / 2)] for s in steps]
    left = [langevin_training.richardson(*pair).mean - 1 / k for pair in pairs]
    np.testing.assert_allclose(left[0] / left[1], 4, rtol=0.06)
    np.testing.assert_allclose(left[1] / left[2], 4, rtol=0.03)
    noise = 1 + np.random.default_rng(1).standard_normal((2, 20_000)) * [[0.3], [0.2]]
    value, error = langevin_training.richardson(*noise, error=0.3, half_error=0.2)
    assert error.shape == value.shape and abs(value.std() / error[0] - 1) < 4 / np.sqrt(40_000)


def test_a_step_is_drift_and_noise_by_the_gradient_of_the_density():
    """θ' = θ - hD ∂U + √(2hD) ξ,  D = the variances of the prior."""
    start, h, d = RNG.standard_normal((2, 5, 3)), 0.04, np.array([0.4, 0.4, 1.3 / 5])
    trained = langevin_training.train(NETWORK, 5, 2, 1, np.random.default_rng(7), step=h, start=start, points=POINTS)
    noise = np.random.default_rng(7).standard_normal(start.shape)
    expected = start - h * d * langevin_training.potential(NETWORK, start)[1] + np.sqrt(2 * h * d) * noise
    np.testing.assert_allclose(trained.parameters, expected, rtol=1e-12, atol=1e-13)
    outputs = np.einsum("cpi,ci->cp", erf(POINTS @ expected[..., :2].swapaxes(1, 2)), expected[..., 2])
    np.testing.assert_allclose(trained.outputs[0], outputs, rtol=1e-11, atol=1e-12)


def test_half_the_noise_is_half_the_temperature_and_half_of_both_prior_variances():
    start = np.random.default_rng(3).standard_normal((2, 3, 3))
    run = {"width": 3, "replicas": 2, "steps": 20, "rng": 7, "step": 0.05, "start": start}
    warm, cool = ((t, {"weight_variance": 3 * t, "readout_variance": 2 * t}) for t in (0.4, 0.2))
    half = langevin_training.train(TwoLayer("erf", X, Y, warm[0], **warm[1]), noise=1.0, **run)
    cold = langevin_training.train(TwoLayer("erf", X, Y, cool[0], **cool[1]), **run)
    np.testing.assert_allclose(half.parameters, cold.parameters, rtol=1e-12)
    free = {"step": 0.2, "noise": 1.0, "record_every": 200}
    mode = langevin_training.train(TwoLayer("erf", X[:0], Y[:0], 0.3), 50, 100, 200, rng=1, **free)
    squares = 50 * mode.parameters[..., -1].ravel() ** 2 / langevin_training.harmonic_variance(1.0, 0.2)
    assert abs(squares.mean() - 0.5) < 4 * 0.5 * np.sqrt(2 / squares.size)


def test_records_are_moments_of_one_run_and_a_run_can_be_continued():
    run = {"network": NETWORK, "width": 3, "replicas": 2}
    every = langevin_training.train(**run, steps=20, rng=7, points=POINTS)
    fifth = langevin_training.train(**run, steps=20, rng=7, points=POINTS, record_every=5)
    assert np.array_equal(fifth.outputs, every.outputs[4::5]) and np.array_equal(fifth.loss, every.loss[4::5])
    random = np.random.default_rng(8)
    one = langevin_training.train(**run, steps=10, rng=random)
    two = langevin_training.train(**run, steps=10, rng=random, start=one.parameters)
    whole = langevin_training.train(**run, steps=20, rng=np.random.default_rng(8))
    assert np.array_equal(two.parameters, whole.parameters)
    # The points are the inputs.
    np.testing.assert_allclose(whole.loss, ((whole.outputs - Y) ** 2).sum(axis=2) / 2, rtol=1e-13)
    final = np.einsum("cpi,ci->cp", erf(X @ whole.parameters[..., :2].swapaxes(1, 2)), whole.parameters[..., 2])
    np.testing.assert_allclose(whole.outputs[-1], final, rtol=1e-12)


# --- what does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: langevin_training.train(TwoLayer("linear", X, Y, 1e-3), 3, 2, 400, rng=1, step=0.5),
            "step must be smaller: with this one a network runs away",
        ),
        (lambda: langevin_training.train(NETWORK, 3, 2, 4, 1, record_every=3), "record_every must divide the number"),
        (lambda: langevin_training.train(NETWORK, 3, 2, 4, 1, start=np.ones((1, 3, 3))), "start must have shape"),
        (lambda: langevin_training.train(NETWORK, 3, 2, 4, 1, points=POINTS[:, :1]), "points must have two axes"),
        (lambda: langevin_training.train("erf", 3, 2, 4, 1), "network must be a TwoLayer"),
        (lambda: langevin_training.potential(NETWORK, np.ones((2, 4, 2))), "parameters must have three axes"),
        (lambda: langevin_training.potential(NETWORK, np.full((2, 4, 3), 1e200)), "parameters must keep"),
        (lambda: langevin_training.harmonic_variance([1.0, 4.0], 0.5), "step must be below 2/"),
        (lambda: langevin_training.richardson([1.0, 2.0], [1.0]), "at_half_step must have one axis of length 2"),
        (lambda: langevin_training.richardson([1.0], [1.0], half_error=[1.0, 2.0]), "half_error must be one number"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

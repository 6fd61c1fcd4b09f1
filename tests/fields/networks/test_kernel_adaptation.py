"""kernel_adaptation against differences, scalar roots, linear networks, and the sampled posterior."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, ortho_group

from lib.common import hmc
from lib.fields.networks import kernel_adaptation
from lib.fields.networks.kernel_adaptation import adapt
from lib.fields.networks.prior import Prior
from lib.fields.networks.two_layers import TwoLayer

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((9, 3)), 2 * RNG.standard_normal(9)


def net(activation, x, y, ridge, **prior):
    return TwoLayer(Prior(activation, **prior), x, y, ridge)


activations = pytest.mark.parametrize("activation", ["erf", "relu"])


def free_energy(covariance, activation, x, y, ridge, width, readout_variance=1.0, prior=None, determinant=False):
    """F from SciPy's Gaussian densities: evidence of the targets, and the divergence of two Gaussians written out."""
    prior = np.eye(x.shape[1]) / x.shape[1] if prior is None else prior
    kernel = Prior(activation, weight_covariance=covariance, readout_variance=readout_variance).kernel(x)
    density = multivariate_normal(cov=kernel + ridge * np.eye(len(y)))
    evidence = density.logpdf(y) - (0 if determinant else density.logpdf(0 * y))
    ratio = np.linalg.solve(prior, covariance)
    offset = len(y) / 2 * np.log(2 * np.pi) if determinant else 0
    return -evidence - offset + width / 2 * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(prior))


def covariances(rng, size):
    root = rng.standard_normal((size, size + 1))
    return root @ root.T / size


# --- the force ------------------------------------------------------------------------------------


@activations
@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_slope_is_the_finite_difference_of_the_kernel(activation, count, dimension, seed):
    rng = np.random.default_rng(seed)
    x, pairs = rng.standard_normal((count, dimension)), covariances(rng, count) - 0.5
    covariance, direction, h = covariances(rng, dimension), covariances(rng, dimension) - 0.3, 1e-5
    there, back = (
        (pairs * Prior(activation, weight_covariance=covariance + sign * h * direction).kernel(x)).sum()
        for sign in (1, -1)
    )
    found = kernel_adaptation.slope(activation, x, pairs, covariance)
    difference = (there - back) / (2 * h)
    assert (found * direction).sum() == pytest.approx(difference, rel=1e-6, abs=1e-6 * np.abs(pairs).sum())
    np.testing.assert_allclose(found, found.T, rtol=1e-12, atol=1e-12)


# --- the solution ---------------------------------------------------------------------------------


@activations
@pytest.mark.parametrize("fluctuations", [False, True])
def test_the_equation_holds_and_the_free_energy_is_stationary(activation, fluctuations):
    prior = covariances(np.random.default_rng(1), 3)
    network = net(activation, X, Y, 0.3, weight_variance=0.8, readout_variance=1.7, weight_covariance=prior)
    found = adapt(network, 7.5, fluctuations=fluctuations)
    kernel = Prior(activation, weight_covariance=found.covariance, readout_variance=1.7).kernel(X)
    np.testing.assert_allclose(found.kernel, kernel, rtol=1e-10, atol=1e-12)
    inverse = np.linalg.inv(kernel + 0.3 * np.eye(9))
    np.testing.assert_allclose(found.dual, inverse @ Y, rtol=1e-9)
    pairs = np.outer(found.dual, found.dual) - (inverse if fluctuations else 0)
    wanted = np.linalg.inv(0.8 * prior) - 1.7 / 7.5 * kernel_adaptation.slope(activation, X, pairs, found.covariance)
    np.testing.assert_allclose(np.linalg.inv(found.covariance), wanted, rtol=1e-6, atol=1e-7)
    assert found.residual < 1e-9

    def energy(covariance):
        return free_energy(covariance, activation, X, Y, 0.3, 7.5, 1.7, 0.8 * prior, fluctuations)

    assert found.free_energy == pytest.approx(energy(found.covariance), rel=1e-10)
    rng, h = np.random.default_rng(2), 1e-3
    for _ in range(5):
        step = h * (covariances(rng, 3) - 0.5)
        there, back = energy(found.covariance + step), energy(found.covariance - step)
        assert there > found.free_energy < back and abs(there - back) < 0.1 * (there + back - 2 * found.free_energy)


@activations
@settings(max_examples=12)
@given(
    st.integers(1, 12), st.integers(1, 5), st.integers(0, 99), st.floats(0.03, 10), st.floats(2, 1e3), st.floats(0.1, 5)
)
def test_it_converges_wherever_it_starts_and_never_above_its_start(
    activation, count, dimension, seed, ridge, width, size
):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((count, dimension)), size * rng.standard_normal(count)
    for start in (None, covariances(rng, dimension) + 0.1 * np.eye(dimension)):
        found = adapt(net(activation, x, y, ridge), width, start=start, tolerance=1e-6)
        first = np.eye(dimension) / dimension if start is None else start
        assert found.residual < 1e-6 and np.linalg.eigvalsh(found.covariance)[0] > 0
        assert found.free_energy <= free_energy(first, activation, x, y, ridge, width) * (1 + 1e-9) + 1e-9


def test_one_weight_and_one_input_are_a_scalar_root():
    x, y, ridge, width, variance, readout = 1.3, 3.0, 0.2, 4.0, 0.6, 1.5

    def equation(b):
        s = b * x**2
        kernel = 2 / np.pi * np.arcsin(2 * s / (1 + 2 * s))
        by_variance = 4 / np.pi / ((1 + 2 * s) * np.sqrt(1 + 4 * s)) * x**2
        return 1 / b - 1 / variance + readout / width * (y / (readout * kernel + ridge)) ** 2 * by_variance

    expected = brentq(equation, variance, 50, xtol=1e-13)
    network = net("erf", [[x]], [y], ridge, weight_variance=variance, readout_variance=readout)
    assert adapt(network, width).covariance.item() == pytest.approx(expected, rel=1e-9) and expected > 1.2 * variance


@activations
@settings(max_examples=8)
@given(st.integers(0, 99))
def test_it_turns_with_the_inputs(activation, seed):
    turn = ortho_group.rvs(3, random_state=seed)
    one, other = (adapt(net(activation, x, Y, 0.3), 5) for x in (X, X @ turn.T))
    np.testing.assert_allclose(other.covariance, turn @ one.covariance @ turn.T, rtol=1e-6, atol=1e-8)
    assert other.free_energy == pytest.approx(one.free_energy, rel=1e-10)


@activations
def test_wide_networks_are_lazy_with_a_deviation_of_one_over_n(activation):
    lazy, deviation, network = np.eye(3) * 0.8 / 3, [], net(activation, X, Y, 0.3, weight_variance=0.8)
    for width in (1e4, 1e5, 1e8):
        found = adapt(network, width)
        deviation.append(np.abs(found.covariance - lazy).max())
    assert deviation[0] / deviation[1] == pytest.approx(10, rel=0.02) and deviation[2] < 1e-6


def test_without_data_the_weights_keep_their_prior():
    network, lazy = net("erf", np.zeros((0, 3)), [], 0.3, weight_variance=0.8), np.eye(3) * 0.8 / 3
    found = adapt(network, 5)
    np.testing.assert_allclose(found.covariance, lazy, rtol=1e-14)
    assert found.kernel.shape == (0, 0) and found.free_energy == pytest.approx(0, abs=1e-12) and found.iterations == 0


def test_a_direction_that_the_prior_does_not_draw_stays_empty():
    prior = np.diag([1.0, 0.5, 0.0])
    found = adapt(net("erf", X, Y, 0.3, weight_covariance=prior), 5)
    flat = adapt(net("erf", X[:, :2], Y, 0.3, weight_covariance=prior[:2, :2]), 5)
    np.testing.assert_allclose(found.covariance[:2, :2], flat.covariance, rtol=1e-7)
    assert np.abs(found.covariance[2]).max() == 0


def test_fields_of_a_second_layer_adapted_at_more_points_at_once_are_the_same_at_the_examples():
    """At the examples the fields h_i ~ N(0, K⁰) play the part of weights, with unit vectors for inputs."""
    both = np.random.default_rng(6).standard_normal((10, 3))
    hidden = Prior("erf", weight_variance=1.2).kernel(both)
    few, many = (
        adapt(net("erf", np.eye(count)[:6], Y[:6], 0.3, weight_covariance=hidden[:count, :count]), 6).covariance
        for count in (6, 10)
    )
    np.testing.assert_allclose(few, many[:6, :6], rtol=1e-6, atol=1e-8)
    assert few[0, 0] > 1.01 * hidden[0, 0]


# --- rivals and the fluctuations ----------------------------------------------------------


@activations
@pytest.mark.parametrize("fluctuations", [False, True])
@pytest.mark.parametrize("size", [0.3, 20.0])
def test_the_adapted_network_lies_below_every_common_scale_of_the_prior(activation, fluctuations, size):
    network, lazy = net(activation, X, size * Y, 0.3, weight_variance=0.8), np.eye(3) * 0.8 / 3

    def energy(covariance):
        return free_energy(covariance, activation, X, size * Y, 0.3, 2.5, 1.0, lazy, fluctuations)

    adapted = adapt(network, 2.5, fluctuations=fluctuations)
    assert adapted.free_energy == pytest.approx(energy(adapted.covariance), rel=1e-9)
    assert adapted.free_energy < min(energy(scale * lazy) for scale in np.exp(np.linspace(-5, 6, 300)))


def test_the_fluctuations_are_what_shrinks_weights_without_a_target():
    network = net("relu", np.random.default_rng(4).standard_normal((12, 4)), np.zeros(12), 0.3)
    lazy, shrunk = (adapt(network, 16, fluctuations=option).covariance for option in (False, True))
    np.testing.assert_allclose(lazy, np.eye(4) / 4, rtol=1e-12)
    squares = network.hmc(
        16, 60, 120, rng=1, burn_in=60, leapfrog=6, observable=lambda w: (w**2).sum(axis=2).mean(axis=1)
    )
    found = hmc.summary(squares.samples)
    assert 1 - found.mean > 10 * found.error and abs(np.trace(shrunk) - found.mean) < 0.25 * (1 - found.mean)


# --- what does not fit ----------------------------------------------------------------------------

NETWORK = net("erf", X, Y, 0.3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adapt(NETWORK, 5, iterations=3), "iterations must be more, for a residual below 1e-09, got .*3, with"),
        (lambda: adapt(NETWORK, 5, start=np.diag([1.0, 1.0, 0.0])), "start must be positive definite"),
        (lambda: adapt(NETWORK, 5, start=np.eye(2)), "start must have shape"),
        (
            lambda: adapt(net("erf", X, Y, 0.3, weight_covariance=np.zeros((3, 3))), 5),
            "weight_covariance of prior must have an",
        ),
        (lambda: adapt(net("erf", np.ones((3, 2)), np.ones(3), 1e-20), 5), "ridge must be large enough"),
        (lambda: adapt(net("erf", 1e200 * X, Y, 0.3), 5), "inputs must"),
        (lambda: adapt("erf", 5), "network must be a TwoLayer"),
        (lambda: kernel_adaptation.slope("erf", X, np.eye(3), np.eye(3)), "pairs must have shape"),
        (lambda: kernel_adaptation.slope("erf", X, np.eye(9), np.eye(2)), "covariance must have shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

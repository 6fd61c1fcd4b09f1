"""three_layers against quadrature given the first layer, plain sampling, infinite widths, more points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from scipy.stats import multivariate_normal, ortho_group

from lib.fields.networks import kernel_adaptation, three_layers
from lib.fields.networks.prior import Prior
from lib.fields.networks.two_layers import TwoLayer

RNG = np.random.default_rng(5)
X, Y, POINTS = RNG.standard_normal((6, 3)), 2 * RNG.standard_normal(6), RNG.standard_normal((4, 3))
VARIANCES = (0.9, 1.4, 1.2)
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0)}
activations = pytest.mark.parametrize("activation", PHI)


def prior_kernel(activation, x, other=None):
    return Prior(activation, weight_variance=VARIANCES[0], readout_variance=VARIANCES[1]).kernel(x, other)


# --- random networks ------------------------------------------------------------------------------


@activations
def test_the_characteristic_functional_of_narrow_networks_by_plain_sampling_and_by_quadrature_given_the_first_layer(
    activation,
):
    x, sources, widths = X[:2], np.array([1.2, -0.6]) * {"erf": 0.5, "relu": 1.0}[activation], (7, 5)
    found = three_layers.characteristic_functional(activation, x, sources, widths, 100_000, 1, variances=VARIANCES)
    waves = np.cos(three_layers.outputs(activation, x, widths, 200_000, 2, variances=VARIANCES) @ sources)
    error = waves.std() / np.sqrt(len(waves))
    assert abs(found.mean - waves.mean()) < 4 * np.hypot(found.error, error) and found.error < error < 8e-4
    assert 0.7 < found.mean < 0.95

    rng = np.random.default_rng(3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    weights = weights / weights.sum()
    first = PHI[activation](np.sqrt(VARIANCES[0] / 3) * rng.standard_normal((4000, 7, 3)) @ x.T)
    given_first = np.empty(4000)
    for i, features in enumerate(first):
        values, axes = np.linalg.eigh(VARIANCES[1] / 7 * features.T @ features)
        root = axes * np.sqrt(np.maximum(values, 0))
        h = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1) @ root.T
        field = PHI[activation](h) @ sources
        given_first[i] = (weights @ np.exp(-VARIANCES[2] / 10 * field**2) @ weights) ** 5
    spread = given_first.std() / np.sqrt(4000)
    assert abs(found.mean - given_first.mean()) < 4 * np.hypot(found.error, spread) and spread < 2e-3


@activations
def test_wide_networks_have_the_gaussian_functional(activation):
    sources, deviation = np.array([0.9, -0.5, 0.4]), []
    hidden = prior_kernel(activation, X[:3])
    kernel = Prior(activation, weight_covariance=hidden, readout_variance=VARIANCES[2]).kernel(np.eye(3))
    for width in (10, 160):
        call = activation, X[:3], sources, (width, width), 160_000 // width, 4
        found = three_layers.characteristic_functional(*call, variances=VARIANCES)
        deviation.append((found.mean - np.exp(-sources @ kernel @ sources / 2), found.error))
    assert abs(deviation[1][0]) < 4 * deviation[1][1] + 0.25 * abs(deviation[0][0])
    samples = three_layers.outputs(activation, X[:3], (200, 200), 1500, 5, variances=VARIANCES)
    error = np.sqrt((kernel**2 + np.outer(kernel.diagonal(), kernel.diagonal())) / 1500)
    assert np.all(np.abs(samples.T @ samples / 1500 - kernel) < 4.5 * error)


def test_without_sources_it_is_one_and_many_networks_are_drawn_in_blocks():
    assert three_layers.characteristic_functional("erf", X, np.zeros(6), (3, 2), 10, 0).mean == 1
    found = three_layers.outputs("relu", X, (300, 200), 40, 0)
    assert found.shape == (40, 6) and np.all(np.ptp(found, axis=0) > 0)


# --- the second layer's kernel --------------------------------------------------------------------


@activations
def test_the_equation_holds_and_the_free_energy_is_stationary(activation):
    found = three_layers.adapt(activation, X, Y, 0.3, 6, variances=VARIANCES)
    prior, hidden = prior_kernel(activation, X), found.covariance
    kernel = Prior(activation, weight_covariance=hidden, readout_variance=VARIANCES[2]).kernel(np.eye(6))
    dual = np.linalg.solve(kernel + 0.3 * np.eye(6), Y)
    force = kernel_adaptation.slope(activation, np.eye(6), np.outer(dual, dual), hidden)
    wanted = np.linalg.inv(prior) - VARIANCES[2] / 6 * force
    np.testing.assert_allclose(np.linalg.inv(hidden), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.dual, dual, rtol=1e-8)

    def energy(change):
        matrix = Prior(activation, weight_covariance=hidden + change, readout_variance=VARIANCES[2]).kernel(
            np.eye(6)
        ) + 0.3 * np.eye(6)
        pull = multivariate_normal.logpdf(0 * Y, cov=matrix) - multivariate_normal.logpdf(Y, cov=matrix)
        ratio = np.linalg.solve(prior, hidden + change)
        return pull + 3 * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 6)

    assert found.free_energy == pytest.approx(energy(0), rel=1e-10)
    rng = np.random.default_rng(2)
    for _ in range(4):
        step = 1e-4 * rng.standard_normal((6, 6))
        there, back = energy(step + step.T), energy(-step - step.T)
        assert there > found.free_energy < back and abs(there - back) < 0.1 * (there + back - 2 * found.free_energy)


@activations
def test_wide_second_layers_are_lazy(activation):
    prior, deviation = prior_kernel(activation, X), []
    for width in (1e4, 1e5, 1e8):
        found = three_layers.adapt(activation, X, Y, 0.3, width, variances=VARIANCES)
        deviation.append(np.abs(found.covariance - prior).max())
    assert deviation[0] / deviation[1] == pytest.approx(10, rel=0.03) and deviation[2] < 1e-6


@activations
def test_fields_adapted_at_more_points_at_once_are_the_same_at_the_examples(activation):
    both = np.vstack([X, POINTS])
    fields = TwoLayer(activation, np.eye(10)[:6], Y, 0.3, readout_variance=VARIANCES[2])
    everywhere = kernel_adaptation.adapt(fields, 6, weight_covariance=prior_kernel(activation, both)).covariance
    found = three_layers.adapt(activation, X, Y, 0.3, 6, variances=VARIANCES)
    np.testing.assert_allclose(found.covariance, everywhere[:6, :6], rtol=1e-6, atol=1e-8)


@activations
@settings(max_examples=6)
@given(st.integers(0, 99))
def test_turned_inputs_change_nothing_and_a_new_order_is_followed(activation, seed):
    turn, order = ortho_group.rvs(3, random_state=seed), np.random.default_rng(seed).permutation(6)
    one = three_layers.adapt(activation, X, Y, 0.3, 6)
    other = three_layers.adapt(activation, X[order] @ turn, Y[order], 0.3, 6)
    np.testing.assert_allclose(other.covariance, one.covariance[np.ix_(order, order)], rtol=1e-6, atol=1e-8)


def test_examples_that_the_first_layer_cannot_tell_apart_get_the_same_kernel():
    same = np.vstack([X, X[:1]])
    found = three_layers.adapt("erf", same, [*Y, Y[0]], 0.3, 6)
    assert found.covariance[0, 0] == pytest.approx(found.covariance[0, 6], rel=1e-6)


@pytest.mark.parametrize("widths", [4, (4,), (4, 3, 2), (0, 3), (4, 2.0), (4, None), "ab", None])
def test_widths_are_two_numbers_of_units(widths):
    with pytest.raises(ValueError, match="^widths must "):
        three_layers.outputs("erf", X, widths, 3, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: three_layers.outputs("erf", X, (4, 3), 3, 0, variances=(1, 1)),
            "variances must have one axis of length 3",
        ),
        (
            lambda: three_layers.characteristic_functional("erf", X, Y[:5], (4, 3), 5, 0),
            "sources must have one axis of length 6",
        ),
        (lambda: three_layers.adapt("erf", X, Y[:5], 0.3, 6), "targets must have one axis of length 6"),
        (lambda: three_layers.adapt("linear", X, Y, 0.3, 6), "activation must be one of erf, relu"),
        (lambda: three_layers.adapt("erf", X, Y, 0.3, 6, start=np.eye(3)), "start must have shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

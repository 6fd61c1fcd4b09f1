"""lib.fields.networks.random_networks against sampling, quadrature over the weights, and the Gaussian process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erf, roots_legendre

from lib.fields.networks import nngp, random_networks

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4))
THIRDS = {"weight_variance": 1 / 3, "readout_variance": 1 / 3, "law": "uniform"}
EVERY = [(activation, law) for activation in nngp.ACTIVATIONS for law in random_networks.LAWS]


# --- outputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("activation", "width"), [("erf", 1), ("relu", 1), ("relu", 30)])
def test_covariance_is_the_kernel_at_every_width(activation, width):
    z = random_networks.sample(activation, X, width, 400_000 // width, 2, weight_variance=2.0, readout_variance=0.7)
    products = z[:, :, None] * z[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(z))
    expected = nngp.kernel(activation, X, weight_variance=2.0, readout_variance=0.7)
    assert np.all(np.abs(products.mean(axis=0) - expected) < 5 * error)
    assert np.all(np.abs(z.mean(axis=0)) < 5 * z.std(axis=0) / np.sqrt(len(z)))


@pytest.mark.parametrize("activation", nngp.ACTIVATIONS)
def test_uniform_weights_have_the_gaussian_kernel_in_many_dimensions_and_not_in_two(activation):
    """The slide's ensemble is σ_w² = s_a² = 1/3; without the thirds it would be three to nine times off."""
    for dimension, fits in ((50, True), (2, False)):
        x = np.full((2, dimension), 5.0)  # far from linear units
        x[1, : dimension // 2] *= -1
        z = random_networks.sample(activation, x, 1, 400_000, 4, **THIRDS)
        products = z[:, :, None] * z[:, None, :]
        gap = products.mean(axis=0) - nngp.kernel(activation, x, weight_variance=1 / 3, readout_variance=1 / 3)
        error = products.std(axis=0) / np.sqrt(len(z))
        assert np.all(np.abs(gap) < 5 * error) == fits


def test_uniform_draws_fill_their_ranges():
    """erf(10⁵ w) is the sign of w and ReLU passes w on: N = 1 shows the law of a, then that of a·w."""
    a = np.abs(random_networks.sample("erf", [[1e5]], 1, 20_000, 0, **THIRDS))
    np.testing.assert_allclose(np.quantile(a, [0.25, 0.5, 0.75, 1]), [0.25, 0.5, 0.75, 1], atol=0.02)
    product = np.abs(random_networks.sample("relu", [[1.0]], 1, 20_000, 0, **THIRDS))
    assert 0.95 < product.max() < 1
    assert np.mean(product == 0) == pytest.approx(0.5, abs=0.02)


def test_one_network_is_one_function_in_whatever_blocks_it_is_computed():
    points = np.vstack([X, X])
    whole = random_networks.sample("relu", points, 50, 7, 5)
    np.testing.assert_allclose(whole[:, :3], whole[:, 3:], rtol=1e-12, atol=1e-14)
    # 256 inputs at a time, one network at a time
    wide = random_networks.sample("erf", np.tile(X, (200, 1)), 2**13, 2, 5)
    np.testing.assert_allclose(wide, np.tile(wide[:, :3], (1, 200)), rtol=1e-9, atol=1e-12)
    assert np.abs(wide[0] - wide[1]).max() > 0.1
    assert np.array_equal(whole, random_networks.sample("relu", points, 50, 7, 5))
    assert not np.array_equal(whole, random_networks.sample("relu", points, 50, 7, 6))


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(EVERY), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_outputs_scale_with_readouts_and_relu_with_inputs(case, width, replicas, seed):
    activation, run = case[0], {"width": width, "replicas": replicas, "rng": seed, "law": case[1]}
    one = random_networks.sample(activation, X, **run)
    np.testing.assert_allclose(random_networks.sample(activation, X, readout_variance=4.0, **run), 2 * one, rtol=1e-12)
    wider = random_networks.sample(activation, X, weight_variance=9.0, **run)
    np.testing.assert_allclose(wider, random_networks.sample(activation, 3 * X, **run), rtol=1e-11, atol=1e-14)
    if activation == "relu":
        np.testing.assert_allclose(wider, 3 * one, rtol=1e-11, atol=1e-14)


# --- kurtosis -------------------------------------------------------------------------------------


CASES = [
    ("relu", "gaussian", 5),
    ("relu", "uniform", 5),
    ("erf", "gaussian", 5),
    ("erf", "uniform", 2),
    ("erf", "gaussian", 1),
]


@pytest.mark.parametrize(("activation", "law", "width"), CASES)
def test_kurtosis_is_that_of_sampled_networks(activation, law, width):
    x = [[0.9, 1.1]]
    z = random_networks.sample(activation, x, width, 1_000_000, 8, law=law).reshape(50, -1)  # (batches, networks)
    batches = (z**4).mean(axis=1) / (z**2).mean(axis=1) ** 2 - 3  # (batches,), biased by the inverse of 20 000 networks
    error = batches.std(ddof=1) / np.sqrt(len(batches))
    expected = random_networks.excess_kurtosis(activation, x, width, law=law).item()
    assert abs(batches.mean() - expected) < 5 * error
    assert error < 0.15


def test_kurtosis_of_relu_is_fifteen_or_seven_point_eight_over_the_width():
    np.testing.assert_allclose(random_networks.excess_kurtosis("relu", X, 6), 15 / 6, rtol=1e-14)
    many = random_networks.excess_kurtosis("relu", np.ones((1, 100_000)), 6, law="uniform")
    np.testing.assert_allclose(many, 7.8 / 6, rtol=1e-4)
    far, near = (random_networks.excess_kurtosis("relu", scale * X, 6, law="uniform") for scale in (1e100, 1))
    np.testing.assert_allclose(far, near, rtol=1e-13)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_kurtosis_of_erf_is_that_of_quadrature_over_the_weights(scale):
    """Gaussian: one integral over w·x.  Uniform: both weights of a neuron in two dimensions."""
    variance = 0.5 * scale**2
    x = np.array([1.0, -0.4])
    spread = np.sqrt(variance / 2 * x @ x)
    normal = {"epsabs": 0, "epsrel": 1e-12, "limit": 500, "points": [min(1, 1 / spread)]}
    moments = [
        quad(lambda u, k=k: erf(spread * u) ** k * np.exp(-(u**2) / 2) * np.sqrt(2 / np.pi), 0, 12, **normal)[0]
        for k in (2, 4)
    ]
    found = random_networks.excess_kurtosis("erf", [x], 1, weight_variance=variance)
    np.testing.assert_allclose(found, 3 * moments[1] / moments[0] ** 2 - 3, rtol=1e-9, atol=1e-9)
    assert moments[0] == pytest.approx(nngp.variance("erf", [x], weight_variance=variance).item(), rel=1e-10)
    nodes, weights = roots_legendre(1000)
    u = np.sqrt(3 * variance / 2) * (x[0] * nodes[:, None] + x[1] * nodes)  # (1000, 1000)
    moments = [weights @ erf(u) ** k @ weights / 4 for k in (2, 4)]
    found = random_networks.excess_kurtosis("erf", [x], 1, weight_variance=variance, law="uniform")
    np.testing.assert_allclose(found, 9 / 5 * moments[1] / moments[0] ** 2 - 3, rtol=1e-8, atol=1e-8)


def test_kurtosis_of_erf_goes_from_linear_units_to_signs():
    # in one dimension w has the ratio of a
    for law, linear, signs in (("gaussian", 6.0, 0.0), ("uniform", 9 / 5 * 9 / 5 - 3, 9 / 5 - 3)):
        assert random_networks.excess_kurtosis("erf", [[0.04]], 1, law=law).item() == pytest.approx(linear, abs=0.04)
        assert random_networks.excess_kurtosis("erf", [[1000.0]], 1, law=law).item() == pytest.approx(signs, abs=0.02)


# --- characteristic functional --------------------------------------------------------------------


@pytest.mark.parametrize(("activation", "law"), EVERY)
@pytest.mark.parametrize("width", [1, 4])
def test_characteristic_functional_is_that_of_sampled_networks(activation, law, width):
    t = np.array([0.8, -1.2, 0.5])
    settings_ = {"weight_variance": 2.0, "readout_variance": 1.5, "law": law}
    waves = np.exp(1j * random_networks.sample(activation, X, width, 400_000, 1, **settings_) @ t)
    error = waves.real.std() / np.sqrt(len(waves))
    found = random_networks.characteristic_functional(activation, X, t, width, 400_000, 2, **settings_)
    assert abs(found.mean - waves.real.mean()) < 5 * np.hypot(error, found.error)
    assert abs(waves.imag.mean()) < 5 * waves.imag.std() / np.sqrt(len(waves))
    assert 0 < found.error < error
    assert 0.1 < found.mean < 0.95


def test_characteristic_functional_of_one_input_is_that_of_quadrature():
    for width in (1, 3, 40):
        weight = lambda u: np.exp(-(erf(1.3 * u) ** 2) * 2 / width - u**2 / 2) / np.sqrt(2 * np.pi)  # noqa: E731
        inner = quad(weight, -12, 12, epsabs=1e-13)[0]
        found = random_networks.characteristic_functional("erf", [[1.3]], [2.0], width, 400_000, 3)
        assert abs(found.mean - inner**width) < 5 * found.error < 0.005


@pytest.mark.parametrize("law", random_networks.LAWS)
def test_characteristic_functional_leaves_the_gaussian_process_by_the_kurtosis_over_the_width(law):
    """log⟨e^{itz}⟩ = -t²K/2 + κ₄ (t²K)²/24 + O(N⁻²), at one input, of ReLU units in one dimension."""
    t = nngp.variance("relu", [[1.0]]) ** -0.5  # t²K = 1
    for width in (40, 160):
        found = random_networks.characteristic_functional("relu", [[1.0]], t, width, 6_000_000, 4, law=law)
        error = found.error / found.mean
        correction = random_networks.excess_kurtosis("relu", [[1.0]], width, law=law).item() / 24
        assert abs(np.log(found.mean) + 0.5 - correction) < 5 * error + 10 / width**2
        assert law == "uniform" or width == 160 or correction > 5 * error + 10 / width**2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: random_networks.excess_kurtosis("erf", [[1.0, 0.0], [0.0, 0.0]], 3),
            "inputs must differ from the origin",
        ),
        (lambda: random_networks.excess_kurtosis("relu", [[0.0]], 3), "inputs must differ from the origin"),
        (lambda: random_networks.excess_kurtosis("erf", [[1e-3]], 1), "inputs must give erf units an average fourth"),
        (lambda: random_networks.excess_kurtosis("erf", [[1e5]], 1), "inputs must give pre-activations below"),
        (
            lambda: random_networks.sample("relu", [[1e308]], 50, 9, 1, weight_variance=1e10),
            "inputs must keep the result",
        ),
        (
            lambda: random_networks.characteristic_functional("relu", [[1e308]], [1e10], 1, 10, 1),
            "inputs must keep the result",
        ),
        (
            lambda: random_networks.characteristic_functional("relu", X, [1.0], 1, 10, 1),
            "sources must have one axis of length 3",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

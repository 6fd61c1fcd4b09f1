"""nngp against sampled weights, formulas with angles, the kernel's series, and quadrature on the sphere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf, eval_gegenbauer, roots_gegenbauer

from lib.fields.networks import nngp
from lib.foundations import sampling

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3))
ROOT = RNG.standard_normal((3, 3))
SIGMA = ROOT @ ROOT.T / 3
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0)}


def angles(activation, x, y, sigma):
    """The kernels as printed, by arcsine and arccosine."""
    s11, s22 = (np.einsum("ij,jk,ik->i", z, sigma, z) for z in (x, y))
    s11, s12 = s11[:, None], x @ sigma @ y.T
    if activation == "erf":
        return 2 / np.pi * np.arcsin(2 * s12 / np.sqrt((1 + 2 * s11) * (1 + 2 * s22)))
    theta = np.arccos(np.clip(s12 / np.sqrt(s11 * s22), -1, 1))
    return np.sqrt(s11 * s22) / (2 * np.pi) * (np.sin(theta) + (np.pi - theta) * np.cos(theta))


# --- the kernel -----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", nngp.ACTIVATIONS)
def test_kernel_is_the_average_over_a_million_neurons(activation):
    points = np.vstack([X[:3], 2 * X[:1]])

    def products(u):
        hidden = PHI[activation](u)
        return hidden[:, :, None] * hidden[:, None, :]

    found = sampling.monte_carlo_average(products, points @ SIGMA @ points.T, 1_000_000, rng=1)
    expected = nngp.kernel(activation, points, weight_covariance=SIGMA)
    assert np.all(np.abs(found.mean - expected) < 5 * found.error)
    assert found.error.max() < 0.01 * expected.max()


@pytest.mark.parametrize("activation", nngp.ACTIVATIONS)
def test_kernel_is_the_printed_formula_for_both_kinds_of_weights(activation):
    isotropic = nngp.kernel(activation, X, Y, weight_variance=1.7, readout_variance=0.3)
    np.testing.assert_allclose(isotropic, 0.3 * angles(activation, X, Y, 1.7 * np.eye(3) / 3), rtol=1e-12, atol=1e-15)
    general = nngp.kernel(activation, X, Y, weight_covariance=SIGMA, weight_variance=0.5)
    np.testing.assert_allclose(general, angles(activation, X, Y, SIGMA / 2), rtol=1e-12, atol=1e-15)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(nngp.ACTIVATIONS), st.integers(1, 8), st.integers(1, 4), st.integers(0, 999), st.floats(0.01, 100)
)
def test_kernel_is_symmetric_and_positive_and_has_its_blocks_and_diagonal(activation, count, dimension, seed, scale):
    x = np.random.default_rng(seed).standard_normal((count, dimension))
    found = nngp.kernel(activation, x, weight_variance=scale)
    assert np.array_equal(found, found.T)
    assert np.linalg.eigvalsh(found)[0] > -1e-10 * max(1, found.max())
    block = nngp.kernel(activation, x, x[:2], weight_variance=scale)
    np.testing.assert_allclose(block, found[:, :2], rtol=1e-7, atol=1e-14 * scale)
    np.testing.assert_allclose(nngp.variance(activation, x, weight_variance=scale), found.diagonal(), rtol=1e-12)
    if activation == "erf":
        assert np.abs(found).max() < 1


def test_relu_kernel_scales_with_its_inputs():
    c, other = np.array([0.1, 3.0, 7.0, 1e-4, 1e3, 1.0, 2.0]), np.array([5.0, 0.2, 1e-6, 40.0])
    scaled, both = nngp.kernel("relu", c[:, None] * X, other[:, None] * Y), np.outer(c, other)
    np.testing.assert_allclose(scaled, both * nngp.kernel("relu", X, Y), rtol=1e-12, atol=1e-13 * both.max())


def test_erf_network_with_small_weights_is_linear_and_with_large_ones_a_sum_of_signs():
    for small in (1e-3, 1e-5):
        s = small * X @ X.T / 3
        found, largest = nngp.kernel("erf", X, weight_variance=small), 2 * s.diagonal().max()
        assert np.all(np.abs(found - 4 / np.pi * s) <= 2 * largest * np.abs(4 / np.pi * s))
    cosine = X @ X.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(X, axis=1))
    signs = 2 / np.pi * np.arcsin(np.clip(cosine, -1, 1))
    np.testing.assert_allclose(nngp.kernel("erf", X, weight_variance=1e14), signs, atol=1e-6)


@pytest.mark.parametrize("activation", nngp.ACTIVATIONS)
def test_kernel_of_many_inputs_does_not_depend_on_the_blocks_it_is_made_in(activation, monkeypatch):
    x = np.random.default_rng(0).standard_normal((40, 3))
    whole = nngp.kernel(activation, x), nngp.kernel(activation, x, x[:30])
    monkeypatch.setattr(nngp, "BLOCK", 100)
    # On the diagonal ReLU turns rounding 1e-16 into 1e-8 of an angle.
    for one, other in zip(whole, (nngp.kernel(activation, x), nngp.kernel(activation, x, x[:30])), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-14)


# --- on the sphere --------------------------------------------------------------------------------


@pytest.mark.parametrize("weight_variance", [0.1, 1.0, 4.0])
def test_coefficients_are_the_series_of_the_kernel(weight_variance):
    rho = np.array([-0.8, -0.1, 0.5, 0.8])
    points = np.sqrt(2) * np.column_stack([rho, np.sqrt(1 - rho**2)])  # |x|² = d = 2
    for activation in nngp.ACTIVATIONS:
        weights = {"weight_variance": weight_variance, "readout_variance": 3.0}
        a = nngp.dot_product_coefficients(activation, 300, **weights)
        expected = nngp.kernel(activation, points, [[np.sqrt(2), 0]], **weights)[:, 0]
        np.testing.assert_allclose(np.polynomial.polynomial.polyval(rho, a), expected, rtol=1e-12)
        assert a.min() >= 0
        for order in range(4):
            np.testing.assert_array_equal(nngp.dot_product_coefficients(activation, order, **weights), a[: order + 1])
    total = nngp.dot_product_coefficients("erf", 800, weight_variance=weight_variance).sum()
    z = 2 * weight_variance / (1 + 2 * weight_variance)
    assert total == pytest.approx(2 / np.pi * np.arcsin(z), rel=1e-10)


def on_sphere(activation, dimension, degree, weight_variance):
    """The exact eigenvalue, by the quadrature of Funk and Hecke."""
    alpha = (dimension - 2) / 2
    rho, weights = roots_gegenbauer(200, alpha)
    points = np.zeros((200, dimension))
    points[:, 0], points[:, 1] = rho * np.sqrt(dimension), np.sqrt(dimension * (1 - rho**2))
    pole = np.sqrt(dimension) * np.eye(dimension)[:1]
    values = nngp.kernel(activation, points, pole, weight_variance=weight_variance)[:, 0]
    top = weights.sum() * eval_gegenbauer(degree, alpha, 1.0)
    return weights @ (values * eval_gegenbauer(degree, alpha, rho)) / top


@pytest.mark.parametrize(("activation", "degrees"), [("erf", [1, 3, 5]), ("relu", [0, 1, 2, 4])])
def test_leading_eigenvalues_approach_those_of_the_sphere_as_one_over_d(activation, degrees):
    scaled = []
    for dimension in (100, 200, 400):
        leading = nngp.sphere_spectrum(activation, dimension, degrees, weight_variance=0.7).eigenvalues
        exact = np.array([on_sphere(activation, dimension, degree, 0.7) for degree in degrees])
        scaled.append(dimension * (exact / leading - 1))
    first, second, third = np.array(scaled)
    degrees, a = np.array(degrees), nngp.dot_product_coefficients(activation, 7, weight_variance=0.7)
    expected = (degrees + 1) * (degrees + 2) * a[degrees + 2] / (2 * a[degrees]) - degrees * (degrees - 1)
    # Free of the next order in 1/d.
    before, after = np.abs(2 * second - first - expected), np.abs(2 * third - second - expected)
    assert np.all(after < 0.03 * np.maximum(1, np.abs(expected)))
    assert np.all((after < before / 3) | (after < 1e-3))


def test_eigenvalues_of_erf_and_the_number_of_modes_are_those_of_the_source():
    d, s, a = 40, 1.3, 0.6
    sphere = nngp.sphere_spectrum("erf", d, [3, 1, 0, 2], weight_variance=s, readout_variance=a)
    linear, cubic = 4 * a / np.pi * (s / d) / (1 + 2 * s), 16 * a / np.pi * (s / d) ** 3 / (1 + 2 * s) ** 3
    np.testing.assert_allclose(sphere.eigenvalues, [cubic, linear, 0, 0], rtol=1e-13)
    assert sphere.multiplicities.tolist() == [d * (d - 1) * (d + 4) / 6, d, 1, (d - 1) * (d + 2) / 2]
    # a circle has a sine and a cosine each
    for dimension, modes in ((2, [1, 2, 2, 2]), (3, [1, 3, 5, 101])):
        assert nngp.sphere_spectrum("erf", dimension, [0, 1, 2, 50]).multiplicities.tolist() == modes


def test_trace_on_the_sphere_is_the_variance():
    d, degrees = 12, np.arange(0, 40)
    exact = np.array([on_sphere("erf", d, degree, 1.0) for degree in degrees])
    total = nngp.sphere_spectrum("erf", d, degrees).multiplicities @ exact
    assert total == pytest.approx(nngp.variance("erf", np.sqrt(d) * np.eye(d)[:1]).item(), rel=1e-9)


@pytest.mark.parametrize("activation", nngp.ACTIVATIONS)
def test_the_diagonal_of_the_kernel_is_the_variance_to_the_last_digit(activation):
    x = RNG.standard_normal((40, 7))
    for scale in (1.0, 1e12, 1e15):  # 1 - z of an erf's variance is as small as rounding there
        diagonal = nngp.kernel(activation, x, weight_variance=scale).diagonal()
        np.testing.assert_array_max_ulp(diagonal, nngp.variance(activation, x, weight_variance=scale), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nngp.kernel("erf", X, np.ones((2, 4))), "other must have two axes, the second of length 3"),
        (lambda: nngp.kernel("erf", X, weight_covariance=np.eye(2)), "weight_covariance must have shape"),
        (lambda: nngp.kernel("erf", X, weight_covariance=-SIGMA), "weight_covariance must be positive semi"),
        (lambda: nngp.kernel("erf", np.zeros((0, 3))), "inputs must hold one or more"),
        (lambda: nngp.kernel("relu", [[1e30]], readout_variance=1e300), "readout_variance must keep the result"),
        (lambda: nngp.kernel("erf", X, 1e200 * Y), "other must give pre-activations"),
        (
            lambda: nngp.variance("relu", [[2.0]], weight_variance=1e200, weight_covariance=[[1e200]]),
            "inputs must give pre-activations",
        ),
        (lambda: nngp.sphere_spectrum("erf", 10**8, [100]), "dimension must be small enough"),
        (lambda: nngp.sphere_spectrum("erf", 5, [1.5]), "degrees must hold one or more whole numbers"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

"""lib.fields.networks.prior against sampled networks, their gradients, printed formulas, and quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import erf, eval_gegenbauer, roots_gegenbauer, roots_legendre

from lib.fields.networks import prior
from lib.fields.networks.prior import ACTIVATIONS, LAWS, Prior

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3))
ROOT = RNG.standard_normal((3, 3))
SIGMA = ROOT @ ROOT.T / 3
THIRDS = {"weight_variance": 1 / 3, "readout_variance": 1 / 3, "law": "uniform"}
DEEP = {"depth": 3, "weight_variance": 1.6, "readout_variance": 0.7, "bias_variance": 0.2}


def apart(products, expected):
    """Largest distance of the mean of products (S, ...) from what is expected, in standard errors."""
    return (np.abs(products.mean(axis=0) - expected) / (products.std(axis=0) / np.sqrt(len(products)))).max()


def angles(activation, x, y, sigma):
    """The kernels as printed, by arcsine and arccosine."""
    s11, s22 = (np.einsum("ij,jk,ik->i", z, sigma, z) for z in (x, y))
    s11, s12 = s11[:, None], x @ sigma @ y.T
    if activation == "erf":
        return 2 / np.pi * np.arcsin(2 * s12 / np.sqrt((1 + 2 * s11) * (1 + 2 * s22)))
    if activation == "linear":
        return s12
    theta = np.arccos(np.clip(s12 / np.sqrt(s11 * s22), -1, 1))
    return np.sqrt(s11 * s22) / (2 * np.pi) * (np.sin(theta) + (np.pi - theta) * np.cos(theta))


# --- kernels and draws ----------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_kernel_is_the_printed_formula(activation):
    isotropic = Prior(activation, weight_variance=1.7, readout_variance=0.3).kernel(X, Y)
    np.testing.assert_allclose(isotropic, 0.3 * angles(activation, X, Y, 1.7 * np.eye(3) / 3), rtol=1e-12, atol=1e-15)
    general = Prior(activation, weight_covariance=SIGMA, weight_variance=0.5).kernel(X, Y)
    np.testing.assert_allclose(general, angles(activation, X, Y, SIGMA / 2), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "law",
    [Prior("erf", weight_variance=2.0, readout_variance=0.7), Prior("relu", weight_covariance=SIGMA),
     Prior("erf", bias_variance=0.5), Prior("relu", bias_variance=0.5)],
)  # fmt: skip
@pytest.mark.parametrize("width", [1, 30])
def test_covariance_of_draws_is_the_kernel_at_every_width(law, width):
    z = law.draw(X[:3], width, 400_000 // width, 2)
    assert apart(z[:, :, None] * z[:, None, :], law.kernel(X[:3])) < 5
    assert apart(z, 0) < 5


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_uniform_weights_have_the_gaussian_kernel_in_many_dimensions_and_not_in_two(activation):
    """The slide's ensemble is σ_w² = s_a² = 1/3; without the thirds it would be three to nine times off."""
    for dimension, fits in ((50, True), (2, False)):
        x = np.full((2, dimension), 5.0)  # far from linear units
        x[1, : dimension // 2] *= -1
        z = Prior(activation, **THIRDS).draw(x, 1, 400_000, 4)
        expected = Prior(activation, weight_variance=1 / 3, readout_variance=1 / 3).kernel(x)
        assert (apart(z[:, :, None] * z[:, None, :], expected) < 5) == (fits or activation == "linear")


def test_uniform_draws_fill_their_ranges():
    """erf(10⁵ w) is the sign of w and ReLU passes w on: N = 1 shows the law of a, then that of a·w."""
    a = np.abs(Prior("erf", **THIRDS).draw([[1e5]], 1, 20_000, 0))
    np.testing.assert_allclose(np.quantile(a, [0.25, 0.5, 0.75, 1]), [0.25, 0.5, 0.75, 1], atol=0.02)
    product = np.abs(Prior("relu", **THIRDS).draw([[1.0]], 1, 20_000, 0))
    assert 0.95 < product.max() < 1
    assert np.mean(product == 0) == pytest.approx(0.5, abs=0.02)


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(ACTIVATIONS), st.integers(1, 8), st.integers(1, 4), st.integers(0, 999), st.floats(0.01, 100))
def test_kernels_are_symmetric_and_positive_and_have_their_blocks_and_diagonal(activation, count, depth, seed, scale):
    x, law = np.random.default_rng(seed).standard_normal((count, 3)), Prior(activation, depth=depth)
    law = Prior(activation, depth=depth, weight_variance=scale, bias_variance=0.1)
    for found, part in ((law.kernel(x), law.kernel(x, x[:2])), (law.tangent_kernel(x), law.tangent_kernel(x, x[:2]))):
        assert np.array_equal(found, found.T)
        assert np.linalg.eigvalsh(found)[0] > -1e-10 * max(1, found.max())
        np.testing.assert_allclose(part, found[:, :2], rtol=1e-5, atol=1e-12 * found.max())
    np.testing.assert_array_max_ulp(law.kernel(x).diagonal(), law.variance(x), 4)


def test_erf_network_with_small_weights_is_linear_and_with_large_ones_a_sum_of_signs():
    for small in (1e-3, 1e-5):
        s = small * X @ X.T / 3
        found, largest = Prior("erf", weight_variance=small).kernel(X), 2 * s.diagonal().max()
        assert np.all(np.abs(found - 4 / np.pi * s) <= 2 * largest * np.abs(4 / np.pi * s))
    cosine = X @ X.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(X, axis=1))
    signs = 2 / np.pi * np.arcsin(np.clip(cosine, -1, 1))
    np.testing.assert_allclose(Prior("erf", weight_variance=1e14).kernel(X), signs, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_blocks_do_not_show(activation, monkeypatch):
    x, law = np.random.default_rng(0).standard_normal((40, 3)), Prior(activation, **DEEP)
    calls = [
        lambda: law.kernel(x),
        lambda: law.kernel(x, x[:30]),
        lambda: law.tangent_kernel(x),
        lambda: law.variance(x),
    ]
    whole, drawn = [call() for call in calls], law.draw(np.vstack([x, x]), 50, 1, 5)
    monkeypatch.setattr(prior, "_PAIRS", 100)
    # On the diagonal ReLU turns rounding 1e-16 into 1e-8 of an angle.
    for one, call in zip(whole, calls, strict=True):
        np.testing.assert_allclose(call(), one, rtol=1e-6, atol=1e-14)
    monkeypatch.setattr(prior, "_NEURONS", 1000)
    np.testing.assert_allclose(law.draw(x, 50, 1, 5), drawn[:, 40:], rtol=1e-9, atol=1e-12)
    assert not np.array_equal(law.draw(x, 50, 1, 6), law.draw(x, 50, 1, 5))


# --- depth and the tangent kernel -----------------------------------------------------------------


def gradients(activation, x, width, law, random):
    """Gram matrix (n, n) of the gradients of one network of two hidden layers, by backpropagation."""
    phi, slope = {
        "erf": (erf, lambda u: 2 / np.sqrt(np.pi) * np.exp(-(u**2))),
        "relu": (lambda u: np.maximum(u, 0), lambda u: u > 0),
        "linear": (lambda u: u, np.ones_like),
    }[activation]
    w, b, a = law.weight_variance, law.bias_variance, law.readout_variance / width
    first, second = random.standard_normal((width, x.shape[1])), random.standard_normal((width, width))
    one, two = random.standard_normal((2, width, 1))
    readouts = np.sqrt(a) * random.standard_normal(width)
    u = np.sqrt(w / x.shape[1]) * first @ x.T + np.sqrt(b) * one
    v = np.sqrt(w / width) * second @ phi(u) + np.sqrt(b) * two
    upper = readouts[:, None] * slope(v)
    lower = np.sqrt(w / width) * second.T @ upper * slope(u)
    tangent = a * phi(v).T @ phi(v) + (upper.T @ upper) * (b + w / width * phi(u).T @ phi(u))
    return tangent + (lower.T @ lower) * (b + w / x.shape[1] * x @ x.T)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_deep_kernels_are_the_limit_of_wide_networks_with_gradients_by_backpropagation(activation):
    law, x = Prior(activation, depth=2, **{key: DEEP[key] for key in DEEP if key != "depth"}), X[:3]
    random = np.random.default_rng(3)
    tangents = np.stack([gradients(activation, x, 400, law, random) for _ in range(30)])  # (30, n, n)
    np.testing.assert_allclose(tangents.mean(axis=0), law.tangent_kernel(x), rtol=0.12)
    assert apart(tangents, law.tangent_kernel(x)) < 5
    z = Prior(activation, **DEEP).draw(x, 64, 4000, 1)  # three layers
    assert apart(z[:, :, None] * z[:, None, :], Prior(activation, **DEEP).kernel(x)) < 5
    shallow = apart(z[:, :, None] * z[:, None, :], law.kernel(x))
    assert shallow > 5


def test_tangent_kernel_of_deep_relu_networks_is_known_on_the_diagonal():
    """He's weights, σ_w² = 2, keep s = 2|x|²/d: each of the L + 1 layers of weights adds s_a² s/2."""
    for depth in (1, 2, 5):
        law = Prior("relu", depth=depth, weight_variance=2.0)
        np.testing.assert_allclose(law.tangent_kernel(X).diagonal(), (depth + 1) * law.variance(X), rtol=1e-12)
        np.testing.assert_allclose(law.variance(X), (X**2).mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(
            law.tangent_kernel(3 * X, 2 * Y), 6 * law.tangent_kernel(X, Y), rtol=1e-9, atol=1e-12
        )


# --- on the sphere --------------------------------------------------------------------------------


@pytest.mark.parametrize("weight_variance", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_coefficients_are_the_series_of_the_kernel(activation, weight_variance):
    rho = np.array([-0.8, -0.1, 0.5, 0.8])
    circle = np.sqrt(2) * np.column_stack([rho, np.sqrt(1 - rho**2)])  # |x|² = d = 2
    law = Prior(activation, weight_variance=weight_variance, readout_variance=3.0)
    a, expected = law.coefficients(300), law.kernel(circle, [[np.sqrt(2), 0]])[:, 0]
    np.testing.assert_allclose(np.polynomial.polynomial.polyval(rho, a), expected, rtol=1e-12)
    assert a.min() >= 0
    for order in range(4):
        np.testing.assert_array_equal(law.coefficients(order), a[: order + 1])
    if activation == "erf":
        assert law.coefficients(800).sum() == pytest.approx(law.variance([[1.0]]).item(), rel=1e-10)


def on_sphere(law, dimension, degree):
    """The exact eigenvalue, by the quadrature of Funk and Hecke."""
    alpha = (dimension - 2) / 2
    rho, weights = roots_gegenbauer(200, alpha)
    sphere = np.zeros((200, dimension))
    sphere[:, 0], sphere[:, 1] = rho * np.sqrt(dimension), np.sqrt(dimension * (1 - rho**2))
    values = law.kernel(sphere, np.sqrt(dimension) * np.eye(dimension)[:1])[:, 0]
    return (
        weights @ (values * eval_gegenbauer(degree, alpha, rho)) / weights.sum() / eval_gegenbauer(degree, alpha, 1.0)
    )


@pytest.mark.parametrize(("activation", "degrees"), [("erf", [1, 3, 5]), ("relu", [0, 1, 2, 4])])
def test_leading_eigenvalues_approach_those_of_the_sphere_as_one_over_d(activation, degrees):
    scaled, law = [], Prior(activation, weight_variance=0.7)
    for dimension in (100, 200, 400):
        leading = law.spectrum(dimension, degrees).eigenvalues
        exact = np.array([on_sphere(law, dimension, degree) for degree in degrees])
        scaled.append(dimension * (exact / leading - 1))
    (first, second, third), degrees, a = scaled, np.array(degrees), law.coefficients(7)
    expected = (degrees + 1) * (degrees + 2) * a[degrees + 2] / (2 * a[degrees]) - degrees * (degrees - 1)
    # Free of the next order in 1/d.
    before, after = np.abs(2 * second - first - expected), np.abs(2 * third - second - expected)
    assert np.all(after < 0.03 * np.maximum(1, np.abs(expected)))
    assert np.all((after < before / 3) | (after < 1e-3))


def test_eigenvalues_are_what_one_neuron_sees_of_a_monomial():
    """λ_ℓ = s_a² (σ_w²/d)^ℓ ⟨φ⁽ℓ⁾⟩²; by Stein's lemma  ⟨φ⁽ℓ⁾⟩ = ⟨He_ℓ(u/σ_w) φ(u)⟩/σ_w^ℓ."""
    d, s, readout = 40, 1.3, 0.6
    for activation, degrees in (("erf", [3, 1, 5]), ("relu", [2, 0, 1, 4])):
        sphere = Prior(activation, weight_variance=s, readout_variance=readout).spectrum(d, degrees)
        phi = erf if activation == "erf" else lambda u: np.maximum(u, 0)
        for degree, eigenvalue, count in zip(degrees, sphere.eigenvalues, sphere.multiplicities):
            hermite = np.polynomial.hermite_e.HermiteE.basis(degree)
            weigh = lambda g: hermite(g) * phi(np.sqrt(s) * g) * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)  # noqa: E731
            slope = quad(weigh, -30, 0)[0] + quad(weigh, 0, 30)[0]
            assert eigenvalue == pytest.approx(readout * slope**2 / d**degree, rel=1e-8)
            assert count == {0: 1, 1: d, 2: (d - 1) * (d + 2) / 2, 3: d * (d - 1) * (d + 4) / 6}.get(degree, count)
    for dimension, modes in ((2, [1, 2, 2, 2]), (3, [1, 3, 5, 101])):  # a circle has a sine and a cosine each
        assert Prior("relu").spectrum(dimension, [0, 1, 2, 50]).multiplicities.tolist() == modes


def test_trace_on_the_sphere_is_the_variance():
    d, degrees, law = 12, np.arange(0, 40), Prior("erf")
    total = law.spectrum(d, degrees).multiplicities @ [on_sphere(law, d, degree) for degree in degrees]
    assert total == pytest.approx(law.variance(np.sqrt(d) * np.eye(d)[:1]).item(), rel=1e-9)


# --- what is not Gaussian -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activation", "law", "width"), [("relu", "uniform", 5), ("erf", "uniform", 2), ("erf", "gaussian", 1)]
)
def test_kurtosis_is_that_of_sampled_networks(activation, law, width):
    law = Prior(activation, law=law)
    z = law.draw([[0.9, 1.1]], width, 1_000_000, 8).reshape(50, -1)  # (batches, networks)
    batches = (z**4).mean(axis=1) / (z**2).mean(axis=1) ** 2 - 3  # (batches,), biased by the inverse of 20 000 networks
    assert apart(batches, law.excess_kurtosis([[0.9, 1.1]], width)) < 5
    assert batches.std() / np.sqrt(50) < 0.15


def test_kurtosis_of_relu_is_fifteen_or_seven_point_eight_over_the_width():
    np.testing.assert_allclose(Prior("relu").excess_kurtosis(X, 6), 15 / 6, rtol=1e-14)
    uniform = Prior("relu", law="uniform")
    np.testing.assert_allclose(uniform.excess_kurtosis(np.ones((1, 100_000)), 6), 7.8 / 6, rtol=1e-4)
    np.testing.assert_allclose(uniform.excess_kurtosis(1e100 * X, 6), uniform.excess_kurtosis(X, 6), rtol=1e-13)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_kurtosis_of_erf_is_that_of_quadrature_over_the_weights(scale):
    """Gaussian: one integral over w·x.  Uniform: both weights of a neuron in two dimensions."""
    variance, x = 0.5 * scale**2, np.array([1.0, -0.4])
    spread = np.sqrt(variance / 2 * x @ x)
    normal = {"epsabs": 0, "epsrel": 1e-12, "limit": 500, "points": [min(1, 1 / spread)]}
    moments = [
        quad(lambda u, k=k: erf(spread * u) ** k * np.exp(-(u**2) / 2) * np.sqrt(2 / np.pi), 0, 12, **normal)[0]
        for k in (2, 4)
    ]
    found = Prior("erf", weight_variance=variance).excess_kurtosis([x], 1)
    np.testing.assert_allclose(found, 3 * moments[1] / moments[0] ** 2 - 3, rtol=1e-9, atol=1e-9)
    nodes, weights = roots_legendre(1000)
    u = np.sqrt(3 * variance / 2) * (x[0] * nodes[:, None] + x[1] * nodes)  # (1000, 1000)
    moments = [weights @ erf(u) ** k @ weights / 4 for k in (2, 4)]
    found = Prior("erf", weight_variance=variance, law="uniform").excess_kurtosis([x], 1)
    np.testing.assert_allclose(found, 9 / 5 * moments[1] / moments[0] ** 2 - 3, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("activation", "law"), [(activation, law) for activation in ACTIVATIONS for law in LAWS])
@pytest.mark.parametrize("width", [1, 4])
def test_characteristic_functional_is_that_of_sampled_networks(activation, law, width):
    t, law = np.array([0.8, -1.2, 0.5]), Prior(activation, weight_variance=2.0, readout_variance=1.5, law=law)
    waves = np.exp(1j * law.draw(X[:3], width, 400_000, 1) @ t)
    error = waves.real.std() / np.sqrt(len(waves))
    found = law.characteristic_functional(X[:3], t, width, 400_000, 2)
    assert abs(found.mean - waves.real.mean()) < 5 * np.hypot(error, found.error)
    assert 0 < found.error < error and 0.01 < found.mean < 0.95


@pytest.mark.parametrize("law", LAWS)
def test_characteristic_functional_leaves_the_gaussian_process_by_the_kurtosis_over_the_width(law):
    """log⟨e^{itz}⟩ = -t²K/2 + κ₄ (t²K)²/24 + O(N⁻²), at one input, of ReLU units in one dimension."""
    law = Prior("relu", law=law)
    for width in (40, 160):
        found = law.characteristic_functional([[1.0]], law.variance([[1.0]]) ** -0.5, width, 6_000_000, 4)  # t²K = 1
        error, correction = found.error / found.mean, law.excess_kurtosis([[1.0]], width).item() / 24
        assert abs(np.log(found.mean) + 0.5 - correction) < 5 * error + 10 / width**2
        assert law.law == "uniform" or width == 160 or correction > 5 * error + 10 / width**2


DEEPER, BIASED, TILTED = Prior("erf", depth=2), Prior("erf", bias_variance=0.1), Prior("erf", weight_covariance=SIGMA)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Prior("erf").kernel(X, np.ones((2, 4))), "other must have two axes, the second of length 3"),
        (lambda: Prior("erf", weight_covariance=np.eye(2)).kernel(X), "inputs must have two axes"),
        (lambda: Prior("erf", weight_covariance=-SIGMA), "weight_covariance must be positive semi"),
        (lambda: Prior("erf", weight_covariance=SIGMA, law="uniform"), "law must be gaussian"),
        (lambda: Prior("erf").kernel(np.zeros((0, 3))), "inputs must hold one or more"),
        (lambda: Prior("relu", readout_variance=1e300).kernel([[1e30]]), "readout_variance must keep the result"),
        (lambda: Prior("relu", depth=9, weight_variance=1e70).kernel([[1.0]]), "depth must give pre-activations"),
        (lambda: Prior("erf").kernel(X, 1e200 * Y), "other must give pre-activations"),
        (lambda: Prior("erf").spectrum(10**8, [100]), "dimension must be small enough"),
        (lambda: Prior("erf").spectrum(5, [1.5]), "degrees must hold one or more whole numbers"),
        (lambda: DEEPER.coefficients(3), "depth must be 1 for the coefficients"),
        (lambda: BIASED.excess_kurtosis(X, 3), "bias_variance must be 0 for the kurtosis"),
        (lambda: TILTED.characteristic_functional(X, np.ones(7), 1, 10, 1), "weight_covariance must be None"),
        (lambda: Prior("erf").excess_kurtosis([[1.0, 0.0], [0.0, 0.0]], 3), "inputs must differ from the origin"),
        (lambda: Prior("erf").excess_kurtosis([[1e-3]], 1), "inputs must give erf units an average fourth"),
        (lambda: Prior("erf").excess_kurtosis([[1e5]], 1), "inputs must give pre-activations below"),
        (lambda: Prior("relu", weight_variance=1e10).draw([[1e308]], 50, 9, 1), "inputs must"),
        (
            lambda: Prior("relu").characteristic_functional([[1e308]], [1e10], 1, 10, 1),
            "inputs must keep the result",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

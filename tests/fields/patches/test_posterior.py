"""lib.fields.patches.posterior against finite differences, SciPy's Gaussian density, scikit-learn, Monte
Carlo, exact sampling and the theory.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy.stats import kstest, multivariate_normal
from sklearn.linear_model import Ridge

from lib.common import hmc
from lib.fields.networks import _readouts, _units, two_layers
from lib.fields.networks.prior import Prior
from lib.fields.overlaps import single_index
from lib.fields.patches import gibbs, posterior
from lib.fields.patches.shared_filters import PatchNetwork
from lib.foundations import sampling

RNG = np.random.default_rng(5)
X, Y, W = RNG.standard_normal((6, 2, 3)), RNG.standard_normal(6), RNG.standard_normal((3, 4, 3))
PHI = {"erf": special.erf, "relu": lambda u: np.maximum(u, 0), "linear": lambda u: u}
NET = PatchNetwork(2, 3, 4, 0.3, mean_field=2.5, readout_variance=1.9, weight_variance=0.7)
activations = pytest.mark.parametrize("activation", PHI)


def features(weights, activation, inputs):
    """(P, N_p C), by the definition."""
    return np.array([[PHI[activation](w @ patch) for patch in one for w in weights] for one in inputs])


def potential(weights, activation, inputs, targets, ridge=0.3):
    """U and its gradient, as they are sampled, for χ, σ_a² and σ_w² of the network."""
    prior = ridge / 2.5, 1.9 / 2.5, 0.7
    return _readouts.evaluated(weights, _units.ACTIVATIONS[activation], inputs, targets, *prior)


# --- data and what is measured ------------------------------------------------------------------------------


def test_the_data_are_those_of_the_teacher():
    data = posterior.draw(4000, 3, 4, 7, epsilon=-0.2)
    v = np.einsum("pis,s->pi", data.inputs, data.direction)
    expected = sum(data.signs[i] * (v[:, i] - 0.2 * (v[:, i] ** 3 - 3 * v[:, i])) for i in range(3)) / np.sqrt(3)
    np.testing.assert_allclose(data.targets, expected, rtol=1e-12, atol=1e-12)
    assert np.linalg.norm(data.direction) == pytest.approx(1, rel=1e-14) and set(np.abs(data.signs)) == {1.0}
    assert kstest(data.inputs.ravel(), "norm").pvalue > 1e-3
    variance, spread = (data.targets**2).mean(), (data.targets**2).std() / np.sqrt(4000)
    assert abs(variance - (1 + 6 * 0.04)) < 4 * spread
    signs = [posterior.draw(1, 1, 2, seed).signs[0] for seed in range(40)]
    assert 8 < np.sum(np.array(signs) > 0) < 32


@pytest.mark.parametrize("activation", ["erf", "linear"])
def test_the_learnabilities_are_averages_over_inputs(activation):
    data = posterior.draw(1, 2, 3, 3, epsilon=-0.4)
    w, a = RNG.standard_normal((1, 4, 3)), RNG.standard_normal((1, 2, 4))
    found = data.measure(w, a, activation, weight_variance=0.7)[0]

    def products(z):
        x = z.reshape(-1, 2, 3)
        v = x @ data.direction
        output = sum(PHI[activation](x[:, i] @ w[0].T) @ a[0, i] for i in range(2))
        linear, cubic = (h @ data.signs / np.sqrt(2) for h in (v, v**3 - 3 * v))
        return np.stack([output * linear, output * cubic / (6 * data.epsilon)], axis=1)

    average = sampling.monte_carlo_average(products, np.eye(6), 400_000, rng=2)
    assert np.all(np.abs(found[1:] - average.mean) < 4 * average.error) and np.all(average.error < 0.03)
    assert found[0] == pytest.approx(3 * np.mean([(one @ data.direction) ** 2 for one in w[0]]) / 0.7, rel=1e-12)


def test_a_linear_teacher_has_no_cubic_learnability():
    data = posterior.draw(1, 2, 3, 3)
    assert data.measure(W, np.ones((3, 2, 4)), "erf").shape == (3, 2)
    with pytest.raises(ValueError, match="^activation must be one of erf, linear"):
        data.measure(W, np.ones((3, 2, 4)), "relu")
    with pytest.raises(ValueError, match="^readouts must"):
        data.measure(W, np.ones((3, 2, 3)), "erf")


# --- the density and its gradient ---------------------------------------------------------------------------


@activations
@settings(max_examples=15)
@given(
    st.integers(0, 5), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(0, 99), st.floats(0.05, 10)
)
def test_gradient_is_the_finite_difference(activation, count, patches, size, channels, seed, ridge):
    rng = np.random.default_rng(seed)
    x, y, w = (
        rng.standard_normal((count, patches, size)),
        rng.standard_normal(count),
        rng.standard_normal((2, channels, size)),
    )
    gradient = potential(w, activation, x, y, ridge)[1]
    direction, h = rng.standard_normal(w.shape), 1e-5
    there, back = (potential(w + sign * h * direction, activation, x, y, ridge)[0] for sign in (1, -1))
    kink = activation == "relu" and count and np.abs(np.einsum("pis,mcs->mpic", x, w)).min() < 20 * h
    if not kink:
        np.testing.assert_allclose(
            (gradient * direction).sum(axis=(1, 2)), (there - back) / (2 * h), rtol=1e-6, atol=1e-6
        )


@activations
def test_the_density_is_the_prior_times_the_gaussian_density_of_the_targets(activation):
    value, _ = potential(W, activation, X, Y)
    expected = []
    for one in W:
        f = features(one, activation, X)
        evidence = multivariate_normal.logpdf(Y, cov=1.9 / (2.5 * 2 * 4) * f @ f.T + 0.3 / 2.5 * np.eye(6))
        expected.append(-evidence - multivariate_normal.logpdf(one.ravel(), cov=0.7 / 3 * np.eye(12)))
    np.testing.assert_allclose(value - value[0], np.array(expected) - expected[0], rtol=1e-11, atol=1e-11)


@activations
def test_the_mean_readouts_are_ridge_regression_on_the_features(activation):
    found = posterior.mean_readouts(NET, activation, W, X, Y)
    for one, a in zip(W, found):
        regression = Ridge(alpha=0.3 * 2 * 4 / 1.9, fit_intercept=False)  # χ cancels
        regression.fit(features(one, activation, X), Y)
        np.testing.assert_allclose(a.ravel(), regression.coef_, rtol=1e-9)


@activations
def test_one_patch_is_the_network_of_two_layers(activation):
    flat = X.reshape(6, 6)
    w = RNG.standard_normal((2, 5, 6))
    one = potential(w, activation, flat[:, None], Y)
    other = two_layers.TwoLayer(
        Prior(activation, weight_variance=0.7, readout_variance=1.9 / 2.5), flat, Y, 0.12
    ).potential(w)
    for left, right in zip(one, other):
        np.testing.assert_allclose(left, right, rtol=1e-12)


def test_patches_may_change_places():
    one, other = (potential(W, "erf", x, Y)[0] for x in (X, X[:, ::-1]))
    np.testing.assert_allclose(one, other, rtol=1e-13)


def test_a_ridge_lost_in_rounding_is_refused():
    same = np.ones((2, 2, 3))
    for size in (1e9, 1e200):
        with pytest.raises(ValueError, match="^ridge must be large enough"):
            posterior.mean_readouts(PatchNetwork(2, 3, 4, 1e-3), "relu", np.full((1, 4, 3), size), same, [1.0, 1.0])
    lost, sound = potential(np.array([[[1e9] * 3], [[1.0] * 3]]), "relu", same, np.ones(2), 1e-3)[0]
    assert lost == np.inf and sound < np.inf  # one that is lost does not stop the others
    with pytest.raises(ValueError, match="^epsilon must keep the result inside"):
        posterior.draw(5, 2, 3, 0, epsilon=1e308)


# --- the samples --------------------------------------------------------------------------------------------


def test_without_data_the_filters_have_their_prior():
    network, nothing = PatchNetwork(2, 3, 4, 0.1, weight_variance=0.6), np.zeros((0, 2, 3))
    chains = posterior.sample(network, "erf", nothing, [], 20, 200, 6, observable=lambda w: 3 * w**2)
    found = hmc.summary(chains.samples.mean(axis=(2, 3)))
    assert abs(found.mean - 0.6) < 4 * found.error and found.error < 0.015


def test_exact_sampling_of_a_linear_network_agrees():
    data = posterior.draw(12, 2, 3, 11)
    network = PatchNetwork(2, 3, 3, 0.5, mean_field=4.0, readout_variance=1.5, weight_variance=0.8)
    told = data.inputs, data.targets

    def drawn(w, a):
        return np.column_stack([(w**2).sum(axis=(1, 2)), data.measure(w, a, "linear")])

    def kept(w):
        return drawn(w, posterior.mean_readouts(network, "linear", w, *told))

    one = posterior.sample(network, "linear", *told, 20, 400, 8, leapfrog=5, observable=kept).samples
    other = hmc.summary(gibbs.sample(network, *told, 40, 1000, 9, burn_in=100, observable=drawn))
    one = hmc.summary(one)
    assert np.all(np.abs(one.mean - other.mean) < 3 * np.hypot(one.error, other.error))
    assert np.all(one.error < 0.03 * one.mean) and np.all(other.error < 0.03 * other.mean)


def test_the_erf_network_follows_the_theory():
    network, found = PatchNetwork(3, 15, 60, 0.3, mean_field=10.0), []
    for seed in range(3):
        data = posterior.draw(60, 3, 15, seed, epsilon=-0.1)

        def kept(w, data=data):
            readouts = posterior.mean_readouts(network, "erf", w, data.inputs, data.targets)
            return data.measure(w, readouts, "erf")

        ways = {"burn_in": 80, "leapfrog": 6, "observable": kept}
        run = posterior.sample(network, "erf", data.inputs, data.targets, 1, 80, seed, **ways)
        found.append(run.samples.mean(axis=(0, 1)))
    net = network.equivalent(60, -0.1)
    theory = net.saddle()
    lazy = single_index.lazy("erf", net.target, 15, net.effective_samples, readout_variance=net.readout_variance)[1]
    ratio, linear, cubic = np.mean(found, axis=0)
    assert ratio == pytest.approx(15 * theory.variance, rel=0.08)
    assert linear == pytest.approx(theory.learnabilities[0], abs=0.06) and linear > lazy[0] + 0.1
    assert cubic == pytest.approx(theory.learnabilities[1], abs=0.06) and cubic > lazy[1] + 0.1


@pytest.mark.parametrize(("name", "weights"), [("weights", W[:, :, :2]), ("weights", W[:, :3]), ("weights", W[0])])
def test_filters_of_another_network_are_refused(name, weights):
    with pytest.raises(ValueError, match=f"^{name} must"):
        posterior.mean_readouts(NET, "erf", weights, X, Y)
    with pytest.raises(ValueError, match="^network must have shared filters"):
        posterior.mean_readouts(PatchNetwork(2, 3, 4, 0.3, shared=False), "erf", W, X, Y)
    with pytest.raises(ValueError, match="^start must"):
        posterior.sample(NET, "erf", X, Y, 3, 2, 0, start=weights)

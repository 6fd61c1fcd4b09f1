"""finite_width against quadrature over one neuron, finite differences, and Hamiltonian Monte Carlo."""

import numpy as np
import pytest
from scipy.special import erf

from lib.common import checks
from lib.fields.kernels.gp_regression import GaussianProcess
from lib.fields.networks import finite_width
from lib.fields.networks.prior import Prior
from lib.fields.networks.two_layers import TwoLayer

RNG = np.random.default_rng(11)
X, Y, POINTS = RNG.standard_normal((4, 3)), RNG.standard_normal(4), RNG.standard_normal((5, 3))
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0)}
PRIOR = {"weight_variance": 0.7, "readout_variance": 1.9}
NETWORKS = {activation: TwoLayer(Prior(activation, **PRIOR), X, Y, 0.3) for activation in PHI}


def kernels(activation):
    return Prior(activation, **PRIOR).kernel(X), Prior(activation, **PRIOR).kernel(POINTS, X)


def by_differences(activation, w, small=1e-3):
    """m'ℓ' + ½m'' and ½m'' (n, M), ℓ'² (n,), of single neurons, from differences along their kernels."""
    K, k = kernels(activation)
    products, halves, squares = [], [], []
    for one in w:
        f, g = PHI[activation](X @ one), PHI[activation](POINTS @ one)
        seen = []
        for e in (-small, 0, small):
            A = (1 - e) * K + e * 1.9 * np.outer(f, f) + 0.3 * np.eye(4)
            alpha = np.linalg.solve(A, Y)
            mean = ((1 - e) * k + e * 1.9 * np.outer(g, f)) @ alpha
            seen.append((mean, -np.linalg.slogdet(A)[1] / 2 - Y @ alpha / 2))
        (m0, l0), (m1, _), (m2, l2) = seen
        halves.append((m0 - 2 * m1 + m2) / (2 * small**2))
        products.append((m2 - m0) * (l2 - l0) / (2 * small) ** 2 + halves[-1])
        squares.append(((l2 - l0) / (2 * small)) ** 2)
    return np.array(products), np.array(halves), np.array(squares)


@pytest.mark.parametrize("activation", PHI)
def test_the_coefficient_is_the_mean_of_differences_over_the_same_neurons(activation):
    found = finite_width.correction(NETWORKS[activation], POINTS, 60, 5)
    w = np.sqrt(0.7 / 3) * checks.generator("rng", 5).standard_normal((60, 3))
    terms, half, squares = by_differences(activation, w)
    np.testing.assert_allclose(found.coefficient, terms.mean(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.curvature, half.mean(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.error, terms.std(axis=0, ddof=1) / np.sqrt(60), rtol=1e-3)
    np.testing.assert_allclose(found.variation, squares.mean(), rtol=1e-3)
    K, k = kernels(activation)
    moved = [np.linalg.solve(K + 0.3 * np.eye(4), 1.9 * np.outer(f, f) - K) for f in PHI[activation](w @ X.T)]
    np.testing.assert_allclose(found.kernel_variation, np.mean([np.trace(one @ one) for one in moved]), rtol=1e-10)
    np.testing.assert_allclose(found.mean, GaussianProcess(K, 0.3).mean(Y, k), rtol=1e-12)


def test_one_example_is_the_closed_form():
    T, y = 0.2, 1.5
    found = finite_width.correction(TwoLayer(Prior("erf"), [[1.0]], [y], T), [[1.0]], 400_000, 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    moments = [weights @ erf(nodes) ** n / weights.sum() for n in (2, 4)]
    K, V = moments[0], moments[1] - moments[0] ** 2
    expected = V * T * y * (y**2 - 3 * (K + T)) / (2 * (K + T) ** 4)
    assert abs(found.coefficient[0] - expected) < 4 * found.error[0] < 0.02 * abs(expected)
    variation = V * (y**2 / (K + T) ** 2 - 1 / (K + T)) ** 2 / 4
    np.testing.assert_allclose(found.variation, variation, rtol=0.02)
    np.testing.assert_allclose(found.kernel_variation, V / (K + T) ** 2, rtol=0.02)


def test_wide_networks_deviate_by_the_coefficient_and_the_error_does_not_grow():
    theory = finite_width.correction(NETWORKS["erf"], POINTS, 100_000, 3)
    narrow, wide = (finite_width.deviation(NETWORKS["erf"], POINTS, N, 4000, 4) for N in (30, 300))
    errors = [np.sqrt(np.diag(found.covariance)) for found in (narrow, wide)]
    assert np.all(np.abs(wide.mean - theory.coefficient) < 4 * np.hypot(errors[1], theory.error) + 0.05)
    assert np.all(errors[1] < 1.5 * errors[0]) and wide.effective > narrow.effective
    np.testing.assert_allclose(wide.prior, theory.curvature, atol=0.1)


def test_the_log_likelihood_varies_to_first_order_as_single_neurons_say_and_narrow_networks_more():
    T, y, task = 0.2, 1.5, (TwoLayer(Prior("erf"), [[1.0]], [1.5], 0.2), [[1.0]])
    first = finite_width.correction(*task, 400_000, 2).variation
    wide, narrow = (finite_width.deviation(*task, N, 20_000, 8).likelihood_variance for N in (400, 2))
    np.testing.assert_allclose(400 * wide, first, rtol=0.06)
    kernels_of_two = (erf(np.random.default_rng(9).standard_normal((200_000, 2))) ** 2).mean(axis=1) + T
    np.testing.assert_allclose(narrow, np.var(-np.log(kernels_of_two) / 2 - y**2 / kernels_of_two / 2), rtol=0.06)
    assert narrow > 1.5 * first / 2


def test_the_covariance_is_that_of_repeated_runs():
    runs = [finite_width.deviation(NETWORKS["erf"], POINTS, 10, 400, seed) for seed in range(60)]
    spread = np.var([run.mean for run in runs], axis=0, ddof=1)
    claimed = np.mean([np.diag(run.covariance) for run in runs], axis=0)
    assert np.all((spread / claimed > 0.55) & (spread / claimed < 1.8))


def test_weights_beyond_the_floating_point_range_are_relative_to_the_largest():
    y, width, replicas = np.array([100.0, -50.0, 80.0, 20.0]), 100, 500
    found = finite_width.deviation(TwoLayer(Prior("erf"), X, y, 0.3), POINTS, width, replicas, rng=1)
    w = checks.generator("rng", 1).standard_normal((replicas, width, 3)) / np.sqrt(3)
    features, cross = erf(w @ X.T), erf(w @ POINTS.T)
    A = features.swapaxes(1, 2) @ features / width + 0.3 * np.eye(4)
    alpha = np.linalg.solve(A, np.broadcast_to(y[:, None], (replicas, 4, 1)))[..., 0]
    mean = (cross.swapaxes(1, 2) @ features @ alpha[..., None])[..., 0] / width
    log = -(np.linalg.slogdet(A)[1] + alpha @ y) / 2
    assert np.ptp(log) > 1000
    weight = np.exp(log - log.max())
    K, k = Prior("erf").kernel(X), Prior("erf").kernel(POINTS, X)
    noisy = K + 0.3 * np.eye(4)
    # ℓ exceeds that of the kernel by so much that the first order, which has the mean zero, is lost beside e^ℓ.
    assert log.max() + (np.linalg.slogdet(noisy)[1] + y @ np.linalg.solve(noisy, y)) / 2 > 40
    limit = k @ np.linalg.solve(noisy, y)
    np.testing.assert_allclose(found.mean, width * (weight @ mean / weight.sum() - limit), rtol=1e-8)
    assert found.effective == pytest.approx(weight.sum() ** 2 / (replicas * (weight**2).sum()), rel=1e-6)


@pytest.mark.parametrize(("call", "sizes"), [(finite_width.correction, (10,)), (finite_width.deviation, (10, 10))])
def test_what_does_not_fit_is_refused(call, sizes):
    lost = TwoLayer(Prior("erf"), np.ones((2, 3)), [1.0, 1.0], 1e-14)
    tilted = TwoLayer(Prior("erf", weight_covariance=np.eye(3)), X, Y, 0.3)
    for network, points, message in (
        (lost, POINTS, "ridge must be large enough"),
        (tilted, POINTS, "weight_covariance of prior must be None"),
        (NETWORKS["erf"], POINTS[:, :2], "points must have two axes, the second of length 3"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            call(network, points, *sizes, 1)

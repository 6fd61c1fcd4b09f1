"""finite_width against quadrature over one neuron, finite differences, and Hamiltonian Monte Carlo."""

import tracemalloc

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, exercised
from scipy.special import erf

from lib.common import checks, hmc
from lib.fields.kernels import gp_regression
from lib.fields.networks import finite_width, network_posterior, nngp

RNG = np.random.default_rng(11)
X, Y, POINTS = RNG.standard_normal((4, 3)), RNG.standard_normal(4), RNG.standard_normal((5, 3))
PHI = {"erf": erf, "relu": lambda u: np.maximum(u, 0)}
PRIOR = {"weight_variance": 0.7, "readout_variance": 1.9}
TASK = (X, Y, 0.3, POINTS)


def kernels(activation):
    return nngp.kernel(activation, X, **PRIOR), nngp.kernel(activation, POINTS, X, **PRIOR)


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
    found = finite_width.correction(activation, *TASK, 60, 5, **PRIOR)
    w = np.sqrt(0.7 / 3) * checks.generator("seed", 5).standard_normal((60, 3))
    terms, half, squares = by_differences(activation, w)
    np.testing.assert_allclose(found.coefficient, terms.mean(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.curvature, half.mean(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.error, terms.std(axis=0, ddof=1) / np.sqrt(60), rtol=1e-3)
    np.testing.assert_allclose(found.variation, squares.mean(), rtol=1e-3)
    K, k = kernels(activation)
    moved = [np.linalg.solve(K + 0.3 * np.eye(4), 1.9 * np.outer(f, f) - K) for f in PHI[activation](w @ X.T)]
    np.testing.assert_allclose(found.kernel_variation, np.mean([np.trace(one @ one) for one in moved]), rtol=1e-10)
    np.testing.assert_allclose(found.mean, gp_regression.mean(K, Y, 0.3, k), rtol=1e-12)


def test_one_example_is_the_closed_form():
    T, y = 0.2, 1.5
    found = finite_width.correction("erf", [[1.0]], [y], T, [[1.0]], 400_000, 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    moments = [weights @ erf(nodes) ** n / weights.sum() for n in (2, 4)]
    K, V = moments[0], moments[1] - moments[0] ** 2
    expected = V * T * y * (y**2 - 3 * (K + T)) / (2 * (K + T) ** 4)
    assert abs(found.coefficient[0] - expected) < 4 * found.error[0] < 0.02 * abs(expected)
    variation = V * (y**2 / (K + T) ** 2 - 1 / (K + T)) ** 2 / 4
    np.testing.assert_allclose(found.variation, variation, rtol=0.02)
    np.testing.assert_allclose(found.kernel_variation, V / (K + T) ** 2, rtol=0.02)


def test_wide_networks_deviate_by_the_coefficient_and_the_error_does_not_grow():
    theory = finite_width.correction("erf", *TASK, 100_000, 3, **PRIOR)
    narrow, wide = (finite_width.deviation("erf", *TASK, N, 4000, 4, **PRIOR) for N in (30, 300))
    errors = [np.sqrt(np.diag(found.covariance)) for found in (narrow, wide)]
    assert np.all(np.abs(wide.mean - theory.coefficient) < 4 * np.hypot(errors[1], theory.error) + 0.05)
    assert np.all(errors[1] < 1.5 * errors[0]) and wide.effective > narrow.effective
    np.testing.assert_allclose(wide.prior, theory.curvature, atol=0.1)


def test_the_log_likelihood_varies_to_first_order_as_single_neurons_say_and_narrow_networks_more():
    T, y, task = 0.2, 1.5, ("erf", [[1.0]], [1.5], 0.2, [[1.0]])
    first = finite_width.correction(*task, 400_000, 2).variation
    wide, narrow = (finite_width.deviation(*task, N, 20_000, 8).likelihood_variance for N in (400, 2))
    np.testing.assert_allclose(400 * wide, first, rtol=0.06)
    kernels_of_two = (erf(np.random.default_rng(9).standard_normal((200_000, 2))) ** 2).mean(axis=1) + T
    np.testing.assert_allclose(narrow, np.var(-np.log(kernels_of_two) / 2 - y**2 / kernels_of_two / 2), rtol=0.06)
    assert narrow > 1.5 * first / 2


def test_a_narrow_network_has_the_mean_of_hamiltonian_monte_carlo():
    found = finite_width.deviation("erf", *TASK, 6, 40_000, 6, **PRIOR)
    chains = network_posterior.sample(
        "erf", X, Y, 0.3, 6, 40, 400, 7, **PRIOR,
        observable=lambda w: network_posterior.predict(w, "erf", X, Y, 0.3, POINTS, readout_variance=1.9),
    )  # fmt: skip
    K, k = kernels("erf")
    sampled = hmc.summary(6 * (chains.samples - gp_regression.mean(K, Y, 0.3, k)))
    error = np.sqrt(np.diag(found.covariance) + sampled.error**2)
    assert np.all(np.abs(found.mean - sampled.mean) < 4 * error) and error.max() < 0.2


def test_the_covariance_is_that_of_repeated_runs():
    runs = [finite_width.deviation("erf", *TASK, 10, 400, seed, **PRIOR) for seed in range(60)]
    spread = np.var([run.mean for run in runs], axis=0, ddof=1)
    claimed = np.mean([np.diag(run.covariance) for run in runs], axis=0)
    assert np.all((spread / claimed > 0.55) & (spread / claimed < 1.8))


BAD = {
    "activation": ["linear", "tanh", None],
    "inputs": [[1.0], np.zeros((4, 0)), [["a"]]],
    "targets": [[1.0], np.full(4, np.nan), None],
    "ridge": NUMBER,
    "points": [[1.0], np.zeros((2, 2)), np.zeros((0, 3))],
    "weight_variance": NUMBER,
    "readout_variance": NUMBER,
    "neurons": [*COUNT, 1],
    "width": COUNT,
    "networks": [*COUNT, 1],
    "rng": SEED,
}
GOOD = {"activation": "erf", "inputs": X, "targets": Y, "ridge": 0.3, "points": POINTS, "rng": 1, **PRIOR}
CALLS = {
    finite_width.correction: GOOD | {"neurons": 20},
    finite_width.deviation: GOOD | {"width": 3, "networks": 20},
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_weights_beyond_the_floating_point_range_are_relative_to_the_largest():
    y, width, networks = np.array([100.0, -50.0, 80.0, 20.0]), 100, 500
    found = finite_width.deviation("erf", X, y, 0.3, POINTS, width, networks, rng=1)
    w = checks.generator("seed", 1).standard_normal((networks, width, 3)) / np.sqrt(3)
    features, cross = erf(w @ X.T), erf(w @ POINTS.T)
    A = features.swapaxes(1, 2) @ features / width + 0.3 * np.eye(4)
    alpha = np.linalg.solve(A, np.broadcast_to(y[:, None], (networks, 4, 1)))[..., 0]
    mean = (cross.swapaxes(1, 2) @ features @ alpha[..., None])[..., 0] / width
    log = -(np.linalg.slogdet(A)[1] + alpha @ y) / 2
    assert np.ptp(log) > 1000
    weight = np.exp(log - log.max())
    K, k = nngp.kernel("erf", X), nngp.kernel("erf", POINTS, X)
    limit = gp_regression.mean(K, y, 0.3, k)
    # ℓ exceeds that of the kernel by so much that the first order, which has the mean zero, is lost beside e^ℓ.
    assert (
        log.max() + (np.linalg.slogdet(K + 0.3 * np.eye(4))[1] + y @ np.linalg.solve(K + 0.3 * np.eye(4), y)) / 2 > 40
    )
    np.testing.assert_allclose(found.mean, width * (weight @ mean / weight.sum() - limit), rtol=1e-8)
    assert found.effective == pytest.approx(weight.sum() ** 2 / (networks * (weight**2).sum()), rel=1e-6)


def test_memory_does_not_grow_with_the_number_of_neurons():
    peaks = []
    for neurons in (30_000, 120_000):
        tracemalloc.start()
        finite_width.correction("erf", *TASK, neurons, 1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_a_ridge_below_rounding_is_refused():
    for call in (finite_width.correction, finite_width.deviation):
        sizes = (10,) if call is finite_width.correction else (10, 10)
        with pytest.raises(ValueError, match="^ridge must be large enough"):
            call("erf", np.ones((2, 3)), [1.0, 1.0], 1e-14, POINTS, *sizes, 1)

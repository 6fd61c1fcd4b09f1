"""lib.fields.kernels.learning_curve against the derivative of κ, explicit sums, least squares, and fitted exponents."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from lib.fields.kernels import effective_ridge, learning_curve

MODES = np.arange(1.0, 10**6 + 1)


def slopes(x, y):
    return np.diff(np.log(y)) / np.diff(np.log(x))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 8), st.integers(0, 99), st.floats(1, 60), st.floats(1e-4, 10), st.floats(0, 2))
def test_the_parts_add_up_and_bounds_hold(size, seed, p, t, noise):
    rng = np.random.default_rng(seed)
    values, counts, power = rng.exponential(size=size) + 1e-3, rng.integers(1, 20, size), rng.exponential(size=size)
    curve = learning_curve.predict(values, power, p, ridge=t, noise_variance=noise, multiplicities=counts)
    learned = values / (values + curve.kappa)
    assert counts @ learned < p
    assert curve.kappa == effective_ridge.solve(values, p, ridge=t, multiplicities=counts)
    assert curve.amplification >= 1 and curve.amplification == pytest.approx(p / (p - counts @ learned**2), rel=1e-8)
    assert curve.bias == pytest.approx((1 - learned) ** 2 @ power, rel=1e-10)
    assert curve.test_error == pytest.approx(curve.bias + curve.variance + noise, rel=1e-10)
    assert curve.train_error <= curve.test_error
    each = learning_curve.coefficient_variance(values, curve.kappa, curve.test_error, p)
    assert counts @ each == pytest.approx(curve.variance, rel=1e-10)
    assert curve.sampled_excess == pytest.approx(counts @ (values * (1 - learned)), rel=1e-10)
    assert curve.sampled_excess == pytest.approx(p * curve.kappa - t, rel=1e-6, abs=1e-9 * t)


def test_the_amplification_is_the_derivative_of_the_effective_ridge():
    """From the equation at fixed P:  dκ/dT = 1/(P - Σ g L²)."""
    values, p, t = MODES[:300] ** -1.4, np.array([5.0, 40.0, 290.0, 310.0]), 0.3
    slope = (effective_ridge.solve(values, p, ridge=t + 1e-4) - effective_ridge.solve(values, p, ridge=t - 1e-4)) / 2e-4
    np.testing.assert_allclose(learning_curve.predict(values, values, p, ridge=t).amplification, p * slope, rtol=1e-6)


def test_without_a_ridge_samples_are_used_up_and_training_is_perfect():
    values = MODES[:400] ** -1.5
    curve = learning_curve.predict(values, values, [10, 100, 399], ridge=0.0, noise_variance=0.1)
    np.testing.assert_allclose(
        effective_ridge.learnability(values, curve.kappa).sum(axis=1), [10, 100, 399], rtol=1e-10
    )
    assert np.all(curve.train_error == 0)
    np.testing.assert_allclose(curve.sampled_excess, np.array([10, 100, 399]) * curve.kappa, rtol=1e-10)


def test_beyond_the_rank_it_is_ordinary_least_squares():
    """With n parameters and P samples: training error σ²(1 - n/P), and test error σ²P/(P - n) to leading order."""
    p = np.array([21.0, 30.0, 200.0])
    curve = learning_curve.predict([2.0, 0.1], [1.0, 3.0], p, ridge=0.0, noise_variance=0.7, multiplicities=[5, 15])
    np.testing.assert_allclose(curve.train_error, 0.7 * (1 - 20 / p), rtol=1e-12)
    np.testing.assert_allclose(curve.test_error, 0.7 * p / (p - 20), rtol=1e-12)
    assert np.all(curve.bias == 0) and np.all(curve.kappa == 0)
    small = learning_curve.predict([2.0, 0.1], [1.0, 3.0], p, ridge=1e-9, noise_variance=0.7, multiplicities=[5, 15])
    for name in ("test_error", "train_error", "variance"):
        np.testing.assert_allclose(getattr(small, name), getattr(curve, name), rtol=1e-5)


def test_at_the_rank_the_variance_diverges():
    with pytest.raises(ValueError, match="^ridge must be > 0 where samples equals the rank 20"):
        learning_curve.predict([2.0, 0.1], [1.0, 3.0], [10, 20], ridge=0.0, multiplicities=[5, 15])
    height = [
        float(learning_curve.predict([1.0], [1.0], 60, ridge=t, noise_variance=1.0, multiplicities=[60]).test_error)
        for t in (1e-6, 1e-8)
    ]
    assert height[1] / height[0] == pytest.approx(10, rel=1e-2)  # E₀ ∝ T^-½


@pytest.mark.parametrize("t", [1e-10, 1e-24, 1e-40])
def test_at_the_rank_tiny_ridges_keep_their_digits(t):
    """κ = √(T/Σ λ⁻¹),  E₀ = Pκ/(2T),  bias = κ² Σ w/λ²,  to first order in κ."""
    values = MODES[:30] ** -1.5
    curve = learning_curve.predict(values, values, 30, ridge=t)
    kappa = np.sqrt(t / (1 / values).sum())
    found = [curve.kappa, curve.amplification, curve.bias]
    np.testing.assert_allclose(
        found, [kappa, 30 * kappa / (2 * t), kappa**2 * (1 / values).sum()], rtol=1e3 * kappa + 1e-12
    )


def test_double_descent_with_a_ridge_and_with_a_tail():
    """D = 60 modes of eigenvalue one and target power one, noise 0.25; errors against the clean target."""

    def clean(p, t):
        return (
            learning_curve.predict([1.0], [1.0], p, ridge=t, noise_variance=0.25, multiplicities=[60]).test_error - 0.25
        )

    np.testing.assert_allclose(clean([55, 60, 66, 90], 1e-3), [2.82, 30.5, 2.49, 0.500], rtol=2e-3)
    assert clean(60, 5.0) == pytest.approx(0.464, abs=5e-4)
    tail = (
        learning_curve.predict(
            [1.0, 5e-4], [1.0, 0.0], [60, 180], ridge=1e-3, noise_variance=0.25, multiplicities=[60, 10_000]
        ).test_error
        - 0.25
    )
    ridge_only = clean([60, 180], 5.001)
    assert np.all(tail > ridge_only) and tail[0] == pytest.approx(ridge_only[0], rel=0.02)
    flat = (
        learning_curve.predict(
            [1.0, 5e-10], [1.0, 0.0], [60, 180], ridge=1e-3, noise_variance=0.25, multiplicities=[60, 10**10]
        ).test_error
        - 0.25
    )
    np.testing.assert_allclose(
        flat, ridge_only, rtol=1e-6
    )  # ever smaller modes of the same total weight are nothing but ridge


@pytest.mark.parametrize(("a", "beta"), [(1.5, 2.0), (2.0, 2.5), (1.5, 6.0)])
def test_exponents_of_power_laws(a, beta):
    for t, p in ((0.0, [100, 200, 400]), (10.0, [1e4, 3e4, 1e5])):
        curve = learning_curve.predict(MODES**-a, MODES**-beta, p, ridge=t)
        found = slopes(p, curve.test_error)
        np.testing.assert_allclose(found, -learning_curve.loss_exponent(a, beta, ridgeless=t == 0), atol=0.02)
        edge = learning_curve.learnability_edge(curve.kappa, a)
        np.testing.assert_allclose(slopes(p, edge), learning_curve.edge_exponent(a, ridgeless=t == 0), atol=0.02)


def test_the_edge_is_the_mode_that_is_half_learned():
    edge = learning_curve.learnability_edge([0.2, 1e-4], 1.7)
    np.testing.assert_allclose(
        [effective_ridge.learnability(edge**-1.7, k)[i] for i, k in enumerate([0.2, 1e-4])], 0.5, rtol=1e-12
    )


def test_noise_adds_the_learned_modes_over_the_samples():
    values, p = MODES[:100_000] ** -2.0, np.array([1e5, 1e6])
    with_noise, without = (
        learning_curve.predict(values, values, p, ridge=1e5, noise_variance=noise) for noise in (0.3, 0.0)
    )
    learned = effective_ridge.learnability(values, with_noise.kappa)
    np.testing.assert_allclose(with_noise.variance - without.variance, 0.3 * (learned**2).sum(axis=1) / p, rtol=1e-4)


@pytest.mark.parametrize(("a", "t"), [(1.5, [0.03, 0.02]), (2.0, [1e-3, 3e-4])])
def test_at_the_crossover_the_unlearned_variance_is_of_the_order_of_the_ridge(a, t):
    t = np.array(t)
    p, tail = learning_curve.crossover(t, a), MODES.size ** (1 - a) / (a - 1)  # modes beyond the last are ridge

    def share(p):
        return (p * learning_curve.predict(MODES**-a, MODES**-a, p, ridge=t + tail).kappa - t) / t

    low, middle, high = share(0.01 * p), share(p), share(100 * p)
    # Many modes, κ = q T^{a/(a-1)}: at P = T^{-1/(a-1)}  1 = 1/q + C q^{-1/a}  and the share is  C q^{1-1/a}.
    amplitude = effective_ridge.ridgeless_amplitude(a) ** (1 / a)
    q = brentq(lambda q: 1 / q + amplitude * q ** (-1 / a) - 1, 1, 1e3)
    np.testing.assert_allclose(middle, amplitude * q ** (1 - 1 / a), rtol=5e-3)
    assert np.all(low > 10) and np.all(high < 1)


def test_the_equivalent_kernel_forgets_the_unlearned_variance():
    values, power = MODES[:1000] ** -1.2, MODES[:1000] ** -2.0
    promised = learning_curve.equivalent_kernel_error(values, power, 50, ridge=[1e-3, 1e4])
    expected = [sum(w * (t / 50 / (v + t / 50)) ** 2 for v, w in zip(values, power)) for t in (1e-3, 1e4)]
    np.testing.assert_allclose(promised, expected, rtol=1e-12)
    found = learning_curve.predict(values, power, 50, ridge=[1e-3, 1e4]).test_error
    assert found[0] > 5 * promised[0] and found[1] == pytest.approx(promised[1], rel=1e-3)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=6), st.integers(0, 99))
def test_effective_ranks_by_sums_over_single_modes(eigenvalues, seed):
    values, counts = np.sort(eigenvalues)[::-1], np.random.default_rng(seed).integers(1, 5, len(eigenvalues))
    edges, first, second = learning_curve.effective_ranks(values, multiplicities=counts)
    single = np.repeat(values, counts)
    for edge, r, big in zip(edges, first, second):
        rest = single[int(edge) :]
        assert r == pytest.approx(rest.sum() / rest[0], rel=1e-12)
        assert big == pytest.approx(rest.sum() ** 2 / (rest**2).sum(), rel=1e-12)
        assert 1 - 1e-12 <= r <= big * (1 + 1e-12) <= rest.size * (1 + 1e-9)


def test_benign_ranks_go_with_harmless_noise():
    """Two learned directions and a long flat tail: interpolation costs next to nothing.  A tail of P modes: much."""
    cost = {}
    for tail in (100_000, 120):
        values, counts = np.array([1.0, 50 / tail]), np.array([2, tail])
        curve = learning_curve.predict(values, [2.0, 0.0], 100, ridge=0.0, noise_variance=1.0, multiplicities=counts)
        cost[tail] = curve.variance
        ranks = learning_curve.effective_ranks(values, multiplicities=counts)
        assert ranks[1][1] == pytest.approx(tail, rel=1e-12) and curve.train_error == 0
    assert cost[100_000] < 0.05 and cost[120] > 2


# --- bad input: every public function, every argument ---------------------------------------------

SPECTRUM = {"eigenvalues": [1.0, 0.5], "target_power": [1.0, 0.0]}
CALLS = {
    learning_curve.predict: SPECTRUM
    | {"samples": [3, 4], "ridge": 0.1, "noise_variance": 0.0, "multiplicities": [1, 2]},
    learning_curve.equivalent_kernel_error: SPECTRUM | {"samples": [3, 4], "ridge": 0.1},
    learning_curve.coefficient_variance: {
        "eigenvalues": [1.0, 0.5],
        "kappa": 0.1,
        "test_error": 1.0,
        "samples": 3,
        "own_error": [0.1, 0.0],
    },
    learning_curve.loss_exponent: {"spectral_exponent": 1.5, "target_exponent": 2.0, "ridgeless": True},
    learning_curve.edge_exponent: {"spectral_exponent": 1.5, "ridgeless": False},
    learning_curve.learnability_edge: {"kappa": [0.1, 1.0], "spectral_exponent": 1.5},
    learning_curve.crossover: {"ridge": [0.1, 1.0], "spectral_exponent": 1.5},
    learning_curve.effective_ranks: {"eigenvalues": [1.0, 0.5], "multiplicities": [1, 2]},
}
BAD = {
    "eigenvalues": [[], [0.0, 0.0], [1.0, -1e-9], [np.nan, 1.0], 1.0, [[1.0, 0.5]], "x", None],
    "target_power": [[1.0], [-1.0, 0.0], [np.nan, 0.0], 1.0, "x", None],
    "samples": [0, -1, np.nan, np.inf, "x", None, True],
    "ridge": [-1e-9, [0.1, -1], np.nan, np.inf, "x", None, True],
    "noise_variance": [-1e-9, np.nan, np.inf, "x", None, [0.1], True],
    "multiplicities": [[1], [1, 0], [1, -2], [1, np.nan], "x", 1.0],
    "kappa": [-1e-9, np.nan, np.inf, "x", None, True],
    "test_error": [-1e-9, np.nan, np.inf, "x", None, True],
    "own_error": [-1e-9, [0.1], np.nan, np.inf, "x", None, True],
    "spectral_exponent": [*NUMBER, 1.0],
    "target_exponent": [*NUMBER, 1.0],
    "ridgeless": [0, 1, "yes", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_more_bad_input():
    for values in ([0.5, 1.0], [1.0, 0.0]):
        with pytest.raises(ValueError, match="^eigenvalues must be > 0 and descending"):
            learning_curve.effective_ranks(values)
    with pytest.raises(ValueError, match="^ridge must broadcast with samples"):
        learning_curve.predict([1.0], [1.0], [1, 2], ridge=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="^spectral_exponent must keep the result inside"):
        learning_curve.crossover(1e-3, 1.001)
    with pytest.raises(ValueError, match="^ridge must "):
        learning_curve.equivalent_kernel_error([1.0], [1.0], 3, ridge=0.0)


@pytest.mark.parametrize("function", [effective_ridge.solve, effective_ridge.equivalent_kernel, learning_curve.predict])
def test_samples_and_ridge_cannot_be_swapped(function):
    given = ([1.0, 0.5], [1.0, 1.0]) if function is learning_curve.predict else ([1.0, 0.5],)
    function(*given, 0.1, ridge=100)
    with pytest.raises(TypeError, match="positional argument"):
        function(*given, 0.1, 100)

"""lib.fields.kernels.effective_ridge against roots one by one, closed forms, and least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from lib.common.spectrum import Spectrum
from lib.fields.kernels import effective_ridge
from lib.fields.kernels.effective_ridge import RidgeTheory

MODES = np.arange(1.0, 100_001)
PLATEAUS = Spectrum([2.0, 0.1], [5, 15])


def solved_alone(values, counts, p, t):
    """κ by a scalar root of the equation as it is printed."""

    def surplus(u):
        return t * np.exp(-u) + (counts * values / (values + np.exp(u))).sum() - p

    return np.exp(brentq(surplus, np.log(values.min()) - 40, np.log((t + counts @ values) / p) + 1e-9, xtol=1e-13))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=12), st.integers(0, 99), st.floats(0.5, 200),
       st.floats(1e-6, 10), st.floats(0, 2))  # fmt: skip
def test_kappa_solves_its_equation_and_the_parts_of_the_error_add_up(eigenvalues, seed, p, t, noise):
    rng, values = np.random.default_rng(seed), np.array(eigenvalues)
    counts, power = rng.integers(1, 40, values.size).astype(float), rng.exponential(size=values.size)
    theory = RidgeTheory(Spectrum(values, counts), p, ridge=t)
    learned = values / (values + theory.kappa)
    assert theory.kappa == pytest.approx(solved_alone(values, counts, p, t), rel=1e-9)
    assert t / theory.kappa + counts @ learned == pytest.approx(p, rel=1e-10)
    assert p * theory.kappa == pytest.approx(t + counts @ theory.posterior_variance, rel=1e-10)
    np.testing.assert_allclose(theory.learnability, learned, rtol=1e-13)
    curve = theory.predict(power, noise_variance=noise)
    assert curve.kappa == theory.kappa and curve.amplification >= 1 and curve.train_error <= curve.test_error
    assert curve.amplification == pytest.approx(p / (p - counts @ learned**2), rel=1e-7)
    assert curve.bias == pytest.approx((1 - learned) ** 2 @ power, rel=1e-10)
    assert curve.test_error == pytest.approx(curve.bias + curve.variance + noise, rel=1e-10)
    assert curve.test_error * (counts @ learned**2) / p == pytest.approx(curve.variance, rel=1e-9)
    for part in (theory.kappa, curve.bias, curve.train_error):
        assert type(part) is float


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=12), st.integers(0, 11), st.floats(1.0, 50),
       st.floats(1e-3, 10), st.floats(1e-8, 1e8))  # fmt: skip
def test_kappa_falls_with_samples_rises_with_ridge_and_eigenvalues_and_scales(eigenvalues, place, p, t, scale):
    values = np.array(eigenvalues)
    kappa = RidgeTheory(values, [p, 1.1 * p], ridge=t).kappa
    assert kappa[1] < kappa[0] < RidgeTheory(values, p, ridge=1.1 * t).kappa
    raised = values * np.where(np.arange(values.size) == place % values.size, 1.5, 1.0)
    assert RidgeTheory(raised, p, ridge=t).kappa > kappa[0]
    scaled = RidgeTheory(Spectrum(values).scaled(scale), [p, 1.1 * p], ridge=scale * t)
    np.testing.assert_allclose(scaled.kappa, scale * kappa, rtol=1e-10)


def test_grouped_modes_zeros_and_order_change_nothing_and_shapes_broadcast():
    values, counts, power = np.array([0.2, 3.0, 0.0, 0.7]), np.array([3, 1, 4, 2]), np.array([1.0, 0.5, 2.0, 0.1])
    p, t = np.array([[2.0], [5.0], [40.0]]), np.array([1e-9, 0.1, 3.0, 50.0])
    grouped, single = (
        RidgeTheory(Spectrum(values, counts), p, ridge=t),
        RidgeTheory(np.repeat(values, counts), p, ridge=t),
    )
    assert grouped.kappa.shape == (3, 4) and grouped.learnability.shape == (3, 4, 4)
    np.testing.assert_allclose(grouped.kappa, single.kappa, rtol=1e-12)
    each = [[RidgeTheory(Spectrum(values, counts), p[i, 0], ridge=t[j]).kappa for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(grouped.kappa, each, rtol=1e-13)
    one, two = (
        grouped.predict(power, noise_variance=0.1),
        single.predict(np.repeat(power / counts, counts), noise_variance=0.1),
    )
    for name in ("amplification", "bias", "variance", "test_error", "train_error"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-10)


def test_blocks_of_modes_and_rows_change_nothing():
    values, p = MODES[:20_000] ** -1.5, np.array([10.0, 300.0, 4000.0])
    theory = RidgeTheory(values, p, ridge=0.1)  # longer than one block
    np.testing.assert_allclose(0.1 / theory.kappa + theory.learnability.sum(axis=1), p, rtol=1e-10)
    curve = theory.predict(values)
    np.testing.assert_allclose(curve.bias, (1 - theory.learnability) ** 2 @ values, rtol=1e-10)


def test_without_a_ridge_kappa_is_zero_from_the_rank_on_and_only_there():
    spectrum = Spectrum([1.0, 0.5, 0.0, 0.1], [1, 1, 7, 1])
    kappa = RidgeTheory(spectrum, [1, 2, 2.999, 3, 4], ridge=0.0).kappa
    assert np.all(kappa[:3] > 0) and np.all(kappa[3:] == 0)
    assert np.all(RidgeTheory(spectrum, [3, 4, 400], ridge=1e-12).kappa > 0)
    beyond = RidgeTheory(spectrum, 4, ridge=0.0)
    assert beyond.learnability.tolist() == [1, 1, 0, 1] and beyond.predict([0.0, 0.0, 3.0, 0.0]).bias == 3


@pytest.mark.parametrize("t", [1e-6, 1e-14, 1e-30])
def test_at_the_rank_a_tiny_ridge_leaves_its_root(t):
    """κ = √(T/Σ λ⁻¹),  E₀ = Pκ/(2T),  bias = κ² Σ w/λ²,  to first order in κ; and beyond it κ = T/(P - rank)."""
    values = MODES[:40] ** -2.0
    kappa = np.sqrt(t / (1 / values).sum())
    curve = RidgeTheory(values, 40, ridge=t).predict(values)
    neglected = 2 * kappa * (1 / values**2).sum() / (1 / values).sum() + 1e-12
    assert curve.kappa == pytest.approx(kappa, rel=neglected)
    if t < 1e-6:
        found = [curve.amplification, curve.bias]
        np.testing.assert_allclose(found, [40 * kappa / (2 * t), kappa**2 * (1 / values).sum()], rtol=4 * neglected)
    beyond = RidgeTheory(values, 50, ridge=t).kappa
    assert beyond == pytest.approx(t / 10, rel=t * (1 / values).sum() + 1e-13)


def test_two_plateaus_thirty_decades_apart():
    kappa = RidgeTheory(Spectrum([1.0, 1e-30], [60, 1000]), [60, 61, 1000], ridge=0.0).kappa
    # P = 60: 60κ = 1000·10⁻³⁰/κ;  beyond it the upper modes cost nothing and the lower plateau is alone
    np.testing.assert_allclose(kappa, [np.sqrt(1e-27 / 60), 999e-30, 1e-30 * 60 / 940], rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.floats(1e-3, 1e3), st.integers(1, 500), st.integers(1, 1000), st.one_of(st.just(0.0), st.floats(1e-12, 1e3)))
def test_one_eigenvalue_in_closed_form(value, count, p, t):
    closed = effective_ridge.degenerate(value, count, p, ridge=t)
    assert closed == pytest.approx(RidgeTheory(Spectrum([value], [count]), p, ridge=t).kappa, rel=1e-10)
    largest = max(p * closed**2, abs(p * value - count * value - t) * closed, t * value)
    assert abs(p * closed**2 + (p * value - count * value - t) * closed - t * value) <= 1e-12 * largest


@pytest.mark.parametrize("over", [10.0, 100.0, 1e4])
def test_a_large_ridge_leads_to_the_equivalent_kernel(over):
    spectrum = Spectrum(MODES[:500] ** -1.3, np.full(500, 2))
    t = over * spectrum.trace
    theory, power = RidgeTheory(spectrum, 50, ridge=t), MODES[:500] ** -2.0
    bare = t / 50
    assert 0 < theory.kappa / bare - 1 < 1 / over
    promised = theory.equivalent_kernel_error(power)
    expected = sum(w * (bare / (v + bare)) ** 2 for v, w in zip(spectrum.eigenvalues, power))
    assert promised == pytest.approx(expected, rel=1e-12)
    assert theory.predict(power).test_error == pytest.approx(promised, rel=3 / over)


# --- a finite pool --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(1e-4, 10.0), min_size=2, max_size=8), st.integers(0, 99), st.floats(0.02, 0.98),
       st.one_of(st.just(0.0), st.floats(1e-6, 100)), st.floats(0, 2))  # fmt: skip
def test_in_a_pool_kappa_solves_its_equation_and_the_parts_add_up(eigenvalues, seed, part, t, noise):
    rng, values = np.random.default_rng(seed), np.array(eigenvalues)
    counts, power = rng.integers(1, 40, values.size).astype(float), rng.exponential(size=values.size)
    pool = int(counts.sum()) + int(rng.integers(0, 50))
    p = part * pool if t else part * counts.sum()
    theory = RidgeTheory(Spectrum(values, counts), p, ridge=t, pool=pool)
    learned = values / (values + theory.kappa)
    used, squares = counts @ learned, counts @ learned**2
    assert t / theory.kappa * (1 - used / pool) + used == pytest.approx(p, rel=1e-9)
    curve = theory.predict(power, noise_variance=noise)
    amplification = p / ((1 - p / pool) * (p - squares) + (p - used) ** 2 / pool)
    assert curve.amplification == pytest.approx(amplification, rel=1e-6)
    outside = noise * (1 - 2 * used / pool + squares / pool)
    assert curve.test_error == pytest.approx(amplification * ((1 - learned) ** 2 @ power + outside), rel=1e-6)
    assert curve.test_error == pytest.approx(curve.bias + curve.variance + noise, rel=1e-9)
    assert curve.train_error == pytest.approx((1 - used / p) ** 2 * curve.test_error, rel=1e-5, abs=1e-9)


def test_a_pool_without_end_is_unlimited_data_and_without_a_ridge_the_points_left_out_bear_all_the_error():
    values, power = MODES[:300] ** -1.5, MODES[:300] ** -1.8
    names = "kappa", "amplification", "bias", "variance", "test_error", "train_error"
    for t in (0.0, 0.3):
        free, wide = (RidgeTheory(values, [5.0, 200.0], ridge=t, pool=pool) for pool in (None, 10**12))
        for name in names:
            one, two = (getattr(theory.predict(power, noise_variance=0.2), name) for theory in (free, wide))
            np.testing.assert_allclose(two, one, rtol=1e-7, atol=1e-10)
    p = np.array([5.0, 150.0, 290.0])
    free, pooled = (RidgeTheory(values, p, ridge=0.0, pool=pool).predict(power) for pool in (None, 300))
    np.testing.assert_allclose(pooled.kappa, free.kappa, rtol=1e-12)
    np.testing.assert_allclose(pooled.test_error * (1 - p / 300), free.test_error, rtol=1e-8)


@pytest.mark.parametrize("t", [1e-9, 0.3, 40.0])
def test_points_without_a_neighbour_in_their_pool_are_exact(t):
    """K = 1: nothing is known of the points left out, and each that is seen pulls on itself alone."""
    p, power = np.array([1.0, 30.0, 49.0]), np.full(50, 0.1)
    curve = RidgeTheory(np.full(50, 1 / 50), p, ridge=t, pool=50).predict(power)
    np.testing.assert_allclose(curve.test_error, 5.0, rtol=1e-9)
    np.testing.assert_allclose(curve.train_error, 5.0 * (t / (1 + t)) ** 2, rtol=1e-5)
    np.testing.assert_allclose(curve.variance, 0, atol=1e-9)


def test_pools_in_random_directions_follow_it_to_the_end():
    """Kernels with given eigenvalues and random eigenvectors, at nine tenths of the pool, seen and left-out points."""
    size, p, rng = 120, np.array([24, 60, 108]), np.random.default_rng(5)
    values, power = MODES[:size] ** -1.5, MODES[:size] ** -1.6
    for t in (1e-6, 1.0):
        theory = RidgeTheory(values, p, ridge=t, pool=size).predict(power)
        found = np.empty((300, 3, 2))
        for trial in range(300):
            axes = np.linalg.qr(rng.standard_normal((size, size)))[0] * rng.choice([-1, 1], size)
            kernel, y = size * (axes * values) @ axes.T, np.sqrt(size) * axes @ np.sqrt(power)
            for i, seen in enumerate(p):
                inverse = np.linalg.inv(kernel[:seen, :seen] + t * np.eye(seen))
                miss = kernel[:, :seen] @ inverse @ y[:seen] - y
                found[trial, i] = (miss[seen:] ** 2).mean(), (miss[:seen] ** 2).mean()
        mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(300)
        neglected = 4 / p  # corrections of relative order 1/P
        expected = np.transpose([theory.test_error, theory.train_error])
        assert np.all(np.abs(mean - expected) < 4 * error + neglected[:, None] * expected)
        free = RidgeTheory(values, p, ridge=t).predict(power).test_error  # the control
        assert np.all(free[1:] < 0.85 * mean[1:, 0]) and free[2] < 0.75 * mean[2, 0]


def test_what_a_pool_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="^samples must be fewer than the 50 points of the pool"):
        RidgeTheory(np.ones(50), [10, 50], ridge=1.0, pool=50)
    with pytest.raises(ValueError, match="^pool must have as many points as there are modes"):
        RidgeTheory(np.ones(50), 10, ridge=1.0, pool=49)
    theory = RidgeTheory(np.ones(50), 10, ridge=1.0, pool=50)
    with pytest.raises(ValueError, match="^pool must be None for"):
        theory.equivalent_kernel_error(np.ones(50))


# --- learning curves ------------------------------------------------------------------------------


def test_the_amplification_is_the_derivative_of_the_effective_ridge():
    """From the equation at fixed P:  dκ/dT = 1/(P - Σ g L²)."""
    values, p, t = MODES[:300] ** -1.4, np.array([5.0, 40.0, 290.0, 310.0]), 0.3
    high, low = (RidgeTheory(values, p, ridge=t + sign * 1e-4).kappa for sign in (1, -1))
    amplification = RidgeTheory(values, p, ridge=t).predict(values).amplification
    np.testing.assert_allclose(amplification, p * (high - low) / 2e-4, rtol=1e-6)


def test_without_a_ridge_samples_are_used_up_and_training_is_perfect():
    values = MODES[:400] ** -1.5
    curve = RidgeTheory(values, [10, 100, 399], ridge=0.0).predict(values, noise_variance=0.1)
    np.testing.assert_allclose(curve.theory.learnability.sum(axis=1), [10, 100, 399], rtol=1e-10)
    assert np.all(curve.train_error == 0)


def test_beyond_the_rank_it_is_ordinary_least_squares():
    """With n parameters and P samples: training error σ²(1 - n/P), and test error σ²P/(P - n) to leading order."""
    p = np.array([21.0, 30.0, 200.0])
    curve = RidgeTheory(PLATEAUS, p, ridge=0.0).predict([1.0, 3.0], noise_variance=0.7)
    np.testing.assert_allclose(curve.train_error, 0.7 * (1 - 20 / p), rtol=1e-12)
    np.testing.assert_allclose(curve.test_error, 0.7 * p / (p - 20), rtol=1e-12)
    assert np.all(curve.bias == 0) and np.all(curve.kappa == 0)
    small = RidgeTheory(PLATEAUS, p, ridge=1e-9).predict([1.0, 3.0], noise_variance=0.7)
    for name in ("test_error", "train_error", "variance"):
        np.testing.assert_allclose(getattr(small, name), getattr(curve, name), rtol=1e-5)


def test_double_descent_with_a_ridge_and_with_a_tail():
    """D = 60 modes of eigenvalue one and target power one, noise 0.25; errors against the clean target."""

    def clean(p, t, tail=None):
        values, counts, power = ([1.0], [60], [1.0]) if tail is None else ([1.0, 5 / tail], [60, tail], [1.0, 0.0])
        return RidgeTheory(Spectrum(values, counts), p, ridge=t).predict(power, noise_variance=0.25).test_error - 0.25

    np.testing.assert_allclose(clean([55, 60, 66, 90], 1e-3), [2.82, 30.5, 2.49, 0.500], rtol=2e-3)
    assert clean(60, 5.0) == pytest.approx(0.464, abs=5e-4)
    ridge_only = clean([60, 180], 5.001)
    tail = clean([60, 180], 1e-3, 10_000)
    assert np.all(tail > ridge_only) and tail[0] == pytest.approx(ridge_only[0], rel=0.02)
    # Ever smaller modes of the same total weight are nothing but ridge.
    np.testing.assert_allclose(clean([60, 180], 1e-3, 10**10), ridge_only, rtol=1e-6)


# --- what does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RidgeTheory([1.0, 1e-120], 3, ridge=1.0), "spectrum must have eigenvalues that are zero or within"),
        (lambda: RidgeTheory([1.0, -1.0], 3, ridge=1.0), "spectrum must be a Spectrum or an array of eigenvalues"),
        (lambda: RidgeTheory([1.0], [1, 2], ridge=[1.0, 2.0, 3.0]), "ridge must broadcast with samples"),
        (lambda: RidgeTheory(PLATEAUS, [10, 20], ridge=0.0).predict([1.0, 3.0]), "ridge must be > 0 where samples"),
        (lambda: RidgeTheory(PLATEAUS, 3, ridge=1.0).predict([1.0]), "target_power must have one axis of length 2"),
        (lambda: RidgeTheory([1.0], 3, ridge=0.0).equivalent_kernel_error([1.0]), "ridge must be > 0"),
        (lambda: RidgeTheory([1e-300], 3, ridge=1e300).kappa, "ridge must keep"),
        (lambda: effective_ridge.degenerate(1e-300, 1, 3, ridge=1e300), "ridge must keep"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_samples_and_ridge_cannot_be_swapped():
    with pytest.raises(TypeError, match="positional argument"):
        RidgeTheory([1.0, 0.5], 0.1, 100)

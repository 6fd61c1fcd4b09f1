"""lib.fields.kernels.learning_curve against quadrature, curves of many modes, and sums over single modes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from lib.common.spectrum import Spectrum
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.learning_curve import PowerLaw, decay, effective_ranks

MODES = np.arange(1.0, 10**6 + 1)


def slopes(x, y):
    return np.diff(np.log(y)) / np.diff(np.log(x))


@pytest.mark.parametrize("a", [1.1, 1.5, 2.0, 3.7])
def test_the_ridgeless_amplitude_is_the_integral_over_modes(a):
    integral = quad(lambda x: 1 / (1 + x**a), 0, 1)[0] + quad(lambda x: x ** (a - 2) / (1 + x**a), 0, 1)[0]
    assert PowerLaw(a).ridgeless_amplitude == pytest.approx(integral**a, rel=1e-6)


@pytest.mark.parametrize("a", [1.5, 2.0])
def test_a_million_modes_approach_the_ridgeless_amplitude(a):
    p = np.array([100, 200])
    kappa = RidgeTheory(Spectrum.power_law(10**6, a), p, ridge=0.0).kappa
    np.testing.assert_allclose(kappa * p**a, PowerLaw(a).ridgeless_amplitude, rtol=0.02)


@pytest.mark.parametrize(("a", "beta"), [(1.5, 2.0), (2.0, 2.5), (1.5, 6.0)])
def test_exponents_of_power_laws(a, beta):
    law = PowerLaw(a)
    for t, p in ((0.0, [100, 200, 400]), (10.0, [1e4, 3e4, 1e5])):
        curve = RidgeTheory(MODES**-a, p, ridge=t).predict(MODES**-beta)
        expected = law.loss_exponent(beta, ridgeless=t == 0)
        np.testing.assert_allclose(slopes(p, curve.test_error), -expected, atol=0.02)
        edge = slopes(p, law.learnability_edge(curve.kappa))
        np.testing.assert_allclose(edge, law.edge_exponent(ridgeless=t == 0), atol=0.02)


@pytest.mark.parametrize("kappa", [0.2, 1e-4])
def test_the_edge_is_the_mode_that_is_half_learned(kappa):
    assert PowerLaw(1.7).learnability_edge(kappa) ** -1.7 / kappa == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("a", "t"), [(1.5, [0.03, 0.02]), (2.0, [1e-3, 3e-4])])
def test_at_the_crossover_the_unlearned_variance_is_of_the_order_of_the_ridge(a, t):
    law, t = PowerLaw(a), np.array(t)
    p, tail = law.crossover(t), MODES.size ** (1 - a) / (a - 1)  # modes beyond the last are ridge
    low, middle, high = ((q * RidgeTheory(MODES**-a, q, ridge=t + tail).kappa - t) / t for q in (0.01 * p, p, 100 * p))
    # Many modes, κ = q T^{a/(a-1)}: at P = T^{-1/(a-1)}  1 = 1/q + C q^{-1/a}  and the share is  C q^{1-1/a}.
    amplitude = law.ridgeless_amplitude ** (1 / a)
    q = brentq(lambda q: 1 / q + amplitude * q ** (-1 / a) - 1, 1, 1e3)
    np.testing.assert_allclose(middle, amplitude * q ** (1 - 1 / a), rtol=5e-3)
    assert np.all(low > 10) and np.all(high < 1)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=6), st.integers(0, 99))
def test_effective_ranks_by_sums_over_single_modes(eigenvalues, seed):
    values, counts = np.sort(eigenvalues)[::-1], np.random.default_rng(seed).integers(1, 5, len(eigenvalues))
    single = np.repeat(values, counts)
    for edge, rank, square in zip(*effective_ranks(Spectrum(values, counts))):
        rest = single[int(edge) :]
        assert rank == pytest.approx(rest.sum() / rest[0], rel=1e-12)
        assert square == pytest.approx(rest.sum() ** 2 / (rest**2).sum(), rel=1e-12)


def test_benign_ranks_go_with_harmless_noise():
    """Two learned directions and a long flat tail: interpolation costs next to nothing.  A tail of P modes: much."""
    cost = {}
    for tail in (100_000, 120):
        spectrum = Spectrum([1.0, 50 / tail], [2, tail])
        curve = RidgeTheory(spectrum, 100, ridge=0.0).predict([2.0, 0.0], noise_variance=1.0)
        cost[tail] = curve.variance
        assert effective_ranks(spectrum)[1][1] == pytest.approx(tail, rel=1e-12) and curve.train_error == 0
    assert cost[100_000] < 0.05 and cost[120] > 2


# --- exponents of spectra -------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "last"), [(None, None), (3, 200), (10, 40)])
@pytest.mark.parametrize("a", [0.5, 1.7, 4.0])
def test_a_pure_power_has_its_exponent_without_error(a, first, last):
    found = decay(1e3 * np.arange(1.0, 201) ** -a, first=first, last=last)
    assert found.exponent == pytest.approx(a, rel=1e-10) and found.error < 1e-9 and abs(found.drift) < 1e-9
    assert (found.first, found.last) == (first or 1, last or 200)


def test_the_slope_is_that_of_numpy_with_every_decade_alike_and_the_drift_of_a_parabola_is_its_own():
    k, rng = np.arange(5.0, 301), np.random.default_rng(1)
    values = k**-1.3 * np.exp(0.3 * rng.standard_normal(k.size))
    found = decay(np.r_[np.ones(4), values], first=5, last=300)
    expected = np.polyfit(np.log(k), np.log(values), 1, w=k**-0.5)[0]
    assert found.exponent == pytest.approx(-expected, rel=1e-10)
    bent = decay(np.exp(-1.3 * np.log(MODES[:300]) - 0.1 * np.log(MODES[:300]) ** 2), first=5, last=300)
    assert bent.drift == pytest.approx(0.2 * np.log(60), rel=1e-9)
    assert bent.error == pytest.approx(bent.drift / np.sqrt(12), rel=1e-6)


def test_the_error_is_the_scatter_of_noisy_coefficients():
    found = []
    for seed in range(200):
        noise = np.random.default_rng(seed).standard_normal(400)
        found.append(decay(np.arange(1.0, 401) ** -1.5 * noise**2, first=10, last=400))
    distance = [(one.exponent - 1.5) / one.error for one in found]
    assert abs(np.mean(distance)) < 0.35 and 0.6 < np.std(distance) < 1.3


def test_the_window_is_the_part_that_is_straight():
    k = MODES[:2000]
    found = decay(1 / (1 + (k / 60) ** 2))  # flat, then k^-2
    assert found.last == 2000 and 50 < found.first <= 200 and found.exponent == pytest.approx(2, abs=0.15)
    values = np.linalg.eigvalsh(np.exp(-(np.subtract.outer(k[:100], k[:100]) ** 2) / 1e4))[::-1].clip(0)
    with pytest.raises(ValueError, match="^values must fall with one exponent over 1 decade: state a window"):
        decay(np.exp(-k[:100] / 3))  # an exponential
    assert decay(np.maximum(values, 1e-20), first=1, last=5).last == 5


@pytest.mark.parametrize(
    ("values", "window", "message"),
    [
        ([1.0, 0.5, 0.2], {}, "values must leave five ranks or more"),
        (np.ones(30), {"first": 28}, "last must leave five ranks or more"),
        (np.ones(30), {"last": 31}, "last must leave five ranks or more"),
        ([1.0, 0.0, 0.5, 0.4, 0.3, 0.2], {}, "values must be > 0 up to the last"),
        ([1.0, -0.1, 0.5], {}, "values must have entries >= 0"),
        (np.arange(1.0, 101) ** 2, {}, "values must come with the largest first"),
        ([], {}, "values must leave five ranks"),
    ],
)
def test_values_without_an_exponent_are_refused(values, window, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        decay(values, **window)


def test_what_does_not_fit_is_refused():
    for values in ([0.5, 1.0], [1.0, 0.0]):
        with pytest.raises(ValueError, match="^spectrum must have eigenvalues > 0 and descending"):
            effective_ranks(values)
    with pytest.raises(ValueError, match="^decay must keep the result inside"):
        PowerLaw(1.001).crossover(1e-3)


def test_rounding_of_an_eigensolver_is_no_spectrum():
    exact, noise = 10.0 ** -np.arange(0, 60, 0.5), 1e-17 * np.random.default_rng(0).random(300)
    with pytest.raises(ValueError, match="^values must fall with one exponent"):
        decay(np.concatenate([exact, np.sort(noise)[::-1]]), decades=0.7)
    law = np.arange(1.0, 201) ** -2.0
    assert decay(np.append(law, -1e-17)) == decay(law)

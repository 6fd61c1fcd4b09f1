"""lib.fields.kernels.learning_curve against quadrature, curves of many modes, and sums over single modes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from lib.common.spectrum import Spectrum
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.learning_curve import PowerLaw, effective_ranks

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


def test_what_does_not_fit_is_refused():
    for values in ([0.5, 1.0], [1.0, 0.0]):
        with pytest.raises(ValueError, match="^spectrum must have eigenvalues > 0 and descending"):
            effective_ranks(values)
    with pytest.raises(ValueError, match="^decay must keep the result inside"):
        PowerLaw(1.001).crossover(1e-3)

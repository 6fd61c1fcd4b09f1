"""lib.fields.kernels.learning_curve against quadrature, and curves of many modes."""

import numpy as np
import pytest
from scipy.integrate import quad

from lib.common.spectrum import Spectrum
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.learning_curve import PowerLaw, decay

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


def test_rounding_of_an_eigensolver_is_no_spectrum():
    exact, noise = 10.0 ** -np.arange(0, 60, 0.5), 1e-17 * np.random.default_rng(0).random(300)
    with pytest.raises(ValueError, match="^values must fall with one exponent"):
        decay(np.concatenate([exact, np.sort(noise)[::-1]]), decades=0.7)
    law = np.arange(1.0, 201) ** -2.0
    assert decay(np.append(law, -1e-17)) == decay(law)

"""lib.scaling.schedules against integrated rate equations, the recursion by steps, constant rates, and descent."""

import numpy as np
import pytest
from power_law import power_law
from scipy.integrate import solve_ivp

from lib.common.spectrum import Spectrum
from lib.scaling.linear_student import LinearStudent
from lib.scaling.schedules import Staged

LAM = power_law(5, 0.75)
MANY = Spectrum(LAM, np.full(5, 3))
RATES, DURATIONS = [1.1, 0.3, 0.7], [0.4, 1.0, 0.6]


def test_infinite_network_solves_the_rate_equations():
    spectrum = Spectrum(LAM, [1, 2, 3, 4, 5]).normalized()  # Σ n_k λ_k = 1 with unequal fractions
    lam, n = spectrum.eigenvalues, spectrum.shares
    errors, e = [], 1.3 * n
    for rate, duration in zip(RATES, DURATIONS):

        def slope(_, e, rate=rate):
            return -2 * rate * lam * e + rate**2 * lam * n * (lam @ e)

        e = solve_ivp(slope, (0, duration), e, rtol=1e-11, atol=1e-13).y[:, -1]
        errors.append(lam @ e / 2)
    found = Staged(spectrum, RATES, DURATIONS, student_variance=0.3).generalization_error()
    np.testing.assert_allclose(found, errors, rtol=1e-9)


def test_finite_network_is_the_recursion_step_by_step():
    size, e, errors = 15, 1.3 * MANY.shares, []
    for rate, duration in zip(RATES, DURATIONS):
        a = rate * LAM / size
        for _ in range(round(duration * size)):
            e = (1 - 2 * a + 2 * a**2) * e + rate / size * a * MANY.multiplicities * (LAM @ e)
        errors.append(LAM @ e / 2)
    found = Staged(MANY, RATES, DURATIONS, student_variance=0.3).finite_size_error()
    np.testing.assert_allclose(found, errors, rtol=1e-12)


def test_a_schedule_with_one_rate_is_that_rate_and_pauses_do_nothing():
    stages, times, same = ([0.6, 0.6, 0.0, 0.9, 0.6], [1.0, 0.5, 3.0, 0.0, 0.5]), [1.0, 1.5, 2.0], [0, 1, 1, 1, 2]
    for name, spectrum in (("generalization_error", LAM), ("finite_size_error", Spectrum(LAM, np.full(5, 8)))):
        constant = getattr(LinearStudent(spectrum, 0.6), name)(times)[same]
        np.testing.assert_allclose(getattr(Staged(spectrum, *stages), name)(), constant, rtol=1e-12)


def test_what_does_not_fit_together_is_refused():
    one = [1.0]
    for wrong, call in {
        "durations must have one axis of length 2, got": lambda: Staged(one, [0.1, 0.2], [1.0]),
        "rates must hold at least one stage": lambda: Staged(one, [], []),
        "rates must keep the result inside": lambda: Staged(one, [0.1, 50.0], [1.0, 1e4]).generalization_error(),
        "rates must keep the result": lambda: Staged(Spectrum([1], [2]), [0.1, 50.0], [1.0, 1e4]).finite_size_error(),
        "rates must keep": lambda: Staged(one, [1e200], one).finite_size_error(),
        "spectrum must have whole multiplicities": lambda: Staged(Spectrum(one, [1.5]), one, one).finite_size_error(),
    }.items():
        with pytest.raises(ValueError, match=f"^{wrong}"):
            call()

"""lib.scaling.schedules against integrated rate equations, the recursion by steps, constant rates, and descent."""

import numpy as np
import pytest
from power_law import power_law
from scipy.integrate import solve_ivp

from lib.common.spectrum import Spectrum
from lib.scaling import linear_student, schedules

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
    found = schedules.generalization_error(RATES, DURATIONS, spectrum, student_variance=0.3)
    np.testing.assert_allclose(found, errors, rtol=1e-9)


def test_finite_network_is_the_recursion_step_by_step():
    size, e, errors = 15, 1.3 * MANY.shares, []
    for rate, duration in zip(RATES, DURATIONS):
        a = rate * LAM / size
        for _ in range(round(duration * size)):
            e = (1 - 2 * a + 2 * a**2) * e + rate / size * a * MANY.multiplicities * (LAM @ e)
        errors.append(LAM @ e / 2)
    found = schedules.finite_size_error(RATES, DURATIONS, MANY, student_variance=0.3)
    np.testing.assert_allclose(found, errors, rtol=1e-12)


def test_a_schedule_with_one_rate_is_that_rate_and_pauses_do_nothing():
    stages, times, same = ([0.6, 0.6, 0.0, 0.9, 0.6], [1.0, 0.5, 3.0, 0.0, 0.5]), [1.0, 1.5, 2.0], [0, 1, 1, 1, 2]
    for name, spectrum in (("generalization_error", LAM), ("finite_size_error", Spectrum(LAM, np.full(5, 8)))):
        constant = getattr(linear_student, name)(times, spectrum, 0.6)[same]
        np.testing.assert_allclose(getattr(schedules, name)(*stages, spectrum), constant, rtol=1e-12)
    adiabatic = schedules.adiabatic_error([0.6, 0.6, 0.0, 0.6], [1.0, 0.5, 3.0, 0.5], LAM, student_variance=0.5)
    flow = linear_student.gradient_flow_error(times, LAM, 0.6, student_variance=0.5)[[0, 1, 1, 2]]
    np.testing.assert_allclose(adiabatic, flow / [0.7, 0.7, 1.0, 0.7], rtol=1e-13)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match=r"^durations must have one axis of length 2, got"):
        schedules.generalization_error([0.1, 0.2], [1.0], [1.0])
    with pytest.raises(ValueError, match=r"^rates must hold at least one stage"):
        schedules.generalization_error([], [], [1.0])
    for function, spectrum in (
        (schedules.generalization_error, [1.0]),
        (schedules.finite_size_error, Spectrum([1], [2])),
    ):
        with pytest.raises(ValueError, match=r"^rates must keep the result inside"):
            function([0.1, 50.0], [1.0, 1e4], spectrum)
    with pytest.raises(ValueError, match=r"^rates must keep the result"):
        schedules.finite_size_error([1e200], [1.0], [1.0])

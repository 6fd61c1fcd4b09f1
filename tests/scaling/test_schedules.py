"""lib.scaling.schedules against integrated rate equations, the recursion by steps, constant rates, and descent."""

import numpy as np
import pytest
from bad_input import cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from lib.scaling import linear_descent, linear_student, schedules, spectra

LAM, COUNTS = spectra.power_law(5, 0.75), np.full(5, 3)
RATES, DURATIONS = [1.1, 0.3, 0.7], [0.4, 1.0, 0.6]


def test_infinite_network_solves_the_rate_equations():
    # Σ n_k λ_k = 1 with unequal fractions
    counts = np.array([1, 2, 3, 4, 5])
    lam = LAM * counts.sum() / (counts @ LAM)
    n, errors, e = counts / 15, [], 1.3 * counts / 15
    for rate, duration in zip(RATES, DURATIONS):

        def slope(_, e, rate=rate):
            return -2 * rate * lam * e + rate**2 * lam * n * (lam @ e)

        e = solve_ivp(slope, (0, duration), e, rtol=1e-11, atol=1e-13).y[:, -1]
        errors.append(lam @ e / 2)
    found = schedules.generalization_error(RATES, DURATIONS, lam, multiplicities=counts, student_variance=0.3)
    np.testing.assert_allclose(found, errors, rtol=1e-9)


def test_finite_network_is_the_recursion_step_by_step():
    size, e, errors = 15, 1.3 * COUNTS / 15, []
    for rate, duration in zip(RATES, DURATIONS):
        a = rate * LAM / size
        for _ in range(round(duration * size)):
            e = (1 - 2 * a + 2 * a**2) * e + rate / size * a * COUNTS * (LAM @ e)
        errors.append(LAM @ e / 2)
    found = schedules.finite_size_error(RATES, DURATIONS, LAM, multiplicities=COUNTS, student_variance=0.3)
    np.testing.assert_allclose(found, errors, rtol=1e-12)


def test_a_schedule_with_one_rate_is_that_rate_and_pauses_do_nothing():
    rates, durations = [0.6, 0.6, 0.0, 0.9, 0.6], [1.0, 0.5, 3.0, 0.0, 0.5]
    learning = np.array([1.0, 1.5, 1.5, 1.5, 2.0])
    constant = linear_student.generalization_error([1.0, 1.5, 2.0], LAM, 0.6)[[0, 1, 1, 1, 2]]
    np.testing.assert_allclose(schedules.generalization_error(rates, durations, LAM), constant, rtol=1e-12)
    counts = np.full(5, 8)
    constant = linear_student.finite_size_error([1.0, 1.5, 2.0], LAM, 0.6, multiplicities=counts)[[0, 1, 1, 1, 2]]
    np.testing.assert_allclose(
        schedules.finite_size_error(rates, durations, LAM, multiplicities=counts), constant, rtol=1e-12
    )
    adiabatic = schedules.adiabatic_error([0.6] * 3, [1.0, 0.5, 0.5], LAM, student_variance=0.5)
    flow = linear_student.gradient_flow_error(np.unique(learning), LAM, 0.6, student_variance=0.5)
    np.testing.assert_allclose(adiabatic, flow / (1 - 0.3), rtol=1e-13)


def test_finite_networks_approach_the_infinite_one_as_one_over_size():
    limit = schedules.generalization_error(RATES, DURATIONS, LAM)
    gaps = [
        schedules.finite_size_error(RATES, DURATIONS, LAM, multiplicities=np.full(5, m)) / limit - 1
        for m in (1000, 4000)
    ]
    np.testing.assert_allclose(gaps[0] / gaps[1], 4, rtol=0.02)


def test_adiabatic_law_is_better_the_slower_the_rate_falls():
    lam, off = spectra.power_law(250, 1.0), []
    for slowness in (0.25, 1, 4):  # η falls from 1 to 1/3, as 1/√(1 + α/slowness)
        alpha = np.linspace(0, 8 * slowness, 60)
        rates, durations = 1 / np.sqrt(1 + (alpha[:-1] + alpha[1:]) / 2 / slowness), np.diff(alpha)
        law = schedules.adiabatic_error(rates, durations, lam)
        off.append(abs(law[-1] / schedules.generalization_error(rates, durations, lam)[-1] - 1))
    assert off[0] > 1.5 * off[1] > 1.5**2 * off[2]


def test_order_matters():
    there, back = (schedules.generalization_error(order, [1.0, 1.0], LAM)[-1] for order in ([1.5, 0.2], [0.2, 1.5]))
    assert abs(there / back - 1) > 0.1


def test_finite_network_is_the_mean_of_simulated_descent():
    state = linear_descent.random_deviations(4000, 15, rng=1)
    exact = schedules.finite_size_error(RATES, DURATIONS, LAM, multiplicities=COUNTS)
    for stage, (rate, duration) in enumerate(zip(RATES, DURATIONS)):
        runs = linear_descent.simulate(state, np.repeat(LAM, 3), rate, [duration], rng=stage)
        state, error = runs.deviation, runs.generalization_error[:, 0]
        sigma = error.std() / np.sqrt(4000)
        assert abs(error.mean() - exact[stage]) < 4 * sigma < 0.12 * exact[stage]


def test_what_is_refused_beyond_single_arguments():
    with pytest.raises(ValueError, match=r"^durations must have one axis of length 2, got"):
        schedules.generalization_error([0.1, 0.2], [1.0], [1.0])
    for function, counts in ((schedules.generalization_error, None), (schedules.finite_size_error, [2])):
        with pytest.raises(ValueError, match=r"^rates must keep the result inside"):
            function([0.1, 50.0], [1.0, 1e4], [1.0], multiplicities=counts)
    with pytest.raises(ValueError, match=r"^rates must keep the matrix of a step inside"):
        schedules.finite_size_error([1e200], [1.0], [1.0])
    with pytest.raises(ValueError, match=r"^rates must have entries >= 0 and < 2"):
        schedules.adiabatic_error([0.1, 2.0], [1.0, 1.0], [1.0])


# --- bad input: every public function, every argument

GOOD = {
    "rates": [0.5, 0.1],
    "durations": [1.0, 2.0],
    "eigenvalues": [1.5, 0.5],
    "multiplicities": [1, 1],
    "student_variance": 0.0,
}
CALLS = dict.fromkeys((schedules.generalization_error, schedules.finite_size_error, schedules.adiabatic_error), GOOD)
BAD = {
    "rates": [[], [0.5], [0.5, -0.1], [0.5, np.nan], [[0.5, 0.1]], 0.5, "a", None],
    "durations": [[], [1.0], [1.0, -1.0], [1.0, np.inf], [[1.0, 2.0]], 1.0, "a", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None, [1.5, 0.6]],
    "multiplicities": [[1], [1, 0], [1, np.nan], "a"],
    "student_variance": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
}
CASES = cases(CALLS, BAD)


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    assert function(**CALLS[function]).shape == (2,)


@settings(deadline=None, max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    named = {"eigenvalues": "eigenvalues|multiplicities", "rates": "rates|durations"}.get(case[1])
    refused(CALLS[case[0]], *case, named=named)

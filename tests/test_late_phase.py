"""lib.late_phase against the full equations: trajectories, the numerical Jacobian, expansions, and the isotropic thresholds."""

import numpy as np
import pytest
from bad_input import MATRIX, NUMBER, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from lib import committee, late_phase, spectra, stability, structured


def near(levels, units, size, seed, dimensions=20):
    """Students at a small random distance from orthonormal teachers, with their E^k; r² is of order y / dimensions."""
    lam = spectra.power_law(levels, 0.75)
    rng = np.random.default_rng(seed)
    t = np.repeat(np.eye(units)[None], levels, axis=0) / levels
    delta = size * rng.standard_normal((levels, units, dimensions))  # Δ in an orthonormal frame whose first vectors are the teachers
    along = delta[:, :, :units] / np.sqrt(levels)
    r = t + along / np.sqrt(levels)
    e = delta @ np.swapaxes(delta, 1, 2) / levels
    q = e + r + np.swapaxes(r, 1, 2) - t
    y = np.trace(e, axis1=1, axis2=2) / units
    z = (e.sum(axis=(1, 2)) - units * y) / max(units * (units - 1), 1)
    return lam, q, r, t, y, z


@pytest.mark.parametrize("levels, units", [(9, 2), (6, 3), (5, 1)])
def test_closed_form_is_the_late_trajectory(levels, units):
    lam, q, r, t, y, z = near(levels, units, 1e-5, seed=levels, dimensions=20_000)
    times = np.array([0.0, 20.0, 100.0])
    shape = q.shape

    def velocity(_, state):  # without the checks of structured.derivative: a trial step may leave the set of covariances
        student, cross = state.reshape(2, *shape)
        a, g, _ = structured._coefficients(student, cross, np.eye(units), lam, False)
        half, slow = a @ np.swapaxes(cross, 1, 2) - g @ student, (0.3 * lam / units)[:, None, None]
        return np.stack([slow * (half + np.swapaxes(half, 1, 2)), slow * (a @ t - g @ cross)]).ravel()

    states = solve_ivp(velocity, (0, 100), np.stack([q, r]).ravel(), method="DOP853", t_eval=times, rtol=1e-12, atol=1e-15).y.T
    student, cross = (np.stack([structured.fields(part, lam) for part in states.reshape(3, 2, *shape)[:, i]]) for i in (0, 1))
    quadratic = [late_phase.quadratic_error(*part, np.eye(units)) for part in zip(student, cross)]
    np.testing.assert_allclose(quadratic, committee.generalization_error(student, cross, np.eye(units)), rtol=1e-3)
    np.testing.assert_allclose(quadratic, late_phase.generalization_error(times, y, z, lam, units, 0.3), rtol=1e-3)


@pytest.mark.parametrize("units, rate", [(1, 0.5), (2, 2.0), (3, 1.0), (5, 4.0)])
def test_rates_are_eigenvalues_of_the_full_jacobian(units, rate):
    lam, levels = np.array([1.6, 0.4]), 2
    t = np.repeat(np.eye(units)[None], levels, axis=0) / levels
    upper, step = np.triu_indices(units), 1e-5
    size = levels * len(upper[0])

    def velocity(state):
        student = np.zeros_like(t)
        for k in range(levels):
            student[k][upper] = state[:size].reshape(levels, -1)[k]
        student = student + np.swapaxes(np.triu(student, 1), 1, 2)
        cross = state[size:].reshape(t.shape)
        a, g, e = structured._coefficients(student, cross, np.eye(units), lam, True)
        half = a @ np.swapaxes(cross, 1, 2) - g @ student
        slow = (rate * lam / units)[:, None, None]
        dq = slow * (half + np.swapaxes(half, 1, 2)) + rate**2 / units * (lam / levels)[:, None, None] * e
        return np.concatenate([*(block[upper] for block in dq), (slow * (a @ t - g @ cross)).ravel()])

    state = np.concatenate([*(block[upper] for block in t), t.ravel()])
    jacobian = np.stack([(velocity(state + step * e) - velocity(state - step * e)) / (2 * step) for e in np.eye(len(state))], axis=1)
    values = np.linalg.eigvals(jacobian)
    for predicted in late_phase.rates(lam, units, rate):
        assert np.abs(values - predicted).min() < 1e-7


@pytest.mark.parametrize("units", [1, 2, 3, 5])
def test_threshold_is_that_of_the_isotropic_theory_and_the_same_for_every_spectrum(units):
    edge = late_phase.critical_learning_rate(units)
    assert edge == pytest.approx(stability.critical_learning_rate(units), rel=1e-6)
    for lam in ([1.0], spectra.power_law(40, 1.0)):
        assert late_phase.rates(lam, units, 0.98 * edge)[-1] < 0 < late_phase.rates(lam, units, 1.02 * edge)[-1]


def test_threshold_rises_to_its_limit():
    edges = np.array([late_phase.critical_learning_rate(m) for m in (1, 2, 3, 5, 20, 100, 4000)])
    assert (np.diff(edges) > 0).all() and edges[-1] < np.sqrt(3) * np.pi
    assert edges[-1] == pytest.approx(np.sqrt(3) * np.pi, rel=2e-4)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), units=st.integers(1, 4))
def test_quadratic_error_misses_the_exact_one_in_third_order(seed, units):
    for size in (1e-2, 1e-3):
        _, q, r, t, *_ = near(1, units, size, seed)
        exact = committee.generalization_error(q[0], r[0], t[0])
        assert abs(late_phase.quadratic_error(q[0], r[0], t[0]) - exact) < 5 * size * exact


# --- bad input: every public function, every argument ----------------------------------------------------------------------

SMALL = {"eigenvalues": [1.5, 0.5], "units": 2, "learning_rate": 0.1}
EYE = [bad for bad in MATRIX if bad is None or np.shape(bad) not in ((3, 3), (2, 2)) or np.shape(bad) == (2, 2)]
CALLS = {
    late_phase.generalization_error: SMALL | {"alpha": [1.0], "diagonal": [0.1, 0.1], "off_diagonal": [0.0, 0.1]},
    late_phase.quadratic_error: {"student_overlap": np.eye(2), "cross_overlap": np.eye(2), "teacher_overlap": np.eye(2)},
    late_phase.rates: SMALL | {"multiplicities": [1, 1]},
    late_phase.critical_learning_rate: {"units": 2},
}
BAD = {
    "alpha": [[-1.0], [np.nan], [[1.0]], 1.0, "alpha", None],
    "diagonal": [[0.1], [0.1, np.nan], [[0.1, 0.1]], 0.1, "y", None],
    "off_diagonal": [[0.1], [0.1, np.nan], [[0.1, 0.1]], 0.1, "z", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2], [1, 2, 3]],
    "units": [0, -2, 2.0, "2", None, True],
    "learning_rate": NUMBER,
    "student_overlap": EYE,
    "cross_overlap": EYE,
    "teacher_overlap": [*EYE, 2 * np.eye(2)],
}
CASES = cases(CALLS, BAD)


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    function(**CALLS[function])


@settings(deadline=None, max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    refused(CALLS[case[0]], *case)

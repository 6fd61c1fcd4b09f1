"""lib.scaling.late_phase against the full equations: trajectories, Jacobian, expansions, thresholds at L = 1."""

import numpy as np
import pytest
from bad_input import MATRIX, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.foundations import stability
from lib.foundations.committee import Overlaps
from lib.scaling import late_phase, spectra, structured
from lib.scaling.site_symmetric import site_matrices


def near(levels, units, size, seed, dimensions=20):
    """Students at a small random distance from orthonormal teachers, with their E^k; r² is of order y / dimensions."""
    lam = spectra.power_law(levels, 0.75)
    rng = np.random.default_rng(seed)
    t = np.repeat(np.eye(units)[None], levels, axis=0) / levels
    delta = size * rng.standard_normal(
        (levels, units, dimensions)
    )  # Δ in an orthonormal frame whose first vectors are the teachers
    along = delta[:, :, :units] / np.sqrt(levels)
    r = t + along / np.sqrt(levels)
    e = delta @ np.swapaxes(delta, 1, 2) / levels
    q = e + r + np.swapaxes(r, 1, 2) - t
    y = np.trace(e, axis1=1, axis2=2) / units
    z = (e.sum(axis=(1, 2)) - units * y) / max(units * (units - 1), 1)
    return lam, q, r, t, y, z


@pytest.mark.parametrize("levels, units", [(9, 2), (6, 3), (5, 1)])
def test_closed_form_is_the_late_trajectory(levels, units):
    lam, q, r, t, y, z = near(levels, units, 1e-4, seed=levels, dimensions=20_000)
    times = np.array([0.0, 20.0, 100.0])
    path = structured.solve(times, q, r, t, lam, 0.3, second_order=False, tolerance=1e-7)
    quadratic = [
        late_phase.quadratic_error(*part, np.eye(units)) for part in zip(path.student_overlap, path.cross_overlap)
    ]
    np.testing.assert_allclose(quadratic, path.generalization_error, rtol=1e-3)
    np.testing.assert_allclose(quadratic, late_phase.generalization_error(times, y, z, lam, units, 0.3), rtol=1e-3)


@pytest.mark.parametrize("units, rate", [(1, 2.0), (2, 2.0), (3, 3.0)])
def test_noise_of_single_examples_is_that_of_the_full_equations(units, rate):
    counts = np.array([1, 2, 5])
    lam, share = np.array([4.0, 1.0, 0.4]), counts / 8
    times, t = np.array([0.0, 3.0, 12.0]), np.eye(units) * share[:, None, None]
    e = 1e-4 * site_matrices(np.outer(share, [1.0, 0.3]), units)  # outside the span: R^k = T^k
    path = structured.solve(times, t + e, t, t, lam, rate, multiplicities=counts, tolerance=1e-7)
    option = {"multiplicities": counts, "second_order": True}
    found = late_phase.generalization_error(times, *late_phase.deviations(t + e, t, t), lam, units, rate, **option)
    np.testing.assert_allclose(found, path.generalization_error, rtol=1e-3)
    assert (
        path.generalization_error[-1]
        > 1.1 * late_phase.generalization_error(times, 1e-4 * share, 3e-5 * share, lam, units, rate)[-1]
    )


def test_without_the_noise_the_two_forms_agree():
    lam = spectra.power_law(7, 1.0)
    y, z = np.random.default_rng(1).uniform(0.1, 1, size=(2, 7))
    times = np.array([0.0, 1.0, 10.0]) * 1e6  # in units of 1/η the noise vanishes with η
    closed, noisy = (
        late_phase.generalization_error(times, y, z, lam, 4, 1e-6, second_order=option) for option in (False, True)
    )
    np.testing.assert_allclose(noisy, closed, rtol=1e-5)


@settings(deadline=None, max_examples=20)
@given(units=st.integers(1, 6), levels=st.integers(1, 6), origin=st.floats(0, 100), seed=st.integers(0, 1000))
def test_groups_add_up_and_their_exponent_is_the_derivative(units, levels, origin, seed):
    lam, rng = spectra.power_law(levels, 1.0), np.random.default_rng(seed)
    y = rng.uniform(0.5, 1, levels)
    z = y * rng.uniform(-0.5 / max(units - 1, 1), 0.9, levels)
    times = np.array([0.5, 5.0, 40.0])
    part = late_phase.groups(times, y, z, lam, units, 0.4, origin=origin)
    np.testing.assert_allclose(
        part.fast + part.slow, late_phase.generalization_error(times, y, z, lam, units, 0.4), rtol=1e-12
    )
    below, above = (late_phase.generalization_error(times + step, y, z, lam, units, 0.4) for step in (-1e-4, 1e-4))
    np.testing.assert_allclose(part.local_exponent, (origin + times) * np.log(above / below) / 2e-4, rtol=1e-6)
    mean = (y + (units - 1) * z) / units  # students that all deviate alike have no slow part
    alone = late_phase.groups(times, mean, mean if units > 1 else 0 * mean, lam, units, 0.4)
    np.testing.assert_allclose(alone.fast, part.fast, rtol=1e-12)
    np.testing.assert_allclose(alone.slow, 0, atol=1e-15)


def test_an_error_that_underflows_is_refused():
    with pytest.raises(ValueError, match="^alpha must lie where the error is positive"):
        late_phase.groups([1e6], [0.1], [0.0], [1.0], 2, 1.0)


def test_deviations_are_those_of_the_weights():
    lam, q, r, t, y, z = near(4, 3, 0.1, seed=1)
    np.testing.assert_allclose(late_phase.deviations(q, r, t), [y, z], rtol=1e-10)


@pytest.mark.parametrize("units, rate", [(1, 0.5), (2, 2.0), (3, 1.0), (5, 4.0)])
def test_rates_are_eigenvalues_of_the_full_jacobian(units, rate):
    counts, lam = [1, 3], np.array([2.2, 0.6])
    t = site_matrices(np.outer([0.25, 0.75], [1, 0]), units)
    values = np.linalg.eigvals(structured.jacobian(t, t, t, lam, rate, multiplicities=counts))
    for predicted in late_phase.rates(lam, units, rate, multiplicities=counts):
        assert np.abs(values - predicted).min() < 1e-7


@pytest.mark.parametrize("units", [1, 2, 3, 5])
def test_threshold_is_that_of_the_isotropic_theory_and_the_same_for_every_spectrum(units):
    edge = late_phase.critical_learning_rate(units)
    assert edge == pytest.approx(stability.critical_learning_rate(units), rel=1e-12)
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
        exact = Overlaps(q[0], r[0], t[0]).generalization_error
        assert abs(late_phase.quadratic_error(q[0], r[0], t[0]) - exact) < 5 * size * exact


# --- bad input: every public function, every argument

SMALL = {"eigenvalues": [1.5, 0.5], "units": 2, "learning_rate": 0.1}
EYE = [bad for bad in MATRIX if bad is None or np.shape(bad) not in ((3, 3), (2, 2)) or np.shape(bad) == (2, 2)]
START = SMALL | {"alpha": [1.0], "diagonal": [0.1, 0.1], "off_diagonal": [0.0, 0.1]}
STATE = np.stack([np.eye(2), np.eye(2)])
CALLS = {
    late_phase.generalization_error: START | {"multiplicities": [1, 1], "second_order": True},
    late_phase.groups: START | {"origin": 0.0},
    late_phase.deviations: {"student_resolved": STATE, "cross_resolved": STATE, "teacher_resolved": STATE},
    late_phase.quadratic_error: {
        "student_overlap": np.eye(2),
        "cross_overlap": np.eye(2),
        "teacher_overlap": np.eye(2),
    },
    late_phase.rates: SMALL | {"multiplicities": [1, 1]},
    late_phase.critical_learning_rate: {"units": 2},
}
BAD = {
    "alpha": [[-1.0], [np.nan], [[1.0]], -1.0, np.nan, True, "alpha", None],
    "diagonal": [[0.1], [0.1, np.nan], [[0.1, 0.1]], 0.1, "y", None],
    "off_diagonal": [[0.1], [0.1, np.nan], [[0.1, 0.1]], 0.1, "z", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2], [1, 2, 3]],
    "units": [0, -2, 2.0, "2", None, True],
    "learning_rate": NUMBER,
    "second_order": [0, 1, "yes", None],
    "origin": [-1.0, np.nan, np.inf, "1", None, [0.1], True],
    **dict.fromkeys(
        ["student_resolved", "cross_resolved", "teacher_resolved"],
        [*MATRIX, np.ones((2, 2, 3)), np.full((2, 2, 2), np.nan)],
    ),
    "student_overlap": EYE,
    "cross_overlap": EYE,
    "teacher_overlap": [*EYE, 2 * np.eye(2)],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

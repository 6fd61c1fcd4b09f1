"""lib.scaling.plateau against the full equations: residual, Jacobian, and closed forms for alike teachers."""

import numpy as np
import pytest
from bad_input import MATRIX, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.foundations.committee import Overlaps
from lib.scaling import plateau, spectra, structured


def resolved(levels, teachers, seed, size=400):
    """A random teacher on a power-law spectrum, and the state of all students on its plateau."""
    lam = spectra.power_law(levels, 0.75)
    t = spectra.random_overlaps([size] * levels, 1, teachers, seed)[2]  # (L, M, M)
    point = plateau.fixed_point(structured.fields(t, lam))
    r = np.repeat((t @ point.weights)[:, None], teachers, axis=1)  # (L, M, M): R^k_in = Σ_m ρ_m T^k_mn
    q = np.broadcast_to((point.weights @ t @ point.weights)[:, None, None], t.shape)
    return lam, t, point, np.array(q), r


@pytest.mark.parametrize("levels, teachers", [(1, 2), (4, 3), (10, 4)])
def test_plateau_is_a_fixed_point_for_every_teacher(levels, teachers):
    lam, t, point, q, r = resolved(levels, teachers, 3)
    dq, dr = structured.derivative(q, r, t, lam, 0.5, second_order=False)
    assert max(np.abs(dq).max(), np.abs(dr).max()) < 1e-14
    np.testing.assert_allclose(structured.fields(r, lam)[0], point.cross_overlap, rtol=1e-13)
    seen = Overlaps(*(structured.fields(part, lam) for part in (q, r, t)))
    assert point.generalization_error == pytest.approx(seen.generalization_error, rel=1e-12)
    assert np.ptp(point.cross_overlap) > 0  # one height for each teacher


def alike(units, diagonal, off_diagonal):
    return np.full((units, units), off_diagonal / (units - 1)) + (diagonal - off_diagonal / (units - 1)) * np.eye(units)


@settings(max_examples=30)
@given(units=st.integers(2, 8), diagonal=st.floats(0.2, 3), share=st.floats(-0.8, 0.8))
def test_closed_forms_where_teachers_are_alike(units, diagonal, share):
    off = share * diagonal
    point = plateau.fixed_point(alike(units, diagonal, off))
    s, gap = diagonal + off, units * (1 + diagonal) - diagonal - off
    assert point.student_overlap == pytest.approx(s / gap, rel=1e-10)
    np.testing.assert_allclose(point.cross_overlap, s / np.sqrt(units * gap), rtol=1e-10)
    height = np.arcsin(diagonal / (1 + diagonal)) + (units - 1) * np.arcsin(off / ((units - 1) * (1 + diagonal)))
    assert point.generalization_error == pytest.approx(
        (height - units * np.arcsin(s / (units * (1 + diagonal)))) / np.pi, abs=1e-14
    )


@pytest.mark.parametrize("levels, teachers", [(2, 2), (2, 3)])
def test_escape_rates_are_the_positive_eigenvalues_of_the_full_jacobian(levels, teachers):
    lam, t, _, q, r = resolved(levels, teachers, 5)
    rate = 0.7
    values = np.sort(np.linalg.eigvals(structured.jacobian(q, r, t, lam, rate, second_order=False)).real)[::-1]
    predicted = plateau.escape_rates(structured.fields(t, lam), structured.fields(t, lam**2), rate)[: teachers - 1]
    assert (predicted > 0).all()
    np.testing.assert_allclose(values[: (teachers - 1) ** 2], np.repeat(predicted, teachers - 1), rtol=1e-6)
    assert values[(teachers - 1) ** 2] < 0.05 * predicted[-1]


@settings(max_examples=20)
@given(
    units=st.integers(2, 6), share=st.floats(-0.5, 0.5), second=st.floats(0.5, 20), second_share=st.floats(-0.5, 0.5)
)
def test_general_rates_are_the_symmetric_one_where_teachers_are_alike(units, share, second, second_share):
    one = plateau.symmetric_escape_rate(units, 1.2, 1.2 * share, second, second * second_share, 0.4)
    rates = plateau.escape_rates(alike(units, 1.2, 1.2 * share), alike(units, second, second * second_share), 0.4)
    np.testing.assert_allclose(rates[: units - 1], one, rtol=1e-8)


def test_escape_time_grows_as_the_square_of_the_number_of_units():
    for units in (10, 30, 100):
        ratio = 1 / plateau.symmetric_escape_rate(units, 1.0, 0.0, 1.0, 0.0, 1.0) / (2 * np.pi * units**2)
        assert ratio == pytest.approx(1 + 1 / (2 * units), rel=0.01)


def test_excess_error_grows_at_twice_the_rate_of_the_overlaps():
    units, t = 3, np.eye(3)
    lam, second = np.array([1.5, 0.5]), 1.25
    point = plateau.fixed_point(t)
    r = np.repeat(np.full((1, units, units), point.cross_overlap[0] / 2), 2, axis=0)
    q = np.full((2, units, units), point.student_overlap / 2)
    kick = np.eye(units) - (1 - np.eye(units)) / (units - 1)
    rate = plateau.symmetric_escape_rate(units, 1.0, 0.0, second, 0.0, 0.5)
    times = np.array([2.0, 3.0]) / rate
    apart = 1e-5 * kick * lam[:, None, None] / 2  # (2, M, M)
    path = structured.solve(
        times,
        q + 2 * apart @ np.swapaxes(apart, 1, 2),  # what students in the span of the teachers then have
        r + apart,
        np.stack([t / 2, t / 2]),
        lam,
        0.5,
        second_order=False,
        tolerance=1e-8,
    )
    spread = path.cross_overlap[:, 0, 0] - path.cross_overlap[:, 0, 1]
    assert np.log(spread[1] / spread[0]) == pytest.approx(1, rel=1e-3)
    excess = point.generalization_error - path.generalization_error
    assert np.log(excess[1] / excess[0]) == pytest.approx(2, rel=2e-3)


# --- bad input: every public function, every argument

SYMMETRIC = {
    "units": 3,
    "diagonal": 1.0,
    "off_diagonal": 0.1,
    "second_diagonal": 2.0,
    "second_off_diagonal": 0.1,
    "learning_rate": 0.1,
}
CALLS = {
    plateau.fixed_point: {"teacher_overlap": np.eye(2)},
    plateau.escape_rates: {"teacher_overlap": np.eye(2), "second_overlap": 2 * np.eye(2), "learning_rate": 0.1},
    plateau.symmetric_escape_rate: SYMMETRIC,
}
TEACHER = [bad for bad in MATRIX if bad is None or np.shape(bad) != (3, 3)] + [
    -np.eye(2),
    np.ones((2, 2)),
    np.eye(1),
    [[1.0, 0.5], [0.1, 1.0]],
]
BAD = {
    "teacher_overlap": TEACHER,
    "second_overlap": TEACHER,
    "learning_rate": NUMBER,
    "units": [0, 1, -2, 2.0, "2", None, True],
    "diagonal": NUMBER,
    "off_diagonal": [-1.0, 2.0, np.nan, np.inf, "1", None, [0.1], True],
    "second_diagonal": NUMBER,
    "second_off_diagonal": [-2.0, 4.0, np.nan, np.inf, "1", None, [0.1], True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    CALLS, BAD, {"diagonal": "off_diagonal|diagonal", "second_diagonal": "second_off_diagonal|second_diagonal"}
)

"""lib.scaling.plateau against the full equations: residual, Jacobian, and closed forms for alike teachers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law

from lib.foundations import committee, stability
from lib.scaling import plateau, structured
from lib.scaling.plateau import Plateau
from lib.scaling.structured import ResolvedOverlaps


def on_plateau(levels, teachers, seed, size=400):
    """A power-law spectrum, the plateau of a random teacher on it, and the state of all students there."""
    lam = power_law(levels, 0.75)
    t = structured.random_overlaps([size] * levels, 1, teachers, seed).teacher  # (L, M, M)
    point = Plateau(structured.fields(t, lam))
    r = np.repeat((t @ point.weights)[:, None], teachers, axis=1)  # (L, M, M): R^k_in = Σ_m ρ_m T^k_mn
    q = np.broadcast_to((point.weights @ t @ point.weights)[:, None, None], t.shape)
    return lam, point, ResolvedOverlaps(q, r, t)


@pytest.mark.parametrize("levels, teachers", [(1, 2), (4, 3), (10, 4)])
def test_plateau_is_a_fixed_point_for_every_teacher(levels, teachers):
    lam, point, state = on_plateau(levels, teachers, 3)
    assert max(np.abs(part).max() for part in state.derivative(lam, 0.5, second_order=False)) < 1e-14
    fields = [structured.fields(part, lam) for part in state]
    np.testing.assert_allclose(fields[1][0], point.cross_overlap, rtol=1e-13)
    assert point.generalization_error == pytest.approx(float(committee.generalization_error(*fields)), rel=1e-12)
    assert np.ptp(point.cross_overlap) > 0  # one height for each teacher


def alike(units, diagonal, off_diagonal):
    return np.full((units, units), off_diagonal / (units - 1)) + (diagonal - off_diagonal / (units - 1)) * np.eye(units)


@settings(max_examples=30)
@given(units=st.integers(2, 8), diagonal=st.floats(0.2, 3), share=st.floats(-0.8, 0.8))
def test_closed_forms_where_teachers_are_alike(units, diagonal, share):
    off = share * diagonal
    point = Plateau(alike(units, diagonal, off))
    s, gap = diagonal + off, units * (1 + diagonal) - diagonal - off
    assert point.student_overlap == pytest.approx(s / gap, rel=1e-10)
    np.testing.assert_allclose(point.cross_overlap, s / np.sqrt(units * gap), rtol=1e-10)
    height = np.arcsin(diagonal / (1 + diagonal)) + (units - 1) * np.arcsin(off / ((units - 1) * (1 + diagonal)))
    height = (height - units * np.arcsin(s / (units * (1 + diagonal)))) / np.pi
    assert point.generalization_error == pytest.approx(height, abs=1e-14)


@pytest.mark.parametrize("units", [2, 3, 6])
def test_orthonormal_teachers_are_the_isotropic_case(units):
    point, known = Plateau(np.eye(units)), stability.plateau(units)
    assert point.generalization_error == pytest.approx(known.generalization_error, rel=1e-10)
    assert point.student_overlap == pytest.approx(known.student_overlap, rel=1e-12)
    np.testing.assert_allclose(point.cross_overlap, known.cross_overlap, rtol=1e-12)
    rates = point.escape_rates(np.eye(units), 0.3)
    np.testing.assert_allclose(rates[: units - 1], stability.escape_rate(units, 0.3), rtol=1e-7)


@pytest.mark.parametrize("levels, teachers", [(2, 2), (2, 3)])
def test_escape_rates_are_the_positive_eigenvalues_of_the_full_jacobian(levels, teachers):
    lam, point, state = on_plateau(levels, teachers, 5)
    values = np.sort(np.linalg.eigvals(state.jacobian(lam, 0.7, second_order=False)).real)[::-1]
    predicted = point.escape_rates(structured.fields(state.teacher, lam**2), 0.7)[: teachers - 1]
    assert (predicted > 0).all()
    np.testing.assert_allclose(values[: (teachers - 1) ** 2], np.repeat(predicted, teachers - 1), rtol=1e-6)
    assert values[(teachers - 1) ** 2] < 0.05 * predicted[-1]
    assert (np.abs(values) < 1e-8).any()  # what no teacher sees rests


@settings(max_examples=20)
@given(
    units=st.integers(2, 6), share=st.floats(-0.5, 0.5), second=st.floats(0.5, 20), second_share=st.floats(-0.5, 0.5)
)
def test_general_rates_are_the_symmetric_one_where_teachers_are_alike(units, share, second, second_share):
    one = plateau.symmetric_escape_rate(units, 1.2, 1.2 * share, second, second * second_share, 0.4)
    rates = Plateau(alike(units, 1.2, 1.2 * share)).escape_rates(alike(units, second, second * second_share), 0.4)
    np.testing.assert_allclose(rates[: units - 1], one, rtol=1e-8)


def test_escape_time_grows_as_the_square_of_the_number_of_units():
    for units in (10, 30, 100):
        ratio = 1 / plateau.symmetric_escape_rate(units, 1.0, 0.0, 1.0, 0.0, 1.0) / (2 * np.pi * units**2)
        assert ratio == pytest.approx(1 + 1 / (2 * units), rel=0.01)


def test_excess_error_grows_at_twice_the_rate_of_the_overlaps():
    units, lam, t = 3, np.array([1.5, 0.5]), np.stack([np.eye(3) / 2] * 2)
    point, kick = Plateau(np.eye(3)), np.eye(units) - (1 - np.eye(units)) / (units - 1)
    rate = plateau.symmetric_escape_rate(units, 1.0, 0.0, 1.25, 0.0, 0.5)
    apart = 1e-5 * kick * lam[:, None, None] / 2  # (2, M, M)
    # 2 apart apartᵀ: what students in the span of the teachers then have
    q = point.student_overlap / 2 + 2 * apart @ apart.mT
    begin = ResolvedOverlaps(q, point.cross_overlap[0] / 2 + apart, t)
    path = begin.solve(np.array([2.0, 3.0]) / rate, lam, 0.5, second_order=False, tolerance=1e-8)
    spread = path.cross_overlap[:, 0, 0] - path.cross_overlap[:, 0, 1]
    assert np.log(spread[1] / spread[0]) == pytest.approx(1, rel=1e-3)
    excess = point.generalization_error - path.generalization_error
    assert np.log(excess[1] / excess[0]) == pytest.approx(2, rel=2e-3)


def test_what_does_not_fit_together_is_refused():
    for t in (np.ones((2, 2)), np.eye(1), -np.eye(2)):
        with pytest.raises(ValueError, match="^teacher_overlap must "):
            Plateau(t)
    with pytest.raises(ValueError, match="^second_overlap must have shape"):
        Plateau(np.eye(2)).escape_rates(np.eye(3), 0.1)
    for place, name in ((2, "off_diagonal"), (4, "second_off_diagonal")):
        for value in (-2.0, 4.0):
            given = [3, 1.0, 0.1, 1.0, 0.1, 0.1]
            given[place] = value
            with pytest.raises(ValueError, match=f"^{name} must "):
                plateau.symmetric_escape_rate(*given)

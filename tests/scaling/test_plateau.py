"""Plateaus of structured inputs against the full equations: residual, Jacobian, growth; and curves that wait or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law

from lib.foundations.stability import Plateau
from lib.scaling import plateau, structured
from lib.scaling.structured import ResolvedOverlaps


def on_plateau(lam, t):
    """The state of all students there."""
    rho = Plateau(structured.fields(t, lam)).weights
    r = np.repeat((t @ rho)[:, None], len(rho), axis=1)  # (L, M, M): R^k_in = Σ_m ρ_m T^k_mn
    return ResolvedOverlaps(np.broadcast_to((rho @ t @ rho)[:, None, None], t.shape), r, t)


def random_teacher(levels, teachers, seed):
    return power_law(levels, 0.75), structured.random_overlaps([400] * levels, 1, teachers, seed).teacher


@pytest.mark.parametrize("levels, teachers", [(1, 2), (4, 3), (10, 4)])
def test_plateau_is_a_fixed_point_for_every_teacher(levels, teachers):
    lam, t = random_teacher(levels, teachers, 3)
    moves = on_plateau(lam, t).derivative(lam, 0.5, second_order=False)
    assert max(np.abs(part).max() for part in moves) < 1e-14


@pytest.mark.parametrize("levels, teachers", [(2, 2), (2, 3)])
def test_escape_rates_are_the_positive_eigenvalues_of_the_full_jacobian(levels, teachers):
    lam, t = random_teacher(levels, teachers, 5)
    values = np.linalg.eigvals(on_plateau(lam, t).jacobian(lam, 0.7, second_order=False)).real
    values = np.sort(values)[::-1]
    first, second = (structured.fields(t, lam**order) for order in (1, 2))
    predicted = Plateau(first).escape_rates(0.7, second_overlap=second)[: teachers - 1]
    assert (predicted > 0).all()
    np.testing.assert_allclose(values[: (teachers - 1) ** 2], np.repeat(predicted, teachers - 1), rtol=1e-6)
    assert values[(teachers - 1) ** 2] < 0.05 * predicted[-1]
    assert (np.abs(values) < 1e-8).any()  # what no teacher sees rests


def alike(units, diagonal, off_diagonal):
    return np.full((units, units), off_diagonal / (units - 1)) + (diagonal - off_diagonal / (units - 1)) * np.eye(units)


@settings(max_examples=20)
@given(
    units=st.integers(2, 6), share=st.floats(-0.5, 0.5), second=st.floats(0.5, 20), second_share=st.floats(-0.5, 0.5)
)
def test_rates_are_the_closed_form_where_teachers_are_alike(units, share, second, second_share):
    """worschech2024 eqs. (15), (114) to (116):  1/τ_r = η g_r (T₂ - D₂/(M-1))."""
    t, d, t2, d2 = 1.2, 1.2 * share, second, second * second_share
    strength = 2 * (t + d) / (np.pi * np.sqrt((units - 1) * t - d + units) * (d + (units + 1) * t + units) ** 1.5)
    rates = Plateau(alike(units, t, d)).escape_rates(0.4, second_overlap=alike(units, t2, d2))
    np.testing.assert_allclose(rates[: units - 1], 0.4 * strength * (t2 - d2 / (units - 1)), rtol=1e-8)


def test_excess_error_grows_at_twice_the_rate_of_the_overlaps():
    units, lam, t = 3, np.array([1.5, 0.5]), np.stack([np.eye(3) / 2] * 2)
    rest, kick = on_plateau(lam, t), np.eye(units) - (1 - np.eye(units)) / (units - 1)
    saddle = Plateau(np.eye(3))
    rate = saddle.escape_rates(0.5, second_overlap=1.25 * np.eye(3))[0]
    apart = 1e-5 * kick * lam[:, None, None] / 2  # (2, M, M)
    # 2 apart apartᵀ: what students in the span of the teachers then have
    begin = ResolvedOverlaps(rest.student + 2 * apart @ apart.mT, rest.cross + apart, t)
    path = begin.solve(np.array([2.0, 3.0]) / rate, lam, 0.5, second_order=False, tolerance=1e-8)
    spread = path.cross_overlap[:, 0, 0] - path.cross_overlap[:, 0, 1]
    assert np.log(spread[1] / spread[0]) == pytest.approx(1, rel=1e-3)
    excess = saddle.generalization_error - path.generalization_error
    assert np.log(excess[1] / excess[0]) == pytest.approx(2, rel=2e-3)


# --- a curve that waits, and others --------------------------------------------------------------


@settings(max_examples=20)
@given(st.floats(0.05, 5), st.floats(20, 500), st.floats(1e-3, 0.3), st.floats(1e-3, 1e3))
def test_a_wait_is_found_where_both_rates_put_it_in_any_unit(onset, escape, level, unit):
    """ε = e^{-t/τ₁} + c(1 + e^{(t-τ₂)·20/τ₂})⁻¹: within 10 % of c from τ₁ ln(10/c) at the latest to about 0.9 τ₂."""
    t = np.geomspace(1e-3 * onset, 3 * escape, 400)
    curve = np.exp(-t / onset) + level / (1 + np.exp((t - escape) * 20 / escape))
    arrived = onset * np.log(10 / level)
    if arrived > 0.2 * escape:
        return
    found = plateau.rest(unit * t, curve, tolerance=0.1)
    assert found.error == pytest.approx(level, rel=0.1)
    assert found.start < 1.1 * unit * arrived and 0.7 * escape < found.end / unit < 0.95 * escape


@pytest.mark.parametrize("curve", [lambda t: 1 / (1 + t), lambda t: np.exp(-t), lambda t: 0.1 + np.exp(-t),
                                   lambda t: t**-0.1, lambda t: np.full(t.shape, 0.3)])  # fmt: skip
def test_a_decay_a_power_law_and_a_floor_are_no_plateaus(curve):
    t = np.geomspace(1e-2, 30, 300)
    with pytest.raises(ValueError, match="^errors must wait on a plateau.*whole curve with ResolvedOverlaps"):
        plateau.rest(t, curve(t))


def test_a_committee_waits_at_its_plateau_if_its_units_begin_alike_and_not_else():
    lam, t = np.array([1.0]), np.eye(2)[None]
    times = np.geomspace(0.1, 3000, 200)
    for apart, waits in ((1e-6, True), (0.3, False)):
        r = 0.05 + apart * np.array([[1.0, -1.0], [-1.0, 1.0]])
        begin = ResolvedOverlaps((0.1 * np.eye(2) + r @ r.T)[None], r[None], t)
        path = begin.solve(times, lam, 0.5, second_order=False)
        if waits:
            found = plateau.rest(times, path.generalization_error)
            assert found.error == pytest.approx(Plateau(t[0]).generalization_error, rel=0.1)
            rate = Plateau(t[0]).escape_rates(0.5)[0]
            assert 0.4 < found.end * rate / np.log(1 / apart) < 1.5
        else:
            with pytest.raises(ValueError, match="^errors must wait"):
                plateau.rest(times, path.generalization_error)

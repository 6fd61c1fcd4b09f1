"""ising against Kaufman's eigenvalues, enumeration, finite differences, and the exact critical point."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from lib.fields.renormalization import ising


def kaufman(coupling, width):
    """1/ξ_L and ln λ_even/L in closed form: sums of γ(q) over odd and even q L/π, cosh γ = cosh 2K coth 2K - cos q."""

    def gamma(parity):
        q = np.pi * (2 * np.arange(width) + parity) / width  # (L,)
        energy = np.arccosh(np.maximum(np.cosh(2 * coupling) / np.tanh(2 * coupling) - np.cos(q), 1))  # (L,)
        if parity == 0:
            energy[0] = 2 * coupling + np.log(np.tanh(coupling))  # 2(K - K*), negative above T_c
        return energy.sum() / 2

    return gamma(1) - gamma(0), np.log(2 * np.sinh(2 * coupling)) / 2 + gamma(1) / width


@settings(deadline=None, max_examples=30)
@given(coupling=st.floats(0.05, 0.6), width=st.integers(2, 7))
def test_strips_have_the_eigenvalues_in_closed_form(coupling, width):
    found = ising.strip(coupling, width)
    inverse, free_energy = kaufman(coupling, width)
    np.testing.assert_allclose(1 / found.length, inverse, rtol=1e-9, atol=1e-12)
    assert found.free_energy == pytest.approx(free_energy, rel=1e-12)


@settings(deadline=None, max_examples=20)
@given(coupling=st.floats(0.1, 0.55), width=st.integers(2, 6))
def test_the_slope_is_the_derivative(coupling, width):
    step = 1e-5
    ends = ising.strip([coupling - step, coupling + step], width).length
    assert ising.strip(coupling, width).slope == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-6)


def transfer(coupling, width):
    """Rows of spins (2^L, L), bonds within each (2^L,), and the transfer matrix written out."""
    rows = np.array(list(product([1, -1], repeat=width)))  # (2^L, L)
    within = (rows * np.roll(rows, 1, axis=1)).sum(axis=1)  # (2^L,)
    return rows, within, np.exp(coupling * (rows @ rows.T + (within[:, None] + within) / 2))


def test_a_long_torus_has_the_partition_function_of_all_its_states():
    """Width 3 around, length 4 along: Z = Σ e^{-E} enumerated, against longer and longer tori."""
    coupling, width, length, enumerated = 0.3, 3, 60, 0.0
    rows, within, matrix = transfer(coupling, width)
    for states in product(range(8), repeat=4):
        along = sum(rows[a] @ rows[b] for a, b in zip(states, states[1:] + states[:1]))
        enumerated += np.exp(coupling * (along + sum(within[a] for a in states)))
    assert np.trace(np.linalg.matrix_power(matrix, 4)) == pytest.approx(enumerated, rel=1e-12)
    spectrum, found = np.linalg.eigvalsh(matrix), ising.strip(coupling, width)
    assert np.log((spectrum**length).sum()) / length / width == pytest.approx(found.free_energy, rel=1e-10)
    assert 1 / np.log(spectrum[-1] / spectrum[-2]) == pytest.approx(found.length, rel=1e-10)


def test_correlations_across_many_rows_decay_with_the_length():
    """⟨s_1 s'_1⟩ at distance r on a strip of width 4 without boundary: ratio of neighboring r is e^{-1/ξ}."""
    rows, _, matrix = transfer(0.4, 4)
    values, vectors = np.linalg.eigh(matrix)
    ground = vectors[:, -1] * rows[:, 0]  # (16,)
    correlation = [ground @ np.linalg.matrix_power(matrix / values[-1], r) @ ground for r in (40, 41)]
    assert -1 / np.log(correlation[1] / correlation[0]) == pytest.approx(ising.strip(0.4, 4).length, rel=1e-6)


def test_at_the_critical_point_the_length_is_a_fixed_part_of_the_width():
    widths = np.array([4, 6, 8, 10])
    ratios = np.array([ising.strip(ising.CRITICAL_COUPLING, int(w)).length / w for w in widths])
    assert (np.diff(ratios) > 0).all() and (ratios < ising.STRIP_LIMIT).all()
    assert ratios[2] == pytest.approx(ising.STRIP_LIMIT, rel=0.01)
    # the leading irrelevant operator: L^-2
    slopes = np.diff(np.log(ising.STRIP_LIMIT - ratios)) / np.diff(np.log(widths))
    assert (np.diff(slopes) > 0).all() and slopes[-1] == pytest.approx(-2, abs=0.1)


def test_constants_are_those_of_the_square_lattice():
    assert np.sinh(2 * ising.CRITICAL_COUPLING) == pytest.approx(1, rel=1e-12)  # self-dual
    assert pytest.approx(2 / np.log(1 + np.sqrt(2)), rel=1e-12) == ising.CRITICAL_TEMPERATURE


def test_free_energy_is_that_of_onsager_at_the_critical_point():
    """ln 2/2 + 2G/π, reached as πc/6L² with central charge 1/2."""
    catalan = quad(lambda x: np.arctan(x) / x, 0, 1)[0]
    infinite = np.log(2) / 2 + 2 * catalan / np.pi
    energies = [ising.strip(ising.CRITICAL_COUPLING, w).free_energy for w in (6, 10)]
    charges = (np.array(energies) - infinite) * 6 * np.array([6, 10]) ** 2 / np.pi
    assert abs(charges[1] - 0.5) < abs(charges[0] - 0.5) < 0.02
    assert charges[1] == pytest.approx(0.5, abs=0.005)


def test_crossings_approach_the_critical_point_and_nu_one():
    found = [ising.crossing(width, width - 2) for width in (6, 8, 10)]
    distance = [ising.CRITICAL_COUPLING - one.coupling for one in found]
    assert distance[0] > distance[1] > distance[2] > 0 and distance[2] < 1e-3
    exponents = [one.correlation_exponent for one in found]
    assert exponents == sorted(exponents) and exponents[-1] == pytest.approx(1, abs=0.01)
    one = found[0]
    for width in (6, 4):
        assert ising.strip(one.coupling, width).length / width == pytest.approx(one.ratio, rel=1e-8)
    swapped = ising.crossing(4, 6)
    assert swapped.coupling == pytest.approx(one.coupling, rel=1e-9)
    assert swapped.correlation_exponent == pytest.approx(one.correlation_exponent, rel=1e-9)


def flow(r, u, epsilon):
    return np.stack([2 * r + 12 * u / (1 + r), epsilon * u - 36 * (u / (1 + r)) ** 2])


@settings(deadline=None, max_examples=40)
@given(epsilon=st.floats(0.01, 3))
def test_the_fixed_point_is_one_and_its_eigenvalue_that_of_the_flow(epsilon):
    found = ising.phi4_fixed_point(epsilon)
    np.testing.assert_allclose(flow(found.mass, found.quartic, epsilon), 0, atol=1e-15)
    place, steps = np.array([found.mass, found.quartic]), 1e-6 * np.eye(2)
    columns = [flow(*(place + step), epsilon) - flow(*(place - step), epsilon) for step in steps]
    values = np.linalg.eigvals(np.stack(columns, axis=1) / 2e-6).real
    assert found.thermal_exponent == pytest.approx(values.max(), rel=1e-6)
    assert values.min() < 0 < values.max()  # one relevant direction


def test_first_order_in_epsilon():
    """y_t = 2 - ε/3, ν = 1/2 + ε/12, r* = -ε/6, u* = ε/36 up to ε²."""
    for epsilon, tolerance in ((1e-2, 1e-4), (1e-3, 1e-6)):
        found = ising.phi4_fixed_point(epsilon)
        assert found.thermal_exponent == pytest.approx(2 - epsilon / 3, abs=tolerance)
        assert 1 / found.thermal_exponent == pytest.approx(0.5 + epsilon / 12, abs=tolerance)
        assert (found.mass, found.quartic) == pytest.approx((-epsilon / 6, epsilon / 36), abs=tolerance)


def test_wide_strips_too_have_the_eigenvalues_in_closed_form_and_the_digits_of_a_dense_solver():
    for coupling in (0.1, ising.CRITICAL_COUPLING, 0.6):
        inverse, free_energy = kaufman(coupling, 9)
        found = ising.strip(coupling, 9)
        assert 1 / found.length == pytest.approx(inverse, rel=1e-9, abs=1e-12)
        assert found.free_energy == pytest.approx(free_energy, rel=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ising.strip(1.0, 12), "couplings must be smaller for width 12"),
        (lambda: ising.strip(0.4, 13), "width must be at most 12"),
        (lambda: ising.crossing(4, 4), "other must differ from width"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

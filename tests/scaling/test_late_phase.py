"""lib.scaling.late_phase against the full equations: trajectories, Jacobian, expansions, and the theory at L = 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law
from scipy.linalg import expm

from lib.common.spectrum import Spectrum
from lib.foundations import stability
from lib.foundations.committee import Overlaps
from lib.scaling import structured
from lib.scaling.late_phase import LatePhase
from lib.scaling.site_symmetric import site_matrices, site_means
from lib.scaling.structured import ResolvedOverlaps

PAIR = Spectrum([2.2, 0.6], [1, 3])
SHARE = PAIR.shares


def near(levels, units, size, seed, dimensions=20):
    """Students at a small random distance from orthonormal teachers, with y, z; r² is of order y / dimensions."""
    rng = np.random.default_rng(seed)
    t = np.repeat(np.eye(units)[None], levels, axis=0) / levels
    # Δ in an orthonormal frame whose first vectors are the teachers
    delta = size * rng.standard_normal((levels, units, dimensions))
    r, e = t + delta[:, :, :units] / levels, delta @ delta.mT / levels
    y = np.trace(e, axis1=1, axis2=2) / units
    z = (e.sum(axis=(1, 2)) - units * y) / max(units * (units - 1), 1)
    return power_law(levels, 0.75), ResolvedOverlaps(e + r + r.mT - t, r, t), y, z


# --- outside the teachers' span


@pytest.mark.parametrize("levels, units", [(9, 2), (6, 3), (5, 1)])
def test_closed_form_is_the_late_trajectory(levels, units):
    lam, begin, y, z = near(levels, units, 1e-4, seed=levels, dimensions=20_000)
    times = np.array([0.0, 20.0, 100.0])
    path = begin.solve(times, lam, 0.3, second_order=False, tolerance=1e-7)
    found = LatePhase(lam, units, 0.3).generalization_error(times, y, z)
    np.testing.assert_allclose(found, path.generalization_error, rtol=1e-3)


@pytest.mark.parametrize("units, rate", [(1, 2.0), (2, 2.0), (3, 3.0)])
def test_noise_of_single_examples_is_that_of_the_full_equations(units, rate):
    spectrum, times = Spectrum([4.0, 1.0, 0.4], [1, 2, 5]), np.array([0.0, 3.0, 12.0])
    t = np.eye(units) * spectrum.shares[:, None, None]
    e = 1e-4 * site_matrices(np.outer(spectrum.shares, [1.0, 0.3]), units)  # outside the span: R^k = T^k
    begin, phase = ResolvedOverlaps(t + e, t, t), LatePhase(spectrum, units, rate)
    error = begin.solve(times, spectrum, rate, tolerance=1e-7).generalization_error
    y_z = site_means(e).T
    np.testing.assert_allclose(phase.generalization_error(times, *y_z, second_order=True), error, rtol=1e-3)
    assert error[-1] > 1.1 * phase.generalization_error(times, *y_z)[-1]


@settings(deadline=None, max_examples=20)
@given(units=st.integers(1, 6), levels=st.integers(1, 6), seed=st.integers(0, 1000))
def test_groups_add_up_and_their_exponent_is_the_derivative(units, levels, seed):
    phase, rng = LatePhase(power_law(levels, 1.0), units, 0.4), np.random.default_rng(seed)
    y = rng.uniform(0.5, 1, levels)
    z = y * rng.uniform(-0.5 / max(units - 1, 1), 0.9, levels)
    times = np.array([0.5, 5.0, 40.0])
    part = phase.groups(times, y, z)
    np.testing.assert_allclose(part.fast + part.slow, phase.generalization_error(times, y, z), rtol=1e-12)
    below, above = (phase.generalization_error(times + step, y, z) for step in (-1e-4, 1e-4))
    np.testing.assert_allclose(part.local_exponent, times * np.log(above / below) / 2e-4, rtol=1e-6)
    mean = (y + (units - 1) * z) / units  # students that all deviate alike have no slow part
    alone = phase.groups(times, mean, mean if units > 1 else 0 * mean)
    np.testing.assert_allclose(alone.fast, part.fast, rtol=1e-12)
    np.testing.assert_allclose(alone.slow, 0, atol=1e-15)


def test_groups_run_on_the_clocks_of_sum_and_difference():
    """Nothing learned: ε_g = (1/2M) Σ n λ [γ₊ e^{-2ηγ₊λα/M} + (M-1) γ₋ e^{-2ηγ₋λα/M}], γ from <g'>² and <g'²>."""
    first, second, units = 1 / np.pi, 2 / (np.sqrt(3) * np.pi), 3
    part = LatePhase(PAIR, units, 0.4).groups([0.0, 2.0], SHARE, 0 * SHARE)
    for speed, number, found in ((second - first, 2, part.slow), (second - first + units * first, 1, part.fast)):
        decay = np.exp(-2 * 0.4 * speed / units * np.outer([0.0, 2.0], PAIR.eigenvalues))
        wanted = number * speed / (2 * units) * decay @ (SHARE * PAIR.eigenvalues)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("units, rate", [(1, 0.5), (2, 2.0), (3, 1.0), (5, 4.0)])
def test_rates_are_eigenvalues_of_the_full_jacobian(units, rate):
    t, rates = site_matrices(np.outer(SHARE, [1, 0]), units), LatePhase(PAIR, units, rate).rates()
    values = np.linalg.eigvals(ResolvedOverlaps(t, t, t).jacobian(PAIR, rate))
    assert len(rates) == 2 * min(units, 2) and np.abs(values[:, None] - rates).min(axis=0).max() < 1e-7


@pytest.mark.parametrize("units", [1, 2, 3, 5])
def test_threshold_of_the_isotropic_theory_is_that_of_every_spectrum(units):
    edge = stability.critical_learning_rate(units)
    for lam in ([1.0], power_law(40, 1.0)):
        below, above = (LatePhase(lam, units, factor * edge).rates()[-1] for factor in (0.98, 1.02))
        assert below < 0 < above


# --- inside the teachers' span


def inside(r, s, units, share):
    t, deviation = (site_matrices(pair, units) for pair in (np.outer(share, [1, 0]), np.stack([r, s], axis=1)))
    return ResolvedOverlaps(t + 2 * deviation + deviation @ deviation / share[:, None, None], t + deviation, t)


@pytest.mark.parametrize("units", [1, 2, 3, 6])
def test_one_eigenvalue_decays_inside_as_in_the_isotropic_theory(units):
    wanted, late = stability.asymptotic_rates(units, 0.3)[1], 600.0 * units * np.array([1, 2])
    other = [0.002 * (units > 1)]
    error = LatePhase([1.0], units, 0.3).span_error(late, [-0.01], other)
    assert np.log(error[1] / error[0]) / np.diff(late)[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("units", [1, 2, 4])
def test_the_error_inside_is_that_of_the_moved_matrices(units):
    """R - T moved by the exponential of the Jacobian; the exact error of the matrices, to second order."""
    r, s = 1e-4 * np.array([-2.0, 1.0]), 1e-4 * np.array([0.5, -1.0]) * (units > 1)
    state, phase, times = inside(r, s, units, SHARE), LatePhase(PAIR, units, 0.5), np.array([0.0, 3.0, 30.0])
    rest = ResolvedOverlaps(state.teacher, state.teacher, state.teacher)
    jacobian = rest.jacobian(PAIR, 0.5, second_order=False)
    start = structured.coordinates(2 * (state.cross - state.teacher), state.cross - state.teacher)
    found = [phase.span_error(times, r, s, squares=option) for option in (True, False)]
    for time, with_squares, without in zip(times, *found):
        moved = structured.directions(expm(time * jacobian) @ start, 2, units, units)[1]  # (2, M, M)
        now = inside(*site_means(moved).T, units, SHARE)
        seen = [structured.fields(part, PAIR.eigenvalues) for part in now]
        assert with_squares == pytest.approx(Overlaps(*seen).generalization_error, rel=2e-3)
        y_z = site_means(now.student - 2 * now.cross + now.teacher).T
        assert without == pytest.approx(phase.generalization_error(0.0, *y_z), rel=1e-6)


@pytest.mark.parametrize("units, levels", [(1, 1), (2, 1), (2, 3), (3, 4)])
def test_the_full_equations_approach_it(units, levels):
    """The miss falls with the size of R - T, while the linear formula stays wrong."""
    share, times, miss = np.full(levels, 1 / levels), np.array([0.0, 5.0, 20.0]), []
    phase = LatePhase(power_law(levels, 1.0), units, 0.5)
    for size in (0.02, 0.002):
        r, s = -size * share, 0.3 * size * share * (units > 1)
        path = inside(r, s, units, share).solve(times, phase.spectrum, 0.5, second_order=False, tolerance=1e-7)
        miss.append(np.abs(phase.span_error(times, r, s) / path.generalization_error - 1).max())
    assert miss[1] < 0.2 * miss[0] and miss[1] < 0.01
    assert (phase.span_error(times, r, s, squares=False) > 1.05 * path.generalization_error).all()


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="^times must lie where the error is positive"):
        LatePhase([1.0], 2, 1.0).groups([1e6], [0.1], [0.0])
    for name in ("diagonal", "off_diagonal"):
        with pytest.raises(ValueError, match=f"^{name} must have one axis of length 1"):
            LatePhase([1.0], 2, 1.0).span_error(1.0, **{"diagonal": [0.1], "off_diagonal": [0.1]} | {name: [0.1, 0.2]})

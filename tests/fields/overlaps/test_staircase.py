"""lib.fields.overlaps.staircase against sums over a Gauss-Hermite rule, finite differences, root finders from two
sides, and Monte Carlo of the overlaps.
"""

import dataclasses

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, simpson
from scipy.optimize import least_squares

from lib.fields.overlaps import _density, single_index, staircase

FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it
DECK = {"readout_variance": 8.0}  # with d = 50 and N = 300 the numbers of the source's transition
RESIDUAL = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(np.array)


def at_fixed_ratios(dimension, strength, load, epsilon, **more):
    """The saddle at g_K = s_a² P_e/d and ν = P_e/N."""
    samples = 100 * load
    return staircase.solve(
        dimension, 100, samples, epsilon, readout_variance=strength * dimension / samples, **more, **FIXED
    )


# --- the action ---------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(RESIDUAL, st.floats(1, 5000), st.floats(0.1, 5), st.integers(1, 400))
def test_the_action_is_even_zero_in_the_center_and_the_square_of_the_projected_residual(
    residual, samples, variance, dimension
):
    m = np.concatenate([-np.linspace(0.2, 4, 20)[::-1], [0], np.linspace(0.2, 4, 20)])
    a = staircase.coupling(dimension, 70, samples, readout_variance=1.7)
    found = staircase.action(m, residual, a, dimension, weight_variance=variance, **FIXED)
    hats = single_index.projections("erf", m, variance)
    pull = samples * hats @ (residual * [1, np.sqrt(6)])
    expected = dimension * m**2 / (2 * variance) - 1.7 / (2 * 70) * pull**2
    terms = dimension * m**2 / (2 * variance) + samples**2 / 40 * (hats**2 @ (residual**2 * [1, 6]))
    assert np.all(np.abs(found - expected) <= 1e-12 * terms)
    assert found[20] == 0 and np.array_equal(found, found[::-1])
    np.testing.assert_allclose(
        staircase.action(m, -residual, a, dimension, weight_variance=variance, **FIXED), found, rtol=1e-14
    )


@settings(deadline=None, max_examples=40)
@given(RESIDUAL, st.floats(0, 100), st.floats(0.2, 3))
def test_landau_coefficients_are_those_of_the_taylor_series_in_the_squared_overlap(residual, strength, variance):
    # S as a function of m² has its nearest pole at -(1 + 2s)/2: Cauchy's integral on a circle inside, exact to
    # rounding.
    radius = 0.2 * (1 + 2 * variance) / 2
    x = radius * np.exp(2j * np.pi * np.arange(64) / 64)
    u = x / (1 + 2 * variance + 2 * x)
    values = x / (2 * variance) - strength * u * (residual[0] - 2 * residual[1] * u) ** 2
    series = [(np.mean(values * x**-power)).real for power in (1, 2, 3)]
    found = staircase.landau(residual, strength, weight_variance=variance)
    np.testing.assert_allclose(found, series, rtol=1e-9, atol=1e-9 * (1 + strength))
    m = 1e-3
    action = staircase.action(m, residual, strength, 1, weight_variance=variance, **FIXED)
    assert action == pytest.approx(m**2 * found[0] + m**4 * found[1], rel=1e-6, abs=1e-14)


@settings(deadline=None, max_examples=60)
@given(RESIDUAL, st.floats(0, 500), st.floats(0.2, 3))
def test_extrema_are_where_the_slope_of_the_action_changes_its_sign(residual, strength, variance):
    found = staircase.extrema(residual, strength, weight_variance=variance)
    m = np.geomspace(1e-2, 100, 20_001)
    change = np.diff(staircase.action(m, residual, strength, 1, weight_variance=variance, **FIXED))
    turns = m[1:-1][(change[1:] > 0) != (change[:-1] > 0)]
    edges = np.concatenate([[1e-2], found, [100]])
    if np.all(np.diff(edges) > 2e-3 * edges[1:]):  # none outside the grid, no two in one cell
        assert turns.size == found.size
        np.testing.assert_allclose(turns, found, rtol=2e-3)
        assert change[-1] > 0


# --- the saddle ---------------------------------------------------------------------------------------------


def equations(unknown, dimension, width, samples, epsilon, variance, readout):
    """(1 + P_e M) r - Y with M by a sum over a fine grid."""
    m = np.linspace(-8, 8, 20001)
    b, c = unknown
    action = staircase.action(
        m,
        unknown,
        staircase.coupling(dimension, width, samples, readout_variance=readout),
        dimension,
        weight_variance=variance,
        **FIXED,
    )
    density = np.exp(action.min() - action)
    hats = single_index.projections("erf", m, variance)
    kernel = readout * np.einsum("g,gi,gj->ij", density / density.sum(), hats, hats)
    r = np.array([b, np.sqrt(6) * c])
    return r + samples * kernel @ r - single_index.staircase(epsilon)


@settings(deadline=None, max_examples=25)
@given(
    *(st.integers(2, 200), st.integers(10, 2000), st.floats(0.1, 10), st.floats(-0.7, 0.7)),
    *(st.floats(0.3, 3), st.floats(0.2, 10)),
)
def test_the_saddle_solves_its_equations(dimension, width, per_input, epsilon, variance, readout):
    samples = per_input * dimension
    state = staircase.solve(
        dimension, width, samples, epsilon, weight_variance=variance, readout_variance=readout, **FIXED
    )
    left = equations(state.residuals, dimension, width, samples, epsilon, variance, readout)
    assert np.abs(left).max() < 1e-9
    m, p = state.overlaps, state.density
    assert 2 * simpson(p, x=m) == pytest.approx(1, rel=1e-6) and 2 * simpson(p * m**2, x=m) == pytest.approx(
        state.variance, rel=1e-6
    )
    np.testing.assert_array_equal(
        state.landau, staircase.landau(state.residuals, state.coupling, weight_variance=variance)
    )
    assert state.residuals[0] == pytest.approx(1 - state.learnabilities[0], abs=1e-15) and 0 <= state.outliers <= 1


@pytest.mark.parametrize("samples", [200, 600, 1000, 2000])
def test_a_trust_region_from_the_lazy_and_from_the_learned_side_finds_the_same_saddle(samples):
    state = staircase.solve(50, 300, samples, -0.3, **DECK, **FIXED)
    lazy = single_index.lazy("erf", single_index.staircase(-0.3), 50, samples, **DECK, **FIXED)[0] / [1, np.sqrt(6)]
    for start in (lazy, [0.0, -0.01]):
        found = least_squares(
            equations, start, args=(50, 300, samples, -0.3, 1.0, 8.0), xtol=1e-15, ftol=1e-15, gtol=1e-15
        )
        np.testing.assert_allclose(found.x, state.residuals, atol=1e-9)


def test_the_saddle_is_stationary_and_lowest_in_the_residual():
    d, n, samples, readout, epsilon = 20, 60, 300.0, 4.0, -0.3
    state = staircase.solve(d, n, samples, epsilon, readout_variance=readout, **FIXED)
    y = single_index.staircase(epsilon)

    def phi(residual):
        tau = samples * residual * np.array([1, np.sqrt(6)])
        a = staircase.coupling(d, n, samples, readout_variance=readout)
        mean = quad(
            lambda m: np.sqrt(d / (2 * np.pi)) * np.exp(-staircase.action(m, residual, a, d, **FIXED)),
            -7,
            7,
            points=[0],
            limit=500,
            epsabs=0,
        )[0]
        return n * np.log(mean) + tau @ tau / (2 * samples) - tau @ y

    assert phi(state.residuals) == pytest.approx(-state.free_energy, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(10):
        aside = 0.02 * rng.standard_normal(2)
        low, middle, high = (phi(state.residuals + t * aside) for t in (0, 0.5, 1))
        assert low < middle < high and middle < (low + high) / 2


def test_the_numbers_of_the_first_order_transition():
    states = [staircase.solve(50, 300, samples, -0.3, **DECK, **FIXED) for samples in (200, 400, 600, 1000, 2000)]
    np.testing.assert_allclose([s.learnabilities[1] for s in states], [0.023, 0.027, 0.127, 0.407, 0.675], atol=6e-4)
    np.testing.assert_allclose([s.outliers for s in states], [0, 0, 0.00107, 0.00322, 0.0048], atol=2e-5)
    np.testing.assert_allclose([s.minimum for s in states], [0, 0, 1.52, 1.67, 1.77], atol=6e-3)
    positive = [
        staircase.solve(50, 600, samples, 0.3, readout_variance=4.0, **FIXED).learnabilities[1]
        for samples in (1500, 3000, 6000)
    ]
    np.testing.assert_allclose(positive, [0.098, 0.501, 0.740], atol=6e-4)


def test_near_the_transition_in_mean_field_scaling_and_independence_of_the_width():
    for epsilon, samples, first, third, kurtosis in (
        (-0.05, 200, 0.93, 0.60, 1.8),
        (0.05, 500, 0.96, -0.36, 1.2),
        (0.05, 2000, 0.99, 0.31, 9.9),
    ):
        for width in (1000, 10_000):
            scale = {"readout_variance": 1 / width}
            state = staircase.solve(
                50, width, 1 / single_index.ridge("erf", 50, samples, 1 / width, **scale), epsilon, **scale, **FIXED
            )
            assert state.learnabilities == pytest.approx([first, third], abs=5e-3) and state.kurtosis == pytest.approx(
                kurtosis, abs=0.05
            )
    assert 50 * staircase.solve(50, 1000, 200_000, -0.05, readout_variance=1e-3, **FIXED).variance == pytest.approx(
        11, abs=0.5
    )


def test_without_the_mean_field_factor_growing_networks_stop_learning_the_cubic_part():
    standard, mean_field, lazy = [], [], []
    for d, n, samples, ridge in ((75, 175, 750, 10.0), (150, 700, 3000, 20.0), (300, 2800, 12000, 40.0)):
        scale, chi = {"readout_variance": 1.0}, {"readout_variance": 1 / n}
        standard.append(
            staircase.solve(
                d, n, 1 / single_index.ridge("erf", d, samples, ridge, **scale), -0.3, **scale, **FIXED
            ).learnabilities[1]
        )
        mean_field.append(
            staircase.solve(
                d, n, 1 / single_index.ridge("erf", d, samples, ridge / n, **chi), -0.3, **chi, **FIXED
            ).learnabilities[1]
        )
        lazy.append(single_index.lazy("erf", single_index.staircase(-0.3), d, samples / ridge, **FIXED)[1][1])
    np.testing.assert_allclose(standard, [0.005, 0.002, 0.001], atol=5e-4)
    np.testing.assert_allclose(mean_field, [0.18, 0.27, 0.34], atol=5e-3)
    np.testing.assert_allclose(lazy, [0.004, 0.002, 0.001], atol=5e-4)


def test_a_wide_network_is_lazy():
    for epsilon in (-0.3, 0.2):
        target = single_index.staircase(epsilon)
        lazy, learned = single_index.lazy("erf", target, 30, 900.0, readout_variance=2.0, **FIXED)
        state = staircase.solve(30, 10**11, 900.0, epsilon, readout_variance=2.0, **FIXED)
        np.testing.assert_allclose(state.learnabilities, learned, atol=1e-6)
        assert state.variance == pytest.approx(1 / 30, rel=1e-6) and state.kurtosis == pytest.approx(3, rel=1e-6)
        assert staircase.solve(30, 10**8, 900.0, epsilon, readout_variance=2.0, **FIXED).free_energy == pytest.approx(
            450 * lazy @ target, rel=1e-4
        )


def test_kinds_of_variance_only_set_the_unit_of_the_outputs():
    one = staircase.solve(40, 200, 500.0, -0.3, readout_variance=6.0, **FIXED)
    for factor in (1e-6, 1e6):
        other = staircase.solve(40, 200, 500.0 / factor, -0.3, readout_variance=6.0 * factor, **FIXED)
        assert other.coupling == pytest.approx(one.coupling / factor, rel=1e-12)
    same = staircase.solve(40, 200 * 3, 500.0 * 3, -0.3, readout_variance=2.0, **FIXED)
    for field in dataclasses.fields(one):
        if field.name not in ("overlaps", "density", "free_energy"):
            np.testing.assert_allclose(getattr(same, field.name), getattr(one, field.name), rtol=1e-8)
    assert same.free_energy == pytest.approx(3 * one.free_energy, rel=1e-10)
    assert np.isnan(staircase.solve(40, 200, 500.0, 0.0, **FIXED).learnabilities[1])


def test_many_units_sampled_together_agree_with_the_saddle():
    # Importance sampling of N overlaps from the saddle's density, weighed by the posterior with readouts integrated
    # out.
    d, n, samples, readout, rng = 20, 3000, 600.0, 4.0, np.random.default_rng(5)
    y = single_index.staircase(-0.3)
    state = staircase.solve(d, n, samples, -0.3, readout_variance=readout, **FIXED)
    cumulative = np.concatenate([[0], np.cumsum((state.density[1:] + state.density[:-1]) * np.diff(state.overlaps))])
    m = np.interp(rng.random((1000, n)), cumulative, state.overlaps) * rng.choice([-1, 1], (1000, n))
    hats = single_index.projections("erf", m)
    kernel = readout / n * np.einsum("kci,kcj->kij", hats, hats)
    inner = np.eye(2) + samples * kernel
    tau = samples * state.residuals * [1, np.sqrt(6)]
    log = -0.5 * np.linalg.slogdet(inner)[1] - samples / 2 * np.einsum("i,kij,j->k", y, np.linalg.inv(inner), y)
    log -= readout / (2 * n) * ((hats @ tau) ** 2).sum(axis=1)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    learned = 1 - np.linalg.solve(inner, np.broadcast_to(y, (1000, 2))[..., None])[..., 0] / y
    mean = weights @ learned
    error = np.sqrt(weights**2 @ (learned - mean) ** 2)
    assert 1 / (weights**2).sum() > 50
    np.testing.assert_array_less(np.abs(mean - state.learnabilities), 4 * error + 3 / n)


@settings(deadline=None, max_examples=60)
@given(RESIDUAL, st.floats(0, 200))
def test_beyond_the_end_of_the_grid_the_density_is_rounding(residual, strength):
    units = _density.Units(40, 100, 1.0, 1.0, 0.01, strength)
    end = units.reach(residual * [1, np.sqrt(6)], 0.0)
    assert staircase.action(end * np.linspace(1, 3, 50), residual, strength, 40, **FIXED).min() > 49.99


def test_the_reach_covers_a_residual_of_equal_parts():
    assert (
        staircase.action(
            _density.Units(40, 100, 1.0, 1.0, 0.01, 50.0).reach(np.array([1, np.sqrt(6)]), 0.0),
            [1, 1],
            50.0,
            40,
            **FIXED,
        )
        > 49.99
    )


# --- units that cannot cross the barrier --------------------------------------------------------------------


@pytest.mark.parametrize("samples", [600, 1000, 2000])
def test_states_with_a_fixed_fraction_beyond_the_barrier(samples):
    free = staircase.solve(50, 300, samples, -0.3, **DECK, **FIXED)
    held = staircase.solve(50, 300, samples, -0.3, outliers=free.outliers, **DECK, **FIXED)
    np.testing.assert_allclose(held.residuals, free.residuals, atol=1e-8)
    assert held.free_energy == pytest.approx(free.free_energy, abs=1e-8) and held.barrier == pytest.approx(
        free.barrier, abs=1e-6
    )
    lazy = staircase.solve(50, 300, samples, -0.3, outliers=0.0, **DECK, **FIXED)
    fewer = staircase.solve(50, 300, samples, -0.3, outliers=0.9 * free.outliers, **DECK, **FIXED)
    assert lazy.free_energy > fewer.free_energy > free.free_energy
    assert lazy.learnabilities[1] < 0.05 < fewer.learnabilities[1] < free.learnabilities[1]
    assert lazy.outliers == 0 and lazy.overlaps[-1] == pytest.approx(lazy.barrier, rel=1e-9)
    assert 0 < lazy.height < free.height
    slope = np.gradient(
        staircase.action(lazy.barrier + np.array([-1e-4, 0, 1e-4]), lazy.residuals, lazy.coupling, 50, **FIXED), 1e-4
    )[1]
    assert abs(slope) < 1e-4 * 50
    with pytest.raises(ValueError, match="^outliers must be None or small enough"):
        staircase.solve(50, 300, samples, -0.3, outliers=0.5, **DECK, **FIXED)


def test_without_a_barrier_the_lazy_state_is_the_saddle():
    free, lazy = (staircase.solve(50, 300, 400.0, -0.3, outliers=outliers, **DECK, **FIXED) for outliers in (None, 0.0))
    np.testing.assert_array_equal(lazy.density, free.density)
    assert lazy.barrier == lazy.outliers == lazy.minimum == 0


def test_outliers_are_the_density_beyond_the_barrier():
    state = staircase.solve(50, 300, 1000.0, -0.3, **DECK, **FIXED)
    total, beyond = (
        quad(
            lambda m: np.exp(-staircase.action(m, state.residuals, state.coupling, 50, **FIXED)),
            *bounds,
            points=points,
            epsabs=0,
            limit=200,
        )[0]
        for bounds, points in (((0, 4), [0.2, 1.5, 2]), ((state.barrier, 4), [1.5, 2]))
    )
    assert state.outliers == pytest.approx(beyond / total, rel=1e-4)
    split = staircase.solve(50, 1000, 500_000, 0.05, readout_variance=1e-3, **FIXED)
    assert split.landau[0] < 0 < split.minimum and split.kurtosis < 1.3


# --- sample complexity --------------------------------------------------------------------------------------


def test_the_adaptive_sample_complexity_is_linear_in_the_dimension():
    per_input = [staircase.samples_to_learn(d, 4 * d, -0.3, **FIXED) / d for d in (25, 50, 100, 200, 400, 800)]
    np.testing.assert_allclose(per_input, [64.6, 62.1, 60.9, 60.2, 59.9, 59.8], atol=0.06)
    assert np.ptp(per_input[1:5]) < 0.05 * per_input[4]
    assert staircase.solve(50, 200, 50 * per_input[1], -0.3, **FIXED).learnabilities[1] == pytest.approx(0.5, abs=1e-9)


def test_the_lazy_sample_complexity_is_cubic_in_the_dimension():
    d = np.array([800, 1600, 3200])
    for variance, readout in ((1.0, 1.0), (0.5, 3.0)):
        strengths = {"weight_variance": variance, "readout_variance": readout}
        found = np.array([staircase.samples_to_learn(int(size), None, -0.3, **strengths, **FIXED) for size in d])
        limit = np.pi * (1 + 2 * variance) ** 3 / (16 * variance**3 * readout)
        assert np.all(np.abs(np.diff(np.log(found)) / np.log(2) - 3) < 0.05)
        ratio = found / d**3 / limit
        assert ratio == pytest.approx(1, abs=0.04)
        assert 2 * ratio[2] - ratio[1] == pytest.approx(1, abs=1e-3)  # the correction is of order 1/d


def test_the_level_is_reached_from_below():
    low, high = (staircase.samples_to_learn(50, 200, -0.3, level=level, **FIXED) for level in (0.3, 0.8))
    assert low < high and staircase.solve(50, 200, 0.99 * low, -0.3, **FIXED).learnabilities[1] < 0.3
    with pytest.raises(ValueError, match="^level must be above"):
        staircase.samples_to_learn(50, 200, -0.3, level=1e-9, **FIXED)


# --- bad input ----------------------------------------------------------------------------------------------


def test_extreme_numbers_of_samples_are_solved_or_refused(monkeypatch):
    assert staircase.solve(50, 300, 1e40, -0.3, **FIXED).learnabilities == pytest.approx([1, 1], abs=1e-12)
    assert staircase.solve(50, 300, 1e-40, -0.3, **FIXED).learnabilities == pytest.approx([0, 0], abs=1e-12)
    with pytest.raises(ValueError, match="^effective_samples must be one finite number"):
        staircase.solve(50, 300, 1e90, -0.3, **FIXED)
    monkeypatch.setattr(_density, "MOST_POINTS", 150)
    with pytest.raises(ValueError, match="^effective_samples must be in reach"):
        staircase.solve(50, 300, 1000.0, -0.3, readout_variance=8.0, **FIXED)


FREE = {"perpendicular": "free"}
SIZES = {"dimension": 20, "width": 50, "effective_samples": 100.0}
SCALES = {"weight_variance": 1.0, "readout_variance": 2.0}
CALLS = {
    staircase.coupling: {**SIZES, "readout_variance": 2.0},
    staircase.action: {
        "overlap": [0.5],
        "residual": [0.1, -0.3],
        "coupling": 3.0,
        "dimension": 20,
        "weight_variance": 1.0,
        **FREE,
    },
    staircase.landau: {"residual": [0.1, -0.3], "coupling": 3.0, "weight_variance": 1.0},
    staircase.extrema: {"residual": [0.1, -0.3], "coupling": 3.0, "weight_variance": 1.0},
    staircase.solve: {**SIZES, "epsilon": -0.3, **SCALES, "outliers": 0.0, **FREE},
    staircase.samples_to_learn: {"dimension": 20, "width": 80, "epsilon": -0.3, "level": 0.5, **SCALES, **FREE},
}
NOT_ZERO = [bad for bad in NUMBER if bad is True or bad != 0]
BAD = {
    **dict.fromkeys(("dimension",), COUNT),
    "width": [bad for bad in COUNT if bad is not None],
    "effective_samples": NOT_ZERO,
    "epsilon": [bad for bad in NUMBER if bad is True or bad not in (0, -1.0)],
    "overlap": [[np.nan], [np.inf], "overlap", None, [1j], [1e300]],
    "residual": [[0.1], [0.1, np.nan], 0.1, "residual", None, [[0.1, 0.2]], [1e60, 0]],
    "coupling": NOT_ZERO,
    "perpendicular": ["other", "", True, None, 1.0, ["free"]],
    "level": [*NUMBER, 1.0],
    "outliers": [bad for bad in NOT_ZERO if bad is not None] + [1.0, 2.0],
    **dict.fromkeys(("weight_variance", "readout_variance"), NUMBER),
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


@pytest.mark.parametrize("name", ["effective_samples", "width"])
def test_nothing_is_solved_without_samples_or_units(name):
    with pytest.raises(ValueError, match=f"^{name} must "):
        staircase.solve(**SIZES | {name: None if name == "width" else 0, "epsilon": -0.3}, **FIXED)

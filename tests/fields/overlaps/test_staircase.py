"""staircase and the saddle against sums over fine grids of overlaps and lengths, Cauchy's integral, root finders
from two sides, and importance sampling of the overlaps.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, simpson
from scipy.special import logsumexp

from lib.fields.overlaps import _density, single_index
from lib.fields.overlaps.single_index import SingleIndex
from lib.fields.overlaps.staircase import Action

DECK = {"readout_variance": 8.0}  # with d = 50 and N = 300 the numbers of the source's transition
EPSILON = st.floats(-0.7, 0.7).map(lambda value: round(value, 6))
RESIDUAL = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(np.array)
kinds = pytest.mark.parametrize("kind", ["fixed", "free"])


def net(dimension, width, samples, epsilon, **ways):
    return SingleIndex(
        "erf", single_index.staircase(epsilon), dimension, width, samples, **{"perpendicular": "fixed"} | ways
    )


def solve(*setting, outliers=None, **ways):
    return net(*setting, **ways).saddle(outliers=outliers)


def lengths(dimension, variance):
    """Nodes of |w_⊥|² and their weights in the prior: a trapezoidal sum over |w_⊥|."""
    r = np.linspace(1e-6, np.sqrt(variance) * (1 + 12 / np.sqrt(dimension)), 6001)
    log = (dimension - 2) * np.log(r) - dimension * r**2 / (2 * variance)
    weights = np.exp(log - log.max())
    return r**2, weights / weights.sum()


def pulls(m, residual, strength, dimension, variance):
    """d A u (b - 2cu)² for overlaps m (M,), at the nodes of `lengths`."""
    u = m[:, None] ** 2 / (1 + 2 * lengths(dimension, variance)[0] + 2 * m[:, None] ** 2)
    return dimension * strength * u * (residual[0] - 2 * residual[1] * u) ** 2


# --- the action -----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(RESIDUAL, st.floats(1, 5000), st.floats(0.1, 5), st.integers(1, 400))
def test_the_action_is_even_zero_in_the_center_and_the_square_of_the_projected_residual(
    residual, samples, variance, dimension
):
    m = np.concatenate([-np.linspace(0.2, 4, 20)[::-1], [0], np.linspace(0.2, 4, 20)])
    a = net(dimension, 70, samples, 0.0, readout_variance=1.7).coupling
    found = Action(residual, a, dimension, weight_variance=variance, perpendicular="fixed").at(m)
    hats = single_index.projections("erf", m, variance)
    spring = dimension * m**2 / (2 * variance)
    expected = spring - 1.7 / (2 * 70) * (samples * hats @ (residual * [1, np.sqrt(6)])) ** 2
    terms = spring + samples**2 / 40 * (hats**2 @ (residual**2 * [1, 6]))
    assert np.all(np.abs(found - expected) <= 1e-12 * terms)
    assert found[20] == 0 and np.array_equal(found, found[::-1])
    assert isinstance(Action(residual, a, 1, perpendicular="fixed").at(0.3), float)


@settings(deadline=None, max_examples=25)
@given(RESIDUAL, st.floats(0, 30), st.floats(0.3, 3), st.integers(4, 100))
def test_the_action_of_free_weights_is_the_average_over_their_length(residual, strength, variance, dimension):
    m, ways = np.linspace(0, 3, 7), {"weight_variance": variance, "perpendicular": "free"}
    found = Action(residual, strength, dimension, **ways).at(m)
    pull = pulls(m, residual, strength, dimension, variance)
    prior = np.log(np.maximum(lengths(dimension, variance)[1], 1e-300))
    expected = dimension * m**2 / (2 * variance) - logsumexp(pull + prior, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * (1 + pull.max()))
    np.testing.assert_allclose(Action(-residual, strength, dimension, **ways).at(-m), found, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(RESIDUAL, st.floats(0, 100), st.floats(0.2, 3))
def test_landau_coefficients_are_those_of_the_taylor_series_in_the_squared_overlap(residual, strength, variance):
    # S as a function of m² has its nearest pole at -(1 + 2s)/2: Cauchy's integral on a circle inside, exact to
    # rounding.
    x = 0.2 * (1 + 2 * variance) / 2 * np.exp(2j * np.pi * np.arange(64) / 64)
    u = x / (1 + 2 * variance + 2 * x)
    values = x / (2 * variance) - strength * u * (residual[0] - 2 * residual[1] * u) ** 2
    series = [(np.mean(values * x**-power)).real for power in (1, 2, 3)]
    action = Action(residual, strength, 1, weight_variance=variance, perpendicular="fixed")
    np.testing.assert_allclose(action.landau(), series, rtol=1e-9, atol=1e-9 * (1 + strength))
    assert action.at(1e-3) == pytest.approx(1e-6 * series[0] + 1e-12 * series[1], rel=1e-6, abs=1e-14)


@settings(deadline=None, max_examples=20)
@given(st.floats(100, 3000), EPSILON, st.floats(0.5, 2), st.integers(3, 60))
def test_landau_coefficients_of_free_weights(samples, epsilon, variance, dimension):
    ways = {"weight_variance": variance, "perpendicular": "free"}
    state = solve(dimension, 200, samples, epsilon, **ways)
    action = Action(state.residuals, state.coupling, dimension, **ways)
    np.testing.assert_array_equal(state.landau, action.landau())
    steep = state.coupling * dimension * (state.residuals[0] ** 2 + abs(state.residuals.prod()))
    x = 0.02 / (1 + steep) * np.arange(1, 8)
    found = np.polynomial.Polynomial.fit(x, action.at(np.sqrt(x)) / dimension / x, 5).convert().coef[:3]
    scale = np.abs(state.landau).max()
    np.testing.assert_allclose(found[:2], state.landau[:2], rtol=1e-4, atol=1e-6 * scale)
    np.testing.assert_allclose(found[2], state.landau[2], rtol=2e-2, atol=2e-2 * scale)


@settings(deadline=None, max_examples=60)
@given(RESIDUAL, st.floats(0, 500), st.floats(0.2, 3))
def test_extrema_are_where_the_slope_of_the_action_changes_its_sign(residual, strength, variance):
    action, m = (
        Action(residual, strength, 1, weight_variance=variance, perpendicular="fixed"),
        np.geomspace(1e-2, 100, 20_001),
    )
    found, change = action.extrema(), np.diff(action.at(m))
    turns = m[1:-1][(change[1:] > 0) != (change[:-1] > 0)]
    edges = np.concatenate([[1e-2], found, [100]])
    if np.all(np.diff(edges) > 2e-3 * edges[1:]):  # none outside the grid, no two in one cell
        assert turns.size == found.size
        np.testing.assert_allclose(turns, found, rtol=2e-3)
        assert change[-1] > 0
    with pytest.raises(ValueError, match="^perpendicular must be one of fixed"):
        Action(residual, strength, 2, perpendicular="free").extrema()


# --- the saddle -----------------------------------------------------------------------------------------------


def equations(unknown, network):
    """(1 + P_e M) r - Y with M by a sum over a fine grid."""
    m, s = np.linspace(-8, 8, 20001), network.weight_variance
    action = Action(unknown, network.coupling, network.dimension, weight_variance=s, perpendicular="fixed").at(m)
    density = np.exp(action.min() - action)
    hats = single_index.projections("erf", m, s)
    kernel = network.readout_variance * np.einsum("g,gi,gj->ij", density / density.sum(), hats, hats)
    r = unknown * np.array([1, np.sqrt(6)])
    return r + network.effective_samples * kernel @ r - network.target


@settings(deadline=None, max_examples=25)
@given(
    *(st.integers(2, 200), st.integers(10, 2000), st.floats(0.1, 10), EPSILON),
    *(st.floats(0.3, 3), st.floats(0.2, 10)),
)
def test_the_saddle_solves_its_equations(dimension, width, per_input, epsilon, variance, readout):
    ways = {"weight_variance": variance, "readout_variance": readout}
    network = net(dimension, width, per_input * dimension, epsilon, **ways)
    state = network.saddle()
    assert np.abs(equations(state.residuals, network)).max() < 1e-9
    m, p = state.overlaps, state.density
    assert 2 * simpson(p, x=m) == pytest.approx(1, rel=1e-6)
    assert 2 * simpson(p * m**2, x=m) == pytest.approx(state.variance, rel=1e-6)
    assert 2 * simpson(p * m**4, x=m) == pytest.approx(state.kurtosis * state.variance**2, rel=1e-6)
    assert state.residuals[0] == pytest.approx(1 - state.learnabilities[0], abs=1e-15) and 0 <= state.outliers <= 1


@pytest.mark.parametrize(
    ("dimension", "samples", "epsilon", "variance"), [(50, 600, -0.3, 1.0), (20, 300, 0.3, 0.6), (5, 100, -0.5, 2.0)]
)
def test_the_saddle_of_free_weights_solves_its_equations(dimension, samples, epsilon, variance):
    network = net(dimension, 300, samples, epsilon, weight_variance=variance, perpendicular="free", **DECK)
    state = network.saddle()
    (q, prior), m = lengths(dimension, variance), np.linspace(-4, 4, 401) * np.sqrt(variance)
    log = pulls(m, state.residuals, state.coupling, dimension, variance) - dimension * m[:, None] ** 2 / (2 * variance)
    density = np.exp(log - log.max()) * prior
    density /= density.sum()
    ratio = m[:, None] / np.sqrt(0.5 + q + m[:, None] ** 2)
    hats = np.stack([np.sqrt(2 / np.pi) * ratio, -np.sqrt(1 / (3 * np.pi)) * ratio**3])
    r = state.residuals * [1, np.sqrt(6)]
    left = r + samples * 8 * np.einsum("mq,imq,jmq,j->i", density, hats, hats, r, optimize=True) - network.target
    assert np.abs(left).max() < 1e-7
    assert state.variance == pytest.approx(density.sum(axis=1) @ m**2, rel=1e-6)
    action = Action(state.residuals, state.coupling, dimension, weight_variance=variance, perpendicular="free")
    expected = state.density[0] * np.exp(-action.at(state.overlaps[::9]))
    np.testing.assert_allclose(state.density[::9], expected, rtol=1e-8, atol=1e-15)


def test_the_saddle_is_stationary_and_lowest_in_the_residual():
    network = net(20, 60, 300.0, -0.3, readout_variance=4.0)
    state = network.saddle()

    def phi(residual):
        tau, action = (
            300 * residual * np.array([1, np.sqrt(6)]),
            Action(residual, network.coupling, 20, perpendicular="fixed"),
        )
        ways = {"points": [0], "limit": 500, "epsabs": 0}
        mean = quad(lambda m: np.sqrt(20 / (2 * np.pi)) * np.exp(-action.at(m)), -7, 7, **ways)[0]
        return 60 * np.log(mean) + tau @ tau / 600 - tau @ network.target

    assert phi(state.residuals) == pytest.approx(-state.free_energy, rel=1e-9)
    rng = np.random.default_rng(0)
    for aside in 0.02 * rng.standard_normal((10, 2)):
        low, middle, high = (phi(state.residuals + t * aside) for t in (0, 0.5, 1))
        assert low < middle < high and middle < (low + high) / 2


@kinds
def test_a_wide_network_is_lazy(kind):
    for epsilon in (-0.3, 0.2):
        target, ways = single_index.staircase(epsilon), {"readout_variance": 2.0, "perpendicular": kind}
        lazy, learned = single_index.lazy("erf", target, 30, 900.0, **ways)
        state = solve(30, 10**11, 900.0, epsilon, **ways)
        np.testing.assert_allclose(state.learnabilities, learned, atol=1e-6)
        assert state.variance == pytest.approx(1 / 30, rel=1e-6) and state.kurtosis == pytest.approx(3, rel=1e-6)
        assert state.perpendicular == pytest.approx(1 if kind == "fixed" else 29 / 30, rel=1e-6)
        assert solve(30, 10**8, 900.0, epsilon, **ways).free_energy == pytest.approx(450 * lazy @ target, rel=1e-4)


def test_width_samples_and_readouts_that_cannot_be_told_apart():
    one, same = solve(40, 200, 500.0, -0.3, readout_variance=6.0), solve(40, 600, 1500.0, -0.3, readout_variance=2.0)
    for field in dataclasses.fields(one):
        if field.name not in ("overlaps", "density", "free_energy"):
            np.testing.assert_allclose(getattr(same, field.name), getattr(one, field.name), rtol=1e-8)
    assert same.free_energy == pytest.approx(3 * one.free_energy, rel=1e-10)
    assert np.isnan(solve(40, 200, 500.0, 0.0).learnabilities[1])


# --- units that cannot cross the barrier ----------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("samples", [600, 1500])
def test_states_with_a_fixed_fraction_beyond_the_barrier(samples, kind):
    setting, ways = (50, 300, samples, -0.3), {"perpendicular": kind} | DECK
    free = solve(*setting, **ways)
    held, lazy, fewer = (solve(*setting, outliers=part * free.outliers, **ways) for part in (1, 0, 0.9))
    np.testing.assert_allclose(held.residuals, free.residuals, atol=1e-8)
    assert held.free_energy == pytest.approx(free.free_energy, abs=1e-7)
    assert held.barrier == pytest.approx(free.barrier, abs=1e-6)
    assert held.perpendicular == pytest.approx(free.perpendicular, rel=1e-6)
    assert lazy.free_energy > fewer.free_energy > free.free_energy
    assert lazy.learnabilities[1] < 0.06 < fewer.learnabilities[1] < free.learnabilities[1]
    assert lazy.outliers == 0 and lazy.overlaps[-1] == pytest.approx(lazy.barrier, rel=1e-9)
    assert 0 < lazy.height < free.height
    if kind == "free":  # the pull only gets stronger where w_⊥ is short: the minimum over a larger family is lower
        assert free.free_energy < solve(*setting, **DECK).free_energy
    with pytest.raises(ValueError, match="^outliers must be None or small enough"):
        solve(*setting, outliers=0.5, **ways)


def test_without_a_barrier_the_lazy_state_is_the_saddle():
    free, lazy = (solve(50, 300, 400.0, -0.3, outliers=outliers, **DECK) for outliers in (None, 0.0))
    np.testing.assert_array_equal(lazy.density, free.density)
    assert lazy.barrier == lazy.outliers == lazy.minimum == 0
    split = solve(50, 1000, 500_000, 0.05, readout_variance=1e-3)  # the center is no minimum
    assert split.landau[0] < 0 < split.minimum and split.kurtosis < 1.3


@kinds
def test_outliers_are_the_density_beyond_the_barrier_and_shorter_if_they_are_free(kind):
    state, ways = solve(50, 300, 600.0, -0.3, perpendicular=kind, **DECK), {"points": [0.2, 1.4], "epsabs": 0}
    action = Action(state.residuals, state.coupling, 50, perpendicular=kind)
    total, beyond = (quad(lambda m: np.exp(-action.at(m)), low, 4, **ways)[0] for low in (0, state.barrier))
    assert state.outliers == pytest.approx(beyond / total, rel=1e-4)
    for place, sign in ((state.barrier, -1), (state.minimum, 1)):
        at = action.at(place + np.array([-1e-3, 0, 1e-3]))
        assert abs(at[2] - at[0]) < 1e-5 and sign * (at[0] + at[2] - 2 * at[1]) > 0
        assert place == state.minimum or at[1] == pytest.approx(state.height, rel=1e-8)
    if kind == "fixed":
        assert state.perpendicular == pytest.approx(1, rel=1e-14)
        return
    (q, prior), m = lengths(50, 1.0), np.linspace(state.barrier, 3, 801)
    density = np.exp(pulls(m, state.residuals, state.coupling, 50, 1.0) - 25 * m[:, None] ** 2) * prior
    density[[0, -1]] /= 2
    assert state.perpendicular == pytest.approx((density @ q).sum() / density.sum(), rel=1e-5) and q[0] < 0.31


# --- sample complexity ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variance", "readout"), [(1.0, 1.0), (0.5, 3.0)])
def test_the_lazy_sample_complexity_is_cubic_in_the_dimension(variance, readout):
    """R_3 = ½ at  P_e = π(1 + 2s)³ d³/(16 s³ s_a²)  up to O(1/d)."""
    ways = {"weight_variance": variance, "readout_variance": readout, "perpendicular": "free"}
    scale = np.pi * (1 + 2 * variance) ** 3 / (16 * variance**3 * readout)
    short = np.array(
        [single_index.lazy("erf", single_index.staircase(-0.3), d, scale * d**3, **ways)[1][1] for d in (1600, 3200)]
    )
    assert short == pytest.approx(0.5, abs=0.01) and 2 * short[1] - short[0] == pytest.approx(0.5, abs=3e-4)


def test_what_has_no_saddle_or_is_out_of_reach_is_refused(monkeypatch):
    assert solve(50, 300, 1e40, -0.3).learnabilities == pytest.approx([1, 1], abs=1e-12)
    assert solve(50, 300, 1e-40, -0.3).learnabilities == pytest.approx([0, 0], abs=1e-12)
    for network, name in (
        (SingleIndex("erf", [1, 1, 1], 50, 300, 1.0, perpendicular="fixed"), "target"),
        (SingleIndex("relu", [0, 1, 1, 1], 50, 300, 1.0, perpendicular="fixed"), "activation"),
        (net(50, 300, 0.0, -0.3), "effective_samples"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must"):
            network.saddle()
    with pytest.raises(ValueError, match="^dimension must be 2 or more if"):
        Action([0.1, -0.3], 3.0, 1, perpendicular="free")
    monkeypatch.setattr(_density, "MOST_POINTS", 150)
    with pytest.raises(ValueError, match="^effective_samples must be in reach"):
        solve(50, 300, 1000.0, -0.3, **DECK)

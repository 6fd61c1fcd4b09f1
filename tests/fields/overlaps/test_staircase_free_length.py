"""lib.fields.overlaps.staircase with the length of the weights across the teacher's direction drawn from its prior,
against sums over that length.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.special import logsumexp

from lib.fields.overlaps import single_index, staircase

FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it
DECK = {"readout_variance": 8.0}  # with d = 50 and N = 300 the numbers of the source's transition
RESIDUAL = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(np.array)


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


@settings(deadline=None, max_examples=25)
@given(RESIDUAL, st.floats(0, 30), st.floats(0.3, 3), st.integers(4, 100))
def test_the_action_of_free_weights_is_the_average_over_their_length(residual, strength, variance, dimension):
    m = np.linspace(0, 3, 7)
    found = staircase.action(m, residual, strength, dimension, weight_variance=variance, perpendicular="free")
    pull = pulls(m, residual, strength, dimension, variance)
    prior = np.log(np.maximum(lengths(dimension, variance)[1], 1e-300))
    expected = dimension * m**2 / (2 * variance) - logsumexp(pull + prior, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * (1 + pull.max()))
    again = staircase.action(-m, -residual, strength, dimension, weight_variance=variance, perpendicular="free")
    np.testing.assert_allclose(again, found, rtol=1e-12, atol=1e-12)
    assert abs(found[0]) < 1e-12


@pytest.mark.parametrize(
    ("dimension", "samples", "epsilon", "variance"), [(50, 600, -0.3, 1.0), (20, 300, 0.3, 0.6), (5, 100, -0.5, 2.0)]
)
def test_the_saddle_of_free_weights_solves_its_equations(dimension, samples, epsilon, variance):
    state = staircase.solve(
        dimension, 300, samples, epsilon, weight_variance=variance, readout_variance=8.0, perpendicular="free"
    )
    (q, prior), m = lengths(dimension, variance), np.linspace(-4, 4, 401) * np.sqrt(variance)
    log = pulls(m, state.residuals, state.coupling, dimension, variance) - dimension * m[:, None] ** 2 / (2 * variance)
    density = np.exp(log - log.max()) * prior
    density /= density.sum()
    ratio = m[:, None] / np.sqrt(0.5 + q + m[:, None] ** 2)
    hats = np.stack([np.sqrt(2 / np.pi) * ratio, -np.sqrt(1 / (3 * np.pi)) * ratio**3])
    r = state.residuals * [1, np.sqrt(6)]
    left = (
        r
        + samples * 8 * np.einsum("mq,imq,jmq,j->i", density, hats, hats, r, optimize=True)
        - single_index.staircase(epsilon)
    )
    assert np.abs(left).max() < 1e-7
    assert state.variance == pytest.approx(density.sum(axis=1) @ m**2, rel=1e-6)
    m, p = state.overlaps, state.density
    assert 2 * simpson(p, x=m) == pytest.approx(1, rel=1e-6)
    action = staircase.action(
        m[::9], state.residuals, state.coupling, dimension, weight_variance=variance, perpendicular="free"
    )
    np.testing.assert_allclose(p[::9], p[0] * np.exp(-action), rtol=1e-8, atol=1e-15)


def test_outliers_of_free_weights_are_shorter_across_the_teacher():
    state = staircase.solve(50, 300, 600.0, -0.3, perpendicular="free", **DECK)
    (q, prior), m = lengths(50, 1.0), np.linspace(state.barrier, 3, 801)
    log = pulls(m, state.residuals, state.coupling, 50, 1.0) - 25 * m[:, None] ** 2
    density = np.exp(log) * prior
    density[[0, -1]] /= 2
    assert state.perpendicular == pytest.approx((density @ q).sum() / density.sum(), rel=1e-5)
    share = 2 * density.sum() * (m[1] - m[0]) * np.interp(0, state.overlaps, state.density)
    assert state.outliers == pytest.approx(share, rel=1e-4)
    for place, sign in ((state.barrier, -1), (state.minimum, 1)):
        at = staircase.action(
            place + np.array([-1e-3, 0, 1e-3]), state.residuals, state.coupling, 50, perpendicular="free"
        )
        assert abs(at[2] - at[0]) < 1e-5 and sign * (at[0] + at[2] - 2 * at[1]) > 0
        assert place == state.minimum or at[1] == pytest.approx(state.height, rel=1e-8)
    assert [round(x, 3) for x in (state.learnabilities[1], state.minimum, state.perpendicular)] == [0.258, 1.364, 0.307]
    assert staircase.solve(50, 300, 600.0, -0.3, **DECK, **FIXED).perpendicular == pytest.approx(1, rel=1e-14)
    # Without outliers all units count, and keep the prior's mean.
    lazy = staircase.solve(50, 10**9, 60.0, -0.3, perpendicular="free")
    assert lazy.minimum == 0 and lazy.perpendicular == pytest.approx(49 / 50, rel=1e-6)


@settings(deadline=None, max_examples=20)
@given(st.floats(100, 3000), st.floats(-0.5, 0.5), st.floats(0.5, 2), st.integers(3, 60))
def test_landau_coefficients_of_free_weights(samples, epsilon, variance, dimension):
    state = staircase.solve(dimension, 200, samples, epsilon, weight_variance=variance, perpendicular="free")
    x = (
        0.02
        / (1 + state.coupling * dimension * (state.residuals[0] ** 2 + abs(state.residuals.prod())))
        * np.arange(1, 8)
    )
    action = (
        staircase.action(
            np.sqrt(x), state.residuals, state.coupling, dimension, weight_variance=variance, perpendicular="free"
        )
        / dimension
    )
    found = np.polynomial.Polynomial.fit(x, action / x, 5).convert().coef[:3]
    scale = np.abs(state.landau).max()
    np.testing.assert_allclose(found[:2], state.landau[:2], rtol=1e-4, atol=1e-6 * scale)
    np.testing.assert_allclose(found[2], state.landau[2], rtol=2e-2, atol=2e-2 * scale)


@pytest.mark.parametrize("samples", [600, 1500])
def test_states_of_free_weights_with_a_fixed_fraction_beyond_the_barrier(samples):
    ways = {"perpendicular": "free"} | DECK
    free = staircase.solve(50, 300, samples, -0.3, **ways)
    held = staircase.solve(50, 300, samples, -0.3, outliers=free.outliers, **ways)
    np.testing.assert_allclose(held.residuals, free.residuals, atol=1e-8)
    assert held.free_energy == pytest.approx(free.free_energy, abs=1e-7) and held.perpendicular == pytest.approx(
        free.perpendicular, rel=1e-6
    )
    lazy = staircase.solve(50, 300, samples, -0.3, outliers=0.0, **ways)
    assert lazy.free_energy > free.free_energy and lazy.learnabilities[1] < 0.06 and 0 < lazy.height < free.height
    # The pull only gets stronger where w_⊥ is short: the minimum over a larger family is lower.
    assert free.free_energy < staircase.solve(50, 300, samples, -0.3, **DECK, **FIXED).free_energy


def test_a_wide_network_of_free_weights_is_lazy():
    for epsilon in (-0.3, 0.2):
        learned = single_index.lazy(
            "erf", single_index.staircase(epsilon), 30, 900.0, readout_variance=2.0, perpendicular="free"
        )[1]
        state = staircase.solve(30, 10**11, 900.0, epsilon, readout_variance=2.0, perpendicular="free")
        np.testing.assert_allclose(state.learnabilities, learned, atol=1e-6)
        assert state.variance == pytest.approx(1 / 30, rel=1e-6) and state.perpendicular == pytest.approx(
            29 / 30, rel=1e-6
        )


def test_the_sample_complexity_of_free_weights():
    lazy = [staircase.samples_to_learn(d, None, -0.3, perpendicular="free") / d**3 for d in (25, 50, 100)]
    np.testing.assert_allclose(lazy, [6.92, 6.08, 5.69], atol=6e-3)
    per_input = np.array([staircase.samples_to_learn(d, 4 * d, -0.3, perpendicular="free") / d for d in (25, 50, 100)])
    fixed = np.array([staircase.samples_to_learn(d, 4 * d, -0.3, **FIXED) / d for d in (25, 50, 100)])
    assert np.ptp(per_input) < 0.1 * per_input[2] and np.all(per_input < 0.9 * fixed)


def test_one_direction_leaves_nothing_that_could_be_free():
    for call in (
        lambda: staircase.action(1.0, [0.1, -0.3], 3.0, 1, perpendicular="free"),
        lambda: staircase.solve(1, 50, 100.0, -0.3, perpendicular="free"),
        lambda: staircase.samples_to_learn(1, None, -0.3, perpendicular="free"),
        lambda: single_index.lazy("erf", [1, 1], 1, 10.0, perpendicular="free"),
    ):
        with pytest.raises(ValueError, match="^dimension must be 2 or more if"):
            call()
    assert staircase.solve(2, 50, 100.0, -0.3, perpendicular="free").learnabilities[0] > 0

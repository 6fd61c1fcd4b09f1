"""lib.fields.overlaps.monte_carlo against quadrature over one and two neurons, the saddle of many, and the prior."""

from functools import cache

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.optimize import root
from scipy.special import roots_genlaguerre
from scipy.stats import chi2, kstest, norm

from lib.common import hmc
from lib.fields.overlaps import monte_carlo as monte_carlo
from lib.fields.overlaps import single_index, staircase

FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it
TARGET = [1.0, -0.3 * 6**0.5]
BASES = {
    "two": ("erf", (1, 3), [1.0, -0.7]),
    "three": ("erf", (1, 3, 5), [1.0, 0.5, -0.3]),
    "relu": ("relu", (0, 1, 2, 4), [0.0, 1.0, 0.4, -0.2]),
}


KINDS = st.sampled_from(["fixed", "free"])


def agree(series, expected, *, floor=0.0):
    found = hmc.summary(series)
    assert np.all(np.abs(found.mean - expected) < 4 * found.error + floor), (found.mean, found.error, expected)
    return found


# --- one and two neurons by quadrature ----------------------------------------------------------------------


def exact(basis, width, dimension, samples, variance, readout, barrier):
    """Mean residuals, m² and outliers by the trapezoidal rule over all overlaps, from the formula of E with numpy's
    determinants.
    """
    activation, degrees, target = BASES[basis]
    m = np.linspace(-7, 7, 561 if width == 1 else 281) * np.sqrt(variance)
    h = single_index.projections(activation, m, variance, degrees=degrees)
    blocks = readout / width * samples * h[:, :, None] * h[:, None, :]
    a = np.eye(len(target)) + (blocks if width == 1 else blocks[:, None] + blocks)
    residual = np.linalg.solve(a, np.broadcast_to(target, a.shape[:-1])[..., None])[..., 0]
    prior = dimension * m**2 / (2 * variance)
    energy = (prior if width == 1 else prior[:, None] + prior) + (
        np.linalg.slogdet(a)[1] + samples * residual @ target
    ) / 2
    weights = np.exp(energy.min() - energy)
    weights /= weights.sum()
    square, out = (weights.reshape(len(m), -1).sum(1) @ column for column in (m**2, np.abs(m) > barrier))
    return (weights[..., None] * residual).reshape(-1, len(target)).sum(0), square, out


@pytest.mark.parametrize("independence", [0.5, 0.0])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("basis", BASES)
def test_one_and_two_neurons_have_the_averages_of_quadrature(basis, width, independence):
    setting = {"weight_variance": 1.4, "readout_variance": 0.8}
    activation, _, target = BASES[basis]
    setting |= {"independence": independence, "every": 5, "barrier": 1.5, **FIXED}
    run = monte_carlo.sample(activation, target, 3, width, 20.0, 8, 4000, 11, **setting)
    residual, square, out = exact(basis, width, 3, 20.0, 1.4, 0.8, 1.5)
    found = agree(run.residuals, residual, floor=1e-4)
    assert np.all(found.error < 0.02)
    agree(run.second_moment, square, floor=1e-4)
    agree(run.outliers, out, floor=1e-4)
    assert out > 0.02  # there is something to see
    assert run.acceptance[0] > 0.1 and (run.acceptance[1] > 0.1) == (independence > 0)


def test_the_histogram_is_the_density_of_one_neuron():
    run = monte_carlo.sample("erf", TARGET, 5, 1, 30.0, 8, 20_000, 3, bins=24, edge=3.0, every=2, **FIXED)
    m = np.linspace(-3, 3, 24 * 50 + 1)
    h = single_index.projections("erf", m)
    u, seen = 30 * (h**2).sum(axis=1), h @ TARGET
    density = np.exp(-5 * m**2 / 2 - np.log1p(u) / 2 + 30 / 2 * 30 * seen**2 / (1 + u))  # Sherman and Morrison
    density /= trapezoid(density, m)
    expected = (
        np.array([trapezoid(density[50 * i : 50 * i + 51], m[50 * i : 50 * i + 51]) for i in range(24)]) * 4
    )  # bins of width 1/4
    assert np.all(
        np.abs(run.histogram.mean(axis=0) - expected) < 5 * run.histogram.std(axis=0, ddof=1) / 8**0.5 + 0.004
    )
    assert run.histogram.sum(axis=1) * 0.25 == pytest.approx(np.ones(8), abs=2e-3)
    assert np.array_equal(run.edges, np.linspace(-3, 3, 25))


# --- free lengths of the perpendicular weights --------------------------------------------------------------


def exact_free(basis, width, dimension, samples, variance, readout, barrier, cells, nodes):
    """Residuals, m², q⊥, outliers and their q⊥: trapezoidal in m, with the barrier between two points, Gauss and
    Laguerre in q⊥.
    """
    activation, degrees, target = BASES[basis]
    m = barrier / (cells + 0.5) * np.arange(-7 * cells, 7 * cells + 1)
    lengths, shares = roots_genlaguerre(nodes, (dimension - 3) / 2)
    overlap, length = (grid.ravel() for grid in np.meshgrid(m, 2 * variance / dimension * lengths, indexing="ij"))
    h = np.stack([single_index.projections(activation, m, q, degrees=degrees) for q in length[:nodes]], axis=1).reshape(
        len(length), -1
    )
    prior = np.log(np.tile(shares, len(m))) - dimension * overlap**2 / (2 * variance)
    gain, total = readout / width * samples, 0
    for other, weight in zip([np.zeros(len(target))] if width == 1 else h, [0.0] if width == 1 else prior):
        a = np.eye(len(target)) + gain * (h[:, :, None] * h[:, None, :] + np.outer(other, other))
        residual = np.linalg.solve(a, np.broadcast_to(target, h.shape)[..., None])[..., 0]
        weights = np.exp(prior + weight - (np.linalg.slogdet(a)[1] + samples * residual @ target) / 2)
        out = np.abs(overlap) > barrier
        total = total + weights @ np.column_stack(
            [residual, overlap**2, length, out, out * length, np.ones(len(overlap))]
        )
    *residual, square, length, out, outlying, norm = total
    return np.array(residual) / norm, square / norm, length / norm, out / norm, outlying / out


@pytest.mark.parametrize("independence", [0.5, 0.0])
@pytest.mark.parametrize(("basis", "width"), [("two", 1), ("three", 1), ("relu", 1), ("two", 2)])
def test_with_free_lengths_one_and_two_neurons_have_the_averages_of_quadrature(basis, width, independence):
    setting = {"weight_variance": 1.4, "readout_variance": 0.8, "perpendicular": "free", "independence": independence}
    activation, _, target = BASES[basis]
    run = monte_carlo.sample(activation, target, 5, width, 20.0, 8, 4000, 12, **setting, every=5, barrier=1.5)
    residual, square, length, out, outlying = exact_free(
        basis, width, 5, 20.0, 1.4, 0.8, 1.5, *((40, 32) if width == 1 else (12, 8))
    )
    agree(run.residuals, residual, floor=2e-4)
    agree(run.second_moment, square, floor=2e-4)
    agree(run.perpendicular, length, floor=2e-4)
    found = run.outlier_perpendicular()
    assert abs(found.mean - outlying) < 4 * found.error + 2e-3
    if width == 1:  # the coarser grid of two does not resolve the barrier
        agree(run.outliers, out, floor=1e-4)
    assert abs(length - 1.4 * 4 / 5) > 0.1  # not the prior's
    assert run.acceptance[0] > 0.1 and (run.acceptance[1] > 0.1) == (independence > 0)


@pytest.mark.parametrize("dimension", [2, 3, 40])
def test_without_data_the_free_lengths_are_the_priors(dimension):
    for independence in (0.5, 0.0):
        setting = {"weight_variance": 1.7, "barrier": 1e-6, "independence": independence, "perpendicular": "free"}
        start = monte_carlo.planted(dimension, 50, 4, 1.0, 1.0, 1, weight_variance=1.7, squared_length=0.3)
        run = monte_carlo.sample("erf", TARGET, dimension, 50, 0.0, 4, 3000, 3, start=start, burn_in=500, **setting)
        length = agree(run.perpendicular, 1.7 * (dimension - 1) / dimension)
        agree(run.second_moment, 1.7 / dimension)
        assert length.error < 0.02 and run.outlier_perpendicular().mean == pytest.approx(float(length.mean), rel=1e-3)
        assert kstest(run.last[1].ravel() * dimension / 1.7, chi2(dimension - 1).cdf).pvalue > 1e-3
    lazy = monte_carlo.sample(
        "erf", TARGET, dimension, 400, 0.0, 4, 1, 3, burn_in=0, weight_variance=1.7, perpendicular="free"
    )
    assert lazy.perpendicular.mean() == pytest.approx(1.7 * (dimension - 1) / dimension, rel=0.1)


@pytest.mark.parametrize("scaled", [200, 600, 1000, 2000])
def test_many_neurons_of_free_length_follow_the_saddle_over_both(scaled):
    state = staircase.solve(50, 1200, 4.0 * scaled, -0.3, readout_variance=2.0, perpendicular="free")
    setting = {
        "readout_variance": 2.0,
        "burn_in": 200,
        "every": 4,
        "barrier": state.barrier or None,
        "perpendicular": "free",
    }
    run = monte_carlo.sample("erf", TARGET, 50, 1200, 4.0 * scaled, 4, 100, 2, **setting)
    learned = hmc.summary(run.learnabilities())
    assert learned.error[1] < 0.003 and learned.mean == pytest.approx(state.learnabilities, abs=0.01)
    assert run.second_moment.mean() == pytest.approx(state.variance, rel=0.03) and run.outliers.mean() == pytest.approx(
        state.outliers, abs=1e-4
    )
    if scaled > 200:  # two outliers or more, which are shorter
        assert (
            run.outlier_perpendicular().mean == pytest.approx(state.perpendicular, abs=0.02)
            and state.perpendicular < 0.4
        )


def test_free_lengths_learn_from_fewer_samples():
    setting = {"readout_variance": 8.0, "burn_in": 300, "every": 4}
    fixed, free = (
        monte_carlo.sample("erf", TARGET, 50, 300, 600.0, 4, 250, 4, **setting, perpendicular=kind)
        for kind in ("fixed", "free")
    )
    assert np.all(fixed.perpendicular.round(12) == 1) and 0.95 < free.perpendicular.mean() < 0.98
    assert free.learnabilities()[..., 1].mean() > 4 * fixed.learnabilities()[..., 1].mean()


def test_phases_of_free_length_stay_apart_under_local_moves():
    outliers = {}
    for fraction in (0.0, 0.003):
        start = monte_carlo.planted(300, 3000, 2, fraction, 1.4, 1, squared_length=0.32)
        for share in (0.0, 0.5):  # at g_K = 30 and 1.25 times the coupling at which the phases are equal for d → ∞
            setting = {
                "readout_variance": 30 * 300 / 8830,
                "start": start,
                "burn_in": 60,
                "independence": share,
                "barrier": 0.9,
                "perpendicular": "free",
            }
            run = monte_carlo.sample("erf", TARGET, 300, 3000, 8830.0, 2, 40, 8, **setting)
            outliers[fraction, share] = 3000 * run.outliers[-1]
    assert np.all(outliers[0.0, 0.0] == 0) and np.all(outliers[0.003, 0.0] >= 1)
    assert np.all(outliers[0.0, 0.5] >= 1)


def test_the_length_of_the_outliers_needs_outliers():
    run = monte_carlo.sample("erf", TARGET, 50, 20, 0.0, 2, 10, 1, barrier=3.0, perpendicular="free")
    assert np.isnan(run.outlying_perpendicular).all()
    with pytest.raises(ValueError, match="barrier must"):
        run.outlier_perpendicular()


# --- the prior ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("activation", "target"), [("erf", TARGET), ("relu", [0.0, 1.0, 0.2, 0.1])])
def test_without_data_the_overlaps_are_the_priors(activation, target):
    run = monte_carlo.sample(
        activation, target, 7, 20, 0.0, 4, 4000, 5, weight_variance=2.0, barrier=1.0, bins=50, **FIXED
    )
    assert np.array_equal(run.residuals, np.broadcast_to(target, run.residuals.shape))
    agree(run.second_moment, 2 / 7)
    agree(run.fourth_moment, 3 * (2 / 7) ** 2)
    agree(run.outliers, 2 * norm.sf(1 / (2 / 7) ** 0.5))
    assert run.kurtosis() == pytest.approx(3, abs=0.1)


# --- many neurons: the saddle, and the numbers of the staircase ---------------------------------------------


@cache
def saddle(dimension, samples, width, readout, epsilon, near):
    """R_3 and ⟨m²⟩ of the saddle, from the decoupled action S(m) as the deck prints it, from a first guess of R_3."""
    m = np.linspace(-4, 4, 4001)
    ratio = m**2 / (1 + 2 * (1 + m**2))
    a = 2 * readout * samples**2 / (np.pi * dimension * width)
    h = np.stack([2 / np.pi**0.5 * np.sqrt(ratio) * np.sign(m), -4 / (6 * np.pi) ** 0.5 * ratio**1.5 * np.sign(m)])

    def density(b, c):
        action = dimension * (m**2 / 2 - a * ratio * (b - 2 * c * ratio) ** 2)
        weights = np.exp(action.min() - action)
        return weights / weights.sum()

    def unsolved(fields):
        moments = readout * (h * density(*fields)) @ h.T
        return fields - np.linalg.solve(np.eye(2) + samples * moments, [1, 6**0.5 * epsilon]) / [1, 6**0.5]

    found = root(unsolved, [0.01, epsilon * (1 - near)], tol=1e-13)
    assert found.success and np.abs(found.fun).max() < 1e-9
    return 1 - found.x[1] / epsilon, density(*found.x) @ m**2


@pytest.mark.parametrize(("scaled", "quoted"), [(200, 0.023), (400, 0.027), (600, 0.121), (1000, 0.408), (2000, 0.675)])
def test_many_neurons_follow_the_saddle(scaled, quoted):
    run = monte_carlo.sample(
        "erf", TARGET, 50, 1200, 4.0 * scaled, 4, 80, 2, readout_variance=2.0, burn_in=200, every=4, **FIXED
    )
    learned = hmc.summary(run.learnabilities()[..., 1])
    assert learned.mean == pytest.approx(quoted, abs=0.003 + 4 * learned.error) and learned.error < 0.005
    if scaled == 600:  # about one outlier: the number of neurons shows
        return
    third, square = saddle(50, 4.0 * scaled, 1200, 2.0, -0.3, quoted)
    assert learned.mean == pytest.approx(third, abs=0.01) and run.second_moment.mean() == pytest.approx(
        square, rel=0.03
    )
    expected = {200: 0, 400: 0, 1000: 0.0033, 2000: 0.0049}[scaled]
    assert run.outliers.mean() == pytest.approx(expected, abs=1e-4)


def test_where_one_outlier_is_expected_or_none_a_narrow_net_learns_less_than_a_wide_one():
    run = monte_carlo.sample(
        "erf", TARGET, 50, 300, 600.0, 4, 250, 4, readout_variance=8.0, burn_in=300, every=4, **FIXED
    )
    agree(run.learnabilities()[..., 1], 0.053, floor=0.002)  # 0.121 at N = 1200, at the same P_e/N and s_a² P_e


@pytest.mark.parametrize(("samples", "quoted"), [(1500, 0.123), (3000, 0.502), (6000, 0.744)])
def test_the_other_sign_of_the_cubic_part(samples, quoted):
    run = monte_carlo.sample(
        "erf", [1.0, 0.3 * 6**0.5], 50, 600, samples, 4, 120, 6, readout_variance=4.0, burn_in=200, every=4, **FIXED
    )
    agree(run.learnabilities()[..., 1], quoted, floor=0.006)


def test_local_moves_keep_phases_apart_that_independent_draws_join():
    outliers = {}
    for fraction in (0.0, 0.003):
        start = monte_carlo.planted(300, 3000, 2, fraction, 1.6, 1)
        for share in (0.0, 0.5):  # at g_K = 30 and 1.25 times the coupling at which the phases are equal
            setting = {"readout_variance": 5 / 7, "start": start, "burn_in": 60, "independence": share, "barrier": 1.0}
            run = monte_carlo.sample("erf", TARGET, 300, 3000, 12_600.0, 2, 40, 8, **setting, **FIXED)
            outliers[fraction, share] = 3000 * run.outliers[-1]
    assert np.all(outliers[0.0, 0.0] == 0) and np.all(outliers[0.003, 0.0] >= 1)
    assert np.all(outliers[0.0, 0.5] >= 1) and np.all(outliers[0.003, 0.5] <= 3)


# --- symmetries and repetition ------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(
    st.integers(2, 30),
    st.integers(1, 12),
    st.floats(0.1, 500),
    st.integers(0, 99),
    st.sampled_from(sorted(BASES)),
    KINDS,
)
def test_the_sign_of_the_target_changes_that_of_the_residual_only(dimension, width, samples, seed, basis, kind):
    activation, _, target = BASES[basis]
    setting = dimension, width, samples, 2, 5, seed
    one, other = (
        monte_carlo.sample(activation, np.multiply(sign, target), *setting, perpendicular=kind) for sign in (1, -1)
    )
    assert np.array_equal(one.last, other.last) and np.array_equal(one.residuals, -other.residuals)
    assert np.all(np.abs(one.residuals).max(axis=-1) <= np.linalg.norm(target))


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 12), st.floats(0.1, 500), st.integers(-3, 3), st.integers(0, 99), KINDS)
def test_a_relu_shares_its_scale_between_weights_and_readouts(width, samples, power, seed, kind):
    target, c = BASES["relu"][2], 4.0**power
    one = monte_carlo.sample("relu", target, 6, width, samples, 2, 5, seed, perpendicular=kind)
    scaled = {"weight_variance": c, "readout_variance": 1 / c, "perpendicular": kind}
    other = monte_carlo.sample("relu", target, 6, width, samples, 2, 5, seed, **scaled)
    np.testing.assert_allclose(other.residuals, one.residuals, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.second_moment, c * one.second_moment, rtol=1e-9)
    np.testing.assert_allclose(other.perpendicular, c * one.perpendicular, rtol=1e-9)
    assert np.array_equal(other.outliers, one.outliers)


@pytest.mark.parametrize("kind", ["fixed", "free"])
def test_runs_repeat_and_chains_do_not_depend_on_their_number(kind):
    seed = np.random.SeedSequence(9)
    one, again = (
        monte_carlo.sample("erf", TARGET, 20, 30, 50.0, 3, 10, given, perpendicular=kind) for given in (seed, seed)
    )
    fewer = monte_carlo.sample("erf", TARGET, 20, 30, 50.0, 2, 10, 9, perpendicular=kind)
    assert np.array_equal(one.last, again.last) and np.array_equal(one.residuals[:, :2], fewer.residuals)
    start = one.last.copy()
    longer = monte_carlo.sample("erf", TARGET, 20, 30, 50.0, 3, 10, 10, start=one.last, burn_in=0, perpendicular=kind)
    assert np.array_equal(start, one.last) and not np.array_equal(longer.last, start)


def test_planted_overlaps_are_where_they_are_said_to_be():
    m = monte_carlo.planted(400, 50, 30, 0.2, 1.7, 2, weight_variance=4.0)
    assert (
        m.shape == (30, 50)
        and np.array_equal(np.abs(m[:, :10]), np.full((30, 10), 1.7))
        and len(np.unique(m[:, :10])) == 2
    )
    assert np.std(m[:, 10:]) == pytest.approx(0.1, rel=4 / (2 * 1200) ** 0.5)
    assert not np.any(np.abs(monte_carlo.planted(400, 50, 30, 0.0, 1.7, 2)) > 0.5)
    overlaps, lengths = monte_carlo.planted(400, 50, 30, 0.2, 1.7, 2, weight_variance=4.0, squared_length=0.6)
    assert np.array_equal(overlaps, m) and np.array_equal(lengths[:, :10], np.full((30, 10), 0.6))
    assert lengths[:, 10:].mean() == pytest.approx(4 * 399 / 400, abs=4 * 4 * (2 / 400 / 1200) ** 0.5)


def test_the_learnabilities_are_those_of_the_components_that_the_target_has():
    run = monte_carlo.sample("relu", BASES["relu"][2], 6, 10, 40.0, 2, 20, 1, **FIXED)
    np.testing.assert_allclose(run.learnabilities(), 1 - run.residuals[..., 1:] / [1.0, 0.4, -0.2], rtol=1e-14)
    assert run.kurtosis() == run.fourth_moment.mean() / run.second_moment.mean() ** 2


# --- bad input ----------------------------------------------------------------------------------------------

CALLS = {
    monte_carlo.planted: {
        "dimension": 5,
        "width": 4,
        "chains": 2,
        "fraction": 0.5,
        "overlap": 1.0,
        "rng": 1,
        "weight_variance": 1.0,
    }
    | {"squared_length": 0.5},
    monte_carlo.sample: {
        **{
            "activation": "erf",
            "target": TARGET,
            "dimension": 5,
            "width": 4,
            "effective_samples": 3.0,
            "chains": 2,
            "steps": 3,
            "rng": 1,
        },
        **{
            "weight_variance": 1.0,
            "readout_variance": 1.0,
            "start": np.zeros((2, 4)),
            "burn_in": 1,
            "every": 1,
            "independence": 0.5,
        },
        **{"barrier": 1.0, "edge": 3.0, "bins": 10, "perpendicular": "fixed"},
    },
}
OVER_ONE, OPTIONAL = [bad for bad in NUMBER if bad is True or bad != 0], [bad for bad in NUMBER if bad is not None]
BAD = {
    "activation": ["tanh", "linear", None, 1],
    "target": [[], [1.0], [0.0, 0.0], [1.0] * 4, [np.nan, 1.0], [1e10, 0.0], [TARGET], "y", None, 1.0],
    **dict.fromkeys(("dimension", "width", "chains", "steps", "every", "bins"), COUNT),
    "effective_samples": [*OVER_ONE, 1e11],
    "weight_variance": NUMBER,
    "readout_variance": NUMBER,
    "rng": SEED,
    "start": [np.zeros((2, 3)), np.zeros(4), np.full((2, 4), np.nan), np.full((2, 4), 31.0), "x", 1.0],
    "burn_in": [-1, 1.5, "3", True],
    "independence": [*OVER_ONE, 1.0, 2.0],
    "fraction": [*OVER_ONE, 1.1],
    "overlap": OVER_ONE,
    "barrier": OPTIONAL,
    "edge": OPTIONAL,
    "squared_length": OPTIONAL,
    "perpendicular": ["both", "Fixed", "", None, True, 1.0, ["free"]],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


@pytest.mark.parametrize(("overlap", "length"), [(0.0, 0.0), (0.0, -1.0), (31.0, 1.0), (0.0, 901.0)])
def test_starts_that_free_lengths_cannot_have_are_refused(overlap, length):
    for bad in (np.full((2, 2, 4), [[[overlap]], [[length]]]), np.full((2, 4), 1.0)):
        with pytest.raises(ValueError, match="start must"):
            monte_carlo.sample("erf", TARGET, 5, 4, 3.0, 2, 3, 1, start=bad, perpendicular="free")


def test_a_weight_of_one_component_has_no_free_length():
    with pytest.raises(ValueError, match="dimension must"):
        monte_carlo.sample("erf", TARGET, 1, 4, 3.0, 2, 3, 1, perpendicular="free")
    with pytest.raises(ValueError, match="dimension must"):
        monte_carlo.planted(1, 4, 2, 0.5, 1.0, 1, squared_length=0.5)

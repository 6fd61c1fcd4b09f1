"""Chains of a SingleIndex against quadrature over one and two neurons, the saddle of many, and the prior."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.special import roots_genlaguerre
from scipy.stats import chi2, kstest, norm, truncnorm

from lib.common import hmc
from lib.fields.overlaps import single_index
from lib.fields.overlaps.coexistence import Limit
from lib.fields.overlaps.single_index import SingleIndex

TARGET = [1.0, -0.3 * 6**0.5]
BASES = {
    "two": ("erf", (1, 3), [1.0, -0.7]),
    "three": ("erf", (1, 3, 5), [1.0, 0.5, -0.3]),
    "relu": ("relu", (0, 1, 2, 4), [0.0, 1.0, 0.4, -0.2]),
}
KINDS = st.sampled_from(["fixed", "free"])
kinds = pytest.mark.parametrize("kind", ["fixed", "free"])


def net(basis, *sizes, **ways):
    return SingleIndex(BASES[basis][0], BASES[basis][2], *sizes, **{"perpendicular": "fixed"} | ways)


def agree(series, expected, *, floor=0.0):
    found = hmc.summary(series)
    assert np.all(np.abs(found.mean - expected) < 4 * found.error + floor), (found.mean, found.error, expected)
    return found


# --- one and two neurons by quadrature ------------------------------------------------------------------------


def exact(basis, width, barrier, cells, nodes):
    """Residuals, m², q⊥, outliers and their q⊥ for d = 5, P_e = 20, σ_w² = 1.4, s_a² = 0.8 from the formula of E with
    NumPy's determinants: trapezoidal in m, with the barrier between two points, Gauss and Laguerre in q⊥, or fixed.
    """
    activation, degrees, target = BASES[basis]
    m = barrier / (cells + 0.5) * np.arange(-7 * cells, 7 * cells + 1)
    lengths, shares = roots_genlaguerre(nodes, 1) if nodes else (np.array([2.5]), np.ones(1))  # (d - 3)/2; σ_w²
    overlap, length = (grid.ravel() for grid in np.meshgrid(m, 2.8 / 5 * lengths, indexing="ij"))
    h = np.stack(
        [single_index.projections(activation, m, q, degrees=degrees) for q in length[: len(lengths)]], axis=1
    ).reshape(len(length), -1)
    prior = np.log(np.tile(shares, len(m))) - 5 * overlap**2 / 2.8
    gain, total = 0.8 / width * 20, 0
    for other, weight in zip([np.zeros(len(target))] if width == 1 else h, [0.0] if width == 1 else prior):
        a = np.eye(len(target)) + gain * (h[:, :, None] * h[:, None, :] + np.outer(other, other))
        residual = np.linalg.solve(a, np.broadcast_to(target, h.shape)[..., None])[..., 0]
        weights = np.exp(prior + weight - (np.linalg.slogdet(a)[1] + 20 * residual @ target) / 2)
        out = np.abs(overlap) > barrier
        columns = [residual, overlap**2, length, out, out * length, np.ones(len(overlap))]
        total = total + weights @ np.column_stack(columns)
    *residual, square, length, out, outlying, norm = total
    return np.array(residual) / norm, square / norm, length / norm, out / norm, outlying / out


@kinds
@pytest.mark.parametrize("independence", [0.5, 0.0])
@pytest.mark.parametrize(("basis", "width"), [("two", 1), ("three", 1), ("relu", 1), ("two", 2)])
def test_one_and_two_neurons_have_the_averages_of_quadrature(basis, width, independence, kind):
    network = net(basis, 5, width, 20.0, weight_variance=1.4, readout_variance=0.8, perpendicular=kind)
    run = network.sample(8, 4000, 12, independence=independence, every=5, barrier=1.5)
    cells, nodes = (40, 32) if width == 1 else (12, 8)
    residual, square, length, out, outlying = exact(basis, width, 1.5, cells, nodes if kind == "free" else 0)
    assert np.all(agree(run.residuals, residual, floor=2e-4).error < 0.02)
    agree(run.second_moment, square, floor=2e-4)
    agree(run.perpendicular, length, floor=2e-4)
    found = run.outlier_perpendicular()
    assert abs(found.mean - outlying) < 4 * found.error + 2e-3
    if width == 1:  # the coarser grid of two does not resolve the barrier
        agree(run.outliers, out, floor=1e-4)
    assert out > 0.004 and (kind == "fixed" or abs(length - 1.4 * 4 / 5) > 0.1)  # there is something to see
    assert run.acceptance[0] > 0.1 and (run.acceptance[1] > 0.1) == (independence > 0)


def test_the_histogram_is_the_density_of_one_neuron():
    network = SingleIndex("erf", TARGET, 5, 1, 30.0, perpendicular="fixed")
    run = network.sample(8, 20_000, 3, bins=24, edge=3.0, every=2)
    m = np.linspace(-3, 3, 24 * 50 + 1)
    h = single_index.projections("erf", m)
    u, seen = 30 * (h**2).sum(axis=1), h @ TARGET
    density = np.exp(-5 * m**2 / 2 - np.log1p(u) / 2 + 30 / 2 * 30 * seen**2 / (1 + u))  # Sherman and Morrison
    density /= trapezoid(density, m)
    parts = [slice(50 * i, 50 * i + 51) for i in range(24)]
    expected = np.array([trapezoid(density[part], m[part]) for part in parts]) * 4  # bins of width 1/4
    bars = 5 * run.histogram.std(axis=0, ddof=1) / 8**0.5 + 0.004
    assert np.all(np.abs(run.histogram.mean(axis=0) - expected) < bars)
    assert run.histogram.sum(axis=1) * 0.25 == pytest.approx(np.ones(8), abs=2e-3)
    assert np.array_equal(run.edges, np.linspace(-3, 3, 25))


# --- the prior ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 3, 40])
@pytest.mark.parametrize("independence", [0.5, 0.0])
def test_without_data_the_free_lengths_are_the_priors(dimension, independence):
    network = SingleIndex("erf", TARGET, dimension, 50, 0.0, weight_variance=1.7, perpendicular="free")
    start, mean = network.planted(4, 1.0, 1.0, 1, squared_length=0.3), 1.7 * (dimension - 1) / dimension
    run = network.sample(4, 3000, 3, start=start, burn_in=500, barrier=1e-6, independence=independence)
    length = agree(run.perpendicular, mean)
    agree(run.second_moment, 1.7 / dimension)
    assert length.error < 0.02 and run.outlier_perpendicular().mean == pytest.approx(float(length.mean), rel=1e-3)
    assert kstest(run.last[1].ravel() * dimension / 1.7, chi2(dimension - 1).cdf).pvalue > 1e-3
    first = replace(network, width=400).sample(4, 1, 3, burn_in=0)
    assert first.perpendicular.mean() == pytest.approx(mean, rel=0.1)


@pytest.mark.parametrize("basis", ["two", "relu"])
def test_without_data_the_overlaps_are_the_priors(basis):
    run = net(basis, 7, 20, 0.0, weight_variance=2.0).sample(4, 4000, 5, barrier=1.0, bins=50)
    assert np.array_equal(run.residuals, np.broadcast_to(BASES[basis][2], run.residuals.shape))
    agree(run.second_moment, 2 / 7)
    agree(run.fourth_moment, 3 * (2 / 7) ** 2)
    agree(run.outliers, 2 * norm.sf(1 / (2 / 7) ** 0.5))
    assert run.kurtosis() == pytest.approx(3, abs=0.1)
    assert run.kurtosis() == run.fourth_moment.mean() / run.second_moment.mean() ** 2


# --- many neurons ---------------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("scaled", [200, 1000])
def test_many_neurons_follow_the_saddle(scaled, kind):
    network = SingleIndex("erf", TARGET, 50, 1200, 4.0 * scaled, readout_variance=2.0, perpendicular=kind)
    state = network.saddle()
    run = network.sample(4, 80, 2, burn_in=200, every=4, barrier=state.barrier or None)
    learned = hmc.summary(run.learnabilities())
    assert learned.error[1] < 0.005 and learned.mean == pytest.approx(state.learnabilities, abs=0.01)
    assert run.second_moment.mean() == pytest.approx(state.variance, rel=0.03)
    assert run.outliers.mean() == pytest.approx(state.outliers, abs=2e-4)
    if scaled > 200:  # two outliers or more, which are shorter if lengths are free
        assert run.outlier_perpendicular().mean == pytest.approx(state.perpendicular, abs=0.02)
        assert state.perpendicular < 0.4 or kind == "fixed"


@kinds
def test_local_moves_keep_phases_apart_that_independent_draws_join(kind):
    limit = Limit(30.0, -0.3, perpendicular=kind)
    network = limit.network(300, 3000, 1.25 * limit.maxwell().load)
    planted = {"overlap": 1.6} if kind == "fixed" else {"overlap": 1.4, "squared_length": 0.32}
    outliers = {}
    for fraction in (0.0, 0.003):
        start = network.planted(2, fraction, rng=1, **planted)
        for share in (0.0, 0.5):
            setting = {"start": start, "burn_in": 60, "independence": share, "barrier": 1.0 if kind == "fixed" else 0.9}
            outliers[fraction, share] = 3000 * network.sample(2, 40, 8, **setting).outliers[-1]
    assert np.all(outliers[0.0, 0.0] == 0) and np.all(outliers[0.003, 0.0] >= 1)
    assert np.all(outliers[0.0, 0.5] >= 1) and (kind == "free" or np.all(outliers[0.003, 0.5] <= 3))


def test_beyond_a_wall_there_is_nothing_and_within_it_all_is_as_before():
    network = SingleIndex("erf", TARGET, 7, 20, 0.0, weight_variance=2.0)
    run = network.sample(4, 3000, 5, wall=0.6, barrier=0.6)
    deviation = (2 / 7) ** 0.5
    assert run.outliers.max() == 0 and np.abs(run.last[0]).max() <= 0.6
    agree(run.second_moment, truncnorm(-0.6 / deviation, 0.6 / deviation, scale=deviation).var())
    opened = network.sample(4, 1, 6, start=run.last, burn_in=200, barrier=0.6)
    assert opened.outliers.min() > 0


def test_the_length_of_the_outliers_needs_outliers():
    run = SingleIndex("erf", TARGET, 50, 20, 0.0, perpendicular="free").sample(2, 10, 1, barrier=3.0)
    assert np.isnan(run.outlying_perpendicular).all()
    with pytest.raises(ValueError, match="barrier must"):
        run.outlier_perpendicular()


# --- symmetries and repetition --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(
    *(st.integers(2, 30), st.integers(1, 12), st.floats(0.1, 500), st.integers(0, 99)),
    *(st.sampled_from(sorted(BASES)), KINDS),
)
def test_the_sign_of_the_target_changes_that_of_the_residual_only(dimension, width, samples, seed, basis, kind):
    network = net(basis, dimension, width, samples, perpendicular=kind)
    one, other = (n.sample(2, 5, seed) for n in (network, replace(network, target=-network.target)))
    assert np.array_equal(one.last, other.last) and np.array_equal(one.residuals, -other.residuals)
    assert np.all(np.abs(one.residuals).max(axis=-1) <= np.linalg.norm(network.target))
    seen = network.target != 0
    np.testing.assert_allclose(one.learnabilities(), 1 - one.residuals[..., seen] / network.target[seen], rtol=1e-14)


@kinds
def test_runs_repeat_and_chains_do_not_depend_on_their_number(kind):
    seed, network = np.random.SeedSequence(9), SingleIndex("erf", TARGET, 20, 30, 50.0, perpendicular=kind)
    one, again, fewer = (network.sample(n, 10, given) for n, given in ((3, seed), (3, seed), (2, 9)))
    assert np.array_equal(one.last, again.last) and np.array_equal(one.residuals[:, :2], fewer.residuals)
    start = one.last.copy()
    longer = network.sample(3, 10, 10, start=one.last, burn_in=0)
    assert np.array_equal(start, one.last) and not np.array_equal(longer.last, start)


def test_planted_overlaps_are_where_they_are_said_to_be():
    network = SingleIndex("erf", TARGET, 400, 50, 3.0, weight_variance=4.0, perpendicular="fixed")
    m = network.planted(30, 0.2, 1.7, 2)
    assert m.shape == (30, 50) and np.array_equal(np.abs(m[:, :10]), np.full((30, 10), 1.7))
    assert len(np.unique(m[:, :10])) == 2 and np.std(m[:, 10:]) == pytest.approx(0.1, rel=4 / (2 * 1200) ** 0.5)
    free = replace(network, perpendicular="free")
    overlaps, lengths = free.planted(30, 0.2, 1.7, 2, squared_length=0.6)
    assert np.array_equal(overlaps, m) and np.array_equal(lengths[:, :10], np.full((30, 10), 0.6))
    assert lengths[:, 10:].mean() == pytest.approx(4 * 399 / 400, abs=4 * 4 * (2 / 400 / 1200) ** 0.5)
    for one, length in ((free, None), (network, 0.6)):
        with pytest.raises(ValueError, match="^squared_length must be given for free lengths alone"):
            one.planted(30, 0.2, 1.7, 2, squared_length=length)


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        *(("fixed", bad) for bad in (np.zeros((2, 3)), np.zeros(4), np.full((2, 4), np.nan), np.full((2, 4), 31.0))),
        *(
            ("free", np.full((2, 2, 4), [[[m]], [[q]]]))
            for m, q in ((0.0, 0.0), (0.0, -1.0), (31.0, 1.0), (0.0, 901.0))
        ),
        ("free", np.full((2, 4), 1.0)),
    ],
)
def test_starts_that_a_network_cannot_have_are_refused(kind, start):
    with pytest.raises(ValueError, match="start must"):
        SingleIndex("erf", TARGET, 5, 4, 3.0, perpendicular=kind).sample(2, 3, 1, start=start)


def test_so_many_samples_that_rounding_loses_the_prior_are_refused():
    with pytest.raises(ValueError, match="^effective_samples must be at most 1e"):
        SingleIndex("erf", TARGET, 5, 4, 1.1e10, perpendicular="fixed").sample(2, 3, 1)

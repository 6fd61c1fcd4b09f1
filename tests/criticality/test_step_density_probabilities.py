"""lib.criticality.step_density against samples, stratified and drawn, and against what must sum to one."""

import numpy as np
import pytest
from bad_input import COUNT, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstwobign, norm
from step_cases import NAMES, figure, maps

from lib.criticality import amplitude, branches, step_density

SETTINGS = [(name, label) for name in NAMES for label in (0, 1)]


@settings(deadline=None, max_examples=60)
@given(m=maps())
def test_branches_and_atom_sum_to_one(m):
    total = step_density.branch_probabilities(m).sum() + step_density.atom(m)
    assert total == pytest.approx(1, abs=1e-10)


@settings(deadline=None, max_examples=30)
@given(m=maps(), seed=st.integers(0, 99))
def test_the_distribution_function_rises_from_zero_to_one_with_a_jump_of_the_atom_at_zero(m, seed):
    x = np.random.default_rng(seed).normal(m.mean, m.deviation, 30)
    found = branches.find(m)
    ends = np.concatenate([found.at_left, found.at_right])
    s = np.sort(np.concatenate([amplitude.amplitude(x, m), ends, [0.0]]))
    rising = step_density.cumulative(s, m)
    assert np.all(np.diff(rising) >= -1e-13)
    largest = 2 * np.abs(ends).max(initial=1)
    np.testing.assert_allclose(step_density.cumulative([-largest, largest], m), [0, 1], atol=1e-10)
    jump = np.diff(step_density.cumulative([-1e-250, 0.0], m))[0]
    assert jump == pytest.approx(step_density.atom(m), abs=1e-10)


@pytest.mark.parametrize(("name", "label"), SETTINGS)
def test_a_million_samples_follow_the_distribution_function(name, label):
    m = figure(name, label, learning_rate=0.2)
    s = np.sort(amplitude.amplitude(np.random.default_rng(5).normal(m.mean, m.deviation, 1_000_000), m))
    atom, live = step_density.atom(m), s[s != 0]
    assert abs(live.size / s.size - (1 - atom)) <= 5 * np.sqrt(atom * (1 - atom) / s.size)
    # Both distribution functions rise, so that between two of the compared samples they part by one stride more at
    # most.
    stride = 250
    seen = live[stride - 1 :: stride]
    exact = (step_density.cumulative(seen, m) - np.where(seen >= 0, atom, 0)) / (1 - atom)
    distance = np.abs(exact - stride * np.arange(1, seen.size + 1) / live.size).max()
    assert kstwobign.sf(np.sqrt(live.size) * distance) > 1e-3
    assert distance + stride / live.size < 5e-3


@pytest.mark.parametrize(("name", "label"), SETTINGS)
def test_a_histogram_follows_the_exact_masses_of_its_bins(name, label):
    m = figure(name, label)
    s = amplitude.amplitude(np.random.default_rng(8).normal(m.mean, m.deviation, 400_000), m)
    size = np.abs(s[s != 0])
    edges = np.geomspace(*np.quantile(size, [0.001, 0.999]), 41)
    exact = np.diff(step_density.cumulative(edges, m) - step_density.cumulative(-edges, m))
    seen, expected = np.histogram(size, edges)[0], 400_000 * exact
    chi_square = ((seen - expected) ** 2 / expected)[expected > 10]
    assert chi_square.size > 30 and chi_square.mean() < 2


@pytest.mark.parametrize(("name", "label"), SETTINGS)
def test_stratified_inputs_have_the_exact_quantiles(name, label):
    m = figure(name, label)
    x = step_density.stratified_inputs(4000, m)
    s = np.sort(amplitude.amplitude(x, m))
    rank = (np.arange(4000) + 1) / 4000
    found = step_density.cumulative(s, m)
    assert np.abs(found - rank)[s != 0].max() < 3 / 4000  # one stratum for each branch
    np.testing.assert_allclose(norm.cdf(x, m.mean, m.deviation), rank - 0.5 / 4000, rtol=1e-12)


def test_atoms_at_the_equilibria():
    found = [
        step_density.atom(figure(name, 0)) for name in ("ReLU + squared", "clip + cross-entropy", "sigmoid + squared")
    ]
    np.testing.assert_allclose(found, [0.52, 0.87, 0], atol=6e-3)
    m = figure("ReLU + squared", 0)
    assert found[0] == pytest.approx(norm.cdf(0, m.weight * m.mean + m.bias, m.weight * m.deviation), rel=1e-12)
    clip = figure("clip + cross-entropy", 1)
    alive = norm.cdf(0.999, clip.weight + clip.bias, clip.weight * 0.25) - norm.cdf(
        0.001, clip.weight + clip.bias, clip.weight * 0.25
    )
    assert step_density.atom(clip) == pytest.approx(1 - alive, rel=1e-12)
    assert step_density.branch_probabilities(figure("sigmoid + squared", 0))[1] == pytest.approx(
        0.0145, abs=1e-4
    )  # beyond the fold


M = figure("ReLU + squared", 1)
CALLS = {
    step_density.atom: {"step_map": M},
    step_density.branch_probabilities: {"step_map": M},
    step_density.cumulative: {"s": [[0.1, 0.0]], "step_map": M},
    step_density.stratified_inputs: {"count": 10, "step_map": M},
}
BAD = {"step_map": ["step", None, 1.0], "s": [np.nan, [np.inf], "s", None, 1j], "count": COUNT}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

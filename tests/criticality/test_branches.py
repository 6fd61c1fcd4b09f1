"""branches against folds known in closed form, the monotonicity that it promises, and a count of preimages on both
sides of a fold."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from step_cases import NAMES, figure, maps

from lib.criticality import _steps, amplitude, branches, compositions, step_density


@settings(deadline=None, max_examples=50)
@given(m=maps(), seed=st.integers(0, 99))
def test_every_branch_is_monotone_and_of_one_sign_and_together_they_cover_what_is_alive(m, seed):
    found, rng = branches.find(m), np.random.default_rng(seed)
    inner = found.left[:, None] + np.diff([found.left, found.right], axis=0).T * np.sort(
        rng.random((found.left.size, 40)), axis=1
    )
    s = amplitude.amplitude(inner, m)
    moves = np.diff(np.column_stack([found.at_left, s, found.at_right]), axis=1)
    rises = (found.at_right > found.at_left)[:, None]
    rounding = 1e-12 * np.abs(s).max(axis=1, initial=0, keepdims=True)
    assert np.all(np.where(rises, moves, -moves) >= -rounding)
    assert np.all(s * s[:, :1] >= 0) and np.all(found.left[1:] >= found.right[:-1])
    x = rng.uniform(m.mean - 14 * m.deviation, m.mean + 14 * m.deviation, 400)
    covered = np.any((found.left[:, None] <= x) & (x <= found.right[:, None]), axis=0)
    dead = np.any(
        [(low <= m.weight * x + m.bias) & (m.weight * x + m.bias <= high) for low, high in m.composition.dead(m.label)]
        or [x > np.inf],
        axis=0,
    )
    assert np.array_equal(covered, ~dead)


@settings(deadline=None, max_examples=50)
@given(m=maps(), seed=st.integers(0, 99))
def test_preimages_of_the_step_of_an_input_hold_that_input_and_cause_that_step(m, seed):
    x = np.random.default_rng(seed).normal(m.mean, m.deviation, 20)
    s, s1, _ = amplitude.derivatives(x, m)
    x, s, s1 = x[s != 0], s[s != 0], s1[s != 0]
    roots = branches.preimages(s, m)
    reached = ~np.isnan(roots)
    np.testing.assert_allclose(
        amplitude.amplitude(roots[reached], m),
        np.broadcast_to(s, roots.shape)[reached],
        rtol=1e-9,
        atol=1e-14 * m.learning_rate,
    )
    distance = np.nanmin(np.abs(roots - x), axis=0, initial=np.inf)
    assert np.all(
        distance <= 1e-9 + 1e-12 * np.abs(s) / np.maximum(np.abs(s1), 1e-300) + 1e-6 * (np.abs(s1) < 1e-6 * np.abs(s))
    )


@settings(deadline=None, max_examples=50)
@given(
    product=st.floats(0.05, 3).filter(lambda p: abs(p - 0.5) > 1e-3),
    w=st.floats(0.2, 8),
    signs=st.sampled_from([(1, 1), (1, -1), (-1, 1)]),
)
def test_pure_exponential_is_one_to_one_from_a_product_of_one_half_on(product, w, signs):
    c = signs[0] * product / w
    m = amplitude.step_map(compositions.named("exponential", rate=c), signs[1] * w, 0.3, 0, deviation=3.0)
    folds = branches.find(m).folds
    cw = c * signs[1] * w
    if product >= 0.5:
        assert folds.size == 0 and branches.find(m).left.size == 1
    else:
        roots = (-1 + np.array([-1, 1]) * np.sqrt(1 - 4 * cw**2)) / (2 * cw)
        np.testing.assert_allclose(folds, np.sort(roots[np.abs(roots) < 42]), rtol=1e-9)
        assert branches.find(m).left.size == folds.size + 1


@pytest.mark.parametrize(("w", "b"), [(0.3, 0.5), (-0.3, 0.5), (0.3, 0.3), (0.4, 0.2)])
def test_folds_of_the_clipped_line(w, b):
    clip = compositions.named("clip + cross-entropy", epsilon=1e-3)
    for label, fold in ((0, -w / (1 - b)), (1, w / b)):
        found = branches.find(amplitude.step_map(clip, w, b, label)).folds
        live = 1e-3 < w * fold + b < 1 - 1e-3
        np.testing.assert_allclose(found, [fold] if live else [], rtol=1e-12)


@pytest.mark.parametrize(
    ("w", "b", "label"), [(0.1, 0.5, 0), (0.1, 0.4, 1), (-0.05, 0.3, 1), (0.3, 0.5, 0), (0.4, 0.5, 0), (0.1, 1.4, 1)]
)
def test_folds_of_the_squared_line(w, b, label):
    m = amplitude.step_map(compositions.named("ReLU + squared"), w, b, label, mean=-0.5)
    roots = np.roots([2 * w, b - label, w])
    expected = np.sort([x.real for x in roots if np.isreal(x) and w * x.real + b > 0 and abs(x.real + 0.5) < 3.5])
    assert (expected.size == 0) if abs(b - label) < 2 * np.sqrt(2) * abs(w) else True
    np.testing.assert_allclose(branches.find(m).folds, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "label", "folds"),
    [("sigmoid + squared", 0, [0.546]), ("sigmoid + squared", 1, [0.459]), ("sigmoid + cross-entropy", 0, [])],
)
def test_folds_at_the_equilibria_and_the_number_of_preimages_on_both_sides(name, label, folds):
    m = figure(name, label)
    found = branches.find(m)
    np.testing.assert_allclose(found.folds, folds, atol=5e-4)
    for fold in found.folds:
        edge = amplitude.amplitude(fold, m)
        counts = (~np.isnan(branches.preimages(edge * np.array([1 - 1e-12, 0.9, 0.01, 1 + 1e-12, 1.1]), m))).sum(axis=0)
        assert counts.tolist() == [2, 2, 2, 0, 0]


def test_misclassified_ones_of_cross_entropy_have_two_weak_folds():
    m = figure("sigmoid + cross-entropy", 1)
    low, high = branches.find(m).folds
    assert ndtr((high - 1) / 0.25) == pytest.approx(1e-3, rel=0.1)  # a thousandth of the data lies there
    between = amplitude.amplitude([low, high], m).mean()
    assert np.isfinite(branches.preimages([between], m)).sum() == 3


@pytest.mark.parametrize("name", NAMES)
def test_ends_where_the_amplitude_vanishes_are_zero_and_small_steps_have_inputs(name):
    for label in (0, 1):
        m = figure(name, label)
        found = branches.find(m)
        if name.startswith("ReLU"):
            assert np.count_nonzero(found.at_left == 0) + np.count_nonzero(found.at_right == 0) == (
                1 if label == 0 else 2
            )
            sign = -1.0 if label == 0 else 1.0
            assert np.isfinite(branches.preimages([sign * 1e-14], m)).sum() == 1
        else:
            assert np.all(found.at_left != 0) and np.all(found.at_right != 0)


def test_a_double_zero_of_the_weight_step_splits_and_nothing_alive_is_empty():
    line = compositions.named("ReLU + quartic")
    m = amplitude.step_map(
        line, 0.5, 1.0, 1, mean=0.2, observable="weight"
    )  # ẇ = -4x(x/2)³: a zero of order four at x = 0
    found = branches.find(m)
    assert (
        found.left.size == 2
        and found.right[0] == pytest.approx(0, abs=1e-9)
        and found.at_right[0] == found.at_left[1] == 0
    )
    dead = amplitude.step_map(line, 1.0, -100.0, 0)
    assert branches.find(dead).left.shape == branches.find(dead).folds.shape == (0,)
    assert branches.preimages([1.0, 2.0], dead).shape == (0, 2)


def test_reach_bounds_the_branches_and_a_pole_in_it_may_not_overflow():
    m = figure("sigmoid + squared", 0)
    near = branches.find(m, reach=1.0)
    np.testing.assert_allclose([near.left, near.right], [[-0.25], [0.25]], rtol=1e-13)
    with pytest.raises(ValueError, match="^step_map must keep s inside"):
        branches.find(amplitude.step_map(compositions.named("exponential", rate=40.0), 10.0, 0.0, 0))


def test_the_branches_of_a_map_are_looked_for_once(monkeypatch):
    looked, derivatives = [], _steps.derivatives
    monkeypatch.setattr(_steps, "derivatives", lambda x, m: looked.append(np.size(x)) or derivatives(x, m))
    m = amplitude.step_map(compositions.named("sigmoid + squared"), 7.125, -3.0, 1)  # of no other test
    step_density.magnitude_density([0.1, 0.2], m)
    assert sum(size > 10_000 for size in looked) == 1  # for both signs
    found = branches.find(amplitude.step_map(compositions.named("sigmoid + squared"), 7.125, -3.0, 1))
    assert sum(size > 10_000 for size in looked) == 1  # an equal map
    with pytest.raises(ValueError, match="read-only"):
        found.left[0] = 0.0
    assert branches.find(m, reach=3.0).left[0] != found.left[0]


M = figure("sigmoid + squared", 0)
CALLS = {branches.find: {"step_map": M, "reach": 14.0}, branches.preimages: {"s": [0.1, -0.2], "step_map": M}}
BAD = {"step_map": ["step", None, 1.0], "reach": NUMBER, "s": [0.1, [0.0], [np.nan], "s", None, [[0.1]], [0.1, 0.0]]}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

"""mds against the points that the distances come from, principal components, and the doubly centred matrix written
out."""

import numpy as np
import pytest
from bad_input import MATRIX, exercised
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.representations import mds, pairwise

POINTS = np.random.default_rng(4).standard_normal((30, 3)) * [3.0, 1.0, 0.3]


def centred(squared):
    projector = np.eye(len(squared)) - 1 / len(squared)
    return -0.5 * projector @ squared @ projector


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 15), st.integers(1, 4), st.integers(0, 99), st.floats(-60, 60))
def test_distances_come_back_in_enough_dimensions(count, size, seed, decades):
    points = np.random.default_rng(seed).standard_normal((count, size)) * 10**decades
    squared = pairwise.squared_distances(points)
    found = mds.scaling(squared, dimensions=min(size, count))
    np.testing.assert_allclose(pairwise.squared_distances(found.coordinates), squared, atol=1e-11 * squared.max())
    assert np.abs(found.coordinates.mean(axis=0)).max() <= 1e-12 * np.sqrt(squared.max())


def test_two_dimensions_are_the_principal_components_and_the_spectrum_is_that_of_the_gram_matrix():
    found = mds.scaling(pairwise.squared_distances(POINTS))
    _, size, axes = np.linalg.svd(POINTS - POINTS.mean(axis=0), full_matrices=False)
    components = (POINTS - POINTS.mean(axis=0)) @ axes[:2].T
    np.testing.assert_allclose(np.abs(found.coordinates), np.abs(components), atol=1e-12)
    np.testing.assert_allclose(found.eigenvalues[:3], size**2, rtol=1e-12)
    assert np.all(found.eigenvalues[3:] == 0)
    np.testing.assert_allclose((found.coordinates**2).sum(axis=0), found.eigenvalues[:2], rtol=1e-12)


def test_the_sign_does_not_hang_on_rounding():
    found = mds.scaling(pairwise.squared_distances(POINTS)).coordinates
    largest = np.abs(found).argmax(axis=0)
    assert np.all(found[largest, [0, 1]] > 0)
    # two ends of equal size, with rounding in favour of either: the first is the positive one
    line = np.array([-1.0, 0.0, 1.0])
    for nudge in (1e-13, -1e-13):
        points = (line + [nudge, 0, 0])[:, None]
        np.testing.assert_allclose(
            mds.scaling(pairwise.squared_distances(points), dimensions=1).coordinates[:, 0], -line, atol=1e-12
        )


def test_order_motion_and_unit_of_the_points_change_nothing_else():
    found = mds.scaling(pairwise.squared_distances(POINTS)).coordinates
    order = np.random.default_rng(1).permutation(30)
    np.testing.assert_allclose(
        mds.scaling(pairwise.squared_distances(POINTS[order])).coordinates, found[order], atol=1e-12
    )
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    np.testing.assert_allclose(
        mds.scaling(pairwise.squared_distances(POINTS @ turn + 5)).coordinates, found, atol=1e-11
    )
    np.testing.assert_allclose(
        mds.scaling(1e-12 * pairwise.squared_distances(POINTS)).coordinates, 1e-6 * found, atol=1e-17
    )


def test_flat_directions_are_zero_and_negative_ones_refused():
    merged = np.array([[0, 0, 2, 2], [0, 0, 2, 2], [2, 2, 0, 0], [2, 2, 0, 0.0]])  # classes that have merged: a line
    found = mds.scaling(merged)
    np.testing.assert_allclose(
        found.coordinates, np.sqrt(0.5) * np.array([[1, 0], [1, 0], [-1, 0], [-1, 0]]), atol=1e-12
    )
    assert np.all(found.coordinates[:, 1] == 0)
    assert np.all(mds.scaling(np.zeros((3, 3))).coordinates == 0)
    # pair by pair √(XY) is no metric: 0 and 2 merge, but 1 is at 2 from one and at 4 from the other
    broken = pairwise.low_weights([[0.0], [1.0], [3.0]], [[0.0], [2.0], [0.0]])
    np.testing.assert_allclose(
        mds.scaling(broken, dimensions=1).eigenvalues, np.linalg.eigvalsh(centred(broken))[::-1], atol=1e-12
    )
    assert mds.scaling(broken, dimensions=1).eigenvalues[2] < -0.01
    with pytest.raises(ValueError, match=r"^dimensions must be at most 2: further eigenvalues are negative"):
        mds.scaling(broken, dimensions=3)


CALLS = {mds.scaling: {"squared_distances": np.ones((3, 3)) - np.eye(3), "dimensions": 2}}
NOT_DISTANCES = [np.eye(3), [[0.0]], [[0, -1.0], [-1, 0]], [[0, 1.0], [2.0, 0]]]
BAD = {"squared_distances": MATRIX + NOT_DISTANCES, "dimensions": [0, 4, -1, 1.0, "2", None, True]}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

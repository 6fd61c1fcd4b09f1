"""lib.representations.tasks: the data sets have the separations, symmetries and targets that they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.representations import pairwise, tasks


@settings(deadline=None, max_examples=20)
@given(st.floats(1e-3, 1e3), st.floats(0, 1e3), st.floats(-5, 5), st.floats(-5, 5))
def test_two_points_have_the_squared_separations(x, y, first_input, first_target):
    inputs, targets = tasks.two_points(x, y, first_input=first_input, first_target=first_target)
    assert pairwise.squared_distances(inputs)[0, 1] == pytest.approx(x, rel=1e-6)
    assert pairwise.squared_distances(targets)[0, 1] == pytest.approx(y, rel=1e-6, abs=1e-12)
    assert inputs[0, 0] == first_input < inputs[1, 0] and targets[0, 0] == first_target <= targets[1, 0]


def test_exclusive_or_is_the_parity_of_the_inputs():
    inputs, targets = tasks.exclusive_or()
    assert ["".join(str(int(bit)) for bit in row) for row in inputs] == ["00", "10", "01", "11"]
    assert targets.ravel().tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_a_blob_is_brightest_where_its_centre_is_and_asks_for_one_coordinate(width):
    data = tasks.blobs(9, pixels=9, width=width)
    pictures = data.inputs[:, :-2].reshape(-1, 9, 9)  # row, column
    grid = np.linspace(-1, 1, 9)
    row, column = np.unravel_index(pictures.reshape(len(pictures), -1).argmax(axis=1), (9, 9))
    np.testing.assert_allclose(np.stack([grid[column], grid[row]], axis=1), data.centres, atol=1e-12)
    assert np.all(pictures.max(axis=(1, 2)) == 1)
    np.testing.assert_array_equal(data.targets[:, 0], [*data.centres[:81, 0], *data.centres[81:, 1]])
    np.testing.assert_array_equal(data.inputs[:, -2:], np.eye(2)[data.context])
    np.testing.assert_array_equal(data.inputs[:81, :-2], data.inputs[81:, :-2])
    across, along = grid - data.centres[5, 0], grid[:, None] - data.centres[5, 1]
    np.testing.assert_allclose(pictures[5], np.exp(-(across**2 + along**2) / (2 * width**2)), rtol=1e-13)


def test_normalised_pictures_sum_to_one_and_keep_their_shape():
    raw, normalised = tasks.blobs(3).inputs, tasks.blobs(3, normalised=True).inputs
    np.testing.assert_allclose(normalised[:, :-2].sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(normalised[:, :-2] * raw[:, :-2].sum(axis=1, keepdims=True), raw[:, :-2], rtol=1e-13)
    np.testing.assert_array_equal(normalised[:, -2:], raw[:, -2:])


def test_spreads_are_mean_variances_along_the_lines_of_the_grid_and_the_distance_of_the_means():
    data = tasks.blobs(4)
    points = np.random.default_rng(3).standard_normal((32, 5))
    table = pairwise.squared_distances(points)
    first, second = points.reshape(2, 4, 4, 5)  # horizontal, vertical; the first context asks for the horizontal one
    relevant = (first.var(axis=0).mean(axis=0).sum() + second.var(axis=1).mean(axis=0).sum()) / 2
    irrelevant = (first.var(axis=1).mean(axis=0).sum() + second.var(axis=0).mean(axis=0).sum()) / 2
    gap = ((first.mean(axis=(0, 1)) - second.mean(axis=(0, 1))) ** 2).sum()
    found = tasks.spreads(table, data.centres, data.context)
    np.testing.assert_allclose(found, [relevant, irrelevant, gap], rtol=1e-12)
    for name, changed in (
        ("squared_distances", (-table, data.centres, data.context)),
        ("centres", (table, data.centres[1:], data.context)),
        ("context", (table, data.centres, 0 * data.context)),
    ):
        with pytest.raises(ValueError, match=f"^{name} must "):
            tasks.spreads(*changed)

"""The matrix root against its definition; the other functions are tested through those who use them."""

import numpy as np
import pytest

from lib.common import linalg


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_root_of_any_rank(rank):
    factor = np.random.default_rng(rank).normal(size=(4, 5, rank))
    matrix = factor @ np.swapaxes(factor, 1, 2)  # (4, 5, 5)
    root = linalg.psd_root(matrix)
    assert root @ np.swapaxes(root, 1, 2) == pytest.approx(matrix, rel=1e-12, abs=1e-12)
    assert np.array_equal(root[2], linalg.psd_root(matrix[2]))


def test_root_takes_a_negative_eigenvalue_for_rounding():
    assert linalg.psd_root(np.diag([-1e-17, 4.0])).tolist() == [[0, 0], [0, 2]]


def test_the_top_pair_of_a_matrix_is_that_of_the_dense_solver():
    for size in (1, 2, 63, 64, 200):
        a = np.random.default_rng(size).standard_normal((size, size))
        matrix = a @ a.T
        value, vector = linalg.top(matrix)
        values, vectors = np.linalg.eigh(matrix)
        assert value == pytest.approx(values[-1], rel=1e-12)
        assert abs(vector @ vectors[:, -1]) == pytest.approx(1, abs=1e-9)
        np.testing.assert_array_equal(linalg.top(matrix)[1], vector)

"""Roots and leading modes of matrices against their definitions and dense solvers."""

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


@pytest.mark.parametrize("size", [1, 2, 63, 64, 200])
def test_the_top_pair_of_a_matrix_is_that_of_the_dense_solver(size):
    a = np.random.default_rng(size).standard_normal((size, size))
    matrix = a @ a.T
    value, vector = linalg.top(matrix)
    values, vectors = np.linalg.eigh(matrix)
    assert value == pytest.approx(values[-1], rel=1e-12) and vector.sum() > 0
    assert vector @ vectors[:, -1] * np.sign(vectors[:, -1].sum()) == pytest.approx(1, abs=1e-9)
    np.testing.assert_array_equal(linalg.top(matrix)[1], vector)


@pytest.mark.parametrize("size", [2, 5, 12])
def test_the_largest_mode_of_a_positive_map_is_that_of_its_whole_matrix(size):
    """G -> Σ_k B_k G B_k as a matrix on all entries of G, by Kronecker products, between roots of the metric."""
    draw = np.random.default_rng(size).standard_normal((3, size, size))
    factors = draw + np.swapaxes(draw, 1, 2)
    metric = 1 + np.abs(factors).sum(axis=0)
    whole = sum(np.kron(b, b) for b in factors) / np.sqrt(np.outer(metric.ravel(), metric.ravel()))
    found = linalg.largest(lambda g: sum(b @ g @ b for b in factors), metric)
    assert found == pytest.approx(np.linalg.eigvalsh(whole)[-1], rel=1e-9)


def test_slices_cover_the_samples_in_pieces_that_the_memory_holds():
    pieces = linalg.slices(10, linalg.CHUNK // 3)
    assert [n for piece in pieces for n in range(10)[piece]] == list(range(10)) and range(10)[pieces[0]] == range(3)
    assert len(linalg.slices(2, 2 * linalg.CHUNK)) == 2

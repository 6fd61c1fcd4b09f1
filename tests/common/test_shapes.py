"""Declared shapes are seen by the tests, and a wrong one is."""

from dataclasses import dataclass

import numpy as np
import pytest
import shaped

from lib.common.shapes import Array


def test_what_is_returned_has_the_declared_shape():
    def pair(n, m) -> tuple[Array["n n"], Array[" n"]]:
        return np.zeros((n, n)), np.zeros(m)

    one = shaped.checked(pair, tuple[Array["n n"], Array[" n"]], "pair")
    assert one(2, 2)[0].shape == (2, 2)
    with pytest.raises(AssertionError, match="pair returns"):
        one(2, 3)


def test_fields_have_the_declared_shapes():
    @dataclass(frozen=True, eq=False)
    class Blocks:
        q: Array["... K K"]
        r: Array["... K M"]

    Blocks.__init__ = shaped.checked_fields(Blocks)
    Blocks(np.zeros((5, 2, 2)), np.zeros((5, 2, 3)))
    with pytest.raises(AssertionError, match="Blocks.r is an array"):
        Blocks(np.zeros((5, 2, 2)), np.zeros((5, 3, 2)))


def test_a_float_may_be_declared_beside_an_array():
    one = shaped.checked(lambda x: x, float | Array[" n"], "one")
    assert one(1.0) == 1.0 and one(np.zeros(2)).size == 2
    with pytest.raises(AssertionError, match="one returns"):
        one(np.zeros((2, 2)))

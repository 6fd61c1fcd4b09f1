"""One object for eigenvalues: what it holds, its sums, and what it refuses."""

import numpy as np
import pandas
import pytest

from lib.common.spectrum import Spectrum


def test_sums_count_every_eigenvalue_as_often_as_it_occurs():
    spectrum = Spectrum([3.0, 1.0, 0.5], [1, 2, 4])
    whole = np.repeat([3.0, 1.0, 0.5], [1, 2, 4])
    assert spectrum.dimension == 7 and spectrum.trace == whole.sum()
    assert spectrum.shares.tolist() == [1 / 7, 2 / 7, 4 / 7]
    mean_one = spectrum.normalized()
    assert mean_one.trace == pytest.approx(7, rel=1e-15)
    assert mean_one.eigenvalues == pytest.approx(spectrum.eigenvalues / whole.mean(), rel=1e-15)
    assert spectrum.scaled(2.0).trace == 2 * spectrum.trace and spectrum.scaled(2.0).dimension == 7


def test_power_law_has_the_decay_that_its_slope_shows():
    values = Spectrum.power_law(1000, decay=1.7).eigenvalues
    assert np.diff(np.log(values)) / np.diff(np.log(np.arange(1, 1001))) == pytest.approx(np.full(999, -1.7), rel=1e-9)


def test_eigenvalues_are_read_as_a_spectrum_and_cannot_be_changed():
    own = Spectrum([1.0, 0.5])
    assert Spectrum.read("spectrum", own) is own
    read = Spectrum.read("spectrum", [1.0, 0.5])
    assert read.multiplicities.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        read.eigenvalues[0] = 2.0


def test_rounding_of_an_eigensolver_below_zero_is_zero():
    rows = np.random.default_rng(0).standard_normal((3, 40))
    values = np.linalg.eigvalsh(rows.T @ rows)
    assert values.min() < 0
    read = Spectrum.read("spectrum", pandas.Series(values)).eigenvalues
    np.testing.assert_array_equal(read, np.maximum(values, 0))


@pytest.mark.parametrize("wrong", [[], [0.0], [-1.0, 2.0], [-1e-11, 1.0], [-1e-16], "x", None, [[1.0]], [np.nan], 3.0])
def test_what_is_no_spectrum_is_refused(wrong):
    with pytest.raises(ValueError, match="^modes must be a Spectrum"):
        Spectrum.read("modes", wrong)
    with pytest.raises(ValueError, match="^multiplicities must"):
        Spectrum([1.0, 2.0], [1.0])

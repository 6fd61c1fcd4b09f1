"""A mean and its error against the laws of known numbers."""

import numpy as np
import pytest
from scipy.stats import sem

from lib.common.estimate import Estimate


def test_mean_and_error_of_several_components():
    values = np.random.default_rng(1).normal(size=(7, 2, 3))
    mean, error = Estimate.of(values)
    assert mean == pytest.approx(values.mean(axis=0), rel=1e-14) and error == pytest.approx(sem(values), rel=1e-13)


def test_error_is_the_spread_of_means():
    """Means of eight unit Gaussians scatter by 8^-1/2, and the mean square of their errors says so."""
    mean, error = Estimate.of(np.random.default_rng(2).normal(size=(8, 40_000)))
    assert mean.std() == pytest.approx(8**-0.5, rel=0.015)
    assert np.mean(error**2) == pytest.approx(1 / 8, rel=0.015)


@pytest.mark.parametrize("values", [1.0, [1.0], np.ones((2, 0)), [1.0, np.nan], "nonsense"])
def test_refuses(values):
    with pytest.raises(ValueError, match="^values must"):
        Estimate.of(values)

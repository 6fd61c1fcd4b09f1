"""A mean and its error against the laws of known numbers."""

import operator

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


@pytest.mark.parametrize("other", [2, np.float64(2.0), np.ones(2), Estimate(1.0, 0.5), (1.0, 0.5)])
def test_arithmetic_is_refused_and_does_not_join_tuples(other):
    estimate = Estimate(3.0, 0.1)
    for operation in (operator.add, operator.sub, operator.mul, operator.truediv):
        for pair in ((estimate, other), (other, estimate)):
            with pytest.raises(TypeError, match="^an Estimate has no arithmetic: unpack it"):
                operation(*pair)


@pytest.mark.filterwarnings("error")
def test_sigmas_without_an_error():
    assert Estimate(2.0, 0.0).sigmas(2.0) == 0 and Estimate(1.0, 0.0).sigmas(2.0) == -np.inf
    assert Estimate(np.ones(3), np.array([0.0, 0.0, 0.5])).sigmas([1.0, 0.0, 0.0]).tolist() == [0, np.inf, 2]


@pytest.mark.parametrize("values", [1.0, [1.0], np.ones((2, 0)), [1.0, np.nan], "nonsense"])
def test_refuses(values):
    with pytest.raises(ValueError, match="^values must"):
        Estimate.of(values)

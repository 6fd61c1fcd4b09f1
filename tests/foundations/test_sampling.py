"""lib.foundations.sampling against NumPy's mean and scatter, full enumeration, and closed forms of averages."""

from itertools import product

import numpy as np
import pytest
from scipy.special import erf

from lib.foundations import gaussian, sampling


def g(z):
    return erf(z / np.sqrt(2))


def product_of_units(z):
    return g(z[:, 0]) * g(z[:, 1])


def test_monte_carlo_is_repeatable_chunked_and_has_an_honest_error():
    c = np.array([[1.3, 0.4], [0.4, 0.6]])
    many = 3 * sampling.CHUNK + 17

    def both(z):
        return np.stack([product_of_units(z), z[:, 0] ** 2], axis=1)

    first, again = (sampling.monte_carlo_average(both, c, many, rng=3) for _ in range(2))
    assert np.array_equal(first.mean, again.mean) and first.error.shape == (2,)
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(3)))
    variances, axes = np.linalg.eigh(c)
    values = both(rng.standard_normal((many, 2)) @ (axes * np.sqrt(variances)).T)
    assert first.mean == pytest.approx(values.mean(axis=0), rel=1e-12)
    assert first.error == pytest.approx(values.std(axis=0, ddof=1) / np.sqrt(many), rel=1e-12)
    estimates = [sampling.monte_carlo_average(product_of_units, c, 2000, seed) for seed in range(400)]
    scores = np.array([(e.mean - gaussian.erf_i2(c)) / e.error for e in estimates])
    assert (scores**2).mean() == pytest.approx(1, abs=5 * np.sqrt(2 / 400))


def test_monte_carlo_accepts_a_singular_covariance():
    estimate = sampling.monte_carlo_average(lambda z: (z[:, 0] - z[:, 1]) ** 2, np.ones((2, 2)), 1000, rng=0)
    assert estimate.mean < 1e-28


def test_sign_sum_equals_the_sum_over_all_signs():
    signs = np.array(list(product([-1, 1], repeat=7)))
    x, y = signs.sum(axis=1) / np.sqrt(7), (signs[:, :5].sum(axis=1) - signs[:, 5:].sum(axis=1)) / np.sqrt(7)
    assert sampling.sign_sum_average(lambda x, y: g(x) * np.exp(y), 5, 2) == pytest.approx(
        (g(x) * np.exp(y)).mean(), rel=1e-12
    )


def test_sign_sum_tends_to_the_gaussian_average_as_one_over_the_dimension():
    exact = gaussian.erf_i2([[1, 0.5], [0.5, 1]])
    gaps = [sampling.sign_sum_average(lambda x, y: g(x) * g(y), 3 * d // 4, d // 4) - exact for d in (200, 400, 800)]
    assert np.diff(np.log(np.abs(gaps))) == pytest.approx(-np.log(2), rel=0.01)


NOT_AVERAGED = [1, lambda z: "text", lambda z: z[:5, 0], lambda z: 1.0, lambda z: 1e80 + z[:, 0]]
NOT_CONSTANT = [2, lambda x, y: "text", lambda x, y: x[0], lambda x, y: x * np.nan]


@pytest.mark.parametrize(("averaged", "constant"), [*zip(NOT_AVERAGED, NOT_CONSTANT, strict=False)])
def test_functions_that_give_no_values_are_refused_by_name(averaged, constant):
    with pytest.raises(ValueError, match="^function must"):
        sampling.monte_carlo_average(averaged, np.eye(2), 100, rng=0)
    with pytest.raises(ValueError, match="^function must"):
        sampling.sign_sum_average(constant, 3, 1)

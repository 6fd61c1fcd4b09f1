"""lib.foundations.sampling against NumPy's mean and scatter, full enumeration, and closed forms of averages."""

from itertools import product

import numpy as np
import pytest
from bad_input import COUNT, MATRIX, SEED, refused
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


def no_function(*_):
    return "text"


MONTE_CARLO = {"function": product_of_units, "covariance": np.eye(2), "samples": 100, "rng": 0}
SIGNS = {"function": np.multiply, "agreeing": 3, "opposing": 1}
NOT_AVERAGED = [1, no_function, lambda z: z[:5, 0], lambda z: 1.0, lambda z: z[:, 0] * np.inf, lambda z: 1e80 + z[:, 0]]
NOT_CONSTANT = [2, no_function, lambda x, y: x[0], lambda x, y: x / 0.0 * 0]
INDEFINITE = [[[1, 2], [2, 1]], [[1, 0.5], [0, 1]]]
SQUARE = [value for value in MATRIX if np.shape(value) != (3, 3)]  # any square size will do


@pytest.mark.parametrize(
    ("function", "call", "name", "values"),
    [
        (sampling.monte_carlo_average, MONTE_CARLO, "function", NOT_AVERAGED),
        (sampling.monte_carlo_average, MONTE_CARLO, "covariance", SQUARE + INDEFINITE),
        (sampling.monte_carlo_average, MONTE_CARLO, "samples", [1, *COUNT]),
        (sampling.monte_carlo_average, MONTE_CARLO, "rng", SEED),
        (sampling.sign_sum_average, SIGNS, "function", NOT_CONSTANT),
        (sampling.sign_sum_average, SIGNS, "agreeing", COUNT),
        (sampling.sign_sum_average, SIGNS, "opposing", COUNT),
    ],
)
def test_bad_arguments_are_refused_by_name(function, call, name, values):
    function(**call)
    for value in values:
        with np.errstate(all="ignore"):
            refused(call, function, name, value)

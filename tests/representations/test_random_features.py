"""lib.representations.random_features against Monte Carlo, quadrature, the derivative, and random networks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from lib.representations import random_features
from lib.representations.random_features import RandomStarts
from lib.representations.two_points import TwoPoints

SIZE = st.floats(0.1, 5)
DRAWS = 200_000


@pytest.mark.parametrize("ratio", [1.0, 0.25, 3.0])
def test_the_law_is_that_of_random_starts(ratio):
    x, y, gain = 1.5, 0.5, 0.8
    encoder, decoder = np.random.default_rng(3).normal(gain, gain, (2, DRAWS))
    high, low = x * encoder - ratio * x * decoder, np.sqrt(ratio * x * y)
    ends = np.sort(high / 2 + np.sqrt(high**2 / 4 + low**2))
    rank, law = (np.arange(DRAWS) + 0.5) / DRAWS, RandomStarts(x, y, gain, ratio)
    for values in (ends, np.sort(law.sample(DRAWS, 4))):
        assert np.abs(law.cumulative(values) - rank).max() < 5e-3  # 2.2 / √DRAWS at the level of one in ten thousand
    printed = RandomStarts(x, ratio * y, gain).cumulative(ends)  # the law for ρ = 1 with this A_low
    assert ratio == 1 or np.abs(printed - rank).max() > 0.1


@settings(deadline=None, max_examples=25)
@given(SIZE, SIZE, SIZE, SIZE, SIZE)
def test_density_belongs_to_the_cumulative_law(h, x, y, gain, ratio):
    law, step = RandomStarts(x, y, gain, ratio), 1e-5 * h
    slope = np.diff(law.cumulative([h - step, h + step]))[0] / (2 * step)
    assert law.density(h) == pytest.approx(slope, rel=1e-5, abs=1e-9)
    values = law.cumulative(np.geomspace(1e-6, 1e6, 400))
    assert np.all(np.diff(values) >= 0) and values[0] < 1e-9 and values[-1] > 1 - 1e-9


def test_density_is_normalised_and_small_gains_make_a_step():
    density = RandomStarts(1.0, 1.0, 0.7, 0.4).density
    total = quad(lambda u: np.exp(u) * density(np.exp(u)), -30, 8, epsabs=1e-11, limit=200)[0]
    assert total == pytest.approx(1, abs=1e-9)
    low = np.sqrt(0.6 * 2.0 * 0.5)
    below, above = RandomStarts(2.0, 0.5, 1e-3, 0.6).cumulative([0.95 * low, 1.05 * low])
    assert below < 1e-6 and above > 1 - 1e-6
    np.testing.assert_array_equal(RandomStarts(1.0, 1.0, 1.0).density([5e-324, 1e308]), 0)
    # identical targets: the starts with A_high < 0 end at zero
    assert RandomStarts(1.0, 0.0, 1.0).cumulative(1e-12) == pytest.approx(0.5, abs=1e-9)


def test_sample_uses_the_end_of_the_dynamics():
    ends = RandomStarts(1.0, 2.0, 0.3, 0.5).sample(5, 7)
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence(7)))
    encoder, decoder = 0.3 * (1 + random.standard_normal((2, 5)))
    positive = [each for each in zip(encoder, decoder, ends) if min(each) > 0]
    for a, jacobian, end in positive:  # b = a × squared gain of the decoder
        start = [a, a * jacobian, a * jacobian]
        assert end == pytest.approx(TwoPoints(start, 1.0, 2.0, 0.5, 1.0).final_distance, rel=1e-12)
    assert len(positive) > 1


@pytest.mark.parametrize("slope", [1.0, 0.01, 0.0])
def test_squared_gains_are_means_over_random_networks(slope):
    widths, gain, runs = [1, 8, 8, 5], 1.2, 20_000
    random = np.random.default_rng(1)
    h, squares = np.full((runs, 1), 0.7), []
    for before, after in zip(widths, widths[1:]):
        u = np.einsum("rij,rj->ri", random.normal(0, gain * np.sqrt(2 / (before + after)), (runs, after, before)), h)
        h = np.where(u > 0, u, slope * u)
        squares.append((h**2).sum(axis=1) / 0.49)
    squares = np.array(squares)
    error = squares.std(axis=1) / np.sqrt(runs)
    found = random_features.squared_gains(widths, gain, slope=slope)
    assert np.all(np.abs(squares.mean(axis=1) - found) < 4 * error) and np.all(error < 0.03 * found)


def test_squared_gains_count_the_gain_of_amplitudes_twice():
    deep = random_features.squared_gains([500] * 21, 1.1)
    np.testing.assert_allclose(deep, 1.1 ** (2 * np.arange(1, 21)), rtol=1e-12)
    leaky = random_features.squared_gains([1, 500], 1.0, slope=0.01)[0]
    assert leaky == pytest.approx(1000 / 501 * (1 + 1e-4) / 2, rel=1e-14)


def test_what_has_no_law_is_refused():
    with pytest.raises(ValueError, match=r"^gain must keep the result"):
        random_features.squared_gains([9] * 500, 1e3)
    with pytest.raises(ValueError, match=r"^gain must keep A_high"):
        RandomStarts(1e200, 1.0, 1e200)
    for bad in ([3], [3, 2.5], []):
        with pytest.raises(ValueError, match="^widths must hold the numbers"):
            random_features.squared_gains(bad, 1.0)

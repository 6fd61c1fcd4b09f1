"""lib.representations.random_features against Monte Carlo, quadrature, the derivative, and random networks."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from lib.representations import random_features, two_points_limits

SIZE = st.floats(0.1, 5)
DRAWS = 200_000


@pytest.mark.parametrize("ratio", [1.0, 0.25, 3.0])
def test_the_law_is_that_of_random_starts(ratio):
    x, y, gain = 1.5, 0.5, 0.8
    random = np.random.default_rng(3)
    encoder, decoder = random.normal(gain, gain, (2, DRAWS))
    high, low = x * encoder - ratio * x * decoder, np.sqrt(ratio * x * y)
    ends = np.sort(high / 2 + np.sqrt(high**2 / 4 + low**2))
    rank = (np.arange(DRAWS) + 0.5) / DRAWS
    found = random_features.cumulative(ends, x, y, gain, rate_ratio=ratio)
    assert np.abs(found - rank).max() < 5e-3  # 2.2 / √DRAWS at the level of one in ten thousand
    printed = random_features.cumulative(ends, x, ratio * y, gain)  # the law for ρ = 1 with this A_low
    assert ratio == 1 or np.abs(printed - rank).max() > 0.1
    drawn = np.sort(random_features.sample(DRAWS, x, y, gain, 4, rate_ratio=ratio))
    assert np.abs(random_features.cumulative(drawn, x, y, gain, rate_ratio=ratio) - rank).max() < 5e-3


@settings(deadline=None, max_examples=25)
@given(SIZE, SIZE, SIZE, SIZE, SIZE)
def test_density_belongs_to_the_cumulative_law(h, x, y, gain, ratio):
    law = {"rate_ratio": ratio}
    step = 1e-5 * h
    slope = np.diff(random_features.cumulative([h - step, h + step], x, y, gain, **law))[0] / (2 * step)
    density = random_features.density(h, x, y, gain, **law)
    assert density == pytest.approx(slope, rel=1e-5, abs=1e-9)
    grid = np.geomspace(1e-6, 1e6, 400)
    values = random_features.cumulative(grid, x, y, gain, **law)
    assert np.all(np.diff(values) >= 0) and values[0] < 1e-9 and values[-1] > 1 - 1e-9


def test_density_is_normalised_and_small_gains_make_a_step():
    total = quad(
        lambda u: np.exp(u) * random_features.density(np.exp(u), 1.0, 1.0, 0.7, rate_ratio=0.4),
        -30,
        8,
        epsabs=1e-11,
        limit=200,
    )[0]
    assert total == pytest.approx(1, abs=1e-9)
    low = np.sqrt(0.6 * 2.0 * 0.5)
    below, above = random_features.cumulative([0.95 * low, 1.05 * low], 2.0, 0.5, 1e-3, rate_ratio=0.6)
    assert below < 1e-6 and above > 1 - 1e-6
    assert random_features.density(5e-324, 1.0, 1.0, 1.0) == 0 and random_features.density(1e308, 1.0, 1.0, 1.0) == 0
    # identical targets: the starts with A_high < 0 end at zero
    assert random_features.cumulative(1e-12, 1.0, 0.0, 1.0) == pytest.approx(0.5, abs=1e-9)


def test_sample_repeats_with_its_seed_and_uses_the_end_of_the_dynamics():
    one, again = (random_features.sample(5, 1.0, 2.0, 0.3, 7, rate_ratio=0.5) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    encoder, decoder = 0.3 * (
        1 + np.random.Generator(np.random.SFC64(np.random.SeedSequence(7))).standard_normal((2, 5))
    )
    for a, jacobian, end in zip(encoder, decoder, one):
        if a > 0 and jacobian > 0:  # b = a × squared gain of the decoder
            start = [a, a * jacobian, a * jacobian]
            assert end == pytest.approx(two_points_limits.fixed_point(start, 1.0, 2.0, 0.5)[0], rel=1e-12)
    assert np.sum((encoder > 0) & (decoder > 0)) > 1


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


# --- bad input: every public function, every argument ---------------------------------------------

LAW = {"input_distance": 1.0, "target_distance": 1.0, "gain": 0.5, "rate_ratio": 1.0}
CALLS = {
    random_features.cumulative: {"hidden": [0.5], **LAW},
    random_features.density: {"hidden": [0.5], **LAW},
    random_features.sample: {"count": 3, "rng": 1, **LAW},
    random_features.squared_gains: {"widths": [1, 4], "gain": 1.0, "slope": 0.1},
}
BAD = {
    "hidden": [[0.0], [-1.0], [np.nan], "a", None, True],
    "count": COUNT,
    "rng": SEED,
    "widths": [[], [3], [3, 0], [3, 2.0], 4, "ab", None, [True, True]],
    "slope": [1.1, -1.1, np.nan, "1", None, [0.1], True],
    "input_distance": NUMBER,
    "gain": NUMBER,
    "rate_ratio": NUMBER,
    "target_distance": [-1.0, np.nan, np.inf, "1", None, [0.1], True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_gains_beyond_the_floating_point_range_are_refused():
    with pytest.raises(ValueError, match=r"^gain must keep the factors"):
        random_features.squared_gains([9] * 500, 1e3)
    with pytest.raises(ValueError, match=r"^gain must keep A_high"):
        random_features.cumulative(1.0, 1e200, 1.0, 1e200)

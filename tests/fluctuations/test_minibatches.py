"""lib.fluctuations.minibatches against counts, plain loops, and averages over all minibatches."""

import numpy as np
import pytest
from bad_input import COUNT, SEED, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_data import digits, every_batch, listed_moments, small

from lib.common import linalg
from lib.fluctuations import minibatches, regression

DIGITS = regression.fit(*digits())


@settings(max_examples=30)
@given(samples=st.integers(2, 30), share=st.floats(0, 1), seed=st.integers(0, 1000), epochs=st.booleans())
def test_samples_are_distinct_in_a_minibatch_and_in_an_epoch(samples, share, seed, epochs):
    batch = 1 + int(share * (samples - 1))
    series = minibatches.draw(samples, batch, 12, seed, epochs=epochs)
    assert series.shape == (12, batch) and series.min() >= 0 and series.max() < samples
    together = samples // batch if epochs else 1
    for start in range(0, 12, together):
        seen = series[start : start + together].ravel()
        assert len(set(seen.tolist())) == len(seen)


@pytest.mark.parametrize("how", [{}, {"replacement": True}, {"epochs": True}])
def test_every_minibatch_is_equally_likely(how):
    draws = 60_000
    series = minibatches.draw(5, 2, draws, 1, **how)
    counts = np.zeros((5, 5))
    np.add.at(counts, (series[:, 0], series[:, 1]), 1)
    possible = np.ones((5, 5)) if "replacement" in how else 1 - np.eye(5)
    expected = draws * possible / possible.sum()
    assert np.all(np.abs(counts - expected) <= 4.5 * np.sqrt(expected))


def test_replacement_allows_more_than_all_samples_and_a_seed_repeats():
    series = minibatches.draw(3, 50, 4, 2, replacement=True)
    assert series.shape == (4, 50) and set(series.ravel().tolist()) == {0, 1, 2}
    np.testing.assert_array_equal(series, minibatches.draw(3, 50, 4, 2, replacement=True))
    assert np.any(series != minibatches.draw(3, 50, 4, 3, replacement=True))


@pytest.mark.parametrize("replacement", [False, True])
def test_size_of_moment_fluctuations_by_listing_and_by_sampling(replacement):
    x, y = small(6, 3, 1)
    problem, batches = regression.fit(x, y), every_batch(6, 2, replacement)
    measured = minibatches.moment_fluctuations(problem, batches)
    full = x.T @ x / 6
    expected = np.linalg.norm(listed_moments(x, y, batches)[0] - full, axis=(1, 2)) / np.linalg.norm(full)
    np.testing.assert_allclose(measured, expected, atol=1e-12)
    predicted = minibatches.expected_fluctuation(problem, 2, replacement=replacement)
    assert np.sqrt(np.mean(measured**2)) == pytest.approx(predicted, rel=1e-12)
    sampled = minibatches.moment_fluctuations(DIGITS, minibatches.draw(1797, 5, 1000, 4, replacement=replacement))
    predicted = minibatches.expected_fluctuation(DIGITS, 5, replacement=replacement)
    assert np.sqrt(np.mean(sampled**2)) == pytest.approx(predicted, rel=0.05)


def test_noise_correlation_is_the_plain_average_whatever_the_size_of_its_pieces(monkeypatch):
    x, y = small(12, 3, 2)
    problem, batches = regression.fit(x, y), minibatches.draw(12, 4, 23, 5)
    noise = listed_moments(x, y, batches)[1] @ problem.basis
    expected = [np.mean([noise[n + q].T @ noise[n] for n in range(23 - q)], axis=0) for q in (0, 2, 7)]
    np.testing.assert_allclose(minibatches.noise_correlation(problem, batches, [0, 2, 7]), expected, atol=1e-13)
    monkeypatch.setattr(linalg, "CHUNK", 60)  # 5 steps at a time
    np.testing.assert_allclose(minibatches.noise_correlation(problem, batches, [0, 2, 7]), expected, atol=1e-13)


def test_independent_minibatches_are_uncorrelated_to_the_sampling_floor():
    steps = 10_000
    measured = minibatches.noise_correlation(DIGITS, minibatches.draw(1797, 5, steps, 3), [0, 1, 2, 10])
    ratios = np.linalg.norm(measured[1:], axis=(1, 2)) / np.linalg.norm(measured[0])
    floor = minibatches.correlation_floor(DIGITS, 5, steps)
    assert np.all((floor / 2 < ratios) & (ratios < 2 * floor))
    expected = regression.noise_moment(DIGITS, 5)
    assert np.linalg.norm(measured[0] - expected) < 0.03 * np.linalg.norm(expected)


def test_shuffling_in_epochs_anticorrelates_the_noise():
    samples, batch = 1797, 100
    measured = minibatches.noise_correlation(DIGITS, minibatches.draw(samples, batch, 10_000, 3, epochs=True), [0, 1])
    slope = np.sum(measured[1] * measured[0]) / np.sum(measured[0] ** 2)
    together = 1 - 1 / (samples // batch)  # the part of neighbours that lie in one epoch
    assert slope == pytest.approx(-batch / (samples - batch) * together, rel=0.15)


def test_inputs_of_one_size_do_not_fluctuate():
    problem = regression.fit([[0.1], [-0.1], [0.1]], [[1.0], [2.0], [0.0]])
    assert minibatches.expected_fluctuation(problem, 1) < 1e-14


def test_no_noise_has_no_floor():
    with pytest.raises(ValueError, match="^batch must leave some gradient noise"):
        minibatches.correlation_floor(regression.fit([[1.0], [2.0]], [[1.0], [3.0]]), 2, 10)


# --- bad input: every public function, every argument ---------------------------------------------

PROBLEM = regression.fit(*small(6, 2, 2))
BATCHES = np.array([[0, 1], [2, 5], [4, 3]])
CALLS = {
    minibatches.draw: {"samples": 6, "batch": 2, "steps": 3, "rng": 1, "replacement": False, "epochs": False},
    minibatches.moment_fluctuations: {"problem": PROBLEM, "batches": BATCHES},
    minibatches.expected_fluctuation: {"problem": PROBLEM, "batch": 2, "replacement": False},
    minibatches.noise_correlation: {"problem": PROBLEM, "batches": BATCHES, "lags": [0, 2]},
    minibatches.correlation_floor: {"problem": PROBLEM, "batch": 2, "steps": 5, "replacement": False},
}
BAD = {
    "problem": [None, "problem", np.eye(2)],
    "samples": [*COUNT, 1],
    "batch": [*COUNT, 7],
    "steps": COUNT,
    "rng": SEED,
    "replacement": [None, 0, 1, "yes"],
    "epochs": [None, 0, 1, "yes"],
    "batches": [
        BATCHES - 1,
        BATCHES + 1,
        BATCHES * 1.0,
        BATCHES[0],
        BATCHES[:0],
        BATCHES > 2,
        [[0], [1, 2]],
        "batches",
        None,
    ],
    "lags": [[], [1, 0], [-1], [0.5], [3], [[0]], "lags", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_epochs_and_replacement_exclude_each_other():
    with pytest.raises(ValueError, match="^epochs must be False with replacement"):
        minibatches.draw(6, 2, 3, 1, replacement=True, epochs=True)

"""lib.fluctuations.minibatches against counting, listing, plain averages and the theory of independent draws."""

import numpy as np
import pytest
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


@pytest.mark.parametrize("batch", [1, 2, 4])  # fewer and more samples than inputs
def test_size_of_moment_fluctuations_by_listing(batch):
    x, y = small(6, 3, 1)
    problem, batches = regression.fit(x, y), every_batch(6, batch, False)
    full = x.T @ x / 6
    expected = np.linalg.norm(listed_moments(x, y, batches)[0] - full, axis=(1, 2)) / np.linalg.norm(full)
    np.testing.assert_allclose(minibatches.moment_fluctuations(problem, batches), expected, atol=1e-12)


def test_noise_correlation_is_the_plain_average_whatever_the_size_of_its_pieces(monkeypatch):
    x, y = small(12, 3, 2)
    problem, batches = regression.fit(x, y), minibatches.draw(12, 4, 23, 5)
    noise = listed_moments(x, y, batches)[1] @ problem.basis
    expected = [np.mean([noise[n + q].T @ noise[n] for n in range(23 - q)], axis=0) for q in (0, 2, 7)]
    np.testing.assert_allclose(minibatches.noise_correlation(problem, batches, [0, 2, 7]), expected, atol=1e-13)
    np.testing.assert_allclose(minibatches.noise_correlation(problem, batches, 2), expected[1], atol=1e-13)
    monkeypatch.setattr(linalg, "CHUNK", 60)  # 5 steps at a time
    np.testing.assert_allclose(minibatches.noise_correlation(problem, batches, [0, 2, 7]), expected, atol=1e-13)
    np.testing.assert_allclose(minibatches.noise_correlation(problem, batches, 2), expected[1], atol=1e-13)


def test_noise_correlation_of_images_is_the_plain_average():
    """Small minibatches of many inputs, which are summed by the pairs of samples that meet."""
    rng = np.random.default_rng(0)
    problem = regression.fit(rng.standard_normal((90, 60)), rng.standard_normal((90, 10)))
    batches = minibatches.draw(90, 3, 40, 5)
    assert 50 * 3**2 < 10 * 60  # or it would be the sum over steps
    kicks = np.einsum("tbp,tbn->tpn", problem.residuals[batches], problem.inputs[batches]) / 3
    for q, found in zip((0, 3), minibatches.noise_correlation(problem, batches, [0, 3])):
        expected = np.einsum("tpi,tpj->ij", kicks[q:], kicks[: 40 - q]) / (40 - q)
        np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())


def test_independent_minibatches_are_uncorrelated_to_the_sampling_floor():
    steps = 10_000
    measured = minibatches.noise_correlation(DIGITS, minibatches.draw(1797, 5, steps, 3), [0, 1, 2, 10])
    ratios = np.linalg.norm(measured[1:], axis=(1, 2)) / np.linalg.norm(measured[0])
    floor = DIGITS.correlation_floor(5, steps)
    assert np.all((floor / 2 < ratios) & (ratios < 2 * floor))
    expected = DIGITS.noise_moment(5)
    assert np.linalg.norm(measured[0] - expected) < 0.03 * np.linalg.norm(expected)


def test_shuffling_in_epochs_anticorrelates_the_noise():
    samples, batch = 1797, 100
    measured = minibatches.noise_correlation(DIGITS, minibatches.draw(samples, batch, 10_000, 3, epochs=True), [0, 1])
    slope = np.sum(measured[1] * measured[0]) / np.sum(measured[0] ** 2)
    together = 1 - 1 / (samples // batch)  # the part of neighbours that lie in one epoch
    assert slope == pytest.approx(-batch / (samples - batch) * together, rel=0.15)


BATCHES = np.array([[0, 1], [2, 5], [4, 3]])


@pytest.mark.parametrize(
    "batches", [BATCHES - 1, BATCHES + 1, BATCHES * 1.0, BATCHES[0], BATCHES[:0], BATCHES > 2, [[0], [1, 2]], None]
)
def test_series_that_is_none_of_the_data_is_refused(batches):
    with pytest.raises(ValueError, match="^batches must be an integer array"):
        minibatches.moment_fluctuations(regression.fit(*small(6, 2, 2)), batches)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="^epochs must be False with replacement"):
        minibatches.draw(6, 2, 3, 1, replacement=True, epochs=True)
    with pytest.raises(ValueError, match="^batch must be at most N = 6"):
        minibatches.draw(6, 7, 3, 1)
    for lags in ([0.5], [3]):
        with pytest.raises(ValueError, match="^lags must hold integers below the number of steps, 3"):
            minibatches.noise_correlation(regression.fit(*small(6, 2, 2)), BATCHES, lags)

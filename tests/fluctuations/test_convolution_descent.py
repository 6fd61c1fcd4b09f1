"""lib.fluctuations.convolution against a plain loop of PyTorch's gradients, and the law of the two norms."""

import numpy as np
import pytest
from bad_input import COUNT, MATRIX, NUMBER, exercised
from convolution_data import SIZES, by_torch, close, drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.fluctuations import convolution, minibatches


def test_descent_is_a_loop_of_gradient_steps():
    taps, weights, images, targets = drawn(5, 3, 2)
    batches = minibatches.draw(7, 3, 20, rng=1)
    run = convolution.descend(taps, weights, images, targets, 0.01, batches, record_every=5)
    c, w, moved = taps, weights, np.zeros(2)
    for step, chosen in enumerate(batches, start=1):
        by_taps, by_weights = by_torch(c, w, images[chosen], targets[chosen])
        c, w = c - 0.01 * by_taps, w - 0.01 * by_weights
        moved += [0.01**2 * (by_taps**2).sum(), 0.01**2 * (by_weights**2).sum()]
        if step % 5 == 0:
            close(run.taps[step // 5], c, 1e-11)
            close(run.weights[step // 5], w, 1e-11)
            close([run.taps_moved[step // 5], run.weights_moved[step // 5]], moved, 1e-11)
    assert run.steps.tolist() == [0, 5, 10, 15, 20]
    close(run.taps[0], taps)
    close(run.weights[0], weights)
    assert run.taps_moved[0] == run.weights_moved[0] == 0


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(SIZES), st.integers(1, 7), st.floats(1e-4, 0.02), st.integers(0, 100))
def test_norms_change_by_the_difference_of_squared_steps(sizes, batch, rate, seed):
    start = drawn(*sizes, seed=seed)
    run = convolution.descend(*start, rate, minibatches.draw(7, batch, 300, rng=seed))
    difference = (run.weights**2).sum(axis=(1, 2)) - (run.taps**2).sum(axis=(1, 2))
    error = difference - difference[0] - (run.weights_moved - run.taps_moved)
    size = run.weights_moved[-1] + run.taps_moved[-1]
    assert np.abs(error).max() < 1e-9 * size + 1e-13 * np.abs(difference[0])


def test_the_drift_over_a_span_of_time_falls_as_the_rate_and_arguments_are_left_alone():
    taps, weights, images, targets = drawn(4, 2, 3)
    copies = [each.copy() for each in (taps, weights, images, targets)]
    batches = minibatches.draw(7, 2, 4000, rng=2)
    drifts = []
    for rate, steps in ((0.002, 1000), (0.001, 2000), (0.0005, 4000)):  # one span of time: the drift falls as the rate
        run = convolution.descend(taps, weights, images, targets, rate, batches[:steps], record_every=steps)
        drifts.append(run.weights_moved[-1] - run.taps_moved[-1])
    assert np.divide(drifts[1:], drifts[:-1]) == pytest.approx(0.5, abs=0.1)
    for given_, copy in zip((taps, weights, images, targets), copies):
        assert np.array_equal(given_, copy)


# --- bad input: every argument --------------------------------------------------------------------

TAPS, WEIGHTS, IMAGES, TARGETS = drawn(3, 2, 2, samples=20)
CALLS = {
    convolution.descend: {
        "taps": TAPS,
        "weights": WEIGHTS,
        "images": IMAGES,
        "targets": TARGETS,
        "learning_rate": 0.01,
        "batches": [[0, 1], [2, 3]],
        "record_every": 1,
    },
}
BAD = {
    "taps": [each for each in MATRIX if np.shape(each) != (3, 3)] + [np.full((2, 2), 1e200)],
    "weights": [*MATRIX, np.ones((2, 5)), np.ones((0, 4)), np.full((2, 4), 1e200)],
    "images": [*MATRIX, np.ones((20, 3, 2)), np.ones((0, 3, 3)), np.full((20, 3, 3), np.nan), np.ones((20, 1, 1))],
    "targets": [*MATRIX, np.ones((20, 3)), np.ones((19, 2)), np.full((20, 2), 1e200)],
    "learning_rate": [*NUMBER, 1e120],
    "batches": [[], [0, 1], [[0, 20]], [[-1, 0]], [[0.5, 1]], [[0], [1, 2]], [[]], "batches", None, [[True, False]]],
    "record_every": [*COUNT, 3],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_the_good_call_passes():
    convolution.descend(**CALLS[convolution.descend])

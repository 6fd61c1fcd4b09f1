"""Minibatch descent that trains the layer of :mod:`lib.fluctuations.convolution` and the one behind it.

The gradients are those of han2021, eqs. (C3) and (C4), with averages over a minibatch.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from lib.common import checks
from lib.fluctuations.convolution import checked_layers, pixel_table


@dataclass(frozen=True, eq=False)
class Descent:
    """One run of minibatch descent on filter and weights, recorded R times, first at the start."""

    steps: np.ndarray  # (R,)  integers: steps done when recorded
    taps: np.ndarray  # (R, c, c)  C
    weights: np.ndarray  # (R, p, h)  W
    taps_moved: np.ndarray  # (R,)  sum of |step of C|² = ε²‖g_C‖² over the steps done
    weights_moved: np.ndarray  # (R,)  sum of |step of W|² = ε²‖g_W‖²


@njit(cache=True, nogil=True)
def _descend(taps, weights, images, targets, pixels, rate, batches, record_every, all_taps, all_weights, moved):
    """Every step in place; both gradients are taken before anything moves."""
    places, size = pixels.shape
    outputs, batch = len(weights), batches.shape[1]
    hidden, back = np.empty(places), np.empty(places)
    by_taps, by_weights = np.zeros(size), np.zeros(weights.shape)  # steps of this minibatch
    far_taps, far_weights = 0.0, 0.0
    for step in range(len(batches)):
        for b in range(batch):
            x, y = images[batches[step, b]], targets[batches[step, b]]
            for j in range(places):
                hidden[j] = 0.0
                back[j] = 0.0
                for i in range(size):
                    hidden[j] += taps[i] * x[pixels[j, i]]
            for k in range(outputs):
                error = -y[k]
                for j in range(places):
                    error += weights[k, j] * hidden[j]
                error *= rate / batch
                for j in range(places):
                    by_weights[k, j] += error * hidden[j]
                    back[j] += error * weights[k, j]
            for j in range(places):
                for i in range(size):
                    by_taps[i] += back[j] * x[pixels[j, i]]
        for i in range(size):
            taps[i] -= by_taps[i]
            far_taps += by_taps[i] ** 2
            by_taps[i] = 0.0
        for k in range(outputs):
            for j in range(places):
                weights[k, j] -= by_weights[k, j]
                far_weights += by_weights[k, j] ** 2
                by_weights[k, j] = 0.0
        if (step + 1) % record_every == 0:
            record = (step + 1) // record_every
            all_taps[record], all_weights[record] = taps, weights
            moved[0, record], moved[1, record] = far_taps, far_weights


def descend(taps, weights, images, targets, learning_rate, batches, *, record_every=1):
    """Minibatch gradient descent on filter and weights together:  C' = C - ε g_C,  W' = W - ε g_W.

    The loss of every minibatch is blind to  C -> sC, W -> W/s, so  <W, g_W> = <C, g_C>, and each step changes
    ‖W‖² - ‖C‖² by exactly  ε²(‖g_W‖² - ‖g_C‖²),  the difference of the squared steps: a law that is not in the source.
    `taps`, `weights`, `images`, `targets`: as in ``convolution.gradients``, C and W at the start; `learning_rate`:
    ε > 0; `batches` (steps, m), steps >= 1: as ``minibatches.draw`` returns it; `record_every`: record one step in so
    many, a divisor of the number of steps.  Returns a Descent.

    >>> run = descend([[2.0]], [[3.0]], [[[1.0]]], [[10.0]], 0.1, [[0], [0]])
    >>> (run.weights**2 - run.taps**2).ravel().round(12).tolist()  # as (5 + run.weights_moved - run.taps_moved)
    [5.0, 4.2, 4.0040448]
    """
    taps, weights, images, targets = checked_layers(taps, weights, images, targets)
    rate = checks.number("learning_rate", learning_rate, above=0)
    series = checks.entries("batches", batches, at_least=0, at_most=len(images) - 1, ndim=2)  # (steps, m)
    if series.size == 0 or np.any(series != np.rint(series)):
        wanted = f"hold one or more minibatches of samples, integers from 0 to {len(images) - 1}"
        checks.fail("batches", wanted, batches)
    if len(series) % (record_every := checks.integer("record_every", record_every)):
        checks.fail("record_every", f"divide the number of steps, {len(series)}", record_every)
    records = len(series) // record_every + 1
    all_taps, all_weights = np.empty((records, taps.size)), np.empty((records, *weights.shape))  # (R, c²), (R, p, h)
    moved = np.zeros((2, records))  # (2, R)
    all_taps[0], all_weights[0] = taps.ravel(), weights
    pixels = np.ascontiguousarray(pixel_table(images.shape[1], len(taps)))  # (h, c²)
    data = (images.reshape(len(images), -1), targets, pixels)  # (N, d), (N, p), (h, c²)
    settings = (rate, series.astype(np.int64), record_every)
    _descend(taps.ravel(), weights, *data, *settings, all_taps, all_weights, moved)
    if not all(np.isfinite(last).all() for last in (all_taps[-1], all_weights[-1], moved[:, -1])):
        wanted = f"keep the descent inside the floating-point range for {len(series)} steps"
        checks.fail("learning_rate", wanted, learning_rate)
    return Descent(record_every * np.arange(records), all_taps.reshape(records, *taps.shape), all_weights, *moved)

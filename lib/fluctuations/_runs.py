"""What every simulation shares: how minibatches are drawn, and its length, blocks and records."""

import numpy as np

from lib.common import checks
from lib.common.compiled import loops
from lib.fluctuations import _sums


@loops
def fill(order, chosen, step, replacement, epochs, random):
    """Fill `chosen` with the next minibatch.  Distinct samples: a Fisher-Yates shuffle of `order`, stopped after m."""
    samples, batch = len(order), len(chosen)
    first = batch * (step % (samples // batch)) if epochs else 0
    for i in range(batch):
        j = random.integers(0 if replacement else first + i, samples)
        if replacement:
            chosen[i] = j
        else:
            order[first + i], order[j] = order[j], order[first + i]
            chosen[i] = order[first + i]


def checked_drawing(samples, batch, replacement, epochs):
    """`batch`, `replacement`, `epochs` as int and bool, if so many of `samples` can be drawn in this way."""
    _sums.batch_variance(samples, batch, replacement)
    if checks.boolean("epochs", epochs) and replacement:
        checks.fail("epochs", "be False with replacement, as an epoch uses no sample twice", epochs)
    return int(batch), bool(replacement), bool(epochs)


def checked_series(samples, batches):
    """`batches` (steps, m), integers from 0 to N - 1, of a given number of samples."""
    try:
        series = np.asarray(batches)
    except ValueError:  # rows of unequal length
        series = np.empty(0)
    fits = series.ndim == 2 and series.size > 0 and np.issubdtype(series.dtype, np.integer)
    wanted = f"be an integer array (steps, m) of samples from 0 to {samples - 1}"
    checks.fail_if(not fits or series.min() < 0 or series.max() >= samples, "batches", wanted, batches)
    return series.astype(np.int64)  # (steps, m)


def checked_run(steps, replicas, blocks, record_every, seldom):
    """`steps`, `replicas`, `blocks`, `record_every` of a simulation, the last two dividing the others.

    By default 10 blocks, and one record in `seldom` steps, or the next divisors below.
    """
    steps, replicas = checks.integer("steps", steps), checks.integer("replicas", replicas)
    blocks = next(d for d in range(10, 0, -1) if replicas % d == 0) if blocks is None else blocks
    if record_every is None:
        record_every = next(d for d in range(seldom, 0, -1) if steps % d == 0)
    if replicas % (blocks := checks.integer("blocks", blocks)):
        checks.fail("blocks", f"divide replicas = {replicas}", blocks)
    if steps % (record_every := checks.integer("record_every", record_every)):
        checks.fail("record_every", f"divide steps = {steps}", record_every)
    return steps, replicas, blocks, record_every

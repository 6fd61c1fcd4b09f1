"""Minibatch descent on a least-squares loss with streaming averages: the simulator of :mod:`lib.fluctuations.linear`.

A step is  V - (ε/m) Σ_b (V x_b - r_b) x_bᵀ  over a minibatch, eq. (3.2) of han2021 in the PCA basis, V = W - W₀;  with
momentum  V' = V + B',  B' = μB - ε(VS - ξ).  Preconditioned descent is plain descent on the inputs P^{1/2} x.
"""

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from lib.common import checks
from lib.common.compiled import loops
from lib.common.estimate import Estimate
from lib.common.linalg import psd_root
from lib.common.random import children
from lib.fluctuations import regression
from lib.fluctuations.linear import momentum_covariance, stationary_covariance
from lib.fluctuations.minibatches import checked_drawing, checked_run, fill
from lib.fluctuations.regression_formulas import pair_weights

HELD = 64  # recorded states that are added to the sums at a time


@dataclass(frozen=True, eq=False)
class Averages:
    """Time averages over blocks of independent chains; the first axis counts the blocks.  See :func:`over_blocks`."""

    second_moment: np.ndarray  # (blocks, n, n)  E[V_nᵀ V_n], or E[V_iᵀ V_k] for a pair of outputs
    lagged: np.ndarray | None  # (blocks, n, n)  E[V_nᵀ V_{n+1}], or the same for a pair; None if not asked for
    mean: np.ndarray  # (blocks, p, n)  E[V]; p counts the outputs that were run
    last: np.ndarray  # (chains, p, n)  V after the last step, a start for the next run (at rest, B = 0)


# Sums may be reordered, which lets the loops use vector instructions: without, a run takes up to 1.5 times as long.
# The last digits then depend on the processor; NaN and infinity keep their meaning.
@loops(fastmath={"reassoc", "contract", "nsz"})
def _advance(weights, inputs, residuals, chosen, rate, errors):
    """One step in place; all errors are taken before the weights move."""
    outputs, size = weights.shape
    for b in range(len(chosen)):
        x = inputs[chosen[b]]
        for i in range(outputs):
            field = 0.0
            for k in range(size):
                field += weights[i, k] * x[k]
            errors[b, i] = rate / len(chosen) * (field - residuals[chosen[b], i])
    for b in range(len(chosen)):
        x = inputs[chosen[b]]
        for i in range(outputs):
            move = errors[b, i]
            for k in range(size):
                weights[i, k] -= move * x[k]


@loops
def _descend(
    chains, velocities, inputs, residuals, pairs, rate, momentum, steps, record_every, replacement, epochs, random,
    c, step, before, order, chosen, errors, left, right, after, mean,
):  # fmt: skip
    """Run the chains in place, one after the other, from `step` of chain `c` on, and add to the `mean` of the states.

    Their pairs are recorded in rows of `left`, `right` and `after`, until these are full or all is done.  Returns the
    place that is reached and the number of rows.  `before` (p, n), `order` (N,), `chosen` (m,), `errors` (m, p):
    workspace.
    """
    outputs, size = mean.shape
    held = 0
    while c < len(chains) and held < len(left):
        weights, velocity = chains[c], velocities[c]
        while step < steps and held < len(left):
            record = step % record_every == 0
            if record or momentum > 0:
                for i in range(outputs):
                    for k in range(size):
                        before[i, k] = weights[i, k]
            fill(order, chosen, step, replacement, epochs, random)
            _advance(weights, inputs, residuals, chosen, rate, errors)
            if momentum > 0:  # the velocity is the whole move of a step
                for i in range(outputs):
                    for k in range(size):
                        weights[i, k] += momentum * velocity[i, k]
                        velocity[i, k] = weights[i, k] - before[i, k]
            if record:
                for i in range(outputs):
                    for k in range(size):
                        mean[i, k] += before[i, k]
                for q in range(len(pairs)):
                    for k in range(size):
                        left[held, k], right[held, k] = before[pairs[q, 0], k], before[pairs[q, 1], k]
                        after[held, k] = weights[pairs[q, 1], k]
                    held += 1
            step += 1
        if step == steps:
            c, step = c + 1, 0
    return c, step, held


def _block(chains, velocities, data, pairs, rate, momentum, batch, steps, record_every, drawing, random, sums):
    """Run every chain of a block in place, one after the other, and add to the three sums.

    Recorded states are held back and added many at a time, as one matrix product: rank-one sums cost too much.
    """
    (inputs, residuals), (total, lagged, mean) = data, sums
    room = np.empty_like(mean), np.arange(len(inputs)), np.empty(batch, dtype=np.int64), np.empty((batch, len(mean)))
    left, right, after = np.empty((3, HELD * len(pairs), chains.shape[2]))
    right = left if np.array_equal(pairs[:, 0], pairs[:, 1]) else right  # XᵀX costs less than the general product
    given = inputs, residuals, pairs, rate, momentum, steps, record_every, *drawing, random
    c = step = 0
    while c < len(chains):
        c, step, held = _descend(chains, velocities, *given, c, step, *room, left, right, after, mean)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller names a run that left the floating-point range
            total += left[:held].T @ right[:held]
            if lagged is not None:
                lagged += left[:held].T @ after[:held]


def _stationary_start(problem, learning_rate, batch, replacement, pair, chains, rng):
    """Gaussian rows with the exact second moment that is measured, shared out over outputs or that of the pair."""

    def exact(which):
        return stationary_covariance(problem, learning_rate, batch, replacement=replacement, pair=which)

    size, outputs = len(problem.eigenvalues), problem.residuals.shape[1]
    if pair is None:
        return rng.standard_normal((chains, outputs, size)) @ psd_root(exact(None) / outputs).T  # (chains, p, n)
    i, k = pair
    if i == k:
        return rng.standard_normal((chains, 1, size)) @ psd_root(exact(pair)).T  # (chains, 1, n)
    cross = exact(pair)  # (n, n)
    joint = np.block([[exact((i, i)), cross], [cross, exact((k, k))]])  # (2n, 2n)
    return (rng.standard_normal((chains, 2 * size)) @ psd_root(joint).T).reshape(chains, 2, size)  # (chains, 2, n)


def _moving_start(problem, learning_rate, momentum, batch, replacement, chains, rng):
    """Gaussian V and B with the exact joint second moment of descent with momentum, shared out over outputs.

    With a = ελ_k, b = ελ_l, stationarity leaves  E[VᵀB] = (a - μb)/(1 - μ²) · G  and  E[BᵀB] = (a + b)/(1 + μ) · G.
    """
    rates, outputs = learning_rate * problem.eigenvalues, problem.residuals.shape[1]  # (n,)
    spread = momentum_covariance(problem, learning_rate, momentum, batch, replacement=replacement) / outputs  # (n, n)
    cross = np.subtract.outer(rates, momentum * rates) / (1 - momentum**2) * spread  # (n, n)
    speed = np.add.outer(rates, rates) / (1 + momentum) * spread  # (n, n)
    root = psd_root(np.block([[spread, cross], [cross.T, speed]]))  # (2n, 2n)
    both = rng.standard_normal((chains, outputs, 2 * len(rates))) @ root.T  # (chains, p, 2n)
    return both[..., : len(rates)], both[..., len(rates) :]


def simulate(
    problem, learning_rate, batch, *, steps, chains, rng,
    start="stationary", momentum=0.0, replacement=False, epochs=False, pair=None, record_every=None, blocks=None,
    lagged=True, workers=1,
):  # fmt: skip
    """Independent chains of minibatch gradient descent, eq. (3.2), and their time averages, eqs. (3.3), (B1).

    From the default start averages have no bias if minibatches are independent.  `problem`: Regression;
    `learning_rate`: ε > 0; `batch`, `replacement`, `epochs`: as in ``minibatches.draw``; `steps`, `chains`: length and
    number; `rng`: int or SeedSequence, block b draws from its b-th child, whatever the `workers`; `start`:
    "stationary" or V, (p, n) or (chains, p, n), with B = 0; `momentum`: 0 <= μ < 1, with a pair only from an array;
    `pair`: tuple (i, k), run these outputs only and measure E[V_iᵀ V_k]; `record_every`: of the steps, must divide
    them, default 5 or the next divisor below; `blocks`: of chains, averaged one by one, must divide them, default 10 or
    the next divisor below; `lagged`: take that average as well, which can double the time of a run
    with many inputs.  Returns Averages; another processor may round differently.

    >>> problem = regression.fit([[1.0], [1.0]], [[0.0], [2.0]])  # A = S = D = 1: G = ε / (2 - ε)
    >>> mean, error = over_blocks(simulate(problem, 0.5, 1, steps=1000, chains=20, rng=1).second_moment)
    >>> bool(abs(mean[0, 0] - 1 / 3) < 4 * error[0, 0] < 0.05)
    True
    """
    samples, outputs = regression.checked_problem(problem).residuals.shape
    learning_rate = checks.number("learning_rate", learning_rate, above=0)
    replacement, epochs = checked_drawing(samples, batch, replacement, epochs)
    batch = checks.integer("batch", batch)
    steps, chains, blocks, record_every = checked_run(steps, chains, blocks, record_every, seldom=5)
    workers, lagged = checks.integer("workers", workers), checks.boolean("lagged", lagged)
    streams = children(rng, blocks + 1)
    pair_weights(problem, pair)  # refuses outputs that there are not
    rows = list(range(outputs)) if pair is None else list(dict.fromkeys(pair))  # the outputs that are run
    pairs = np.array([(i, i) for i in range(outputs)] if pair is None else [(0, len(rows) - 1)])  # (p, 2) or (1, 2)
    shape = (len(rows), len(problem.eigenvalues))
    momentum = checks.number("momentum", momentum, at_least=0, below=1)
    velocity = np.zeros((chains, *shape))  # (chains, p, n)
    if isinstance(start, str) and start == "stationary":
        rng = checks.generator("rng", streams[-1])
        if momentum == 0:
            state = _stationary_start(problem, learning_rate, batch, replacement, pair, chains, rng)
        elif pair is None:
            state, velocity = _moving_start(problem, learning_rate, momentum, batch, replacement, chains, rng)
        else:
            checks.fail("start", "be an array where a pair of outputs has momentum", start)
    else:
        state = checks.array("start", start)
        if state.shape not in (shape, (chains, *shape)):
            checks.fail("start", f'be "stationary" or have shape {shape} or {(chains, *shape)}', f"shape {state.shape}")
        state = np.array(np.broadcast_to(state, (chains, *shape)))
    grouped, size = (blocks, chains // blocks, *shape), shape[1]
    state, velocity = (np.ascontiguousarray(each.reshape(grouped)) for each in (state, velocity))  # grouped
    data = tuple(map(np.ascontiguousarray, (problem.inputs, problem.residuals[:, rows])))  # (N, n), (N, p)
    sums = [np.zeros((blocks, *each)) if each else None for each in ((size, size), lagged and (size, size), shape)]
    settings = (pairs, learning_rate, momentum, batch, steps, record_every, (replacement, epochs))

    def run(b):
        random = checks.generator("rng", streams[b])
        parts = tuple(part if part is None else part[b] for part in sums)  # second, lagged, mean
        _block(state[b], velocity[b], data, *settings, random, parts)

    Parallel(n_jobs=workers, prefer="threads")(delayed(run)(b) for b in range(blocks))
    if not np.isfinite(state).all() or not all(np.isfinite(part).all() for part in sums if part is not None):
        wanted = f"keep the chains inside the floating-point range for {steps} steps"
        checks.fail("learning_rate", wanted, learning_rate)
    records = chains // blocks * (steps // record_every)
    return Averages(*(part if part is None else part / records for part in sums), state.reshape(chains, *shape))


def over_blocks(values):
    """Mean over independent blocks of `values` (blocks, ...), and its standard error, (...) each.  Returns both.

    >>> [float(part) for part in over_blocks([1.0, 3.0])]
    [2.0, 1.0]
    """
    return Estimate.of(values)


def circulation(averages, learning_rate):
    """Circulation measured from successive states, one matrix a block:  (E[V_nᵀ V_{n+1}] - E[V_{n+1}ᵀ V_n]) / 2ε.

    It equals  Q = (AG - GA)/2,  eq. (1.6), or that of G_ik for a stationary pair; with momentum Q / (1 - μ).
    `averages`: of :func:`simulate`, best with every step recorded; `learning_rate`: ε.  Returns (blocks, n, n).

    >>> lagged = np.array([[[1.0, 0.5], [0.0, 1.0]]])
    >>> circulation(Averages(np.eye(2)[None], lagged, np.zeros((1, 1, 2)), np.zeros((1, 1, 2))), 0.25).tolist()
    [[[0.0, 1.0], [-1.0, 0.0]]]
    """
    averages = checks.instance("averages", averages, Averages, "as descent.simulate returns it")
    checks.fail_if(averages.lagged is None, "averages", "hold the lagged average", "lagged=None")
    rate = checks.number("learning_rate", learning_rate, above=0)
    # For a pair, E[VᵢᵀV_k] is symmetric on average only: without its antisymmetric part most of the noise is gone.
    moved = averages.lagged - averages.second_moment  # (blocks, n, n)
    return (moved - np.swapaxes(moved, -1, -2)) / (2 * rate)

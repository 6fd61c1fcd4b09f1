"""Minibatch descent of a sigmoid unit with streaming averages: the simulator of :mod:`lib.fluctuations.sigmoid`.

Eq. (3.2) of han2021 with the gradient of this loss:  V' = V - ε g_B(V),  V = w - w*.  Each chain has a twin with the
quadratic loss,  U' = U - (ε/m) Σ_b (g_b + h_b x_b·U) x_b,  driven by the same minibatches.  The twin's mean is exactly
zero and its covariance known, so the difference of the averages shows what the nonlinearity does, with little noise.
"""

import math
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numba import njit

from lib.common import checks
from lib.common.linalg import psd_root
from lib.common.random import children
from lib.fluctuations import sigmoid
from lib.fluctuations.minibatches import checked_drawing, fill

SETTLE = 5  # relaxation times of the slowest mode in the default burn-in
LONGEST = 10**9  # steps that a default burn-in may take


@dataclass(frozen=True, eq=False)
class Averages:
    """Time averages over blocks of independent chains; the first axis counts the blocks."""

    mean: np.ndarray  # (blocks, d)  E[V], with V = w - w*
    twin_mean: np.ndarray  # (blocks, d)  E[U] of the twin, zero up to sampling noise
    second_moment: np.ndarray  # (blocks, d, d)  E[V Vᵀ]
    twin_second_moment: np.ndarray  # (blocks, d, d)  E[U Uᵀ], see sigmoid.quadratic_covariance
    pull: np.ndarray  # (blocks,)  E[V·∇f], with the full gradient ∇f(V)
    force_square: np.ndarray  # (blocks,)  E|g_B|²


@njit(cache=True, nogil=True)
def _slope(field, target):
    z = 1 / (1 + math.exp(-field))
    return (z - target) * z * (1 - z)


@njit(cache=True, nogil=True)
def _descend(chains, twins, samples, rate, batch, steps, record_every, replacement, random, sums):
    """Run the chains of a block and their twins in place, and add to the sums."""
    inputs, targets, fields, slopes, curvatures = samples
    mean, twin_mean, second, twin_second, scalars = sums
    size = inputs.shape[1]
    chosen, order = np.empty(batch, dtype=np.int64), np.arange(len(inputs))
    force, twin_force = np.empty(size), np.empty(size)
    for c in range(len(chains)):
        v, u = chains[c], twins[c]
        for step in range(steps):
            if step % record_every == 0:
                mean += v
                twin_mean += u
                second += np.outer(v, v)
                twin_second += np.outer(u, u)
                shifts, pull = np.dot(inputs, v), 0.0
                for a in range(len(inputs)):
                    pull += _slope(fields[a] + shifts[a], targets[a]) * shifts[a]
                scalars[0] += pull / len(inputs)
            fill(order, chosen, step, replacement, False, random)
            force[:] = 0.0
            twin_force[:] = 0.0
            for a in chosen:
                shift, twin_shift = 0.0, 0.0
                for k in range(size):
                    shift += inputs[a, k] * v[k]
                    twin_shift += inputs[a, k] * u[k]
                push = _slope(fields[a] + shift, targets[a]) / batch
                twin_push = (slopes[a] + curvatures[a] * twin_shift) / batch
                for k in range(size):
                    force[k] += push * inputs[a, k]
                    twin_force[k] += twin_push * inputs[a, k]
            for k in range(size):
                scalars[1] += force[k] * force[k]
                v[k] -= rate * force[k]
                u[k] -= rate * twin_force[k]


def simulate(
    unit, learning_rate, batch, *, steps, chains, seed,
    burn_in=None, replacement=False, record_every=50, blocks=10, workers=1,
):  # fmt: skip
    """Independent chains of minibatch descent,  V' = V - ε g_B(V),  and their time averages in the stationary state.

    No exact stationary law is known: chains start from the Gaussian of ``sigmoid.leading_order_covariance``, moved by
    ``sigmoid.mean_shift``, and run for `burn_in` steps unseen.  Returns Averages.

    unit, learning_rate : Unit; ε > 0.  No chain diverges, but the theory needs ε λ_max(H) << 1
    batch, replacement : as in ``regression.batch_variance``
    steps, chains : int >= 1, length of the averaged run and number of the chains
    seed : int or SeedSequence; block number b draws from its b-th child, so results do not depend on `workers`
    burn_in : int >= 0, optional, steps before the averages; default: 5 relaxation times 1/(ε λ_min(H))
    record_every : one step in so many enters the averages, |g_B|² every one; must divide steps
    blocks, workers : groups of chains, averaged one by one for error bars, must divide chains; threads, >= 1

    >>> unit = sigmoid.minimum(4 * [[1.0]], [0, 1, 1, 1])
    >>> run = simulate(unit, 0.1, 1, steps=5000, chains=10, seed=1)
    >>> bool(0.8 < run.second_moment.mean() / sigmoid.leading_order_covariance(unit, 0.1, 1)[0, 0] < 1.3)
    True
    """
    rate, batch = checks.number("learning_rate", learning_rate, above=0), checks.integer("batch", batch)
    replacement, _ = checked_drawing(len(sigmoid.checked_unit(unit).inputs), batch, replacement)
    steps, chains = checks.integer("steps", steps), checks.integer("chains", chains)
    if chains % (blocks := checks.integer("blocks", blocks)):
        checks.fail("blocks", f"divide chains = {chains}", blocks)
    if steps % (record_every := checks.integer("record_every", record_every)):
        checks.fail("record_every", f"divide steps = {steps}", record_every)
    workers, streams = checks.integer("workers", workers), children(seed, blocks + 1)
    slowest = rate * float(np.linalg.eigvalsh(unit.hessian)[0])
    if burn_in is None and not slowest > SETTLE / LONGEST:
        wanted = f"be large enough to relax within {LONGEST:g} steps, or come with a burn_in"
        checks.fail("learning_rate", wanted, learning_rate)
    burn_in = math.ceil(SETTLE / slowest) if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
    spread = sigmoid.leading_order_covariance(unit, rate, batch, replacement=replacement)  # (d, d)
    shape = (blocks, chains // blocks, size := len(unit.weights))
    rng = checks.generator("seed", streams[-1])
    twins = rng.standard_normal(shape) @ psd_root(spread).T  # (blocks, chains / blocks, d)
    state = twins + sigmoid.mean_shift(unit, spread)  # (blocks, chains / blocks, d)
    inputs = np.ascontiguousarray(unit.inputs)  # (N, d)
    samples = (inputs, unit.targets, inputs @ unit.weights, unit.slope, unit.curvature)
    shapes = ((size,), (size,), (size, size), (size, size), (2,))
    sums = [np.zeros((blocks, *shape)) for shape in shapes]

    def run(b):
        random = checks.generator("seed", streams[b])
        for length, parts in ((burn_in, [np.zeros(shape) for shape in shapes]), (steps, [each[b] for each in sums])):
            _descend(state[b], twins[b], samples, rate, batch, length, record_every, replacement, random, tuple(parts))

    Parallel(n_jobs=workers, prefer="threads")(delayed(run)(b) for b in range(blocks))
    if not all(np.isfinite(each).all() for each in sums):
        checks.fail("learning_rate", "keep the chains inside the floating-point range", learning_rate)
    *moments, scalars = (each / (chains // blocks * (steps // record_every)) for each in sums)
    return Averages(*moments, scalars[:, 0], scalars[:, 1] / record_every)

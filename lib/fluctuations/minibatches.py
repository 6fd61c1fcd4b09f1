"""Series of minibatches: how they are drawn, how much their moments fluctuate, how their noise is correlated in time.

As in han2021: distinct samples, put back before the next minibatch.  With replacement: every sample is a fresh draw.
In epochs: successive minibatches share out one permutation; then the theory of ``linear`` does not hold.
"""

import numpy as np

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import slices
from lib.fluctuations import regression, regression_formulas


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


@loops
def _draw_all(order, batches, replacement, epochs, random):
    for step in range(len(batches)):
        fill(order, batches[step], step, replacement, epochs, random)


def checked_drawing(samples, batch, replacement=False, epochs=False):
    """`replacement` and `epochs` as bool, checked to be a way to draw `batch` of `samples`.  Returns both.

    >>> checked_drawing(10, 2)
    (False, False)
    """
    regression.batch_variance(samples, batch, replacement)
    if checks.boolean("epochs", epochs) and replacement:
        checks.fail("epochs", "be False with replacement, as an epoch uses no sample twice", epochs)
    return bool(replacement), bool(epochs)


def checked_run(steps, chains, blocks=None, record_every=None, *, seldom=1):
    """`steps`, `chains`, `blocks`, `record_every` of a simulation, the last two dividing the others.  Returns all four.

    By default 10 blocks, and one record in `seldom` steps, or the next divisors below.

    >>> checked_run(100, 4), checked_run(99, 20, seldom=5)
    ((100, 4, 4, 1), (99, 20, 10, 3))
    """
    steps, chains = checks.integer("steps", steps), checks.integer("chains", chains)
    blocks = next(d for d in range(10, 0, -1) if chains % d == 0) if blocks is None else blocks
    if record_every is None:
        record_every = next(d for d in range(checks.integer("seldom", seldom), 0, -1) if steps % d == 0)
    if chains % (blocks := checks.integer("blocks", blocks)):
        checks.fail("blocks", f"divide chains = {chains}", blocks)
    if steps % (record_every := checks.integer("record_every", record_every)):
        checks.fail("record_every", f"divide steps = {steps}", record_every)
    return steps, chains, blocks, record_every


def draw(samples, batch, steps, rng, *, replacement=False, epochs=False):
    """A series of minibatches, as indices of samples.  The default is that of han2021, section III.

    `samples`: N; `batch`, `replacement`: as in ``regression.batch_variance``; `steps`: how many; `rng`: int,
    SeedSequence or Generator; `epochs`: N // m successive ones share out a permutation.  Returns ints (steps, m).

    >>> sorted(draw(6, 2, 3, rng=1, epochs=True).ravel().tolist())
    [0, 1, 2, 3, 4, 5]
    """
    replacement, epochs = checked_drawing(samples, batch, replacement, epochs)
    samples, batch = checks.integer("samples", samples), checks.integer("batch", batch)
    batches = np.empty((checks.integer("steps", steps), batch), dtype=np.int64)  # (steps, m)
    _draw_all(np.arange(samples), batches, replacement, epochs, checks.generator("rng", rng))
    return batches


def _batches(batches, problem):
    """A series of minibatches, checked against the data set."""
    try:
        series = np.asarray(batches)
    except ValueError:  # rows of unequal length
        series = np.empty(0)
    fits = series.ndim == 2 and series.size > 0 and np.issubdtype(series.dtype, np.integer)
    wanted = f"be an integer array (steps, m) of samples from 0 to {len(problem.inputs) - 1}"
    checks.fail_if(not fits or series.min() < 0 or series.max() >= len(problem.inputs), "batches", wanted, batches)
    return series.astype(np.int64)  # (steps, m)


def moment_fluctuations(problem, batches):
    """Size of the fluctuations of the minibatch moment:  ‖S_n - A‖ / ‖A‖, Frobenius norm, as in han2021, figure 1.

    `problem`: Regression; `batches` (steps, m): as of :func:`draw`.  Returns (steps,).

    >>> moment_fluctuations(regression.fit([[1.0], [2.0]], [[0.0], [1.0]]), [[0], [1]]).round(12)  # S = 1, 4; A = 2.5
    array([0.6, 0.6])
    """
    lam = regression.checked_problem(problem).eigenvalues  # (n,)
    chosen = (problem.inputs[batch] for batch in _batches(batches, problem))  # (m, n) each
    sizes = [np.linalg.norm(z.T @ z / len(z) - np.diag(lam)) for z in chosen]
    return np.array(sizes) / np.linalg.norm(lam)  # (steps,)


def expected_fluctuation(problem, batch, *, replacement=False):
    """Root mean square of :func:`moment_fluctuations`:  [c (<|x|⁴> / ‖A‖² - 1)]^{1/2},  whatever ε.

    `problem`: Regression; `batch`, `replacement`: as in ``regression.batch_variance``.  Returns a float.

    >>> round(expected_fluctuation(regression.fit([[1.0], [2.0]], [[0.0], [1.0]]), 1), 12)
    0.6
    """
    variance = regression.batch_variance(len(regression.checked_problem(problem).inputs), batch, replacement)
    squares, lam = problem.inputs**2, problem.eigenvalues  # (N, n), (n,)
    # ‖x xᵀ - A‖² entry by entry: of one input of constant size nothing is left, and no root of rounding.
    apart = squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1) + ((squares - lam) ** 2).sum(axis=1)  # (N,)
    return float(np.sqrt(variance * max(apart.mean(), 0.0)) / np.linalg.norm(lam))


def noise_correlation(problem, batches, lags):
    """Measured noise correlation  D(q) = average over n of  ξ_{n+q}ᵀ ξ_n,  ξ = <r xᵀ> over a minibatch, eq. (3.4).

    `problem`: Regression; `batches` (steps, m): as of :func:`draw`; `lags` (L,): integers q, 0 <= q < steps, strictly
    increasing.  Returns (L, n, n), in the PCA basis.

    >>> noise_correlation(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), [[0], [1], [0]], [0, 1]).ravel().round(12)
    array([ 1., -1.])
    """
    batches = _batches(batches, regression.checked_problem(problem))  # (steps, m)
    lags = checks.times("lags", lags)  # (L,)
    if np.any(lags != np.rint(lags)) or lags[-1] >= len(batches):
        checks.fail("lags", f"hold integers below the number of steps, {len(batches)}", lags)
    lags = lags.astype(np.int64)  # (L,)
    inputs, residuals = problem.inputs, problem.residuals
    outputs, size = residuals.shape[1], inputs.shape[1]
    total = np.zeros((len(lags), size, size))  # (L, n, n)
    for piece in slices(len(batches), size * max(outputs, batches.shape[1])):
        rows = piece.stop - piece.start
        late = batches[piece.start : piece.stop + lags[-1]]  # (rows + lag, m)
        kicks = np.swapaxes(residuals[late], 1, 2) @ inputs[late] / late.shape[1]  # (rows + lag, p, n)
        for k, lag in enumerate(lags):
            after = kicks[lag : lag + rows]  # (rows, p, n)
            total[k] += after.reshape(-1, size).T @ kicks[: len(after)].reshape(-1, size)
    return total / (len(batches) - lags)[:, None, None]


def correlation_floor(problem, batch, steps, *, replacement=False):
    """Size of  ‖D(q)‖ / ‖D(0)‖  at q > 0 for independent minibatches, all sampling noise:  (Tr K²/T)^{1/2} / ‖D‖.

    K = E[ξξᵀ] = (c/N) Σ_α |x_α|² r_α r_αᵀ.  `problem`, `batch`, `replacement`: as in ``regression.noise_moment``, D not
    zero; `steps`: T.  Returns a float.

    >>> round(correlation_floor(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 1, 100), 12)
    0.1
    """
    variance = regression.batch_variance(len(regression.checked_problem(problem).inputs), batch, replacement)
    strength = np.linalg.norm(regression_formulas.noise(problem, variance))
    checks.fail_if(strength == 0, "batch", "leave some gradient noise", batch)
    between = variance * regression_formulas.weighted(problem.residuals, (problem.inputs**2).sum(axis=1))  # (p, p)
    return float(np.linalg.norm(between) / np.sqrt(checks.integer("steps", steps)) / strength)

"""Series of minibatches: how they are drawn, how much their moments fluctuate, how their noise is correlated in time.

As in han2021: distinct samples, put back before the next minibatch.  With replacement: every sample is a fresh draw.
In epochs: successive minibatches share out one permutation; then the stationary law of ``descent`` does not hold.
"""

import numpy as np
from scipy.sparse import csr_array

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import slices
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fluctuations._runs import checked_drawing, checked_series, fill
from lib.fluctuations.regression import Regression


@loops
def _draw_all(order, batches, replacement, epochs, random):
    for step in range(len(batches)):
        fill(order, batches[step], step, replacement, epochs, random)


def draw(
    samples: int, batch: int, steps: int, rng: Rng, *, replacement: bool = False, epochs: bool = False
) -> Array["steps m"]:
    """A series of minibatches, as indices of samples; by default as in han2021, section III.

    Parameters
    ----------
    samples, batch, steps : int
        N >= 2; m >= 1, at most N without replacement; length of the series.
    rng : int, SeedSequence or Generator
    replacement : bool
        Whether a sample may occur twice in a minibatch.
    epochs : bool
        Whether N // m successive minibatches share out a permutation, not with `replacement`.

    Returns
    -------
    ndarray (steps, m)
        Integers from 0 to N - 1.

    Examples
    --------
    >>> sorted(draw(6, 2, 3, rng=1, epochs=True).ravel().tolist())
    [0, 1, 2, 3, 4, 5]
    """
    samples = checks.integer("samples", samples, at_least=2)
    batch, replacement, epochs = checked_drawing(samples, batch, replacement, epochs)
    batches = np.empty((checks.integer("steps", steps), batch), dtype=np.int64)  # (steps, m)
    _draw_all(np.arange(samples), batches, replacement, epochs, checks.generator("rng", rng))
    return batches


def _read(problem, batches):
    """A series of minibatches, checked against the data set."""
    checks.instance("problem", problem, Regression, "as regression.fit returns it")
    return checked_series(len(problem.inputs), batches)  # (steps, m)


def moment_fluctuations(problem: Regression, batches: ArrayLike) -> Array[" steps"]:
    """Size of the fluctuations of the minibatch moment:  ‖S_n - A‖ / ‖A‖, Frobenius norm, as in han2021, figure 1.

    Parameters
    ----------
    problem : Regression
    batches : array_like (steps, m)
        Integers from 0 to N - 1, as :func:`draw` returns them.

    Returns
    -------
    ndarray (steps,)
        Their root mean square is ``problem.expected_fluctuation(m)`` on average.

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> moment_fluctuations(regression.fit([[1.0], [2.0]], [[0.0], [1.0]]), [[0], [1]]).round(12)  # S = 1, 4; A = 2.5
    array([0.6, 0.6])
    """
    batches, lam = _read(problem, batches), problem.eigenvalues  # (steps, m), (n,)
    squares = []
    for z in (problem.inputs[batch] for batch in batches):  # (m, n) each
        if len(z) < len(lam):  # ‖S‖² - 2<S, A> + ‖A‖² by the products of samples, fewer than those of inputs
            squares.append(np.sum((z @ z.T / len(z)) ** 2) - 2 * np.mean(z**2 @ lam) + lam @ lam)
        else:
            squares.append(np.sum((z.T @ z / len(z) - np.diag(lam)) ** 2))
    return np.sqrt(np.maximum(squares, 0)) / np.linalg.norm(lam)  # (steps,)


def _noise_products(problem, late, early):
    """Sum of  ξ'ᵀξ  over two series (steps, m): Xᵀ M X, with r_α·r_β summed over the pairs of samples that meet."""
    products = problem.residuals[late] @ np.swapaxes(problem.residuals[early], 1, 2) / late.shape[1] ** 2
    (first, rows), (second, columns) = (np.unique(each, return_inverse=True) for each in (late, early))
    places = np.broadcast_arrays(rows.reshape(late.shape)[:, :, None], columns.reshape(early.shape)[:, None, :])
    met = csr_array((products.ravel(), [place.ravel() for place in places]), shape=(len(first), len(second)))
    return problem.inputs[first].T @ (met @ problem.inputs[second])


def noise_correlation(problem: Regression, batches: ArrayLike, lags: ArrayLike) -> Array["... n n"]:
    """Measured noise correlation  D(q) = average over n of  ξ_{n+q}ᵀ ξ_n,  ξ = <r xᵀ> over a minibatch: han2021 (3.4).

    Parameters
    ----------
    problem : Regression
    batches : array_like (steps, m)
        Integers from 0 to N - 1, as :func:`draw` returns them.
    lags : int or array_like (L,)
        Integers q, 0 <= q < steps, strictly increasing.

    Returns
    -------
    ndarray (L, n, n)
        In the PCA basis; (n, n) for a single lag.

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> problem = regression.fit([[1.0], [1.0]], [[0.0], [2.0]])
    >>> noise_correlation(problem, [[0], [1], [0]], [0, 1]).ravel().round(12).tolist()
    [1.0, -1.0]
    """
    series, given = _read(problem, batches), checks.times("lags", lags)  # (steps, m), (L,)
    if np.ndim(lags) == 0:
        return noise_correlation(problem, series, given)[0]
    batches, lags = series, given
    if np.any(lags != np.rint(lags)) or lags[-1] >= len(batches):
        checks.fail("lags", f"hold integers below the number of steps, {len(batches)}", lags)
    lags = lags.astype(np.int64)  # (L,)
    inputs, residuals = problem.inputs, problem.residuals
    outputs, size = residuals.shape[1], inputs.shape[1]
    total = np.zeros((len(lags), size, size))  # (L, n, n)
    if 50 * batches.shape[1] ** 2 < outputs * size:  # small minibatches of images
        for k, lag in enumerate(lags):
            total[k] = _noise_products(problem, batches[lag:], batches[: len(batches) - lag])
        return total / (len(batches) - lags)[:, None, None]
    for piece in slices(len(batches), size * max(outputs, batches.shape[1])):
        rows = piece.stop - piece.start
        late = batches[piece.start : piece.stop + lags[-1]]  # (rows + lag, m)
        kicks = np.swapaxes(residuals[late], 1, 2) @ inputs[late] / late.shape[1]  # (rows + lag, p, n)
        for k, lag in enumerate(lags):
            after = kicks[lag : lag + rows]  # (rows, p, n)
            total[k] += after.reshape(-1, size).T @ kicks[: len(after)].reshape(-1, size)
    return total / (len(batches) - lags)[:, None, None]

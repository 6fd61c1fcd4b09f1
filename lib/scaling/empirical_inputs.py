"""One-pass learning of a linear teacher on empirical inputs: descent on single samples of a data set, with replacement.

D = J - B moves by  D ← D - (η/N)(D·x) x  with x drawn from N-dimensional samples of any law.  G = E[DDᵀ] obeys  G ← G -
(η/N)(ΛG + GΛ) + (η/N)² <(xᵀGx) x xᵀ>,  ε_g = Tr(ΛG)/(2N),  in the PCA basis of :mod:`lib.fluctuations.regression`,
where <x xᵀ> = Λ: only fourth moments enter.  All start at G = 1, random teachers and students that are zero; targets
play no part.  The threshold of the rate is N times ``problem.learning_rate_threshold(1, replacement=True)``.
Not in worschech2024, where inputs are Gaussian.
"""

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.common.linalg import slices
from lib.common.shapes import Array, ArrayLike
from lib.fluctuations import regression
from lib.fluctuations.regression import Regression

LARGEST = 80  # inputs for the exact mean: a dense matrix for the N(N+1)/2 entries of G


def _decay(times, matrix, start, read, size):
    """read · (1 - matrix)^{αN} start  for the symmetric matrix of the loss in one step."""
    loss, modes = eigh(matrix)  # (l,), (l, l)
    steps = np.rint(times * size)  # (n,)
    weights = (read @ modes) * (start @ modes)  # (l,)
    with np.errstate(over="ignore", invalid="ignore"):
        # Factors may be negative at large rates, and `steps` are whole; 1 - loss alone would lose a small loss.
        slow = np.exp(np.outer(steps, np.log1p(-np.minimum(loss, 0.5))))  # (n, l)
        decay = np.where(loss < 0.5, slow, np.power(1 - loss, steps[:, None]))  # (n, l)
        return checks.finite("learning_rate", decay @ weights)  # (n,)


def _moments(problem):
    checks.instance("problem", problem, regression.Regression, "as regression.fit returns it")
    return problem.eigenvalues, problem.inputs  # (N,), (samples, N)


@checks.one_or_many
def generalization_error(times: ArrayLike, problem: Regression, learning_rate: float) -> float | Array[" n"]:
    """Mean generalization error on empirical inputs, exact at every learning rate, from all fourth moments.

    For Gaussian inputs it is :meth:`lib.scaling.linear_student.LinearStudent.finite_size_error`.

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing, rounded to whole steps.
    problem : Regression
        As ``regression.fit`` returns it, with N <= 80 inputs.
    learning_rate : float
        η > 0.

    Returns
    -------
    float or ndarray (n,)

    Examples
    --------
    >>> problem = regression.fit([[1.0], [2.0]], [[0.0], [0.0]])  # a step multiplies D² by (1 - η)² or (1 - 4η)²
    >>> generalization_error([0.0, 1.0], problem, 0.25).round(6).tolist()
    [1.25, 0.351562]
    """
    times, rate = checks.times("times", times), checks.number("learning_rate", learning_rate, above=0)  # (n,), float
    lam, inputs = _moments(problem)
    size = lam.size
    if size > LARGEST:
        checks.fail("problem", f"have at most {LARGEST} inputs: for more there is diagonal_error", f"{size} inputs")
    row, column = np.triu_indices(size)  # (l,), l = N(N+1)/2
    scale = np.where(row == column, 1.0, np.sqrt(2))  # (l,)
    fourth = np.zeros((row.size, row.size))  # (l, l)
    for piece in slices(len(inputs), row.size):
        products = inputs[piece][:, row] * inputs[piece][:, column] * scale  # (samples of this piece, l)
        fourth += products.T @ products
    loss = np.diag(rate / size * (lam[row] + lam[column])) - (rate / size) ** 2 * fourth / len(inputs)  # (l, l)
    start, read = np.where(row == column, 1.0, 0.0), np.where(row == column, lam[row], 0.0)  # (l,), (l,)
    return _decay(times, loss, start, read / (2 * size), size)


@checks.one_or_many
def diagonal_error(times: ArrayLike, problem: Regression, learning_rate: float) -> float | Array[" n"]:
    """Mean generalization error from the squares alone: right to first order in η, for any number of inputs.

    e_k ← (1 - 2ηλ_k/N) e_k + (η/N)² Σ_j <x_k² x_j²> e_j;  off-diagonal entries of G act back at order η².

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing, rounded to whole steps.
    problem : Regression
        As ``regression.fit`` returns it, with any number N of inputs.
    learning_rate : float
        η > 0.

    Returns
    -------
    float or ndarray (n,)

    Examples
    --------
    >>> problem = regression.fit([[1.0], [2.0]], [[0.0], [0.0]])  # one input: exact
    >>> diagonal_error([0.0, 1.0], problem, 0.25).round(6).tolist()
    [1.25, 0.351562]
    """
    times, rate = checks.times("times", times), checks.number("learning_rate", learning_rate, above=0)  # (n,), float
    lam, inputs = _moments(problem)
    squares = inputs**2  # (samples, N)
    loss = np.diag(2 * rate * lam / lam.size) - (rate / lam.size) ** 2 * (squares.T @ squares) / len(squares)  # (N, N)
    return _decay(times, loss, np.ones(lam.size), lam / (2 * lam.size), lam.size)


def contrast_kurtosis(problem: Regression) -> float:
    """Fourth moment of the length of the inputs over that of Gaussian ones:  κ = <|x|⁴> / ((Σ_k λ_k)² + 2 Σ_k λ_k²).

    For a Gaussian vector times an independent contrast √u, <u> = 1, κ = <u²> multiplies every fourth moment: descent
    has the noise of Gaussian inputs at the rate κη.

    Parameters
    ----------
    problem : Regression
        As ``regression.fit`` returns it.

    Returns
    -------
    float
        1 for Gaussian inputs.

    Examples
    --------
    >>> round(contrast_kurtosis(regression.fit([[1.0], [-1.0]], [[0.0], [0.0]])), 12)  # <x⁴> = 1 instead of 3
    0.333333333333
    """
    lam, inputs = _moments(problem)
    lengths = (inputs**2).sum(axis=1)  # (samples,)
    return float(np.mean(lengths**2) / (lam.sum() ** 2 + 2 * lam @ lam))

"""The stationary law of descent on Gaussian inputs that are never seen twice, in closed form."""

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

EDGE = 1e-9  # closer to the threshold than this part of it, rounding decides whether a variance is finite


def gaussian_covariance(eigenvalues: ArrayLike, noise: ArrayLike, learning_rate: float, batch: int) -> Array[" n"]:
    """Stationary variances of the weights for fresh Gaussian inputs, exact in the learning rate.

    g_k = ε(cTλ_k + d_k) / {λ_k [2 - ε(1+c)λ_k]},  T = Σ_k λ_k g_k, c = 1/m:  the fourth moments of
    AG + GA = ε E[SGS] + ε D,  from han2021 (3.2), in closed form.

    Parameters
    ----------
    eigenvalues : array_like (n,)
        λ_k > 0, of the covariance of the inputs.
    noise : array_like (n,)
        d_k = D_kk >= 0, the noise of one step: σ²λ_k/m for label noise of variance σ².
    learning_rate : float
        ε > 0.
    batch : int
        m, samples a step.

    Returns
    -------
    ndarray (n,)
        g_k.

    Raises
    ------
    ValueError
        If the variance diverges at this learning rate.

    Examples
    --------
    >>> gaussian_covariance([1.0], [1.0], 0.5, 1).tolist()  # ε / (2 - 3ε)
    [1.0]
    """
    lam = checks.entries("eigenvalues", eigenvalues, above=0, ndim=1)  # (n,)
    checks.fail_if(lam.size == 0, "eigenvalues", "hold at least one eigenvalue", "none")
    noise = checks.entries("noise", noise, at_least=0, shape=lam.shape)  # (n,)
    rate = checks.number("learning_rate", learning_rate, above=0)
    variance = 1 / checks.integer("batch", batch)
    bracket = 2 - rate * (1 + variance) * lam  # (n,)
    with np.errstate(divide="ignore"):
        feedback = variance * np.sum(rate * lam / bracket)
    if bracket.min() <= 0 or feedback >= 1 - EDGE:
        checks.fail("learning_rate", "leave a stationary variance for this spectrum and batch", learning_rate)
    loss = np.sum(rate * noise / bracket) / (1 - feedback)
    return rate * (variance * loss * lam + noise) / (lam * bracket)  # (n,)

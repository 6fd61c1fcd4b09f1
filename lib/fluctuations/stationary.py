"""The stationary law of descent on Gaussian inputs that are never seen twice, in closed form."""

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

EDGE = 1e-9  # closer to the threshold than this part of it, rounding decides whether a variance is finite


def gaussian_variances(eigenvalues: ArrayLike, noise: ArrayLike, learning_rate: float, batch: int) -> Array[" n"]:
    """Stationary variances of the weights for fresh Gaussian inputs, exact in the learning rate.

    G_kk = ε(c λ_k Tr AG + D_kk) / {λ_k [2 - ε(1+c)λ_k]},  Tr AG = Σ_k λ_k G_kk, c = 1/m:  the fourth moments of
    AG + GA = ε E[SGS] + ε D,  from han2021 (3.2), in closed form.

    Parameters
    ----------
    eigenvalues : array_like (n,)
        λ_k > 0, of the covariance of the inputs; leave out directions without variance.
    noise : array_like (n,)
        D_kk >= 0, the noise of one step: σ²λ_k/m for label noise of variance σ².
    learning_rate : float
        ε > 0.
    batch : int
        m, samples a step.

    Returns
    -------
    ndarray (n,)
        G_kk.

    Raises
    ------
    ValueError
        If the variances diverge at this learning rate; the message tells the threshold.

    Examples
    --------
    >>> gaussian_variances([1.0], [1.0], 0.5, 1).tolist()  # ε / (2 - 3ε)
    [1.0]
    """
    lam = checks.entries("eigenvalues", eigenvalues, above=0, ndim=1)  # (n,)
    checks.fail_if(lam.size == 0, "eigenvalues", "hold at least one eigenvalue", "none")
    noise = checks.entries("noise", noise, at_least=0, shape=lam.shape)  # (n,)
    rate = checks.number("learning_rate", learning_rate, above=0)
    variance = 1 / checks.integer("batch", batch)

    def gain(rate):
        return variance * np.sum(rate * lam / (2 - rate * (1 + variance) * lam))

    last = 2 / ((1 + variance) * lam.max()) * (1 - EDGE)  # where a bracket vanishes
    feedback = gain(rate) if rate < last else 1.0
    if feedback >= 1 - EDGE:
        edge = brentq(lambda rate: gain(rate) - 1, 0, last) if gain(last) > 1 else last
        wanted = f"be below {edge:.6g}, where the variances of this spectrum and batch diverge"
        checks.fail("learning_rate", wanted, learning_rate)
    bracket = 2 - rate * (1 + variance) * lam  # (n,)
    loss = np.sum(rate * noise / bracket) / (1 - feedback)
    return rate * (variance * loss * lam + noise) / (lam * bracket)  # (n,)

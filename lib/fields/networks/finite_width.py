"""How far a network of N neurons is from its Gaussian process: the coefficient of 1/N, and the deviation at finite N.

The posterior mean of a network of two layers is a ratio of averages over its weights W, drawn from the prior,

    f̄_N(x) = ⟨m e^ℓ⟩ / ⟨e^ℓ⟩,   m = kᵀA⁻¹y,   ℓ = -½ log det A - ½ yᵀA⁻¹y,   A = K_W + T,

which see W through the kernel K_W alone, a mean over N independent neurons.  Hence  f̄_N = f̄_∞ + c/N + O(1/N²).
Source: ringel2025talk has the limit; naveh2021 announces the correction for any activation and depth.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields import _data
from lib.fields.networks._readouts import refuse_singular, regression
from lib.fields.networks.two_layers import TwoLayer, _read

_BLOCK = 2**17  # features that are in memory at a time


@dataclass(frozen=True, eq=False)
class Correction:
    """The Gaussian process, and what the first order in 1/N adds, at M points.

    Parameters
    ----------
    mean, coefficient, error : ndarray (M,)
        f̄_∞, c, and the standard error of c.
    curvature : ndarray (M,)
        ⟨½m''⟩, the part of c that does not know how well a network fits.
    variation : float
        ⟨ℓ'²⟩: over N it is, to first order, the variance of ℓ among networks.
    kernel_variation : float
        ⟨tr(A⁻¹δ)²⟩: over N the square of the relative fluctuation of their kernels.
    """

    mean: Array[" M"]
    coefficient: Array[" M"]
    error: Array[" M"]
    curvature: Array[" M"]
    variation: float
    kernel_variation: float


@dataclass(frozen=True, eq=False)
class Deviation:
    """N (f̄_N - f̄_∞) of networks of width N, at M points.

    Parameters
    ----------
    mean : ndarray (M,)
    covariance : ndarray (M, M)
        Of the mean; its diagonal holds the squared standard errors.
    effective : float
        Part of the networks that is effective,  (Σ q)² / n Σ q²,  q = e^ℓ.
    prior : ndarray (M,)
        The same mean where networks are not weighed with e^ℓ.
    likelihood_variance : float
        Of ℓ among the networks of the prior.
    """

    mean: Array[" M"]
    covariance: Array["M M"]
    effective: float
    prior: Array[" M"]
    likelihood_variance: float


class _Process:
    """The regression at infinite width, and first derivatives along the deviation of the kernel of one neuron."""

    def __init__(self, network, points):
        _, self.gain, self.variance = _read(network)._isotropic()
        self.phi, _ = network._functions()
        self.x, self.y, self.ridge = network.inputs, network.targets, network.ridge  # (P, d), (P,)
        self.at = _data.points("points", points, self.x.shape[1])  # (M, d)
        self.kernel = network.prior.kernel(self.x)  # (P, P)
        self.cross = network.prior.kernel(self.at, self.x)  # (M, P)
        matrix = self.kernel + self.ridge * np.eye(len(self.x))  # (P, P)
        try:
            self.inverse = cho_solve(_data.factored(matrix), np.eye(len(matrix)))  # (P, P)
        except LinAlgError:
            refuse_singular(np.inf, self.ridge)
        self.alpha, self.back = self.inverse @ self.y, self.inverse @ self.cross.T  # (P,), (P, M)
        self.mean = self.cross @ self.alpha  # (M,)
        self.likelihood = -(np.linalg.slogdet(matrix)[1] + self.y @ self.alpha) / 2

    def neurons(self, random, shape):
        """Features of neurons from the prior at the examples and at the points, each (..., P) and (..., M)."""
        w = np.sqrt(self.variance / self.x.shape[1]) * random.standard_normal((*shape, self.x.shape[1]))  # (..., d)
        return self.phi(w @ self.x.T), self.phi(w @ self.at.T)

    def slopes(self, features, cross):
        """m' (..., M) and ℓ' (...,) of every neuron."""
        seen, along = features @ self.alpha, features @ self.back  # (...,), (..., M)
        mean = self.gain * (cross - along) * seen[..., None] - (self.mean - self.back.T @ (self.kernel @ self.alpha))
        fit = self.gain * seen**2 - self.alpha @ self.kernel @ self.alpha  # (...,)
        size = self.gain * ((features @ self.inverse) * features).sum(axis=-1) - np.trace(self.inverse @ self.kernel)
        return mean, (fit - size) / 2


def correction(network: TwoLayer, points: ArrayLike, neurons: int, rng: Rng) -> Correction:
    """The coefficient c of  f̄_N = f̄_∞ + c/N + O(1/N²),  an average over single neurons of the prior.

    c = ⟨m'ℓ' + ½m''⟩,  with derivatives along  δ = s_a² φφᵀ - K,  the deviation of one neuron's kernel from the mean:
    m' = δ_xᵀα - bᵀδα,  ℓ' = ½αᵀδα - ½ tr A⁻¹δ,  ½m'' = bᵀδA⁻¹δα - δ_xᵀA⁻¹δα,  α = A⁻¹y, b = A⁻¹k, A = K + T.  The
    expansion asks for ⟨ℓ'²⟩/N and tr(A⁻¹K)/N to be small.

    Parameters
    ----------
    network : TwoLayer
        Of isotropic weights, with X, y and T; the theorem is for a bounded φ.
    points : array_like (M, d)
        x.
    neurons : int
        How many are drawn, >= 2.
    rng : int, SeedSequence or Generator

    Returns
    -------
    Correction

    Examples
    --------
    >>> from lib.fields.networks.prior import Prior
    >>> correction(TwoLayer(Prior("erf"), [[1.0]], [2.0], 0.1), [[1.0]], 100_000, rng=1).coefficient.round(2).tolist()
    [0.27]
    """
    task = _Process(network, points)
    random, left = checks.generator("rng", rng), checks.integer("neurons", neurons, at_least=2)
    rows, count = max(2, _BLOCK // (len(task.x) + len(task.at))), left
    shift, sums = None, [0.0] * 5
    inside = task.inverse @ task.kernel  # (P, P)  A⁻¹K
    while left:
        features, cross = task.neurons(random, (min(rows, left),))  # (n, P), (n, M)
        left -= len(features)
        mean, likelihood = task.slopes(features, cross)  # (n, M), (n,)
        moved = task.gain * features * (features @ task.alpha)[:, None] - task.kernel @ task.alpha  # (n, P)  δα
        moved = moved @ task.inverse  # (n, P)  A⁻¹δα
        along = (features * moved).sum(axis=1)[:, None]  # (n, 1)
        half = task.gain * (features @ task.back - cross) * along - moved @ (task.kernel @ task.back - task.cross.T)
        size = task.gain * ((features @ task.inverse) * features).sum(axis=1)  # (n,)  tr A⁻¹(δ + K)
        turned = task.gain * ((features @ inside @ task.inverse) * features).sum(axis=1)  # (n,)  tr A⁻¹KA⁻¹(δ + K)
        terms = mean * likelihood[:, None] + half  # (n, M)
        shift = terms.mean(axis=0) if shift is None else shift  # (M,)  near the mean, so that squares lose no digits
        new = terms - shift, (terms - shift) ** 2, half, likelihood**2, size**2 - 2 * turned
        sums = [old + part.sum(axis=0) for old, part in zip(sums, new)]
    first, second, half, square, kernels = (part / count for part in sums)  # (M,) thrice, () twice
    error = np.sqrt((second - first**2) / (count - 1))  # (M,)
    fluctuation = kernels + np.trace(inside @ inside)
    return Correction(task.mean, shift + first, error, half, float(square), float(fluctuation))


def deviation(network: TwoLayer, points: ArrayLike, width: int, replicas: int, rng: Rng) -> Deviation:
    """N (f̄_N - f̄_∞)  from networks of the prior, each weighed with its likelihood e^ℓ.

    The first order of numerator and denominator has the mean zero and is subtracted, so the error does not grow with N;
    honest where many networks are effective.

    Parameters
    ----------
    network : TwoLayer
        Of isotropic weights, with X, y and T.
    points : array_like (M, d)
        x.
    width, replicas : int
        N >= 1, and how many networks, >= 2.
    rng : int, SeedSequence or Generator

    Returns
    -------
    Deviation

    Examples
    --------
    >>> from lib.fields.networks.prior import Prior
    >>> deviation(TwoLayer(Prior("erf"), [[1.0]], [2.0], 0.1), [[1.0]], 200, 4000, rng=1).mean.round(2).tolist()
    [0.27]
    """
    task = _Process(network, points)
    random, width = checks.generator("rng", rng), checks.integer("width", width)
    left, parts = checks.integer("replicas", replicas, at_least=2), []
    rows = max(1, _BLOCK // (width * (len(task.x) + len(task.at))))
    while left:
        features, cross = task.neurons(random, (min(rows, left), width))  # (n, N, P), (n, N, M)
        left -= len(features)
        first = [slope.mean(axis=1) for slope in task.slopes(features, cross)]  # (n, M), (n,)
        solved, alpha, logarithm = regression(features.swapaxes(1, 2), task.y, task.ridge, task.gain)
        readouts = np.einsum("nip,p->ni", solved.swapaxes(1, 2), task.y)  # (n, N)
        mean = (cross * readouts[..., None]).sum(axis=1)  # (n, M)
        likelihood = -(logarithm + alpha @ task.y) / 2 - task.likelihood  # (n,)  ℓ - ℓ(K)
        parts.append((mean - task.mean, likelihood, *first))
    apart, likelihood, mean_slope, weight_slope = (np.concatenate(part) for part in zip(*parts, strict=True))
    highest = likelihood.max()
    if not highest > -np.inf:
        refuse_singular(np.inf, task.ridge)
    share = np.exp(likelihood - highest)  # (n,)
    effective = share.sum() ** 2 / (len(share) * (share**2).sum())
    top = max(highest, 0.0)  # weights e^ℓ and their first order 1 + ℓ', both over e^top, which leaves the ratio alone
    weight, one = np.exp(likelihood - top), np.exp(-top)  # (n,), ()
    below = weight - one * weight_slope  # (n,)
    left_over = width * (apart * weight[:, None] - one * mean_slope)  # (n, M)
    found = left_over.mean(axis=0) / below.mean()  # (M,)
    spread = (left_over - found * below[:, None]) / below.mean()  # (n, M)
    covariance, prior = spread.T @ spread / len(spread) ** 2, width * (apart - mean_slope).mean(axis=0)
    return Deviation(found, covariance, float(effective), prior, float(likelihood.var(ddof=1)))

"""Ridge regression on random features of a given spectrum: the experiment that the effective ridge is held against.

The features  φ_k(x),  k = 1..M, have mean zero, variance one and no correlation, so the kernel  Σ_k λ_k φ_k φ_k  has
the eigenvalues λ_k.  The theory also assumes that they look Gaussian; features of another law try that.  Source:
ringel2025talk, on learning curves.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.fields import _data
from lib.fields.kernels.gp_regression import _regressed


@dataclass(frozen=True, eq=False)
class Curves:
    """Regressions on S data sets at n numbers of samples and m ridges.

    Parameters
    ----------
    samples, ridges : ndarray (n,), (m,)
        P and T.
    test_error, train_error : ndarray (S, n, m)
        Mean squares, with label noise.
    kappa : ndarray (S, n, m)
        1/tr(K + T)⁻¹, the effective ridge per sample as each data set shows it.
    cross_validation : ndarray (S, n, m)
        A forecast of the test error from the training set alone.
    mean_coefficient, coefficient_variance : ndarray (n, m, M), or None
        Mean and variance of f_k over the data sets; None where the fit has no coefficients.
    """

    samples: Array[" n"]
    ridges: Array[" m"]
    test_error: Array["S n m"]
    train_error: Array["S n m"]
    kappa: Array["S n m"]
    cross_validation: Array["S n m"]
    mean_coefficient: Array["n m M"] | None = None
    coefficient_variance: Array["n m M"] | None = None


def _gaussian(random, samples, modes):
    return random.standard_normal((samples, modes))  # (P, M)


def measure(
    spectrum: Spectrum | ArrayLike, coefficients: ArrayLike, samples: ArrayLike, ridges: ArrayLike, rng: Rng, *,
    replicas: int = 30, noise_variance: float = 0.0, features: Callable = _gaussian,
) -> Curves:  # fmt: skip
    """Regressions on fresh data sets: errors, learned coefficients and diagnostics at every P and T.

    f_k = λ_k Σ_μ φ_k(x_μ) α_μ,  α = (K + T)⁻¹y,  K = ΦλΦᵀ,  y = Φv + ε.  The error  Σ_k (f_k - v_k)² + σ²  is exact,
    without test points.  With the λ_k and v_k of real data these are its surrogates.

    Parameters
    ----------
    spectrum : Spectrum or array_like
        λ_k >= 0 of M modes, a level of whole multiplicity g as g modes.
    coefficients : array_like (M,)
        v_k, in the order of the modes.
    samples : array_like (n,)
        P >= 1.
    ridges : array_like (m,)
        T > 0, such that K + T has a condition number up to 1e12.
    rng : int, SeedSequence or Generator
    replicas : int
        S >= 2 data sets at each P.
    noise_variance : float
        σ² >= 0, of the labels.
    features : callable
        (Generator, P, M) -> Φ (P, M), of mean zero, variance one and no correlation; by default Gaussian numbers.

    Returns
    -------
    Curves

    Examples
    --------
    >>> measure([1.0, 0.5], [1.0, 0.0], [10, 200], [1e-3], rng=1, replicas=4).test_error.shape
    (4, 2, 1)
    """
    spectrum = Spectrum.read("spectrum", spectrum)
    values = np.repeat(spectrum.eigenvalues, _data.whole("spectrum", spectrum.multiplicities))  # (M,)
    v = checks.array("coefficients", coefficients, shape=values.shape)  # (M,)
    sizes, t = _data.whole("samples", samples, count=1, at_least=1, ndim=1), _data.ridges(ridges)  # (n,), (m,)
    noise = np.sqrt(checks.number("noise_variance", noise_variance, at_least=0))
    replicas = checks.integer("replicas", replicas, at_least=2)
    seeds = children(rng, sizes.size * replicas)
    test, seen = np.empty((replicas, sizes.size, t.size)), np.empty((3, replicas, sizes.size, t.size))  # (S, n, m) each
    mean, variance = (np.empty((sizes.size, t.size, values.size)) for _ in range(2))  # (n, m, M) each
    for i, size in enumerate(sizes):
        coefficient = np.empty((replicas, t.size, values.size))  # (S, m, M)
        for s in range(replicas):
            random = checks.generator("rng", seeds[i * replicas + s])
            drawn = checks.array("features", features(random, int(size), values.size), shape=(size, values.size))
            y = drawn @ v + noise * random.standard_normal(size)  # (P,)
            weights, seen[:, s, i] = _regressed((drawn * values) @ drawn.T, y, t)  # (m, P)
            coefficient[s] = (weights @ drawn) * values
            test[s, i] = ((coefficient[s] - v) ** 2).sum(axis=1) + noise**2
        mean[i], variance[i] = coefficient.mean(axis=0), coefficient.var(axis=0, ddof=1)
    return Curves(sizes, t, test, *seen, mean, variance)

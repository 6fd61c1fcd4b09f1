"""Ridge regression on random features of a given spectrum: the experiment that the effective ridge is held against.

The features  φ_k(x),  k = 1..M, have mean zero, variance one and no correlation, so the kernel  Σ_k λ_k φ_k φ_k  has
the eigenvalues λ_k.  The theory also assumes that they look Gaussian; signs, heavy tails and an amplitude common to the
tail modes of an input try that.  Source: ringel2025talk, on learning curves; the kinds of features are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.fields import _data
from lib.fields.kernels.gp_regression import _regressed

FEATURES = ("gaussian", "sign", "heavy")
HEAVY_FREEDOM = 5  # degrees of freedom of Student's t: excess kurtosis 6


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


def draw_features(
    kind: str, samples: int, modes: int, rng: Rng, *, amplitude_spread: float = 0.0, amplitude_from: int = 0
) -> Array["P M"]:
    """Features φ_k(x_μ) of random inputs: uncorrelated, with mean zero and variance one.

    The amplitude  z(x) = e^{sη - s²}  with Gaussian η, ⟨z²⟩ = 1, keeps every covariance but makes the variance of the
    tail depend on the input.

    Parameters
    ----------
    kind : str
        "gaussian"; "sign", ±1; or "heavy", Student's t with five degrees of freedom.
    samples, modes : int
        P, M >= 1.
    rng : int, SeedSequence or Generator
    amplitude_spread : float
        s, from 0 to 5.
    amplitude_from : int
        First mode (from 0) that z multiplies.

    Returns
    -------
    ndarray (P, M)

    Examples
    --------
    >>> draw_features("sign", 2, 3, rng=1).tolist()
    [[-1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]
    """
    checks.one_of("kind", kind, FEATURES)
    shape = checks.integer("samples", samples), checks.integer("modes", modes)
    spread = checks.number("amplitude_spread", amplitude_spread, at_least=0, at_most=5)
    start, random = checks.integer("amplitude_from", amplitude_from, at_least=0), checks.generator("rng", rng)
    if kind == "gaussian":
        features = random.standard_normal(shape)  # (P, M)
    elif kind == "sign":
        features = random.integers(0, 2, shape) * 2.0 - 1  # (P, M)
    else:
        features = random.standard_t(HEAVY_FREEDOM, shape) * np.sqrt((HEAVY_FREEDOM - 2) / HEAVY_FREEDOM)  # (P, M)
    if spread > 0:
        features[:, start:] *= np.exp(spread * random.standard_normal((shape[0], 1)) - spread**2)
    return features


def measure(
    spectrum: Spectrum | ArrayLike, coefficients: ArrayLike, samples: ArrayLike, ridges: ArrayLike, rng: Rng, *,
    replicas: int = 30, noise_variance: float = 0.0, kind: str = "gaussian", amplitude_spread: float = 0.0,
    amplitude_from: int = 0,
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
    kind, amplitude_spread, amplitude_from
        Of the features, as `draw_features` takes them.

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
    tail = {"amplitude_spread": amplitude_spread, "amplitude_from": amplitude_from}
    test, seen = np.empty((replicas, sizes.size, t.size)), np.empty((3, replicas, sizes.size, t.size))  # (S, n, m) each
    mean, variance = (np.empty((sizes.size, t.size, values.size)) for _ in range(2))  # (n, m, M) each
    for i, size in enumerate(sizes):
        coefficient = np.empty((replicas, t.size, values.size))  # (S, m, M)
        for s in range(replicas):
            random = checks.generator("rng", seeds[i * replicas + s])
            features = draw_features(kind, int(size), values.size, random, **tail)  # (P, M)
            y = features @ v + noise * random.standard_normal(size)  # (P,)
            weights, seen[:, s, i] = _regressed((features * values) @ features.T, y, t)  # (m, P)
            coefficient[s] = (weights @ features) * values
            test[s, i] = ((coefficient[s] - v) ** 2).sum(axis=1) + noise**2
        mean[i], variance[i] = coefficient.mean(axis=0), coefficient.var(axis=0, ddof=1)
    return Curves(sizes, t, test, *seen, mean, variance)

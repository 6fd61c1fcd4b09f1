"""Ridge regression on random features of a given spectrum: the experiment that the effective ridge is held against.

The features  φ_k(x),  k = 1..M, have mean zero, variance one and no correlation, so the kernel  Σ_k λ_k φ_k φ_k  has
the eigenvalues λ_k, and the error of a fitted function is  Σ_k (f_k - v_k)²  plus the label noise: exact, without test
points.  The theory also assumes that they look Gaussian; signs, heavy tails and an amplitude common to the tail modes
of an input try that.  Source: ringel2025talk, on learning curves; the kinds of features are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.random import children
from lib.fields import _data
from lib.fields.kernels import _dual

FEATURES = ("gaussian", "sign", "heavy")
HEAVY_FREEDOM = 5  # degrees of freedom of Student's t: excess kurtosis 6


@dataclass(frozen=True, eq=False)
class Curves:
    """Regressions on S data sets at n numbers of samples and m ridges."""

    samples: np.ndarray  # (n,)  P
    ridges: np.ndarray  # (m,)  T
    test_error: np.ndarray  # (S, n, m)  with label noise
    train_error: np.ndarray  # (S, n, m)
    kappa: np.ndarray  # (S, n, m)  1/tr(K + T)⁻¹, the effective ridge per sample as each data set shows it
    cross_validation: np.ndarray  # (S, n, m)  a forecast of the test error from the training set alone
    mean_coefficient: np.ndarray | None  # (n, m, M)  mean over data sets of f_k; None where the fit has no coefficients
    coefficient_variance: np.ndarray | None  # (n, m, M)  its variance over data sets


def draw_features(kind, samples, modes, rng, *, amplitude_spread=0.0, amplitude_from=0):
    """Features φ_k(x_μ) of random inputs: uncorrelated, with mean zero and variance one.

    The amplitude  z(x) = e^{sη - s²}  with Gaussian η, ⟨z²⟩ = 1, keeps every covariance but makes the variance of the
    tail depend on the input.  `kind`: "gaussian"; "sign", ±1; or "heavy", Student's t with five degrees of freedom;
    `samples`, `modes`: P, M >= 1; `rng`: int, SeedSequence or Generator; `amplitude_spread`: s, from 0 to 5;
    `amplitude_from`: first mode (from 0) that z multiplies.  Returns (P, M).

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


def dual_fit(gram, targets, ridges):
    """Dual weights  α = (K + T)⁻¹y  and  κ̂ = 1/tr(K + T)⁻¹,  the effective ridge that the data show, at every ridge.

    `gram` (P, P): K, positive semidefinite; `targets` (P,): y; `ridges` (m,): T > 0, such that K + T
    has a condition number up to 1e12.  Returns α (m, P), κ̂ (m,).

    >>> [part.round(6).tolist() for part in dual_fit([[1.0, 0.0], [0.0, 3.0]], [2.0, 4.0], [1.0])]
    [[[1.0, 1.0]], [1.333333]]
    """
    kernel = checks.symmetric("gram", gram)  # (P, P)
    y = checks.array("targets", targets, shape=kernel.shape[:1])  # (P,)
    return _dual.solve(kernel, y, _data.ridges(ridges))


def measure(
    eigenvalues, coefficients, samples, ridges, rng, *,
    sets=30, noise_variance=0.0, kind="gaussian", amplitude_spread=0.0, amplitude_from=0,
):  # fmt: skip
    """Regressions on fresh data sets: errors, learned coefficients and diagnostics at every P and T.

    f_k = λ_k Σ_μ φ_k(x_μ) α_μ,  α = (K + T)⁻¹y,  K = ΦλΦᵀ,  y = Φv + ε.  With the λ_k and v_k of real data these are
    its surrogates.  `eigenvalues` (M,): λ_k >= 0, not all zero; `coefficients` (M,): v_k; `samples` (n,): P >= 1;
    `ridges` (m,): T > 0, as in :func:`dual_fit`; `rng`: int or SeedSequence; `sets`: S >= 2 data sets at each P;
    `noise_variance`: σ² >= 0; `kind`, `amplitude_spread`, `amplitude_from`: as in :func:`draw_features`.  Returns
    Curves.

    >>> measure([1.0, 0.5], [1.0, 0.0], [10, 200], [1e-3], rng=1, sets=4).test_error.shape
    (4, 2, 1)
    """
    values = checks.entries("eigenvalues", eigenvalues, at_least=0, ndim=1)  # (M,)
    if not values.any():
        checks.fail("eigenvalues", "hold at least one that is > 0", eigenvalues)
    v = checks.array("coefficients", coefficients, shape=values.shape)  # (M,)
    sizes, t = _data.whole("samples", samples, count=1, at_least=1, ndim=1), _data.ridges(ridges)  # (n,), (m,)
    noise = np.sqrt(checks.number("noise_variance", noise_variance, at_least=0))
    sets = checks.integer("sets", sets, at_least=2)
    seeds = children(rng, sizes.size * sets)
    tail = {"amplitude_spread": amplitude_spread, "amplitude_from": amplitude_from}
    test, seen = np.empty((sets, sizes.size, t.size)), np.empty((3, sets, sizes.size, t.size))  # (S, n, m) each
    mean, variance = (np.empty((sizes.size, t.size, values.size)) for _ in range(2))  # (n, m, M) each
    for i, size in enumerate(sizes):
        coefficient = np.empty((sets, t.size, values.size))  # (S, m, M)
        for s in range(sets):
            random = checks.generator("rng", seeds[i * sets + s])
            features = draw_features(kind, int(size), values.size, random, **tail)  # (P, M)
            y = features @ v + noise * random.standard_normal(size)  # (P,)
            weights, seen[:, s, i] = _dual.regressed((features * values) @ features.T, y, t)  # (m, P)
            coefficient[s] = (weights @ features) * values
            test[s, i] = ((coefficient[s] - v) ** 2).sum(axis=1) + noise**2
        mean[i], variance[i] = coefficient.mean(axis=0), coefficient.var(axis=0, ddof=1)
    return Curves(sizes, t, test, *seen, mean, variance)

"""Learning curves of kernel regression: bias, variance, test and training error, exponents, and benign overfitting.

All follow from κ of :mod:`lib.fields.kernels.effective_ridge`, whose arguments they take.  The target is y = Σ_k v_k
φ_k(x) + ε with label noise of variance σ²; modes of one eigenvalue enter through their number g_k and the sum w_k of
their v², the "target power" (n,), >= 0.  Power laws are λ_k = k^{-a}, a > 1, the "spectral exponent", and w_k = k^{-β}.
 Source: ringel2025talk, on learning curves, double descent and the renormalization of the ridge.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields._data import per_sample
from lib.fields.kernels import _modes
from lib.fields.kernels._modes import blocks, learned, modes, settings, unlearned
from lib.fields.kernels.effective_ridge import equivalent_kernel, learnability, solve


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Averages over data sets at each pair of P and T asked for; (...) is the shape that these two broadcast to."""

    kappa: np.ndarray  # (...)  κ, effective ridge per sample
    amplification: np.ndarray  # (...)  E₀ >= 1, by which the finite data set multiplies every error
    bias: np.ndarray  # (...)  Σ_k (1 - L_k)² w_k, error of the mean prediction
    variance: np.ndarray  # (...)  Σ_k g_k Var_data f_k, error of the spread over data sets
    test_error: np.ndarray  # (...)  bias + variance + label noise
    train_error: np.ndarray  # (...)  mean square residual on the noisy labels
    sampled_excess: np.ndarray  # (...)  T_eff - T, which a function drawn from the posterior has on top of its mean


def _power(values, target_power):
    return checks.entries("target_power", target_power, at_least=0, shape=values.shape)  # (n,)


def predict(eigenvalues, target_power, samples, *, ridge, noise_variance=0.0, multiplicities=None):
    """Bias, variance, test and training error of the mean prediction at every P and T.

    E₀ = P/(P - Σ g L²),  test error  E₀[Σ (1 - L_k)² w_k + σ²],  training error  (T/(Pκ))² times that.  `eigenvalues`,
    `target_power`, `samples`, `multiplicities`: λ_k, w_k, P, g_k; `ridge`: T >= 0, and > 0 where P equals the rank, as
    the variance diverges there; `noise_variance`: σ² >= 0.  Returns LearningCurve.

    >>> float(predict([1.0], [1.0], 8, ridge=1.0, multiplicities=[4]).kappa.round(6))  # 8κ² + 3κ = 1
    0.212695
    """
    values, counts = modes(eigenvalues, multiplicities)
    power, noise = _power(values, target_power), checks.number("noise_variance", noise_variance, at_least=0)
    p, t = settings(samples, ridge)
    rank = counts[values > 0].sum()
    kappa = np.asarray(solve(values, p, ridge=t, multiplicities=counts))  # (...)
    k, p, t, shape = kappa.ravel(), p.ravel(), t.ravel(), p.shape  # (R,) each
    bias, spread, shared = (np.zeros(p.size) for _ in range(3))  # (R,) each
    for rows in blocks(p.size, values.size):
        part, left = learned(values, k[rows]), unlearned(values, k[rows])  # (r, n), (r, n)
        bias[rows], spread[rows], shared[rows] = left**2 @ power, (part * left) @ counts, part**2 @ counts
    bare = np.divide(t, k, out=p - rank, where=k > 0)  # (R,)  T/κ, the samples that no mode has used up
    unused = bare + spread  # (R,)  P - Σ g L²
    if np.any(unused <= 0):
        checks.fail("ridge", f"be > 0 where samples equals the rank {rank:g}: the variance diverges there", ridge)
    test = (p / unused) * (bias + noise)  # (R,)
    with np.errstate(over="ignore"):
        variance, excess = (shared / unused) * (bias + noise), k * (shared + spread)  # (R,), (R,)
        parts = p / unused, bias, variance, test, (bare / p) ** 2 * test, excess  # (R,) each
    return LearningCurve(kappa, *(checks.finite("target_power", part).reshape(shape) for part in parts))


def equivalent_kernel_error(eigenvalues, target_power, samples, *, ridge):
    """Error against the clean target that the bare equivalent kernel promises:  Σ_k (1 - L_k)² w_k  at  κ = T/P.

    `eigenvalues`, `target_power`, `samples`, `ridge`: λ_k, w_k, P, T > 0.  Returns what P and T broadcast to.

    >>> float(equivalent_kernel_error([1.0], [4.0], 10, ridge=10.0))
    1.0
    """
    kappa = np.asarray(equivalent_kernel(eigenvalues, samples, ridge=ridge)[0])  # (...)
    values, _ = modes(eigenvalues)
    return unlearned(values, kappa) ** 2 @ _power(values, target_power)


def coefficient_variance(eigenvalues, kappa, test_error, samples, *, own_error=0.0):
    """Variance of one learned coefficient over data sets,  Var_data f_k = [(test error) + E₀(1 - L_k)² v_k²] L_k²/P.

    The second term, not in the source, doubles the variance of a mode that holds all of the target.  `eigenvalues`:
    λ_k; `kappa`, `samples`: κ >= 0 and P > 0, one number each; `test_error`: with label noise; `own_error`:
    E₀(1 - L_k)² v_k², a float or (n,).  Returns (n,), of each mode by itself, whatever its multiplicity.

    >>> coefficient_variance([3.0, 1.0], 1.0, 8.0, 4).tolist()
    [1.125, 0.5]
    """
    share = learnability(eigenvalues, checks.number("kappa", kappa, at_least=0))  # (n,)
    error, p = checks.number("test_error", test_error, at_least=0), checks.number("samples", samples, above=0)
    return (error + per_sample("own_error", own_error, share.shape, at_least=0)) * share**2 / p  # (n,)


def loss_exponent(spectral_exponent, target_exponent, *, ridgeless):
    """Exponent of a power law's learning curve,  loss ∝ P^{-x}:  x = min(β - 1, 2a), over a where a ridge dominates.

    The first is the target's tail beyond the learnability edge, the second what the learned modes still lack.
    `spectral_exponent`, `target_exponent`: a, β > 1; `ridgeless`: whether unlearned modes make the ridge.  Returns x.

    >>> [loss_exponent(2.0, 2.5, ridgeless=True), loss_exponent(2.0, 2.5, ridgeless=False)]
    [1.5, 0.75]
    """
    edge = edge_exponent(spectral_exponent, ridgeless=ridgeless)
    return min(checks.number("target_exponent", target_exponent, above=1) - 1, 2 * float(spectral_exponent)) * edge


def edge_exponent(spectral_exponent, *, ridgeless):
    """Exponent of the learnability edge,  k* ∝ P^x:  x = 1 without a ridge, not in the source, 1/a where it dominates.

    `spectral_exponent`, `ridgeless`: as in :func:`loss_exponent`.  Returns x.

    >>> [edge_exponent(2.0, ridgeless=True), edge_exponent(2.0, ridgeless=False)]
    [1.0, 0.5]
    """
    a = checks.number("spectral_exponent", spectral_exponent, above=1)
    return 1.0 if checks.boolean("ridgeless", ridgeless) else 1 / a


def learnability_edge(kappa, spectral_exponent):
    """Rank of the mode that is half learned, for  λ_k = k^{-a}:  k* = κ^{-1/a},  not rounded.

    `kappa`: κ > 0, a float or an array; `spectral_exponent`: a > 1.  Returns k*.

    >>> float(learnability_edge(0.01, 2.0))
    10.0
    """
    kappa = checks.entries("kappa", kappa, above=0)  # (...)
    return kappa ** (-1 / checks.number("spectral_exponent", spectral_exponent, above=1))


def crossover(ridge, spectral_exponent):
    """Number of samples from which on a ridge dominates a power law,  P ~ T^{-1/(a-1)}:  a scale, not a sharp point.

    There the unlearned variance is of order T; with fewer samples unlearned modes make the ridge.  `ridge`: T > 0, a
    float or an array; `spectral_exponent`: a > 1.  Returns P.

    >>> float(crossover(0.01, 2.0))
    100.0
    """
    t, a = checks.entries("ridge", ridge, above=0), checks.number("spectral_exponent", spectral_exponent, above=1)
    with np.errstate(over="ignore"):
        return checks.finite("spectral_exponent", t ** (-1 / (a - 1)))


def effective_ranks(eigenvalues, *, multiplicities=None):
    """Effective ranks of what is left beyond k modes:  r_k = Σ_{i>k} λ_i/λ_{k+1},  R_k = (Σ_{i>k} λ_i)²/Σ_{i>k} λ_i².

    Overfitting is benign if for some k far below P both are far above it (Bartlett and coauthors, 2020).
    `eigenvalues`, `multiplicities`: λ_k > 0, descending; g_k.  Returns k = 0, g_1, g_1 + g_2, ..., r_k and R_k.

    >>> [part.round(6).tolist() for part in effective_ranks([1.0, 0.1], multiplicities=[2, 100])]
    [[0.0, 2.0], [12.0, 100.0], [48.0, 100.0]]
    """
    values, counts = modes(eigenvalues, multiplicities)
    if values[-1] == 0 or np.any(np.diff(values) > 0):
        checks.fail("eigenvalues", "be > 0 and descending", eigenvalues)
    scaled = values / values[0]  # (n,)
    first, second = (_modes.tails(counts * scaled**power)[:-1] for power in (1, 2))  # (n,), (n,)
    return np.append(0.0, np.cumsum(counts)[:-1]), first / scaled, first**2 / second

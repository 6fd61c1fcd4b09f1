"""One-pass learning of a linear teacher by a linear student with structured inputs: exact at any learning rate.

e_k = |P_k(J - B)|²/N starts at (1 + σ_J²) n_k, n_k = m_k/N, and for N -> ∞ with L fixed obeys  de_k/dα = -2ηλ_k e_k +
η²λ_k n_k Σ_j λ_j e_j,  ε_g = ½ Σ_k λ_k e_k.  Divided by √n_k the matrix is symmetric: one `eigh` serves every α.  K
students and M teachers reduce to one of each with the rate ηM/K and the variance σ_J² M/K. Source: worschech2024, eqs.
(5) to (9).  In all functions `alpha`, a number or (A,): α = examples / N >= 0; `eigenvalues` (L,): λ_k > 0 of mean one,
weighted with the `multiplicities` (L,): m_k, up to a factor, all equal by default; `learning_rate`: η > 0;
`student_variance`: σ_J² >= 0 of the entries of J at the start.  Power laws have L `levels` and the `exponent` β > 0.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from lib.common import checks
from lib.scaling import _arguments, _linear
from lib.scaling.spectra import power_law


@checks.one_or_many
def generalization_error(
    alpha, eigenvalues, learning_rate, *, multiplicities=None, student_variance=0.0, derivative=False
):
    """Generalization error for N -> ∞ at a fixed number of eigenvalues, exact in the learning rate.

    ε_g = ½ vᵀ e^{Sα} w(0),  S = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k,  w_k = e_k/√n_k:  eq. (6), corrected.  It
    decays for η < 2, whatever the spectrum.  `alpha`, `eigenvalues`, `learning_rate`, `multiplicities`,
    `student_variance`: as in the module; `derivative`: True gives dε_g/dα instead.  Returns (A,).

    >>> generalization_error([0.0, 1.0], [1.0], 0.5).round(6).tolist()  # e^{-(2η - η²)α} / 2
    [0.5, 0.236183]
    """
    alpha, variance = _arguments.times(alpha), _arguments.variance(student_variance)
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    rates, modes, v = _linear.flow_modes(lam, fractions, _arguments.learning_rate(learning_rate))
    weights = (v @ modes) * (modes.T @ (variance * fractions / np.sqrt(fractions)))  # (L,)
    if checks.boolean("derivative", derivative):
        weights = weights * rates
    with np.errstate(over="ignore", invalid="ignore"):
        return _linear.in_range(0.5 * np.exp(np.outer(alpha, rates)) @ weights)  # (A,)


@checks.one_or_many
def gradient_flow_error(alpha, eigenvalues, learning_rate, *, multiplicities=None, student_variance=0.0):
    """Generalization error for η -> 0 at fixed ηα:  ½ (1 + σ_J²) Σ_k n_k λ_k e^{-2ηλ_kα}  (eq. (8)).

    `alpha`, `eigenvalues`, `learning_rate`, `multiplicities`, `student_variance`: as in the module.  Returns (A,).

    >>> gradient_flow_error([0.0, 1.0], [1.0], 0.5).round(6).tolist()
    [0.5, 0.18394]
    """
    alpha, rate = _arguments.times(alpha), _arguments.learning_rate(learning_rate)
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    return _arguments.variance(student_variance) * _linear.flow_error(alpha, lam, fractions, rate, lam.size)


@checks.one_or_many
def local_exponent(alpha, eigenvalues, learning_rate, *, multiplicities=None):
    """Slope  d ln ε_g / d ln α  of :func:`gradient_flow_error`, without any fit, accurate where the error underflows.

    It tends to -β/(1+β), eq. (9), slowly: the correction at ηλ₊α = z L^{1+β} is of order z^{β/(1+β)}.  `alpha`,
    `eigenvalues`, `learning_rate`, `multiplicities`: as in the module.  Returns (A,), <= 0.

    >>> local_exponent([0.5, 2.0], [1.0], 0.5).tolist()  # a single exponential: -2ηα
    [-0.5, -2.0]
    """
    alpha, rate = _arguments.times(alpha), _arguments.learning_rate(learning_rate)
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    weights = fractions * lam * np.exp(-2 * rate * np.outer(alpha, lam - lam.min()))  # (A, L)
    return -2 * rate * alpha * (weights @ lam) / weights.sum(axis=1)


def modes(eigenvalues, learning_rate, *, multiplicities=None):
    """Shifted eigenvalues λ̃_j and amplitudes b_j of  ε_g = (1 + σ_J²)/(2 - η) Σ_j b_j λ̃_j e^{-2ηλ̃_jα}.

    1 = η Σ_k n_k λ_k² / (2(λ_k - λ̃_j))  (eqs. (54) to (57), corrected),  Σ_j b_j = 1,  Σ_j b_j λ̃_j = (2 - η)/2.
    `eigenvalues`, all different, `multiplicities`: as in the module; `learning_rate`: 0 < η < 2. Returns λ̃_j, b_j
    (L,).

    >>> [part.tolist() for part in modes([1.0], 0.5)]
    [[0.75], [1.0]]
    """
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    if len(np.unique(lam)) < lam.size:
        checks.fail("eigenvalues", "all differ: merge equal ones and add their multiplicities", eigenvalues)
    rate = checks.number("learning_rate", learning_rate, above=0, below=2)
    rates, vectors, v = _linear.flow_modes(lam, fractions, rate)
    shifted = -rates / (2 * rate)  # (L,)
    # What mode j adds to ε_g, from the eigenvectors: the differences λ_k - λ̃_j of the printed form lose their digits.
    weights = (v @ vectors) * (vectors.T @ np.sqrt(fractions))  # (L,)
    return shifted, (2 - rate) / 2 * weights / shifted


@checks.one_or_many
def finite_size_error(alpha, eigenvalues, learning_rate, *, multiplicities=None, student_variance=0.0):
    """Mean generalization error of stochastic gradient descent on N Gaussian inputs, exact at every N, L and η.

    A step multiplies the mean of e_k by  1 - 2a_k + 2a_k²,  a_k = ηλ_k/N,  and adds  a_k m_k Σ_j a_j e_j.  `alpha`,
    rounded to whole steps αN; `eigenvalues`, `learning_rate`, `student_variance`: as in the module; `multiplicities`
    (L,): integers m_k themselves, N = Σ_k m_k; default: all one.  Returns (A,), the mean over examples and starts.

    >>> finite_size_error([0.0, 1.0], [1.0], 0.5).tolist()  # one input: 1 - 2η + 3η² a step
    [0.5, 0.375]
    """
    alpha, rate = _arguments.times(alpha), _arguments.learning_rate(learning_rate)
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    counts, start = _arguments.counts(multiplicities, lam.shape), _arguments.variance(student_variance) * fractions
    return _linear.descent_error(alpha, lam, counts, rate, start[None], lam.size)[0]


def finite_size_threshold(eigenvalues, *, multiplicities=None):
    """Learning rate at which the mean error of :func:`finite_size_error` stops decaying.

    The smallest root of  Σ_k m_k a_k / (2(1 - a_k)) = 1,  a_k = ηλ_k/N:  2 for N -> ∞ at fixed L, clearly less at L =
    N. `eigenvalues` (L,): λ_k; `multiplicities` (L,): integers m_k themselves; default: all one, N = L.  Returns η_c.

    >>> round(finite_size_threshold([1.0], multiplicities=[10]), 12)  # 2N / (N + 2)
    1.666666666667
    """
    lam, _ = _arguments.spectrum(eigenvalues, multiplicities)  # (L,)
    counts = _arguments.counts(multiplicities, lam.shape)  # (L,)
    size = counts.sum()

    def excess(rate):
        part = rate * lam / size  # (L,)
        return counts @ (part / (1 - part)) / 2 - 1

    pole = size / lam.max()  # excess grows from -1 at η = 0 to infinity here; and excess(2) >= 0
    top = min(2.0, pole * (1 - 1e-15))
    return float(brentq(excess, 0.0, top, xtol=1e-15, rtol=1e-14)) if excess(top) > 0 else top


@checks.one_or_many
def power_law_error(alpha, levels, exponent, learning_rate, *, student_variance=0.0, ends="midpoint"):
    """:func:`gradient_flow_error` over a power-law spectrum as an integral:  two incomplete Gamma functions.

    ε_g ≈ (1+σ_J²) λ₊/(2L) c^{-s}/(1+β) [Γ(s, c b^{-(1+β)}) - Γ(s, c a^{-(1+β)})],  c = 2ηλ₊α,  s = β/(1+β).  `alpha`,
    here > 0, `levels`, `exponent`, `learning_rate`, `student_variance`: as in the module; `ends`: "midpoint", a = 1/2,
    b = L + 1/2, closer to the sum, or "endpoint", a = 1, b = L >= 2, eqs. (9) and (50).  Returns (A,).

    >>> bool(np.isclose(power_law_error(30.0, 1000, 1.0, 0.1), gradient_flow_error(30.0, power_law(1000, 1.0), 0.1)))
    True
    """
    alpha = checks.entries("alpha", alpha, above=0, ndim=1)  # (A,)
    levels, exponent = checks.integer("levels", levels), checks.number("exponent", exponent, above=0)
    rate, variance = _arguments.learning_rate(learning_rate), _arguments.variance(student_variance)
    middle = checks.one_of("ends", ends, ("midpoint", "endpoint")) == "midpoint"
    if levels == 1 and not middle:
        checks.fail("levels", "be at least 2 between endpoints, which coincide for one level", levels)
    first, last = (0.5, levels + 0.5) if middle else (1.0, float(levels))
    return variance * _linear.modes_between(first, last, alpha, power_law(levels, exponent), exponent, rate)


def power_law_window(levels, exponent, learning_rate):
    """Times between which the error over a power-law spectrum is a power of time,  α_lo = 1/(2ηλ₊) ≪ α ≪ α_hi.

    A finite L lowers it by the part (α/α_hi)^s, to first order, with  α_hi = α_lo L^{1+β} Γ(1+s)^{1/s},  s = β/(1+β)
    (eqs. (51) to (53)).  `levels`, `exponent`, `learning_rate`: as in the module. Returns α_lo, α_hi.

    >>> lo, hi = power_law_window(128, 1.0, 0.01)
    >>> bool(np.isclose(hi / lo, 128**2 * np.pi / 4))
    True
    """
    beta, rate = checks.number("exponent", exponent, above=0), _arguments.learning_rate(learning_rate)
    lam, s = power_law(levels, beta), beta / (1 + beta)  # (L,), float
    start = 1 / (2 * rate * lam[0])
    nodes, weights = np.polynomial.legendre.leggauss(20)  # (20,), (20,)
    power = weights / 2 @ digamma(1 + s * (1 + nodes) / 2)  # ln Γ(1+s)/s, also for s -> 0
    return float(start), float(start * lam.size ** (1 + beta) * np.exp(power))

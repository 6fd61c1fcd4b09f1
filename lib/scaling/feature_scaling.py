"""A linear student that may train only some of its weights: what the frozen ones cost.

As in :mod:`lib.scaling.linear_student`, with N weights in the eigenbasis of the inputs, of which the first N_l are
trained.  The tail stays as an error,  ε_∞ = (1+σ_J²)/(2N) Σ_{k>N_l} λ_k,  and acts on the others as label noise. In any
other basis (:func:`schur_floors`, :func:`decoupled`) Σ has the blocks Σ̃ (trained), Σ̂ (frozen) and Σ_× between them:
what regression on the trained inputs cannot tell stays,  ε_∞ = (1+σ_J²)/(2N) Tr(Σ̂ - Σ_×ᵀ Σ̃⁻¹ Σ_×).  Source:
worschech2024, eqs. (10), (11), (58) to (79) and (82) to (88).  In all functions `alpha`, a number or (A,): α = examples
/ N >= 0; `eigenvalues` (N,): λ_k > 0 of mean one, one for every component, trained ones first; `trained`: 1 <= N_l <=
N; `learning_rate`: η > 0; `student_variance`: σ_J² >= 0 of the entries of J at the start; `covariance` (N, N): Σ,
positive definite.  Power laws have L = N `levels` and the `exponent` β > 0.
"""

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.optimize import brentq
from scipy.special import gamma, gammaincc

from lib.common import checks
from lib.scaling import _arguments, _linear
from lib.scaling.spectra import power_law


@checks.one_or_many
def generalization_error(alpha, eigenvalues, trained, learning_rate, *, student_variance=0.0):
    """Error when the first N_l components in the eigenbasis are trained with a small learning rate.

    ε_g = (1+σ_J²)/(2N) [Σ_{k≤N_l} λ_k e^{-2ηλ_kα} + Σ_{k>N_l} λ_k]  (eq. (10)).  `alpha`, `eigenvalues`, `trained`,
    `learning_rate`, `student_variance`: as in the module.  Returns (A,).

    >>> generalization_error([0.0, 1e9], [1.5, 0.5], 1, 0.1).tolist()
    [0.5, 0.125]
    """
    alpha, rate = _arguments.times(alpha), _arguments.learning_rate(learning_rate)
    lam, fractions = _arguments.spectrum(eigenvalues)  # (N,), (N,)
    error = _linear.flow_error(alpha, lam, fractions, rate, _arguments.trained(trained, lam.size))  # (A,)
    return _arguments.variance(student_variance) * error


@checks.one_or_many
def finite_size_error(alpha, eigenvalues, trained, learning_rate, *, squares=None, student_variance=0.0):
    """Mean error of stochastic gradient descent on the first N_l components, exact for Gaussian inputs at any N, η.

    With a_k = ηλ_k/N a step changes the means c_k of the trained D_k²/N to  (1 - 2a_k + 2a_k²) c_k + a_k Σ_{j≤N} a_j
    c_j,  ε_g = ½ Σ_k λ_k c_k.  `alpha`, rounded to whole steps αN; `eigenvalues`, here of any mean; `trained`,
    `learning_rate`: as in the module; `squares` (N,) or (runs, N): D_k² >= 0 of J - B at the start, by default their
    mean 1 + σ_J²; `student_variance`: only without `squares`.  Returns (A,), or (runs, A) for squares (runs, N).

    >>> finite_size_error([0.0, 0.5, 1e3], [1.5, 0.5], 1, 0.4).round(6).tolist()  # rests at 0.125 / (1 - 0.3/1.4)
    [0.5, 0.3875, 0.159091]
    """
    alpha, rate, lam = _arguments.times(alpha), _arguments.learning_rate(learning_rate), _arguments.levels(eigenvalues)
    size, variance = lam.size, _arguments.variance(student_variance)
    trained = _arguments.trained(trained, size)
    if squares is None:
        start = np.full(size, variance)  # (N,)
    elif variance != 1:
        checks.fail("student_variance", "be left at 0 where squares are given", student_variance)
    else:
        start = checks.entries("squares", squares, at_least=0)  # (N,) or (runs, N)
        if start.ndim not in (1, 2) or start.shape[-1] != size or start.size == 0:
            checks.fail("squares", f"have shape (N,) or (runs, N) with N = {size}", f"shape {start.shape}")
    error = _linear.descent_error(alpha, lam, np.ones(size), rate, np.atleast_2d(start) / size, trained)  # (runs, A)
    return error if start.ndim == 2 else error[0]


def error_floor(eigenvalues, trained, learning_rate, *, student_variance=0.0, multiplicity=None):
    """Error that is left at the end at any learning rate: the frozen tail acts as label noise.

    ε_∞(η) = ε_∞(0) / (1 - (η/2) Σ_{k≤N_l} n_kλ_k)  for N -> ∞, and with  Σ m a_k/{2(1 - a_k)},  a_k = ηλ_k/N,  at
    finite N; η -> 0 is eq. (74).  `eigenvalues` (L,): λ_k, one for each eigenspace; `trained`: how many of them are
    trained; `learning_rate`: η >= 0, below the threshold of the trained part; `student_variance`: σ_J²; `multiplicity`:
    m, dimension of each eigenspace, N = mL; default: infinite.  Returns a float.

    >>> error_floor([1.5, 0.5], 1, 0.0), round(error_floor([1.5, 0.5], 1, 1.0), 6)
    (0.125, 0.2)
    """
    lam, _ = _arguments.spectrum(eigenvalues)  # (L,)
    trained = _arguments.trained(trained, lam.size)
    rate = checks.number("learning_rate", learning_rate, at_least=0)
    share = rate * lam[:trained] / lam.size  # (N_l,)
    if multiplicity is None:
        feedback = share.sum() / 2
    else:
        count = checks.integer("multiplicity", multiplicity)
        with np.errstate(divide="ignore"):
            feedback = np.inf if share.max() >= count else (share / (1 - share / count)).sum() / 2
    if not feedback < 1:
        checks.fail("learning_rate", "be smaller: the error of the trained part grows", learning_rate)
    return float(_arguments.variance(student_variance) * lam[trained:].sum() / (2 * lam.size) / (1 - feedback))


def tail_floor(levels, trained, exponent, *, student_variance=0.0, ends="midpoint"):
    """The floor at small η over a power-law spectrum as an integral:  (1+σ_J²) λ₊/(2βL) (N_l^{-β} - L^{-β}).

    `levels`, `exponent`, `student_variance`: as in the module; `trained`: N_l or an array of them; `ends`: "midpoint",
    N_l + 1/2 and L + 1/2, closer to the sum, or "endpoint" (eq. (74)).  Returns the shape of `trained`.

    >>> bool(abs(tail_floor(256, 50, 0.75) / error_floor(power_law(256, 0.75), 50, 0.0) - 1) < 1e-3)
    True
    """
    levels, beta = checks.integer("levels", levels), checks.number("exponent", exponent, above=0)
    trained = checks.entries("trained", trained, at_least=1, at_most=levels)  # (...)
    shift = 0.5 if checks.one_of("ends", ends, ("midpoint", "endpoint")) == "midpoint" else 0.0
    return (_arguments.variance(student_variance) * _tail(power_law(levels, beta), trained, beta, shift))[()]


def _falling(first, last, beta):
    """(first^{-β} - last^{-β})/β without cancellation, for β → 0 the logarithm of last/first."""
    return -(first**-beta) * np.expm1(-beta * np.log(last / first)) / beta  # (...)


def _tail(lam, trained, beta, shift):
    return lam[0] / (2 * lam.size) * _falling(trained + shift, lam.size + shift, beta)  # (...)


@checks.one_or_many
def power_law_error(alpha, levels, trained, exponent, learning_rate, *, student_variance=0.0):
    """Time and features together over a power-law spectrum:  :func:`tail_floor` plus two incomplete Gamma functions.

    The time part is :func:`lib.scaling.linear_student.power_law_error` between 1/2 and N_l + 1/2; eqs. (11) and (79),
    corrected: there the second end is L, which counts frozen modes twice.  `alpha`, here > 0, `levels`, `trained`,
    `exponent`, `learning_rate`, `student_variance`: as in the module.  Returns (A,).

    >>> exact = generalization_error(30.0, power_law(1000, 1.0), 100, 0.1)
    >>> round(float(power_law_error(30.0, 1000, 100, 1.0, 0.1) / exact), 5)
    1.0
    """
    alpha = checks.entries("alpha", alpha, above=0, ndim=1)  # (A,)
    levels, beta = checks.integer("levels", levels), checks.number("exponent", exponent, above=0)
    trained, rate = _arguments.trained(trained, levels), _arguments.learning_rate(learning_rate)
    lam = power_law(levels, beta)  # (L,)
    learned = _linear.modes_between(0.5, trained + 0.5, alpha, lam, beta, rate)  # (A,)
    return _arguments.variance(student_variance) * (learned + _tail(lam, trained, beta, 0.5))


def best_split(budget, levels, exponent, learning_rate, *, student_variance=0.0):
    """How many weights to train at a given product of weights and time, over a power-law spectrum, and the error then.

    With C = N_l α the least error is at  N_l* = (2ηλ₊C/z)^{1/(2+β)},  z = 2ηλ_{N_l}α the only root of  e^{-z} +
    β/((1+β)(2+β)) u = (1+β)/(2+β),  u = z^{-s} Γ(s, z),  s = β/(1+β),  and  ε* = (1+σ_J²) λ₊/(2L) [z^{β/(2+β)} (1/β +
    u/(1+β)) (2ηλ₊C)^{-β/(2+β)} - L^{-β}/β].  For sums that are integrals, 1 ≪ N_l <= L; not in the source.  `budget`: C
    > 0, a number or an array; `levels`, `exponent`, `learning_rate`, `student_variance`: as in the module.  Returns
    N_l*, no whole number, refused above L, and ε*, as `budget`.

    >>> size, error = best_split(1e4, 20000, 0.5, 0.01)
    >>> n = round(float(size))
    >>> [round(float(error / power_law_error(1e4 / m, 20000, m, 0.5, 0.01)), 2) for m in (n // 2, n, 2 * n)]
    [0.81, 1.0, 0.87]
    """
    budget = checks.entries("budget", budget, above=0)  # (...)
    levels, beta = checks.integer("levels", levels), checks.number("exponent", exponent, above=0)
    rate, variance = _arguments.learning_rate(learning_rate), _arguments.variance(student_variance)
    s, top = beta / (1 + beta), power_law(levels, beta)[0]

    def rest(z):
        return z**-s * gamma(s) * gammaincc(s, z)

    def excess(z):
        return np.exp(-z) + s / (2 + beta) * rest(z) - (1 + beta) / (2 + beta)

    z = brentq(excess, 1e-9, 10.0, xtol=1e-14)
    scaled = 2 * rate * top * budget  # (...)
    size = (scaled / z) ** (1 / (2 + beta))  # (...)
    if np.any(size > levels):
        checks.fail("budget", f"ask for no more than the {levels} weights that there are", budget)
    bracket = size**-beta * rest(z) / (1 + beta) + _falling(size, levels, beta)  # (...)
    return size, variance * top / (2 * levels) * bracket


def schur_floors(covariance, *, student_variance=0.0):
    """Error that is left at small learning rate when the first N_l weights of any basis are trained, for all N_l.

    With  Σ = C Cᵀ  (Cholesky) the trace of the Schur complement is  Σ_{a≥j>N_l} C_aj².  `covariance`,
    `student_variance`: as in the module.  Returns ε_∞ for N_l = 0, ..., N, (N + 1,); the last is zero.

    >>> schur_floors([[1.0, 0.6], [0.6, 1.0]]).round(6).tolist()  # (1 - 0.36)/4 with one weight
    [0.5, 0.16, 0.0]
    """
    sigma = checks.symmetric("covariance", covariance, definite="strict")  # (N, N)
    columns = (cholesky(sigma, lower=True) ** 2).sum(axis=0)  # (N,)
    tails = np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])  # (N + 1,)
    return _arguments.variance(student_variance) / (2 * len(sigma)) * tails


def decoupled(covariance, trained):
    """The frame in which descent on the first N_l weights of any basis is descent in an eigenbasis, step by step.

    With W = Σ̃⁻¹Σ_× and the eigenvectors U of Σ̃ and V of the Schur complement the inputs (Uᵀξ̃, Vᵀ(ξ̂ - Wᵀξ̃)) are
    independent; D = J - B becomes D' = (Uᵀ(D̃ + WD̂), VᵀD̂), for ``linear_descent.simulate(D @ transform.T, variances,
    η, times, seed, trained=N_l)``.  `covariance`, `trained`: as in the module.  Returns variances (N,), eigenvalues of
    Σ̃, then of the Schur complement, each ascending, and T (N, N): D' = T D, Tᵀ diag(variances) T = Σ.

    >>> variances, transform = decoupled([[1.0, 0.6], [0.6, 1.0]], 1)
    >>> variances.round(6).tolist(), np.abs(transform).round(6).tolist()
    ([1.0, 0.64], [[1.0, 0.6], [0.0, 1.0]])
    """
    sigma = checks.symmetric("covariance", covariance, definite="strict")  # (N, N)
    trained = _arguments.trained(trained, len(sigma))
    inner, cross = sigma[:trained, :trained], sigma[:trained, trained:]  # (N_l, N_l), (N_l, N - N_l)
    predictor = np.linalg.solve(inner, cross)  # (N_l, N - N_l)
    schur = sigma[trained:, trained:] - cross.T @ predictor  # (N - N_l, N - N_l)
    learned, modes = eigh(inner)  # (N_l,), (N_l, N_l)
    transform = np.zeros_like(sigma)  # (N, N)
    transform[:trained] = np.hstack([modes.T, modes.T @ predictor])
    if trained == len(sigma):
        return learned, transform
    frozen, rest = eigh((schur + schur.T) / 2)  # (N - N_l,), (N - N_l, N - N_l)
    transform[trained:, trained:] = rest.T
    return np.concatenate([learned, frozen]), transform


def random_basis_floor(eigenvalues, trained, *, student_variance=0.0):
    """Error that is left at small η when N_l weights of a random orthogonal basis are trained, for many weights.

    ε_∞ ≃ (1+σ_J²)/(2N) κN_l,  Σ_k λ_k/(λ_k + κ) = N_l,  the average of eq. (88), where no component dominates the rest.
    `eigenvalues`, of any mean, `trained`, `student_variance`: as in the module. Returns a float, zero for N_l = N.

    >>> round(random_basis_floor([1.0, 1.0, 1.0, 1.0], 1), 12)  # no direction is special: (1 - N_l/N)/2
    0.375
    """
    lam = _arguments.levels(eigenvalues)  # (N,)
    trained, variance = _arguments.trained(trained, lam.size), _arguments.variance(student_variance)
    if trained == lam.size:
        return 0.0

    def surplus(log_kappa):
        return (lam / (lam + np.exp(log_kappa))).sum() - trained

    # For equal eigenvalues κ is λ(N - N_l)/N_l: the smallest and the largest enclose the root; 1 against rounding.
    spread = np.log([lam.min(), lam.max()]) + np.log((lam.size - trained) / trained)  # (2,)
    kappa = np.exp(brentq(surplus, spread[0] - 1, spread[1] + 1, xtol=1e-13, rtol=1e-14))
    return float(variance * kappa * trained / (2 * lam.size))

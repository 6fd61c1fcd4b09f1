"""Stochastic linear learning: the stationary law of minibatch descent on a least-squares loss, exact in ε.

For V = W - W₀  han2021, eq. (3.2), reads  V' = V(1 - εS) + εξ  with a fresh minibatch every step; G = E[VᵀV] obeys AG +
GA = ε E[SGS] + ε D,  closed and linear.  The source has the limit ε -> 0, eq. (2.10), with ε D(0) on the right, D(0)
the noise of one step, eq. (3.4); it has no momentum.  Matrices are in the PCA basis of ``regression``.
"""

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.common.linalg import largest
from lib.fluctuations import regression
from lib.fluctuations.regression_formulas import fourth, sandwich, solve

EDGE = 1e-9  # closer to the threshold than this part of it, rounding decides whether G is finite


def learning_rate_threshold(problem, batch, *, replacement=False):
    """The learning rate ε_max at which the stationary covariance diverges, never above 2/λ_max, where the mean does.

    1/ε_max is the largest eigenvalue of  E[S·S]  against A· + ·A.  `problem`: Regression; `batch`, `replacement`: as in
    ``regression.batch_variance``.  Returns ε_max.

    >>> round(learning_rate_threshold(regression.fit([[1.0], [2.0]], [[0.0], [1.0]]), 1), 12)  # 2 E[S] / E[S²]
    0.588235294118
    """
    variance = regression.batch_variance(len(regression.checked_problem(problem).inputs), batch, replacement)
    lam = problem.eigenvalues  # (n,)
    return 1 / largest(lambda matrix: sandwich(problem, matrix, variance), np.add.outer(lam, lam))


def sufficient_learning_rate(problem, batch, *, replacement=False):
    """A learning rate below which the stationary covariance surely exists:  2 / λ_max(A⁻¹ E[S²]) <= ε_max, cheaper.

    `problem`: Regression; `batch`, `replacement`: as in ``regression.batch_variance``.  Returns a float.

    >>> round(sufficient_learning_rate(regression.fit([[1.0, 0.0], [0.0, 2.0]], [[0.0], [1.0]]), 1), 12)
    0.5
    """
    variance = regression.batch_variance(len(regression.checked_problem(problem).inputs), batch, replacement)
    squared = sandwich(problem, np.eye(len(problem.eigenvalues)), variance)  # (n, n)
    whiten = 1 / np.sqrt(problem.eigenvalues)  # (n,)
    last = len(whiten) - 1
    return 2 / float(eigh(whiten[:, None] * squared * whiten, eigvals_only=True, subset_by_index=[last, last])[0])


def stationary_covariance(problem, learning_rate, batch, *, replacement=False, pair=None):
    """Stationary weight covariance  G = E[VᵀV]  of minibatch gradient descent, exact:  AG + GA = ε E[SGS] + ε D.

    `learning_rate`: 0 < ε < :func:`learning_rate_threshold`; `problem`, `batch`, `replacement`, `pair`: as in
    ``regression.noise_moment``, eq. (B5) for a pair.  Returns (n, n), symmetric.

    >>> stationary_covariance(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 0.5, 1).round(4)  # ε / (2 - ε)
    array([[0.3333]])
    """
    noise = regression.noise_moment(problem, batch, replacement=replacement, pair=pair)  # (n, n)
    variance = regression.batch_variance(len(problem.inputs), batch, replacement)
    rate, lam = checks.number("learning_rate", learning_rate, above=0), problem.eigenvalues  # (n,)
    # The cheap bound spares most calls the eigenproblem.
    if rate >= sufficient_learning_rate(problem, batch, replacement=replacement) * (1 - EDGE):
        threshold = learning_rate_threshold(problem, batch, replacement=replacement)
        wanted = f"be below {threshold:.6g}, where the stationary covariance diverges"
        checks.fail_if(rate >= threshold * (1 - EDGE), "learning_rate", wanted, learning_rate)
    metric = np.add.outer(lam, lam) - rate * (1 - variance) * np.outer(lam, lam)  # (n, n), > 0 below 2/λ_max
    return solve(problem, metric, rate * variance, rate * noise)


def leading_order_covariance(problem, learning_rate, batch, *, replacement=False, pair=None):
    """Stationary weight covariance to leading order in ε:  AG + GA = ε D, that is  G_kl = ε D_kl / (λ_k + λ_l).

    Eq. (2.10), 2D there is ε D(0).  `learning_rate`: ε; `problem`, `batch`, `replacement`, `pair`: as in
    ``regression.noise_moment``.  Returns (n, n).

    >>> float(leading_order_covariance(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 0.5, 1)[0, 0].round(9))  # εD/2A
    0.25
    """
    noise = regression.noise_moment(problem, batch, replacement=replacement, pair=pair)  # (n, n)
    rate, lam = checks.number("learning_rate", learning_rate, above=0), problem.eigenvalues  # (n,)
    return rate * noise / np.add.outer(lam, lam)


def gaussian_covariance(eigenvalues, noise, learning_rate, batch):
    """Stationary variances for Gaussian inputs that are never seen twice, with fourth moments in closed form.

    g_k = ε(cTλ_k + d_k) / {λ_k [2 - ε(1+c)λ_k]},  T = Σ_k λ_k g_k, c = 1/m.  `eigenvalues` (n,): λ_k > 0; `noise` (n,):
    d_k = D_kk, σ²λ_k/m for label noise; `learning_rate`: ε, below divergence; `batch`: m.  Returns g_k (n,).

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


def momentum_covariance(problem, learning_rate, momentum, batch, *, replacement=False):
    """Stationary weight covariance of  B' = μB - ε(VS - ξ),  V' = V + B'  (heavy ball), exact.

    G_kl = X_kl / ρ_kl,  ρ = {(1-μ)² [(1+μ)(a+b) - ab] + μ(a-b)²} / (1-μ²),  a = ελ_k, b = ελ_l, with the noise X = ε²{D
    + c(F[G] - AGA)};  for small ε  AG + GA = ε D / (1-μ).  `problem`: Regression; `learning_rate`: ε, below a
    threshold; `momentum`: 0 <= μ < 1; `batch`, `replacement`: as in ``regression.batch_variance``.  Returns G (n, n).

    >>> momentum_covariance(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 0.5, 0.5, 1).round(9)  # A = S = D = 1
    array([[0.6]])
    """
    noise = regression.noise_moment(problem, batch, replacement=replacement)  # (n, n)
    rate = checks.number("learning_rate", learning_rate, above=0)
    mu = checks.number("momentum", momentum, at_least=0, below=1)
    variance, lam = regression.batch_variance(len(problem.inputs), batch, replacement), problem.eigenvalues  # (n,)
    if rate >= 2 * (1 + mu) / lam[0] * (1 - EDGE):
        checks.fail("learning_rate", f"be below {2 * (1 + mu) / lam[0]:.6g}, where the mean diverges", rate)
    a, b = rate * lam[:, None], rate * lam  # (n, 1), (n,)
    stiffness = ((1 - mu) ** 2 * ((1 + mu) * (a + b) - a * b) + mu * (a - b) ** 2) / (1 - mu**2)  # (n, n): ρ > 0
    metric = stiffness / rate + rate * variance * np.outer(lam, lam)  # (n, n)

    # E[S̄GS̄] keeps positive matrices positive, so its feedback on the noise must be below one: the threshold.
    def feedback(matrix):
        return fourth(problem.inputs, matrix) - np.outer(lam, lam) * matrix  # (n, n)

    if variance > 0 and rate * variance * largest(feedback, stiffness / rate) >= 1 - EDGE:
        checks.fail("learning_rate", "be smaller: the stationary covariance diverges at this momentum and batch", rate)
    return solve(problem, metric, rate * variance, rate * noise)


def preconditioned_covariance(problem, preconditioner, learning_rate, batch, *, replacement=False):
    """Stationary weight covariance of  V' = V - ε(VS - ξ)P, exact:  PAG + GAP = ε P(E[SGS] + D)P.

    Solved as plain descent on the inputs P^{1/2} x.  `problem`: Regression; `preconditioner` (n, n): P, positive
    definite, in the PCA basis; `learning_rate`: ε > 0, below :func:`learning_rate_threshold` of these inputs; `batch`,
    `replacement`: as in ``regression.batch_variance``.  Returns G (n, n), in the PCA basis.

    >>> preconditioned_covariance(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), [[0.5]], 1.0, 1).round(4)
    array([[0.3333]])
    """
    size = len(regression.checked_problem(problem).eigenvalues)
    preconditioner = checks.symmetric("preconditioner", preconditioner, size=size, definite="strict")  # (n, n)
    values, vectors = np.linalg.eigh(preconditioner)  # (n,), (n, n)
    root = vectors * np.sqrt(values) @ vectors.T  # (n, n)
    inner = regression.fit(problem.inputs @ root, problem.targets)
    wanted = "leave no direction of the inputs weaker than another by the factor 1e20 in the mean square"
    checks.fail_if(len(inner.eigenvalues) < size, "preconditioner", wanted, preconditioner)
    inside = stationary_covariance(inner, learning_rate, batch, replacement=replacement)  # (n, n)
    outward = root @ inner.basis  # (n, n)
    return outward @ inside @ outward.T

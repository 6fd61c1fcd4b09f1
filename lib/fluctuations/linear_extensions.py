"""Stationary fluctuations with momentum and with preconditioning on a least-squares loss, exact in the learning rate.

Both reduce to the equation of :mod:`lib.fluctuations.linear`.  They extend han2021, eq. (3.2), which has neither.
"""

import numpy as np

from lib.common import checks
from lib.common.linalg import largest
from lib.fluctuations.linear import EDGE, stationary_covariance
from lib.fluctuations.regression import batch_variance, checked_problem, fit, noise_moment
from lib.fluctuations.regression_formulas import fourth, solve


def momentum_covariance(problem, learning_rate, momentum, batch, *, replacement=False):
    """Stationary weight covariance of  B' = μB - ε(VS - ξ),  V' = V + B'  (heavy ball), exact.

    At μ = 0 it is eq. (3.2).  A pair of modes with a = ελ_k and b = ελ_l responds to noise of strength X_kl with
    G_kl = X_kl / ρ_kl,  ρ = {(1-μ)² [(1+μ)(a+b) - ab] + μ(a-b)²} / (1-μ²);  the noise is ε²{D + c(F[G] - AGA)}.  Small
    ε: AG + GA = ε D / (1-μ).  `problem`: Regression; `learning_rate`: ε > 0, below 2(1+μ)/λ_max and the (lower)
    threshold that the noise in S sets; `momentum`: 0 <= μ < 1; `batch`, `replacement`: as in
    ``regression.batch_variance``.  Returns G = E[VᵀV] (n, n), symmetric, positive semidefinite, in the PCA basis.

    >>> problem = fit([[1.0], [1.0]], [[0.0], [2.0]])  # A = S = D = 1
    >>> [float(momentum_covariance(problem, 0.5, mu, 1)[0, 0].round(9)) for mu in (0.0, 0.5)]
    [0.333333333, 0.6]
    """
    noise = noise_moment(problem, batch, replacement=replacement)  # (n, n)
    rate = checks.number("learning_rate", learning_rate, above=0)
    mu = checks.number("momentum", momentum, at_least=0, below=1)
    variance, lam = batch_variance(len(problem.inputs), batch, replacement), problem.eigenvalues  # (n,)
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

    It is plain descent, eq. (3.2), on the inputs P^{1/2} x for the weights V P^{-1/2}, and is solved so.  With P = A⁻¹
    the leading order is  (ε/2) A⁻¹DA⁻¹, without circulation.  `problem`: Regression; `preconditioner` (n, n): P,
    symmetric, positive definite, in the PCA basis; `learning_rate`: ε > 0, below ``linear.learning_rate_threshold`` of
    the inputs P^{1/2} x; `batch`, `replacement`: as in ``regression.batch_variance``.  Returns G = E[VᵀV] (n, n),
    symmetric, positive semidefinite, in the PCA basis.

    >>> problem = fit([[1.0], [1.0]], [[0.0], [2.0]])  # A = S = D = 1
    >>> float(preconditioned_covariance(problem, [[0.5]], 1.0, 1)[0, 0].round(12))  # as plain descent at ε = 0.5
    0.333333333333
    """
    size = len(checked_problem(problem).eigenvalues)
    preconditioner = checks.symmetric("preconditioner", preconditioner, size=size, definite="strict")  # (n, n)
    values, vectors = np.linalg.eigh(preconditioner)  # (n,), (n, n)
    root = vectors * np.sqrt(values) @ vectors.T  # (n, n)
    inner = fit(problem.inputs @ root, problem.targets)
    if len(inner.eigenvalues) < size:
        wanted = "leave no direction of the inputs weaker than another by the factor 1e20 in the mean square"
        checks.fail("preconditioner", wanted, preconditioner)
    inside = stationary_covariance(inner, learning_rate, batch, replacement=replacement)  # (n, n)
    outward = root @ inner.basis  # (n, n)
    return outward @ inside @ outward.T

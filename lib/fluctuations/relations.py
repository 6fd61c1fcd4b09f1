"""What the stationary law of stochastic linear learning implies, and how well data can show it.

Every covariance G is in the PCA basis, exact or measured with ``descent``.  Source: han2021, sections II to IV.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.linalg import slices
from lib.fluctuations import regression, regression_formulas
from lib.foundations.langevin import LangevinSystem


@dataclass(frozen=True)
class RelationErrors:
    """How far AG + GA is from a candidate, in the Frobenius norm relative to AG + GA."""

    leading: float  # from ε D, the limit ε -> 0
    shape: float  # from scale · ε D, with the best factor
    scale: float  # the best factor
    exact: float  # from ε E[SGS] + ε D


def _setting(problem, covariance, learning_rate, batch, replacement):
    """G, ε, c and D."""
    covariance = regression_formulas.in_modes("covariance", covariance, regression.checked_problem(problem))  # (n, n)
    rate = checks.number("learning_rate", learning_rate, above=0)
    variance = regression.batch_variance(len(problem.inputs), batch, replacement)
    return covariance, rate, variance, regression_formulas.noise(problem, variance)


def _sides(problem, covariance, noise, variance):
    """AG + GA and E[SGS] + D, in the PCA basis."""
    flow = problem.eigenvalues[:, None] * covariance  # (n, n)
    return flow + flow.T, noise + regression_formulas.sandwich(problem, covariance, variance)


def _refuse_inputs(problem, covariance, noise, variance):
    """Refuse a covariance over the inputs: in the PCA basis it obeys the exact relation, and five times as well."""

    def misfit(matrix):  # |left - c right| / |left| of the relation with the best factor c: at any learning rate
        left, right = _sides(problem, matrix, noise, variance)  # (n, n), (n, n)
        return np.linalg.norm(left - np.sum(left * right) / np.sum(right**2) * right) / np.linalg.norm(left)

    basis = problem.basis  # (d, n)
    if basis.shape[0] == basis.shape[1]:
        here, turned = misfit(covariance), misfit(basis.T @ covariance @ basis)
        # Below is rounding; a covariance of a few samples may fit either way by chance.
        if here > 1e-6 and turned < min(0.1, here / 5):
            remedy = "pass lib.fluctuations.regression.in_pca_basis(problem, covariance)"
            found = f"a matrix that misses the relation by {here:.2g}, and by {turned:.2g} once it is turned"
            checks.fail("covariance", f"be in the PCA basis, and not in that of the inputs: {remedy}", found)


def relation_errors(problem, covariance, learning_rate, batch, *, replacement=False):
    """Distance of  AG + GA  from  ε D (leading order), from its best multiple, and from  ε E[SGS] + ε D (exact).

    Eq. (2.10), 2D = ε D(0); figure 2.  `covariance` (n, n): G; one over the inputs is refused where it shows;
    `learning_rate`: ε; `problem`, `batch`, `replacement`: as in ``regression.noise_moment``.  Returns RelationErrors.

    >>> round(relation_errors(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), [[1 / 3]], 0.5, 1).leading, 9)  # ε/2
    0.25
    """
    covariance, rate, variance, noise = _setting(problem, covariance, learning_rate, batch, replacement)
    left, right = _sides(problem, covariance, noise, variance)  # (n, n), (n, n)
    size, strength = np.linalg.norm(left), np.linalg.norm(noise)
    checks.fail_if(size == 0, "covariance", "differ from zero", covariance)
    checks.fail_if(strength == 0, "batch", "leave some gradient noise", batch)
    scale = np.sum(left * noise) / (rate * strength**2)
    _refuse_inputs(problem, covariance, noise, variance)
    candidates = (rate * noise, scale * rate * noise, rate * right)  # (n, n) each
    errors = [np.linalg.norm(left - candidate) / size for candidate in candidates]
    return RelationErrors(float(errors[0]), float(errors[1]), float(scale), float(errors[2]))


def split(problem, covariance):
    """Symmetric and antisymmetric part of AG, eq. (1.6):  (AG + GA)/2  and  Q = (AG - GA)/2.

    In the PCA basis  Q_kl = (λ_k - λ_l)/(λ_k + λ_l) × the symmetric part.  `problem`: Regression; `covariance` (n, n):
    G; one over the inputs is not noticed here.  Returns both parts.

    >>> split(regression.fit([[2.0, 0.0], [0.0, 1.0]], [[0.0], [1.0]]), [[1.0, 4.0], [4.0, 1.0]])[1].round(12).tolist()
    [[0.0, 3.0], [-3.0, 0.0]]
    """
    covariance = regression_formulas.in_modes("covariance", covariance, regression.checked_problem(problem))  # (n, n)
    flow = problem.eigenvalues[:, None] * covariance  # (n, n)
    return (flow + flow.T) / 2, (flow - flow.T) / 2


def circulation(problem, covariance):
    """Size of Q = (AG - GA)/2 over that of the symmetric part M:  ‖Q‖/‖M‖ in the Frobenius norm, and max|Q|/max|M|.

    The largest elements are over the inputs, as in section IV, and depend on the basis; the norms do not.  `problem`,
    `covariance`: as in :func:`split`; a covariance with M = 0 is refused.  Returns both.

    >>> problem = regression.fit([[2.0, 0.0], [0.0, 1.0]], [[0.0], [1.0]])
    >>> [round(ratio, 12) for ratio in circulation(problem, [[1.0, 4.0], [4.0, 1.0]])]  # √(18/54.25), 3/5
    [0.576018432885, 0.6]
    """
    symmetric, turning = split(problem, covariance)  # (n, n) each
    checks.fail_if(not symmetric.any(), "covariance", "have a symmetric part of AG that differs from zero", covariance)
    norms = np.linalg.norm(turning) / np.linalg.norm(symmetric)
    largest = [np.abs(regression.in_input_basis(problem, part)).max() for part in (turning, symmetric)]
    return float(norms), float(largest[0] / largest[1])


def noise_tensor(problem, batch, *, replacement=False):
    """Noise of one step with all pairs of outputs, eq. (B1):  (c/N) Σ_α (r_α ⊗ x_α)(r_α ⊗ x_α)ᵀ, blocks D_ik.

    `problem`: Regression; `batch`, `replacement`: as in ``regression.batch_variance``.  Returns (p n, p n), outputs
    first.

    >>> noise_tensor(regression.fit([[1.0], [1.0]], [[0.0, 1.0], [2.0, -1.0]]), 1).round(12).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    variance = regression.batch_variance(len(regression.checked_problem(problem).inputs), batch, replacement)
    inputs, residuals = problem.inputs, problem.residuals
    size = inputs.shape[1] * residuals.shape[1]
    total = np.zeros((size, size))  # (p n, p n)
    for piece in slices(len(inputs), size):
        gradients = (residuals[piece, :, None] * inputs[piece, None, :]).reshape(-1, size)  # (rows, p n)
        total += gradients.T @ gradients
    return variance * total / len(inputs)


def entropy_production(problem, *, pairs=True):
    """Entropy production of stochastic linear learning to leading order, per time t = ε n, at any ε and batch size.

    That of a ``LangevinSystem`` with friction A on every output and diffusion ∝ :func:`noise_tensor`.  `problem`:
    Regression; `pairs`: False for the sum over outputs, D, which hides currents.  Returns a float >= 0.

    >>> bool(entropy_production(regression.fit([[1.0], [2.0]], [[0.0], [3.0]])) == 0)  # one mode cannot turn
    True
    """
    variances = regression.checked_problem(problem).eigenvalues  # (n,)
    if checks.boolean("pairs", pairs):
        noise, outputs = noise_tensor(problem, 1), problem.residuals.shape[1]  # (p n, p n)
    else:
        noise, outputs = regression.noise_moment(problem, 1), 1  # (n, n)
    unit = 1 / np.sqrt(np.diag(noise)) if np.diag(noise).min() > 0 else np.ones(len(noise))  # (p n,)
    wanted = "have gradient noise in every direction: drop an output if the residuals are dependent"
    checks.fail_if(np.linalg.eigvalsh(unit[:, None] * noise * unit)[0] <= 1e-12, "problem", wanted, "a singular noise")
    # The rate does not depend on the units of each mode: where every noise is one, the spectrum spans no decades.
    friction = np.diag(np.tile(variances, outputs))  # (p n, p n)
    return LangevinSystem(friction, unit[:, None] * noise * unit).entropy_production


def yaida_ratios(problem, covariance, learning_rate, batch, *, replacement=False):
    """Left over right side of the fluctuation-dissipation relations of Yaida (2018), both exactly one at stationarity.

    Tr AG = (ε/2) Tr(E[SGS] + D),  Tr AGA = (ε/2) Tr A(E[SGS] + D);  ε -> 0 gives eq. (2.10).  `covariance`,
    `learning_rate`: as in :func:`relation_errors`; `problem`, `batch`, `replacement`: as in
    ``regression.noise_moment``.  Returns both.

    >>> [round(ratio, 12) for ratio in yaida_ratios(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), [[1 / 3]], 0.5, 1)]
    [1.0, 1.0]
    """
    covariance, rate, variance, noise = _setting(problem, covariance, learning_rate, batch, replacement)
    left, right = _sides(problem, covariance, noise, variance)  # (n, n), (n, n)
    flow, gradient, lam = np.diag(left) / 2, np.diag(right), problem.eigenvalues  # (n,), (n,), (n,)
    if gradient.sum() <= 0 or lam @ gradient <= 0:
        checks.fail("covariance", "leave a minibatch gradient with this batch", covariance)
    if np.any(flow):
        _refuse_inputs(problem, covariance, noise, variance)
    first = flow.sum() / (rate / 2 * gradient.sum())
    second = flow @ lam / (rate / 2 * lam @ gradient)
    return float(first), float(second)


def relation_floor(problem, learning_rate, steps, chains=1):
    """Relative sampling error of AG + GA over a stationary run, one mode dominating:  √(n / (T K p ε λ_max)).

    The floor under figure 2, and the size of the ratio of Q to D that noise produces.  `problem`: Regression;
    `learning_rate`: ε > 0; `steps`: T, all recorded; `chains`: K.  Returns a float.

    >>> round(relation_floor(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 0.25, 100, chains=4), 12)
    0.1
    """
    lam, outputs = regression.checked_problem(problem).eigenvalues, problem.residuals.shape[1]  # (n,)
    rate = checks.number("learning_rate", learning_rate, above=0)
    runs = checks.integer("steps", steps) * checks.integer("chains", chains)
    return float(np.sqrt(len(lam) / (runs * outputs * rate * lam[0])))


def fourier_row(matrix):
    """|F_j| / |F_0| along one axis of the two-dimensional discrete Fourier transform:  F_j = Σ_kl M_kl e^{-2πi jl/d}.

    As in figure 2.  `matrix` (d, d): over pixels, with entries that do not sum to zero.  Returns (d,), one at j = 0.

    >>> fourier_row([[1.0, 0.0], [2.0, 1.0]]).tolist()
    [1.0, 0.5]
    """
    matrix = checks.array("matrix", matrix, ndim=2)  # (d, d)
    if matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        checks.fail("matrix", "be square", f"shape {matrix.shape}")
    sizes = np.abs(np.fft.fft(matrix.sum(axis=0)))  # (d,)
    checks.fail_if(sizes[0] <= 1e-14 * np.abs(matrix).sum(), "matrix", "have entries that do not sum to zero", matrix)
    return sizes / sizes[0]

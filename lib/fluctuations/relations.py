"""What the stationary law of minibatch descent implies, and how well data can show it (han2021, sections II to IV).

Every covariance G is in the PCA basis of the data, exact or measured.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fluctuations.descent import Descent
from lib.fluctuations.regression import Regression
from lib.foundations.langevin import LangevinSystem


@dataclass(frozen=True)
class RelationErrors:
    """How far AG + GA is from a candidate, in the Frobenius norm relative to AG + GA.

    Parameters
    ----------
    leading : float
        From ε D, the limit ε -> 0, han2021 (2.10).
    up_to_scale : float
        From scale · ε D, with the best factor.
    scale : float
        The best factor.
    exact : float
        From ε E[SGS] + ε D.
    """

    leading: float
    up_to_scale: float
    scale: float
    exact: float


def _problem(problem):
    return checks.instance("problem", problem, Regression, "as regression.fit returns it")


def _setting(descent, covariance):
    """The problem, ε, G, D, and both sides AG + GA and E[SGS] + D."""
    checks.instance("descent", descent, Descent, "the learning rate and minibatch of a problem")
    problem, how = descent.problem, {"replacement": descent.replacement}
    checks.fail_if(descent.momentum > 0, "descent", "be without momentum", f"momentum {descent.momentum}")
    covariance = problem._read("covariance", covariance)  # (n, n)
    noise = problem.noise_moment(descent.batch, **how)  # (n, n)

    def sides(matrix):
        flow = problem.eigenvalues[:, None] * matrix  # (n, n)
        return flow + flow.T, noise + problem.sandwich_moment(matrix, descent.batch, **how)

    return covariance, noise, sides


def _refuse_inputs(basis, covariance, sides):
    """Refuse a covariance over the inputs: in the PCA basis it obeys the exact relation, and five times as well."""

    def misfit(matrix):  # |left - c right| / |left| of the relation with the best factor c: at any learning rate
        left, right = sides(matrix)  # (n, n), (n, n)
        return np.linalg.norm(left - np.sum(left * right) / np.sum(right**2) * right) / np.linalg.norm(left)

    if basis.shape[0] == basis.shape[1]:
        here, turned = misfit(covariance), misfit(basis.T @ covariance @ basis)
        # Below is rounding; a covariance of a few samples may fit either way by chance.
        if here > 1e-6 and turned < min(0.1, here / 5):
            remedy = "pass problem.in_pca_basis(covariance)"
            found = f"a matrix that misses the relation by {here:.2g}, and by {turned:.2g} once it is turned"
            checks.fail("covariance", f"be in the PCA basis, and not in that of the inputs: {remedy}", found)


def relation_errors(descent: Descent, covariance: ArrayLike) -> RelationErrors:
    """Distance of  AG + GA  from  ε D (leading order), from its best multiple, and from  ε E[SGS] + ε D (exact).

    han2021 (2.10), where 2D is ε D(0); figure 2.

    Parameters
    ----------
    descent : Descent
        Without momentum, with some gradient noise.
    covariance : array_like (n, n)
        G, not zero; one over the inputs is refused where it shows.

    Returns
    -------
    RelationErrors

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> descent = Descent(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 0.5, 1)
    >>> round(relation_errors(descent, [[1 / 3]]).leading, 9)  # ε/2
    0.25
    """
    covariance, noise, sides = _setting(descent, covariance)
    (left, right), rate = sides(covariance), descent.learning_rate  # (n, n), (n, n)
    size, strength = np.linalg.norm(left), np.linalg.norm(noise)
    checks.fail_if(size == 0, "covariance", "differ from zero", covariance)
    checks.fail_if(strength == 0, "descent", "leave some gradient noise", f"batch {descent.batch}")
    scale = np.sum(left * noise) / (rate * strength**2)
    _refuse_inputs(descent.problem.basis, covariance, sides)
    candidates = (rate * noise, scale * rate * noise, rate * right)  # (n, n) each
    leading, up_to_scale, exact = (float(np.linalg.norm(left - candidate) / size) for candidate in candidates)
    return RelationErrors(leading, up_to_scale, float(scale), exact)


def split(problem: Regression, covariance: ArrayLike) -> tuple[Array["n n"], Array["n n"]]:
    """Symmetric and antisymmetric part of AG, han2021 (1.6):  (AG + GA)/2  and  Q = (AG - GA)/2.

    In the PCA basis  Q_kl = (λ_k - λ_l)/(λ_k + λ_l) × the symmetric part.

    Parameters
    ----------
    problem : Regression
    covariance : array_like (n, n)
        G; one over the inputs is not noticed here.

    Returns
    -------
    tuple of ndarray (n, n), (n, n)

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> problem = regression.fit([[2.0, 0.0], [0.0, 1.0]], [[0.0], [1.0]])
    >>> split(problem, [[1.0, 4.0], [4.0, 1.0]])[1].round(12).tolist()
    [[0.0, 3.0], [-3.0, 0.0]]
    """
    flow = _problem(problem).eigenvalues[:, None] * problem._read("covariance", covariance)  # (n, n)
    return (flow + flow.T) / 2, (flow - flow.T) / 2


def circulation_ratios(problem: Regression, covariance: ArrayLike) -> tuple[float, float]:
    """Size of Q = (AG - GA)/2 over that of the symmetric part M:  ‖Q‖/‖M‖ in the Frobenius norm, and max|Q|/max|M|.

    The largest elements are over the inputs, as in han2021, section IV, and depend on the basis; the norms do not.

    Parameters
    ----------
    problem : Regression
    covariance : array_like (n, n)
        G with M not zero; one over the inputs is not noticed here.

    Returns
    -------
    tuple of float, float

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> problem = regression.fit([[2.0, 0.0], [0.0, 1.0]], [[0.0], [1.0]])
    >>> [round(ratio, 12) for ratio in circulation_ratios(problem, [[1.0, 4.0], [4.0, 1.0]])]  # √(18/54.25), 3/5
    [0.576018432885, 0.6]
    """
    symmetric, turning = split(problem, covariance)  # (n, n) each
    checks.fail_if(not symmetric.any(), "covariance", "have a symmetric part of AG that differs from zero", covariance)
    norms = np.linalg.norm(turning) / np.linalg.norm(symmetric)
    flow = problem.in_input_basis(symmetric + turning)  # (d, d)
    return float(norms), float(np.abs(flow - flow.T).max() / np.abs(flow + flow.T).max())


def entropy_production(problem: Regression, *, pairs: bool = True) -> float:
    """Entropy production of minibatch descent to leading order, per time t = ε n, at any ε and batch size.

    That of a ``LangevinSystem`` with friction A on every output and diffusion ∝ ``problem.noise_tensor``.

    Parameters
    ----------
    problem : Regression
        With gradient noise in every direction.
    pairs : bool
        Whether all pairs of outputs are seen, or only the sum over outputs, D, which hides currents.

    Returns
    -------
    float
        Ṡ >= 0, in k_B.

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> entropy_production(regression.fit([[1.0], [2.0]], [[0.0], [3.0]]))  # one mode cannot turn
    0.0
    """
    outputs = _problem(problem).residuals.shape[1] if checks.boolean("pairs", pairs) else 1
    noise = problem.noise_tensor(1) if pairs else problem.noise_moment(1)  # (p n, p n)
    unit = 1 / np.sqrt(np.diag(noise)) if np.diag(noise).min() > 0 else np.ones(len(noise))  # (p n,)
    wanted = "have gradient noise in every direction: drop an output if the residuals are dependent"
    checks.fail_if(np.linalg.eigvalsh(unit[:, None] * noise * unit)[0] <= 1e-12, "problem", wanted, "a singular noise")
    # The rate does not depend on the units of each mode: where every noise is one, the spectrum spans no decades.
    friction = np.diag(np.tile(problem.eigenvalues, outputs))  # (p n, p n)
    return LangevinSystem(friction, unit[:, None] * noise * unit).entropy_production


def yaida_ratios(descent: Descent, covariance: ArrayLike) -> tuple[float, float]:
    """Left over right side of the fluctuation-dissipation relations of Yaida (2018), both exactly one at stationarity.

    Tr AG = (ε/2) Tr(E[SGS] + D),  Tr AGA = (ε/2) Tr A(E[SGS] + D);  ε -> 0 gives han2021 (2.10).

    Parameters
    ----------
    descent : Descent
        Without momentum.
    covariance : array_like (n, n)
        G; one over the inputs is refused where it shows.

    Returns
    -------
    tuple of float, float

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> descent = Descent(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 0.5, 1)
    >>> [round(ratio, 12) for ratio in yaida_ratios(descent, [[1 / 3]])]
    [1.0, 1.0]
    """
    covariance, _, sides = _setting(descent, covariance)
    left, right = sides(covariance)  # (n, n), (n, n)
    flow, gradient, lam = np.diag(left) / 2, np.diag(right), descent.problem.eigenvalues  # (n,), (n,), (n,)
    if gradient.sum() <= 0 or lam @ gradient <= 0:
        checks.fail("covariance", "leave a minibatch gradient with this batch", covariance)
    if np.any(flow):
        _refuse_inputs(descent.problem.basis, covariance, sides)
    half = descent.learning_rate / 2
    return float(flow.sum() / (half * gradient.sum())), float(flow @ lam / (half * (lam @ gradient)))


def relation_floor(descent: Descent, steps: int, replicas: int = 1) -> float:
    """Relative sampling error of AG + GA over a stationary run, one mode dominating:  √(d / (T p ε λ_1)).

    The floor under figure 2 of han2021, and the size of the ratio of Q to D that noise produces.

    Parameters
    ----------
    descent : Descent
        Without momentum.
    steps, replicas : int
        All recorded; T is their product.

    Returns
    -------
    float

    Examples
    --------
    >>> from lib.fluctuations import regression
    >>> descent = Descent(regression.fit([[1.0], [1.0]], [[0.0], [2.0]]), 0.25, 1)
    >>> round(relation_floor(descent, 100, replicas=4), 12)
    0.1
    """
    checks.instance("descent", descent, Descent, "the learning rate and minibatch of a problem")
    lam, outputs = descent.problem.eigenvalues, descent.problem.residuals.shape[1]  # (n,)
    runs = checks.integer("steps", steps) * checks.integer("replicas", replicas)
    return float(np.sqrt(len(lam) / (runs * outputs * descent.learning_rate * lam[0])))


def fourier_row(matrix: ArrayLike) -> Array[" d"]:
    """|F_j| / |F_0| along one axis of the two-dimensional discrete Fourier transform:  F_j = Σ_kl M_kl e^{-2πi jl/d}.

    As in figure 2 of han2021.

    Parameters
    ----------
    matrix : array_like (d, d)
        Over pixels, with entries that do not sum to zero.

    Returns
    -------
    ndarray (d,)
        One at j = 0.

    Examples
    --------
    >>> fourier_row([[1.0, 0.0], [2.0, 1.0]]).tolist()
    [1.0, 0.5]
    """
    matrix = checks.array("matrix", matrix, ndim=2)  # (d, d)
    if matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        checks.fail("matrix", "be square", f"shape {matrix.shape}")
    sizes = np.abs(np.fft.fft(matrix.sum(axis=0)))  # (d,)
    checks.fail_if(sizes[0] <= 1e-14 * np.abs(matrix).sum(), "matrix", "have entries that do not sum to zero", matrix)
    return sizes / sizes[0]

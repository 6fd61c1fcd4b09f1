"""Kernel adaptation on a fixed data set: the weights of a wide network as one Gaussian, learned from the data.

The posterior of the network  f(x) = Σ_c a_c φ(w_c·x)  with the prior  w_c ~ N(0, Σ_0), a_c ~ N(0, s_a²/N)  is matched
by weights w_c ~ N(0, Σ).  What decides is the free energy

    F(Σ) = ½ yᵀA⁻¹y + (N/2) [tr(Σ_0⁻¹Σ) - log det(Σ_0⁻¹Σ) - rank],    A = s_a² Q(Σ) + T,    Q = ⟨φφᵀ⟩ over w ~ N(0, Σ),

whose stationary points are the mean-field equations  Σ⁻¹ = Σ_0⁻¹ - (s_a²/N) ∂_Σ[tᵀQt],
t = A⁻¹y held fixed in the derivative.  The damped step  Σ⁻¹ ← Σ⁻¹ + η(right-hand side - Σ⁻¹)  is descent of F along its
natural gradient, so that halving η where F would rise ends in a minimum and not in a limit cycle.  At N → ∞ it is the
Gaussian process of :mod:`lib.fields.nngp`.  Source: ringel2025talk, on kernel adaptation; F, the step and the optional
term of :func:`adapt` are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.fields import _adaptation, _data, _kernels, gp_regression, nngp

ROUNDING = 1e-13  # changes of the free energy below this part of it say nothing
GRID = 80  # scales on which the competitor's minimum is bracketed


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Weights adapted to P examples in d dimensions."""

    covariance: np.ndarray  # (d, d)  Σ
    kernel: np.ndarray  # (P, P)  s_a² Q(Σ) between the examples
    dual: np.ndarray  # (P,)  t = (s_a² Q + T)⁻¹ y
    free_energy: float  # F; the lower of two solutions for the same data wins
    iterations: int  # steps taken, or free energies looked at by :func:`rescale`
    residual: float  # largest eigenvalue of  1 - Σ^½ (right-hand side) Σ^½  in modulus; zero at a solution


def slope(activation, inputs, pairs, covariance):
    """Derivative of a kernel by the weights' covariance,  ∂_Σ Σ_μν C_μν Q_μν(Σ):  the force on Σ at C = ttᵀ.

    With s_12 = x_μᵀΣx_ν it is  Xᵀ[C∘∂Q/∂s_12 + 2 diag Σ_ν C_μν ∂Q_μν/∂s_11]X;  for erf units  ∂Q/∂s_12 = 4/πD, ∂Q/∂s_11
    = -4s_12/[πD(1 + 2s_11)], D² = (1 + 2s_11)(1 + 2s_22) - 4s_12²,  and for ReLU  (π - θ)/2π  and  √(s_22/s_11) sin
    θ/4π.  `activation`: "erf" or "relu"; `inputs` (P, d): X; `pairs` (P, P): C, symmetric; `covariance` (d, d): Σ,
    symmetric positive semidefinite.  Returns (d, d), symmetric; a change δΣ moves the sum by tr(slope δΣ).

    >>> slope("relu", [[2.0]], [[3.0]], [[1.0]]).tolist()  # 3 · 2² Σ/2
    [[6.0]]
    """
    checks.one_of("activation", activation, nngp.ACTIVATIONS)
    x = _data.points("inputs", inputs)  # (P, d)
    pairs = checks.symmetric("pairs", pairs, size=len(x))  # (P, P)
    covariance = checks.symmetric("covariance", covariance, size=x.shape[1], definite="semi")  # (d, d)
    _kernels.variances("inputs", x @ covariance, x)
    with np.errstate(over="ignore", invalid="ignore"):
        derivatives = _adaptation.pairs(activation, x, covariance)[1:]  # (P, P), (P, P)
        return checks.finite("pairs", _adaptation.slope(x, pairs, derivatives))  # (d, d)


def _result(problem, state, iterations, residual):
    covariance = problem.root @ state.covariance @ problem.root.T  # (d, d)
    return Adaptation(covariance, state.kernel, state.dual, float(state.energy), iterations, float(residual))


def adapt(
    activation, inputs, targets, ridge, width, *, weight_variance=1.0, weight_covariance=None, readout_variance=1.0,
    fluctuations=False, start=None, damping=0.3, tolerance=1e-9, iterations=2000,
):  # fmt: skip
    """Weights' covariance adapted to the data:  Σ⁻¹ = Σ_0⁻¹ - (s_a²/N) ∂_Σ[tᵀQ(Σ)t],  t = (s_a² Q(Σ) + T)⁻¹ y.

    `activation`: "erf" or "relu"; `inputs` (P, d), `targets` (P,): X, y, P = 0 leaves the prior; `ridge`, `width`: T, N
    > 0; `weight_covariance` (d, d): C in Σ_0 = σ_w² C, symmetric positive semidefinite, by default I/d;
    `weight_variance`, `readout_variance`: σ_w², s_a² > 0; `fluctuations`: whether F also holds ½ log det A, as the
    density of the weights in :mod:`lib.fields.network_posterior` does, so that ttᵀ becomes ttᵀ - A⁻¹, which takes back
    about P/Nd of the prior in each direction or less; `start` (d, d): first Σ, positive definite where Σ_0 is, by
    default Σ_0, lazy; `damping`: first η, 0 < η <= 1, later steps are as long as F allows; `tolerance`: > 0, on the
    residual, below 1e-12 rounding may keep it away; `iterations`: how many steps at most.  Returns Adaptation.

    >>> found = adapt("erf", np.eye(2), [2.0, 0.0], 0.1, 10)  # the direction that carries a label grows
    >>> (2 * found.covariance).round(2).tolist(), found.residual < 1e-9
    ([[1.32, 0.0], [0.0, 1.0]], True)
    """
    problem = _adaptation.Problem(
        activation, inputs, targets, ridge, width, weight_variance=weight_variance,
        weight_covariance=weight_covariance, readout_variance=readout_variance, fluctuations=fluctuations,
    )  # fmt: skip
    eta, limit = checks.number("damping", damping, above=0, at_most=1), checks.integer("iterations", iterations)
    tolerance = checks.number("tolerance", tolerance, above=0)
    precision = np.eye(problem.x.shape[1])  # (r, r)
    if start is not None:
        start = checks.symmetric("start", start, size=len(problem.root))  # (d, d)
        start = problem.inverse.T @ start @ problem.inverse  # (r, r)
        if np.linalg.eigvalsh(start)[0] <= 0:
            checks.fail("start", "be positive definite where the prior is", "a direction without weights")
        precision = np.linalg.inv(start)  # (r, r)
    state = problem.started(precision)
    step, residual = _adaptation.step(precision, state)  # (r, r)
    for count in range(limit):
        if residual < tolerance:
            return _result(problem, state, count, residual)
        moved = precision + eta * step  # (r, r)
        new, lower = problem.evaluated(moved), False
        if new is not None:
            change, slack = new.energy - state.energy, ROUNDING * (abs(state.energy) + problem.width * len(precision))
            before, after = _adaptation.descent(precision, state, step), _adaptation.descent(moved, new, step)
            # Below rounding the slope says more than the value.
            lower = change < -slack or (change < slack and abs(after) < before)
        if lower:
            precision, state = moved, new
            step, residual = _adaptation.step(precision, state)  # (r, r)
        eta = min(1.2 * eta, 1.0) if lower else eta / 2
    seen = f"{limit}, with a residual of {residual:.3g}"
    return checks.fail("iterations", f"be more, for a residual below {tolerance:g}", seen)


def rescale(
    activation, inputs, targets, ridge, width, *,
    weight_variance=1.0, weight_covariance=None, readout_variance=1.0, fluctuations=False,
):  # fmt: skip
    """The scaling competitor: the same free energy where the covariance may only grow as a whole,  Σ = s Σ_0.

    The lowest minimum over s, which obeys  1/s = 1 - (s_a²/N rank) tr(Σ_0 ∂_Σ[tᵀQt]),  searched on a grid where N rank
    (s - 1 - log s) is no more than F(1) pays.  A scalar cannot turn the kernel towards the target.  `activation`,
    `inputs`, `targets`, `ridge`, `width`, `weight_variance`, `weight_covariance`, `readout_variance`, `fluctuations`:
    as in :func:`adapt`.  Returns Adaptation; its residual is that of the equation for s, its iterations the free
    energies looked at.

    >>> found = rescale("erf", np.eye(2), [2.0, 0.0], 0.1, 10)
    >>> (2 * found.covariance).round(2).tolist()  # both directions, for one label
    [[1.18, 0.0], [0.0, 1.18]]
    """
    problem = _adaptation.Problem(
        activation, inputs, targets, ridge, width, weight_variance=weight_variance,
        weight_covariance=weight_covariance, readout_variance=readout_variance, fluctuations=fluctuations,
    )  # fmt: skip
    rank, seen = problem.x.shape[1], []

    def free_energy(log_scale):
        seen.append(log_scale)
        return problem.started(np.exp(-log_scale) * np.eye(rank)).energy

    floor = len(problem.y) * np.log(problem.ridge) if problem.fluctuations else 0.0  # of the rest of 2F
    paid = (2 * free_energy(0.0) - floor) / (problem.width * rank)  # as much as s - 1 - log s at the minimum, or more
    grid = np.linspace(max(-1 - paid, -30.0), 1 + np.log(4 + 2 * paid), GRID)  # (GRID,)
    best = int(np.argmin([free_energy(value) for value in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]

    def excess(log_scale):
        """Of the equation for s: it changes sign at the minimum, and keeps digits that F has lost there."""
        return np.exp(log_scale) * np.trace(problem.started(np.exp(-log_scale) * np.eye(rank)).wanted) / rank - 1

    log_scale = brentq(excess, *around, xtol=1e-13)
    state = problem.started(np.exp(-log_scale) * np.eye(rank))
    return _result(problem, state, len(seen), abs(excess(log_scale)))


def predict(covariance, activation, inputs, targets, ridge, points, *, readout_variance=1.0):
    """Posterior mean function of the adapted network:  f̄(x) = K_xX (K_XX + T)⁻¹ y  with  K = s_a² Q(Σ).

    `covariance` (d, d): Σ, symmetric positive semidefinite; `activation`, `inputs`, `targets`, `ridge`,
    `readout_variance`: as in :func:`adapt`; `points` (M, d): where to predict.  Returns f̄ (M,).

    >>> predict([[0.5]], "relu", [[2.0]], [3.0], 1.0, [[2.0], [4.0], [-1.0]]).round(12).tolist()  # K = 1 at the example
    [1.5, 3.0, 0.0]
    """
    checks.one_of("activation", activation, nngp.ACTIVATIONS)
    (x, y), (ridge,) = _data.examples(inputs, targets), _data.positive(ridge=ridge)  # (P, d), (P,)
    points = checks.array("points", points, shape=(None, x.shape[1]))  # (M, d)
    covariance = checks.symmetric("covariance", covariance, size=x.shape[1], definite="semi")  # (d, d)
    if len(x) == 0 or len(points) == 0:
        return np.zeros(len(points))  # (M,)
    scale = {"weight_covariance": covariance, "readout_variance": readout_variance}
    gram, cross = (nngp.kernel(activation, *pair, **scale) for pair in ((x,), (points, x)))  # (P, P), (M, P)
    return gp_regression.mean(gram, y, ridge, cross)  # (M,)


def learnabilities(values, components):
    """Parts R_k of the target's components that a function has learned:  f ≈ Σ_k R_k y_k  by least squares.

    For components that are orthogonal under the law of the inputs these are the ratios  ⟨f y_k⟩/⟨y_k y_k⟩;  least
    squares remove what the sample leaves of their overlaps.  `values` (..., M): f at M test inputs; `components` (K,
    M): y_k there, linearly independent.  Returns R (..., K).

    >>> v = np.linspace(-2, 2, 9)
    >>> learnabilities(0.9 * v + 0.1 * (v**3 - 3 * v), [v, 0.4 * (v**3 - 3 * v)]).round(12).tolist()
    [0.9, 0.25]
    """
    f = checks.array("values", values)  # (..., M)
    if f.ndim == 0 or f.size == 0:
        checks.fail("values", "hold the values at one test input or more", f"shape {f.shape}")
    parts = checks.array("components", components, shape=(None, f.shape[-1]))  # (K, M)
    scales = np.linalg.norm(parts, axis=1)  # (K,)
    if len(parts) == 0 or np.any(scales == 0) or np.linalg.matrix_rank(parts / scales[:, None]) < len(parts):
        checks.fail("components", "be linearly independent at the test inputs, one or more", f"shape {parts.shape}")
    found = np.linalg.lstsq((parts / scales[:, None]).T, f.reshape(-1, f.shape[-1]).T, rcond=None)[0].T  # (F, K)
    return checks.finite("values", found / scales).reshape(*f.shape[:-1], len(parts))  # (..., K)

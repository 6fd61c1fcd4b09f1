"""Kernel adaptation on a fixed data set: the weights of a wide network as one Gaussian, learned from the data.

The posterior of the network  f(x) = Σ_c a_c φ(w_c·x)  with the prior  w_c ~ N(0, Σ_0), a_c ~ N(0, s_a²/N)  is matched
by weights w_c ~ N(0, Σ).  What decides is the free energy

    F(Σ) = ½ yᵀA⁻¹y + (N/2) [tr(Σ_0⁻¹Σ) - log det(Σ_0⁻¹Σ) - rank],    A = s_a² Q(Σ) + T,    Q = ⟨φφᵀ⟩ over w ~ N(0, Σ),

whose stationary points are the mean-field equations  Σ⁻¹ = Σ_0⁻¹ - (s_a²/N) ∂_Σ[tᵀQt], t = A⁻¹y held fixed in the
derivative.  The damped step  Σ⁻¹ ← Σ⁻¹ + η(right-hand side - Σ⁻¹)  is descent of F along its natural gradient, so that
halving η where F would rise ends in a minimum and not in a limit cycle.  At N → ∞ it is the Gaussian process of
:mod:`lib.fields.networks.nngp`.  Source: ringel2025talk, on kernel adaptation; F and the step are not in it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq

from lib.common import checks
from lib.fields import _data
from lib.fields.kernels import gp_regression
from lib.fields.networks import _units, nngp

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


def _pairs(activation, x, covariance):
    """Q between all rows of x, with its derivatives by s_12 and s_11, (P, P) each."""
    s12 = x @ covariance @ x.T  # (P, P)
    s = np.maximum(s12.diagonal(), 0)  # (P,)
    return _units.with_slopes(activation, _units.covariances(s[:, None], s12, s[None]))


def _slope(x, weights, derivatives):
    """∂_Σ Σ_μν C_μν Q_μν for symmetric C:  each pair gives its x_μ x_νᵀ, and twice x_μ x_μᵀ by symmetry."""
    between, within = derivatives
    return x.T @ (weights * between + np.diag(2 * (weights * within).sum(axis=1))) @ x  # (d, d)


class _State(NamedTuple):
    """The free energy and what its equation needs, at one precision matrix Σ⁻¹."""

    energy: float  # F
    covariance: np.ndarray  # (r, r)  Σ
    wanted: np.ndarray  # (r, r)  right-hand side of the equation for Σ⁻¹
    kernel: np.ndarray  # (P, P)  s_a² Q(Σ)
    dual: np.ndarray  # (P,)  t


class _Problem:
    """The data in units of the prior, so that Σ_0 = 1, and the free energy there."""

    def __init__(
        self, activation, inputs, targets, ridge, width, *,
        weight_variance, weight_covariance, readout_variance, fluctuations,
    ):  # fmt: skip
        self.activation = checks.one_of("activation", activation, nngp.ACTIVATIONS)
        x, self.y = _data.examples(inputs, targets)  # (P, d), (P,)
        self.ridge, self.width = _data.positive(ridge=ridge, width=width)
        variance, self.readout = _data.positive(weight_variance=weight_variance, readout_variance=readout_variance)
        self.fluctuations = checks.boolean("fluctuations", fluctuations)
        prior = np.eye(x.shape[1]) / x.shape[1]  # (d, d)
        if weight_covariance is not None:
            prior = checks.symmetric("weight_covariance", weight_covariance, size=x.shape[1], definite="semi")  # (d, d)
        values, axes = np.linalg.eigh(variance * prior)  # (d,), (d, d)
        if values[-1] <= 0:
            checks.fail("weight_covariance", "have an eigenvalue > 0", values[-1])
        kept = values > 1e-14 * values[-1]  # (d,)  directions that are never drawn cannot be learned
        scale = np.sqrt(values[kept])  # (r,)
        self.root, self.inverse = axes[:, kept] * scale, axes[:, kept] / scale  # (d, r), (d, r)
        with np.errstate(over="ignore", invalid="ignore"):
            self.x = checks.finite("inputs", x @ self.root)  # (P, r)
            _units.variances("inputs", self.x, self.x)

    def evaluated(self, precision):
        """The state at one precision matrix; None where it is none, or where A is lost."""
        try:
            factor = cho_factor(precision, lower=True)
            covariance = cho_solve(factor, np.eye(len(precision)))  # (r, r)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                kernel, *derivatives = _pairs(self.activation, self.x, covariance)  # (P, P)
                shifted = _data.factored(self.readout * kernel + self.ridge * np.eye(len(self.y)))
                dual = cho_solve(shifted, self.y)  # (P,)
                cost, weights = self.y @ dual, np.outer(dual, dual)  # (P, P)
                if self.fluctuations:
                    cost += 2 * np.log(shifted[0].diagonal()).sum()
                    weights -= cho_solve(shifted, np.eye(len(self.y)))
                force = _slope(self.x, weights, derivatives)  # (r, r)
                wanted = np.eye(len(precision)) - self.readout / self.width * force  # (r, r)
                divergence = np.trace(covariance) + 2 * np.log(factor[0].diagonal()).sum() - len(precision)
                energy = (cost + self.width * divergence) / 2
        except (LinAlgError, ValueError):  # a ValueError is an entry that is not finite
            return None
        if not (np.isfinite(energy) and np.isfinite(wanted).all()):
            return None
        return _State(energy, covariance, (wanted + wanted.T) / 2, self.readout * kernel, dual)

    def started(self, precision):
        state = self.evaluated(precision)
        if state is None:
            wanted = "be large enough for s_a² Q + ridge to be definite up to rounding and y/ridge to have a square"
            checks.fail("ridge", wanted, self.ridge)
        return state


def _step(precision, state):
    """What to add to Σ⁻¹, and the residual, the same in every basis: max |eigenvalue| of Σ(Σ⁻¹ - right-hand side).

    A direction of variance B, in units of the prior, answers B times as strongly as a lazy one.  Its part is divided by
    B, without which the common η would be 1/B and the lazy directions would wait.
    """
    variances, axes = np.linalg.eigh(state.covariance)  # (r,), (r, r)
    missing = axes.T @ (state.wanted - precision) @ axes  # (r, r)
    scale, stiff = np.sqrt(np.maximum(variances, 0)), np.sqrt(np.maximum(variances, 1))  # (r,), (r,)
    residual = np.abs(np.linalg.eigvalsh(scale[:, None] * missing * scale)).max()
    return axes @ (missing / stiff[:, None] / stiff) @ axes.T, residual  # (r, r)


def _descent(precision, state, step):
    """How fast 2F/N falls along a step of Σ⁻¹."""
    return np.sum((state.wanted - precision) * (state.covariance @ step @ state.covariance))


def slope(activation, inputs, pairs, covariance):
    """Derivative of a kernel by the weights' covariance,  ∂_Σ Σ_μν C_μν Q_μν(Σ):  the force on Σ at C = ttᵀ.

    With s_12 = x_μᵀΣx_ν it is  Xᵀ[C∘∂Q/∂s_12 + 2 diag Σ_ν C_μν ∂Q_μν/∂s_11]X.  `activation`: "erf" or "relu"; `inputs`
    (P, d): X; `pairs` (P, P): C, symmetric; `covariance` (d, d): Σ, positive semidefinite.  Returns (d, d), symmetric.

    >>> slope("relu", [[2.0]], [[3.0]], [[1.0]]).tolist()  # 3 · 2² Σ/2
    [[6.0]]
    """
    checks.one_of("activation", activation, nngp.ACTIVATIONS)
    x = _data.points("inputs", inputs)  # (P, d)
    pairs = checks.symmetric("pairs", pairs, size=len(x))  # (P, P)
    covariance = checks.symmetric("covariance", covariance, size=x.shape[1], definite="semi")  # (d, d)
    _units.variances("inputs", x @ covariance, x)
    with np.errstate(over="ignore", invalid="ignore"):
        derivatives = _pairs(activation, x, covariance)[1:]  # (P, P), (P, P)
        return checks.finite("pairs", _slope(x, pairs, derivatives))  # (d, d)


def _result(problem, state, iterations, residual):
    covariance = problem.root @ state.covariance @ problem.root.T  # (d, d)
    return Adaptation(covariance, state.kernel, state.dual, float(state.energy), iterations, float(residual))


def adapt(
    activation, inputs, targets, ridge, width, *, weight_variance=1.0, weight_covariance=None, readout_variance=1.0,
    fluctuations=False, start=None, damping=0.3, tolerance=1e-9, iterations=2000,
):  # fmt: skip
    """Weights' covariance adapted to the data:  Σ⁻¹ = Σ_0⁻¹ - (s_a²/N) ∂_Σ[tᵀQ(Σ)t],  t = (s_a² Q(Σ) + T)⁻¹ y.

    `activation`: "erf" or "relu"; `inputs` (P, d), `targets` (P,): X, y, P = 0 leaves the prior; `ridge`, `width`: T,
    N > 0; `weight_covariance` (d, d): C in Σ_0 = σ_w² C, symmetric positive semidefinite, by default I/d;
    `weight_variance`, `readout_variance`: σ_w², s_a² > 0; `fluctuations`: whether F also holds ½ log det A, as in
    :mod:`lib.fields.networks.network_posterior`, so that ttᵀ becomes ttᵀ - A⁻¹; `start` (d, d): first Σ, positive
    definite where Σ_0 is, by default Σ_0, lazy; `damping`: first η, 0 < η <= 1, later steps are as long as F allows;
    `tolerance`: on the residual, below 1e-12 rounding may keep it away; `iterations`: how many steps at most.  Returns
    Adaptation.

    >>> (2 * adapt("erf", np.eye(2), [2.0, 0.0], 0.1, 10).covariance).round(2).tolist()  # where a label is
    [[1.32, 0.0], [0.0, 1.0]]
    """
    problem = _Problem(
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
    step, residual = _step(precision, state)  # (r, r)
    for count in range(limit):
        if residual < tolerance:
            return _result(problem, state, count, residual)
        moved = precision + eta * step  # (r, r)
        new, lower = problem.evaluated(moved), False
        if new is not None:
            change, slack = new.energy - state.energy, ROUNDING * (abs(state.energy) + problem.width * len(precision))
            before, after = _descent(precision, state, step), _descent(moved, new, step)
            # Below rounding the slope says more than the value.
            lower = change < -slack or (change < slack and abs(after) < before)
        if lower:
            precision, state = moved, new
            step, residual = _step(precision, state)  # (r, r)
        eta = min(1.2 * eta, 1.0) if lower else eta / 2
    seen = f"{limit}, with a residual of {residual:.3g}"
    return checks.fail("iterations", f"be more, for a residual below {tolerance:g}", seen)


def rescale(
    activation, inputs, targets, ridge, width, *,
    weight_variance=1.0, weight_covariance=None, readout_variance=1.0, fluctuations=False,
):  # fmt: skip
    """The scaling competitor: the same free energy where the covariance may only grow as a whole,  Σ = s Σ_0.

    The lowest minimum over s, which obeys  1/s = 1 - (s_a²/N rank) tr(Σ_0 ∂_Σ[tᵀQt]).  A scalar cannot turn the kernel
    towards the target.  `activation`, `inputs`, `targets`, `ridge`, `width`, `weight_variance`, `weight_covariance`,
    `readout_variance`, `fluctuations`: as in :func:`adapt`.  Returns Adaptation.

    >>> (2 * rescale("erf", np.eye(2), [2.0, 0.0], 0.1, 10).covariance).round(2).tolist()  # both directions
    [[1.18, 0.0], [0.0, 1.18]]
    """
    problem = _Problem(
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

    They remove what the sample leaves of the overlaps of orthogonal components.  `values` (..., M): f at M test inputs;
    `components` (K, M): y_k there, linearly independent.  Returns R (..., K).

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

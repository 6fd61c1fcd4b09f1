"""Kernel adaptation on a fixed data set: the weights of a wide network as one Gaussian, learned from the data.

The posterior of a network of two layers is matched by weights w_c ~ N(0, Σ).  What decides is the free energy

    F(Σ) = ½ yᵀA⁻¹y + (N/2) [tr(Σ_0⁻¹Σ) - log det(Σ_0⁻¹Σ) - rank],    A = s_a² Q(Σ) + T,    Q = ⟨φφᵀ⟩ over w ~ N(0, Σ),

whose stationary points are the mean-field equations.  The damped step  Σ⁻¹ ← Σ⁻¹ + η(right-hand side - Σ⁻¹)  is descent
of F along its natural gradient, so that halving η where F would rise ends in a minimum and not in a limit cycle.
Source: ringel2025talk, on kernel adaptation; F and the step are not in it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields import _data
from lib.fields.networks import _units
from lib.fields.networks.two_layers import TwoLayer, _read

_ROUNDING = 1e-13  # changes of the free energy below this part of it say nothing


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Weights adapted to P examples in d dimensions.

    Parameters
    ----------
    covariance : ndarray (d, d)
        Σ.
    kernel : ndarray (P, P)
        s_a² Q(Σ) between the examples.
    dual : ndarray (P,)
        t = (s_a² Q + T)⁻¹ y.
    free_energy : float
        F; the lower of two solutions for the same data wins.
    iterations : int
        Steps taken.
    residual : float
        Largest eigenvalue of  1 - Σ^½ (right-hand side) Σ^½  in modulus; zero at a solution.
    """

    covariance: Array["d d"]
    kernel: Array["P P"]
    dual: Array[" P"]
    free_energy: float
    iterations: int
    residual: float


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

    def __init__(self, network, width, fluctuations):
        prior = _read(network).prior
        x, self.y, self.ridge, self.readout = network.inputs, network.targets, network.ridge, prior.readout_variance
        (self.width,), self.fluctuations = _data.positive(width=width), checks.boolean("fluctuations", fluctuations)
        self.activation, covariance = prior.activation, prior.weight_covariance
        covariance = np.eye(x.shape[1]) / x.shape[1] if covariance is None else covariance  # (d, d)
        values, axes = np.linalg.eigh(prior.weight_variance * covariance)  # (d,), (d, d)
        if values[-1] <= 0:
            checks.fail("weight_covariance of prior", "have an eigenvalue > 0", values[-1])
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


def slope(activation: str, inputs: ArrayLike, pairs: ArrayLike, covariance: ArrayLike) -> Array["d d"]:
    """Derivative of a kernel by the weights' covariance,  ∂_Σ Σ_μν C_μν Q_μν(Σ):  the force on Σ at C = ttᵀ.

    With s_12 = x_μᵀΣx_ν it is  Xᵀ[C∘∂Q/∂s_12 + 2 diag Σ_ν C_μν ∂Q_μν/∂s_11]X.

    Parameters
    ----------
    activation : str
        φ, "erf", "relu" or "linear".
    inputs, pairs : array_like (P, d), (P, P)
        X, and C, symmetric.
    covariance : array_like (d, d)
        Σ, positive semidefinite.

    Returns
    -------
    ndarray (d, d)
        Symmetric.

    Examples
    --------
    >>> slope("relu", [[2.0]], [[3.0]], [[1.0]]).tolist()  # 3 · 2² Σ/2
    [[6.0]]
    """
    checks.one_of("activation", activation, _units.ACTIVATIONS)
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
    network: TwoLayer, width: float, *, fluctuations: bool = False,
    start: ArrayLike | None = None, damping: float = 0.3, tolerance: float = 1e-9, iterations: int = 2000,
) -> Adaptation:  # fmt: skip
    """Weights' covariance adapted to the data:  Σ⁻¹ = Σ_0⁻¹ - (s_a²/N) ∂_Σ[tᵀQ(Σ)t],  t = (s_a² Q(Σ) + T)⁻¹ y.

    In the derivative t is held fixed.  At N → ∞ it is the Gaussian process with Σ_0.

    Parameters
    ----------
    network : TwoLayer
        With X, y, T and the prior, whose Σ_0 = σ_w² C may be of any positive semidefinite C.
    width : float
        N > 0.
    fluctuations : bool
        Whether F also holds ½ log det A, as the density of `TwoLayer` does, so that ttᵀ becomes ttᵀ - A⁻¹.
    start : array_like (d, d), optional
        First Σ, positive definite where Σ_0 is, by default Σ_0, lazy.
    damping : float
        First η, 0 < η <= 1; later steps are as long as F allows.
    tolerance : float
        On the residual; below 1e-12 rounding may keep it away.
    iterations : int
        How many steps at most.

    Returns
    -------
    Adaptation

    Examples
    --------
    >>> from lib.fields.networks.prior import Prior
    >>> network = TwoLayer(Prior("erf"), np.eye(2), [2.0, 0.0], 0.1)
    >>> (2 * adapt(network, 10).covariance).round(2).tolist()  # where a label is
    [[1.32, 0.0], [0.0, 1.0]]
    """
    problem = _Problem(network, width, fluctuations)
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
            change, slack = new.energy - state.energy, _ROUNDING * (abs(state.energy) + problem.width * len(precision))
            before, after = _descent(precision, state, step), _descent(moved, new, step)
            # Below rounding the slope says more than the value.
            lower = change < -slack or (change < slack and abs(after) < before)
        if lower:
            precision, state = moved, new
            step, residual = _step(precision, state)  # (r, r)
        eta = min(1.2 * eta, 1.0) if lower else eta / 2
    seen = f"{limit}, with a residual of {residual:.3g}"
    return checks.fail("iterations", f"be more, for a residual below {tolerance:g}", seen)

"""The free energy behind kernel adaptation in units of the prior: its evaluation, the step and the residual."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lib.common import checks
from lib.fields import _data, _kernels
from lib.fields._activations import KERNELS


def pairs(activation, x, covariance):
    """Q between all rows of x, with its derivatives by s_12 and s_11, (P, P) each."""
    s12 = x @ covariance @ x.T  # (P, P)
    s = np.maximum(s12.diagonal(), 0)  # (P,)
    return _kernels.with_slopes(activation, _kernels.covariances(s[:, None], s12, s[None]))


def slope(x, weights, derivatives):
    """∂_Σ Σ_μν C_μν Q_μν for symmetric C:  each pair gives its x_μ x_νᵀ, and twice x_μ x_μᵀ by symmetry."""
    between, within = derivatives
    return x.T @ (weights * between + np.diag(2 * (weights * within).sum(axis=1))) @ x  # (d, d)


class State(NamedTuple):
    """The free energy and what its equation needs, at one precision matrix Σ⁻¹."""

    energy: float  # F
    covariance: np.ndarray  # (r, r)  Σ
    wanted: np.ndarray  # (r, r)  right-hand side of the equation for Σ⁻¹
    kernel: np.ndarray  # (P, P)  s_a² Q(Σ)
    dual: np.ndarray  # (P,)  t


class Problem:
    """The data in units of the prior, so that Σ_0 = 1, and the free energy there."""

    def __init__(
        self, activation, inputs, targets, ridge, width, *,
        weight_variance, weight_covariance, readout_variance, fluctuations,
    ):  # fmt: skip
        self.activation = checks.one_of("activation", activation, KERNELS)
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
            _kernels.variances("inputs", self.x, self.x)

    def evaluated(self, precision):
        """The state at one precision matrix; None where it is none, or where A is lost."""
        try:
            factor = cho_factor(precision, lower=True)
            covariance = cho_solve(factor, np.eye(len(precision)))  # (r, r)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                kernel, *derivatives = pairs(self.activation, self.x, covariance)  # (P, P)
                shifted = cho_factor(self.readout * kernel + self.ridge * np.eye(len(self.y)), lower=True)
                dual = cho_solve(shifted, self.y)  # (P,)
                cost, weights = self.y @ dual, np.outer(dual, dual)  # (P, P)
                if self.fluctuations:
                    cost += 2 * np.log(shifted[0].diagonal()).sum()
                    weights -= cho_solve(shifted, np.eye(len(self.y)))
                force = slope(self.x, weights, derivatives)  # (r, r)
                wanted = np.eye(len(precision)) - self.readout / self.width * force  # (r, r)
                divergence = np.trace(covariance) + 2 * np.log(factor[0].diagonal()).sum() - len(precision)
                energy = (cost + self.width * divergence) / 2
        except (LinAlgError, ValueError):  # a ValueError is an entry that is not finite
            return None
        if not (np.isfinite(energy) and np.isfinite(wanted).all()):
            return None
        return State(energy, covariance, (wanted + wanted.T) / 2, self.readout * kernel, dual)

    def started(self, precision):
        state = self.evaluated(precision)
        if state is None:
            wanted = (
                "be large enough for s_a² Q + ridge to be definite up to rounding, and for y/ridge to have a square"
            )
            checks.fail("ridge", wanted, self.ridge)
        return state


def step(precision, state):
    """What to add to Σ⁻¹, and the residual, the same in every basis: max |eigenvalue| of Σ(Σ⁻¹ - right-hand side).

    A direction of variance B, in units of the prior, answers B times as strongly as a lazy one.  Its part is divided by
    B, without which the common η would be 1/B and the lazy directions would wait.
    """
    variances, axes = np.linalg.eigh(state.covariance)  # (r,), (r, r)
    missing = axes.T @ (state.wanted - precision) @ axes  # (r, r)
    scale, stiff = np.sqrt(np.maximum(variances, 0)), np.sqrt(np.maximum(variances, 1))  # (r,), (r,)
    residual = np.abs(np.linalg.eigvalsh(scale[:, None] * missing * scale)).max()
    return axes @ (missing / stiff[:, None] / stiff) @ axes.T, residual  # (r, r)


def descent(precision, state, step):
    """How fast 2F/N falls along a step of Σ⁻¹."""
    return np.sum((state.wanted - precision) * (state.covariance @ step @ state.covariance))

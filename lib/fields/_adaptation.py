"""The free energy behind kernel adaptation, in units of the prior: kernels with their slopes, one evaluation, its residual."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lib.common import checks
from lib.fields import network_posterior, nngp


def pairs(activation, x, covariance):
    """Q between all rows of x, with its derivatives by s_12 and s_11 where Q is a function of (s_11, s_12, s_22)."""
    s12 = x @ covariance @ x.T  # (P, P)
    s = np.maximum(s12.diagonal(), 0)[:, None]  # (P, 1)
    if activation == "erf":
        root = np.sqrt(
            np.maximum((1 + 2 * s) * (1 + 2 * s.T) - 4 * s12**2, 1.0)
        )  # (P, P)  1 or more where C is a covariance
        return (
            2 / np.pi * np.arctan2(2 * s12, root),
            4 / np.pi / root,
            -4 / np.pi * s12 / (root * (1 + 2 * s)),
        )  # (P, P) each
    sine = np.sqrt(np.maximum(s * s.T - s12**2, 0))  # (P, P)  √(s_11 s_22) sin θ
    np.fill_diagonal(sine, 0)
    angle = np.pi - np.arctan2(sine, s12)  # (P, P)  π - θ
    by_variance = np.divide(sine, 4 * np.pi * s, out=np.zeros_like(sine), where=s > 0)  # (P, P)
    return (sine + angle * s12) / (2 * np.pi), angle / (2 * np.pi), by_variance


def slope(x, weights, derivatives):
    """∂_Σ Σ_μν C_μν Q_μν for symmetric C:  each pair gives its x_μ x_νᵀ, and twice x_μ x_μᵀ by symmetry."""
    between, within = derivatives
    return x.T @ (weights * between + np.diag(2 * (weights * within).sum(axis=1))) @ x  # (d, d)


class Problem:
    """The data in units of the prior, so that Σ_0 = 1, and the free energy there."""

    def __init__(
        self,
        activation,
        inputs,
        targets,
        ridge,
        width,
        weight_variance,
        weight_covariance,
        readout_variance,
        fluctuations,
    ):
        self.activation = nngp._activation("activation", activation)
        x, self.y = network_posterior._data(inputs, targets)  # (P, d), (P,)
        self.ridge, self.width = checks.number("ridge", ridge, above=0), checks.number("width", width, above=0)
        variance, self.readout = network_posterior._prior(weight_variance, readout_variance)
        self.fluctuations = checks.boolean("fluctuations", fluctuations)
        prior = np.eye(x.shape[1]) / x.shape[1]  # (d, d)
        if weight_covariance is not None:
            prior = checks.symmetric("weight_covariance", weight_covariance, size=x.shape[1], definite="semi")  # (d, d)
        values, axes = np.linalg.eigh(variance * prior)  # (d,), (d, d)
        if values[-1] <= 0:
            checks.fail("weight_covariance", "have an eigenvalue > 0", values[-1])
        kept = values > 1e-14 * values[-1]  # (d,)  directions that are never drawn cannot be learned
        self.root, self.inverse = (
            axes[:, kept] * np.sqrt(values[kept]),
            axes[:, kept] / np.sqrt(values[kept]),
        )  # (d, r), (d, r)
        with np.errstate(over="ignore", invalid="ignore"):
            self.x = checks.finite("inputs", x @ self.root)  # (P, r)
            nngp._variances("inputs", self.x, self.x)

    def evaluated(self, precision):
        """F, Σ, the right-hand side, s_a²Q and t at one precision matrix; None where it is none, or where A is lost in rounding."""
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
                wanted = np.eye(len(precision)) - self.readout / self.width * slope(
                    self.x, weights, derivatives
                )  # (r, r)
                divergence = np.trace(covariance) + 2 * np.log(factor[0].diagonal()).sum() - len(precision)
                energy = (cost + self.width * divergence) / 2
        except (LinAlgError, ValueError):  # a ValueError is an entry that is not finite
            return None
        if not (np.isfinite(energy) and np.isfinite(wanted).all()):
            return None
        return energy, covariance, (wanted + wanted.T) / 2, self.readout * kernel, dual

    def started(self, precision):
        state = self.evaluated(precision)
        if state is None:
            checks.fail(
                "ridge",
                "be large enough for s_a² Q + ridge to be definite up to rounding, and for y/ridge to have a square",
                self.ridge,
            )
        return state


def step(precision, state):
    """What to add to Σ⁻¹, and the residual: the largest eigenvalue in modulus of Σ(Σ⁻¹ - right-hand side), the same in every basis.

    A direction of variance B, in units of the prior, answers B times as strongly as a lazy one.  Its part is divided by B, without which the
    common η would be 1/B and the lazy directions would wait.
    """
    variances, axes = np.linalg.eigh(state[1])  # (r,), (r, r)
    missing = axes.T @ (state[2] - precision) @ axes  # (r, r)
    scale, stiff = np.sqrt(np.maximum(variances, 0)), np.sqrt(np.maximum(variances, 1))  # (r,), (r,)
    residual = np.abs(np.linalg.eigvalsh(scale[:, None] * missing * scale)).max()
    return axes @ (missing / stiff[:, None] / stiff) @ axes.T, residual  # (r, r)


def descent(precision, state, step):
    """How fast 2F/N falls along a step of Σ⁻¹."""
    return np.sum((state[2] - precision) * (state[1] @ step @ state[1]))

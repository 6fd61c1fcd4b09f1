"""Bayesian networks of two layers at finite width, readouts integrated out: density of the weights, gradient, samples.

The network  f(x) = Σ_c a_c φ(w_c·x)  has the prior  w_c ~ N(0, σ_w²/d), a_c ~ N(0, s_a²/N) and sees
y_μ = f(x_μ) + noise of variance T.  Given the features F = φ(XWᵀ) the readouts are Gaussian, and left to sample is
p(W) ∝ e^{-U(W)},  U = d|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y,  A = (s_a²/N) FFᵀ + T.  Langevin training at temperature T,
:mod:`lib.fields.networks.langevin_training`, samples it but for an error in the step; at N → ∞ the mean is that of
:mod:`lib.fields.networks.nngp`.  Source: ringel2025talk, on Langevin training; the integral over the readouts is not in
it.
"""

import numpy as np

from lib.common import checks
from lib.fields._data import examples
from lib.fields.networks import _readouts
from lib.fields.networks._readouts import evaluated, refuse_singular, regression, stack
from lib.fields.networks._units import units


def potential(weights, activation, inputs, targets, ridge, *, weight_variance=1.0, readout_variance=1.0):
    """U(W) of several networks, up to a constant, and its gradient  dW/σ_w² + (∂_F U ∘ φ')ᵀX.

    `weights` (C, N, d): W of C networks; `activation`: φ, "erf", "relu" or "linear"; `inputs` (P, d), `targets` (P,):
    X, y, P = 0 leaves the prior; `ridge`: T > 0, variance of the label noise; `weight_variance`, `readout_variance`:
    σ_w² > 0 of √d w, s_a² > 0 of √N a.  Returns U (C,) and its gradient (C, N, d).

    >>> [part.round(6).tolist() for part in potential([[[2.0]]], "linear", [[1.0]], [0.0], 1.0)]  # w²/2 + log(w² + 1)/2
    [[2.804719], [[[2.4]]]]
    """
    functions, (x, y) = units(activation), examples(inputs, targets)  # (P, d), (P,)
    w = stack("weights", weights, x.shape[1])  # (C, N, d)
    prior = _readouts.prior(ridge, readout_variance, weight_variance)
    with np.errstate(over="ignore", invalid="ignore"):
        checks.finite("weights", (w**2).sum(axis=(1, 2)))  # (C,)
        value, gradient = evaluated(w, functions, x[:, None], y, *prior)
    refuse_singular(value, prior[0])
    return value, checks.finite("weights", gradient)


def predict(weights, activation, inputs, targets, ridge, points, *, readout_variance=1.0):
    """Posterior mean function given the weights:  f̄(x) = (s_a²/N) φ(xWᵀ) FᵀA⁻¹y,  a regression on the features.

    `weights`, `activation`, `inputs`, `targets`, `ridge`, `readout_variance`: as in :func:`potential`; `points` (M, d):
    where to predict.  Returns f̄ (C, M); its mean over samples of W is the posterior mean.

    >>> predict([[[2.0]], [[0.0]]], "linear", [[1.0]], [5.0], 1.0, [[1.0], [3.0]]).round(12).tolist()
    [[4.0, 12.0], [0.0, 0.0]]
    """
    (phi, _), (x, y) = units(activation), examples(inputs, targets)  # (P, d), (P,)
    w = stack("weights", weights, x.shape[1])  # (C, N, d)
    points = checks.array("points", points, shape=(None, x.shape[1]))  # (M, d)
    prior = _readouts.prior(ridge, readout_variance)
    with np.errstate(over="ignore", invalid="ignore"):
        features = phi(x @ w.swapaxes(1, 2))  # (C, P, N)
        _, alpha, logarithm = regression(features, y, *prior[:2])
        refuse_singular(logarithm, prior[0])
        readouts = prior[1] / w.shape[1] * (alpha[:, None, :] @ features)  # (C, 1, N)
        return checks.finite("points", (phi(points @ w.swapaxes(1, 2)) @ readouts.swapaxes(1, 2))[..., 0])  # (C, M)


def sample(
    activation, inputs, targets, ridge, width, chains, steps, rng, *,
    weight_variance=1.0, readout_variance=1.0, start=None, observable=None, leapfrog=10, burn_in=None, acceptance=0.8,
):  # fmt: skip
    """Samples of the weights from their posterior, by :func:`lib.common.hmc.sample` in units of the deviation σ_w/√d.

    `activation`, `inputs`, `targets`, `ridge`, `weight_variance`, `readout_variance`: as in :func:`potential`; `width`,
    `chains`, `steps`: N, C, and S samples kept of each chain; `rng`: int, SeedSequence or Generator; `start` (C, N,
    d): first weights, by default drawn from the prior; `observable`: function of W (C, N, d) whose value (C, ...) is
    kept in place of W; `leapfrog`, `burn_in`, `acceptance`: as there.  Returns hmc.Chains.

    >>> sample("erf", [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1, 5, 10, 50, rng=1).samples.shape
    (50, 10, 5, 2)
    """
    x, y = examples(inputs, targets)  # (P, d), (P,)
    prior = _readouts.prior(ridge, readout_variance, weight_variance)
    shape = checks.integer("chains", chains), checks.integer("width", width), x.shape[1]
    ways = {"observable": observable, "leapfrog": leapfrog, "burn_in": burn_in, "acceptance": acceptance}
    return _readouts.sample(activation, x[:, None], y, prior, shape, steps, rng, start, **ways)

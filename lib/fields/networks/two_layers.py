"""Bayesian networks of two layers at finite width, readouts integrated out: density of the weights, gradient, samples.

Given the features F = φ(XWᵀ) the readouts are Gaussian, and left to sample is p(W).  Langevin training samples it but
for an error in the step; at N → ∞ the mean is that of a Gaussian process.  Source: ringel2025talk, on Langevin
training; the integral over the readouts is not in it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lib.common import checks, hmc
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields._data import examples, positive
from lib.fields.networks import _readouts
from lib.fields.networks._readouts import evaluated, refuse_singular, regression, stack
from lib.fields.networks._units import units


@dataclass(frozen=True, eq=False)
class TwoLayer:
    """The network  f(x) = Σ_c a_c φ(w_c·x)  with its Gaussian prior and the data  y_μ = f(x_μ) + noise  that it sees.

    Left to sample is  p(W) ∝ e^{-U(W)},  U = d|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y,  A = (s_a²/N) FFᵀ + T.

    Parameters
    ----------
    activation : str
        φ, "erf", "relu" or "linear"; erf(u), without a √2.
    inputs, targets : array_like (P, d), (P,)
        X, y; P = 0 leaves the prior.
    ridge : float
        T > 0, variance of the label noise.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0 of  w_c ~ N(0, σ_w²/d), a_c ~ N(0, s_a²/N).  By keyword only.

    Examples
    --------
    >>> TwoLayer("erf", [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1).inputs.shape
    (2, 2)
    """

    activation: str
    inputs: Array["P d"]
    targets: Array[" P"]
    ridge: float
    weight_variance: float = field(default=1.0, kw_only=True)
    readout_variance: float = field(default=1.0, kw_only=True)

    def __post_init__(self):
        units(self.activation)
        x, y = examples(self.inputs, self.targets)  # (P, d), (P,)
        given = {name: getattr(self, name) for name in ("ridge", "weight_variance", "readout_variance")}
        checks.keep(self, inputs=x, targets=y, **dict(zip(given, positive(**given))))

    @property
    def _prior(self):
        return self.ridge, self.readout_variance, self.weight_variance

    def potential(self, weights: ArrayLike) -> tuple[Array[" C"], Array["C N d"]]:
        """U(W) of several networks, up to a constant, and its gradient  dW/σ_w² + (∂_F U ∘ φ')ᵀX.

        Parameters
        ----------
        weights : array_like (C, N, d)
            W of C networks.

        Returns
        -------
        value, gradient : ndarray (C,), (C, N, d)

        Examples
        --------
        >>> network = TwoLayer("linear", [[1.0]], [0.0], 1.0)
        >>> [part.round(6).tolist() for part in network.potential([[[2.0]]])]  # w²/2 + log(w² + 1)/2
        [[2.804719], [[[2.4]]]]
        """
        w = stack("weights", weights, self.inputs.shape[1])  # (C, N, d)
        with np.errstate(over="ignore", invalid="ignore"):
            checks.finite("weights", (w**2).sum(axis=(1, 2)))  # (C,)
            value, gradient = evaluated(w, units(self.activation), self.inputs[:, None], self.targets, *self._prior)
        refuse_singular(value, self.ridge)
        return value, checks.finite("weights", gradient)

    def predict(self, weights: ArrayLike, points: ArrayLike) -> Array["C M"]:
        """Posterior mean function given the weights:  f̄(x) = (s_a²/N) φ(xWᵀ) FᵀA⁻¹y,  a regression on the features.

        Parameters
        ----------
        weights : array_like (C, N, d)
            W of C networks.
        points : array_like (M, d)
            Where to predict.

        Returns
        -------
        ndarray (C, M)
            Its mean over samples of W is the posterior mean.

        Examples
        --------
        >>> network = TwoLayer("linear", [[1.0]], [5.0], 1.0)
        >>> network.predict([[[2.0]], [[0.0]]], [[1.0], [3.0]]).round(12).tolist()
        [[4.0, 12.0], [0.0, 0.0]]
        """
        phi, _ = units(self.activation)
        w = stack("weights", weights, self.inputs.shape[1])  # (C, N, d)
        points = checks.array("points", points, shape=(None, self.inputs.shape[1]))  # (M, d)
        with np.errstate(over="ignore", invalid="ignore"):
            features = phi(self.inputs @ w.swapaxes(1, 2))  # (C, P, N)
            _, alpha, logarithm = regression(features, self.targets, self.ridge, self.readout_variance)
            refuse_singular(logarithm, self.ridge)
            readouts = self.readout_variance / w.shape[1] * (alpha[:, None, :] @ features)  # (C, 1, N)
            return checks.finite("points", (phi(points @ w.swapaxes(1, 2)) @ readouts.swapaxes(1, 2))[..., 0])

    def sample(
        self, width: int, chains: int, steps: int, rng: Rng, *, start: ArrayLike | None = None,
        observable: Callable | None = None, leapfrog: int = 10, burn_in: int | None = None, acceptance: float = 0.8,
    ) -> hmc.Chains:  # fmt: skip
        """Samples of the weights from their posterior, by Hamiltonian Monte Carlo in units of the deviation σ_w/√d.

        Parameters
        ----------
        width, chains, steps : int
            N, C, and S samples kept of each chain.
        rng : int, SeedSequence or Generator
        start : array_like (C, N, d), optional
            First weights, by default drawn from the prior.
        observable : function, optional
            Of W (C, N, d), whose value (C, ...) is kept in place of W.
        leapfrog, burn_in : int
            Mean number of leapfrog steps; proposals thrown away first, by default `steps`, and 100 or more.
        acceptance : float
            Wanted mean probability, between 0 and 1.

        Returns
        -------
        hmc.Chains
            With `samples` (S, C, ...).

        Examples
        --------
        >>> network = TwoLayer("erf", [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1)
        >>> network.sample(5, 10, 50, rng=1, burn_in=100).samples.shape
        (50, 10, 5, 2)
        """
        shape = checks.integer("chains", chains), checks.integer("width", width), self.inputs.shape[1]
        ways = {"observable": observable, "leapfrog": leapfrog, "burn_in": burn_in, "acceptance": acceptance}
        task = self.activation, self.inputs[:, None], self.targets, self._prior
        return _readouts.sample(*task, shape, steps, rng, start, **ways)


def _read(network, choices=None):
    """`network`, a TwoLayer, of one of these activations."""
    checks.instance("network", network, TwoLayer, "as two_layers.TwoLayer makes it")
    if choices:
        checks.one_of("activation of network", network.activation, choices)
    return network

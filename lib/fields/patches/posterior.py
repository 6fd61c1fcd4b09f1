"""Bayesian patch networks of finite size: data of their teacher, samples of the filters, and what they have learned.

The theory of :mod:`lib.fields.patches.shared_filters` is held against the samples; :mod:`lib.fields.patches.gibbs`
samples linear networks faster.  Source: ringel2025talk, the deck, without the integral over the readouts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lib.common import checks, hmc
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields import _data
from lib.fields.networks import _readouts, _units
from lib.fields.overlaps import _projections, single_index
from lib.fields.patches.shared_filters import PatchNetwork, _read


@dataclass(frozen=True, eq=False)
class Data:
    """Examples of  y = N_p^{-1/2} Σ_i a_i* [H_1(w_*·x_i) + ε H_3(w_*·x_i)],  and what is behind them."""

    inputs: Array["P N S"]  # x, standard Gaussian, of N patches
    targets: Array[" P"]  # y, without noise
    signs: Array[" N"]  # a_i* = ±1
    direction: Array[" S"]  # w_*, of length one
    epsilon: float  # ε

    def measure(
        self, weights: ArrayLike, readouts: ArrayLike, activation: str, *, weight_variance: float = 1.0
    ) -> Array["M k"]:
        """What networks have learned:  the ratio  S⟨(w_c·w_*)²⟩/σ_w²  of their filters and the learnabilities R_1, R_3.

        R_n = N_p^{-1/2} Σ_ic a_i* a_ic ĥ_n(w_c·w_*, |w_c|²)/Y_n,  Y = (1, √6 ε),  with the components ĥ_n of one unit,
        of :func:`lib.fields.overlaps.single_index.projections`:  the average over inputs is exact.

        Parameters
        ----------
        weights : array_like (M, C, S)
            w_c of M networks.
        readouts : array_like (M, N_p, C)
            a_ic, or their posterior mean.
        activation : str
            φ, "erf" or "linear".
        weight_variance : float
            σ_w² > 0.

        Returns
        -------
        ndarray (M, 2) or (M, 3)
            Ratio, R_1, and R_3 if ε is not zero.

        Examples
        --------
        >>> data = draw(5, 2, 3, rng=1)
        >>> data.measure([[data.direction]], data.signs[None, :, None] / np.sqrt(2), "linear").round(12).tolist()
        [[3.0, 1.0]]
        """
        checks.one_of("activation", activation, ("erf", "linear"))
        w = _readouts.stack("weights", weights, self.direction.size)  # (M, C, S)
        a = checks.array("readouts", readouts, shape=(len(w), self.signs.size, w.shape[1]))  # (M, N_p, C)
        variance = checks.number("weight_variance", weight_variance, above=0)
        with np.errstate(over="ignore", invalid="ignore"):
            m = w @ self.direction  # (M, C)
            if activation == "linear":
                seen = np.stack([m, 0 * m], axis=-1)  # (M, C, 2)
            else:
                seen = _projections.components("erf", np.array([1, 3]), m, np.linalg.norm(w, axis=2))  # (M, C, 2)
            gathered = self.signs @ a / np.sqrt(self.signs.size)  # (M, C)  of the teacher's combination of patches
            target = single_index.staircase(self.epsilon)  # (2,)
            learned = np.einsum("mc,mcn->mn", gathered, seen)[:, target != 0] / target[target != 0]  # (M, 1) or (M, 2)
            ratio = w.shape[2] * (m**2).mean(axis=1) / variance  # (M,)
            return checks.finite("weights", np.column_stack([ratio, learned]))  # (M, 2) or (M, 3)


def draw(samples: int, patches: int, patch_size: int, rng: Rng, *, epsilon: float = 0.0) -> Data:
    """Examples of the patch teacher at standard Gaussian inputs, with a random direction and random signs.

    Parameters
    ----------
    samples, patches, patch_size : int
        P, N_p, S.
    rng : int, SeedSequence or Generator
    epsilon : float
        ε.

    Returns
    -------
    Data

    Examples
    --------
    >>> draw(5, 2, 3, rng=1).inputs.shape
    (5, 2, 3)
    """
    given = {"samples": samples, "patches": patches, "patch_size": patch_size}
    shape = tuple(checks.integer(name, value) for name, value in given.items())
    random, epsilon = checks.generator("rng", rng), checks.number("epsilon", epsilon)
    direction = random.standard_normal(shape[2])  # (S,)
    direction /= np.linalg.norm(direction)
    signs = random.choice([-1.0, 1.0], shape[1])  # (N_p,)
    x = random.standard_normal(shape)  # (P, N_p, S)
    v = x @ direction  # (P, N_p)
    with np.errstate(over="ignore", invalid="ignore"):
        targets = checks.finite("epsilon", (v + epsilon * (v**3 - 3 * v)) @ signs / np.sqrt(shape[1]))  # (P,)
    return Data(x, targets, signs, direction, epsilon)


def _patched(network, inputs, targets, *, shared=False):
    """X and y that fit the network, with shared filters if so wanted, C, and T/χ, σ_a²/χ and σ_w²."""
    (x, y), (patches, size, channels, *prior) = _data.examples(inputs, targets, patches=True), _read(network)._single()
    wanted = f"hold {patches} patches of {size} components, as network says"
    checks.fail_if(x.shape[1:] != (patches, size), "inputs", wanted, f"shape {x.shape}")
    checks.fail_if(network.ridge == 0, "ridge of network", "be > 0", network.ridge)
    checks.fail_if(shared and not network.shared, "network", "have shared filters", network)
    return x, y, channels, tuple(prior)


def mean_readouts(
    network: PatchNetwork, activation: str, weights: ArrayLike, inputs: ArrayLike, targets: ArrayLike
) -> Array["M N C"]:
    """Posterior mean of the readouts at given filters:  ā = σ_a²/(χN_pC) Φᵀ A⁻¹ y,  the regression on the features.

    Φ are the N_p C features φ(w_c·x_i) of each example, and  A = σ_a²/(χN_pC) ΦΦᵀ + T/χ.

    Parameters
    ----------
    network : PatchNetwork
        One of shared filters and whole sizes, of ridge T > 0, not lost in the rounding of A.
    activation : str
        φ, "erf", "relu" or "linear".
    weights : array_like (M, C, S)
        w_c of M networks.
    inputs, targets : array_like (P, N_p, S), (P,)
        X, y; P = 0 leaves the prior.

    Returns
    -------
    ndarray (M, N_p, C)
        ā, for :meth:`Data.measure`.

    Examples
    --------
    >>> mean_readouts(PatchNetwork(1, 1, 1, 1.0), "linear", [[[2.0]], [[0.0]]], [[[1.0]]], [5.0]).ravel().tolist()
    [2.0, 0.0]
    """
    (phi, _), (x, y, channels, (ridge, readout, _)) = (
        _units.units(activation),
        _patched(network, inputs, targets, shared=True),
    )
    w = _readouts.stack("weights", weights, x.shape[2])  # (M, C, S)
    checks.fail_if(w.shape[1] != channels, "weights", f"have {channels} channels, as network says", f"shape {w.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        features = phi(x @ w.swapaxes(1, 2)[:, None]).reshape(len(w), len(y), -1)  # (M, P, N_p·C)
        _, alpha, logarithm = _readouts.regression(features, y, ridge, readout)
        _readouts.refuse_singular(logarithm, network.ridge)
        mean = readout / features.shape[2] * (alpha[:, None, :] @ features)  # (M, 1, N_p·C)
    return checks.finite("weights", mean.reshape(len(w), x.shape[1], channels))  # (M, N_p, C)


def sample(
    network: PatchNetwork, activation: str, inputs: ArrayLike, targets: ArrayLike, chains: int, steps: int, rng: Rng, *,
    start: ArrayLike | None = None, observable: Callable | None = None, leapfrog: int = 10, burn_in: int | None = None,
    acceptance: float = 0.8,
) -> hmc.Chains:  # fmt: skip
    """Samples of the filters from their posterior, by :func:`lib.common.hmc.sample` in units of the deviation σ_w/√S.

    Readouts are integrated out: with the N_p C features Φ, φ(w_c·x_i) of each example, the filters have the density
    e^{-U},  U = S|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y,  A = σ_a²/(χN_pC) ΦΦᵀ + T/χ.

    Parameters
    ----------
    network : PatchNetwork
        One of shared filters and whole sizes, of ridge T > 0, not lost in the rounding of A.
    activation : str
        φ, "erf", "relu" or "linear".
    inputs, targets : array_like (P, N_p, S), (P,)
        X, y; P = 0 leaves the prior.
    chains, steps : int
        M, and samples kept of each chain.
    rng : int, SeedSequence or Generator
    start : array_like (M, C, S), optional
        First filters, by default drawn from the prior.
    observable : function, optional
        Of w (M, C, S), whose value (M, ...) is kept in place of w.
    leapfrog, burn_in : int
        Mean number of leapfrog steps; proposals thrown away first, by default `steps`, and 100 or more.
    acceptance : float
        Wanted mean probability, between 0 and 1.

    Returns
    -------
    hmc.Chains
        With `samples` (steps, M, C, S) or (steps, M, ...).

    Examples
    --------
    >>> data = draw(60, 2, 5, rng=1)
    >>> sample(PatchNetwork(2, 5, 20, 0.1), "linear", data.inputs, data.targets, 4, 50, rng=2).samples.shape
    (50, 4, 20, 5)
    """
    x, y, channels, prior = _patched(network, inputs, targets, shared=True)  # (P, N_p, S), (P,)
    shape = checks.integer("chains", chains), channels, x.shape[2]
    ways = {"observable": observable, "leapfrog": leapfrog, "burn_in": burn_in, "acceptance": acceptance}
    return _readouts.sample(activation, x, y, prior, shape, steps, rng, start, **ways)

"""Bayesian patch networks of finite size: data of their teacher, samples of the filters, and what they have learned.

Network, prior, ridge T/χ and teacher are those of :mod:`lib.fields.patches.shared_filters`, whose theory is held
against the samples.  Readouts are integrated out as in :mod:`lib.fields.networks.two_layers`:  with the N_p C
features Φ, φ(w_c·x_i) of each example, the filters have the density e^{-U},  U = S|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y,
A = σ_a²/(χN_pC) ΦΦᵀ + T/χ.  :mod:`lib.fields.patches.gibbs` samples linear networks faster.  Source:
ringel2025talk, the deck, without the integral over the readouts.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields import _data
from lib.fields.networks import _readouts, _units
from lib.fields.overlaps import _projections, single_index


@dataclass(frozen=True, eq=False)
class Data:
    """Examples of  y = N_p^{-1/2} Σ_i a_i* [H_1(w_*·x_i) + ε H_3(w_*·x_i)],  and what is behind them."""

    inputs: np.ndarray  # (P, N_p, S)  x, standard Gaussian
    targets: np.ndarray  # (P,)  y, without noise
    signs: np.ndarray  # (N_p,)  a_i* = ±1
    direction: np.ndarray  # (S,)  w_*, of length one
    epsilon: float  # ε


def draw(samples, patches, patch_size, rng, *, epsilon=0.0):
    """Examples of the patch teacher at standard Gaussian inputs, with a random direction and random signs.

    `samples`, `patches`, `patch_size`: P, N_p, S; `rng`: int, SeedSequence or Generator; `epsilon`: ε.  Returns Data.

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


def measure(weights, readouts, activation, data, *, weight_variance=1.0):
    """What networks have learned:  the ratio  S⟨(w_c·w_*)²⟩/σ_w²  of their filters and the learnabilities R_1, R_3.

    R_n = N_p^{-1/2} Σ_ic a_i* a_ic ĥ_n(w_c·w_*, |w_c|²)/Y_n,  Y = (1, √6 ε),  with the components ĥ_n of one unit, of
    :mod:`lib.fields.overlaps.single_index`:  the average over inputs is exact.  `weights` (M, C, S): w_c of M networks;
    `readouts` (M, N_p, C): a_ic, or their posterior mean; `activation`: φ, "erf" or "linear"; `data`: Data;
    `weight_variance`: σ_w² > 0.  Returns (M, 2) or (M, 3): ratio, R_1, and R_3 if ε is not zero.

    >>> data = draw(5, 2, 3, rng=1)
    >>> measure([[data.direction]], data.signs[None, :, None] / np.sqrt(2), "linear", data).round(12).tolist()
    [[3.0, 1.0]]
    """
    checks.instance("data", data, Data, "as patch_posterior.draw returns it")
    checks.one_of("activation", activation, ("erf", "linear"))
    w = _readouts.stack("weights", weights, data.direction.size)  # (M, C, S)
    a = checks.array("readouts", readouts, shape=(len(w), data.signs.size, w.shape[1]))  # (M, N_p, C)
    variance = checks.number("weight_variance", weight_variance, above=0)
    with np.errstate(over="ignore", invalid="ignore"):
        m = w @ data.direction  # (M, C)
        if activation == "linear":
            seen = np.stack([m, 0 * m], axis=-1)  # (M, C, 2)
        else:
            seen = _projections.components("erf", np.array([1, 3]), m, np.linalg.norm(w, axis=2))  # (M, C, 2)
        gathered = data.signs @ a / np.sqrt(data.signs.size)  # (M, C)  readouts of the teacher's combination of patches
        target = single_index.staircase(data.epsilon)  # (2,)
        learned = np.einsum("mc,mcn->mn", gathered, seen)[:, target != 0] / target[target != 0]  # (M, 1) or (M, 2)
        ratio = w.shape[2] * (m**2).mean(axis=1) / variance  # (M,)
        return checks.finite("weights", np.column_stack([ratio, learned]))  # (M, 2) or (M, 3)


def mean_readouts(weights, activation, inputs, targets, ridge, *, mean_field=1.0, readout_variance=1.0):
    """Posterior mean of the readouts at given filters:  ā = σ_a²/(χN_pC) Φᵀ A⁻¹ y,  the regression on the features.

    `weights` (M, C, S): w_c of M networks; `activation`: φ, "erf", "relu" or "linear"; `inputs` (P, N_p, S), `targets`
    (P,): X, y, P = 0 leaves the prior; `ridge`: T > 0, not lost in the rounding of A; `mean_field`: χ > 0, divides
    readout variance and ridge; `readout_variance`: σ_a² > 0.  Returns ā (M, N_p, C), for :func:`measure`.

    >>> mean_readouts([[[2.0]], [[0.0]]], "linear", [[[1.0]]], [5.0], 1.0).ravel().tolist()
    [2.0, 0.0]
    """
    (phi, _), (x, y) = _units.units(activation), _data.examples(inputs, targets, patches=True)  # (P, N_p, S), (P,)
    w = _readouts.stack("weights", weights, x.shape[2])  # (M, C, S)
    prior = _readouts.prior(ridge, readout_variance, mean_field=mean_field)
    with np.errstate(over="ignore", invalid="ignore"):
        features = phi(x @ w.swapaxes(1, 2)[:, None]).reshape(len(w), len(y), -1)  # (M, P, N_p·C)
        _, alpha, logarithm = _readouts.regression(features, y, *prior[:2])
        _readouts.refuse_singular(logarithm, ridge)
        mean = prior[1] / features.shape[2] * (alpha[:, None, :] @ features)  # (M, 1, N_p·C)
    return checks.finite("weights", mean.reshape(len(w), x.shape[1], w.shape[1]))  # (M, N_p, C)


def sample(
    activation, inputs, targets, ridge, channels, chains, steps, rng, *, mean_field=1.0, readout_variance=1.0,
    weight_variance=1.0, start=None, observable=None, leapfrog=10, burn_in=None, acceptance=0.8,
):  # fmt: skip
    """Samples of the filters from their posterior, by :func:`lib.common.hmc.sample` in units of the deviation σ_w/√S.

    `activation`, `inputs`, `targets`, `ridge`, `mean_field`, `readout_variance`: as in :func:`mean_readouts`;
    `channels`, `chains`, `steps`: C, M, and samples kept of each chain; `rng`: int, SeedSequence or Generator;
    `weight_variance`: σ_w² > 0; `start` (M, C, S): first filters, by default drawn from the prior; `observable`:
    function of w (M, C, S) whose value (M, ...) is kept in its place; `leapfrog`, `burn_in`, `acceptance`: as there.
    Returns hmc.Chains with samples (steps, M, C, S) or (steps, M, ...).

    >>> data = draw(60, 2, 5, rng=1)
    >>> sample("linear", data.inputs, data.targets, 0.1, 20, 4, 50, rng=2).samples.shape
    (50, 4, 20, 5)
    """
    x, y = _data.examples(inputs, targets, patches=True)  # (P, N_p, S), (P,)
    prior = _readouts.prior(ridge, readout_variance, weight_variance, mean_field)
    shape = checks.integer("chains", chains), checks.integer("channels", channels), x.shape[2]
    ways = {"observable": observable, "leapfrog": leapfrog, "burn_in": burn_in, "acceptance": acceptance}
    return _readouts.sample(activation, x, y, prior, shape, steps, rng, start, **ways)

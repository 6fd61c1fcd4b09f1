r"""Bayesian patch networks of finite size: data of their teacher, the density of the filters and its samples, and what they have learned.

The network  f(x) = Σ_{i≤N_p} Σ_{c≤C} a_ic φ(w_c·x_i),  its prior  w_c ~ N(0, σ_w²/S),  a_ic ~ N(0, σ_a²/(N_p C χ)),  its ridge T/χ and its
teacher are those of :mod:`lib.fields.patches.patch_networks`, whose theory is held against the samples.  The readouts are integrated out as in
:mod:`lib.fields.network_posterior`:  N_p C features  φ(w_c·x_i)  of an example, C weight vectors.  Linear networks are sampled faster by
:mod:`lib.fields.patches.patch_gibbs`.
Source: ringel2025talk, the deck, slides on convolutional networks and on Langevin training; the integral over
the readouts is not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields import hmc
from lib.fields.network_posterior import _activation, _refuse_singular, _regression, _stack
from lib.fields.overlaps import single_index


@dataclass(frozen=True, eq=False)
class Data:
    """Examples of  y = N_p^{-1/2} Σ_i a_i* [H_1(w_*·x_i) + ε H_3(w_*·x_i)],  and what is behind them."""

    inputs: np.ndarray  # (P, N_p, S)  x, standard Gaussian
    targets: np.ndarray  # (P,)  y, without noise
    signs: np.ndarray  # (N_p,)  a_i* = ±1
    direction: np.ndarray  # (S,)  w_*, of length one
    epsilon: float  # ε


def _data(inputs, targets):
    """X and y; no rows at all leave the prior."""
    x = checks.array("inputs", inputs, ndim=3)  # (P, N_p, S)
    if 0 in x.shape[1:]:
        checks.fail("inputs", "have one patch or more of one component or more", f"shape {x.shape}")
    return x, checks.array("targets", targets, shape=(len(x),))  # (P, N_p, S), (P,)


def _prior(ridge, mean_field, readout_variance, weight_variance=1.0):
    """T/χ, σ_a²/χ and σ_w²."""
    ridge, chi = checks.number("ridge", ridge, above=0), checks.number("mean_field", mean_field, above=0)
    readout = checks.number("readout_variance", readout_variance, above=0)
    return ridge / chi, readout / chi, checks.number("weight_variance", weight_variance, above=0)


def draw(samples, patches, patch_size, seed, *, epsilon=0.0):
    r"""Examples of the patch teacher at standard Gaussian inputs, with a random direction and random signs of the patches.

    Source: ringel2025talk, the deck, slides on convolutional networks.

    Parameters
    ----------
    samples : int                            P; >= 1
    patches : int                            N_p; >= 1
    patch_size : int                         S; >= 1
    seed : int, SeedSequence or Generator
    epsilon : float                          ε of the cubic part; 0 is the linear teacher

    Returns
    -------
    Data

    Examples
    --------
    >>> data = draw(5, 2, 3, seed=1)
    >>> bool(np.allclose(data.targets, data.signs @ (data.inputs @ data.direction).T / np.sqrt(2)))
    True
    """
    shape = (
        checks.integer("samples", samples),
        checks.integer("patches", patches),
        checks.integer("patch_size", patch_size),
    )
    random, epsilon = checks.generator("seed", seed), checks.number("epsilon", epsilon)
    direction = random.standard_normal(shape[2])  # (S,)
    direction /= np.linalg.norm(direction)
    signs = random.choice([-1.0, 1.0], shape[1])  # (N_p,)
    x = random.standard_normal(shape)  # (P, N_p, S)
    v = x @ direction  # (P, N_p)
    with np.errstate(over="ignore", invalid="ignore"):
        targets = checks.finite("epsilon", (v + epsilon * (v**3 - 3 * v)) @ signs / np.sqrt(shape[1]))  # (P,)
    return Data(x, targets, signs, direction, epsilon)


def measure(weights, readouts, activation, data, *, weight_variance=1.0):
    r"""What networks have learned:  the ratio  S⟨(w_c·w_*)²⟩/σ_w²  of their filters and the learnabilities R_1, R_3 of their functions.

    With  m_c = w_c·w_*  and the components ĥ_n of one unit, of :mod:`lib.fields.overlaps.single_index`, taken at its own length |w_c|,

        R_n = N_p^{-1/2} Σ_ic a_i* a_ic ĥ_n(m_c, |w_c|²)/Y_n,    Y = (1, √6 ε):

    the average over inputs is exact, and patches other than i do not contribute, since a unit's mean output or H_n's vanishes.  A linear unit has
    ĥ_1 = m and ĥ_3 = 0.  Source: ringel2025talk, the deck, slides on convolutional networks.

    Parameters
    ----------
    weights : array (M, C, S)       w_c of M networks
    readouts : array (M, N_p, C)    a_ic, or their posterior mean
    activation : str                φ: "erf" or "linear"
    data : Data                     for its signs, direction and ε
    weight_variance : float         σ_w²; > 0

    Returns
    -------
    array (M, 2) or (M, 3)          ratio, R_1, and R_3 if ε is not zero

    Examples
    --------
    >>> data = draw(5, 2, 3, seed=1)
    >>> measure([[data.direction]], data.signs[None, :, None] / np.sqrt(2), "linear", data).round(12).tolist()  # the teacher itself
    [[3.0, 1.0]]
    """
    if not isinstance(data, Data):
        checks.fail("data", "be a patch_posterior.Data", data)
    if not isinstance(activation, str) or activation not in ("erf", "linear"):
        checks.fail("activation", "be one of erf, linear", activation)
    w = _stack("weights", weights, data.direction.size)  # (M, C, S)
    a = checks.array("readouts", readouts, shape=(len(w), data.signs.size, w.shape[1]))  # (M, N_p, C)
    variance = checks.number("weight_variance", weight_variance, above=0)
    with np.errstate(over="ignore", invalid="ignore"):
        m = w @ data.direction  # (M, C)
        stretch = np.sqrt(0.5 + (w**2).sum(axis=2))  # (M, C)
        units = (
            [m, 0 * m]
            if activation == "linear"
            else [np.sqrt(2 / np.pi) * m / stretch, -((m / stretch) ** 3) / np.sqrt(3 * np.pi)]
        )  # (M, C)
        gathered = data.signs @ a / np.sqrt(data.signs.size)  # (M, C)  readouts of the teacher's combination of patches
        columns = [w.shape[2] * (m**2).mean(axis=1) / variance]  # (M,)
        for unit, target in zip(units, single_index.staircase(data.epsilon)):
            if target != 0:
                columns.append((gathered * unit).sum(axis=1) / target)  # (M,)
        return checks.finite("weights", np.stack(columns, axis=1))  # (M, 2) or (M, 3)


def _evaluated(w, functions, x, y, ridge, readout, weight):
    """U, inf where A is lost in rounding, and its gradient."""
    (phi, slope), flat = functions, x.reshape(-1, x.shape[2])  # (P·N_p, S)
    u = flat @ w.swapaxes(1, 2)  # (M, P·N_p, C)
    features, stiffness = (
        phi(u).reshape(len(w), len(y), x.shape[1] * w.shape[1]),
        x.shape[2] / weight,
    )  # (M, P, N_p·C), ()
    solved, alpha, logarithm = _regression(features, y, ridge, readout)
    value = (stiffness * (w**2).sum(axis=(1, 2)) + logarithm + alpha @ y) / 2  # (M,)
    gain = readout / features.shape[2]
    back = solved - gain * alpha[:, :, None] * (alpha[:, None, :] @ features)  # (M, P, N_p·C)  ∂U/∂Φ
    return value, stiffness * w + (back.reshape(u.shape) * slope(u)).swapaxes(1, 2) @ flat  # (M,), (M, C, S)


def potential(
    weights, activation, inputs, targets, ridge, *, mean_field=1.0, readout_variance=1.0, weight_variance=1.0
):  # fmt: skip
    r"""U(W) = S|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y,  A = σ_a²/(χN_pC) ΦΦᵀ + T/χ,  and its gradient, of several networks.

    Source: ringel2025talk, the deck, slides on Langevin training, readouts integrated, with the features of a patch network.

    Parameters
    ----------
    weights : array (M, C, S)     w_c of M networks
    activation : str              φ: "erf", "relu" or "linear"
    inputs : array (P, N_p, S)    X; P = 0 leaves the prior
    targets : array (P,)          y
    ridge : float                 T; > 0
    mean_field : float            χ; > 0; divides readout variance and ridge
    readout_variance : float      σ_a²; > 0
    weight_variance : float       σ_w²; > 0

    Returns
    -------
    (array (M,), array (M, C, S))

    Raises
    ------
    ValueError                    if an argument is outside its range, or the ridge is lost in the rounding of A

    Examples
    --------
    >>> value, gradient = potential([[[2.0]]], "linear", [[[1.0]]], [0.0], 1.0)  # one of each:  w²/2 + log(w² + 1)/2
    >>> value.round(6).tolist(), gradient.ravel().tolist()
    ([2.804719], [2.4])
    """
    functions, (x, y) = _activation(activation), _data(inputs, targets)  # (P, N_p, S), (P,)
    w = _stack("weights", weights, x.shape[2])  # (M, C, S)
    prior = _prior(ridge, mean_field, readout_variance, weight_variance)
    with np.errstate(over="ignore", invalid="ignore"):
        checks.finite("weights", (w**2).sum(axis=(1, 2)))  # (M,)
        value, gradient = _evaluated(w, functions, x, y, *prior)  # (M,), (M, C, S)
    _refuse_singular(value, ridge)
    return value, checks.finite("weights", gradient)


def mean_readouts(weights, activation, inputs, targets, ridge, *, mean_field=1.0, readout_variance=1.0):
    r"""Posterior mean of the readouts at given filters:  ā = σ_a²/(χN_pC) Φᵀ A⁻¹ y,  the regression on the features of each network.

    Source: ringel2025talk, the deck, slides on Gaussian-process regression, with the kernel of one network.

    Parameters
    ----------
    weights : array (M, C, S)     w_c of M networks
    activation : str              "erf", "relu" or "linear"
    inputs : array (P, N_p, S)    X
    targets : array (P,)          y
    ridge : float                 T; > 0
    mean_field : float            χ; > 0
    readout_variance : float      σ_a²; > 0

    Returns
    -------
    array (M, N_p, C)             ā, for :func:`measure`; its mean over samples of the filters gives the posterior mean

    Raises
    ------
    ValueError                    if an argument is outside its range, or the ridge is lost in the rounding of A

    Examples
    --------
    >>> mean_readouts([[[2.0]], [[0.0]]], "linear", [[[1.0]]], [5.0], 1.0).ravel().tolist()
    [2.0, 0.0]
    """
    (phi, _), (x, y) = _activation(activation), _data(inputs, targets)  # (P, N_p, S), (P,)
    w = _stack("weights", weights, x.shape[2])  # (M, C, S)
    ridge_chi, readout, _ = _prior(ridge, mean_field, readout_variance)
    with np.errstate(over="ignore", invalid="ignore"):
        features = phi(x @ w.swapaxes(1, 2)[:, None]).reshape(len(w), len(y), -1)  # (M, P, N_p·C)
        _, alpha, logarithm = _regression(features, y, ridge_chi, readout)
        _refuse_singular(logarithm, ridge)
        mean = readout / features.shape[2] * (alpha[:, None, :] @ features)  # (M, 1, N_p·C)
    return checks.finite("weights", mean.reshape(len(w), x.shape[1], w.shape[1]))  # (M, N_p, C)


def sample(
    activation, inputs, targets, ridge, channels, chains, steps, seed, *, mean_field=1.0, readout_variance=1.0,
    weight_variance=1.0, start=None, observable=None, leapfrog=10, burn_in=None, acceptance=0.8,
):  # fmt: skip
    r"""Samples of the filters from their posterior, by Hamiltonian Monte Carlo in units of the prior's deviation σ_w/√S.

    Source: ringel2025talk, the deck, slides on convolutional networks and on Langevin training, whose stationary density this is.

    Parameters
    ----------
    activation : str                    "erf", "relu" or "linear"
    inputs : array (P, N_p, S)          X; P = 0 leaves the prior
    targets : array (P,)                y
    ridge : float                       T; > 0
    channels : int                      C; >= 1
    chains : int                        M; >= 1
    steps : int                         samples kept of each chain; >= 1
    seed : int, SeedSequence or Generator
    mean_field : float                  χ; > 0; divides readout variance and ridge
    readout_variance : float            σ_a²; > 0
    weight_variance : float             σ_w²; > 0
    start : array (M, C, S), optional   first filters; default: drawn from the prior
    observable : function, optional     takes w (M, C, S), returns an array (M, ...) that is kept in its place
    leapfrog, burn_in, acceptance       as in :func:`lib.fields.hmc.sample`

    Returns
    -------
    hmc.Chains                          samples (steps, M, C, S), or (steps, M, ...) of the observable

    Examples
    --------
    >>> data = draw(60, 2, 5, seed=1)
    >>> chains = sample("linear", data.inputs, data.targets, 0.1, 20, 4, 50, seed=2, observable=lambda w: 5 * (w @ data.direction) ** 2)
    >>> chains.samples.shape, bool(chains.samples.mean() > 1.3)  # the prior's mean is 1
    ((50, 4, 20), True)
    """
    functions, (x, y) = _activation(activation), _data(inputs, targets)  # (P, N_p, S), (P,)
    prior = _prior(ridge, mean_field, readout_variance, weight_variance)
    shape = checks.integer("chains", chains), checks.integer("channels", channels), x.shape[2]
    random, scale = checks.generator("seed", seed), np.sqrt(prior[2] / x.shape[2])
    start = (
        scale * random.standard_normal(shape) if start is None else checks.array("start", start, shape=shape)
    )  # (M, C, S)
    return hmc.sample(
        lambda w: _evaluated(w, functions, x, y, *prior), start, steps, random,
        leapfrog=leapfrog, burn_in=burn_in, acceptance=acceptance, scale=scale, observable=observable,
    )  # fmt: skip

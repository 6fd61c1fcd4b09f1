r"""Bayesian networks of three layers at finite width, readouts integrated out: density of the two hidden layers, its gradient, its samples.

As in :mod:`lib.fields.network_posterior`, with the features  F = φ(H),  H = φ(XWᵀ)Vᵀ  of the second layer.  In units of the prior, w = √(σ_0²/d) z and
v = √(σ_1²/N_0) z', all coordinates have variance one, and what is sampled is

    U = ½|z|² + ½|z'|² + ½ log det A + ½ yᵀA⁻¹y,    A = (σ_2²/N_1) FFᵀ + T.

It is what the adapted kernel of :mod:`lib.fields.three_layers` is held against.  Source: ringel2025talk, the deck, slides on networks of three
layers and on Langevin training; the integral over the readouts is not in it.
"""

import numpy as np

from lib.common import checks
from lib.fields import hmc, network_posterior
from lib.fields.three_layers import _variances, _widths


def _layers(first, second, dimension):
    """W and V of C networks."""
    w = network_posterior._stack("first", first, dimension)  # (C, N_0, d)
    v = network_posterior._stack("second", second, w.shape[1])  # (C, N_1, N_0)
    if len(v) != len(w):
        checks.fail("second", "belong to as many networks as first", f"{len(v)} and {len(w)}")
    return w, v


def _evaluated(w, v, functions, x, y, ridge, variances):
    """U, inf where A is lost in rounding, and its gradients by W and V."""
    phi, slope = functions
    u = x @ w.swapaxes(1, 2)  # (C, P, N_0)
    first = phi(u)  # (C, P, N_0)
    h = first @ v.swapaxes(1, 2)  # (C, P, N_1)
    features, gain = phi(h), variances[2] / v.shape[1]  # (C, P, N_1)
    solved, alpha, logarithm = network_posterior._regression(features, y, ridge, variances[2])
    stiffness = x.shape[1] / variances[0], w.shape[1] / variances[1]
    value = (
        stiffness[0] * (w**2).sum(axis=(1, 2)) + stiffness[1] * (v**2).sum(axis=(1, 2)) + logarithm + alpha @ y
    ) / 2  # (C,)
    back = (solved - gain * alpha[:, :, None] * (alpha[:, None, :] @ features)) * slope(h)  # (C, P, N_1)  ∂U/∂H
    by_first = stiffness[0] * w + ((back @ v) * slope(u)).swapaxes(1, 2) @ x  # (C, N_0, d)
    return value, by_first, stiffness[1] * v + back.swapaxes(1, 2) @ first  # (C,), (C, N_0, d), (C, N_1, N_0)


def potential(first, second, activation, inputs, targets, ridge, *, variances=(1.0, 1.0, 1.0)):
    r"""U(W, V) = d|W|²/2σ_0² + N_0|V|²/2σ_1² + ½ log det A + ½ yᵀA⁻¹y  and its gradients, of several networks.

    A constant that does not depend on the weights is left out.  Source: ringel2025talk, the deck, slides on networks of three layers.

    Parameters
    ----------
    first : array (C, N_0, d)     W of C networks
    second : array (C, N_1, N_0)  V
    activation : str              φ of both layers: "erf", "relu" or "linear"
    inputs : array (P, d)         X; P = 0 leaves the prior
    targets : array (P,)          y
    ridge : float                 T; > 0
    variances : array (3,)        σ_0², σ_1², σ_2², from the inputs to the readouts; > 0

    Returns
    -------
    (array (C,), array (C, N_0, d), array (C, N_1, N_0))

    Raises
    ------
    ValueError                    if an argument is outside its range, or the ridge is lost in the rounding of A

    Examples
    --------
    >>> value, by_first, by_second = potential([[[2.0]]], [[[1.0]]], "linear", [[1.0]], [0.0], 1.0)  # (w² + v² + log(w²v² + 1))/2
    >>> value.round(6).tolist(), by_first.ravel().tolist(), by_second.ravel().tolist()
    ([3.304719], [2.4], [1.8])
    """
    functions = network_posterior._activation(activation)
    x, y = network_posterior._data(inputs, targets)  # (P, d), (P,)
    w, v = _layers(first, second, x.shape[1])  # (C, N_0, d), (C, N_1, N_0)
    ridge, variances = checks.number("ridge", ridge, above=0), _variances(variances)
    with np.errstate(over="ignore", invalid="ignore"):
        for name, layer in (("first", w), ("second", v)):
            checks.finite(name, (layer**2).sum(axis=(1, 2)))  # (C,)
        value, *gradients = _evaluated(w, v, functions, x, y, ridge, variances)
    network_posterior._refuse_singular(value, ridge)
    return value, *(checks.finite(name, gradient) for name, gradient in zip(("first", "second"), gradients))


def hidden_kernel(first, second, activation, inputs):
    r"""Kernel of the second layer of each network,  (1/N_1) Σ_i h_i h_iᵀ  at the inputs; its posterior mean is the K_h that adaptation predicts.

    Source: ringel2025talk, the deck, slides on networks of three layers.

    Parameters
    ----------
    first : array (C, N_0, d)     W of C networks
    second : array (C, N_1, N_0)  V
    activation : str              φ of the first layer: "erf", "relu" or "linear"
    inputs : array (P, d)         X

    Returns
    -------
    array (C, P, P)

    Examples
    --------
    >>> hidden_kernel([[[2.0]]], [[[1.0], [-3.0]]], "linear", [[1.0], [2.0]]).tolist()  # 2² (1 + 3²)/2 at the first input
    [[[20.0, 40.0], [40.0, 80.0]]]
    """
    phi, _ = network_posterior._activation(activation)
    x = checks.array("inputs", inputs, ndim=2)  # (P, d)
    w, v = _layers(first, second, x.shape[1])  # (C, N_0, d), (C, N_1, N_0)
    with np.errstate(over="ignore", invalid="ignore"):
        h = phi(x @ w.swapaxes(1, 2)) @ v.swapaxes(1, 2)  # (C, P, N_1)
        return checks.finite("inputs", h @ h.swapaxes(1, 2) / v.shape[1])  # (C, P, P)


def predict(first, second, activation, inputs, targets, ridge, points, *, variances=(1.0, 1.0, 1.0)):
    r"""Posterior mean function given both hidden layers:  f̄(x) = (σ_2²/N_1) φ(h(x)) Fᵀ A⁻¹ y.

    Source: ringel2025talk, the deck, slides on Gaussian-process regression, with the kernel of one network.

    Parameters
    ----------
    first : array (C, N_0, d)     W of C networks
    second : array (C, N_1, N_0)  V
    activation : str              φ of both layers: "erf", "relu" or "linear"
    inputs : array (P, d)         X
    targets : array (P,)          y
    ridge : float                 T; > 0
    points : array (M, d)         where to predict
    variances : array (3,)        σ_0², σ_1², σ_2²; > 0; only the last has a say once W and V are given

    Returns
    -------
    array (C, M)                  f̄ at the points; its mean over samples is the posterior mean

    Raises
    ------
    ValueError                    if an argument is outside its range, or the ridge is lost in the rounding of A

    Examples
    --------
    >>> predict([[[2.0]]], [[[1.0]]], "linear", [[1.0]], [5.0], 1.0, [[1.0], [3.0]]).round(12).tolist()
    [[4.0, 12.0]]
    """
    phi, _ = network_posterior._activation(activation)
    x, y = network_posterior._data(inputs, targets)  # (P, d), (P,)
    w, v = _layers(first, second, x.shape[1])  # (C, N_0, d), (C, N_1, N_0)
    ridge, points, variances = (
        checks.number("ridge", ridge, above=0),
        network_posterior._points(points, x.shape[1]),
        _variances(variances),
    )
    with np.errstate(over="ignore", invalid="ignore"):
        first_layer = phi(np.concatenate([x, points]) @ w.swapaxes(1, 2))  # (C, P + M, N_0)
        features = phi(first_layer @ v.swapaxes(1, 2))  # (C, P + M, N_1)
        solved, _, logarithm = network_posterior._regression(features[:, : len(x)], y, ridge, variances[2])
        network_posterior._refuse_singular(logarithm, ridge)
        return checks.finite("points", features[:, len(x) :] @ (solved.swapaxes(1, 2) @ y)[..., None])[..., 0]  # (C, M)


def sample(
    activation, inputs, targets, ridge, widths, chains, steps, seed, *,
    variances=(1.0, 1.0, 1.0), start=None, observable=None, leapfrog=10, burn_in=None, acceptance=0.8,
):  # fmt: skip
    r"""Samples of both hidden layers from their posterior, by Hamiltonian Monte Carlo in units of the prior's deviations.

    Source: ringel2025talk, the deck, slides on Langevin training, whose stationary density this is.

    Parameters
    ----------
    activation : str                    φ of both layers: "erf", "relu" or "linear"
    inputs : array (P, d)               X; P = 0 leaves the prior
    targets : array (P,)                y
    ridge : float                       T; > 0
    widths : (int, int)                 N_0, N_1; >= 1
    chains : int                        C; >= 1
    steps : int                         S, samples kept of each chain; >= 1
    seed : int, SeedSequence or Generator
    variances : array (3,)              σ_0², σ_1², σ_2²; > 0
    start : pair of arrays, optional    first W (C, N_0, d) and V (C, N_1, N_0); default: drawn from the prior
    observable : function, optional     takes W and V, returns an array (C, ...) that is kept; default: :func:`hidden_kernel` at the examples
    leapfrog, burn_in, acceptance       as in :func:`lib.fields.hmc.sample`

    Returns
    -------
    hmc.Chains                          samples (S, C, P, P), or (S, C, ...) of the observable; `last` holds z and z' in rows (C, N_0 d + N_1 N_0)

    Examples
    --------
    >>> chains = sample("erf", [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1, (20, 5), 10, 50, seed=1)
    >>> chains.samples.shape, bool(chains.samples[:, :, 0, 1].mean() < 0)  # opposite labels turn the fields apart
    ((50, 10, 2, 2), True)
    """
    functions = network_posterior._activation(activation)
    x, y = network_posterior._data(inputs, targets)  # (P, d), (P,)
    ridge, variances, (n0, n1) = checks.number("ridge", ridge, above=0), _variances(variances), _widths(widths)
    chains, random = checks.integer("chains", chains), checks.generator("seed", seed)
    size, scales = n0 * x.shape[1], np.sqrt(variances[:2] / [x.shape[1], n0])  # (2,)
    z = random.standard_normal((chains, size + n1 * n0))  # (C, D)
    if start is not None:
        if not isinstance(start, (tuple, list)) or len(start) != 2:
            checks.fail("start", "be a pair of arrays, W and V", start)
        shapes = (chains, n0, x.shape[1]), (chains, n1, n0)
        layers = [checks.array("start", layer, shape=shape) for layer, shape in zip(start, shapes)]
        z = np.concatenate(
            [layer.reshape(chains, -1) / scale for layer, scale in zip(layers, scales)], axis=1
        )  # (C, D)
    if observable is not None and not callable(observable):
        checks.fail("observable", "be a function of W and V", observable)

    def layers_of(z):
        return scales[0] * z[:, :size].reshape(chains, n0, -1), scales[1] * z[:, size:].reshape(chains, n1, n0)

    def energy(z):
        value, *gradients = _evaluated(*layers_of(z), functions, x, y, ridge, variances)
        return value, np.concatenate(
            [scale * part.reshape(chains, -1) for scale, part in zip(scales, gradients)], axis=1
        )  # (C,), (C, D)

    def kept(z):
        return (
            hidden_kernel(*layers_of(z), activation, x) if observable is None else observable(*layers_of(z))
        )  # (C, ...)

    return hmc.sample(
        energy, z, steps, random, leapfrog=leapfrog, burn_in=burn_in, acceptance=acceptance, observable=kept
    )

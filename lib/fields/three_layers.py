r"""Random networks of three layers, and how the data adapt the kernel of the second one.

The network is  f(x) = Σ_i a_i φ(h_i(x)),  h_i(x) = Σ_j v_ij φ(w_j·x)  with N_1 units h_i on N_0 units of the first layer and the priors
w_j ~ N(0, σ_0²/d), v_ij ~ N(0, σ_1²/N_0), a_i ~ N(0, σ_2²/N_1).  Given the first layer the h_i are independent Gaussian fields; at N_0 → ∞ their
covariance is K⁰ = σ_1²⟨φφ⟩, the kernel of two layers.  What the h_i are at the examples plays the part that w_c plays in two layers, with unit
vectors for inputs: :func:`adapt` is :func:`lib.fields.kernel_adaptation.adapt` of these.  The posterior by sampling is in :mod:`lib.fields.three_layer_posterior`.
Source: ringel2025talk, the deck, slides on networks of three layers.
"""

import numpy as np

from lib.common import checks
from lib.fields import gp_regression, kernel_adaptation, network_posterior, nngp
from lib.fields._activations import ACTIVATIONS
from lib.foundations import sampling

BLOCK = 2**20  # values of neurons in memory at a time


def _widths(widths):
    try:
        first, second = widths
    except (TypeError, ValueError):
        checks.fail("widths", "hold two numbers of units, N_0 and N_1", widths)
    return tuple(checks.integer("widths", width) for width in (first, second))


def _variances(variances):
    return checks.entries("variances", variances, above=0, shape=(3,))  # (3,)


def _hidden(phi, x, widths, variances, rng, networks):
    """h of random networks at the inputs, (networks, N_1, n)."""
    weights = np.sqrt(variances[0] / x.shape[1]) * rng.standard_normal(
        (networks, widths[0], x.shape[1])
    )  # (networks, N_0, d)
    with np.errstate(over="ignore", invalid="ignore"):
        first = phi(weights @ x.T)  # (networks, N_0, n)
        return (
            np.sqrt(variances[1] / widths[0]) * rng.standard_normal((networks, widths[1], widths[0])) @ first
        )  # (networks, N_1, n)


def outputs(activation, inputs, widths, networks, seed, *, variances=(1.0, 1.0, 1.0)):
    r"""Outputs f(x) of random networks of three layers at the given inputs, each network at all of them.

    Source: ringel2025talk, the deck, slides on networks of three layers.

    Parameters
    ----------
    activation : str                         φ of both layers, "erf" or "relu"
    inputs : array (n, d)                    x, one row an input
    widths : (int, int)                      N_0, N_1; >= 1
    networks : int                           S; >= 1
    seed : int, SeedSequence or Generator
    variances : array (3,)                   σ_0², σ_1², σ_2², from the inputs to the readouts; > 0

    Returns
    -------
    array (S, n)                             f

    Examples
    --------
    >>> functions = outputs("erf", [[1.0, 0.0], [-1.0, 0.0]], (7, 5), 3, seed=1)
    >>> functions.shape, bool(np.allclose(functions[:, 0], -functions[:, 1]))  # odd units of odd units
    ((3, 2), True)
    """
    phi, _ = ACTIVATIONS[nngp._activation("activation", activation)]
    x, widths = nngp._points("inputs", inputs), _widths(widths)  # (n, d)
    networks, rng, variances = (
        checks.integer("networks", networks),
        checks.generator("seed", seed),
        _variances(variances),
    )
    many = max(1, BLOCK // (max(widths) * max(*x.shape, widths[0])))
    result = np.empty((networks, len(x)))  # (S, n)
    for start in range(0, networks, many):
        size = min(many, networks - start)
        h = _hidden(phi, x, widths, variances, rng, size)  # (size, N_1, n)
        readouts = np.sqrt(variances[2] / widths[1]) * rng.standard_normal((size, 1, widths[1]))  # (size, 1, N_1)
        with np.errstate(over="ignore", invalid="ignore"):
            result[start : start + size] = (readouts @ phi(h))[:, 0]  # (size, n)
    return checks.finite("inputs", result)  # (S, n)


def characteristic_functional(activation, inputs, sources, widths, samples, seed, *, variances=(1.0, 1.0, 1.0)):
    r"""Characteristic functional  ⟨exp(i Σ_μ t_μ f(x_μ))⟩ = ⟨ exp[-(σ_2²/2N_1) Σ_i (Σ_μ t_μ φ(h_i(x_μ)))²] ⟩,  readouts averaged exactly.

    The exponent is that of the action of three layers, with the ½ that some slides drop.  At N_0, N_1 → ∞ it is exp(-½ tᵀKt) with the kernel of three
    layers.  Source: ringel2025talk, the deck, slides on networks of three layers.

    Parameters
    ----------
    activation : str                         φ of both layers, "erf" or "relu"
    inputs : array (n, d)                    x_μ, one row an input
    sources : array (n,)                     t_μ
    widths : (int, int)                      N_0, N_1; >= 1
    samples : int                            networks drawn; >= 2
    seed : int, SeedSequence or Generator
    variances : array (3,)                   σ_0², σ_1², σ_2², from the inputs to the readouts; > 0

    Returns
    -------
    sampling.Average                         mean and standard error, floats

    Examples
    --------
    >>> found = characteristic_functional("relu", [[1.0]], [1.0], (1, 1), 100_000, seed=1)  # three nets in four are silent
    >>> bool(0.75 < found.mean < 1 and found.standard_error < 0.005)
    True
    """
    phi, _ = ACTIVATIONS[nngp._activation("activation", activation)]
    x, widths = nngp._points("inputs", inputs), _widths(widths)  # (n, d)
    t = checks.array("sources", sources, shape=x.shape[:1])  # (n,)
    samples = checks.integer("samples", samples, at_least=2)
    rng, variances = checks.generator("seed", seed), _variances(variances)
    many = max(1, BLOCK // (max(widths) * max(*x.shape, widths[0])))
    values = np.empty(samples)  # (S,)
    for start in range(0, samples, many):
        size = min(many, samples - start)
        with np.errstate(over="ignore", invalid="ignore"):
            fields = phi(_hidden(phi, x, widths, variances, rng, size)) @ t  # (size, N_1)
            exponent = variances[2] / (2 * widths[1]) * (checks.finite("inputs", fields) ** 2).sum(axis=1)  # (size,)
        values[start : start + size] = np.exp(-exponent)  # (size,)
    return sampling.Average(float(values.mean()), float(values.std(ddof=1) / np.sqrt(samples)))


def adapt(
    activation, inputs, targets, ridge, width, *, variances=(1.0, 1.0, 1.0),
    fluctuations=False, start=None, damping=0.3, tolerance=1e-9, iterations=2000,
):  # fmt: skip
    r"""Kernel of the second layer adapted to the data:  [K_h]⁻¹ = [K⁰]⁻¹ - (σ_2²/N_1) ∂_{K_h}[tᵀQ(K_h)t],  t = (σ_2² Q(K_h) + T)⁻¹ y.

    Q = ⟨φ(h)φ(h)ᵀ⟩ over fields h ~ N(0, K_h) at the examples; the first layer is infinitely wide, K⁰ = σ_1²⟨φφ⟩ over its prior.
    Source: ringel2025talk, the deck, slides on networks of three layers; solved as two layers with unit vectors for inputs.

    Parameters
    ----------
    activation : str               φ of both layers, "erf" or "relu"
    inputs : array (P, d)          X, one row or more
    targets : array (P,)           y
    ridge : float                  T; > 0
    width : float                  N_1; > 0
    variances : array (3,)         σ_0², σ_1², σ_2², from the inputs to the readouts; > 0
    start : array (P, P), optional first K_h, positive definite where K⁰ is; default: K⁰
    fluctuations, damping, tolerance, iterations
                                   as in :func:`lib.fields.kernel_adaptation.adapt`

    Returns
    -------
    kernel_adaptation.Adaptation  covariance: K_h (P, P);  kernel: σ_2² Q(K_h)

    Raises
    ------
    ValueError                    if an argument is outside its range, or the equation is not solved to the tolerance

    Examples
    --------
    >>> found = adapt("erf", [[1.0, 0.0], [0.0, 1.0]], [2.0, 0.0], 0.1, 10)  # K⁰ is 1/3 without overlap
    >>> (3 * found.covariance).round(2).tolist()
    [[1.41, 0.0], [0.0, 1.0]]
    """
    x, variances = nngp._points("inputs", inputs), _variances(variances)  # (P, d)
    prior = nngp.kernel(activation, x, weight_variance=variances[0], readout_variance=variances[1])  # (P, P)
    return kernel_adaptation.adapt(
        activation, np.eye(len(x)), targets, ridge, width, weight_covariance=prior, readout_variance=variances[2],
        fluctuations=fluctuations, start=start, damping=damping, tolerance=tolerance, iterations=iterations,
    )  # fmt: skip


def predict(hidden_kernel, activation, inputs, targets, ridge, points, *, variances=(1.0, 1.0, 1.0)):
    r"""Posterior mean function for a given kernel of the second layer:  f̄(x) = σ_2² Q(x, X) t.

    At new points the fields are what the prior K⁰ says given those at the examples:  with  B = [K⁰]⁻¹K⁰_{X*}  they have the covariances
    K_h B  with the examples and  K⁰_** + Bᵀ(K_h - K⁰)B  among themselves.  Not in the source, ringel2025talk.

    Parameters
    ----------
    hidden_kernel : array (P, P)  K_h at the examples, symmetric positive semidefinite
    activation : str              φ of both layers, "erf" or "relu"
    inputs : array (P, d)         X, one row or more, with a K⁰ that is positive definite
    targets : array (P,)          y
    ridge : float                 T; > 0
    points : array (M, d)         where to predict
    variances : array (3,)        σ_0², σ_1², σ_2²; > 0

    Returns
    -------
    array (M,)                    f̄ at the points

    Examples
    --------
    >>> x, y = [[1.0, 0.0], [0.0, 1.0]], [2.0, 0.0]
    >>> predict(adapt("erf", x, y, 0.1, 10).covariance, "erf", x, y, 0.1, [[1.0, 0.0], [3.0, 0.0]]).round(2).tolist()
    [1.53, 1.76]
    """
    activation, x = nngp._activation("activation", activation), nngp._points("inputs", inputs)  # (P, d)
    x, y = network_posterior._data(x, targets)  # (P, d), (P,)
    points, ridge = nngp._points("points", points, x.shape[1]), checks.number("ridge", ridge, above=0)  # (M, d)
    hidden, variances = (
        checks.symmetric("hidden_kernel", hidden_kernel, size=len(x), definite="semi"),
        _variances(variances),
    )  # (P, P)
    scale = {"weight_variance": variances[0], "readout_variance": variances[1]}
    prior, cross = (nngp.kernel(activation, x, other, **scale) for other in (None, points))  # (P, P), (P, M)
    if np.linalg.eigvalsh(prior)[0] < 1e-13 * prior.max():
        checks.fail(
            "inputs", "have a prior kernel that is positive definite beyond rounding", "some that are equal or opposite"
        )
    regression = np.linalg.solve(prior, cross)  # (P, M)  B
    s12 = regression.T @ hidden  # (M, P)
    change = np.einsum("pm,pm->m", regression, (hidden - prior) @ regression)  # (M,)
    s22 = np.maximum(nngp.variance(activation, points, **scale) + change, 0)  # (M,)
    gram = nngp.kernel(activation, np.eye(len(x)), weight_covariance=hidden, readout_variance=variances[2])  # (P, P)
    cross = variances[2] * nngp._average(activation, hidden.diagonal()[None], s12, s22[:, None])  # (M, P)
    return gp_regression.mean(gram, y, ridge, cross)  # (M,)

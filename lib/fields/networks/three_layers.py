"""Random networks of three layers, and how the data adapt the kernel of the second one.

The network is  f(x) = Σ_i a_i φ(h_i(x)),  h_i(x) = Σ_j v_ij φ(w_j·x)  with N_1 units h_i on N_0 units of the first
layer and the priors  w_j ~ N(0, σ_0²/d), v_ij ~ N(0, σ_1²/N_0), a_i ~ N(0, σ_2²/N_1).  Given the first layer the h_i
are independent Gaussian fields, at N_0 → ∞ of covariance K⁰ = σ_1²⟨φφ⟩, the kernel of two layers.  At the examples they
play the part of w_c in two layers, with unit vectors for inputs.  Source: ringel2025talk, on networks of three layers.
"""

import numpy as np

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields._data import points
from lib.fields.networks import kernel_adaptation
from lib.fields.networks._units import KERNELS, units
from lib.fields.networks.prior import Prior
from lib.fields.networks.two_layers import TwoLayer

BLOCK = 2**20  # values of neurons in memory at a time


def _hidden(activation, x, widths, count, random, variances):
    """A slice of `count` random networks with their φ(h) at the inputs, (networks, N_1, n), block after block."""
    (first, second), (rows, dimension), (phi, _) = widths, x.shape, units(activation, KERNELS)
    many = max(1, BLOCK // (max(widths) * max(rows, dimension, first)))
    for start in range(0, count, many):
        size = min(many, count - start)
        weights = np.sqrt(variances[0] / dimension) * random.standard_normal((size, first, dimension))
        with np.errstate(over="ignore", invalid="ignore"):
            inner = phi(weights @ x.T)  # (size, N_0, n)
            between = np.sqrt(variances[1] / first) * random.standard_normal((size, second, first))
            yield slice(start, start + size), phi(between @ inner)  # (size, N_1, n)


def _network(activation, inputs, widths, rng, variances):
    """The arguments that both kinds of samples share, checked."""
    checks.one_of("activation", activation, KERNELS)
    try:
        first, second = widths
    except (TypeError, ValueError):
        checks.fail("widths", "hold two numbers of units, N_0 and N_1", widths)
    widths = checks.integer("widths", first), checks.integer("widths", second)
    variances = checks.entries("variances", variances, above=0, shape=(3,))  # (3,)
    return points("inputs", inputs), widths, checks.generator("rng", rng), variances


def outputs(
    activation: str, inputs: ArrayLike, widths: tuple[int, int], replicas: int, rng: Rng, *,
    variances: ArrayLike = (1.0, 1.0, 1.0),
) -> Array["S n"]:  # fmt: skip
    """Outputs f(x) of random networks of three layers at the given inputs, each network at all of them.

    Parameters
    ----------
    activation : str
        φ of both layers, "erf" or "relu".
    inputs : array_like (n, d)
        x.
    widths : pair of int
        (N_0, N_1).
    replicas : int
        S networks.
    rng : int, SeedSequence or Generator
    variances : array_like (3,)
        σ_0², σ_1², σ_2² > 0.

    Returns
    -------
    ndarray (S, n)

    Examples
    --------
    >>> outputs("erf", [[1.0, 0.0], [-1.0, 0.0]], (7, 5), 3, rng=1, variances=[1.0, 2.0, 0.5]).shape
    (3, 2)
    """
    x, widths, random, variances = _network(activation, inputs, widths, rng, variances)
    result = np.empty((checks.integer("replicas", replicas), len(x)))  # (S, n)
    for block, hidden in _hidden(activation, x, widths, len(result), random, variances):
        readouts = np.sqrt(variances[2] / widths[1]) * random.standard_normal((len(hidden), 1, widths[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            result[block] = (readouts @ hidden)[:, 0]
    return checks.finite("inputs", result)  # (S, n)


def characteristic_functional(
    activation: str, inputs: ArrayLike, sources: ArrayLike, widths: tuple[int, int], samples: int, rng: Rng, *,
    variances: ArrayLike = (1.0, 1.0, 1.0),
) -> Estimate:  # fmt: skip
    """Characteristic functional  ⟨exp(i Σ_μ t_μ f(x_μ))⟩ = ⟨exp[-(σ_2²/2N_1) Σ_i (Σ_μ t_μ φ(h_i(x_μ)))²]⟩,  sampled.

    The readouts are averaged exactly; some slides drop the ½.  At N_0, N_1 → ∞ it is exp(-½ tᵀKt) with the kernel of
    three layers.

    Parameters
    ----------
    activation : str
        φ of both layers, "erf" or "relu".
    inputs, sources : array_like (n, d), (n,)
        x_μ and t_μ.
    widths : pair of int
        (N_0, N_1).
    samples : int
        Networks drawn, >= 2.
    rng : int, SeedSequence or Generator
    variances : array_like (3,)
        σ_0², σ_1², σ_2² > 0.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> sampled = characteristic_functional("relu", [[1.0]], [1.0], (1, 1), 100_000, rng=1)  # 3 nets in 4 are silent
    >>> 0.75 < sampled.mean < 1 and sampled.error < 0.005
    True
    """
    x, widths, random, variances = _network(activation, inputs, widths, rng, variances)
    t = checks.array("sources", sources, shape=x.shape[:1])  # (n,)
    values = np.empty(checks.integer("samples", samples, at_least=2))  # (S,)
    for block, hidden in _hidden(activation, x, widths, len(values), random, variances):
        with np.errstate(over="ignore", invalid="ignore"):
            fields = checks.finite("inputs", hidden @ t)  # (size, N_1)
            values[block] = np.exp(-variances[2] / (2 * widths[1]) * (fields**2).sum(axis=1))
    return Estimate.of(values)


def adapt(
    activation: str, inputs: ArrayLike, targets: ArrayLike, ridge: float, width: float, *,
    variances: ArrayLike = (1.0, 1.0, 1.0), **ways: object,
) -> kernel_adaptation.Adaptation:  # fmt: skip
    """Kernel of the second layer adapted to the data:  [K_h]⁻¹ = [K⁰]⁻¹ - (σ_2²/N_1) ∂_{K_h}[tᵀQ(K_h)t].

    t = (σ_2² Q(K_h) + T)⁻¹ y,  Q = ⟨φ(h)φ(h)ᵀ⟩ over h ~ N(0, K_h) at the examples; the first layer is infinitely wide.

    Parameters
    ----------
    activation : str
        φ of both layers, "erf" or "relu".
    inputs, targets : array_like (P, d), (P,)
        X, y, one example or more.
    ridge, width : float
        T, N_1 > 0.
    variances : array_like (3,)
        σ_0², σ_1², σ_2² > 0.
    **ways
        `start` (P, P), first K_h, by default K⁰; `fluctuations`, `damping`, `tolerance` and `iterations` of
        `kernel_adaptation.adapt`: whether ½ log det A counts, first step, wanted residual, steps at most.

    Returns
    -------
    kernel_adaptation.Adaptation
        With the covariance K_h (P, P) and the kernel σ_2² Q(K_h).

    Examples
    --------
    >>> (3 * adapt("erf", np.eye(2), [2.0, 0.0], 0.1, 10).covariance).round(2).tolist()  # K⁰ is 1/3 without overlap
    [[1.41, 0.0], [0.0, 1.0]]
    """
    x = points("inputs", inputs)  # (P, d)
    variances = checks.entries("variances", variances, above=0, shape=(3,))  # (3,)
    prior = Prior(activation, weight_variance=variances[0], readout_variance=variances[1]).kernel(x)  # (P, P)
    fields = TwoLayer(activation, np.eye(len(x)), targets, ridge, readout_variance=variances[2])
    return kernel_adaptation.adapt(fields, width, weight_covariance=prior, **ways)

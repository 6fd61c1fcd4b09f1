"""Random networks of three layers, and how the data adapt the kernel of the second one.

The network is  f(x) = Σ_i a_i φ(h_i(x)),  h_i(x) = Σ_j v_ij φ(w_j·x)  with N_1 units h_i on N_0 units of the first
layer and the priors  w_j ~ N(0, σ_0²/d), v_ij ~ N(0, σ_1²/N_0), a_i ~ N(0, σ_2²/N_1).  Given the first layer the h_i
are independent Gaussian fields, at N_0 → ∞ of covariance K⁰ = σ_1²⟨φφ⟩, the kernel of two layers.  At the examples they
play the part of w_c in two layers, with unit vectors for inputs.  Source: ringel2025talk, on networks of three layers.
"""

import numpy as np

from lib.common import checks
from lib.common.estimate import Estimate
from lib.fields._data import points
from lib.fields.networks import kernel_adaptation, nngp
from lib.fields.networks._units import KERNELS, units

BLOCK = 2**20  # values of neurons in memory at a time


class _Networks:
    """Checked random networks of three layers at checked inputs, drawn a block at a time."""

    def __init__(self, activation, inputs, widths, count, rng, variances):
        self.phi, _ = units(activation, KERNELS)
        self.x = points("inputs", inputs)  # (n, d)
        try:
            first, second = widths
        except (TypeError, ValueError):
            checks.fail("widths", "hold two numbers of units, N_0 and N_1", widths)
        self.widths = checks.integer("widths", first), checks.integer("widths", second)
        self.count, self.random = count, checks.generator("rng", rng)
        self.variances = checks.entries("variances", variances, above=0, shape=(3,))  # (3,)

    def hidden(self):
        """A slice of the networks with their φ(h) at the inputs, (networks, N_1, n), block after block."""
        (first, second), (rows, dimension) = self.widths, self.x.shape
        many = max(1, BLOCK // (max(self.widths) * max(rows, dimension, first)))
        for start in range(0, self.count, many):
            size = min(many, self.count - start)
            weights = np.sqrt(self.variances[0] / dimension) * self.random.standard_normal((size, first, dimension))
            with np.errstate(over="ignore", invalid="ignore"):
                inner = self.phi(weights @ self.x.T)  # (size, N_0, n)
                between = np.sqrt(self.variances[1] / first) * self.random.standard_normal((size, second, first))
                yield slice(start, start + size), self.phi(between @ inner)  # (size, N_1, n)


def outputs(activation, inputs, widths, networks, rng, *, variances=(1.0, 1.0, 1.0)):
    """Outputs f(x) of random networks of three layers at the given inputs, each network at all of them.

    `activation`: φ of both layers, "erf" or "relu"; `inputs` (n, d): x; `widths`: (N_0, N_1), `networks`: S; `rng`:
    int, SeedSequence or Generator; `variances` (3,): σ_0², σ_1², σ_2².  Returns f (S, n).

    >>> outputs("erf", [[1.0, 0.0], [-1.0, 0.0]], (7, 5), 3, rng=1).shape
    (3, 2)
    """
    drawn = _Networks(activation, inputs, widths, checks.integer("networks", networks), rng, variances)
    width, result = drawn.widths[1], np.empty((networks, len(drawn.x)))  # (S, n)
    for block, hidden in drawn.hidden():
        readouts = np.sqrt(drawn.variances[2] / width) * drawn.random.standard_normal((len(hidden), 1, width))
        with np.errstate(over="ignore", invalid="ignore"):
            result[block] = (readouts @ hidden)[:, 0]
    return checks.finite("inputs", result)  # (S, n)


def characteristic_functional(activation, inputs, sources, widths, samples, rng, *, variances=(1.0, 1.0, 1.0)):
    """Characteristic functional  ⟨exp(i Σ_μ t_μ f(x_μ))⟩ = ⟨exp[-(σ_2²/2N_1) Σ_i (Σ_μ t_μ φ(h_i(x_μ)))²]⟩,  sampled.

    The readouts are averaged exactly; some slides drop the ½.  At N_0, N_1 → ∞ it is exp(-½ tᵀKt) with the kernel of
    three layers.  `activation`, `inputs`, `widths`, `rng`, `variances`: as in :func:`outputs`; `sources` (n,): t_μ;
    `samples`: networks drawn, >= 2.  Returns Estimate, mean and standard error.

    >>> found = characteristic_functional("relu", [[1.0]], [1.0], (1, 1), 100_000, rng=1)  # 3 nets in 4 are silent
    >>> bool(0.75 < found.mean < 1 and found.error < 0.005)
    True
    """
    samples = checks.integer("samples", samples, at_least=2)
    drawn = _Networks(activation, inputs, widths, samples, rng, variances)
    t = checks.array("sources", sources, shape=drawn.x.shape[:1])  # (n,)
    values = np.empty(samples)  # (S,)
    for block, hidden in drawn.hidden():
        with np.errstate(over="ignore", invalid="ignore"):
            fields = checks.finite("inputs", hidden @ t)  # (size, N_1)
            values[block] = np.exp(-drawn.variances[2] / (2 * drawn.widths[1]) * (fields**2).sum(axis=1))
    return Estimate(*(float(part) for part in Estimate.of(values)))


def adapt(
    activation, inputs, targets, ridge, width, *, variances=(1.0, 1.0, 1.0),
    fluctuations=False, start=None, damping=0.3, tolerance=1e-9, iterations=2000,
):  # fmt: skip
    """Kernel of the second layer adapted to the data:  [K_h]⁻¹ = [K⁰]⁻¹ - (σ_2²/N_1) ∂_{K_h}[tᵀQ(K_h)t].

    t = (σ_2² Q(K_h) + T)⁻¹ y,  Q = ⟨φ(h)φ(h)ᵀ⟩ over h ~ N(0, K_h) at the examples; the first layer is infinitely wide.
    `activation`, `variances`: as in :func:`outputs`; `inputs` (P, d), `targets` (P,): X, y, one example or more;
    `ridge`, `width`: T, N_1 > 0; `start` (P, P): first K_h, positive definite where K⁰ is, by default K⁰;
    `fluctuations`, `damping`, `tolerance`, `iterations`: as in :func:`lib.fields.networks.kernel_adaptation.adapt`.
    Returns kernel_adaptation.Adaptation with the covariance K_h (P, P) and the kernel σ_2² Q(K_h).

    >>> (3 * adapt("erf", np.eye(2), [2.0, 0.0], 0.1, 10).covariance).round(2).tolist()  # K⁰ is 1/3 without overlap
    [[1.41, 0.0], [0.0, 1.0]]
    """
    x = points("inputs", inputs)  # (P, d)
    variances = checks.entries("variances", variances, above=0, shape=(3,))  # (3,)
    prior = nngp.kernel(activation, x, weight_variance=variances[0], readout_variance=variances[1])  # (P, P)
    ways = {"fluctuations": fluctuations, "start": start, "damping": damping, "tolerance": tolerance}
    ways |= {"weight_covariance": prior, "readout_variance": variances[2], "iterations": iterations}
    return kernel_adaptation.adapt(activation, np.eye(len(x)), targets, ridge, width, **ways)

"""Langevin training of a network of two layers: noisy descent whose stationary density is a Bayesian posterior.

    θ' = -γ_θ θ - ∂_θ L + ξ,   ⟨ξ(s) ξ(s')⟩ = 2T δ(s - s'),   L = ½ Σ_μ (f(x_μ) - y_μ)²,   f(x) = Σ_c a_c φ(w_c·x),

leads to  p(θ) ∝ e^{-U},  U = γ_θ|θ|²/2T + L/T.  So the prior has the variance T/γ_θ, and stays what it is at every T
only with  γ_w = Td/σ_w², γ_a = TN/s_a².  What a computer runs has a finite step h and no test of acceptance, θ ← θ - hD
∂U + √(2hD) ξ,  D_w = σ_w²/d, D_a = s_a²/N,  with an error of order h that :func:`richardson` reduces to order h²;
:mod:`lib.common.hmc` and :mod:`lib.fields.networks.network_posterior` have none.  `weight_variance` σ_w², of √d w, and
`readout_variance` s_a², of √N a, are > 0.  Source: ringel2025talk, on Langevin training: there one
decay for all, and a noise "with variance T", which is this one if T is the D of ⟨x²⟩ = 2Dt.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields._data import examples, per_sample, positive
from lib.fields.networks._readouts import stack
from lib.fields.networks._units import units


@dataclass(frozen=True, eq=False)
class Training:
    """C networks along their training, n records each."""

    outputs: np.ndarray  # (n, C, M)  f at the points
    loss: np.ndarray  # (n, C)  L = ½ Σ_μ (f(x_μ) - y_μ)²
    parameters: np.ndarray  # (C, N, d+1)  at the end: one row a neuron, its weights w_c and then its readout a_c


def _forward(parameters, phi, x):
    """Pre-activations (C, P, N) and outputs (C, P)."""
    u = x @ parameters[..., :-1].swapaxes(1, 2)  # (C, P, N)
    return u, (phi(u) @ parameters[..., -1:])[..., 0]  # (C, P, N), (C, P)


def _loss(parameters, functions, x, y):
    """L, its gradient."""
    phi, slope = functions
    u, output = _forward(parameters, phi, x)  # (C, P, N), (C, P)
    wrong = (output - y)[..., None]  # (C, P, 1)
    gradient = np.empty_like(parameters)  # (C, N, d+1)
    gradient[..., :-1] = (wrong * slope(u) * parameters[:, None, :, -1]).swapaxes(1, 2) @ x
    gradient[..., -1:] = phi(u).swapaxes(1, 2) @ wrong
    return (wrong**2).sum(axis=(1, 2)) / 2, gradient


def _variances(weight_variance, readout_variance, width, dimension):
    """Prior variance of the parameters of one neuron, (d+1,)."""
    prior = positive(weight_variance=weight_variance, readout_variance=readout_variance)
    return np.append(np.full(dimension, prior[0] / dimension), prior[1] / width)


def decay_rates(temperature, dimension, width, *, weight_variance=1.0, readout_variance=1.0):
    """Weight decay of each layer that keeps the prior at every temperature:  γ_w = Td/σ_w²,  γ_a = TN/s_a².

    `temperature`: T > 0; `dimension`, `width`: d, N >= 1; `weight_variance`, `readout_variance`: σ_w², s_a².  Returns
    γ_w and γ_a, per unit of the time in which the loss alone would give θ' = -∂L.

    >>> decay_rates(0.5, 4, 100)
    (2.0, 50.0)
    """
    (t,) = positive(temperature=temperature)
    sizes = checks.integer("dimension", dimension), checks.integer("width", width)
    prior = positive(weight_variance=weight_variance, readout_variance=readout_variance)
    return checks.finite("temperature", tuple(t * size / variance for size, variance in zip(sizes, prior)))


def potential(parameters, activation, inputs, targets, temperature, *, weight_variance=1.0, readout_variance=1.0):
    """U(θ) = d|W|²/2σ_w² + N|a|²/2s_a² + L/T  of all parameters and its gradient, of several networks.

    `parameters` (C, N, d+1): θ of C networks, one row a neuron, w_c and then a_c; `activation`: φ, "erf", "relu" or
    "linear"; `inputs` (P, d), `targets` (P,): X, y, P = 0 leaves the prior; `temperature`, `weight_variance`,
    `readout_variance`: as in :func:`decay_rates`.  Returns U (C,) and its gradient (C, N, d+1).

    >>> [part.tolist() for part in potential([[[2.0, 3.0]]], "linear", [[1.0]], [5.0], 0.5)]  # f = 6:  2 + 4.5 + 1
    [[7.5], [[[8.0, 7.0]]]]
    """
    functions, (x, y) = units(activation), examples(inputs, targets)  # (P, d), (P,)
    theta = stack("parameters", parameters, x.shape[1] + 1)  # (C, N, d+1)
    (temperature,) = positive(temperature=temperature)
    variances = _variances(weight_variance, readout_variance, theta.shape[1], x.shape[1])  # (d+1,)
    with np.errstate(over="ignore", invalid="ignore"):
        loss, gradient = _loss(theta, functions, x, y)
        value = (theta**2 / variances).sum(axis=(1, 2)) / 2 + loss / temperature  # (C,)
        gradient = theta / variances + gradient / temperature  # (C, N, d+1)
    return checks.finite("parameters", value), checks.finite("parameters", gradient)


def train(
    activation, inputs, targets, temperature, width, networks, steps, rng, *,
    step=0.01, noise=2.0, weight_variance=1.0, readout_variance=1.0, start=None, points=None, record_every=1,
):  # fmt: skip
    """Train networks side by side by unadjusted Langevin steps, preconditioned by the prior.

    In units of its deviations the prior pulls with rate one in both layers.  `activation`, `inputs`, `targets`,
    `weight_variance`, `readout_variance`: as in :func:`potential`; `temperature`, `width`: as in :func:`decay_rates`;
    `networks`, `steps`: C, and the number of steps; `rng`: int, SeedSequence or Generator; `step`: 0 < h < 2, and
    below 2/k for the largest curvature k of U in these units; `noise`: variance of a step's noise per unit time over T,
    > 0, which leads to e^{-2U/noise}; `start` (C, N, d+1): first parameters, by default drawn from the prior; `points`
    (M, d): where the outputs are recorded, by default `inputs`; `record_every`: divides
    `steps`, the start is not recorded.  Returns Training.

    >>> train("erf", [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1, 5, 10, 400, rng=1, record_every=10).outputs.shape
    (40, 10, 2)
    """
    functions, (x, y) = units(activation), examples(inputs, targets)  # (P, d), (P,)
    dimension = x.shape[1]
    (temperature,) = positive(temperature=temperature)
    shape = checks.integer("networks", networks), checks.integer("width", width), dimension + 1
    steps, every = checks.integer("steps", steps), checks.integer("record_every", record_every)
    if steps % every:
        checks.fail("record_every", f"divide the number of steps, {steps}", record_every)
    step = checks.number("step", step, above=0, below=2)
    (noise,) = positive(noise=noise)
    variances = _variances(weight_variance, readout_variance, shape[1], dimension)  # (d+1,)
    random, deviations = checks.generator("rng", rng), np.sqrt(variances)  # (d+1,)
    if start is None:
        start = deviations * random.standard_normal(shape)  # (C, N, d+1)
    theta = checks.array("start", start, shape=shape)  # (C, N, d+1)
    points = x if points is None else checks.array("points", points, shape=(None, dimension))  # (M, d)

    records = steps // every, shape[0]  # (n, C)
    outputs, losses = np.empty((*records, len(points))), np.empty(records)  # (n, C, M), (n, C)
    kick = np.sqrt(noise * step) * deviations  # (d+1,)
    with np.errstate(over="ignore", invalid="ignore"):  # a network that runs away is refused below
        for n in range(1, steps + 1):
            _, gradient = _loss(theta, functions, x, y)
            drift = (1 - step) * theta - step / temperature * variances * gradient  # (C, N, d+1)
            theta = drift + kick * random.standard_normal(shape)  # (C, N, d+1)
            if n % every == 0:
                outputs[n // every - 1] = _forward(theta, functions[0], points)[1]
                losses[n // every - 1] = _loss(theta, functions, x, y)[0]
    if not all(np.isfinite(part).all() for part in (theta, outputs, losses)):
        checks.fail("step", "be smaller: with this one a network runs away", step)
    return Training(outputs, losses, theta)


def harmonic_variance(curvature, step, *, preconditioner=1.0):
    """Stationary variance of the unadjusted step on a harmonic mode, exact:  Var = 1/[k (1 - hDk/2)].

    The density has 1/k.  `curvature` (...): k > 0, of U = k θ²/2; `step`: h, with 0 < hDk < 2 for every mode, beyond
    which the chain runs away; `preconditioner`: D > 0.  Returns Var (...).

    >>> harmonic_variance([1.0, 4.0], 0.25).round(6).tolist()
    [1.142857, 0.5]
    """
    k, (h, d) = checks.entries("curvature", curvature, above=0), positive(step=step, preconditioner=preconditioner)
    with np.errstate(over="ignore"):
        reach = h * d * k  # (...)
        if np.any(reach >= 2):
            limit = 2 / (d * k.max())
            checks.fail("step", f"be below 2/(D k), here {limit:.6g}, where the stiffest mode's chain runs away", step)
        return checks.finite("curvature", 1 / (k * (1 - reach / 2)))[()]


def richardson(at_step, at_half_step, *, error=0.0, half_error=0.0):
    """A mean without the error of order h, from runs at steps h and h/2:  2⟨·⟩_{h/2} - ⟨·⟩_h,  and its standard error.

    `at_step`, `at_half_step` (...): ⟨·⟩_h and ⟨·⟩_{h/2} of independent runs; `error`, `half_error`: their standard
    errors.  Returns the combination, of a bias of order h², and its error √(4 e_{h/2}² + e_h²), (...) each.

    >>> float(richardson(harmonic_variance(1.0, 0.1), harmonic_variance(1.0, 0.05))[0].round(4))
    0.9987
    """
    full = checks.array("at_step", at_step)  # (...)
    half = checks.array("at_half_step", at_half_step, shape=full.shape)  # (...)
    given = {"error": error, "half_error": half_error}
    one, two = (per_sample(name, value, full.shape, at_least=0) for name, value in given.items())  # (...), (...)
    return (2 * half - full)[()], np.hypot(2 * two, one)[()]

"""Langevin training of a network of two layers: noisy descent whose stationary density is a Bayesian posterior.

    θ' = -γ_θ θ - ∂_θ L + ξ,   ⟨ξ(s) ξ(s')⟩ = 2T δ(s - s'),   L = ½ Σ_μ (f(x_μ) - y_μ)²,   f(x) = Σ_c a_c φ(w_c·x),

leads to  p(θ) ∝ e^{-U},  U = γ_θ|θ|²/2T + L/T:  the temperature T is the ridge.  What a computer runs has a finite step
h and no test of acceptance, with an error of order h.  Source: ringel2025talk, on Langevin training: there one decay
for all, and a noise "with variance T", which is this one if T is the D of ⟨x²⟩ = 2Dt.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields._data import per_sample, positive
from lib.fields.networks._readouts import stack
from lib.fields.networks._units import units
from lib.fields.networks.two_layers import TwoLayer, _read


@dataclass(frozen=True, eq=False)
class Training:
    """C networks along their training, n records each.

    Parameters
    ----------
    outputs : ndarray (n, C, M)
        f at the points.
    loss : ndarray (n, C)
        L = ½ Σ_μ (f(x_μ) - y_μ)².
    parameters : ndarray (C, N, d+1)
        At the end: one row a neuron, its weights w_c and then its readout a_c.
    """

    outputs: Array["n C M"]
    loss: Array["n C"]
    parameters: Array["C N p"]


def _forward(parameters, phi, x):
    """Pre-activations (C, P, N) and outputs (C, P)."""
    u = x @ parameters[..., :-1].swapaxes(1, 2)  # (C, P, N)
    return u, (phi(u) @ parameters[..., -1:])[..., 0]


def _loss(network, parameters):
    """L (C,), its gradient (C, N, d+1)."""
    (phi, slope), x = units(network.activation), network.inputs
    u, output = _forward(parameters, phi, x)  # (C, P, N), (C, P)
    wrong = (output - network.targets)[..., None]  # (C, P, 1)
    gradient = np.empty_like(parameters)  # (C, N, d+1)
    gradient[..., :-1] = (wrong * slope(u) * parameters[:, None, :, -1]).swapaxes(1, 2) @ x
    gradient[..., -1:] = phi(u).swapaxes(1, 2) @ wrong
    return (wrong**2).sum(axis=(1, 2)) / 2, gradient


def _variances(network, width):
    """Prior variance of the parameters of one neuron, (d+1,)."""
    dimension = network.inputs.shape[1]
    return np.append(np.full(dimension, network.weight_variance / dimension), network.readout_variance / width)


def decay_rates(
    temperature: float, dimension: int, width: int, *, weight_variance: float = 1.0, readout_variance: float = 1.0
) -> tuple[float, float]:
    """Weight decay of each layer that keeps the prior at every temperature:  γ_w = Td/σ_w²,  γ_a = TN/s_a².

    Parameters
    ----------
    temperature : float
        T > 0.
    dimension, width : int
        d, N >= 1.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.

    Returns
    -------
    weights, readouts : float
        γ_w and γ_a, per unit of the time in which the loss alone would give θ' = -∂L.

    Examples
    --------
    >>> decay_rates(0.5, 4, 100)
    (2.0, 50.0)
    """
    (t,) = positive(temperature=temperature)
    sizes = checks.integer("dimension", dimension), checks.integer("width", width)
    prior = positive(weight_variance=weight_variance, readout_variance=readout_variance)
    return checks.finite("temperature", tuple(t * size / variance for size, variance in zip(sizes, prior)))


def potential(network: TwoLayer, parameters: ArrayLike) -> tuple[Array[" C"], Array["C N p"]]:
    """U(θ) = d|W|²/2σ_w² + N|a|²/2s_a² + L/T  of all parameters and its gradient, of several networks.

    Parameters
    ----------
    network : TwoLayer
        With X, y, T and the prior.
    parameters : array_like (C, N, d+1)
        θ of C networks, one row a neuron, w_c and then a_c.

    Returns
    -------
    value, gradient : ndarray (C,), (C, N, d+1)

    Examples
    --------
    >>> network = TwoLayer("linear", [[1.0]], [5.0], 0.5)
    >>> [part.tolist() for part in potential(network, [[[2.0, 3.0]]])]  # f = 6:  2 + 4.5 + 1
    [[7.5], [[[8.0, 7.0]]]]
    """
    theta = stack("parameters", parameters, _read(network).inputs.shape[1] + 1)  # (C, N, d+1)
    variances = _variances(network, theta.shape[1])  # (d+1,)
    with np.errstate(over="ignore", invalid="ignore"):
        loss, gradient = _loss(network, theta)
        value = (theta**2 / variances).sum(axis=(1, 2)) / 2 + loss / network.ridge  # (C,)
        gradient = theta / variances + gradient / network.ridge  # (C, N, d+1)
    return checks.finite("parameters", value), checks.finite("parameters", gradient)


def train(
    network: TwoLayer, width: int, replicas: int, steps: int, rng: Rng, *, step: float = 0.01, noise: float = 2.0,
    start: ArrayLike | None = None, points: ArrayLike | None = None, record_every: int = 1,
) -> Training:  # fmt: skip
    """Train networks side by side by Langevin steps without acceptance:  θ ← θ - hD ∂U + √(2hD) ξ.

    They are preconditioned by the prior, D_w = σ_w²/d, D_a = s_a²/N: in units of its deviations the prior pulls with
    rate one in both layers.  The error is of order h, which `richardson` reduces to order h².

    Parameters
    ----------
    network : TwoLayer
        With X, y, T and the prior.
    width, replicas, steps : int
        N, C, and the number of steps.
    rng : int, SeedSequence or Generator
    step : float
        0 < h < 2, and below 2/k for the largest curvature k of U in these units.
    noise : float
        Variance of a step's noise per unit time over T, > 0, which leads to e^{-2U/noise}.
    start : array_like (C, N, d+1), optional
        First parameters, by default drawn from the prior.
    points : array_like (M, d), optional
        Where the outputs are recorded, by default at the examples.
    record_every : int
        Divides `steps`; the start is not recorded.

    Returns
    -------
    Training

    Examples
    --------
    >>> network = TwoLayer("erf", [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1)
    >>> train(network, 5, 10, 400, rng=1, record_every=10).outputs.shape
    (40, 10, 2)
    """
    (phi, _), dimension = units(_read(network).activation), network.inputs.shape[1]
    shape = checks.integer("replicas", replicas), checks.integer("width", width), dimension + 1
    steps, every = checks.integer("steps", steps), checks.integer("record_every", record_every)
    checks.fail_if(steps % every, "record_every", f"divide the number of steps, {steps}", record_every)
    step, (noise,) = checks.number("step", step, above=0, below=2), positive(noise=noise)
    variances = _variances(network, shape[1])  # (d+1,)
    random, deviations = checks.generator("rng", rng), np.sqrt(variances)  # (d+1,)
    if start is None:
        start = deviations * random.standard_normal(shape)  # (C, N, d+1)
    theta = checks.array("start", start, shape=shape)  # (C, N, d+1)
    points = network.inputs if points is None else checks.array("points", points, shape=(None, dimension))  # (M, d)
    records = steps // every, shape[0]  # (n, C)
    outputs, losses = np.empty((*records, len(points))), np.empty(records)  # (n, C, M), (n, C)
    kick = np.sqrt(noise * step) * deviations  # (d+1,)
    with np.errstate(over="ignore", invalid="ignore"):  # a network that runs away is refused below
        for n in range(1, steps + 1):
            _, gradient = _loss(network, theta)
            drift = (1 - step) * theta - step / network.ridge * variances * gradient  # (C, N, d+1)
            theta = drift + kick * random.standard_normal(shape)  # (C, N, d+1)
            if n % every == 0:
                outputs[n // every - 1] = _forward(theta, phi, points)[1]
                losses[n // every - 1] = _loss(network, theta)[0]
    if not all(np.isfinite(part).all() for part in (theta, outputs, losses)):
        checks.fail("step", "be smaller: with this one a network runs away", step)
    return Training(outputs, losses, theta)


def harmonic_variance(curvature: ArrayLike, step: float, *, preconditioner: float = 1.0) -> float | Array["..."]:
    """Stationary variance of the step without acceptance on a harmonic mode, exact:  Var = 1/[k (1 - hDk/2)].

    The density has 1/k.

    Parameters
    ----------
    curvature : float or array_like
        k > 0, of U = k θ²/2.
    step : float
        h, with 0 < hDk < 2 for every mode, beyond which the chain runs away.
    preconditioner : float
        D > 0.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> harmonic_variance([1.0, 4.0], 0.25).round(6).tolist()
    [1.142857, 0.5]
    """
    k, (h, d) = checks.entries("curvature", curvature, above=0), positive(step=step, preconditioner=preconditioner)
    with np.errstate(over="ignore"):
        reach = h * d * k  # (...)
        if np.any(reach >= 2):
            limit = 2 / (d * k.max())
            checks.fail("step", f"be below 2/(D k), here {limit:.6g}, where the stiffest mode's chain runs away", step)
        return checks.plain(checks.finite("curvature", 1 / (k * (1 - reach / 2))))


def richardson(
    at_step: ArrayLike, at_half_step: ArrayLike, *,
    error: ArrayLike = 0.0, half_error: ArrayLike = 0.0,
) -> Estimate:  # fmt: skip
    """A mean without the error of order h, from runs at steps h and h/2:  2⟨·⟩_{h/2} - ⟨·⟩_h,  and its standard error.

    Parameters
    ----------
    at_step, at_half_step : float or array_like
        ⟨·⟩_h and ⟨·⟩_{h/2} of independent runs.
    error, half_error : float or array_like
        Their standard errors.

    Returns
    -------
    Estimate
        Of a bias of order h², with the error √(4 e_{h/2}² + e_h²).

    Examples
    --------
    >>> richardson(3.0, 2.0, error=3.0, half_error=2.0)
    Estimate(mean=1.0, error=5.0)
    """
    full = checks.array("at_step", at_step)  # (...)
    half = checks.array("at_half_step", at_half_step, shape=full.shape)  # (...)
    given = {"error": error, "half_error": half_error}
    one, two = (per_sample(name, value, full.shape, at_least=0) for name, value in given.items())  # (...), (...)
    return Estimate(checks.plain(2 * half - full), checks.plain(np.hypot(2 * two, one)))

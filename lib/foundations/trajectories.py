"""Sample paths of the linear Langevin equation and what is measured from them, with standard errors.

The simulator of :mod:`lib.foundations.langevin`.  Estimators take any recorded `paths` (R, chains, d): R records of two
or more independent chains.  Numbered equations: han2021.
"""

import math

import numpy as np
from scipy.linalg import block_diag

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.linalg import psd_root
from lib.foundations import langevin, langevin_formulas


def _chain(friction, diffusion, step, method):
    """Matrix A and noise covariance N of the chain  x' = A x + ζ  that the method runs."""
    euler = np.eye(len(friction)) - step * friction  # (d, d)
    if method == "euler":
        return euler, 2 * step * diffusion
    if method == "exact":
        return langevin_formulas.propagate(friction, diffusion, step)
    # the noises ∫e^{-Γ(h-u)} f du and ∫f du are drawn from their joint law: the exact step of (x, b) with ḃ = f
    still = block_diag(friction, np.zeros_like(friction))  # (2d, 2d)
    pair, noise = langevin_formulas.propagate(still, np.tile(diffusion, (2, 2)), step)  # (2d, 2d) each
    return block_diag(pair[: len(friction), : len(friction)], euler), noise


def simulate(friction, diffusion, *, step, steps, chains, rng, start="stationary", method="exact", record_every=1):
    """Independent paths of the Langevin equation  ẋ = -Γx + f  on a grid of times.

    "exact" draws  x(t+h) = e^{-Γh} x(t) + ζ  (eqs. (1.1), (1.3)), "euler" is  x' = (1 - hΓ)x + ζ,  <ζζᵀ> = 2Dh,  "both"
    drives the two with the same force.  `friction`, `diffusion`: Γ, D; `step`: h > 0; `steps`, `chains`: length and
    number; `rng`: int, SeedSequence or Generator; `start`: "stationary" (of the chain that is run, of the exact one
    for "both") or x, (d,) or (chains, d); `method`: as above; `record_every`: of the steps, must divide them.  Returns
    (R, chains, d), R = steps / record_every + 1, the start first; "both": (2, R, chains, d).

    >>> simulate([[1.0]], [[1.0]], step=0.1, steps=20, chains=3, rng=1, record_every=10).shape
    (3, 3, 1)
    """
    friction, diffusion = langevin.checked_system(friction, diffusion)
    step = checks.number("step", step, above=0)
    steps, chains = checks.integer("steps", steps), checks.integer("chains", chains)
    if steps % (record_every := checks.integer("record_every", record_every)):
        checks.fail("record_every", f"divide steps = {steps}", record_every)
    method = checks.one_of("method", method, ("exact", "euler", "both"))
    rng = checks.generator("rng", rng)
    size = len(friction)
    if isinstance(start, str) and start == "stationary":
        if method == "euler":
            law = langevin.euler_covariance(friction, diffusion, step)  # (d, d)
        else:
            law = langevin_formulas.lyapunov(friction, diffusion)  # (d, d)
        state = rng.standard_normal((chains, size)) @ psd_root(law).T  # (chains, d)
    else:
        state = checks.array("start", start)
        if state.shape not in ((size,), (chains, size)):
            checks.fail("start", f"have shape ({size},) or ({chains}, {size})", f"shape {state.shape}")
        state = np.broadcast_to(state, (chains, size))  # (chains, d)
    advance, noise = _chain(friction, diffusion, step, method)
    root = psd_root(noise)  # (d, d), or (2d, 2d) for "both"
    state = np.tile(state, len(root) // size)  # (chains, d), or (chains, 2d)
    paths = np.empty((steps // record_every + 1, *state.shape))  # (R, chains, d), or (R, chains, 2d)
    paths[0] = state
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below
        for n in range(1, steps + 1):
            state = state @ advance.T + rng.standard_normal(state.shape) @ root.T
            if n % record_every == 0:
                paths[n // record_every] = state
    if not np.isfinite(state).all():  # a chain that has left the floating-point range never returns to it
        checks.fail("step", f"keep the Euler chain inside the floating-point range for {steps} steps", step)
    return np.stack([paths[..., :size], paths[..., size:]]) if method == "both" else paths


def _paths(paths, records):
    paths = checks.array("paths", paths, ndim=3)  # (R, chains, d)
    if paths.shape[0] < records or paths.shape[1] < 2 or paths.shape[2] < 1:
        checks.fail("paths", f"hold at least {records} records of at least 2 chains", f"shape {paths.shape}")
    return paths


def _second_moments(late, early):
    """Average of  late earlyᵀ  over the records, one matrix a chain."""
    return late.transpose(1, 2, 0) @ early.transpose(1, 0, 2) / len(late)  # (chains, d, d)


def estimate_covariance(paths):
    """Measured <x xᵀ> of `paths` (R, chains, d), no mean subtracted, and its standard error over chains.  Returns both.

    >>> [part.item() for part in estimate_covariance([[[1.0], [3.0]]])]
    [5.0, 4.0]
    """
    paths = _paths(paths, 1)
    return Estimate.of(_second_moments(paths, paths))


def _areas(paths, interval):
    lagged = _second_moments(paths[:-1], paths[1:])  # (chains, d, d)
    return (lagged - lagged.transpose(0, 2, 1)) / (2 * interval)  # (chains, d, d)


def estimate_circulation(paths, interval):
    """Measured circulation  (<x_n x_{n+1}ᵀ> - <x_{n+1} x_nᵀ>) / 2s, the area swept per unit time, with its error.

    Of the exact process it is Q + O(s), eq. (1.6), of successive states of the Euler chain exactly (ΓΣ - ΣΓᵀ)/2.
    `paths` (R, chains, d): R >= 2; `interval`: s > 0, time between records.  Returns mean, standard error (d, d).

    >>> quarter_turns = np.tile([[[1.0, 0.0]], [[0.0, 1.0]], [[-1.0, 0.0]]], (1, 2, 1))  # (3, 2, 2): area 1/2 each
    >>> estimate_circulation(quarter_turns, 1.0)[0].tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    return Estimate.of(_areas(_paths(paths, 2), checks.number("interval", interval, above=0)))


def estimate_entropy_production(paths, interval, diffusion):
    """Measured entropy production:  Tr[Σ⁻¹ Qᵀ D⁻¹ Q]  with measured Σ and Q and the known D, jackknifed over chains.

    The bias of a square of noisy numbers is removed to first order: the estimate may be slightly negative where Ṡ = 0,
    and its error, the jackknife's and √2 × bias, is twice too large there.  `paths` (R, chains, d): R >= 2; `interval`:
    s > 0, time between records; `diffusion` (d, d): D, positive definite.  Returns estimate, standard error.

    >>> turning = simulate([[1.0, -2.0], [2.0, 1.0]], np.eye(2), step=0.01, steps=200, chains=100, rng=1)
    >>> rate, error = estimate_entropy_production(turning, 0.01, np.eye(2))
    >>> abs(rate - 8) < 4 * error
    True
    """
    paths, interval = _paths(paths, 2), checks.number("interval", interval, above=0)
    diffusion = checks.symmetric("diffusion", diffusion, size=paths.shape[2], definite="strict")
    chains = paths.shape[1]

    def plug_in(moments):
        try:
            return langevin_formulas.dissipation(*moments, diffusion)
        except np.linalg.LinAlgError:
            checks.fail("paths", "span all directions: give more chains or records", f"shape {paths.shape}")

    moments = np.stack([_areas(paths, interval), _second_moments(paths, paths)])  # (2, chains, d, d)
    total = moments.sum(axis=1, keepdims=True)  # (2, 1, d, d)
    left_out = plug_in((total - moments) / (chains - 1))  # (chains,)
    plain = plug_in(total[:, 0] / chains)
    bias = (chains - 1) * (left_out.mean() - plain)
    return float(plain - bias), math.hypot(math.sqrt(chains - 1) * left_out.std(), math.sqrt(2) * bias)

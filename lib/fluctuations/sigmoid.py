"""One sigmoid unit with squared loss under minibatch descent: its minimum, and its fluctuations about it for small ε.

z = σ(w·x),  ℓ = (y - z)²/2.  About a minimum w* the loss is not quadratic, so the second moment of V = w - w* obeys no
closed equation; the leading order in ε is the book's (han2021 finds the unit beyond analysis).  :func:`simulate` runs
V' = V - ε g_B(V), eq. (3.2), and for each chain a twin with the quadratic loss,  U' = U - (ε/m) Σ_b (g_b + h_b x_b·U)
x_b,  under the same minibatches: its law is known, so the difference shows the nonlinearity with little noise.
"""

import math
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from scipy.special import expit

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import psd_root
from lib.common.random import children
from lib.fluctuations.minibatches import checked_drawing, checked_run, fill
from lib.fluctuations.regression import LARGEST, RANGE, batch_variance
from lib.fluctuations.regression_formulas import weighted
from lib.foundations.langevin import LangevinSystem

EDGE = 1e-9  # closer to its threshold than this, rounding decides whether the twin has a covariance
FLAT = 1e-6  # curvature, for whitened inputs, below which a minimum counts as absent; a steep sigmoid has up to 1/16
SETTLE = 5  # relaxation times of the slowest mode in the default burn-in
LONGEST = 10**9  # steps that a default burn-in may take


@dataclass(frozen=True, eq=False)
class Unit:
    """A sigmoid unit at a minimum of its loss: N samples, d inputs, and the derivatives of ℓ by u = w·x there."""

    inputs: np.ndarray  # (N, d)
    targets: np.ndarray  # (N,)
    weights: np.ndarray  # (d,)  the minimum w*
    slope: np.ndarray  # (N,)  g = ℓ'(w*·x)
    curvature: np.ndarray  # (N,)  h = ℓ''(w*·x); may be negative for single samples
    skewness: np.ndarray  # (N,)  k = ℓ'''(w*·x)

    @property
    def hessian(self):
        """H = <h x xᵀ>, array (d, d), positive definite."""
        return weighted(self.inputs, self.curvature)


def loss_derivatives(field, target):
    """First three derivatives of  ℓ = (y - σ(u))²/2  by the field u, at `field`, `target` (N,) u, y.  Returns (3, N).

    >>> loss_derivatives([0.0], [1.0]).ravel().tolist()
    [-0.125, 0.0625, 0.0625]
    """
    field = checks.array("field", field, ndim=1)  # (N,)
    target = checks.array("target", target, shape=field.shape)  # (N,)
    z = expit(field)  # (N,)
    first = z * expit(-field)  # (N,): the product keeps the digits that 1 - z would lose
    second, third = first * (1 - 2 * z), first * (1 - 6 * first)  # (N,), (N,)
    error = np.where(target > 0.5, (1 - target) - expit(-field), z - target)  # (N,): at both ends of z
    return np.stack([error * first, first**2 + error * second, 3 * first * second + error * third])  # (3, N)


def minimum(inputs, targets):
    """A minimum w* of  f = <(y - σ(w·x))²>/2, found from w = 0 with whitened inputs, and the derivatives of ℓ there.

    There may be others, and none where the classes are separable.  `inputs` (N, d): N > d, linearly independent
    columns; `targets` (N,): y, from 0 to 1.  Returns a Unit.

    >>> minimum(4 * [[1.0]], [0, 1, 1, 1]).weights.round(4)  # σ(w*) = 3/4: log 3
    array([1.0986])
    """
    inputs = checks.array("inputs", inputs, ndim=2)  # (N, d)
    samples, size = inputs.shape
    targets = checks.entries("targets", targets, at_least=0, at_most=1, shape=(samples,))  # (N,)
    if not samples > size > 0:
        checks.fail("inputs", "hold more samples than inputs, and at least one input", f"shape {inputs.shape}")
    if not 1 / LARGEST < np.abs(inputs).max() < LARGEST:
        checks.fail("inputs", f"have a largest entry from {1 / LARGEST:g} to {LARGEST:g}", f"{np.abs(inputs).max():g}")
    scores, scale, basis = np.linalg.svd(inputs, full_matrices=False)  # (N, d), (d,), (d, d)
    found = f"singular values from {scale[0]:.3g} to {scale[-1]:.3g}"
    checks.fail_if(scale[-1] ** 2 <= RANGE * scale[0] ** 2, "inputs", "have linearly independent columns", found)
    white = scores * np.sqrt(samples)  # (N, d): <x xᵀ> = 1

    def loss(v):
        return np.mean((targets - expit(white @ v)) ** 2) / 2

    def gradient(v):
        return white.T @ loss_derivatives(white @ v, targets)[0] / samples  # (d,)

    def hessian(v):
        return weighted(white, loss_derivatives(white @ v, targets)[1])  # (d, d)

    options = {"method": "trust-exact", "options": {"gtol": 1e-8}}
    v = minimize(loss, np.zeros(size), jac=gradient, hess=hessian, **options).x  # (d,)
    if np.linalg.eigvalsh(hessian(v))[0] > FLAT:
        for _ in range(3):  # Newton steps: from 1e-8, one would do
            v = v - np.linalg.solve(hessian(v), gradient(v))  # (d,)
    lowest = np.linalg.eigvalsh(hessian(v))[0]
    if not (lowest > FLAT and np.abs(gradient(v)).max() < 1e-12):
        wanted = "leave a minimum with positive curvature at finite weights (separable classes leave none)"
        checks.fail("targets", wanted, f"lowest curvature {lowest:.2g} where the search ended")
    weights = basis.T @ (v * np.sqrt(samples) / scale)  # (d,)
    return Unit(inputs, targets, weights, *loss_derivatives(inputs @ weights, targets))


def checked_unit(unit):
    """Return `unit`, if it is a Unit.

    >>> checked_unit(minimum([[1.0], [1.0]], [0.0, 1.0])).weights.round(12).tolist()
    [0.0]
    """
    return checks.instance("unit", unit, Unit, "as sigmoid.minimum returns it")


def noise_moment(unit, batch, *, replacement=False):
    """Gradient noise of one step at the minimum:  D = (c/N) Σ_α g_α² x_α x_αᵀ,  as eq. (3.4) at q = 0.

    `unit`: Unit; `batch`, `replacement`: as in ``regression.batch_variance``.  Returns (d, d), symmetric.

    >>> round(float(noise_moment(minimum(4 * [[1.0]], [0, 1, 1, 1]), 1)[0, 0]) * 16**3, 9)  # Var(y) z'² = (3/16)³
    27.0
    """
    variance = batch_variance(len(checked_unit(unit).inputs), batch, replacement)
    return variance * weighted(unit.inputs, unit.slope**2)


def leading_order_covariance(unit, learning_rate, batch, *, replacement=False):
    """Stationary covariance about the minimum to leading order in ε:  HG + GH = ε D,  as eq. (2.10) with 2D = ε D(0).

    `learning_rate`: ε > 0; `unit`, `batch`, `replacement`: as in :func:`noise_moment`.  Returns G (d, d), symmetric.

    >>> round(float(leading_order_covariance(minimum(4 * [[1.0]], [0, 1, 1, 1]), 0.1, 1)[0, 0]), 10)  # ε D / 2H
    0.009375
    """
    noise = noise_moment(unit, batch, replacement=replacement)  # (d, d)
    rate = checks.number("learning_rate", learning_rate, above=0)
    return LangevinSystem(unit.hessian, rate / 2 * noise).stationary_covariance


def quadratic_covariance(unit, learning_rate, batch, *, replacement=False):
    """Stationary covariance of the quadratic twin, exact in ε:  HC + CH = ε E[SCS] + ε D,  S = <h x xᵀ>_B.

    Dense: for d up to about 30.  `learning_rate`: ε > 0, small enough for a stationary C; `unit`, `batch`,
    `replacement`: as in :func:`noise_moment`.  Returns C = E[UᵀU] (d, d).

    >>> quadratic_covariance(minimum(4 * [[1.0]], [0, 1, 1, 1]), 1.0, 1).round(4)  # 1.04 times the leading order
    array([[0.0978]])
    """
    noise = noise_moment(unit, batch, replacement=replacement)  # (d, d)
    rate, one = checks.number("learning_rate", learning_rate, above=0), np.eye(len(noise))  # (d, d)
    variance, hessian = batch_variance(len(unit.inputs), batch, replacement), unit.hessian  # (d, d)
    products = np.einsum("ai,aj->aij", unit.inputs, unit.inputs).reshape(-1, noise.size)  # (N, d²)
    sandwich = (1 - variance) * np.kron(hessian, hessian) + variance * weighted(products, unit.curvature**2)  # (d², d²)
    balance = np.kron(hessian, one) + np.kron(one, hessian) - rate * sandwich  # (d², d²), symmetric
    if not np.linalg.eigvalsh(balance)[0] > EDGE * np.linalg.eigvalsh(hessian)[0]:
        checks.fail("learning_rate", "be smaller: the covariance of the quadratic twin diverges", learning_rate)
    solution = np.linalg.solve(balance, rate * noise.ravel()).reshape(noise.shape)  # (d, d)
    return (solution + solution.T) / 2


def mean_shift(unit, covariance):
    """Shift of the mean weights of a `unit` at small `covariance` G (d, d):  E[V] = -½ H⁻¹ <k (xᵀGx) x>.  Returns (d,).

    >>> round(float(mean_shift(minimum(4 * [[1.0]], [0, 1, 1, 1]), [[0.01]])[0]), 10)  # -3 z'z'' G / 2H, z'' = -z'/2
    0.0075
    """
    matrix = checks.symmetric("covariance", covariance, size=len(checked_unit(unit).weights))  # (d, d)
    forms = np.einsum("ai,ij,aj->a", unit.inputs, matrix, unit.inputs)  # (N,)
    return -np.linalg.solve(unit.hessian, unit.inputs.T @ (unit.skewness * forms)) / (2 * len(forms))  # (d,)


@dataclass(frozen=True, eq=False)
class Averages:
    """Time averages over blocks of independent chains; the first axis counts the blocks."""

    mean: np.ndarray  # (blocks, d)  E[V], with V = w - w*
    twin_mean: np.ndarray  # (blocks, d)  E[U] of the twin, zero up to sampling noise
    second_moment: np.ndarray  # (blocks, d, d)  E[V Vᵀ]
    twin_second_moment: np.ndarray  # (blocks, d, d)  E[U Uᵀ], see quadratic_covariance
    pull: np.ndarray  # (blocks,)  E[V·∇f], with the full gradient ∇f(V)
    force_square: np.ndarray  # (blocks,)  E|g_B|²


@loops
def _slope(field, target):
    tail = math.exp(-abs(field)) / (1 + math.exp(-abs(field)))  # z or 1 - z, whichever is small
    z, rest = (1 - tail, tail) if field > 0 else (tail, 1 - tail)
    error = (1 - target) - rest if target > 0.5 else z - target
    return error * z * rest


@loops
def _descend(chains, twins, samples, rate, batch, steps, record_every, replacement, random, sums, room):
    """Run the chains of a block and their twins in place, and add to the sums."""
    inputs, targets, fields, slopes, curvatures = samples
    mean, twin_mean, second, twin_second, scalars = sums
    order, chosen, force, twin_force = room
    size = inputs.shape[1]
    for c in range(len(chains)):
        v, u = chains[c], twins[c]
        for step in range(steps):
            if step % record_every == 0:
                for i in range(size):
                    mean[i] += v[i]
                    twin_mean[i] += u[i]
                    for k in range(size):
                        second[i, k] += v[i] * v[k]
                        twin_second[i, k] += u[i] * u[k]
                pull = 0.0
                for a in range(len(inputs)):
                    shift = 0.0
                    for k in range(size):
                        shift += inputs[a, k] * v[k]
                    pull += _slope(fields[a] + shift, targets[a]) * shift
                scalars[0] += pull / len(inputs)
            fill(order, chosen, step, replacement, False, random)
            for k in range(size):
                force[k] = twin_force[k] = 0.0
            for b in range(batch):
                a, shift, twin_shift = chosen[b], 0.0, 0.0
                for k in range(size):
                    shift += inputs[a, k] * v[k]
                    twin_shift += inputs[a, k] * u[k]
                push = _slope(fields[a] + shift, targets[a]) / batch
                twin_push = (slopes[a] + curvatures[a] * twin_shift) / batch
                for k in range(size):
                    force[k] += push * inputs[a, k]
                    twin_force[k] += twin_push * inputs[a, k]
            for k in range(size):
                scalars[1] += force[k] * force[k]
                v[k] -= rate * force[k]
                u[k] -= rate * twin_force[k]


def simulate(
    unit, learning_rate, batch, *, steps, chains, rng,
    burn_in=None, replacement=False, record_every=None, blocks=None, workers=1,
):  # fmt: skip
    """Independent chains of minibatch descent,  V' = V - ε g_B(V),  and their time averages in the stationary state.

    Chains start from the Gaussian of :func:`leading_order_covariance`, moved by :func:`mean_shift`.  `unit`: Unit;
    `learning_rate`: ε > 0, the theory needs ε λ_max(H) << 1; `batch`, `replacement`: as in
    ``regression.batch_variance``; `steps`, `chains`: length and number; `rng`: int or SeedSequence, block b draws from
    its b-th child, whatever the `workers`; `burn_in`: steps unseen, default 5/(ε λ_min(H)); `record_every`: of the
    steps enters the averages (|g_B|² every one), must divide them, default 50 or the next divisor below; `blocks`: of
    chains, averaged one by one, must divide them, default 10 or the next divisor below.  Returns Averages.

    >>> unit = minimum(4 * [[1.0]], [0, 1, 1, 1])
    >>> run = simulate(unit, 0.1, 1, steps=5000, chains=10, rng=1)
    >>> bool(0.8 < run.second_moment.mean() / leading_order_covariance(unit, 0.1, 1)[0, 0] < 1.3)
    True
    """
    rate, batch = checks.number("learning_rate", learning_rate, above=0), checks.integer("batch", batch)
    replacement, _ = checked_drawing(len(checked_unit(unit).inputs), batch, replacement)
    steps, chains, blocks, record_every = checked_run(steps, chains, blocks, record_every, seldom=50)
    workers, streams = checks.integer("workers", workers), children(rng, blocks + 1)
    slowest = rate * float(np.linalg.eigvalsh(unit.hessian)[0])
    wanted = f"be large enough to relax within {LONGEST:g} steps, or come with a burn_in"
    checks.fail_if(burn_in is None and not slowest > SETTLE / LONGEST, "learning_rate", wanted, learning_rate)
    burn_in = math.ceil(SETTLE / slowest) if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
    spread = leading_order_covariance(unit, rate, batch, replacement=replacement)  # (d, d)
    shape = (blocks, chains // blocks, size := len(unit.weights))
    rng = checks.generator("rng", streams[-1])
    twins = rng.standard_normal(shape) @ psd_root(spread).T  # (blocks, chains / blocks, d)
    state = twins + mean_shift(unit, spread)  # (blocks, chains / blocks, d)
    inputs = np.ascontiguousarray(unit.inputs)  # (N, d)
    samples = (inputs, unit.targets, inputs @ unit.weights, unit.slope, unit.curvature)
    shapes = ((size,), (size,), (size, size), (size, size), (2,))
    sums = [np.zeros((blocks, *shape)) for shape in shapes]

    def run(b):
        random = checks.generator("rng", streams[b])
        for length, parts in ((burn_in, [np.zeros(shape) for shape in shapes]), (steps, [each[b] for each in sums])):
            room = np.arange(len(inputs)), np.empty(batch, dtype=np.int64), *np.empty((2, size))
            drawing = batch, length, record_every, replacement, random
            _descend(state[b], twins[b], samples, rate, *drawing, tuple(parts), room)

    Parallel(n_jobs=workers, prefer="threads")(delayed(run)(b) for b in range(blocks))
    if not all(np.isfinite(each).all() for each in sums):
        checks.fail("learning_rate", "keep the chains inside the floating-point range", learning_rate)
    *moments, scalars = (each / (chains // blocks * (steps // record_every)) for each in sums)
    return Averages(*moments, scalars[:, 0], scalars[:, 1] / record_every)

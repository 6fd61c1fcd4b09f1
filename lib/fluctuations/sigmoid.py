"""One sigmoid unit with squared loss under minibatch descent: its minimum, and its fluctuations about it for small ε.

z = σ(w·x),  ℓ = (y - z)²/2.  About a minimum w* the loss is not quadratic, so the second moment of V = w - w* obeys no
closed equation; the leading order in ε is the book's (han2021 finds the unit beyond analysis).
"""

import math
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import expit

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import psd_root
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fluctuations import _sums
from lib.fluctuations._runs import checked_drawing, checked_run, fill
from lib.foundations.langevin import LangevinSystem

__all__ = ["Unit", "UnitAverages", "loss_derivatives"]

EDGE = 1e-9  # closer to its threshold than this, rounding decides whether the twin has a covariance
FLAT = 1e-6  # curvature, for whitened inputs, below which a minimum counts as absent; a steep sigmoid has up to 1/16
SETTLE = 5  # relaxation times of the slowest mode in the default burn-in
LONGEST = 10**9  # steps that a default burn-in may take


@dataclass(frozen=True, eq=False)
class UnitAverages:
    """Time averages over blocks of independent replicas of V = w - w* and of its twin U, the blocks first.

    Made by :meth:`Unit.simulate`.

    Parameters
    ----------
    mean, twin_mean : array (blocks, d)
        E[V], and E[U], zero up to sampling noise.
    second_moment, twin_second_moment : array (blocks, d, d)
        E[V Vᵀ], and E[U Uᵀ], known from :meth:`Unit.quadratic_covariance`.
    pull, force_square : array (blocks,)
        E[V·∇L], with the full gradient ∇L(V), and E|g_B|²: at rest  E[V·∇L] = (ε/2) E|g_B|²,  for any loss, as the
        mean |V|² stands still.
    """

    mean: Array["blocks d"]
    twin_mean: Array["blocks d"]
    second_moment: Array["blocks d d"]
    twin_second_moment: Array["blocks d d"]
    pull: Array[" blocks"]
    force_square: Array[" blocks"]


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


def _labels(targets):
    """Targets as they come: truth values as numbers, one column as (N,), anything else as it is."""
    try:
        found = np.asanyarray(targets)
    except (ValueError, TypeError, RuntimeError):
        return targets
    found = found.astype(float) if found.dtype == bool else found
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


@dataclass(frozen=True, eq=False)
class Unit:
    """A sigmoid unit at a minimum of its loss, as :meth:`Unit.at_minimum` returns it: N samples, d inputs.

    Its methods describe descent in minibatches of `batch` samples (m >= 1), by default distinct ones (then m <= N);
    with `replacement` a sample may occur twice.

    Parameters
    ----------
    inputs, targets : array (N, d), (N,)
    weights : array (d,)
        The minimum w*.
    slope, curvature, third_derivative : array (N,)
        ℓ', ℓ'', ℓ''': the first three derivatives of ℓ by h = w·x there; ℓ'' may be negative for single samples.

    Examples
    --------
    >>> Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1]).hessian.round(4)  # z'² = (3/16)²
    array([[0.0352]])
    """

    inputs: Array["N d"]
    targets: Array[" N"]
    weights: Array[" d"]
    slope: Array[" N"]
    curvature: Array[" N"]
    third_derivative: Array[" N"]

    @classmethod
    def at_minimum(cls, inputs: ArrayLike, targets: ArrayLike) -> "Unit":
        """A minimum w* of  L = <(y - σ(w·x))²>/2,  found from w = 0 with whitened inputs, and the derivatives of ℓ.

        There may be others, and none where the classes are separable.

        Parameters
        ----------
        inputs : array_like (N, d)
            N > d, linearly independent columns, in any units.
        targets : array_like (N,) or (N, 1)
            y, from 0 to 1, or truth values.

        Returns
        -------
        Unit

        Raises
        ------
        ValueError
            If the search ends at no minimum.

        Examples
        --------
        >>> Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1]).weights.round(4)  # σ(w*) = 3/4: log 3
        array([1.0986])
        """
        inputs = checks.array("inputs", inputs, ndim=2)  # (N, d)
        samples, size = inputs.shape
        targets = checks.entries("targets", _labels(targets), at_least=0, at_most=1, shape=(samples,))  # (N,)
        if not samples > size > 0:
            checks.fail("inputs", "hold more samples than inputs, and at least one input", f"shape {inputs.shape}")
        _sums.refuse_extreme(inputs)
        scores, scale, basis = np.linalg.svd(inputs, full_matrices=False)  # (N, d), (d,), (d, d)
        found = f"singular values from {scale[0]:.3g} to {scale[-1]:.3g}"
        checks.fail_if(
            scale[-1] ** 2 <= _sums.RANGE * scale[0] ** 2, "inputs", "have linearly independent columns", found
        )
        white = scores * np.sqrt(samples)  # (N, d): <x xᵀ> = 1

        def loss(v):
            return np.mean((targets - expit(white @ v)) ** 2) / 2

        def gradient(v):
            return white.T @ loss_derivatives(white @ v, targets)[0] / samples  # (d,)

        def hessian(v):
            return _sums.weighted(white, loss_derivatives(white @ v, targets)[1])  # (d, d)

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
        return cls(inputs, targets, weights, *loss_derivatives(inputs @ weights, targets))

    @property
    def hessian(self) -> Array["d d"]:
        """H = <ℓ'' x xᵀ>, positive definite."""
        return _sums.weighted(self.inputs, self.curvature)

    def noise_moment(self, batch: int, *, replacement: bool = False) -> Array["d d"]:
        """Gradient noise of one step at the minimum:  D = (c/N) Σ_α g_α² x_α x_αᵀ,  as han2021 (3.4) at q = 0.

        Parameters
        ----------
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        ndarray (d, d)
            Symmetric.

        Examples
        --------
        >>> (Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1]).noise_moment(1) * 16**3).round(9)  # Var(y) z'² = (3/16)³
        array([[27.]])
        """
        return _sums.batch_variance(len(self.inputs), batch, replacement) * _sums.weighted(self.inputs, self.slope**2)

    def leading_order_covariance(self, learning_rate: float, batch: int, *, replacement: bool = False) -> Array["d d"]:
        """Stationary covariance about the minimum to leading order in ε:  HG + GH = ε D,  as han2021 (2.10).

        Parameters
        ----------
        learning_rate : float
            ε > 0.
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        ndarray (d, d)
            G, symmetric.

        Examples
        --------
        >>> Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1]).leading_order_covariance(0.1, 1).round(10)  # ε D / 2H
        array([[0.009375]])
        """
        noise = self.noise_moment(batch, replacement=replacement)  # (d, d)
        rate = checks.number("learning_rate", learning_rate, above=0)
        return LangevinSystem(self.hessian, rate / 2 * noise).stationary_covariance.copy()

    def quadratic_covariance(self, learning_rate: float, batch: int, *, replacement: bool = False) -> Array["d d"]:
        """Stationary covariance of the quadratic twin, exact in ε:  HG + GH = ε E[SGS] + ε D,  S = <ℓ'' x xᵀ>_B.

        Dense: for d up to about 30.

        Parameters
        ----------
        learning_rate : float
            ε > 0, small enough for a stationary C.
        batch, replacement : int, bool
            m, and whether a sample may occur twice.

        Returns
        -------
        ndarray (d, d)
            C = E[U Uᵀ].

        Examples
        --------
        >>> Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1]).quadratic_covariance(1.0, 1).round(4)  # 1.04 × leading order
        array([[0.0978]])
        """
        noise = self.noise_moment(batch, replacement=replacement)  # (d, d)
        rate, one = checks.number("learning_rate", learning_rate, above=0), np.eye(len(noise))  # (d, d)
        variance, hessian = _sums.batch_variance(len(self.inputs), batch, replacement), self.hessian  # (d, d)
        products = np.einsum("ai,aj->aij", self.inputs, self.inputs).reshape(-1, noise.size)  # (N, d²)
        fluctuating = variance * _sums.weighted(products, self.curvature**2)  # (d², d²)
        sandwich = (1 - variance) * np.kron(hessian, hessian) + fluctuating  # (d², d²)
        flow = np.kron(hessian, one) + np.kron(one, hessian)  # (d², d²)
        balance = flow - rate * sandwich  # (d², d²), symmetric
        if not np.linalg.eigvalsh(balance)[0] > EDGE * np.linalg.eigvalsh(hessian)[0]:
            edge = 1 / eigh(sandwich, flow, eigvals_only=True)[-1]
            wanted = f"be below {edge:.6g}, where the covariance of the quadratic twin diverges"
            checks.fail("learning_rate", wanted, learning_rate)
        solution = np.linalg.solve(balance, rate * noise.ravel()).reshape(noise.shape)  # (d, d)
        return (solution + solution.T) / 2

    def mean_shift(self, covariance: ArrayLike) -> Array[" d"]:
        """Shift of the mean weights at small covariance:  E[V] = -½ H⁻¹ <ℓ''' (xᵀGx) x>.

        Parameters
        ----------
        covariance : array_like (d, d)
            G, symmetric.

        Returns
        -------
        ndarray (d,)

        Examples
        --------
        >>> Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1]).mean_shift([[0.01]]).round(10)  # -3 z'z'' G / 2H, z'' = -z'/2
        array([0.0075])
        """
        matrix = checks.symmetric("covariance", covariance, size=len(self.weights))  # (d, d)
        forms = np.einsum("ai,ij,aj->a", self.inputs, matrix, self.inputs)  # (N,)
        return -np.linalg.solve(self.hessian, self.inputs.T @ (self.third_derivative * forms)) / (
            2 * len(forms)
        )  # (d,)

    def simulate(
        self, learning_rate: float, batch: int, *, steps: int, replicas: int, rng: Rng,
        burn_in: int | None = None, replacement: bool = False, record_every: int | None = None,
        blocks: int | None = None, workers: int = 1,
    ) -> UnitAverages:  # fmt: skip
        """Independent replicas of minibatch descent,  V' = V - ε g_B(V),  and their averages in the stationary state.

        Each has a twin with the quadratic loss,  U' = U - (ε/m) Σ_b (g_b + h_b x_b·U) x_b,  under the same minibatches:
        its law is known, so the difference shows the nonlinearity with little noise.  They start from the Gaussian of
        the leading order, V moved by the mean shift.

        Parameters
        ----------
        learning_rate : float
            ε > 0; the theory needs ε λ_max(H) << 1.
        batch, replacement : int, bool
            m, and whether a sample may occur twice.
        steps, replicas : int
            Length and number of the runs.
        rng : int, SeedSequence or Generator
            Block b draws from its b-th child, whatever the `workers`.
        burn_in : int, optional
            Steps unseen, by default 5/(ε λ_min(H)).
        record_every : int, optional
            One state in so many enters the averages (|g_B|² every one); divides the steps, by default 50 or the next
            divisor below.
        blocks : int, optional
            Groups of replicas, averaged one by one; divides the replicas, by default 10 or the next divisor below.
        workers : int
            Threads.

        Returns
        -------
        UnitAverages

        Raises
        ------
        ValueError
            If the runs leave the floating-point range, or would take too long to relax.

        Examples
        --------
        >>> unit = Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1])
        >>> run = unit.simulate(0.1, 1, steps=5000, replicas=10, rng=1, burn_in=1500, record_every=50, blocks=10)
        >>> bool(0.8 < run.second_moment.mean() / unit.leading_order_covariance(0.1, 1)[0, 0] < 1.3)
        True
        """
        rate = checks.number("learning_rate", learning_rate, above=0)
        batch, replacement, _ = checked_drawing(len(self.inputs), batch, replacement, False)
        steps, replicas, blocks, record_every = checked_run(steps, replicas, blocks, record_every, seldom=50)
        workers = checks.integer("workers", workers)
        streams = [checks.generator("rng", stream) for stream in children(rng, blocks + 1)]
        slowest = rate * float(np.linalg.eigvalsh(self.hessian)[0])
        wanted = f"be large enough to relax within {LONGEST:g} steps, or come with a burn_in"
        checks.fail_if(burn_in is None and not slowest > SETTLE / LONGEST, "learning_rate", wanted, learning_rate)
        burn_in = math.ceil(SETTLE / slowest) if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
        spread = self.leading_order_covariance(rate, batch, replacement=replacement)  # (d, d)
        shape = (blocks, replicas // blocks, size := len(self.weights))
        twins = streams[-1].standard_normal(shape) @ psd_root(spread).T  # (blocks, replicas / blocks, d)
        state = twins + self.mean_shift(spread)  # (blocks, replicas / blocks, d)
        inputs = np.ascontiguousarray(self.inputs)  # (N, d)
        samples = (inputs, self.targets, inputs @ self.weights, self.slope, self.curvature)
        shapes = ((size,), (size,), (size, size), (size, size), (2,))
        sums = [np.zeros((blocks, *shape)) for shape in shapes]

        def run(b):
            unseen, seen = [np.zeros(shape) for shape in shapes], [each[b] for each in sums]
            for length, parts in ((burn_in, unseen), (steps, seen)):
                room = np.arange(len(inputs)), np.empty(batch, dtype=np.int64), *np.empty((2, size))
                drawing = batch, length, record_every, replacement, streams[b]
                _descend(state[b], twins[b], samples, rate, *drawing, tuple(parts), room)

        Parallel(n_jobs=workers, prefer="threads")(delayed(run)(b) for b in range(blocks))
        if not all(np.isfinite(each).all() for each in sums):
            checks.fail("learning_rate", "keep the replicas inside the floating-point range", learning_rate)
        *moments, scalars = (each / (replicas // blocks * (steps // record_every)) for each in sums)
        return UnitAverages(*moments, scalars[:, 0], scalars[:, 1] / record_every)


def loss_derivatives(field: ArrayLike, target: ArrayLike) -> Array["3 N"]:
    """First three derivatives of  ℓ = (y - σ(h))²/2  by the field h.

    Parameters
    ----------
    field, target : array_like (N,)
        h and y.

    Returns
    -------
    ndarray (3, N)

    Examples
    --------
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

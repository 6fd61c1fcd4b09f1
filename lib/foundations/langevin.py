"""Linear Langevin dynamics,  ẋ = -Γx + f,  <f(t) fᵀ(t')> = 2D δ(t - t'): its laws, its paths, and what these measure.

In gradient descent Γ is the Hessian, the learning rate the Euler step h, and D = hC/2, not C/2, for gradient noise of
covariance C per step: that of a minibatch mean, C₁/M for independent samples of covariance C₁ in batches of M.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag, expm, solve_continuous_lyapunov
from scipy.sparse.csgraph import connected_components

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.linalg import psd_root
from lib.common.shapes import Array, ArrayLike, Rng


def _modes(friction):
    """Rates (d,) and modes (d, d) of a symmetric Γ, part by part: no digits of a soft part are lost to a stiff one."""
    count, parts = connected_components(friction != 0, directed=False)
    rates, frame = np.empty(len(friction)), np.zeros(friction.shape)  # (d,), (d, d)
    for part in range(count):
        rows = np.flatnonzero(parts == part)
        rates[rows], frame[np.ix_(rows, rows)] = np.linalg.eigh(friction[np.ix_(rows, rows)])
    return rates, frame


def _lyapunov(friction, diffusion):
    """Σ in  ΓΣ + ΣΓᵀ = 2D, in units where the largest entries are one: SciPy is silently wrong near overflow."""
    rate, strength = float(np.abs(friction).max()), float(np.abs(diffusion).max()) or 1.0
    unit = strength / rate
    if not math.isfinite(unit):
        checks.fail("diffusion", "be small enough, next to friction, for a finite covariance", diffusion)
    if np.array_equal(friction, friction.T):
        rates, frame = _modes(friction / rate)  # (d,), (d, d)
        solution = frame @ ((frame.T @ diffusion @ frame) / strength / np.add.outer(rates, rates)) @ frame.T  # (d, d)
    else:
        solution = solve_continuous_lyapunov(friction / rate, diffusion / strength)  # (d, d)
    return checks.finite("friction", unit * (solution + solution.T))


def _propagate(friction, diffusion, duration):
    """e^{-Γt} and 2∫_0^t e^{-Γu} D e^{-Γᵀu} du: Van Loan's block exponential for a short time, then doublings.

    They add positive terms: no cancellation as in Σ(∞) - e^{-Γt} Σ(∞) e^{-Γᵀt} at short times, no overflow late.
    """
    size = len(friction)
    doublings = max(0, math.frexp(duration)[1] + math.frexp(np.linalg.norm(friction, 1))[1])
    short = math.ldexp(duration, -doublings)
    scale = np.abs(diffusion).max() or 1.0  # linear in D: a block of order one keeps the exponential accurate
    block = np.block([[short * friction, diffusion / scale], [np.zeros((size, size)), -short * friction.T]])  # (2d, 2d)
    grown = expm(block)  # (2d, 2d)
    propagator = grown[size:, size:].T  # (d, d)
    noise = 2 * scale * short * propagator @ grown[:size, size:]  # (d, d)
    for _ in range(doublings):
        noise = noise + propagator @ noise @ propagator.T  # (d, d)
        propagator = propagator @ propagator  # (d, d)
    return propagator, (noise + noise.T) / 2


def _dissipation(rotation, spread, diffusion):
    """Tr[Σ⁻¹ Qᵀ D⁻¹ Q] of stacks Q, Σ (..., d, d), as a sum of squares, which rounding cannot make negative."""
    left = np.linalg.solve(np.linalg.cholesky(diffusion), rotation)  # (..., d, d)
    both = np.linalg.solve(np.linalg.cholesky(spread), np.swapaxes(left, -1, -2))  # (..., d, d)
    return (both**2).sum(axis=(-2, -1))  # (...)


def _kept(array):
    """An array that a frozen object holds."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class LangevinSystem:
    """The linear Langevin equation  ẋ = -Γx + f,  <f(t) fᵀ(t')> = 2D δ(t - t')  of d coordinates (han2021 eq. (1.1)).

    Parameters
    ----------
    friction : array_like (d, d)
        Γ, any matrix whose eigenvalues have positive real parts; a rate per unit of time.
    diffusion : array_like (d, d)
        D, symmetric, positive semidefinite.

    Attributes
    ----------
    stationary_covariance : ndarray (d, d)
        Σ of the stationary law, a Gaussian of mean zero:  ΓΣ + ΣΓᵀ = 2D  (eqs. (1.4), (1.5)).
    circulation : ndarray (d, d)
        Q, the antisymmetric part in  ΓΣ = D + Q  (eq. (1.6)), 0 exactly if ΓD = DΓᵀ: Q_ij is the mean area swept per
        time from axis i towards axis j.
    entropy_production : float
        Ṡ = Tr[Σ⁻¹QᵀD⁻¹Q] = -Tr[D⁻¹ΓQ] >= 0 per unit of time, in k_B; for a positive definite D.

    Examples
    --------
    >>> turning = LangevinSystem([[1.0, -2.0], [2.0, 1.0]], np.eye(2))
    >>> turning.stationary_covariance.round(12).tolist(), turning.circulation.round(12).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0.0, -2.0], [2.0, 0.0]])
    >>> round(turning.entropy_production, 10)
    8.0
    """

    friction: Array["d d"]
    diffusion: Array["d d"]

    def __post_init__(self):
        friction = checks.array("friction", self.friction, ndim=2)  # (d, d)
        diffusion = checks.symmetric("diffusion", self.diffusion, definite="semi")  # (d, d)
        friction = checks.array("friction", friction, shape=diffusion.shape)
        # SciPy's solution, for a Γ that is not symmetric, rounds beside its largest entry.
        whole = 0.0 if np.array_equal(friction, friction.T) else 1e-15 * np.abs(friction).max()
        _, parts = connected_components(friction != 0, connection="strong")  # (d,): each triangular block has its rates
        for part in range(parts.max() + 1):
            block = friction[np.ix_(parts == part, parts == part)]
            slowest, least = np.linalg.eigvals(block).real.min(), max(1e-13 * np.abs(block).max(), whole)
            found = f"smallest real part {slowest:.3g}"
            checks.fail_if(slowest <= 0, "friction", "have every eigenvalue in the right half plane", found)
            wanted = f"have no rate so slow, {least:.3g} or less, that it is lost to rounding"
            checks.fail_if(slowest <= least, "friction", wanted, found)
        checks.keep(self, friction=_kept(friction), diffusion=_kept(diffusion))

    @cached_property
    def stationary_covariance(self) -> Array["d d"]:
        """Σ in  ΓΣ + ΣΓᵀ = 2D  (han2021 eqs. (1.4), (1.5))."""
        return _kept(_lyapunov(self.friction, self.diffusion))

    @cached_property
    def circulation(self) -> Array["d d"]:
        """Q = (ΓΣ - ΣΓᵀ)/2  (han2021 eq. (1.6))."""
        flow = self.friction @ self.stationary_covariance  # (d, d)
        return _kept((flow - flow.T) / 2)

    @cached_property
    def entropy_production(self) -> float:
        """Ṡ = Tr[Σ⁻¹QᵀD⁻¹Q]  per unit of time, in k_B; for a positive definite D."""
        diffusion = checks.symmetric("diffusion", self.diffusion, definite="strict")  # (d, d)
        return float(_dissipation(self.circulation, self.stationary_covariance, diffusion))

    def propagator(self, times: ArrayLike) -> Array["... d d"]:
        """Mean motion  e^{-Γt}  (han2021 eq. (1.1)).

        Parameters
        ----------
        times : float or array_like (n,)
            t >= 0, increasing.

        Returns
        -------
        ndarray (n, d, d)
            (d, d) for a single time.

        Examples
        --------
        >>> LangevinSystem([[1.0]], [[1.0]]).propagator(1.0).round(4).tolist()
        [[0.3679]]
        """
        exponentials = expm(-checks.times("times", times)[:, None, None] * self.friction)  # (n, d, d)
        return exponentials[0] if np.ndim(times) == 0 else exponentials

    def covariance(self, times: ArrayLike, *, start: ArrayLike | None = None) -> Array["... d d"]:
        """Covariance  Σ(t) = e^{-Γt} Σ(0) e^{-Γᵀt} + 2∫_0^t e^{-Γu} D e^{-Γᵀu} du  (han2021 eqs. (1.2), (1.4)).

        Parameters
        ----------
        times : float or array_like (n,)
            t >= 0, increasing.
        start : array_like (d, d), optional
            Σ(0), positive semidefinite; by default 0, and the covariance is that of the noise of the time t.

        Returns
        -------
        ndarray (n, d, d)
            (d, d) for a single time.

        Examples
        --------
        >>> LangevinSystem([[0.5]], [[1.0]]).covariance([0.0, 1.0], start=[[1.0]]).round(4).ravel().tolist()
        [1.0, 1.6321]
        """
        first = np.zeros_like(self.friction) if start is None else start
        first = checks.symmetric("start", first, size=len(self.friction), definite="semi")  # (d, d)
        steps = [_propagate(self.friction, self.diffusion, t) for t in checks.times("times", times)]
        found = np.stack([propagator @ first @ propagator.T + noise for propagator, noise in steps])  # (n, d, d)
        return found[0] if np.ndim(times) == 0 else found

    def correlation(self, lags: ArrayLike) -> Array["... d d"]:
        """Stationary two-time function  C(s) = <x(t+s) xᵀ(t)> = e^{-Γs} Σ  (han2021 eq. (1.3));  C(-s) = Cᵀ(s).

        Parameters
        ----------
        lags : float or array_like (n,)
            s >= 0, increasing.

        Returns
        -------
        ndarray (n, d, d)
            (d, d) for a single lag.

        Examples
        --------
        >>> LangevinSystem([[1.0]], [[1.0]]).correlation([0.0, 1.0]).round(4).ravel().tolist()
        [1.0, 0.3679]
        """
        late = self.propagator(checks.times("lags", lags)) @ self.stationary_covariance  # (n, d, d)
        return late[0] if np.ndim(lags) == 0 else late

    def euler_covariance(self, step: float) -> Array["d d"]:
        """Exact stationary covariance of the Euler-Maruyama chain  x' = (1 - hΓ)x + ζ:  ΓΣ + ΣΓᵀ - hΓΣΓᵀ = 2D.

        For symmetric Γ, in its eigenbasis:  Σ_ij = 2D_ij/(λ_i + λ_j - hλ_iλ_j).  Descent at the learning rate h has D =
        hC/2 with the gradient noise C of one step, of a minibatch.

        Parameters
        ----------
        step : float
            0 < h < min_k 2 Re λ_k/|λ_k|², where the chain runs away.

        Returns
        -------
        ndarray (d, d)

        Examples
        --------
        >>> round(float(LangevinSystem([[1.0]], [[1.0]]).euler_covariance(0.5)[0, 0]), 12)
        1.333333333333
        """
        rates = np.linalg.eigvals(self.friction)  # (d,)
        limit = (2 * rates.real / np.abs(rates) ** 2).min()
        step = checks.number("step", step, above=0)
        if step >= limit * (1 - 1e-12):  # at the limit the covariance is infinite, and rounding would decide
            checks.fail("step", f"be below {limit:.6g}, where the Euler chain of this friction runs away", step)
        if np.array_equal(self.friction, self.friction.T):
            rates, frame = _modes(self.friction)  # (d,), (d, d)
            decay = rates[:, None] + rates - step * rates[:, None] * rates  # (d, d)
            spread = frame @ (2 * (frame.T @ self.diffusion @ frame) / decay) @ frame.T  # (d, d)
            return (spread + spread.T) / 2
        # The law of another process, Γ' = Γ(1 - hΓ/2)⁻¹, D' = (1 - hΓ/2)⁻¹ D (1 - hΓᵀ/2)⁻¹: a discrete Lyapunov
        # equation would lose digits like 1/h.
        half = np.eye(len(rates)) - step * self.friction / 2  # (d, d)
        modified = np.linalg.solve(half, np.linalg.solve(half, self.diffusion).T)  # (d, d)
        return _lyapunov(np.linalg.solve(half, self.friction), (modified + modified.T) / 2)

    def _chain(self, step, method):
        """Matrix A and noise covariance N of the chain  x' = A x + ζ  that the method runs."""
        euler = np.eye(len(self.friction)) - step * self.friction  # (d, d)
        if method == "euler":
            return euler, 2 * step * self.diffusion
        if method == "exact":
            return _propagate(self.friction, self.diffusion, step)
        # ∫e^{-Γ(h-u)} f du and ∫f du are drawn from their joint law: the exact step of (x, b) with ḃ = f
        still = block_diag(self.friction, np.zeros_like(self.friction))  # (2d, 2d)
        pair, noise = _propagate(still, np.tile(self.diffusion, (2, 2)), step)  # (2d, 2d) each
        return block_diag(pair[: len(euler), : len(euler)], euler), noise

    def simulate(
        self, *, step: float, steps: int, replicas: int, rng: Rng, start: str | ArrayLike = "stationary",
        method: str = "exact", record_every: int = 1,
    ) -> Array["... R replicas d"]:  # fmt: skip
        """Independent paths on a grid of times.

        Parameters
        ----------
        step, steps : float, int
            h > 0, and how many steps.
        replicas : int
            Independent paths.
        rng : int, SeedSequence or Generator
        start : "stationary" or array_like, (d,) or (replicas, d)
            First x, or drawn from the stationary law: of the chain that is run, of the exact one for "both".
        method : str
            "exact",  x(t+h) = e^{-Γh} x(t) + ζ  (han2021 eqs. (1.1), (1.3)); "euler",  x' = (1 - hΓ)x + ζ,  <ζζᵀ> =
            2Dh; "both", the two under the same force.
        record_every : int
            Divides `steps`.

        Returns
        -------
        ndarray (R, replicas, d)
            The records, R = steps / record_every + 1, the start first; for "both" (2, R, replicas, d), exact and Euler.

        Raises
        ------
        ValueError
            Also if an Euler chain leaves the floating-point range.

        Examples
        --------
        >>> system = LangevinSystem([[1.0]], [[1.0]])
        >>> system.simulate(step=0.1, steps=20, replicas=3, rng=1, record_every=10).shape
        (3, 3, 1)
        >>> system.simulate(step=0.1, steps=2, replicas=3, rng=1, start=[0.0], method="both")[:, 0].ravel().tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        step = checks.number("step", step, above=0)
        steps, replicas = checks.integer("steps", steps), checks.integer("replicas", replicas)
        if steps % (record_every := checks.integer("record_every", record_every)):
            checks.fail("record_every", f"divide steps = {steps}", record_every)
        method = checks.one_of("method", method, ("exact", "euler", "both"))
        rng = checks.generator("rng", rng)
        size = len(self.friction)
        if isinstance(start, str) and start == "stationary":
            law = self.euler_covariance(step) if method == "euler" else self.stationary_covariance  # (d, d)
            state = rng.standard_normal((replicas, size)) @ psd_root(law).T  # (replicas, d)
        else:
            state = checks.array("start", start)
            if state.shape not in ((size,), (replicas, size)):
                checks.fail("start", f"have shape ({size},) or ({replicas}, {size})", f"shape {state.shape}")
            state = np.broadcast_to(state, (replicas, size))  # (replicas, d)
        advance, noise = self._chain(step, method)
        root = psd_root(noise)  # (d, d), or (2d, 2d) for "both"
        state = np.tile(state, len(root) // size)  # (replicas, d), or (replicas, 2d)
        paths = np.empty((steps // record_every + 1, *state.shape))  # (R, replicas, d), or (R, replicas, 2d)
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
    paths = checks.array("paths", paths, ndim=3)  # (R, replicas, d)
    if paths.shape[0] < records or paths.shape[1] < 2 or paths.shape[2] < 1:
        checks.fail("paths", f"hold at least {records} records of at least 2 replicas", f"shape {paths.shape}")
    return paths


def _second_moments(late, early):
    """Average of  late earlyᵀ  over the records, one matrix a replica."""
    return late.transpose(1, 2, 0) @ early.transpose(1, 0, 2) / len(late)  # (replicas, d, d)


def _areas(paths, interval):
    lagged = _second_moments(paths[:-1], paths[1:])  # (replicas, d, d)
    return (lagged - lagged.transpose(0, 2, 1)) / (2 * interval)  # (replicas, d, d)


def estimate_covariance(paths: ArrayLike) -> Estimate:
    """Measured <x xᵀ>, no mean subtracted, with its standard error over replicas.

    Parameters
    ----------
    paths : array_like (R, replicas, d)
        R >= 1 records of two or more independent paths.

    Returns
    -------
    Estimate
        Mean and error (d, d).

    Examples
    --------
    >>> [part.item() for part in estimate_covariance([[[1.0], [3.0]]])]
    [5.0, 4.0]
    """
    paths = _paths(paths, 1)
    return Estimate.of(_second_moments(paths, paths))


def estimate_circulation(paths: ArrayLike, interval: float) -> Estimate:
    """Measured circulation  (<x_n x_{n+1}ᵀ> - <x_{n+1} x_nᵀ>) / 2s, the area swept per unit time, with its error.

    Of the exact process it is Q + O(s) (han2021 eq. (1.6)), of successive states of the Euler chain (ΓΣ - ΣΓᵀ)/2.

    Parameters
    ----------
    paths : array_like (R, replicas, d)
        R >= 2 records of two or more independent paths.
    interval : float
        s > 0, the time between records.

    Returns
    -------
    Estimate
        Mean and error (d, d).

    Examples
    --------
    >>> quarter_turns = np.tile([[[1.0, 0.0]], [[0.0, 1.0]], [[-1.0, 0.0]]], (1, 2, 1))  # (3, 2, 2): area 1/2 each
    >>> estimate_circulation(quarter_turns, 1.0).mean.tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    return Estimate.of(_areas(_paths(paths, 2), checks.number("interval", interval, above=0)))


def estimate_entropy_production(paths: ArrayLike, interval: float, diffusion: ArrayLike) -> Estimate:
    """Measured entropy production:  Tr[Σ⁻¹ Qᵀ D⁻¹ Q]  with measured Σ and Q and the known D, jackknifed over replicas.

    Q is measured over the interval s and off by O(s): take s ≪ 1/‖Γ‖, or the estimate is too small by a part of the
    order s‖Γ‖ that no number of replicas shows.
    The bias of a square of noisy numbers is removed to first order: the estimate may be slightly negative where Ṡ = 0,
    and its error, the jackknife's and √2 × bias, is twice too large there.

    Parameters
    ----------
    paths : array_like (R, replicas, d)
        R >= 2 records of two or more independent paths.
    interval : float
        s > 0, the time between records.
    diffusion : array_like (d, d)
        D, positive definite.

    Returns
    -------
    Estimate
        Rate and error, in k_B per unit of time.

    Examples
    --------
    >>> turning = LangevinSystem([[1.0, -2.0], [2.0, 1.0]], np.eye(2))
    >>> paths = turning.simulate(step=0.01, steps=200, replicas=100, rng=1)
    >>> abs(estimate_entropy_production(paths, 0.01, np.eye(2)).sigmas(turning.entropy_production)) < 4
    True
    """
    paths, interval = _paths(paths, 2), checks.number("interval", interval, above=0)
    diffusion = checks.symmetric("diffusion", diffusion, size=paths.shape[2], definite="strict")
    replicas = paths.shape[1]

    def plug_in(moments):
        try:
            return _dissipation(*moments, diffusion)
        except np.linalg.LinAlgError:
            checks.fail("paths", "span all directions: give more replicas or records", f"shape {paths.shape}")

    moments = np.stack([_areas(paths, interval), _second_moments(paths, paths)])  # (2, replicas, d, d)
    total = moments.sum(axis=1, keepdims=True)  # (2, 1, d, d)
    left_out = plug_in((total - moments) / (replicas - 1))  # (replicas,)
    plain = plug_in(total[:, 0] / replicas)
    bias = (replicas - 1) * (left_out.mean() - plain)
    error = math.hypot(math.sqrt(replicas - 1) * left_out.std(), math.sqrt(2) * bias)
    return Estimate(float(plain - bias), error)

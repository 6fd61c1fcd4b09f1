"""Minibatch descent on a least-squares loss: its stationary law, exact in the learning rate, and its simulator.

V = W - W₀ moves by  V' = V + Δ',  Δ' = μΔ - ε(VS - ξ),  with a fresh minibatch every step; without momentum μ this is
han2021 (3.2),  V' = V(1 - εS) + εξ.  Then G = E[VᵀV] obeys  AG + GA = ε E[SGS] + ε D,  closed and linear; the source
has the limit ε -> 0, eq. (2.10), with ε D(0) on the right, and no momentum.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import brentq

from lib.common import checks
from lib.common.compiled import loops
from lib.common.linalg import largest, psd_root
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fluctuations import _sums, regression
from lib.fluctuations._runs import checked_drawing, checked_run, fill
from lib.fluctuations.stationary import EDGE

__all__ = ["Averages", "Descent"]

HELD = 64  # recorded states that are added to the sums at a time


@dataclass(frozen=True, eq=False)
class Averages:
    """Time averages of a run over blocks of independent replicas, each an array with the blocks first.

    Made by :meth:`Descent.simulate`.  ``Estimate.of`` gives the mean over blocks with its error.

    Parameters
    ----------
    second_moment : ndarray (blocks, n, n)
        E[V_nᵀ V_n], or E[V_iᵀ V_j] for a pair of outputs.
    lagged : ndarray (blocks, n, n) or None
        E[V_nᵀ V_{n+1}], or the same for a pair; None if not asked for.
    mean : ndarray (blocks, p, n)
        E[V]; p counts the outputs that were run.
    last : ndarray (replicas, p, n)
        V after the last step, a start for the next run (at rest, B = 0).
    learning_rate : float
        ε of the run.
    """

    second_moment: Array["blocks n n"]
    lagged: Array["blocks n n"] | None
    mean: Array["blocks p n"]
    last: Array["replicas p n"]
    learning_rate: float

    def circulation(self) -> Array["blocks n n"]:
        """Circulation measured from successive states:  (E[V_nᵀ V_{n+1}] - E[V_{n+1}ᵀ V_n]) / 2ε.

        It equals  Q = (AG - GA)/2,  eq. (1.6) of han2021, or that of G_ij for a stationary pair; with momentum
        Q / (1 - μ).  Best with every step recorded.

        Returns
        -------
        ndarray (blocks, n, n)

        Raises
        ------
        ValueError
            If the run was made without the lagged average.

        Examples
        --------
        >>> lagged = np.array([[[1.0, 0.5], [0.0, 1.0]]])
        >>> Averages(np.eye(2)[None], lagged, np.zeros((1, 1, 2)), np.zeros((1, 1, 2)), 0.25).circulation().tolist()
        [[[0.0, 1.0], [-1.0, 0.0]]]
        """
        checks.fail_if(self.lagged is None, "lagged", "be kept in the run", None)
        # For a pair, E[VᵢᵀV_k] is symmetric on average only: without its antisymmetric part most of the noise is gone.
        moved = self.lagged - self.second_moment  # (blocks, n, n)
        return (moved - np.swapaxes(moved, -1, -2)) / (2 * self.learning_rate)


# Sums may be reordered, which lets the loops use vector instructions: without, a run takes up to 1.5 times as long.
# The last digits then depend on the processor; NaN and infinity keep their meaning.
@loops(fastmath={"reassoc", "contract", "nsz"})
def _advance(weights, inputs, residuals, chosen, rate, errors):
    """One step in place; all errors are taken before the weights move."""
    outputs, size = weights.shape
    for b in range(len(chosen)):
        x = inputs[chosen[b]]
        for i in range(outputs):
            field = 0.0
            for k in range(size):
                field += weights[i, k] * x[k]
            errors[b, i] = rate / len(chosen) * (field - residuals[chosen[b], i])
    for b in range(len(chosen)):
        x = inputs[chosen[b]]
        for i in range(outputs):
            move = errors[b, i]
            for k in range(size):
                weights[i, k] -= move * x[k]


@loops
def _descend(
    chains, velocities, inputs, residuals, pairs, rate, momentum, burn_in, steps, record_every, replacement, epochs,
    random, c, step, before, order, chosen, errors, left, right, after, mean,
):  # fmt: skip
    """Run the chains in place, one after the other, from `step` of chain `c` on, and add to the `mean` of the states.

    The `steps` begin after those of `burn_in`.  Their pairs are recorded in rows of `left`, `right` and `after`, until
    these are full or all is done.  Returns the place that is reached and the number of rows.  `before` (p, n), `order`
    (N,), `chosen` (m,), `errors` (m, p):
    workspace.
    """
    outputs, size = mean.shape
    held = 0
    while c < len(chains) and held < len(left):
        weights, velocity = chains[c], velocities[c]
        while step < burn_in + steps and held < len(left):
            record = step >= burn_in and (step - burn_in) % record_every == 0
            if record or momentum > 0:
                for i in range(outputs):
                    for k in range(size):
                        before[i, k] = weights[i, k]
            fill(order, chosen, step, replacement, epochs, random)
            _advance(weights, inputs, residuals, chosen, rate, errors)
            if momentum > 0:  # the velocity is the whole move of a step
                for i in range(outputs):
                    for k in range(size):
                        weights[i, k] += momentum * velocity[i, k]
                        velocity[i, k] = weights[i, k] - before[i, k]
            if record:
                for i in range(outputs):
                    for k in range(size):
                        mean[i, k] += before[i, k]
                for q in range(len(pairs)):
                    for k in range(size):
                        left[held, k], right[held, k] = before[pairs[q, 0], k], before[pairs[q, 1], k]
                        after[held, k] = weights[pairs[q, 1], k]
                    held += 1
            step += 1
        if step == burn_in + steps:
            c, step = c + 1, 0
    return c, step, held


def _block(chains, velocities, data, pairs, rate, momentum, batch, lengths, record_every, drawing, random, sums):
    """Run every chain of a block in place, one after the other, and add to the three sums.

    Recorded states are held back and added many at a time, as one matrix product: rank-one sums cost too much.
    """
    (inputs, residuals), (total, lagged, mean) = data, sums
    room = np.empty_like(mean), np.arange(len(inputs)), np.empty(batch, dtype=np.int64), np.empty((batch, len(mean)))
    left, right, after = np.empty((3, HELD * len(pairs), chains.shape[2]))
    right = left if np.array_equal(pairs[:, 0], pairs[:, 1]) else right  # XᵀX costs less than the general product
    given = inputs, residuals, pairs, rate, momentum, *lengths, record_every, *drawing, random
    c = step = 0
    while c < len(chains):
        c, step, held = _descend(chains, velocities, *given, c, step, *room, left, right, after, mean)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller names a run that left the floating-point range
            total += left[:held].T @ right[:held]
            if lagged is not None:
                lagged += left[:held].T @ after[:held]


@dataclass(frozen=True, eq=False)
class Descent:
    """Minibatch gradient descent on a least-squares problem: the setting that its theory and its simulation share.

    Parameters
    ----------
    problem : Regression
        The data, as ``regression.fit`` returns them; covariances are in its PCA basis.
    learning_rate : float
        ε > 0; a stationary state needs less than a threshold, ``problem.learning_rate_threshold(batch)`` without
        momentum.
    batch : int
        m, samples a step; at most N without replacement.
    replacement : bool
        Whether a sample may occur twice in a minibatch.
    momentum : float
        0 <= μ < 1, heavy ball; for small ε it multiplies the learning rate by 1/(1 - μ).
    epochs : bool
        Whether N // m successive minibatches share out a permutation, not with `replacement`: for simulations; the
        stationary law is that of independent minibatches.

    Examples
    --------
    >>> problem = regression.fit([[1.0], [1.0]], [[0.0], [2.0]])  # A = S = D = 1: G = ε / (2 - ε)
    >>> Descent(problem, 0.5, 1).stationary_covariance().round(4)
    array([[0.3333]])
    >>> from lib.foundations.langevin import LangevinSystem  # the same as a Langevin equation, in time t = ε n
    >>> continuous = LangevinSystem(np.diag(problem.eigenvalues), 0.5 / 2 * problem.noise_moment(1))
    >>> continuous.stationary_covariance  # for ε -> 0, the leading order
    array([[0.25]])
    >>> continuous.euler_covariance(0.5).round(4)  # with ε A G A for ε E[SGS]: here the same
    array([[0.3333]])
    """

    problem: regression.Regression
    learning_rate: float
    batch: int
    replacement: bool = field(default=False, kw_only=True)
    momentum: float = field(default=0.0, kw_only=True)
    epochs: bool = field(default=False, kw_only=True)

    def __post_init__(self):
        checks.instance("problem", self.problem, regression.Regression, "as regression.fit returns it")
        samples = len(self.problem.inputs)
        batch, replacement, epochs = checked_drawing(samples, self.batch, self.replacement, self.epochs)
        rate = checks.number("learning_rate", self.learning_rate, above=0)
        momentum = checks.number("momentum", self.momentum, at_least=0, below=1)
        checks.keep(self, learning_rate=rate, batch=batch, replacement=replacement, momentum=momentum, epochs=epochs)

    def _noise(self, pair):
        return self.problem.noise_moment(self.batch, replacement=self.replacement, pair=pair)

    @cached_property
    def _equation(self):
        """ρ/ε + εc λλᵀ (n, n) and εc, of  ρ ∘ G = ε²{D + c(F[G] - AGA)},  where G exists.

        ρ = {(1-μ)² [(1+μ)(a+b) - ab] + μ(a-b)²} / (1-μ²),  a = ελ_k, b = ελ_l.
        """
        problem, rate, mu, lam = self.problem, self.learning_rate, self.momentum, self.problem.eigenvalues  # (n,)
        variance, square = problem.batch_variance(self.batch, self.replacement), np.outer(lam, lam)  # (n, n)
        top = 2 * (1 + mu) / lam[0]
        checks.fail_if(rate >= top * (1 - EDGE), "learning_rate", f"be below {top:.6g}, where the mean diverges", rate)

        def stiffness(rate):
            a, b = rate * lam[:, None], rate * lam  # (n, 1), (n,)
            return ((1 - mu) ** 2 * ((1 + mu) * (a + b) - a * b) + mu * (a - b) ** 2) / (1 - mu**2) / rate  # (n, n)

        # E[S̄GS̄] keeps positive matrices positive, so its feedback on the noise must be below one.
        def feedback(matrix):
            return _sums.fourth(problem.inputs, matrix) - square * matrix  # (n, n)

        def gain(rate):
            return rate * variance * largest(feedback, stiffness(rate))

        how = {"replacement": self.replacement}
        # The cheap bound spares most descents the eigenproblem.
        safe = mu == 0 and rate < problem.sufficient_learning_rate(self.batch, **how) * (1 - EDGE)
        if not safe and variance > 0 and gain(rate) >= 1 - EDGE:
            if mu == 0:
                edge = problem.learning_rate_threshold(self.batch, **how)
            else:  # where the gain passes one: a search, to a part in a thousand
                edge = brentq(lambda each: gain(each) - 1 + EDGE, 1e-9 * rate, rate, xtol=1e-3 * rate)
            wanted = f"be below {edge:.3g}, where the stationary covariance diverges at this momentum and batch"
            checks.fail("learning_rate", wanted, rate)
        return stiffness(rate) + rate * variance * square, rate * variance

    def _solved(self, pair=None):
        noise, (metric, coupling) = self._noise(pair), self._equation  # (n, n), (n, n)
        return _sums.solve(self.problem.inputs, metric, coupling, self.learning_rate * noise)

    _whole = cached_property(_solved)  # of images it costs as much as a simulation

    def stationary_covariance(self, pair: tuple[int, int] | None = None) -> Array["n n"]:
        """Stationary weight covariance  G = E[VᵀV],  exact:  AG + GA = ε E[SGS] + ε D.

        With momentum  γ ∘ G = ε²{D + c(F[G] - AGA)},  with  γ_kl = {(1-μ)² [(1+μ)(a+b) - ab] + μ(a-b)²} / (1-μ²)  of
        a = γ_k = ελ_k and b = γ_l.

        Parameters
        ----------
        pair : tuple (i, j), optional
            Two outputs: E[V_iᵀ V_j], han2021 (B5), instead of the sum over outputs.

        Returns
        -------
        ndarray (n, n)
            Symmetric.

        Raises
        ------
        ValueError
            If it diverges at this learning rate, or minibatches come in epochs, where this law does not hold.

        Examples
        --------
        >>> problem = regression.fit([[1.0], [1.0]], [[0.0], [2.0]])  # A = S = D = 1
        >>> Descent(problem, 0.5, 1, momentum=0.5).stationary_covariance().round(9)
        array([[0.6]])
        """
        checks.fail_if(self.epochs, "epochs", "be False for the law of independent minibatches", True)
        return self._whole.copy() if pair is None else self._solved(pair)

    def leading_order_covariance(self, pair: tuple[int, int] | None = None) -> Array["n n"]:
        """Stationary weight covariance to leading order in ε:  AG + GA = ε D,  that is  G_kl = ε D_kl / (λ_k + λ_l).

        han2021 (2.10), where 2D is ε D(0); with momentum ε / (1 - μ) takes the place of ε.

        Parameters
        ----------
        pair : tuple (i, j), optional
            Two outputs: E[V_iᵀ V_j] instead of the sum over outputs.

        Returns
        -------
        ndarray (n, n)
            Symmetric.

        Examples
        --------
        >>> problem = regression.fit([[1.0], [1.0]], [[0.0], [2.0]])
        >>> Descent(problem, 0.5, 1).leading_order_covariance().round(9)  # εD / 2A
        array([[0.25]])
        """
        lam = self.problem.eigenvalues  # (n,)
        return self.learning_rate / (1 - self.momentum) * self._noise(pair) / np.add.outer(lam, lam)

    def preconditioned_covariance(self, preconditioner: ArrayLike) -> Array["n n"]:
        """Stationary weight covariance of  V' = V - ε(VS - ξ)P, exact:  PAG + GAP = ε P(E[SGS] + D)P.

        Solved as plain descent on the inputs P^{1/2} x, whose learning-rate threshold counts.

        Parameters
        ----------
        preconditioner : array_like (n, n)
            P, positive definite, in the PCA basis.

        Returns
        -------
        ndarray (n, n)
            In the PCA basis.

        Examples
        --------
        >>> problem = regression.fit([[1.0], [1.0]], [[0.0], [2.0]])
        >>> Descent(problem, 1.0, 1).preconditioned_covariance([[0.5]]).round(4)
        array([[0.3333]])
        """
        problem, size = self.problem, len(self.problem.eigenvalues)
        preconditioner = checks.symmetric("preconditioner", preconditioner, size=size, definite="strict")  # (n, n)
        values, vectors = np.linalg.eigh(preconditioner)  # (n,), (n, n)
        root = vectors * np.sqrt(values) @ vectors.T  # (n, n)
        inner = regression.fit(problem.inputs @ root, problem.targets)
        wanted = "leave no direction of the inputs weaker than another by the factor 1e20 in the mean square"
        checks.fail_if(len(inner.eigenvalues) < size, "preconditioner", wanted, preconditioner)
        outward = root @ inner.basis  # (n, n)
        return outward @ replace(self, problem=inner).stationary_covariance() @ outward.T

    def _stationary_start(self, pair, replicas, rng):
        """Gaussian V, B with the exact joint second moment that is measured, shared out over outputs or of the pair.

        With a = ελ_k, b = ελ_l, stationarity leaves  E[VᵀB] = (a - μb)/(1 - μ²) · G,  E[BᵀB] = (a + b)/(1 + μ) · G.
        """
        outputs, size = self.problem.optimum.shape
        if pair is not None:
            checks.fail_if(self.momentum > 0, "start", "be an array where a pair of outputs has momentum", "stationary")
            i, k = pair
            exact = {each: self._solved(each) for each in dict.fromkeys([(i, i), pair, (k, k)])}  # (n, n) each
            joint = np.block([[exact[i, i], exact[pair]], [exact[pair], exact[k, k]]]) if i != k else exact[pair]
            state = rng.standard_normal((replicas, len(joint))) @ psd_root(joint).T
            return state.reshape(replicas, -1, size), None  # (replicas, 1 or 2, n)
        spread = self._whole / outputs  # (n, n)
        if self.momentum == 0:
            return rng.standard_normal((replicas, outputs, size)) @ psd_root(spread).T, None  # (replicas, p, n)
        mu, rates = self.momentum, self.learning_rate * self.problem.eigenvalues  # (n,)
        cross = np.subtract.outer(rates, mu * rates) / (1 - mu**2) * spread  # (n, n)
        speed = np.add.outer(rates, rates) / (1 + mu) * spread  # (n, n)
        root = psd_root(np.block([[spread, cross], [cross.T, speed]]))  # (2n, 2n)
        both = rng.standard_normal((replicas, outputs, 2 * size)) @ root.T  # (replicas, p, 2n)
        return both[..., :size], both[..., size:]

    def simulate(
        self, *, steps: int, replicas: int, rng: Rng, start: str | ArrayLike = "stationary", burn_in: int = 0,
        pair: tuple[int, int] | None = None, record_every: int | None = None, blocks: int | None = None,
        lagged: bool = True, workers: int = 1,
    ) -> Averages:  # fmt: skip
        """Independent replicas of the descent, and their time averages, han2021 (3.3), (B1).

        From the default start, the law of independent minibatches, their averages have no bias; those of minibatches
        in epochs, or from another start, need a `burn_in` of some 1/(ελ) of the smallest eigenvalue that matters.
        Another processor may round differently.

        Parameters
        ----------
        steps, replicas : int
            Length and number of the runs.
        rng : int, SeedSequence or Generator
            Block b draws from its b-th child, whatever the `workers`.
        start : "stationary" or array_like (p, n), (replicas, p, n)
            V, with Δ = 0; an array where a pair has momentum.
        burn_in : int
            Steps unseen, before `steps`.
        pair : tuple (i, j), optional
            Run these outputs only and measure E[V_iᵀ V_j].
        record_every : int, optional
            One state in so many enters the averages; divides the steps, by default 5 or the next divisor below.
        blocks : int, optional
            Groups of replicas, averaged one by one; divides the replicas, by default 10 or the next divisor below.
        lagged : bool
            Take E[V_nᵀ V_{n+1}] as well, which can double the time of a run with many inputs.
        workers : int
            Threads.

        Returns
        -------
        Averages

        Raises
        ------
        ValueError
            If the runs leave the floating-point range, or have no stationary state to start from.

        Examples
        --------
        >>> from lib.common.estimate import Estimate
        >>> problem = regression.fit([[1.0], [1.0]], [[0.0], [2.0]])  # A = S = D = 1: G = ε / (2 - ε)
        >>> run = Descent(problem, 0.5, 1).simulate(steps=1000, replicas=20, rng=1, record_every=5, blocks=10)
        >>> bool(abs(Estimate.of(run.second_moment[:, 0, 0]).sigmas(1 / 3)) < 4)
        True
        """
        outputs, size = self.problem.optimum.shape
        steps, replicas, blocks, record_every = checked_run(steps, replicas, blocks, record_every, seldom=5)
        workers, lagged = checks.integer("workers", workers), checks.boolean("lagged", lagged)
        burn_in = checks.integer("burn_in", burn_in, at_least=0)
        streams = [checks.generator("rng", stream) for stream in children(rng, blocks + 1)]
        if pair is not None:
            self.problem._check_pair(pair)
        rows = list(range(outputs)) if pair is None else list(dict.fromkeys(pair))  # the outputs that are run
        pairs = np.array([(i, i) for i in rows] if pair is None else [(0, len(rows) - 1)])  # (p, 2) or (1, 2)
        shape, velocity = (len(rows), size), None
        if isinstance(start, str) and start == "stationary":
            state, velocity = self._stationary_start(pair, replicas, streams[-1])
        else:
            state = checks.array("start", start)
            if state.shape not in (shape, (replicas, *shape)):
                wanted = f'be "stationary" or have shape {shape} or {(replicas, *shape)}'
                checks.fail("start", wanted, f"shape {state.shape}")
            state = np.array(np.broadcast_to(state, (replicas, *shape)))
        velocity = np.zeros(state.shape) if velocity is None else velocity  # (replicas, p, n)
        grouped = (blocks, replicas // blocks, *shape)
        state, velocity = (np.ascontiguousarray(each.reshape(grouped)) for each in (state, velocity))  # grouped
        data = tuple(map(np.ascontiguousarray, (self.problem.inputs, self.problem.residuals[:, rows])))
        sums = [np.zeros((blocks, *each)) if each else None for each in ((size, size), lagged and (size, size), shape)]
        drawing = self.replacement, self.epochs
        settings = pairs, self.learning_rate, self.momentum, self.batch, (burn_in, steps), record_every, drawing

        def run(b):
            parts = tuple(part if part is None else part[b] for part in sums)  # second, lagged, mean
            _block(state[b], velocity[b], data, *settings, streams[b], parts)

        Parallel(n_jobs=workers, prefer="threads")(delayed(run)(b) for b in range(blocks))
        if not np.isfinite(state).all() or not all(np.isfinite(part).all() for part in sums if part is not None):
            wanted = f"keep the replicas inside the floating-point range for {steps} steps"
            checks.fail("learning_rate", wanted, self.learning_rate)
        records = replicas // blocks * (steps // record_every)
        averages = (part if part is None else part / records for part in sums)
        return Averages(*averages, state.reshape(replicas, *shape), self.learning_rate)

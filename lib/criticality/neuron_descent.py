"""Stochastic gradient descent of the toy neuron y = wx + b: many replicas side by side, with the steps they take.

Arguments of the data are those of :mod:`lib.criticality.equilibria`.  Source: kukleva2024, eqs. (2.3), (5.2).
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.criticality import _neuron, _slopes

CHUNK = 2**16  # inputs drawn at a time


@dataclass(frozen=True, eq=False)
class Descent:
    """Parameters after the steps counted in `steps`, and the next step of each replica, none from the last."""

    steps: np.ndarray  # (n,)
    weight: np.ndarray  # (n, R)
    bias: np.ndarray  # (n, R)
    weight_step: np.ndarray  # (n-1, R), ẇ
    bias_step: np.ndarray  # (n-1, R), ḃ
    label: np.ndarray  # (n-1, R), share of class 1 in the batch: 0 or 1 for M = 1

    @property
    def amplitude(self):
        """Length of the steps with the sign of ḃ: the s of :mod:`lib.criticality.step_density` at frozen parameters."""
        return np.copysign(np.hypot(self.weight_step, self.bias_step), self.bias_step)  # (n-1, R)


def simulate(
    composition,
    start,
    learning_rate,
    steps,
    *,
    rng,
    batch=1,
    every=1,
    means=(0.0, 1.0),
    deviation=0.25,
    priors=(0.5, 0.5),
):
    """Descent of R replicas,  ẇ = -γ ⟨h(wx + b) x⟩_M,  ḃ = -γ ⟨h(wx + b)⟩_M,  seen every so many steps.

    A longer run with the same seed begins like a shorter one.  `composition`: loss after activation; `start` (R, 2): w,
    b; `learning_rate`: γ > 0; `steps`: a multiple of `every`; `rng`: int, SeedSequence or Generator; `batch`, `every`:
    M, steps between records; `means`, `deviation`, `priors`: μ, σ, π.  Returns a Descent; RuntimeError if it diverges.

    >>> from lib.criticality.compositions import named
    >>> found = simulate(named("ReLU + squared"), [[0.5, 0.0]] * 100, 0.05, 500, rng=1, every=100)
    >>> found.weight.shape, bool(abs(found.weight[-1].mean() - 0.929) < 0.02)
    ((6, 100), True)
    """
    composition, means, deviation, priors = _neuron.checked_data(composition, means, deviation, priors)
    start = checks.array("start", start, shape=(None, 2))  # (R, 2)
    checks.fail_if(len(start) == 0, "start", "hold one or more replicas", start)
    rate = checks.number("learning_rate", learning_rate, above=0)
    every, steps, batch = checks.integer("every", every), checks.integer("steps", steps), checks.integer("batch", batch)
    checks.fail_if(steps % every, "steps", f"be a multiple of every = {every}", steps)
    rng = checks.generator("rng", rng)
    count, chunk = steps // every, max(1, CHUNK // (batch * len(start)))
    weight, bias = np.empty((2, count + 1, len(start)))  # (n, R), (n, R)
    moves = np.empty((3, count, len(start)))  # (3, n-1, R)
    w, b = start.T.copy()  # (R,), (R,)
    with np.errstate(over="ignore", invalid="ignore"):  # a descent that diverges is told below
        for step in range(steps):
            if step % chunk == 0:
                labels = (rng.random((chunk, batch, len(start))) < priors[1]).astype(float)  # (chunk, M, R)
                middle = means[0] + (means[1] - means[0]) * labels  # (chunk, M, R)
                inputs = middle + deviation * rng.standard_normal(labels.shape)  # (chunk, M, R)
            x, t = inputs[step % chunk], labels[step % chunk]  # (M, R), (M, R)
            y = w * x + b  # (M, R)
            h = _slopes.slopes(composition, y, t == 1)[0]  # (M, R)
            if not (np.isfinite(y).all() and np.isfinite(h).all()):
                raise RuntimeError(f"the descent diverged at step {step}: take a smaller learning_rate")
            move_w, move_b = (h * x).sum(axis=0) * (-rate / batch), h.sum(axis=0) * (-rate / batch)  # (R,), (R,)
            if step % every == 0:
                weight[step // every], bias[step // every] = w, b
                moves[:, step // every] = move_w, move_b, t.mean(axis=0)
            w, b = w + move_w, b + move_b  # (R,), (R,)
    weight[-1], bias[-1] = w, b
    if not (np.isfinite(weight[-1]).all() and np.isfinite(bias[-1]).all()):
        raise RuntimeError("the descent diverged at its end: take a smaller learning_rate")
    return Descent(np.arange(0, steps + 1, every), weight, bias, *moves)


def dead_fraction(composition, weight, bias, *, threshold=1e-4, means=(0.0, 1.0), deviation=0.25, priors=(0.5, 0.5)):
    """Share of replicas that hardly any input moves:  π_0 P_0(h ≠ 0) + π_1 P_1(h ≠ 0) < threshold.

    `composition`: loss after activation; `weight`, `bias` (..., R): of the replicas; `threshold`: in (0, 1); `means`,
    `deviation`, `priors`: μ, σ, π.  Returns (...).

    >>> from lib.criticality import compositions
    >>> float(dead_fraction(compositions.named("clip + cross-entropy"), [2.0, 2.0], [-0.5, 40.0]))
    0.5
    """
    composition, means, deviation, priors = _neuron.checked_data(composition, means, deviation, priors)
    threshold = checks.number("threshold", threshold, above=0, below=1)
    weight = checks.array("weight", weight)  # (..., R)
    checks.fail_if(weight.ndim == 0 or weight.size == 0, "weight", "hold one or more replicas", weight)
    bias = checks.array("bias", bias, shape=weight.shape)  # (..., R)
    live = _neuron.live_both(composition, weight, bias, means, deviation)  # (2, ..., R)
    return np.mean(np.tensordot(priors, live, axes=1) < threshold, axis=-1)

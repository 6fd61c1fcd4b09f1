"""Exact sampling of linear patch networks: readouts at given filters and filters at given readouts, in turn.

Each has a Gaussian posterior given the other, drawn without error; only the alternation takes time to forget.  Source:
ringel2025talk, the deck, slides on convolutional networks; the sampler is not in it.
"""

from collections.abc import Callable

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields import _data
from lib.fields.networks import _readouts
from lib.fields.patches.posterior import _patched
from lib.fields.patches.shared_filters import PatchNetwork


def sample(
    network: PatchNetwork, inputs: ArrayLike, targets: ArrayLike, chains: int, steps: int, rng: Rng, *,
    burn_in: int | None = None, observable: Callable | None = None,
) -> Array["..."]:  # fmt: skip
    """Samples of a linear patch network: readouts given filters and filters given readouts, in turn, without error.

    A linear model  y = Φθ + noise of variance T  with the prior  θ ~ N(0, v)  has the posterior sample
    θ = θ_0 + vΦᵀ(vΦΦᵀ + T)⁻¹(y - Φθ_0 - ξ),  with θ_0 drawn from the prior and ξ from the noise (Matheron's rule).  A
    sweep costs 2P²d and a solution, for any number of channels.

    Parameters
    ----------
    network : PatchNetwork
        One, of whole sizes, of ridge T > 0, not lost in rounding.
    inputs, targets : array_like (P, N_p, S), (P,)
        X, y; P = 0 leaves the prior.
    chains, steps : int
        M, each starts in the prior; sweeps kept.
    rng : int, SeedSequence or Generator
    burn_in : int
        Sweeps thrown away first, by default as many as are kept, and 100 or more.
    observable : function, optional
        Of w (M, C, S), or (M, N_p, C, S) of own filters, and a (M, N_p, C), whose value (M, ...) is kept, by default
        the map β_i = Σ_c a_ic w_c (M, N_p, S), of which the network is f = Σ_i β_i·x_i.

    Returns
    -------
    ndarray (steps, M, ...)

    Examples
    --------
    >>> x = np.random.default_rng(1).standard_normal((60, 2, 5))
    >>> draws = sample(PatchNetwork(2, 5, 20, 0.1), x, x[:, 0, 0], 4, 100, rng=2, burn_in=100)
    >>> float(draws.mean(axis=(0, 1)).round(1)[0, 0])  # β_11
    1.0
    """
    x, y, channels, (ridge, readout, weight) = _patched(network, inputs, targets)  # (P, N_p, S), (P,)
    chains, steps = checks.integer("chains", chains), checks.integer("steps", steps)
    burn_in = max(steps, 100) if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
    if observable is not None and not callable(observable):
        checks.fail("observable", "be a function of the weights and readouts", observable)
    random, (patches, size) = checks.generator("rng", rng), x.shape[1:]
    readout, weight = readout / (patches * channels), weight / size
    flat, shared = x.reshape(len(x), patches * size), network.shared  # (P, d)

    def answer(moved, start, variance, first):
        """Xᵀ(vΦΦᵀ + T)⁻¹(y - Φθ_0 - ξ), (M, N_p, S);  ΦΦᵀ = `moved` Xᵀ,  Φθ_0 = X `start`."""
        matrix = variance * moved.reshape(chains, *flat.shape) @ flat.T + ridge * np.eye(len(y))  # (M, P, P)
        if first:
            values = np.linalg.eigvalsh(matrix)  # (M, P)
            _readouts.refuse_singular(np.where(_data.sound(values[:, :1], values[:, -1:]), 0, np.inf), ridge)
        noise = np.sqrt(ridge) * random.standard_normal((chains, len(y)))  # (M, P)
        missing = y - start.reshape(chains, -1) @ flat.T - noise  # (M, P)
        solved = np.linalg.solve(matrix, missing[..., None])[..., 0]  # (M, P)
        return (solved @ flat).reshape(chains, patches, size)  # (M, N_p, S)

    def mapped(w, a):
        """β (M, N_p, S); shared filters have one axis of patches of length 1."""
        return (a[:, :, None] @ w)[:, :, 0]

    def draw():
        return np.sqrt(weight) * random.standard_normal((chains, 1 if shared else patches, channels, size))

    w, kept = draw(), None  # (M, 1 or N_p, C, S)
    for n in range(burn_in + steps):
        a = np.sqrt(readout) * random.standard_normal((chains, patches, channels))  # (M, N_p, C)
        moved = (x.swapaxes(0, 1) @ (w.swapaxes(2, 3) @ w)).swapaxes(1, 2)  # (M, P, N_p, S)
        a += readout * mapped(w.swapaxes(2, 3), answer(moved, mapped(w, a), readout, n == 0))
        w = draw()
        if shared:
            wanted = answer((a @ a.swapaxes(1, 2))[:, None] @ x, mapped(w, a), weight, n == 0)  # (M, N_p, S)
            w += weight * (a.swapaxes(1, 2) @ wanted)[:, None]
        else:
            wanted = answer((a**2).sum(axis=2)[:, None, :, None] * x, mapped(w, a), weight, n == 0)  # (M, N_p, S)
            w += weight * a[..., None] * wanted[:, :, None]
        if n < burn_in:
            continue
        seen = (w[:, 0] if shared else w).copy(), a
        value = checks.array("observable", mapped(w, a) if observable is None else observable(*seen))  # (M, ...)
        if kept is None:
            if value.shape[:1] != (chains,):
                checks.fail("observable", f"return one row for each of {chains} chains", f"shape {value.shape}")
            kept = np.empty((steps, *value.shape))  # (steps, M, ...)
        kept[n - burn_in] = value
    return kept

"""Monte Carlo of the N overlaps of a wide net with its teacher: what the saddle of one neuron leaves out.

log det A keeps the overlaps of the relu together, whose one-neuron action has no minimum.  Source: ringel2025talk, the
deck, slides on the staircase target, whose saddle is the limit N → ∞ at fixed d, s_a² P_e and P_e/N; the integral over
the readouts, free lengths and the sampler are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks, hmc
from lib.common.estimate import Estimate
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields.overlaps import _moves
from lib.fields.overlaps.single_index import SingleIndex, _read


@dataclass(frozen=True, eq=False)
class OverlapChains:
    """C chains of S records each, after burn-in; n components of the target."""

    target: Array[" n"]  # Y
    residuals: Array["S C n"]  # A⁻¹Y; b and √6 c of the staircase
    second_moment: Array["S C"]  # mean of m² over the neurons
    fourth_moment: Array["S C"]  # mean of m⁴
    outliers: Array["S C"]  # fraction of the neurons with |m| > barrier
    edges: Array[" E"]  # of the B = E - 1 bins of the histogram
    histogram: Array["C B"]  # density of m over all records; what lies beyond the edges is left out
    acceptance: Array["2"]  # of the local and of the independent proposals after burn-in; 0 where there were none
    perpendicular: Array["S C"]  # mean of q⊥ over the neurons
    outlying_perpendicular: Array["S C"]  # mean of q⊥ over the outliers, not a number where there are none
    last: Array["... C N"]  # the last overlaps, a start; (2, C, N) overlaps and q⊥ if lengths are free

    def learnabilities(self) -> Array["S C k"]:
        """1 - residual/target of the k components that the target has, for :func:`lib.common.hmc.summary`."""
        seen = self.target != 0  # (n,)
        return 1 - self.residuals[..., seen] / self.target[seen]  # (S, C, n')

    def kurtosis(self) -> float:
        """⟨m⁴⟩/⟨m²⟩² over all records; 3 for a Gaussian density of the overlaps."""
        return float(self.fourth_moment.mean() / self.second_moment.mean() ** 2)

    def outlier_perpendicular(self) -> Estimate:
        """Mean q⊥ of all the outliers of all records and its error."""
        share = float(self.outliers.mean())
        if share == 0:
            checks.fail("barrier", "be one that some neuron is beyond", "no outliers")
        total = self.outliers * np.nan_to_num(self.outlying_perpendicular)  # (S, C)
        mean = float(total.mean()) / share
        # A ratio, to first order in its fluctuations.
        return Estimate(mean, float(hmc.summary(total - mean * self.outliers).error) / share)


def planted(
    network: SingleIndex, chains: int, fraction: float, overlap: float, rng: Rng, *, squared_length: float | None = None
) -> Array["... C N"]:
    """Overlaps to start from: the given fraction of the neurons at ±m_0, the rest drawn from the prior N(0, σ_w²/d).

    Chains from here and from the prior alone stay apart in a metastable phase.

    Parameters
    ----------
    network : SingleIndex
    chains : int
        C.
    fraction : float
        From 0 to 1; the number of neurons is rounded.
    overlap : float
        m_0 >= 0; its signs are random.
    rng : int, SeedSequence or Generator
    squared_length : float
        q⊥ > 0 of the planted neurons, for free lengths alone; the rest draw theirs from the prior.

    Returns
    -------
    ndarray (C, N)
        The planted ones first; (2, C, N), overlaps and q⊥, for free lengths.

    Examples
    --------
    >>> network = SingleIndex("erf", [1.0, -0.7], 10_000, 4, 600.0, perpendicular="free")
    >>> np.abs(planted(network, 1, 0.5, 1.5, rng=1, squared_length=0.3)).round(1).tolist()
    [[[1.5, 1.5, 0.0, 0.0]], [[0.3, 0.3, 1.0, 1.0]]]
    """
    dimension, width, variance = _read(network).dimension, network.width, network.weight_variance
    chains = checks.integer("chains", chains)
    fraction = checks.number("fraction", fraction, at_least=0, at_most=1)
    overlap = checks.number("overlap", overlap, at_least=0)
    random = checks.generator("rng", rng)
    wanted = "be given for free lengths alone"
    checks.fail_if(network.free != (squared_length is not None), "squared_length", wanted, squared_length)
    m = np.sqrt(variance / dimension) * random.standard_normal((chains, width))  # (C, N)
    count = round(fraction * width)
    m[:, :count] = overlap * random.choice([-1.0, 1.0], size=(chains, count))  # (C, count)
    if not network.free:
        return m
    lengths = variance / dimension * random.chisquare(dimension - 1, m.shape)  # (C, N)
    lengths[:, :count] = checks.number("squared_length", squared_length, above=0)
    return np.stack([m, lengths])  # (2, C, N)


def _start(start, model, free, randoms):
    """Checked or drawn overlaps (C, N) and q⊥ (C, N)."""
    chains, n, d, s = len(randoms), model.width, model.dimension, model.variance
    if start is None:
        m = np.sqrt(s / d) * np.stack([random.standard_normal(n) for random in randoms])  # (C, N)
        return m, np.stack([s / d * random.chisquare(d - 1, n) for random in randoms]) if free else np.full(m.shape, s)
    state = checks.array("start", start, shape=(2, chains, n) if free else (chains, n))  # (2, C, N) or (C, N)
    m, across = state if free else (state, np.full(state.shape, s))  # (C, N), (C, N)
    reach = _moves.FARTHEST * np.sqrt(s)
    checks.entries("start", m, at_least=-reach, at_most=reach)
    checks.entries("start", across, above=0, at_most=reach**2)
    return m, across


def sample(
    network: SingleIndex, chains: int, steps: int, rng: Rng, *, start: ArrayLike | None = None,
    burn_in: int | None = None, every: int = 1, independence: float = 0.5, barrier: float | None = None,
    edge: float | None = None, bins: int = 100,
) -> OverlapChains:  # fmt: skip
    """Chains of the N overlaps in their posterior e^{-E}, with what the theory of one neuron speaks of.

    Averaged over inputs x ~ N(0, I_d), a net f = Σ_c a_c φ(w_c·x) sees a teacher through the overlaps m_c = w_c·w_* and
    the squared lengths q⊥ = |w_⊥|² of its weights across.  With the readouts integrated out they have the energy

        E = Σ_c [d m_c²/2σ_w² + d q⊥_c/2σ_w² - ½(d - 3) log q⊥_c] + ½ log det A + ½ P_e YᵀA⁻¹Y,
        A = 1 + P_e (s_a²/N) Σ_c ĥ(m_c) ĥ(m_c)ᵀ,

    with ĥ of :func:`lib.fields.overlaps.single_index.projections` at |w_c|² = q⊥_c + m_c².  The residual is A⁻¹Y.  The
    pull on an outlier is O(d) and shortens its q⊥ by O(1), where lengths are free.  One neuron is moved at a time, by
    small steps and by draws that do not depend on where it is.

    Parameters
    ----------
    network : SingleIndex
        Of P_e s_a² max(1, σ_w²) <= 1e10.
    chains, steps : int
        C, and S records of each chain.
    rng : int or SeedSequence
        Chain c draws from its c-th child.
    start : array_like (C, N), optional
        First overlaps, of size up to 30 σ_w, by default from the prior; for free lengths (2, C, N), overlaps and q⊥,
        above 0 and up to 900 σ_w².
    burn_in, every : int
        Sweeps thrown away first, by default as many as are recorded; sweeps from one record to the next.
    independence : float
        Share of the independent draws, which tunnel between phases, from 0 to below 1.
    barrier : float
        |m| above which a neuron counts as an outlier, by default 0.75 σ_w.
    edge, bins : float, int
        The histogram reaches from -edge to edge, by default 4 σ_w, in so many bins.

    Returns
    -------
    OverlapChains

    Examples
    --------
    >>> network = SingleIndex("erf", [1.0, -0.7], 50, 300, 600.0, readout_variance=8.0, perpendicular="free")
    >>> run = sample(network, 4, 500, rng=1, burn_in=500, barrier=0.75, edge=4.0)
    >>> round(float(run.perpendicular.mean()), 2), round(run.outlier_perpendicular().mean, 1)  # outliers are shorter
    (0.98, 0.4)
    """
    free, model = _read(network).free, _moves.model(network)
    chains, steps = checks.integer("chains", chains), checks.integer("steps", steps)
    every, bins = checks.integer("every", every), checks.integer("bins", bins)
    burn_in = steps * every if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
    share, scale = checks.number("independence", independence, at_least=0, below=1), np.sqrt(model.variance)
    barrier = 0.75 * scale if barrier is None else checks.number("barrier", barrier, above=0)
    edge = 4 * scale if edge is None else checks.number("edge", edge, above=0)
    randoms = [checks.generator("rng", child) for child in children(rng, chains)]
    m, across = _start(start, model, free, randoms)  # (C, N), (C, N)
    residuals, histogram = np.zeros((steps, chains, len(model.target))), np.zeros((chains, bins))  # (S, C, n), (C, B)
    records, counts = np.zeros((steps, chains, 5)), np.zeros((chains, 2, 2))  # accepted and proposed, local and not
    for c, random in enumerate(randoms):
        _moves.chain(
            m[c], across[c], free, model, burn_in, every, share, barrier, edge,
            records[:, c], residuals[:, c], histogram[c], counts[c], random,
        )  # fmt: skip
    accepted, proposed = counts.sum(axis=0)  # (2,), (2,)
    edges, rates = np.linspace(-edge, edge, bins + 1), accepted / np.maximum(proposed, 1)  # (B + 1,), (2,)
    second, fourth, outliers, length, outlying = np.moveaxis(records, -1, 0)  # (S, C) each
    last = np.stack([m, across]) if free else m  # (2, C, N) or (C, N)
    return OverlapChains(
        model.target, residuals, second, fourth, outliers, edges, histogram, rates, length, outlying, last
    )

r"""Monte Carlo of the N overlaps of a wide net with its teacher: what the saddle of one neuron leaves out, at any width.

Averaged over inputs x ~ N(0, I_d), a net f = Σ_c a_c φ(w_c·x) meets a teacher of one direction through its overlaps m_c = w_c·w_* alone.  With
the readouts integrated out, and |w_c|² = σ_w² + m_c², they have the density e^{-E},

    E(m_1, …, m_N) = Σ_c d m_c²/2σ_w² + ½ log det A + ½ P_e YᵀA⁻¹Y,    A = 1 + P_e (s_a²/N) Σ_c ĥ(m_c) ĥ(m_c)ᵀ,

where ĥ holds the components of φ on the orthonormal Hermite polynomials of w_*·x, of :mod:`lib.fields.overlaps.single_index`, and Y those of the teacher.  The
residual is A⁻¹Y.  One neuron is moved at a time, by small steps and by draws that do not depend on where it is; both leave e^{-E} as it is.
Also for the relu, whose one-neuron action has no minimum: log det A keeps the N overlaps together.

In a network the perpendicular part of w_c is free.  Its squared length q⊥ has the prior (σ_w²/d) χ²_{d-1} and ĥ depends on |w_c|² = q⊥ + m_c²,
so that E is one of the N pairs and gains  Σ_c [d q⊥/2σ_w² - ½(d - 3) log q⊥].  The pull on an outlier is O(d) and shortens its q⊥ by O(1).
Source: ringel2025talk, the deck, slides on the staircase target, with q⊥ = σ_w²; the integral over the readouts, free lengths and the
sampler are not in it.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.fields import hmc
from lib.fields.overlaps import _perpendicular
from lib.fields.overlaps._overlap_moves import chain
from lib.foundations.sampling import Average

DEGREES = {"erf": ((1, 3), (1, 3, 5)), "relu": ((0, 1, 2, 4),)}  # bases that a target may have; its length says which
FARTHEST = 30.0  # largest start in units of σ_w: beyond, the density of the independent draws is no number


@dataclass(frozen=True, eq=False)
class OverlapChains:
    """C chains of S records each, after burn-in; n components of the target."""

    target: np.ndarray  # (n,)  Y
    residuals: np.ndarray  # (S, C, n)  A⁻¹Y; b and √6 c of the staircase
    second_moment: np.ndarray  # (S, C)  mean of m² over the neurons
    fourth_moment: np.ndarray  # (S, C)  mean of m⁴
    outliers: np.ndarray  # (S, C)  fraction of the neurons with |m| > barrier
    edges: np.ndarray  # (B + 1,)  of the histogram
    histogram: np.ndarray  # (C, B)  density of m over all records; what lies beyond the edges is left out
    acceptance: np.ndarray  # (2,)  of the local and of the independent proposals after burn-in; 0 where there were none
    perpendicular: np.ndarray  # (S, C)  mean of q⊥ = |w_⊥|² over the neurons; σ_w² where it is fixed
    outlying_perpendicular: np.ndarray  # (S, C)  mean of q⊥ over the outliers, not a number where there are none
    last: (
        np.ndarray
    )  # (C, N)  the last overlaps, from which another run may start; with free lengths (2, C, N), overlaps and q⊥

    def learnabilities(self):
        """1 - residual/target of the components that the target has, array (S, C, n'); :func:`lib.fields.hmc.summary` gives mean and error."""
        seen = self.target != 0  # (n,)
        return 1 - self.residuals[..., seen] / self.target[seen]  # (S, C, n')

    def kurtosis(self):
        """⟨m⁴⟩/⟨m²⟩² over all records; 3 for a Gaussian density of the overlaps."""
        return float(self.fourth_moment.mean() / self.second_moment.mean() ** 2)

    def outlier_perpendicular(self):
        """Mean q⊥ of all the outliers of all records and its error, ``sampling.Average``."""
        share = float(self.outliers.mean())
        if share == 0:
            checks.fail("barrier", "be one that some neuron is beyond", "no outliers")
        total = self.outliers * np.nan_to_num(self.outlying_perpendicular)  # (S, C)
        mean = float(total.mean()) / share
        return Average(
            mean, float(hmc.summary(total - mean * self.outliers).error) / share
        )  # a ratio, to first order in its fluctuations


def _model(activation, target, dimension, width, effective_samples, weight_variance, readout_variance):
    """The arguments that every function on overlaps shares: (relu, Y, d, N, P_e, σ_w², P_e s_a²/N)."""
    if not isinstance(activation, str) or activation not in DEGREES:
        checks.fail("activation", f"be one of {', '.join(DEGREES)}", activation)
    y = checks.entries("target", target, at_least=-1e9, at_most=1e9, ndim=1)  # (n,)
    lengths = [len(degrees) for degrees in DEGREES[activation]]
    if len(y) not in lengths or not y.any():
        checks.fail(
            "target", f"have {' or '.join(map(str, lengths))} components, not all zero, for {activation}", target
        )
    dimension, width = checks.integer("dimension", dimension), checks.integer("width", width)
    variance = checks.number("weight_variance", weight_variance, at_least=1e-9, at_most=1e9)
    readout = checks.number("readout_variance", readout_variance, above=0, at_most=1e9)
    # Above, the 1 in A would be lost in the rounding of a matrix of low rank.
    samples = checks.number(
        "effective_samples", effective_samples, at_least=0, at_most=1e10 / (readout * max(1.0, variance))
    )
    return activation == "relu", y, dimension, width, samples, variance, samples * readout / width


def _prior_lengths(random, dimension, variance, size):
    """q⊥ of its prior, array of the given size."""
    return variance / dimension * random.chisquare(dimension - 1, size)


def planted(dimension, width, chains, fraction, overlap, seed, *, weight_variance=1.0, squared_length=None):
    r"""Overlaps to start from: the given fraction of the neurons at ±m_0, the rest drawn from the prior N(0, σ_w²/d).

    Chains from here and chains from the prior alone, with a fraction of zero, show a metastable phase: they stay apart.
    Source: not in the source, ringel2025talk.

    Parameters
    ----------
    dimension : int            d; >= 1
    width : int                N; >= 1
    chains : int               C; >= 1
    fraction : float           0 <= fraction <= 1; the number of neurons is rounded to the nearest integer
    overlap : float            m_0; >= 0; the signs are random
    seed : int, SeedSequence or Generator
    weight_variance : float    σ_w²; > 0
    squared_length : float     optional, for free lengths: q⊥ of the planted neurons, > 0, that of the rest from its prior; d >= 2

    Returns
    -------
    array (C, N)               the planted ones first; with a squared length (2, C, N), overlaps and q⊥

    Examples
    --------
    >>> np.abs(planted(10_000, 4, 1, 0.5, 1.5, seed=1)).round(1).tolist()
    [[1.5, 1.5, 0.0, 0.0]]
    >>> planted(10_000, 4, 1, 0.5, 1.5, seed=1, squared_length=0.3)[1].round(1).tolist()
    [[0.3, 0.3, 1.0, 1.0]]
    """
    dimension = _perpendicular.dimension(dimension, squared_length is not None)
    width, chains = checks.integer("width", width), checks.integer("chains", chains)
    fraction = checks.number("fraction", fraction, at_least=0, at_most=1)
    overlap = checks.number("overlap", overlap, at_least=0)
    variance = checks.number("weight_variance", weight_variance, above=0)
    random = checks.generator("seed", seed)
    m = np.sqrt(variance / dimension) * random.standard_normal((chains, width))  # (C, N)
    count = round(fraction * width)
    m[:, :count] = overlap * random.choice([-1.0, 1.0], size=(chains, count))  # (C, count)
    if squared_length is None:
        return m
    lengths = _prior_lengths(random, dimension, variance, m.shape)  # (C, N)
    lengths[:, :count] = checks.number("squared_length", squared_length, above=0)
    return np.stack([m, lengths])  # (2, C, N)


def sample(
    activation, target, dimension, width, effective_samples, chains, steps, seed, *, weight_variance=1.0, readout_variance=1.0,
    start=None, burn_in=None, every=1, independence=0.5, barrier=None, edge=None, bins=100, perpendicular="fixed",
):  # fmt: skip
    r"""Chains of the N overlaps in the density e^{-E} of the module, with what the theory of one neuron speaks of.

    A sweep proposes one move for each neuron, N updates in all; the step needs no tuning.  Source: ringel2025talk, the deck, slides on
    the staircase target, whose saddle is the limit N → ∞ at fixed d, s_a² P_e and P_e/N.

    Parameters
    ----------
    activation : str                  "erf" or "relu"
    target : array (n,)               Y on orthonormal Hermite polynomials of degrees 1, 3 or 1, 3, 5 (erf), 0, 1, 2, 4 (relu); not all zero
    dimension : int                   d; >= 1
    width : int                       N; >= 1
    effective_samples : float         P_e = 1/κ, samples per unit ridge; 0 leaves the prior; P_e s_a² max(1, σ_w²) <= 1e10
    chains : int                      C; >= 1
    steps : int                       S, records of each chain; >= 1
    seed : int or SeedSequence        chain c draws from its c-th child
    weight_variance : float           σ_w²; > 0
    readout_variance : float          s_a², with the mean-field factor: σ_a²/χ; > 0
    start : array, optional           first overlaps (C, N), as :func:`planted`, of size up to 30 σ_w; with free lengths (2, C, N), overlaps and
                                      q⊥, above 0 and up to 900 σ_w²; default: drawn from the prior, the lazy phase
    burn_in : int, optional           sweeps thrown away first; >= 0; default: as many as are recorded
    every : int                       sweeps from one record to the next; >= 1
    independence : float              share of the independent draws, which tunnel between phases; 0 <= share < 1; zero leaves them metastable
    barrier : float, optional         |m| above which a neuron counts as an outlier; > 0; default: 0.75 σ_w
    edge : float, optional            the histogram reaches from -edge to edge; > 0; default: 4 σ_w
    bins : int                        B; >= 1
    perpendicular : str               "fixed": q⊥ = σ_w², as the source has it; "free": q⊥ is sampled with m, as in a network; d >= 2

    Returns
    -------
    OverlapChains

    Raises
    ------
    ValueError                        if an argument is outside its range, or the 1 in A would be lost in rounding

    Examples
    --------
    >>> run = sample("erf", [1.0, -0.7], 50, 100, 0.0, 4, 1000, seed=1)  # no data: the prior, of variance 1/d
    >>> run.residuals[0, 0].tolist(), round(50 * float(run.second_moment.mean()), 1), round(run.kurtosis(), 1)
    ([1.0, -0.7], 1.0, 3.0)
    >>> run = sample("erf", [1.0, -0.7], 50, 300, 600.0, 4, 500, seed=1, readout_variance=8.0, perpendicular="free")
    >>> round(float(run.perpendicular.mean()), 2), round(run.outlier_perpendicular().mean, 1)  # outliers are shorter
    (0.98, 0.4)
    """
    free = _perpendicular.is_free(perpendicular)
    model = _model(
        activation,
        target,
        _perpendicular.dimension(dimension, free),
        width,
        effective_samples,
        weight_variance,
        readout_variance,
    )
    relu, y, dimension, width, samples, variance, gain = model
    chains, steps, every = (
        checks.integer("chains", chains),
        checks.integer("steps", steps),
        checks.integer("every", every),
    )
    burn_in = steps * every if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
    share = checks.number("independence", independence, at_least=0, below=1)
    barrier = 0.75 * np.sqrt(variance) if barrier is None else checks.number("barrier", barrier, above=0)
    edge = 4 * np.sqrt(variance) if edge is None else checks.number("edge", edge, above=0)
    bins, seeds = checks.integer("bins", bins), checks.seed_sequence("seed", seed)
    randoms = [
        checks.generator("seed", child)
        for child in np.random.SeedSequence(seeds.entropy, spawn_key=seeds.spawn_key).spawn(chains)
    ]
    reach = FARTHEST * np.sqrt(variance)
    if start is None:
        start = np.sqrt(variance / dimension) * np.stack(
            [random.standard_normal(width) for random in randoms]
        )  # (C, N)
        if free:
            start = np.stack(
                [start, [_prior_lengths(random, dimension, variance, width) for random in randoms]]
            )  # (2, C, N)
    state = checks.array("start", start, shape=(2, chains, width) if free else (chains, width))  # (2, C, N) or (C, N)
    m, across = state if free else (state, np.full(state.shape, variance))  # (C, N), (C, N)
    checks.entries("start", m, at_least=-reach, at_most=reach)
    checks.entries("start", across, above=0, at_most=reach**2)
    residuals, records, histogram = (
        np.zeros((steps, chains, len(y))),
        np.zeros((steps, chains, 5)),
        np.zeros((chains, bins)),
    )
    counts = np.zeros((chains, 2, 2))  # (C, 2, 2)  accepted and proposed, local and independent
    for c, random in enumerate(randoms):
        chain(m[c], across[c], relu, free, variance, dimension, gain, samples, y, burn_in, every, share, barrier, edge,
              records[:, c], residuals[:, c], histogram[c], counts[c], random)  # fmt: skip
    accepted, proposed = counts.sum(axis=0)  # (2,), (2,)
    edges, rates = np.linspace(-edge, edge, bins + 1), accepted / np.maximum(proposed, 1)  # (B + 1,), (2,)
    second, fourth, outliers, length, outlying = np.moveaxis(records, -1, 0)  # (S, C) each
    return OverlapChains(y, residuals, second, fourth, outliers, edges, histogram, rates, length, outlying, state)

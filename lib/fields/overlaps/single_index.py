"""Units φ(w·x) that see a single-index teacher y(w_*·x), x ~ N(0, I): projections, and networks of N of them.

A unit is known by its overlap m = w·w_* and the squared length |w_⊥|² across, which in networks is free, (σ_w²/d) χ² of
d - 1 degrees in the prior; the source fixes it at σ_w².  Source: ringel2025talk (the deck), slides on kernel adaptation
(with real τ = P_e r), the scaling approach and the staircase target, with P_e for n/σ²; not in it: free lengths,
components of ReLU and of general degree, κ for ReLU, how He_3 mixes with He_1, free energies, convexity, states with
some units kept beyond the barrier, and the sampler.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks, hmc
from lib.common.estimate import Estimate
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields.kernels import effective_ridge
from lib.fields.networks.prior import Prior
from lib.fields.overlaps import _closure, _density, _moves, _projections


@dataclass(frozen=True, eq=False)
class Saddle:
    """Residual, overlaps and phase of a network."""

    residuals: Array["2"]  # b and c, of He_1 and He_3
    learnabilities: Array["2"]  # R_1 = 1 - b and R_3 = 1 - c/ε; R_3 is nan for ε = 0
    coupling: float  # A
    landau: Array["3"]  # r_2, r_4, r_6
    variance: float  # ⟨m²⟩
    kurtosis: float  # ⟨m⁴⟩/⟨m²⟩²; 3 for a Gaussian
    minimum: float  # m_0 > 0, the outermost minimum of S; 0 if S has its only one at m = 0
    barrier: float  # m > 0 of the maximum inside m_0; 0 if there is none
    height: float  # S there, above S(0) = 0
    outliers: float  # ρ, the fraction of units with |m| beyond the barrier; 0 without m_0
    perpendicular: float  # mean |w_⊥|² of the units with |m| beyond the barrier; of those within it if there is no m_0
    free_energy: float  # -min Φ, the action of the saddle; without data 0
    overlaps: Array[" G"]  # a grid of m >= 0
    density: Array[" G"]  # p(m) = p(-m), normalized over both signs


@dataclass(frozen=True, eq=False)
class Branches:
    """Stationary points of the free energy, in ascending order of their ratio; K of them, an odd number."""

    variance: Array[" K"]  # B, of the overlaps
    ratio: Array[" K"]  # dB/σ_w²; one in the prior
    residuals: Array["K n"]  # r_n
    learnabilities: Array["K n"]  # R_n = 1 - r_n/Y_n; nan where Y_n = 0
    stable: Array[" K"]  # whether a minimum
    free_energy: Array[" K"]  # Γ, per unit
    equilibrium: int  # which of the K has the lowest


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


def _saddle(units, target, tau, averages, phase, held):
    """Everything that a :class:`Saddle` records."""
    m, density, (minimum, barrier) = averages.overlaps, averages.density, phase  # (G,), (G,)
    residual, share, length = units.residual(tau), held or 0.0, averages.perpendicular  # (2,)
    second, fourth = (2 * float(np.trapezoid(m**power * density, m)) for power in (2, 4))
    if minimum > 0:
        beyond = units.piece(tau, barrier, max(units.reach(tau, barrier), 1.01 * minimum))
        share, length = np.exp(beyond.log - averages.log) if held is None else share, beyond.perpendicular
    learned = _projections.learnabilities(tau / units.samples, target)  # (2,)
    landau = _density.landau(residual, units.coupling, units.d, units.s, units.nodes(tau))  # (3,)
    energy = float(tau @ target - tau @ tau / (2 * units.samples) - units.n * averages.log)
    shape = minimum, barrier, float(units.action(tau, barrier)[0]), float(share), length
    return Saddle(residual, learned, units.coupling, landau, second, fourth / second**2, *shape, energy, m, density)


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


@dataclass(frozen=True, eq=False)
class SingleIndex:
    """The network  f = Σ_c a_c φ(w_c·x),  w_c ~ N(0, σ_w²/d), a_c ~ N(0, s_a²/N),  and its teacher, for x ~ N(0, I).

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    target : array_like (n,)
        Y_n, not all zero, on the orthonormal Hermite polynomials of degrees 1, 3 or 1, 3, 5 (erf), 0, 1, 2, 4 (relu).
    dimension, width : int
        d >= 1, and >= 2 for free lengths; N >= 1.
    effective_samples : float
        P_e = 1/κ >= 0, one over :func:`ridge`; P/T for the equivalent kernel; 0 leaves the prior.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0; mean-field scaling by χ divides s_a² and the ridge behind P_e by χ.  By keyword only.
    perpendicular : str
        |w_⊥|², of the weights across the teacher's direction: "free", as in networks; "fixed", σ_w², the source's.
        By keyword only.

    Examples
    --------
    >>> SingleIndex("erf", staircase(-0.3), 50, 300, 600.0).degrees.tolist()
    [1, 3]
    """

    activation: str
    target: Array[" n"]
    dimension: int
    width: int
    effective_samples: float
    weight_variance: float = field(default=1.0, kw_only=True)
    readout_variance: float = field(default=1.0, kw_only=True)
    perpendicular: str = field(default="free", kw_only=True)

    def __post_init__(self):
        sizes = [len(basis) for basis in _projections.BASES[_projections.basis(self.activation, None)[0]]]
        y = _projections.target(self.target)  # (n,)
        wanted = f"have {' or '.join(map(str, sizes))} components for {self.activation}"
        checks.fail_if(y.size not in sizes, "target", wanted, self.target)
        scales = {
            name: _projections.variance(name, getattr(self, name)) for name in ("weight_variance", "readout_variance")
        }
        samples = checks.number("effective_samples", self.effective_samples, at_least=0, at_most=1e60)
        d, width = _projections.dimension(self.dimension, self.perpendicular), checks.integer("width", self.width)
        checks.keep(self, target=y, dimension=d, width=width, effective_samples=samples, **scales)

    @property
    def degrees(self) -> Array[" n"]:
        """Degrees of the components of the target."""
        bases = _projections.BASES[self.activation]
        return np.array(next(basis for basis in bases if len(basis) == self.target.size))  # (n,)

    @property
    def coupling(self) -> float:
        """Strength of feature learning in the action of one erf unit,  A = 2 s_a² P_e²/(π d N)."""
        return 2 * self.readout_variance * self.effective_samples**2 / (np.pi * (self.dimension * self.width))

    def saddle(self, *, outliers: float | None = None) -> Saddle:
        """Saddle for a target of He_1 and He_3:  (1 + P_e M)(b, √6c) = Y,  M = s_a²⟨ĥĥᵀ⟩ over the density e^{-S(m)}.

        Of erf units.  With τ = P_e(b, √6c) and ĥ of :func:`projections` the residual and the density are
        a stationary point of

            Φ(τ) = N log⟨exp[(s_a²/2N)(τ·ĥ)²]⟩ + |τ|²/(2P_e) - τ·Y,    Y = (1, √6ε),

        averaged over a unit's prior, m ~ N(0, σ_w²/d), and Φ is strictly convex: the saddle is unique, and Newton's
        method finds it from anywhere.  A lazy and a learned branch differ only while units cannot cross the barrier of
        S. Outliers of free lengths have |w_⊥|² below σ_w² even as d → ∞, for that makes a unit steeper along w_*.

        Parameters
        ----------
        outliers : float, optional
            Fraction of the units, from 0 to below 1, kept beyond the barrier of S, which none can cross then: 0 is the
            lazy state that waits for its first unit to escape, a larger one a planted state, refused if S loses its
            barrier. Its free energy is at least that of the saddle, and equal if the fraction is the saddle's.  By
            default they are in equilibrium.

        Returns
        -------
        Saddle

        Examples
        --------
        >>> network = SingleIndex("erf", [1.0, -0.73], 50, 300, 1000.0, readout_variance=8.0)
        >>> [round(float(network.saddle(outliers=held).learnabilities[1]), 3) for held in (None, 0.0)]
        [0.506, 0.042]
        """
        target, samples = self.target, self.effective_samples  # (2,)
        checks.one_of("activation", self.activation, ["erf"])
        checks.fail_if(target.size != 2, "target", "have two components", target)
        checks.fail_if(samples == 0, "effective_samples", "be > 0", samples)
        sizes, gain = (self.dimension, self.width), self.readout_variance / self.width
        units = _density.Units(*sizes, samples, self.weight_variance, gain, self.coupling, self.perpendicular == "free")
        held = None if outliers is None else checks.number("outliers", outliers, at_least=0, below=1)
        equilibrium = units.minimum(target)
        phase = units.phase(equilibrium[0])
        for _ in range(200):
            if held is None or phase[1] == 0:
                break
            barrier, state = phase[1], units.minimum(target, phase[1], held)
            phase = units.phase(state[0])
            if abs(phase[1] - barrier) <= 1e-12 * barrier:
                return _saddle(units, target, *state, phase, held)
        if held:
            checks.fail("outliers", "be None or small enough for the action to keep its barrier", outliers)
        return _saddle(units, target, *equilibrium, units.phase(equilibrium[0]), None)

    def closure(self, *, isotropic: bool = False) -> Branches:
        """All solutions of the adaptive approach: each unit's weights change their variance along the teacher alone.

        If their density is Gaussian, of variance B along w_* and σ_w²/d across, the units enter through  M(B) =
        s_a²⟨ĥĥᵀ⟩ over m ~ N(0, B), with ĥ of :func:`projections`, and what is left of the target is  r = (1 + P_e
        M)⁻¹Y.  The free energy per unit is, up to a constant and with u = dB/σ_w²,

            Γ(u) = ½(u - 1 - ln u) + (P_e/2N) Y·r,      -2u Γ'(u) = 1 - u + (P_e²/N) rᵀ(u dM/du) r.

        Its stationary points are the adapted states, its minima the stable ones; in equilibrium the lowest is taken.
        With g(m) = (s_a²P_e²/2N)(r·ĥ)²  they solve  1/B = d/σ_w² - ⟨g''⟩:  there the divergence of N(0, B) from the
        density of one unit, e^{-S} with  S = dm²/2σ_w² - g  at the residual r, is stationary.  As N → ∞ at fixed P_e, u
        → 1.

        Parameters
        ----------
        isotropic : bool
            Whether to take the scaling approach: the weights change the scale of their prior alone, Σ = u σ_w² I/d, and
            all d directions pay,  Γ(u) = (d/2)(u - 1 - ln u) + (P_e/2N) Y·r.  A ReLU network has M → uM then: it learns
            what the infinitely wide one does at uP_e.

        Returns
        -------
        Branches

        Examples
        --------
        >>> network = SingleIndex("erf", [1.0, -0.1 * np.sqrt(6)], 20, 100, 5400.0, readout_variance=0.2)
        >>> [network.closure(isotropic=isotropic).ratio.round(2).tolist() for isotropic in (False, True)]
        [[2.86], [1.05]]
        """
        return Branches(*_closure.solve(self, checks.boolean("isotropic", isotropic)))

    def planted(
        self, chains: int, fraction: float, overlap: float, rng: Rng, *, squared_length: float | None = None
    ) -> Array["... C N"]:
        """Overlaps to start from: the given fraction of the neurons at ±m_0, the rest from the prior N(0, σ_w²/d).

        Chains from here and from the prior alone stay apart in a metastable phase.

        Parameters
        ----------
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
        >>> network = SingleIndex("erf", [1.0, -0.7], 10_000, 4, 600.0)
        >>> np.abs(network.planted(1, 0.5, 1.5, rng=1, squared_length=0.3)).round(1).tolist()
        [[[1.5, 1.5, 0.0, 0.0]], [[0.3, 0.3, 1.0, 1.0]]]
        """
        dimension, width, variance = self.dimension, self.width, self.weight_variance
        free = self.perpendicular == "free"
        chains = checks.integer("chains", chains)
        fraction = checks.number("fraction", fraction, at_least=0, at_most=1)
        overlap = checks.number("overlap", overlap, at_least=0)
        random = checks.generator("rng", rng)
        wanted = "be given for free lengths alone"
        checks.fail_if(free != (squared_length is not None), "squared_length", wanted, squared_length)
        m = np.sqrt(variance / dimension) * random.standard_normal((chains, width))  # (C, N)
        count = round(fraction * width)
        m[:, :count] = overlap * random.choice([-1.0, 1.0], size=(chains, count))  # (C, count)
        if not free:
            return m
        lengths = variance / dimension * random.chisquare(dimension - 1, m.shape)  # (C, N)
        lengths[:, :count] = checks.number("squared_length", squared_length, above=0)
        return np.stack([m, lengths])  # (2, C, N)

    def sample(
        self, chains: int, steps: int, rng: Rng, *, start: ArrayLike | None = None, burn_in: int | None = None,
        every: int = 1, independence: float = 0.5, wall: float | None = None, barrier: float | None = None,
        edge: float | None = None, bins: int = 100,
    ) -> OverlapChains:  # fmt: skip
        """Chains of the N overlaps in their posterior e^{-E}, with what the theory of one neuron speaks of.

        Averaged over inputs x ~ N(0, I_d), a net f = Σ_c a_c φ(w_c·x) sees a teacher through the overlaps m_c = w_c·w_*
        and the squared lengths q⊥ = |w_⊥|² of its weights across.  With the readouts integrated out they have the
        energy

            E = Σ_c [d m_c²/2σ_w² + d q⊥_c/2σ_w² - ½(d - 3) log q⊥_c] + ½ log det A + ½ P_e YᵀA⁻¹Y,
            A = 1 + P_e (s_a²/N) Σ_c ĥ(m_c) ĥ(m_c)ᵀ,

        with ĥ of :func:`projections` at |w_c|² = q⊥_c + m_c².  The residual is A⁻¹Y.  The pull on an outlier is O(d)
        and shortens its q⊥ by O(1), where lengths are free.  One neuron is moved at a time, by small steps and by draws
        that do not depend on where it is.

        Parameters
        ----------
        chains, steps : int
            C, and S records of each chain;  P_e s_a² max(1, σ_w²) <= 1e10.
        rng : int or SeedSequence
            Chain c draws from its c-th child.
        start : array_like (C, N), optional
            First overlaps, of size up to 30 σ_w, by default from the prior; for free lengths (2, C, N), overlaps and
            q⊥, above 0 and up to 900 σ_w².
        burn_in, every : int
            Sweeps thrown away first, by default as many as are recorded; sweeps from one record to the next.
        independence : float
            Share of the independent draws, which tunnel between phases, from 0 to below 1.
        wall : float, optional
            |m| > 0 beyond which the density is zero: with one at the barrier of the action the network stays lazy.
            What of the start lies beyond is moved to it.
        barrier : float
            |m| above which a neuron counts as an outlier, by default 0.75 σ_w.
        edge, bins : float, int
            The histogram reaches from -edge to edge, by default 4 σ_w, in so many bins.

        Returns
        -------
        OverlapChains

        Examples
        --------
        >>> network = SingleIndex("erf", [1.0, -0.7], 50, 300, 600.0, readout_variance=8.0)
        >>> run = network.sample(4, 500, rng=1, burn_in=500, barrier=0.75, edge=4.0)
        >>> round(float(run.perpendicular.mean()), 2), round(run.outlier_perpendicular().mean, 1)  # these are shorter
        (0.98, 0.4)
        """
        free, model = self.perpendicular == "free", _moves.model(self)
        chains, steps = checks.integer("chains", chains), checks.integer("steps", steps)
        every, bins = checks.integer("every", every), checks.integer("bins", bins)
        burn_in = steps * every if burn_in is None else checks.integer("burn_in", burn_in, at_least=0)
        share, scale = checks.number("independence", independence, at_least=0, below=1), np.sqrt(model.variance)
        barrier = 0.75 * scale if barrier is None else checks.number("barrier", barrier, above=0)
        edge = 4 * scale if edge is None else checks.number("edge", edge, above=0)
        randoms = [checks.generator("rng", child) for child in children(rng, chains)]
        wall = np.inf if wall is None else checks.number("wall", wall, above=0)
        m, across = _start(start, model, free, randoms)  # (C, N), (C, N)
        m = np.clip(m, -wall, wall)  # (C, N)
        residuals, histogram = (
            np.zeros((steps, chains, len(model.target))),
            np.zeros((chains, bins)),
        )  # (S, C, n), (C, B)
        records, counts = np.zeros((steps, chains, 5)), np.zeros((chains, 2, 2))  # accepted and proposed, local and not
        for c, random in enumerate(randoms):
            _moves.chain(
                m[c], across[c], free, model, burn_in, every, share, wall, barrier, edge,
                records[:, c], residuals[:, c], histogram[c], counts[c], random,
            )  # fmt: skip
        accepted, proposed = counts.sum(axis=0)  # (2,), (2,)
        edges, rates = np.linspace(-edge, edge, bins + 1), accepted / np.maximum(proposed, 1)  # (B + 1,), (2,)
        second, fourth, outliers, length, outlying = np.moveaxis(records, -1, 0)  # (S, C) each
        last = np.stack([m, across]) if free else m  # (2, C, N) or (C, N)
        return OverlapChains(
            model.target, residuals, second, fourth, outliers, edges, histogram, rates, length, outlying, last
        )


def projections(
    activation: str, overlap: ArrayLike, across: float = 1.0, *, degrees: ArrayLike | None = None
) -> Array["... n"]:
    """Components ĥ_n(m) = ⟨φ(w·x) He_n(v)/√n!⟩ of one unit on those of v = w_*·x, at q = |w|² = |w_⊥|² + m².

    erf:  ĥ_{2k+1} = √(2n!/π) (-½)^k/(k! n) [2m²/(1 + 2q)]^{n/2} sign(m),  n = 2k + 1; even ones vanish.
    ReLU: ĥ_0 = √(q/2π),  ĥ_1 = m/2,  ĥ_n = √q He_{n-2}(0)/√(2πn!) (m/√q)^n  for even n >= 2; higher odd ones vanish.

    Parameters
    ----------
    activation : str
        "erf" or "relu".
    overlap : array_like (...)
        m.
    across : float
        |w_⊥|² > 0; σ_w² in many dimensions.
    degrees : array_like (n,), optional
        Different integers from 0 to 20, by default 1, 3 for erf and 0, 1, 2, 4 for ReLU.

    Returns
    -------
    ndarray (..., n)

    Examples
    --------
    >>> projections("erf", [1.0], 0.5, degrees=[1, 3]).round(4).tolist()  # 1/√π and -1/√(24π)
    [[0.5642, -0.1152]]
    """
    activation, listed = _projections.basis(activation, degrees)
    m = checks.array("overlap", overlap)  # (...)
    length = np.hypot(np.sqrt(_projections.variance("across", across)), m)  # (...)
    return checks.finite("overlap", _projections.components(activation, listed, m, length))


def staircase(epsilon: float) -> Array["2"]:
    """Components (1, √6 ε) of the target  y = He_1(v) + ε He_3(v)  on He_1 and He_3/√6, a target of erf units.

    Parameters
    ----------
    epsilon : float
        ε.

    Returns
    -------
    ndarray (2,)

    Examples
    --------
    >>> staircase(-0.3).round(4).tolist()
    [1.0, -0.7348]
    """
    return np.array([1.0, np.sqrt(6) * checks.number("epsilon", epsilon, at_least=-1e300, at_most=1e300)])  # (2,)


def relu_teacher(epsilon: float) -> Array["4"]:
    """Components 0, 1, ε/√π, -ε/√(12π) of the target  y = v + ε(|v| - √(2/π)),  the first four of infinitely many.

    Parameters
    ----------
    epsilon : float
        ε.

    Returns
    -------
    ndarray (4,)
        Y_0, Y_1, Y_2, Y_4.

    Examples
    --------
    >>> relu_teacher(0.3).round(4).tolist()
    [0.0, 1.0, 0.1693, -0.0489]
    """
    epsilon = checks.number("epsilon", epsilon)
    return np.array([0.0, 1.0, epsilon / np.sqrt(np.pi), -epsilon / np.sqrt(12 * np.pi)])  # (4,)


def ridge(
    activation: str, dimension: int, samples: ArrayLike, ridge: ArrayLike, *, weight_variance: float = 1.0,
    readout_variance: float = 1.0,
) -> float | Array["..."]:  # fmt: skip
    """Effective ridge per sample κ >= T/P of the linear degree (erf) or the first three (ReLU) of a network.

    κ is the root of  P = (T + τ)/κ + Σ_ℓ g_ℓ λ_ℓ/(λ_ℓ + κ)  over ℓ = 1 (erf) or ℓ = 0, 1, 2 (ReLU), with λ_ℓ and g_ℓ of
    :func:`lib.fields.networks.prior.Prior.spectrum`.  What they leave of the variance,  τ = K(x, x) - Σ_ℓ g_ℓ λ_ℓ,
    lies in O(d³) modes and acts as a ridge.

    Parameters
    ----------
    activation : str
        "erf" or "relu".
    dimension : int
        d >= 2.
    samples, ridge : array_like
        P > 0 and T >= 0, which broadcast.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> round(ridge("erf", 20, 100, 0.1), 5)
    0.00172
    """
    activation, _ = _projections.basis(activation, None)
    given = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    scales = {name: _projections.variance(name, value) for name, value in given.items()}
    degrees = [1] if activation == "erf" else [0, 1, 2]
    spectrum = Prior(activation, **scales).spectrum(dimension, degrees)
    total = Prior(activation, **scales).variance(np.ones((1, dimension)))[0]  # that of all inputs on the sphere
    # Below zero by rounding alone, where erf is as good as linear.
    tail = max(total - spectrum.trace, 0.0)
    bare = checks.entries("ridge", ridge, at_least=0)  # (...)
    return effective_ridge.RidgeTheory(spectrum, samples, ridge=bare + tail).kappa


def lazy(
    activation: str, target: ArrayLike, dimension: int, effective_samples: ArrayLike, *, weight_variance: float = 1.0,
    readout_variance: float = 1.0, degrees: ArrayLike | None = None, perpendicular: str = "free",
) -> tuple[Array["... n"], Array["... n"]]:  # fmt: skip
    """What an infinitely wide network leaves of the target:  (1 + P_e M) r = Y,  M = s_a²⟨ĥĥᵀ⟩ over m ~ N(0, σ_w²/d).

    Its weights keep their prior.  For Gaussian inputs the cubic component mixes with the linear one, since |x|²
    fluctuates:  as long as P_e λ_3 << 1, the staircase target has, to leading order in 1/d,
    R_3 ≃ -σ_w²/d/((1 + 2σ_w²)ε) R_1, negative for ε > 0, though nothing cubic is learned.  Beyond, R_3 of free weights
    lies between that of |w_⊥|² = σ_w² and that of the sphere.

    Parameters
    ----------
    activation : str
        "erf" or "relu".
    target : array_like (n,)
        Y_n, not all zero.
    dimension : int
        d >= 1, and >= 2 for free weights.
    effective_samples : array_like (...)
        P_e = 1/κ >= 0.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.
    degrees : array_like (n,), optional
        Of the target, different integers from 0 to 20, by default 1, 3 for erf and 0, 1, 2, 4 for ReLU.
    perpendicular : str
        |w_⊥|²: "free", as in networks; "fixed", the source's, σ_w²; "sphere", σ_w² - m², so that |w|² = σ_w².

    Returns
    -------
    residuals, learnabilities : ndarray (..., n)
        r_n, and R_n = 1 - r_n/Y_n, nan where Y_n = 0.

    Examples
    --------
    >>> lazy("erf", staircase(0.3), 50, 840.0, degrees=[1, 3])[1].round(4).tolist()
    [0.8658, -0.0173]
    """
    activation, listed = _projections.basis(activation, degrees)
    y = _projections.target(target, listed.size)  # (n,)
    d = _projections.dimension(dimension, perpendicular, (*_projections.CHOICES, "sphere"))
    strength = checks.entries("effective_samples", effective_samples, at_least=0)  # (...)
    scale = _projections.variance("weight_variance", weight_variance)
    readout = _projections.variance("readout_variance", readout_variance)
    m, weights = _projections.gaussian_overlap(activation, np.array(scale / d), scale)  # (K,), (K,)
    q, log = _projections.lengths(d, scale, perpendicular == "free")  # (Q,), (Q,)
    length = np.hypot(np.sqrt(q)[:, None], 0 * m if perpendicular == "sphere" else m)  # (Q, K)
    seen = _projections.components(activation, listed, m, length)  # (Q, K, n)
    kernel = np.einsum("qki,qkj,q,k->ij", seen, seen, np.exp(log), weights, optimize=True)  # (n, n)
    with np.errstate(over="ignore", invalid="ignore"):
        left = checks.finite("effective_samples", _projections.residuals(kernel, readout * strength, y))  # (..., n)
    return left, _projections.learnabilities(left, y)

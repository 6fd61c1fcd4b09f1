"""The staircase target y = He_1(v) + ε He_3(v): the density of overlaps m = w·w_* in an erf network of finite width.

Every unit sees the action S(m) of the residual bHe_1 + cHe_3, which follows from the density e^{-S} of all units.
Source: ringel2025talk (the deck), slides on the staircase target and its change of complexity, with P_e for n/σ²; free
lengths, the convexity and states with some units kept beyond the barrier are not in it.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields.overlaps import _density, _projections, single_index
from lib.fields.overlaps.single_index import SingleIndex, _read


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
class Action:
    """Action of one unit,  S(m) = dm²/(2σ_w²) - log⟨exp{d A u [b - 2cu]²}⟩  with  u = m²/(1 + 2|w_⊥|² + 2m²).

    The average is over |w_⊥|², or at its fixed value, where  S = d{m²/(2σ_w²) - A u [b - 2cu]²}.

    Parameters
    ----------
    residual : array_like (2,)
        b, c, of He_1 and He_3.
    coupling : float
        A >= 0, that of a :class:`lib.fields.overlaps.single_index.SingleIndex`.  The action keeps its shape as the
        network grows only at fixed  s_a² P_e/d  and  P_e/N.
    dimension : int
        d; for fixed lengths 1 gives S/d.
    weight_variance : float
        σ_w² > 0.  By keyword only.
    perpendicular : str
        |w_⊥|² across the teacher's direction: "fixed", σ_w², the source's; "free", (σ_w²/d) χ² of d - 1 degrees in the
        prior, d >= 2.  By keyword only.

    Examples
    --------
    >>> Action([0.02, -0.3], 100.0, 10).at([0.0, 1.0, 2.0]).round(3).tolist()
    [0.0, 1.08, -0.629]
    """

    residual: Array["2"]
    coupling: float
    dimension: int = 1
    weight_variance: float = field(default=1.0, kw_only=True)
    perpendicular: str = field(default="fixed", kw_only=True)

    def __post_init__(self):
        left = checks.entries("residual", self.residual, at_least=-1e50, at_most=1e50, shape=(2,))  # (2,)
        strength = checks.number("coupling", self.coupling, at_least=0, at_most=1e150)
        s = checks.number("weight_variance", self.weight_variance, above=0)
        d = _projections.dimension(self.dimension, self.perpendicular)
        checks.keep(self, residual=left, coupling=strength, dimension=d, weight_variance=s)

    def _all(self):
        slope, free = _density.slope(self.residual, self.coupling), self.perpendicular == "free"
        nodes = _projections.lengths(self.dimension, self.weight_variance, free, slope)  # (K,), (K,)
        return self.residual, self.coupling, self.dimension, self.weight_variance, nodes

    def at(self, overlap: ArrayLike) -> float | Array["..."]:
        """S(m).

        Parameters
        ----------
        overlap : array_like (...)
            m.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> round(Action([0.02, -0.3], 100.0, 10, perpendicular="free").at(1.0), 3)
        -3.309
        """
        m = checks.array("overlap", overlap)  # (...)
        with np.errstate(over="ignore", invalid="ignore"):
            return checks.plain(checks.finite("overlap", _density.action(m, *self._all())[0]))

    def landau(self) -> Array["3"]:
        """Landau coefficients of  S/d = r_2 m² + r_4 m⁴ + r_6 m⁶ + ...

        At fixed length s = σ_w²:  r_2 = 1/(2s) - Ab²/(1 + 2s),  r_4 = 2Ab(b + 2c)/(1 + 2s)²,  r_6 = -4A(b² + 4bc +
        c²)/(1 + 2s)³.  The first-order route is r_4 < 0 < r_2.  Cut off at m⁶ the action is often unbounded; the full
        one never is.

        Returns
        -------
        ndarray (3,)
            r_2, r_4, r_6.

        Examples
        --------
        >>> Action([0.1, -0.3], 30.0).landau().round(4).tolist()
        [0.4, -0.3333, 0.0889]
        """
        return _density.landau(*self._all())  # (3,)

    def extrema(self) -> Array[" E"]:
        """Overlaps m > 0 with S'(m) = 0 at fixed length s = σ_w², in closed form; the last is a minimum.

        w²(b - c + cw)(b - 3c + 3cw) = (1 + 2s)/(2sA)  with  w = (1 + 2s)/(1 + 2s + 2m²).

        Returns
        -------
        ndarray (E,)
            In increasing order.

        Examples
        --------
        >>> Action([0.02, -0.3], 100.0).extrema().round(4).tolist()  # the barrier and the minimum
        [0.7766, 1.7446]
        """
        checks.one_of("perpendicular", self.perpendicular, ["fixed"])
        return _density.extrema(self.residual, self.coupling, self.weight_variance)  # (E,)


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


def solve(network: SingleIndex, *, outliers: float | None = None) -> Saddle:
    """The saddle of a network of finite width:  (1 + P_e M)(b, √6c) = Y,  M = s_a²⟨ĥĥᵀ⟩ over the density e^{-S(m)}.

    With τ = P_e(b, √6c) and ĥ of :func:`lib.fields.overlaps.single_index.projections` the residual and the density are
    a stationary point of

        Φ(τ) = N log⟨exp[(s_a²/2N)(τ·ĥ)²]⟩ + |τ|²/(2P_e) - τ·Y,    Y = (1, √6ε),

    averaged over a unit's prior, m ~ N(0, σ_w²/d), and Φ is strictly convex: the saddle is unique, and Newton's method
    finds it from anywhere.  A lazy and a learned branch differ only while units cannot cross the barrier of S.
    Outliers of free lengths have |w_⊥|² below σ_w² even as d → ∞, for that makes a unit steeper along w_*.

    Parameters
    ----------
    network : SingleIndex
        Of erf units, a target of two components, and P_e > 0.
    outliers : float, optional
        Fraction of the units, from 0 to below 1, kept beyond the barrier of S, which none can cross then: 0 is the lazy
        state that waits for its first unit to escape, a larger one a planted state, refused if S loses its barrier.
        Its free energy is at least that of the saddle, and equal if the fraction is the saddle's.  By default they are
        in equilibrium.

    Returns
    -------
    Saddle

    Examples
    --------
    >>> network = SingleIndex("erf", [1.0, -0.73], 50, 300, 1000.0, readout_variance=8.0, perpendicular="free")
    >>> [round(float(solve(network, outliers=held).learnabilities[1]), 3) for held in (None, 0.0)]
    [0.506, 0.042]
    """
    target, samples = _read(network, activation="erf").target, network.effective_samples  # (2,)
    checks.fail_if(target.size != 2, "target", "have two components", target)
    checks.fail_if(samples == 0, "effective_samples", "be > 0", samples)
    sizes, gain = (network.dimension, network.width), network.readout_variance / network.width
    units = _density.Units(*sizes, samples, network.weight_variance, gain, network.coupling, network.free)
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


def samples_to_learn(
    dimension: int, width: int | None, epsilon: float, *, level: float = 0.5, weight_variance: float = 1.0,
    readout_variance: float = 1.0, perpendicular: str = "fixed",
) -> float:  # fmt: skip
    """Sample complexity: the smallest P_e at which the cubic learnability R_3 reaches a level.

    At fixed N/d it grows as d for the adaptive network and as d³ for the lazy one, where it tends to π(1 + 2σ_w²)³
    d³/(16 σ_w⁶ s_a²)  for R_3 = ½.

    Parameters
    ----------
    dimension, width : int
        d >= 1, and >= 2 for free lengths; N, or None for the lazy network.
    epsilon : float
        ε, not zero.
    level : float
        R_3, between 0 and 1.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.
    perpendicular : str
        |w_⊥|², "fixed", σ_w², or "free", (σ_w²/d) χ² of d - 1 degrees in the prior.

    Returns
    -------
    float
        P_e.

    Examples
    --------
    >>> ways = {"perpendicular": "free"}
    >>> [round(samples_to_learn(50, width, -0.3, **ways) / 50**power, 2) for width, power in ((200, 1), (None, 3))]
    [48.66, 6.08]
    """
    d, n = _projections.dimension(dimension, perpendicular), None if width is None else checks.integer("width", width)
    given = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    ways = {name: checks.number(name, value, above=0) for name, value in given.items()}
    ways["perpendicular"] = perpendicular
    slope = checks.number("epsilon", epsilon, at_least=-1e50, at_most=1e50)
    checks.fail_if(slope == 0, "epsilon", "not be zero", epsilon)
    level, target = checks.number("level", level, above=0, below=1), single_index.staircase(slope)  # (), (2,)

    def short(log_samples):
        samples = np.exp(log_samples)
        if n is None:
            return single_index.lazy("erf", target, d, samples, **ways)[1][1] - level
        return solve(SingleIndex("erf", target, d, n, samples, **ways)).learnabilities[1] - level

    # Up from too few samples to teach anything, as the kernel is below s_a².
    steps = np.log(1e-3 / ways["readout_variance"]) + 0.5 * np.arange(200)  # (200,)
    first = next((k for k, step in enumerate(steps) if short(step) >= 0), 0)
    if first == 0:
        checks.fail("level", "be above R_3 without samples and below what a network can reach", level)
    return float(np.exp(brentq(short, *steps[first - 1 : first + 1], xtol=1e-12, rtol=1e-12)))

"""The staircase target y = He_1(v) + ε He_3(v): the density of overlaps m = w·w_* in an erf network of finite width.

Every unit sees the action S(m) of the residual bHe_1 + cHe_3, which follows from the density e^{-S} of all units.  With
τ = P_e(b, √6c) and ĥ of :func:`single_index.projections`, the two are stationary points of

    Φ(τ) = N log⟨exp[(s_a²/2N)(τ·ĥ)²]⟩ + |τ|²/(2P_e) - τ·Y,    Y = (1, √6ε),

averaged over a unit's prior, and Φ is strictly convex: the saddle is unique, and Newton's method finds it from
anywhere.  A lazy and a learned branch differ only while units cannot cross the barrier of S.

In the prior m ~ N(0, σ_w²/d), and the weights across w_* have the squared length |w_⊥|² ~ (σ_w²/d) χ² of d - 1 degrees
("free").  Outliers then have |w_⊥|² below σ_w² even as d → ∞, for that makes a unit steeper along w_*.
The source keeps |w_⊥|² = σ_w² ("fixed").  `dimension`: d >= 1, and >= 2 for free lengths; `width`: N >= 1;
`effective_samples`: P_e = 1/κ; `epsilon`: ε; `residual` (2,): b, c; `coupling`: A >= 0; `weight_variance`,
`readout_variance`: σ_w², s_a² > 0; `perpendicular`: |w_⊥|², "free" or "fixed".  Source: ringel2025talk (the deck),
slides on the staircase target and its change of complexity, with P_e for n/σ²; free lengths, the convexity and states
with some units kept beyond the barrier are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.fields.overlaps import _density, _projections, single_index


@dataclass(frozen=True, eq=False)
class Saddle:
    """Residual, overlaps and phase of a network; what :func:`solve` returns."""

    residuals: np.ndarray  # (2,) b and c, of He_1 and He_3
    learnabilities: np.ndarray  # (2,) R_1 = 1 - b and R_3 = 1 - c/ε; R_3 is nan for ε = 0
    coupling: float  # A
    landau: np.ndarray  # (3,) r_2, r_4, r_6
    variance: float  # ⟨m²⟩
    kurtosis: float  # ⟨m⁴⟩/⟨m²⟩²; 3 for a Gaussian
    minimum: float  # m_0 > 0, the outermost minimum of S; 0 if S has its only one at m = 0
    barrier: float  # m > 0 of the maximum inside m_0; 0 if there is none
    height: float  # S there, above S(0) = 0
    outliers: float  # ρ, the fraction of units with |m| beyond the barrier; 0 without m_0
    perpendicular: float  # mean |w_⊥|² of the units with |m| beyond the barrier; of those within it if there is no m_0
    free_energy: float  # -min Φ, the action of the saddle; without data 0
    overlaps: np.ndarray  # (G,) a grid of m >= 0
    density: np.ndarray  # (G,) p(m) = p(-m), normalized over both signs


def coupling(dimension, width, effective_samples, *, readout_variance=1.0):
    """Strength of feature learning,  A = 2 s_a² P_e²/(π d N).

    The action keeps its shape as the network grows only at fixed  s_a² P_e/d  and  P_e/N.  `dimension`, `width`,
    `effective_samples`, `readout_variance`: d, N, P_e >= 0, s_a².  Returns A; 0 without samples.

    >>> round(coupling(50, 300, 600.0, readout_variance=8.0), 3)
    122.231
    """
    size = checks.integer("dimension", dimension) * checks.integer("width", width)
    samples = checks.number("effective_samples", effective_samples, at_least=0, at_most=1e60)
    return 2 * checks.number("readout_variance", readout_variance, above=0, at_most=1e25) * samples**2 / (np.pi * size)


def _action_arguments(residual, coupling, weight_variance):
    """Checked (b, c) (2,), A and σ_w²."""
    left = checks.entries("residual", residual, at_least=-1e50, at_most=1e50, shape=(2,))  # (2,)
    strength = checks.number("coupling", coupling, at_least=0, at_most=1e150)
    return left, strength, checks.number("weight_variance", weight_variance, above=0)


def action(overlap, residual, coupling, dimension, *, weight_variance=1.0, perpendicular="free"):
    """Action of one unit,  S(m) = dm²/(2σ_w²) - log⟨exp{d A u [b - 2cu]²}⟩  with  u = m²/(1 + 2|w_⊥|² + 2m²).

    The average is over |w_⊥|², or at its fixed value, where  S = d{m²/(2σ_w²) - A u [b - 2cu]²}.  `overlap` (...): m;
    `residual`, `coupling`, `dimension`, `weight_variance`, `perpendicular`: see the module.  Returns S(m) (...).

    >>> action([0.0, 1.0, 2.0], [0.02, -0.3], 100.0, 10, perpendicular="fixed").round(3).tolist()
    [0.0, 1.08, -0.629]
    """
    free, m = _projections.choice(perpendicular) == "free", checks.array("overlap", overlap)  # (), (...)
    left, strength, s = _action_arguments(residual, coupling, weight_variance)
    d = _projections.dimension(dimension, free)
    with np.errstate(over="ignore", invalid="ignore"):
        nodes = _projections.lengths(d, s, free, _density.slope(left, strength))  # (K,), (K,)
        return checks.finite("overlap", _density.action(m, left, strength, d, s, nodes)[0])[()]


def landau(residual, coupling, *, weight_variance=1.0):
    """Landau coefficients of  S/d = r_2 m² + r_4 m⁴ + r_6 m⁶ + ...  at fixed length, |w_⊥|² = σ_w² = s.

    r_2 = 1/(2s) - Ab²/(1 + 2s),  r_4 = 2Ab(b + 2c)/(1 + 2s)²,  r_6 = -4A(b² + 4bc + c²)/(1 + 2s)³.
    The first-order route is r_4 < 0 < r_2.  Cut off at m⁶ the action is often unbounded; the full one never is.
    `residual`, `coupling`, `weight_variance`: see the module.  Returns r_2, r_4, r_6 (3,).

    >>> landau([0.1, -0.3], 30.0).round(4).tolist()
    [0.4, -0.3333, 0.0889]
    """
    left, strength, s = _action_arguments(residual, coupling, weight_variance)
    return _density.landau(left, strength, 1, s, _projections.lengths(1, s, False))  # (3,)


def extrema(residual, coupling, *, weight_variance=1.0):
    """Overlaps m > 0 with S'(m) = 0 at fixed length, |w_⊥|² = σ_w² = s, in closed form.

    w²(b - c + cw)(b - 3c + 3cw) = (1 + 2s)/(2sA)  with  w = (1 + 2s)/(1 + 2s + 2m²).  The last is a minimum.
    `residual`, `coupling`, `weight_variance`: see the module.  Returns them, increasing (E,).

    >>> extrema([0.02, -0.3], 100.0).round(4).tolist()  # the barrier and the minimum
    [0.7766, 1.7446]
    """
    return _density.extrema(*_action_arguments(residual, coupling, weight_variance))  # (E,)


def _saddle(units, target, tau, averages, phase, held):
    """Everything that a :class:`Saddle` records."""
    m, density, (minimum, barrier) = averages.overlaps, averages.density, phase  # (G,), (G,)
    residual, share, length = units.residual(tau), held or 0.0, averages.perpendicular  # (2,)
    second, fourth = (2 * np.trapezoid(m**power * density, m) for power in (2, 4))
    if minimum > 0:
        beyond = units.piece(tau, barrier, max(units.reach(tau, barrier), 1.01 * minimum))
        share, length = np.exp(beyond.log - averages.log) if held is None else share, beyond.perpendicular
    learned = _projections.learnabilities(tau / units.samples, target)  # (2,)
    landau = _density.landau(residual, units.coupling, units.d, units.s, units.nodes(tau))  # (3,)
    energy = float(tau @ target - tau @ tau / (2 * units.samples) - units.n * averages.log)
    shape = minimum, barrier, float(units.action(tau, barrier)[0]), float(share), length
    return Saddle(residual, learned, units.coupling, landau, second, fourth / second**2, *shape, energy, m, density)


def solve(
    dimension, width, effective_samples, epsilon, *, weight_variance=1.0, readout_variance=1.0, outliers=None,
    perpendicular="free",
):  # fmt: skip
    """The saddle of a network of finite width:  (1 + P_e M)(b, √6c) = Y,  M = s_a²⟨ĥĥᵀ⟩ over the density e^{-S(m)}.

    `outliers`, from 0 to below 1, is the fraction of units kept beyond the barrier of S, which none can cross then: 0
    is the lazy state that waits for its first unit to escape, a larger one a planted state, refused if S loses its
    barrier.  Its free energy is at least that of the saddle, and equal if the fraction is the saddle's.  By default
    they are in equilibrium.  `dimension`, `width`, `effective_samples`, `epsilon`, `weight_variance`,
    `readout_variance`, `perpendicular`: see the module; P_e > 0.  Returns Saddle.

    >>> solve(50, 300, 1000.0, -0.3, readout_variance=8.0).learnabilities.round(3).tolist()
    [1.01, 0.509]
    """
    free = _projections.choice(perpendicular) == "free"
    strength = coupling(dimension, width, effective_samples, readout_variance=readout_variance)
    given = {"effective_samples": effective_samples, "weight_variance": weight_variance}
    samples, s = (checks.number(name, value, above=0) for name, value in given.items())
    d, width = _projections.dimension(dimension, free), checks.integer("width", width)
    gain = float(readout_variance) / width
    units = _density.Units(d, width, samples, s, gain, strength, free)
    target = single_index.staircase(checks.number("epsilon", epsilon, at_least=-1e50, at_most=1e50))  # (2,)
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
    dimension, width, epsilon, *, level=0.5, weight_variance=1.0, readout_variance=1.0, perpendicular="free"
):
    """Sample complexity: the smallest P_e at which the cubic learnability R_3 reaches a level.

    At fixed N/d it grows as d for the adaptive network and as d³ for the lazy one, where it tends to π(1 + 2σ_w²)³
    d³/(16 σ_w⁶ s_a²)  for R_3 = ½.  `width`: N, or None for the lazy network; `level`: R_3, below 1; `dimension`,
    `epsilon`, `weight_variance`, `readout_variance`, `perpendicular`: see the module; ε is not zero.  Returns P_e.

    >>> [round(samples_to_learn(50, width, -0.3) / 50**power, 2) for width, power in ((200, 1), (None, 3))]
    [48.66, 6.08]
    """
    free = _projections.choice(perpendicular) == "free"
    d, n = _projections.dimension(dimension, free), None if width is None else checks.integer("width", width)
    given = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    ways = {name: checks.number(name, value, above=0) for name, value in given.items()}
    ways["perpendicular"] = perpendicular
    slope = checks.number("epsilon", epsilon, at_least=-1e50, at_most=1e50)
    if slope == 0:
        checks.fail("epsilon", "not be zero", epsilon)
    level, target = checks.number("level", level, above=0, below=1), single_index.staircase(slope)  # (), (2,)

    def short(log_samples):
        samples = np.exp(log_samples)
        if n is None:
            return single_index.lazy("erf", target, d, samples, **ways)[1][1] - level
        return solve(d, n, samples, slope, **ways).learnabilities[1] - level

    # Up from too few samples to teach anything, as the kernel is below s_a².
    steps = np.log(1e-3 / ways["readout_variance"]) + 0.5 * np.arange(200)  # (200,)
    first = next((k for k, step in enumerate(steps) if short(step) >= 0), 0)
    if first == 0:
        checks.fail("level", "be above R_3 without samples and below what a network can reach", level)
    return float(np.exp(brentq(short, *steps[first - 1 : first + 1], xtol=1e-12, rtol=1e-12)))

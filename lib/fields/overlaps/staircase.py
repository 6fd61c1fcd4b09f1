r"""The staircase target y = He_1(v) + ε He_3(v): the density of overlaps m = w·w_* in an erf network of finite width.

Every unit sees the action S(m) of the residual bHe_1 + cHe_3, which follows from the density e^{-S} of all units.  With
τ = P_e(b, √6c) and ĥ of :func:`single_index.projections`, the two are stationary points of

    Φ(τ) = N log⟨exp[(s_a²/2N)(τ·ĥ)²]⟩ + |τ|²/(2P_e) - τ·Y,    Y = (1, √6ε),

averaged over a unit's prior, and Φ is strictly convex (a logarithm of exponentials of convex functions of τ): the
saddle is unique, and Newton's method finds it from anywhere.  A lazy and a learned branch differ only while units
cannot cross the barrier of S.  P_e = 1/κ, as in :mod:`single_index`.

In the prior m ~ N(0, σ_w²/d), and the weights across w_* have the squared length |w_⊥|² ~ (σ_w²/d) χ² of d - 1 degrees
("free").  Outliers then have |w_⊥|² below σ_w² even as d → ∞, for that makes a unit steeper along w_*.  The source
keeps |w_⊥|² = σ_w² ("fixed").

Source: ringel2025talk (the deck), slides on the staircase target and its change of complexity, with P_e for n/σ²; free
lengths, the convexity and states with some units kept beyond the barrier are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from lib.common import checks
from lib.fields.overlaps import _overlap_density, _perpendicular, _projections, single_index


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
    r"""Strength of feature learning,  A = 2 s_a² P_e²/(π d N).

    The action keeps its shape as the network grows only at fixed  s_a² P_e/d  and  P_e/N.

    Parameters
    ----------
    dimension : int              d; >= 1
    width : int                  N; >= 1
    effective_samples : float    P_e; >= 0
    readout_variance : float     s_a²; > 0

    Returns
    -------
    float                        A; 0 without samples

    Examples
    --------
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
    r"""Action of one unit,  S(m) = dm²/(2σ_w²) - log⟨exp{d A u [b - 2cu]²}⟩  with  u = m²/(1 + 2|w_⊥|² + 2m²).

    The average is over |w_⊥|², or at its fixed value, where  S = d{m²/(2σ_w²) - A u [b - 2cu]²}.

    Parameters
    ----------
    overlap : float or array (...)    m
    residual : array (2,)             b, c, the components of the residual y - f on He_1 and He_3
    coupling : float                  A; >= 0
    dimension : int                   d; >= 1, and >= 2 for free lengths
    weight_variance : float           σ_w²; > 0
    perpendicular : str               |w_⊥|², "free" or "fixed"

    Returns
    -------
    float or array (...)              S(m)

    Examples
    --------
    >>> for length in ("free", "fixed"):
    ...     print(action([0.0, 1.0, 2.0], [0.02, -0.3], 100.0, 10, perpendicular=length).round(3))
    [ 0.    -3.309 -9.073]
    [ 0.     1.08  -0.629]
    """
    free, m = _perpendicular.choice(perpendicular) == "free", checks.array("overlap", overlap)  # (), (...)
    left, strength, s = _action_arguments(residual, coupling, weight_variance)
    d = _perpendicular.dimension(dimension, free)
    with np.errstate(over="ignore", invalid="ignore"):
        nodes = _perpendicular.lengths(d, s, free, _overlap_density.slope(left, strength))  # (K,), (K,)
        return checks.finite("overlap", _overlap_density.action(m, left, strength, d, s, nodes)[0])[()]


def landau(residual, coupling, *, weight_variance=1.0):
    r"""Landau coefficients of  S/d = r_2 m² + r_4 m⁴ + r_6 m⁶ + ...  at fixed length, |w_⊥|² = σ_w² = s.

    r_2 = 1/(2s) - Ab²/(1 + 2s),  r_4 = 2Ab(b + 2c)/(1 + 2s)²,  r_6 = -4A(b² + 4bc + c²)/(1 + 2s)³.  The first-order
    route is r_4 < 0 < r_2.  Cut off at m⁶ the action is often unbounded; the full one never is.

    Parameters
    ----------
    residual : array (2,)      b, c
    coupling : float           A; >= 0
    weight_variance : float    s; > 0

    Returns
    -------
    array (3,)                 r_2, r_4, r_6

    Examples
    --------
    >>> landau([0.1, -0.3], 30.0).round(4).tolist()
    [0.4, -0.3333, 0.0889]
    """
    left, strength, s = _action_arguments(residual, coupling, weight_variance)
    return _overlap_density.landau(left, strength, 1, s, _perpendicular.lengths(1, s, False))  # (3,)


def extrema(residual, coupling, *, weight_variance=1.0):
    r"""Overlaps m > 0 with S'(m) = 0 at fixed length, |w_⊥|² = σ_w² = s, in closed form.

    w²(b - c + cw)(b - 3c + 3cw) = (1 + 2s)/(2sA)  with  w = (1 + 2s)/(1 + 2s + 2m²).  Minima and maxima take turns, and
    the last one is a minimum.

    Parameters
    ----------
    residual : array (2,)      b, c
    coupling : float           A; >= 0
    weight_variance : float    s; > 0

    Returns
    -------
    array (E,)                 in increasing order; empty if S only rises

    Examples
    --------
    >>> extrema([0.02, -0.3], 100.0).round(4).tolist()  # the barrier and the minimum
    [0.7766, 1.7446]
    """
    return _overlap_density.extrema(*_action_arguments(residual, coupling, weight_variance))  # (E,)


def _saddle(units, target, tau, averages, phase, held):
    """Everything that a :class:`Saddle` records."""
    m, density, (minimum, barrier) = averages.overlaps, averages.density, phase  # (G,), (G,)
    residual, share, length = units.residual(tau), held or 0.0, averages.perpendicular  # (2,)
    second, fourth = (2 * np.trapezoid(m**power * density, m) for power in (2, 4))
    if minimum > 0:
        beyond = units.piece(tau, barrier, max(units.reach(tau, barrier), 1.01 * minimum))
        share, length = np.exp(beyond.log - averages.log) if held is None else share, beyond.perpendicular
    return Saddle(
        residuals=residual,
        learnabilities=_projections.learnabilities(tau / units.samples, target),
        coupling=units.coupling,
        landau=_overlap_density.landau(residual, units.coupling, units.d, units.s, units.nodes(tau)),
        variance=second,
        kurtosis=fourth / second**2,
        minimum=minimum,
        barrier=barrier,
        height=float(units.action(tau, barrier)[0]),
        outliers=float(share),
        perpendicular=length,
        free_energy=float(tau @ target - tau @ tau / (2 * units.samples) - units.n * averages.log),
        overlaps=m,
        density=density,
    )


def solve(
    dimension, width, effective_samples, epsilon, *, weight_variance=1.0, readout_variance=1.0, outliers=None,
    perpendicular="free",
):  # fmt: skip
    r"""The saddle of a network of finite width:  (1 + P_e M)(b, √6c) = Y,  M = s_a²⟨ĥĥᵀ⟩ over the density e^{-S(m)}.

    With ``outliers`` the units cannot cross the barrier of S, and this fraction of them is kept beyond it: 0 is the
    lazy state that waits for its first unit to escape, a larger one a planted state.  Its free energy is at least that
    of the saddle, and equal if the fraction is the saddle's.  Where S has no barrier nothing waits, 0 is the saddle.

    Parameters
    ----------
    dimension : int                  d; >= 1, and >= 2 for free lengths
    width : int                      N; >= 1
    effective_samples : float        P_e = 1/κ; > 0
    epsilon : float                  ε, the cubic part of the target
    weight_variance, readout_variance : float    σ_w² and s_a²; > 0
    outliers : float, optional       from 0 to below 1; default: in equilibrium
    perpendicular : str              |w_⊥|²: "free", as in networks, or "fixed", the source's

    Returns
    -------
    Saddle                           residuals, density of the overlaps, phase

    Raises
    ------
    ValueError                       also if so many units are kept that S loses its barrier

    Examples
    --------
    >>> for length in ("free", "fixed"):
    ...     state = solve(50, 300, 1000.0, -0.3, readout_variance=8.0, perpendicular=length)
    ...     print(state.learnabilities.round(3), round(state.minimum, 2), round(state.perpendicular, 3))
    [1.01  0.509] 1.43 0.276
    [1.008 0.407] 1.67 1.0
    """
    free = _perpendicular.choice(perpendicular) == "free"
    strength = coupling(dimension, width, effective_samples, readout_variance=readout_variance)
    units = _overlap_density.Units(
        d=_perpendicular.dimension(dimension, free),
        n=width,
        samples=checks.number("effective_samples", effective_samples, above=0),
        s=checks.number("weight_variance", weight_variance, above=0),
        gain=float(readout_variance) / width,
        coupling=strength,
        free=free,
    )
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
    r"""Sample complexity: the smallest P_e at which the cubic learnability R_3 reaches a level.

    At fixed N/d it grows as d for the adaptive network and as d³ for the lazy one, where it tends to
    π(1 + 2σ_w²)³ d³/(16 σ_w⁶ s_a²)  for R_3 = ½.

    Parameters
    ----------
    dimension : int              d; >= 1, and >= 2 for free lengths
    width : int or None          N; >= 1, or None for the infinitely wide, lazy network
    epsilon : float              ε; not zero
    level : float                R_3 to reach; above its value at P_e → 0 and below 1
    weight_variance, readout_variance : float    σ_w² and s_a²; > 0
    perpendicular : str          |w_⊥|²: "free", as in networks, or "fixed", the source's

    Returns
    -------
    float                        P_e

    Examples
    --------
    >>> [round(samples_to_learn(50, width, -0.3) / 50**power, 2) for width, power in ((200, 1), (None, 3))]
    [48.66, 6.08]
    """
    free = _perpendicular.choice(perpendicular) == "free"
    d, n = _perpendicular.dimension(dimension, free), None if width is None else checks.integer("width", width)
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

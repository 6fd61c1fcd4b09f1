"""How long a metastable lazy phase lasts: until the first neuron of N crosses the barrier, simulated and predicted.

The N neurons try side by side, so the first crossing takes a time ∝ e^{ΔE}/N, where ΔE is of order d at fixed s_a²P_e/d
and P_e/N.  Source: ringel2025talk, the deck, slides on the staircase target and its first-order transition; escape
times are not in it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import trapezoid
from scipy.linalg import eigh

from lib.common import checks
from lib.common.compiled import loops
from lib.common.estimate import Estimate
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields.overlaps._moves import FARTHEST, model, project, sweep
from lib.fields.overlaps.single_index import SingleIndex, _read

_FINE, _MARGIN = 20, 8.0  # grid points in a deviation of the prior; deviations that the grid goes beyond the barrier
DAMPINGS = 0.5, 0.1, 0.02  # of the iteration for the lazy phase: the next one where the one before does not settle
_POINTS = 6000  # largest grid: its matrix of moves has that many rows


@dataclass(frozen=True, eq=False)
class EscapeTimes:
    """First crossings of C independent nets."""

    times: Array[" C"]  # sweeps, fractions of a sweep included; the limit where the net did not escape
    escaped: Array[" C"]  # bool

    def mean(self) -> Estimate:
        """Mean of exponential times, all sweeps over all escapes, and its error."""
        count = int(self.escaped.sum())
        if count < 2:
            checks.fail("limit", "be long enough for two escapes or more", f"{count} escapes of {len(self.escaped)}")
        return Estimate(float(self.times.sum()) / count, float(self.times.sum()) / count**1.5)


@dataclass(frozen=True, eq=False)
class LazyPhase:
    """The phase of all neurons at |m| < barrier, and the energy of one neuron in it."""

    overlaps: Array[" G"]  # evenly spaced and symmetric; reaches beyond the barrier
    energy: Array[" G"]  # E(m), zero at its minimum inside the barrier
    residuals: Array[" n"]  # A⁻¹Y of the whole net
    second_moment: float  # ⟨m²⟩
    height: float  # ΔE: the largest energy inside the barrier less the smallest


@loops
def _first(m, model, burn_in, step, barrier, outliers, limit, random):
    """Sweeps until `outliers` neurons are beyond the barrier, and whether they are."""
    n = len(model.target)
    h, a, counts, across = np.empty((len(m), n)), np.empty((n, n)), np.zeros((2, 2)), np.full(len(m), model.variance)
    for c in range(len(m)):
        project(m[c], model.relu, across[c], h[c])
    for _ in range(burn_in):
        sweep(m, across, h, a, False, model, 0.0, step, 0.0, barrier, barrier, 0, counts, random)
    for turn in range(limit):
        counts[:] = 0
        if sweep(m, across, h, a, False, model, 0.0, step, 0.0, np.inf, barrier, outliers, counts, random):
            return turn + counts[1, 0] / len(m), True
    return float(limit), False


def _setting(network, barrier):
    """The model of a network of fixed lengths, and the checked barrier."""
    net = model(_read(network, perpendicular="fixed"))
    return net, checks.number("barrier", barrier, above=0, at_most=FARTHEST * np.sqrt(net.variance))


def simulate(
    network: SingleIndex, barrier: float, replicas: int, limit: int, rng: Rng, *, step: float = 0.5, outliers: int = 1,
    burn_in: int = 300,
) -> EscapeTimes:  # fmt: skip
    """Sweeps that pass until a net in the lazy phase has its first outlier, by local moves alone.

    The phase is brought to equilibrium with the way across the barrier closed; then it is opened.  Small steps are
    overdamped Langevin dynamics with time step²σ_w²/2d to a sweep.

    Parameters
    ----------
    network : SingleIndex
        Of fixed perpendicular lengths.
    barrier : float
        |m| to be crossed, > 0, and <= 30 σ_w.
    replicas, limit : int
        C independent nets; sweeps after which a net is given up.
    rng : int or SeedSequence
        Net c draws from its c-th child.
    step : float
        Deviation of the proposed moves in units of the prior's, σ_w/√d.
    outliers : int
        Neurons beyond the barrier that count as an escape, from 1 to N.
    burn_in : int
        Sweeps with the barrier closed.

    Returns
    -------
    EscapeTimes

    Examples
    --------
    >>> network = SingleIndex("erf", [1.0, -0.7], 20, 50, 0.0)  # no data: at 0.6√20 = 2.7σ
    >>> found = simulate(network, 0.6, 40, 10_000, rng=1)
    >>> bool(found.escaped.all()), 5 < found.mean().mean < 25
    (True, True)
    """
    net, barrier = _setting(network, barrier)
    replicas, limit = checks.integer("replicas", replicas), checks.integer("limit", limit)
    step, burn_in = checks.number("step", step, above=0, at_most=1e3), checks.integer("burn_in", burn_in, at_least=0)
    if (outliers := checks.integer("outliers", outliers)) > net.width:
        checks.fail("outliers", f"be at most the width, {net.width}", outliers)
    times, escaped = np.empty(replicas), np.zeros(replicas, dtype=bool)  # (C,), (C,)
    for c, child in enumerate(children(rng, replicas)):
        random = checks.generator("rng", child)
        m = np.sqrt(net.variance / net.dimension) * random.standard_normal(net.width)  # (N,)
        m = np.clip(m, -barrier, barrier)  # (N,)  the barrier is closed, so that burn-in starts inside
        times[c], escaped[c] = _first(m, net, burn_in, step, barrier, outliers, limit, random)
    return EscapeTimes(times, escaped)


def lazy_phase(network: SingleIndex, barrier: float) -> LazyPhase:
    """The lazy phase, kept together by a wall at the barrier: its residuals and the energy E(m) of one neuron.

    Under small local moves the overlaps stay near zero until one of them climbs the barrier of its own energy in the
    field of the others, with A and r = A⁻¹Y without that neuron, and γ = s_a²/N,

        E(m) = d m²/2σ_w² + ½ log(1 + u) - ½ P_e γ (r·ĥ)²/(1 + u),    u = P_e γ ĥᵀA⁻¹ĥ.

    Self-consistent:  A = 1 + P_e s_a² ⟨ĥĥᵀ⟩  with the mean over e^{-E} at |m| < barrier; it exists also where the phase
    is not the one of lowest free energy.  For N → ∞, E is the decoupled action S(m).

    Parameters
    ----------
    network : SingleIndex
        Of fixed perpendicular lengths.
    barrier : float
        Where the wall stands, > 0, and <= 30 σ_w; refused if the grid is too long, or the iteration does not settle.

    Returns
    -------
    LazyPhase

    Examples
    --------
    >>> round(lazy_phase(SingleIndex("erf", [1.0, -0.7], 50, 100, 0.0), 1.0).height)  # no data: E = d m²/2
    25
    """
    (relu, y, dimension, width, samples, variance, gain), barrier = _setting(network, barrier)
    deviation = np.sqrt(variance / dimension)
    half = int(np.ceil(barrier / deviation * _FINE))
    spacing = barrier / (half + 0.5)  # the wall stands in the middle between two points
    reach = half + int(np.ceil(_MARGIN * deviation / spacing))
    if 2 * reach + 1 > _POINTS:
        checks.fail("barrier", f"be so low that a grid of {_POINTS} points resolves the prior inside it", barrier)
    m = spacing * np.arange(-reach, reach + 1)  # (G,)
    inside = np.abs(m) < barrier  # (G,)
    h, energy = np.empty((len(m), len(y))), dimension * m**2 / (2 * variance)  # (G, n), (G,)
    for one, row in zip(m, h):
        project(one, relu, variance, row)
    matrix = np.zeros((len(y), len(y)))  # (n, n)  γ N ⟨ĥĥᵀ⟩ P_e
    for damping in DAMPINGS:
        for _ in range(2000):
            weights = np.zeros(len(m))  # (G,)  beyond the wall the energy may fall so far that e^{-E} overflows
            weights[inside] = np.exp(-(energy[inside] - energy[inside].min()))
            weights /= weights.sum()  # (G,)
            change = gain * width * (h.T * weights) @ h - matrix  # (n, n)
            matrix = matrix + damping * change  # (n, n)
            others = np.eye(len(y)) + matrix * (width - 1) / width  # (n, n)
            solved = np.linalg.solve(others, np.column_stack([h.T, y]))  # (n, G + 1)
            u = gain * np.einsum("gi,ig->g", h, solved[:, :-1])  # (G,)
            pull = gain * samples * (h @ solved[:, -1]) ** 2  # (G,)
            energy = dimension * m**2 / (2 * variance) + (np.log1p(u) - pull / (1 + u)) / 2  # (G,)
            if np.abs(change).max() <= 1e-11 * (1 + np.abs(matrix).max()):
                energy -= energy[inside].min()
                residuals = np.linalg.solve(np.eye(len(y)) + matrix, y)  # (n,)
                return LazyPhase(m, energy, residuals, float(weights @ m**2), float(energy[inside].max()))
    checks.fail("barrier", "hold the phase together: the damped iteration did not settle", barrier)


def first_passage(overlaps: ArrayLike, energy: ArrayLike, barrier: float, step: float, *, neurons: int = 1) -> float:
    """Mean number of sweeps until the first of N independent neurons has |m| > barrier, all from e^{-E(m)} inside.

    Of the exact chain of local Metropolis moves on the grid, neuron after neuron: N⁻¹ Σ_t Σ_{c<N} p(t)^{N-c} p(t+1)^c,
    where  p(t) = Σ_k c_k λ_k^t  is the share of neurons that have stayed inside, from the eigenvalues of the moves that
    do; refused if a passage is too rare for their rounding.  A long time is 1/N of that of one neuron.

    Parameters
    ----------
    overlaps, energy : array_like (G,)
        m, evenly spaced, reaching beyond ±barrier by four steps or more; E(m).
    barrier : float
        > 0, best in the middle between two points of the grid.
    step : float
        Deviation of the proposed moves, in the unit of m, two spacings or more.
    neurons : int
        N.

    Returns
    -------
    float
        Sweeps, of one move for each neuron.

    Examples
    --------
    >>> m = np.linspace(-3, 3, 601)  # a free walk in (-1, 1): time (2/3)/step² for small steps
    >>> round(first_passage(m, np.zeros(601), 0.995, 0.05) * 0.05**2, 2)
    0.72
    """
    m = checks.array("overlaps", overlaps, ndim=1)  # (G,)
    if not 3 <= len(m) <= _POINTS or m[1] <= m[0] or not np.allclose(np.diff(m), m[1] - m[0], rtol=1e-6, atol=0):
        checks.fail("overlaps", f"be 3 to {_POINTS} evenly spaced, increasing numbers", overlaps)
    e = checks.array("energy", energy, shape=m.shape)  # (G,)
    barrier, step = checks.number("barrier", barrier, above=0), checks.number("step", step, above=0)
    neurons = checks.integer("neurons", neurons)
    spacing, inside = m[1] - m[0], np.abs(m) <= barrier  # (G,)
    if step < 2 * spacing:
        checks.fail("step", f"be two spacings of the grid or more, {2 * spacing:.3g}", step)
    if not inside.any() or min(-m[0], m[-1]) < barrier + 4 * step:
        checks.fail("barrier", "hold points of the grid, which must reach four steps beyond it", barrier)
    here, inner = m[inside], e[inside] - e[inside].min()  # (I,), (I,)
    moves = spacing / (np.sqrt(2 * np.pi) * step) * np.exp(-(((m - here[:, None]) / step) ** 2) / 2)  # (I, G)
    moves[here[:, None] == m] = 0.0
    # Detailed balance makes the moves symmetric in the unit of √(e^-E e^-E'): e^-|E - E'|/2 of each proposal.
    kept = -moves[:, inside] * np.exp(-np.abs(inner[:, None] - inner) / 2)  # (I, I)
    np.fill_diagonal(kept, (moves * np.exp(np.minimum(0.0, e[inside][:, None] - e))).sum(axis=1))
    rates, modes = eigh(kept)  # (I,), (I, I)  1 - λ_k
    if rates[0] < 1e-12:
        checks.fail("energy", "let a neuron pass within 1e12 moves", f"a rate of {rates[0]:.1e}")
    root = np.exp(-inner / 2)  # (I,)
    shares = (modes.T @ root) ** 2 / (root @ root)  # (I,)  c_k
    times = np.concatenate([np.arange(64), np.unique(np.geomspace(64, 64 + 50 / rates[0], 4000).round())])  # (t,)
    # Moves by a Gaussian step have no negative eigenvalue: what is below zero here is rounding.
    decayed = np.exp(np.outer(times, np.log1p(-np.minimum(rates, 1 - 1e-16))))  # (t, I)
    staying = decayed @ shares  # (t,)  p(t)
    hazard = -np.log1p(-np.minimum(decayed @ (shares * rates) / staying, 1 - 1e-15))  # (t,)  log p(t)/p(t + 1)
    # The neurons move in turn: after c of sweep t the net is intact with the probability p(t + 1)^c p(t)^(N - c).
    intact = staying**neurons * np.expm1(-neurons * hazard) / (neurons * np.expm1(-hazard))  # (t,)
    return float(trapezoid(intact, times) + intact[0] / 2)

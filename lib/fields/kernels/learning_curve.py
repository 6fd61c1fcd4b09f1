"""Exponents of the learning curves of power laws, and of measured spectra.  Source: ringel2025talk."""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.shapes import ArrayLike


@dataclass(frozen=True)
class PowerLaw:
    """Kernel regression on the spectrum  λ_k = k^{-a}:  scales and exponents.

    Parameters
    ----------
    decay : float
        a > 1, so that the trace is finite.

    Examples
    --------
    >>> round(PowerLaw(2.0).ridgeless_amplitude, 6)  # (π/2)²
    2.467401
    """

    decay: float

    def __post_init__(self):
        checks.keep(self, decay=checks.number("decay", self.decay, above=1))

    @property
    def ridgeless_amplitude(self) -> float:
        """Limit of  κP^a  without a ridge,  [(π/a)/sin(π/a)]^a,  of  P = ∫dk/(1 + κk^a)."""
        a = self.decay
        # sin(π/a) = sin(π(a - 1)/a): the smaller angle keeps its digits, as a approaches one and as it grows.
        return float((np.pi / a / np.sin(np.pi * min(1.0, a - 1) / a)) ** a)

    def loss_exponent(self, target_decay: float, *, ridgeless: bool) -> float:
        """Exponent of the learning curve,  loss ∝ P^{-x}:  x = min(β - 1, 2a), over a where a ridge dominates.

        The first is the target's tail beyond the learnability edge, the second what the learned modes still lack.

        Parameters
        ----------
        target_decay : float
            β > 1 of the target's power,  v_k² ∝ k^{-β}.
        ridgeless : bool
            Whether the unlearned modes make the ridge; else a given one dominates.

        Returns
        -------
        float

        Examples
        --------
        >>> [PowerLaw(2.0).loss_exponent(2.5, ridgeless=ridgeless) for ridgeless in (True, False)]
        [1.5, 0.75]
        """
        edge = 1.0 if checks.boolean("ridgeless", ridgeless) else 1 / self.decay  # of  k* ∝ P^x, half learned
        return min(checks.number("target_decay", target_decay, above=1) - 1, 2 * self.decay) * edge


@dataclass(frozen=True)
class Decay:
    """The exponent with which values fall over their ranks, and where.

    Parameters
    ----------
    exponent, error : float
        x of k^{-x}, and one standard error: of the straight line, and of the local exponents, which differ if the line
        is bent.
    first, last : int
        Ranks of the window, from one.
    drift : float
        By how much the local exponent grows from the first rank to the last.
    """

    exponent: float
    error: float
    first: int
    last: int
    drift: float


def _line(rank, value):
    """Exponent, its error, drift and its error, from a parabola in ln k that weighs every decade alike."""
    x, weight = np.log(rank), 1 / rank  # (n,), (n,)
    x = x - (weight @ x) / weight.sum()
    basis = np.stack([np.ones_like(x), x, x**2 - (weight @ x**2) / weight.sum()], axis=1)  # (n, 3)
    inverse = np.linalg.inv(basis.T * weight @ basis)  # (3, 3)
    found = inverse @ (basis.T * weight) @ np.log(value)  # (3,)
    left = np.log(value) - basis @ found  # (n,)
    spread = inverse @ (basis.T * weight**2) @ basis @ inverse * (left @ left) / max(rank.size - 3, 1)  # (3, 3)
    # The slope of the straight line: a parabola's share in it is what a skew weight leaves.
    line = (weight * x) @ np.log(value) / ((weight * x) @ x)
    width = x[-1] - x[0]
    return -line, np.sqrt(spread[1, 1]), -2 * found[2] * width, 2 * np.sqrt(spread[2, 2]) * width


def decay(
    values: ArrayLike, *, first: int | None = None, last: int | None = None, decades: float = 1.0,
    tolerance: float = 0.2,
) -> Decay:  # fmt: skip
    """Exponent of eigenvalues or squared coefficients by rank,  k^{-x},  with its error, in the widest window it has.

    Windows begin and end at ranks that are powers of 10^{1/8}; one counts if the local exponent drifts by less than the
    part `tolerance` of the exponent, or two errors of the drift.

    Parameters
    ----------
    values : array_like (n,)
        By rank, largest first or in the order of the modes (numpy.linalg.eigvalsh returns them the other way round:
        pass ``values[::-1]``); those below n times the rounding of the largest, and what follows them, are left out.
    first, last : int, optional
        The window, if it is to be this one whatever the drift.
    decades : float
        Least width of a window that is looked for, > 0.
    tolerance : float
        > 0.

    Returns
    -------
    Decay

    Examples
    --------
    >>> found = decay(np.arange(1.0, 101) ** -1.7 + 1e-9, decades=1.0, tolerance=0.2)
    >>> round(found.exponent, 4), found.error < 1e-4, found.first, found.last
    (1.7, True, 1, 100)
    >>> decay(np.arange(1.0, 101) ** -1.7, first=5, last=50).last
    50
    """
    values = checks.entries("values", values, ndim=1)  # (n,)
    rounding = len(values) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
    checks.fail_if(np.any(values < -rounding), "values", "have entries >= 0", values)
    values = np.where(values > rounding, values, 0.0)
    wanted = "come with the largest first: pass values[::-1]"
    checks.fail_if(
        len(values) > 1 and values[0] < values[-1] and np.all(np.diff(values) >= 0), "values", wanted, values
    )
    decades, tolerance = checks.number("decades", decades, above=0), checks.number("tolerance", tolerance, above=0)
    size = int(np.flatnonzero(values)[-1]) + 1 if values.any() else 0
    stated = first is not None or last is not None
    first = 1 if first is None else checks.integer("first", first)
    last = size if last is None else checks.integer("last", last)
    wanted = f"leave five ranks or more up to the last value > 0, rank {size}"
    checks.fail_if(last > size or last - first < 4, "last" if stated else "values", wanted, last if stated else values)
    wanted = "be > 0 up to the last that is: add the squared coefficients of neighbours, or leave zeros out"
    checks.fail_if(np.any(values[first - 1 : last] == 0), "values", wanted, values)
    rank = np.arange(1.0, size + 1)  # (n,)

    def over(low, high):
        slope, error, drift, wobble = _line(rank[low - 1 : high], values[low - 1 : high])
        bend = np.sqrt(max(drift**2 - wobble**2, 0) / 12)  # of local exponents, evenly spread
        found = Decay(float(slope), float(np.hypot(error, bend)), low, high, float(drift))
        return found, abs(drift) <= max(tolerance * abs(slope), 2 * wobble)

    if stated:
        return over(first, last)[0]
    ends = np.unique(np.append(np.rint(10 ** (np.arange(8 * np.log10(size)) / 8)), size).astype(int))  # (e,)
    pairs = [(low, high) for low in ends for high in ends if high >= 10**decades * low and high - low >= 4]
    for low, high in sorted(pairs, key=lambda pair: -pair[1] / pair[0]):
        found, straight = over(int(low), int(high))
        if straight:
            return found
    whole = over(first, last)[0]
    bent = f"an exponent of {whole.exponent:.2g} that drifts by {whole.drift:.2g} over all {size}"
    wanted = f"fall with one exponent over {decades:g} decade{'s' * (decades != 1)}: state a window by first and last"
    checks.fail("values", wanted, bent)

"""The step of one neuron as a map of its input, and the law of the steps: the data density pushed along every branch.

One example (x, t) moves  y = wx + b  by  ḃ = -γ h(y),  ẇ = x ḃ,  and  p_s(s) = Σ_i p_x(x_i)/|s'(x_i)|  over all inputs
with s(x_i) = s, with an atom at s = 0 where the activation is dead.  Source: kukleva2024, eqs. (3.8), (3.16), (5.1) to
(5.4), (8.1) to (8.3), (8.38) to (8.40), with |s|, without branches and atom; sign and exponents are ours.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import bisect
from scipy.special import logsumexp, ndtr, ndtri

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.criticality.compositions import Composition, _label

OBSERVABLES = ("step", "bias", "weight")
_GRID = 20_000  # points on which folds are looked for
_HALVINGS = 200  # enough for full relative precision of a root anywhere between 1e-44 and 1
_REACH = 14.0  # deviations from the mean beyond which no input is looked for
_TINY = 1e-100  # what rounding means at x = 0; a pole there stays inside the floating-point range


@dataclass(frozen=True, eq=False)
class Branches:
    """The B intervals of x, in rising order, on which s is monotone and not zero.

    Attributes
    ----------
    left, right : ndarray (B,)
        Their ends.
    at_left, at_right : ndarray (B,)
        s there, zero where it vanishes.
    probability : ndarray (B,)
        Of an input on the branch; with the atom of the map they sum to one.
    folds : ndarray (C,)
        The x at which s' changes sign inside a smooth piece.
    """

    left: Array[" B"]
    right: Array[" B"]
    at_left: Array[" B"]
    at_right: Array[" B"]
    probability: Array[" B"]
    folds: Array[" C"]


class FoldEdges(NamedTuple):
    """The C folds of a step map, in rising order of x.

    Attributes
    ----------
    x, s : ndarray (C,)
        x_c and s_c.
    constant : ndarray (C,)
        C of the density  C |s - s_c|^{-1/2}  beside it.
    side : ndarray (C,)
        -1 where the two inputs have s < s_c, 1 where s > s_c.
    """

    x: Array[" C"]
    s: Array[" C"]
    constant: Array[" C"]
    side: Array[" C"]


@dataclass(frozen=True)
class StepMap:
    """One class of a neuron: the map x → s and the law of its inputs,  x ~ N(mean, deviation²).

    Parameters
    ----------
    composition : Composition
        Loss after activation.
    weight, bias : float
        w ≠ 0 and b of the neuron.
    label : int
        Class t, 0 or 1.
    mean, deviation : float, optional
        Of x, by default t and 0.25.
    learning_rate : float, optional
        γ > 0, the unit of s, by default 1.
    observable : str, optional
        What s is: "step", -γh√(1+x²), the length with the sign of ḃ; "bias", ḃ = -γh; "weight", ẇ = -γhx.

    Examples
    --------
    >>> StepMap(Composition("relu"), 0.9, 0.0, 1, mean=0.8, deviation=0.3, learning_rate=0.5).amplitude(0.0)
    -0.0
    """

    composition: Composition
    weight: float
    bias: float
    label: int
    mean: float | None = None
    deviation: float = 0.25
    learning_rate: float = 1.0
    observable: str = "step"

    def __post_init__(self):
        checks.instance("composition", self.composition, Composition, "of lib.criticality.compositions")
        weight, label = checks.number("weight", self.weight), _label("label", self.label)
        checks.fail_if(weight == 0, "weight", "be a number other than zero", weight)
        checks.one_of("observable", self.observable, OBSERVABLES)
        checks.keep(
            self,
            weight=weight,
            bias=checks.number("bias", self.bias),
            label=label,
            mean=float(label) if self.mean is None else checks.number("mean", self.mean),
            deviation=checks.number("deviation", self.deviation, above=0),
            learning_rate=checks.number("learning_rate", self.learning_rate, above=0),
        )

    # --- the map -------------------------------------------------------------------------------------------------

    def _lever(self, x):
        """The factor a of s = -γ h a and its derivatives: √(1 + x²), 1 or x."""
        if self.observable == "bias":
            return 1.0, 0.0, 0.0
        if self.observable == "weight":
            return x, 1.0, 0.0
        root = np.sqrt(1 + x**2)  # (...)
        return root, x / root, root**-3

    def _derivatives(self, x):
        """s, s', s'' (...) at inputs (...), unchecked; may overflow."""
        h, h1, h2 = self.composition._slopes(self.weight * x + self.bias, self.label == 1)  # (...) each
        a, a1, a2 = self._lever(x)  # (...) each
        w, rate = self.weight, self.learning_rate
        with np.errstate(over="ignore", invalid="ignore"):
            return -rate * h * a, -rate * (w * h1 * a + h * a1), -rate * (w**2 * h2 * a + 2 * w * h1 * a1 + h * a2)

    def _exponents(self, x, s, s1, s2):
        scale = s / s1  # (...)  two ratios in place of s s''/s'²: in an exponential tail the products underflow
        return scale * (s2 / s1), (x - self.mean) / self.deviation**2 * scale

    def _log_normal(self, x):
        return -0.5 * ((x - self.mean) / self.deviation) ** 2 - np.log(self.deviation * np.sqrt(2 * np.pi))

    def derivatives(self, x: float | ArrayLike) -> tuple:
        """The signed amplitude and its derivatives,  s,  s' = -γ(wh'a + ha'),  s'' = -γ(w²h''a + 2wh'a' + ha'').

        a = √(1 + x²), or what the observable has.  kukleva2024, eqs. (8.12), (8.31), (8.41), print two wrong terms.

        Parameters
        ----------
        x : float or array_like (...)
            Inputs.

        Returns
        -------
        tuple of three floats or ndarrays (...)
            s, s', s'', zero at dead inputs.

        Examples
        --------
        >>> StepMap(Composition("relu"), 1, 0, 0, observable="bias").derivatives([0.25])[:2]
        (array([-0.5]), array([-2.]))
        """
        x = checks.array("x", x)  # (...)
        results = tuple(checks.plain(np.broadcast_to(part, x.shape).copy()) for part in self._derivatives(x))
        if not all(np.isfinite(part).all() for part in results):
            checks.fail("x", "keep the amplitude inside the floating-point range", x)
        return results

    def amplitude(self, x: float | ArrayLike) -> float | Array["..."]:
        """The signed amplitude  s = -γ h(wx + b) √(1 + x²),  kukleva2024 eq. (5.3), or the observable's.

        Parameters
        ----------
        x : float or array_like (...)
            Inputs.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> StepMap(Composition("sigmoid"), 16.0, -8.0, 0).amplitude([0.0, 0.5]).round(6).tolist()
        [-0.0, -0.279508]
        """
        return self.derivatives(x)[0]

    def exponents(self, x: float | ArrayLike) -> tuple:
        """Local exponents, of the map,  k_J = s s''/s'²,  and of the data,  k_D = (x - mean)/deviation² · s/s'.

        Their sum is  k = -d ln p_s/d ln|s|  of this branch.

        Parameters
        ----------
        x : float or array_like (...)
            Inputs where s' ≠ 0.

        Returns
        -------
        tuple of two floats or ndarrays (...)
            k_J, k_D.

        Examples
        --------
        >>> StepMap(Composition("linear", "exponential"), 2, 0, 0, observable="bias").exponents(0.25)
        (1.0, 2.0)
        """
        parts = self.derivatives(x)  # (...) each
        checks.fail_if(np.any(parts[1] == 0), "x", "avoid dead inputs and folds, where s' = 0", x)
        return tuple(checks.plain(part) for part in self._exponents(np.asarray(x, dtype=float), *parts))

    # --- its branches --------------------------------------------------------------------------------------------

    def branches(self, *, reach: float = _REACH) -> Branches:
        """The monotone branches of x → s around the mean: split at zeros of s, folds and kinks.

        At a fold (caustic),  wh'(1 + x²) + xh = 0,  s' = 0 and p_s diverges like |s - s_c|^{-1/2}.

        Parameters
        ----------
        reach : float, optional
            Deviations on either side of the mean, > 0, by default 14; smaller where s overflows near a pole.

        Returns
        -------
        Branches
            Read-only, without dead intervals.

        Examples
        --------
        >>> StepMap(Composition("sigmoid"), 16.0, -8.0, 0).branches(reach=14.0).folds.round(3)
        array([0.546])
        """
        return _branches(self, checks.number("reach", reach, above=0))

    def _preimages(self, s):
        """Roots (B, S) of s(x) = s for s (S,), NaN where a branch does not reach; an end belongs to the one above."""
        found = _branches(self, _REACH)
        lowest, highest = np.minimum(found.at_left, found.at_right), np.maximum(found.at_left, found.at_right)
        branch, point = np.nonzero((lowest[:, None] <= s) & (s < highest[:, None]))  # (n,), (n,)
        left, right = found.left[branch], found.right[branch]  # (n,), (n,)
        rises = (found.at_right > found.at_left)[branch]  # (n,)
        for _ in range(_HALVINGS):
            middle = left + (right - left) / 2  # (n,)
            if np.all((middle == left) | (middle == right)):
                break
            beyond = (self._derivatives(middle)[0] > s[point]) == rises  # (n,)
            left, right = np.where(beyond, left, middle), np.where(beyond, middle, right)  # (n,), (n,)
        roots = np.full((found.left.size, s.size), np.nan)  # (B, S)
        roots[branch, point] = middle
        return roots

    def preimages(self, s: ArrayLike) -> Array["B S"]:
        """All inputs that cause a step of amplitude s: one root of s(x) = s on every branch that reaches s.

        Parameters
        ----------
        s : array_like (S,)
            Amplitudes, not zero.

        Returns
        -------
        ndarray (B, S)
            A row for each of :meth:`branches`, NaN where it misses s.

        Examples
        --------
        >>> StepMap(Composition("sigmoid"), 16, -8, 0).preimages([-0.2]).T.round(4)
        array([[0.4702, 0.6335]])
        """
        return self._preimages(_nonzero("s", checks.array("s", s, ndim=1)))

    def fold_edges(self) -> FoldEdges:
        """The folds, with  p_s ≈ C |s - s_c|^{-1/2}  beside them,  C = p_x(x_c) √(2/|s''|).

        Returns
        -------
        FoldEdges

        Examples
        --------
        >>> StepMap(Composition("sigmoid"), 16.0, -8.0, 0).fold_edges().s.round(3)
        array([-0.337])
        """
        x = _branches(self, _REACH).folds  # (C,)
        s, _, s2 = self._derivatives(x)  # (C,), (C,)
        return FoldEdges(x, s, np.exp(self._log_normal(x)) * np.sqrt(2 / np.abs(s2)), np.sign(s2))

    # --- the law of its steps ------------------------------------------------------------------------------------

    def _terms(self, s):
        """ln of each branch's part of p_s, (B, S), and the preimages (B, S), for s (S,)."""
        x = self._preimages(s)  # (B, S)
        parts, reached = np.full(x.shape, -np.inf), ~np.isnan(x)  # (B, S), (B, S)
        with np.errstate(divide="ignore"):  # infinite exactly on a fold
            stretch = np.log(np.abs(self._derivatives(x[reached])[1]))  # (n,)
        parts[reached] = self._log_normal(x[reached]) - stretch
        return parts, x

    def density(self, s: float | ArrayLike) -> float | Array["..."]:
        """The density  p_s = Σ p_x(x_i)/|s'(x_i)|  of the signed amplitude, of integral 1 less the atom.

        Parameters
        ----------
        s : float or array_like (...)
            Amplitudes, not zero.

        Returns
        -------
        float or ndarray (...)
            Per unit of s; 0 where no input within 14 deviations reaches.

        Examples
        --------
        >>> StepMap(Composition("relu"), 1, 0, 0).density([-1e-9, 2.0]).round(6)
        array([0.797885, 0.      ])
        """
        s = _nonzero("s", checks.array("s", s))  # (...)
        parts, _ = self._terms(s.ravel())  # (B, S)
        return checks.plain(np.exp(parts).sum(axis=0).reshape(s.shape))  # (...)

    def magnitude_density(self, r: float | ArrayLike) -> float | Array["..."]:
        """Density of the length of a step, kukleva2024 eq. (5.4):  p_s(r) + p_s(-r).

        Parameters
        ----------
        r : float or array_like (...)
            Lengths, > 0.

        Returns
        -------
        float or ndarray (...)
            Per unit of r.

        Examples
        --------
        >>> StepMap(Composition("relu"), 1.0, 0.0, 1).magnitude_density([0.1]).round(3)
        array([1.119])
        """
        r = checks.entries("r", r, above=0)  # (...)
        return self.density(r) + self.density(-r)

    def density_exponent(self, s: ArrayLike) -> tuple[Array[" S"], Array["B S"]]:
        """The local exponent  k = -d ln p_s/d ln|s|  of the whole density:  Σ p_i k_i/Σ p_i,  k_i = k_J + k_D.

        Parameters
        ----------
        s : array_like (S,)
            Amplitudes, not zero, that an input within 14 deviations reaches.

        Returns
        -------
        tuple of ndarrays (S,), (B, S)
            k, and the share p_i/Σp_i of each branch.

        Examples
        --------
        >>> StepMap(Composition("linear", "exponential"), 2, 0, 0, observable="bias").density_exponent([-1.0])[0]
        array([1.])
        """
        s = _nonzero("s", checks.array("s", s, ndim=1))  # (S,)
        parts, x = self._terms(s)  # (B, S), (B, S)
        checks.fail_if(not np.isfinite(parts).any(axis=0).all(), "s", "be amplitudes that some input reaches", s)
        share = np.exp(parts - logsumexp(parts, axis=0))  # (B, S)
        local, reached = np.zeros(x.shape), ~np.isnan(x)  # (B, S), (B, S)
        local[reached] = sum(self._exponents(x[reached], *self._derivatives(x[reached])))
        return (share * local).sum(axis=0), share

    def pole_constant(self) -> float:
        """K of the tail  p_s → K/s²,  P(|S| > s) → K/s  of a pole:  K = γ p_x(x*) √(1 + x*²)/|w|, or the observable's.

        A cut ε ends the tail near s = γ√(1 + x*²)/ε.  kukleva2024, eqs. (8.38) to (8.40).

        Returns
        -------
        float
            K, in the unit of s.

        Raises
        ------
        ValueError
            If the activation is not "clip", which alone has poles.

        Examples
        --------
        >>> line = Composition("clip", "cross_entropy")
        >>> round(StepMap(line, 2.0, -0.5, 1, mean=0.25, observable="bias").pole_constant(), 6)  # φ(0)/0.25/2
        0.797885
        """
        if self.composition.activation != "clip":
            checks.fail("composition", "have the activation clip", self.composition)
        pole = ((1 - self.bias) if self.label == 0 else -self.bias) / self.weight
        density = np.exp(self._log_normal(pole))
        return float(self.learning_rate * density * abs(self._lever(pole)[0] / self.weight))

    def _between(self, low, high):
        """Probability of intervals of x, without 1 - 1 in the upper tail."""
        a, b = (low - self.mean) / self.deviation, (high - self.mean) / self.deviation  # (...), (...)
        return np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))

    def atom(self) -> float:
        """The probability of a step of length zero: of an input that leaves the neuron dead.

        Returns
        -------
        float

        Examples
        --------
        >>> StepMap(Composition("relu"), 1.0, 0.0, 0).atom()
        0.5
        """
        dead = (np.sort((np.array(ends) - self.bias) / self.weight) for ends in self.composition.dead(self.label))
        return float(sum(self._between(*ends) for ends in dead))

    def cumulative(self, s: float | ArrayLike) -> float | Array["..."]:
        """The probability of an amplitude of at most s, the atom from s = 0 on.

        Parameters
        ----------
        s : float or array_like (...)
            Amplitudes.

        Returns
        -------
        float or ndarray (...)

        Examples
        --------
        >>> StepMap(Composition("relu"), 1, 0, 0).cumulative([-1e-12, 0.0]).round(6)
        array([0.5, 1. ])
        """
        found, s = _branches(self, _REACH), checks.array("s", s)  # (...)
        values = s.ravel()  # (S,)
        x = self._preimages(values)  # (B, S)
        left, right = found.left[:, None], found.right[:, None]  # (B, 1), (B, 1)
        rises = (found.at_right > found.at_left)[:, None]  # (B, 1)
        whole = values >= np.maximum(found.at_left, found.at_right)[:, None]  # (B, S)
        x = np.where(np.isnan(x), np.where(whole == rises, right, left), x)  # (B, S)
        total = np.where(rises, self._between(left, x), self._between(x, right)).sum(axis=0)  # (S,)
        return checks.plain((total + np.where(values >= 0, self.atom(), 0)).reshape(s.shape))  # (...)

    def stratified_inputs(self, count: int) -> Array[" n"]:
        """Inputs in the middle of equally likely intervals, rising.

        Parameters
        ----------
        count : int
            n >= 1.

        Returns
        -------
        ndarray (n,)

        Examples
        --------
        >>> StepMap(Composition("erf"), 1.0, 0.0, 1).stratified_inputs(3).round(4)
        array([0.7581, 1.    , 1.2419])
        """
        count = checks.integer("count", count)
        return self.mean + self.deviation * ndtri((np.arange(count) + 0.5) / count)  # (n,)


def _nonzero(name, values):
    checks.fail_if(np.any(values == 0), name, "differ from zero, where dead inputs have an atom", values)
    return values


def _pieces(m, low, high):
    """The intervals of x between the kinks that are not dead, moved inside by the rounding of y = wx + b."""
    y = np.array(m.composition.kinks(m.label))  # (kinks,)
    cuts = np.sort(np.concatenate([[low, high], (y - m.bias) / m.weight]))  # (kinks + 2,)
    cuts = cuts[(cuts >= low) & (cuts <= high)]
    inside = 8 * np.finfo(float).eps * (np.abs(cuts) + abs(m.bias / m.weight)) + _TINY  # (n,)
    dead = m.composition.dead(m.label)
    for left, right in zip(cuts[:-1] + inside[:-1], cuts[1:] - inside[1:]):
        middle = m.weight * (left + right) / 2 + m.bias
        if left < right and not any(a < middle < b for a, b in dead):
            yield left, right


def _ends(x, s, m):
    """Whether s (n,) vanishes, up to the rounding of y = wx + b, at the two ends of the points x (n,)."""
    x, size, inside = x[[0, -1]], np.abs(s[[0, -1]]), np.abs(s[[1, -2]])  # (2,) each
    width = 32 * np.finfo(float).eps * (np.abs(x) + abs(m.bias / m.weight)) + 4 * _TINY  # (2,)
    return (size <= width * np.abs(m._derivatives(x)[1])) & (size < inside)  # (2,)


def _roots(function, x, values):
    """Roots of `function` between points x (n,) with `values` (n,) of opposite signs; points with zeros are skipped."""
    x, signs = x[values != 0], np.sign(values[values != 0])  # (n',), (n',)
    # Plain bisection: the zeros may be of third order, where Brent's method takes longer.
    precise = {"xtol": 1e-300, "rtol": 4 * np.finfo(float).eps, "maxiter": 2000}
    return [bisect(function, x[i], x[i + 1], **precise) for i in np.flatnonzero(signs[1:] != signs[:-1])]


@lru_cache(maxsize=256)  # a figure asks for the same few maps again and again, twice for every density of |s|
def _branches(m, reach):
    low, high = m.mean - reach * m.deviation, m.mean + reach * m.deviation
    rows, all_folds = [], []
    for left, right in _pieces(m, low, high):
        x = np.linspace(left, right, max(_GRID // 10, int(_GRID * (right - left) / (high - low))))  # (n,)
        s, s1, _ = m._derivatives(x)  # (n,), (n,)
        wanted = f"be small enough to keep s inside the floating-point range for {reach:g} deviations around the mean"
        checks.fail_if(not np.isfinite(s).all(), "weight", wanted, m.weight)
        zeros = _roots(lambda u: m._derivatives(u)[0], x, s)
        folds = _roots(lambda u: m._derivatives(u)[1], x, s1)
        zeros += x[[0, -1]][_ends(x, s, m)].tolist()
        ends = np.unique([left, right, *zeros, *folds])  # (n,)  a zero of even order is both
        at = np.where(np.isin(ends, zeros), 0.0, m._derivatives(ends)[0])  # (n,)
        rows += zip(ends[:-1], ends[1:], at[:-1], at[1:])
        all_folds += folds
    left, right, *at = np.array(rows).reshape(-1, 4).T.copy()  # (B,) each
    found = Branches(left, right, *at, m._between(left, right), np.array(all_folds))
    for field in fields(found):
        getattr(found, field.name).flags.writeable = False  # every caller gets the same arrays
    return found

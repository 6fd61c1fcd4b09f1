"""The toy neuron y = wx + b of two Gaussian classes: the moments of its gradient, where it rests, how it descends.

One gradient is ∂H/∂(w, b) = h (x, 1), h = dH/dy.  Equilibria are found without training, which would take 1/(γλ) = 4e5
steps for squared loss.  Data, compositions and steps: kukleva2024, eqs. (2.3), (5.1), (5.2), (8.2), (8.3); moments and
equilibria are ours.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import ndtr

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.criticality.compositions import Composition, _label
from lib.criticality.step_map import StepMap

LIVE = 0.01  # least probability of a gradient, in each class, at an equilibrium: a dead neuron rests anywhere
FAR = 1e3  # times the natural scales of w and b: a search beyond has run away to where every gradient is small
REST = 1e-10  # largest mean gradient at rest, and largest Newton step, relative to the parameters
CHUNK = 2**16  # inputs that a descent draws at a time
_NODES, _SHARES = np.polynomial.legendre.leggauss(20)  # (20,), (20,)
_FARTHEST = 36  # deviations from the mean at which integrals end: the density is e^{-648}, slopes may grow like e^{cy}
_POLE = 1e12  # |h| next to a kink beyond which no cut stands between the data and a pole


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of one gradient by the parameters.

    Attributes
    ----------
    gradient : ndarray (d,)
        Its mean g.
    hessian, covariance : ndarray (d, d)
        Expected Hessian  A = ∂g/∂(w, b),  and covariance C of one gradient.
    """

    gradient: Array[" d"]
    hessian: Array["d d"]
    covariance: Array["d d"]


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Where a neuron rests.

    Attributes
    ----------
    weight, bias : float
        w and b.
    accuracy : float
        Probability that the class is named right there: class 1 above the threshold  h(y, 0) + h(y, 1) = 0,  which is
        0 for activations that rise from 0 to 1 around it, 1/2 for relu and clip.
    moments : Moments
        Of the gradient there.
    """

    weight: float
    bias: float
    accuracy: float
    moments: Moments


@dataclass(frozen=True, eq=False)
class Descent:
    """Parameters of R replicas at n records, and the next step of each after all records but the last.

    Attributes
    ----------
    steps : ndarray (n,)
        Steps taken before each record.
    weight, bias : ndarray (n, R)
        w and b.
    weight_step, bias_step : ndarray (n-1, R)
        ẇ and ḃ.
    label : ndarray (n-1, R)
        Share of class 1 in the batch: 0 or 1 for M = 1.
    amplitude : ndarray (n-1, R)
        Length of the steps with the sign of ḃ: the amplitude of a StepMap at frozen parameters.
    """

    steps: Array[" n"]
    weight: Array["n R"]
    bias: Array["n R"]
    weight_step: Array["n-1 R"]
    bias_step: Array["n-1 R"]
    label: Array["n-1 R"]

    @property
    def amplitude(self) -> Array["m R"]:
        return np.copysign(np.hypot(self.weight_step, self.bias_step), self.bias_step)  # (n-1, R)


@dataclass(frozen=True, eq=False)
class Neuron:
    """What a neuron y = wx + b learns, and by which loss: inputs of class t are  x ~ N(μ_t, σ²), with the prior π_t.

    Parameters
    ----------
    composition : Composition
        Loss after activation.
    means, deviation : array_like (2,) and float, optional
        μ of the classes, which differ, by default 0 and 1; σ > 0, by default 0.25.
    priors : array_like (2,), optional
        π > 0 of sum 1, by default ½ each.

    Examples
    --------
    >>> Neuron(Composition("sigmoid"), means=(-1.0, 1.0), deviation=0.5, priors=(0.5, 0.5)).log_odds()
    (8.0, 0.0)
    """

    composition: Composition
    means: Array["2"] = (0.0, 1.0)
    deviation: float = 0.25
    priors: Array["2"] = (0.5, 0.5)

    def __post_init__(self):
        checks.instance("composition", self.composition, Composition, "of lib.criticality.compositions")
        means = checks.array("means", self.means, shape=(2,))  # (2,)
        deviation = checks.number("deviation", self.deviation, above=0)
        priors = checks.entries("priors", self.priors, above=0, shape=(2,))  # (2,)
        checks.fail_if(means[0] == means[1], "means", "differ between the classes", means)
        checks.fail_if(abs(priors.sum() - 1) > 1e-12, "priors", "add up to one", priors)
        means.flags.writeable = priors.flags.writeable = False
        checks.keep(self, means=means, deviation=deviation, priors=priors)

    def step_map(
        self, weight: float, bias: float, label: int, *, learning_rate: float = 1.0, observable: str = "step"
    ) -> StepMap:
        """The steps that the inputs of one class cause.

        Parameters
        ----------
        weight, bias : float
            w ≠ 0 and b.
        label : int
            Class t, 0 or 1.
        learning_rate : float, optional
            γ > 0, by default 1.
        observable : str, optional
            "step", the length with the sign of ḃ, or "bias" or "weight".

        Returns
        -------
        StepMap

        Examples
        --------
        >>> Neuron(Composition("relu"), deviation=0.3).step_map(0.9, 0.0, 1, learning_rate=0.1).deviation
        0.3
        """
        label = _label("label", label)
        law = {"mean": self.means[label], "deviation": self.deviation}
        return StepMap(self.composition, weight, bias, label, **law, learning_rate=learning_rate, observable=observable)

    def moments(self, weight: float, bias: float) -> Moments:
        """Mean gradient  g = E[h (x,1)],  expected Hessian  A = ∂g/∂(w,b)  and covariance C of one gradient.

        A has a term  J p(x_κ)/|w| (x_κ,1)(x_κ,1)ᵀ  at each kink where h jumps by J.

        Parameters
        ----------
        weight, bias : float
            w, b, so that wx + b varies.

        Returns
        -------
        Moments

        Raises
        ------
        ValueError
            If h has a pole inside the data, or the moments come from too far out.

        Examples
        --------
        >>> found = Neuron(Composition("sigmoid", "cross_entropy")).moments(16.0, -8.0)
        >>> bool(np.allclose(found.gradient, 0, atol=1e-12)), bool(np.allclose(found.hessian, found.covariance))
        (True, True)
        """
        _refuse_poles(self.composition)
        weight, bias = checks.number("weight", weight), checks.number("bias", bias)
        return Moments(*_moments(self, weight, bias))

    def live_probability(self, weight: float | ArrayLike, bias: float | ArrayLike) -> Array["2 ..."]:
        """Probability, in each class, that an input moves the parameters:  P(h(wx + b) ≠ 0), one minus the dead atom.

        Parameters
        ----------
        weight, bias : float or array_like (...)
            w and b, which broadcast.

        Returns
        -------
        ndarray (2, ...)
            By class.

        Examples
        --------
        >>> Neuron(Composition("relu")).live_probability([1.0], [0.0]).round(3).tolist()
        [[0.5], [1.0]]
        """
        weight, bias = checks.array("weight", weight), checks.array("bias", bias)  # (...), (...)
        return _live(self, *checks.broadcast(weight=weight, bias=bias))

    def log_odds(self) -> tuple[float, float]:
        """Weight and bias of the log-odds of the classes, where a sigmoid rests with cross-entropy or squared loss.

        w = (μ_1 - μ_0)/σ²,  b = ln(π_1/π_0) - (μ_1² - μ_0²)/(2σ²),  whatever the composition.

        Returns
        -------
        tuple of float
            w, b.

        Examples
        --------
        >>> Neuron(Composition("sigmoid")).log_odds()
        (16.0, -8.0)
        """
        with np.errstate(over="ignore", invalid="ignore"):
            weight = (self.means[1] - self.means[0]) / self.deviation / self.deviation
            bias = np.log(self.priors[1] / self.priors[0]) - weight * self.means.mean()
        if not (np.isfinite(weight) and np.isfinite(bias)):
            checks.fail("deviation", "be large enough for finite log-odds", self.deviation)
        return float(weight), float(bias)

    def _threshold(self):
        """The y at which two equally likely classes pull no way."""
        slope, kinks = self.composition.slope, self.composition.kinks

        def pull(y):
            return slope(y, 0) + slope(y, 1)

        beside = [kink + shift for t in (0, 1) for kink in kinks(t) for shift in (-1e-9, 1e-9)]
        y = np.union1d(np.linspace(-0.995, 1.995, 300), beside)  # (n,), without 0 and 1 themselves
        y = y[pull(y) != 0]  # (m,)
        rising = np.flatnonzero((pull(y[:-1]) < 0) & (pull(y[1:]) > 0))  # (crossings,)
        if len(rising) != 1:
            wanted = "pull class 0 down and class 1 up, with one threshold between"
            checks.fail("composition", wanted, self.composition)
        return brentq(pull, y[rising[0]], y[rising[0] + 1], xtol=1e-14)

    def _accuracy(self, weight, bias):
        """Probability that the right class is named: class 1 where y is above the threshold."""
        distance = np.sign(weight) * (self.means - (self._threshold() - bias) / weight) / self.deviation  # (2,)
        return float(self.priors @ ndtr([-1, 1] * distance))

    def _settled(self, start):
        """The equilibrium that a search from `start` ends at; RuntimeError with the reason if there is none."""
        farthest = FAR * (np.abs(start).max() + 1 / self.deviation + np.abs(self.log_odds()).max())

        def gradient(parameters):
            if not np.abs(parameters).max() < farthest:
                raise RuntimeError("the parameters grow without bound")
            try:
                return _moments(self, *parameters)[:2]
            except ValueError as reason:
                raise RuntimeError(str(reason)) from reason

        found = root(gradient, start, jac=True, tol=1e-14).x  # (2,)
        live = _live(self, *found)  # (2,)
        if live.min() < LIVE:
            raise RuntimeError(f"a share of only {live.min():.1e} of one class still moves the parameters")
        rest, hessian = gradient(found)
        softest, stiffest = np.linalg.eigvalsh(hessian)
        if not 0 < 1e-12 * stiffest < softest:
            raise RuntimeError("the mean loss has no minimum where the search ended")
        found = found - np.linalg.solve(hessian, rest)  # (2,), the last digits
        rest, hessian = gradient(found)
        left = np.abs(np.linalg.solve(hessian, rest)).max()
        if not (np.abs(rest).max() <= REST and left <= REST * (1 + np.abs(found).max())):
            raise RuntimeError(f"a mean gradient of {np.abs(rest).max():.1e} is left")
        weight, bias = (float(value) for value in found)
        return Equilibrium(weight, bias, self._accuracy(weight, bias), Moments(*_moments(self, weight, bias)))

    def equilibrium(self, *, start: ArrayLike | None = None) -> Equilibrium:
        """Parameters where the mean gradient E[h (x,1)] vanishes, the mean loss has a minimum, and both classes live.

        Parameters
        ----------
        start : array_like (2,), optional
            w ≠ 0 and b where the search begins; by default in turn the least-squares line through the labels, steeper
            ones, and the log-odds.

        Returns
        -------
        Equilibrium

        Raises
        ------
        RuntimeError
            With the reasons, if no search ends at one.
        ValueError
            If h has a pole inside the data, or the composition cannot tell the classes apart.

        Examples
        --------
        >>> found = Neuron(Composition("relu")).equilibrium(start=[0.9, 0.0])
        >>> round(found.weight, 3), round(found.bias, 4), round(found.accuracy, 4)
        (0.929, -0.0144, 0.9747)
        """
        _refuse_poles(self.composition)
        self._threshold()  # refuses what cannot tell the classes apart
        if start is None:
            gap, share = self.means[1] - self.means[0], self.priors.prod()
            slope = gap * share / (self.deviation**2 + gap**2 * share)
            lines = [slope * many for many in (1, 2, 4)]
            starts = [np.array([line, self.priors[1] - line * (self.means @ self.priors)]) for line in lines]
            starts.append(np.array(self.log_odds()))
        else:
            starts = [checks.array("start", start, shape=(2,))]
            checks.fail_if(starts[0][0] == 0, "start", "have a weight other than 0", start)
        reasons = []
        for begin in starts:
            try:
                return self._settled(begin)
            except RuntimeError as reason:
                reasons.append(f"from ({begin[0]:g}, {begin[1]:g}): {reason}")
        name = f"{self.composition.activation} with {self.composition.loss}"
        raise RuntimeError(f"no equilibrium of {name} found; {'; '.join(reasons)}")

    def descend(
        self, start: ArrayLike, learning_rate: float, steps: int, *, rng: Rng, batch: int = 1, every: int = 1,
        half_width: float | None = None,
    ) -> Descent:  # fmt: skip
        """Stochastic descent of R replicas side by side,  ẇ = -γ ⟨h(wx + b) x⟩_M,  ḃ = -γ ⟨h(wx + b)⟩_M.

        A longer run with the same seed begins like a shorter one.  kukleva2024, eqs. (2.3), (5.2).

        Parameters
        ----------
        start : array_like (R, 2)
            w and b of each replica.
        learning_rate : float
            γ > 0.
        steps, every : int
            A multiple of `every`, the steps between records, by default 1.
        rng : int, SeedSequence or Generator
            Source of the examples.
        batch : int, optional
            M >= 1 examples a step, by default 1.
        half_width : float, optional
            > 0 for inputs that are uniform on μ_t ± half_width, by default Gaussian.  Where all of them are dead the
            neuron is, exactly and for good.

        Returns
        -------
        Descent
            With n = steps/every + 1 records.

        Raises
        ------
        RuntimeError
            If the descent diverges.

        Examples
        --------
        >>> found = Neuron(Composition("relu")).descend([[0.5, 0.0]] * 100, 0.05, 500, rng=1, batch=1, every=100)
        >>> found.weight.shape, bool(abs(found.weight[-1].mean() - 0.929) < 0.02)
        ((6, 100), True)
        >>> deep = Neuron(Composition("relu")).descend([[0.1, -1.5]], 0.05, 9, rng=1, half_width=1.0)
        >>> deep.weight_step.any()  # y < 0.1 · 2 - 1.5 for every input
        np.False_
        """
        start = checks.array("start", start, shape=(None, 2))  # (R, 2)
        checks.fail_if(len(start) == 0, "start", "hold one or more replicas", start)
        rate, batch = checks.number("learning_rate", learning_rate, above=0), checks.integer("batch", batch)
        every, steps = checks.integer("every", every), checks.integer("steps", steps)
        checks.fail_if(steps % every, "steps", f"be a multiple of every = {every}", steps)
        rng = checks.generator("rng", rng)
        spread = self.deviation if half_width is None else checks.number("half_width", half_width, above=0)
        count, chunk = steps // every, max(1, CHUNK // (batch * len(start)))
        weight, bias = np.empty((2, count + 1, len(start)))  # (n, R), (n, R)
        moves = np.empty((3, count, len(start)))  # (3, n-1, R)
        w, b = start.T.copy()  # (R,), (R,)
        with np.errstate(over="ignore", invalid="ignore"):  # a descent that diverges is told below
            for step in range(steps):
                if step % chunk == 0:
                    labels = (rng.random((chunk, batch, len(start))) < self.priors[1]).astype(float)  # (chunk, M, R)
                    middle = self.means[0] + (self.means[1] - self.means[0]) * labels  # (chunk, M, R)
                    gaussian = half_width is None
                    noise = rng.standard_normal(labels.shape) if gaussian else rng.uniform(-1, 1, labels.shape)
                    inputs = middle + spread * noise  # (chunk, M, R)
                x, t = inputs[step % chunk], labels[step % chunk]  # (M, R), (M, R)
                y = w * x + b  # (M, R)
                h = self.composition._slopes(y, t == 1)[0]  # (M, R)
                if not (np.isfinite(y).all() and np.isfinite(h).all()):
                    raise RuntimeError(f"the descent diverged at step {step}: take a smaller learning_rate")
                move_w, move_b = (h * x).sum(axis=0) * (-rate / batch), h.sum(axis=0) * (-rate / batch)  # (R,), (R,)
                if step % every == 0:
                    weight[step // every], bias[step // every] = w, b
                    moves[:, step // every] = move_w, move_b, t.mean(axis=0)
                w, b = w + move_w, b + move_b  # (R,), (R,)
        weight[-1], bias[-1] = w, b
        if not (np.isfinite(weight[-1]).all() and np.isfinite(bias[-1]).all()):
            raise RuntimeError("the descent diverged at its end: take a smaller learning_rate")
        return Descent(np.arange(0, steps + 1, every), weight, bias, *moves)


# --- integrals over the Gaussian classes: pieces shrink towards the kinks of h -----------------------------------


def _ladder(centres, nearest, lowest, highest):
    """Edges of pieces from `lowest` to `highest` whose lengths double away from each centre, from `nearest` on."""
    count = max(0, int(np.ceil(np.log2((highest - lowest) / nearest))))
    away = nearest * 2.0 ** np.arange(count + 1)  # (n,)
    edges = np.concatenate([[lowest, highest], *([c, *(c - away), *(c + away)] for c in centres)])  # (m,)
    return np.unique(np.clip(edges, lowest, highest))


def _nodes(edges):
    """Gauss-Legendre points and weights on all pieces."""
    half = np.diff(edges) / 2  # (m,)
    return (edges[:-1, None] + half[:, None] * (1 + _NODES)).ravel(), (half[:, None] * _SHARES).ravel()


def _beside(composition, kink, t):
    """h just below and just above a kink."""
    step = max(np.spacing(abs(kink)), 1e-300)
    return composition.slope([kink - step, kink + step], t)


def _refuse_poles(composition):
    """Refuse a composition whose slope has a pole: its mean gradient does not exist."""
    for t in (0, 1):
        for kink in composition.kinks(t):
            wanted = f"have a mean gradient: h has a pole at y = {kink:g} in class {t}, cut it off"
            checks.fail_if(np.abs(_beside(composition, kink, t)).max() > _POLE, "composition", wanted, composition)


def _density(x, mean, deviation):
    return np.exp(-(((x - mean) / deviation) ** 2) / 2) / (np.sqrt(2 * np.pi) * deviation)


def _moments(neuron, weight, bias):
    """Mean gradient (2,), expected Hessian (2, 2) and covariance (2, 2) of one gradient."""
    composition, means, deviation, priors = neuron.composition, neuron.means, neuron.deviation, neuron.priors
    if abs(weight) * deviation <= 1e-9 * (abs(bias) + np.abs(weight * means).max()):
        checks.fail("weight", "not be 0, nor so small that wx + b hardly varies", weight)
    gradient, hessian, square, tail = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), 0.0  # (2,), (2, 2), (2, 2)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is refused below
        for t in (0, 1):
            kinks = composition.kinks(t)
            centres = np.unique([0.0, 1.0, *kinks])  # (n,)  a sigmoid's centre, and poles behind a cut
            steps = weight * (means[t] + deviation * np.arange(-_FARTHEST, _FARTHEST + 1)) + bias  # (73,)
            checks.fail_if(not np.isfinite(steps).all(), "weight", "be small enough for a finite wx + b", weight)
            edges = _ladder(centres, np.diff(centres).min(), steps.min(), steps.max())  # (m,)
            y, share = _nodes(np.union1d(edges, steps))  # (n,), (n,); in y the distance to a kink keeps its digits
            x = (y - bias) / weight  # (n,)
            share = priors[t] * share / abs(weight) * _density(x, means[t], deviation)  # (n,)
            features = np.stack([x, np.ones_like(x)])  # (2, n)
            h, h1, _ = composition._slopes(y, t == 1)  # (n,), (n,)
            if not (np.isfinite(h).all() and np.isfinite(h1).all()):
                checks.fail("weight", "be small enough for finite slopes at every input", weight)
            gradient += features @ (share * h)
            square += (features * (share * h**2)) @ features.T
            tail = max(tail, (share * h**2)[[0, -1]].max())
            hessian += (features * (share * h1)) @ features.T
            for kink in kinks:  # a jump of h takes part in the mean gradient as far as it lies inside the data
                before, after = _beside(composition, kink, t)
                at = (kink - bias) / weight
                mass = priors[t] * _density(at, means[t], deviation) / abs(weight)
                hessian += (after - before) * mass * np.outer([at, 1], [at, 1])
    if not (all(np.isfinite(part).all() for part in (gradient, hessian, square)) and tail <= 1e-12 * square[1, 1]):
        wanted = f"be small enough for moments that come from within {_FARTHEST} deviations of the mean"
        checks.fail("weight", wanted, weight)
    return gradient, hessian, square - np.outer(gradient, gradient)


def _live(neuron, weight, bias):
    """P(h ≠ 0) in classes 0 and 1, (2, ...)."""
    with np.errstate(over="ignore", invalid="ignore"):
        places = [(weight * mean + bias, np.abs(weight) * neuron.deviation) for mean in neuron.means]
        found = [_outside(neuron.composition.dead(t), *places[t]) for t in (0, 1)]
    checks.fail_if(not np.isfinite(found).all(), "weight", "be small enough for a finite wx + b", weight)
    return np.stack(found)  # (2, ...)


def _outside(dead, middle, spread):
    """P(y outside the dead intervals), y ~ N(middle, spread²): a sum over gaps, so that tiny ones keep digits."""
    edges = [-np.inf, *(edge for interval in sorted(dead) for edge in interval), np.inf]
    total = np.zeros(np.shape(middle))  # (...)
    for low, high in zip(edges[::2], edges[1::2]):
        if low < high:
            width = np.maximum(spread, 1e-300)  # (...); w = 0: y is a point
            low, high = (low - middle) / width, (high - middle) / width  # (...), (...)
            low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)  # (...), (...)
            total += ndtr(high) - ndtr(low)
    return total

"""Bayesian networks of two layers at finite width: densities of their weights, samples, and the law of one neuron.

Given the features F = φ(XWᵀ) the readouts are Gaussian, and left to sample is p(W), without error by Hamiltonian Monte
Carlo, or with the readouts by Langevin training,

    θ' = -γ_θ θ - ∂_θ L + ξ,   ⟨ξ(s) ξ(s')⟩ = 2T δ(s - s'),   L = ½ Σ_μ (f(x_μ) - y_μ)²,

which leads to e^{-U},  U = γ_θ|θ|²/2T + L/T:  the temperature is the ridge.  What a computer runs has a finite step h
and no test of acceptance, with an error of order h.  Source: ringel2025talk, on Langevin training: there one decay for
all, and a noise "with variance T", which is this one if T is the D of ⟨x²⟩ = 2Dt; the integral over the readouts and
the gain of one neuron are not in it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve

from lib.common import checks, hmc
from lib.common.linalg import psd_root
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields import _data
from lib.fields.networks import _readouts
from lib.fields.networks._units import units
from lib.fields.networks.prior import Prior

_STEPS = 200  # of Newton's method for the mean field, at most


@dataclass(frozen=True, eq=False)
class Training:
    """C networks along their training, n records each.

    Parameters
    ----------
    outputs : ndarray (n, C, M)
        f at the points.
    loss : ndarray (n, C)
        L = ½ Σ_μ (f(x_μ) - y_μ)².
    parameters : ndarray (C, N, d+1)
        At the end: one row a neuron, its weights w_c and then its readout a_c.
    """

    outputs: Array["n C M"]
    loss: Array["n C"]
    parameters: Array["C N p"]


@dataclass(frozen=True, eq=False)
class MeanField:
    """The self-consistent law of one neuron, on M neurons of the prior: an average of g is `shares @ g(weights)`.

    Parameters
    ----------
    weights : ndarray (M, d)
        w, drawn from the prior.
    shares : ndarray (M,)
        p(w)/p_0(w) over its sum.  Trust it where 1/Σ shares² is large.
    kernel : ndarray (P, P)
        s_a²⟨φφᵀ⟩ in this law.
    dual : ndarray (P,)
        t = (kernel + T)⁻¹ y.
    """

    weights: Array["M d"]
    shares: Array[" M"]
    kernel: Array["P P"]
    dual: Array[" P"]


@dataclass(frozen=True, eq=False)
class TwoLayer:
    """The network  f(x) = Σ_c a_c φ(w_c·x)  with its Gaussian prior and the data  y_μ = f(x_μ) + noise  that it sees.

    Left to sample is  p(W) ∝ e^{-U(W)},  U = d|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y,  A = (s_a²/N) FFᵀ + T.

    Parameters
    ----------
    prior : Prior
        φ, σ_w² and s_a² of  w_c ~ N(0, σ_w²/d), a_c ~ N(0, s_a²/N):  one hidden layer, Gaussian, without biases.
    inputs, targets : array_like (P, d), (P,)
        X, y; P = 0 leaves the prior.
    ridge : float
        T > 0, variance of the label noise.

    Examples
    --------
    >>> TwoLayer(Prior("erf"), [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1).inputs.shape
    (2, 2)
    """

    prior: Prior
    inputs: Array["P d"]
    targets: Array[" P"]
    ridge: float

    def __post_init__(self):
        prior = checks.instance("prior", self.prior, Prior, "as prior.Prior makes it")
        plain = prior.depth == 1 and prior.bias_variance == 0 and prior.law == "gaussian"
        checks.fail_if(not plain, "prior", "be of one hidden layer, Gaussian, without biases", prior)
        x, y = _data.examples(self.inputs, self.targets)  # (P, d), (P,)
        size = x.shape[1] if prior.weight_covariance is None else len(prior.weight_covariance)
        checks.fail_if(size != x.shape[1], "inputs", f"have {size} components, as prior says", f"shape {x.shape}")
        checks.keep(self, inputs=x, targets=y, ridge=_data.positive(ridge=self.ridge)[0])

    def _isotropic(self):
        """T, s_a² and σ_w² of isotropic weights."""
        given = self.prior.weight_covariance
        checks.fail_if(given is not None, "weight_covariance of prior", "be None, of isotropic weights", given)
        return self.ridge, self.prior.readout_variance, self.prior.weight_variance

    def _functions(self):
        """φ and φ'."""
        return units(self.prior.activation)

    def _variances(self, width):
        """Prior variance of the parameters of one neuron, (d+1,)."""
        (_, readout, weight), d = self._isotropic(), self.inputs.shape[1]
        return np.append(np.full(d, weight / d), readout / width)  # (d+1,)

    def _loss(self, parameters):
        """L (C,), its gradient (C, N, d+1)."""
        (phi, slope), x = self._functions(), self.inputs
        u, output = _forward(parameters, phi, x)  # (C, P, N), (C, P)
        wrong = (output - self.targets)[..., None]  # (C, P, 1)
        gradient = np.empty_like(parameters)  # (C, N, d+1)
        gradient[..., :-1] = (wrong * slope(u) * parameters[:, None, :, -1]).swapaxes(1, 2) @ x
        gradient[..., -1:] = phi(u).swapaxes(1, 2) @ wrong
        return (wrong**2).sum(axis=(1, 2)) / 2, gradient

    def potential(self, weights: ArrayLike) -> tuple[Array[" C"], Array["C N d"]]:
        """U(W) of several networks, up to a constant, and its gradient  dW/σ_w² + (∂_F U ∘ φ')ᵀX.

        Parameters
        ----------
        weights : array_like (C, N, d)
            W of C networks.

        Returns
        -------
        value, gradient : ndarray (C,), (C, N, d)

        Examples
        --------
        >>> network = TwoLayer(Prior("linear"), [[1.0]], [0.0], 1.0)
        >>> [part.round(6).tolist() for part in network.potential([[[2.0]]])]  # w²/2 + log(w² + 1)/2
        [[2.804719], [[[2.4]]]]
        """
        w = _readouts.stack("weights", weights, self.inputs.shape[1])  # (C, N, d)
        with np.errstate(over="ignore", invalid="ignore"):
            checks.finite("weights", (w**2).sum(axis=(1, 2)))  # (C,)
            value, gradient = _readouts.evaluated(
                w, self._functions(), self.inputs[:, None], self.targets, *self._isotropic()
            )
        _readouts.refuse_singular(value, self.ridge)
        return value, checks.finite("weights", gradient)

    def predict(self, weights: ArrayLike, points: ArrayLike) -> Array["C M"]:
        """Posterior mean function given the weights:  f̄(x) = (s_a²/N) φ(xWᵀ) FᵀA⁻¹y,  a regression on the features.

        Parameters
        ----------
        weights : array_like (C, N, d)
            W of C networks.
        points : array_like (M, d)
            Where to predict.

        Returns
        -------
        ndarray (C, M)
            Its mean over samples of W is the posterior mean.

        Examples
        --------
        >>> network = TwoLayer(Prior("linear"), [[1.0]], [5.0], 1.0)
        >>> network.predict([[[2.0]], [[0.0]]], [[1.0], [3.0]]).round(12).tolist()
        [[4.0, 12.0], [0.0, 0.0]]
        """
        (phi, _), readout = self._functions(), self.prior.readout_variance
        w = _readouts.stack("weights", weights, self.inputs.shape[1])  # (C, N, d)
        points = checks.array("points", points, shape=(None, self.inputs.shape[1]))  # (M, d)
        with np.errstate(over="ignore", invalid="ignore"):
            features = phi(self.inputs @ w.swapaxes(1, 2))  # (C, P, N)
            _, alpha, logarithm = _readouts.regression(features, self.targets, self.ridge, readout)
            _readouts.refuse_singular(logarithm, self.ridge)
            readouts = readout / w.shape[1] * (alpha[:, None, :] @ features)  # (C, 1, N)
            return checks.finite("points", (phi(points @ w.swapaxes(1, 2)) @ readouts.swapaxes(1, 2))[..., 0])

    def hmc(
        self, width: int, chains: int, steps: int, rng: Rng, *, start: ArrayLike | None = None,
        observable: Callable | None = None, leapfrog: int = 10, burn_in: int | None = None, acceptance: float = 0.8,
    ) -> hmc.Chains:  # fmt: skip
        """Samples of the weights from their posterior, by Hamiltonian Monte Carlo in units of the deviation σ_w/√d.

        Parameters
        ----------
        width, chains, steps : int
            N, C, and S samples kept of each chain.
        rng : int, SeedSequence or Generator
        start : array_like (C, N, d), optional
            First weights, by default drawn from the prior.
        observable : function, optional
            Of W (C, N, d), whose value (C, ...) is kept in place of W.
        leapfrog, burn_in : int
            Mean number of leapfrog steps; proposals thrown away first, by default `steps`, and 100 or more.
        acceptance : float
            Wanted mean probability, between 0 and 1.

        Returns
        -------
        hmc.Chains
            With `samples` (S, C, ...).

        Examples
        --------
        >>> network = TwoLayer(Prior("erf"), [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1)
        >>> network.hmc(5, 10, 50, rng=1, burn_in=100).samples.shape
        (50, 10, 5, 2)
        """
        shape = checks.integer("chains", chains), checks.integer("width", width), self.inputs.shape[1]
        ways = {"observable": observable, "leapfrog": leapfrog, "burn_in": burn_in, "acceptance": acceptance}
        task = self.prior.activation, self.inputs[:, None], self.targets, self._isotropic()
        return _readouts.sample(*task, shape, steps, rng, start, **ways)

    def joint_potential(self, parameters: ArrayLike) -> tuple[Array[" C"], Array["C N p"]]:
        """U(θ) = d|W|²/2σ_w² + N|a|²/2s_a² + L/T  of all parameters and its gradient, of several networks.

        Parameters
        ----------
        parameters : array_like (C, N, d+1)
            θ of C networks, one row a neuron, w_c and then a_c.

        Returns
        -------
        value, gradient : ndarray (C,), (C, N, d+1)

        Examples
        --------
        >>> network = TwoLayer(Prior("linear"), [[1.0]], [5.0], 0.5)
        >>> [part.tolist() for part in network.joint_potential([[[2.0, 3.0]]])]  # f = 6:  2 + 4.5 + 1
        [[7.5], [[[8.0, 7.0]]]]
        """
        theta = _readouts.stack("parameters", parameters, self.inputs.shape[1] + 1)  # (C, N, d+1)
        variances = self._variances(theta.shape[1])  # (d+1,)
        with np.errstate(over="ignore", invalid="ignore"):
            loss, gradient = self._loss(theta)
            value = (theta**2 / variances).sum(axis=(1, 2)) / 2 + loss / self.ridge  # (C,)
            gradient = theta / variances + gradient / self.ridge  # (C, N, d+1)
        return checks.finite("parameters", value), checks.finite("parameters", gradient)

    def langevin(
        self, width: int, replicas: int, steps: int, rng: Rng, *, step: float = 0.01, noise: float = 2.0,
        start: ArrayLike | None = None, points: ArrayLike | None = None, record_every: int = 1,
    ) -> Training:  # fmt: skip
        """Train networks side by side by Langevin steps without acceptance:  θ ← θ - hD ∂U + √(2hD) ξ.

        They are preconditioned by the prior, D_w = σ_w²/d, D_a = s_a²/N: in units of its deviations the prior pulls
        with rate one in both layers.  The error is of order h: 2⟨·⟩_{h/2} - ⟨·⟩_h has one of order h².

        Parameters
        ----------
        width, replicas, steps : int
            N, C, and the number of steps.
        rng : int, SeedSequence or Generator
        step : float
            0 < h < 2, and below 2/k for the largest curvature k of U in these units.
        noise : float
            Variance of a step's noise per unit time over T, > 0, which leads to e^{-2U/noise}.
        start : array_like (C, N, d+1), optional
            First parameters, by default drawn from the prior.
        points : array_like (M, d), optional
            Where the outputs are recorded, by default at the examples.
        record_every : int
            Divides `steps`; the start is not recorded.

        Returns
        -------
        Training

        Examples
        --------
        >>> network = TwoLayer(Prior("erf"), [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.1)
        >>> network.langevin(5, 10, 400, rng=1, record_every=10).outputs.shape
        (40, 10, 2)
        """
        (phi, _), dimension = self._functions(), self.inputs.shape[1]
        shape = checks.integer("replicas", replicas), checks.integer("width", width), dimension + 1
        steps, every = checks.integer("steps", steps), checks.integer("record_every", record_every)
        checks.fail_if(steps % every, "record_every", f"divide the number of steps, {steps}", record_every)
        step, (noise,) = checks.number("step", step, above=0, below=2), _data.positive(noise=noise)
        variances = self._variances(shape[1])  # (d+1,)
        random, deviations = checks.generator("rng", rng), np.sqrt(variances)  # (d+1,)
        if start is None:
            start = deviations * random.standard_normal(shape)  # (C, N, d+1)
        theta = checks.array("start", start, shape=shape)  # (C, N, d+1)
        points = self.inputs if points is None else checks.array("points", points, shape=(None, dimension))  # (M, d)
        records = steps // every, shape[0]  # (n, C)
        outputs, losses = np.empty((*records, len(points))), np.empty(records)  # (n, C, M), (n, C)
        kick = np.sqrt(noise * step) * deviations  # (d+1,)
        with np.errstate(over="ignore", invalid="ignore"):  # a network that runs away is refused below
            for n in range(1, steps + 1):
                _, gradient = self._loss(theta)
                drift = (1 - step) * theta - step / self.ridge * variances * gradient  # (C, N, d+1)
                theta = drift + kick * random.standard_normal(shape)  # (C, N, d+1)
                if n % every == 0:
                    outputs[n // every - 1] = _forward(theta, phi, points)[1]
                    losses[n // every - 1] = self._loss(theta)[0]
        if not all(np.isfinite(part).all() for part in (theta, outputs, losses)):
            checks.fail("step", "be smaller: with this one a network runs away", step)
        return Training(outputs, losses, theta)

    def log_gain(self, weights: ArrayLike, width: float, *, kernel: ArrayLike | None = None) -> Array[" M"]:
        """How much a neuron of weights w would help to explain the data beside others: log of a ratio of evidences.

        Without it y ~ N(0, A), A = kernel + T, and with it y ~ N(0, A + (s_a²/N) φφᵀ);  φ = φ(Xw), α = A⁻¹y:

            log p(w | y)/p_0(w) = s_a²(α·φ)²/2N(1 + X) - ½ log(1 + X) + const,    X = (s_a²/N) φᵀA⁻¹φ,

        exact where the kernel of the other N - 1 neurons is known, and for the prior's to first order in 1/N.

        Parameters
        ----------
        weights : array_like (M, d)
            w of M neurons.
        width : float
            N > 0.
        kernel : array_like (P, P), optional
            (s_a²/N) Σ φφᵀ of the others, by default the prior's, of infinitely many.

        Returns
        -------
        ndarray (M,)
            The logarithm without the constant: zero for a silent neuron.

        Examples
        --------
        >>> TwoLayer(Prior("linear"), [[1.0]], [2.0], 1.0).log_gain([[0.0], [2.0]], 4).round(6).tolist()
        [0.0, 0.130601]
        """
        (phi, _), x = self._functions(), self.inputs
        w = checks.array("weights", weights, shape=(None, x.shape[1]))  # (M, d)
        gain = self.prior.readout_variance / _data.positive(width=width)[0]
        kernel = self.prior.kernel(x) if kernel is None else checks.symmetric("kernel", kernel, size=len(x))  # (P, P)
        features = phi(w @ x.T)  # (M, P)
        try:
            factor = _data.factored(kernel + self.ridge * np.eye(len(x)))
        except LinAlgError:
            _readouts.refuse_singular(np.inf, self.ridge)
        size = gain * (features * cho_solve(factor, features.T).T).sum(axis=1)  # (M,)  X
        pull = gain * (features @ cho_solve(factor, self.targets)) ** 2  # (M,)
        return checks.finite("weights", (pull / (1 + size) - np.log1p(size)) / 2)  # (M,)

    def mean_field(self, width: float, neurons: int, rng: Rng) -> MeanField:
        """The law of each of many neurons that all see what the others leave of the targets, on neurons of the prior.

        p(w) ∝ p_0(w) exp[(s_a²/2N)(t·φ(Xw))²],  t = (s_a²⟨φφᵀ⟩_p + T)⁻¹ y,  is the limit N → ∞ at fixed s_a²N and TN:
        there a neuron's own X vanishes.  t is the maximum of  t·y - ½T|t|² - N log⟨exp[(s_a²/2N)(t·φ)²]⟩_0,  which is
        concave: the law is unique, and Newton's method finds it.

        Parameters
        ----------
        width : float
            N > 0.
        neurons : int
            M >= 2, drawn from the prior.
        rng : int, SeedSequence or Generator

        Returns
        -------
        MeanField

        Examples
        --------
        >>> law = TwoLayer(Prior("erf", readout_variance=0.1), [[1.0]], [2.0], 0.1).mean_field(10, 100_000, rng=1)
        >>> round(float(law.shares @ law.weights[:, 0] ** 2), 1)  # ⟨w²⟩, 1 in the prior
        1.3
        """
        (phi, _), (x, y), width = self._functions(), (self.inputs, self.targets), _data.positive(width=width)[0]
        count, random = checks.integer("neurons", neurons, at_least=2), checks.generator("rng", rng)
        covariance = self.prior.weight_covariance
        root = np.eye(x.shape[1]) / np.sqrt(x.shape[1]) if covariance is None else psd_root(covariance)  # (d, d)
        w = np.sqrt(self.prior.weight_variance) * random.standard_normal((count, x.shape[1])) @ root.T  # (M, d)
        features, s = checks.finite("inputs", phi(w @ x.T)), self.prior.readout_variance  # (M, P)

        def state(t):
            seen = features @ t  # (M,)
            exponent = s / (2 * width) * seen**2  # (M,)
            shares = np.exp(exponent - exponent.max())  # (M,)
            total = shares.sum()
            value = t @ y - self.ridge * (t @ t) / 2 - width * (exponent.max() + np.log(total / count))
            return value, shares / total, seen

        t = np.zeros(len(y))  # (P,)
        value, shares, seen = state(t)
        for _ in range(_STEPS):
            second = (features.T * shares) @ features  # (P, P)
            gradient = y - self.ridge * t - s * (second @ t)  # (P,)
            if np.abs(gradient).max(initial=0) <= 1e-10 * np.abs(y).max(initial=0):
                return MeanField(w, shares, s * second, t)
            mean = features.T @ (shares * seen)  # (P,)
            curved = (features.T * (shares * seen**2)) @ features - np.outer(mean, mean)  # (P, P)
            step = np.linalg.solve(self.ridge * np.eye(len(y)) + s * second + s**2 / width * curved, gradient)  # (P,)
            length, climb, slack = 1.0, gradient @ step, 1e-13 * (1 + abs(value))
            while not (new := state(t + length * step))[0] >= value + 0.1 * length * climb - slack:
                length /= 2
            t, (value, shares, seen) = t + length * step, new
        return checks.fail("ridge", "be large enough for Newton's method to find the mean field", self.ridge)


def _forward(parameters, phi, x):
    """Pre-activations (C, P, N) and outputs (C, P)."""
    u = x @ parameters[..., :-1].swapaxes(1, 2)  # (C, P, N)
    return u, (phi(u) @ parameters[..., -1:])[..., 0]


def harmonic_variance(curvature: ArrayLike, step: float, *, preconditioner: float = 1.0) -> float | Array["..."]:
    """Stationary variance of the step without acceptance on a harmonic mode, exact:  Var = 1/[k (1 - hDk/2)].

    The density has 1/k.

    Parameters
    ----------
    curvature : float or array_like
        k > 0, of U = k θ²/2.
    step : float
        h, with 0 < hDk < 2 for every mode, beyond which the chain runs away.
    preconditioner : float
        D > 0.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> harmonic_variance([1.0, 4.0], 0.25).round(6).tolist()
    [1.142857, 0.5]
    """
    k, (h, d) = (
        checks.entries("curvature", curvature, above=0),
        _data.positive(step=step, preconditioner=preconditioner),
    )
    with np.errstate(over="ignore"):
        reach = h * d * k  # (...)
        if np.any(reach >= 2):
            limit = 2 / (d * k.max())
            checks.fail("step", f"be below 2/(D k), here {limit:.6g}, where the stiffest mode's chain runs away", step)
        return checks.plain(checks.finite("curvature", 1 / (k * (1 - reach / 2))))


def _read(network):
    """`network`, a TwoLayer."""
    return checks.instance("network", network, TwoLayer, "as two_layers.TwoLayer makes it")

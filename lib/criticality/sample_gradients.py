"""Steps of gradient descent sample by sample, q̇ = -γ ∂H/∂q, for two small models, and what their Jacobians say.

The models tell classes t = 0, 1 apart by the cross-entropy  H = ln(1 + e^u)  or the squared loss  H = f(u)²,  u = (1 -
2t)y,  f the sigmoid.  With K > d the steps fill a d-dimensional surface, with density  Σ p_x(x)/√det JᵀJ  per area,
J = ∂q̇/∂x.  Source: kukleva2024, eqs. (2.3), (3.2), (3.7), (3.13) to (3.16), (4.2), (4.4) to (4.6), all local; the area
formula and the experiment on images are ours.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize
from scipy.stats import ks_2samp

from lib.common import checks
from lib.common.extras import needs
from lib.common.shapes import Array, ArrayLike, Rng

torch, func = needs("torch"), needs("torch.func")
LOSSES = ("cross_entropy", "squared")


@dataclass(frozen=True, eq=False)
class OneDimensionalMap:
    """The best description of one number by a function of another.

    Attributes
    ----------
    predicted : ndarray (n,)
        g(x') of every sample.
    explained : float
        Share of the variance, at most 1.
    distance : float
        Kolmogorov-Smirnov, between the laws of g(x') and of the number itself.
    """

    predicted: Array[" n"]
    explained: float
    distance: float


@dataclass(frozen=True)
class Model:
    """A logistic neuron, y = w·x + b, q = (w, b), or a tanh layer, y = a·tanh(Wx + b) + c, q = (W row by row, b, a, c).

    Parameters
    ----------
    inputs, width : int
        d >= 1; m tanh units, by default 0, the neuron.
    loss : str, optional
        "cross_entropy", the default, or "squared", of a sigmoid.
    penalty : float, optional
        λ > 0 of λ|q|²/2, the H_q of kukleva2024 eq. (3.2), by default 1e-3; it takes part in training, not in steps.

    Attributes
    ----------
    size : int
        Number of parameters K.

    Examples
    --------
    >>> Model(64, width=16, loss="squared", penalty=1e-5).size
    1057
    """

    inputs: int
    width: int = 0
    loss: str = "cross_entropy"
    penalty: float = 1e-3

    def __post_init__(self):
        checks.one_of("loss", self.loss, LOSSES)
        inputs, width = checks.integer("inputs", self.inputs), checks.integer("width", self.width, at_least=0)
        checks.keep(self, inputs=inputs, width=width, penalty=checks.number("penalty", self.penalty, above=0))

    @property
    def size(self) -> int:
        return self.width * (self.inputs + 2) + 1 if self.width else self.inputs + 1

    def _logit(self, q, x):
        """y for inputs x of shape (d,) or (N, d)."""
        d, m = self.inputs, self.width
        if m == 0:
            return x @ q[:d] + q[d]
        weights, biases, readout, constant = q.split([m * d, m, m, 1])  # (m·d,), (m,), (m,), (1,)
        return torch.tanh(x @ weights.view(m, d).T + biases) @ readout + constant[0]

    def _loss_gradient(self, q, x, t, argument):
        """∂H/∂q (`argument` 0), (K,), or ∂H/∂x (1), (d,), of one sample."""
        gradient, y = func.grad_and_value(self._logit, argument)(q, x)  # as q or x, ()
        sign = 1 - 2 * t
        # The derivative of the loss by hand keeps its relative precision where a sample is classified with certainty.
        wrong = torch.sigmoid(sign * y)  # ()
        slope = wrong if self.loss == "cross_entropy" else 2 * wrong**2 * torch.sigmoid(-sign * y)  # ()
        return sign * slope * gradient

    def _objective(self, q, x, t):
        u = (1 - 2 * t) * self._logit(q, x)  # (N,)
        loss = torch.logaddexp(u, torch.zeros_like(u)) if self.loss == "cross_entropy" else torch.sigmoid(u) ** 2
        return loss.mean() + self.penalty / 2 * (q @ q)

    def _samples(self, inputs, labels):
        """Checked samples as float64 tensors (N, d), (N,)."""
        x = checks.array("inputs", inputs, shape=(None, self.inputs))  # (N, d)
        checks.fail_if(len(x) == 0, "inputs", "hold one sample or more", f"shape {x.shape}")
        t = checks.array("labels", labels, shape=(len(x),))  # (N,)
        checks.fail_if(not np.isin(t, (0, 1)).all(), "labels", "be 0 or 1", labels)
        return torch.from_numpy(x), torch.from_numpy(t)

    def _parameters(self, parameters):
        return torch.from_numpy(checks.array("parameters", parameters, shape=(self.size,)))  # (K,)

    def train(self, inputs: ArrayLike, labels: ArrayLike, rng: Rng, *, tolerance: float = 1e-9) -> Array[" K"]:
        """Full-batch training to the equilibrium, where  Σ_n ∂H_n/∂q / N + λq = 0:  L-BFGS, then Newton steps.

        Only a neuron with cross-entropy has just one.

        Parameters
        ----------
        inputs, labels : array_like (N, d), (N,)
            x, and t of 0 or 1.
        rng : int, SeedSequence or Generator
            Of the start.
        tolerance : float, optional
            Largest |∇|, > 0, by default 1e-9.

        Returns
        -------
        ndarray (K,)
            q.

        Raises
        ------
        ValueError
            If the search ends above the tolerance.

        Examples
        --------
        >>> w, b = Model(1, penalty=0.1).train([[-1.0], [1.0]], [0, 1], rng=0, tolerance=1e-9)
        >>> bool(abs(1 / (1 + np.exp(w)) - 0.1 * w) < 1e-9), bool(abs(b) < 1e-8)
        (True, True)
        """
        x, t = self._samples(inputs, labels)  # (N, d), (N,)
        start = checks.generator("rng", rng).standard_normal(self.size) / np.sqrt(self.inputs)  # (K,)
        tolerance = checks.number("tolerance", tolerance, above=0)

        def value_and_slope(q):
            q = torch.from_numpy(np.array(q))
            slope, value = func.grad_and_value(lambda q: self._objective(q, x, t))(q)  # (K,), ()
            return float(value), slope.numpy()

        stop = {"ftol": 0.0, "gtol": tolerance / np.sqrt(self.size), "maxcor": 30, "maxiter": 20_000, "maxfun": 40_000}
        q = optimize.minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=stop).x  # (K,)
        slope = value_and_slope(q)[1]  # (K,)
        for _ in range(5):  # each doubles the correct digits, so more cannot help
            if np.linalg.norm(slope) <= tolerance or not np.isfinite(slope).all():
                break
            second = func.jacrev(func.grad(lambda q: self._objective(q, x, t)))(torch.from_numpy(q)).numpy()  # (K, K)
            try:
                q = q - linalg.cho_solve(linalg.cho_factor(second), slope)  # (K,)
            except linalg.LinAlgError:  # no Cholesky factor: a saddle, which the check below reports
                break
            slope = value_and_slope(q)[1]  # (K,)
        if not (norm := float(np.linalg.norm(slope))) <= tolerance:
            checks.fail("tolerance", f"be within reach: the search ended at |∇| = {norm:.3g}", tolerance)
        return q

    def steps(
        self, parameters: ArrayLike, inputs: ArrayLike, labels: ArrayLike, *, learning_rate: float = 1.0
    ) -> Array["N K"]:
        """The step that each sample asks for:  q̇ = -γ ∂H/∂q,  without the penalty's constant part.

        Parameters
        ----------
        parameters, inputs, labels : array_like (K,), (N, d), (N,)
            q, x, and t of 0 or 1.
        learning_rate : float, optional
            γ > 0, by default 1.

        Returns
        -------
        ndarray (N, K)

        Examples
        --------
        >>> Model(2).steps([0.0, 0.0, 0.0], [[1.0, 4.0], [3.0, -2.0]], [0, 1], learning_rate=1.0).tolist()
        [[-0.5, -2.0, -0.5], [1.5, -1.0, 0.5]]
        """
        q, (x, t) = self._parameters(parameters), self._samples(inputs, labels)
        rate = checks.number("learning_rate", learning_rate, above=0)
        gradients = func.vmap(lambda x, t: self._loss_gradient(q, x, t, 0))(x, t).numpy()  # (N, K)
        return checks.finite("inputs", -rate * gradients)

    def jacobians(
        self,
        parameters: ArrayLike,
        inputs: ArrayLike,
        labels: ArrayLike,
        *,
        learning_rate: float = 1.0,
        chunk: int = 60,
    ) -> Array["N K d"]:
        """Derivatives  J = ∂q̇/∂x  of each sample's step, total ones: the Gauss-Newton term of eq. (4.2) is in them.

        Parameters
        ----------
        parameters, inputs, labels : array_like (K,), (N, d), (N,)
            q, x, and t of 0 or 1.
        learning_rate : float, optional
            γ > 0, by default 1.
        chunk : int, optional
            Samples at a time, by default 60.

        Returns
        -------
        ndarray (N, K, d)

        Examples
        --------
        >>> single = Model(1).jacobians([4.0, 0.0], [[0.0]], [0], learning_rate=1.0, chunk=60)
        >>> single.tolist()  # -f and -f' w at f = 1/2: rows w, b
        [[[-0.5], [-1.0]]]
        """
        q, (x, t) = self._parameters(parameters), self._samples(inputs, labels)
        rate, chunk = checks.number("learning_rate", learning_rate, above=0), checks.integer("chunk", chunk)
        mixed = func.jacrev(lambda q, x, t: self._loss_gradient(q, x, t, 1))  # gives (d, K)
        found = func.vmap(mixed, in_dims=(None, 0, 0), chunk_size=chunk)(q, x, t).numpy()  # (N, d, K)
        return checks.finite("inputs", -rate * found).transpose(0, 2, 1)  # (N, K, d)


def log_area(jacobians: ArrayLike) -> Array[" N"]:
    """ln √det JᵀJ, the area of the surface of steps per unit of volume of inputs:  Σ_i ln σ_i.

    The log-density per area of one sheet is  ln p_x  less this.

    Parameters
    ----------
    jacobians : array_like (N, K, d)
        Of full column rank, K >= d >= 1.

    Returns
    -------
    ndarray (N,)

    Examples
    --------
    >>> np.exp(2 * log_area([[[1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]])).round(12).tolist()  # (1 + 2²) 2²
    [20.0]
    """
    jacobians = checks.array("jacobians", jacobians, ndim=3)  # (N, K, d)
    if 0 in jacobians.shape or jacobians.shape[1] < jacobians.shape[2]:
        checks.fail("jacobians", "have shape (N, K, d) with K >= d >= 1", f"shape {jacobians.shape}")
    values = np.linalg.svd(jacobians, compute_uv=False)  # (N, d)
    if np.any(values[:, -1] <= np.finfo(float).eps * jacobians.shape[1] * values[:, 0]):
        checks.fail("jacobians", "have full column rank: the density is infinite where the map folds", jacobians)
    return np.log(values).sum(axis=1)  # (N,)


def one_dimensional_map(inputs: ArrayLike, outputs: ArrayLike, *, bins: int = 200) -> OneDimensionalMap:
    """The least-squares function q̇'_i ≈ g(x'_i) of one coordinate: what it explains, and whether eq. (4.6) follows.

    g joins the means of bins of equal count; kukleva2024 eq. (4.6) claims that g(x'_i) has the law of the outputs,
    exact if all samples share the directions of x'_i = v_i·x, q̇'_i = u_i·q̇.

    Parameters
    ----------
    inputs, outputs : array_like (n,)
        x'_i, which differ between bins, and q̇'_i, not all equal up to rounding.
    bins : int, optional
        2 to n/2, by default 200.

    Returns
    -------
    OneDimensionalMap

    Examples
    --------
    >>> found = one_dimensional_map(np.linspace(-1, 1, 4000), 3 * np.linspace(-1, 1, 4000), bins=200)
    >>> round(found.explained, 9), found.distance < 1e-3
    (1.0, True)
    """
    x, y = checks.array("inputs", inputs, ndim=1), checks.array("outputs", outputs, ndim=1)  # (n,), (n,)
    bins = checks.integer("bins", bins, at_least=2)
    checks.fail_if(len(x) < 2 * bins, "inputs", f"hold at least two samples a bin, {2 * bins}", f"shape {x.shape}")
    checks.fail_if(len(y) != len(x), "outputs", f"have shape ({len(x)},) like inputs", f"shape {y.shape}")
    checks.fail_if(np.ptp(y) <= 1e-13 * np.abs(y).max(), "outputs", "differ between samples", outputs)
    groups = np.array_split(np.argsort(x, kind="stable"), bins)  # bins of (n/bins,) each
    centres = np.array([x[group].mean() for group in groups])  # (bins,)
    means = np.array([y[group].mean() for group in groups])  # (bins,)
    widths = np.diff(centres)  # (bins - 1,)
    checks.fail_if(np.any(widths <= 0), "inputs", "differ between bins: too many are equal", inputs)
    # Beyond the first and the last centre the nearest line goes on; cut off, the law would have two false atoms.
    piece = np.clip(np.searchsorted(centres, x) - 1, 0, bins - 2)  # (n,)
    predicted = means[piece] + (np.diff(means) / widths)[piece] * (x - centres[piece])  # (n,)
    explained = 1 - float(((y - predicted) ** 2).mean() / y.var())
    return OneDimensionalMap(predicted, explained, float(ks_2samp(predicted, y, method="asymp").statistic))

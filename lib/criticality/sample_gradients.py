"""Steps of gradient descent sample by sample, q̇ = -γ ∂H/∂q, for two small models, with their derivatives in the input.

A logistic neuron  y = w·x + b,  or a tanh layer,  y = a·tanh(Wx + b) + c,  tells classes t = 0, 1 apart by the
cross-entropy H = ln(1 + e^u)  or the squared loss  H = f(u)²,  u = (1 - 2t)y,  f the sigmoid; the mean of H carries a
penalty  λ|q|²/2,  the H_q of (3.2), not part of the steps.  `parameters` q (K,), `inputs` x (N, d), `labels` t (N,) of
0 or 1, `learning_rate` γ > 0.  Source: kukleva2024, eqs. (2.3), (3.7), (4.2); the experiment on images is ours.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy import linalg, optimize
from sklearn.decomposition import PCA
from torch.func import grad, grad_and_value, jacrev, vmap

from lib.common import checks
from lib.services import data

LOSSES = ("cross-entropy", "squared")


@dataclass(frozen=True)
class Model:
    """A logistic neuron (``width`` 0) with parameters q = (w, b), or one tanh layer, q = (W row by row, b, a, c)."""

    inputs: int  # d >= 1
    width: int = 0  # tanh units; 0 is the neuron
    loss: str = "cross-entropy"  # or "squared"
    penalty: float = 1e-3  # λ > 0

    def __post_init__(self):
        checks.one_of("loss", self.loss, LOSSES)
        inputs, width = checks.integer("inputs", self.inputs), checks.integer("width", self.width, at_least=0)
        checks.keep(self, inputs=inputs, width=width, penalty=checks.number("penalty", self.penalty, above=0))

    @property
    def size(self):
        """Number of parameters K."""
        return self.width * (self.inputs + 2) + 1 if self.width else self.inputs + 1


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """End of full-batch training."""

    parameters: np.ndarray  # (K,)
    loss: float  # mean of H plus λ|q|²/2
    gradient_norm: float  # Euclidean


def _logit(model, q, x):
    """y for inputs x of shape (d,) or (N, d)."""
    d, m = model.inputs, model.width
    if m == 0:
        return x @ q[:d] + q[d]
    weights, biases, readout, constant = q.split([m * d, m, m, 1])  # (m·d,), (m,), (m,), (1,)
    return torch.tanh(x @ weights.view(m, d).T + biases) @ readout + constant[0]


def _loss_gradient(model, q, x, t, argument):
    """∂H/∂q (`argument` 0), (K,), or ∂H/∂x (1), (d,), of one sample."""
    gradient, y = grad_and_value(lambda q, x: _logit(model, q, x), argument)(q, x)  # as q or x, ()
    sign = 1 - 2 * t
    # The derivative of the loss by hand: it keeps its relative precision where a sample is classified with certainty.
    wrong = torch.sigmoid(sign * y)  # ()
    slope = wrong if model.loss == "cross-entropy" else 2 * wrong**2 * torch.sigmoid(-sign * y)  # ()
    return sign * slope * gradient


def _objective(model, q, x, t):
    u = (1 - 2 * t) * _logit(model, q, x)  # (N,)
    loss = torch.logaddexp(u, torch.zeros_like(u)) if model.loss == "cross-entropy" else torch.sigmoid(u) ** 2  # (N,)
    return loss.mean() + model.penalty / 2 * (q @ q)


def _samples(model, inputs, labels):
    """Checked samples as float64 tensors (N, d), (N,)."""
    checks.instance("model", model, Model, "from lib.criticality.sample_gradients")
    x = checks.array("inputs", inputs, shape=(None, model.inputs))  # (N, d)
    checks.fail_if(len(x) == 0, "inputs", "hold one sample or more", f"shape {x.shape}")
    t = checks.array("labels", labels, shape=(len(x),))  # (N,)
    checks.fail_if(not np.isin(t, (0, 1)).all(), "labels", "be 0 or 1", labels)
    return torch.from_numpy(x), torch.from_numpy(t)


def _tensors(model, parameters, inputs, labels):
    x, t = _samples(model, inputs, labels)  # (N, d), (N,)
    return torch.from_numpy(checks.array("parameters", parameters, shape=(model.size,))), x, t


def two_digits(*, components=None):
    """Images of zeros and ones, centred, pixels / 16 or `components` of principal axes.  Returns (360, d) and labels.

    >>> two_digits(components=10)[0].shape
    (360, 10)
    """
    images = data.load("digits", size=8)
    kept = images.labels < 2  # (1797,)
    x = data.design(images.images[kept]) / 16  # (360, 64)
    if components is not None and (components := checks.integer("components", components)) > x.shape[1]:
        checks.fail("components", f"be at most {x.shape[1]}", components)
    x = x - x.mean(axis=0) if components is None else PCA(components, svd_solver="full").fit_transform(x)  # (360, d)
    return x, images.labels[kept].astype(float)


def train(model, inputs, labels, rng, *, tolerance=1e-9):
    """Full-batch training to the equilibrium, where  Σ_n ∂H_n/∂q / N + λq = 0:  L-BFGS, then Newton steps.

    Only a neuron with cross-entropy has just one.  `model`: a Model; `inputs`, `labels`: x, t; `rng`: int,
    SeedSequence or Generator, of the start; `tolerance`: > 0, largest |∇|, or else an error.  Returns an Equilibrium.

    >>> w, b = train(Model(1, penalty=0.1), [[-1.0], [1.0]], [0, 1], rng=0).parameters
    >>> bool(abs(1 / (1 + np.exp(w)) - 0.1 * w) < 1e-9), bool(abs(b) < 1e-8)
    (True, True)
    """
    x, t = _samples(model, inputs, labels)  # (N, d), (N,)
    start = checks.generator("rng", rng).standard_normal(model.size) / np.sqrt(model.inputs)  # (K,)
    tolerance = checks.number("tolerance", tolerance, above=0)

    def value_and_slope(q):
        slope, value = grad_and_value(lambda q: _objective(model, q, x, t))(torch.from_numpy(np.array(q)))  # (K,), ()
        return float(value), slope.numpy()

    options = {"ftol": 0.0, "gtol": tolerance / np.sqrt(model.size), "maxcor": 30, "maxiter": 20_000, "maxfun": 40_000}
    q = optimize.minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).x  # (K,)
    value, slope = value_and_slope(q)
    for _ in range(5):  # each doubles the correct digits, so more cannot help
        if np.linalg.norm(slope) <= tolerance or not np.isfinite(slope).all():
            break
        second = jacrev(grad(lambda q: _objective(model, q, x, t)))(torch.from_numpy(q)).numpy()  # (K, K)
        try:
            q = q - linalg.cho_solve(linalg.cho_factor(second), slope)  # (K,)
        except linalg.LinAlgError:  # no Cholesky factor: a saddle, which the check below reports
            break
        value, slope = value_and_slope(q)
    if not (norm := float(np.linalg.norm(slope))) <= tolerance:
        checks.fail("tolerance", f"be within reach: the search ended at |∇| = {norm:.3g}", tolerance)
    return Equilibrium(q, value, norm)


def steps(model, parameters, inputs, labels, *, learning_rate=1.0):
    """The step that each sample asks for:  q̇ = -γ ∂H/∂q,  without the penalty's constant part.

    `model`: a Model; `parameters`, `inputs`, `labels`, `learning_rate`: q, x, t, γ.  Returns (N, K).

    >>> steps(Model(2), [0.0, 0.0, 0.0], [[1.0, 4.0], [3.0, -2.0]], [0, 1]).tolist()
    [[-0.5, -2.0, -0.5], [1.5, -1.0, 0.5]]
    """
    q, x, t = _tensors(model, parameters, inputs, labels)
    rate = checks.number("learning_rate", learning_rate, above=0)
    return checks.finite("inputs", -rate * vmap(lambda x, t: _loss_gradient(model, q, x, t, 0))(x, t).numpy())  # (N, K)


def jacobians(model, parameters, inputs, labels, *, learning_rate=1.0, chunk=60):
    """Derivatives  J = ∂q̇/∂x  of each sample's step, total ones, which hold the Gauss-Newton term of eq. (4.2).

    `model`: a Model; `parameters`, `inputs`, `labels`, `learning_rate`: q, x, t, γ; `chunk`: of samples.  Returns (N,
    K, d).

    >>> jacobians(Model(1), [4.0, 0.0], [[0.0]], [0]).tolist()  # -f and -f' w at f = 1/2: rows w, b
    [[[-0.5], [-1.0]]]
    """
    q, x, t = _tensors(model, parameters, inputs, labels)
    rate, chunk = checks.number("learning_rate", learning_rate, above=0), checks.integer("chunk", chunk)
    mixed = jacrev(lambda q, x, t: _loss_gradient(model, q, x, t, 1))  # gives (d, K)
    found = vmap(mixed, in_dims=(None, 0, 0), chunk_size=chunk)(q, x, t).numpy()  # (N, d, K)
    return checks.finite("inputs", -rate * found).transpose(0, 2, 1)  # (N, K, d)


def local_exponents(model, parameters, inputs, labels, left, right):
    """Jacobian exponents  κ = φφ''/φ'²  at ε = 0 of  φ(ε) = u·q̇(x + εv),  for pairs of directions u, v of each sample.

    On an exponential tail e^{cy} of the loss κ = 1 + (cÿ + (ln ψ)¨)/(cẏ + (ln ψ)˙)²,  ψ = u·∇_q y, dots for d/dε.
    `model`: a Model; `parameters`, `inputs`, `labels`: q, x, t; `left` (N, K, r), `right` (N, d, r): u and v, one a
    column, φ' ≠ 0, as of `area_formula.singular_pairs`.  Returns κ (N, r).

    >>> local_exponents(Model(1), [16.0, -8.0], [[0.0]], [0], [[[0.0], [1.0]]], [[[1.0]]]).round(3)  # (1 - 2f)/(1 - f)
    array([[1.]])
    """
    q, x, t = _tensors(model, parameters, inputs, labels)
    u = torch.from_numpy(checks.array("left", left, shape=(len(x), model.size, None)))  # (N, K, r)
    v = torch.from_numpy(checks.array("right", right, shape=(len(x), model.inputs, u.shape[2])))  # (N, d, r)
    checks.fail_if(u.shape[2] == 0, "left", "hold one direction or more a sample", f"shape {tuple(u.shape)}")

    def derivatives(x, t, u, v):
        phi = grad_and_value(lambda along: u @ _loss_gradient(model, q, x + along * v, t, 0))  # φ', φ
        curvature, (slope, value) = grad_and_value(phi, has_aux=True)(torch.zeros((), dtype=torch.float64))  # () each
        return torch.stack([value, slope, curvature])  # (3,)

    pairs = vmap(vmap(derivatives, in_dims=(None, None, 1, 1)))  # over N outside, over r inside
    value, slope, curvature = pairs(x, t, u, v).unbind(2)  # (N, r) three times
    exponents = value / slope * (curvature / slope)  # (N, r)
    if not torch.isfinite(exponents).all():
        checks.fail("right", "be directions along which the step u·q̇ changes", "a pair with φ' = 0")
    return exponents.numpy()

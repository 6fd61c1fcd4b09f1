"""One sigmoid unit with squared loss under minibatch descent: its minimum, and its fluctuations about it for small ε.

The unit is  z = σ(w·x),  σ(u) = 1/(1 + e^{-u}),  with the loss  ℓ = (y - z)²/2  averaged over N samples (not the cross
entropy).  About a minimum w* it is not quadratic, so the second moment of V = w - w* obeys no closed equation, unlike
``linear``.  han2021 finds this unit beyond further analytical treatment; the leading order in ε here is the book's.
V' = V - ε g_B(V), g_B averaged over a minibatch of m, is eq. (3.2) for this loss; ``sigmoid_descent`` runs it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from lib.common import checks
from lib.fluctuations.regression import LARGEST, RANGE, batch_variance
from lib.fluctuations.regression_formulas import weighted
from lib.foundations import langevin

EDGE = 1e-9  # closer to its threshold than this, rounding decides whether the twin has a covariance
FLAT = 1e-6  # curvature, for whitened inputs, below which a minimum counts as absent; a steep sigmoid has up to 1/16


@dataclass(frozen=True, eq=False)
class Unit:
    """A sigmoid unit at a minimum of its loss: N samples, d inputs, and the derivatives of ℓ by u = w·x there."""

    inputs: np.ndarray  # (N, d)
    targets: np.ndarray  # (N,)
    weights: np.ndarray  # (d,)  the minimum w*
    slope: np.ndarray  # (N,)  g = ℓ'(w*·x)
    curvature: np.ndarray  # (N,)  h = ℓ''(w*·x); may be negative for single samples
    skewness: np.ndarray  # (N,)  k = ℓ'''(w*·x)

    @property
    def hessian(self):
        """H = <h x xᵀ>, array (d, d), positive definite."""
        return weighted(self.inputs, self.curvature)


def loss_derivatives(field, target):
    """First three derivatives of  ℓ = (y - σ(u))²/2  by the field u:  ℓ', ℓ'', ℓ'''.

    With z = σ(u):  ℓ' = -(y-z)z',  ℓ'' = z'² - (y-z)z'',  ℓ''' = 3z'z'' - (y-z)z'''.  `field`, `target` (N,): u, y.
    Returns (3, N).

    >>> loss_derivatives([0.0], [1.0]).ravel().tolist()
    [-0.125, 0.0625, 0.0625]
    """
    field = checks.array("field", field, ndim=1)  # (N,)
    target = checks.array("target", target, shape=field.shape)  # (N,)
    z = expit(field)  # (N,)
    first = z * expit(-field)  # (N,): the product keeps the digits that 1 - z would lose
    second, third = first * (1 - 2 * z), first * (1 - 6 * first)  # (N,), (N,)
    error = z - target  # (N,)
    return np.stack([error * first, first**2 + error * second, 3 * first * second + error * third])  # (3, N)


def minimum(inputs, targets):
    """A minimum w* of  f = <(y - σ(w·x))²>/2, found from w = 0 with whitened inputs, and the derivatives of ℓ there.

    The loss is not convex and may have other minima.  It has none where the classes are separable: the weights grow for
    ever.  `inputs` (N, d): N > d, linearly independent columns; a constant one is a bias; `targets` (N,): y, from 0 to
    1.  Returns a Unit, with gradient below 1e-12 in whitened units.

    >>> unit = minimum(4 * [[1.0]], [0, 1, 1, 1])  # σ(w*) = 3/4
    >>> round(float(unit.weights[0]), 10), round(float(unit.hessian[0, 0]), 10)  # log 3, (3/16)²
    (1.0986122887, 0.03515625)
    """
    inputs = checks.array("inputs", inputs, ndim=2)  # (N, d)
    samples, size = inputs.shape
    targets = checks.entries("targets", targets, at_least=0, at_most=1, shape=(samples,))  # (N,)
    if not samples > size > 0:
        checks.fail("inputs", "hold more samples than inputs, and at least one input", f"shape {inputs.shape}")
    if not 1 / LARGEST < np.abs(inputs).max() < LARGEST:
        checks.fail("inputs", f"have a largest entry from {1 / LARGEST:g} to {LARGEST:g}", f"{np.abs(inputs).max():g}")
    scores, scale, basis = np.linalg.svd(inputs, full_matrices=False)  # (N, d), (d,), (d, d)
    if scale[-1] ** 2 <= RANGE * scale[0] ** 2:
        found = f"singular values from {scale[0]:.3g} to {scale[-1]:.3g}"
        checks.fail("inputs", "have linearly independent columns", found)
    white = scores * np.sqrt(samples)  # (N, d): <x xᵀ> = 1

    def loss(v):
        return np.mean((targets - expit(white @ v)) ** 2) / 2

    def gradient(v):
        return white.T @ loss_derivatives(white @ v, targets)[0] / samples  # (d,)

    def hessian(v):
        return weighted(white, loss_derivatives(white @ v, targets)[1])  # (d, d)

    options = {"method": "trust-exact", "options": {"gtol": 1e-8}}
    v = minimize(loss, np.zeros(size), jac=gradient, hess=hessian, **options).x  # (d,)
    if np.linalg.eigvalsh(hessian(v))[0] > FLAT:
        for _ in range(3):  # Newton steps: from 1e-8, one would do
            v = v - np.linalg.solve(hessian(v), gradient(v))  # (d,)
    lowest = np.linalg.eigvalsh(hessian(v))[0]
    if not (lowest > FLAT and np.abs(gradient(v)).max() < 1e-12):
        wanted = "leave a minimum with positive curvature at finite weights (separable classes leave none)"
        checks.fail("targets", wanted, f"lowest curvature {lowest:.2g} where the search ended")
    weights = basis.T @ (v * np.sqrt(samples) / scale)  # (d,)
    return Unit(inputs, targets, weights, *loss_derivatives(inputs @ weights, targets))


def checked_unit(unit):
    """Return `unit`, if it is a Unit.

    >>> checked_unit(minimum([[1.0], [1.0]], [0.0, 1.0])).weights.round(12).tolist()
    [0.0]
    """
    return checks.instance("unit", unit, Unit, "as sigmoid.minimum returns it")


def noise_moment(unit, batch, *, replacement=False):
    """Gradient noise of one step at the minimum:  D = (c/N) Σ_α g_α² x_α x_αᵀ.

    The counterpart of eq. (3.4) at q = 0, with -g for the residual.  `unit`: Unit; `batch`, `replacement`: as in
    ``regression.batch_variance``.  Returns (d, d), symmetric, positive semidefinite.

    >>> round(float(noise_moment(minimum(4 * [[1.0]], [0, 1, 1, 1]), 1)[0, 0]) * 16**3, 9)  # Var(y) z'² = (3/16)³
    27.0
    """
    variance = batch_variance(len(checked_unit(unit).inputs), batch, replacement)
    return variance * weighted(unit.inputs, unit.slope**2)


def leading_order_covariance(unit, learning_rate, batch, *, replacement=False):
    """Stationary covariance about the minimum to leading order in ε:  HG + GH = ε D.

    The counterpart of eq. (2.10), with 2D there equal to ε D(0).  Corrections are of relative order ε.
    `learning_rate`: ε > 0; `unit`, `batch`, `replacement`: as in :func:`noise_moment`.  Returns G (d, d), symmetric,
    positive semidefinite.

    >>> round(float(leading_order_covariance(minimum(4 * [[1.0]], [0, 1, 1, 1]), 0.1, 1)[0, 0]), 10)  # ε D / 2H
    0.009375
    """
    noise = noise_moment(unit, batch, replacement=replacement)  # (d, d)
    rate = checks.number("learning_rate", learning_rate, above=0)
    return langevin.stationary_covariance(unit.hessian, rate / 2 * noise)


def quadratic_covariance(unit, learning_rate, batch, *, replacement=False):
    """Stationary covariance of the quadratic twin, exact in ε:  HC + CH = ε E[SCS] + ε D,  S = <h x xᵀ>_B.

    The twin  U' = U(1 - εS) - ε<g xᵀ>  has the curvatures h and the slopes g of the minimum for good, so it is
    stochastic linear learning, eq. (3.2), with a weight h for each sample.  Dense: meant for d up to about 30.
    `learning_rate`: ε > 0, small enough for a stationary C; `unit`, `batch`, `replacement`: as in :func:`noise_moment`.
    Returns C = E[UᵀU] (d, d), symmetric, positive semidefinite.

    >>> unit = minimum(4 * [[1.0]], [0, 1, 1, 1])
    >>> leading, exact = leading_order_covariance(unit, 1.0, 1), quadratic_covariance(unit, 1.0, 1)
    >>> round(float(exact[0, 0] / leading[0, 0]), 4)
    1.0428
    """
    noise = noise_moment(unit, batch, replacement=replacement)  # (d, d)
    rate, one = checks.number("learning_rate", learning_rate, above=0), np.eye(len(noise))  # (d, d)
    variance, hessian = batch_variance(len(unit.inputs), batch, replacement), unit.hessian  # (d, d)
    products = np.einsum("ai,aj->aij", unit.inputs, unit.inputs).reshape(-1, noise.size)  # (N, d²)
    sandwich = (1 - variance) * np.kron(hessian, hessian) + variance * weighted(products, unit.curvature**2)  # (d², d²)
    balance = np.kron(hessian, one) + np.kron(one, hessian) - rate * sandwich  # (d², d²), symmetric
    if not np.linalg.eigvalsh(balance)[0] > EDGE * np.linalg.eigvalsh(hessian)[0]:
        checks.fail("learning_rate", "be smaller: the covariance of the quadratic twin diverges", learning_rate)
    solution = np.linalg.solve(balance, rate * noise.ravel()).reshape(noise.shape)  # (d, d)
    return (solution + solution.T) / 2


def mean_shift(unit, covariance):
    """Distance of the mean weights from the minimum, for small fluctuations:  E[V] = -½ H⁻¹ <k (xᵀGx) x>.

    The average gradient vanishes in the stationary state; the cubic term of the loss then needs a mean to balance it.
    The linear unit has k = 0 and no shift.  `unit`: Unit; `covariance` (d, d): G, symmetric.  Returns (d,).

    >>> round(float(mean_shift(minimum(4 * [[1.0]], [0, 1, 1, 1]), [[0.01]])[0]), 10)  # -3 z'z'' G / 2H, z'' = -z'/2
    0.0075
    """
    matrix = checks.symmetric("covariance", covariance, size=len(checked_unit(unit).weights))  # (d, d)
    forms = np.einsum("ai,ij,aj->a", unit.inputs, matrix, unit.inputs)  # (N,)
    return -np.linalg.solve(unit.hessian, unit.inputs.T @ (unit.skewness * forms)) / (2 * len(forms))  # (d,)

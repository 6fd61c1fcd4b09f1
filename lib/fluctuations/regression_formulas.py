"""The sums behind :mod:`lib.fluctuations.regression` and :mod:`lib.fluctuations.linear`, for checked arguments."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from lib.common import checks
from lib.common.linalg import slices


def weighted(inputs, weights):
    """Σ_α weights_α x_α x_αᵀ / N, array (n, n)."""
    terms = ((inputs[piece] * weights[piece, None]).T @ inputs[piece] for piece in slices(*inputs.shape))
    return sum(terms) / len(inputs)


def fourth(inputs, matrix):
    """F[G] = <(xᵀGx) x xᵀ>, array (n, n)."""
    forms = [np.einsum("an,an->a", inputs[piece] @ matrix, inputs[piece]) for piece in slices(*inputs.shape)]
    return weighted(inputs, np.concatenate(forms))


def sandwich(problem, matrix, variance):
    """E[SGS] = (1 - c) AGA + c F[G], array (n, n)."""
    lam = problem.eigenvalues  # (n,)
    return (1 - variance) * np.outer(lam, lam) * matrix + variance * fourth(problem.inputs, matrix)


def pair_weights(problem, pair):
    """The weights r_i r_k of the samples, array (N,), or |r|² without a pair; refuses outputs that there are not."""
    if pair is None:
        return (problem.residuals**2).sum(axis=1)
    kind, outputs = (int, np.integer), problem.residuals.shape[1]
    good = isinstance(pair, tuple) and len(pair) == 2 and not any(isinstance(i, bool) for i in pair)
    if not good or not all(isinstance(i, kind) and 0 <= i < outputs for i in pair):
        checks.fail("pair", f"be a tuple of two outputs, integers from 0 to {outputs - 1}", pair)
    return problem.residuals[:, pair[0]] * problem.residuals[:, pair[1]]


def noise(problem, variance, pair=None):
    """D = (c/N) Σ_α |r_α|² x_α x_αᵀ, array (n, n), or that of a pair of outputs."""
    return variance * weighted(problem.inputs, pair_weights(problem, pair))


def in_modes(name, value, problem):
    """The argument as a symmetric matrix in the PCA basis; one over the inputs is refused, where its size shows it."""
    inputs, size = problem.basis.shape
    if inputs != size and np.shape(value) == (inputs, inputs):
        wanted = f"be in the PCA basis, where the data have {size} of {inputs} directions"
        remedy = f"pass lib.fluctuations.regression.in_pca_basis(problem, {name})"
        checks.fail(name, f"{wanted}: {remedy}", f"shape ({inputs}, {inputs})")
    return checks.symmetric(name, value, size=size)


def solve(problem, metric, coupling, right):
    """The symmetric G of  metric ∘ G - coupling F[G] = right,  by conjugate gradients scaled by √metric."""
    shape, root = metric.shape, np.sqrt(metric)  # (n, n)

    def act(vector):
        scaled = vector.reshape(shape)  # (n, n)
        return (scaled - coupling * fourth(problem.inputs, scaled / root) / root).ravel()

    target = (right / root).ravel()  # (n²,)
    unit = float(np.abs(target).max()) or 1.0  # squares of tiny numbers would vanish
    operator = LinearOperator((metric.size, metric.size), matvec=act, dtype=np.float64)
    solution, unfinished = cg(operator, target / unit, rtol=1e-13, atol=0.0, maxiter=1000)
    if unfinished:
        checks.fail("learning_rate", "be further below its threshold for the iteration to end", "no end so far")
    solution = unit * solution.reshape(shape) / root  # (n, n)
    return (solution + solution.T) / 2

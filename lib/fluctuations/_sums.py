"""Sums over samples, and the linear equation of the stationary covariance, for arguments that were checked."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from lib.common import checks
from lib.common.linalg import slices

# Eigenvalues of A below this part of the largest count as zero: rounding leaves 1e-28, images have some of 1e-10.
RANGE = 1e-20
LARGEST = 1e30  # eighth powers must stay below overflow, and those of the inverse above underflow


def refuse_extreme(inputs):
    """Refuse `inputs` (N, d) whose powers would leave the floating-point range."""
    top = np.abs(inputs).max()
    wanted = f"have a largest entry from {1 / LARGEST:g} to {LARGEST:g}"
    checks.fail_if(not 1 / LARGEST < top < LARGEST, "inputs", wanted, f"{top:g}")


def batch_variance(samples, batch, replacement):
    """c, the variance of a minibatch mean over that of one sample, after checking that such minibatches exist."""
    batch = checks.integer("batch", batch)
    if checks.boolean("replacement", replacement):
        return 1 / batch
    checks.fail_if(batch > samples, "batch", f"be at most N = {samples} without replacement", batch)
    return (samples - batch) / (batch * (samples - 1))


def weighted(inputs, weights):
    """Σ_α weights_α x_α x_αᵀ / N, array (n, n)."""
    terms = ((inputs[piece] * weights[piece, None]).T @ inputs[piece] for piece in slices(*inputs.shape))
    return sum(terms) / len(inputs)


def fourth(inputs, matrix):
    """F[G] = <(xᵀGx) x xᵀ>, array (n, n)."""
    forms = [np.einsum("an,an->a", inputs[piece] @ matrix, inputs[piece]) for piece in slices(*inputs.shape)]
    return weighted(inputs, np.concatenate(forms))


def solve(inputs, metric, coupling, right):
    """The symmetric G of  metric ∘ G - coupling F[G] = right,  by conjugate gradients scaled by √metric."""
    shape, root = metric.shape, np.sqrt(metric)  # (n, n)

    def act(vector):
        scaled = vector.reshape(shape)  # (n, n)
        return (scaled - coupling * fourth(inputs, scaled / root) / root).ravel()

    target = (right / root).ravel()  # (n²,)
    unit = float(np.abs(target).max()) or 1.0  # squares of tiny numbers would vanish
    operator = LinearOperator((metric.size, metric.size), matvec=act, dtype=np.float64)
    solution, unfinished = cg(operator, target / unit, rtol=1e-13, atol=0.0, maxiter=1000)
    if unfinished:
        checks.fail("learning_rate", "be further below its threshold for the iteration to end", "no end so far")
    solution = unit * solution.reshape(shape) / root  # (n, n)
    return (solution + solution.T) / 2

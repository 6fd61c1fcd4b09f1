"""Networks with their readouts integrated out: what the posteriors of weights and of the filters of patches share."""

import numpy as np

from lib.common import checks, hmc
from lib.fields import _data
from lib.fields.networks._units import units


def stack(name, value, columns):
    """Parameters of C networks of N neurons."""
    result = checks.array(name, value, shape=(None, None, columns))  # (C, N, columns)
    if result.size == 0:
        checks.fail(name, "hold one network or more of one neuron or more", f"shape {result.shape}")
    return result


def _log_determinants(matrices):
    """log det of each matrix, inf where its pivots are lost in rounding: one must not stop the others."""
    try:
        factors = np.linalg.cholesky(matrices)  # (C, P, P)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.array([np.inf])  # (1,)
        return np.concatenate([_log_determinants(one[None]) for one in matrices])  # (C,)
    roots = np.diagonal(factors, axis1=1, axis2=2)  # (C, P)
    kept = _data.sound((roots**2 / np.diagonal(matrices, axis1=1, axis2=2)).min(axis=1), 1)  # (C,)
    return np.where(kept, 2 * np.log(roots).sum(axis=1), np.inf)  # (C,)


def regression(features, y, ridge, readout_variance):
    """(s_a²/N)A⁻¹F, A⁻¹y and log det A of every network; the last is inf, and the others zero, where A is lost."""
    gain = readout_variance / features.shape[2]
    matrix = gain * features @ features.swapaxes(1, 2) + ridge * np.eye(len(y))  # (C, P, P)
    finite = np.isfinite(matrix).all(axis=(1, 2))  # (C,)
    matrix[~finite] = 0  # (P, P)  refused with those that are not positive definite
    logarithm = _log_determinants(matrix) if len(y) else np.zeros(len(matrix))  # (C,)
    sound = logarithm < np.inf  # (C,)
    matrix[~sound], y = np.eye(len(y)), y * sound[:, None]  # (P, P), (C, P)
    features = np.where(sound[:, None, None], features, 0)  # (C, P, N)
    wanted = np.concatenate([gain * features, y[:, :, None]], axis=2)  # (C, P, N+1)
    solved = np.linalg.solve(matrix, wanted)  # (C, P, N+1)
    return solved[..., :-1], solved[..., -1], logarithm


def evaluated(w, functions, x, y, ridge, readout_variance, weight_variance):
    """U, inf where A is lost in rounding, and its gradient; the patches x (P, N_p, S) share the weights w (M, C, S)."""
    (phi, slope), flat = functions, x.reshape(-1, x.shape[2])  # (P·N_p, S)
    u, stiffness = flat @ w.swapaxes(1, 2), x.shape[2] / weight_variance  # (M, P·N_p, C)
    features = phi(u).reshape(len(w), len(y), x.shape[1] * w.shape[1])  # (M, P, N_p·C)
    solved, alpha, logarithm = regression(features, y, ridge, readout_variance)
    value = (stiffness * (w**2).sum(axis=(1, 2)) + logarithm + alpha @ y) / 2  # (M,)
    gain = readout_variance / features.shape[2]
    back = solved - gain * alpha[:, :, None] * (alpha[:, None, :] @ features)  # (M, P, N_p·C)  ∂U/∂F
    return value, stiffness * w + (back.reshape(u.shape) * slope(u)).swapaxes(1, 2) @ flat  # (M,), (M, C, S)


def refuse_singular(value, ridge):
    """Complain where A was lost."""
    if not np.all(value < np.inf):
        checks.fail("ridge", "be large enough for (s_a²/N) FFᵀ + ridge to be positive definite up to rounding", ridge)


def sample(activation, x, y, prior, shape, steps, rng, start, **ways):
    """Chains of weights w (M, C, S) for patches x (P, N_p, S), by Hamiltonian Monte Carlo in units of σ_w/√S."""
    functions = units(activation)
    random, scale = checks.generator("rng", rng), np.sqrt(prior[2] / shape[2])
    if start is None:
        start = scale * random.standard_normal(shape)  # (M, C, S)
    start = checks.array("start", start, shape=shape)  # (M, C, S)
    return hmc.sample(lambda w: evaluated(w, functions, x, y, *prior), start, steps, random, scale=scale, **ways)

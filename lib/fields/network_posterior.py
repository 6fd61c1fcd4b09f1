r"""Bayesian networks of two layers at finite width, with the readouts integrated out: the density of the weights, its gradient, its samples.

The network  f(x) = Σ_c a_c φ(w_c·x)  has the prior  w_c ~ N(0, σ_w²/d), a_c ~ N(0, s_a²/N)  and sees  y_μ = f(x_μ) + noise of variance T.  Given
the features  F = φ(XWᵀ)  the readouts are Gaussian, so what is left to sample is  p(W) ∝ e^{-U(W)},

    U(W) = d|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y,    A = (s_a²/N) FFᵀ + T.

Of :mod:`lib.fields.hmc` it keeps Langevin training at temperature T, of :mod:`lib.fields.langevin_training`, without its error in the step.  At N → ∞ the mean
is that of the Gaussian process of :mod:`lib.fields.nngp`.  Source: ringel2025talk, the deck, slides on Langevin training; the integral over
the readouts is not in it.
"""

import numpy as np

from lib.common import checks
from lib.fields import hmc
from lib.fields._activations import ACTIVATIONS


def _activation(value):
    if not isinstance(value, str) or value not in ACTIVATIONS:
        checks.fail("activation", f"be one of {', '.join(ACTIVATIONS)}", value)
    return ACTIVATIONS[value]


def _data(inputs, targets):
    """X and y; no rows at all leave the prior."""
    x = checks.array("inputs", inputs, ndim=2)  # (P, d)
    if x.shape[1] == 0:
        checks.fail("inputs", "have one component or more", f"shape {x.shape}")
    return x, checks.array("targets", targets, shape=(len(x),))  # (P, d), (P,)


def _points(points, dimension):
    return checks.array("points", points, shape=(None, dimension))  # (M, d)


def _prior(weight_variance, readout_variance):
    given = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    return [checks.number(name, value, above=0) for name, value in given.items()]


def _stack(name, value, columns):
    """Parameters of C networks of N neurons."""
    stack = checks.array(name, value, shape=(None, None, columns))  # (C, N, columns)
    if stack.size == 0:
        checks.fail(name, "hold one network or more of one neuron or more", f"shape {stack.shape}")
    return stack


def _log_determinants(matrices):
    """log det of each matrix, inf where it is not positive definite up to rounding: one such network must not stop the others."""
    try:
        factors = np.linalg.cholesky(matrices)  # (C, P, P)
    except np.linalg.LinAlgError:
        return (
            np.concatenate([_log_determinants(one[None]) for one in matrices])
            if len(matrices) > 1
            else np.array([np.inf])
        )  # (C,)
    return 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)  # (C,)


def _regression(features, y, ridge, readout_variance):
    """(s_a²/N)A⁻¹F, A⁻¹y and log det A of every network; the last is inf, and the others zero, where A is lost in rounding."""
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


def _evaluated(w, functions, x, y, ridge, weight_variance, readout_variance):
    """U, inf where A is lost in rounding, and its gradient."""
    phi, slope = functions
    u = x @ w.swapaxes(1, 2)  # (C, P, N)
    features, stiffness = phi(u), x.shape[1] / weight_variance
    solved, alpha, logarithm = _regression(features, y, ridge, readout_variance)
    value = (stiffness * (w**2).sum(axis=(1, 2)) + logarithm + alpha @ y) / 2  # (C,)
    gain = readout_variance / w.shape[1]
    back = solved - gain * alpha[:, :, None] * (alpha[:, None, :] @ features)  # (C, P, N)  ∂U/∂F
    gradient = stiffness * w + (back * slope(u)).swapaxes(1, 2) @ x  # (C, N, d)
    return value, gradient


def _refuse_singular(value, ridge):
    if not np.all(value < np.inf):
        checks.fail("ridge", "be large enough for (s_a²/N) FFᵀ + ridge to be positive definite up to rounding", ridge)


def potential(weights, activation, inputs, targets, ridge, *, weight_variance=1.0, readout_variance=1.0):
    r"""U(W) = d|W|²/2σ_w² + ½ log det A + ½ yᵀA⁻¹y  and its gradient, of several networks.

    With α = A⁻¹y the gradient is  dW/σ_w² + (∂_F U ∘ φ')ᵀX,  ∂_F U = (s_a²/N) [A⁻¹F - α(αᵀF)].  A constant that does not depend on W is left
    out.  Source: ringel2025talk, the deck, slides on Langevin training, readouts integrated.

    Parameters
    ----------
    weights : array (C, N, d)     W of C networks
    activation : str              φ: "erf", "relu" or "linear"
    inputs : array (P, d)         X; P = 0 leaves the prior
    targets : array (P,)          y
    ridge : float                 T, temperature and variance of the label noise; > 0
    weight_variance : float       σ_w², of √d w; > 0
    readout_variance : float      s_a², of √N a; > 0

    Returns
    -------
    (array (C,), array (C, N, d))

    Raises
    ------
    ValueError                    if an argument is outside its range, or the ridge is lost in the rounding of A

    Examples
    --------
    >>> value, gradient = potential([[[2.0]]], "linear", [[1.0]], [0.0], 1.0)  # d = N = P = 1:  w²/2 + log(w² + 1)/2
    >>> value.round(6).tolist(), gradient.ravel().tolist()
    ([2.804719], [2.4])
    """
    functions = _activation(activation)
    x, y = _data(inputs, targets)  # (P, d), (P,)
    w = _stack("weights", weights, x.shape[1])  # (C, N, d)
    ridge = checks.number("ridge", ridge, above=0)
    with np.errstate(over="ignore", invalid="ignore"):
        checks.finite("weights", (w**2).sum(axis=(1, 2)))  # (C,)
        value, gradient = _evaluated(w, functions, x, y, ridge, *_prior(weight_variance, readout_variance))
    _refuse_singular(value, ridge)
    return value, checks.finite("weights", gradient)


def predict(weights, activation, inputs, targets, ridge, points, *, readout_variance=1.0):
    r"""Posterior mean function given the weights:  f̄(x) = (s_a²/N) φ(xWᵀ) Fᵀ α,  the regression on the features of each network.

    Source: ringel2025talk, the deck, slides on Gaussian-process regression, with the kernel of one network.

    Parameters
    ----------
    weights : array (C, N, d)     W of C networks
    activation : str              "erf", "relu" or "linear"
    inputs : array (P, d)         X
    targets : array (P,)          y
    ridge : float                 T; > 0
    points : array (M, d)         where to predict
    readout_variance : float      s_a²; > 0

    Returns
    -------
    array (C, M)                  f̄ at the points; its mean over samples of W is the posterior mean

    Raises
    ------
    ValueError                    if an argument is outside its range, or the ridge is lost in the rounding of A

    Examples
    --------
    >>> predict([[[2.0]], [[0.0]]], "linear", [[1.0]], [5.0], 1.0, [[1.0], [3.0]]).round(12).tolist()
    [[4.0, 12.0], [0.0, 0.0]]
    """
    phi, _ = _activation(activation)
    x, y = _data(inputs, targets)  # (P, d), (P,)
    w, points = _stack("weights", weights, x.shape[1]), _points(points, x.shape[1])  # (C, N, d), (M, d)
    ridge, readout_variance = checks.number("ridge", ridge, above=0), _prior(1.0, readout_variance)[1]
    with np.errstate(over="ignore", invalid="ignore"):
        features = phi(x @ w.swapaxes(1, 2))  # (C, P, N)
        _, alpha, logarithm = _regression(features, y, ridge, readout_variance)
        _refuse_singular(logarithm, ridge)
        readouts = readout_variance / w.shape[1] * (alpha[:, None, :] @ features)  # (C, 1, N)
        return checks.finite("points", (phi(points @ w.swapaxes(1, 2)) @ readouts.swapaxes(1, 2))[..., 0])  # (C, M)


def sample(
    activation, inputs, targets, ridge, width, chains, steps, seed, *,
    weight_variance=1.0, readout_variance=1.0, start=None, observable=None, leapfrog=10, burn_in=None, acceptance=0.8,
):  # fmt: skip
    r"""Samples of the weights from their posterior, by Hamiltonian Monte Carlo in units of the prior's deviation σ_w/√d.

    Source: ringel2025talk, the deck, slides on Langevin training, whose stationary density this is.

    Parameters
    ----------
    activation : str                    "erf", "relu" or "linear"
    inputs : array (P, d)               X; P = 0 leaves the prior
    targets : array (P,)                y
    ridge : float                       T; > 0
    width : int                         N; >= 1
    chains : int                        C; >= 1
    steps : int                         S, samples kept of each chain; >= 1
    seed : int, SeedSequence or Generator
    weight_variance : float             σ_w²; > 0
    readout_variance : float            s_a²; > 0
    start : array (C, N, d), optional   first weights, to look for metastable states; default: drawn from the prior
    observable : function, optional     takes W (C, N, d), returns an array (C, ...) that is kept in place of W
    leapfrog, burn_in, acceptance       as in :func:`lib.fields.hmc.sample`

    Returns
    -------
    hmc.Chains                          samples (S, C, N, d), or (S, C, ...) of the observable

    Examples
    --------
    >>> x, y = [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    >>> chains = sample("erf", x, y, 0.1, 5, 10, 50, seed=1, observable=lambda w: predict(w, "erf", x, y, 0.1, x))
    >>> chains.samples.shape, np.sign(chains.samples.mean(axis=(0, 1))).tolist()
    ((50, 10, 2), [1.0, -1.0])
    """
    functions = _activation(activation)
    x, y = _data(inputs, targets)  # (P, d), (P,)
    ridge, prior = checks.number("ridge", ridge, above=0), _prior(weight_variance, readout_variance)
    shape = checks.integer("chains", chains), checks.integer("width", width), x.shape[1]
    random, scale = checks.generator("seed", seed), np.sqrt(prior[0] / x.shape[1])
    if start is None:
        start = scale * random.standard_normal(shape)  # (C, N, d)
    start = checks.array("start", start, shape=shape)  # (C, N, d)
    return hmc.sample(
        lambda w: _evaluated(w, functions, x, y, ridge, *prior), start, steps, random,
        leapfrog=leapfrog, burn_in=burn_in, acceptance=acceptance, scale=scale, observable=observable,
    )  # fmt: skip

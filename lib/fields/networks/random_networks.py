"""Two-layer networks of finite width with random weights: outputs, excess kurtosis, characteristic functional.

The network is  z(x) = Σ_c a_c φ(w_c·x),  c = 1..N,  with independent weights of variance σ_w²/d and readouts of
variance s_a²/N, Gaussian or uniform: the source draws  w ∈ U[-d^{-1/2}, d^{-1/2}] and a likewise, σ_w² = s_a² = 1/3.
Source: ringel2025talk, on random networks.
"""

import numpy as np
from scipy.fft import dct
from scipy.special import erf, ndtr

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.shapes import Array, ArrayLike, Rng
from lib.fields._data import points, positive
from lib.fields.networks._units import KERNELS, units
from lib.foundations import sampling

LAWS = ("gaussian", "uniform")
BLOCK = 2**21  # values of neurons in memory at a time
FOURTH_MOMENT = {"gaussian": 3.0, "uniform": 9 / 5}  # ⟨a⁴⟩ / ⟨a²⟩²
LARGEST_REACH = 1e4  # pre-activations of erf units whose moments a cosine series resolves


def _draw(rng, shape, variance, law):
    if law == "gaussian":
        return np.sqrt(variance) * rng.standard_normal(shape)  # shape
    return np.sqrt(3 * variance) * rng.uniform(-1, 1, shape)  # shape


def _ensemble(activation, inputs, width, law, **variances):
    """φ, x (n, d), N, and the variances, checked."""
    phi, _ = units(activation, KERNELS)
    checks.one_of("law", law, LAWS)
    return phi, points("inputs", inputs), checks.integer("width", width), positive(**variances)


def sample(
    activation: str, inputs: ArrayLike, width: int, replicas: int, rng: Rng, *,
    weight_variance: float = 1.0, readout_variance: float = 1.0, law: str = "gaussian",
) -> Array["S n"]:  # fmt: skip
    """Outputs z(x) of random networks at the given inputs, each network at all of them.

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    inputs : array_like (n, d)
        x.
    width, replicas : int
        N, and S networks.
    rng : int, SeedSequence or Generator
    weight_variance, readout_variance : float
        σ_w² > 0 of √d w, s_a² > 0 of √N a.
    law : str
        "gaussian" or "uniform", of weights and readouts, with the same variances.

    Returns
    -------
    ndarray (S, n)

    Examples
    --------
    >>> z = sample("erf", [[1.0, 0.0], [-1.0, 0.0]], 5, 3, rng=1)
    >>> bool(np.allclose(z[:, 0], -z[:, 1]))  # erf networks without biases are odd
    True
    """
    scales = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    phi, x, width, variances = _ensemble(activation, inputs, width, law, **scales)
    rng, replicas, (count, dimension) = checks.generator("rng", rng), checks.integer("replicas", replicas), x.shape
    result = np.empty((replicas, count))  # (S, n)
    many = max(1, BLOCK // (width * max(dimension, count)))  # networks at a time
    few = max(1, BLOCK // width)  # inputs at a time, where one network fills a block
    for start in range(0, replicas, many):
        size = min(many, replicas - start)
        weights = _draw(rng, (size, width, dimension), variances[0] / dimension, law)  # (size, N, d)
        readouts = _draw(rng, (size, 1, width), variances[1] / width, law)  # (size, 1, N)
        for first in range(0, count, few):
            with np.errstate(over="ignore", invalid="ignore"):
                hidden = phi(weights @ x[first : first + few].T)  # (size, N, few)
                result[start : start + size, first : first + few] = (readouts @ hidden)[:, 0]  # (size, few)
    return checks.finite("inputs", result)  # (S, n)


def _erf_moments(point, variance, law):
    """⟨erf²(u)⟩ and ⟨erf⁴(u)⟩ of u = w·x for one input.

    erf saturates, so a period 2L of a few units makes its even powers smooth periodic functions Σ_m c_m cos(πmu/L);
    each cosine averages to the characteristic function of u, a product over components: no density and no sampling.
    """
    spread = np.sqrt(variance * (point @ point))
    reach = 9 * spread if law == "gaussian" else np.sqrt(3 * variance) * np.abs(point).sum()
    if not reach <= LARGEST_REACH:
        checks.fail("inputs", f"give pre-activations below {LARGEST_REACH:g}", f"pre-activations up to {reach:.3g}")
    half = max(6.0, (reach + 6) / 2)  # L: within 6 of a multiple of 2L, out of reach, the powers differ from one
    nodes = int(np.ceil(10 * half))
    u = half * np.arange(nodes + 1) / nodes  # (J + 1,)  spacing 0.1, which resolves wave numbers up to 10π
    series = dct(erf(u) ** np.array([[2], [4]]), type=1) / nodes  # (2, J + 1)
    series[:, [0, -1]] /= 2  # a cosine series, from the sums of the transform
    wave = np.pi * np.arange(nodes + 1) / half  # (J + 1,)
    if law == "gaussian":
        characteristic = np.exp(-((spread * wave) ** 2) / 2)  # (J + 1,)
    else:
        characteristic = np.ones(nodes + 1)  # (J + 1,)
        for component in np.sqrt(3 * variance) * point:
            characteristic *= np.sinc(component * wave / np.pi)  # (J + 1,)
    second, fourth = series @ characteristic
    if fourth < 1e-6:  # the sum is exact to 1e-16, so ten digits are left
        wanted = "give erf units an average fourth power >= 1e-6: below it, units are linear"
        checks.fail("inputs", wanted, f"{fourth:.3g}")
    return second, fourth


def excess_kurtosis(
    activation: str, inputs: ArrayLike, width: int, *, weight_variance: float = 1.0, law: str = "gaussian"
) -> Array[" n"]:
    """Excess kurtosis of the output at each input, exact at any width:  κ₄ = (1/N) [ ⟨a⁴⟩/⟨a²⟩² · ⟨φ⁴⟩/⟨φ²⟩² - 3 ].

    Gaussian weights: ReLU has ⟨φ⁴⟩/⟨φ²⟩² = 6 and κ₄ = 15/N at every input, erf units less.  Uniform weights:
    ⟨a⁴⟩/⟨a²⟩² = 9/5, and ReLU has ⟨φ⁴⟩/⟨φ²⟩² = 6 - (12/5) Σ_i x_i⁴/|x|⁴.

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    inputs : array_like (n, d)
        x, none at the origin.
    width : int
        N >= 1.
    weight_variance : float
        σ_w² > 0 of √d w.
    law : str
        "gaussian" or "uniform", of weights and readouts.

    Returns
    -------
    ndarray (n,)
        κ₄ = ⟨z⁴⟩/⟨z²⟩² - 3.

    Examples
    --------
    >>> excess_kurtosis("relu", [[1.0, 1.0]], 5, law="uniform").round(6).tolist()
    [1.128]
    """
    _, x, width, (variance,) = _ensemble(activation, inputs, width, law, weight_variance=weight_variance)
    variance /= x.shape[1]
    largest = np.abs(x).max(axis=1, keepdims=True)  # (n, 1)
    if np.any(largest == 0):
        checks.fail("inputs", "differ from the origin, where every network is zero", inputs)
    if activation == "erf":
        with np.errstate(over="ignore"):  # an overflow is a reach that is refused
            moments = np.array([_erf_moments(point, variance, law) for point in x])  # (n, 2)
        ratio = moments[:, 1] / moments[:, 0] ** 2  # (n,)
    else:
        squares = (x / largest) ** 2  # (n, d)
        fourth = (squares**2).sum(axis=1) / squares.sum(axis=1) ** 2  # (n,)
        ratio = np.full(len(x), 6.0) if law == "gaussian" else 6 - 12 / 5 * fourth  # (n,)
    return (FOURTH_MOMENT[law] * ratio - 3) / width  # (n,)


def characteristic_functional(
    activation: str, inputs: ArrayLike, sources: ArrayLike, width: int, samples: int, rng: Rng, *,
    weight_variance: float = 1.0, readout_variance: float = 1.0, law: str = "gaussian",
) -> Estimate:  # fmt: skip
    """Characteristic functional  ⟨exp(i Σ_μ t_μ z(x_μ))⟩ = ⟨ χ( t·φ(w·x) ) ⟩_w^N  of networks of any width, sampled.

    χ(g) = exp[-s_a² g²/2N]  for Gaussian readouts and  sin(h g)/(h g),  h = √(3s_a²/N),  for uniform ones.  It is real
    and tends to exp(-½ tᵀKt) as N → ∞.  A wide network takes no more samples than a single neuron: the relative error
    is N times that of the mean over neurons, which falls as 1/N.

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    inputs, sources : array_like (n, d), (n,)
        x_μ and t_μ.
    width, samples : int
        N >= 1, and neurons drawn, >= 2.
    rng : int, SeedSequence or Generator
    weight_variance, readout_variance : float
        σ_w² > 0 of √d w, s_a² > 0 of √N a.
    law : str
        "gaussian" or "uniform", of weights and readouts.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> sampled = characteristic_functional("relu", [[1.0]], [1.0], 1, 100_000, rng=1)  # (1 + 1/√2)/2
    >>> abs(sampled.mean - 0.853553) < 5 * sampled.error < 0.005
    True
    """
    scales = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    phi, x, width, variances = _ensemble(activation, inputs, width, law, **scales)
    t = checks.array("sources", sources, shape=x.shape[:1])  # (n,)
    scale, readout = np.sqrt(variances[0] / x.shape[1]), np.sqrt(variances[1] / width)

    def factor(normal):
        weights = scale * (normal if law == "gaussian" else np.sqrt(3) * (2 * ndtr(normal) - 1))  # (m, d)
        with np.errstate(over="ignore", invalid="ignore"):
            field = checks.finite("inputs", readout * phi(weights @ x.T) @ t)  # (m,)
            field = np.minimum(np.abs(field), 1e100)  # whose square is a number
        return np.exp(-(field**2) / 2) if law == "gaussian" else np.sinc(np.sqrt(3) * field / np.pi)  # (m,)

    single = sampling.monte_carlo_average(factor, np.eye(x.shape[1]), samples, rng)
    slope = width * abs(single.mean) ** (width - 1)
    return Estimate(float(single.mean**width), float(slope * single.error))

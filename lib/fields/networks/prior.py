"""The prior over functions of a random network: kernels, spectrum on the sphere, and what is not Gaussian.

A network  z(x) = Σ_c a_c φ(w_c·x),  c = 1..N,  with weights of covariance Σ and readouts of variance s_a²/N has the
covariance  K(x, x') = s_a² ⟨φ(w·x) φ(w·x')⟩  at every width, and is a Gaussian process at N → ∞.  Source:
ringel2025talk, on random networks; biases, depth and the tangent kernel are not in it (jacot2018).
"""

from dataclasses import dataclass, field
from math import comb

import numpy as np
from scipy.fft import dct
from scipy.special import erf, factorial, ndtr

from lib.common import checks
from lib.common.estimate import Estimate
from lib.common.linalg import psd_root
from lib.common.shapes import Array, ArrayLike, Rng
from lib.common.spectrum import Spectrum
from lib.fields._data import points, positive, whole
from lib.fields.networks._units import ACTIVATIONS as _UNITS
from lib.fields.networks._units import average, covariances, units, variances, with_slopes
from lib.foundations import sampling
from lib.foundations.gaussian import LARGEST

__all__ = ["ACTIVATIONS", "LAWS", "Prior"]

ACTIVATIONS = tuple(_UNITS)
LAWS = ("gaussian", "uniform")
_PAIRS = 2**18  # pairs of inputs whose 2 x 2 covariances are in memory at a time
_NEURONS = 2**21  # values of neurons in memory at a time
_FOURTH_MOMENT = {"gaussian": 3.0, "uniform": 9 / 5}  # ⟨a⁴⟩ / ⟨a²⟩²
_LARGEST_REACH = 1e4  # pre-activations of erf units whose moments a cosine series resolves


def _draw(rng, shape, variance, law):
    if law == "gaussian":
        return np.sqrt(variance) * rng.standard_normal(shape)  # shape
    return np.sqrt(3 * variance) * rng.uniform(-1, 1, shape)  # shape


def _erf_moments(point, variance, law):
    """⟨erf²(u)⟩ and ⟨erf⁴(u)⟩ of u = w·x for one input.

    erf saturates, so a period 2L of a few units makes its even powers smooth periodic functions Σ_m c_m cos(πmu/L);
    each cosine averages to the characteristic function of u, a product over components: no density and no sampling.
    """
    spread = np.sqrt(variance * (point @ point))
    reach = 9 * spread if law == "gaussian" else np.sqrt(3 * variance) * np.abs(point).sum()
    if not reach <= _LARGEST_REACH:
        checks.fail("inputs", f"give pre-activations below {_LARGEST_REACH:g}", f"pre-activations up to {reach:.3g}")
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


@dataclass(frozen=True, eq=False)
class Prior:
    """A random network's law of functions, before it has seen data.

    Parameters
    ----------
    activation : str
        φ, "erf", "relu" or "linear"; erf(u), without a √2.
    depth : int
        Hidden layers L >= 1, of N neurons each.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0 of  w_c ~ N(0, σ_w²/d), a_c ~ N(0, s_a²/N), and σ_w²/N of weights beyond the first layer.
    bias_variance : float
        σ_b² >= 0 of the hidden neurons.
    weight_covariance : array_like (d, d), optional
        C in Σ = σ_w² C of the first layer, positive semidefinite, by default I/d.
    law : str
        "gaussian" or "uniform", of weights and readouts, with the same variances; kernels of uniform weights hold at
        large d.  The source draws both from [-d^{-1/2}, d^{-1/2}]: σ_w² = s_a² = 1/3.

    Examples
    --------
    >>> Prior("relu", weight_variance=2.0).variance([[3.0, 4.0]]).tolist()  # s = 2 · 25 / 2
    [12.5]
    """

    activation: str
    depth: int = field(default=1, kw_only=True)
    weight_variance: float = field(default=1.0, kw_only=True)
    readout_variance: float = field(default=1.0, kw_only=True)
    bias_variance: float = field(default=0.0, kw_only=True)
    weight_covariance: Array["d d"] | None = field(default=None, kw_only=True)
    law: str = field(default="gaussian", kw_only=True)

    def __post_init__(self):
        checks.one_of("activation", self.activation, ACTIVATIONS)
        weight, readout = positive(weight_variance=self.weight_variance, readout_variance=self.readout_variance)
        bias, c = checks.number("bias_variance", self.bias_variance, at_least=0), self.weight_covariance
        checks.keep(self, depth=checks.integer("depth", self.depth), weight_variance=weight)
        checks.keep(self, readout_variance=readout, bias_variance=bias)
        if c is not None:
            checks.keep(self, weight_covariance=checks.symmetric("weight_covariance", c, definite="semi"))
        if checks.one_of("law", self.law, LAWS) == "uniform" and c is not None:
            checks.fail("law", "be gaussian with a weight_covariance", self.law)

    def _plain(self, what):
        """Complain where the network is not the simplest one, of which `what` is known."""
        checks.fail_if(self.depth > 1, "depth", f"be 1 for {what}", self.depth)
        checks.fail_if(self.bias_variance > 0, "bias_variance", f"be 0 for {what}", self.bias_variance)
        c = self.weight_covariance
        checks.fail_if(c is not None, "weight_covariance", f"be None, of isotropic weights, for {what}", c)

    def _read(self, name, value, dimension=None):
        """Inputs (n, d), the same times Σ, and the variances of the pre-activations of each layer (n,)."""
        c = self.weight_covariance
        x = points(name, value, len(c) if c is not None else dimension)  # (n, d)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows here is refused as a variance
            weighted = self.weight_variance * (x / x.shape[1] if c is None else x @ c)  # (n, d)
        layers = [variances(name, weighted, x) + self.bias_variance]  # (n,)
        for _ in range(1, self.depth):
            layers.append(self._next(average(self.activation, covariances(*[layers[-1]] * 3))))  # (n,)
            wanted = f"give pre-activations of a variance <= {LARGEST / 2:g} in every layer"
            checks.fail_if(not np.all(layers[-1] <= LARGEST / 2), "depth", wanted, layers[-1])
        return x, weighted, layers

    def _next(self, averages):
        return self.weight_variance * averages + self.bias_variance  # (...)

    def _readout(self, averages):
        with np.errstate(over="ignore"):
            return checks.finite("readout_variance", self.readout_variance * averages)  # (...)

    def _through(self, s12, lower, upper, tangent, start):
        """⟨φφ⟩ of the last layer, or its tangent kernel, for covariances s12 (rows, m) of the first."""
        slopes = s12  # (rows, m)  what all weights below this layer add to the tangent kernel
        for layer, (s11, s22) in enumerate(zip(lower, upper)):
            if start is not None:
                np.fill_diagonal(s12, s11)  # the same to the last digit, on which a large variance depends
            pairs = covariances(s11[:, None], s12, s22[None])  # (rows, m, 2, 2)
            if tangent:
                found, slope, _ = with_slopes(self.activation, pairs)  # (rows, m) each
                slopes = slope * slopes
            else:
                found = average(self.activation, pairs)  # (rows, m)
            if layer + 1 < self.depth:
                s12, slopes = self._next(found), self.weight_variance * slopes
                slopes = slopes + s12
        return found + slopes if tangent else found

    def _gram(self, inputs, other, tangent):
        x, weighted, lower = self._read("inputs", inputs)
        y, _, upper = (x, weighted, lower) if other is None else self._read("other", other, x.shape[1])
        result = np.empty((len(x), len(y)))  # (n, m)
        rows = max(1, _PAIRS // len(y))
        for start in range(0, len(x), rows):
            block = slice(start, start + rows)
            first = start if other is None else 0  # without `other`, what is left of the block is known by symmetry
            s12 = weighted[block] @ y[first:].T + self.bias_variance  # (rows, m - first)
            parts = [s[block] for s in lower], [s[first:] for s in upper]
            result[block, first:] = self._through(s12, *parts, tangent, start if other is None else None)
            if other is None:
                result[block, block] = (
                    np.triu(result[block, block]) + np.triu(result[block, block], 1).T
                )  # (rows, rows)
                result[start + rows :, block] = result[block, start + rows :].T
        return self._readout(result)  # (n, m)

    def kernel(self, inputs: ArrayLike, other: ArrayLike | None = None) -> Array["n m"]:
        """Covariance K(x, x') of the outputs, at N → ∞ or, of one hidden layer, at any width.

        K = s_a²⟨φφ⟩;  erf:  ⟨φφ⟩ = (2/π) arcsin[ 2s_12 / √((1 + 2s_11)(1 + 2s_22)) ];  ReLU:  √(s_11 s_22) [sin θ +
        (π - θ) cos θ] / 2π,  cos θ = s_12 / √(s_11 s_22);  s = xᵀΣx' + σ_b²,  and  σ_w²⟨φφ⟩ + σ_b²  in the next layer.

        Parameters
        ----------
        inputs, other : array_like (n, d), (m, d)
            x and x', one row an input; by default x' = x.

        Returns
        -------
        ndarray (n, m)

        Examples
        --------
        >>> Prior("erf", weight_covariance=np.eye(2) / 2).kernel(np.eye(2)).round(6).tolist()  # arcsin(1/2) 2/π, 0
        [[0.333333, 0.0], [0.0, 0.333333]]
        """
        return self._gram(inputs, other, tangent=False)

    def tangent_kernel(self, inputs: ArrayLike, other: ArrayLike | None = None) -> Array["n m"]:
        """Tangent kernel at N → ∞,  Θ = Σ_θ ∂z(x)/∂θ ∂z(x')/∂θ  of all parameters, each in units of its prior's width.

        θ_1 = s_1,  θ_{l+1} = s_{l+1} + σ_w²⟨φ'φ'⟩_l θ_l,  and last  Θ = s_a²(⟨φφ⟩_L + ⟨φ'φ'⟩_L θ_L).

        Parameters
        ----------
        inputs, other : array_like (n, d), (m, d)
            x and x', one row an input; by default x' = x.

        Returns
        -------
        ndarray (n, m)

        Examples
        --------
        >>> Prior("relu").tangent_kernel([[1.0], [-1.0]]).tolist()  # both layers the same, s/2
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return self._gram(inputs, other, tangent=True)

    def variance(self, inputs: ArrayLike) -> Array[" n"]:
        """Variance K(x, x) of the output:  s_a² (2/π) arcsin[2s/(1 + 2s)]  for erf,  s_a² s/2  for ReLU.

        Parameters
        ----------
        inputs : array_like (n, d)
            x, one row an input.

        Returns
        -------
        ndarray (n,)
            The diagonal of `kernel` without the rest.

        Examples
        --------
        >>> Prior("erf", depth=2, weight_variance=0.5).variance([[1.0]]).round(6).tolist()  # s = 1/2, then 1/6
        [0.160861]
        """
        s = self._read("inputs", inputs)[2][-1]  # (n,)
        return self._readout(average(self.activation, covariances(s, s, s)))  # (n,)

    def coefficients(self, order: int) -> Array[" n"]:
        """Coefficients A_n of  K = Σ_n A_n ρⁿ,  ρ = x·x'/d,  between inputs with |x|² = |x'|² = d.

        A_n = s_a² σ_w^{2n} ⟨φ⁽ⁿ⁾⟩²/n!,  average over u ~ N(0, σ_w²);  they add up to the variance K(x, x).
        erf:   A_{2k+1} = s_a² (2/π) C(2k, k) z^{2k+1} / [4ᵏ (2k+1)],   z = 2σ_w² / (1 + 2σ_w²),   and no even ones;
        ReLU:  A_0 = s_a² σ_w²/2π,  A_1 = s_a² σ_w²/4,  A_{2k+2} = s_a² σ_w² C(2k, k) / [2π 4ᵏ (2k+1)(2k+2)];
        linear:  A_1 = s_a² σ_w²  alone.

        Parameters
        ----------
        order : int
            Highest n >= 0; one hidden layer of isotropic weights without biases.

        Returns
        -------
        ndarray (order + 1,)
            A_0 .. A_order.

        Examples
        --------
        >>> (np.pi * Prior("relu").coefficients(4)).round(6).tolist()
        [0.5, 0.785398, 0.25, 0.0, 0.020833]
        """
        self._plain("the coefficients")
        order, variance = checks.integer("order", order, at_least=0), self.weight_variance
        k = np.arange(order // 2 + 1)  # (order // 2 + 1,)
        central = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / k[1:]]))  # (order // 2 + 1,)  C(2k, k) / 4ᵏ
        result = np.zeros(order + 1)  # (order + 1,)
        if self.activation == "erf":
            k, central = k[: (order + 1) // 2], central[: (order + 1) // 2]  # odd n up to the order
            result[1::2] = 2 / np.pi * central * (1 / (1 + 0.5 / variance)) ** (2.0 * k + 1) / (2 * k + 1)
            return self._readout(result)  # (order + 1,)
        if self.activation == "linear":
            result[1:2] = variance
            return self._readout(result)  # (order + 1,)
        result[0] = 1 / (2 * np.pi)
        result[1:2] = 0.25
        k, central = k[: order // 2], central[: order // 2]  # the even n from 2 on
        result[2::2] = central / (2 * np.pi * (2 * k + 1) * (2 * k + 2))
        return self._readout(variance * result)  # (order + 1,)

    def spectrum(self, dimension: int, degrees: ArrayLike) -> Spectrum:
        """Eigenvalues and multiplicities of the kernel on the sphere |x|² = d in d dimensions, to leading order in 1/d.

        λ_ℓ ≃ s_a² (σ_w²/d)^ℓ ⟨φ⁽ℓ⁾⟩² = ℓ! A_ℓ d^{-ℓ},  g_ℓ = C(ℓ+d-1, ℓ) - C(ℓ+d-3, ℓ-2),  exact.  The correction to
        λ_ℓ is the factor 1 + [(ℓ+1)(ℓ+2) A_{ℓ+2}/2A_ℓ - ℓ(ℓ-1)]/d + O(1/d²).  What the listed degrees leave of the
        variance,  K(x, x) - Σ_ℓ g_ℓ λ_ℓ,  sits in many tiny modes and acts as a ridge.  The source's sphere S^d is
        S^{d-1}.

        Parameters
        ----------
        dimension : int
            d >= 2.
        degrees : array_like (L,)
            Integers ℓ from 0 to 100, not all of eigenvalue zero.

        Returns
        -------
        Spectrum
            λ_ℓ and g_ℓ, in the order of the degrees.

        Examples
        --------
        >>> sphere = Prior("erf").spectrum(50, [1, 3])
        >>> (np.pi * sphere.eigenvalues * 50 ** np.array([1, 3])).round(6).tolist()  # 4/3 and 16/27
        [1.333333, 0.592593]
        >>> sphere.multiplicities.tolist()
        [50.0, 22050.0]
        """
        d = checks.integer("dimension", dimension, at_least=2)
        ell = whole("degrees", degrees, count=1, at_least=0, at_most=100, ndim=1)  # (L,)
        counts = [comb(n + d - 1, n) - (comb(n + d - 3, n - 2) if n > 1 else 0) for n in ell.tolist()]  # L integers
        try:
            multiplicities = np.array(counts, dtype=np.float64)  # (L,)
        except OverflowError:
            checks.fail("dimension", "be small enough to count the modes in floating point", dimension)
        return Spectrum(self.coefficients(int(ell.max()))[ell] * factorial(ell) * float(d) ** -ell, multiplicities)

    def excess_kurtosis(self, inputs: ArrayLike, width: int) -> Array[" n"]:
        """Excess kurtosis of the output at each input, exact at any width:  κ₄ = (1/N) [⟨a⁴⟩/⟨a²⟩² · ⟨φ⁴⟩/⟨φ²⟩² - 3].

        Gaussian weights: ReLU has ⟨φ⁴⟩/⟨φ²⟩² = 6 and κ₄ = 15/N at every input, erf units less.  Uniform weights:
        ⟨a⁴⟩/⟨a²⟩² = 9/5, and ReLU has ⟨φ⁴⟩/⟨φ²⟩² = 6 - (12/5) Σ_i x_i⁴/|x|⁴.  Linear units have half of that ratio.

        Parameters
        ----------
        inputs : array_like (n, d)
            x, none at the origin; one hidden layer of isotropic weights without biases.
        width : int
            N >= 1.

        Returns
        -------
        ndarray (n,)
            κ₄ = ⟨z⁴⟩/⟨z²⟩² - 3.

        Examples
        --------
        >>> Prior("relu", law="uniform").excess_kurtosis([[1.0, 1.0]], 5).round(6).tolist()
        [1.128]
        """
        self._plain("the kurtosis")
        x, width = points("inputs", inputs), checks.integer("width", width)  # (n, d)
        variance = self.weight_variance / x.shape[1]
        largest = np.abs(x).max(axis=1, keepdims=True)  # (n, 1)
        if np.any(largest == 0):
            checks.fail("inputs", "differ from the origin, where every network is zero", inputs)
        if self.activation == "erf":
            with np.errstate(over="ignore"):  # an overflow is a reach that is refused
                moments = np.array([_erf_moments(point, variance, self.law) for point in x])  # (n, 2)
            ratio = moments[:, 1] / moments[:, 0] ** 2  # (n,)
        else:
            squares = (x / largest) ** 2  # (n, d)
            fourth = (squares**2).sum(axis=1) / squares.sum(axis=1) ** 2  # (n,)
            half = 1 if self.activation == "relu" else 2  # of the inputs or all of them make a unit speak
            ratio = (6 - (0 if self.law == "gaussian" else 12 / 5 * fourth)) / half * np.ones(len(x))  # (n,)
        return (_FOURTH_MOMENT[self.law] * ratio - 3) / width  # (n,)

    def characteristic_functional(
        self, inputs: ArrayLike, sources: ArrayLike, width: int, samples: int, rng: Rng
    ) -> Estimate:
        """Characteristic functional  ⟨exp(i Σ_μ t_μ z(x_μ))⟩ = ⟨χ(t·φ(w·x))⟩_w^N  of networks of any width, sampled.

        χ(g) = exp[-s_a² g²/2N]  for Gaussian readouts and  sin(h g)/(h g),  h = √(3s_a²/N),  for uniform ones.  It is
        real and tends to exp(-½ tᵀKt) as N → ∞.  A wide network takes no more samples than a single neuron: the
        relative error is N times that of the mean over neurons, which falls as 1/N.

        Parameters
        ----------
        inputs, sources : array_like (n, d), (n,)
            x_μ and t_μ; one hidden layer of isotropic weights without biases.
        width, samples : int
            N >= 1, and neurons drawn, >= 2.
        rng : int, SeedSequence or Generator

        Returns
        -------
        Estimate

        Examples
        --------
        >>> sampled = Prior("relu").characteristic_functional([[1.0]], [1.0], 1, 100_000, rng=1)  # (1 + 1/√2)/2
        >>> abs(sampled.mean - 0.853553) < 5 * sampled.error < 0.005
        True
        """
        self._plain("the characteristic functional")
        (phi, _), x = units(self.activation), points("inputs", inputs)  # (n, d)
        t, width = checks.array("sources", sources, shape=x.shape[:1]), checks.integer("width", width)  # (n,)
        scale, readout = np.sqrt(self.weight_variance / x.shape[1]), np.sqrt(self.readout_variance / width)
        normal_law = self.law == "gaussian"

        def factor(normal):
            weights = scale * (normal if normal_law else np.sqrt(3) * (2 * ndtr(normal) - 1))  # (m, d)
            with np.errstate(over="ignore", invalid="ignore"):
                values = checks.finite("inputs", readout * phi(weights @ x.T) @ t)  # (m,)
                values = np.minimum(np.abs(values), 1e100)  # whose square is a number
            return np.exp(-(values**2) / 2) if normal_law else np.sinc(np.sqrt(3) * values / np.pi)  # (m,)

        single = sampling.monte_carlo_average(factor, np.eye(x.shape[1]), samples, rng)
        slope = width * abs(single.mean) ** (width - 1)
        return Estimate(float(single.mean**width), float(slope * single.error))

    def draw(self, inputs: ArrayLike, width: int, replicas: int, rng: Rng) -> Array["S n"]:
        """Outputs z(x) of random networks at the given inputs, each network at all of them.

        Parameters
        ----------
        inputs : array_like (n, d)
            x.
        width, replicas : int
            N of every hidden layer, and S networks.
        rng : int, SeedSequence or Generator

        Returns
        -------
        ndarray (S, n)

        Examples
        --------
        >>> z = Prior("erf", depth=2).draw([[1.0, 0.0], [-1.0, 0.0]], 5, 3, rng=1)
        >>> bool(np.allclose(z[:, 0], -z[:, 1]))  # erf networks without biases are odd
        True
        """
        x, width = self._read("inputs", inputs)[0], checks.integer("width", width)  # (n, d)
        random, replicas, (count, dimension) = (
            checks.generator("rng", rng),
            checks.integer("replicas", replicas),
            x.shape,
        )
        fan_in, c = [dimension] + [width] * (self.depth - 1), self.weight_covariance
        root = None if c is None else psd_root(c).T  # (d, d)
        result = np.empty((replicas, count))  # (S, n)
        many = max(1, _NEURONS // (width * max(*fan_in, count)))  # networks at a time
        few = max(1, _NEURONS // width)  # inputs at a time, where one network fills a block
        for start in range(0, replicas, many):
            size = min(many, replicas - start)
            layers = []
            for inner in fan_in:
                scale = self.weight_variance / (1 if root is not None and not layers else inner)
                weights = _draw(random, (size, width, inner), scale, self.law)  # (size, N, inner)
                weights = weights @ root if root is not None and not layers else weights
                biases = _draw(random, (size, width, 1), self.bias_variance, self.law) if self.bias_variance else 0.0
                layers.append((weights, biases))
            readouts = _draw(random, (size, 1, width), self.readout_variance / width, self.law)  # (size, 1, N)
            for first in range(0, count, few):
                hidden = x[first : first + few].T  # (d, few)
                with np.errstate(over="ignore", invalid="ignore"):
                    for weights, biases in layers:
                        hidden = units(self.activation)[0](weights @ hidden + biases)  # (size, N, few)
                    result[start : start + size, first : first + few] = (readouts @ hidden)[:, 0]  # (size, few)
        return checks.finite("inputs", result)  # (S, n)

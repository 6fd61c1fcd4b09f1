"""What units φ(w·x) see of a single-index teacher y(w_*·x), for x ~ N(0, I): projections, targets, ridge, lazy limit.

A unit is known by its overlap m = w·w_* and its squared length, |w|² = σ_w² + m² in many dimensions.  Source:
ringel2025talk (the deck); not in it: components of ReLU and of general degree, κ for ReLU, how He_3 mixes with He_1.
"""

from dataclasses import dataclass, field

import numpy as np

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.fields.kernels import effective_ridge
from lib.fields.networks.prior import Prior
from lib.fields.overlaps import _projections


@dataclass(frozen=True, eq=False)
class SingleIndex:
    """The network  f = Σ_c a_c φ(w_c·x),  w_c ~ N(0, σ_w²/d), a_c ~ N(0, s_a²/N),  and its teacher, for x ~ N(0, I).

    Parameters
    ----------
    activation : str
        φ, "erf" or "relu".
    target : array_like (n,)
        Y_n, not all zero, on the orthonormal Hermite polynomials of degrees 1, 3 or 1, 3, 5 (erf), 0, 1, 2, 4 (relu).
    dimension, width : int
        d >= 1, and >= 2 for free lengths; N >= 1.
    effective_samples : float
        P_e = 1/κ >= 0, one over :func:`ridge`; P/T for the equivalent kernel; 0 leaves the prior.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0; mean-field scaling by χ divides s_a² and the ridge behind P_e by χ.  By keyword only.
    perpendicular : str
        |w_⊥|², of the weights across the teacher's direction: "fixed", σ_w², the source's; "free", in networks, of the
        prior (σ_w²/d) χ² of d - 1 degrees.  By keyword only.

    Examples
    --------
    >>> SingleIndex("erf", staircase(-0.3), 50, 300, 600.0, readout_variance=8.0, perpendicular="free").degrees.tolist()
    [1, 3]
    """

    activation: str
    target: Array[" n"]
    dimension: int
    width: int
    effective_samples: float
    weight_variance: float = field(default=1.0, kw_only=True)
    readout_variance: float = field(default=1.0, kw_only=True)
    perpendicular: str = field(default="fixed", kw_only=True)

    def __post_init__(self):
        sizes = [len(basis) for basis in _projections.BASES[_projections.basis(self.activation, None)[0]]]
        y = _projections.target(self.target)  # (n,)
        wanted = f"have {' or '.join(map(str, sizes))} components for {self.activation}"
        checks.fail_if(y.size not in sizes, "target", wanted, self.target)
        scales = {
            name: _projections.variance(name, getattr(self, name)) for name in ("weight_variance", "readout_variance")
        }
        samples = checks.number("effective_samples", self.effective_samples, at_least=0, at_most=1e60)
        d, width = _projections.dimension(self.dimension, self.perpendicular), checks.integer("width", self.width)
        checks.keep(self, target=y, dimension=d, width=width, effective_samples=samples, **scales)

    @property
    def free(self) -> bool:
        """Whether |w_⊥|² is free."""
        return self.perpendicular == "free"

    @property
    def degrees(self) -> Array[" n"]:
        """Degrees of the components of the target."""
        bases = _projections.BASES[self.activation]
        return np.array(next(basis for basis in bases if len(basis) == self.target.size))  # (n,)

    @property
    def coupling(self) -> float:
        """Strength of feature learning in the action of one erf unit,  A = 2 s_a² P_e²/(π d N)."""
        return 2 * self.readout_variance * self.effective_samples**2 / (np.pi * (self.dimension * self.width))


def _read(network, activation=None, perpendicular=None):
    """`network`, a SingleIndex, of this activation and these lengths if they are given."""
    checks.instance("network", network, SingleIndex, "as single_index.SingleIndex makes it")
    for name, wanted in (("activation", activation), ("perpendicular", perpendicular)):
        if wanted:
            checks.one_of(f"{name} of network", getattr(network, name), [wanted])
    return network


def projections(
    activation: str, overlap: ArrayLike, weight_variance: float = 1.0, *, degrees: ArrayLike | None = None
) -> Array["... n"]:
    """Components ĥ_n(m) = ⟨φ(w·x) He_n(v)/√n!⟩ of one unit on those of v = w_*·x, at q = |w|² = σ_w² + m².

    erf:  ĥ_{2k+1} = √(2n!/π) (-½)^k/(k! n) [2m²/(1 + 2q)]^{n/2} sign(m),  n = 2k + 1; even ones vanish.
    ReLU: ĥ_0 = √(q/2π),  ĥ_1 = m/2,  ĥ_n = √q He_{n-2}(0)/√(2πn!) (m/√q)^n  for even n >= 2; higher odd ones vanish.

    Parameters
    ----------
    activation : str
        "erf" or "relu".
    overlap : array_like (...)
        m.
    weight_variance : float
        σ_w² > 0.
    degrees : array_like (n,), optional
        Different integers from 0 to 20, by default 1, 3 for erf and 0, 1, 2, 4 for ReLU.

    Returns
    -------
    ndarray (..., n)

    Examples
    --------
    >>> projections("erf", [1.0], 0.5, degrees=[1, 3]).round(4).tolist()  # 1/√π and -1/√(24π)
    [[0.5642, -0.1152]]
    """
    activation, listed = _projections.basis(activation, degrees)
    m = checks.array("overlap", overlap)  # (...)
    length = np.hypot(np.sqrt(_projections.variance("weight_variance", weight_variance)), m)  # (...)
    return checks.finite("overlap", _projections.components(activation, listed, m, length))


def moments(
    activation: str, variance: ArrayLike, weight_variance: float = 1.0, *, degrees: ArrayLike | None = None
) -> Array["... n n"]:
    """Second moments  ⟨ĥ_n ĥ_l⟩  over units of Gaussian overlap, m ~ N(0, B), at |w|² = σ_w² + m², by quadrature.

    Times s_a² they are the kernel of a wide network in the teacher's direction; in the prior B = σ_w²/d.

    Parameters
    ----------
    activation : str
        "erf" or "relu".
    variance : array_like (...)
        B >= 0.
    weight_variance : float
        σ_w² > 0.
    degrees : array_like (n,), optional
        Different integers from 0 to 20, by default 1, 3 for erf and 0, 1, 2, 4 for ReLU.

    Returns
    -------
    ndarray (..., n, n)

    Examples
    --------
    >>> float(moments("relu", 0.04, degrees=[0, 1])[1, 1].round(6))  # ⟨m²⟩/4
    0.01
    """
    activation, listed = _projections.basis(activation, degrees)
    b = checks.entries("variance", variance, at_least=0)  # (...)
    scale = _projections.variance("weight_variance", weight_variance)
    m, weights = _projections.gaussian_overlap(activation, b, scale)  # (..., K), (..., K)
    seen = _projections.components(activation, listed, m, np.hypot(np.sqrt(scale), m))  # (..., K, n)
    with np.errstate(over="ignore", invalid="ignore"):
        return checks.finite("variance", np.swapaxes(weights[..., None] * seen, -1, -2) @ seen)  # (..., n, n)


def staircase(epsilon: float) -> Array["2"]:
    """Components (1, √6 ε) of the target  y = He_1(v) + ε He_3(v)  on He_1 and He_3/√6, a target of erf units.

    Parameters
    ----------
    epsilon : float
        ε.

    Returns
    -------
    ndarray (2,)

    Examples
    --------
    >>> staircase(-0.3).round(4).tolist()
    [1.0, -0.7348]
    """
    return np.array([1.0, np.sqrt(6) * checks.number("epsilon", epsilon, at_least=-1e300, at_most=1e300)])  # (2,)


def relu_teacher(epsilon: float) -> Array["4"]:
    """Components 0, 1, ε/√π, -ε/√(12π) of the target  y = v + ε(|v| - √(2/π)),  the first four of infinitely many.

    Parameters
    ----------
    epsilon : float
        ε.

    Returns
    -------
    ndarray (4,)
        Y_0, Y_1, Y_2, Y_4.

    Examples
    --------
    >>> relu_teacher(0.3).round(4).tolist()
    [0.0, 1.0, 0.1693, -0.0489]
    """
    epsilon = checks.number("epsilon", epsilon)
    return np.array([0.0, 1.0, epsilon / np.sqrt(np.pi), -epsilon / np.sqrt(12 * np.pi)])  # (4,)


def ridge(
    activation: str, dimension: int, samples: ArrayLike, ridge: ArrayLike, *, weight_variance: float = 1.0,
    readout_variance: float = 1.0,
) -> float | Array["..."]:  # fmt: skip
    """Effective ridge per sample κ >= T/P of the linear degree (erf) or the first three (ReLU) of a network.

    κ is the root of  P = (T + τ)/κ + Σ_ℓ g_ℓ λ_ℓ/(λ_ℓ + κ)  over ℓ = 1 (erf) or ℓ = 0, 1, 2 (ReLU), with λ_ℓ and g_ℓ of
    :func:`lib.fields.networks.prior.Prior.spectrum`.  What they leave of the variance,  τ = K(x, x) - Σ_ℓ g_ℓ λ_ℓ,
    lies in O(d³) modes and acts as a ridge.

    Parameters
    ----------
    activation : str
        "erf" or "relu".
    dimension : int
        d >= 2.
    samples, ridge : array_like
        P > 0 and T >= 0, which broadcast.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> round(ridge("erf", 20, 100, 0.1), 5)
    0.00172
    """
    activation, _ = _projections.basis(activation, None)
    given = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    scales = {name: _projections.variance(name, value) for name, value in given.items()}
    degrees = [1] if activation == "erf" else [0, 1, 2]
    spectrum = Prior(activation, **scales).spectrum(dimension, degrees)
    total = Prior(activation, **scales).variance(np.ones((1, dimension)))[0]  # that of all inputs on the sphere
    # Below zero by rounding alone, where erf is as good as linear.
    tail = max(total - spectrum.trace, 0.0)
    bare = checks.entries("ridge", ridge, at_least=0)  # (...)
    return effective_ridge.RidgeTheory(spectrum, samples, ridge=bare + tail).kappa


def lazy(
    activation: str, target: ArrayLike, dimension: int, effective_samples: ArrayLike, *, weight_variance: float = 1.0,
    readout_variance: float = 1.0, degrees: ArrayLike | None = None, perpendicular: str = "fixed",
) -> tuple[Array["... n"], Array["... n"]]:  # fmt: skip
    """What an infinitely wide network leaves of the target:  (1 + P_e M) r = Y,  M = s_a²⟨ĥĥᵀ⟩ over m ~ N(0, σ_w²/d).

    Its weights keep their prior.  For Gaussian inputs the cubic component mixes with the linear one, since |x|²
    fluctuates:  as long as P_e λ_3 << 1, the staircase target has, to leading order in 1/d,
    R_3 ≃ -σ_w²/d/((1 + 2σ_w²)ε) R_1, negative for ε > 0, though nothing cubic is learned.  Beyond, R_3 of free weights
    lies between that of |w_⊥|² = σ_w² and that of the sphere.

    Parameters
    ----------
    activation : str
        "erf" or "relu".
    target : array_like (n,)
        Y_n, not all zero.
    dimension : int
        d >= 1, and >= 2 for free weights.
    effective_samples : array_like (...)
        P_e = 1/κ >= 0.
    weight_variance, readout_variance : float
        σ_w², s_a² > 0.
    degrees : array_like (n,), optional
        Of the target, different integers from 0 to 20, by default 1, 3 for erf and 0, 1, 2, 4 for ReLU.
    perpendicular : str
        |w_⊥|² of the weights across the teacher's direction: "fixed", the source's, σ_w²; "free", in networks, (σ_w²/d)
        χ² of d - 1 degrees; "sphere", σ_w² - m², so that |w|² = σ_w².

    Returns
    -------
    residuals, learnabilities : ndarray (..., n)
        r_n, and R_n = 1 - r_n/Y_n, nan where Y_n = 0.

    Examples
    --------
    >>> lazy("erf", staircase(0.3), 50, 840.0, degrees=[1, 3], perpendicular="free")[1].round(4).tolist()
    [0.8658, -0.0173]
    """
    activation, listed = _projections.basis(activation, degrees)
    y = _projections.target(target, listed.size)  # (n,)
    d = _projections.dimension(dimension, perpendicular, (*_projections.CHOICES, "sphere"))
    strength = checks.entries("effective_samples", effective_samples, at_least=0)  # (...)
    scale = _projections.variance("weight_variance", weight_variance)
    readout = _projections.variance("readout_variance", readout_variance)
    m, weights = _projections.gaussian_overlap(activation, np.array(scale / d), scale)  # (K,), (K,)
    q, log = _projections.lengths(d, scale, perpendicular == "free")  # (Q,), (Q,)
    length = np.hypot(np.sqrt(q)[:, None], 0 * m if perpendicular == "sphere" else m)  # (Q, K)
    seen = _projections.components(activation, listed, m, length)  # (Q, K, n)
    kernel = np.einsum("qki,qkj,q,k->ij", seen, seen, np.exp(log), weights, optimize=True)  # (n, n)
    with np.errstate(over="ignore", invalid="ignore"):
        left = checks.finite("effective_samples", _projections.residuals(kernel, readout * strength, y))  # (..., n)
    return left, _projections.learnabilities(left, y)

"""What units φ(w·x) see of a single-index teacher y(w_*·x), for x ~ N(0, I): projections, targets, ridge, lazy limit.

A unit is known by its overlap m = w·w_* and its squared length, which is |w|² = σ_w² + m² in many dimensions.  Averaged
over x it has the components  ĥ_n = ⟨φ(w·x) He_n(v)/√n!⟩  on the orthonormal Hermite polynomials of v = w_*·x; so have
the teacher, Y_n, and what is left to learn of it, r_n.  A component's learnability is R_n = 1 - r_n/Y_n.  `activation`:
"erf" or "relu"; `degrees` (n,): different integers n from 0 to 20, by default 1, 3 for erf and 0, 1, 2, 4 for ReLU;
`weight_variance`, `readout_variance`: σ_w², s_a² > 0.  Source: ringel2025talk, the deck; not in it: components of ReLU
and of general degree, κ for ReLU, how He_3 mixes with He_1.
"""

import numpy as np

from lib.common import checks
from lib.fields.kernels import effective_ridge
from lib.fields.networks import nngp
from lib.fields.overlaps import _projections
from lib.fields.overlaps._projections import DEGREES as DEGREES


def projections(activation, overlap, weight_variance=1.0, *, degrees=None):
    """Components ĥ_n(m) = ⟨φ(w·x) He_n(v)/√n!⟩ of one unit, at q = |w|² = σ_w² + m².

    erf:  ĥ_{2k+1} = √(2n!/π) (-½)^k/(k! n) [2m²/(1 + 2q)]^{n/2} sign(m),  n = 2k + 1; even ones vanish.
    ReLU: ĥ_0 = √(q/2π),  ĥ_1 = m/2,  ĥ_n = √q He_{n-2}(0)/√(2πn!) (m/√q)^n  for even n >= 2; higher odd ones vanish.
    `overlap` (...): m; `activation`, `weight_variance`, `degrees`: see the module.  Returns ĥ_n(m) (..., n).

    >>> projections("erf", [1.0], 0.5).round(4).tolist()  # 1/√π and -1/√(24π)
    [[0.5642, -0.1152]]
    """
    activation, listed = _projections.basis(activation, degrees)
    m = checks.array("overlap", overlap)  # (...)
    length = np.hypot(np.sqrt(_projections.variance("weight_variance", weight_variance)), m)  # (...)
    return checks.finite("overlap", _projections.components(activation, listed, m, length))


def moments(activation, variance, weight_variance=1.0, *, degrees=None):
    """Second moments  ⟨ĥ_n ĥ_l⟩  over units of Gaussian overlap, m ~ N(0, B), by quadrature.

    Times s_a² they are the kernel of a wide network in the teacher's direction; in the prior B = σ_w²/d.  `variance`
    (...): B >= 0; `activation`, `weight_variance`, `degrees`: see the module.  Returns (..., n, n).

    >>> float(moments("relu", 0.04)[1, 1].round(6))  # ⟨m²⟩/4
    0.01
    """
    activation, listed = _projections.basis(activation, degrees)
    b = checks.entries("variance", variance, at_least=0)  # (...)
    scale = _projections.variance("weight_variance", weight_variance)
    m, weights = _projections.gaussian_overlap(activation, b, scale)  # (..., K), (..., K)
    seen = _projections.components(activation, listed, m, np.hypot(np.sqrt(scale), m))  # (..., K, n)
    with np.errstate(over="ignore", invalid="ignore"):
        return checks.finite("variance", np.swapaxes(weights[..., None] * seen, -1, -2) @ seen)  # (..., n, n)


def staircase(epsilon):
    """Components (1, √6 ε) of the target  y = He_1(v) + ε He_3(v)  on He_1 and He_3/√6, the default degrees of erf.

    `epsilon`: ε.  Returns Y_1, Y_3 (2,).

    >>> staircase(-0.3).round(4).tolist()
    [1.0, -0.7348]
    """
    return np.array([1.0, np.sqrt(6) * checks.number("epsilon", epsilon, at_least=-1e300, at_most=1e300)])  # (2,)


def relu_teacher(epsilon):
    """Components 0, 1, ε/√π, -ε/√(12π) of the target  y = v + ε(|v| - √(2/π))  on the default degrees of ReLU.

    They are the first four of infinitely many.  `epsilon`: ε.  Returns Y_0, Y_1, Y_2, Y_4 (4,).

    >>> relu_teacher(0.3).round(4).tolist()
    [0.0, 1.0, 0.1693, -0.0489]
    """
    epsilon = checks.number("epsilon", epsilon)
    return np.array([0.0, 1.0, epsilon / np.sqrt(np.pi), -epsilon / np.sqrt(12 * np.pi)])  # (4,)


def ridge(activation, dimension, samples, ridge, *, weight_variance=1.0, readout_variance=1.0):
    """Effective ridge per sample κ with which the network's linear (erf) or first three (ReLU) degrees are learned.

    κ is the root of  P = (T + τ)/κ + Σ_ℓ g_ℓ λ_ℓ/(λ_ℓ + κ)  over ℓ = 1 (erf) or ℓ = 0, 1, 2 (ReLU), with λ_ℓ and g_ℓ of
    :func:`nngp.sphere_spectrum`.  What they leave of the variance,  τ = K(x, x) - Σ_ℓ g_ℓ λ_ℓ,  lies in O(d³) modes and
    acts as a ridge.  `dimension`: d >= 2; `samples`, `ridge`: P > 0 and T >= 0, floats or arrays that broadcast;
    `activation`, `weight_variance`, `readout_variance`: see the module.  Returns κ >= T/P.

    >>> round(ridge("erf", 20, 100, 0.1), 5)
    0.00172
    """
    activation, _ = _projections.basis(activation, None)
    given = {"weight_variance": weight_variance, "readout_variance": readout_variance}
    scales = {name: _projections.variance(name, value) for name, value in given.items()}
    degrees = [1] if activation == "erf" else [0, 1, 2]
    spectrum = nngp.sphere_spectrum(activation, dimension, degrees, **scales)
    total = nngp.variance(activation, np.ones((1, dimension)), **scales)[0]  # that of all inputs on the sphere
    # Below zero by rounding alone, where erf is as good as linear.
    tail = max(total - spectrum.trace, 0.0)
    bare = checks.entries("ridge", ridge, at_least=0)  # (...)
    return effective_ridge.RidgeTheory(spectrum, samples, ridge=bare + tail).kappa


def lazy(
    activation, target, dimension, effective_samples, *, weight_variance=1.0, readout_variance=1.0, degrees=None,
    perpendicular="free",
):  # fmt: skip
    """What an infinitely wide network leaves of the target:  (1 + P_e M) r = Y,  M = s_a²⟨ĥĥᵀ⟩ over m ~ N(0, σ_w²/d).

    Its weights keep their prior.  For Gaussian inputs the cubic component mixes with the linear one, since |x|²
    fluctuates:  as long as P_e λ_3 << 1, the staircase target has, to leading order in 1/d,
    R_3 ≃ -σ_w²/d/((1 + 2σ_w²)ε) R_1, negative for ε > 0, though nothing cubic is learned.  Beyond, R_3 of free weights
    lies between that of |w_⊥|² = σ_w² and that of the sphere.  `target` (n,): Y_n, not all zero; `dimension`: d >= 1,
    and >= 2 for free weights; `effective_samples` (...): P_e = 1/κ >= 0; `activation`, `weight_variance`,
    `readout_variance`, `degrees`: see the module; `perpendicular`, of the weights across the teacher's direction:
    "free", in networks, |w_⊥|² ~ (σ_w²/d) χ² of d - 1 degrees; "fixed", the source's, |w_⊥|² = σ_w²; "sphere",
    |w_⊥|² = σ_w² - m², so that |w|² = σ_w².  Returns r_n and R_n, nan where Y_n = 0, (..., n) each.

    >>> lazy("erf", staircase(0.3), 50, 840.0)[1].round(4).tolist()
    [0.8658, -0.0173]
    """
    activation, listed = _projections.basis(activation, degrees)
    y = _projections.target(target, listed.size)  # (n,)
    kind = _projections.choice(perpendicular, (*_projections.CHOICES, "sphere"))
    d = _projections.dimension(dimension, kind == "free")
    strength = checks.entries("effective_samples", effective_samples, at_least=0)  # (...)
    scale = _projections.variance("weight_variance", weight_variance)
    readout = _projections.variance("readout_variance", readout_variance)
    m, weights = _projections.gaussian_overlap(activation, np.array(scale / d), scale)  # (K,), (K,)
    q, log = _projections.lengths(d, scale, kind == "free")  # (Q,), (Q,)
    length = np.hypot(np.sqrt(q)[:, None], 0 * m if kind == "sphere" else m)  # (Q, K)
    seen = _projections.components(activation, listed, m, length)  # (Q, K, n)
    kernel = np.einsum("qki,qkj,q,k->ij", seen, seen, np.exp(log), weights, optimize=True)  # (n, n)
    with np.errstate(over="ignore", invalid="ignore"):
        left = checks.finite("effective_samples", _projections.residuals(kernel, readout * strength, y))  # (..., n)
    return left, _projections.learnabilities(left, y)

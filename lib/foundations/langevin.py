"""Linear Langevin dynamics: covariances, circulation, entropy production, and the law of Euler-Maruyama chains.

ẋ = -Γx + f,  <f(t) fᵀ(t')> = 2D δ(t - t').  `friction` (d, d) is Γ, any matrix whose eigenvalues have positive real
parts, `diffusion` (d, d) is D, positive semidefinite.  In gradient descent Γ is the Hessian, the learning rate the
Euler step h, and D = hC/2 for gradient noise of covariance C per step, not C/2.  Numbered equations: han2021.
"""

import numpy as np
from scipy.linalg import expm
from scipy.sparse.csgraph import connected_components

from lib.common import checks
from lib.foundations import langevin_formulas


def checked_system(friction, diffusion, *, definite="semi"):
    """Both `friction` and `diffusion`, if Γ is stable and D "semi" or "strict"ly positive `definite`.  Returns both.

    >>> [matrix.dtype.name for matrix in checked_system([[1]], [[0]])]
    ['float64', 'float64']
    """
    diffusion = checks.symmetric("diffusion", diffusion, definite=definite)  # (d, d)
    friction = checks.array("friction", friction, shape=diffusion.shape)  # (d, d)
    # SciPy's solution, for a Γ that is not symmetric, rounds beside its largest entry.
    whole = 0.0 if np.array_equal(friction, friction.T) else 1e-15 * np.abs(friction).max()
    _, parts = connected_components(friction != 0, connection="strong")  # (d,): triangular blocks have their own rates
    for part in range(parts.max() + 1):
        block = friction[np.ix_(parts == part, parts == part)]
        slowest, least = np.linalg.eigvals(block).real.min(), max(1e-13 * np.abs(block).max(), whole)
        found = f"smallest real part {slowest:.3g}"
        checks.fail_if(slowest <= 0, "friction", "have every eigenvalue in the right half plane", found)
        wanted = f"have no rate so slow, {least:.3g} or less, that it is lost to rounding"
        checks.fail_if(slowest <= least, "friction", wanted, found)
    return friction, diffusion


def stationary_covariance(friction, diffusion):
    """Stationary covariance of `friction` and `diffusion` (eqs. (1.4), (1.5)):  ΓΣ + ΣΓᵀ = 2D.  Returns Σ (d, d).

    >>> float(stationary_covariance([[2.0]], [[3.0]])[0, 0])
    1.5
    """
    return langevin_formulas.lyapunov(*checked_system(friction, diffusion))


def covariance(times, friction, diffusion, start=None):
    """Covariance at finite time:  Σ(t) = e^{-Γt} Σ(0) e^{-Γᵀt} + 2∫_0^t e^{-Γu} D e^{-Γᵀu} du  (eqs. (1.2), (1.4)).

    `times` (T,): >= 0, increasing; `friction`, `diffusion`: Γ, D; `start` (d, d): Σ(0), default 0.  Returns (T, d, d).

    >>> covariance([0.0, 1.0], [[0.5]], [[1.0]]).round(4).ravel().tolist()
    [0.0, 1.2642]
    """
    times = checks.times("times", times)  # (T,)
    friction, diffusion = checked_system(friction, diffusion)
    start = np.zeros_like(diffusion) if start is None else start
    start = checks.symmetric("start", start, size=len(friction), definite="semi")  # (d, d)
    steps = [langevin_formulas.propagate(friction, diffusion, t) for t in times]
    return np.stack([propagator @ start @ propagator.T + noise for propagator, noise in steps])  # (T, d, d)


def correlation(lags, friction, diffusion):
    """Stationary two-time function  C(s) = <x(t+s) xᵀ(t)> = e^{-Γs} Σ  for s >= 0, eq. (1.3);  C(-s) = Cᵀ(s).

    `lags` (S,): s >= 0, strictly increasing; `friction`, `diffusion`: Γ, D.  Returns (S, d, d).

    >>> correlation([0.0, 1.0], [[1.0]], [[1.0]]).round(4).ravel().tolist()
    [1.0, 0.3679]
    """
    lags = checks.times("lags", lags)  # (S,)
    friction, diffusion = checked_system(friction, diffusion)
    return expm(-lags[:, None, None] * friction) @ langevin_formulas.lyapunov(friction, diffusion)  # (S, d, d)


def circulation(friction, diffusion):
    """Circulation Q, the antisymmetric part in  ΓΣ = D + Q:  Q = (ΓΣ - ΣΓᵀ)/2  (eq. (1.6)), 0 exactly if ΓD = DΓᵀ.

    Q_ij is the mean area swept per time from axis i towards axis j.  `friction`, `diffusion`: Γ, D.  Returns Q (d, d).

    >>> circulation([[1.0, -2.0], [2.0, 1.0]], np.eye(2)).round(12).tolist()
    [[0.0, -2.0], [2.0, 0.0]]
    """
    friction, diffusion = checked_system(friction, diffusion)
    flow = friction @ langevin_formulas.lyapunov(friction, diffusion)  # (d, d)
    return (flow - flow.T) / 2


def entropy_production(friction, diffusion):
    """Entropy production per time in k_B, of `friction`, definite `diffusion`:  Tr[Σ⁻¹QᵀD⁻¹Q] = -Tr[D⁻¹ΓQ].  Returns Ṡ.

    >>> round(entropy_production([[1.0, -2.0], [2.0, 1.0]], np.eye(2)), 10)
    8.0
    """
    friction, diffusion = checked_system(friction, diffusion, definite="strict")
    flow = friction @ (spread := langevin_formulas.lyapunov(friction, diffusion))  # (d, d)
    return float(langevin_formulas.dissipation((flow - flow.T) / 2, spread, diffusion))


def euler_covariance(friction, diffusion, step):
    """Exact stationary covariance of the Euler-Maruyama chain  x' = (1 - hΓ)x + ζ:  ΓΣ + ΣΓᵀ - hΓΣΓᵀ = 2D.

    For symmetric Γ:  Σ_ij = 2D_ij/(λ_i + λ_j - hλ_iλ_j).  Descent in batches of M: D = hC/2M.  `friction`, `diffusion`:
    Γ, D; `step`: 0 < h < min_k 2 Re λ_k/|λ_k|².  Returns Σ (d, d).

    >>> round(float(euler_covariance([[1.0]], [[1.0]], 0.5)[0, 0]), 12)
    1.333333333333
    """
    friction, diffusion = checked_system(friction, diffusion)
    rates = np.linalg.eigvals(friction)  # (d,)
    limit = (2 * rates.real / np.abs(rates) ** 2).min()
    step = checks.number("step", step, above=0)
    if step >= limit * (1 - 1e-12):  # at the limit the covariance is infinite, and rounding would decide
        checks.fail("step", f"be below {limit:.6g}, where the Euler chain of this friction runs away", step)
    return langevin_formulas.euler(friction, diffusion, step)

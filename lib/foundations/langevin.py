r"""Linear Langevin dynamics: covariances, circulation, entropy production, and the law of the chains that a computer runs.

The process is  ẋ = -Γx + f  with white Gaussian force,  <f(t) fᵀ(t')> = 2D δ(t - t').  Source: han2021,
eqs. (1.1) and (1.3).  ``friction`` is Γ, any real matrix whose eigenvalues have positive real parts, symmetric or not;
``diffusion`` is D, symmetric and positive semidefinite.  So every stable linear system with additive noise is served.  Gradient
descent on a quadratic loss is one: Γ is the Hessian and the learning rate is the Euler step h.  A gradient noise of covariance C
per step is D = hC/2, not C/2, because a delta function on a grid of spacing h has height 1/h.
"""

import math

import numpy as np
from scipy.linalg import expm, solve_continuous_lyapunov

from lib.common import checks


def _system(friction, diffusion, *, definite="semi"):
    """Both matrices, checked: equal shapes, friction stable, diffusion positive."""
    diffusion = checks.symmetric("diffusion", diffusion, definite=definite)  # (d, d)
    friction = checks.array("friction", friction, shape=diffusion.shape)  # (d, d)
    slowest = np.linalg.eigvals(friction).real.min()
    if slowest <= 1e-13 * np.abs(friction).max():  # below this the sign of a rate is rounding
        checks.fail("friction", "have every eigenvalue in the right half plane", f"smallest real part {slowest:.3g}")
    return friction, diffusion


def _lyapunov(friction, diffusion):
    """Σ in  ΓΣ + ΣΓᵀ = 2D, solved in units where the largest entries are one: SciPy's solver is silently wrong near overflow."""
    rate, strength = float(np.abs(friction).max()), float(np.abs(diffusion).max()) or 1.0
    unit = strength / rate
    if not math.isfinite(unit):
        checks.fail("diffusion", "be small enough, next to friction, for a finite covariance", diffusion)
    solution = solve_continuous_lyapunov(friction / rate, diffusion / strength)  # (d, d)
    return unit * (solution + solution.T)


def _propagate(friction, diffusion, duration):
    """e^{-Γt} and 2∫_0^t e^{-Γu} D e^{-Γᵀu} du: Van Loan's block exponential for a short time, then doublings.

    Doubling only adds positive terms.  It avoids the cancellation in Σ(∞) - e^{-Γt} Σ(∞) e^{-Γᵀt} at short times, and the
    overflow of the block exponential at long ones.
    """
    size = len(friction)
    doublings = max(0, math.frexp(duration)[1] + math.frexp(np.linalg.norm(friction, 1))[1])
    short = math.ldexp(duration, -doublings)
    scale = (
        np.abs(diffusion).max() or 1.0
    )  # the result is linear in D: a block of order one keeps the exponential accurate
    block = np.block([[short * friction, diffusion / scale], [np.zeros((size, size)), -short * friction.T]])  # (2d, 2d)
    grown = expm(block)  # (2d, 2d)
    propagator = grown[size:, size:].T  # (d, d)
    noise = 2 * scale * short * propagator @ grown[:size, size:]  # (d, d)
    for _ in range(doublings):
        noise = noise + propagator @ noise @ propagator.T  # (d, d)
        propagator = propagator @ propagator  # (d, d)
    return propagator, (noise + noise.T) / 2


def stationary_covariance(friction, diffusion):
    r"""Stationary covariance Σ of the linear Langevin equation:  ΓΣ + ΣΓᵀ = 2D.

    Source: han2021, eqs. (1.4) for t -> ∞ and (1.5).

    Parameters
    ----------
    friction : array (d, d)     Γ, units 1/time; every eigenvalue in the right half plane
    diffusion : array (d, d)    D, units x²/time; symmetric, positive semidefinite

    Returns
    -------
    array (d, d)                Σ = <x xᵀ>, symmetric

    Raises
    ------
    ValueError                  if friction is not stable, diffusion not positive semidefinite, or their shapes differ

    Examples
    --------
    >>> float(stationary_covariance([[2.0]], [[3.0]])[0, 0])
    1.5
    """
    return _lyapunov(*_system(friction, diffusion))


def covariance(times, friction, diffusion, start=None):
    r"""Covariance at finite time:  Σ(t) = e^{-Γt} Σ(0) e^{-Γᵀt} + 2∫_0^t e^{-Γu} D e^{-Γᵀu} du.

    Source: han2021, eqs. (1.2), for t -> ∞, and (1.4), with Σ(0) = 0.  Accurate from t -> 0, where Σ = 2Dt, to t -> ∞.

    Parameters
    ----------
    times : array (T,)                    t >= 0, strictly increasing
    friction, diffusion : array (d, d)    as in :func:`stationary_covariance`
    start : array (d, d), optional        Σ(0), symmetric, positive semidefinite; default: 0, a start at the origin

    Returns
    -------
    array (T, d, d)

    Examples
    --------
    >>> covariance([0.0, 1.0], [[0.5]], [[1.0]]).round(4).ravel().tolist()
    [0.0, 1.2642]
    """
    times = checks.times("times", times)  # (T,)
    friction, diffusion = _system(friction, diffusion)
    start = np.zeros_like(diffusion) if start is None else start
    start = checks.symmetric("start", start, size=len(friction), definite="semi")  # (d, d)
    steps = [_propagate(friction, diffusion, t) for t in times]
    return np.stack([propagator @ start @ propagator.T + noise for propagator, noise in steps])  # (T, d, d)


def correlation(lags, friction, diffusion):
    r"""Stationary two-time function  C(s) = <x(t+s) xᵀ(t)> = e^{-Γs} Σ  for s >= 0;  C(-s) = Cᵀ(s).

    It solves han2021, eq. (1.3).  C(s) is symmetric at every lag exactly if there is no circulation.

    Parameters
    ----------
    lags : array (S,)                     s >= 0, strictly increasing
    friction, diffusion : array (d, d)    as in :func:`stationary_covariance`

    Returns
    -------
    array (S, d, d)

    Examples
    --------
    >>> correlation([0.0, 1.0], [[1.0]], [[1.0]]).round(4).ravel().tolist()
    [1.0, 0.3679]
    """
    lags = checks.times("lags", lags)  # (S,)
    friction, diffusion = _system(friction, diffusion)
    return expm(-lags[:, None, None] * friction) @ _lyapunov(friction, diffusion)  # (S, d, d)


def circulation(friction, diffusion):
    r"""Circulation Q, the antisymmetric part in  ΓΣ = D + Q:  Q = (ΓΣ - ΣΓᵀ)/2.

    Source: han2021, eq. (1.6).  Q_ij is the mean area swept per unit time in the plane (i, j), positive from
    axis i towards axis j.  It vanishes (detailed balance) exactly if ΓD = DΓᵀ.

    Parameters
    ----------
    friction, diffusion : array (d, d)    as in :func:`stationary_covariance`

    Returns
    -------
    array (d, d)                          Q = -Qᵀ, units x²/time

    Raises
    ------
    ValueError                            as :func:`stationary_covariance`

    Examples
    --------
    >>> circulation([[1.0, -2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]).round(12).tolist()
    [[0.0, -2.0], [2.0, 0.0]]
    """
    friction, diffusion = _system(friction, diffusion)
    flow = friction @ _lyapunov(friction, diffusion)  # (d, d)
    return (flow - flow.T) / 2


def _dissipation(rotation, spread, diffusion):
    """Tr[Σ⁻¹ Qᵀ D⁻¹ Q] as a sum of squares, so that rounding cannot make it negative; the first two may be stacks of matrices."""
    left = np.linalg.solve(np.linalg.cholesky(diffusion), rotation)  # (..., d, d)
    both = np.linalg.solve(np.linalg.cholesky(spread), np.swapaxes(left, -1, -2))  # (..., d, d)
    return (both**2).sum(axis=(-2, -1))


def entropy_production(friction, diffusion):
    r"""Entropy production rate of the stationary state:  Ṡ = Tr[Σ⁻¹ Qᵀ D⁻¹ Q] = -Tr[D⁻¹ Γ Q] >= 0, zero exactly if Q = 0.

    It belongs to han2021, eq. (1.6), and is not in that text; the book's Langevin chapter derives it.

    Parameters
    ----------
    friction : array (d, d)     Γ, stable
    diffusion : array (d, d)    D, symmetric, positive definite

    Returns
    -------
    float                       Ṡ in units of k_B per unit time

    Raises
    ------
    ValueError                  as :func:`stationary_covariance`, or if diffusion is singular

    Examples
    --------
    >>> round(entropy_production([[1.0, -2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]), 10)
    8.0
    """
    friction, diffusion = _system(friction, diffusion, definite="strict")
    flow = friction @ (spread := _lyapunov(friction, diffusion))  # (d, d)
    return float(_dissipation((flow - flow.T) / 2, spread, diffusion))


def exact_step(friction, diffusion, step):
    r"""The exact update over a time h:  x(t+h) = e^{-Γh} x(t) + ζ,  ζ Gaussian with covariance  2∫_0^h e^{-Γu} D e^{-Γᵀu} du.

    It solves han2021, eq. (1.3), with no error in h; relative accuracy holds for every h.

    Parameters
    ----------
    friction, diffusion : array (d, d)    as in :func:`stationary_covariance`
    step : float                          h; > 0

    Returns
    -------
    (array (d, d), array (d, d))          propagator e^{-Γh}, covariance of ζ

    Examples
    --------
    >>> propagator, noise = exact_step([[1.0]], [[1.0]], 1.0)
    >>> round(float(propagator[0, 0]), 6), round(float(noise[0, 0]), 6)
    (0.367879, 0.864665)
    """
    friction, diffusion = _system(friction, diffusion)
    return _propagate(friction, diffusion, checks.number("step", step, above=0))


def euler_covariance(friction, diffusion, step):
    r"""Exact stationary covariance of the Euler-Maruyama chain  x' = (1 - hΓ)x + ζ:  ΓΣ + ΣΓᵀ - hΓΣΓᵀ = 2D.

    Source: han2021, eq. (1.5), discretised.  The chain has the stationary law of another Langevin equation, with
    Γ' = Γ(1 - hΓ/2)⁻¹ and D' = (1 - hΓ/2)⁻¹ D (1 - hΓᵀ/2)⁻¹.  Solving that one avoids the loss of digits, like 1/h, in the
    discrete Lyapunov equation of the recursion.

    Parameters
    ----------
    friction, diffusion : array (d, d)    as in :func:`stationary_covariance`
    step : float                          h; 0 < h < min_k 2 Re λ_k / |λ_k|² over the eigenvalues λ_k of Γ

    Returns
    -------
    array (d, d)                          stationary <x_n x_nᵀ>, symmetric

    Raises
    ------
    ValueError                            as :func:`stationary_covariance`, or if the step is not below its limit

    Examples
    --------
    >>> round(float(euler_covariance([[1.0]], [[1.0]], 0.5)[0, 0]), 12)
    1.333333333333
    """
    friction, diffusion = _system(friction, diffusion)
    rates = np.linalg.eigvals(friction)  # (d,)
    limit = (2 * rates.real / np.abs(rates) ** 2).min()
    step = checks.number("step", step, above=0)
    if step >= limit * (1 - 1e-12):  # at the limit the covariance is infinite, and rounding would decide
        checks.fail(
            "step", f"be below {limit:.6g}, where the Euler chain of this friction loses its stationary state", step
        )
    half = np.eye(len(friction)) - step * friction / 2  # (d, d)
    modified = np.linalg.solve(half, np.linalg.solve(half, diffusion).T)  # (d, d)
    return _lyapunov(np.linalg.solve(half, friction), (modified + modified.T) / 2)

"""Committee students inside the span of their teachers' projections, near perfect learning: J_i = Σ_kn c^k_in P_k B_n.

K = M units that are all alike, T^k = n_k 1, with r_k and s_k the diagonal and off-diagonal entries of R^k - T^k.  Then
E^k = (R^k - T^k)²/n_k  is of second order, and unlike y_k, z_k of :mod:`lib.scaling.late_phase` the eigenspaces do not
decay by themselves:  with  a = 2/(√3 πM),  μ = √3(M-1)/2,  ω = √3(M-2)/2,  r = Σ_k λ_k r_k,  s = Σ_k λ_k s_k,

    dr_k/dα = -ηaλ_k [r_k + μ s_k - n_k(⅔r + ½μ s)],    ds_k/dα = -ηaλ_k [½√3 r_k + (1+ω) s_k - ¼√3 n_k r].

A student that learns from a small start is almost such a student.  Source: worschech2024, eqs. (118), (119) and (121)
at  q_k = 2r_k, c_k = 2s_k.  Arguments are those of ``late_phase``, with r_k, s_k for y_k, z_k, and λ_k of mean one.
"""

import numpy as np
from scipy.linalg import eigh

from lib.common import checks
from lib.scaling import _arguments


def _decay(lam, fractions, units, rate):
    """Symmetric matrix (2L, 2L) of the decay of  (r_k, √(M-1) s_k)/√n_k, or (L, L) for M = 1."""
    root, modes = np.sqrt(3 * (units - 1)), min(units, 2)
    drift = np.array([[1, root / 2], [root / 2, 1 + np.sqrt(3) / 2 * (units - 2)]])[:modes, :modes]
    field = np.array([[2 / 3, root / 4], [root / 4, 0]])[:modes, :modes]
    v = lam * np.sqrt(fractions)  # (L,)
    return rate * 2 / (np.sqrt(3) * np.pi * units) * (np.kron(np.diag(lam), drift) - np.kron(np.outer(v, v), field))


def rates(eigenvalues, units, learning_rate, *, multiplicities=None):
    """Rates at which  R^k - T^k  changes inside the span, to first order in η; the error has twice these rates.

    For many eigenvalues the slowest is -½ηa(2-√3)λ_L, half of that of y and z.  `eigenvalues`, `units`,
    `learning_rate`, `multiplicities`: as in the module.  Returns (2L,), (L,) for M = 1, ascending; all negative.

    >>> rates([1.0], 1, np.sqrt(3) * np.pi / 2).round(12).tolist()  # -ηa/3
    [-0.333333333333]
    """
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    rate = _arguments.learning_rate(learning_rate)
    return eigh(-_decay(lam, fractions, checks.integer("units", units), rate), eigvals_only=True)


@checks.one_or_many
def generalization_error(
    alpha, diagonal, off_diagonal, eigenvalues, units, learning_rate, *, multiplicities=None, squares=True
):
    """Generalization error of students inside the span, to second order in  R - T  and first order in η.

    ε_g = (1/π) [(y - ⅔r²)/√3 + ½(M-1)(z - rs)],  y = Σ_k λ_k [r_k² + (M-1)s_k²]/n_k,  z = Σ_k λ_k [2r_ks_k +
    (M-2)s_k²]/n_k. `alpha`, `diagonal`, `off_diagonal`, `eigenvalues`, `units`, `learning_rate`, `multiplicities`: as
    in the module; `squares`: False leaves out r² and rs, as the source does.  Returns (A,).

    >>> [round(generalization_error(0.0, [0.1], [0.0], [1.0], 1, 0.1, squares=s), 9) for s in (True, False)]
    [0.000612588, 0.001837763]
    """
    alpha = _arguments.times(alpha)
    lam, fractions = _arguments.spectrum(eigenvalues, multiplicities)  # (L,), (L,)
    diagonal = checks.array("diagonal", diagonal, shape=lam.shape)  # (L,)
    off_diagonal = checks.array("off_diagonal", off_diagonal, shape=lam.shape)  # (L,)
    m, rate = checks.integer("units", units), _arguments.learning_rate(learning_rate)
    squares = checks.boolean("squares", squares)
    root, n = np.sqrt(fractions), np.sqrt(max(m - 1, 1))  # (L,), float
    start = (np.stack([diagonal, n * off_diagonal], axis=1)[:, : min(m, 2)] / root[:, None]).ravel()  # (2L,)
    values, frame = eigh(_decay(lam, fractions, m, rate))  # (2L,), (2L, 2L)
    moved = np.exp(-np.outer(alpha, values)) * (frame.T @ start) @ frame.T  # (A, 2L)
    moved = moved.reshape(len(alpha), lam.size, -1) * root[:, None]  # (A, L, 2)
    own = moved[..., 0]  # (A, L)
    other = moved[..., 1] / n if m > 1 else np.zeros_like(own)  # (A, L)
    y = (own**2 + (m - 1) * other**2) / fractions @ lam  # (A,)
    z = (2 * own * other + (m - 2) * other**2) / fractions @ lam  # (A,)
    r, s = (own @ lam, other @ lam) if squares else (0.0, 0.0)  # (A,), (A,)
    return ((y - 2 / 3 * r**2) / np.sqrt(3) + (m - 1) / 2 * (z - r * s)) / np.pi

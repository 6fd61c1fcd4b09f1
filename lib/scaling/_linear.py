"""What the modules on the linear student share: formulas for arguments that were checked."""

import numpy as np
from scipy.linalg import eigh
from scipy.special import gamma, gammainc, gammaincc

from lib.common import checks


def flow_error(alpha, lam, fractions, rate, trained):
    """½ Σ_k n_k λ_k e^{-2ηλ_kα} (A,), without the exponential for the eigenspaces behind the first `trained`."""
    weights = lam * fractions  # (L,)
    learned = np.exp(-2 * rate * np.outer(alpha, lam[:trained])) @ weights[:trained]  # (A,)
    return (learned + weights[trained:].sum()) / 2


def flow_modes(lam, fractions, rate):
    """Eigenvalues (L,) and eigenvectors (L, L) of  S = -2η diag(λ) + η² v vᵀ,  and  v_k = λ_k √n_k."""
    v = lam * np.sqrt(fractions)  # (L,)
    return *eigh(rate**2 * np.outer(v, v) - np.diag(2 * rate * lam)), v


def step_modes(name, share, counts):
    """The same of  1 - M,  M the step of e_k/√m_k at shares a_k = ηλ_k/N: at a small rate M is one up to rounding."""
    v = share * np.sqrt(counts)  # (L,)
    with np.errstate(over="ignore", invalid="ignore"):
        lost = np.diag(2 * share * (1 - share)) - np.outer(v, v)  # (L, L)
    if not np.isfinite(lost).all():
        checks.fail(name, "keep the matrix of a step inside the floating-point range", "one that leaves it")
    return *eigh(lost), v


def descent_error(alpha, lam, counts, rate, start, trained):
    """Mean ε_g (runs, A) of descent that starts at the mean e_k (runs, L) and moves the first `trained` eigenspaces."""
    size, root = counts.sum(), np.sqrt(counts)  # float, (L,)
    share, steps, held = rate * lam / size, np.rint(alpha * size), start[:, trained:]  # (L,), (A,), (runs, L - trained)
    # (L_t,), (L_t, L_t), (L_t,); loss < 1
    loss, modes, v = step_modes("learning_rate", share[:trained], counts[:trained])
    reach = (lam * root)[:trained] @ modes  # (L_t,)
    drive = np.outer(held @ share[trained:], v)  # (runs, L_t)
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.outer(np.log1p(-loss), steps)  # (L_t, A)
        sums = np.tile(steps, (trained, 1))  # (L_t, A)  1 + M + M² + ..., here for modes that keep their size
        np.divide(-np.expm1(exponent), loss[:, None], out=sums, where=loss[:, None] != 0)
        moved = ((start / root)[:, :trained] @ modes * reach) @ np.exp(exponent)  # (runs, A)
        result = (moved + (drive @ modes * reach) @ sums + (held @ lam[trained:])[:, None]) / 2  # (runs, A)
    return in_range(result)


def in_range(error):
    if not np.isfinite(error).all():
        wanted = "keep the error inside the floating-point range up to the last time"
        checks.fail("learning_rate", wanted, "an error that is not finite")
    return error


def modes_between(first, last, alpha, lam, exponent, rate):
    """½ Σ_k λ_k e^{-2ηλ_kα}/L over the power law λ_k = λ₊ k^{-(1+β)}, as an integral over k from `first` to `last`."""
    s, c = exponent / (1 + exponent), 2 * rate * lam[0] * alpha  # float, (A,)
    slow, fast = c * last ** -(1 + exponent), c * first ** -(1 + exponent)  # (A,), (A,)
    late, early = gammaincc(s, slow) - gammaincc(s, fast), gammainc(s, fast) - gammainc(s, slow)  # (A,), (A,)
    bracket = np.where(gammaincc(s, slow) > 0.5, early, late)  # (A,): the smaller terms, of the same difference
    return lam[0] / (2 * len(lam) * (1 + exponent)) * gamma(s) * c**-s * bracket

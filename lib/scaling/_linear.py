"""Symmetric matrices of the linear student that its learning rate, constant or in stages, moves by."""

import numpy as np
from scipy.linalg import eigh

from lib.common import checks


def flow_modes(lam, shares, rate):
    """Eigenvalues (L,) and eigenvectors (L, L) of  S = -2η diag(λ) + η² v vᵀ,  and  v_k = λ_k √n_k."""
    v = lam * np.sqrt(shares)  # (L,)
    return *eigh(rate**2 * np.outer(v, v) - np.diag(2 * rate * lam)), v


def step_modes(name, share, counts):
    """The same of  1 - M,  M the step of e_k/√m_k at shares a_k = ηλ_k/N: at a small rate M is one up to rounding."""
    v = share * np.sqrt(counts)  # (L,)
    with np.errstate(over="ignore", invalid="ignore"):
        lost = np.diag(2 * share * (1 - share)) - np.outer(v, v)  # (L, L)
    return *eigh(checks.finite(name, lost)), v

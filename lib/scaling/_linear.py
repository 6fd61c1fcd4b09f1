"""What the modules on the linear student share: formulas for arguments that were checked."""

import numpy as np
from scipy.linalg import eigh
from scipy.special import gamma, gammainc, gammaincc

from lib.common import checks
from lib.common.spectrum import Spectrum


def flow_error(times, spectrum, rate, trained):
    """½ Σ_k n_k λ_k e^{-2ηλ_kα} (n,), without the exponential for the eigenspaces behind the first `trained`."""
    weights = spectrum.eigenvalues * spectrum.shares  # (L,)
    learned = np.exp(-2 * rate * np.outer(times, spectrum.eigenvalues[:trained])) @ weights[:trained]  # (n,)
    return (learned + weights[trained:].sum()) / 2


def flow_modes(spectrum, rate):
    """Eigenvalues (L,) and eigenvectors (L, L) of  S = -2η diag(λ) + η² v vᵀ,  and  v_k = λ_k √n_k."""
    v = spectrum.eigenvalues * np.sqrt(spectrum.shares)  # (L,)
    return *eigh(rate**2 * np.outer(v, v) - np.diag(2 * rate * spectrum.eigenvalues)), v


def step_modes(name, share, counts):
    """The same of  1 - M,  M the step of e_k/√m_k at shares a_k = ηλ_k/N: at a small rate M is one up to rounding."""
    v = share * np.sqrt(counts)  # (L,)
    with np.errstate(over="ignore", invalid="ignore"):
        lost = np.diag(2 * share * (1 - share)) - np.outer(v, v)  # (L, L)
    return *eigh(checks.finite(name, lost)), v


def power_law_top(levels, tail_index):
    """λ₊, the largest eigenvalue of the power law  λ_k = λ₊ k^{-(1+β)}  with mean one."""
    return Spectrum.power_law(levels, decay=1 + tail_index).normalized().eigenvalues[0]


def modes_between(first, last, times, levels, tail_index, rate):
    """½ Σ_k λ_k e^{-2ηλ_kα}/L over a power law, as an integral over k from `first` to `last`."""
    top, power = power_law_top(levels, tail_index), 1 + tail_index
    s, c = tail_index / power, 2 * rate * top * times  # float, (n,)
    slow, fast = c * last**-power, c * first**-power  # (n,), (n,)
    late, early = gammaincc(s, slow) - gammaincc(s, fast), gammainc(s, fast) - gammainc(s, slow)  # (n,), (n,)
    bracket = np.where(gammaincc(s, slow) > 0.5, early, late)  # (n,): the smaller terms, of the same difference
    return top / (2 * levels * power) * gamma(s) * c**-s * bracket


def falling(first, last, tail_index):
    """(first^{-β} - last^{-β})/β without cancellation, for β → 0 the logarithm of last/first."""
    return -(first**-tail_index) * np.expm1(-tail_index * np.log(last / first)) / tail_index  # (...)


def tail(trained, levels, tail_index, shift):
    """½ Σ_{k>N_l} λ_k/L over a power law as an integral."""
    return power_law_top(levels, tail_index) / (2 * levels) * falling(trained + shift, levels + shift, tail_index)

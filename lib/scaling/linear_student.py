"""One-pass learning of a linear teacher by a linear student with structured inputs: exact at any learning rate.

e_k = |P_k(J - B)|²/N starts at (1 + σ_J²) n_k, n_k = m_k/N, and for N → ∞ with L fixed obeys  de_k/dα = -2ηλ_k e_k +
η²λ_k n_k Σ_j λ_j e_j,  ε_g = ½ Σ_k λ_k e_k.  Divided by √n_k the matrix is symmetric: one `eigh` serves every α.  K
students and M teachers reduce to one of each with the rate ηM/K and the variance σ_J² M/K.  Eigenspaces that are not
trained keep their error and act on the others as label noise.  Source: worschech2024, eqs. (5) to (11), (50) to (79).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from lib.common import checks
from lib.common.shapes import Array, ArrayLike
from lib.common.spectrum import Spectrum
from lib.scaling import _arguments, _linear


@checks.one_or_many
def generalization_error(
    times: ArrayLike, spectrum: Spectrum | ArrayLike, learning_rate: float, *, student_variance: float = 0.0,
    derivative: bool = False,
) -> float | Array[" n"]:  # fmt: skip
    """Generalization error for N → ∞ at a fixed number of eigenvalues, exact in the learning rate.

    ε_g = ½ vᵀ e^{Sα} w(0),  S = -2η diag(λ) + η² v vᵀ,  v_k = λ_k √n_k,  w_k = e_k/√n_k:  worschech2024 eq. (6),
    corrected.  It decays for η < 2, whatever the spectrum.

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor.
    learning_rate : float
        η > 0.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.
    derivative : bool
        True gives dε_g/dα instead.

    Returns
    -------
    float or ndarray (n,)

    Examples
    --------
    >>> generalization_error([0.0, 1.0], [1.0], 0.5).round(6).tolist()  # e^{-(2η - η²)α} / 2
    [0.5, 0.236183]
    """
    times, spectrum = checks.times("times", times), _arguments.spectrum(spectrum)
    rate, variance = _arguments.learning(learning_rate, student_variance)
    rates, modes, v = _linear.flow_modes(spectrum, rate)
    weights = (v @ modes) * (modes.T @ (variance * np.sqrt(spectrum.shares)))  # (L,)
    if checks.boolean("derivative", derivative):
        weights = weights * rates
    with np.errstate(over="ignore", invalid="ignore"):
        return checks.finite("learning_rate", 0.5 * np.exp(np.outer(times, rates)) @ weights)  # (n,)


@checks.one_or_many
def gradient_flow_error(
    times: ArrayLike, spectrum: Spectrum | ArrayLike, learning_rate: float, *, trained: int | None = None,
    student_variance: float = 0.0,
) -> float | Array[" n"]:  # fmt: skip
    """Generalization error for η → 0 at fixed ηα, also if only the first eigenspaces are trained.

    ε_g = ½ (1 + σ_J²) [Σ_{k≤N_l} n_k λ_k e^{-2ηλ_kα} + Σ_{k>N_l} n_k λ_k]:  worschech2024 eqs. (8) and (10).

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor; trained ones first.
    learning_rate : float
        η > 0.
    trained : int, optional
        How many of the L eigenspaces are trained, 1 <= N_l <= L; by default all.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.

    Returns
    -------
    float or ndarray (n,)

    Examples
    --------
    >>> gradient_flow_error([0.0, 1.0], [1.0], 0.5).round(6).tolist()
    [0.5, 0.18394]
    >>> gradient_flow_error([0.0, 1e9], [1.5, 0.5], 0.1, trained=1).tolist()
    [0.5, 0.125]
    """
    times, spectrum = checks.times("times", times), _arguments.spectrum(spectrum)
    rate, variance = _arguments.learning(learning_rate, student_variance)
    trained = _arguments.trained(trained, spectrum.eigenvalues.size)
    return variance * _linear.flow_error(times, spectrum, rate, trained)


@checks.one_or_many
def local_exponent(times: ArrayLike, spectrum: Spectrum | ArrayLike, learning_rate: float) -> float | Array[" n"]:
    """Slope  d ln ε_g / d ln α  of :func:`gradient_flow_error`, without any fit, accurate where the error underflows.

    Over a power law it tends to -β/(1+β), worschech2024 eq. (9), slowly: the correction at ηλ₊α = z L^{1+β} is of order
    z^{β/(1+β)}.

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and multiplicities m_k, up to a factor.
    learning_rate : float
        η > 0.

    Returns
    -------
    float or ndarray (n,)
        <= 0.

    Examples
    --------
    >>> local_exponent([0.5, 2.0], [1.0], 0.5).tolist()  # a single exponential: -2ηα
    [-0.5, -2.0]
    """
    times, spectrum = checks.times("times", times), _arguments.spectrum(spectrum)
    rate, lam = checks.number("learning_rate", learning_rate, above=0), spectrum.eigenvalues
    weights = spectrum.shares * lam * np.exp(-2 * rate * np.outer(times, lam - lam.min()))  # (n, L)
    return -2 * rate * times * (weights @ lam) / weights.sum(axis=1)


def modes(spectrum: Spectrum | ArrayLike, learning_rate: float) -> tuple[Array[" L"], Array[" L"]]:
    """Shifted eigenvalues λ̃_j and amplitudes b_j of  ε_g = (1 + σ_J²)/(2 - η) Σ_j b_j λ̃_j e^{-2ηλ̃_jα}.

    1 = η Σ_k n_k λ_k² / (2(λ_k - λ̃_j)),  Σ_j b_j = 1,  Σ_j b_j λ̃_j = (2 - η)/2:  worschech2024 eqs. (54) to (57),
    corrected.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one, all different, and multiplicities m_k, up to a factor.
    learning_rate : float
        0 < η < 2.

    Returns
    -------
    λ̃_j, b_j : ndarray (L,)

    Examples
    --------
    >>> [part.tolist() for part in modes([1.0], 0.5)]
    [[0.75], [1.0]]
    """
    spectrum = _arguments.spectrum(spectrum)
    if len(np.unique(spectrum.eigenvalues)) < spectrum.eigenvalues.size:
        wanted = "have eigenvalues that all differ: merge equal ones and add their multiplicities"
        checks.fail("spectrum", wanted, spectrum.eigenvalues)
    rate = checks.number("learning_rate", learning_rate, above=0, below=2)
    rates, vectors, v = _linear.flow_modes(spectrum, rate)
    shifted = -rates / (2 * rate)  # (L,)
    # What mode j adds to ε_g, from the eigenvectors: the differences λ_k - λ̃_j of the printed form lose their digits.
    weights = (v @ vectors) * (vectors.T @ np.sqrt(spectrum.shares))  # (L,)
    return shifted, (2 - rate) / 2 * weights / shifted


@checks.one_or_many
def finite_size_error(
    times: ArrayLike, spectrum: Spectrum | ArrayLike, learning_rate: float, *, trained: int | None = None,
    squares: ArrayLike | None = None, student_variance: float = 0.0,
) -> float | Array["... n"]:  # fmt: skip
    """Mean generalization error of stochastic gradient descent on N Gaussian inputs, exact at every N, L and η.

    With a_k = ηλ_k/N a step changes the means of the trained e_k to  (1 - 2a_k + 2a_k²) e_k + a_k m_k Σ_{j≤L} a_j e_j.

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N >= 0, increasing, rounded to whole steps.
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 of any mean and whole multiplicities m_k, N = Σ_k m_k; trained ones first.
    learning_rate : float
        η > 0.
    trained : int, optional
        How many of the L eigenspaces are trained, 1 <= N_l <= L; by default all.
    squares : array_like (L,) or (replicas, L), optional
        Mean square >= 0 of the entries of J - B in each eigenspace at the start; by default the expectation 1 + σ_J².
    student_variance : float
        σ_J² >= 0 of the entries of J at the start; only without `squares`.

    Returns
    -------
    float or ndarray (n,), (replicas,) or (replicas, n)
        Mean over the examples, and over the starts if none are given.

    Examples
    --------
    >>> finite_size_error([0.0, 1.0], [1.0], 0.5).tolist()  # one input: 1 - 2η + 3η² a step
    [0.5, 0.375]
    >>> finite_size_error([0.0, 0.5, 1e3], [1.5, 0.5], 0.4, trained=1, squares=[1.0, 1.0]).round(6).tolist()
    [0.5, 0.3875, 0.159091]
    """
    times, spectrum = checks.times("times", times), _arguments.spectrum(spectrum, normalized=False, whole=True)
    lam, counts, size = spectrum.eigenvalues, spectrum.multiplicities, spectrum.dimension
    trained, root = _arguments.trained(trained, lam.size), np.sqrt(counts)  # int, (L,)
    rate, start = _arguments.learning(learning_rate, student_variance)
    if squares is not None:
        checks.fail_if(start != 1, "student_variance", "be left at 0 where squares are given", student_variance)
        start = checks.entries("squares", squares, at_least=0)  # (L,) or (replicas, L)
        if start.ndim not in (1, 2) or start.shape[-1] != lam.size or start.size == 0:
            checks.fail("squares", f"have shape (L,) or (replicas, L) with L = {lam.size}", f"shape {start.shape}")
    start = start * spectrum.shares  # (L,) or (replicas, L)
    share, steps, held = rate * lam / size, np.rint(times * size), start[..., trained:]  # (L,), (n,), (..., L - N_l)
    # (N_l,), (N_l, N_l), (N_l,); loss < 1
    loss, modes, v = _linear.step_modes("learning_rate", share[:trained], counts[:trained])
    reach = (lam * root)[:trained] @ modes  # (N_l,)
    drive = np.multiply.outer(held @ share[trained:], v)  # (..., N_l)
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.outer(np.log1p(-loss), steps)  # (N_l, n)
        sums = np.tile(steps, (trained, 1))  # (N_l, n)  1 + M + M² + ..., here for modes that keep their size
        np.divide(-np.expm1(exponent), loss[:, None], out=sums, where=loss[:, None] != 0)
        moved = ((start / root)[..., :trained] @ modes * reach) @ np.exp(exponent)  # (..., n)
        return checks.finite(
            "learning_rate", (moved + (drive @ modes * reach) @ sums + (held @ lam[trained:])[..., None]) / 2
        )


def finite_size_threshold(spectrum: Spectrum | ArrayLike) -> float:
    """Learning rate at which the mean error of :func:`finite_size_error` stops decaying, all eigenspaces trained.

    The smallest root of  Σ_k m_k a_k / (2(1 - a_k)) = 1,  a_k = ηλ_k/N:  2 for N → ∞ at fixed L, clearly less at L = N.

    Parameters
    ----------
    spectrum : Spectrum or array_like (L,)
        λ_k > 0 with mean one and whole multiplicities m_k, N = Σ_k m_k.

    Returns
    -------
    float
        η_c.

    Examples
    --------
    >>> round(finite_size_threshold(Spectrum([1.0], [10])), 12)  # 2N / (N + 2)
    1.666666666667
    """
    spectrum = _arguments.spectrum(spectrum, whole=True)
    lam, counts, size = spectrum.eigenvalues, spectrum.multiplicities, spectrum.dimension

    def excess(rate):
        part = rate * lam / size  # (L,)
        return counts @ (part / (1 - part)) / 2 - 1

    pole = size / lam.max()  # excess grows from -1 at η = 0 to infinity here; and excess(2) >= 0
    top = min(2.0, pole * (1 - 1e-15))
    return float(brentq(excess, 0.0, top, xtol=1e-15, rtol=1e-14)) if excess(top) > 0 else top


@checks.one_or_many
def power_law_error(
    times: ArrayLike, levels: int, tail_index: float, learning_rate: float, *, trained: int | None = None,
    student_variance: float = 0.0, ends: str = "midpoint",
) -> float | Array[" n"]:  # fmt: skip
    """:func:`gradient_flow_error` over a power-law spectrum as an integral:  two incomplete Gamma functions and a tail.

    ε_g ≈ (1+σ_J²) λ₊/(2L) {c^{-s}/(1+β) [Γ(s, c b^{-(1+β)}) - Γ(s, c a^{-(1+β)})] + (b^{-β} - z^{-β})/β},  c = 2ηλ₊α,
    s = β/(1+β):  worschech2024 eqs. (9), (50) and, corrected, (11) and (79), where b is z, which counts frozen modes
    twice.

    Parameters
    ----------
    times : float or array_like (n,)
        α = examples / N > 0, increasing.
    levels : int
        L eigenspaces of equal dimensions,  λ_k = λ₊ k^{-(1+β)}  with mean one.
    tail_index : float
        β > 0.
    learning_rate : float
        η > 0.
    trained : int, optional
        How many of the L eigenspaces are trained, 1 <= N_l <= L; by default all.
    student_variance : float
        σ_J² >= 0 of the entries of J at the start.
    ends : {"midpoint", "endpoint"}
        "midpoint", a = 1/2, b = N_l + 1/2, z = L + 1/2, is closer to the sum than a = 1, b = N_l >= 2, z = L.

    Returns
    -------
    float or ndarray (n,)

    Examples
    --------
    >>> lam = Spectrum.power_law(1000, decay=2.0).normalized()
    >>> exact = gradient_flow_error(30.0, lam, 0.1, trained=100)
    >>> round(power_law_error(30.0, 1000, 1.0, 0.1, trained=100) / exact, 5)
    1.0
    """
    times, (levels, beta) = checks.times("times", times), _arguments.power_law(levels, tail_index)
    checks.fail_if(times[0] == 0, "times", "be > 0", times)
    rate, variance = _arguments.learning(learning_rate, student_variance)
    shift = 0.5 if checks.one_of("ends", ends, ("midpoint", "endpoint")) == "midpoint" else 0.0
    last = _arguments.trained(trained, levels)
    if last == 1 and not shift:
        name = "levels" if levels == 1 else "trained"
        checks.fail(name, "be at least 2 between endpoints, which coincide for one level", last)
    learned = _linear.modes_between(1 - shift, last + shift, times, levels, beta, rate)  # (n,)
    return variance * (learned + _linear.tail(last, levels, beta, shift))


def power_law_window(levels: int, tail_index: float, learning_rate: float) -> tuple[float, float]:
    """Times between which the error over a power-law spectrum is a power of time,  α_lo = 1/(2ηλ₊) ≪ α ≪ α_hi.

    A finite L lowers it by the part (α/α_hi)^s, to first order, with  α_hi = α_lo L^{1+β} Γ(1+s)^{1/s},  s = β/(1+β):
    worschech2024 eqs. (51) to (53).

    Parameters
    ----------
    levels : int
        L eigenspaces of equal dimensions,  λ_k = λ₊ k^{-(1+β)}  with mean one.
    tail_index : float
        β > 0.
    learning_rate : float
        η > 0.

    Returns
    -------
    α_lo, α_hi : float

    Examples
    --------
    >>> lo, hi = power_law_window(128, 1.0, 0.01)
    >>> bool(np.isclose(hi / lo, 128**2 * np.pi / 4))
    True
    """
    levels, beta = _arguments.power_law(levels, tail_index)
    rate, s = checks.number("learning_rate", learning_rate, above=0), beta / (1 + beta)
    start = 1 / (2 * rate * _linear.power_law_top(levels, beta))
    nodes, weights = np.polynomial.legendre.leggauss(20)  # (20,), (20,)
    power = weights / 2 @ digamma(1 + s * (1 + nodes) / 2)  # ln Γ(1+s)/s, also for s → 0
    return float(start), float(start * levels ** (1 + beta) * np.exp(power))

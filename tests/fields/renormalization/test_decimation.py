"""decimation against the self-consistent ridge, its own semigroup, and regressions on the same data."""

import numpy as np
import pytest
from bad_input import exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from lib.fields.renormalization import decimation

RANK = np.arange(1, 200_001)  # (200000,)


@st.composite
def spectra(draw):
    """λ_k (n,) descending and g_k (n,)."""
    size = draw(st.integers(1, 12))
    entry = st.floats(1e-6, 1e3)
    values = draw(st.lists(entry, min_size=size, max_size=size))
    return np.sort(values)[::-1], np.array(draw(st.lists(st.floats(0.5, 500), min_size=size, max_size=size)))


def exact_kappa(lam, counts, samples, ridge):
    """Root of the self-consistent equation by plain bisection in ln κ."""
    top = np.log((ridge + counts @ lam) / samples)
    return np.exp(
        brentq(
            lambda s: ridge * np.exp(-s) + counts @ (lam / (lam + np.exp(s))) - samples,
            top - 40,
            top + 1e-9,
            xtol=1e-14,
        )
    )


@settings(deadline=None, max_examples=60)
@given(modes=spectra(), ridge=st.floats(0, 100), cuts=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_decimating_twice_is_decimating_once(modes, ridge, cuts):
    lam, counts = modes
    second, first = np.sort(np.minimum(cuts, lam.size))
    raised = decimation.running_ridge(lam, ridge, first, multiplicities=counts)
    once = decimation.running_ridge(lam, ridge, second, multiplicities=counts)
    twice = (
        once
        if first == 0
        else decimation.running_ridge(lam[:first], float(raised), second, multiplicities=counts[:first])
    )
    np.testing.assert_allclose(twice, once, rtol=1e-12)
    assert decimation.running_ridge(lam, ridge, lam.size, multiplicities=counts) == ridge
    np.testing.assert_allclose(
        decimation.running_ridge(lam, ridge, 0, multiplicities=counts), ridge + counts @ lam, rtol=1e-12
    )


@settings(deadline=None, max_examples=60)
@given(modes=spectra(), samples=st.floats(0.5, 1e4), ridge=st.floats(1e-3, 100))
def test_the_books_balance_at_every_cut(modes, samples, ridge):
    lam, counts = modes
    kappa = exact_kappa(lam, counts, samples, ridge)
    cuts = np.arange(lam.size + 1)
    learned = counts * lam / (lam + kappa)
    found = decimation.bookkeeping(lam, kappa, samples, ridge, cuts, multiplicities=counts)
    # the denominator P - N_< >= T/κ cancels digits: in rounding by the factor Pκ/T
    np.testing.assert_allclose(found.kappa, kappa, rtol=1e-10 * samples * kappa / ridge)
    np.testing.assert_allclose(found.retained_learned, [learned[:c].sum() for c in cuts], rtol=1e-12)
    np.testing.assert_array_equal(found.equivalent_kernel_accurate, found.equivalent_kernel_error <= 0.1)
    # the two errors are those of RG + equivalent kernel:  κ P (1 - N_</P) = T(Λ') (1 - tail error)
    raised = decimation.running_ridge(lam, ridge, cuts, multiplicities=counts)
    left = found.kappa * samples * (1 - found.equivalent_kernel_error)
    assert (np.abs(left - raised * (1 - found.tail_error)) < 1e-12 * (raised + samples * found.kappa)).all()


@settings(deadline=None, max_examples=60)
@given(modes=spectra(), samples=st.floats(0.5, 1e4), ridge=st.floats(1e-3, 100))
def test_finishing_self_consistently_is_exact_without_a_cut_and_always_an_upper_bound(modes, samples, ridge):
    lam, counts = modes
    cuts = np.arange(lam.size + 1)
    kappa = exact_kappa(lam, counts, samples, ridge)
    found = decimation.self_consistent(lam, samples, ridge, cuts, multiplicities=counts)
    np.testing.assert_allclose(found[-1], kappa, rtol=1e-9)
    assert (found >= kappa * (1 - 1e-9)).all()  # L = 0 in the tail overstates its noise
    bare = decimation.equivalent_kernel(lam, samples, ridge, cuts, multiplicities=counts)
    np.testing.assert_allclose(found[0], bare[0], rtol=1e-12)
    assert (bare <= found * (1 + 1e-9)).all()


def test_one_cut_gives_the_same_number_as_a_row_of_cuts():
    lam = RANK[:100] ** -1.5
    row = decimation.self_consistent(lam, 20, 0.1, [[0, 7], [30, 100]])
    assert row.shape == (2, 2)
    assert (
        decimation.self_consistent(lam, 20, 0.1, 30) == row[1, 0]
        and np.ndim(decimation.self_consistent(lam, 20, 0.1, 30)) == 0
    )


@pytest.mark.parametrize("exponent", [1.1, 1.2, 1.5])
def test_without_a_ridge_only_the_self_consistent_finish_is_accurate(exponent):
    """Thresholds 0.1, 0.01: within 1 % and 0.1 %.  The bare equivalent kernel fails at 0.01; the books say so."""
    lam, samples = RANK**-exponent, 200
    kappa = exact_kappa(lam, np.ones(lam.size), samples, 0.0)
    cuts = [decimation.cut_at(lam, samples, 0.0, threshold) for threshold in (0.5, 0.1, 0.01)]
    assert cuts == sorted(cuts)
    for cut, tolerance in zip(cuts[1:], (0.01, 0.001)):
        assert decimation.self_consistent(lam, samples, 0.0, cut) == pytest.approx(kappa, rel=tolerance)
    bare = decimation.equivalent_kernel(lam, samples, 0.0, cuts)
    assert bare[2] < 0.3 * kappa < 0.7 * kappa < bare[0] < kappa
    assert not decimation.bookkeeping(lam, kappa, samples, 0.0, cuts).equivalent_kernel_accurate[2]


def test_equivalent_kernel_is_accurate_where_the_bookkeeping_says_so():
    lam, samples, ridge = RANK[:20_000] ** -1.2, 200, 50.0
    kappa = exact_kappa(lam, np.ones(lam.size), samples, ridge)
    cut = decimation.cut_at(lam, samples, ridge, 0.5)
    found = decimation.bookkeeping(lam, kappa, samples, ridge, cut)
    assert found.equivalent_kernel_accurate
    assert decimation.equivalent_kernel(lam, samples, ridge, cut) == pytest.approx(
        kappa, rel=float(found.equivalent_kernel_error + found.tail_error)
    )


@settings(deadline=None, max_examples=60)
@given(modes=spectra(), samples=st.floats(0.5, 1e4), ridge=st.floats(0, 100), threshold=st.floats(0.01, 0.99))
def test_the_cut_is_the_first_that_passes(modes, samples, ridge, threshold):
    lam, counts = modes
    cut = decimation.cut_at(lam, samples, ridge, threshold, multiplicities=counts)

    def learned(place):
        raised = ridge + (counts[place:] * lam[place:]).sum()
        return samples * lam[place] / (samples * lam[place] + raised)

    assert all(learned(place) >= threshold * (1 - 1e-12) for place in range(cut))
    assert cut == lam.size or learned(cut) < threshold


def test_a_running_threshold_would_stall_without_a_ridge():
    """From the weakest mode up, with no ridge yet, the first mode already has learnability one."""
    lam = RANK**-1.5
    assert 200 * lam[-1] / (200 * lam[-1] + 0.0) > 0.01
    assert decimation.cut_at(lam, 200, 0.0, 0.1) < 1000


# --- on given data --------------------------------------------------------------------------------

SAMPLES, RIDGE = 150, 0.1
SPECTRUM = RANK[:3000] ** -1.2


def _data(seed, log_deviation=0.0, cut=100):
    """Gaussian features, those beyond the cut with a log-normal amplitude of each sample, and a target of 20 modes."""
    random = np.random.default_rng(seed)
    features = random.standard_normal((SAMPLES, SPECTRUM.size))  # (P, M)
    features[:, cut:] *= np.exp(log_deviation * random.standard_normal(SAMPLES) - log_deviation**2)[:, None]
    return features, features[:, :20] @ (np.sqrt(SPECTRUM[:20]) * random.standard_normal(20))


def _change(features, targets, cut, ridge):
    """Relative change of the first 20 coefficients when the modes beyond the cut are left out."""
    full = decimation.coefficients(features, SPECTRUM, targets, RIDGE)[:20]
    return np.linalg.norm(
        decimation.coefficients(features[:, :cut], SPECTRUM[:cut], targets, ridge)[:20] - full
    ) / np.linalg.norm(full)


def test_the_raised_ridge_stands_for_the_modes_left_out():
    cuts, sets = (30, 100, 300, 1000), [_data(seed) for seed in range(8)]
    raised = [
        np.mean([_change(*one, c, float(decimation.running_ridge(SPECTRUM, RIDGE, c))) for one in sets]) for c in cuts
    ]
    dropped = [np.mean([_change(*one, c, RIDGE) for one in sets]) for c in cuts]
    assert all(np.diff(raised) < 0) and raised[0] < 0.04 and raised[-1] < 0.004
    assert all(np.array(dropped) > 3 * np.array(raised))


@pytest.mark.parametrize(("log_deviation", "gain"), [(0.5, 5), (1.0, 20)])
def test_a_ridge_for_each_sample_where_the_tail_varies(log_deviation, gain):
    cut, constant, local = 100, [], []
    for seed in range(10):
        features, targets = _data(seed, log_deviation, cut)
        constant.append(_change(features, targets, cut, float(decimation.running_ridge(SPECTRUM, RIDGE, cut))))
        local.append(
            _change(features, targets, cut, RIDGE + decimation.tail_variance(features[:, cut:], SPECTRUM[cut:]))
        )
    assert np.mean(constant) > gain * np.mean(local)


def test_coefficients_minimise_the_action():
    """Σ f²/2λ + Σ (f·φ - y)²/2T_μ: its minimum by the normal equations in feature space."""
    random = np.random.default_rng(3)
    features, targets, ridge = random.standard_normal((30, 8)), random.standard_normal(30), random.uniform(0.5, 2, 30)
    lam = random.uniform(0.1, 3, 8)
    curvature = np.diag(1 / lam) + features.T / ridge @ features
    expected = np.linalg.solve(curvature, features.T @ (targets / ridge))
    np.testing.assert_allclose(decimation.coefficients(features, lam, targets, ridge), expected, rtol=1e-10)
    np.testing.assert_allclose(
        decimation.coefficients(features, lam, targets, 0.7),
        decimation.coefficients(features, lam, targets, np.full(30, 0.7)),
        rtol=1e-12,
    )


# --- bad input: every public function, every argument ---------------------------------------------

GOOD = {"eigenvalues": [2.0, 1.0], "samples": 5, "ridge": 0.5, "cuts": [0, 1], "multiplicities": [1, 2]}
FIT = {"features": [[1.0, 2.0]] * 3, "eigenvalues": [2.0, 1.0], "targets": [1.0, 2.0, 3.0], "ridge": 0.5}
CALLS = {
    decimation.running_ridge: {k: v for k, v in GOOD.items() if k != "samples"},
    decimation.cut_at: {k: v for k, v in GOOD.items() if k != "cuts"} | {"threshold": 0.1},
    decimation.equivalent_kernel: GOOD,
    decimation.self_consistent: GOOD,
    decimation.bookkeeping: GOOD | {"kappa": 0.3},
    decimation.tail_variance: {"features": [[1.0, 2.0]], "eigenvalues": [2.0, 1.0]},
    decimation.coefficients: FIT,
}
BAD = {
    "eigenvalues": [[], [-1.0, -2.0], [1.0, np.nan], [[2.0, 1.0]], 1.0, "a", None, [np.inf, 1.0]],
    "samples": [0, -1, np.nan, np.inf, "1", None, True, [1.0]],
    "ridge": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
    "cuts": [[3], [-1], [0.5], [np.nan], "a", None],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [1, 1, 1]],
    "threshold": [0, 1, -0.1, np.nan, "1", None, [0.1]],
    "kappa": [0, -1, np.nan, np.inf, "1", None, [0.1]],
    "features": [[1.0, 2.0], [[1.0, np.nan]], "a", None, [[1j, 2.0]]],
    "targets": [[1.0], [1.0, 2.0, np.nan], 1.0, "a", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


@pytest.mark.parametrize("call", [decimation.running_ridge, decimation.cut_at])
def test_an_order_that_makes_no_sense_is_refused(call):
    for bad in ([1.0, 2.0], [0.0, 0.0]):
        with pytest.raises(ValueError, match="^eigenvalues must be in descending order, the first > 0"):
            call(**CALLS[call] | {"eigenvalues": bad})


def test_impossible_books_and_empty_data_are_refused():
    with pytest.raises(ValueError, match="^samples must exceed what the retained modes learn"):
        decimation.bookkeeping([1.0, 1.0], 1e-9, 1.5, 0.0, 2)
    with pytest.raises(ValueError, match="^features must hold one or more"):
        decimation.coefficients(np.ones((3, 0)), [], [1.0, 2.0, 3.0], 1.0)

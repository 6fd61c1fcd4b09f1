"""decimation against the self-consistent ridge, its own semigroup, and regressions on the same data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from lib.common.spectrum import Spectrum
from lib.fields.renormalization import decimation
from lib.fields.renormalization.decimation import Decimation, running_ridge


@st.composite
def spectra(draw):
    size = draw(st.integers(1, 12))
    values = draw(st.lists(st.floats(1e-6, 1e3), min_size=size, max_size=size))
    return Spectrum(np.sort(values)[::-1], draw(st.lists(st.floats(0.5, 500), min_size=size, max_size=size)))


def exact_kappa(spectrum, samples, ridge):
    """Root of the self-consistent equation by plain bisection in ln κ."""
    lam, counts = spectrum.eigenvalues, spectrum.multiplicities
    top = np.log((ridge + counts @ lam) / samples)

    def excess(log):
        return ridge * np.exp(-log) + counts @ (lam / (lam + np.exp(log))) - samples

    return np.exp(brentq(excess, top - 40, top + 1e-9, xtol=1e-14))


@settings(deadline=None, max_examples=60)
@given(spectrum=spectra(), ridge=st.floats(0, 100), cuts=st.tuples(st.integers(0, 12), st.integers(1, 12)))
def test_decimating_twice_is_decimating_once(spectrum, ridge, cuts):
    lam, counts = spectrum.eigenvalues, spectrum.multiplicities
    second, first = min(*cuts, lam.size), max(1, min(max(cuts), lam.size))
    raised, once = (running_ridge(spectrum, ridge, cut) for cut in (first, second))
    twice = running_ridge(Spectrum(lam[:first], counts[:first]), raised, second)
    assert twice == pytest.approx(once, rel=1e-12) and type(once) is float
    assert running_ridge(spectrum, ridge, lam.size) == ridge
    assert running_ridge(spectrum, ridge, 0) == pytest.approx(ridge + spectrum.trace, rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(spectrum=spectra(), samples=st.floats(0.5, 1e4), ridge=st.floats(1e-3, 100))
def test_the_books_balance_and_finishing_self_consistently_is_an_upper_bound(spectrum, samples, ridge):
    lam, theory = spectrum.eigenvalues, Decimation(spectrum, samples, ridge=ridge)
    kappa, cuts = exact_kappa(spectrum, samples, ridge), np.arange(lam.size + 1)
    learned = spectrum.multiplicities * lam / (lam + kappa)
    books = theory.bookkeeping(cuts, kappa=kappa)
    # the denominator P - N_< >= T/κ cancels digits: in rounding by the factor Pκ/T
    np.testing.assert_allclose(books.kappa, kappa, rtol=1e-10 * samples * kappa / ridge)
    np.testing.assert_allclose(books.retained_learned, [learned[:c].sum() for c in cuts], rtol=1e-12)
    np.testing.assert_array_equal(books.equivalent_kernel_accurate, books.equivalent_kernel_error <= 0.1)
    # the two errors are those of RG + equivalent kernel:  κ P (1 - N_</P) = T(Λ') (1 - tail error)
    raised = running_ridge(spectrum, ridge, cuts)
    left = books.kappa * samples * (1 - books.equivalent_kernel_error)
    assert (np.abs(left - raised * (1 - books.tail_error)) < 1e-12 * (raised + samples * books.kappa)).all()
    found, bare = theory.self_consistent(cuts), theory.equivalent_kernel(cuts)
    np.testing.assert_allclose(bare, raised / samples, rtol=1e-14)
    assert found[-1] == pytest.approx(kappa, rel=1e-9) and found[0] == pytest.approx(bare[0], rel=1e-12)
    assert (found >= kappa * (1 - 1e-9)).all()  # L = 0 in the tail overstates its noise
    assert (bare <= found * (1 + 1e-9)).all()


def test_one_cut_gives_the_same_number_as_a_row_of_cuts():
    theory = Decimation(Spectrum.power_law(100, 1.5), 20, ridge=0.1)
    row = theory.self_consistent([[0, 7], [30, 100]])
    assert row.shape == (2, 2) and type(theory.self_consistent(30)) is float
    assert [theory.self_consistent(cut) for cut in (0, 7, 30, 100)] == row.ravel().tolist()
    books, each = theory.bookkeeping([7, 30], kappa=0.1), theory.bookkeeping(30, kappa=0.1)
    assert type(each.tail_error) is float and each.tail_error == books.tail_error[1]


@pytest.mark.parametrize("decay", [1.1, 1.2, 1.5])
def test_without_a_ridge_only_the_self_consistent_finish_is_accurate(decay):
    """Thresholds 0.1, 0.01: within 1 % and 0.1 %.  The bare equivalent kernel fails at 0.01; the books say so."""
    theory = Decimation(Spectrum.power_law(200_000, decay), 200, ridge=0.0)
    kappa = exact_kappa(theory.spectrum, 200, 0.0)
    cuts = [theory.cut_at(threshold) for threshold in (0.5, 0.1, 0.01)]
    assert cuts == sorted(cuts)
    for cut, tolerance in zip(cuts[1:], (0.01, 0.001)):
        assert theory.self_consistent(cut) == pytest.approx(kappa, rel=tolerance)
    bare = theory.equivalent_kernel(cuts)
    assert bare[2] < 0.3 * kappa < 0.7 * kappa < bare[0] < kappa
    assert not theory.bookkeeping(cuts, kappa=kappa).equivalent_kernel_accurate[2]


def test_equivalent_kernel_is_accurate_where_the_bookkeeping_says_so():
    theory = Decimation(Spectrum.power_law(20_000, 1.2), 200, ridge=50.0)
    kappa, cut = exact_kappa(theory.spectrum, 200, 50.0), theory.cut_at(0.5)
    books = theory.bookkeeping(cut, kappa=kappa)
    assert books.equivalent_kernel_accurate is True
    assert theory.equivalent_kernel(cut) == pytest.approx(kappa, rel=books.equivalent_kernel_error + books.tail_error)


@settings(deadline=None, max_examples=60)
@given(spectrum=spectra(), samples=st.floats(0.5, 1e4), ridge=st.floats(0, 100), threshold=st.floats(0.01, 0.99))
def test_the_cut_is_the_first_that_passes(spectrum, samples, ridge, threshold):
    lam, counts = spectrum.eigenvalues, spectrum.multiplicities
    cut = Decimation(spectrum, samples, ridge=ridge).cut_at(threshold)

    def learned(place):
        raised = ridge + (counts[place:] * lam[place:]).sum()
        return samples * lam[place] / (samples * lam[place] + raised)

    assert all(learned(place) >= threshold * (1 - 1e-12) for place in range(cut))
    assert cut == lam.size or learned(cut) < threshold


# --- on given data --------------------------------------------------------------------------------

SAMPLES, RIDGE = 150, 0.1
SPECTRUM = np.arange(1.0, 3001) ** -1.2


def _data(seed, log_deviation=0.0, cut=100):
    """Gaussian features, those beyond the cut with a log-normal amplitude of each sample, and a target of 20 modes."""
    random = np.random.default_rng(seed)
    features = random.standard_normal((SAMPLES, SPECTRUM.size))  # (P, M)
    features[:, cut:] *= np.exp(log_deviation * random.standard_normal(SAMPLES) - log_deviation**2)[:, None]
    return features, features[:, :20] @ (np.sqrt(SPECTRUM[:20]) * random.standard_normal(20))


def _change(features, targets, cut, ridge):
    """Relative change of the first 20 coefficients when the modes beyond the cut are left out."""
    full = decimation.coefficients(features, SPECTRUM, targets, RIDGE)[:20]
    few = decimation.coefficients(features[:, :cut], SPECTRUM[:cut], targets, ridge)[:20]
    return np.linalg.norm(few - full) / np.linalg.norm(full)


def test_the_raised_ridge_stands_for_the_modes_left_out():
    cuts, sets = (30, 100, 300, 1000), [_data(seed) for seed in range(8)]
    raised = [np.mean([_change(*one, c, running_ridge(SPECTRUM, RIDGE, c)) for one in sets]) for c in cuts]
    dropped = [np.mean([_change(*one, c, RIDGE) for one in sets]) for c in cuts]
    assert all(np.diff(raised) < 0) and raised[0] < 0.04 and raised[-1] < 0.004
    assert all(np.array(dropped) > 3 * np.array(raised))


@pytest.mark.parametrize(("log_deviation", "gain"), [(0.5, 5), (1.0, 20)])
def test_a_ridge_for_each_sample_where_the_tail_varies(log_deviation, gain):
    cut, constant, local = 100, [], []
    for seed in range(10):
        features, targets = _data(seed, log_deviation, cut)
        constant.append(_change(features, targets, cut, running_ridge(SPECTRUM, RIDGE, cut)))
        own = RIDGE + decimation.tail_variance(features[:, cut:], SPECTRUM[cut:])
        local.append(_change(features, targets, cut, own))
    assert np.mean(constant) > gain * np.mean(local)


def test_coefficients_minimise_the_action():
    """Σ f²/2λ + Σ (f·φ - y)²/2T_μ: its minimum by the normal equations in feature space."""
    random = np.random.default_rng(3)
    features, targets, ridge = random.standard_normal((30, 8)), random.standard_normal(30), random.uniform(0.5, 2, 30)
    lam = random.uniform(0.1, 3, 8)
    curvature = np.diag(1 / lam) + features.T / ridge @ features
    expected = np.linalg.solve(curvature, features.T @ (targets / ridge))
    np.testing.assert_allclose(decimation.coefficients(features, lam, targets, ridge), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: running_ridge([1.0, 2.0], 0.5, 1), "spectrum must have its eigenvalues in descending order"),
        (lambda: Decimation([1.0, 2.0], 5, ridge=0.5), "spectrum must have its eigenvalues in descending order"),
        (lambda: running_ridge([2.0, 1.0], 0.5, [3]), "cuts must have entries >= 0 and <= 2"),
        (lambda: Decimation([2.0, 1.0], 5, ridge=0.5).self_consistent(0.5), "cuts must hold whole numbers"),
        (lambda: Decimation([1.0, 1.0], 1.5, ridge=0.0).bookkeeping(2, kappa=1e-9), "samples must exceed what the"),
        (lambda: decimation.coefficients(np.ones((3, 0)), [], [1.0, 2.0, 3.0], 1.0), "features must hold one or more"),
        (lambda: decimation.coefficients(np.ones((3, 1)), [1.0], [1.0], 1.0), "targets must have one axis of length 3"),
        (lambda: decimation.tail_variance(np.ones((3, 2)), [1.0]), "eigenvalues must have one axis of length 2"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_samples_and_ridge_cannot_be_swapped():
    with pytest.raises(TypeError, match="positional argument"):
        Decimation([2.0, 1.0], 0.5, 10)

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


def test_equivalent_kernel_is_accurate_where_the_bookkeeping_says_so():
    theory = Decimation(Spectrum.power_law(20_000, 1.2), 200, ridge=50.0)
    kappa, cut = exact_kappa(theory.spectrum, 200, 50.0), theory.cut_at(0.5)
    books = theory.bookkeeping(cut, kappa=kappa)
    assert books.equivalent_kernel_error < 0.1
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


def test_the_variance_of_the_tail_is_that_of_draws_from_the_prior():
    random, lam = np.random.default_rng(4), np.array([0.5, 0.0, 2.0])
    features = random.standard_normal((3, 3))
    drawn = (np.sqrt(lam) * random.standard_normal((200_000, 3))) @ features.T  # (draws, P)
    np.testing.assert_allclose(
        decimation.tail_variance(features, lam), drawn.var(axis=0), rtol=5 * np.sqrt(2 / 200_000)
    )


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

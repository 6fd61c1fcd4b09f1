"""decimation against the self-consistent ridge, its own semigroup, and regressions on the same data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.common.spectrum import Spectrum
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.gp_regression import GaussianProcess
from lib.fields.renormalization.decimation import bookkeeping, decimated, running_ridge


@st.composite
def spectra(draw):
    size = draw(st.integers(1, 12))
    values = draw(st.lists(st.floats(1e-6, 1e3), min_size=size, max_size=size))
    return Spectrum(np.sort(values)[::-1], draw(st.lists(st.floats(0.5, 500), min_size=size, max_size=size)))


@settings(deadline=None, max_examples=60)
@given(spectrum=spectra(), ridge=st.floats(0, 100), cuts=st.tuples(st.integers(1, 12), st.integers(1, 12)))
def test_decimating_twice_is_decimating_once(spectrum, ridge, cuts):
    size, theory = spectrum.eigenvalues.size, RidgeTheory(spectrum, 30, ridge=ridge)
    second, first = min(*cuts, size), min(max(cuts), size)
    once, twice = decimated(theory, second), decimated(decimated(theory, first), second)
    assert twice.ridge == pytest.approx(once.ridge, rel=1e-12) and twice.samples == 30
    assert once.ridge == running_ridge(spectrum, ridge, second) and type(once.ridge) is float
    assert running_ridge(spectrum, ridge, size) == ridge
    assert running_ridge(spectrum, ridge, 0) == pytest.approx(ridge + spectrum.trace, rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(spectrum=spectra(), samples=st.floats(0.5, 1e4), ridge=st.floats(1e-3, 100))
def test_the_books_balance_and_bound_what_decimation_does(spectrum, samples, ridge):
    """1 <= κ_SC/κ <= 1/(1 - ε_>),  and the bare equivalent kernel is off by both errors."""
    theory, cuts = RidgeTheory(spectrum, samples, ridge=ridge), np.arange(spectrum.eigenvalues.size + 1)
    books, learned = bookkeeping(theory, cuts), spectrum.multiplicities * theory.learnability
    # the denominator P - N_< >= T/κ cancels digits: in rounding by the factor Pκ/T
    np.testing.assert_allclose(books.kappa, theory.kappa, rtol=1e-10 * samples * theory.kappa / ridge)
    np.testing.assert_allclose(books.retained_learned, [learned[:c].sum() for c in cuts], rtol=1e-12)
    raised = running_ridge(spectrum, ridge, cuts)
    left = books.kappa * samples * (1 - books.equivalent_kernel_error)
    assert (np.abs(left - raised * (1 - books.tail_error)) < 1e-12 * (raised + samples * books.kappa)).all()
    found = np.array([decimated(theory, cut).kappa for cut in cuts[1:]]) / theory.kappa
    assert found[-1] == pytest.approx(1, rel=1e-9)
    assert (found >= 1 - 1e-9).all() and (found <= (1 + 1e-9) / (1 - books.tail_error[1:])).all()
    each = bookkeeping(theory, 1)
    assert type(each.tail_error) is float and each.tail_error == books.tail_error[1]


def test_raising_the_ridge_keeps_the_learned_coefficients_of_a_data_set_and_keeping_it_does_not():
    """Two hundred waves on a circle: the tail's variance is the same at every input."""
    random = np.random.default_rng(1)
    angle, pairs = random.uniform(0, 2 * np.pi, 40), np.arange(1, 201)
    lam = np.repeat(pairs**-1.1, 2)
    phi = np.sqrt(2) * np.stack([np.cos(np.outer(angle, pairs)), np.sin(np.outer(angle, pairs))], axis=2).reshape(
        40, -1
    )
    y, cut = np.cos(angle) + 0.3 * random.standard_normal(40), 40
    theory = decimated(RidgeTheory(lam, 40, ridge=1e-6), cut)

    def lowest(kept, ridge):
        process = GaussianProcess((phi[:, :kept] * lam[:kept]) @ phi[:, :kept].T, ridge)
        return (lam[:kept] * (phi[:, :kept].T @ process.weights(y)))[:6]

    full, raised, kept = lowest(400, 1e-6), lowest(cut, theory.ridge), lowest(cut, 1e-6)
    away = [np.linalg.norm(part - full) / np.linalg.norm(full) for part in (raised, kept)]
    np.testing.assert_allclose((phi[:, cut:] ** 2) @ lam[cut:], theory.ridge - 1e-6, rtol=1e-12)
    assert away[0] < 0.1 and away[1] > 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: running_ridge([1.0, 2.0], 0.5, 1), "spectrum must have its eigenvalues in descending order"),
        (lambda: running_ridge([2.0, 1.0], 0.5, [3]), "cuts must have entries >= 0 and <= 2"),
        (lambda: decimated(RidgeTheory([1.0, 2.0], 5, ridge=0.5), 1), "spectrum must have its eigenvalues in desc"),
        (lambda: decimated(RidgeTheory([2.0, 1.0], 5, ridge=[0.5, 1.0]), 1), "ridge must be one finite number"),
        (lambda: decimated(RidgeTheory([2.0, 1.0], 5, ridge=0.5, pool=9), 1), "theory must be of unlimited data"),
        (lambda: bookkeeping(RidgeTheory([1.0, 1.0], [3, 4], ridge=1.0), 2), "samples must be one finite number"),
        (lambda: bookkeeping(RidgeTheory([1.0, 1.0], 3, ridge=0.0), 2), "kappa must be one finite number > 0"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()

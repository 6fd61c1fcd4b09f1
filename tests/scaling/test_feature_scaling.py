"""lib.scaling.feature_scaling against sums, the rate equations, gradient flow, descent step by step, random bases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law
from scipy.linalg import expm
from scipy.stats import ortho_group

from lib.common.spectrum import Spectrum
from lib.scaling import feature_scaling, linear_student

LAM = power_law(40, 0.75)

# --- the eigenbasis


def test_late_times_leave_the_tail():
    late = linear_student.gradient_flow_error(1e7, LAM, 0.2, trained=10, student_variance=0.3)
    assert late == pytest.approx(1.3 * LAM[10:].sum() / 80, rel=1e-12)
    assert feature_scaling.error_floor(LAM, 10, 0.0, student_variance=0.3) == pytest.approx(late, rel=1e-12)
    assert feature_scaling.error_floor(LAM, 40, 0.5) == 0


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_floor_at_any_learning_rate_is_the_rest_point_of_the_rate_equations(rate):
    trained, spectrum = 12, Spectrum(LAM, np.arange(1, 41)).normalized()
    lam, n = spectrum.eigenvalues, spectrum.shares
    # de_k/dα = -2ηλ_k e_k + η²λ_k n_k Σ_j λ_j e_j for the trained modes; the frozen ones drive them
    matrix = (-2 * rate * np.diag(lam) + rate**2 * np.outer(lam * n, lam))[:trained, :trained]
    drive = rate**2 * (lam * n)[:trained] * (lam[trained:] @ n[trained:])
    rest = -np.linalg.solve(matrix, drive)
    expected = 0.5 * (lam[:trained] @ rest + lam[trained:] @ n[trained:])
    assert feature_scaling.error_floor(spectrum, trained, rate) == pytest.approx(expected, rel=1e-11)
    large = Spectrum(lam, spectrum.multiplicities * 10**7)
    assert feature_scaling.error_floor(large, trained, rate, finite=True) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("counts", [np.ones(40), np.arange(1, 41)])
def test_floor_at_finite_size_is_where_the_recursion_rests(counts):
    spectrum = Spectrum(LAM, counts).normalized()
    floor = linear_student.finite_size_error(1e7, spectrum, 0.3, trained=10, student_variance=0.3)
    found = feature_scaling.error_floor(spectrum, 10, 0.3, student_variance=0.3, finite=True)
    assert found == pytest.approx(floor, rel=1e-11)
    assert found > feature_scaling.error_floor(spectrum, 10, 0.3, student_variance=0.3)
    for rate in (2.0, 50.0):  # the trained part grows; or a single step is too long
        with pytest.raises(ValueError, match="^learning_rate must be smaller"):
            feature_scaling.error_floor([1.5, 0.5], 1, rate, finite=True)


def test_the_tail_as_an_integral_is_close_to_its_sum():
    trained = np.array([50, 200])
    exact = np.array([feature_scaling.error_floor(power_law(256, 0.75), n, 0.0) for n in trained])
    np.testing.assert_allclose(feature_scaling.tail_floor(256, trained, 0.75), exact, rtol=2e-4)
    printed = np.abs(feature_scaling.tail_floor(256, trained, 0.75, ends="endpoint") / exact - 1)
    assert (printed > 2e-3).all() and (printed < 0.05).all()
    flat = np.log(256.5 / 50.5) / (2 * (1 / np.arange(1, 257)).sum())  # β → 0: the integral of λ₊/k
    assert feature_scaling.tail_floor(256, 50, 1e-16, student_variance=0.5) == pytest.approx(1.5 * flat, rel=1e-13)


def test_split_is_the_best_of_all_sizes_and_its_error_the_least():
    levels, rate, budget = 20_000, 0.01, np.array([1e4, 1e5])
    for beta in (0.5, 1.0):
        lam = power_law(levels, beta)
        best, least = feature_scaling.best_split(budget, levels, beta, rate, student_variance=0.5)
        for one, size, error in zip(budget, best, least):
            kept = np.arange(int(0.8 * size), int(1.2 * size))
            errors = [
                linear_student.gradient_flow_error(one / n, lam, rate, trained=int(n), student_variance=0.5)
                for n in kept
            ]
            assert abs(kept[np.argmin(errors)] + 0.5 - size) < 0.01 * size + 1
            assert error == pytest.approx(min(errors), rel=3e-3)
    tiny, small = (feature_scaling.best_split(1e4, levels, beta, rate)[1] for beta in (1e-15, 1e-9))
    assert tiny == pytest.approx(small, rel=1e-8)
    with pytest.raises(ValueError, match="^budget must ask for no more than the 100 weights"):
        feature_scaling.best_split(1e7, 100, 0.5, 0.1)


# --- any basis


def rotated(lam, seed):
    """Covariance with these eigenvalues in a random orthogonal basis."""
    frame = ortho_group.rvs(len(lam), random_state=seed)
    return frame @ np.diag(lam) @ frame.T


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), trained=st.integers(1, 7))
def test_schur_floor_is_the_rest_error_of_gradient_flow_in_any_basis(seed, trained):
    lam = power_law(8, 0.6)
    sigma = rotated(lam, seed)
    floors = feature_scaling.schur_floors(sigma, student_variance=0.5)
    assert floors[0] == pytest.approx(1.5 / 2, rel=1e-12) and floors[-1] == 0
    start = np.sqrt(1.5) * np.random.default_rng(seed).standard_normal((400, 8))
    inner, cross = sigma[:trained, :trained], sigma[:trained, trained:]
    rest, decay = start.copy(), expm(-1e9 * inner)  # zero: the flow has come to rest
    shift = -np.linalg.solve(inner, cross @ start[:, trained:].T).T
    rest[:, :trained] = shift + (start[:, :trained] - shift) @ decay
    errors = 0.5 * np.einsum("ri,ij,rj->r", rest, sigma, rest) / 8
    assert abs(errors.mean() - floors[trained]) < 5 * errors.std() / 20
    assert floors[trained] >= 1.5 * lam[trained:].sum() / 16 * (1 - 1e-12)  # no basis beats the eigenbasis
    flat = feature_scaling.schur_floors(np.diag(lam))
    np.testing.assert_allclose(flat[trained], lam[trained:].sum() / 16, rtol=1e-12)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), trained=st.integers(1, 9))
def test_decoupled_descent_is_descent_in_the_given_basis_example_by_example(seed, trained):
    sigma, random = rotated(power_law(9, 0.6), seed), np.random.default_rng(seed)
    variances, transform = feature_scaling.decoupled(sigma, trained)
    np.testing.assert_allclose(transform.T @ np.diag(variances) @ transform, sigma, atol=1e-12)
    here = random.standard_normal(9)
    there = transform @ here
    for _ in range(30):
        example = np.linalg.cholesky(sigma) @ random.standard_normal(9)
        mapped = np.linalg.solve(transform.T, example)
        here[:trained] -= 0.3 / 9 * (here @ example) * example[:trained]
        there[:trained] -= 0.3 / 9 * (there @ mapped) * mapped[:trained]
        np.testing.assert_allclose(transform @ here, there, rtol=1e-9, atol=1e-10)
    floor = feature_scaling.schur_floors(sigma)[trained]
    assert variances[trained:].sum() / 18 == pytest.approx(floor, rel=1e-11, abs=1e-15)
    whole = np.linalg.eigvalsh(sigma)
    assert np.all(variances[trained:] >= whole[: 9 - trained] * (1 - 1e-10))  # Cauchy: no basis beats the eigenbasis


def test_random_basis_floor_solves_a_quadratic_for_two_eigenvalues():
    # n₁λ₁/(λ₁+κ) + n₂λ₂/(λ₂+κ) = N_l, times both denominators
    for high, low, n_high, n_low, trained in [(3.0, 0.5, 2, 8, 3), (1e6, 1e-6, 5, 5, 7), (2.0, 1.0, 1, 4, 1)]:
        whole = n_high + n_low
        middle, last = trained * (high + low) - n_high * high - n_low * low, (trained - whole) * high * low
        wanted = 1.5 * np.roots([trained, middle, last]).max() * trained / (2 * whole)
        spectrum = Spectrum([high, low], [n_high, n_low])
        found = feature_scaling.random_basis_floor(spectrum, trained, student_variance=0.5)
        assert found == pytest.approx(wanted, rel=1e-7)
        each = np.repeat(spectrum.eigenvalues, [n_high, n_low])
        assert feature_scaling.random_basis_floor(each, trained, student_variance=0.5) == pytest.approx(
            found, rel=1e-12
        )


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_random_basis_floor_is_the_mean_over_random_bases(beta):
    lam, trained = power_law(96, beta), np.array([12, 24, 48, 80])
    floors = np.array([feature_scaling.schur_floors(rotated(lam, seed))[trained] for seed in range(60)])
    law = np.array([feature_scaling.random_basis_floor(lam, int(n)) for n in trained])
    assert np.abs(floors.mean(axis=0) / law - 1).max() < 0.03
    tails = np.array([lam[n:].sum() for n in trained]) / (2 * 96)
    assert (law / tails).min() > 1.5  # an eigenbasis formula would fail


def test_random_basis_floor_in_the_limits():
    for trained in range(1, 11):
        flat = feature_scaling.random_basis_floor(np.ones(10), trained)
        assert flat == pytest.approx((1 - trained / 10) / 2, rel=1e-12, abs=1e-15)
    lam = power_law(4000, 1.0)
    scaled = feature_scaling.random_basis_floor(3 * lam, 40)
    assert scaled == pytest.approx(3 * feature_scaling.random_basis_floor(lam, 40), rel=1e-11)
    assert feature_scaling.random_basis_floor(lam, 3999) * 8000 / lam[-1] == pytest.approx(3, rel=2e-3)  # 2 + β
    ratio = feature_scaling.random_basis_floor(lam, 60) / feature_scaling.tail_floor(4000, 60, 1.0)
    assert ratio == pytest.approx(np.pi**2 / 4, rel=0.03)  # β C_β^{1+β}


@pytest.mark.parametrize(
    "call",
    [
        lambda n: feature_scaling.error_floor([1.5, 0.5], n, 0.1),
        lambda n: feature_scaling.decoupled(np.eye(2), n),
        lambda n: feature_scaling.random_basis_floor([1.5, 0.5], n),
        lambda n: feature_scaling.tail_floor(2, n, 0.5),
    ],
)
def test_more_trained_weights_than_there_are_are_refused(call):
    with pytest.raises(ValueError, match="^trained must "):
        call(3)

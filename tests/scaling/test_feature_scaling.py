"""lib.scaling.feature_scaling against gradient flow, descent step by step, random bases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law
from scipy.linalg import expm
from scipy.stats import ortho_group

from lib.common.spectrum import Spectrum
from lib.scaling import feature_scaling
from lib.scaling.power_law import PowerLaw


def rotated(lam, seed):
    """Covariance with these eigenvalues in a random orthogonal basis."""
    frame = ortho_group.rvs(len(lam), random_state=seed)
    return frame @ np.diag(lam) @ frame.T


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), trained=st.integers(1, 7))
def test_schur_floor_is_the_rest_error_of_gradient_flow_in_any_basis(seed, trained):
    lam = power_law(8, 0.6)
    sigma = rotated(lam, seed)
    floors = feature_scaling.schur_floors(sigma)
    assert floors[0] == pytest.approx(1 / 2, rel=1e-12) and floors[-1] == 0
    start = np.random.default_rng(seed).standard_normal((400, 8))
    inner, cross = sigma[:trained, :trained], sigma[:trained, trained:]
    rest, decay = start.copy(), expm(-1e9 * inner)  # zero: the flow has come to rest
    shift = -np.linalg.solve(inner, cross @ start[:, trained:].T).T
    rest[:, :trained] = shift + (start[:, :trained] - shift) @ decay
    errors = 0.5 * np.einsum("ri,ij,rj->r", rest, sigma, rest) / 8
    assert abs(errors.mean() - floors[trained]) < 5 * errors.std() / 20
    assert floors[trained] >= lam[trained:].sum() / 16 * (1 - 1e-12)  # no basis beats the eigenbasis
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
        wanted = np.roots([trained, middle, last]).max() * trained / (2 * whole)
        spectrum = Spectrum([high, low], [n_high, n_low])
        found = feature_scaling.random_basis_floor(spectrum, trained)
        assert found == pytest.approx(wanted, rel=1e-7)
        each = np.repeat(spectrum.eigenvalues, [n_high, n_low])
        assert feature_scaling.random_basis_floor(each, trained) == pytest.approx(found, rel=1e-12)


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
    ratio = feature_scaling.random_basis_floor(lam, 60) / PowerLaw(4000, 1.0).tail(60)
    assert ratio == pytest.approx(np.pi**2 / 4, rel=0.03)  # β C_β^{1+β}


def test_more_trained_weights_than_there_are_are_refused():
    for function, problem in ((feature_scaling.decoupled, np.eye(2)), (feature_scaling.random_basis_floor, [1.5, 0.5])):
        with pytest.raises(ValueError, match="^trained must "):
            function(problem, 3)

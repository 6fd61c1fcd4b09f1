"""lib.scaling.feature_scaling in any basis: gradient flow, descent step by step, interlacing, averages over bases."""

import numpy as np
import pytest
from bad_input import MATRIX, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.stats import ortho_group

from lib.scaling import feature_scaling, linear_descent, spectra


def rotated(lam, seed):
    """Covariance with these eigenvalues in a random orthogonal basis."""
    frame = ortho_group.rvs(len(lam), random_state=seed)
    return frame @ np.diag(lam) @ frame.T


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), trained=st.integers(1, 7))
def test_schur_floor_is_the_rest_error_of_gradient_flow_in_any_basis(seed, trained):
    lam = spectra.power_law(8, 0.6)
    sigma = rotated(lam, seed)
    floors = feature_scaling.schur_floors(sigma, student_variance=0.5)
    assert floors[0] == pytest.approx(1.5 / 2, rel=1e-12) and floors[-1] == 0
    rng = np.random.default_rng(seed)
    start = rng.standard_normal((400, 8)) @ np.diag(np.full(8, np.sqrt(1.5)))
    inner, cross = sigma[:trained, :trained], sigma[:trained, trained:]
    rest = start.copy()
    decay = expm(-1e9 * inner)  # zero: the flow has come to rest
    shift = -np.linalg.solve(inner, cross @ start[:, trained:].T).T
    rest[:, :trained] = shift + (start[:, :trained] - shift) @ decay
    errors = 0.5 * np.einsum("ri,ij,rj->r", rest, sigma, rest) / 8
    assert abs(errors.mean() - floors[trained]) < 5 * errors.std() / 20
    assert floors[trained] >= 1.5 * lam[trained:].sum() / 16 * (1 - 1e-12)  # no basis beats the eigenbasis
    np.testing.assert_allclose(
        feature_scaling.schur_floors(np.diag(lam))[trained], lam[trained:].sum() / 16, rtol=1e-12
    )


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000), trained=st.integers(1, 9))
def test_decoupled_descent_is_descent_in_the_given_basis_example_by_example(seed, trained):
    sigma, random = rotated(spectra.power_law(9, 0.6), seed), np.random.default_rng(seed)
    variances, transform = feature_scaling.decoupled(sigma, trained)
    np.testing.assert_allclose(transform.T @ np.diag(variances) @ transform, sigma, atol=1e-12)
    np.testing.assert_allclose(
        np.linalg.inv(transform).T @ sigma @ np.linalg.inv(transform), np.diag(variances), atol=1e-12
    )
    start = random.standard_normal(9)
    here, there = start.copy(), transform @ start
    for _ in range(30):
        example = np.linalg.cholesky(sigma) @ random.standard_normal(9)
        mapped = np.linalg.solve(transform.T, example)
        here[:trained] -= 0.3 / 9 * (here @ example) * example[:trained]
        there[:trained] -= 0.3 / 9 * (there @ mapped) * mapped[:trained]
        np.testing.assert_allclose(transform @ here, there, rtol=1e-9, atol=1e-10)
    assert variances[trained:].sum() / 18 == pytest.approx(
        feature_scaling.schur_floors(sigma)[trained], rel=1e-11, abs=1e-15
    )
    whole = np.linalg.eigvalsh(sigma)
    assert np.all(variances[trained:] >= whole[: 9 - trained] * (1 - 1e-10))  # Cauchy: no basis beats the eigenbasis


def test_simulator_and_exact_mean_in_the_new_frame_agree_with_descent_on_correlated_inputs():
    size, trained, rate, runs = 12, 4, 0.4, 4000
    sigma, random = rotated(spectra.power_law(size, 0.75), 3), np.random.default_rng(8)
    start = random.standard_normal(size)
    direct, factor = np.tile(start, (runs, 1)), np.linalg.cholesky(sigma)
    for _ in range(10 * size):
        examples = random.standard_normal((runs, size)) @ factor.T
        direct[:, :trained] -= rate / size * (direct * examples).sum(axis=1)[:, None] * examples[:, :trained]
    errors = 0.5 * np.einsum("ri,ij,rj->r", direct, sigma, direct) / size
    variances, transform = feature_scaling.decoupled(sigma, trained)
    moved = transform @ start
    exact = feature_scaling.finite_size_error([10.0], variances, trained, rate, squares=moved**2)[0]
    simulated = linear_descent.simulate(
        np.tile(moved, (runs, 1)), variances, rate, [10.0], 6, trained=trained
    ).generalization_error[:, 0]
    for sample in (errors, simulated):
        error = sample.std() / np.sqrt(runs)
        assert abs(sample.mean() - exact) < 4 * error < 0.05 * exact


def test_random_basis_floor_solves_a_quadratic_for_two_eigenvalues():
    # n₁λ₁/(λ₁+κ) + n₂λ₂/(λ₂+κ) = N_l, times both denominators
    for high, low, n_high, n_low, trained in [(3.0, 0.5, 2, 8, 3), (1e6, 1e-6, 5, 5, 7), (2.0, 1.0, 1, 4, 1)]:
        whole = n_high + n_low
        kappa = np.roots(
            [trained, trained * (high + low) - n_high * high - n_low * low, (trained - whole) * high * low]
        ).max()
        lam = np.repeat([high, low], [n_high, n_low])
        found = feature_scaling.random_basis_floor(lam, trained, student_variance=0.5)
        assert found == pytest.approx(1.5 * kappa * trained / (2 * whole), rel=1e-7)


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_random_basis_floor_is_the_mean_over_random_bases(beta):
    lam, trained = spectra.power_law(96, beta), np.array([12, 24, 48, 80])
    floors = np.array([feature_scaling.schur_floors(rotated(lam, seed))[trained] for seed in range(60)])
    law = np.array([feature_scaling.random_basis_floor(lam, int(n)) for n in trained])
    assert np.abs(floors.mean(axis=0) / law - 1).max() < 0.03
    tails = np.array([lam[n:].sum() for n in trained]) / (2 * 96)
    assert (law / tails).min() > 1.5  # an eigenbasis formula would fail


def test_random_basis_floor_in_the_limits():
    flat = np.ones(10)
    for trained in range(1, 11):
        assert feature_scaling.random_basis_floor(flat, trained) == pytest.approx(
            (1 - trained / 10) / 2, rel=1e-12, abs=1e-15
        )
    lam = spectra.power_law(4000, 1.0)
    assert feature_scaling.random_basis_floor(3 * lam, 40) == pytest.approx(
        3 * feature_scaling.random_basis_floor(lam, 40), rel=1e-11
    )
    assert feature_scaling.random_basis_floor(lam, 3999) * 8000 / lam[-1] == pytest.approx(3, rel=2e-3)  # 2 + β
    ratio = feature_scaling.random_basis_floor(lam, 60) / feature_scaling.tail_floor(4000, 60, 1.0)
    assert ratio == pytest.approx(np.pi**2 / 4, rel=0.03)  # β C_β^{1+β}


# --- bad input: every public function, every argument

CALLS = {
    feature_scaling.schur_floors: {"covariance": np.eye(2), "student_variance": 0.0},
    feature_scaling.decoupled: {"covariance": np.eye(2), "trained": 1},
    feature_scaling.random_basis_floor: {"eigenvalues": [1.5, 0.5], "trained": 1, "student_variance": 0.0},
}
BAD = {
    "covariance": [
        *(bad for bad in MATRIX if np.shape(bad) != (3, 3)),
        -np.eye(2),
        np.ones((2, 2)),
        [[1.0, 0.5], [0.2, 1.0]],
    ],
    "trained": [0, -1, 5, "2", None, True, 1.0],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None],
    "student_variance": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

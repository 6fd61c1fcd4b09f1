"""lib.feature_scaling against sums, linear algebra, the rate equations, simulated descent, and the interlacing of eigenvalues."""

import numpy as np
import pytest
from bad_input import COUNT, MATRIX, NUMBER, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.stats import ortho_group

from lib import feature_scaling, linear_student, spectra

LAM = spectra.power_law(40, 0.75)


def test_all_trained_is_the_linear_student_and_late_times_leave_the_tail():
    alpha = np.array([0.0, 1.0, 50.0])
    full = feature_scaling.generalization_error(alpha, LAM, 40, 0.2, student_variance=0.3)
    np.testing.assert_allclose(full, linear_student.gradient_flow_error(alpha, LAM, 0.2, student_variance=0.3), rtol=1e-13)
    late = feature_scaling.generalization_error([1e7], LAM, 10, 0.2, student_variance=0.3)[0]
    assert late == pytest.approx(1.3 * LAM[10:].sum() / 80, rel=1e-12)
    assert feature_scaling.error_floor(LAM, 10, 0.0, student_variance=0.3) == pytest.approx(late, rel=1e-12)
    assert feature_scaling.error_floor(LAM, 40, 0.5) == 0


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_floor_at_any_learning_rate_is_the_rest_point_of_the_rate_equations(rate):
    trained, n = 12, 1 / 40
    # de_k/dα = -2ηλ_k e_k + η²λ_k n_k Σ_j λ_j e_j for the trained modes; the frozen ones drive them
    matrix = (-2 * rate * np.diag(LAM) + rate**2 * np.outer(LAM * n, LAM))[:trained, :trained]
    drive = rate**2 * LAM[:trained] * n * (LAM[trained:] @ np.full(40 - trained, n))
    rest = -np.linalg.solve(matrix, drive)
    expected = 0.5 * (LAM[:trained] @ rest + LAM[trained:].sum() * n)
    assert feature_scaling.error_floor(LAM, trained, rate) == pytest.approx(expected, rel=1e-11)
    assert feature_scaling.error_floor(LAM, trained, rate, multiplicity=10**7) == pytest.approx(expected, rel=1e-5)


def test_floor_at_finite_size_is_that_of_simulated_descent():
    size, trained, rate, runs = 24, 6, 0.3, 3000
    lam, rng = spectra.power_law(size, 0.75), np.random.default_rng(2)
    difference = rng.standard_normal((runs, size))
    late = []
    for step in range(60 * size):
        xi = rng.standard_normal((runs, size)) * np.sqrt(lam)
        delta = (difference * xi).sum(axis=1)
        difference[:, :trained] -= rate / size * delta[:, None] * xi[:, :trained]
        if step >= 50 * size and step % size == 0:
            late.append(0.5 * difference**2 @ lam / size)
    mean = np.mean(late, axis=0)
    error = mean.std() / np.sqrt(runs)
    finite, infinite = (feature_scaling.error_floor(lam, trained, rate, multiplicity=m) for m in (1, None))
    assert abs(mean.mean() - finite) < 4 * error < 0.1 * finite
    assert finite > infinite > feature_scaling.error_floor(lam, trained, 0.0)


def test_integrals_are_close_to_their_sums_and_the_printed_range_counts_modes_twice():
    lam = spectra.power_law(256, 0.75)
    for trained in (50, 200):
        exact = feature_scaling.error_floor(lam, trained, 0.0)
        assert feature_scaling.tail_floor(256, trained, 0.75) == pytest.approx(exact, rel=2e-4)
        assert 2e-3 < abs(feature_scaling.tail_floor(256, trained, 0.75, ends="endpoint") / exact - 1) < 0.05
    alpha = np.geomspace(0.3, 1e4, 9)
    exact = feature_scaling.generalization_error(alpha, lam, 50, 0.1)
    np.testing.assert_allclose(feature_scaling.power_law_error(alpha, 256, 50, 0.75, 0.1)[1:], exact[1:], rtol=0.01)
    twice = linear_student.power_law_error(alpha, 256, 0.75, 0.1) + feature_scaling.tail_floor(256, 50, 0.75)
    assert (twice / exact).max() > 1.3


def test_feature_exponent_is_minus_beta():
    trained = np.array([20, 40, 80])
    for beta in (0.5, 1.0):
        lam = spectra.power_law(20_000, beta)
        tails = np.array([lam[n:].sum() for n in trained]) / lam[0]
        tails = tails + 20_000.0**-beta / beta  # the finite end of the spectrum
        assert np.polyfit(np.log(trained + 0.5), np.log(tails), 1)[0] == pytest.approx(-beta, abs=0.01)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), trained=st.integers(1, 7))
def test_schur_floor_is_the_rest_error_of_gradient_flow_in_any_basis(seed, trained):
    lam = spectra.power_law(8, 0.6)
    frame = ortho_group.rvs(8, random_state=seed)
    sigma = frame @ np.diag(lam) @ frame.T
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
    np.testing.assert_allclose(feature_scaling.schur_floors(np.diag(lam))[trained], lam[trained:].sum() / 16, rtol=1e-12)


# --- bad input: every public function, every argument ----------------------------------------------------------------------

CALLS = {
    feature_scaling.generalization_error: {"alpha": [1.0], "eigenvalues": [1.5, 0.5], "trained": 1, "learning_rate": 0.1, "student_variance": 0.0},
    feature_scaling.error_floor: {"eigenvalues": [1.5, 0.5], "trained": 1, "learning_rate": 0.1, "student_variance": 0.0, "multiplicity": 2},
    feature_scaling.tail_floor: {"levels": 4, "trained": 2, "exponent": 0.5, "student_variance": 0.0, "ends": "midpoint"},
    feature_scaling.power_law_error: {"alpha": [1.0], "levels": 4, "trained": 2, "exponent": 0.5, "learning_rate": 0.1, "student_variance": 0.0},
    feature_scaling.schur_floors: {"covariance": np.eye(2), "student_variance": 0.0},
}
BAD = {
    "alpha": [[-1.0], [np.nan], [[1.0]], 1.0, "alpha", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None, [1.5, 0.6]],
    "trained": [0, -1, 5, "2", None, True],
    "learning_rate": [-1.0, np.nan, np.inf, "1", None, [0.1], True, 50.0],
    "student_variance": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
    "multiplicity": [bad for bad in COUNT if bad is not None],
    "levels": COUNT,
    "exponent": NUMBER,
    "ends": ["middle", None, 1],
    "covariance": [*MATRIX[:3], *MATRIX[3:], -np.eye(2), np.ones((2, 2))],
}
BAD["covariance"] = [bad for bad in BAD["covariance"] if bad is None or np.shape(bad) != (3, 3)]
CASES = [case for case in cases(CALLS, BAD) if not (case[1] == "learning_rate" and case[2] == 50.0 and case[0] is not feature_scaling.error_floor)]


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    function(**CALLS[function])


@settings(deadline=None, max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    refused(CALLS[case[0]], *case)

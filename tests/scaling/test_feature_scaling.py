"""lib.scaling.feature_scaling against sums, the rate equations, the recursion step by step, and simulated descent."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, cases, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.scaling import feature_scaling, linear_descent, linear_student, spectra

LAM = spectra.power_law(40, 0.75)


def test_all_trained_is_the_linear_student_and_late_times_leave_the_tail():
    alpha = np.array([0.0, 1.0, 50.0])
    full = feature_scaling.generalization_error(alpha, LAM, 40, 0.2, student_variance=0.3)
    np.testing.assert_allclose(
        full, linear_student.gradient_flow_error(alpha, LAM, 0.2, student_variance=0.3), rtol=1e-13
    )
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
    flat = np.log(256.5 / 50.5) / (2 * (1 / np.arange(1, 257)).sum())  # β -> 0: the integral of λ₊/k
    assert feature_scaling.tail_floor(256, 50, 1e-16) == pytest.approx(flat, rel=1e-13)
    twice = linear_student.power_law_error(alpha, 256, 0.75, 0.1) + feature_scaling.tail_floor(256, 50, 0.75)
    assert (twice / exact).max() > 1.3


def test_split_is_the_best_of_all_sizes_and_its_error_the_least():
    levels, rate, budget = 20_000, 0.01, np.array([1e4, 1e5])
    for beta in (0.5, 1.0):
        lam = spectra.power_law(levels, beta)
        best, least = feature_scaling.best_split(budget, levels, beta, rate, student_variance=0.5)
        for one, size, error in zip(budget, best, least):
            kept = np.arange(int(0.8 * size), int(1.2 * size))
            errors = [
                feature_scaling.generalization_error([one / n], lam, int(n), rate, student_variance=0.5)[0]
                for n in kept
            ]
            assert abs(kept[np.argmin(errors)] + 0.5 - size) < 0.01 * size + 1
            assert error == pytest.approx(min(errors), rel=3e-3)
    tiny, small = (feature_scaling.best_split(1e4, levels, beta, rate)[1] for beta in (1e-15, 1e-9))
    assert tiny == pytest.approx(small, rel=1e-8)
    with pytest.raises(ValueError, match="^budget must ask for no more than the 100 weights"):
        feature_scaling.best_split(1e7, 100, 0.5, 0.1)


def test_feature_exponent_is_minus_beta():
    trained = np.array([20, 40, 80])
    for beta in (0.5, 1.0):
        lam = spectra.power_law(20_000, beta)
        tails = np.array([lam[n:].sum() for n in trained]) / lam[0]
        tails = tails + 20_000.0**-beta / beta  # the finite end of the spectrum
        assert np.polyfit(np.log(trained + 0.5), np.log(tails), 1)[0] == pytest.approx(-beta, abs=0.01)


def brute_force(steps, lam, trained, rate, squares):
    """½ Σ λ_k c_k after each number of steps, by the recursion for c_k, one step after the other."""
    share, c, errors = rate * lam / lam.size, squares / lam.size, {}
    for step in range(max(steps) + 1):
        errors[step] = 0.5 * lam @ c
        driven = (1 - 2 * share + 2 * share**2) * c + share * (share @ c)
        c = np.concatenate([driven[:trained], c[trained:]])
    return np.array([errors[step] for step in steps])


@pytest.mark.parametrize(("trained", "rate"), [(1, 0.2), (7, 0.4), (11, 0.4), (12, 0.9), (7, 2.5)])
def test_finite_size_error_is_the_recursion_below_and_above_the_threshold(trained, rate):
    lam, random = 1.3 * spectra.power_law(12, 0.5), np.random.default_rng(4)
    squares, steps = random.exponential(size=(3, 12)), [0, 1, 5, 240]
    found = feature_scaling.finite_size_error(np.array(steps) / 12, lam, trained, rate, squares=squares)
    expected = [brute_force(steps, lam, trained, rate, start) for start in squares]
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    one = feature_scaling.finite_size_error(np.array(steps) / 12, lam, trained, rate, squares=squares[1])
    np.testing.assert_allclose(one, expected[1], rtol=1e-11)
    mean = feature_scaling.finite_size_error(np.array(steps) / 12, lam, trained, rate, student_variance=0.5)
    np.testing.assert_allclose(mean, brute_force(steps, lam, trained, rate, np.full(12, 1.5)), rtol=1e-11)


def test_finite_size_error_grows_step_by_step_at_the_threshold():
    # one trained component with a = 2/3: the matrix of a step is 1 - 2a + 3a² = 1, and every step adds the same
    found = feature_scaling.finite_size_error([0.0, 0.5, 1.0, 50.0], [1.5, 0.5], 1, 8 / 9)
    np.testing.assert_allclose(
        found, brute_force([0, 1, 2, 100], np.array([1.5, 0.5]), 1, 8 / 9, np.ones(2)), rtol=1e-12
    )
    assert found[3] - found[0] == pytest.approx(100 * (found[1] - found[0]), rel=1e-12)


def test_finite_size_error_has_the_limits_of_the_other_functions():
    alpha = np.array([0.0, 2.0, 30.0])
    full = feature_scaling.finite_size_error(alpha, LAM, 40, 0.5, student_variance=0.3)
    other = linear_student.finite_size_error(alpha, LAM, 0.5, student_variance=0.3)
    np.testing.assert_allclose(full, other, rtol=1e-11)
    floor = feature_scaling.finite_size_error([1e7], LAM, 10, 0.3, student_variance=0.3)[0]
    assert floor == pytest.approx(
        feature_scaling.error_floor(LAM, 10, 0.3, student_variance=0.3, multiplicity=1), rel=1e-12
    )
    flow = feature_scaling.generalization_error(alpha * 1e6, LAM, 10, 1e-6)
    gaps = [
        np.abs(feature_scaling.finite_size_error(alpha / rate, LAM, 10, rate) / flow - 1).max() for rate in (1e-4, 1e-6)
    ]
    flows = feature_scaling.generalization_error(alpha / 1e-4, LAM, 10, 1e-4)
    np.testing.assert_allclose(flows, flow, rtol=1e-12)  # a function of ηα
    assert gaps[1] < 1e-5 and gaps[0] / gaps[1] == pytest.approx(100, rel=0.02)  # first order in η


def test_finite_size_error_is_the_mean_of_simulated_descent():
    lam, squares = spectra.power_law(16, 0.75), np.linspace(0.5, 2, 16)
    start = np.tile(np.sqrt(squares), (4000, 1))
    runs = linear_descent.simulate(start, lam, 0.3, [1.0, 4.0, 16.0], 5, trained=5)
    exact = feature_scaling.finite_size_error(runs.times, lam, 5, 0.3, squares=squares)
    error = runs.generalization_error.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(runs.generalization_error.mean(axis=0) - exact) < 4 * error) and np.all(error < 0.02 * exact)


def test_what_finite_size_error_refuses_beyond_single_arguments():
    with pytest.raises(ValueError, match=r"^learning_rate must keep the error inside"):
        feature_scaling.finite_size_error([1e6], [1.5, 0.5], 1, 3.0)
    with pytest.raises(ValueError, match=r"^learning_rate must keep the matrix"):
        feature_scaling.finite_size_error([1.0], [1.5, 0.5], 1, 1e200)
    with pytest.raises(ValueError, match=r"^student_variance must be left at 0"):
        feature_scaling.finite_size_error([1.0], [1.5, 0.5], 1, 0.1, squares=[1.0, 1.0], student_variance=0.2)


# --- bad input: every public function, every argument

CALLS = {
    feature_scaling.generalization_error: {
        "alpha": [1.0],
        "eigenvalues": [1.5, 0.5],
        "trained": 1,
        "learning_rate": 0.1,
        "student_variance": 0.0,
    },
    feature_scaling.finite_size_error: {
        "alpha": [1.0],
        "eigenvalues": [1.5, 0.5],
        "trained": 1,
        "learning_rate": 0.1,
        "squares": [1.0, 1.0],
    },
    feature_scaling.error_floor: {
        "eigenvalues": [1.5, 0.5],
        "trained": 1,
        "learning_rate": 0.1,
        "student_variance": 0.0,
        "multiplicity": 2,
    },
    feature_scaling.tail_floor: {
        "levels": 4,
        "trained": 2,
        "exponent": 0.5,
        "student_variance": 0.0,
        "ends": "midpoint",
    },
    feature_scaling.best_split: {
        "budget": 10.0,
        "levels": 40,
        "exponent": 0.5,
        "learning_rate": 0.1,
        "student_variance": 0.0,
    },
    feature_scaling.power_law_error: {
        "alpha": [1.0],
        "levels": 4,
        "trained": 2,
        "exponent": 0.5,
        "learning_rate": 0.1,
        "student_variance": 0.0,
    },
}
BAD = {
    "budget": [0.0, [-1.0], [1.0, np.nan], "1", None],
    "alpha": [[-1.0], [np.nan], [[1.0]], -1.0, np.nan, True, "alpha", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None, [1.5, 0.6]],
    "trained": [0, -1, 5, "2", None, True],
    "learning_rate": [-1.0, np.nan, np.inf, "1", None, [0.1], True, 50.0],
    "student_variance": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
    "multiplicity": [bad for bad in COUNT if bad is not None],
    "levels": COUNT,
    "exponent": NUMBER,
    "ends": ["middle", None, 1],
    "squares": [[], [1.0], [1.0, -1.0], [1.0, np.nan], np.ones((2, 3)), np.ones((0, 2)), np.ones((1, 1, 2)), 1.0, "a"],
}


def is_fine(function, name, value):
    """50 is too fast for a floor only; a spectrum may have any mean for the error at finite size only."""
    too_fast = name == "learning_rate" and value == 50.0 and function is not feature_scaling.error_floor
    return too_fast or (name == "eigenvalues" and value == [1.5, 0.6] and function is feature_scaling.finite_size_error)


CASES = [case for case in cases(CALLS, BAD) if not is_fine(*case)]


@pytest.mark.parametrize("function", CALLS)
def test_the_good_calls_pass(function):
    function(**CALLS[function])


@settings(deadline=None, max_examples=len(CASES))
@given(st.sampled_from(CASES))
def test_bad_input_is_refused_by_name(case):
    refused(CALLS[case[0]], *case)

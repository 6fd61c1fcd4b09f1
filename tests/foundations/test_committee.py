"""lib.foundations.committee against Gaussian averages, Monte Carlo, an independent code, limits and symmetries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import erf

from lib.foundations import committee, gaussian, sampling, stability

SHAPES = [(1, 1), (2, 2), (3, 2), (2, 3)]
SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4))
SEEDS = st.integers(0, 10**6)


def overlaps(shape, seed):
    """Overlaps of random vectors in nine dimensions: nothing is small, nothing is symmetric."""
    z = np.random.default_rng(seed).standard_normal((sum(shape), 9))  # (K+M, 9)
    s = z @ z.T / 9
    k = shape[0]
    return s[:k, :k], s[:k, k:], s[k:, k:]


def joint(q, r, t):
    return np.block([[q, r], [r.T, t]])


def output_weights(shape):
    """δ = ζ - σ = Σ_a w_a g(z_a) for the stacked fields z = (x, y)."""
    k, m = shape
    return np.concatenate([np.full(k, -np.sqrt(m) / k), np.full(m, 1 / np.sqrt(m))])


def block(s, *index):
    return s[np.ix_(index, index)]


def drift_by_averages(q, r, t):
    """⟨δ g'(x_i) z_a⟩ for all a, as a sum of three-point averages: (K, K+M)."""
    s, w = joint(q, r, t), output_weights(r.shape)

    def entry(i, a):
        return sum(w[b] * gaussian.erf_i3(block(s, i, a, b)) for b in range(len(s)))

    return np.array([[entry(i, a) for a in range(len(s))] for i in range(len(q))])


def noise_by_averages(q, r, t):
    """⟨g'(x_i) g'(x_j) δ²⟩ as a double sum of four-point averages: (K, K)."""
    s, w = joint(q, r, t), output_weights(r.shape)

    def entry(i, j):
        return sum(w[a] * w[b] * gaussian.erf_i4(block(s, i, j, a, b)) for a in range(len(s)) for b in range(len(s)))

    return np.array([[entry(i, j) for j in range(len(q))] for i in range(len(q))])


# ---- the coefficients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_generalization_error_is_the_sum_of_two_point_averages(shape):
    s, w = joint(*overlaps(shape, 1)), output_weights(shape)
    expected = sum(w[a] * w[b] * gaussian.erf_i2(block(s, a, b)) for a in range(len(s)) for b in range(len(s))) / 2
    assert np.isclose(committee.generalization_error(*overlaps(shape, 1)), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_derivative_is_built_from_three_and_four_point_averages(shape):
    q, r, t = overlaps(shape, 2)
    k, m = shape
    rate, mean = 0.7 * np.sqrt(m) / k, drift_by_averages(q, r, t)
    noise = 0.7**2 * m / k**2 * noise_by_averages(q, r, t)
    dq, dr = committee.derivative(q, r, t, 0.7)
    np.testing.assert_allclose(dr, rate * mean[:, k:], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(dq, rate * (mean[:, :k] + mean[:, :k].T) + noise, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(committee.noise_matrix(q, r, t), noise_by_averages(q, r, t), rtol=1e-11)
    first_order, _ = committee.derivative(q, r, t, 0.7, second_order=False)
    np.testing.assert_allclose(dq - first_order, noise, rtol=1e-10)


def test_drift_coefficients_drive_the_overlaps():
    q, r, t = overlaps((3, 2), 3)
    a, g = committee.drift_coefficients(q, r, t)
    dq, dr = committee.derivative(q, r, t, 0.6, second_order=False)
    np.testing.assert_allclose(g, g.T, rtol=1e-14)
    np.testing.assert_allclose(dr, 0.2 * (a @ t - g @ r), rtol=1e-13)
    np.testing.assert_allclose(dq, 0.2 * (a @ r.T + r @ a.T - g @ q - q @ g), rtol=1e-12, atol=1e-16)


def test_error_and_noise_agree_with_monte_carlo():
    shape = (3, 2)
    q, r, t = overlaps(shape, 4)

    def sample(z):
        delta = erf(z / np.sqrt(2)) @ output_weights(shape)
        slope = np.sqrt(2 / np.pi) * np.exp(-(z[:, :3] ** 2) / 2)
        return np.column_stack([delta**2 / 2, slope[:, 0] * slope[:, 1] * delta**2, slope[:, 2] ** 2 * delta**2])

    estimate = sampling.monte_carlo_average(sample, joint(q, r, t), 400_000, rng=5)
    noise = committee.noise_matrix(q, r, t)
    z = (estimate.mean - [committee.generalization_error(q, r, t), noise[0, 1], noise[2, 2]]) / estimate.error
    assert np.all(np.abs(z) < 4)
    assert np.all(estimate.error < 0.005 * estimate.mean)


@given(SIZES, SEEDS)
@settings(max_examples=30)
def test_noise_is_positive_semidefinite_and_the_error_is_not_negative(shape, seed):
    state = overlaps(shape, seed)
    assert committee.generalization_error(*state) >= -1e-15
    assert np.linalg.eigvalsh(committee.noise_matrix(*state))[0] >= -1e-14


@given(SIZES, SEEDS)
@settings(max_examples=30)
def test_renaming_units_renames_the_equations(shape, seed):
    q, r, t = overlaps(shape, seed)
    rng = np.random.default_rng(seed)
    s, u = rng.permutation(shape[0]), rng.permutation(shape[1])
    dq, dr = committee.derivative(q, r, t, 0.5)
    moved_q, moved_r = committee.derivative(q[np.ix_(s, s)], r[np.ix_(s, u)], t[np.ix_(u, u)], 0.5)
    np.testing.assert_allclose(moved_q, dq[np.ix_(s, s)], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(moved_r, dr[np.ix_(s, u)], rtol=1e-10, atol=1e-13)


@given(st.integers(1, 4), SEEDS)
@settings(max_examples=20)
def test_the_teacher_itself_is_a_fixed_point_with_zero_error(size, seed):
    _, _, t = overlaps((size, size), seed)
    swap = np.random.default_rng(seed).permutation(size)
    q, r = t[np.ix_(swap, swap)], t[swap]
    assert abs(committee.generalization_error(q, r, t)) < 1e-14
    for rate in committee.derivative(q, r, t, 1.0):
        np.testing.assert_allclose(rate, 0, atol=1e-13)


def test_stacked_overlaps_give_stacked_errors():
    states = [overlaps((2, 3), seed) for seed in (7, 8)]
    t = states[0][2]
    q = np.stack([t[:2, :2], states[0][0]])
    r = np.stack([t[:2], states[0][1]])
    separate = [committee.generalization_error(q[k], r[k], t) for k in range(2)]
    np.testing.assert_allclose(committee.generalization_error(q, r, t), separate, rtol=1e-14)


# ---- trajectories ------------------------------------------------------------------------------------------

ORACLE = {
    "student_overlap": np.array([[1.0825068491e-6, -3.5423552200e-8], [-3.5423552200e-8, 9.7724838466e-7]]),
    "cross_overlap": np.array([[3.6800616299e-5, -9.2373161649e-5], [-2.3684576046e-5, 9.3751270533e-5]]),
    "teacher_overlap": np.array([[1.1119058107606, 0.0029198801665], [0.0029198801665, 1.0638325699156]]),
}


def test_an_independent_code_finds_the_same_error_to_seven_digits():
    """Of a program whose name was not recorded, with unit output weights: its η is half of ours, its ε_g twice."""
    path = committee.solve([0, 473.72], **ORACLE, learning_rate=1.0)
    assert f"{2 * path.generalization_error[-1]:.6e}" == "3.272848e-07"
    transposed = ORACLE | {"cross_overlap": ORACLE["cross_overlap"].T}
    other = committee.solve([473.72], **transposed, learning_rate=1.0)
    assert abs(2 * other.generalization_error[0] / 3.272848e-7 - 1) > 1e-3  # R has the student's index first


def test_the_error_keeps_its_digits_after_learning():
    """Against 6000 fourth-order steps in thirty digits; at the end nothing is left, and no noise either."""
    error = committee.solve([30, 60, 300, 400, 3000], [[0.25]], [[0.0]], [[1.0]], 1.0).generalization_error
    np.testing.assert_allclose(error[:2], [4.650007926e-6, 2.873766491e-9], rtol=1e-3)
    assert np.abs(error[2:]).max() < 1e-13


@pytest.mark.parametrize("shape", [(2, 2), (3, 2)])
def test_solve_agrees_with_another_integrator_on_summed_averages(shape):
    q, r, t = overlaps(shape, 11)
    k, m = shape
    rate = 0.8 * np.sqrt(m) / k

    def velocity(_, state):
        q, r = state[: k * k].reshape(k, k), state[k * k :].reshape(k, m)
        mean = rate * drift_by_averages(q, r, t)
        dq = mean[:, :k] + mean[:, :k].T + rate**2 * noise_by_averages(q, r, t)
        return np.concatenate([dq.ravel(), mean[:, k:].ravel()])

    start = np.concatenate([q.ravel(), r.ravel()])
    expected = solve_ivp(velocity, (0, 0.5), start, method="RK45", rtol=1e-5, atol=1e-7).y[:, -1]
    path = committee.solve([0.5], q, r, t, 0.8)
    found = np.concatenate([path.student_overlap[0].ravel(), path.cross_overlap[0].ravel()])
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.abs(found - start).max() > 0.05  # the state did move


def test_a_single_time_and_time_zero_are_allowed():
    q, r, t = overlaps((2, 2), 12)
    path = committee.solve([0.0], q, r, t, 0.5)
    np.testing.assert_array_equal(path.student_overlap[0], q)
    np.testing.assert_array_equal(path.cross_overlap[0], r)


def test_gradient_flow_knows_no_learning_rate():
    """Without the η² term only ηα matters."""
    q, r, t = overlaps((2, 2), 13)
    slow = committee.solve([0, 40], q, r, t, 0.1, second_order=False)
    fast = committee.solve([0, 4], q, r, t, 1.0, second_order=False)
    np.testing.assert_allclose(slow.student_overlap[1], fast.student_overlap[1], rtol=1e-7)


def test_the_joint_overlaps_stay_a_covariance():
    q, r, t = overlaps((3, 2), 14)
    path = committee.solve(np.linspace(0, 200, 41), q, r, t, 1.0)
    lowest = [np.linalg.eigvalsh(joint(a, b, t))[0] for a, b in zip(path.student_overlap, path.cross_overlap)]
    assert min(lowest) > -1e-9


# ---- bad input ---------------------------------------------------------------------------------------------

BAD_NUMBERS = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, "fast", None, 1j, [1.0, 2.0]])
STATE_FUNCTIONS = [
    committee.checked_overlaps,
    committee.generalization_error,
    committee.drift_coefficients,
    committee.noise_matrix,
]
DRIVEN = [
    committee.derivative,
    stability.jacobian,
    lambda q, r, t, rate, **flags: committee.solve([0, 1], q, r, t, rate, **flags),
]


def spoilt(state, which, how, seed):
    """The three overlaps with one of them made unusable."""
    state = [np.array(part) for part in state]
    spot = tuple(np.random.default_rng(seed).integers(n) for n in state[which].shape)
    if how in ("nan", "inf"):
        state[which][spot] = float(how)
    elif how == "shape":
        state[which] = np.zeros((state[which].shape[0], state[which].shape[1] + 1))
    elif how == "huge":
        state[which] = state[which] * 1e9
    else:
        state[which] = state[which].ravel()
    return state


@given(st.integers(0, 2), st.sampled_from(["nan", "inf", "shape", "flat", "huge"]), st.sampled_from(SHAPES), SEEDS)
@settings(max_examples=40)
def test_unusable_overlaps_are_named(which, how, shape, seed):
    name = ["student_overlap", "cross_overlap", "teacher_overlap"][which]
    state = spoilt(overlaps(shape, seed), which, how, seed)
    for function in STATE_FUNCTIONS:
        with pytest.raises(ValueError, match=name):
            function(*state)
    for function in DRIVEN:
        with pytest.raises(ValueError, match=name):
            function(*state, 0.5)


@given(st.sampled_from(SHAPES), SEEDS)
@settings(max_examples=20)
def test_overlaps_that_no_vectors_have_are_refused(shape, seed):
    q, r, t = overlaps(shape, seed)
    for function in STATE_FUNCTIONS:
        with pytest.raises(ValueError, match="cross_overlap.*positive semidefinite"):
            function(q, 20 * np.abs(r) + 20, t)
        with pytest.raises(ValueError, match="teacher_overlap must be positive semidefinite"):
            function(q, r, -t)
    if shape[0] > 1:
        q[0, 1] += 0.1
        with pytest.raises(ValueError, match="student_overlap must be symmetric"):
            committee.generalization_error(q, r, t)


@pytest.mark.parametrize("size", [1e5, 1.0, 1e-4, 1e-8])
def test_correlations_above_one_are_refused_however_small_the_student(size):
    for function in STATE_FUNCTIONS:
        with pytest.raises(ValueError, match="cross_overlap.*positive semidefinite"):
            function([[size]], [[3 * np.sqrt(size)]], [[1.0]])
        with pytest.raises(ValueError, match="cross_overlap.*positive semidefinite"):
            function(size * np.array([[1.0, 1.01], [1.01, 1.0]]), np.zeros((2, 1)), [[1.0]])
        function([[size]], [[np.sqrt(size)]], [[1.0]])
        function(np.full((2, 2), size), np.zeros((2, 1)), [[1.0]])


@pytest.mark.parametrize("start", [0.0, 1e-9, 1e-6])
def test_states_of_a_solved_trajectory_are_accepted(start):
    path = committee.solve(np.geomspace(1e-6, 100, 40), [[start]], [[np.sqrt(start)]], [[1.0]], 0.3, second_order=False)
    np.testing.assert_allclose(  # the student stays parallel to the teacher
        committee.generalization_error(path.student_overlap, path.cross_overlap, path.teacher_overlap),
        path.generalization_error,
    )


@given(BAD_NUMBERS)
@settings(max_examples=20)
def test_unusable_learning_rates_and_tolerances_are_named(bad):
    state = overlaps((2, 2), 1)
    for function in DRIVEN:
        with pytest.raises(ValueError, match="learning_rate must be"):
            function(*state, bad)
    with pytest.raises(ValueError, match="rtol must be"):
        committee.solve([1], *state, 0.5, rtol=bad)
    with pytest.raises(ValueError, match="atol must be"):
        committee.solve([1], *state, 0.5, atol=bad)


@given(st.sampled_from([[], [-1.0], [0.0, 0.0], [2.0, 1.0], [np.nan], [[1.0]], "soon"]))
@settings(max_examples=10)
def test_unusable_times_are_named(bad):
    with pytest.raises(ValueError, match="times must"):
        committee.solve(bad, *overlaps((2, 2), 1), 0.5)


@pytest.mark.parametrize("bad", [0, 1, "no", None])
def test_flags_are_true_or_false(bad):
    state = overlaps((2, 2), 1)
    for function in DRIVEN:
        with pytest.raises(ValueError, match="second_order must be True or False"):
            function(*state, 0.5, second_order=bad)
    with pytest.raises(ValueError, match="stacked must be True or False"):
        committee.checked_overlaps(*state, stacked=bad)


def test_an_integrator_that_gives_up_is_an_error(monkeypatch):
    class Failed:
        success, message = False, "step too small"

    monkeypatch.setattr(committee, "solve_ivp", lambda *args, **kwargs: Failed)
    with pytest.raises(RuntimeError, match="could not be integrated to 1: step too small"):
        committee.solve([1], *overlaps((2, 2), 1), 0.5)

"""lib.foundations.committee against Gaussian averages, Monte Carlo, independent codes, limits and symmetries."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import erf

from lib.foundations import committee, gaussian, sampling, stability
from lib.foundations.committee import Overlaps

SHAPES = [(1, 1), (2, 2), (3, 2), (2, 3)]
SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4))
SEEDS = st.integers(0, 10**6)
EYE = np.eye(2)


def cut(s, units):
    """The overlaps that a joint covariance (K+M, K+M) holds."""
    return Overlaps(s[:units, :units], s[:units, units:], s[units:, units:])


def overlaps(shape, seed):
    """Overlaps of random vectors in nine dimensions: nothing is small, nothing is symmetric."""
    z = np.random.default_rng(seed).standard_normal((sum(shape), 9))  # (K+M, 9)
    return cut(z @ z.T / 9, shape[0])


def joint(state):
    return np.block([[state.student, state.cross], [state.cross.T, state.teacher]])


def output_weights(shape):
    """δ = ζ - σ = Σ_a w_a g(z_a) for the stacked fields z = (x, y)."""
    k, m = shape
    return np.concatenate([np.full(k, -np.sqrt(m) / k), np.full(m, 1 / np.sqrt(m))])


def block(s, *index):
    return s[np.ix_(index, index)]


def drift_by_averages(state):
    """⟨δ g'(x_i) z_a⟩ for all a, as a sum of three-point averages: (K, K+M)."""
    s, w = joint(state), output_weights(state.cross.shape)

    def entry(i, a):
        return sum(w[b] * gaussian.erf_i3(block(s, i, a, b)) for b in range(len(s)))

    return np.array([[entry(i, a) for a in range(len(s))] for i in range(len(state.student))])


def noise_by_averages(state):
    """⟨g'(x_i) g'(x_j) δ²⟩ as a double sum of four-point averages: (K, K)."""
    s, w, k = joint(state), output_weights(state.cross.shape), len(state.student)

    def entry(i, j):
        return sum(w[a] * w[b] * gaussian.erf_i4(block(s, i, j, a, b)) for a in range(len(s)) for b in range(len(s)))

    return np.array([[entry(i, j) for j in range(k)] for i in range(k)])


# ---- the coefficients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_generalization_error_is_the_sum_of_two_point_averages(shape):
    state, w = overlaps(shape, 1), output_weights(shape)
    s = joint(state)
    expected = sum(w[a] * w[b] * gaussian.erf_i2(block(s, a, b)) for a in range(len(s)) for b in range(len(s))) / 2
    assert np.isclose(state.generalization_error, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_derivative_is_built_from_three_and_four_point_averages(shape):
    state = overlaps(shape, 2)
    k, m = shape
    rate, mean = 0.7 * np.sqrt(m) / k, drift_by_averages(state)
    noise = 0.7**2 * m / k**2 * noise_by_averages(state)
    dq, dr = state.derivative(0.7)
    np.testing.assert_allclose(dr, rate * mean[:, k:], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(dq, rate * (mean[:, :k] + mean[:, :k].T) + noise, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(state.noise_matrix, noise_by_averages(state), rtol=1e-11)
    np.testing.assert_allclose(dq - state.derivative(0.7, second_order=False)[0], noise, rtol=1e-10)


def test_drift_drives_the_overlaps():
    state = overlaps((3, 2), 3)
    a, g = state.drift()
    q, r, t = state.student, state.cross, state.teacher
    dq, dr = state.derivative(0.6, second_order=False)
    np.testing.assert_allclose(g, g.T, rtol=1e-14)
    np.testing.assert_allclose(dr, 0.2 * (a @ t - g @ r), rtol=1e-13)
    np.testing.assert_allclose(dq, 0.2 * (a @ r.T + r @ a.T - g @ q - q @ g), rtol=1e-12, atol=1e-16)


def test_error_and_noise_agree_with_monte_carlo():
    state = overlaps((3, 2), 4)

    def sample(z):
        delta = erf(z / np.sqrt(2)) @ output_weights((3, 2))
        slope = np.sqrt(2 / np.pi) * np.exp(-(z[:, :3] ** 2) / 2)
        return np.column_stack([delta**2 / 2, slope[:, 0] * slope[:, 1] * delta**2, slope[:, 2] ** 2 * delta**2])

    estimate = sampling.monte_carlo_average(sample, joint(state), 400_000, rng=5)
    noise = state.noise_matrix
    assert np.all(np.abs(estimate.sigmas([state.generalization_error, noise[0, 1], noise[2, 2]])) < 4)
    assert np.all(estimate.error < 0.005 * estimate.mean)


@given(SIZES, SEEDS)
@settings(max_examples=30)
def test_renaming_units_renames_the_equations_and_the_noise_is_positive(shape, seed):
    state, rng = overlaps(shape, seed), np.random.default_rng(seed)
    assert state.generalization_error >= -1e-15 and np.linalg.eigvalsh(state.noise_matrix)[0] >= -1e-14
    s, u = rng.permutation(shape[0]), rng.permutation(shape[1])
    dq, dr = state.derivative(0.5)
    other = Overlaps(state.student[np.ix_(s, s)], state.cross[np.ix_(s, u)], state.teacher[np.ix_(u, u)])
    moved_q, moved_r = other.derivative(0.5)
    np.testing.assert_allclose(moved_q, dq[np.ix_(s, s)], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(moved_r, dr[np.ix_(s, u)], rtol=1e-10, atol=1e-13)


@given(st.integers(1, 4), SEEDS)
@settings(max_examples=20)
def test_the_teacher_itself_is_a_fixed_point_with_zero_error(size, seed):
    t, swap = overlaps((size, size), seed).teacher, np.random.default_rng(seed).permutation(size)
    state = Overlaps(t[np.ix_(swap, swap)], t[swap], t)
    assert abs(state.generalization_error) < 1e-14
    for rate in state.derivative(1.0):
        np.testing.assert_allclose(rate, 0, atol=1e-13)


def test_a_stack_has_errors_and_no_equations():
    one = overlaps((2, 3), 7)
    two = Overlaps(one.teacher[:2, :2], one.teacher[:2], one.teacher)
    both = Overlaps(
        *(np.stack([getattr(state, part) for state in (one, two)]) for part in ("student", "cross")), one.teacher
    )
    expected = [one.generalization_error, two.generalization_error]
    np.testing.assert_allclose(both.generalization_error, expected, rtol=1e-14)
    for call in (both.drift, lambda: both.solve(1.0, learning_rate=0.5), lambda: both.jacobian(0.5)):
        with pytest.raises(ValueError, match="^student must be one matrix"):
            call()


# ---- trajectories ------------------------------------------------------------------------------------------

ORACLE = {
    "student": np.array([[1.0825068491e-6, -3.5423552200e-8], [-3.5423552200e-8, 9.7724838466e-7]]),
    "cross": np.array([[3.6800616299e-5, -9.2373161649e-5], [-2.3684576046e-5, 9.3751270533e-5]]),
    "teacher": np.array([[1.1119058107606, 0.0029198801665], [0.0029198801665, 1.0638325699156]]),
}


def test_an_independent_code_finds_the_same_error_to_seven_digits():
    """Of a program whose name was not recorded, with unit output weights: its η is half of ours, its ε_g twice."""
    path = Overlaps(**ORACLE).solve([0, 473.72], learning_rate=1.0)
    assert f"{2 * path.generalization_error[-1]:.6e}" == "3.272848e-07"
    other = Overlaps(**ORACLE | {"cross": ORACLE["cross"].T}).solve(473.72, learning_rate=1.0)
    assert abs(2 * other.generalization_error / 3.272848e-7 - 1) > 1e-3  # R has the student's index first


def test_the_error_keeps_its_digits_after_learning():
    """Against 6000 fourth-order steps in thirty digits; at the end nothing is left, and no noise either."""
    error = Overlaps([[0.25]], [[0.0]], [[1.0]]).solve([30, 60, 300, 400, 3000], learning_rate=1.0).generalization_error
    np.testing.assert_allclose(error[:2], [4.650007926e-6, 2.873766491e-9], rtol=1e-3)
    assert np.abs(error[2:]).max() < 1e-13


@pytest.mark.parametrize("learning_rate", [0.5, 20.0])
def test_rest_is_reached_at_any_tolerance(learning_rate):
    """At the limit of its stability an integrator leaves errors as large as the tolerance."""
    times = np.array([400, 800, 2000]) / learning_rate
    path = Overlaps([[0.25]], [[0.0]], [[1.0]]).solve(
        times, learning_rate=learning_rate, second_order=False, rtol=1e-3, atol=1e-6
    )
    assert np.abs(path.generalization_error).max() < 1e-13


@pytest.mark.parametrize("shape", [(2, 2), (3, 2)])
def test_solve_agrees_with_another_integrator_on_summed_averages(shape):
    state = overlaps(shape, 11)
    k, m = shape
    rate = 0.8 * np.sqrt(m) / k

    def velocity(_, vector):
        now = Overlaps(vector[: k * k].reshape(k, k), vector[k * k :].reshape(k, m), state.teacher)
        mean = rate * drift_by_averages(now)
        dq = mean[:, :k] + mean[:, :k].T + rate**2 * noise_by_averages(now)
        return np.concatenate([dq.ravel(), mean[:, k:].ravel()])

    start = np.concatenate([state.student.ravel(), state.cross.ravel()])
    expected = solve_ivp(velocity, (0, 0.5), start, method="RK45", rtol=1e-5, atol=1e-7).y[:, -1]
    path = state.solve(0.5, learning_rate=0.8)
    found = np.concatenate([path.student_overlap.ravel(), path.cross_overlap.ravel()])
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.abs(found - start).max() > 0.05  # the state did move


def test_a_single_time_has_no_axis_and_time_zero_is_the_start():
    state = overlaps((2, 2), 12)
    path, many = state.solve(0, learning_rate=0.5), state.solve([0.0, 1.0], learning_rate=0.5)
    np.testing.assert_array_equal(path.student_overlap, state.student)
    np.testing.assert_array_equal(path.cross_overlap, state.cross)
    assert (path.times, path.generalization_error) == (0.0, many.generalization_error[0])


def test_gradient_flow_knows_no_learning_rate():
    """Without the η² term only ηα matters."""
    state = overlaps((2, 2), 13)
    slow, fast = (state.solve(4 / rate, learning_rate=rate, second_order=False) for rate in (0.1, 1.0))
    np.testing.assert_allclose(slow.student_overlap, fast.student_overlap, rtol=1e-7)


@pytest.mark.parametrize("start", [0.0, 1e-9, 1e-6])
def test_states_of_a_solved_trajectory_are_a_covariance(start):
    state = Overlaps([[start]], [[np.sqrt(start)]], [[1.0]])  # the student stays parallel to the teacher
    path = state.solve(np.geomspace(1e-6, 100, 40), learning_rate=0.3, second_order=False)
    np.testing.assert_allclose(path.overlaps.generalization_error, path.generalization_error)


def test_an_integrator_that_gives_up_is_an_error(monkeypatch):
    class Failed:
        success, message = False, "step too small"

    monkeypatch.setattr(committee, "solve_ivp", lambda *args, **kwargs: Failed)
    with pytest.raises(RuntimeError, match="could not be integrated to 1: step too small"):
        overlaps((2, 2), 1).solve([1], learning_rate=0.5)


# ---- linear response and fixed points ----------------------------------------------------------------------


def precise_velocity(s, units, rate):
    """dQ/dα (upper triangle) and dR/dα in 50 digits, by three- and four-point averages of the joint covariance s."""
    size, pi, sqrt = len(s), mpmath.pi, mpmath.sqrt
    teachers = size - units
    w = [-sqrt(teachers) / units] * units + [1 / sqrt(teachers)] * teachers

    def third(i, a, b):  # ⟨g'(z_i) z_a g(z_b)⟩
        c = 1 + s[i][i]
        return 2 / pi * (s[a][b] * c - s[i][a] * s[i][b]) / (c * sqrt(c * (1 + s[b][b]) - s[i][b] ** 2))

    def fourth(i, j, a, b):  # ⟨g'(z_i) g'(z_j) g(z_a) g(z_b)⟩
        ci, cj, cross = 1 + s[i][i], 1 + s[j][j], s[i][j]
        volume = ci * cj - cross**2

        def tilted(x, y):
            mixed = s[i][x] * s[j][y] + s[j][x] * s[i][y]
            return s[x][y] - (cj * s[i][x] * s[i][y] + ci * s[j][x] * s[j][y] - cross * mixed) / volume

        return 4 / pi**2 / sqrt(volume) * mpmath.asin(tilted(a, b) / sqrt((1 + tilted(a, a)) * (1 + tilted(b, b))))

    factor, every = rate * sqrt(teachers) / units, range(size)
    mean = [[factor * sum(w[b] * third(i, a, b) for b in every) for a in every] for i in range(units)]
    upper = [(i, j) for i in range(units) for j in range(i, units)]
    noise = [sum(w[a] * w[b] * fourth(i, j, a, b) for a in every for b in every) for i, j in upper]
    student = [mean[i][j] + mean[j][i] + factor**2 * e for (i, j), e in zip(upper, noise)]
    return student + [mean[i][n] for i in range(units) for n in range(units, size)]


def precise_jacobian(s, units, rate):
    s, h, columns = [[mpmath.mpf(x) for x in row] for row in s.tolist()], mpmath.mpf(10) ** -20, []
    upper = [(i, j) for i in range(units) for j in range(i, units)]
    for a, b in upper + [(i, n) for i in range(units) for n in range(units, len(s))]:
        ends = []
        for sign in (1, -1):
            moved = [list(row) for row in s]
            moved[a][b] = moved[b][a] = s[a][b] + sign * h
            ends.append(precise_velocity(moved, units, rate))
        columns.append([float((up - down) / (2 * h)) for up, down in zip(*ends)])
    return np.array(columns).T


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("aligned", [False, True])
def test_jacobian_keeps_its_promise_at_every_size_of_the_overlaps(size, aligned):
    z = np.random.default_rng(4).standard_normal((4, 9))
    z = z[:1] + 1e-3 * z if aligned else z
    z *= np.sqrt(0.999 * size) / np.linalg.norm(z, axis=1, keepdims=True)
    s = (z @ z.T + (z @ z.T).T) / 2
    with mpmath.workdps(50):
        wanted = precise_jacobian(s, 2, 0.5)
    assert np.abs(cut(s, 2).jacobian(0.5) - wanted).max() <= 1e-15 * (1 + size) ** 2 * np.abs(wanted).max()


@pytest.mark.parametrize("units, teachers, height, stable", [(2, 3, 5.0e-3, False), (3, 2, 6.7e-5, True)])
def test_fixed_point_is_where_a_long_integration_ends(units, teachers, height, stable):
    start = Overlaps(0.1 * np.eye(units), 0.1 * np.eye(units, teachers) + 0.01, np.eye(teachers) + 0.1)
    rest, path = start.fixed_point(0.5), start.solve([1000, 30000], learning_rate=0.5, rtol=1e-11)
    np.testing.assert_allclose(rest.student, path.student_overlap[1], atol=1e-9)
    np.testing.assert_allclose(rest.cross, path.cross_overlap[1], atol=1e-9)
    assert np.isclose(rest.generalization_error, path.generalization_error[1], rtol=1e-7)
    assert 0.5 * height < rest.generalization_error < 2 * height
    assert np.abs(rest.cross - path.cross_overlap[0]).max() > 1e-8  # the search did more than the relaxation
    assert (rest.growth_rate(0.5) < 0) == stable  # an even start of two units that imitate three ends on a saddle


def test_fixed_point_of_an_uneven_start_is_the_attractor():
    even = np.array([[0.1, 0.0, 0.0], [0.0, 0.1, 0.0]])
    start = Overlaps(0.1 * EYE, even + [[0, 0, 0.1], [0, 0, 0]], np.eye(3))
    rest = start.fixed_point(0.5, relaxation_time=1e4)
    np.testing.assert_allclose(rest.cross, start.solve(3e4, learning_rate=0.5, rtol=1e-9).cross_overlap, atol=1e-9)
    saddle = Overlaps(0.1 * EYE, even, np.eye(3)).fixed_point(0.5)
    assert rest.growth_rate(0.5) < 0 < saddle.growth_rate(0.5)
    assert 0.998 < rest.generalization_error / saddle.generalization_error < 0.9995


def test_fixed_point_knows_perfect_learning_and_the_plateau():
    rest = Overlaps(0.1 * EYE, 0.1 * EYE + 0.01, EYE).fixed_point(0.5, relaxation_time=200)
    np.testing.assert_allclose([rest.student, rest.cross], [EYE, EYE], atol=1e-9)
    assert np.isclose(rest.growth_rate(0.5), max(np.array(stability.asymptotic_rates(2, 0.5)) / [1, 2]), rtol=1e-6)
    even = Overlaps(np.full((2, 2), 0.1), np.full((2, 2), 0.1), EYE)
    stuck, plateau = even.fixed_point(0.5, second_order=False, relaxation_time=200), stability.Plateau(EYE).overlaps
    np.testing.assert_allclose([stuck.student, stuck.cross], [plateau.student, plateau.cross], atol=1e-9)
    expected = stability.Plateau(EYE).escape_rates(0.5)[0]
    assert np.isclose(stuck.growth_rate(0.5, second_order=False), expected, rtol=1e-6)


def test_fixed_point_gives_up_where_learning_is_unstable():
    with pytest.raises(RuntimeError):
        Overlaps([[0.5]], [[0.5]], [[1.0]]).fixed_point(1e4, relaxation_time=5)


# ---- overlaps that no vectors have -------------------------------------------------------------------------


def test_matrices_that_do_not_fit_each_other_are_refused_by_name():
    state = overlaps((2, 3), 1)
    good = {"student": state.student, "cross": state.cross, "teacher": state.teacher}
    lopsided = state.student + [[0, 0.1], [0, 0]]
    for name, bad, reason in [
        ("student", np.zeros((2, 3)), "hold square matrices"), ("student", lopsided, "be symmetric"),
        ("cross", state.cross.T, r"have shape \(2, 3\), student's index first"),
        ("cross", 20 * np.abs(state.cross) + 20, "be positive semidefinite"),
        ("student", 0.25, r"hold square matrices \(K, K\), \[\[Q\]\] for one unit"),
        ("teacher", 1.0, r"have two axes, got a single number: put it into a list, \[\[1.0\]\]"),
        ("teacher", np.eye(2), "have shape"), ("teacher", -state.teacher, "be positive semidefinite"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f".* must {reason}"):
            Overlaps(**good | {name: bad})


@pytest.mark.parametrize("size", [1e5, 1.0, 1e-4, 1e-8])
def test_correlations_above_one_are_refused_however_small_the_student(size):
    for student, cross in [
        ([[size]], [[3 * np.sqrt(size)]]), (size * np.array([[1.0, 1.01], [1.01, 1.0]]), np.zeros((2, 1)))
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=r"^the matrix \[\[student, cross\], .* must be positive semidefinite"):
            Overlaps(student, cross, [[1.0]])
    Overlaps([[size]], [[np.sqrt(size)]], [[1.0]])
    Overlaps(np.full((2, 2), size), np.zeros((2, 1)), [[1.0]])

"""lib.scaling.structured against averages, the hierarchy of powers, a general integrator, and the isotropic theory."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from lib.foundations import gaussian
from lib.foundations.committee import Overlaps
from lib.scaling import _arguments, _collocation, _frozen, plateau, spectra, structured

LAM = spectra.power_law(5, 0.75)


def start(levels, units, teachers, seed=1, size=60, variance=0.2):
    return spectra.random_overlaps([size] * levels, units, teachers, seed, student_variance=variance)


def covariance(blocks, first, second, third):
    """Covariance of the three fields z_first, z_second projected on the eigenspace, z_third."""
    joint, projected = blocks
    c = np.array(
        [
            [joint[first, first], projected[first, second], joint[first, third]],
            [0, projected[second, second], projected[second, third]],
            [0, 0, joint[third, third]],
        ]
    )
    return np.triu(c) + np.triu(c, 1).T


@pytest.mark.parametrize("units, teachers", [(2, 2), (3, 2), (1, 3)])
def test_first_order_is_a_sum_of_three_point_averages(units, teachers):
    q, r, t = start(5, units, teachers)
    rate, size = 0.7, units + teachers
    blocks = np.concatenate([np.concatenate([q, r], 2), np.concatenate([np.swapaxes(r, 1, 2), t], 2)], 1)
    joint = np.tensordot(LAM, blocks, axes=1)
    dq, dr = structured.derivative(q, r, t, LAM, rate, second_order=False)
    for k in (0, 4):
        pair = joint, LAM[k] * blocks[k]
        drift = np.zeros((units, size))
        for i in range(units):
            for c in range(size):
                pull = sum(gaussian.erf_i3(covariance(pair, i, c, units + m)) for m in range(teachers))
                drag = sum(gaussian.erf_i3(covariance(pair, i, c, j)) for j in range(units))
                drift[i, c] = rate / units * (pull - teachers / units * drag)
        np.testing.assert_allclose(dr[k], drift[:, units:], rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(dq[k], drift[:, :units] + drift[:, :units].T, rtol=1e-10, atol=1e-14)


def test_noise_is_shared_out_by_eigenvalue_and_multiplicity():
    q, r, t = start(3, 2, 3)
    lam, counts = np.array([2.0, 1.0, 0.5]), np.array([1.0, 2.0, 4.0])
    lam = lam / (counts @ lam / 7)
    with_noise, without = (
        structured.derivative(q, r, t, lam, 0.7, multiplicities=counts, second_order=s)[0] for s in (True, False)
    )
    e = Overlaps(*(structured.fields(part, lam) for part in (q, r, t))).noise_matrix
    np.testing.assert_allclose(with_noise - without, 0.49 * 3 / 4 * (lam * counts / 7)[:, None, None] * e, rtol=1e-9)


@pytest.mark.parametrize("second_order", [True, False])
def test_the_hierarchy_of_powers_closed_by_cayley_and_hamilton_has_the_same_solution(second_order):
    levels, rate, end = 4, 0.6, 5.0
    lam = spectra.power_law(levels, 0.5)
    q, r, t = start(levels, 2, 2)
    closing = -np.poly(lam)[:0:-1]  # Q^(L) = Σ_l closing_l Q^(l)
    powers = lam[None, :] ** np.arange(levels)[:, None]  # (L, L)
    teacher = np.tensordot(np.vstack([powers, lam**levels]), t, axes=1)  # (L + 1, M, M)
    nu = np.array([np.mean(lam ** (order + 1)) for order in range(levels)])

    def velocity(_, state):
        student, cross = state[: 4 * levels].reshape(levels, 2, 2), state[4 * levels :].reshape(levels, 2, 2)
        seen = Overlaps(student[1], cross[1], teacher[1])
        a, g = seen.drift()
        next_q = np.concatenate([student[1:], np.tensordot(closing, student, axes=1)[None]])
        next_r = np.concatenate([cross[1:], np.tensordot(closing, cross, axes=1)[None]])
        half = a @ np.swapaxes(next_r, 1, 2) - g @ next_q
        dq = rate / 2 * (half + np.swapaxes(half, 1, 2))
        if second_order:
            dq = dq + rate**2 / 2 * nu[:, None, None] * seen.noise_matrix
        return np.concatenate([dq.ravel(), (rate / 2 * (a @ teacher[1:] - g @ next_r)).ravel()])

    begin = np.concatenate([np.tensordot(powers, part, axes=1).ravel() for part in (q, r)])
    state = solve_ivp(velocity, (0, end), begin, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    path = structured.solve([end], q, r, t, lam, rate, second_order=second_order, tolerance=1e-7)
    np.testing.assert_allclose(path.student_overlap[0].ravel(), state[4:8], atol=1e-6)
    np.testing.assert_allclose(path.cross_overlap[0].ravel(), state[4 * levels + 4 : 4 * levels + 8], atol=1e-6)


def test_one_eigenvalue_is_the_isotropic_theory_and_equal_eigenvalues_may_be_merged():
    times = [0.0, 1.0, 30.0]
    q, r, t = start(3, 2, 2)
    lam = np.array([1.5, 0.75, 0.75])
    apart = structured.solve(times, q, r, t, lam, 0.5, tolerance=1e-6)
    merged = [np.stack([part[0], part[1] + part[2]]) for part in (q, r, t)]
    together = structured.solve(times, *merged, lam[:2], 0.5, multiplicities=[1, 2], tolerance=1e-6)
    np.testing.assert_allclose(together.generalization_error, apart.generalization_error, rtol=1e-9)
    one = structured.solve(times, q[:1], r[:1], t[:1], [1.0], 0.5, tolerance=1e-6)
    isotropic = Overlaps(q[0], r[0], t[0]).solve(times, 0.5)
    np.testing.assert_allclose(one.generalization_error, isotropic.generalization_error, rtol=2e-5)
    np.testing.assert_allclose(one.student_overlap, isotropic.student_overlap, atol=1e-5)


def reference(times, q, r, t, lam, rate, second_order=True):
    """Q^k and R^k at the times, each (n, L, ., .), from the raw equations; a general integrator stops at each."""
    shape, at = q.shape, q.size
    fractions = np.full(len(lam), 1 / len(lam))

    def velocity(_, state):
        overlaps = state[:at].reshape(shape), state[at:].reshape(r.shape)
        return np.concatenate(
            [part.ravel() for part in _frozen.velocity(*overlaps, t, lam, fractions, rate, second_order)]
        )

    state, now, rows = np.concatenate([q.ravel(), r.ravel()]), 0.0, []
    for time in times:
        if time > now:
            state = solve_ivp(velocity, (now, time), state, method="DOP853", rtol=1e-13, atol=1e-16).y[:, -1]
        now = time
        rows.append(state)
    rows = np.array(rows)
    return rows[:, :at].reshape(-1, *shape), rows[:, at:].reshape(-1, *r.shape)


def fixed_steps(flow, state, end, steps):
    """The state after that many equal steps of the method, without step control."""
    seen, before = flow.seen(state), None
    inverse = np.eye(2 * seen.size)
    for _ in range(steps):
        guess = (
            np.stack([seen, seen])
            if before is None
            else np.stack([_collocation.along(before, place) for place in (1.5, 2.0)])
        )
        step = _collocation.consistent_step(flow, state, seen, guess, end / steps, inverse, 1e-11)
        state, seen, before = step.end, step.seen[2], step.seen
    return state


@pytest.mark.parametrize("second_order", [True, False])
def test_the_method_is_of_fourth_order(second_order):
    lam, rate, end = spectra.power_law(5, 1.5), 0.2, 20.0
    q, r, t = start(5, 2, 4, size=120, variance=0.5)
    wanted = [part[0] for part in reference([end], q, r, t, lam, rate, second_order)]
    flow = _frozen.Flow(t, lam, np.full(5, 0.2), rate, second_order, 2)
    steps = np.array([20, 40, 80, 160])
    errors = [max(np.abs(u - v).max() for u, v in zip(fixed_steps(flow, (q, r), end, n), wanted)) for n in steps]
    assert np.polyfit(np.log(end / steps), np.log(errors), 1)[0] == pytest.approx(4.0, abs=0.35)


CASES = {  # levels, β, K, M, η, last time, variance of the start, second order
    "plateau": (8, 0.5, 2, 2, 0.1, 1e3, 1e-4, True),
    "late phase": (8, 0.5, 2, 2, 0.5, 1e3, 1e-4, True),
    "too many units": (20, 0.75, 3, 2, 0.5, 300.0, 0.2, True),
    "too few units": (5, 1.5, 2, 4, 0.2, 300.0, 0.5, True),
    "gradient flow": (6, 0.5, 3, 3, 0.5, 2e3, 1e-4, False),
}


@pytest.mark.parametrize("name", CASES)
def test_the_tolerance_bounds_overlaps_and_error_alike(name):
    levels, beta, units, teachers, rate, end, variance, second_order = CASES[name]
    lam, times = spectra.power_law(levels, beta), np.append(0.0, np.geomspace(1.0, end, 8))
    q, r, t = spectra.random_overlaps(np.full(levels, 600 // levels), units, teachers, rng=1, student_variance=variance)
    students, crosses = reference(times, q, r, t, lam, rate, second_order)  # (n, L, K, K), (n, L, K, M)
    fields = [np.tensordot(part, lam, axes=(1, 0)) for part in (students, crosses)]
    error = Overlaps(*fields, structured.fields(t, lam)).generalization_error
    size = max(1.0, fields[0].max())
    for tolerance in (1e-3, 1e-5, 1e-8):
        path = structured.solve(times, q, r, t, lam, rate, second_order=second_order, tolerance=tolerance)
        np.testing.assert_allclose(path.generalization_error, error, rtol=1.5 * tolerance, atol=1e-12)
        for found, wanted in zip((path.student_overlap, path.cross_overlap), fields):
            np.testing.assert_allclose(found, wanted, atol=tolerance * size, rtol=0)
        for found, wanted in zip((path.student_history, path.cross_history), (students, crosses)):
            np.testing.assert_allclose(levels * found, levels * wanted, atol=tolerance * size, rtol=0)
        assert (path.student_resolved == path.student_history[-1]).all() and (
            path.cross_resolved == path.cross_history[-1]
        ).all()


def test_reported_times_do_not_change_the_way_and_a_number_is_one_time():
    q, r, t = start(5, 2, 2)
    few, many = (
        structured.solve(times, q, r, t, LAM, 0.5, tolerance=1e-6) for times in ([7.0, 30.0], np.linspace(1, 30, 59))
    )
    np.testing.assert_allclose(few.generalization_error, many.generalization_error[[12, 58]], rtol=1e-12)
    one = structured.solve(30.0, q, r, t, LAM, 0.5, tolerance=1e-6)
    assert one.times.shape == (1,) and one.student_history.shape == (1, 5, 2, 2)
    np.testing.assert_allclose(one.generalization_error[0], few.generalization_error[1], rtol=1e-12)
    np.testing.assert_array_equal(
        structured.solve(np.array(30.0), q, r, t, LAM, 0.5, tolerance=1e-6).cross_overlap, one.cross_overlap
    )


def test_the_late_phase_does_not_ring_where_coefficients_from_the_past_would(monkeypatch):
    units, lam, rate = 4, spectra.power_law(8, 0.5), 0.5
    t = np.tile(np.eye(units) / 8, (8, 1, 1))
    flow = _frozen.Flow(t, lam, np.full(8, 1 / 8), rate, False, units)
    rest = flow.seen((t, t))

    def frozen(state, seen, length):
        return flow.stages(state, np.stack([flow.coefficients(seen)] * 3), length)[1]

    def settled(seen):  # what is seen when all eigenspaces have settled at these a and G
        return flow.seen(frozen((t, t), seen, 1e9))

    tiny = 1e-6
    turns = []  # the matrix Q_ij = Q_ji: its directions come in symmetric pairs
    for unit in np.eye(rest.size):
        both = np.concatenate([(unit[:16].reshape(4, 4) + unit[:16].reshape(4, 4).T).ravel() / 2, unit[16:]])
        turns.append((settled(rest + tiny * both) - settled(rest - tiny * both)) / (2 * tiny))
    values, vectors = np.linalg.eig(np.array(turns).T)
    assert values.real.min() < -1.5  # the control: a feedback that overshoots

    lengths = []
    once = _collocation.consistent_step

    def recorded(*arguments):
        lengths.append(arguments[4])
        return once(*arguments)

    monkeypatch.setattr(_collocation, "consistent_step", recorded)
    mix = np.eye(units) + 1e-3 * np.random.default_rng(0).normal(size=(8, units, units))
    path = structured.solve(
        np.linspace(0, 4e3, 9), mix @ t @ np.swapaxes(mix, 1, 2), mix @ t, t, lam, rate, second_order=False
    )
    followed = path.generalization_error > 1e-13
    settling = units / (rate * lam[0])  # the fastest eigenspace needs this time
    assert len(lengths) < 0.2 * 4e3 / settling and (np.diff(path.generalization_error[followed]) < 0).all()
    length = 20 * settling * lam[0] / lam[-1]  # all eigenspaces settle

    overshoot = vectors[:, values.real.argmin()].real
    old = new = (
        t + 1e-6 * overshoot[:16].reshape(4, 4) / lam.sum(),
        t + 1e-6 * overshoot[16:].reshape(4, 4) / lam.sum(),
    )
    first = np.abs(flow.seen(old) - rest).max()
    for _ in range(4):
        old = frozen(old, flow.seen(frozen(old, flow.seen(old), length / 2)), length)  # the exponential midpoint rule
        new = fixed_steps(flow, new, length, 1)
    assert np.abs(flow.seen(old) - rest).max() > 3 * first
    assert np.abs(flow.seen(new) - rest).max() < 0.3 * first


def test_overlaps_stay_a_covariance_and_errors_never_turn_negative():
    lam = spectra.power_law(200, 1.0)
    q, r, t = start(200, 3, 2, size=5, variance=1e-4)
    path = structured.solve([1.0, 100.0, 1e4], q, r, t, lam, 0.3, tolerance=1e-3)
    joint = np.concatenate(
        [
            np.concatenate([path.student_resolved, path.cross_resolved], 2),
            np.concatenate([np.swapaxes(path.cross_resolved, 1, 2), t], 2),
        ],
        1,
    )
    assert np.linalg.eigvalsh(joint).min() > -1e-14
    assert (path.generalization_error > 0).all() and (np.diff(path.generalization_error) < 0).all()


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 1000), shift=st.integers(1, 2))
def test_relabelled_units_move_alike(seed, shift):
    q, r, t = start(5, 3, 2, seed)
    order = np.roll(np.arange(3), shift)
    dq, dr = structured.derivative(q, r, t, LAM, 0.4)
    dq_new, dr_new = structured.derivative(q[:, order][:, :, order], r[:, order], t, LAM, 0.4)
    np.testing.assert_allclose(dq_new, dq[:, order][:, :, order], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(dr_new, dr[:, order], rtol=1e-9, atol=1e-14)


def test_perfect_learning_is_a_fixed_point_and_a_step_that_shrinks_without_end_is_reported(monkeypatch):
    _, _, t = start(5, 2, 2)
    dq, dr = structured.derivative(t, t, t, LAM, 0.4)
    assert max(np.abs(dq).max(), np.abs(dr).max()) < 1e-14
    monkeypatch.setattr(_collocation, "SHORTEST", 1.0)
    with pytest.raises(RuntimeError, match="could not be followed"):
        structured.solve([1e3], *start(5, 1, 1), LAM, 0.5)


def test_a_plateau_ends_at_the_right_time_however_alike_the_units_are():
    """The step may not jump over the growth of differences that are far below the tolerance of the overlaps."""
    _, _, t = start(5, 1, 3, size=4000)
    teacher, second = (np.tensordot(LAM**power, t, axes=1) for power in (1, 2))
    point = plateau.fixed_point(teacher)
    mix = np.tile(point.weights, (5, 3, 1))  # (L, K, M): in eigenspace k the students are mix_k B
    mix[2, 0] += [1e-10, -2e-10, 3e-10]
    r, q = mix @ t, mix @ t @ np.swapaxes(mix, 1, 2)  # (L, K, M), (L, K, K)
    fastest = plateau.escape_rates(teacher, second, 0.5)[0]
    times = np.array([0.0, 8.0, 12.0]) / fastest
    path = structured.solve(times, q, r, t, LAM, 0.5, second_order=False)
    apart = np.abs(path.cross_overlap - path.cross_overlap.mean(axis=1, keepdims=True)).max(axis=(1, 2))
    assert apart[-1] < 1e-3
    assert np.log(apart[2] / apart[1]) == pytest.approx(4.0, rel=2e-2)


def test_correlations_above_one_are_refused_in_the_smallest_eigenspace_too():
    q, r, t = start(3, 1, 1)
    q[2], r[2] = 1e-10, 3e-5 * np.sqrt(t[2])
    with pytest.raises(ValueError, match="^cross_resolved must form a positive semidefinite matrix"):
        _arguments.resolved(q, r, t, 3)
    _arguments.resolved(q, r / 3.001, t, 3)


# --- bad input: every public function, every argument -----------------------------------------------------------------

Q, R, T = start(2, 2, 1)
STATE = {"student_resolved": Q, "cross_resolved": R, "teacher_resolved": T, "eigenvalues": [1.5, 0.5]}
MOVE = STATE | {"learning_rate": 0.1, "multiplicities": [1, 1], "second_order": True}
CALLS = {
    structured.fields: {"resolved": Q, "eigenvalues": [1.5, 0.5]},
    structured.derivative: MOVE,
    structured.solve: MOVE | {"times": [0.5, 1.0], "tolerance": 1e-3},
}
BAD = {
    "resolved": [Q[:1], Q[0], np.full((2, 2, 2), np.nan), "Q", None],
    "times": [
        [],
        [1.0, 1.0],
        [2.0, 1.0],
        [-1.0],
        [np.nan],
        [[1.0]],
        [[1.0], [1.0, 2.0]],
        -1.0,
        np.nan,
        1j,
        True,
        "times",
        None,
    ],
    "student_resolved": [Q[:1], Q[0], np.full((2, 2, 2), np.nan), Q + np.triu(np.ones((2, 2)), 1), "Q", None],
    "cross_resolved": [R[:1], R[:, :1], 100 * R, np.full((2, 2, 1), np.nan), "R", None],
    "teacher_resolved": [T[:1], T[0], np.full((2, 1, 1), np.nan), "T", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2], [1, 2, 3]],
    "learning_rate": NUMBER,
    "second_order": [None, 0, 1, "yes"],
    "tolerance": [0, 1.0, -1.0, 1e-11, np.nan, "1", None, [0.1], True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

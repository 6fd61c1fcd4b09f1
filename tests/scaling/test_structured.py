"""lib.scaling.structured against averages, the hierarchy of powers, a general integrator, and the isotropic theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power_law import power_law
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import erf

from lib.common.spectrum import Spectrum
from lib.foundations import gaussian, stability
from lib.foundations.committee import Overlaps
from lib.scaling import _collocation, _frozen, structured
from lib.scaling.structured import ResolvedOverlaps

LAM = power_law(5, 0.75)


def start(levels, units, teachers, seed=1, size=60, variance=0.2):
    return structured.random_overlaps([size] * levels, units, teachers, seed, student_variance=variance)


def joint(q, r, t):
    return np.block([[q, r], [r.mT, t]])


# --- random overlaps


@pytest.mark.parametrize("counts", [[40, 10, 2], [3, 3, 3], [1, 200, 5]])
def test_overlaps_have_the_moments_of_drawn_vectors(counts):
    """Mean and variance of every entry: T_nm^k has mean δ m_k/N and variance (1 + δ) m_k/N²; also where m_k < K + M."""
    draws, n, variance, m = 4000, sum(counts), 0.25, np.array(counts, dtype=float)
    seeds = np.random.SeedSequence(7).spawn(draws)
    parts = [structured.random_overlaps(counts, 2, 2, s, student_variance=variance) for s in seeds]
    q, r, t = (np.stack(part) for part in zip(*parts))
    for values, scale, same in (
        (q[:, :, 0, 0], variance, 1), (t[:, :, 1, 1], 1.0, 1),
        (q[:, :, 0, 1], variance, 0), (r[:, :, 1, 0], np.sqrt(variance), 0), (t[:, :, 0, 1], 1.0, 0),
    ):  # fmt: skip
        error = values.std(axis=0) / np.sqrt(draws)
        assert (np.abs(values.mean(axis=0) - same * scale * m / n) < 4.5 * error).all()
        np.testing.assert_allclose(values.var(axis=0), (1 + same) * scale**2 * m / n**2, rtol=0.25)


def test_orthonormal_teachers_are_so_and_keep_the_law_of_the_students():
    """Any orthonormal frame gives R^k_in mean zero and variance σ_J² m_k/N²; for m_k = M it is complete: R Rᵀ = n Q."""
    counts, draws, variance = np.array([40, 2]), 3000, 0.25
    option = {"student_variance": variance, "orthonormal_teachers": True}
    seeds = np.random.SeedSequence(11).spawn(draws)
    drawn = [structured.random_overlaps(counts, 3, 2, seed, **option) for seed in seeds]
    q, r, t = (np.stack(part) for part in zip(*drawn))
    n = (counts / 42)[:, None, None]
    np.testing.assert_array_equal(t, np.broadcast_to(np.eye(2) * n, t.shape))
    assert (np.abs(r.mean(axis=0)) < 4.5 * r.std(axis=0) / np.sqrt(draws)).all()
    np.testing.assert_allclose(r.var(axis=0), variance * np.broadcast_to(n, (2, 3, 2)) / 42, rtol=0.15)
    inside = r @ r.mT / n  # |projection on the teachers|² <= |J|²
    np.testing.assert_allclose(inside[:, 1], q[:, 1], atol=1e-12)
    assert np.linalg.eigvalsh(q[:, 0] - inside[:, 0]).min() > 0
    with pytest.raises(ValueError, match="^multiplicities must be at least 2, the number of orthonormal teachers"):
        structured.random_overlaps([40, 1], 3, 2, 1, orthonormal_teachers=True)


# --- rates of change


def covariance(blocks, first, second, third):
    """Covariance of the three fields z_first, z_second projected on the eigenspace, z_third."""
    whole, projected = blocks
    c = np.array(
        [
            [whole[first, first], projected[first, second], whole[first, third]],
            [0, projected[second, second], projected[second, third]],
            [0, 0, whole[third, third]],
        ]
    )
    return np.triu(c) + np.triu(c, 1).T


@pytest.mark.parametrize("units, teachers", [(2, 2), (3, 2), (1, 3)])
def test_first_order_is_a_sum_of_three_point_averages(units, teachers):
    begin, rate, size = start(5, units, teachers), 0.7, units + teachers
    blocks = joint(*begin)
    dq, dr = begin.derivative(LAM, rate, second_order=False)
    for k in (0, 4):
        pair = np.tensordot(LAM, blocks, axes=1), LAM[k] * blocks[k]
        drift = np.zeros((units, size))
        for i in range(units):
            for c in range(size):
                pull = sum(gaussian.erf_i3(covariance(pair, i, c, units + m)) for m in range(teachers))
                drag = sum(gaussian.erf_i3(covariance(pair, i, c, j)) for j in range(units))
                drift[i, c] = rate / units * (pull - teachers / units * drag)
        np.testing.assert_allclose(dr[k], drift[:, units:], rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(dq[k], drift[:, :units] + drift[:, :units].T, rtol=1e-10, atol=1e-14)


def test_noise_is_shared_out_by_eigenvalue_and_multiplicity():
    begin, spectrum = start(3, 2, 3), Spectrum([2.0, 1.0, 0.5], [1, 2, 4]).normalized()
    with_noise, without = (begin.derivative(spectrum, 0.7, second_order=option)[0] for option in (True, False))
    e = Overlaps(*(structured.fields(part, spectrum.eigenvalues) for part in begin)).noise_matrix
    share = (spectrum.eigenvalues * spectrum.shares)[:, None, None]
    np.testing.assert_allclose(with_noise - without, 0.49 * 3 / 4 * share * e, rtol=1e-9)


# --- solutions


@pytest.mark.parametrize("second_order", [True, False])
def test_the_hierarchy_of_powers_closed_by_cayley_and_hamilton_has_the_same_solution(second_order):
    levels, rate, end = 4, 0.6, 5.0
    lam, begin = power_law(levels, 0.5), start(levels, 2, 2)
    closing = -np.poly(lam)[:0:-1]  # Q^(L) = Σ_l closing_l Q^(l)
    powers = lam[None, :] ** np.arange(levels)[:, None]  # (L, L)
    teacher = np.tensordot(np.vstack([powers, lam**levels]), begin.teacher, axes=1)  # (L + 1, M, M)
    nu = np.array([np.mean(lam ** (order + 1)) for order in range(levels)])

    def velocity(_, state):
        student, cross = state[: 4 * levels].reshape(levels, 2, 2), state[4 * levels :].reshape(levels, 2, 2)
        seen = Overlaps(student[1], cross[1], teacher[1])
        a, g = seen.drift()
        next_q = np.concatenate([student[1:], np.tensordot(closing, student, axes=1)[None]])
        next_r = np.concatenate([cross[1:], np.tensordot(closing, cross, axes=1)[None]])
        half = a @ next_r.mT - g @ next_q
        dq = rate / 2 * (half + half.mT)
        if second_order:
            dq = dq + rate**2 / 2 * nu[:, None, None] * seen.noise_matrix
        return np.concatenate([dq.ravel(), (rate / 2 * (a @ teacher[1:] - g @ next_r)).ravel()])

    first = np.concatenate([np.tensordot(powers, part, axes=1).ravel() for part in (begin.student, begin.cross)])
    state = solve_ivp(velocity, (0, end), first, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    path = begin.solve(end, lam, rate, second_order=second_order, tolerance=1e-7)
    np.testing.assert_allclose(path.student_overlap.ravel(), state[4:8], atol=1e-6)
    np.testing.assert_allclose(path.cross_overlap.ravel(), state[4 * levels + 4 : 4 * levels + 8], atol=1e-6)


def test_one_eigenvalue_is_the_isotropic_theory_and_equal_eigenvalues_may_be_merged():
    times, begin = [0.0, 1.0, 30.0], start(3, 2, 2)
    apart = begin.solve(times, [1.5, 0.75, 0.75], 0.5, tolerance=1e-6)
    merged = ResolvedOverlaps(*(np.stack([part[0], part[1] + part[2]]) for part in begin))
    together = merged.solve(times, Spectrum([1.5, 0.75], [1, 2]), 0.5, tolerance=1e-6)
    np.testing.assert_allclose(together.generalization_error, apart.generalization_error, rtol=1e-9)
    one = ResolvedOverlaps(*(part[:1] for part in begin)).solve(times, [1.0], 0.5, tolerance=1e-6)
    isotropic = Overlaps(*(part[0] for part in begin)).solve(times, learning_rate=0.5)
    np.testing.assert_allclose(one.generalization_error, isotropic.generalization_error, rtol=2e-5)
    np.testing.assert_allclose(one.student_overlap, isotropic.student_overlap, atol=1e-5)


def flow_of(begin, lam, rate, second_order):
    return _frozen.Flow(begin.teacher, lam, np.full(len(lam), 1 / len(lam)), rate, second_order, len(begin.student[0]))


def reference(times, begin, lam, rate, second_order=True):
    """Q^k and R^k at the times, each (n, L, ., .), from the raw equations; a general integrator stops at each."""
    (q, r, _), flow = begin, flow_of(begin, lam, rate, second_order)

    def velocity(_, state):
        moves = flow.velocity(state[: q.size].reshape(q.shape), state[q.size :].reshape(r.shape))
        return np.concatenate([part.ravel() for part in moves])

    state, now, rows = np.concatenate([q.ravel(), r.ravel()]), 0.0, []
    for time in times:
        if time > now:
            state = solve_ivp(velocity, (now, time), state, method="DOP853", rtol=1e-13, atol=1e-16).y[:, -1]
        now = time
        rows.append(state)
    rows = np.array(rows)
    return rows[:, : q.size].reshape(-1, *q.shape), rows[:, q.size :].reshape(-1, *r.shape)


def fixed_steps(flow, state, end, steps):
    """The state after that many equal steps of the method, without step control."""
    seen, before = flow.seen(state), None
    inverse = np.eye(2 * seen.size)
    for _ in range(steps):
        guess = [seen, seen] if before is None else [_collocation.along(before, place) for place in (1.5, 2.0)]
        step = _collocation.consistent_step(flow, state, seen, np.stack(guess), end / steps, inverse, 1e-11)
        state, seen, before = step.end, step.seen[2], step.seen
    return state


@pytest.mark.parametrize("second_order", [True, False])
def test_the_method_is_of_fourth_order(second_order):
    lam, rate, end = power_law(5, 1.5), 0.2, 20.0
    begin = start(5, 2, 4, size=120, variance=0.5)
    wanted = [part[0] for part in reference([end], begin, lam, rate, second_order)]
    flow, steps = flow_of(begin, lam, rate, second_order), np.array([20, 40, 80, 160])
    found = [fixed_steps(flow, (begin.student, begin.cross), end, n) for n in steps]
    errors = [max(np.abs(u - v).max() for u, v in zip(state, wanted)) for state in found]
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
    lam, times = power_law(levels, beta), np.append(0.0, np.geomspace(1.0, end, 8))
    begin = start(levels, units, teachers, size=600 // levels, variance=variance)
    students, crosses = reference(times, begin, lam, rate, second_order)  # (n, L, K, K), (n, L, K, M)
    fields = [np.tensordot(part, lam, axes=(1, 0)) for part in (students, crosses)]
    error = Overlaps(*fields, structured.fields(begin.teacher, lam)).generalization_error
    size = max(1.0, fields[0].max())
    for tolerance in (1e-3, 1e-5, 1e-8):
        path = begin.solve(times, lam, rate, second_order=second_order, tolerance=tolerance)
        np.testing.assert_allclose(path.generalization_error, error, rtol=1.5 * tolerance, atol=1e-12)
        for found, wanted in zip((path.student_overlap, path.cross_overlap), fields):
            np.testing.assert_allclose(found, wanted, atol=tolerance * size, rtol=0)
        for found, wanted in zip((path.student_history, path.cross_history), (students, crosses)):
            np.testing.assert_allclose(levels * found, levels * wanted, atol=tolerance * size, rtol=0)
        for last, history in zip(
            (path.student_resolved, path.cross_resolved), (path.student_history, path.cross_history)
        ):
            np.testing.assert_array_equal(last, history[-1])


def test_reported_times_do_not_change_the_way_and_a_number_is_one_time():
    begin = start(5, 2, 2)
    few, many, one = (begin.solve(t, LAM, 0.5, tolerance=1e-6) for t in ([7.0, 30.0], np.linspace(1, 30, 59), 30.0))
    np.testing.assert_allclose(few.generalization_error, many.generalization_error[[12, 58]], rtol=1e-12)
    assert one.times == 30 and one.student_history.shape == (5, 2, 2)
    assert one.generalization_error == pytest.approx(few.generalization_error[1], rel=1e-12)


def test_the_late_phase_does_not_ring_where_coefficients_from_the_past_would(monkeypatch):
    units, lam, rate = 4, power_law(8, 0.5), 0.5
    t = np.tile(np.eye(units) / 8, (8, 1, 1))
    flow = flow_of(ResolvedOverlaps(t, t, t), lam, rate, False)
    rest = flow.seen((t, t))

    def frozen(state, seen, length):
        return flow.stages(state, np.stack([flow.coefficients(seen)] * 3), length)[1]

    def settled(seen):  # what is seen when all eigenspaces have settled at these a and G
        return flow.seen(frozen((t, t), seen, 1e9))

    tiny, turns = 1e-6, []  # the matrix Q_ij = Q_ji: its directions come in symmetric pairs
    for unit in np.eye(rest.size):
        square = unit[:16].reshape(4, 4)
        both = np.concatenate([(square + square.T).ravel() / 2, unit[16:]])
        turns.append((settled(rest + tiny * both) - settled(rest - tiny * both)) / (2 * tiny))
    values, vectors = np.linalg.eig(np.array(turns).T)
    assert values.real.min() < -1.5  # the control: a feedback that overshoots

    lengths, once = [], _collocation.consistent_step

    def recorded(*arguments):
        lengths.append(arguments[4])
        return once(*arguments)

    monkeypatch.setattr(_collocation, "consistent_step", recorded)
    mix = np.eye(units) + 1e-3 * np.random.default_rng(0).normal(size=(8, units, units))
    near = ResolvedOverlaps(mix @ t @ mix.mT, mix @ t, t)
    error = near.solve(np.linspace(0, 4e3, 9), lam, rate, second_order=False).generalization_error
    settling = units / (rate * lam[0])  # the fastest eigenspace needs this time
    assert len(lengths) < 0.2 * 4e3 / settling and (np.diff(error[error > 1e-13]) < 0).all()
    length = 20 * settling * lam[0] / lam[-1]  # all eigenspaces settle

    overshoot = vectors[:, values.real.argmin()].real.reshape(2, 4, 4)
    old = new = tuple(t + 1e-6 * part / lam.sum() for part in overshoot)
    first = np.abs(flow.seen(old) - rest).max()
    for _ in range(4):
        old = frozen(old, flow.seen(frozen(old, flow.seen(old), length / 2)), length)  # the exponential midpoint rule
        new = fixed_steps(flow, new, length, 1)
    assert np.abs(flow.seen(old) - rest).max() > 3 * first
    assert np.abs(flow.seen(new) - rest).max() < 0.3 * first


def test_overlaps_stay_a_covariance_and_errors_never_turn_negative():
    begin = start(200, 3, 2, size=5, variance=1e-4)
    path = begin.solve([1.0, 100.0, 1e4], power_law(200, 1.0), 0.3, tolerance=1e-3)
    assert np.linalg.eigvalsh(joint(path.student_resolved, path.cross_resolved, begin.teacher)).min() > -1e-14
    assert (path.generalization_error > 0).all() and (np.diff(path.generalization_error) < 0).all()


def test_perfect_learning_is_a_fixed_point_and_a_step_that_shrinks_without_end_is_reported(monkeypatch):
    t = start(5, 2, 2).teacher
    assert max(np.abs(part).max() for part in ResolvedOverlaps(t, t, t).derivative(LAM, 0.4)) < 1e-14
    monkeypatch.setattr(_collocation, "SHORTEST", 1.0)
    with pytest.raises(RuntimeError, match="could not be followed"):
        start(5, 1, 1).solve([1e3], LAM, 0.5)


def test_a_plateau_ends_at_the_right_time_however_alike_the_units_are():
    """The step may not jump over the growth of differences that are far below the tolerance of the overlaps."""
    t = start(5, 1, 3, size=4000).teacher
    first, second = (structured.fields(t, LAM**order) for order in (1, 2))
    mix = np.tile(stability.Plateau(first).weights, (5, 3, 1))  # (L, K, M): in eigenspace k the students are mix_k B
    mix[2, 0] += [1e-10, -2e-10, 3e-10]
    fastest = stability.Plateau(first).escape_rates(0.5, second_overlap=second)[0]
    times = np.array([0.0, 8.0, 12.0]) / fastest
    path = ResolvedOverlaps(mix @ t @ mix.mT, mix @ t, t).solve(times, LAM, 0.5, second_order=False)
    apart = np.abs(path.cross_overlap - path.cross_overlap.mean(axis=1, keepdims=True)).max(axis=(1, 2))
    assert apart[-1] < 1e-3
    assert np.log(apart[2] / apart[1]) == pytest.approx(4.0, rel=2e-2)


# --- linear stability


@settings(deadline=None, max_examples=20)
@given(levels=st.integers(1, 4), students=st.integers(1, 4), teachers=st.integers(1, 4), seed=st.integers(0, 1000))
def test_coordinates_and_directions_are_inverse(levels, students, teachers, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(levels, students, students)), rng.normal(size=(levels, students, teachers))
    vector = structured.coordinates(x + x.mT, y)
    assert len(vector) == levels * students * (students + 1) // 2 + levels * students * teachers
    for part, wanted in zip(structured.directions(vector, levels, students, teachers), (x + x.mT, y)):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("second_order", [False, True])
def test_one_eigenvalue_has_the_isotropic_jacobian(second_order):
    for size in (1.0, 1e4):
        state = ResolvedOverlaps(*(size * part for part in structured.random_overlaps([50], 3, 2, rng=1)))
        wanted = Overlaps(*(part[0] for part in state)).jacobian(0.7, second_order=second_order)
        found = state.jacobian([1.0], 0.7, second_order=second_order)
        np.testing.assert_allclose(found, wanted, atol=1e-13 * np.abs(wanted).max())


@pytest.mark.parametrize("second_order", [False, True])
@pytest.mark.parametrize("students, teachers", [(2, 2), (3, 2), (1, 3)])
def test_every_direction_is_that_of_the_checked_equations(students, teachers, second_order):
    """Richardson's combination of differences, along a random direction from a state inside the covariance matrices."""
    spectrum, option = Spectrum([3.0, 1.0, 1 / 3], [30, 60, 90]), {"second_order": second_order}
    q, r, t = structured.random_overlaps([30, 60, 90], students, teachers, rng=2, student_variance=0.5)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=q.shape), rng.normal(size=r.shape)
    x = x + x.mT

    def difference(step):
        up, down = (
            ResolvedOverlaps(q + s * x, r + s * y, t).derivative(spectrum, 0.9, **option) for s in (step, -step)
        )
        return structured.coordinates(*((a - b) / (2 * step) for a, b in zip(up, down)))

    wanted = (4 * difference(1e-3) - difference(2e-3)) / 3
    found = ResolvedOverlaps(q, r, t).jacobian(spectrum, 0.9, **option) @ structured.coordinates(x, y)
    np.testing.assert_allclose(found, wanted, atol=1e-7 * np.abs(wanted).max())


def test_the_exponential_of_the_jacobian_moves_states_near_the_teacher():
    lam, levels, units = power_law(3, 1.0), 3, 2
    t = np.stack([np.eye(units)] * levels) / levels
    draw, late, miss = np.random.default_rng(4).standard_normal((levels, units, 30)), 5.0, []
    flow = expm(late * ResolvedOverlaps(t, t, t).jacobian(lam, 0.8))
    for size in (1e-2, 1e-3):
        delta = size * draw / np.sqrt(levels)
        cross = t + delta[:, :, :units] / np.sqrt(levels)
        student = cross + cross.mT - t + delta @ delta.mT
        path = ResolvedOverlaps(student, cross, t).solve(late, lam, 0.8, tolerance=1e-8)
        moved = flow @ structured.coordinates(student - t, cross - t)
        followed = structured.coordinates(path.student_resolved - t, path.cross_resolved - t)
        miss.append(np.abs(followed - moved).max() / np.abs(followed).max())
    assert miss[1] < 0.2 * miss[0] < 0.01


# --- what must fit together


def test_measured_weights_have_the_fields_of_their_inputs_in_any_unit():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((300, 7)) @ rng.standard_normal((7, 7))
    x[:, 3] = 0.0  # a dead pixel
    j, b = rng.standard_normal((2, 7)), rng.standard_normal((3, 7))
    found = structured.measured(x, j, b)
    lam = found.spectrum.eigenvalues
    assert lam.size == 6 and lam.mean() == pytest.approx(1, rel=1e-12) and np.all(np.diff(lam) < 0)
    assert found.rate == pytest.approx((x**2).sum() / 300, rel=1e-12)
    for order, metric in ((1, x.T @ x / 300), (2, (x.T @ x / 300) @ (x.T @ x / 300) * 6 / found.rate)):
        joint = np.r_[j, b] @ metric @ np.r_[j, b].T
        expected = joint[:2, :2], joint[:2, 2:], joint[2:, 2:]
        for part, matrix in zip(found.overlaps, expected):
            np.testing.assert_allclose(structured.fields(part, lam**order), matrix, rtol=1e-9, atol=1e-9)
    larger = structured.measured(10 * x, j / 10, b / 10)
    assert larger.rate == pytest.approx(100 * found.rate, rel=1e-12)
    for one, other in zip(found.overlaps, larger.overlaps):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_one_step_of_raw_descent_moves_overlaps_as_the_equations_say():
    """Mean of many first steps on raw weights, w ← w + lr (√M/K) δ g'(w·x) x, against η = lr Tr Σ and α = 1/N."""
    rng, lr = np.random.default_rng(3), 1e-3
    scale, (j, b) = np.array([2.0, 1.0, 0.5, 0.25]), rng.standard_normal((2, 2, 4))
    x = rng.standard_normal((400_000, 4)) * scale
    found = structured.measured(x, j, b)
    cross = found.overlaps.derivative(found.spectrum, lr * found.rate)[1]  # dR^k/dα
    moved = structured.fields(cross, found.spectrum.eigenvalues) / 4  # in one example
    own, given = x @ j.T, x @ b.T
    delta = (erf(given / np.sqrt(2)).sum(axis=1) - erf(own / np.sqrt(2)).sum(axis=1)) / np.sqrt(2)
    slope = lr / np.sqrt(2) * delta[:, None] * np.sqrt(2 / np.pi) * np.exp(-(own**2) / 2)  # (P, K)
    steps = slope[:, :, None] * ((x * scale**2) @ b.T)[:, None, :]  # (P, K, M)
    mean, error = steps.mean(axis=0), steps.std(axis=0) / np.sqrt(len(x))
    assert np.all(np.abs(mean - moved) < 5 * error + 0.01 * np.abs(moved))


def test_inputs_and_weights_that_do_not_fit_are_refused():
    good = {"inputs": np.eye(4), "student": np.ones((2, 4)), "teacher": np.ones((3, 4))}
    for name, value, message in (
        ("inputs", np.zeros((4, 4)), "differ from zero"),
        ("inputs", np.eye(4)[None], "be a table of one sample or more"),
        ("inputs", np.eye(4) * np.nan, "be finite"),
        ("student", np.ones((4, 2)), "have two axes, the second of length 4"),
        ("teacher", np.ones((0, 4)), "have one unit or more"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must {message}"):
            structured.measured(**good | {name: value})


def test_what_is_no_covariance_or_no_spectrum_of_these_eigenspaces_is_refused():
    q, r, t = start(3, 1, 1)
    q[2], r[2] = 1e-10, 3e-5 * np.sqrt(t[2])  # in the smallest eigenspace, too
    with pytest.raises(ValueError, match=r"^the matrix \[\[student, cross\], .* must be positive semidefinite"):
        ResolvedOverlaps(q, r, t)
    good = ResolvedOverlaps(q, r / 3.001, t)
    for wrong in ({"student": q[:2]}, {"cross": r[:, :, :0]}, {"teacher": np.ones((3, 1, 2))}):
        with pytest.raises(ValueError, match=f"^({next(iter(wrong))}|cross|teacher) must "):
            ResolvedOverlaps(**{"student": q, "cross": r, "teacher": t} | wrong)
    with pytest.raises(ValueError, match="^student must hold symmetric matrices"):
        ResolvedOverlaps([[[1.0, 0.5], [0.0, 1.0]]], np.zeros((1, 2, 1)), np.ones((1, 1, 1)))
    for spectrum, said in (
        ([1.0], "have 3 eigenvalues"), ([1.0, 1.0, 1.1], "have mean one"), ([2.0, 1.0, 0.0], "have eigenvalues > 0"),
        (Spectrum([3.0, 0.5, 1.0], [1, 4, 1]), None), (power_law(3, 1.0).astype(np.float32), None),
    ):  # fmt: skip
        if said is None:
            good.derivative(spectrum, 0.5)
        else:
            with pytest.raises(ValueError, match=f"^spectrum must {said}"):
                good.derivative(spectrum, 0.5)
    with pytest.raises(ValueError, match="^multiplicities must hold whole numbers"):
        structured.random_overlaps([1.5], 1, 1, 1)
    with pytest.raises(ValueError, match="^student_direction must hold symmetric"):
        structured.coordinates([[[1.0, 2.0], [0.0, 1.0]]], np.zeros((1, 2, 1)))
    with pytest.raises(ValueError, match="^vector must have one axis of length 5"):
        structured.directions(np.ones(4), 1, 2, 1)

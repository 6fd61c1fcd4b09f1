"""lib.representations.rate_fit against curves of known rates, its definitions and symmetries, and runs without any."""

import numpy as np
import pytest
from rate_fit_data import ALPHA, BETA, END, GAMMA, START, TIMES, X, Y, determination, integrated, measured
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from lib.representations import rate_fit, two_points
from lib.representations.two_points import TwoPoints


def rates(found):
    return np.array([found.encoder_rate, found.decoder_rate, found.mean_rate])


def difference_loss(states):
    return (2 * states[:, 2] - states[:, 1] + Y) / 8


# --- known rates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["raw", "range"])
def test_rates_of_integrated_curves_are_found(weighting):
    states = integrated(START, X, Y, ALPHA, BETA, TIMES)
    loss = 0.1 * np.exp(-2 * GAMMA * TIMES) + difference_loss(states)
    found = rate_fit.fit(TIMES, states, loss, X, Y, rng=3, weighting=weighting)
    np.testing.assert_allclose(rates(found), [ALPHA, BETA, GAMMA], rtol=1e-5)
    assert np.all(1 - found.r_squared < 1e-9) and 1 - found.loss_r_squared < 1e-9
    assert found.identifiable.tolist() == [True] * 3


def random_run(rng):
    """A start of any size, with one output or several, rates over two decades, and times until the loss has gone."""
    (x, y), a = rng.uniform(0.3, 2, 2), 10 ** rng.uniform(-4, 0.5)
    b, cosine = 10 ** rng.uniform(-4, 0) * y, rng.choice([-0.2, 0.4, 1.0])
    start, (alpha, beta) = [a, b, b - cosine * np.sqrt(b * y)], 10 ** rng.uniform(-3.5, -1.5, 2)
    grid = np.geomspace(1, 1e9, 4000)
    end = grid[np.argmax(TwoPoints(start, x, y, alpha, beta).loss(grid) < 1e-5)]
    return start, x, y, alpha, beta, 4 / end, np.linspace(0, end, 400)


def test_rates_are_found_from_many_starts():
    rng = np.random.default_rng(11)
    for _ in range(25):
        start, x, y, *known, times = random_run(rng)
        found = rate_fit.fit(times, *measured(start, x, y, *known, times), x, y, rng=1, restarts=1)
        np.testing.assert_allclose(rates(found), known, rtol=1e-5)


def test_the_cost_doubles_at_the_uncertainty():
    """Least cost as a function of one rate, the other one following; noise so small that it is a parabola."""
    states, loss = measured(noise=1e-4, seed=2)
    found = rate_fit.fit(TIMES, states, loss, X, Y, rng=3)
    best = np.log(rates(found))

    def cost(logs):
        wrong = TwoPoints(START, X, Y, *np.exp(logs)).solve(TIMES) - states
        return np.trapezoid((wrong**2).sum(axis=1), TIMES)

    for which in (0, 1):
        for side in (-1, 1):

            def profile(other, which=which, moved=best[which] + side * found.uncertainty[which]):
                return cost(np.insert([other], which, moved))

            around = best[1 - which] + np.array([-1e-3, 1e-3])
            least = minimize_scalar(profile, bracket=around, options={"xtol": 1e-12}).fun
            assert least / found.cost == pytest.approx(2, rel=0.01)
    rest = loss - difference_loss(TwoPoints(START, X, Y, *np.exp(best[:2])).solve(TIMES))
    steps = np.exp(best[2] + found.uncertainty[2] * np.array([-1, 0, 1]))  # (3,)
    costs = np.trapezoid((rest - rest[0] * np.exp(-2 * steps[:, None] * TIMES)) ** 2, TIMES)  # (3,)
    np.testing.assert_allclose(costs[[0, 2]] / costs[1], 2, rtol=0.02)


def descended(rate, steps):
    """Two points, one output bias and a linear hidden layer, dh along the decoder gradient, in full-batch descent."""
    inputs, targets = np.array([[-0.5], [0.5]]), np.array([[0.6, 0.1], [1.4, -0.2]])
    first, second, bias = np.outer([0.06, 0.08], [1.0]), np.outer([0.1, 0.1], [0.6, 0.8]), np.zeros(2)
    apart, states, losses = targets[1] - targets[0], [], []
    for _ in range(steps):
        hidden = inputs @ first.T
        wrong, dh = hidden @ second.T + bias - targets, hidden[1] - hidden[0]
        states.append(two_points.state(dh, second @ dh, apart))
        losses.append((wrong**2).sum() / 4)
        first, second = first - rate / 2 * second.T @ wrong.T @ inputs, second - rate / 2 * wrong.T @ hidden
        bias = bias - rate * wrong.mean(axis=0)
    return np.arange(steps), np.array(states), np.array(losses), 1.0, (apart**2).sum()


def test_a_linear_network_has_half_its_learning_rate_as_alpha_and_beta_and_the_whole_as_gamma():
    error = []
    for rate in (0.04, 0.02, 0.01):
        found = rate_fit.fit(*descended(rate, round(40 / rate)), rng=3, restarts=0)
        assert np.all(found.r_squared > 0.9999)
        error.append(rates(found) / [rate / 2, rate / 2, rate] - 1)
    assert np.abs(error[0]).max() < 0.05
    np.testing.assert_allclose(np.divide(error[:-1], error[1:]), 2, rtol=0.1)  # an Euler step is of first order


# --- definitions and symmetries -------------------------------------------------------------------


def misfitted():
    """Curves of the theory with the pulse of w shifted and a drift on a, at uneven times."""
    times = END * np.linspace(0, 1, 300) ** 1.5
    states, loss = measured(times=times)
    states[:, 2] += 0.3 * states[:, 2].min() * np.sin(times / 500)
    states[:, 0] *= 1 + 0.3 * times / END
    return times, states, loss + 0.02 * np.exp(-times / 800) * np.sin(times / 300)


@pytest.mark.parametrize("weighting", ["raw", "range"])
def test_determination_and_cost_are_integrals_over_time_and_least(weighting):
    times, states, loss = misfitted()
    found = rate_fit.fit(times, states, loss, X, Y, rng=3, weighting=weighting)
    unit = np.ptp(states, axis=0) if weighting == "range" else 1

    def curves(alpha, beta):
        path = TwoPoints(states[0], X, Y, alpha, beta).solve(times)
        return path, np.trapezoid((((states - path) / unit) ** 2).sum(axis=1), times)

    fitted, cost = curves(found.encoder_rate, found.decoder_rate)
    np.testing.assert_allclose(found.r_squared, determination(states, fitted, times), rtol=1e-9)
    assert found.cost == pytest.approx(cost, rel=1e-9) and 0.1 < found.r_squared[2] < 0.99
    for step in 0.02 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]):  # nothing near the rates is better
        assert curves(*np.exp(step) * rates(found)[:2])[1] > found.cost
    rest = loss - difference_loss(fitted)
    offset = (loss - difference_loss(states))[0]
    fitted_loss = offset * np.exp(-2 * found.mean_rate * times) + difference_loss(fitted)
    assert found.loss_r_squared == pytest.approx(determination(loss, fitted_loss, times), rel=1e-9)
    grid = found.mean_rate * np.exp(np.linspace(-3, 3, 601))  # nor is any other γ
    misfits = np.trapezoid((rest - offset * np.exp(-2 * grid[:, None] * times)) ** 2, times)
    assert grid[np.argmin(misfits)] == pytest.approx(found.mean_rate, rel=0.011)


def test_units_of_time_and_of_the_inputs_and_the_first_time_change_nothing():
    times, states, loss = misfitted()
    found = rate_fit.fit(times, states, loss, X, Y, rng=3)
    scaled = rate_fit.fit(1e-7 * times, states, loss, 9 * X, Y, rng=3)
    np.testing.assert_allclose(rates(scaled), rates(found) * np.array([1e7 / 9, 1e7, 1e7]), rtol=1e-6)
    np.testing.assert_allclose(scaled.r_squared, found.r_squared, rtol=1e-7)
    alone = rate_fit.fit(1e-7 * times, states, loss, 9 * X, Y, rng=3, restarts=0)  # the first guess is near enough
    np.testing.assert_allclose(rates(alone), rates(scaled), rtol=1e-6)
    later = rate_fit.fit(times + 500, states, loss, X, Y, rng=3)
    np.testing.assert_allclose([*rates(later), later.cost], [*rates(found), found.cost], rtol=1e-6)


def test_the_given_start_replaces_a_noisy_one():
    states, loss = measured()
    states[0] = [-0.02, 0.0, 0.3]
    with pytest.raises(ValueError, match=r"^start must have a > 0"):
        rate_fit.fit(TIMES, states, loss, X, Y, rng=3)
    found = rate_fit.fit(TIMES, states, loss, X, Y, rng=3, start=START)
    assert found.encoder_rate == pytest.approx(ALPHA, rel=0.01)


def test_a_start_in_single_precision_is_taken_and_a_wrong_one_is_not():
    states, loss = measured()
    single = states.astype(np.float32)
    single[0, 2] *= np.float32(1 + 1e-6)  # outside (b - w)² <= bY by rounding
    found = rate_fit.fit(TIMES, single, loss, X, Y, rng=3)
    assert found.decoder_rate == pytest.approx(BETA, rel=1e-5)
    single[0, 2] *= np.float32(1.001)
    with pytest.raises(ValueError, match=r"^start must .* \(b - w\)² <= bY"):
        rate_fit.fit(TIMES, single, loss, X, Y, rng=3)


def test_another_model_is_fitted_in_place_of_the_closed_form():
    def one_output(times, alpha, beta, v=0.3):
        """Eq. (17) for one output with a decoder gradient of squared length v, not along dh."""

        def slope(_, state):
            (a, c, squared), e = state, state[1] - np.sqrt(Y)
            return [-alpha * X * e * c, -e * (beta * a + alpha * X * squared) / 2, -beta * e * c]

        span, begin = (0, times[-1]), [0.01, 0.01, v]
        a, c, _ = solve_ivp(slope, span, begin, method="LSODA", t_eval=times, rtol=1e-9, atol=1e-11).y
        times[:] = np.nan  # its own copy
        return np.stack([a, c**2, c * (c - np.sqrt(Y))], axis=1)

    times = np.linspace(0, 8000, 200)
    states = one_output(times.copy(), ALPHA, BETA)
    loss = 0.1 * np.exp(-2 * GAMMA * times) + difference_loss(states)
    free = rate_fit.fit(times, states, loss, X, Y, rng=3, model=one_output, restarts=0)
    np.testing.assert_allclose(rates(free), [ALPHA, BETA, GAMMA], rtol=1e-4)
    assert rate_fit.fit(times, states, loss, X, Y, rng=3).cost > 100 * free.cost
    for wrong in ("model", lambda *_: np.zeros((3, 200)), lambda *_: np.full((200, 3), np.nan)):
        with pytest.raises(ValueError, match=r"^model must "):
            rate_fit.fit(times, states, loss, X, Y, rng=3, model=wrong)


# --- where no rate can be found -------------------------------------------------------------------


def test_identical_targets_are_fitted():
    start, times = [2.0, 0.3, 0.3], np.linspace(0, 40, 300)
    found = rate_fit.fit(times, *measured(start, 1.0, 0.0, 0.4, 0.5, 0.2, times), 1.0, 0.0, rng=3)
    np.testing.assert_allclose(rates(found), [0.4, 0.5, 0.2], rtol=1e-5)


@pytest.mark.parametrize(("noise", "expected"), [(0.0, True), (0.01, False)])
def test_alpha_is_flagged_where_the_hidden_distance_hardly_moves(noise, expected):
    start, times = np.array([1000.0, 0.02, -0.08]), np.linspace(0, 60, 400)
    states, loss = measured(start, 1.0, 0.5, 1e-3, 1e-3, 0.05, times)
    states[1:] += noise * np.ptp(states[:, 1]) * np.random.default_rng(2).standard_normal(states[1:].shape)
    found = rate_fit.fit(times, states, loss, 1.0, 0.5, rng=3, start=start)
    assert found.identifiable.tolist() == [expected, True, True]
    assert found.decoder_rate == pytest.approx(1e-3, rel=0.02)


def test_alpha_is_flagged_where_the_hidden_distance_falls_against_the_theory():
    states, loss = measured()
    states[:, 0] = 0.15 - 0.05 * states[:, 1]  # w < 0 all along, so that a ought to grow
    found = rate_fit.fit(TIMES, states, loss, X, Y, rng=3)
    assert not found.identifiable[0] and found.identifiable[1] and found.r_squared[0] < 0.5
    scaled = rate_fit.fit(TIMES, states, loss, 1e6 * X, Y, rng=3)  # the guesses know the unit of the inputs
    assert scaled.decoder_rate == pytest.approx(found.decoder_rate, rel=1e-3)
    np.testing.assert_allclose(scaled.r_squared, found.r_squared, atol=1e-3)


def test_gamma_is_flagged_where_the_mean_output_is_right_from_the_start_or_has_no_time_to_move():
    states, _ = measured()
    difference = difference_loss(states)
    found = rate_fit.fit(TIMES, states, difference, X, Y, rng=3)
    assert np.isnan(found.mean_rate) and found.uncertainty[2] == np.inf
    assert found.identifiable.tolist() == [True, True, False] and found.loss_r_squared == pytest.approx(1, abs=1e-9)
    at_once = difference + 0.1 * (TIMES == 0)
    assert not rate_fit.fit(TIMES, states, at_once, X, Y, rng=3).identifiable[2]


def test_runs_that_rest_or_have_not_ended_are_refused():
    states, loss = measured()
    stuck, far = states.copy(), states.copy()
    stuck[:, 0] = 0.01
    far[1:, 2] += 0.5  # ‖e‖² stays away from zero although the loss goes
    resting = [0.01, 0.5, 0.0]  # b = Y, w = 0
    for message, given, options in (
        ("loss must end below 0.001", (TIMES[:200], states[:200], loss[:200]), {}),
        ("states must change in the course", (TIMES, stuck, loss), {}),
        ("loss must change in the course", (TIMES, states, np.zeros(TIMES.size)), {}),
        ("states must reach half", (TIMES, far, loss), {}),
        ("start must not rest", (TIMES, states, loss), {"start": resting}),
        ("times must hold five samples", (TIMES[-4:], states[-4:], loss[-4:]), {}),
        ("states must ", (TIMES, states[:-1], loss), {}),
        ("loss must ", (TIMES, states, loss[:-1]), {}),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            rate_fit.fit(*given, X, Y, rng=3, **options)
    late = rate_fit.fit(TIMES, states, loss + 0.01, X, Y, rng=3, final_loss=0.02)
    assert late.decoder_rate == pytest.approx(BETA, rel=1e-5)

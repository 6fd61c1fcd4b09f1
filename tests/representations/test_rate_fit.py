"""lib.representations.rate_fit against curves of known rates, its definitions and symmetries, and bad input."""

import numpy as np
import pytest
from bad_input import AXIS, exercised
from rate_fit_data import ALPHA, BETA, END, GAMMA, START, TIMES, X, Y, determination, integrated, measured
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from lib.representations import rate_fit, two_points

# --- known rates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["raw", "range"])
def test_rates_of_integrated_curves_are_found(weighting):
    states = integrated(START, X, Y, ALPHA, BETA, TIMES)
    loss = 0.1 * np.exp(-2 * GAMMA * TIMES) + (2 * states[:, 2] - states[:, 1] + Y) / 8
    found = rate_fit.fit(TIMES, states, loss, X, Y, rng=3, weighting=weighting)
    np.testing.assert_allclose(
        [found.encoder_rate, found.decoder_rate, found.mean_rate], [ALPHA, BETA, GAMMA], rtol=1e-5
    )
    assert np.all(1 - found.r_squared < 1e-9) and 1 - found.loss_r_squared < 1e-9 and found.agreeing == 5
    assert found.identifiable.tolist() == [True] * 3


def random_run(rng):
    """A start of any size, with one output or several, rates over two decades, and times until the loss has gone."""
    (x, y), a = rng.uniform(0.3, 2, 2), 10 ** rng.uniform(-4, 0.5)
    b, cosine = 10 ** rng.uniform(-4, 0) * y, rng.choice([-0.2, 0.4, 1.0])
    start, (alpha, beta) = [a, b, b - cosine * np.sqrt(b * y)], 10 ** rng.uniform(-3.5, -1.5, 2)
    grid = np.geomspace(1, 1e9, 4000)
    end = grid[np.argmax(two_points.loss_curve(grid, start, x, y, alpha, beta) < 1e-5)]
    times = np.linspace(0, end, 400)
    return times, start, x, y, alpha, beta, 4 / end


def test_rates_are_found_from_many_starts():
    rng = np.random.default_rng(11)
    for _ in range(25):
        times, start, x, y, alpha, beta, gamma = random_run(rng)
        data = measured(start, x, y, alpha, beta, gamma, times)
        found = rate_fit.fit(times, *data, x, y, rng=1, restarts=1)
        np.testing.assert_allclose(
            [found.encoder_rate, found.decoder_rate, found.mean_rate], [alpha, beta, gamma], rtol=1e-5
        )


@pytest.mark.parametrize("weighting", ["raw", "range"])
def test_one_percent_noise_leaves_the_rates_within_five_percent(weighting):
    found = rate_fit.fit(TIMES, *measured(noise=0.01, seed=5), X, Y, rng=3, weighting=weighting)
    np.testing.assert_allclose(
        [found.encoder_rate, found.decoder_rate, found.mean_rate], [ALPHA, BETA, GAMMA], rtol=0.05
    )
    assert np.all((found.r_squared > 0.99) & (found.r_squared < 1)) and found.identifiable.all()


def test_uncertainty_is_that_of_white_noise_times_the_root_of_the_number_of_data():
    runs = [
        rate_fit.fit(TIMES, *measured(noise=0.02, seed=k), X, Y, rng=k, weighting="range", restarts=0)
        for k in range(60)
    ]
    logs = np.log([[run.encoder_rate, run.decoder_rate, run.mean_rate] for run in runs])  # (60, 3)
    expected = np.mean([run.uncertainty for run in runs], axis=0) / np.sqrt(
        [3 * TIMES.size, 3 * TIMES.size, TIMES.size]
    )  # (3,)
    # the rates of the first two are free of bias; the standard deviation of 60 runs has a relative error of 1/√120
    np.testing.assert_allclose(logs.std(axis=0, ddof=1)[:2] / expected[:2], 1, atol=4.5 / np.sqrt(120))
    assert np.all(np.abs(logs.mean(axis=0) - np.log([ALPHA, BETA, GAMMA]))[:2] < 4.5 * expected[:2] / np.sqrt(60))


def test_the_cost_doubles_at_the_uncertainty():
    """Second differences of the least cost as a function of one rate, the other one following; noise so small that the
    cost is a parabola."""
    states, loss = measured(noise=1e-4, seed=2)
    found = rate_fit.fit(TIMES, states, loss, X, Y, rng=3)
    best = np.log([found.encoder_rate, found.decoder_rate])

    def cost(logs):
        wrong = two_points.trajectory(TIMES, START, X, Y, *np.exp(logs)) - states
        return np.trapezoid((wrong**2).sum(axis=1), TIMES)

    for which in (0, 1):
        for side in (-1, 1):
            step = side * found.uncertainty[which]

            def profile(other, which=which, step=step):
                return cost(np.insert([other], which, best[which] + step))

            other = best[1 - which]
            least = minimize_scalar(profile, bracket=(other - 1e-3, other + 1e-3), options={"xtol": 1e-12}).fun
            assert least / found.cost == pytest.approx(2, rel=0.01)
    fitted = two_points.trajectory(TIMES, START, X, Y, *np.exp(best))
    rest = loss - (2 * fitted[:, 2] - fitted[:, 1] + Y) / 8

    def loss_cost(gamma):
        return np.trapezoid((rest - rest[0] * np.exp(-2 * gamma * TIMES)) ** 2, TIMES)

    at_step = [loss_cost(found.mean_rate * np.exp(k * found.uncertainty[2])) for k in (-1, 0, 1)]
    np.testing.assert_allclose(np.divide(at_step, at_step[1]), [2, 1, 2], rtol=0.01)


def test_error_of_the_rates_is_proportional_to_the_noise():
    errors = []
    for noise in (1e-2, 1e-3, 1e-4):
        found = rate_fit.fit(TIMES, *measured(noise=noise, seed=8), X, Y, rng=3, restarts=0)
        errors.append(np.log([found.encoder_rate / ALPHA, found.decoder_rate / BETA]))
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 10, rtol=0.2)


def descended(rate, steps):
    """Two points, one output bias and a linear hidden layer, dh along the decoder gradient; states, loss and learning
    rate of full-batch descent."""
    inputs, targets = np.array([[-0.5], [0.5]]), np.array([[0.6, 0.1], [1.4, -0.2]])
    first, second, bias = np.outer([0.06, 0.08], [1.0]), np.outer([0.1, 0.1], [0.6, 0.8]), np.zeros(2)
    states, losses = [], []
    for _ in range(steps):
        hidden = inputs @ first.T
        wrong = hidden @ second.T + bias - targets
        states.append(
            two_points.state(hidden[1] - hidden[0], second @ (hidden[1] - hidden[0]), targets[1] - targets[0])
        )
        losses.append((wrong**2).sum() / 4)
        first, second = first - rate / 2 * second.T @ wrong.T @ inputs, second - rate / 2 * wrong.T @ hidden
        bias = bias - rate * wrong.mean(axis=0)
    return np.arange(steps), np.array(states), np.array(losses), 1.0, ((targets[1] - targets[0]) ** 2).sum()


def test_a_linear_network_has_half_its_learning_rate_as_alpha_and_beta_and_the_whole_as_gamma():
    error = []
    for rate in (0.04, 0.02, 0.01):
        found = rate_fit.fit(*descended(rate, round(40 / rate)), rng=3, restarts=0)
        assert np.all(found.r_squared > 0.9999)
        error.append(
            np.array([found.encoder_rate, found.decoder_rate, found.mean_rate]) / [rate / 2, rate / 2, rate] - 1
        )
    assert np.abs(error[0]).max() < 0.05
    np.testing.assert_allclose(np.divide(error[:-1], error[1:]), 2, rtol=0.1)  # an Euler step is of first order


# --- definitions and symmetries -------------------------------------------------------------------


def misfitted():
    """Curves of the theory with the pulse of w shifted and a drift on a, at uneven times."""
    times = END * np.linspace(0, 1, 300) ** 1.5
    states, loss = measured(times=times)
    states[:, 2] += 0.3 * states[:, 2].min() * np.sin(times / 500)
    states[:, 0] *= 1 + 0.3 * times / END
    return times, states, loss


@pytest.mark.parametrize("weighting", ["raw", "range"])
def test_determination_and_cost_are_integrals_over_time(weighting):
    times, states, loss = misfitted()
    found = rate_fit.fit(times, states, loss, X, Y, rng=3, weighting=weighting)
    fitted = two_points.trajectory(times, states[0], X, Y, found.encoder_rate, found.decoder_rate)
    np.testing.assert_allclose(found.r_squared, determination(states, fitted, times), rtol=1e-9)
    unit = np.ptp(states, axis=0) if weighting == "range" else 1
    assert found.cost == pytest.approx(np.trapezoid((((states - fitted) / unit) ** 2).sum(axis=1), times), rel=1e-9)
    mean = (loss[0] - (2 * states[0, 2] - states[0, 1] + Y) / 8) * np.exp(-2 * found.mean_rate * times)
    fitted_loss = mean + (2 * fitted[:, 2] - fitted[:, 1] + Y) / 8
    assert found.loss_r_squared == pytest.approx(determination(loss, fitted_loss, times), rel=1e-9)
    assert 0.1 < found.r_squared[2] < 0.99
    # each weighting is best by its own measure, nothing near the rates is better
    for step in 0.02 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]):
        pair = np.exp(step) * [found.encoder_rate, found.decoder_rate]
        other = two_points.trajectory(times, states[0], X, Y, *pair)
        assert np.trapezoid((((states - other) / unit) ** 2).sum(axis=1), times) > found.cost


def test_gamma_is_the_best_for_the_given_alpha_and_beta():
    times, states, loss = misfitted()
    loss = loss + 0.02 * np.exp(-times / 800) * np.sin(times / 300)
    found = rate_fit.fit(times, states, loss, X, Y, rng=3)
    fitted = two_points.trajectory(times, states[0], X, Y, found.encoder_rate, found.decoder_rate)
    offset = loss[0] - (2 * states[0, 2] - states[0, 1] + Y) / 8

    def misfit(gamma):
        return np.trapezoid(
            (loss - offset * np.exp(-2 * gamma * times) - (2 * fitted[:, 2] - fitted[:, 1] + Y) / 8) ** 2, times
        )

    grid = found.mean_rate * np.exp(np.linspace(-3, 3, 601))
    assert grid[np.argmin([misfit(g) for g in grid])] == pytest.approx(found.mean_rate, rel=0.011)


def test_weightings_differ_only_where_the_theory_does_not_fit():
    times, states, loss = misfitted()
    raw, ranged = (rate_fit.fit(times, states, loss, X, Y, rng=3, weighting=kind) for kind in ("raw", "range"))
    assert abs(np.log(raw.encoder_rate / ranged.encoder_rate)) > 0.02
    assert np.all(raw.uncertainty[:2] > 0.01)


def test_units_of_time_and_of_the_inputs_and_the_first_time_change_nothing():
    times, states, loss = misfitted()
    found = rate_fit.fit(times, states, loss, X, Y, rng=3)
    scaled = rate_fit.fit(1e-7 * times, states, loss, 9 * X, Y, rng=3)
    np.testing.assert_allclose(scaled.encoder_rate, found.encoder_rate * 1e7 / 9, rtol=1e-6)
    np.testing.assert_allclose(
        [scaled.decoder_rate, scaled.mean_rate], np.multiply([found.decoder_rate, found.mean_rate], 1e7), rtol=1e-6
    )
    np.testing.assert_allclose(scaled.r_squared, found.r_squared, rtol=1e-7)
    later = rate_fit.fit(times + 500, states, loss, X, Y, rng=3)
    np.testing.assert_allclose(
        [later.encoder_rate, later.decoder_rate, later.cost],
        [found.encoder_rate, found.decoder_rate, found.cost],
        rtol=1e-6,
    )


def test_the_seed_alone_decides_and_the_given_start_replaces_a_noisy_one():
    times, states, loss = misfitted()
    runs = [
        rate_fit.fit(times, states, loss, X, Y, rng=seed) for seed in (4, 4, np.random.default_rng(np.random.SFC64(4)))
    ]
    assert runs[0].cost == runs[1].cost == runs[2].cost and runs[0].encoder_rate == runs[1].encoder_rate
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
        """Eq. (17) for one output with a decoder gradient of squared length v: no assumption on the direction of dh."""

        def slope(_, state):
            a, c, squared = state
            e = c - np.sqrt(Y)
            return [-alpha * X * e * c, -e * (beta * a + alpha * X * squared) / 2, -beta * e * c]

        a, c, _ = solve_ivp(
            slope, (0, times[-1]), [0.01, 0.01, v], method="LSODA", t_eval=times, rtol=1e-9, atol=1e-11
        ).y
        times[:] = np.nan  # its own copy
        return np.stack([a, c**2, c * (c - np.sqrt(Y))], axis=1)

    times = np.linspace(0, 8000, 200)
    states = one_output(times.copy(), ALPHA, BETA)
    loss = 0.1 * np.exp(-2 * GAMMA * times) + (2 * states[:, 2] - states[:, 1] + Y) / 8
    free = rate_fit.fit(times, states, loss, X, Y, rng=3, model=one_output, restarts=0)
    np.testing.assert_allclose([free.encoder_rate, free.decoder_rate, free.mean_rate], [ALPHA, BETA, GAMMA], rtol=1e-4)
    closed = rate_fit.fit(times, states, loss, X, Y, rng=3)
    assert closed.cost > 100 * free.cost
    for wrong in (np.zeros((3, 200)), np.full((200, 3), np.nan)):
        with pytest.raises(ValueError, match=r"^model must "):
            rate_fit.fit(times, states, loss, X, Y, rng=3, model=lambda *_, wrong=wrong: wrong)


# --- bad input: every public function, every argument ---------------------------------------------

T5 = np.linspace(0, END, 60)
STATES, LOSS = measured(times=T5)
GOOD = {
    "times": T5,
    "states": STATES,
    "loss": LOSS,
    "input_distance": X,
    "target_distance": Y,
    "start": START,
    "final_loss": 1e-3,
}
CALLS = {
    rate_fit.fit: GOOD | {"rng": 1, "weighting": "raw", "restarts": 0, "model": None},
}
NUMBERS = [np.nan, np.inf, -1.0, "1", None, [0.1], True, 1j]
BAD = {
    "times": [*AXIS, T5[:4], T5[::-1], T5 - 1],
    "states": [STATES[:-1], STATES.T, STATES[:, :2], STATES + np.nan, STATES * np.inf, "s", None, 1.0, 1j * STATES],
    "loss": [np.full(60, np.nan), np.ones((2, 3, 4)), [], "loss", None, 1.0, [1j, 0j]],
    "input_distance": [0, *NUMBERS],
    "target_distance": NUMBERS,
    "start": [[0.0, 1e-4, 0.0], [0.01, -1e-4, 0.0], [0.01, 1e-4, 0.5], [np.nan, 0, 0], START[:2], "s", 1.0, [START]],
    "final_loss": [0, *NUMBERS],
    "rng": [None, -1, 1.5, "seed", True],
    "weighting": ["both", None, 1, b"raw"],
    "restarts": [-1, 1.0, "1", None, True],
    "model": ["model", 1, START],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, {"times": "times|states"})

"""rate_fit where no rate can be found: flagged where one curve says nothing, refused where the run has not ended."""

import numpy as np
import pytest
from rate_fit_data import BETA, START, TIMES, X, Y, measured

from lib.representations import rate_fit


def test_identical_targets_are_fitted():
    start, times = [2.0, 0.3, 0.3], np.linspace(0, 40, 300)
    found = rate_fit.fit(times, *measured(start, 1.0, 0.0, 0.4, 0.5, 0.2, times), 1.0, 0.0, rng=3)
    np.testing.assert_allclose([found.encoder_rate, found.decoder_rate, found.mean_rate], [0.4, 0.5, 0.2], rtol=1e-5)


def test_alpha_is_flagged_where_the_hidden_distance_hardly_moves():
    start, times = np.array([1000.0, 0.02, -0.08]), np.linspace(0, 60, 400)
    for noise, expected in ((0.0, True), (0.01, False)):
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


def test_gamma_is_flagged_where_the_mean_output_is_right_from_the_start_or_has_no_time_to_move():
    states, _ = measured()
    difference = (2 * states[:, 2] - states[:, 1] + Y) / 8
    found = rate_fit.fit(TIMES, states, difference, X, Y, rng=3)
    assert (
        np.isnan(found.mean_rate)
        and found.uncertainty[2] == np.inf
        and found.identifiable.tolist() == [True, True, False]
    )
    assert found.loss_r_squared == pytest.approx(1, abs=1e-9)
    at_once = difference + 0.1 * (TIMES == 0)
    assert not rate_fit.fit(TIMES, states, at_once, X, Y, rng=3).identifiable[2]


def test_runs_that_rest_or_have_not_ended_are_refused():
    states, loss = measured()
    with pytest.raises(ValueError, match=r"^loss must end below 0.001"):
        rate_fit.fit(TIMES[:200], states[:200], loss[:200], X, Y, rng=3)
    assert rate_fit.fit(TIMES, states, loss + 0.01, X, Y, rng=3, final_loss=0.02).decoder_rate == pytest.approx(
        BETA, rel=1e-5
    )
    stuck = states.copy()
    stuck[:, 0] = 0.01
    with pytest.raises(ValueError, match=r"^states must change in the course"):
        rate_fit.fit(TIMES, stuck, loss, X, Y, rng=3)
    with pytest.raises(ValueError, match=r"^loss must change in the course"):
        rate_fit.fit(TIMES, states, np.zeros(TIMES.size), X, Y, rng=3)
    far = states.copy()
    far[:, 2] += 0.5  # ‖e‖² stays away from zero although the loss goes
    far[0] = START
    with pytest.raises(ValueError, match=r"^states must reach half"):
        rate_fit.fit(TIMES, far, loss, X, Y, rng=3)
    resting = [0.01, 0.5, 0.0]  # b = Y, w = 0
    with pytest.raises(ValueError, match=r"^start must not rest"):
        rate_fit.fit(TIMES, states, loss, X, Y, rng=3, start=resting)

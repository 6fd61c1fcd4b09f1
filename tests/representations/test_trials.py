"""trials: stacks give what single trainings and single fits give, and unfinished trials stay out of the fits."""

import pickle
from dataclasses import fields, replace

import joblib
import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, exercised

from lib.representations import architectures, nets, rate_fit, tasks, training, trials
from lib.services import sweep

INPUTS, TARGETS = tasks.two_points()
SHALLOW = architectures.experiment("shallow")
SMALL = replace(SHALLOW, net=replace(SHALLOW.net, width=40), gain=0.6)
SHORT = replace(SMALL, epochs=20)


def children(seed, count):
    return np.random.SeedSequence(seed).spawn(count)


def same(one, other):
    for field in fields(one):
        if field.name != "parameters":
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_a_run_is_draw_and_train():
    row = replace(SHORT, net=replace(SHORT.net, dropout=0.2))
    start = nets.draw(row.net, row.gain, 3, rng=5, precision="float32")
    direct = training.train(
        row.net, start, INPUTS, TARGETS, row.learning_rate, 20, loss="half", rng=5, record_every=5, points=(0, 1)
    )
    found = trials.run(row, INPUTS, TARGETS, 3, 5, record_every=5, points=(0, 1), keep_parameters=True)
    same(found, direct)
    assert all(np.array_equal(a, b) for a, b in zip(found.parameters.weights, direct.parameters.weights))
    assert trials.run(row, INPUTS, TARGETS, 3, 5).parameters is None


def test_stacks_are_those_of_the_seeds_children_whatever_the_number_of_workers():
    found = trials.many(SHORT, INPUTS, TARGETS, 5, 7, together=2, record_every=10)
    parts = [
        trials.run(SHORT, INPUTS, TARGETS, size, child, record_every=10)
        for size, child in zip((2, 2, 1), children(7, 3))
    ]
    same(found, trials._join(parts))
    np.testing.assert_array_equal(found.loss, np.concatenate([part.loss for part in parts]))
    same(found, trials.many(SHORT, INPUTS, TARGETS, 5, 7, together=2, record_every=10, workers=2))


def test_small_nets_are_stacked_and_wide_ones_are_not(monkeypatch):
    sizes = []
    monkeypatch.setattr(
        sweep,
        "run",
        lambda task, settings, rng, workers: (
            sizes.append([s["trials"] for s in settings]) or [task(**settings[0], rng=1)]
        ),
    )
    for width in (trials.STACKED, trials.STACKED + 1):
        trials.many(replace(SHORT, net=replace(SHORT.net, width=width), epochs=1), INPUTS, TARGETS, 3, 1)
    assert sizes == [[3], [1, 1, 1]]


def test_joined_curves_of_several_layers_and_without_hidden_vectors():
    layers = [
        trials.run(SHORT, INPUTS, TARGETS, 2, seed, record_every=10, layer=(1, 2), points=(0, 1)) for seed in (1, 2)
    ]
    both = trials._join(layers)
    assert both.squared_hidden_distance.shape == (4, 3, 2) and [h.shape for h in both.hidden] == [(4, 3, 2, 40)] * 2
    np.testing.assert_array_equal(both.hidden[1][2:], layers[1].hidden[1])
    assert trials._join([trials.run(SHORT, INPUTS, TARGETS, 1, seed) for seed in (1, 2)]).hidden is None


def test_states_are_the_measured_ones_and_a_layer_must_be_named():
    curves = trials.run(SHORT, INPUTS, TARGETS, 2, 1, record_every=10, layer=(1, 2))
    found = trials.states(curves, layer=1)
    np.testing.assert_array_equal(found[..., 0], curves.squared_hidden_distance[..., 1])
    np.testing.assert_allclose(
        found[..., 2], found[..., 1] - curves.output_difference[..., 0] * (TARGETS[1] - TARGETS[0]), rtol=1e-12
    )
    one = trials.run(SHORT, INPUTS, TARGETS, 2, 1, record_every=10, layer=2)
    np.testing.assert_array_equal(trials.states(one), found)
    np.testing.assert_array_equal(trials.states(one, layer=0), found)
    for wrong, layer in ((curves, None), (curves, 2), (one, 1)):
        with pytest.raises(ValueError, match="^layer must "):
            trials.states(wrong, layer=layer)


def test_fits_are_those_of_the_single_trials_and_leave_out_what_has_not_converged():
    curves = trials.run(SMALL, INPUTS, TARGETS, 3, 2, record_every=40)
    loss = curves.loss.copy()
    loss[1, -1] = 0.01
    curves = replace(curves, loss=loss)
    found = trials.fits(curves, 1.0, 0.5, 4)
    assert found.converged.tolist() == [True, False, True]
    for t in (0, 2):
        one = rate_fit.fit(
            curves.epochs, trials.states(curves)[t], loss[t], 1.0, 0.5, rng=children(4, 3)[t], restarts=2
        )
        assert (one.encoder_rate, one.decoder_rate, one.mean_rate) == (
            found.encoder_rate[t],
            found.decoder_rate[t],
            found.mean_rate[t],
        )
        np.testing.assert_array_equal(one.r_squared, found.r_squared[t])
        assert one.loss_r_squared == found.loss_r_squared[t] and one.cost == found.cost[t]
        np.testing.assert_array_equal(one.identifiable[:2], found.identifiable[t])
    assert np.all(np.isnan(found.r_squared[1])) and np.isnan(found.encoder_rate[1]) and not found.identifiable[1].any()
    # The source's claim for a shallow net, at a tenth of its width: two rates reproduce both distances.
    assert np.all(found.r_squared[[0, 2], :2] > 0.97)


def test_a_fit_can_leave_the_plateau_out():
    curves = trials.run(SMALL, INPUTS, TARGETS, 2, 2, record_every=20)
    found = trials.fits(curves, 1.0, 0.5, 4, from_output=0.02)
    for t, child in enumerate(children(4, 2)):
        b = curves.squared_output_distance[t]
        first = np.flatnonzero(b < 0.01)[-1] + 1
        assert first > 1 and np.all(b[first:] >= 0.01)
        kept = (curves.epochs[first:], trials.states(curves)[t, first:], curves.loss[t, first:], 1.0, 0.5)
        one = rate_fit.fit(*kept, rng=child, restarts=2)
        np.testing.assert_allclose(one.r_squared, found.r_squared[t], rtol=1e-9)
        assert found.encoder_rate[t] == pytest.approx(one.encoder_rate, rel=1e-6)
    whole = trials.fits(curves, 1.0, 0.5, 4)
    np.testing.assert_array_equal(whole.r_squared, trials.fits(curves, 1.0, 0.5, 4, from_output=0.0).r_squared)


def test_starts_are_those_that_many_trains():
    still = replace(SHORT, learning_rate=1e-300, epochs=1)  # parameters of single precision do not move
    found = trials.starts(SHORT, 3, 7, together=2)
    for t, (stack, place) in enumerate(((0, 0), (0, 1), (1, 0))):
        part = trials.run(still, INPUTS, TARGETS, 2 - stack, children(7, 2)[stack], keep_parameters=True).parameters
        assert all(np.array_equal(mine[t], theirs[place]) for mine, theirs in zip(found.weights, part.weights))
    a = nets.values(SHORT.net, found, INPUTS)[SHORT.net.middle - 1]
    run = trials.many(SHORT, INPUTS, TARGETS, 3, 7, together=2)
    np.testing.assert_allclose(((a[:, 1] - a[:, 0]) ** 2).sum(axis=1), run.squared_hidden_distance[:, 0], rtol=1e-5)


def test_a_net_pickles_alike_before_and_after_use():
    fresh, used = nets.Net(1, 1, 40, 2), nets.Net(1, 1, 40, 2)
    assert used.layers and joblib.hash(fresh) == joblib.hash(used)
    assert pickle.loads(pickle.dumps(used)) == fresh and pickle.loads(pickle.dumps(used)).layers == used.layers


def test_options_of_the_training_are_checked():
    with pytest.raises(ValueError, match="^optimizer must "):
        trials.run(SHORT, INPUTS, TARGETS, 2, 1, optimizer="newton")


EXPERIMENT = {"experiment": SHORT, "inputs": INPUTS, "targets": TARGETS, "trials": 2, "rng": 1}
CURVES = trials.run(SMALL, INPUTS, TARGETS, 1, 1, record_every=100)
CALLS = {
    trials.run: EXPERIMENT | {"precision": "float64", "keep_parameters": True},
    trials.many: EXPERIMENT | {"together": 2, "workers": 1},
    trials.starts: {"experiment": SHORT, "trials": 2, "rng": 1, "together": 2, "precision": "float64"},
    trials.states: {"curves": CURVES, "layer": 0},
    trials.fits: {
        "curves": CURVES,
        "input_distance": 1.0,
        "target_distance": 0.5,
        "rng": 1,
        "layer": 0,
        "final_loss": 1e-3,
    }
    | {"weighting": "raw", "restarts": 1, "from_output": 0.02},
}
BAD = {
    "experiment": ["narrow", None, SHORT.net],
    "inputs": [[], np.zeros((2, 2)), np.full((2, 1), np.nan), "x", None],
    "targets": [[], np.zeros((3, 1)), np.full((2, 1), np.nan), "x", None],
    "trials": COUNT,
    "rng": SEED,
    "precision": ["float16", 32, None],
    "keep_parameters": [0, 1, "yes", None],
    "together": [bad for bad in COUNT if bad is not None],
    "workers": [bad for bad in COUNT if bad is not None],
    "curves": [None, "x", CURVES.loss],
    "layer": [-1, 1, 1.0, "1", True],
    "input_distance": NUMBER,
    "target_distance": [bad for bad in NUMBER if bad is True or bad != 0],
    "final_loss": NUMBER,
    "weighting": ["log", None, 1],
    "from_output": [-0.1, 1.0, np.nan, "0", None, True],
    "restarts": [-1, 1.0, "1", None, True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)

"""trials: stacks give what single trainings and single fits give, and unfinished replicas stay out of the fits."""

from dataclasses import fields, replace

import numpy as np
import pytest

from lib.representations import architectures, rate_fit, tasks, trials
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
            np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name))


def trained(row, rng, count, **options):
    start = row.net.draw(row.gain, count, rng, precision="float32")
    given = INPUTS, TARGETS, row.learning_rate, row.epochs
    return row.net.train(start, *given, loss=row.loss, rng=rng, **options)


def test_one_stack_is_drawn_from_the_first_child_and_trained():
    row, options = replace(SHORT, net=replace(SHORT.net, dropout=0.2)), {"record_every": 5, "points": (0, 1)}
    direct = trained(row, children(5, 1)[0], 3, **options)
    found = trials.many(row, INPUTS, TARGETS, 3, 5, keep_parameters=True, **options)
    same(found, direct)
    assert all(np.array_equal(a, b) for a, b in zip(found.parameters.weights, direct.parameters.weights))
    assert trials.many(row, INPUTS, TARGETS, 3, 5).parameters is None
    with pytest.raises(ValueError, match="^optimizer must "):
        trials.many(SHORT, INPUTS, TARGETS, 2, 1, optimizer="newton")
    with pytest.raises(ValueError, match="^keep_parameters must "):
        trials.many(SHORT, INPUTS, TARGETS, 2, 1, keep_parameters="no")


def test_stacks_are_those_of_the_seeds_children():
    found = trials.many(SHORT, INPUTS, TARGETS, 5, 7, together=2, record_every=10, layer=(1, 2), points=(0, 1))
    parts = [
        trained(SHORT, child, size, record_every=10, layer=(1, 2), points=(0, 1))
        for size, child in zip((2, 2, 1), children(7, 3))
    ]
    np.testing.assert_array_equal(found.loss, np.concatenate([part.loss for part in parts]))
    np.testing.assert_array_equal(found.states(layer=1), np.concatenate([part.states(layer=1) for part in parts]))
    for layer in (0, 1):
        np.testing.assert_array_equal(found.hidden[layer], np.concatenate([part.hidden[layer] for part in parts]))
    assert trials.many(SHORT, INPUTS, TARGETS, 3, 7, together=2).hidden is None


@pytest.mark.parametrize(("width", "sizes"), [(trials.STACKED, [3]), (trials.STACKED + 1, [1, 1, 1])])
def test_small_nets_are_stacked_and_wide_ones_are_not(width, sizes, monkeypatch):
    found = []

    def run(task, settings, rng, workers):
        found.extend(setting["replicas"] for setting in settings)
        return [task(**settings[0], rng=1)]

    monkeypatch.setattr(sweep, "run", run)
    row = replace(SHORT, net=replace(SHORT.net, width=width), epochs=1)
    trials.many(row, INPUTS, TARGETS, 3, 1)
    assert found == sizes


def test_starts_are_those_that_many_trains():
    found = trials.starts(SHORT, 3, 7, together=2)
    one, two = (SHORT.net.draw(SHORT.gain, size, c, precision="float32") for size, c in zip((2, 1), children(7, 2)))
    for kind in ("weights", "biases"):
        for mine, *theirs in zip(*(getattr(part, kind) for part in (found, one, two)), strict=True):
            np.testing.assert_array_equal(mine, np.concatenate(theirs))
    h = SHORT.net.values(found, INPUTS)[SHORT.net.middle - 1]
    run = trials.many(SHORT, INPUTS, TARGETS, 3, 7, together=2)
    np.testing.assert_allclose(((h[:, 1] - h[:, 0]) ** 2).sum(axis=1), run.squared_hidden_distance[:, 0], rtol=1e-5)


def test_fits_are_those_of_single_replicas_and_leave_out_what_has_not_converged():
    curves = trials.many(SMALL, INPUTS, TARGETS, 3, 2, record_every=40)
    loss = curves.loss.copy()
    loss[1, -1] = 0.01
    curves = replace(curves, loss=loss)
    found = trials.fits(curves, 1.0, 0.5, 4)
    assert found.converged.tolist() == [True, False, True]
    for r in (0, 2):
        measured = curves.epochs, curves.states()[r], loss[r], 1.0, 0.5
        one = rate_fit.fit(*measured, rng=children(4, 3)[r], restarts=2)
        for field in fields(found)[1:]:
            np.testing.assert_array_equal(getattr(found, field.name)[r], getattr(one, field.name))
    assert np.all(np.isnan(found.r_squared[1])) and np.isnan(found.encoder_rate[1]) and not found.identifiable[1].any()
    # The source's claim for a shallow net, at a tenth of its width: two rates reproduce both distances.
    assert np.all(found.r_squared[[0, 2], :2] > 0.97)


def test_a_fit_can_leave_the_plateau_out():
    curves = trials.many(SMALL, INPUTS, TARGETS, 2, 2, record_every=20)
    found = trials.fits(curves, 1.0, 0.5, 4, from_output=0.02)
    for r, child in enumerate(children(4, 2)):
        b = curves.squared_output_distance[r]
        first = np.flatnonzero(b < 0.01)[-1] + 1
        assert first > 1 and np.all(b[first:] >= 0.01)
        kept = curves.epochs[first:], curves.states()[r, first:], curves.loss[r, first:], 1.0, 0.5
        one = rate_fit.fit(*kept, rng=child, restarts=2)
        np.testing.assert_allclose(one.r_squared, found.r_squared[r], rtol=1e-9)
        assert found.encoder_rate[r] == pytest.approx(one.encoder_rate, rel=1e-6)

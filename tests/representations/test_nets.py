"""nets against torch's own layers and autograd, exact solutions of a linear network, and in short experiments."""

import pickle

import joblib
import numpy as np
import pytest
import torch
from net_reference import GOOD, MISFITS, NET, NETS, leaves, moved, only, outputs

from lib.representations import nets
from lib.representations.nets import Net
from lib.representations.two_points import TwoArrows

TWO = [[-1.0], [0.0]], [[0.6], [0.6 + np.sqrt(0.5)]]


@pytest.mark.parametrize("name", NETS)
def test_values_are_those_of_torch_layers(name):
    net, random = NETS[name], np.random.default_rng(1)
    parameters = moved(net.draw(1.3, 3, rng=4), 0.2, random)
    x = random.standard_normal((5, net.inputs))
    found = net.values(parameters, x)
    for replica in range(3):
        expected = outputs(net, *leaves(parameters, replica), torch.tensor(x))
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine[replica], theirs.detach().numpy(), rtol=0, atol=1e-13)


def test_weights_are_xavier_normal_and_biases_zero():
    gain, replicas = 0.7, 400
    for net, fans in [
        (Net(4, 2, 30, 3), [(4, 30), (30, 30), (30, 30), (30, 2)]),
        (Net(4, 2, 20, 2, channels=3, kernel=5), [(4, 20), (5, 15), (15, 15), (15, 5), (8, 2)]),
    ]:
        parameters = net.draw(gain, replicas, rng=2)
        for weight, (fan_in, fan_out) in zip(parameters.weights, fans, strict=True):
            variance = 2 * gain**2 / (fan_in + fan_out)
            assert abs(weight.mean()) < 4 * np.sqrt(variance / weight.size)
            assert weight.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / weight.size))
            assert np.all(np.abs(np.corrcoef(weight[:4].reshape(4, -1))[0, 1:]) < 5 / np.sqrt(weight[0].size))
        assert all(np.all(bias == 0) for bias in parameters.biases)


def test_a_replica_does_not_know_how_many_there_are_nor_what_was_spawned():
    net, sequence = Net(2, 1, 8, 2), np.random.SeedSequence(5)
    few = net.draw(1.0, 2, rng=5)
    sequence.spawn(3)
    many = net.draw(1.0, 6, rng=sequence)
    for a, b in zip(few.weights, only(many, 0, 1).weights):
        np.testing.assert_array_equal(a, b)
    single = net.draw(1.0, 2, rng=5, precision="float32")
    np.testing.assert_allclose(single.weights[0], few.weights[0], rtol=1e-6)
    assert {found.dtype for found in net.values(single, [[1.0, 2.0]])} == {np.dtype(np.float32)}


def test_what_a_call_leaves_alone():
    net = Net(2, 1, 8, 2)
    parameters, x = net.draw(1.0, 2, rng=5), np.ones((1, 2))
    before = [array.copy() for array in (*parameters.weights, x)]
    for found in net.values(parameters, x):
        found += 1
    for array, old in zip((*parameters.weights, x), before):
        np.testing.assert_array_equal(array, old)


def test_layers_of_the_source_and_the_biases_that_are_trained():
    assert [Net(1, 1, 5, depth).middle for depth in (1, 2, 4, 20)] == [1, 2, 3, 11]
    trained = {kind: Net(1, 1, 5, 2, biases=kind).trained_biases for kind in nets.BIASES}
    assert trained == {"all": (True,) * 3, "output": (False, False, True), "none": (False,) * 3}


def test_a_net_pickles_alike_before_and_after_use():
    fresh, used = Net(1, 1, 40, 2), Net(1, 1, 40, 2)
    assert used.layers and joblib.hash(fresh) == joblib.hash(used)
    assert pickle.loads(pickle.dumps(used)) == fresh and pickle.loads(pickle.dumps(used)).layers == used.layers


@pytest.mark.parametrize("parameters", MISFITS)
def test_parameters_that_do_not_fit_are_refused(parameters):
    NET.values(GOOD, [[1.0, 2.0]])
    with pytest.raises(ValueError, match="^parameters must "):
        NET.values(parameters, [[1.0, 2.0]])


@pytest.mark.parametrize("inputs", [np.ones(2), np.ones((2, 3)), np.ones((0, 2))])
def test_points_that_do_not_fit_are_refused(inputs):
    with pytest.raises(ValueError, match="^inputs must "):
        NET.values(GOOD, inputs)


@pytest.mark.parametrize(
    ("name", "given"), [("kernel", {"kernel": 5}), ("skip", {"skip": True}), ("kernel", {"channels": None})]
)
def test_a_net_is_refused_by_the_name_of_a_field_that_does_not_fit_the_others(name, given):
    with pytest.raises(ValueError, match=f"^{name} must "):
        Net(**{"inputs": 2, "outputs": 1, "width": 9, "depth": 2, "channels": 2, "kernel": 3} | given)


def test_small_integers_do_not_wrap():
    given = {"inputs": np.uint8(3), "outputs": np.uint8(2), "width": np.uint8(200), "depth": np.uint8(2)}
    given |= {"channels": np.uint8(20), "kernel": np.uint8(30)}
    net, wide = Net(**given), Net(**{name: int(value) for name, value in given.items()})
    assert net == wide and net.layers == wide.layers


# --- training -------------------------------------------------------------------------------------


def drawn(net, replicas, points, seed=1, precision="float64"):
    """Parameters with biases that are not zero, inputs and targets."""
    random = np.random.default_rng(seed)
    parameters = moved(net.draw(1.1, replicas, rng=seed, precision=precision), 0.1, random)
    return parameters, random.standard_normal((points, net.inputs)), random.standard_normal((points, net.outputs))


def own_stream(seed, replica):
    """The documented stream of a replica: the first child of the replica's child."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(replica, 0))))


def by_autograd(net, parameters, replica, x, y, rate, epochs, *, scale, optimizer, batch, rng):
    """Final weights and biases of one replica by torch.nn and torch.optim; random numbers from its own stream."""
    weights, biases = leaves(parameters, replica)
    x, y = torch.tensor(x, dtype=weights[0].dtype), torch.tensor(y, dtype=weights[0].dtype)
    trained = weights + [b for b, moves in zip(biases, net.trained_biases) if moves]
    step = {"descent": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer](trained, lr=rate)
    random, kept = own_stream(rng, replica), None
    sizes = [net.inputs] + [len(h[0]) for h in outputs(net, weights, biases, x)[:-1]]
    for _ in range(epochs):
        order = np.arange(len(x)) if batch in (None, len(x)) else random.permutation(len(x))
        for first in range(0, len(x), batch or len(x)):
            some = order[first : first + (batch or len(x))]
            if net.dropout:
                numbers = random.random((len(some), sum(sizes)), dtype=np.float32)
                masks = torch.tensor(numbers >= np.float32(net.dropout)).to(x.dtype) / (1 - net.dropout)
                kept = masks.split(sizes, dim=1)
            step.zero_grad()
            (scale * ((outputs(net, weights, biases, x[some], kept)[-1] - y[some]) ** 2).sum(1).mean()).backward()
            step.step()
    return [p.detach().numpy() for p in (*weights, *biases)]


def agree(net, parameters, x, y, rate, epochs, close, *, loss="half", **options):
    end = net.train(parameters, x, y, rate, epochs, loss=loss, **options).parameters
    for replica in range(len(parameters.weights[0])):
        scale = {"half": 0.5, "whole": 1.0}[loss]
        expected = by_autograd(net, parameters, replica, x, y, rate, epochs, scale=scale, **options)
        for mine, theirs in zip((*end.weights, *end.biases), expected, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine[replica], theirs, rtol=0, atol=close)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize(("optimizer", "loss"), [("descent", "half"), ("descent", "whole"), ("adam", "whole")])
def test_three_steps_are_those_of_autograd(name, optimizer, loss):
    options = {"optimizer": optimizer, "loss": loss, "batch": None, "rng": 7}
    agree(NETS[name], *drawn(NETS[name], 2, 4), 0.02, 3, 1e-12 if optimizer == "descent" else 1e-10, **options)


def test_three_steps_with_one_divisor():
    net, (start, x, y) = NETS["leaky_relu"], drawn(NETS["leaky_relu"], 2, 4)
    end = net.train(start, x, y, 0.02, 3, optimizer="one divisor").parameters
    for replica in range(2):
        weights, biases = leaves(start, replica)
        trained, mean, square = [*weights, *(b for b, moves in zip(biases, net.trained_biases) if moves)], 0, 0
        for t in (1, 2, 3):
            loss = ((outputs(net, weights, biases, torch.tensor(x))[-1] - torch.tensor(y)) ** 2).sum(1).mean() / 2
            slope = torch.cat([part.flatten() for part in torch.autograd.grad(loss, trained)])
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope.square().mean()
            step = 0.02 * mean / (1 - 0.9**t) / ((square / (1 - 0.999**t)).sqrt() + 1e-8)
            with torch.no_grad():
                for tensor, part in zip(trained, step.split([tensor.numel() for tensor in trained])):
                    tensor -= part.reshape(tensor.shape)
        for mine, theirs in zip((*end.weights, *end.biases), (*weights, *biases), strict=True):
            np.testing.assert_allclose(mine[replica], theirs.detach().numpy(), rtol=0, atol=1e-12)


def test_three_steps_in_float32():
    given = drawn(NETS["leaky_relu"], 1, 4, precision="float32")
    agree(NETS["leaky_relu"], *given, 0.02, 3, 1e-6, optimizer="descent", batch=None, rng=0)


@pytest.mark.parametrize("name", ["tanh", "dropout"])
def test_minibatches_share_out_a_permutation(name):
    net, options = NETS[name], {"optimizer": "descent", "rng": 3}
    given = drawn(net, 2, 10)
    agree(net, *given, 0.02, 2, 1e-12, batch=4, **options)
    whole, none = (net.train(*given, 0.02, 2, batch=batch, **options) for batch in (10, None))
    np.testing.assert_array_equal(whole.loss, none.loss)


@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-13), ("float32", 2e-6)])
@pytest.mark.parametrize(
    ("name", "options", "some"),
    [
        ("leaky_relu", {}, [(0, 1, 2), (0,), (4,)]),  # without random numbers any replica can stand alone
        ("convolution", {}, [(4,)]),
        ("skip and dropout", {"rng": 5}, [(0, 1), (0,)]),
        ("swish", {"rng": 5, "batch": 3, "optimizer": "adam"}, [(0, 1), (0,)]),
    ],
)
def test_a_replica_trains_alone_as_it_does_among_others(name, options, some, precision, close):
    # the same up to rounding: torch takes other vector instructions for the last entries of an array
    net, (_, x, y) = NETS[name], drawn(NETS[name], 1, 8)
    start = net.draw(1.2, 7, rng=2, precision=precision)
    together = net.train(start, x, y, 0.01, 5, **options)
    for replicas in some:
        few = net.train(only(start, *replicas), x, y, 0.01, 5, **options)
        np.testing.assert_allclose(few.loss, together.loss[list(replicas)], rtol=close)
        for mine, theirs in zip(few.parameters.weights, together.parameters.weights, strict=True):
            np.testing.assert_allclose(mine, theirs[list(replicas)], rtol=0, atol=close)


@pytest.mark.parametrize("name", ["leaky_relu", "skip and dropout", "convolution"])
def test_observables_are_those_of_the_network_at_that_epoch(name):
    net, (parameters, x, y) = NETS[name], drawn(NETS[name], 3, 6)
    options = {"rng": 2, "batch": 4, "pair": (4, 1), "points": (0, 5), "layer": (1, 3), "record_every": 3}
    run = net.train(parameters, x, y, 0.02, 6, **options)
    assert run.epochs.tolist() == [0, 3, 6]
    for slot, state in [(0, parameters), (2, run.parameters)]:
        *hidden, f = net.values(state, x)
        for k, h in enumerate((hidden[0], hidden[2])):
            a = ((h[:, 4] - h[:, 1]) ** 2).sum(1)
            np.testing.assert_allclose(run.squared_hidden_distance[:, slot, k], a, rtol=1e-12)
            np.testing.assert_array_equal(run.hidden[k][:, slot], h[:, [0, 5]])
        apart = f[:, 1] - f[:, 4]
        w = (apart * (apart - y[1] + y[4])).sum(1)
        np.testing.assert_allclose(run.output_difference[:, slot], apart, rtol=1e-12)
        np.testing.assert_allclose(run.squared_output_distance[:, slot], (apart**2).sum(1), rtol=1e-12)
        np.testing.assert_allclose(run.alignment[:, slot], w, atol=1e-12)
        np.testing.assert_allclose(run.mean_output[:, slot], (f[:, 1] + f[:, 4]) / 2, rtol=1e-12)
        np.testing.assert_allclose(run.loss[:, slot], ((f - y) ** 2).sum(2).mean(1) / 2, rtol=1e-12)
    states = run.states(layer=1)
    np.testing.assert_array_equal(states[..., 0], run.squared_hidden_distance[:, :, 1])
    np.testing.assert_array_equal(states[..., 1], run.squared_output_distance)
    np.testing.assert_array_equal(states[..., 2], run.alignment)
    one = net.train(parameters, x, y, 0.02, 6, **options | {"layer": 3})
    np.testing.assert_array_equal(one.states(), states)
    np.testing.assert_array_equal(one.states(layer=0), states)
    np.testing.assert_array_equal(one.hidden, run.hidden[1])
    for curves, layer in ((run, None), (run, 2), (one, 1)):
        with pytest.raises(ValueError, match="^layer must "):
            curves.states(layer=layer)
    plain, middle = (net.train(parameters, x, y, 0.02, 2, rng=2, layer=n) for n in (None, net.middle))
    assert plain.hidden is None
    np.testing.assert_array_equal(plain.squared_hidden_distance, middle.squared_hidden_distance)


# --- experiments ----------------------------------------------------------------------------------


def test_descent_of_a_linear_net_is_the_exact_solution_at_half_the_rate():
    net, gap = Net(2, 1, 12, 1, "linear", biases="output"), np.sqrt(0.5)
    start = net.draw(0.6, 3, rng=8)
    x, y = np.array([[-0.4, 0.3], [0.4, -0.3]]), np.array([[0.6], [0.6 + gap]])  # centred, |Δx| = 1

    def exact(replica, rate):
        first, last = (weights[replica] for weights in start.weights)
        return TwoArrows((x[1] - x[0]) @ first, last[:, 0], gap, 1.0, rate, rate)

    errors = []
    for rate in (0.02, 0.01, 0.005):
        run = net.train(start, x, y, rate, round(40 / rate), record_every=round(0.5 / rate))
        theory = [(exact(r, rate / 2).solve(run.epochs)[0] ** 2).sum(axis=1) for r in range(3)]
        errors.append(np.abs(run.squared_hidden_distance - theory).max())
        # the output bias carries the mean, and its descent is a geometric series: the third rate is η
        mean = y.mean() * (1 - (1 - rate) ** run.epochs)
        np.testing.assert_allclose(run.mean_output[:, :, 0], np.broadcast_to(mean, (3, 81)), atol=1e-12)
    assert errors[0] < 5e-4
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1) and errors[1] / errors[2] == pytest.approx(2, abs=0.1)
    # erratum: with the printed gradients the rates would be η, and the error would stay as the step shrinks
    printed = (exact(0, rate).solve(run.epochs)[0] ** 2).sum(axis=1)
    assert np.abs(run.squared_hidden_distance[0] - printed).max() > 0.1


@pytest.mark.parametrize(("optimizer", "rate"), [("descent", 0.1), ("adam", 0.01)])
def test_a_replica_that_does_not_converge_is_counted(optimizer, rate):
    net = Net(1, 1, 20, 3, "tanh")
    start = net.draw(1.0, 4, rng=1)
    start.weights[2][3] = start.weights[3][3] = 0  # a replica at the saddle where only the output bias moves
    run = net.train(start, *TWO, rate, 2000, optimizer=optimizer, record_every=2000)
    assert run.converged().tolist() == [True, True, True, False] and run.converged(below=1e3).all()


def test_no_global_state_is_used_or_changed():
    net, (parameters, x, y) = NETS["dropout"], drawn(NETS["dropout"], 2, 6)

    def settings():
        old = np.random.get_state()[1]  # noqa: NPY002 - the old global state must stay as it is
        held = torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()
        return torch.get_rng_state().tolist(), old.tolist(), held

    before, copies = settings(), [w.copy() for w in parameters.weights]
    first, again, other = (net.train(parameters, x, y, 0.01, 4, rng=s, batch=2).loss for s in (3, 3, 4))
    assert settings() == before and np.array_equal(first, again) and not np.array_equal(first, other)
    for w, old in zip(parameters.weights, copies):
        np.testing.assert_array_equal(w, old)


# --- what is refused ------------------------------------------------------------------------------

TASK = [[1.0, 2.0], [0.0, 1.0], [2.0, 0.0]], [[1.0], [2.0], [0.0]], 0.1, 4


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_replica_that_overflows_is_named(precision):
    start = NET.draw(1.0, 3, rng=1, precision=precision)
    for w in start.weights:
        w[1] *= 60
    with pytest.raises(ValueError, match=r"^learning_rate must be small enough .* replicas \[1\] by epoch \d+$"):
        NET.train(start, [[0.0, 1.0], [1.0, 0.0]], [[0.0], [1.0]], 0.05, 400, record_every=400)


@pytest.mark.parametrize("record_every", [1, 10**5])
def test_training_ends_soon_after_an_overflow(record_every, monkeypatch):
    epochs, forward = [], Net._forward
    monkeypatch.setattr(Net, "_forward", lambda *given: epochs.append(1) or forward(*given))
    with pytest.raises(ValueError, match="^learning_rate must be small enough .* replicas .* by epoch "):
        NET.train(GOOD, [[0.0, 1.0], [1.0, 0.0]], [[0.0], [1.0]], 50.0, 10**5, record_every=record_every)
    assert len(epochs) <= 2 * nets._WATCH


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("layer", bad) for bad in (3, (1, 3), (), (0,), "1")),
        *(("pair", bad) for bad in ((0,), (0, 3), (1, 1), (0, -1), 1, "01")),
        *(("points", bad) for bad in ((3,), (1, 1), (0.0,), "0", None, 1)),
        *(("record_every", bad) for bad in (3, 5)),
        ("batch", 4),
    ],
)
def test_options_that_do_not_fit_are_refused(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must "):
        NET.train(GOOD, *TASK, rng=1, **{name: bad})


def test_parameters_and_targets_that_do_not_fit_and_a_missing_seed_are_refused():
    for misfit in MISFITS:
        with pytest.raises(ValueError, match="^start must "):
            NET.train(misfit, *TASK)
    with pytest.raises(ValueError, match="^targets must "):
        NET.train(GOOD, TASK[0], [[1.0], [2.0]], *TASK[2:])
    for net, batch in ((NETS["dropout"], None), (NETS["tanh"], 2)):
        with pytest.raises(ValueError, match="^rng must "):
            net.train(*drawn(net, 2, 6), 0.01, 4, batch=batch)

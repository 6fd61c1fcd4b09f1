"""nets against torch's own layers, the variances of its weights, and the growth of squared norms with depth."""

import numpy as np
import pytest
import torch
from bad_input import COUNT, SEED, exercised, refused
from net_reference import GOOD, NET, NETS, PARAMETERS, POINTS, leaves, moved, only, outputs

from lib.representations import nets
from lib.representations.nets import Net


@pytest.mark.parametrize("name", NETS)
def test_values_are_those_of_torch_layers(name):
    net, random = NETS[name], np.random.default_rng(1)
    parameters = moved(nets.draw(net, 1.3, 3, rng=4), 0.2, random)
    x = random.standard_normal((5, net.inputs))
    found = nets.values(net, parameters, x)
    assert len(found) == len(net.layers)
    for trial in range(3):
        expected = outputs(net, *leaves(parameters, trial), torch.tensor(x))
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine[trial], theirs.detach().numpy(), rtol=0, atol=1e-13)


def test_weights_are_xavier_normal_and_biases_zero():
    gain, trials = 0.7, 400
    for net, fans in [
        (Net(4, 2, 30, 3), [(4, 30), (30, 30), (30, 30), (30, 2)]),
        (Net(4, 2, 20, 2, channels=3, kernel=5), [(4, 20), (5, 15), (15, 15), (15, 5), (8, 2)]),
    ]:
        parameters = nets.draw(net, gain, trials, rng=2)
        for weight, (fan_in, fan_out) in zip(parameters.weights, fans, strict=True):
            variance = 2 * gain**2 / (fan_in + fan_out)
            assert abs(weight.mean()) < 4 * np.sqrt(variance / weight.size)
            assert weight.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / weight.size))
            assert np.all(np.abs(np.corrcoef(weight[:4].reshape(4, -1))[0, 1:]) < 5 / np.sqrt(weight[0].size))
        assert all(np.all(bias == 0) for bias in parameters.biases)


@pytest.mark.parametrize(
    ("nonlinearity", "factor"), [("leaky ReLU", (1 + 0.01**2) / 2), ("ReLU", 0.5), ("linear", 1.0)]
)
def test_squared_norms_grow_by_the_factor_of_each_layer(nonlinearity, factor):
    net, gain, trials = Net(1, 1, 60, 5, nonlinearity), 1.2, 1500
    squares = np.array(
        [(h[:, 0] ** 2).sum(axis=1) for h in nets.values(net, nets.draw(net, gain, trials, rng=3), [[1.0]])[:-1]]
    )
    expected = factor * 2 * 60 / 61 * gain**2 * (factor * gain**2) ** np.arange(5)
    error = squares.std(axis=1) / np.sqrt(trials)
    assert np.all(np.abs(squares.mean(axis=1) - expected) < 4 * error) and np.all(error < 0.03 * expected)


def test_a_trial_does_not_know_how_many_there_are_nor_what_was_spawned():
    net, sequence = Net(2, 1, 8, 2), np.random.SeedSequence(5)
    few = nets.draw(net, 1.0, 2, rng=5)
    sequence.spawn(3)
    many = nets.draw(net, 1.0, 6, rng=sequence)
    for a, b in zip(few.weights, only(many, 0, 1).weights):
        np.testing.assert_array_equal(a, b)
    single = nets.draw(net, 1.0, 2, rng=5, precision="float32")
    assert single.weights[0].dtype == np.float32
    np.testing.assert_allclose(single.weights[0], few.weights[0], rtol=1e-6)
    assert nets.values(net, single, [[1.0, 2.0]])[0].dtype == np.float32


def test_what_a_call_leaves_alone():
    net = Net(2, 1, 8, 2)
    parameters, x = nets.draw(net, 1.0, 2, rng=5), np.ones((1, 2))
    before = [array.copy() for array in (*parameters.weights, x)]
    for found in nets.values(net, parameters, x):
        found += 1
    for array, old in zip((*parameters.weights, x), before):
        np.testing.assert_array_equal(array, old)


def test_the_recorded_layer_of_the_source():
    assert [Net(1, 1, 5, depth).middle for depth in (1, 2, 4, 20)] == [1, 2, 3, 11]


# --- bad input: every public function, every argument ---------------------------------------------

CALLS = {
    nets.draw: {"net": NET, "gain": 1.0, "trials": 2, "rng": 1, "precision": "float64"},
    nets.values: {"net": NET, "parameters": GOOD, "inputs": [[1.0, 2.0]]},
}
BAD = {
    "net": [None, "net", 3, Net],
    "gain": [-1.0, np.nan, np.inf, "1", None, [0.1], True],
    "trials": COUNT,
    "rng": SEED,
    "precision": ["float16", None, np.float64],
    "parameters": PARAMETERS,
    "inputs": POINTS,
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, {"parameters": r"parameters[.\w]*"})
FIELDS = {"inputs": 2, "outputs": 1, "width": 9, "depth": 2, "channels": 2, "kernel": 3}
BAD_FIELDS = [(name, bad) for name in ("inputs", "outputs", "width", "depth", "kernel") for bad in COUNT] + [
    *(("nonlinearity", bad) for bad in ("sine", None, 1)),
    *(("dropout", bad) for bad in (-0.1, 1.0, np.nan, "0", None, True)),
    *(("biases", bad) for bad in ("some", None, True)),
    *(("skip", bad) for bad in (True, 1, None)),
    *(("channels", bad) for bad in COUNT if bad is not None),
    ("kernel", 5),
]


@pytest.mark.parametrize(("name", "bad"), BAD_FIELDS, ids=str)
def test_a_net_is_refused_by_the_name_of_its_field(name, bad):
    Net(**FIELDS)
    refused(FIELDS, Net, name, bad)


def test_small_integers_do_not_wrap():
    given = {"inputs": np.uint8(3), "outputs": np.uint8(2), "width": np.uint8(200), "depth": np.uint8(2)}
    for more in ({}, {"channels": np.uint8(20), "kernel": np.uint8(30)}):
        net, wide = Net(**given, **more), Net(**{name: int(value) for name, value in {**given, **more}.items()})
        assert net == wide and net.layers == wide.layers
        assert {type(part) for layer in net.layers for part in layer} == {int}
    square = nets.draw(Net(2, 1, np.uint8(200), 2), 1.0, 1, rng=1).weights[1]  # 40 000 entries
    assert square.std() == pytest.approx(np.sqrt(2 / 400), rel=0.02)


def test_a_kernel_needs_channels():
    with pytest.raises(ValueError, match=r"^kernel must be None without channels"):
        Net(2, 1, 9, 2, kernel=3)

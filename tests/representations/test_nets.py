"""nets against torch's own layers, the variances of its weights, and the growth of squared norms with depth."""

import pickle

import joblib
import numpy as np
import pytest
import torch
from net_reference import GOOD, MISFITS, NET, NETS, leaves, moved, only, outputs

from lib.representations import nets
from lib.representations.nets import Net


@pytest.mark.parametrize("name", NETS)
def test_values_are_those_of_torch_layers(name):
    net, random = NETS[name], np.random.default_rng(1)
    parameters = moved(nets.draw(net, 1.3, 3, rng=4), 0.2, random)
    x = random.standard_normal((5, net.inputs))
    found = nets.values(net, parameters, x)
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
        parameters = nets.draw(net, gain, replicas, rng=2)
        for weight, (fan_in, fan_out) in zip(parameters.weights, fans, strict=True):
            variance = 2 * gain**2 / (fan_in + fan_out)
            assert abs(weight.mean()) < 4 * np.sqrt(variance / weight.size)
            assert weight.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / weight.size))
            assert np.all(np.abs(np.corrcoef(weight[:4].reshape(4, -1))[0, 1:]) < 5 / np.sqrt(weight[0].size))
        assert all(np.all(bias == 0) for bias in parameters.biases)


def test_a_replica_does_not_know_how_many_there_are_nor_what_was_spawned():
    net, sequence = Net(2, 1, 8, 2), np.random.SeedSequence(5)
    few = nets.draw(net, 1.0, 2, rng=5)
    sequence.spawn(3)
    many = nets.draw(net, 1.0, 6, rng=sequence)
    for a, b in zip(few.weights, only(many, 0, 1).weights):
        np.testing.assert_array_equal(a, b)
    single = nets.draw(net, 1.0, 2, rng=5, precision="float32")
    np.testing.assert_allclose(single.weights[0], few.weights[0], rtol=1e-6)
    assert {found.dtype for found in nets.values(net, single, [[1.0, 2.0]])} == {np.dtype(np.float32)}


def test_what_a_call_leaves_alone():
    net = Net(2, 1, 8, 2)
    parameters, x = nets.draw(net, 1.0, 2, rng=5), np.ones((1, 2))
    before = [array.copy() for array in (*parameters.weights, x)]
    for found in nets.values(net, parameters, x):
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
    nets.values(NET, GOOD, [[1.0, 2.0]])
    with pytest.raises(ValueError, match="^parameters must "):
        nets.values(NET, parameters, [[1.0, 2.0]])


@pytest.mark.parametrize("inputs", [np.ones(2), np.ones((2, 3)), np.ones((0, 2))])
def test_points_that_do_not_fit_are_refused(inputs):
    with pytest.raises(ValueError, match="^inputs must "):
        nets.values(NET, GOOD, inputs)


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

"""lib.representations.tangent_kernel against autograd, and against the exact rates of a linear net."""

import numpy as np
import pytest
import torch
from net_reference import GOOD, NET, leaves, moved, outputs

from lib.representations import nets, tangent_kernel
from lib.representations.nets import Net

X = np.array([[0.3, -0.7], [0.9, 0.4]])


@pytest.mark.parametrize("biases", nets.BIASES)
def test_both_rates_of_a_linear_net_are_half_the_learning_rate(biases):
    net = Net(2, 1, 15, 1, "linear", biases=biases)
    parameters = net.draw(0.8, 4, rng=1)
    end = net.train(parameters, X, [[0.0], [1.0]], 0.05, 30).parameters
    for state in (parameters, end):
        split = tangent_kernel.effective_rates(net, state, X, 0.05)
        np.testing.assert_allclose([split.encoder_rate, split.decoder_rate], 0.025, rtol=1e-12)


@pytest.mark.parametrize(
    "net",
    [
        *(Net(2, 1, 6, 4, name) for name in ("tanh", "leaky_relu")),
        *(Net(2, 1, 6, 3, "swish", biases=biases) for biases in ("output", "none")),
        Net(2, 1, 14, 2, "elu", channels=3, kernel=4),
    ],
    ids=lambda net: f"{net.activation}, biases {net.biases}",
)
def test_split_is_that_of_autograd(net):
    parameters = moved(net.draw(1.4, 2, rng=3), 0.3, np.random.default_rng(4))
    for layer in range(1, len(net.layers)):
        split = tangent_kernel.effective_rates(net, parameters, X, 0.1, layer=layer)
        for replica in range(2):
            weights, biases = leaves(parameters, replica)
            found = outputs(net, weights, biases, torch.tensor(X))
            apart, h = found[-1][1, 0] - found[-1][0, 0], found[layer - 1]
            squares = np.zeros(len(weights))
            for i, trained in enumerate(zip(weights, biases)):
                trained = trained if net.trained_biases[i] else trained[:1]
                slopes = torch.autograd.grad(apart, trained, retain_graph=True, allow_unused=True)
                squares[i] = sum(float((slope**2).sum()) for slope in slopes if slope is not None)
            decoder = torch.autograd.grad(found[-1].sum(), h)[0].mean(dim=0)
            a, v = float(((h[1] - h[0]).detach() ** 2).sum()), float((decoder**2).sum())
            encoder, behind = squares[:layer].sum(), squares[layer:].sum()
            separation = ((X[1] - X[0]) ** 2).sum()
            expected = [encoder, behind, a, v, 0.1 * encoder / (2 * separation * v), 0.1 * behind / (2 * a)]
            mine = [getattr(split, name)[replica] for name in split.__dataclass_fields__]
            np.testing.assert_allclose(mine, expected, rtol=1e-10)


def test_the_default_is_the_recorded_layer_and_float32_is_read_in_float64():
    net = Net(2, 1, 6, 4, "tanh")
    parameters = net.draw(1.0, 2, rng=3, precision="float32")
    split, middle = (tangent_kernel.effective_rates(net, parameters, X, 0.1, layer=layer) for layer in (None, 3))
    np.testing.assert_array_equal(split.encoder_rate, middle.encoder_rate)
    wide = nets.Parameters(*(tuple(p.astype(float) for p in ps) for ps in (parameters.weights, parameters.biases)))
    same = tangent_kernel.effective_rates(net, wide, X, 0.1)
    np.testing.assert_allclose(same.encoder_rate, split.encoder_rate, rtol=1e-12)


def test_rates_that_are_not_defined_are_refused():
    for net in (Net(2, 2, 3, 2), Net(2, 1, 3, 4, skip=True)):
        with pytest.raises(ValueError, match="^net must have one output and no skip"):
            tangent_kernel.effective_rates(net, net.draw(1.0, 1, rng=1), X, 0.1)
    with pytest.raises(ValueError, match="^parameters must keep the two hidden vectors apart"):
        tangent_kernel.effective_rates(NET, NET.draw(0.0, 1, rng=1), X, 0.1)
    for name, inputs, layer in (("layer", X, 3), ("inputs", X[[0, 0]], None), ("inputs", X[:1], None)):
        with pytest.raises(ValueError, match=f"^{name} must "):
            tangent_kernel.effective_rates(NET, GOOD, inputs, 0.1, layer=layer)

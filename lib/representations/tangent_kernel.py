"""The effective learning rates of a network, read off its gradients without any fit.

Of the tangent kernel Θ of the half loss only  Θ_d = |∇_θ(f_2 - f_1)|²  moves the distance of two points, and the theory
says  ηΘ_d = 2(βa + αXV),  the first term from the weights behind the hidden layer, the second from those before it. Not
in the source (vanrossem2024), which fits both rates.
"""

from dataclasses import dataclass

import numpy as np
import torch

from lib.common import checks
from lib.representations import _passes, nets


@dataclass(frozen=True, eq=False)
class Split:
    """The difference mode of the tangent kernel of T trials, split at a hidden layer."""

    encoder_kernel: np.ndarray  # (T,)  part of Θ_d from the parameters up to the hidden layer
    decoder_kernel: np.ndarray  # (T,)  part of Θ_d from those behind it
    squared_hidden_distance: np.ndarray  # (T,)  a
    squared_decoder_gradient: np.ndarray  # (T,)  V = |v|², v the mean of ∂f/∂h at the two points
    encoder_rate: np.ndarray  # (T,)  α = η Θ_d^encoder / (2XV)
    decoder_rate: np.ndarray  # (T,)  β = η Θ_d^decoder / (2a)


def effective_rates(net, parameters, inputs, learning_rate, *, layer=None):
    """Effective learning rates of encoder and decoder at the present parameters of a net with one output.

    α = ηΘ_d^encoder/(2XV),  β = ηΘ_d^decoder/(2a),  a and V not zero; both are η/2 for a linear net with one hidden
    layer.  V is noisy where the points have different masks of a leaky ReLU.  `net`: with one output, without skip
    connections; `parameters`: of T trials; `inputs` (2, n): two distinct points; `learning_rate`: η > 0 of the loss
    with the factor ½; `layer`: the hidden layer, counted from 1, by default ``net.middle``.  Returns a Split.

    >>> net = nets.Net(1, 1, 20, 1, "linear")
    >>> effective_rates(net, nets.draw(net, 1.0, 1, rng=1), [[-0.5], [0.5]], 0.1).encoder_rate.round(12).tolist()
    [0.05]
    """
    if checks.instance("net", net, nets.Net, "from lib.representations.nets").outputs != 1 or net.skip:
        checks.fail("net", "have one output and no skip connections", net)
    weights, biases = net.tensors(parameters)
    inputs = checks.array("inputs", inputs, shape=(2, net.inputs))  # (2, n)
    separation = float(((inputs[1] - inputs[0]) ** 2).sum())
    if separation == 0:
        checks.fail("inputs", "be two distinct points", inputs)
    rate = checks.number("learning_rate", learning_rate, above=0)
    layer = net.middle if layer is None else checks.integer("layer", layer)
    if layer >= len(net.layers):
        checks.fail("layer", f"be between 1 and the number of hidden layers, {len(net.layers) - 1}", layer)
    weights, biases = [w.double() for w in weights], [b.double() for b in biases]
    values, trace = _passes.forward(net, weights, biases, net.stacked(inputs, len(weights[0]), torch.float64))
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64).view(1, 2, 1).repeat(len(weights[0]), 1, 1)  # (T, 2, 1)
    parts = torch.zeros(2, len(weights[0]), dtype=torch.float64)  # (2, T)  encoder, decoder
    for i, seen, slope, below in _passes.backward(net, weights, values, trace, signs):
        part = parts[int(i >= layer)]  # (T,)
        part += torch.bmm(seen.transpose(1, 2), slope).square().sum((1, 2))
        if net.trains_bias(i):
            part += slope.sum(1).square().sum(1)
        if i == layer:
            decoder = (below[:, 1] - below[:, 0]) / 2  # (T, units)
    a = (values[layer][:, 1] - values[layer][:, 0]).square().sum(1).numpy()  # (T,)
    v = decoder.square().sum(1).numpy()  # (T,)
    if not (np.all(a > 0) and np.all(v > 0)):
        wanted = "keep the two hidden vectors apart and the output sensitive to them"
        checks.fail("parameters", wanted, "a trial with a = 0 or V = 0")
    encoder, behind = parts.numpy()  # (T,) each
    return Split(encoder, behind, a, v, rate * encoder / (2 * separation * v), rate * behind / (2 * a))

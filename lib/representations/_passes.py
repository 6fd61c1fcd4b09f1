"""What the networks of :mod:`lib.representations.nets` compute, and their gradients, on stacked tensors of all trials.

Gradients are written by hand, which lets :mod:`lib.representations.training` update weights in place.
"""

import torch

_aten = torch.ops.aten  # slopes of torch's own gradients; with public operations they take 2 to 20 times as long
_SLOPE = 0.01
# name: (φ(z), φ'(z) g as a function of g, z and φ(z))
NONLINEAR = {
    "leaky ReLU": (
        lambda z: torch.nn.functional.leaky_relu(z, _SLOPE),
        lambda g, z, y: _aten.leaky_relu_backward(g, z, _SLOPE, False),
    ),
    "ReLU": (torch.relu, lambda g, z, y: _aten.threshold_backward(g, z, 0)),
    "ELU": (torch.nn.functional.elu, lambda g, z, y: _aten.elu_backward(g, 1, 1, 1, False, z)),
    "tanh": (torch.tanh, lambda g, z, y: _aten.tanh_backward(g, y)),
    "swish": (torch.nn.functional.silu, lambda g, z, y: _aten.silu_backward(g, z)),
    "linear": (lambda z: z, lambda g, z, y: g),
}


def forward(net, weights, biases, points, kept=None):
    """Values of all layers, [(T, P, units)], inputs first, and for the gradient of each layer (windows, z, φ(z)).

    `kept`: one dropout mask for the input of each layer.
    """
    nonlinear, layers = NONLINEAR[net.nonlinearity][0], net.layers
    trials, count = points.shape[:2]
    values, trace = [points], []
    for i, layer in enumerate(layers):
        seen = values[-1] if kept is None else values[-1] * kept[i]  # (T, P, units)
        if layer.window != seen.shape[2]:
            seen = seen.unfold(2, layer.window, layer.stride).reshape(trials, -1, layer.window)  # (T, P·positions, in)
        z = torch.baddbmm(biases[i], seen, weights[i]).view(trials, count, -1)  # (T, P, positions·out)
        y = z if i == len(layers) - 1 else nonlinear(z)  # (T, P, positions·out)
        trace.append((seen, z, y))
        values.append(y + values[-2] if net.skip and 2 <= i < len(layers) - 1 else y)
    return values, trace


def _below(layer, slope, weight, units):
    """Gradient with respect to the values below, (T, P, units), from that of z, (T, P, positions·out)."""
    trials, count = slope.shape[:2]
    through = torch.bmm(slope.view(trials, -1, layer.filters), weight.transpose(1, 2))  # (T, P·positions, in)
    if layer.window == units:
        return through
    through = through.view(trials, count, layer.positions, layer.window)  # (T, P, positions, in)
    below = units // layer.stride, layer.stride  # positions, channels
    total = slope.new_zeros(trials, count, *below)  # (T, P, positions below, channels below)
    for k in range(layer.window // layer.stride):
        total[:, :, k : k + layer.positions] += through[..., k * layer.stride : (k + 1) * layer.stride]
    return total.view(trials, count, units)


def backward(net, weights, values, trace, gradient, kept=None):
    """Yield (i, A, B, G) from the output to the first layer, given the gradient with respect to the outputs, (T, P, m).

    The gradient of weight i is AᵀB, that of its bias the column sum of B; G (T, P, units) is that of the values below,
    None for the inputs.  Weight i is not needed after it is yielded: the caller may change it in place.
    """
    slope_of, layers = NONLINEAR[net.nonlinearity][1], net.layers
    last, above = len(layers) - 1, None
    for i in range(last, -1, -1):
        seen, z, y = trace[i]
        slope = gradient if i == last else slope_of(gradient, z, y)  # (T, P, positions·out)
        below = None
        if i > 0:
            below = _below(layers[i], slope, weights[i], values[i].shape[2])  # (T, P, units)
            if kept is not None:
                below = below * kept[i]  # (T, P, units)
            if net.skip and i <= last - 2:
                below = below + above  # (T, P, units)
        yield i, seen, slope.view(len(slope), -1, layers[i].filters), below
        above, gradient = gradient, below

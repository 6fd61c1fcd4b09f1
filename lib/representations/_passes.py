"""What the networks of :mod:`lib.representations.nets` compute, on stacked tensors of R replicas.

Of the loss summed over replicas, which are independent, autograd gives the gradients of the preactivations z; those of
the weights are outer products of them, which descent adds in place.  Written by hand they took 0.7 to 0.9 of the time.
"""

from lib.common.extras import needs

torch, functional = needs("torch"), needs("torch.nn.functional")
ACTIVATIONS = {
    "leaky_relu": lambda z: functional.leaky_relu(z, 0.01),
    "relu": lambda z: torch.relu(z),
    "elu": lambda z: functional.elu(z),
    "tanh": lambda z: torch.tanh(z),
    "swish": lambda z: functional.silu(z),
    "linear": lambda z: z,
}


def forward(net, weights, biases, points, kept=None):
    """Values of all layers (R, P, units), inputs first; windows and z of each layer, (R, P·positions, in or out).

    The gradient of weight i is windowsᵀ times that of z, that of its bias the column sum of it.  `kept`: one dropout
    mask for the input of each layer.
    """
    activation, last = ACTIVATIONS[net.activation], len(net.layers) - 1
    replicas, count = points.shape[:2]
    values, trace = [points], []
    for i, layer in enumerate(net.layers):
        seen = values[-1] if kept is None else values[-1] * kept[i]  # (R, P, units)
        if layer.window != seen.shape[2]:
            windows = seen.unfold(2, layer.window, layer.stride)  # (R, P, positions, in)
            seen = windows.reshape(replicas, -1, layer.window)  # (R, P·positions, in)
        z = torch.baddbmm(biases[i], seen, weights[i])  # (R, P·positions, out)
        if i == 0:
            z.requires_grad_(torch.is_grad_enabled())
        y = z if layer.positions == 1 else z.view(replicas, count, -1)  # (R, P, positions·out)
        y = y if i == last else activation(y)  # (R, P, positions·out)
        trace.append((seen, z))
        values.append(y + values[-2] if net.skip and 2 <= i < last else y)
    return values, trace

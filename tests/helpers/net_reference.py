"""Networks written once more with torch's own layers, one replica at a time: what lib.representations.nets is compared
with, by autograd.
"""

import numpy as np
import torch

from lib.representations.nets import Net, Parameters

PHI = {
    "leaky_relu": torch.nn.LeakyReLU(0.01),
    "relu": torch.nn.ReLU(),
    "elu": torch.nn.ELU(),
    "tanh": torch.nn.Tanh(),
    "swish": torch.nn.SiLU(),
    "linear": torch.nn.Identity(),
}
NETS = {
    **{name: Net(3, 2, 7, 4, name) for name in PHI},
    "skip": Net(3, 2, 7, 6, "tanh", skip=True),
    "dropout": Net(3, 2, 7, 3, dropout=0.3),
    "skip and dropout": Net(3, 2, 7, 5, skip=True, dropout=0.3),
    "convolution": Net(3, 2, 12, 3, channels=4, kernel=3),
    "convolution and dropout": Net(3, 2, 9, 2, "elu", channels=2, kernel=2, dropout=0.2),
    "one layer": Net(1, 1, 5, 1),
    "output bias only": Net(3, 2, 7, 2, biases="output"),
    "no biases": Net(3, 2, 7, 2, biases="none"),
}


def leaves(parameters, replica):
    """Weights and biases of one replica as leaves of autograd."""
    return [
        [torch.tensor(array[replica], requires_grad=True) for array in arrays]
        for arrays in (parameters.weights, parameters.biases)
    ]


def outputs(net, weights, biases, x, kept=None):
    """Values of all layers for the points x (P, n); `kept` multiplies the input of every layer, position by position,
    channels last.
    """
    phi, values, last = PHI[net.activation], [], len(weights) - 1
    below = x
    for i, (weight, bias) in enumerate(zip(weights, biases)):
        seen = below if kept is None else below * kept[i]
        if net.channels is None or i in (0, last):
            z = torch.nn.functional.linear(seen, weight.T, bias[0])
        else:
            channels = 1 if i == 1 else net.channels
            image = seen.reshape(len(x), -1, channels).transpose(1, 2)  # (P, channels, positions)
            taps = weight.reshape(net.kernel, channels, -1).permute(2, 1, 0)  # (out, channels, k)
            z = torch.nn.functional.conv1d(image, taps, bias[0]).transpose(1, 2).reshape(len(x), -1)
        y = z if i == last else phi(z)
        values.append(y + values[i - 2] if net.skip and 2 <= i < last else y)
        below = values[-1]
    return values


def only(parameters, *replicas):
    """The parameters of some of the replicas."""
    some = list(replicas)
    return Parameters(tuple(w[some] for w in parameters.weights), tuple(b[some] for b in parameters.biases))


def moved(parameters, spread, random):
    """The parameters with Gaussian numbers added, so that the biases take part in a comparison."""
    add = [
        tuple(p + spread * random.standard_normal(p.shape).astype(p.dtype) for p in ps)
        for ps in (parameters.weights, parameters.biases)
    ]
    return Parameters(*add)


# a good net with its parameters, and parameters that do not fit it
NET = Net(2, 1, 3, 2)
GOOD = NET.draw(1.0, 2, rng=1)
MISFITS = [
    Net(2, 1, 4, 2).draw(1.0, 2, rng=1),
    Net(2, 1, 3, 1).draw(1.0, 2, rng=1),
    Parameters(GOOD.weights, only(GOOD, 0).biases),
    Parameters((GOOD.weights[0] * np.nan, *GOOD.weights[1:]), GOOD.biases),
    Parameters((GOOD.weights[0].astype(np.float32), *GOOD.weights[1:]), GOOD.biases),
    Parameters(tuple(w.astype(int) for w in GOOD.weights), tuple(b.astype(int) for b in GOOD.biases)),
    Parameters((None,) * 3, (None,) * 3),
    only(GOOD),
]

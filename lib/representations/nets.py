r"""Networks of the experiments on representation learning: what they compute, and their gradients, for many trials side by side.

Every layer is  z = W·(window of the layer below) + b,  h = φ(z).  In a fully connected layer there is one window, the whole layer.  In a
convolution it slides: layers are stored channel by channel within a position, so that a window of k positions is a contiguous piece.
Weights of T trials are stacked as (T, in, out), and one matrix product serves all trials.  Gradients are written by hand, which lets
:mod:`lib.representations.training` update weights in place.  Source: vanrossem2024, section B.1 of its appendix.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from lib.common import checks

_aten = (
    torch.ops.aten
)  # slopes of torch's own gradients; written with public operations they take 2 to 20 times as long
_SLOPE = 0.01
# name: (φ(z), φ'(z) g as a function of g, z and φ(z))
_NONLINEAR = {
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
NONLINEARITIES = tuple(_NONLINEAR)
BIASES = ("all", "output", "none")
PRECISIONS = ("float64", "float32")


class _Layer(NamedTuple):
    window: int  # entries of the layer below that one position sees
    stride: int  # by how many entries the window moves: the channels below
    positions: int
    filters: int  # channels of this layer; in a fully connected layer all its units


@dataclass(frozen=True)
class Net:
    """An architecture; admissible values are checked when it is made.

    Without `channels` it is fully connected: `depth` hidden layers of `width` units.  With them, `width` units in a row are followed by
    `depth` convolutions with `channels` channels, one convolution back to a single channel, and the linear output.
    """

    inputs: int  # n; >= 1
    outputs: int  # m; >= 1
    width: int  # units of a hidden layer; >= 1
    depth: int  # hidden layers; >= 1
    nonlinearity: str = "leaky ReLU"  # φ, one of NONLINEARITIES; leaky ReLU has the slope 0.01
    skip: bool = False  # whether hidden layer l >= 3 adds the values of layer l - 2
    dropout: float = (
        0.0  # p; during training each input of every layer is set to 0 with probability p, or else divided by 1 - p
    )
    channels: int | None = None  # of a convolution; without padding
    kernel: int | None = None  # k, positions that a convolution sees; only with `channels`
    biases: str = "all"  # which biases are trained: "all", "output" or "none"

    def __post_init__(self):
        for name in ("inputs", "outputs", "width", "depth"):
            checks.integer(name, getattr(self, name))
        if self.nonlinearity not in NONLINEARITIES:
            checks.fail("nonlinearity", f"be one of {', '.join(NONLINEARITIES)}", self.nonlinearity)
        checks.number("dropout", self.dropout, at_least=0, below=1)
        if self.biases not in BIASES:
            checks.fail("biases", f"be one of {', '.join(BIASES)}", self.biases)
        if self.channels is not None:
            checks.integer("channels", self.channels)
            if self.width <= (self.depth + 1) * (checks.integer("kernel", self.kernel) - 1):
                checks.fail(
                    "kernel", f"leave a position after {self.depth + 1} convolutions of {self.width} units", self.kernel
                )
        elif self.kernel is not None:
            checks.fail("kernel", "be None without channels", self.kernel)
        if checks.boolean("skip", self.skip) and self.channels is not None:
            checks.fail(
                "skip", "be False with channels, as the layers of a convolution have different sizes", self.skip
            )

    def __getstate__(self):
        return {field.name: getattr(self, field.name) for field in fields(self)}  # equal nets pickle alike, used or not

    @cached_property
    def layers(self):
        """Shapes of all layers, the output last."""
        found = [_Layer(self.inputs, self.inputs, 1, self.width)]
        if self.channels is None:
            found += [_Layer(self.width, self.width, 1, self.width)] * (self.depth - 1)
            return (*found, _Layer(self.width, self.width, 1, self.outputs))
        length, below = self.width, 1
        for filters in [self.channels] * self.depth + [1]:
            length -= self.kernel - 1
            found.append(_Layer(self.kernel * below, below, length, filters))
            below = filters
        return (*found, _Layer(length, length, 1, self.outputs))

    @property
    def middle(self):
        """The hidden layer that the source records: number depth // 2 + 1, counted from 1."""
        return self.depth // 2 + 1

    def trains_bias(self, layer):
        """Whether the bias of layer number `layer` is trained, counted from 0; the output is number len(layers) - 1."""
        return self.biases == "all" or (self.biases == "output" and layer == len(self.layers) - 1)


@dataclass(frozen=True, eq=False)
class Parameters:
    """Weights and biases of T trials, float64 or float32; one entry for each layer, the output last."""

    weights: tuple  # of arrays (T, in, out)
    biases: tuple  # of arrays (T, 1, out)


def _net(net):
    if not isinstance(net, Net):
        checks.fail("net", "be a lib.representations.nets.Net", net)
    return net


def _parameters(net, parameters, name="parameters"):
    """Parameters as fresh tensors, after checking that they are those of the net."""
    if not isinstance(parameters, Parameters):
        checks.fail(name, "be a lib.representations.nets.Parameters", parameters)
    layers = net.layers
    for kind in ("weights", "biases"):
        arrays = getattr(parameters, kind)
        if not isinstance(arrays, tuple) or len(arrays) != len(layers):
            checks.fail(name, f"hold {len(layers)} {kind}, one for each layer of the net", f"{type(arrays).__name__}")
        for array, layer in zip(arrays, layers):
            checks.array(f"{name}.{kind}", array, shape=(None, layer.window if kind == "weights" else 1, layer.filters))
    arrays = [np.asarray(array) for array in (*parameters.weights, *parameters.biases)]
    if (
        len({(len(array), array.dtype) for array in arrays}) != 1
        or arrays[0].dtype.name not in PRECISIONS
        or len(arrays[0]) == 0
    ):
        checks.fail(
            name,
            "hold equally many trials, one or more, all float64 or all float32",
            {(len(a), a.dtype.name) for a in arrays},
        )
    tensors = [torch.from_numpy(array.copy()) for array in arrays]
    return tensors[: len(layers)], tensors[len(layers) :]


def _children(seed, trials):
    """The seeds of the trials: number t has the t-th child of `seed`, whatever was spawned before and however many trials there are."""
    given = checks.seed_sequence("seed", seed)
    return [
        np.random.SeedSequence(given.entropy, spawn_key=(*given.spawn_key, t), pool_size=given.pool_size)
        for t in range(trials)
    ]


def draw(net, gain, trials, seed, *, precision="float64"):
    r"""Parameters at the start: Xavier-normal weights times a gain, biases zero.

    Weights have the variance  2g²/(n_in + n_out)  with n_in = in, n_out = out for a fully connected layer and k times the numbers of
    channels for a convolution.  Source: vanrossem2024, section B.1 of its appendix (no equation number).

    Parameters
    ----------
    net : Net
    gain : float                 g; >= 0
    trials : int                 T; >= 1
    seed : int or SeedSequence   trial number t draws from its t-th child, so it does not depend on `trials`
    precision : str              "float64" or "float32"

    Returns
    -------
    Parameters

    Examples
    --------
    >>> [w.shape for w in draw(Net(2, 1, 30, 2), 1.0, 5, seed=1).weights]
    [(5, 2, 30), (5, 30, 30), (5, 30, 1)]
    """
    layers, gain = _net(net).layers, checks.number("gain", gain, at_least=0)
    trials = checks.integer("trials", trials)
    if precision not in PRECISIONS:
        checks.fail("precision", 'be "float64" or "float32"', precision)
    weights = [
        np.empty((trials, layer.window, layer.filters), dtype=precision) for layer in layers
    ]  # (T, in, out) each
    for t, child in enumerate(_children(seed, trials)):
        random = checks.generator("seed", child)
        for layer, weight in zip(layers, weights):
            spread = gain * np.sqrt(2 / (layer.window + layer.window // layer.stride * layer.filters))
            weight[t] = spread * random.standard_normal(weight.shape[1:])  # (in, out)
    return Parameters(tuple(weights), tuple(np.zeros((trials, 1, layer.filters), dtype=precision) for layer in layers))


def _forward(net, weights, biases, points, kept=None):
    """Values of all layers, [(T, P, units)], inputs first, and for each layer what its gradient needs: (windows, z, φ(z)).

    ``kept`` holds one dropout mask for the input of each layer.
    """
    nonlinear, layers = _NONLINEAR[net.nonlinearity][0], net.layers
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
    total = slope.new_zeros(
        trials, count, units // layer.stride, layer.stride
    )  # (T, P, positions below, channels below)
    for k in range(layer.window // layer.stride):
        total[:, :, k : k + layer.positions] += through[..., k * layer.stride : (k + 1) * layer.stride]
    return total.view(trials, count, units)


def _backward(net, weights, values, trace, gradient, kept=None):
    """Yield (i, A, B, G) from the output to the first layer, given the gradient with respect to the outputs, (T, P, m).

    The gradient of weight i is AᵀB, that of its bias the column sum of B, and G is that of the values below, (T, P, units); for the
    inputs it is None.  All that needs weight i is done before it is yielded: the caller may change it in place.
    """
    slope_of, layers = _NONLINEAR[net.nonlinearity][1], net.layers
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


def _points(net, inputs, trials, dtype):
    """Inputs as a tensor (T, P, n), the same for every trial."""
    inputs = checks.array("inputs", inputs, shape=(None, net.inputs))  # (P, n)
    if len(inputs) == 0:
        checks.fail("inputs", "hold at least one point", "none")
    return torch.from_numpy(inputs).to(dtype).repeat(trials, 1, 1)  # (T, P, n)


def values(net, parameters, inputs):
    """Values of all hidden layers and of the output, without dropout:  h_l = φ(W_l h_{l-1} + b_l),  the last layer without φ.

    Source: vanrossem2024, section B.1 of its appendix (no equation number).

    Parameters
    ----------
    net : Net
    parameters : Parameters      of T trials
    inputs : array (P, n)        one point in each row

    Returns
    -------
    tuple of arrays (T, P, units), the first hidden layer first, the output, of shape (T, P, m), last

    Examples
    --------
    >>> net = Net(2, 1, 30, 2)
    >>> [h.shape for h in values(net, draw(net, 1.0, 5, seed=1), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])]
    [(5, 3, 30), (5, 3, 30), (5, 3, 1)]
    """
    weights, biases = _parameters(_net(net), parameters)
    found, _ = _forward(net, weights, biases, _points(net, inputs, len(weights[0]), weights[0].dtype))
    return tuple(layer.numpy() for layer in found[1:])

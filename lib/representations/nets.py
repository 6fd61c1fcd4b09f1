"""Networks of the experiments on representation learning: what they compute, for many trials side by side.

Every layer is  z = W·(window of the layer below) + b,  h = φ(z),  with one window, the whole layer, or for a
convolution a sliding one: layers are stored channel by channel within a position, so that k positions are a contiguous
piece. Weights of T trials are stacked as (T, in, out).  Source: vanrossem2024, section B.1 of its appendix.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from lib.common import checks
from lib.common.random import children
from lib.representations import _passes

NONLINEARITIES = tuple(_passes.NONLINEAR)
BIASES = ("all", "output", "none")
PRECISIONS = ("float64", "float32")


class _Layer(NamedTuple):
    window: int  # entries of the layer below that one position sees
    stride: int  # by how many entries the window moves: the channels below
    positions: int
    filters: int  # channels of this layer; in a fully connected layer all its units


@dataclass(frozen=True)
class Net:
    """An architecture, whose values are checked when it is made; without `channels` it is fully connected.

    With them, `width` units in a row are followed by `depth` convolutions with `channels` channels, one convolution
    back to a single channel, and the linear output.
    """

    inputs: int  # n; >= 1
    outputs: int  # m; >= 1
    width: int  # units of a hidden layer; >= 1
    depth: int  # hidden layers; >= 1
    nonlinearity: str = "leaky ReLU"  # φ, one of NONLINEARITIES; leaky ReLU has the slope 0.01
    skip: bool = False  # whether hidden layer l >= 3 adds the values of layer l - 2
    dropout: float = 0.0  # p; in training each input of a layer is 0 with probability p, or else divided by 1 - p
    channels: int | None = None  # of a convolution; without padding
    kernel: int | None = None  # k, positions that a convolution sees; only with `channels`
    biases: str = "all"  # which biases are trained: "all", "output" or "none"

    def __post_init__(self):
        for name in ("inputs", "outputs", "width", "depth"):
            checks.keep(self, **{name: checks.integer(name, getattr(self, name))})
        checks.one_of("nonlinearity", self.nonlinearity, NONLINEARITIES)
        checks.keep(self, dropout=checks.number("dropout", self.dropout, at_least=0, below=1))
        checks.one_of("biases", self.biases, BIASES)
        if self.channels is not None:
            channels, kernel = checks.integer("channels", self.channels), checks.integer("kernel", self.kernel)
            checks.keep(self, channels=channels, kernel=kernel)
            if self.width <= (self.depth + 1) * (kernel - 1):
                wanted = f"leave a position after {self.depth + 1} convolutions of {self.width} units"
                checks.fail("kernel", wanted, self.kernel)
        elif self.kernel is not None:
            checks.fail("kernel", "be None without channels", self.kernel)
        checks.keep(self, skip=checks.boolean("skip", self.skip))
        if self.skip and self.channels is not None:
            wanted = "be False with channels, as the layers of a convolution have different sizes"
            checks.fail("skip", wanted, self.skip)

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
        """Whether the bias of layer number `layer`, from 0, is trained; the output is number len(layers) - 1."""
        return self.biases == "all" or (self.biases == "output" and layer == len(self.layers) - 1)

    def stacked(self, inputs, trials, dtype):
        """Inputs (P, n), checked, as a tensor (T, P, n): the same for every trial."""
        inputs = checks.array("inputs", inputs, shape=(None, self.inputs))  # (P, n)
        if len(inputs) == 0:
            checks.fail("inputs", "hold at least one point", "none")
        return torch.from_numpy(inputs).to(dtype).repeat(trials, 1, 1)  # (T, P, n)

    def tensors(self, parameters, name="parameters"):
        """Lists of weights (T, in, out) and of biases (T, 1, out) as fresh tensors, checked to be those of the net."""
        checks.instance(name, parameters, Parameters, "as from lib.representations.nets.draw")
        for kind in ("weights", "biases"):
            arrays = getattr(parameters, kind)
            if not isinstance(arrays, tuple) or len(arrays) != len(self.layers):
                wanted = f"hold {len(self.layers)} {kind}, one for each layer of the net"
                checks.fail(name, wanted, f"{type(arrays).__name__}")
            for array, layer in zip(arrays, self.layers):
                shape = None, layer.window if kind == "weights" else 1, layer.filters
                checks.array(f"{name}.{kind}", array, shape=shape)
        arrays = [np.asarray(array) for array in (*parameters.weights, *parameters.biases)]
        stacks = {(len(array), array.dtype.name) for array in arrays}
        if len(stacks) != 1 or arrays[0].dtype.name not in PRECISIONS or len(arrays[0]) == 0:
            checks.fail(name, "hold equally many trials, one or more, all float64 or all float32", stacks)
        tensors = [torch.from_numpy(array.copy()) for array in arrays]
        return tensors[: len(self.layers)], tensors[len(self.layers) :]


@dataclass(frozen=True, eq=False)
class Parameters:
    """Weights and biases of T trials, float64 or float32; one entry for each layer, the output last."""

    weights: tuple  # of arrays (T, in, out)
    biases: tuple  # of arrays (T, 1, out)


def draw(net, gain, trials, rng, *, precision="float64"):
    """Parameters at the start: Xavier-normal weights times a gain, biases zero.

    Variances  2g²/(n_in + n_out),  n_in = in, n_out = out for a fully connected layer, k times the numbers of channels
    for a convolution.  `net`; `gain`: g >= 0; `trials`: T >= 1; `rng`: int or SeedSequence, trial t draws from its
    t-th child, whatever `trials`; `precision`: "float64" or "float32".  Returns Parameters.

    >>> [w.shape for w in draw(Net(2, 1, 30, 2), 1.0, 5, rng=1).weights]
    [(5, 2, 30), (5, 30, 30), (5, 30, 1)]
    """
    layers = checks.instance("net", net, Net, "from lib.representations.nets").layers
    gain, trials = checks.number("gain", gain, at_least=0), checks.integer("trials", trials)
    checks.one_of("precision", precision, PRECISIONS)
    weights = [np.empty((trials, layer.window, layer.filters), precision) for layer in layers]  # (T, in, out) each
    for t, child in enumerate(children(rng, trials)):
        random = checks.generator("rng", child)
        for layer, weight in zip(layers, weights):
            spread = gain * np.sqrt(2 / (layer.window + layer.window // layer.stride * layer.filters))
            weight[t] = spread * random.standard_normal(weight.shape[1:])  # (in, out)
    return Parameters(tuple(weights), tuple(np.zeros((trials, 1, layer.filters), dtype=precision) for layer in layers))


def values(net, parameters, inputs):
    """Values of all hidden layers and of the output, without dropout:  h_l = φ(W_l h_{l-1} + b_l),  the last without φ.

    `net`; `parameters`: of T trials; `inputs` (P, n): one point in each row.  Returns a tuple of arrays (T, P, units).

    >>> net = Net(2, 1, 30, 2)
    >>> [h.shape for h in values(net, draw(net, 1.0, 5, rng=1), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])]
    [(5, 3, 30), (5, 3, 30), (5, 3, 1)]
    """
    weights, biases = checks.instance("net", net, Net, "from lib.representations.nets").tensors(parameters)
    found, _ = _passes.forward(net, weights, biases, net.stacked(inputs, len(weights[0]), weights[0].dtype))
    return tuple(layer.numpy() for layer in found[1:])

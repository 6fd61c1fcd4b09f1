"""Networks of the experiments on representation learning: what they compute, for many replicas side by side.

Every layer is  z = W·(window of the layer below) + b,  h = φ(z),  with one window, the whole layer, or for a
convolution a sliding one: layers are stored channel by channel within a position, so that k positions are a contiguous
piece.  Source: vanrossem2024, section B.1 of its appendix.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lib.common import checks
from lib.common.extras import needs
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.representations import _passes

torch = needs("torch")
ACTIVATIONS = tuple(_passes.ACTIVATIONS)
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

    Examples
    --------
    >>> Net(784, 10, 100, 4, "tanh").middle, len(Net(1, 1, 30, 2, channels=3, kernel=5, dropout=0.1).layers)
    (3, 5)
    """

    inputs: int  # n; >= 1
    outputs: int  # m; >= 1
    width: int  # units of a hidden layer; >= 1
    depth: int  # hidden layers; >= 1
    activation: str = "leaky_relu"  # φ, one of ACTIVATIONS; a leaky ReLU has the slope 0.01
    skip: bool = False  # whether hidden layer l >= 3 adds the values of layer l - 2
    dropout: float = 0.0  # p; in training each input of a layer is 0 with probability p, or else divided by 1 - p
    channels: int | None = None  # of a convolution; without padding
    kernel: int | None = None  # k, positions that a convolution sees; only with `channels`
    biases: str = "all"  # which biases are trained: "all", "output" or "none"

    def __post_init__(self):
        for name in ("inputs", "outputs", "width", "depth"):
            checks.keep(self, **{name: checks.integer(name, getattr(self, name))})
        checks.one_of("activation", self.activation, ACTIVATIONS)
        checks.one_of("biases", self.biases, BIASES)
        checks.keep(self, dropout=checks.number("dropout", self.dropout, at_least=0, below=1))
        checks.keep(self, skip=checks.boolean("skip", self.skip))
        if self.channels is None:
            return checks.fail_if(self.kernel is not None, "kernel", "be None without channels", self.kernel)
        channels, kernel = checks.integer("channels", self.channels), checks.integer("kernel", self.kernel)
        checks.keep(self, channels=channels, kernel=kernel)
        wanted = f"leave a position after {self.depth + 1} convolutions of {self.width} units"
        checks.fail_if(self.width <= (self.depth + 1) * (kernel - 1), "kernel", wanted, kernel)
        wanted = "be False with channels, as the layers of a convolution have different sizes"
        checks.fail_if(self.skip, "skip", wanted, self.skip)

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

    @property
    def trained_biases(self) -> tuple[bool, ...]:
        """Whether the bias of each layer is trained, the output last."""
        return *[self.biases == "all"] * (len(self.layers) - 1), self.biases != "none"

    def stacked(self, inputs: ArrayLike, replicas: int, dtype: "torch.dtype") -> "torch.Tensor":
        """Inputs, checked, as a tensor: the same for each replica.

        Parameters
        ----------
        inputs : array_like (P, n)
        replicas : int
        dtype : torch.dtype

        Returns
        -------
        Tensor (R, P, n)

        Examples
        --------
        >>> tuple(Net(2, 1, 30, 2).stacked([[0.0, 1.0]], 5, torch.float64).shape)
        (5, 1, 2)
        """
        inputs = checks.array("inputs", inputs, shape=(None, self.inputs))  # (P, n)
        checks.fail_if(len(inputs) == 0, "inputs", "hold at least one point", "none")
        return torch.from_numpy(inputs).to(dtype).repeat(replicas, 1, 1)  # (R, P, n)

    def tensors(self, parameters: "Parameters", name: str = "parameters") -> tuple[list, list]:
        """Weights and biases as fresh tensors, checked to be those of the net.

        Parameters
        ----------
        parameters : Parameters
        name : str
            What a complaint calls them.

        Returns
        -------
        two lists of Tensor (R, in, out) and (R, 1, out)

        Examples
        --------
        >>> net = Net(2, 1, 30, 2)
        >>> tuple(net.tensors(draw(net, 1.0, 5, rng=1), name="start")[0][0].shape)
        (5, 2, 30)
        """
        checks.instance(name, parameters, Parameters, "as from lib.representations.nets.draw")
        arrays = [np.asarray(array) for array in (*parameters.weights, *parameters.biases)]
        replicas, kind = len(np.atleast_1d(arrays[0])), arrays[0].dtype
        shapes = [(replicas, layer.window, layer.filters) for layer in self.layers]
        shapes += [(replicas, 1, layer.filters) for layer in self.layers]
        if [array.shape for array in arrays] != shapes or {array.dtype for array in arrays} != {kind} or replicas == 0:
            checks.fail(name, f"hold weights and biases, of one precision and of the shapes {shapes}", parameters)
        if kind.name not in PRECISIONS or not all(np.isfinite(array).all() for array in arrays):
            checks.fail(name, "hold finite numbers, float64 or float32", parameters)
        tensors = [torch.from_numpy(array.copy()) for array in arrays]
        return tensors[: len(self.layers)], tensors[len(self.layers) :]


@dataclass(frozen=True, eq=False)
class Parameters:
    """Weights and biases of R replicas, float64 or float32; one entry for each layer, the output last."""

    weights: tuple  # of arrays (R, in, out)
    biases: tuple  # of arrays (R, 1, out)


def draw(net: Net, gain: float, replicas: int, rng: Rng, *, precision: str = "float64") -> Parameters:
    """Parameters at the start: Xavier-normal weights times a gain, biases zero.

    Variances  2g²/(n_in + n_out),  n_in = in, n_out = out for a fully connected layer, k times the numbers of channels
    for a convolution.

    Parameters
    ----------
    net : Net
    gain : float
        g >= 0.
    replicas : int
        R >= 1.
    rng : int, SeedSequence or Generator
        Replica r draws from the r-th child of the seed, whatever their number.
    precision : str
        "float64" or "float32".

    Returns
    -------
    Parameters

    Examples
    --------
    >>> [w.shape for w in draw(Net(2, 1, 30, 2), 1.0, 5, rng=1).weights]
    [(5, 2, 30), (5, 30, 30), (5, 30, 1)]
    """
    layers = checks.instance("net", net, Net, "from lib.representations.nets").layers
    gain, replicas = checks.number("gain", gain, at_least=0), checks.integer("replicas", replicas)
    checks.one_of("precision", precision, PRECISIONS)
    weights = [np.empty((replicas, layer.window, layer.filters), precision) for layer in layers]  # (R, in, out) each
    for r, child in enumerate(children(rng, replicas)):
        random = checks.generator("rng", child)
        for layer, weight in zip(layers, weights):
            spread = gain * np.sqrt(2 / (layer.window + layer.window // layer.stride * layer.filters))
            weight[r] = spread * random.standard_normal(weight.shape[1:])  # (in, out)
    return Parameters(
        tuple(weights), tuple(np.zeros((replicas, 1, layer.filters), dtype=precision) for layer in layers)
    )


def values(net: Net, parameters: Parameters, inputs: ArrayLike) -> tuple[Array["R P _"], ...]:
    """Values of all hidden layers and of the output, without dropout:  h_l = φ(W_l h_{l-1} + b_l),  the last without φ.

    Parameters
    ----------
    net : Net
    parameters : Parameters
        Of R replicas.
    inputs : array_like (P, n)
        One point in each row.

    Returns
    -------
    tuple of ndarray (R, P, units)
        One for each layer, the output last.

    Examples
    --------
    >>> net = Net(2, 1, 30, 2)
    >>> [h.shape for h in values(net, draw(net, 1.0, 5, rng=1), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])]
    [(5, 3, 30), (5, 3, 30), (5, 3, 1)]
    """
    weights, biases = checks.instance("net", net, Net, "from lib.representations.nets").tensors(parameters)
    with torch.no_grad():
        found, _ = _passes.forward(net, weights, biases, net.stacked(inputs, len(weights[0]), weights[0].dtype))
    return tuple(layer.numpy() for layer in found[1:])

"""Networks of the experiments on representation learning: many replicas drawn, evaluated and trained side by side.

Every layer is  z = W·(window of the layer below) + b,  h = φ(z),  with one window, the whole layer, or for a
convolution a sliding one: layers are stored channel by channel within a position, so that k positions are a contiguous
piece.  All replicas take a step in the same few matrix products; each would do the same alone, up to rounding.
Autograd gives all gradients, but for plain descent only those of the preactivations z: those of the weights, outer
products of them, are added in place, in half the time.  Source: vanrossem2024, eqs. (1), (4) and section B.1 of its
appendix.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lib.common import checks
from lib.common.extras import needs
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng

torch, functional = needs("torch"), needs("torch.nn.functional")
_PHI = {
    "leaky_relu": lambda z: functional.leaky_relu(z, 0.01),
    "relu": lambda z: torch.relu(z),
    "elu": lambda z: functional.elu(z),
    "tanh": lambda z: torch.tanh(z),
    "swish": lambda z: functional.silu(z),
    "linear": lambda z: z,
}
ACTIVATIONS = tuple(_PHI)
BIASES = ("all", "output", "none")
PRECISIONS = ("float64", "float32")
LOSSES = {"half": 0.5, "whole": 1.0}
OPTIMIZERS = ("descent", "adam", "one divisor")
_WATCH = 100  # epochs from one look for overflow to the next, where none is recorded


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

    def _stacked(self, inputs, replicas, dtype):
        """Inputs (P, n), checked, as a tensor (R, P, n): the same for each replica."""
        inputs = checks.array("inputs", inputs, shape=(None, self.inputs))  # (P, n)
        checks.fail_if(len(inputs) == 0, "inputs", "hold at least one point", "none")
        return torch.from_numpy(inputs).to(dtype).repeat(replicas, 1, 1)  # (R, P, n)

    def _tensors(self, parameters, name="parameters"):
        """Weights (R, in, out) and biases (R, 1, out) as fresh tensors, checked to be those of the net."""
        checks.instance(name, parameters, Parameters, "as from Net.draw")
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

    def _forward(self, weights, biases, points, kept=None):
        """Values of all layers (R, P, units), inputs first; windows and z of each layer, (R, P·positions, in or out).

        `kept`: one dropout mask for the input of each layer.
        """
        last, values, trace = len(self.layers) - 1, [points], []
        for i, layer in enumerate(self.layers):
            seen = values[-1] if kept is None else values[-1] * kept[i]  # (R, P, units)
            if layer.window != seen.shape[2]:
                windows = seen.unfold(2, layer.window, layer.stride)  # (R, P, positions, in)
                seen = windows.reshape(len(points), -1, layer.window)  # (R, P·positions, in)
            z = torch.baddbmm(biases[i], seen, weights[i])  # (R, P·positions, out)
            if i == 0:
                z.requires_grad_(torch.is_grad_enabled())
            trace.append((seen, z))
            y = z if layer.positions == 1 else z.view(*points.shape[:2], -1)  # (R, P, positions·out)
            y = y if i == last else _PHI[self.activation](y)  # (R, P, positions·out)
            values.append(y + values[-2] if self.skip and 2 <= i < last else y)
        return values, trace

    def _descend(self, weights, biases, rate, trace, slopes):
        """A step of plain descent in place, from the windows of every layer and the gradients of its z."""
        with torch.no_grad():
            for weight, bias, moves, (seen, _), slope in zip(weights, biases, self.trained_biases, trace, slopes):
                weight.baddbmm_(seen.transpose(1, 2), slope, alpha=-rate)
                if moves:
                    bias.sub_(slope.sum(1, keepdim=True), alpha=rate)

    def draw(self, gain: float, replicas: int, rng: Rng, *, precision: str = "float64") -> "Parameters":
        """Parameters at the start: Xavier-normal weights times a gain, biases zero.

        Variances  2g²/(n_in + n_out),  n_in = in, n_out = out for a fully connected layer, k times the numbers of
        channels for a convolution.

        Parameters
        ----------
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
        >>> [w.shape for w in Net(2, 1, 30, 2).draw(1.0, 5, rng=1).weights]
        [(5, 2, 30), (5, 30, 30), (5, 30, 1)]
        """
        layers = self.layers
        gain, replicas = checks.number("gain", gain, at_least=0), checks.integer("replicas", replicas)
        checks.one_of("precision", precision, PRECISIONS)
        weights = [
            np.empty((replicas, layer.window, layer.filters), precision) for layer in layers
        ]  # (R, in, out) each
        for r, child in enumerate(children(rng, replicas)):
            random = checks.generator("rng", child)
            for layer, weight in zip(layers, weights):
                spread = gain * np.sqrt(2 / (layer.window + layer.window // layer.stride * layer.filters))
                weight[r] = spread * random.standard_normal(weight.shape[1:])  # (in, out)
        return Parameters(
            tuple(weights), tuple(np.zeros((replicas, 1, layer.filters), dtype=precision) for layer in layers)
        )

    def values(self, parameters: "Parameters", inputs: ArrayLike) -> tuple[Array["R P _"], ...]:
        """Values of all layers, without dropout:  h_l = φ(W_l h_{l-1} + b_l),  the output's without φ.

        Parameters
        ----------
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
        >>> [h.shape for h in net.values(net.draw(1.0, 5, rng=1), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])]
        [(5, 3, 30), (5, 3, 30), (5, 3, 1)]
        """
        weights, biases = self._tensors(parameters)
        with torch.no_grad():
            found, _ = self._forward(weights, biases, self._stacked(inputs, len(weights[0]), weights[0].dtype))
        return tuple(layer.numpy() for layer in found[1:])

    def train(
        self,
        start: "Parameters",
        inputs: ArrayLike,
        targets: ArrayLike,
        learning_rate: float,
        epochs: int,
        *,
        loss: str = "half",
        optimizer: str = "descent",
        batch: int | None = None,
        rng: Rng | None = None,
        record_every: int = 1,
        layer: int | tuple | list | range | None = None,
        pair: tuple | list = (0, 1),
        points: tuple | list | range = (),
    ) -> "Curves":
        """Train the replicas of a net side by side and record their observables.

        Descent,  θ ← θ - η ∇L,  Adam, or Adam with one divisor for all weights of a replica, the root
        of a mean of their mean square gradient, on  L = c Σ_i |f(x_i) - y_i|² / P,  c = ½, vanrossem2024 eq. (1), or 1.
        Overflow of a replica is an error.

        Parameters
        ----------
        start : Parameters
            Of R replicas, trained in their own precision.
        inputs, targets : array_like (P, n), (P, m)
        learning_rate : float
            η > 0.
        epochs : int
            Sweeps through the data, >= 1.
        loss, optimizer : str
            "half" or "whole"; "descent", "adam" or "one divisor".
        batch : int, optional
            Points in a minibatch, by default all.
        rng : int, SeedSequence or Generator, optional
            Required for minibatches and dropout; replica r draws from the r-th child of the seed.
        record_every : int
            Epochs from one record to the next; must divide `epochs`.
        layer : int or tuple of int, optional
            Hidden layers to record, counted from 1, by default the middle one.
        pair, points : tuple of int
            Rows of x_1 and x_2; Q rows whose hidden vectors are kept.

        Returns
        -------
        Curves
            The start first.

        Examples
        --------
        >>> net = Net(1, 1, 20, 1, "linear")
        >>> task = net.draw(0.3, 4, rng=1), [[-0.5], [0.5]], [[-0.3], [0.3]]
        >>> curves = net.train(*task, 0.1, 500, batch=2, rng=1, record_every=50, layer=1)
        >>> curves.alignment.shape, curves.squared_output_distance[0, -1].round(4).item()
        ((4, 11), 0.36)
        """
        weights, biases = self._tensors(start, "start")
        replicas, dtype = len(weights[0]), weights[0].dtype
        points_in = self._stacked(inputs, replicas, dtype)  # (R, P, n)
        count = points_in.shape[1]
        targets = checks.array("targets", targets, shape=(count, self.outputs))  # (P, m)
        wanted = torch.from_numpy(targets).to(dtype).repeat(replicas, 1, 1)  # (R, P, m)
        rate = checks.number("learning_rate", learning_rate, above=0)
        epochs, every = checks.integer("epochs", epochs), checks.integer("record_every", record_every)
        checks.fail_if(epochs % every, "record_every", f"divide the number of epochs, {epochs}", record_every)
        checks.one_of("loss", loss, LOSSES)
        checks.one_of("optimizer", optimizer, OPTIMIZERS)
        batch = count if batch is None else checks.integer("batch", batch)
        checks.fail_if(batch > count, "batch", f"be at most the number of points, {count}", batch)
        batch = None if batch == count else batch
        several, layer = isinstance(layer, (tuple, list, range)), self.middle if layer is None else layer
        layers = _places(
            "layer", layer if several else [layer], 1, len(self.layers) - 1, sizes=range(1, len(self.layers))
        )
        pair = _places("pair", pair, 0, count - 1, sizes=[2])
        points = _places("points", points, 0, count - 1, sizes=range(count + 1))
        randoms = None
        if rng is not None or batch is not None or self.dropout:
            # The children of the children: weights drawn from the same seed stay independent of what is drawn here.
            randoms = [checks.generator("rng", children(child, 1)[0]) for child in children(rng, replicas)]

        records, simple, adam = [], batch is None and not self.dropout, None
        if optimizer != "descent":
            trained = [*weights, *(bias for bias, moves in zip(biases, self.trained_biases) if moves)]
            rule = {"adam": torch.optim.Adam, "one divisor": _OneDivisor}[optimizer]
            adam = rule([tensor.requires_grad_() for tensor in trained], lr=rate)

        for epoch in range(epochs + 1):
            recording = epoch % every == 0
            if simple or recording:
                values, trace = self._forward(weights, biases, points_in)
            if recording:
                with np.errstate(over="ignore", invalid="ignore"):  # refused in the next line
                    records.append(_observed([h.detach() for h in values], targets, pair, layers, points, LOSSES[loss]))
                _check_finite(epoch, records[-1][0], records[-1][3])
            elif epoch % _WATCH == 0:  # what overflows in one layer is in the output's weights a step later
                _check_finite(epoch, weights[-1].detach())
            if epoch == epochs:
                break
            for some, goal in [(points_in, wanted)] if batch is None else _batches(points_in, wanted, batch, randoms):
                if not simple:
                    kept = _masks(self, some.shape, randoms, dtype) if self.dropout else None
                    values, trace = self._forward(weights, biases, some, kept)
                gradient = (values[-1].detach() - goal) * (2 * LOSSES[loss] / goal.shape[1])  # (R, P, m)
                if adam is not None:
                    adam.zero_grad()
                    values[-1].backward(gradient)
                    adam.step()
                else:
                    slopes = torch.autograd.grad(values[-1], [z for _, z in trace], gradient)
                    self._descend(weights, biases, rate, trace, slopes)  # slopes (R, P·positions, out) each
        weights, biases = ([tensor.detach() for tensor in tensors] for tensors in (weights, biases))
        _check_finite(epochs, *weights)
        squares, difference, mean, losses, *hidden = (
            np.stack(part, axis=1) for part in zip(*records)
        )  # (R, n, ...) each
        return Curves(
            epochs=np.arange(0, epochs + 1, every),  # (n,)
            squared_hidden_distance=squares if several else squares[:, :, 0],
            output_difference=difference,
            squared_output_distance=(difference**2).sum(axis=2),  # (R, n)
            alignment=(difference * (difference - (targets[pair[1]] - targets[pair[0]]))).sum(axis=2),  # (R, n)
            loss=losses,
            mean_output=mean,
            hidden=None if not points else tuple(hidden) if several else hidden[0],
            parameters=Parameters(tuple(x.numpy() for x in weights), tuple(x.numpy() for x in biases)),
        )


class _OneDivisor:
    """Adam's step, but one divisor for all trained numbers of a replica; tensors (R, ., .)."""

    def __init__(self, trained, lr):
        self.trained, self.rate, self.time, self.square = trained, lr, 0, 0.0
        self.means = [torch.zeros_like(tensor) for tensor in trained]
        self.count = sum(tensor[0].numel() for tensor in trained)

    def zero_grad(self):
        for tensor in self.trained:
            tensor.grad = None

    def step(self):
        self.time += 1
        gradients = [tensor.grad for tensor in self.trained]
        size = sum(gradient.square().sum((1, 2), keepdim=True) for gradient in gradients) / self.count  # (R, 1, 1)
        self.square = 0.999 * self.square + 0.001 * size
        divisor = (self.square / (1 - 0.999**self.time)).sqrt() + 1e-8
        for tensor, gradient, mean in zip(self.trained, gradients, self.means):
            mean.lerp_(gradient, 0.1)
            tensor.data -= self.rate / (1 - 0.9**self.time) * mean / divisor


@dataclass(frozen=True, eq=False)
class Parameters:
    """Weights and biases of R replicas, float64 or float32; one entry for each layer, the output last."""

    weights: tuple  # of arrays (R, in, out)
    biases: tuple  # of arrays (R, 1, out)


@dataclass(frozen=True, eq=False)
class Curves:
    """Observables of a pair of points in R replicas at n epochs, float64, without dropout.

    Those of one layer have no axis K, those of several have one.
    """

    epochs: Array[" n"]
    squared_hidden_distance: Array["R n *K"]  # a = |h_2 - h_1|²
    output_difference: Array["R n m"]  # Δf = f(x_2) - f(x_1)
    squared_output_distance: Array["R n"]  # b = |Δf|²
    alignment: Array["R n"]  # w = b - Δf·(y_2 - y_1)
    loss: Array["R n"]  # of the whole data set
    mean_output: Array["R n m"]  # ȳ, mean over the pair
    hidden: np.ndarray | tuple | None  # (R, n, Q, units)  of the chosen points; of several layers: an array for each
    parameters: Parameters | None  # at the last epoch

    def converged(self, *, below: float = 1e-3) -> Array[" R"]:
        """Which replicas end with a loss smaller than `below`; the mean is the converged fraction.

        Parameters
        ----------
        below : float
            > 0.

        Returns
        -------
        ndarray (R,)
            Truth values.

        Examples
        --------
        >>> net = Net(1, 1, 20, 1, "linear")
        >>> curves = net.train(net.draw(0.3, 4, rng=1), [[-0.5], [0.5]], [[-0.3], [0.3]], 0.1, 500)
        >>> curves.converged(below=0.01).tolist()
        [True, True, True, True]
        """
        return self.loss[:, -1] < checks.number("below", below, above=0)

    def states(self, *, layer: int | None = None) -> Array["R n 3"]:
        """The three numbers (a, b, w) of every replica and record.

        Parameters
        ----------
        layer : int, optional
            Place among several recorded layers, from 0.

        Returns
        -------
        ndarray (R, n, 3)

        Examples
        --------
        >>> net = Net(1, 1, 20, 2)
        >>> task = net.draw(0.3, 4, rng=1), [[-0.5], [0.5]], [[-0.3], [0.3]], 0.1, 5
        >>> net.train(*task, layer=(1, 2)).states(layer=1).shape
        (4, 6, 3)
        """
        a = self.squared_hidden_distance  # (R, n) or (R, n, K)
        a = a if a.ndim == 3 else a[:, :, None]  # (R, n, K)
        if layer is None and a.shape[2] > 1:
            checks.fail("layer", f"be given, from 0 to {a.shape[2] - 1}, as several layers were recorded", layer)
        place = 0 if layer is None else checks.integer("layer", layer, at_least=0)
        checks.fail_if(place >= a.shape[2], "layer", f"be below the number of recorded layers, {a.shape[2]}", layer)
        return np.stack([a[:, :, place], self.squared_output_distance, self.alignment], axis=2)


def _masks(net, shape, randoms, dtype):
    """One dropout mask for the input of every layer, each replica from its own stream."""
    sizes = [net.inputs, *(layer.positions * layer.filters for layer in net.layers[:-1])]
    size = shape[1], sum(sizes)
    drawn = np.stack([random.random(size, dtype=np.float32) for random in randoms])  # (R, P, sum of units)
    kept = torch.from_numpy(drawn >= np.float32(net.dropout)).to(dtype) / (1 - net.dropout)  # (R, P, sum of units)
    return kept.split(sizes, dim=2)


def _batches(points, targets, batch, randoms):
    """The minibatches of one epoch: each replica shares out its own permutation, the last batch may be smaller."""
    order = torch.from_numpy(np.stack([random.permutation(points.shape[1]) for random in randoms]))  # (R, P)
    replica = torch.arange(len(points))[:, None]  # (R, 1)
    for chosen in order.split(batch, dim=1):
        yield points[replica, chosen], targets[replica, chosen]


def _observed(values, targets, pair, layers, points, scale):
    """a (R, K), Δf (R, m), ȳ (R, m), the loss (R,) and the hidden vectors of `points` (R, Q, units), layer by layer."""
    first, second = pair
    apart = [values[layer][:, second].double() - values[layer][:, first].double() for layer in layers]
    squares = np.stack([(difference.numpy() ** 2).sum(axis=1) for difference in apart], axis=1)  # (R, K)
    output = values[-1].double().numpy()  # (R, P, m)
    loss = scale * ((output - targets) ** 2).reshape(len(output), -1).sum(axis=1) / len(targets)  # (R,)
    ends = output[:, first], output[:, second]  # (R, m), (R, m)
    hidden = [values[layer][:, points].numpy() for layer in layers if points]  # (R, Q, units) each
    return squares, ends[1] - ends[0], (ends[1] + ends[0]) / 2, loss, *hidden


def _places(name, value, first, last, sizes):
    """`value` as a list of distinct integers from `first` to `last`."""
    if not isinstance(value, (tuple, list, range)) or len(value) not in sizes:
        checks.fail(name, f"be a tuple or list of {sizes[0]} to {sizes[-1]} integers", value)
    places = [checks.integer(name, place, at_least=first) for place in value]
    if max(places, default=first) > last or len(set(places)) < len(places):
        checks.fail(name, f"hold distinct integers from {first} to {last}", value)
    return places


def _check_finite(epoch, *arrays):
    """Refuse a learning rate that drove replicas, the first axis of every array, out of the floating-point range."""
    fine = np.all([np.isfinite(np.asarray(a)).reshape(len(a), -1).all(axis=1) for a in arrays], axis=0)  # (R,)
    if not fine.all():
        wanted = "be small enough to keep every replica inside the floating-point range"
        checks.fail("learning_rate", wanted, f"overflow in replicas {np.flatnonzero(~fine)} by epoch {epoch}")

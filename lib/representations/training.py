"""Training networks side by side, and what the two-point theory speaks of along the way.

All replicas take a step in the same few matrix products; each would do the same alone, up to rounding.  Source:
vanrossem2024, eqs. (1), (4) and section B.1 of its appendix.
"""

from dataclasses import dataclass

import numpy as np

from lib.common import checks
from lib.common.extras import needs
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.representations import _passes, nets

torch = needs("torch")
LOSSES = {"half": 0.5, "whole": 1.0}
_WATCH = 100  # epochs from one look for overflow to the next, where none is recorded


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
    parameters: nets.Parameters | None  # at the last epoch

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
        >>> net = nets.Net(1, 1, 20, 1, "linear")
        >>> curves = train(net, nets.draw(net, 0.3, 4, rng=1), [[-0.5], [0.5]], [[-0.3], [0.3]], 0.1, 500)
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
        >>> net = nets.Net(1, 1, 20, 2)
        >>> task = nets.draw(net, 0.3, 4, rng=1), [[-0.5], [0.5]], [[-0.3], [0.3]], 0.1, 5
        >>> train(net, *task, layer=(1, 2)).states(layer=1).shape
        (4, 6, 3)
        """
        a = self.squared_hidden_distance  # (R, n) or (R, n, K)
        a = a if a.ndim == 3 else a[:, :, None]  # (R, n, K)
        if layer is None and a.shape[2] > 1:
            checks.fail("layer", f"be given, from 0 to {a.shape[2] - 1}, as several layers were recorded", layer)
        place = 0 if layer is None else checks.integer("layer", layer, at_least=0)
        checks.fail_if(place >= a.shape[2], "layer", f"be below the number of recorded layers, {a.shape[2]}", layer)
        return np.stack([a[:, :, place], self.squared_output_distance, self.alignment], axis=2)


def _adam(weights, biases, rate, trained):
    """A function that takes Adam's step; torch keeps the running moments."""
    optimizer = torch.optim.Adam([*weights, *(bias for bias, moves in zip(biases, trained) if moves)], lr=rate)

    def step(trace, slopes):
        for weight, bias, (seen, _), slope in zip(weights, biases, trace, slopes):
            weight.grad, bias.grad = torch.bmm(seen.transpose(1, 2), slope), slope.sum(1, keepdim=True)
        optimizer.step()

    return step


def _descent(weights, biases, rate, trained):
    """A function that takes the step of plain descent, in place."""

    def step(trace, slopes):
        for weight, bias, moves, (seen, _), slope in zip(weights, biases, trained, trace, slopes):
            weight.baddbmm_(seen.transpose(1, 2), slope, alpha=-rate)
            if moves:
                bias.sub_(slope.sum(1, keepdim=True), alpha=rate)

    return step


OPTIMIZERS = {"descent": _descent, "adam": _adam}


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


def train(
    net: nets.Net,
    start: nets.Parameters,
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
) -> Curves:
    """Train the replicas of a net side by side and record their observables.

    Descent,  θ ← θ - η ∇L,  or Adam, on  L = c Σ_i |f(x_i) - y_i|² / P,  c = ½, vanrossem2024 eq. (1), or 1.  Overflow
    of a replica is an error.

    Parameters
    ----------
    net, start : Net, Parameters
        Of R replicas, trained in their own precision.
    inputs, targets : array_like (P, n), (P, m)
    learning_rate : float
        η > 0.
    epochs : int
        Sweeps through the data, >= 1.
    loss, optimizer : str
        "half" or "whole"; "descent" or "adam".
    batch : int, optional
        Points in a minibatch, by default all.
    rng : int, SeedSequence or Generator, optional
        Required for minibatches and dropout; replica r draws from the r-th child of the seed.
    record_every : int
        Epochs from one record to the next; must divide `epochs`.
    layer : int or tuple of int, optional
        Hidden layers to record, counted from 1, by default ``net.middle``.
    pair, points : tuple of int
        Rows of x_1 and x_2; Q rows whose hidden vectors are kept.

    Returns
    -------
    Curves
        The start first.

    Examples
    --------
    >>> net = nets.Net(1, 1, 20, 1, "linear")
    >>> task = nets.draw(net, 0.3, 4, rng=1), [[-0.5], [0.5]], [[-0.3], [0.3]]
    >>> curves = train(net, *task, 0.1, 500, batch=2, rng=1, record_every=50, layer=1)
    >>> curves.alignment.shape, curves.squared_output_distance[0, -1].round(4).item()
    ((4, 11), 0.36)
    """
    weights, biases = checks.instance("net", net, nets.Net, "from lib.representations.nets").tensors(start, "start")
    replicas, dtype = len(weights[0]), weights[0].dtype
    points_in = net.stacked(inputs, replicas, dtype)  # (R, P, n)
    count = points_in.shape[1]
    targets = checks.array("targets", targets, shape=(count, net.outputs))  # (P, m)
    wanted = torch.from_numpy(targets).to(dtype).repeat(replicas, 1, 1)  # (R, P, m)
    rate = checks.number("learning_rate", learning_rate, above=0)
    epochs, every = checks.integer("epochs", epochs), checks.integer("record_every", record_every)
    checks.fail_if(epochs % every, "record_every", f"divide the number of epochs, {epochs}", record_every)
    checks.one_of("loss", loss, LOSSES)
    checks.one_of("optimizer", optimizer, OPTIMIZERS)
    batch = count if batch is None else checks.integer("batch", batch)
    checks.fail_if(batch > count, "batch", f"be at most the number of points, {count}", batch)
    batch = None if batch == count else batch
    several, layer = isinstance(layer, (tuple, list, range)), net.middle if layer is None else layer
    layers = _places("layer", layer if several else [layer], 1, len(net.layers) - 1, sizes=range(1, len(net.layers)))
    pair = _places("pair", pair, 0, count - 1, sizes=[2])
    points = _places("points", points, 0, count - 1, sizes=range(count + 1))
    randoms = None
    if rng is not None or batch is not None or net.dropout:
        # The children of the children: weights drawn from the same seed stay independent of what is drawn here.
        randoms = [checks.generator("rng", children(child, 1)[0]) for child in children(rng, replicas)]

    records, step = [], OPTIMIZERS[optimizer](weights, biases, rate, net.trained_biases)
    simple = batch is None and not net.dropout

    for epoch in range(epochs + 1):
        recording = epoch % every == 0
        if simple or recording:
            values, trace = _passes.forward(net, weights, biases, points_in)
        if recording:
            with np.errstate(over="ignore", invalid="ignore"):  # refused in the next line
                records.append(_observed([h.detach() for h in values], targets, pair, layers, points, LOSSES[loss]))
            _check_finite(epoch, records[-1][0], records[-1][3])
        elif epoch % _WATCH == 0:  # what overflows in one layer is in the output's weights a step later
            _check_finite(epoch, weights[-1])
        if epoch == epochs:
            break
        for some, goal in [(points_in, wanted)] if batch is None else _batches(points_in, wanted, batch, randoms):
            if not simple:
                kept = _masks(net, some.shape, randoms, dtype) if net.dropout else None
                values, trace = _passes.forward(net, weights, biases, some, kept)
            gradient = (values[-1].detach() - goal) * (2 * LOSSES[loss] / goal.shape[1])  # (R, P, m)
            slopes = torch.autograd.grad(values[-1], [z for _, z in trace], gradient)  # (R, P·positions, out) each
            with torch.no_grad():
                step(trace, slopes)
    _check_finite(epochs, *weights)
    squares, difference, mean, losses, *hidden = (np.stack(part, axis=1) for part in zip(*records))  # (R, n, ...) each
    return Curves(
        epochs=np.arange(0, epochs + 1, every),  # (n,)
        squared_hidden_distance=squares if several else squares[:, :, 0],
        output_difference=difference,
        squared_output_distance=(difference**2).sum(axis=2),  # (R, n)
        alignment=(difference * (difference - (targets[pair[1]] - targets[pair[0]]))).sum(axis=2),  # (R, n)
        loss=losses,
        mean_output=mean,
        hidden=None if not points else tuple(hidden) if several else hidden[0],
        parameters=nets.Parameters(tuple(x.numpy() for x in weights), tuple(x.numpy() for x in biases)),
    )

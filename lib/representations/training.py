"""Training networks side by side, and what the two-point theory speaks of along the way.

Descent,  θ ← θ - η ∇L,  or Adam, on the mean square error of trials that differ in their weights only.  All take a step
in the same few matrix products; each would do the same alone, up to rounding.  Plain descent adds the outer products of
its gradient to the weights in place.  Of a pair of points are observed the squared hidden distance  a = |h_2 - h_1|²,
the squared output distance b = |Δf|², the alignment  w = b - Δf·(y_2 - y_1), and the mean output  ȳ.  Source:
vanrossem2024, eqs. (1), (4) and section B.1 of its appendix.
"""

from dataclasses import dataclass

import numpy as np
import torch

from lib.common import checks
from lib.common.random import children
from lib.representations import _passes, nets

LOSSES = {"half": 0.5, "whole": 1.0}
OPTIMIZERS = ("descent", "adam")
_MEANS, _SQUARES, _TINY = 0.9, 0.999, 1e-8  # Adam's customary constants
_WATCH = 100  # epochs from one look for overflow to the next, where none is recorded


@dataclass(frozen=True, eq=False)
class Curves:
    """Observables of T trials at n epochs, float64; those of one layer have no axis K, those of several have one."""

    epochs: np.ndarray  # (n,)
    squared_hidden_distance: np.ndarray  # (T, n) or (T, n, K)  a
    output_difference: np.ndarray  # (T, n, m)  Δf = f(x_2) - f(x_1)
    squared_output_distance: np.ndarray  # (T, n)  b
    alignment: np.ndarray  # (T, n)  w
    loss: np.ndarray  # (T, n)  of the whole data set
    mean_output: np.ndarray  # (T, n, m)  ȳ, mean over the pair
    hidden: np.ndarray | tuple | None  # (T, n, Q, units)  of the chosen points; of several layers: an array for each
    parameters: nets.Parameters  # at the last epoch

    def converged(self, *, below=1e-3):
        """Which trials end with a loss smaller than `below`, bool array (T,); its mean is the converged fraction."""
        return self.loss[:, -1] < checks.number("below", below, above=0)


def _adam(weights, biases, rate, trains_bias):
    """A function that takes Adam's step for one layer; it keeps the running moments of every layer."""
    moments = [tuple(torch.zeros_like(p) for p in (w, w, b, b)) for w, b in zip(weights, biases)]
    counts = [0] * len(weights)

    def move(parameter, gradient, mean, square, count):
        mean.lerp_(gradient, 1 - _MEANS)
        square.mul_(_SQUARES).addcmul_(gradient, gradient, value=1 - _SQUARES)
        spread = (square.sqrt() / (1 - _SQUARES**count) ** 0.5).add_(_TINY)  # as parameter
        parameter.addcdiv_(mean, spread, value=-rate / (1 - _MEANS**count))

    def step(i, seen, slope):
        counts[i] += 1
        move(weights[i], torch.bmm(seen.transpose(1, 2), slope), *moments[i][:2], counts[i])
        if trains_bias[i]:
            move(biases[i], slope.sum(1, keepdim=True), *moments[i][2:], counts[i])

    return step


def _descent(weights, biases, rate, trains_bias):
    """A function that takes the step of plain descent for one layer."""

    def step(i, seen, slope):
        weights[i].baddbmm_(seen.transpose(1, 2), slope, alpha=-rate)
        if trains_bias[i]:
            biases[i].sub_(slope.sum(1, keepdim=True), alpha=rate)

    return step


def _masks(net, shape, randoms, dtype):
    """One dropout mask for the input of every layer, each trial from its own stream."""
    sizes = [net.inputs, *(layer.positions * layer.filters for layer in net.layers[:-1])]
    size = shape[1], sum(sizes)
    drawn = np.stack([random.random(size, dtype=np.float32) for random in randoms])  # (T, P, sum of units)
    kept = torch.from_numpy(drawn >= np.float32(net.dropout)).to(dtype) / (1 - net.dropout)  # (T, P, sum of units)
    return kept.split(sizes, dim=2)


def _batches(points, targets, batch, randoms):
    """The minibatches of one epoch: each trial shares out its own permutation, the last batch may be smaller."""
    order = torch.from_numpy(np.stack([random.permutation(points.shape[1]) for random in randoms]))  # (T, P)
    trial = torch.arange(len(points))[:, None]  # (T, 1)
    for chosen in order.split(batch, dim=1):
        yield points[trial, chosen], targets[trial, chosen]


def _observed(values, targets, pair, layers, points, scale):
    """a (T, K), Δf (T, m), ȳ (T, m), the loss (T,) and the hidden vectors of `points` (T, Q, units), layer by layer."""
    first, second = pair
    apart = [values[layer][:, second].double() - values[layer][:, first].double() for layer in layers]
    squares = np.stack([(difference.numpy() ** 2).sum(axis=1) for difference in apart], axis=1)  # (T, K)
    output = values[-1].double().numpy()  # (T, P, m)
    loss = scale * ((output - targets) ** 2).reshape(len(output), -1).sum(axis=1) / len(targets)  # (T,)
    ends = output[:, first], output[:, second]  # (T, m), (T, m)
    hidden = [values[layer][:, points].numpy() for layer in layers if points]  # (T, Q, units) each
    return squares, ends[1] - ends[0], (ends[1] + ends[0]) / 2, loss, *hidden


def _layers(net, layer):
    """The recorded layers as a tuple, and whether there is an axis for them."""
    if layer is None:
        return (net.middle,), False
    several = isinstance(layer, (tuple, list, range))
    layers = tuple(checks.integer("layer", one) for one in (layer if several else (layer,)))
    hidden = len(net.layers) - 1
    if max(layers, default=0) > hidden:
        checks.fail("layer", f"be between 1 and the number of hidden layers, {hidden}", layer)
    if not layers:
        checks.fail("layer", "hold at least one layer", layer)
    return layers, several


def _indices(name, value, count, size=None):
    if not isinstance(value, (tuple, list, range)) or (size is not None and len(value) != size):
        checks.fail(name, f"be a tuple or list of {'' if size is None else f'{size} '}indices of points", value)
    for index in value:
        if checks.integer(name, index, at_least=0) >= count:
            checks.fail(name, f"hold indices of points below {count}", value)
    if len(set(value)) != len(value):
        checks.fail(name, "hold distinct points", value)
    return [int(index) for index in value]


def _check_finite(epoch, *arrays):
    """Refuse a learning rate that has driven trials, the first axis of every array, out of the floating-point range."""
    each = [np.isfinite(np.asarray(array)).reshape(len(array), -1).all(axis=1) for array in arrays]  # (T,) each
    fine = np.all(each, axis=0)  # (T,)
    if not fine.all():
        lost = ", ".join(map(str, np.flatnonzero(~fine)))
        wanted = "be small enough to keep every trial inside the floating-point range"
        checks.fail("learning_rate", wanted, f"overflow in trials {lost} by epoch {epoch}")


def train(
    net,
    start,
    inputs,
    targets,
    learning_rate,
    epochs,
    *,
    loss="half",
    optimizer="descent",
    batch=None,
    rng=None,
    record_every=1,
    layer=None,
    pair=(0, 1),
    points=(),
):
    """Train the trials of a net side by side and record their observables.

    L = c Σ_i |f(x_i) - y_i|² / P,  c = ½, eq. (1), or 1; records are without dropout; overflow of a trial is an error.

    `net`, `start`: Net and Parameters of T trials, trained in their own precision; `inputs` (P, n), `targets` (P, m);
    `learning_rate`: η > 0; `epochs` >= 1: sweeps through the data; `loss`: "half" or "whole"; `optimizer`: "descent" or
    "adam"; `batch`: points in a minibatch, by default all; `rng`: int or SeedSequence, required for minibatches and
    dropout, trial t draws from its t-th child; `record_every`: epochs from one record to the next, must divide
    `epochs`; `layer`: hidden layer to record, counted from 1, or a tuple of K, by default ``net.middle``; `pair`: rows
    of x_1 and x_2; `points`: tuple of Q rows whose hidden vectors are kept.  Returns Curves, the start first.

    >>> net = nets.Net(1, 1, 20, 1, "linear")
    >>> curves = train(net, nets.draw(net, 0.3, 4, rng=1), [[-0.5], [0.5]], [[-0.3], [0.3]], 0.1, 500, record_every=50)
    >>> curves.alignment.shape, curves.converged().tolist(), curves.squared_output_distance[0, -1].round(4).item()
    ((4, 11), [True, True, True, True], 0.36)
    """
    weights, biases = checks.instance("net", net, nets.Net, "from lib.representations.nets").tensors(start, "start")
    trials, dtype = len(weights[0]), weights[0].dtype
    points_in = net.stacked(inputs, trials, dtype)  # (T, P, n)
    count = points_in.shape[1]
    targets = checks.array("targets", targets, shape=(count, net.outputs))  # (P, m)
    wanted = torch.from_numpy(targets).to(dtype).repeat(trials, 1, 1)  # (T, P, m)
    rate = checks.number("learning_rate", learning_rate, above=0)
    epochs, every = checks.integer("epochs", epochs), checks.integer("record_every", record_every)
    if epochs % every:
        checks.fail("record_every", f"divide the number of epochs, {epochs}", record_every)
    checks.one_of("loss", loss, LOSSES)
    checks.one_of("optimizer", optimizer, OPTIMIZERS)
    batch = count if batch is None else checks.integer("batch", batch)
    if batch > count:
        checks.fail("batch", f"be at most the number of points, {count}", batch)
    batch = None if batch == count else batch
    layers, several = _layers(net, layer)
    pair, points = _indices("pair", pair, count, 2), _indices("points", points, count)
    randoms = None
    if rng is not None or batch is not None or net.dropout:
        # The children of the children: weights drawn from the same seed stay independent of what is drawn here.
        randoms = [checks.generator("rng", children(child, 1)[0]) for child in children(rng, trials)]

    records, trains_bias = [], [net.trains_bias(i) for i in range(len(weights))]
    step = {"descent": _descent, "adam": _adam}[optimizer](weights, biases, rate, trains_bias)
    simple = batch is None and not net.dropout

    def sweep(values, trace, batch_targets, kept):
        gradient = (values[-1] - batch_targets) * (2 * LOSSES[loss] / batch_targets.shape[1])  # (T, P, m)
        for i, seen, slope, _ in _passes.backward(net, weights, values, trace, gradient, kept):
            step(i, seen, slope)

    for epoch in range(epochs + 1):
        recording = epoch % every == 0
        if simple or recording:
            values, trace = _passes.forward(net, weights, biases, points_in)
        if recording:
            with np.errstate(over="ignore", invalid="ignore"):  # refused in the next line
                records.append(_observed(values, targets, pair, layers, points, LOSSES[loss]))
            _check_finite(epoch, records[-1][0], records[-1][3])
        elif epoch % _WATCH == 0:  # what overflows in one layer is in the output's weights a step later
            _check_finite(epoch, weights[-1])
        if epoch == epochs:
            break
        if simple:
            sweep(values, trace, wanted, None)
            continue
        whole = [(points_in, wanted)]
        for some, some_targets in whole if batch is None else _batches(points_in, wanted, batch, randoms):
            kept = _masks(net, some.shape, randoms, dtype) if net.dropout else None
            sweep(*_passes.forward(net, weights, biases, some, kept), some_targets, kept)
    _check_finite(epochs, *weights)
    squares, difference, mean, losses, *hidden = (np.stack(part, axis=1) for part in zip(*records))  # (T, n, ...) each
    return Curves(
        epochs=np.arange(0, epochs + 1, every),  # (n,)
        squared_hidden_distance=squares if several else squares[:, :, 0],
        output_difference=difference,
        squared_output_distance=(difference**2).sum(axis=2),  # (T, n)
        alignment=(difference * (difference - (targets[pair[1]] - targets[pair[0]]))).sum(axis=2),  # (T, n)
        loss=losses,
        mean_output=mean,
        hidden=None if not points else tuple(hidden) if several else hidden[0],
        parameters=nets.Parameters(tuple(x.numpy() for x in weights), tuple(x.numpy() for x in biases)),
    )

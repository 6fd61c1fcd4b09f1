"""Many random starts of one experiment, and the two effective rates of each.

Trials of small nets are trained in one stack; of wide ones, which wait for memory, one by one on all cores, where a
sweep keeps each that is finished.  Source: vanrossem2024, section B.1 of its appendix and eq. (49).
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from lib.common import checks
from lib.common.random import children
from lib.representations import architectures, nets, rate_fit, training
from lib.services import sweep

STACKED = 100  # nets of at most so many units are trained in one stack


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of T trials; NaN for those that have not converged."""

    converged: np.ndarray  # (T,)  truth values
    encoder_rate: np.ndarray  # (T,)  α
    decoder_rate: np.ndarray  # (T,)  β
    mean_rate: np.ndarray  # (T,)  γ
    r_squared: np.ndarray  # (T, 3)  of a, b and w
    loss_r_squared: np.ndarray  # (T,)
    cost: np.ndarray  # (T,)  ∫[(a-â)² + (b-b̂)² + (w-ŵ)²] dt
    identifiable: np.ndarray  # (T, 2)  of α and β; False where there is no fit


def _experiment(experiment):
    return checks.instance("experiment", experiment, architectures.Experiment, "as from architectures.experiment")


def run(experiment, inputs, targets, trials, rng, *, precision="float32", keep_parameters=False, **options):
    """Draw the starts of an experiment and train them in one stack.

    `experiment`: from ``architectures``; `inputs` (P, n), `targets` (P, m); `trials`: T >= 1; `rng`: int or
    SeedSequence, trial t depends on its t-th child only; `precision`: "float64" or "float32"; `keep_parameters`:
    whether the curves hold those at the end; `options`: optimizer, record_every, layer, pair, points.  Returns Curves.

    >>> row = replace(architectures.experiment("narrow"), epochs=10)
    >>> run(row, [[0.0], [1.0]], [[0.0], [0.5]], 3, rng=1, record_every=5).loss.shape
    (3, 3)
    """
    row = _experiment(experiment)
    start = nets.draw(row.net, row.gain, trials, rng, precision=precision)
    keep_parameters = checks.boolean("keep_parameters", keep_parameters)
    given = row.net, start, inputs, targets, row.learning_rate, row.epochs
    curves = training.train(*given, loss=row.loss, batch=row.batch, rng=rng, **options)
    return curves if keep_parameters else replace(curves, parameters=None)


def _stacks(experiment, trials, together):
    """Numbers of trials of the stacks."""
    trials = checks.integer("trials", trials)
    if together is None:
        together = trials if _experiment(experiment).net.width <= STACKED else 1
    together = checks.integer("together", together)
    return [min(together, trials - begun) for begun in range(0, trials, together)]


def starts(experiment, trials, rng, *, together=None, precision="float32"):
    """The parameters that :func:`many` starts from with the same arguments.

    `experiment`, `trials`, `rng`, `together`, `precision`: as for :func:`many`.  Returns Parameters of T trials.

    >>> starts(architectures.experiment("narrow"), 3, rng=1, together=2).weights[1].shape
    (3, 50, 50)
    """
    row = _experiment(experiment)
    sizes = _stacks(row, trials, together)
    stacks = zip(sizes, children(rng, len(sizes)))
    drawn = [nets.draw(row.net, row.gain, size, child, precision=precision) for size, child in stacks]
    weights = tuple(np.concatenate(layer) for layer in zip(*(part.weights for part in drawn)))  # (T, in, out) each
    biases = tuple(np.concatenate(layer) for layer in zip(*(part.biases for part in drawn)))  # (T, 1, out) each
    return nets.Parameters(weights, biases)


def _join(parts):
    """Curves of several stacks of trials of one experiment as one."""
    if len(parts) == 1:
        return parts[0]

    def joined(name):
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], tuple):
            return tuple(np.concatenate(arrays) for arrays in zip(*values))  # (T, n, Q, units) each
        return None if values[0] is None else np.concatenate(values)  # (T, ...)

    names = [field.name for field in fields(parts[0]) if field.name not in ("epochs", "parameters")]
    return replace(parts[0], parameters=None, **{name: joined(name) for name in names})


def many(experiment, inputs, targets, trials, rng, *, together=None, workers=None, **options):
    """The trials of :func:`run`, in one or several stacks that may run at the same time and that a sweep keeps.

    `experiment`, `inputs`, `targets`, `trials`, `options`: as for :func:`run`; `rng`: int or SeedSequence, stack n
    gets the n-th child, so results depend on `together`: trials in a stack, by default all for nets of at most 100
    units, or else one; `workers`: see :func:`lib.services.sweep.run`.  Returns Curves; several stacks lose parameters.

    >>> row = replace(architectures.experiment("narrow"), epochs=10)
    >>> many(row, [[0.0], [1.0]], [[0.0], [0.5]], 3, rng=1, together=2, record_every=5).loss.shape
    (3, 3)
    """
    sizes = _stacks(experiment, trials, together)
    settings = [dict(experiment=experiment, inputs=inputs, targets=targets, trials=size, **options) for size in sizes]
    return _join(sweep.run(run, settings, rng, workers=workers))


def states(curves, *, layer=None):
    """The three numbers (a, b, w) of every trial and record.

    `curves`: of T trials and n records; `layer`: place among several recorded layers, from 0. Returns (T, n, 3).

    >>> row = replace(architectures.experiment("narrow"), epochs=10)
    >>> states(run(row, [[0.0], [1.0]], [[0.0], [0.5]], 2, rng=1)).shape
    (2, 11, 3)
    """
    checks.instance("curves", curves, training.Curves, "as from training.train or trials.run")
    a = curves.squared_hidden_distance  # (T, n) or (T, n, K)
    if layer is None:
        if a.ndim == 3:
            checks.fail("layer", f"be given, from 0 to {a.shape[2] - 1}, as several layers were recorded", layer)
    else:
        count = a.shape[2] if a.ndim == 3 else 1
        if (layer := checks.integer("layer", layer, at_least=0)) >= count:
            checks.fail("layer", f"be below the number of recorded layers, {count}", layer)
        a = a[:, :, layer] if a.ndim == 3 else a  # (T, n)
    return np.stack([a, curves.squared_output_distance, curves.alignment], axis=2)  # (T, n, 3)


def fits(
    curves,
    input_distance,
    target_distance,
    rng,
    *,
    layer=None,
    final_loss=1e-3,
    weighting="raw",
    restarts=2,
    from_output=0.0,
):
    """Fit the two effective rates to every trial that has converged, by :func:`lib.representations.rate_fit.fit`.

    `curves`: of T trials of two points, with the loss that has the factor ½; `input_distance`: X > 0;
    `target_distance`: Y >= 0; `rng`: int or SeedSequence, trial t draws its restarts from the t-th child; `layer`: see
    :func:`states`; `final_loss`, `weighting`, `restarts`: as there; `from_output`: the fit begins at the first record
    or, to leave the plateau out, where b ends its last stay below this part of Y, 0 to 1, excluded.  Returns Fits.

    >>> row = replace(architectures.experiment("shallow"), net=nets.Net(1, 1, 50, 2), gain=0.6)
    >>> found = fits(run(row, [[-1.0], [0.0]], [[0.6], [1.3]], 2, rng=1, record_every=20), 1.0, 0.49, rng=1)
    >>> found.converged.tolist(), bool((found.r_squared[:, :2] > 0.9).all())
    ([True, True], True)
    """
    measured = states(curves, layer=layer)  # (T, n, 3)
    converged = curves.converged(below=checks.number("final_loss", final_loss, above=0))  # (T,)
    share = checks.number("from_output", from_output, at_least=0, below=1)
    level = share * checks.number("target_distance", target_distance, at_least=0)

    def fitted(t, child):
        low = np.flatnonzero(measured[t, :, 1] < level)  # (records below the level,)
        kept = slice(low[-1] + 1 if low.size else 0, None)
        data = curves.epochs[kept] - curves.epochs[kept][0], measured[t, kept], curves.loss[t, kept]
        options = {"rng": child, "weighting": weighting, "final_loss": final_loss, "restarts": restarts}
        return rate_fit.fit(*data, input_distance, target_distance, **options)

    seeds = children(rng, len(converged))
    found = [fitted(t, child) if converged[t] else None for t, child in enumerate(seeds)]

    blank = {"r_squared": np.full(3, np.nan), "identifiable": np.zeros(3, dtype=bool)}
    blank |= dict.fromkeys(("encoder_rate", "decoder_rate", "mean_rate", "loss_r_squared", "cost"), np.nan)
    columns = {k: np.array([no if one is None else getattr(one, k) for one in found]) for k, no in blank.items()}
    return Fits(converged, **columns | {"identifiable": columns["identifiable"][:, :2]})

"""Many random starts of one experiment, and the two effective rates of each.

Replicas of small nets are trained in one stack; of wide ones, which wait for memory, one by one on all cores, where a
sweep keeps each that is finished.  Source: vanrossem2024, section B.1 of its appendix and eq. (49).
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from lib.common import checks
from lib.common.random import children
from lib.common.shapes import Array, ArrayLike, Rng
from lib.representations import nets, rate_fit
from lib.representations.architectures import Experiment
from lib.services import sweep

STACKED = 100  # nets of at most so many units are trained in one stack


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of R replicas; NaN for those that have not converged."""

    converged: Array[" R"]  # truth values
    encoder_rate: Array[" R"]  # α
    decoder_rate: Array[" R"]  # β
    mean_rate: Array[" R"]  # γ
    r_squared: Array["R 3"]  # of a, b and w
    loss_r_squared: Array[" R"]
    cost: Array[" R"]  # ∫[(a-â)² + (b-b̂)² + (w-ŵ)²] dt, in the weighting of the fit
    identifiable: Array["R 3"]  # α, β and γ; False where there is no fit


def _stacks(experiment, replicas, together):
    """Numbers of replicas of the stacks."""
    row = checks.instance("experiment", experiment, Experiment, "as from architectures.experiment")
    replicas = checks.integer("replicas", replicas)
    usual = replicas if row.net.width <= STACKED else 1
    together = usual if together is None else checks.integer("together", together)
    return [min(together, replicas - begun) for begun in range(0, replicas, together)]


def _run(experiment, inputs, targets, replicas, rng, *, precision="float32", keep_parameters=False, **options):
    """Draw the starts of an experiment and train them in one stack; replica r depends on the r-th child of `rng`."""
    start = experiment.net.draw(experiment.gain, replicas, rng, precision=precision)
    given = start, inputs, targets, experiment.learning_rate, experiment.epochs
    curves = experiment.net.train(*given, loss=experiment.loss, batch=experiment.batch, rng=rng, **options)
    return curves if checks.boolean("keep_parameters", keep_parameters) else replace(curves, parameters=None)


def _concatenated(parts):
    """Tuples of arrays, one array a layer, joined along their first axis."""
    return tuple(np.concatenate(arrays) for arrays in zip(*parts))


def starts(
    experiment: Experiment, replicas: int, rng: Rng, *, together: int | None = None, precision: str = "float32"
) -> nets.Parameters:
    """The parameters that :func:`many` starts from with the same arguments.

    Parameters
    ----------
    experiment : Experiment
    replicas : int
        R >= 1.
    rng : int, SeedSequence or Generator
        Stack n gets the n-th child of the seed.
    together : int, optional
        Replicas in a stack, by default all for nets of at most 100 units, or else one.
    precision : str
        "float64" or "float32".

    Returns
    -------
    Parameters
        Of R replicas.

    Examples
    --------
    >>> from lib.representations import architectures
    >>> starts(architectures.experiment("narrow"), 3, rng=1, together=2).weights[1].shape
    (3, 50, 50)
    """
    sizes = _stacks(experiment, replicas, together)
    stacks = zip(sizes, children(rng, len(sizes)))
    drawn = [experiment.net.draw(experiment.gain, size, child, precision=precision) for size, child in stacks]
    return nets.Parameters(*(_concatenated(getattr(part, kind) for part in drawn) for kind in ("weights", "biases")))


def _join(parts):
    """Curves of several stacks of replicas of one experiment as one."""
    if len(parts) == 1:
        return parts[0]

    def joined(name):
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], tuple):
            return _concatenated(values)  # (R, n, Q, units) each
        return None if values[0] is None else np.concatenate(values)  # (R, ...)

    names = [field.name for field in fields(parts[0]) if field.name not in ("epochs", "parameters")]
    return replace(parts[0], parameters=None, **{name: joined(name) for name in names})


def many(
    experiment: Experiment,
    inputs: ArrayLike,
    targets: ArrayLike,
    replicas: int,
    rng: Rng,
    *,
    together: int | None = None,
    workers: int | None = None,
    **options: object,
) -> nets.Curves:
    """Draw the starts of an experiment and train them, in one or several stacks that may run at the same time.

    A sweep keeps every stack that is finished.

    Parameters
    ----------
    experiment : Experiment
    inputs, targets : array_like (P, n), (P, m)
    replicas : int
        R >= 1.
    rng : int, SeedSequence or Generator
        Stack n gets the n-th child of the seed, so results depend on `together`.
    together : int, optional
        Replicas in a stack, by default all for nets of at most 100 units, or else one.
    workers : int, optional
        Processes, by default one in the preset "quick", else all cores.
    options
        precision, "float64" or "float32" (the default); keep_parameters, whether the curves of a single stack hold
        those at the end; optimizer, record_every, layer, pair, points of :meth:`lib.representations.nets.Net.train`.

    Returns
    -------
    Curves
        Several stacks lose parameters.

    Examples
    --------
    >>> from lib.representations import architectures
    >>> row = replace(architectures.experiment("narrow"), epochs=10)
    >>> many(row, [[0.0], [1.0]], [[0.0], [0.5]], 3, rng=1, together=2, workers=1, record_every=5).loss.shape
    (3, 3)
    """
    sizes = _stacks(experiment, replicas, together)
    settings = [dict(experiment=experiment, inputs=inputs, targets=targets, replicas=n, **options) for n in sizes]
    return _join(sweep.run(_run, settings, rng, workers=workers))


def fits(
    curves: nets.Curves,
    input_distance: float,
    target_distance: float,
    rng: Rng,
    *,
    layer: int | None = None,
    final_loss: float = 1e-3,
    weighting: str = "raw",
    restarts: int = 2,
    from_output: float = 0.0,
) -> Fits:
    """Fit the two effective rates to every replica that has converged, by :func:`lib.representations.rate_fit.fit`.

    Parameters
    ----------
    curves : Curves
        Of R replicas of two points, with the loss that has the factor ½.
    input_distance, target_distance : float
        X > 0, Y >= 0.
    rng : int, SeedSequence or Generator
        Replica r draws its restarts from the r-th child of the seed.
    layer : int, optional
        Place among several recorded layers, from 0.
    final_loss : float
        What has converged ends below this loss, > 0.
    weighting : str
        "raw" or "range", which divides every curve by its range.
    restarts : int
        Further starts of each fit, >= 0.
    from_output : float
        The fit begins at the first record or, to leave the plateau out, where b ends its last stay below this part of
        Y, 0 to 1, excluded.

    Returns
    -------
    Fits

    Examples
    --------
    >>> from lib.representations import architectures
    >>> row = replace(architectures.experiment("shallow"), net=nets.Net(1, 1, 50, 2), gain=0.6)
    >>> curves = many(row, [[-1.0], [0.0]], [[0.6], [1.3]], 2, rng=1, record_every=20)
    >>> found = fits(curves, 1.0, 0.49, rng=1, layer=0, from_output=0.001)
    >>> found.converged.tolist(), bool((found.r_squared[:, :2] > 0.9).all())
    ([True, True], True)
    """
    checks.instance("curves", curves, nets.Curves, "as from Net.train or trials.many")
    measured = curves.states(layer=layer)  # (R, n, 3)
    converged = curves.converged(below=checks.number("final_loss", final_loss, above=0))  # (R,)
    share = checks.number("from_output", from_output, at_least=0, below=1)
    level = share * checks.number("target_distance", target_distance, at_least=0)

    def fitted(r, child):
        low = np.flatnonzero(measured[r, :, 1] < level)  # (records below the level,)
        kept = slice(low[-1] + 1 if low.size else 0, None)
        data = curves.epochs[kept] - curves.epochs[kept][0], measured[r, kept], curves.loss[r, kept]
        options = {"rng": child, "weighting": weighting, "final_loss": final_loss, "restarts": restarts}
        return rate_fit.fit(*data, input_distance, target_distance, **options)

    none, no = np.full(3, np.nan), np.zeros(3, dtype=bool)  # (3,) twice
    missing = rate_fit.RateFit(np.nan, np.nan, np.nan, none, np.nan, np.nan, none, no)
    seeds = children(rng, len(converged))
    found = [fitted(r, child) if converged[r] else missing for r, child in enumerate(seeds)]
    return Fits(converged, *(np.array([getattr(one, field.name) for one in found]) for field in fields(Fits)[1:]))

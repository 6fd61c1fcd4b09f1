"""Implicit steps of fourth order, with step control, for equations resolved by eigenspace.

Eigenspaces meet only in a, G and E, functions of the few overlaps Q, R of the fields.  In one step these are parabolas
in time through their values at start, middle and end; the last two must be those that the overlaps there imply (Lobatto
collocation), and a quasi-Newton iteration finds them.  Taken from the past instead they would ring in long steps: the
eigenvalue of the map from a, G, E to those that the eigenspaces settle at could be below -1.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dger

from lib.common import checks

ROUNDING = 1e-14  # of ε_g, a difference of numbers of order one: smaller errors cannot be followed
SPECIALIZATION = 10  # relative error of the differences among units, in parts of that of ε_g
LOCAL = 0.5  # part of the tolerance that a single step may spend
CONVERGED = 0.05  # part of that which the iteration may leave
ITERATIONS = 12  # more mean that the step is too long
SHORTEST = 1e-12  # a step shorter than this part of the time reached means that the equations cannot be followed


@dataclass(frozen=True)
class Step:
    """A step from a state: where it ends, what is seen at its start, middle and end, and a, G, E there."""

    length: float
    end: tuple
    seen: np.ndarray  # (3, p)
    curve: np.ndarray  # (3, c)


def along(curve, place):
    """The parabola through the values of `curve` (3, .) at 0, 1/2 and 1."""
    first, middle, last = curve
    return (1 - place) * (1 - 2 * place) * first + 4 * place * (1 - place) * middle + place * (2 * place - 1) * last


def apart(flow, seen, other, tolerance):
    """Largest difference between two sets of overlaps of the fields, in units of what the tolerance allows."""
    split, late = flow.differences(seen), flow.error(seen)
    return max(
        np.abs(seen - other).max() / (max(1.0, np.abs(flow.overlaps(seen)[0]).max()) * tolerance),
        abs(late - flow.error(other)) / (abs(late) * tolerance + ROUNDING),
        np.abs(split - flow.differences(other)).max() / (SPECIALIZATION * np.abs(split).max() * tolerance + ROUNDING),
    )


def consistent_step(flow, state, seen, guess, length, inverse, tolerance):
    """The step whose a, G, E are those of its own overlaps, or None where the iteration fails.

    Broyden's method for  found(x) = x,  x at middle and end; `inverse` (2p, 2p), minus its inverse Jacobian, improves.
    """
    x, start, last, move = guess, flow.coefficients(seen), None, None  # (2, p), (c,)
    for _ in range(ITERATIONS):
        curve = np.stack([start, flow.coefficients(x[0]), flow.coefficients(x[1])])  # (3, c)
        if not np.isfinite(curve).all():
            return None
        middle, end = flow.stages(state, curve, length)
        found = np.stack([flow.seen(middle), flow.seen(end)])  # (2, p)
        if not np.isfinite(found).all():
            return None
        if max(apart(flow, *pair, CONVERGED * tolerance) for pair in zip(found, x)) <= 1:
            return Step(length, end, np.stack([seen, *found]), curve)
        missing = (found - x).ravel()  # (2p,)
        if move is not None:
            turned = inverse @ (missing - last)  # (2p,)
            scale = move @ turned
            if scale != 0:
                dger(-1 / scale, move @ inverse, move + turned, a=inverse.T, overwrite_a=True)  # in place
        move, last = inverse @ missing, missing
        x = x + move.reshape(x.shape)
    return None


def in_doubt(flow, state, step, before, tolerance):
    """Error of a step, of third order: how middle and end change if a, G, E in its middle came from three other points.

    Those are its ends and the start of the last step; N loses its cubic part, too.
    """
    first, _, last = step.curve
    if before is None:
        middle = (first + last) / 2
    else:
        ratio = before.length / step.length
        middle = (ratio + 0.5) / 2 * (first / ratio + last / (1 + ratio)) - before.curve[0] / (4 * ratio * (1 + ratio))
    others = flow.stages(state, np.stack([first, middle, last]), step.length, bent=False)
    return max(apart(flow, seen, flow.seen(other), tolerance) for seen, other in zip(step.seen[1:], others))


def inside(flow, state, step, place):
    """The state at a part of a step: the parabolas, up to there."""
    curve = np.stack([along(step.curve, place * part) for part in (0, 0.5, 1)])
    return flow.stages(state, curve, place * step.length)[1]


def follow(times, state, flow, rate, lam, tolerance):
    """The states at the times, each part (n, ...)."""
    tolerance = checks.number("tolerance", tolerance, at_least=1e-10, below=1)
    length, tolerance = min(1.0, tolerance / rate * 100) / lam.max(), LOCAL * tolerance
    now, before, seen = 0.0, None, flow.seen(state)
    inverse = np.eye(2 * seen.size)
    states = [state] if times[0] == 0 else []
    while now < times[-1]:
        last = length >= times[-1] - now
        trial = times[-1] - now if last else length
        if not trial > SHORTEST * now:
            raise RuntimeError(f"the equations could not be followed beyond α = {now:g}: take a smaller learning_rate")
        if before is None:
            guess = np.stack([seen, seen])
        else:
            guess = np.stack([along(before.seen, 1 + part * trial / before.length) for part in (0.5, 1)])
        step = consistent_step(flow, state, seen, guess, trial, inverse, tolerance)
        error = np.inf if step is None else in_doubt(flow, state, step, before, tolerance)
        if not np.isfinite(error):
            length, before, inverse = trial / 5, None, np.eye(2 * seen.size)
            continue
        if error <= 1:
            then = times[-1] if last else now + trial
            for time in times[(times > now) & (times <= then)]:
                states.append(step.end if time == then else inside(flow, state, step, (time - now) / trial))
            now, state, seen, before = then, step.end, step.seen[2], step
        length = trial * min(4.0, max(0.2, 0.9 / max(error, 1e-6) ** 0.25))
    return [np.stack(part) for part in zip(*states)]

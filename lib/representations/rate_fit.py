"""Effective learning rates of a network from the curves of two points: what the two-point theory leaves to be fitted.

The rates α of the encoder and β of the decoder are those that bring :meth:`TwoPoints.solve` closest to the measured
a(t), b(t) and w(t); γ of the mean output comes last, from the loss.  Source: vanrossem2024, eqs. (7), (9), (10) and
(49); the first guess, the second weighting and the uncertainties are not in it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, minimize_scalar

from lib.common import checks
from lib.common.shapes import Array, ArrayLike, Rng
from lib.representations.two_points import TwoPoints

BOUND = 12  # the logarithms stay within this distance of the first guess
JITTER = 0.7  # standard deviation of the logarithms of the other starts about the first guess


@dataclass(frozen=True, eq=False)
class RateFit:
    """Fitted rates and how well they do; entries in the order α, β, γ of the rates and a, b, w of the curves."""

    encoder_rate: float  # α, per unit of the times
    decoder_rate: float  # β
    mean_rate: float  # γ; NaN if the mean output is right from the start, so that no γ can be found
    r_squared: Array["3"]  # 1 - ∫(data - fit)² dt / ∫(data - its mean)² dt of each curve
    loss_r_squared: float  # the same of the loss
    cost: float  # ∫[(a-â)² + (b-b̂)² + (w-ŵ)²] dt, in the weighting of the fit
    uncertainty: Array["3"]  # change of ln α, ln β (the other following), ln γ that doubles the cost, linearised
    identifiable: Array["3"]  # truth values: uncertainty below one, a factor e; never at a bound of the search


@dataclass(frozen=True, eq=False)
class _Data:
    elapsed: np.ndarray  # (A,)  time since the first sample
    weights: np.ndarray  # (A,)  dt of the trapezoidal rule
    states: np.ndarray  # (A, 3)  a, b, w
    loss: np.ndarray  # (A,)
    start: np.ndarray  # (3,)
    x: float
    y: float

    def theory(self, times, encoder_rate, decoder_rate):
        """The closed form of a, b, w, (T, 3)."""
        return TwoPoints(self.start, self.x, self.y, encoder_rate, decoder_rate).solve(times)


def _start(start, first, y):
    """a, b, w to start the theory from; what single precision leaves outside (b - w)² <= bY is taken back."""
    a, b, w = checks.array("start", first if start is None else start, shape=(3,))  # (3,)
    most = np.sqrt(b * y) if b > 0 else 0.0
    if a <= 0 or b < 0 or abs(b - w) > most + 1e-5 * max(most, b):
        wanted = "have a > 0, b >= 0, (b - w)² <= bY; give exact values if the first sample is noisy"
        checks.fail("start", wanted, [a, b, w])
    checks.fail_if(2 * w - b + y <= 1e-9 * max(b, y), "start", "not rest: 2w - b + Y > 0", [a, b, w])
    return np.array([a, b, b - np.clip(b - w, -most, most)])  # (3,)


def _data(times, states, loss, input_distance, target_distance, start, final_loss):
    t = checks.times("times", times)  # (A,)
    checks.fail_if(t.size < 5, "times", "hold five samples or more", times)
    states = checks.array("states", states, shape=(t.size, 3))  # (A, 3)
    losses = checks.array("loss", loss, shape=t.shape)  # (A,)
    x = checks.number("input_distance", input_distance, above=0)
    y = checks.number("target_distance", target_distance, at_least=0)
    for name, values in (("states", states), ("loss", losses)):
        if np.any(np.ptp(values, axis=0) <= 1e-12 * np.abs(values).max(axis=0)):
            checks.fail(name, "change in the course of the run: a constant curve does not determine a rate", values)
    final_loss = checks.number("final_loss", final_loss, above=0)
    if losses[-1] >= final_loss:
        wanted = f"end below {final_loss}: a run that has not ended does not determine the rates"
        checks.fail("loss", wanted, float(losses[-1]))
    half = np.diff(t) / 2  # (A-1,)
    return _Data(t - t[0], np.append(half, 0) + np.append(0, half), states, losses, _start(start, states[0], y), x, y)


def _difference_loss(states, y):
    """The part ‖e‖²/8 of the loss that belongs to the difference of the outputs, ‖e‖² = 2w - b + Y; (A,)."""
    return (2 * states[..., 2] - states[..., 1] + y) / 8


def _half_time(times, falling):
    """Time at which a curve first is at half its first value, linear between samples; None if it never is."""
    below = falling <= falling[0] / 2  # (A,)
    if falling[0] <= 0 or not below.any():
        return None
    i = int(np.argmax(below))
    return times[i - 1] + (times[i] - times[i - 1]) * (falling[i - 1] - falling[0] / 2) / (falling[i - 1] - falling[i])


def _guesses(data):
    """Logarithms of α and β (G, 2) to start from: one pair where a(t) ends as eq. (10) allows, else a fan of ratios.

    The end of a(t) fixes  α/β = a_∞(a_∞ - a₀)/[X(Y - a_∞b₀/a₀)],  and the time at which half of the error 2w - b + Y is
    left the unit of time.
    """
    a, b, w = data.start
    end = data.states[-1, 0]
    below = data.x * (data.y - end * b / a)
    ratio = end * (end - a) / below if below != 0 else 0.0
    natural = a**2 / (data.x * max(data.y, b))
    ratios = [ratio] if end > 0 and 0 < ratio < np.inf else natural * np.array([1, 0.03, 30, 1e-3, 1e3])  # (G,)
    measured = _half_time(data.elapsed, _difference_loss(np.vstack([data.start, data.states[1:]]), data.y))
    checks.fail_if(measured is None, "states", "reach half of the first 2w - b + Y", data.states[-1])
    clock, guesses = np.append(0, np.geomspace(1e-6, 1e6, 4000)), []  # (4001,)
    for rho in ratios:
        unit = a + np.hypot(a - rho * data.x * b / a, 2 * np.sqrt(rho * data.x * data.y))  # its inverse is a rate
        half = _half_time(clock, _difference_loss(data.theory(clock, rho / unit, 1 / unit), data.y))
        if half is not None:  # rates times half/measured are half times the other way round
            guesses.append(np.log([rho / unit * half / measured, half / unit / measured]))
    checks.fail_if(not guesses, "start", "be a state that the theory leaves", data.start)
    return np.array(guesses)  # (G, 2)


def _uncertainty(jacobian, misfit):
    """Steps (P,) of the parameters, the others following, that double the misfit; infinite where nothing changes."""
    _, size, modes = np.linalg.svd(jacobian, full_matrices=False)  # (P,), (P, P)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.abs(modes) * np.where(size > 1e-12 * size[0], np.sqrt(misfit) / size, np.inf)[:, None]  # (P, P)
    return np.sqrt((np.where(np.abs(modes) > 1e-9, reach, 0) ** 2).sum(axis=0))  # (P,)


def _mean_rate(data, difference):
    """γ, its uncertainty and the fitted loss:  [L(0) - ‖e(0)‖²/8] e^{-2γt} + ‖e(t)‖²/8."""
    offset = data.loss[0] - _difference_loss(data.start, data.y)
    if offset <= 1e-9 * data.loss[0]:
        return np.nan, np.inf, difference

    def misfit(log_rate):
        return data.weights @ (data.loss - difference - offset * np.exp(-2 * np.exp(log_rate) * data.elapsed)) ** 2

    grid = np.linspace(np.log(1e-2 / data.elapsed[-1]), np.log(10 / data.elapsed[1]), 60)  # (60,)
    best = int(np.argmin([misfit(value) for value in grid]))
    if best in (0, 59):
        rate, uncertainty = np.exp(grid[best]), np.inf
    else:
        ends = grid[best - 1], grid[best + 1]
        found = minimize_scalar(misfit, bounds=ends, method="bounded", options={"xatol": 1e-10})
        rate = np.exp(found.x)
        slope = 2 * rate * data.elapsed * offset * np.exp(-2 * rate * data.elapsed)  # (A,)
        uncertainty = _uncertainty((np.sqrt(data.weights) * slope)[:, None], found.fun)[0]
    return float(rate), uncertainty, difference + offset * np.exp(-2 * rate * data.elapsed)


def fit(
    times: ArrayLike,
    states: ArrayLike,
    loss: ArrayLike,
    input_distance: float,
    target_distance: float,
    *,
    rng: Rng,
    weighting: str = "raw",
    start: ArrayLike | None = None,
    final_loss: float = 1e-3,
    restarts: int = 4,
    model: Callable | None = None,
) -> RateFit:
    """Effective learning rates α and β that minimise  ∫[(a-â)² + (b-b̂)² + (w-ŵ)²] dt,  then γ from the loss.

    Trust-region least squares on ln α and ln β, from a guess and from points about it.  γ minimises  ∫(L - L̂)² dt  with
    L̂ = c e^{-2γt} + ⅛‖dy - Δ‖²,  c from the first loss.

    Parameters
    ----------
    times : array_like (A,)
        t >= 0, increasing, A >= 5.
    states : array_like (A, 3)
        Measured a, b, w, as from ``two_points.state``; each must change.
    loss : array_like (A,)
        Measured ½⟨‖f - y‖²⟩, the last below `final_loss`.
    input_distance, target_distance : float
        X > 0, Y >= 0.
    rng : int, SeedSequence or Generator
        Of the further starts.
    weighting : str
        "raw", the source's, or "range", which divides every curve by its range.
    start : array_like (3,), optional
        Exact a₀, b₀, w₀ at times[0], by default the first state.
    final_loss : float
        > 0.
    restarts : int
        Further starts, >= 0.
    model : callable, optional
        Function (elapsed (A,), α, β) -> (A, 3) in place of the closed form.

    Returns
    -------
    RateFit

    Examples
    --------
    >>> t, two = np.linspace(0, 4000, 400), TwoPoints([1e-2, 1e-4, -0.0099], 1.0, 1.0, 0.01, 0.02)
    >>> loss = two.loss(t, mean_distance=0.3, mean_rate=0.004)
    >>> found = fit(t, two.solve(t), loss, 1.0, 1.0, rng=1, start=two.start)
    >>> round(found.encoder_rate, 6), round(found.decoder_rate, 6), round(found.mean_rate, 6)
    (0.01, 0.02, 0.004)
    """
    from sklearn.metrics import r2_score  # takes most of a second

    data = _data(times, states, loss, input_distance, target_distance, start, final_loss)
    rng = checks.generator("rng", rng)
    checks.one_of("weighting", weighting, ("raw", "range"))
    restarts = checks.integer("restarts", restarts, at_least=0)
    checks.fail_if(model is not None and not callable(model), "model", "be a function of the times, α and β", model)
    guesses = _guesses(data)  # (G, 2)
    unit = np.ptp(data.states, axis=0) if weighting == "range" else np.ones(3)  # (3,)
    roots = np.sqrt(data.weights)[:, None] / unit  # (A, 3)

    def curves(logs):
        rates = np.exp(guesses[0] + logs)  # (2,)
        if model is None:
            return data.theory(data.elapsed, *rates)  # (A, 3)
        return checks.array("model", model(data.elapsed.copy(), *rates), shape=data.states.shape)  # (A, 3)

    fan = np.clip(guesses - guesses[0], 1 - BOUND, BOUND - 1)  # (G, 2)
    begins = np.vstack([fan, rng.normal(0, JITTER, (restarts, 2))])  # (G + restarts, 2)
    settings = {"method": "trf", "bounds": (-BOUND, BOUND), "xtol": 1e-11, "ftol": 1e-11, "gtol": 1e-14}

    def residuals(logs):
        return ((curves(logs) - data.states) * roots).ravel()  # (3A,)

    best = min((least_squares(residuals, begin, **settings) for begin in begins), key=lambda result: result.cost)
    at_bound = np.abs(best.x) > BOUND - 0.1  # (2,)
    fitted = curves(best.x)  # (A, 3)
    gamma, gamma_error, fitted_loss = _mean_rate(data, _difference_loss(fitted, data.y))
    uncertainty = np.append(np.where(at_bound, np.inf, _uncertainty(best.jac, 2 * best.cost)), gamma_error)  # (3,)
    r_squared = r2_score(data.states, fitted, sample_weight=data.weights, multioutput="raw_values")  # (3,)
    of_loss = float(r2_score(data.loss, fitted_loss, sample_weight=data.weights))
    found = gamma, r_squared, of_loss, float(2 * best.cost), uncertainty, uncertainty < 1
    return RateFit(*np.exp(guesses[0] + best.x).tolist(), *found)
